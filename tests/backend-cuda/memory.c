/* SPDX-License-Identifier: MIT
 *
 * Managed memory, and memory of one process that another one opens. The child forks before the
 * driver is loaded: each process has its own. */
#include "tests/backend-cuda/driver.h"

#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1000, BYTES = COUNT * sizeof(float) };

START_TEST(managed_memory_has_one_address_for_host_and_device)
{
    tn_memory memory = { TN_HEAD(tn_memory), .bytes = BYTES, .kind = TN_MEMORY_MANAGED };
    float back[COUNT];

    load();
    fake->managed = 1;
    ck_assert_int_eq(direct_open(&d, 0), TN_OK);
    ck_assert(d.info.memory_kinds & TN_MEMORY_BIT(TN_MEMORY_MANAGED));
    ck_assert_int_eq(d.backend->alloc(d.device, &memory), TN_OK);
    ck_assert_ptr_eq(memory.host, memory.handle);
    for (int i = 0; i < COUNT; i++)
        ((float *)memory.host)[i] = (float)i;
    ck_assert_int_eq(
        direct_copy_out(d.backend, d.device, d.stream, back, memory.handle, 0, sizeof back), TN_OK);
    ck_assert_float_eq(back[COUNT - 1], COUNT - 1);
    back[7] = -7;
    ck_assert_int_eq(
        direct_copy_in(d.backend, d.device, d.stream, memory.handle, 0, back, sizeof back), TN_OK);
    ck_assert_int_eq(d.backend->stream_sync(d.device, d.stream), TN_OK);
    ck_assert_float_eq(((float *)memory.host)[7], -7);
    d.backend->free(d.device, &memory);
    close_clean();
}
END_TEST

START_TEST(a_kind_that_the_device_lacks_is_refused)
{
    tn_memory memory = { TN_HEAD(tn_memory), .bytes = BYTES, .kind = 4 };

    open_one();
    ck_assert(!(d.info.memory_kinds & TN_MEMORY_BIT(TN_MEMORY_MANAGED)));
    ck_assert(d.info.memory_kinds & TN_MEMORY_BIT(TN_MEMORY_SHARED));
    expect(d.backend->alloc(d.device, &memory), TN_ERR_NOT_IMPLEMENTED, "kind, got 4");
    close_clean();
}
END_TEST

static tn_memory shared_memory(uint64_t bytes)
{
    tn_memory memory = { TN_HEAD(tn_memory), .bytes = bytes, .kind = TN_MEMORY_SHARED };

    ck_assert_msg(d.backend->alloc(d.device, &memory) == TN_OK, "%s", tn_error_text());
    ck_assert_ptr_null(memory.host);
    return memory;
}

static tn_status open_memory(const tn_share_args *args, uint64_t bytes, tn_memory *memory)
{
    *memory = (tn_memory){ TN_HEAD(tn_memory), .bytes = bytes, .kind = TN_MEMORY_SHARED,
                           .flags = TN_MEMORY_FLAG_OPENED };
    return d.backend->memory_open(d.device, args, memory);
}

/* What the other process does: opens the memory, reads what the first one wrote, writes its own.
 * Also tries handles that are wrong. */
static int other_process(int from, int to)
{
    tn_share_args args, wrong;
    tn_memory memory, none;
    float values[COUNT];

    if (read(from, &args, sizeof args) != sizeof args)
        return 2;
    open_one();
    wrong = args;
    wrong.handle[0] ^= 1;
    expect(open_memory(&wrong, BYTES, &none), TN_ERR_VALUE, "shared memory: not there any more");
    expect(open_memory(&args, (uint64_t)3 << 20, &none), TN_ERR_VALUE,
           "too small, got 2097152 bytes; expected at least 3145728");
    ck_assert_int_eq(fake->live_opened, 0);
    if (open_memory(&args, BYTES, &memory) != TN_OK ||
        direct_copy_out(d.backend, d.device, d.stream, values, memory.handle, 0, BYTES) != TN_OK)
        return 3;
    for (int i = 0; i < COUNT; i++) {
        if (values[i] != (float)i)
            return 4;
        values[i] = (float)(2 * i);
    }
    if (direct_copy_in(d.backend, d.device, d.stream, memory.handle, 0, values, BYTES) != TN_OK ||
        d.backend->stream_sync(d.device, d.stream) != TN_OK)
        return 5;
    d.backend->free(d.device, &memory);
    ck_assert_int_eq(fake->live_opened, 0);
    if (write(to, "!", 1) != 1 || read(from, &args, 1) != 1)
        return 6;
    /* The first process has freed it. */
    expect(open_memory(&args, BYTES, &none), TN_ERR_VALUE, "shared memory: not there any more");
    close_clean();
    return 0;
}

START_TEST(two_processes_see_what_each_other_wrote)
{
    int there[2], back[2], status = 0;
    tn_share_args args = { TN_HEAD(tn_share_args), .fd = -1 };
    float values[COUNT];
    tn_memory memory, none;
    char done;
    pid_t child;

    ck_assert(pipe(there) == 0 && pipe(back) == 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(other_process(there[0], back[1]));
    open_one();
    memory = shared_memory(BYTES);
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    ck_assert_int_eq(direct_copy_in(d.backend, d.device, d.stream, memory.handle, 0, values, BYTES),
                     TN_OK);
    ck_assert_int_eq(d.backend->stream_sync(d.device, d.stream), TN_OK);
    ck_assert_int_eq(d.backend->memory_share(d.device, &memory, &args), TN_OK);
    ck_assert_int_eq(args.fd, -1);
    expect(open_memory(&args, BYTES, &none), TN_ERR_VALUE, "or of this process");
    ck_assert_int_eq(write(there[1], &args, sizeof args), sizeof args);
    ck_assert_int_eq(read(back[0], &done, 1), 1);
    ck_assert_int_eq(
        direct_copy_out(d.backend, d.device, d.stream, values, memory.handle, 0, BYTES), TN_OK);
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_eq(values[i], (float)(2 * i));
    d.backend->free(d.device, &memory);
    ck_assert_int_eq(write(there[1], "!", 1), 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: %d", WEXITSTATUS(status));
    close_clean();
}
END_TEST

START_TEST(failures_of_the_driver_are_told)
{
    tn_share_args args = { TN_HEAD(tn_share_args), .fd = -1 };
    tn_memory memory;

    open_one();
    memory = shared_memory(8);
    fake->fail_function = "cuIpcGetMemHandle";
    fake->fail_after = 1;
    fake->fail_code = 801;
    expect(d.backend->memory_share(d.device, &memory, &args), TN_ERR_DEVICE, "sharing memory");
    d.backend->free(d.device, &memory);
    fake->fail_function = "cuMemAlloc";
    fake->fail_after = 1;
    fake->fail_code = 2;
    memory.bytes = 100;
    expect(d.backend->alloc(d.device, &memory), TN_ERR_MEMORY, "allocating 100 bytes");
    close_clean();
}
END_TEST

void add_memory(TCase *to)
{
    tcase_add_test(to, managed_memory_has_one_address_for_host_and_device);
    tcase_add_test(to, a_kind_that_the_device_lacks_is_refused);
    tcase_add_test(to, two_processes_see_what_each_other_wrote);
    tcase_add_test(to, failures_of_the_driver_are_told);
}

/* SPDX-License-Identifier: MIT
 *
 * Memory of the processor that several processes use: what one writes, the other one reads; what a
 * hostile process sends is refused. */
#include "tests/backend/backend.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 3000 };

static tn_tensor *shared_tensor(void)
{
    tn_tensor *x = tn_tensor_empty_in(TN_SHAPE(COUNT), TN_F32, tn_device_find("cpu"),
                                      TN_MEMORY_SHARED);
    float *values;

    ck_assert_msg(x != NULL, "%s", tn_error_text());
    values = tn_tensor_data(x);
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    return x;
}

/* ---- two processes ---- */

/* Receives what describes the memory, with a file descriptor if one was sent. */
static bool receive(int from, tn_shared *shared)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } room;
    struct iovec part = { shared, sizeof *shared };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = room.bytes,
                              .msg_controllen = sizeof room.bytes };
    struct cmsghdr *sent;

    if (recvmsg(from, &message, 0) != sizeof *shared)
        return false;
    sent = CMSG_FIRSTHDR(&message);
    shared->fd = -1;
    if (sent != NULL)
        memcpy(&shared->fd, CMSG_DATA(sent), sizeof shared->fd);
    return true;
}

static void give(int to, const tn_shared *shared)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } room = { { 0 } };
    struct iovec part = { (void *)(uintptr_t)shared, sizeof *shared };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

    if (shared->fd >= 0) {
        message.msg_control = room.bytes;
        message.msg_controllen = sizeof room.bytes;
        CMSG_FIRSTHDR(&message)->cmsg_level = SOL_SOCKET;
        CMSG_FIRSTHDR(&message)->cmsg_type = SCM_RIGHTS;
        CMSG_FIRSTHDR(&message)->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &shared->fd, sizeof shared->fd);
    }
    ck_assert_int_eq(sendmsg(to, &message, 0), sizeof *shared);
}

/* Opens the memory, checks its values and doubles them. Then checks that element 1 has the value
 * that the first process writes afterwards. */
static int other_process(int channel)
{
    tn_shared shared;
    tn_tensor *x;
    float *values;
    char byte;

    if (!receive(channel, &shared))
        return 2;
    x = tn_tensor_open_shared(&shared, TN_SHAPE(COUNT - 10), TN_F32, NULL);
    if (shared.fd >= 0)
        close(shared.fd);
    if (x == NULL)
        return 3;
    values = tn_tensor_data(x);
    for (int i = 0; i < COUNT - 10; i++) {
        if (values[i] != (float)(i + 10))
            return 4;
        values[i] *= 2;
    }
    if (write(channel, "!", 1) != 1 || read(channel, &byte, 1) != 1)
        return 5;
    return values[1] == -5 ? 0 : 6; /* the first process has dropped its tensor */
}

static void between_processes(uint32_t flags)
{
    int channel[2], status = 0;
    uint64_t scope;
    tn_shared shared;
    tn_tensor *x;
    float *values;
    char byte;
    pid_t child;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, channel), 0);
    child = fork(); /* before the memory is there: nothing is inherited */
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(other_process(channel[1]));
    scope = tn_scope_begin();
    x = shared_tensor();
    ck_assert_uint_eq(tn_tensor_memory_kind(x), TN_MEMORY_SHARED);
    ck_assert(tn_tensor_is_shared(x));
    ok(tn_tensor_share(tn_tensor_as_strided(x, TN_SHAPE(COUNT - 10), TN_SHAPE(1), 10), flags,
                       &shared));
    ck_assert((shared.fd >= 0) == (flags != 0));
    give(channel[0], &shared);
    if (shared.fd >= 0)
        ck_assert_int_eq(close(shared.fd), 0);
    ck_assert_int_eq(read(channel[0], &byte, 1), 1);
    values = tn_tensor_data(x);
    ck_assert_float_eq(values[9], 9);
    for (int i = 10; i < COUNT; i++)
        ck_assert_float_eq(values[i], (float)(2 * i));
    values[11] = -5;
    tn_scope_end(scope);
    ck_assert_int_eq(write(channel[0], "!", 1), 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: %d", WEXITSTATUS(status));
    close(channel[0]);
    close(channel[1]);
}

START_TEST(two_processes_see_what_each_other_wrote)
{
    between_processes(0);
}
END_TEST

START_TEST(a_file_descriptor_that_was_sent_opens_it_too)
{
    between_processes(TN_SHARE_FD);
}
END_TEST

START_TEST(operators_use_shared_memory_as_any_other)
{
    TN_SCOPE;
    tn_tensor *x = shared_tensor();
    tn_tensor *y = tn_tensor_empty_in(TN_SHAPE(COUNT), TN_F32, NULL, TN_MEMORY_MANAGED);
    tn_shared shared;

    ck_assert_uint_eq(tn_tensor_memory_kind(y), TN_MEMORY_MANAGED);
    ck_assert_ptr_nonnull(tn_copy_(y, x));
    ck_assert_double_eq(tn_item(tn_sum(tn_add(x, y))), 3000.0 * 2999);
    ok(tn_tensor_share(x, 0, &shared));
    x = tn_tensor_open_shared(&shared, TN_SHAPE(30, 100), TN_F32, NULL); /* in the same process */
    ck_assert_double_eq(tn_item(tn_sum(x)), 1500.0 * 2999);
}
END_TEST

/* ---- hostile input ---- */

static void refused(const tn_shared *shared, const char *words)
{
    ck_assert_ptr_null(tn_tensor_open_shared(shared, TN_SHAPE(2), TN_F32, NULL));
    ck_assert_int_eq(tn_error_code(), TN_ERR_VALUE);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "expected %s in %s", words,
                  tn_error_text());
    tn_error_clear();
}

/* The members of the handle, which only the backend reads. */
struct name {
    char mark[8];
    int64_t process;
    uint64_t device, file;
    int64_t descriptor;
};

static tn_shared named(const tn_shared *good, int64_t process, int64_t descriptor)
{
    tn_shared bad = *good;
    struct name name;

    memcpy(&name, bad.handle, sizeof name);
    name.process = process;
    name.descriptor = descriptor;
    memcpy(bad.handle, &name, sizeof name);
    return bad;
}

START_TEST(handles_that_are_wrong_are_refused)
{
    TN_SCOPE;
    tn_shared good, bad;
    int null = open("/dev/null", O_RDWR), pipes[2];
    char path[] = "/tmp/tenon-shared-XXXXXX";
    int file = mkstemp(path);

    ck_assert(null >= 0 && file >= 0 && pipe(pipes) == 0);
    ck_assert_int_eq(ftruncate(file, 1 << 20), 0);
    unlink(path);
    ok(tn_tensor_share(shared_tensor(), 0, &good));
    bad = good;
    bad.handle[0] ^= 1;
    refused(&bad, "cpu: shared memory: not a handle of this backend");
    bad = good;
    bad.bytes = 1 << 20; /* longer than it is */
    refused(&bad, "cpu: shared memory: too small, got 12288 bytes; expected at least 1048576");
    bad = named(&good, getpid(), 100000);
    refused(&bad, "cannot be opened");
    bad = named(&good, -1, 3);
    refused(&bad, "cannot be opened");
    bad = named(&good, getpid(), null); /* other files, which are not even opened */
    refused(&bad, "cannot be opened");
    bad = named(&good, getpid(), pipes[0]);
    refused(&bad, "cannot be opened");
    bad = named(&good, getpid(), file);
    refused(&bad, "cannot be opened");
    for (int i = 0; i < 3; i++) {
        bad = good;
        bad.fd = i == 0 ? null : i == 1 ? pipes[1] : file;
        refused(&bad, "another file");
    }
    bad.fd = 100000;
    refused(&bad, "cannot be opened");
    close(null);
    close(file);
}
END_TEST

/* A file of the right name that its owner may still shrink: a later access would end the
 * process. */
START_TEST(memory_that_could_be_taken_away_is_refused)
{
    TN_SCOPE;
    tn_shared good;
    char path[] = "/tmp/tenon-shared-XXXXXX";
    int file = mkstemp(path);
    struct name name;

    ck_assert(file >= 0 && ftruncate(file, 1 << 20) == 0);
    unlink(path);
    ok(tn_tensor_share(shared_tensor(), 0, &good));
    memcpy(&name, good.handle, sizeof name);
    {
        struct stat stat;

        ck_assert_int_eq(fstat(file, &stat), 0);
        name.device = stat.st_dev;
        name.file = stat.st_ino;
        name.descriptor = file;
        memcpy(good.handle, &name, sizeof name);
    }
    refused(&good, "another file");
    good.fd = file;
    refused(&good, "another file");
    close(file);
}
END_TEST

/* Files of another owner that cannot be written, although they never shrink. */
START_TEST(memory_that_cannot_be_written_is_refused)
{
    TN_SCOPE;
    for (int i = 0; i < 2; i++) {
        tn_shared shared;
        struct stat stat;
        struct name name;
        char path[64];
        int file = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        ck_assert(file >= 0 && ftruncate(file, 1 << 20) == 0 && fstat(file, &stat) == 0);
        ck_assert_int_eq(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | (i == 0 ? F_SEAL_WRITE : 0)), 0);
        ok(tn_tensor_share(shared_tensor(), 0, &shared));
        memcpy(&name, shared.handle, sizeof name);
        name.device = stat.st_dev;
        name.file = stat.st_ino;
        name.descriptor = file;
        memcpy(shared.handle, &name, sizeof name);
        tn_snprint(path, sizeof path, "/proc/self/fd/%d", file);
        shared.fd = i == 0 ? file : open(path, O_RDONLY | O_CLOEXEC);
        refused(&shared, "another file");
        close(shared.fd);
        if (i == 1)
            close(file);
    }
}
END_TEST

START_TEST(memory_that_was_freed_is_refused)
{
    uint64_t scope = tn_scope_begin();
    tn_shared shared;

    ok(tn_tensor_share(shared_tensor(), 0, &shared));
    tn_scope_end(scope);
    refused(&shared, "cannot be opened");
}
END_TEST

START_TEST(more_than_there_is_fails_without_harm)
{
    TN_SCOPE;
    struct rlimit usual, small;

    /* a limit of the size of files, which would end the process */
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &usual), 0);
    small = usual;
    small.rlim_cur = 100 << 10;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_assert_ptr_null(tn_tensor_empty_in(TN_SHAPE(1 << 20), TN_U8, NULL, TN_MEMORY_SHARED));
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &usual), 0);
    ck_assert_int_eq(tn_error_code(), TN_ERR_MEMORY);
    tn_error_clear();
    ck_assert_ptr_null(tn_tensor_empty_in(TN_SHAPE(INT64_MAX / 8), TN_F32, NULL, TN_MEMORY_SHARED));
    ck_assert_int_eq(tn_error_code(), TN_ERR_MEMORY);
    tn_error_clear();
    ck_assert_ptr_nonnull(
        tn_tensor_data(tn_tensor_empty_in(TN_SHAPE(1), TN_U8, NULL, TN_MEMORY_SHARED)));
}
END_TEST

RUN_SUITE("shared memory", two_processes_see_what_each_other_wrote,
          a_file_descriptor_that_was_sent_opens_it_too, operators_use_shared_memory_as_any_other,
          handles_that_are_wrong_are_refused, memory_that_could_be_taken_away_is_refused,
          memory_that_cannot_be_written_is_refused, memory_that_was_freed_is_refused,
          more_than_there_is_fails_without_harm)

/* SPDX-License-Identifier: MIT
 *
 * The strict device of examples/: memory that the host cannot access, work that is not yet done
 * when a call returns, failures that a test requests; and the kernel pack that overrides one of its
 * kernels (rule 22). */
#include "tests/backend/backend.h"

#include "examples/strict-device/strict.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const tn_device *strict(void)
{
    const tn_device *device = tn_device_find("strict");
    there(device);
    return device;
}

static const struct strict_api *api(void)
{
    const struct strict_api *found = tn_device_native(strict(), STRICT_API_ID);
    there(found);
    return found;
}

static uint64_t violations(void)
{
    uint64_t kernels, count, bytes;
    api()->counts(&kernels, &count, &bytes);
    return count;
}

static tn_tensor *ones(void)
{
    return put(strict(), TN_F32, TN_SHAPE(4), NUMBERS(1, 1, 1, 1), DENSE);
}

/* The device, and another one, still work. */
static void goes_on(void)
{
    TN_SCOPE;
    same("add_scalar", strict(), TN_F32, tn_add_scalar(ones(), 1), NUMBERS(2, 2, 2, 2), 0, 0);
    const tn_device *cpu = tn_device_find("cpu");
    same("add_scalar", cpu, TN_F32,
         tn_add_scalar(put(cpu, TN_F32, TN_SHAPE(1), NUMBERS(1), DENSE), 1), NUMBERS(2), 0, 0);
}

static void failed_with(tn_status code, const char *words)
{
    ck_assert_msg(tn_error_code() == code, "%s: %s", tn_status_name(tn_error_code()),
                  tn_error_text());
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "%s", tn_error_text());
    tn_error_clear();
}

START_TEST(a_host_pointer_is_an_error_and_a_handle_is_no_pointer)
{
    static float host[4];
    TN_SCOPE;
    tn_tensor *x = ones();
    ck_assert_ptr_null(tn_tensor_data(x));
    ck_assert(tn_failed());
    tn_error_clear();
    uint64_t before = violations();
    /* a call with a view of host memory, as a faulty plugin would make it */
    int64_t shape[1] = { 4 }, strides[1] = { 1 };
    tn_view view = *tn_tensor_view(x), bad = view;
    bad.data = host;
    bad.shape = shape;
    bad.strides = strides;
    const tn_view *in[] = { &bad }, *out[] = { &view };
    tn_kernel_def kernel = { .op = "relu" };
    tn_call call = { TN_HEAD(tn_call), .op = "relu", .in = in,         .out = out,
                     .n_in = 1,        .n_out = 1,   .kernel = &kernel };
    ck_assert_int_eq(api()->enqueue(&call, NULL, NULL), TN_ERR_DEVICE);
    failed_with(TN_ERR_DEVICE, "expected memory of this device");
    ck_assert_uint_eq(violations(), before + 1);
    /* the handle faults when it is followed */
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        volatile const char *at = tn_tensor_view(x)->data;
        _exit(at[0] == 0 ? 0 : 1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(!(WIFEXITED(status) && WEXITSTATUS(status) <= 1),
                  "the handle of the strict device could be read");
}
END_TEST

START_TEST(a_view_beyond_its_memory_is_refused)
{
    TN_SCOPE;
    tn_tensor *x = ones();
    int64_t shape[1] = { INT64_C(1) << 40 }, strides[1] = { 1 };
    tn_view bad = *tn_tensor_view(x);
    bad.shape = shape;
    bad.strides = strides;
    const tn_view *in[] = { &bad }, *out[] = { &bad };
    tn_kernel_def kernel = { .op = "relu" };
    tn_call call = { TN_HEAD(tn_call), .op = "relu", .in = in,         .out = out,
                     .n_in = 1,        .n_out = 1,   .kernel = &kernel };
    ck_assert_int_eq(api()->enqueue(&call, NULL, NULL), TN_ERR_DEVICE);
    failed_with(TN_ERR_DEVICE, "exceeds its memory");
    goes_on();
}
END_TEST

START_TEST(an_allocation_that_fails_once_is_tried_again_and_one_that_keeps_failing_is_an_error)
{
    unsetenv("TENON_CHECK"); /* which waits after every kernel and keeps no memory */
    TN_SCOPE;
    tn_tensor *before = ones();
    ok(api()->inject("alloc:1"));
    there(tn_tensor_empty(TN_SHAPE(64, 1024, 1024), TN_F32, strict()));
    ok(api()->inject("alloc:1+"));
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(128, 1024, 1024), TN_F32, strict()));
    failed_with(TN_ERR_MEMORY, "strict");
    ok(api()->inject("memory:1000000"));
    ck_assert_ptr_null(tn_tensor_full(TN_SHAPE(256, 1024, 1024), 1, TN_F32, strict()));
    failed_with(TN_ERR_MEMORY, "strict");
    ok(api()->inject(""));
    same("before", strict(), TN_F32, before, NUMBERS(1, 1, 1, 1), 0, 0);
    goes_on();
}
END_TEST

START_TEST(a_kernel_that_fails_later_is_told_at_the_next_synchronization)
{
    unsetenv("TENON_CHECK"); /* which waits after every kernel and keeps no memory */
    TN_SCOPE;
    tn_tensor *x = ones();
    ok(tn_device_sync(strict()));
    ok(api()->inject("kernel:mul:2"));
    there(tn_mul(x, x));
    there(tn_mul(x, x)); /* asynchronous: the call itself does not fail */
    ck_assert_int_eq(tn_device_sync(strict()), TN_ERR_DEVICE);
    failed_with(TN_ERR_DEVICE, "mul");
    ok(tn_device_sync(strict())); /* reported once */
    goes_on();
}
END_TEST

START_TEST(an_index_out_of_range_surfaces_at_sync_with_operator_index_and_bound)
{
    unsetenv("TENON_CHECK"); /* which waits after every kernel and keeps no memory */
    TN_SCOPE;
    tn_tensor *x = put(strict(), TN_F32, TN_SHAPE(2, 3), (double[6]){ 0 }, DENSE);
    tn_tensor *target = put(strict(), TN_I64, TN_SHAPE(2), NUMBERS(1, 17), DENSE), *loss, *total;
    ok(api()->inject("slow:20000"));
    tn_tensor *in[2] = { x, target }, *out[2];
    ok(tn_op_call(tn_op_find("nll_loss", 0), in, 2, NULL, out, 2));
    loss = out[0], total = out[1];
    there(loss);
    there(total);
    ok(api()->inject(""));
    ck_assert_int_eq(tn_device_sync(strict()), TN_ERR_INDEX);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "17"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "expected 0 to 2"));
    failed_with(TN_ERR_INDEX, "nll_loss");
    goes_on();
}
END_TEST

START_TEST(a_lost_device_loses_its_tensors_and_nothing_else)
{
    const tn_device *cpu = tn_device_find("cpu");
    TN_SCOPE;
    tn_tensor *x = ones(), *y = NULL;
    tn_tensor *host = put(cpu, TN_F32, TN_SHAPE(1), NUMBERS(5), DENSE);
    ok(tn_device_sync(strict()));
    ok(api()->inject("lost:2"));
    y = tn_add(x, x);
    y = tn_add(y, y);
    ck_assert_int_eq(tn_device_sync(strict()), TN_ERR_LOST);
    failed_with(TN_ERR_LOST, "lost");
    ck_assert_ptr_null(tn_add(x, x));
    failed_with(TN_ERR_LOST, "lost");
    ck_assert(isnan(tn_item(tn_select(x, 0, 0))));
    ck_assert_int_eq(tn_error_code(), TN_ERR_LOST);
    tn_error_clear();
    ck_assert_ptr_null(tn_tensor_full(TN_SHAPE(100, 1000, 1000), 1, TN_F32, strict()));
    ck_assert_int_eq(tn_error_code(), TN_ERR_LOST);
    tn_error_clear();
    same("add", cpu, TN_F32, tn_add(host, host), NUMBERS(10), 0, 0);
}
END_TEST

START_TEST(slow_work_is_waited_for_and_streams_wait_for_events)
{
    TN_SCOPE;
    tn_tensor *x = ones();
    ok(tn_device_sync(strict()));
    tn_stream *other = tn_stream_new(strict(), NULL);
    there(other);
    ok(api()->inject("slow:5000"));
    for (int i = 0; i < 5; i++)
        x = tn_add(x, x); /* on the default stream: 32 */
    tn_event *event = tn_event_record(strict(), NULL, 0);
    there(event);
    ok(tn_event_wait(event, other));
    tn_stream_begin(other);
    tn_tensor *y = tn_add_scalar(x, 1);
    tn_stream_end();
    ok(tn_stream_sync(other));
    ok(api()->inject(""));
    ck_assert(tn_event_done(event));
    same("add_scalar", strict(), TN_F32, y, NUMBERS(33, 33, 33, 33), 0, 0);
    tn_event_drop(event);
    tn_stream_drop(other);
    ck_assert_uint_eq(violations(), 0);
}
END_TEST

START_TEST(memory_that_other_streams_use_is_not_given_away_early)
{
    tn_stream *other = tn_stream_new(strict(), NULL);
    there(other);
    {
        TN_SCOPE;
        tn_tensor *x = put(strict(), TN_F32, TN_SHAPE(64), (double[64]){ 0 }, DENSE), *y = NULL;
        ok(tn_device_sync(strict()));
        ok(api()->inject("slow:2000"));
        for (int i = 0; i < 30; i++) {
            TN_SCOPE;
            tn_stream_begin(other);
            y = tn_add_scalar(x, i);
            tn_keep(y);
            tn_stream_end();
            tn_tensor_drop(y);
            /* dropped while the other stream still writes it: what comes next must not share its
             * memory */
            tn_tensor *z = tn_mul_scalar(tn_add_scalar(x, 100), 2);
            if (i % 10 == 9)
                same("z", strict(), TN_F32, tn_narrow(z, 0, 0, 2), NUMBERS(200, 200), 0, 0);
        }
        ok(api()->inject(""));
        ok(tn_stream_sync(other));
    }
    ok(tn_device_trim(strict()));
    tn_stream_drop(other);
    ck_assert_uint_eq(violations(), 0);
}
END_TEST

START_TEST(a_bad_option_refuses_the_device_with_words)
{
    setenv("TENON_STRICT_FAIL", "explode:3", 1);
    ck_assert_ptr_null(tn_device_find("strict"));
    ck_assert_msg(strstr(tn_error_text(), "explode:3") && strstr(tn_error_text(), "lost:N"), "%s",
                  tn_error_text());
    tn_error_clear();
    there(tn_device_find("cpu"));
}
END_TEST

START_TEST(the_option_from_the_environment_is_taken)
{
    unsetenv("TENON_CHECK"); /* which waits after every kernel and keeps no memory */
    setenv("TENON_STRICT_FAIL", "kernel:neg:1+", 1);
    TN_SCOPE;
    there(tn_neg(ones()));
    ck_assert_int_eq(tn_device_sync(strict()), TN_ERR_DEVICE);
    failed_with(TN_ERR_DEVICE, "neg");
}
END_TEST

START_TEST(after_fork_the_cpu_goes_on_and_the_strict_device_says_why_it_does_not)
{
    TN_SCOPE;
    tn_tensor *x = ones();
    const tn_device *cpu = tn_device_find("cpu");
    tn_tensor *host = put(cpu, TN_F32, TN_SHAPE(2), NUMBERS(1, 2), DENSE);
    ok(tn_device_sync(strict()));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        double *sum = get(tn_add(host, host));
        if (sum[0] != 2 || sum[1] != 4)
            _exit(1);
        if (tn_add(x, x) != NULL || tn_error_code() != TN_ERR_RUNTIME)
            _exit(2);
        _exit(strstr(tn_error_text(), "strict") != NULL ? 0 : 3);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    goes_on();
}
END_TEST

/* ---- the kernel pack ------------------------------------------------------------------------- */

static int pack_calls;
static char pack_line[256];

static void listen(void *user, int level, const char *plugin, const char *text)
{
    (void)user, (void)level;
    if (strcmp(plugin, "org.example.relu-pack") == 0) {
        pack_calls++;
        snprintf(pack_line, sizeof pack_line, "%s", text);
    }
}

START_TEST(rule_22_a_pack_overrides_a_kernel_and_what_it_does_not_support_goes_to_the_next)
{
    setenv("TENON_LOG", "info", 1);
    tn_set_log_sink(listen, NULL);
    TN_SCOPE;
    char route[256];
    tn_op_route(tn_op_find("relu", 0), "strict", TN_F32, route, sizeof route);
    ck_assert_msg(strstr(route, "relu_pack") != NULL, "%s", route);
    tn_tensor *x = put(strict(), TN_F32, TN_SHAPE(2, 2), NUMBERS(-1, 2, -3, 4), REVERSED);
    same("relu", strict(), TN_F32, tn_relu(x), NUMBERS(0, 2, 0, 4), 0, 0);
    same("relu", strict(), TN_F32, tn_relu(x), NUMBERS(0, 2, 0, 4), 0, 0);
    ck_assert_int_eq(pack_calls, 2);
    ck_assert_str_eq(pack_line, "relu pack: call 2");
    /* float64: the pack says no when it is asked (rule 21), the device's own kernel runs */
    same("relu", strict(), TN_F64,
         tn_relu(put(strict(), TN_F64, TN_SHAPE(2), NUMBERS(-1, 2), DENSE)), NUMBERS(0, 2), 0, 0);
    ck_assert_int_eq(pack_calls, 2);
    ck_assert_uint_eq(violations(), 0);
}
END_TEST

START_TEST(after_shutdown_the_device_has_no_memory_left)
{
    {
        TN_SCOPE;
        there(tn_relu(ones()));
        ok(tn_device_sync(strict()));
    }
    const struct strict_api *found = api();
    uint64_t kernels, broken, bytes;
    tn_shutdown();
    found->counts(&kernels, &broken, &bytes);
    ck_assert_uint_gt(kernels, 0);
    ck_assert_uint_eq(broken, 0);
    ck_assert_uint_eq(bytes, 0);
}
END_TEST

RUN_SUITE("strict", a_host_pointer_is_an_error_and_a_handle_is_no_pointer,
          a_view_beyond_its_memory_is_refused,
          an_allocation_that_fails_once_is_tried_again_and_one_that_keeps_failing_is_an_error,
          a_kernel_that_fails_later_is_told_at_the_next_synchronization,
          an_index_out_of_range_surfaces_at_sync_with_operator_index_and_bound,
          a_lost_device_loses_its_tensors_and_nothing_else,
          slow_work_is_waited_for_and_streams_wait_for_events,
          memory_that_other_streams_use_is_not_given_away_early,
          a_bad_option_refuses_the_device_with_words, the_option_from_the_environment_is_taken,
          after_fork_the_cpu_goes_on_and_the_strict_device_says_why_it_does_not,
          rule_22_a_pack_overrides_a_kernel_and_what_it_does_not_support_goes_to_the_next,
          after_shutdown_the_device_has_no_memory_left)

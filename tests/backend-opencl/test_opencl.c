/* SPDX-License-Identifier: MIT
 *
 * The host side of backend-opencl on the driver that the loader finds (PoCL in CI): queues, events,
 * offsets into a cl_mem, compile logs, allocations that fail, late failures, several threads. */
#include "tests/gpu/optional.h"

#include <dirent.h>
#include <pthread.h>
#include <tenon/native.h>

#define FAILING TN_TEST_BUILDDIR "/tests/backend-opencl/.libs/failing.so"
#define PLUGIN TN_TEST_BUILDDIR "/plugins/.libs/backend-opencl.so"

struct options {
    const char *library, *build;
    int64_t seconds;
};

static struct direct d;

static void expect(tn_status got, tn_status want, const char *words)
{
    ck_assert_str_eq(tn_status_name(got), tn_status_name(want));
    ck_assert_msg(strstr(tn_error_last()->message, words) != NULL, "expected %s in: %s", words,
                  tn_error_last()->message);
    tn_error_clear();
}

static struct array *ones(int64_t count)
{
    struct array *a = array_new(&d, TN_F32, 1, &count, PLAIN);

    for (int64_t i = 0; i < count; i++)
        array_set(a, i, 1);
    array_up(a);
    return a;
}

static int threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;

    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        closedir(tasks);
    return count;
}

static bool mapped(const char *word)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    bool found = false;

    while (maps && fgets(line, sizeof line, maps))
        found = found || strstr(line, word);
    if (maps)
        fclose(maps);
    return found;
}

/* ---- before there is a device: in main, as the plugin is opened once ------------------------- */

static bool quiet_before_activation;

START_TEST(rule_1_asking_the_plugin_opens_no_loader_and_starts_no_thread)
{
    ck_assert(quiet_before_activation);
}
END_TEST

START_TEST(rule_19_an_absent_loader_is_unavailable_with_its_name)
{
    struct options *options = d.plugin->options_data, before = *options;

    options->library = "/nowhere/libOpenCL.so.1";
    expect(d.plugin->activate(d.plugin), TN_ERR_UNAVAILABLE, "/nowhere/libOpenCL.so.1");
    options->library = "libm.so.6";
    expect(d.plugin->activate(d.plugin), TN_ERR_UNAVAILABLE,
           "libm.so.6: function clGetPlatformIDs: missing");
    *options = before;
    /* what was open stays usable */
    ck_assert_int_eq(d.backend->stream_sync(d.device, d.stream), TN_OK);
}
END_TEST

START_TEST(a_queue_that_cannot_be_made_is_an_error_and_leaves_none)
{
    struct options *options = d.plugin->options_data, before = *options;
    static const struct {
        const char *step, *words;
        tn_status status;
    } rows[] = {
        { "queue", "CL_OUT_OF_RESOURCES", TN_ERR_DEVICE },
        { "buffer", "CL_OUT_OF_HOST_MEMORY", TN_ERR_MEMORY },
        { "write", "CL_OUT_OF_RESOURCES", TN_ERR_DEVICE },
    };

    options->library = FAILING;
    ck_assert_msg(d.plugin->activate(d.plugin) == TN_OK, "%s", tn_error_text());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *stream = NULL;

        setenv("TENON_TEST_OPENCL_FAILS", rows[i].step, 1);
        tn_status status = direct_stream_new(d.backend, d.device, &stream);
        unsetenv("TENON_TEST_OPENCL_FAILS");
        ck_assert_ptr_nonnull(strstr(tn_error_last()->message, "making a queue"));
        expect(status, rows[i].status, rows[i].words);
        ck_assert_ptr_null(stream);
    }
    void *stream = NULL;
    ck_assert_msg(direct_stream_new(d.backend, d.device, &stream) == TN_OK, "%s", tn_error_text());
    d.backend->stream_drop(d.device, stream);
    *options = before;
    ck_assert_int_eq(d.plugin->activate(d.plugin), TN_OK);
}
END_TEST

/* ---- devices --------------------------------------------------------------------------------- */

START_TEST(devices_come_in_the_same_order_each_time_and_say_what_they_are)
{
    int32_t first = 0, second = 0;
    void *device;
    tn_device_info info = { TN_HEAD(tn_device_info) };

    ck_assert_int_eq(d.backend->enumerate(d.backend, &first), TN_OK);
    ck_assert_int_eq(d.backend->enumerate(d.backend, &second), TN_OK);
    ck_assert_int_ge(first, 1);
    ck_assert_int_eq(first, second);
    ck_assert_int_eq(d.backend->open(d.backend, 0, &device), TN_OK);
    ck_assert_int_eq(d.backend->info(device, &info), TN_OK);
    ck_assert_str_eq(info.name, d.info.name);
    ck_assert_uint_gt(strlen(info.driver), 0);
    ck_assert_int_gt(info.memory_total, 0);
    ck_assert_int_gt(info.compute_units, 0);
    ck_assert_int_eq(info.alignment & (info.alignment - 1), 0);
    ck_assert_uint_ne(info.dtypes & TN_BIT(TN_F32), 0);
    d.backend->close(device);
    expect(d.backend->open(d.backend, first, &device), TN_ERR_INDEX, "index: out of range");
}
END_TEST

START_TEST(native_handles_are_published_for_packs)
{
    const tn_opencl_native *native = d.backend->native(d.device, "tenon.opencl.queue/1");

    ck_assert_ptr_nonnull(native);
    ck_assert_uint_eq(native->size, sizeof *native);
    ck_assert(native->platform && native->device && native->context && native->library);
    ck_assert_ptr_nonnull(native->queue(d.stream));
    ck_assert_ptr_eq(native->queue(d.stream), d.backend->native_stream(d.device, d.stream));
    ck_assert_ptr_null(d.backend->native(d.device, "tenon.opencl.queue/2"));
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

START_TEST(three_views_in_one_piece_of_memory)
{
    const int64_t n = 100, bytes = 4096;
    struct array *all = array_new(&d, TN_U8, 1, &bytes, PLAIN);
    struct array *a = ones(n), *b = ones(n), *y = ones(n);
    struct array *const in[] = { a, b }, *const out[] = { y }, *const place[] = { a };
    const tn_fill_options three = { sizeof three, TN_SCALAR_INIT_INT(3) },
                          four = { sizeof four, TN_SCALAR_INIT_INT(4) };

    /* the arrays keep their own memory; their views use `all` */
    a->view.data = b->view.data = y->view.data = all->memory;
    a->view.byte_offset = 256;
    b->view.byte_offset = 256 + 4 * 100;
    y->view.byte_offset = 2048 + 4;
    array_up(all);
    CALL(&d, "fill", &three, in, place);
    {
        struct array *const at_b[] = { b };
        CALL(&d, "fill", &four, in, at_b);
    }
    CALL(&d, "mul", NULL, in, out);
    array_down(all);
    for (int64_t i = 0; i < bytes; i++) {
        float value;
        int64_t first = i < 256    ? -1
                        : i < 656  ? 256
                        : i < 1056 ? 656
                        : i < 2052 ? -1
                        : i < 2452 ? 2052
                                   : -1;

        if (first < 0) {
            ck_assert_int_eq(all->host[i], 0x5a);
        } else if ((i - first) % 4 == 0) {
            memcpy(&value, all->host + i, 4);
            ck_assert_float_eq(value, first == 256 ? 3 : first == 656 ? 4 : 12);
        }
    }
    array_drop(a);
    array_drop(b);
    array_drop(y);
    array_drop(all);
}
END_TEST

START_TEST(copies_take_offsets_on_both_sides)
{
    const int64_t bytes = 64;
    struct array *a = array_new(&d, TN_U8, 1, &bytes, PLAIN),
                 *b = array_new(&d, TN_U8, 1, &bytes, PLAIN);
    const char text[] = "a tenon is the tongue of a joint";
    char back[16] = "";

    array_up(b);
    ck_assert_int_eq(direct_copy_in(d.backend, d.device, d.stream, a->memory, 5, text, sizeof text),
                     TN_OK);
    ck_assert_int_eq(direct_copy(d.backend, d.stream, (tn_copy_end){ d.device, b->memory, 30 },
                                 (tn_copy_end){ d.device, a->memory, 7 }, 5),
                     TN_OK);
    ck_assert_int_eq(direct_copy_out(d.backend, d.device, d.stream, back, b->memory, 29, 7), TN_OK);
    ck_assert_mem_eq(back, "\x5atenon\x5a", 7);
    array_drop(a);
    array_drop(b);
}
END_TEST

START_TEST(memory_that_is_not_there_is_an_error_with_sizes)
{
    void *memory = NULL;

    expect(direct_alloc(d.backend, d.device, (size_t)1 << 60, &memory), TN_ERR_MEMORY,
           "1152921504606846976");
    ck_assert_ptr_null(memory);
    ck_assert_int_eq(direct_alloc(d.backend, d.device, 100, &memory), TN_OK);
    direct_free(d.backend, d.device, memory, 100);
}
END_TEST

START_TEST(pinned_memory_is_copied_in_the_order_of_the_stream)
{
    copies_with_pinned_memory(&d);
}
END_TEST

START_TEST(memory_is_filled_with_patterns_of_every_size)
{
    fills_with_patterns(&d);
}
END_TEST

START_TEST(a_queue_of_the_program_is_used_and_stays)
{
    uses_a_stream_of_the_program(&d);
}
END_TEST

START_TEST(an_event_of_the_program_is_used_and_stays)
{
    uses_an_event_of_the_program(&d);
}
END_TEST

/* ---- queues and events ----------------------------------------------------------------------- */

START_TEST(events_order_queues)
{
    struct array *a = ones(1000), *y = ones(1000);
    struct array *const in[] = { a, a }, *const out[] = { y }, *const again[] = { y, y },
                        *const back[] = { a };
    void *first = d.stream, *second, *event;
    bool done = false;

    ck_assert_int_eq(direct_stream_new(d.backend, d.device, &second), TN_OK);
    ck_assert_int_eq(direct_event_new(d.backend, d.device, 0, &event), TN_OK);
    /* waiting for an event that was never recorded returns at once */
    ck_assert_int_eq(d.backend->event_query(d.device, event, &done), TN_OK);
    ck_assert(done);
    ck_assert_int_eq(d.backend->event_wait(d.device, event, second), TN_OK);
    ck_assert_int_eq(d.backend->event_sync(d.device, event), TN_OK);
    for (int round = 0; round < 20; round++) {
        CALL(&d, "add", NULL, in, out);
        ck_assert_int_eq(d.backend->event_record(d.device, event, first), TN_OK);
        ck_assert_int_eq(d.backend->event_wait(d.device, event, second), TN_OK);
        d.stream = second;
        CALL(&d, "add", NULL, again, back);
        ck_assert_int_eq(d.backend->event_record(d.device, event, second), TN_OK);
        ck_assert_int_eq(d.backend->event_wait(d.device, event, first), TN_OK);
        d.stream = first;
    }
    ck_assert_int_eq(d.backend->event_sync(d.device, event), TN_OK);
    ck_assert_int_eq(d.backend->event_query(d.device, event, &done), TN_OK);
    ck_assert(done);
    array_down(a);
    ck_assert_double_eq(array_get(a, 999), pow(4, 20));
    d.backend->event_drop(d.device, event);
    d.backend->stream_drop(d.device, second);
    array_drop(a);
    array_drop(y);
}
END_TEST

START_TEST(an_index_error_stays_with_its_queue)
{
    const int64_t shape[] = { 2, 3 }, two[] = { 2 };
    const tn_nll_loss_options options = TN_NLL_LOSS_OPTIONS;
    struct array *x = array_new(&d, TN_F32, 2, shape, PLAIN),
                 *t = array_new(&d, TN_I64, 1, two, PLAIN);
    struct array *y = array_new(&d, TN_F32, 0, NULL, PLAIN),
                 *total = array_new(&d, TN_F32, 0, NULL, PLAIN);
    struct array *const in[] = { x, t }, *const out[] = { y, total };
    void *second;

    array_set(t, 0, 1);
    array_set(t, 1, -7);
    array_up(t);
    array_up(x);
    ck_assert_int_eq(direct_stream_new(d.backend, d.device, &second), TN_OK);
    CALL(&d, "nll_loss", &options, in, out);
    ck_assert_int_eq(d.backend->stream_sync(d.device, second), TN_OK);
    expect(d.backend->stream_sync(d.device, d.stream), TN_ERR_INDEX,
           "target[1]: out of range, got -7");
    ck_assert_int_eq(d.backend->stream_sync(d.device, d.stream), TN_OK);
    d.backend->stream_drop(d.device, second);
    array_drop(x);
    array_drop(t);
    array_drop(y);
    array_drop(total);
}
END_TEST

/* A thread with its own queue: doubles 1 forty times and gets 2^40, although other threads use the
 * same kernels. */
static void *double_it(void *failed)
{
    struct direct mine = d;
    struct array *a;
    int64_t n = 64;

    if (direct_stream_new(mine.backend, mine.device, &mine.stream)) {
        *(bool *)failed = true;
        return NULL;
    }
    a = array_new(&mine, TN_F32, 1, &n, PLAIN);
    for (int64_t i = 0; i < n; i++)
        array_set(a, i, 1);
    array_up(a);
    for (int round = 0; round < 40; round++) {
        struct array *const in[] = { a, a }, *const out[] = { a };
        if (call_into(&mine, "add", NULL, in, 2, out, 1))
            *(bool *)failed = true;
    }
    array_down(a);
    for (int64_t i = 0; i < n; i++)
        if (array_get(a, i) != 0x1p40)
            *(bool *)failed = true;
    array_drop(a);
    mine.backend->stream_drop(mine.device, mine.stream);
    return NULL;
}

START_TEST(threads_with_queues_of_their_own_do_not_disturb_each_other)
{
    pthread_t all[4];
    bool failed[4] = { false };

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&all[i], NULL, double_it, &failed[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(all[i], NULL);
        ck_assert(!failed[i]);
    }
}
END_TEST

/* ---- compiling ------------------------------------------------------------------------------- */

START_TEST(a_text_that_does_not_compile_gives_text_type_and_log)
{
    struct options *options = d.plugin->options_data, before = *options;
    struct direct other = d;
    struct array *a;
    int64_t n = 4;

    options->build = "-Dget_global_id=no_such_function";
    ck_assert_int_eq(other.backend->open(other.backend, 0, &other.device), TN_OK);
    ck_assert_int_eq(direct_stream_new(other.backend, other.device, &other.stream), TN_OK);
    a = array_new(&other, TN_I16, 1, &n, PLAIN);
    {
        struct array *const in[] = { a, a }, *const out[] = { a };

        expect(call_into(&other, "mul", NULL, in, 2, out, 1), TN_ERR_DEVICE,
               "arithmetic.cl for i16 does not compile");
        call_into(&other, "mul", NULL, in, 2, out, 1);
        expect(tn_error_last_code(), TN_ERR_DEVICE, "no_such_function");
    }
    array_drop(a);
    other.backend->stream_drop(other.device, other.stream);
    other.backend->close(other.device);
    *options = before;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("backend-opencl");
    TCase *tcase = tcase_create("host side");
    SRunner *runner;
    int failed, before = threads();

#ifdef NO_REAL_DRIVERS
    printf("SKIP: OpenCL drivers are not built for ThreadSanitizer\n");
    return 77;
#endif
    if (!direct_load(&d, PLUGIN)) {
        printf("SKIP: backend-opencl is not there as a file\n");
        return 77;
    }
    quiet_before_activation = threads() == before && !mapped("libOpenCL") && !mapped("libpocl");
    if (direct_open(&d, 0)) {
        printf("SKIP: %s\n", tn_error_text());
        return 77;
    }
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, rule_1_asking_the_plugin_opens_no_loader_and_starts_no_thread);
    tcase_add_test(tcase, rule_19_an_absent_loader_is_unavailable_with_its_name);
    tcase_add_test(tcase, a_queue_that_cannot_be_made_is_an_error_and_leaves_none);
    tcase_add_test(tcase, devices_come_in_the_same_order_each_time_and_say_what_they_are);
    tcase_add_test(tcase, native_handles_are_published_for_packs);
    tcase_add_test(tcase, three_views_in_one_piece_of_memory);
    tcase_add_test(tcase, copies_take_offsets_on_both_sides);
    tcase_add_test(tcase, memory_that_is_not_there_is_an_error_with_sizes);
    tcase_add_test(tcase, pinned_memory_is_copied_in_the_order_of_the_stream);
    tcase_add_test(tcase, memory_is_filled_with_patterns_of_every_size);
    tcase_add_test(tcase, a_queue_of_the_program_is_used_and_stays);
    tcase_add_test(tcase, an_event_of_the_program_is_used_and_stays);
    tcase_add_test(tcase, events_order_queues);
    tcase_add_test(tcase, an_index_error_stays_with_its_queue);
    tcase_add_test(tcase, threads_with_queues_of_their_own_do_not_disturb_each_other);
    tcase_add_test(tcase, a_text_that_does_not_compile_gives_text_type_and_log);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    /* one process: drivers start slowly, and none survives fork */
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    direct_close(&d);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

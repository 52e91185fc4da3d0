/* SPDX-License-Identifier: MIT
 *
 * The host side of backend-cuda on the fake driver: which functions of the driver it calls, in
 * which order, and the errors that it returns when one of them fails. Each test has its own
 * process, and so its own driver. */
#include "tests/backend-cuda/driver.h"

#include <tenon/native.h>
#include <unistd.h>

struct direct d;
struct fake_cuda *fake;

void load(void)
{
    struct options *options;
    void *handle;

    ck_assert(direct_load(&d, PLUGIN));
    options = d.plugin->options_data;
    *options = (struct options){ DRIVER, "none", KERNELS };
    handle = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
    ck_assert_ptr_nonnull(handle);
    fake = dlsym(handle, "fake_cuda");
    ck_assert_ptr_nonnull(fake);
}

void open_one(void)
{
    load();
    ck_assert_msg(direct_open(&d, 0) == TN_OK, "%s", tn_error_text());
}

void open_with_blas(void)
{
    load();
    ((struct options *)d.plugin->options_data)->blas = DRIVER;
    ck_assert_msg(direct_open(&d, 0) == TN_OK, "%s", tn_error_text());
}

void close_clean(void)
{
    direct_close(&d);
    ck_assert_msg(fake->misuse == 0, "%s", fake->misuse_text);
    ck_assert_int_eq(fake->live, 0);
    ck_assert_int_eq(fake->live_pinned, 0);
    ck_assert_int_eq(fake->live_opened, 0);
    ck_assert_int_eq(fake->live_streams, 0);
    ck_assert_int_eq(fake->live_events, 0);
    ck_assert_int_eq(fake->live_modules, 0);
    ck_assert_int_eq(fake->live_graphs, 0);
    ck_assert_int_eq(fake->retained, 0);
}

void expect(tn_status got, tn_status want, const char *words)
{
    ck_assert_str_eq(tn_status_name(got), tn_status_name(want));
    ck_assert_msg(strstr(tn_error_last()->message, words) != NULL, "expected %s in: %s", words,
                  tn_error_last()->message);
    tn_error_clear();
}

struct array *ones(int64_t count)
{
    struct array *a = array_new(&d, TN_F32, 1, &count, PLAIN);

    for (int64_t i = 0; i < count; i++)
        array_set(a, i, 1);
    array_up(a);
    return a;
}

/* ---- before there is a device ---------------------------------------------------------------- */

static long mapped(const char *word)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    long found = 0;

    while (maps && fgets(line, sizeof line, maps))
        found += strstr(line, word) != NULL;
    if (maps)
        fclose(maps);
    return found;
}

START_TEST(rule_1_asking_the_plugin_opens_no_driver)
{
    ck_assert(direct_load(&d, PLUGIN));
    ck_assert_int_eq(mapped("libcuda"), 0);
    ck_assert_int_eq(mapped("fake-cuda"), 0);
    ck_assert_int_eq(mapped("cublas"), 0);
}
END_TEST

START_TEST(rule_19_an_absent_driver_is_unavailable_with_its_name)
{
    struct options *options;

    ck_assert(direct_load(&d, PLUGIN));
    options = d.plugin->options_data;
    *options = (struct options){ "/nowhere/libcuda.so.1", "none", KERNELS };
    expect(d.plugin->activate(d.plugin), TN_ERR_UNAVAILABLE, "/nowhere/libcuda.so.1");
    options->driver = "libm.so.6";
    expect(d.plugin->activate(d.plugin), TN_ERR_UNAVAILABLE, "libm.so.6: function cuInit: missing");
}
END_TEST

START_TEST(a_machine_without_a_gpu_is_unavailable)
{
    int32_t count = 0;

    load();
    fake->devices = 0;
    ck_assert_int_eq(d.plugin->activate(d.plugin), TN_OK);
    ck_assert_int_eq(fake->inits, 0);
    expect(d.backend->enumerate(d.backend, &count), TN_ERR_UNAVAILABLE, "no GPU");
}
END_TEST

START_TEST(an_old_driver_is_unavailable_with_both_versions)
{
    int32_t count = 0;

    load();
    fake->version = 11010;
    ck_assert_int_eq(d.plugin->activate(d.plugin), TN_OK);
    expect(d.backend->enumerate(d.backend, &count), TN_ERR_UNAVAILABLE,
           "too old, got CUDA 11.1; expected 11.2");
}
END_TEST

START_TEST(a_driver_that_does_not_start_is_unavailable_with_its_error)
{
    int32_t count = 0;

    load();
    fake->init_result = 3;
    ck_assert_int_eq(d.plugin->activate(d.plugin), TN_OK);
    expect(d.backend->enumerate(d.backend, &count), TN_ERR_UNAVAILABLE,
           "CUDA_ERROR_NOT_INITIALIZED (3)");
}
END_TEST

START_TEST(without_kernels_activation_says_so_and_what_would_help)
{
    load();
    ((struct options *)d.plugin->options_data)->kernels = "";
    if (d.plugin->activate(d.plugin) == TN_OK)
        return; /* built with nvcc: the plugin has kernels */
    expect(tn_error_last_code(), TN_ERR_UNAVAILABLE, "CUDA: built without kernels");
}
END_TEST

/* ---- devices --------------------------------------------------------------------------------- */

START_TEST(a_device_says_what_it_is)
{
    int32_t count = 0;

    open_one();
    ck_assert_int_eq(d.backend->enumerate(d.backend, &count), TN_OK);
    ck_assert_int_eq(count, 2);
    ck_assert_str_eq(d.info.name, "Fake GPU 0");
    ck_assert_str_eq(d.info.driver, "CUDA 13.0, compute capability 8.6");
    ck_assert_int_eq(d.info.memory_total, 1 << 30);
    ck_assert_int_eq(d.info.memory_free, 1 << 30);
    ck_assert_int_eq(d.info.compute_units, 4);
    ck_assert_int_eq(d.info.alignment, 256);
    ck_assert_uint_eq(d.info.dtypes & TN_MASK_FLOAT, TN_MASK_FLOAT);
    close_clean();
}
END_TEST

START_TEST(native_handles_are_published_for_packs)
{
    const tn_cuda_native *native;

    open_one();
    native = d.backend->native(d.device, "tenon.cuda.stream/1");
    ck_assert_ptr_nonnull(native);
    ck_assert_uint_eq(native->size, sizeof *native);
    ck_assert_ptr_nonnull(native->context);
    ck_assert_ptr_eq(native->stream(d.stream), d.backend->native_stream(d.device, d.stream));
    ck_assert_ptr_null(d.backend->native(d.device, "tenon.cuda.stream/2"));
    close_clean();
}
END_TEST

START_TEST(a_device_that_cannot_be_opened_leaves_nothing)
{
    int32_t count = 0;
    void *device = NULL;

    load();
    ck_assert_int_eq(d.plugin->activate(d.plugin), TN_OK);
    ck_assert_int_eq(d.backend->enumerate(d.backend, &count), TN_OK);
    fake->fail_function = "cuDevicePrimaryCtxRetain";
    fake->fail_after = 1;
    fake->fail_code = 2;
    expect(d.backend->open(d.backend, 0, &device), TN_ERR_MEMORY, "Fake GPU 0");
    expect(d.backend->open(d.backend, 7, &device), TN_ERR_INDEX,
           "index: out of range, got 7; expected 0 to 1");
    close_clean();
}
END_TEST

/* ---- arguments of CUDA's calls --------------------------------------------------------------- */

START_TEST(grids_and_names_are_those_of_the_kernel)
{
    const int64_t shape[] = { 2, 70, 30 }, wide[] = { 2, 30, 130 }, y_shape[] = { 2, 70, 130 };
    const tn_sum_options along = {
        sizeof along, { (const int64_t[]){ 2 }, 1 }, false, TN_DTYPE_AUTO
    };
    struct array *a = ones(1000), *y = ones(1000);
    struct array *m = array_new(&d, TN_F64, 3, shape, PLAIN),
                 *n = array_new(&d, TN_F64, 3, wide, PLAIN);
    struct array *p = array_new(&d, TN_F64, 3, y_shape, PLAIN),
                 *s = array_new(&d, TN_F64, 2, y_shape, PLAIN);
    struct array *const in[] = { a, a }, *const out[] = { y }, *const mats[] = { m, n },
                        *const product[] = { p };
    struct array *const big[] = { p }, *const sums[] = { s };

    CALL(&d, "add", NULL, in, out);
    ck_assert_str_eq(fake->kernel, "tn_add_f32");
    ck_assert_uint_eq(fake->grid[0], 4);
    ck_assert_uint_eq(fake->block[0], 256);
    CALL(&d, "bmm", NULL, mats, product);
    ck_assert_str_eq(fake->kernel, "tn_bmm_f64");
    ck_assert_uint_eq(fake->grid[0], 2 * 3);
    ck_assert_uint_eq(fake->grid[2], 2);
    ck_assert_uint_eq(fake->block[0], 16);
    ck_assert_uint_eq(fake->block[1], 16);
    CALL(&d, "sum", &along, big, sums);
    ck_assert_str_eq(fake->kernel, "tn_sum_f64");
    ck_assert_uint_eq(fake->grid[0], 140);
    ck_assert_int_eq(fake->launches, 3);
    array_drop(a);
    array_drop(y);
    array_drop(m);
    array_drop(n);
    array_drop(p);
    array_drop(s);
    close_clean();
}
END_TEST

static void setup_open(void)
{
    open_one();
}

START_TEST(work_is_not_done_before_somebody_waits)
{
    struct array *a = ones(10), *y = ones(10);
    struct array *const in[] = { a, a }, *const out[] = { y };

    CALL(&d, "add", NULL, in, out);
    ck_assert_int_gt(fake->queued, 0);
    ck_assert_int_eq(d.backend->stream_sync(d.device, d.stream), TN_OK);
    ck_assert_int_eq(fake->queued, 0);
    array_down(y);
    ck_assert_double_eq(array_get(y, 9), 2);
    array_drop(a);
    array_drop(y);
    close_clean();
}
END_TEST

START_TEST(copies_of_any_length_go_through_pinned_memory)
{
    static const size_t lengths[] = { 1,       4096,          (1 << 20) - 1,
                                      1 << 20, (1 << 20) + 1, 5 * (1 << 20) + 12345 };

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t bytes = lengths[i];
        unsigned char *from = malloc(bytes), *to = calloc(1, bytes);
        void *memory, *other;

        for (size_t j = 0; j < bytes; j++)
            from[j] = (unsigned char)(j * 131 + j / 251);
        ck_assert_int_eq(direct_alloc(d.backend, d.device, bytes + 7, &memory), TN_OK);
        ck_assert_int_eq(direct_alloc(d.backend, d.device, bytes + 11, &other), TN_OK);
        ck_assert_int_eq(direct_copy_in(d.backend, d.device, d.stream, memory, 7, from, bytes),
                         TN_OK);
        /* the call has read it before it returned */
        memset(from, 0, bytes);
        ck_assert_int_eq(direct_copy(d.backend, d.stream, (tn_copy_end){ d.device, other, 11 },
                                     (tn_copy_end){ d.device, memory, 7 }, bytes),
                         TN_OK);
        ck_assert_int_eq(direct_copy_out(d.backend, d.device, d.stream, to, other, 11, bytes),
                         TN_OK);
        for (size_t j = 0; j < bytes; j++)
            from[j] = (unsigned char)(j * 131 + j / 251);
        ck_assert_msg(memcmp(from, to, bytes) == 0, "%zu bytes", bytes);
        direct_free(d.backend, d.device, memory, bytes + 7);
        direct_free(d.backend, d.device, other, bytes + 11);
        free(from);
        free(to);
    }
    close_clean();
}
END_TEST

START_TEST(events_order_streams)
{
    struct array *a = ones(10), *y = ones(10);
    struct array *const in[] = { a, a }, *const out[] = { y }, *const again[] = { y, y },
                        *const back[] = { a };
    void *first = d.stream, *second, *event;
    bool done = true;

    ck_assert_int_eq(direct_stream_new(d.backend, d.device, &second), TN_OK);
    ck_assert_int_eq(direct_event_new(d.backend, d.device, 0, &event), TN_OK);
    ck_assert_int_eq(d.backend->event_query(d.device, event, &done), TN_OK);
    ck_assert(done);
    CALL(&d, "add", NULL, in, out); /* y = 2 on the first stream */
    ck_assert_int_eq(d.backend->event_record(d.device, event, first), TN_OK);
    ck_assert_int_eq(d.backend->event_wait(d.device, event, second), TN_OK);
    d.stream = second;
    CALL(&d, "add", NULL, again, back); /* a = 4 on the second */
    ck_assert_int_eq(d.backend->stream_sync(d.device, second), TN_OK);
    array_down(a);
    ck_assert_double_eq(array_get(a, 3), 4);
    ck_assert_int_eq(d.backend->event_sync(d.device, event), TN_OK);
    ck_assert_int_eq(d.backend->event_query(d.device, event, &done), TN_OK);
    ck_assert(done);
    CALL(&d, "add", NULL, in, out);
    ck_assert_int_eq(d.backend->event_record(d.device, event, second), TN_OK);
    ck_assert_int_eq(d.backend->event_query(d.device, event, &done), TN_OK);
    ck_assert(!done);
    d.backend->event_drop(d.device, event);
    d.backend->stream_drop(d.device, second);
    d.stream = first;
    array_drop(a);
    array_drop(y);
    close_clean();
}
END_TEST

START_TEST(pinned_memory_is_copied_in_the_order_of_the_stream)
{
    copies_with_pinned_memory(&d);
    close_clean();
}
END_TEST

START_TEST(memory_is_filled_with_patterns_of_every_size)
{
    fills_with_patterns(&d);
    close_clean();
}
END_TEST

START_TEST(a_stream_of_the_program_is_used_and_stays)
{
    uses_a_stream_of_the_program(&d);
    close_clean();
}
END_TEST

START_TEST(an_event_of_the_program_is_used_and_stays)
{
    uses_an_event_of_the_program(&d);
    close_clean();
}
END_TEST

START_TEST(a_stream_has_the_priority_that_is_asked_for)
{
    tn_stream_args args = { TN_HEAD(tn_stream_args), .priority = -5 };
    void *stream;

    ck_assert_int_eq(d.info.priority_highest, -5);
    ck_assert_int_eq(d.info.priority_lowest, 0);
    ck_assert_int_eq(d.backend->stream_new(d.device, &args, &stream), TN_OK);
    ck_assert_int_eq(fake->priority, -5);
    d.backend->stream_drop(d.device, stream);
    close_clean();
}
END_TEST

START_TEST(events_with_timing_have_a_time)
{
    struct array *a = ones(10);
    void *from, *to;
    double time = -1;

    ck_assert_int_eq(direct_event_new(d.backend, d.device, TN_EVENT_TIMING, &from), TN_OK);
    ck_assert_int_eq(direct_event_new(d.backend, d.device, TN_EVENT_TIMING, &to), TN_OK);
    ck_assert_int_eq(d.backend->event_record(d.device, from, d.stream), TN_OK);
    array_up(a);
    array_up(a);
    ck_assert_int_eq(d.backend->event_record(d.device, to, d.stream), TN_OK);
    ck_assert_int_eq(d.backend->event_sync(d.device, to), TN_OK);
    ck_assert_int_eq(d.backend->event_elapsed(d.device, from, to, &time), TN_OK);
    ck_assert_double_eq(time, 0.5);
    d.backend->event_drop(d.device, from);
    d.backend->event_drop(d.device, to);
    array_drop(a);
    close_clean();
}
END_TEST

START_TEST(a_device_tells_whom_it_reaches)
{
    void *other;
    bool direct = false;

    ck_assert_int_eq(d.backend->open(d.backend, 1, &other), TN_OK);
    ck_assert_int_eq(d.backend->peer(d.device, other, &direct), TN_OK);
    ck_assert(direct);
    fake->no_peers = 1;
    ck_assert_int_eq(d.backend->peer(d.device, other, &direct), TN_OK);
    ck_assert(!direct);
    d.backend->close(other);
    close_clean();
}
END_TEST

static const char *text_of(const tn_pack *pack, const char *name)
{
    int64_t at = tn_pack_find(pack, name);

    ck_assert_int_ge(at, 0);
    return tn_pack_at(pack, at).as.s;
}

START_TEST(a_device_has_properties_of_its_hardware)
{
    tn_pack *pack = tn_pack_new();

    ck_assert_int_eq(d.backend->properties(d.device, pack), TN_OK);
    ck_assert_str_eq(text_of(pack, "pci"), "0000:F0:00.0");
    ck_assert_str_eq(text_of(pack, "uuid"), "000102030405060708090a0b0c0d0e0f");
    ck_assert_str_eq(text_of(pack, "compute_capability"), "8.6");
    ck_assert_int_eq(tn_pack_at(pack, tn_pack_find(pack, "numa_node")).as.i, -1);
    ck_assert_int_eq(tn_pack_at(pack, tn_pack_find(pack, "clock_mhz")).as.i, 1980);
    tn_pack_drop(pack);
    close_clean();
}
END_TEST

/* Twice from the first device to the second. */
static void copy_twice_to_another_device(void)
{
    void *other, *stream, *memory, *there;
    float from[4] = { 1, 2, 3, 4 }, to[4] = { 0 };

    ck_assert_int_eq(d.backend->open(d.backend, 1, &other), TN_OK);
    ck_assert_int_eq(direct_stream_new(d.backend, other, &stream), TN_OK);
    ck_assert_int_eq(direct_alloc(d.backend, d.device, sizeof from, &memory), TN_OK);
    ck_assert_int_eq(direct_alloc(d.backend, other, sizeof from, &there), TN_OK);
    ck_assert_int_eq(direct_copy_in(d.backend, d.device, d.stream, memory, 0, from, sizeof from),
                     TN_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(direct_copy(d.backend, d.stream, (tn_copy_end){ other, there, 4 },
                                     (tn_copy_end){ d.device, memory, 0 }, 12),
                         TN_OK);
    ck_assert_int_eq(d.backend->stream_sync(d.device, d.stream), TN_OK);
    ck_assert_int_eq(direct_copy_out(d.backend, other, stream, to, there, 4, 12), TN_OK);
    ck_assert_float_eq(to[2], 3);
    direct_free(d.backend, d.device, memory, sizeof from);
    direct_free(d.backend, other, there, sizeof from);
    d.backend->stream_drop(other, stream);
    d.backend->close(other);
    close_clean();
}

START_TEST(memory_goes_straight_to_another_device)
{
    copy_twice_to_another_device();
    ck_assert_int_eq(fake->peers[0][1], 1);
    ck_assert_int_eq(fake->peers[1][0], 0); /* nothing was copied that way */
    ck_assert_int_eq(fake->direct, 2);
}
END_TEST

START_TEST(peer_access_that_somebody_enabled_before_is_used)
{
    fake->peers[0][1] = 1;
    copy_twice_to_another_device();
    ck_assert_int_eq(fake->direct, 2);
    ck_assert_ptr_null(strstr(tn_error_last()->message, "PEER"));
}
END_TEST

START_TEST(without_peer_access_the_driver_copies_through_the_host)
{
    fake->no_peers = 1;
    copy_twice_to_another_device();
    ck_assert_int_eq(fake->direct, 0);
    ck_assert_int_eq(fake->staged, 2);
}
END_TEST

START_TEST(peer_access_that_cannot_be_enabled_leaves_the_copy)
{
    fake->fail_function = "cuCtxEnablePeerAccess";
    fake->fail_after = 1;
    fake->fail_code = 711; /* too many peers */
    copy_twice_to_another_device();
    ck_assert_int_eq(fake->staged, 2);
}
END_TEST

START_TEST(an_index_error_stays_with_its_stream)
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
    close_clean();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("backend-cuda");
    TCase *before = tcase_create("before there is a device"), *opened = tcase_create("on a device");
    SRunner *runner;
    int failed;

    if (access(PLUGIN, R_OK) || access(DRIVER, R_OK)) {
        printf("SKIP: backend-cuda or the fake driver is not there as a file\n");
        return 77;
    }
    tcase_add_test(before, rule_1_asking_the_plugin_opens_no_driver);
    tcase_add_test(before, rule_19_an_absent_driver_is_unavailable_with_its_name);
    tcase_add_test(before, a_machine_without_a_gpu_is_unavailable);
    tcase_add_test(before, an_old_driver_is_unavailable_with_both_versions);
    tcase_add_test(before, a_driver_that_does_not_start_is_unavailable_with_its_error);
    tcase_add_test(before, without_kernels_activation_says_so_and_what_would_help);
    tcase_add_test(before, a_device_says_what_it_is);
    tcase_add_test(before, native_handles_are_published_for_packs);
    tcase_add_test(before, a_device_that_cannot_be_opened_leaves_nothing);
    add_products(before);
    add_memory(before);
    tcase_add_checked_fixture(opened, setup_open, NULL);
    tcase_add_test(opened, grids_and_names_are_those_of_the_kernel);
    tcase_add_test(opened, work_is_not_done_before_somebody_waits);
    tcase_add_test(opened, copies_of_any_length_go_through_pinned_memory);
    tcase_add_test(opened, events_order_streams);
    tcase_add_test(opened, pinned_memory_is_copied_in_the_order_of_the_stream);
    tcase_add_test(opened, memory_is_filled_with_patterns_of_every_size);
    tcase_add_test(opened, a_stream_of_the_program_is_used_and_stays);
    tcase_add_test(opened, an_event_of_the_program_is_used_and_stays);
    tcase_add_test(opened, a_stream_has_the_priority_that_is_asked_for);
    tcase_add_test(opened, events_with_timing_have_a_time);
    tcase_add_test(opened, a_device_tells_whom_it_reaches);
    tcase_add_test(opened, a_device_has_properties_of_its_hardware);
    tcase_add_test(opened, memory_goes_straight_to_another_device);
    tcase_add_test(opened, peer_access_that_somebody_enabled_before_is_used);
    tcase_add_test(opened, without_peer_access_the_driver_copies_through_the_host);
    tcase_add_test(opened, peer_access_that_cannot_be_enabled_leaves_the_copy);
    tcase_add_test(opened, an_index_error_stays_with_its_stream);
    add_failures(opened);
    add_captures(opened);
    suite_add_tcase(suite, before);
    suite_add_tcase(suite, opened);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

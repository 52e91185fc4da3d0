/* SPDX-License-Identifier: MIT
 *
 * The host side of backend-cuda on the fake driver: what is asked of CUDA, in which order, and what every failure becomes. Each test has
 * a process, and so a driver, of its own. */
#include "tests/fake-cuda/fake.h"
#include "tests/gpu/direct.h"

#include <sys/wait.h>
#include <tenon/native.h>
#include <unistd.h>

#define PLUGIN TN_TEST_BUILDDIR "/plugins/.libs/backend-cuda.so"
#define DRIVER TN_TEST_BUILDDIR "/tests/.libs/fake-cuda.so"
#define KERNELS TN_TEST_SRCDIR "/tests/fake-cuda/kernels"

struct options {
    const char *driver, *blas, *kernels;
};

static struct direct d;
static struct fake_cuda *fake;

/* The plugin, not yet activated; the fake driver mapped beside it so that it can be told things. */
static void load(void)
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

static void open_one(void)
{
    load();
    ck_assert_msg(direct_open(&d, 0) == TN_OK, "%s", tn_error_text());
}

static void open_with_blas(void)
{
    load();
    ((struct options *)d.plugin->options_data)->blas = DRIVER;
    ck_assert_msg(direct_open(&d, 0) == TN_OK, "%s", tn_error_text());
}

/* After everything was dropped: nothing is left with the driver, and nothing was done that a real one would punish. */
static void close_clean(void)
{
    direct_close(&d);
    ck_assert_msg(fake->misuse == 0, "%s", fake->misuse_text);
    ck_assert_int_eq(fake->live, 0);
    ck_assert_int_eq(fake->live_pinned, 0);
    ck_assert_int_eq(fake->live_streams, 0);
    ck_assert_int_eq(fake->live_events, 0);
    ck_assert_int_eq(fake->live_modules, 0);
    ck_assert_int_eq(fake->retained, 0);
}

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

/* ---- before there is a device ---------------------------------------------------------------------------- */

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
    expect(d.plugin->activate(), TN_ERR_UNAVAILABLE, "/nowhere/libcuda.so.1");
    options->driver = "libm.so.6";
    expect(d.plugin->activate(), TN_ERR_UNAVAILABLE, "libm.so.6 lacks cuInit");
}
END_TEST

START_TEST(a_machine_without_a_gpu_is_unavailable)
{
    int32_t count = 0;

    load();
    fake->devices = 0;
    ck_assert_int_eq(d.plugin->activate(), TN_OK);
    ck_assert_int_eq(fake->inits, 0);
    expect(d.backend->enumerate(&count), TN_ERR_UNAVAILABLE, "no GPU");
}
END_TEST

START_TEST(an_old_driver_is_unavailable_with_both_versions)
{
    int32_t count = 0;

    load();
    fake->version = 11010;
    ck_assert_int_eq(d.plugin->activate(), TN_OK);
    expect(d.backend->enumerate(&count), TN_ERR_UNAVAILABLE, "CUDA 11.1; this plugin needs 11.2");
}
END_TEST

START_TEST(a_driver_that_does_not_start_is_unavailable_with_its_error)
{
    int32_t count = 0;

    load();
    fake->init_result = 3;
    ck_assert_int_eq(d.plugin->activate(), TN_OK);
    expect(d.backend->enumerate(&count), TN_ERR_UNAVAILABLE, "CUDA_ERROR_NOT_INITIALIZED (3)");
}
END_TEST

START_TEST(without_kernels_activation_says_so_and_what_would_help)
{
    load();
    ((struct options *)d.plugin->options_data)->kernels = "";
    if (d.plugin->activate() == TN_OK)
        return; /* nvcc was there: the kernels are inside */
    expect(tn_error_last()->code, TN_ERR_UNAVAILABLE, "built without CUDA kernels");
}
END_TEST

/* ---- devices --------------------------------------------------------------------------------------------------- */

START_TEST(a_device_says_what_it_is)
{
    int32_t count = 0;

    open_one();
    ck_assert_int_eq(d.backend->enumerate(&count), TN_OK);
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
    ck_assert_int_eq(d.plugin->activate(), TN_OK);
    ck_assert_int_eq(d.backend->enumerate(&count), TN_OK);
    fake->fail_function = "cuDevicePrimaryCtxRetain";
    fake->fail_after = 1;
    fake->fail_code = 2;
    expect(d.backend->open(0, &device), TN_ERR_MEMORY, "Fake GPU 0");
    expect(d.backend->open(7, &device), TN_ERR_INDEX, "device 7 is asked for, there are 2");
    close_clean();
}
END_TEST

/* ---- what is handed to CUDA --------------------------------------------------------------------------------------- */

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
        ck_assert_int_eq(d.backend->alloc(d.device, bytes + 7, &memory), TN_OK);
        ck_assert_int_eq(d.backend->alloc(d.device, bytes + 11, &other), TN_OK);
        ck_assert_int_eq(d.backend->copy_in(d.device, d.stream, memory, 7, from, bytes), TN_OK);
        /* it was read when the call returned */
        memset(from, 0, bytes);
        ck_assert_int_eq(d.backend->copy(d.device, d.stream, other, 11, memory, 7, bytes), TN_OK);
        ck_assert_int_eq(d.backend->copy_out(d.device, d.stream, to, other, 11, bytes), TN_OK);
        for (size_t j = 0; j < bytes; j++)
            from[j] = (unsigned char)(j * 131 + j / 251);
        ck_assert_msg(memcmp(from, to, bytes) == 0, "%zu bytes", bytes);
        d.backend->free(d.device, memory, bytes + 7);
        d.backend->free(d.device, other, bytes + 11);
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

    ck_assert_int_eq(d.backend->stream_new(d.device, &second), TN_OK);
    ck_assert_int_eq(d.backend->event_new(d.device, &event), TN_OK);
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

START_TEST(memory_goes_straight_to_another_device)
{
    void *other, *stream, *memory, *there;
    float from[4] = { 1, 2, 3, 4 }, to[4] = { 0 };

    ck_assert_int_eq(d.backend->open(1, &other), TN_OK);
    ck_assert_int_eq(d.backend->stream_new(other, &stream), TN_OK);
    ck_assert_int_eq(d.backend->alloc(d.device, sizeof from, &memory), TN_OK);
    ck_assert_int_eq(d.backend->alloc(other, sizeof from, &there), TN_OK);
    ck_assert_int_eq(d.backend->copy_in(d.device, d.stream, memory, 0, from, sizeof from), TN_OK);
    ck_assert_int_eq(d.backend->copy_peer(other, there, 4, d.device, d.stream, memory, 0, 12),
                     TN_OK);
    ck_assert_int_eq(d.backend->stream_sync(d.device, d.stream), TN_OK);
    ck_assert_int_eq(d.backend->copy_out(other, stream, to, there, 4, 12), TN_OK);
    ck_assert_float_eq(to[2], 3);
    d.backend->free(d.device, memory, sizeof from);
    d.backend->free(other, there, sizeof from);
    d.backend->stream_drop(other, stream);
    d.backend->close(other);
    close_clean();
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
    ck_assert_int_eq(d.backend->stream_new(d.device, &second), TN_OK);
    CALL(&d, "nll_loss", &options, in, out);
    ck_assert_int_eq(d.backend->stream_sync(d.device, second), TN_OK);
    expect(d.backend->stream_sync(d.device, d.stream), TN_ERR_INDEX, "target[1] is -7");
    ck_assert_int_eq(d.backend->stream_sync(d.device, d.stream), TN_OK);
    d.backend->stream_drop(d.device, second);
    array_drop(x);
    array_drop(t);
    array_drop(y);
    array_drop(total);
    close_clean();
}
END_TEST

/* ---- cuBLASLt ------------------------------------------------------------------------------------------------------ */

static void product(tn_dtype dtype, enum layout la, enum layout lb, int64_t batch)
{
    const int64_t sa[] = { batch, 4, 5 }, sb[] = { batch, 5, 6 }, sy[] = { batch, 4, 6 };
    struct array *a = array_new(&d, dtype, 3, sa, la), *b = array_new(&d, dtype, 3, sb, lb);
    struct array *y = array_new(&d, dtype, 3, sy, PLAIN);
    struct array *const in[] = { a, b }, *const out[] = { y };

    for (int64_t i = 0; i < a->count; i++)
        array_set(a, i, (double)(i % 7) - 3);
    for (int64_t i = 0; i < b->count; i++)
        array_set(b, i, (double)(i % 5) - 2);
    array_up(a);
    array_up(b);
    CALL(&d, "bmm", NULL, in, out);
    array_down(y);
    for (int64_t i = 0; i < y->count; i++) {
        double want = 0;

        for (int64_t k = 0; k < 5; k++)
            want += array_get(a, i / 24 * 20 + i / 6 % 4 * 5 + k) *
                    array_get(b, i / 24 * 30 + k * 6 + i % 6);
        ck_assert_double_eq(array_get(y, i), want);
    }
    array_drop(a);
    array_drop(b);
    array_drop(y);
}

START_TEST(products_are_asked_of_cublaslt_row_by_row)
{
    open_with_blas();
    ck_assert_ptr_nonnull(strstr(d.info.driver, "cuBLASLt"));
    product(TN_F32, PLAIN, PLAIN, 3);
    ck_assert_int_eq(fake->products, 1);
    ck_assert_int_eq(fake->product_batch, 3);
    ck_assert_int_eq(fake->product_compute, 68);
    ck_assert_int_eq(fake->product_transposed[0] | fake->product_transposed[1], 0);
    product(TN_F64, PLAIN, PLAIN, 1);
    ck_assert_int_eq(fake->product_compute, 70);
    ck_assert_int_eq(fake->heuristics, 2);
    close_clean();
}
END_TEST

START_TEST(the_choice_of_an_algorithm_is_kept)
{
    open_with_blas();
    product(TN_F32, PLAIN, PLAIN, 2);
    product(TN_F32, PLAIN, PLAIN, 2);
    product(TN_F32, PLAIN, PLAIN, 2);
    ck_assert_int_eq(fake->products, 3);
    ck_assert_int_eq(fake->heuristics, 1);
    close_clean();
}
END_TEST

START_TEST(transposed_operands_are_said_to_be)
{
    /* [1, 4, 5] with the strides of its transpose */
    const int64_t sa[] = { 1, 4, 5 }, sb[] = { 1, 5, 6 }, sy[] = { 1, 4, 6 };
    struct array *a, *b, *y;

    open_with_blas();
    a = array_new(&d, TN_F32, 3, sa, TURNED);
    b = array_new(&d, TN_F32, 3, sb, PLAIN);
    y = array_new(&d, TN_F32, 3, sy, PLAIN);
    {
        struct array *const in[] = { a, b }, *const out[] = { y };

        array_up(a);
        array_up(b);
        CALL(&d, "bmm", NULL, in, out);
    }
    ck_assert_int_eq(fake->products, 1);
    ck_assert_int_eq(fake->product_transposed[0], 0); /* b: ours comes first there */
    ck_assert_int_eq(fake->product_transposed[1], 1);
    array_drop(a);
    array_drop(b);
    array_drop(y);
    close_clean();
}
END_TEST

START_TEST(what_cublaslt_cannot_do_our_kernel_does)
{
    open_with_blas();
    product(TN_F32, GAPS, PLAIN, 2); /* no unit stride */
    ck_assert_int_eq(fake->products, 0);
    ck_assert_str_eq(fake->kernel, "tn_bmm_f32");
    product(TN_I32, PLAIN, PLAIN, 2); /* integers */
    ck_assert_str_eq(fake->kernel, "tn_bmm_i32");
    product(TN_BF16, PLAIN, PLAIN, 2); /* the fake has no algorithm for it */
    ck_assert_int_eq(fake->heuristics, 1);
    ck_assert_str_eq(fake->kernel, "tn_bmm_bf16");
    ck_assert_int_eq(fake->products, 0);
    close_clean();
}
END_TEST

START_TEST(tf32_is_used_only_when_fast_arithmetic_is_asked_for)
{
    setenv("TENON_MATH", "fast", 1);
    open_with_blas();
    product(TN_F32, PLAIN, PLAIN, 1);
    ck_assert_int_eq(fake->product_compute, 77);
    close_clean();
}
END_TEST

START_TEST(an_absent_cublaslt_is_said_and_done_without)
{
    load();
    ((struct options *)d.plugin->options_data)->blas = "/nowhere/libcublasLt.so";
    ck_assert_int_eq(direct_open(&d, 0), TN_OK);
    product(TN_F32, PLAIN, PLAIN, 1);
    ck_assert_str_eq(fake->kernel, "tn_bmm_f32");
    close_clean();
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------------------------------- */

START_TEST(out_of_memory_is_an_error_like_any_other)
{
    void *memory = NULL;

    expect(d.backend->alloc(d.device, (size_t)3 << 30, &memory), TN_ERR_MEMORY,
           "taking 3221225472 bytes of memory on Fake GPU 0");
    ck_assert_ptr_null(memory);
    ck_assert_int_eq(d.backend->alloc(d.device, 1 << 20, &memory), TN_OK);
    d.backend->free(d.device, memory, 1 << 20);
    close_clean();
}
END_TEST

START_TEST(a_start_that_fails_names_operator_and_kernel_and_the_device_goes_on)
{
    struct array *a = ones(10), *y = ones(10);
    struct array *const in[] = { a, a }, *const out[] = { y };

    fake->fail_function = "cuLaunchKernel";
    fake->fail_after = 1;
    fake->fail_code = 701;
    expect(call_into(&d, "add", NULL, in, 2, out, 1), TN_ERR_DEVICE,
           "add: starting tn_add_f32 on Fake GPU 0");
    CALL(&d, "add", NULL, in, out);
    array_down(y);
    ck_assert_double_eq(array_get(y, 0), 2);
    array_drop(a);
    array_drop(y);
    close_clean();
}
END_TEST

START_TEST(a_lost_device_stays_lost_and_can_be_closed)
{
    struct array *a = ones(10), *y = ones(10);
    struct array *const in[] = { a, a }, *const out[] = { y };
    void *memory, *event;
    bool done;

    ck_assert_int_eq(d.backend->event_new(d.device, &event), TN_OK);
    fake->fail_function = "cuStreamSynchronize";
    fake->fail_after = 1;
    fake->fail_code = 700;
    expect(d.backend->stream_sync(d.device, d.stream), TN_ERR_LOST,
           "CUDA_ERROR_ILLEGAL_ADDRESS (700); the device is lost");
    expect(call_into(&d, "add", NULL, in, 2, out, 1), TN_ERR_LOST,
           "is lost since CUDA_ERROR_ILLEGAL_ADDRESS");
    expect(d.backend->alloc(d.device, 10, &memory), TN_ERR_LOST, "lost");
    expect(d.backend->copy_in(d.device, d.stream, a->memory, 0, "x", 1), TN_ERR_LOST, "lost");
    expect(d.backend->event_query(d.device, event, &done), TN_ERR_LOST, "lost");
    d.backend->event_drop(d.device, event);
    array_drop(a);
    array_drop(y);
    direct_close(&d);
    ck_assert_int_eq(fake->retained, 0);
}
END_TEST

START_TEST(memory_out_of_bounds_loses_the_device)
{
    const int64_t many[] = { 100 };
    struct array *a = ones(10), *y = array_new(&d, TN_F32, 1, many, PLAIN);
    float x = 1;

    ck_assert_int_eq(d.backend->copy(d.device, d.stream, y->memory, 0, a->memory, 0, 400), TN_OK);
    expect(d.backend->copy_out(d.device, d.stream, &x, a->memory, 0, sizeof x), TN_ERR_LOST,
           "CUDA_ERROR_ILLEGAL_ADDRESS");
    expect(d.backend->stream_sync(d.device, d.stream), TN_ERR_LOST, "is lost since");
    array_drop(a);
    array_drop(y);
    direct_close(&d);
}
END_TEST

START_TEST(kernels_that_do_not_fit_the_gpu_say_so)
{
    struct array *a = ones(10);
    struct array *const in[] = { a, a }, *const out[] = { a };

    fake->module_result = 209;
    expect(call_into(&d, "add", NULL, in, 2, out, 1), TN_ERR_UNAVAILABLE,
           "compute capability 8.6, driver for CUDA 13.0");
    fake->module_result = 0;
    CALL(&d, "add", NULL, in, out);
    array_drop(a);
    close_clean();
}
END_TEST

START_TEST(kernels_that_cannot_be_read_name_the_file)
{
    struct array *a = ones(10);
    struct array *const in[] = { a, a }, *const out[] = { a };

    ((struct options *)d.plugin->options_data)->kernels = "/nowhere";
    expect(call_into(&d, "add", NULL, in, 2, out, 1), TN_ERR_IO, "/nowhere/elementwise.fatbin");
    array_drop(a);
    close_clean();
}
END_TEST

/* Every driver function that a step uses fails once, at each of its calls: an error each time, never a crash, and nothing left behind. */
START_TEST(every_call_of_the_driver_may_fail)
{
    static const char *const functions[] = {
        "cuStreamCreate",    "cuMemHostAlloc",      "cuMemHostGetDevicePointer",
        "cuEventCreate",     "cuMemAlloc",          "cuMemcpyHtoDAsync",
        "cuEventRecord",     "cuModuleLoadData",    "cuModuleGetFunction",
        "cuLaunchKernel",    "cuMemcpyDtoHAsync",   "cuEventSynchronize",
        "cuCtxPushCurrent",  "cuStreamSynchronize", "cuStreamWaitEvent",
        "cuMemcpyDtoDAsync", "cuEventQuery",        "cuMemGetInfo"
    };
    const tn_status wanted = TN_ERR_MEMORY;
    int failed = 0;

    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        for (int nth = 1; nth < 8; nth++) {
            void *stream = NULL, *memory = NULL, *event = NULL;
            char bytes[64] = { 0 };
            bool done;
            tn_status status;

            fake->fail_function = functions[f];
            fake->fail_after = nth;
            fake->fail_code = 2;
            status = d.backend->stream_new(d.device, &stream);
            if (!status)
                status = d.backend->event_new(d.device, &event);
            if (!status)
                status = d.backend->alloc(d.device, sizeof bytes, &memory);
            if (!status)
                status = d.backend->copy_in(d.device, stream, memory, 0, bytes, sizeof bytes);
            if (!status)
                status = d.backend->copy(d.device, stream, memory, 0, memory, 32, 16);
            if (!status)
                status = d.backend->event_record(d.device, event, stream);
            if (!status)
                status = d.backend->event_wait(d.device, event, d.stream);
            if (!status)
                status = d.backend->event_query(d.device, event, &done);
            if (!status)
                status = d.backend->copy_out(d.device, stream, bytes, memory, 0, sizeof bytes);
            if (!status)
                status = d.backend->stream_sync(d.device, stream);
            if (!status)
                status = d.backend->info(d.device, &d.info);
            ck_assert_msg(status == TN_OK || status == wanted, "%s, call %d: %s", functions[f], nth,
                          tn_status_name(status));
            ck_assert((status == TN_OK) == !tn_failed());
            failed += status != TN_OK;
            tn_error_clear();
            fake->fail_after = 0;
            d.backend->event_drop(d.device, event);
            d.backend->free(d.device, memory, sizeof bytes);
            d.backend->stream_drop(d.device, stream);
        }
    ck_assert_int_gt(failed, 15);
    close_clean();
}
END_TEST

START_TEST(after_fork_the_child_gets_an_error_and_the_parent_goes_on)
{
    struct array *a = ones(10);
    int state;
    pid_t child = fork();

    if (child == 0) {
        long calls = fake->calls;
        void *memory = NULL;
        bool fine = d.backend->alloc(d.device, 10, &memory) == TN_ERR_RUNTIME &&
                    strstr(tn_error_text(), "before fork");

        d.backend->free(d.device, a->memory, a->bytes);
        d.backend->stream_drop(d.device, d.stream);
        d.backend->close(d.device);
        _exit(fine && fake->calls == calls ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    array_down(a);
    array_drop(a);
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
    tcase_add_test(before, products_are_asked_of_cublaslt_row_by_row);
    tcase_add_test(before, the_choice_of_an_algorithm_is_kept);
    tcase_add_test(before, transposed_operands_are_said_to_be);
    tcase_add_test(before, what_cublaslt_cannot_do_our_kernel_does);
    tcase_add_test(before, tf32_is_used_only_when_fast_arithmetic_is_asked_for);
    tcase_add_test(before, an_absent_cublaslt_is_said_and_done_without);
    tcase_add_checked_fixture(opened, setup_open, NULL);
    tcase_add_test(opened, grids_and_names_are_those_of_the_kernel);
    tcase_add_test(opened, work_is_not_done_before_somebody_waits);
    tcase_add_test(opened, copies_of_any_length_go_through_pinned_memory);
    tcase_add_test(opened, events_order_streams);
    tcase_add_test(opened, memory_goes_straight_to_another_device);
    tcase_add_test(opened, an_index_error_stays_with_its_stream);
    tcase_add_test(opened, out_of_memory_is_an_error_like_any_other);
    tcase_add_test(opened, a_start_that_fails_names_operator_and_kernel_and_the_device_goes_on);
    tcase_add_test(opened, a_lost_device_stays_lost_and_can_be_closed);
    tcase_add_test(opened, memory_out_of_bounds_loses_the_device);
    tcase_add_test(opened, kernels_that_do_not_fit_the_gpu_say_so);
    tcase_add_test(opened, kernels_that_cannot_be_read_name_the_file);
    tcase_add_test(opened, every_call_of_the_driver_may_fail);
    tcase_add_test(opened, after_fork_the_child_gets_an_error_and_the_parent_goes_on);
    suite_add_tcase(suite, before);
    suite_add_tcase(suite, opened);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

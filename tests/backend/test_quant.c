/* SPDX-License-Identifier: MIT
 *
 * Operators on integers with scales: on the CPU, the kernels of every instruction set have the bits
 * of the decomposition for random shapes, granularities, zero points and special values, with 1 to
 * 4 threads and with kept weights. CASES=20000 in the environment tries more. */
#include "tests/backend/backend.h"

#include <stdlib.h>

enum { CASES = 250 /* of each operator and instruction set */, INPUTS = 12 };

static uint64_t state;

/* A number from 0 to bound - 1. */
static int64_t below(int64_t bound)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % (uint64_t)bound);
}

static bool chance(int64_t in)
{
    return below(in) == 0;
}

static int64_t cases(void)
{
    const char *text = getenv("CASES");

    return text != NULL ? atoll(text) : CASES;
}

/* ---- random inputs --------------------------------------------------------------------------- */

static tn_dtype a_byte(void)
{
    return chance(2) ? TN_I8 : TN_U8;
}

/* Sometimes only the ends of the range, where sums are largest. */
static tn_tensor *integers(tn_dtype dtype, tn_ints shape)
{
    int64_t count = count_of(shape);
    uint8_t *bytes = malloc((size_t)count + 1);
    bool ends = chance(4);
    tn_tensor *x;

    for (int64_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(ends ? (dtype == TN_U8 ? 255 : 128 - below(2)) : below(256));
    x = tn_tensor_from(bytes, dtype, shape);
    free(bytes);
    there(x);
    return x;
}

/* Numbers of about this size; now and then special ones. */
static tn_tensor *floats(tn_ints shape, double size)
{
    static const float special[] = { 0, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, 3e38f, -3e38f };
    int64_t count = count_of(shape);
    float *all = malloc(((size_t)count + 1) * sizeof *all);
    int64_t rare = chance(8) ? 20 : 0;
    tn_tensor *x;

    for (int64_t i = 0; i < count; i++)
        all[i] = rare > 0 && chance(rare)
                     ? special[below(8)]
                     : (float)((double)(below(2000001) - 1000000) * 1e-6 * size);
    x = tn_tensor_from(all, TN_F32, shape);
    free(all);
    there(x);
    return x;
}

static tn_tensor *scales(tn_ints shape)
{
    return tn_add_scalar(tn_abs(floats(shape, 0.1)), chance(50) ? 0.0 : 1e-3);
}

static tn_tensor *maybe(int64_t in, tn_tensor *x)
{
    return chance(in) ? x : TN_NONE;
}

static tn_ints one_or(bool one, tn_ints shape)
{
    return one ? (tn_ints){ NULL, 0 } : shape;
}

/* ---- the comparison -------------------------------------------------------------------------- */

static void same_bits(const char *op, int64_t which, tn_tensor *got, tn_tensor *expected)
{
    const size_t size = (size_t)tn_tensor_numel(expected) *
                        (size_t)tn_dtype_size(tn_tensor_dtype(expected));
    uint8_t *a = malloc(size + 1), *b = malloc(size + 1);

    ck_assert_int_eq(tn_tensor_dtype(got), tn_tensor_dtype(expected));
    ok(tn_tensor_copy_out(tn_clone(got), a, size));
    ok(tn_tensor_copy_out(tn_clone(expected), b, size));
    for (size_t i = 0; i + 4 <= size && tn_tensor_dtype(got) == TN_F32; i += 4) {
        float x, y;

        memcpy(&x, a + i, 4);
        memcpy(&y, b + i, 4);
        if (isnan(x) && isnan(y)) /* the sign of NaN is not defined */
            memcpy(a + i, b + i, 4);
    }
    for (size_t i = 0; i < size; i++)
        ck_assert_msg(a[i] == b[i], "%s, case %lld: byte %zu of %zu: %d, expected %d", op,
                      (long long)which, i, size, a[i], b[i]);
    free(a);
    free(b);
}

/* Calls the operator twice, so that a packed weight is kept, and compares with the decomposition.
 */
static void compare(const char *name, int64_t which, tn_tensor *const *in, int64_t n_in,
                    const void *options)
{
    const tn_op *op = tn_op_find(name, 0);
    const tn_op_def *def = tn_op_definition(op);
    tn_tensor *expected[3] = { NULL }, *out[3] = { NULL };
    tn_tensor *all[INPUTS];
    tn_decompose call = { TN_HEAD(tn_decompose), .op = def,       .options = options,     .in = all,
                          .n_in = def->n_inputs, .out = expected, .n_out = def->n_outputs };

    for (int i = 0; i < INPUTS; i++)
        all[i] = i < n_in ? in[i] : TN_NONE;
    ck_assert_msg(def->decompose(&call) == TN_OK, "%s: %s", name, tn_error_text());
    ok(tn_set_num_threads((int32_t)(1 + which % 4)));
    for (int turn = 0; turn < 3; turn++) {
        ck_assert_msg(tn_op_call(op, in, n_in, options, out, def->n_outputs) == TN_OK, "%s: %s",
                      name, tn_error_text());
        for (int32_t i = 0; i < def->n_outputs; i++)
            same_bits(name, which, out[i], expected[i]);
        checks_made++;
    }
}

static void with_kernel(const char *name, tn_dtype dtype)
{
    char route[256];

    tn_op_route(tn_op_find(name, 0), "cpu", dtype, route, sizeof route);
    ck_assert_msg(strncmp(route, "kernel", 6) == 0, "%s: %s", name, route);
}

/* ---- the operators --------------------------------------------------------------------------- */

/* Bounds, dtype and what is quantized are the same in linear_int8 and convolution_int8. */
static void ending(tn_tensor **in, tn_tensor *like, int64_t outs, double *min, double *max,
                   tn_dtype *dtype)
{
    bool quantized = chance(2);
    tn_dtype of_residual = a_byte();

    in[6] = maybe(2, floats(TN_SHAPE(outs), 3));
    if (quantized) {
        *dtype = chance(2) ? TN_DTYPE_AUTO : a_byte();
        in[7] = tn_add_scalar(tn_abs(floats((tn_ints){ NULL, 0 }, 2)), 0.05);
        in[8] = maybe(2, integers(*dtype == TN_DTYPE_AUTO ? tn_tensor_dtype(in[0]) : *dtype,
                                  (tn_ints){ NULL, 0 }));
    }
    if (chance(3)) {
        in[9] = chance(2) ? floats(tn_tensor_shape(like), 3)
                          : integers(of_residual, tn_tensor_shape(like));
        if (tn_tensor_dtype(in[9]) != TN_F32) {
            in[10] = scales((tn_ints){ NULL, 0 });
            in[11] = maybe(2, integers(of_residual, (tn_ints){ NULL, 0 }));
        }
    }
    *min = chance(3) ? 0 : chance(4) ? -0.7 : (double)NAN;
    *max = chance(4) ? 6 : chance(6) ? 0.1 : (double)NAN;
}

static void linear_case(int64_t which)
{
    TN_SCOPE;
    tn_linear_int8_options o = TN_LINEAR_INT8_OPTIONS;
    int64_t rows = 1 + (chance(3) ? below(140) : below(8)), ins = below(chance(8) ? 3000 : 150);
    int64_t outs = 1 + (chance(3) ? below(200) : below(40));
    bool one = chance(2), one_w = chance(3);
    tn_tensor *in[INPUTS];

    for (int i = 0; i < INPUTS; i++)
        in[i] = TN_NONE;
    in[0] = integers(a_byte(), TN_SHAPE(rows, ins));
    in[1] = scales(one_or(one, TN_SHAPE(rows, 1)));
    in[2] = integers(a_byte(), TN_SHAPE(outs, ins));
    in[3] = scales(one_or(one_w, TN_SHAPE(outs)));
    in[4] = maybe(2, integers(tn_tensor_dtype(in[0]), tn_tensor_shape(in[1])));
    in[5] = maybe(3, integers(tn_tensor_dtype(in[2]), tn_tensor_shape(in[3])));
    ending(in, tn_tensor_empty(TN_SHAPE(rows, outs), TN_F32, NULL), outs, &o.min, &o.max, &o.dtype);
    compare("linear_int8", which, in, INPUTS, &o);
}

static void convolution_case(int64_t which)
{
    TN_SCOPE;
    tn_convolution_int8_options o = TN_CONVOLUTION_INT8_OPTIONS;
    int64_t dims = 1 + below(3), groups = chance(3) ? 1 + below(4) : 1;
    int64_t x[5] = { 1 + below(2), groups * (chance(3) ? 1 : 1 + below(5)) };
    int64_t w[5] = { groups * (1 + below(20)), x[1] / groups }, step[3], pad[3], apart[3];
    bool one = chance(2), one_w = chance(3);
    tn_tensor *in[INPUTS];

    for (int64_t i = 0; i < dims; i++) {
        x[2 + i] = 3 + below(dims == 3 ? 4 : 9);
        w[2 + i] = 1 + below(3);
        step[i] = 1 + below(2);
        pad[i] = below(3);
        apart[i] = w[2 + i] > 1 && chance(4) ? 2 : 1;
        x[2 + i] += w[2 + i] * apart[i];
    }
    for (int i = 0; i < INPUTS; i++)
        in[i] = TN_NONE;
    in[0] = integers(a_byte(), (tn_ints){ x, 2 + dims });
    in[1] = scales(one_or(one, (tn_ints){ (int64_t[]){ x[0], 1, 1, 1, 1 }, 2 + dims }));
    in[2] = integers(a_byte(), (tn_ints){ w, 2 + dims });
    in[3] = scales(one_or(one_w, TN_SHAPE(w[0])));
    in[4] = maybe(2, integers(tn_tensor_dtype(in[0]), tn_tensor_shape(in[1])));
    in[5] = maybe(3, integers(tn_tensor_dtype(in[2]), tn_tensor_shape(in[3])));
    o.stride = (tn_ints){ step, dims };
    o.padding = (tn_ints){ pad, dims };
    o.dilation = (tn_ints){ apart, dims };
    o.groups = groups;
    ending(in,
           tn_convolution(tn_cast(in[0], TN_F32), tn_cast(in[2], TN_F32), TN_NONE, o.stride,
                          o.padding, o.dilation, groups),
           w[0], &o.min, &o.max, &o.dtype);
    compare("convolution_int8", which, in, INPUTS, &o);
}

static void matmul_case(int64_t which)
{
    TN_SCOPE;
    int64_t rows = 1 + below(60), depth = below(200), columns = 1 + below(100);
    tn_dtype a = a_byte(), b = a_byte();
    bool batch = chance(4), turned = chance(3), one = chance(2);
    tn_tensor *in[4];

    in[0] = integers(a, batch ? TN_SHAPE(2, rows, depth) : TN_SHAPE(rows, depth));
    in[1] = turned ? tn_transpose(integers(b, TN_SHAPE(columns, depth)), 0, 1)
                   : integers(b, TN_SHAPE(depth, columns));
    in[2] = maybe(2, integers(a, one     ? TN_SHAPE(1)
                                 : batch ? TN_SHAPE(2, rows, 1)
                                         : TN_SHAPE(rows)));
    in[3] = maybe(2, integers(b, chance(2) ? (tn_ints){ NULL, 0 } : TN_SHAPE(columns)));
    compare("matmul_int8", which, in, 4, NULL);
}

static void rows_case(int64_t which)
{
    TN_SCOPE;
    tn_quantize_rows_options o = TN_QUANTIZE_ROWS_OPTIONS;
    static const double sizes[] = { 1, 1e-40, 1e30, 100 };
    tn_tensor *in[1] = { floats(TN_SHAPE(1 + below(9), below(300)), sizes[below(4)]) };

    if (chance(4))
        in[0] = tn_abs(in[0]);
    o.symmetric = chance(3);
    o.dtype = o.symmetric || chance(2) ? TN_I8 : TN_U8;
    compare("quantize_rows", which, in, 1, &o);
}

static void quantize_case(int64_t which)
{
    TN_SCOPE;
    tn_quantize_options o = TN_QUANTIZE_OPTIONS;
    tn_dtype dtype = a_byte();
    tn_tensor *in[3] = { floats(TN_SHAPE(1 + below(9), below(300)), chance(2) ? 3 : 30) };

    if (chance(3)) /* many ties */
        in[0] = tn_mul_scalar(tn_round(tn_mul_scalar(in[0], 2.0)), 0.5);
    in[1] = chance(3) ? tn_tensor_full((tn_ints){ NULL, 0 }, 1.0, TN_F32, NULL)
                      : scales(one_or(chance(2), TN_SHAPE(1)));
    in[2] = maybe(2, integers(dtype, tn_tensor_shape(in[1])));
    o.dtype = dtype;
    if (chance(3)) {
        o.qmin = dtype == TN_I8 ? -8 : 0;
        o.qmax = 7;
    }
    compare("quantize", which, in, 3, &o);
}

static void packed_case(int64_t which)
{
    static const char *const formats[] = { "int8", "int4", "uint4", "q8_0", "q4_0" };
    TN_SCOPE;
    tn_linear_packed_options o = TN_LINEAR_PACKED_OPTIONS;
    int which_format = (int)below(5);
    int64_t rows = 1 + (chance(3) ? below(80) : below(9)), outs = 1 + below(70), groups, ins;
    tn_tensor *in[5];

    groups = chance(3) ? 1 : 1 + below(12);
    ins = groups == 1 ? 2 * (1 + below(150)) : groups * 32 * (1 + below(3));
    o.format = formats[which_format];
    if (which_format > 2) { /* blocks, with any bits as scales */
        in[1] = integers(TN_U8, TN_SHAPE(outs, groups * (which_format == 3 ? 34 : 18)));
        in[2] = in[3] = TN_NONE;
        ins = groups * 32;
    } else {
        in[1] = integers(which_format == 0 ? TN_I8 : TN_U8,
                         TN_SHAPE(outs, which_format == 0 ? ins : ins / 2));
        in[2] = scales(groups == 1 && chance(2) ? TN_SHAPE(outs) : TN_SHAPE(outs, groups));
        in[3] = maybe(2, integers(which_format == 2 ? TN_U8 : TN_I8, tn_tensor_shape(in[2])));
    }
    in[0] = floats(TN_SHAPE(rows, ins), 2);
    in[4] = maybe(2, floats(TN_SHAPE(outs), 1));
    compare("linear_packed", which, in, 5, &o);
}

static const struct {
    const char *name;
    tn_dtype dtype;
    void (*run)(int64_t which);
} operators[] = {
    { "linear_int8", TN_U8, linear_case },    { "convolution_int8", TN_U8, convolution_case },
    { "matmul_int8", TN_U8, matmul_case },    { "quantize_rows", TN_F32, rows_case },
    { "linear_packed", TN_F32, packed_case }, { "quantize", TN_U8, quantize_case },
};
static const char *const sets[] = { "baseline", "avx2", "avx512" };
enum { OPERATORS = sizeof operators / sizeof *operators, SETS = sizeof sets / sizeof *sets };

START_TEST(kernels_have_the_bits_of_the_decomposition)
{
    if (!instruction_set(sets[_i / OPERATORS]))
        return;
    with_kernel(operators[_i % OPERATORS].name, operators[_i % OPERATORS].dtype);
    state = (uint64_t)_i % OPERATORS;
    for (int64_t i = 0; i < cases(); i++)
        operators[_i % OPERATORS].run(i);
    ck_assert_int_eq(checks_made, 3 * cases());
}
END_TEST

/* A sum that int32 does not hold: the decomposition sums in int64. */
START_TEST(long_sums_are_exact)
{
    enum { K = 70000 };
    TN_SCOPE;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1, K), 255, TN_U8, NULL);
    tn_tensor *w = tn_tensor_full(TN_SHAPE(2, K), -128, TN_I8, NULL);
    tn_tensor *one = tn_tensor_full((tn_ints){ NULL, 0 }, 1.0, TN_F32, NULL);
    tn_tensor *y = tn_linear_int8(x, one, w, one);

    there(y);
    ck_assert_float_eq((float)get(y)[0], (float)(-255.0 * 128 * K));
    ck_assert_float_eq((float)get(y)[1], (float)(-255.0 * 128 * K));
}
END_TEST

/* A weight that was written between calls is packed again. */
START_TEST(written_weights_are_packed_again)
{
    TN_SCOPE;
    tn_tensor *x = integers(TN_U8, TN_SHAPE(3, 64)), *w = integers(TN_I8, TN_SHAPE(32, 64));
    tn_tensor *one = tn_tensor_full((tn_ints){ NULL, 0 }, 1.0, TN_F32, NULL), *y = NULL, *again;
    tn_memory_stats stats;

    for (int i = 0; i < 4; i++)
        y = tn_linear_int8(x, one, w, one);
    ok(tn_device_memory(tn_device_find("cpu"), &stats));
    ck_assert_int_ge(stats.prepared, 32 * 64);
    there(tn_copy_(w, integers(TN_I8, TN_SHAPE(32, 64))));
    again = tn_linear_int8(x, one, w, one);
    ck_assert(!tn_equal(y, again));
    ck_assert(tn_equal(again, tn_linear_int8(x, one, tn_clone(w), one)));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quant");
    TCase *tests = tcase_create("quant");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 600);
    tcase_add_loop_test(tests, kernels_have_the_bits_of_the_decomposition, 0, SETS * OPERATORS);
    tcase_add_test(tests, long_sums_are_exact);
    tcase_add_test(tests, written_weights_are_packed_again);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Operators that work element by element, on every device, against float64. */
#include "tests/backend/backend.h"

static const tn_dtype floats[] = { TN_F32, TN_F64, TN_BF16, TN_F16 };
enum { FLOATS = sizeof floats / sizeof *floats };

/* ---- one input ------------------------------------------------------------------------------- */

static double ref_neg(double x)
{
    return -x;
}

static const struct unary unary[] = {
    { "neg", ref_neg, -9, 9, 0 },
    { "exp", exp, -20, 10, 2 },
    { "log", log, 1e-4, 100, 2 },
    { "sqrt", sqrt, 0, 100, 1 },
};
enum { UNARY = sizeof unary / sizeof *unary };

static tn_tensor *call(const char *op, tn_tensor *a, tn_tensor *b)
{
    tn_tensor *in[2] = { a, b }, *out = NULL;
    if (tn_op_call(tn_op_find(op, 0), in, b ? 2 : 1, NULL, &out, 1) != TN_OK)
        return NULL;
    return out;
}

static tn_status call_into(const char *op, tn_tensor *a, tn_tensor *b)
{
    tn_tensor *in[2] = { a, b };
    return tn_op_call_into(tn_op_find(op, 0), in, b ? 2 : 1, NULL, a);
}

START_TEST(operators_of_one_input_agree_with_float64_in_every_layout_and_in_place)
{
    static const int64_t sizes[] = { 3, 5, 4 };
    const tn_ints shapes[] = {
        TN_SCALAR_SHAPE, { sizes, 1 }, { sizes, 3 }, TN_SHAPE(0), TN_SHAPE(2, 0, 3)
    };
    EACH_DEVICE(device)
    for (int k = 0; k < UNARY; k++)
        unary_agrees(&unary[k], device, shapes, sizeof shapes / sizeof *shapes, 0);
    ck_assert_int_gt(checks_made, 3000);
}
END_TEST

START_TEST(exp_and_log_keep_infinities_and_NaN)
{
    static const double x[] = { -INFINITY, INFINITY, NAN, 0, -0.0, 1 };
    static const double exps[] = { 0, INFINITY, NAN, 1, 1, 2.718281828459045 };
    static const double logs[] = { NAN, INFINITY, NAN, -INFINITY, -INFINITY, 0 };
    EACH_DEVICE(device)
    for (int t = 0; t < 2; t++) {
        TN_SCOPE;
        tn_tensor *in = put(device, floats[t], TN_SHAPE(6), x, DENSE);
        same("exp", device, floats[t], tn_exp(in), exps, 2, 0);
        same("log", device, floats[t], tn_ln(in), logs, 2, 0);
    }
}
END_TEST

/* A vector unit may treat numbers below the normal range as zero; the CPU must not. */
START_TEST(exp_and_log_are_right_in_the_whole_range_on_the_cpu)
{
    const tn_device *cpu = tn_device_find("cpu");
    double x[2000], y[2000];
    for (int i = 0; i < 2000; i++) {
        x[i] = (float)(-104 + i * (193.0 / 2000));
        y[i] = (float)exp(x[i]);
    }
    TN_SCOPE;
    /* below 2^-126 an ulp is 2^-149, as the floor of 2^-126 gives it */
    same("exp", cpu, TN_F32, tn_exp(put(cpu, TN_F32, TN_SHAPE(2000), x, DENSE)), y, 1.5, 0x1p-126);
    for (int i = 0; i < 2000; i++) {
        x[i] = ldexp(1 + i / 2000.0, i - 1000);
        y[i] = log(x[i]);
    }
    same("log", cpu, TN_F64, tn_ln(put(cpu, TN_F64, TN_SHAPE(2000), x, DENSE)), y, 1.5, 0);
}
END_TEST

/* ---- two inputs ------------------------------------------------------------------------------ */

static double ref_add(double a, double b)
{
    return a + b;
}
static double ref_sub(double a, double b)
{
    return a - b;
}
static double ref_mul(double a, double b)
{
    return a * b;
}
static double ref_div(double a, double b)
{
    return a / b;
}
static double ref_maximum(double a, double b)
{
    return a > b ? a : b;
}

static const struct {
    const char *op;
    double (*reference)(double, double);
    bool integers;
} binary[] = {
    { "add", ref_add, true },  { "sub", ref_sub, true },         { "mul", ref_mul, true },
    { "div", ref_div, false }, { "maximum", ref_maximum, true },
};
enum { BINARY = sizeof binary / sizeof *binary };

static const struct {
    int64_t a[3], b[3], y[3];
    int na, nb, ny;
} broadcasts[] = {
    { { 2, 3, 4 }, { 2, 3, 4 }, { 2, 3, 4 }, 3, 3, 3 },
    { { 2, 3, 4 }, { 4 }, { 2, 3, 4 }, 3, 1, 3 },
    { { 3, 4 }, { 2, 1, 4 }, { 2, 3, 4 }, 2, 3, 3 },
    { { 2, 1, 4 }, { 3, 1 }, { 2, 3, 4 }, 3, 2, 3 },
    { { 5 }, { 0 }, { 5 }, 1, 0, 1 },
    { { 0 }, { 5 }, { 5 }, 0, 1, 1 },
    { { 1 }, { 7 }, { 7 }, 1, 1, 1 },
    { { 0, 3 }, { 3 }, { 0, 3 }, 2, 1, 2 },
    { { 0 }, { 0 }, { 0 }, 0, 0, 0 },
};
enum { BROADCASTS = sizeof broadcasts / sizeof *broadcasts };

/* Returns the index of the operand's element (shape x) for element `i` of the result (shape y). */
static int64_t place(int64_t i, const int64_t *y, int ny, const int64_t *x, int nx)
{
    int64_t at = 0, step = 1;
    for (int d = ny; d-- > 0;) {
        int64_t index = i % y[d];
        int own = d - (ny - nx);
        i /= y[d];
        if (own >= 0) {
            at += x[own] == 1 ? 0 : index * step;
            step *= x[own];
        }
    }
    return at;
}

START_TEST(operators_of_two_inputs_broadcast_in_every_layout)
{
    EACH_DEVICE(device)
    for (int k = 0; k < BINARY; k++)
        for (int t = 0; t < FLOATS; t++) {
            if (!device_has(device, binary[k].op, floats[t]))
                continue;
            for (int c = 0; c < BROADCASTS; c++)
                for (int layout = 0; layout < LAYOUTS; layout++) {
                    TN_SCOPE;
                    double a[24], b[24], y[24];
                    tn_ints sa = { broadcasts[c].a, broadcasts[c].na },
                            sb = { broadcasts[c].b, broadcasts[c].nb };
                    tn_ints sy = { broadcasts[c].y, broadcasts[c].ny };
                    numbers(a, count_of(sa), -9, 9, floats[t]);
                    numbers(b, count_of(sb), 1, 9, floats[t]);
                    for (int64_t i = 0; i < count_of(sy); i++)
                        y[i] = stored(binary[k].reference(
                                          a[place(i, sy.at, (int)sy.count, sa.at, (int)sa.count)],
                                          b[place(i, sy.at, (int)sy.count, sb.at, (int)sb.count)]),
                                      floats[t]);
                    tn_tensor *ta = put(device, floats[t], sa, a, (enum layout)layout);
                    tn_tensor *tb = put(device, floats[t], sb, b,
                                        (enum layout)((layout + 1) % LAYOUTS));
                    tn_tensor *out = call(binary[k].op, ta, tb);
                    same(binary[k].op, device, floats[t], out, y, 1, 0);
                    ck_assert_int_eq(tn_tensor_ndim(out), sy.count);
                    if (c == 0) {
                        ok(call_into(binary[k].op, ta, tb));
                        same(binary[k].op, device, floats[t], ta, y, 1, 0);
                    }
                }
        }
    ck_assert_int_gt(checks_made, 5000);
}
END_TEST

START_TEST(an_expanded_tensor_is_read_through_its_stride_of_zero)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *row = put(device, TN_F32, TN_SHAPE(1, 3), NUMBERS(1, 2, 3), DENSE);
        tn_tensor *wide = tn_expand(row, TN_SHAPE(2, 3));
        same("add", device, TN_F32, tn_add(wide, wide), NUMBERS(2, 4, 6, 2, 4, 6), 0, 0);
        same("copy", device, TN_F32, tn_copy(wide), NUMBERS(1, 2, 3, 1, 2, 3), 0, 0);
    }
}
END_TEST

START_TEST(integers_wrap_around)
{
    static const tn_dtype integers[] = { TN_U8, TN_I8, TN_I16, TN_I32, TN_I64 };
    EACH_DEVICE(device)
    for (size_t t = 0; t < sizeof integers / sizeof *integers; t++)
        for (int k = 0; k < BINARY; k++) {
            if (!binary[k].integers || !device_has(device, binary[k].op, integers[t]))
                continue;
            TN_SCOPE;
            double a[40], b[40], y[40];
            numbers(a, 40, integers[t] == TN_U8 ? 0 : -128, 127, integers[t]);
            numbers(b, 40, integers[t] == TN_U8 ? 0 : -128, 127, integers[t]);
            for (int i = 0; i < 40; i++)
                y[i] = stored(binary[k].reference(a[i], b[i]), integers[t]);
            same(binary[k].op, device, integers[t],
                 call(binary[k].op, put(device, integers[t], TN_SHAPE(8, 5), a, REVERSED),
                      put(device, integers[t], TN_SHAPE(8, 5), b, DENSE)),
                 y, 0, 0);
            same("neg", device, integers[t],
                 tn_neg(put(device, integers[t], TN_SHAPE(1), NUMBERS(5), DENSE)),
                 NUMBERS(stored(-5, integers[t])), 0, 0);
        }
}
END_TEST

START_TEST(adding_truth_values_is_or_and_multiplying_is_and)
{
    EACH_DEVICE(device)
    {
        if (!device_has(device, "add", TN_BOOL))
            continue;
        TN_SCOPE;
        tn_tensor *a = put(device, TN_BOOL, TN_SHAPE(4), NUMBERS(0, 0, 1, 1), DENSE);
        tn_tensor *b = put(device, TN_BOOL, TN_SHAPE(4), NUMBERS(0, 1, 0, 1), DENSE);
        same("add", device, TN_BOOL, tn_add(a, b), NUMBERS(0, 1, 1, 1), 0, 0);
        same("mul", device, TN_BOOL, tn_mul(a, b), NUMBERS(0, 0, 0, 1), 0, 0);
        /* alpha becomes a truth value too: PyTorch 2.15 gives these, also for -1 and 256 */
        static const int64_t factors[] = { -1, -3, 2, 256, 1LL << 53 };
        tn_add_options add = TN_ADD_OPTIONS;
        for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
            add.alpha = TN_SCALAR(factors[i]);
            same("add", device, TN_BOOL, tn_add(a, b, add.alpha), NUMBERS(0, 1, 1, 1), 0, 0);
        }
        add.alpha = TN_SCALAR(0);
        same("add", device, TN_BOOL, tn_add(a, b, add.alpha), NUMBERS(0, 0, 1, 1), 0, 0);
    }
}
END_TEST

START_TEST(alpha_and_scalars_are_used)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *a = put(device, TN_F32, TN_SHAPE(3), NUMBERS(1, 2, 3), DENSE);
        tn_tensor *b = put(device, TN_F32, TN_SHAPE(3), NUMBERS(10, 20, 30), EVERY_SECOND);
        same("add", device, TN_F32, tn_add(a, b, 3), NUMBERS(31, 62, 93), 0, 0);
        same("sub", device, TN_F32, tn_sub(a, b, 0.5), NUMBERS(-4, -8, -12), 0, 0);
        same("add_scalar", device, TN_F32, tn_add_scalar(a, 0.5), NUMBERS(1.5, 2.5, 3.5), 0, 0);
        same("mul_scalar", device, TN_F32, tn_mul_scalar(b, -2), NUMBERS(-20, -40, -60), 0, 0);
        if (device_has(device, "add_scalar", TN_I64)) {
            tn_tensor *n = put(device, TN_I64, TN_SHAPE(2), NUMBERS(7, -7), DENSE);
            tn_tensor *whole = tn_mul_scalar(n, 3), *broken = tn_add_scalar(n, 0.5);
            same("mul_scalar", device, TN_I64, whole, NUMBERS(21, -21), 0, 0);
            ck_assert_int_eq(tn_tensor_dtype(whole), TN_I64);
            same("add_scalar", device, TN_I64, broken, NUMBERS(7.5, -6.5), 0, 0);
            ck_assert_int_eq(tn_tensor_dtype(broken), TN_F32);
        }
    }
}
END_TEST

START_TEST(types_are_promoted_as_in_PyTorch)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *n = put(device, TN_I64, TN_SHAPE(2), NUMBERS(1, 2), DENSE);
        tn_tensor *x = put(device, TN_F32, TN_SHAPE(2), NUMBERS(0.5, 0.25), DENSE);
        tn_tensor *zero_d = put(device, TN_F64, TN_SCALAR_SHAPE, NUMBERS(1), DENSE);
        tn_tensor *sum = tn_add(n, x), *kept = tn_add(x, zero_d), *quotient = tn_div(n, n);
        ck_assert_int_eq(tn_tensor_dtype(sum), TN_F32);
        same("add", device, TN_F32, sum, NUMBERS(1.5, 2.25), 0, 0);
        ck_assert_int_eq(tn_tensor_dtype(kept), TN_F32);
        same("add", device, TN_F32, kept, NUMBERS(1.5, 1.25), 0, 0);
        ck_assert_int_eq(tn_tensor_dtype(quotient), TN_F32);
        same("div", device, TN_F32, quotient, NUMBERS(1, 1), 0, 0);
    }
}
END_TEST

START_TEST(maximum_propagates_NaN)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *a = put(device, TN_F32, TN_SHAPE(4), NUMBERS(1, NAN, 3, -1), DENSE);
        tn_tensor *b = put(device, TN_F32, TN_SHAPE(4), NUMBERS(2, 5, NAN, -1), DENSE);
        same("maximum", device, TN_F32, tn_maximum(a, b), NUMBERS(2, NAN, NAN, -1), 0, 0);
    }
}
END_TEST

/* ---- many elements --------------------------------------------------------------------------- */

START_TEST(many_elements_go_through_the_pool_and_give_the_same)
{
    enum { COUNT = 200003 };
    double *a = malloc(COUNT * sizeof *a), *b = malloc(COUNT * sizeof *b),
           *y = malloc(COUNT * sizeof *y);
    numbers(a, COUNT, -5, 5, TN_F32);
    numbers(b, COUNT, -5, 5, TN_F32);
    EACH_DEVICE(device)
    {
        if (strcmp(tn_device_type(device), "strict") == 0)
            continue; /* one element at a time: that many say nothing new */
        TN_SCOPE;
        tn_tensor *ta = put(device, TN_F32, TN_SHAPE(COUNT), a, DENSE);
        tn_tensor *tb = put(device, TN_F32, TN_SHAPE(COUNT), b, EVERY_SECOND);
        for (int i = 0; i < COUNT; i++)
            y[i] = (float)(a[i] * b[i]);
        same("mul", device, TN_F32, tn_mul(ta, tb), y, 0, 0);
        for (int i = 0; i < COUNT; i++)
            y[i] = (float)exp(a[i]);
        same("exp", device, TN_F32, tn_exp(ta), y, 2, 0);
    }
    free(a);
    free(b);
    free(y);
}
END_TEST

START_TEST(complex_numbers_are_worked_on_on_the_cpu)
{
    const tn_device *cpu = tn_device_find("cpu");
    static const float a[] = { 1, 2, -3, 0.5f }, b[] = { 0.5f, -1, 2, 2 };
    float y[4];
    TN_SCOPE;
    tn_tensor *ta = tn_tensor_empty(TN_SHAPE(2), TN_C64, cpu),
              *tb = tn_tensor_empty(TN_SHAPE(2), TN_C64, cpu);
    ok(tn_tensor_copy_in(ta, a, sizeof a));
    ok(tn_tensor_copy_in(tb, b, sizeof b));
    ok(tn_tensor_copy_out(tn_mul(ta, tb), y, sizeof y));
    ck_assert_float_eq(y[0], 2.5f); /* (1 + 2i)(0.5 - i) = 2.5 + 0i */
    ck_assert_float_eq(y[1], 0);
    ck_assert_float_eq(y[2], -7); /* (-3 + 0.5i)(2 + 2i) = -7 - 5i */
    ck_assert_float_eq(y[3], -5);
    ok(tn_tensor_copy_out(tn_sum(ta), y, 8));
    ck_assert_float_eq(y[0], -2);
    ck_assert_float_eq(y[1], 2.5f);
}
END_TEST

START_TEST(complex_numbers_are_put_together_from_their_parts)
{
    EACH_DEVICE(device)
    for (int layout = 0; layout < LAYOUTS; layout++) {
        TN_SCOPE;
        float found[6];
        tn_tensor *re = put(device, TN_F32, TN_SHAPE(3), NUMBERS(1, 2, 3), (enum layout)layout);
        tn_tensor *im = put(device, TN_F32, TN_SHAPE(1), NUMBERS(-4), (enum layout)layout);
        tn_tensor *y = tn_complex(re, im);
        there(y);
        ok(tn_tensor_copy_out(y, found, sizeof found));
        for (int i = 0; i < 3; i++) {
            ck_assert_float_eq(found[2 * i], (float)(i + 1));
            ck_assert_float_eq(found[2 * i + 1], -4);
        }
    }
}
END_TEST

RUN_SUITE("elementwise", operators_of_one_input_agree_with_float64_in_every_layout_and_in_place,
          exp_and_log_keep_infinities_and_NaN, exp_and_log_are_right_in_the_whole_range_on_the_cpu,
          operators_of_two_inputs_broadcast_in_every_layout,
          an_expanded_tensor_is_read_through_its_stride_of_zero, integers_wrap_around,
          adding_truth_values_is_or_and_multiplying_is_and, alpha_and_scalars_are_used,
          types_are_promoted_as_in_PyTorch, maximum_propagates_NaN,
          many_elements_go_through_the_pool_and_give_the_same,
          complex_numbers_are_worked_on_on_the_cpu,
          complex_numbers_are_put_together_from_their_parts)

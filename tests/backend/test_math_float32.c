/* SPDX-License-Identifier: MIT
 *
 * Functions of float32 on the CPU, by each instruction set: accuracy over the whole range; the bits
 * of a result must not depend on the position of the element in a vector, nor on its neighbours. */
#include "tests/backend/backend.h"

enum { COUNT = 1500 };

static double ref_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double ref_silu(double x)
{
    return x / (1 + exp(-x));
}
static double ref_mish(double x)
{
    return x * tanh(log1p(exp(x)));
}
static double ref_softplus(double x)
{
    return x > 20 ? x : log1p(exp(x));
}

/* `floor_` replaces smaller values: sine and cosine around their zeros, e^x below normal numbers.
 */
static const struct {
    const char *op;
    double (*reference)(double);
    double low, high, ulps, floor_;
} rows[] = {
    { "exp", exp, -120, 95, 2, 1e-30 },
    { "exp2", exp2, -160, 130, 2, 1e-30 },
    { "log", log, 1e-3, 1e6, 2, 0 },
    { "log2", log2, 1e-3, 1e6, 3, 0 },
    { "log10", log10, 1e-3, 1e6, 3, 0 },
    { "sin", sin, -9000, 9000, 4, 0.25 },
    { "cos", cos, -9000, 9000, 4, 0.25 },
    { "tan", tan, -1.5, 1.5, 5, 0 },
    { "asin", asin, -1.01, 1.01, 4, 0 },
    { "acos", acos, -1.01, 1.01, 4, 0 },
    { "atan", atan, -60, 60, 4, 0 },
    { "tanh", tanh, -12, 12, 6, 0 },
    { "atanh", atanh, -1.01, 1.01, 2, 0 },
    { "sinh", sinh, -95, 95, 3, 0 },
    { "sinh", sinh, -1.2, 1.2, 2, 0 },
    { "cosh", cosh, -95, 95, 3, 0 },
    { "erf", erf, -5, 5, 8, 0 },
    { "erfc", erfc, -10, 10, 8, 1e-30 },
    { "sigmoid", ref_sigmoid, -100, 100, 4, 1e-30 },
    { "silu", ref_silu, -80, 100, 4, 0 },
    { "mish", ref_mish, -80, 100, 8, 0 },
    { "softplus", ref_softplus, -80, 60, 4, 0 },
};

static tn_tensor *one(const char *op, tn_tensor *x)
{
    tn_tensor *out = NULL;
    ok(tn_op_call(tn_op_find(op, 0), &x, 1, NULL, &out, 1));
    return out;
}

static void check_ends(const tn_device *device, const char *op, double (*reference)(double))
{
    static const double ends[] = { NAN, INFINITY, -INFINITY, 0, 1e-40, 3e38, -3e38 };
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        TN_SCOPE;
        double expected = reference(stored(ends[k], TN_F32));
        if (isnan(expected) != isnan(reference(ends[k])))
            continue;
        same(op, device, TN_F32, one(op, put(device, TN_F32, TN_SHAPE(1), &ends[k], DENSE)),
             NUMBERS(stored(expected, TN_F32)), 8, 1e-30);
    }
}

static void check_rows(void)
{
    const tn_device *device = tn_device_find("cpu");
    there(device);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        TN_SCOPE;
        double x[COUNT], y[COUNT];
        numbers(x, COUNT, rows[k].low, rows[k].high, TN_F32);
        for (int i = 0; i < COUNT; i++)
            y[i] = stored(rows[k].reference(x[i]), TN_F32);
        tn_tensor *in = put(device, TN_F32, TN_SHAPE(COUNT), x, DENSE), *all = one(rows[k].op, in);
        same(rows[k].op, device, TN_F32, all, y, rows[k].ulps, rows[k].floor_);
        const double *bits = get(all);
        same(rows[k].op, device, TN_F32,
             one(rows[k].op, put(device, TN_F32, TN_SHAPE(COUNT), x, EVERY_SECOND)), bits, 0, 0);
        for (int i = 0; i < COUNT; i += 7)
            same(rows[k].op, device, TN_F32,
                 one(rows[k].op, put(device, TN_F32, TN_SHAPE(1), &x[i], DENSE)), &bits[i], 0, 0);
        if (strcmp(rows[k].op, "silu") != 0 && strcmp(rows[k].op, "mish") != 0 &&
            strcmp(rows[k].op, "tan") != 0)
            check_ends(device, rows[k].op, rows[k].reference);
    }
    ck_assert_int_gt(checks_made, 50000);
}

static void with_instruction_set(const char *name)
{
    if (instruction_set(name))
        check_rows();
}

START_TEST(functions_are_right_with_what_the_processor_has)
{
    check_rows();
}
END_TEST

START_TEST(functions_are_right_with_avx2)
{
    with_instruction_set("avx2");
}
END_TEST

START_TEST(functions_are_right_with_the_baseline_instructions)
{
    with_instruction_set("baseline");
}
END_TEST

RUN_SUITE("math_float32", functions_are_right_with_what_the_processor_has,
          functions_are_right_with_avx2, functions_are_right_with_the_baseline_instructions)

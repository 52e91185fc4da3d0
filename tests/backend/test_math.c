/* SPDX-License-Identifier: MIT
 *
 * Functions of one and of two numbers, comparisons, bounds and choice, on every device, against
 * float64 and whole numbers. */
#include "tests/backend/backend.h"

static const tn_dtype floats[] = { TN_F32, TN_F64, TN_BF16, TN_F16 };
static const tn_dtype integers[] = { TN_U8, TN_I8, TN_I16, TN_I32, TN_I64 };
enum { FLOATS = sizeof floats / sizeof *floats, INTEGERS = sizeof integers / sizeof *integers };

static tn_tensor *call(const char *op, tn_tensor *a, tn_tensor *b)
{
    tn_tensor *in[2] = { a, b }, *out = NULL;
    ok(tn_op_call(tn_op_find(op, 0), in, b ? 2 : 1, NULL, &out, 1));
    return out;
}

/* ---- one number ------------------------------------------------------------------------------ */

static double ref_sign(double x)
{
    return (x > 0) - (x < 0);
}

/* Bisects the interval from 0 to 6. */
static double ref_erfinv(double y)
{
    double low = 0, high = 6;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (fabs(y) < 0.5 ? erf(middle) < fabs(y) : erfc(middle) > 1 - fabs(y))
            low = middle;
        else
            high = middle;
    }
    return copysign((low + high) / 2, y);
}

/* The errors that the OpenCL specification allows. */
static const struct unary unary[] = {
    { "abs", fabs, -9, 9, 0 },      { "sign", ref_sign, -2, 2, 0 },
    { "floor", floor, -9, 9, 0 },   { "ceil", ceil, -9, 9, 0 },
    { "trunc", trunc, -9, 9, 0 },   { "round", nearbyint, -9, 9, 0 },
    { "expm1", expm1, -5, 5, 3 },   { "log1p", log1p, -0.9, 20, 2 },
    { "log2", log2, 1e-3, 100, 3 }, { "log10", log10, 1e-3, 100, 3 },
    { "sin", sin, -20, 20, 4 },     { "cos", cos, -20, 20, 4 },
    { "tan", tan, -20, 20, 5 },     { "asin", asin, -1, 1, 4 },
    { "acos", acos, -1, 1, 4 },     { "atan", atan, -20, 20, 5 },
    { "sinh", sinh, -9, 9, 4 },     { "cosh", cosh, -9, 9, 4 },
    { "tanh", tanh, -9, 9, 5 },     { "erf", erf, -3, 3, 16 },
    { "erfc", erfc, -3, 5, 16 },    { "erfinv", ref_erfinv, -0.999, 0.999, 16 },
};
enum { UNARY = sizeof unary / sizeof *unary };

START_TEST(functions_of_one_number_agree_with_float64_in_every_layout_and_in_place)
{
    const tn_ints shapes[] = { TN_SCALAR_SHAPE, TN_SHAPE(3, 5, 4), TN_SHAPE(2, 0, 3) };
    EACH_DEVICE(device)
    for (int k = 0; k < UNARY; k++) /* near zeros of sine and cosine, an ulp of 0.25 */
        unary_agrees(&unary[k], device, shapes, sizeof shapes / sizeof *shapes,
                     unary[k].ulps == 4 ? 0.25 : 0);
    ck_assert_int_gt(checks_made, 5000);
}
END_TEST

START_TEST(ends_of_the_range_are_what_c_says_they_are)
{
    static const struct {
        const char *op;
        double x[4], y[4];
    } rows[] = {
        { "abs", { -INFINITY, NAN, -0.0, -1 }, { INFINITY, NAN, 0, 1 } },
        { "sign", { -INFINITY, INFINITY, -0.0, 0 }, { -1, 1, 0, 0 } },
        { "floor", { -INFINITY, NAN, -0.5, 8388609 }, { -INFINITY, NAN, -1, 8388609 } },
        { "round", { 0.5, 1.5, -2.5, INFINITY }, { 0, 2, -2, INFINITY } },
        { "expm1", { -INFINITY, INFINITY, NAN, 0 }, { -1, INFINITY, NAN, 0 } },
        { "log1p", { -1, INFINITY, -2, 0 }, { -INFINITY, INFINITY, NAN, 0 } },
        { "log2", { 0, INFINITY, -1, 8 }, { -INFINITY, INFINITY, NAN, 3 } },
        { "sin", { INFINITY, -INFINITY, NAN, 0 }, { NAN, NAN, NAN, 0 } },
        { "asin", { 2, -2, NAN, 0 }, { NAN, NAN, NAN, 0 } },
        { "tanh", { INFINITY, -INFINITY, NAN, 0 }, { 1, -1, NAN, 0 } },
        { "erf", { INFINITY, -INFINITY, NAN, 0 }, { 1, -1, NAN, 0 } },
        { "erfinv", { 1, -1, 2, NAN }, { INFINITY, -INFINITY, NAN, NAN } },
    };
    EACH_DEVICE(device)
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int t = 0; t < 2; t++) {
            if (!device_has(device, rows[k].op, floats[t]))
                continue;
            TN_SCOPE;
            tn_tensor *in = put(device, floats[t], TN_SHAPE(4), rows[k].x, DENSE);
            same(rows[k].op, device, floats[t], call(rows[k].op, in, NULL), rows[k].y, 5, 0);
        }
}
END_TEST

/* Functions for which f(x) / x is positive next to 0. */
START_TEST(minus_zero_stays_minus_zero)
{
    static const char *const odd[] = {
        "sin",    "tan",   "asin",     "atan", "sinh",  "tanh",       "asinh",    "atanh", "erf",
        "erfinv", "expm1", "log1p",    "sqrt", "trunc", "round",      "ceil",     "floor", "elu",
        "selu",   "celu",  "softsign", "silu", "gelu",  "leaky_relu", "hardtanh", "relu6",
    };
    double x[20], *y;

    for (int i = 0; i < 20; i++)
        x[i] = -0.0;
    EACH_DEVICE(device)
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++)
        for (int t = 0; t < FLOATS; t++) {
            TN_SCOPE;
            tn_tensor *out;

            if (!device_has(device, odd[k], floats[t]) ||
                strcmp(tn_device_type(device), "strict") == 0) /* lacks what they decompose to */
                continue;
            out = call(odd[k], put(device, floats[t], TN_SHAPE(20), x, DENSE), NULL);
            there(out);
            y = get(out);
            for (int i = 0; i < 20; i++)
                ck_assert_msg(y[i] == 0 && signbit(y[i]), "%s(-0) on %s in %s: %g", odd[k],
                              tn_device_name(device), tn_dtype_name(floats[t]), y[i]);
        }
}
END_TEST

/* ---- two numbers ----------------------------------------------------------------------------- */

static double ref_remainder(double a, double b)
{
    return a - b * floor(a / b);
}
static double ref_minimum(double a, double b)
{
    return a < b ? a : b;
}

static const struct {
    const char *op;
    double (*reference)(double, double);
    double low, high; /* of a; b is from 0.5 to 4 */
    double ulps, floor_;
} binary[] = {
    { "minimum", ref_minimum, -3, 3, 0, 0 }, { "remainder", ref_remainder, -20, 20, 2, 4 },
    { "fmod", fmod, -20, 20, 2, 4 },         { "pow", pow, 0.1, 9, 16, 0 },
    { "atan2", atan2, -9, 9, 6, 0 },
};
enum { BINARY = sizeof binary / sizeof *binary };

START_TEST(functions_of_two_numbers_agree_with_float64_and_broadcast)
{
    EACH_DEVICE(device)
    for (int k = 0; k < BINARY; k++)
        for (int t = 0; t < FLOATS; t++) {
            if (!device_has(device, binary[k].op, floats[t]))
                continue;
            for (int layout = 0; layout < LAYOUTS; layout++) {
                TN_SCOPE;
                double a[24], b[24], y[24], z[24];
                numbers(a, 24, binary[k].low, binary[k].high, floats[t]);
                numbers(b, 24, 0.5, 4, floats[t]);
                for (int i = 0; i < 24; i++) {
                    y[i] = stored(binary[k].reference(a[i], b[i]), floats[t]);
                    z[i] = stored(binary[k].reference(a[i], b[i % 4]), floats[t]);
                }
                tn_tensor *ta = put(device, floats[t], TN_SHAPE(2, 3, 4), a, (enum layout)layout);
                tn_tensor *tb = put(device, floats[t], TN_SHAPE(2, 3, 4), b,
                                    (enum layout)((layout + 1) % LAYOUTS));
                tn_tensor *row = put(device, floats[t], TN_SHAPE(4), b, (enum layout)layout);
                same(binary[k].op, device, floats[t], call(binary[k].op, ta, tb), y, binary[k].ulps,
                     binary[k].floor_);
                same(binary[k].op, device, floats[t], call(binary[k].op, ta, row), z,
                     binary[k].ulps, binary[k].floor_);
            }
        }
    ck_assert_int_gt(checks_made, 300);
}
END_TEST

START_TEST(quotients_of_floats_are_rounded_as_asked)
{
    static const double a[] = { 7, -7, 7, -7, 0.5, -0.5, 1, 6 },
                        b[] = { 2, 2, -2, -2, 4, 4, 0.25, -3 },
                        cut[] = { 3, -3, -3, 3, 0, 0, 4, -2 },
                        down[] = { 3, -4, -4, 3, 0, -1, 4, -2 };
    EACH_DEVICE(device)
    for (int t = 0; t < FLOATS; t++) {
        if (!device_has(device, "div", floats[t]))
            continue;
        TN_SCOPE;
        tn_tensor *ta = put(device, floats[t], TN_SHAPE(8), a, DENSE),
                  *tb = put(device, floats[t], TN_SHAPE(8), b, REVERSED);
        tn_div_options options = TN_DIV_OPTIONS;
        options.rounding_mode = "trunc";
        same("div trunc", device, floats[t], tn_div(ta, tb, options.rounding_mode), cut, 0, 0);
        options.rounding_mode = "floor";
        same("div floor", device, floats[t], tn_div(ta, tb, options.rounding_mode), down, 0, 0);
    }
}
END_TEST

/* ---- whole numbers --------------------------------------------------------------------------- */

START_TEST(whole_numbers_are_exact)
{
    static const double a[] = { 7, 100, 3, 90, 0, 1, 2, 5 }, b[] = { 2, 7, 4, 100, 3, 6, 5, 5 };
    static const double neg[] = { -7, 7, -7, -128 }, div[] = { 2, -2, -2, 3 };
    EACH_DEVICE(device)
    for (int t = 0; t < INTEGERS; t++) {
        tn_dtype dtype = integers[t];
        TN_SCOPE;
        tn_tensor *x = put(device, dtype, TN_SHAPE(8), a, EVERY_SECOND),
                  *y = put(device, dtype, TN_SHAPE(8), b, DENSE);
        same("minimum", device, dtype, tn_minimum(x, y), NUMBERS(2, 7, 3, 90, 0, 1, 2, 5), 0, 0);
        same("fmod", device, dtype, tn_fmod(x, y), NUMBERS(1, 2, 3, 90, 0, 1, 2, 0), 0, 0);
        same("remainder", device, dtype, tn_remainder(x, y), NUMBERS(1, 2, 3, 90, 0, 1, 2, 0), 0,
             0);
        same("div", device, dtype, tn_div(x, y, "trunc"), NUMBERS(3, 14, 0, 0, 0, 0, 0, 1), 0, 0);
        same("bitwise_and", device, dtype, tn_bitwise_and(x, y), NUMBERS(2, 4, 0, 64, 0, 0, 0, 5),
             0, 0);
        same("bitwise_or", device, dtype, tn_bitwise_or(x, y), NUMBERS(7, 103, 7, 126, 3, 7, 7, 5),
             0, 0);
        same("bitwise_xor", device, dtype, tn_bitwise_xor(x, y), NUMBERS(5, 99, 7, 62, 3, 7, 7, 0),
             0, 0);
        same("bitwise_not", device, dtype, tn_bitwise_not(x),
             NUMBERS(stored(-8, dtype), stored(-101, dtype), stored(-4, dtype), stored(-91, dtype),
                     stored(-1, dtype), stored(-2, dtype), stored(-3, dtype), stored(-6, dtype)),
             0, 0);
        same("pow", device, dtype,
             tn_pow(put(device, dtype, TN_SHAPE(4), NUMBERS(2, 3, 0, 5), DENSE),
                    put(device, dtype, TN_SHAPE(4), NUMBERS(6, 4, 0, 1), DENSE)),
             NUMBERS(64, 81, 1, 5), 0, 0);
        same("floor", device, dtype, tn_floor(x), a, 0, 0);
        if (dtype == TN_U8)
            continue;
        tn_tensor *n = put(device, dtype, TN_SHAPE(4), neg, DENSE),
                  *d = put(device, dtype, TN_SHAPE(4), div, DENSE);
        same("fmod", device, dtype, tn_fmod(n, d), NUMBERS(-1, 1, -1, -2), 0, 0);
        same("remainder", device, dtype, tn_remainder(n, d), NUMBERS(1, -1, -1, 1), 0, 0);
        same("div", device, dtype, tn_div(n, d, "trunc"), NUMBERS(-3, -3, 3, -42), 0, 0);
        same("div", device, dtype, tn_div(n, d, "floor"), NUMBERS(-4, -4, 3, -43), 0, 0);
        same("abs", device, dtype, tn_abs(n), NUMBERS(7, 7, 7, stored(128, dtype)), 0, 0);
        same("sign", device, dtype, tn_sign(n), NUMBERS(-1, 1, -1, -1), 0, 0);
        same("pow", device, dtype,
             tn_pow(put(device, dtype, TN_SHAPE(4), NUMBERS(-2, -1, 1, 5), DENSE),
                    put(device, dtype, TN_SHAPE(4), NUMBERS(3, -3, -2, -1), DENSE)),
             NUMBERS(-8, -1, 1, 0), 0, 0);
    }
}
END_TEST

START_TEST(a_whole_number_divided_by_zero_is_an_error_at_the_latest_at_the_next_copy)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        double found[2];
        tn_tensor *a = put(device, TN_I64, TN_SHAPE(2), NUMBERS(7, 8), DENSE),
                  *b = put(device, TN_I64, TN_SHAPE(2), NUMBERS(1, 0), DENSE), *y;
        uint64_t mark = tn_error_mark();
        y = tn_fmod(a, b);
        tn_status status = y ? tn_tensor_copy_out(y, found, sizeof found) : tn_error_code();
        ck_assert_msg(status == TN_ERR_RUNTIME, "%s: %d", tn_device_name(device), (int)status);
        ck_assert_msg(strstr(tn_error_last()->message, "zero") != NULL, "%s",
                      tn_error_last()->message);
        tn_error_restore(mark);
        tn_error_clear();
        y = tn_fmod(b, a);
        same("fmod", device, TN_I64, y, NUMBERS(1, 0), 0, 0);
    }
}
END_TEST

START_TEST(truth_values_know_and_or_xor_not)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *a = put(device, TN_BOOL, TN_SHAPE(4), NUMBERS(0, 0, 1, 1), DENSE);
        tn_tensor *b = put(device, TN_BOOL, TN_SHAPE(4), NUMBERS(0, 1, 0, 1), EVERY_SECOND);
        same("and", device, TN_BOOL, tn_bitwise_and(a, b), NUMBERS(0, 0, 0, 1), 0, 0);
        same("or", device, TN_BOOL, tn_bitwise_or(a, b), NUMBERS(0, 1, 1, 1), 0, 0);
        same("xor", device, TN_BOOL, tn_bitwise_xor(a, b), NUMBERS(0, 1, 1, 0), 0, 0);
        same("not", device, TN_BOOL, tn_bitwise_not(b), NUMBERS(1, 0, 1, 0), 0, 0);
        same("minimum", device, TN_BOOL, tn_minimum(a, b), NUMBERS(0, 0, 0, 1), 0, 0);
    }
}
END_TEST

/* ---- comparison, bounds, choice -------------------------------------------------------------- */

START_TEST(comparisons_give_truth_in_every_type)
{
    static const tn_dtype types[] = { TN_BOOL, TN_U8,   TN_I8,  TN_I16, TN_I32,
                                      TN_I64,  TN_BF16, TN_F16, TN_F32, TN_F64 };
    EACH_DEVICE(device)
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        if (!device_has(device, "eq", types[t]))
            continue;
        TN_SCOPE;
        tn_tensor *a = put(device, types[t], TN_SHAPE(2, 3), NUMBERS(0, 1, 1, 0, 0, 1), REVERSED);
        tn_tensor *b = put(device, types[t], TN_SHAPE(3), NUMBERS(0, 1, 0), EVERY_SECOND);
        tn_tensor *equal = tn_eq(a, b);
        ck_assert_int_eq(tn_tensor_dtype(equal), TN_BOOL);
        same("eq", device, TN_BOOL, equal, NUMBERS(1, 1, 0, 1, 0, 0), 0, 0);
        same("ne", device, TN_BOOL, tn_ne(a, b), NUMBERS(0, 0, 1, 0, 1, 1), 0, 0);
        same("lt", device, TN_BOOL, tn_lt(a, b), NUMBERS(0, 0, 0, 0, 1, 0), 0, 0);
        same("le", device, TN_BOOL, tn_le(a, b), NUMBERS(1, 1, 0, 1, 1, 0), 0, 0);
        same("gt", device, TN_BOOL, tn_gt(a, b), NUMBERS(0, 0, 1, 0, 0, 1), 0, 0);
        same("ge", device, TN_BOOL, tn_ge(a, b), NUMBERS(1, 1, 1, 1, 0, 1), 0, 0);
        if (t >= 6) {
            tn_tensor *odd = put(device, types[t], TN_SHAPE(3), NUMBERS(NAN, NAN, -INFINITY),
                                 DENSE);
            tn_tensor *other = put(device, types[t], TN_SHAPE(3), NUMBERS(NAN, 1, 0), DENSE);
            same("eq", device, TN_BOOL, tn_eq(odd, other), NUMBERS(0, 0, 0), 0, 0);
            same("lt", device, TN_BOOL, tn_lt(odd, other), NUMBERS(0, 0, 1), 0, 0);
            same("le", device, TN_BOOL, tn_le(odd, other), NUMBERS(0, 0, 1), 0, 0);
        }
    }
}
END_TEST

START_TEST(where_chooses_elements_of_every_size_and_broadcasts_all_three)
{
    static const tn_dtype types[] = { TN_BOOL, TN_I16, TN_F32, TN_F64, TN_I64, TN_F16 };
    EACH_DEVICE(device)
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            if (!device_has(device, "where", types[t]))
                continue;
            TN_SCOPE;
            tn_tensor *c = put(device, TN_BOOL, TN_SHAPE(2, 1), NUMBERS(1, 0), (enum layout)layout);
            tn_tensor *a = put(device, types[t], TN_SHAPE(3), NUMBERS(1, 0, 1),
                               (enum layout)layout);
            tn_tensor *b = put(device, types[t], TN_SHAPE(2, 3), NUMBERS(0, 0, 0, 0, 1, 1),
                               (enum layout)layout);
            same("where", device, types[t], tn_where(c, a, b), NUMBERS(1, 0, 1, 0, 1, 1), 0, 0);
            same("where", device, types[t], tn_where(c, b, a), NUMBERS(0, 0, 0, 1, 0, 1), 0, 0);
        }
}
END_TEST

START_TEST(clamp_keeps_bounds_and_NaN)
{
    static const tn_dtype types[] = { TN_F32, TN_F64, TN_F16, TN_I32, TN_I64, TN_I8 };
    EACH_DEVICE(device)
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        if (!device_has(device, "clamp", types[t]))
            continue;
        TN_SCOPE;
        tn_tensor *x = put(device, types[t], TN_SHAPE(5), NUMBERS(-9, -2, 0, 3, 9), EVERY_SECOND);
        tn_clamp_options both = TN_CLAMP_OPTIONS, low = TN_CLAMP_OPTIONS, high = TN_CLAMP_OPTIONS;
        both.min = low.min = TN_SCALAR(-2);
        both.max = high.max = TN_SCALAR(3);
        same("clamp", device, types[t], tn_clamp(x, both.min, both.max), NUMBERS(-2, -2, 0, 3, 3),
             0, 0);
        same("clamp", device, types[t], tn_clamp(x, low.min), NUMBERS(-2, -2, 0, 3, 9), 0, 0);
        same("clamp", device, types[t], tn_clamp(x, high.min, high.max), NUMBERS(-9, -2, 0, 3, 3),
             0, 0);
        same("clamp", device, types[t], tn_clamp(x, 5, 1), NUMBERS(1, 1, 1, 1, 1), 0, 0);
        same("clamp", device, types[t], tn_clamp(x, 0.5), NUMBERS(0.5, 0.5, 0.5, 3, 9), 0, 0);
        if (t < 2)
            same("clamp", device, types[t],
                 tn_clamp(
                     put(device, types[t], TN_SHAPE(3), NUMBERS(NAN, INFINITY, -INFINITY), DENSE),
                     both.min, both.max),
                 NUMBERS(NAN, 3, -2), 0, 0);
    }
}
END_TEST

RUN_SUITE("math", functions_of_one_number_agree_with_float64_in_every_layout_and_in_place,
          ends_of_the_range_are_what_c_says_they_are, minus_zero_stays_minus_zero,
          functions_of_two_numbers_agree_with_float64_and_broadcast,
          quotients_of_floats_are_rounded_as_asked, whole_numbers_are_exact,
          a_whole_number_divided_by_zero_is_an_error_at_the_latest_at_the_next_copy,
          truth_values_know_and_or_xor_not, comparisons_give_truth_in_every_type,
          where_chooses_elements_of_every_size_and_broadcasts_all_three, clamp_keeps_bounds_and_NaN)

/* SPDX-License-Identifier: MIT
 *
 * Integers on the CPU by each instruction set: arithmetic of narrow dtypes that wraps around, and
 * quotients, remainders and shifts of int64 at the limits of the loops that compute in float64. */
#include "tests/backend/backend.h"

enum { COUNT = 301 };

static int64_t wrapped(int64_t x, tn_dtype dtype)
{
    return dtype == TN_U8    ? (int64_t)(uint8_t)x
           : dtype == TN_I8  ? (int64_t)(int8_t)x
           : dtype == TN_I16 ? (int64_t)(int16_t)x
           : dtype == TN_I32 ? (int64_t)(int32_t)x
                             : x;
}

enum operation { ADD, SUB, MUL, MAXIMUM, MINIMUM, ADD_ALPHA, LT, LE, GT, GE, EQ, NE, OPERATIONS };
static const char *const names[] = { "add", "sub", "mul", "maximum", "minimum", "add 3",
                                     "lt",  "le",  "gt",  "ge",      "eq",      "ne" };

static int64_t expected_of(enum operation op, int64_t a, int64_t b)
{
    switch (op) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case MAXIMUM: return a > b ? a : b;
    case MINIMUM: return a < b ? a : b;
    case ADD_ALPHA: return a + 3 * b;
    case LT: return a < b;
    case LE: return a <= b;
    case GT: return a > b;
    case GE: return a >= b;
    case EQ: return a == b;
    default: return a != b;
    }
}

static tn_tensor *computed(enum operation op, tn_tensor *a, tn_tensor *b)
{
    switch (op) {
    case ADD: return tn_add(a, b);
    case SUB: return tn_sub(a, b);
    case MUL: return tn_mul(a, b);
    case MAXIMUM: return tn_maximum(a, b);
    case MINIMUM: return tn_minimum(a, b);
    case ADD_ALPHA: return tn_add(a, b, tn_scalar_int(3));
    case LT: return tn_lt(a, b);
    case LE: return tn_le(a, b);
    case GT: return tn_gt(a, b);
    case GE: return tn_ge(a, b);
    case EQ: return tn_eq(a, b);
    default: return tn_ne(a, b);
    }
}

static void narrow_agrees(tn_dtype dtype, double low, double high, enum layout layout)
{
    TN_SCOPE;
    const tn_device *cpu = tn_default_device();
    double a[COUNT], b[COUNT], y[COUNT];
    tn_tensor *x, *other;

    numbers(a, COUNT, low, high, TN_F64);
    numbers(b, COUNT, low, high, TN_F64);
    for (int i = 0; i < COUNT; i++) {
        a[i] = i == 0 ? low : i == 1 ? high : floor(a[i]);
        b[i] = i < 2 ? high : i % 7 == 0 ? a[i] : floor(b[i]);
    }
    x = put(cpu, dtype, TN_SHAPE(COUNT), a, layout);
    other = put(cpu, dtype, TN_SHAPE(COUNT), b, layout);
    for (int op = 0; op < OPERATIONS; op++) {
        for (int i = 0; i < COUNT; i++)
            y[i] = (double)wrapped(expected_of((enum operation)op, (int64_t)a[i], (int64_t)b[i]),
                                   dtype);
        same(names[op], cpu, op >= LT ? TN_BOOL : dtype, computed((enum operation)op, x, other), y,
             0, 0);
    }
    for (int i = 0; i < COUNT; i++)
        y[i] = (double)wrapped((int64_t)a[i] + 100, dtype);
    same("add_scalar", cpu, dtype, tn_add_scalar(x, tn_scalar_int(100)), y, 0, 0);
    for (int i = 0; i < COUNT; i++)
        y[i] = (double)wrapped((int64_t)a[i] * -3, dtype);
    same("mul_scalar", cpu, dtype, tn_mul_scalar(x, tn_scalar_int(-3)), y, 0, 0);
    for (int i = 0; i < COUNT; i++)
        y[i] = (double)wrapped((int64_t)a[i] * (int64_t)a[i], dtype);
    same("square", cpu, dtype, tn_square(x), y, 0, 0);
}

/* ---- quotients and shifts of int64 ----------------------------------------------------------- */

static int64_t floor_of(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b != 0 && (a % b < 0) != (b < 0));
}

/* Every pair of the first 12 numbers, or (`wide`) of all 17, whose quotients may be inexact in
 * float64. */
static void quotients_agree(bool wide)
{
    TN_SCOPE;
    static const double all[] = { 0,      1,       -1,         2,          -3,         7,
                                  10,     -255,    0x1p31,     0x1p52 - 1, 1 - 0x1p52, 0x1p51 + 1,
                                  0x1p52, -0x1p52, 0x1p53 - 1, -0x1p62,    -0x1p63 };
    const int count = wide ? 17 : 12;
    double a[17 * 17], b[17 * 17], trunc[17 * 17], down[17 * 17], rest[17 * 17], modulo[17 * 17];
    int n = 0;
    tn_div_options options = TN_DIV_OPTIONS;
    tn_tensor *x, *y;

    for (int i = 0; i < count; i++)
        for (int j = 1; j < count; j++) {
            int64_t p = (int64_t)all[i], q = (int64_t)all[j], quotient;

            if (p == INT64_MIN && q == -1)
                continue;
            quotient = floor_of(p, q);
            a[n] = all[i];
            b[n] = all[j];
            trunc[n] = (double)(p / q);
            down[n] = (double)quotient;
            rest[n] = (double)(p % q);
            modulo[n++] = p % q != 0 && (p < 0) != (q < 0) ? (double)(p % q + q) : (double)(p % q);
        }
    x = put(tn_default_device(), TN_I64, TN_SHAPE(n), a, DENSE);
    y = put(tn_default_device(), TN_I64, TN_SHAPE(n), b, EVERY_SECOND);
    options.rounding_mode = "trunc";
    same("div trunc", tn_default_device(), TN_I64, tn_div(x, y, options.rounding_mode), trunc, 0,
         0);
    options.rounding_mode = "floor";
    same("div floor", tn_default_device(), TN_I64, tn_div(x, y, options.rounding_mode), down, 0, 0);
    same("fmod", tn_default_device(), TN_I64, tn_fmod(x, y), rest, 0, 0);
    same("remainder", tn_default_device(), TN_I64, tn_remainder(x, y), modulo, 0, 0);
}

static void shifts_agree(void)
{
    TN_SCOPE;
    static const double numbers_[] = { 1, -1, 5, -6, 0x1p40, -0x1p62 };
    static const double shifts[] = { 0, 1, 3, 20, 63, 64, 100, -1 };
    double a[48], b[48], left[48], right[48];

    for (int i = 0; i < 48; i++) {
        int64_t x = (int64_t)numbers_[i % 6], s = (int64_t)shifts[i / 6];

        a[i] = numbers_[i % 6];
        b[i] = shifts[i / 6];
        left[i] = s < 0 || s > 63 ? 0 : (double)(int64_t)((uint64_t)x << s);
        right[i] = s < 0 || s > 63 ? (x < 0 ? -1 : 0) : (double)(x >> s);
    }
    same("bitwise_left_shift", tn_default_device(), TN_I64,
         tn_bitwise_left_shift(put(tn_default_device(), TN_I64, TN_SHAPE(48), a, DENSE),
                               put(tn_default_device(), TN_I64, TN_SHAPE(48), b, DENSE)),
         left, 0, 0);
    same("bitwise_right_shift", tn_default_device(), TN_I64,
         tn_bitwise_right_shift(put(tn_default_device(), TN_I64, TN_SHAPE(48), a, DENSE),
                                put(tn_default_device(), TN_I64, TN_SHAPE(48), b, DENSE)),
         right, 0, 0);
}

static void lcm_agrees(void)
{
    TN_SCOPE;
    same("lcm", tn_default_device(), TN_I64,
         tn_lcm(
             put(tn_default_device(), TN_I64, TN_SHAPE(6), NUMBERS(4, -6, 0, 7, 0, 0x1p40), DENSE),
             put(tn_default_device(), TN_I64, TN_SHAPE(6), NUMBERS(6, 4, 5, 7, 0, 3), DENSE)),
         NUMBERS(12, 12, 0, 7, 0, 3 * 0x1p40), 0, 0);
}

static void integers_are_right(void)
{
    for (enum layout layout = DENSE; layout <= EVERY_SECOND; layout++) {
        narrow_agrees(TN_U8, 0, 255, layout);
        narrow_agrees(TN_I8, -128, 127, layout);
        narrow_agrees(TN_I16, -32768, 32767, layout);
        narrow_agrees(TN_I32, -2147483648.0, 2147483647.0, layout);
    }
    quotients_agree(false);
    quotients_agree(true);
    shifts_agree();
    lcm_agrees();
}

START_TEST(integers_are_right_with_what_the_processor_has)
{
    integers_are_right();
}
END_TEST

START_TEST(integers_are_right_with_avx2)
{
    if (instruction_set("avx2"))
        integers_are_right();
}
END_TEST

START_TEST(integers_are_right_with_the_baseline_instructions)
{
    if (instruction_set("baseline"))
        integers_are_right();
}
END_TEST

RUN_SUITE("integers", integers_are_right_with_what_the_processor_has, integers_are_right_with_avx2,
          integers_are_right_with_the_baseline_instructions)

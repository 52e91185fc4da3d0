/* SPDX-License-Identifier: MIT
 *
 * Functions of float64 on the CPU, by each instruction set: their distance from the C library's
 * long double functions in units in the last place, their results at the ends of the range, and
 * that the bits of a result do not depend on the position of the element in a vector. The bounds
 * are those in the table of docs/plugins/backends.md. */
#include <float.h>

#include "tests/backend/backend.h"

enum { COUNT = 6000, ENDS = 28 };

/* ---- references ------------------------------------------------------------------------------ */

#define ROOT_PI 1.77245385090551602729816748334114518L
#define ROOT_TWO 1.41421356237309504880168872420969808L

static long double ref_sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}
static long double ref_silu(long double x)
{
    return x / (1 + expl(-x));
}
static long double ref_mish(long double x)
{
    return x * tanhl(log1pl(expl(x)));
}
static long double ref_softplus(long double x)
{
    return x > 20 ? x : log1pl(expl(x));
}
static long double ref_gelu(long double x)
{
    return x * 0.5L * erfcl(-x / ROOT_TWO);
}

/* Newton's method, with the complement erfc from 0.5 on, where erf loses digits. */
static long double ref_erfinv(long double y)
{
    long double size = fabsl(y), x = size < 0.9L ? size : 1.5L;
    if (!(size < 1))
        return size == 1 ? y * INFINITY : (long double)NAN;
    for (int step = 0; step < 60; step++) {
        long double over = size < 0.5L ? erfl(x) - size : (1 - size) - erfcl(x);
        long double next = x - over * (ROOT_PI / 2) * expl(x * x);
        x = next > x + 0.5L ? x + 0.5L : next < x / 2 ? x / 2 : next;
    }
    return copysignl(x, y);
}

/* ---- the distance ---------------------------------------------------------------------------- */

static double ulps_between(double got, long double wanted)
{
    int exponent;
    double rounded = (double)wanted;
    if (isnan(got) || isnan(rounded))
        return isnan(got) && isnan(rounded) ? 0 : INFINITY;
    if (isinf(got) || isinf(rounded))
        return got == rounded ? 0 : INFINITY;
    frexp(rounded, &exponent);
    if (rounded == 0 || exponent < -1021)
        exponent = -1021;
    return (double)(fabsl((long double)got - wanted) / ldexpl(1, exponent - 53));
}

/* `ulps`: how far off each function may be. It is tried at random numbers between `low` and `high`,
 * evenly distributed; with `wide` their logarithms are, and the numbers have both signs. */
static const struct {
    const char *op;
    long double (*reference)(long double);
    double ulps, low, high;
    bool wide;
} rows[] = {
    { "exp", expl, 1, -750, 715, false },
    { "exp", expl, 1, -2, 2, false },
    { "expm1", expm1l, 1.5, -45, 715, false },
    { "expm1", expm1l, 1.5, 1e-310, 2, true },
    { "log", logl, 1, 0.5, 3, false },
    { "log", logl, 1, 1e-315, 1e308, true },
    { "log2", log2l, 2, 0.5, 3, false },
    { "log2", log2l, 2, 1e-315, 1e308, true },
    { "log10", log10l, 2, 0.5, 3, false },
    { "log10", log10l, 2, 1e-315, 1e308, true },
    { "log1p", log1pl, 1.5, -0.99, 3, false },
    { "log1p", log1pl, 1.5, 1e-315, 1e308, true },
    { "sin", sinl, 1, -20, 20, false },
    { "sin", sinl, 1, 1e-310, 1e9, true },
    { "cos", cosl, 1, -20, 20, false },
    { "cos", cosl, 1, 1e-310, 1e9, true },
    { "tan", tanl, 2.5, -20, 20, false },
    { "tan", tanl, 2.5, 1e-310, 1e9, true },
    { "asin", asinl, 1.5, -1.01, 1.01, false },
    { "asin", asinl, 1.5, 1e-310, 1, true },
    { "acos", acosl, 1.5, -1.01, 1.01, false },
    { "acos", acosl, 1.5, 1e-310, 1, true },
    { "atan", atanl, 2, -5, 5, false },
    { "atan", atanl, 2, 1e-310, 1e308, true },
    { "sinh", sinhl, 2.5, -3, 3, false },
    { "sinh", sinhl, 2.5, 1e-310, 712, true },
    { "cosh", coshl, 1.5, -3, 3, false },
    { "cosh", coshl, 1.5, 1e-310, 712, true },
    { "tanh", tanhl, 2.5, -3, 3, false },
    { "tanh", tanhl, 2.5, 1e-310, 40, true },
    { "sigmoid", ref_sigmoid, 2.5, -700, 40, false },
    { "sigmoid", ref_sigmoid, 2.5, -5, 5, false },
    { "silu", ref_silu, 3, -700, 40, false },
    { "mish", ref_mish, 5, -600, 60, false },
    { "mish", ref_mish, 5, -30, 30, false },
    { "softplus", ref_softplus, 2, -700, 19, false },
    { "softplus", ref_softplus, 2, -5, 5, false },
    { "erf", erfl, 1.5, -3, 3, false },
    { "erf", erfl, 1.5, 1e-310, 10, true },
    { "erfc", erfcl, 5, -3, 3, false },
    { "erfc", erfcl, 5, 0, 28, false },
    { "erfinv", ref_erfinv, 4.5, -1, 1, false },
    { "erfinv", ref_erfinv, 4.5, 0.998, 1, false },
    { "gelu", ref_gelu, 6, -3, 3, false },
    { "gelu", ref_gelu, 6, -36, 50, false },
};
enum { ROWS = sizeof rows / sizeof *rows };

static const double ends[ENDS] = { NAN,    INFINITY, -INFINITY, 0.0,     -0.0,     5e-324, -5e-324,
                                   1e-310, -1e-310,  0x1p-1022, DBL_MAX, -DBL_MAX, 1,      -1,
                                   709.78, 709.79,   -745.13,   -745.14, 1e-20,    -1e-20, 0.5,
                                   -0.5,   0x1p60,   -0x1p60,   36.9,    -26.5,    15,     -15 };

static tn_tensor *of(const char *op, tn_tensor *a, tn_tensor *b)
{
    tn_tensor *in[2] = { a, b }, *out = NULL;
    ok(tn_op_call(tn_op_find(op, 0), in, b ? 2 : 1, NULL, &out, 1));
    return out;
}

static bool is_activation(const char *op)
{
    return strcmp(op, "silu") == 0 || strcmp(op, "mish") == 0 || strcmp(op, "gelu") == 0 ||
           strcmp(op, "softplus") == 0;
}

/* Fails unless both have the same bits; any NaN equals any other NaN. The i-th number of `a` is
 * a[i * step]. */
static void same_bits(const char *op, const double *a, const double *b, int count, int step)
{
    for (int i = 0; i < count; i++)
        ck_assert_msg(memcmp(&a[i * step], &b[i], 8) == 0 || (isnan(a[i * step]) && isnan(b[i])),
                      "%s: %a elsewhere than %a", op, a[i * step], b[i]);
    checks_made += count;
}

static void check_row(const tn_device *device, int k)
{
    TN_SCOPE;
    static double x[COUNT + ENDS];
    numbers(x, COUNT, 0, 1, TN_F64);
    for (int i = 0; i < COUNT; i++)
        x[i] = rows[k].wide
                   ? exp(log(rows[k].low) + x[i] * (log(rows[k].high) - log(rows[k].low))) *
                         (i & 1 ? -1 : 1)
                   : rows[k].low + x[i] * (rows[k].high - rows[k].low);
    /* Where a function is not defined, such as the logarithm below 0, the reference is NaN, too. */
    double worst = 0, at = 0;
    const double *y = get(of(rows[k].op, put(device, TN_F64, TN_SHAPE(COUNT), x, DENSE), NULL));
    for (int i = 0; i < COUNT; i++) {
        double ulps = ulps_between(y[i], rows[k].reference((long double)x[i]));
        if (ulps > worst)
            worst = ulps, at = x[i];
    }
    fprintf(stderr, "%-9s %-28s %.2f\n", rows[k].op, rows[k].wide ? "all sizes" : "", worst);
    ck_assert_msg(worst <= rows[k].ulps, "%s(%a): off by %.3g units in the last place, not %g",
                  rows[k].op, at, worst, rows[k].ulps);
    checks_made += COUNT;
    /* the same numbers among the special ones, with other strides, and each one alone */
    memcpy(x + COUNT, ends, sizeof ends);
    const double *more = get(
        of(rows[k].op, put(device, TN_F64, TN_SHAPE(COUNT + ENDS), x, EVERY_SECOND), NULL));
    same_bits(rows[k].op, more, y, COUNT, 1);
    for (int i = 0; i < COUNT + ENDS; i += i < COUNT ? 67 : 1)
        same_bits(rows[k].op, more + i,
                  get(of(rows[k].op, put(device, TN_F64, TN_SHAPE(1), &x[i], DENSE), NULL)), 1, 1);
    if (is_activation(rows[k].op)) /* some have no in-place form */
        return;
    tn_tensor *in = put(device, TN_F64, TN_SHAPE(COUNT + ENDS), x, DENSE);
    ok(tn_op_call_into(tn_op_find(rows[k].op, 0), &in, 1, NULL, in));
    same_bits(rows[k].op, get(in), more, COUNT + ENDS, 1);
}

/* Special numbers must give the values of C's functions, with the sign of zero. */
static void check_ends(const tn_device *device)
{
    for (int k = 0; k < ROWS; k++) {
        const char *op = rows[k].op;
        if (is_activation(op)) /* no functions of C */
            continue;
        TN_SCOPE;
        const double *y = get(of(op, put(device, TN_F64, TN_SHAPE(ENDS), ends, DENSE), NULL));
        for (int i = 0; i < ENDS; i++) {
            long double wanted = rows[k].reference((long double)ends[i]);
            ck_assert_msg(ulps_between(y[i], wanted) <= rows[k].ulps &&
                              (isnan(y[i]) || !signbit(y[i]) == !signbit(wanted)),
                          "%s(%a): %a, not %La", op, ends[i], y[i], wanted);
            checks_made++;
        }
    }
}

/* ---- two numbers ----------------------------------------------------------------------------- */

static double div_floor(double a, double b)
{
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (b == 0 || isnan(rest))
        return a / b;
    if (rest != 0 && (b < 0) != (rest < 0))
        quotient -= 1;
    /* a whole number, except for a rounding error */
    return quotient == 0 ? copysign(0, a / b) : nearbyint(quotient);
}
static double python_rest(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}

static void check_two(const tn_device *device)
{
    TN_SCOPE;
    static double a[COUNT], b[COUNT];
    /* powers: some of them of negative numbers with whole exponents, some large */
    numbers(a, COUNT, -3, 3, TN_F64);
    numbers(b, COUNT, -30, 30, TN_F64);
    for (int i = 0; i < COUNT; i++) {
        a[i] = exp(i % 4 ? a[i] : 150 * a[i]) * (i % 5 ? 1 : -1);
        b[i] = i % 5 == 0 ? nearbyint(b[i]) : i % 4 ? b[i] : b[i] / 20;
    }
    tn_tensor *ta = put(device, TN_F64, TN_SHAPE(COUNT), a, DENSE),
              *tb = put(device, TN_F64, TN_SHAPE(COUNT), b, EVERY_SECOND);
    const double *y = get(of("pow", ta, tb)), *angle = get(of("atan2", ta, tb));
    double worst = 0, worst_angle = 0;
    for (int i = 0; i < COUNT; i++) {
        worst = fmax(worst, ulps_between(y[i], powl(a[i], b[i])));
        worst_angle = fmax(worst_angle, ulps_between(angle[i], atan2l(a[i], b[i])));
    }
    fprintf(stderr, "pow %.2f, atan2 %.2f\n", worst, worst_angle);
    ck_assert_double_le(worst, 2);
    ck_assert_double_le(worst_angle, 2);
    /* special numbers: the results of C's functions, also the signs of zeros */
    enum { SIDE = 21, BASES = 25 };
    static double bases[SIDE * SIDE], exponents[SIDE * SIDE];
    static const double odd[SIDE] = { 0.0,  -0.0,   1,       -1,       2,         -2,       0.5,
                                      -0.5, 3,      -3,      2.5,      -2.5,      1e300,    -1e300,
                                      NAN,  5e-324, -1e-310, INFINITY, -INFINITY, 1e15 + 1, 1e17 };
    for (int i = 0; i < SIDE * SIDE; i++)
        bases[i] = odd[i / SIDE], exponents[i] = odd[i % SIDE];
    ta = put(device, TN_F64, TN_SHAPE(SIDE * SIDE), bases, DENSE);
    tb = put(device, TN_F64, TN_SHAPE(SIDE * SIDE), exponents, DENSE);
    static const struct {
        const char *op;
        double (*reference)(double, double);
        double ulps;
    } two[] = { { "pow", pow, 2 },
                { "atan2", atan2, 2 },
                { "fmod", fmod, 0 },
                { "remainder", python_rest, 0 } };
    for (size_t k = 0; k < sizeof two / sizeof *two; k++) {
        y = get(of(two[k].op, ta, tb));
        for (int i = 0; i < SIDE * SIDE; i++) {
            double wanted = two[k].reference(bases[i], exponents[i]);
            ck_assert_msg(ulps_between(y[i], wanted) <= two[k].ulps &&
                              (isnan(wanted) || !signbit(y[i]) == !signbit(wanted)),
                          "%s(%g, %g): %a, not %a", two[k].op, bases[i], exponents[i], y[i],
                          wanted);
            checks_made++;
        }
    }
    for (int base = -BASES; base <= BASES; base++) {
        double x[10], n[10], wanted = 1;
        for (int i = 0; i < 10; i++)
            x[i] = base, n[i] = i;
        y = get(of("pow", put(device, TN_F64, TN_SHAPE(10), x, DENSE),
                   put(device, TN_F64, TN_SHAPE(10), n, DENSE)));
        for (int i = 0; i < 10; i++, wanted *= base)
            ck_assert_double_eq(y[i], wanted);
    }
    /* remainders are exact, also where the quotient is a whole number or nearly one */
    numbers(a, COUNT, -1, 1, TN_F64);
    numbers(b, COUNT, -20, 20, TN_F64);
    for (int i = 0; i < COUNT; i++) {
        double divisor = i % 3 ? a[i] * exp(b[i]) : nearbyint(b[i]) * 0.1;
        a[i] = i % 3 == 1 ? divisor * nearbyint(b[i] * 100) : b[i] * (i % 7 ? 1 : 1e12);
        b[i] = divisor;
    }
    ta = put(device, TN_F64, TN_SHAPE(COUNT), a, DENSE);
    tb = put(device, TN_F64, TN_SHAPE(COUNT), b, DENSE);
    const double *rest = get(of("fmod", ta, tb)), *other = get(of("remainder", ta, tb)),
                 *quotient = get(tn_div(ta, tb, "floor"));
    for (int i = 0; i < COUNT; i++) {
        ck_assert_msg(ulps_between(rest[i], fmod(a[i], b[i])) == 0, "fmod(%a, %a): %a", a[i], b[i],
                      rest[i]);
        ck_assert_msg(ulps_between(other[i], python_rest(a[i], b[i])) == 0, "remainder(%a, %a): %a",
                      a[i], b[i], other[i]);
        ck_assert_msg(ulps_between(quotient[i], div_floor(a[i], b[i])) == 0, "floor(%a / %a): %a",
                      a[i], b[i], quotient[i]);
        checks_made += 3;
    }
}

/* Powers of ten and two have whole logarithms. */
static void check_whole_logarithms(const tn_device *device)
{
    TN_SCOPE;
    double x[23], y[23];
    for (int i = 0; i < 23; i++) {
        x[i] = i == 0 ? 1 : x[i - 1] * 10;
        y[i] = i;
    }
    same("log10", device, TN_F64, of("log10", put(device, TN_F64, TN_SHAPE(23), x, DENSE), NULL), y,
         0, 0);
    for (int i = 0; i < 23; i++)
        x[i] = ldexp(1, i * 90 - 1000), y[i] = i * 90 - 1000;
    same("log2", device, TN_F64, of("log2", put(device, TN_F64, TN_SHAPE(23), x, DENSE), NULL), y,
         0, 0);
}

/* Random numbers seldom fall next to 1, where the inverse grows without bound. */
static void check_erfinv_next_to_one(const tn_device *device)
{
    TN_SCOPE;
    enum { NEXT = 2 * 47 };
    double x[NEXT], *y;

    for (int i = 0; i < NEXT; i++)
        x[i] = (i % 2 != 0 ? -1 : 1) * (1 - ldexp(1 + i % 4 * 0.25, -7 - i / 2));
    y = get(of("erfinv", put(device, TN_F64, TN_SHAPE(NEXT), x, DENSE), NULL));
    for (int i = 0; i < NEXT; i++)
        ck_assert_msg(ulps_between(y[i], ref_erfinv(x[i])) <= 4.5, "erfinv(%a): %a, expected %a",
                      x[i], y[i], (double)ref_erfinv(x[i]));
}

static void check_all(void)
{
    const tn_device *device = tn_device_find("cpu");
    there(device);
    check_two(device);
    check_whole_logarithms(device);
#if LDBL_MANT_DIG >= 64
    for (int k = 0; k < ROWS; k++)
        check_row(device, k);
    check_ends(device);
    check_erfinv_next_to_one(device);
    ck_assert_int_gt(checks_made, 400000);
#else
    fprintf(stderr, "SKIP: long double tells no more than double here\n");
#endif
}

static void with_instruction_set(const char *name)
{
    if (instruction_set(name))
        check_all();
}

START_TEST(float64_functions_are_right_with_what_the_processor_has)
{
    check_all();
}
END_TEST

START_TEST(float64_functions_are_right_with_avx2)
{
    with_instruction_set("avx2");
}
END_TEST

START_TEST(float64_functions_are_right_with_the_baseline_instructions)
{
    with_instruction_set("baseline");
}
END_TEST

/* ---- roots ----------------------------------------------------------------------------------- */

/* The numbers whose square roots are nearest to the middle of two doubles: x = m^2 - c for an odd m
 * of 54 bits and a small c, where x has no more than 53 bits. Such m are roots of c modulo a power
 * of two, found bit by bit. */
static int64_t hard_squares(double *to)
{
    int64_t count = 0;
    for (int bits = 54; bits <= 56; bits++)
        for (int64_t c = -1023; c < 1024; c += 8) { /* squares of odd numbers are 1 modulo 8 */
            uint64_t roots[16] = { 1, 3, 5, 7 }, next[16];
            int found = 4;
            for (int bit = 3; bit < bits; bit++) {
                const uint64_t mask = ((uint64_t)2 << bit) - 1;
                int more = 0;
                for (int i = 0; i < 4 * found; i++) {
                    uint64_t r = (roots[i / 4] + ((uint64_t)(i & 1) << bit) +
                                  ((uint64_t)(i >> 1 & 1) << (bit - 1))) &
                                 mask;
                    bool there = ((r * r - (uint64_t)c) & mask) != 0;
                    for (int k = 0; k < more; k++)
                        there |= next[k] == r;
                    if (!there)
                        next[more++] = r;
                }
                memcpy(roots, next, sizeof roots);
                found = more;
            }
            for (int i = 0; i < found; i++) {
                unsigned __int128 m = roots[i], x = m * m - (__int128)c;
                int zeros = 0;
                for (; (x & 1) == 0 && zeros < 127; zeros++)
                    x >>= 1;
                if (m >> 53 == 1 && x >> 53 == 0)
                    to[count++] = ldexp((double)(uint64_t)x, zeros - 106);
            }
        }
    return count;
}

START_TEST(roots_are_rounded_to_the_nearest_number)
{
    enum { HARD = 4096, MANY = 200000, BATCH = 1 << 20 };
    static float x[BATCH], y[BATCH];
    double *hard = room(HARD), *more = room(MANY), *got;
    int64_t count = hard_squares(hard);
    ck_assert_int_gt(count, 300);
    for (int set = 0; set < 2; set++) {
        TN_SCOPE;
        int64_t n = set ? MANY : count;
        const double *of = set ? more : hard;
        numbers(more, MANY, 1, 4, TN_F64);
        got = get(tn_sqrt(tn_tensor_from((void *)(uintptr_t)of, TN_F64, TN_SHAPE(n))));
        for (int64_t i = 0; i < n; i++)
            ck_assert_msg(got[i] == sqrt(of[i]), "sqrt(%a) became %a", of[i], got[i]);
    }
    /* float32: every fraction, of even and of odd powers of two, and the ends of the range */
    for (uint32_t first = 0; first < 2u << 23; first += BATCH) {
        TN_SCOPE;
        for (uint32_t i = 0; i < BATCH; i++) {
            uint32_t bits = 0x3f800000u + first + i;
            memcpy(&x[i], &bits, sizeof bits);
        }
        ok(tn_tensor_copy_out(tn_sqrt(tn_tensor_from(x, TN_F32, TN_SHAPE(BATCH))), y, sizeof y));
        for (uint32_t i = 0; i < BATCH; i++)
            ck_assert_msg(y[i] == sqrtf(x[i]), "sqrt(%a) became %a", x[i], y[i]);
    }
    for (int type = 0; type < 2; type++) {
        TN_SCOPE;
        static const double limits[] = { 0,        INFINITY, NAN,     -1, 0x1p-149,       0x1p-126,
                                         0x1p-100, 0x1p126,  0x1p127, 4,  0x1.fffffep127, 0x1p-104,
                                         9 };
        enum { ENDS_HERE = sizeof limits / sizeof *limits };
        double roots[ENDS_HERE];
        for (int i = 0; i < ENDS_HERE; i++)
            roots[i] = stored(sqrt(limits[i]), type ? TN_F64 : TN_F32);
        same("sqrt", tn_default_device(), type ? TN_F64 : TN_F32,
             tn_sqrt(put(tn_default_device(), type ? TN_F64 : TN_F32, TN_SHAPE(ENDS_HERE), limits,
                         DENSE)),
             roots, 0, 0);
    }
    {
        TN_SCOPE;
        static const double far[] = { 0x1p-1074, 0x1p-1022, 0x1p-1000, 0x1p-927,
                                      0x1p-926,  0x1p1020,  0x1p1022,  0x1.fffffffffffffp1023 };
        double roots[8];
        for (int i = 0; i < 8; i++)
            roots[i] = sqrt(far[i]);
        same("sqrt", tn_default_device(), TN_F64,
             tn_sqrt(put(tn_default_device(), TN_F64, TN_SHAPE(8), far, DENSE)), roots, 0, 0);
    }
}
END_TEST

RUN_SUITE("math_float64", float64_functions_are_right_with_what_the_processor_has,
          float64_functions_are_right_with_avx2,
          float64_functions_are_right_with_the_baseline_instructions,
          roots_are_rounded_to_the_nearest_number)

/* SPDX-License-Identifier: MIT
 *
 * Special functions on the CPU by each instruction set, compared with long double: Bessel and gamma
 * functions, exp2, atanh, hypot, logit; and functions of the bits of a number, in every float
 * dtype: nextafter, frexp, signbit, copysign. */
#include "tests/backend/backend.h"

enum { COUNT = 777 };

/* ---- references ------------------------------------------------------------------------------ */

static double ref_bessel(double x, int order)
{
    long double q = (long double)x * (long double)x / 4, term = 1, sum = 0;

    for (int k = 1; k <= order; k++)
        term *= (long double)x / 2 / k;
    for (int k = 1; k < 400; k++) {
        sum += term;
        term *= q / ((long double)k * (k + order));
    }
    return (double)sum;
}

static double ref_i0(double x)
{
    return ref_bessel(x, 0);
}

static double ref_i1(double x)
{
    return ref_bessel(x, 1);
}

static double ref_digamma(double x)
{
    static const long double b[] = { 1.0L / 12,   -1.0L / 120, 1.0L / 252,
                                     -1.0L / 240, 5.0L / 660,  -691.0L / 32760 };
    long double t = x, y = 0, square;

    if (x < 0.5) {
        const long double pi = 3.14159265358979323846264338327950288L;
        return (double)(ref_digamma(1 - x) - pi / tanl(pi * (t - roundl(t))));
    }
    for (; t < 40; t++)
        y -= 1 / t;
    square = 1 / (t * t);
    y += logl(t) - 0.5L / t;
    for (int i = 0, k = 0; i < 6; i++, k++)
        y -= b[i] * powl(square, (long double)(k + 1));
    return (double)y;
}

static double ref_trigamma(double x)
{
    const long double pi = 3.14159265358979323846264338327950288L;
    long double t = x, y = 0, square;

    if (x < 0.5) {
        long double sine = sinl(pi * (t - roundl(t)));
        return (double)(pi * pi / (sine * sine) - ref_trigamma(1 - x));
    }
    for (; t < 60; t++)
        y += 1 / (t * t);
    square = 1 / (t * t);
    return (double)(y + 1 / t + square / 2 + square / t / 6 - square * square / t / 30 +
                    square * square * square / t / 42);
}

static tn_tensor *trigamma(tn_tensor *x)
{
    return tn_polygamma(x, 1);
}

static double ref_lgamma(double x)
{
    return (double)lgammal((long double)x);
}

static double ref_exp2(double x)
{
    return (double)exp2l((long double)x);
}

static double ref_atanh(double x)
{
    return (double)atanhl((long double)x);
}

/* pi times x without its whole turns */
static long double half_turns(double x)
{
    return 3.14159265358979323846264338327950288L * remainderl((long double)x, 2);
}

static double ref_sinc(double x)
{
    return x == 0 ? 1 : (double)(sinl(half_turns(x)) / half_turns(1) / (long double)x);
}

static double ref_sinc_slope(double x)
{
    long double t = half_turns(x), sinc = sinl(t) / half_turns(1) / (long double)x;
    return x == 0 ? 0 : (double)((cosl(t) - sinc) / (long double)x);
}

static tn_tensor *sinc_slope(tn_tensor *x)
{
    return tn_sinc_grad(tn_fill(tn_copy(x), 1), x);
}

static double ref_logit_slope(double x)
{
    return (double)(1 / ((long double)x * (1 - (long double)x)));
}

static tn_tensor *logit_slope(tn_tensor *x)
{
    return tn_logit_grad(tn_fill(tn_copy(x), 1), x);
}

static double ref_logit(double x)
{
    return (double)logl((long double)x / (1 - (long double)x));
}

static tn_tensor *logit(tn_tensor *x)
{
    return tn_logit(x);
}

struct row {
    const char *name;
    tn_tensor *(*op)(tn_tensor *);
    double (*reference)(double);
    double low, high, ulps_f32, ulps_f64, floor; /* the floor where the function passes 0 */
};

static void function_agrees(const struct row *row)
{
    const tn_device *cpu = tn_default_device();

    for (int type = 0; type < 2; type++) {
        TN_SCOPE;
        tn_dtype dtype = type ? TN_F64 : TN_F32;
        double x[COUNT], y[COUNT];

        numbers(x, COUNT, row->low, row->high, dtype);
        for (int i = 0; i < COUNT; i++)
            y[i] = row->reference(x[i]);
        for (enum layout layout = DENSE; layout <= EVERY_SECOND; layout++)
            same(row->name, cpu, dtype, row->op(put(cpu, dtype, TN_SHAPE(COUNT), x, layout)), y,
                 type ? row->ulps_f64 : row->ulps_f32, row->floor);
    }
}

/* ---- the ends -------------------------------------------------------------------------------- */

static void ends_agree(void)
{
    TN_SCOPE;
    const tn_device *cpu = tn_default_device();
    const double inf = INFINITY, nan_ = NAN;

    for (int type = 0; type < 2; type++) {
        tn_dtype dtype = type ? TN_F64 : TN_F32;
        tn_tensor *x = put(cpu, dtype, TN_SHAPE(8), NUMBERS(0, -0.0, inf, -inf, nan_, 1, -1, -2),
                           DENSE);

        same("digamma", cpu, dtype, tn_digamma(x),
             NUMBERS(-inf, inf, inf, nan_, nan_, -0.57721566490153286061, nan_, nan_), 8, 0);
        same("lgamma", cpu, dtype, tn_lgamma(x), NUMBERS(inf, inf, inf, inf, nan_, 0, inf, inf), 2,
             1e-10);
        same("i0", cpu, dtype, tn_i0(x),
             NUMBERS(1, 1, inf, inf, nan_, ref_i0(1), ref_i0(1), ref_i0(2)), 2, 0);
        same("i1", cpu, dtype, tn_i1(x),
             NUMBERS(0, -0.0, inf, -inf, nan_, ref_i1(1), -ref_i1(1), -ref_i1(2)), 2, 0);
        same("exp2", cpu, dtype, tn_exp2(x), NUMBERS(1, 1, inf, 0, nan_, 2, 0.5, 0.25), 0, 0);
        same("atanh", cpu, dtype, tn_atanh(x), NUMBERS(0, -0.0, nan_, nan_, nan_, inf, -inf, nan_),
             0, 0);
        same("hypot", cpu, dtype,
             tn_hypot(x,
                      put(cpu, dtype, TN_SHAPE(8), NUMBERS(3, 0, nan_, 1, inf, 0, nan_, 0), DENSE)),
             NUMBERS(3, 0, inf, inf, inf, 1, nan_, 2), 0, 0);
    }
    same("exp2", cpu, TN_F64,
         tn_exp2(put(cpu, TN_F64, TN_SHAPE(6), NUMBERS(1023.5, 1024, -1022.5, -1074, -1075.5, 2000),
                     DENSE)),
         NUMBERS(exp2(1023.5), inf, exp2(-1022.5), 0x1p-1074, 0, inf), 1, 0);
    same("hypot", cpu, TN_F64,
         tn_hypot(put(cpu, TN_F64, TN_SHAPE(4), NUMBERS(3e300, 3e-310, 1e308, 3), DENSE),
                  put(cpu, TN_F64, TN_SHAPE(4), NUMBERS(4e300, 4e-310, 1e-308, 4), DENSE)),
         NUMBERS(5e300, 5e-310, 1e308, 5), 1, 0);
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* No number of the dtype is between x and the next one, which is on the side of `to`. */
static void next_is_next(tn_dtype dtype, enum layout layout)
{
    TN_SCOPE;
    const tn_device *cpu = tn_default_device();
    double x[COUNT], to[COUNT], *y, *sign;

    numbers(x, COUNT, -4, 4, dtype);
    numbers(to, COUNT, -4, 4, dtype);
    for (int i = 0; i < COUNT; i++) {
        x[i] = i % 9 == 0 ? 0.0 : i % 10 == 0 ? ldexp(1, i % 14) : x[i];
        to[i] = i % 11 == 0 ? x[i] : i % 12 == 0 ? -INFINITY : to[i];
    }
    y = get(tn_nextafter(put(cpu, dtype, TN_SHAPE(COUNT), x, layout),
                         put(cpu, dtype, TN_SHAPE(COUNT), to, layout)));
    for (int i = 0; i < COUNT; i++) {
        double middle = stored((x[i] + y[i]) / 2, dtype);

        ck_assert_msg(x[i] == to[i] ? y[i] == to[i]
                                    : (y[i] > x[i]) == (to[i] > x[i]) && y[i] != x[i],
                      "%s: from %g to %g: %g", tn_dtype_name(dtype), x[i], to[i], y[i]);
        ck_assert_msg(x[i] == 0 || middle == x[i] || middle == y[i], "%s: from %g to %g: %g",
                      tn_dtype_name(dtype), x[i], to[i], y[i]);
    }
    sign = get(tn_copysign(put(cpu, dtype, TN_SHAPE(COUNT), x, layout),
                           put(cpu, dtype, TN_SHAPE(COUNT), to, layout)));
    for (int i = 0; i < COUNT; i++)
        ck_assert_msg(sign[i] == copysign(x[i], to[i]) && signbit(sign[i]) == signbit(to[i]),
                      "%s: copysign of %g, %g: %g", tn_dtype_name(dtype), x[i], to[i], sign[i]);
}

static void parts_agree(tn_dtype dtype, enum layout layout)
{
    TN_SCOPE;
    const tn_device *cpu = tn_default_device();
    double x[COUNT], mantissas[COUNT], exponents[COUNT], signs[COUNT];
    tn_tensor *in, *mantissa, *exponent;

    numbers(x, COUNT, -4, 4, dtype);
    for (int i = 0; i < COUNT; i++) {
        int e;

        x[i] = i == 0 ? 0 : i == 1 ? -0.0 : i == 2 ? INFINITY : i == 3 ? NAN : x[i];
        x[i] = i == 4 ? 0x3p-24 : i % 5 == 0 ? stored(x[i] * ldexp(1, -i % 16), dtype) : x[i];
        mantissas[i] = frexp(x[i], &e);
        exponents[i] = isfinite(x[i]) ? e : 0;
        signs[i] = signbit(x[i]) != 0;
    }
    in = put(cpu, dtype, TN_SHAPE(COUNT), x, layout);
    ok(tn_frexp(in, &mantissa, &exponent));
    same("frexp", cpu, dtype, mantissa, mantissas, 0, 0);
    same("frexp", cpu, TN_I32, exponent, exponents, 0, 0);
    signs[3] = get(tn_signbit(in))[3];
    same("signbit", cpu, TN_BOOL, tn_signbit(in), signs, 0, 0);
}

static void least_numbers_agree(void)
{
    TN_SCOPE;
    const tn_device *cpu = tn_default_device();
    tn_tensor *mantissa, *exponent;

    ok(tn_frexp(put(cpu, TN_F64, TN_SHAPE(3), NUMBERS(0x1p-1074, -0x3p-1074, 0x1p-1022), DENSE),
                &mantissa, &exponent));
    same("frexp", cpu, TN_F64, mantissa, NUMBERS(0.5, -0.75, 0.5), 0, 0);
    same("frexp", cpu, TN_I32, exponent, NUMBERS(-1073, -1072, -1021), 0, 0);
    ok(tn_frexp(put(cpu, TN_F32, TN_SHAPE(2), NUMBERS(0x1p-149, -0x3p-149), DENSE), &mantissa,
                &exponent));
    same("frexp", cpu, TN_F32, mantissa, NUMBERS(0.5, -0.75), 0, 0);
    same("frexp", cpu, TN_I32, exponent, NUMBERS(-148, -147), 0, 0);
    same("nextafter", cpu, TN_F32,
         tn_nextafter(put(cpu, TN_F32, TN_SHAPE(4), NUMBERS(0, 0, 0x1.fffffep127, INFINITY), DENSE),
                      put(cpu, TN_F32, TN_SHAPE(4), NUMBERS(1, -1, INFINITY, 0), DENSE)),
         NUMBERS(0x1p-149, -0x1p-149, INFINITY, 0x1.fffffep127), 0, 0);
}

/* Where a product of digamma's recurrence overflows, where exponents are infinite, and where lcm
 * overflows int8. */
static void largest_numbers_agree(void)
{
    TN_SCOPE;
    const tn_device *cpu = tn_default_device();

    same("digamma", cpu, TN_F64,
         tn_digamma(put(cpu, TN_F64, TN_SHAPE(3), NUMBERS(1e150, 1e308, INFINITY), DENSE)),
         NUMBERS(log(1e150), log(1e308), INFINITY), 2, 0);
    same("ldexp", cpu, TN_F64,
         tn_ldexp(
             put(cpu, TN_F64, TN_SHAPE(4), NUMBERS(0, 1, 3, 1), DENSE),
             put(cpu, TN_F64, TN_SHAPE(4), NUMBERS(-INFINITY, -INFINITY, INFINITY, 1023), DENSE)),
         NUMBERS(0, 0, INFINITY, 0x1p1023), 0, 0);
    same("lcm", cpu, TN_I8,
         tn_lcm(put(cpu, TN_I8, TN_SHAPE(4), NUMBERS(64, 12, 0, 127), DENSE),
                put(cpu, TN_I8, TN_SHAPE(4), NUMBERS(3, -18, 5, 126), DENSE)),
         NUMBERS(-64, 36, 0, -126), 0, 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Functions of two numbers, a few of them zeros, infinities and NaN. */
static void pairs_agree(tn_dtype dtype)
{
    enum { MANY = 500, ODD = 7 };
    static const double odd[ODD] = { 0, -0.0, INFINITY, -INFINITY, NAN, 1e-310, 3e30 };
    const tn_device *cpu = tn_default_device();
    static double a[MANY + ODD * ODD], b[MANY + ODD * ODD], y[3][MANY + ODD * ODD];
    TN_SCOPE;
    numbers(a, MANY, -40, 40, dtype);
    numbers(b, MANY, 0, 50, dtype);
    for (int i = 0; i < ODD * ODD; i++)
        a[MANY + i] = stored(odd[i / ODD], dtype), b[MANY + i] = stored(odd[i % ODD], dtype);
    for (int i = 0; i < MANY + ODD * ODD; i++) {
        const long double most = fmaxl(a[i], b[i]), apart = a[i] == b[i] ? 0 : fabsl(a[i] - b[i]);
        const bool none = isnan(a[i]) || isnan(b[i]);
        y[0][i] = none ? NAN : a[i] == 0 ? 0 : (double)(a[i] * logl(b[i]));
        y[1][i] = none ? NAN : (double)(most + log1pl(expl(-apart)));
        y[2][i] = none ? NAN : (double)(most + log1pl(exp2l(-apart)) / logl(2));
    }
    tn_tensor *ta = put(cpu, dtype, TN_SHAPE(MANY + ODD * ODD), a, DENSE),
              *tb = put(cpu, dtype, TN_SHAPE(MANY + ODD * ODD), b, EVERY_SECOND);
    same("xlogy", cpu, dtype, tn_xlogy(ta, tb), y[0], 3, 0);
    same("logaddexp", cpu, dtype, tn_logaddexp(ta, tb), y[1], 2, 1);
    same("logaddexp2", cpu, dtype, tn_logaddexp2(ta, tb), y[2], 2, 1);

    /* beside 0 the logarithm alone is the result */
    const double step = dtype == TN_F64 ? 1.41 : dtype == TN_F32 ? 0.174 : 0.01;
    for (int i = 0; i < MANY; i++) {
        b[i] = stored(-step * i, dtype);
        y[0][i] = (double)log1pl(expl(b[i]));
        y[1][i] = (double)(log1pl(exp2l(b[i])) / logl(2));
    }
    tb = put(cpu, dtype, TN_SHAPE(MANY), b, DENSE);
    same("logaddexp with 0", cpu, dtype, tn_logaddexp(tn_mul_scalar(tb, 0), tb), y[0], 4, 0);
    same("logaddexp2 with 0", cpu, dtype, tn_logaddexp2(tn_mul_scalar(tb, 0), tb), y[1], 4, 0);
}

static void special_functions_are_right(void)
{
    static const struct row rows[] = {
        { "i0", tn_i0, ref_i0, -30, 30, 1, 8, 0 },
        { "i1", tn_i1, ref_i1, -30, 30, 1, 8, 0 },
        { "digamma", tn_digamma, ref_digamma, 0.01, 50, 1, 8, 0.5 },
        { "digamma", tn_digamma, ref_digamma, -5.4, 0.4, 1, 60, 1 },
        { "polygamma", trigamma, ref_trigamma, 0.01, 50, 1, 8, 0 },
        { "polygamma", trigamma, ref_trigamma, -5.4, 0.4, 1, 60, 1 },
        { "lgamma", tn_lgamma, ref_lgamma, -4.9, 40, 1, 4, 0.5 },
        { "exp2", tn_exp2, ref_exp2, -40, 40, 2, 1, 0 },
        { "atanh", tn_atanh, ref_atanh, -1, 1, 2, 3, 0 },
        { "logit", logit, ref_logit, 0.01, 0.99, 4, 4, 0.5 },
        { "logit_grad", logit_slope, ref_logit_slope, 0.01, 0.99, 2, 2, 0 },
        { "sinc", tn_sinc, ref_sinc, -0.5, 0.5, 2, 2, 0 },
        { "sinc", tn_sinc, ref_sinc, -9, 9, 4, 4, 1e-3 },
        { "sinc_grad", sinc_slope, ref_sinc_slope, -0.25, 0.25, 4, 4, 0.1 },
        { "sinc_grad", sinc_slope, ref_sinc_slope, -9, 9, 8, 8, 0.5 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        function_agrees(&rows[i]);
    ends_agree();
    pairs_agree(TN_F32);
    pairs_agree(TN_F64);
    for (enum layout layout = DENSE; layout <= EVERY_SECOND; layout++) {
        static const tn_dtype floats[] = { TN_F16, TN_BF16, TN_F32, TN_F64 };
        for (int i = 0; i < 4; i++) {
            next_is_next(floats[i], layout);
            parts_agree(floats[i], layout);
        }
    }
    least_numbers_agree();
    largest_numbers_agree();
}

START_TEST(special_functions_are_right_with_what_the_processor_has)
{
    special_functions_are_right();
}
END_TEST

START_TEST(special_functions_are_right_with_avx2)
{
    if (instruction_set("avx2"))
        special_functions_are_right();
}
END_TEST

START_TEST(special_functions_are_right_with_the_baseline_instructions)
{
    if (instruction_set("baseline"))
        special_functions_are_right();
}
END_TEST

RUN_SUITE("special", special_functions_are_right_with_what_the_processor_has,
          special_functions_are_right_with_avx2,
          special_functions_are_right_with_the_baseline_instructions)

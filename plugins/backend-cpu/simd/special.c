/* SPDX-License-Identifier: MIT
 *
 * Special functions. Series of many terms are computed in float64, a term at a time for a group of
 * numbers, which the compiler turns into vectors. Each number is computed alone, so that results
 * do not depend on how numbers are divided into groups. */
#include "math/float64.h"
#include "math/float64_trig.h"
#ifdef __AVX512DQ__
#include "simd/eight.h"
#endif
#include "simd/elementwise.h"

#define PI 3.14159265358979323846
enum { GROUP = 32 };

/* ---- neighbours ------------------------------------------------------------------------------ */

#define NAME(x) x##_f32
#define U uint32_t
#define S int32_t
#define INFINITE 0x7f800000u
#define QUIET 0x7fc00000u
#include "simd/special_template.h"
#undef NAME
#define NAME(x) x##_f64
#define U uint64_t
#define S int64_t
#define INFINITE 0x7ff0000000000000u
#define QUIET 0x7ff8000000000000u
#include "simd/special_template.h"
#undef NAME

#define T float
#define NAME(x) x##_f32
/* clang-format off */
BINARY(nextafter, tn__of_bits_f32(next_f32(tn__bits_f32(a), tn__bits_f32(b))))
/* clang-format on */
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
/* clang-format off */
BINARY(nextafter, tn__of_bits_f64(next_f64(tn__bits_f64(a), tn__bits_f64(b))))
/* clang-format on */
#undef T
#undef NAME

/* ---- mantissas and exponents ----------------------------------------------------------------- */

/* Replaces numbers by mantissas from 1/2 to 1, with their signs, and writes the exponents. Those of
 * 0, infinity and NaN are the number itself and 0. */
static void split_f32(int64_t n, float *x, int32_t *exponents)
{
    TN__EACH
    {
        const int32_t tiny = (x[i] > -0x1p-126f) & (x[i] < 0x1p-126f);
        const uint32_t bits = tn__bits_f32(tiny ? x[i] * 0x1p25f : x[i]);
        const int32_t field = (int32_t)(bits >> 23 & 0xff), odd = (x[i] == 0) | (field == 0xff);
        const float mantissa = tn__of_bits_f32((bits & 0x807fffffu) | 0x3f000000u);
        exponents[i] = odd ? 0 : field - 126 - (tiny ? 25 : 0);
        x[i] = odd ? x[i] : mantissa;
    }
}
static void split_f64(int64_t n, double *x, int32_t *exponents)
{
    TN__EACH
    {
        const int64_t tiny = (x[i] > -0x1p-1022) & (x[i] < 0x1p-1022);
        const uint64_t bits = tn__bits_f64(tiny ? x[i] * 0x1p54 : x[i]);
        const int64_t field = (int64_t)(bits >> 52 & 0x7ff), odd = (x[i] == 0) | (field == 0x7ff);
        const double mantissa = tn__of_bits_f64((bits & 0x800fffffffffffffu) | 0x3fe0000000000000u);
        exponents[i] = (int32_t)(odd ? 0 : field - 1022 - (tiny ? 54 : 0));
        x[i] = odd ? x[i] : mantissa;
    }
}

/* ---- exponentials and logarithms ------------------------------------------------------------- */

/* ln(x / (1 - x)) of x limited to [p, q]; a NaN limit has no effect. If p > q, a number below p
 * becomes p, as in PyTorch. */
TN__INTO_LOOPS float log_odds_f32(float x, float p, float q)
{
    float high = x > q ? q : x, in = x < p ? p : high;
    float odds = in / (1 - in);
    int tiny = odds < 0x1p-126f;
    float y = tn__near_log_f32(tiny ? odds * 0x1p25f : odds) - (tiny ? 17.328679514f : 0);
    y = odds > TN__LARGEST_F32 ? odds : y;
    y = odds == 0 ? -__builtin_inff() : y;
    return odds >= 0 ? y : __builtin_nanf("");
}
TN__INTO_LOOPS double odds_f64(double x, double p, double q)
{
    double high = x > q ? q : x, in = x < p ? p : high;
    return in / (1 - in);
}

#ifndef __AVX512DQ__
/* 2^x = 2^n e^(f ln 2), where n is x rounded to the nearest integer and f = x - n; ln 2 is given in
 * two parts. */
TN__INTO_LOOPS double power_of_2(double x)
{
    double low = x < -1076.0 ? -1076.0 : x, in = low > 1025.0 ? 1025.0 : low, rest;
    double shifted = in + (0x1.8p52 + 2046), f = in - (shifted - (0x1.8p52 + 2046));
    double r = tn__product64(f, 0x1.62e42fefa39efp-1, &rest);
    rest = TN__MA64(f, 0x1.abc9e3b39803fp-56, rest);
    return tn__scaled64(1 + (r + tn__exp64_tail(r, rest)), tn__bits_f64(shifted));
}
#endif

/* sqrt(a^2 + b^2). Both are multiplied by a power of 2 first, so that no square overflows or loses
 * digits. If one is infinite, so is the result, even if the other is NaN. */
TN__INTO_LOOPS double length(double a, double b)
{
    double p = __builtin_fabs(a), q = __builtin_fabs(b), most = p > q ? p : q;
    double scale = most > 0x1p500 ? 0x1p-600 : most < 0x1p-400 ? 0x1p600 : 1;
    double back = most > 0x1p500 ? 0x1p600 : most < 0x1p-400 ? 0x1p-600 : 1;
    double y = __builtin_sqrt(TN__MA64(p * scale, p * scale, q * scale * (q * scale))) * back;
    return ((p > TN__LARGEST_F64) | (q > TN__LARGEST_F64)) ? TN__INFINITY_F64 : y;
}

#define LN_2 0.69314718055994530942

/* The larger of a and b, NaN if either is NaN. */
TN__INTO_LOOPS float larger_f32(float a, float b)
{
    return a > b ? a : b != b ? b : a < b ? b : a;
}
TN__INTO_LOOPS double larger_f64(double a, double b)
{
    return a > b ? a : b != b ? b : a < b ? b : a;
}

/* -|a - b| / 2, and 0 if both are the same infinity. Half, because the square of e^(x/2) may be
 * subnormal, which tn__near_exp_below_f32 and tn__exp64_below never return. */
TN__INTO_LOOPS float below_f32(float a, float b)
{
    return a == b ? 0 : -__builtin_fabsf(a - b) * 0.5f;
}
TN__INTO_LOOPS double below_f64(double a, double b)
{
    return a == b ? 0 : -__builtin_fabs(a - b) * 0.5;
}

/* e^(2 x) and 2^(2 x) for x <= 0, as squares. 2^x is e^(x ln 2), and the rounding error of x ln 2
 * would be large for a large |x|, so it is added afterwards. In float32, x is split into a whole
 * number, whose product with the high part of ln 2 is exact, and a rest. */
TN__INTO_LOOPS float exp_square_f32(float x)
{
    float y = tn__near_exp_below_f32(x);
    return y * y;
}
TN__INTO_LOOPS float exp2_square_f32(float x)
{
    float in = x < -200 ? -200 : x, whole = (in + 0x1.8p23f) - 0x1.8p23f;
    float high = whole * 0x1.62ep-1f, low = whole * 3.1946185e-05f;
    float near = TN__MA(in - whole, (float)LN_2, low), sum = high + near;
    float y = tn__near_exp_below_f32(sum);
    y = TN__MA(y, (high - sum) + near, y);
    return y * y;
}
TN__INTO_LOOPS double exp_square_f64(double x)
{
    double y = tn__exp64_below(x);
    return y * y;
}
TN__INTO_LOOPS double exp2_square_f64(double x)
{
    double in = x < -2000 ? -2000 : x, rest, r = tn__product64(in, 0x1.62e42fefa39efp-1, &rest);
    double y = tn__exp64_below(r);
    y = TN__MA64(y, TN__MA64(in, 0x1.abc9e3b39803fp-56, rest), y);
    return y * y;
}

/* a ln b, and 0 if a is 0 and b a number */
TN__INTO_LOOPS float times_log_f32(float a, float b)
{
    float y = a * tn__log_f32(b);
    return ((a == 0) & (b == b)) ? 0 : y;
}
TN__INTO_LOOPS double times_log_f64(double a, double b)
{
    double y = a * tn__log64(b);
    return ((a == 0) & (b == b)) ? 0 : y;
}
/* atanh |x| = log1p(2 |x| / (1 - |x|)) / 2 */
TN__INTO_LOOPS double atanh_of(double x)
{
    double size = __builtin_fabs(x), y = 0.5 * tn__log1p_64(2 * size / (1 - size));
    return __builtin_copysign(y, x);
}

#define T float
#define NAME(x) x##_f32
/* clang-format off */
UNARY(logit, log_odds_f32(a, p, q))
BINARY(xlogy, times_log_f32(a, b))
BINARY(logaddexp, larger_f32(a, b) + tn__near_log1p_f32(exp_square_f32(below_f32(a, b))))
BINARY(logaddexp2, larger_f32(a, b) + (float)(1 / LN_2) *
                   tn__near_log1p_f32(exp2_square_f32(below_f32(a, b))))
/* clang-format on */
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
/* clang-format off */
BINARY(xlogy, times_log_f64(a, b))
BINARY(logaddexp, larger_f64(a, b) + tn__log1p_unit64(exp_square_f64(below_f64(a, b))))
BINARY(logaddexp2, larger_f64(a, b) + (1 / LN_2) *
                   tn__log1p_unit64(exp2_square_f64(below_f64(a, b))))
UNARY(atanh, atanh_of(a))
BINARY(hypot, length(a, b))
/* clang-format on */
#undef T
#undef NAME

#ifdef __AVX512DQ__
static void exp2_f64(TN__LOOP_PARAMETERS)
{
    (void)b, (void)sb, (void)param;
    tn__loop8(n, y, sy, a, sa, tn__exp2_8, tn__never8, NULL);
}

/* The quotients first, then their logarithms. */
static void logit_f64(TN__LOOP_PARAMETERS)
{
    enum { BLOCK = 256 };
    double odds[BLOCK];
    (void)b, (void)sb;
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t size = n - at < BLOCK ? n - at : BLOCK;
        for (int64_t i = 0; i < size; i++)
            odds[i] = odds_f64(*(const double *)(const void *)(a + (at + i) * sa), param[0],
                               param[1]);
        tn__loop8(size, y + at * sy, sy, (const char *)odds, (int64_t)sizeof(double), tn__log8,
                  tn__never8, NULL);
    }
}
#else
#define T double
#define NAME(x) x##_f64
/* clang-format off */
UNARY(logit, tn__log64(odds_f64(a, p, q)))
UNARY(exp2, power_of_2(a))
/* clang-format on */
#undef T
#undef NAME
#endif

/* ---- sines of half turns --------------------------------------------------------------------- */

/* sin(pi x), and cos(pi x) in *cosine. x loses whole turns and then quarters of a turn first, all
 * of which is exact, so that the multiple of pi is at most pi / 4. */
TN__INTO_LOOPS float half_turns_f32(float x, float *cosine)
{
    float in = x - 2 * __builtin_rintf(x * 0.5f), shifted = in * 2 + 0x1.8p23f;
    float r = (in - (shifted - 0x1.8p23f) * 0.5f) * (float)PI, z = r * r;
    float s = tn__near_sine_f32(r, z), c = tn__near_cosine_f32(z);
    uint32_t n = tn__bits_f32(shifted);
    float sine = n & 1 ? c : s, other = n & 1 ? s : c;
    *cosine = tn__of_bits_f32(tn__bits_f32(other) ^ ((n + 1) & 2) << 30);
    return tn__of_bits_f32(tn__bits_f32(sine) ^ (n & 2) << 30);
}
TN__INTO_LOOPS double half_turns_f64(double x, double *cosine)
{
    double in = x - 2 * __builtin_rint(x * 0.5), shifted = in * 2 + 0x1.8p52;
    double r = (in - (shifted - 0x1.8p52) * 0.5) * PI;
    double s = tn__sine64(r, 0), c = tn__cosine64(r, 0);
    uint64_t n = tn__bits_f64(shifted);
    double sine = n & 1 ? c : s, other = n & 1 ? s : c;
    *cosine = tn__of_bits_f64(tn__bits_f64(other) ^ ((n + 1) & 2) << 62);
    return tn__of_bits_f64(tn__bits_f64(sine) ^ (n & 2) << 62);
}

#define TEMPLATE "simd/sinc_template.h"
#include "base/for_floats.h"

/* ---- groups ---------------------------------------------------------------------------------- */

/* The logarithms of a group of positive normal numbers. */
static inline void logs_of(const double *x, double *y)
{
#ifdef __AVX512DQ__
    tn__contiguous8(GROUP, y, x, tn__log8, tn__never8, NULL);
#else
    for (int j = 0; j < GROUP; j++)
        y[j] = tn__near_log64(x[j]);
#endif
}

/* Computes y of a group of numbers. */
typedef void of_group(const double *x, double *y);

TN__INTO_LOOPS void in_groups(int64_t n, char *y, int64_t sy, const char *a, int64_t sa,
                              bool single, of_group *of)
{
    for (int64_t at = 0; at < n; at += GROUP) {
        int64_t count = n - at < GROUP ? n - at : GROUP;
        double in[GROUP], out[GROUP];
        for (int64_t i = 0; i < count; i++) {
            const void *from = a + (at + i) * sa;
            in[i] = single ? (double)*(const float *)from : *(const double *)from;
        }
        for (int64_t i = count; i < GROUP; i++)
            in[i] = 1;
        of(in, out);
        for (int64_t i = 0; i < count; i++) {
            void *to = y + (at + i) * sy;
            if (single)
                *(float *)to = (float)out[i];
            else
                *(double *)to = out[i];
        }
    }
}

#define GROUPS(name, of, s, single)                                                                \
    static void name##_##s(TN__LOOP_PARAMETERS)                                                    \
    {                                                                                              \
        (void)b, (void)sb, (void)param;                                                            \
        in_groups(n, y, sy, a, sa, single, of);                                                    \
    }

/* ---- modified Bessel functions i0 and i1 ----------------------------------------------------- */

/* Up to MIDDLE the power series is used, in which no terms cancel, and above it the asymptotic
 * series, whose smallest term is e^(-2 MIDDLE). */
#define MIDDLE 20.0
enum { POWER_TERMS = 48, ASYMPTOTIC_TERMS = 24 };

/* e^x / sqrt(2 pi x) times the sum over k of the products of ((2i - 1)^2 - 4 order^2) / (8 i x), i
 * from 1 to k. Multiplies by e^(x / 2) twice, because e^x overflows before the result does. */
static void bessel_above(const double *x, double *y, int order)
{
    double inverse[GROUP], sum[GROUP];
    for (int j = 0; j < GROUP; j++) {
        inverse[j] = 1 / (x[j] > MIDDLE ? x[j] : MIDDLE);
        sum[j] = 1;
    }
    for (int k = ASYMPTOTIC_TERMS; k >= 1; k--) {
        const double factor = ((2.0 * k - 1) * (2.0 * k - 1) - 4.0 * (double)(order * order)) /
                              (8.0 * k);
        for (int j = 0; j < GROUP; j++)
            sum[j] = TN__MA64(inverse[j] * sum[j], factor, 1);
    }
    for (int j = 0; j < GROUP; j++) {
        double size = x[j] > MIDDLE ? x[j] : MIDDLE, half = tn__exp64(0.5 * size);
        double all = sum[j] / __builtin_sqrt(size * (2 * PI)) * half * half;
        all = size > TN__LARGEST_F64 ? size : all;
        y[j] = x[j] > MIDDLE ? all : y[j];
    }
}

/* The sum over k of q^k / (k! (k + order)!) with q = (x / 2)^2, times (x / 2)^order */
TN__INTO_LOOPS void bessel(const double *x, double *y, const int order)
{
    double size[GROUP], q[GROUP], sum[GROUP], most = 0;
    for (int j = 0; j < GROUP; j++) {
        size[j] = __builtin_fabs(x[j]);
        double low = size[j] > MIDDLE ? MIDDLE : size[j];
        most = size[j] > most ? size[j] : most;
        q[j] = 0.25 * low * low;
        sum[j] = 1;
    }
    for (int k = POWER_TERMS; k >= 1; k--) {
        const double factor = 1.0 / (double)(k * (k + order));
        for (int j = 0; j < GROUP; j++)
            sum[j] = TN__MA64(q[j] * sum[j], factor, 1);
    }
    for (int j = 0; j < GROUP; j++)
        y[j] = order == 1 ? 0.5 * size[j] * sum[j] : sum[j];
    if (most > MIDDLE)
        bessel_above(size, y, order);
    for (int j = 0; order == 1 && j < GROUP; j++)
        y[j] = __builtin_copysign(y[j], x[j]);
}

static void i0_group(const double *x, double *y)
{
    bessel(x, y, 0);
}

static void i1_group(const double *x, double *y)
{
    bessel(x, y, 1);
}

/* ---- the gamma function ---------------------------------------------------------------------- */

enum { STEPS = 12, LEAST = 8, BERNOULLI = 8 };
/* B(2), B(4), ... B(16) */
static const double bernoulli[BERNOULLI] = { 1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                             5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510 };

/* x - round(x), at most 1/2 in size */
TN__INTO_LOOPS double fraction(double x)
{
    return x - __builtin_rint(x);
}

/* cot(pi f) for |f| <= 1/2. Near 1/2 it is a tangent, so that it is exactly 0 for 1/2. */
TN__INTO_LOOPS double cotangent_of_pi(double f)
{
    double size = __builtin_fabs(f), tangent = tn__tan64(PI * (size > 0.25 ? 0.5 - size : size));
    return __builtin_copysign(size > 0.25 ? tangent : 1 / tangent, f);
}

/* digamma(x + STEPS), by its asymptotic series, minus the sum of 1 / (x + k) for k < STEPS. Below
 * 1/2 the result is digamma(1 - x) - pi cot(pi x). At 0 there is a pole, and the sign of the zero
 * tells its side; at the negative integers the side is not known, so the result is NaN. */
static void digamma_group(const double *x, double *y)
{
    double t[GROUP], squares[GROUP], steps[GROUP] = { 0 }, series[GROUP] = { 0 }, least = 1;
    for (int j = 0; j < GROUP; j++) {
        least = x[j] < least ? x[j] : least;
        t[j] = x[j] < 0.5 ? 1 - x[j] : x[j];
        squares[j] = 1 / ((t[j] + STEPS) * (t[j] + STEPS));
    }
    for (int k = 0; k < STEPS; k += 2)
        for (int j = 0; j < GROUP; j++) {
            double large = t[j] < 1e150 ? t[j] : 1e150; /* the product must not overflow */
            double a = large + k, b = large + (k + 1);
            steps[j] += (a + b) / (a * b);
        }
    for (int i = BERNOULLI; i >= 1; i--) {
        const double term = bernoulli[i - 1] / (2.0 * i);
        for (int j = 0; j < GROUP; j++)
            series[j] = TN__MA64(series[j], squares[j], term);
    }
    for (int j = 0; j < GROUP; j++) {
        double z = t[j] + STEPS, inverse = 1 / z;
        double all = tn__near_log64(z) - 0.5 * inverse - series[j] * squares[j] - steps[j];
        y[j] = t[j] > TN__LARGEST_F64 ? t[j] : all;
    }
    if (least >= 0.5)
        return;
    for (int j = 0; j < GROUP; j++) {
        double f = fraction(x[j]), mirrored = y[j] - PI * cotangent_of_pi(f);
        mirrored = f == 0 ? TN__NAN_F64 : mirrored;
        mirrored = x[j] == 0 ? __builtin_copysign(TN__INFINITY_F64, -x[j]) : mirrored;
        y[j] = x[j] < 0.5 ? mirrored : y[j];
    }
}

/* ln |gamma(x)| of float32: Stirling's series at x, or for x < LEAST at x + LEAST, less the
 * logarithm of x (x + 1) ... (x + LEAST - 1). For float64 this would be too inexact near 1 and 2.
 * Below 1/2 the result is ln(pi / |sin(pi x)|) - ln |gamma(1 - x)|. */
static void lgamma_group(const double *x, double *y)
{
    double t[GROUP], product[GROUP], inverse[GROUP], series[GROUP] = { 0 };
    double shifted[GROUP], logs[GROUP];
    double least = 1;
    for (int j = 0; j < GROUP; j++) {
        least = x[j] < least ? x[j] : least;
        t[j] = x[j] < 0.5 ? 1 - x[j] : x[j];
        product[j] = 1;
        inverse[j] = 1 / (t[j] < LEAST ? t[j] + LEAST : t[j]);
    }
    for (int k = 0; k < LEAST; k++)
        for (int j = 0; j < GROUP; j++)
            product[j] *= t[j] < LEAST ? t[j] + k : 1;
    for (int i = BERNOULLI; i >= 1; i--) {
        const double term = bernoulli[i - 1] / (2.0 * i * (2.0 * i - 1));
        for (int j = 0; j < GROUP; j++)
            series[j] = TN__MA64(series[j], inverse[j] * inverse[j], term);
    }
    for (int j = 0; j < GROUP; j++)
        shifted[j] = t[j] < LEAST ? t[j] + LEAST : t[j];
    logs_of(shifted, logs);
    logs_of(product, product);
    for (int j = 0; j < GROUP; j++) {
        double z = shifted[j],
               all = (z - 0.5) * logs[j] - z + 0.91893853320467274178 + series[j] * inverse[j];
        all -= product[j];
        all = ((t[j] == 1) | (t[j] == 2)) ? 0 : all;
        y[j] = t[j] > TN__LARGEST_F64 ? t[j] : all;
    }
    if (least >= 0.5)
        return;
    for (int j = 0; j < GROUP; j++) {
        double sine = __builtin_fabs(tn__sin64(PI * fraction(x[j])));
        double mirrored = 1.14472988584940017414 - tn__log64(sine) - y[j];
        mirrored = __builtin_fabs(x[j]) > TN__LARGEST_F64 ? __builtin_fabs(x[j]) : mirrored;
        y[j] = x[j] < 0.5 ? mirrored : y[j];
    }
}

GROUPS(i0, i0_group, f32, true)
GROUPS(i0, i0_group, f64, false)
GROUPS(i1, i1_group, f32, true)
GROUPS(i1, i1_group, f64, false)
GROUPS(digamma, digamma_group, f32, true)
GROUPS(digamma, digamma_group, f64, false)
GROUPS(lgamma, lgamma_group, f32, true)

/* ---- the table ------------------------------------------------------------------------------- */

#define FLOATS(name) [TN__EW_##name] = { name##_f32, name##_f64 }
const struct tn__simd_special TN__SIMD_TABLE(special) = {
    .ew = {
        FLOATS(nextafter),
        FLOATS(logit),
        FLOATS(logit_grad),
        FLOATS(sinc),
        FLOATS(sinc_grad),
        FLOATS(xlogy),
        FLOATS(logaddexp),
        FLOATS(logaddexp2),
        [TN__EW_exp2] = { NULL, exp2_f64 },
        [TN__EW_atanh] = { NULL, atanh_f64 },
        [TN__EW_hypot] = { NULL, hypot_f64 },
        FLOATS(i0),
        FLOATS(i1),
        FLOATS(digamma),
        [TN__EW_lgamma] = { lgamma_f32, NULL },
    },
    .split_f32 = split_f32,
    .split_f64 = split_f64,
};

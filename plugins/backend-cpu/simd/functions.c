/* SPDX-License-Identifier: MIT
 *
 * Functions that take several steps a number, and their derivatives times a gradient: compiled
 * once per instruction set. Those of float32 have a way for ordinary numbers
 * (math/float32.h) and one for the others. */
#include <math.h>
#include <string.h>

#include "math/float32_via_float64.h"
#include "math/float64_erf.h"
#include "math/float64_pow.h"
#include "math/float64_trig.h"
#include "simd/elementwise.h"
#include "simd/simd.h"

/* ---- in blocks ------------------------------------------------------------------------------- */

/* What is seen of a block's numbers while it goes the short way, and which of them do not fit. By a
 * key, whose largest is found at the price of one step a number, or by a test. */
#define KEYED(check, key, limit)                                                                   \
    TN__INTO_LOOPS uint32_t check##_odd(float a, float b)                                          \
    {                                                                                              \
        (void)b;                                                                                   \
        return (key) > (limit);                                                                    \
    }                                                                                              \
    TN__INTO_LOOPS uint32_t check##_watch(uint32_t seen, float a, float b)                         \
    {                                                                                              \
        const uint32_t now = (key);                                                                \
        (void)b;                                                                                   \
        return now > seen ? now : seen;                                                            \
    }                                                                                              \
    static const uint32_t check##_limit = (limit);
#define TESTED(check, T, fits)                                                                     \
    TN__INTO_LOOPS seen_##T check##_odd(T a, T b)                                                  \
    {                                                                                              \
        return !fits(a, b);                                                                        \
    }                                                                                              \
    TN__INTO_LOOPS seen_##T check##_watch(seen_##T seen, T a, T b)                                 \
    {                                                                                              \
        return fits(a, b) ? seen : 1;                                                              \
    }                                                                                              \
    static const seen_##T check##_limit = 0;
typedef uint32_t seen_float;
typedef uint64_t seen_double;

/* A block goes the short way; where numbers in it do not fit, these go the other one after it. The
 * result of a number depends on nothing else. y may be the same memory as a or b: then the numbers
 * are still wanted when it is written. */
#define GUARDED(name, T, check, near, far)                                                         \
    static void name(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,  \
                     int64_t sb, const double *param)                                              \
    {                                                                                              \
        enum { BLOCK = 4096 / sizeof(T) };                                                         \
        const bool direct = sy == (int64_t)sizeof(T) && yp != ap && yp != bp;                      \
        T xa[BLOCK], xb[BLOCK], room[BLOCK];                                                       \
        (void)param;                                                                               \
        for (int64_t at = 0; at < n; at += BLOCK) {                                                \
            const int64_t size = n - at < BLOCK ? n - at : BLOCK;                                  \
            const T *a = in_a_row_##T(size, ap + at * sa, sa, xa);                                 \
            const T *b = bp == ap ? a : in_a_row_##T(size, bp + at * sb, sb, xb);                  \
            char *to = yp + at * sy;                                                               \
            T *y = direct ? (T *)(void *)to : room;                                                \
            seen_##T seen = 0;                                                                     \
            TN__IVDEP for (int64_t i = 0; i < size; i++)                                           \
            {                                                                                      \
                seen = check##_watch(seen, a[i], b[i]);                                            \
                y[i] = near(a[i], b[i]);                                                           \
            }                                                                                      \
            for (int64_t i = 0; seen > check##_limit && i < size; i++)                             \
                if (check##_odd(a[i], b[i]))                                                       \
                    y[i] = far(a[i], b[i]);                                                        \
            if (!direct && sy == (int64_t)sizeof *y)                                               \
                memcpy(to, y, (size_t)size * sizeof *y);                                           \
            else if (!direct)                                                                      \
                for (int64_t i = 0; i < size; i++)                                                 \
                    *(T *)(void *)(to + i * sy) = y[i];                                            \
        }                                                                                          \
    }
#define IN_A_ROW(T)                                                                                \
    static inline const T *in_a_row_##T(int64_t n, const char *from, int64_t stride, T *to)        \
    {                                                                                              \
        if (stride == (int64_t)sizeof *to)                                                         \
            return (const T *)(const void *)from;                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = *(const T *)(const void *)(from + i * stride);                                 \
        return to;                                                                                 \
    }
IN_A_ROW(float)
IN_A_ROW(double)
KEYED(exp, tn__size_key(a), TN__EXP_LIMIT)
KEYED(log, tn__log_key(a), TN__LOG_LIMIT)
KEYED(circle, tn__size_key(a), TN__CIRCLE_LIMIT)
KEYED(erfc, tn__size_key(a), TN__ERFC_LIMIT)
TESTED(always, float, tn__fits_always)
TESTED(angle, float, tn__angle_fits)
TESTED(rest, float, tn__rest_fits)
TESTED(power, float, tn__power_fits)

/* Of one number: `_near` and `_far` with an operand that is not used. */
#define WAY(name, expr)                                                                            \
    TN__INTO_LOOPS float name(float a, float b)                                                    \
    {                                                                                              \
        (void)b;                                                                                   \
        return expr;                                                                               \
    }
#define WAYS(name, near_expr, far_expr)                                                            \
    WAY(name##_near, near_expr)                                                                    \
    WAY(name##_far, far_expr)
WAYS(exp, tn__near_exp_f32(a), tn__exp_f32(a))
WAYS(log, tn__near_log_f32(a), tn__log_f32(a))
WAYS(log2, tn__near_log2_f32(a), tn__log2_f32(a))
WAYS(log10, tn__near_log10_f32(a), tn__log10_f32(a))
WAYS(sigmoid, tn__near_sigmoid_f32(a), 1 / (1 + tn__exp_f32(-a)))
WAYS(silu, a *tn__near_sigmoid_f32(a), a / (1 + tn__exp_f32(-a)))
WAYS(mish, tn__near_mish_f32(a), tn__mish_f32(a))
WAYS(sin, tn__near_circle_f32(a, 0), tn__turn_fits(a, b) ? tn__wide_sin(a, b) : sinf(a))
WAYS(cos, tn__near_circle_f32(a, 1), tn__turn_fits(a, b) ? tn__wide_cos(a, b) : cosf(a))
WAYS(tan, tn__near_tan_f32(a), tn__turn_fits(a, b) ? tn__wide_tan(a, b) : tanf(a))
WAYS(erfc, tn__near_erfc_f32(a), erfcf(a))
static inline float power_far(float a, float b)
{
    return tn__power_is_plain(a, b) ? tn__wide_pow(a, b) : powf(a, b);
}
static inline float remainder_far(float a, float b)
{
    float rest = fmodf(a, b);
    return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}
GUARDED(exp_f32, float, exp, exp_near, exp_far)
GUARDED(log_f32, float, log, log_near, log_far)
GUARDED(log2_f32, float, log, log2_near, log2_far)
GUARDED(log10_f32, float, log, log10_near, log10_far)
GUARDED(sigmoid_f32, float, exp, sigmoid_near, sigmoid_far)
GUARDED(silu_f32, float, exp, silu_near, silu_far)
GUARDED(mish_f32, float, exp, mish_near, mish_far)
GUARDED(sin_f32, float, circle, sin_near, sin_far)
GUARDED(cos_f32, float, circle, cos_near, cos_far)
GUARDED(tan_f32, float, circle, tan_near, tan_far)
GUARDED(erfc_f32, float, erfc, erfc_near, erfc_far)
GUARDED(sinh_f32, float, always, tn__wide_sinh, tn__wide_sinh)
GUARDED(cosh_f32, float, always, tn__wide_cosh, tn__wide_cosh)
GUARDED(atan2_f32, float, angle, tn__near_atan2_f32, atan2f)
GUARDED(fmod_f32, float, rest, tn__wide_fmod, fmodf)
GUARDED(remainder_f32, float, rest, tn__wide_remainder, remainder_far)
GUARDED(div_floor_f32, float, rest, tn__wide_div_floor, tn__div_floor_f32)
GUARDED(pow_f32, float, power, tn__near_pow_f32, power_far)

/* ---- one way for all ------------------------------------------------------------------------- */

TN__UNARY(expm1_f32, float, tn__expm1_f32(a))
TN__UNARY(log1p_f32, float, tn__log1p_f32(a))
TN__UNARY(tanh_f32, float, tn__near_tanh_f32(a))
TN__UNARY(erf_f32, float, tn__near_erf_f32(a))
TN__UNARY(atan_f32, float, tn__near_atan_f32(a))
TN__UNARY(asin_f32, float, tn__near_asin_f32(a))
TN__UNARY(erfinv_f32, float, tn__near_erfinv_f32(a))
TN__UNARY(acos_f32, float, tn__near_acos_f32(a))
TN__UNARY(gelu_f32, float, a * 0.5f * (1 + tn__near_erf_f32(a * 0.70710678118654752440f)))

/* ---- float64 --------------------------------------------------------------------------------- */

#define WAY64(name, expr)                                                                          \
    TN__INTO_LOOPS double name(double a, double b)                                                 \
    {                                                                                              \
        (void)b;                                                                                   \
        return expr;                                                                               \
    }
#define WAYS64(name, fits, near, far)                                                              \
    WAY64(name##_near64, near)                                                                     \
    WAY64(name##_far64, far)                                                                       \
    TESTED(name##64, double, fits)                                                                 \
    GUARDED(name##_f64, double, name##64, name##_near64, name##_far64)
/* One way for all: NaN goes the other one, which is the same. */
#define ALL64(name, expr) WAYS64(name, is_number64, expr, expr)
TN__INTO_LOOPS int32_t is_number64(double a, double b)
{
    (void)b;
    return a == a;
}
TN__INTO_LOOPS int32_t slope_fits64(double a, double b)
{
    return tn__normal64_fits(b, a);
}
WAYS64(exp, tn__exp64_fits, tn__near_exp64(a), tn__exp64(a))
WAYS64(sigmoid, tn__exp64_fits, tn__near_sigmoid64(a), tn__sigmoid64(a))
WAYS64(silu, tn__exp64_fits, a / (1 + tn__near_exp64(-a)), a / (1 + tn__exp64(-a)))
WAYS64(expm1, tn__exp64_fits, tn__near_expm1_64(a), tn__expm1_64(a))
WAYS64(log, tn__log64_fits, tn__near_log64(a), tn__log64(a))
WAYS64(log2, tn__log64_fits, tn__near_log2_64(a), tn__log2_64(a))
WAYS64(log10, tn__log64_fits, tn__near_log10_64(a), tn__log10_64(a))
WAYS64(erfc, tn__erfc64_fits, tn__near_erfc64(a), tn__erfc64(a))
WAYS64(gelu, tn__normal64_fits, tn__near_gelu64(a), tn__gelu64(a))
WAYS64(gelu_grad, slope_fits64, a *tn__near_gelu_slope64(b), a *tn__gelu_slope64(b))
WAYS64(sin, tn__circle64_fits, tn__sin64(a), sin(a))
WAYS64(cos, tn__circle64_fits, tn__cos64(a), cos(a))
WAYS64(tan, tn__circle64_fits, tn__tan64(a), tan(a))
WAYS64(erfinv, tn__erfinv64_fits, tn__erfinv64(a), tn__erfinv64_far(a))
ALL64(log1p, tn__log1p_64(a))
ALL64(tanh, tn__tanh64(a))
ALL64(sinh, tn__sinh64(a))
ALL64(cosh, tn__cosh64(a))
ALL64(mish, tn__mish64(a))
ALL64(asin, tn__asin64(a))
ALL64(acos, tn__acos64(a))
ALL64(atan, tn__atan64(a))
ALL64(erf, tn__erf64(a))
TESTED(angle64, double, tn__angle64_fits)
TESTED(pow64, double, tn__pow64_fits)
TESTED(rest64, double, tn__rest64_fits)
GUARDED(atan2_f64, double, angle64, tn__atan2_64, atan2)
GUARDED(pow_f64, double, pow64, tn__pow64, pow)
GUARDED(fmod_f64, double, rest64, tn__fmod64, fmod)
GUARDED(remainder_f64, double, rest64, tn__remainder64, tn__remainder64_far)
GUARDED(div_floor_f64, double, rest64, tn__div_floor64, tn__div_floor64_far)

/* ---- for both types -------------------------------------------------------------------------- */

/* The functions that they are written with. */
#define EXP_BELOW_f32 tn__near_exp_below_f32
#define EXP_BELOW_f64 tn__exp64_below
#define EXPM1_BELOW_f32 tn__near_expm1_below_f32
#define EXPM1_BELOW_f64 tn__expm1_64
#define TANH_f32 tn__near_tanh_f32
#define TANH_f64 tn__tanh64
#define SOFTPLUS_f32 tn__near_softplus_f32
#define SOFTPLUS_f64 tn__softplus64
#define LARGEST_f32 TN__LARGEST_F32
#define LARGEST_f64 1.7976931348623157e308
#define ROOT_TWO_OVER_PI 0.79788456080286535588
#define CUBIC 0.044715

/* 1 / (1 + e^-x) for x of any size: e^-|x| does not overflow. */
#define SMOOTH_STEP(T, s)                                                                          \
    TN__INTO_LOOPS T step_##s(T x)                                                                 \
    {                                                                                              \
        T e = EXP_BELOW_##s(-(x < 0 ? -x : x));                                                    \
        return (x < 0 ? e : 1) / (1 + e);                                                          \
    }
SMOOTH_STEP(float, f32)
SMOOTH_STEP(double, f64)

/* With s = sigmoid(x): s + x s (1 - s). */
#define SLOPES_OF(T, s)                                                                            \
    TN__INTO_LOOPS T silu_slope_##s(T x)                                                           \
    {                                                                                              \
        T y = step_##s(x);                                                                         \
        return y * (1 + x * (1 - y));                                                              \
    }                                                                                              \
    /* e w / (e^2 + 2 e + 2)^2, w = 4 (x + 1) + 4 e^2 + e^3 + e (4 x + 6), e = e^x; 1 far up. */   \
    TN__INTO_LOOPS T mish_slope_##s(T x)                                                           \
    {                                                                                              \
        T in = x > 20 ? (T)20 : x, e = EXP_BELOW_##s(in > 0 ? -in : in);                           \
        e = in > 0 ? 1 / e : e;                                                                    \
        T w = 4 * (in + 1) + e * ((4 * in + 6) + e * (4 + e)), d = 2 + e * (2 + e);                \
        T slope = e / d * (w / d);                                                                 \
        return x > 20 ? 1 : slope;                                                                 \
    }                                                                                              \
    TN__INTO_LOOPS T gelu_tanh_slope_##s(T x)                                                      \
    {                                                                                              \
        T square = x * x, t = step_##s(x * (1 + square * (T)CUBIC) * (T)(2 * ROOT_TWO_OVER_PI));   \
        return t * (1 + x * (1 + square * (T)(3 * CUBIC)) * (T)(2 * ROOT_TWO_OVER_PI) * (1 - t));  \
    }
SLOPES_OF(float, f32)
SLOPES_OF(double, f64)
TN__INTO_LOOPS float gelu_slope_f32(float x)
{
    float density = 0.39894228040143267794f * tn__near_exp_below_f32(x * x * -0.5f);
    return 0.5f * (1 + tn__near_erf_f32(x * 0.70710678118654752440f)) + x * density;
}

/* A square up to the bend, then a line. */
#define BEND(T, s)                                                                                 \
    TN__INTO_LOOPS T bend_##s(T d, T most)                                                         \
    {                                                                                              \
        T c = d < -most ? -most : d;                                                               \
        c = c > most ? most : c;                                                                   \
        return c * (d + c * (T)-0.5);                                                              \
    }                                                                                              \
    TN__INTO_LOOPS T at_least_none_##s(T x)                                                        \
    {                                                                                              \
        return x < 0 ? 0 : x;                                                                      \
    }
BEND(float, f32)
BEND(double, f64)

/* Slopes: a is the gradient, b the input or the result of the function. */
#define CURVES(T, s, f)                                                                            \
    TN__UNARY(tanhshrink_##s, T, a - TANH_##s(a))                                                  \
    TN__UNARY(logsigmoid_##s, T, -SOFTPLUS_##s(-a))                                                \
    TN__UNARY(softplus_##s, T, a *p > q ? a : SOFTPLUS_##s(a * p) / p)                             \
    TN__UNARY(elu_##s, T, a <= 0 ? EXPM1_BELOW_##s(a * r) * q : a * p)                             \
    TN__UNARY(gelu_tanh_##s, T,                                                                    \
              a *(T)0.5 * (1 + TANH_##s(a * (1 + a * a * (T)CUBIC) * (T)ROOT_TWO_OVER_PI)))        \
    TN__BINARY(sigmoid_grad_##s, T, a *(b * (1 - b)))                                              \
    TN__BINARY(tanh_grad_##s, T, a *(1 - b * b))                                                   \
    TN__BINARY(hardtanh_grad_##s, T, ((b <= p) | (b >= q)) ? 0 : a)                                \
    TN__BINARY(leaky_relu_grad_##s, T, b > 0 ? a : a * p)                                          \
    TN__BINARY(threshold_grad_##s, T, b <= p ? 0 : a)                                              \
    TN__BINARY(hardsigmoid_grad_##s, T, ((b > -3) & (b < 3)) ? a / 6 : 0)                          \
    TN__BINARY(hardswish_grad_##s, T,                                                              \
               b <= -3 ? 0 : (b >= 3 ? a : a * (b * (T)(1 / 3.0) + (T)0.5)))                       \
    TN__BINARY(hardshrink_grad_##s, T, ((b >= -p) & (b <= p)) ? 0 : a)                             \
    TN__BINARY(elu_grad_##s, T, a *(b <= 0 ? EXP_BELOW_##s((b > 0 ? 0 : b) * r) * (q * r) : p))    \
    TN__BINARY(softplus_grad_##s, T, b *p > q ? a : a * step_##s(b * p))                           \
    TN__BINARY(silu_grad_##s, T, a *silu_slope_##s(b))                                             \
    TN__BINARY(mish_grad_##s, T, a *mish_slope_##s(b))                                             \
    TN__BINARY(gelu_tanh_grad_##s, T, a *gelu_tanh_slope_##s(b))                                   \
    TN__BINARY(gate_##s, T, a *step_##s(b))                                                        \
    TN__BINARY(square_apart_##s, T, (a - b) * (a - b))                                             \
    TN__BINARY(size_apart_##s, T, __builtin_fabs##f(a - b))                                        \
    TN__BINARY(bent_##s, T, bend_##s(a - b, p) * q)                                                \
    TN__BINARY(hinge_##s, T, at_least_none_##s(p - a * b))                                         \
    TN__UNARY(nan_to_num_##s, T, a != a ? p : (a > LARGEST_##s ? q : (a < -LARGEST_##s ? r : a)))
CURVES(float, f32, f)
TN__BINARY(gelu_grad_f32, float, a *gelu_slope_f32(b))
CURVES(double, f64, )

/* ---- the table ------------------------------------------------------------------------------- */

#define FLOATS(name)                                                                               \
    {                                                                                              \
        [TN__F32] = name##_f32, [TN__F64] = name##_f64                                             \
    }
const struct tn__simd_functions TN__SIMD_TABLE(functions) = {
    .ew = {
    [TN__EXP] = FLOATS(exp),
    [TN__LOG] = FLOATS(log),
    [TN__SIGMOID] = FLOATS(sigmoid),
    [TN__SILU] = FLOATS(silu),
    [TN__EXPM1] = FLOATS(expm1),
    [TN__LOG1P] = FLOATS(log1p),
    [TN__TANH] = FLOATS(tanh),
    [TN__TANHSHRINK] = FLOATS(tanhshrink),
    [TN__MISH] = FLOATS(mish),
    [TN__LOGSIGMOID] = FLOATS(logsigmoid),
    [TN__SOFTPLUS] = FLOATS(softplus),
    [TN__ELU] = FLOATS(elu),
    [TN__GELU_TANH] = FLOATS(gelu_tanh),
    [TN__GELU] = FLOATS(gelu),
    [TN__SIN] = FLOATS(sin),
    [TN__COS] = FLOATS(cos),
    [TN__TAN] = FLOATS(tan),
    [TN__ATAN] = FLOATS(atan),
    [TN__LOG2] = FLOATS(log2),
    [TN__LOG10] = FLOATS(log10),
    [TN__ASIN] = FLOATS(asin),
    [TN__ACOS] = FLOATS(acos),
    [TN__SINH] = FLOATS(sinh),
    [TN__COSH] = FLOATS(cosh),
    [TN__ERFC] = FLOATS(erfc),
    [TN__ERFINV] = FLOATS(erfinv),
    [TN__ATAN2] = FLOATS(atan2),
    [TN__FMOD] = FLOATS(fmod),
    [TN__REMAINDER] = FLOATS(remainder),
    [TN__DIV_FLOOR] = FLOATS(div_floor),
    [TN__POW] = FLOATS(pow),
    [TN__ERF] = FLOATS(erf),
    [TN__SIGMOID_GRAD] = FLOATS(sigmoid_grad),
    [TN__TANH_GRAD] = FLOATS(tanh_grad),
    [TN__HARDTANH_GRAD] = FLOATS(hardtanh_grad),
    [TN__LEAKY_RELU_GRAD] = FLOATS(leaky_relu_grad),
    [TN__THRESHOLD_GRAD] = FLOATS(threshold_grad),
    [TN__HARDSIGMOID_GRAD] = FLOATS(hardsigmoid_grad),
    [TN__HARDSWISH_GRAD] = FLOATS(hardswish_grad),
    [TN__HARDSHRINK_GRAD] = FLOATS(hardshrink_grad),
    [TN__ELU_GRAD] = FLOATS(elu_grad),
    [TN__SOFTPLUS_GRAD] = FLOATS(softplus_grad),
    [TN__SILU_GRAD] = FLOATS(silu_grad),
    [TN__MISH_GRAD] = FLOATS(mish_grad),
    [TN__GELU_GRAD] = FLOATS(gelu_grad),
    [TN__GELU_TANH_GRAD] = FLOATS(gelu_tanh_grad),
    [TN__GATE] = FLOATS(gate),
    [TN__SQUARE_APART] = FLOATS(square_apart),
    [TN__SIZE_APART] = FLOATS(size_apart),
    [TN__BENT] = FLOATS(bent),
    [TN__HINGE] = FLOATS(hinge),
    [TN__NAN_TO_NUM] = FLOATS(nan_to_num),
},
};

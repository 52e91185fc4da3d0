/* SPDX-License-Identifier: MIT
 *
 * Functions that take several steps a number, and their derivatives times a gradient: compiled
 * once per instruction set, like loops.c. Those of float32 have a way for ordinary numbers
 * (near.h) and one for the others. */
#include <math.h>
#include <string.h>

#include "cpu.h"
#include "each.h"
#include "functions.h"
#include "near.h"
#include "through-double.h"

#ifndef TN__LOOPS_NAME
#define TN__LOOPS_NAME tn__loops_base
#endif
#define PASTE_TWO(a, b) a##b
#define PASTE(a, b) PASTE_TWO(a, b)

/* ---- float32, in blocks ---------------------------------------------------------------------- */

/* A block goes one way where all of its numbers fit, else each its own: the bits are the same. */
#define GUARDED(name, fits, near, far)                                                             \
    static void name(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,  \
                     int64_t sb, const double *param)                                              \
    {                                                                                              \
        enum { BLOCK = 512 };                                                                      \
        float xa[BLOCK], xb[BLOCK], xy[BLOCK];                                                     \
        (void)param;                                                                               \
        for (int64_t at = 0; at < n; at += BLOCK) {                                                \
            const int64_t size = n - at < BLOCK ? n - at : BLOCK;                                  \
            const float *a = in_a_row(size, ap + at * sa, sa, xa);                                 \
            const float *b = bp == ap ? a : in_a_row(size, bp + at * sb, sb, xb);                  \
            float *y = sy == (int64_t)sizeof *y ? (float *)(void *)(yp + at * sy) : xy;            \
            int32_t all = 1;                                                                       \
            for (int64_t i = 0; i < size; i++)                                                     \
                all &= fits(a[i], b[i]);                                                           \
            if (all)                                                                               \
                TN__IVDEP for (int64_t i = 0; i < size; i++) y[i] = near(a[i], b[i]);              \
            else                                                                                   \
                for (int64_t i = 0; i < size; i++)                                                 \
                    y[i] = fits(a[i], b[i]) ? near(a[i], b[i]) : far(a[i], b[i]);                  \
            if (y == xy)                                                                           \
                for (int64_t i = 0; i < size; i++)                                                 \
                    *(float *)(void *)(yp + (at + i) * sy) = xy[i];                                \
        }                                                                                          \
    }
static inline const float *in_a_row(int64_t n, const char *from, int64_t stride, float *to)
{
    if (stride == (int64_t)sizeof *to)
        return (const float *)(const void *)from;
    for (int64_t i = 0; i < n; i++)
        to[i] = *(const float *)(const void *)(from + i * stride);
    return to;
}

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
GUARDED(exp_f32, tn__exp_fits, exp_near, exp_far)
GUARDED(log_f32, tn__log_fits, log_near, log_far)
GUARDED(log2_f32, tn__log_fits, log2_near, log2_far)
GUARDED(log10_f32, tn__log_fits, log10_near, log10_far)
GUARDED(sigmoid_f32, tn__exp_fits, sigmoid_near, sigmoid_far)
GUARDED(silu_f32, tn__exp_fits, silu_near, silu_far)
GUARDED(mish_f32, tn__exp_fits, mish_near, mish_far)
GUARDED(sin_f32, tn__circle_fits, sin_near, sin_far)
GUARDED(cos_f32, tn__circle_fits, cos_near, cos_far)
GUARDED(tan_f32, tn__circle_fits, tan_near, tan_far)
GUARDED(erfc_f32, tn__erfc_fits, erfc_near, erfc_far)
GUARDED(sinh_f32, tn__fits_always, tn__wide_sinh, tn__wide_sinh)
GUARDED(cosh_f32, tn__fits_always, tn__wide_cosh, tn__wide_cosh)
GUARDED(atan2_f32, tn__angle_fits, tn__near_atan2_f32, atan2f)
GUARDED(fmod_f32, tn__rest_fits, tn__wide_fmod, fmodf)
GUARDED(remainder_f32, tn__rest_fits, tn__wide_remainder, remainder_far)
GUARDED(div_floor_f32, tn__rest_fits, tn__wide_div_floor, tn__div_floor_f32)
GUARDED(pow_f32, tn__power_fits, tn__near_pow_f32, power_far)

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

TN__UNARY(exp_f64, double, tn__exp_f64(a))
TN__UNARY(log_f64, double, tn__log_f64(a))
TN__UNARY(sigmoid_f64, double, 1 / (1 + tn__exp_f64(-a)))
TN__UNARY(silu_f64, double, a / (1 + tn__exp_f64(-a)))
TN__UNARY(expm1_f64, double, tn__expm1_f64(a))
TN__UNARY(log1p_f64, double, tn__log1p_f64(a))
TN__UNARY(tanh_f64, double, tn__tanh_f64(a))
TN__UNARY(mish_f64, double, tn__mish_f64(a))

/* The functions that both types are written with. */
#define EXP_BELOW_f32 tn__near_exp_below_f32
#define EXP_BELOW_f64 tn__exp_f64
#define EXPM1_BELOW_f32 tn__near_expm1_below_f32
#define EXPM1_BELOW_f64 tn__expm1_f64
#define TANH_f32 tn__near_tanh_f32
#define TANH_f64 tn__tanh_f64
#define SOFTPLUS_f32 tn__near_softplus_f32
#define SOFTPLUS_f64 tn__softplus_f64
#define PHI_f32(x) (0.5f * (1 + tn__near_erf_f32((x)*0.70710678118654752440f)))
#define PHI_f64(x) (0.5 * erfc((x) * -0.70710678118654752440))
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
    TN__INTO_LOOPS T gelu_slope_##s(T x)                                                           \
    {                                                                                              \
        T density = (T)0.39894228040143267794 * EXP_BELOW_##s(x * x * (T)-0.5);                    \
        return PHI_##s(x) + x * density;                                                           \
    }                                                                                              \
    TN__INTO_LOOPS T gelu_tanh_slope_##s(T x)                                                      \
    {                                                                                              \
        T square = x * x, t = step_##s(x * (1 + square * (T)CUBIC) * (T)(2 * ROOT_TWO_OVER_PI));   \
        return t * (1 + x * (1 + square * (T)(3 * CUBIC)) * (T)(2 * ROOT_TWO_OVER_PI) * (1 - t));  \
    }
SLOPES_OF(float, f32)
SLOPES_OF(double, f64)

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
    TN__BINARY(gelu_grad_##s, T, a *gelu_slope_##s(b))                                             \
    TN__BINARY(gelu_tanh_grad_##s, T, a *gelu_tanh_slope_##s(b))                                   \
    TN__BINARY(gate_##s, T, a *step_##s(b))                                                        \
    TN__UNARY(nan_to_num_##s, T, a != a ? p : (a > LARGEST_##s ? q : (a < -LARGEST_##s ? r : a)))
CURVES(float, f32, f)
CURVES(double, f64, )

/* ---- the table ------------------------------------------------------------------------------- */

#define FLOATS(name)                                                                               \
    {                                                                                              \
        [TN__F32] = name##_f32, [TN__F64] = name##_f64                                             \
    }
#define NARROW(name)                                                                               \
    {                                                                                              \
        [TN__F32] = name##_f32                                                                     \
    }
tn__ew_loop *const PASTE(TN__LOOPS_NAME, _curves)[TN__EW_COUNT][TN__I64 + 1] = {
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
    [TN__GELU] = NARROW(gelu),
    [TN__SIN] = NARROW(sin),
    [TN__COS] = NARROW(cos),
    [TN__TAN] = NARROW(tan),
    [TN__ATAN] = NARROW(atan),
    [TN__LOG2] = NARROW(log2),
    [TN__LOG10] = NARROW(log10),
    [TN__ASIN] = NARROW(asin),
    [TN__ACOS] = NARROW(acos),
    [TN__SINH] = NARROW(sinh),
    [TN__COSH] = NARROW(cosh),
    [TN__ERFC] = NARROW(erfc),
    [TN__ERFINV] = NARROW(erfinv),
    [TN__ATAN2] = NARROW(atan2),
    [TN__FMOD] = NARROW(fmod),
    [TN__REMAINDER] = NARROW(remainder),
    [TN__DIV_FLOOR] = NARROW(div_floor),
    [TN__POW] = NARROW(pow),
    [TN__ERF] = NARROW(erf),
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
    [TN__NAN_TO_NUM] = FLOATS(nan_to_num),
};

/* SPDX-License-Identifier: MIT
 *
 * Loops of mathematical functions, such as exp, and of gradients through them. Many functions exist
 * twice: a fast one for ordinary numbers (`near`, as in math/float32.h), and a slower one for all
 * others (`far`). A check tells for each element whether the fast one may be used. */
#include <math.h>
#include <string.h>

#include "math/float32_via_float64.h"
#include "math/float64_erf.h"
#include "math/float64_pow.h"
#include "math/float64_trig.h"
#ifdef __AVX512DQ__
#include "simd/eight.h"
#endif
#include "simd/elementwise.h"
#include "simd/simd.h"

/* ---- functions with a fast and a slow version ------------------------------------------------ */

/* A check finds the numbers that need the slow version of a function, by a key or by a test (KEYED
 * and TESTED below). It has two functions. CHECK_watch adds one number to what was seen so far of a
 * block: the largest key, or 1 if the test has failed for a number. CHECK_odd returns whether one
 * number needs the slow version. */
typedef uint32_t seen_f32;
typedef uint64_t seen_f64;
typedef seen_f32 watch_f32(seen_f32 seen, float a, float b);
typedef seen_f64 watch_f64(seen_f64 seen, double a, double b);
typedef seen_f32 odd_f32(float a, float b);
typedef seen_f64 odd_f64(double a, double b);
#define TEMPLATE "simd/guarded_template.h"
#include "base/for_floats.h"

/* KEYED defines a check by a key: numbers whose `key` is larger than `limit` need the slow version.
 * TESTED defines a check by a test: numbers for which `fits` is false need the slow version. */
#define KEYED(check, key, limit)                                                                   \
    TN__INTO_LOOPS uint32_t check##_odd(float a, float b)                                          \
    {                                                                                              \
        return (void)b, (key) > (limit);                                                           \
    }                                                                                              \
    TN__INTO_LOOPS uint32_t check##_watch(uint32_t seen, float a, float b)                         \
    {                                                                                              \
        return (void)b, (key) > seen ? (key) : seen;                                               \
    }                                                                                              \
    static const uint32_t check##_limit = limit;
#define TESTED(check, s, T, fits)                                                                  \
    TN__INTO_LOOPS seen_##s check##_odd(T a, T b)                                                  \
    {                                                                                              \
        return !fits(a, b);                                                                        \
    }                                                                                              \
    TN__INTO_LOOPS seen_##s check##_watch(seen_##s seen, T a, T b)                                 \
    {                                                                                              \
        return fits(a, b) ? seen : 1;                                                              \
    }                                                                                              \
    static const uint32_t check##_limit = 0;
#define GUARDED(name, s, check, near, far)                                                         \
    static void name##_##s(TN__LOOP_PARAMETERS)                                                    \
    {                                                                                              \
        (void)param;                                                                               \
        guarded_loop_##s(n, y, sy, a, sa, b, sb, check##_watch, check##_odd, check##_limit, near,  \
                         far);                                                                     \
    }
KEYED(exp, tn__size_key(a), TN__EXP_LIMIT)
KEYED(log, tn__log_key(a), TN__LOG_LIMIT)
KEYED(exp2, tn__size_key(a), 0x42fa0000u) /* 125 */
KEYED(circle, tn__size_key(a), TN__CIRCLE_LIMIT)
KEYED(erfc, tn__size_key(a), TN__ERFC_LIMIT)
TESTED(angle, f32, float, tn__angle_fits)
TESTED(rest, f32, float, tn__rest_fits)
TESTED(power, f32, float, tn__power_fits)

/* 2^x for |x| <= 125, by the series of e^r: r = ln 2 (x - k), where k is the integer nearest to x.
 */
TN__INTO_LOOPS float exp2_within(float x)
{
    float shifted = x + 0x1.8p23f;
    return tn__near_exp_of_f32((x - (shifted - 0x1.8p23f)) * 0.69314718056f, shifted);
}

/* The two versions of functions of one number; the operand b is not used. */
#define WAY(name, expr)                                                                            \
    TN__INTO_LOOPS float name(float a, float b)                                                    \
    {                                                                                              \
        (void)b;                                                                                   \
        return expr;                                                                               \
    }
#define WAYS(name, near_expr, far_expr)                                                            \
    WAY(name##_near, near_expr)                                                                    \
    WAY(name##_far, far_expr)
/* clang-format off */
WAYS(exp, tn__near_exp_f32(a), tn__exp_f32(a))
WAYS(exp2, exp2_within(a), tn__exp2_f32(a))
WAYS(log, tn__near_log_f32(a), tn__log_f32(a))
WAYS(log2, tn__near_log2_f32(a), tn__log2_f32(a))
WAYS(log10, tn__near_log10_f32(a), tn__log10_f32(a))
WAYS(sigmoid, tn__near_sigmoid_f32(a), 1 / (1 + tn__exp_f32(-a)))
WAYS(silu, a * tn__near_sigmoid_f32(a), a / (1 + tn__exp_f32(-a)))
WAYS(mish, tn__near_mish_f32(a), tn__mish_f32(a))
WAYS(sin, tn__near_circle_f32(a, 0), tn__turn_fits(a, b) ? tn__wide_sin(a, b) : sinf(a))
WAYS(cos, tn__near_circle_f32(a, 1), tn__turn_fits(a, b) ? tn__wide_cos(a, b) : cosf(a))
WAYS(tan, tn__near_tan_f32(a), tn__turn_fits(a, b) ? tn__wide_tan(a, b) : tanf(a))
WAYS(erfc, tn__near_erfc_f32(a), erfcf(a))
WAY(sinh_near, tn__near_sinh_f32(a))
WAY(cosh_near, tn__near_cosh_f32(a))
/* clang-format on */
static inline float power_far(float a, float b)
{
    return tn__power_is_plain(a, b) ? tn__wide_pow(a, b) : powf(a, b);
}
static inline float remainder_far(float a, float b)
{
    float rest = fmodf(a, b);
    return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}
/* clang-format off */
GUARDED(exp, f32, exp, exp_near, exp_far)
GUARDED(exp2, f32, exp2, exp2_near, exp2_far)
GUARDED(log, f32, log, log_near, log_far)
GUARDED(log2, f32, log, log2_near, log2_far)
GUARDED(log10, f32, log, log10_near, log10_far)
GUARDED(sigmoid, f32, exp, sigmoid_near, sigmoid_far)
GUARDED(silu, f32, exp, silu_near, silu_far)
GUARDED(mish, f32, exp, mish_near, mish_far)
GUARDED(sin, f32, circle, sin_near, sin_far)
GUARDED(cos, f32, circle, cos_near, cos_far)
GUARDED(tan, f32, circle, tan_near, tan_far)
GUARDED(erfc, f32, erfc, erfc_near, erfc_far)
GUARDED(sinh, f32, exp, sinh_near, tn__wide_sinh)
GUARDED(cosh, f32, exp, cosh_near, tn__wide_cosh)
GUARDED(atan2, f32, angle, tn__near_atan2_f32, atan2f)
GUARDED(fmod, f32, rest, tn__wide_fmod, fmodf)
GUARDED(remainder, f32, rest, tn__wide_remainder, remainder_far)
GUARDED(div_floor, f32, rest, tn__wide_div_floor, tn__div_floor_f32)
GUARDED(pow, f32, power, tn__near_pow_f32, power_far)
/* clang-format on */

/* ---- functions with one version for all numbers ---------------------------------------------- */

#define T float
#define NAME(x) x##_f32
/* clang-format off */
UNARY(expm1, tn__expm1_f32(a))
UNARY(log1p, tn__log1p_f32(a))
UNARY(atanh, tn__near_atanh_f32(a))
BINARY(hypot, tn__wide_hypot(a, b))
UNARY(tanh, tn__near_tanh_f32(a))
UNARY(erf, tn__near_erf_f32(a))
UNARY(atan, tn__near_atan_f32(a))
UNARY(asin, tn__near_asin_f32(a))
UNARY(erfinv, tn__near_erfinv_f32(a))
UNARY(acos, tn__near_acos_f32(a))
UNARY(gelu, a * 0.5f * (1 + tn__near_erf_f32(a * 0.70710678118654752440f)))
/* clang-format on */
#undef T
#undef NAME

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
    TESTED(name##64, f64, double, fits)                                                            \
    GUARDED(name, f64, name##64, name##_near64, name##_far64)
/* Like WAYS64; with AVX-512 the function `eight` is used in place of `near`, for numbers that are
 * not `odd`. */
#ifdef __AVX512DQ__
#define WAYS8(name, eight, odd, fits, near, far)                                                   \
    WAY64(name##_far64, far)                                                                       \
    static void name##_f64(TN__LOOP_PARAMETERS)                                                    \
    {                                                                                              \
        (void)b, (void)sb, (void)param;                                                            \
        tn__loop8(n, y, sy, a, sa, eight, odd, name##_far64);                                      \
    }
#else
#define WAYS8(name, eight, odd, fits, near, far) WAYS64(name, fits, near, far)
#endif
/* Defines a function with one version for all numbers: `near` and `far` are equal. */
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
/* clang-format off */
WAYS8(exp, tn__exp8, tn__never8, tn__exp64_fits, tn__near_exp64(a), tn__exp64(a))
WAYS64(sigmoid, tn__exp64_fits, tn__near_sigmoid64(a), tn__sigmoid64(a))
WAYS64(silu, tn__exp64_fits, a / (1 + tn__near_exp64(-a)), a / (1 + tn__exp64(-a)))
WAYS64(expm1, tn__exp64_fits, tn__near_expm1_64(a), tn__expm1_64(a))
WAYS8(log, tn__log8, tn__never8, tn__log64_fits, tn__near_log64(a), tn__log64(a))
WAYS8(log2, tn__log2_8, tn__never8, tn__log64_fits, tn__near_log2_64(a), tn__log2_64(a))
WAYS8(log10, tn__log10_8, tn__never8, tn__log64_fits, tn__near_log10_64(a), tn__log10_64(a))
WAYS8(erfc, tn__erfc8, tn__erfc_odd8, tn__erfc64_fits, tn__near_erfc64(a), tn__erfc64(a))
WAYS64(gelu, tn__normal64_fits, tn__near_gelu64(a), tn__gelu64(a))
WAYS64(gelu_grad, slope_fits64, a * tn__near_gelu_slope64(b), a * tn__gelu_slope64(b))
WAYS8(sin, tn__sin8, tn__circle_odd8, tn__circle64_fits, tn__sin64(a), sin(a))
WAYS8(cos, tn__cos8, tn__circle_odd8, tn__circle64_fits, tn__cos64(a), cos(a))
WAYS8(tan, tn__tan8, tn__circle_odd8, tn__circle64_fits, tn__tan64(a), tan(a))
WAYS8(erfinv, tn__erfinv8, tn__erfinv_odd8, tn__erfinv64_fits, tn__erfinv64(a), tn__erfinv64_far(a))
ALL64(log1p, tn__log1p_64(a))
ALL64(tanh, tn__tanh64(a))
ALL64(sinh, tn__sinh64(a))
ALL64(cosh, tn__cosh64(a))
ALL64(mish, tn__mish64(a))
ALL64(asin, tn__asin64(a))
ALL64(acos, tn__acos64(a))
ALL64(atan, tn__atan64(a))
WAYS8(erf, tn__erf8, tn__never8, is_number64, tn__erf64(a), tn__erf64(a))
TESTED(angle64, f64, double, tn__angle64_fits)
TESTED(pow64, f64, double, tn__pow64_fits)
TESTED(rest64, f64, double, tn__rest64_fits)
GUARDED(atan2, f64, angle64, tn__atan2_64, atan2)
GUARDED(pow, f64, pow64, tn__pow64, pow)
GUARDED(fmod, f64, rest64, tn__fmod64, fmod)
GUARDED(remainder, f64, rest64, tn__remainder64, tn__remainder64_far)
GUARDED(div_floor, f64, rest64, tn__div_floor64, tn__div_floor64_far)
/* clang-format on */

/* ---- formulas that are equal for both types -------------------------------------------------- */

#define fabs_of_f32 __builtin_fabsf
#define fabs_of_f64 __builtin_fabs
/* The functions that the template and activation_list.h use. */
#define exp_below_f32 tn__near_exp_below_f32
#define exp_below_f64 tn__exp64_below
#define expm1_below_f32 tn__near_expm1_below_f32
#define expm1_below_f64 tn__expm1_64
#define tanh_of_f32 tn__near_tanh_f32
#define tanh_of_f64 tn__tanh64
#define softplus_of_f32 tn__near_softplus_f32
#define softplus_of_f64 tn__softplus64
#define largest_f32 TN__LARGEST_F32
#define largest_f64 1.7976931348623157e308
#define ROOT_TWO_OVER_PI 0.79788456080286535588
#define CUBIC 0.044715
#define TEMPLATE "simd/elementwise_costly_template.h"
#include "base/for_floats.h"

TN__INTO_LOOPS float gelu_slope_f32(float x)
{
    float density = 0.39894228040143267794f * tn__near_exp_below_f32(x * x * -0.5f);
    return 0.5f * (1 + tn__near_erf_f32(x * 0.70710678118654752440f)) + x * density;
}

#define T float
#define NAME(x) x##_f32
BINARY(gelu_grad, a *gelu_slope_f32(b))
#undef T
#undef NAME

/* ---- the table ------------------------------------------------------------------------------- */

#define FLOATS(name) [TN__EW_##name] = { [TN__F32] = name##_f32, [TN__F64] = name##_f64 }
#define ROWS_CHEAP(name)
#define ROWS_COSTLY(name) FLOATS(name),
const struct tn__simd_functions TN__SIMD_TABLE(functions) = {
    .ew = {
#define ACTIVATION(name, inputs, cost, formula) ROWS_##cost(name)
#include "base/activation_list.h"
    FLOATS(exp),
    FLOATS(log),
    FLOATS(sigmoid),
    FLOATS(silu),
    FLOATS(expm1),
    FLOATS(log1p),
    FLOATS(tanh),
    FLOATS(mish),
    FLOATS(gelu),
    FLOATS(sin),
    FLOATS(cos),
    FLOATS(tan),
    FLOATS(atan),
    FLOATS(log2),
    FLOATS(log10),
    FLOATS(asin),
    FLOATS(acos),
    FLOATS(sinh),
    FLOATS(cosh),
    FLOATS(erfc),
    FLOATS(erfinv),
    FLOATS(atan2),
    FLOATS(fmod),
    FLOATS(remainder),
    FLOATS(div_floor),
    FLOATS(pow),
    FLOATS(erf),
    FLOATS(gelu_grad),
    FLOATS(square_apart),
    FLOATS(size_apart),
    FLOATS(bent),
    FLOATS(hinge),
    FLOATS(nan_to_num),
    /* of float64 in op/elementwise_scalar.c */
    [TN__EW_atanh] = { [TN__F32] = atanh_f32 },
    [TN__EW_exp2] = { [TN__F32] = exp2_f32 },
    [TN__EW_hypot] = { [TN__F32] = hypot_f32 },
},
};

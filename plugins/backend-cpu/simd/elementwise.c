/* SPDX-License-Identifier: MIT
 *
 * Elementwise operations of one or a few instructions. local.mk compiles this file without
 * contraction to fused multiply-adds, so that all instruction sets give equal bits. */
#include "math/sqrt.h"
#include "simd/elementwise.h"

#define TERNARY(name, expr)                                                                        \
    TN__INTO_LOOPS T NAME(name##_formula)(T a, T b, T c, T p)                                      \
    {                                                                                              \
        (void)c, (void)p;                                                                          \
        return expr;                                                                               \
    }                                                                                              \
    static void NAME(name)(int64_t n, char *const *at, const int64_t *stride, double number)       \
    {                                                                                              \
        NAME(ternary_loop)(n, at, stride, number, NAME(name##_formula));                           \
    }

#define sqrt_of_f32 __builtin_sqrtf
#define sqrt_of_f64 __builtin_sqrt
#define trunc_of_f32 __builtin_truncf
#define trunc_of_f64 __builtin_trunc
#define floor_of_f32 __builtin_floorf
#define floor_of_f64 __builtin_floor
#define ceil_of_f32 __builtin_ceilf
#define ceil_of_f64 __builtin_ceil
#define fabs_of_f32 __builtin_fabsf
#define fabs_of_f64 __builtin_fabs
#define copysign_of_f32 __builtin_copysignf
#define copysign_of_f64 __builtin_copysign
#define rint_of_f32 __builtin_rintf
#define rint_of_f64 __builtin_rint
#define TEMPLATE "simd/elementwise_template.h"
#include "base/for_floats.h"

#define T float
#define NAME(x) x##_f32
#ifdef __AVX512F__
#define VECTOR __m512
#define MASK __mmask16
#define OP(x) _mm512_##x##_ps
#endif
#include "simd/sqrt_template.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#ifdef __AVX512F__
#define VECTOR __m512d
#define MASK __mmask8
#define OP(x) _mm512_##x##_pd
#endif
#include "simd/sqrt_template.h"
#undef T
#undef NAME

/* ---- int64 ----------------------------------------------------------------------------------- */

#define T int64_t
#define NAME(x) x##_i64
#define U(x) (uint64_t)(x) /* unsigned arithmetic, which wraps around */
/* Returns x limited to [low, high]; if low > high, the result is high. */
TN__INTO_LOOPS T NAME(bounded)(T x, T low, T high)
{
    T y = x < low ? low : x;
    return y > high ? high : y;
}

/* clang-format off */
BINARY(add, U(a) + U(b))
BINARY(sub, U(a) - U(b))
BINARY(add_alpha, U(a) + U(p) * U(b))
BINARY(mul, U(a) * U(b))
BINARY(maximum, a > b ? a : b)
UNARY(add_scalar, U(a) + U(p))
UNARY(mul_scalar, U(a) * U(p))
UNARY(neg, 0 - U(a))
UNARY(relu, a < 0 ? 0 : a)
BINARY(minimum, a < b ? a : b)
UNARY(abs, a < 0 ? 0 - U(a) : U(a))
UNARY(sign, (a > 0) - (a < 0))
UNARY(same, a)
UNARY(square, U(a) * U(a))
BINARY(bitwise_and, a & b)
BINARY(bitwise_or, a | b)
BINARY(bitwise_xor, a ^ b)
UNARY(bitwise_not, ~a)
UNARY(bitwise_not_bool, a == 0)
COMPARISONS
/* clang-format on */
#undef U
#undef T
#undef NAME

static void clamp_i64(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,
                      int64_t sb, const double *param)
{
    const int64_t low = number_i64(param[0]), high = number_i64(param[1]);
    (void)bp, (void)sb;
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = *(const int64_t *)(const void *)(ap + i * sa);
        *(int64_t *)(void *)(yp + i * sy) = bounded_i64(a, low, high);
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

#define FLOATS(name) [TN__EW_##name] = { [TN__F32] = name##_f32, [TN__F64] = name##_f64 }
#define NUMBERS(name)                                                                              \
    [TN__EW_##name] = { [TN__F32] = name##_f32, [TN__F64] = name##_f64, [TN__I64] = name##_i64 }
#define STEPS(name)                                                                                \
    [TN__EW_##name] = { [TN__F32] = name##_f32, [TN__F64] = name##_f64, [TN__I64] = same_i64 }
#define WHOLE(name) [TN__EW_##name] = { [TN__I64] = name##_i64 }

#define ROWS_CHEAP(name) FLOATS(name),
#define ROWS_COSTLY(name)
const struct tn__simd_elementwise TN__SIMD_TABLE(elementwise) = {
    .ew = {
#define ACTIVATION(name, inputs, cost, formula) ROWS_##cost(name)
#include "base/activation_list.h"
        [TN__EW_relu][TN__I64] = relu_i64,
        NUMBERS(add),
        NUMBERS(sub),
        NUMBERS(add_alpha),
        NUMBERS(mul),
        FLOATS(div),
        FLOATS(div_trunc),
        NUMBERS(maximum),
        NUMBERS(minimum),
        FLOATS(fmax),
        FLOATS(fmin),
        FLOATS(copysign),
        NUMBERS(add_scalar),
        NUMBERS(mul_scalar),
        NUMBERS(neg),
        NUMBERS(abs),
        NUMBERS(sign),
        NUMBERS(square),
        FLOATS(cube),
        NUMBERS(clamp),
        NUMBERS(eq),
        NUMBERS(ne),
        NUMBERS(lt),
        NUMBERS(le),
        NUMBERS(gt),
        NUMBERS(ge),
        FLOATS(frac),
        FLOATS(sqrt),
        FLOATS(reciprocal),
        FLOATS(rsqrt),
        STEPS(floor),
        STEPS(ceil),
        STEPS(trunc),
        STEPS(round),
        WHOLE(bitwise_and),
        WHOLE(bitwise_or),
        WHOLE(bitwise_xor),
        WHOLE(bitwise_not),
        WHOLE(bitwise_not_bool),
    },
#define TERNARY_ROW(name) [TN__TERNARY_##name] = { [TN__F32] = name##_f32, [TN__F64] = name##_f64 },
    .ternary = { TN__TERNARIES(TERNARY_ROW) },
};

/* SPDX-License-Identifier: MIT
 *
 * Loops for float16 and bfloat16 without a buffer of float32: signs, arithmetic, sums by index,
 * sums of columns. Computing a sum of two numbers in float32 and rounding it again gives the
 * correctly rounded sum, because float32 has more than twice as many digits as either type. */
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "math/float16.h"
#include "simd/elementwise.h"

/* ---- one element at a time ------------------------------------------------------------------- */

static inline uint16_t sum_of_bf16(uint16_t a, uint16_t b)
{
    return float_to_bf16(bf16_to_float(a) + bf16_to_float(b));
}

static inline uint16_t sum_of_f16(uint16_t a, uint16_t b)
{
#ifdef __F16C__
    return _cvtss_sh(_cvtsh_ss(a) + _cvtsh_ss(b), 0);
#else
    return float_to_f16(f16_to_float(a) + f16_to_float(b));
#endif
}

#define NAME(x) x##_f16
#define U uint16_t
#define S int16_t
#define INFINITE 0x7c00
#define QUIET 0x7e00
#include "simd/special_template.h"
#undef NAME
#define NAME(x) x##_bf16
#define U uint16_t
#define S int16_t
#define INFINITE 0x7f80
#define QUIET 0x7fc0
#include "simd/special_template.h"
#undef NAME

#define T uint16_t
#define NAME(x) x##_u16
static inline uint16_t number_u16(double p)
{
    return (uint16_t)p;
}
#include "simd/loop_template.h"
/* clang-format off */
UNARY(neg, a ^ 0x8000)
UNARY(abs, a & 0x7fff)
BINARY(copysign, (a & 0x7fff) | (b & 0x8000))
BINARY(nextafter_f16, next_f16(a, b))
BINARY(nextafter_bf16, next_bf16(a, b))
/* clang-format on */
#ifndef __AVX512BW__
/* clang-format off */
BINARY(add_bf16, sum_of_bf16(a, b))
BINARY(add_f16, sum_of_f16(a, b))
/* clang-format on */
#endif
#undef T
#undef NAME

#define NAME(x) x##_f16
#include "simd/float16_template.h"
#undef NAME
#define NAME(x) x##_bf16
#include "simd/float16_template.h"
#undef NAME

/* ---- in vectors ------------------------------------------------------------------------------ */

/* Loops that load, convert, compute and store 16 elements at a time. Without a buffer the
 * conversions run in parallel with slow instructions such as division. The results have the same
 * bits as those through a buffer of float32. */
#ifdef __AVX512BW__
typedef __m512 lanes;
enum { LANES = 16 };

static inline lanes load_f16(const void *from)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(from));
}

static inline __m256i packed_f16(lanes x)
{
    return _mm512_cvtps_ph(x, 0);
}

static inline lanes load_bf16(const void *from)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from)), 16));
}

static inline __m256i packed_bf16(lanes x)
{
    const __m512i bits = _mm512_castps_si512(x);
    __m512i upper = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    upper = _mm512_mask_add_epi32(upper, _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000)),
                                  bits, _mm512_set1_epi32(0x8000));
    /* NaN becomes a quiet NaN with the same sign */
    upper = _mm512_mask_or_epi32(upper, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
                                 _mm512_and_si512(bits, _mm512_set1_epi32(INT32_MIN)),
                                 _mm512_set1_epi32(0x7fc00000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(upper, 16));
}

/* Copies `count` elements, at most 16, of any stride to contiguous memory. */
static inline void collect(int64_t count, const char *from, int64_t step, uint16_t *to)
{
    for (int64_t j = 0; j < count; j++)
        memcpy(to + j, from + j * step, sizeof *to);
}

/* Copies one element to all 16 elements of `all`. */
static inline const uint16_t *collected(const char *from, uint16_t *all)
{
    collect(LANES, from, 0, all);
    return all;
}

#define PLAIN(step) ((step) == 2 || (step) == 0)
/* Loads an operand of stride 0 before the loop; an operand with another stride gives zeros. */
static inline lanes first_f16(const char *from, int64_t step, uint16_t *all)
{
    return step == 0 ? load_f16(collected(from, all)) : (lanes){ 0 };
}

static inline lanes first_bf16(const char *from, int64_t step, uint16_t *all)
{
    return step == 0 ? load_bf16(collected(from, all)) : (lanes){ 0 };
}

/* Load the elements that `mask` selects, and zeros for the others. */
static inline lanes some_f16(__mmask16 mask, const void *from)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from));
}

static inline lanes some_bf16(__mmask16 mask, const void *from)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from)), 16));
}

enum { DEEP = 32 }; /* rows that are summed in float32 */
typedef lanes lanes_formula(lanes a, lanes b, lanes c, lanes p);

static inline lanes larger(lanes a, lanes b)
{
    return _mm512_mask_blend_ps(
        _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q) | _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), b, a);
}

static inline lanes smaller(lanes a, lanes b)
{
    return _mm512_mask_blend_ps(
        _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q) | _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), b, a);
}

#define FORMULA16(name, expr)                                                                      \
    TN__INTO_LOOPS lanes NAME(name##_formula)(lanes a, lanes b, lanes c, lanes p)                  \
    {                                                                                              \
        return (void)a, (void)b, (void)c, (void)p, expr;                                           \
    }
#define BINARY16(name, expr)                                                                       \
    FORMULA16(name, expr)                                                                          \
    static void NAME(name)(TN__LOOP_PARAMETERS)                                                    \
    {                                                                                              \
        char *at[4] = { y, (char *)(uintptr_t)a, (char *)(uintptr_t)b, (char *)(uintptr_t)b };     \
        const int64_t stride[4] = { sy, sa, sb, sb };                                              \
        NAME(vector_loop)(n, at, stride, (float)param[0], NAME(name##_formula));                   \
    }
#define TERNARY16(name, expr)                                                                      \
    FORMULA16(name, expr)                                                                          \
    static void NAME(name)(int64_t n, char *const *at, const int64_t *stride, double number)       \
    {                                                                                              \
        NAME(vector_loop)(n, at, stride, (float)number, NAME(name##_formula));                     \
    }
#define NAME(x) x##_f16
#include "simd/float16_vector_template.h"
#undef NAME
#define NAME(x) x##_bf16
#include "simd/float16_vector_template.h"
#undef NAME
#else
enum {
    WIDE = 256,
    DEEP = 32
}; /* columns that are summed together, rows that are summed in float32 */
#define DTYPE_f16 TN_F16
#define DTYPE_bf16 TN_BF16
#define NAME(x) x##_f16
#include "simd/float16_scalar_template.h"
#undef NAME
#define NAME(x) x##_bf16
#include "simd/float16_scalar_template.h"
#undef NAME

/* Adds float16 eight at a time by instructions, because compilers do not vectorize the
 * conversions. */
#ifdef __F16C__
static void add_halves(int64_t n, char *y, int64_t sy, const char *a, int64_t sa, const char *b,
                       int64_t sb, const double *param)
{
    int64_t i = 0;
    for (; sy == 2 && sa == 2 && sb == 2 && i + 8 <= n; i += 8) {
        __m256 v = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(a + 2 * i)));
        __m256 w = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(b + 2 * i)));
        _mm_storeu_si128((__m128i *)(void *)(y + 2 * i), _mm256_cvtps_ph(_mm256_add_ps(v, w), 0));
    }
    add_f16_u16(n - i, y + i * sy, sy, a + i * sa, sa, b + i * sb, sb, param);
}
#else
#define add_halves add_f16_u16
#endif
#endif

#define PAIR(name)                                                                                 \
    {                                                                                              \
        name##_f16, name##_bf16                                                                    \
    }
#define TERNARY_ROW(name) [TN__TERNARY_##name] = PAIR(name),
const struct tn__simd_float16 TN__SIMD_TABLE(float16) = {
    .ew = {
        [TN__EW_neg] = { neg_u16, neg_u16 },
        [TN__EW_abs] = { abs_u16, abs_u16 },
        [TN__EW_copysign] = { copysign_u16, copysign_u16 },
        [TN__EW_nextafter] = { nextafter_f16_u16, nextafter_bf16_u16 },
#ifdef __AVX512BW__
        [TN__EW_add] = PAIR(sum),
        [TN__EW_sub] = PAIR(difference),
        [TN__EW_add_alpha] = PAIR(sum_alpha),
        [TN__EW_mul] = PAIR(product),
        [TN__EW_div] = PAIR(quotient),
        [TN__EW_maximum] = PAIR(maximum),
        [TN__EW_minimum] = PAIR(minimum),
        [TN__EW_square] = PAIR(square),
        [TN__EW_reciprocal] = PAIR(reciprocal),
        [TN__EW_sqrt] = PAIR(root),
        [TN__EW_rsqrt] = PAIR(one_by_root),
        [TN__EW_add_scalar] = PAIR(sum_scalar),
        [TN__EW_mul_scalar] = PAIR(product_scalar),
        [TN__EW_tanh_grad] = PAIR(tanh_grad),
        [TN__EW_sigmoid_grad] = PAIR(sigmoid_grad),
#endif
    },
#ifdef __AVX512BW__
    .add = PAIR(sum),
    .squares = PAIR(squares),
    .picked_sum = PAIR(picked_sum),
    .ternary = { TN__TERNARIES(TERNARY_ROW) },
#else
    .add = { add_halves, add_bf16_u16 },
#endif
    .add_at = PAIR(add_at),
    .rows_sum = PAIR(rows_sum),
};

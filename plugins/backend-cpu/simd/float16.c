/* SPDX-License-Identifier: MIT
 *
 * What float16 and bfloat16 do without a buffer of float32 beside them: signs, arithmetic, sums at places and of columns. Compiled once
 * per instruction set. A sum of two numbers of either type that is rounded to float32 first is the same as
 * one that is rounded once: float32 has more than twice their digits. */
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "math/float16.h"
#include "simd/elementwise.h"
#include "simd/simd.h"

TN__UNARY(other_sign, uint16_t, a ^ 0x8000)
TN__UNARY(no_sign, uint16_t, a & 0x7fff)

#define SUM_BF16(a, b) float_to_bf16(bf16_to_float(a) + bf16_to_float(b))
#ifdef __F16C__
#define SUM_F16(a, b) _cvtss_sh(_cvtsh_ss(a) + _cvtsh_ss(b), 0)
#else
#define SUM_F16(a, b) float_to_f16(f16_to_float(a) + f16_to_float(b))
#endif
#define ADD_AT(name, SUM)                                                                          \
    static int64_t name(int64_t n, char *x, int64_t sx, int64_t step, uint64_t size,               \
                        const char *index, int64_t si, const char *other, int64_t so)              \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t at;                                                                            \
            uint16_t v, w;                                                                         \
            memcpy(&at, index + i * si, sizeof at);                                                \
            if ((uint64_t)at >= size)                                                              \
                return i;                                                                          \
            char *to = x + i * sx + at * step;                                                     \
            memcpy(&v, to, sizeof v);                                                              \
            memcpy(&w, other + i * so, sizeof w);                                                  \
            v = SUM(v, w);                                                                         \
            memcpy(to, &v, sizeof v);                                                              \
        }                                                                                          \
        return n;                                                                                  \
    }
ADD_AT(add_at_f16, SUM_F16)
ADD_AT(add_at_bf16, SUM_BF16)

/* ---- in vectors ------------------------------------------------------------------------------ */

/* Sixteen at a time from the memory to the memory: what a division or a root takes hides the conversions, which a buffer
 * puts before and behind it. The bits are those that float32 in a buffer gives. */
#ifdef __AVX512BW__
typedef __m512 lanes;
enum { LANES = 16 };

static inline lanes load_f16(const void *from)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(from));
}

static inline void store_f16(void *to, lanes x)
{
    _mm256_storeu_si256(to, _mm512_cvtps_ph(x, 0));
}

static inline lanes load_bf16(const void *from)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from)), 16));
}

static inline void store_bf16(void *to, lanes x)
{
    const __m512i bits = _mm512_castps_si512(x);
    __m512i upper = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    upper = _mm512_mask_add_epi32(upper, _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000)),
                                  bits, _mm512_set1_epi32(0x8000));
    /* NaN: quiet, with its sign */
    upper = _mm512_mask_or_epi32(upper, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
                                 _mm512_and_si512(bits, _mm512_set1_epi32(INT32_MIN)),
                                 _mm512_set1_epi32(0x7fc00000));
    _mm256_storeu_si256(to, _mm512_cvtepi32_epi16(_mm512_srli_epi32(upper, 16)));
}

/* Sixteen from k operands of any step, the last of fewer. */
static inline void collect(int64_t count, const char *from, int64_t step, uint16_t *to)
{
    for (int64_t j = 0; j < count; j++)
        memcpy(to + j, from + j * step, sizeof *to);
}

#define PLAIN(step) ((step) == 2 || (step) == 0)
#define FIRST(s, from, step) ((step) == 0 ? load_##s(collected(from, all)) : (lanes){ 0 })
static inline const uint16_t *collected(const char *from, uint16_t *all)
{
    collect(LANES, from, 0, all);
    return all;
}

/* y = expr of a, b and c, which is b where there are but two. */
#define DIRECT(name, s, expr)                                                                      \
    static inline void name(int64_t n, char *const *at, const int64_t *stride, float number)       \
    {                                                                                              \
        uint16_t all[LANES] = { 0 };                                                               \
        const lanes p = _mm512_set1_ps(number);                                                    \
        const int64_t sy = stride[0], sa = stride[1], sb = stride[2], sc = stride[3];              \
        int64_t i = 0;                                                                             \
        (void)p;                                                                                   \
        if (sy == 2 && PLAIN(sa) && PLAIN(sb) && PLAIN(sc) && n >= LANES) {                        \
            lanes a = FIRST(s, at[1], sa), b = FIRST(s, at[2], sb), c = FIRST(s, at[3], sc);       \
            for (; i + LANES <= n; i += LANES) {                                                   \
                a = sa ? load_##s(at[1] + 2 * i) : a;                                              \
                b = sb ? load_##s(at[2] + 2 * i) : b;                                              \
                c = sc ? load_##s(at[3] + 2 * i) : c;                                              \
                store_##s(at[0] + 2 * i, expr);                                                    \
            }                                                                                      \
        }                                                                                          \
        for (; i < n; i += LANES) {                                                                \
            int64_t count = n - i < LANES ? n - i : LANES;                                         \
            lanes x[3], a, b, c;                                                                   \
            for (int k = 0; k < 3; k++) {                                                          \
                collect(count, at[k + 1] + i * stride[k + 1], stride[k + 1], all);                 \
                x[k] = load_##s(all);                                                              \
            }                                                                                      \
            a = x[0], b = x[1], c = x[2];                                                          \
            (void)b, (void)c;                                                                      \
            store_##s(all, expr);                                                                  \
            for (int64_t j = 0; j < count; j++)                                                    \
                memcpy(at[0] + (i + j) * sy, all + j, sizeof *all);                                \
        }                                                                                          \
    }
#define LOOP(name, s, expr)                                                                        \
    DIRECT(name##_mix_##s, s, expr)                                                                \
    static void name##_##s(int64_t n, char *y, int64_t sy, const char *a, int64_t sa,              \
                           const char *b, int64_t sb, const double *param)                         \
    {                                                                                              \
        char *at[4] = { y, (char *)(uintptr_t)a, (char *)(uintptr_t)b, (char *)(uintptr_t)b };     \
        const int64_t stride[4] = { sy, sa, sb, sb };                                              \
        name##_mix_##s(n, at, stride, (float)param[0]);                                            \
    }
#define MIX(name, s, expr)                                                                         \
    DIRECT(name##_in_##s, s, expr)                                                                 \
    static void name##_##s(int64_t n, char *const *at, const int64_t *stride, double number)       \
    {                                                                                              \
        name##_in_##s(n, at, stride, (float)number);                                               \
    }
#define BOTH(KIND, name, expr) KIND(name, f16, expr) KIND(name, bf16, expr)

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

BOTH(LOOP, sum, a + b)
BOTH(LOOP, difference, a - b)
BOTH(LOOP, sum_alpha, a + p * b)
BOTH(LOOP, product, a *b)
BOTH(LOOP, quotient, a / b)
BOTH(LOOP, maximum, larger(a, b))
BOTH(LOOP, minimum, smaller(a, b))
BOTH(LOOP, square, a *a)
BOTH(LOOP, reciprocal, 1.0f / a)
BOTH(LOOP, root, _mm512_sqrt_ps(a))
BOTH(LOOP, one_by_root, 1.0f / _mm512_sqrt_ps(a))
BOTH(LOOP, sum_scalar, a + p)
BOTH(LOOP, product_scalar, a *p)
BOTH(LOOP, tanh_grad, a *(1.0f - b * b))
BOTH(LOOP, sigmoid_grad, a *(b *(1.0f - b)))
BOTH(MIX, lerp, a + c * (b - a))
BOTH(MIX, lerp_scalar, a + p * (b - a))
BOTH(MIX, addcmul, a + p * (b * c))
BOTH(MIX, addcdiv, a + p * (b / c))
BOTH(MIX, clamp_tensor, smaller(larger(a, b), c))

/* Of 64 columns, those from n on left out: rows one after the other, 32 of them, then in float64. */
#define ROWS_SUM(s)                                                                                \
    static void rows_sum_##s(int64_t rows, int64_t n, const char *x, int64_t stride, double *all)  \
    {                                                                                              \
        for (int64_t at = 0; at < n; at += 4 * LANES) {                                            \
            int64_t wide = n - at < 4 * LANES ? n - at : 4 * LANES;                                \
            __mmask16 mask[4];                                                                     \
            for (int64_t k = 0; k < 4; k++) {                                                      \
                int64_t left = wide - k * LANES;                                                   \
                mask[k] = (__mmask16)(left <= 0 ? 0 : left >= LANES ? 0xffff : (1 << left) - 1);   \
            }                                                                                      \
            for (int64_t first = 0; first < rows; first += DEEP) {                                 \
                int64_t end = rows - first < DEEP ? rows : first + DEEP;                           \
                lanes sum[4] = { { 0 } };                                                          \
                float out[4 * LANES];                                                              \
                for (int64_t i = first; i < end; i++)                                              \
                    for (int k = 0; k < 4; k++)                                                    \
                        sum[k] += some_##s(mask[k], x + i * stride + 2 * (at + k * LANES));        \
                for (int k = 0; k < 4; k++)                                                        \
                    _mm512_storeu_ps(out + k * LANES, sum[k]);                                     \
                for (int64_t j = 0; j < wide; j++)                                                 \
                    all[at + j] += (double)out[j];                                                 \
            }                                                                                      \
        }                                                                                          \
    }
static inline lanes some_f16(__mmask16 mask, const void *from)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from));
}

static inline lanes some_bf16(__mmask16 mask, const void *from)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from)), 16));
}
#else
enum { WIDE = 256 };
#define ROWS_SUM(s)                                                                                \
    static void rows_sum_##s(int64_t rows, int64_t n, const char *x, int64_t stride, double *all)  \
    {                                                                                              \
        tn__load *load = tn__convert_load(DTYPE_##s, TN__F32);                                     \
        for (int64_t at = 0; at < n; at += WIDE) {                                                 \
            int64_t wide = n - at < WIDE ? n - at : WIDE;                                          \
            for (int64_t first = 0; first < rows; first += DEEP) {                                 \
                int64_t end = rows - first < DEEP ? rows : first + DEEP;                           \
                float sum[WIDE] = { 0 }, row[WIDE];                                                \
                for (int64_t i = first; i < end; i++) {                                            \
                    load(wide, x + i * stride + 2 * at, 2, row);                                   \
                    for (int64_t j = 0; j < wide; j++)                                             \
                        sum[j] += row[j];                                                          \
                }                                                                                  \
                for (int64_t j = 0; j < wide; j++)                                                 \
                    all[at + j] += (double)sum[j];                                                 \
            }                                                                                      \
        }                                                                                          \
    }
#define DTYPE_f16 TN_F16
#define DTYPE_bf16 TN_BF16
#endif
enum { DEEP = 32 };
ROWS_SUM(f16)
ROWS_SUM(bf16)

#ifndef __AVX512BW__
TN__BINARY(add_bf16, uint16_t, SUM_BF16(a, b))
TN__BINARY(add_f16, uint16_t, SUM_F16(a, b))

/* Eight at a time, which the compiler does not find. */
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
    add_f16(n - i, y + i * sy, sy, a + i * sa, sa, b + i * sb, sb, param);
}
#else
#define add_halves add_f16
#endif
#endif

#define PAIR(name)                                                                                 \
    {                                                                                              \
        name##_f16, name##_bf16                                                                    \
    }
const struct tn__simd_float16 TN__SIMD_TABLE(float16) = {
    .ew = {
        [TN__NEG] = { other_sign, other_sign },
        [TN__ABS] = { no_sign, no_sign },
#ifdef __AVX512BW__
        [TN__ADD] = PAIR(sum),
        [TN__SUB] = PAIR(difference),
        [TN__ADD_ALPHA] = PAIR(sum_alpha),
        [TN__MUL] = PAIR(product),
        [TN__DIV] = PAIR(quotient),
        [TN__MAXIMUM] = PAIR(maximum),
        [TN__MINIMUM] = PAIR(minimum),
        [TN__SQUARE] = PAIR(square),
        [TN__RECIPROCAL] = PAIR(reciprocal),
        [TN__SQRT] = PAIR(root),
        [TN__RSQRT] = PAIR(one_by_root),
        [TN__ADD_SCALAR] = PAIR(sum_scalar),
        [TN__MUL_SCALAR] = PAIR(product_scalar),
        [TN__TANH_GRAD] = PAIR(tanh_grad),
        [TN__SIGMOID_GRAD] = PAIR(sigmoid_grad),
#endif
    },
#ifdef __AVX512BW__
    .add = PAIR(sum),
    .ternary = { [TN__TERNARY_LERP] = PAIR(lerp), [TN__TERNARY_LERP_SCALAR] = PAIR(lerp_scalar), [TN__TERNARY_ADDCMUL] = PAIR(addcmul), [TN__TERNARY_ADDCDIV] = PAIR(addcdiv), [TN__TERNARY_CLAMP_TENSOR] = PAIR(clamp_tensor) },
#else
    .add = { add_halves, add_bf16 },
#endif
    .add_at = PAIR(add_at),
    .rows_sum = PAIR(rows_sum),
};

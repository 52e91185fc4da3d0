/* SPDX-License-Identifier: MIT
 *
 * Conversion between dtypes, with the results of PyTorch: a float is truncated to int64, which then
 * wraps around to a narrower integer; float64 is converted to float16, bfloat16 and float8 through
 * float32; of a complex number the real part is used, but bool is
 * false only if both parts are 0. A float outside of the range of int64 becomes
 * the smallest int64, except that uint64 keeps all values in its own range. float8 e4m3 has no
 * infinity: values that are too large become its largest number. */
#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "math/float16.h"
#include "simd/simd.h"

struct c64 {
    float re, im;
};
struct c128 {
    double re, im;
};

/* The two formats of float8. e4m3: exponent bias 7, largest number 448, NaN is 0x7f. e5m2: the
 * upper byte of a float16. */
static inline float e4m3_to_float(uint8_t byte)
{
    uint32_t exponent = byte >> 3 & 15, mantissa = byte & 7;
    float value = exponent == 0 ? (float)mantissa * 0x1p-9f
                                : bits_float((exponent + 120) << 23 | mantissa << 20);
    if ((byte & 0x7f) == 0x7f)
        value = bits_float(0x7fc00000u);
    return byte & 0x80 ? -value : value;
}

static inline uint8_t float_to_e4m3(float x)
{
    uint32_t bits = float_bits(x), sign = bits >> 24 & 0x80;
    bits &= 0x7fffffffu;
    uint32_t value;
    if (bits > 0x7f800000u)
        value = 0x7f;
    else if (bits >= 0x43e00000u) /* 448 or more */
        value = 0x7e;
    else if (bits < 0x3c800000u) /* below 2^-6: subnormal, a multiple of 2^-9 */
        value = float_bits(bits_float(bits) + 0x1p14f) - 0x46800000u;
    else
        value = (bits - (120u << 23) + 0x7ffffu + (bits >> 20 & 1)) >> 20;
    return (uint8_t)(value | sign);
}

static inline float e5m2_to_float(uint8_t byte)
{
    return f16_to_float((uint16_t)(byte << 8));
}

static inline uint8_t float_to_e5m2(float x)
{
    uint32_t bits = float_bits(x), sign = bits >> 24 & 0x80;
    bits &= 0x7fffffffu;
    uint32_t value;
    if (bits > 0x7f800000u)
        value = 0x7f;
    else if (bits >= 0x47700000u) /* 61440 or more rounds to infinity */
        value = 0x7c;
    else if (bits < 0x38800000u) /* below 2^-14: subnormal, a multiple of 2^-16 */
        value = float_bits(bits_float(bits) + 0x1p7f) - 0x43000000u;
    else
        value = (bits - (112u << 23) + 0xfffffu + (bits >> 21 & 1)) >> 21;
    return (uint8_t)(value | sign);
}

/* ---- floats to integers ---------------------------------------------------------------------- */

static inline int64_t to_int(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

static inline uint64_t to_uint(double x)
{
    return x >= 0x1p63 && x < 0x1p64 ? (uint64_t)x : (uint64_t)to_int(x);
}

/* ---- tables ---------------------------------------------------------------------------------- */

#define IDENTITY(x) (x)

/* Each row: name, type in memory, conversion of x from memory to a number, and conversions of x to
 * the type in memory from float32, from float64 and from int64. */
#define BOOL_TYPE(X) X(truth, uint8_t, TRUTH, (x != 0), (x != 0), (x != 0))
#define INTEGER_TYPES(X)                                                                           \
    X(u8, uint8_t, IDENTITY, (uint8_t)to_int((double)x), (uint8_t)to_int(x), (uint8_t)x)           \
    X(i8, int8_t, IDENTITY, (int8_t)to_int((double)x), (int8_t)to_int(x), (int8_t)x)               \
    X(i16, int16_t, IDENTITY, (int16_t)to_int((double)x), (int16_t)to_int(x), (int16_t)x)          \
    X(i32, int32_t, IDENTITY, (int32_t)to_int((double)x), (int32_t)to_int(x), (int32_t)x)          \
    X(i64, int64_t, IDENTITY, to_int((double)x), to_int(x), x)                                     \
    X(u16, uint16_t, IDENTITY, (uint16_t)to_int((double)x), (uint16_t)to_int(x), (uint16_t)x)      \
    X(u32, uint32_t, IDENTITY, (uint32_t)to_int((double)x), (uint32_t)to_int(x), (uint32_t)x)      \
    X(u64, uint64_t, IDENTITY, to_uint((double)x), to_uint(x), (uint64_t)x)
#define FLOAT_TYPES(X)                                                                             \
    X(f16, uint16_t, f16_to_float, float_to_f16(x), float_to_f16((float)x),                        \
      float_to_f16((float)x))                                                                      \
    X(bf16, uint16_t, bf16_to_float, float_to_bf16(x), float_to_bf16((float)x),                    \
      float_to_bf16((float)x))                                                                     \
    X(f32, float, IDENTITY, x, (float)x, (float)x)                                                 \
    X(f64, double, IDENTITY, (double)x, x, (double)x)
#define FLOAT8_TYPES(X)                                                                            \
    X(e4m3, uint8_t, e4m3_to_float, float_to_e4m3(x), float_to_e4m3((float)x),                     \
      float_to_e4m3((float)x))                                                                     \
    X(e5m2, uint8_t, e5m2_to_float, float_to_e5m2(x), float_to_e5m2((float)x),                     \
      float_to_e5m2((float)x))

#define TRUTH(x) ((x) != 0)

/* Loops over n elements, with a constant stride s for contiguous elements. Elements are read and
 * written by memcpy, because views of other types may share the storage. */
#define LOOP_OF(step, ...)                                                                         \
    for (int64_t i = 0; i < n; i++) {                                                              \
        const int64_t s = step;                                                                    \
        __VA_ARGS__                                                                                \
    }
#define LOOP(T, ...)                                                                               \
    if (stride == (int64_t)sizeof(T))                                                              \
        LOOP_OF((int64_t)sizeof(T), __VA_ARGS__)                                                   \
    else                                                                                           \
        LOOP_OF(stride, __VA_ARGS__)

#define LOAD_TO(name, T, decode, suffix, CT, convert)                                              \
    static void load_##name##_##suffix(int64_t n, const char *from, int64_t stride, void *to)      \
    {                                                                                              \
        CT *y = to;                                                                                \
        LOOP(T, {                                                                                  \
            T x;                                                                                   \
            memcpy(&x, from + i * s, sizeof x);                                                    \
            y[i] = convert(decode(x));                                                             \
        })                                                                                         \
    }
#define LOAD_COMPLEX(name, T, decode, suffix, CT, R)                                               \
    static void load_##name##_##suffix(int64_t n, const char *from, int64_t stride, void *to)      \
    {                                                                                              \
        CT *y = to;                                                                                \
        LOOP(T, {                                                                                  \
            T x;                                                                                   \
            memcpy(&x, from + i * s, sizeof x);                                                    \
            y[i] = (CT){ (R)decode(x), 0 };                                                        \
        })                                                                                         \
    }
#define STORE_FROM(name, T, suffix, CT, R, part, expr)                                             \
    static void store_##suffix##_##name(int64_t n, const void *from, char *to, int64_t stride)     \
    {                                                                                              \
        const CT *in = from;                                                                       \
        LOOP(T, {                                                                                  \
            R x = in[i] part;                                                                      \
            T y = expr;                                                                            \
            memcpy(to + i * s, &y, sizeof y);                                                      \
        })                                                                                         \
    }

#define TO_FLOAT(x) (float)(x)
#define TO_DOUBLE(x) (double)(x)
#define TO_INT(x)                                                                                  \
    ((_Generic((x), float                                                                          \
               : to_int((double)(x)), double                                                       \
               : to_int((double)(x)), default                                                      \
               : (int64_t)(x))))

#define REAL_LOADS(name, T, decode, from_f32, from_f64, from_i64)                                  \
    LOAD_TO(name, T, decode, f32, float, TO_FLOAT)                                                 \
    LOAD_TO(name, T, decode, f64, double, TO_DOUBLE)                                               \
    LOAD_TO(name, T, decode, i64, int64_t, TO_INT)                                                 \
    LOAD_COMPLEX(name, T, decode, c64, struct c64, float)                                          \
    LOAD_COMPLEX(name, T, decode, c128, struct c128, double)
#define REAL_STORES(name, T, decode, from_f32, from_f64, from_i64)                                 \
    STORE_FROM(name, T, f32, float, float, , from_f32)                                             \
    STORE_FROM(name, T, f64, double, double, , from_f64)                                           \
    STORE_FROM(name, T, i64, int64_t, int64_t, , from_i64)
#define STORES_OF_REAL_PARTS(name, T, decode, from_f32, from_f64, from_i64)                        \
    STORE_FROM(name, T, c64, struct c64, float, .re, from_f32)                                     \
    STORE_FROM(name, T, c128, struct c128, double, .re, from_f64)
BOOL_TYPE(REAL_LOADS)
BOOL_TYPE(REAL_STORES)
STORE_FROM(truth, uint8_t, c64, struct c64, bool, .re != 0 || in[i].im != 0, x)
STORE_FROM(truth, uint8_t, c128, struct c128, bool, .re != 0 || in[i].im != 0, x)
INTEGER_TYPES(REAL_LOADS)
INTEGER_TYPES(REAL_STORES)
INTEGER_TYPES(STORES_OF_REAL_PARTS)
FLOAT_TYPES(REAL_LOADS)
FLOAT_TYPES(REAL_STORES)
FLOAT_TYPES(STORES_OF_REAL_PARTS)
FLOAT8_TYPES(REAL_LOADS)
FLOAT8_TYPES(REAL_STORES)
FLOAT8_TYPES(STORES_OF_REAL_PARTS)

/* Contiguous float16 are converted by the processor's instruction, eight at a time, or sixteen with
 * 512-bit vectors. */
#ifdef __F16C__
static void load_floats_f16(int64_t n, const char *from, int64_t stride, void *to)
{
    float *y = to;
    int64_t i = 0;
#ifdef __AVX512BW__
    for (; stride == 2 && i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256(
                                    (const __m256i *)(const void *)(from + 2 * i))));
#endif
    for (; stride == 2 && i + 8 <= n; i += 8)
        _mm256_storeu_ps(
            y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + 2 * i))));
    load_f16_f32(n - i, from + i * stride, stride, y + i);
}

static void store_floats_f16(int64_t n, const void *from, char *to, int64_t stride)
{
    const float *x = from;
    int64_t i = 0;
#ifdef __AVX512BW__
    for (; stride == 2 && i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(to + 2 * i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(x + i), 0));
#endif
    for (; stride == 2 && i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + 2 * i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
    store_f32_f16(n - i, x + i, to + i * stride, stride);
}

/* By way of float32, as store_f64_f16 does it. */
static void store_doubles_f16(int64_t n, const void *from, char *to, int64_t stride)
{
    const double *x = from;
    int64_t i = 0;
    for (; stride == 2 && i + 8 <= n; i += 8) {
        __m128 low = _mm256_cvtpd_ps(_mm256_loadu_pd(x + i)),
               high = _mm256_cvtpd_ps(_mm256_loadu_pd(x + i + 4));
        _mm_storeu_si128((__m128i *)(void *)(to + 2 * i),
                         _mm256_cvtps_ph(_mm256_set_m128(high, low), 0));
    }
    store_f64_f16(n - i, x + i, to + i * stride, stride);
}
#else
#define load_floats_f16 load_f16_f32
#define store_floats_f16 store_f32_f16
#define store_doubles_f16 store_f64_f16
#endif

/* Contiguous bfloat16 are converted 32 at a time. The loop that compilers make of store_f32_bf16
 * spends most of its time on packing each vector and testing it for NaN. The processor's
 * instruction (AVX512_BF16) is not suitable, because it flushes subnormal numbers to 0. */
#ifdef __AVX512BW__
static void store_floats_bf16(int64_t n, const void *from, char *to, int64_t stride)
{
    const float *x = from;
    const __m512i last = _mm512_set1_epi32(0x10000), less = _mm512_set1_epi32(0x7fff),
                  half = _mm512_set1_epi32(0x8000);
    uint16_t upper[32];
    int64_t i = 0;
    for (uint16_t j = 0; j < 32; j++)
        upper[j] = (uint16_t)(2 * j + 1);
    const __m512i places = _mm512_loadu_si512(upper);
    for (; stride == 2 && i + 32 <= n; i += 32) {
        __m512i a = _mm512_loadu_si512(x + i), b = _mm512_loadu_si512(x + i + 16);
        if (_mm512_cmp_ps_mask(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), _CMP_UNORD_Q)) {
            store_f32_bf16(32, x + i, to + 2 * i, 2);
            continue;
        }
        a = _mm512_mask_add_epi32(_mm512_add_epi32(a, less), _mm512_test_epi32_mask(a, last), a,
                                  half);
        b = _mm512_mask_add_epi32(_mm512_add_epi32(b, less), _mm512_test_epi32_mask(b, last), b,
                                  half);
        _mm512_storeu_si512(to + 2 * i, _mm512_permutex2var_epi16(a, places, b));
    }
    store_f32_bf16(n - i, x + i, to + i * stride, stride);
}
#else
#define store_floats_bf16 store_f32_bf16
#endif

#define COMPLEX_LOAD(name, T, suffix, CT, expr)                                                    \
    static void load_##name##_##suffix(int64_t n, const char *from, int64_t stride, void *to)      \
    {                                                                                              \
        CT *y = to;                                                                                \
        LOOP(T, {                                                                                  \
            T x;                                                                                   \
            memcpy(&x, from + i * s, sizeof x);                                                    \
            y[i] = expr;                                                                           \
        })                                                                                         \
    }
#define COMPLEX_STORE(name, T, suffix, CT, expr)                                                   \
    static void store_##suffix##_##name(int64_t n, const void *from, char *to, int64_t stride)     \
    {                                                                                              \
        const CT *in = from;                                                                       \
        LOOP(T, {                                                                                  \
            CT x = in[i];                                                                          \
            T y = expr;                                                                            \
            memcpy(to + i * s, &y, sizeof y);                                                      \
        })                                                                                         \
    }
#define AS_C64 ((struct c64){ (float)x.re, (float)x.im })
#define AS_C128 ((struct c128){ (double)x.re, (double)x.im })
#define COMPLEX_LOADS(name, T)                                                                     \
    COMPLEX_LOAD(name, T, f32, float, (float)x.re)                                                 \
    COMPLEX_LOAD(name, T, f64, double, (double)x.re)                                               \
    COMPLEX_LOAD(name, T, i64, int64_t, to_int((double)x.re))                                      \
    COMPLEX_LOAD(name, T, c64, struct c64, AS_C64)                                                 \
    COMPLEX_LOAD(name, T, c128, struct c128, AS_C128)
#define COMPLEX_STORES(name, T, self)                                                              \
    COMPLEX_STORE(name, T, f32, float, ((T){ x, 0 }))                                              \
    COMPLEX_STORE(name, T, f64, double, ((T){ self x, 0 }))                                        \
    COMPLEX_STORE(name, T, i64, int64_t, ((T){ self x, 0 }))                                       \
    COMPLEX_STORE(name, T, c64, struct c64, ((T){ self x.re, self x.im }))                         \
    COMPLEX_STORE(name, T, c128, struct c128, ((T){ self x.re, self x.im }))
COMPLEX_LOADS(c64, struct c64)
COMPLEX_STORES(c64, struct c64, (float))
COMPLEX_LOADS(c128, struct c128)
COMPLEX_STORES(c128, struct c128, (double))

#define ROW(dtype, name)                                                                           \
    [dtype] = { { load_##name##_f32, load_##name##_f64, load_##name##_i64, load_##name##_c64,      \
                  load_##name##_c128 },                                                            \
                { store_f32_##name, store_f64_##name, store_i64_##name, store_c64_##name,          \
                  store_c128_##name } }

const struct tn__simd_convert TN__SIMD_TABLE(convert) = {
    .of = {
    ROW(TN_BOOL, truth),
    ROW(TN_U8, u8),
    ROW(TN_I8, i8),
    ROW(TN_I16, i16),
    ROW(TN_I32, i32),
    ROW(TN_I64, i64),
    [TN_BF16] = { { load_bf16_f32, load_bf16_f64, load_bf16_i64, load_bf16_c64, load_bf16_c128 },
                  { store_floats_bf16, store_f64_bf16, store_i64_bf16, store_c64_bf16,
                    store_c128_bf16 } },
    [TN_F16] = { { load_floats_f16, load_f16_f64, load_f16_i64, load_f16_c64, load_f16_c128 },
                 { store_floats_f16, store_doubles_f16, store_i64_f16, store_c64_f16,
                   store_c128_f16 } },
    ROW(TN_F32, f32),
    ROW(TN_F64, f64),
    ROW(TN_C64, c64),
    ROW(TN_C128, c128),
    ROW(TN_U16, u16),
    ROW(TN_U32, u32),
    ROW(TN_U64, u64),
    ROW(TN_F8_E4M3, e4m3),
    ROW(TN_F8_E5M2, e5m2),
},
};

/* SPDX-License-Identifier: MIT
 *
 * Sums of products, compiled once per instruction set (TN__PRODUCTS_NAME) and, other than
 * simd/elementwise.c, with fused multiply-adds where there are any: the innermost tile of the own product
 * of matrices (MR x NR sums in registers, two vectors wide), dot products, y += a x. */
#include "simd/simd.h"

#if defined(__AVX512F__)
#define TILE_BYTES 64
#define TILE_MR 12
#define STRIP_VECTORS 4
#elif defined(__AVX2__)
#define TILE_BYTES 32
#define TILE_MR 6
#define STRIP_VECTORS 2
#else
#define TILE_BYTES 16
#define TILE_MR 4
#define STRIP_VECTORS 2
#endif
#define TILE_NR_F32 (2 * TILE_BYTES / 4)
#define TILE_NR_F64 (2 * TILE_BYTES / 8)
#define TILE_NR_I64 TILE_NR_F64

/* Vectors of the instruction set's width that may lie at any address of an element. */
typedef float tile_v_f32 __attribute__((vector_size(TILE_BYTES), aligned(4), may_alias));
typedef double tile_v_f64 __attribute__((vector_size(TILE_BYTES), aligned(8), may_alias));
typedef uint64_t tile_v_i64 __attribute__((vector_size(TILE_BYTES), aligned(8), may_alias));

#define TILE(s, T, V)                                                                              \
    static void tile_##s(int64_t kc, const void *ap, const void *bp, void *cp, int64_t ldc)        \
    {                                                                                              \
        enum { W = TILE_BYTES / (int)sizeof(T) };                                                  \
        const T *a = ap, *b = bp;                                                                  \
        V acc[TILE_MR][2] = { { { 0 } } };                                                         \
        for (int64_t k = 0; k < kc; k++, a += TILE_MR, b += 2 * W) {                               \
            V b0 = *(const V *)(const void *)b, b1 = *(const V *)(const void *)(b + W);            \
            _Pragma("GCC unroll 16") for (int i = 0; i < TILE_MR; i++)                             \
            {                                                                                      \
                acc[i][0] += a[i] * b0;                                                            \
                acc[i][1] += a[i] * b1;                                                            \
            }                                                                                      \
        }                                                                                          \
        _Pragma("GCC unroll 16") for (int i = 0; i < TILE_MR; i++)                                 \
        {                                                                                          \
            T *c = (T *)cp + i * ldc;                                                              \
            *(V *)(void *)c += acc[i][0];                                                          \
            *(V *)(void *)(c + W) += acc[i][1];                                                    \
        }                                                                                          \
    }
TILE(f32, float, tile_v_f32)
TILE(f64, double, tile_v_f64)
TILE(i64, uint64_t, tile_v_i64)

/* ---- strips ---------------------------------------------------------------------------------- */

/* The same without packing a: its rows are `step` elements apart and its depth runs on (ROWS), or its rows lie side by
 * side and its depth is `step` apart (COLUMNS). One function for each number of rows and vectors, so that the sums stay in
 * registers. Two steps of the depth a turn: what counts and jumps takes its place from multiply-adds. */
#define STRIP_STEP(kind, rows_, vectors_)                                                          \
    {                                                                                              \
        V line[vectors_];                                                                          \
        _Pragma("GCC unroll 4") for (int v = 0; v < vectors_; v++)                                 \
            line[v] = *(const V *)(const void *)(b + v * W);                                       \
        _Pragma("GCC unroll 16") for (int i = 0; i < rows_; i++)                                   \
            _Pragma("GCC unroll 4") for (int v = 0; v < vectors_; v++)                             \
                acc[i][v] += kind##_AT * line[v];                                                  \
        a += kind##_PACE;                                                                          \
        b += pace;                                                                                 \
        __asm__("" : "+r"(a), "+r"(b));                                                            \
    }
#define STRIP(s, T, V_, kind, vectors_, rows_)                                                     \
    static void strip_##s##_##kind##_##vectors_##_##rows_(                                         \
        int64_t kc, const T *a, int64_t step, const T *b, int64_t pace, T *c, int64_t ldc,         \
        const T *bias, int64_t rounds, int64_t jump)                                               \
    {                                                                                              \
        enum { W = TILE_BYTES / (int)sizeof(T) };                                                  \
        typedef V_ V;                                                                              \
        V acc[rows_][vectors_] = { { { 0 } } };                                                    \
        for (; rounds > 0; rounds--, a += jump) {                                                  \
            int64_t k = 0;                                                                         \
            for (; k + 1 < kc; k += 2) {                                                           \
                STRIP_STEP(kind, rows_, vectors_)                                                  \
                STRIP_STEP(kind, rows_, vectors_)                                                  \
            }                                                                                      \
            if (k < kc)                                                                            \
                STRIP_STEP(kind, rows_, vectors_)                                                  \
        }                                                                                          \
        _Pragma("GCC unroll 16") for (int i = 0; i < rows_; i++)                                   \
        {                                                                                          \
            T *to = c + i * ldc;                                                                   \
            _Pragma("GCC unroll 4") for (int v = 0; v < vectors_; v++)                             \
            {                                                                                      \
                V *at = (V *)(void *)(to + v * W);                                                 \
                *at = acc[i][v] + (bias ? *(const V *)(const void *)(bias + v * W) : *at);         \
            }                                                                                      \
        }                                                                                          \
    }
#define ROWS_AT a[i * step]
#define ROWS_PACE 1
#define COLUMNS_AT a[i]
#define COLUMNS_PACE step

/* Rows at once: as many as registers are for. With three and four vectors half a strip. */
#define UP_TO_4(X, ...) X(__VA_ARGS__, 1) X(__VA_ARGS__, 2) X(__VA_ARGS__, 3) X(__VA_ARGS__, 4)
#define UP_TO_6(X, ...) UP_TO_4(X, __VA_ARGS__) X(__VA_ARGS__, 5) X(__VA_ARGS__, 6)
#define UP_TO_12(X, ...)                                                                           \
    UP_TO_6(X, __VA_ARGS__)                                                                        \
    X(__VA_ARGS__, 7)                                                                              \
    X(__VA_ARGS__, 8)                                                                              \
    X(__VA_ARGS__, 9)                                                                              \
    X(__VA_ARGS__, 10)                                                                             \
    X(__VA_ARGS__, 11)                                                                             \
    X(__VA_ARGS__, 12)
#if TILE_MR == 12
#define EACH_ROW UP_TO_12
#elif TILE_MR == 6
#define EACH_ROW UP_TO_6
#else
#define EACH_ROW UP_TO_4
#endif

#define STRIP_CASE(s, kind, vectors_, rows_)                                                       \
    case rows_:                                                                                    \
        strip_##s##_##kind##_##vectors_##_##rows_(kc, a, step, b, pace, c, ldc, bias, rounds,      \
                                                  jump);                                           \
        break;
#define STRIPS_OF(EACH, s, T, V, kind, vectors_)                                                   \
    EACH(STRIP, s, T, V, kind, vectors_)                                                           \
    static void strip_##s##_##kind##_##vectors_(                                                   \
        int64_t rows, int64_t kc, const void *a, int64_t step, const void *b, int64_t pace,        \
        void *c, int64_t ldc, const void *bias, int64_t rounds, int64_t jump)                      \
    {                                                                                              \
        switch (rows) {                                                                            \
            EACH(STRIP_CASE, s, kind, vectors_)                                                    \
        }                                                                                          \
    }
#define BOTH_KINDS(EACH, s, T, V, vectors_)                                                        \
    STRIPS_OF(EACH, s, T, V, ROWS, vectors_)                                                       \
    STRIPS_OF(EACH, s, T, V, COLUMNS, vectors_)
BOTH_KINDS(EACH_ROW, f32, float, tile_v_f32, 1)
BOTH_KINDS(EACH_ROW, f32, float, tile_v_f32, 2)
BOTH_KINDS(EACH_ROW, f64, double, tile_v_f64, 1)
BOTH_KINDS(EACH_ROW, f64, double, tile_v_f64, 2)
#if STRIP_VECTORS == 4
BOTH_KINDS(UP_TO_6, f32, float, tile_v_f32, 3)
BOTH_KINDS(UP_TO_6, f32, float, tile_v_f32, 4)
BOTH_KINDS(UP_TO_6, f64, double, tile_v_f64, 3)
BOTH_KINDS(UP_TO_6, f64, double, tile_v_f64, 4)
#define WIDE(s)                                                                                    \
    { 6, strip_##s##_ROWS_3, strip_##s##_COLUMNS_3 },                                              \
        { 6, strip_##s##_ROWS_4, strip_##s##_COLUMNS_4 },
#else
#define WIDE(s)
#endif
#define STRIPS(s, T)                                                                               \
    {                                                                                              \
        .mr = TILE_MR, .vector = TILE_BYTES / (int)sizeof(T), .vectors = STRIP_VECTORS,            \
        .of = { { TILE_MR, strip_##s##_ROWS_1, strip_##s##_COLUMNS_1 },                            \
                { TILE_MR, strip_##s##_ROWS_2, strip_##s##_COLUMNS_2 },                            \
                WIDE(s) },                                                                         \
    }

#define ROW_PRODUCTS(T, s)                                                                         \
    static T dot_##s(int64_t n, const T *a, const T *b)                                            \
    {                                                                                              \
        enum { LANES = 64 };                                                                       \
        T acc[LANES] = { 0 }, rest = 0;                                                            \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int j = 0; j < LANES; j++)                                                        \
                acc[j] += a[i + j] * b[i + j];                                                     \
        for (int j = 0; j < LANES / 2; j++)                                                        \
            acc[j] += acc[j + LANES / 2];                                                          \
        for (int j = 0; j < LANES / 4; j++)                                                        \
            acc[j] += acc[j + LANES / 4];                                                          \
        for (; i + LANES / 4 <= n; i += LANES / 4)                                                 \
            for (int j = 0; j < LANES / 4; j++)                                                    \
                acc[j] += a[i + j] * b[i + j];                                                     \
        for (; i < n; i++)                                                                         \
            rest += a[i] * b[i];                                                                   \
        for (int j = 0; j < LANES / 8; j++)                                                        \
            acc[j] += acc[j + LANES / 8];                                                          \
        for (int j = 0; j < LANES / 16; j++)                                                       \
            acc[j] += acc[j + LANES / 16];                                                         \
        for (int j = 1; j < LANES / 16; j++)                                                       \
            rest += acc[j];                                                                        \
        return acc[0] + rest;                                                                      \
    }                                                                                              \
    static void axpy_##s(int64_t n, T a, const T *x, T *y)                                         \
    {                                                                                              \
        TN__IVDEP for (int64_t i = 0; i < n; i++) y[i] += a * x[i];                                \
    }                                                                                              \
    static void axpy4_##s(int64_t n, const T *a, const T *x, int64_t step, T *y)                   \
    {                                                                                              \
        const T a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];                                        \
        const T *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step;                                  \
        TN__IVDEP for (int64_t i = 0; i < n; i++)                                                  \
            y[i] = (y[i] + a0 * x[i] + a1 * x1[i]) + (a2 * x2[i] + a3 * x3[i]);                    \
    }
ROW_PRODUCTS(float, f32)
ROW_PRODUCTS(double, f64)

/* Rows multiplied element by element. */
#define ROWS(s, T, V)                                                                              \
    static void weigh_rows_##s(int64_t n, int64_t count, const void *const *x, void *const *w,     \
                               const void *bias, void *y)                                          \
    {                                                                                              \
        enum { W = TILE_BYTES / (int)sizeof(T) };                                                  \
        const T *b = bias;                                                                         \
        T *to = y;                                                                                 \
        int64_t j = 0;                                                                             \
        for (; j + W <= n; j += W) {                                                               \
            V sum = { 0 };                                                                         \
            if (b)                                                                                 \
                sum = *(const V *)(const void *)(b + j);                                           \
            for (int64_t i = 0; i < count; i++)                                                    \
                sum += *(const V *)(const void *)((const T *)x[i] + j) *                           \
                       *(const V *)(const void *)((const T *)w[i] + j);                            \
            *(V *)(void *)(to + j) = sum;                                                          \
        }                                                                                          \
        for (; j < n; j++) {                                                                       \
            T sum = b ? b[j] : 0;                                                                  \
            for (int64_t i = 0; i < count; i++)                                                    \
                sum += ((const T *)x[i])[j] * ((const T *)w[i])[j];                                \
            to[j] = sum;                                                                           \
        }                                                                                          \
    }                                                                                              \
    static void spread_row_##s(int64_t n, int64_t count, const void *const *x, const void *g,      \
                               void *const *w)                                                     \
    {                                                                                              \
        enum { W = TILE_BYTES / (int)sizeof(T) };                                                  \
        const T *by = g;                                                                           \
        int64_t j = 0;                                                                             \
        for (; j + W <= n; j += W) {                                                               \
            const V here = *(const V *)(const void *)(by + j);                                     \
            for (int64_t i = 0; i < count; i++)                                                    \
                *(V *)(void *)((T *)w[i] + j) += *(const V *)(const void *)((const T *)x[i] + j) * \
                                                 here;                                             \
        }                                                                                          \
        for (; j < n; j++)                                                                         \
            for (int64_t i = 0; i < count; i++)                                                    \
                ((T *)w[i])[j] += ((const T *)x[i])[j] * by[j];                                    \
    }
ROWS(f32, float, tile_v_f32)
ROWS(f64, double, tile_v_f64)

const struct tn__simd_gemm TN__SIMD_TABLE(gemm) = {
    .dot_f32 = dot_f32,
    .dot_f64 = dot_f64,
    .axpy_f32 = axpy_f32,
    .axpy_f64 = axpy_f64,
    .axpy4_f32 = axpy4_f32,
    .axpy4_f64 = axpy4_f64,
    .weigh_rows = { [TN__F32] = weigh_rows_f32, [TN__F64] = weigh_rows_f64 },
    .spread_row = { [TN__F32] = spread_row_f32, [TN__F64] = spread_row_f64 },
    .strips = {
        [TN__F32] = STRIPS(f32, float),
        [TN__F64] = STRIPS(f64, double),
    },
    .tile = {
        [TN__F32] = { TILE_MR, TILE_NR_F32, tile_f32 },
        [TN__F64] = { TILE_MR, TILE_NR_F64, tile_f64 },
        [TN__I64] = { TILE_MR, TILE_NR_I64, tile_i64 },
    },
};

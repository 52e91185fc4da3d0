/* SPDX-License-Identifier: MIT
 *
 * The tables of functions that exist once for each instruction set. Each C file of this folder has
 * one table, and is compiled once for each set, with the set's name in TN__SIMD_SET. The activation
 * of the plugin chooses a set. */
#ifndef TN_BACKEND_CPU_SIMD_SIMD_H
#define TN_BACKEND_CPU_SIMD_SIMD_H

#include "base/elementwise.h"
#include "base/index_run.h"
#include "base/philox.h"
#include "base/vectorize.h"
#include "fft/plan.h"

/* ---- the list of tables ---------------------------------------------------------------------- */

/* clang-format off */
#define TN__SIMD_TABLES(X, set)                                                                    \
    X(chain, set) X(convert, set) X(copy, set) X(elementwise, set) X(fft, set) X(float16, set)     \
    X(functions, set) X(gemm, set) X(integers, set) X(norm, set) X(optimizer, set)                 \
    X(pool_max, set) X(random, set) X(reduction, set) X(rnn, set) X(softmax, set) X(special, set)  \
    X(winograd, set)
/* clang-format on */

#define TN__SIMD_MEMBER(table, set) const struct tn__simd_##table *table;
struct tn__simd {
    const char *name; /* of the instruction set */
    TN__SIMD_TABLES(TN__SIMD_MEMBER, )
};
/* The tables of the chosen instruction set. */
extern struct tn__simd tn__simd;

#define TN__SIMD_DECLARE(table, set) extern const struct tn__simd_##table tn__simd_##table##_##set;
TN__SIMD_TABLES(TN__SIMD_DECLARE, baseline)
#ifdef TN__HAVE_AVX2
TN__SIMD_TABLES(TN__SIMD_DECLARE, avx2)
#endif
#ifdef TN__HAVE_AVX512
TN__SIMD_TABLES(TN__SIMD_DECLARE, avx512)
#endif

/* TN__SIMD_TABLE(norm) is the name of a table in the set that is being compiled, for example
 * tn__simd_norm_avx2. */
#ifndef TN__SIMD_SET
#define TN__SIMD_SET baseline
#endif
#define TN__SIMD_NAME(table, set) tn__simd_##table##_##set
#define TN__SIMD_NAME_OF(table, set) TN__SIMD_NAME(table, set)
#define TN__SIMD_TABLE(table) TN__SIMD_NAME_OF(table, TN__SIMD_SET)

/* ---- convert.c: conversion between dtypes and compute types ---------------------------------- */

struct tn__conversions {
    tn__load *load[TN__CT_COUNT];
    tn__store *store[TN__CT_COUNT];
};
struct tn__simd_convert {
    struct tn__conversions of[TN_DTYPE_COUNT];
};

/* ---- copy.c: contiguous elements of 1, 2, 4 and 8 bytes, of any dtype ------------------------ */

enum tn__bits { TN__BITS_AND, TN__BITS_OR, TN__BITS_XOR, TN__BITS_NOT, TN__BITS_NOT_BOOL };
struct tn__simd_copy {
    void (*fill[4])(int64_t n, char *to, const void *value);
    /* Copies in reverse order; `last` is the address of the last element read, which is written
     * first. */
    void (*reverse[4])(int64_t n, char *to, const char *last);
    /* Copies rows of at least 64 bytes, which are sy and sx bytes apart. */
    void (*rows)(int64_t rows, int64_t bytes, char *y, int64_t sy, const char *x, int64_t sx);
    /* to[i] = from[index[i]] */
    void (*gather[4])(int64_t n, char *to, const char *from, const int64_t *index);
    /* y[i] = the highest bit of element i */
    void (*signs[4])(int64_t n, char *y, const char *x);
    void (*bits[TN__BITS_NOT_BOOL + 1])(int64_t bytes, char *y, const char *a, const char *b);
};
/* Returns the index of the function for elements of `item` bytes in the arrays above; -1 if there
 * is none. */
static inline int tn__copy_index(int64_t item)
{
    return item == 1 ? 0 : item == 2 ? 1 : item == 4 ? 2 : item == 8 ? 3 : -1;
}

/* ---- elementwise.c, elementwise_costly.c ----------------------------------------------------- */

/* Operations on three operands a, b, c and a number p that is passed with the call. The formulas
 * are in elementwise_template.h and float16_vector_template.h. */
#define TN__TERNARIES(X) X(lerp) X(lerp_scalar) X(addcmul) X(addcdiv) X(clamp_tensor)
#define TN__TERNARY(name) TN__TERNARY_##name,
enum tn__ternary { TN__TERNARIES(TN__TERNARY) TN__TERNARY_COUNT };
#undef TN__TERNARY
/* at[0 .. 3] are the result, a, b and c; the result may be equal to an operand. `number` is p. */
typedef void tn__ternary_loop(int64_t n, char *const *at, const int64_t *stride, double number);
struct tn__simd_elementwise {
    tn__ew_loop *ew[TN__EW_COUNT][TN__I64 + 1];
    tn__ternary_loop *ternary[TN__TERNARY_COUNT][TN__F64 + 1];
};
/* Functions of several steps per element, and gradients through them. */
struct tn__simd_functions {
    tn__ew_loop *ew[TN__EW_COUNT][TN__I64 + 1];
};
/* special.c: series of many terms, which are computed for groups of elements. */
struct tn__simd_special {
    tn__ew_loop *ew[TN__EW_COUNT][TN__F64 + 1];
    /* Replace n numbers by their mantissas, and write their exponents. */
    void (*split_f32)(int64_t n, float *x, int32_t *exponents);
    void (*split_f64)(int64_t n, double *x, int32_t *exponents);
};
/* integers.c */
enum { TN__INTEGERS_I64 = 4, TN__INTEGERS_COUNT };
struct tn__simd_integers {
    /* Loops whose operands and result have one dtype, or for comparisons whose operands have it. */
    tn__ew_loop *ew[TN__EW_COUNT][TN__INTEGERS_COUNT];
    /* Return the largest or the smallest of n contiguous narrow integers, n >= 1. */
    int64_t (*max[TN__INTEGERS_I64])(int64_t n, const void *x);
    int64_t (*min[TN__INTEGERS_I64])(int64_t n, const void *x);
};
/* Returns the index of a dtype of narrow integers in the array above; -1 for other dtypes. */
static inline int tn__integers_index(tn_dtype dtype)
{
    return dtype == TN_U8 ? 0 : dtype == TN_I8 ? 1 : dtype == TN_I16 ? 2 : dtype == TN_I32 ? 3 : -1;
}
/* Complex numbers; compiled once, not for each instruction set. */
extern tn__ew_loop *const tn__complex_loops[TN__EW_COUNT][2];
/* Operations that wider vectors do not make faster; compiled once. */
extern tn__ew_loop *const tn__scalar_loops[TN__EW_COUNT][TN__I64 + 1];

/* Returns the loop of an operation on a real compute type; NULL if there is none. */
static inline tn__ew_loop *tn__loop_of(enum tn__ew op, enum tn__ct ct)
{
    tn__ew_loop *loop = tn__simd.elementwise->ew[op][ct];
    if (!loop)
        loop = tn__simd.functions->ew[op][ct];
    if (!loop && ct <= TN__F64)
        loop = tn__simd.special->ew[op][ct];
    if (!loop && ct == TN__I64)
        loop = tn__simd.integers->ew[op][TN__INTEGERS_I64];
    return loop ? loop : tn__scalar_loops[op][ct];
}

/* ---- chain.c: several elementwise operations in one loop ------------------------------------- */

enum { TN__CHAIN_VECTORS = 8 /* vectors of results in registers */ };

/* What a step does with the result x of the step before it. */
enum tn__chain_op {
    TN__CHAIN_MUL,      /* x * other */
    TN__CHAIN_ADD,      /* x + other */
    TN__CHAIN_SUB,      /* x - other */
    TN__CHAIN_SUB_FROM, /* other - x */
    TN__CHAIN_MUL_SCALAR,
    TN__CHAIN_ADD_SCALAR,
    TN__CHAIN_RELU
};

struct tn__chain_step {
    enum tn__chain_op op;
    double number;
    const void *other; /* contiguous elements */
};

/* Index 0 is float32, index 1 float64. */
struct tn__simd_chain {
    int64_t elements[2]; /* that `run` computes at a time: its n is a multiple */
    /* Computes n elements of `to` from those of `from` by all steps. `to` may be one of the
     * operands. */
    void (*run[2])(int64_t n, void *to, const void *from, const struct tn__chain_step *steps,
                   int32_t count);
};

/* ---- fft.c: Fourier transforms, with fused multiply-adds if the instruction set has them --------
 */

/* For one type of numbers. Columns (fft/plan.h) have `lanes` transforms. `swap` is 1 to exchange
 * real and imaginary parts, otherwise 0. What is written is multiplied by `scale`. */
struct tn__fft_loops {
    int32_t lanes;
    /* Transforms the columns x. Both x and y are overwritten; returns the one with the result. */
    void *(*columns)(const struct tn__fft_columns *plan, void *x, void *y);
    /* Read columns of n elements from lines, or write the first `count` columns to lines. read_rows
     * and write_rows: the complex elements of a line are contiguous. */
    void (*read_rows)(int64_t n, const char *const *rows, void *to, int swap);
    void (*write_rows)(int64_t n, int64_t count, char *const *rows, const void *from, int swap,
                       double scale);
    /* read_columns and write_columns: corresponding elements of all lines are next to each other;
     * the elements of a line are `step` bytes apart. */
    void (*read_columns)(int64_t n, const char *x, int64_t step, void *to, int swap);
    void (*write_columns)(int64_t n, char *y, int64_t step, const void *from, int swap,
                          double scale);
    /* read_strided and write_strided: the real parts of a line are `step` bytes apart, and each
     * imaginary part is `gap` bytes after its real part. If gap < 0, the imaginary parts are read
     * as zeros and are not written. */
    void (*read_strided)(int64_t n, const char *const *rows, int64_t step, int64_t gap, void *to,
                         int swap);
    void (*write_strided)(int64_t n, int64_t count, char *const *rows, int64_t step, int64_t gap,
                          const void *from, int swap, double scale);
    /* For real numbers. split_*: convert the transform of h complex numbers to elements 0 to h of
     * the transform of 2 h real numbers, multiplied by 2. join_*: convert such elements to the
     * input of the inverse transform of h complex numbers. `halves` is a member of struct
     * tn__fft_plan. split_row works in place. join_columns exchanges the real and imaginary parts
     * of its result. */
    void (*split_columns)(int64_t h, const void *halves, const void *from, void *to);
    void (*join_columns)(int64_t h, const void *halves, const void *from, void *to);
    void (*split_row)(int64_t h, const void *halves, void *row);
    void (*join_row)(int64_t h, const void *halves, const void *from, void *to);
    /* For an odd number n of real numbers: compute the whole transform from its first n / 2 + 1
     * elements. mirror_columns works in place, on columns with exchanged parts. */
    void (*mirror_columns)(int64_t n, void *columns);
    void (*mirror_row)(int64_t n, const void *from, void *to);
    /* Compute the first and the second half of a single transform, for one block of columns.
     * `middle` is memory for blocks1 blocks of n2 rows; a and b are memory for the columns of one
     * block. */
    void (*first)(const struct tn__fft_split *plan, int64_t block, const void *from, void *middle,
                  void *a, void *b, int swap);
    void (*second)(const struct tn__fft_split *plan, int64_t block, void *middle, void *b, void *to,
                   int swap, double scale);
    /* Multiplies n pairs of complex numbers. If swap_left, the real and imaginary parts of the
     * left numbers are exchanged first; if swap, those of the products are exchanged at the end. */
    void (*product)(int64_t n, const void *left, const void *right, void *to, int swap_left,
                    int swap, double scale);
};
struct tn__simd_fft {
    struct tn__fft_loops const *of[2]; /* float32, float64 */
};

/* ---- float16.c: float16 ([0]) and bfloat16 ([1]) without a buffer of float32 ----------------- */

struct tn__simd_float16 {
    /* Loops whose operands and result have the dtype. NULL: there is no such loop; the caller
     * converts in buffers. */
    tn__ew_loop *ew[TN__EW_COUNT][2];
    tn__ew_loop *add[2];                             /* exists with every instruction set */
    tn__ternary_loop *ternary[TN__TERNARY_COUNT][2]; /* NULL: convert in buffers */
    /* Adds the sums of n columns to `all`. Sums of 32 rows are accumulated in float32, then added
     * in float64. Rows are `stride` bytes apart. */
    void (*rows_sum[2])(int64_t rows, int64_t n, const char *x, int64_t stride, double *all);
    /* Writes the sums of the given rows, at most 32 of n elements, in float32. NULL: convert
     * first. */
    void (*picked_sum[2])(int64_t rows, int64_t n, const void *const *x, float *sum);
    /* Returns the sum of the squares of n contiguous elements, n <= 4096. NULL: convert first. */
    float (*squares[2])(int64_t n, const void *x);
    /* Adds the elements of `other` to the elements of x that a run of indices selects, in order.
     * Returns the number of elements added: fewer than n if the next index is out of bounds. */
    tn__index_run_function *add_at[2];
};
/* Returns 0 for float16, 1 for bfloat16, -1 for other dtypes. */
static inline int tn__float16_index(tn_dtype dtype)
{
    return dtype == TN_F16 ? 0 : dtype == TN_BF16 ? 1 : -1;
}

/* ---- gemm.c: sums of products, with fused multiply-adds if the instruction set has them ------ */

/* The function for a tile of a product, whose operands are packed in panels of `mr` rows and `nr`
 * columns. */
struct tn__tile {
    int32_t mr;
    int32_t nr;
    /* c[mr][nr] += a[kc][mr]^T b[kc][nr]; rows of c are `ldc` elements apart */
    void (*run)(int64_t kc, const void *a, const void *b, void *c, int64_t ldc);
};

/* What a result is limited to before it is stored: x < low ? low : x > high ? high : x. Infinite:
 * no limit. */
struct tn__limits {
    double low, high;
};

/* Computes a strip of a product: c = a b + bias or, if `bias` is NULL, c += a b. A row of b has a
 * fixed number of vectors, and rows of b are `pace` elements apart. Element (i, k) of a is
 * a[i * step + k] for the member `rows` below, a[k * step + i] for `columns`. The depth of a b is
 * `rounds` times kc; after each round a skips `jump` elements and b skips `b_jump`. Of the last
 * vector of a row only the first `last` elements are in c; 0: all. The result is limited. */
typedef void tn__strip_run(int64_t rows, int64_t kc, const void *a, int64_t step, const void *b,
                           int64_t pace, void *c, int64_t ldc, const void *bias, int64_t rounds,
                           int64_t jump, int64_t b_jump, int64_t last,
                           const struct tn__limits *limits);
struct tn__strips {
    int32_t mr;      /* rows of a strip */
    int32_t vector;  /* elements of a vector */
    int32_t vectors; /* vectors in a row of the widest panel: 2 or 4 */
    struct tn__strip {
        int32_t high; /* the most rows of one call; divides mr */
        tn__strip_run *rows, *columns;
    } of[4]; /* index: number of vectors - 1 */
};

/* A few pixels of a line of a depthwise convolution, each with n channels: the sum over rows and
 * taps of x * w, plus the bias, which may be NULL. x[r] has the inputs that the first tap of row r
 * reads for the first pixel, w[r] the weights of this tap. Steps are in elements. The result is
 * limited. */
enum { TN__PIXELS = 4 };
struct tn__pixels {
    int64_t n, rows, taps;
    int pixels; /* 1 to TN__PIXELS */
    const void *const *x;
    const void *const *w;
    int64_t tap, pixel; /* in x: from one tap to the next, from one pixel to the next */
    int64_t w_tap;      /* in w, from one tap to the next */
    const void *bias;
    void *y;
    int64_t y_step;
    const struct tn__limits *limits;
};

struct tn__simd_gemm {
    /* dot: returns the dot product of contiguous rows. axpy: y[j] += a * x[j]. */
    float (*dot_f32)(int64_t n, const float *a, const float *b);
    double (*dot_f64)(int64_t n, const double *a, const double *b);
    /* The dot product of float32 and bfloat16. */
    float (*dot_bf16)(int64_t n, const float *a, const void *b);
    /* axpy of any number of rows of bfloat16, `step` apart. */
    void (*axpy_rows_bf16)(int64_t n, int64_t rows, const float *a, const void *x, int64_t step,
                           float *y);
    void (*axpy_f32)(int64_t n, float a, const float *x, float *y);
    void (*axpy_f64)(int64_t n, double a, const double *x, double *y);
    /* axpy of four rows of x, `step` apart: y[j] += a[0] x[j] + ... + a[3] x[3 step + j]. */
    void (*axpy4_f32)(int64_t n, const float *a, const float *x, int64_t step, float *y);
    void (*axpy4_f64)(int64_t n, const double *a, const double *x, int64_t step, double *y);
    /* y[j] = bias[j] + sum over i < count of x[i][j] * w[i][j], limited; bias may be NULL. */
    void (*weigh_rows[TN__F64 + 1])(int64_t n, int64_t count, const void *const *x, void *const *w,
                                    const void *bias, const struct tn__limits *limits, void *y);
    void (*weigh_pixels[TN__F64 + 1])(const struct tn__pixels *f);
    /* w[i][j] += x[i][j] * g[j] for i < count. */
    void (*spread_row[TN__F64 + 1])(int64_t n, int64_t count, const void *const *x, const void *g,
                                    void *const *w);
    struct tn__tile tile[TN__I64 + 1];
    struct tn__strips strips[TN__F64 + 1];
};

/* ---- optimizer.c: steps for n elements ------------------------------------------------------- */

/* The options of operator sgd_step. */
struct tn__sgd {
    double lr, momentum, dampening, weight_decay;
    bool nesterov, maximize, first;
};
/* Numbers of adam_step, computed from its options in nn/optimizer.c. With gradient g: p *= shrink;
 * g += weight_decay * p; m += follow1 * (g - m); v = keep2 * v + follow2 * g^2;
 * p -= rate * m / (sqrt(v) * scale + eps), with amsgrad the largest v so far in place of v. */
struct tn__adam {
    double weight_decay, shrink, follow1, keep2, follow2, rate, scale, eps;
    bool amsgrad, maximize;
};
/* Numbers of the other steps; each uses some of them. With gradient g and p after p *= shrink,
 * g += decay * p. */
struct tn__rule {
    double decay, shrink;
    double follow1;        /* m += follow1 * (g - m) */
    double keep2, follow2; /* of another average */
    /* rate is that of the step. other: the rate of NAdam's second term, RMSprop's momentum, ASGD's
     * mu, or Lion's beta1. */
    double rate, other;
    double scale, eps;
    double less, more, low, high; /* Rprop: the factors and limits of the step sizes */
    bool maximize;
    bool rectified;          /* RAdam divides by the root of v */
    bool momentum, centered; /* RMSprop */
};
/* A step of n elements. at[0] is the parameter, at[1] its gradient (read only), the others are the
 * optimizer's state. `numbers` points to the struct of the optimizer above. */
typedef void tn__step_run(int64_t n, const void *numbers, void *const *at);
struct tn__simd_optimizer {
    tn__step_run *sgd[TN__F64 + 1], *adam[TN__F64 + 1];
    tn__step_run *nadam[TN__F64 + 1], *radam[TN__F64 + 1], *adamax[TN__F64 + 1];
    tn__step_run *adagrad[TN__F64 + 1], *adadelta[TN__F64 + 1], *rmsprop[TN__F64 + 1];
    tn__step_run *rprop[TN__F64 + 1], *asgd[TN__F64 + 1], *lion[TN__F64 + 1];
    /* Set *out to the sum of absolute values, to the sum of squares, or to the largest absolute
     * value of n contiguous elements. */
    void (*sum[TN__F64 + 1])(int64_t n, const void *x, double *out);
    void (*squares[TN__F64 + 1])(int64_t n, const void *x, double *out);
    void (*largest[TN__F64 + 1])(int64_t n, const void *x, double *out);
    /* Multiplies n contiguous elements by a number. Sets *out to NaN if one of them was infinite or
     * NaN, else to 0. */
    void (*unscale[TN__F64 + 1])(int64_t n, double by, void *x, double *out);
};

/* ---- pool_max.c: maxima with their indices --------------------------------------------------- */

/* [0]: float32, with indices of int32; [1]: float64, with indices of int64. Of equal elements the
 * one with the smaller index is the maximum; NaN is larger than any number. */
struct tn__simd_pool_max {
    /* best[i] = x[i], with index `at`. `next` instead takes the larger of both; `at` must be larger
     * than the indices before. */
    void (*first[2])(int64_t n, const void *x, int64_t at, void *best, void *place);
    void (*next[2])(int64_t n, const void *x, int64_t at, void *best, void *place);
    /* place[i] = place[i] * width + columns[i] */
    void (*flatten[2])(int64_t n, int64_t width, const void *columns, void *place);
    /* best[i], with its index, is the larger of left[i] and right[i]; best may be left. */
    void (*larger[2])(int64_t n, const void *left, const void *left_place, const void *right,
                      const void *right_place, void *best, void *place);
    /* to[i], with its index, is the larger of best[2 i] and best[2 i + 1]. */
    void (*pairs[2])(int64_t n, const void *best, const void *place, void *to, int64_t *where);
    /* Copies groups of n elements and their indices, which are `step` >= n apart, to contiguous
     * memory. */
    void (*store[2])(int64_t groups, int64_t n, int64_t step, const void *best, const void *place,
                     void *to, int64_t *where);
};

/* ---- random.c -------------------------------------------------------------------------------- */

/* Compute elements [first, first + n) of the sequence of random numbers that begins at `g`. A block
 * has four 32-bit words. */
struct tn__simd_random {
    void (*uniform_f32)(const struct tn__philox *g, uint64_t first, int64_t n, float low,
                        float range, float *y);
    void (*uniform_f64)(const struct tn__philox *g, uint64_t first, int64_t n, double low,
                        double range, double *y);
    void (*normal_f32)(const struct tn__philox *g, uint64_t first, int64_t n, float mean, float std,
                       float *y);
    void (*normal_f64)(const struct tn__philox *g, uint64_t first, int64_t n, double mean,
                       double std, double *y);
    /* Sorts n numbers of `bits` bits, and writes the lowest `place` bits of each to y. The numbers
     * differ, their highest bits are distributed evenly, and y and x are overwritten. */
    void (*sort_bin)(int64_t n, int bits, int place, uint64_t *x, uint64_t *y);
};

/* ---- reduction.c ----------------------------------------------------------------------------- */

/* A result: f of floats, i of integers. */
union tn__number {
    double f;
    int64_t i;
};
struct tn__simd_reduction {
    /* Return the sum of contiguous elements, in an order that depends on n alone. */
    double (*sum_f32)(int64_t n, const float *x);
    double (*sum_f64)(int64_t n, const double *x);
    int64_t (*sum_i64)(int64_t n, const int64_t *x);
    /* The same of the elements that are not NaN, with 0 in the place of NaN. */
    double (*nansum_f32)(int64_t n, const float *x);
    double (*nansum_f64)(int64_t n, const double *x);
    /* Adds rows of n contiguous numbers, one after the other, to the numbers `to`. */
    void (*add_rows[TN__F64 + 1])(int64_t rows, int64_t n, const void *const *x, void *to);
    /* cummax (`up`) or cummin of n contiguous elements, the first of which has index `first`; y may
     * be x. *before is the extreme of the preceding elements, times -1 for cummin, and *where its
     * index. */
    void (*extremes_f32)(int64_t n, bool up, const float *x, float *y, int64_t *places,
                         int64_t first, float *before, int64_t *where);
    void (*extremes_f64)(int64_t n, bool up, const double *x, double *y, int64_t *places,
                         int64_t first, double *before, int64_t *where);
    /* Compute the largest element, the smallest element, or the product of n contiguous elements, n
     * >= 1. If an element is NaN, so is the result. */
    void (*max[TN__I64 + 1])(int64_t n, const void *x, union tn__number *out);
    void (*min[TN__I64 + 1])(int64_t n, const void *x, union tn__number *out);
    void (*prod[TN__I64 + 1])(int64_t n, const void *x, union tn__number *out);
    /* Returns the index of the first element that is equal to `best` or NaN; there must be one. */
    int64_t (*find[TN__I64 + 1])(int64_t n, const void *x, union tn__number best);
    /* Compute the sum, the largest element, the smallest element, or the product of each of n
     * columns, and combine it with the result so far in `to`. Rows are `stride` bytes apart. */
    void (*rows_sum[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride, void *to);
    void (*rows_max[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride, void *to);
    void (*rows_min[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride, void *to);
    void (*rows_prod[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride,
                                   void *to);
    /* Compute the largest or smallest element of each column, and store the index of its row in
     * `at`. The first row has index `first`; there must be fewer than 2^31 rows. */
    void (*rows_argmax[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride,
                                     void *to, int64_t *at, int64_t first);
    void (*rows_argmin[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride,
                                     void *to, int64_t *at, int64_t first);
};

/* ---- rnn.c: one row of one step of a recurrent network --------------------------------------- */

/* The kinds of operator recurrent_steps, in the order of their names in nn/rnn.c. */
enum tn__rnn_kind { TN__RNN_TANH, TN__RNN_RELU, TN__RNN_LSTM, TN__RNN_GRU, TN__RNN_KINDS };

/* A step of n states, forward. gx and gh are the parts of the gates that depend on x and on the
 * state before; gates, c and h are written. A kind uses some of the members. */
struct tn__rnn_step {
    const void *gx, *gh; /* gates of n numbers each */
    const void *before;  /* LSTM: the cell before, which may be c; GRU: the state before */
    void *gates;         /* LSTM: i, f, g, o; GRU: r, z, n, and the last part of gh */
    void *c, *h;
};
/* A step backward. `gradient` is the gradient of h; it becomes that of the state before, without
 * the part through the product with w_hh. gx and `through` (GRU only) become the gradients of gx
 * and gh. */
struct tn__rnn_back {
    const void *gates, *c, *before, *h;
    void *gradient;
    void *gradient_c; /* LSTM: the gradient of c; becomes that of the cell before */
    void *gx, *through;
};
struct tn__simd_rnn {
    void (*forward[TN__RNN_KINDS][TN__F64 + 1])(int64_t n, const struct tn__rnn_step *step);
    void (*backward[TN__RNN_KINDS][TN__F64 + 1])(int64_t n, const struct tn__rnn_back *step);
};

/* ---- softmax.c ------------------------------------------------------------------------------- */

enum { TN__SOFTMAX_COLUMNS = 256 };
struct tn__simd_softmax {
    /* Returns the largest of n contiguous elements; NaN if an element is NaN. */
    float (*max_f32)(int64_t n, const float *x);
    double (*max_f64)(int64_t n, const double *x);
    /* Compute softmax, its logarithm, or the gradient of one of them, for one contiguous row. */
    void (*softmax_f32)(int64_t n, const float *x, float *y);
    void (*softmax_f64)(int64_t n, const double *x, double *y);
    void (*log_softmax_f32)(int64_t n, const float *x, float *y);
    void (*log_softmax_f64)(int64_t n, const double *x, double *y);
    void (*log_softmax_grad_f32)(int64_t n, const float *gy, const float *y, float *gx);
    void (*log_softmax_grad_f64)(int64_t n, const double *gy, const double *y, double *gx);
    void (*softmax_grad_f32)(int64_t n, const float *gy, const float *y, float *gx);
    void (*softmax_grad_f64)(int64_t n, const double *gy, const double *y, double *gx);
    /* Compute softmax or, with `logarithm`, its logarithm for n columns, at most
     * TN__SOFTMAX_COLUMNS; or the gradient. sx, sy and sg are the bytes from one row to the
     * next. */
    void (*softmax_columns[TN__F64 + 1])(int64_t rows, int64_t n, const char *x, int64_t sx,
                                         char *y, int64_t sy, bool logarithm);
    void (*softmax_grad_columns[TN__F64 + 1])(int64_t rows, int64_t n, const char *gy, int64_t sg,
                                              const char *y, int64_t sy, char *gx, int64_t sx,
                                              bool logarithm);
    /* A row x of attention scores. attend: x becomes e^(x - top), and the sum of these numbers is
     * returned. attend_grad: x becomes e^(x - norm), and g, the gradient of these numbers, becomes
     * x * (g - less), the gradient of the scores. */
    double (*attend_f32)(int64_t n, double top, float *x);
    double (*attend_f64)(int64_t n, double top, double *x);
    void (*attend_grad_f32)(int64_t n, double norm, double less, float *x, float *g);
    void (*attend_grad_f64)(int64_t n, double norm, double less, double *x, double *g);
};

#endif

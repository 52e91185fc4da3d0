/* SPDX-License-Identifier: MIT
 *
 * The tables of functions that exist once per instruction set: a table for each file of this
 * folder, which is compiled with TN__SIMD_SET as the name of the set. Activation chooses a set. */
#ifndef TN_BACKEND_CPU_SIMD_SIMD_H
#define TN_BACKEND_CPU_SIMD_SIMD_H

#include "base/elementwise.h"
#include "base/vectorize.h"

/* ---- the list of tables ---------------------------------------------------------------------- */

/* clang-format off */
#define TN__SIMD_TABLES(X, set)                                                                    \
    X(convert, set) X(copy, set) X(elementwise, set) X(float16, set) X(functions, set)             \
    X(gemm, set) X(norm, set) X(optimizer, set) X(random, set) X(reduction, set)                   \
    X(softmax, set) X(winograd, set)
/* clang-format on */

#define TN__SIMD_MEMBER(table, set) const struct tn__simd_##table *table;
struct tn__simd {
    const char *name; /* of the instruction set */
    TN__SIMD_TABLES(TN__SIMD_MEMBER, )
};
/* The tables for this processor. */
extern struct tn__simd tn__simd;

#define TN__SIMD_DECLARE(table, set) extern const struct tn__simd_##table tn__simd_##table##_##set;
TN__SIMD_TABLES(TN__SIMD_DECLARE, baseline)
#ifdef TN__HAVE_X86_LOOPS
TN__SIMD_TABLES(TN__SIMD_DECLARE, avx2)
TN__SIMD_TABLES(TN__SIMD_DECLARE, avx512)
#endif

/* The name of a table in the set that is being compiled: tn__simd_norm_avx2. */
#ifndef TN__SIMD_SET
#define TN__SIMD_SET baseline
#endif
#define TN__SIMD_NAME(table, set) tn__simd_##table##_##set
#define TN__SIMD_NAME_OF(table, set) TN__SIMD_NAME(table, set)
#define TN__SIMD_TABLE(table) TN__SIMD_NAME_OF(table, TN__SIMD_SET)

/* ---- convert.c: by dtype --------------------------------------------------------------------- */

struct tn__conversions {
    tn__load *load[TN__CT_COUNT];
    tn__store *store[TN__CT_COUNT];
};
struct tn__simd_convert {
    struct tn__conversions of[TN_DTYPE_COUNT];
};

/* ---- copy.c: contiguous elements of 1, 2, 4 and 8 bytes, whatever their dtype ---------------- */

enum tn__bits { TN__BITS_AND, TN__BITS_OR, TN__BITS_XOR, TN__BITS_NOT, TN__BITS_NOT_BOOL };
struct tn__simd_copy {
    void (*fill[4])(int64_t n, char *to, const void *value);
    /* Reversed: `last` is the address of the last element read, which becomes the first. */
    void (*reverse[4])(int64_t n, char *to, const char *last);
    void (*gather[4])(int64_t n, char *to, const char *from, const int64_t *index);
    void (*bits[TN__BITS_NOT_BOOL + 1])(int64_t bytes, char *y, const char *a, const char *b);
};
/* Which of the four functions takes elements of that size; -1: none. */
static inline int tn__copy_index(int64_t item)
{
    return item == 1 ? 0 : item == 2 ? 1 : item == 4 ? 2 : item == 8 ? 3 : -1;
}

/* ---- elementwise.c, functions.c -------------------------------------------------------------- */

/* Of three numbers a, b, c and one that goes with the call, p. Their formulas are in
 * elementwise_template.h and float16_vector_template.h. */
#define TN__TERNARIES(X) X(lerp) X(lerp_scalar) X(addcmul) X(addcdiv) X(clamp_tensor)
#define TN__TERNARY(name) TN__TERNARY_##name,
enum tn__ternary { TN__TERNARIES(TN__TERNARY) TN__TERNARY_COUNT };
#undef TN__TERNARY
/* Operands: the result, a, b, c; the result may be one of them. */
typedef void tn__ternary_loop(int64_t n, char *const *at, const int64_t *stride, double number);
struct tn__simd_elementwise {
    tn__ew_loop *ew[TN__EW_COUNT][TN__I64 + 1];
    tn__ternary_loop *ternary[TN__TERNARY_COUNT][TN__F64 + 1];
};
/* Functions of several steps per element, and their derivatives. */
struct tn__simd_functions {
    tn__ew_loop *ew[TN__EW_COUNT][TN__I64 + 1];
};
/* Complex numbers: one set for all processors. */
extern tn__ew_loop *const tn__complex_loops[TN__EW_COUNT][2];
/* Operations that wider vectors do not make faster: one set for all processors. */
extern tn__ew_loop *const tn__scalar_loops[TN__EW_COUNT][TN__I64 + 1];

/* The loop of an operation on a real compute type; NULL: there is none. */
static inline tn__ew_loop *tn__loop_of(enum tn__ew op, enum tn__ct ct)
{
    tn__ew_loop *loop = tn__simd.elementwise->ew[op][ct];
    if (!loop)
        loop = tn__simd.functions->ew[op][ct];
    return loop ? loop : tn__scalar_loops[op][ct];
}

/* ---- float16.c: float16 ([0]) and bfloat16 ([1]) without a buffer of float32 ----------------- */

struct tn__simd_float16 {
    tn__ew_loop *ew[TN__EW_COUNT][2]; /* all operands of the dtype; NULL: convert in buffers */
    tn__ew_loop *add[2];
    tn__ternary_loop *ternary[TN__TERNARY_COUNT][2]; /* NULL: convert in buffers */
    /* Adds n columns to `all`: 32 rows at a time in float32, these sums in float64. Rows are
     * `stride` bytes apart. */
    void (*rows_sum[2])(int64_t rows, int64_t n, const char *x, int64_t stride, double *all);
    /* Adds n numbers, one after the other, to the elements of x that the index names: to
     * x + i * sx + index[i] * step. An index must be below `size`. Returns how many were added:
     * fewer than n when the next index is out of bounds. */
    int64_t (*add_at[2])(int64_t n, char *x, int64_t sx, int64_t step, uint64_t size,
                         const char *index, int64_t si, const char *other, int64_t so);
};
/* Which of the two a dtype is; -1: neither. */
static inline int tn__float16_index(tn_dtype dtype)
{
    return dtype == TN_F16 ? 0 : dtype == TN_BF16 ? 1 : -1;
}

/* ---- gemm.c: sums of products, with fused multiply-adds where the processor has them --------- */

/* A tile of a product: packed panels of `mr` rows and `nr` columns. */
struct tn__tile {
    int32_t mr;
    int32_t nr;
    /* c[mr][nr] += a[kc][mr] . b[kc][nr], rows of c `ldc` apart */
    void (*run)(int64_t kc, const void *a, const void *b, void *c, int64_t ldc);
};

/* A strip of a product: c[rows][] = sum over kc of a . b (+ bias), or += where `bias` is NULL. A
 * row of b is a number of vectors, and rows are `pace` elements apart. `rows` reads
 * a[i * step + k], `columns` a[k * step + i]. This repeats for `rounds` of kc: a advances by `jump`
 * elements after each, b goes on. */
typedef void tn__strip_run(int64_t rows, int64_t kc, const void *a, int64_t step, const void *b,
                           int64_t pace, void *c, int64_t ldc, const void *bias, int64_t rounds,
                           int64_t jump);
struct tn__strips {
    int32_t mr;      /* rows of a strip */
    int32_t vector;  /* elements of a vector */
    int32_t vectors; /* of the widest panel: 2 or 4 */
    struct tn__strip {
        int32_t high; /* rows at most; divides mr */
        tn__strip_run *rows, *columns;
    } of[4]; /* by the number of vectors - 1 */
};

struct tn__simd_gemm {
    /* Dot product of contiguous rows; y[j] += a * x[j]. */
    float (*dot_f32)(int64_t n, const float *a, const float *b);
    double (*dot_f64)(int64_t n, const double *a, const double *b);
    void (*axpy_f32)(int64_t n, float a, const float *x, float *y);
    void (*axpy_f64)(int64_t n, double a, const double *x, double *y);
    /* Four rows, `step` elements apart: y[j] += a[0] x[j] + ... + a[3] x[3 step + j]. */
    void (*axpy4_f32)(int64_t n, const float *a, const float *x, int64_t step, float *y);
    void (*axpy4_f64)(int64_t n, const double *a, const double *x, int64_t step, double *y);
    /* y[j] = bias[j] + x[0][j] w[0][j] + ... of `count` rows; bias NULL: none. */
    void (*weigh_rows[TN__F64 + 1])(int64_t n, int64_t count, const void *const *x, void *const *w,
                                    const void *bias, void *y);
    /* w[i][j] += x[i][j] g[j] for `count` rows. */
    void (*spread_row[TN__F64 + 1])(int64_t n, int64_t count, const void *const *x, const void *g,
                                    void *const *w);
    struct tn__tile tile[TN__I64 + 1];
    struct tn__strips strips[TN__F64 + 1];
};

/* ---- optimizer.c: steps for n elements ------------------------------------------------------- */

struct tn__sgd {
    double lr, momentum, dampening, weight_decay;
    bool nesterov, maximize, first;
};
struct tn__adam {
    double weight_decay, shrink, follow1, keep2, follow2, rate, scale, eps;
    bool amsgrad, maximize;
};
struct tn__simd_optimizer {
    /* at: the parameter, its gradient (read only), the state of the rule. */
    void (*sgd[TN__F64 + 1])(int64_t n, const struct tn__sgd *numbers, void *const *at);
    void (*adam[TN__F64 + 1])(int64_t n, const struct tn__adam *numbers, void *const *at);
    /* Of n contiguous elements: the sum of absolute values, of squares, the largest absolute
     * value. */
    void (*sum[TN__F64 + 1])(int64_t n, const void *x, double *out);
    void (*squares[TN__F64 + 1])(int64_t n, const void *x, double *out);
    void (*largest[TN__F64 + 1])(int64_t n, const void *x, double *out);
};

/* ---- random.c: n numbers from element `first`, four 32-bit words a block of Philox ----------- */

struct tn__simd_random {
    void (*uniform_f32)(uint64_t seed, uint64_t block, uint64_t first, int64_t n, float low,
                        float range, float *y);
    void (*uniform_f64)(uint64_t seed, uint64_t block, uint64_t first, int64_t n, double low,
                        double range, double *y);
    void (*normal_f32)(uint64_t seed, uint64_t block, uint64_t first, int64_t n, float mean,
                       float std, float *y);
    void (*normal_f64)(uint64_t seed, uint64_t block, uint64_t first, int64_t n, double mean,
                       double std, double *y);
};

/* ---- reduction.c ----------------------------------------------------------------------------- */

union tn__number {
    double f;
    int64_t i;
};
struct tn__simd_reduction {
    /* Sums of contiguous elements, in a fixed tree. */
    double (*sum_f32)(int64_t n, const float *x);
    double (*sum_f64)(int64_t n, const double *x);
    int64_t (*sum_i64)(int64_t n, const int64_t *x);
    /* Of n contiguous elements, at least one; NaN is the largest and the smallest. */
    void (*max[TN__I64 + 1])(int64_t n, const void *x, union tn__number *out);
    void (*min[TN__I64 + 1])(int64_t n, const void *x, union tn__number *out);
    void (*prod[TN__I64 + 1])(int64_t n, const void *x, union tn__number *out);
    /* The index of the first element equal to `best`, which is one of them, or of the first NaN. */
    int64_t (*find[TN__I64 + 1])(int64_t n, const void *x, union tn__number best);
    /* The same for n columns, added to the results so far in `to`: rows `stride` bytes apart. */
    void (*rows_sum[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride, void *to);
    void (*rows_max[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride, void *to);
    void (*rows_min[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride, void *to);
    void (*rows_prod[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride,
                                   void *to);
    /* With the indices; the first row has index `first`; fewer than 2^31 rows. */
    void (*rows_argmax[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride,
                                     void *to, int64_t *at, int64_t first);
    void (*rows_argmin[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride,
                                     void *to, int64_t *at, int64_t first);
};

/* ---- softmax.c ------------------------------------------------------------------------------- */

enum { TN__SOFTMAX_COLUMNS = 256 };
struct tn__simd_softmax {
    /* The largest of n contiguous elements; NaN if there is one. */
    float (*max_f32)(int64_t n, const float *x);
    double (*max_f64)(int64_t n, const double *x);
    /* One contiguous row. */
    void (*softmax_f32)(int64_t n, const float *x, float *y);
    void (*softmax_f64)(int64_t n, const double *x, double *y);
    void (*log_softmax_f32)(int64_t n, const float *x, float *y);
    void (*log_softmax_f64)(int64_t n, const double *x, double *y);
    void (*log_softmax_grad_f32)(int64_t n, const float *gy, const float *y, float *gx);
    void (*log_softmax_grad_f64)(int64_t n, const double *gy, const double *y, double *gx);
    void (*softmax_grad_f32)(int64_t n, const float *gy, const float *y, float *gx);
    void (*softmax_grad_f64)(int64_t n, const double *gy, const double *y, double *gx);
    /* Softmax or its logarithm down n columns, TN__SOFTMAX_COLUMNS at most, when the dimension is
     * strided: sx and sy are the bytes from one row to the next. */
    void (*softmax_columns[TN__F64 + 1])(int64_t rows, int64_t n, const char *x, int64_t sx,
                                         char *y, int64_t sy, bool logarithm);
    void (*softmax_grad_columns[TN__F64 + 1])(int64_t rows, int64_t n, const char *gy, int64_t sg,
                                              const char *y, int64_t sy, char *gx, int64_t sx,
                                              bool logarithm);
    /* A row of attention scores: x becomes e^(x - top), and the sum is returned; x becomes
     * e^(x - norm), and its gradient g becomes x (g - less). */
    double (*attend_f32)(int64_t n, double top, float *x);
    double (*attend_f64)(int64_t n, double top, double *x);
    void (*attend_grad_f32)(int64_t n, double norm, double less, float *x, float *g);
    void (*attend_grad_f64)(int64_t n, double norm, double less, double *x, double *g);
};

#endif

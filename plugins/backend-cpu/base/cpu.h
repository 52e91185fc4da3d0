/* SPDX-License-Identifier: MIT
 *
 * What the files of the CPU backend share: compute types, conversion, walking over strided
 * views, the loops that exist once per instruction set, and the kernels. */
#ifndef TN_BACKEND_CPU_H
#define TN_BACKEND_CPU_H

#include <tenon/plugin.h>

/* ---- compute types --------------------------------------------------------------------------- */

/* The types in which numbers are worked on. All others are converted in chunks: float16,
 * bfloat16 and float8 to float32, integers and bool to int64 (which wraps around to the narrower
 * type just as its own arithmetic does). */
enum tn__ct { TN__F32, TN__F64, TN__I64, TN__C64, TN__C128, TN__CT_COUNT };

#define TN__CT_MAX_SIZE 16
#define TN__CHUNK 512 /* elements converted at a time: the buffers stay in the first-level cache */

size_t tn__ct_size(enum tn__ct ct);
/* The compute type of arithmetic in `dtype`. */
enum tn__ct tn__ct_of(tn_dtype dtype);
/* The dtype that a compute type is. */
tn_dtype tn__ct_dtype(enum tn__ct ct);
/* The compute type through which values go from one dtype to another. */
enum tn__ct tn__ct_between(tn_dtype from, tn_dtype to);

/* n elements, `stride` bytes apart, to contiguous numbers of a compute type, and back. */
typedef void tn__load(int64_t n, const char *from, int64_t stride, void *to);
typedef void tn__store(int64_t n, const void *from, char *to, int64_t stride);
struct tn__conversions {
    tn__load *load[TN__CT_COUNT];
    tn__store *store[TN__CT_COUNT];
};
tn__load *tn__convert_load(tn_dtype from, enum tn__ct ct);
tn__store *tn__convert_store(enum tn__ct ct, tn_dtype to);

/* ---- views ----------------------------------------------------------------------------------- */

#define TN__MAX_SPAN 4

/* Several views walked together: dimensions of size 1 are gone, neighbours that can be one are
 * one, strides are in bytes. */
struct tn__span {
    int32_t operands;
    int32_t ndim;
    int64_t count;
    int64_t shape[TN_MAX_DIMS];
    int64_t stride[TN__MAX_SPAN][TN_MAX_DIMS];
    char *base[TN__MAX_SPAN];
};

static inline char *tn__view_at(const tn_view *view)
{
    return (char *)view->data + view->byte_offset;
}

static inline int64_t tn__view_item(const tn_view *view)
{
    return (int64_t)view->dtype.bits / 8;
}
/* What it shows are floats of so many bits from now on. */
static inline void tn__view_as_floats(tn_view *view, int bits)
{
    view->dtype.code = 2; /* DLPack's */
    view->dtype.bits = (uint8_t)bits;
}

int64_t tn__view_count(const tn_view *view);
bool tn__view_dense(const tn_view *view);

/* views[0] gives the shape, the others broadcast to it. `in_order` keeps the row-major order of
 * the shape; without it the dimensions are ordered as views[0] has them in memory. */
void tn__span_make(struct tn__span *span, int32_t operands, const tn_view *const *views,
                   bool in_order);
/* Puts neighbouring dimensions together where all operands allow it. */
void tn__span_merge(struct tn__span *span);
/* Calls body for runs that together are [begin, end) of the span, in its order. */
typedef void tn__span_body(void *user, int64_t n, char *const *at, const int64_t *stride);
void tn__span_walk(const struct tn__span *span, int64_t begin, int64_t end, tn__span_body *body,
                   void *user);

/* The lines along one dimension of up to three views; views[0] gives the shape. */
struct tn__lines {
    int32_t ndim;
    int64_t shape[TN_MAX_DIMS]; /* without the dimension */
    int64_t stride[3][TN_MAX_DIMS];
    char *base[3];
    int64_t step[3]; /* along it, in bytes */
    int64_t length, count;
};
void tn__lines_make(struct tn__lines *lines, int32_t n, const tn_view *const *views, int64_t dim);
char *tn__lines_at(const struct tn__lines *lines, int32_t k, int64_t index);

/* No iteration of the loop needs what another one wrote. */
#ifdef __clang__
#define TN__IVDEP _Pragma("clang loop vectorize(assume_safety)")
/* It says that a loop may be vectorised; where clang finds no way that is no fault. */
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define TN__IVDEP _Pragma("GCC ivdep")
#endif

/* ---- loops per instruction set --------------------------------------------------------------- */

/* What is worked out element by element: p, q, r are numbers that go with a call. */
enum tn__ew {
    TN__ADD, /* a + b */
    TN__SUB,
    TN__ADD_ALPHA, /* a + p * b */
    TN__MUL,
    TN__DIV,
    TN__DIV_TRUNC,
    TN__MAXIMUM,
    TN__MINIMUM,
    TN__RELU_GRAD,  /* b <= 0 ? 0 : a */
    TN__PRELU,      /* a > 0 ? a : b * a */
    TN__ADD_SCALAR, /* a + p */
    TN__MUL_SCALAR,
    TN__NEG,
    TN__ABS,
    TN__SIGN,
    TN__FLOOR,
    TN__CEIL,
    TN__TRUNC,
    TN__ROUND,
    TN__FRAC,
    TN__SQUARE,
    TN__CUBE,
    TN__CLAMP, /* to [p, q]; NaN: no bound */
    TN__RELU,
    TN__LEAKY_RELU,  /* a > 0 ? a : p * a */
    TN__HARDSIGMOID, /* between 0 and 1 */
    TN__HARDSWISH,
    TN__SOFTSHRINK, /* p nearer to 0 */
    TN__HARDSHRINK, /* 0 within p of 0 */
    TN__THRESHOLD,  /* a > p ? a : q */
    TN__SOFTSIGN,
    TN__NAN_TO_NUM,   /* p for NaN, q for infinity, r for the negative one */
    TN__SIGMOID_GRAD, /* a times the derivative where the result (tanh, too) or the input is b */
    TN__TANH_GRAD,
    TN__HARDTANH_GRAD,   /* between p and q */
    TN__LEAKY_RELU_GRAD, /* p below 0 */
    TN__THRESHOLD_GRAD,  /* above p */
    TN__HARDSIGMOID_GRAD,
    TN__HARDSWISH_GRAD,
    TN__HARDSHRINK_GRAD, /* farther than p from 0 */
    TN__SQUARE_APART,    /* of losses: (a - b)^2, |a - b| */
    TN__SIZE_APART,
    TN__BENT,  /* d = a - b, c = d within p: q c (d - c / 2) */
    TN__HINGE, /* p - a b, at least 0 */
    TN__BITWISE_AND,
    TN__BITWISE_OR,
    TN__BITWISE_XOR,
    TN__BITWISE_NOT,
    TN__LOGICAL_NOT, /* of numbers 0 and 1 */
    TN__EQ,          /* from here to TN__GE: the result is a byte, 0 or 1 */
    TN__NE,
    TN__LT,
    TN__LE,
    TN__GT,
    TN__GE,
    TN__EXP, /* from here on worth a thread early */
    TN__LOG,
    TN__SQRT,
    TN__SIGMOID,
    TN__RECIPROCAL,
    TN__RSQRT,
    TN__SILU,
    TN__DIV_FLOOR, /* from here on several steps a number, in simd/functions.c */
    TN__REMAINDER,
    TN__FMOD,
    TN__POW,
    TN__ATAN2,
    TN__EXPM1,
    TN__LOG1P,
    TN__LOG2,
    TN__LOG10,
    TN__SIN,
    TN__COS,
    TN__TAN,
    TN__ASIN,
    TN__ACOS,
    TN__ATAN,
    TN__SINH,
    TN__COSH,
    TN__TANH,
    TN__ERF,
    TN__ERFC,
    TN__ERFINV,
    TN__ELU, /* a > 0 ? p * a : q * (e^(r a) - 1) */
    TN__GELU,
    TN__GELU_TANH,
    TN__MISH,
    TN__LOGSIGMOID,
    TN__SOFTPLUS, /* sharpness p, a line above q */
    TN__TANHSHRINK,
    TN__ELU_GRAD,
    TN__SOFTPLUS_GRAD,
    TN__SILU_GRAD,
    TN__MISH_GRAD,
    TN__GELU_GRAD,
    TN__GELU_TANH_GRAD,
    TN__GATE, /* a sigmoid(b) */
    TN__HYPOT,
    TN__CONJ,
    TN__EW_COUNT
};

/* y[i] = op(a[i], b[i]) with p, q and r in `numbers`; strides in bytes, 0 repeats. y may be a or
 * b. */
typedef void tn__ew_loop(int64_t n, char *y, int64_t sy, const char *a, int64_t sa, const char *b,
                         int64_t sb, const double *numbers);

/* A kernel's row: its operation, its inputs, and how its options become numbers. */
struct tn__ew_row {
    enum tn__ew op;
    int32_t inputs;
    void (*fill)(const void *options, double *numbers);
};

/* The largest number and where it stands; NaN counts as largest. */
struct tn__largest {
    double f;
    int64_t i;
    int64_t at;
};

/* Tiles of the own product of matrices: packed panels of `mr` rows and `nr` columns. */
struct tn__tile {
    int32_t mr;
    int32_t nr;
    /* c[mr][nr] += a[kc][mr] . b[kc][nr], rows of c `ldc` apart */
    void (*run)(int64_t kc, const void *a, const void *b, void *c, int64_t ldc);
};

/* Strips of such a product: c[rows][] = sum over kc of a . b (+ bias), or += where `bias` is NULL. b's rows are so many
 * vectors, `pace` numbers apart. `rows` reads a[i * step + k], `columns` a[k * step + i]. That many rounds of kc, a `jump`
 * numbers further on after each, b going on. */
typedef void tn__strip_run(int64_t rows, int64_t kc, const void *a, int64_t step, const void *b,
                           int64_t pace, void *c, int64_t ldc, const void *bias, int64_t rounds,
                           int64_t jump);
struct tn__strips {
    int32_t mr;      /* rows of a strip */
    int32_t vector;  /* numbers of a vector */
    int32_t vectors; /* of the widest panel: 2 or 4 */
    struct tn__strip {
        int32_t high; /* rows at most; divides mr */
        tn__strip_run *rows, *columns;
    } of[4]; /* one vector, two ... */
};

/* Of three numbers a, b, c and one that goes with the call. */
enum tn__mix {
    TN__MIX_LERP,        /* a + c (b - a) */
    TN__MIX_LERP_SCALAR, /* a + p (b - a) */
    TN__MIX_ADDCMUL,     /* a + p b c */
    TN__MIX_ADDCDIV,
    TN__MIX_CLAMP_TENSOR, /* at least b, then at most c */
    TN__MIX_COUNT
};

enum { TN__NEIGHBOURS = 256 };

struct tn__loops {
    const char *name;
    tn__ew_loop *ew[TN__EW_COUNT][TN__I64 + 1];
    /* Operands: the result, a, b, c; the result may be one of them. */
    void (*mix[TN__MIX_COUNT][TN__F64 + 1])(int64_t n, char *const *at, const int64_t *stride,
                                            double number);
    /* Contiguous numbers: their sum (in a fixed tree), the largest of them. */
    double (*sum_f32)(int64_t n, const float *x);
    double (*sum_f64)(int64_t n, const double *x);
    int64_t (*sum_i64)(int64_t n, const int64_t *x);
    float (*max_f32)(int64_t n, const float *x);
    double (*max_f64)(int64_t n, const double *x);
    int64_t (*max_i64)(int64_t n, const int64_t *x);
    /* One row of contiguous numbers. */
    void (*softmax_f32)(int64_t n, const float *x, float *y);
    void (*softmax_f64)(int64_t n, const double *x, double *y);
    void (*log_softmax_f32)(int64_t n, const float *x, float *y);
    void (*log_softmax_f64)(int64_t n, const double *x, double *y);
    void (*log_softmax_grad_f32)(int64_t n, const float *gy, const float *y, float *gx);
    void (*log_softmax_grad_f64)(int64_t n, const double *gy, const double *y, double *gx);
    void (*softmax_grad_f32)(int64_t n, const float *gy, const float *y, float *gx);
    void (*softmax_grad_f64)(int64_t n, const double *gy, const double *y, double *gx);
    /* The same, or their logarithms, of n rows that stand side by side, TN__NEIGHBOURS at most: lines of n numbers,
     * bytes apart. */
    void (*softmax_side[TN__F64 + 1])(int64_t rows, int64_t n, const char *x, int64_t sx, char *y,
                                      int64_t sy, bool logarithm);
    void (*softmax_grad_side[TN__F64 + 1])(int64_t rows, int64_t n, const char *gy, int64_t sg,
                                           const char *y, int64_t sy, char *gx, int64_t sx,
                                           bool logarithm);
    /* A row of attention: x becomes e^(x - top), whose sum is returned; x becomes e^(x - norm) and g x (g - less). */
    double (*attend_f32)(int64_t n, double top, float *x);
    double (*attend_f64)(int64_t n, double top, double *x);
    void (*attend_grad_f32)(int64_t n, double norm, double less, float *x, float *g);
    void (*attend_grad_f64)(int64_t n, double norm, double less, double *x, double *g);
    /* Random numbers from 32-bit words of Philox, four a block from `block` on: n numbers from
     * element `first`. */
    void (*uniform_f32)(uint64_t seed, uint64_t block, uint64_t first, int64_t n, float low,
                        float range, float *y);
    void (*uniform_f64)(uint64_t seed, uint64_t block, uint64_t first, int64_t n, double low,
                        double range, double *y);
    void (*normal_f32)(uint64_t seed, uint64_t block, uint64_t first, int64_t n, float mean,
                       float std, float *y);
    void (*normal_f64)(uint64_t seed, uint64_t block, uint64_t first, int64_t n, double mean,
                       double std, double *y);
};

/* Sums of products, with fused multiply-adds where there are any. */
struct tn__products {
    /* Dot product of contiguous rows; y[j] += a * x[j]. */
    float (*dot_f32)(int64_t n, const float *a, const float *b);
    double (*dot_f64)(int64_t n, const double *a, const double *b);
    void (*axpy_f32)(int64_t n, float a, const float *x, float *y);
    void (*axpy_f64)(int64_t n, double a, const double *x, double *y);
    /* The same with four rows, `step` elements apart: y[j] += a[0] x[j] + ... + a[3] x[3 step + j]. */
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

/* Folds of numbers other than sums, by compute type (up to int64). */
union tn__number {
    double f;
    int64_t i;
};
struct tn__folds {
    /* Of n contiguous numbers, at least one; NaN is largest and smallest. */
    void (*max[TN__I64 + 1])(int64_t n, const void *x, union tn__number *out);
    void (*min[TN__I64 + 1])(int64_t n, const void *x, union tn__number *out);
    void (*prod[TN__I64 + 1])(int64_t n, const void *x, union tn__number *out);
    /* Where the first one stands that is `best`, which is among them, or NaN. */
    int64_t (*place[TN__I64 + 1])(int64_t n, const void *x, union tn__number best);
    /* The same for n columns, into what they have so far: rows `stride` bytes apart. */
    void (*rows_sum[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride, void *to);
    void (*rows_max[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride, void *to);
    void (*rows_min[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride, void *to);
    void (*rows_prod[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride,
                                   void *to);
    /* With the places, the first row being number `first`; rows less than 2^31. */
    void (*rows_argmax[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride,
                                     void *to, int64_t *at, int64_t first);
    void (*rows_argmin[TN__I64 + 1])(int64_t rows, int64_t n, const char *x, int64_t stride,
                                     void *to, int64_t *at, int64_t first);
};
extern const struct tn__folds *tn__folds;
extern const struct tn__folds tn__loops_base_folds;
#ifdef TN__HAVE_X86_LOOPS
extern const struct tn__folds tn__loops_avx2_folds;
extern const struct tn__folds tn__loops_avx512_folds;
#endif

/* Elements that move as they are (simd/copy.c): of 1, 2, 4 and 8 bytes, in a row. */
enum tn__bits { TN__BITS_AND, TN__BITS_OR, TN__BITS_XOR, TN__BITS_NOT, TN__BITS_FLIP };
struct tn__moves {
    void (*set[4])(int64_t n, char *to, const void *value);
    void (*back[4])(int64_t n, char *to, const char *last);
    void (*pick[4])(int64_t n, char *to, const char *from, const int64_t *at);
    void (*bits[TN__BITS_FLIP + 1])(int64_t bytes, char *y, const char *a, const char *b);
};
extern const struct tn__moves *tn__moves;
extern const struct tn__moves tn__loops_base_moves;
#ifdef TN__HAVE_X86_LOOPS
extern const struct tn__moves tn__loops_avx2_moves;
extern const struct tn__moves tn__loops_avx512_moves;
#endif
/* Which of the four an element of so many bytes takes; -1: none. */
static inline int tn__moves_of(int64_t item)
{
    return item == 1 ? 0 : item == 2 ? 1 : item == 4 ? 2 : item == 8 ? 3 : -1;
}

/* float16 ([0]) and bfloat16 ([1]) as they lie (simd/float16.c). */
struct tn__narrow {
    tn__ew_loop *ew[TN__EW_COUNT][2]; /* all operands of the type; NULL: through a buffer */
    tn__ew_loop *add[2];
    /* Operands: result, a, b, c (ternary.c); NULL: through a buffer. */
    void (*mix[TN__MIX_COUNT][2])(int64_t n, char *const *at, const int64_t *stride, double number);
    /* Adds n columns to `all`, 32 rows in float32, these in float64; rows `stride` bytes apart. */
    void (*rows_sum[2])(int64_t rows, int64_t n, const char *x, int64_t stride, double *all);
    /* Adds n numbers to the places of x that the index names, one after the other: to x + i * sx + index[i] * step; the
     * index is below `size`. How many are done: less than n where one is not. */
    int64_t (*add_at[2])(int64_t n, char *x, int64_t sx, int64_t step, uint64_t size,
                         const char *index, int64_t si, const char *other, int64_t so);
};
extern const struct tn__narrow *tn__narrow;
extern const struct tn__narrow tn__loops_base_narrow;
#ifdef TN__HAVE_X86_LOOPS
extern const struct tn__narrow tn__loops_avx2_narrow;
extern const struct tn__narrow tn__loops_avx512_narrow;
#endif
/* Which of the two a dtype is; -1: none. */
static inline int tn__narrow_of(tn_dtype dtype)
{
    return dtype == TN_F16 ? 0 : dtype == TN_BF16 ? 1 : -1;
}

/* Steps of optimizers (nn/optimizer.c) for n elements: the parameter, its gradient, what the rule keeps; the gradient is read. */
struct tn__sgd {
    double lr, momentum, dampening, weight_decay;
    bool nesterov, maximize, first;
};
struct tn__adam {
    double weight_decay, shrink, follow1, keep2, follow2, rate, scale, eps;
    bool amsgrad, maximize;
};
struct tn__steps {
    void (*sgd[TN__F64 + 1])(int64_t n, const struct tn__sgd *numbers, void *const *at);
    void (*adam[TN__F64 + 1])(int64_t n, const struct tn__adam *numbers, void *const *at);
    /* Of n numbers in a row: absolute values and squares added up, the largest absolute value. */
    void (*sum[TN__F64 + 1])(int64_t n, const void *x, double *out);
    void (*squares[TN__F64 + 1])(int64_t n, const void *x, double *out);
    void (*largest[TN__F64 + 1])(int64_t n, const void *x, double *out);
};
extern const struct tn__steps *tn__steps;
extern const struct tn__steps tn__loops_base_steps;
#ifdef TN__HAVE_X86_LOOPS
extern const struct tn__steps tn__loops_avx2_steps;
extern const struct tn__steps tn__loops_avx512_steps;
#endif

extern const struct tn__loops tn__loops_base;
#ifdef TN__HAVE_X86_LOOPS
extern const struct tn__loops tn__loops_avx2;
extern const struct tn__loops tn__loops_avx512;
extern const struct tn__products tn__products_avx2;
extern const struct tn__products tn__products_avx512;
#endif
extern const struct tn__products tn__products_base;
/* Those for this processor, chosen at activation. */
extern const struct tn__loops *tn__loops;
extern const struct tn__products *tn__products;
/* By dtype, once per instruction set. */
typedef const struct tn__conversions tn__conversions_table[TN_DTYPE_COUNT];
extern tn__conversions_table *tn__conversions;
extern tn__conversions_table tn__loops_base_conversions;
#ifdef TN__HAVE_X86_LOOPS
extern tn__conversions_table tn__loops_avx2_conversions;
extern tn__conversions_table tn__loops_avx512_conversions;
#endif

/* Functions of several steps a number, and their derivatives: chosen at activation, too. */
typedef tn__ew_loop *const tn__curves_table[TN__EW_COUNT][TN__I64 + 1];
extern const tn__curves_table *tn__curves;
extern tn__curves_table tn__loops_base_curves;
#ifdef TN__HAVE_X86_LOOPS
extern tn__curves_table tn__loops_avx2_curves;
extern tn__curves_table tn__loops_avx512_curves;
#endif
/* Complex numbers need no speed yet: one set for all. */
extern tn__ew_loop *const tn__loops_complex[TN__EW_COUNT][2];
/* Those that are no faster with wider vectors, for what the instruction sets' tables lack. */
extern tn__ew_loop *const tn__loops_once[TN__EW_COUNT][TN__I64 + 1];

/* The loop of an operation on numbers of a real type; NULL where there is none. */
static inline tn__ew_loop *tn__loop_of(enum tn__ew op, enum tn__ct ct)
{
    tn__ew_loop *loop = tn__loops->ew[op][ct];
    if (!loop)
        loop = (*tn__curves)[op][ct];
    return loop ? loop : tn__loops_once[op][ct];
}

/* ---- BLAS ------------------------------------------------------------------------------------ */

enum { TN__BLAS_ROW_MAJOR = 101, TN__BLAS_NO_TRANS = 111, TN__BLAS_TRANS = 112 };

/* The two functions that are used of it; both NULL where there is no BLAS. */
struct tn__blas {
    void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                  int lda, const double *b, int ldb, double beta, double *c, int ldc);
    /* Large products go to the own tiles all the same: they use wider vectors than this BLAS
     * does here. */
    bool narrow;
};
extern struct tn__blas tn__blas;
/* `wanted`: "auto", "none" or the path of a library. Only an explicit path that cannot be used
 * is an error. */
tn_status tn__blas_open(const char *wanted);
/* Around each call: the flavour without threads, as Debian builds it, takes its buffers without a
 * lock and gives wrong numbers when two threads are in it. */
void tn__blas_enter(void);
void tn__blas_leave(void);

/* ---- one product ----------------------------------------------------------------------------- */

/* c [m][n] = a [m][k] b [k][n] + bias [n], or c += a b, of float32 or float64; steps in elements. */
enum { TN__GEMM_DEPTH = 512 }; /* so much is summed up in registers */
struct tn__gemm {
    enum tn__ct ct;
    bool by_columns; /* a[i][k] lies at i + k * a_step, otherwise at i * a_step + k */
    bool add;
    int64_t m, n, k;
    const void *a;
    int64_t a_step;
    int64_t rounds, a_jump; /* k is so many rounds, a going on so much further after each; 0: one */
    int64_t
        a_strip; /* columns that were gathered: from one strip to the next; 0: they lie side by side */
    const void *b;  /* panels of `width` columns, each `b_panel` after the one before */
    int64_t b_step; /* from one row of a panel to the next */
    int64_t
        b_panel; /* rows that lie row by row: `width`, and behind the last there is room for one */
    int64_t width; /* tn__gemm_width */
    void *c;
    int64_t ldc;
    const void *bias; /* NULL: none; with room for a whole panel at the end */
    /* Called when rows [i, i + m) and columns [j, j + n) of c are whole, while they are near; NULL: not. */
    void (*done)(void *user, int64_t i, int64_t m, int64_t j, int64_t n);
    void *user;
};
/* Whether a is better gathered first: its columns lie so far apart that the lines of a strip push one another out of the cache. */
bool tn__gemm_crowded(const struct tn__gemm *g);
/* Elements that a gathered strip of that depth takes; what it holds: [k][mr]. */
int64_t tn__gemm_strip(enum tn__ct ct, int64_t k);
/* Strips [first, first + count) of a to `to` on, a_strip apart. */
void tn__gemm_gather(const struct tn__gemm *g, int64_t a_strip, int64_t first, int64_t count,
                     void *to);
/* The columns of a panel for n columns. */
int64_t tn__gemm_width(enum tn__ct ct, int64_t n);
void tn__gemm_run(const struct tn__gemm *g);
/* b [k][n], whose rows are `deep` and columns `across` elements apart, as panels [n / width][k][width], filled up with
 * zeros. */
void tn__gemm_pack(enum tn__ct ct, int64_t k, int64_t n, int64_t width, const void *from,
                   int64_t deep, int64_t across, void *to);
/* to[i] += from[i], of float32 or float64. */
void tn__gemm_add_row(enum tn__ct ct, int64_t n, const void *from, void *to);

/* ---- scratch memory -------------------------------------------------------------------------- */

/* Memory for a piece of work, kept for the next one instead of going back to the system (whose
 * fresh pages cost more than the work on them). It begins on a line of the cache. NULL and an error when there is none. */
void *tn__scratch_take(size_t bytes);
void tn__scratch_give(void *memory);
/* Gives back what is kept. */
void tn__scratch_drop(void);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Plans of Fourier transforms: how a transform of n complex numbers is computed, with the tables of
 * roots of unity that it needs. All plans are for the forward transform, whose exponent is
 * -2 pi i j k / n; the inverse transform exchanges real and imaginary parts before and after. */
#ifndef TN_BACKEND_CPU_FFT_PLAN_H
#define TN_BACKEND_CPU_FFT_PLAN_H

#include <tenon/plugin.h>

enum {
    TN__FFT_LARGEST_PRIME = 61, /* numbers with a larger prime factor become a convolution */
    TN__FFT_PASSES = 40
};

/* Columns: element e of a transform is two vectors, the real parts and the imaginary parts of as
 * many transforms as a vector has elements. A pass computes transforms of `radix` elements and
 * multiplies the results by roots of unity (Stockham's method: the result is in order). With
 * part i < parts and q < run, it reads elements q + run * (i + k * parts), k < radix, and writes
 * elements q + run * (radix * i + k). */
struct tn__fft_pass {
    int64_t radix, parts, run;
    const void *roots;  /* [parts][radix - 1], complex: factors of the results except the first */
    const void *matrix; /* [radix], complex: powers of exp(-2 pi i / radix) */
};

struct tn__fft_columns {
    int64_t n;
    int32_t passes;
    struct tn__fft_pass pass[TN__FFT_PASSES];
};

/* A single transform of n = n1 * n2 contiguous elements x[n1][n2]: transforms of its columns,
 * multiplication by roots of unity, transposition, and transforms of the columns again. Columns are
 * computed in blocks of one vector. */
struct tn__fft_split {
    int64_t n1, n2;
    int64_t blocks1, blocks2; /* blocks of columns: n1 and n2 divided by the vector, rounded up */
    struct tn__fft_columns first, second; /* of n1 and of n2 elements */
    const void *roots;                    /* [blocks2][n1][2][vector] */
};

enum tn__fft_mode {
    TN__FFT_TOGETHER, /* many transforms together, each a column */
    TN__FFT_SINGLE,   /* one transform at a time */
    TN__FFT_BLUESTEIN /* one at a time, as a convolution */
};

struct tn__fft_plan {
    int64_t n;
    tn_dtype part; /* the dtype of real and imaginary parts */
    bool real;     /* has `halves` */
    enum tn__fft_mode mode;
    struct tn__fft_columns columns; /* TOGETHER */
    struct tn__fft_split split;     /* SINGLE */
    /* BLUESTEIN: because j k = (j^2 + k^2 - (k - j)^2) / 2, the transform is a convolution with the
     * conjugate of chirp[j] = exp(-pi i j^2 / n), between multiplications by `chirp`. */
    struct tn__fft_plan *inner; /* of m >= 2 n - 1 elements */
    void *chirp;                /* [n] */
    void *spectrum;             /* [m], divided by m */
    /* [n / 2 + 1], complex: exp(-2 pi i k / (2 n)), for a transform of 2 n real numbers */
    const void *halves;
    void *memory;  /* all tables */
    size_t bytes;  /* their size */
    int32_t users; /* under the lock of the plans that are kept */
};

/* Returns whether n has no prime factor above TN__FFT_LARGEST_PRIME. */
bool tn__fft_smooth(int64_t n);
/* Returns the cost of a single transform of n elements: the number of elements in all vectors that
 * it computes. n must be smooth. */
int64_t tn__fft_split_cost(int64_t n, int64_t vector);
/* Returns a plan, which the caller gives back by tn__fft_plan_give(). Plans are kept for later
 * calls. Returns NULL and sets the error when memory runs out. If `mode` is SINGLE and n is not
 * smooth, the plan has the mode BLUESTEIN. */
struct tn__fft_plan *tn__fft_plan_take(int64_t n, tn_dtype part, bool real, enum tn__fft_mode mode);
void tn__fft_plan_give(struct tn__fft_plan *plan);
/* Frees the plans that are kept for later calls. */
void tn__fft_plan_drop(void);

#endif

/* SPDX-License-Identifier: MIT
 *
 * One product of matrices on one thread. */
#ifndef TN_BACKEND_CPU_MATMUL_GEMM_H
#define TN_BACKEND_CPU_MATMUL_GEMM_H

#include "base/dtype.h"
#include "simd/simd.h"

enum { TN__GEMM_DEPTH = 512 }; /* the part of k that is accumulated in registers at a time */

extern const struct tn__limits tn__no_limits;

/* The product c[m][n] = a[m][k] b[k][n] + bias[n], or c += a b, of float32 or float64. Steps are in
 * elements. */
struct tn__gemm {
    enum tn__ct ct;
    bool by_columns; /* true: a[i][k] is at i + k * a_step; false: at i * a_step + k */
    bool add;        /* c += a b, without bias */
    int64_t m, n, k;
    const void *a;
    int64_t a_step;
    int64_t rounds, a_jump; /* k is divided into `rounds` (0: 1); after each, a skips a_jump */
    int64_t b_jump;         /* and each panel of b skips b_jump */
    int64_t a_strip;        /* distance between gathered strips; 0: a was not gathered */
    const void *b;          /* panels of `width` columns, `b_panel` apart */
    int64_t b_step;         /* from one row of a panel to the next */
    /* Distance between panels. If b is row-major it is `width`, and the last panel may be read
     * beyond the end of its rows. */
    int64_t b_panel;
    int64_t width; /* the result of tn__gemm_width */
    void *c;
    int64_t ldc;
    const void *bias;                /* NULL: none. It is read up to the end of the last panel. */
    const struct tn__limits *limits; /* of the result; NULL: tn__no_limits */
    /* Called, unless it is NULL, when rows [i, i + m) and columns [j, j + n) of c are complete and
     * still in the cache. */
    void (*done)(void *user, int64_t i, int64_t m, int64_t j, int64_t n);
    void *user;
};
/* Returns whether it is faster to gather a first, because its columns are so far apart that the
 * cache lines of a strip evict each other. */
bool tn__gemm_crowded(const struct tn__gemm *g);
/* Returns the distance in elements between gathered strips [k][mr] of depth k. */
int64_t tn__gemm_strip(enum tn__ct ct, int64_t k);
/* Copies strips [first, first + count) of a to `to`, each contiguous, a_strip elements apart. */
void tn__gemm_gather(const struct tn__gemm *g, int64_t a_strip, int64_t first, int64_t count,
                     void *to);
/* Returns the number of columns in a panel for a matrix b with n columns. */
int64_t tn__gemm_width(enum tn__ct ct, int64_t n);
/* Computes the product. */
void tn__gemm_run(const struct tn__gemm *g);
/* Packs b[k][n], whose rows are `deep` and columns `across` elements apart, into panels
 * [n / width, rounded up][k][width]; the columns missing in the last panel are zeros. */
void tn__gemm_pack(enum tn__ct ct, int64_t k, int64_t n, int64_t width, const void *from,
                   int64_t deep, int64_t across, void *to);
/* Adds n elements: to[i] += from[i], of float32 or float64. */
void tn__gemm_add_row(enum tn__ct ct, int64_t n, const void *from, void *to);

#endif

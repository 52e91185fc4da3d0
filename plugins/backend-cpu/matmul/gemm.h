/* SPDX-License-Identifier: MIT
 *
 * One product of matrices on one thread. */
#ifndef TN_BACKEND_CPU_MATMUL_GEMM_H
#define TN_BACKEND_CPU_MATMUL_GEMM_H

#include "base/dtype.h"

/* c [m][n] = a [m][k] b [k][n] + bias [n], or c += a b, of float32 or float64; steps in
 * elements. */
enum { TN__GEMM_DEPTH = 512 }; /* depth that is summed up in registers */
struct tn__gemm {
    enum tn__ct ct;
    bool by_columns; /* a[i][k] is at i + k * a_step, otherwise at i * a_step + k */
    bool add;
    int64_t m, n, k;
    const void *a;
    int64_t a_step;
    int64_t rounds, a_jump; /* k in so many rounds; a advances by a_jump after each; 0: one round */
    int64_t a_strip;        /* distance between gathered strips; 0: the columns were not gathered */
    const void *b;          /* panels of `width` columns, each `b_panel` after the one before */
    int64_t b_step;         /* from one row of a panel to the next */
    /* Distance between panels. Of a row-major b: `width`, and one row more may be read. */
    int64_t b_panel;
    int64_t width; /* tn__gemm_width */
    void *c;
    int64_t ldc;
    const void *bias; /* NULL: none; a whole panel may be read at the end */
    /* Called when rows [i, i + m) and columns [j, j + n) of c are complete, while they are in the
     * cache; NULL: not called. */
    void (*done)(void *user, int64_t i, int64_t m, int64_t j, int64_t n);
    void *user;
};
/* Whether gathering a first is faster: its columns are so far apart that the cache lines of a strip
 * evict each other. */
bool tn__gemm_crowded(const struct tn__gemm *g);
/* Elements of a gathered strip of that depth, [k][mr]. */
int64_t tn__gemm_strip(enum tn__ct ct, int64_t k);
/* Gathers strips [first, first + count) of a to `to`, a_strip apart. */
void tn__gemm_gather(const struct tn__gemm *g, int64_t a_strip, int64_t first, int64_t count,
                     void *to);
/* The columns of a panel for n columns. */
int64_t tn__gemm_width(enum tn__ct ct, int64_t n);
void tn__gemm_run(const struct tn__gemm *g);
/* Packs b [k][n], whose rows are `deep` and columns `across` elements apart, into panels
 * [n / width][k][width], padded with zeros. */
void tn__gemm_pack(enum tn__ct ct, int64_t k, int64_t n, int64_t width, const void *from,
                   int64_t deep, int64_t across, void *to);
/* to[i] += from[i], of float32 or float64. */
void tn__gemm_add_row(enum tn__ct ct, int64_t n, const void *from, void *to);

#endif

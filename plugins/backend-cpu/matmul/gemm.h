/* SPDX-License-Identifier: MIT
 *
 * One product of matrices on one thread. */
#ifndef TN_BACKEND_CPU_MATMUL_GEMM_H
#define TN_BACKEND_CPU_MATMUL_GEMM_H

#include "base/dtype.h"

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

#endif

/* SPDX-License-Identifier: MIT
 *
 * Attention over blocks of queries and keys: what its parts share. */
#ifndef TN_BACKEND_CPU_NN_ATTENTION_H
#define TN_BACKEND_CPU_NN_ATTENTION_H

#include "base/dtype.h"

/* [N, heads, rows, columns], strides in bytes. */
struct attention_operand {
    char *at;
    int64_t step[4];
    tn_dtype dtype;
};

struct attention {
    enum tn__ct ct;
    int64_t size; /* of a number of that type */
    int64_t n, h, g, l, s, e, v;
    struct attention_operand q, k, values, mask, y, logsumexp, gy, glogsumexp, gq, gk, gv;
    double scale;
    bool causal;
    bool drops;
    /* dropout: a random number below `keep` keeps the score, multiplied by `factor` */
    double keep, factor;
    uint64_t seed, block;
    int64_t bq, bk;           /* queries and keys of a block */
    int64_t pitch;            /* numbers from one row of scores to the next */
    int64_t wk, we, wv;       /* columns of panels: keys, E, V */
    int64_t q_range, k_range; /* rows whose gradients one piece sums */
    bool backward;
};

/* Where one thread works: matrices of numbers of the compute type; `.._panels` as tn__gemm_pack
 * leaves them. */
struct attention_workspace {
    char *q, *gy;                /* [bq][E], times scale, and [bq][V] */
    char *q_panels, *gy_panels;  /* b [bq][E], [bq][V] */
    char *kt_panels, *vt_panels; /* b [E][bk], [V][bk] */
    char *k_panels, *v_panels;   /* b [bk][E], [bk][V] */
    char *scores, *slopes;       /* [bq][pitch] */
    char *sums;                  /* [bq][V] */
    char *gq, *gk, *gv;          /* [q_range][E], [k_range][E], [k_range][V] */
    char *dense, *line;          /* buffers for conversion; of one row */
    double *top, *sum; /* of each query; of gradients: logsumexp, and what is subtracted */
};

/* ---- sizes and addresses --------------------------------------------------------------------- */

static inline int64_t tn__attention_up(int64_t n, int64_t width)
{
    return (n + width - 1) / width * width;
}

static inline char *tn__attention_place(const struct attention_operand *o, int64_t n, int64_t head,
                                        int64_t row)
{
    return o->at + n * o->step[0] + head * o->step[1] + row * o->step[2];
}

static inline int64_t tn__attention_blocks_of(int64_t rows, int64_t block)
{
    return (rows + block - 1) / block;
}

static inline int64_t tn__attention_here_of(int64_t whole, int64_t first, int64_t block)
{
    return whole - first < block ? whole - first : block;
}

/* ---- attention_block.c: one block of scores -------------------------------------------------- */

/* With base NULL: returns the size in bytes. */
size_t tn__attention_lay_out(const struct attention *a, char *base, struct attention_workspace *d);
void tn__attention_times(const struct attention *a, int64_t n, double factor, char *x);
void tn__attention_load_rows(const struct attention *a, const struct attention_operand *o,
                             int64_t n, int64_t head, int64_t first, int64_t rows, int64_t columns,
                             char *to);
void tn__attention_store_row(const struct attention *a, const struct attention_operand *o,
                             int64_t n, int64_t head, int64_t row, int64_t columns,
                             const char *from);
/* Packs rows into panels: each is a row of b or, if `turned`, a column. */
void tn__attention_pack(const struct attention *a, const struct attention_operand *o, int64_t n,
                        int64_t head, int64_t first, int64_t rows, int64_t columns, bool turned,
                        char *dense, char *to);
/* c [m][n] = or += a b, b as panels. */
void tn__attention_multiply(const struct attention *a, int64_t m, int64_t n, int64_t k,
                            const char *x, int64_t x_step, bool by_columns, const char *panels,
                            char *c, int64_t ldc, bool add);
void tn__attention_find_scores(const struct attention *a, struct attention_workspace *d, int64_t n,
                               int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys);
/* 0 or `factor` for each key of a row, from the numbers that belong to its scores. */
void tn__attention_draw(const struct attention *a, int64_t n, int64_t head, int64_t row, int64_t k0,
                        int64_t keys, char *to);
void tn__attention_multiply_row(const struct attention *a, int64_t n, const char *by, char *x);

/* ---- attention_grad.c: for tn_parallel_for --------------------------------------------------- */

/* Whole heads; or blocks of keys, then blocks of queries. */
tn_status tn__attention_backward(void *user, int64_t begin, int64_t end);

#endif

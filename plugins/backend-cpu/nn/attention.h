/* SPDX-License-Identifier: MIT
 *
 * Declarations shared by the files that compute attention over blocks of queries and keys. */
#ifndef TN_BACKEND_CPU_NN_ATTENTION_H
#define TN_BACKEND_CPU_NN_ATTENTION_H

#include "base/philox.h"
#include "base/dtype.h"

/* A tensor [N, heads, rows, columns]; steps are in bytes. */
struct attention_operand {
    char *at;
    int64_t step[4];
    tn_dtype dtype;
};

struct attention {
    enum tn__ct ct;
    int64_t size; /* bytes of a number of the compute type */
    /* batch, heads of queries, heads of keys, queries, keys, columns E of q and k, V of values */
    int64_t n, h, g, l, s, e, v;
    struct attention_operand q, k, values, mask, y, logsumexp, gy, glogsumexp, gq, gk, gv;
    double scale;
    bool causal;
    bool drops;
    /* dropout: if its random number is below `keep`, a score is multiplied by `factor`, otherwise
     * by 0 */
    double keep, factor;
    struct tn__philox philox;
    int64_t bq, bk;           /* queries and keys of a block */
    int64_t pitch;            /* numbers from one row of scores to the next */
    int64_t wk, we, wv;       /* columns of a panel of keys, of E, of V */
    int64_t q_range, k_range; /* gradient: queries and keys of a piece */
    bool backward;
};

/* The buffers of one thread: matrices of the compute type; those named *_panels are packed by
 * tn__gemm_pack. E are the columns of queries and keys, V the columns of values. */
struct attention_workspace {
    char *q, *gy;                /* [bq][E], multiplied by scale; [bq][V] */
    char *q_panels, *gy_panels;  /* [bq][E], [bq][V] */
    char *kt_panels, *vt_panels; /* [E][bk], [V][bk] */
    char *k_panels, *v_panels;   /* [bk][E], [bk][V] */
    char *scores, *slopes;       /* [bq][pitch]; slopes: gradients of the scores */
    char *sums;                  /* [bq][V] */
    char *gq, *gk, *gv;          /* [q_range][E], [k_range][E], [k_range][V] */
    char *dense, *line;          /* a converted block, one converted row */
    /* For each query: the largest score, and the sum of e^(score - largest). In the gradient:
     * logsumexp, and the number that is subtracted from the gradients of the probabilities. */
    double *top, *sum;
};

/* ---- sizes and addresses --------------------------------------------------------------------- */

static inline int64_t tn__attention_up(int64_t n, int64_t width)
{
    return (n + width - 1) / width * width;
}

/* Returns the address of a row. */
static inline char *tn__attention_place(const struct attention_operand *o, int64_t n, int64_t head,
                                        int64_t row)
{
    return o->at + n * o->step[0] + head * o->step[1] + row * o->step[2];
}

static inline int64_t tn__attention_blocks_of(int64_t rows, int64_t block)
{
    return (rows + block - 1) / block;
}

/* Returns the rows of the block that begins at row `first`. */
static inline int64_t tn__attention_here_of(int64_t whole, int64_t first, int64_t block)
{
    return whole - first < block ? whole - first : block;
}

/* ---- attention_block.c: one block of scores -------------------------------------------------- */

/* Sets the pointers of `d` into the memory at `base`. Returns the size of the memory in bytes; to
 * learn the size first, call it with base NULL. */
size_t tn__attention_lay_out(const struct attention *a, char *base, struct attention_workspace *d);
/* x[i] *= factor for n numbers. */
void tn__attention_times(const struct attention *a, int64_t n, double factor, char *x);
/* Convert rows of an operand to contiguous rows of the compute type, and one row back. */
void tn__attention_load_rows(const struct attention *a, const struct attention_operand *o,
                             int64_t n, int64_t head, int64_t first, int64_t rows, int64_t columns,
                             char *to);
void tn__attention_store_row(const struct attention *a, const struct attention_operand *o,
                             int64_t n, int64_t head, int64_t row, int64_t columns,
                             const char *from);
/* Packs rows of an operand into panels as the matrix b of a product. Each row becomes a row of b
 * or, if `turned`, a column of b. `dense` is a buffer for conversion. */
void tn__attention_pack(const struct attention *a, const struct attention_operand *o, int64_t n,
                        int64_t head, int64_t first, int64_t rows, int64_t columns, bool turned,
                        char *dense, char *to);
/* Computes c[m][n] = x b, or c += x b if `add`, where `panels` is b packed. x is [m][k], or [k][m]
 * if `by_columns`. */
void tn__attention_multiply(const struct attention *a, int64_t m, int64_t n, int64_t k,
                            const char *x, int64_t x_step, bool by_columns, const char *panels,
                            char *c, int64_t ldc, bool add);
/* Computes the scores of a block, q k^T with masks, into d->scores. */
void tn__attention_find_scores(const struct attention *a, struct attention_workspace *d, int64_t n,
                               int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys);
/* For few queries, for which packing takes more time than it saves. The first function returns
 * whether there are few queries, and keys and values can be read without a copy. The other two
 * compute the scores of a block, and add products with its values to d->sums. */
enum { TN__ATTENTION_FEW = 4 };
bool tn__attention_is_few(const struct attention *a, int64_t rows);
void tn__attention_few_scores(const struct attention *a, struct attention_workspace *d, int64_t n,
                              int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys);
void tn__attention_few_sums(const struct attention *a, struct attention_workspace *d, int64_t n,
                            int64_t head, int64_t rows, int64_t k0, int64_t keys);
/* Draws dropout for a row of scores: 0 or a->factor for each key. Each score has its own place in
 * the sequence of random numbers, so forward and backward draw the same. */
void tn__attention_draw(const struct attention *a, int64_t n, int64_t head, int64_t row, int64_t k0,
                        int64_t keys, char *to);
/* x[i] *= by[i] for n numbers. */
void tn__attention_multiply_row(const struct attention *a, int64_t n, const char *by, char *x);

/* ---- attention_grad.c ------------------------------------------------------------------------ */

/* Computes pieces [begin, end) of the gradient, for tn_parallel_for. If q_range and k_range cover
 * all queries and keys, a piece is a whole head of keys. Otherwise the first pieces are blocks of
 * keys (gk and gv), and the other pieces are blocks of queries (gq). */
tn_status tn__attention_backward(void *user, int64_t begin, int64_t end);

#endif

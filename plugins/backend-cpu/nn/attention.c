/* SPDX-License-Identifier: MIT
 *
 * Attention and its gradient. Queries and keys are divided into blocks, and one block of scores is
 * computed at a time, which stays in the cache. Block sizes and the order of sums depend on the
 * shapes alone, not on the threads. */
#include <math.h>
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"
#include "matmul/gemm.h"
#include "nn/attention.h"
#include "simd/simd.h"

enum {
    BLOCK = 128, /* queries and keys of a block */
    FEW = 32,    /* minimum queries of a block, if blocks are made smaller to have enough pieces */
    WHOLE = 192, /* up to this many keys are one block */
    GAP = 16, /* numbers between rows of scores, so that rows do not evict each other from cache */
    PIECES = 16,             /* pieces to aim for */
    HEADS = 8,               /* gradient: if there are fewer heads, each is divided into blocks */
    WORTH = 64 * 64 * 64 * 2 /* minimum number of multiplications for one thread */
};

/* ---- forward --------------------------------------------------------------------------------- */

static double row_max(const struct attention *a, int64_t n, const char *x)
{
    return a->ct == TN__F32 ? (double)tn__simd.softmax->max_f32(n, (const float *)(const void *)x)
                            : tn__simd.softmax->max_f64(n, (const double *)(const void *)x);
}

/* Changes the scores x of one query for a block of keys to e^(score - *top), where *top is the
 * largest score of the query so far. If *top grows, `sums` and *sum, the results of earlier blocks,
 * are scaled to the new *top. */
static void forward_row(const struct attention *a, int64_t keys, char *x, char *sums, double *top,
                        double *sum)
{
    double here = row_max(a, keys, x), largest = here != here || here > *top ? here : *top, less;

    if (largest == -INFINITY) { /* all keys so far are masked */
        memset(x, 0, (size_t)(keys * a->size));
        return;
    }
    less = exp(*top - largest);
    if (*sum != 0 && less != 1)
        tn__attention_times(a, a->v, less, sums);
    *sum = *sum * less + (a->ct == TN__F32
                              ? tn__simd.softmax->attend_f32(keys, largest, (float *)(void *)x)
                              : tn__simd.softmax->attend_f64(keys, largest, (double *)(void *)x));
    *top = largest;
}

/* Computes rows of y and of logsumexp for `rows` queries of a head, from query q0 on. */
static void forward_block(const struct attention *a, struct attention_workspace *d, int64_t n,
                          int64_t head, int64_t q0, int64_t rows)
{
    int64_t shared = head / (a->h / a->g);
    const bool few = tn__attention_is_few(a, rows);

    tn__attention_load_rows(a, &a->q, n, head, q0, rows, a->e, d->q);
    tn__attention_times(a, rows * a->e, a->scale, d->q);
    memset(d->sums, 0, (size_t)(rows * a->v * a->size));
    for (int64_t i = 0; i < rows; i++) {
        d->top[i] = -INFINITY;
        d->sum[i] = 0;
    }
    for (int64_t k0 = 0; k0 < a->s && (!a->causal || k0 < q0 + rows); k0 += a->bk) {
        int64_t keys = a->s - k0 < a->bk ? a->s - k0 : a->bk;
        if (few) {
            tn__attention_few_scores(a, d, n, head, q0, rows, k0, keys);
        } else {
            tn__attention_pack(a, &a->k, n, shared, k0, keys, a->e, true, d->dense, d->kt_panels);
            tn__attention_pack(a, &a->values, n, shared, k0, keys, a->v, false, d->dense,
                               d->v_panels);
            tn__attention_find_scores(a, d, n, head, q0, rows, k0, keys);
        }
        for (int64_t i = 0; i < rows; i++) {
            char *x = d->scores + i * a->pitch * a->size;
            forward_row(a, keys, x, d->sums + i * a->v * a->size, &d->top[i], &d->sum[i]);
            if (a->drops) {
                tn__attention_draw(a, n, head, q0 + i, k0, keys, d->line);
                tn__attention_multiply_row(a, keys, d->line, x);
            }
        }
        if (few)
            tn__attention_few_sums(a, d, n, head, rows, k0, keys);
        else
            tn__attention_multiply(a, rows, a->v, keys, d->scores, a->pitch, false, d->v_panels,
                                   d->sums, a->v, true);
    }
    for (int64_t i = 0; i < rows; i++) {
        char *x = d->sums + i * a->v * a->size;
        double norm = d->sum[i] == 0 ? INFINITY : d->top[i] + log(d->sum[i]);
        if (d->sum[i] != 0)
            tn__attention_times(a, a->v, 1 / d->sum[i], x);
        tn__attention_store_row(a, &a->y, n, head, q0 + i, a->v, x);
        tn__dtype_store(TN__F64, a->logsumexp.dtype)(
            1, &norm, tn__attention_place(&a->logsumexp, n, head, q0 + i), 0);
    }
}

static tn_status forward_part(void *user, int64_t begin, int64_t end)
{
    const struct attention *a = user;
    int64_t blocks = tn__attention_blocks_of(a->l, a->bq);
    struct attention_workspace d = { 0 };
    char *memory = tn__scratch_take(tn__attention_lay_out(a, NULL, &d));

    if (!memory)
        return TN_ERR_MEMORY;
    tn__attention_lay_out(a, memory, &d);
    for (int64_t i = begin; i < end; i++) {
        int64_t q0 = i % blocks * a->bq;
        forward_block(a, &d, i / blocks / a->h, i / blocks % a->h, q0,
                      tn__attention_here_of(a->l, q0, a->bq));
    }
    tn__scratch_give(memory);
    return TN_OK;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Returns the operand for `view`, whose last dimension is dimension 3 - behind of the operand. */
static struct attention_operand operand_of(const tn_view *view, int32_t behind)
{
    struct attention_operand o = { .at = NULL };

    if (!view)
        return o;
    o.at = tn__view_at(view);
    o.dtype = tn_view_dtype(view);
    for (int32_t i = 0; i < view->ndim; i++) /* missing dimensions and size 1 broadcast: step 0 */
        if (view->shape[i] != 1)
            o.step[4 - behind - view->ndim + i] = view->strides[i] * tn__view_item(view);
    return o;
}

static void set_up(struct attention *a, const tn_view *q, const tn_view *k, const tn_view *v,
                   const tn_view *mask)
{
    int64_t blocks;

    a->ct = tn__dtype_ct(tn_view_dtype(q));
    a->size = (int64_t)tn__dtype_ct_size(a->ct);
    a->n = q->shape[0];
    a->h = q->shape[1];
    a->g = k->shape[1];
    a->l = q->shape[2];
    a->s = k->shape[2];
    a->e = q->shape[3];
    a->v = v->shape[3];
    a->q = operand_of(q, 0);
    a->k = operand_of(k, 0);
    a->values = operand_of(v, 0);
    a->mask = operand_of(mask, 0);
    a->bk = a->s > WHOLE ? BLOCK : a->s > 0 ? a->s : 1;
    a->bq = BLOCK;
    do
        blocks = a->n * a->h * tn__attention_blocks_of(a->l, a->bq);
    while (!a->backward && blocks < PIECES && a->bq > FEW && (a->bq /= 2));
    a->bq = a->bq < a->l ? a->bq : a->l > 0 ? a->l : 1;
    a->pitch = tn__attention_up(a->bk, GAP) + GAP;
    a->wk = tn__gemm_width(a->ct, a->bk);
    a->we = tn__gemm_width(a->ct, a->e);
    a->wv = tn__gemm_width(a->ct, a->v);
}

/* Sets the numbers for dropout. a->keep is rounded to q's dtype, the dtype of the random numbers
 * with which it is compared in the decomposition. */
static void set_dropout(struct attention *a, tn_dtype dtype, double p, int64_t seed, int64_t block,
                        const tn_view *state)
{
    char rounded[16];

    a->keep = 1 - p;
    tn__dtype_store(TN__F64, dtype)(1, &a->keep, rounded, 0);
    tn__dtype_load(dtype, TN__F64)(1, rounded, 0, &a->keep);
    a->drops = p > 0;
    a->factor = p < 1 ? 1 / (1 - p) : 0;
    a->philox = tn__kernel_philox(seed, block, state);
}

/* Runs `part` for pieces [0, pieces) on the threads; `each` is the multiplications of a piece. */
static tn_status spread(struct attention *a, int64_t pieces, double each,
                        tn_status (*part)(void *, int64_t, int64_t))
{
    if (pieces == 0)
        return TN_OK;
    return tn_parallel_for(pieces, each >= WORTH ? 1 : (int64_t)(WORTH / (each + 1)) + 1, part, a);
}

static tn_status run_attend(const tn_call *call)
{
    const tn_attend_options *o = call->options;
    struct attention a = { .scale = o->scale, .causal = o->is_causal };

    set_up(&a, call->in[0], call->in[1], call->in[2], call->in[3]);
    set_dropout(&a, tn_view_dtype(call->in[0]), o->dropout_p, o->seed, o->block, call->in[4]);
    a.y = operand_of(call->out[0], 0);
    a.logsumexp = operand_of(call->out[1], 1);
    if (a.l == 0)
        return TN_OK;
    return spread(&a, a.n * a.h * tn__attention_blocks_of(a.l, a.bq),
                  (double)a.bq * (double)a.s * (double)(a.e + a.v), forward_part);
}

static tn_status run_attend_grad(const tn_call *call)
{
    const tn_attend_grad_options *o = call->options;
    struct attention a = { .scale = o->scale, .causal = o->is_causal, .backward = true };
    double each;
    int64_t pieces;

    set_up(&a, call->in[1], call->in[2], call->in[3], call->in[4]);
    set_dropout(&a, tn_view_dtype(call->in[1]), o->dropout_p, o->seed, o->block, call->in[8]);
    a.gy = operand_of(call->in[0], 0);
    a.y = operand_of(call->in[5], 0);
    a.logsumexp = operand_of(call->in[6], 1);
    a.glogsumexp = operand_of(call->in[7], 1);
    a.gq = operand_of(call->out[0], 0);
    a.gk = operand_of(call->out[1], 0);
    a.gv = operand_of(call->out[2], 0);
    a.q_range = a.l;
    a.k_range = a.s;
    each = (double)a.l * (double)a.s * (double)(a.e + a.v) * (double)(a.g > 0 ? a.h / a.g : 0);
    pieces = a.n * a.g;
    if (pieces < HEADS && (a.l > a.bq || a.s > a.bk)) {
        pieces = a.n * a.g * tn__attention_blocks_of(a.s, a.bk) +
                 a.n * a.h * tn__attention_blocks_of(a.l, a.bq);
        each = (double)a.bq * (double)a.s * (double)(a.e + a.v);
        a.q_range = a.bq;
        a.k_range = a.bk;
    }
    return spread(&a, pieces, each, tn__attention_backward);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(attend, TN__FLOATS),
    TN__KERNEL(attend_grad, TN__FLOATS),
};
TN__KERNEL_TABLE(attention);

/* SPDX-License-Identifier: MIT
 *
 * The gradient of attention. The scores were not stored by forward; they are computed again, block
 * by block. */
#include <string.h>

#include "base/scratch.h"
#include "matmul/gemm.h"
#include "nn/attention.h"
#include "simd/simd.h"

/* One piece of the gradient: ranges of heads, queries and keys, and whether it computes the
 * gradient of the queries, of keys and values, or of all. */
struct share {
    /* `shared` is the head of the keys, which `heads` heads of queries from `head` on share */
    int64_t n, shared, head, heads, q0, queries, k0, keys;
    bool for_q, for_k;
};

/* Loads the data of a block of queries: q times scale, gy, logsumexp (into d->top) and the sum of
 * gy * y minus the gradient of logsumexp (into d->sum). */
static void load_queries(const struct attention *a, struct attention_workspace *d,
                         const struct share *s, int64_t head, int64_t q0, int64_t rows)
{
    tn__load *load = tn__dtype_load(a->logsumexp.dtype, TN__F64);

    tn__attention_load_rows(a, &a->q, s->n, head, q0, rows, a->e, d->q);
    tn__attention_times(a, rows * a->e, a->scale, d->q);
    tn__attention_load_rows(a, &a->gy, s->n, head, q0, rows, a->v, d->gy);
    if (s->for_k) {
        tn__gemm_pack(a->ct, rows, a->e, a->we, d->q, a->e, 1, d->q_panels);
        tn__gemm_pack(a->ct, rows, a->v, a->wv, d->gy, a->v, 1, d->gy_panels);
    }
    tn__attention_load_rows(a, &a->y, s->n, head, q0, rows, a->v, d->dense);
    for (int64_t i = 0; i < rows; i++) {
        const char *y = d->dense + i * a->v * a->size, *gy = d->gy + i * a->v * a->size;
        double more = 0;
        load(1, tn__attention_place(&a->logsumexp, s->n, head, q0 + i), 0, &d->top[i]);
        if (a->glogsumexp.at)
            load(1, tn__attention_place(&a->glogsumexp, s->n, head, q0 + i), 0, &more);
        d->sum[i] = (a->ct == TN__F32
                         ? (double)tn__simd.gemm->dot_f32(a->v, (const float *)(const void *)y,
                                                          (const float *)(const void *)gy)
                         : tn__simd.gemm->dot_f64(a->v, (const double *)(const void *)y,
                                                  (const double *)(const void *)gy)) -
                    more;
    }
}

/* Adds the contribution of one block of scores to the gradients. */
static void backward_block(const struct attention *a, struct attention_workspace *d,
                           const struct share *s, int64_t head, int64_t q0, int64_t rows,
                           int64_t k0, int64_t keys)
{
    char *gk = d->gk + (k0 - s->k0) * a->e * a->size, *gv = d->gv + (k0 - s->k0) * a->v * a->size;

    tn__attention_find_scores(a, d, s->n, head, q0, rows, k0, keys);
    tn__attention_multiply(a, rows, keys, a->v, d->gy, a->v, false, d->vt_panels, d->slopes,
                           a->pitch, false);
    for (int64_t i = 0; i < rows; i++) {
        char *x = d->scores + i * a->pitch * a->size, *g = d->slopes + i * a->pitch * a->size;
        if (a->drops) {
            tn__attention_draw(a, s->n, head, q0 + i, k0, keys, d->line);
            tn__attention_multiply_row(a, keys, d->line, g);
        }
        if (a->ct == TN__F32)
            tn__simd.softmax->attend_grad_f32(keys, d->top[i], d->sum[i], (float *)(void *)x,
                                              (float *)(void *)g);
        else
            tn__simd.softmax->attend_grad_f64(keys, d->top[i], d->sum[i], (double *)(void *)x,
                                              (double *)(void *)g);
        if (a->drops)
            tn__attention_multiply_row(a, keys, d->line, x);
    }
    if (s->for_k) {
        tn__attention_multiply(a, keys, a->v, rows, d->scores, a->pitch, true, d->gy_panels, gv,
                               a->v, true);
        tn__attention_multiply(a, keys, a->e, rows, d->slopes, a->pitch, true, d->q_panels, gk,
                               a->e, true);
    }
    if (s->for_q)
        tn__attention_multiply(a, rows, a->e, keys, d->slopes, a->pitch, false, d->k_panels,
                               d->gq + (q0 - s->q0) * a->e * a->size, a->e, true);
}

static void backward_share(const struct attention *a, struct attention_workspace *d,
                           const struct share *s)
{
    int64_t shared = s->shared, z = a->size;

    if (s->for_k) {
        memset(d->gk, 0, (size_t)(s->keys * a->e * z));
        memset(d->gv, 0, (size_t)(s->keys * a->v * z));
    }
    for (int64_t head = s->head; head < s->head + s->heads; head++) {
        if (s->for_q)
            memset(d->gq, 0, (size_t)(s->queries * a->e * z));
        for (int64_t k0 = s->k0; k0 < s->k0 + s->keys; k0 += a->bk) {
            int64_t keys = tn__attention_here_of(s->k0 + s->keys, k0, a->bk);
            tn__attention_pack(a, &a->k, s->n, shared, k0, keys, a->e, true, d->dense,
                               d->kt_panels);
            tn__attention_pack(a, &a->values, s->n, shared, k0, keys, a->v, true, d->dense,
                               d->vt_panels);
            if (s->for_q)
                tn__attention_pack(a, &a->k, s->n, shared, k0, keys, a->e, false, d->dense,
                                   d->k_panels);
            for (int64_t q0 = s->q0; q0 < s->q0 + s->queries; q0 += a->bq) {
                int64_t rows = tn__attention_here_of(s->q0 + s->queries, q0, a->bq);
                if (a->causal && k0 >= q0 + rows)
                    continue;
                load_queries(a, d, s, head, q0, rows);
                backward_block(a, d, s, head, q0, rows, k0, keys);
            }
        }
        for (int64_t i = 0; s->for_q && i < s->queries; i++) {
            tn__attention_times(a, a->e, a->scale, d->gq + i * a->e * z);
            tn__attention_store_row(a, &a->gq, s->n, head, s->q0 + i, a->e, d->gq + i * a->e * z);
        }
    }
    for (int64_t i = 0; s->for_k && i < s->keys; i++) {
        tn__attention_store_row(a, &a->gk, s->n, shared, s->k0 + i, a->e, d->gk + i * a->e * z);
        tn__attention_store_row(a, &a->gv, s->n, shared, s->k0 + i, a->v, d->gv + i * a->v * z);
    }
}

tn_status tn__attention_backward(void *user, int64_t begin, int64_t end)
{
    const struct attention *a = user;
    bool heads = a->q_range >= a->l && a->k_range >= a->s;
    int64_t of_keys = tn__attention_blocks_of(a->s, a->bk),
            of_queries = tn__attention_blocks_of(a->l, a->bq), for_keys = a->n * a->g * of_keys,
            group = a->h / a->g;
    struct attention_workspace d = { 0 };
    char *memory = tn__scratch_take(tn__attention_lay_out(a, NULL, &d));

    if (!memory)
        return TN_ERR_MEMORY;
    tn__attention_lay_out(a, memory, &d);
    for (int64_t i = begin; i < end; i++) {
        struct share s = { .queries = a->l, .keys = a->s, .heads = group };
        if (heads) {
            s.n = i / a->g;
            s.shared = i % a->g;
            s.head = s.shared * group;
            s.for_q = s.for_k = true;
        } else if (i < for_keys) {
            s.n = i / of_keys / a->g;
            s.shared = i / of_keys % a->g;
            s.head = s.shared * group;
            s.k0 = i % of_keys * a->bk;
            s.keys = tn__attention_here_of(a->s, s.k0, a->bk);
            s.for_k = true;
        } else {
            int64_t j = i - for_keys;
            s.n = j / of_queries / a->h;
            s.head = j / of_queries % a->h;
            s.shared = s.head / group;
            s.heads = 1;
            s.q0 = j % of_queries * a->bq;
            s.queries = tn__attention_here_of(a->l, s.q0, a->bq);
            s.for_q = true;
        }
        backward_share(a, &d, &s);
    }
    tn__scratch_give(memory);
    return TN_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * Attention and its gradient over blocks of queries and keys: one block of scores at a time, which
 * stays in the cache. Block sizes and the order of sums follow from the shapes alone. */
#include <math.h>
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"
#include "matmul/gemm.h"
#include "simd/simd.h"

enum {
    BLOCK = 128, /* queries and keys of a block */
    FEW = 32,    /* queries at least, when there are too few pieces */
    WHOLE = 192, /* keys of a block */
    GAP = 16,    /* numbers between rows of scores, which would push one another out of the cache */
    PIECES = 16, /* pieces to aim for */
    HEADS = 8, /* so many are computed one by one; of fewer the gradients are divided into blocks */
    WORTH = 64 * 64 * 64 * 2 /* multiplications that justify a thread */
};

/* [N, heads, rows, columns], strides in bytes. */
struct operand {
    char *at;
    int64_t step[4];
    tn_dtype dtype;
};

struct attention {
    enum tn__ct ct;
    int64_t size; /* of a number of that type */
    int64_t n, h, g, l, s, e, v;
    struct operand q, k, values, mask, y, logsumexp, gy, glogsumexp, gq, gk, gv;
    double scale;
    bool causal;
    bool drops;
    double keep,
        factor; /* dropout: a random number below `keep` keeps the score, multiplied by `factor` */
    uint64_t seed, block;
    int64_t bq, bk,
        pitch; /* queries and keys of a block; numbers from one row of scores to the next */
    int64_t wk, we, wv;       /* columns of panels: keys, E, V */
    int64_t q_range, k_range; /* rows whose gradients one piece sums */
    bool back;
};

/* Where one thread works: matrices of numbers of the compute type; `.._panels` as tn__gemm_pack
 * leaves them. */
struct desk {
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

/* ---- memory ---------------------------------------------------------------------------------- */

static int64_t up(int64_t n, int64_t width)
{
    return (n + width - 1) / width * width;
}

static char *lay(char *base, size_t *used, int64_t count, int64_t size)
{
    size_t at = *used;

    *used += ((size_t)(count * size) + 63) / 64 * 64;
    return base ? base + at : NULL;
}

/* With base NULL: returns the size in bytes. */
static size_t lay_out(const struct attention *a, char *base, struct desk *d)
{
    int64_t most = a->e > a->v ? a->e : a->v, z = a->size;
    size_t used = 0;

    d->q = lay(base, &used, a->bq * a->e, z);
    d->kt_panels = lay(base, &used, up(a->bk, a->wk) * a->e, z);
    d->scores = lay(base, &used, a->bq * a->pitch, z);
    d->dense = lay(base, &used, (a->bk > a->bq ? a->bk : a->bq) * most, z);
    d->line = lay(base, &used, a->bk > most ? a->bk : most, z);
    d->top = (double *)(void *)lay(base, &used, a->bq, 8);
    d->sum = (double *)(void *)lay(base, &used, a->bq, 8);
    if (!a->back) {
        d->v_panels = lay(base, &used, a->bk * up(a->v, a->wv), z);
        d->sums = lay(base, &used, a->bq * a->v, z);
        return used;
    }
    d->gy = lay(base, &used, a->bq * a->v, z);
    d->q_panels = lay(base, &used, a->bq * up(a->e, a->we), z);
    d->gy_panels = lay(base, &used, a->bq * up(a->v, a->wv), z);
    d->vt_panels = lay(base, &used, up(a->bk, a->wk) * a->v, z);
    d->k_panels = lay(base, &used, a->bk * up(a->e, a->we), z);
    d->slopes = lay(base, &used, a->bq * a->pitch, z);
    d->gq = lay(base, &used, a->q_range * a->e, z);
    d->gk = lay(base, &used, a->k_range * a->e, z);
    d->gv = lay(base, &used, a->k_range * a->v, z);
    return used;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static char *place(const struct operand *o, int64_t n, int64_t head, int64_t row)
{
    return o->at + n * o->step[0] + head * o->step[1] + row * o->step[2];
}

static void times(const struct attention *a, int64_t n, double factor, char *x)
{
    const double numbers[3] = { factor, 0, 0 };

    tn__loop_of(TN__EW_mul_scalar, a->ct)(n, x, a->size, x, a->size, x, a->size, numbers);
}

static void load_rows(const struct attention *a, const struct operand *o, int64_t n, int64_t head,
                      int64_t first, int64_t rows, int64_t columns, char *to)
{
    tn__load *load = tn__convert_load(o->dtype, a->ct);

    for (int64_t i = 0; i < rows; i++)
        load(columns, place(o, n, head, first + i), o->step[3], to + i * columns * a->size);
}

static void store_row(const struct attention *a, const struct operand *o, int64_t n, int64_t head,
                      int64_t row, int64_t columns, const char *from)
{
    tn__convert_store(a->ct, o->dtype)(columns, from, place(o, n, head, row), o->step[3]);
}

/* Packs rows into panels: each is a row of b or, if `turned`, a column. */
static void pack(const struct attention *a, const struct operand *o, int64_t n, int64_t head,
                 int64_t first, int64_t rows, int64_t columns, bool turned, char *dense, char *to)
{
    const char *from = place(o, n, head, first);
    int64_t down = o->step[2] / a->size, across = o->step[3] / a->size;

    if (o->dtype != tn__ct_dtype(a->ct)) {
        load_rows(a, o, n, head, first, rows, columns, dense);
        from = dense;
        down = columns;
        across = 1;
    }
    if (turned)
        tn__gemm_pack(a->ct, columns, rows, tn__gemm_width(a->ct, rows), from, across, down, to);
    else
        tn__gemm_pack(a->ct, rows, columns, tn__gemm_width(a->ct, columns), from, down, across, to);
}

/* c [m][n] = or += a b, b as panels. */
static void multiply(const struct attention *a, int64_t m, int64_t n, int64_t k, const char *x,
                     int64_t x_step, bool by_columns, const char *panels, char *c, int64_t ldc,
                     bool add)
{
    int64_t width = tn__gemm_width(a->ct, n);
    struct tn__gemm g = { .ct = a->ct,
                          .by_columns = by_columns,
                          .add = add,
                          .m = m,
                          .n = n,
                          .k = k,
                          .a = x,
                          .a_step = x_step,
                          .b = panels,
                          .b_step = width,
                          .b_panel = k * width,
                          .width = width,
                          .c = c,
                          .ldc = ldc };

    if (m > 0 && n > 0)
        tn__gemm_run(&g);
}

/* ---- one block of scores --------------------------------------------------------------------- */

static void hide(const struct attention *a, int64_t from, int64_t to, char *x)
{
    for (int64_t i = from; i < to; i++) {
        if (a->ct == TN__F32)
            ((float *)(void *)x)[i] = -INFINITY;
        else
            ((double *)(void *)x)[i] = -INFINITY;
    }
}

static void mask_row(const struct attention *a, int64_t n, int64_t head, int64_t row, int64_t k0,
                     int64_t keys, char *line, char *x)
{
    const struct operand *mask = &a->mask;
    const char *from;

    if (a->causal) {
        int64_t seen = row - k0 + 1;
        hide(a, seen < 0 ? 0 : seen, keys, x);
    }
    if (!mask->at)
        return;
    from = place(mask, n, head, row) + k0 * mask->step[3];
    if (mask->dtype != TN_BOOL) {
        tn__convert_load(mask->dtype, a->ct)(keys, from, mask->step[3], line);
        tn__gemm_add_row(a->ct, keys, line, x);
        return;
    }
    for (int64_t i = 0; i < keys; i++)
        if (!from[i * mask->step[3]])
            hide(a, i, i + 1, x);
}

static void find_scores(const struct attention *a, struct desk *d, int64_t n, int64_t head,
                        int64_t q0, int64_t rows, int64_t k0, int64_t keys)
{
    multiply(a, rows, keys, a->e, d->q, a->e, false, d->kt_panels, d->scores, a->pitch, false);
    if (a->causal || a->mask.at)
        for (int64_t i = 0; i < rows; i++)
            mask_row(a, n, head, q0 + i, k0, keys, d->line, d->scores + i * a->pitch * a->size);
}

/* 0 or `factor` for each key of a row, from the numbers that belong to its scores. */
static void draw(const struct attention *a, int64_t n, int64_t head, int64_t row, int64_t k0,
                 int64_t keys, char *to)
{
    uint64_t first = (((uint64_t)n * (uint64_t)a->h + (uint64_t)head) * (uint64_t)a->l +
                      (uint64_t)row) *
                         (uint64_t)a->s +
                     (uint64_t)k0;

    if (a->ct == TN__F32) {
        float *x = (float *)(void *)to, keep = (float)a->keep, factor = (float)a->factor;
        tn__simd.random->uniform_f32(a->seed, a->block, first, keys, 0, 1, x);
        for (int64_t i = 0; i < keys; i++)
            x[i] = x[i] < keep ? factor : 0;
    } else {
        double *x = (double *)(void *)to;
        tn__simd.random->uniform_f64(a->seed, a->block, first, keys, 0, 1, x);
        for (int64_t i = 0; i < keys; i++)
            x[i] = x[i] < a->keep ? a->factor : 0;
    }
}

static void multiply_row(const struct attention *a, int64_t n, const char *by, char *x)
{
    static const double none[3] = { 0, 0, 0 };

    tn__loop_of(TN__EW_mul, a->ct)(n, x, a->size, x, a->size, by, a->size, none);
}

/* ---- forth ----------------------------------------------------------------------------------- */

static double row_max(const struct attention *a, int64_t n, const char *x)
{
    return a->ct == TN__F32 ? (double)tn__simd.softmax->max_f32(n, (const float *)(const void *)x)
                            : tn__simd.softmax->max_f64(n, (const double *)(const void *)x);
}

/* Scores become e^(score - largest so far); the sums so far are scaled to match. */
static void forth_row(const struct attention *a, int64_t keys, char *x, char *sums, double *top,
                      double *sum)
{
    double here = row_max(a, keys, x), largest = here != here || here > *top ? here : *top, less;

    if (largest == -INFINITY) { /* no key so far */
        memset(x, 0, (size_t)(keys * a->size));
        return;
    }
    less = exp(*top - largest);
    if (*sum != 0 && less != 1)
        times(a, a->v, less, sums);
    *sum = *sum * less + (a->ct == TN__F32
                              ? tn__simd.softmax->attend_f32(keys, largest, (float *)(void *)x)
                              : tn__simd.softmax->attend_f64(keys, largest, (double *)(void *)x));
    *top = largest;
}

static void forth_block(const struct attention *a, struct desk *d, int64_t n, int64_t head,
                        int64_t q0, int64_t rows)
{
    int64_t shared = head / (a->h / a->g);

    load_rows(a, &a->q, n, head, q0, rows, a->e, d->q);
    times(a, rows * a->e, a->scale, d->q);
    memset(d->sums, 0, (size_t)(rows * a->v * a->size));
    for (int64_t i = 0; i < rows; i++) {
        d->top[i] = -INFINITY;
        d->sum[i] = 0;
    }
    for (int64_t k0 = 0; k0 < a->s && (!a->causal || k0 < q0 + rows); k0 += a->bk) {
        int64_t keys = a->s - k0 < a->bk ? a->s - k0 : a->bk;
        pack(a, &a->k, n, shared, k0, keys, a->e, true, d->dense, d->kt_panels);
        pack(a, &a->values, n, shared, k0, keys, a->v, false, d->dense, d->v_panels);
        find_scores(a, d, n, head, q0, rows, k0, keys);
        for (int64_t i = 0; i < rows; i++) {
            char *x = d->scores + i * a->pitch * a->size;
            forth_row(a, keys, x, d->sums + i * a->v * a->size, &d->top[i], &d->sum[i]);
            if (a->drops) {
                draw(a, n, head, q0 + i, k0, keys, d->line);
                multiply_row(a, keys, d->line, x);
            }
        }
        multiply(a, rows, a->v, keys, d->scores, a->pitch, false, d->v_panels, d->sums, a->v, true);
    }
    for (int64_t i = 0; i < rows; i++) {
        char *x = d->sums + i * a->v * a->size;
        double norm = d->sum[i] == 0 ? INFINITY : d->top[i] + log(d->sum[i]);
        if (d->sum[i] != 0)
            times(a, a->v, 1 / d->sum[i], x);
        store_row(a, &a->y, n, head, q0 + i, a->v, x);
        tn__convert_store(TN__F64, a->logsumexp.dtype)(1, &norm,
                                                       place(&a->logsumexp, n, head, q0 + i), 0);
    }
}

static int64_t blocks_of(int64_t rows, int64_t block)
{
    return (rows + block - 1) / block;
}

static int64_t here_of(int64_t whole, int64_t first, int64_t block)
{
    return whole - first < block ? whole - first : block;
}

static tn_status forth_part(void *user, int64_t begin, int64_t end)
{
    const struct attention *a = user;
    int64_t blocks = blocks_of(a->l, a->bq);
    struct desk d = { 0 };
    char *memory = tn__scratch_take(lay_out(a, NULL, &d));

    if (!memory)
        return TN_ERR_MEMORY;
    lay_out(a, memory, &d);
    for (int64_t i = begin; i < end; i++) {
        int64_t q0 = i % blocks * a->bq;
        forth_block(a, &d, i / blocks / a->h, i / blocks % a->h, q0, here_of(a->l, q0, a->bq));
    }
    tn__scratch_give(memory);
    return TN_OK;
}

/* ---- back ------------------------------------------------------------------------------------ */

/* What one piece of the gradient sums: these heads, queries and keys; for the queries, for the
 * keys, or both. */
struct share {
    int64_t n, shared, head, heads, q0, queries, k0, keys; /* `shared`: the head of the keys */
    bool for_q, for_k;
};

/* What the block's queries bring along: themselves, the gradient of their results, logsumexp and
 * sum gy y. */
static void load_queries(const struct attention *a, struct desk *d, const struct share *s,
                         int64_t head, int64_t q0, int64_t rows)
{
    tn__load *load = tn__convert_load(a->logsumexp.dtype, TN__F64);

    load_rows(a, &a->q, s->n, head, q0, rows, a->e, d->q);
    times(a, rows * a->e, a->scale, d->q);
    load_rows(a, &a->gy, s->n, head, q0, rows, a->v, d->gy);
    if (s->for_k) {
        tn__gemm_pack(a->ct, rows, a->e, a->we, d->q, a->e, 1, d->q_panels);
        tn__gemm_pack(a->ct, rows, a->v, a->wv, d->gy, a->v, 1, d->gy_panels);
    }
    load_rows(a, &a->y, s->n, head, q0, rows, a->v, d->dense);
    for (int64_t i = 0; i < rows; i++) {
        const char *y = d->dense + i * a->v * a->size, *gy = d->gy + i * a->v * a->size;
        double more = 0;
        load(1, place(&a->logsumexp, s->n, head, q0 + i), 0, &d->top[i]);
        if (a->glogsumexp.at)
            load(1, place(&a->glogsumexp, s->n, head, q0 + i), 0, &more);
        d->sum[i] = (a->ct == TN__F32
                         ? (double)tn__simd.gemm->dot_f32(a->v, (const float *)(const void *)y,
                                                          (const float *)(const void *)gy)
                         : tn__simd.gemm->dot_f64(a->v, (const double *)(const void *)y,
                                                  (const double *)(const void *)gy)) -
                    more;
    }
}

static void back_block(const struct attention *a, struct desk *d, const struct share *s,
                       int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys)
{
    char *gk = d->gk + (k0 - s->k0) * a->e * a->size, *gv = d->gv + (k0 - s->k0) * a->v * a->size;

    find_scores(a, d, s->n, head, q0, rows, k0, keys);
    multiply(a, rows, keys, a->v, d->gy, a->v, false, d->vt_panels, d->slopes, a->pitch, false);
    for (int64_t i = 0; i < rows; i++) {
        char *x = d->scores + i * a->pitch * a->size, *g = d->slopes + i * a->pitch * a->size;
        if (a->drops) {
            draw(a, s->n, head, q0 + i, k0, keys, d->line);
            multiply_row(a, keys, d->line, g);
        }
        if (a->ct == TN__F32)
            tn__simd.softmax->attend_grad_f32(keys, d->top[i], d->sum[i], (float *)(void *)x,
                                              (float *)(void *)g);
        else
            tn__simd.softmax->attend_grad_f64(keys, d->top[i], d->sum[i], (double *)(void *)x,
                                              (double *)(void *)g);
        if (a->drops)
            multiply_row(a, keys, d->line, x);
    }
    if (s->for_k) {
        multiply(a, keys, a->v, rows, d->scores, a->pitch, true, d->gy_panels, gv, a->v, true);
        multiply(a, keys, a->e, rows, d->slopes, a->pitch, true, d->q_panels, gk, a->e, true);
    }
    if (s->for_q)
        multiply(a, rows, a->e, keys, d->slopes, a->pitch, false, d->k_panels,
                 d->gq + (q0 - s->q0) * a->e * a->size, a->e, true);
}

static void back_share(const struct attention *a, struct desk *d, const struct share *s)
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
            int64_t keys = here_of(s->k0 + s->keys, k0, a->bk);
            pack(a, &a->k, s->n, shared, k0, keys, a->e, true, d->dense, d->kt_panels);
            pack(a, &a->values, s->n, shared, k0, keys, a->v, true, d->dense, d->vt_panels);
            if (s->for_q)
                pack(a, &a->k, s->n, shared, k0, keys, a->e, false, d->dense, d->k_panels);
            for (int64_t q0 = s->q0; q0 < s->q0 + s->queries; q0 += a->bq) {
                int64_t rows = here_of(s->q0 + s->queries, q0, a->bq);
                if (a->causal && k0 >= q0 + rows)
                    continue;
                load_queries(a, d, s, head, q0, rows);
                back_block(a, d, s, head, q0, rows, k0, keys);
            }
        }
        for (int64_t i = 0; s->for_q && i < s->queries; i++) {
            times(a, a->e, a->scale, d->gq + i * a->e * z);
            store_row(a, &a->gq, s->n, head, s->q0 + i, a->e, d->gq + i * a->e * z);
        }
    }
    for (int64_t i = 0; s->for_k && i < s->keys; i++) {
        store_row(a, &a->gk, s->n, shared, s->k0 + i, a->e, d->gk + i * a->e * z);
        store_row(a, &a->gv, s->n, shared, s->k0 + i, a->v, d->gv + i * a->v * z);
    }
}

/* Whole heads; or blocks of keys, then blocks of queries. */
static tn_status back_part(void *user, int64_t begin, int64_t end)
{
    const struct attention *a = user;
    bool heads = a->q_range >= a->l && a->k_range >= a->s;
    int64_t of_keys = blocks_of(a->s, a->bk), of_queries = blocks_of(a->l, a->bq),
            for_keys = a->n * a->g * of_keys, group = a->h / a->g;
    struct desk d = { 0 };
    char *memory = tn__scratch_take(lay_out(a, NULL, &d));

    if (!memory)
        return TN_ERR_MEMORY;
    lay_out(a, memory, &d);
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
            s.keys = here_of(a->s, s.k0, a->bk);
            s.for_k = true;
        } else {
            int64_t j = i - for_keys;
            s.n = j / of_queries / a->h;
            s.head = j / of_queries % a->h;
            s.shared = s.head / group;
            s.heads = 1;
            s.q0 = j % of_queries * a->bq;
            s.queries = here_of(a->l, s.q0, a->bq);
            s.for_q = true;
        }
        back_share(a, &d, &s);
    }
    tn__scratch_give(memory);
    return TN_OK;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static struct operand operand_of(const tn_view *view, int32_t behind)
{
    struct operand o = { .at = NULL };

    if (!view)
        return o;
    o.at = tn__view_at(view);
    o.dtype = tn_view_dtype(view);
    for (int32_t i = 0; i < view->ndim; i++) /* a mask broadcasts */
        if (view->shape[i] != 1)
            o.step[4 - behind - view->ndim + i] = view->strides[i] * tn__view_item(view);
    return o;
}

static void set_up(struct attention *a, const tn_view *q, const tn_view *k, const tn_view *v,
                   const tn_view *mask)
{
    int64_t blocks;

    a->ct = tn__ct_of(tn_view_dtype(q));
    a->size = (int64_t)tn__ct_size(a->ct);
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
        blocks = a->n * a->h * blocks_of(a->l, a->bq);
    while (!a->back && blocks < PIECES && a->bq > FEW && (a->bq /= 2));
    a->bq = a->bq < a->l ? a->bq : a->l > 0 ? a->l : 1;
    a->pitch = up(a->bk, GAP) + GAP;
    a->wk = tn__gemm_width(a->ct, a->bk);
    a->we = tn__gemm_width(a->ct, a->e);
    a->wv = tn__gemm_width(a->ct, a->v);
}

/* The factor of dropout is rounded as a tensor of q's dtype would round it. */
static void set_dropout(struct attention *a, tn_dtype dtype, double p, int64_t seed, int64_t block)
{
    char rounded[16];

    a->keep = 1 - p;
    tn__convert_store(TN__F64, dtype)(1, &a->keep, rounded, 0);
    tn__convert_load(dtype, TN__F64)(1, rounded, 0, &a->keep);
    a->drops = p > 0;
    a->factor = p < 1 ? 1 / (1 - p) : 0;
    a->seed = (uint64_t)seed;
    a->block = (uint64_t)block;
}

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
    set_dropout(&a, tn_view_dtype(call->in[0]), o->dropout_p, o->seed, o->block);
    a.y = operand_of(call->out[0], 0);
    a.logsumexp = operand_of(call->out[1], 1);
    if (a.l == 0)
        return TN_OK;
    return spread(&a, a.n * a.h * blocks_of(a.l, a.bq),
                  (double)a.bq * (double)a.s * (double)(a.e + a.v), forth_part);
}

static tn_status run_attend_grad(const tn_call *call)
{
    const tn_attend_grad_options *o = call->options;
    struct attention a = { .scale = o->scale, .causal = o->is_causal, .back = true };
    double each;
    int64_t pieces;

    set_up(&a, call->in[1], call->in[2], call->in[3], call->in[4]);
    set_dropout(&a, tn_view_dtype(call->in[1]), o->dropout_p, o->seed, o->block);
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
        pieces = a.n * a.g * blocks_of(a.s, a.bk) + a.n * a.h * blocks_of(a.l, a.bq);
        each = (double)a.bq * (double)a.s * (double)(a.e + a.v);
        a.q_range = a.bq;
        a.k_range = a.bk;
    }
    return spread(&a, pieces, each, back_part);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(attend, TN__FLOATS),
    TN__KERNEL(attend_grad, TN__FLOATS),
};
TN__KERNEL_TABLE(attention);

/* SPDX-License-Identifier: MIT
 *
 * Attention, one block of queries and keys: buffers, rows, scores, masks and dropout. */
#include <math.h>
#include <string.h>

#include "base/scratch.h"
#include "matmul/gemm.h"
#include "nn/attention.h"
#include "simd/simd.h"

/* ---- memory ---------------------------------------------------------------------------------- */

/* Reserves memory for `count` numbers at a multiple of 64 bytes, and returns its address; NULL if
 * base is NULL. */
static char *lay(char *base, size_t *used, int64_t count, int64_t size)
{
    size_t at = *used;

    *used += ((size_t)(count * size) + 63) / 64 * 64;
    return base ? base + at : NULL;
}

size_t tn__attention_lay_out(const struct attention *a, char *base, struct attention_workspace *d)
{
    int64_t most = a->e > a->v ? a->e : a->v, z = a->size;
    size_t used = 0;

    d->q = lay(base, &used, a->bq * a->e, z);
    d->kt_panels = lay(base, &used, tn__attention_up(a->bk, a->wk) * a->e, z);
    d->scores = lay(base, &used, a->bq * a->pitch, z);
    d->dense = lay(base, &used, (a->bk > a->bq ? a->bk : a->bq) * most, z);
    d->line = lay(base, &used, a->bk > most ? a->bk : most, z);
    d->top = (double *)(void *)lay(base, &used, a->bq, 8);
    d->sum = (double *)(void *)lay(base, &used, a->bq, 8);
    if (!a->backward) {
        d->v_panels = lay(base, &used, a->bk * tn__attention_up(a->v, a->wv), z);
        d->sums = lay(base, &used, a->bq * a->v, z);
        return used;
    }
    d->gy = lay(base, &used, a->bq * a->v, z);
    d->q_panels = lay(base, &used, a->bq * tn__attention_up(a->e, a->we), z);
    d->gy_panels = lay(base, &used, a->bq * tn__attention_up(a->v, a->wv), z);
    d->vt_panels = lay(base, &used, tn__attention_up(a->bk, a->wk) * a->v, z);
    d->k_panels = lay(base, &used, a->bk * tn__attention_up(a->e, a->we), z);
    d->slopes = lay(base, &used, a->bq * a->pitch, z);
    d->gq = lay(base, &used, a->q_range * a->e, z);
    d->gk = lay(base, &used, a->k_range * a->e, z);
    d->gv = lay(base, &used, a->k_range * a->v, z);
    return used;
}

/* ---- rows ------------------------------------------------------------------------------------ */

void tn__attention_times(const struct attention *a, int64_t n, double factor, char *x)
{
    const double numbers[3] = { factor, 0, 0 };

    tn__loop_of(TN__EW_mul_scalar, a->ct)(n, x, a->size, x, a->size, x, a->size, numbers);
}

void tn__attention_load_rows(const struct attention *a, const struct attention_operand *o,
                             int64_t n, int64_t head, int64_t first, int64_t rows, int64_t columns,
                             char *to)
{
    tn__load *load = tn__dtype_load(o->dtype, a->ct);

    for (int64_t i = 0; i < rows; i++)
        load(columns, tn__attention_place(o, n, head, first + i), o->step[3],
             to + i * columns * a->size);
}

void tn__attention_store_row(const struct attention *a, const struct attention_operand *o,
                             int64_t n, int64_t head, int64_t row, int64_t columns,
                             const char *from)
{
    tn__dtype_store(a->ct, o->dtype)(columns, from, tn__attention_place(o, n, head, row),
                                     o->step[3]);
}

void tn__attention_pack(const struct attention *a, const struct attention_operand *o, int64_t n,
                        int64_t head, int64_t first, int64_t rows, int64_t columns, bool turned,
                        char *dense, char *to)
{
    const char *from = tn__attention_place(o, n, head, first);
    int64_t down = o->step[2] / a->size, across = o->step[3] / a->size;

    if (o->dtype != tn__dtype_of_ct(a->ct)) {
        tn__attention_load_rows(a, o, n, head, first, rows, columns, dense);
        from = dense;
        down = columns;
        across = 1;
    }
    if (turned)
        tn__gemm_pack(a->ct, columns, rows, tn__gemm_width(a->ct, rows), from, across, down, to);
    else
        tn__gemm_pack(a->ct, rows, columns, tn__gemm_width(a->ct, columns), from, down, across, to);
}

void tn__attention_multiply(const struct attention *a, int64_t m, int64_t n, int64_t k,
                            const char *x, int64_t x_step, bool by_columns, const char *panels,
                            char *c, int64_t ldc, bool add)
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

/* Masks scores [from, to) of a row. */
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
    const struct attention_operand *mask = &a->mask;
    const char *from;

    if (a->causal) {
        int64_t seen = row - k0 + 1;
        hide(a, seen < 0 ? 0 : seen, keys, x);
    }
    if (!mask->at)
        return;
    from = tn__attention_place(mask, n, head, row) + k0 * mask->step[3];
    if (mask->dtype != TN_BOOL) {
        tn__dtype_load(mask->dtype, a->ct)(keys, from, mask->step[3], line);
        tn__gemm_add_row(a->ct, keys, line, x);
        return;
    }
    for (int64_t i = 0; i < keys; i++)
        if (!from[i * mask->step[3]])
            hide(a, i, i + 1, x);
}

void tn__attention_find_scores(const struct attention *a, struct attention_workspace *d, int64_t n,
                               int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys)
{
    tn__attention_multiply(a, rows, keys, a->e, d->q, a->e, false, d->kt_panels, d->scores,
                           a->pitch, false);
    if (a->causal || a->mask.at)
        for (int64_t i = 0; i < rows; i++)
            mask_row(a, n, head, q0 + i, k0, keys, d->line, d->scores + i * a->pitch * a->size);
}

/* ---- few queries ----------------------------------------------------------------------------- */

static bool is_plain(const struct attention *a, const struct attention_operand *o)
{
    return o->dtype == tn__dtype_of_ct(a->ct) && o->step[3] == a->size && o->step[2] % a->size == 0;
}

bool tn__attention_is_few(const struct attention *a, int64_t rows)
{
    return rows <= TN__ATTENTION_FEW && is_plain(a, &a->k) && is_plain(a, &a->values);
}

void tn__attention_few_scores(const struct attention *a, struct attention_workspace *d, int64_t n,
                              int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys)
{
    const char *k = tn__attention_place(&a->k, n, head / (a->h / a->g), k0);

    for (int64_t j = 0; j < keys; j++, k += a->k.step[2])
        for (int64_t i = 0; i < rows; i++) {
            const char *q = d->q + i * a->e * a->size;
            char *x = d->scores + (i * a->pitch + j) * a->size;
            if (a->ct == TN__F32)
                *(float *)(void *)x = tn__simd.gemm->dot_f32(a->e, (const float *)(const void *)q,
                                                             (const float *)(const void *)k);
            else
                *(double *)(void *)x = tn__simd.gemm->dot_f64(a->e, (const double *)(const void *)q,
                                                              (const double *)(const void *)k);
        }
    for (int64_t i = 0; i < rows && (a->causal || a->mask.at); i++)
        mask_row(a, n, head, q0 + i, k0, keys, d->line, d->scores + i * a->pitch * a->size);
}

void tn__attention_few_sums(const struct attention *a, struct attention_workspace *d, int64_t n,
                            int64_t head, int64_t rows, int64_t k0, int64_t keys)
{
    const char *v = tn__attention_place(&a->values, n, head / (a->h / a->g), k0);
    const int64_t step = a->values.step[2];

    for (int64_t j = 0; j < keys; j++)
        for (int64_t i = 0; i < rows; i++) {
            const char *x = d->scores + (i * a->pitch + j) * a->size, *from = v + j * step;
            char *sums = d->sums + i * a->v * a->size;
            const bool four = j % 4 == 0 && keys - j >= 4;
            if (j % 4 != 0 && keys - j / 4 * 4 >= 4)
                continue; /* added together with the first of these four keys */
            if (a->ct == TN__F32 && four)
                tn__simd.gemm->axpy4_f32(a->v, (const float *)(const void *)x,
                                         (const float *)(const void *)from, step / a->size,
                                         (float *)(void *)sums);
            else if (a->ct == TN__F32)
                tn__simd.gemm->axpy_f32(a->v, *(const float *)(const void *)x,
                                        (const float *)(const void *)from, (float *)(void *)sums);
            else if (four)
                tn__simd.gemm->axpy4_f64(a->v, (const double *)(const void *)x,
                                         (const double *)(const void *)from, step / a->size,
                                         (double *)(void *)sums);
            else
                tn__simd.gemm->axpy_f64(a->v, *(const double *)(const void *)x,
                                        (const double *)(const void *)from, (double *)(void *)sums);
        }
}

void tn__attention_draw(const struct attention *a, int64_t n, int64_t head, int64_t row, int64_t k0,
                        int64_t keys, char *to)
{
    uint64_t first = (((uint64_t)n * (uint64_t)a->h + (uint64_t)head) * (uint64_t)a->l +
                      (uint64_t)row) *
                         (uint64_t)a->s +
                     (uint64_t)k0;

    if (a->ct == TN__F32) {
        float *x = (float *)(void *)to, keep = (float)a->keep, factor = (float)a->factor;
        tn__simd.random->uniform_f32(&a->philox, first, keys, 0, 1, x);
        for (int64_t i = 0; i < keys; i++)
            x[i] = x[i] < keep ? factor : 0;
    } else {
        double *x = (double *)(void *)to;
        tn__simd.random->uniform_f64(&a->philox, first, keys, 0, 1, x);
        for (int64_t i = 0; i < keys; i++)
            x[i] = x[i] < a->keep ? a->factor : 0;
    }
}

void tn__attention_multiply_row(const struct attention *a, int64_t n, const char *by, char *x)
{
    static const double none[3] = { 0, 0, 0 };

    tn__loop_of(TN__EW_mul, a->ct)(n, x, a->size, x, a->size, by, a->size, none);
}

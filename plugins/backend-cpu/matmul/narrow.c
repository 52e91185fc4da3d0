/* SPDX-License-Identifier: MIT
 *
 * Products of float16 and bfloat16. Products of few rows read the other matrix once, as it is, and
 * convert it on the way. Larger ones are computed by instructions for bfloat16 (bfloat16.c) or,
 * with converted copies, in float32. */
#include <string.h>

#include "base/scratch.h"
#include "matmul/bfloat16.h"
#include "matmul/matmul.h"
#include "simd/simd.h"

enum {
    FEW_ROWS = 4,
    LEAST = 16,       /* minimum of columns and depth for a copy of b in float32 */
    COPIED = 1 << 17, /* approximate number of elements of b that are converted at a time */
    PART = 65536,     /* numbers that one thread reads or converts at least */
    ROWS = 8,         /* rows of b that are added at a time: few enough to be fetched ahead */
    SUMS = 4096       /* maximum number of sums that are computed in one pass over the rows of b */
};

/* ---- few rows -------------------------------------------------------------------------------- */

struct few {
    const struct tn__product *p;
    int64_t columns; /* of a part, if b has contiguous rows */
    float *a, *bias; /* a in float32, [batch][m][k]; the bias, or NULL */
};

static double dot(const struct few *s, const float *a, const char *column, float *line)
{
    const int64_t k = s->p->k;
    tn__load *load = tn__dtype_load(s->p->b.dtype, TN__F32);
    double sum = 0;

    if (s->p->b.dtype == TN_BF16)
        return (double)tn__simd.gemm->dot_bf16(k, a, column);
    for (int64_t i = 0; i < k; i += TN__CHUNK) {
        const int64_t here = k - i < TN__CHUNK ? k - i : TN__CHUNK;
        load(here, column + i * 2, 2, line);
        sum += (double)tn__simd.gemm->dot_f32(here, a + i, line);
    }
    return sum;
}

/* Computes columns [begin, end) of the results, counted over the batch. */
static tn_status few_columns(void *user, int64_t begin, int64_t end)
{
    const struct few *s = user;
    const struct tn__product *p = s->p;
    tn__store *store = tn__dtype_store(TN__F32, p->y.dtype);
    float line[TN__CHUNK];

    for (int64_t at = begin; at < end; at++) {
        const int64_t which = at / p->n, j = at % p->n;
        const char *column = p->b.at + which * p->batch_b + j * p->b.column;
        for (int64_t i = 0; i < p->m; i++) {
            const float *a = s->a + ((p->batch_a ? which : 0) * p->m + i) * p->k;
            float y = (float)(dot(s, a, column, line) + (double)(s->bias ? s->bias[j] : 0));
            store(1, &y, p->y.at + which * p->batch_y + i * p->y.row + j * p->y.column, 0);
        }
    }
    return TN_OK;
}

/* For i from 0 to count - 1, adds a[i] times row i of b to the n sums. `line` is memory for n
 * numbers. */
static void add_rows(const struct tn__product *p, const float *a, const char *row, int64_t count,
                     int64_t n, float *sums, float *line)
{
    if (p->b.dtype == TN_BF16) {
        tn__simd.gemm->axpy_rows_bf16(n, count, a, row, p->b.row / 2, sums);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        tn__dtype_load(p->b.dtype, TN__F32)(n, row + i * p->b.row, 2, line);
        tn__simd.gemm->axpy_f32(n, a[i], line, sums);
    }
}

/* Computes parts [begin, end) of the results, counted over the batch, for a b whose rows are
 * contiguous. */
static tn_status few_parts(void *user, int64_t begin, int64_t end)
{
    const struct few *s = user;
    const struct tn__product *p = s->p;
    const int64_t parts = (p->n + s->columns - 1) / s->columns;
    tn__store *store = tn__dtype_store(TN__F32, p->y.dtype);
    float *sums = tn__scratch_take((size_t)((p->m + 1) * s->columns) * sizeof *sums);

    if (!sums)
        return TN_ERR_MEMORY;
    for (int64_t at = begin; at < end; at++) {
        const int64_t which = at / parts, j = at % parts * s->columns;
        const int64_t n = p->n - j < s->columns ? p->n - j : s->columns;
        const char *b = p->b.at + which * p->batch_b + j * p->b.column;
        const float *a = s->a + (p->batch_a ? which : 0) * p->m * p->k;

        for (int64_t i = 0; i < p->m; i++)
            for (int64_t c = 0; c < n; c++)
                sums[i * n + c] = s->bias ? s->bias[j + c] : 0;
        for (int64_t k = 0; k < p->k; k += ROWS)
            for (int64_t i = 0; i < p->m; i++)
                add_rows(p, a + i * p->k + k, b + k * p->b.row, p->k - k < ROWS ? p->k - k : ROWS,
                         n, sums + i * n, sums + p->m * s->columns);
        for (int64_t i = 0; i < p->m; i++)
            store(n, sums + i * n, p->y.at + which * p->batch_y + i * p->y.row + j * p->y.column,
                  p->y.column);
    }
    tn__scratch_give(sums);
    return TN_OK;
}

/* Returns the columns of a part: many, so that the rows of b are read in long runs, but enough
 * parts for all threads. */
static int64_t columns_of_part(const struct tn__product *p)
{
    const int64_t threads = tn_num_threads();
    const int64_t most = SUMS / p->m, each = (p->n * p->batch + threads - 1) / threads;
    const int64_t columns = (each + TN__CHUNK - 1) / TN__CHUNK * TN__CHUNK;

    return columns < most ? columns : most;
}

static tn_status run_few(const struct tn__product *p)
{
    const int64_t matrices = p->batch_a ? p->batch : 1, numbers = matrices * p->m * p->k;
    struct few s = { .p = p, .columns = columns_of_part(p) };
    const int64_t parts = (p->n + s.columns - 1) / s.columns, each = p->k * p->m;
    tn__load *load = tn__dtype_load(p->a.dtype, TN__F32);
    tn_status status;

    s.a = tn__scratch_take((size_t)(numbers + (p->bias ? p->n : 0)) * sizeof(float));
    if (!s.a)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < matrices * p->m; i++)
        load(p->k, p->a.at + i / p->m * p->batch_a + i % p->m * p->a.row, p->a.column,
             s.a + i * p->k);
    if (p->bias) {
        s.bias = s.a + numbers;
        tn__dtype_load(p->bias_dtype, TN__F32)(p->n, p->bias, p->bias_step, s.bias);
    }
    status = p->b.row == p->b.item
                 ? tn_parallel_for(p->batch * p->n, 1 + PART / each, few_columns, &s)
                 : tn_parallel_for(p->batch * parts, 1 + PART / (each * s.columns), few_parts, &s);
    tn__scratch_give(s.a);
    return status;
}

/* ---- in float32 ------------------------------------------------------------------------------ */

/* Converts rows of a matrix to contiguous rows of float32, or back. */
struct copy {
    struct tn__matrix x;
    int64_t columns;
    float *wide;
    bool back;
};

static tn_status copy_rows(void *user, int64_t begin, int64_t end)
{
    const struct copy *c = user;

    for (int64_t i = begin; i < end; i++) {
        char *row = c->x.at + i * c->x.row;
        float *wide = c->wide + i * c->columns;
        if (c->back)
            tn__dtype_store(TN__F32, c->x.dtype)(c->columns, wide, row, c->x.column);
        else
            tn__dtype_load(c->x.dtype, TN__F32)(c->columns, row, c->x.column, wide);
    }
    return TN_OK;
}

/* Converts x[rows][columns] to float32 and returns the copy, whose layout is that of x: rows or
 * columns are contiguous. */
static struct tn__matrix widen(const struct tn__matrix *x, int64_t rows, int64_t columns,
                               float *wide, tn_status *status)
{
    const bool by_columns = x->column != x->item && x->row == x->item;
    struct copy c = { .x = *x, .columns = columns, .wide = wide };

    if (by_columns) {
        c.x.row = x->column;
        c.x.column = x->row;
        c.columns = rows;
    }
    if (*status == TN_OK)
        *status = tn_parallel_for(by_columns ? columns : rows, 1 + PART / c.columns, copy_rows, &c);
    return (struct tn__matrix){ (char *)wide, by_columns ? 4 : columns * 4,
                                by_columns ? rows * 4 : 4, TN_F32, 4 };
}

static tn_status run_wide(const struct tn__product *p)
{
    const int64_t most = COPIED / p->k > 64 ? COPIED / p->k : 64;
    const int64_t wide = p->n < most ? p->n : most;
    float *a = tn__scratch_take((size_t)(p->m * p->k + p->k * wide + p->m * wide + p->n) * 4);
    float *b = a + p->m * p->k, *y = b + p->k * wide, *bias = y + p->m * wide;
    tn_status status = a ? TN_OK : TN_ERR_MEMORY;
    struct tn__matrix wide_a = { 0 };

    if (!a)
        return status;
    if (p->bias)
        tn__dtype_load(p->bias_dtype, TN__F32)(p->n, p->bias, p->bias_step, bias);
    wide_a = widen(&p->a, p->m, p->k, a, &status);
    for (int64_t j = 0; j < p->n && status == TN_OK; j += wide) {
        const int64_t n = p->n - j < wide ? p->n - j : wide;
        struct tn__product part = { .batch = 1, .m = p->m, .n = n, .k = p->k, .ct = TN__F32 };
        struct tn__matrix b_part = p->b;
        struct copy back = { .x = p->y, .columns = n, .wide = y, .back = true };

        b_part.at += j * p->b.column;
        part.a = wide_a;
        part.b = widen(&b_part, p->k, n, b, &status);
        part.y = (struct tn__matrix){ (char *)y, n * 4, 4, TN_F32, 4 };
        if (p->bias) {
            part.bias = (const char *)(bias + j);
            part.bias_step = 4;
            part.bias_dtype = TN_F32;
        }
        if (status == TN_OK)
            status = tn__packed_run(&part);
        back.x.at += j * p->y.column;
        if (status == TN_OK)
            status = tn_parallel_for(p->m, 1 + PART / n, copy_rows, &back);
    }
    tn__scratch_give(a);
    return status;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* Few rows come first, because the other units compute blocks of 16 rows or columns, of which most
 * would be padding: such a product takes the time in which b is read once. */
static bool takes_few(const struct tn__product *p)
{
    return p->m <= FEW_ROWS && p->k > 1 &&
           (p->b.row == p->b.item || (p->b.column == p->b.item && p->b.row % 2 == 0));
}

static bool takes_wide(const struct tn__product *p)
{
    return p->batch == 1 && p->m > FEW_ROWS && p->n >= LEAST && p->k >= LEAST;
}

/* Calls tn__bfloat16_unit() only for a product that the unit can compute, because the call may ask
 * the system for a permission for the process. */
static bool takes_pairs(const struct tn__product *p)
{
    return tn__bfloat16_take(p) && tn__bfloat16_unit();
}

bool tn__narrow_take(const struct tn__product *p)
{
    return p->ct == TN__F32 && tn__dtype_is_narrow(p->a.dtype) && tn__dtype_is_narrow(p->b.dtype) &&
           tn__dtype_is_narrow(p->y.dtype) && (takes_few(p) || takes_pairs(p) || takes_wide(p));
}

tn_status tn__narrow_run(const struct tn__product *p)
{
    return takes_few(p) ? run_few(p) : takes_pairs(p) ? tn__bfloat16_run(p) : run_wide(p);
}

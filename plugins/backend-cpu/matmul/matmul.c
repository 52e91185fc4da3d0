/* SPDX-License-Identifier: MIT
 *
 * Products of matrices. There are five methods: row by row, for a few rows of float32 and float64;
 * strips over one packed matrix, for most float32 and float64 (packed.c); BLAS, for other float32
 * and float64; those of narrow.c, for most float16 and bfloat16; packed tiles, for all the rest.
 * Shape, layout and dtype choose the method. The result is divided into pieces by its shape, never
 * by the number of threads, and each piece is computed by one thread. */
#include <string.h>

#include "base/scratch.h"
#include "matmul/blas.h"
#include "matmul/gemm.h"
#include "matmul/matmul.h"
#include "op/copy.h"
#include "simd/simd.h"

enum {
    FEW_ROWS = 4,
    NEAR = 16384, /* bytes of results to which rows are added */
    KC = 256      /* depth of a packed panel */
};

/* ---- few rows -------------------------------------------------------------------------------- */

static bool dense_columns(const struct tn__matrix *x, enum tn__ct ct)
{
    return x->dtype == tn__dtype_of_ct(ct) && x->column == x->item;
}

static bool dense_rows(const struct tn__matrix *x, enum tn__ct ct)
{
    return x->dtype == tn__dtype_of_ct(ct) && x->row == x->item;
}

static double bias_at(const struct tn__product *p, int64_t j)
{
    double value = 0;
    if (p->bias)
        tn__dtype_load(p->bias_dtype, TN__F64)(1, p->bias + j * p->bias_step, 0, &value);
    return value;
}

/* For a b with contiguous columns (a transposed weight): each element of y is a dot product. */
static void rows_by_dots(const struct tn__product *p, const struct tn__matrix *y,
                         const struct tn__matrix *a, const struct tn__matrix *b, int64_t m,
                         int64_t j0, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        const char *column = b->at + (j0 + j) * b->column;
        double bias = bias_at(p, j0 + j);
        for (int64_t i = 0; i < m; i++) {
            char *to = y->at + i * y->row + (j0 + j) * y->column;
            const char *row = a->at + i * a->row;
            if (p->ct == TN__F32) {
                float value = tn__simd.gemm->dot_f32(p->k, (const float *)(const void *)row,
                                                     (const float *)(const void *)column);
                value = p->bias ? value + (float)bias : value;
                memcpy(to, &value, sizeof value);
            } else {
                double value = tn__simd.gemm->dot_f64(p->k, (const double *)(const void *)row,
                                                      (const double *)(const void *)column);
                value = p->bias ? value + bias : value;
                memcpy(to, &value, sizeof value);
            }
        }
    }
}

/* y[j] += a[0] b[0][j] + ... for `count` rows of b, 4 or 1, and n elements. */
static void add_rows(const struct tn__product *p, const char *a, int64_t step, const char *b,
                     int64_t rows, int64_t count, int64_t n, char *y)
{
    float f32[4];
    double f64[4];

    for (int64_t d = 0; d < count; d++)
        memcpy(p->ct == TN__F32 ? (void *)&f32[d] : (void *)&f64[d], a + d * step,
               (size_t)p->b.item);
    if (p->ct == TN__F32 && count == 4)
        tn__simd.gemm->axpy4_f32(n, f32, (const float *)(const void *)b, rows, (float *)(void *)y);
    else if (p->ct == TN__F32)
        tn__simd.gemm->axpy_f32(n, f32[0], (const float *)(const void *)b, (float *)(void *)y);
    else if (count == 4)
        tn__simd.gemm->axpy4_f64(n, f64, (const double *)(const void *)b, rows,
                                 (double *)(void *)y);
    else
        tn__simd.gemm->axpy_f64(n, f64[0], (const double *)(const void *)b, (double *)(void *)y);
}

/* For a b with contiguous rows: each row of y is a sum of multiples of b's rows. b is read once, in
 * the order of memory. */
static void rows_by_sums(const struct tn__product *p, const struct tn__matrix *y,
                         const struct tn__matrix *a, const struct tn__matrix *b, int64_t m,
                         int64_t j0, int64_t n)
{
    const int64_t four = b->row % b->item == 0 ? p->k / 4 * 4 : 0;
    tn__load *load = tn__dtype_load(p->bias_dtype, p->ct);

    for (int64_t i = 0; i < m; i++) {
        char *to = y->at + i * y->row + j0 * y->item;
        if (p->bias)
            load(n, p->bias + j0 * p->bias_step, p->bias_step, to);
        else
            memset(to, 0, (size_t)(n * y->item));
    }
    for (int64_t k = 0, count; k < p->k; k += count) {
        count = k < four ? 4 : 1;
        for (int64_t i = 0; i < m; i++)
            add_rows(p, a->at + i * a->row + k * a->column, a->column,
                     b->at + k * b->row + j0 * b->item, b->row / b->item, count, n,
                     y->at + i * y->row + j0 * y->item);
    }
}

enum way { DOTS, SUMS, BLAS, TILES }; /* the first two are for few rows */

/* Returns whether BLAS can read the matrix: contiguous rows or columns, and sizes that fit int. */
static bool blas_takes(const struct tn__matrix *x, int64_t rows, int64_t columns, enum tn__ct ct)
{
    if (x->dtype != tn__dtype_of_ct(ct) || rows > INT32_MAX || columns > INT32_MAX)
        return false;
    bool plain = x->column == x->item || columns <= 1;
    if (!plain && x->row != x->item && rows > 1)
        return false;
    /* BLAS requires a step of at least a line's length, which excludes an expanded tensor with step
     * 0. A single row has no step to check. */
    int64_t step = plain ? x->row : x->column, least = (plain ? columns : rows) * x->item;
    return (plain && rows <= 1) ||
           (step >= least && step / x->item <= INT32_MAX && step % x->item == 0);
}

static enum way choose_way(const struct tn__product *p)
{
    bool floats = p->ct == TN__F32 || p->ct == TN__F64;
    if (floats && p->m <= FEW_ROWS && p->y.dtype == tn__dtype_of_ct(p->ct)) {
        if (dense_columns(&p->a, p->ct) && dense_rows(&p->b, p->ct) && p->k > 1)
            return DOTS;
        if (p->a.dtype == p->y.dtype && dense_columns(&p->b, p->ct) &&
            dense_columns(&p->y, p->ct) && (!p->bias || p->bias_dtype == p->y.dtype))
            return SUMS;
    }
    /* One thread at a time may be in BLAS, so products for several threads do not use it. */
    bool blas = p->alone && (p->ct == TN__F32 ? tn__blas.sgemm != NULL
                                              : p->ct == TN__F64 && tn__blas.dgemm != NULL);
    if (tn__blas.narrow && p->m >= 32 && p->n >= 64 && p->k >= 32)
        return TILES;
    if (blas && blas_takes(&p->a, p->m, p->k, p->ct) && blas_takes(&p->b, p->k, p->n, p->ct) &&
        dense_columns(&p->y, p->ct) && p->y.row / p->y.item <= INT32_MAX &&
        p->y.row >= p->n * p->y.item)
        return BLAS;
    return TILES;
}

/* ---- BLAS ------------------------------------------------------------------------------------ */

/* Returns BLAS's flag for transposed or not, and sets *leading to the leading dimension, which BLAS
 * requires to be at least a line's length, even for a single line. */
static int transposed(const struct tn__matrix *x, int64_t rows, int64_t columns, int *leading)
{
    bool plain = x->column == x->item || columns <= 1;
    int64_t step = (plain ? x->row : x->column) / x->item, least = plain ? columns : rows;
    if (plain && rows <= 1) /* the stride of a single line can be any number */
        step = least;
    *leading = (int)(step < least ? least : step < 1 ? 1 : step);
    return plain ? TN__BLAS_NO_TRANS : TN__BLAS_TRANS;
}

static void piece_by_blas(const struct tn__product *p, const struct tn__matrix *y,
                          const struct tn__matrix *a, const struct tn__matrix *b, int64_t m,
                          int64_t n, int64_t j0)
{
    int lda, ldb, ta = transposed(a, m, p->k, &lda), tb = transposed(b, p->k, n, &ldb);
    int ldc = (int)(y->row / y->item);
    if (p->bias) {
        tn__load *load = tn__dtype_load(p->bias_dtype, p->ct);
        for (int64_t i = 0; i < m; i++)
            load(n, p->bias + j0 * p->bias_step, p->bias_step, y->at + i * y->row);
    }
    tn__blas_enter();
    if (p->ct == TN__F32)
        tn__blas.sgemm(TN__BLAS_ROW_MAJOR, ta, tb, (int)m, (int)n, (int)p->k, 1,
                       (const float *)(const void *)a->at, lda, (const float *)(const void *)b->at,
                       ldb, p->bias ? 1 : 0, (float *)(void *)y->at, ldc);
    else
        tn__blas.dgemm(TN__BLAS_ROW_MAJOR, ta, tb, (int)m, (int)n, (int)p->k, 1,
                       (const double *)(const void *)a->at, lda,
                       (const double *)(const void *)b->at, ldb, p->bias ? 1 : 0,
                       (double *)(void *)y->at, ldc);
    tn__blas_leave();
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Packs `count` rows of a (or columns of b) into panels to[panel][kc][wide], converted to `ct` and
 * padded with zeros. `step` is the distance from one row (column) to the next, `deep` the distance
 * along k, both in bytes. `line` is a buffer for kc numbers. */
static void pack(const struct tn__matrix *x, int64_t step, int64_t deep, int64_t count, int64_t kc,
                 int64_t wide, enum tn__ct ct, char *to, char *line)
{
    int64_t size = (int64_t)tn__dtype_ct_size(ct);
    tn__load *load = tn__dtype_load(x->dtype, ct);
    for (int64_t first = 0; first < count; first += wide, to += wide * kc * size) {
        int64_t here = count - first < wide ? count - first : wide;
        if (here < wide)
            memset(to, 0, (size_t)(wide * kc * size));
        bool plain = x->dtype == tn__dtype_of_ct(ct);
        if (plain && step == size && here == wide) {
            for (int64_t k = 0; k < kc; k++)
                memcpy(to + k * wide * size, x->at + first * step + k * deep,
                       (size_t)(wide * size));
            continue;
        }
        if (plain && deep == size && kc > 1) {
            if (size == 4)
                tn__copy_transpose_4(kc, here, to, wide * 4, x->at + first * step, step);
            else
                tn__copy_transpose_8(kc, here, to, wide * 8, x->at + first * step, step);
            continue;
        }
        if (step < deep || kc == 1) { /* neighbours are closer than steps of k: read along them */
            for (int64_t k = 0; k < kc; k++)
                load(here, x->at + first * step + k * deep, step, to + k * wide * size);
            continue;
        }
        for (int64_t i = 0; i < here; i++) {
            load(kc, x->at + (first + i) * step, deep, line);
            if (size == 4)
                for (int64_t k = 0; k < kc; k++)
                    memcpy(to + (k * wide + i) * 4, line + k * 4, 4);
            else
                for (int64_t k = 0; k < kc; k++)
                    memcpy(to + (k * wide + i) * 8, line + k * 8, 8);
        }
    }
}

static tn_status piece_by_tiles(const struct tn__product *p, const struct tn__matrix *y,
                                const struct tn__matrix *a, const struct tn__matrix *b, int64_t m,
                                int64_t n, int64_t j0)
{
    const struct tn__tile *tile = &tn__simd.gemm->tile[p->ct];
    int64_t size = (int64_t)tn__dtype_ct_size(p->ct), mr = tile->mr, nr = tile->nr;
    int64_t up_m = (m + mr - 1) / mr * mr, up_n = (n + nr - 1) / nr * nr;
    size_t bytes = (size_t)(size * (up_m * up_n + KC * (up_m + up_n) + KC)) + 64;
    char *memory = tn__scratch_take(bytes);
    if (!memory)
        return TN_ERR_MEMORY;
    char *sums = memory, *pa = sums + up_m * up_n * size, *pb = pa + KC * up_m * size,
         *line = pb + KC * up_n * size;
    memset(sums, 0, (size_t)(up_m * up_n * size));
    for (int64_t k0 = 0; k0 < p->k; k0 += KC) {
        int64_t kc = p->k - k0 < KC ? p->k - k0 : KC;
        struct tn__matrix deep_a = *a, deep_b = *b;
        deep_a.at += k0 * a->column;
        deep_b.at += k0 * b->row;
        pack(&deep_a, a->row, a->column, m, kc, mr, p->ct, pa, line);
        pack(&deep_b, b->column, b->row, n, kc, nr, p->ct, pb, line);
        for (int64_t j = 0; j < up_n; j += nr)
            for (int64_t i = 0; i < up_m; i += mr)
                tile->run(kc, pa + i * kc * size, pb + j * kc * size, sums + (i * up_n + j) * size,
                          up_n);
    }
    if (p->bias)
        tn__dtype_load(p->bias_dtype, p->ct)(n, p->bias + j0 * p->bias_step, p->bias_step, pb);
    for (int64_t i = 0; i < m; i++) {
        char *row = sums + i * up_n * size;
        if (p->bias)
            tn__gemm_add_row(p->ct, n, pb, row);
        tn__dtype_store(p->ct, y->dtype)(n, row, y->at + i * y->row, y->column);
    }
    tn__scratch_give(memory);
    return TN_OK;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Computes `count` pieces that are side by side, from piece `index` on. */
static tn_status do_pieces(const struct tn__product *p, enum way way, int64_t index, int64_t count)
{
    int64_t across = index % p->columns, down = index / p->columns % p->rows,
            which = index / p->columns / p->rows;
    int64_t i0 = down * p->tile_m, j0 = across * p->tile_n;
    int64_t m = p->m - i0 < p->tile_m ? p->m - i0 : p->tile_m,
            n = p->n - j0 < count * p->tile_n ? p->n - j0 : count * p->tile_n;
    struct tn__matrix y = p->y, a = p->a, b = p->b;
    y.at += which * p->batch_y + i0 * y.row;
    a.at += which * p->batch_a + i0 * a.row;
    b.at += which * p->batch_b;
    switch (way) {
    case DOTS: rows_by_dots(p, &y, &a, &b, m, j0, n); return TN_OK;
    case SUMS: rows_by_sums(p, &y, &a, &b, m, j0, n); return TN_OK;
    case BLAS:
    case TILES: break;
    }
    y.at += j0 * y.column;
    b.at += j0 * b.column;
    if (way == TILES)
        return piece_by_tiles(p, &y, &a, &b, m, n, j0);
    piece_by_blas(p, &y, &a, &b, m, n, j0);
    return TN_OK;
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct tn__product *p = user;
    const enum way way = choose_way(p);
    /* Sums of rows read pieces that are side by side in one pass, so that they read the rows in
     * longer runs. NEAR bytes of y stay in the first-level cache. */
    const int64_t together = way == SUMS ? NEAR / (p->tile_n * p->y.item * p->m) : 1;
    tn_status status = TN_OK;

    for (int64_t i = begin, count; i < end && status == TN_OK; i += count) {
        count = p->columns - i % p->columns;
        count = count < end - i ? count : end - i;
        count = count < together ? count : together > 1 ? together : 1;
        status = do_pieces(p, way, i, count);
    }
    return status;
}

static tn_status zero_or_bias(const struct tn__product *p, const tn_view *y)
{
    tn_status status = tn__copy_zero(y);
    for (int64_t i = 0; p->bias && status == TN_OK && i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double value = bias_at(p, j);
            tn__dtype_store(TN__F64, p->y.dtype)(1, &value,
                                                 p->y.at + i * p->y.row + j * p->y.column, 0);
        }
    return status;
}

/* Returns the size of a piece along a dimension of the result; `size` itself if it is not much
 * larger than a tile. */
static int64_t tile_size(int64_t size, int64_t large)
{
    int64_t tile = large ? 256 : 128;
    return size < tile + tile / 2 ? (size > 0 ? size : 1) : tile;
}

tn_status tn__matmul_run(struct tn__product *p, const tn_view *y)
{
    if (p->batch == 0 || p->m == 0 || p->n == 0)
        return TN_OK;
    if (p->k == 0)
        return zero_or_bias(p, y);
    if (p->n == 1 && p->m > 1 && !p->bias) { /* one column: y^T = b^T a^T has one row */
        struct tn__matrix a = { p->b.at, p->b.column, p->b.row, p->b.dtype, p->b.item };
        struct tn__matrix b = { p->a.at, p->a.column, p->a.row, p->a.dtype, p->a.item };
        int64_t batch = p->batch_a, step = p->y.row;
        p->a = a, p->b = b;
        p->batch_a = p->batch_b, p->batch_b = batch;
        p->y.column = step;
        p->n = p->m, p->m = 1;
        p->y.row = p->n * p->y.column; /* the stride of a single row can be any number */
        p->a.row = p->k * p->a.column;
    }
    if (tn__packed_take(p))
        return tn__packed_run(p);
    if (tn__narrow_take(p))
        return tn__narrow_run(p);
    double work = (double)p->m * (double)p->n * (double)p->k;
    p->tile_m = p->m;
    p->tile_n = p->n;
    p->alone = false;
    /* A product of few rows takes the time in which the other matrix is read. */
    const double small = choose_way(p) <= SUMS ? TN__PRODUCT_SMALL / 4 : TN__PRODUCT_SMALL;
    if (work > small) {
        bool large = (double)p->m * (double)p->n >= 1024.0 * 1024.0;
        p->tile_m = tile_size(p->m, large);
        p->tile_n = tile_size(p->n, large);
    }
    p->alone = p->batch == 1 && p->tile_m >= p->m && p->tile_n >= p->n;
    if (work <= small && choose_way(p) == TILES) { /* a limit for the memory of piece_by_tiles */
        p->tile_m = p->m < 512 ? p->m : 512;
        p->tile_n = p->n < 512 ? p->n : 512;
    }
    p->rows = (p->m + p->tile_m - 1) / p->tile_m;
    p->columns = (p->n + p->tile_n - 1) / p->tile_n;
    int64_t pieces = p->batch * p->rows * p->columns;
    if (pieces == 1 || work * (double)p->batch <= small || tn_num_threads() == 1)
        return part(p, 0, pieces);
    double each = (double)p->tile_m * (double)p->tile_n * (double)p->k;
    int64_t grain = each >= small / 2 ? 1 : (int64_t)(small / 2 / (each > 1 ? each : 1)) + 1;
    return tn_parallel_for(pieces, grain, part, p);
}

static tn_status run_bmm(const tn_call *call)
{
    const tn_view *a = call->in[0], *b = call->in[1], *y = call->out[0];
    struct tn__product p = {
        .batch = y->shape[0], .m = y->shape[1], .n = y->shape[2], .k = a->shape[2]
    };
    p.y = tn__matrix_of(y, 1, 2);
    p.a = tn__matrix_of(a, 1, 2);
    p.b = tn__matrix_of(b, 1, 2);
    p.batch_y = y->strides[0] * p.y.item;
    p.batch_a = a->shape[0] == 1 ? 0 : a->strides[0] * p.a.item;
    p.batch_b = b->shape[0] == 1 ? 0 : b->strides[0] * p.b.item;
    p.ct = tn__dtype_ct(p.y.dtype);
    return tn__matmul_run(&p, y);
}

/* Whether all dimensions of a view but the last can be taken for the rows of one matrix. */
static bool is_tall(const tn_view *view)
{
    for (int32_t d = view->ndim - 2; d-- > 0;)
        if (view->strides[d] != view->shape[d + 1] * view->strides[d + 1])
            return false;
    return true;
}

/* A matrix, or a stack of matrices whose rows follow each other, times one matrix. The core
 * decomposes all other products into bmm. */
static bool supports_matmul(const tn_call *call, char *reason, size_t size)
{
    const tn_view *a = call->in[0], *b = call->in[1];

    if (a->ndim >= 2 && b->ndim == 2 && is_tall(a) &&
        (call->out == NULL || call->out[0] == NULL || is_tall(call->out[0])))
        return true;
    tn_snprint(reason, size,
               "expected a matrix, or matrices whose rows follow each other, times a matrix");
    return false;
}

static tn_status run_matmul(const tn_call *call)
{
    const tn_view *a = call->in[0], *b = call->in[1], *y = call->out[0];
    struct tn__product p = { .batch = 1, .m = 1, .n = b->shape[1], .k = b->shape[0] };

    for (int32_t d = 0; d < a->ndim - 1; d++)
        p.m *= a->shape[d];
    p.y = tn__matrix_of(y, y->ndim - 2, y->ndim - 1);
    p.a = tn__matrix_of(a, a->ndim - 2, a->ndim - 1);
    p.b = tn__matrix_of(b, 0, 1);
    p.ct = tn__dtype_ct(p.y.dtype);
    return tn__matmul_run(&p, y);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(bmm, TN__REALS),
    TN__KERNEL_SUPPORTS(matmul, TN__REALS, supports_matmul),
};
TN__KERNEL_TABLE(matmul);

/* SPDX-License-Identifier: MIT
 *
 * Products of matrices: bmm and linear. Four ways, chosen by shape, layout and type alone: rows at a time for a few
 * rows; strips over one packed matrix for float32 and float64; BLAS for what is left of these; own packed tiles. The result is cut into pieces by its shape, never by the number of
 * threads, and each piece is one single-threaded computation. */
#include <string.h>

#include "cpu.h"

/* y[m, n] = x[m, k] . w[k, n] (+ bias[n]), each with its own type and strides in elements. */
struct matrix {
    char *at;
    int64_t row, column; /* strides in bytes */
    tn_dtype dtype;
    int64_t item;
};

struct product {
    int64_t batch, m, n, k;
    struct matrix y, a, b;
    int64_t batch_y, batch_a, batch_b; /* bytes from one matrix of the batch to the next */
    const char *bias;                  /* NULL: none */
    int64_t bias_step;
    tn_dtype bias_dtype;
    enum tn__ct ct;
    int64_t tile_m, tile_n; /* a piece of the result */
    int64_t rows, columns;  /* pieces down and across */
    bool alone;             /* the whole product is one piece */
};

enum {
    FEW_ROWS = 4,
    STRIP_ROWS = 6, /* fewer are not worth packing the other matrix */
    STRIP_MOST = 192,
    STRIP_ACROSS = 128,       /* rows of a piece at most, columns at least */
    STRIP_PIECES = 16,        /* so many are wanted */
    SMALL = 64 * 64 * 64 * 2, /* products below this many multiplications are one piece */
    KC = 256                  /* depth of a packed panel */
};

/* ---- few rows -------------------------------------------------------------------------------- */

static bool dense_columns(const struct matrix *x, enum tn__ct ct)
{
    return x->dtype == tn__ct_dtype(ct) && x->column == x->item;
}

static bool dense_rows(const struct matrix *x, enum tn__ct ct)
{
    return x->dtype == tn__ct_dtype(ct) && x->row == x->item;
}

static double bias_at(const struct product *p, int64_t j)
{
    double value = 0;
    if (p->bias)
        tn__convert_load(p->bias_dtype, TN__F64)(1, p->bias + j * p->bias_step, 0, &value);
    return value;
}

/* b's columns lie in rows (a transposed weight): dot products. */
static void rows_by_dots(const struct product *p, const struct matrix *y, const struct matrix *a,
                         const struct matrix *b, int64_t m, int64_t j0, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        const char *column = b->at + (j0 + j) * b->column;
        double bias = bias_at(p, j0 + j);
        for (int64_t i = 0; i < m; i++) {
            char *to = y->at + i * y->row + (j0 + j) * y->column;
            const char *row = a->at + i * a->row;
            if (p->ct == TN__F32) {
                float value = tn__products->dot_f32(p->k, (const float *)(const void *)row,
                                                    (const float *)(const void *)column);
                value = p->bias ? value + (float)bias : value;
                memcpy(to, &value, sizeof value);
            } else {
                double value = tn__products->dot_f64(p->k, (const double *)(const void *)row,
                                                     (const double *)(const void *)column);
                value = p->bias ? value + bias : value;
                memcpy(to, &value, sizeof value);
            }
        }
    }
}

/* b's rows lie in rows: y gets multiples of them. */
static void rows_by_sums(const struct product *p, const struct matrix *y, const struct matrix *a,
                         const struct matrix *b, int64_t m, int64_t j0, int64_t n)
{
    for (int64_t i = 0; i < m; i++) {
        char *to = y->at + i * y->row + j0 * y->item;
        tn__store *store = tn__convert_store(TN__F64, p->bias_dtype);
        memset(to, 0, (size_t)(n * y->item));
        for (int64_t j = 0; p->bias && j < n; j++) {
            double bias = bias_at(p, j0 + j);
            store(1, &bias, to + j * y->item, 0);
        }
        int64_t k = 0;
        for (; k + 4 <= p->k && b->row % b->item == 0; k += 4) {
            const char *from = a->at + i * a->row + k * a->column,
                       *row = b->at + k * b->row + j0 * b->item;
            float f32[4];
            double f64[4];
            for (int64_t d = 0; d < 4; d++)
                memcpy(p->ct == TN__F32 ? (void *)&f32[d] : (void *)&f64[d], from + d * a->column,
                       (size_t)b->item);
            if (p->ct == TN__F32)
                tn__products->axpy4_f32(n, f32, (const float *)(const void *)row, b->row / b->item,
                                        (float *)(void *)to);
            else
                tn__products->axpy4_f64(n, f64, (const double *)(const void *)row, b->row / b->item,
                                        (double *)(void *)to);
        }
        for (; k < p->k; k++) {
            const char *from = a->at + i * a->row + k * a->column,
                       *row = b->at + k * b->row + j0 * b->item;
            if (p->ct == TN__F32) {
                float value;
                memcpy(&value, from, sizeof value);
                tn__products->axpy_f32(n, value, (const float *)(const void *)row,
                                       (float *)(void *)to);
            } else {
                double value;
                memcpy(&value, from, sizeof value);
                tn__products->axpy_f64(n, value, (const double *)(const void *)row,
                                       (double *)(void *)to);
            }
        }
    }
}

enum way { DOTS, SUMS, BLAS, TILES };

static bool blas_takes(const struct matrix *x, int64_t rows, int64_t columns, enum tn__ct ct)
{
    if (x->dtype != tn__ct_dtype(ct) || rows > INT32_MAX || columns > INT32_MAX)
        return false;
    bool plain = x->column == x->item || columns <= 1;
    if (!plain && x->row != x->item && rows > 1)
        return false;
    /* The step counts unless there is but one line; a step of 0 (an expanded tensor) is none. */
    int64_t step = plain ? x->row : x->column, least = (plain ? columns : rows) * x->item;
    return (plain && rows <= 1) ||
           (step >= least && step / x->item <= INT32_MAX && step % x->item == 0);
}

static enum way choose_way(const struct product *p)
{
    bool floats = p->ct == TN__F32 || p->ct == TN__F64;
    if (floats && p->m <= FEW_ROWS && p->y.dtype == tn__ct_dtype(p->ct)) {
        if (dense_columns(&p->a, p->ct) && dense_rows(&p->b, p->ct) && p->k > 1)
            return DOTS;
        if (p->a.dtype == p->y.dtype && dense_columns(&p->b, p->ct) &&
            dense_columns(&p->y, p->ct) && (!p->bias || p->bias_dtype == p->y.dtype))
            return SUMS;
    }
    /* One thread at a time may be in BLAS, so what goes to several threads does without it. */
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

/* How BLAS sees a matrix: transposed or not, and its leading dimension, which it wants to be
 * large enough even where it is not used. */
static int transposed(const struct matrix *x, int64_t rows, int64_t columns, int *leading)
{
    bool plain = x->column == x->item || columns <= 1;
    int64_t step = (plain ? x->row : x->column) / x->item, least = plain ? columns : rows;
    if (plain && rows <= 1) /* the only line has no step */
        step = least;
    *leading = (int)(step < least ? least : step < 1 ? 1 : step);
    return plain ? TN__BLAS_NO_TRANS : TN__BLAS_TRANS;
}

static void piece_by_blas(const struct product *p, const struct matrix *y, const struct matrix *a,
                          const struct matrix *b, int64_t m, int64_t n, int64_t j0)
{
    int lda, ldb, ta = transposed(a, m, p->k, &lda), tb = transposed(b, p->k, n, &ldb);
    int ldc = (int)(y->row / y->item);
    if (p->bias) {
        tn__load *load = tn__convert_load(p->bias_dtype, p->ct);
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

/* ---- own tiles ------------------------------------------------------------------------------- */

/* Panels of `wide` neighbours (rows of a, columns of b), the depth running slowest, filled up
 * with zeros: to[panel][k][wide]. `step` goes from one neighbour to the next, `deep` along k. */
static void pack(const struct matrix *x, int64_t step, int64_t deep, int64_t count, int64_t kc,
                 int64_t wide, enum tn__ct ct, char *to, char *line)
{
    int64_t size = (int64_t)tn__ct_size(ct);
    tn__load *load = tn__convert_load(x->dtype, ct);
    for (int64_t first = 0; first < count; first += wide, to += wide * kc * size) {
        int64_t here = count - first < wide ? count - first : wide;
        if (here < wide)
            memset(to, 0, (size_t)(wide * kc * size));
        bool plain = x->dtype == tn__ct_dtype(ct);
        if (plain && step == size && here == wide) {
            for (int64_t k = 0; k < kc; k++)
                memcpy(to + k * wide * size, x->at + first * step + k * deep,
                       (size_t)(wide * size));
            continue;
        }
        if (plain && deep == size && kc > 1) {
            if (size == 4)
                tn__transpose_4(kc, here, to, wide * 4, x->at + first * step, step);
            else
                tn__transpose_8(kc, here, to, wide * 8, x->at + first * step, step);
            continue;
        }
        if (step < deep || kc == 1) { /* neighbours are near: row by row */
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

static tn_status piece_by_tiles(const struct product *p, const struct matrix *y,
                                const struct matrix *a, const struct matrix *b, int64_t m,
                                int64_t n, int64_t j0)
{
    const struct tn__tile *tile = &tn__products->tile[p->ct];
    int64_t size = (int64_t)tn__ct_size(p->ct), mr = tile->mr, nr = tile->nr;
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
        struct matrix deep_a = *a, deep_b = *b;
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
        tn__convert_load(p->bias_dtype, p->ct)(n, p->bias + j0 * p->bias_step, p->bias_step, pb);
    for (int64_t i = 0; i < m; i++) {
        char *row = sums + i * up_n * size;
        if (p->bias)
            tn__gemm_add_row(p->ct, n, pb, row);
        tn__convert_store(p->ct, y->dtype)(n, row, y->at + i * y->row, y->column);
    }
    tn__scratch_give(memory);
    return TN_OK;
}

/* ---- strips ---------------------------------------------------------------------------------- */

struct strips {
    const struct product *p;
    struct tn__gemm g;
    char *panels; /* b of each matrix of the batch, [batch][panel][k][width] */
    int64_t each; /* elements of a batch's panels */
    int64_t count, rows, down;
    int64_t wide, across; /* columns of a piece, pieces next to one another */
};

static bool strips_take(const struct product *p)
{
    tn_dtype dtype = tn__ct_dtype(p->ct);
    bool floats = p->ct == TN__F32 || p->ct == TN__F64;

    return floats && p->m >= STRIP_ROWS && p->n > 1 && p->a.dtype == dtype && p->b.dtype == dtype &&
           p->y.dtype == dtype && p->y.column == p->y.item &&
           (!p->bias || p->bias_dtype == dtype) &&
           (p->a.column == p->a.item || p->a.row == p->a.item) &&
           (double)(p->batch_b ? p->batch : 1) * (double)p->k * (double)p->n <= 64e6;
}

static tn_status strips_pack(void *user, int64_t begin, int64_t end)
{
    const struct strips *s = user;
    const struct product *p = s->p;
    int64_t item = p->b.item, width = s->g.width;

    for (int64_t i = begin; i < end; i++) {
        int64_t j = i % s->count * width, which = i / s->count;
        tn__gemm_pack(p->ct, p->k, p->n - j < width ? p->n - j : width, width,
                      p->b.at + which * p->batch_b + j * p->b.column, p->b.row / item,
                      p->b.column / item, s->panels + (which * s->each + j * p->k) * item);
    }
    return TN_OK;
}

static tn_status strips_part(void *user, int64_t begin, int64_t end)
{
    const struct strips *s = user;
    const struct product *p = s->p;
    int64_t item = p->y.item;
    struct tn__gemm most = s->g;
    void *space;

    most.m = s->rows;
    space = tn__scratch_take(tn__gemm_space(&most));
    if (!space)
        return TN_ERR_MEMORY;
    for (int64_t i = begin, next; i < end; i = next) {
        int64_t j = i % s->across * s->wide, row = i / s->across % s->down * s->rows,
                which = i / s->across / s->down, last;
        struct tn__gemm g = s->g;
        next = (i / s->across + 1) * s->across; /* pieces of the same rows at once */
        next = next < end ? next : end;
        last = j + (next - i) * s->wide;
        g.m = p->m - row < s->rows ? p->m - row : s->rows;
        g.n = (last < p->n ? last : p->n) - j;
        g.a = p->a.at + which * p->batch_a + row * p->a.row;
        g.b = s->panels + ((p->batch_b ? which : 0) * s->each + j * p->k) * item;
        g.c = p->y.at + which * p->batch_y + row * p->y.row + j * item;
        g.bias = g.bias ? (const char *)g.bias + j * item : NULL;
        g.space = space;
        tn__gemm_run(&g);
    }
    tn__scratch_give(space);
    return TN_OK;
}

static tn_status by_strips(const struct product *p)
{
    int64_t item = p->y.item, width = tn__gemm_width(p->ct, p->n), mr;
    int64_t full = (p->n + width - 1) / width * width, matrices = p->batch_b ? p->batch : 1;
    struct strips s = { .p = p, .count = full / width, .each = full * p->k };
    double each = (double)p->k * (double)p->m * (double)p->n;
    char *bias = NULL;
    tn_status status;

    mr = tn__products->strips[p->ct].mr;
    s.g = (struct tn__gemm){ .ct = p->ct,
                             .by_columns = p->a.column != p->a.item,
                             .k = p->k,
                             .b_step = width,
                             .b_panel = p->k * width,
                             .width = width,
                             .ldc = p->y.row / item };
    s.g.a_step = (s.g.by_columns ? p->a.column : p->a.row) / item;
    s.down = (p->m + STRIP_MOST - 1) / STRIP_MOST;
    s.rows = ((p->m + s.down - 1) / s.down + mr - 1) / mr * mr;
    s.down = (p->m + s.rows - 1) / s.rows;
    for (s.wide = STRIP_ACROSS; s.wide < p->n; s.wide *= 2)
        if (p->batch * s.down * ((p->n + 2 * s.wide - 1) / (2 * s.wide)) < STRIP_PIECES)
            break;
    s.across = (p->n + s.wide - 1) / s.wide;
    s.panels = tn__scratch_take((size_t)(matrices * s.each * item));
    if (p->bias)
        bias = tn__scratch_take((size_t)(full * item));
    if (!s.panels || (p->bias && !bias)) {
        status = TN_ERR_MEMORY;
    } else {
        if (bias) {
            memset(bias, 0, (size_t)(full * item));
            tn__convert_load(p->bias_dtype, p->ct)(p->n, p->bias, p->bias_step, bias);
            s.g.bias = bias;
        }
        status = tn_parallel_for(matrices * s.count, 1 + 32768 / (p->k * width), strips_pack, &s);
    }
    if (status == TN_OK) {
        double piece = each / (double)(s.down * s.across);
        status = tn_parallel_for(p->batch * s.down * s.across,
                                 piece >= SMALL / 2 ? 1 : (int64_t)(SMALL / 2 / piece) + 1,
                                 strips_part, &s);
    }
    tn__scratch_give(bias);
    tn__scratch_give(s.panels);
    return status;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static tn_status do_piece(const struct product *p, int64_t index)
{
    int64_t across = index % p->columns, down = index / p->columns % p->rows,
            which = index / p->columns / p->rows;
    int64_t i0 = down * p->tile_m, j0 = across * p->tile_n;
    int64_t m = p->m - i0 < p->tile_m ? p->m - i0 : p->tile_m,
            n = p->n - j0 < p->tile_n ? p->n - j0 : p->tile_n;
    struct matrix y = p->y, a = p->a, b = p->b;
    y.at += which * p->batch_y + i0 * y.row;
    a.at += which * p->batch_a + i0 * a.row;
    b.at += which * p->batch_b;
    enum way way = choose_way(p);
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
    const struct product *p = user;
    tn_status status = TN_OK;
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = do_piece(p, i);
    return status;
}

static tn_status zero_or_bias(const struct product *p, const tn_view *y)
{
    tn_status status = tn__copy_zero(y);
    for (int64_t i = 0; p->bias && status == TN_OK && i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double value = bias_at(p, j);
            tn__convert_store(TN__F64, p->y.dtype)(1, &value,
                                                   p->y.at + i * p->y.row + j * p->y.column, 0);
        }
    return status;
}

static int64_t tile_size(int64_t size, int64_t large)
{
    int64_t tile = large ? 256 : 128;
    return size < tile + tile / 2 ? (size > 0 ? size : 1) : tile;
}

static tn_status run(struct product *p, const tn_view *y)
{
    if (p->batch == 0 || p->m == 0 || p->n == 0)
        return TN_OK;
    if (p->k == 0)
        return zero_or_bias(p, y);
    if (p->n == 1 && p->m > 1 && !p->bias) { /* a column: the product of one row, transposed */
        struct matrix a = { p->b.at, p->b.column, p->b.row, p->b.dtype, p->b.item };
        struct matrix b = { p->a.at, p->a.column, p->a.row, p->a.dtype, p->a.item };
        int64_t batch = p->batch_a, step = p->y.row;
        p->a = a, p->b = b;
        p->batch_a = p->batch_b, p->batch_b = batch;
        p->y.column = step;
        p->n = p->m, p->m = 1;
        p->y.row = p->n * p->y.column; /* the stride of the only row says nothing */
        p->a.row = p->k * p->a.column;
    }
    if (strips_take(p))
        return by_strips(p);
    double work = (double)p->m * (double)p->n * (double)p->k;
    p->tile_m = p->m;
    p->tile_n = p->n;
    if (work > SMALL) {
        bool large = (double)p->m * (double)p->n >= 1024.0 * 1024.0;
        p->tile_m = tile_size(p->m, large);
        p->tile_n = tile_size(p->n, large);
    }
    p->alone = p->batch == 1 && p->tile_m >= p->m && p->tile_n >= p->n;
    if (work <= SMALL && choose_way(p) == TILES) { /* its memory is bounded by the tile */
        p->tile_m = p->m < 512 ? p->m : 512;
        p->tile_n = p->n < 512 ? p->n : 512;
    }
    p->rows = (p->m + p->tile_m - 1) / p->tile_m;
    p->columns = (p->n + p->tile_n - 1) / p->tile_n;
    int64_t pieces = p->batch * p->rows * p->columns;
    if (pieces == 1 || work * (double)p->batch <= SMALL)
        return part(p, 0, pieces);
    double each = (double)p->tile_m * (double)p->tile_n * (double)p->k;
    int64_t grain = each >= SMALL / 2 ? 1
                                      : (int64_t)((double)(SMALL / 2) / (each > 1 ? each : 1)) + 1;
    return tn_parallel_for(pieces, grain, part, p);
}

static struct matrix matrix_of(const tn_view *view, int32_t row, int32_t column)
{
    int64_t item = tn__view_item(view);
    struct matrix out = { tn__view_at(view), row >= 0 ? view->strides[row] * item : 0,
                          view->strides[column] * item, tn_view_dtype(view), item };
    return out;
}

tn_status tn__bmm(const tn_call *call)
{
    const tn_view *a = call->in[0], *b = call->in[1], *y = call->out[0];
    struct product p = {
        .batch = y->shape[0], .m = y->shape[1], .n = y->shape[2], .k = a->shape[2]
    };
    p.y = matrix_of(y, 1, 2);
    p.a = matrix_of(a, 1, 2);
    p.b = matrix_of(b, 1, 2);
    p.batch_y = y->strides[0] * p.y.item;
    p.batch_a = a->shape[0] == 1 ? 0 : a->strides[0] * p.a.item;
    p.batch_b = b->shape[0] == 1 ? 0 : b->strides[0] * p.b.item;
    p.ct = tn__ct_of(p.y.dtype);
    return run(&p, y);
}

/* Whether all dimensions but the last go together as one, and then its size and stride. */
static bool as_rows(const tn_view *view, int64_t *rows, int64_t *stride)
{
    *rows = 1;
    *stride = view->ndim > 1 ? view->strides[view->ndim - 2] : 0;
    bool first = true;
    int64_t expect = 0;
    for (int32_t i = view->ndim - 1; i-- > 0;) {
        *rows *= view->shape[i];
        if (view->shape[i] == 1)
            continue;
        if (first)
            *stride = view->strides[i];
        else if (view->strides[i] != expect)
            return false;
        first = false;
        expect = view->strides[i] * view->shape[i];
    }
    return true;
}

/* x [..., in] whose leading dimensions do not go together is copied first. */
static tn_status linear_copied(const tn_call *call)
{
    const tn_view *x = call->in[0];
    int64_t strides[TN_MAX_DIMS], next = 1;
    for (int32_t i = x->ndim; i-- > 0; next *= x->shape[i])
        strides[i] = next;
    tn_view dense = *x;
    dense.byte_offset = 0;
    dense.strides = strides;
    dense.data = tn_malloc((size_t)(next > 0 ? next : 1) * (size_t)tn__view_item(x));
    if (!dense.data)
        return TN_ERR_MEMORY;
    tn_status status = tn__copy_views(&dense, x);
    if (status == TN_OK) {
        const tn_view *in[3] = { &dense, call->in[1], call->n_in > 2 ? call->in[2] : NULL };
        tn_call inner = *call;
        inner.in = in;
        status = tn__linear(&inner);
    }
    tn_free(dense.data);
    return status;
}

tn_status tn__linear(const tn_call *call)
{
    const tn_view *x = call->in[0], *weight = call->in[1], *y = call->out[0];
    const tn_view *bias = call->n_in > 2 ? call->in[2] : NULL;
    int64_t x_rows, x_stride, y_rows, y_stride;
    if (!as_rows(x, &x_rows, &x_stride))
        return linear_copied(call);
    if (!as_rows(y, &y_rows, &y_stride))
        return tn_fail(TN_ERR_RUNTIME, "%s: the result's rows do not have one stride", call->op);
    struct product p = { .batch = 1, .m = x_rows, .n = weight->shape[0], .k = weight->shape[1] };
    p.y = matrix_of(y, -1, y->ndim - 1);
    p.a = matrix_of(x, -1, x->ndim - 1);
    p.y.row = y_stride * p.y.item;
    p.a.row = x_stride * p.a.item;
    p.b = matrix_of(weight, 1, 0);
    p.ct = tn__ct_of(p.y.dtype);
    if (p.m == 1) { /* the stride of the only row says nothing */
        p.y.row = p.n * p.y.item;
        p.a.row = p.k * p.a.item;
    }
    if (bias) {
        p.bias = tn__view_at(bias);
        p.bias_step = bias->strides[0] * tn__view_item(bias);
        p.bias_dtype = tn_view_dtype(bias);
    }
    return run(&p, y);
}

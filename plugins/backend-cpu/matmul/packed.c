/* SPDX-License-Identifier: MIT
 *
 * Products of float32 and float64 by strips. The threads first pack one matrix, b, into panels;
 * with few rows, a row-major b is read in place. The other matrix, a, is read in place, or also
 * copied (gathered) if its columns are far apart. A long depth is divided into rounds, and a large
 * product into parts, which limits the memory for the copies. What follows the product (struct
 * tn__finish) is applied while the result is in the cache. If packing a is cheaper than packing b,
 * the product is computed transposed, y^T = b^T a^T, and pieces are transposed back. */
#include <string.h>

#include "base/scratch.h"
#include "matmul/gemm.h"
#include "matmul/matmul.h"
#include "op/copy.h"
#include "simd/simd.h"

enum {
    MOST_ROWS = 192,  /* approximate number of rows of a piece */
    ACROSS = 128,     /* minimum number of columns of a piece */
    PIECES = 16,      /* pieces to aim for */
    GATHERED = 16,    /* strips that are gathered together, because neighbours share cache lines */
    COPIED = 1 << 22, /* approximate number of elements of both matrices that a round copies */
    IN_PLACE = 2048,  /* maximum number of rows for which b is read in place */
    LINES = 256,      /* bytes of a row of a panel, at least, if b is read in place */
    SETS = 4096       /* rows so far apart fall into the same sets of the first-level cache */
};

struct strips {
    struct tn__product *p;
    bool turned;              /* the product is computed transposed */
    bool in_place;            /* b is not packed */
    struct tn__matrix a, b;   /* the operands; if turned, p->b and p->a transposed */
    int64_t m, n;             /* the size of the result; if turned, p->n and p->m */
    int64_t batch_a, batch_b; /* bytes */
    struct tn__gemm g;
    bool crowded; /* a is gathered */
    /* the depth at which the round begins; the number of different a and b in the batch */
    int64_t k0, matrices_a, matrices_b;
    char *gathered;            /* the copies of a, [batch][strip][k][mr]; NULL: read in place */
    int64_t strips, strip;     /* strips of a matrix; elements from one strip to the next */
    char *panels;              /* the copies of b, [batch][panel][k][width] */
    int64_t each;              /* elements of the panels of one b */
    int64_t count, rows, down; /* panels of one b; rows of a piece; pieces of a column */
    int64_t wide, across;      /* columns of a piece; pieces of a row */
    const char *bias;          /* contiguous; NULL: none */
    /* The bias is added to the whole sum, as the transposed product does, and not to the sum of the
     * first part of the depth. */
    bool late;
};

bool tn__packed_take(const struct tn__product *p)
{
    tn_dtype dtype = tn__dtype_of_ct(p->ct);
    bool floats = p->ct == TN__F32 || p->ct == TN__F64;

    return floats && p->m >= TN__PACKED_ROWS && p->n > 1 && p->a.dtype == dtype &&
           p->b.dtype == dtype && p->y.dtype == dtype && p->y.column == p->y.item &&
           (!p->bias || p->bias_dtype == dtype) &&
           (p->a.column == p->a.item || p->a.row == p->a.item) &&
           (double)(p->batch_b ? p->batch : 1) * (double)p->k * (double)p->n <= 64e6;
}

/* ---- what follows the product ---------------------------------------------------------------- */

/* Applies p->finish to a part of y whose product is complete. */
static void finish(const struct tn__product *p, int64_t row, int64_t rows, int64_t column,
                   int64_t columns)
{
    static const double no_numbers[3];
    const struct tn__finish *f = p->finish;
    const int64_t item = p->y.item;
    tn__ew_loop *add = f->residual ? tn__loop_of(TN__EW_add, p->ct) : NULL;

    for (int64_t i = row; i < row + rows; i++) {
        char *z = p->y.at + i * p->y.row + column * item;
        char *to = f->into ? f->into + i * f->into_row + column * item : z;
        if (f->loop)
            f->loop(columns, to, item, z, item, z, item, no_numbers);
        else if (to != z)
            memcpy(to, z, (size_t)(columns * item));
        if (add)
            add(columns, to, item, to, item, f->residual + i * f->residual_row + column * item,
                item, no_numbers);
    }
}

struct place {
    const struct tn__product *p;
    int64_t row, column;
    const char *bias; /* is added here, by column of y; NULL: none, or it was added before */
};

static void finish_part(void *user, int64_t i, int64_t m, int64_t j, int64_t n)
{
    const struct place *at = user;
    const struct tn__product *p = at->p;
    const int64_t first = at->row + i, column = at->column + j;

    for (int64_t row = first; at->bias && row < first + m; row++)
        tn__gemm_add_row(p->ct, n, at->bias + column * p->y.item,
                         p->y.at + row * p->y.row + column * p->y.item);
    if (p->finish)
        finish(p, first, m, column, n);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Packs panels [begin, end), counted over all matrices b. */
static tn_status pack(void *user, int64_t begin, int64_t end)
{
    const struct strips *s = user;
    int64_t item = s->b.item, width = s->g.width, k = s->g.k;

    for (int64_t i = begin; i < end; i++) {
        int64_t j = i % s->count * width, which = i / s->count;
        tn__gemm_pack(s->g.ct, k, s->n - j < width ? s->n - j : width, width,
                      s->b.at + which * s->batch_b + j * s->b.column + s->k0 * s->b.row,
                      s->b.row / item, s->b.column / item,
                      s->panels + (which * s->each + j * k) * item);
    }
    return TN_OK;
}

/* Packs a b with contiguous rows: each row into all panels, so that b is read in the order of
 * memory. Items [begin, end) are rows, counted over all matrices. */
static tn_status pack_rows(void *user, int64_t begin, int64_t end)
{
    const struct strips *s = user;
    const int64_t item = s->b.item, width = s->g.width, k = s->g.k;

    for (int64_t i = begin; i < end; i++) {
        const char *from = s->b.at + i / k * s->batch_b + (s->k0 + i % k) * s->b.row;
        char *to = s->panels + (i / k * s->each + i % k * width) * item;
        for (int64_t j = 0; j < s->n; j += width, to += k * width * item) {
            const int64_t here = s->n - j < width ? s->n - j : width;
            memcpy(to, from + j * item, (size_t)(here * item));
            memset(to + here * item, 0, (size_t)((width - here) * item));
        }
    }
    return TN_OK;
}

/* Returns the address in matrix `which` of a of the element at row `row` and the depth at which the
 * round begins. */
static const char *rows_of_a(const struct strips *s, int64_t which, int64_t row)
{
    return s->a.at + which * s->batch_a + row * s->a.row + s->k0 * s->a.column;
}

static tn_status gather(void *user, int64_t begin, int64_t end)
{
    const struct strips *s = user;
    const int64_t blocks = (s->strips + GATHERED - 1) / GATHERED;

    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % blocks * GATHERED, which = i / blocks;
        struct tn__gemm g = s->g;
        g.m = s->m;
        g.a = rows_of_a(s, which, 0);
        tn__gemm_gather(&g, s->strip, first,
                        s->strips - first < GATHERED ? s->strips - first : GATHERED,
                        s->gathered + (which * s->strips + first) * s->strip * s->a.item);
    }
    return TN_OK;
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct strips *s = user;
    const struct tn__product *p = s->p;
    const int64_t item = p->y.item, mr = tn__simd.gemm->strips[p->ct].mr;

    for (int64_t i = begin, next; i < end; i = next) {
        int64_t j = i % s->across * s->wide, row = i / s->across % s->down * s->rows,
                which = i / s->across / s->down, last;
        struct tn__gemm g = s->g;
        struct place place = { p, row, j, s->late ? s->bias : NULL };
        next = (i / s->across + 1) * s->across; /* pieces of the same rows are one product */
        next = next < end ? next : end;
        last = j + (next - i) * s->wide;
        g.m = s->m - row < s->rows ? s->m - row : s->rows;
        g.n = (last < s->n ? last : s->n) - j;
        g.a = rows_of_a(s, which, row);
        if (s->gathered) {
            g.a = s->gathered + ((s->batch_a ? which : 0) * s->strips + row / mr) * s->strip * item;
            g.a_step = mr;
            g.a_strip = s->strip;
        }
        if (s->in_place)
            g.b = s->b.at + which * s->batch_b + s->k0 * s->b.row + j * item;
        else
            g.b = s->panels + ((s->batch_b ? which : 0) * s->each + j * g.k) * item;
        g.c = p->y.at + which * p->batch_y + row * p->y.row + j * item;
        g.bias = s->bias && !s->late ? s->bias + j * item : NULL;
        g.add = s->k0 > 0;
        if ((p->finish || place.bias) && s->k0 + g.k == p->k) {
            g.done = finish_part;
            g.user = &place;
        }
        tn__gemm_run(&g);
    }
    return TN_OK;
}

/* The transposed product: a piece is some columns of y with all rows, computed as rows in scratch
 * memory and then transposed into y. */
static tn_status turned_part(void *user, int64_t begin, int64_t end)
{
    enum { AT_ONCE = 32 };
    const struct strips *s = user;
    const struct tn__product *p = s->p;
    const int64_t item = p->y.item, step = s->g.ldc;
    char *space = tn__scratch_take((size_t)(s->rows * step * item));

    if (!space)
        return TN_ERR_MEMORY;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * s->rows;
        struct tn__gemm g = s->g;
        g.m = s->m - first < s->rows ? s->m - first : s->rows;
        g.n = s->n;
        g.a = s->a.at + first * s->a.row;
        g.b = s->panels;
        g.c = space;
        tn__gemm_run(&g);
        for (int64_t at = 0; at < g.m; at += AT_ONCE) {
            int64_t here = g.m - at < AT_ONCE ? g.m - at : AT_ONCE;
            char *to = p->y.at + (first + at) * item;
            if (item == 4)
                tn__copy_transpose_4(s->n, here, to, p->y.row, space + at * step * item,
                                     step * item);
            else
                tn__copy_transpose_8(s->n, here, to, p->y.row, space + at * step * item,
                                     step * item);
        }
        for (int64_t row = 0; s->bias && row < p->m; row++)
            tn__gemm_add_row(p->ct, g.m, s->bias + first * item,
                             p->y.at + row * p->y.row + first * item);
        if (p->finish)
            finish(p, 0, p->m, first, g.m);
    }
    tn__scratch_give(space);
    return TN_OK;
}

/* ---- the whole product ----------------------------------------------------------------------- */

/* Returns whether the transposed product is possible and copies fewer elements. Counts the elements
 * that are packed, those of the result that is transposed back, and those of a matrix whose rows, a
 * multiple of 1024 bytes apart, evict each other from the cache. */
static bool turns(const struct tn__product *p)
{
    double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    bool crowds_a = p->a.row % 1024 == 0, crowds_b = p->b.column % 1024 == 0;

    return p->batch == 1 && p->m * 2 <= p->n && p->b.row == p->b.item && p->k > 1 &&
           p->a.column == p->a.item &&
           k * m + m * n + (crowds_b ? n * k : 0) < k * n + (crowds_a ? m * k : 0);
}

/* Returns whether b is read in place: a has few rows, and the rows of b are contiguous, fill whole
 * vectors, and fall into different sets of the cache. The fewer rows a has, the more packing b
 * costs compared with the product. */
static bool reads_in_place(const struct strips *s)
{
    const struct tn__product *p = s->p;

    return !s->turned && !p->panels && s->b.column == s->b.item && s->m <= IN_PLACE &&
           s->n % tn__simd.gemm->strips[p->ct].vector == 0 && s->b.row % s->b.item == 0 &&
           s->b.row % SETS != 0 && s->g.width * s->b.item >= LINES;
}

/* Chooses the pieces. */
static void lay_out(struct strips *s)
{
    const struct tn__product *p = s->p;
    int64_t mr = tn__simd.gemm->strips[p->ct].mr;

    s->down = (s->m + MOST_ROWS - 1) / MOST_ROWS;
    if (s->turned && s->down < PIECES) /* its pieces are divided in this direction only */
        s->down = PIECES;
    s->rows = ((s->m + s->down - 1) / s->down + mr - 1) / mr * mr;
    s->down = (s->m + s->rows - 1) / s->rows;
    s->wide = ACROSS;
    if (s->turned)
        s->wide = s->n;
    for (; s->wide < s->n; s->wide *= 2)
        if (p->batch * s->down * ((s->n + 2 * s->wide - 1) / (2 * s->wide)) < PIECES)
            break;
    s->across = (s->n + s->wide - 1) / s->wide;
}

/* Returns the depth of a round. The transposed product copies little, so it has one round. */
static int64_t depth_of(const struct strips *s)
{
    const int64_t copied = (s->in_place ? 0 : s->matrices_b * s->n) +
                           (s->crowded ? s->matrices_a * s->m : 0);
    int64_t depth = s->turned || copied == 0 ? s->p->k
                                             : COPIED / copied / TN__GEMM_DEPTH * TN__GEMM_DEPTH;

    depth = depth > TN__GEMM_DEPTH ? depth : TN__GEMM_DEPTH;
    return depth < s->p->k ? depth : s->p->k;
}

static tn_status pack_b(struct strips *s)
{
    return s->b.column == s->b.item
               ? tn_parallel_for(s->matrices_b * s->g.k, 1 + 32768 / s->n, pack_rows, s)
               : tn_parallel_for(s->matrices_b * s->count, 1 + 32768 / (s->g.k * s->g.width), pack,
                                 s);
}

/* Computes one round: packs (and gathers) depths [k0, k0 + g.k), then multiplies. */
static tn_status round_of(struct strips *s)
{
    const struct tn__product *p = s->p;
    const double piece = (double)s->g.k * (double)p->m * (double)p->n /
                         (double)(s->down * s->across);
    const int64_t blocks = (s->strips + GATHERED - 1) / GATHERED;
    tn_status status = p->panels || s->in_place ? TN_OK : pack_b(s);

    if (status == TN_OK && s->gathered)
        status = tn_parallel_for(s->matrices_a * blocks, 1 + 1024 / s->g.k, gather, s);
    if (status == TN_OK)
        status = tn_parallel_for(
            p->batch * s->down * s->across,
            piece >= TN__PRODUCT_SMALL / 2 ? 1 : (int64_t)(TN__PRODUCT_SMALL / 2 / piece) + 1,
            s->turned ? turned_part : part, s);
    return status;
}

static tn_status run_part(struct tn__product *p)
{
    const bool turned = turns(p);
    struct strips s = { .p = p,
                        .turned = turned && !p->panels,
                        .late = turned && p->panels,
                        .a = p->a,
                        .b = p->b,
                        .m = p->m,
                        .n = p->n,
                        .batch_a = p->batch_a,
                        .batch_b = p->batch_b };
    const int64_t item = p->y.item;
    int64_t width, full, depth;
    char *bias = NULL;
    tn_status status = TN_OK;

    if (s.turned) {
        s.a = (struct tn__matrix){ p->b.at, p->b.column, p->b.row, p->b.dtype, item };
        s.b = (struct tn__matrix){ p->a.at, p->a.column, p->a.row, p->a.dtype, item };
        s.m = p->n;
        s.n = p->m;
        s.batch_a = s.batch_b = 0;
    }
    s.matrices_a = s.batch_a ? p->batch : 1;
    s.matrices_b = s.batch_b ? p->batch : 1;
    width = tn__gemm_width(p->ct, s.n);
    full = (s.n + width - 1) / width * width;
    s.count = full / width;
    s.g = (struct tn__gemm){ .ct = p->ct,
                             .by_columns = s.a.column != item,
                             .n = s.n,
                             .b_step = width,
                             .width = width,
                             .ldc = s.turned ? full : p->y.row / item };
    s.g.a_step = (s.g.by_columns ? s.a.column : s.a.row) / item;
    s.crowded = tn__gemm_crowded(&s.g);
    s.in_place = reads_in_place(&s);
    if (s.in_place)
        s.g.b_step = s.b.row / item;
    depth = p->panels ? p->k : depth_of(&s);
    lay_out(&s);
    if (!s.in_place)
        s.panels = p->panels ? (char *)(uintptr_t)p->panels
                             : tn__scratch_take((size_t)(s.matrices_b * full * depth * item));
    if (s.crowded) {
        const int64_t mr = tn__simd.gemm->strips[p->ct].mr;
        s.strips = (s.m + mr - 1) / mr;
        s.strip = tn__gemm_strip(p->ct, depth);
        s.gathered = tn__scratch_take((size_t)(s.matrices_a * s.strips * s.strip * item));
    }
    if (p->bias) { /* copied, because it is read up to the end of the last panel */
        int64_t room = (p->n + 2 * width) * item;
        bias = tn__scratch_take((size_t)room);
        if (bias) {
            memset(bias, 0, (size_t)room);
            tn__dtype_load(p->bias_dtype, p->ct)(p->n, p->bias, p->bias_step, bias);
            s.bias = bias;
        }
    }
    if ((!s.panels && !s.in_place) || (s.crowded && !s.gathered) || (p->bias && !bias))
        status = TN_ERR_MEMORY;
    for (; status == TN_OK && s.k0 < p->k; s.k0 += depth) {
        s.g.k = p->k - s.k0 < depth ? p->k - s.k0 : depth;
        s.g.b_panel = s.in_place ? width : s.g.k * width;
        s.each = full * s.g.k;
        status = round_of(&s);
    }
    tn__scratch_give(bias);
    tn__scratch_give(s.gathered);
    if (!p->panels)
        tn__scratch_give(s.panels);
    return status;
}

/* Returns columns [j, j + n) of matrices [which, which + batch) of a product. `f` is memory for the
 * `finish` of the result. */
static struct tn__product part_of(const struct tn__product *p, int64_t which, int64_t batch,
                                  int64_t j, int64_t n, struct tn__finish *f)
{
    struct tn__product part = *p;

    part.batch = batch;
    part.n = n;
    part.y.at += which * p->batch_y + j * p->y.column;
    part.a.at += which * p->batch_a;
    part.b.at += which * p->batch_b + j * p->b.column;
    if (p->bias)
        part.bias += j * p->bias_step;
    if (p->finish) {
        *f = *p->finish;
        if (f->into)
            f->into += j * p->y.item;
        if (f->residual)
            f->residual += j * p->y.item;
        part.finish = f;
    }
    return part;
}

tn_status tn__packed_run(struct tn__product *p)
{
    /* A long depth has rounds, which limit the copies. If a round would still copy too much, the
     * matrices of the batch are computed in groups, and a matrix in groups of columns. */
    const int64_t depth = p->k < TN__GEMM_DEPTH ? p->k : TN__GEMM_DEPTH, most = COPIED / depth;
    const int64_t matrices = p->batch_b && p->n < most ? most / p->n : p->batch_b ? 1 : p->batch;
    const int64_t columns = p->n < most + most / 2 ? p->n : most;
    tn_status status = TN_OK;

    if (p->a.column != p->a.item)
        p->panels = NULL;
    if (p->panels)
        status = run_part(p);
    for (int64_t i = 0; !p->panels && i < p->batch && status == TN_OK; i += matrices)
        for (int64_t j = 0; j < p->n && status == TN_OK; j += columns) {
            struct tn__finish finish;
            struct tn__product part = part_of(p, i,
                                              p->batch - i < matrices ? p->batch - i : matrices, j,
                                              p->n - j < columns ? p->n - j : columns, &finish);

            status = run_part(&part);
        }
    p->finished = p->finish != NULL;
    return status;
}

/* ---- a matrix packed for several products ---------------------------------------------------- */

int64_t tn__packed_bytes(enum tn__ct ct, int64_t k, int64_t n)
{
    const int64_t width = tn__gemm_width(ct, n);

    return (n + width - 1) / width * width * k * (int64_t)tn__dtype_ct_size(ct);
}

tn_status tn__packed_panels(enum tn__ct ct, int64_t k, int64_t n, const struct tn__matrix *b,
                            char *panels)
{
    struct tn__product p = { .ct = ct, .k = k };
    struct strips s = { .p = &p, .b = *b, .n = n, .panels = panels, .matrices_b = 1 };
    const int64_t width = tn__gemm_width(ct, n);

    s.g = (struct tn__gemm){ .ct = ct, .k = k, .width = width };
    s.count = (n + width - 1) / width;
    return pack_b(&s);
}

/* SPDX-License-Identifier: MIT
 *
 * Products of bfloat16 by blocks (bfloat16.h). One matrix, b, is packed into panels; the other, a,
 * is read in place if its rows are contiguous and fill whole steps of the depth, otherwise a block
 * of rows is copied at a time. The smaller matrix is packed: if that is the first, the product is
 * computed transposed, y^T = b^T a^T, so the weights of a layer are read in place. */
#include <string.h>

#include "base/scratch.h"
#include "base/vectorize.h"
#include "matmul/bfloat16.h"
#include "matmul/gemm.h"
#include "op/copy.h"

enum {
    SIDE = TN__BF16_SIDE,
    DEEP = TN__BF16_DEEP,
    WIDE = TN__BF16_WIDE,
    /* minimum number of columns of a product that is computed here, and minimum number of rows,
     * unless the columns of b are contiguous along the depth */
    LEAST = 8,
    AT_ONCE = 8,     /* steps of the depth */
    APART = 256,     /* maximum number of rows of a product whose pieces pack their own panels */
    PIECES = 16,     /* pieces to aim for */
    NEAR = 1 << 20,  /* bytes of the panels that are used together: the second-level cache */
    PACKED = 1 << 26 /* approximate bytes of all panels */
};

struct product {
    const struct tn__product *p;
    const struct tn__bfloat16_unit *unit;
    bool turned;
    struct tn__matrix a, b; /* if turned, p->b and p->a transposed */
    int64_t m, n, batch_a, batch_b;
    int64_t matrices_b;    /* different b in the batch */
    int64_t steps, count;  /* of the depth; panels of one b */
    bool apart;            /* each piece packs its panels, because no other piece needs them */
    char *panels;          /* NULL if apart */
    float *bias;           /* of the columns of the result; NULL: none */
    int64_t down, across;  /* pieces of a result */
    int64_t rows, columns; /* of a piece */
};

bool tn__bfloat16_take(const struct tn__product *p)
{
    return p->ct == TN__F32 && p->a.dtype == TN_BF16 && p->b.dtype == TN_BF16 &&
           (p->m >= LEAST || p->b.row == 2) && p->n >= LEAST && p->k >= DEEP &&
           tn__bfloat16_name() && (double)p->k * (double)p->n * (double)p->m >= 32768 &&
           (p->y.dtype == TN_BF16 || p->y.dtype == TN_F32);
}

/* ---- packing --------------------------------------------------------------------------------- */

/* Packs columns [j, j + count) of b as a panel, for a b whose columns are contiguous along the
 * depth. */
static void pack_deep(const struct product *s, const char *from, int64_t count, char *to)
{
    const int64_t k = s->p->k, pairs = k / 2;
    char line[TN__CHUNK * 4] __attribute__((aligned(64)));

    if (((uintptr_t)from | (uintptr_t)s->b.column) % 4 == 0) {
        tn__copy_transpose_4(pairs, count, to, WIDE * 4, from, s->b.column);
    } else {
        for (int64_t j = 0; j < count; j++)
            for (int64_t i = 0; i < pairs; i += TN__CHUNK) {
                int64_t here = pairs - i < TN__CHUNK ? pairs - i : TN__CHUNK;
                memcpy(line, from + j * s->b.column + i * 4, (size_t)here * 4);
                for (int64_t c = 0; c < here; c++)
                    memcpy(to + ((i + c) * WIDE + j) * 4, line + c * 4, 4);
            }
    }
    for (int64_t j = 0; k % 2 && j < count; j++)
        memcpy(to + (pairs * WIDE + j) * 4, from + j * s->b.column + (k - 1) * 2, 2);
}

/* For the packing of a b with contiguous rows: makes a row of pairs from two rows. */
static inline void pair_rows(const char *first, const char *second, char *to)
{
    uint16_t low[WIDE], high[WIDE];
    uint32_t pairs[WIDE];

    memcpy(low, first, sizeof low);
    memcpy(high, second, sizeof high);
    TN__IVDEP for (int j = 0; j < WIDE; j++) pairs[j] = low[j] | (uint32_t)high[j] << 16;
    memcpy(to, pairs, sizeof pairs);
}

/* Packs rows [begin, end) of columns of a b with any strides; `to` is the place of row `begin`, an
 * even one, in the panel. */
static void pack_rows(const struct product *s, const char *from, int64_t begin, int64_t end,
                      int64_t count, char *to)
{
    int64_t i = begin;

    if (s->b.column == 2 && count == WIDE)
        for (; i + 1 < end; i += 2, to += WIDE * 4)
            pair_rows(from + i * s->b.row, from + (i + 1) * s->b.row, to);
    for (; i < end; i++) {
        const char *row = from + i * s->b.row;
        for (int64_t j = 0; j < count; j++)
            memcpy(to + j * 4 + i % 2 * 2, row + j * s->b.column, 2);
        to += i % 2 ? WIDE * 4 : 0;
    }
}

/* Packs panels [begin, end), counted over all matrices b, whose columns are contiguous along the
 * depth. */
static tn_status pack_panels(void *user, int64_t begin, int64_t end)
{
    const struct product *s = user;
    const int64_t bytes = s->steps * TN__BF16_PANEL, full = s->p->k / DEEP * TN__BF16_PANEL;

    for (int64_t i = begin; i < end; i++) {
        const int64_t j = i % s->count * WIDE, count = s->n - j < WIDE ? s->n - j : WIDE;
        const char *from = s->b.at + i / s->count * s->batch_b + j * s->b.column;
        char *to = s->panels + i * bytes;
        if (count < WIDE)
            memset(to, 0, (size_t)bytes);
        else
            memset(to + full, 0, (size_t)(bytes - full));
        if (count > 0)
            pack_deep(s, from, count, to);
    }
    return TN_OK;
}

/* Packs one step of panels [first, last) of matrix `which`, so that rows of b are read in the order
 * of memory. `to` is the first panel. */
static void pack_step(const struct product *s, int64_t which, int64_t step, int64_t first,
                      int64_t last, char *to)
{
    const int64_t k = step * DEEP, end = k + DEEP < s->p->k ? k + DEEP : s->p->k;

    to += step * TN__BF16_PANEL;
    for (int64_t panel = first; panel < last; panel++, to += s->steps * TN__BF16_PANEL) {
        const int64_t j = panel * WIDE, count = s->n - j < WIDE ? s->n - j : WIDE;
        if (count < WIDE || end - k < DEEP)
            memset(to, 0, TN__BF16_PANEL);
        if (count > 0)
            pack_rows(s, s->b.at + which * s->batch_b + j * s->b.column, k, end, count, to);
    }
}

/* Packs steps [begin, end) of the depth, counted over all matrices b, into all panels. */
static tn_status pack_steps(void *user, int64_t begin, int64_t end)
{
    const struct product *s = user;

    for (int64_t i = begin; i < end; i++)
        pack_step(s, i / s->steps, i % s->steps, 0, s->count,
                  s->panels + i / s->steps * s->count * s->steps * TN__BF16_PANEL);
    return TN_OK;
}

/* Copies `count` rows of `steps` steps of a, from `from` on, as [steps][SIDE][DEEP]; what is
 * missing is 0. `depth` is the depth that exists from there on. */
static void copy_rows(const struct product *s, const char *from, int64_t count, int64_t steps,
                      int64_t depth, char *to)
{
    if (count < SIDE || depth < steps * DEEP)
        memset(to, 0, (size_t)(steps * SIDE * DEEP * 2));
    for (int64_t i = 0; i < count; i++)
        for (int64_t step = 0; step < steps; step++) {
            const int64_t here = depth - step * DEEP < DEEP ? depth - step * DEEP : DEEP;
            const char *x = from + i * s->a.row + step * DEEP * s->a.column;
            char *row = to + (step * SIDE + i) * DEEP * 2;
            if (s->a.column == 2 && here == DEEP)
                memcpy(row, x, DEEP * 2);
            else
                for (int64_t c = 0; c < here; c++)
                    memcpy(row + c * 2, x + c * s->a.column, 2);
        }
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Stores a block whose result is not contiguous bfloat16. */
static void store_apart(const struct product *s, const struct tn__bfloat16_store *block, int64_t i,
                        int64_t j, int64_t which)
{
    const struct tn__matrix *y = &s->p->y;
    tn__store *store = tn__dtype_store(TN__F32, y->dtype);
    float row[SIDE];
    const int64_t rows = s->turned ? block->columns : block->rows;
    const int64_t columns = s->turned ? block->rows : block->columns;
    const int64_t first = s->turned ? j : i, column = s->turned ? i : j;

    for (int64_t r = 0; r < rows; r++) {
        char *to = y->at + which * s->p->batch_y + (first + r) * y->row + column * y->column;
        if (y->dtype == TN_F32 && y->column == 4 && !s->turned && !block->bias) {
            memcpy(to, block->c + r * SIDE, (size_t)columns * 4);
            continue;
        }
        for (int64_t c = 0; c < columns; c++)
            row[c] = (s->turned ? block->c[c * SIDE + r] : block->c[r * SIDE + c]) +
                     (block->bias ? block->bias[c] : 0);
        store(columns, row, to, y->column);
    }
}

/* Stores block c: rows [i, i + SIDE), columns [j, j + SIDE) of result `which`. */
static void store_block(const struct product *s, int64_t which, int64_t i, int64_t j,
                        const float *c)
{
    const struct tn__matrix *y = &s->p->y;
    const int64_t first = s->turned ? j : i, column = s->turned ? i : j;
    struct tn__bfloat16_store out = { .c = c,
                                      .rows = s->m - i < SIDE ? s->m - i : SIDE,
                                      .columns = s->n - j < SIDE ? s->n - j : SIDE,
                                      .turned = s->turned,
                                      .bias = s->bias ? s->bias + column : NULL,
                                      .y_row = y->row };

    if (y->dtype != TN_BF16 || y->column != 2) {
        store_apart(s, &out, i, j, which);
        return;
    }
    out.y = y->at + which * s->p->batch_y + first * y->row + column * 2;
    s->unit->store(&out);
}

/* Computes rows [i, i + SIDE) and columns [j, j_end) of result `which`. `space` is memory for all
 * blocks c and a copy of a part of a; `panels` is the panel of column j. Processes AT_ONCE steps of
 * the depth at a time, so that this part of a stays in the first-level cache. */
static void block_row(const struct product *s, int64_t which, int64_t i, int64_t j, int64_t j_end,
                      const char *panels, char *space)
{
    const int64_t rows = s->m - i < SIDE ? s->m - i : SIDE, blocks = (j_end - j + SIDE - 1) / SIDE;
    const bool copies = s->a.column != 2 || rows < SIDE;
    char *copy = space + blocks * SIDE * SIDE * 4;

    for (int64_t step = 0; step < s->steps; step += AT_ONCE) {
        const int64_t depth = s->p->k - step * DEEP;
        struct tn__bfloat16_block g = { .steps = s->steps - step < AT_ONCE ? s->steps - step
                                                                           : AT_ONCE,
                                        .add = step > 0,
                                        .a_row = s->a.row,
                                        .a_step = DEEP * 2,
                                        .b_panel = s->steps * TN__BF16_PANEL };
        g.a = s->a.at + which * s->batch_a + i * s->a.row + step * DEEP * s->a.column;
        if (copies || depth < g.steps * DEEP) {
            copy_rows(s, g.a, rows, g.steps, depth, copy);
            g.a = copy;
            g.a_row = DEEP * 2;
            g.a_step = SIDE * DEEP * 2;
        }
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t at = j + b * SIDE;
            g.panels = s->n - at > WIDE ? 2 : 1;
            g.b = panels + b * (SIDE / WIDE) * g.b_panel + step * TN__BF16_PANEL;
            g.c = (float *)(void *)space + b * SIDE * SIDE;
            s->unit->run(&g);
            if (step + g.steps == s->steps)
                store_block(s, which, i, at, g.c);
        }
    }
}

/* Returns the panel of column j, packed in `own` if the panels are not packed before. */
static const char *panels_of(const struct product *s, int64_t which, int64_t j, int64_t j_end,
                             char *own)
{
    const int64_t bytes = s->steps * TN__BF16_PANEL, first = j / WIDE;

    if (s->panels)
        return s->panels + ((s->batch_b ? which : 0) * s->count + first) * bytes;
    for (int64_t step = 0; step < s->steps; step++)
        pack_step(s, s->batch_b ? which : 0, step, first, (j_end + SIDE - 1) / SIDE * (SIDE / WIDE),
                  own);
    return own;
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct product *s = user;
    const int64_t bytes = s->steps * TN__BF16_PANEL;
    int64_t group = NEAR / bytes * WIDE / SIDE * SIDE;

    group = group < SIDE ? SIDE : group < s->columns ? group : s->columns;
    const int64_t room = group * SIDE * 4 + AT_ONCE * SIDE * DEEP * 2;
    char *space = tn__scratch_take((size_t)(room + (s->panels ? 0 : group / WIDE * bytes)));
    if (!space)
        return TN_ERR_MEMORY;
    s->unit->begin();
    for (int64_t index = begin; index < end; index++) {
        const int64_t j0 = index % s->across * s->columns,
                      i0 = index / s->across % s->down * s->rows,
                      which = index / s->across / s->down;
        const int64_t j1 = j0 + s->columns < s->n ? j0 + s->columns : s->n,
                      i1 = i0 + s->rows < s->m ? i0 + s->rows : s->m;
        for (int64_t j = j0; j < j1; j += group) {
            const int64_t j_end = j + group < j1 ? j + group : j1;
            const char *panels = panels_of(s, which, j, j_end, space + room);
            for (int64_t i = i0; i < i1; i += SIDE)
                block_row(s, which, i, j, j_end, panels, space);
        }
    }
    s->unit->end();
    tn__scratch_give(space);
    return TN_OK;
}

/* ---- the whole product ----------------------------------------------------------------------- */

/* Chooses the pieces, by the shape. */
static void lay_out(struct product *s)
{
    const int64_t blocks_m = (s->m + SIDE - 1) / SIDE, blocks_n = (s->n + SIDE - 1) / SIDE;
    int64_t down = s->apart ? 1 : PIECES / s->p->batch, across;

    down = down < 1 ? 1 : down < blocks_m ? down : blocks_m;
    across = PIECES / s->p->batch / down;
    across = across < 1 ? 1 : across < blocks_n ? across : blocks_n;
    s->rows = (blocks_m + down - 1) / down * SIDE;
    s->columns = (blocks_n + across - 1) / across * SIDE;
    s->down = (s->m + s->rows - 1) / s->rows;
    s->across = (s->n + s->columns - 1) / s->columns;
}

static tn_status run_group(struct product *s)
{
    const struct tn__product *p = s->p;
    const int64_t bytes = s->steps * TN__BF16_PANEL;
    const double piece = (double)s->rows * (double)s->columns * (double)p->k;
    tn_status status = s->apart        ? TN_OK
                       : s->b.row == 2 ? tn_parallel_for(s->matrices_b * s->count,
                                                         1 + 65536 / bytes, pack_panels, s)
                                       : tn_parallel_for(s->matrices_b * s->steps,
                                                         1 + 64 / s->count, pack_steps, s);

    if (status != TN_OK)
        return status;
    return tn_parallel_for(
        p->batch * s->down * s->across,
        piece >= 4 * TN__PRODUCT_SMALL ? 1 : (int64_t)(4 * TN__PRODUCT_SMALL / piece) + 1, part, s);
}

static tn_status run_batch(const struct tn__product *p, struct product *s)
{
    tn_status status = TN_OK;

    s->p = p;
    s->turned = p->b.row == 2 && (p->m < p->n || p->a.column != 2);
    s->a = p->a;
    s->b = p->b;
    s->m = p->m;
    s->n = p->n;
    s->batch_a = p->batch_a;
    s->batch_b = p->batch_b;
    if (s->turned) {
        s->a = (struct tn__matrix){ p->b.at, p->b.column, p->b.row, TN_BF16, 2 };
        s->b = (struct tn__matrix){ p->a.at, p->a.column, p->a.row, TN_BF16, 2 };
        s->m = p->n;
        s->n = p->m;
        s->batch_a = p->batch_b;
        s->batch_b = p->batch_a;
    }
    s->matrices_b = s->batch_b ? p->batch : 1;
    s->steps = (p->k + DEEP - 1) / DEEP;
    s->count = (s->n + SIDE - 1) / SIDE * (SIDE / WIDE);
    s->apart = s->b.row != 2 && s->m <= APART && (s->batch_b || p->batch == 1);
    lay_out(s);
    s->panels = NULL;
    if (!s->apart)
        s->panels = tn__scratch_take(
            (size_t)(s->matrices_b * s->count * s->steps * TN__BF16_PANEL));
    status = s->panels || s->apart ? run_group(s) : TN_ERR_MEMORY;
    tn__scratch_give(s->panels);
    return status;
}

tn_status tn__bfloat16_run(const struct tn__product *p)
{
    const int64_t each = (p->m < p->n ? p->m : p->n) * p->k * 2;
    const int64_t group = PACKED / each > 1 ? PACKED / each : 1;
    struct product s = { .unit = tn__bfloat16_unit() };
    tn_status status = TN_OK;

    if (p->bias) {
        s.bias = tn__scratch_take((size_t)(p->n + SIDE) * sizeof(float));
        if (!s.bias)
            return TN_ERR_MEMORY;
        memset(s.bias + p->n, 0, SIDE * sizeof(float));
        tn__dtype_load(p->bias_dtype, TN__F32)(p->n, p->bias, p->bias_step, s.bias);
    }
    for (int64_t i = 0; i < p->batch && status == TN_OK; i += group) {
        struct tn__product some = *p;
        some.batch = p->batch - i < group ? p->batch - i : group;
        some.y.at += i * p->batch_y;
        some.a.at += i * p->batch_a;
        some.b.at += i * p->batch_b;
        status = run_batch(&some, &s);
    }
    tn__scratch_give(s.bias);
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * The steps of recurrent networks, recurrent_steps and its gradient. w_hh is packed once for all
 * steps, and without gradients kept between calls. The rows of the batch do not depend on each
 * other, so blocks of rows go through all steps in parallel; the shape alone determines the blocks.
 */
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "matmul/gemm.h"
#include "matmul/matmul.h"
#include "op/copy.h"
#include "simd/simd.h"

enum {
    FEW = 8,     /* with fewer rows in all steps together, packing w_hh does not pay */
    NARROW = 12, /* rows of a block */
    WIDE = 24,   /* rows of a block if there are MANY */
    MANY = 48
};

static const char *const kinds[] = { "tanh", "relu", "lstm", "gru" };
static const int64_t gates_in[] = { 1, 1, 4, 3 }, gates_kept[] = { 0, 0, 4, 4 };

static enum tn__rnn_kind kind_of(const char *name)
{
    int kind = 0;
    while (kind < TN__RNN_KINDS - 1 && strcmp(name, kinds[kind]) != 0)
        kind++;
    return (enum tn__rnn_kind)kind;
}

/* Rows of numbers for each step: row j of step t is at `at` + t * step + j * row bytes. */
struct rows {
    char *at; /* NULL: absent */
    int64_t step, row;
    void *copied; /* scratch memory, or NULL */
};

/* Returns the rows of a view [L, N, F] or [N, F], in place if the numbers of a row are contiguous,
 * otherwise copied. */
static tn_status open_rows(const tn_view *view, struct rows *out)
{
    *out = (struct rows){ 0 };
    if (!view || tn__span_view_count(view) == 0)
        return TN_OK;
    const int32_t last = view->ndim - 1;
    const int64_t item = tn__view_item(view);
    int64_t strides[3] = { 1, 1, 1 };
    tn_view dense = *view;

    out->at = tn__view_at(view);
    out->row = view->strides[last - 1] * item;
    out->step = last == 2 ? view->strides[0] * item : 0;
    if (view->strides[last] == 1 || view->shape[last] == 1)
        return TN_OK;
    for (int32_t d = last; d-- > 0;)
        strides[d] = strides[d + 1] * view->shape[d + 1];
    dense.strides = strides;
    dense.byte_offset = 0;
    dense.data = out->copied = tn__scratch_take((size_t)(strides[0] * view->shape[0] * item));
    if (!dense.data)
        return TN_ERR_MEMORY;
    out->at = dense.data;
    out->row = strides[last - 1] * item;
    out->step = last == 2 ? strides[0] * item : 0;
    return tn__copy_views(&dense, view);
}

/* Returns the contiguous rows of an output; absent if it is empty. */
static struct rows rows_of(const tn_view *view)
{
    const int64_t item = tn__view_item(view);
    struct rows out = { 0 };

    if (tn__span_view_count(view) == 0)
        return out;
    out.at = tn__view_at(view);
    out.row = view->shape[view->ndim - 1] * item;
    out.step = view->ndim == 3 ? out.row * view->shape[1] : 0;
    return out;
}

struct steps {
    enum tn__rnn_kind kind;
    enum tn__ct ct;
    bool reverse;
    int64_t length, n, size, item; /* L, N, H, bytes of a number */
    int64_t gates;                 /* numbers of a row of gx */
    int64_t block;                 /* rows of a block */
    const tn_view *lengths;        /* NULL: all sequences have `length` steps */
    struct rows h, c;              /* the states before the first step */
    /* The product with w_hh: c[rows][across] = a[rows][deep] b. With panels (g.b) by tn__gemm_run,
     * else by tn__matmul_run. */
    struct tn__gemm g;
    const tn_view *w_hh, *b_hh;
    char *panels, *bias; /* scratch memory; NULL: none, or panels that are kept */
    /* forward */
    struct rows gx, y, h_last, c_last, states, kept, cells;
    /* backward; `through` is the gradient of w_hh h, a part of the result or equal to ggx */
    struct rows gy, gh_last, gc_last, ggx, through, gh, gc;
};

/* Returns the bytes of w_hh in panels, as b of the product. `across`: the dimension of w_hh that is
 * the columns of b. */
static size_t panels_size(const tn_view *w, int32_t across)
{
    const int64_t n = w->shape[across], width = tn__gemm_width(tn__dtype_ct(tn_view_dtype(w)), n);

    return (size_t)((n + width - 1) / width * width * w->shape[1 - across] * tn__view_item(w));
}

static void write_panels(const tn_view *w, int32_t across, void *to)
{
    const enum tn__ct ct = tn__dtype_ct(tn_view_dtype(w));
    const int64_t n = w->shape[across];

    tn__gemm_pack(ct, w->shape[1 - across], n, tn__gemm_width(ct, n), tn__view_at(w),
                  w->strides[1 - across], w->strides[across], to);
}

/* Prepares the product with w_hh, whose panels may be `prepared`, and with the bias. */
static tn_status pack(struct steps *s, int32_t across, const void *prepared)
{
    const tn_view *w = s->w_hh;
    const int64_t deep = w->shape[1 - across], n = w->shape[across];
    const int64_t width = tn__gemm_width(s->ct, n), full = (n + width - 1) / width * width;

    s->g = (struct tn__gemm){ .ct = s->ct,
                              .n = n,
                              .k = deep,
                              .a_step = deep,
                              .b_step = width,
                              .b_panel = deep * width,
                              .width = width,
                              .ldc = n };
    if (s->length * s->n < FEW)
        return TN_OK;
    s->g.b = prepared;
    if (!prepared) {
        s->g.b = s->panels = tn__scratch_take(panels_size(w, across));
        if (!s->panels)
            return TN_ERR_MEMORY;
        write_panels(w, across, s->panels);
    }
    if (!s->b_hh)
        return TN_OK;
    s->bias = tn__scratch_take((size_t)((full + width) * s->item));
    if (!s->bias)
        return TN_ERR_MEMORY;
    memset(s->bias, 0, (size_t)((full + width) * s->item));
    tn__dtype_load(tn__dtype_of_ct(s->ct), s->ct)(n, tn__view_at(s->b_hh),
                                                  s->b_hh->strides[0] * s->item, s->bias);
    s->g.bias = s->bias;
    return TN_OK;
}

/* c = a b + bias for `rows` contiguous rows of a; c += a b with `add`. `spare` is memory of the
 * size of c. */
static tn_status multiply(const struct steps *s, int32_t across, const char *a, int64_t rows,
                          bool add, char *c, char *spare)
{
    if (s->g.b) {
        struct tn__gemm g = s->g;
        g.a = a;
        g.m = rows;
        g.c = c;
        g.add = add;
        tn__gemm_run(&g);
        return TN_OK;
    }
    int64_t shape[2] = { rows, s->g.n }, strides[2] = { s->g.n, 1 };
    const tn_dtype dtype = tn__dtype_of_ct(s->ct);
    tn_view y = *s->w_hh;
    y.data = add ? spare : c;
    y.byte_offset = 0;
    y.shape = shape;
    y.strides = strides;
    struct tn__product p = { .batch = 1, .m = rows, .n = s->g.n, .k = s->g.k, .ct = s->ct };
    p.y = tn__matrix_of(&y, 0, 1);
    p.a = (struct tn__matrix){ (char *)(uintptr_t)a, s->g.k * s->item, s->item, dtype, s->item };
    p.b = tn__matrix_of(s->w_hh, 1 - across, across);
    if (s->b_hh) {
        p.bias = tn__view_at(s->b_hh);
        p.bias_step = s->b_hh->strides[0] * s->item;
        p.bias_dtype = dtype;
    }
    tn_status status = tn__matmul_run(&p, &y);
    if (add && status == TN_OK)
        tn__gemm_add_row(s->ct, rows * s->g.n, spare, c);
    return status;
}

/* Returns the address of row `row` of step t. */
static char *row_at(const struct rows *r, int64_t t, int64_t row)
{
    return r->at ? r->at + t * r->step + row * r->row : NULL;
}

/* Copies `count` rows to contiguous memory; zeros if there are none. */
static void read_rows(const struct steps *s, const struct rows *from, int64_t first, int64_t count,
                      char *to)
{
    const int64_t bytes = s->size * s->item;
    for (int64_t j = 0; j < count; j++, to += bytes)
        if (from->at)
            memcpy(to, row_at(from, 0, first + j), (size_t)bytes);
        else
            memset(to, 0, (size_t)bytes);
}

static bool ended(const struct steps *s, int64_t row, int64_t t)
{
    return s->lengths && t >= tn__kernel_int(s->lengths, row);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* One step for one row. `h` is the state before, `c` the cell before. */
static void forward_row(const struct steps *s, int64_t t, int64_t row, const char *gh,
                        const char *h, char *c, char *spare)
{
    const size_t bytes = (size_t)(s->size * s->item);
    char *kept = row_at(&s->kept, t, row), *cell = row_at(&s->cells, t, row),
         *y = row_at(&s->y, t, row);

    if (ended(s, row, t)) {
        memcpy(y, h, bytes);
        if (kept)
            memset(kept, 0, (size_t)gates_kept[s->kind] * bytes);
        if (cell)
            memcpy(cell, c, bytes);
        return;
    }
    tn__simd.rnn->forward[s->kind][s->ct](
        s->size, &(struct tn__rnn_step){ .gx = row_at(&s->gx, t, row),
                                         .gh = gh,
                                         .before = s->kind == TN__RNN_LSTM ? c : h,
                                         .gates = kept ? kept : spare,
                                         .c = c,
                                         .h = y });
    if (cell)
        memcpy(cell, c, bytes);
}

static tn_status forward_block(const struct steps *s, int64_t first, int64_t count, char *space)
{
    const int64_t bytes = s->size * s->item, wide = s->gates * s->item;
    char *h0 = space, *c = h0 + s->block * bytes, *gh = c + s->block * bytes,
         *spare = gh + s->block * wide;
    const char *h = h0;
    tn_status status = TN_OK;

    read_rows(s, &s->h, first, count, h0);
    read_rows(s, &s->c, first, count, c);
    for (int64_t i = 0; i < s->length && status == TN_OK; i++) {
        const int64_t t = s->reverse ? s->length - 1 - i : i;
        status = multiply(s, 0, h, count, false, gh, NULL);
        for (int64_t j = 0; j < count; j++)
            forward_row(s, t, first + j, gh + j * wide, h + j * bytes, c + j * bytes, spare);
        h = row_at(&s->y, t, first);
        if (s->states.at)
            memcpy(row_at(&s->states, t, first), h, (size_t)(count * bytes));
    }
    memcpy(row_at(&s->h_last, 0, first), h, (size_t)(count * bytes));
    if (s->c_last.at)
        memcpy(row_at(&s->c_last, 0, first), c, (size_t)(count * bytes));
    return status;
}

/* ---- backward -------------------------------------------------------------------------------- */

/* The backward pass of one step for one row. `before` is the state or, for an LSTM, the cell before
 * the step. gh and gc are the gradients of h and c after the step; they are replaced by the
 * gradients of h and c before it, except that gh lacks the product with w_hh. */
static void backward_row(const struct steps *s, int64_t t, int64_t row, const char *before,
                         char *gh, char *gc)
{
    const size_t bytes = (size_t)(s->gates * s->item);
    char *gx = row_at(&s->ggx, t, row), *through = row_at(&s->through, t, row);

    if (s->gy.at)
        tn__gemm_add_row(s->ct, s->size, row_at(&s->gy, t, row), gh);
    if (ended(s, row, t)) {
        memset(gx, 0, bytes);
        memset(through, 0, bytes);
        return;
    }
    tn__simd.rnn->backward[s->kind][s->ct](
        s->size, &(struct tn__rnn_back){ .gates = row_at(&s->kept, t, row),
                                         .c = row_at(&s->cells, t, row),
                                         .before = before,
                                         .h = row_at(&s->states, t, row),
                                         .gradient = gh,
                                         .gradient_c = gc,
                                         .gx = gx,
                                         .through = through });
}

static tn_status backward_block(const struct steps *s, int64_t first, int64_t count, char *space)
{
    const int64_t bytes = s->size * s->item;
    char *before = space, *gh = before + s->block * bytes, *gc = gh + s->block * bytes;
    const struct rows *line = s->kind == TN__RNN_LSTM ? &s->cells : &s->states;
    tn_status status = TN_OK;

    read_rows(s, s->kind == TN__RNN_LSTM ? &s->c : &s->h, first, count, before);
    read_rows(s, &s->gh_last, first, count, gh);
    read_rows(s, &s->gc_last, first, count, gc);
    for (int64_t i = s->length; i-- > 0 && status == TN_OK;) {
        const int64_t t = s->reverse ? s->length - 1 - i : i, last = s->reverse ? t + 1 : t - 1;
        for (int64_t j = 0; j < count; j++)
            backward_row(s, t, first + j,
                         i > 0 ? row_at(line, last, first + j) : before + j * bytes, gh + j * bytes,
                         gc + j * bytes);
        status = multiply(s, 1, row_at(&s->through, t, first), count, true, gh,
                          gc + s->block * bytes);
    }
    memcpy(row_at(&s->gh, 0, first), gh, (size_t)(count * bytes));
    if (s->gc.at)
        memcpy(row_at(&s->gc, 0, first), gc, (size_t)(count * bytes));
    return status;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static tn_status blocks(void *user, int64_t begin, int64_t end)
{
    const struct steps *s = user;
    /* for each row: three states, and the gates, which only forward needs here */
    const int64_t numbers = 3 * s->size + s->gates;
    char *space = tn__scratch_take((size_t)((s->block * numbers + 4 * s->size) * s->item));
    tn_status status = space ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = begin; i < end && status == TN_OK; i++) {
        int64_t first = i * s->block, rest = s->n - first;
        rest = rest < s->block ? rest : s->block;
        status = s->ggx.at ? backward_block(s, first, rest, space)
                           : forward_block(s, first, rest, space);
    }
    tn__scratch_give(space);
    return status;
}

static tn_status run_steps(struct steps *s)
{
    s->block = !s->g.b ? s->n : s->n < MANY ? NARROW : WIDE;
    if (s->block >= s->n) {
        s->block = s->n;
        return blocks(s, 0, 1);
    }
    return tn_parallel_for((s->n + s->block - 1) / s->block, 1, blocks, s);
}

static void begin(const tn_call *call, const char *kind, bool reverse, const tn_view *shape,
                  struct steps *s)
{
    *s = (struct steps){ .kind = kind_of(kind), .reverse = reverse };
    s->ct = tn__dtype_ct(call->dtype);
    s->item = tn__view_item(shape);
    s->length = shape->shape[0];
    s->n = shape->shape[1];
    s->size = shape->shape[2];
    s->gates = gates_in[s->kind] * s->size;
}

static tn_status run_recurrent_steps(const tn_call *call)
{
    const tn_recurrent_steps_options *o = call->options;
    struct steps s;
    tn_status status;

    begin(call, o->kind, o->reverse, call->out[0], &s);

    s.w_hh = call->in[3];
    s.b_hh = call->in[4];
    s.lengths = call->in[5];
    s.y = rows_of(call->out[0]);
    s.h_last = rows_of(call->out[1]);
    s.c_last = rows_of(call->out[2]);
    s.states = rows_of(call->out[3]);
    s.kept = rows_of(call->out[4]);
    s.cells = rows_of(call->out[5]);
    if (!s.y.at)
        return TN_OK;
    status = open_rows(call->in[0], &s.gx);
    if (status == TN_OK)
        status = open_rows(call->in[1], &s.h);
    if (status == TN_OK)
        status = open_rows(call->in[2], &s.c);
    if (status == TN_OK)
        status = pack(&s, 0, call->prepared);
    if (status == TN_OK)
        status = run_steps(&s);
    tn__scratch_give(s.bias);
    tn__scratch_give(s.panels);
    tn__scratch_give(s.c.copied);
    tn__scratch_give(s.h.copied);
    tn__scratch_give(s.gx.copied);
    return status;
}

/* ---- the panels of w_hh, kept between calls -------------------------------------------------- */

enum { W_HH = 3, KEPT_LEAST = 1024 }; /* the input w_hh; elements for which keeping pays */

static uint64_t key_recurrent_steps(const tn_call *call)
{
    const tn_view *y = call->out[0], *w = call->in[W_HH];

    return y->shape[0] * y->shape[1] >= FEW && w->shape[0] * w->shape[1] >= KEPT_LEAST;
}

static tn_status prepare_recurrent_steps(const tn_call *call, tn_prepared_data *out)
{
    const tn_view *w = call->in[W_HH];

    if (!(call->constant >> W_HH & 1) || key_recurrent_steps(call) == 0)
        return TN_OK;
    out->bytes = panels_size(w, 0);
    out->data = tn__scratch_own(out->bytes);
    if (!out->data)
        return TN_ERR_MEMORY;
    write_panels(w, 0, out->data);
    return TN_OK;
}

static void release(const tn_kernel_def *kernel, void *data)
{
    (void)kernel;
    tn__scratch_free(data);
}

/* Gradients of gates and cells exist only in second derivatives. */
static bool supports_recurrent_steps_grad(const tn_call *call, char *reason, size_t size)
{
    if (!call->in[10] && !call->in[11])
        return true;
    tn_snprint(reason, size, "gradients of gates and cells are decomposed");
    return false;
}

static tn_status run_recurrent_steps_grad(const tn_call *call)
{
    const tn_recurrent_steps_grad_options *o = call->options;
    struct steps s;
    tn_status status = TN_OK;
    struct rows *const from[] = { &s.states, &s.h, NULL,  &s.kept,    &s.cells,
                                  &s.c,      NULL, &s.gy, &s.gh_last, &s.gc_last };

    begin(call, o->kind, o->reverse, call->in[0], &s);
    s.w_hh = call->in[2];
    s.lengths = call->in[6];
    s.ggx = rows_of(call->out[0]);
    s.through = s.kind == TN__RNN_GRU ? rows_of(call->out[1]) : s.ggx;
    s.gh = rows_of(call->out[2]);
    s.gc = rows_of(call->out[3]);
    if (!s.ggx.at)
        return TN_OK;
    for (size_t i = 0; i < sizeof from / sizeof *from && status == TN_OK; i++)
        if (from[i])
            status = open_rows(call->in[i], from[i]);
    if (status == TN_OK)
        status = pack(&s, 1, NULL);
    if (status == TN_OK)
        status = run_steps(&s);
    tn__scratch_give(s.panels);
    for (size_t i = sizeof from / sizeof *from; i-- > 0;)
        if (from[i])
            tn__scratch_give(from[i]->copied);
    return status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_KEEPS(recurrent_steps, TN__F32_F64, .weights = 1 << W_HH,
                     .prepare_key = key_recurrent_steps, .prepare = prepare_recurrent_steps,
                     .release = release),
    TN__KERNEL_SUPPORTS(recurrent_steps_grad, TN__F32_F64, supports_recurrent_steps_grad),
};
TN__KERNEL_TABLE(rnn);

/* SPDX-License-Identifier: MIT
 *
 * recurrent_steps and its gradient: the steps of one direction of a recurrent layer, without the
 * products with x, which are one product for all steps (rnn.c). The derivative goes back through
 * the gates that the steps kept; the gradient of w_hh is one product over all steps. A device may
 * have kernels for both operators; here are the decompositions. */
#include "rnn.h"

static const char *const kinds[] = { "tanh", "relu", "lstm", "gru" };
static const int64_t gates_in[] = { 1, 1, 4, 3 }, gates_kept[] = { 0, 0, 4, 4 };

const char *tn__rnn_kind_name(enum tn__rnn_kind kind)
{
    return kinds[kind];
}

static enum tn__rnn_kind kind_of(const char *name)
{
    int kind = 0;

    while (kind < TN__RNN_KINDS && (name == NULL || strcmp(name, kinds[kind]) != 0))
        kind++;
    return (enum tn__rnn_kind)kind;
}

/* ---- inference ---- */

static tn_status check_kind(const char *name, enum tn__rnn_kind *kind)
{
    *kind = kind_of(name);
    return *kind != TN__RNN_KINDS
               ? TN_OK
               : tn_fail(TN_ERR_VALUE, "kind: unknown, got %q; expected tanh, relu, lstm or gru",
                         name);
}

/* Fails unless `x` is absent or has the given shape. With `needed`, it must be present. */
static tn_status check_shape(const tn_view *x, const char *name, bool needed, tn_ints shape)
{
    bool fits = x != NULL ? x->ndim == shape.count : !needed;
    char text[TN__TEXT], text_shape[TN__TEXT];

    for (int32_t d = 0; x != NULL && fits && d < x->ndim; d++)
        fits = x->shape[d] == shape.at[d];
    return fits ? TN_OK
                : tn_fail(TN_ERR_RUNTIME, "%s: wrong shape, got %s; expected %s", name,
                          x != NULL ? tn__common_text(text, tn__common_shape(x)) : "none",
                          tn__common_text(text_shape, shape));
}

static tn_status absent(const tn_view *x, const char *name, bool allowed)
{
    return x == NULL || allowed
               ? TN_OK
               : tn_fail(TN_ERR_VALUE, "%s: not used by this kind; expected none", name);
}

static tn_status recurrent_steps_infer(tn_infer *infer)
{
    static const char *const names[] = { "gx", "h", "c", "w_hh", "b_hh" };
    const tn_recurrent_steps_options *o = infer->options;
    const tn_view *gx = infer->in[0], *h = infer->in[1];
    tn_dtype dtype = tn_view_dtype(gx);
    char text[TN__TEXT], text_h[TN__TEXT];
    enum tn__rnn_kind kind;
    int64_t length, n, size;
    tn_status status = check_kind(o->kind, &kind);

    if (status != TN_OK)
        return status;
    if (gx->ndim != 3 || gx->shape[0] < 1 || h->ndim != 2 || h->shape[0] != gx->shape[1] ||
        h->shape[1] > INT64_MAX / 4 || gx->shape[2] != gates_in[kind] * h->shape[1])
        return tn_fail(
            TN_ERR_RUNTIME,
            "gx or h: wrong shape, got %s and %s; expected [L, N, %lld H] with L at least 1, and "
            "[N, H]",
            tn__common_text(text, tn__common_shape(gx)),
            tn__common_text(text_h, tn__common_shape(h)), (long long)gates_in[kind]);
    length = gx->shape[0];
    n = h->shape[0];
    size = h->shape[1];
    status = absent(infer->in[2], "c", kind == TN__RNN_LSTM);
    if (status == TN_OK)
        status = check_shape(infer->in[2], "c", kind == TN__RNN_LSTM, TN_SHAPE(n, size));
    if (status == TN_OK)
        status = check_shape(infer->in[3], "w_hh", true, TN_SHAPE(gx->shape[2], size));
    if (status == TN_OK)
        status = check_shape(infer->in[4], "b_hh", false, TN_SHAPE(gx->shape[2]));
    if (status == TN_OK)
        status = check_shape(infer->in[5], "lengths", false, TN_SHAPE(n));
    for (int i = 1; i < 5 && status == TN_OK; i++)
        status = tn__common_same_dtype(gx, "gx", infer->in[i], names[i]);
    if (status != TN_OK)
        return status;
    for (int32_t i = 2; i < 6; i++)
        tn__common_plain(&infer->out[i], dtype, TN_SHAPE(0));
    tn__common_plain(&infer->out[0], dtype, TN_SHAPE(length, n, size));
    tn__common_plain(&infer->out[1], dtype, TN_SHAPE(n, size));
    if (kind == TN__RNN_LSTM)
        tn__common_plain(&infer->out[2], dtype, TN_SHAPE(n, size));
    if (o->keep)
        tn__common_plain(&infer->out[3], dtype, TN_SHAPE(length, n, size));
    if (o->keep && gates_kept[kind] > 0)
        tn__common_plain(&infer->out[4], dtype, TN_SHAPE(length, n, gates_kept[kind] * size));
    if (o->keep && kind == TN__RNN_LSTM)
        tn__common_plain(&infer->out[5], dtype, TN_SHAPE(length, n, size));
    return TN_OK;
}

static tn_status recurrent_steps_grad_infer(tn_infer *infer)
{
    static const char *const names[] = {
        "states",  "h",  "w_hh",    "gates",   "cells",  "c",
        "lengths", "gy", "gh_last", "gc_last", "ggates", "gcells"
    };
    const tn_recurrent_steps_grad_options *o = infer->options;
    const tn_view *states = infer->in[0];
    enum tn__rnn_kind kind;
    char text[TN__TEXT];
    tn_status status = check_kind(o->kind, &kind);
    int64_t length, n, size;

    if (status != TN_OK)
        return status;
    if (states->ndim != 3 || states->shape[0] < 1 || states->shape[2] > INT64_MAX / 4)
        return tn_fail(TN_ERR_RUNTIME,
                       "states: wrong shape, got %s; expected [L, N, H] with L at least 1",
                       tn__common_text(text, tn__common_shape(states)));
    length = states->shape[0];
    n = states->shape[1];
    size = states->shape[2];
    bool lstm = kind == TN__RNN_LSTM, gated = gates_kept[kind] > 0;
    const struct {
        bool used, needed;
        tn_ints shape;
    } rows[] = {
        { true, true, TN_SHAPE(length, n, size) },
        { true, true, TN_SHAPE(n, size) },
        { true, true, TN_SHAPE(gates_in[kind] * size, size) },
        { gated, gated, TN_SHAPE(length, n, gates_kept[kind] * size) },
        { lstm, lstm, TN_SHAPE(length, n, size) },
        { lstm, lstm, TN_SHAPE(n, size) },
        { true, false, TN_SHAPE(n) },
        { true, false, TN_SHAPE(length, n, size) },
        { true, false, TN_SHAPE(n, size) },
        { lstm, false, TN_SHAPE(n, size) },
        { gated, false, TN_SHAPE(length, n, gates_kept[kind] * size) },
        { lstm, false, TN_SHAPE(length, n, size) },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == TN_OK; i++) {
        status = absent(infer->in[i], names[i], rows[i].used);
        if (status == TN_OK)
            status = check_shape(infer->in[i], names[i], rows[i].needed, rows[i].shape);
    }
    for (size_t i = 1; i < sizeof rows / sizeof *rows && status == TN_OK; i++)
        if (i != 6) /* lengths */
            status = tn__common_same_dtype(states, "states", infer->in[i], names[i]);
    if (status != TN_OK)
        return status;
    tn_dtype dtype = tn_view_dtype(states);
    tn__common_plain(&infer->out[0], dtype, TN_SHAPE(length, n, gates_in[kind] * size));
    tn__common_plain(&infer->out[1], dtype,
                     kind == TN__RNN_GRU ? TN_SHAPE(length, n, 3 * size) : TN_SHAPE(0));
    tn__common_plain(&infer->out[2], dtype, TN_SHAPE(n, size));
    tn__common_plain(&infer->out[3], dtype, lstm ? TN_SHAPE(n, size) : TN_SHAPE(0));
    return TN_OK;
}

/* ---- forward ---- */

tn_tensor *tn__rnn_part(tn_tensor *gates, int64_t index, int64_t count)
{
    int64_t each;

    if (gates == NULL)
        return NULL;
    each = tn_tensor_size(gates, -1) / count;
    return tn_narrow(gates, -1, index * each, each);
}

/* Returns bool tensors [L, N, 1]: whether step t is before the end of its sequence. TN_NONE without
 * lengths. */
static tn_tensor *steps_within(tn_tensor *lengths, int64_t length)
{
    if (lengths == TN_NONE)
        return TN_NONE;
    return tn_gt(tn_unsqueeze(lengths, 1),
                 tn_reshape(tn_arange(lengths, 0, length, 1, TN_I64), TN_SHAPE(length, 1, 1)));
}

/* One step: *h and *c become the next states, and *gates what the derivative needs; TN_NONE if the
 * kind has no gates. */
static void step(enum tn__rnn_kind kind, tn_tensor *gx, tn_tensor *gh, tn_tensor **h, tn_tensor **c,
                 tn_tensor **gates)
{
    tn_tensor *all[4];

    *gates = TN_NONE;
    if (kind == TN__RNN_LSTM) {
        tn_tensor *sum = tn_add(gx, gh);

        for (int i = 0; i < 4; i++)
            all[i] = i == 2 ? tn_tanh(tn__rnn_part(sum, i, 4))
                            : tn_sigmoid(tn__rnn_part(sum, i, 4));
        *c = tn_add(tn_mul(all[1], *c), tn_mul(all[0], all[2]));
        *h = tn_mul(all[3], tn_tanh(*c));
    } else if (kind == TN__RNN_GRU) {
        for (int i = 0; i < 2; i++)
            all[i] = tn_sigmoid(tn_add(tn__rnn_part(gx, i, 3), tn__rnn_part(gh, i, 3)));
        all[3] = tn__rnn_part(gh, 2, 3);
        all[2] = tn_tanh(tn_add(tn__rnn_part(gx, 2, 3), tn_mul(all[0], all[3])));
        *h = tn_add(all[2], tn_mul(all[1], tn_sub(*h, all[2])));
    } else {
        tn_tensor *sum = tn_add(gx, gh);

        *h = kind == TN__RNN_RELU ? tn_relu(sum) : tn_tanh(sum);
        return;
    }
    *gates = *h != NULL ? tn_cat(all, 4, -1) : NULL;
}

static tn_status recurrent_steps_decompose(const tn_decompose *call)
{
    const tn_recurrent_steps_options *o = call->options;
    enum tn__rnn_kind kind = kind_of(o->kind);
    tn_tensor *gx = call->in[0], *h = call->in[1], *c = call->in[2], *lengths = call->in[5];
    int64_t length = tn_tensor_size(gx, 0);
    tn_tensor *within = steps_within(lengths, length), **states, **gates, **cells;
    tn_status status = TN_OK;

    if (within == NULL)
        return tn_error_last_code();
    states = tn_calloc((size_t)length, 3 * sizeof *states);
    if (states == NULL)
        return tn_error_last_code();
    gates = states + length;
    cells = gates + length;
    for (int64_t i = 0; i < length && status == TN_OK; i++) {
        int64_t t = o->reverse ? length - 1 - i : i;
        tn_tensor *old_h = h, *old_c = c, *made;

        step(kind, tn_select(gx, 0, t), tn_linear(h, call->in[3], call->in[4]), &h, &c, &made);
        if (within != TN_NONE) {
            tn_tensor *now = tn_select(within, 0, t);

            h = tn_where(now, h, old_h);
            if (kind == TN__RNN_LSTM)
                c = tn_where(now, c, old_c);
            if (made != TN_NONE)
                made = tn_masked_fill(made, tn_logical_not(now), 0);
        }
        states[t] = h;
        gates[t] = made;
        cells[t] = c;
        if (h == NULL || c == NULL || made == NULL)
            status = tn_error_last_code();
    }
    if (status == TN_OK) {
        call->out[0] = tn_stack(states, length, 0);
        call->out[1] = h;
        call->out[2] = kind == TN__RNN_LSTM ? c : tn__common_zeros(gx, TN_SHAPE(0));
        call->out[3] = o->keep ? tn_stack(states, length, 0) : tn__common_zeros(gx, TN_SHAPE(0));
        call->out[4] = o->keep && gates_kept[kind] > 0 ? tn_stack(gates, length, 0)
                                                       : tn__common_zeros(gx, TN_SHAPE(0));
        call->out[5] = o->keep && kind == TN__RNN_LSTM ? tn_stack(cells, length, 0)
                                                       : tn__common_zeros(gx, TN_SHAPE(0));
        for (int i = 0; i < 6; i++)
            if (call->out[i] == NULL)
                status = tn_error_last_code();
    }
    tn_free(states);
    return status;
}

/* ---- backward ---- */

/* Gradients of a step that are known before its backward pass. */
struct slopes {
    tn_tensor *h, *c, *gates, *cells; /* TN_NONE stands for zeros */
};

static tn_tensor *plus(tn_tensor *a, tn_tensor *b)
{
    return a == TN_NONE ? b : b == TN_NONE ? a : tn_add(a, b);
}

/* 1 - x */
static tn_tensor *rest(tn_tensor *x)
{
    return tn_add_scalar(tn_neg(x), 1);
}

/* The gradient before a sigmoid or tanh with the result y. */
static tn_tensor *before_sigmoid(tn_tensor *gy, tn_tensor *y)
{
    return tn_mul(gy, tn_mul(y, rest(y)));
}

static tn_tensor *before_tanh(tn_tensor *gy, tn_tensor *y)
{
    return tn_mul(gy, rest(tn_square(y)));
}

static tn_tensor *more(tn_tensor *gradient, tn_tensor *gates, int64_t index)
{
    return gates == TN_NONE ? gradient : tn_add(gradient, tn__rnn_part(gates, index, 4));
}

/* The tensors of one step: its results, the states before it, and whether rows are within their
 * sequences (TN_NONE: all are). */
struct moment {
    tn_tensor *h, *h_before, *c, *c_before, *gates, *now;
};

/* The backward pass of one step of an LSTM. *direct becomes the gradient of the state before,
 * without the part through w_hh; g->c the gradient of the cell before. Returns the gradient of the
 * gates before their functions. */
static tn_tensor *back_lstm(const struct moment *m, struct slopes *g, tn_tensor **direct)
{
    tn_tensor *i = tn__rnn_part(m->gates, 0, 4), *f = tn__rnn_part(m->gates, 1, 4),
              *n = tn__rnn_part(m->gates, 2, 4), *o = tn__rnn_part(m->gates, 3, 4),
              *bent = tn_tanh(m->c), *all[4];
    tn_tensor *gc = plus(before_tanh(tn_mul(g->h, o), bent), plus(g->c, g->cells));

    all[0] = before_sigmoid(more(tn_mul(gc, n), g->gates, 0), i);
    all[1] = before_sigmoid(more(tn_mul(gc, m->c_before), g->gates, 1), f);
    all[2] = before_tanh(more(tn_mul(gc, i), g->gates, 2), n);
    all[3] = before_sigmoid(more(tn_mul(g->h, bent), g->gates, 3), o);
    *direct = TN_NONE;
    gc = tn_mul(gc, f);
    if (m->now != TN_NONE)
        gc = tn_where(m->now, gc,
                      plus(plus(g->c, g->cells), tn__common_nothing(gc, tn_tensor_shape(gc))));
    g->c = gc;
    return gc == NULL ? NULL : tn_cat(all, 4, -1);
}

/* Like back_lstm() for a GRU, which has no cell. *through becomes the gradient of w_hh h + b_hh. */
static tn_tensor *back_gru(const struct moment *m, const struct slopes *g, tn_tensor **direct,
                           tn_tensor **through)
{
    tn_tensor *r = tn__rnn_part(m->gates, 0, 4), *z = tn__rnn_part(m->gates, 1, 4),
              *n = tn__rnn_part(m->gates, 2, 4), *u = tn__rnn_part(m->gates, 3, 4), *all[3], *x;

    all[2] = before_tanh(more(tn_mul(g->h, rest(z)), g->gates, 2), n);
    all[0] = before_sigmoid(more(tn_mul(all[2], u), g->gates, 0), r);
    all[1] = before_sigmoid(more(tn_mul(g->h, tn_sub(m->h_before, n)), g->gates, 1), z);
    *direct = tn_mul(g->h, z);
    if (*direct == NULL || all[0] == NULL || all[1] == NULL)
        return NULL;
    x = tn_cat(all, 3, -1);
    all[2] = more(tn_mul(all[2], r), g->gates, 3);
    *through = all[2] == NULL ? NULL : tn_cat(all, 3, -1);
    return x;
}

/* The backward pass of one step: g->h and g->c become the gradients of the states before it. */
static tn_status back(enum tn__rnn_kind kind, const struct moment *m, tn_tensor *w_hh,
                      struct slopes *g, tn_tensor **gx, tn_tensor **gh)
{
    tn_tensor *direct = TN_NONE, *through = NULL, *x;

    if (kind == TN__RNN_LSTM)
        x = back_lstm(m, g, &direct);
    else if (kind == TN__RNN_GRU)
        x = back_gru(m, g, &direct, &through);
    else
        x = kind == TN__RNN_RELU ? tn_relu_grad(g->h, m->h) : before_tanh(g->h, m->h);
    if (x == NULL || (kind == TN__RNN_GRU && through == NULL))
        return tn_error_last_code();
    if (m->now != TN_NONE) {
        tn_tensor *past = tn_logical_not(m->now);

        x = tn_masked_fill(x, past, 0);
        through = through != NULL ? tn_masked_fill(through, past, 0) : NULL;
        direct = tn_where(
            m->now, direct != TN_NONE ? direct : tn__common_nothing(g->h, tn_tensor_shape(g->h)),
            g->h);
    }
    *gx = x;
    *gh = kind == TN__RNN_GRU ? through : TN_NONE;
    g->h = plus(direct, tn_matmul(kind == TN__RNN_GRU ? through : x, w_hh));
    return g->h != NULL && g->c != NULL && *gx != NULL && *gh != NULL ? TN_OK
                                                                      : tn_error_last_code();
}

static tn_tensor *at(tn_tensor *x, int64_t t)
{
    return x == TN_NONE ? x : tn_select(x, 0, t);
}

static tn_status recurrent_steps_grad_decompose(const tn_decompose *call)
{
    const tn_recurrent_steps_grad_options *o = call->options;
    enum tn__rnn_kind kind = kind_of(o->kind);
    tn_tensor *const *in = call->in, *states = in[0], *cells = in[4], **gx, **gh;
    int64_t length = tn_tensor_size(states, 0);
    tn_tensor *within = steps_within(in[6], length), *none;
    struct slopes g = { in[8], in[9], TN_NONE, TN_NONE };
    tn_status status = TN_OK;

    none = tn__common_nothing(states,
                              TN_SHAPE(tn_tensor_size(states, 1), tn_tensor_size(states, 2)));
    if (within == NULL || none == NULL)
        return tn_error_last_code();
    gx = tn_calloc((size_t)length, 2 * sizeof(tn_tensor *));
    if (gx == NULL)
        return tn_error_last_code();
    gh = gx + length;
    for (int64_t i = length; i-- > 0 && status == TN_OK;) {
        int64_t t = o->reverse ? length - 1 - i : i, before = o->reverse ? t + 1 : t - 1;
        struct moment m = { at(states, t), i > 0 ? at(states, before) : in[1],
                            at(cells, t),  i > 0 ? at(cells, before) : in[5],
                            at(in[3], t),  at(within, t) };

        g.h = plus(plus(g.h, at(in[7], t)), none);
        g.gates = at(in[10], t);
        g.cells = at(in[11], t);
        status = g.h != NULL ? back(kind, &m, in[2], &g, &gx[t], &gh[t]) : tn_error_last_code();
    }
    if (status == TN_OK) {
        call->out[0] = tn_stack(gx, length, 0);
        call->out[1] = kind == TN__RNN_GRU ? tn_stack(gh, length, 0)
                                           : tn__common_zeros(states, TN_SHAPE(0));
        call->out[2] = g.h;
        call->out[3] = kind == TN__RNN_LSTM ? g.c : tn__common_zeros(states, TN_SHAPE(0));
        for (int i = 0; i < 4; i++)
            if (call->out[i] == NULL)
                status = tn_error_last_code();
    }
    tn_free(gx);
    return status;
}

/* ---- derivative ---- */

/* Returns x [L, N, F] as [(count N), F]: `count` steps from `first` on. */
static tn_tensor *rows(tn_tensor *x, int64_t first, int64_t count)
{
    tn_tensor *some = tn_narrow(x, 0, first, count);

    return some == NULL
               ? NULL
               : tn_reshape(some, TN_SHAPE(count * tn_tensor_size(x, 1), tn_tensor_size(x, 2)));
}

static tn_tensor *product(tn_tensor *g, tn_tensor *h)
{
    return tn_matmul(tn_transpose(g, 0, 1), h);
}

/* The gradient of w_hh: g^T h over all steps, h the states before the steps. */
static tn_tensor *weight_back(tn_tensor *g, tn_tensor *h, tn_tensor *states, bool reverse)
{
    int64_t length = tn_tensor_size(g, 0);
    tn_tensor *first = product(rows(g, reverse ? length - 1 : 0, 1), h);

    return length == 1 ? first
                       : tn_add(first, product(rows(g, reverse ? 0 : 1, length - 1),
                                               rows(states, reverse ? 1 : 0, length - 1)));
}

static tn_status recurrent_steps_derive(tn_derive *d)
{
    const tn_recurrent_steps_options *o = d->options;
    enum tn__rnn_kind kind = kind_of(o->kind);
    tn_tensor *h = d->in[1], *c = d->in_meta[2].ndim < 0 ? TN_NONE : d->in[2],
              *lengths = d->in_meta[5].ndim < 0 ? TN_NONE : d->in[5], *gx, *gh, *gh0, *gc0;
    bool gated = gates_kept[kind] > 0, lstm = kind == TN__RNN_LSTM;

    if (!o->keep)
        return tn_fail(TN_ERR_VALUE, "recurrent_steps: keep: False, the gradient needs what the "
                                     "steps keep; expected True");
    if (tn_recurrent_steps_grad(
            d->out[3], h, d->in[3], gated ? d->out[4] : TN_NONE, lstm ? d->out[5] : TN_NONE, c,
            lengths, plus(d->gout[0], d->gout[3]), d->gout[1], lstm ? d->gout[2] : TN_NONE,
            gated ? d->gout[4] : TN_NONE, lstm ? d->gout[5] : TN_NONE, o->kind, &gx, &gh, &gh0,
            &gc0, o->reverse) != TN_OK)
        return tn_error_last_code();
    if (kind != TN__RNN_GRU)
        gh = gx;
    if (tn__needs(d, 0))
        d->gin[0] = gx;
    if (tn__needs(d, 1))
        d->gin[1] = gh0;
    if (tn__needs(d, 2))
        d->gin[2] = gc0;
    if (tn__needs(d, 3))
        d->gin[3] = weight_back(gh, h, d->out[3], o->reverse);
    if (tn__needs(d, 4))
        d->gin[4] = tn_sum_to(gh, tn__common_in_shape(d, 4));
    return TN_OK;
}

TN__OP(recurrent_steps, .infer = recurrent_steps_infer, .derive = recurrent_steps_derive,
       .decompose = recurrent_steps_decompose);
TN__OP(recurrent_steps_grad, .infer = recurrent_steps_grad_infer,
       .decompose = recurrent_steps_grad_decompose);

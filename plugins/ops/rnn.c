/* SPDX-License-Identifier: MIT
 *
 * Recurrent networks: single steps (cells), and sequences for one direction of one layer. */
#include "rnn.h"

/* ---- cells ---- */

/* Checks the shapes of w_ih, w_hh, b_ih and b_hh, each of which has `rows` rows. */
static tn_status weights_infer(const tn_view *const *w, int64_t rows, int64_t inputs,
                               int64_t hidden)
{
    static const char *const names[] = { "w_ih", "w_hh", "b_ih", "b_hh" };
    char text[TN__TEXT];

    for (int i = 0; i < 4; i++) {
        int64_t columns = i == 0 ? inputs : hidden;

        if (w[i] == NULL || (w[i]->ndim == (i < 2 ? 2 : 1) && w[i]->shape[0] == rows &&
                             (i >= 2 || w[i]->shape[1] == columns)))
            continue;
        return i < 2 ? tn_fail(TN_ERR_RUNTIME, "%s: wrong shape, got %s; expected [%lld, %lld]",
                               names[i], tn__common_text(text, tn__common_shape(w[i])),
                               (long long)rows, (long long)columns)
                     : tn_fail(TN_ERR_RUNTIME, "%s: wrong shape, got %s; expected [%lld]", names[i],
                               tn__common_text(text, tn__common_shape(w[i])), (long long)rows);
    }
    return TN_OK;
}

/* Checks x [N, I] or [I], h [N, H] or [H], and weights with `gates` * H rows. `memory`: there is an
 * input c (LSTM). */
static tn_status cell_infer(tn_infer *infer, int64_t gates, bool memory)
{
    const tn_view *x = infer->in[0], *h = infer->in[1];
    const tn_view *const *w = infer->in + (memory ? 3 : 2);
    char text[TN__TEXT], text_h[TN__TEXT];
    int64_t hidden;
    bool fits = (x->ndim == 1 || x->ndim == 2) && h->ndim == x->ndim;

    if (fits && x->ndim == 2)
        fits = x->shape[0] == h->shape[0];
    if (!fits)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x or h: wrong shape, got %s and %s; expected [N, inputs] and [N, hidden], or without "
            "N",
            tn__common_text(text, tn__common_shape(x)),
            tn__common_text(text_h, tn__common_shape(h)));
    if (memory && tn__common_same_shape(infer->in[2], "c", tn__common_shape(h), "h") != TN_OK)
        return tn_error_last_code();
    hidden = h->shape[h->ndim - 1];
    return weights_infer(w, tn__common_times(gates, hidden), x->shape[x->ndim - 1], hidden) != TN_OK
               ? tn_error_last_code()
               : tn__common_open(infer);
}

static tn_tensor *gates_of(tn_tensor *x, tn_tensor *h, tn_tensor *const *w)
{
    return tn_add(tn_linear(x, w[0], w[2]), tn_linear(h, w[1], w[3]));
}

static tn_status rnn_infer(tn_infer *infer)
{
    return cell_infer(infer, 1, false);
}

static tn_status rnn_tanh_cell_decompose(const tn_decompose *call)
{
    return tn__common_given(call->out, tn_tanh(gates_of(call->in[0], call->in[1], call->in + 2)));
}

static tn_status rnn_relu_cell_decompose(const tn_decompose *call)
{
    return tn__common_given(call->out, tn_relu(gates_of(call->in[0], call->in[1], call->in + 2)));
}

static tn_status lstm_infer(tn_infer *infer)
{
    tn_status status = tn__common_same_dtype(infer->in[0], "x", infer->in[2], "c");

    return status == TN_OK ? cell_infer(infer, 4, true) : status;
}

static tn_status lstm_cell_decompose(const tn_decompose *call)
{
    tn_tensor *gates = gates_of(call->in[0], call->in[1], call->in + 3);
    call->out[1] = tn_add(
        tn_mul(tn_sigmoid(tn__rnn_part(gates, 1, 4)), call->in[2]),
        tn_mul(tn_sigmoid(tn__rnn_part(gates, 0, 4)), tn_tanh(tn__rnn_part(gates, 2, 4))));
    call->out[0] = tn_mul(tn_sigmoid(tn__rnn_part(gates, 3, 4)), tn_tanh(call->out[1]));
    return call->out[0] != NULL && call->out[1] != NULL ? TN_OK : tn_error_last_code();
}

static tn_status gru_infer(tn_infer *infer)
{
    return cell_infer(infer, 3, false);
}

static tn_status gru_cell_decompose(const tn_decompose *call)
{
    tn_tensor *i = tn_linear(call->in[0], call->in[2], call->in[4]),
              *h = tn_linear(call->in[1], call->in[3], call->in[5]), *r, *z, *n;
    r = tn_sigmoid(tn_add(tn__rnn_part(i, 0, 3), tn__rnn_part(h, 0, 3)));
    z = tn_sigmoid(tn_add(tn__rnn_part(i, 1, 3), tn__rnn_part(h, 1, 3)));
    n = tn_tanh(tn_add(tn__rnn_part(i, 2, 3), tn_mul(r, tn__rnn_part(h, 2, 3))));
    return tn__common_given(call->out, tn_add(n, tn_mul(z, tn_sub(call->in[1], n))));
}

/* ---- sequences ---- */

struct weights {
    tn_tensor *w_ih, *w_hh, *b_ih, *b_hh, *w_hr, *lengths; /* TN_NONE if absent */
    bool reverse;
    enum tn__rnn_kind kind;
};

/* Checks x [L, N, I], h [N, P] and c [N, H]; P equals H unless w_hr projects. `w` points to w_ih,
 * w_hh, b_ih and b_hh. */
static tn_status sequence_infer(tn_infer *infer, int64_t gates, const tn_view *c,
                                const tn_view *const *w, const tn_view *w_hr,
                                const tn_view *lengths)
{
    const tn_view *x = infer->in[0], *h = infer->in[1];
    char text[TN__TEXT], text_h[TN__TEXT];
    int64_t hidden, out, n;

    if (tn__common_same_dtype(x, "x", h, "h") != TN_OK ||
        tn__common_same_dtype(x, "x", c, "c") != TN_OK ||
        tn__common_same_dtype(x, "x", w[0], "w_ih") != TN_OK ||
        tn__common_same_dtype(x, "x", w[1], "w_hh") != TN_OK ||
        tn__common_same_dtype(x, "x", w[2], "b_ih") != TN_OK ||
        tn__common_same_dtype(x, "x", w[3], "b_hh") != TN_OK ||
        tn__common_same_dtype(x, "x", w_hr, "w_hr") != TN_OK)
        return tn_error_last_code();
    if (x->ndim != 3 || h->ndim != 2 || x->shape[1] != h->shape[0] || x->shape[0] < 1)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x or h: wrong shape, got %s and %s; expected [L, N, inputs] with L at least 1, and "
            "[N, hidden]",
            tn__common_text(text, tn__common_shape(x)),
            tn__common_text(text_h, tn__common_shape(h)));
    n = h->shape[0];
    if (c != NULL && (c->ndim != 2 || c->shape[0] != n))
        return tn_fail(TN_ERR_RUNTIME, "c: wrong shape, got %s; expected [%lld, hidden]",
                       tn__common_text(text, tn__common_shape(c)), (long long)n);
    out = h->shape[1];
    hidden = c != NULL ? c->shape[1] : out;
    if (w_hr == NULL && hidden != out)
        return tn_fail(
            TN_ERR_RUNTIME,
            "h: wrong shape, got %s; expected the shape of c, %s, because w_hr is absent",
            tn__common_text(text_h, tn__common_shape(h)),
            tn__common_text(text, tn__common_shape(c)));
    if (w_hr != NULL && (w_hr->ndim != 2 || w_hr->shape[0] != out || w_hr->shape[1] != hidden))
        return tn_fail(TN_ERR_RUNTIME, "w_hr: wrong shape, got %s; expected [%lld, %lld]",
                       tn__common_text(text, tn__common_shape(w_hr)), (long long)out,
                       (long long)hidden);
    if (lengths != NULL && (lengths->ndim != 1 || lengths->shape[0] != n))
        return tn_fail(TN_ERR_RUNTIME,
                       "lengths: wrong shape, got %s; expected [%lld], one for each sequence",
                       tn__common_text(text, tn__common_shape(lengths)), (long long)n);
    return weights_infer(w, tn__common_times(gates, hidden), x->shape[2], out) != TN_OK
               ? tn_error_last_code()
               : tn__common_open(infer);
}

/* Computes one step of an LSTM with a projection, and updates *h and *c. gx is the part of the
 * gates that depends on x. */
static tn_status projected_step(const struct weights *w, tn_tensor *gx, tn_tensor **h,
                                tn_tensor **c)
{
    tn_tensor *gates = tn_add(gx, tn_linear(*h, w->w_hh, w->b_hh));

    *c = tn_add(tn_mul(tn_sigmoid(tn__rnn_part(gates, 1, 4)), *c),
                tn_mul(tn_sigmoid(tn__rnn_part(gates, 0, 4)), tn_tanh(tn__rnn_part(gates, 2, 4))));
    *h = tn_linear(tn_mul(tn_sigmoid(tn__rnn_part(gates, 3, 4)), tn_tanh(*c)), w->w_hr, TN_NONE);
    return *h != NULL && *c != NULL ? TN_OK : tn_error_last_code();
}

/* Copies the lengths to the host and checks that each is from 1 to the length of x. A device
 * without memory has no values to check. */
static tn_status lengths_check(const struct weights *w, int64_t length)
{
    static const char *const names[] = { "rnn", "rnn", "lstm", "gru" };
    int64_t count = tn_tensor_numel(w->lengths), *at;
    tn_status status;

    if (count == 0 || !tn_device_has_memory(tn_tensor_device(w->lengths)))
        return TN_OK;
    at = tn_malloc((size_t)count * sizeof *at);
    if (at == NULL)
        return tn_error_last_code();
    status = tn_tensor_copy_out(w->lengths, at, (size_t)count * sizeof *at);
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        if (at[i] < 1 || at[i] > length)
            status = tn_fail(
                TN_ERR_VALUE,
                "%s_sequence: lengths[%lld]: out of range, got %lld; expected 1 to %lld, the "
                "length of x",
                names[w->kind], (long long)i, (long long)at[i], (long long)length);
    tn_free(at);
    return status;
}

/* Returns a bool tensor [L, N, 1] that is true while the sequence has not ended. */
static tn_tensor *belongs(const struct weights *w, int64_t length)
{
    return tn_gt(tn_unsqueeze(w->lengths, 1),
                 tn_reshape(tn_arange(w->lengths, 0, length, 1, TN_I64), TN_SHAPE(length, 1, 1)));
}

/* Runs the steps of an LSTM with a projection one by one. */
static tn_status along_projected(const struct weights *w, tn_tensor *x, tn_tensor *h, tn_tensor *c,
                                 tn_tensor *there, tn_tensor **out)
{
    int64_t length = tn_tensor_size(x, 0);
    tn_tensor *gx = tn_linear(x, w->w_ih, w->b_ih), **all;
    tn_status status = TN_OK;

    if (gx == NULL)
        return tn_error_last_code();
    all = tn_calloc((size_t)length, sizeof(tn_tensor *));
    if (all == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < length && status == TN_OK; i++) {
        int64_t t = w->reverse ? length - 1 - i : i;
        tn_tensor *old_h = h, *old_c = c;

        status = projected_step(w, tn_select(gx, 0, t), &h, &c);
        if (status == TN_OK && there != TN_NONE) {
            tn_tensor *now = tn_select(there, 0, t);

            h = tn_where(now, h, old_h);
            c = tn_where(now, c, old_c);
            status = h != NULL && c != NULL ? TN_OK : tn_error_last_code();
        }
        all[t] = h;
    }
    if (status == TN_OK) {
        out[0] = tn_stack(all, length, 0);
        out[1] = h;
        out[2] = c;
        status = out[0] != NULL ? TN_OK : tn_error_last_code();
    }
    tn_free(all);
    return status;
}

static bool requires_grad(tn_tensor *x)
{
    return x != TN_NONE && tn_tensor_requires_grad(x);
}

static tn_tensor *cast_to(tn_tensor *x, tn_dtype dtype)
{
    return x == TN_NONE || x == NULL ? x : tn_cast(x, dtype);
}

/* Computes the products with x for all steps at once, then the steps. float16 and bfloat16 are
 * computed in float32 from there on. c is TN_NONE except for an LSTM. */
static tn_status along_steps(const struct weights *w, tn_tensor *x, tn_tensor *h, tn_tensor *c,
                             tn_tensor **out)
{
    tn_recurrent_steps_options how = TN_RECURRENT_STEPS_OPTIONS;
    tn_dtype dtype = tn_tensor_dtype(x), wide = tn_dtype_size(dtype) < 4 ? TN_F32 : dtype;
    tn_tensor *b_ih = w->b_ih, *b_hh = w->b_hh, *kept[3];
    tn_tensor *const seen[] = { x, h, c, w->w_ih, w->w_hh, b_ih, b_hh };
    tn_status status;

    how.reverse = w->reverse;
    how.keep = false;
    for (size_t i = 0; i < sizeof seen / sizeof *seen && tn_grad_enabled(); i++)
        how.keep |= requires_grad(seen[i]);
    if (w->kind != TN__RNN_GRU && b_ih != TN_NONE && b_hh != TN_NONE) { /* one addition for both */
        b_ih = tn_add(b_ih, b_hh);
        b_hh = TN_NONE;
    }
    status = tn_recurrent_steps(cast_to(tn_linear(x, w->w_ih, b_ih), wide), cast_to(h, wide),
                                cast_to(c, wide), cast_to(w->w_hh, wide), cast_to(b_hh, wide),
                                w->lengths, tn__rnn_kind_name(w->kind), &out[0], &out[1], &out[2],
                                &kept[0], &kept[1], &kept[2], how.reverse, how.keep);
    if (status != TN_OK)
        return status;
    for (int i = 0; i < (w->kind == TN__RNN_LSTM ? 3 : 2); i++) {
        out[i] = tn_cast(out[i], dtype);
        if (out[i] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

static tn_status along(const struct weights *w, tn_tensor *x, tn_tensor *h, tn_tensor *c,
                       tn_tensor **out)
{
    int64_t length = tn_tensor_size(x, 0);
    tn_status status = w->lengths != TN_NONE ? lengths_check(w, length) : TN_OK;
    tn_tensor *there = TN_NONE, *all[3];

    if (status == TN_OK && w->lengths != TN_NONE) {
        there = belongs(w, length);
        status = there != NULL ? TN_OK : tn_error_last_code();
    }
    if (status == TN_OK)
        status = w->w_hr != TN_NONE ? along_projected(w, x, h, c, there, all)
                                    : along_steps(w, x, h, c, all);
    if (status != TN_OK)
        return status;
    for (int i = 0; i < (w->kind == TN__RNN_LSTM ? 3 : 2); i++)
        out[i] = all[i];
    if (there != TN_NONE) /* zeros after the end of each sequence */
        out[0] = tn_masked_fill(out[0], tn_logical_not(there), 0);
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

static tn_status rnn_sequence_infer(tn_infer *infer)
{
    const tn_rnn_sequence_options *o = infer->options;

    if (o->nonlinearity == NULL ||
        (strcmp(o->nonlinearity, "tanh") != 0 && strcmp(o->nonlinearity, "relu") != 0))
        return tn_fail(TN_ERR_VALUE, "nonlinearity: unknown, got %q; expected tanh or relu",
                       o->nonlinearity);
    return sequence_infer(infer, 1, NULL, infer->in + 2, NULL, infer->in[6]);
}

static tn_status rnn_sequence_decompose(const tn_decompose *call)
{
    const tn_rnn_sequence_options *o = call->options;
    struct weights w = {
        call->in[2], call->in[3],
        call->in[4], call->in[5],
        TN_NONE,     call->in[6],
        o->reverse,  strcmp(o->nonlinearity, "relu") == 0 ? TN__RNN_RELU : TN__RNN_TANH
    };
    return along(&w, call->in[0], call->in[1], TN_NONE, call->out);
}

static tn_status lstm_sequence_infer(tn_infer *infer)
{
    return sequence_infer(infer, 4, infer->in[2], infer->in + 3, infer->in[7], infer->in[8]);
}

static tn_status lstm_sequence_decompose(const tn_decompose *call)
{
    const tn_lstm_sequence_options *o = call->options;
    struct weights w = { call->in[3], call->in[4], call->in[5], call->in[6],
                         call->in[7], call->in[8], o->reverse,  TN__RNN_LSTM };
    return along(&w, call->in[0], call->in[1], call->in[2], call->out);
}

static tn_status gru_sequence_infer(tn_infer *infer)
{
    return sequence_infer(infer, 3, NULL, infer->in + 2, NULL, infer->in[6]);
}

static tn_status gru_sequence_decompose(const tn_decompose *call)
{
    const tn_gru_sequence_options *o = call->options;
    struct weights w = { call->in[2], call->in[3], call->in[4], call->in[5],
                         TN_NONE,     call->in[6], o->reverse,  TN__RNN_GRU };
    return along(&w, call->in[0], call->in[1], TN_NONE, call->out);
}

TN__OP(rnn_tanh_cell, .infer = rnn_infer, .decompose = rnn_tanh_cell_decompose);
TN__OP(rnn_relu_cell, .infer = rnn_infer, .decompose = rnn_relu_cell_decompose);
TN__OP(lstm_cell, .infer = lstm_infer, .decompose = lstm_cell_decompose);
TN__OP(gru_cell, .infer = gru_infer, .decompose = gru_cell_decompose);
TN__OP(rnn_sequence, .infer = rnn_sequence_infer, .decompose = rnn_sequence_decompose);
TN__OP(lstm_sequence, .infer = lstm_sequence_infer, .decompose = lstm_sequence_decompose);
TN__OP(gru_sequence, .infer = gru_sequence_infer, .decompose = gru_sequence_decompose);

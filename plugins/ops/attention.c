/* SPDX-License-Identifier: MIT
 *
 * Attention, and the cells of recurrent networks. */
#include "common.h"

#include <math.h>

/* ---- attention ---- */

static tn_status scaled_dot_product_attention_infer(tn_infer *infer)
{
    const tn_scaled_dot_product_attention_options *o = infer->options;
    const tn_view *q = infer->in[0], *k = infer->in[1], *v = infer->in[2];
    char text[TN__TEXT], text_k[TN__TEXT], text_v[TN__TEXT];

    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2 ||
        q->shape[q->ndim - 1] != k->shape[k->ndim - 1] ||
        k->shape[k->ndim - 2] != v->shape[v->ndim - 2])
        return tn_fail(TN_ERR_RUNTIME,
                       "q %s, k %s, v %s: [..., L, E], [..., S, E] and [..., S, V] are taken",
                       tn__common_text(text, tn__common_shape(q)),
                       tn__common_text(text_k, tn__common_shape(k)),
                       tn__common_text(text_v, tn__common_shape(v)));
    if (tn_view_dtype(q) != tn_view_dtype(k) || tn_view_dtype(q) != tn_view_dtype(v))
        return tn_fail(TN_ERR_RUNTIME, "q is %s, k is %s and v is %s; they have to be the same",
                       tn_dtype_name(tn_view_dtype(q)), tn_dtype_name(tn_view_dtype(k)),
                       tn_dtype_name(tn_view_dtype(v)));
    if (!(o->dropout_p >= 0 && o->dropout_p <= 1))
        return tn_fail(TN_ERR_VALUE, "dropout_p is %g; a probability between 0 and 1 is taken",
                       o->dropout_p);
    if (o->is_causal && infer->in[3] != NULL)
        return tn_fail(TN_ERR_RUNTIME, "mask and is_causal are both given: one of them");
    if (o->enable_gqa &&
        (q->ndim < 3 || k->ndim != q->ndim || v->ndim != q->ndim ||
         k->shape[k->ndim - 3] != v->shape[v->ndim - 3] || k->shape[k->ndim - 3] < 1 ||
         q->shape[q->ndim - 3] % k->shape[k->ndim - 3] != 0))
        return tn_fail(TN_ERR_RUNTIME,
                       "enable_gqa: the heads of k %s have to be those of v %s and "
                       "divide those of q %s",
                       tn__common_text(text_k, tn__common_shape(k)),
                       tn__common_text(text_v, tn__common_shape(v)),
                       tn__common_text(text, tn__common_shape(q)));
    return tn__common_open(infer);
}

/* Every head `times` times, neighbours the same. */
static tn_tensor *repeated(tn_tensor *x, int64_t times)
{
    tn_ints shape = tn_tensor_shape(x);
    int64_t wide[TN_MAX_DIMS], flat[TN_MAX_DIMS], head = shape.count - 3;

    if (times == 1)
        return x;
    for (int64_t d = 0, at = 0; d < shape.count; d++) {
        wide[at++] = flat[d] = shape.at[d];
        if (d == head) {
            wide[at++] = times;
            flat[d] *= times;
        }
    }
    return tn_reshape(tn_expand(tn_unsqueeze(x, head + 1), (tn_ints){ wide, shape.count + 1 }),
                      (tn_ints){ flat, shape.count });
}

static tn_tensor *forbidden(tn_tensor *like, int64_t rows, int64_t columns)
{
    tn_arange_options whole = TN_ARANGE_OPTIONS;

    whole.dtype = TN_I64;
    return tn_gt(tn_arange(like, 0, (double)columns, &whole),
                 tn_unsqueeze(tn_arange(like, 0, (double)rows, &whole), 1));
}

static tn_status scaled_dot_product_attention_decompose(tn_tensor *const *in, int64_t n_in,
                                                        const void *options, tn_tensor **out)
{
    const tn_scaled_dot_product_attention_options *o = options;
    tn_tensor *q = in[0], *k = in[1], *v = in[2], *mask = in[3], *s, *none;
    tn_dropout_options drop = TN_DROPOUT_OPTIONS;
    tn_amax_options rows = TN_AMAX_OPTIONS;
    int64_t last = -1;
    double scale = tn__given_number(o->scale)
                       ? o->scale
                       : 1 / sqrt((double)(tn_tensor_size(q, -1) > 0 ? tn_tensor_size(q, -1) : 1));

    (void)n_in;
    if (o->enable_gqa) {
        int64_t times = tn_tensor_size(q, -3) / tn_tensor_size(k, -3);

        k = repeated(k, times);
        v = repeated(v, times);
    }
    s = tn_matmul(tn_mul_scalar(q, scale), tn_transpose(k, -2, -1));
    if (o->is_causal)
        s = tn_masked_fill(s, forbidden(q, tn_tensor_size(q, -2), tn_tensor_size(k, -2)),
                           -INFINITY);
    if (mask != TN_NONE) {
        s = tn_tensor_dtype(mask) == TN_BOOL ? tn_masked_fill(s, tn_logical_not(mask), -INFINITY)
                                             : tn_add(s, mask, NULL);
        if (s == NULL)
            return tn_error_last()->code;
        rows.dims = (tn_ints){ &last, 1 };
        rows.keepdim = true;
        none = tn_amax(tn_detach(s), &rows);
        none = tn_eq(none, none == NULL ? NULL : tn__common_number(none, -INFINITY));
        s = tn_masked_fill(tn_softmax(tn_masked_fill(s, none, 0.0), -1), none, 0.0);
    } else {
        s = tn_softmax(s, -1);
    }
    drop.p = o->dropout_p;
    if (o->dropout_p > 0)
        s = tn_dropout(s, &drop);
    return tn__common_given(out, tn_matmul(s, v));
}

/* ---- cells ---- */

/* x [N, I] or [I], h [N, H] or [H]; the weights have `gates` rows of H each. */
static tn_status cell_infer(tn_infer *infer, int64_t gates, bool memory)
{
    const tn_view *x = infer->in[0], *h = infer->in[1];
    const tn_view *const *w = infer->in + (memory ? 3 : 2);
    char text[TN__TEXT], text_h[TN__TEXT];
    int64_t hidden;
    bool fits = (x->ndim == 1 || x->ndim == 2) && h->ndim == x->ndim;

    if (fits && x->ndim == 2)
        fits = x->shape[0] == h->shape[0];
    if (fits && memory) {
        const tn_view *c = infer->in[2];

        fits = c->ndim == h->ndim;
        for (int32_t d = 0; fits && d < h->ndim; d++)
            fits = c->shape[d] == h->shape[d];
    }
    if (!fits)
        return tn_fail(TN_ERR_RUNTIME,
                       "x %s and h %s: [N, inputs] and [N, hidden], or without N, "
                       "are taken%s",
                       tn__common_text(text, tn__common_shape(x)),
                       tn__common_text(text_h, tn__common_shape(h)), memory ? ", and c as h" : "");
    hidden = h->shape[h->ndim - 1];
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = { "w_ih", "w_hh", "b_ih", "b_hh" };
        int64_t columns = i == 0 ? x->shape[x->ndim - 1] : hidden;

        if (w[i] == NULL)
            continue;
        fits = w[i]->ndim == (i < 2 ? 2 : 1) && w[i]->shape[0] == gates * hidden &&
               (i >= 2 || w[i]->shape[1] == columns);
        if (!fits && i < 2)
            return tn_fail(TN_ERR_RUNTIME, "%s %s has to be [%lld, %lld]", names[i],
                           tn__common_text(text, tn__common_shape(w[i])),
                           (long long)(gates * hidden), (long long)columns);
        if (!fits)
            return tn_fail(TN_ERR_RUNTIME, "%s %s has to be [%lld]", names[i],
                           tn__common_text(text, tn__common_shape(w[i])),
                           (long long)(gates * hidden));
    }
    return tn__common_open(infer);
}

static tn_tensor *gates_of(tn_tensor *x, tn_tensor *h, tn_tensor *const *w)
{
    return tn_add(tn_linear(x, w[0], w[2]), tn_linear(h, w[1], w[3]), NULL);
}

static tn_tensor *part(tn_tensor *gates, int64_t index, int64_t count)
{
    int64_t each;

    if (gates == NULL)
        return NULL;
    each = tn_tensor_size(gates, -1) / count;
    return tn_narrow(gates, -1, index * each, each);
}

static tn_status rnn_infer(tn_infer *infer)
{
    return cell_infer(infer, 1, false);
}

static tn_status rnn_tanh_cell_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                         tn_tensor **out)
{
    (void)n_in;
    (void)options;
    return tn__common_given(out, tn_tanh(gates_of(in[0], in[1], in + 2)));
}

static tn_status rnn_relu_cell_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                         tn_tensor **out)
{
    (void)n_in;
    (void)options;
    return tn__common_given(out, tn_relu(gates_of(in[0], in[1], in + 2)));
}

static tn_status lstm_infer(tn_infer *infer)
{
    return cell_infer(infer, 4, true);
}

static tn_status lstm_cell_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                     tn_tensor **out)
{
    tn_tensor *gates = gates_of(in[0], in[1], in + 3);

    (void)n_in;
    (void)options;
    out[1] = tn_add(tn_mul(tn_sigmoid(part(gates, 1, 4)), in[2]),
                    tn_mul(tn_sigmoid(part(gates, 0, 4)), tn_tanh(part(gates, 2, 4))), NULL);
    out[0] = tn_mul(tn_sigmoid(part(gates, 3, 4)), tn_tanh(out[1]));
    return out[0] != NULL && out[1] != NULL ? TN_OK : tn_error_last()->code;
}

static tn_status gru_infer(tn_infer *infer)
{
    return cell_infer(infer, 3, false);
}

static tn_status gru_cell_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                    tn_tensor **out)
{
    tn_tensor *i = tn_linear(in[0], in[2], in[4]), *h = tn_linear(in[1], in[3], in[5]), *r, *z, *n;

    (void)n_in;
    (void)options;
    r = tn_sigmoid(tn_add(part(i, 0, 3), part(h, 0, 3), NULL));
    z = tn_sigmoid(tn_add(part(i, 1, 3), part(h, 1, 3), NULL));
    n = tn_tanh(tn_add(part(i, 2, 3), tn_mul(r, part(h, 2, 3)), NULL));
    return tn__common_given(out, tn_add(n, tn_mul(z, tn_sub(in[1], n, NULL)), NULL));
}

#define COMPOSED(name, NAME, infer_)                                                               \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME, .infer = infer_,       \
                                      .decompose = name##_decompose };
COMPOSED(scaled_dot_product_attention, SCALED_DOT_PRODUCT_ATTENTION,
         scaled_dot_product_attention_infer)
COMPOSED(rnn_tanh_cell, RNN_TANH_CELL, rnn_infer)
COMPOSED(rnn_relu_cell, RNN_RELU_CELL, rnn_infer)
COMPOSED(lstm_cell, LSTM_CELL, lstm_infer)
COMPOSED(gru_cell, GRU_CELL, gru_infer)

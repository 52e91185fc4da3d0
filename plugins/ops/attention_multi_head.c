/* SPDX-License-Identifier: MIT
 *
 * Multi-head attention, including the projections of its inputs and of its result. */
#include "common.h"
#include <math.h>

/* The inputs of both operators of this file, in order. */
enum { QUERY, KEY, VALUE, W_IN, W_Q, W_K, W_V, B_IN, BIAS_K, BIAS_V, W_OUT, B_OUT, KEY_MASK, MASK };

struct heads {
    int64_t count;
    double dropout_p;
    bool add_zero_attn;
};

static tn_status fits(const tn_view *w, const char *name, int64_t rows, int64_t columns)
{
    char text[TN__TEXT];

    if (w == NULL || (w->shape[0] == rows && (columns < 0 ? w->ndim == 1 : w->ndim == 2) &&
                      (columns < 0 || w->shape[1] == columns)))
        return TN_OK;
    return columns < 0 ? tn_fail(TN_ERR_RUNTIME, "%s: wrong shape, got %s; expected [%lld]", name,
                                 tn__common_text(text, tn__common_shape(w)), (long long)rows)
                       : tn_fail(TN_ERR_RUNTIME, "%s: wrong shape, got %s; expected [%lld, %lld]",
                                 name, tn__common_text(text, tn__common_shape(w)), (long long)rows,
                                 (long long)columns);
}

static tn_status heads_infer(tn_infer *infer, struct heads heads)
{
    const tn_view *const *in = infer->in;
    const tn_view *q = in[QUERY], *k = in[KEY], *v = in[VALUE];
    char text[TN__TEXT], text_k[TN__TEXT], text_v[TN__TEXT];
    bool one = in[W_IN] != NULL, three = in[W_Q] != NULL && in[W_K] != NULL && in[W_V] != NULL;
    tn_status status = TN_OK;
    int64_t e, n, rows, keys, in_rows, batches;

    if (q->ndim != 3 || k->ndim != 3 || v->ndim != 3 || q->shape[1] != k->shape[1] ||
        k->shape[1] != v->shape[1] || k->shape[0] != v->shape[0])
        return tn_fail(
            TN_ERR_RUNTIME,
            "q, k or v: wrong shape, got %s, %s and %s; expected [L, N, E], [S, N, K] and [S, N, "
            "V]",
            tn__common_text(text, tn__common_shape(q)),
            tn__common_text(text_k, tn__common_shape(k)),
            tn__common_text(text_v, tn__common_shape(v)));
    e = q->shape[2];
    n = q->shape[1];
    rows = q->shape[0];
    keys = k->shape[0];
    if (heads.count < 1 || e % heads.count != 0)
        return tn_fail(
            TN_ERR_VALUE,
            "num_heads: wrong count, got %lld; expected a divisor of the %lld features of q",
            (long long)heads.count, (long long)e);
    if (!(heads.dropout_p >= 0 && heads.dropout_p <= 1))
        return tn_fail(TN_ERR_VALUE,
                       "dropout_p: out of range, got %g; expected a probability from 0 to 1",
                       heads.dropout_p);
    if (one == three || (one && (in[W_Q] != NULL || in[W_K] != NULL || in[W_V] != NULL)))
        return tn_fail(
            TN_ERR_VALUE,
            "w_in, w_q, w_k or w_v: wrong set, got %s; expected either w_in alone, or all "
            "of w_q, w_k and w_v",
            one ? "w_in with others" : "no w_in and not all others");
    if (one && (k->shape[2] != e || v->shape[2] != e))
        return tn_fail(TN_ERR_RUNTIME,
                       "w_in: q, k and v have different features, got %s, %s, %s; "
                       "expected the same last size, or w_q, w_k and w_v instead of w_in",
                       tn__common_text(text, tn__common_shape(q)),
                       tn__common_text(text_k, tn__common_shape(k)),
                       tn__common_text(text_v, tn__common_shape(v)));
    if ((in[BIAS_K] == NULL) != (in[BIAS_V] == NULL))
        return tn_fail(TN_ERR_VALUE, "bias_k or bias_v: one is missing; expected both or none");
    in_rows = tn__common_times(3, e);
    batches = tn__common_times(n, heads.count);
    const struct {
        int input;
        const char *name;
        int64_t rows, columns;
    } table[] = { { W_IN, "w_in", in_rows, e },   { W_Q, "w_q", e, e },
                  { W_K, "w_k", e, k->shape[2] }, { W_V, "w_v", e, v->shape[2] },
                  { B_IN, "b_in", in_rows, -1 },  { BIAS_K, "bias_k", e, -1 },
                  { BIAS_V, "bias_v", e, -1 },    { W_OUT, "w_out", e, e },
                  { B_OUT, "b_out", e, -1 },      { KEY_MASK, "key_padding_mask", n, keys } };
    for (size_t i = 0; i < sizeof table / sizeof table[0] && status == TN_OK; i++)
        status = fits(in[table[i].input], table[i].name, table[i].rows, table[i].columns);
    if (status == TN_OK && in[MASK] != NULL) {
        const tn_view *m = in[MASK];
        bool all = m->ndim == 3 && m->shape[0] == batches;

        if (!(all || m->ndim == 2) || m->shape[m->ndim - 2] != rows ||
            m->shape[m->ndim - 1] != keys)
            return tn_fail(
                TN_ERR_RUNTIME,
                "attn_mask: wrong shape, got %s; expected [%lld, %lld] or [%lld, %lld, %lld]",
                tn__common_text(text, tn__common_shape(m)), (long long)rows, (long long)keys,
                (long long)batches, (long long)rows, (long long)keys);
    }
    return status == TN_OK ? tn__common_open(infer) : status;
}

/* Returns the mask as numbers that are added to the scores. A bool mask becomes minus infinity
 * where it is true. */
static tn_tensor *to_add(tn_tensor *mask, tn_tensor *like)
{
    if (tn_tensor_dtype(mask) != TN_BOOL)
        return tn_cast(mask, tn_tensor_dtype(like));
    return tn_masked_fill(tn__common_zeros(like, tn_tensor_shape(mask)), mask, -INFINITY);
}

/* Returns whether an input [L, N, E] is the transposition of a contiguous tensor [N, L, E], as a
 * layer with batch_first passes it. The projections then run on the contiguous tensor, so that
 * nothing is copied, and the gradients of these tensors are contiguous, too. */
static bool is_batch_outer(tn_tensor *x)
{
    const tn_view *v = tn_tensor_view(x);

    return v->shape[0] > 1 && v->shape[1] > 1 && (v->shape[2] == 1 || v->strides[2] == 1) &&
           v->strides[0] == v->shape[2] &&
           v->strides[1] == tn__common_times(v->shape[0], v->shape[2]);
}

/* Returns the tensor [L, N, E], or [N, L, E] with `batch_outer`, as [N, heads, L, E / heads]. */
static tn_tensor *split_heads(tn_tensor *x, int64_t heads, bool batch_outer)
{
    static const int64_t orders[2][4] = { { 1, 2, 0, 3 }, { 0, 2, 1, 3 } };
    tn_ints shape;

    if (x == NULL)
        return NULL;
    shape = tn_tensor_shape(x);
    return tn_permute(tn_reshape(x, TN_SHAPE(shape.at[0], shape.at[1], heads, shape.at[2] / heads)),
                      (tn_ints){ orders[batch_outer], 4 });
}

static tn_tensor *behind(tn_tensor *x, tn_tensor *more, int64_t dim)
{
    tn_tensor *both[] = { x, more };

    return x == NULL || more == NULL ? NULL : tn_cat(both, 2, dim);
}

/* Appends `by` columns of zeros to the mask for the keys that were added; every query sees them. */
static tn_tensor *wider(tn_tensor *mask, int64_t by)
{
    return by == 0 ? mask : tn_pad(mask, TN_SHAPE(0, by));
}

struct attention {
    tn_tensor *q, *k, *v, *mask; /* [N, heads, ...]; mask is NULL if there is none */
    bool batch_outer;            /* the projections are [N, L, E] */
};

static tn_status project(tn_tensor *const *in, struct heads heads, struct attention *a)
{
    tn_tensor *part[3], *mask = NULL, *keys = NULL;
    int64_t e = tn_tensor_size(in[QUERY], 2), n = tn_tensor_size(in[QUERY], 1), added = 0;
    const bool outer = is_batch_outer(in[QUERY]) && is_batch_outer(in[KEY]) &&
                       is_batch_outer(in[VALUE]);
    const tn_ints one_key = outer ? TN_SHAPE(n, 1, e) : TN_SHAPE(1, n, e);

    a->batch_outer = outer;
    for (int i = 0; i < 3; i++) {
        tn_tensor *w = in[W_IN] != TN_NONE ? tn_narrow(in[W_IN], 0, i * e, e) : in[W_Q + i];

        part[i] = tn_linear(outer ? tn_transpose(in[QUERY + i], 0, 1) : in[QUERY + i], w,
                            in[B_IN] != TN_NONE ? tn_narrow(in[B_IN], 0, i * e, e) : TN_NONE);
        if (part[i] == NULL)
            return tn_error_last_code();
    }
    if (in[BIAS_K] != TN_NONE) {
        for (int i = 1; i < 3; i++)
            part[i] = behind(part[i], tn_expand(in[BIAS_K + i - 1], one_key), outer);
        added++;
    }
    if (heads.add_zero_attn) {
        for (int i = 1; i < 3 && part[i] != NULL; i++)
            part[i] = behind(part[i], tn__common_zeros(part[i], one_key), outer);
        added++;
    }
    a->q = split_heads(part[0], heads.count, outer);
    a->k = split_heads(part[1], heads.count, outer);
    a->v = split_heads(part[2], heads.count, outer);
    a->mask = NULL;
    if (a->q == NULL || a->k == NULL || a->v == NULL)
        return tn_error_last_code();
    if (in[MASK] != TN_NONE) {
        mask = wider(to_add(in[MASK], a->q), added);
        if (mask != NULL && tn_tensor_ndim(mask) == 3)
            mask = tn_reshape(
                mask, TN_SHAPE(n, heads.count, tn_tensor_size(mask, 1), tn_tensor_size(mask, 2)));
        if (mask == NULL)
            return tn_error_last_code();
    }
    if (in[KEY_MASK] != TN_NONE) {
        keys = tn_unsqueeze(tn_unsqueeze(wider(to_add(in[KEY_MASK], a->q), added), 1), 1);
        if (keys == NULL)
            return tn_error_last_code();
    }
    a->mask = mask == NULL ? keys : keys == NULL ? mask : tn_add(mask, keys);
    return mask != NULL && keys != NULL && a->mask == NULL ? tn_error_last_code() : TN_OK;
}

/* Joins the heads of y, [N, heads, L, E / heads], and applies the output projection. The result is
 * [L, N, E]. */
static tn_tensor *joined(const struct attention *a, tn_tensor *y, tn_tensor *const *in)
{
    static const int64_t orders[2][4] = { { 2, 0, 1, 3 }, { 0, 2, 1, 3 } };
    const tn_ints shape = tn_tensor_shape(in[QUERY]);
    tn_tensor *all = tn_reshape(tn_permute(y, (tn_ints){ orders[a->batch_outer], 4 }),
                                a->batch_outer ? TN_SHAPE(shape.at[1], shape.at[0], shape.at[2])
                                               : shape);

    all = tn_linear(all, in[W_OUT], in[B_OUT]);
    return a->batch_outer && all != NULL ? tn_transpose(all, 0, 1) : all;
}

static tn_status multi_head_attention_infer(tn_infer *infer)
{
    const tn_multi_head_attention_options *o = infer->options;

    return heads_infer(infer, (struct heads){ o->num_heads, o->dropout_p, o->add_zero_attn });
}

static tn_status multi_head_attention_decompose(const tn_decompose *call)
{
    const tn_multi_head_attention_options *o = call->options;
    struct attention a;
    tn_status status = project(call->in,
                               (struct heads){ o->num_heads, o->dropout_p, o->add_zero_attn }, &a);
    if (status != TN_OK)
        return status;
    return tn__common_given(
        call->out, joined(&a,
                          tn_scaled_dot_product_attention(
                              a.q, a.k, a.v, a.mask != NULL ? a.mask : TN_NONE, o->dropout_p),
                          call->in));
}

static tn_status multi_head_attention_with_weights_infer(tn_infer *infer)
{
    const tn_multi_head_attention_with_weights_options *o = infer->options;

    return heads_infer(infer, (struct heads){ o->num_heads, o->dropout_p, o->add_zero_attn });
}

static tn_status multi_head_attention_with_weights_decompose(const tn_decompose *call)
{
    const tn_multi_head_attention_with_weights_options *o = call->options;
    int64_t head = 1;
    struct attention a;
    tn_tensor *s;
    tn_status status = project(call->in,
                               (struct heads){ o->num_heads, o->dropout_p, o->add_zero_attn }, &a);
    if (status != TN_OK)
        return status;
    s = tn_matmul(tn_mul_scalar(a.q, 1 / sqrt((double)tn_tensor_size(a.q, -1))),
                  tn_transpose(a.k, -2, -1));
    if (a.mask != NULL)
        s = tn_add(s, a.mask);
    s = tn_softmax(s, -1);
    if (o->dropout_p > 0)
        s = tn_dropout(s, o->dropout_p);
    call->out[0] = joined(&a, tn_matmul(s, a.v), call->in);
    call->out[1] = o->average_attn_weights ? tn_mean(s, TN_INTS(head)) : s;
    return call->out[0] != NULL && call->out[1] != NULL ? TN_OK : tn_error_last_code();
}

TN__OP(multi_head_attention, .infer = multi_head_attention_infer,
       .decompose = multi_head_attention_decompose);
TN__OP(multi_head_attention_with_weights, .infer = multi_head_attention_with_weights_infer,
       .decompose = multi_head_attention_with_weights_decompose);

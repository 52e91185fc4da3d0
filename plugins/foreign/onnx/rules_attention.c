/* SPDX-License-Identifier: MIT
 *
 * Rules for attention, and for what decoders do beside it: rotary positions, caches, attention with
 * a state in place of scores, convolutions with a state. */
#include "onnx/onnx_rules.h"

#include <math.h>
#include <string.h>

/* ---- heads ----------------------------------------------------------------------------------- */

/* [B, L, H D] as [B, H, L, D]. */
static tn_tensor *heads_of(tn_rule_call *call, tn_tensor *x, int64_t heads, const char *name)
{
    int64_t width;

    if (call->status != TN_OK || x == NULL)
        return NULL;
    width = tn_tensor_ndim(x) == 3 ? tn_tensor_size(x, 2) : 0;
    if (tn_tensor_ndim(x) != 3 || heads < 1 || width % heads != 0) {
        rule_fail(call, TN_ERR_VALUE,
                  "%s: %d dimensions, %lld elements in the last one; expected [batch, length, "
                  "heads * size] with %lld heads",
                  name, (int)tn_tensor_ndim(x), (long long)width, (long long)heads);
        return NULL;
    }
    return tn_permute(
        tn_reshape(x, TN_SHAPE(tn_tensor_size(x, 0), tn_tensor_size(x, 1), heads, width / heads)),
        TN_INTS(0, 2, 1, 3));
}

/* [B, H, L, D] as [B, L, H D]. */
static tn_tensor *heads_joined(tn_tensor *x)
{
    if (x == NULL)
        return NULL;
    return tn_reshape(tn_permute(x, TN_INTS(0, 2, 1, 3)),
                      TN_SHAPE(tn_tensor_size(x, 0), tn_tensor_size(x, 2),
                               tn_tensor_size(x, 1) * tn_tensor_size(x, 3)));
}

/* Each head of the keys and values is for several heads of the queries, which follow each other. */
static tn_tensor *for_queries(tn_rule_call *call, tn_tensor *x, int64_t heads)
{
    int64_t own;

    if (call->status != TN_OK || x == NULL)
        return NULL;
    own = tn_tensor_size(x, 1);
    if (own < 1 || heads % own != 0) {
        rule_fail(call, TN_ERR_VALUE, "K, V: %lld heads; expected a divisor of the %lld of Q",
                  (long long)own, (long long)heads);
        return NULL;
    }
    return own == heads ? x : tn_repeat_interleave_scalar(x, heads / own, 1);
}

/* ---- attention ------------------------------------------------------------------------------- */

struct attention {
    tn_tensor *q, *k, *v;
    tn_tensor *bias; /* added to the scores; TN_NONE: none */
    int64_t past;    /* keys before the first query */
    double scale, softcap;
    bool joined, is_causal; /* is_causal: nothing else hides keys */
};

/* The mask with all keys, as numbers to add: keys beyond it are hidden. */
static tn_tensor *mask_bias(tn_tensor *mask, int64_t keys, tn_dtype dtype)
{
    int64_t n = tn_tensor_ndim(mask), own = n > 0 ? tn_tensor_size(mask, n - 1) : keys;
    tn_tensor *zero;

    if (tn_tensor_dtype(mask) == TN_BOOL) {
        zero = tn_full(mask, TN_SCALAR_SHAPE, tn_scalar_int(0), dtype);
        mask = tn_where(mask, zero,
                        tn_full(mask, TN_SCALAR_SHAPE, tn_scalar_float(-INFINITY), dtype));
    } else {
        mask = tn_cast(mask, dtype);
    }
    if (own == 1 || own >= keys)
        return mask;
    return tn_pad(mask, TN_INTS(0, keys - own), "constant", tn_scalar_float(-INFINITY));
}

/* Which keys each query sees: [L, S], or [B, 1, L, S] with lengths of the caches; TN_NONE: all. */
static tn_tensor *visible(tn_rule_call *call, const struct attention *a)
{
    int64_t left = rule_int(call, "left_window_size"), right = rule_int(call, "right_window_size");
    int64_t n_q = tn_tensor_size(a->q, 2), n_k = tn_tensor_size(a->k, 2);
    bool causal = rule_int(call, "is_causal") != 0;
    tn_tensor *lengths = rule_optional(call, "nonpad_kv_seqlen"), *row, *column, *seen = TN_NONE;
    tn_tensor *ahead, *near;

    if (call->status != TN_OK)
        return NULL;
    row = tn_unsqueeze(tn_arange(a->q, tn_scalar_int(a->past), tn_scalar_int(a->past + n_q),
                                 tn_scalar_int(1), TN_I64),
                       1);
    column = tn_arange(a->q, tn_scalar_int(0), tn_scalar_int(n_k), tn_scalar_int(1), TN_I64);
    if (lengths != TN_NONE && lengths != NULL) {
        lengths = tn_reshape(tn_cast(lengths, TN_I64), TN_SHAPE(-1, 1, 1, 1));
        row = tn_add(row, tn_add_scalar(lengths, tn_scalar_int(-n_q)));
        seen = tn_lt(column, lengths);
    }
    ahead = tn_sub(column, row);
    if (causal) {
        near = tn_le(ahead, tn_full(a->q, TN_SCALAR_SHAPE, tn_scalar_int(0), TN_I64));
        seen = seen == TN_NONE ? near : tn_logical_and(seen, near);
    }
    if (right >= 0) {
        near = tn_le(ahead, tn_full(a->q, TN_SCALAR_SHAPE, tn_scalar_int(right), TN_I64));
        seen = seen == TN_NONE ? near : tn_logical_and(seen, near);
    }
    if (left >= 0) {
        near = tn_ge(ahead, tn_full(a->q, TN_SCALAR_SHAPE, tn_scalar_int(-left), TN_I64));
        seen = seen == TN_NONE ? near : tn_logical_and(seen, near);
    }
    return seen;
}

/* Sets what hides keys. */
static tn_status read_masks(tn_rule_call *call, struct attention *a)
{
    tn_tensor *mask = rule_optional(call, "attn_mask"), *seen, *bias;
    bool plain = rule_int(call, "is_causal") != 0 && mask == TN_NONE && a->past == 0 &&
                 !rule_has(call, "nonpad_kv_seqlen") && rule_int(call, "left_window_size") < 0 &&
                 rule_int(call, "right_window_size") < 0;
    tn_dtype dtype;

    a->bias = TN_NONE;
    a->is_causal = plain;
    if (call->status != TN_OK)
        return call->status;
    dtype = tn_tensor_dtype(a->q);
    if (mask != TN_NONE)
        a->bias = mask_bias(mask, tn_tensor_size(a->k, 2), dtype);
    seen = visible(call, a);
    if (a->bias == NULL || seen == NULL)
        return rule_give(call, NULL);
    if (seen == TN_NONE)
        return TN_OK;
    bias = mask_bias(seen, tn_tensor_size(a->k, 2), dtype);
    a->bias = a->bias == TN_NONE ? bias : tn_add(a->bias, bias);
    return a->bias != NULL ? TN_OK : rule_give(call, NULL);
}

static tn_tensor *with_past(tn_rule_call *call, const char *name, tn_tensor *x)
{
    tn_tensor *pair[2] = { rule_optional(call, name), x };

    if (call->status != TN_OK || pair[0] == TN_NONE)
        return x;
    return tn_cat(pair, 2, 2);
}

static tn_status read_attention(tn_rule_call *call, struct attention *a)
{
    a->q = rule_tensor(call, "Q");
    a->k = rule_tensor(call, "K");
    a->v = rule_tensor(call, "V");
    if (call->status != TN_OK)
        return call->status;
    a->joined = tn_tensor_ndim(a->q) == 3;
    if (a->joined) {
        int64_t own = rule_int(call, "kv_num_heads");

        a->q = heads_of(call, a->q, rule_int(call, "q_num_heads"), "Q");
        a->k = heads_of(call, a->k, own, "K");
        a->v = heads_of(call, a->v, own, "V");
    }
    if (a->q == NULL || a->k == NULL || a->v == NULL)
        return rule_give(call, NULL);
    if (tn_tensor_ndim(a->q) != 4 || tn_tensor_ndim(a->k) != 4 || tn_tensor_ndim(a->v) != 4)
        return rule_fail(
            call, TN_ERR_VALUE, "Q, K, V: %d, %d and %d dimensions; expected 3 of each, or 4",
            (int)tn_tensor_ndim(a->q), (int)tn_tensor_ndim(a->k), (int)tn_tensor_ndim(a->v));
    if (rule_has(call, "past_key")) {
        tn_tensor *past = rule_tensor(call, "past_key");

        a->past = past != NULL && tn_tensor_ndim(past) == 4 ? tn_tensor_size(past, 2) : 0;
    }
    a->k = with_past(call, "past_key", a->k);
    a->v = with_past(call, "past_value", a->v);
    a->scale = rule_has(call, "scale") ? rule_float(call, "scale")
                                       : 1 / sqrt((double)tn_tensor_size(a->q, 3));
    a->softcap = rule_float(call, "softcap");
    if (a->k == NULL || a->v == NULL)
        return rule_give(call, NULL);
    return call->status;
}

/* The scores, a part of which the fourth result can be. */
static tn_tensor *composed(tn_rule_call *call, const struct attention *a, tn_tensor *k,
                           tn_tensor *v, tn_tensor **shown)
{
    tn_dtype precise = onnx_rule_dtype(call, "softmax_precision"), dtype = tn_tensor_dtype(a->q);
    int64_t mode = rule_int(call, "qk_matmul_output_mode");
    double root = sqrt(fabs(a->scale)), sign = a->scale < 0 ? -1 : 1;
    tn_tensor *y, *hidden = TN_NONE, *zero;

    y = tn_matmul(tn_mul_scalar(a->q, tn_scalar_float(sign * root)),
                  tn_transpose(tn_mul_scalar(k, tn_scalar_float(root)), -1, -2));
    *shown = y;
    if (a->softcap > 0)
        y = tn_mul_scalar(tn_tanh(tn_mul_scalar(y, tn_scalar_float(1 / a->softcap))),
                          tn_scalar_float(a->softcap));
    if (mode == 1)
        *shown = y;
    if (a->bias != TN_NONE) {
        hidden = tn_amax(a->bias, TN_INTS(-1), true);
        y = tn_add(y, a->bias);
    }
    if (mode == 2)
        *shown = y;
    if (y == NULL || hidden == NULL)
        return NULL;
    if (hidden != TN_NONE) { /* rows without keys: zeros, also in gradients */
        hidden = tn_eq(hidden, onnx_number(-INFINITY, hidden));
        y = tn_where(hidden, onnx_number(0, y), y);
    }
    y = tn_cast(tn_softmax(rule_cast(y, precise), -1), dtype);
    zero = tn_full(a->q, TN_SCALAR_SHAPE, tn_scalar_int(0), dtype);
    if (hidden != TN_NONE)
        y = tn_where(hidden, zero, y);
    if (mode == 3)
        *shown = y;
    return tn_matmul(y, v);
}

static tn_status attention(tn_rule_call *call)
{
    struct attention a = { .past = 0 };
    tn_tensor *k, *v, *y, *scores = NULL;
    bool plain;

    if (read_attention(call, &a) != TN_OK || read_masks(call, &a) != TN_OK)
        return call->status;
    k = for_queries(call, a.k, tn_tensor_size(a.q, 1));
    v = for_queries(call, a.v, tn_tensor_size(a.q, 1));
    if (k == NULL || v == NULL)
        return rule_give(call, NULL);
    plain = a.softcap == 0 && call->wanted < 4 && !rule_has(call, "softmax_precision");
    if (plain)
        y = tn_scaled_dot_product_attention(a.q, k, v, a.is_causal ? TN_NONE : a.bias, 0.0,
                                            a.is_causal, a.scale);
    else
        y = composed(call, &a, k, v, &scores);
    rule_give(call, a.joined ? heads_joined(y) : y);
    if (call->wanted > 1)
        rule_give(call, a.k);
    if (call->wanted > 2)
        rule_give(call, a.v);
    return call->wanted > 3 ? rule_give(call, scores) : call->status;
}

/* The same without masks; the scores have at least 32 bits. */
static tn_status flex_attention(tn_rule_call *call)
{
    tn_tensor *q = rule_tensor(call, "Q"), *k = rule_tensor(call, "K"), *v = rule_tensor(call, "V");
    tn_dtype dtype, precise = onnx_rule_dtype(call, "softmax_precision");
    double scale;

    if (call->status != TN_OK)
        return call->status;
    if (tn_tensor_ndim(q) != 4 || tn_tensor_ndim(k) != 4 || tn_tensor_ndim(v) != 4)
        return rule_fail(call, TN_ERR_VALUE, "Q, K, V: %d, %d and %d dimensions; expected 4",
                         (int)tn_tensor_ndim(q), (int)tn_tensor_ndim(k), (int)tn_tensor_ndim(v));
    dtype = tn_tensor_dtype(v);
    if (precise == TN_DTYPE_AUTO)
        precise = tn_tensor_dtype(q) == TN_F64 ? TN_F64 : TN_F32;
    scale = rule_has(call, "scale") ? rule_float(call, "scale")
                                    : 1 / sqrt((double)tn_tensor_size(q, 3));
    k = for_queries(call, k, tn_tensor_size(q, 1));
    v = for_queries(call, v, tn_tensor_size(q, 1));
    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, rule_cast(tn_scaled_dot_product_attention(
                                         rule_cast(q, precise), rule_cast(k, precise),
                                         rule_cast(v, precise), TN_NONE, 0.0, false, scale),
                                     dtype));
}

/* ---- positions ------------------------------------------------------------------------------- */

/* Rows of a cache of cosines or sines for each position, as [B or 1, L, 1, D / 2]. */
static tn_tensor *at_positions(tn_rule_call *call, const char *name)
{
    tn_tensor *cache = rule_tensor(call, name), *ids = rule_optional(call, "position_ids");

    if (call->status != TN_OK)
        return NULL;
    if (ids != TN_NONE)
        cache = tn_embedding(cache, ids);
    return cache != NULL ? tn_unsqueeze(cache, tn_tensor_ndim(cache) - 1) : NULL;
}

static tn_tensor *rotated(tn_tensor *x, tn_tensor *c, tn_tensor *s, bool interleaved)
{
    int64_t half = tn_tensor_size(x, 3) / 2;
    tn_tensor *a = interleaved ? tn_slice(x, 3, 0, 2 * half, 2) : tn_narrow(x, 3, 0, half);
    tn_tensor *b = interleaved ? tn_slice(x, 3, 1, 2 * half, 2) : tn_narrow(x, 3, half, half);
    tn_tensor *pair[2] = { tn_sub(tn_mul(c, a), tn_mul(s, b)), tn_add(tn_mul(s, a), tn_mul(c, b)) };

    if (pair[0] == NULL || pair[1] == NULL)
        return NULL;
    return interleaved ? tn_reshape(tn_stack(pair, 2, 4), tn_tensor_shape(x)) : tn_cat(pair, 2, 3);
}

static tn_status rotary_embedding(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *pair[2], *y;
    tn_tensor *c = at_positions(call, "cos_cache"), *s = at_positions(call, "sin_cache");
    int64_t size = rule_int(call, "rotary_embedding_dim"), whole;
    bool joined, interleaved = rule_int(call, "interleaved") != 0;

    if (call->status != TN_OK || c == NULL || s == NULL)
        return rule_give(call, NULL);
    joined = tn_tensor_ndim(x) == 3;
    if (joined)
        x = heads_of(call, x, rule_int(call, "num_heads"), "X");
    if (x == NULL)
        return rule_give(call, NULL);
    if (tn_tensor_ndim(x) != 4)
        return rule_fail(call, TN_ERR_VALUE, "X: %d dimensions; expected 3 or 4",
                         (int)tn_tensor_ndim(x));
    x = tn_permute(x, TN_INTS(0, 2, 1, 3));
    whole = tn_tensor_size(x, 3);
    size = size == 0 ? whole : size;
    if (size < 0 || size > whole || size % 2 != 0 || size / 2 != tn_tensor_size(c, -1) ||
        size / 2 != tn_tensor_size(s, -1))
        return rule_fail(call, TN_ERR_VALUE,
                         "cos_cache, sin_cache: %lld and %lld numbers; expected %lld, half of the "
                         "elements that are rotated",
                         (long long)tn_tensor_size(c, -1), (long long)tn_tensor_size(s, -1),
                         (long long)size / 2);
    pair[0] = rotated(tn_narrow(x, 3, 0, size), c, s, interleaved);
    pair[1] = tn_narrow(x, 3, size, whole - size);
    y = pair[0] != NULL && pair[1] != NULL ? tn_permute(tn_cat(pair, 2, 3), TN_INTS(0, 2, 1, 3))
                                           : NULL;
    return rule_give(call, joined ? heads_joined(y) : y);
}

/* ---- a state --------------------------------------------------------------------------------- */

struct memory {
    tn_tensor *q, *k, *v, *decay, *beta; /* [B, H, T, D]; TN_NONE: none */
    tn_tensor *state;                    /* [B, H, D of k, D of v] */
    int64_t group;                       /* heads of q for each of k and v */
    double scale;
};

/* One step: the state decays, learns the value of a key, and is read by the query. */
static tn_tensor *memory_step(struct memory *m, int64_t t)
{
    tn_tensor *q = tn_narrow(m->q, 2, t, 1), *k = tn_narrow(m->k, 2, t, 1);
    tn_tensor *v = tn_narrow(m->v, 2, t, 1), *state = m->state;

    if (m->decay != TN_NONE)
        state = tn_mul(state, tn_exp(tn_transpose(tn_narrow(m->decay, 2, t, 1), -1, -2)));
    if (m->beta != TN_NONE)
        v = tn_mul(tn_narrow(m->beta, 2, t, 1), tn_sub(v, tn_matmul(k, state)));
    m->state = tn_add(state, tn_matmul(tn_transpose(k, -1, -2), v));
    state = m->group > 1 ? tn_repeat_interleave_scalar(m->state, m->group, 1) : m->state;
    return tn_mul_scalar(tn_matmul(q, state), tn_scalar_float(m->scale));
}

/* An optional input [B, T, 1], [B, T, H] or [B, T, H D] as [B, H or 1, T, 1 or D]. */
static tn_tensor *rates(tn_rule_call *call, const char *name, int64_t heads, bool needed,
                        tn_dtype dtype)
{
    tn_tensor *x = rule_optional(call, name);

    if (call->status == TN_OK && rule_has(call, name) != needed)
        rule_fail(call, TN_ERR_VALUE, "%s: %s; expected %s with this update_rule", name,
                  needed ? "missing" : "given", needed ? "it" : "none");
    if (call->status != TN_OK || !needed)
        return call->status == TN_OK ? TN_NONE : NULL;
    if (tn_tensor_ndim(x) == 3 && tn_tensor_size(x, 2) == 1)
        heads = 1;
    return rule_cast(heads_of(call, x, heads, name), dtype);
}

static tn_status read_memory(tn_rule_call *call, struct memory *m, tn_dtype dtype)
{
    int64_t heads = rule_int(call, "q_num_heads"), own = rule_int(call, "kv_num_heads");
    bool gated = onnx_is(call, "update_rule", "gated"), both, delta;
    tn_tensor *past = rule_optional(call, "past_state");

    both = onnx_is(call, "update_rule", "gated_delta");
    delta = onnx_is(call, "update_rule", "delta");
    if (call->status == TN_OK && !gated && !both && !delta &&
        !onnx_is(call, "update_rule", "linear"))
        return rule_fail(call, TN_ERR_VALUE,
                         "update_rule: unknown, got %s; expected linear, gated, delta or "
                         "gated_delta",
                         rule_text(call, "update_rule"));
    if (call->status == TN_OK && (own < 1 || heads < 1 || heads % own != 0))
        return rule_fail(call, TN_ERR_VALUE, "q_num_heads: %lld; expected a multiple of %lld",
                         (long long)heads, (long long)own);
    m->q = rule_cast(heads_of(call, rule_tensor(call, "query"), heads, "query"), dtype);
    m->k = rule_cast(heads_of(call, rule_tensor(call, "key"), own, "key"), dtype);
    m->v = rule_cast(heads_of(call, rule_tensor(call, "value"), own, "value"), dtype);
    m->decay = rates(call, "decay", own, gated || both, dtype);
    m->beta = rates(call, "beta", own, delta || both, dtype);
    if (m->q == NULL || m->k == NULL || m->v == NULL || m->decay == NULL || m->beta == NULL)
        return rule_give(call, NULL);
    m->group = heads / own;
    m->scale = rule_float(call, "scale");
    if (m->scale == 0)
        m->scale = 1 / sqrt((double)tn_tensor_size(m->q, 3));
    m->state = past != TN_NONE ? rule_cast(past, dtype)
                               : tn_full(m->q,
                                         TN_SHAPE(tn_tensor_size(m->q, 0), own,
                                                  tn_tensor_size(m->k, 3), tn_tensor_size(m->v, 3)),
                                         tn_scalar_int(0), dtype);
    return m->state != NULL ? call->status : rule_give(call, NULL);
}

static tn_status linear_attention(tn_rule_call *call)
{
    tn_tensor *query = rule_tensor(call, "query"), *past = rule_optional(call, "past_state");
    tn_tensor **out;
    tn_dtype dtype, kept;
    struct memory m = { .group = 1 };
    int64_t steps;

    if (call->status != TN_OK)
        return call->status;
    dtype = tn_tensor_dtype(query) == TN_F64 ? TN_F64 : TN_F32;
    kept = tn_tensor_dtype(past != TN_NONE ? past : query);
    if (read_memory(call, &m, dtype) != TN_OK)
        return call->status;
    steps = tn_tensor_size(m.q, 2);
    if (tn_tensor_size(m.k, 2) != steps || tn_tensor_size(m.v, 2) != steps || steps < 1)
        return rule_fail(call, TN_ERR_VALUE,
                         "query, key, value: %lld, %lld and %lld steps; expected the same number, "
                         "at least 1",
                         (long long)steps, (long long)tn_tensor_size(m.k, 2),
                         (long long)tn_tensor_size(m.v, 2));
    out = rule_memory(call, steps, sizeof *out);
    for (int64_t t = 0; t < steps && out != NULL; t++) {
        out[t] = memory_step(&m, t);
        if (out[t] == NULL)
            return rule_give(call, NULL);
    }
    if (out == NULL)
        return call->status;
    rule_give(call, rule_cast(heads_joined(tn_cat(out, steps, 2)), tn_tensor_dtype(query)));
    return rule_give(call, rule_cast(m.state, kept));
}

/* A convolution of each channel, whose window begins before the first element: there is the end of
 * the elements before, the state. */
static tn_status causal_conv(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input"), *weight = rule_tensor(call, "weight"), *y;
    tn_tensor *bias = rule_optional(call, "bias"), *pair[2] = { NULL, x };
    int64_t before, length;

    if (call->status != TN_OK)
        return call->status;
    if (tn_tensor_ndim(x) != 3 || tn_tensor_ndim(weight) != 3 || tn_tensor_size(weight, 2) < 1)
        return rule_fail(call, TN_ERR_VALUE,
                         "input, weight: expected [batch, channels, length] and [channels, 1, k]");
    before = tn_tensor_size(weight, 2) - 1;
    pair[0] = rule_has(call, "past_state")
                  ? rule_tensor(call, "past_state")
                  : tn_full(x, TN_SHAPE(tn_tensor_size(x, 0), tn_tensor_size(x, 1), before),
                            tn_scalar_int(0), tn_tensor_dtype(x));
    x = pair[0] != NULL ? tn_cat(pair, 2, 2) : NULL;
    if (call->status != TN_OK || x == NULL)
        return rule_give(call, NULL);
    length = tn_tensor_size(x, 2);
    if (length < before)
        return rule_fail(call, TN_ERR_VALUE, "past_state: %lld elements; expected %lld",
                         (long long)tn_tensor_size(pair[0], 2), (long long)before);
    y = tn_conv1d(x, weight, bias, tn_no_ints(), tn_no_ints(), tn_no_ints(), tn_tensor_size(x, 1));
    if (onnx_is(call, "activation", "silu") || onnx_is(call, "activation", "swish"))
        y = tn_silu(y);
    else if (!onnx_is(call, "activation", "none"))
        return rule_fail(call, TN_ERR_VALUE,
                         "activation: unknown, got %s; expected none, silu or swish",
                         rule_text(call, "activation"));
    rule_give(call, y);
    return rule_give(call, tn_narrow(x, 2, length - before, before));
}

/* Writes rows into a cache, from a place on that each sample has. */
static tn_status tensor_scatter(tn_rule_call *call)
{
    tn_tensor *cache = rule_tensor(call, "past_cache"), *update = rule_tensor(call, "update");
    tn_tensor *from = rule_optional(call, "write_indices"), *place;
    int64_t axis = rule_axis(call, "axis", cache), shape[TN_MAX_DIMS], n;
    bool circular = onnx_is(call, "mode", "circular");

    if (call->status != TN_OK)
        return call->status;
    n = tn_tensor_ndim(update);
    if (n != tn_tensor_ndim(cache) || axis == 0)
        return rule_fail(call, TN_ERR_VALUE,
                         "axis, update: axis %lld and %lld dimensions; expected an axis above 0, "
                         "and %d dimensions",
                         (long long)axis, (long long)n, (int)tn_tensor_ndim(cache));
    for (int64_t i = 0; i < n; i++)
        shape[i] = i == axis ? tn_tensor_size(update, i) : 1;
    place = tn_reshape(
        tn_arange(cache, tn_scalar_int(0), tn_scalar_int(shape[axis]), tn_scalar_int(1), TN_I64),
        (tn_ints){ shape, n });
    shape[axis] = 1;
    shape[0] = -1;
    if (from != TN_NONE)
        place = tn_add(place, tn_reshape(tn_cast(from, TN_I64), (tn_ints){ shape, n }));
    if (circular)
        place = tn_remainder(place, tn_full(cache, TN_SCALAR_SHAPE,
                                            tn_scalar_int(tn_tensor_size(cache, axis)), TN_I64));
    place = tn_expand(place, tn_tensor_shape(update));
    return rule_give(call, tn_scatter(cache, place, update, axis));
}

static tn_status swiglu(tn_rule_call *call)
{
    tn_tensor *a = rule_tensor(call, "A"), *b = rule_tensor(call, "B");
    double alpha = rule_float(call, "alpha");

    if (call->status != TN_OK)
        return call->status;
    a = alpha == 1 ? tn_silu(a) : tn_mul(a, tn_sigmoid(tn_mul_scalar(a, tn_scalar_float(alpha))));
    return rule_give(call, tn_mul(a, b));
}

const tn_rule_def onnx_rules_attention[] = {
    { "Attention(Q, K, V, attn_mask=None, past_key=None, past_value=None, nonpad_kv_seqlen=None, "
      "is_causal=0, scale=None, q_num_heads=None, kv_num_heads=None, softcap=0.0, "
      "softmax_precision=None, qk_matmul_output_mode=0, left_window_size=-1, "
      "right_window_size=-1)",
      .call = attention, .since = 23 },
    { "ai.onnx.preview.FlexAttention(Q, K, V, scale=None, softmax_precision=None)",
      .call = flex_attention },
    { "RotaryEmbedding(X, cos_cache, sin_cache, position_ids=None, interleaved=0, num_heads=0, "
      "rotary_embedding_dim=0)",
      .call = rotary_embedding, .since = 23 },
    { "LinearAttention(query, key, value, past_state=None, decay=None, beta=None, q_num_heads, "
      "kv_num_heads, scale=0.0, update_rule='gated_delta', chunk_size=*)",
      .call = linear_attention },
    { "CausalConvWithState(input, weight, bias=None, past_state=None, activation='none')",
      .call = causal_conv },
    { "TensorScatter(past_cache, update, write_indices=None, axis=-2, mode='linear')",
      .call = tensor_scatter },
    { "SwiGLU(A, B, alpha=1.0)", .call = swiglu },
    { .function = NULL },
};

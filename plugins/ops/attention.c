/* SPDX-License-Identifier: MIT
 *
 * Scaled dot-product attention and its gradient. A device may have a kernel for attend that never
 * stores the matrix of all scores; the decomposition here stores it. */
#include "common.h"
#include <math.h>

/* ---- inference ---- */

/* Sets dtype, shape and packed strides of an output, with the dimensions in the order that they
 * have in the memory of `like`. */
static void in_order(tn_meta *meta, const tn_view *like, const int64_t *shape)
{
    int32_t order[TN_MAX_DIMS];
    int64_t next = 1;

    meta->dtype = tn_view_dtype(like);
    meta->ndim = like->ndim;
    meta->flags |= TN_META_STRIDED;
    for (int32_t d = 0; d < like->ndim; d++) {
        int32_t at = d;

        meta->shape[d] = shape[d];
        for (; at > 0 && like->strides[order[at - 1]] < like->strides[d] &&
               like->shape[order[at - 1]] > 1 && like->shape[d] > 1;
             at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (int32_t i = like->ndim; i-- > 0;) {
        meta->strides[order[i]] = next;
        next = tn__common_times(next, shape[order[i]] > 0 ? shape[order[i]] : 1);
    }
}

static tn_status check_shapes(const tn_view *q, const tn_view *k, const tn_view *v)
{
    char text[TN__TEXT], text_k[TN__TEXT], text_v[TN__TEXT];

    if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4 || q->shape[0] != k->shape[0] ||
        q->shape[0] != v->shape[0] || k->shape[1] != v->shape[1] || q->shape[3] != k->shape[3] ||
        k->shape[2] != v->shape[2] ||
        (k->shape[1] < 1 ? q->shape[1] != 0 : q->shape[1] % k->shape[1] != 0))
        return tn_fail(
            TN_ERR_RUNTIME,
            "q, k or v: wrong shape, got %s, %s and %s; expected [N, H, L, E], [N, G, S, E] and "
            "[N, G, S, V], G dividing H",
            tn__common_text(text, tn__common_shape(q)),
            tn__common_text(text_k, tn__common_shape(k)),
            tn__common_text(text_v, tn__common_shape(v)));
    tn_status status = tn__common_same_dtype(q, "q", k, "k");
    return status == TN_OK ? tn__common_same_dtype(q, "q", v, "v") : status;
}

static tn_status check_mask(const tn_view *mask, const tn_view *q, const tn_view *k)
{
    const int64_t full[4] = { q->shape[0], q->shape[1], q->shape[2], k->shape[2] };
    bool fits = mask == NULL || mask->ndim <= 4;
    char text[TN__TEXT], text_full[TN__TEXT];

    if (mask == NULL)
        return TN_OK;
    for (int32_t i = 0; fits && i < mask->ndim; i++) {
        int64_t size = mask->shape[mask->ndim - 1 - i];

        fits = size == 1 || size == full[3 - i];
    }
    if (!fits)
        return tn_fail(TN_ERR_RUNTIME,
                       "mask: wrong shape, got %s; expected one that broadcasts to the scores %s",
                       tn__common_text(text, tn__common_shape(mask)),
                       tn__common_text(text_full, (tn_ints){ full, 4 }));
    if (tn_view_dtype(mask) == TN_F64 && tn_view_dtype(q) != TN_F64)
        return tn_fail(
            TN_ERR_RUNTIME,
            "mask: wrong dtype, got float64 with q of %s; expected the same dtype: tn_cast the "
            "mask",
            tn_dtype_name(tn_view_dtype(q)));
    return TN_OK;
}

static tn_status check_options(bool is_causal, double dropout_p, const tn_view *mask)
{
    if (!(dropout_p >= 0 && dropout_p <= 1))
        return tn_fail(TN_ERR_VALUE,
                       "dropout_p: out of range, got %g; expected a probability from 0 to 1",
                       dropout_p);
    if (is_causal && mask != NULL)
        return tn_fail(TN_ERR_RUNTIME,
                       "mask or is_causal: too many, got both; expected one of them");
    return TN_OK;
}

static tn_dtype wide(tn_dtype dtype)
{
    return tn_dtype_size(dtype) < 4 ? TN_F32 : dtype;
}

static tn_status attend_infer(tn_infer *infer)
{
    const tn_attend_options *o = infer->options;
    const tn_view *q = infer->in[0], *k = infer->in[1], *v = infer->in[2];
    tn_status status = check_shapes(q, k, v);

    if (status == TN_OK)
        status = check_mask(infer->in[3], q, k);
    if (status == TN_OK)
        status = check_options(o->is_causal, o->dropout_p, infer->in[3]);
    if (status == TN_OK)
        status = tn__common_state(infer->in[4], o->seed);
    if (status != TN_OK)
        return status;
    in_order(&infer->out[0], q,
             (const int64_t[]){ q->shape[0], q->shape[1], q->shape[2], v->shape[3] });
    tn__common_plain(&infer->out[1], wide(tn_view_dtype(q)), (tn_ints){ q->shape, 3 });
    return TN_OK;
}

static tn_status attend_grad_infer(tn_infer *infer)
{
    const tn_attend_grad_options *o = infer->options;
    const tn_view *gy = infer->in[0], *q = infer->in[1], *k = infer->in[2], *v = infer->in[3];
    const tn_view *y = infer->in[5];
    char text[TN__TEXT], text_q[TN__TEXT];
    tn_status status = check_shapes(q, k, v);

    if (status == TN_OK)
        status = check_mask(infer->in[4], q, k);
    if (status == TN_OK)
        status = check_options(o->is_causal, o->dropout_p, infer->in[4]);
    if (status == TN_OK)
        status = tn__common_state(infer->in[8], o->seed);
    if (status != TN_OK)
        return status;
    for (int i = 0; i < 2; i++) {
        const tn_view *part = i == 0 ? gy : y;
        bool fits = part->ndim == 4 && part->shape[3] == v->shape[3] &&
                    tn_view_dtype(part) == tn_view_dtype(q);

        for (int d = 0; d < 3; d++)
            fits = fits && part->shape[d] == q->shape[d];
        if (!fits)
            return tn_fail(
                TN_ERR_RUNTIME,
                "%s: wrong shape or dtype, got %s and %s; expected [%lld, %lld, %lld, %lld] and "
                "%s, as attend returns for q and v",
                i == 0 ? "gy" : "y", tn__common_text(text, tn__common_shape(part)),
                tn_dtype_name(tn_view_dtype(part)), (long long)q->shape[0], (long long)q->shape[1],
                (long long)q->shape[2], (long long)v->shape[3], tn_dtype_name(tn_view_dtype(q)));
    }
    status = tn__common_same_dtype(infer->in[6], "logsumexp", infer->in[7], "glogsumexp");
    if (status != TN_OK)
        return status;
    for (int i = 6; i < 8; i++) {
        const tn_view *part = infer->in[i];
        bool fits = part == NULL || part->ndim == 3;

        for (int d = 0; d < 3; d++)
            fits = fits && (part == NULL || part->shape[d] == q->shape[d]);
        if (!fits)
            return tn_fail(TN_ERR_RUNTIME,
                           "%s: wrong shape, got %s; expected the first three dimensions of q %s",
                           i == 6 ? "logsumexp" : "glogsumexp",
                           tn__common_text(text, tn__common_shape(part)),
                           tn__common_text(text_q, tn__common_shape(q)));
    }
    in_order(&infer->out[0], q, q->shape);
    in_order(&infer->out[1], k, k->shape);
    in_order(&infer->out[2], v, v->shape);
    return TN_OK;
}

/* ---- decompositions ---- */

static tn_tensor *as_wide(tn_tensor *x)
{
    return x == NULL || x == TN_NONE ? x : tn_cast(x, wide(tn_tensor_dtype(x)));
}

/* Casts a result that was saved for the gradient to the dtype in which the scores of q are
 * computed. */
static tn_tensor *as_scores(tn_tensor *x, tn_tensor *q)
{
    return q == NULL ? NULL : tn_cast(x, wide(tn_tensor_dtype(q)));
}

/* [N, G, S, E] to [N, G * times, S, E]: each head is repeated `times` times in a row. */
static tn_tensor *repeated(tn_tensor *x, int64_t times)
{
    int64_t n, g, s, e;

    if (x == NULL || times == 1)
        return x;
    n = tn_tensor_size(x, 0);
    g = tn_tensor_size(x, 1);
    s = tn_tensor_size(x, 2);
    e = tn_tensor_size(x, 3);
    return tn_reshape(tn_expand(tn_unsqueeze(x, 2), TN_SHAPE(n, g, times, s, e)),
                      TN_SHAPE(n, g * times, s, e));
}

/* The reverse of repeated() for gradients: sums over the query heads that share a key head. */
static tn_tensor *shared(tn_tensor *x, int64_t times)
{
    static const int64_t dim[] = { 2 };

    if (x == NULL || times == 1)
        return x;
    return tn_sum(tn_reshape(x, TN_SHAPE(tn_tensor_size(x, 0), tn_tensor_size(x, 1) / times, times,
                                         tn_tensor_size(x, 2), tn_tensor_size(x, 3))),
                  ((tn_ints){ dim, 1 }));
}

static int64_t sharing(tn_tensor *q, tn_tensor *k)
{
    return tn_tensor_size(k, 1) > 0 ? tn_tensor_size(q, 1) / tn_tensor_size(k, 1) : 1;
}

/* scale q k^T + mask, in float32 or float64. A score is minus infinity where the mask or is_causal
 * hides the key. */
static tn_tensor *scores(tn_tensor *q, tn_tensor *k, tn_tensor *mask, double scale, bool is_causal)
{
    tn_tensor *s = tn_matmul(tn_mul_scalar(as_wide(q), scale),
                             tn_transpose(repeated(as_wide(k), sharing(q, k)), 2, 3));

    if (s != NULL && is_causal) {
        s = tn_masked_fill(s,
                           tn_gt(tn_arange(q, 0, tn_tensor_size(k, 2), 1, TN_I64),
                                 tn_unsqueeze(tn_arange(q, 0, tn_tensor_size(q, 2), 1, TN_I64), 1)),
                           -INFINITY);
    }
    if (mask == TN_NONE)
        return s;
    return tn_tensor_dtype(mask) == TN_BOOL ? tn_masked_fill(s, tn_logical_not(mask), -INFINITY)
                                            : tn_add(s, mask);
}

struct drop {
    double p;
    int64_t seed, block;
    tn_tensor *state;
};

/* Returns the factors of dropout, as in tn_dropout: 1 / (1 - p) where an element is kept, 0 where
 * it is dropped. TN_NONE if all elements are kept. */
static tn_tensor *kept(tn_tensor *s, tn_dtype dtype, struct drop drop)
{
    tn_tensor *room, *keep;

    if (s == NULL)
        return NULL;
    if (drop.p == 0)
        return TN_NONE;
    if (drop.p == 1)
        return tn__common_nothing(s, tn_tensor_shape(s));
    room = tn_tensor_empty(tn_tensor_shape(s), tn_tensor_dtype(s), tn_tensor_device(s));
    /* the probability 1 - p, rounded to q's dtype */
    keep = tn_cast(tn_tensor_full((tn_ints){ NULL, 0 }, 1 - drop.p, dtype, tn_tensor_device(s)),
                   tn_tensor_dtype(s));
    keep = tn_cast(tn_lt(tn_philox_uniform(room, drop.state, 0, 1, drop.seed, drop.block), keep),
                   tn_tensor_dtype(s));
    return tn_mul_scalar(keep, 1 / (1 - drop.p));
}

/* Returns the softmax of the scores: e^(s - logsumexp) */
static tn_tensor *shares(tn_tensor *s, tn_tensor *logsumexp)
{
    return tn_exp(tn_sub(s, tn_unsqueeze(logsumexp, 3)));
}

static tn_status attend_decompose(const tn_decompose *call)
{
    const tn_attend_options *o = call->options;
    struct drop drop = { o->dropout_p, o->seed, o->block, call->in[4] };
    tn_tensor *s, *keep, *p;
    int64_t last = 3;
    s = scores(call->in[0], call->in[1], call->in[3], o->scale, o->is_causal);
    if (s == NULL)
        return tn_error_last_code();
    if (tn_tensor_size(s, 3) > 0) {
        call->out[1] = tn_logsumexp(s, ((tn_ints){ &last, 1 }));
        call->out[1] = tn_masked_fill(
            call->out[1],
            call->out[1] == NULL ? NULL
                                 : tn_eq(call->out[1], tn__scalar_number(call->out[1], -INFINITY)),
            INFINITY);
    } else {
        call->out[1] = tn_tensor_full((tn_ints){ tn_tensor_shape(s).at, 3 }, INFINITY,
                                      tn_tensor_dtype(s), tn_tensor_device(s));
    }
    p = shares(s, call->out[1]);
    keep = kept(s, tn_tensor_dtype(call->in[0]), drop);
    if (keep != TN_NONE)
        p = tn_mul(p, keep);
    call->out[0] = tn_matmul(p, repeated(as_wide(call->in[2]), sharing(call->in[0], call->in[1])));
    call->out[0] = call->out[0] == NULL ? NULL
                                        : tn_cast(call->out[0], tn_tensor_dtype(call->in[0]));
    return call->out[0] != NULL && call->out[1] != NULL ? TN_OK : tn_error_last_code();
}

/* Tensors from which all gradients are computed: the gradient of the scores, and the softmax after
 * dropout. */
struct slopes {
    tn_tensor *s, *dropped;
};

static tn_status find_slopes(tn_tensor *gy, tn_tensor *q, tn_tensor *k, tn_tensor *v,
                             tn_tensor *mask, tn_tensor *y, tn_tensor *logsumexp,
                             tn_tensor *glogsumexp, tn_tensor *state,
                             const tn_attend_grad_options *o, struct slopes *out)
{
    struct drop drop = { o->dropout_p, o->seed, o->block, state };
    tn_tensor *p, *gp, *keep, *less;
    int64_t last = 3;

    p = shares(scores(q, k, mask, o->scale, o->is_causal), as_scores(logsumexp, q));
    gp = tn_matmul(as_wide(gy), tn_transpose(repeated(as_wide(v), sharing(q, k)), 2, 3));
    keep = kept(p, tn_tensor_dtype(q), drop);
    out->dropped = p;
    if (keep != TN_NONE) {
        gp = tn_mul(gp, keep);
        out->dropped = tn_mul(p, keep);
    }
    less = tn_sum(tn_mul(as_wide(gy), as_wide(y)), TN_INTS(last), true);
    if (glogsumexp != TN_NONE)
        less = tn_sub(less, tn_unsqueeze(as_scores(glogsumexp, q), 3));
    out->s = tn_mul(p, tn_sub(gp, less));
    return out->s != NULL && out->dropped != NULL ? TN_OK : tn_error_last_code();
}

static tn_status attend_grad_decompose(const tn_decompose *call)
{
    const tn_attend_grad_options *o = call->options;
    tn_dtype dtype = tn_tensor_dtype(call->in[1]);
    int64_t times = sharing(call->in[1], call->in[2]);
    struct slopes slopes;
    tn_status status = find_slopes(call->in[0], call->in[1], call->in[2], call->in[3], call->in[4],
                                   call->in[5], call->in[6], call->in[7], call->in[8], o, &slopes);
    if (status != TN_OK)
        return status;
    call->out[0] = tn_mul_scalar(tn_matmul(slopes.s, repeated(as_wide(call->in[2]), times)),
                                 o->scale);
    call->out[1] = shared(
        tn_mul_scalar(tn_matmul(tn_transpose(slopes.s, 2, 3), as_wide(call->in[1])), o->scale),
        times);
    call->out[2] = shared(tn_matmul(tn_transpose(slopes.dropped, 2, 3), as_wide(call->in[0])),
                          times);
    for (int i = 0; i < 3; i++) {
        call->out[i] = call->out[i] == NULL ? NULL : tn_cast(call->out[i], dtype);
        if (call->out[i] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

static tn_status attend_derive(tn_derive *d)
{
    const tn_attend_options *o = d->options;
    tn_attend_grad_options g = TN_ATTEND_GRAD_OPTIONS;
    tn_tensor *q = d->in[0], *k = d->in[1], *v = d->in[2], *gy = d->gout[0], *all[3];
    tn_tensor *mask = d->in_meta[3].ndim < 0 ? TN_NONE : d->in[3];
    tn_tensor *state = d->in_meta[4].ndim < 0 ? TN_NONE : d->in[4];

    g.is_causal = o->is_causal;
    g.dropout_p = o->dropout_p;
    g.seed = o->seed;
    g.block = o->block;
    g.scale = o->scale;
    if (gy == TN_NONE)
        gy = tn__common_nothing(d->out[0], tn_tensor_shape(d->out[0]));
    if (tn__needs(d, 0) || tn__needs(d, 1) || tn__needs(d, 2)) {
        if (tn_attend_grad(gy, q, k, v, mask, d->out[0], d->out[1], d->gout[1], state, o->scale,
                           &all[0], &all[1], &all[2], g.is_causal, g.dropout_p, g.seed,
                           g.block) != TN_OK)
            return tn_error_last_code();
        for (int i = 0; i < 3; i++)
            if (tn__needs(d, i))
                d->gin[i] = all[i];
    }
    if (tn__needs(d, 3)) {
        struct slopes slopes;
        tn_status status = find_slopes(gy, q, k, v, mask, d->out[0], d->out[1], d->gout[1], state,
                                       &g, &slopes);

        if (status != TN_OK)
            return status;
        d->gin[3] = tn_sum_to(tn_cast(slopes.s, d->in_meta[3].dtype), tn__common_in_shape(d, 3));
    }
    return TN_OK;
}
/* ---- scaled_dot_product_attention ---- */

static tn_status scaled_dot_product_attention_infer(tn_infer *infer)
{
    const tn_scaled_dot_product_attention_options *o = infer->options;
    const tn_view *q = infer->in[0], *k = infer->in[1], *v = infer->in[2];
    char text[TN__TEXT], text_k[TN__TEXT], text_v[TN__TEXT];
    tn_status status;

    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2 ||
        q->shape[q->ndim - 1] != k->shape[k->ndim - 1] ||
        k->shape[k->ndim - 2] != v->shape[v->ndim - 2])
        return tn_fail(
            TN_ERR_RUNTIME,
            "q, k or v: wrong shape, got %s, %s and %s; expected [..., L, E], [..., S, E] and "
            "[..., S, V]",
            tn__common_text(text, tn__common_shape(q)),
            tn__common_text(text_k, tn__common_shape(k)),
            tn__common_text(text_v, tn__common_shape(v)));
    if ((status = tn__common_same_dtype(q, "q", k, "k")) != TN_OK ||
        (status = tn__common_same_dtype(q, "q", v, "v")) != TN_OK)
        return status;
    if (!(o->dropout_p >= 0 && o->dropout_p <= 1))
        return tn_fail(TN_ERR_VALUE,
                       "dropout_p: out of range, got %g; expected a probability from 0 to 1",
                       o->dropout_p);
    if (o->is_causal && infer->in[3] != NULL)
        return tn_fail(TN_ERR_RUNTIME,
                       "mask or is_causal: too many, got both; expected one of them");
    if (o->enable_gqa &&
        (q->ndim < 3 || k->ndim != q->ndim || v->ndim != q->ndim ||
         k->shape[k->ndim - 3] != v->shape[v->ndim - 3] || k->shape[k->ndim - 3] < 1 ||
         q->shape[q->ndim - 3] % k->shape[k->ndim - 3] != 0))
        return tn_fail(
            TN_ERR_RUNTIME,
            "enable_gqa: wrong number of heads or dimensions, got k %s, v %s, q %s; expected "
            "[..., heads, length, features] in each with the same number of dimensions, as many "
            "heads in v as in k, and a multiple of them in q",
            tn__common_text(text_k, tn__common_shape(k)),
            tn__common_text(text_v, tn__common_shape(v)),
            tn__common_text(text, tn__common_shape(q)));
    return tn__common_open(infer);
}

/* The dimensions of all inputs before the last two, broadcast together. With enable_gqa, k and v
 * keep their own number of heads, the last of these dimensions. */
struct leading {
    int64_t size[TN_MAX_DIMS];
    int64_t count;
};

static tn_status broadcast(struct leading *all, tn_tensor *x, const char *name, bool but_last)
{
    tn_ints shape = tn_tensor_shape(x);
    int64_t own = shape.count > 2 ? shape.count - 2 : 0;
    char text[TN__TEXT], text_all[TN__TEXT];

    for (; all->count < own; all->count++) {
        memmove(all->size + 1, all->size, (size_t)all->count * sizeof all->size[0]);
        all->size[0] = 1;
    }
    for (int64_t d = 0; d < own - but_last; d++) {
        int64_t *size = &all->size[all->count - own + d];

        if (*size == 1)
            *size = shape.at[d];
        else if (shape.at[d] != 1 && shape.at[d] != *size)
            return tn_fail(
                TN_ERR_RUNTIME,
                "%s: wrong shape, got %s; expected dimensions before the last two that broadcast "
                "to %s",
                name, tn__common_text(text, shape),
                tn__common_text(text_all, (tn_ints){ all->size, all->count }));
    }
    return TN_OK;
}

/* x as [N, H, rows, columns]. With `own_heads`, H is x's own number of heads. */
static tn_tensor *as_four(tn_tensor *x, const struct leading *all, bool own_heads)
{
    tn_ints shape = tn_tensor_shape(x);
    int64_t full[TN_MAX_DIMS], count = all->count, n = 1, rows = shape.at[shape.count - 2],
                               columns = shape.at[shape.count - 1];

    for (int64_t d = 0; d < count; d++)
        full[d] = all->size[d];
    if (own_heads)
        full[count - 1] = shape.at[shape.count - 3];
    full[count] = rows;
    full[count + 1] = columns;
    x = tn_expand(x, (tn_ints){ full, count + 2 });
    if (count == 2)
        return x;
    if (count < 2) /* [L, E] is one head; [N, L, E] is one head for each of N */
        return count == 0  ? tn_unsqueeze(tn_unsqueeze(x, 0), 0)
               : own_heads ? tn_unsqueeze(x, 0)
                           : tn_unsqueeze(x, 1);
    for (int64_t d = 0; d < count - 1; d++)
        n = tn__common_times(n, full[d]);
    return tn_reshape(x, TN_SHAPE(n, full[count - 1], rows, columns));
}

/* The mask in a shape that broadcasts to [N, H, L, S]. If the inputs have more leading dimensions,
 * the mask is expanded to all of them and reshaped. */
static tn_tensor *mask_as_four(tn_tensor *mask, const struct leading *all, bool own_heads)
{
    int32_t ndim = tn_tensor_ndim(mask);

    if (mask == TN_NONE || ndim <= 2)
        return mask;
    if (all->count > 2) {
        int64_t full[TN_MAX_DIMS], n = 1, rows = tn_tensor_size(mask, -2),
                                   columns = tn_tensor_size(mask, -1);

        for (int64_t d = 0; d < all->count; d++)
            full[d] = all->size[d];
        for (int64_t d = 0; d < all->count - 1; d++)
            n = tn__common_times(n, full[d]);
        full[all->count] = rows;
        full[all->count + 1] = columns;
        return tn_reshape(tn_expand(mask, (tn_ints){ full, all->count + 2 }),
                          TN_SHAPE(n, full[all->count - 1], rows, columns));
    }
    return all->count == 1 && !own_heads ? tn_unsqueeze(mask, 1) : mask;
}

static tn_status scaled_dot_product_attention_decompose(const tn_decompose *call)
{
    const tn_scaled_dot_product_attention_options *o = call->options;
    tn_attend_options how = TN_ATTEND_OPTIONS;
    struct leading all = { .count = 0 };
    tn_tensor *q = call->in[0], *k = call->in[1], *v = call->in[2], *mask = call->in[3], *y,
              *logsumexp;
    int64_t e = tn_tensor_size(q, -1), full[TN_MAX_DIMS];
    bool gqa = o->enable_gqa;
    tn_status status = broadcast(&all, q, "q", false);
    double scale = tn__given_number(o->scale) ? o->scale : 1 / sqrt((double)(e > 0 ? e : 1));
    if (status == TN_OK)
        status = broadcast(&all, k, "k", gqa);
    if (status == TN_OK)
        status = broadcast(&all, v, "v", gqa);
    if (status == TN_OK && mask != TN_NONE)
        status = broadcast(&all, mask, "mask", false);
    if (status != TN_OK)
        return status;
    if (gqa && all.size[all.count - 1] != tn_tensor_size(q, -3))
        return tn_fail(
            TN_ERR_RUNTIME,
            "mask: too many heads with enable_gqa, got %lld; expected at most %lld, as q has",
            (long long)all.size[all.count - 1], (long long)tn_tensor_size(q, -3));
    for (int64_t d = 0; d < all.count; d++)
        full[d] = all.size[d];
    full[all.count] = tn_tensor_size(q, -2);
    full[all.count + 1] = tn_tensor_size(v, -1);
    how.is_causal = o->is_causal;
    how.dropout_p = o->dropout_p;
    if (o->dropout_p > 0 && o->dropout_p < 1) {
        uint64_t seed, block,
            scores = (uint64_t)tn_tensor_size(q, -2) * (uint64_t)tn_tensor_size(k, -2);

        for (int64_t d = 0; d < all.count; d++)
            scores *= (uint64_t)all.size[d];
        status = tn_random_take(scores, tn_tensor_dtype(q) == TN_F64 ? 2 : 1, &seed, &block);
        if (status != TN_OK)
            return status;
        how.seed = (int64_t)seed;
        how.block = (int64_t)block;
    }
    q = gqa && all.count == 1 ? tn_unsqueeze(q, 0) : as_four(q, &all, false);
    k = as_four(k, &all, gqa);
    v = as_four(v, &all, gqa);
    mask = mask_as_four(mask, &all, gqa);
    status = tn_attend(q, k, v, mask, TN_NONE, scale, &y, &logsumexp, how.is_causal, how.dropout_p,
                       how.seed, how.block);
    return status == TN_OK
               ? tn__common_given(call->out, all.count == 2
                                                 ? y
                                                 : tn_reshape(y, (tn_ints){ full, all.count + 2 }))
               : status;
}

TN__OP(attend, .infer = attend_infer, .derive = attend_derive, .decompose = attend_decompose);
TN__OP(attend_grad, .infer = attend_grad_infer, .decompose = attend_grad_decompose);
TN__OP(scaled_dot_product_attention, .infer = scaled_dot_product_attention_infer,
       .decompose = scaled_dot_product_attention_decompose);

/* SPDX-License-Identifier: MIT
 *
 * Losses with margins, decomposed into other operators. */
#include "loss.h"

static tn_tensor *hinge(tn_tensor *x, tn_tensor *target, double margin)
{
    tn_tensor *far = at_least(add_number(tn_neg(x), margin), 0), *zero = number(x, 0);

    return plus(tn_where(tn_ne(target, number(target, 1)), far, zero),
                tn_where(tn_ne(target, number(target, -1)), x, zero));
}

LOSS(hinge_embedding_loss, TN_OK, hinge(in[0], in[1], o->margin));
EACH(margin_ranking_loss, TN_OK,
     at_least(add_number(tn_neg(tn_mul(in[2], minus(in[0], in[1]))), o->margin), 0), NULL);

static tn_tensor *distance(tn_tensor *a, tn_tensor *b, const tn_triplet_margin_loss_options *o)
{
    return tn_pairwise_distance(a, b, o->p, o->eps);
}

static tn_tensor *triplet(tn_tensor *const *in, const tn_triplet_margin_loss_options *o)
{
    tn_tensor *near = distance(in[0], in[1], o), *far = distance(in[0], in[2], o);

    if (o->swap)
        far = tn_minimum(far, distance(in[1], in[2], o));
    return at_least(add_number(minus(near, far), o->margin), 0);
}

static tn_status triplet_check(const tn_infer *infer, double margin)
{
    const tn_view *a = infer->in[0];
    char text[TN__TEXT], text_a[TN__TEXT];

    if (!(margin > 0))
        return tn_fail(TN_ERR_VALUE, "margin: out of range, got %g; expected more than 0", margin);
    for (int32_t i = 1; i < 3; i++) {
        const tn_view *b = infer->in[i];
        bool fits = a->ndim == b->ndim;

        for (int32_t d = 0; fits && d < a->ndim; d++)
            fits = a->shape[d] == b->shape[d] || a->shape[d] == 1 || b->shape[d] == 1;
        if (!fits)
            return tn_fail(
                TN_ERR_RUNTIME,
                "anchor or %s: wrong shape, got %s and %s; expected shapes that broadcast",
                i == 1 ? "positive" : "negative", tn__common_text(text_a, tn__common_shape(a)),
                tn__common_text(text, tn__common_shape(b)));
    }
    return TN_OK;
}

LOSS(triplet_margin_loss, triplet_check(infer, o->margin), triplet(in, o));

static tn_tensor *cosines(tn_tensor *const *in, double margin)
{
    int64_t dim = tn_tensor_ndim(in[0]) > 1 || tn_tensor_ndim(in[1]) > 1 ? 1 : 0;
    tn_tensor *a = add_number(sum_dim(tn_square(in[0]), dim), 1e-12),
              *b = add_number(sum_dim(tn_square(in[1]), dim), 1e-12);
    tn_tensor *cos = divide(sum_dim(tn_mul(in[0], in[1]), dim), tn_sqrt(tn_mul(a, b))),
              *zero = number(cos, 0);

    return plus(
        tn_where(tn_eq(in[2], number(in[2], 1)), one_minus(cos), zero),
        tn_where(tn_eq(in[2], number(in[2], -1)), at_least(add_number(cos, -margin), 0), zero));
}

/* Two vectors and a number, or two matrices and a number for each row; sizes of 1 broadcast. */
static tn_status cosine_check(const tn_infer *infer)
{
    int32_t ndim = infer->in[2]->ndim + 1;
    int64_t most[2] = { 1, 1 };
    bool fits = ndim <= 2;
    char text[3][TN__TEXT];

    for (int i = 0; i < 3 && fits; i++) {
        const tn_view *x = infer->in[i];

        fits = x->ndim == (i < 2 ? ndim : ndim - 1);
        for (int32_t d = 0; fits && d < x->ndim; d++) {
            fits = x->shape[d] == most[d] || x->shape[d] == 1 || most[d] == 1;
            most[d] = x->shape[d] == 1 ? most[d] : x->shape[d];
        }
    }
    if (!fits)
        return tn_fail(TN_ERR_RUNTIME,
                       "x1, x2 or target: wrong shape, got %s, %s and %s; expected [N, C], [N, C] "
                       "and [N], or [C], [C] and []",
                       tn__common_text(text[0], tn__common_shape(infer->in[0])),
                       tn__common_text(text[1], tn__common_shape(infer->in[1])),
                       tn__common_text(text[2], tn__common_shape(infer->in[2])));
    return TN_OK;
}

LOSS(cosine_embedding_loss, cosine_check(infer), cosines(in, o->margin));

static tn_status class_shapes(const tn_infer *infer, bool each)
{
    const tn_view *x = infer->in[0], *target = infer->in[1];
    const tn_view *weight = infer->n_in > 2 ? infer->in[2] : NULL;
    int64_t classes = x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
    char text[TN__TEXT], text_t[TN__TEXT];
    bool fits = x->ndim <= 2;

    if (x->ndim == 2)
        fits = target->ndim == (each ? 2 : 1) && target->shape[0] == x->shape[0] &&
               (!each || target->shape[1] == classes);
    else if (fits) /* x is a single sample; a 0-d tensor counts as a vector of one element */
        fits = target->ndim == 0 ? !each || classes == 1
                                 : target->ndim == 1 && target->shape[0] == (each ? classes : 1);
    if (!fits)
        return tn_fail(TN_ERR_RUNTIME, "x or target: wrong shape, got %s and %s; expected %s",
                       tn__common_text(text, tn__common_shape(x)),
                       tn__common_text(text_t, tn__common_shape(target)),
                       each ? "both [N, C] or [C]" : "[N, C] and [N], or [C] and [] or [1]");
    if (classes < 1)
        return tn_fail(TN_ERR_RUNTIME, "x: no classes, got shape %s; expected at least one",
                       tn__common_text(text, tn__common_shape(x)));
    if (weight != NULL && (weight->ndim != 1 || weight->shape[0] != classes))
        return tn_fail(TN_ERR_RUNTIME,
                       "weight: wrong shape, got %s; expected [%lld], one for each class",
                       tn__common_text(text, tn__common_shape(weight)), (long long)classes);
    return TN_OK;
}

static tn_tensor *at_least_a_row(tn_tensor *x)
{
    return tn_tensor_ndim(x) == 0 ? tn_unsqueeze(x, 0) : x;
}

static tn_tensor *multi_margin(tn_tensor *const *in, const tn_multi_margin_loss_options *o)
{
    tn_tensor *x = at_least_a_row(in[0]), *target = tn_unsqueeze(in[1], -1), *own, *y;
    int64_t last, classes;

    if (x != NULL && tn_tensor_ndim(x) == 1 && tn_tensor_ndim(in[1]) == 1)
        x = tn_unsqueeze(x, 0);
    if (x == NULL)
        return NULL;
    last = tn_tensor_ndim(x) - 1;
    classes = tn_tensor_size(x, last);
    own = tn_gather(x, target, last);
    y = at_least(add_number(minus(x, own), o->margin), 0);
    if (o->p == 2)
        y = tn_square(y);
    if (in[2] != TN_NONE)
        y = tn_mul(y, tn_reshape(tn_index_select(in[2], tn_reshape(in[1], TN_SHAPE(-1)), 0),
                                 target == NULL ? (tn_ints){ NULL, 0 } : tn_tensor_shape(target)));
    y = tn_masked_fill(y, tn_eq(tn_arange(x, 0, classes, 1, TN_I64), target), 0.0);
    return times(sum_dim(y, last), 1.0 / (double)classes);
}

static tn_status multi_margin_check(const tn_infer *infer, int64_t p)
{
    return p == 1 || p == 2
               ? class_shapes(infer, false)
               : tn_fail(TN_ERR_VALUE, "p: out of range, got %lld; expected 1 or 2", (long long)p);
}

LOSS(multi_margin_loss, multi_margin_check(infer, o->p), multi_margin(in, o));

/* Only the target classes before the first negative number count. The margin is computed against
 * all classes that are not targets. */
static tn_tensor *multilabel(tn_tensor *x, tn_tensor *target)
{
    int64_t last, classes, second = -1, both[2];
    tn_tensor *ended, *counts, *safe, *own, *among, *y;

    if (x == NULL || target == NULL)
        return NULL;
    last = tn_tensor_ndim(x) - 1;
    classes = tn_tensor_size(x, last);
    ended = tn_cumsum(tn_cast(tn_lt(target, number(target, 0)), TN_I64), last);
    counts = tn_eq(ended, number(ended, 0));
    safe = tn_where(counts, target, number(target, 0));
    own = tn_gather(x, safe, last);
    if (counts == NULL || own == NULL)
        return NULL;
    /* among[n, c]: how many times c is a target */
    among = tn_scatter_add(tn__common_zeros(x, tn_tensor_shape(x)), safe,
                           tn_cast(counts, tn_tensor_dtype(x)), last);
    /* y[n, t, c]: the margin loss of target t against class c */
    y = at_least(add_number(minus(tn_unsqueeze(x, -2), tn_unsqueeze(own, -1)), 1), 0);
    y = tn_mul(y, tn_cast(tn_unsqueeze(counts, -1), tn_tensor_dtype(x)));
    y = tn_masked_fill(y, tn_unsqueeze(tn_gt(among, number(among, 0)), -2), 0.0);
    both[0] = second;
    both[1] = -2;
    return times(tn_sum(y, ((tn_ints){ both, 2 })), 1.0 / (double)classes);
}

LOSS(multilabel_margin_loss, class_shapes(infer, true),
     multilabel(at_least_a_row(in[0]), at_least_a_row(in[1])));

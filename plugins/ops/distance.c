/* SPDX-License-Identifier: MIT
 *
 * Lengths of vectors, distances and cosine similarity. */
#include "formula.h"

static tn_tensor *length_along(tn_tensor *x, double p, int64_t dim, bool keepdim)
{
    return tn_norm(x, p, TN_INTS(dim), keepdim);
}

static tn_status normalize_decompose(const tn_decompose *call)
{
    const tn_normalize_options *o = call->options;
    return tn__common_given(
        call->out,
        tn_div(call->in[0], at_least(length_along(call->in[0], o->p, o->dim, true), o->eps)));
}

/* Expands x to the shape to which x and `other` broadcast. */
static tn_tensor *as_both(tn_tensor *x, tn_tensor *other)
{
    tn_ints a = tn_tensor_shape(x), b = tn_tensor_shape(other);
    int64_t count = a.count > b.count ? a.count : b.count, shape[TN_MAX_DIMS];

    for (int64_t i = 0; i < count; i++) {
        int64_t of_a = i < count - a.count ? 1 : a.at[i - (count - a.count)];
        int64_t of_b = i < count - b.count ? 1 : b.at[i - (count - b.count)];

        shape[i] = of_a == 1 ? of_b : of_a;
    }
    return tn_expand(x, (tn_ints){ shape, count });
}

static tn_status cosine_similarity_infer(tn_infer *infer)
{
    const tn_cosine_similarity_options *o = infer->options;
    tn_status status = tn__broadcast_all(infer);
    int32_t dim;

    if (status == TN_OK && !(o->eps >= 0.0))
        status = tn_fail(TN_ERR_VALUE, "eps: out of range, got %g; expected 0 or more", o->eps);
    if (status == TN_OK)
        status = tn__common_dim(o->dim, infer->out[0].ndim, &dim);
    return status == TN_OK ? tn__common_open(infer) : status;
}

static tn_status cosine_similarity_decompose(const tn_decompose *call)
{
    const tn_cosine_similarity_options *o = call->options;
    int64_t dim = o->dim;
    tn_tensor *a = as_both(call->in[0], call->in[1]), *b = as_both(call->in[1], call->in[0]);
    return tn__common_given(
        call->out, tn_sum(tn_mul(tn_div(a, at_least(length_along(a, 2, dim, true), o->eps)),
                                 tn_div(b, at_least(length_along(b, 2, dim, true), o->eps))),
                          TN_INTS(dim)));
}

static tn_status pairwise_distance_decompose(const tn_decompose *call)
{
    const tn_pairwise_distance_options *o = call->options;
    return tn__common_given(
        call->out,
        length_along(tn_add_scalar(minus(call->in[0], call->in[1]), o->eps), o->p, -1, o->keepdim));
}

static tn_status cdist_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *b = infer->in[1];
    char text[TN__TEXT], text_b[TN__TEXT];

    if (a->ndim < 2 || b->ndim < 2 || a->shape[a->ndim - 1] != b->shape[b->ndim - 1])
        return tn_fail(
            TN_ERR_RUNTIME,
            "x1 or x2: wrong shape, got %s and %s; expected rows of the same length, [..., rows, "
            "length]",
            tn__common_text(text, tn__common_shape(a)),
            tn__common_text(text_b, tn__common_shape(b)));
    double p = ((const tn_cdist_options *)infer->options)->p;
    if (!(p >= 0.0))
        return tn_fail(TN_ERR_VALUE, "p: out of range, got %g; expected 0 or more", p);
    return tn__common_open(infer);
}

static tn_status cdist_decompose(const tn_decompose *call)
{
    const tn_cdist_options *o = call->options;
    tn_tensor *apart = minus(tn_unsqueeze(call->in[0], -2), tn_unsqueeze(call->in[1], -3));
    int64_t last = -1;
    if (apart != NULL && tn_tensor_size(apart, -1) == 0) /* norm would fail here if p is infinite */
        return tn__common_given(call->out, tn_sum(apart, TN_INTS(last)));
    return tn__common_given(call->out, length_along(apart, o->p, -1, false));
}

TN__OP(normalize, .infer = tn__common_open, .decompose = normalize_decompose);
TN__OP(cosine_similarity, .infer = cosine_similarity_infer,
       .decompose = cosine_similarity_decompose);
TN__OP(pairwise_distance, .infer = tn__common_open, .decompose = pairwise_distance_decompose);
TN__OP(cdist, .infer = cdist_infer, .decompose = cdist_decompose);

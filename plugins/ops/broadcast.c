/* SPDX-License-Identifier: MIT
 *
 * Broadcasting: the shape of a result whose inputs have different shapes, and its order of strides.
 */
#include "common.h"

static tn_status no_broadcast(const tn_view *a, const tn_view *b, int32_t d, int64_t size_a,
                              int64_t size_b)
{
    char text_a[TN__TEXT], text_b[TN__TEXT];

    return tn_fail(
        TN_ERR_RUNTIME,
        /* PyTorch's wording */
        "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton "
        "dimension %d "
        "(shapes %s and %s)",
        (long long)size_a, (long long)size_b, (int)d, tn__common_text(text_a, tn__common_shape(a)),
        tn__common_text(text_b, tn__common_shape(b)));
}

/* Handles the usual case: both inputs have the same shape and are row-major. After false, the
 * caller overwrites the part of meta->shape that was written here. */
static inline bool binary_plain(const tn_view *a, const tn_view *b, tn_meta *meta)
{
    int64_t expected = 1;

    if (a->ndim != b->ndim)
        return false;
    for (int32_t d = a->ndim; d-- > 0;) {
        int64_t size = a->shape[d];

        if (b->shape[d] != size || a->strides[d] != expected || b->strides[d] != expected)
            return false;
        meta->shape[d] = size;
        expected = tn__common_times(expected, size);
    }
    return true;
}

tn_status tn__broadcast_two_float(tn_infer *infer)
{
    tn_status status = tn__common_promoted(infer, TN_MASK_FLOAT, "a float dtype");

    return status == TN_OK ? tn__broadcast_two(infer) : status;
}

tn_status tn__broadcast_two(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *b = infer->in[1];
    tn_meta *meta = &infer->out[0];
    bool like_a = true, like_b = true;
    int32_t ndim = a->ndim > b->ndim ? a->ndim : b->ndim;

    meta->dtype = infer->dtype != TN_DTYPE_AUTO ? infer->dtype : tn_view_dtype(a);
    meta->ndim = ndim;
    if (binary_plain(a, b, meta))
        return TN_OK;
    for (int32_t d = 0; d < ndim; d++) {
        int32_t at_a = d - (ndim - a->ndim), at_b = d - (ndim - b->ndim);
        int64_t size_a = at_a >= 0 ? a->shape[at_a] : 1, size_b = at_b >= 0 ? b->shape[at_b] : 1;

        if (size_a != size_b && size_a != 1 && size_b != 1)
            return no_broadcast(a, b, d, size_a, size_b);
        meta->shape[d] = size_a == 1 ? size_b : size_a;
        like_a &= at_a >= 0 && meta->shape[d] == size_a;
        like_b &= at_b >= 0 && meta->shape[d] == size_b;
    }
    /* If all inputs that have the result's full shape have the same order of strides, the result
     * gets this order. An input without an order (an expanded tensor) does not count. */
    if (like_a) {
        int of_a = tn__common_layout(a), of_b = like_b ? tn__common_layout(b) : 0;
        bool same = of_a == 2 && of_b == 2;

        for (int32_t d = 0; same && d < ndim; d++)
            same = a->strides[d] == b->strides[d] || a->shape[d] == 1;
        if (of_a == 2 && (of_b == 0 || same))
            tn__common_take_strides(meta, a);
        else if (of_a == 0 && of_b == 2)
            tn__common_take_strides(meta, b);
    } else if (like_b && tn__common_layout(b) == 2) {
        tn__common_take_strides(meta, b);
    }
    return TN_OK;
}

tn_status tn__broadcast_all(tn_infer *infer)
{
    tn_meta *meta = &infer->out[0];
    int64_t first = -1;

    meta->dtype = infer->dtype;
    meta->ndim = 0;
    for (int64_t i = 0; i < infer->n_in; i++)
        if (infer->in[i] != NULL && infer->in[i]->ndim > meta->ndim)
            meta->ndim = infer->in[i]->ndim;
    for (int32_t d = 0; d < meta->ndim; d++) {
        meta->shape[d] = 1;
        first = -1;
        for (int64_t i = 0; i < infer->n_in; i++) {
            const tn_view *view = infer->in[i];
            int32_t at = view != NULL ? d - (meta->ndim - view->ndim) : -1;

            if (at < 0 || view->shape[at] == 1)
                continue;
            if (first >= 0 && view->shape[at] != meta->shape[d])
                return no_broadcast(infer->in[first], view, d, meta->shape[d], view->shape[at]);
            meta->shape[d] = view->shape[at];
            first = i;
        }
    }
    return TN_OK;
}

tn_status tn__broadcast_in_order(tn_infer *infer)
{
    tn_status status = tn__broadcast_all(infer);
    tn_meta *meta = &infer->out[0];
    const tn_view *ordered = NULL;

    for (int64_t i = 0; i < infer->n_in && status == TN_OK; i++) {
        const tn_view *view = infer->in[i];
        bool whole = view != NULL && view->ndim == meta->ndim;
        int of;

        for (int32_t d = 0; whole && d < meta->ndim; d++)
            whole = view->shape[d] == meta->shape[d];
        of = whole ? tn__common_layout(view) : 0;
        for (int32_t d = 0; ordered != NULL && of != 0 && d < meta->ndim; d++)
            if (view->shape[d] != 1 && view->strides[d] != ordered->strides[d])
                return TN_OK; /* two orders: row-major */
        if (of == 1 && ordered == NULL)
            return TN_OK;
        if (of == 2)
            ordered = view;
    }
    if (status == TN_OK && ordered != NULL)
        tn__common_take_strides(meta, ordered);
    return status;
}

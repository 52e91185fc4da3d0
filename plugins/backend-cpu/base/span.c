/* SPDX-License-Identifier: MIT
 *
 * Walking over several strided views together. Broadcast dimensions have stride 0. Neighbouring
 * dimensions are merged if the strides of all views allow it. */
#include "base/span.h"

/* Unsigned, as are all products here, because those of a view without elements can be any numbers
 * on the way to 0. */
static int64_t product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

int64_t tn__span_view_count(const tn_view *view)
{
    int64_t count = 1;
    for (int32_t i = 0; i < view->ndim; i++)
        count = product(count, view->shape[i]);
    return count;
}

bool tn__span_view_dense(const tn_view *view)
{
    int64_t expect = 1;
    for (int32_t i = view->ndim; i-- > 0;) {
        if (view->shape[i] != 1 && view->strides[i] != expect)
            return false;
        expect = product(expect, view->shape[i]);
    }
    return true;
}

/* Sorts the dimensions by the stride of views[0], the largest first. The sort is stable. */
static void sort_dims(struct tn__span *span)
{
    for (int32_t i = 1; i < span->ndim; i++) {
        for (int32_t j = i; j > 0 && span->stride[0][j - 1] < span->stride[0][j]; j--) {
            int64_t shape = span->shape[j];
            span->shape[j] = span->shape[j - 1];
            span->shape[j - 1] = shape;
            for (int32_t k = 0; k < span->operands; k++) {
                int64_t stride = span->stride[k][j];
                span->stride[k][j] = span->stride[k][j - 1];
                span->stride[k][j - 1] = stride;
            }
        }
    }
}

static bool mergeable(const struct tn__span *span, int32_t outer, int32_t inner)
{
    for (int32_t k = 0; k < span->operands; k++)
        if (span->stride[k][outer] != product(span->stride[k][inner], span->shape[inner]))
            return false;
    return true;
}

void tn__span_merge(struct tn__span *span)
{
    int32_t last = 0;
    for (int32_t i = 1; i < span->ndim; i++) {
        if (mergeable(span, last, i)) {
            span->shape[last] = product(span->shape[last], span->shape[i]);
        } else {
            last++;
            span->shape[last] = span->shape[i];
        }
        for (int32_t k = 0; k < span->operands; k++)
            span->stride[k][last] = span->stride[k][i];
    }
    if (span->ndim > 0)
        span->ndim = last + 1;
}

tn_status tn__span_bad_dim(const char *op, int64_t dim, int32_t ndim)
{
    return tn_fail(TN_ERR_INDEX, "%s: dim: out of range, got %lld; expected %d to %d", op,
                   (long long)dim, -(int)ndim, (int)ndim - 1);
}

void tn__span_make(struct tn__span *span, int32_t operands, const tn_view *const *views,
                   bool in_order)
{
    const tn_view *shape = views[0];
    span->operands = operands;
    span->ndim = 0;
    span->count = 1;
    for (int32_t k = 0; k < operands; k++)
        span->base[k] = tn__view_at(views[k]);
    for (int32_t i = 0; i < shape->ndim; i++) {
        if (shape->shape[i] == 1)
            continue;
        int32_t at = span->ndim++;
        span->shape[at] = shape->shape[i];
        span->count = product(span->count, shape->shape[i]);
        for (int32_t k = 0; k < operands; k++) {
            int32_t own = i - (shape->ndim - views[k]->ndim);
            bool repeats = own < 0 || views[k]->shape[own] == 1;
            span->stride[k][at] = repeats
                                      ? 0
                                      : product(views[k]->strides[own], tn__view_item(views[k]));
        }
    }
    if (!in_order)
        sort_dims(span);
    tn__span_merge(span);
}

void tn__span_walk(const struct tn__span *span, int64_t begin, int64_t end, tn__span_body *body,
                   void *user)
{
    if (begin >= end)
        return;
    int32_t ndim = span->ndim, operands = span->operands;
    char *at[TN__MAX_SPAN];
    int64_t stride[TN__MAX_SPAN] = { 0 };
    int64_t index[TN_MAX_DIMS];
    for (int32_t k = 0; k < operands; k++)
        at[k] = span->base[k];
    if (ndim == 0) {
        body(user, 1, at, stride);
        return;
    }
    int64_t rest = begin;
    for (int32_t i = ndim; i-- > 0;) {
        index[i] = rest % span->shape[i];
        rest /= span->shape[i];
        for (int32_t k = 0; k < operands; k++)
            at[k] += index[i] * span->stride[k][i];
    }
    int32_t inner = ndim - 1;
    for (int32_t k = 0; k < operands; k++)
        stride[k] = span->stride[k][inner];
    for (int64_t done = begin; done < end;) {
        int64_t n = span->shape[inner] - index[inner];
        if (n > end - done)
            n = end - done;
        body(user, n, at, stride);
        done += n;
        if (done >= end)
            return;
        for (int32_t k = 0; k < operands; k++)
            at[k] -= index[inner] * stride[k];
        index[inner] = 0;
        for (int32_t i = inner; i-- > 0;) {
            index[i]++;
            for (int32_t k = 0; k < operands; k++)
                at[k] += span->stride[k][i];
            if (index[i] < span->shape[i])
                break;
            for (int32_t k = 0; k < operands; k++)
                at[k] -= index[i] * span->stride[k][i];
            index[i] = 0;
        }
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

void tn__span_lines_make(struct tn__lines *lines, int32_t n, const tn_view *const *views,
                         int64_t dim)
{
    const tn_view *shape = views[0];
    if (dim < 0)
        dim += shape->ndim;
    lines->ndim = 0;
    lines->count = lines->length = 1;
    for (int32_t k = 0; k < n; k++) {
        lines->base[k] = tn__view_at(views[k]);
        lines->step[k] = 0;
    }
    for (int32_t d = 0; d < shape->ndim; d++) {
        if (d == dim) {
            lines->length = shape->shape[d];
            for (int32_t k = 0; k < n; k++)
                lines->step[k] = product(views[k]->strides[d], tn__view_item(views[k]));
            continue;
        }
        lines->shape[lines->ndim] = shape->shape[d];
        for (int32_t k = 0; k < n; k++)
            lines->stride[k][lines->ndim] = product(views[k]->strides[d], tn__view_item(views[k]));
        lines->ndim++;
        lines->count = product(lines->count, shape->shape[d]);
    }
}

char *tn__span_lines_at(const struct tn__lines *lines, int32_t k, int64_t index)
{
    char *at = lines->base[k];
    for (int32_t d = lines->ndim; d-- > 0;) {
        at += index % lines->shape[d] * lines->stride[k][d];
        index /= lines->shape[d];
    }
    return at;
}

/* SPDX-License-Identifier: MIT
 *
 * The walk of gather, scatter and scatter_reduce over the elements of an index. */
#include "op/index_span.h"

void tn__index_span_make(struct tn__index_span *s, const tn_view *const *views, int64_t dim)
{
    const tn_view *x = views[0], *index = views[1];
    struct tn__span *span = &s->span;
    s->dim = dim < 0 ? dim + (x->ndim > 0 ? x->ndim : 1) : dim;
    s->size = x->ndim > 0 ? x->shape[s->dim] : 1;
    s->step = x->ndim > 0 ? x->strides[s->dim] * tn__view_item(x) : 0;
    span->operands = 3;
    span->ndim = 0;
    span->count = tn__span_view_count(index);
    for (int k = 0; k < 3; k++)
        span->base[k] = tn__view_at(views[k]);
    for (int32_t d = 0; d < index->ndim; d++) {
        if (index->shape[d] == 1)
            continue;
        span->shape[span->ndim] = index->shape[d];
        for (int k = 0; k < 3; k++)
            span->stride[k][span->ndim] = (k == 0 && d == s->dim) || d >= views[k]->ndim
                                              ? 0
                                              : views[k]->strides[d] * tn__view_item(views[k]);
        span->ndim++;
    }
    tn__span_merge(span);
}

int32_t tn__index_span_split(const struct tn__index_span *s)
{
    const struct tn__span *span = &s->span;
    int32_t split = -1;
    for (int32_t d = 0; d < span->ndim; d++)
        if (span->stride[0][d] != 0 && (split < 0 || span->shape[d] > span->shape[split]))
            split = d;
    return split;
}

struct tn__span tn__index_span_part(const struct tn__index_span *s, int32_t split, int64_t begin,
                                    int64_t end)
{
    struct tn__span span = s->span;
    for (int k = 0; k < 3; k++)
        span.base[k] += begin * span.stride[k][split];
    if (span.count > 0) /* the split dimension may be the empty one */
        span.count = span.count / span.shape[split] * (end - begin);
    span.shape[split] = end - begin;
    return span;
}

static void nothing(const void *user, char *x, char *other)
{
    (void)user, (void)x, (void)other;
}

int64_t tn__index_span_check(const struct tn__index_run *run)
{
    struct tn__index_run one = *run;
    if (run->si != 0 || run->n <= 1)
        return tn__index_run_each(run, nothing, NULL);
    one.n = 1; /* all indices of the run are the same element */
    return tn__index_run_each(&one, nothing, NULL) == 1 ? run->n : 0;
}

tn_status tn__index_fail(const char *op, int64_t at, int64_t dim, int64_t least, int64_t size)
{
    return tn_fail(TN_ERR_INDEX,
                   "%s: index %lld is out of bounds for dimension %lld with size %lld: %lld to "
                   "%lld",
                   op, (long long)at, (long long)dim, (long long)size, (long long)least,
                   (long long)size - 1);
}

tn_status tn__index_span_fail(const struct tn__index_span *s, const char *op, int64_t at)
{
    return tn__index_fail(op, at, s->dim, 0, s->size);
}

/* SPDX-License-Identifier: MIT
 *
 * The walk of gather, scatter and scatter_reduce over the elements of an index. */
#ifndef TN_BACKEND_CPU_OP_INDEX_SPAN_H
#define TN_BACKEND_CPU_OP_INDEX_SPAN_H

#include "base/index_run.h"
#include "base/span.h"

/* The dimensions are those of the index. Operands of the span: 0 is the tensor x into which the
 * index points, with stride 0 along the indexed dimension; 1 is the index; 2 is the other tensor,
 * the result of gather or the source of scatter. */
struct tn__index_span {
    struct tn__span span;
    int64_t dim, size, step; /* the indexed dimension of x, its size and its stride in bytes */
};

/* Sets up `s` for views[3] = { x, index, other }; a negative dim counts from the end. */
void tn__index_span_make(struct tn__index_span *s, const tn_view *const *views, int64_t dim);
/* Returns the dimension of the span that is divided among threads that write to x: the longest
 * along which x advances, so that different parts never write to the same place. Returns -1 if
 * there is none. */
int32_t tn__index_span_split(const struct tn__index_span *s);
/* Returns part [begin, end) of dimension `split` of the span. */
struct tn__span tn__index_span_part(const struct tn__index_span *s, int32_t split, int64_t begin,
                                    int64_t end);
/* Returns the run of n indices that tn__span_walk() has reached. */
static inline struct tn__index_run tn__index_span_run(const struct tn__index_span *s, int64_t n,
                                                      char *const *base, const int64_t *stride)
{
    return (struct tn__index_run){ .n = n,
                                   .x = base[0],
                                   .sx = stride[0],
                                   .step = s->step,
                                   .size = (uint64_t)s->size,
                                   .index = base[1],
                                   .si = stride[1],
                                   .other = base[2],
                                   .so = stride[2] };
}
/* Returns the number of indices of a run that are in bounds before the first that is not. */
int64_t tn__index_span_check(const struct tn__index_run *run);
/* Sets the error for an index that is out of bounds: least to size - 1 in dimension `dim`. `op` is
 * the name of the operator. */
tn_status tn__index_fail(const char *op, int64_t at, int64_t dim, int64_t least, int64_t size);
/* The same for index `at` of a span. */
tn_status tn__index_span_fail(const struct tn__index_span *s, const char *op, int64_t at);

#endif

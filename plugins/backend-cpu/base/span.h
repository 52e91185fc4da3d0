/* SPDX-License-Identifier: MIT
 *
 * Walking over the elements of several strided views together, and over their lines along one
 * dimension. */
#ifndef TN_BACKEND_CPU_BASE_SPAN_H
#define TN_BACKEND_CPU_BASE_SPAN_H

#include <tenon/plugin.h>

#define TN__MAX_SPAN 4

/* Several views that are walked together. Dimensions of size 1 are removed, neighbouring dimensions
 * are merged where possible, and strides are in bytes. */
struct tn__span {
    int32_t operands;
    int32_t ndim;
    int64_t count;
    int64_t shape[TN_MAX_DIMS];
    int64_t stride[TN__MAX_SPAN][TN_MAX_DIMS];
    char *base[TN__MAX_SPAN];
};

static inline char *tn__view_at(const tn_view *view)
{
    return (char *)view->data + view->byte_offset;
}

static inline int64_t tn__view_item(const tn_view *view)
{
    return (int64_t)view->dtype.bits / 8;
}
/* Changes the dtype of `view` to a float with `bits` bits. */
static inline void tn__view_as_floats(tn_view *view, int bits)
{
    view->dtype.code = 2; /* DLPack's code for floats */
    view->dtype.bits = (uint8_t)bits;
}

int64_t tn__span_view_count(const tn_view *view);
bool tn__span_view_dense(const tn_view *view);
/* Whether the first result is contiguous, or not there yet: the core allocates contiguous results,
 * but one that the caller supplies may have any strides. */
static inline bool tn__span_result_dense(const tn_call *call)
{
    return call->out == NULL || call->out[0] == NULL || tn__span_view_dense(call->out[0]);
}

/* Fails: operator `op` was given a dimension that a tensor with `ndim` of them does not have. */
tn_status tn__span_bad_dim(const char *op, int64_t dim, int32_t ndim);

/* Sets up `span` for the shape of views[0], to which the other views broadcast. With `in_order` the
 * elements are walked in the row-major order of that shape; otherwise in the order in which
 * views[0] has them in memory. */
void tn__span_make(struct tn__span *span, int32_t operands, const tn_view *const *views,
                   bool in_order);
/* Merges neighbouring dimensions if the strides of all operands allow it. */
void tn__span_merge(struct tn__span *span);
/* Calls `body` for elements [begin, end) of the span, counted in the span's order, in runs along
 * the last dimension: n elements, operand k at at[k] with stride[k] bytes from one to the next. */
typedef void tn__span_body(void *user, int64_t n, char *const *at, const int64_t *stride);
void tn__span_walk(const struct tn__span *span, int64_t begin, int64_t end, tn__span_body *body,
                   void *user);

/* The lines along one dimension of up to three views, which all have the shape of views[0]. */
struct tn__lines {
    int32_t ndim;
    int64_t shape[TN_MAX_DIMS]; /* the other dimensions */
    int64_t stride[3][TN_MAX_DIMS];
    char *base[3];
    int64_t step[3];       /* along the dimension, in bytes */
    int64_t length, count; /* elements of a line, number of lines */
};
/* Sets up `lines` for n views and dimension `dim`; a negative dim counts from the end. */
void tn__span_lines_make(struct tn__lines *lines, int32_t n, const tn_view *const *views,
                         int64_t dim);
/* Returns the address of the first element of line `index` in view k. */
char *tn__span_lines_at(const struct tn__lines *lines, int32_t k, int64_t index);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Walking over several strided views together, and over the lines along one dimension. */
#ifndef TN_BACKEND_CPU_BASE_SPAN_H
#define TN_BACKEND_CPU_BASE_SPAN_H

#include <tenon/plugin.h>

#define TN__MAX_SPAN 4

/* Several views walked together: dimensions of size 1 are removed, neighbouring dimensions merged
 * where possible, strides are in bytes. */
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
/* Makes it a view of floats of so many bits. */
static inline void tn__view_as_floats(tn_view *view, int bits)
{
    view->dtype.code = 2; /* DLPack's */
    view->dtype.bits = (uint8_t)bits;
}

int64_t tn__span_view_count(const tn_view *view);
bool tn__span_view_dense(const tn_view *view);

/* views[0] has the shape, the others broadcast to it. `in_order` keeps the row-major order of the
 * shape; without it the dimensions are ordered as views[0] has them in memory. */
void tn__span_make(struct tn__span *span, int32_t operands, const tn_view *const *views,
                   bool in_order);
/* Merges neighbouring dimensions where all operands allow it. */
void tn__span_merge(struct tn__span *span);
/* Calls body for runs that together are [begin, end) of the span, in its order. */
typedef void tn__span_body(void *user, int64_t n, char *const *at, const int64_t *stride);
void tn__span_walk(const struct tn__span *span, int64_t begin, int64_t end, tn__span_body *body,
                   void *user);

/* The lines along one dimension of up to three views; views[0] gives the shape. */
struct tn__lines {
    int32_t ndim;
    int64_t shape[TN_MAX_DIMS]; /* without the dimension */
    int64_t stride[3][TN_MAX_DIMS];
    char *base[3];
    int64_t step[3]; /* along it, in bytes */
    int64_t length, count;
};
void tn__span_lines_make(struct tn__lines *lines, int32_t n, const tn_view *const *views,
                         int64_t dim);
char *tn__span_lines_at(const struct tn__lines *lines, int32_t k, int64_t index);

#endif

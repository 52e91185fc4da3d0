/* SPDX-License-Identifier: MIT
 *
 * Converts views to the structs that kernels read (kernels/base/layout.cl): offsets and strides in
 * elements, with as few dimensions as possible. */
#include "gpu.h"

#include <string.h>

int64_t gpu_count(const tn_view *view)
{
    int64_t count = 1;

    for (int32_t d = 0; d < view->ndim; d++)
        count *= view->shape[d];
    return count;
}

int64_t gpu_item_size(const tn_view *view)
{
    return (int64_t)(view->dtype.bits * view->dtype.lanes / 8);
}

int64_t gpu_offset(const tn_view *view)
{
    return (int64_t)(view->byte_offset / (uint64_t)gpu_item_size(view));
}

bool gpu_dense(const tn_view *view)
{
    int64_t expected = 1;

    for (int32_t d = view->ndim - 1; d >= 0; d--) {
        if (view->shape[d] != 1 && view->strides[d] != expected)
            return false;
        expected *= view->shape[d];
    }
    return true;
}

/* Fills the shape of the loop and the strides of `count` operands. Returns the number of
 * dimensions, at least 1. */
static int32_t walk_dims(int64_t *shape, int64_t (*stride)[GPU_DIMS], const tn_view *const *views,
                         int32_t count)
{
    const tn_view *first = views[0];
    int32_t n = 0;

    for (int32_t d = 0; d < first->ndim; d++) {
        int64_t own_stride[4];
        bool joins = n > 0;

        if (first->shape[d] == 1)
            continue;
        for (int32_t k = 0; k < count; k++) {
            int32_t own = d - (first->ndim - views[k]->ndim);

            own_stride[k] = own < 0 || views[k]->shape[own] == 1 ? 0 : views[k]->strides[own];
            joins = joins && stride[k][n - 1] == own_stride[k] * first->shape[d];
        }
        if (joins)
            shape[n - 1] *= first->shape[d];
        else
            shape[n++] = first->shape[d];
        for (int32_t k = 0; k < count; k++)
            stride[k][n - 1] = own_stride[k];
    }
    if (n == 0)
        shape[n++] = 1;
    return n;
}

void gpu_walk_make(gpu_walk *walk, const tn_view *const *views, int32_t count)
{
    memset(walk, 0, sizeof *walk);
    walk->count = gpu_count(views[0]);
    walk->small = walk->count < INT32_MAX;
    for (int32_t k = 0; k < count; k++)
        walk->offset[k] = gpu_offset(views[k]);
    walk->ndim = walk_dims(walk->shape, walk->stride, views, count);
}

void gpu_walk4_make(gpu_walk4 *walk, const tn_view *const views[4])
{
    memset(walk, 0, sizeof *walk);
    walk->count = gpu_count(views[0]);
    walk->small = walk->count < INT32_MAX;
    for (int32_t k = 0; k < 4; k++)
        walk->offset[k] = gpu_offset(views[k]);
    walk->ndim = walk_dims(walk->shape, walk->stride, views, 4);
}

tn_status gpu_rows_make(gpu_rows *rows, const tn_view *const *views, int32_t count, int64_t dim)
{
    const tn_view *first = views[0];

    memset(rows, 0, sizeof *rows);
    rows->rows = 1;
    rows->length = 1;
    for (int32_t k = 0; k < count; k++)
        rows->offset[k] = gpu_offset(views[k]);
    if (first->ndim == 0)
        return TN_OK;
    if (dim < -first->ndim || dim >= first->ndim)
        return tn_fail(TN_ERR_INDEX, "dim: out of range, got %lld; expected %d to %d",
                       (long long)dim, -(int)first->ndim, (int)first->ndim - 1);
    if (dim < 0)
        dim += first->ndim;
    for (int32_t d = 0; d < first->ndim; d++) {
        if (d == dim) {
            rows->length = first->shape[d];
            for (int32_t k = 0; k < count; k++)
                rows->along[k] = views[k]->strides[d];
        } else if (first->shape[d] != 1) {
            rows->rows *= first->shape[d];
            rows->shape[rows->ndim] = first->shape[d];
            for (int32_t k = 0; k < count; k++)
                rows->stride[k][rows->ndim] = views[k]->strides[d];
            rows->ndim++;
        }
    }
    if (rows->length == 0)
        rows->rows = 0;
    return TN_OK;
}

tn_dtype gpu_as_bits(const tn_view *view)
{
    switch (gpu_item_size(view)) {
    case 1: return TN_U8;
    case 2: return TN_U16;
    case 4: return TN_U32;
    case 8: return TN_U64;
    default: return TN_C128;
    }
}

/* SPDX-License-Identifier: MIT
 *
 * The order of memory of images. A decomposition that works on any dimension works on the view
 * [N, ..., C], which is row-major for such an image, and moves the channels back. */
#include "channels.h"

bool tn__channels_are_last(const tn_view *x)
{
    int64_t expect = 1;

    if (x->ndim < 3 || x->strides[1] != 1)
        return false;
    expect = x->shape[1];
    for (int32_t d = x->ndim - 1; d >= 2; d--) {
        if (x->shape[d] != 1 && x->strides[d] != expect)
            return false;
        expect = tn__common_times(expect, x->shape[d]);
    }
    return x->shape[0] == 1 || x->strides[0] == expect;
}

void tn__channels_set_last(tn_meta *meta)
{
    int64_t next = meta->shape[1];

    meta->flags |= TN_META_STRIDED;
    meta->strides[1] = 1;
    for (int32_t d = meta->ndim - 1; d >= 2; d--) {
        meta->strides[d] = next;
        /* The core refuses a result with so many elements that this overflows. */
        (void)__builtin_mul_overflow(next, meta->shape[d], &next);
    }
    meta->strides[0] = next;
}

bool tn__channels_image(const tn_view *x)
{
    bool plane = true; /* one pixel: row-major, too */

    if ((x->ndim != 4 && x->ndim != 5) || x->shape[1] < 2)
        return false;
    for (int32_t d = 2; d < x->ndim; d++)
        plane &= x->shape[d] == 1;
    return !plane && tn__channels_are_last(x);
}

void tn__channels_keep(tn_meta *meta, const tn_view *x)
{
    if (meta->ndim == x->ndim && tn__channels_image(x))
        tn__channels_set_last(meta);
}

tn_tensor *tn__channels_moved(tn_tensor *x)
{
    int64_t dims[TN_MAX_DIMS], ndim = x != NULL ? tn_tensor_ndim(x) : 0;

    for (int64_t d = 0; d < ndim; d++)
        dims[tn__channels_place(d, ndim)] = d;
    return tn_permute(x, (tn_ints){ dims, ndim });
}

tn_tensor *tn__channels_back(tn_tensor *y)
{
    int64_t dims[TN_MAX_DIMS], ndim = y != NULL ? tn_tensor_ndim(y) : 0;

    for (int64_t d = 0; d < ndim; d++)
        dims[d] = tn__channels_place(d, ndim);
    return tn_permute(y, (tn_ints){ dims, ndim });
}

tn_tensor *tn__channels_empty(tn_tensor *like, tn_ints shape, bool last)
{
    tn_meta meta = { .ndim = (int32_t)shape.count };

    if (!last)
        return tn_tensor_empty(shape, tn_tensor_dtype(like), tn_tensor_device(like));
    for (int64_t d = 0; d < shape.count; d++)
        meta.shape[d] = shape.at[d];
    tn__channels_set_last(&meta);
    return tn_tensor_empty_strided(shape, (tn_ints){ meta.strides, shape.count },
                                   tn_tensor_dtype(like), tn_tensor_device(like));
}

tn_tensor *tn__channels_copied(tn_tensor *y)
{
    tn_tensor *moved = tn__channels_moved(y);
    tn_tensor *row = moved != NULL ? tn_reshape(moved, TN_SHAPE(tn_tensor_numel(moved))) : NULL;

    return row != NULL ? tn__channels_back(tn_reshape(row, tn_tensor_shape(moved))) : NULL;
}

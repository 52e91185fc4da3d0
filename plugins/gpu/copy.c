/* SPDX-License-Identifier: MIT
 *
 * Copies between tensors with different strides or dtypes. */
#include "gpu.h"

bool gpu_supports_copy(const tn_call *call, char *reason, size_t size)
{
    tn_dtype to = tn_view_dtype(call->out[0]), from = tn_view_dtype(call->in[0]);

    if (to == from)
        return true;
    if (!(GPU_MASK_COPY & TN_BIT(to)) || !(GPU_MASK_COPY & TN_BIT(from))) {
        tn_snprint(reason, size,
                   "float8 cannot be converted on this device, only stored and copied");
        return false;
    }
    return gpu_device_supports(call, to, reason, size) &&
           gpu_device_supports(call, from, reason, size);
}

/* Checks whether source and target of a copy are the same elements. This happens when an operator
 * in place first copies its input to its output; drivers refuse to copy memory to itself. */
static bool same_place(const gpu_walk *walk, const tn_view *to, const tn_view *from)
{
    bool same = to->data == from->data && to->byte_offset == from->byte_offset &&
                tn_view_dtype(to) == tn_view_dtype(from);

    for (int d = 0; same && d < walk->ndim; d++)
        same = walk->stride[0][d] == walk->stride[1][d];
    return same;
}

tn_status gpu_copy_view(const tn_call *call, const tn_view *to, const tn_view *from)
{
    const tn_view *views[] = { to, from };
    tn_dtype dtype = tn_view_dtype(to);
    int32_t from_type = (int32_t)tn_view_dtype(from);
    gpu_walk walk;

    gpu_walk_make(&walk, views, 2);
    if (walk.count == 0 || same_place(&walk, to, from))
        return TN_OK;
    if (from_type == (int32_t)dtype) {
        const gpu_arg args[] = { GPU_ARG(to->data), GPU_ARG(from->data), GPU_ARG(walk) };

        if (walk.ndim == 1 && walk.stride[0][0] == 1 && walk.stride[1][0] == 1)
            return gpu_copy_bytes(call, to->data, to->byte_offset, from->data, from->byte_offset,
                                  (size_t)(walk.count * gpu_item_size(to)));
        return gpu_launch(call, GPU_move, gpu_as_bits(to), walk.count, 1, args, 3);
    }
    {
        const gpu_arg args[] = { GPU_ARG(to->data), GPU_ARG(from->data), GPU_ARG(walk),
                                 GPU_ARG(from_type) };

        return gpu_launch(call, GPU_copy, dtype, walk.count, 1, args, 4);
    }
}

tn_status gpu_run_copy(const tn_call *call)
{
    return gpu_copy_view(call, call->out[0], call->in[0]);
}

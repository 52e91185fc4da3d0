/* SPDX-License-Identifier: MIT
 *
 * The derivative of narrow: the result is filled with zeros, and the gradient is copied to the
 * narrowed part of it. */
#include "gpu.h"

tn_status gpu_run_narrow_grad(const tn_call *call)
{
    const tn_narrow_grad_options *options = call->options;
    const tn_view *gx = call->out[0], *gy = call->in[0];
    int64_t dim = options->dim < 0 ? options->dim + gx->ndim : options->dim;
    int64_t start = options->start < 0 ? options->start + gx->shape[dim] : options->start;
    tn_view place = *gx;
    tn_status status = gpu_fill_view(call, gx, tn_scalar_int(0));

    if (status)
        return status;
    place.shape = gy->shape;
    place.byte_offset += (uint64_t)(start * gx->strides[dim] * gpu_item_size(gx));
    return gpu_copy_view(call, &place, gy);
}

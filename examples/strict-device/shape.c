/* SPDX-License-Identifier: MIT
 *
 * The kernel of narrow_grad on the strict device: whole[0] is the dimension, whole[1] the start. */
#include "strict.h"

static tn_status narrow_grad_body(struct strict_work *work)
{
    const struct strict_view *gx = &work->view[0], *gy = &work->view[1];
    int64_t index[TN_MAX_DIMS] = { 0 }, dim = work->whole[0], start = work->whole[1];
    work->real[0] = 0;
    work->whole[0] = 0;
    tn_status status = strict_fill_body(work);
    if (status != TN_OK || strict_count(gy) == 0)
        return status;
    do
        strict_convert_element(work, gx,
                               strict_place(gx, index, gx->ndim) + start * gx->strides[dim], gy,
                               strict_place(gy, index, gy->ndim));
    while (strict_step(index, gy));
    return TN_OK;
}

static tn_status fill_narrow_grad(const tn_call *call, struct strict_work *work)
{
    const tn_narrow_grad_options *options = call->options;
    int32_t ndim = call->out[0]->ndim;
    int64_t dim = options->dim < 0 ? options->dim + ndim : options->dim;
    if (dim < 0 || dim >= ndim)
        return tn_fail(TN_ERR_INDEX, "narrow_grad: dim: out of range, got %lld; expected %d to %d",
                       (long long)options->dim, -(int)ndim, (int)ndim - 1);
    work->whole[0] = dim;
    work->whole[1] = options->start < 0 ? options->start + call->out[0]->shape[dim]
                                        : options->start;
    return TN_OK;
}

STRICT_KERNEL(narrow_grad)
{
    return strict_enqueue(call, narrow_grad_body, fill_narrow_grad);
}

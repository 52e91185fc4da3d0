/* SPDX-License-Identifier: MIT
 *
 * nll_loss and its derivative. The kernels record a target that is out of range, and the error is
 * reported at the next synchronization of the stream. */
#include "gpu.h"

#include <string.h>

static tn_status reduction_of(const tn_call *call, const char *text, int32_t *out)
{
    static const char *const names[] = { "none", "mean", "sum" };

    for (int32_t i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return TN_OK;
        }
    return tn_fail(TN_ERR_VALUE, "%s: reduction: unknown, got %q; expected none, mean or sum",
                   call->op, text);
}

tn_status gpu_run_nll_loss(const tn_call *call)
{
    const tn_nll_loss_options *options = call->options;
    const tn_view *x = call->in[0], *target = call->in[1], *y = call->out[0], *total = call->out[1];
    gpu_loss loss = { .n = x->shape[0],
                      .classes = x->shape[1],
                      .ignore = options->ignore_index,
                      .op = GPU_ERROR_NLL_LOSS,
                      .offset_x = gpu_offset(x),
                      .offset_target = gpu_offset(target),
                      .offset_y = gpu_offset(y),
                      .offset_total = gpu_offset(total),
                      .stride_x = { x->strides[0], x->strides[1] },
                      .stride_target = target->strides[0],
                      .stride_y = y->ndim ? y->strides[0] : 0 };
    void *errors = gpu_error_memory(call);
    const gpu_arg args[] = { GPU_ARG(y->data),      GPU_ARG(total->data), GPU_ARG(x->data),
                             GPU_ARG(target->data), GPU_ARG(errors),      GPU_ARG(loss) };
    tn_status status = reduction_of(call, options->reduction, &loss.reduction);

    if (status)
        return status;
    return gpu_launch(call, GPU_nll_loss, tn_view_dtype(x), 1, 1, args, 6);
}

tn_status gpu_run_nll_loss_grad(const tn_call *call)
{
    const tn_nll_loss_grad_options *options = call->options;
    const tn_view *gy = call->in[0], *target = call->in[1], *total = call->in[2],
                  *gx = call->out[0];
    gpu_loss loss = { .n = gx->shape[0],
                      .classes = gx->shape[1],
                      .ignore = options->ignore_index,
                      .op = GPU_ERROR_NLL_LOSS_GRAD,
                      .offset_x = gpu_offset(gx),
                      .offset_target = gpu_offset(target),
                      .offset_y = gpu_offset(gy),
                      .offset_total = gpu_offset(total),
                      .stride_x = { gx->strides[0], gx->strides[1] },
                      .stride_target = target->strides[0],
                      .stride_y = gy->ndim ? gy->strides[0] : 0 };
    void *errors = gpu_error_memory(call);
    const gpu_arg args[] = { GPU_ARG(gx->data),     GPU_ARG(gy->data), GPU_ARG(total->data),
                             GPU_ARG(target->data), GPU_ARG(errors),   GPU_ARG(loss) };
    tn_status status = reduction_of(call, options->reduction, &loss.reduction);

    if (status)
        return status;
    return gpu_launch(call, GPU_nll_loss_grad, tn_view_dtype(gx), loss.n * loss.classes, 1, args,
                      6);
}

/* SPDX-License-Identifier: MIT
 *
 * softmax, log_softmax and the derivative of log_softmax along one dimension. */
#include "gpu.h"

static tn_status softmax(const tn_call *call, int64_t dim, int32_t logarithm)
{
    const tn_view *views[] = { call->out[0], call->in[0] };
    gpu_rows rows;
    tn_status status = gpu_rows_make(&rows, views, 2, dim);

    if (status)
        return status;
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data), GPU_ARG(rows),
                                 GPU_ARG(logarithm) };

        return gpu_launch(call, GPU_softmax, tn_view_dtype(views[0]), rows.rows, 1, args, 4);
    }
}

tn_status gpu_run_softmax(const tn_call *call)
{
    return softmax(call, ((const tn_softmax_options *)call->options)->dim, 0);
}

tn_status gpu_run_log_softmax(const tn_call *call)
{
    return softmax(call, ((const tn_log_softmax_options *)call->options)->dim, 1);
}

tn_status gpu_run_log_softmax_grad(const tn_call *call)
{
    const tn_view *views[] = { call->out[0], call->in[0], call->in[1] };
    gpu_rows rows;
    tn_status status = gpu_rows_make(&rows, views, 3,
                                     ((const tn_log_softmax_grad_options *)call->options)->dim);

    if (status)
        return status;
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data),
                                 GPU_ARG(views[2]->data), GPU_ARG(rows) };

        return gpu_launch(call, GPU_log_softmax_grad, tn_view_dtype(views[0]), rows.rows, 1, args,
                          4);
    }
}

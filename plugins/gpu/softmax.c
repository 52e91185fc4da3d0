/* SPDX-License-Identifier: MIT
 *
 * softmax, log_softmax and its derivative along one dimension. */
#include "gpu.h"

#include <string.h>

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
    if (dim < 0)
        dim += first->ndim;
    if (dim < 0 || dim >= first->ndim)
        return tn_fail(TN_ERR_INDEX, "dim %lld is out of range for %d dimension%s", (long long)dim,
                       (int)first->ndim, first->ndim == 1 ? "" : "s");
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

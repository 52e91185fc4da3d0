/* SPDX-License-Identifier: MIT
 *
 * sort along one dimension. */
#include "gpu.h"

tn_status gpu_run_sort(const tn_call *call)
{
    const tn_sort_options *options = call->options;
    const tn_view *views[] = { call->out[0], call->out[1], call->in[0] };
    int32_t descending = options->descending;
    gpu_rows rows;
    tn_status status = gpu_rows_make(&rows, views, 3, options->dim);

    if (status)
        return status;
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data),
                                 GPU_ARG(views[2]->data), GPU_ARG(rows), GPU_ARG(descending) };

        return gpu_launch(call, GPU_sort, tn_view_dtype(views[2]), rows.rows * rows.length, 1, args,
                          5);
    }
}

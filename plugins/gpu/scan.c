/* SPDX-License-Identifier: MIT
 *
 * cumsum and cumprod: cumulative sums and products along one dimension. */
#include "gpu.h"

static tn_status scan(const tn_call *call, int64_t dim, int32_t product, int32_t reverse)
{
    const tn_view *views[] = { call->out[0], call->in[0] };
    gpu_rows rows;
    tn_status status = gpu_rows_make(&rows, views, 2, dim);

    if (status)
        return status;
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data), GPU_ARG(rows),
                                 GPU_ARG(product), GPU_ARG(reverse) };

        return gpu_launch(call, GPU_scan, tn_view_dtype(views[1]), rows.rows, 1, args, 5);
    }
}

tn_status gpu_run_cumsum(const tn_call *call)
{
    const tn_cumsum_options *options = call->options;

    return scan(call, options->dim, 0, options->reverse);
}

tn_status gpu_run_cumprod(const tn_call *call)
{
    return scan(call, ((const tn_cumprod_options *)call->options)->dim, 1, 0);
}

/* SPDX-License-Identifier: MIT
 *
 * Batched matrix products with the kernel of kernels/matmul.cl, which works for any strides. */
#include "gpu.h"

#define TILE 64     /* must be equal to TILE in kernels/matmul.cl */
#define BATCH 65535 /* most matrices per launch, because of CUDA's limit for a grid */

bool gpu_supports_bmm(const tn_call *call, char *reason, size_t size)
{
    if (call->in[0]->ndim != 3 || call->in[1]->ndim != 3) {
        tn_snprint(reason, size, "expected operands of three dimensions, got %d and %d",
                   (int)call->in[0]->ndim, (int)call->in[1]->ndim);
        return false;
    }
    return gpu_supports(call, reason, size);
}

tn_status gpu_run_bmm(const tn_call *call)
{
    const tn_view *y = call->out[0], *a = call->in[0], *b = call->in[1];
    tn_dtype dtype = tn_view_dtype(y);
    gpu_bmm plan = { .batch = y->shape[0],
                     .m = y->shape[1],
                     .n = y->shape[2],
                     .k = a->shape[2],
                     .offset_y = gpu_offset(y),
                     .offset_a = gpu_offset(a),
                     .offset_b = gpu_offset(b) };
    const gpu_arg args[] = { GPU_ARG(y->data), GPU_ARG(a->data), GPU_ARG(b->data), GPU_ARG(plan) };
    int64_t tiles = ((plan.n + TILE - 1) / TILE) * ((plan.m + TILE - 1) / TILE);
    tn_status status = TN_OK;

    if (tn_view_dtype(a) != dtype || tn_view_dtype(b) != dtype)
        return tn_fail(
            TN_ERR_TYPE,
            "bmm: operands: wrong dtype, got %s and %s with a result of %s; expected equal dtypes",
            tn_dtype_name(tn_view_dtype(a)), tn_dtype_name(tn_view_dtype(b)), tn_dtype_name(dtype));
    for (int d = 0; d < 3; d++) {
        plan.stride_y[d] = y->strides[d];
        plan.stride_a[d] = d == 0 && a->shape[0] == 1 ? 0 : a->strides[d];
        plan.stride_b[d] = d == 0 && b->shape[0] == 1 ? 0 : b->strides[d];
    }
    if (plan.k == 0)
        return gpu_fill_view(call, y, tn_scalar_int(0));
    for (int64_t done = 0; done < plan.batch && !status; done += BATCH) {
        status = gpu_launch(call, GPU_bmm, dtype, tiles,
                            plan.batch - done < BATCH ? plan.batch - done : BATCH, args, 4);
        plan.offset_y += BATCH * plan.stride_y[0];
        plan.offset_a += BATCH * plan.stride_a[0];
        plan.offset_b += BATCH * plan.stride_b[0];
    }
    return status;
}

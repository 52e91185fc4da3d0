/* SPDX-License-Identifier: MIT
 *
 * Elementwise functions of one tensor. */
#include "gpu.h"

tn_status gpu_run_one(const tn_call *call, const tn_view *from, tn_scalar number)
{
    const tn_view *views[] = { call->out[0], from };
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    gpu_walk walk;
    gpu_scalar scalar;

    gpu_walk_make(&walk, views, 2);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data), GPU_ARG(walk),
                                 gpu_scalar_arg(&scalar, dtype, number) };
        return gpu_launch(call, *(const enum gpu_kernel *)call->kernel->user, dtype, walk.count, 1,
                          args, 4);
    }
}

tn_status gpu_run_unary(const tn_call *call)
{
    tn_status status = gpu_same_types(call);

    return status ? status : gpu_run_one(call, call->in[0], tn_scalar_int(0));
}

tn_status gpu_run_map(const tn_call *call)
{
    const tn_view *views[] = { call->out[0], call->in[0] };
    i32 function = *(const i32 *)call->kernel->user;
    gpu_walk walk;

    gpu_walk_make(&walk, views, 2);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data), GPU_ARG(walk),
                                 GPU_ARG(function) };

        return gpu_launch(call, GPU_map, tn_view_dtype(views[0]), walk.count, 1, args, 4);
    }
}

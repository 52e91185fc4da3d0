/* SPDX-License-Identifier: MIT
 *
 * Elementwise comparisons, and where(), which chooses between two elements. */
#include "gpu.h"

tn_status gpu_run_compare(const tn_call *call)
{
    const tn_view *views[] = { call->out[0], call->in[0], call->in[1] };
    i32 function = *(const i32 *)call->kernel->user;
    gpu_walk walk;

    gpu_walk_make(&walk, views, 3);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data),
                                 GPU_ARG(views[2]->data), GPU_ARG(walk), GPU_ARG(function) };

        return gpu_launch(call, GPU_compare, tn_view_dtype(views[1]), walk.count, 1, args, 5);
    }
}

tn_status gpu_run_where(const tn_call *call)
{
    const tn_view *views[] = { call->out[0], call->in[1], call->in[2], call->in[0] };
    gpu_walk4 walk;

    gpu_walk4_make(&walk, views);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[3]->data),
                                 GPU_ARG(views[1]->data), GPU_ARG(views[2]->data), GPU_ARG(walk) };

        return gpu_launch(call, GPU_where, gpu_as_bits(views[0]), walk.count, 1, args, 5);
    }
}

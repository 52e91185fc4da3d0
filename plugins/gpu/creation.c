/* SPDX-License-Identifier: MIT
 *
 * Creation of tensors: fill (the same value everywhere) and arange (equally spaced numbers). */
#include "gpu.h"

tn_status gpu_fill_view(const tn_call *call, const tn_view *to, tn_scalar value)
{
    const tn_view *views[] = { to };
    uint64_t bits[2];
    gpu_walk walk;

    gpu_walk_make(&walk, views, 1);
    gpu_bits(tn_view_dtype(to), value, bits);
    /* bits[1] is used only by complex128, whose elements have 128 bits. */
    {
        const gpu_arg args[] = { GPU_ARG(to->data), GPU_ARG(walk), GPU_ARG(bits[0]),
                                 GPU_ARG(bits[1]) };

        return gpu_launch(call, GPU_fill, gpu_as_bits(to), walk.count, 1, args, 4);
    }
}

tn_status gpu_run_fill(const tn_call *call)
{
    return gpu_fill_view(call, call->out[0], ((const tn_fill_options *)call->options)->value);
}

tn_status gpu_run_arange(const tn_call *call)
{
    const tn_arange_options *options = call->options;
    const tn_view *views[] = { call->out[0] };
    tn_dtype dtype = tn_view_dtype(views[0]);
    gpu_walk walk;
    gpu_scalar start, step;

    gpu_walk_make(&walk, views, 1);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(walk),
                                 gpu_scalar_arg(&start, dtype, options->start),
                                 gpu_scalar_arg(&step, dtype, options->step) };

        return gpu_launch(call, GPU_arange, dtype, walk.count, 1, args, 4);
    }
}

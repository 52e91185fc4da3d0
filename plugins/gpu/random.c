/* SPDX-License-Identifier: MIT
 *
 * Random numbers from Philox 4x32-10; sdk/operators/random.ops says which element takes which
 * words. */
#include "gpu.h"

static tn_status draw(const tn_call *call, enum gpu_kernel kernel, gpu_philox philox, double first,
                      double second)
{
    const tn_view *views[] = { call->out[0] };
    tn_dtype dtype = tn_view_dtype(views[0]);
    gpu_walk walk;
    gpu_scalar a, b;

    gpu_walk_make(&walk, views, 1);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(walk), GPU_ARG(philox),
                                 gpu_scalar_arg(&a, dtype, first),
                                 gpu_scalar_arg(&b, dtype, second) };

        return gpu_launch(call, kernel, dtype, walk.count, 1, args, 5);
    }
}

tn_status gpu_run_philox_uniform(const tn_call *call)
{
    const tn_philox_uniform_options *options = call->options;
    gpu_philox philox = { options->seed, options->block };

    return draw(call, GPU_philox_uniform, philox, options->low, options->high - options->low);
}

tn_status gpu_run_philox_normal(const tn_call *call)
{
    const tn_philox_normal_options *options = call->options;
    gpu_philox philox = { options->seed, options->block };

    return draw(call, GPU_philox_normal, philox, options->mean, options->std);
}

/* SPDX-License-Identifier: MIT
 *
 * Random numbers from the generator Philox 4x32-10. sdk/operators/random.ops defines which words
 * of the generator each element uses. */
#include "gpu.h"

static tn_status draw(const tn_call *call, enum gpu_kernel kernel, int64_t seed, int64_t block,
                      double first, double second)
{
    const tn_view *views[] = { call->out[0] }, *state = call->n_in > 1 ? call->in[1] : NULL;
    gpu_philox philox = { .seed = seed, .block = block, .has_state = state != NULL };
    tn_dtype dtype = tn_view_dtype(views[0]);
    gpu_walk walk;
    gpu_scalar a, b;

    if (state != NULL) {
        philox.seed_at = gpu_offset(state);
        philox.step = state->strides[0];
    } else {
        state = views[0]; /* any valid memory; the kernel does not read it */
    }
    gpu_walk_make(&walk, views, 1);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data),
                                 GPU_ARG(state->data),
                                 GPU_ARG(walk),
                                 GPU_ARG(philox),
                                 gpu_scalar_arg(&a, dtype, tn_scalar_float(first)),
                                 gpu_scalar_arg(&b, dtype, tn_scalar_float(second)) };

        return gpu_launch(call, kernel, dtype, walk.count, 1, args, 6);
    }
}

tn_status gpu_run_philox_uniform(const tn_call *call)
{
    const tn_philox_uniform_options *options = call->options;

    return draw(call, GPU_philox_uniform, options->seed, options->block, options->low,
                options->high - options->low);
}

tn_status gpu_run_philox_normal(const tn_call *call)
{
    const tn_philox_normal_options *options = call->options;

    return draw(call, GPU_philox_normal, options->seed, options->block, options->mean,
                options->std);
}

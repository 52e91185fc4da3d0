/* SPDX-License-Identifier: MIT
 *
 * Element by element, by kernels that take the function as an argument; bounds; choice. */
#include "gpu.h"

#include <math.h>

/* Which function a row means: kernel->data points into this. */
const i32 gpu_functions[GPU_F_COUNT] = {
#define SAME_(name) [GPU_F_##name] = GPU_F_##name
    SAME_(ABS),  SAME_(SIGN),  SAME_(FLOOR),   SAME_(CEIL),      SAME_(TRUNC),     SAME_(ROUND),
    SAME_(NOT),  SAME_(EXPM1), SAME_(LOG1P),   SAME_(LOG2),      SAME_(LOG10),     SAME_(SIN),
    SAME_(COS),  SAME_(TAN),   SAME_(ASIN),    SAME_(ACOS),      SAME_(ATAN),      SAME_(SINH),
    SAME_(COSH), SAME_(TANH),  SAME_(ERF),     SAME_(ERFC),      SAME_(ERFINV),    SAME_(EQ),
    SAME_(LT),   SAME_(LE),    SAME_(MINIMUM), SAME_(POW),       SAME_(ATAN2),     SAME_(AND),
    SAME_(OR),   SAME_(XOR),   SAME_(FMOD),    SAME_(REMAINDER), SAME_(DIV_TRUNC), SAME_(DIV_FLOOR),
#undef SAME_
};

static i32 function_of(const tn_call *call)
{
    return *(const i32 *)call->kernel->data;
}

tn_status gpu_run_map(const tn_call *call)
{
    const tn_view *views[] = { call->out[0], call->in[0] };
    i32 function = function_of(call);
    gpu_walk walk;

    gpu_walk_make(&walk, views, 2);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data), GPU_ARG(walk),
                                 GPU_ARG(function) };

        return gpu_launch(call, GPU_map, tn_view_dtype(views[0]), walk.count, 1, args, 4);
    }
}

static tn_status zip(const tn_call *call, i32 function)
{
    const tn_view *views[] = { call->out[0], call->in[0], call->in[1] };
    tn_dtype dtype = tn_view_dtype(views[0]);
    bool divides = function >= GPU_F_DIVIDES && (GPU_MASK_INT & TN_BIT(dtype));
    void *errors = divides ? gpu_error_memory(call) : NULL;
    gpu_walk walk;

    gpu_walk_make(&walk, views, 3);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data),
                                 GPU_ARG(views[2]->data), GPU_ARG(errors),
                                 GPU_ARG(walk),           GPU_ARG(function) };

        return gpu_launch(call, GPU_zip, dtype, walk.count, 1, args, 6);
    }
}

tn_status gpu_run_zip(const tn_call *call)
{
    return zip(call, function_of(call));
}

tn_status gpu_run_div(const tn_call *call)
{
    const tn_div_options *options = call->options;

    if (!options || !options->rounding_mode)
        return gpu_run_binary(call);
    return zip(call, options->rounding_mode[0] == 'f' ? GPU_F_DIV_FLOOR : GPU_F_DIV_TRUNC);
}

tn_status gpu_run_compare(const tn_call *call)
{
    const tn_view *views[] = { call->out[0], call->in[0], call->in[1] };
    i32 function = function_of(call);
    gpu_walk walk;

    gpu_walk_make(&walk, views, 3);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data),
                                 GPU_ARG(views[2]->data), GPU_ARG(walk), GPU_ARG(function) };

        return gpu_launch(call, GPU_compare, tn_view_dtype(views[1]), walk.count, 1, args, 5);
    }
}

/* A bound in the type that kernels compute in: `none` where there is none, the nearest number where it does not fit. */
static gpu_arg bound(gpu_scalar *scalar, tn_dtype dtype, double value, bool lowest)
{
    if (GPU_MASK_INT & TN_BIT(dtype)) {
        if (isnan(value))
            value = lowest ? -INFINITY : INFINITY;
        if (dtype == TN_I64) {
            scalar->l = value >= 0x1p63 ? INT64_MAX : value >= -0x1p63 ? (i64)value : INT64_MIN;
            return (gpu_arg){ scalar, sizeof scalar->l };
        }
        scalar->i = value >= 0x1p31 ? INT32_MAX : value >= -0x1p31 ? (i32)value : INT32_MIN;
        return (gpu_arg){ scalar, sizeof scalar->i };
    }
    return gpu_scalar_arg(scalar, dtype, value);
}

tn_status gpu_run_clamp(const tn_call *call)
{
    const tn_clamp_options *options = call->options;
    const tn_view *views[] = { call->out[0], call->in[0] };
    tn_dtype dtype = tn_view_dtype(views[0]);
    gpu_walk walk;
    gpu_scalar low, high;

    if (tn_view_dtype(views[1]) != dtype) {
        /* whole numbers and a bound that is not whole */
        tn_status status = gpu_copy_view(call, views[0], views[1]);

        if (status)
            return status;
        views[1] = views[0];
    }
    gpu_walk_make(&walk, views, 2);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data), GPU_ARG(walk),
                                 bound(&low, dtype, options->min, true),
                                 bound(&high, dtype, options->max, false) };

        return gpu_launch(call, GPU_clamp, dtype, walk.count, 1, args, 5);
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

/* The parts of complex numbers lie side by side: two copies. */
tn_status gpu_run_complex(const tn_call *call)
{
    const tn_view *y = call->out[0];
    int64_t strides[TN_MAX_DIMS];
    tn_view part = *y;
    tn_status status;

    part.dtype = call->in[0]->dtype;
    part.strides = strides;
    for (int32_t d = 0; d < y->ndim; d++)
        strides[d] = y->strides[d] * 2;
    status = gpu_copy_view(call, &part, call->in[0]);
    part.byte_offset += (uint64_t)gpu_item_size(&part);
    return status ? status : gpu_copy_view(call, &part, call->in[1]);
}

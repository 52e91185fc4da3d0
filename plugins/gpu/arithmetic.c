/* SPDX-License-Identifier: MIT
 *
 * Elementwise arithmetic on two tensors, or on a tensor and a number. Other elementwise operators
 * with two operands use these functions as well. */
#include "gpu.h"

#include <math.h>

static enum gpu_kernel which(const tn_call *call)
{
    return *(const enum gpu_kernel *)call->kernel->user;
}

static tn_status run_two(const tn_call *call, tn_scalar number)
{
    const tn_view *views[] = { call->out[0], call->in[0], call->in[1] };
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    gpu_walk walk;
    gpu_scalar scalar;
    tn_status status = gpu_same_types(call);

    if (status)
        return status;
    gpu_walk_make(&walk, views, 3);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data),
                                 GPU_ARG(views[2]->data), GPU_ARG(walk),
                                 gpu_scalar_arg(&scalar, dtype, number) };
        return gpu_launch(call, which(call), dtype, walk.count, 1, args, 5);
    }
}

tn_status gpu_run_binary(const tn_call *call)
{
    tn_scalar alpha = tn_scalar_int(1);

    if (which(call) == GPU_add && call->options)
        alpha = ((const tn_add_options *)call->options)->alpha;
    else if (which(call) == GPU_sub && call->options)
        alpha = ((const tn_sub_options *)call->options)->alpha;
    if (tn_view_dtype(call->out[0]) == TN_BOOL)
        alpha = tn_scalar_int(tn_scalar_as_float(alpha) !=
                              0); /* as in PyTorch, alpha is converted to the result's dtype */
    return run_two(call, alpha);
}

/* Input and result have different dtypes if an integer tensor is combined with a floating-point
 * number. The input is then converted first. */
tn_status gpu_run_scalar(const tn_call *call)
{
    tn_scalar value = which(call) == GPU_add_scalar
                          ? ((const tn_add_scalar_options *)call->options)->value
                          : ((const tn_mul_scalar_options *)call->options)->value;

    if (tn_view_dtype(call->in[0]) != tn_view_dtype(call->out[0])) {
        tn_status status = gpu_copy_view(call, call->out[0], call->in[0]);
        return status ? status : gpu_run_one(call, call->out[0], value);
    }
    return gpu_run_one(call, call->in[0], value);
}

static i32 function_of(const tn_call *call)
{
    return *(const i32 *)call->kernel->user;
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

/* Converts a bound of clamp to a kernel argument. For integers, a missing bound (NaN) becomes the
 * smallest or the largest integer, and a bound out of range becomes the nearest integer. */
static gpu_arg bound(gpu_scalar *scalar, tn_dtype dtype, tn_scalar value, bool lowest)
{
    if (GPU_MASK_INT & TN_BIT(dtype)) {
        bool given = !isnan(tn_scalar_as_float(value));
        i64 whole = given ? tn_scalar_as_int(value) : lowest ? INT64_MIN : INT64_MAX;

        if (dtype == TN_I64) {
            scalar->l = whole;
            return (gpu_arg){ scalar, sizeof scalar->l };
        }
        scalar->i = whole > INT32_MAX ? INT32_MAX : whole < INT32_MIN ? INT32_MIN : (i32)whole;
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
        /* The input is an integer tensor and a bound is a floating-point number. */
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

/* SPDX-License-Identifier: MIT
 *
 * Element by element: two inputs, one input, one input and a number. */
#include "gpu.h"

static enum gpu_kernel which(const tn_call *call)
{
    return *(const enum gpu_kernel *)call->kernel->data;
}

static tn_status same_types(const tn_call *call)
{
    tn_dtype out = tn_view_dtype(call->out[0]);

    for (int64_t i = 0; i < call->n_in; i++)
        if (tn_view_dtype(call->in[i]) != out)
            return tn_fail(TN_ERR_TYPE,
                           "%s: input %lld is %s and the result %s; this kernel takes one type",
                           call->op, (long long)i, tn_dtype_name(tn_view_dtype(call->in[i])),
                           tn_dtype_name(out));
    return TN_OK;
}

static tn_status run_two(const tn_call *call, double number)
{
    const tn_view *views[] = { call->out[0], call->in[0], call->in[1] };
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    gpu_walk walk;
    gpu_scalar scalar;
    tn_status status = same_types(call);

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

static tn_status run_one(const tn_call *call, const tn_view *from, double number)
{
    const tn_view *views[] = { call->out[0], from };
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    gpu_walk walk;
    gpu_scalar scalar;

    gpu_walk_make(&walk, views, 2);
    {
        const gpu_arg args[] = { GPU_ARG(views[0]->data), GPU_ARG(views[1]->data), GPU_ARG(walk),
                                 gpu_scalar_arg(&scalar, dtype, number) };
        return gpu_launch(call, which(call), dtype, walk.count, 1, args, 4);
    }
}

tn_status gpu_run_binary(const tn_call *call)
{
    double alpha = 1;

    if (which(call) == GPU_add && call->options)
        alpha = ((const tn_add_options *)call->options)->alpha;
    else if (which(call) == GPU_sub && call->options)
        alpha = ((const tn_sub_options *)call->options)->alpha;
    if (tn_view_dtype(call->out[0]) == TN_BOOL)
        alpha = alpha != 0; /* as in PyTorch it has the result's type */
    return run_two(call, alpha);
}

tn_status gpu_run_unary(const tn_call *call)
{
    tn_status status = same_types(call);

    return status ? status : run_one(call, call->in[0], 0);
}

/* An integer tensor and a number that is not whole: the result is floating, and so is what goes in. */
tn_status gpu_run_scalar(const tn_call *call)
{
    double value = which(call) == GPU_add_scalar
                       ? ((const tn_add_scalar_options *)call->options)->value
                       : ((const tn_mul_scalar_options *)call->options)->value;

    if (tn_view_dtype(call->in[0]) != tn_view_dtype(call->out[0])) {
        tn_status status = gpu_copy_view(call, call->out[0], call->in[0]);
        return status ? status : run_one(call, call->out[0], value);
    }
    return run_one(call, call->in[0], value);
}

/* SPDX-License-Identifier: MIT
 *
 * Reductions: decides which dimensions are kept and how the work is divided. The division depends
 * only on shapes, so repeated runs give the same bits. */
#include "gpu.h"

#include <string.h>

#define FEW 64      /* up to this length one work item reduces an output */
#define PIECE 16384 /* an output is not divided into pieces smaller than this */
#define PIECES 256  /* most pieces of an output */
#define ENOUGH 256  /* from this many outputs on, one group per output keeps a device busy */

/* Adds a dimension to the plan. It is merged with the previous dimension if the strides allow it
 * and the previous one is not before dimension `first`. */
static void plan_add(gpu_reduce *plan, int32_t first, int64_t shape, int64_t stride_y,
                     int64_t stride_x)
{
    int32_t n = plan->ndim;

    if (shape == 1)
        return;
    if (n > first && plan->stride_x[n - 1] == stride_x * shape &&
        plan->stride_y[n - 1] == stride_y * shape) {
        plan->shape[n - 1] *= shape;
        plan->stride_x[n - 1] = stride_x;
        plan->stride_y[n - 1] = stride_y;
        return;
    }
    plan->shape[n] = shape;
    plan->stride_x[n] = stride_x;
    plan->stride_y[n] = stride_y;
    plan->ndim++;
}

static void plan_make(gpu_reduce *plan, const tn_view *x, const tn_view *y, tn_ints dims)
{
    bool reduced[TN_MAX_DIMS];

    memset(plan, 0, sizeof *plan);
    for (int32_t d = 0; d < TN_MAX_DIMS; d++)
        reduced[d] = dims.count <= 0;
    /* A 0-d tensor accepts the dimensions 0 and -1; both mean its only element. */
    for (int64_t i = 0; i < dims.count; i++)
        reduced[dims.at[i] < 0 ? dims.at[i] + (x->ndim > 0 ? x->ndim : 1) : dims.at[i]] = true;
    plan->offset_x = gpu_offset(x);
    plan->offset_y = gpu_offset(y);
    plan->outputs = 1;
    plan->length = 1;
    /* y has the kept dimensions in order. With keepdim, y also has the reduced ones with size 1. */
    for (int32_t d = 0, of_y = 0; d < x->ndim; d++) {
        if (reduced[d]) {
            plan->length *= x->shape[d];
            of_y += y->ndim == x->ndim;
        } else {
            plan->outputs *= x->shape[d];
            plan_add(plan, 0, x->shape[d], y->strides[of_y], x->strides[d]);
            of_y++;
        }
    }
    plan->kept = plan->ndim;
    for (int32_t d = 0; d < x->ndim; d++)
        if (reduced[d])
            plan_add(plan, plan->kept, x->shape[d], 0, x->strides[d]);
    if (plan->ndim == plan->kept) {
        plan->shape[plan->ndim] = 1;
        plan->ndim++;
    }
    plan->pieces = 1;
    if (plan->outputs > 0 && plan->outputs < ENOUGH && plan->length >= 2 * PIECE) {
        int64_t pieces = plan->length / PIECE;

        plan->pieces = pieces < PIECES ? pieces : PIECES;
    }
    plan->piece = (plan->length + plan->pieces - 1) / plan->pieces;
    /* Because `piece` was rounded up, fewer pieces may suffice. */
    if (plan->piece > 0)
        plan->pieces = (plan->length + plan->piece - 1) / plan->piece;
}

/* Makes the plan of the second pass, which reduces the partial results, an array of shape
 * [outputs, pieces] in the workspace, to y. */
static void plan_second(gpu_reduce *second, const gpu_reduce *plan, int64_t workspace_offset)
{
    *second = *plan;
    second->length = plan->pieces;
    second->piece = plan->pieces;
    second->pieces = 1;
    second->offset_x = workspace_offset;
    for (int32_t d = plan->kept - 1, next = (int32_t)plan->pieces; d >= 0; d--) {
        second->stride_x[d] = next;
        next *= (int32_t)plan->shape[d];
    }
    second->ndim = plan->kept + 1;
    second->shape[plan->kept] = plan->pieces;
    second->stride_x[plan->kept] = 1;
}

static tn_ints dims_of(const tn_call *call)
{
    /* The options of prod, amax and amin begin with the same members as those of sum. */
    const tn_sum_options *options = call->options;

    return options ? options->dims : tn_no_ints();
}

/* Bytes of a partial result. Partial sums and products are stored in the type in which they are
 * computed, which is float32 for the 16-bit floating types. */
static int64_t partial_size(const tn_call *call)
{
    tn_dtype out = tn_view_dtype(call->out[0]);

    if (out == TN_F16 || out == TN_BF16)
        return 4;
    return gpu_item_size(call->out[0]);
}

size_t gpu_workspace_reduce(const tn_call *call)
{
    gpu_reduce plan;

    plan_make(&plan, call->in[0], call->out[0], dims_of(call));
    return plan.pieces > 1 ? (size_t)(plan.outputs * plan.pieces * partial_size(call)) : 0;
}

static tn_status reduce(const tn_call *call, enum gpu_kernel group, enum gpu_kernel item,
                        enum gpu_kernel part, enum gpu_kernel last, int64_t size)
{
    const tn_view *x = call->in[0], *y = call->out[0];
    tn_dtype dtype = tn_view_dtype(x);
    gpu_reduce plan, second;
    tn_status status;

    plan_make(&plan, x, y, dims_of(call));
    if (plan.pieces > 1) {
        const tn_view *work = call->workspace;
        int64_t offset;

        if (!work)
            return tn_fail(TN_ERR_ASSERT,
                           "%s: workspace: missing; the core must allocate it; please report this",
                           call->op);
        offset = (int64_t)work->byte_offset / size;
        plan_second(&second, &plan, offset);
        plan.offset_y = offset;
        {
            const gpu_arg first_args[] = { GPU_ARG(work->data), GPU_ARG(x->data), GPU_ARG(plan) };
            const gpu_arg second_args[] = { GPU_ARG(y->data), GPU_ARG(work->data),
                                            GPU_ARG(second) };

            status = gpu_launch(call, part, dtype, plan.outputs * plan.pieces, 1, first_args, 3);
            return status ? status : gpu_launch(call, last, dtype, plan.outputs, 1, second_args, 3);
        }
    }
    {
        const gpu_arg args[] = { GPU_ARG(y->data), GPU_ARG(x->data), GPU_ARG(plan) };
        bool alone = plan.length <= FEW || plan.outputs >= 16 * ENOUGH;

        return gpu_launch(call, alone ? item : group, dtype, plan.outputs, 1, args, 3);
    }
}

tn_status gpu_run_sum(const tn_call *call)
{
    return reduce(call, GPU_sum, GPU_sum_item, GPU_sum_part, GPU_sum_last, partial_size(call));
}

tn_status gpu_run_amax(const tn_call *call)
{
    return reduce(call, GPU_amax, GPU_amax_item, GPU_amax, GPU_amax, gpu_item_size(call->out[0]));
}

tn_status gpu_run_amin(const tn_call *call)
{
    return reduce(call, GPU_amin, GPU_amin_item, GPU_amin, GPU_amin, gpu_item_size(call->out[0]));
}

tn_status gpu_run_prod(const tn_call *call)
{
    return reduce(call, GPU_prod, GPU_prod_item, GPU_prod_part, GPU_prod_last, partial_size(call));
}

static tn_status arg_extreme(const tn_call *call, int64_t dim, int32_t smaller)
{
    const tn_view *x = call->in[0], *y = call->out[0];
    gpu_reduce plan;

    plan_make(&plan, x, y, dim == INT64_MIN ? tn_no_ints() : (tn_ints){ &dim, 1 });
    plan.pieces = 1;
    plan.piece = plan.length;
    {
        const gpu_arg args[] = { GPU_ARG(y->data), GPU_ARG(x->data), GPU_ARG(plan),
                                 GPU_ARG(smaller) };

        return gpu_launch(call, GPU_argmax, tn_view_dtype(x), plan.outputs, 1, args, 4);
    }
}

tn_status gpu_run_argmax(const tn_call *call)
{
    const tn_argmax_options *options = call->options;

    return arg_extreme(call, options ? options->dim : INT64_MIN, 0);
}

tn_status gpu_run_argmin(const tn_call *call)
{
    return arg_extreme(call, ((const tn_argmin_options *)call->options)->dim, 1);
}

/* SPDX-License-Identifier: MIT
 *
 * batch_norm in evaluation: x * scale + shift for each channel, maybe a sum and relu, in one pass
 * over the memory. Every element is rounded in the same way as by the operators of the
 * decomposition, so that calls that record gradients, which are decomposed, have the same bits. */
#include "nn/norm.h"

#include <math.h>
#include <string.h>

#include "base/scratch.h"
#include "base/span.h"
#include "op/float32_call.h"
#include "simd/simd.h"

/* The inputs of both operators; the residual is only that of batch_norm_relu. */
enum { X, MEAN, VAR, WEIGHT, BIAS, RESIDUAL };

static const tn_view *input(const tn_call *call, int64_t i)
{
    return i < call->n_in ? call->in[i] : NULL;
}

static bool is_training(const tn_call *call, double *eps)
{
    if (strcmp(call->op, "batch_norm") == 0) {
        const tn_batch_norm_options *o = call->options;
        *eps = o->eps;
        return o->training;
    }
    const tn_batch_norm_relu_options *o = call->options;
    *eps = o->eps;
    return o->training;
}

static struct tn__norm_layout layout_of(const tn_view *x)
{
    struct tn__norm_layout layout = { .channels_last = true, .populations = x->shape[1] };

    layout.channels_last = tn__norm_has_layout(&layout, x);
    layout.segments = layout.channels_last ? 1 : x->shape[0];
    layout.length = 1;
    for (int32_t d = layout.channels_last ? 0 : 2; d < x->ndim; d++)
        if (d != 1)
            *(layout.channels_last ? &layout.segments : &layout.length) *= x->shape[d];
    return layout;
}

bool tn__norm_supports_running(const tn_call *call, char *reason, size_t size)
{
    const tn_view *x = call->in[X], *residual = input(call, RESIDUAL);
    struct tn__norm_layout layout = layout_of(x);
    /* The separate operators round the norm before they add the residual. */
    bool rounds = residual != NULL && tn__dtype_is_narrow(tn_view_dtype(x));
    double eps;
    bool good = !rounds && !is_training(call, &eps) && call->in[MEAN] != NULL &&
                call->in[VAR] != NULL && tn__norm_has_layout(&layout, x) &&
                tn__norm_has_layout(&layout, residual) &&
                (call->out == NULL || tn__norm_has_layout(&layout, call->out[0]));

    for (int64_t i = MEAN; good && i < call->n_in; i++)
        good = call->in[i] == NULL || (tn_view_dtype(call->in[i]) == tn_view_dtype(x) &&
                                       (i == RESIDUAL || tn__span_view_dense(call->in[i])));
    if (!good)
        tn_snprint(
            reason, size,
            "expected running statistics in evaluation, all tensors of one type, x contiguous "
            "or with the channels last, and a residual only in float32 and float64");
    return good;
}

static inline float root_f32(float x)
{
    return sqrtf(x);
}

static inline double root_f64(double x)
{
    return sqrt(x);
}

#define TEMPLATE "nn/norm_running_template.h"
#include "base/for_floats.h"

void tn__norm_scale_shift(enum tn__ct ct, const tn_view *const *moments, double eps, int64_t n,
                          void *scale, void *shift)
{
    if (ct == TN__F64)
        scale_shift_f64(moments, eps, n, scale, shift);
    else
        scale_shift_f32(moments, eps, n, scale, shift);
}

static tn_status batch(const tn_call *call, bool relu, double max)
{
    const tn_view *x = call->in[X], *residual = input(call, RESIDUAL);
    int which = tn__dtype_ct(call->dtype) == TN__F64;
    struct tn__norm_work w = {
        .layout = layout_of(x), .x = tn__view_at(x), .relu = relu, .max = max
    };
    int64_t channels = x->shape[1], pieces, each;
    tn_status status;
    double eps;

    is_training(call, &eps);
    w.y = tn__view_at(call->out[0]);
    w.residual = residual ? tn__view_at(residual) : NULL;
    w.mean = tn__scratch_take((size_t)(2 * channels * tn__view_item(x)));
    if (!w.mean)
        return TN_ERR_MEMORY;
    w.var = (char *)w.mean + channels * tn__view_item(x);
    tn__norm_scale_shift(tn__dtype_ct(call->dtype), call->in + MEAN, eps, channels, w.mean, w.var);
    pieces = w.layout.channels_last ? (w.layout.segments + TN__NORM_ROWS - 1) / TN__NORM_ROWS
                                    : w.layout.segments * channels;
    each = w.layout.channels_last ? TN__NORM_ROWS * channels : w.layout.length;
    status = tn_parallel_for(pieces, 1 + 32768 / (each + 1), tn__simd.norm->running[which], &w);
    tn__scratch_give(w.mean);
    return status;
}

tn_status tn__norm_batch(const tn_call *call)
{
    return batch(call, false, NAN);
}

tn_status tn__norm_batch_relu(const tn_call *call)
{
    return batch(call, true, ((const tn_batch_norm_relu_options *)call->options)->max);
}

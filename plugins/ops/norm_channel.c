/* SPDX-License-Identifier: MIT
 *
 * Normalization of images [N, C, ...] by channels, with or without running statistics. */
#include "channels.h"
#include "norm.h"

static tn_status image_infer(tn_infer *infer)
{
    static const char *const names[] = { "running_mean", "running_var", "weight", "bias" };
    const tn_view *x = infer->in[0];
    char text[TN__TEXT];

    if (x->ndim < 2)
        return tn_fail(TN_ERR_VALUE, "x: wrong shape, got %s; expected [N, C, ...]",
                       tn__common_text(text, tn__common_shape(x)));
    for (int64_t i = 1; i < infer->n_in; i++) {
        const tn_view *part = infer->in[i];
        const char *name = names[infer->n_in == 5 ? i - 1 : i + 1];

        if (part != NULL && (part->ndim != 1 || part->shape[0] != x->shape[1]))
            return tn_fail(TN_ERR_RUNTIME,
                           "%s: wrong shape, got %s; expected [%lld], one for each channel", name,
                           tn__common_text(text, tn__common_shape(part)), (long long)x->shape[1]);
    }
    return tn__common_open(infer);
}

/* Like image_infer(), for operators with running statistics, which are only read if `updates` is
 * false. */
static tn_status running_infer(tn_infer *infer, bool updates)
{
    if (!updates && TN_HAS(infer, tn_infer, only_read))
        infer->only_read = 1 << 1 | 1 << 2;
    return image_infer(infer);
}

/* Returns the tensor [C] as [1, C, 1, ...]. */
static tn_tensor *per_channel(tn_tensor *x, int32_t ndim)
{
    int64_t shape[TN_MAX_DIMS];

    if (x == TN_NONE)
        return TN_NONE;
    for (int32_t d = 0; d < ndim; d++)
        shape[d] = d == 1 ? tn_tensor_size(x, 0) : 1;
    return tn_reshape(x, (tn_ints){ shape, ndim });
}

static tn_tensor *affine(tn_tensor *y, tn_tensor *weight, tn_tensor *bias)
{
    if (weight != TN_NONE)
        y = tn_mul(y, weight);
    return bias == TN_NONE || y == NULL ? y : tn_add(y, bias);
}

/* Updates running statistics in place: running += momentum (now - running). Records no gradient. */
static tn_status run_along(tn_tensor *running, tn_tensor *now, double momentum)
{
    tn_status status = TN_OK;

    if (running == TN_NONE)
        return TN_OK;
    tn_grad_begin(false);
    now = tn_detach(now);
    if (now == NULL ||
        tn_copy_(running,
                 tn_lerp_scalar(running, tn_cast(now, tn_tensor_dtype(running)), momentum)) == NULL)
        status = tn_error_last_code();
    tn_grad_end();
    return status;
}

static tn_tensor *flat_row(tn_tensor *x)
{
    return tn_flatten(x, 0, -1);
}

static tn_tensor *by_running(tn_tensor *x, tn_tensor *const *in, double eps)
{
    int32_t ndim = tn_tensor_ndim(x);
    tn_tensor *scale = tn__normal_spread(tn__normal_moment(in[2], x), eps), *shift;

    if (in[3] != TN_NONE)
        scale = tn_mul(scale, tn__normal_as_wide(in[3]));
    shift = tn_neg(tn_mul(tn__normal_moment(in[1], x), scale));
    if (in[4] != TN_NONE)
        shift = tn_add(shift, tn__normal_as_wide(in[4]));
    if (shift == NULL)
        return NULL;
    return tn_cast(
        tn_add(tn_mul(tn__normal_as_wide(x), per_channel(scale, ndim)), per_channel(shift, ndim)),
        tn_tensor_dtype(x));
}

/* batch_norm. With `relu`, adds the residual in[5], if present, and applies relu with the limit
 * `max`. */
static tn_status batch_norm(tn_tensor *const *in, const tn_batch_norm_options *o, bool relu,
                            double max, tn_tensor **out)
{
    tn_standardize_options s = TN_STANDARDIZE_OPTIONS;
    int32_t ndim = tn_tensor_ndim(in[0]);
    int64_t dims[TN_MAX_DIMS], count = 0;
    double n = 1;
    tn_tensor *mean, *var;
    tn_status status;
    char text[TN__TEXT];

    for (int32_t d = 0; d < ndim; d++)
        if (d != 1) {
            dims[count++] = d;
            n *= (double)tn_tensor_size(in[0], d);
        }
    if (!o->training && in[1] != TN_NONE && in[2] != TN_NONE) {
        tn_tensor *y = by_running(in[0], in, o->eps);

        if (y != NULL && relu && in[5] != TN_NONE)
            y = tn_cast(tn_add(y, in[5]), tn_tensor_dtype(in[0]));
        return tn__common_given(out, y != NULL && relu ? tn__normal_relu(y, max) : y);
    }
    if (!o->training && (in[1] != TN_NONE || in[2] != TN_NONE))
        return tn_fail(TN_ERR_RUNTIME, "running_mean or running_var: one is missing; expected both "
                                       "or none");
    if (o->training && n == 1)
        return tn_fail(
            TN_ERR_VALUE,
            "x: too few values, got shape %s; expected more than 1 value per channel in training",
            tn__common_text(text, tn_tensor_shape(in[0])));
    s.eps = o->eps;
    status = relu ? tn_standardize_relu(in[0], per_channel(in[3], ndim), per_channel(in[4], ndim),
                                        in[5], ((tn_ints){ dims, count }), out, &mean, &var, s.eps,
                                        max)
                  : tn_standardize(in[0], per_channel(in[3], ndim), per_channel(in[4], ndim),
                                   ((tn_ints){ dims, count }), out, &mean, &var, s.eps);
    /* no values have no mean: the running statistics stay */
    if (status == TN_OK && o->training && n > 0)
        status = run_along(in[1], flat_row(mean), o->momentum);
    if (status == TN_OK && o->training && n > 0 && in[2] != TN_NONE)
        status = run_along(in[2], tn_mul_scalar(flat_row(var), n / (n - 1)), o->momentum);
    return status;
}

static tn_status batch_norm_decompose(const tn_decompose *call)
{
    return batch_norm(call->in, call->options, false, NAN, call->out);
}

/* Fails if eps is not positive. NaN is accepted and gives NaN, as in PyTorch. */
static tn_status check_eps(double eps)
{
    return eps <= 0.0 ? tn_fail(TN_ERR_VALUE,
                                "eps: out of range, got %g; expected a number greater than 0", eps)
                      : TN_OK;
}

/* The result is like x, so that a device may have a kernel. */
static tn_status like_x(tn_infer *infer, tn_status status)
{
    if (status == TN_OK)
        tn__common_like(infer, 0, 0, tn_view_dtype(infer->in[0]));
    return status;
}

static tn_status batch_norm_infer(tn_infer *infer)
{
    const tn_batch_norm_options *o = infer->options;
    tn_status status = check_eps(o->eps);

    return like_x(infer, status == TN_OK ? running_infer(infer, o->training) : status);
}

static tn_status batch_norm_relu_infer(tn_infer *infer)
{
    tn_infer plain = *infer;
    const tn_batch_norm_relu_options *o = infer->options;
    tn_status status = check_eps(o->eps);

    if (status == TN_OK)
        status = tn__normal_check_max(o->max, tn_view_dtype(infer->in[0]));
    if (status != TN_OK)
        return status;
    if (!o->training && TN_HAS(infer, tn_infer, only_read))
        infer->only_read = 1 << 1 | 1 << 2;
    plain.n_in = 5;
    status = tn__common_same_shape(infer->in[5], "residual", tn__common_shape(infer->in[0]), "x");
    return status == TN_OK ? like_x(infer, image_infer(&plain)) : status;
}

static tn_status batch_norm_relu_decompose(const tn_decompose *call)
{
    const tn_batch_norm_relu_options *o = call->options;
    tn_batch_norm_options plain = TN_BATCH_NORM_OPTIONS;
    plain.training = o->training;
    plain.momentum = o->momentum;
    plain.eps = o->eps;
    return batch_norm(call->in, &plain, true, o->max, call->out);
}

static tn_status instance_norm_infer(tn_infer *infer)
{
    return running_infer(infer,
                         ((const tn_instance_norm_options *)infer->options)->use_input_stats);
}

static tn_status instance_norm_decompose(const tn_decompose *call)
{
    const tn_instance_norm_options *o = call->options;
    int32_t ndim = tn_tensor_ndim(call->in[0]);
    int64_t dims[TN_MAX_DIMS], first = 0;
    double n = 1;
    tn_tensor *mean, *var;
    tn_status status;
    char text[TN__TEXT];
    for (int32_t d = 2; d < ndim; d++) {
        dims[d - 2] = d;
        n *= (double)tn_tensor_size(call->in[0], d);
    }
    if (!o->use_input_stats) {
        if (call->in[1] == TN_NONE || call->in[2] == TN_NONE)
            return tn_fail(TN_ERR_RUNTIME, "running_mean or running_var: missing; expected both "
                                           "if use_input_stats is false");
        return tn__common_given(call->out, by_running(call->in[0], call->in, o->eps));
    }
    if (n == 1 || ndim == 2)
        return tn_fail(
            TN_ERR_VALUE,
            "x: too few elements, got shape %s; expected more than 1 element for each channel",
            tn__common_text(text, tn_tensor_shape(call->in[0])));
    status = tn_standardize(call->in[0], per_channel(call->in[3], ndim),
                            per_channel(call->in[4], ndim), ((tn_ints){ dims, ndim - 2 }),
                            call->out, &mean, &var, o->eps);
    if (tn_tensor_numel(call->in[0]) == 0) /* no values have no mean: the running statistics stay */
        return status;
    if (status == TN_OK && call->in[1] != TN_NONE)
        status = run_along(call->in[1], flat_row(tn_mean(mean, TN_INTS(first))), o->momentum);
    if (status == TN_OK && call->in[2] != TN_NONE)
        status = run_along(call->in[2],
                           tn_mul_scalar(flat_row(tn_mean(var, TN_INTS(first))), n / (n - 1)),
                           o->momentum);
    return status;
}

static tn_status group_norm_infer(tn_infer *infer)
{
    const tn_group_norm_options *o = infer->options;
    const tn_view *x = infer->in[0];
    char text[TN__TEXT];
    tn_status status = image_infer(infer);

    if (status == TN_OK && (o->num_groups < 1 || x->shape[1] % o->num_groups != 0))
        return tn_fail(TN_ERR_RUNTIME,
                       "num_groups: wrong count, got %lld; expected a divisor of the %lld channels",
                       (long long)o->num_groups, (long long)x->shape[1]);
    for (int32_t d = 1; d < x->ndim && status == TN_OK; d++)
        if (x->shape[d] < 1)
            return tn_fail(
                TN_ERR_RUNTIME,
                "x: too few elements, got shape %s; expected at least 1 element in a group",
                tn__common_text(text, tn__common_shape(x)));
    if (status == TN_OK && tn__common_count(tn__common_shape(x)) == o->num_groups)
        return tn_fail(TN_ERR_VALUE,
                       "x: too few values, got shape %s; expected more than 1 value in a group",
                       tn__common_text(text, tn__common_shape(x)));
    return status;
}

static tn_status group_norm_decompose(const tn_decompose *call)
{
    const tn_group_norm_options *o = call->options;
    tn_ints shape = tn_tensor_shape(call->in[0]);
    int64_t last = 2, each = 1;
    tn_dtype dtype = tn_tensor_dtype(call->in[0]);
    /* with weight or bias, computes in float32 at least, so that the result is rounded only once */
    tn_tensor *x = call->in[1] != TN_NONE || call->in[2] != TN_NONE
                       ? tn__normal_as_wide(call->in[0])
                       : call->in[0];
    tn_tensor *y, *mean, *var;
    tn_status status;
    if (x == NULL)
        return tn_error_last_code();
    for (int64_t d = 1; d < shape.count; d++)
        each = tn__common_times(each, shape.at[d]);
    status = tn_standardize(
        tn_reshape(x, TN_SHAPE(shape.at[0], o->num_groups, each / o->num_groups)), TN_NONE, TN_NONE,
        ((tn_ints){ &last, 1 }), &y, &mean, &var, o->eps);
    if (status != TN_OK)
        return status;
    y = tn_reshape(y, shape);
    if (tn__channels_image(tn_tensor_view(call->in[0])))
        y = tn__channels_copied(y);
    y = affine(y, per_channel(call->in[1], (int32_t)shape.count),
               per_channel(call->in[2], (int32_t)shape.count));
    return tn__common_given(call->out, y == NULL ? NULL : tn_cast(y, dtype));
}

TN__OP(batch_norm, .infer = batch_norm_infer, .decompose = batch_norm_decompose);
TN__OP(batch_norm_relu, .infer = batch_norm_relu_infer, .decompose = batch_norm_relu_decompose);
TN__OP(instance_norm, .infer = instance_norm_infer, .decompose = instance_norm_decompose);
TN__OP(group_norm, .infer = group_norm_infer, .decompose = group_norm_decompose);

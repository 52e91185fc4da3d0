/* SPDX-License-Identifier: MIT
 *
 * Convolutions as matrix products: each window of x, with all its channels, becomes a column, and
 * the result is the weight times these columns. The gradient of the input is again a convolution:
 * that of gy, with zeros inserted between its elements, with the flipped weight. */
#include "window.h"

/* Geometry that all three operators of the family use. */
typedef struct layout {
    tn__window slide;
    int64_t images, channels, outputs, groups;
} layout;

static tn_ints after(const tn_view *view, int32_t first)
{
    return (tn_ints){ view->shape + first, view->ndim - first };
}

/* Fills l->slide and checks it. `size` and `kernel` are the dimensions of x and of the weight after
 * the channels; l->channels and l->outputs must be set. */
static tn_status lay_out(layout *l, tn_ints size, tn_ints kernel, tn_ints stride, tn_ints padding,
                         tn_ints dilation, int64_t groups)
{
    char text[TN__TEXT], text_k[TN__TEXT];

    if (size.count < 1 || size.count > TN__WINDOW_DIMS || kernel.count != size.count)
        return tn_fail(
            TN_ERR_RUNTIME,
            "kernel: wrong number of dimensions, got image size %s and kernel size %s; expected 1 "
            "to 3 dimensions, the same number in both",
            tn__common_text(text, size), tn__common_text(text_k, kernel));
    l->slide.dims = (int32_t)size.count;
    for (int64_t i = 0; i < size.count; i++) {
        l->slide.size[i] = size.at[i];
        l->slide.kernel[i] = kernel.at[i];
    }
    l->groups = groups;
    if (groups < 1 || l->channels % groups != 0 || l->outputs % groups != 0)
        return tn_fail(
            TN_ERR_VALUE,
            "groups: wrong count, got %lld; expected a divisor of the channels, %lld in and %lld "
            "out",
            (long long)groups, (long long)l->channels, (long long)l->outputs);
    return tn__window_lay(&l->slide, stride, padding, dilation, false);
}

/* ---- convolution ---- */

static tn_status convolution_infer(tn_infer *infer)
{
    const tn_convolution_options *o = infer->options;
    const tn_view *x = infer->in[0], *weight = infer->in[1], *bias = infer->in[2];
    char text[TN__TEXT], text_w[TN__TEXT];
    layout l;
    tn_status status = tn__common_same_dtype(x, "x", weight, "weight");

    if (status == TN_OK)
        status = tn__common_same_dtype(x, "x", bias, "bias");
    if (status != TN_OK)
        return status;
    if (x->ndim < 3 || weight->ndim != x->ndim)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x or weight: wrong shape, got %s and %s; expected [N, C, ...] and [O, C / groups, "
            "...]",
            tn__common_text(text, tn__common_shape(x)),
            tn__common_text(text_w, tn__common_shape(weight)));
    l.images = x->shape[0];
    l.channels = x->shape[1];
    l.outputs = weight->shape[0];
    status = lay_out(&l, after(x, 2), after(weight, 2), o->stride, o->padding, o->dilation,
                     o->groups);
    if (status != TN_OK)
        return status;
    if (tn__common_times(weight->shape[1], l.groups) != l.channels)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x: wrong number of channels, got %lld in %s; expected %lld for weight %s with %lld "
            "groups",
            (long long)l.channels, tn__common_text(text, tn__common_shape(x)),
            (long long)tn__common_times(weight->shape[1], l.groups),
            tn__common_text(text_w, tn__common_shape(weight)), (long long)l.groups);
    if (bias != NULL && (bias->ndim != 1 || bias->shape[0] != l.outputs))
        return tn_fail(TN_ERR_RUNTIME,
                       "bias: wrong shape, got %s; expected [%lld], one for each output channel",
                       tn__common_text(text, tn__common_shape(bias)), (long long)l.outputs);
    tn__window_meta(&infer->out[0], tn_view_dtype(x), l.images, l.outputs, l.slide.count,
                    l.slide.dims);
    tn__window_choose_order(&infer->out[0], infer);
    return TN_OK;
}

static tn_ints shape_after(const tn_tensor *x, int32_t first)
{
    tn_ints shape = tn_tensor_shape(x);

    return (tn_ints){ shape.at + first, shape.count - first };
}

/* Returns the windows of x [N, C, ...] as columns: [groups, C / groups * kernel, N * count] */
static tn_tensor *columns_of(tn_tensor *x, const layout *l)
{
    const tn__window *s = &l->slide;
    int64_t order[2 + 2 * TN__WINDOW_DIMS] = { 1 }, shape[3];
    int32_t dims = s->dims;

    for (int32_t i = 0; i < dims; i++) {
        order[1 + i] = 2 + dims + i;
        order[2 + dims + i] = 2 + i;
    }
    order[1 + dims] = 0;
    shape[0] = l->groups;
    shape[1] = tn__common_times(l->channels / l->groups, tn__window_product(s->kernel, dims));
    shape[2] = tn__common_times(l->images, tn__window_product(s->count, dims));
    return tn_reshape(
        tn_permute(tn__window_windows(x, s, 0, false), (tn_ints){ order, 2 + 2 * dims }),
        (tn_ints){ shape, 3 });
}

/* rows_of() reshapes y [N, O, count...] to [groups, O / groups, N * count]; images_of() does the
 * reverse. */
static tn_tensor *rows_of(tn_tensor *y, const layout *l)
{
    return tn_reshape(
        tn_transpose(y, 0, 1),
        TN_SHAPE(l->groups, l->outputs / l->groups,
                 tn__common_times(l->images, tn__window_product(l->slide.count, l->slide.dims))));
}

static tn_tensor *images_of(tn_tensor *rows, const layout *l)
{
    int64_t shape[2 + TN__WINDOW_DIMS] = { l->outputs, l->images };

    for (int32_t i = 0; i < l->slide.dims; i++)
        shape[2 + i] = l->slide.count[i];
    return tn_transpose(tn_reshape(rows, (tn_ints){ shape, 2 + l->slide.dims }), 0, 1);
}

static tn_status convolution_decompose(const tn_decompose *call)
{
    const tn_convolution_options *o = call->options;
    tn_tensor *y;
    layout l = { .images = tn_tensor_size(call->in[0], 0),
                 .channels = tn_tensor_size(call->in[0], 1),
                 .outputs = tn_tensor_size(call->in[1], 0) };

    if (lay_out(&l, shape_after(call->in[0], 2), shape_after(call->in[1], 2), o->stride, o->padding,
                o->dilation, o->groups) != TN_OK)
        return tn_error_last_code();
    y = images_of(tn_bmm(tn_reshape(call->in[1],
                                    TN_SHAPE(l.groups, l.outputs / l.groups,
                                             tn__common_times(l.channels / l.groups,
                                                              tn__window_product(l.slide.kernel,
                                                                                 l.slide.dims)))),
                         columns_of(call->in[0], &l)),
                  &l);
    if (call->n_in > 2 && call->in[2] != TN_NONE)
        y = tn_add(y, tn__window_per_channel(call->in[2], l.slide.dims));
    return tn__common_given(call->out, y);
}

static tn_status convolution_derive(tn_derive *d)
{
    const tn_convolution_options *o = d->options;
    tn_convolution_grad_input_options gi = TN_CONVOLUTION_GRAD_INPUT_OPTIONS;
    tn_convolution_grad_weight_options gw = TN_CONVOLUTION_GRAD_WEIGHT_OPTIONS;
    tn_ints x = tn__common_in_shape(d, 0), weight = tn__common_in_shape(d, 1);
    tn_tensor *gy = d->gout[0];

    gi.stride = gw.stride = o->stride;
    gi.padding = gw.padding = o->padding;
    gi.dilation = gw.dilation = o->dilation;
    gi.groups = gw.groups = o->groups;
    if (tn__needs(d, 0))
        d->gin[0] = tn_convolution_grad_input(gy, d->in[1], ((tn_ints){ x.at + 2, x.count - 2 }),
                                              gi.stride, gi.padding, gi.dilation, gi.groups);
    if (tn__needs(d, 1))
        d->gin[1] = tn_convolution_grad_weight(gy, d->in[0],
                                               ((tn_ints){ weight.at + 2, weight.count - 2 }),
                                               gw.stride, gw.padding, gw.dilation, gw.groups);
    if (tn__needs(d, 2)) {
        int64_t dims[1 + TN__WINDOW_DIMS] = { 0, 2, 3, 4 };

        d->gin[2] = tn_sum(gy, ((tn_ints){ dims, x.count - 1 }));
    }
    return TN_OK;
}

/* ---- gradients of convolution ---- */

static tn_status check_gy(const tn_view *gy, const layout *l)
{
    char text[TN__TEXT], text_c[TN__TEXT];
    bool fits = gy->shape[0] == l->images && gy->shape[1] == l->outputs;

    for (int32_t i = 0; i < l->slide.dims; i++)
        fits &= gy->shape[2 + i] == l->slide.count[i];
    return fits ? TN_OK
                : tn_fail(
                      TN_ERR_RUNTIME,
                      "gy: wrong shape, got %s; expected [%lld, %lld, ...] with the last sizes %s",
                      tn__common_text(text, tn__common_shape(gy)), (long long)l->images,
                      (long long)l->outputs,
                      tn__common_text(text_c, (tn_ints){ l->slide.count, l->slide.dims }));
}

static tn_status check_same_dims(const tn_view *gy, const tn_view *other, const char *name)
{
    char text[TN__TEXT], text_o[TN__TEXT];

    if (gy->ndim >= 3 && gy->ndim <= 2 + TN__WINDOW_DIMS && other->ndim == gy->ndim)
        return tn__common_same_dtype(gy, "gy", other, name);
    return tn_fail(TN_ERR_RUNTIME,
                   "gy or %s: wrong number of dimensions, got %s and %s; expected the same, 3 to 5",
                   name, tn__common_text(text, tn__common_shape(gy)),
                   tn__common_text(text_o, tn__common_shape(other)));
}

static tn_status convolution_grad_input_infer(tn_infer *infer)
{
    const tn_convolution_grad_input_options *o = infer->options;
    const tn_view *gy = infer->in[0], *weight = infer->in[1];
    layout l;
    tn_status status = check_same_dims(gy, weight, "weight");

    if (status != TN_OK)
        return status;
    l.images = gy->shape[0];
    l.outputs = weight->shape[0];
    l.channels = tn__common_times(weight->shape[1], o->groups > 0 ? o->groups : 1);
    status = lay_out(&l, o->input_size, after(weight, 2), o->stride, o->padding, o->dilation,
                     o->groups);
    if (status == TN_OK)
        status = check_gy(gy, &l);
    if (status != TN_OK)
        return status;
    tn__window_meta(&infer->out[0], tn_view_dtype(gy), l.images, l.channels, l.slide.size,
                    l.slide.dims);
    tn__window_choose_order(&infer->out[0], infer);
    return TN_OK;
}

/* Returns gy with stride - 1 zeros between its elements, cropped or padded so that it has as many
 * windows as x has elements. */
static tn_tensor *spread(tn_tensor *gy, const layout *l)
{
    int64_t shape[2 + TN__WINDOW_DIMS] = { l->images, l->outputs }, sizes[2 * TN__WINDOW_DIMS];
    const tn__window *s = &l->slide;
    tn_tensor *wide, *steps;
    bool apart = false;

    for (int32_t i = 0; i < s->dims; i++) {
        int64_t reach = s->dilation[i] * (s->kernel[i] - 1), *pair = sizes + 2 * (s->dims - 1 - i);

        shape[2 + i] = (s->count[i] - 1) * s->stride[i] + 1;
        pair[0] = reach - s->padding[i];
        pair[1] = s->size[i] + s->padding[i] - shape[2 + i];
        apart |= s->stride[i] > 1;
    }
    wide = gy;
    if (apart) {
        wide = steps = tn__common_zeros(gy, (tn_ints){ shape, 2 + s->dims });
        for (int32_t i = 0; i < s->dims; i++) {
            steps = tn_slice(steps, 2 + i, INT64_MIN, INT64_MIN, s->stride[i]);
        }
        if (tn_copy_(steps, gy) == NULL)
            return NULL;
    }
    return tn_pad(wide, ((tn_ints){ sizes, 2 * s->dims }));
}

/* Returns the weight [O, C / groups, ...] as [C, O / groups, ...], flipped along the kernel
 * dimensions. */
static tn_tensor *turned(tn_tensor *weight, const layout *l)
{
    int64_t shape[3 + TN__WINDOW_DIMS] = { l->groups, l->outputs / l->groups,
                                           l->channels / l->groups },
                      dims[TN__WINDOW_DIMS] = { 2, 3, 4 };

    for (int32_t i = 0; i < l->slide.dims; i++)
        shape[3 + i] = l->slide.kernel[i];
    weight = tn_transpose(tn_reshape(weight, (tn_ints){ shape, 3 + l->slide.dims }), 1, 2);
    shape[1] = l->outputs / l->groups;
    shape[0] = l->channels;
    for (int32_t i = 0; i < l->slide.dims; i++)
        shape[2 + i] = l->slide.kernel[i];
    weight = tn_reshape(weight, (tn_ints){ shape, 2 + l->slide.dims });
    return tn_flip(weight, (tn_ints){ dims, l->slide.dims });
}

static tn_status convolution_grad_input_decompose(const tn_decompose *call)
{
    const tn_convolution_grad_input_options *o = call->options;
    layout l = { .images = tn_tensor_size(call->in[0], 0),
                 .outputs = tn_tensor_size(call->in[1], 0),
                 .channels = tn__common_times(tn_tensor_size(call->in[1], 1), o->groups) };
    if (lay_out(&l, o->input_size, shape_after(call->in[1], 2), o->stride, o->padding, o->dilation,
                o->groups) != TN_OK)
        return tn_error_last_code();
    return tn__common_given(
        call->out, tn_convolution(spread(call->in[0], &l), turned(call->in[1], &l), TN_NONE,
                                  tn_no_ints(), tn_no_ints(), o->dilation, o->groups));
}

/* Returns a convolution without bias, with the options of one of the gradient operators. */
static tn_tensor *convolved(tn_tensor *x, tn_tensor *weight, tn_ints stride, tn_ints padding,
                            tn_ints dilation, int64_t groups)
{
    return tn_convolution(x, weight, TN_NONE, stride, padding, dilation, groups);
}

static tn_status convolution_grad_input_derive(tn_derive *d)
{
    const tn_convolution_grad_input_options *o = d->options;
    tn_ints weight = tn__common_in_shape(d, 1);

    if (tn__needs(d, 0))
        d->gin[0] = convolved(d->gout[0], d->in[1], o->stride, o->padding, o->dilation, o->groups);
    if (tn__needs(d, 1))
        d->gin[1] = tn_convolution_grad_weight(d->in[0], d->gout[0],
                                               ((tn_ints){ weight.at + 2, weight.count - 2 }),
                                               o->stride, o->padding, o->dilation, o->groups);
    return TN_OK;
}

static tn_status convolution_grad_weight_infer(tn_infer *infer)
{
    const tn_convolution_grad_weight_options *o = infer->options;
    const tn_view *gy = infer->in[0], *x = infer->in[1];
    layout l;
    tn_status status = check_same_dims(gy, x, "x");

    if (status != TN_OK)
        return status;
    l.images = x->shape[0];
    l.channels = x->shape[1];
    l.outputs = gy->shape[1];
    status = lay_out(&l, after(x, 2), o->kernel, o->stride, o->padding, o->dilation, o->groups);
    if (status == TN_OK)
        status = check_gy(gy, &l);
    if (status != TN_OK)
        return status;
    tn__window_meta(&infer->out[0], tn_view_dtype(gy), l.outputs, l.channels / l.groups,
                    l.slide.kernel, l.slide.dims);
    return TN_OK;
}

static tn_status convolution_grad_weight_decompose(const tn_decompose *call)
{
    const tn_convolution_grad_weight_options *o = call->options;
    int64_t shape[2 + TN__WINDOW_DIMS];
    layout l = { .images = tn_tensor_size(call->in[1], 0),
                 .channels = tn_tensor_size(call->in[1], 1),
                 .outputs = tn_tensor_size(call->in[0], 1) };
    if (lay_out(&l, shape_after(call->in[1], 2), o->kernel, o->stride, o->padding, o->dilation,
                o->groups) != TN_OK)
        return tn_error_last_code();
    shape[0] = l.outputs;
    shape[1] = l.channels / l.groups;
    for (int32_t i = 0; i < l.slide.dims; i++)
        shape[2 + i] = l.slide.kernel[i];
    return tn__common_given(call->out,
                            tn_reshape(tn_bmm(rows_of(call->in[0], &l),
                                              tn_transpose(columns_of(call->in[1], &l), 1, 2)),
                                       (tn_ints){ shape, 2 + l.slide.dims }));
}

static tn_status convolution_grad_weight_derive(tn_derive *d)
{
    const tn_convolution_grad_weight_options *o = d->options;
    tn_ints x = tn__common_in_shape(d, 1);

    if (tn__needs(d, 0))
        d->gin[0] = convolved(d->in[1], d->gout[0], o->stride, o->padding, o->dilation, o->groups);
    if (tn__needs(d, 1))
        d->gin[1] = tn_convolution_grad_input(d->in[0], d->gout[0],
                                              ((tn_ints){ x.at + 2, x.count - 2 }), o->stride,
                                              o->padding, o->dilation, o->groups);
    return TN_OK;
}

/* ---- convolution with what follows it ---- */

enum { RESIDUAL = 7 };

static bool is_activation(const char *name)
{
    static const char *const names[] = { "none", "relu", "relu6", "silu", "hardswish" };
    size_t i = 0;

    while (i < sizeof names / sizeof *names && (name == NULL || strcmp(name, names[i]) != 0))
        i++;
    return i < sizeof names / sizeof *names;
}

static tn_convolution_options convolution_part(const tn_convolution_activation_options *o)
{
    tn_convolution_options plain = TN_CONVOLUTION_OPTIONS;

    plain.stride = o->stride;
    plain.padding = o->padding;
    plain.dilation = o->dilation;
    plain.groups = o->groups;
    return plain;
}

/* Checks the inputs of batch_norm for `outputs` channels. */
static tn_status check_norm(const tn_infer *infer, int64_t outputs, double eps)
{
    static const char *const names[] = { "running_mean", "running_var", "norm_weight",
                                         "norm_bias" };
    const tn_view *const *in = infer->in + 3;
    char text[TN__TEXT];

    if ((in[0] == NULL) != (in[1] == NULL))
        return tn_fail(TN_ERR_RUNTIME, "running_mean or running_var: one is missing; expected both "
                                       "or none");
    for (int i = 0; i < 4; i++) {
        if (in[i] != NULL && in[0] == NULL)
            return tn_fail(TN_ERR_RUNTIME,
                           "%s: given without running_mean and running_var; expected all or none",
                           names[i]);
        if (in[i] != NULL && (in[i]->ndim != 1 || in[i]->shape[0] != outputs))
            return tn_fail(
                TN_ERR_RUNTIME, "%s: wrong shape, got %s; expected [%lld], one for each channel",
                names[i], tn__common_text(text, tn__common_shape(in[i])), (long long)outputs);
    }
    return in[0] != NULL && eps <= 0.0
               ? tn_fail(TN_ERR_VALUE,
                         "eps: out of range, got %g; expected a number greater than 0", eps)
               : TN_OK;
}

/* Gives y the strides that it has after one more elementwise operator: with the second input
 * `more`, or with one input if `more` is NULL. As with separate operators, not every order of
 * strides is kept. */
static tn_status follow_strides(const tn_infer *infer, const tn_view *more)
{
    tn_meta *y = &infer->out[0], before = *y;
    int64_t next = 1, count = 1;
    tn_view view = *infer->in[0];
    const tn_view *in[2] = { &view, more };
    tn_infer step = *infer;

    for (int32_t d = before.ndim; d-- > 0;)
        if (__builtin_mul_overflow(count, before.shape[d], &count))
            return TN_OK; /* the core refuses a result with so many elements */
    if ((before.flags & TN_META_STRIDED) == 0)
        for (int32_t d = before.ndim; d-- > 0; next *= before.shape[d])
            before.strides[d] = next;
    view.shape = before.shape;
    view.strides = before.strides;
    y->flags &= ~(uint32_t)TN_META_STRIDED;
    step.in = in;
    step.n_in = more != NULL ? 2 : 1;
    return more != NULL ? tn__broadcast_two(&step) : tn__common_unary(&step);
}

static tn_status convolution_activation_infer(tn_infer *infer)
{
    const tn_convolution_activation_options *o = infer->options;
    tn_convolution_options plain = convolution_part(o);
    const tn_view *residual = infer->in[RESIDUAL];
    tn_meta *y = &infer->out[0];
    tn_infer part = *infer;
    tn_status status;

    if (!is_activation(o->activation))
        return tn_fail(TN_ERR_VALUE,
                       "activation: unknown, got %q; expected none, relu, relu6, silu or hardswish",
                       o->activation);
    part.options = &plain;
    part.n_in = 3;
    status = convolution_infer(&part);
    if (status == TN_OK)
        status = check_norm(infer, y->shape[1], o->eps);
    if (status == TN_OK)
        status = tn__common_same_dtype(infer->in[0], "x", residual, "residual");
    if (status == TN_OK)
        status = tn__common_same_shape(residual, "residual", (tn_ints){ y->shape, y->ndim },
                                       "the result");
    if (status == TN_OK && infer->in[3] != NULL)
        status = follow_strides(infer, NULL);
    if (status == TN_OK && residual != NULL)
        status = follow_strides(infer, residual);
    return status == TN_OK && strcmp(o->activation, "none") != 0 ? follow_strides(infer, NULL)
                                                                 : status;
}

static tn_status convolution_activation_decompose(const tn_decompose *call)
{
    const tn_convolution_activation_options *o = call->options;
    tn_convolution_options plain = convolution_part(o);
    const bool six = strcmp(o->activation, "relu6") == 0;
    tn_tensor *const *in = call->in;
    tn_tensor *y = tn_convolution(in[0], in[1], in[2], plain.stride, plain.padding, plain.dilation,
                                  plain.groups);

    if (y != NULL && in[3] != TN_NONE && (six || strcmp(o->activation, "relu") == 0)) {
        tn_batch_norm_relu_options norm = TN_BATCH_NORM_RELU_OPTIONS;

        norm.eps = o->eps;
        norm.max = six ? 6.0 : norm.max;
        return tn__common_given(call->out, tn_batch_norm_relu(y, in[3], in[4], in[5], in[6],
                                                              in[RESIDUAL], norm.training,
                                                              norm.momentum, norm.eps, norm.max));
    }
    if (y != NULL && in[3] != TN_NONE) {
        tn_batch_norm_options norm = TN_BATCH_NORM_OPTIONS;

        norm.eps = o->eps;
        y = tn_batch_norm(y, in[3], in[4], in[5], in[6], norm.training, norm.momentum, norm.eps);
    }
    if (y != NULL && in[RESIDUAL] != TN_NONE)
        y = tn_add(y, in[RESIDUAL]);
    if (y != NULL && strcmp(o->activation, "relu") == 0)
        y = tn_relu(y);
    else if (y != NULL && six)
        y = tn_relu6(y);
    else if (y != NULL && strcmp(o->activation, "silu") == 0)
        y = tn_silu(y);
    else if (y != NULL && strcmp(o->activation, "hardswish") == 0)
        y = tn_hardswish(y);
    return tn__common_given(call->out, y);
}

TN__OP(convolution, .infer = convolution_infer, .derive = convolution_derive,
       .decompose = convolution_decompose);
TN__OP(convolution_grad_input, .infer = convolution_grad_input_infer,
       .derive = convolution_grad_input_derive, .decompose = convolution_grad_input_decompose);
TN__OP(convolution_grad_weight, .infer = convolution_grad_weight_infer,
       .derive = convolution_grad_weight_derive, .decompose = convolution_grad_weight_decompose);
TN__OP(convolution_activation, .infer = convolution_activation_infer,
       .decompose = convolution_activation_decompose);

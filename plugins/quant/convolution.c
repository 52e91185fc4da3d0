/* SPDX-License-Identifier: MIT
 *
 * convolution_int8: each window of x, with all its channels, becomes a column of exact integers,
 * and the sums are the weight times these columns. */
#include "quant.h"

#include "window.h"

typedef tn_convolution_int8_options conv_options;

static tn_status lay_out(tn__window *w, const tn_view *x, const tn_view *weight,
                         const conv_options *o)
{
    char text[TN__TEXT], text_w[TN__TEXT];

    if (x->ndim < 3 || x->ndim > 2 + TN__WINDOW_DIMS || weight->ndim != x->ndim)
        return tn_fail(TN_ERR_RUNTIME,
                       "x or weight: wrong shape, got %s and %s; expected [N, C, ...] and [O, C / "
                       "groups, ...] with one to three more dimensions",
                       tn__common_text(text, tn__common_shape(x)),
                       tn__common_text(text_w, tn__common_shape(weight)));
    if (o->groups < 1 || x->shape[1] % o->groups != 0 || weight->shape[0] % o->groups != 0)
        return tn_fail(TN_ERR_VALUE,
                       "groups: wrong count, got %lld; expected a divisor of the channels, %lld "
                       "in and %lld out",
                       (long long)o->groups, (long long)x->shape[1], (long long)weight->shape[0]);
    if (x->shape[1] / o->groups != weight->shape[1])
        return tn_fail(TN_ERR_RUNTIME,
                       "x: wrong number of channels, got %lld in %s; expected %lld for weight %s "
                       "with %lld groups",
                       (long long)x->shape[1], tn__common_text(text, tn__common_shape(x)),
                       (long long)tn__common_times(weight->shape[1], o->groups),
                       tn__common_text(text_w, tn__common_shape(weight)), (long long)o->groups);
    w->dims = x->ndim - 2;
    for (int32_t i = 0; i < w->dims; i++) {
        w->size[i] = x->shape[2 + i];
        w->kernel[i] = weight->shape[2 + i];
    }
    return tn__window_lay(w, o->stride, o->padding, o->dilation, false);
}

/* Fails unless a scale of x has one element or one for each image. */
static tn_status image_scale_fits(const tn_view *x, const tn_view *scale)
{
    char text[TN__TEXT];
    bool fits = scale->ndim == x->ndim;

    for (int32_t d = 0; d < x->ndim && fits; d++)
        fits = scale->shape[d] == (d == 0 ? x->shape[0] : 1);
    if (fits || scale_has_one(scale))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "x_scale: wrong shape, got %s; expected one element, or one for each of %lld "
                   "images, [N, 1, ...]",
                   tn__common_text(text, tn__common_shape(scale)), (long long)x->shape[0]);
}

static tn_status convolution_int8_infer(tn_infer *infer)
{
    const conv_options *o = infer->options;
    const tn_view *x = infer->in[PRODUCT_X], *weight = infer->in[PRODUCT_WEIGHT];
    const struct product_ending ending = { o->min, o->max, o->dtype };
    tn__window w;
    tn_status status = lay_out(&w, x, weight, o);

    if (status == TN_OK)
        status = image_scale_fits(x, infer->in[PRODUCT_X_SCALE]);
    if (status != TN_OK)
        return status;
    tn__window_meta(&infer->out[0], TN_F32, x->shape[0], weight->shape[0], w.count, w.dims);
    tn__window_keep_order(&infer->out[0], x);
    return product_ending_infer(infer, &ending, weight->shape[0]);
}

static tn_view view_of(const tn_tensor *x)
{
    tn_ints shape = tn_tensor_shape(x);

    return (tn_view){ .ndim = (int32_t)shape.count, .shape = (int64_t *)shape.at };
}

/* The windows of x [N, C, ...] as columns, [groups, C / groups * kernel, N * count]. */
static tn_tensor *columns_of(tn_tensor *x, const tn__window *w, int64_t groups)
{
    int64_t order[2 + 2 * TN__WINDOW_DIMS] = { 1 }, shape[3];
    tn_tensor *windows = tn__window_windows(x, w, 0, false);

    if (windows == NULL)
        return NULL;
    for (int32_t i = 0; i < w->dims; i++) {
        order[1 + i] = 2 + w->dims + i;
        order[2 + w->dims + i] = 2 + i;
    }
    order[1 + w->dims] = 0;
    shape[0] = groups;
    shape[1] = tn__common_times(tn_tensor_size(x, 1) / groups,
                                tn__window_product(w->kernel, w->dims));
    shape[2] = tn__common_times(tn_tensor_size(x, 0), tn__window_product(w->count, w->dims));
    return tn_reshape(tn_permute(windows, (tn_ints){ order, 2 + 2 * w->dims }),
                      (tn_ints){ shape, 3 });
}

static tn_status convolution_int8_decompose(const tn_decompose *call)
{
    const conv_options *o = call->options;
    const struct product_ending ending = { o->min, o->max, o->dtype };
    tn_tensor *const *in = call->in;
    tn_tensor *x = in[PRODUCT_X], *weight = in[PRODUCT_WEIGHT], *zero = in[PRODUCT_WEIGHT_ZERO];
    tn_view views[2] = { view_of(x), view_of(weight) };
    int64_t outputs = views[1].shape[0], images = views[0].shape[0], products;
    int64_t shape[2 + TN__WINDOW_DIMS], channel[2 + TN__WINDOW_DIMS] = { 1, -1, 1, 1, 1 };
    tn_tensor *sums;
    tn__window w;

    if (lay_out(&w, &views[0], &views[1], o) != TN_OK)
        return tn_error_last_code();
    products = tn__common_times(views[1].shape[1], tn__window_product(w.kernel, w.dims));
    if (zero != TN_NONE)
        zero = tn_tensor_numel(zero) == 1 ? scale_plain(zero)
                                          : tn_reshape(zero, TN_SHAPE(o->groups, -1, 1));
    weight = tn_reshape(weight, TN_SHAPE(o->groups, outputs / o->groups, products));
    weight = product_centred(weight, zero, product_dtype(products));
    x = product_centred(x, in[PRODUCT_X_ZERO], product_dtype(products));
    sums = tn_bmm(weight, columns_of(x, &w, o->groups));
    shape[0] = outputs;
    shape[1] = images;
    for (int32_t i = 0; i < w.dims; i++)
        shape[2 + i] = w.count[i];
    sums = tn_transpose(tn_reshape(sums, (tn_ints){ shape, 2 + w.dims }), 0, 1);
    return tn__common_given(call->out, product_end(in, sums, in[PRODUCT_X_SCALE],
                                                   (tn_ints){ channel, 2 + w.dims }, &ending));
}

TN__OP(convolution_int8, .infer = convolution_int8_infer, .decompose = convolution_int8_decompose);

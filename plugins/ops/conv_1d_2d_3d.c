/* SPDX-License-Identifier: MIT
 *
 * The convolutions that programs call, for one to three dimensions: with or without a batch
 * dimension N, with automatic padding, and transposed. All are decomposed into the primitives of
 * conv.c. */
#include "window.h"

/* The options of conv1d, conv2d and conv3d, which are the same. */
typedef struct forward_options {
    tn_ints stride, padding, dilation;
    int64_t groups;
    const char *auto_padding;
} forward_options;

static tn_status forward_infer(tn_infer *infer, int32_t dims, const forward_options *o)
{
    const tn_view *x = infer->in[0], *weight = infer->in[1];
    char text[TN__TEXT];
    int64_t row[TN__WINDOW_DIMS];
    tn_status status = tn__window_check(x, dims);

    if (status == TN_OK && weight->ndim != dims + 2)
        return tn_fail(TN_ERR_RUNTIME, "weight: wrong shape, got %s; expected %d dimensions",
                       tn__common_text(text, tn__common_shape(weight)), (int)dims + 2);
    if (status == TN_OK)
        status = tn__window_row(o->stride, dims, 1, 1, "stride", row);
    if (status != TN_OK || o->auto_padding == NULL)
        return status == TN_OK ? tn__common_open(infer) : status;
    if (strcmp(o->auto_padding, "same") != 0 && strcmp(o->auto_padding, "valid") != 0)
        return tn_fail(TN_ERR_VALUE, "auto_padding: unknown, got %q; expected same or valid",
                       o->auto_padding);
    if (o->padding.count > 0)
        return tn_fail(TN_ERR_VALUE,
                       "padding or auto_padding: too many, got both; expected one of them");
    for (int32_t i = 0; i < dims; i++)
        if (row[i] != 1 && strcmp(o->auto_padding, "same") == 0)
            return tn_fail(TN_ERR_VALUE,
                           "stride: not possible with auto_padding same, got %s; expected 1",
                           tn__common_text(text, o->stride));
    return tn__common_open(infer);
}

static tn_status forward(tn_tensor *const *in, int64_t n_in, int32_t dims, const forward_options *o,
                         tn_tensor **out)
{
    tn_convolution_options plain = TN_CONVOLUTION_OPTIONS;
    tn_tensor *x = tn__window_batched(in[0], dims);
    int64_t sizes[2 * TN__WINDOW_DIMS], both[TN__WINDOW_DIMS], dilation[TN__WINDOW_DIMS];

    plain.stride = o->stride;
    plain.padding = o->padding;
    plain.dilation = o->dilation;
    plain.groups = o->groups;
    if (o->auto_padding != NULL && strcmp(o->auto_padding, "same") == 0) {
        bool uneven = false;

        if (tn__window_row(o->dilation, dims, 1, 1, "dilation", dilation) != TN_OK)
            return tn_error_last_code();
        for (int32_t i = 0; i < dims; i++) {
            int64_t all = tn__common_times(dilation[i], tn_tensor_size(in[1], 2 + i) - 1);

            both[i] = all / 2;
            sizes[2 * (dims - 1 - i)] = 0;
            sizes[2 * (dims - 1 - i) + 1] = all % 2;
            uneven |= all % 2 != 0;
        }
        plain.padding = (tn_ints){ both, dims };
        if (uneven)
            x = tn_pad(x, ((tn_ints){ sizes, 2 * dims }));
    }
    return tn__common_given(
        out, tn__window_unbatched(tn_convolution(x, in[1], n_in > 2 ? in[2] : TN_NONE, plain.stride,
                                                 plain.padding, plain.dilation, plain.groups),
                                  dims, in[0]));
}

typedef struct back_options {
    tn_ints stride, padding, output_padding, dilation;
    int64_t groups;
} back_options;

static tn_status back_infer(tn_infer *infer, int32_t dims, const back_options *o)
{
    const tn_view *x = infer->in[0], *weight = infer->in[1], *bias = infer->in[2];
    char text[TN__TEXT];
    int64_t stride[TN__WINDOW_DIMS], dilation[TN__WINDOW_DIMS], more[TN__WINDOW_DIMS];
    int64_t outputs = 0;
    tn_status status = tn__window_check(x, dims);

    if (status == TN_OK && weight->ndim != dims + 2)
        return tn_fail(TN_ERR_RUNTIME, "weight: wrong shape, got %s; expected %d dimensions",
                       tn__common_text(text, tn__common_shape(weight)), (int)dims + 2);
    if (status == TN_OK && (o->groups < 1 || weight->shape[0] % o->groups != 0))
        return tn_fail(TN_ERR_VALUE,
                       "groups: wrong count, got %lld; expected a divisor of the %lld channels",
                       (long long)o->groups, (long long)weight->shape[0]);
    if (status == TN_OK && __builtin_mul_overflow(weight->shape[1], o->groups, &outputs))
        return tn_fail(TN_ERR_VALUE,
                       "groups: too many output channels, got %lld groups of %lld; expected less "
                       "than 2^63 in all",
                       (long long)o->groups, (long long)weight->shape[1]);
    if (status == TN_OK && x->shape[x->ndim - dims - 1] != weight->shape[0])
        return tn_fail(TN_ERR_RUNTIME,
                       "x: wrong number of channels, got %lld in %s; expected %lld for the weight",
                       (long long)x->shape[x->ndim - dims - 1],
                       tn__common_text(text, tn__common_shape(x)), (long long)weight->shape[0]);
    if (status == TN_OK && bias != NULL && (bias->ndim != 1 || bias->shape[0] != outputs))
        return tn_fail(TN_ERR_RUNTIME,
                       "bias: wrong shape, got %s; expected [%lld], one for each output channel",
                       tn__common_text(text, tn__common_shape(bias)), (long long)outputs);
    if (status == TN_OK)
        status = tn__common_same_dtype(x, "x", weight, "weight");
    if (status == TN_OK)
        status = tn__common_same_dtype(x, "x", bias, "bias");
    if (status == TN_OK)
        status = tn__window_row(o->stride, dims, 1, 1, "stride", stride);
    if (status == TN_OK)
        status = tn__window_row(o->dilation, dims, 1, 1, "dilation", dilation);
    if (status == TN_OK)
        status = tn__window_row(o->output_padding, dims, 0, 0, "output_padding", more);
    for (int32_t i = 0; i < dims && status == TN_OK; i++)
        if (more[i] >= stride[i] && more[i] >= dilation[i])
            return tn_fail(
                TN_ERR_RUNTIME,
                "output_padding: out of range, got %s; expected 0 or more, and less than stride or "
                "dilation",
                tn__common_text(text, o->output_padding));
    return status == TN_OK ? tn__common_open(infer) : status;
}

static tn_status back(tn_tensor *const *in, int64_t n_in, int32_t dims, const back_options *o,
                      tn_tensor **out)
{
    tn_tensor *x = tn__window_batched(in[0], dims), *y;
    int64_t stride[TN__WINDOW_DIMS], padding[TN__WINDOW_DIMS], dilation[TN__WINDOW_DIMS],
        more[TN__WINDOW_DIMS], size[TN__WINDOW_DIMS], zeros[2 * TN__WINDOW_DIMS] = { 0 };
    bool wider = false;
    char text[TN__TEXT];

    if (x == NULL || tn__window_row(o->stride, dims, 1, 1, "stride", stride) != TN_OK ||
        tn__window_row(o->padding, dims, 0, 0, "padding", padding) != TN_OK ||
        tn__window_row(o->dilation, dims, 1, 1, "dilation", dilation) != TN_OK ||
        tn__window_row(o->output_padding, dims, 0, 0, "output_padding", more) != TN_OK)
        return tn_error_last_code();
    for (int32_t i = 0; i < dims; i++) {
        if (tn_tensor_size(x, 2 + i) == 0) /* as PyTorch, which allows no batch or no channels */
            return tn_fail(TN_ERR_RUNTIME,
                           "x: wrong shape, got %s; expected at least 1 element "
                           "in each dimension of an image",
                           tn__common_text(text, tn_tensor_shape(in[0])));
        size[i] = tn__common_plus(tn__common_times(tn_tensor_size(x, 2 + i) - 1, stride[i]),
                                  tn__common_times(dilation[i], tn_tensor_size(in[1], 2 + i) - 1));
        size[i] = tn__common_plus(size[i], more[i] + 1) - 2 * padding[i];
        if (size[i] < 1)
            return tn_fail(TN_ERR_RUNTIME,
                           "padding: too large for x of shape %s: dimension %d of the result would "
                           "have size %lld; expected at least 1",
                           tn__common_text(text, tn_tensor_shape(in[0])), (int)(2 + i),
                           (long long)size[i]);
        /* With dilation, output_padding may be as large as the stride. The convolution of which
         * this is the gradient then has more windows than x has elements, so x is padded with zeros
         * for them. */
        zeros[2 * (dims - 1 - i) + 1] = more[i] / stride[i];
        wider |= more[i] >= stride[i];
    }
    if (wider)
        x = tn_pad(x, ((tn_ints){ zeros, 2 * dims }));
    y = tn_convolution_grad_input(x, in[1], ((tn_ints){ size, dims }), o->stride, o->padding,
                                  o->dilation, o->groups);
    if (n_in > 2 && in[2] != TN_NONE)
        y = tn_add(y, tn__window_per_channel(in[2], dims));
    return tn__common_given(out, tn__window_unbatched(y, dims, in[0]));
}

#define FORWARD_OPTIONS                                                                            \
    &(forward_options)                                                                             \
    {                                                                                              \
        o->stride, o->padding, o->dilation, o->groups, o->auto_padding                             \
    }
#define BACK_OPTIONS                                                                               \
    &(back_options)                                                                                \
    {                                                                                              \
        o->stride, o->padding, o->output_padding, o->dilation, o->groups                           \
    }

COMPOSED(conv1d, forward_infer(infer, 1, FORWARD_OPTIONS),
         forward(in, call->n_in, 1, FORWARD_OPTIONS, out));
COMPOSED(conv2d, forward_infer(infer, 2, FORWARD_OPTIONS),
         forward(in, call->n_in, 2, FORWARD_OPTIONS, out));
COMPOSED(conv3d, forward_infer(infer, 3, FORWARD_OPTIONS),
         forward(in, call->n_in, 3, FORWARD_OPTIONS, out));
COMPOSED(conv_transpose1d, back_infer(infer, 1, BACK_OPTIONS),
         back(in, call->n_in, 1, BACK_OPTIONS, out));
COMPOSED(conv_transpose2d, back_infer(infer, 2, BACK_OPTIONS),
         back(in, call->n_in, 2, BACK_OPTIONS, out));
COMPOSED(conv_transpose3d, back_infer(infer, 3, BACK_OPTIONS),
         back(in, call->n_in, 3, BACK_OPTIONS, out));

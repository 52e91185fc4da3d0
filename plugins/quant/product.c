/* SPDX-License-Identifier: MIT
 *
 * Products of matrices of int8 or uint8, with exact sums: matmul_int8 and linear_int8, and what
 * follows the sums in linear_int8 and convolution_int8. */
#include "quant.h"

tn_tensor *product_centred(tn_tensor *q, tn_tensor *zero_point, tn_dtype wide)
{
    q = tn_cast(q, wide);
    return zero_point != TN_NONE ? minus(q, tn_cast(zero_point, wide)) : q;
}

/* ---- matmul_int8 ---- */

/* Fails unless a zero point has one element, or one for each row (column) of its matrix. */
static tn_status matmul_zero_fits(const tn_view *q, const char *q_name, const tn_view *zero,
                                  const char *name, bool rows)
{
    char text[TN__TEXT], text_q[TN__TEXT];
    int32_t last = q->ndim - 1, counted = rows ? last - 1 : last;
    bool fits;
    tn_status status = scale_zero_point(q, q_name, NULL, zero, name);

    if (status != TN_OK || zero == NULL)
        return status;
    fits = scale_has_one(zero);
    if (!fits && zero->ndim == 1 && q->ndim > 1)
        fits = zero->shape[0] == q->shape[counted];
    if (!fits && zero->ndim == q->ndim && q->ndim > 1) {
        fits = true;
        for (int32_t d = 0; d < q->ndim && fits; d++)
            fits = zero->shape[d] == (d == (rows ? last : last - 1) ? 1 : q->shape[d]);
    }
    return fits ? TN_OK
                : tn_fail(TN_ERR_VALUE,
                          "%s: wrong shape, got %s for %s %s; expected one element, or one for "
                          "each %s",
                          name, tn__common_text(text, tn__common_shape(zero)), q_name,
                          tn__common_text(text_q, tn__common_shape(q)), rows ? "row" : "column");
}

/* The dimensions before the matrices broadcast. */
static tn_status matmul_batch(const tn_view *a, const tn_view *b, tn_meta *y)
{
    char text[TN__TEXT], text_b[TN__TEXT];
    int32_t ndim = a->ndim > b->ndim ? a->ndim : b->ndim;

    y->ndim = ndim - 2;
    for (int32_t d = 0; d < ndim - 2; d++) {
        int32_t in_a = d - (ndim - a->ndim), in_b = d - (ndim - b->ndim);
        int64_t size_a = in_a >= 0 ? a->shape[in_a] : 1, size_b = in_b >= 0 ? b->shape[in_b] : 1;

        if (size_a != size_b && size_a != 1 && size_b != 1)
            return tn_fail(TN_ERR_RUNTIME,
                           "a or b: wrong batch, got %s and %s; expected sizes that broadcast",
                           tn__common_text(text, tn__common_shape(a)),
                           tn__common_text(text_b, tn__common_shape(b)));
        y->shape[d] = size_a == 1 ? size_b : size_a;
    }
    return TN_OK;
}

static tn_status matmul_int8_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *b = infer->in[1];
    char text[TN__TEXT], text_b[TN__TEXT];
    tn_meta *y = &infer->out[0];
    tn_status status;

    if (a->ndim < 2 || b->ndim < 2 || a->shape[a->ndim - 1] != b->shape[b->ndim - 2])
        return tn_fail(TN_ERR_RUNTIME,
                       "a or b: wrong shape, got %s and %s; expected [..., M, K] and [..., K, N]",
                       tn__common_text(text, tn__common_shape(a)),
                       tn__common_text(text_b, tn__common_shape(b)));
    status = matmul_zero_fits(a, "a", infer->in[2], "a_zero_point", true);
    if (status == TN_OK)
        status = matmul_zero_fits(b, "b", infer->in[3], "b_zero_point", false);
    if (status == TN_OK)
        status = matmul_batch(a, b, y);
    if (status != TN_OK)
        return status;
    y->dtype = TN_I32;
    y->shape[y->ndim++] = a->shape[a->ndim - 2];
    y->shape[y->ndim++] = b->shape[b->ndim - 1];
    return TN_OK;
}

static tn_status matmul_int8_decompose(const tn_decompose *call)
{
    tn_tensor *a_zero = call->in[2], *b_zero = call->in[3];

    if (a_zero != TN_NONE && tn_tensor_ndim(a_zero) == 1 && tn_tensor_numel(a_zero) != 1)
        a_zero = tn_unsqueeze(a_zero, -1);
    return tn__common_given(call->out, tn_matmul(product_centred(call->in[0], a_zero, TN_I32),
                                                 product_centred(call->in[1], b_zero, TN_I32)));
}

TN__OP(matmul_int8, .infer = matmul_int8_infer, .decompose = matmul_int8_decompose);

/* ---- what follows the sums ---- */

/* Fails unless a scale of the weight has one element or one for each output channel. */
static tn_status weight_scale_fits(const tn_infer *infer, int64_t outputs)
{
    const tn_view *scale = infer->in[PRODUCT_WEIGHT_SCALE];
    char text[TN__TEXT];

    if (scale_has_one(scale) || (scale->ndim == 1 && scale->shape[0] == outputs))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "weight_scale: wrong shape, got %s; expected one element, or [%lld], one for "
                   "each output channel",
                   tn__common_text(text, tn__common_shape(scale)), (long long)outputs);
}

static tn_status residual_fits(const tn_infer *infer)
{
    const tn_view *residual = infer->in[PRODUCT_RESIDUAL];
    const tn_view *scale = infer->in[PRODUCT_RESIDUAL_SCALE];
    const tn_view *zero = infer->in[PRODUCT_RESIDUAL_ZERO];
    tn_status status;

    if ((residual == NULL && (scale != NULL || zero != NULL)) ||
        (residual != NULL &&
         scale_allows(tn_view_dtype(residual), QUANT_BYTES) != (scale != NULL)) ||
        (scale == NULL && zero != NULL))
        return tn_fail(TN_ERR_VALUE,
                       "residual_scale or residual_zero_point: do not fit, got residual %s with%s "
                       "residual_scale; expected a scale for integers, and none otherwise",
                       residual != NULL ? tn_dtype_name(tn_view_dtype(residual)) : "absent",
                       scale != NULL ? "" : "out");
    if (residual == NULL)
        return TN_OK;
    status = tn__common_same_shape(
        residual, "residual", (tn_ints){ infer->out[0].shape, infer->out[0].ndim }, "the result");
    if (status == TN_OK)
        status = scale_is_one(scale, "residual_scale");
    if (status == TN_OK)
        status = scale_zero_point(residual, "residual", scale, zero, "residual_zero_point");
    return status;
}

static tn_status result_dtype(tn_infer *infer, const struct product_ending *ending)
{
    const tn_view *scale = infer->in[PRODUCT_Y_SCALE], *zero = infer->in[PRODUCT_Y_ZERO];
    tn_dtype dtype = ending->dtype;

    if (dtype == TN_DTYPE_AUTO)
        dtype = scale != NULL ? tn_view_dtype(infer->in[PRODUCT_X]) : TN_F32;
    if (scale == NULL && zero != NULL)
        return tn_fail(TN_ERR_VALUE, "y_zero_point: got one without y_scale; expected both");
    if (!scale_allows(dtype, scale != NULL ? QUANT_BYTES : TN_BIT(TN_F32)))
        return tn_fail(TN_ERR_VALUE, "dtype: not supported, got %s with%s y_scale; expected %s",
                       tn_dtype_name(dtype), scale != NULL ? "" : "out",
                       scale != NULL ? "int8 or uint8" : "float32");
    if (zero != NULL && tn_view_dtype(zero) != dtype)
        return tn_fail(TN_ERR_VALUE,
                       "y_zero_point: wrong dtype, got %s; expected %s, the dtype of the result",
                       tn_dtype_name(tn_view_dtype(zero)), tn_dtype_name(dtype));
    infer->out[0].dtype = dtype;
    return TN_OK;
}

tn_status product_ending_infer(tn_infer *infer, const struct product_ending *ending,
                               int64_t outputs)
{
    const tn_view *const *in = infer->in, *bias = in[PRODUCT_BIAS];
    char text[TN__TEXT];
    tn_status status = weight_scale_fits(infer, outputs);

    if (status == TN_OK)
        status = scale_zero_point(in[PRODUCT_X], "x", in[PRODUCT_X_SCALE], in[PRODUCT_X_ZERO],
                                  "x_zero_point");
    if (status == TN_OK)
        status = scale_zero_point(in[PRODUCT_WEIGHT], "weight", in[PRODUCT_WEIGHT_SCALE],
                                  in[PRODUCT_WEIGHT_ZERO], "weight_zero_point");
    if (status == TN_OK && bias != NULL && (bias->ndim != 1 || bias->shape[0] != outputs))
        status = tn_fail(TN_ERR_RUNTIME,
                         "bias: wrong shape, got %s; expected [%lld], one for each output channel",
                         tn__common_text(text, tn__common_shape(bias)), (long long)outputs);
    if (status == TN_OK)
        status = scale_is_one(in[PRODUCT_Y_SCALE], "y_scale");
    if (status == TN_OK)
        status = tn__common_same_shape(in[PRODUCT_Y_ZERO], "y_zero_point",
                                       in[PRODUCT_Y_SCALE] != NULL
                                           ? tn__common_shape(in[PRODUCT_Y_SCALE])
                                           : (tn_ints){ NULL, 0 },
                                       "y_scale");
    if (status == TN_OK)
        status = result_dtype(infer, ending);
    return status == TN_OK ? residual_fits(infer) : status;
}

/* A vector of one number for each channel, or a number, in the shape that broadcasts. */
static tn_tensor *per_channel(tn_tensor *vector, tn_ints channels)
{
    return vector != NULL && tn_tensor_numel(vector) == 1 ? scale_plain(vector)
                                                          : tn_reshape(vector, channels);
}

tn_tensor *product_end(tn_tensor *const *in, tn_tensor *sums, tn_tensor *x_scale, tn_ints channels,
                       const struct product_ending *ending)
{
    tn_tensor *w_scale = tn_cast(in[PRODUCT_WEIGHT_SCALE], TN_F32);
    tn_tensor *factor = tn_mul(tn_cast(x_scale, TN_F32), per_channel(w_scale, channels));
    tn_tensor *y = tn_mul(tn_cast(sums, TN_F32), factor), *residual = in[PRODUCT_RESIDUAL];
    bool quantized = in[PRODUCT_Y_SCALE] != TN_NONE;
    tn_dtype dtype = ending->dtype != TN_DTYPE_AUTO ? ending->dtype
                     : quantized                    ? tn_tensor_dtype(in[PRODUCT_X])
                                                    : TN_F32;

    if (in[PRODUCT_BIAS] != TN_NONE)
        y = plus(y, tn_cast(tn_reshape(in[PRODUCT_BIAS], channels), TN_F32));
    if (residual != TN_NONE && in[PRODUCT_RESIDUAL_SCALE] != TN_NONE)
        residual = tn_dequantize(residual, in[PRODUCT_RESIDUAL_SCALE], in[PRODUCT_RESIDUAL_ZERO]);
    if (residual != TN_NONE)
        y = plus(y, tn_cast(residual, TN_F32));
    if (ending->min == ending->min || ending->max == ending->max)
        y = clamped(y, ending->min, ending->max);
    if (!quantized)
        return y;
    return quantize_to(y, scale_plain(in[PRODUCT_Y_SCALE]),
                       in[PRODUCT_Y_ZERO] != TN_NONE ? scale_plain(in[PRODUCT_Y_ZERO]) : TN_NONE,
                       scale_range_of(dtype, INT64_MIN, INT64_MIN), dtype);
}

/* ---- linear_int8 ---- */

static tn_status linear_int8_infer(tn_infer *infer)
{
    const tn_linear_int8_options *o = infer->options;
    const tn_view *x = infer->in[PRODUCT_X], *w = infer->in[PRODUCT_WEIGHT];
    const tn_view *scale = infer->in[PRODUCT_X_SCALE];
    const struct product_ending ending = { o->min, o->max, o->dtype };
    char text[TN__TEXT], text_w[TN__TEXT];
    tn_meta *y = &infer->out[0];
    bool by_row;

    if (x->ndim < 1 || w->ndim != 2 || x->shape[x->ndim - 1] != w->shape[1])
        return tn_fail(TN_ERR_RUNTIME,
                       "x or weight: wrong shape, got %s and %s; expected [..., in] and [out, in]",
                       tn__common_text(text, tn__common_shape(x)),
                       tn__common_text(text_w, tn__common_shape(w)));
    by_row = scale->ndim == x->ndim;
    for (int32_t d = 0; d < x->ndim && by_row; d++)
        by_row = scale->shape[d] == (d == x->ndim - 1 ? 1 : x->shape[d]);
    if (!by_row && !scale_has_one(scale))
        return tn_fail(TN_ERR_VALUE,
                       "x_scale: wrong shape, got %s for x %s; expected one element, or one for "
                       "each row, [..., 1]",
                       tn__common_text(text, tn__common_shape(scale)),
                       tn__common_text(text_w, tn__common_shape(x)));
    tn__common_plain(y, TN_F32, tn__common_shape(x));
    y->shape[x->ndim - 1] = w->shape[0];
    return product_ending_infer(infer, &ending, w->shape[0]);
}

static tn_status linear_int8_decompose(const tn_decompose *call)
{
    const tn_linear_int8_options *o = call->options;
    const struct product_ending ending = { o->min, o->max, o->dtype };
    tn_tensor *const *in = call->in;
    tn_tensor *x = in[PRODUCT_X], *weight = in[PRODUCT_WEIGHT], *zero = in[PRODUCT_WEIGHT_ZERO];
    tn_dtype wide = product_dtype(tn_tensor_size(x, -1));

    if (zero != TN_NONE)
        zero = tn_tensor_numel(zero) == 1 ? scale_plain(zero) : tn_unsqueeze(zero, -1);
    weight = product_centred(weight, zero, wide);
    x = product_centred(x, in[PRODUCT_X_ZERO], wide);
    return tn__common_given(call->out, product_end(in, tn_matmul(x, tn_transpose(weight, 0, 1)),
                                                   in[PRODUCT_X_SCALE], TN_INTS(-1), &ending));
}

TN__OP(linear_int8, .infer = linear_int8_infer, .decompose = linear_int8_decompose);

/* SPDX-License-Identifier: MIT
 *
 * Scales and zero points from the range of values: choose_qparams, and quantize_rows, which also
 * quantizes. */
#include "quant.h"

#include <float.h>

/* The range that the integers have, and how the range of values becomes a scale. */
struct choice {
    struct scale_range range;
    tn_dtype dtype;
    bool symmetric;
    float least; /* the smallest scale; 0: scales of 0 become 1 */
};

/* Sets the shape of x with the dimensions dims reduced, or with `block` divided into blocks. */
static tn_status chosen_shape(const tn_view *x, const tn_choose_qparams_options *o, tn_meta *out)
{
    bool reduced[TN_MAX_DIMS];
    tn_status status = tn__common_dims(o->dims, x->ndim, reduced);

    if (status != TN_OK)
        return status;
    if (o->block == INT64_MIN) {
        tn__common_reduced(x, reduced, o->keepdim, out);
        return TN_OK;
    }
    if (o->keepdim || o->dims.count != 1 || x->ndim == 0)
        return tn_fail(TN_ERR_VALUE,
                       "block: needs one dimension, got %lld in dims%s; expected one, without "
                       "keepdim",
                       (long long)(o->dims.count > 0 ? o->dims.count : 0),
                       o->keepdim ? " and keepdim" : "");
    out->ndim = x->ndim;
    for (int32_t d = 0; d < x->ndim; d++) {
        if (reduced[d] && (o->block < 1 || x->shape[d] % o->block != 0))
            return tn_fail(TN_ERR_VALUE,
                           "block: wrong size, got %lld; expected a divisor of %lld, the size of "
                           "dimension %d",
                           (long long)o->block, (long long)x->shape[d], (int)d);
        out->shape[d] = reduced[d] ? x->shape[d] / o->block : x->shape[d];
    }
    return TN_OK;
}

static tn_status choose_qparams_infer(tn_infer *infer)
{
    const tn_choose_qparams_options *o = infer->options;
    tn_status status = scale_dtype(o->dtype, QUANT_BYTES, "int8 or uint8");

    if (status == TN_OK)
        status = scale_range_check(o->dtype, o->qmin, o->qmax);
    if (status == TN_OK && !(o->eps >= 0 && o->eps <= (double)FLT_MAX))
        status = tn_fail(TN_ERR_VALUE, "eps: out of range, got %g; expected a number from 0 on",
                         o->eps);
    for (int32_t i = 0; i < 2 && status == TN_OK; i++) {
        infer->out[i].dtype = i == 0 ? TN_F32 : o->dtype;
        status = chosen_shape(infer->in[0], o, &infer->out[i]);
    }
    return status;
}

/* The scale for values from low to high, both with 0 between them. */
static tn_tensor *scale_for(tn_tensor *low, tn_tensor *high, const struct choice *c)
{
    double steps = (double)(c->range.max - c->range.min);
    tn_tensor *span = c->symmetric ? tn_maximum(tn_neg(low), high) : minus(high, low);
    tn_tensor *scale = divide(span, number(span, c->symmetric ? steps / 2 : steps));

    if (c->least > 0)
        return tn_clamp(scale, (double)c->least);
    return scale != NULL ? tn_masked_fill(scale, tn_eq(scale, number(scale, 0.0)), 1.0) : NULL;
}

/* The zero point of a symmetric range: 0; of unsigned integers their middle. */
static int64_t middle(const struct choice *c)
{
    if (c->dtype == TN_I8)
        return 0;
    return c->range.min == 0 && c->range.max == 255 ? 128 : (c->range.min + c->range.max) / 2;
}

static tn_tensor *zero_point_for(tn_tensor *low, tn_tensor *scale, const struct choice *c)
{
    tn_tensor *steps;

    if (scale == NULL)
        return NULL;
    if (c->symmetric)
        return tn_full(scale, tn_tensor_shape(scale), middle(c), c->dtype);
    steps = tn_neg(quantize_without_nan(tn_round(divide(low, scale))));
    steps = clamped(add_number(steps, (double)c->range.min), (double)c->range.min,
                    (double)c->range.max);
    return tn_cast(steps, c->dtype);
}

/* Scale and zero point of x, which has no NaN, over the dims. */
static tn_status choose(tn_tensor *x, tn_ints dims, bool keepdim, const struct choice *c,
                        tn_tensor **out)
{
    tn_tensor *low = tn_clamp(tn_amin(x, dims, keepdim), tn_scalar_none(), 0.0);
    tn_tensor *high = tn_clamp(tn_amax(x, dims, keepdim), 0.0);

    out[0] = scale_for(low, high, c);
    out[1] = zero_point_for(low, out[0], c);
    return out[0] != NULL && out[1] != NULL ? TN_OK : tn_error_last_code();
}

/* The same if nothing is known of the range. */
static tn_status choose_nothing(tn_tensor *x, tn_ints shape, const struct choice *c,
                                tn_tensor **out)
{
    int64_t zero = c->symmetric ? middle(c) : c->range.min > 0 ? c->range.min : 0;

    out[0] = tn_full(x, shape, 1.0, TN_F32);
    out[1] = tn_full(x, shape, zero < c->range.max ? zero : c->range.max, c->dtype);
    return out[0] != NULL && out[1] != NULL ? TN_OK : tn_error_last_code();
}

/* x in float32, with 0 for NaN: 0 is in every range. */
static tn_tensor *without_nan(tn_tensor *x)
{
    x = tn_cast(x, TN_F32);
    return x != NULL ? tn_masked_fill(x, tn_isnan(x), 0.0) : NULL;
}

static tn_status choose_qparams_decompose(const tn_decompose *call)
{
    const tn_choose_qparams_options *o = call->options;
    const struct choice c = { scale_range_of(o->dtype, o->qmin, o->qmax), o->dtype, o->symmetric,
                              (float)o->eps };
    tn_tensor *x = call->in[0];
    tn_ints shape = tn_tensor_shape(x);
    const tn_view view = { .ndim = (int32_t)shape.count, .shape = (int64_t *)shape.at };
    tn_meta meta = { .ndim = 0 };
    int64_t block = 2; /* the dimension of scale_blocks() */
    int32_t at = 0;

    if (chosen_shape(&view, o, &meta) != TN_OK)
        return tn_error_last_code();
    if (tn_tensor_numel(x) == 0)
        return choose_nothing(x, (tn_ints){ meta.shape, meta.ndim }, &c, call->out);
    x = without_nan(x);
    if (o->block == INT64_MIN)
        return choose(x, o->dims, o->keepdim, &c, call->out);
    if (tn__common_dim(o->dims.at[0], view.ndim, &at) != TN_OK)
        return tn_error_last_code();
    if (choose(scale_blocks(x, at, o->block), (tn_ints){ &block, 1 }, false, &c, call->out) !=
        TN_OK)
        return tn_error_last_code();
    for (int32_t i = 0; i < 2; i++)
        call->out[i] = tn_reshape(call->out[i], (tn_ints){ meta.shape, meta.ndim });
    return call->out[0] != NULL && call->out[1] != NULL ? TN_OK : tn_error_last_code();
}

TN__OP(choose_qparams, .infer = choose_qparams_infer, .decompose = choose_qparams_decompose);

/* ---- quantize_rows ---- */

static tn_status quantize_rows_infer(tn_infer *infer)
{
    const tn_quantize_rows_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_status status = scale_dtype(o->dtype, QUANT_BYTES, "int8 or uint8");

    if (status == TN_OK && o->symmetric && o->dtype != TN_I8)
        status = tn_fail(TN_ERR_VALUE, "dtype: not symmetric, got %s; expected int8",
                         tn_dtype_name(o->dtype));
    if (status == TN_OK && x->ndim < 1)
        status = tn_fail(TN_ERR_VALUE, "x: no rows, got no dimensions; expected at least one");
    if (status != TN_OK)
        return status;
    for (int32_t i = 0; i < 3; i++) {
        tn__common_plain(&infer->out[i], i == 1 ? TN_F32 : o->dtype, tn__common_shape(x));
        if (i > 0)
            infer->out[i].shape[x->ndim - 1] = 1;
    }
    return TN_OK;
}

static tn_status quantize_rows_decompose(const tn_decompose *call)
{
    const tn_quantize_rows_options *o = call->options;
    const struct choice c = { scale_range_of(o->dtype, o->symmetric ? -127 : INT64_MIN, INT64_MIN),
                              o->dtype, o->symmetric, 0 };
    tn_tensor *x = tn_cast(call->in[0], TN_F32);
    int64_t shape[TN_MAX_DIMS], last = -1;
    int32_t ndim = tn_tensor_ndim(call->in[0]);
    tn_status status;

    for (int32_t d = 0; d < ndim; d++)
        shape[d] = d == ndim - 1 ? 1 : tn_tensor_size(call->in[0], d);
    if (tn_tensor_numel(call->in[0]) == 0)
        status = choose_nothing(call->in[0], (tn_ints){ shape, ndim }, &c, call->out + 1);
    else
        status = choose(without_nan(x), (tn_ints){ &last, 1 }, true, &c, call->out + 1);
    if (status != TN_OK)
        return status;
    return tn__common_given(call->out,
                            quantize_to(x, call->out[1], call->out[2], c.range, o->dtype));
}

TN__OP(quantize_rows, .infer = quantize_rows_infer, .decompose = quantize_rows_decompose);

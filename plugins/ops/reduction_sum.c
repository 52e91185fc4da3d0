/* SPDX-License-Identifier: MIT
 *
 * Reductions over some dimensions or over all. */
#include "common.h"

static tn_status given(tn_tensor **out, tn_tensor *result)
{
    out[0] = result;
    return result != NULL ? TN_OK : tn_error_last()->code;
}

static tn_status reduce_infer(tn_infer *infer, tn_ints dims, bool keepdim, tn_dtype dtype)
{
    bool reduced[TN_MAX_DIMS];
    tn_status status = tn__common_dims(dims, infer->in[0]->ndim, reduced);

    if (status != TN_OK)
        return status;
    infer->out[0].dtype = dtype;
    tn__common_reduced(infer->in[0], reduced, keepdim, &infer->out[0]);
    return TN_OK;
}

static tn_status sum_infer(tn_infer *infer)
{
    const tn_sum_options *o = infer->options;
    tn_dtype dtype = tn__common_asked(infer, o->dtype);

    if (o->dtype == TN_DTYPE_AUTO && ((TN_MASK_INT | TN_BIT(TN_BOOL)) & TN_BIT(dtype)))
        dtype = TN_I64;
    return reduce_infer(infer, o->dims, o->keepdim, dtype);
}

static tn_status sum_derive(tn_derive *d)
{
    const tn_sum_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);

    d->gin[0] = tn_expand(tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim), shape);
    return TN_OK;
}

static tn_status mean_infer(tn_infer *infer)
{
    const tn_mean_options *o = infer->options;
    tn_dtype dtype = tn__common_asked(infer, o->dtype);

    if (!((TN_MASK_FLOAT | TN_MASK_COMPLEX) & TN_BIT(dtype)))
        return tn_fail(TN_ERR_RUNTIME,
                       "the mean of %s tensors is no whole number: the dtype option says what the "
                       "result is, a float or complex type",
                       tn_dtype_name(dtype));
    return reduce_infer(infer, o->dims, o->keepdim, dtype);
}

/* The sum over n; narrow types add up and divide in float32, where no sum overflows. */
static tn_status mean_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                tn_tensor **out)
{
    const tn_mean_options *o = options;
    tn_sum_options sum = TN_SUM_OPTIONS;
    bool reduced[TN_MAX_DIMS];
    tn_tensor *x = in[0];
    tn_dtype dtype = tn_tensor_dtype(x);
    tn_ints shape = tn_tensor_shape(x);
    double n = 1;
    tn_status status = tn__common_dims(o->dims, (int32_t)shape.count, reduced);

    (void)n_in;
    if (status != TN_OK)
        return status;
    for (int64_t d = 0; d < shape.count; d++)
        n *= reduced[d] ? (double)shape.at[d] : 1;
    sum.dims = o->dims;
    sum.keepdim = o->keepdim;
    if (dtype == TN_F16 || dtype == TN_BF16)
        return given(out, tn_cast(tn_mul_scalar(tn_sum(tn_cast(x, TN_F32), &sum), 1.0 / n), dtype));
    return given(out, tn_mul_scalar(tn_sum(x, &sum), 1.0 / n));
}

static tn_status mean_derive(tn_derive *d)
{
    const tn_mean_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    bool reduced[TN_MAX_DIMS];
    double n = 1;
    tn_status status = tn__common_dims(o->dims, (int32_t)shape.count, reduced);

    for (int64_t k = 0; status == TN_OK && k < shape.count; k++)
        n *= reduced[k] ? (double)shape.at[k] : 1;
    if (status == TN_OK)
        d->gin[0] = tn_expand(
            tn__common_unreduced(tn_mul_scalar(d->gout[0], 1.0 / n), shape, o->dims, o->keepdim),
            shape);
    return status;
}

static tn_status amax_infer(tn_infer *infer)
{
    const tn_amax_options *o = infer->options;

    return tn__common_extreme(infer, o->dims, o->keepdim, tn_view_dtype(infer->in[0]));
}

/* Evenly among the largest. */
static tn_status amax_derive(tn_derive *d)
{
    const tn_amax_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *y = tn__common_unreduced(d->out[0], shape, o->dims, o->keepdim);
    tn_tensor *gy = tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim);
    tn_tensor *mask = tn_eq(d->in[0], y);
    tn_sum_options sum = TN_SUM_OPTIONS;

    if (mask == NULL || gy == NULL)
        return tn_error_last()->code;
    mask = tn_cast(mask, tn_tensor_dtype(gy));
    sum.dims = o->dims;
    sum.keepdim = true;
    d->gin[0] = tn_mul(mask, tn_div(gy, tn_sum(mask, &sum), NULL));
    return TN_OK;
}

static tn_status argmax_infer(tn_infer *infer)
{
    const tn_argmax_options *o = infer->options;
    tn_ints dims = { &o->dim, o->dim == INT64_MIN ? 0 : 1 };

    return tn__common_extreme(infer, dims, o->keepdim, TN_I64);
}

static tn_status sum_to_infer(tn_infer *infer)
{
    const tn_sum_to_options *o = infer->options;
    const tn_view *x = infer->in[0];
    int64_t lead = x->ndim - o->shape.count;
    char text[TN__TEXT], text_x[TN__TEXT];

    for (int64_t d = 0; d < o->shape.count; d++)
        if (lead < 0 || (o->shape.at[d] != x->shape[d + lead] && o->shape.at[d] != 1))
            return tn_fail(TN_ERR_RUNTIME,
                           "shape %s does not broadcast to %s, so that cannot be summed back to it",
                           tn__common_text(text, o->shape),
                           tn__common_text(text_x, tn__common_shape(x)));
    tn__common_plain(&infer->out[0], tn_view_dtype(x), o->shape);
    return TN_OK;
}

static tn_status sum_to_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                  tn_tensor **out)
{
    const tn_sum_to_options *o = options;
    tn_ints shape = tn_tensor_shape(in[0]);
    int64_t dims[TN_MAX_DIMS], lead = shape.count - o->shape.count;
    tn_sum_options sum = TN_SUM_OPTIONS;
    tn_tensor *y = in[0];
    tn_dtype dtype = tn_tensor_dtype(in[0]);

    (void)n_in;
    sum.keepdim = true;
    sum.dims.at = dims;
    for (int64_t d = 0; d < shape.count; d++)
        if (d < lead || o->shape.at[d - lead] != shape.at[d])
            dims[sum.dims.count++] = d;
    if (sum.dims.count > 0)
        y = tn_sum(y, &sum);
    if (y != NULL && tn_tensor_dtype(y) != dtype) /* whole numbers add up in int64 */
        y = tn_cast(y, dtype);
    return given(out, lead > 0 ? tn_reshape(y, o->shape) : y);
}

const tn_op_def tn__op_sum = { TN_HEAD(tn_op_def), TN_SCHEMA_SUM, .infer = sum_infer,
                               .derive = sum_derive, TN__PARTS(sum) };
const tn_op_def tn__op_mean = { TN_HEAD(tn_op_def), TN_SCHEMA_MEAN, .infer = mean_infer,
                                .derive = mean_derive, .decompose = mean_decompose };
const tn_op_def tn__op_amax = { TN_HEAD(tn_op_def), TN_SCHEMA_AMAX, .infer = amax_infer,
                                .derive = amax_derive };
const tn_op_def tn__op_argmax = { TN_HEAD(tn_op_def), TN_SCHEMA_ARGMAX, .infer = argmax_infer };
const tn_op_def tn__op_sum_to = { TN_HEAD(tn_op_def), TN_SCHEMA_SUM_TO, .infer = sum_to_infer,
                                  .decompose = sum_to_decompose };

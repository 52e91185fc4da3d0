/* SPDX-License-Identifier: MIT
 *
 * Sums, means, products, all/any and logsumexp over some or all dimensions. */
#include "reduction.h"

static tn_status sum_infer(tn_infer *infer)
{
    const tn_sum_options *o = infer->options;
    tn_dtype dtype = tn__common_asked(infer, o->dtype);

    if (o->dtype == TN_DTYPE_AUTO && ((TN_MASK_INT | TN_BIT(TN_BOOL)) & TN_BIT(dtype)))
        dtype = TN_I64;
    return tn__reduce_infer(infer, o->dims, o->keepdim, dtype);
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
        return tn_fail(
            TN_ERR_RUNTIME,
            "x or dtype: wrong dtype, got %s; expected a float or complex dtype, in x or in the "
            "option dtype",
            tn_dtype_name(dtype));
    return tn__reduce_infer(infer, o->dims, o->keepdim, dtype);
}

/* The sum divided by n. For float16 and bfloat16 computed in float32, so that the sum does not
 * overflow. */
static tn_status mean_decompose(const tn_decompose *call)
{
    const tn_mean_options *o = call->options;
    bool reduced[TN_MAX_DIMS];
    tn_tensor *x = call->in[0];
    tn_dtype dtype = tn_tensor_dtype(x);
    tn_ints shape = tn_tensor_shape(x);
    double n = 1;
    tn_status status = tn__common_dims(o->dims, (int32_t)shape.count, reduced);
    if (status != TN_OK)
        return status;
    for (int64_t d = 0; d < shape.count; d++)
        n *= reduced[d] ? (double)shape.at[d] : 1;
    if (dtype == TN_F16 || dtype == TN_BF16)
        return tn__common_given(
            call->out,
            tn_cast(tn_mul_scalar(tn_sum(tn_cast(x, TN_F32), o->dims, o->keepdim), 1.0 / n),
                    dtype));
    return tn__common_given(call->out, tn_mul_scalar(tn_sum(x, o->dims, o->keepdim), 1.0 / n));
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

static tn_status sum_to_infer(tn_infer *infer)
{
    const tn_sum_to_options *o = infer->options;
    const tn_view *x = infer->in[0];
    int64_t lead = x->ndim - o->shape.count;
    char text[TN__TEXT], text_x[TN__TEXT];

    for (int64_t d = 0; d < o->shape.count; d++)
        if (lead < 0 || (o->shape.at[d] != x->shape[d + lead] && o->shape.at[d] != 1))
            return tn_fail(TN_ERR_RUNTIME,
                           "shape: not possible, got %s; expected a shape that broadcasts to x %s",
                           tn__common_text(text, o->shape),
                           tn__common_text(text_x, tn__common_shape(x)));
    tn__common_plain(&infer->out[0], tn_view_dtype(x), o->shape);
    return TN_OK;
}

static tn_status sum_to_decompose(const tn_decompose *call)
{
    const tn_sum_to_options *o = call->options;
    tn_ints shape = tn_tensor_shape(call->in[0]);
    int64_t dims[TN_MAX_DIMS], lead = shape.count - o->shape.count, count = 0;
    tn_tensor *y = call->in[0];
    tn_dtype dtype = tn_tensor_dtype(call->in[0]);

    for (int64_t d = 0; d < shape.count; d++)
        if (d < lead || o->shape.at[d - lead] != shape.at[d])
            dims[count++] = d;
    if (count > 0)
        y = tn_sum(y, ((tn_ints){ dims, count }), true);
    if (y != NULL && tn_tensor_dtype(y) != dtype) /* sums of integers are int64 */
        y = tn_cast(y, dtype);
    return tn__common_given(call->out, lead > 0 ? tn_reshape(y, o->shape) : y);
}

/* ---- products ---- */

static tn_status prod_infer(tn_infer *infer)
{
    const tn_prod_options *o = infer->options;
    tn_dtype dtype = tn__common_asked(infer, o->dtype);

    if (o->dtype == TN_DTYPE_AUTO && ((TN_MASK_INT | TN_BIT(TN_BOOL)) & TN_BIT(dtype)))
        dtype = TN_I64;
    return tn__reduce_infer(infer, o->dims, o->keepdim, dtype);
}

/* For each element along the last dimension of x [..., n]: the product of all other elements,
 * computed as the product of those before it times the product of those after it. */
static tn_tensor *others(tn_tensor *x, tn_ints shape)
{
    int64_t n = shape.at[shape.count - 1], one[TN_MAX_DIMS], last[1] = { -1 };
    tn_tensor *ones, *side[2] = { NULL, NULL }, *before, *behind;
    tn_ints along = { last, 1 };

    if (n == 0)
        return tn_copy(x);
    memcpy(one, shape.at, (size_t)shape.count * sizeof *one);
    one[shape.count - 1] = 1;
    ones = tn_tensor_full((tn_ints){ one, shape.count }, 1.0, tn_tensor_dtype(x),
                          tn_tensor_device(x));
    side[0] = ones;
    side[1] = tn_narrow(x, -1, 0, n - 1);
    before = tn_cumprod(tn_cat(side, 2, -1), -1);
    side[1] = tn_narrow(tn_flip(x, along), -1, 0, n - 1);
    behind = tn_flip(tn_cumprod(tn_cat(side, 2, -1), -1), along);
    return tn_mul(before, behind);
}

/* Like others(), for any dims: moves them to the end, merges them into one dimension, and moves the
 * result back. The result has a correct derivative even if x has zeros. */
static tn_tensor *others_of(tn_tensor *x, tn_ints shape, tn_ints dims)
{
    int64_t order[TN_MAX_DIMS], back[TN_MAX_DIMS], moved[TN_MAX_DIMS], rows[TN_MAX_DIMS + 1];
    int64_t count = 0, kept;
    bool reduced[TN_MAX_DIMS];

    if (shape.count == 0)
        return tn_fill(x, 1.0);
    if (tn__common_dims(dims, (int32_t)shape.count, reduced) != TN_OK)
        return NULL;
    for (int64_t d = 0; d < shape.count; d++)
        if (!reduced[d])
            order[count++] = d;
    kept = count;
    for (int64_t d = 0; d < shape.count; d++)
        if (reduced[d])
            order[count++] = d;
    rows[kept] = 1;
    for (int64_t d = 0; d < shape.count; d++) {
        moved[d] = shape.at[order[d]];
        back[order[d]] = d;
        if (d < kept)
            rows[d] = moved[d];
        else
            rows[kept] = tn__common_times(rows[kept], moved[d]);
    }
    x = tn_reshape(tn_permute(x, (tn_ints){ order, count }), (tn_ints){ rows, kept + 1 });
    x = tn_reshape(others(x, (tn_ints){ rows, kept + 1 }), (tn_ints){ moved, count });
    return tn_permute(x, (tn_ints){ back, count });
}

/* The gradient of an element is gy times the product of the other elements. Without zeros, this is
 * the product of all elements divided by the element. If there is exactly one zero, only the zero's
 * own gradient is not 0. */
static tn_status prod_derive(tn_derive *d)
{
    const tn_prod_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *x = tn__common_conj(d->in[0]), *zero = tn__scalar_number(x, 0.0),
              *none = tn_eq(x, zero);
    tn_tensor *zeros, *product, *share;

    if (shape.count == 0) { /* a single element: there are no other factors */
        d->gin[0] = d->gout[0];
        return TN_OK;
    }
    /* The gradient may be differentiated again, so it must not divide by elements that may be 0. */
    if (tn_grad_enabled()) {
        d->gin[0] = tn_mul(others_of(x, shape, o->dims),
                           tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim));
        return TN_OK;
    }
    zeros = sum_of(none, o->dims, true);
    product = tn_prod(tn_where(none, tn__scalar_number(x, 1.0), x), o->dims, true);
    if (product == NULL)
        return tn_error_last_code();
    share = tn_mul(product, tn_reshape(d->gout[0], tn_tensor_shape(product)));
    d->gin[0] = tn_where(
        none, tn_where(tn_eq(zeros, tn__scalar_number(zeros, 1)), share, zero),
        divide(tn_where(tn_eq(zeros, tn__scalar_number(zeros, 0)), share, zero), x));
    return TN_OK;
}

/* ---- all, any ---- */

/* For uint8 input the result of all and any is uint8, as in PyTorch; else it is bool. */
static tn_dtype truth_of(tn_dtype dtype)
{
    return dtype == TN_U8 ? TN_U8 : TN_BOOL;
}

static tn_tensor *truth_like(tn_tensor *truth, tn_tensor *x)
{
    return tn_tensor_dtype(x) == TN_U8 ? tn_cast(truth, TN_U8) : truth;
}

/* Returns whether `dims` is an empty list, which differs from None: each element is tested on its
 * own, as in PyTorch. */
static bool alone(tn_ints dims)
{
    return dims.count == 0;
}

static tn_status truth_infer(tn_infer *infer, tn_ints dims, bool keepdim)
{
    const tn_view *x = infer->in[0];
    tn_dtype dtype = truth_of(tn_view_dtype(x));

    if (tn__is_complex(tn_view_dtype(x)))
        infer->dtype = TN_BOOL;
    if (!alone(dims))
        return tn__reduce_infer(infer, dims, keepdim, dtype);
    tn__common_plain(&infer->out[0], dtype, tn__common_shape(x));
    return TN_OK;
}

static tn_status all_infer(tn_infer *infer)
{
    const tn_all_options *o = infer->options;

    return truth_infer(infer, o->dims, o->keepdim);
}

static tn_status any_infer(tn_infer *infer)
{
    const tn_any_options *o = infer->options;

    return truth_infer(infer, o->dims, o->keepdim);
}

static tn_status all_decompose(const tn_decompose *call)
{
    const tn_all_options *o = call->options;
    tn_tensor *wrong = tn_logical_not(call->in[0]);
    if (alone(o->dims))
        return tn__common_given(call->out, truth_like(tn_logical_not(wrong), call->in[0]));
    wrong = sum_of(wrong, o->dims, o->keepdim);
    wrong = tn_eq(wrong, tn__scalar_number(wrong, 0));
    return tn__common_given(call->out, truth_like(wrong, call->in[0]));
}

static tn_status any_decompose(const tn_decompose *call)
{
    const tn_any_options *o = call->options;
    tn_tensor *right;
    if (alone(o->dims))
        return tn__common_given(
            call->out, truth_like(tn_logical_not(tn_logical_not(call->in[0])), call->in[0]));
    right = sum_of(tn_cast(call->in[0], TN_BOOL), o->dims, o->keepdim);
    right = tn_ne(right, tn__scalar_number(right, 0));
    return tn__common_given(call->out, truth_like(right, call->in[0]));
}

/* ---- logsumexp ---- */

static tn_status logsumexp_infer(tn_infer *infer)
{
    const tn_logsumexp_options *o = infer->options;
    tn_dtype dtype = tn_view_dtype(infer->in[0]);

    if ((TN_MASK_INT | TN_BIT(TN_BOOL)) & TN_BIT(dtype))
        dtype = infer->dtype = tn_default_dtype();
    return tn__reduce_infer(infer, o->dims, o->keepdim, dtype);
}

/* Subtracts the maximum first, so that exp does not overflow. An infinite maximum is not
 * subtracted, because infinity minus infinity is NaN. */
static tn_status logsumexp_decompose(const tn_decompose *call)
{
    const tn_logsumexp_options *o = call->options;
    tn_tensor *x = call->in[0], *top, *y;
    bool narrow = tn__common_narrow(x);
    if (narrow)
        x = tn_cast(x, TN_F32);
    if (tn_tensor_numel(call->in[0]) == 0)
        return tn__common_given(call->out,
                                like(tn_ln(sum_of(tn_exp(x), o->dims, o->keepdim)), call->in[0]));
    top = tn_amax(tn_real(x), o->dims, true);
    top = or_zero(tn_logical_not(tn_isfinite(top)), top);
    y = tn_add(tn_ln(sum_of(tn_exp(tn_sub(x, top)), o->dims, true)), top);
    if (!o->keepdim) {
        if (o->dims.count <= 0)
            y = tn_reshape(y, (tn_ints){ NULL, 0 });
        else if (tn_tensor_ndim(call->in[0]) > 0)
            y = tn_squeeze(y, o->dims);
    }
    return tn__common_given(call->out, narrow ? like(y, call->in[0]) : y);
}

static tn_status logsumexp_derive(tn_derive *d)
{
    const tn_logsumexp_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *y = tn__common_unreduced(d->out[0], shape, o->dims, o->keepdim);
    tn_tensor *gy = tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim);

    d->gin[0] = tn__common_chain(gy, tn_exp(tn_sub(d->in[0], y)));
    return TN_OK;
}

TN__OP(sum, .infer = sum_infer, .derive = sum_derive, TN__PARTS(sum));
TN__OP(mean, .infer = mean_infer, .derive = mean_derive, .decompose = mean_decompose);
TN__OP(sum_to, .infer = sum_to_infer, .decompose = sum_to_decompose);

TN__OP(prod, .infer = prod_infer, .derive = prod_derive, TN__PARTS(prod));
TN__OP(all, .infer = all_infer, .decompose = all_decompose);
TN__OP(any, .infer = any_infer, .decompose = any_decompose);
TN__OP(logsumexp, .infer = logsumexp_infer, .derive = logsumexp_derive,
       .decompose = logsumexp_decompose);

/* SPDX-License-Identifier: MIT
 *
 * Reductions that leave elements out or count them: nansum, nanmean, count_nonzero; and aminmax. */
#include "reduction.h"

/* ---- aminmax ---- */

static tn_ints one_dim(const int64_t *dim)
{
    return (tn_ints){ dim, *dim == INT64_MIN ? 0 : 1 };
}

static tn_status aminmax_infer(tn_infer *infer)
{
    const tn_aminmax_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_status status = tn__common_extreme(infer, one_dim(&o->dim), o->keepdim, tn_view_dtype(x));

    infer->out[1] = infer->out[0];
    return status;
}

static tn_status aminmax_decompose(const tn_decompose *call)
{
    const tn_aminmax_options *o = call->options;

    call->out[0] = tn_amin(call->in[0], one_dim(&o->dim), o->keepdim);
    call->out[1] = tn_amax(call->in[0], one_dim(&o->dim), o->keepdim);
    return call->out[0] != NULL && call->out[1] != NULL ? TN_OK : tn_error_last_code();
}

/* ---- count_nonzero ---- */

static tn_status count_nonzero_infer(tn_infer *infer)
{
    const tn_count_nonzero_options *o = infer->options;

    return tn__reduce_infer(infer, o->dims, false, TN_I64);
}

static tn_status count_nonzero_decompose(const tn_decompose *call)
{
    const tn_count_nonzero_options *o = call->options;
    tn_tensor *x = call->in[0];
    if (tn_tensor_dtype(x) != TN_BOOL)
        x = tn_ne(x, tn__scalar_number(x, 0));
    return tn__common_given(call->out, sum_of(x, o->dims, false));
}

/* ---- nansum, nanmean ---- */

/* Returns x with 0 in place of NaN. */
static tn_tensor *without_nan(tn_tensor *x)
{
    bool may = x != NULL && (TN_MASK_FLOAT & TN_BIT(tn_tensor_dtype(x))) != 0;

    return may ? tn_masked_fill(x, tn_isnan(x), 0.0) : x;
}

static tn_status nansum_infer(tn_infer *infer)
{
    const tn_nansum_options *o = infer->options;
    tn_dtype dtype = o->dtype == TN_DTYPE_AUTO ? tn_view_dtype(infer->in[0]) : o->dtype;

    if (o->dtype == TN_DTYPE_AUTO && ((TN_MASK_INT | TN_BIT(TN_BOOL)) & TN_BIT(dtype)))
        dtype = TN_I64;
    return tn__reduce_infer(infer, o->dims, o->keepdim, dtype);
}

static tn_status nansum_decompose(const tn_decompose *call)
{
    const tn_nansum_options *o = call->options;
    return tn__common_given(call->out,
                            tn_sum(without_nan(call->in[0]), o->dims, o->keepdim, o->dtype));
}

static tn_status nanmean_infer(tn_infer *infer)
{
    const tn_nanmean_options *o = infer->options;
    tn_dtype dtype = tn__common_asked(infer, o->dtype);

    if (!(TN_MASK_FLOAT & TN_BIT(dtype)))
        return tn_fail(
            TN_ERR_RUNTIME,
            "x or dtype: wrong dtype, got %s; expected a float dtype, in x or in the option dtype",
            tn_dtype_name(dtype));
    return tn__reduce_infer(infer, o->dims, o->keepdim, dtype);
}

/* Computes float16 and bfloat16 in float32, so that the sum does not overflow. */
static tn_status nanmean_decompose(const tn_decompose *call)
{
    const tn_nanmean_options *o = call->options;
    tn_tensor *x = call->in[0], *count = tn_logical_not(tn_isnan(x)), *sum;
    tn_dtype dtype = tn_tensor_dtype(x);
    if (tn__common_narrow(x))
        x = tn_cast(x, TN_F32);
    sum = sum_of(without_nan(x), o->dims, o->keepdim);
    count = like(sum_of(count, o->dims, o->keepdim), sum);
    sum = divide(sum, count);
    if (sum != NULL && tn_tensor_dtype(sum) != dtype)
        sum = tn_cast(sum, dtype);
    return tn__common_given(call->out, sum);
}

TN__OP(aminmax, .infer = aminmax_infer, .decompose = aminmax_decompose);
TN__OP(count_nonzero, .infer = count_nonzero_infer, .decompose = count_nonzero_decompose);
TN__OP(nansum, .infer = nansum_infer, .decompose = nansum_decompose);
TN__OP(nanmean, .infer = nanmean_infer, .decompose = nanmean_decompose);

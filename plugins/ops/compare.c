/* SPDX-License-Identifier: MIT
 *
 * Comparisons, logic, and selection by a mask. Results of comparisons are bool and have no
 * derivative. */
#include "common.h"

#include <float.h>

#define DECOMPOSE(name, result)                                                                    \
    static tn_status name##_decompose(const tn_decompose *call)                                    \
    {                                                                                              \
        tn_tensor *const *in = call->in;                                                           \
                                                                                                   \
        return tn__common_given(call->out, result);                                                \
    }

static tn_status compare_infer(tn_infer *infer)
{
    tn_status status = tn__broadcast_two(infer);

    infer->out[0].dtype = TN_BOOL;
    return status;
}

/* Both inputs are cast to bool, so that different dtypes can be combined. */
static tn_status logical_infer(tn_infer *infer)
{
    infer->dtype = TN_BOOL;
    return infer->n_in > 1 ? tn__broadcast_two(infer) : tn__common_unary(infer);
}

static tn_status question_infer(tn_infer *infer)
{
    tn__common_like(infer, 0, 0, TN_BOOL);
    return TN_OK;
}

DECOMPOSE(ne, tn_bitwise_not(tn_eq(in[0], in[1])))
DECOMPOSE(gt, tn_lt(in[1], in[0]))
DECOMPOSE(ge, tn_le(in[1], in[0]))
DECOMPOSE(logical_and, tn_bitwise_and(in[0], in[1]))
DECOMPOSE(logical_or, tn_bitwise_or(in[0], in[1]))
DECOMPOSE(logical_xor, tn_bitwise_xor(in[0], in[1]))
DECOMPOSE(logical_not, tn_bitwise_not(in[0]))

static bool is_float(tn_tensor *x)
{
    return (TN_MASK_FLOAT & TN_BIT(tn_tensor_dtype(x))) != 0;
}

static bool is_complex(tn_tensor *x)
{
    return tn__is_complex(tn_tensor_dtype(x));
}

DECOMPOSE(isnan, tn_ne(in[0], in[0]))
/* A complex number is infinite if one of its parts is, and finite if both parts are. */
DECOMPOSE(isinf, is_complex(in[0])
                     ? tn_bitwise_or(tn_isinf(tn_real(in[0])), tn_isinf(tn_imag(in[0])))
                 : is_float(in[0]) ? tn_eq(tn_abs(in[0]), tn__scalar_number(in[0], INFINITY))
                                   : tn_ne(in[0], in[0]))
DECOMPOSE(isfinite, is_complex(in[0])
                        ? tn_bitwise_and(tn_isfinite(tn_real(in[0])), tn_isfinite(tn_imag(in[0])))
                    : is_float(in[0]) ? tn_lt(tn_abs(in[0]), tn__scalar_number(in[0], INFINITY))
                                      : tn_eq(in[0], in[0]))

/* ---- selection by a mask ---- */

static tn_status where_infer(tn_infer *infer)
{
    if (infer->dtype == TN_DTYPE_AUTO)
        infer->dtype = tn_view_dtype(infer->in[1]);
    return tn__broadcast_in_order(infer);
}

static tn_status where_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *zero = tn__scalar_number(gy, 0.0);

    if (tn__needs(d, 1))
        d->gin[1] = tn_where(d->in[0], gy, zero);
    if (tn__needs(d, 2))
        d->gin[2] = tn_where(d->in[0], zero, gy);
    return TN_OK;
}

static tn_status masked_fill_infer(tn_infer *infer)
{
    tn_scalar value = ((const tn_masked_fill_options *)infer->options)->value;
    tn_dtype dtype = tn_view_dtype(infer->in[0]);
    tn_status status;

    status = tn__scalar_fits(dtype, value, "value");
    if (status != TN_OK)
        return status;
    if (tn__is_int(dtype) && value.kind == TN_SCALAR_FLOAT && value.as.f != floor(value.as.f))
        return tn_fail(TN_ERR_RUNTIME,
                       "value: not an integer, got %g for %s tensors; expected an integer",
                       value.as.f, tn_dtype_name(dtype));
    status = tn__broadcast_in_order(infer);
    infer->out[0].dtype = dtype;
    return status;
}

static tn_status masked_fill_decompose(const tn_decompose *call)
{
    tn_scalar value = ((const tn_masked_fill_options *)call->options)->value;
    return tn__common_given(
        call->out, tn_where(call->in[1], tn__scalar_number(call->in[0], value), call->in[0]));
}

static tn_status masked_fill_derive(tn_derive *d)
{
    d->gin[0] = tn_where(d->in[1], tn__scalar_number(d->gout[0], 0.0), d->gout[0]);
    return TN_OK;
}

static tn_status masked_fill_tensor_infer(tn_infer *infer)
{
    tn_status status;

    if (infer->in[2]->ndim != 0)
        return tn_fail(TN_ERR_RUNTIME, "value: wrong number of dimensions, got %d; expected 0",
                       (int)infer->in[2]->ndim);
    status = tn__broadcast_all(infer);
    infer->out[0].dtype = tn_view_dtype(infer->in[0]);
    return status;
}

static tn_status masked_fill_tensor_decompose(const tn_decompose *call)
{
    tn_tensor *x = call->in[0], *value = tn_cast(call->in[2], tn_tensor_dtype(x));

    return tn__common_given(call->out, tn_where(call->in[1], value, x));
}

/* gx is gy where the mask is false, gvalue the sum of gy where it is true. */
static tn_status masked_fill_tensor_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *zero = tn__scalar_number(gy, 0.0);

    if (tn__needs(d, 0))
        d->gin[0] = tn_where(d->in[1], zero, gy);
    if (tn__needs(d, 2))
        d->gin[2] = tn_cast(tn_sum(tn_where(d->in[1], gy, zero)), d->in_meta[2].dtype);
    return TN_OK;
}

/* ---- closeness ---- */

static tn_status isclose_infer(tn_infer *infer)
{
    const tn_isclose_options *o = infer->options;
    tn_status status = tn__common_same_dtype(infer->in[0], "a", infer->in[1], "b");

    if (status != TN_OK)
        return status;
    if (!(o->rtol >= 0))
        return tn_fail(TN_ERR_RUNTIME, "rtol: out of range, got %g; expected 0 or more", o->rtol);
    if (!(o->atol >= 0))
        return tn_fail(TN_ERR_RUNTIME, "atol: out of range, got %g; expected 0 or more", o->atol);
    return compare_infer(infer);
}

/* Integers are compared exactly first, because they are converted to floats for the tolerance. */
static tn_tensor *is_close(tn_tensor *a, tn_tensor *b, const tn_isclose_options *o)
{
    tn_tensor *close = tn_eq(a, b), *error, *allowed;
    bool real = a == NULL || is_float(a) || is_complex(a);

    if (o->equal_nan && real)
        close = tn_bitwise_or(close, tn_bitwise_and(tn_isnan(a), tn_isnan(b)));
    if (o->rtol == 0 && o->atol == 0)
        return close;
    a = real ? a : tn_cast(a, tn_default_dtype());
    b = real ? b : tn_cast(b, tn_default_dtype());
    error = tn_abs(tn_sub(a, b));
    allowed = tn_add_scalar(tn_abs(tn_mul_scalar(b, o->rtol)), o->atol);
    return tn_bitwise_or(close, tn_bitwise_and(tn_isfinite(error), tn_le(error, allowed)));
}

static tn_status isclose_decompose(const tn_decompose *call)
{
    return tn__common_given(call->out, is_close(call->in[0], call->in[1], call->options));
}

/* ---- NaN and infinities replaced ---- */

static double largest(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F16: return 65504.0;
    case TN_BF16: return 0x1.fep127;
    case TN_F64: return DBL_MAX;
    default: return FLT_MAX;
    }
}

static tn_status nan_to_num_decompose(const tn_decompose *call)
{
    const tn_nan_to_num_options *o = call->options;
    tn_tensor *x = call->in[0], *y = x;
    double most;
    if (!is_float(x))
        return tn__common_given(call->out, tn_copy(x));
    most = largest(tn_tensor_dtype(x));
    y = tn_where(tn_eq(x, tn__scalar_number(x, INFINITY)),
                 tn__scalar_number(x, tn__given_number(o->posinf) ? o->posinf : most), y);
    y = tn_where(tn_eq(x, tn__scalar_number(x, -INFINITY)),
                 tn__scalar_number(x, tn__given_number(o->neginf) ? o->neginf : -most), y);
    return tn__common_given(
        call->out,
        tn_where(tn_ne(x, x), tn__scalar_number(x, tn__given_number(o->nan) ? o->nan : 0.0), y));
}

static tn_status nan_to_num_derive(tn_derive *d)
{
    d->gin[0] = tn_where(tn_isfinite(d->in[0]), d->gout[0], tn__scalar_number(d->gout[0], 0.0));
    return TN_OK;
}

TN__OP(eq, .infer = compare_infer, TN__PARTS(eq));
TN__OP(lt, .infer = compare_infer);
TN__OP(le, .infer = compare_infer);
TN__OP(ne, .infer = compare_infer, .decompose = ne_decompose);
TN__OP(gt, .infer = compare_infer, .decompose = gt_decompose);
TN__OP(ge, .infer = compare_infer, .decompose = ge_decompose);
TN__OP(bitwise_and, .infer = tn__broadcast_two);
TN__OP(bitwise_or, .infer = tn__broadcast_two);
TN__OP(bitwise_xor, .infer = tn__broadcast_two);
TN__OP(bitwise_not, .infer = tn__common_unary);
TN__OP(logical_and, .infer = logical_infer, .decompose = logical_and_decompose);
TN__OP(logical_or, .infer = logical_infer, .decompose = logical_or_decompose);
TN__OP(logical_xor, .infer = logical_infer, .decompose = logical_xor_decompose);
TN__OP(logical_not, .infer = logical_infer, .decompose = logical_not_decompose);
TN__OP(isnan, .infer = question_infer, .decompose = isnan_decompose);
TN__OP(isinf, .infer = question_infer, .decompose = isinf_decompose);
TN__OP(isfinite, .infer = question_infer, .decompose = isfinite_decompose);
TN__OP(where, .infer = where_infer, .derive = where_derive, TN__PARTS(where));
TN__OP(masked_fill, .infer = masked_fill_infer, .derive = masked_fill_derive,
       .decompose = masked_fill_decompose);
TN__OP(masked_fill_tensor, .infer = masked_fill_tensor_infer, .derive = masked_fill_tensor_derive,
       .decompose = masked_fill_tensor_decompose);
TN__OP(isclose, .infer = isclose_infer, .decompose = isclose_decompose);
TN__OP(nan_to_num, .infer = tn__common_unary, .derive = nan_to_num_derive,
       .decompose = nan_to_num_decompose);

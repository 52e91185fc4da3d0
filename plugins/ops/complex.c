/* SPDX-License-Identifier: MIT
 *
 * Complex numbers from parts, their parts, and conjugates. As in PyTorch, the gradient of a complex
 * number z = a + bi is the gradient of a plus i times the gradient of b. Therefore derivatives
 * multiply by the conjugate of the slope. */
#include "formula.h"

/* ---- from parts ---- */

static tn_status complex_infer(tn_infer *infer)
{
    tn_dtype dtype = tn_view_dtype(infer->in[0]), im = tn_view_dtype(infer->in[1]);
    tn_status status;

    if (im != dtype)
        return tn_fail(
            TN_ERR_TYPE,
            "re or im: wrong dtype, got %s and %s; expected both float32, or both float64",
            tn_dtype_name(dtype), tn_dtype_name(im));
    status = tn__broadcast_two(infer);
    infer->out[0].dtype = dtype == TN_F64 ? TN_C128 : TN_C64;
    return status;
}

static tn_status complex_derive(tn_derive *d)
{
    if (tn__needs(d, 0))
        d->gin[0] = tn_real(d->gout[0]);
    if (tn__needs(d, 1))
        d->gin[1] = tn_imag(d->gout[0]);
    return TN_OK;
}

/* ---- views of parts ---- */

/* The real or imaginary part as a view: each complex number is two numbers of half the size. */
static tn_status part_infer(tn_infer *infer, int which)
{
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    int64_t each = tn__is_complex(tn_view_dtype(x)) ? 2 : 1;

    meta->dtype = tn__common_part(tn_view_dtype(x));
    meta->ndim = x->ndim;
    meta->flags = TN_META_STRIDED;
    meta->offset = infer->in0_offset * each + which;
    for (int32_t i = 0; i < x->ndim; i++) {
        meta->shape[i] = x->shape[i];
        meta->strides[i] = tn__common_times(x->strides[i], each);
    }
    return TN_OK;
}

static tn_status real_infer(tn_infer *infer)
{
    return part_infer(infer, 0);
}

static tn_status imag_infer(tn_infer *infer)
{
    return part_infer(infer, 1);
}

static tn_status view_as_real_infer(tn_infer *infer)
{
    tn_meta *meta = &infer->out[0];
    int32_t ndim = infer->in[0]->ndim;

    part_infer(infer, 0);
    if (ndim < TN_MAX_DIMS) {
        meta->shape[ndim] = 2;
        meta->strides[ndim] = 1;
    }
    meta->ndim = ndim + 1;
    return TN_OK;
}

static tn_status view_as_complex_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    int32_t last = x->ndim - 1;
    char text[TN__TEXT];
    bool even = infer->in0_offset % 2 == 0;

    if (last < 0 || x->shape[last] != 2)
        return tn_fail(TN_ERR_RUNTIME,
                       "x: Tensor must have a last dimension of size 2, got shape %s",
                       tn__common_text(text, tn__common_shape(x)));
    meta->dtype = tn_view_dtype(x) == TN_F64 ? TN_C128 : TN_C64;
    meta->ndim = last;
    meta->flags = TN_META_STRIDED;
    meta->offset = infer->in0_offset / 2;
    for (int32_t i = 0; i < last; i++) {
        even = even && (x->shape[i] <= 1 || x->strides[i] % 2 == 0);
        meta->shape[i] = x->shape[i];
        meta->strides[i] = x->strides[i] / 2;
    }
    if (x->strides[last] != 1 || !even)
        return tn_fail(TN_ERR_RUNTIME,
                       "x: wrong layout, got strides %s and offset %lld; expected stride 1 in the "
                       "last dimension, and other strides and an offset that are divisible by 2 "
                       "(or call tn_complex, which copies)",
                       tn__common_text(text, (tn_ints){ x->strides, x->ndim }),
                       (long long)infer->in0_offset);
    return TN_OK;
}

static tn_status view_as_complex_derive(tn_derive *d)
{
    d->gin[0] = tn_view_as_real(d->gout[0]);
    return TN_OK;
}

static tn_status real_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0];

    d->gin[0] = tn__is_complex(d->in_meta[0].dtype) ? tn_complex(gy, number(gy, 0.0)) : gy;
    return TN_OK;
}

static tn_status imag_derive(tn_derive *d)
{
    d->gin[0] = tn_complex(number(d->gout[0], 0.0), d->gout[0]);
    return TN_OK;
}

static tn_status view_as_real_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0];

    d->gin[0] = tn_complex(tn_select(gy, -1, 0), tn_select(gy, -1, 1));
    return TN_OK;
}

/* ---- conjugate and angle ---- */

static tn_status conj_derive(tn_derive *d)
{
    d->gin[0] = tn__common_conj(d->gout[0]);
    return TN_OK;
}

static tn_status conj_decompose(const tn_decompose *call)
{
    tn_tensor *x = call->in[0];
    if (!tn__is_complex(tn_tensor_dtype(x)))
        return tn__common_given(call->out, x);
    return tn__common_given(call->out, tn_complex(tn_real(x), tn_neg(tn_imag(x))));
}

static tn_status angle_infer(tn_infer *infer)
{
    tn__common_like(infer, 0, 0, tn__common_part(infer->dtype));
    return TN_OK;
}

#define PI 3.14159265358979323846

static tn_status angle_decompose(const tn_decompose *call)
{
    tn_tensor *x = call->in[0], *turned;
    if (tn__is_complex(tn_tensor_dtype(x)))
        return tn__common_given(call->out, tn_atan2(tn_imag(x), tn_real(x)));
    turned = tn_where(tn_lt(x, number(x, 0.0)), tn__scalar_number(x, PI), number(x, 0.0));
    return tn__common_given(call->out, tn_where(tn_ne(x, x), x, turned));
}

/* The gradient is gy (-b + a i) / |x|^2 for x = a + bi, and 0 at x = 0. The angle of real numbers
 * is piecewise constant, so that its gradient is 0. */
static tn_status angle_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *x = d->in[0], *re, *im, *size;

    if (!tn__is_complex(d->in_meta[0].dtype)) {
        d->gin[0] = tn_fill(gy, 0.0);
        return TN_OK;
    }
    re = tn_real(x);
    im = tn_imag(x);
    size = tn_add(tn_mul(re, re), tn_mul(im, im));
    gy = tn_where(tn_eq(size, number(size, 0.0)), number(gy, 0.0), tn_div(gy, size));
    d->gin[0] = tn_complex(tn_neg(tn_mul(gy, im)), tn_mul(gy, re));
    return TN_OK;
}

TN__OP(complex, .infer = complex_infer, .derive = complex_derive);
TN__OP(real, .infer = real_infer, .derive = real_derive);
TN__OP(imag, .infer = imag_infer, .derive = imag_derive);
TN__OP(view_as_complex, .infer = view_as_complex_infer, .derive = view_as_complex_derive);
TN__OP(view_as_real, .infer = view_as_real_infer, .derive = view_as_real_derive);
TN__OP(conj, .infer = tn__common_unary, .derive = conj_derive, .decompose = conj_decompose);
TN__OP(angle, .infer = angle_infer, .derive = angle_derive, .decompose = angle_decompose);

/* ---- sgn ---- */

static tn_status sgn_decompose(const tn_decompose *call)
{
    tn_tensor *x = call->in[0], *size;
    if (!tn__is_complex(tn_tensor_dtype(x)))
        return tn__common_given(call->out, tn_sign(x));
    size = tn_abs(x);
    return tn__common_given(
        call->out, tn_where(tn_eq(size, number(size, 0.0)), number(x, 0.0), tn_div(x, size)));
}

/* The part of gy perpendicular to y, divided by |x|; 0 at x = 0 */
static tn_status sgn_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *y = d->out[0], *size, *along;

    if (!tn__is_complex(d->in_meta[0].dtype)) {
        d->gin[0] = tn_fill(gy, 0.0);
        return TN_OK;
    }
    size = tn_abs(d->in[0]);
    along = tn_mul(y, tn_real(tn_mul(tn_conj(y), gy)));
    d->gin[0] = tn_where(tn_eq(size, number(size, 0.0)), number(gy, 0.0),
                         tn_div(tn_sub(gy, along), size));
    return TN_OK;
}

TN__OP(sgn, .infer = tn__common_unary, .derive = sgn_derive, .decompose = sgn_decompose);

/* SPDX-License-Identifier: MIT
 *
 * fake_quantize: the values of quantized numbers in float, for training. */
#include "quant.h"

static tn_status fake_quantize_infer(tn_infer *infer)
{
    const tn_fake_quantize_options *o = infer->options;
    tn_status status = TN_OK;

    if (o->qmin < INT32_MIN || o->qmax > INT32_MAX || o->qmin >= o->qmax)
        status = tn_fail(TN_ERR_VALUE,
                         "qmin or qmax: out of range, got %lld and %lld; expected -2^31 <= qmin < "
                         "qmax < 2^31",
                         (long long)o->qmin, (long long)o->qmax);
    if (status == TN_OK)
        status = scale_fits(infer->in[0], infer->in[1], infer->in[2], o->dim, o->block);
    if (status == TN_OK)
        tn__common_like(infer, 0, 0, tn_view_dtype(infer->in[0]));
    return status;
}

/* What both the value and the derivative need, in float32, or float64 for x of float64. */
struct steps {
    tn_tensor *scale, *zero; /* that broadcast to x; zero can be TN_NONE */
    tn_tensor *quotient;     /* x / scale */
    tn_tensor *steps;        /* the same, rounded, plus zero */
};

static struct steps steps_of(tn_tensor *const *in, const tn_fake_quantize_options *o)
{
    struct steps s = { NULL, TN_NONE, NULL, NULL };
    tn_dtype dtype;

    if (in[0] == NULL || in[1] == NULL)
        return s;
    dtype = tn_tensor_dtype(in[0]) == TN_F64 ? TN_F64 : TN_F32;
    s.scale = tn_cast(scale_spread(in[1], in[0], o->dim, o->block), dtype);
    s.quotient = divide(tn_cast(in[0], dtype), s.scale);
    s.steps = tn_round(s.quotient);
    if (in[2] != TN_NONE) {
        s.zero = tn_cast(scale_spread(in[2], in[0], o->dim, o->block), dtype);
        s.steps = plus(s.steps, s.zero);
    }
    return s;
}

static tn_status fake_quantize_decompose(const tn_decompose *call)
{
    const tn_fake_quantize_options *o = call->options;
    struct steps s = steps_of(call->in, o);
    tn_tensor *y = clamped(s.steps, (double)o->qmin, (double)o->qmax);

    if (s.zero != TN_NONE)
        y = minus(y, s.zero);
    y = quantize_without_nan(tn_mul(y, s.scale));
    return tn__common_given(call->out, tn_cast(y, tn_tensor_dtype(call->in[0])));
}

/* The gradient of a scale for each element of x: by how much y moves with it. */
static tn_tensor *slope(const struct steps *s, const tn_fake_quantize_options *o)
{
    tn_tensor *low = tn_lt(s->steps, number(s->steps, (double)o->qmin));
    tn_tensor *high = is_above(s->steps, (double)o->qmax);
    tn_tensor *inside = minus(tn_round(s->quotient), s->quotient);
    tn_tensor *bound = clamped(s->steps, (double)o->qmin, (double)o->qmax);

    if (s->zero != TN_NONE)
        bound = minus(bound, s->zero);
    return quantize_without_nan(tn_where(tn_logical_or(low, high), bound, inside));
}

static tn_status fake_quantize_derive(tn_derive *d)
{
    const tn_fake_quantize_options *o = d->options;
    tn_tensor *in[3] = { d->in[0], d->in[1], quant_saved(d, 2) };
    struct steps s = steps_of(in, o);
    tn_tensor *gy = d->gout[0], *kept;

    if (tn__needs(d, 0)) {
        kept = tn_logical_and(is_at_least(s.steps, (double)o->qmin),
                              is_at_most(s.steps, (double)o->qmax));
        d->gin[0] = kept != NULL ? tn_masked_fill(gy, tn_logical_not(kept), 0.0) : NULL;
    }
    if (tn__needs(d, 1))
        d->gin[1] = scale_gather(
            tn_mul(tn_cast(gy, s.scale != NULL ? tn_tensor_dtype(s.scale) : TN_F32), slope(&s, o)),
            tn__common_in_shape(d, 1), o->dim, o->block);
    return TN_OK;
}

TN__OP(fake_quantize, .infer = fake_quantize_infer, .derive = fake_quantize_derive,
       .decompose = fake_quantize_decompose);

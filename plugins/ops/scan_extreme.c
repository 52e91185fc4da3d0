/* SPDX-License-Identifier: MIT
 *
 * Cumulative maximum and minimum with their indices, and logcumsumexp. The decompositions combine
 * elements at distance 1, 2, 4 ..., so that n elements take log2(n) steps on any device. */
#include <float.h>

#include "formula.h"

/* ---- cummax, cummin ---- */

static tn_status running_infer(tn_infer *infer, int64_t dim)
{
    const tn_view *x = infer->in[0];
    int32_t at;

    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    tn__common_plain(&infer->out[1], TN_I64, tn__common_shape(x));
    return tn__common_dim(dim, x->ndim, &at);
}

static tn_status cummax_infer(tn_infer *infer)
{
    return running_infer(infer, ((const tn_cummax_options *)infer->options)->dim);
}

static tn_status cummin_infer(tn_infer *infer)
{
    return running_infer(infer, ((const tn_cummin_options *)infer->options)->dim);
}

/* Returns x with the elements from index `step` on along dim replaced by `rest`. */
static tn_tensor *with_rest(tn_tensor *x, tn_tensor *rest, int64_t dim, int64_t step)
{
    tn_tensor *parts[2] = { tn_narrow(x, dim, 0, step), rest };

    return tn_cat(parts, 2, dim);
}

static tn_status running(const tn_decompose *call, int64_t dim, bool largest)
{
    tn_tensor *x = call->in[0], *places;
    tn_ints shape = tn_tensor_shape(x);
    int64_t n = shape.count > 0 ? tn_tensor_size(x, dim) : 1;
    bool floating = (TN_MASK_FLOAT & TN_BIT(tn_tensor_dtype(x))) != 0;
    int32_t at;
    tn_status status = tn__common_dim(dim, (int32_t)shape.count, &at);
    if (status != TN_OK)
        return status;
    places = tn__common_spread(tn_arange(x, 0, n, 1, TN_I64), shape, at);
    for (int64_t step = 1; step < n && x != NULL && places != NULL; step *= 2) {
        int64_t rest = n - step;
        tn_tensor *a = tn_narrow(x, at, 0, rest), *b = tn_narrow(x, at, step, rest);
        tn_tensor *later = largest ? tn_ge(b, a) : tn_le(b, a);
        if (floating)
            later = tn_logical_or(later, tn_isnan(b));
        x = with_rest(x, tn_where(later, b, a), at, step);
        places = with_rest(
            places,
            tn_where(later, tn_narrow(places, at, step, rest), tn_narrow(places, at, 0, rest)), at,
            step);
    }
    call->out[0] = n <= 1 ? tn_copy(x) : x;
    call->out[1] = n <= 1 ? tn_copy(places) : places;
    return call->out[0] != NULL && call->out[1] != NULL ? TN_OK : tn_error_last_code();
}

static tn_status cummax_decompose(const tn_decompose *call)
{
    return running(call, ((const tn_cummax_options *)call->options)->dim, true);
}

static tn_status cummin_decompose(const tn_decompose *call)
{
    return running(call, ((const tn_cummin_options *)call->options)->dim, false);
}

static tn_status running_derive(tn_derive *d, int64_t dim)
{
    if (d->gout[0] != TN_NONE)
        d->gin[0] = tn__common_scattered(d, d->out[1], d->gout[0], dim);
    return TN_OK;
}

static tn_status cummax_derive(tn_derive *d)
{
    return running_derive(d, ((const tn_cummax_options *)d->options)->dim);
}

static tn_status cummin_derive(tn_derive *d)
{
    return running_derive(d, ((const tn_cummin_options *)d->options)->dim);
}

/* ---- logcumsumexp ---- */

static tn_status logcumsumexp_infer(tn_infer *infer)
{
    const tn_logcumsumexp_options *o = infer->options;
    const tn_view *x = infer->in[0];
    int32_t at;

    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    return tn__common_dim(o->dim, x->ndim, &at);
}

/* ln(e^a + e^b). An infinite maximum is the result; infinity minus infinity would be NaN. */
static tn_tensor *log_add_exp(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *most = tn_maximum(a, b);
    tn_tensor *sum = plus(most, tn_log1p(tn_exp(tn_neg(tn_abs(minus(a, b))))));

    return tn_where(tn_isinf(most), most, sum);
}

static tn_status logcumsumexp_decompose(const tn_decompose *call)
{
    const tn_logcumsumexp_options *o = call->options;
    tn_tensor *x = call->in[0];
    tn_dtype dtype = tn_tensor_dtype(x);
    int64_t n = tn_tensor_ndim(x) > 0 ? tn_tensor_size(x, o->dim) : 1;
    if (tn__common_narrow(x))
        x = tn_cast(x, TN_F32);
    for (int64_t step = 1; step < n && x != NULL; step = tn__common_times(step, 2))
        x = with_rest(
            x, log_add_exp(tn_narrow(x, o->dim, 0, n - step), tn_narrow(x, o->dim, step, n - step)),
            o->dim, step);
    if (x != NULL && (tn_tensor_dtype(x) != dtype || n <= 1))
        x = tn_cast(x, dtype);
    return tn__common_given(call->out, n <= 1 ? tn_copy(x) : x);
}

/* Returns ln of the sum of e^v over the elements from i to the last. */
static tn_tensor *from_the_end(tn_tensor *v, int64_t dim)
{
    tn_ints dims = { &dim, 1 };

    return tn_flip(tn_logcumsumexp(tn_flip(v, dims), dim), dims);
}

/* gx[j] for the positive elements of gy: the sum of gy[i] * e^(x[j] - y[i]) over i from j on, as
 * e^(x[j] + ln of the sum of e^(ln gy[i] - y[i])), which cannot overflow. `lowest` replaces ln 0,
 * so that no difference of infinities gives NaN. */
static tn_tensor *positive_share(tn_tensor *gy, tn_tensor *x, tn_tensor *y, int64_t dim)
{
    tn_tensor *above = is_above(gy, 0), *logs;
    double lowest = gy != NULL && tn_tensor_dtype(gy) == TN_F64 ? -DBL_MAX : -(double)FLT_MAX;

    logs = tn_ln(tn_where(above, gy, number(gy, 1.0)));
    logs = tn_where(above, logs, number(logs, lowest));
    return tn_exp(plus(from_the_end(minus(logs, y), dim), x));
}

static tn_status logcumsumexp_derive(tn_derive *d)
{
    const tn_logcumsumexp_options *o = d->options;
    tn_tensor *gy = d->gout[0], *x = d->in[0], *y = d->out[0];
    tn_dtype dtype = d->in_meta[0].dtype;
    bool narrow = dtype == TN_F16 || dtype == TN_BF16;

    if (d->in_meta[0].ndim == 0) {
        d->gin[0] = gy;
        return TN_OK;
    }
    if (narrow) {
        gy = tn_cast(gy, TN_F32);
        x = tn_cast(x, TN_F32);
        y = tn_cast(y, TN_F32);
    }
    /* Where y is -infinity, so is x up to there, and e^x is 0 whatever y is. */
    y = tn_where(tn_eq(y, number(y, -(double)INFINITY)), number(y, 0.0), y);
    gy = minus(positive_share(gy, x, y, o->dim), positive_share(tn_neg(gy), x, y, o->dim));
    d->gin[0] = narrow ? tn_cast(gy, dtype) : gy;
    return TN_OK;
}

TN__OP(cummax, .infer = cummax_infer, .derive = cummax_derive, .decompose = cummax_decompose);
TN__OP(cummin, .infer = cummin_infer, .derive = cummin_derive, .decompose = cummin_decompose);
TN__OP(logcumsumexp, .infer = logcumsumexp_infer, .derive = logcumsumexp_derive,
       .decompose = logcumsumexp_decompose);

/* SPDX-License-Identifier: MIT
 *
 * New tensors: constants, ranges, identity matrices, one-hot rows; also triangles of a matrix. */
#include "common.h"

static tn_status fill_infer(tn_infer *infer)
{
    const tn_fill_options *o = infer->options;
    tn_status status = tn__scalar_fits(tn_view_dtype(infer->in[0]), o->value, "value");

    return status == TN_OK ? tn__common_unary(infer) : status;
}

/* Computes the exact number of integers from start to end in steps of `step`; end is not
 * included. */
static tn_status whole_count(const tn_arange_options *o, int64_t *out)
{
    __extension__ typedef __int128 wide;
    wide start = tn_scalar_as_int(o->start), end = tn_scalar_as_int(o->end),
         step = tn_scalar_as_int(o->step), way = end - start, count;

    if (step == 0)
        return tn_fail(TN_ERR_RUNTIME, "step: out of range, got 0; expected a step other than 0");
    count = (way + step - (step > 0 ? 1 : -1)) / step;
    if (way != 0 && (way < 0) != (step < 0))
        /* PyTorch's wording */
        return tn_fail(TN_ERR_RUNTIME,
                       "upper bound and lower bound inconsistent with step sign: from %lld to %lld "
                       "by %lld",
                       (long long)start, (long long)end, (long long)step);
    if (count > (wide)1 << 62)
        return tn_fail(TN_ERR_RUNTIME, "result: too many elements, got %g; expected at most 2^62",
                       (double)count);
    *out = (int64_t)count;
    return TN_OK;
}

static tn_status real_count(const tn_arange_options *o, int64_t *out)
{
    double start = tn_scalar_as_float(o->start), end = tn_scalar_as_float(o->end),
           step = tn_scalar_as_float(o->step), count = ceil((end - start) / step);

    if (!isfinite(start) || !isfinite(end) || !isfinite(step) || step == 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "start, end or step: out of range, got %g, %g and %g; expected finite "
                       "numbers, and a step other than 0",
                       start, end, step);
    if (count < 0)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_RUNTIME,
                       "upper bound and lower bound inconsistent with step sign: from %g to %g by "
                       "%g",
                       start, end, step);
    if (count > 0x1p62)
        return tn_fail(TN_ERR_RUNTIME, "result: too many elements, got %g; expected at most 2^62",
                       count);
    *out = (int64_t)count;
    return TN_OK;
}

static tn_status arange_infer(tn_infer *infer)
{
    const tn_arange_options *o = infer->options;
    const tn_scalar *numbers[3] = { &o->start, &o->end, &o->step };
    static const char *const names[3] = { "start", "end", "step" };
    bool whole = true, integers = true; /* by value, by kind */
    char text[TN__SCALAR_TEXT];
    tn_status status = TN_OK;

    for (int i = 0; i < 3 && status == TN_OK; i++) {
        status = tn__scalar_check(*numbers[i], names[i]);
        if (status == TN_OK && tn__scalar_imaginary(*numbers[i]))
            status = tn_fail(TN_ERR_RUNTIME, "%s: not real, got %s; expected a real number",
                             names[i], tn__scalar_text(text, *numbers[i]));
        else if (status == TN_OK && numbers[i]->kind == TN_SCALAR_UINT)
            status = tn_fail(
                TN_ERR_RUNTIME,
                "%s: out of range, got the integer %s; expected at most 2^63 - 1, or a float",
                names[i], tn__scalar_text(text, *numbers[i]));
        integers = integers && numbers[i]->kind != TN_SCALAR_FLOAT &&
                   numbers[i]->kind != TN_SCALAR_COMPLEX;
        whole = whole && tn__scalar_whole(*numbers[i]);
    }
    if (status == TN_OK)
        status = (whole ? whole_count : real_count)(o, &infer->out[0].shape[0]);
    infer->out[0].dtype = o->dtype != TN_DTYPE_AUTO ? o->dtype
                          : integers                ? TN_I64
                                                    : tn_default_dtype();
    infer->out[0].ndim = 1;
    return status;
}

/* The dtype of a new tensor: the given one, else that of `like`, else the default dtype. */
static tn_dtype dtype_like(tn_dtype given, const tn_view *like)
{
    return given != TN_DTYPE_AUTO ? given : like != NULL ? tn_view_dtype(like) : tn_default_dtype();
}

static tn_dtype infer_dtype(const tn_infer *infer, tn_dtype given)
{
    return dtype_like(given, infer->n_in > 0 ? infer->in[0] : NULL);
}

static tn_dtype call_dtype(const tn_decompose *call, tn_dtype given)
{
    tn_tensor *like = call->n_in > 0 ? call->in[0] : NULL;

    return dtype_like(given, like != NULL && like != TN_NONE ? tn_tensor_view(like) : NULL);
}

static tn_tensor *range_of(tn_tensor *like, int64_t n)
{
    return tn_arange(like, 0, n);
}

static tn_status linspace_infer(tn_infer *infer)
{
    const tn_linspace_options *o = infer->options;
    tn_dtype dtype = infer_dtype(infer, o->dtype);

    if (o->steps < 0)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "number of steps must be non-negative, not %lld",
                       (long long)o->steps);
    if (!(TN_MASK_FLOAT & TN_BIT(dtype)))
        return tn_fail(
            TN_ERR_TYPE, "%s: wrong dtype, got %s; expected a float dtype",
            o->dtype == TN_DTYPE_AUTO && infer->n_in > 0 && infer->in[0] != NULL ? "like" : "dtype",
            tn_dtype_name(dtype));
    infer->out[0].dtype = dtype;
    infer->out[0].ndim = 1;
    infer->out[0].shape[0] = o->steps;
    return TN_OK;
}

/* Computes the second half backwards from `end`, so that the last element is exactly `end`. */
static tn_status linspace_decompose(const tn_decompose *call)
{
    const tn_linspace_options *o = call->options;
    tn_dtype dtype = call_dtype(call, o->dtype);
    tn_dtype inner = dtype == TN_F64 ? TN_F64 : TN_F32;
    double step = o->steps > 1 ? (o->end - o->start) / (double)(o->steps - 1) : 0;
    tn_tensor *at = range_of(call->in[0], o->steps), *up, *down, *left;
    if (at == NULL)
        return tn_error_last_code();
    left = tn_add_scalar(tn_neg(at), o->steps - 1);
    up = tn_add_scalar(tn_mul_scalar(tn_cast(at, inner), step), o->start);
    down = tn_add_scalar(tn_mul_scalar(tn_cast(left, inner), -step), o->end);
    if (o->steps == 1)
        return tn__common_given(call->out, tn_cast(up, dtype));
    return tn__common_given(
        call->out,
        tn_cast(tn_where(tn_lt(at, tn__scalar_number(at, o->steps / 2)), up, down), dtype));
}

static tn_status eye_infer(tn_infer *infer)
{
    const tn_eye_options *o = infer->options;
    int64_t m = o->m == INT64_MIN ? o->n : o->m;

    if (o->n < 0 || m < 0)
        return tn_fail(
            TN_ERR_RUNTIME,
            /* PyTorch's wording */ "n and m must be greater or equal to 0, not %lld and %lld",
            (long long)o->n, (long long)m);
    infer->out[0].dtype = infer_dtype(infer, o->dtype);
    infer->out[0].ndim = 2;
    infer->out[0].shape[0] = o->n;
    infer->out[0].shape[1] = m;
    return TN_OK;
}

static tn_status eye_decompose(const tn_decompose *call)
{
    const tn_eye_options *o = call->options;
    int64_t m = o->m == INT64_MIN ? o->n : o->m;
    tn_dtype dtype = call_dtype(call, o->dtype);
    return tn__common_given(call->out, tn_cast(tn_eq(tn_unsqueeze(range_of(call->in[0], o->n), 1),
                                                     range_of(call->in[0], m)),
                                               dtype));
}

static tn_status one_hot_infer(tn_infer *infer)
{
    const tn_one_hot_options *o = infer->options;
    const tn_view *x = infer->in[0];

    infer->out[0].dtype = TN_I64;
    infer->out[0].ndim = -1;
    if (o->classes < -1 || o->classes == 0)
        return tn_fail(
            TN_ERR_RUNTIME,
            "classes: out of range, got %lld; expected at least 1, or -1 for the largest value "
            "plus 1",
            (long long)o->classes);
    if (o->classes > INT32_MAX)
        return tn_fail(TN_ERR_VALUE, "classes: out of range, got %lld; expected at most %lld",
                       (long long)o->classes, (long long)INT32_MAX);
    if (o->classes == -1 && tn__common_count(tn__common_shape(x)) == 0)
        return tn_fail(
            TN_ERR_RUNTIME,
            "Can not infer total number of classes from empty tensor: set the option classes");
    return TN_OK;
}

static tn_status one_hot_decompose(const tn_decompose *call)
{
    int64_t classes = ((const tn_one_hot_options *)call->options)->classes, least = 0, most = -1;
    if (tn_tensor_numel(call->in[0]) > 0) {
        tn_tensor *low = tn_amin(call->in[0]), *high = tn_amax(call->in[0]);
        tn_scalar first, last;

        if (tn_tensor_scalar(low, &first) != TN_OK || tn_tensor_scalar(high, &last) != TN_OK)
            return tn_error_last_code();
        least = tn_scalar_as_int(first);
        most = tn_scalar_as_int(last);
    }
    if (least < 0)
        return tn_fail(
            TN_ERR_RUNTIME,
            /* PyTorch's wording */ "one_hot: Class values must be non-negative, not %lld",
            (long long)least);
    if (classes < 0)
        classes = tn__common_plus(most, 1);
    if (most >= classes)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */
                       "one_hot: Class values must be smaller than classes: %lld, of %lld classes",
                       (long long)most, (long long)classes);
    return tn__common_given(
        call->out,
        tn_cast(tn_eq(tn_unsqueeze(call->in[0], -1), range_of(call->in[0], classes)), TN_I64));
}

static tn_status triangle_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];

    if (x->ndim < 2)
        return tn_fail(
            TN_ERR_RUNTIME,
            /* PyTorch's wording */ "input tensor must have at least 2 dimensions, not %d",
            (int)x->ndim);
    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    return TN_OK;
}

/* Returns j - i for row i and column j of a matrix */
static tn_tensor *offsets(tn_tensor *x)
{
    return tn_sub(range_of(x, tn_tensor_size(x, -1)),
                  tn_unsqueeze(range_of(x, tn_tensor_size(x, -2)), 1));
}

static tn_status tril_decompose(const tn_decompose *call)
{
    int64_t diagonal = ((const tn_tril_options *)call->options)->diagonal;
    tn_tensor *at = offsets(call->in[0]);
    return tn__common_given(call->out, tn_where(tn_le(at, tn__scalar_number(at, diagonal)),
                                                call->in[0], tn__scalar_number(call->in[0], 0)));
}

static tn_status triu_decompose(const tn_decompose *call)
{
    int64_t diagonal = ((const tn_triu_options *)call->options)->diagonal;
    tn_tensor *at = offsets(call->in[0]);
    return tn__common_given(call->out, tn_where(tn_ge(at, tn__scalar_number(at, diagonal)),
                                                call->in[0], tn__scalar_number(call->in[0], 0)));
}

static tn_status tril_derive(tn_derive *d)
{
    const tn_tril_options *o = d->options;

    d->gin[0] = tn_tril(d->gout[0], o->diagonal);
    return TN_OK;
}

static tn_status triu_derive(tn_derive *d)
{
    const tn_triu_options *o = d->options;

    d->gin[0] = tn_triu(d->gout[0], o->diagonal);
    return TN_OK;
}

static tn_status full_infer(tn_infer *infer)
{
    const tn_full_options *o = infer->options;
    tn_dtype dtype = infer_dtype(infer, o->dtype);
    char text[TN__TEXT];

    if ((unsigned)dtype >= TN_DTYPE_COUNT)
        return tn_fail(TN_ERR_TYPE, "dtype: unknown, got %d; expected one of tn_dtype", (int)dtype);
    if (o->shape.count < 0 || o->shape.count > TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE,
                       "shape: wrong number of dimensions, got %lld; expected 0 to %d",
                       (long long)o->shape.count, TN_MAX_DIMS);
    for (int64_t d = 0; d < o->shape.count; d++)
        if (o->shape.at[d] < 0)
            return tn_fail(TN_ERR_RUNTIME,
                           "shape: negative size, got %lld in %s; expected 0 or more",
                           (long long)o->shape.at[d], tn__common_text(text, o->shape));
    tn__common_plain(&infer->out[0], dtype, o->shape);
    return tn__scalar_fits(dtype, o->value, "value");
}

static tn_status full_decompose(const tn_decompose *call)
{
    const tn_full_options *o = call->options;
    tn_dtype dtype = call_dtype(call, o->dtype);
    const tn_device *device = call->n_in > 0 && call->in[0] != NULL && call->in[0] != TN_NONE
                                  ? tn_tensor_device(call->in[0])
                                  : NULL;

    return tn__common_given(call->out, tn_tensor_full(o->shape, o->value, dtype, device));
}

TN__OP(fill, .infer = fill_infer);
TN__OP(arange, .infer = arange_infer);
TN__OP(linspace, .infer = linspace_infer, .decompose = linspace_decompose);
TN__OP(eye, .infer = eye_infer, .decompose = eye_decompose);
TN__OP(one_hot, .infer = one_hot_infer, .decompose = one_hot_decompose);
TN__OP(tril, .infer = triangle_infer, .derive = tril_derive, .decompose = tril_decompose);
TN__OP(triu, .infer = triangle_infer, .derive = triu_derive, .decompose = triu_decompose);
TN__OP(full, .infer = full_infer, .decompose = full_decompose);

/* SPDX-License-Identifier: MIT
 *
 * Reductions beside sum, mean and amax. Those that are no primitives are taken apart into them. */
#include "common.h"

static tn_status reduced_infer(tn_infer *infer, tn_ints dims, bool keepdim, tn_dtype dtype)
{
    bool reduced[TN_MAX_DIMS];
    tn_status status = tn__common_dims(dims, infer->in[0]->ndim, reduced);

    if (status != TN_OK)
        return status;
    infer->out[0].dtype = dtype;
    tn__common_reduced(infer->in[0], reduced, keepdim, &infer->out[0]);
    return TN_OK;
}

/* How many elements make one result. */
static double members(tn_ints shape, tn_ints dims)
{
    bool reduced[TN_MAX_DIMS];
    double n = 1;

    if (tn__common_dims(dims, (int32_t)shape.count, reduced) != TN_OK)
        return 0;
    for (int64_t d = 0; d < shape.count; d++)
        n *= reduced[d] ? (double)shape.at[d] : 1;
    return n;
}

static tn_tensor *sum_of(tn_tensor *x, tn_ints dims, bool keepdim)
{
    tn_sum_options o = TN_SUM_OPTIONS;

    o.dims = dims;
    o.keepdim = keepdim;
    return tn_sum(x, &o);
}

static tn_tensor *mean_of(tn_tensor *x, tn_ints dims, bool keepdim)
{
    tn_mean_options o = TN_MEAN_OPTIONS;

    o.dims = dims;
    o.keepdim = keepdim;
    return tn_mean(x, &o);
}

static tn_tensor *over(tn_tensor *a, tn_tensor *b)
{
    return tn_div(a, b, NULL);
}

static tn_tensor *or_zero(tn_tensor *unless, tn_tensor *x)
{
    return tn_where(unless, tn__common_number(x, 0.0), x);
}

static tn_tensor *like(tn_tensor *x, tn_tensor *other)
{
    return x == NULL || other == NULL ? NULL : tn_cast(x, tn_tensor_dtype(other));
}

/* ---- products ---- */

static tn_status prod_infer(tn_infer *infer)
{
    const tn_prod_options *o = infer->options;
    tn_dtype dtype = tn__common_asked(infer, o->dtype);

    if (o->dtype == TN_DTYPE_AUTO && ((TN_MASK_INT | TN_BIT(TN_BOOL)) & TN_BIT(dtype)))
        dtype = TN_I64;
    return reduced_infer(infer, o->dims, o->keepdim, dtype);
}

/* The product of all before an element and of all behind it, with x [..., n]. */
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
    before = tn_cumprod(tn_cat(side, 2, -1), -1, NULL);
    side[1] = tn_narrow(tn_flip(x, along), -1, 0, n - 1);
    behind = tn_flip(tn_cumprod(tn_cat(side, 2, -1), -1, NULL), along);
    return tn_mul(before, behind);
}

/* The same for any dims: they are moved behind the others, as one, and back. This way can be
 * differentiated again, also where there are zeros. */
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
            rows[kept] *= moved[d];
    }
    x = tn_reshape(tn_permute(x, (tn_ints){ order, count }), (tn_ints){ rows, kept + 1 });
    x = tn_reshape(others(x, (tn_ints){ rows, kept + 1 }), (tn_ints){ moved, count });
    return tn_permute(x, (tn_ints){ back, count });
}

/* The product of the others: without a zero by division; with one, only its own place has any. */
static tn_status prod_derive(tn_derive *d)
{
    const tn_prod_options *o = d->options;
    tn_prod_options kept = TN_PROD_OPTIONS;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *x = tn__common_conj(d->in[0]), *zero = tn__common_number(x, 0.0),
              *none = tn_eq(x, zero);
    tn_tensor *zeros, *product, *share;

    if (shape.count == 0) { /* the only one: there is nothing to divide by */
        d->gin[0] = d->gout[0];
        return TN_OK;
    }
    if (tn_grad_enabled()) { /* a second derivative may be wanted */
        d->gin[0] = tn_mul(others_of(x, shape, o->dims),
                           tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim));
        return TN_OK;
    }
    kept.dims = o->dims;
    kept.keepdim = true;
    zeros = sum_of(none, o->dims, true);
    product = tn_prod(tn_where(none, tn__common_number(x, 1.0), x), &kept);
    if (product == NULL)
        return tn_error_last()->code;
    share = tn_mul(product, tn_reshape(d->gout[0], tn_tensor_shape(product)));
    d->gin[0] = tn_where(none, tn_where(tn_eq(zeros, tn__common_number(zeros, 1)), share, zero),
                         over(tn_where(tn_eq(zeros, tn__common_number(zeros, 0)), share, zero), x));
    return TN_OK;
}

/* ---- extremes ---- */

static tn_status amin_infer(tn_infer *infer)
{
    const tn_amin_options *o = infer->options;

    return tn__common_extreme(infer, o->dims, o->keepdim, tn_view_dtype(infer->in[0]));
}

/* Evenly among the smallest. */
static tn_status amin_derive(tn_derive *d)
{
    const tn_amin_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *y = tn__common_unreduced(d->out[0], shape, o->dims, o->keepdim);
    tn_tensor *gy = tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim);
    tn_tensor *mask = like(tn_eq(d->in[0], y), gy);

    d->gin[0] = tn_mul(mask, over(gy, sum_of(mask, o->dims, true)));
    return TN_OK;
}

static tn_status argmin_infer(tn_infer *infer)
{
    const tn_argmin_options *o = infer->options;
    tn_ints dims = { &o->dim, o->dim == INT64_MIN ? 0 : 1 };

    return tn__common_extreme(infer, dims, o->keepdim, TN_I64);
}

static tn_status pick_infer(tn_infer *infer, int64_t dim, bool keepdim)
{
    tn_status status = tn__common_extreme(infer, (tn_ints){ &dim, 1 }, keepdim,
                                          tn_view_dtype(infer->in[0]));

    infer->out[1] = infer->out[0];
    infer->out[1].dtype = TN_I64;
    return status;
}

static tn_status max_dim_infer(tn_infer *infer)
{
    const tn_max_dim_options *o = infer->options;

    return pick_infer(infer, o->dim, o->keepdim);
}

static tn_status min_dim_infer(tn_infer *infer)
{
    const tn_min_dim_options *o = infer->options;

    return pick_infer(infer, o->dim, o->keepdim);
}

/* The elements at `places`, which kept dimension `dim`. */
static tn_status picked(tn_tensor *x, tn_tensor *places, int64_t dim, bool keepdim, tn_tensor **out)
{
    tn_squeeze_options squeeze = TN_SQUEEZE_OPTIONS;

    squeeze.dims = (tn_ints){ &dim, 1 };
    out[0] = tn_gather(x, places, dim);
    out[1] = places;
    if (!keepdim && out[0] != NULL && tn_tensor_ndim(x) > 0) {
        out[0] = tn_squeeze(out[0], &squeeze);
        out[1] = tn_squeeze(out[1], &squeeze);
    }
    return out[0] != NULL && out[1] != NULL ? TN_OK : tn_error_last()->code;
}

static tn_status max_dim_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                   tn_tensor **out)
{
    const tn_max_dim_options *o = options;
    tn_argmax_options place = TN_ARGMAX_OPTIONS;

    (void)n_in;
    place.dim = o->dim;
    place.keepdim = true;
    return picked(in[0], tn_argmax(in[0], &place), o->dim, o->keepdim, out);
}

static tn_status min_dim_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                   tn_tensor **out)
{
    const tn_min_dim_options *o = options;
    tn_argmin_options place = TN_ARGMIN_OPTIONS;

    (void)n_in;
    place.dim = o->dim;
    place.keepdim = true;
    return picked(in[0], tn_argmin(in[0], &place), o->dim, o->keepdim, out);
}

/* ---- spread ---- */

static double spread_factor(tn_ints shape, tn_ints dims, double correction)
{
    double n = members(shape, dims) - correction;

    return 1.0 / (n > 0 ? n : 0);
}

/* |x|^2, real */
static tn_tensor *square_size(tn_tensor *x)
{
    tn_tensor *re, *im;

    if (x == NULL || !tn__is_complex(tn_tensor_dtype(x)))
        return tn_mul(x, x);
    re = tn_real(x);
    im = tn_imag(x);
    return tn_add(tn_mul(re, re), tn_mul(im, im), NULL);
}

/* Two passes: the mean, then the squares of what differs from it. Narrow types in float32. */
static tn_tensor *variance(tn_tensor *x, tn_ints dims, double correction, bool keepdim)
{
    tn_tensor *apart = tn_sub(x, mean_of(x, dims, true), NULL);

    if (apart == NULL)
        return NULL;
    return tn_mul_scalar(sum_of(square_size(apart), dims, keepdim),
                         spread_factor(tn_tensor_shape(x), dims, correction));
}

static tn_status var_infer(tn_infer *infer)
{
    const tn_var_options *o = infer->options;

    return reduced_infer(infer, o->dims, o->keepdim, tn__common_part(tn_view_dtype(infer->in[0])));
}

static tn_status var_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                               tn_tensor **out)
{
    const tn_var_options *o = options;
    bool narrow = tn__common_narrow(in[0]);
    tn_tensor *y = variance(narrow ? tn_cast(in[0], TN_F32) : in[0], o->dims, o->correction,
                            o->keepdim);

    (void)n_in;
    return tn__common_given(out, narrow ? like(y, in[0]) : y);
}

static tn_status var_derive(tn_derive *d)
{
    const tn_var_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *gy = tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim);

    gy = tn_mul_scalar(gy, 2 * spread_factor(shape, o->dims, o->correction));
    d->gin[0] = tn_mul(gy, tn_sub(d->in[0], mean_of(d->in[0], o->dims, true), NULL));
    return TN_OK;
}

static tn_status std_infer(tn_infer *infer)
{
    const tn_std_options *o = infer->options;

    return reduced_infer(infer, o->dims, o->keepdim, tn__common_part(tn_view_dtype(infer->in[0])));
}

static tn_status std_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                               tn_tensor **out)
{
    const tn_std_options *o = options;
    bool narrow = tn__common_narrow(in[0]);
    tn_tensor *y = tn_sqrt(
        variance(narrow ? tn_cast(in[0], TN_F32) : in[0], o->dims, o->correction, o->keepdim));

    (void)n_in;
    return tn__common_given(out, narrow ? like(y, in[0]) : y);
}

static tn_status std_derive(tn_derive *d)
{
    const tn_std_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *y = tn__common_unreduced(d->out[0], shape, o->dims, o->keepdim);
    tn_tensor *gy = tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim);
    tn_tensor *g = or_zero(tn_eq(y, tn__common_number(y, 0.0)), over(gy, y));

    d->gin[0] = tn_mul(tn_mul_scalar(g, spread_factor(shape, o->dims, o->correction)),
                       tn_sub(d->in[0], mean_of(d->in[0], o->dims, true), NULL));
    return TN_OK;
}

/* ---- norms ---- */

static tn_status norm_infer(tn_infer *infer)
{
    const tn_norm_options *o = infer->options;
    tn_dtype dtype = tn__common_part(tn__common_asked(infer, o->dtype));

    if (!(TN_MASK_FLOAT & TN_BIT(dtype)))
        return tn_fail(TN_ERR_RUNTIME,
                       "dtype %s; the norm is worked out in a float or complex type",
                       tn_dtype_name(dtype));
    if (isinf(o->p))
        return tn__common_extreme(infer, o->dims, o->keepdim, dtype);
    return reduced_infer(infer, o->dims, o->keepdim, dtype);
}

static tn_tensor *norm_of(tn_tensor *x, const tn_norm_options *o)
{
    tn_amax_options most = TN_AMAX_OPTIONS;
    tn_amin_options least = TN_AMIN_OPTIONS;
    tn_tensor *size;

    if (o->p == 2)
        return tn_sqrt(sum_of(square_size(x), o->dims, o->keepdim));
    if (o->p == 0)
        return sum_of(
            tn_cast(tn_ne(x, tn__common_number(x, 0.0)), tn__common_part(tn_tensor_dtype(x))),
            o->dims, o->keepdim);
    size = tn_abs(x);
    if (o->p == 1)
        return sum_of(size, o->dims, o->keepdim);
    most.dims = least.dims = o->dims;
    most.keepdim = least.keepdim = o->keepdim;
    if (isinf(o->p))
        return o->p > 0 ? tn_amax(size, &most) : tn_amin(size, &least);
    return tn_pow_scalar(sum_of(tn_pow_scalar(size, o->p), o->dims, o->keepdim), 1.0 / o->p);
}

static tn_status norm_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                tn_tensor **out)
{
    bool narrow = tn__common_narrow(in[0]);
    tn_tensor *y = norm_of(narrow ? tn_cast(in[0], TN_F32) : in[0], options);

    (void)n_in;
    return tn__common_given(out, narrow ? like(y, in[0]) : y);
}

static tn_status norm_derive(tn_derive *d)
{
    const tn_norm_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *x = d->in[0], *size = tn_abs(x), *zero = tn__common_number(size, 0.0), *scaled,
              *scale;
    tn_tensor *y = tn__common_unreduced(d->out[0], shape, o->dims, o->keepdim);
    tn_tensor *gy = tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim);

    if (o->p == 0) {
        d->gin[0] = tn__common_zeros(x, shape);
    } else if (o->p == 1) {
        d->gin[0] = tn_mul(tn_sgn(x), gy);
    } else if (o->p == 2) {
        /* Where the norm is 0, nothing is divided by it: a derivative of this derivative would be NaN. */
        tn_tensor *none = tn_eq(y, zero), *safe = tn_where(none, tn__common_number(y, 1.0), y);

        d->gin[0] = tn_mul(x, or_zero(none, over(gy, safe)));
    } else if (isinf(o->p)) { /* evenly among the extreme ones */
        tn_tensor *mask = like(tn_eq(size, y), gy);

        d->gin[0] = tn_mul(tn_mul(tn_sgn(x), mask), over(gy, sum_of(mask, o->dims, true)));
    } else {
        scaled = tn_mul(tn_sgn(x), tn_pow_scalar(size, o->p - 1));
        if (o->p < 2)
            scaled = or_zero(tn_eq(size, zero), scaled);
        scale = or_zero(tn_eq(y, zero), over(gy, tn_pow_scalar(y, o->p - 1)));
        d->gin[0] = tn_mul(scaled, scale);
    }
    return TN_OK;
}

/* ---- truth ---- */

/* PyTorch answers in uint8 when it is asked about uint8. */
static tn_dtype truth_of(tn_dtype dtype)
{
    return dtype == TN_U8 ? TN_U8 : TN_BOOL;
}

static tn_tensor *as_asked(tn_tensor *truth, tn_tensor *x)
{
    return tn_tensor_dtype(x) == TN_U8 ? tn_cast(truth, TN_U8) : truth;
}

/* No dimensions, unlike dimensions that are not given: each element is asked alone, as in PyTorch. */
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
        return reduced_infer(infer, dims, keepdim, dtype);
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

static tn_status all_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                               tn_tensor **out)
{
    const tn_all_options *o = options;
    tn_tensor *wrong = tn_logical_not(in[0]);

    (void)n_in;
    if (alone(o->dims))
        return tn__common_given(out, as_asked(tn_logical_not(wrong), in[0]));
    wrong = sum_of(wrong, o->dims, o->keepdim);
    wrong = tn_eq(wrong, tn__common_number(wrong, 0));
    return tn__common_given(out, as_asked(wrong, in[0]));
}

static tn_status any_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                               tn_tensor **out)
{
    const tn_any_options *o = options;
    tn_tensor *right;

    (void)n_in;
    if (alone(o->dims))
        return tn__common_given(out, as_asked(tn_logical_not(tn_logical_not(in[0])), in[0]));
    right = sum_of(tn_cast(in[0], TN_BOOL), o->dims, o->keepdim);
    right = tn_ne(right, tn__common_number(right, 0));
    return tn__common_given(out, as_asked(right, in[0]));
}

/* ---- the logarithm of a sum of exponentials ---- */

static tn_status logsumexp_infer(tn_infer *infer)
{
    const tn_logsumexp_options *o = infer->options;
    tn_dtype dtype = tn_view_dtype(infer->in[0]);

    if ((TN_MASK_INT | TN_BIT(TN_BOOL)) & TN_BIT(dtype))
        dtype = infer->dtype = tn_default_dtype();
    return reduced_infer(infer, o->dims, o->keepdim, dtype);
}

/* From the largest, so that nothing overflows; infinite ones are left where they are. */
static tn_status logsumexp_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                     tn_tensor **out)
{
    const tn_logsumexp_options *o = options;
    tn_amax_options most = TN_AMAX_OPTIONS;
    tn_tensor *x = in[0], *top, *y;
    bool narrow = tn__common_narrow(x);

    (void)n_in;
    if (narrow)
        x = tn_cast(x, TN_F32);
    if (tn_tensor_numel(in[0]) == 0)
        return tn__common_given(out, like(tn_ln(sum_of(tn_exp(x), o->dims, o->keepdim)), in[0]));
    most.dims = o->dims;
    most.keepdim = true;
    top = tn_amax(tn_real(x), &most);
    top = or_zero(tn_logical_not(tn_isfinite(top)), top);
    y = tn_add(tn_ln(sum_of(tn_exp(tn_sub(x, top, NULL)), o->dims, true)), top, NULL);
    if (!o->keepdim) {
        tn_squeeze_options squeeze = TN_SQUEEZE_OPTIONS;

        squeeze.dims = o->dims;
        if (o->dims.count <= 0)
            y = tn_reshape(y, (tn_ints){ NULL, 0 });
        else if (tn_tensor_ndim(in[0]) > 0)
            y = tn_squeeze(y, &squeeze);
    }
    return tn__common_given(out, narrow ? like(y, in[0]) : y);
}

static tn_status logsumexp_derive(tn_derive *d)
{
    const tn_logsumexp_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *y = tn__common_unreduced(d->out[0], shape, o->dims, o->keepdim);
    tn_tensor *gy = tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim);

    d->gin[0] = tn__common_chain(gy, tn_exp(tn_sub(d->in[0], y, NULL)));
    return TN_OK;
}

const tn_op_def tn__op_prod = { TN_HEAD(tn_op_def), TN_SCHEMA_PROD, .infer = prod_infer,
                                .derive = prod_derive, TN__PARTS(prod) };
const tn_op_def tn__op_amin = { TN_HEAD(tn_op_def), TN_SCHEMA_AMIN, .infer = amin_infer,
                                .derive = amin_derive };
const tn_op_def tn__op_argmin = { TN_HEAD(tn_op_def), TN_SCHEMA_ARGMIN, .infer = argmin_infer };
#define COMPOSED(name, NAME)                                                                       \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME, .infer = name##_infer, \
                                      .decompose = name##_decompose };
#define DERIVED(name, NAME)                                                                        \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME, .infer = name##_infer, \
                                      .derive = name##_derive, .decompose = name##_decompose };
COMPOSED(max_dim, MAX_DIM)
COMPOSED(min_dim, MIN_DIM)
DERIVED(var, VAR)
DERIVED(std, STD)
DERIVED(norm, NORM)
COMPOSED(all, ALL)
COMPOSED(any, ANY)
DERIVED(logsumexp, LOGSUMEXP)

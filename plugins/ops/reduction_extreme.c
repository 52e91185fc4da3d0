/* SPDX-License-Identifier: MIT
 *
 * Maximum and minimum over dimensions, and their indices. */
#include "reduction.h"

static tn_status amax_infer(tn_infer *infer)
{
    const tn_amax_options *o = infer->options;

    return tn__common_extreme(infer, o->dims, o->keepdim, tn_view_dtype(infer->in[0]));
}

/* Distributes the gradient evenly among the elements that are equal to the result. */
static tn_status extreme_derive(tn_derive *d, tn_ints dims, bool keepdim)
{
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *y = tn__common_unreduced(d->out[0], shape, dims, keepdim);
    tn_tensor *gy = tn__common_unreduced(d->gout[0], shape, dims, keepdim);
    tn_tensor *mask = like(tn_eq(d->in[0], y), gy);

    d->gin[0] = tn_mul(mask, divide(gy, sum_of(mask, dims, true)));
    return TN_OK;
}

static tn_status amax_derive(tn_derive *d)
{
    const tn_amax_options *o = d->options;

    return extreme_derive(d, o->dims, o->keepdim);
}

static tn_status argmax_infer(tn_infer *infer)
{
    const tn_argmax_options *o = infer->options;
    tn_ints dims = { &o->dim, o->dim == INT64_MIN ? 0 : 1 };

    return tn__common_extreme(infer, dims, o->keepdim, TN_I64);
}

static tn_status amin_infer(tn_infer *infer)
{
    const tn_amin_options *o = infer->options;

    return tn__common_extreme(infer, o->dims, o->keepdim, tn_view_dtype(infer->in[0]));
}

static tn_status amin_derive(tn_derive *d)
{
    const tn_amin_options *o = d->options;

    return extreme_derive(d, o->dims, o->keepdim);
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

/* Outputs the elements of x that the indices `places` select along `dim`, and `places` itself.
 * Dimension `dim` of `places` has size 1; it is removed from both outputs unless `keepdim`. */
static tn_status picked(tn_tensor *x, tn_tensor *places, int64_t dim, bool keepdim, tn_tensor **out)
{
    out[0] = tn_gather(x, places, dim);
    out[1] = places;
    if (!keepdim && out[0] != NULL && tn_tensor_ndim(x) > 0) {
        out[0] = tn_squeeze(out[0], TN_INTS(dim));
        out[1] = tn_squeeze(out[1], TN_INTS(dim));
    }
    return out[0] != NULL && out[1] != NULL ? TN_OK : tn_error_last_code();
}

/* argmax and argmin compare numbers. */
static tn_tensor *numbers_of(tn_tensor *x)
{
    return tn_tensor_dtype(x) == TN_BOOL ? tn_cast(x, TN_U8) : x;
}

static tn_status max_dim_decompose(const tn_decompose *call)
{
    const tn_max_dim_options *o = call->options;
    return picked(call->in[0], tn_argmax(numbers_of(call->in[0]), o->dim, true), o->dim, o->keepdim,
                  call->out);
}

static tn_status min_dim_decompose(const tn_decompose *call)
{
    const tn_min_dim_options *o = call->options;
    return picked(call->in[0], tn_argmin(numbers_of(call->in[0]), o->dim, true), o->dim, o->keepdim,
                  call->out);
}
TN__OP(amax, .infer = amax_infer, .derive = amax_derive);
TN__OP(argmax, .infer = argmax_infer);
TN__OP(amin, .infer = amin_infer, .derive = amin_derive);
TN__OP(argmin, .infer = argmin_infer);
TN__OP(max_dim, .infer = max_dim_infer, .decompose = max_dim_decompose);
TN__OP(min_dim, .infer = min_dim_infer, .decompose = min_dim_decompose);

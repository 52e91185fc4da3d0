/* SPDX-License-Identifier: MIT
 *
 * standardize, which subtracts the mean and divides by the standard deviation over any dimensions,
 * with its gradient; and layer_norm, rms_norm and local_response_norm. */
#include "channels.h"
#include "norm.h"
#include "reduction.h"

#include <float.h>
#include <math.h>

/* ---- standardize ---- */

static tn_status moments_infer(const tn_view *x, tn_ints dims, tn_meta *mean, tn_meta *var)
{
    bool reduced[TN_MAX_DIMS];
    tn_status status = tn__common_dims(dims, x->ndim, reduced);

    if (status != TN_OK)
        return status;
    tn__common_reduced(x, reduced, true, mean);
    tn__common_reduced(x, reduced, true, var);
    mean->dtype = var->dtype = tn__normal_wide(tn_view_dtype(x));
    return TN_OK;
}

/* Fails unless `shape` broadcasts to x without making the result larger than x. */
static tn_status check_shape_within(tn_ints shape, const tn_view *x, const char *name)
{
    char text[TN__TEXT], text_x[TN__TEXT];
    bool fits = shape.count <= x->ndim;

    for (int64_t i = 0; fits && i < shape.count; i++) {
        int64_t size = shape.at[shape.count - 1 - i];

        fits = size == 1 || size == x->shape[x->ndim - 1 - i];
    }
    return fits ? TN_OK
                : tn_fail(TN_ERR_RUNTIME,
                          "%s: wrong shape, got %s; expected one that broadcasts to x %s", name,
                          tn__common_text(text, shape),
                          tn__common_text(text_x, tn__common_shape(x)));
}

static tn_status check_within(const tn_view *part, const tn_view *x, const char *name)
{
    return part == NULL ? TN_OK : check_shape_within(tn__common_shape(part), x, name);
}

static tn_status standardize_infer(tn_infer *infer)
{
    const tn_standardize_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_status status = check_within(infer->in[1], x, "weight");

    if (status == TN_OK)
        status = check_within(infer->in[2], x, "bias");
    if (status != TN_OK)
        return status;
    tn__common_like(infer, 0, 0, tn_view_dtype(x));
    return moments_infer(x, o->dims, &infer->out[1], &infer->out[2]);
}

static tn_status standardize_decompose(const tn_decompose *call)
{
    const tn_standardize_options *o = call->options;
    tn_tensor *x = tn__normal_as_wide(call->in[0]), *centred, *y;
    call->out[1] = mean_of(x, o->dims, true);
    centred = minus(x, call->out[1]);
    call->out[2] = mean_of(tn_square(centred), o->dims, true);
    y = tn_mul(centred, tn__normal_spread(call->out[2], o->eps));
    if (call->in[1] != TN_NONE)
        y = tn_mul(y, tn__normal_as_wide(call->in[1]));
    if (call->in[2] != TN_NONE)
        y = tn_add(y, tn__normal_as_wide(call->in[2]));
    call->out[0] = y == NULL ? NULL : tn_cast(y, tn_tensor_dtype(call->in[0]));
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

/* Adds the contributions of the outputs mean and var to gx, the gradient of x. */
static tn_tensor *moments_back(tn_derive *d, tn_ints dims, tn_tensor *gx)
{
    double n = members(tn__common_in_shape(d, 0), dims);

    if (d->gout[1] != TN_NONE) {
        tn_tensor *part = tn_expand(tn_mul_scalar(d->gout[1], 1.0 / n), tn__common_in_shape(d, 0));

        gx = gx == TN_NONE ? part : tn_add(gx, part);
    }
    if (d->gout[2] != TN_NONE) {
        tn_tensor *part = tn_mul(tn_mul_scalar(d->gout[2], 2.0 / n), minus(d->in[0], d->out[1]));

        gx = gx == TN_NONE ? part : tn_add(gx, part);
    }
    return gx;
}

/* Returns the shape of weight or bias, whichever needs a gradient; empty if neither does. */
static tn_ints affine_shape(const tn_derive *d)
{
    return tn__needs(d, 1)   ? tn__common_in_shape(d, 1)
           : tn__needs(d, 2) ? tn__common_in_shape(d, 2)
                             : (tn_ints){ NULL, 0 };
}

static tn_tensor *saved_weight(const tn_derive *d)
{
    return d->in_meta[1].ndim < 0 ? TN_NONE : d->in[1];
}

static void set_gradients(tn_derive *d, tn_ints dims, tn_tensor *const *all)
{
    if (tn__needs(d, 0))
        d->gin[0] = moments_back(d, dims, all[0]);
    if (tn__needs(d, 1))
        d->gin[1] = all[1];
    if (tn__needs(d, 2))
        d->gin[2] = all[2];
}

static tn_status standardize_derive(tn_derive *d)
{
    const tn_standardize_options *o = d->options;
    tn_tensor *all[3] = { TN_NONE, TN_NONE, TN_NONE };

    if (d->gout[0] != TN_NONE &&
        tn_standardize_grad(d->gout[0], d->in[0], d->out[1], d->out[2], saved_weight(d), o->dims,
                            &all[0], &all[1], &all[2], o->eps, affine_shape(d)) != TN_OK)
        return tn_error_last_code();
    set_gradients(d, o->dims, all);
    return TN_OK;
}

/* Checks gy, mean, var and weight against x for both gradient operators. `more` is the number of
 * inputs between gy and x. */
static tn_status back_infer(tn_infer *infer, int more, tn_ints dims, tn_ints affine_shape)
{
    const tn_view *gy = infer->in[0], *const *in = infer->in + more, *x = in[1];
    bool reduced[TN_MAX_DIMS], fits = true;
    char text[TN__TEXT], text_x[TN__TEXT];
    tn_status status = tn__common_dims(dims, x->ndim, reduced);
    int64_t nothing = 0;
    tn_ints affine = affine_shape.count > 0 ? affine_shape : (tn_ints){ &nothing, 1 };

    if (status == TN_OK)
        status = tn__common_same_shape(gy, "gy", tn__common_shape(x), "x");
    for (int k = 2; k < 4 && status == TN_OK; k++) {
        const tn_view *moment = in[k];

        fits = moment->ndim == x->ndim;
        for (int32_t i = 0; fits && i < x->ndim; i++)
            fits = moment->shape[i] == (reduced[i] ? 1 : x->shape[i]);
        if (!fits)
            return tn_fail(
                TN_ERR_RUNTIME,
                "%s: wrong shape, got %s for x %s; expected x's shape with 1 for each dimension "
                "in dims",
                k == 2 ? "mean" : "var", tn__common_text(text, tn__common_shape(moment)),
                tn__common_text(text_x, tn__common_shape(x)));
    }
    if (status == TN_OK)
        status = check_within(in[4], x, "weight");
    if (status == TN_OK)
        status = check_shape_within(affine_shape, x, "affine_shape");
    if (status != TN_OK)
        return status;
    tn__common_like(infer, 0, 1 + more, tn_view_dtype(gy));
    tn__common_plain(&infer->out[1], tn__normal_wide(tn_view_dtype(gy)), affine);
    tn__common_plain(&infer->out[2], tn__normal_wide(tn_view_dtype(gy)), affine);
    return TN_OK;
}

static tn_status standardize_grad_infer(tn_infer *infer)
{
    const tn_standardize_grad_options *o = infer->options;

    return back_infer(infer, 0, o->dims, o->affine_shape);
}

static tn_status standardize_grad_decompose(const tn_decompose *call)
{
    const tn_standardize_grad_options *o = call->options;
    tn_dtype dtype = tn_tensor_dtype(call->in[0]);
    tn_tensor *gy = tn__normal_as_wide(call->in[0]), *mean = tn__normal_moment(call->in[2], gy),
              *g = gy;
    tn_tensor *spread = tn__normal_spread(tn__normal_moment(call->in[3], gy), o->eps);
    tn_tensor *unit = tn_mul(minus(tn__normal_as_wide(call->in[1]), mean), spread);
    if (call->in[4] != TN_NONE)
        g = tn_mul(gy, tn__normal_as_wide(call->in[4]));
    g = tn_mul(spread, minus(minus(g, mean_of(g, o->dims, true)),
                             tn_mul(unit, mean_of(tn_mul(g, unit), o->dims, true))));
    if (g == NULL)
        return tn_error_last_code();
    call->out[0] = tn_cast(g, dtype);
    if (o->affine_shape.count > 0) {
        call->out[1] = tn_cast(tn_sum_to(tn_mul(gy, unit), o->affine_shape),
                               tn__normal_wide(dtype));
        call->out[2] = tn_sum_to(gy, o->affine_shape);
    } else {
        call->out[1] = tn__common_zeros(gy, TN_SHAPE(0));
        call->out[2] = tn__common_zeros(gy, TN_SHAPE(0));
    }
    return call->out[0] != NULL && call->out[1] != NULL && call->out[2] != NULL
               ? TN_OK
               : tn_error_last_code();
}

/* ---- standardize followed by relu ---- */

static tn_status standardize_relu_infer(tn_infer *infer)
{
    const tn_standardize_relu_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_status status = check_within(infer->in[1], x, "weight");

    if (status == TN_OK)
        status = check_within(infer->in[2], x, "bias");
    if (status == TN_OK)
        status = tn__common_same_shape(infer->in[3], "residual", tn__common_shape(x), "x");
    if (status == TN_OK)
        status = tn__normal_check_max(o->max, tn_view_dtype(infer->in[0]));
    if (status != TN_OK)
        return status;
    tn__common_like(infer, 0, 0, tn_view_dtype(x));
    return moments_infer(x, o->dims, &infer->out[1], &infer->out[2]);
}

static tn_status standardize_relu_decompose(const tn_decompose *call)
{
    const tn_standardize_relu_options *o = call->options;
    tn_tensor *y;
    tn_status status;
    status = tn_standardize(call->in[0], call->in[1], call->in[2], o->dims, &y, &call->out[1],
                            &call->out[2], o->eps);
    if (status != TN_OK)
        return status;
    if (call->in[3] != TN_NONE)
        y = tn_add(y, call->in[3]);
    y = tn__normal_relu(y, o->max);
    return tn__common_given(call->out, y == NULL ? NULL : tn_cast(y, tn_tensor_dtype(call->in[0])));
}

static tn_status standardize_relu_derive(tn_derive *d)
{
    const tn_standardize_relu_options *o = d->options;
    tn_tensor *all[4] = { TN_NONE, TN_NONE, TN_NONE, TN_NONE };

    if (d->gout[0] != TN_NONE &&
        tn_standardize_relu_grad(d->gout[0], d->out[0], d->in[0], d->out[1], d->out[2],
                                 saved_weight(d), o->dims, &all[0], &all[1], &all[2], &all[3],
                                 o->eps, affine_shape(d), tn__needs(d, 3), o->max) != TN_OK)
        return tn_error_last_code();
    set_gradients(d, o->dims, all);
    if (tn__needs(d, 3))
        d->gin[3] = all[3];
    return TN_OK;
}

static tn_status standardize_relu_grad_infer(tn_infer *infer)
{
    const tn_standardize_relu_grad_options *o = infer->options;
    tn_status status = tn__common_same_shape(infer->in[1], "y", tn__common_shape(infer->in[2]),
                                             "x");

    if (status == TN_OK)
        status = back_infer(infer, 1, o->dims, o->affine_shape);
    if (status == TN_OK)
        status = tn__normal_check_max(o->max, tn_view_dtype(infer->in[0]));
    if (status != TN_OK)
        return status;
    if (o->residual)
        tn__common_like(infer, 3, 2, tn_view_dtype(infer->in[0]));
    else
        tn__common_plain(&infer->out[3], tn_view_dtype(infer->in[0]), TN_SHAPE(0));
    return TN_OK;
}

static tn_status standardize_relu_grad_decompose(const tn_decompose *call)
{
    const tn_standardize_relu_grad_options *o = call->options;
    tn_tensor *gz = tn__given_number(o->max)
                        ? tn_hardtanh_grad(call->in[0], call->in[1], 0.0, o->max)
                        : tn_relu_grad(call->in[0], call->in[1]);
    if (gz == NULL || tn_standardize_grad(gz, call->in[2], call->in[3], call->in[4], call->in[5],
                                          o->dims, &call->out[0], &call->out[1], &call->out[2],
                                          o->eps, o->affine_shape) != TN_OK)
        return tn_error_last_code();
    call->out[3] = o->residual ? gz : tn__common_zeros(gz, TN_SHAPE(0));
    return call->out[3] != NULL ? TN_OK : tn_error_last_code();
}

/* ---- layer_norm, rms_norm, local_response_norm ---- */

static tn_status last_infer(tn_infer *infer, tn_ints normalized)
{
    const tn_view *x = infer->in[0];
    char text[TN__TEXT], text_x[TN__TEXT];
    bool fits = normalized.count > 0 && normalized.count <= x->ndim;

    for (int64_t i = 0; fits && i < normalized.count; i++)
        fits = normalized.at[i] == x->shape[x->ndim - normalized.count + i];
    if (!fits)
        return tn_fail(
            TN_ERR_RUNTIME,
            "normalized_shape: wrong sizes, got %s for x %s; expected the sizes of x's last "
            "dimensions",
            tn__common_text(text, normalized), tn__common_text(text_x, tn__common_shape(x)));
    for (int64_t k = 1; k < infer->n_in; k++) {
        const tn_view *part = infer->in[k];

        fits = part == NULL || part->ndim == normalized.count;
        for (int64_t i = 0; fits && part != NULL && i < normalized.count; i++)
            fits = part->shape[i] == normalized.at[i];
        if (!fits)
            return tn_fail(TN_ERR_RUNTIME, "%s: wrong shape, got %s; expected normalized_shape %s",
                           k == 1 ? "weight" : "bias",
                           tn__common_text(text_x, tn__common_shape(part)),
                           tn__common_text(text, normalized));
    }
    return tn__common_open(infer);
}

static tn_ints last_dims(int64_t count, int64_t *dims)
{
    for (int64_t i = 0; i < count; i++)
        dims[i] = i - count;
    return (tn_ints){ dims, count };
}

static tn_status layer_norm_infer(tn_infer *infer)
{
    const tn_layer_norm_options *o = infer->options;

    return last_infer(infer, o->normalized_shape);
}

static tn_status layer_norm_decompose(const tn_decompose *call)
{
    const tn_layer_norm_options *o = call->options;
    int64_t dims[TN_MAX_DIMS];
    tn_tensor *mean, *var;
    return tn_standardize(call->in[0], call->in[1], call->in[2],
                          last_dims(o->normalized_shape.count, dims), call->out, &mean, &var,
                          o->eps);
}

static double step_of(tn_dtype dtype)
{
    return dtype == TN_F64    ? DBL_EPSILON
           : dtype == TN_F16  ? 0x1p-10
           : dtype == TN_BF16 ? 0x1p-7
                              : (double)FLT_EPSILON;
}

static tn_status rms_norm_infer(tn_infer *infer)
{
    const tn_rms_norm_options *o = infer->options;

    return last_infer(infer, o->normalized_shape);
}

static tn_status rms_norm_decompose(const tn_decompose *call)
{
    const tn_rms_norm_options *o = call->options;
    tn_dtype dtype = tn_tensor_dtype(call->in[0]);
    double eps = tn__given_number(o->eps) ? o->eps : step_of(tn__normal_wide(dtype));
    int64_t dims[TN_MAX_DIMS];
    tn_tensor *x = tn__normal_as_wide(call->in[0]), *y;
    y = tn_mul(x,
               tn__normal_spread(
                   mean_of(tn_square(x), last_dims(o->normalized_shape.count, dims), true), eps));
    if (call->in[1] != TN_NONE)
        y = tn_mul(y, tn__normal_as_wide(call->in[1]));
    return tn__common_given(call->out, y == NULL ? NULL : tn_cast(y, dtype));
}

static tn_status local_response_norm_infer(tn_infer *infer)
{
    const tn_local_response_norm_options *o = infer->options;
    const tn_view *x = infer->in[0];
    char text[TN__TEXT];

    if (x->ndim < 3)
        return tn_fail(TN_ERR_VALUE,
                       "x: wrong shape, got %s; expected 3 dimensions or more, [N, C, ...]",
                       tn__common_text(text, tn__common_shape(x)));
    if (o->neighbours < 1)
        return tn_fail(TN_ERR_VALUE, "neighbours: out of range, got %lld; expected at least 1",
                       (long long)o->neighbours);
    return tn__common_open(infer);
}

static tn_status local_response_norm_decompose(const tn_decompose *call)
{
    const tn_local_response_norm_options *o = call->options;
    int32_t ndim = tn_tensor_ndim(call->in[0]);
    int64_t sizes[2 * TN_MAX_DIMS] = { 0 }, last = -1, pairs = ndim - 1;
    tn_tensor *around;
    if (tn_tensor_numel(call->in[0]) == 0)
        return tn__common_given(call->out, tn_copy(call->in[0]));
    sizes[2 * (pairs - 1)] = o->neighbours / 2;
    sizes[2 * (pairs - 1) + 1] = (o->neighbours - 1) / 2;
    around = tn_mean(tn_unfold(tn_pad(tn_square(call->in[0]), ((tn_ints){ sizes, 2 * pairs })), 1,
                               o->neighbours, 1),
                     TN_INTS(last));
    if (tn__channels_image(tn_tensor_view(call->in[0])))
        around = tn__channels_copied(around);
    return tn__common_given(
        call->out,
        tn_div(call->in[0],
               tn_pow_scalar(tn_add_scalar(tn_mul_scalar(around, o->alpha), o->k), o->beta)));
}

TN__OP(standardize, .infer = standardize_infer, .derive = standardize_derive,
       .decompose = standardize_decompose);
TN__OP(standardize_relu, .infer = standardize_relu_infer, .derive = standardize_relu_derive,
       .decompose = standardize_relu_decompose);
TN__OP(standardize_grad, .infer = standardize_grad_infer, .decompose = standardize_grad_decompose);
TN__OP(standardize_relu_grad, .infer = standardize_relu_grad_infer,
       .decompose = standardize_relu_grad_decompose);
TN__OP(layer_norm, .infer = layer_norm_infer, .decompose = layer_norm_decompose);
TN__OP(rms_norm, .infer = rms_norm_infer, .decompose = rms_norm_decompose);
TN__OP(local_response_norm, .infer = local_response_norm_infer,
       .decompose = local_response_norm_decompose);

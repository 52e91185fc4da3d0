/* SPDX-License-Identifier: MIT
 *
 * Normalisation: numbers less their mean, in units of their spread. */
#include "common.h"

#include <float.h>
#include <math.h>

/* ---- standardize ---- */

static tn_dtype wide(tn_dtype dtype)
{
    return tn_dtype_size(dtype) < 4 ? TN_F32 : dtype;
}

static tn_tensor *as_wide(tn_tensor *x)
{
    return x == NULL || x == TN_NONE ? x : tn_cast(x, wide(tn_tensor_dtype(x)));
}

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

static tn_tensor *mean_of(tn_tensor *x, tn_ints dims)
{
    tn_mean_options o = TN_MEAN_OPTIONS;

    o.dims = dims;
    o.keepdim = true;
    return tn_mean(x, &o);
}

static tn_tensor *less(tn_tensor *a, tn_tensor *b)
{
    return tn_sub(a, b, NULL);
}

static tn_status moments_infer(const tn_view *x, tn_ints dims, tn_meta *mean, tn_meta *var)
{
    bool reduced[TN_MAX_DIMS];
    tn_status status = tn__common_dims(dims, x->ndim, reduced);

    if (status != TN_OK)
        return status;
    tn__common_reduced(x, reduced, true, mean);
    tn__common_reduced(x, reduced, true, var);
    mean->dtype = var->dtype = wide(tn_view_dtype(x));
    return TN_OK;
}

/* Whether `part` broadcasts to x without making it larger. */
static tn_status check_within(const tn_view *part, const tn_view *x, const char *name)
{
    char text[TN__TEXT], text_x[TN__TEXT];
    bool fits = part == NULL || part->ndim <= x->ndim;

    for (int32_t i = 0; fits && part != NULL && i < part->ndim; i++) {
        int64_t size = part->shape[part->ndim - 1 - i];

        fits = size == 1 || size == x->shape[x->ndim - 1 - i];
    }
    return fits ? TN_OK
                : tn_fail(TN_ERR_RUNTIME, "%s %s does not broadcast to x %s", name,
                          tn__common_text(text, tn__common_shape(part)),
                          tn__common_text(text_x, tn__common_shape(x)));
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

static tn_tensor *spread_of(tn_tensor *var, double eps)
{
    return tn_rsqrt(tn_add_scalar(var, eps));
}

static tn_status standardize_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                       tn_tensor **out)
{
    const tn_standardize_options *o = options;
    tn_tensor *x = as_wide(in[0]), *centred, *y;

    (void)n_in;
    out[1] = mean_of(x, o->dims);
    centred = less(x, out[1]);
    out[2] = mean_of(tn_square(centred), o->dims);
    y = tn_mul(centred, spread_of(out[2], o->eps));
    if (in[1] != TN_NONE)
        y = tn_mul(y, as_wide(in[1]));
    if (in[2] != TN_NONE)
        y = tn_add(y, as_wide(in[2]), NULL);
    out[0] = y == NULL ? NULL : tn_cast(y, tn_tensor_dtype(in[0]));
    return out[0] != NULL ? TN_OK : tn_error_last()->code;
}

static tn_status standardize_derive(tn_derive *d)
{
    const tn_standardize_options *o = d->options;
    tn_standardize_grad_options g = TN_STANDARDIZE_GRAD_OPTIONS;
    tn_tensor *gx = TN_NONE, *gw = TN_NONE, *gb = TN_NONE, *mean = d->out[1], *var = d->out[2];
    tn_tensor *weight = d->in_meta[1].ndim < 0 ? TN_NONE : d->in[1];
    double n = members(tn__common_in_shape(d, 0), o->dims);

    if (d->gout[0] != TN_NONE) {
        tn_tensor *all[3];

        g.eps = o->eps;
        if (tn__needs(d, 1))
            g.affine_shape = tn__common_in_shape(d, 1);
        else if (tn__needs(d, 2))
            g.affine_shape = tn__common_in_shape(d, 2);
        if (tn_standardize_grad(d->gout[0], d->in[0], mean, var, weight, o->dims, &g, &all[0],
                                &all[1], &all[2]) != TN_OK)
            return tn_error_last()->code;
        gx = all[0];
        gw = all[1];
        gb = all[2];
    }
    if (tn__needs(d, 0) && d->gout[1] != TN_NONE) {
        tn_tensor *part = tn_expand(tn_mul_scalar(d->gout[1], 1.0 / n), tn__common_in_shape(d, 0));

        gx = gx == TN_NONE ? part : tn_add(gx, part, NULL);
    }
    if (tn__needs(d, 0) && d->gout[2] != TN_NONE) {
        tn_tensor *part = tn_mul(tn_mul_scalar(d->gout[2], 2.0 / n), less(d->in[0], mean));

        gx = gx == TN_NONE ? part : tn_add(gx, part, NULL);
    }
    if (tn__needs(d, 0))
        d->gin[0] = gx;
    if (tn__needs(d, 1))
        d->gin[1] = gw;
    if (tn__needs(d, 2))
        d->gin[2] = gb;
    return TN_OK;
}

static tn_status standardize_grad_infer(tn_infer *infer)
{
    const tn_standardize_grad_options *o = infer->options;
    const tn_view *gy = infer->in[0], *x = infer->in[1];
    bool reduced[TN_MAX_DIMS], fits = gy->ndim == x->ndim;
    char text[TN__TEXT], text_x[TN__TEXT];
    tn_status status = tn__common_dims(o->dims, x->ndim, reduced);
    int64_t nothing = 0;
    tn_ints affine = o->affine_shape.count > 0 ? o->affine_shape : (tn_ints){ &nothing, 1 };

    for (int32_t i = 0; fits && i < x->ndim; i++)
        fits = gy->shape[i] == x->shape[i];
    if (status == TN_OK && !fits)
        return tn_fail(TN_ERR_RUNTIME, "gy %s and x %s have to have the same shape",
                       tn__common_text(text, tn__common_shape(gy)),
                       tn__common_text(text_x, tn__common_shape(x)));
    for (int k = 2; k < 4 && status == TN_OK; k++) {
        const tn_view *moment = infer->in[k];

        fits = moment->ndim == x->ndim;
        for (int32_t i = 0; fits && i < x->ndim; i++)
            fits = moment->shape[i] == (reduced[i] ? 1 : x->shape[i]);
        if (!fits)
            return tn_fail(TN_ERR_RUNTIME, "%s %s is not what standardize gives for x %s",
                           k == 2 ? "mean" : "var", tn__common_text(text, tn__common_shape(moment)),
                           tn__common_text(text_x, tn__common_shape(x)));
    }
    if (status == TN_OK)
        status = check_within(infer->in[4], x, "weight");
    if (status != TN_OK)
        return status;
    tn__common_like(infer, 0, 1, tn_view_dtype(gy));
    tn__common_plain(&infer->out[1], tn_view_dtype(gy), affine);
    tn__common_plain(&infer->out[2], tn_view_dtype(gy), affine);
    return TN_OK;
}

static tn_status standardize_grad_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                            tn_tensor **out)
{
    const tn_standardize_grad_options *o = options;
    tn_dtype dtype = tn_tensor_dtype(in[0]);
    tn_tensor *gy = as_wide(in[0]), *spread = spread_of(in[3], o->eps), *g = gy;
    tn_tensor *unit = tn_mul(less(as_wide(in[1]), in[2]), spread);

    (void)n_in;
    if (in[4] != TN_NONE)
        g = tn_mul(gy, as_wide(in[4]));
    g = tn_mul(spread,
               less(less(g, mean_of(g, o->dims)), tn_mul(unit, mean_of(tn_mul(g, unit), o->dims))));
    if (g == NULL)
        return tn_error_last()->code;
    out[0] = tn_cast(g, dtype);
    if (o->affine_shape.count > 0) {
        out[1] = tn_cast(tn_sum_to(tn_mul(gy, unit), o->affine_shape), dtype);
        out[2] = tn_cast(tn_sum_to(gy, o->affine_shape), dtype);
    } else {
        out[1] = tn__common_zeros(in[0], TN_SHAPE(0));
        out[2] = tn__common_zeros(in[0], TN_SHAPE(0));
    }
    return out[0] != NULL && out[1] != NULL && out[2] != NULL ? TN_OK : tn_error_last()->code;
}

/* ---- by channels ---- */

static tn_status image_infer(tn_infer *infer)
{
    static const char *const names[] = { "running_mean", "running_var", "weight", "bias" };
    const tn_view *x = infer->in[0];
    char text[TN__TEXT];

    if (x->ndim < 2)
        return tn_fail(TN_ERR_VALUE, "x %s has %d dimensions; [N, C, ...] is taken",
                       tn__common_text(text, tn__common_shape(x)), (int)x->ndim);
    for (int64_t i = 1; i < infer->n_in; i++) {
        const tn_view *part = infer->in[i];
        const char *name = names[infer->n_in == 5 ? i - 1 : i + 1];

        if (part != NULL && (part->ndim != 1 || part->shape[0] != x->shape[1]))
            return tn_fail(TN_ERR_RUNTIME, "%s %s has to be [%lld], one for each channel", name,
                           tn__common_text(text, tn__common_shape(part)), (long long)x->shape[1]);
    }
    return tn__common_open(infer);
}

/* [C] as [1, C, 1, ...] */
static tn_tensor *per_channel(tn_tensor *x, int32_t ndim)
{
    int64_t shape[TN_MAX_DIMS];

    if (x == TN_NONE)
        return TN_NONE;
    for (int32_t d = 0; d < ndim; d++)
        shape[d] = d == 1 ? tn_tensor_size(x, 0) : 1;
    return tn_reshape(x, (tn_ints){ shape, ndim });
}

static tn_tensor *affine(tn_tensor *y, tn_tensor *weight, tn_tensor *bias)
{
    tn_dtype dtype;

    if (y == NULL)
        return NULL;
    dtype = tn_tensor_dtype(y);
    if (weight != TN_NONE)
        y = tn_cast(tn_mul(y, weight), dtype);
    return bias == TN_NONE || y == NULL ? y : tn_cast(tn_add(y, bias, NULL), dtype);
}

/* What the running moments come to, written into them; nothing of it is recorded. */
static tn_status run_along(tn_tensor *running, tn_tensor *now, double momentum)
{
    tn_status status = TN_OK;

    if (running == TN_NONE)
        return TN_OK;
    tn_grad_begin(false);
    now = tn_detach(now);
    if (now == NULL ||
        tn_copy_(running,
                 tn_lerp_scalar(running, tn_cast(now, tn_tensor_dtype(running)), momentum)) == NULL)
        status = tn_error_last()->code;
    tn_grad_end();
    return status;
}

static tn_tensor *flat_row(tn_tensor *x)
{
    return tn_flatten(x, NULL);
}

static tn_tensor *by_running(tn_tensor *x, tn_tensor *const *in, double eps)
{
    int32_t ndim = tn_tensor_ndim(x);
    tn_tensor *scale = spread_of(in[2], eps), *shift;

    if (in[3] != TN_NONE)
        scale = tn_mul(scale, as_wide(in[3]));
    shift = tn_neg(tn_mul(in[1], scale));
    if (in[4] != TN_NONE)
        shift = tn_add(shift, as_wide(in[4]), NULL);
    if (shift == NULL)
        return NULL;
    return tn_cast(
        tn_add(tn_mul(as_wide(x), per_channel(scale, ndim)), per_channel(shift, ndim), NULL),
        tn_tensor_dtype(x));
}

static tn_status batch_norm_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                      tn_tensor **out)
{
    const tn_batch_norm_options *o = options;
    tn_standardize_options s = TN_STANDARDIZE_OPTIONS;
    int32_t ndim = tn_tensor_ndim(in[0]);
    int64_t dims[TN_MAX_DIMS], count = 0;
    double n = 1;
    tn_tensor *mean, *var;
    tn_status status;
    char text[TN__TEXT];

    (void)n_in;
    for (int32_t d = 0; d < ndim; d++)
        if (d != 1) {
            dims[count++] = d;
            n *= (double)tn_tensor_size(in[0], d);
        }
    if (!o->training && in[1] != TN_NONE && in[2] != TN_NONE)
        return tn__common_given(out, by_running(in[0], in, o->eps));
    if (!o->training && (in[1] != TN_NONE || in[2] != TN_NONE))
        return tn_fail(TN_ERR_RUNTIME, "running_mean and running_var come together");
    if (o->training && n == 1)
        return tn_fail(TN_ERR_VALUE, "training needs more than 1 value per channel, x is %s",
                       tn__common_text(text, tn_tensor_shape(in[0])));
    s.eps = o->eps;
    status = tn_standardize(in[0], per_channel(in[3], ndim), per_channel(in[4], ndim),
                            (tn_ints){ dims, count }, &s, out, &mean, &var);
    if (status == TN_OK && o->training)
        status = run_along(in[1], flat_row(mean), o->momentum);
    if (status == TN_OK && o->training && in[2] != TN_NONE)
        status = run_along(in[2], tn_mul_scalar(flat_row(var), n / (n - 1)), o->momentum);
    return status;
}

static tn_status instance_norm_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                         tn_tensor **out)
{
    const tn_instance_norm_options *o = options;
    tn_standardize_options s = TN_STANDARDIZE_OPTIONS;
    int32_t ndim = tn_tensor_ndim(in[0]);
    int64_t dims[TN_MAX_DIMS], first = 0;
    tn_mean_options over = TN_MEAN_OPTIONS;
    double n = 1;
    tn_tensor *mean, *var;
    tn_status status;
    char text[TN__TEXT];

    (void)n_in;
    for (int32_t d = 2; d < ndim; d++) {
        dims[d - 2] = d;
        n *= (double)tn_tensor_size(in[0], d);
    }
    if (!o->use_input_stats) {
        if (in[1] == TN_NONE || in[2] == TN_NONE)
            return tn_fail(TN_ERR_RUNTIME, "without use_input_stats running_mean and running_var "
                                           "are needed");
        return tn__common_given(out, by_running(in[0], in, o->eps));
    }
    if (n == 1 || ndim == 2)
        return tn_fail(TN_ERR_VALUE, "more than 1 element for each channel is needed, x is %s",
                       tn__common_text(text, tn_tensor_shape(in[0])));
    s.eps = o->eps;
    status = tn_standardize(in[0], per_channel(in[3], ndim), per_channel(in[4], ndim),
                            (tn_ints){ dims, ndim - 2 }, &s, out, &mean, &var);
    over.dims = (tn_ints){ &first, 1 };
    if (status == TN_OK && in[1] != TN_NONE)
        status = run_along(in[1], flat_row(tn_mean(mean, &over)), o->momentum);
    if (status == TN_OK && in[2] != TN_NONE)
        status = run_along(in[2], tn_mul_scalar(flat_row(tn_mean(var, &over)), n / (n - 1)),
                           o->momentum);
    return status;
}

static tn_status group_norm_infer(tn_infer *infer)
{
    const tn_group_norm_options *o = infer->options;
    const tn_view *x = infer->in[0];
    char text[TN__TEXT];
    tn_status status = image_infer(infer);

    if (status == TN_OK && (o->num_groups < 1 || x->shape[1] % o->num_groups != 0))
        return tn_fail(TN_ERR_RUNTIME, "num_groups %lld does not divide the %lld channels",
                       (long long)o->num_groups, (long long)x->shape[1]);
    for (int32_t d = 1; d < x->ndim && status == TN_OK; d++)
        if (x->shape[d] < 1)
            return tn_fail(TN_ERR_RUNTIME, "x %s has no elements in a group",
                           tn__common_text(text, tn__common_shape(x)));
    return status;
}

static tn_status group_norm_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                      tn_tensor **out)
{
    const tn_group_norm_options *o = options;
    tn_standardize_options s = TN_STANDARDIZE_OPTIONS;
    tn_ints shape = tn_tensor_shape(in[0]);
    int64_t last = 2, each = 1;
    tn_tensor *y, *mean, *var;
    tn_status status;

    (void)n_in;
    for (int64_t d = 1; d < shape.count; d++)
        each *= shape.at[d];
    s.eps = o->eps;
    status = tn_standardize(
        tn_reshape(in[0], TN_SHAPE(shape.at[0], o->num_groups, each / o->num_groups)), TN_NONE,
        TN_NONE, (tn_ints){ &last, 1 }, &s, &y, &mean, &var);
    if (status != TN_OK)
        return status;
    return tn__common_given(out,
                            affine(tn_reshape(y, shape), per_channel(in[1], (int32_t)shape.count),
                                   per_channel(in[2], (int32_t)shape.count)));
}

/* ---- over the last dimensions ---- */

static tn_status last_infer(tn_infer *infer, tn_ints normalized)
{
    const tn_view *x = infer->in[0];
    char text[TN__TEXT], text_x[TN__TEXT];
    bool fits = normalized.count > 0 && normalized.count <= x->ndim;

    for (int64_t i = 0; fits && i < normalized.count; i++)
        fits = normalized.at[i] == x->shape[x->ndim - normalized.count + i];
    if (!fits)
        return tn_fail(TN_ERR_RUNTIME, "normalized_shape %s: x %s does not end with it",
                       tn__common_text(text, normalized),
                       tn__common_text(text_x, tn__common_shape(x)));
    for (int64_t k = 1; k < infer->n_in; k++) {
        const tn_view *part = infer->in[k];

        fits = part == NULL || part->ndim == normalized.count;
        for (int64_t i = 0; fits && part != NULL && i < normalized.count; i++)
            fits = part->shape[i] == normalized.at[i];
        if (!fits)
            return tn_fail(
                TN_ERR_RUNTIME, "%s %s has to have normalized_shape %s", k == 1 ? "weight" : "bias",
                tn__common_text(text_x, tn__common_shape(part)), tn__common_text(text, normalized));
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

static tn_status layer_norm_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                      tn_tensor **out)
{
    const tn_layer_norm_options *o = options;
    tn_standardize_options s = TN_STANDARDIZE_OPTIONS;
    int64_t dims[TN_MAX_DIMS];
    tn_tensor *mean, *var;

    (void)n_in;
    s.eps = o->eps;
    return tn_standardize(in[0], in[1], in[2], last_dims(o->normalized_shape.count, dims), &s, out,
                          &mean, &var);
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

static tn_status rms_norm_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                    tn_tensor **out)
{
    const tn_rms_norm_options *o = options;
    tn_dtype dtype = tn_tensor_dtype(in[0]);
    double eps = tn__given_number(o->eps) ? o->eps : step_of(wide(dtype));
    int64_t dims[TN_MAX_DIMS];
    tn_tensor *x = as_wide(in[0]), *y;

    (void)n_in;
    y = tn_mul(x,
               spread_of(mean_of(tn_square(x), last_dims(o->normalized_shape.count, dims)), eps));
    if (in[1] != TN_NONE)
        y = tn_mul(y, as_wide(in[1]));
    return tn__common_given(out, y == NULL ? NULL : tn_cast(y, dtype));
}

static tn_status local_response_norm_infer(tn_infer *infer)
{
    const tn_local_response_norm_options *o = infer->options;
    const tn_view *x = infer->in[0];
    char text[TN__TEXT];

    if (x->ndim < 3)
        return tn_fail(TN_ERR_VALUE, "x %s has to have 3 dimensions or more, [N, C, ...]",
                       tn__common_text(text, tn__common_shape(x)));
    if (o->neighbours < 1)
        return tn_fail(TN_ERR_VALUE, "neighbours %lld: at least 1 is taken",
                       (long long)o->neighbours);
    return tn__common_open(infer);
}

static tn_status local_response_norm_decompose(tn_tensor *const *in, int64_t n_in,
                                               const void *options, tn_tensor **out)
{
    const tn_local_response_norm_options *o = options;
    int32_t ndim = tn_tensor_ndim(in[0]);
    int64_t sizes[2 * TN_MAX_DIMS] = { 0 }, last = -1, pairs = ndim - 1;
    tn_mean_options over = TN_MEAN_OPTIONS;
    tn_tensor *around;

    (void)n_in;
    sizes[2 * (pairs - 1)] = o->neighbours / 2;
    sizes[2 * (pairs - 1) + 1] = (o->neighbours - 1) / 2;
    over.dims = (tn_ints){ &last, 1 };
    around = tn_mean(tn_unfold(tn_pad(tn_square(in[0]), (tn_ints){ sizes, 2 * pairs }, NULL), 1,
                               o->neighbours, 1),
                     &over);
    return tn__common_given(
        out,
        tn_div(in[0], tn_pow_scalar(tn_add_scalar(tn_mul_scalar(around, o->alpha), o->k), o->beta),
               NULL));
}

const tn_op_def tn__op_standardize = { TN_HEAD(tn_op_def), TN_SCHEMA_STANDARDIZE,
                                       .infer = standardize_infer, .derive = standardize_derive,
                                       .decompose = standardize_decompose };
#define COMPOSED(name, NAME, infer_)                                                               \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME, .infer = infer_,       \
                                      .decompose = name##_decompose };
COMPOSED(standardize_grad, STANDARDIZE_GRAD, standardize_grad_infer)
COMPOSED(batch_norm, BATCH_NORM, image_infer)
COMPOSED(instance_norm, INSTANCE_NORM, image_infer)
COMPOSED(layer_norm, LAYER_NORM, layer_norm_infer)
COMPOSED(group_norm, GROUP_NORM, group_norm_infer)
COMPOSED(rms_norm, RMS_NORM, rms_norm_infer)
COMPOSED(local_response_norm, LOCAL_RESPONSE_NORM, local_response_norm_infer)

/* SPDX-License-Identifier: MIT
 *
 * Sampling of images at the points of a grid. Positions are computed with operators, so that the
 * grid gets gradients. Pixels are gathered from the image with all its dimensions after N and C
 * merged. */
#include "formula.h"
#include <math.h>

enum { MOST = 3, TAPS = 4 };

static tn_tensor *scaled(tn_tensor *x, double factor, double more)
{
    x = factor == 1 ? x : tn_mul_scalar(x, factor);
    return more == 0 ? x : tn_add_scalar(x, more);
}

/* Gathers pixels of an image [N, C, all] at int64 positions [N, places]. The result is [N, C,
 * places]. */
static tn_tensor *taken(tn_tensor *flat, tn_tensor *at)
{
    tn_ints image = flat == NULL ? (tn_ints){ NULL, 0 } : tn_tensor_shape(flat);

    if (flat == NULL || at == NULL)
        return NULL;
    return tn_gather(
        flat,
        tn_expand(tn_unsqueeze(at, 1), TN_SHAPE(image.at[0], image.at[1], tn_tensor_size(at, 1))),
        2);
}

/* ---- affine_grid ---- */

static tn_status affine_grid_infer(tn_infer *infer)
{
    const tn_affine_grid_options *o = infer->options;
    const tn_view *theta = infer->in[0];
    int64_t dims = o->output_size.count - 2;
    char text[TN__TEXT], text_s[TN__TEXT];
    bool fits = (dims == 2 || dims == 3) && theta->ndim == 3 && theta->shape[1] == dims &&
                theta->shape[2] == dims + 1 && theta->shape[0] == o->output_size.at[0];

    for (int64_t d = 1; fits && d < o->output_size.count; d++)
        fits = o->output_size.at[d] > 0;
    if (!fits)
        return tn_fail(
            TN_ERR_VALUE,
            "theta or output_size: wrong shape, got %s and %s; expected [N, 2, 3] with [N, C, H, "
            "W], or [N, 3, 4] with [N, C, D, H, W], sizes from C on above 0",
            tn__common_text(text, tn__common_shape(theta)),
            tn__common_text(text_s, o->output_size));
    return tn__common_open(infer);
}

static tn_status affine_grid_decompose(const tn_decompose *call)
{
    const tn_affine_grid_options *o = call->options;
    int64_t dims = o->output_size.count - 2, shape[MOST + 2], one[MOST];
    tn_tensor *axes[MOST + 1], *base, *y;
    tn_linspace_options same = TN_LINSPACE_OPTIONS;
    same.dtype = tn_tensor_dtype(call->in[0]);
    shape[dims] = 1;
    memcpy(shape, o->output_size.at + 2, (size_t)dims * sizeof *shape);
    for (int64_t d = 0; d < dims; d++) {
        int64_t size = shape[dims - 1 - d];
        tn_tensor *axis = tn_linspace(call->in[0], size > 1 ? -1 : 0, size > 1 ? 1 : 0, size,
                                      same.dtype);

        if (!o->align_corners)
            axis = scaled(axis, (double)(size - 1) / (double)size, 0);
        for (int64_t i = 0; i < dims; i++)
            one[i] = i == dims - 1 - d ? size : 1;
        axes[d] = tn_unsqueeze(
            tn_expand(tn_reshape(axis, (tn_ints){ one, dims }), (tn_ints){ shape, dims }), -1);
        if (axes[d] == NULL)
            return tn_error_last_code();
    }
    axes[dims] = tn_expand(number(call->in[0], 1), (tn_ints){ shape, dims + 1 });
    base = tn_reshape(tn_cat(axes, dims + 1, -1), TN_SHAPE(1, -1, dims + 1));
    y = tn_matmul(base, tn_transpose(call->in[0], 1, 2));
    memmove(shape + 1, shape, (size_t)dims * sizeof *shape);
    shape[0] = o->output_size.at[0];
    shape[dims + 1] = dims;
    return tn__common_given(call->out, tn_reshape(y, (tn_ints){ shape, dims + 2 }));
}

/* ---- grid_sample ---- */

enum padding { ZEROS, BORDER, REFLECTION };

struct sampler {
    tn_tensor *flat; /* the image with merged dimensions, [N, C, all] */
    /* size[0] is the last dimension, W, because grid[..., 0] is the x coordinate. */
    int64_t dims, size[MOST];
    enum padding padding;
    bool corners;
};

static enum padding padding_of(const char *name)
{
    return is(name, "border") ? BORDER : is(name, "reflection") ? REFLECTION : ZEROS;
}

static tn_status grid_sample_infer(tn_infer *infer)
{
    const tn_grid_sample_options *o = infer->options;
    const tn_view *x = infer->in[0], *grid = infer->in[1];
    char text[TN__TEXT], text_g[TN__TEXT];
    bool fits = (x->ndim == 4 || x->ndim == 5) && grid->ndim == x->ndim &&
                grid->shape[0] == x->shape[0] && grid->shape[x->ndim - 1] == x->ndim - 2;

    for (int32_t d = 2; fits && d < x->ndim; d++)
        fits = x->shape[d] > 0;
    if (!fits)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x or grid: wrong shape, got %s and %s; expected [N, C, H, W] with [N, H', W', 2], or "
            "[N, C, D, H, W] with [N, D', H', W', 3], no image of size 0",
            tn__common_text(text, tn__common_shape(x)),
            tn__common_text(text_g, tn__common_shape(grid)));
    if (tn__common_same_dtype(x, "x", grid, "grid") != TN_OK)
        return tn_error_last_code();
    if (!is(o->mode, "bilinear") && !is(o->mode, "nearest") && !is(o->mode, "bicubic"))
        return tn_fail(TN_ERR_VALUE, "mode: unknown, got %q; expected bilinear, nearest or bicubic",
                       o->mode);
    if (!is(o->padding_mode, "zeros") && padding_of(o->padding_mode) == ZEROS)
        return tn_fail(TN_ERR_VALUE,
                       "padding_mode: unknown, got %q; expected zeros, border or reflection",
                       o->padding_mode);
    return tn__common_open(infer);
}

/* Returns x clamped to [0, most]. The gradient of clamped elements is 0. NaN becomes 0 and has no
 * gradient. */
static tn_tensor *clipped(tn_tensor *x, double most)
{
    return tn_where(tn_gt(x, number(x, 0)), tn_where(tn_lt(x, number(x, most)), x, number(x, most)),
                    number(x, 0));
}

/* Reflects x back and forth between low and low + span. */
static tn_tensor *mirrored(tn_tensor *x, double low, double span)
{
    tn_tensor *away, *flips, *rest, *odd;

    if (span <= 0)
        return tn_mul_scalar(x, 0);
    away = tn_abs(tn_add_scalar(x, -low));
    flips = tn_floor(tn_mul_scalar(tn_detach(away), 1 / span));
    rest = minus(away, tn_mul_scalar(flips, span));
    odd = tn_gt(tn_remainder(flips, number(flips, 2)), number(flips, 0.5));
    return tn_where(odd, scaled(rest, -1, span + low), scaled(rest, 1, low));
}

/* Applies the padding mode to coordinates along dimension d. */
static tn_tensor *padded(const struct sampler *s, tn_tensor *x, int64_t d)
{
    double size = (double)s->size[d];

    if (s->padding == ZEROS)
        return x;
    if (s->padding == REFLECTION)
        x = s->corners ? mirrored(x, 0, size - 1) : mirrored(x, -0.5, size);
    return clipped(x, size - 1);
}

/* Pixels at integer coordinates, given as one tensor for each dimension. With padding mode zeros,
 * pixels outside the image are 0. */
static tn_tensor *elements(const struct sampler *s, tn_tensor *const *place)
{
    tn_tensor *at = NULL, *inside = NULL, *y;
    int64_t step = 1;

    for (int64_t d = 0; d < s->dims; d++) {
        tn_tensor *p = place[d], *part, *fits;
        double most = (double)(s->size[d] - 1);

        fits = tn_logical_and(tn_ge(p, number(p, 0)), tn_le(p, number(p, most)));
        part = tn_cast(clipped(tn_nan_to_num(p, 0), most), TN_I64);
        if (step != 1)
            part = tn_mul_scalar(part, step);
        at = d == 0 ? part : plus(at, part);
        inside = d == 0 ? fits : tn_logical_and(inside, fits);
        step = tn__common_times(step, s->size[d]);
    }
    y = taken(s->flat, at);
    return s->padding == ZEROS && y != NULL
               ? tn_mul(y, tn_cast(tn_unsqueeze(inside, 1), tn_tensor_dtype(y)))
               : y;
}

static tn_tensor *linear_sample(const struct sampler *s, tn_tensor *const *place)
{
    tn_tensor *low[MOST], *share[MOST], *y = NULL;

    for (int64_t d = 0; d < s->dims; d++) {
        low[d] = tn_floor(tn_detach(place[d]));
        share[d] = minus(place[d], low[d]);
    }
    for (int corner = 0; corner < 1 << s->dims; corner++) {
        tn_tensor *at[MOST], *weight = NULL, *piece;

        for (int64_t d = 0; d < s->dims; d++) {
            bool high = corner >> d & 1;
            tn_tensor *part = high ? share[d] : scaled(share[d], -1, 1);

            at[d] = high ? tn_add_scalar(low[d], 1) : low[d];
            weight = d == 0 ? part : tn_mul(weight, part);
        }
        piece = tn_mul(elements(s, at), tn_unsqueeze(weight, 1));
        y = corner == 0 ? piece : plus(y, piece);
        if (y == NULL)
            return NULL;
    }
    return y;
}

/* Returns the weight of tap k in Keys' cubic convolution with a = -3/4, for a point at the fraction
 * t between taps 1 and 2. */
static tn_tensor *cubic_share(tn_tensor *t, int k)
{
    const double a = -0.75;
    tn_tensor *d = k == 0 ? tn_add_scalar(t, 1) : k == 1 ? t : scaled(t, -1, k - 1);

    if (k == 1 || k == 2) /* ((a + 2) d - (a + 3)) d^2 + 1 */
        return tn_add_scalar(tn_mul(scaled(d, a + 2, -(a + 3)), tn_mul(d, d)), 1);
    return tn_add_scalar(/* ((a d - 5 a) d + 8 a) d - 4 a */
                         tn_mul(tn_add_scalar(tn_mul(scaled(d, a, -5 * a), d), 8 * a), d), -4 * a);
}

/* Four elements along each dimension: 16 of an image, 64 of a volume. */
static tn_tensor *cubic_sample(const struct sampler *s, tn_tensor *const *place)
{
    tn_tensor *low[MOST], *weight[MOST][TAPS], *at[MOST], *y = NULL;
    int count = 1;

    for (int64_t d = 0; d < s->dims; d++, count *= TAPS) {
        tn_tensor *share;

        low[d] = tn_floor(tn_detach(place[d]));
        share = minus(place[d], low[d]);
        for (int k = 0; k < TAPS; k++)
            weight[d][k] = cubic_share(share, k);
    }
    for (int k = 0; k < count; k++) {
        tn_tensor *product = NULL, *piece;
        int rest = k;

        for (int64_t d = 0; d < s->dims; d++, rest /= TAPS) {
            int tap = rest % TAPS;

            at[d] = tn_round(padded(s, tn_add_scalar(low[d], tap - 1), d));
            product = d == 0 ? weight[d][tap] : tn_mul(product, weight[d][tap]);
        }
        piece = tn_mul(elements(s, at), tn_unsqueeze(product, 1));
        y = k == 0 ? piece : plus(y, piece);
        if (y == NULL)
            return NULL;
    }
    return y;
}

static tn_status grid_sample_decompose(const tn_decompose *call)
{
    const tn_grid_sample_options *o = call->options;
    tn_dtype dtype = tn_tensor_dtype(call->in[0]);
    bool half = tn_dtype_size(dtype) < 4;
    tn_tensor *x = half ? tn_cast(call->in[0], TN_F32) : call->in[0], *y;
    tn_tensor *grid = half ? tn_cast(call->in[1], TN_F32) : call->in[1], *place[MOST];
    struct sampler s = { .padding = padding_of(o->padding_mode), .corners = o->align_corners };
    int64_t shape[MOST + 2];
    if (x == NULL || grid == NULL)
        return tn_error_last_code();
    s.flat = tn_flatten(x, 2, -1);
    s.dims = tn_tensor_ndim(x) - 2;
    for (int64_t d = 0; d < s.dims; d++) {
        double size;

        s.size[d] = tn_tensor_size(x, -1 - d);
        size = (double)s.size[d];
        place[d] = tn_flatten(tn_select(grid, -1, d), 1, -1);
        place[d] = o->align_corners ? scaled(place[d], (size - 1) / 2, (size - 1) / 2)
                                    : scaled(place[d], size / 2, (size - 1) / 2);
        if (!is(o->mode, "bicubic"))
            place[d] = padded(&s, place[d], d);
        if (is(o->mode, "nearest"))
            place[d] = tn_round(place[d]);
        if (place[d] == NULL)
            return tn_error_last_code();
    }
    y = is(o->mode, "nearest")   ? elements(&s, place)
        : is(o->mode, "bicubic") ? cubic_sample(&s, place)
                                 : linear_sample(&s, place);
    for (int64_t d = 0; d < s.dims + 2; d++)
        shape[d] = d < 2 ? tn_tensor_size(x, d) : tn_tensor_size(grid, d - 1);
    y = tn_reshape(y, (tn_ints){ shape, s.dims + 2 });
    return tn__common_given(call->out, half ? tn_cast(y, dtype) : y);
}

TN__OP(affine_grid, .infer = affine_grid_infer, .decompose = affine_grid_decompose);
TN__OP(grid_sample, .infer = grid_sample_infer, .decompose = grid_sample_decompose);

/* SPDX-License-Identifier: MIT
 *
 * Resizing of images, one dimension after the other. Every new element is a weighted sum of a few
 * old elements; their indices and weights are computed on the host. Mode area is adaptive average
 * pooling. */
#include "channels.h"

#include <math.h>

enum { TAPS = 4, MOST = 3 /* largest number of dimensions after N and C */ };

enum mode { NEAREST, EXACT, LINEAR, CUBIC, AREA };

static const struct {
    const char *name;
    enum mode mode;
    int32_t dims; /* required number of dimensions after N and C; 0: one to three */
} modes[] = { { "nearest", NEAREST, 0 }, { "nearest-exact", EXACT, 0 }, { "linear", LINEAR, 1 },
              { "bilinear", LINEAR, 2 }, { "bicubic", CUBIC, 2 },       { "trilinear", LINEAR, 3 },
              { "area", AREA, 0 } };

static tn_status find_mode(const char *name, int32_t dims, enum mode *mode)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (name == NULL || strcmp(name, modes[i].name) != 0)
            continue;
        *mode = modes[i].mode;
        if (modes[i].dims == 0 || modes[i].dims == dims)
            return TN_OK;
        return tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "x: wrong number of dimensions, got %d after [N, C]; expected %d with mode %s",
            (int)dims, (int)modes[i].dims, name);
    }
    return tn_fail(
        TN_ERR_NOT_IMPLEMENTED,
        "mode: unknown, got %q; expected nearest, nearest-exact, linear, bilinear, bicubic, "
        "trilinear or area",
        name);
}

/* Returns the scale factor along dimension d, or NAN if the ratio of the sizes is used instead. */
static double factor_of(const tn_interpolate_options *o, int64_t d)
{
    tn_floats given = o->scale_factor;

    if (given.count < 1 || o->recompute_scale_factor)
        return NAN;
    return given.at[given.count == 1 ? 0 : d];
}

/* Computes the new sizes of the dimensions after N and C, and checks them. */
static tn_status new_sizes(const tn_interpolate_options *o, tn_ints shape, int64_t *sizes)
{
    int64_t dims = shape.count - 2;
    tn_floats factors = o->scale_factor;
    char text[TN__TEXT], text_s[TN__TEXT];

    if (dims < 1 || dims > MOST || (o->output_size.count != dims && o->output_size.count > 0))
        return tn_fail(
            TN_ERR_VALUE,
            "x or output_size: wrong shape, got %s and %s; expected [N, C, ...] with one to three "
            "more dimensions, and a size for each",
            tn__common_text(text, shape), tn__common_text(text_s, o->output_size));
    if (factors.count > 1 && factors.count != dims)
        return tn_fail(
            TN_ERR_VALUE,
            "scale_factor: wrong count, got %d for x %s; expected one, or one for each of the %d "
            "dimensions after [N, C]",
            (int)factors.count, tn__common_text(text, shape), (int)dims);
    if (o->output_size.count < 1 && factors.count < 1)
        return tn_fail(TN_ERR_VALUE,
                       "output_size or scale_factor: both missing; expected one of them");
    if (o->recompute_scale_factor && factors.count < 1)
        return tn_fail(TN_ERR_VALUE,
                       "recompute_scale_factor: not supported without scale_factor, got sizes "
                       "only; expected recompute_scale_factor=False");
    for (int64_t i = 0; i < factors.count; i++)
        if (!(factors.at[i] > 0) || isinf(factors.at[i]))
            return tn_fail(TN_ERR_VALUE,
                           "scale_factor: out of range, got %g; expected a finite number above 0",
                           factors.at[i]);
    for (int64_t d = 0; d < dims; d++) {
        double scaled = factors.count < 1 ? 0
                                          : floor((double)shape.at[2 + d] *
                                                  factors.at[factors.count == 1 ? 0 : d]);

        if (o->output_size.count < 1 && !(scaled < (double)INT32_MAX))
            return tn_fail(
                TN_ERR_VALUE,
                "scale_factor: too large, got %g for x %s; expected a result with sizes below %lld",
                factors.at[factors.count == 1 ? 0 : d], tn__common_text(text, shape),
                (long long)INT32_MAX);
        sizes[d] = o->output_size.count < 1 ? (int64_t)scaled : o->output_size.at[d];
        if (sizes[d] > INT32_MAX)
            return tn_fail(TN_ERR_VALUE,
                           "output_size: out of range, got %s; expected sizes from 1 to %lld",
                           tn__common_text(text_s, o->output_size), (long long)INT32_MAX);
        if (shape.at[2 + d] < 1 || sizes[d] < 1)
            return tn_fail(
                TN_ERR_RUNTIME,
                "x or result: empty, got x %s and result sizes %s; expected sizes of at least 1",
                tn__common_text(text, shape), tn__common_text(text_s, (tn_ints){ sizes, d + 1 }));
    }
    return TN_OK;
}

static tn_status interpolate_infer(tn_infer *infer)
{
    const tn_interpolate_options *o = infer->options;
    tn_ints shape = tn__common_shape(infer->in[0]);
    int64_t sizes[MOST];
    enum mode mode;
    tn_status status = new_sizes(o, shape, sizes);

    if (status == TN_OK)
        status = find_mode(o->mode, (int32_t)shape.count - 2, &mode);
    if (status != TN_OK)
        return status;
    if (o->align_corners && mode != LINEAR && mode != CUBIC)
        return tn_fail(TN_ERR_VALUE,
                       "align_corners: not supported with this mode, got %s; expected linear, "
                       "bilinear, trilinear or bicubic, or align_corners=False",
                       o->mode);
    return tn__common_open(infer);
}

/* Returns whether a dimension that keeps its size is copied, even if the scale factor asks for
 * other positions. As in PyTorch on a CPU, linear modes and nearest-exact always do this, nearest
 * only in two dimensions. */
static bool keeps(enum mode mode, int64_t dims)
{
    return mode == LINEAR || mode == EXACT || (mode == NEAREST && dims == 2);
}

static int64_t within(int64_t place, int64_t size)
{
    return place < 0 ? 0 : place >= size ? size - 1 : place;
}

/* The weights of Keys' cubic convolution with a = -3/4, as in PyTorch. */
static void cubic_shares(double t, double *share)
{
    const double a = -0.75;

    for (int k = 0; k < TAPS; k++) {
        double d = fabs(t - (k - 1));

        share[k] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1
                          : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
}

/* Returns a coordinate that an int64 holds: of a scale near 0 it is infinite, or 0 * infinity. */
static double bounded(double at)
{
    return at != at ? 0 : fmin(fmax(at, -0x1p52), 0x1p52);
}

/* Computes which old elements (`place`) with which weights (`share`) make up new element i. Returns
 * their number. */
static int taps_of(enum mode mode, int64_t i, int64_t from, int64_t to, bool corners, double scale,
                   int64_t *place, double *share)
{
    double ratio = tn__given_number(scale) ? 1 / scale : (double)from / (double)to, at;

    if (mode == NEAREST || mode == EXACT) {
        /* PyTorch computes these products in float32. */
        float product = mode == NEAREST ? (float)i * (float)ratio
                                        : ((float)i + 0.5F) * (float)ratio;

        place[0] = within((int64_t)floor(bounded((double)product)), from);
        share[0] = 1;
        return 1;
    }
    if (corners)
        at = to > 1 ? (double)i * (double)(from - 1) / (double)(to - 1) : 0;
    else
        at = ((double)i + 0.5) * ratio - 0.5;
    at = bounded(at);
    if (mode == LINEAR) {
        at = at < 0 ? 0 : at;
        place[0] = within((int64_t)floor(at), from);
        place[1] = within(place[0] + 1, from);
        share[1] = at - (double)place[0];
        share[1] = share[1] > 1 ? 1 : share[1];
        share[0] = 1 - share[1];
        return 2;
    }
    for (int k = 0; k < TAPS; k++)
        place[k] = within((int64_t)floor(at) - 1 + k, from);
    cubic_shares(at - floor(at), share);
    return TAPS;
}

static tn_tensor *along(tn_tensor *x, int64_t dim, int64_t to, enum mode mode, bool corners,
                        double scale)
{
    int64_t from = tn_tensor_size(x, dim), row[TAPS], shape[TN_MAX_DIMS];
    double part[TAPS], *shares = tn_calloc((size_t)to, TAPS * sizeof *shares);
    int64_t *places = tn_calloc((size_t)to, TAPS * sizeof *places);
    int count = 0;
    tn_tensor *y = NULL;
    tn_dtype wide = tn_tensor_dtype(x) == TN_F64 ? TN_F64 : TN_F32;

    if (shares == NULL || places == NULL) {
        tn_free(shares);
        tn_free(places);
        return NULL;
    }
    for (int64_t i = 0; i < to; i++) {
        count = taps_of(mode, i, from, to, corners, scale, row, part);
        for (int k = 0; k < count; k++) {
            places[k * to + i] = row[k];
            if (wide == TN_F64)
                shares[k * to + i] = part[k];
            else
                ((float *)(void *)shares)[k * to + i] = (float)part[k];
        }
    }
    for (int32_t d = 0; d < tn_tensor_ndim(x); d++)
        shape[d] = d == dim ? to : 1;
    for (int k = 0; k < count; k++) {
        tn_tensor *piece = tn_index_select(x, tn__common_placed(places + k * to, to, TN_I64, x),
                                           dim);

        if (count > 1) {
            const char *own = (const char *)shares + (size_t)(k * to) * tn_dtype_size(wide);

            piece = tn_mul(piece, tn_cast(tn_reshape(tn__common_placed(own, to, wide, x),
                                                     (tn_ints){ shape, tn_tensor_ndim(x) }),
                                          tn_tensor_dtype(x)));
        }
        y = k == 0 ? piece : tn_add(y, piece);
        if (y == NULL)
            break;
    }
    tn_free(shares);
    tn_free(places);
    return y;
}

static tn_tensor *pooled(tn_tensor *x, tn_ints sizes)
{
    switch (sizes.count) {
    case 1: return tn_adaptive_avg_pool1d(x, sizes);
    case 2: return tn_adaptive_avg_pool2d(x, sizes);
    default: return tn_adaptive_avg_pool3d(x, sizes);
    }
}

static tn_status interpolate_decompose(const tn_decompose *call)
{
    const tn_interpolate_options *o = call->options;
    tn_dtype dtype = tn_tensor_dtype(call->in[0]);
    bool half = tn_dtype_size(dtype) < 4;
    bool last = tn__channels_image(tn_tensor_view(call->in[0]));
    tn_tensor *x = last ? tn__channels_moved(call->in[0]) : call->in[0];
    tn_tensor *y = half ? tn_cast(x, TN_F32) : x;
    enum mode mode = NEAREST;
    int64_t sizes[MOST], ndim = tn_tensor_ndim(call->in[0]);
    if (find_mode(o->mode, tn_tensor_ndim(call->in[0]) - 2, &mode) != TN_OK ||
        new_sizes(o, tn_tensor_shape(call->in[0]), sizes) != TN_OK)
        return tn_error_last_code();
    if (mode == AREA)
        return tn__common_given(call->out, pooled(call->in[0], (tn_ints){ sizes, ndim - 2 }));
    for (int64_t d = ndim - 3; d >= 0 && y != NULL; d--)
        if (sizes[d] != tn_tensor_size(call->in[0], 2 + d) || !keeps(mode, ndim - 2))
            y = along(y, last ? tn__channels_place(2 + d, ndim) : 2 + d, sizes[d], mode,
                      o->align_corners, factor_of(o, d));
    if (y == x)
        y = tn_copy(y);
    y = half ? tn_cast(y, dtype) : y;
    return tn__common_given(call->out, last ? tn__channels_back(y) : y);
}

/* ---- pixel_shuffle, pixel_unshuffle, channel_shuffle ---- */

static tn_status image_infer(tn_infer *infer, int64_t factor, bool down)
{
    const tn_view *x = infer->in[0];
    char text[TN__TEXT];
    bool fits = x->ndim >= 3 && factor > 0 && factor <= INT32_MAX; /* its square fits int64 */

    if (fits && down)
        fits = x->shape[x->ndim - 1] % factor == 0 && x->shape[x->ndim - 2] % factor == 0;
    else if (fits)
        fits = x->shape[x->ndim - 3] % (factor * factor) == 0;
    return fits ? tn__common_open(infer)
                : tn_fail(TN_ERR_RUNTIME, "x or factor: wrong size, got %s and %lld; expected %s",
                          tn__common_text(text, tn__common_shape(x)), (long long)factor,
                          down ? "a divisor of H and W of x [..., C, H, W]"
                               : "a factor whose square divides C of x [..., C, H, W]");
}

/* Splits C, H, W of `from` [..., C, H, W] into the `count` sizes `last`, permutes these by `order`,
 * and merges them into the three sizes `after`. The first `channels` sizes after the permutation
 * are those of C. */
static tn_tensor *reordered(tn_tensor *from, const int64_t *last, int64_t count,
                            const int64_t *order, int64_t channels, const int64_t *after);

/* Like reordered(), for an x with so many dimensions that the split has more than a tensor can
 * have: merges the dimensions before C. */
static tn_tensor *one_batch(tn_tensor *x, const int64_t *last, int64_t count, const int64_t *order,
                            int64_t channels, const int64_t *after)
{
    int64_t shape[TN_MAX_DIMS], ndim = tn_tensor_ndim(x);
    tn_tensor *y;

    for (int64_t d = 0; d < ndim; d++)
        shape[d] = d < ndim - 3 ? tn_tensor_size(x, d) : after[d - (ndim - 3)];
    y = reordered(tn_reshape(x, TN_SHAPE(tn__common_count((tn_ints){ shape, ndim - 3 }),
                                         tn_tensor_size(x, -3), tn_tensor_size(x, -2),
                                         tn_tensor_size(x, -1))),
                  last, count, order, channels, after);
    return tn_reshape(y, (tn_ints){ shape, ndim });
}

static tn_tensor *reordered(tn_tensor *from, const int64_t *last, int64_t count,
                            const int64_t *order, int64_t channels, const int64_t *after)
{
    bool image = tn__channels_image(tn_tensor_view(from)) && tn_tensor_ndim(from) == 4;
    int64_t shape[TN_MAX_DIMS], dims[TN_MAX_DIMS];
    tn_tensor *x = from;
    int64_t before = tn_tensor_ndim(x) - 3;

    if (before + count > TN_MAX_DIMS)
        return one_batch(x, last, count, order, channels, after);
    for (int64_t d = 0; d < before; d++) {
        shape[d] = tn_tensor_size(x, d);
        dims[d] = d;
    }
    for (int64_t d = 0; d < count; d++) {
        shape[before + d] = last[d];
        dims[before + d] = before + order[image ? (d + channels) % count : d];
    }
    x = tn_permute(tn_reshape(x, (tn_ints){ shape, before + count }),
                   (tn_ints){ dims, before + count });
    for (int64_t d = 0; d < 3; d++)
        shape[before + d] = after[image ? (d + 1) % 3 : d];
    x = tn__common_apart(tn_reshape(x, (tn_ints){ shape, before + 3 }), from);
    return image ? tn__channels_back(x) : x;
}

static tn_status pixel_shuffle_infer(tn_infer *infer)
{
    const tn_pixel_shuffle_options *o = infer->options;

    return image_infer(infer, o->upscale_factor, false);
}

static tn_status pixel_shuffle_decompose(const tn_decompose *call)
{
    static const int64_t order[] = { 0, 3, 1, 4, 2 };
    const tn_pixel_shuffle_options *o = call->options;
    int64_t r = o->upscale_factor, c = tn_tensor_size(call->in[0], -3),
            h = tn_tensor_size(call->in[0], -2), w = tn_tensor_size(call->in[0], -1);
    int64_t last[] = { c / (r * r), r, r, h, w },
            after[] = { c / (r * r), tn__common_times(h, r), tn__common_times(w, r) };
    return tn__common_given(call->out, reordered(call->in[0], last, 5, order, 1, after));
}

static tn_status pixel_unshuffle_infer(tn_infer *infer)
{
    const tn_pixel_unshuffle_options *o = infer->options;

    return image_infer(infer, o->downscale_factor, true);
}

static tn_status pixel_unshuffle_decompose(const tn_decompose *call)
{
    static const int64_t order[] = { 0, 2, 4, 1, 3 };
    const tn_pixel_unshuffle_options *o = call->options;
    int64_t r = o->downscale_factor, c = tn_tensor_size(call->in[0], -3),
            h = tn_tensor_size(call->in[0], -2), w = tn_tensor_size(call->in[0], -1);
    int64_t last[] = { c, h / r, r, w / r, r },
            after[] = { tn__common_times(c, r * r), h / r, w / r };
    return tn__common_given(call->out, reordered(call->in[0], last, 5, order, 3, after));
}

static tn_status channel_shuffle_infer(tn_infer *infer)
{
    const tn_channel_shuffle_options *o = infer->options;
    const tn_view *x = infer->in[0];
    char text[TN__TEXT];

    if (x->ndim < 3 || o->groups < 1 || x->shape[1] % o->groups != 0)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x or groups: wrong size, got %s and %lld; expected a divisor of the channels of [N, "
            "C, ...]",
            tn__common_text(text, tn__common_shape(x)), (long long)o->groups);
    return tn__common_open(infer);
}

static tn_status channel_shuffle_decompose(const tn_decompose *call)
{
    const tn_channel_shuffle_options *o = call->options;
    tn_ints shape = tn_tensor_shape(call->in[0]);
    int64_t each = shape.at[1] / o->groups, rest = 1;
    tn_tensor *y;

    if (tn__channels_image(tn_tensor_view(call->in[0]))) {
        tn_tensor *x = tn__channels_moved(call->in[0]);

        for (int64_t d = 0; d < shape.count; d++)
            rest = d == 1 ? rest : tn__common_times(rest, shape.at[d]);
        y = tn_transpose(tn_reshape(x, TN_SHAPE(rest, o->groups, each)), 1, 2);
        y = tn__common_apart(tn_reshape(y, tn_tensor_shape(x)), x);
        return tn__common_given(call->out, tn__channels_back(y));
    }
    for (int64_t d = 2; d < shape.count; d++)
        rest = tn__common_times(rest, shape.at[d]);
    y = tn_reshape(call->in[0], TN_SHAPE(shape.at[0], o->groups, each, rest));
    y = tn_reshape(tn_transpose(y, 1, 2), shape);
    return tn__common_given(call->out, tn__common_apart(y, call->in[0]));
}

TN__OP(interpolate, .infer = interpolate_infer, .decompose = interpolate_decompose);
TN__OP(pixel_shuffle, .infer = pixel_shuffle_infer, .decompose = pixel_shuffle_decompose);
TN__OP(pixel_unshuffle, .infer = pixel_unshuffle_infer, .decompose = pixel_unshuffle_decompose);
TN__OP(channel_shuffle, .infer = channel_shuffle_infer, .decompose = channel_shuffle_decompose);

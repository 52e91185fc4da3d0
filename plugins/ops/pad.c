/* SPDX-License-Identifier: MIT
 *
 * Padding at the ends of dimensions. */
#include "channels.h"

static bool is_mode(const char *mode, const char *name)
{
    return mode != NULL && strcmp(mode, name) == 0;
}

/* The largest padding at one end; sums of sizes cannot overflow with it. */
#define FAR (INT64_MAX / 4)

static tn_status pad_infer(tn_infer *infer)
{
    const tn_pad_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    bool constant = is_mode(o->mode, "constant"), reflect = is_mode(o->mode, "reflect");
    bool circular = is_mode(o->mode, "circular");
    char text[TN__TEXT], text_x[TN__TEXT];

    if (!constant && !reflect && !circular && !is_mode(o->mode, "replicate"))
        return tn_fail(TN_ERR_VALUE,
                       "mode: unknown, got %q; expected constant, reflect, replicate or circular",
                       o->mode);
    if (!constant && !tn__scalar_is(o->value, 0))
        return tn_fail(
            TN_ERR_RUNTIME,
            "value: not supported with this mode, got mode %s, which repeats elements of "
            "x; expected mode constant, or the value 0",
            o->mode);
    if (o->sizes.count % 2 != 0 || o->sizes.count / 2 > x->ndim)
        return tn_fail(
            TN_ERR_RUNTIME,
            "sizes: wrong count, got %s; expected pairs (before, after), at most one for each "
            "dimension of x %s",
            tn__common_text(text, o->sizes), tn__common_text(text_x, tn__common_shape(x)));
    tn__common_plain(meta, tn_view_dtype(x), tn__common_shape(x));
    for (int64_t i = 0; i < o->sizes.count / 2; i++) {
        int32_t dim = x->ndim - 1 - (int32_t)i;
        int64_t before = o->sizes.at[2 * i], after = o->sizes.at[2 * i + 1], size = x->shape[dim];
        int64_t left;

        if (before > FAR || after > FAR || before < -FAR || after < -FAR)
            return tn_fail(TN_ERR_RUNTIME,
                           "sizes: out of range, got %s; expected %lld to %lld at each end",
                           tn__common_text(text, o->sizes), (long long)-FAR, (long long)FAR);
        left = size + (before < 0 ? before : 0) + (after < 0 ? after : 0);
        int64_t most = reflect ? left - 1 : circular ? left : size > 0 ? INT64_MAX : 0;

        if (!constant && ((before > 0 && before > most) || (after > 0 && after > most)))
            return tn_fail(
                TN_ERR_RUNTIME,
                "sizes: out of range, got %s with mode %s for dimension %d of x %s; expected less "
                "than the dimension's size (reflect), at most this size (circular), and no "
                "empty dimension",
                tn__common_text(text, o->sizes), o->mode, (int)dim,
                tn__common_text(text_x, tn__common_shape(x)));
        meta->shape[dim] = tn__common_plus(meta->shape[dim], before + after);
        if (!constant && !circular && (before != 0 || after != 0) && meta->shape[dim] < 1)
            return tn_fail(
                TN_ERR_RUNTIME,
                "sizes: out of range, got %s; expected sizes that leave at least one element in "
                "dimension %d of x %s",
                tn__common_text(text, o->sizes), (int)dim,
                tn__common_text(text_x, tn__common_shape(x)));
        if (meta->shape[dim] < 0 || tn__common_plus(size, before) < 0 ||
            tn__common_plus(size, after) < 0)
            return tn_fail(
                TN_ERR_RUNTIME,
                "sizes: out of range, got %s; expected sizes that remove at most the size of x %s",
                tn__common_text(text, o->sizes), tn__common_text(text_x, tn__common_shape(x)));
        if (constant && (before > 0 || after > 0) &&
            tn__scalar_fits(tn_view_dtype(x), o->value, "value") != TN_OK)
            return tn_error_last_code();
    }
    tn__channels_keep(meta, x);
    return TN_OK;
}

static tn_tensor *flipped(tn_tensor *x, int64_t dim)
{
    return x == NULL ? NULL : tn_flip(x, (tn_ints){ &dim, 1 });
}

/* Returns the `count` elements that are added at one end of `dim`. For `replicate`, x is the tensor
 * before negative padding cropped it. */
static tn_tensor *edge(tn_tensor *x, int64_t dim, int64_t count, bool front,
                       const tn_pad_options *o)
{
    int64_t size = tn_tensor_size(x, dim), shape[TN_MAX_DIMS];
    tn_ints row = { shape, tn_tensor_ndim(x) };

    for (int64_t d = 0; d < row.count; d++)
        shape[d] = d == dim ? count : tn_tensor_size(x, d);
    if (is_mode(o->mode, "constant"))
        return tn_tensor_full(row, o->value, tn_tensor_dtype(x), tn_tensor_device(x));
    if (is_mode(o->mode, "replicate"))
        return tn_expand(tn_narrow(x, dim, front ? 0 : size - 1, 1), row);
    if (is_mode(o->mode, "circular"))
        return tn_narrow(x, dim, front ? size - count : 0, count);
    return flipped(tn_narrow(x, dim, front ? 1 : size - 1 - count, count), dim);
}

static tn_tensor *padded(tn_tensor *x, int64_t dim, int64_t before, int64_t after,
                         const tn_pad_options *o)
{
    tn_tensor *parts[3], *whole = x;
    int64_t count = 0;

    if (before < 0 || after < 0) {
        int64_t first = before < 0 ? -before : 0, last = after < 0 ? -after : 0;

        x = tn_narrow(x, dim, first, tn_tensor_size(x, dim) - first - last);
        if (x == NULL)
            return NULL;
    }
    if (before > 0)
        parts[count++] = edge(is_mode(o->mode, "replicate") ? whole : x, dim, before, true, o);
    parts[count++] = x;
    if (after > 0)
        parts[count++] = edge(is_mode(o->mode, "replicate") ? whole : x, dim, after, false, o);
    return count == 1 ? x : tn_cat(parts, count, dim);
}

static tn_status pad_decompose(const tn_decompose *call)
{
    const tn_pad_options *o = call->options;
    bool last = tn__channels_image(tn_tensor_view(call->in[0]));
    tn_tensor *x = last ? tn__channels_moved(call->in[0]) : call->in[0], *y = x;
    int64_t ndim = tn_tensor_ndim(call->in[0]);

    for (int64_t i = 0; i < o->sizes.count / 2 && y != NULL; i++) {
        int64_t dim = ndim - 1 - i;

        y = padded(y, last ? tn__channels_place(dim, ndim) : dim, o->sizes.at[2 * i],
                   o->sizes.at[2 * i + 1], o);
    }
    y = tn__common_apart(y, x); /* sizes of 0 or below only narrow */
    return tn__common_given(call->out, last ? tn__channels_back(y) : y);
}
TN__OP(pad, .infer = pad_infer, .decompose = pad_decompose);

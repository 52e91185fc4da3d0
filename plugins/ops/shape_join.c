/* SPDX-License-Identifier: MIT
 *
 * Concatenation, repetition, flip and roll. */
#include "channels.h"

/* ---- cat, stack, repeat ---- */

static bool left_out(const tn_view *x)
{
    return x->ndim == 1 && x->shape[0] == 0;
}

/* Returns whether all inputs of cat have their channels last, or could have, and one surely has. */
static bool all_last(const tn_view *x, bool last, bool *image)
{
    if (left_out(x))
        return last;
    *image |= tn__channels_image(x);
    return last && tn__channels_are_last(x);
}

static tn_status cat_infer(tn_infer *infer)
{
    const tn_cat_options *o = infer->options;
    tn_meta *meta = &infer->out[0];
    const tn_view *first = NULL;
    char text[TN__TEXT], text_x[TN__TEXT];
    bool last = true, image = false;
    int32_t dim = 0;

    for (int64_t i = 0; i < infer->n_in; i++) {
        const tn_view *x = infer->in[i];
        bool fits = true;

        last = all_last(x, last, &image);

        if (x->ndim == 0)
            return tn_fail(TN_ERR_RUNTIME,
                           /* PyTorch's wording */
                           "zero-dimensional tensor (at position %lld) cannot be concatenated",
                           (long long)i);
        if (left_out(x))
            continue;
        if (first == NULL) {
            tn_status status = tn__common_dim(o->dim, x->ndim, &dim);

            if (status != TN_OK)
                return status;
            first = x;
            tn__common_plain(meta, infer->dtype, tn__common_shape(x));
            continue;
        }
        fits = x->ndim == first->ndim;
        for (int32_t d = 0; d < x->ndim && fits; d++)
            fits = d == dim || x->shape[d] == first->shape[d];
        if (!fits)
            return tn_fail(TN_ERR_RUNTIME,
                           /* PyTorch's wording */
                           "Sizes of tensors must match except in dimension %d: tensor %lld is %s, "
                           "the first one %s",
                           (int)dim, (long long)i, tn__common_text(text_x, tn__common_shape(x)),
                           tn__common_text(text, tn__common_shape(first)));
        meta->shape[dim] = tn__common_plus(meta->shape[dim], x->shape[dim]);
    }
    if (first == NULL)
        tn__common_plain(meta, infer->dtype, tn__common_shape(infer->in[0]));
    if (infer->dtype == TN_DTYPE_AUTO)
        meta->dtype = tn_view_dtype(infer->in[0]);
    if (last && image)
        tn__channels_set_last(meta);
    return TN_OK;
}

static tn_status cat_decompose(const tn_decompose *call)
{
    const tn_cat_options *o = call->options;
    int64_t shape[TN_MAX_DIMS], at = 0;
    bool last = true, image = false;
    tn_tensor *first = call->in[0], *y;
    int32_t dim = 0;

    for (int64_t i = call->n_in; i-- > 0;)
        if (!left_out(tn_tensor_view(call->in[i])))
            first = call->in[i];
    if (tn__common_dim(o->dim, tn_tensor_ndim(first), &dim) != TN_OK)
        return tn_error_last_code();
    for (int32_t d = 0; d < tn_tensor_ndim(first); d++)
        shape[d] = tn_tensor_size(first, d);
    shape[dim] = 0;
    for (int64_t i = 0; i < call->n_in; i++) {
        last = all_last(tn_tensor_view(call->in[i]), last, &image);
        if (!left_out(tn_tensor_view(call->in[i])))
            shape[dim] = tn__common_plus(shape[dim], tn_tensor_size(call->in[i], dim));
    }
    y = tn__channels_empty(first, (tn_ints){ shape, tn_tensor_ndim(first) }, last && image);
    for (int64_t i = 0; i < call->n_in && y != NULL; i++) {
        if (left_out(tn_tensor_view(call->in[i])))
            continue;
        if (tn_copy_(tn_narrow(y, dim, at, tn_tensor_size(call->in[i], dim)), call->in[i]) == NULL)
            return tn_error_last_code();
        at = tn__common_plus(at, tn_tensor_size(call->in[i], dim));
    }
    return tn__common_given(call->out, y);
}

static tn_status cat_derive(tn_derive *d)
{
    const tn_cat_options *o = d->options;
    int64_t at = 0;
    int32_t dim;

    if (tn__common_dim(o->dim, tn_tensor_ndim(d->gout[0]), &dim) != TN_OK)
        return tn_error_last_code();
    for (int64_t i = 0; i < d->n_in; i++) {
        const tn_meta *meta = &d->in_meta[i];
        bool none = meta->ndim == 1 && meta->shape[0] == 0;

        if (tn__needs(d, i < 31 ? (int)i : 31))
            d->gin[i] = none ? tn__common_zeros(d->gout[0], (tn_ints){ meta->shape, 1 })
                             : tn_narrow(d->gout[0], dim, at, meta->shape[dim]);
        at = tn__common_plus(at, none ? 0 : meta->shape[dim]);
    }
    return TN_OK;
}

static tn_status stack_infer(tn_infer *infer)
{
    const tn_stack_options *o = infer->options;
    const tn_view *first = infer->in[0];
    char text[TN__TEXT], text_x[TN__TEXT];
    int32_t dim;
    tn_status status = tn__common_dim(o->dim, first->ndim + 1, &dim);

    for (int64_t i = 1; i < infer->n_in && status == TN_OK; i++) {
        const tn_view *x = infer->in[i];
        bool fits = x->ndim == first->ndim;

        for (int32_t d = 0; d < x->ndim && fits; d++)
            fits = x->shape[d] == first->shape[d];
        if (!fits)
            return tn_fail(TN_ERR_RUNTIME,
                           /* PyTorch's wording */
                           "stack expects each tensor to be equal size, but got %s at entry 0 and "
                           "%s at entry %lld",
                           tn__common_text(text, tn__common_shape(first)),
                           tn__common_text(text_x, tn__common_shape(x)), (long long)i);
    }
    infer->out[0].dtype = infer->dtype != TN_DTYPE_AUTO ? infer->dtype : tn_view_dtype(first);
    infer->out[0].ndim = -1;
    return status;
}

static tn_status stack_decompose(const tn_decompose *call)
{
    const tn_stack_options *o = call->options;
    tn_tensor **rows = tn_malloc((size_t)call->n_in * sizeof *rows);
    int32_t dim;

    if (rows == NULL || tn__common_dim(o->dim, tn_tensor_ndim(call->in[0]) + 1, &dim) != TN_OK) {
        tn_free(rows);
        return tn_error_last_code();
    }
    for (int64_t i = 0; i < call->n_in; i++)
        rows[i] = tn_unsqueeze(call->in[i], dim);
    call->out[0] = tn_cat(rows, call->n_in, dim);
    tn_free(rows);
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

static tn_status repeat_infer(tn_infer *infer)
{
    const tn_repeat_options *o = infer->options;
    const tn_view *x = infer->in[0];
    char text[TN__TEXT];

    for (int64_t d = 0; d < o->times.count; d++)
        if (o->times.at[d] < 0)
            return tn_fail(TN_ERR_RUNTIME,
                           "times: out of range, got %s; expected no negative number",
                           tn__common_text(text, o->times));
    if (o->times.count > TN_MAX_DIMS)
        return tn_fail(TN_ERR_RUNTIME, "times: too many dimensions, got %lld; expected at most %d",
                       (long long)o->times.count, TN_MAX_DIMS);
    if (o->times.count < x->ndim)
        return tn_fail(TN_ERR_RUNTIME,
                       "Number of dimensions of repeat dims can not be smaller than number of "
                       "dimensions of tensor: %lld and %d",
                       (long long)o->times.count, (int)x->ndim);
    for (int64_t d = 0, lead = o->times.count - x->ndim; d < x->ndim; d++) {
        int64_t size;

        if (__builtin_mul_overflow(x->shape[d], o->times.at[lead + d], &size))
            return tn_fail(
                TN_ERR_VALUE,
                "times: too large, got dimension %lld of size %lld repeated %lld times; expected a "
                "result whose size does not overflow",
                (long long)d, (long long)x->shape[d], (long long)o->times.at[lead + d]);
    }
    return tn__common_open(infer);
}

static tn_status repeat_decompose(const tn_decompose *call)
{
    const tn_repeat_options *o = call->options;
    int64_t sizes[TN_MAX_DIMS], lead = o->times.count - tn_tensor_ndim(call->in[0]);
    tn_ints shape = { sizes, o->times.count };
    tn_tensor *y = call->in[0];
    int64_t narrow[2 * TN_MAX_DIMS], wide[2 * TN_MAX_DIMS], count = 0;
    for (int64_t d = 0; d < shape.count; d++)
        sizes[d] = d < lead ? 1 : tn_tensor_size(call->in[0], d - lead);
    for (int64_t d = 0; d < shape.count; d++) {
        if (o->times.at[d] != 1) {
            narrow[count] = 1;
            wide[count++] = o->times.at[d];
        }
        narrow[count] = wide[count] = sizes[d];
        count++;
    }
    if (count <= TN_MAX_DIMS) { /* a single copy does all repetitions */
        for (int64_t d = 0; d < shape.count; d++)
            sizes[d] *= o->times.at[d];
        y = tn_copy(tn_expand(tn_reshape(y, (tn_ints){ narrow, count }), (tn_ints){ wide, count }));
        return tn__common_given(call->out, tn_reshape(y, shape));
    }
    y = tn_copy(tn_reshape(y, shape));
    for (int64_t d = 0; d < shape.count && y != NULL; d++) {
        if (o->times.at[d] == 1)
            continue;
        for (int64_t k = 0; k <= shape.count; k++)
            wide[k] = k == d ? o->times.at[d] : sizes[k > d ? k - 1 : k];
        y = tn_expand(tn_unsqueeze(y, d), (tn_ints){ wide, shape.count + 1 });
        sizes[d] *= o->times.at[d];
        y = tn_reshape(y, shape);
    }
    return tn__common_given(call->out, y);
}

/* ---- flip, roll ---- */

static tn_status flip_infer(tn_infer *infer)
{
    const tn_flip_options *o = infer->options;
    bool chosen[TN_MAX_DIMS];

    tn__common_like(infer, 0, 0, tn_view_dtype(infer->in[0]));
    return tn__common_dims(o->dims, infer->in[0]->ndim, chosen);
}

static tn_status flip_derive(tn_derive *d)
{
    d->gin[0] = tn_flip(d->gout[0], ((const tn_flip_options *)d->options)->dims);
    return TN_OK;
}

static tn_status flip_decompose(const tn_decompose *call)
{
    const tn_flip_options *o = call->options;
    tn_tensor *y = call->in[0];
    if (o->dims.count <= 0 || tn_tensor_ndim(y) == 0)
        return tn__common_given(call->out, tn_copy(y));
    for (int64_t i = 0; i < o->dims.count && y != NULL; i++)
        y = tn_index_select(y, tn_arange(y, tn_tensor_size(y, o->dims.at[i]) - 1, -1, -1),
                            o->dims.at[i]);
    if (tn__channels_image(tn_tensor_view(call->in[0])))
        y = tn__channels_copied(y);
    return tn__common_given(call->out, y);
}

static tn_status roll_infer(tn_infer *infer)
{
    const tn_roll_options *o = infer->options;
    int64_t wanted = o->dims.count > 0 ? o->dims.count : 1;
    int32_t dim;

    tn__common_plain(&infer->out[0], tn_view_dtype(infer->in[0]), tn__common_shape(infer->in[0]));
    if (o->shifts.count != wanted)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "shifts and dimensions must align: %lld and %lld",
                       (long long)o->shifts.count, (long long)wanted);
    if (o->dims.count > 0 && infer->in[0]->ndim == 0)
        return tn_fail(TN_ERR_INDEX,
                       "dims: out of range, got %lld; expected no dims, since x has no dimensions",
                       (long long)o->dims.at[0]);
    for (int64_t i = 0; i < o->dims.count; i++) {
        tn_status status = tn__common_dim(o->dims.at[i], infer->in[0]->ndim, &dim);

        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status roll_derive(tn_derive *d)
{
    const tn_roll_options *o = d->options;
    tn_tensor *gx = d->gout[0];

    for (int64_t i = 0; i < o->shifts.count && gx != NULL; i++) {
        tn_roll_options one = TN_ROLL_OPTIONS;
        bool flat = o->dims.count <= 0;
        int64_t size = flat || tn_tensor_ndim(gx) == 0 ? tn_tensor_numel(gx)
                                                       : tn_tensor_size(gx, o->dims.at[i]);
        int64_t back[1] = { size > 0 ? -(o->shifts.at[i] % size) : 0 };

        if (!flat)
            one.dims = (tn_ints){ &o->dims.at[i], 1 };
        gx = tn_roll(gx, ((tn_ints){ back, 1 }), one.dims);
    }
    d->gin[0] = gx;
    return gx != NULL ? TN_OK : tn_error_last_code();
}

static tn_tensor *rolled(tn_tensor *x, int64_t dim, int64_t shift)
{
    int64_t size;
    tn_tensor *parts[2];

    if (x == NULL || tn_tensor_numel(x) == 0)
        return x == NULL ? NULL : tn_copy(x);
    size = tn_tensor_size(x, dim);
    shift %= size;
    if (shift < 0)
        shift += size;
    if (shift == 0)
        return tn_copy(x);
    parts[0] = tn_narrow(x, dim, size - shift, shift);
    parts[1] = tn_narrow(x, dim, 0, size - shift);
    return tn_cat(parts, 2, dim);
}

static tn_status roll_decompose(const tn_decompose *call)
{
    const tn_roll_options *o = call->options;
    int64_t flat[1] = { tn_tensor_numel(call->in[0]) };
    tn_tensor *y = call->in[0];
    if (tn_tensor_ndim(y) == 0)
        return tn__common_given(call->out, tn_copy(y));
    if (o->dims.count <= 0)
        return tn__common_given(
            call->out, tn_reshape(rolled(tn_reshape(y, (tn_ints){ flat, 1 }), 0, o->shifts.at[0]),
                                  tn_tensor_shape(call->in[0])));
    for (int64_t i = 0; i < o->dims.count; i++)
        y = rolled(y, o->dims.at[i], o->shifts.at[i]);
    return tn__common_given(call->out, y);
}

TN__OP(cat, .infer = cat_infer, .derive = cat_derive, .decompose = cat_decompose);
TN__OP(stack, .infer = stack_infer, .decompose = stack_decompose);
TN__OP(repeat, .infer = repeat_infer, .decompose = repeat_decompose);
TN__OP(flip, .infer = flip_infer, .derive = flip_derive, .decompose = flip_decompose);
TN__OP(roll, .infer = roll_infer, .derive = roll_derive, .decompose = roll_decompose);

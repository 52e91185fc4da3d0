/* SPDX-License-Identifier: MIT
 *
 * Inference helpers of the standard operators. */
#include "common.h"

#include <math.h>

const char *tn__common_text(char *out, tn_ints ints)
{
    size_t used = 0;

    out[0] = '\0';
    for (int64_t i = 0; i < ints.count && used + 32 < TN__TEXT; i++)
        used += (size_t)tn_snprint(out + used, TN__TEXT - used, "%s%lld", i > 0 ? ", " : "[",
                                   (long long)ints.at[i]);
    tn_snprint(out + used, TN__TEXT - used, ints.count > 0 ? "]" : "[]");
    return out;
}

int tn__common_layout(const tn_view *view)
{
    int32_t order[TN_MAX_DIMS], count = 0;
    int64_t expected = 1;
    bool plain = true;

    for (int32_t d = view->ndim - 1; d >= 0; d--) {
        plain &= view->shape[d] == 1 || view->strides[d] == expected;
        expected = tn__common_times(expected, view->shape[d]);
    }
    if (plain || expected == 0)
        return 1;
    for (int32_t d = 0; d < view->ndim; d++) {
        int32_t at = count;

        if (view->shape[d] == 1)
            continue;
        for (; at > 0 && view->strides[order[at - 1]] > view->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
        count++;
    }
    expected = 1;
    for (int32_t i = 0; i < count; i++) {
        if (view->strides[order[i]] != expected)
            return 0;
        expected = tn__common_times(expected, view->shape[order[i]]);
    }
    return 2;
}

void tn__common_take_strides(tn_meta *meta, const tn_view *view)
{
    meta->flags |= TN_META_STRIDED;
    for (int32_t d = 0; d < view->ndim; d++)
        meta->strides[d] = view->strides[d];
}

void tn__common_like(tn_infer *infer, int32_t index, int64_t i, tn_dtype dtype)
{
    const tn_view *view = infer->in[i];
    tn_meta *meta = &infer->out[index];

    meta->dtype = dtype;
    meta->ndim = view->ndim;
    for (int32_t d = 0; d < view->ndim; d++)
        meta->shape[d] = view->shape[d];
    if (tn__common_layout(view) == 2)
        tn__common_take_strides(meta, view);
}

tn_status tn__common_same_dtype(const tn_view *a, const char *a_name, const tn_view *b,
                                const char *b_name)
{
    if (b == NULL || tn_view_dtype(a) == tn_view_dtype(b))
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME, "%s or %s: wrong dtype, got %s and %s; expected the same",
                   a_name, b_name, tn_dtype_name(tn_view_dtype(a)),
                   tn_dtype_name(tn_view_dtype(b)));
}

tn_status tn__common_same_shape(const tn_view *view, const char *name, tn_ints shape,
                                const char *whose)
{
    char text[TN__TEXT], text_shape[TN__TEXT];
    bool fits = view == NULL || view->ndim == shape.count;

    for (int32_t d = 0; fits && view != NULL && d < view->ndim; d++)
        fits = view->shape[d] == shape.at[d];
    return fits ? TN_OK
                : tn_fail(TN_ERR_RUNTIME, "%s: wrong shape, got %s; expected the shape of %s, %s",
                          name, tn__common_text(text, tn__common_shape(view)), whose,
                          tn__common_text(text_shape, shape));
}

void tn__common_plain(tn_meta *meta, tn_dtype dtype, tn_ints shape)
{
    meta->dtype = dtype;
    meta->ndim = (int32_t)(shape.count < INT32_MAX ? shape.count : INT32_MAX);
    for (int64_t d = 0; d < shape.count && d < TN_MAX_DIMS; d++)
        meta->shape[d] = shape.at[d];
}

tn_status tn__common_unary(tn_infer *infer)
{
    tn__common_like(infer, 0, 0,
                    infer->dtype != TN_DTYPE_AUTO ? infer->dtype : tn_view_dtype(infer->in[0]));
    return TN_OK;
}

tn_status tn__common_promoted(const tn_infer *infer, uint64_t mask, const char *expected)
{
    tn_dtype dtype = infer->dtype != TN_DTYPE_AUTO ? infer->dtype : tn_view_dtype(infer->in[0]);

    return (mask & TN_BIT(dtype)) != 0
               ? TN_OK
               : tn_fail(
                     TN_ERR_NOT_IMPLEMENTED,
                     "inputs: wrong dtype, got %s after promotion; expected %s for at least one",
                     tn_dtype_name(dtype), expected);
}

tn_status tn__common_view_of(tn_infer *infer, int32_t ndim)
{
    if (ndim > TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE, "result: too many dimensions, got %d; expected at most %d",
                       (int)ndim, TN_MAX_DIMS);
    infer->out[0].dtype = tn_view_dtype(infer->in[0]);
    infer->out[0].ndim = ndim;
    infer->out[0].flags = TN_META_STRIDED;
    infer->out[0].offset = infer->in0_offset;
    return TN_OK;
}

tn_dtype tn__common_asked(tn_infer *infer, tn_dtype asked)
{
    tn_dtype dtype = tn_view_dtype(infer->in[0]);

    if (asked == TN_DTYPE_AUTO)
        return dtype;
    if (asked != dtype)
        infer->dtype = asked;
    return asked;
}

tn_status tn__common_state(const tn_view *state, int64_t seed)
{
    char text[TN__TEXT];

    if (state == NULL)
        return TN_OK;
    if (state->ndim != 1 || state->shape[0] != 3)
        return tn_fail(TN_ERR_VALUE,
                       "state: wrong shape, got %s; expected [3]: seed, block "
                       "and lane",
                       tn__common_text(text, tn__common_shape(state)));
    if (seed != 0)
        return tn_fail(
            TN_ERR_VALUE,
            "seed or state: too many, got seed %lld and a state; expected seed 0, because "
            "the state contains the seed",
            (long long)seed);
    return TN_OK;
}

tn_status tn__common_dim(int64_t dim, int32_t ndim, int32_t *out)
{
    int32_t bound = ndim > 0 ? ndim : 1;

    if (dim < -bound || dim >= bound)
        return tn_fail(TN_ERR_INDEX,
                       /* PyTorch's wording */
                       "Dimension out of range (expected to be in range of [%d, %d], but got %lld)",
                       (int)-bound, (int)bound - 1, (long long)dim);
    *out = (int32_t)(dim < 0 ? dim + bound : dim);
    return TN_OK;
}

tn_status tn__common_dims(tn_ints dims, int32_t ndim, bool *reduced)
{
    for (int32_t d = 0; d < TN_MAX_DIMS; d++)
        reduced[d] = dims.count <= 0;
    for (int64_t i = 0; i < dims.count; i++) {
        int32_t dim = 0;
        tn_status status = tn__common_dim(dims.at[i], ndim, &dim);

        if (status != TN_OK)
            return status;
        if (reduced[dim])
            return tn_fail(
                TN_ERR_RUNTIME,
                /* PyTorch's wording */ "dim %d appears multiple times in the list of dims",
                (int)dim);
        reduced[dim] = true;
    }
    return TN_OK;
}

void tn__common_reduced(const tn_view *in, const bool *reduced, bool keepdim, tn_meta *out)
{
    out->ndim = 0;
    for (int32_t d = 0; d < in->ndim; d++) {
        if (!reduced[d])
            out->shape[out->ndim++] = in->shape[d];
        else if (keepdim)
            out->shape[out->ndim++] = 1;
    }
}

tn_status tn__common_extreme(tn_infer *infer, tn_ints dims, bool keepdim, tn_dtype dtype)
{
    const tn_view *x = infer->in[0];
    bool reduced[TN_MAX_DIMS];
    char text[TN__TEXT];
    tn_status status = tn__common_dims(dims, x->ndim, reduced);

    for (int32_t d = 0; status == TN_OK && d < x->ndim; d++)
        if (reduced[d] && x->shape[d] == 0)
            status = tn_fail(TN_ERR_INDEX,
                             /* PyTorch's wording */
                             "Expected reduction dim %d to have non-zero size, x is %s: an empty "
                             "dimension has no extreme",
                             (int)d, tn__common_text(text, tn__common_shape(x)));
    if (status != TN_OK)
        return status;
    infer->out[0].dtype = dtype;
    tn__common_reduced(x, reduced, keepdim, &infer->out[0]);
    return TN_OK;
}

int64_t tn__common_count(tn_ints shape)
{
    int64_t count = 1;
    bool far = false;

    for (int64_t i = 0; i < shape.count; i++) {
        if (shape.at[i] == 0)
            return 0;
        far |= __builtin_mul_overflow(count, shape.at[i], &count);
    }
    return far ? INT64_MAX : count;
}

bool tn__common_view_strides(const tn_view *view, tn_ints shape, int64_t *strides)
{
    int64_t count = tn__common_count(tn__common_shape(view));
    int64_t at = shape.count - 1, chunk = 1, filled = 1, base;

    if (count == 0) { /* no elements: all strides are valid; uses row-major strides */
        for (int64_t d = shape.count - 1, step = 1; d >= 0; d--) {
            strides[d] = step;
            if (shape.at[d] > 1 && __builtin_mul_overflow(step, shape.at[d], &step))
                step = 1; /* a product too large for a real tensor */
        }
        return true;
    }
    if (view->ndim == 0) {
        for (int64_t d = 0; d < shape.count; d++)
            strides[d] = 1;
        return true;
    }
    /* Goes from the last dimension to the first. Each run of dimensions that is contiguous in
     * memory must be filled exactly by some of the new sizes. */
    base = view->strides[view->ndim - 1];
    for (int32_t d = view->ndim - 1; d >= 0; d--) {
        chunk = tn__common_times(chunk, view->shape[d]);
        if (d > 0 &&
            (view->shape[d - 1] == 1 || view->strides[d - 1] == tn__common_times(chunk, base)))
            continue;
        while (at >= 0 && (filled < chunk || shape.at[at] == 1)) {
            strides[at] = tn__common_times(filled, base);
            filled = tn__common_times(filled, shape.at[at]);
            at--;
        }
        if (filled != chunk)
            return false;
        if (d > 0) {
            base = view->strides[d - 1];
            chunk = filled = 1;
        }
    }
    return at < 0;
}

tn_status tn__common_index_into(const tn_view *x, int32_t dim, const tn_view *index)
{
    char text[TN__TEXT], text_i[TN__TEXT];

    if (x->shape[dim] > 0 || tn__common_count(tn__common_shape(index)) == 0)
        return TN_OK;
    return tn_fail(
        TN_ERR_INDEX,
        "index: too many elements, got %s; expected none, since dimension %d of x %s has size 0",
        tn__common_text(text_i, tn__common_shape(index)), (int)dim,
        tn__common_text(text, tn__common_shape(x)));
}

tn_status tn__common_complete(const tn_view *view, tn_ints wanted, int64_t *shape)
{
    int64_t count = tn__common_count(tn__common_shape(view)), known = 1, open = -1;
    char text[TN__TEXT];

    if (wanted.count < 0 || wanted.count > TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE,
                       "shape: wrong number of dimensions, got %lld; expected 0 to %d",
                       (long long)wanted.count, TN_MAX_DIMS);
    for (int64_t d = 0; d < wanted.count; d++) {
        shape[d] = wanted.at[d];
        if (shape[d] == -1) {
            if (open >= 0)
                return tn_fail(
                    TN_ERR_RUNTIME,
                    /* PyTorch's wording */ "only one dimension can be inferred (shape %s)",
                    tn__common_text(text, wanted));
            open = d;
        } else if (shape[d] < 0) {
            return tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */ "invalid shape dimension %lld",
                           (long long)shape[d]);
        } else if (__builtin_mul_overflow(known, shape[d], &known)) {
            known = -1;
            break;
        }
    }
    if (open >= 0 && known == 0)
        return tn_fail(
            TN_ERR_RUNTIME,
            /* PyTorch's wording */
            "cannot reshape tensor of %lld elements into shape %s because the unspecified "
            "dimension size -1 can "
            "be any value and is ambiguous",
            (long long)count, tn__common_text(text, wanted));
    if (known < 0 || (open < 0 ? known != count : count % known != 0))
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "shape '%s' is invalid for input of size %lld",
                       tn__common_text(text, wanted), (long long)count);
    if (open >= 0)
        shape[open] = count / known;
    return TN_OK;
}

tn_status tn__common_real(const tn_derive *d)
{
    for (int64_t i = 0; i < d->n_in; i++)
        if (d->in_meta[i].ndim >= 0 && (TN_MASK_COMPLEX & TN_BIT(d->in_meta[i].dtype)))
            return tn_fail(
                TN_ERR_NOT_IMPLEMENTED,
                "input %lld: no derivative for complex numbers, got %s; expected a real dtype",
                (long long)i, tn_dtype_name(d->in_meta[i].dtype));
    return TN_OK;
}

tn_tensor *tn__common_unreduced(tn_tensor *gradient, tn_ints shape, tn_ints dims, bool keepdim)
{
    bool reduced[TN_MAX_DIMS];
    int64_t kept[TN_MAX_DIMS];
    tn_ints row = { kept, shape.count };

    if (keepdim || shape.count == 0)
        return gradient;
    if (tn__common_dims(dims, (int32_t)shape.count, reduced) != TN_OK)
        return NULL;
    for (int64_t d = 0; d < shape.count; d++)
        kept[d] = reduced[d] ? 1 : shape.at[d];
    return tn_reshape(gradient, row);
}

tn_tensor *tn__common_placed(const void *values, int64_t count, tn_dtype dtype, tn_tensor *like)
{
    tn_tensor *to = tn_tensor_empty(TN_SHAPE(count), dtype, tn_tensor_device(like));

    if (to == NULL || tn_tensor_copy_in(to, values, (size_t)count * tn_dtype_size(dtype)) != TN_OK)
        return NULL;
    return to;
}

tn_tensor *tn__common_conj(tn_tensor *x)
{
    return x != NULL && tn__is_complex(tn_tensor_dtype(x)) ? tn_conj(x) : x;
}

tn_tensor *tn__common_zeros(tn_tensor *like, tn_ints shape)
{
    if (like == NULL)
        return NULL;
    return tn_tensor_full(shape, 0.0, tn_tensor_dtype(like), tn_tensor_device(like));
}

tn_tensor *tn__common_nothing(tn_tensor *like, tn_ints shape)
{
    return tn_expand(tn__scalar_number(like, 0.0), shape);
}

tn_tensor *tn__common_spread(tn_tensor *index, tn_ints shape, int32_t dim)
{
    int64_t sizes[TN_MAX_DIMS], ones[TN_MAX_DIMS];
    int64_t n;

    if (index == NULL)
        return NULL;
    n = tn_tensor_numel(index);
    for (int64_t d = 0; d < shape.count; d++) {
        sizes[d] = d == dim ? n : shape.at[d];
        ones[d] = d == dim ? n : 1;
    }
    return tn_expand(tn_reshape(index, (tn_ints){ ones, shape.count }),
                     (tn_ints){ sizes, shape.count });
}

tn_tensor *tn__common_scattered(const tn_derive *d, tn_tensor *index, tn_tensor *gy, int64_t dim)
{
    tn_tensor *sum = tn__common_sum(d);

    if (sum != NULL)
        return tn_scatter_add_(sum, index, gy, dim) != NULL ? sum : NULL;
    return tn_scatter_add(tn__common_nothing(gy, tn__common_in_shape(d, 0)), index, gy, dim);
}

tn_status tn__common_open(tn_infer *infer)
{
    for (int32_t i = 0; i < infer->n_out; i++) {
        infer->out[i].dtype = infer->dtype != TN_DTYPE_AUTO ? infer->dtype
                                                            : tn_view_dtype(infer->in[0]);
        infer->out[i].ndim = -1;
    }
    return TN_OK;
}

/* Two inputs of the same shape and dtype: a gradient and the tensor that it belongs to. */
tn_status tn__common_pair(tn_infer *infer)
{
    const tn_view *g = infer->in[0], *y = infer->in[1];
    char text_g[TN__TEXT], text_y[TN__TEXT];
    bool same = g->ndim == y->ndim;

    for (int32_t i = 0; same && i < g->ndim; i++)
        same = g->shape[i] == y->shape[i];
    if (!same || tn_view_dtype(g) != tn_view_dtype(y))
        return tn_fail(
            TN_ERR_RUNTIME, "gy or y: wrong shape or dtype, got %s%s and %s%s; expected the same",
            tn_dtype_name(tn_view_dtype(g)), tn__common_text(text_g, tn__common_shape(g)),
            tn_dtype_name(tn_view_dtype(y)), tn__common_text(text_y, tn__common_shape(y)));
    return tn__broadcast_two(infer);
}

/* SPDX-License-Identifier: MIT
 *
 * Searches in sorted rows: searchsorted, bucketize, isin. */
#include "formula.h"

static tn_status wrong_rows(const tn_view *rows, const tn_view *values)
{
    char text_r[TN__TEXT], text_v[TN__TEXT];

    return tn_fail(
        TN_ERR_RUNTIME,
        "sorted_sequence: wrong shape, got %s for values of shape %s; expected 1 dimension, "
        "or the same sizes in all dimensions but the last",
        tn__common_text(text_r, tn__common_shape(rows)),
        tn__common_text(text_v, tn__common_shape(values)));
}

static tn_status rows_fit(const tn_view *rows, const tn_view *values)
{
    bool fits = rows->ndim == 1 || rows->ndim == values->ndim;

    if (rows->ndim == 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "sorted_sequence: too few dimensions, got 0; expected at least 1");
    for (int32_t d = 0; rows->ndim > 1 && fits && d < rows->ndim - 1; d++)
        fits = rows->shape[d] == values->shape[d];
    return fits ? TN_OK : wrong_rows(rows, values);
}

static tn_status side_fits(const char *side, bool right)
{
    if (side == NULL || is(side, "right"))
        return TN_OK;
    if (!is(side, "left"))
        return tn_fail(
            TN_ERR_RUNTIME,
            "side: unknown, got %q; expected left or right: side can only be 'left' or 'right'",
            side);
    if (right)
        return tn_fail(TN_ERR_RUNTIME, "side and right can't be set to opposites, got side of left "
                                       "while right was True");
    return TN_OK;
}

static tn_status searchsorted_infer(tn_infer *infer)
{
    const tn_searchsorted_options *o = infer->options;
    const tn_view *rows = infer->in[0], *values = infer->in[1], *sorter = infer->in[2];
    tn_status status = rows_fit(rows, values);
    bool same = true;

    if (status == TN_OK)
        status = side_fits(o->side, o->right);
    if (status != TN_OK)
        return status;
    for (int32_t d = 0; sorter != NULL && d < rows->ndim; d++)
        same = same && sorter->ndim == rows->ndim && sorter->shape[d] == rows->shape[d];
    if (!same) {
        char text_s[TN__TEXT], text_r[TN__TEXT];

        return tn_fail(
            TN_ERR_RUNTIME,
            "sorter: wrong shape, got %s; boundary and sorter must have the same size, %s",
            tn__common_text(text_s, tn__common_shape(sorter)),
            tn__common_text(text_r, tn__common_shape(rows)));
    }
    if (o->out_int32 && rows->shape[rows->ndim - 1] >= INT32_MAX)
        return tn_fail(
            TN_ERR_RUNTIME,
            "out_int32: the last dimension of sorted_sequence is too large, got %lld; expected "
            "less than %lld, or out_int32=False",
            (long long)rows->shape[rows->ndim - 1], (long long)INT32_MAX);
    tn__common_plain(&infer->out[0], o->out_int32 ? TN_I32 : TN_I64, tn__common_shape(values));
    return TN_OK;
}

/* Binary search in steps of falling powers of 2: moves each position by a step if the last element
 * in front of the new position comes before the value. All elements come before NaN, and NaN comes
 * before no number. */
static tn_tensor *positions(tn_tensor *rows, tn_tensor *values, bool right)
{
    int64_t n = tn_tensor_size(rows, -1), step = 1;
    tn_tensor *at, *all = NULL;

    if (values == NULL)
        return NULL;
    at = tn_tensor_full(tn_tensor_shape(values), 0, TN_I64, tn_tensor_device(values));
    if (!tn__is_int(tn_tensor_dtype(values))) {
        all = tn_isnan(values);
        if (all == NULL)
            return NULL;
    }
    while (step <= n / 2)
        step *= 2;
    for (; n > 0 && step > 0 && at != NULL; step /= 2) {
        tn_tensor *next = add_number(at, step), *last = add_number(at, step - 1);
        tn_tensor *inside = is_at_most(next, n), *before;

        last = tn_gather(rows, tn_where(inside, last, number(at, 0)), -1);
        before = right ? tn_le(last, values) : tn_lt(last, values);
        if (all != NULL)
            before = tn_logical_or(before, all);
        at = tn_where(tn_logical_and(inside, before), next, at);
    }
    return at;
}

/* Returns a wider dtype of the same order, for which devices have kernels; AUTO if there is none.
 */
static tn_dtype wider(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F16:
    case TN_BF16: return TN_F32;
    case TN_U8:
    case TN_I8:
    case TN_I16: return TN_I32;
    default: return TN_DTYPE_AUTO;
    }
}

static tn_status searchsorted_decompose(const tn_decompose *call)
{
    const tn_searchsorted_options *o = call->options;
    tn_tensor *rows = call->in[0], *values = call->in[1], *y;
    tn_dtype wide = wider(tn_tensor_dtype(rows));

    if (wide != TN_DTYPE_AUTO)
        return tn__common_given(call->out,
                                tn_searchsorted(tn_cast(rows, wide), tn_cast(values, wide),
                                                call->in[2], o->out_int32, o->right, o->side));
    if (call->in[2] != TN_NONE)
        rows = tn_gather(rows, call->in[2], -1);
    if (rows == NULL)
        return tn_error_last_code();
    if (tn_tensor_ndim(rows) == 1)
        values = tn_reshape(values, TN_SHAPE(tn_tensor_numel(values)));
    y = positions(rows, values, o->right || is(o->side, "right"));
    y = tn_reshape(y, tn_tensor_shape(call->in[1]));
    return tn__common_given(call->out, o->out_int32 ? tn_cast(y, TN_I32) : y);
}

static tn_status bucketize_infer(tn_infer *infer)
{
    const tn_bucketize_options *o = infer->options;
    const tn_view *x = infer->in[0], *boundaries = infer->in[1];

    if (boundaries->ndim != 1)
        return tn_fail(TN_ERR_RUNTIME, "boundaries tensor must be 1 dimension, but got dim(%d)",
                       (int)boundaries->ndim);
    tn__common_plain(&infer->out[0], o->out_int32 ? TN_I32 : TN_I64, tn__common_shape(x));
    return TN_OK;
}

static tn_status bucketize_decompose(const tn_decompose *call)
{
    const tn_bucketize_options *o = call->options;

    return tn__common_given(
        call->out, tn_searchsorted(call->in[1], call->in[0], TN_NONE, o->out_int32, o->right));
}

static tn_status isin_infer(tn_infer *infer)
{
    tn__common_plain(&infer->out[0], TN_BOOL, tn__common_shape(infer->in[0]));
    return TN_OK;
}

/* Looks for the place of each element in the sorted test elements, and compares it with the element
 * at this place. */
static tn_status isin_decompose(const tn_decompose *call)
{
    const tn_isin_options *o = call->options;
    tn_tensor *x = call->in[0], *tests = call->in[1], *order, *at, *equal;
    int64_t n = tn_tensor_numel(tests);

    if (n == 0)
        return tn__common_given(
            call->out, tn_tensor_full(tn_tensor_shape(x), o->invert, TN_BOOL, tn_tensor_device(x)));
    if (tn_sort(tn_reshape(tests, TN_SHAPE(n)), &tests, &order, 0) != TN_OK)
        return tn_error_last_code();
    x = tn_reshape(x, TN_SHAPE(tn_tensor_numel(x)));
    at = tn_searchsorted(tests, x);
    at = tn_where(is_at_most(at, n - 1), at, number(at, 0));
    equal = tn_eq(tn_gather(tests, at, 0), x);
    equal = tn_reshape(equal, tn_tensor_shape(call->in[0]));
    return tn__common_given(call->out, o->invert ? tn_logical_not(equal) : equal);
}

TN__OP(searchsorted, .infer = searchsorted_infer, .decompose = searchsorted_decompose);
TN__OP(bucketize, .infer = bucketize_infer, .decompose = bucketize_decompose);
TN__OP(isin, .infer = isin_infer, .decompose = isin_decompose);

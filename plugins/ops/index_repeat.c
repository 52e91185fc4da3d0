/* SPDX-License-Identifier: MIT
 *
 * Elements repeated along a dimension, and vectors placed on the diagonal of matrices. */
#include "index.h"

static tn_tensor *flat(tn_tensor *x)
{
    return tn_reshape(x, TN_SHAPE(tn_tensor_numel(x)));
}

/* The shape of x, with `size` along dim; for dim None the vector of all elements. Sets *size to the
 * number of elements along dim that are repeated. */
static tn_status repeated_shape(const tn_view *x, int64_t dim, tn_meta *meta, int32_t *at,
                                int64_t *size)
{
    int64_t all[1] = { tn__common_count(tn__common_shape(x)) };
    tn_status status = TN_OK;

    *at = 0;
    if (dim == INT64_MIN || x->ndim == 0)
        tn__common_plain(meta, tn_view_dtype(x), (tn_ints){ all, 1 });
    else
        tn__common_plain(meta, tn_view_dtype(x), tn__common_shape(x));
    if (dim != INT64_MIN)
        status = tn__common_dim(dim, x->ndim, at);
    *size = status == TN_OK ? meta->shape[*at] : 0;
    return status;
}

static tn_status wrong_repeats(int64_t got)
{
    return tn_fail(
        TN_ERR_RUNTIME,
        "repeats: out of range, got %lld; expected 0 or more: repeats can not be negative",
        (long long)got);
}

static tn_status repeat_interleave_infer(tn_infer *infer)
{
    const tn_repeat_interleave_options *o = infer->options;
    const tn_view *repeats = infer->in[1];
    int64_t size, count = tn__common_count(tn__common_shape(repeats));
    int32_t at;
    tn_meta *meta = &infer->out[0];
    tn_status status = repeated_shape(infer->in[0], o->dim, meta, &at, &size);

    if (status != TN_OK)
        return status;
    if (repeats->ndim > 1)
        return tn_fail(TN_ERR_RUNTIME,
                       "repeats: wrong shape, got %d dimensions; repeats must be 0-dim or 1-dim "
                       "tensor",
                       (int)repeats->ndim);
    if (count != 1 && count != size)
        return tn_fail(TN_ERR_RUNTIME,
                       "repeats: wrong size, got %lld; repeats must have the same size as input "
                       "along dim, %lld, or one element",
                       (long long)count, (long long)size);
    if (o->output_size != INT64_MIN && (o->output_size < 0 || o->output_size == INT64_MAX))
        return tn_fail(TN_ERR_RUNTIME,
                       "output_size: out of range, got %lld; expected the sum of the repeats",
                       (long long)o->output_size);
    if (o->output_size == INT64_MIN)
        meta->ndim = -1;
    else
        meta->shape[at] = o->output_size;
    return TN_OK;
}

/* Reads the smallest of the repeats and their sum. */
static tn_status read_repeats(tn_tensor *repeats, tn_tensor *ends, int64_t *total)
{
    int64_t n = tn_tensor_numel(repeats);
    tn_scalar least, sum;

    *total = 0;
    if (n == 0)
        return TN_OK;
    if (tn_tensor_scalar(tn_amin(repeats), &least) != TN_OK ||
        tn_tensor_scalar(tn_select(ends, 0, n - 1), &sum) != TN_OK)
        return tn_error_last_code();
    if (tn_scalar_as_int(least) < 0)
        return wrong_repeats(tn_scalar_as_int(least));
    *total = tn_scalar_as_int(sum);
    return TN_OK;
}

/* Element p of the result comes from the element of x whose number is the number of repetitions
 * that end at or before p. Counts the ends at each place, and adds them up. */
static tn_status repeat_interleave_decompose(const tn_decompose *call)
{
    const tn_repeat_interleave_options *o = call->options;
    tn_tensor *x = o->dim == INT64_MIN ? flat(call->in[0]) : index_vector(call->in[0]);
    tn_tensor *repeats, *ends, *marks;
    int64_t size, total = o->output_size;
    tn_meta meta = { .flags = 0 };
    int32_t dim;

    if (x == NULL ||
        repeated_shape(tn_tensor_view(call->in[0]), o->dim, &meta, &dim, &size) != TN_OK)
        return tn_error_last_code();
    repeats = tn_expand(flat(call->in[1]), TN_SHAPE(size));
    ends = tn_cumsum(repeats, 0);
    if (ends == NULL)
        return tn_error_last_code();
    if (total == INT64_MIN && read_repeats(repeats, ends, &total) != TN_OK)
        return tn_error_last_code();
    marks = tn__common_zeros(ends, TN_SHAPE(tn__common_plus(total, 1)));
    marks = tn_scatter_add(marks, ends, tn_expand(number(ends, 1), TN_SHAPE(size)), 0);
    marks = tn_cumsum(tn_narrow(marks, 0, 0, total), 0);
    return tn__common_given(call->out, tn_index_select(x, marks, dim));
}

static tn_status repeat_interleave_scalar_infer(tn_infer *infer)
{
    const tn_repeat_interleave_scalar_options *o = infer->options;
    tn_meta *meta = &infer->out[0];
    int64_t size;
    int32_t at;
    tn_status status = repeated_shape(infer->in[0], o->dim, meta, &at, &size);

    if (status != TN_OK)
        return status;
    if (o->repeats < 0)
        return wrong_repeats(o->repeats);
    if (size > 0 && o->repeats > INT64_MAX / size)
        return tn_fail(
            TN_ERR_VALUE,
            "repeats: too large, got %lld for %lld elements; expected a result of less than 2^63",
            (long long)o->repeats, (long long)size);
    meta->shape[at] = size * o->repeats;
    return TN_OK;
}

static tn_status repeat_interleave_scalar_decompose(const tn_decompose *call)
{
    const tn_repeat_interleave_scalar_options *o = call->options;
    tn_tensor *x = o->dim == INT64_MIN ? flat(call->in[0]) : index_vector(call->in[0]);
    int64_t wide[TN_MAX_DIMS + 1], size;
    tn_meta meta = { .flags = 0 };
    int32_t dim;

    if (x == NULL ||
        repeated_shape(tn_tensor_view(call->in[0]), o->dim, &meta, &dim, &size) != TN_OK)
        return tn_error_last_code();
    if (meta.ndim == TN_MAX_DIMS) { /* one more dimension is not possible: selects by index */
        tn_tensor *index = tn_arange(x, 0, size * o->repeats);

        if (o->repeats > 0)
            index = tn_div(index, number(index, o->repeats), "floor");
        return tn__common_given(call->out, tn_index_select(x, index, dim));
    }
    for (int32_t d = 0; d <= meta.ndim; d++)
        wide[d] = d <= dim ? meta.shape[d] : d == dim + 1 ? o->repeats : meta.shape[d - 1];
    x = tn_expand(tn_unsqueeze(x, dim + 1), (tn_ints){ wide, meta.ndim + 1 });
    meta.shape[dim] *= o->repeats;
    x = tn_reshape(x, (tn_ints){ meta.shape, meta.ndim });
    return tn__common_given(call->out, tn__common_apart(x, call->in[0]));
}

/* ---- diag_embed ---- */

static tn_status diag_embed_infer(tn_infer *infer)
{
    const tn_diag_embed_options *o = infer->options;
    const tn_view *x = infer->in[0];
    int64_t size = x->ndim > 0 ? x->shape[x->ndim - 1] : 1, shape[TN_MAX_DIMS];
    int32_t rows, columns, ndim = (x->ndim > 0 ? x->ndim : 1) + 1;

    if (x->ndim == TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE,
                       "x: too many dimensions, got %d; expected fewer, since the "
                       "result has one more",
                       TN_MAX_DIMS);
    if (tn__common_dim(o->dim1, ndim, &rows) != TN_OK ||
        tn__common_dim(o->dim2, ndim, &columns) != TN_OK)
        return tn_error_last_code();
    if (rows == columns)
        return tn_fail(TN_ERR_RUNTIME,
                       "dim1 and dim2: diagonal dimensions cannot be identical, "
                       "got %lld and %lld; expected two dimensions",
                       (long long)o->dim1, (long long)o->dim2);
    if (o->offset > INT32_MAX || o->offset < -INT32_MAX)
        return tn_fail(TN_ERR_VALUE, "offset: out of range, got %lld; expected %d to %d",
                       (long long)o->offset, -INT32_MAX, INT32_MAX);
    size = tn__common_plus(size, o->offset < 0 ? -o->offset : o->offset);
    for (int32_t d = 0, from = 0; d < ndim; d++)
        shape[d] = d == rows || d == columns ? size : x->shape[from++];
    tn__common_plain(&infer->out[0], tn_view_dtype(x), (tn_ints){ shape, ndim });
    return TN_OK;
}

/* In a matrix with rows of N elements, consecutive elements of a diagonal are N + 1 apart in
 * memory. So this appends N zeros to each element of x, and puts in front as many zeros as elements
 * precede the diagonal. */
static tn_tensor *diagonal_of(tn_tensor *x, int64_t offset)
{
    int64_t n = tn_tensor_size(x, -1), lead = tn_tensor_ndim(x) - 1;
    int64_t size, shape[TN_MAX_DIMS + 1], spread[4] = { 0 }, moved[2];

    size = offset == INT64_MIN ? INT64_MAX : tn__common_plus(n, offset < 0 ? -offset : offset);
    if (size > INT32_MAX) { /* its square fits int64 */
        tn_fail(TN_ERR_VALUE, "x or offset: too large, got %lld rows; expected at most %lld",
                (long long)size, (long long)INT32_MAX);
        return NULL;
    }
    spread[1] = size;
    for (int64_t d = 0; d < lead; d++)
        shape[d] = tn_tensor_size(x, d);
    shape[lead] = shape[lead + 1] = size;
    if (n == 0) {
        moved[0] = 0;
        moved[1] = size * size;
        return tn_reshape(tn_pad(x, ((tn_ints){ moved, 2 })), (tn_ints){ shape, lead + 2 });
    }
    x = tn_pad(tn_unsqueeze(x, -1), ((tn_ints){ spread, 2 }));
    shape[lead] = n * (size + 1);
    x = tn_narrow(tn_reshape(x, (tn_ints){ shape, lead + 1 }), -1, 0, (n - 1) * (size + 1) + 1);
    shape[lead] = size;
    moved[0] = offset < 0 ? -offset * size : offset;
    moved[1] = size * size - moved[0] - ((n - 1) * (size + 1) + 1);
    return tn_reshape(tn_pad(x, ((tn_ints){ moved, 2 })), (tn_ints){ shape, lead + 2 });
}

static tn_status diag_embed_decompose(const tn_decompose *call)
{
    const tn_diag_embed_options *o = call->options;
    tn_tensor *y = diagonal_of(index_vector(call->in[0]), o->offset);
    int64_t order[TN_MAX_DIMS];
    int32_t rows, columns, ndim;

    if (y == NULL)
        return tn_error_last_code();
    ndim = tn_tensor_ndim(y);
    if (tn__common_dim(o->dim1, ndim, &rows) != TN_OK ||
        tn__common_dim(o->dim2, ndim, &columns) != TN_OK)
        return tn_error_last_code();
    if (rows == ndim - 2 && columns == ndim - 1)
        return tn__common_given(call->out, y);
    for (int32_t d = 0, from = 0; d < ndim; d++)
        order[d] = d == rows ? ndim - 2 : d == columns ? ndim - 1 : from++;
    return tn__common_given(call->out, tn_copy(tn_permute(y, (tn_ints){ order, ndim })));
}

TN__OP(repeat_interleave, .infer = repeat_interleave_infer,
       .decompose = repeat_interleave_decompose);
TN__OP(repeat_interleave_scalar, .infer = repeat_interleave_scalar_infer,
       .decompose = repeat_interleave_scalar_decompose);
TN__OP(diag_embed, .infer = diag_embed_infer, .decompose = diag_embed_decompose);

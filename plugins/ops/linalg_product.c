/* SPDX-License-Identifier: MIT
 *
 * Products of vectors and matrices that are compositions: cross, trace, kron, tensordot. */
#include "common.h"

/* ---- cross ---- */

/* Sets *at to the dimension of the vectors, `dim` or the first of size 3 if it is not given. */
static tn_status cross_dim(tn_ints shape, int64_t dim, int32_t *at)
{
    char text[TN__TEXT];

    if (dim != INT64_MIN)
        return tn__common_dim(dim, (int32_t)shape.count, at);
    for (*at = 0; *at < shape.count; ++*at)
        if (shape.at[*at] == 3)
            return TN_OK;
    return tn_fail(TN_ERR_RUNTIME, "a or b: no dimension of size 3, got %s; expected one",
                   tn__common_text(text, shape));
}

static tn_status cross_shape(tn_infer *infer, int64_t dim)
{
    const tn_view *a = infer->in[0], *b = infer->in[1];
    char text_a[TN__TEXT], text_b[TN__TEXT];
    tn_status status;
    int32_t at;

    if (a->ndim != b->ndim || a->ndim == 0)
        return tn_fail(
            TN_ERR_RUNTIME,
            "a or b: wrong shape, got %s and %s; expected the same number of dimensions, at "
            "least 1",
            tn__common_text(text_a, tn__common_shape(a)),
            tn__common_text(text_b, tn__common_shape(b)));
    status = tn__broadcast_two(infer);
    infer->out[0].flags &= ~(uint32_t)TN_META_STRIDED;
    if (status == TN_OK)
        status = cross_dim((tn_ints){ infer->out[0].shape, infer->out[0].ndim }, dim, &at);
    if (status == TN_OK && (a->shape[at] != 3 || b->shape[at] != 3))
        return tn_fail(TN_ERR_RUNTIME,
                       "a or b: wrong size of dimension %d, got %s and %s; expected 3 in both",
                       (int)at, tn__common_text(text_a, tn__common_shape(a)),
                       tn__common_text(text_b, tn__common_shape(b)));
    return status;
}

static tn_status cross_infer(tn_infer *infer)
{
    return cross_shape(infer, ((const tn_cross_options *)infer->options)->dim);
}

static tn_status linalg_cross_infer(tn_infer *infer)
{
    int64_t dim = ((const tn_linalg_cross_options *)infer->options)->dim;
    int32_t at;
    tn_status status = tn__common_dim(dim, infer->in[0]->ndim, &at);

    return status == TN_OK ? cross_shape(infer, at) : status;
}

/* Element i of y is a[i + 1] * b[i + 2] - a[i + 2] * b[i + 1], with indices modulo 3. */
static tn_tensor *cross_of(tn_tensor *a, tn_tensor *b, int64_t dim)
{
    tn_tensor *pa[3], *pb[3], *y[3];

    for (int64_t i = 0; i < 3; i++) {
        pa[i] = tn_narrow(a, dim, i, 1);
        pb[i] = tn_narrow(b, dim, i, 1);
    }
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;

        y[i] = tn_sub(tn_mul(pa[j], pb[k]), tn_mul(pa[k], pb[j]));
        if (y[i] == NULL)
            return NULL;
    }
    return tn_cat(y, 3, dim);
}

static tn_status cross_decompose(const tn_decompose *call)
{
    tn_ints a = tn_tensor_shape(call->in[0]), b = tn_tensor_shape(call->in[1]);
    int64_t both[TN_MAX_DIMS];
    int32_t dim;
    tn_status status;

    for (int64_t d = 0; d < a.count; d++)
        both[d] = a.at[d] == 1 ? b.at[d] : a.at[d];
    status = cross_dim((tn_ints){ both, a.count }, ((const tn_cross_options *)call->options)->dim,
                       &dim);
    return status != TN_OK ? status
                           : tn__common_given(call->out, cross_of(call->in[0], call->in[1], dim));
}

static tn_status linalg_cross_decompose(const tn_decompose *call)
{
    const tn_linalg_cross_options *o = call->options;
    return tn__common_given(call->out, cross_of(call->in[0], call->in[1], o->dim));
}

/* ---- trace ---- */

static tn_status trace_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];
    tn_dtype dtype = tn_view_dtype(x);

    if (x->ndim != 2)
        return tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */ "expected a matrix, but got %d dims",
                       (int)x->ndim);
    tn__common_plain(&infer->out[0], tn__is_int(dtype) ? TN_I64 : dtype, (tn_ints){ NULL, 0 });
    return TN_OK;
}

static tn_status trace_decompose(const tn_decompose *call)
{
    return tn__common_given(call->out, tn_sum(tn_diagonal(call->in[0])));
}

/* ---- kron ---- */

static int64_t size_from_end(tn_ints shape, int64_t d, int64_t count)
{
    int64_t at = d - (count - shape.count);

    return at >= 0 ? shape.at[at] : 1;
}

static tn_status kron_infer(tn_infer *infer)
{
    tn_ints a = tn__common_shape(infer->in[0]), b = tn__common_shape(infer->in[1]);
    int64_t count = a.count > b.count ? a.count : b.count;
    tn_meta *meta = &infer->out[0];

    if (2 * count > TN_MAX_DIMS)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "a or b: too many dimensions, got %lld and %lld; expected at most %d",
                       (long long)a.count, (long long)b.count, TN_MAX_DIMS / 2);
    meta->dtype = infer->dtype != TN_DTYPE_AUTO ? infer->dtype : tn_view_dtype(infer->in[0]);
    meta->ndim = (int32_t)count;
    for (int64_t d = 0; d < count; d++)
        if (__builtin_mul_overflow(size_from_end(a, d, count), size_from_end(b, d, count),
                                   &meta->shape[d]))
            return tn_fail(TN_ERR_VALUE,
                           "result: too large, dimension %lld has size %lld times %lld; expected "
                           "less than 2^63",
                           (long long)d, (long long)size_from_end(a, d, count),
                           (long long)size_from_end(b, d, count));
    return TN_OK;
}

static tn_status kron_decompose(const tn_decompose *call)
{
    tn_ints a = tn_tensor_shape(call->in[0]), b = tn_tensor_shape(call->in[1]);
    int64_t count = a.count > b.count ? a.count : b.count;
    int64_t rows[TN_MAX_DIMS], inner[TN_MAX_DIMS], shape[TN_MAX_DIMS];
    for (int64_t d = 0; d < count; d++) {
        rows[2 * d] = size_from_end(a, d, count);
        rows[2 * d + 1] = 1;
        inner[2 * d] = 1;
        inner[2 * d + 1] = size_from_end(b, d, count);
        shape[d] = rows[2 * d] * inner[2 * d + 1];
    }
    return tn__common_given(
        call->out, tn_reshape(tn_mul(tn_reshape(call->in[0], (tn_ints){ rows, 2 * count }),
                                     tn_reshape(call->in[1], (tn_ints){ inner, 2 * count })),
                              (tn_ints){ shape, count }));
}

/* ---- tensordot ---- */

/* The dimensions of one operand: the paired ones in the order of the pairs, the others in their
 * own order. */
struct side {
    int32_t paired[TN_MAX_DIMS], others[TN_MAX_DIMS];
    int32_t n_paired, n_others;
};

static tn_status add_pairs(struct side *side, tn_ints dims, int32_t ndim, const char *name)
{
    bool taken[TN_MAX_DIMS] = { false };

    for (int64_t i = 0; i < dims.count; i++) {
        int32_t at;
        tn_status status = tn__common_dim(dims.at[i], ndim, &at);

        if (status != TN_OK)
            return status;
        if (ndim == 0 || taken[at])
            return tn_fail(TN_ERR_RUNTIME, "%s: dimension %lld appears twice; expected once", name,
                           (long long)dims.at[i]);
        taken[at] = true;
        side->paired[side->n_paired++] = at;
    }
    for (int32_t d = 0; d < ndim; d++)
        if (!taken[d])
            side->others[side->n_others++] = d;
    return TN_OK;
}

static tn_status pairs(const tn_tensordot_options *o, tn_ints a, tn_ints b, struct side *of_a,
                       struct side *of_b)
{
    int64_t last[TN_MAX_DIMS], first[TN_MAX_DIMS];
    tn_ints dims_a = o->dims_a, dims_b = o->dims_b;
    tn_status status;

    *of_a = *of_b = (struct side){ .n_paired = 0 };
    if (dims_a.count < 0 && dims_b.count < 0) {
        if (o->dims < 0 || o->dims > a.count || o->dims > b.count)
            return tn_fail(
                TN_ERR_RUNTIME,
                "dims: out of range, got %lld; expected 0 to %lld, the smaller number of "
                "dimensions",
                (long long)o->dims, (long long)(a.count < b.count ? a.count : b.count));
        for (int64_t i = 0; i < o->dims; i++) {
            last[i] = a.count - o->dims + i;
            first[i] = i;
        }
        dims_a = (tn_ints){ last, o->dims };
        dims_b = (tn_ints){ first, o->dims };
    }
    if (dims_a.count != dims_b.count)
        return tn_fail(TN_ERR_RUNTIME,
                       "dims_a or dims_b: different lengths, got %lld and %lld; expected the same",
                       (long long)dims_a.count, (long long)dims_b.count);
    status = add_pairs(of_a, dims_a, (int32_t)a.count, "dims_a");
    if (status == TN_OK)
        status = add_pairs(of_b, dims_b, (int32_t)b.count, "dims_b");
    for (int32_t i = 0; i < of_a->n_paired && status == TN_OK; i++) {
        int64_t size_a = a.at[of_a->paired[i]], size_b = b.at[of_b->paired[i]];

        if (size_a != size_b && size_a != 1 && size_b != 1)
            return tn_fail(
                TN_ERR_RUNTIME,
                /* PyTorch's wording */
                "contracted dimensions need to match, but first has size %lld in dim %d and "
                "second has size %lld in dim %d",
                (long long)size_a, (int)of_a->paired[i], (long long)size_b, (int)of_b->paired[i]);
    }
    return status;
}

static tn_status tensordot_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *b = infer->in[1];
    struct side of_a, of_b;
    tn_meta *meta = &infer->out[0];
    tn_status status = tn__common_same_dtype(a, "a", b, "b");

    if (status == TN_OK)
        status = pairs(infer->options, tn__common_shape(a), tn__common_shape(b), &of_a, &of_b);
    if (status != TN_OK)
        return status;
    if (of_a.n_others + of_b.n_others > TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE, "result: too many dimensions, got %d; expected at most %d",
                       (int)(of_a.n_others + of_b.n_others), TN_MAX_DIMS);
    meta->dtype = tn_view_dtype(a);
    for (int32_t d = 0; d < of_a.n_others; d++)
        meta->shape[meta->ndim++] = a->shape[of_a.others[d]];
    for (int32_t d = 0; d < of_b.n_others; d++)
        meta->shape[meta->ndim++] = b->shape[of_b.others[d]];
    return TN_OK;
}

/* Sums x over its paired dimensions whose partner has size 1 in `other`. */
static tn_tensor *summed(tn_tensor *x, const struct side *side, tn_ints other,
                         const struct side *others)
{
    tn_ints shape = tn_tensor_shape(x);
    tn_dtype dtype = tn_tensor_dtype(x);
    int64_t dims[TN_MAX_DIMS], count = 0;

    for (int32_t i = 0; i < side->n_paired; i++)
        if (shape.at[side->paired[i]] != 1 && other.at[others->paired[i]] == 1)
            dims[count++] = side->paired[i];
    return count == 0 ? x : tn_cast(tn_sum(x, ((tn_ints){ dims, count }), true), dtype);
}

/* Returns x as a matrix. With paired_last, the paired dimensions are its columns and the others its
 * rows; without, the reverse. */
static tn_tensor *as_matrix(tn_tensor *x, const struct side *side, bool paired_last)
{
    int64_t order[TN_MAX_DIMS], paired = 1, others = 1, at = 0;
    tn_ints shape;

    if (x == NULL)
        return NULL;
    shape = tn_tensor_shape(x);
    for (int32_t i = 0; i < side->n_paired; i++)
        paired = tn__common_times(paired, shape.at[side->paired[i]]);
    for (int32_t i = 0; i < side->n_others; i++)
        others = tn__common_times(others, shape.at[side->others[i]]);
    for (int half = 0; half < 2; half++) {
        bool now_paired = paired_last == (half == 1);
        int32_t count = now_paired ? side->n_paired : side->n_others;

        for (int32_t i = 0; i < count; i++)
            order[at++] = now_paired ? side->paired[i] : side->others[i];
    }
    x = tn_permute(x, (tn_ints){ order, at });
    return paired_last ? tn_reshape(x, TN_SHAPE(others, paired))
                       : tn_reshape(x, TN_SHAPE(paired, others));
}

static tn_status tensordot_decompose(const tn_decompose *call)
{
    tn_tensor *a = call->in[0], *b = call->in[1];
    tn_ints shape_a = tn_tensor_shape(a), shape_b = tn_tensor_shape(b);
    int64_t shape[2 * TN_MAX_DIMS], count = 0;
    struct side of_a, of_b;
    tn_status status = pairs(call->options, shape_a, shape_b, &of_a, &of_b);
    if (status != TN_OK)
        return status;
    for (int32_t d = 0; d < of_a.n_others; d++)
        shape[count++] = shape_a.at[of_a.others[d]];
    for (int32_t d = 0; d < of_b.n_others; d++)
        shape[count++] = shape_b.at[of_b.others[d]];
    a = as_matrix(summed(a, &of_a, shape_b, &of_b), &of_a, true);
    b = as_matrix(summed(b, &of_b, shape_a, &of_a), &of_b, false);
    return tn__common_given(call->out, tn_reshape(tn_matmul(a, b), (tn_ints){ shape, count }));
}

TN__OP(cross, .infer = cross_infer, .decompose = cross_decompose);
TN__OP(linalg_cross, .infer = linalg_cross_infer, .decompose = linalg_cross_decompose);
TN__OP(trace, .infer = trace_infer, .decompose = trace_decompose);
TN__OP(kron, .infer = kron_infer, .decompose = kron_decompose);
TN__OP(tensordot, .infer = tensordot_infer, .decompose = tensordot_decompose);

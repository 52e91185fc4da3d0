/* SPDX-License-Identifier: MIT
 *
 * Functions that split a tensor into pieces along one dimension. The pieces are views, made with
 * the operators narrow and select: they own no memory, gradients flow through them, and in-place
 * changes of a piece change the tensor. tn_cat and tn_stack join pieces again. */
#ifndef TENON_PIECES_H
#define TENON_PIECES_H

#include <tenon/ops.h>

TN_BEGIN_DECLS

/* Adds the number of dimensions to a negative *dim. Returns the size of that dimension; -1 and
 * records a failure if *dim is out of range. `who` is the function named in the message. */
TN_ATTR(unused) static inline int64_t tn_pieces_along(tn_tensor *x, int64_t *dim, const char *who)
{
    int64_t ndim;

    if (x == NULL)
        return -1;
    ndim = tn_tensor_ndim(x);
    if (*dim < 0)
        *dim += ndim;
    if (*dim >= 0 && *dim < ndim)
        return tn_tensor_size(x, *dim);
    if (ndim == 0)
        tn_fail(TN_ERR_INDEX, "%s: x: no dimensions; expected at least 1", who);
    else
        tn_fail(TN_ERR_INDEX, "%s: dim: out of range, got %lld; expected %lld to %lld", who,
                (long long)(*dim < 0 ? *dim - ndim : *dim), -(long long)ndim, (long long)ndim - 1);
    return -1;
}

TN_ATTR(unused)
static inline int64_t tn_pieces_room(int64_t count, int64_t capacity, const char *who)
{
    if (count <= capacity)
        return count;
    tn_fail(TN_ERR_VALUE, "%s: capacity: too small for %lld pieces, got %lld", who,
            (long long)count, (long long)capacity);
    return -1;
}

/* Splits `x` along a dimension into pieces of `size`. The last piece is shorter if `size` does not
 * divide the dimension. Returns the number of pieces stored in `out`; -1 and records a failure on
 * error, which includes more than `capacity` pieces. */
TN_ATTR(unused)
static inline int64_t tn_split(tn_tensor *x, int64_t size, int64_t dim, tn_tensor **out,
                               int64_t capacity)
{
    int64_t whole = tn_pieces_along(x, &dim, "tn_split"), count;

    if (whole < 0)
        return -1;
    if (size < 0 || (size == 0 && whole > 0)) {
        tn_fail(TN_ERR_VALUE,
                "tn_split: size: out of range, got %lld for a dimension of %lld; "
                "expected 1 or more",
                (long long)size, (long long)whole);
        return -1;
    }
    count = whole > 0 ? (whole + size - 1) / size : 1;
    count = tn_pieces_room(count, capacity, "tn_split");
    for (int64_t i = 0; i < count; i++) {
        int64_t length = whole - i * size < size ? whole - i * size : size;

        out[i] = tn_narrow(x, dim, i * size, length);
        if (out[i] == NULL)
            return -1;
    }
    return count;
}

/* Splits `x` along a dimension into pieces of the given sizes, whose sum must be the size of the
 * dimension. */
TN_ATTR(unused)
static inline tn_status tn_split_sizes(tn_tensor *x, tn_ints sizes, int64_t dim, tn_tensor **out)
{
    int64_t whole = tn_pieces_along(x, &dim, "tn_split_sizes"), start = 0, left = whole;

    if (whole < 0)
        return tn_error_code();
    for (int64_t i = 0; i < sizes.count && left >= 0; i++)
        left = sizes.at[i] >= 0 && sizes.at[i] <= left ? left - sizes.at[i] : -1;
    if (left != 0)
        return tn_fail(
            TN_ERR_VALUE,
            "tn_split_sizes: sizes: one is negative, or they do not add up to %lld, the size "
            "of dimension %lld",
            (long long)whole, (long long)dim);
    for (int64_t i = 0; i < sizes.count; i++) {
        out[i] = tn_narrow(x, dim, start, sizes.at[i]);
        if (out[i] == NULL)
            return tn_error_code();
        start += sizes.at[i];
    }
    return TN_OK;
}

/* Splits `x` along a dimension into at most `chunks` pieces of equal size, the last of which may be
 * shorter. As in PyTorch there are fewer pieces if these already cover the dimension. Returns the
 * number of pieces; -1 and records a failure on error. */
TN_ATTR(unused)
static inline int64_t tn_chunk(tn_tensor *x, int64_t chunks, int64_t dim, tn_tensor **out,
                               int64_t capacity)
{
    int64_t whole = tn_pieces_along(x, &dim, "tn_chunk");

    if (whole < 0)
        return -1;
    if (chunks < 1) {
        tn_fail(TN_ERR_VALUE, "tn_chunk: chunk expects `chunks` to be greater than 0, got: %lld",
                (long long)chunks);
        return -1;
    }
    if (whole > 0)
        return tn_split(x, whole / chunks + (whole % chunks != 0), dim, out, capacity);
    chunks = tn_pieces_room(chunks, capacity, "tn_chunk");
    for (int64_t i = 0; i < chunks; i++)
        if ((out[i] = tn_narrow(x, dim, 0, 0)) == NULL)
            return -1;
    return chunks;
}

/* Splits `x` into one piece for each index of a dimension; the pieces do not have this dimension.
 * Returns the number of pieces; -1 and records a failure on error. */
TN_ATTR(unused)
static inline int64_t tn_unbind(tn_tensor *x, int64_t dim, tn_tensor **out, int64_t capacity)
{
    int64_t count = tn_pieces_along(x, &dim, "tn_unbind");

    if (count >= 0)
        count = tn_pieces_room(count, capacity, "tn_unbind");
    for (int64_t i = 0; i < count; i++)
        if ((out[i] = tn_select(x, dim, i)) == NULL)
            return -1;
    return count;
}

TN_END_DECLS
#endif

/* SPDX-License-Identifier: MIT
 *
 * Rules for shapes and views that need code. rules_parts.c has those that cut tensors into several,
 * or put several together. */
#include "rules.h"

#include <string.h>

/* Always reshape: the strides of a tensor can differ from those that PyTorch had. */
static tn_status view(tn_rule_call *call)
{
    return rule_give(call, tn_reshape(rule_tensor(call, "self"), rule_ints(call, "size")));
}

static tn_status view_as(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *other = rule_tensor(call, "other");

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, tn_reshape(self, tn_tensor_shape(other)));
}

static tn_status expand_as(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *other = rule_tensor(call, "other");

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, tn_expand(self, tn_tensor_shape(other)));
}

/* Replaces one dimension by several; one of the sizes may be -1. */
static tn_status unflatten(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    int64_t dim = rule_dim(call, "dim", self), shape[2 * TN_MAX_DIMS], known = 1, n = 0;
    int64_t open = 0;
    tn_ints sizes = rule_ints(call, "sizes"), old;

    if (call->status != TN_OK)
        return call->status;
    if (sizes.count > TN_MAX_DIMS)
        return rule_fail(call, TN_ERR_VALUE, "sizes: too many, got %lld; expected at most %d",
                         (long long)sizes.count, TN_MAX_DIMS);
    old = tn_tensor_shape(self);
    for (int64_t i = 0; i < sizes.count; i++) {
        if (sizes.at[i] > 0 && known <= INT64_MAX / sizes.at[i])
            known *= sizes.at[i];
        open += sizes.at[i] == -1;
    }
    if (open > 1)
        return rule_fail(call, TN_ERR_VALUE, "sizes: -1 several times; expected at most once");
    for (int64_t i = 0; i < old.count; i++) {
        if (i != dim) {
            shape[n++] = old.at[i];
            continue;
        }
        for (int64_t j = 0; j < sizes.count; j++)
            shape[n++] = sizes.at[j] == -1 ? old.at[i] / known : sizes.at[j];
    }
    return rule_give(call, tn_reshape(self, (tn_ints){ shape, n }));
}

/* ---- orders of dimensions -------------------------------------------------------------------- */

/* The last two dimensions exchanged; tensors with fewer stay. */
static tn_tensor *last_two(tn_rule_call *call, tn_tensor *self)
{
    if (call->status != TN_OK)
        return NULL;
    return tn_tensor_ndim(self) < 2 ? self : tn_transpose(self, -2, -1);
}

static tn_status t(tn_rule_call *call)
{
    return rule_give(call, last_two(call, rule_tensor(call, "self")));
}

static tn_status conjugate_transpose(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_dtype dtype = call->status == TN_OK ? tn_tensor_dtype(self) : TN_F32;

    return rule_give(call,
                     last_two(call, dtype == TN_C64 || dtype == TN_C128 ? tn_conj(self) : self));
}

static tn_status reverse_dims(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    int64_t dims[TN_MAX_DIMS], n;

    if (call->status != TN_OK)
        return call->status;
    n = tn_tensor_ndim(self);
    for (int64_t i = 0; i < n; i++)
        dims[i] = n - 1 - i;
    return rule_give(call, tn_permute(self, (tn_ints){ dims, n }));
}

static tn_status movedim(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_ints from = rule_ints(call, "source"), to = rule_ints(call, "destination");
    int64_t dims[TN_MAX_DIMS], n, next = 0;
    bool taken[TN_MAX_DIMS] = { false };

    if (call->status != TN_OK)
        return call->status;
    n = tn_tensor_ndim(self);
    if (from.count != to.count || from.count < 0 || from.count > n)
        return rule_fail(call, TN_ERR_VALUE,
                         "destination: wrong count, got %lld dimensions for %lld of the source; "
                         "expected as many, at most %lld",
                         (long long)to.count, (long long)from.count, (long long)n);
    for (int64_t i = 0; i < n; i++)
        dims[i] = -1;
    for (int64_t i = 0; i < from.count; i++) {
        int64_t a = from.at[i] + (from.at[i] < 0 ? n : 0), b = to.at[i] + (to.at[i] < 0 ? n : 0);

        if (a < 0 || a >= n || b < 0 || b >= n || taken[a] || dims[b] >= 0)
            return rule_fail(call, TN_ERR_VALUE,
                             "source: wrong dimension, got %lld to %lld; expected different ones "
                             "from %lld to %lld",
                             (long long)from.at[i], (long long)to.at[i], (long long)-n,
                             (long long)n - 1);
        dims[b] = a;
        taken[a] = true;
    }
    for (int64_t i = 0; i < n; i++) {
        if (dims[i] >= 0)
            continue;
        while (taken[next])
            next++;
        dims[i] = next++;
    }
    return rule_give(call, tn_permute(self, (tn_ints){ dims, n }));
}

static tn_status rot90(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    int64_t turns = ((rule_int(call, "k") % 4) + 4) % 4;
    tn_ints dims = rule_ints(call, "dims");

    if (call->status != TN_OK)
        return call->status;
    if (dims.count != 2)
        return rule_fail(call, TN_ERR_VALUE, "dims: wrong count, got %lld; expected 2",
                         (long long)dims.count);
    if (turns == 0)
        return rule_give(call, tn_clone(self));
    if (turns == 2)
        return rule_give(call, tn_flip(self, dims));
    return rule_give(call, tn_transpose(tn_flip(self, TN_INTS(dims.at[turns == 1 ? 1 : 0])),
                                        dims.at[0], dims.at[1]));
}

/* ---- diagonals ------------------------------------------------------------------------------- */

static tn_status diag(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    int64_t offset = rule_int(call, "diagonal");

    if (call->status != TN_OK)
        return call->status;
    /* A copy: what is written to it does not change `self`. */
    return rule_give(call, tn_tensor_ndim(self) == 1 ? tn_diag_embed(self, offset)
                                                     : tn_clone(tn_diagonal(self, offset)));
}

/* ---- copies of a tensor with another part ---------------------------------------------------- */

/* Writes `src` into the part of the copy, which is the result. */
static tn_status with_part(tn_rule_call *call, tn_tensor *copy, tn_tensor *part)
{
    tn_tensor *src = rule_tensor(call, "src");

    return rule_give(call, part == NULL || tn_copy_(part, src) == NULL ? NULL : copy);
}

static tn_status slice_scatter(tn_rule_call *call)
{
    tn_tensor *copy = tn_clone(rule_tensor(call, "self"));
    int64_t start = rule_has(call, "start") ? rule_int(call, "start") : INT64_MIN;
    int64_t end = rule_has(call, "end") ? rule_int(call, "end") : INT64_MIN;

    return with_part(call, copy,
                     tn_slice(copy, rule_int(call, "dim"), start, end, rule_int(call, "step")));
}

static tn_status select_scatter(tn_rule_call *call)
{
    tn_tensor *copy = tn_clone(rule_tensor(call, "self"));

    return with_part(call, copy, tn_select(copy, rule_int(call, "dim"), rule_int(call, "index")));
}

static tn_status diagonal_scatter(tn_rule_call *call)
{
    tn_tensor *copy = tn_clone(rule_tensor(call, "self"));

    return with_part(call, copy,
                     tn_diagonal(copy, rule_int(call, "offset"), rule_int(call, "dim1"),
                                 rule_int(call, "dim2")));
}

/* ---- others ---------------------------------------------------------------------------------- */

static bool same(tn_ints a, tn_ints b)
{
    return a.count == b.count &&
           (a.count == 0 || memcmp(a.at, b.at, (size_t)a.count * sizeof *a.at) == 0);
}

/* The number of elements if these are the strides of a row-major tensor of that shape, else -1; of
 * dimensions of size 1 any stride will do. */
static int64_t row_major(tn_ints shape, tn_ints strides)
{
    int64_t count = 1;

    if (shape.count != strides.count)
        return -1;
    for (int64_t i = shape.count - 1; i >= 0; i--)
        if (shape.at[i] < 0 || (shape.at[i] != 1 && strides.at[i] != count) ||
            __builtin_mul_overflow(count, shape.at[i], &count))
            return -1;
    return count;
}

/* Strides are a matter of PyTorch's memory, which is not known here: only what does not depend on
 * it can be done. */
static tn_status as_strided(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_ints size = rule_ints(call, "size"), stride = rule_ints(call, "stride");
    int64_t offset = rule_has(call, "storage_offset") ? rule_int(call, "storage_offset") : 0;
    int64_t count = row_major(size, stride);

    if (call->status != TN_OK)
        return call->status;
    if (offset == 0 && same(size, tn_tensor_shape(self)) &&
        (count >= 0 || same(stride, tn_tensor_strides(self))))
        return rule_give(call, self);
    if (offset == 0 && count == tn_tensor_numel(self) && tn_tensor_is_contiguous(self))
        return rule_give(call, tn_reshape(self, size));
    return rule_fail(call, TN_ERR_NOT_IMPLEMENTED,
                     "stride: other than that of a row-major tensor with all elements of self; "
                     "expected a program that uses reshape, transpose or unfold");
}

static tn_status sum_to_size(tn_rule_call *call)
{
    return rule_give(call, tn_sum_to(rule_tensor(call, "self"), rule_ints(call, "size")));
}

static tn_status detach(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");

    return rule_give(call, self != NULL ? tn_tensor_detach(self) : NULL);
}

/* The number i, repeats[i] times, for each i. */
static tn_status repeat_interleave(tn_rule_call *call)
{
    tn_tensor *repeats = rule_tensor(call, "repeats"), *numbers;
    int64_t size = rule_has(call, "output_size") ? rule_int(call, "output_size") : INT64_MIN;

    if (call->status != TN_OK)
        return call->status;
    numbers = tn_arange(repeats, tn_scalar_int(0), tn_scalar_int(tn_tensor_numel(repeats)),
                        tn_scalar_int(1), TN_I64);
    return rule_give(call, tn_repeat_interleave(numbers, repeats, 0, size));
}

const tn_rule_def rules_views[] = {
    { "aten.view(self, size)", .call = view },
    { "aten._unsafe_view(self, size)", .call = view },
    { "aten.view_copy(self, size)", .call = view, .copies = true },
    { "aten._reshape_alias(self, size, stride=*)", .call = view },
    { "aten.view_as(self, other)", .call = view_as },
    { "aten.reshape_as(self, other)", .call = view_as },
    { "aten.reshape(self, shape)", .text = "reshape(self, shape=shape)" },
    { "aten.expand_as(self, other)", .call = expand_as },
    { "aten.unflatten.int(self, dim, sizes)", .call = unflatten },
    { "aten.t(self)", .call = t },
    { "aten.t_(self)", .call = t },
    { "aten.t_copy(self)", .call = t, .copies = true },
    { "aten.mT(self)", .call = t },
    { "aten.mH(self)", .call = conjugate_transpose },
    { "aten.matrix_H(self)", .call = conjugate_transpose },
    { "aten.adjoint(self)", .call = conjugate_transpose },
    { "aten.numpy_T(self)", .call = reverse_dims },
    { "aten.movedim(self, source, destination)", .call = movedim },
    { "aten.moveaxis(self, source, destination)", .call = movedim },
    { "aten.rot90(self, k=1, dims=[0, 1])", .call = rot90 },
    { "aten.diag(self, diagonal=0)", .call = diag },
    { "aten.slice_scatter(self, src, dim=0, start=None, end=None, step=1)", .call = slice_scatter },
    { "aten.select_scatter(self, src, dim, index)", .call = select_scatter },
    { "aten.diagonal_scatter(self, src, offset=0, dim1=0, dim2=1)", .call = diagonal_scatter },
    { "aten.as_strided(self, size, stride, storage_offset=None)", .call = as_strided },
    { "aten.sum_to_size(self, size)", .call = sum_to_size },
    { "aten.detach(self)", .call = detach },
    { "aten.detach_(self)", .call = detach },
    { "aten.detach_copy(self)", .call = detach, .copies = true },
    { "aten.repeat_interleave.Tensor(repeats, output_size=None)", .call = repeat_interleave },
    { .function = NULL },
};

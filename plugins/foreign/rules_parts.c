/* SPDX-License-Identifier: MIT
 *
 * Rules that cut a tensor into several, or put several together. */
#include "rules.h"

#include <string.h>

enum { PARTS = 1000000 }; /* at most, of one call */

/* ---- one tensor into a list ------------------------------------------------------------------ */

/* Space for n parts. */
static tn_tensor **space_for(tn_rule_call *call, int64_t n)
{
    if (n > PARTS)
        rule_fail(call, TN_ERR_VALUE, "self: too many parts, got %lld; expected at most %d",
                  (long long)n, (int)PARTS);
    return rule_memory(call, n, sizeof(tn_tensor *));
}

static tn_status unbind(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    int64_t dim = rule_axis(call, "dim", self);
    int64_t n = call->status == TN_OK ? tn_tensor_size(self, dim) : 0;
    tn_tensor **parts = space_for(call, n);

    for (int64_t i = 0; i < n && parts != NULL; i++)
        parts[i] = tn_select(self, dim, i);
    return rule_give_list(call, parts, n);
}

/* Gives n parts; the first `longer` of them have size + 1 elements along dim, the others `size`,
 * the last what is left. */
static tn_status cut(tn_rule_call *call, tn_tensor *self, int64_t dim, int64_t n, int64_t size,
                     int64_t longer)
{
    tn_tensor **parts = space_for(call, n);
    int64_t start = 0, end;

    if (call->status != TN_OK)
        return call->status;
    end = tn_tensor_size(self, dim);
    for (int64_t i = 0; i < n; i++) {
        int64_t length = size + (i < longer);

        if (length > end - start)
            length = end - start;
        parts[i] = tn_narrow(self, dim, start, length);
        start += length;
    }
    return rule_give_list(call, parts, n);
}

static tn_status cut_by_sizes(tn_rule_call *call, tn_tensor *self, int64_t dim, tn_ints sizes)
{
    tn_tensor **parts = rule_memory(call, sizes.count, sizeof(tn_tensor *));
    int64_t start = 0;

    if (call->status != TN_OK)
        return call->status;
    for (int64_t i = 0; i < sizes.count; i++) {
        int64_t left = tn_tensor_size(self, dim) - start;

        if (sizes.at[i] < 0 || sizes.at[i] > left || (i == sizes.count - 1 && sizes.at[i] < left))
            return rule_fail(
                call, TN_ERR_VALUE,
                "sizes: wrong sum, got %lld for the last %lld elements; expected sizes "
                "whose sum is the size of the dimension",
                (long long)sizes.at[i], (long long)left);
        parts[i] = tn_narrow(self, dim, start, sizes.at[i]);
        start += sizes.at[i];
    }
    return rule_give_list(call, parts, sizes.count);
}

static tn_status chunk(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    int64_t dim = rule_axis(call, "dim", self), n = rule_int(call, "chunks"), all, size;

    if (call->status != TN_OK)
        return call->status;
    if (n < 1)
        return rule_fail(call, TN_ERR_VALUE, "chunks: out of range, got %lld; expected at least 1",
                         (long long)n);
    all = tn_tensor_size(self, dim);
    size = all / n + (all % n != 0);
    return cut(call, self, dim, size > 0 ? all / size + (all % size != 0) : n, size, 0);
}

/* Parts of one size, or of the sizes of a list. */
static tn_status split(tn_rule_call *call, const char *name)
{
    tn_tensor *self = rule_tensor(call, "self");
    int64_t dim = rule_axis(call, "dim", self), all, size;

    if (call->status != TN_OK)
        return call->status;
    if (rule_value(call, name)->kind != TN_VALUE_INT)
        return cut_by_sizes(call, self, dim, rule_ints(call, name));
    all = tn_tensor_size(self, dim);
    size = rule_int(call, name);
    if (size < (all > 0))
        return rule_fail(call, TN_ERR_VALUE, "%s: out of range, got %lld; expected at least 1",
                         name, (long long)size);
    return cut(call, self, dim, all > 0 ? all / size + (all % size != 0) : 1, size, 0);
}

static tn_status split_size(tn_rule_call *call)
{
    return split(call, "split_size");
}

static tn_status split_sizes(tn_rule_call *call)
{
    return split(call, "split_sizes");
}

/* Parts of nearly one size, or parts that end at indices. */
static tn_status split_at(tn_rule_call *call, tn_tensor *self, int64_t dim, bool sections)
{
    int64_t n, size;
    tn_ints at;
    tn_tensor **parts;

    if (call->status != TN_OK)
        return call->status;
    if (tn_tensor_ndim(self) <= dim)
        return rule_fail(call, TN_ERR_INDEX,
                         "self: wrong number of dimensions, got %d; expected "
                         "at least %lld",
                         (int)tn_tensor_ndim(self), (long long)dim + 1);
    if (sections) {
        n = rule_int(call, "sections");
        size = tn_tensor_size(self, dim);
        if (call->status == TN_OK && n < 1)
            return rule_fail(call, TN_ERR_VALUE,
                             "sections: out of range, got %lld; expected at least 1", (long long)n);
        return call->status != TN_OK ? call->status : cut(call, self, dim, n, size / n, size % n);
    }
    at = rule_ints(call, "indices");
    n = at.count >= 0 ? at.count + 1 : 0;
    parts = rule_memory(call, n, sizeof(tn_tensor *));
    for (int64_t i = 0; i < n && parts != NULL; i++)
        parts[i] = tn_slice(self, dim, i > 0 ? at.at[i - 1] : 0,
                            i < at.count ? at.at[i] : INT64_MIN);
    return rule_give_list(call, parts, n);
}

static tn_status tensor_split_sections(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");

    return split_at(call, self, rule_axis(call, "dim", self), true);
}

static tn_status tensor_split_indices(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");

    return split_at(call, self, rule_axis(call, "dim", self), false);
}

/* hsplit cuts dimension 1, or the only one. */
static tn_status hsplit(tn_rule_call *call, bool sections)
{
    tn_tensor *self = rule_tensor(call, "self");

    return split_at(call, self, self != NULL && tn_tensor_ndim(self) > 1, sections);
}

static tn_status hsplit_sections(tn_rule_call *call)
{
    return hsplit(call, true);
}

static tn_status hsplit_indices(tn_rule_call *call)
{
    return hsplit(call, false);
}

static tn_status vsplit_sections(tn_rule_call *call)
{
    return split_at(call, rule_tensor(call, "self"), 0, true);
}

static tn_status vsplit_indices(tn_rule_call *call)
{
    return split_at(call, rule_tensor(call, "self"), 0, false);
}

/* ---- lists of tensors with one shape --------------------------------------------------------- */

/* The shape to which all tensors broadcast. Returns the number of dimensions, -1: the call has
 * failed. */
static int64_t broadcast(tn_rule_call *call, tn_tensor *const *tensors, int64_t n, int64_t *shape)
{
    int64_t dims = 0;

    for (int64_t i = 0; i < n; i++)
        if (tn_tensor_ndim(tensors[i]) > dims)
            dims = tn_tensor_ndim(tensors[i]);
    for (int64_t d = 0; d < dims; d++)
        shape[d] = 1;
    for (int64_t i = 0; i < n; i++) {
        tn_ints own = tn_tensor_shape(tensors[i]);

        for (int64_t d = 0; d < own.count; d++) {
            int64_t *size = &shape[dims - own.count + d];

            if (*size != own.at[d] && *size != 1 && own.at[d] != 1) {
                rule_fail(call, TN_ERR_VALUE,
                          "tensors: shapes do not broadcast, got sizes %lld and %lld; expected "
                          "equal sizes, or 1",
                          (long long)*size, (long long)own.at[d]);
                return -1;
            }
            if (*size == 1)
                *size = own.at[d];
        }
    }
    return dims;
}

static tn_status broadcast_tensors(tn_rule_call *call)
{
    int64_t n, dims, shape[TN_MAX_DIMS];
    tn_tensor **tensors = rule_tensors(call, "tensors", &n);

    if (call->status != TN_OK)
        return call->status;
    dims = broadcast(call, tensors, n, shape);
    for (int64_t i = 0; i < n && dims >= 0; i++)
        tensors[i] = tn_expand(tensors[i], (tn_ints){ shape, dims });
    return rule_give_list(call, tensors, n);
}

/* `xy` exchanges the first two dimensions. */
static tn_status grid(tn_rule_call *call, bool xy)
{
    int64_t n, shape[TN_MAX_DIMS];
    tn_tensor **tensors = rule_tensors(call, "tensors", &n);

    if (call->status != TN_OK)
        return call->status;
    if (n > TN_MAX_DIMS)
        return rule_fail(call, TN_ERR_VALUE, "tensors: too many, got %lld; expected at most %d",
                         (long long)n, TN_MAX_DIMS);
    xy = xy && n > 1;
    for (int64_t i = 0; i < n; i++)
        shape[xy && i < 2 ? 1 - i : i] = tn_tensor_numel(tensors[i]);
    for (int64_t i = 0; i < n; i++) {
        int64_t own[TN_MAX_DIMS], at = xy && i < 2 ? 1 - i : i;

        for (int64_t d = 0; d < n; d++)
            own[d] = d == at ? shape[d] : 1;
        tensors[i] = tn_expand(tn_reshape(tensors[i], (tn_ints){ own, n }), (tn_ints){ shape, n });
    }
    return rule_give_list(call, tensors, n);
}

static tn_status meshgrid(tn_rule_call *call)
{
    return grid(call, false);
}

static tn_status meshgrid_indexing(tn_rule_call *call)
{
    const char *indexing = rule_text(call, "indexing");

    if (call->status != TN_OK)
        return call->status;
    if (strcmp(indexing, "ij") != 0 && strcmp(indexing, "xy") != 0)
        return rule_fail(call, TN_ERR_VALUE, "indexing: unknown, got %q; expected ij or xy",
                         indexing);
    return grid(call, indexing[0] == 'x');
}

/* ---- several tensors into one ---------------------------------------------------------------- */

/* A tensor with fewer than two (three) dimensions as a row, a column, or one of depth 1. */
static tn_tensor *as_row(tn_tensor *x)
{
    return tn_tensor_ndim(x) < 2 ? tn_reshape(x, TN_INTS(1, tn_tensor_numel(x))) : x;
}

static tn_tensor *as_column(tn_tensor *x)
{
    return tn_tensor_ndim(x) < 2 ? tn_reshape(x, TN_INTS(tn_tensor_numel(x), 1)) : x;
}

static tn_tensor *with_depth(tn_tensor *x)
{
    x = as_row(x);
    return x != NULL && tn_tensor_ndim(x) < 3 ? tn_unsqueeze(x, 2) : x;
}

static tn_tensor *as_vector(tn_tensor *x)
{
    return tn_tensor_ndim(x) < 1 ? tn_reshape(x, TN_INTS(1)) : x;
}

static tn_status cat_as(tn_rule_call *call, tn_tensor *(*as)(tn_tensor *x), int64_t dim)
{
    int64_t n;
    tn_tensor **tensors = rule_tensors(call, "tensors", &n);

    for (int64_t i = 0; i < n && call->status == TN_OK; i++) {
        tensors[i] = as(tensors[i]);
        if (tensors[i] == NULL)
            return rule_give(call, NULL);
    }
    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, tn_cat(tensors, n, dim));
}

static tn_status hstack(tn_rule_call *call)
{
    int64_t n;
    tn_tensor **tensors = rule_tensors(call, "tensors", &n);

    return cat_as(call, as_vector,
                  call->status == TN_OK && n > 0 && tn_tensor_ndim(tensors[0]) > 1);
}

static tn_status vstack(tn_rule_call *call)
{
    return cat_as(call, as_row, 0);
}

static tn_status dstack(tn_rule_call *call)
{
    return cat_as(call, with_depth, 2);
}

static tn_status column_stack(tn_rule_call *call)
{
    return cat_as(call, as_column, 1);
}

static tn_status at_least(tn_rule_call *call, tn_tensor *(*as)(tn_tensor *x))
{
    tn_tensor *self = rule_tensor(call, "self");

    return rule_give(call, self != NULL ? as(self) : NULL);
}

static tn_status atleast_1d(tn_rule_call *call)
{
    return at_least(call, as_vector);
}

static tn_status atleast_2d(tn_rule_call *call)
{
    return at_least(call, as_row);
}

static tn_status atleast_3d(tn_rule_call *call)
{
    return at_least(call, with_depth);
}

/* repeat, with ones in front if there are fewer numbers than dimensions. */
static tn_status tile(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_ints given = rule_ints(call, "dims");
    int64_t times[TN_MAX_DIMS], n;

    if (call->status != TN_OK)
        return call->status;
    n = tn_tensor_ndim(self);
    if (given.count >= n)
        return rule_give(call, tn_repeat(self, given));
    for (int64_t i = 0; i < n; i++)
        times[i] = i < n - given.count ? 1 : given.at[i - (n - given.count)];
    return rule_give(call, tn_repeat(self, (tn_ints){ times, n }));
}

const tn_rule_def rules_parts[] = {
    { "aten.unbind.int(self, dim=0)", .call = unbind },
    { "aten.unbind_copy.int(self, dim=0)", .call = unbind, .copies = true },
    { "aten.chunk(self, chunks, dim=0)", .call = chunk },
    { "aten.unsafe_chunk(self, chunks, dim=0)", .call = chunk },
    { "aten.split(self, split_size, dim=0)", .call = split_size },
    { "aten.split_copy(self, split_size, dim=0)", .call = split_size, .copies = true },
    { "aten.unsafe_split(self, split_size, dim=0)", .call = split_size },
    { "aten.split_with_sizes(self, split_sizes, dim=0)", .call = split_sizes },
    { "aten.split_with_sizes_copy(self, split_sizes, dim=0)", .call = split_sizes, .copies = true },
    { "aten.unsafe_split_with_sizes(self, split_sizes, dim=0)", .call = split_sizes },
    { "aten.tensor_split.sections(self, sections, dim=0)", .call = tensor_split_sections },
    { "aten.tensor_split.indices(self, indices, dim=0)", .call = tensor_split_indices },
    { "aten.hsplit.int(self, sections)", .call = hsplit_sections },
    { "aten.hsplit.array(self, indices)", .call = hsplit_indices },
    { "aten.vsplit.int(self, sections)", .call = vsplit_sections },
    { "aten.vsplit.array(self, indices)", .call = vsplit_indices },
    { "aten.broadcast_tensors(tensors)", .call = broadcast_tensors },
    { "aten.meshgrid.default(tensors)", .call = meshgrid },
    { "aten.meshgrid.indexing(tensors, indexing)", .call = meshgrid_indexing },
    { "aten.hstack(tensors)", .call = hstack },
    { "aten.vstack(tensors)", .call = vstack },
    { "aten.dstack(tensors)", .call = dstack },
    { "aten.column_stack(tensors)", .call = column_stack },
    { "aten.atleast_1d(self)", .call = atleast_1d },
    { "aten.atleast_2d(self)", .call = atleast_2d },
    { "aten.atleast_3d(self)", .call = atleast_3d },
    { "aten.tile(self, dims)", .call = tile },
    { .function = NULL },
};

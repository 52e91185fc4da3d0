/* SPDX-License-Identifier: MIT
 *
 * Rules for elements by their indices: index and index_put with tensors of integers and masks,
 * scatters of a number, embeddings. */
#include "rules.h"

#include <string.h>

/* The indices of a call: at[d] is the index of dimension d as offsets into the merged indexed
 * dimensions, NULL for a whole dimension. */
struct indices {
    tn_tensor *at[TN_MAX_DIMS]; /* integers, or TN_NONE */
    int64_t ndim;               /* of the indexed tensor */
    int64_t dims[TN_MAX_DIMS];  /* the indexed dimensions, then the others */
    int64_t count;              /* of indexed dimensions */
    bool together;              /* no whole dimension lies between the indexed ones */
    int64_t shape[TN_MAX_DIMS]; /* to which the indices broadcast */
    int64_t shape_ndim;
};

static tn_status too_many(struct rule_call *call, int64_t ndim)
{
    return rule_fail(call, TN_ERR_INDEX,
                     "indices: too many; expected at most %lld, the dimensions "
                     "of self",
                     (long long)ndim);
}

/* Checks whether a mask has the sizes of the dimensions of `self` from `first` on. */
static tn_status check_mask(struct rule_call *call, const tn_tensor *self, int64_t first,
                            const tn_tensor *mask)
{
    tn_ints old = tn_tensor_shape(self), own = tn_tensor_shape(mask);

    if (first + own.count > old.count)
        return too_many(call, old.count);
    for (int64_t d = 0; d < own.count; d++)
        if (own.at[d] != old.at[first + d])
            return rule_fail(call, TN_ERR_INDEX,
                             "indices: a mask of another size than dimension %lld of self, got "
                             "%lld; expected %lld",
                             (long long)(first + d), (long long)own.at[d],
                             (long long)old.at[first + d]);
    return TN_OK;
}

/* A mask becomes one tensor of integers for each of its dimensions. */
static tn_status add_mask(struct rule_call *call, const tn_tensor *self, struct indices *s,
                          int64_t *d, tn_tensor *mask)
{
    int64_t ndim = tn_tensor_ndim(mask);
    tn_tensor *rows;

    if (check_mask(call, self, *d, mask) != TN_OK)
        return call->status;
    rows = tn_nonzero(mask);
    if (rows == NULL)
        return rule_give(call, NULL);
    for (int64_t i = 0; i < ndim; i++) {
        s->at[*d] = tn_select(rows, 1, i);
        if (s->at[(*d)++] == NULL)
            return rule_give(call, NULL);
    }
    return TN_OK;
}

static tn_status broadcast(struct rule_call *call, struct indices *s)
{
    s->shape_ndim = 0;
    for (int64_t i = 0; i < s->count; i++)
        if (tn_tensor_ndim(s->at[s->dims[i]]) > s->shape_ndim)
            s->shape_ndim = tn_tensor_ndim(s->at[s->dims[i]]);
    for (int64_t d = 0; d < s->shape_ndim; d++)
        s->shape[d] = 1;
    for (int64_t i = 0; i < s->count; i++) {
        tn_ints own = tn_tensor_shape(s->at[s->dims[i]]);
        int64_t *to = s->shape + (s->shape_ndim - own.count);

        for (int64_t d = 0; d < own.count; d++) {
            if (to[d] != own.at[d] && to[d] != 1 && own.at[d] != 1)
                return rule_fail(call, TN_ERR_INDEX,
                                 "indices: shapes do not broadcast, got sizes %lld and %lld; "
                                 "expected equal sizes, or 1",
                                 (long long)to[d], (long long)own.at[d]);
            if (to[d] == 1)
                to[d] = own.at[d];
        }
    }
    return TN_OK;
}

/* Reads the argument "indices" for a tensor. */
static tn_status read_indices(struct rule_call *call, tn_tensor *self, struct indices *s)
{
    int64_t n, d = 0, others = 0;
    tn_tensor **given = rule_tensors(call, "indices", &n);

    *s = (struct indices){ .ndim = call->status == TN_OK ? tn_tensor_ndim(self) : 0 };
    for (int64_t i = 0; i < n && call->status == TN_OK; i++) {
        tn_dtype dtype = given[i] != TN_NONE ? tn_tensor_dtype(given[i]) : TN_I64;

        if (d >= s->ndim)
            return too_many(call, s->ndim);
        if (dtype == TN_BOOL || dtype == TN_U8)
            add_mask(call, self, s, &d, given[i]);
        else
            s->at[d++] = given[i] != TN_NONE ? rule_cast(given[i], TN_I64) : TN_NONE;
    }
    while (d < s->ndim)
        s->at[d++] = TN_NONE;
    for (d = 0; d < s->ndim && call->status == TN_OK; d++) {
        if (s->at[d] == NULL)
            return rule_give(call, NULL);
        if (s->at[d] != TN_NONE)
            s->dims[s->count++] = d;
    }
    for (d = 0; d < s->ndim; d++)
        if (s->at[d] == TN_NONE)
            s->dims[s->count + others++] = d;
    s->together = s->count > 0 && s->dims[s->count - 1] - s->dims[0] == s->count - 1;
    return call->status == TN_OK ? broadcast(call, s) : call->status;
}

/* Indices along one dimension times `step`. Elements of a table are taken, because that counts
 * negative indices from the end and refuses those that are out of range. */
static tn_tensor *offsets(tn_tensor *index, int64_t size, int64_t step)
{
    tn_tensor *table = tn_arange(index, tn_scalar_int(0), tn_scalar_int(size * step),
                                 tn_scalar_int(step), TN_I64);

    return tn_take(table, index);
}

/* The positions of the selected elements in the merged indexed dimensions of a shape. */
static tn_tensor *positions(struct rule_call *call, const struct indices *s, tn_ints shape,
                            int64_t *merged)
{
    tn_tensor *sum = NULL;

    *merged = 1;
    for (int64_t i = s->count - 1; i >= 0; i--) {
        int64_t size = shape.at[s->dims[i]], step = *merged > 0 ? *merged : 1, all;
        tn_tensor *more;

        if (__builtin_mul_overflow(step, size, &all)) {
            rule_fail(call, TN_ERR_VALUE,
                      "self: too large, got a size of %lld beside %lld; expected an int64 of "
                      "elements",
                      (long long)size, (long long)step);
            return NULL;
        }
        more = offsets(s->at[s->dims[i]], size, step);
        sum = i == s->count - 1 ? more : tn_add(sum, more);
        *merged *= size;
    }
    return sum;
}

static tn_status index_tensor(struct rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *at, *rows;
    int64_t shape[2 * TN_MAX_DIMS], n = 0, first, merged;
    struct indices s;
    tn_ints old;

    if (read_indices(call, self, &s) != TN_OK)
        return call->status;
    if (s.count == 0)
        return rule_give(call, self);
    at = positions(call, &s, tn_tensor_shape(self), &merged);
    /* Indexed dimensions that are apart come first in the result. */
    if (!s.together)
        self = tn_permute(self, (tn_ints){ s.dims, s.ndim });
    if (at == NULL || self == NULL)
        return rule_give(call, NULL);
    first = s.together ? s.dims[0] : 0;
    old = tn_tensor_shape(self);
    for (int64_t d = 0; d < s.ndim; d++)
        if (d == first)
            shape[n++] = merged;
        else if (d < first || d >= first + s.count)
            shape[n++] = old.at[d];
    rows = tn_reshape(self, (tn_ints){ shape, n });
    rows = tn_index_select(rows, tn_reshape(at, TN_INTS(tn_tensor_numel(at))), first);
    n = 0;
    for (int64_t d = 0; d < first; d++)
        shape[n++] = old.at[d];
    for (int64_t d = 0; d < s.shape_ndim; d++)
        shape[n++] = s.shape[d];
    for (int64_t d = first + s.count; d < s.ndim; d++)
        shape[n++] = old.at[d];
    return rule_give(call, tn_reshape(rows, (tn_ints){ shape, n }));
}

/* ---- index_put ------------------------------------------------------------------------------- */

/* One value under one mask needs no indices, whose number depends on values. NULL: not that. */
static tn_tensor *fill_mask(struct rule_call *call, tn_tensor *self, tn_tensor *value)
{
    int64_t n, shape[TN_MAX_DIMS], ndim;
    tn_tensor **given = rule_tensors(call, "indices", &n), *mask;

    if (call->status != TN_OK || n != 1 || given[0] == TN_NONE ||
        tn_tensor_dtype(given[0]) != TN_BOOL || tn_tensor_numel(value) != 1)
        return NULL;
    if (check_mask(call, self, 0, given[0]) != TN_OK)
        return NULL;
    ndim = tn_tensor_ndim(given[0]);
    for (int64_t d = 0; d < tn_tensor_ndim(self); d++)
        shape[d] = d < ndim ? tn_tensor_size(given[0], d) : 1;
    mask = tn_reshape(given[0], (tn_ints){ shape, tn_tensor_ndim(self) });
    value = tn_reshape(value, TN_SCALAR_SHAPE);
    return call->into != NULL ? tn_masked_fill_tensor_(self, mask, value)
                              : tn_masked_fill_tensor(self, mask, value);
}

/* The values with the indexed dimensions first, as the operator wants them. In PyTorch they are
 * where the first indexed dimension is if all of these lie together. */
static tn_tensor *values_first(const struct indices *s, tn_tensor *values, tn_ints old)
{
    int64_t shape[2 * TN_MAX_DIMS], order[2 * TN_MAX_DIMS], n = 0, first = s->dims[0];

    if (!s->together || first == 0)
        return values;
    for (int64_t d = 0; d < first; d++)
        shape[n++] = old.at[d];
    for (int64_t d = 0; d < s->shape_ndim; d++)
        shape[n++] = s->shape[d];
    for (int64_t d = first + s->count; d < s->ndim; d++)
        shape[n++] = old.at[d];
    for (int64_t d = 0; d < n; d++)
        order[d] = d < s->shape_ndim           ? first + d
                   : d < s->shape_ndim + first ? d - s->shape_ndim
                                               : d;
    return tn_permute(tn_expand(values, (tn_ints){ shape, n }), (tn_ints){ order, n });
}

static tn_status index_put(struct rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *values = rule_tensor(call, "values"), *y;
    bool accumulate = rule_bool(call, "accumulate");
    tn_tensor *at[TN_MAX_DIMS];
    int64_t back[TN_MAX_DIMS];
    struct indices s;

    if (call->status != TN_OK)
        return call->status;
    values = rule_cast(values, tn_tensor_dtype(self));
    if (values == NULL)
        return rule_give(call, NULL);
    y = accumulate ? NULL : fill_mask(call, self, values);
    if (y != NULL)
        return rule_give(call, y);
    if (call->status != TN_OK || read_indices(call, self, &s) != TN_OK)
        return call->status;
    if (s.count == 0)
        return rule_fail(call, TN_ERR_NOT_IMPLEMENTED,
                         "indices: wrong kind, got None for all dimensions; expected a tensor");
    for (int64_t i = 0; i < s.count; i++)
        at[i] = s.at[s.dims[i]];
    if (s.dims[s.count - 1] == s.count - 1)
        return rule_give(call, call->into != NULL
                                   ? tn_index_put_(self, values, at, s.count, accumulate)
                                   : tn_index_put(self, values, at, s.count, accumulate));
    for (int64_t d = 0; d < s.ndim; d++)
        back[s.dims[d]] = d;
    values = values_first(&s, values, tn_tensor_shape(self));
    y = tn_index_put(tn_permute(self, (tn_ints){ s.dims, s.ndim }), values, at, s.count,
                     accumulate);
    return rule_give(call, tn_permute(y, (tn_ints){ back, s.ndim }));
}

/* ---- one index along a dimension ------------------------------------------------------------- */

static tn_tensor *scatter_of(struct rule_call *call, tn_tensor *self, tn_tensor *index,
                             tn_tensor *src)
{
    int64_t dim = rule_int(call, "dim");

    return call->into != NULL ? tn_scatter_(self, index, src, dim)
                              : tn_scatter(self, index, src, dim);
}

static tn_tensor *spread(struct rule_call *call, tn_tensor *self, tn_tensor *index)
{
    if (call->status != TN_OK)
        return NULL;
    return tn_full(self, tn_tensor_shape(index), rule_scalar(call, "value"), tn_tensor_dtype(self));
}

static tn_status scatter_value(struct rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *index = rule_tensor(call, "index");

    return rule_give(call, scatter_of(call, self, index, spread(call, self, index)));
}

/* reduce is add or multiply. */
static tn_status scatter_with(struct rule_call *call, tn_tensor *self, tn_tensor *index,
                              tn_tensor *src)
{
    const char *reduce = rule_text(call, "reduce");
    int64_t dim = rule_int(call, "dim");

    if (call->status != TN_OK)
        return call->status;
    if (strcmp(reduce, "add") != 0 && strcmp(reduce, "multiply") != 0)
        return rule_fail(call, TN_ERR_VALUE, "reduce: unknown, got %q; expected add or multiply",
                         reduce);
    return rule_give(call, reduce[0] == 'a'
                               ? tn_scatter_add(self, index, src, dim)
                               : tn_scatter_reduce(self, index, src, dim, "prod", true));
}

static tn_status scatter_reduced(struct rule_call *call)
{
    return scatter_with(call, rule_tensor(call, "self"), rule_tensor(call, "index"),
                        rule_tensor(call, "src"));
}

static tn_status scatter_value_reduced(struct rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *index = rule_tensor(call, "index");

    return scatter_with(call, self, index, spread(call, self, index));
}

/* The value is a tensor without dimensions, which gets a gradient. */
static tn_status index_fill_tensor(struct rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *index = rule_tensor(call, "index");
    tn_tensor *value = rule_tensor(call, "value");
    int64_t dim = rule_dim(call, "dim", self), shape[TN_MAX_DIMS], ndim;

    if (call->status != TN_OK)
        return call->status;
    ndim = tn_tensor_ndim(self);
    for (int64_t d = 0; d < ndim; d++)
        shape[d] = d == dim ? tn_tensor_numel(index) : tn_tensor_size(self, d);
    value = tn_expand(rule_cast(value, tn_tensor_dtype(self)), (tn_ints){ shape, ndim });
    return rule_give(call,
                     tn_index_copy(self, offsets(index, tn_tensor_size(self, dim), 1), value, dim));
}

static tn_status take_along_dim(struct rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *index = rule_tensor(call, "indices");
    int64_t of_self[TN_MAX_DIMS], of_index[TN_MAX_DIMS], dim, ndim;

    if (!rule_has(call, "dim"))
        return rule_give(call, tn_gather(tn_flatten(self), tn_flatten(index), 0));
    dim = rule_dim(call, "dim", self);
    if (call->status != TN_OK)
        return call->status;
    ndim = tn_tensor_ndim(self);
    if (tn_tensor_ndim(index) != ndim)
        return rule_fail(
            call, TN_ERR_INDEX,
            "indices: wrong number of dimensions, got %d; expected %lld, those of self",
            (int)tn_tensor_ndim(index), (long long)ndim);
    for (int64_t d = 0; d < ndim; d++) {
        int64_t a = tn_tensor_size(self, d), b = tn_tensor_size(index, d);

        of_self[d] = d == dim || a != 1 ? a : b;
        of_index[d] = d == dim || b != 1 ? b : a;
    }
    return rule_give(call, tn_gather(tn_expand(self, (tn_ints){ of_self, ndim }),
                                     tn_expand(index, (tn_ints){ of_index, ndim }), dim));
}

/* ---- embeddings ------------------------------------------------------------------------------ */

static tn_status embedding(struct rule_call *call)
{
    int64_t padding = rule_int(call, "padding_idx"); /* negative: none */

    return rule_give(call, tn_embedding(rule_tensor(call, "weight"), rule_tensor(call, "indices"),
                                        padding < 0 ? INT64_MIN : padding,
                                        rule_bool(call, "scale_grad_by_freq")));
}

static tn_status bag(struct rule_call *call, int64_t padding)
{
    static const char *const modes[] = { "sum", "mean", "max" };
    int64_t mode = rule_int(call, "mode");

    if (rule_bool(call, "scale_grad_by_freq"))
        return rule_fail(call, TN_ERR_NOT_IMPLEMENTED,
                         "scale_grad_by_freq: wrong value, got True; expected False");
    if (mode < 0 || mode > 2)
        return rule_fail(call, TN_ERR_VALUE, "mode: unknown, got %lld; expected 0 to 2",
                         (long long)mode);
    rule_give(call, tn_embedding_bag(rule_tensor(call, "weight"), rule_tensor(call, "indices"),
                                     rule_tensor(call, "offsets"),
                                     rule_optional(call, "per_sample_weights"), modes[mode],
                                     padding, rule_bool(call, "include_last_offset")));
    /* What the derivative needs in PyTorch. */
    rule_give_none(call);
    rule_give_none(call);
    return rule_give_none(call);
}

static tn_status embedding_bag(struct rule_call *call)
{
    return bag(call, rule_has(call, "padding_idx") ? rule_int(call, "padding_idx") : INT64_MIN);
}

static tn_status embedding_bag_inside(struct rule_call *call)
{
    int64_t padding = rule_int(call, "padding_idx"); /* negative: none */

    return bag(call, padding < 0 ? INT64_MIN : padding);
}

#define BAG                                                                                        \
    "weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=*, "                       \
    "per_sample_weights=None, include_last_offset=False, "

const struct rule rules_index[] = {
    { "aten.index(self, indices)", .call = index_tensor },
    { "aten._unsafe_index(self, indices)", .call = index_tensor },
    { "aten.index_put(self, indices, values, accumulate=False)", .call = index_put },
    { "aten._unsafe_index_put(self, indices, values, accumulate=False)", .call = index_put },
    { "aten._index_put_impl(self, indices, values, accumulate=False, unsafe=*)",
      .call = index_put },
    { "aten.scatter.value(self, dim, index, value)", .call = scatter_value },
    { "aten.scatter.reduce(self, dim, index, src, reduce)", .call = scatter_reduced },
    { "aten.scatter.value_reduce(self, dim, index, value, reduce)", .call = scatter_value_reduced },
    { "aten.index_fill.int_Tensor(self, dim, index, value)", .call = index_fill_tensor },
    { "aten.take_along_dim(self, indices, dim=None)", .call = take_along_dim },
    { "aten.embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=*)",
      .call = embedding },
    { "aten.embedding_bag(" BAG "padding_idx=None)", .call = embedding_bag },
    { "aten._embedding_bag(" BAG "padding_idx=-1)", .call = embedding_bag_inside },
    { "aten._embedding_bag_forward_only(" BAG "padding_idx=-1)", .call = embedding_bag_inside },
    { .function = NULL },
};

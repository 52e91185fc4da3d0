/* SPDX-License-Identifier: MIT
 *
 * Rules for elements by their indices: index and index_put with tensors of integers and masks,
 * scatters of a number, embeddings. */
#include "rules.h"

#include <string.h>

/* Tensors of integers and masks, and the first dimension that each selects along. */
struct indices {
    tn_tensor *at[TN_MAX_DIMS];
    int64_t dims[TN_MAX_DIMS];
    int64_t count;
};

/* Reads the argument "indices" for a tensor. */
static tn_status read_indices(tn_rule_call *call, const tn_tensor *self, struct indices *s)
{
    int64_t n, d = 0, ndim = call->status == TN_OK ? tn_tensor_ndim(self) : 0;
    tn_tensor **given = rule_tensors(call, "indices", &n);

    s->count = 0;
    for (int64_t i = 0; i < n && call->status == TN_OK; i++) {
        bool none = given[i] == TN_NONE;
        tn_dtype dtype = none ? TN_I64 : tn_tensor_dtype(given[i]);
        bool mask = dtype == TN_BOOL || dtype == TN_U8;

        if (d + (mask ? tn_tensor_ndim(given[i]) : 1) > ndim || s->count == TN_MAX_DIMS)
            return rule_fail(call, TN_ERR_INDEX,
                             "indices: too many; expected at most %lld, the dimensions of self",
                             (long long)ndim);
        if (!none) {
            s->at[s->count] = rule_cast(given[i], mask ? TN_BOOL : TN_I64);
            if (s->at[s->count] == NULL)
                return rule_give(call, NULL);
            s->dims[s->count++] = d;
        }
        d += mask ? tn_tensor_ndim(given[i]) : 1;
    }
    return call->status;
}

static tn_status index_tensor(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    struct indices s;

    if (read_indices(call, self, &s) != TN_OK)
        return call->status;
    return rule_give(
        call, s.count == 0 ? self : tn_index(self, s.at, s.count, (tn_ints){ s.dims, s.count }));
}

static tn_status index_put(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *values = rule_tensor(call, "values");
    bool accumulate = rule_bool(call, "accumulate");
    struct indices s;
    tn_ints dims;

    if (call->status != TN_OK || read_indices(call, self, &s) != TN_OK)
        return call->status;
    if (s.count == 0)
        return rule_fail(call, TN_ERR_NOT_IMPLEMENTED,
                         "indices: wrong kind, got None for all dimensions; expected a tensor");
    values = rule_cast(values, tn_tensor_dtype(self));
    dims = (tn_ints){ s.dims, s.count };
    return rule_give(call, call->into != NULL
                               ? tn_index_put_(self, values, s.at, s.count, accumulate, dims)
                               : tn_index_put(self, values, s.at, s.count, accumulate, dims));
}

/* ---- one index along a dimension ------------------------------------------------------------- */

static tn_tensor *scatter_of(tn_rule_call *call, tn_tensor *self, tn_tensor *index, tn_tensor *src)
{
    int64_t dim = rule_int(call, "dim");

    return call->into != NULL ? tn_scatter_(self, index, src, dim)
                              : tn_scatter(self, index, src, dim);
}

static tn_tensor *spread(tn_rule_call *call, tn_tensor *self, tn_tensor *index)
{
    if (call->status != TN_OK)
        return NULL;
    return tn_full(self, tn_tensor_shape(index), rule_scalar(call, "value"), tn_tensor_dtype(self));
}

static tn_status scatter_value(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *index = rule_tensor(call, "index");

    return rule_give(call, scatter_of(call, self, index, spread(call, self, index)));
}

/* reduce is add or multiply. */
static tn_status scatter_with(tn_rule_call *call, tn_tensor *self, tn_tensor *index, tn_tensor *src)
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

static tn_status scatter_reduced(tn_rule_call *call)
{
    return scatter_with(call, rule_tensor(call, "self"), rule_tensor(call, "index"),
                        rule_tensor(call, "src"));
}

static tn_status scatter_value_reduced(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *index = rule_tensor(call, "index");

    return scatter_with(call, self, index, spread(call, self, index));
}

/* Indices along a dimension of a size, counted from its beginning. Elements of a table are taken,
 * because that counts negative indices from the end and refuses those that are out of range. */
static tn_tensor *from_begin(tn_tensor *index, int64_t size)
{
    return tn_take(
        tn_arange(index, tn_scalar_int(0), tn_scalar_int(size), tn_scalar_int(1), TN_I64), index);
}

/* The value is a tensor without dimensions, which gets a gradient. */
static tn_status index_fill_tensor(tn_rule_call *call)
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
                     tn_index_copy(self, from_begin(index, tn_tensor_size(self, dim)), value, dim));
}

static tn_status take_along_dim(tn_rule_call *call)
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

static tn_status embedding(tn_rule_call *call)
{
    int64_t padding = rule_int(call, "padding_idx"); /* negative: none */

    return rule_give(call, tn_embedding(rule_tensor(call, "weight"), rule_tensor(call, "indices"),
                                        padding < 0 ? INT64_MIN : padding,
                                        rule_bool(call, "scale_grad_by_freq")));
}

static tn_status bag(tn_rule_call *call, int64_t padding)
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

static tn_status embedding_bag(tn_rule_call *call)
{
    return bag(call, rule_has(call, "padding_idx") ? rule_int(call, "padding_idx") : INT64_MIN);
}

static tn_status embedding_bag_inside(tn_rule_call *call)
{
    int64_t padding = rule_int(call, "padding_idx"); /* negative: none */

    return bag(call, padding < 0 ? INT64_MIN : padding);
}

#define BAG                                                                                        \
    "weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=*, "                       \
    "per_sample_weights=None, include_last_offset=False, "

const tn_rule_def rules_index[] = {
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

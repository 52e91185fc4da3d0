/* SPDX-License-Identifier: MIT
 *
 * Rules for elements by their indices, which may be negative. */
#include "onnx/onnx_rules.h"

#include <string.h>

/* Indices from 0 on, as int64. */
static tn_tensor *positive(tn_tensor *index, int64_t n)
{
    tn_tensor *i = index != NULL ? rule_cast(index, TN_I64) : NULL;

    if (i == NULL)
        return NULL;
    return tn_where(tn_lt(i, tn_full(i, TN_SCALAR_SHAPE, tn_scalar_int(0), TN_I64)),
                    tn_add_scalar(i, tn_scalar_int(n)), i);
}

/* ---- gather ---------------------------------------------------------------------------------- */

static tn_status gather_host(tn_rule_call *call)
{
    tn_ints data = rule_ints(call, "data"), indices = rule_ints(call, "indices");
    bool list = rule_value(call, "indices")->kind == TN_VALUE_LIST;
    int64_t *out = rule_memory(call, indices.count, sizeof *out);

    for (int64_t i = 0; i < indices.count && out != NULL; i++) {
        int64_t at = indices.at[i] + (indices.at[i] < 0 ? data.count : 0);

        if (at < 0 || at >= data.count)
            return rule_fail(
                call, TN_ERR_INDEX, "indices: out of range, got %lld; expected %lld to %lld",
                (long long)indices.at[i], (long long)-data.count, (long long)data.count - 1);
        out[i] = data.at[at];
    }
    return out != NULL ? onnx_give_host(call, out, list ? indices.count : -1) : call->status;
}

/* data[..., indices[...], ...]; rows of a table as an embedding, which has the better derivative.
 */
static tn_status gather(tn_rule_call *call)
{
    tn_tensor *x, *index, *one;
    int64_t dim, sizes[2 * TN_MAX_DIMS], n = 0;

    if (onnx_is_host(call, "data") && rule_value(call, "data")->kind == TN_VALUE_LIST &&
        onnx_is_host(call, "indices"))
        return gather_host(call);
    x = rule_tensor(call, "data");
    dim = rule_axis(call, "axis", x);
    if (rule_value(call, "indices")->kind == TN_VALUE_INT && call->status == TN_OK)
        return rule_give(call, tn_select(x, dim, rule_int(call, "indices")));
    index = rule_tensor(call, "indices");
    if (call->status != TN_OK)
        return call->status;
    index = positive(index, tn_tensor_size(x, dim));
    if (index == NULL)
        return rule_give(call, NULL);
    if (dim == 0 && tn_tensor_ndim(x) == 2 &&
        (TN_BIT(tn_tensor_dtype(x)) & (TN_MASK_FLOAT | TN_MASK_INT)) != 0)
        return rule_give(call, tn_embedding(x, index));
    for (int64_t i = 0; i < dim; i++)
        sizes[n++] = tn_tensor_size(x, i);
    for (int64_t i = 0; i < tn_tensor_ndim(index); i++)
        sizes[n++] = tn_tensor_size(index, i);
    for (int64_t i = dim + 1; i < tn_tensor_ndim(x); i++)
        sizes[n++] = tn_tensor_size(x, i);
    one = tn_index_select(x, tn_reshape(index, TN_SHAPE(-1)), dim);
    if (tn_tensor_numel(index) == 0)
        one = tn_narrow(x, dim, 0, 0);
    return rule_give(call, tn_reshape(one, (tn_ints){ sizes, n }));
}

static tn_status gather_elements(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "data"), *index = rule_tensor(call, "indices");
    int64_t dim = rule_axis(call, "axis", x);

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, tn_gather(x, positive(index, tn_tensor_size(x, dim)), dim));
}

/* The columns of the last dimension of `indices`, one for each dimension of x from `first` on. */
static tn_tensor **columns(tn_rule_call *call, tn_tensor *x, tn_tensor *index, int64_t first,
                           int64_t *count)
{
    int64_t last = tn_tensor_ndim(index) - 1;
    tn_tensor **out;

    *count = last >= 0 ? tn_tensor_size(index, last) : 0;
    if (last < 0 || *count > tn_tensor_ndim(x) - first || *count < 1) {
        rule_fail(call, TN_ERR_VALUE, "indices: last size %lld; expected 1 to %lld",
                  (long long)*count, (long long)(tn_tensor_ndim(x) - first));
        return NULL;
    }
    out = rule_memory(call, *count, sizeof *out);
    for (int64_t i = 0; i < *count && out != NULL; i++) {
        out[i] = rule_cast(tn_select(index, last, i), TN_I64);
        if (out[i] == NULL) {
            rule_give(call, NULL);
            return NULL;
        }
    }
    return out;
}

static tn_status gather_nd(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "data"), *index = rule_tensor(call, "indices"), **in;
    int64_t batch = rule_int(call, "batch_dims"), count, n;

    if (call->status != TN_OK)
        return call->status;
    if (batch < 0 || batch >= tn_tensor_ndim(index) || batch >= tn_tensor_ndim(x))
        return rule_fail(call, TN_ERR_VALUE,
                         "batch_dims: out of range, got %lld; expected 0 to %lld", (long long)batch,
                         (long long)tn_tensor_ndim(index) - 1);
    in = columns(call, x, index, batch, &count);
    if (in == NULL)
        return call->status;
    n = tn_tensor_ndim(index) - 1;
    if (batch > 0) {
        tn_tensor **all = rule_memory(call, batch + count, sizeof *all);

        /* The batch dimensions select themselves. */
        for (int64_t i = 0; i < batch && all != NULL; i++) {
            int64_t shape[TN_MAX_DIMS];

            for (int64_t k = 0; k < n; k++)
                shape[k] = k == i ? tn_tensor_size(x, i) : 1;
            all[i] = tn_reshape(tn_arange(x, tn_scalar_int(0), tn_scalar_int(tn_tensor_size(x, i)),
                                          tn_scalar_int(1), TN_I64),
                                (tn_ints){ shape, n });
            if (all[i] == NULL)
                return rule_give(call, NULL);
        }
        if (all == NULL)
            return call->status;
        memcpy(all + batch, in, (size_t)count * sizeof *all);
        in = all;
    }
    return rule_give(call, tn_index(x, in, batch + count));
}

/* ---- scatter --------------------------------------------------------------------------------- */

static const char *reduction(tn_rule_call *call)
{
    static const char *const words[][2] = {
        { "add", "sum" }, { "mul", "prod" }, { "max", "amax" }, { "min", "amin" }
    };

    for (int i = 0; i < 4; i++)
        if (onnx_is(call, "reduction", words[i][0]))
            return words[i][1];
    return NULL;
}

static tn_status scatter_elements(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "data"), *index = rule_tensor(call, "indices");
    tn_tensor *updates = rule_tensor(call, "updates");
    const char *reduce = reduction(call);
    int64_t dim = rule_axis(call, "axis", x);

    if (call->status != TN_OK)
        return call->status;
    index = positive(index, tn_tensor_size(x, dim));
    return rule_give(call, reduce == NULL
                               ? tn_scatter(x, index, updates, dim)
                               : tn_scatter_reduce(x, index, updates, dim, reduce, true));
}

static tn_status scatter_nd(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "data"), *index = rule_tensor(call, "indices");
    tn_tensor *updates = rule_tensor(call, "updates"), **in, *flat, *place, *rows;
    const char *reduce = reduction(call);
    int64_t count, inner = 1, outer = 1, sizes[2];
    tn_ints shape;

    if (call->status != TN_OK)
        return call->status;
    in = columns(call, x, index, 0, &count);
    if (in == NULL)
        return call->status;
    if (reduce == NULL || strcmp(reduce, "sum") == 0)
        return rule_give(call, tn_index_put(x, updates, in, count, reduce != NULL));
    /* As rows of [outer, inner], each with the number of its row. */
    shape = tn_tensor_shape(x);
    for (int64_t i = 0; i < shape.count; i++)
        *(i < count ? &outer : &inner) *= shape.at[i];
    place = positive(in[0], shape.at[0]);
    for (int64_t i = 1; i < count; i++)
        place = tn_add(tn_mul_scalar(place, tn_scalar_int(shape.at[i])),
                       positive(in[i], shape.at[i]));
    if (place == NULL)
        return rule_give(call, NULL);
    sizes[0] = tn_tensor_numel(place);
    sizes[1] = inner;
    rows = tn_expand(tn_reshape(place, TN_SHAPE(sizes[0], 1)), (tn_ints){ sizes, 2 });
    flat = tn_scatter_reduce(tn_reshape(x, TN_SHAPE(outer, inner)), rows,
                             tn_reshape(updates, (tn_ints){ sizes, 2 }), 0, reduce, true);
    return rule_give(call, tn_reshape(flat, shape));
}

/* ---- others ---------------------------------------------------------------------------------- */

static tn_status one_hot(tn_rule_call *call)
{
    tn_tensor *index = rule_tensor(call, "indices"), *values = rule_tensor(call, "values");
    double wanted = rule_float(call, "depth");
    int64_t axis = rule_int(call, "axis"), n, depth, shape[TN_MAX_DIMS];
    tn_tensor *classes, *hot;

    if (call->status != TN_OK)
        return call->status;
    n = tn_tensor_ndim(index);
    axis += axis < 0 ? n + 1 : 0;
    if (axis < 0 || axis > n || n + 1 > TN_MAX_DIMS || !(wanted >= 1 && wanted <= INT32_MAX) ||
        tn_tensor_numel(values) != 2)
        return rule_fail(
            call, TN_ERR_VALUE,
            "axis or depth: out of range, got %lld and %g; expected an axis, and 1 to 2^31 - 1",
            (long long)axis, wanted);
    depth = (int64_t)wanted;
    for (int64_t i = 0; i <= n; i++)
        shape[i] = i == axis ? depth : 1;
    classes = tn_reshape(
        tn_arange(index, tn_scalar_int(0), tn_scalar_int(depth), tn_scalar_int(1), TN_I64),
        (tn_ints){ shape, n + 1 });
    hot = tn_eq(tn_unsqueeze(positive(index, depth), axis), classes);
    return rule_give(call, tn_where(hot, tn_select(values, 0, 1), tn_select(values, 0, 0)));
}

static tn_status compress(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input"), *condition = rule_tensor(call, "condition"), *rows;
    int64_t dim = 0;

    if (rule_has(call, "axis"))
        dim = rule_axis(call, "axis", x);
    if (call->status != TN_OK)
        return call->status;
    if (!rule_has(call, "axis"))
        x = tn_reshape(x, TN_SHAPE(-1));
    rows = tn_reshape(tn_nonzero(condition), TN_SHAPE(-1));
    return rule_give(call, tn_index_select(x, rows, dim));
}

static tn_status non_zero(tn_rule_call *call)
{
    return rule_give(call, tn_transpose(tn_nonzero(rule_tensor(call, "X")), 0, 1));
}

#define SCATTER "(data, indices, updates, axis=0, reduction='none')"

/* ---- distinct elements ----------------------------------------------------------------------- */

/* Distinct elements in ascending order, which are put into that of their first places. */
struct distinct {
    int64_t n, count;         /* elements; distinct ones */
    int64_t *inverse, *first; /* which one each element is; where each one is first */
    int64_t *order, *counts;  /* which one comes when; how often each one is there */
};

static tn_status read_inverse(tn_rule_call *call, tn_tensor *inverse, struct distinct *d)
{
    d->n = tn_tensor_numel(inverse);
    d->inverse = rule_memory(call, d->n + 1, sizeof *d->inverse);
    d->first = rule_memory(call, d->count + 1, sizeof *d->first);
    d->order = rule_memory(call, d->count + 1, sizeof *d->order);
    d->counts = rule_memory(call, d->count + 1, sizeof *d->counts);
    if (call->status != TN_OK)
        return call->status;
    if (tn_tensor_copy_out(inverse, d->inverse, (size_t)d->n * sizeof *d->inverse) != TN_OK)
        return rule_give(call, NULL);
    return TN_OK;
}

/* New numbers in the order of first places, or the old ones. */
static void number_distinct(struct distinct *d, bool sorted, int64_t *place)
{
    int64_t next = 0;

    for (int64_t i = 0; i < d->count; i++)
        place[i] = -1;
    for (int64_t i = 0; i < d->n; i++) {
        int64_t old = d->inverse[i];

        if (place[old] < 0) {
            place[old] = sorted ? old : next;
            next++;
            d->order[place[old]] = old;
            d->first[place[old]] = i;
        }
        d->inverse[i] = place[old];
        d->counts[place[old]]++;
    }
}

static tn_status unique(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *y = NULL, *inverse = NULL, *counts = NULL;
    bool sorted = rule_int(call, "sorted") != 0, whole = !rule_has(call, "axis");
    int64_t dim = whole ? 0 : rule_axis(call, "axis", x), *place;
    struct distinct d = { .n = 0 };

    if (call->status != TN_OK)
        return call->status;
    x = whole ? tn_reshape(x, TN_SHAPE(-1)) : x;
    if (x == NULL || tn_unique(x, &y, &inverse, &counts, true, true, false, dim) != TN_OK)
        return rule_give(call, NULL);
    d.count = tn_tensor_size(y, dim);
    place = rule_memory(call, d.count + 1, sizeof *place);
    if (read_inverse(call, inverse, &d) != TN_OK || place == NULL)
        return call->status;
    number_distinct(&d, sorted, place);
    if (!sorted)
        y = tn_index_select(y, tn_tensor_from(d.order, TN_I64, TN_SHAPE(d.count)), dim);
    rule_give(call, y);
    rule_give(call, tn_tensor_from(d.first, TN_I64, TN_SHAPE(d.count)));
    rule_give(call, tn_tensor_from(d.inverse, TN_I64, TN_SHAPE(d.n)));
    return rule_give(call, tn_tensor_from(d.counts, TN_I64, TN_SHAPE(d.count)));
}

const tn_rule_def onnx_rules_index[] = {
    { "Unique(X, axis=None, sorted=1)", .call = unique },
    { "Gather(data, indices, axis=0)", .call = gather, .host = TN_RULE_HOST_KEEPS },
    { "GatherElements(data, indices, axis=0)", .call = gather_elements },
    { "GatherND(data, indices, batch_dims=0)", .call = gather_nd },
    { "Scatter" SCATTER, .call = scatter_elements },
    { "ScatterElements" SCATTER, .call = scatter_elements },
    { "ScatterND(data, indices, updates, reduction='none')", .call = scatter_nd },
    { "OneHot(indices, depth, values, axis=-1)", .call = one_hot },
    { "Compress(input, condition, axis=None)", .call = compress },
    { "NonZero(X)", .call = non_zero },
    { .function = NULL },
};

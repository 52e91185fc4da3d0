/* SPDX-License-Identifier: MIT
 *
 * Rows of a table, selected by index: single rows, or rows reduced for each bag (a group of
 * indices). */
#include "formula.h"
#include <math.h>

static tn_status embedding_infer(tn_infer *infer)
{
    const tn_embedding_options *o = infer->options;
    const tn_view *weight = infer->in[0], *index = infer->in[1];
    tn_meta *meta = &infer->out[0];

    if (weight->ndim != 2)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "'weight' must be 2-D, but it has %d dimension%s",
                       (int)weight->ndim, weight->ndim == 1 ? "" : "s");
    if (o->padding_idx != INT64_MIN &&
        (o->padding_idx < -weight->shape[0] || o->padding_idx >= weight->shape[0]))
        return tn_fail(TN_ERR_VALUE,
                       /* PyTorch's wording */
                       "padding_idx %lld must be within num_embeddings, %lld; expected "
                       "%lld to %lld",
                       (long long)o->padding_idx, (long long)weight->shape[0],
                       (long long)-weight->shape[0], (long long)weight->shape[0] - 1);
    if (index->ndim == TN_MAX_DIMS)
        return tn_fail(
            TN_ERR_VALUE,
            "index: too many dimensions, got %d; expected fewer, since the result has one more",
            TN_MAX_DIMS);
    tn__common_plain(meta, tn_view_dtype(weight), tn__common_shape(index));
    meta->shape[meta->ndim++] = weight->shape[1];
    return TN_OK;
}

static tn_status embedding_decompose(const tn_decompose *call)
{
    tn_ints places = tn_tensor_shape(call->in[1]);
    int64_t row[1] = { tn_tensor_numel(call->in[1]) }, shape[TN_MAX_DIMS];
    for (int64_t d = 0; d < places.count; d++)
        shape[d] = places.at[d];
    shape[places.count] = tn_tensor_size(call->in[0], 1);
    return tn__common_given(
        call->out,
        tn_reshape(tn_index_select(call->in[0], tn_reshape(call->in[1], (tn_ints){ row, 1 }), 0),
                   (tn_ints){ shape, places.count + 1 }));
}

/* Divides each row of gy by the number of times that `index` has the row's index. */
static tn_tensor *by_frequency(tn_tensor *gy, tn_tensor *index, int64_t table)
{
    const tn_device *device = tn_tensor_device(index);
    int64_t n[1] = { tn_tensor_numel(index) };
    tn_tensor *flat = tn_reshape(index, (tn_ints){ n, 1 });
    tn_tensor *counts = tn_scatter_add(tn_tensor_full((tn_ints){ &table, 1 }, 0, TN_F32, device),
                                       flat, tn_tensor_full((tn_ints){ n, 1 }, 1, TN_F32, device),
                                       0);
    tn_tensor *each = tn_reshape(tn_index_select(counts, flat, 0), tn_tensor_shape(index));

    return tn_div(gy, tn_unsqueeze(tn_cast(each, tn_tensor_dtype(gy)), -1));
}

static tn_status embedding_derive(tn_derive *d)
{
    const tn_embedding_options *o = d->options;
    tn_ints table = tn__common_in_shape(d, 0);
    int64_t rows[2], padding = o->padding_idx;
    tn_tensor *index = d->in[1], *gy = d->gout[0];

    if (index == NULL)
        return tn_error_last_code();
    rows[0] = tn_tensor_numel(index);
    rows[1] = table.at[1];
    if (padding != INT64_MIN) {
        tn_tensor *mask = tn_eq(
            index,
            tn__scalar_number(index, (double)(padding < 0 ? padding + table.at[0] : padding)));

        gy = tn_where(tn_unsqueeze(mask, -1), tn__scalar_number(gy, 0), gy);
    }
    if (o->scale_grad_by_freq)
        gy = by_frequency(gy, index, table.at[0]);
    d->gin[0] = tn__common_scattered(d, tn__common_spread(index, (tn_ints){ rows, 2 }, 0),
                                     tn_reshape(gy, (tn_ints){ rows, 2 }), 0);
    return TN_OK;
}

static tn_status embedding_sum_infer(tn_infer *infer)
{
    const tn_view *weight = infer->in[0], *index = infer->in[1];
    char text[TN__TEXT];

    if (weight->ndim != 2 || index->ndim != 2)
        return tn_fail(TN_ERR_RUNTIME, "%s: wrong shape, got %s; expected two dimensions",
                       weight->ndim != 2 ? "weight" : "index",
                       tn__common_text(text, tn__common_shape(weight->ndim != 2 ? weight : index)));
    tn__common_plain(&infer->out[0], tn_view_dtype(weight),
                     TN_SHAPE(index->shape[0], weight->shape[1]));
    return TN_OK;
}

static tn_status embedding_sum_decompose(const tn_decompose *call)
{
    const tn_embedding_sum_options *o = call->options;
    tn_tensor *weight = call->in[0], *index = call->in[1], *y;
    int64_t length = tn_tensor_size(index, 1);

    if (length == 0)
        return tn__common_given(call->out,
                                tn__common_zeros(weight, TN_SHAPE(tn_tensor_size(index, 0),
                                                                  tn_tensor_size(weight, 1))));
    y = tn_sum(tn_embedding(weight, index), TN_INTS(1));
    return tn__common_given(call->out, o->mean ? times(y, 1 / (double)length) : y);
}

enum { WORTH = 20000 }; /* elements that are added in one call rather than copied first */

/* Adds gy to the rows of one index of all bags, or to those of all indices of one bag, whichever
 * takes fewer calls. So gy is not copied for each index of a bag, unless it is small. */
static tn_status embedding_sum_derive(tn_derive *d)
{
    const tn_embedding_sum_options *o = d->options;
    tn_tensor *index = d->in[1], *gy = d->gout[0], *sum;
    int64_t bags, length, wide = tn__common_in_shape(d, 0).at[1];

    if (index == NULL || gy == NULL)
        return tn_error_last_code();
    bags = tn_tensor_size(index, 0);
    length = tn_tensor_size(index, 1);
    if (o->mean && length > 0)
        gy = times(gy, 1 / (double)length);
    int64_t calls = length < bags ? length : bags, rows = length < bags ? bags : length;
    if (rows * wide < WORTH) {
        gy = tn_expand(tn_unsqueeze(gy, 1), TN_SHAPE(bags, length, wide));
        index = tn__common_spread(index, TN_SHAPE(bags * length, wide), 0);
        d->gin[0] = tn__common_scattered(d, index, tn_reshape(gy, TN_SHAPE(bags * length, wide)),
                                         0);
        return TN_OK;
    }
    sum = tn__common_sum(d);
    if (sum == NULL)
        sum = tn__common_zeros(gy, tn__common_in_shape(d, 0));
    for (int64_t i = 0; i < calls && sum != NULL; i++) {
        tn_tensor *places = tn_select(index, length < bags ? 1 : 0, i), *part = gy;

        if (length >= bags)
            part = tn_expand(tn_narrow(gy, 0, i, 1), TN_SHAPE(length, wide));
        sum = tn_scatter_add_(sum, tn__common_spread(places, TN_SHAPE(rows, wide), 0), part, 0);
    }
    d->gin[0] = sum;
    return TN_OK;
}

static tn_status embedding_bag_infer(tn_infer *infer)
{
    const tn_embedding_bag_options *o = infer->options;
    const tn_view *weight = infer->in[0], *index = infer->in[1], *offsets = infer->in[2],
                  *factors = infer->in[3];
    char text[TN__TEXT], text_o[TN__TEXT];

    if (weight->ndim != 2)
        return tn_fail(TN_ERR_RUNTIME, "weight: wrong shape, got %s; expected two dimensions",
                       tn__common_text(text, tn__common_shape(weight)));
    if (!(index->ndim == 2 && offsets == NULL) &&
        !(index->ndim == 1 && offsets != NULL && offsets->ndim == 1))
        return tn_fail(
            TN_ERR_VALUE,
            "index or offsets: wrong shape, got %s and %s; expected index [B, L] without offsets, "
            "or index [n] with offsets [B]",
            tn__common_text(text, tn__common_shape(index)),
            offsets != NULL ? tn__common_text(text_o, tn__common_shape(offsets)) : "None");
    if (offsets != NULL && o->include_last_offset && offsets->shape[0] < 1)
        return tn_fail(TN_ERR_VALUE,
                       "offsets: empty with include_last_offset; expected at least one element");
    if (!is(o->mode, "sum") && !is(o->mode, "mean") && !is(o->mode, "max"))
        return tn_fail(TN_ERR_VALUE, "mode: unknown, got %q; expected sum, mean or max", o->mode);
    if (factors != NULL && !is(o->mode, "sum"))
        return tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "per_sample_weights: not supported with this mode, got mode %s; expected mode sum",
            o->mode);
    if (tn__common_same_dtype(weight, "weight", factors, "per_sample_weights") != TN_OK)
        return tn_error_last_code();
    for (int32_t d = 0; factors != NULL && d < index->ndim; d++)
        if (factors->ndim != index->ndim || factors->shape[d] != index->shape[d])
            return tn_fail(
                TN_ERR_VALUE,
                "per_sample_weights: wrong shape, got %s; expected the shape of index, %s",
                tn__common_text(text, tn__common_shape(factors)),
                tn__common_text(text_o, tn__common_shape(index)));
    if (o->padding_idx != INT64_MIN &&
        (o->padding_idx >= weight->shape[0] || o->padding_idx < -weight->shape[0]))
        return tn_fail(
            TN_ERR_RUNTIME,
            "padding_idx: out of range, got %lld; expected %lld to %lld, a row of weight",
            (long long)o->padding_idx, (long long)-weight->shape[0],
            (long long)weight->shape[0] - 1);
    tn__common_plain(&infer->out[0], tn_view_dtype(weight),
                     TN_SHAPE(offsets == NULL
                                  ? index->shape[0]
                                  : offsets->shape[0] - (o->include_last_offset ? 1 : 0),
                              weight->shape[1]));
    return TN_OK;
}

/* Returns a bool tensor: true where an index counts, false where it is padding_idx. */
static tn_tensor *counting(tn_tensor *weight, tn_tensor *index, int64_t padding)
{
    if (padding < 0)
        padding += tn_tensor_size(weight, 0);
    return tn_ne(index, tn__scalar_number(index, (double)padding));
}

/* Copies `offsets` to the host and checks that they begin with 0, never decrease and are at most n.
 * Returns memory for tn_free(), or NULL and sets the error. */
static int64_t *read_offsets(tn_tensor *offsets, int64_t n, int64_t *count)
{
    int64_t *at;

    *count = tn_tensor_size(offsets, 0);
    at = tn_malloc((size_t)(*count > 0 ? *count : 1) * sizeof *at);
    if (at == NULL)
        return NULL;
    if (*count > 0 && tn_tensor_copy_out(offsets, at, (size_t)*count * sizeof *at) != TN_OK) {
        tn_free(at);
        return NULL;
    }
    for (int64_t i = 0; i < *count; i++)
        if (at[i] < (i == 0 ? 0 : at[i - 1]) || at[i] > n || (i == 0 && at[0] != 0)) {
            tn_fail(
                TN_ERR_VALUE,
                "embedding_bag: offsets[%lld]: out of range, got %lld; expected offsets that start "
                "at 0, never decrease and are at most %lld, the number of indices",
                (long long)i, (long long)at[i], (long long)n);
            tn_free(at);
            return NULL;
        }
    return at;
}

/* Returns the number of the bag of each index. The bag of an index is the last one that starts at
 * or before it. */
static tn_tensor *bags_of(tn_tensor *like, const int64_t *at, int64_t bags, int64_t n)
{
    int64_t *bag = tn_malloc((size_t)(n > 0 ? n : 1) * sizeof *bag);
    tn_tensor *to = bag == NULL ? NULL
                                : tn_tensor_empty(TN_SHAPE(n), TN_I64, tn_tensor_device(like));

    for (int64_t b = 0; bag != NULL && b < bags; b++)
        for (int64_t i = at[b]; i < (b + 1 < bags ? at[b + 1] : n); i++)
            bag[i] = b;
    if (to != NULL && n > 0 && tn_tensor_copy_in(to, bag, (size_t)n * sizeof *bag) != TN_OK)
        to = NULL;
    tn_free(bag);
    return to;
}

/* Pads all bags to the length of the longest: returns indices [B, L] and sets *counts to a mask
 * that is true for real indices. */
static tn_tensor *squared(tn_tensor *index, const int64_t *at, int64_t bags, tn_tensor **counts)
{
    int64_t n = tn_tensor_size(index, 0), longest = 0, *place;
    tn_tensor *places = NULL, *real = NULL;
    bool *there;

    for (int64_t b = 0; b < bags; b++) {
        int64_t length = (b + 1 < bags ? at[b + 1] : n) - at[b];

        longest = length > longest ? length : longest;
    }
    longest = longest > 0 ? longest : 1;
    if (n == 0) { /* There are no indices at all: padding may select any row. */
        *counts = tn_tensor_full(TN_SHAPE(bags, longest), 0, TN_BOOL, tn_tensor_device(index));
        return tn_tensor_full(TN_SHAPE(bags, longest), 0, TN_I64, tn_tensor_device(index));
    }
    place = tn_malloc((size_t)(bags * longest + 1) * sizeof *place);
    there = tn_malloc((size_t)(bags * longest + 1) * sizeof *there);
    for (int64_t b = 0; place != NULL && there != NULL && b < bags; b++) {
        int64_t length = (b + 1 < bags ? at[b + 1] : n) - at[b];

        for (int64_t i = 0; i < longest; i++) {
            place[b * longest + i] = i < length ? at[b] + i : 0;
            there[b * longest + i] = i < length;
        }
    }
    if (place != NULL && there != NULL) {
        places = tn_tensor_empty(TN_SHAPE(bags * longest), TN_I64, tn_tensor_device(index));
        real = tn_tensor_empty(TN_SHAPE(bags, longest), TN_BOOL, tn_tensor_device(index));
        if (places != NULL && real != NULL && bags > 0 &&
            (tn_tensor_copy_in(places, place, (size_t)(bags * longest) * sizeof *place) != TN_OK ||
             tn_tensor_copy_in(real, there, (size_t)(bags * longest) * sizeof *there) != TN_OK))
            places = NULL;
    }
    tn_free(place);
    tn_free(there);
    *counts = real;
    return tn_reshape(tn_index_select(index, places, 0), TN_SHAPE(bags, longest));
}

static tn_tensor *rows_of(tn_tensor *weight, tn_tensor *index, tn_tensor *factors)
{
    tn_tensor *rows = tn_embedding(weight, index);

    return factors == TN_NONE ? rows : tn_mul(rows, tn_unsqueeze(factors, -1));
}

static tn_tensor *largest(tn_tensor *weight, tn_tensor *index, tn_tensor *counts)
{
    tn_tensor *rows = tn_embedding(weight, index), *hidden, *most, *which, *none;
    int64_t one = 1;

    hidden = counts == NULL ? tn_detach(rows)
                            : tn_masked_fill(tn_detach(rows),
                                             tn_unsqueeze(tn_logical_not(counts), -1), -INFINITY);
    if (tn_max_dim(hidden, 1, &most, &which, true) != TN_OK)
        return NULL;
    most = tn_select(tn_gather(rows, which, 1), 1, 0);
    if (counts == NULL)
        return most;
    none = tn_logical_not(tn_any(counts, TN_INTS(one), true));
    return tn_masked_fill(most, none, 0);
}

/* Bags of equal length: each row of the index [B, L] is a bag. */
static tn_tensor *even_bags(const tn_embedding_bag_options *o, tn_tensor *weight, tn_tensor *index,
                            tn_tensor *factors)
{
    tn_tensor *counts = NULL, *rows, *y, *how_many;

    if (o->padding_idx == INT64_MIN && factors == TN_NONE && !is(o->mode, "max"))
        return tn_embedding_sum(weight, index, is(o->mode, "mean"));
    if (tn_tensor_size(index, 1) == 0)
        return tn__common_zeros(weight,
                                TN_SHAPE(tn_tensor_size(index, 0), tn_tensor_size(weight, 1)));
    if (o->padding_idx != INT64_MIN) {
        counts = counting(weight, index, o->padding_idx);
        if (counts == NULL)
            return NULL;
    }
    if (is(o->mode, "max"))
        return largest(weight, index, counts);
    rows = rows_of(weight, index, factors);
    if (counts != NULL && rows != NULL) {
        counts = tn_cast(counts, tn_tensor_dtype(rows));
        rows = tn_mul(rows, tn_unsqueeze(counts, -1));
    }
    y = tn_sum(rows, TN_INTS(1));
    if (is(o->mode, "sum"))
        return y;
    how_many = tn_sum(counts, TN_INTS(1), true);
    return tn_div(y,
                  tn_maximum(how_many, how_many == NULL ? NULL : tn__scalar_number(how_many, 1)));
}

static tn_tensor *uneven_bags(const tn_embedding_bag_options *o, tn_tensor *const *in,
                              const int64_t *at, int64_t bags)
{
    tn_tensor *weight = in[0], *index = in[1], *counts = NULL, *rows, *bag, *y, *how_many;

    if (is(o->mode, "max")) {
        index = squared(index, at, bags, &counts);
        if (index == NULL || counts == NULL)
            return NULL;
        if (o->padding_idx != INT64_MIN)
            counts = tn_logical_and(counts, counting(weight, index, o->padding_idx));
        return counts == NULL ? NULL : largest(weight, index, counts);
    }
    bag = bags_of(weight, at, bags, tn_tensor_size(index, 0));
    rows = rows_of(weight, index, in[3]);
    if (bag == NULL || rows == NULL)
        return NULL;
    if (o->padding_idx != INT64_MIN) {
        counts = tn_cast(counting(weight, index, o->padding_idx), tn_tensor_dtype(rows));
        rows = tn_mul(rows, tn_unsqueeze(counts, -1));
    }
    y = tn_index_add(tn__common_zeros(weight, TN_SHAPE(bags, tn_tensor_size(weight, 1))), bag, rows,
                     0);
    if (is(o->mode, "sum") || y == NULL)
        return y;
    if (counts == NULL)
        counts = tn_tensor_full(TN_SHAPE(tn_tensor_size(index, 0)), 1, tn_tensor_dtype(y),
                                tn_tensor_device(y));
    how_many = tn_index_add(tn__common_zeros(weight, TN_SHAPE(bags)), bag, counts, 0);
    how_many = tn_maximum(how_many, tn__scalar_number(y, 1));
    return tn_div(y, tn_unsqueeze(how_many, 1));
}

static tn_status embedding_bag_decompose(const tn_decompose *call)
{
    const tn_embedding_bag_options *o = call->options;
    int64_t *at, bags;
    if (call->in[2] == TN_NONE)
        return tn__common_given(call->out, even_bags(o, call->in[0], call->in[1], call->in[3]));
    at = read_offsets(call->in[2], tn_tensor_size(call->in[1], 0), &bags);
    if (at == NULL)
        return tn_error_last_code();
    if (o->include_last_offset)
        bags--;
    call->out[0] = uneven_bags(o, call->in, at, bags);
    tn_free(at);
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}
TN__OP(embedding, .infer = embedding_infer, .derive = embedding_derive,
       .decompose = embedding_decompose);

TN__OP(embedding_sum, .infer = embedding_sum_infer, .derive = embedding_sum_derive,
       .decompose = embedding_sum_decompose);
TN__OP(embedding_bag, .infer = embedding_bag_infer, .decompose = embedding_bag_decompose);

/* SPDX-License-Identifier: MIT
 *
 * Elements selected by several indices or masks together: index reads them, index_put writes them.
 *
 * The dimensions that are indexed are merged into one, along which a single index selects: with
 * indices i and j of dimensions of sizes m and n, i * n + j. */
#include "index.h"

/* What the indices select of x. */
struct selection {
    tn_tensor *at[TN_MAX_DIMS]; /* the indices; NULL in inference */
    int32_t dims[TN_MAX_DIMS];  /* the dimension of x along which each selects, ascending */
    int32_t n;                  /* number of indices: of a mask one for each of its dimensions */
    int32_t first;              /* where the dimensions that they select come in the result */
    tn_meta chosen;             /* to which shape the indices broadcast */
    int64_t shape[TN_MAX_DIMS]; /* the shape of the result */
    int32_t ndim;
};

static bool is_empty(const int64_t *shape, int32_t ndim)
{
    return tn__common_count((tn_ints){ shape, ndim }) == 0;
}

static bool is_mask(const tn_view *index)
{
    return tn_view_dtype(index) == TN_BOOL;
}

static tn_status mask_fits(const tn_view *x, const tn_view *mask, int32_t first)
{
    for (int32_t d = 0; d < mask->ndim; d++)
        if (mask->shape[d] != x->shape[first + d])
            return tn_fail(TN_ERR_INDEX,
                           /* PyTorch's wording */
                           "The shape of the mask at index %d does not match the shape of the "
                           "indexed tensor at index %d, got %lld and %lld; expected the same",
                           (int)d, (int)(first + d), (long long)mask->shape[d],
                           (long long)x->shape[first + d]);
    return TN_OK;
}

/* Writes to `first` where each of `n` indices or masks begins to select. */
static tn_status begins(const tn_view *x, const tn_view *const *indices, int64_t n, tn_ints dims,
                        int32_t *first)
{
    int32_t next = 0;

    if (n < 1 || n > x->ndim)
        return tn_fail(TN_ERR_INDEX,
                       "indices: wrong number, got %lld; expected 1 to %d, the dimensions of x",
                       (long long)n, (int)x->ndim);
    if (dims.count >= 0 && dims.count != n)
        return tn_fail(TN_ERR_VALUE,
                       "dims: wrong number, got %lld; expected one for each of %lld "
                       "indices",
                       (long long)dims.count, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        int32_t span = is_mask(indices[i]) ? indices[i]->ndim : 1;
        tn_status status = TN_OK;

        first[i] = next;
        if (dims.count >= 0)
            status = tn__common_dim(dims.at[i], x->ndim, &first[i]);
        if (status != TN_OK)
            return status;
        if (span == 0)
            return tn_fail(TN_ERR_INDEX,
                           "indices: mask %lld has no dimensions; expected at least one",
                           (long long)i);
        if (first[i] < next)
            return tn_fail(TN_ERR_VALUE,
                           "dims: wrong order, got %lld after dimension %d; expected "
                           "ascending ones, of which no mask covers the next",
                           (long long)dims.at[i], (int)(next - 1));
        if (span > x->ndim - first[i])
            return tn_fail(TN_ERR_INDEX,
                           "too many indices for tensor of dimension %d: index %lld selects along "
                           "%d from dimension %d on",
                           (int)x->ndim, (long long)i, (int)span, (int)first[i]);
        status = is_mask(indices[i]) ? mask_fits(x, indices[i], first[i]) : TN_OK;
        if (status != TN_OK)
            return status;
        next = first[i] + span;
    }
    return TN_OK;
}

/* Computes what the indices `views`, of which none is a mask, select. */
static tn_status select_by(const tn_view *x, const tn_view *const *views, struct selection *s)
{
    tn_infer all = { TN_HEAD(tn_infer), .in = views, .n_in = s->n, .n_out = 1, .out = &s->chosen };
    tn_status status = tn__broadcast_all(&all);
    int32_t next = 0, count = 0;
    int64_t rest[TN_MAX_DIMS];

    if (status != TN_OK)
        return status;
    if (s->chosen.ndim + x->ndim - s->n > TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE, "result: too many dimensions, got %d; expected at most %d",
                       (int)(s->chosen.ndim + x->ndim - s->n), TN_MAX_DIMS);
    s->first = s->dims[s->n - 1] - s->dims[0] == s->n - 1 ? s->dims[0] : 0;
    for (int32_t d = 0; d < x->ndim; d++) {
        if (next < s->n && s->dims[next] == d)
            next++;
        else
            rest[count++] = x->shape[d];
    }
    s->ndim = 0;
    for (int32_t d = 0; d < s->first; d++)
        s->shape[s->ndim++] = rest[d];
    for (int32_t d = 0; d < s->chosen.ndim; d++)
        s->shape[s->ndim++] = s->chosen.shape[d];
    for (int32_t d = s->first; d < count; d++)
        s->shape[s->ndim++] = rest[d];
    for (int32_t i = 0; i < s->n && !is_empty(s->chosen.shape, s->chosen.ndim) && status == TN_OK;
         i++)
        status = tn__common_index_into(x, s->dims[i], views[i]);
    return status;
}

static tn_status infer_selection(const tn_view *x, const tn_view *const *indices, int64_t n,
                                 tn_ints dims, bool *masks, struct selection *s)
{
    tn_status status = begins(x, indices, n, dims, s->dims);

    *masks = false;
    for (int64_t i = 0; i < n && status == TN_OK; i++)
        *masks = *masks || is_mask(indices[i]);
    s->n = (int32_t)n;
    return status != TN_OK || *masks ? status : select_by(x, indices, s);
}

static tn_tensor *whole(tn_tensor *index)
{
    return tn_tensor_dtype(index) == TN_I64 ? index : tn_cast(index, TN_I64);
}

/* Replaces masks by the indices of the places where they are true, and computes what all select. */
static tn_status find_selection(tn_tensor *of, tn_tensor *const *indices, int64_t n, tn_ints dims,
                                struct selection *s)
{
    const tn_view *x = tn_tensor_view(of), *views[TN_MAX_DIMS];
    int32_t first[TN_MAX_DIMS];
    tn_status status;

    for (int64_t i = 0; i < n && i < TN_MAX_DIMS; i++)
        views[i] = tn_tensor_view(indices[i]);
    status = begins(x, views, n, dims, first);
    s->n = 0;
    for (int64_t i = 0; i < n && status == TN_OK; i++) {
        tn_tensor *places = is_mask(views[i]) ? tn_nonzero(indices[i]) : whole(indices[i]);
        int32_t span = is_mask(views[i]) ? views[i]->ndim : 0;

        if (places == NULL)
            return tn_error_last_code();
        if (span == 0) {
            s->dims[s->n] = first[i];
            s->at[s->n++] = places;
        }
        for (int32_t d = 0; d < span; d++) {
            s->dims[s->n] = first[i] + d;
            s->at[s->n] = tn_select(places, 1, d);
            if (s->at[s->n++] == NULL)
                return tn_error_last_code();
        }
    }
    for (int32_t i = 0; i < s->n && status == TN_OK; i++)
        views[i] = tn_tensor_view(s->at[i]);
    return status == TN_OK ? select_by(x, views, s) : status;
}

/* ---- one index for several ---- */

/* The index times `step`. Reads from zeros of the size of the indexed dimension check its range. */
static tn_tensor *offsets_of(tn_tensor *index, int32_t dim, int64_t size, int64_t step,
                             tn_ints shape)
{
    tn_tensor *at = index_from_end(index_flat(index), size), *checked;
    int64_t row[TN_MAX_DIMS];

    if (at == NULL)
        return NULL;
    for (int32_t d = 0; d <= dim; d++)
        row[d] = d < dim ? 1 : tn_tensor_numel(at);
    checked = tn_reshape(at, (tn_ints){ row, dim + 1 });
    row[dim] = size;
    checked = tn_gather(tn__common_nothing(at, (tn_ints){ row, dim + 1 }), checked, dim);
    at = tn_add(index_flat(checked), step == 1 ? at : tn_mul_scalar(at, step));
    return tn_expand(tn_reshape(at, tn_tensor_shape(index)), shape);
}

/* The vector that selects along the merged dimensions what all indices select. As in PyTorch the
 * range of the indices does not matter if no element is selected. */
static tn_tensor *merged_index(const tn_view *x, const struct selection *s)
{
    tn_ints shape = { s->chosen.shape, s->chosen.ndim };
    int64_t row[1] = { tn__common_count(shape) };
    tn_tensor *sum = NULL;
    int64_t step = 1;

    if (is_empty(s->shape, s->ndim))
        return tn__common_nothing(s->at[0], (tn_ints){ row, 1 });
    if (s->n == 1)
        return index_from_end(index_flat(s->at[0]), x->shape[s->dims[0]]);
    for (int32_t i = s->n - 1; i >= 0; i--) {
        int32_t dim = s->dims[i];
        tn_tensor *more = offsets_of(s->at[i], dim, x->shape[dim], step, shape);

        sum = sum != NULL && more != NULL ? tn_add(sum, more) : more;
        if (sum == NULL)
            return NULL;
        step = tn__common_times(step, x->shape[dim]);
    }
    return index_flat(sum);
}

/* The order of x's dimensions in which those that are indexed are neighbours, at s->first; NULL in
 * place of x's own order. */
static const int64_t *neighbours(const struct selection *s, int32_t ndim, int64_t *order)
{
    int32_t at = 0, next = 0;

    if (s->dims[s->n - 1] - s->dims[0] == s->n - 1)
        return NULL;
    for (int32_t i = 0; i < s->n; i++)
        order[at++] = s->dims[i];
    for (int32_t d = 0; d < ndim; d++) {
        if (next < s->n && s->dims[next] == d)
            next++;
        else
            order[at++] = d;
    }
    return order;
}

/* x with the dimensions that are indexed as one, s->first. */
static tn_tensor *merged(tn_tensor *x, const struct selection *s)
{
    int32_t ndim = tn_tensor_ndim(x), at = 0;
    int64_t order[TN_MAX_DIMS], shape[TN_MAX_DIMS];

    if (s->n == 1)
        return x;
    if (neighbours(s, ndim, order) != NULL)
        x = tn_permute(x, (tn_ints){ order, ndim });
    if (x == NULL)
        return NULL;
    for (int32_t d = 0; d < ndim; d++) {
        if (d > s->first && d < s->first + s->n)
            shape[at - 1] = tn__common_times(shape[at - 1], tn_tensor_size(x, d));
        else
            shape[at++] = tn_tensor_size(x, d);
    }
    return tn_reshape(x, (tn_ints){ shape, at });
}

/* Undoes merged(): y gets the shape of x. */
static tn_tensor *parted(tn_tensor *y, tn_tensor *x, const struct selection *s)
{
    int32_t ndim = tn_tensor_ndim(x);
    int64_t order[TN_MAX_DIMS], shape[TN_MAX_DIMS], back[TN_MAX_DIMS];

    if (s->n == 1)
        return y;
    if (neighbours(s, ndim, order) == NULL)
        return tn_reshape(y, tn_tensor_shape(x));
    for (int32_t d = 0; d < ndim; d++) {
        shape[d] = tn_tensor_size(x, order[d]);
        back[order[d]] = d;
    }
    return tn_permute(tn_reshape(y, (tn_ints){ shape, ndim }), (tn_ints){ back, ndim });
}

/* ---- index ---- */

static tn_status index_infer(tn_infer *infer)
{
    const tn_index_options *o = infer->options;
    struct selection s = { .n = 0 };
    bool masks;
    tn_status status = infer_selection(infer->in[0], infer->in + 1, infer->n_in - 1, o->dims,
                                       &masks, &s);

    if (status == TN_OK && masks)
        return tn__common_open(infer);
    if (status == TN_OK)
        tn__common_plain(&infer->out[0], tn_view_dtype(infer->in[0]), (tn_ints){ s.shape, s.ndim });
    return status;
}

static tn_status index_decompose(const tn_decompose *call)
{
    const tn_index_options *o = call->options;
    tn_tensor *x = call->in[0], *at;
    struct selection s = { .n = 0 };
    tn_status status = find_selection(x, call->in + 1, call->n_in - 1, o->dims, &s);

    if (status != TN_OK)
        return status;
    at = merged_index(tn_tensor_view(x), &s);
    return tn__common_given(call->out, tn_reshape(tn_index_select(merged(x, &s), at, s.first),
                                                  (tn_ints){ s.shape, s.ndim }));
}

/* ---- index_put ---- */

static bool broadcasts(const tn_view *values, const struct selection *s)
{
    bool fits = values->ndim <= s->ndim;

    for (int32_t d = 0; d < values->ndim && fits; d++)
        fits = values->shape[d] == 1 || values->shape[d] == s->shape[s->ndim - values->ndim + d];
    return fits;
}

static tn_status values_fit(const tn_view *values, const struct selection *s)
{
    char text_c[TN__TEXT], text_v[TN__TEXT];

    if (broadcasts(values, s))
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "shape mismatch: values %s cannot be broadcast to the selection, %s",
                   tn__common_text(text_v, tn__common_shape(values)),
                   tn__common_text(text_c, (tn_ints){ s->shape, s->ndim }));
}

static tn_status index_put_infer(tn_infer *infer)
{
    const tn_index_put_options *o = infer->options;
    struct selection s = { .n = 0 };
    bool masks;
    tn_status status = infer_selection(infer->in[0], infer->in + 2, infer->n_in - 2, o->dims,
                                       &masks, &s);

    if (status == TN_OK)
        status = index_same_dtype(infer->in[0], infer->in[1], "values");
    if (status == TN_OK && !masks)
        status = values_fit(infer->in[1], &s);
    tn__common_plain(&infer->out[0], tn_view_dtype(infer->in[0]), tn__common_shape(infer->in[0]));
    return status;
}

/* Writes values that are the same for all places where the only index, a mask, is true: their
 * number does not matter then, and the host need not wait for it. NULL in *out: not that. */
static tn_status put_by_mask(const tn_decompose *call, tn_tensor **out)
{
    const tn_index_put_options *o = call->options;
    tn_tensor *x = call->in[0], *values = call->in[1], *mask = call->in[2], *sum;
    const tn_view *of = tn_tensor_view(x), *v = tn_tensor_view(values), *m = tn_tensor_view(mask);
    struct selection s = { .chosen = { .ndim = 1 } };
    int64_t shape[TN_MAX_DIMS];
    int32_t rest, spare, n = 0;
    tn_status status;

    *out = NULL;
    if (call->n_in != 3 || !is_mask(m))
        return TN_OK;
    status = begins(of, &m, 1, o->dims, s.dims);
    if (status != TN_OK)
        return status;
    rest = of->ndim - s.dims[0] - m->ndim;
    for (int32_t d = 0; d < of->ndim; d++) {
        if (d == s.dims[0])
            s.shape[s.ndim++] = 1;
        if (d < s.dims[0] || d >= of->ndim - rest)
            s.shape[s.ndim++] = of->shape[d];
    }
    if (!broadcasts(v, &s))
        return TN_OK;
    spare = v->ndim - rest; /* dimensions of values up to that of the selection */
    for (int32_t d = 0; d < v->ndim; d++)
        for (int32_t k = d == spare - 1 ? m->ndim : 1; k > 0; k--)
            shape[n++] = v->shape[d];
    values = tn_reshape(values, (tn_ints){ shape, n });
    for (int32_t d = 0; d < of->ndim; d++)
        shape[d] = d < s.dims[0] || d >= of->ndim - rest ? 1 : of->shape[d];
    mask = tn_reshape(mask, (tn_ints){ shape, of->ndim });
    sum = o->accumulate ? tn_add(x, values) : values;
    return tn__common_given(out, tn_where(mask, sum, x));
}

static tn_status index_put_decompose(const tn_decompose *call)
{
    const tn_index_put_options *o = call->options;
    tn_tensor *x = call->in[0], *values, *at, *y;
    struct selection s = { .n = 0 };
    tn_status status = put_by_mask(call, call->out);
    int64_t shape[TN_MAX_DIMS];
    int32_t ndim;

    if (status != TN_OK || call->out[0] != NULL)
        return status;
    status = find_selection(x, call->in + 2, call->n_in - 2, o->dims, &s);
    if (status == TN_OK)
        status = values_fit(tn_tensor_view(call->in[1]), &s);
    if (status != TN_OK)
        return status;
    at = merged_index(tn_tensor_view(x), &s);
    y = merged(x, &s);
    if (at == NULL || y == NULL)
        return tn_error_last_code();
    ndim = tn_tensor_ndim(y);
    for (int32_t d = 0; d < ndim; d++)
        shape[d] = d == s.first ? tn_tensor_numel(at) : tn_tensor_size(y, d);
    values = tn_reshape(tn_expand(call->in[1], (tn_ints){ s.shape, s.ndim }),
                        (tn_ints){ shape, ndim });
    at = tn__common_spread(at, tn_tensor_shape(y), s.first);
    y = o->accumulate ? tn_scatter_add(y, at, values, s.first) : tn_scatter(y, at, values, s.first);
    return tn__common_given(call->out, parted(y, x, &s));
}

TN__OP(index, .infer = index_infer, .decompose = index_decompose);
TN__OP(index_put, .infer = index_put_infer, .decompose = index_put_decompose);

/* SPDX-License-Identifier: MIT
 *
 * The strict device's operators along one dimension: running sums and products, order, elements
 * chosen by index. whole[0] is the dimension. */
#include "strict.h"

/* Writes the dimension, counted from the front. */
static tn_status along(const tn_call *call, struct strict_work *work, int64_t dim)
{
    int64_t ndim = call->in[0]->ndim > 0 ? call->in[0]->ndim : 1;
    work->whole[0] = dim < 0 ? dim + ndim : dim;
    if (work->whole[0] < 0 || work->whole[0] >= ndim)
        return tn_fail(TN_ERR_INDEX, "%s: dimension %lld is out of range for %lld dimensions",
                       call->op, (long long)dim, (long long)ndim);
    return TN_OK;
}

static int64_t length(const struct strict_view *view, int64_t dim)
{
    return view->ndim > 0 ? view->shape[dim] : 1;
}

static int64_t step(const struct strict_view *view, int64_t dim)
{
    return dim < view->ndim ? view->strides[dim] : 0;
}

/* Where element `index` stands in a view of as many dimensions, at 0 along `dim`. */
static int64_t line(const struct strict_view *view, const int64_t *index, int64_t dim)
{
    int64_t at = 0;
    for (int32_t i = 0; i < view->ndim; i++)
        if (i != dim)
            at += index[i] * view->strides[i];
    return at;
}

/* The shape that steps through lines: 1 along `dim`. */
static struct strict_view lines(const struct strict_view *view, int64_t dim)
{
    struct strict_view outer = *view;
    if (outer.ndim > 0 && outer.shape[dim] > 0)
        outer.shape[dim] = 1;
    return outer;
}

/* ---- running sums and products: whole[1] multiply, whole[2] from the end ----------------------- */

static tn_status scan_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0], *x = &work->view[1];
    int64_t index[TN_MAX_DIMS] = { 0 }, dim = work->whole[0], n = length(x, dim);
    struct strict_view outer = lines(x, dim);
    bool product = work->whole[1] != 0;
    if (strict_count(x) == 0)
        return TN_OK;
    do {
        double real = product;
        int64_t whole = product;
        for (int64_t k = 0; k < n; k++) {
            int64_t r = work->whole[2] ? n - 1 - k : k;
            int64_t from = line(x, index, dim) + r * step(x, dim),
                    to = line(y, index, dim) + r * step(y, dim);
            if (strict_is_float(y->dtype)) {
                double v = strict_get(work, x, from);
                real = product ? real * v : real + v;
                strict_set(work, y, to, real);
            } else {
                uint64_t v = (uint64_t)strict_get_int(work, x, from);
                whole = (int64_t)(product ? (uint64_t)whole * v : (uint64_t)whole + v);
                strict_set_int(work, y, to, whole);
            }
        }
    } while (strict_step(index, &outer));
    return TN_OK;
}

static tn_status fill_cumsum(const tn_call *call, struct strict_work *work)
{
    work->whole[2] = ((const tn_cumsum_options *)call->options)->reverse;
    return along(call, work, ((const tn_cumsum_options *)call->options)->dim);
}

static tn_status fill_cumprod(const tn_call *call, struct strict_work *work)
{
    work->whole[1] = 1;
    return along(call, work, ((const tn_cumprod_options *)call->options)->dim);
}

STRICT_KERNEL(cumsum)
{
    return strict_enqueue(call, scan_body, fill_cumsum);
}
STRICT_KERNEL(cumprod)
{
    return strict_enqueue(call, scan_body, fill_cumprod);
}

/* ---- order: whole[1] descending -------------------------------------------------------------- */

/* -1, 0, 1: how two elements of x stand to each other; NaN is largest. */
static int compared(struct strict_work *work, const struct strict_view *x, int64_t a, int64_t b)
{
    if (!strict_is_float(x->dtype)) {
        int64_t p = strict_get_int(work, x, a), q = strict_get_int(work, x, b);
        return (p > q) - (p < q);
    }
    double p = strict_get(work, x, a), q = strict_get(work, x, b);
    if (p != p || q != q)
        return (p != p) - (q != q);
    return (p > q) - (p < q);
}

/* Each element goes to the place that as many others go before. */
static tn_status sort_body(struct strict_work *work)
{
    const struct strict_view *values = &work->view[0], *places = &work->view[1],
                             *x = &work->view[2];
    int64_t index[TN_MAX_DIMS] = { 0 }, dim = work->whole[0], n = length(x, dim);
    struct strict_view outer = lines(x, dim);
    if (strict_count(x) == 0)
        return TN_OK;
    do {
        int64_t base = line(x, index, dim);
        for (int64_t i = 0; i < n; i++) {
            int64_t place = 0, own = base + i * step(x, dim);
            for (int64_t k = 0; k < n; k++) {
                int order = compared(work, x, base + k * step(x, dim), own);
                order = work->whole[1] ? -order : order;
                place += order < 0 || (order == 0 && k < i);
            }
            strict_copy_element(work, values, line(values, index, dim) + place * step(values, dim),
                                x, own);
            strict_set_int(work, places, line(places, index, dim) + place * step(places, dim), i);
        }
    } while (strict_step(index, &outer));
    return TN_OK;
}

static tn_status fill_sort(const tn_call *call, struct strict_work *work)
{
    work->whole[1] = ((const tn_sort_options *)call->options)->descending;
    return along(call, work, ((const tn_sort_options *)call->options)->dim);
}

STRICT_KERNEL(sort)
{
    return strict_enqueue(call, sort_body, fill_sort);
}

/* ---- by index -------------------------------------------------------------------------------- */

/* The element that an index points to; -1 and an error when it is out of bounds. */
static int64_t pointed(struct strict_work *work, const struct strict_view *x,
                       const struct strict_view *places, const int64_t *index)
{
    int64_t dim = work->whole[0], bound = length(x, dim), at = 0;
    int64_t i = strict_get_int(work, places, strict_place(places, index, places->ndim));
    if (i < 0 || i >= bound) {
        tn_fail(TN_ERR_INDEX,
                "%s: index %lld is out of bounds for dimension %lld with size %lld: 0 to %lld",
                work->op, (long long)i, (long long)dim, (long long)bound, (long long)bound - 1);
        return -1;
    }
    for (int32_t d = 0; d < x->ndim; d++)
        at += (d == dim ? i : index[d]) * x->strides[d];
    return at;
}

static int64_t place_in(const struct strict_view *view, const int64_t *index)
{
    int64_t at = 0;
    for (int32_t d = 0; d < view->ndim; d++)
        at += index[d] * view->strides[d];
    return at;
}

static tn_status gather_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0], *x = &work->view[1], *places = &work->view[2];
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(places) == 0)
        return TN_OK;
    do {
        int64_t from = pointed(work, x, places, index);
        if (from < 0)
            return TN_ERR_INDEX;
        strict_copy_element(work, y, place_in(y, index), x, from);
    } while (strict_step(index, places));
    return TN_OK;
}

/* whole[1]: add */
static tn_status scatter_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0], *x = &work->view[1], *places = &work->view[2],
                             *src = &work->view[3];
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(y) > 0)
        do
            strict_copy_element(work, y, place_in(y, index), x, place_in(x, index));
        while (strict_step(index, y));
    if (strict_count(places) == 0)
        return TN_OK;
    do {
        int64_t to = pointed(work, y, places, index), from = place_in(src, index);
        if (to < 0)
            return TN_ERR_INDEX;
        if (!work->whole[1])
            strict_copy_element(work, y, to, src, from);
        else if (strict_is_float(y->dtype))
            strict_set(work, y, to, strict_get(work, y, to) + strict_get(work, src, from));
        else
            strict_set_int(work, y, to,
                           (int64_t)((uint64_t)strict_get_int(work, y, to) +
                                     (uint64_t)strict_get_int(work, src, from)));
    } while (strict_step(index, places));
    return TN_OK;
}

static tn_status fill_gather(const tn_call *call, struct strict_work *work)
{
    return along(call, work, ((const tn_gather_options *)call->options)->dim);
}
static tn_status fill_scatter(const tn_call *call, struct strict_work *work)
{
    return along(call, work, ((const tn_scatter_options *)call->options)->dim);
}
static tn_status fill_scatter_add(const tn_call *call, struct strict_work *work)
{
    work->whole[1] = 1;
    return along(call, work, ((const tn_scatter_add_options *)call->options)->dim);
}

STRICT_KERNEL(gather)
{
    return strict_enqueue(call, gather_body, fill_gather);
}
STRICT_KERNEL(scatter)
{
    return strict_enqueue(call, scatter_body, fill_scatter);
}
STRICT_KERNEL(scatter_add)
{
    return strict_enqueue(call, scatter_body, fill_scatter_add);
}

/* ---- rows of numbers ------------------------------------------------------------------------- */

static tn_status arange_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0];
    double start = work->real[0], by = work->real[1];
    for (int64_t i = 0; i < strict_count(y); i++)
        if (strict_is_float(y->dtype))
            strict_set(work, y, i * y->strides[0], start + (double)i * by);
        else
            strict_set_int(work, y, i * y->strides[0], (int64_t)start + i * (int64_t)by);
    return TN_OK;
}

static tn_status fill_arange(const tn_call *call, struct strict_work *work)
{
    work->real[0] = ((const tn_arange_options *)call->options)->start;
    work->real[1] = ((const tn_arange_options *)call->options)->step;
    return TN_OK;
}

STRICT_KERNEL(arange)
{
    return strict_enqueue(call, arange_body, fill_arange);
}

/* ---- places: what is not 0 is counted on the device's thread, waited for, and then written -------- */

static bool is_zero(struct strict_work *work, const struct strict_view *x, int64_t at)
{
    return strict_is_float(x->dtype) ? strict_get(work, x, at) == 0
                                     : strict_get_int(work, x, at) == 0;
}

/* whole[0]: where the count goes. */
static tn_status count_body(struct strict_work *work)
{
    const struct strict_view *x = &work->view[0];
    int64_t index[TN_MAX_DIMS] = { 0 }, *found = (int64_t *)(intptr_t)work->whole[0];
    if (strict_count(x) > 0)
        do
            *found += !is_zero(work, x, place_in(x, index));
        while (strict_step(index, x));
    return TN_OK;
}

static tn_status fill_count(const tn_call *call, struct strict_work *work)
{
    work->whole[0] = (int64_t)(intptr_t)call->options;
    return TN_OK;
}

static tn_status nonzero_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0], *x = &work->view[1];
    int64_t index[TN_MAX_DIMS] = { 0 }, row = 0;
    if (strict_count(x) == 0)
        return TN_OK;
    do {
        if (is_zero(work, x, place_in(x, index)))
            continue;
        for (int32_t d = 0; d < x->ndim; d++)
            strict_set_int(work, y, row * y->strides[0] + d * y->strides[1], index[d]);
        row++;
    } while (strict_step(index, x));
    return TN_OK;
}

STRICT_KERNEL(nonzero)
{
    int64_t shape[2] = { 0, call->in[0]->ndim };
    tn_call counting = *call;
    counting.n_out = 0;
    counting.options = &shape[0];
    tn_status status = strict_enqueue(&counting, count_body, fill_count);
    if (status == TN_OK)
        status = strict_stream_sync(call->device, call->stream);
    if (status == TN_OK)
        status = call->make_output(call, 0, (tn_ints){ shape, 2 });
    return status == TN_OK ? strict_enqueue(call, nonzero_body, NULL) : status;
}

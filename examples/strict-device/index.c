/* SPDX-License-Identifier: MIT
 *
 * The kernels of gather, scatter, scatter_add and nonzero on the strict device. whole[0] is the
 * dimension. */
#include "strict.h"

/* Returns the offset of the element of x that an index selects. If the index is out of bounds,
 * returns -1 and sets the error. */
static int64_t pointed(struct strict_work *work, const struct strict_view *x,
                       const struct strict_view *places, const int64_t *index)
{
    int64_t dim = work->whole[0], bound = strict_length(x, dim), at = 0;
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
        strict_copy_element(work, y, strict_offset(y, index), x, from);
    } while (strict_step(index, places));
    return TN_OK;
}

/* whole[1]: 1 to add, 0 to replace */
static tn_status scatter_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0], *x = &work->view[1], *places = &work->view[2],
                             *src = &work->view[3];
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(y) > 0)
        do
            strict_copy_element(work, y, strict_offset(y, index), x, strict_offset(x, index));
        while (strict_step(index, y));
    if (strict_count(places) == 0)
        return TN_OK;
    do {
        int64_t to = pointed(work, y, places, index), from = strict_offset(src, index);
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
    return strict_dim(call, work, ((const tn_gather_options *)call->options)->dim);
}
static tn_status fill_scatter(const tn_call *call, struct strict_work *work)
{
    return strict_dim(call, work, ((const tn_scatter_options *)call->options)->dim);
}
static tn_status fill_scatter_add(const tn_call *call, struct strict_work *work)
{
    work->whole[1] = 1;
    return strict_dim(call, work, ((const tn_scatter_add_options *)call->options)->dim);
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

/* ---- nonzero: counts on the device's thread, waits, then writes the indices ------------------ */

static bool is_zero(struct strict_work *work, const struct strict_view *x, int64_t at)
{
    return strict_is_float(x->dtype) ? strict_get(work, x, at) == 0
                                     : strict_get_int(work, x, at) == 0;
}

/* Counts the elements that are not 0; whole[0] is the address of the count. */
static tn_status count_body(struct strict_work *work)
{
    const struct strict_view *x = &work->view[0];
    int64_t index[TN_MAX_DIMS] = { 0 }, *found = (int64_t *)(intptr_t)work->whole[0];
    if (strict_count(x) > 0)
        do
            *found += !is_zero(work, x, strict_offset(x, index));
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
        if (is_zero(work, x, strict_offset(x, index)))
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

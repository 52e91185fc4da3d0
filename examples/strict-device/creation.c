/* SPDX-License-Identifier: MIT
 *
 * fill and arange of the strict device. */
#include "strict.h"

tn_status strict_fill_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0];
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(y) == 0)
        return TN_OK;
    do
        strict_set(work, y, strict_place(y, index, y->ndim), work->real[0]);
    while (strict_step(index, y));
    return TN_OK;
}

static tn_status fill_fill(const tn_call *call, struct strict_work *work)
{
    work->real[0] = ((const tn_fill_options *)call->options)->value;
    return TN_OK;
}

STRICT_KERNEL(fill)
{
    return strict_enqueue(call, strict_fill_body, fill_fill);
}

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

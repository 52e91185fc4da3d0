/* SPDX-License-Identifier: MIT
 *
 * The kernels of fill and arange on the strict device. */
#include "strict.h"

tn_status strict_fill_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0];
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(y) == 0)
        return TN_OK;
    do
        if (strict_is_float(y->dtype))
            strict_set(work, y, strict_place(y, index, y->ndim), work->real[0]);
        else
            strict_set_int(work, y, strict_place(y, index, y->ndim), work->whole[0]);
    while (strict_step(index, y));
    return TN_OK;
}

static tn_status fill_fill(const tn_call *call, struct strict_work *work)
{
    tn_scalar value = ((const tn_fill_options *)call->options)->value;
    strict_number(call, work, 0, value);
    if (tn_view_dtype(call->out[0]) == TN_BOOL)
        work->whole[0] = work->real[0] != 0 || tn_scalar_imag(value) != 0;
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
    uint64_t first = (uint64_t)work->whole[0], pace = (uint64_t)work->whole[1];
    for (int64_t i = 0; i < strict_count(y); i++)
        if (strict_is_float(y->dtype))
            strict_set(work, y, i * y->strides[0], start + (double)i * by);
        else
            strict_set_int(work, y, i * y->strides[0], (int64_t)(first + (uint64_t)i * pace));
    return TN_OK;
}

static tn_status fill_arange(const tn_call *call, struct strict_work *work)
{
    strict_number(call, work, 0, ((const tn_arange_options *)call->options)->start);
    strict_number(call, work, 1, ((const tn_arange_options *)call->options)->step);
    return TN_OK;
}

STRICT_KERNEL(arange)
{
    return strict_enqueue(call, arange_body, fill_arange);
}

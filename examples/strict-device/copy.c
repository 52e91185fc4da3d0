/* SPDX-License-Identifier: MIT
 *
 * The kernel of the operator copy on the strict device. */
#include "strict.h"

void strict_convert_element(struct strict_work *work, const struct strict_view *to, int64_t to_at,
                            const struct strict_view *from, int64_t from_at)
{
    if (to->dtype == from->dtype)
        strict_copy_element(work, to, to_at, from, from_at);
    else if (strict_is_float(from->dtype))
        strict_set(work, to, to_at, strict_get(work, from, from_at));
    else if (strict_is_float(to->dtype))
        strict_set(work, to, to_at, (double)strict_get_int(work, from, from_at));
    else
        strict_set_int(work, to, to_at, strict_get_int(work, from, from_at));
}

static tn_status copy_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0], *x = &work->view[1];
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(y) == 0)
        return TN_OK;
    do
        strict_convert_element(work, y, strict_place(y, index, y->ndim), x,
                               strict_place(x, index, y->ndim));
    while (strict_step(index, y));
    return TN_OK;
}

tn_status strict_copy_kernel(const tn_call *call)
{
    return strict_enqueue(call, copy_body, NULL);
}

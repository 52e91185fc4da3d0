/* SPDX-License-Identifier: MIT
 *
 * The kernels of cumsum and cumprod on the strict device. whole[0] is the dimension; whole[1] is 1
 * for products; whole[2] is 1 to begin at the last element. */
#include "strict.h"

static tn_status scan_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0], *x = &work->view[1];
    int64_t index[TN_MAX_DIMS] = { 0 }, dim = work->whole[0], n = strict_length(x, dim);
    struct strict_view outer = strict_lines(x, dim);
    bool product = work->whole[1] != 0;
    if (strict_count(x) == 0)
        return TN_OK;
    do {
        double real = product;
        int64_t whole = product;
        for (int64_t k = 0; k < n; k++) {
            int64_t r = work->whole[2] ? n - 1 - k : k;
            int64_t from = strict_line(x, index, dim) + r * strict_stride(x, dim),
                    to = strict_line(y, index, dim) + r * strict_stride(y, dim);
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
    return strict_dim(call, work, ((const tn_cumsum_options *)call->options)->dim);
}

static tn_status fill_cumprod(const tn_call *call, struct strict_work *work)
{
    work->whole[1] = 1;
    return strict_dim(call, work, ((const tn_cumprod_options *)call->options)->dim);
}

STRICT_KERNEL(cumsum)
{
    return strict_enqueue(call, scan_body, fill_cumsum);
}
STRICT_KERNEL(cumprod)
{
    return strict_enqueue(call, scan_body, fill_cumprod);
}

/* SPDX-License-Identifier: MIT
 *
 * The kernel of sort on the strict device. whole[0] is the dimension; whole[1] is 1 to sort
 * descending. */
#include "strict.h"

/* Compares two elements of x: returns -1, 0 or 1. NaN is larger than all numbers. */
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

/* Sorts by counting: the index of an element in the result is the number of elements that must come
 * before it. */
static tn_status sort_body(struct strict_work *work)
{
    const struct strict_view *values = &work->view[0], *places = &work->view[1],
                             *x = &work->view[2];
    int64_t index[TN_MAX_DIMS] = { 0 }, dim = work->whole[0], n = strict_length(x, dim);
    struct strict_view outer = strict_lines(x, dim);
    if (strict_count(x) == 0)
        return TN_OK;
    do {
        int64_t base = strict_line(x, index, dim);
        for (int64_t i = 0; i < n; i++) {
            int64_t place = 0, own = base + i * strict_stride(x, dim);
            for (int64_t k = 0; k < n; k++) {
                int order = compared(work, x, base + k * strict_stride(x, dim), own);
                order = work->whole[1] ? -order : order;
                place += order < 0 || (order == 0 && k < i);
            }
            strict_copy_element(
                work, values, strict_line(values, index, dim) + place * strict_stride(values, dim),
                x, own);
            strict_set_int(work, places,
                           strict_line(places, index, dim) + place * strict_stride(places, dim), i);
        }
    } while (strict_step(index, &outer));
    return TN_OK;
}

static tn_status fill_sort(const tn_call *call, struct strict_work *work)
{
    work->whole[1] = ((const tn_sort_options *)call->options)->descending;
    return strict_dim(call, work, ((const tn_sort_options *)call->options)->dim);
}

STRICT_KERNEL(sort)
{
    return strict_enqueue(call, sort_body, fill_sort);
}

/* SPDX-License-Identifier: MIT
 *
 * The kernel of bmm on the strict device. Floats are accumulated in float64. */
#include "strict.h"

static tn_status bmm_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0], *a = &work->view[1], *b = &work->view[2];
    bool real = strict_is_float(y->dtype);
    for (int64_t n = 0; n < y->shape[0]; n++)
        for (int64_t i = 0; i < y->shape[1]; i++)
            for (int64_t j = 0; j < y->shape[2]; j++) {
                double sum = 0;
                uint64_t whole = 0;
                for (int64_t k = 0; k < a->shape[2]; k++) {
                    int64_t at_a = (a->shape[0] == 1 ? 0 : n * a->strides[0]) + i * a->strides[1] +
                                   k * a->strides[2];
                    int64_t at_b = (b->shape[0] == 1 ? 0 : n * b->strides[0]) + k * b->strides[1] +
                                   j * b->strides[2];
                    if (real)
                        sum += strict_get(work, a, at_a) * strict_get(work, b, at_b);
                    else
                        whole += (uint64_t)strict_get_int(work, a, at_a) *
                                 (uint64_t)strict_get_int(work, b, at_b);
                }
                int64_t at = n * y->strides[0] + i * y->strides[1] + j * y->strides[2];
                if (real)
                    strict_set(work, y, at, sum);
                else
                    strict_set_int(work, y, at, (int64_t)whole);
            }
    return TN_OK;
}

STRICT_KERNEL(bmm)
{
    return strict_enqueue(call, bmm_body, NULL);
}

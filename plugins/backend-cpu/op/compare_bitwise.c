/* SPDX-License-Identifier: MIT
 *
 * Bitwise operators on integers and booleans. If all tensors are contiguous and of one shape, their
 * memory is processed as bytes, whatever the dtype; otherwise the loops of elementwise.c run. */
#include <string.h>

#include "op/elementwise.h"
#include "simd/simd.h"

enum { GRAIN = 1 << 17 }; /* bytes */

struct job {
    enum tn__bits kind;
    char *y;
    const char *a, *b;
};

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;

    tn__simd.copy->bits[job->kind](end - begin, job->y + begin, job->a + begin, job->b + begin);
    return TN_OK;
}

/* Returns whether all views have one shape and are contiguous in row-major order. */
static bool all_packed(const tn_call *call, int64_t *bytes)
{
    const tn_view *y = call->out[0];
    int64_t step = 1;

    for (int32_t d = y->ndim - 1; d >= 0; step *= y->shape[d--]) {
        if (y->shape[d] > 1 && y->strides[d] != step)
            return false;
        for (int64_t i = 0; i < call->n_in; i++)
            if (call->in[i]->ndim != y->ndim || call->in[i]->shape[d] != y->shape[d] ||
                (y->shape[d] > 1 && call->in[i]->strides[d] != step))
                return false;
    }
    *bytes = step * tn__view_item(y);
    return y->ndim > 0;
}

static char *first(const tn_view *view)
{
    return (char *)view->data + view->byte_offset;
}

static tn_status bits(const tn_call *call, enum tn__bits kind,
                      tn_status (*otherwise)(const tn_call *))
{
    struct job job = { .kind = kind };
    int64_t bytes = 0;

    if (!all_packed(call, &bytes))
        return otherwise(call);
    if (bytes == 0)
        return TN_OK;
    job.y = first(call->out[0]);
    job.a = first(call->in[0]);
    job.b = call->n_in > 1 ? first(call->in[1]) : job.a;
    return bytes <= GRAIN ? part(&job, 0, bytes) : tn_parallel_for(bytes, GRAIN, part, &job);
}

static tn_status run_bitwise_and(const tn_call *call)
{
    return bits(call, TN__BITS_AND, tn__elementwise);
}

static tn_status run_bitwise_or(const tn_call *call)
{
    return bits(call, TN__BITS_OR, tn__elementwise);
}

static tn_status run_bitwise_xor(const tn_call *call)
{
    return bits(call, TN__BITS_XOR, tn__elementwise);
}

static tn_status elementwise_not(const tn_call *call)
{
    bool truth = tn_view_dtype(call->in[0]) == TN_BOOL;
    return tn__elementwise_run(call, truth ? TN__EW_bitwise_not_bool : TN__EW_bitwise_not, 1, NULL);
}

static tn_status run_bitwise_not(const tn_call *call)
{
    return bits(call, tn_view_dtype(call->in[0]) == TN_BOOL ? TN__BITS_NOT_BOOL : TN__BITS_NOT,
                elementwise_not);
}

static const tn_kernel_def kernels[] = {
    TN__ELEMENTWISE_KERNEL(bitwise_and, TN__INTS_BOOL, run_bitwise_and, TN__EW_bitwise_and, 2,
                           NULL),
    TN__ELEMENTWISE_KERNEL(bitwise_or, TN__INTS_BOOL, run_bitwise_or, TN__EW_bitwise_or, 2, NULL),
    TN__ELEMENTWISE_KERNEL(bitwise_xor, TN__INTS_BOOL, run_bitwise_xor, TN__EW_bitwise_xor, 2,
                           NULL),
    TN__KERNEL(bitwise_not, TN__INTS_BOOL),
};
TN__KERNEL_TABLE(compare_bitwise);

/* SPDX-License-Identifier: MIT
 *
 * Operators that write into their inputs (TN_OPERAND_WRITTEN): many tensors change in one call,
 * as in the step of an optimizer. What is written must be writable, must not be passed twice,
 * and must not be recorded. */
#include "core/op/private.h"

#include <stdlib.h>

/* The bytes between the first and the last element of a tensor, and which input it is. */
struct reach {
    uintptr_t memory; /* 0 where `begin` is an address: foreign memory may be in another storage */
    uint64_t begin, end;
    int64_t index;
};

static struct reach reach_of(const tn_tensor *tensor, int64_t index)
{
    uint64_t item = tn_dtype_size((tn_dtype)tensor->dtype);
    struct reach reach = { (uintptr_t)tensor->view.data, tensor->view.byte_offset, 0, index };

    if (tn_device_is_host(tensor->device)) {
        reach.begin += reach.memory;
        reach.memory = 0;
    }
    reach.end = reach.begin + item;
    for (int32_t d = 0; d < tensor->view.ndim; d++)
        reach.end += (uint64_t)((tensor->view.shape[d] - 1) * tensor->view.strides[d]) * item;
    return reach;
}

static int by_place(const void *a, const void *b)
{
    const struct reach *x = a, *y = b;

    if (x->memory != y->memory)
        return x->memory < y->memory ? -1 : 1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* No two inputs share memory: sorted by place, each ends before the next begins. */
static tn_status check_apart(const tn__work *work)
{
    struct reach few[16], *reaches = few;
    const struct reach *last = NULL;
    tn_status status = TN_OK;
    int64_t n = 0;

    if (!tn_device_has_memory(work->device))
        return TN_OK;
    if (work->n_in > 16) {
        reaches = tn_malloc((size_t)work->n_in * sizeof *reaches);
        if (reaches == NULL)
            return TN_ERR_MEMORY;
    }
    for (int64_t i = 0; i < work->n_in; i++)
        if (!tn__is_none(work->in[i]) && work->in[i]->numel > 0)
            reaches[n++] = reach_of(work->in[i], i);
    qsort(reaches, (size_t)n, sizeof *reaches, by_place);
    for (int64_t i = 0; i < n && status == TN_OK; i++) {
        const struct reach *at = &reaches[i];

        if (last != NULL && last->memory == at->memory && at->begin < last->end)
            status = tn_fail(TN_ERR_RUNTIME,
                             "%s: inputs %lld and %lld share memory, and one is written; tn_copy "
                             "one of them first",
                             work->op->def.name, (long long)last->index, (long long)at->index);
        if (last == NULL || last->memory != at->memory || at->end > last->end)
            last = at;
    }
    if (reaches != few)
        tn_free(reaches);
    return status;
}

/* Groups count from the first tensor of the list, which is the last operand. */
static bool is_written(const tn__work *work, int64_t i)
{
    int64_t place = i - (work->op->def.n_inputs - 1);

    if ((tn__operand(work->op, i)->flags & TN_OPERAND_WRITTEN) == 0)
        return false;
    return place < 0 || work->group <= 0 || work->group > 64 ||
           (work->only_read >> place % work->group & 1) == 0;
}

static tn_status check_writable(const tn__work *work)
{
    for (int64_t i = 0; i < work->n_in; i++) {
        const tn_tensor *tensor = work->in[i];
        tn_status status;

        if (tn__is_none(tensor) || !is_written(work, i))
            continue;
        status = tn__tensor_writable(tensor);
        if (status != TN_OK)
            return tn_error_prefix("%s: input %lld: ", work->op->def.name, (long long)i);
        if (tn__tensor_repeats(tensor))
            return tn_fail(TN_ERR_RUNTIME,
                           "%s: input %lld is written, but several of its elements share memory "
                           "(it was expanded, or its windows overlap); tn_copy returns a tensor "
                           "that can be written",
                           work->op->def.name, (long long)i);
    }
    return TN_OK;
}

tn_status tn__write_check(const tn__work *work)
{
    tn_status status;

    if (work->wants_grad)
        return tn_fail(TN_ERR_RUNTIME,
                       "%s: it writes into its inputs and has no derivative, but one of them "
                       "requires grad; call it between tn_grad_begin(false) and tn_grad_end()",
                       work->op->def.name);
    status = check_writable(work);
    return status == TN_OK ? check_apart(work) : status;
}

void tn__write_done(tn__work *work)
{
    for (int64_t i = 0; i < work->n_in; i++)
        if (!tn__is_none(work->in[i]) && is_written(work, i))
            tn__tensor_written(work->in[i]);
}

tn_status tn__write_call(tn__work *work, tn_tensor **out)
{
    tn_status status = tn__write_check(work);

    if (status == TN_OK)
        status = tn__run_work(work, out, false);
    tn__write_done(work); /* a step that failed may have written, too */
    return status;
}

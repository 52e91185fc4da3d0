/* SPDX-License-Identifier: MIT
 *
 * Operators that write into their inputs. TN_OPERAND_WRITTEN: one call changes many tensors, such
 * as a step of an optimizer, and records no gradients. TN_OPERAND_UPDATED: running values change
 * besides the results, for which gradients may be recorded. An input that is written must be
 * writable and must share no memory with another input. */
#include "core/op/private.h"

#include <stdlib.h>

/* The memory of an input, from its first element to the end of the last. */
struct reach {
    /* The handle of the memory, to which `begin` and `end` are offsets. For host memory it is 0,
     * and they are addresses: two storages may refer to the same memory of the program. */
    uintptr_t memory;
    uint64_t begin, end;
    int64_t index;
    bool written;
};

static struct reach reach_of(const tn_tensor *tensor, int64_t index, bool written)
{
    uint64_t item = tn_dtype_size((tn_dtype)tensor->dtype);
    struct reach reach = { (uintptr_t)tensor->view.data, tensor->view.byte_offset, 0, index,
                           written };

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

/* Returns whether a call writes input i. The tensors of a list may come in groups (tn_infer.group),
 * in which some are only read. Groups are counted from the first tensor of the list, which is the
 * last operand. */
bool tn__write_into(const tn__work *work, int64_t i)
{
    uint64_t flags = tn__operand(work->op, i)->flags;
    int64_t place = i - (work->op->def.n_inputs - 1);

    if (tn__is_none(work->in[i]))
        return false;
    if ((flags & TN_OPERAND_UPDATED) != 0)
        return i > 63 || (work->only_read >> i & 1) == 0;
    if ((flags & TN_OPERAND_WRITTEN) == 0)
        return false;
    return place < 0 || work->group <= 0 || work->group > 64 ||
           (work->only_read >> place % work->group & 1) == 0;
}

static tn_status shared(const tn__work *work, const struct reach *a, const struct reach *b)
{
    return tn_fail(
        TN_ERR_RUNTIME,
        "%s: inputs %lld and %lld share memory, and one is written; expected inputs that "
        "do not share memory, such as a copy (tn_copy) of one",
        work->op->def.name, (long long)a->index, (long long)b->index);
}

static bool overlaps(const struct reach *before, const struct reach *at)
{
    return before != NULL && before->memory == at->memory && at->begin < before->end;
}

static const struct reach *further(const struct reach *before, const struct reach *at)
{
    return before == NULL || before->memory != at->memory || at->end > before->end ? at : before;
}

/* Checks that no written input shares memory with another input. The inputs are sorted by place, so
 * each is compared with only two inputs before it: the one that ends last, and the written one that
 * ends last. */
static tn_status check_sorted(const tn__work *work, const struct reach *reaches, int64_t n)
{
    const struct reach *any = NULL, *written = NULL;

    for (int64_t i = 0; i < n; i++) {
        const struct reach *at = &reaches[i];

        if (overlaps(written, at))
            return shared(work, written, at);
        if (at->written && overlaps(any, at))
            return shared(work, any, at);
        any = further(any, at);
        if (at->written)
            written = further(written, at);
    }
    return TN_OK;
}

static tn_status check_apart(const tn__work *work)
{
    struct reach few[16], *reaches = few;
    tn_status status;
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
            reaches[n++] = reach_of(work->in[i], i, tn__write_into(work, i));
    qsort(reaches, (size_t)n, sizeof *reaches, by_place);
    status = check_sorted(work, reaches, n);
    if (reaches != few)
        tn_free(reaches);
    return status;
}

static tn_status check_writable(const tn__work *work)
{
    for (int64_t i = 0; i < work->n_in; i++) {
        tn_tensor *tensor = work->in[i];
        tn_status status;

        if (!tn__write_into(work, i))
            continue;
        status = tn__tensor_writable(tensor);
        if (status != TN_OK)
            return tn_error_prefix("%s: input %lld: ", work->op->def.name, (long long)i);
        if (tn__tensor_repeats(tensor))
            return tn_fail(TN_ERR_RUNTIME,
                           "%s: input %lld: it is written, but several of its elements share "
                           "memory, as in a result of tn_expand or tn_unfold; expected a tensor "
                           "without such elements, as tn_copy returns",
                           work->op->def.name, (long long)i);
        if (tn__requires_grad(tensor) && tn__grad_on())
            return tn_fail(TN_ERR_RUNTIME,
                           "%s: %s: it is updated and requires grad, which would not be recorded; "
                           "expected a tensor that does not require grad, or a call between "
                           "tn_grad_begin(false) and tn_grad_end()",
                           work->op->def.name, tn__operand(work->op, i)->name);
    }
    return TN_OK;
}

const char *tn__op_grad_input(const tn__work *work)
{
    int64_t i = 0;

    while (i + 1 < work->n_in && ((tn__operand(work->op, i)->flags & TN_OPERAND_NO_GRAD) != 0 ||
                                  !tn__tensor_ok(work->in[i]) || !tn__requires_grad(work->in[i])))
        i++;
    return tn__operand(work->op, i)->name;
}

tn_status tn__write_check(const tn__work *work)
{
    tn_status status;
    bool any = false;

    if (work->wants_grad && (work->op->flags & TN__OP_WRITES) != 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "%s: the operator writes into its inputs and has no derivative, but %s "
                       "requires grad; call the operator between tn_grad_begin(false) and "
                       "tn_grad_end()",
                       work->op->def.name, tn__op_grad_input(work));
    status = check_writable(work);
    for (int64_t i = 0; i < work->n_in && !any; i++)
        any = tn__write_into(work, i);
    return status == TN_OK && any ? check_apart(work) : status;
}

void tn__write_done(tn__work *work)
{
    for (int64_t i = 0; i < work->n_in; i++)
        if (tn__write_into(work, i))
            tn__tensor_written(work->in[i]);
}

/* The versions of updated inputs change before the call, so that what the call saves for its
 * derivative counts as saved after the update. */
tn_status tn__write_call(tn__work *work, tn_tensor **out)
{
    tn_status status = tn__write_check(work);

    if (work->op->flags & TN__OP_UPDATES) {
        if (status != TN_OK)
            return status;
        tn__write_done(work);
        return work->wants_grad ? tn__call_recorded(work, out) : tn__run_work(work, out, false);
    }
    if (status == TN_OK)
        status = tn__run_work(work, out, false);
    tn__write_done(work); /* a call that failed may have written, too */
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * Whether a kernel takes a call: its plugin must be active, it must take the dtypes of all
 * operands, and its own `supports` must agree. kernel_priority.c decides in which order the
 * kernels of an operator are asked, and which of two is refused; run.c asks them. */
#include "core/op/private.h"

#include <string.h>

/* Writes a reason such as "weight is float64; expected float32, bfloat16". Returns false. */
static bool refuse_dtype(const char *operand, tn_dtype dtype, uint64_t mask, char *reason,
                         size_t size)
{
    int64_t length = tn_snprint(reason, size, "%s is %s; expected", operand, tn_dtype_name(dtype));

    for (int d = 0, n = 0; d < TN_DTYPE_COUNT && length >= 0 && (size_t)length < size; d++)
        if (mask & TN_BIT(d))
            length += tn_snprint(reason + length, size - (size_t)length, "%s %s",
                                 n++ > 0 ? "," : "", tn_dtype_name((tn_dtype)d));
    return false;
}

/* Returns whether a kernel takes the dtypes of all operands. An operand without a view is absent,
 * or an output whose shape is not known yet. */
static bool takes_dtypes(const tn_op *op, const uint64_t *masks, const tn_call *call, char *reason,
                         size_t size)
{
    const tn_op_def *def = &op->def;

    for (int64_t i = 0; i < call->n_in; i++) {
        uint64_t mask = masks[i < def->n_inputs ? i : def->n_inputs - 1];

        if (mask != 0 && call->in[i] != NULL && !(mask & TN_BIT(tn_view_dtype(call->in[i]))))
            return refuse_dtype(tn__operand(op, i)->name, tn_view_dtype(call->in[i]), mask, reason,
                                size);
    }
    for (int32_t i = 0; i < call->n_out; i++) {
        uint64_t mask = masks[def->n_inputs + i];

        if (mask != 0 && call->out[i] != NULL && !(mask & TN_BIT(tn_view_dtype(call->out[i]))))
            return refuse_dtype(def->outputs[i].name, tn_view_dtype(call->out[i]), mask, reason,
                                size);
    }
    return true;
}

uint64_t tn__kernel_order(const tn__work *work, const struct tn__kernel_list *list)
{
    const tn_call call = { .in = work->views, .n_in = work->n_in };
    int32_t at = work->op->def.dispatch_input;
    uint64_t flags = work->device->flags;
    tn_dtype dtype = work->dtype;
    char reason[160];

    if (at < 0 && dtype == TN_DTYPE_AUTO)
        at = 0;
    if (at >= 0 && at < work->n_in && work->views[at] != NULL)
        dtype = tn_view_dtype(work->views[at]);
    for (int32_t i = 0; i < list->count; i++) {
        const tn_kernel_def *kernel = &list->at[i]->kernel;

        if (dtype >= TN_DTYPE_COUNT || (kernel->dtypes & TN_BIT(dtype)) == 0 ||
            (kernel->operand_dtypes != NULL &&
             !takes_dtypes(work->op, kernel->operand_dtypes, &call, reason, sizeof reason)))
            continue;
        if (kernel->flags & TN__KERNEL_ORDERS)
            flags &= ~(uint64_t)TN_BACKEND_CHANNELS_LAST;
        if (kernel->flags & TN_KERNEL_CHANNELS_LAST)
            flags |= TN_BACKEND_CHANNELS_LAST;
        break;
    }
    return flags;
}

/* Adds the reason why a kernel was not chosen, for the error if no kernel supports the call. */
static void add_reason(char *reasons, const tn__kernel_entry *entry, const char *words)
{
    size_t length = strlen(reasons);

    tn_snprint(reasons + length, TN__REASONS - length, "%s%s: %s", length > 0 ? "; " : "",
               entry->kernel.name != NULL ? entry->kernel.name : "?",
               words[0] != '\0' ? words : "no reason given");
}

/* Returns the number of inputs of an operator that were there in version `knows`. */
static int32_t inputs_known(const tn_op_def *def, uint32_t knows)
{
    int32_t n = def->n_inputs;

    while (n > 0 && tn__operand_since(&def->inputs[n - 1]) > knows)
        n--;
    return n;
}

bool tn__op_uses_newer(const tn_op *op, uint32_t knows, uint32_t present, const void *options,
                       char *reason, size_t size)
{
    const tn_op_def *def = &op->def;
    const char *kind = NULL, *name = NULL;
    uint32_t since = 0;

    if (knows >= op->newest)
        return false;
    for (const tn_option *row = def->options; row != NULL && row->kind != TN_OPTION_KIND_END; row++)
        if (kind == NULL && row->since > knows &&
            (options == NULL || tn__option_differs(row, options, def->defaults))) {
            kind = "option";
            name = row->name;
            since = row->since;
        }
    for (int32_t i = inputs_known(def, knows); kind == NULL && i < def->n_inputs; i++)
        if (present >> i & 1) {
            kind = "input";
            name = def->inputs[i].name;
            since = tn__operand_since(&def->inputs[i]);
        }
    for (int32_t i = 0; kind == NULL && i < def->n_outputs; i++)
        if (tn__operand_since(&def->outputs[i]) > knows) {
            kind = "output";
            name = def->outputs[i].name;
            since = tn__operand_since(&def->outputs[i]);
        }
    if (kind != NULL)
        tn_snprint(reason, size, "it does not know the %s %s, which version %u of %s added", kind,
                   name, since, def->name);
    return kind != NULL;
}

/* Returns whether the kernel knows all that a call uses. Inputs that it does not know are absent
 * and no longer counted. */
static bool knows_call(const tn_op *op, const tn__kernel_entry *entry, tn_call *call, char *reason,
                       size_t size)
{
    uint32_t present = 0;

    if (entry->knows >= op->newest)
        return true;
    for (int64_t i = 0; i < call->n_in && i < op->def.n_inputs; i++)
        present |= (uint32_t)(call->in[i] != NULL) << i;
    if (tn__op_uses_newer(op, entry->knows, present, call->options, reason, size))
        return false;
    if (call->n_in == op->def.n_inputs)
        call->n_in = inputs_known(&op->def, entry->knows);
    return true;
}

bool tn__kernel_takes(const tn_op *op, const tn__kernel_entry *entry, tn_call *call, char *reasons)
{
    const tn_kernel_def *kernel = &entry->kernel;
    int64_t n_in = call->n_in;
    char reason[160];

    reason[0] = '\0';
    if (knows_call(op, entry, call, reason, sizeof reason) &&
        (kernel->operand_dtypes == NULL ||
         takes_dtypes(op, kernel->operand_dtypes, call, reason, sizeof reason)) &&
        (kernel->supports == NULL || kernel->supports(call, reason, sizeof reason)))
        return true;
    call->n_in = n_in;
    add_reason(reasons, entry, reason);
    return false;
}

bool tn__kernel_starts(const tn__kernel_entry *entry, char *reasons, tn_status *status)
{
    uint64_t mark = tn_error_mark(), failures = tn__memory_failures();

    if (tn__plugin_use(entry->plugin) == TN_OK)
        return true;
    if (atomic_load(&entry->plugin->ended) || tn__memory_failures() != failures) {
        *status = tn_error_last_code();
        return false;
    }
    add_reason(reasons, entry, tn_error_last()->message);
    tn_error_restore(mark);
    return false;
}

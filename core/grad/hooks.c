/* SPDX-License-Identifier: MIT
 *
 * Hooks on gradients of tensors, and retain_grad. A hook belongs to the node that made the tensor,
 * so it runs even if the tensor was freed. */
#include "core/grad/private.h"
#include "core/tensor/trace.h"

static void drop(tn__grad_hook_row *row)
{
    if (atomic_fetch_sub_explicit(&row->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (row->release != NULL)
        row->release(row->user);
    tn__grad_slot_drop(row->slot);
    tn_free(row);
}

static void drop_handle(tn__hook_handle *handle)
{
    drop((tn__grad_hook_row *)handle);
}

/* Removes the row from the list of its node. */
static void unlink_row(tn__grad_hook_row *row)
{
    tn__grad_hook_row *before = atomic_load_explicit(&row->node->hooks, memory_order_relaxed);

    if (before == row) {
        atomic_store_explicit(&row->node->hooks, row->next, memory_order_release);
        return;
    }
    while (before != NULL && before->next != row)
        before = before->next;
    if (before != NULL)
        before->next = row->next;
}

static void unlink_handle(tn__hook_handle *handle)
{
    unlink_row((tn__grad_hook_row *)handle);
}

/* Appends the row to the list of the node, because hooks run in the order of registration. Returns
 * the number of the handle. If memory runs out, frees the row and returns 0. */
static uint64_t append(tn__node *node, tn__grad_hook_row *row)
{
    tn__grad_hook_row *last;
    uint64_t id;

    row->handle.unlink = unlink_handle;
    row->handle.drop = drop_handle;
    tn__hook_handles_lock();
    if (row->slot != NULL)
        row->handle.id = tn__hook_handle_number();
    else if (tn__hook_handle_add(&row->handle) != TN_OK) {
        tn__hook_handles_unlock();
        tn_free(row);
        return 0;
    }
    id = row->handle.id;
    row->node = node;
    last = atomic_load_explicit(&node->hooks, memory_order_relaxed);
    while (last != NULL && last->next != NULL)
        last = last->next;
    if (last != NULL)
        last->next = row;
    else
        atomic_store_explicit(&node->hooks, row, memory_order_release);
    tn__hook_handles_unlock();
    return id; /* not row->handle.id: another thread may have freed the row */
}

static tn__grad_hook_row *new_row(int32_t index)
{
    tn__grad_hook_row *row = tn_calloc(1, sizeof *row);

    if (row != NULL) {
        atomic_init(&row->refs, 1);
        row->index = index;
    }
    return row;
}

/* Sets the error for a tensor whose history was lost. All such tensors share one node, which never
 * gets a gradient; therefore no hook can be added to it. */
static tn_status lost(void)
{
    return tn_fail(TN_ERR_RUNTIME,
                   "tensor: its history was lost when memory ran out, so no hook can be added to "
                   "it; compute the tensor again");
}

tn_status tn__hooks_retain(tn__node *node, int32_t index, tn__slot *slot)
{
    tn__grad_hook_row *row;

    if (node->kind == TN__NODE_LOST)
        return lost();
    row = new_row(index);
    if (row == NULL)
        return TN_ERR_MEMORY;
    atomic_fetch_add_explicit(&slot->refs, 1, memory_order_relaxed);
    row->slot = slot;
    append(node, row);
    return TN_OK;
}

void tn__hooks_unretain(tn__node *node, tn__slot *slot)
{
    tn__grad_hook_row *row;

    tn__hook_handles_lock();
    row = atomic_load_explicit(&node->hooks, memory_order_relaxed);
    while (row != NULL && row->slot != slot)
        row = row->next;
    if (row != NULL)
        unlink_row(row);
    tn__hook_handles_unlock();
    if (row != NULL)
        drop(row);
}

void tn__hooks_free(tn__node *node)
{
    tn__grad_hook_row *row, *next;

    tn__hook_handles_lock();
    row = atomic_load_explicit(&node->hooks, memory_order_relaxed);
    atomic_store_explicit(&node->hooks, NULL, memory_order_relaxed);
    for (next = row; next != NULL; next = next->next)
        if (next->slot == NULL)
            tn__hook_handle_forget(&next->handle);
    tn__hook_handles_unlock();
    for (; row != NULL; row = next) {
        next = row->next;
        drop(row);
    }
}

/* Finds the node and the output to which a hook on the tensor belongs. */
static tn_status hook_edge(tn_tensor *tensor, bool given, const char *what, tn__edge *edge)
{
    tn_status status;

    if (!tn__tensor_ok(tensor))
        return tn__tensor_bad(tensor, what);
    status = tn__trace_plan_refuse(what);
    if (status != TN_OK)
        return status;
    if (!given)
        return tn_fail(TN_ERR_VALUE, "%s: hook: it is NULL; expected a function", what);
    if (!tn_tensor_requires_grad(tensor))
        /* PyTorch's wording */
        return tn_fail(TN_ERR_RUNTIME,
                       "cannot register a hook on a tensor that doesn't require gradient");
    status = tn__grad_edge(tensor, edge);
    if (status == TN_OK && edge->node->kind == TN__NODE_LOST)
        status = lost();
    return status;
}

tn_hook_handle tn_tensor_hook(tn_tensor *tensor, tn_grad_hook hook, void *user,
                              void (*release)(void *user))
{
    tn__grad_hook_row *row;
    tn__edge edge;

    if (hook_edge(tensor, hook != NULL, "tn_tensor_hook", &edge) != TN_OK)
        return 0;
    row = new_row(edge.index);
    if (row == NULL)
        return 0;
    row->call = hook;
    row->user = user;
    row->release = release;
    return append(edge.node, row);
}

tn_hook_handle tn_tensor_hook_added(tn_tensor *tensor, tn_grad_added_hook hook, void *user,
                                    void (*release)(void *user))
{
    tn__grad_hook_row *row;
    tn__edge edge;

    if (hook_edge(tensor, hook != NULL, "tn_tensor_hook_added", &edge) != TN_OK)
        return 0;
    if (edge.node->kind != TN__NODE_LEAF) {
        tn_fail(TN_ERR_RUNTIME,
                "post accumulate grad hooks cannot be registered on non-leaf tensors: no gradient "
                "is accumulated in the result of %s; tn_tensor_hook is called with its gradient",
                edge.node->name);
        return 0;
    }
    row = new_row(edge.index);
    if (row == NULL)
        return 0;
    row->added = hook;
    row->user = user;
    row->release = release;
    return append(edge.node, row);
}

/* Returns a new reference to the first row of an output whose number is larger than `after`, NULL
 * if there is none. */
static tn__grad_hook_row *next_row(tn__node *node, int32_t index, uint64_t after)
{
    tn__grad_hook_row *row;

    tn__hook_handles_lock();
    row = atomic_load_explicit(&node->hooks, memory_order_relaxed);
    while (row != NULL && (row->handle.id <= after || row->index != index))
        row = row->next;
    if (row != NULL)
        atomic_fetch_add_explicit(&row->refs, 1, memory_order_relaxed);
    tn__hook_handles_unlock();
    return row;
}

static tn_status call_hook(tn__grad_hook_row *row, tn_tensor **gradient)
{
    tn_tensor *replacement = NULL;
    uint64_t scope = tn_scope_begin(), mark = tn_error_mark();
    tn_status status = tn__error_returned(row->call(row->user, *gradient, &replacement), mark,
                                          "hook on a gradient");

    if (status == TN_OK && replacement != NULL && !tn__is_none(replacement) &&
        replacement != *gradient) {
        const tn_tensor *old = *gradient;

        if (replacement->view.ndim != old->view.ndim || replacement->dtype != old->dtype ||
            replacement->device != old->device ||
            memcmp(replacement->view.shape, old->view.shape,
                   (size_t)old->view.ndim * sizeof(int64_t)) != 0) {
            tn__text text = { 0 };

            tn__tensor_text(&text, replacement);
            tn__text_add(&text, " instead of ");
            tn__tensor_text(&text, old);
            tn__text_put(&text, "", 1);
            status = tn_fail(TN_ERR_RUNTIME, "hook on a gradient: returned %s",
                             text.failed ? "something else" : text.at);
            tn__text_free(&text);
        } else {
            tn_tensor_keep(replacement);
            tn_tensor_drop(*gradient);
            *gradient = replacement;
        }
    }
    tn_scope_end(scope);
    return status;
}

tn_status tn__hooks_run(tn__node *node, int32_t index, tn_tensor **gradient, bool record)
{
    tn_status status = TN_OK;

    /* retain_grad is second, because it keeps the gradient as the hooks have left it. */
    for (int kept = 0; kept < 2; kept++) {
        uint64_t after = 0;
        tn__grad_hook_row *row;

        while (status == TN_OK && (row = next_row(node, index, after)) != NULL) {
            after = row->handle.id;
            if (kept == 0 && row->call != NULL) {
                status = call_hook(row, gradient);
            } else if (kept == 1 && row->slot != NULL) {
                tn_tensor *own = record ? tn_tensor_keep(*gradient) : tn__grad_copy(*gradient);

                if (own != NULL) {
                    status = tn__grad_slot_add(row->slot, own, record);
                    tn_tensor_drop(own);
                } else {
                    status = tn_error_last_code();
                }
            }
            drop(row);
        }
    }
    return status;
}

tn_status tn__hooks_added(tn__node *leaf)
{
    tn_status status = TN_OK;
    uint64_t after = 0;
    tn__grad_hook_row *row;

    while (status == TN_OK && (row = next_row(leaf, 0, after)) != NULL) {
        after = row->handle.id;
        if (row->added != NULL) {
            tn_tensor *gradient = tn__grad_slot_grad(leaf->as.slot);
            uint64_t scope = tn_scope_begin(), mark = tn_error_mark();

            status = tn__error_returned(row->added(row->user, gradient), mark,
                                        "hook on an accumulated gradient");
            tn_scope_end(scope);
            if (!tn__is_none(gradient))
                tn_tensor_drop(gradient);
        }
        drop(row);
    }
    return status;
}

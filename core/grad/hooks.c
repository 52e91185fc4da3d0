/* SPDX-License-Identifier: MIT
 *
 * Hooks on gradients of tensors, and retain_grad. A hook belongs to the node that made the tensor,
 * so it runs even if the tensor was freed. */
#include "core/grad/private.h"
#include "core/tensor/trace.h"

/* `place` of a hook is the index of the output, or ADDED after the accumulation in a leaf. */
enum { HOOK, RETAIN /* an entry of retain_grad, whose `user` is the slot */ };
enum { ADDED = -1 };

/* Sets the error for a tensor whose history was lost. All such tensors share one node, which never
 * gets a gradient; therefore no hook can be added to it. */
static tn_status lost(void)
{
    return tn_fail(TN_ERR_RUNTIME,
                   "tensor: its history was lost when memory ran out, so no hook can be added to "
                   "it; compute the tensor again");
}

static void release_slot(void *slot)
{
    tn__grad_slot_drop(slot);
}

tn_status tn__grad_hooks_retain(tn__node *node, int32_t index, tn__slot *slot)
{
    const tn__hook how = { .user = slot, .release = release_slot, .kind = RETAIN, .place = index };

    if (node->kind == TN__NODE_LOST)
        return lost();
    atomic_fetch_add_explicit(&slot->refs, 1, memory_order_relaxed);
    if (tn__hook_add(tn__hooks_of(&node->hooks), &how) != 0)
        return TN_OK;
    atomic_fetch_sub_explicit(&slot->refs, 1, memory_order_relaxed); /* the caller has another */
    return TN_ERR_MEMORY;
}

void tn__grad_hooks_unretain(tn__node *node, tn__slot *slot)
{
    if (tn__hooks_kinds(&node->hooks) != 0)
        tn__hook_remove_first(tn__hooks_of(&node->hooks), RETAIN, slot);
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

/* Adds a hook of an edge. */
static tn_hook_handle add(const tn__edge *edge, int32_t place, tn__hook_function hook, void *user,
                          void (*release)(void *user))
{
    const tn__hook how = {
        .function = hook, .user = user, .release = release, .kind = HOOK, .place = place
    };

    return tn__hook_add(tn__hooks_of(&edge->node->hooks), &how);
}

tn_hook_handle tn_tensor_hook(tn_tensor *tensor, tn_grad_hook hook, void *user,
                              void (*release)(void *user))
{
    tn__edge edge;

    return hook_edge(tensor, hook != NULL, "tn_tensor_hook", &edge) == TN_OK
               ? add(&edge, edge.index, (tn__hook_function)hook, user, release)
               : 0;
}

tn_hook_handle tn_tensor_hook_added(tn_tensor *tensor, tn_grad_added_hook hook, void *user,
                                    void (*release)(void *user))
{
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
    return add(&edge, ADDED, (tn__hook_function)hook, user, release);
}

static tn_status call_hook(const tn__hook *hook, tn_tensor **gradient)
{
    tn_tensor *replacement = NULL;
    uint64_t scope = tn_scope_begin(), mark = tn_error_mark();
    tn_status status = tn_error_returned(
        ((tn_grad_hook)hook->function)(hook->user, *gradient, &replacement), mark,
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

/* Stores the gradient as the hooks have left it. */
static tn_status retain(tn__slot *slot, tn_tensor *gradient, bool record)
{
    tn_tensor *own = record ? tn_tensor_keep(gradient) : tn__grad_copy(gradient);
    tn_status status = own != NULL ? tn__grad_slot_add(slot, own, record) : tn_error_last_code();

    if (own != NULL)
        tn_tensor_drop(own);
    return status;
}

tn_status tn__grad_hooks_run(tn__node *node, int32_t index, tn_tensor **gradient, bool record)
{
    tn__hooks *hooks = tn__hooks_of(&node->hooks);
    tn_status status = TN_OK;

    for (int kind = HOOK; kind <= RETAIN; kind++) {
        tn__hook *hook = NULL;

        for (uint64_t after = 0; status == TN_OK; tn__hook_drop(hook)) {
            hook = tn__hook_after(hooks, kind, index, after);
            if (hook == NULL)
                break;
            after = hook->id;
            status = kind == HOOK ? call_hook(hook, gradient)
                                  : retain(hook->user, *gradient, record);
        }
    }
    return status;
}

tn_status tn__grad_hooks_added(tn__node *leaf)
{
    tn_status status = TN_OK;
    tn__hook *hook = NULL;

    for (uint64_t after = 0; status == TN_OK; tn__hook_drop(hook)) {
        hook = tn__hook_after(tn__hooks_of(&leaf->hooks), HOOK, ADDED, after);
        if (hook == NULL)
            break;
        after = hook->id;
        tn_tensor *gradient = tn__grad_slot_grad(leaf->as.slot);
        uint64_t scope = tn_scope_begin(), mark = tn_error_mark();

        status = tn_error_returned(((tn_grad_added_hook)hook->function)(hook->user, gradient), mark,
                                   "hook on an accumulated gradient");
        tn_scope_end(scope);
        if (!tn__is_none(gradient))
            tn_tensor_drop(gradient);
    }
    return status;
}

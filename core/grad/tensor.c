/* SPDX-License-Identifier: MIT
 *
 * The gradients of a tensor: whether it requires one, where its gradient is accumulated, and which
 * node made the tensor. */
#include "core/grad/private.h"
#include "core/tensor/trace.h"

/* ---- slots ---------------------------------------------------------------------- */

tn__slot *tn__grad_slot_new(void)
{
    tn__slot *slot = tn_malloc(sizeof *slot);

    if (slot == NULL)
        return NULL;
    atomic_init(&slot->refs, 1);
    atomic_init(&slot->closed, false);
    pthread_mutex_init(&slot->lock, NULL);
    slot->grad = NULL;
    return slot;
}

void tn__grad_slot_drop(tn__slot *slot)
{
    if (slot == NULL || atomic_fetch_sub_explicit(&slot->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (slot->grad != NULL)
        tn_tensor_drop(slot->grad);
    pthread_mutex_destroy(&slot->lock);
    tn_free(slot);
}

static tn_tensor *exchange(tn__slot *slot, tn_tensor *gradient)
{
    tn_tensor *before;

    pthread_mutex_lock(&slot->lock);
    before = slot->grad;
    slot->grad = gradient;
    pthread_mutex_unlock(&slot->lock);
    return before;
}

tn_tensor *tn__grad_slot_grad(tn__slot *slot)
{
    tn_tensor *gradient;

    pthread_mutex_lock(&slot->lock);
    gradient = slot->grad != NULL ? tn_tensor_keep(slot->grad) : TN_NONE;
    pthread_mutex_unlock(&slot->lock);
    return gradient;
}

bool tn__grad_exclusive(const tn_tensor *tensor)
{
    int32_t most = 1;

    /* While a plan records backward, its recorder has a reference to each storage that a recorded
     * step uses (tn__plan_steps_root), which does not count as another use. */
    if (tn__unlikely((tensor->storage->flags & TN__STORAGE_TRACED) != 0) &&
        tn__tracer_here != NULL && tn__tracer_here->derives)
        most = 2;
    return atomic_load_explicit(&tensor->refs, memory_order_acquire) == 1 &&
           atomic_load_explicit(&tensor->storage->refs, memory_order_acquire) <= most &&
           (tensor->storage->flags & TN__STORAGE_FOREIGN) == 0 && tn__tensor_is_dense(tensor);
}

/* Returns the sum of two gradients, which the caller owns. Adds to `kept` in place if that is
 * possible. */
static tn_tensor *sum_of(tn_tensor *kept, tn_tensor *gradient, bool record)
{
    const tn_op *add;
    tn_tensor *in[2] = { kept, gradient };

    if (record || tn__requires_grad(kept) || kept->dtype != gradient->dtype ||
        !tn__tensor_is_dense(kept))
        return tn__grad_add(kept, gradient, record);
    /* In place, as in PyTorch: a program that holds the old gradient sees the sum in it. */
    add = tn__op_needed(TN__NEED_add);
    if (add == NULL || tn__op_run(add, in, 2, NULL, NULL, 0, kept) != TN_OK)
        return NULL;
    return tn_tensor_keep(kept);
}

static tn_tensor *recorded_copy(tn_tensor *gradient)
{
    const tn_op *copy = tn__op_needed(TN__NEED_copy);
    tn_tensor *out = NULL;

    if (copy == NULL || tn__call_plain(copy, &gradient, 1, NULL, &out, 1, NULL) != TN_OK)
        return NULL;
    return out;
}

/* The lock is not held while operators run. The old gradient is taken out of the slot, the new one
 * is added, and the sum is put back. A gradient that another thread has put there meanwhile is
 * added, too. */
tn_status tn__grad_slot_add(tn__slot *slot, tn_tensor *gradient, bool record)
{
    tn_tensor *mine = NULL, *before = exchange(slot, NULL);

    if (before == NULL) {
        if (tn__grad_exclusive(gradient))
            mine = tn_tensor_keep(gradient);
        else
            mine = record ? recorded_copy(gradient) : tn__grad_copy(gradient);
    } else {
        mine = sum_of(before, gradient, record);
        if (mine == NULL) { /* the old gradient is put back */
            before = exchange(slot, before);
            if (before != NULL)
                tn_tensor_drop(before);
            return tn_error_last_code();
        }
        tn_tensor_drop(before);
    }
    while (mine != NULL) {
        tn_tensor *sum;

        pthread_mutex_lock(&slot->lock);
        before = slot->grad;
        slot->grad = before == NULL ? mine : NULL;
        pthread_mutex_unlock(&slot->lock);
        if (before == NULL)
            return TN_OK;
        sum = sum_of(mine, before, record);
        tn_tensor_drop(before);
        tn_tensor_drop(mine);
        mine = sum;
    }
    return tn_error_last_code();
}

/* ---- the tensor's record -------------------------------------------------------- */

struct tn__autograd *tn__grad_of(tn_tensor *tensor)
{
    if (tensor->autograd == NULL) {
        tensor->autograd = tn__piece_take(sizeof *tensor->autograd);
        if (tensor->autograd != NULL)
            memset(tensor->autograd, 0, sizeof *tensor->autograd);
    }
    return tensor->autograd;
}

void tn__grad_free(struct tn__autograd *autograd)
{
    tn__node *node, *leaf;
    tn_tensor *base;

    if (autograd == NULL)
        return;
    node = autograd->node;
    leaf = autograd->leaf;
    base = autograd->base;
    if (autograd->slot != NULL)
        tn__grad_slot_drop(autograd->slot);
    tn__piece_give(autograd, sizeof *autograd);
    tn__node_drop(node);
    tn__node_drop(leaf);
    if (base != NULL)
        tn_tensor_drop(base);
}

static tn__slot *slot_of(tn_tensor *tensor)
{
    struct tn__autograd *autograd = tn__grad_of(tensor);

    if (autograd == NULL)
        return NULL;
    if (autograd->slot == NULL)
        autograd->slot = tn__grad_slot_new();
    return autograd->slot;
}

tn_status tn__grad_attach_edge(const tn__edge *edge, tn_tensor *to)
{
    struct tn__autograd *autograd;

    if (edge->node == NULL)
        return TN_OK;
    if (edge->node->kind != TN__NODE_LEAF)
        return tn__node_attach(edge->node, to, edge->index);
    autograd = tn__grad_of(to);
    if (autograd == NULL)
        return tn_error_last_code();
    autograd->leaf = tn__node_keep(edge->node);
    autograd->slot = edge->node->as.slot;
    atomic_fetch_add_explicit(&autograd->slot->refs, 1, memory_order_relaxed);
    to->requires_grad = true;
    return TN_OK;
}

uint64_t tn__grad_sequence(const tn_tensor *tensor)
{
    const struct tn__autograd *autograd = tensor->autograd;

    return autograd != NULL && autograd->node != NULL ? autograd->node->sequence : 0;
}

bool tn__grad_stale(tn_tensor *tensor)
{
    struct tn__autograd *autograd = tensor->autograd;
    tn_tensor *base = autograd->base;

    return base != NULL && base->requires_grad && base->autograd != NULL &&
           base->storage == tensor->storage && base->autograd->generation != autograd->generation;
}

static tn_status usable(const tn_tensor *tensor, const char *what)
{
    return tn__tensor_ok(tensor) ? TN_OK : tn__tensor_bad(tensor, what);
}

/* Renews the history of a view whose base was changed. */
static tn_status refresh(const tn_tensor *tensor)
{
    tn_tensor *writable = (tn_tensor *)(uintptr_t)tensor;
    tn__edge edge;

    if (tensor->autograd == NULL || !tn__grad_stale(writable))
        return TN_OK;
    return tn__grad_edge(writable, &edge);
}

bool tn_tensor_requires_grad(const tn_tensor *tensor)
{
    return usable(tensor, "tn_tensor_requires_grad") == TN_OK && refresh(tensor) == TN_OK &&
           tensor->requires_grad;
}

bool tn_tensor_is_leaf(const tn_tensor *tensor)
{
    if (usable(tensor, "tn_tensor_is_leaf") != TN_OK || refresh(tensor) != TN_OK)
        return false;
    return tensor->autograd == NULL || tensor->autograd->node == NULL;
}

const char *tn_tensor_grad_op(const tn_tensor *tensor)
{
    if (usable(tensor, "tn_tensor_grad_op") != TN_OK || refresh(tensor) != TN_OK)
        return "";
    return tensor->autograd == NULL || tensor->autograd->node == NULL
               ? ""
               : tensor->autograd->node->name;
}

tn_status tn_tensor_set_requires_grad(tn_tensor *tensor, bool requires_grad)
{
    tn_status status = usable(tensor, "tn_tensor_set_requires_grad");
    struct tn__autograd *autograd;

    if (status != TN_OK)
        return status;
    if (!tn_tensor_is_leaf(tensor)) {
        if (requires_grad)
            return TN_OK;
        /* PyTorch's wording */
        return tn_fail(
            TN_ERR_RUNTIME,
            "you can only change requires_grad flags of leaf variables. If you want to use a "
            "computed variable "
            "in a subgraph that doesn't require differentiation use tn_detach (it was made by %s)",
            tn_tensor_grad_op(tensor));
    }
    if (requires_grad && ((TN_MASK_FLOAT | TN_MASK_COMPLEX) & TN_BIT(tensor->dtype)) == 0)
        /* PyTorch's wording */
        return tn_fail(
            TN_ERR_RUNTIME,
            "only Tensors of floating point and complex dtype can require gradients, not %s",
            tn_dtype_name((tn_dtype)tensor->dtype));
    if (requires_grad && (tensor->storage->flags & TN__STORAGE_INFERENCE) &&
        !tn__making.is.inference)
        /* PyTorch's wording */
        return tn_fail(
            TN_ERR_RUNTIME,
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed: "
            "it was made between tn_inference_begin and tn_inference_end; tn_clone makes a normal "
            "tensor of it");
    if (requires_grad) { /* makes all that recording needs, because threads can share the leaf */
        autograd = tn__grad_of(tensor);
        if (autograd == NULL || slot_of(tensor) == NULL)
            return tn_error_last_code();
        if (autograd->leaf == NULL) {
            tn__node *leaf = tn__node_new(TN__NODE_LEAF, "leaf", 0, 1, 0, 0, 0, NULL);

            if (leaf == NULL)
                return TN_ERR_MEMORY;
            atomic_fetch_add_explicit(&autograd->slot->refs, 1, memory_order_relaxed);
            leaf->as.slot = autograd->slot;
            autograd->leaf = leaf;
        }
    }
    tensor->requires_grad = requires_grad;
    if (tensor->autograd != NULL && tensor->autograd->slot != NULL)
        atomic_store_explicit(&tensor->autograd->slot->closed, !requires_grad,
                              memory_order_relaxed);
    return TN_OK;
}

tn_tensor *tn_tensor_grad(const tn_tensor *tensor)
{
    tn_tensor *gradient = NULL;

    if (usable(tensor, "tn_tensor_grad") != TN_OK)
        return NULL;
    if (tensor->autograd != NULL && tensor->autograd->slot != NULL) {
        pthread_mutex_lock(&tensor->autograd->slot->lock);
        gradient = tensor->autograd->slot->grad;
        pthread_mutex_unlock(&tensor->autograd->slot->lock);
    }
    return gradient != NULL ? gradient : TN_NONE;
}

tn_status tn__grad_add_to_leaf(tn_tensor *leaf, tn_tensor *gradient)
{
    tn__slot *slot = slot_of(leaf);

    return slot != NULL ? tn__grad_slot_add(slot, gradient, false) : TN_ERR_MEMORY;
}

bool tn__grad_has_hooks(const tn_tensor *leaf)
{
    const tn__node *node = leaf->autograd != NULL ? leaf->autograd->leaf : NULL;

    return node != NULL && tn__hooks_kinds(&node->hooks) != 0;
}

static bool same_shape(const tn_tensor *a, const tn_tensor *b)
{
    return a->view.ndim == b->view.ndim &&
           memcmp(a->view.shape, b->view.shape, (size_t)a->view.ndim * sizeof(int64_t)) == 0;
}

tn_status tn_tensor_set_grad(tn_tensor *tensor, tn_tensor *gradient)
{
    tn_status status = usable(tensor, "tn_tensor_set_grad");
    tn_tensor *before;
    tn__slot *slot;

    if (status != TN_OK)
        return status;
    if (gradient == NULL)
        return tn_error_null("tn_tensor_set_grad: gradient");
    if (tn__is_none(gradient)) {
        if (tensor->autograd == NULL || tensor->autograd->slot == NULL)
            return TN_OK;
        before = exchange(tensor->autograd->slot, NULL);
        if (before != NULL)
            tn_tensor_drop(before);
        return TN_OK;
    }
    if (gradient == tensor)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_RUNTIME, "can't assign Variable as its own grad");
    if (gradient->dtype != tensor->dtype || gradient->device != tensor->device ||
        !same_shape(tensor, gradient)) {
        tn__text text = { 0 };

        tn__text_add(&text, "assigned grad has ");
        tn__tensor_text(&text, gradient);
        tn__text_add(&text, ", the tensor is ");
        tn__tensor_text(&text, tensor);
        tn__text_put(&text, "", 1);
        status = tn_fail(TN_ERR_RUNTIME, "%s; expected the same dtype, device and shape",
                         text.failed ? "assigned grad does not fit" : text.at);
        tn__text_free(&text);
        return status;
    }
    slot = slot_of(tensor);
    if (slot == NULL)
        return TN_ERR_MEMORY;
    before = exchange(slot, tn_tensor_keep(gradient));
    if (before != NULL)
        tn_tensor_drop(before);
    return TN_OK;
}

/* Checks that the gradient of `to`, if it has one, has the shape of `from`. Otherwise later
 * gradients could not be added to it. */
static bool gradient_fits(tn_tensor *to, const tn_tensor *from)
{
    tn_ints shape = tn__shape(from), own;
    uint64_t scope = tn_scope_begin();
    const tn_tensor *gradient = tn_tensor_is_leaf(to) ? tn_tensor_grad(to) : TN_NONE;
    bool fits = gradient != NULL;

    if (fits && !tn__is_none(gradient)) {
        own = tn__shape(gradient);
        fits = own.count == shape.count &&
               (own.count == 0 ||
                memcmp(own.at, shape.at, (size_t)own.count * sizeof *own.at) == 0);
        if (!fits) {
            tn__text text = { 0 };

            tn__tensor_text_ints(&text, own);
            tn__text_add(&text, ", and the other tensor has shape ");
            tn__tensor_text_ints(&text, shape);
            tn_fail(TN_ERR_RUNTIME,
                    "tn_tensor_swap: the tensor has a gradient of shape %s; expected the same "
                    "shape: clear the gradient first (tn_tensor_set_grad with TN_NONE)",
                    text.at != NULL ? text.at : "");
            tn__text_free(&text);
        }
    }
    tn_scope_end(scope);
    return fits;
}

tn_status tn_tensor_swap(tn_tensor *a, tn_tensor *b)
{
    if (!tn__tensor_ok(a) || !tn__tensor_ok(b))
        return tn__tensor_bad(!tn__tensor_ok(a) ? a : b, "tn_tensor_swap");
    if (tn__unlikely(tn__making.is.traced) && (tn__trace_need(a, "tn_tensor_swap") != TN_OK ||
                                               tn__trace_need(b, "tn_tensor_swap") != TN_OK))
        return tn_error_last_code();
    if (a != b && (!gradient_fits(a, b) || !gradient_fits(b, a)))
        return tn_error_last_code();
    return tn__tensor_exchange(a, b);
}

tn_status tn_tensor_retain_grad(tn_tensor *tensor)
{
    tn_status status = usable(tensor, "tn_tensor_retain_grad");
    tn__slot *slot;

    if (status == TN_OK)
        status = tn__trace_plan_refuse("tn_tensor_retain_grad");
    if (status != TN_OK)
        return status;
    if (!tn_tensor_requires_grad(tensor))
        /* PyTorch's wording */
        return tn_fail(TN_ERR_RUNTIME, "can't retain_grad on Tensor that has requires_grad=False");
    if (tensor->autograd->node == NULL || tensor->autograd->retains)
        return TN_OK;
    slot = slot_of(tensor);
    if (slot == NULL)
        return TN_ERR_MEMORY;
    status = tn__grad_hooks_retain(tensor->autograd->node, tensor->autograd->index, slot);
    tensor->autograd->retains = status == TN_OK;
    return status;
}

void tn__grad_cut(tn_tensor *tensor, bool requires_grad)
{
    struct tn__autograd *autograd = tensor->autograd;

    if (autograd != NULL && autograd->node != NULL) {
        tn__node_drop(autograd->node);
        autograd->node = NULL;
        autograd->index = 0;
        autograd->generation++;
    }
    tensor->requires_grad = requires_grad;
    if (autograd != NULL && autograd->slot != NULL)
        atomic_store_explicit(&autograd->slot->closed, !requires_grad, memory_order_relaxed);
}

tn_tensor *tn_tensor_detach_(tn_tensor *tensor)
{
    struct tn__autograd *autograd;

    if (!tn__tensor_ok(tensor)) {
        tn__tensor_bad(tensor, "tn_tensor_detach_");
        return NULL;
    }
    autograd = tensor->autograd;
    if (autograd != NULL && autograd->base != NULL && autograd->base->storage == tensor->storage) {
        tn_fail(TN_ERR_RUNTIME,
                "Can't detach views in-place: the base of the view keeps its history. "
                "Use tn_detach instead");
        return NULL;
    }
    if (autograd != NULL && autograd->node != NULL) {
        if (autograd->retains)
            tn__grad_hooks_unretain(autograd->node, autograd->slot);
        autograd->retains = false;
        tn__node_drop(autograd->node);
        autograd->node = NULL;
        autograd->index = 0;
    }
    tensor->requires_grad = false;
    if (autograd != NULL && autograd->slot != NULL)
        atomic_store_explicit(&autograd->slot->closed, true, memory_order_relaxed);
    return tensor;
}

tn_tensor *tn_tensor_detach(tn_tensor *tensor)
{
    tn_tensor *out;

    if (!tn__tensor_ok(tensor)) {
        tn__tensor_bad(tensor, "tn_tensor_detach");
        return NULL;
    }
    if (tn__unlikely(tn__making.is.traced) && tn__tracer_here->silent == 0)
        return tn__tracer_here->detach(tn__tracer_here, tensor);
    out = tn__tensor_alias(tensor);
    return out != NULL ? tn__scope_push(out) : NULL;
}

tn_tensor *tn_parameter(tn_tensor *tensor, bool requires_grad)
{
    tn_tensor *out;

    if (tn__is_none(tensor))
        return tensor;
    if (!tn__tensor_ok(tensor)) {
        tn__tensor_bad(tensor, "tn_parameter");
        return NULL;
    }
    out = tn__tensor_alias(tensor);
    if (out == NULL)
        return NULL;
    out->parameter = true;
    if (requires_grad && tn_tensor_set_requires_grad(out, true) != TN_OK) {
        tn_error_prefix("tn_parameter: ");
        tn_tensor_drop(out);
        return NULL;
    }
    return tn__scope_push(out);
}

bool tn_tensor_is_parameter(const tn_tensor *tensor)
{
    return tn__tensor_asked(tensor, "tn_tensor_is_parameter") && tensor->parameter;
}

/* SPDX-License-Identifier: MIT
 *
 * Nodes of the graph: how they are made, what they save, and how they are freed. A node is one
 * block of memory. Freeing is not recursive, because chains of nodes can be long. */
#include <sched.h>

#include "core/grad/private.h"

static _Thread_local uint64_t last_sequence TN__TLS_NEAR;
static _Thread_local struct {
    bool draining;
    tn__node *waiting;
} graveyard TN__TLS_NEAR;

int64_t tn_grad_node_count(void)
{
    return tn__thread_nodes_alive();
}

uint64_t tn__node_last(void)
{
    return last_sequence;
}

static size_t round_up(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

tn__node *tn__node_new(tn__node_kind kind, const char *name, int32_t n_in, int32_t n_out,
                       int32_t n_saved, int64_t n_sizes, size_t extra, void **tail)
{
    size_t edges = round_up(sizeof(tn__node));
    size_t seen = edges + round_up((size_t)n_in * sizeof(tn__edge));
    size_t saved = seen + round_up((size_t)n_in * sizeof(tn__seen));
    size_t sizes = saved + round_up((size_t)n_saved * sizeof(tn__saved));
    size_t end = sizes + round_up((size_t)n_sizes * sizeof(int64_t));
    tn__node *node = tn__piece_take(end + extra);
    char *block = (char *)node;

    if (node == NULL)
        return NULL;
    memset(node, 0, sizes);
    atomic_init(&node->refs, 1);
    node->kind = (uint8_t)kind;
    node->size = (uint32_t)(end + extra < UINT32_MAX ? end + extra : UINT32_MAX);
    node->name = name;
    node->n_in = n_in;
    node->n_out = n_out;
    node->n_saved = n_saved;
    node->had_saved = n_saved > 0;
    node->edges = (tn__edge *)(void *)(block + edges);
    node->seen = (tn__seen *)(void *)(block + seen);
    node->saved = (tn__saved *)(void *)(block + saved);
    if (n_in > 0) /* memory for all shapes; tn__node_input() takes from it */
        node->seen[0].shape = (int64_t *)(void *)(block + sizes);
    if (tail != NULL)
        *tail = block + end;
    if (tn__unlikely(tn__anomaly_on()) && kind != TN__NODE_LEAF)
        node->where = tn__anomaly_note();
    if (kind == TN__NODE_LEAF) {
        node->sequence = UINT64_MAX;
    } else {
        node->sequence = ++last_sequence;
        tn__nodes_count(1);
    }
    return node;
}

void tn__node_saved_drop(tn__saved *saved)
{
    if (saved->tensor != NULL)
        tn_tensor_drop(saved->tensor);
    if (saved->storage != NULL && !saved->shell)
        tn__storage_drop(saved->storage);
    if (saved->recompute != NULL)
        tn__recompute_release(saved->recompute, saved->slot);
    saved->tensor = NULL;
    saved->storage = NULL;
    saved->recompute = NULL;
}

static void drop_saved(tn__saved *saved, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        tn__node_saved_drop(&saved[i]);
}

static void free_node(tn__node *node)
{
    drop_saved(node->saved, node->n_saved);
    for (int32_t i = 0; i < node->n_in; i++)
        if (node->edges[i].node != NULL)
            tn__node_drop(node->edges[i].node);
    if (atomic_load_explicit(&node->hooks, memory_order_relaxed) != NULL)
        tn__hooks_free(&node->hooks);
    switch (node->kind) {
    case TN__NODE_LEAF: tn__grad_slot_drop(node->as.slot); break;
    case TN__NODE_FUNCTION:
        if (node->as.function.calls.release != NULL)
            node->as.function.calls.release(node->as.function.user);
        break;
    case TN__NODE_SLICE: tn__node_drop(node->as.slice.inner); break;
    default: break;
    }
    if (node->kind != TN__NODE_LEAF)
        tn__nodes_count(-1);
    if (node->where != NULL)
        tn_free(node->where);
    tn__piece_give(node, node->size);
}

void tn__node_drop(tn__node *node)
{
    /* No other thread can see the only reference, so no atomic subtraction is needed. */
    if (node == NULL || (atomic_load_explicit(&node->refs, memory_order_acquire) != 1 &&
                         atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1))
        return;
    node->next = graveyard.waiting;
    graveyard.waiting = node;
    if (graveyard.draining)
        return;
    graveyard.draining = true;
    while (graveyard.waiting != NULL) {
        node = graveyard.waiting;
        graveyard.waiting = node->next;
        free_node(node);
    }
    graveyard.draining = false;
}

void tn__node_follow(tn__node *node, const tn__node *before)
{
    if (before->kind == TN__NODE_LEAF || before->sequence < node->sequence)
        return;
    node->sequence = before->sequence + 1; /* another thread made `before` */
    last_sequence = node->sequence;
}

tn_status tn__node_input(tn__node *node, int32_t i, tn_tensor *input, bool wants, int64_t **sizes)
{
    tn__seen *seen = &node->seen[i];
    tn_status status;

    if (tn__is_none(input)) {
        seen->ndim = -1;
        seen->shape = NULL;
        return TN_OK;
    }
    seen->ndim = (int16_t)input->view.ndim;
    seen->dtype = input->dtype;
    seen->shape = *sizes;
    for (int32_t d = 0; d < input->view.ndim; d++)
        seen->shape[d] = input->view.shape[d];
    *sizes += input->view.ndim;
    if (!wants)
        return TN_OK;
    status = tn__grad_edge(input, &node->edges[i]);
    if (status != TN_OK || node->edges[i].node == NULL)
        return status;
    tn__node_follow(node, tn__node_keep(node->edges[i].node));
    return TN_OK;
}

tn_status tn__node_save(tn__saved *saved, tn_tensor *tensor, int32_t operand, bool is_output,
                        bool stale)
{
    bool leaf;

    saved->operand = operand;
    saved->is_output = is_output;
    saved->version = atomic_load_explicit(&tensor->storage->version, memory_order_relaxed);
    if (stale)
        return TN_OK;
    if (tn__unlikely(tensor->storage->flags & TN__STORAGE_INFERENCE)) {
        tn_fail(
            TN_ERR_RUNTIME,
            "Inference tensors cannot be saved for backward; this one was made between "
            "tn_inference_begin and tn_inference_end, and tn_clone makes a normal tensor of it");
        if (operand >= 0)
            tn_error_prefix("%s %d: ", is_output ? "output" : "input", (int)operand);
        return tn_error_last_code();
    }
    /* A tensor that can still be changed in place may later get this node as its history. If the
     * node kept the tensor, both would then keep each other alive forever. Therefore only leaves
     * are kept. Of other tensors an alias keeps the memory; the edges have their history. */
    leaf = !is_output && tensor->requires_grad && tensor->autograd->node == NULL &&
           tensor->autograd->base == NULL;
    if (tn__unlikely(tn__recompute_here != NULL)) {
        tn_status status = tn__recompute_save(saved, tensor, leaf);

        if (status != TN_OK || saved->recompute != NULL)
            return status;
    }
    if (leaf)
        saved->tensor = tn_tensor_keep(tensor);
    else
        saved->tensor = tn__tensor_alias(tensor);
    if (saved->tensor == NULL)
        return tn_error_last_code();
    saved->shell = saved->tensor != tensor;
    saved->storage = saved->shell ? tensor->storage : tn__storage_keep(tensor->storage);
    return TN_OK;
}

/* ---- recording ------------------------------------------------------------------ */

static bool can_have_grad(uint32_t dtype)
{
    return ((TN_MASK_FLOAT | TN_MASK_COMPLEX) & TN_BIT(dtype)) != 0;
}

/* Removes from the sets the tensors that no wanted gradient needs. */
static void leave_out(const tn_op *op, tn_tensor *const *in, int64_t n_in, uint32_t *save_in,
                      uint32_t *save_out)
{
    const uint32_t *save_for = op->def.save_for;
    uint32_t wanted = 0;

    for (int64_t i = 0; i < n_in; i++)
        if (!tn__is_none(in[i]) && (tn__operand(op, i)->flags & TN_OPERAND_NO_GRAD) == 0 &&
            tn__requires_grad(in[i]))
            wanted |= (uint32_t)1 << (i < 31 ? i : 31);
    for (int32_t i = 0; i < op->def.n_inputs; i++)
        if ((save_for[i] & wanted) == 0)
            *save_in &= ~((uint32_t)1 << i);
    for (int32_t i = 0; i < op->def.n_outputs; i++)
        if ((save_for[op->def.n_inputs + i] & wanted) == 0)
            *save_out &= ~((uint32_t)1 << i);
}

bool tn__node_by_result(const tn_op *op, const void *options, const tn_tensor *into)
{
    return op->def.result_suffices != NULL &&
           op->def.result_suffices(op, options, (tn_dtype)into->dtype);
}

tn__node *tn__node_of_op(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                         tn_tensor *const *out, int64_t n_out, const tn_tensor *into,
                         tn_tensor *original)
{
    const tn_op_def *def = &op->def;
    bool copies = options != NULL && options != def->defaults && def->options != NULL;
    size_t extra = copies ? tn__options_copy(def->options, options, def->options_size, NULL) : 0;
    uint32_t save_in = def->derive != NULL ? def->save_in : 0,
             save_out = def->derive != NULL ? def->save_out : 0;
    int64_t n_sizes = 0;
    int32_t n_saved = 0;
    int64_t *sizes;
    tn__node *node;
    void *tail;

    if (def->save_for != NULL && (save_in | save_out) != 0)
        leave_out(op, in, n_in, &save_in, &save_out);
    if (into != NULL && (save_in & 1) != 0 && tn__node_by_result(op, options, into)) {
        save_in &= ~(uint32_t)1;
        save_out |= 1;
    }
    for (int64_t i = 0; i < n_in; i++) {
        if (tn__is_none(in[i]))
            continue;
        n_sizes += in[i]->view.ndim;
        n_saved += save_in >> (i < TN_MAX_OPERANDS ? i : TN_MAX_OPERANDS) & 1;
    }
    for (uint32_t left = save_out; left != 0; left &= left - 1)
        n_saved++;
    node = tn__node_new(TN__NODE_OP, def->name, (int32_t)n_in, (int32_t)n_out, n_saved, n_sizes,
                        extra, &tail);
    if (node == NULL)
        return NULL;
    node->op = op;
    node->options = copies ? tail : options;
    if (copies)
        tn__options_copy(def->options, options, def->options_size, tail);
    sizes = n_in > 0 ? node->seen[0].shape : NULL;
    n_saved = 0;
    for (int64_t i = 0; i < n_in; i++) {
        uint32_t flags = tn__operand(op, i)->flags;

        if (tn__node_input(node, (int32_t)i, in[i], (flags & TN_OPERAND_NO_GRAD) == 0, &sizes) !=
            TN_OK)
            goto fail;
        if (tn__is_none(in[i]) || i >= TN_MAX_OPERANDS || (save_in >> i & 1) == 0)
            continue;
        if (i == 0 && original != NULL) { /* the values before the in-place change */
            if (tn__node_save(&node->saved[n_saved++], original, 0, false, false) != TN_OK)
                goto fail;
        } else if (tn__node_save(&node->saved[n_saved++], in[i], (int32_t)i, false,
                                 into != NULL && in[i]->storage == into->storage) != TN_OK) {
            goto fail;
        }
    }
    for (int64_t i = 0; i < n_out; i++)
        if ((save_out >> i & 1) &&
            tn__node_save(&node->saved[n_saved++], out[i], (int32_t)i, true, false) != TN_OK)
            goto fail;
    return node;
fail:
    tn__node_drop(node);
    tn_error_prefix("%s: ", def->name);
    return NULL;
}

/* Makes the tensor output `index` of the node. Takes over a reference to the node, also on
 * failure. */
static tn_status hang(tn__node *node, tn_tensor *tensor, int32_t index)
{
    struct tn__autograd *autograd = tn__grad_of(tensor);

    if (autograd == NULL) {
        tn__node_drop(node);
        return tn_error_last_code();
    }
    if (autograd->node != NULL) {
        if (autograd->retains)
            tn__grad_hooks_unretain(autograd->node, autograd->slot);
        tn__node_drop(autograd->node);
    }
    autograd->node = node;
    autograd->index = index;
    autograd->generation++;
    tensor->requires_grad = true;
    if (autograd->retains && autograd->slot != NULL)
        return tn__grad_hooks_retain(node, index, autograd->slot);
    return TN_OK;
}

tn_status tn__node_attach(tn__node *node, tn_tensor *tensor, int32_t index)
{
    return hang(tn__node_keep(node), tensor, index);
}

tn_status tn__grad_record(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                          tn_tensor *const *out, int64_t n_out)
{
    tn_status status = TN_OK;
    int64_t last = n_out - 1;
    tn__node *node;

    while (last >= 0 && !can_have_grad(out[last]->dtype))
        last--;
    if (last < 0)
        return TN_OK;
    node = tn__node_of_op(op, in, n_in, options, out, n_out, NULL, NULL);
    if (node == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < last && status == TN_OK; i++)
        if (can_have_grad(out[i]->dtype))
            status = tn__node_attach(node, out[i], (int32_t)i);
    if (status != TN_OK) {
        tn__node_drop(node);
        return status;
    }
    status = hang(node, out[last], (int32_t)last);
    for (int64_t i = 0; i < n_out && status == TN_OK; i++)
        if (out[i]->autograd != NULL &&
            out[i]->autograd->base != NULL) /* the history of this view is up to date */
            out[i]->autograd->generation = out[i]->autograd->base->autograd != NULL
                                               ? out[i]->autograd->base->autograd->generation
                                               : 0;
    return status;
}

bool tn__grad_wanted(const tn_op *op, tn_tensor *const *in, int64_t n_in)
{
    for (int64_t i = 0; tn__grad_on() && i < n_in; i++)
        if (tn__tensor_ok(in[i]) && (tn__operand(op, i)->flags & TN_OPERAND_NO_GRAD) == 0 &&
            tn__requires_grad(in[i]))
            return true;
    return false;
}

/* ---- what is saved -------------------------------------------------------------- */

static void lock(tn__node *node)
{
    while (atomic_exchange_explicit(&node->busy, true, memory_order_acquire))
        sched_yield();
}

static void unlock(tn__node *node)
{
    atomic_store_explicit(&node->busy, false, memory_order_release);
}

void tn__node_release(tn__node *node)
{
    bool mine;

    lock(node);
    mine = !node->released;
    node->released = true;
    unlock(node);
    if (!mine)
        return;
    drop_saved(node->saved, node->n_saved);
    if (node->kind == TN__NODE_SLICE)
        tn__node_release(node->as.slice.inner);
}

static bool changed(const tn__saved *saved)
{
    if (saved->recompute != NULL)
        return false;
    return saved->tensor == NULL || saved->tensor->storage != saved->storage ||
           atomic_load_explicit(&saved->storage->version, memory_order_relaxed) != saved->version;
}

tn_status tn__node_saved_value(tn__saved *saved, tn_tensor **out)
{
    if (saved->recompute != NULL)
        return tn__recompute_value(saved->recompute, saved->slot, out);
    *out = changed(saved) ? NULL : tn_tensor_keep(saved->tensor);
    return TN_OK;
}

tn_status tn__node_freed(const char *name)
{
    /* PyTorch's wording */
    return tn_fail(
        TN_ERR_RUNTIME,
        "Trying to backward through the graph a second time (or directly access saved "
        "tensors after they "
        "have already been freed). Saved intermediate values of the graph are freed when "
        "you call backward "
        "or grad. Specify retain_graph=True if you need to backward through the graph a "
        "second time (at %s)",
        name);
}

/* Gets a saved tensor that is computed again, if tensor `i` is one. Another thread may release
 * the node in the meantime, so `recompute` is kept. */
static tn_status unpack_later(tn__node *node, int32_t i, tn_tensor **out)
{
    tn__recompute *recompute;
    tn_status status = TN_OK;
    int64_t slot;
    bool gone;

    lock(node);
    gone = node->released && node->had_saved;
    recompute = gone ? NULL : tn__recompute_keep(node->saved[i].recompute);
    slot = node->saved[i].slot;
    unlock(node);
    if (gone)
        return tn__node_freed(node->name);
    if (recompute == NULL)
        return TN_OK;
    status = tn__recompute_value(recompute, slot, out);
    tn__recompute_drop(recompute);
    return status;
}

tn_status tn__node_unpack(tn__node *node, tn_tensor **out, bool *stale)
{
    tn_status status = TN_OK;
    bool later = false;

    *stale = false;
    lock(node);
    if (node->released && node->had_saved) {
        unlock(node);
        return tn__node_freed(node->name);
    }
    for (int32_t i = 0; i < node->n_saved; i++) {
        bool gone = changed(&node->saved[i]);

        *stale |= gone;
        later |= node->saved[i].recompute != NULL;
        out[i] = gone || node->saved[i].tensor == NULL ? NULL
                                                       : tn_tensor_keep(node->saved[i].tensor);
    }
    unlock(node);
    /* Computing it again runs code of the program, which may take long. */
    for (int32_t i = 0; later && i < node->n_saved && status == TN_OK; i++)
        status = unpack_later(node, i, &out[i]);
    return status;
}

tn_status tn__node_stale(tn__node *node)
{
    for (int32_t i = 0; i < node->n_saved; i++) {
        const tn__saved *saved = &node->saved[i];
        tn__text text = { 0 };
        tn_status status;

        if (!changed(saved))
            continue;
        if (saved->tensor != NULL)
            tn__tensor_text(&text, saved->tensor);
        else
            tn__text_add(&text, "a tensor");
        if (node->kind == TN__NODE_OP)
            tn__text_add(&text, ", which is %s %q of %s,", saved->is_output ? "output" : "input",
                         saved->is_output ? node->op->def.outputs[saved->operand].name
                                          : tn__operand(node->op, saved->operand)->name,
                         node->name);
        else
            tn__text_add(&text, ", saved by %s,", node->name);
        if (saved->tensor != NULL && saved->tensor->storage == saved->storage)
            tn__text_add(&text, " is at version %llu; expected version %llu instead",
                         (unsigned long long)atomic_load(&saved->storage->version),
                         (unsigned long long)saved->version);
        else
            tn__text_add(&text, saved->tensor == NULL ? " was overwritten by that operator itself"
                                                      : " was moved to other memory since");
        tn__text_put(&text, "", 1);
        /* PyTorch's wording */
        status = tn_fail(
            TN_ERR_RUNTIME,
            "one of the variables needed for gradient computation has been modified by an inplace "
            "operation: %s",
            text.failed ? node->name : text.at);
        tn__text_free(&text);
        return status;
    }
    return TN_OK;
}

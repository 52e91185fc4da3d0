/* SPDX-License-Identifier: MIT
 *
 * In-place changes and history. The operator becomes the history of the tensor that it changes. If
 * the tensor is a view, its base gets a new history: the gradient of the base is split into the
 * part under the view, which goes through the operator, and the rest. All views of that base then
 * renew their history. */
#include "core/grad/private.h"

tn_status tn__grad_view(tn_tensor *view, tn_tensor *base)
{
    struct tn__autograd *autograd = tn__grad_of(view), *of_base = base->autograd;

    if (autograd == NULL)
        return tn_error_last_code();
    autograd->blind_view = !tn__grad_on() || base->blind ||
                           (of_base != NULL && of_base->blind_view);
    autograd->of_function = of_base != NULL && of_base->of_function;
    if (of_base != NULL && of_base->base != NULL)
        base = of_base->base;
    autograd->base = tn_tensor_keep(base);
    autograd->generation = base->autograd != NULL ? base->autograd->generation : 0;
    return TN_OK;
}

void tn__grad_alone(tn_tensor *tensor)
{
    struct tn__autograd *autograd = tensor->autograd;

    if (autograd == NULL || autograd->base == NULL || tn__grad_stale(tensor))
        return;
    tn_tensor_drop(autograd->base);
    autograd->base = NULL;
    autograd->blind_view = false;
}

/* Computes where a view is in its base, as if the memory of the base began with its first element.
 * The offset is counted in elements of the view, which are smaller than those of the base if the
 * view shows parts of complex numbers. Returns false if the offset is not a whole number of
 * elements. */
static bool region_of(const tn_tensor *view, const tn_tensor *base, tn_meta *base_meta,
                      tn_meta *view_meta)
{
    int64_t size, bytes;

    tn__tensor_meta(base, base_meta);
    tn__tensor_meta(view, view_meta);
    size = (int64_t)tn_dtype_size(view_meta->dtype);
    bytes = view_meta->offset * size - base_meta->offset * (int64_t)tn_dtype_size(base_meta->dtype);
    view_meta->offset = bytes / size;
    base_meta->offset = 0;
    base_meta->flags = view_meta->flags = TN_META_STRIDED;
    return bytes % size == 0;
}

/* Returns a node with space for the metas of the base and the view. Input 0 is the base. */
static tn__node *new_region_node(tn__node_kind kind, const char *name, int32_t n_in,
                                 int64_t n_sizes, tn_tensor *view, tn_tensor *base, int64_t **sizes)
{
    void *tail;
    tn__node *node;

    node = tn__node_new(kind, name, n_in, 1, 0, n_sizes + base->view.ndim, 2 * sizeof(tn_meta),
                        &tail);
    if (node == NULL)
        return NULL;
    node->as.slice.inner = NULL;
    node->as.slice.base = tail;
    node->as.slice.view = node->as.slice.base + 1;
    if (!region_of(view, base, node->as.slice.base, node->as.slice.view)) {
        tn_fail(TN_ERR_RUNTIME,
                "%s: a view of %s elements does not begin at an element of its base; with "
                "gradients, neither of them can be changed in place: change a copy (tn_copy)",
                name, tn_dtype_name((tn_dtype)view->dtype));
        tn__node_drop(node);
        return NULL;
    }
    *sizes = node->seen[0].shape;
    if (tn__node_input(node, 0, base, tn__requires_grad(base), sizes) != TN_OK) {
        tn__node_drop(node);
        return NULL;
    }
    return node;
}

/* Sets the error, in PyTorch's wording, for an in-place change of a view that a function of the
 * program returned (`itself`), or of the base of such a view. */
static tn_status passes_function_by(const struct tn__autograd *autograd, bool itself)
{
    return tn_fail(
        TN_ERR_RUNTIME,
        "Output %d of %sBackward is a view and %s modified inplace. This view was created inside a "
        "custom Function (or because an input was returned as-is), and the change would go past "
        "the custom backward of that Function, leading to incorrect gradients; tn_copy the output "
        "of the Function and change the copy",
        (int)autograd->index, autograd->node->name,
        itself ? "is being" : "its base or another view of its base has been");
}

tn_status tn__grad_edge_of_view(tn_tensor *tensor, tn__edge *edge)
{
    struct tn__autograd *autograd = tensor->autograd;

    edge->node = NULL;
    edge->index = 0;
    if (tn__grad_stale(tensor)) {
        tn_tensor *base = autograd->base;
        int64_t *sizes;
        if (autograd->of_function)
            return passes_function_by(autograd, false);
        tn__node *node = new_region_node(TN__NODE_STRIDED, "view", 1, 0, tensor, base, &sizes);
        tn_status status;

        if (node == NULL)
            return tn_error_last_code();
        status = tn__node_attach(node, tensor, 0);
        tn__node_drop(node);
        if (status != TN_OK)
            return status;
        autograd->generation = base->autograd->generation;
    }
    tn__grad_edge_known(tensor, edge);
    return TN_OK;
}

static tn_status made_blind(const char *who, const char *suffix)
{
    return tn_fail(
        TN_ERR_RUNTIME,
        "%s%s: A view was created in no_grad mode or inference mode and is being modified inplace "
        "with grad mode enabled; make the view with gradients enabled, or change it without",
        who, suffix);
}

/* Returns whether sizes and strides alone show that no two elements have the same place in
 * memory. */
static bool is_plain(const tn_tensor *tensor)
{
    return tn__view_strides_nest(tensor->view.shape, tensor->view.strides, tensor->view.ndim, 0);
}

tn_status tn__grad_changeable(const char *who, const char *suffix, tn_tensor *into)
{
    struct tn__autograd *autograd = into->autograd;
    tn__edge edge;
    tn_status status;

    if (into->blind)
        return made_blind(who, suffix);
    if (autograd == NULL)
        return TN_OK;
    if (autograd->base != NULL &&
        autograd->base->storage != into->storage) { /* no view any more, after tn_tensor_swap */
        tn_tensor_drop(autograd->base);
        autograd->base = NULL;
        autograd->blind_view = false;
    }
    status = tn__grad_edge(into, &edge);
    if (status != TN_OK)
        return status;
    if (into->requires_grad && autograd->node == NULL)
        /* PyTorch's wording */
        return tn_fail(
            TN_ERR_RUNTIME,
            "a leaf Variable that requires grad is being used in an in-place operation. (%s%s; "
            "call tn_grad_begin(false) before it if that is intended)",
            who, suffix);
    if (autograd->base != NULL) {
        const tn_tensor *base = autograd->base;

        if (autograd->of_function)
            return passes_function_by(autograd, true);
        if (autograd->blind_view)
            return made_blind(who, suffix);
        if (base->requires_grad && (base->autograd == NULL || base->autograd->node == NULL))
            /* PyTorch's wording */
            return tn_fail(
                TN_ERR_RUNTIME,
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation. (%s%s)",
                who, suffix);
        if (!is_plain(base))
            return tn_fail(
                TN_ERR_NOT_IMPLEMENTED,
                "%s%s: the base of this view may contain one element twice; with gradients, "
                "such a view cannot be changed in place: change a copy (tn_copy)",
                who, suffix);
        return TN_OK;
    }
    return TN_OK;
}

tn_status tn__grad_before_inplace(const tn_op *op, tn_tensor *into, tn_tensor *const *in,
                                  int64_t n_in, const void *options, tn_tensor **original)
{
    tn_status status = tn__grad_changeable(op->def.name, "_", into);

    *original = NULL;
    if (status != TN_OK || n_in < 1 || in[0] != into || op->def.derive == NULL ||
        (op->def.save_in & 1) == 0 || tn__node_by_result(op, options, into))
        return status;
    *original = tn__grad_copy(into);
    return *original != NULL ? TN_OK : tn_error_last_code();
}

static tn__node *node_of(const tn_op *op, tn_tensor *into, tn_tensor *const *in, int64_t n_in,
                         const void *options, tn_tensor *original)
{
    bool copy = (op->def.flags & TN_OP_INTO) != 0;
    bool wanted = tn__grad_wanted(op, in, n_in);
    /* The old values of a view need no edge here: the SLICE node has the base as its input. */
    bool before = into->requires_grad && into->autograd->base == NULL;
    int64_t *sizes;
    tn__node *node;

    if (!copy && (wanted || op->def.derive != NULL))
        return tn__node_of_op(op, in, n_in, options, &into, 1, into, original);
    node = tn__node_new(copy ? TN__NODE_COPY : TN__NODE_CUT, op->def.name, copy + before, 1, 0,
                        (copy ? in[0]->view.ndim : 0) + (before ? into->view.ndim : 0), 0, NULL);
    if (node == NULL || copy + before == 0)
        return node;
    sizes = node->seen[0].shape;
    if ((copy && tn__node_input(node, 0, in[0], wanted, &sizes) != TN_OK) ||
        (before && tn__node_input(node, copy, into, true, &sizes) != TN_OK)) {
        tn__node_drop(node);
        return NULL;
    }
    return node;
}

/* Makes a SLICE node the new history of the base. The first gradient of that node is for what the
 * change left of the base, the others are the gradients of `inner`. */
static tn_status rebase_base(tn__node *inner, tn_tensor *view)
{
    tn_tensor *base = view->autograd->base;
    int64_t n_sizes = 0, *sizes;
    tn__node *node;
    tn__edge edge;
    tn_status status;

    for (int32_t i = 0; i < inner->n_in; i++)
        n_sizes += inner->seen[i].ndim > 0 ? inner->seen[i].ndim : 0;
    node = new_region_node(TN__NODE_SLICE, inner->name, inner->n_in + 1, n_sizes, view, base,
                           &sizes);
    if (node == NULL)
        return tn_error_last_code();
    for (int32_t i = 0; i < inner->n_in; i++) {
        node->seen[i + 1] = inner->seen[i]; /* the shapes stay in the block of `inner` */
        node->edges[i + 1] = inner->edges[i];
        tn__node_keep(inner->edges[i].node);
    }
    if (node->sequence <= inner->sequence)
        node->sequence = inner->sequence + 1;
    node->as.slice.inner = tn__node_keep(inner);
    inner->outer = node;
    node->had_saved = inner->had_saved;
    status = tn__node_attach(node, base, 0);
    tn__node_drop(node);
    return status == TN_OK ? tn__grad_edge(view, &edge) : status;
}

/* The values were changed, but the history could not be recorded. Makes a LOST node the history of
 * the tensor and of its base, so that every later backward through it fails. */
static tn_status lose(tn_tensor *into)
{
    static tn__node lost = {
        .refs = 1 << 30, .kind = TN__NODE_LOST, .name = "in-place", .n_out = 1
    };
    tn_status status = tn_error_last_code();
    tn_tensor *all[2] = { into, into->autograd != NULL ? into->autograd->base : NULL };

    for (int i = 0; i < 2; i++) {
        struct tn__autograd *autograd = all[i] != NULL ? all[i]->autograd : NULL;

        if (autograd == NULL || !all[i]->requires_grad)
            continue;
        tn__node_drop(autograd->node);
        autograd->node = tn__node_keep(&lost);
        autograd->index = 0;
        autograd->generation++;
    }
    return status;
}

tn_status tn__grad_after_inplace(const tn_op *op, tn_tensor *into, tn_tensor *const *in,
                                 int64_t n_in, const void *options, tn_tensor *original)
{
    tn__node *node;
    tn_status status;

    if (((TN_MASK_FLOAT | TN_MASK_COMPLEX) & TN_BIT(into->dtype)) == 0)
        return TN_OK;
    node = node_of(op, into, in, n_in, options, original);
    if (node == NULL)
        return lose(into);
    status = tn__grad_rebase(node, into);
    tn__node_drop(node);
    return status;
}

tn_status tn__grad_rebase(tn__node *node, tn_tensor *into)
{
    tn_status status;

    if (into->autograd != NULL && into->autograd->base != NULL)
        status = rebase_base(node, into);
    else
        status = tn__node_attach(node, into, 0);
    return status == TN_OK ? TN_OK : lose(into);
}

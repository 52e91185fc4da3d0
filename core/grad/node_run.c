/* SPDX-License-Identifier: MIT
 *
 * One step of the walk: runs the derivative of one node and brings the results into the form that
 * the next nodes expect. */
#include "core/grad/private.h"
#include "core/tensor/boundary.h"

#include <tenon/ops.h>

tn_tensor *tn__grad_add(tn_tensor *a, tn_tensor *b, bool record)
{
    const tn_op *add = tn__op_needed(TN__NEED_add);
    tn_tensor *in[2] = { a, b }, *out = NULL;
    tn_status status;

    if (add == NULL)
        return NULL;
    status = record ? tn__call_plain(add, in, 2, NULL, &out, 1, NULL)
                    : tn__op_run(add, in, 2, NULL, &out, 1, NULL);
    return status == TN_OK ? out : NULL;
}

tn_tensor *tn__grad_copy(tn_tensor *gradient)
{
    tn_tensor *copy;
    tn_meta meta;

    tn__tensor_meta(gradient, &meta);
    if (!tn__tensor_is_dense(gradient))
        meta.flags = 0;
    meta.offset = 0;
    copy = tn__tensor_make(&meta, gradient->device);
    if (copy != NULL && tn__copy(copy, gradient) != TN_OK) {
        tn_tensor_drop(copy);
        return NULL;
    }
    return copy;
}

/* Replaces *gradient by the result of an operator on it. */
static tn_status change(tn_tensor **gradient, const tn_op *op, const void *options)
{
    tn_tensor *out = NULL;
    tn_status status;

    if (op == NULL)
        return tn_error_last_code();
    status = tn__call_plain(op, gradient, 1, options, &out, 1, NULL);
    if (status != TN_OK)
        return status;
    tn_tensor_drop(*gradient);
    *gradient = out;
    return TN_OK;
}

static tn_status misfit(const tn__node *node, int32_t i, const tn_tensor *gradient)
{
    const tn__seen *seen = &node->seen[i];
    tn__text text = { 0 };
    tn_status status;

    tn__tensor_text_ints(&text, tn__shape(gradient));
    tn__text_add(&text, " but expected shape compatible with ");
    tn__tensor_text_ints(&text, (tn_ints){ seen->shape, seen->ndim });
    tn__text_put(&text, "", 1);
    /* PyTorch's wording */
    status = tn_fail(TN_ERR_RUNTIME,
                     "function %s returned an invalid gradient at index %d - got %s", node->name,
                     (int)i, text.failed ? "another shape" : text.at);
    tn__text_free(&text);
    return status;
}

tn_status tn__grad_fit(const tn__node *node, int32_t i, tn_tensor **gradient)
{
    const tn__seen *seen = &node->seen[i];
    const tn_tensor *g = *gradient;
    int32_t lead = g->view.ndim - seen->ndim;
    bool same = lead == 0;

    for (int32_t d = 0; d < seen->ndim; d++) {
        int64_t have = lead >= 0 ? g->view.shape[d + lead] : -1;

        same &= have == seen->shape[d];
        if (lead < 0 || (have != seen->shape[d] && seen->shape[d] != 1))
            return misfit(node, i, g);
    }
    if (!same) {
        tn_sum_to_options options = TN_SUM_TO_OPTIONS;
        tn_status status;

        options.shape = (tn_ints){ seen->shape, seen->ndim };
        status = change(gradient, tn__op_needed(TN__NEED_sum_to), &options);
        if (status != TN_OK)
            return status;
    }
    if ((*gradient)->dtype != seen->dtype) {
        tn_tensor *cast = tn__call_cast(*gradient, (tn_dtype)seen->dtype);

        if (cast == NULL)
            return tn_error_last_code();
        tn_tensor_drop(*gradient);
        *gradient = cast;
    }
    return TN_OK;
}

/* Fills in the metas of the inputs that a derivative gets. */
static void widen(const tn__node *node, tn_meta *metas)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        const tn__seen *seen = &node->seen[i];
        tn_meta *meta = &metas[i];

        meta->dtype = seen->ndim < 0 ? TN_DTYPE_AUTO : (tn_dtype)seen->dtype;
        meta->ndim = seen->ndim;
        meta->flags = 0;
        meta->reserved = 0;
        meta->offset = 0;
        for (int32_t d = 0; d < seen->ndim; d++)
            meta->shape[d] = seen->shape[d];
    }
}

tn_status tn__node_attach_saved(tn__node *node, const tn__saved *saved, tn_tensor **tensor)
{
    tn__edge edge = { node, saved->operand };
    tn__node *made = NULL;
    tn_tensor *fresh;
    tn_status status;

    if (!saved->is_output)
        edge = node->edges[saved->operand];
    if (edge.node == NULL || (*tensor)->autograd != NULL)
        return TN_OK;
    fresh = tn__tensor_alias(*tensor);
    if (fresh == NULL)
        return tn_error_last_code();
    tn_tensor_drop(*tensor);
    *tensor = fresh;
    /* The walk visits `outer` instead of this node. */
    if (saved->is_output && node->outer != NULL) {
        status = tn__view_gradient_output(node->outer, &edge);
        if (status != TN_OK)
            return status;
        made = edge.node;
    }
    status = tn__grad_attach_edge(&edge, fresh);
    tn__node_drop(made);
    return status;
}

enum { FEW = 4 };

typedef struct step {
    tn_tensor *saved[FEW];
    tn_tensor *in[FEW], *out[FEW];
    tn_meta metas[FEW];
} step;

static tn_status derive(tn__node *node, tn_tensor *const *gout, uint32_t need, bool record,
                        tn_tensor **gin, tn_tensor *sum, tn_tensor **saved, tn_tensor **in,
                        tn_tensor **out, tn_meta *metas)
{
    tn_derive ask = { TN_HEAD(tn_derive), .op = &node->op->def, .options = node->options,
                      .in = in,           .out = out,           .gout = gout,
                      .in_meta = metas,   .n_in = node->n_in,   .n_out = node->n_out,
                      .need = need,       .gin = gin,           .sum = sum };
    bool stale = false;
    const char *before;
    uint64_t mark, errors;
    tn_status status = tn__node_unpack(node, saved, &stale);

    if (status != TN_OK)
        return status;
    for (int32_t i = 0; i < node->n_saved && status == TN_OK; i++) {
        if (record && saved[i] != NULL)
            status = tn__node_attach_saved(node, &node->saved[i], &saved[i]);
        (node->saved[i].is_output ? out : in)[node->saved[i].operand] = saved[i];
    }
    widen(node, metas);
    mark = tn_error_mark();
    errors = tn__error_count();
    before = tn__error_plugin(node->op->id);
    if (status == TN_OK) {
        tn__boundary_thread thread;

        tn__boundary_enter(&thread);
        status = node->op->def.derive(&ask);
        status = tn__boundary_leave(&thread, node->op->id, node->name, status);
    }
    tn__error_plugin(before);
    for (int32_t i = 0; i < node->n_in && status == TN_OK; i++) {
        if (!(need >> (i < 31 ? i : 31) & 1) || gin[i] != NULL)
            continue;
        /* If an operator failed inside the derivative, the derivative has passed on its NULL. */
        if (tn__error_count() != errors && tn_failed())
            status = tn_error_last_code();
        else
            status = tn_fail(
                TN_ERR_ASSERT,
                "input %d: the derivative returned no gradient and no error; a bug of the plugin "
                "that defines the operator",
                (int)i);
    }
    /* The reason is a changed tensor, of which the derivative got NULL. */
    if (status != TN_OK && stale) {
        tn_error_restore(mark);
        status = tn__node_stale(node);
    }
    return status;
}

static tn_status run_op(tn__node *node, tn_tensor *const *gout, uint32_t need, bool record,
                        tn_tensor **gin, tn_tensor *sum)
{
    step few;
    tn_tensor **saved = few.saved, **in = few.in, **out = few.out;
    tn_meta *metas = few.metas;
    void *heap = NULL;
    tn_status status;

    if (node->op->def.derive == NULL)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "the derivative for '%s' is not implemented",
                       node->name);
    if (node->n_in > FEW || node->n_out > FEW || node->n_saved > FEW) {
        size_t pointers = (size_t)(node->n_in + node->n_out + node->n_saved) * sizeof(tn_tensor *);

        heap = tn_malloc((size_t)node->n_in * sizeof(tn_meta) + pointers);
        if (heap == NULL)
            return TN_ERR_MEMORY;
        metas = heap;
        in = (tn_tensor **)(void *)(metas + node->n_in);
        out = in + node->n_in;
        saved = out + node->n_out;
    }
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = gin[i] = NULL;
    for (int32_t i = 0; i < node->n_out; i++)
        out[i] = NULL;
    for (int32_t i = 0; i < node->n_saved; i++)
        saved[i] = NULL;
    status = derive(node, gout, need, record, gin, sum, saved, in, out, metas);
    for (int32_t i = 0; i < node->n_saved; i++)
        if (saved[i] != NULL)
            tn_tensor_drop(saved[i]);
    if (heap != NULL)
        tn_free(heap);
    return status;
}

/* What an in-place change has overwritten does not affect the result: its gradient is zeros. */
static tn_status overwritten(const tn_tensor *gout, tn_tensor **gin)
{
    *gin = tn__grad_zeros_like(gout);
    if (*gin != NULL && tn__scope_push(*gin) != NULL)
        return TN_OK;
    *gin = TN_NONE;
    return tn_error_last_code();
}

tn_status tn__node_run(tn__node *node, tn_tensor *const *gout, uint32_t need, bool record,
                       tn_tensor **gin, tn_tensor *sum)
{
    uint64_t scope = tn_scope_begin();
    bool autocast = tn__autocast_pause(); /* gradients have the dtypes that the forward call had */
    tn__range range;
    tn_status status;

    tn__range_begin(&range, TN_RANGE_NODE, node->name, node->sequence);
    switch (node->kind) {
    case TN__NODE_OP: status = run_op(node, gout, need, record, gin, sum); break;
    case TN__NODE_FUNCTION: status = tn__function_run(node, gout, need, record, gin); break;
    case TN__NODE_SLICE:
    case TN__NODE_STRIDED: status = tn__view_gradient_run(node, gout[0], need, record, gin); break;
    case TN__NODE_COPY:
        gin[0] = gout[0];
        status = node->n_in > 1 && (need & 2) ? overwritten(gout[0], &gin[1]) : TN_OK;
        break;
    case TN__NODE_LOST:
        status = tn_fail(
            TN_ERR_RUNTIME,
            "in-place operation: out of memory while it was recorded; the history of what it "
            "changed is lost");
        break;
    default: /* TN__NODE_CUT */
        status = node->n_in > 0 && (need & 1) ? overwritten(gout[0], &gin[0]) : TN_OK;
        break;
    }
    for (int32_t i = 0; i < node->n_in; i++) {
        if (status != TN_OK || !(need >> (i < 31 ? i : 31) & 1) || tn__is_none(gin[i])) {
            gin[i] = TN_NONE;
            continue;
        }
        tn_tensor_keep(gin[i]);
        status = tn__grad_fit(node, i, &gin[i]);
        if (status != TN_OK) {
            tn_tensor_drop(gin[i]);
            gin[i] = TN_NONE;
        }
    }
    if (status != TN_OK) {
        for (int32_t i = 0; i < node->n_in; i++) {
            if (!tn__is_none(gin[i]))
                tn_tensor_drop(gin[i]);
            gin[i] = TN_NONE;
        }
        tn_error_prefix("backward of %s: ", node->name);
    }
    tn__autocast_resume(autocast);
    tn_scope_end(scope);
    return tn__range_end(&range, status);
}

/* SPDX-License-Identifier: MIT
 *
 * Operators that run as other operators: calls of `decompose`, and checks of its results. */
#include "core/op/private.h"
#include "core/tensor/boundary.h"

#include <string.h>

/* Checks that a result of a decomposition has the dtype and shape that inference returned. */
static tn_status check_result(const tn__work *work, int32_t i, const tn_tensor *result)
{
    const tn_meta *meta = &work->meta[i];
    bool same = result->dtype == meta->dtype && (meta->ndim < 0 || result->view.ndim == meta->ndim);

    for (int32_t d = 0; same && d < meta->ndim; d++)
        same = result->view.shape[d] == meta->shape[d];
    if (!same) {
        tn__text text = { 0 };
        tn_status status;

        tn__text_add(&text, "wrong result, got ");
        tn__tensor_text(&text, result);
        tn__text_add(&text, "; expected %s", tn_dtype_name(meta->dtype));
        if (meta->ndim >= 0)
            tn__tensor_text_ints(&text, (tn_ints){ meta->shape, meta->ndim });
        tn__text_put(&text, "", 1);
        status = tn_fail(
            TN_ERR_ASSERT, "%s: decomposition: %s; a bug of the plugin that defines the operator",
            work->op->def.name, text.failed ? "differs from what inference returned" : text.at);
        tn__text_free(&text);
        return status;
    }
    return TN_OK;
}

/* Returns whether a result is a view of an input, and not of a tensor that the decomposition made.
 */
static bool is_view_of_input(const tn__work *work, const tn_tensor *result)
{
    for (int64_t i = 0; i < work->n_in; i++)
        if (tn__tensor_ok(work->in[i]) && work->in[i]->storage == result->storage)
            return true;
    return false;
}

static bool is_input(const tn__work *work, const tn_tensor *result)
{
    for (int64_t i = 0; i < work->n_in; i++)
        if (work->in[i] == result)
            return true;
    return false;
}

/* Corrects what a result of a decomposition has as a view: the mark `blind`, and its base. A result
 * that is one of the inputs is not changed, because other threads may be reading it. */
static void settle_result(const tn__work *work, tn_tensor *result, bool quiet)
{
    bool seen;

    if (is_input(work, result))
        return;
    seen = is_view_of_input(work, result);
    result->blind &= !(quiet && tn__grad_on()) && seen;
    if (!seen && work->n_out == 1) /* the base was temporary, and has no other reference */
        tn__op_up.grad_alone(result);
}

/* Returns whether no input of an operator has a gradient, as the schema says. */
static bool has_no_gradient(const tn_op_def *def)
{
    for (int32_t i = 0; i < def->n_inputs; i++)
        if ((def->inputs[i].flags & TN_OPERAND_NO_GRAD) == 0)
            return false;
    return def->n_inputs > 0;
}

tn_status tn__decompose(tn__work *work, tn_tensor **out, bool record)
{
    const tn_op_def *def = &work->op->def;
    uint64_t scope = tn_scope_begin();
    const char *before = tn__error_plugin(work->op->id);
    /* An operator without a derivative gets its gradients through its inner operators. They are
     * recorded even if no input requires a gradient yet, because a view must remember its base. */
    bool quiet = !record && (def->derive != NULL || work->into != NULL || has_no_gradient(def));
    tn_decompose ask = { TN_HEAD(tn_decompose), .op = def,          .options = work->options,
                         .in = work->in,        .n_in = work->n_in, .out = out,
                         .n_out = work->n_out };
    tn__boundary_thread thread;
    /* The inputs of this operator have been cast: the inner operators compute in their dtypes,
     * which inference knows. */
    bool autocast = tn__autocast_pause();
    tn_status status = quiet ? tn_grad_begin(false) : TN_OK;

    for (int32_t i = 0; i < work->n_out; i++)
        out[i] = NULL;
    if (status == TN_OK) {
        tn__boundary_enter(&thread);
        status = tn__error_status_of(def->decompose(&ask), def->name);
        status = tn__boundary_leave(&thread, work->op->id, def->name, status);
    }
    if (quiet)
        tn_grad_end();
    tn__autocast_resume(autocast);
    /* An inner operator names only itself in a message: adds the operator that the caller asked
     * for. */
    if (status != TN_OK && tn_failed() && strstr(tn_error_text(), def->name) == NULL)
        status = tn_error_prefix("%s: ", def->name);
    tn__error_plugin(before);
    for (int32_t i = 0; i < work->n_out && status == TN_OK; i++) {
        if (!tn__tensor_ok(out[i]))
            status = tn_fail(TN_ERR_ASSERT,
                             "%s: decomposition: returned no %s; a bug of the plugin that defines "
                             "the operator",
                             def->name, def->outputs[i].name);
        else
            status = check_result(work, i, out[i]);
    }
    for (int32_t i = 0; i < work->n_out; i++) {
        if (status == TN_OK) {
            settle_result(work, out[i], quiet);
            tn_tensor_keep(out[i]);
        } else {
            out[i] = NULL;
        }
    }
    tn_scope_end(scope);
    return status;
}

tn_status tn__decompose_into(tn__work *work, tn_tensor **out)
{
    tn_tensor *result = NULL;
    tn_status status = tn__decompose(work, &result, false);

    if (status != TN_OK)
        return status;
    status = tn__copy(work->into, result);
    tn_tensor_drop(result);
    if (status == TN_OK)
        out[0] = tn_tensor_keep(work->into);
    return status;
}

tn_status tn__decompose_call(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                             const void *options, tn_tensor **out)
{
    tn_meta metas[TN_MAX_OPERANDS];
    tn__work work;
    tn_status status;

    if (op->def.decompose == NULL || op->def.n_outputs > TN_MAX_OPERANDS)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: it has no decomposition", op->def.name);
    status = tn__call_begin(&work, op, in, n_in, options, metas, NULL);
    if (status != TN_OK)
        return status;
    status = tn__decompose(&work, out, true);
    tn__call_end(&work);
    return status;
}

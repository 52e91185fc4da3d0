/* SPDX-License-Identifier: MIT
 *
 * Steps of a plan that are more than a call of a kernel: nodes with blocks, compiled regions,
 * updates of an optimizer, and kernels that observers see. */
#include "lib/plan/plan.h"
#include "core/tensor/mode.h"
#include "core/tensor/thread.h"

static tn_status run_region(const tn__plan_step *step, const tn_call *call, tn_stream *stream)
{
    return tn__region_call(step->region, call->in, call->out, call->workspace, stream);
}

/* Makes tensors, which the caller owns, over the memory of a step's operands. */
static tn_status make_tensors(const tn__plan_binding *b, const tn__plan_state *state, int64_t at,
                              tn_tensor *const *in, tn_tensor **tensors)
{
    const tn__plan_step *step = &b->steps[at];
    int64_t count = step->call.n_in + step->call.n_out;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        const tn__plan_operand *operand = &b->operands[step->first + i];
        const tn_view *view = &state->views[step->first + i];
        tn__storage *storage;
        tn_meta meta;

        tensors[i] = TN_NONE;
        if (operand->root < 0)
            continue;
        storage = tn__plan_storage_of(b, state, tn__plan_root_of(b, operand->root), in);
        meta = (tn_meta){ .dtype = tn_view_dtype(view),
                          .ndim = view->ndim,
                          .flags = TN_META_STRIDED };
        meta.offset = (int64_t)((view->byte_offset - storage->offset) / tn_dtype_size(meta.dtype));
        for (int32_t d = 0; d < view->ndim; d++) {
            meta.shape[d] = view->shape[d];
            meta.strides[d] = view->strides[d];
        }
        tensors[i] = tn__tensor_over(storage, &meta);
        if (tensors[i] == NULL)
            status = tn_error_last_code();
    }
    return status;
}

/* Observers get tensors. */
static tn_status run_observed(const tn__plan_binding *b, const tn__plan_state *state, int64_t at,
                              tn_tensor *const *in)
{
    const tn__plan_step *step = &b->steps[at];
    int64_t count = step->call.n_in + step->call.n_out;
    tn_tensor **tensors = tn_calloc((size_t)count + 1, sizeof(tn_tensor *));
    tn_status status = tensors != NULL ? make_tensors(b, state, at, in, tensors) : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = tn__observer_run(step->op, &state->ready[at].call, b->device, tensors,
                                  tensors + step->call.n_in);
    for (int64_t i = 0; tensors != NULL && i < count; i++)
        tn_tensor_drop(tensors[i]);
    tn_free(tensors);
    return status;
}

static tn_status other_result(int64_t i, const tn_tensor *got, const tn_tensor *planned)
{
    tn__text a = { 0 }, b = { 0 };
    tn_status status;

    tn__tensor_text(&a, got);
    tn__text_put(&a, "", 1);
    tn__tensor_text(&b, planned);
    tn__text_put(&b, "", 1);
    status = tn_fail(TN_ERR_VALUE,
                     "result %lld: wrong dtype or shape, got %s; expected %s, as when the plan was "
                     "made",
                     (long long)i, a.failed ? "?" : a.at, b.failed ? "?" : b.at);
    tn__text_free(&a);
    tn__text_free(&b);
    return status;
}

static tn_status copy_results(const tn__plan_step *step, tn_tensor *const *results,
                              tn_tensor *const *to)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < step->call.n_out && status == TN_OK; i++) {
        bool same = results[i]->dtype == to[i]->dtype && results[i]->view.ndim == to[i]->view.ndim;

        for (int32_t d = 0; same && d < to[i]->view.ndim; d++)
            same = results[i]->view.shape[d] == to[i]->view.shape[d];
        status = same ? tn__copy(to[i], results[i]) : other_result(i, results[i], to[i]);
    }
    return status;
}

/* Runs a node with blocks by the interpreter, and copies its results to their places. */
static tn_status run_control(const tn__plan_binding *b, const tn__plan_state *state, int64_t at,
                             tn_tensor *const *in)
{
    const tn__plan_step *step = &b->steps[at];
    int64_t n_in = step->call.n_in, n_out = step->call.n_out;
    tn_tensor **tensors = tn_calloc((size_t)(n_in + 2 * n_out) + 1, sizeof(tn_tensor *));
    uint64_t scope = tn_scope_begin();
    bool autocast = tn__autocast_pause(); /* as tn__run_graph */
    tn_status status = tn_grad_begin(false);

    if (status == TN_OK)
        status = tensors != NULL ? make_tensors(b, state, at, in, tensors) : TN_ERR_MEMORY;
    tn__stream_unlock(state->stream); /* the operators of the blocks lock it */
    if (status == TN_OK)
        status = tn__blocks_run(step->control, step->symbols, tensors, tensors + n_in + n_out);
    if (status == TN_OK)
        status = copy_results(step, tensors + n_in + n_out, tensors + n_in);
    tn__stream_lock(state->stream);
    tn_grad_end();
    tn__autocast_resume(autocast);
    tn_scope_end(scope);
    for (int64_t i = 0; tensors != NULL && i < n_in + n_out; i++)
        tn_tensor_drop(tensors[i]);
    tn_free(tensors);
    return status;
}

/* Calls the rule of an optimizer. It may not keep the gradients, whose memory is used again. */
static tn_status run_update(const tn__plan_binding *b, const tn__plan_state *state, int64_t at,
                            tn_tensor *const *in)
{
    const tn__plan_step *step = &b->steps[at];
    const tn__plan_update *update = step->update;
    int64_t count = step->call.n_in, references = 0;
    tn_tensor **gradients = tn_calloc((size_t)count + 1, sizeof(tn_tensor *));
    tn_status status = gradients != NULL ? make_tensors(b, state, at, in, gradients)
                                         : TN_ERR_MEMORY;

    tn__stream_unlock(state->stream); /* the operators of the rule lock it */
    if (status == TN_OK && state->slab != NULL)
        references = state->slab->refs;
    if (status == TN_OK)
        status = tn__step_update(update->optimizer, update->index, gradients, count);
    if (status == TN_OK && state->slab != NULL && state->slab->refs > references)
        status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                         "optimizer %s: it keeps a gradient after its step, and a plan uses the "
                         "memory again; expected a rule that copies it",
                         tn_optimizer_type(update->optimizer));
    tn__stream_lock(state->stream);
    for (int64_t i = 0; gradients != NULL && i < count; i++)
        if (tn__tensor_ok(gradients[i]))
            tn_tensor_drop(gradients[i]);
    tn_free(gradients);
    return status;
}

tn_status tn__plan_run_other(const tn__plan_binding *b, const tn__plan_state *state, int64_t at,
                             tn_tensor *const *in, bool observed)
{
    const tn_call *call = &state->ready[at].call;

    if (b->steps[at].control != NULL)
        return run_control(b, state, at, in);
    if (b->steps[at].update != NULL)
        return run_update(b, state, at, in);
    if (call->kernel == NULL)
        return run_region(&b->steps[at], call, state->stream);
    return observed ? run_observed(b, state, at, in) : call->kernel->run(call);
}

/* SPDX-License-Identifier: MIT
 *
 * Plans whose kernels the device captures once, as a graph with inputs and results in fixed places.
 * A run copies its inputs there, launches that graph, and copies the results. */
#include "lib/plan/plan.h"
#include "core/tensor/capture.h"
#include "core/tensor/device.h"

/* Fails, with the kernel, if the device cannot record the steps. */
static tn_status check(const tn__plan_binding *b)
{
    if (tn__backend(b->device)->capture_begin == NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "device_graph: %s cannot record work; expected a device that can",
                       b->device->name);
    for (int64_t i = 0; i < b->n_steps; i++) {
        const tn_kernel_def *kernel = b->steps[i].call.kernel;

        if (kernel != NULL && (kernel->flags & TN_KERNEL_CAPTURE_SAFE) != 0)
            continue;
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "%s: the device cannot record it; expected kernels with TN_KERNEL_CAPTURE_SAFE, or "
                "a plan without device_graph",
                tn__plan_step_name(&b->steps[i]));
        return tn__graph_node_failed(b->steps[i].name, b->steps[i].path);
    }
    return TN_OK;
}

/* Records the steps, with inputs and results in places of the state. */
static tn_status record(const tn__plan_binding *b, tn__plan_state *state)
{
    tn_status status = tn__plan_make_fresh(b, state), ended;

    for (int64_t i = 0; i < b->n_in && status == TN_OK; i++) {
        tn_meta meta;

        tn__tensor_meta(b->like[i], &meta);
        meta.offset = 0;
        state->fixed[i] = tn__tensor_make(&meta, b->like[i]->device);
        status = state->fixed[i] != NULL ? TN_OK : tn_error_last_code();
    }
    if (status == TN_OK)
        status = tn_stream_capture_begin(state->stream);
    if (status != TN_OK)
        return status;
    for (int64_t i = 0; i < b->n_steps; i++)
        state->ready[i].call.flags |= TN_CALL_CAPTURED;
    status = tn__plan_run_steps(b, state, state->fixed);
    state->recorded = tn_stream_capture_end(state->stream);
    ended = state->recorded != NULL ? TN_OK : tn_error_last_code();
    return status != TN_OK ? status : ended;
}

tn__plan_state *tn__plan_state_recorded(const tn__plan_binding *b, tn_stream *stream)
{
    tn_status status = check(b);
    tn_stream *own = status == TN_OK ? tn_stream_new(b->device, NULL) : NULL;
    tn__plan_state *state = NULL;

    status = own != NULL ? tn_stream_begin(own) : tn_error_last_code();

    if (own == NULL)
        return NULL;
    if (status == TN_OK) {
        state = tn__plan_state_new(b, own);
        tn_stream_end();
    }
    if (state == NULL) {
        tn_stream_drop(own);
        return NULL;
    }
    state->launched = stream; /* from here on the state drops `own` */
    state->fixed = tn_calloc((size_t)b->n_in + 1, sizeof(tn_tensor *));
    status = state->fixed != NULL ? tn_stream_begin(own) : TN_ERR_MEMORY;
    if (status == TN_OK) {
        status = record(b, state);
        tn_stream_end();
    }
    if (status == TN_OK)
        return state;
    tn__plan_state_drop(b, state);
    return NULL;
}

/* Marks what the record uses, so that it is not used again before a launch is done. */
static tn_status mark_launch(const tn__plan_binding *b, const tn__plan_state *state)
{
    tn_status status = state->slab != NULL ? tn__storage_use(state->slab, state->launched) : TN_OK;

    for (int64_t i = 0; i < b->n_roots && status == TN_OK; i++)
        if (b->roots[i].place == TN__PLAN_HELD && b->roots[i].storage->device == b->device)
            status = tn__storage_use(b->roots[i].storage, state->launched);
    return status;
}

/* Results get memory of their own, because the next launch writes into that of the record. */
static tn_status copy_result(const tn__plan_binding *b, int64_t i, tn_tensor **out)
{
    const tn__plan_result *result = &b->results[i];
    tn_tensor *from = out[i], *to;
    tn_meta meta;
    tn_status status;

    if (result->same < 0 &&
        (result->root < 0 || tn__plan_root_of(b, result->root)->place != TN__PLAN_FRESH))
        return TN_OK;
    if (result->same >= 0) {
        out[i] = tn_tensor_keep(out[result->same]);
        tn_tensor_drop(from);
        return TN_OK;
    }
    tn__tensor_meta(from, &meta);
    meta.offset = 0;
    if (!tn__tensor_is_dense(from))
        meta.flags &= ~(uint32_t)TN_META_STRIDED;
    to = tn__tensor_make(&meta, from->device);
    status = to != NULL ? tn__copy(to, from) : tn_error_last_code();
    if (status != TN_OK) {
        tn_tensor_drop(to);
        return status;
    }
    to->blind = from->blind;
    out[i] = to;
    tn_tensor_drop(from);
    return TN_OK;
}

tn_status tn__plan_launch(const tn__plan_binding *b, tn__plan_state *state, tn_tensor *const *in,
                          tn_tensor **out)
{
    tn_status status = tn__capture_refuse(state->launched, "tn_plan_run",
                                          "a plan with device_graph launches a record of its own");

    for (int64_t i = 0; i < b->n_in && status == TN_OK; i++)
        status = tn__copy(state->fixed[i], in[i]);
    if (status == TN_OK)
        status = mark_launch(b, state);
    if (status == TN_OK)
        status = tn_device_graph_launch(state->recorded, state->launched);
    if (status == TN_OK)
        status = tn__plan_make_results(b, state, in, out);
    if (status != TN_OK)
        return status;
    for (int64_t i = 0; i < b->n_out && status == TN_OK; i++)
        status = copy_result(b, i, out);
    for (int64_t i = 0; i < b->n_out && status != TN_OK; i++) {
        tn_tensor_drop(out[i]);
        out[i] = NULL;
    }
    return status;
}

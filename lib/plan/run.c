/* SPDX-License-Identifier: MIT
 *
 * Runs the steps of a plan. A state has the calls of all steps, with their views, and a slab.
 * Only the views of inputs and of new results change from run to run. In training there is no
 * slab: each root has a block of its own, which may be elsewhere in each run. */
#include "lib/plan/plan.h"
#include "core/tensor/capture.h"
#include "core/tensor/mode.h"
#include "core/tensor/thread.h"

/* ---- states ---------------------------------------------------------------------------------- */

/* The operand's memory, as far as it is the same in all runs of the state. */
static void set_view(const tn__plan_binding *b, tn__plan_state *state, int64_t i)
{
    const tn__plan_operand *operand = &b->operands[i];
    const tn__plan_root *root;
    tn_view *view = &state->views[i];

    state->places[i] = NULL;
    if (operand->root < 0)
        return;
    state->places[i] = view;
    *view = operand->view;
    root = tn__plan_root_of(b, operand->root);
    view->byte_offset = operand->within;
    if (b->trains && root->place != TN__PLAN_HELD) {
        view->data = NULL;
    } else if (root->place == TN__PLAN_SLAB) {
        view->data = state->slab->memory;
        view->byte_offset += state->slab->offset + root->offset;
    }
}

static void set_call(const tn__plan_binding *b, tn__plan_state *state, int64_t i)
{
    const tn__plan_step *step = &b->steps[i];
    tn_call *call = &state->ready[i].call;

    *call = step->call;
    if (step->draws > 0) {
        void *own = state->options + step->draws - 1;

        tn__options_copy(step->op->def.options, step->call.options, step->op->def.options_size,
                         own);
        call->options = own;
    }
    call->in = &state->places[step->first];
    call->out = call->in + call->n_in;
    call->workspace = step->workspace ? call->out[call->n_out] : NULL;
    call->stream = state->stream->handle;
    state->ready[i].plugin = step->plugin;
}

tn__plan_state *tn__plan_state_new(const tn__plan_binding *b, tn_stream *stream)
{
    tn__plan_state *state = tn_calloc(1, sizeof *state);
    bool well = state != NULL;

    if (well) {
        state->stream = stream;
        state->ready = tn_malloc((size_t)(b->n_steps + 1) * sizeof *state->ready);
        state->views = tn_malloc((size_t)(b->n_operands + 1) * sizeof *state->views);
        state->places = tn_malloc((size_t)(b->n_operands + 1) * sizeof(const tn_view *));
        state->fresh = tn_calloc((size_t)b->n_fresh + 1, sizeof(tn__storage *));
        state->options = tn_malloc(b->draws_bytes + 1);
        well = state->ready != NULL && state->views != NULL && state->places != NULL &&
               state->fresh != NULL && state->options != NULL;
    }
    if (well && b->trains) {
        state->blocks = tn_calloc((size_t)b->n_roots + 1, sizeof(tn__storage *));
        state->bases = tn_calloc((size_t)b->n_roots + 1, sizeof *state->bases);
        well = state->blocks != NULL && state->bases != NULL;
    }
    if (well && !b->trains) /* also of 0 bytes, because values may have no elements */
        well = (state->slab = tn__allocator_storage(b->device, b->bytes)) != NULL;
    if (!well) {
        tn__plan_state_drop(b, state);
        return NULL;
    }
    for (int64_t i = 0; i < b->n_operands; i++)
        set_view(b, state, i);
    for (int64_t i = 0; i < b->n_steps; i++)
        set_call(b, state, i);
    return state;
}

static void drop_fresh(const tn__plan_binding *b, tn__plan_state *state)
{
    for (int64_t i = 0; i < b->n_fresh; i++) {
        if (state->fresh[i] != NULL)
            tn__storage_drop(state->fresh[i]);
        state->fresh[i] = NULL;
    }
}

void tn__plan_state_drop(const tn__plan_binding *b, tn__plan_state *state)
{
    if (state == NULL)
        return;
    tn_device_graph_drop(state->recorded); /* waits for the launches */
    for (int64_t i = 0; state->fixed != NULL && i < b->n_in; i++)
        if (state->fixed[i] != NULL)
            tn_tensor_drop(state->fixed[i]);
    if (state->fresh != NULL)
        drop_fresh(b, state);
    if (state->slab != NULL)
        tn__storage_drop(state->slab);
    tn_free(state->ready);
    tn_free(state->views);
    tn_free(state->places);
    tn_free(state->fresh);
    tn_free(state->blocks);
    tn_free(state->bases);
    tn_free(state->options);
    tn_free(state->fixed);
    if (state->launched != NULL)
        tn_stream_drop(state->stream);
    tn_free(state);
}

/* ---- inputs and results ---------------------------------------------------------------------- */

tn__storage *tn__plan_storage_of(const tn__plan_binding *b, const tn__plan_state *state,
                                 const tn__plan_root *root, tn_tensor *const *in)
{
    switch (root->place) {
    case TN__PLAN_SLAB: return state->slab;
    case TN__PLAN_INPUT: return in[root->index]->storage;
    case TN__PLAN_FRESH: return state->fresh[root->index];
    case TN__PLAN_BLOCK:
    case TN__PLAN_SAVED: return state->blocks[root - b->roots];
    default: return root->storage;
    }
}

tn_status tn__plan_make_fresh(const tn__plan_binding *b, tn__plan_state *state)
{
    for (int64_t i = 0; i < b->n_made; i++) {
        const tn__plan_root *root = &b->roots[b->made[i]];
        tn__storage *storage = tn__allocator_storage(b->device, root->size);

        if (storage == NULL)
            return tn_error_last_code();
        if (tn__making.is.inference)
            storage->flags |= TN__STORAGE_INFERENCE;
        state->fresh[root->index] = storage;
    }
    return TN_OK;
}

/* Sets the views of inputs and results. */
static void set_places(const tn__plan_binding *b, tn__plan_state *state, tn_tensor *const *in)
{
    for (int64_t i = 0; i < b->n_moving; i++) {
        int64_t at = b->moving[i];
        const tn__plan_operand *operand = &b->operands[at];
        const tn__plan_root *root = tn__plan_root_of(b, operand->root);
        tn_view *view = &state->views[at];

        if (root->place == TN__PLAN_INPUT) {
            view->data = in[root->index]->view.data;
            view->byte_offset = in[root->index]->view.byte_offset + operand->within;
        } else {
            view->data = state->fresh[root->index]->memory;
            view->byte_offset = state->fresh[root->index]->offset + operand->within;
        }
    }
}

static tn_tensor *make_result(const tn__plan_binding *b, const tn__plan_state *state, int64_t i,
                              tn_tensor *const *in, tn_tensor *const *out)
{
    const tn__plan_result *result = &b->results[i];
    const tn__plan_root *root;
    tn_meta meta = result->meta;
    tn_tensor *tensor;

    if (result->same >= 0)
        return tn_tensor_keep(out[result->same]);
    if (result->input >= 0)
        return tn_tensor_keep(in[result->input]);
    if (result->tensor != NULL)
        return tn_tensor_keep(result->tensor);
    if (result->root < 0)
        return TN_NONE;
    root = tn__plan_root_of(b, result->root);
    if (root->place == TN__PLAN_INPUT) /* the input may have elements of another size */
        meta.offset += (int64_t)(in[root->index]->view.byte_offset - root->shift -
                                 in[root->index]->storage->offset) /
                       (int64_t)tn_dtype_size(meta.dtype);
    tensor = tn__tensor_over(tn__plan_storage_of(b, state, root, in), &meta);
    if (tensor != NULL)
        tensor->blind = result->blind;
    return tensor;
}

tn_status tn__plan_make_results(const tn__plan_binding *b, const tn__plan_state *state,
                                tn_tensor *const *in, tn_tensor **out)
{
    for (int64_t i = 0; i < b->n_out; i++) {
        out[i] = make_result(b, state, i, in, out);
        if (out[i] != NULL)
            continue;
        while (i-- > 0) {
            if (!tn__is_none(out[i]))
                tn_tensor_drop(out[i]);
            out[i] = NULL;
        }
        return tn_error_last_code();
    }
    return TN_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */

const char *tn__plan_step_name(const tn__plan_step *step)
{
    if (step->control != NULL)
        return tn_node_target(step->control);
    if (step->update != NULL)
        return tn_optimizer_type(step->update->optimizer);
    return step->region != NULL ? step->region->def->name : step->call.kernel->name;
}

static tn_status failed(const tn__plan_binding *b, int64_t i, tn_status status)
{
    const tn__plan_step *step = &b->steps[i];

    status = tn__device_result(b->device, status, tn__plan_step_name(step));
    return status != TN_OK ? tn__graph_node_failed(step->name, step->path) : TN_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Sets the views of a root, if its memory is not where it was in the last run of the state. */
static void move_root(const tn__plan_binding *b, tn__plan_state *state, int64_t root, void *data,
                      uint64_t offset)
{
    struct tn__plan_base *base = &state->bases[root];

    if (tn__likely(base->data == data && base->offset == offset))
        return;
    base->data = data;
    base->offset = offset;
    for (int32_t i = b->uses.first[root]; i < b->uses.first[root + 1]; i++) {
        int32_t at = b->uses.at[i];

        state->views[at].data = data;
        state->views[at].byte_offset = offset + b->operands[at].within;
    }
}

static tn_status begin_block(const tn__plan_binding *b, tn__plan_state *state, int64_t root)
{
    tn__storage *block = tn__allocator_storage(b->device, b->roots[root].size);

    if (tn__unlikely(block == NULL))
        return tn_error_last_code();
    if (tn__making.is.inference) /* a result is an inference tensor */
        block->flags |= TN__STORAGE_INFERENCE;
    state->blocks[root] = block;
    move_root(b, state, root, block->memory, block->offset);
    return TN_OK;
}

/* Makes the blocks of results and saved values that no step has made, such as values without
 * elements. */
static tn_status begin_rest(const tn__plan_binding *b, tn__plan_state *state,
                            const tn__plan_given *given)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < b->n_out + given->n_saved_roots && status == TN_OK; i++) {
        int64_t root = i < b->n_out ? b->results[i].root : given->saved_roots[i - b->n_out];

        if (root < 0)
            continue;
        root = tn__plan_root_of(b, (int32_t)root) - b->roots;
        if (b->roots[root].place == TN__PLAN_BLOCK && state->blocks[root] == NULL)
            status = begin_block(b, state, root);
    }
    return status;
}

static tn_status begin_blocks(const tn__plan_binding *b, tn__plan_state *state, int64_t step)
{
    for (int32_t i = b->begins.first[step]; i < b->begins.first[step + 1]; i++) {
        tn_status status = begin_block(b, state, b->begins.at[i]);

        if (tn__unlikely(status != TN_OK))
            return status;
    }
    return TN_OK;
}

static void end_blocks(const tn__plan_binding *b, tn__plan_state *state, int64_t step,
                       const tn__plan_given *given)
{
    for (int32_t i = b->ends.first[step]; i < b->ends.first[step + 1]; i++) {
        int32_t root = b->ends.at[i];

        if (b->roots[root].place == TN__PLAN_SAVED) {
            if (!given->spend)
                continue;
            given->saved[b->roots[root].index] = NULL;
        }
        tn__storage_drop(state->blocks[root]);
        state->blocks[root] = NULL;
    }
}

/* Sets the views of inputs and of what forward saved. */
static void place_roots(const tn__plan_binding *b, tn__plan_state *state, tn_tensor *const *in,
                        const tn__plan_given *given)
{
    for (int64_t i = 0; i < b->n_roots; i++) {
        const tn__plan_root *root = &b->roots[i];

        if (root->place == TN__PLAN_INPUT) {
            const tn_view *view = &in[root->index]->view;

            if (tn__is_none(in[root->index])) /* backward does not use it */
                continue;
            move_root(b, state, i, view->data, view->byte_offset - root->shift);
        } else if (root->place == TN__PLAN_SAVED) {
            tn__storage *saved = given->saved[root->index];

            state->blocks[i] = saved;
            move_root(b, state, i, saved->memory, saved->offset);
        }
    }
}

static void put_draws(const tn__plan_binding *b, tn__plan_state *state, const tn__plan_given *given)
{
    for (int64_t i = 0; i < b->n_draws; i++) {
        const tn__plan_draw *draw = &b->draws[i];
        uint64_t value = draw->seed ? given->seed : given->block + draw->block;

        memcpy((char *)(uintptr_t)state->ready[draw->step].call.options + draw->offset, &value,
               sizeof value);
    }
}

/* Drops the blocks that are still allocated after the steps. Those that backward needs
 * (given->saved_roots) first get a reference in given->stays; after a failure, `stays` gets NULL.
 */
static void clear_blocks(const tn__plan_binding *b, tn__plan_state *state,
                         const tn__plan_given *given, tn_status status)
{
    for (int64_t i = 0; i < given->n_saved_roots; i++)
        given->stays[i] = status == TN_OK ? tn__storage_keep(state->blocks[given->saved_roots[i]])
                                          : NULL;
    for (int64_t i = 0; i < b->n_roots; i++) {
        if (b->roots[i].place == TN__PLAN_BLOCK && state->blocks[i] != NULL)
            tn__storage_drop(state->blocks[i]);
        state->blocks[i] = NULL;
    }
}

/* Increases the versions of the storages that steps have written. */
static void note_writes(const tn__plan_binding *b)
{
    for (int64_t i = 0; i < b->n_written; i++)
        atomic_fetch_add_explicit(&b->roots[b->written[i]].storage->version, 1,
                                  memory_order_relaxed);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static tn_status run_steps(const tn__plan_binding *b, tn__plan_state *state, tn_tensor *const *in,
                           const tn__plan_given *given)
{
    bool observed = atomic_load_explicit(&tn__observers_on, memory_order_relaxed) > 0;
    const char *before = tn__error_plugin("");
    tn_status status = TN_OK;

    for (int64_t i = 0; i < b->n_steps; i++) {
        const struct tn__plan_ready *ready = &state->ready[i];
        const tn_kernel_def *kernel = ready->call.kernel;

        if (b->trains && tn__unlikely(begin_blocks(b, state, i) != TN_OK)) {
            status = tn_error_last_code();
            break;
        }
        tn__error_plugin(ready->plugin);
        status = tn__likely(kernel != NULL && !observed)
                     ? kernel->run(&ready->call)
                     : tn__plan_run_other(b, state, i, in, observed);
        if (tn__unlikely(status != TN_OK)) {
            status = failed(b, i, status);
            break;
        }
        tn__error_plugin_back("");
        if (b->trains)
            end_blocks(b, state, i, given);
    }
    tn__error_plugin_back(before);
    return status;
}

/* Marks the memory as used by this stream, so that it is not reused before the work is done. */
static tn_status mark_use(const tn__plan_binding *b, const tn__plan_state *state,
                          tn_tensor *const *in)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < b->n_roots && status == TN_OK; i++) {
        const tn__plan_root *root = &b->roots[i];
        tn__storage *storage;

        if (root->same != i || root->first > root->last)
            continue;
        storage = tn__plan_storage_of(b, state, root, in);
        if (storage != NULL && storage->device == b->device)
            status = tn__storage_use(storage, state->stream);
    }
    return status;
}

tn_status tn__plan_run_steps(const tn__plan_binding *b, tn__plan_state *state, tn_tensor *const *in)
{
    tn_status status;

    set_places(b, state, in);
    tn__stream_lock(state->stream);
    status = run_steps(b, state, in, NULL);
    tn__stream_unlock(state->stream);
    return status;
}

tn_status tn__plan_run(const tn__plan_binding *b, tn__plan_state *state, tn_tensor *const *in,
                       tn_tensor **out, const tn__plan_given *given)
{
    tn_stream *stream = state->stream;
    tn_status status = tn__plan_make_fresh(b, state);

    if (status == TN_OK && stream->lock != NULL) {
        status = tn__capture_refuse(stream, "tn_plan_run",
                                    "the memory of a plan is used again by its next run; call "
                                    "tn_graph_run instead");
        if (status == TN_OK)
            status = mark_use(b, state, in);
    }
    if (status == TN_OK) {
        if (given != NULL)
            put_draws(b, state, given);
        status = tn__plan_run_steps(b, state, in);
        note_writes(b);
    }
    if (status == TN_OK)
        status = tn__plan_make_results(b, state, in, out);
    drop_fresh(b, state);
    return status;
}

tn_status tn__plan_run_given(const tn__plan_binding *b, tn__plan_state *state, tn_tensor *const *in,
                             tn_tensor **out, const tn__plan_given *given)
{
    tn_stream *stream = state->stream;
    tn_status status = TN_OK;

    place_roots(b, state, in, given);
    put_draws(b, state, given);
    if (stream->lock != NULL) {
        status = tn__capture_refuse(stream, "plan",
                                    "each run takes memory of its own; call the module eagerly");
        if (status == TN_OK)
            status = mark_use(b, state, in);
    }
    if (status == TN_OK) {
        tn__stream_lock(stream);
        status = run_steps(b, state, in, given);
        tn__stream_unlock(stream);
        note_writes(b);
    }
    if (status == TN_OK)
        status = begin_rest(b, state, given);
    if (status == TN_OK)
        status = tn__plan_make_results(b, state, in, out);
    clear_blocks(b, state, given, status);
    if (status != TN_OK)
        for (int64_t i = 0; i < b->n_out; i++) {
            if (tn__tensor_ok(out[i]))
                tn_tensor_drop(out[i]);
            out[i] = NULL;
        }
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * Calls that run a plan of training. With gradients, a call is one node of the program's history:
 * a function (tn_function) whose backward runs the recorded one. */
#include "lib/plan/train.h"

#include "core/grad/internal.h"
#include "core/module/hooks.h"
#include "core/tensor/thread.h"

/* ---- what a plan is for ------------------------------------------------------------------------
 */

bool tn__plan_train_fits(const tn__plan_train *t, const tn_pack *input, tn_tensor *const *in,
                         int64_t n_in)
{
    uint64_t mark = tn_error_mark();
    bool same = t->n_in == n_in && t->grad == tn__grad_on();

    for (int64_t i = 0; i < n_in && same; i++) {
        const tn__plan_train_input *old = &t->inputs[i];
        const tn_view *view = &in[i]->view;

        same = view->ndim == old->meta.ndim && in[i]->dtype == old->meta.dtype &&
               in[i]->device == old->device && in[i] == in[old->same] &&
               old->requires_grad == (t->grad && tn__requires_grad(in[i]));
        for (int64_t k = 0; k < i && same && old->same == i; k++)
            same = in[k] != in[i];
        for (int32_t d = 0; d < view->ndim && same; d++)
            same = view->shape[d] == old->meta.shape[d] && view->strides[d] == old->meta.strides[d];
    }
    same = same && tn__values_match(t->form, input, "plan") == TN_OK;
    tn_error_restore(mark);
    return same;
}

/* Whether the values that code of the module has read, and modules and tensors outside of it, are
 * as they were. */
static bool others_hold(const tn__plan_train *t)
{
    const tn__plan_binding *b = t->forward;
    bool well = true;

    for (int64_t i = 0; i < b->n_reads && well; i++)
        well = tn__graph_guard_holds(&b->reads[i]);
    for (int64_t i = 0; i < b->n_slots && well; i++)
        well = tn__plan_slot_holds(&b->slots[i]);
    for (int64_t i = 0; i < t->n_others && well; i++)
        well = tn__plan_parts_hold(&t->others[i], t->others[i].modules[0].module, true);
    for (int64_t i = 0; i < b->n_modules && well; i++)
        well = b->modules[i]->training == b->training[i] &&
               (tn__hook_kinds(b->modules[i]) & TN__HOOKS_AROUND) == 0;
    return well;
}

bool tn__plan_train_holds(const tn__plan_train *t, tn_module *module)
{
    return tn__plan_parts_hold(&t->parts, module, true) && others_hold(t);
}

/* ---- states ---------------------------------------------------------------------------------- */

tn__plan_state *tn__plan_train_take(tn__plan_train *t, tn__plan_binding *b)
{
    tn_stream *stream = tn_stream_current(b->device);
    tn__plan_state *state = NULL;

    if (stream == NULL)
        return NULL;
    pthread_mutex_lock(&t->lock);
    for (tn__plan_state **at = &b->states; *at != NULL && state == NULL; at = &(*at)->next)
        if ((*at)->stream == stream) {
            state = *at;
            *at = state->next;
            break;
        }
    pthread_mutex_unlock(&t->lock);
    return state != NULL ? state : tn__plan_state_new(b, stream);
}

void tn__plan_train_give(tn__plan_train *t, tn__plan_binding *b, tn__plan_state *state)
{
    pthread_mutex_lock(&t->lock);
    state->next = b->states;
    b->states = state;
    pthread_mutex_unlock(&t->lock);
}

/* ---- one call -------------------------------------------------------------------------------- */

/* A call with gradients, until its backward. */
struct run {
    tn__plan_train *train; /* owned */
    tn_tensor *const *in;  /* only in forward */
    tn_tensor **out;       /* only in forward: the caller owns them */
    uint64_t seed, block;
    pthread_mutex_t lock;
    bool spent;           /* `saved` was given to a backward that does not retain the graph */
    tn__storage *saved[]; /* owned */
};

static void drop_saved(tn__storage **saved, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (saved[i] != NULL)
            tn__storage_drop(saved[i]);
}

static void release(void *user)
{
    struct run *run = user;

    drop_saved(run->saved, run->train->n_saved_roots);
    pthread_mutex_destroy(&run->lock);
    tn__plan_train_drop(run->train);
    tn_free(run);
}

static struct run *run_new(tn__plan_train *t, tn_tensor *const *in, tn_tensor **out)
{
    size_t size = sizeof(struct run) + (size_t)t->n_saved_roots * sizeof(tn__storage *);
    struct run *run = tn_malloc(size);

    if (run == NULL)
        return NULL;
    memset(run, 0, size);
    pthread_mutex_init(&run->lock, NULL);
    run->in = in;
    run->out = out;
    run->train = t;
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return run;
}

/* Runs the steps of forward. The caller owns out[i]. */
static tn_status run_forward(tn__plan_train *t, tn_tensor *const *in, tn_tensor **out,
                             tn__storage **saved, uint64_t *seed, uint64_t *block)
{
    tn__plan_given given = { .saved_roots = t->saved_roots,
                             .n_saved_roots = t->n_saved_roots,
                             .stays = saved };
    tn__plan_state *state;
    tn_status status = TN_OK;

    if (t->blocks > 0) /* four words are a block */
        status = tn_random_take(t->blocks * 4, 1, seed, block);
    if (status != TN_OK || (state = tn__plan_train_take(t, t->forward)) == NULL)
        return tn_error_last_code();
    given.seed = *seed;
    given.block = *block;
    status = tn__plan_run_given(t->forward, state, in, out, &given);
    tn__plan_train_give(t, t->forward, state);
    return status;
}

static bool is_fresh(const tn__plan_train *t, int64_t i)
{
    return t->forward->results[i].root >= 0;
}

static tn_status forward(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out)
{
    struct run *run = user;
    tn__plan_train *t = run->train;
    const tn__plan_train_saves *s = &t->saves;
    tn_status status = tn_function_set_materialize_grads(ctx, false);

    (void)in;
    if (status == TN_OK)
        status = run_forward(t, run->in, run->out, run->saved, &run->seed, &run->block);
    for (int64_t i = 0; i < t->n_out && status == TN_OK; i++) {
        if (!is_fresh(t, i))
            continue;
        *out++ = run->out[i];
        if (!t->wants[i])
            status = tn_function_mark_non_differentiable(ctx, run->out[i]);
    }
    for (int64_t i = 0; i < s->n_inputs && status == TN_OK; i++)
        status = tn_function_save(ctx, run->in[s->inputs[i]]);
    for (int64_t i = 0; i < s->n_outputs && status == TN_OK; i++)
        status = tn_function_save(ctx, run->out[s->outputs[i]]);
    for (int64_t i = 0; i < s->n_tensors && status == TN_OK; i++)
        status = tn_function_save(ctx, s->tensors[i]);
    return status;
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Stores in `saved` what the run has saved: new references if the graph is retained, otherwise
 * those of the run. */
static tn_status take_saved(struct run *run, tn__storage **saved)
{
    int64_t count = run->train->n_saved_roots;
    tn_status status = TN_OK;

    pthread_mutex_lock(&run->lock);
    if (run->spent)
        status = tn__node_freed("plan");
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        saved[i] = run->saved[i];
        if (tn__walk_retains)
            tn__storage_keep(saved[i]);
        else
            run->saved[i] = NULL;
    }
    run->spent |= !tn__walk_retains && count > 0;
    pthread_mutex_unlock(&run->lock);
    return status;
}

/* The gradients of the outputs. */
static void list_gradients(const tn__plan_train *t, tn_tensor *const *gout, tn_tensor **in)
{
    for (int64_t i = 0; i < t->n_out; i++)
        in[i] = is_fresh(t, i) ? *gout++ : TN_NONE;
}

/* What was saved as tensors and is used. Fails if it has changed. */
static tn_status list_saved(tn_function_ctx *ctx, const tn__plan_train *t,
                            const tn__plan_binding *b, tn_tensor **saved)
{
    for (int64_t i = 0; i < tn__plan_train_saved(&t->saves); i++) {
        saved[i] = b->needs[i] ? tn_function_saved(ctx, i) : TN_NONE;
        if (saved[i] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* Runs the steps of a backward. `in` has the gradients of the outputs, and space for what was saved
 * as tensors. */
static tn_status run_backward(tn_function_ctx *ctx, struct run *run, tn_tensor **in,
                              tn_tensor **gin, tn__storage **saved)
{
    tn__plan_train *t = run->train;
    tn__plan_binding *b = tn__plan_backward(t, in);
    tn__plan_given given = {
        .saved = saved, .spend = true, .seed = run->seed, .block = run->block
    };
    tn__plan_state *state = NULL;
    tn_status status = b != NULL ? list_saved(ctx, t, b, in + t->n_out) : tn_error_last_code();

    if (status == TN_OK && (state = tn__plan_train_take(t, b)) == NULL)
        status = tn_error_last_code();
    if (status == TN_OK)
        status = take_saved(run, saved);
    if (status == TN_OK) {
        atomic_store_explicit(&b->used, true, memory_order_relaxed);
        status = tn__plan_run_given(b, state, in, gin, &given);
        drop_saved(saved, t->n_saved_roots);
    }
    if (state != NULL)
        tn__plan_train_give(t, b, state);
    tn__plan_binding_drop(b);
    return status;
}

static tn_status backward(tn_function_ctx *ctx, void *user, tn_tensor *const *gout, tn_tensor **gin)
{
    struct run *run = user;
    tn__plan_train *t = run->train;
    int64_t n_in = t->n_out + tn__plan_train_saved(&t->saves);
    int64_t n_gin = t->n_sources + t->n_source_inputs;
    void **space;
    tn_tensor **in;
    tn_status status;

    if (tn__grad_on())
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "plan: create_graph: not supported, a plan records no gradients of "
                       "gradients; expected a module that was called eagerly");
    if (tn__tracer_here != NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "plan: backward: cannot be traced; expected the call of the module in the "
                       "trace, too, or backward outside of it");
    space = tn_calloc((size_t)(n_in + t->n_saved_roots) + 1, sizeof *space);
    if (space == NULL)
        return TN_ERR_MEMORY;
    in = (tn_tensor **)(void *)space;
    list_gradients(t, gout, in);
    status = run_backward(ctx, run, in, gin, (tn__storage **)(void *)(space + n_in));
    for (int64_t i = 0; i < n_gin; i++) {
        if (status == TN_OK && tn__tensor_ok(gin[i]) &&
            (gin[i] = tn_tensor_to_scope(gin[i])) == NULL)
            status = tn_error_last_code();
        else if (status != TN_OK && tn__tensor_ok(gin[i]))
            tn_tensor_drop(gin[i]);
    }
    tn_free(space);
    return status;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Runs forward as a function of the program. `sources` has space for the tensors whose gradients
 * backward computes and, behind them, for the new results, which the scope owns. */
static tn_status call_function(tn__plan_train *t, tn_tensor *const *in, tn_tensor **out,
                               tn_tensor **sources)
{
    static const tn_function function = {
        .name = "plan", .forward = forward, .backward = backward, .release = release
    };
    tn_tensor **fresh = sources + t->n_sources + t->n_source_inputs;
    struct run *run = run_new(t, in, out);
    tn_status status;

    if (run == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < t->n_sources; i++)
        sources[i] = t->sources[i];
    for (int64_t i = 0; i < t->n_source_inputs; i++)
        sources[t->n_sources + i] = in[t->source_inputs[i]];
    status = tn_function_call(&function, run, sources, t->n_sources + t->n_source_inputs, fresh,
                              t->n_fresh);
    for (int64_t i = 0; i < t->n_out; i++) { /* the function has references of its own */
        if (tn__tensor_ok(out[i]))
            tn_tensor_drop(out[i]);
        out[i] = NULL;
    }
    for (int64_t i = 0; i < t->n_out && status == TN_OK; i++) {
        const tn__plan_result *result = &t->forward->results[i];

        out[i] = result->root >= 0        ? *fresh++
                 : result->same >= 0      ? out[result->same]
                 : result->input >= 0     ? in[result->input]
                 : result->tensor != NULL ? result->tensor
                                          : TN_NONE;
    }
    return status;
}

static tn_status call_plain(tn__plan_train *t, tn_tensor *const *in, tn_tensor **out)
{
    uint64_t seed = 0, block = 0;
    tn_status status = run_forward(t, in, out, NULL, &seed, &block);

    for (int64_t i = 0; i < t->n_out && status == TN_OK; i++)
        if (tn__tensor_ok(out[i]) && (out[i] = tn_tensor_to_scope(out[i])) == NULL) {
            status = tn_error_last_code();
            for (int64_t k = i + 1; k < t->n_out; k++)
                if (tn__tensor_ok(out[k]))
                    tn_tensor_drop(out[k]);
        }
    return status;
}

static tn_status give(const tn__plan_train *t, tn_tensor *const *out, tn_pack *output)
{
    tn_pack *results = tn__values_with(t->output, out);
    tn_status status = results != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < tn_pack_count(results) && status == TN_OK; i++) {
        tn_value value = tn_pack_at(results, i);

        if (value.kind == TN_VALUE_NONE && tn_pack_at(t->output, i).kind == TN_VALUE_TENSOR)
            value = tn_value_tensor(TN_NONE);
        status = tn_pack_add(output, tn_pack_name(results, i), value);
    }
    tn_pack_drop(results);
    return status;
}

tn_status tn__plan_train_call(tn__plan_train *t, tn_tensor *const *in, tn_pack *output)
{
    int64_t count = 2 * t->n_out + t->n_sources + t->n_source_inputs;
    tn_tensor **space = tn_calloc((size_t)count + 1, sizeof(tn_tensor *));
    tn_status status;

    if (space == NULL)
        return TN_ERR_MEMORY;
    status = t->n_wants > 0 ? call_function(t, in, space, space + t->n_out)
                            : call_plain(t, in, space);
    if (status == TN_OK)
        status = give(t, space, output);
    tn_free(space);
    return status;
}

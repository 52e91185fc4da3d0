/* SPDX-License-Identifier: MIT
 *
 * Backward of a plan of training: the recorded history of forward is run for gradients of some
 * outputs, with their layouts, and its kernels are recorded. Other outputs with gradients, as where
 * a program uses only one of two results, have a recording of their own. */
#include "lib/plan/train.h"

#include "core/base/vector.h"
#include "core/grad/internal.h"

enum { BACKWARDS = 8 };

/* A recording of backward. */
struct walk {
    tn__plan_train *train;
    tn__plan_recorder r;
    tn_tensor **roots, **cotangents; /* outputs that have gradients; their gradients */
    tn_tensor **sources, **gradients;
    int64_t n_roots, n_sources;
    tn__map tensors, memory;
};

/* ---- what a recording is for ----------------------------------------------------------------- */

static bool fits(const tn__plan_train *t, const tn__plan_binding *b, tn_tensor *const *gradients)
{
    for (int64_t i = 0; i < t->n_out; i++) {
        const tn_tensor *like = b->like[i], *got = gradients[i];
        bool none = !tn__tensor_ok(got);

        if (none != tn__is_none(like))
            return false;
        if (none)
            continue;
        if (got->dtype != like->dtype || got->view.ndim != like->view.ndim)
            return false;
        for (int32_t d = 0; d < like->view.ndim; d++)
            if (got->view.shape[d] != like->view.shape[d] ||
                got->view.strides[d] != like->view.strides[d])
                return false;
    }
    return true;
}

/* Returns the binding for these gradients, with a reference, and makes it the first. */
static tn__plan_binding *find(tn__plan_train *t, tn_tensor *const *gradients)
{
    tn__plan_binding *found = NULL;

    pthread_mutex_lock(&t->lock);
    for (tn__plan_binding **at = &t->backwards; *at != NULL && found == NULL; at = &(*at)->next)
        if (fits(t, *at, gradients)) {
            found = *at;
            *at = found->next;
            found->next = t->backwards;
            t->backwards = found;
            atomic_fetch_add_explicit(&found->refs, 1, memory_order_relaxed);
            break;
        }
    pthread_mutex_unlock(&t->lock);
    return found;
}

static void add(tn__plan_train *t, tn__plan_binding *b)
{
    tn__plan_binding *last = NULL;
    int64_t count = 0;

    pthread_mutex_lock(&t->lock);
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    b->next = t->backwards;
    t->backwards = b;
    for (tn__plan_binding **at = &t->backwards; *at != NULL && last == NULL; at = &(*at)->next)
        if (++count > BACKWARDS) {
            last = *at;
            *at = NULL;
            break;
        }
    pthread_mutex_unlock(&t->lock);
    tn__plan_binding_drop(last);
}

/* ---- roots that exist before ----------------------------------------------------------------- */

static tn__plan_root *add_root(struct walk *w, tn__storage *storage, tn__plan_place place,
                               int64_t index)
{
    int32_t number = tn__plan_steps_root(&w->r, storage);
    tn__plan_root *root = number >= 0 ? &w->r.b->roots[number] : NULL;

    if (root != NULL) {
        root->place = place;
        root->index = (int32_t)index;
    }
    return root;
}

static tn_status add_cotangents(struct walk *w, tn_tensor *const *gradients)
{
    tn__plan_train *t = w->train;
    tn__plan_binding *b = w->r.b;

    for (int64_t i = 0; i < t->n_out; i++) {
        tn_meta meta;

        b->like[i] = TN_NONE;
        if (!tn__tensor_ok(gradients[i]))
            continue;
        tn__tensor_meta(gradients[i], &meta);
        b->like[i] = tn__trace_make_like(&meta, gradients[i]->device);
        if (b->like[i] == NULL)
            return tn_error_last_code();
        tn_tensor_keep(b->like[i]);
        w->roots[w->n_roots] = t->outs[i];
        w->cotangents[w->n_roots++] = b->like[i];
        if (add_root(w, b->like[i]->storage, TN__PLAN_INPUT, i) == NULL)
            return TN_ERR_MEMORY;
    }
    return TN_OK;
}

/* Adds the inputs and outputs of forward that a run saves as tensors. */
static tn_status add_saved(struct walk *w)
{
    const tn__plan_train *t = w->train;
    const tn__plan_train_saves *s = &t->saves;
    int64_t index = t->n_out;

    for (int64_t i = 0; i < s->n_inputs; i++)
        if (add_root(w, t->forward->like[s->inputs[i]]->storage, TN__PLAN_INPUT, index++) == NULL)
            return TN_ERR_MEMORY;
    for (int64_t i = 0; i < s->n_outputs; i++) {
        const tn_tensor *out = t->outs[s->outputs[i]];
        tn__plan_root *root = add_root(w, out->storage, TN__PLAN_INPUT, index++);

        if (root == NULL)
            return TN_ERR_MEMORY;
        root->shift = out->view.byte_offset - out->storage->offset;
    }
    return TN_OK;
}

/* Adds the roots of forward whose blocks a run saves. */
static tn_status add_blocks(struct walk *w)
{
    const tn__plan_train *t = w->train;

    for (int64_t i = 0; i < t->n_saved_roots; i++)
        if (add_root(w, t->forward->roots[t->saved_by[i]].storage, TN__PLAN_SAVED, i) == NULL)
            return TN_ERR_MEMORY;
    return TN_OK;
}

static tn_status add_tensors(struct walk *w)
{
    const tn__plan_parts *parts = &w->train->parts;
    bool well = true;

    for (int64_t i = 0; i < parts->n_modules && well; i++)
        well = tn__map_add(&w->tensors, parts->modules[i].module) >= 0;
    w->r.tensors = &w->tensors;
    w->r.memory = &w->memory;
    return well ? TN_OK : TN_ERR_MEMORY;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Puts the recorded gradients into .grad of the tensors. `before` gets the gradients that were
 * there, which take_back() puts back. */
static tn_status exchange(struct walk *w, tn_tensor **before)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < w->n_sources && status == TN_OK; i++) {
        before[i] = tn_tensor_keep(tn_tensor_grad(w->sources[i]));
        status = tn_tensor_set_grad(w->sources[i], TN_NONE);
        if (status == TN_OK && tn__tensor_ok(w->gradients[i]))
            status = tn__grad_add_to_leaf(w->sources[i], w->gradients[i]);
    }
    return status;
}

static tn_status take_back(struct walk *w, tn_tensor **before, tn_status status)
{
    for (int64_t i = 0; i < w->n_sources && before[i] != NULL; i++) {
        tn_tensor *gradient = tn_tensor_grad(w->sources[i]);

        if (tn__tensor_ok(gradient))
            gradient = tn_tensor_to_scope(tn_tensor_keep(gradient));
        if (gradient == NULL)
            status = tn_error_last_code();
        w->gradients[i] = gradient;
        (void)tn_tensor_set_grad(w->sources[i], before[i]);
        if (tn__tensor_ok(before[i]))
            tn_tensor_drop(before[i]);
    }
    return status;
}

/* Lets code of the program change the gradients, as between backward and the step of an optimizer.
 */
static tn_status run_after(struct walk *w)
{
    tn_tensor **before = tn_calloc((size_t)w->n_sources + 1, sizeof(tn_tensor *));
    tn_status status = before != NULL ? exchange(w, before) : TN_ERR_MEMORY;
    uint64_t mark = tn_error_mark();

    if (status == TN_OK)
        status = tn_error_returned(w->train->after(w->train->user), mark,
                                   "the function `gradients`");
    if (before != NULL)
        status = take_back(w, before, status);
    tn_free(before);
    return status;
}

static tn_status run_walk(tn__plan_recorder *r, void *user)
{
    struct walk *w = user;
    tn_status status = tn__grad_history(w->roots, w->cotangents, w->n_roots, w->sources,
                                        w->gradients, w->n_sources);

    (void)r;
    return status == TN_OK && w->train->after != NULL ? run_after(w) : status;
}

static tn_status see_gradient(struct walk *w, int64_t i)
{
    tn__plan_binding *b = w->r.b;
    tn__plan_result *result = &b->results[i];
    tn_tensor *gradient = w->gradients[i];
    const tn__plan_parts *parts = &w->train->parts;
    tn__plan_root *root;

    *result = (tn__plan_result){ .same = -1, .input = -1, .root = -1 };
    if (!tn__tensor_ok(gradient))
        return TN_OK;
    for (int64_t k = 0; k < i && result->same < 0; k++)
        if (w->gradients[k] == gradient)
            result->same = (int32_t)k;
    for (int64_t k = 0; k < w->train->n_out && result->input < 0; k++)
        if (b->like[k] == gradient)
            result->input = (int32_t)k;
    for (int64_t k = 0; k < parts->n_tensors && result->tensor == NULL; k++)
        if (parts->tensors[k].tensor == gradient)
            result->tensor = tn_tensor_keep(gradient);
    if (result->same >= 0 || result->input >= 0 || result->tensor != NULL)
        return TN_OK;
    result->root = tn__plan_steps_root(&w->r, gradient->storage);
    if (result->root < 0)
        return TN_ERR_MEMORY;
    tn__tensor_meta(gradient, &result->meta);
    root = &b->roots[result->root];
    if (root->place == TN__PLAN_HELD)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "a gradient is a view of a tensor that exists; expected a new tensor");
    root->first = root->first > root->last ? 0 : root->first;
    root->last = (int32_t)b->n_steps;
    return TN_OK;
}

/* Fails if a derivative uses a value of forward that the history has not saved, such as a value
 * that code of the program keeps: a run would not have it. */
static tn_status check_values(const struct walk *w)
{
    const tn__plan_binding *forward = w->train->forward;

    for (int64_t i = 0; i < forward->n_roots; i++) {
        void **number = tn__map_value(&w->r.roots, forward->roots[i].storage);
        const tn__plan_root *root = number != NULL ? &w->r.b->roots[(intptr_t)*number - 1] : NULL;

        if (root != NULL && root->place == TN__PLAN_BLOCK)
            return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "a derivative uses a value of forward that is not saved for it; "
                           "expected tn_function_save");
    }
    return TN_OK;
}

static bool uses(const struct walk *w, const tn__storage *storage)
{
    void **number = tn__map_value(&w->r.roots, storage);
    const tn__plan_root *root = number != NULL ? &w->r.b->roots[(intptr_t)*number - 1] : NULL;

    return root != NULL && root->first <= root->last;
}

/* Finds out which of the tensors that a run of forward saves are used. */
static tn_status see_saved(struct walk *w)
{
    const tn__plan_train *t = w->train;
    const tn__plan_train_saves *s = &t->saves;
    bool *needs = tn__arena_alloc(w->r.b->arena, (size_t)tn__plan_train_saved(s) + 1);

    w->r.b->needs = needs;
    if (needs == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < s->n_inputs; i++)
        *needs++ = uses(w, t->forward->like[s->inputs[i]]->storage);
    for (int64_t i = 0; i < s->n_outputs; i++)
        *needs++ = uses(w, t->outs[s->outputs[i]]->storage);
    for (int64_t i = 0; i < s->n_tensors; i++)
        *needs++ = uses(w, s->tensors[i]->storage);
    return TN_OK;
}

static tn_status record(struct walk *w, tn_tensor *const *gradients)
{
    tn__plan_train *t = w->train;
    tn__plan_binding *b = w->r.b;
    tn_status status = TN_OK;

    w->n_sources = t->n_sources + t->n_source_inputs;
    b->trains = true;
    b->device = t->forward->device;
    b->n_in = t->n_out;
    b->arena = tn__arena_new();
    b->like = tn_calloc((size_t)t->n_out + 1, sizeof(tn_tensor *));
    b->results = tn_calloc((size_t)w->n_sources + 1, sizeof *b->results);
    w->roots = tn_calloc((size_t)t->n_out + 1, sizeof(tn_tensor *));
    w->cotangents = tn_calloc((size_t)t->n_out + 1, sizeof(tn_tensor *));
    w->sources = tn_calloc((size_t)w->n_sources + 1, sizeof(tn_tensor *));
    w->gradients = tn_calloc((size_t)w->n_sources + 1, sizeof(tn_tensor *));
    w->r.backward = true;
    if (b->arena == NULL || b->like == NULL || b->results == NULL || w->roots == NULL ||
        w->cotangents == NULL || w->sources == NULL || w->gradients == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < t->n_sources; i++)
        w->sources[i] = t->sources[i];
    for (int64_t i = 0; i < t->n_source_inputs; i++)
        w->sources[t->n_sources + i] = t->forward->like[t->source_inputs[i]];
    status = add_cotangents(w, gradients);
    if (status == TN_OK)
        status = add_saved(w);
    if (status == TN_OK)
        status = add_blocks(w);
    if (status == TN_OK)
        status = add_tensors(w);
    if (status == TN_OK)
        status = tn__history_saved(t->outs, t->n_out, NULL, NULL);
    w->r.blocks = t->blocks;
    if (status == TN_OK)
        status = tn__plan_steps_run(&w->r, run_walk, w);
    b->n_out = w->n_sources;
    for (int64_t i = 0; i < w->n_sources && status == TN_OK; i++)
        status = see_gradient(w, i);
    if (status == TN_OK)
        status = see_saved(w);
    if (status == TN_OK)
        status = check_values(w);
    if (status == TN_OK)
        status = tn__plan_steps_check(&w->r);
    return status == TN_OK ? tn__plan_live(b) : status;
}

static tn__plan_binding *make(tn__plan_train *t, tn_tensor *const *gradients)
{
    struct walk w = { .train = t };
    uint64_t scope = tn_scope_begin();
    bool anomaly = tn__anomaly_here;
    tn_status status = TN_ERR_MEMORY;

    tn__anomaly_here = false; /* the gradients of the recording have no values */
    w.r.b = tn_calloc(1, sizeof *w.r.b);
    if (w.r.b != NULL) {
        atomic_store_explicit(&w.r.b->refs, 1, memory_order_relaxed);
        status = record(&w, gradients);
        if (w.r.b->device != NULL)
            atomic_fetch_add((_Atomic int32_t *)(uintptr_t)&w.r.b->device->handles, 1);
    }
    tn__anomaly_here = anomaly;
    tn__plan_steps_free(&w.r);
    tn__map_free(&w.tensors);
    tn__map_free(&w.memory);
    tn_free(w.roots);
    tn_free(w.cotangents);
    tn_free(w.sources);
    tn_free(w.gradients);
    tn_scope_end(scope);
    if (status == TN_OK)
        return w.r.b;
    tn_error_prefix(TN__PLAN_TRAIN_WHO);
    tn__plan_binding_drop(w.r.b);
    return NULL;
}

tn__plan_binding *tn__plan_backward(tn__plan_train *t, tn_tensor *const *gradients)
{
    tn__plan_binding *b = find(t, gradients);

    if (tn__likely(b != NULL))
        return b;
    pthread_mutex_lock(&t->recording); /* one thread at a time walks the history */
    b = find(t, gradients);
    if (b == NULL && (b = make(t, gradients)) != NULL)
        add(t, b);
    pthread_mutex_unlock(&t->recording);
    return b;
}

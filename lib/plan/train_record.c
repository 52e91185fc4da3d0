/* SPDX-License-Identifier: MIT
 *
 * Records a call of a module for a plan of training: forward runs on tensors without memory, with
 * the real parameters, so that its history is that of an eager call. What this history has saved,
 * a run keeps for backward. */
#include "lib/plan/train.h"

#include "core/base/vector.h"
#include "core/grad/internal.h"
#include "core/module/hooks.h"

/* A recording of a call. */
struct call {
    uint64_t mark; /* of errors */
    tn__plan_train *train;
    tn_module *module;
    tn__plan_recorder r;
    /* `tensors` and `memory` are those of tn__plan_recorder; `saved` has the storages that the
     * history has saved. */
    tn__map tensors, memory, saved;
};

/* ---- inputs ---------------------------------------------------------------------------------- */

static tn_status see_inputs(tn__plan_train *t, tn_tensor *const *in)
{
    t->inputs = tn_calloc((size_t)t->n_in + 1, sizeof *t->inputs);
    if (t->inputs == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < t->n_in; i++) {
        tn__plan_train_input *input = &t->inputs[i];

        tn__tensor_meta(in[i], &input->meta);
        input->device = in[i]->device;
        input->requires_grad = t->grad && tn__requires_grad(in[i]);
        while (in[input->same] != in[i])
            input->same++;
    }
    return TN_OK;
}

static tn_status make_inputs(struct call *c)
{
    tn__plan_train *t = c->train;
    tn__plan_binding *b = t->forward;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < t->n_in && status == TN_OK; i++) {
        const tn__plan_train_input *input = &t->inputs[i];
        int32_t root;

        b->like[i] = input->same < i ? b->like[input->same]
                                     : tn__trace_make_like(&input->meta, input->device);
        if (b->like[i] == NULL)
            return tn_error_last_code();
        tn_tensor_keep(b->like[i]);
        root = tn__plan_steps_root(&c->r, b->like[i]->storage);
        if (root < 0)
            return TN_ERR_MEMORY;
        b->roots[root].place = TN__PLAN_INPUT;
        b->roots[root].index = (int32_t)input->same;
        if (input->same == i && input->requires_grad)
            status = tn_tensor_set_requires_grad(b->like[i], true);
        if (b->device == NULL)
            b->device = input->device;
    }
    return status;
}

static tn_status list_parts(struct call *c)
{
    const tn__plan_parts *parts = &c->train->parts;
    tn__plan_binding *b = c->train->forward;
    bool well = true;

    for (int64_t i = 0; i < parts->n_modules && well; i++)
        well = tn__map_add(&c->tensors, parts->modules[i].module) >= 0;
    for (int64_t i = 0; i < parts->n_tensors && well; i++) {
        tn_tensor *tensor = parts->tensors[i].tensor;

        if (!tn__tensor_ok(tensor))
            continue;
        well = tn__map_add(&c->tensors, tensor) >= 0 &&
               tn__map_add(&c->memory, tensor->storage) >= 0;
        if (well && tensor->requires_grad) /* other threads may train it meanwhile */
            *tn__map_value(&c->memory, tensor->storage) = tensor;
        if (b->device == NULL)
            b->device = tensor->device;
    }
    if (well && b->device == NULL)
        b->device = tn_default_device();
    return well && b->device != NULL ? TN_OK : tn_error_last_code();
}

/* ---- the call -------------------------------------------------------------------------------- */

static tn_status run_module(tn__plan_recorder *r, void *user)
{
    struct call *c = user;
    tn__plan_train *t = c->train;
    tn_pack *input = tn__values_with(t->form, t->forward->like);
    tn_module *before = tn__call_bare(c->module); /* its hooks run around the plan */
    tn_status status = input != NULL ? tn_module_call_pack(c->module, input, t->output)
                                     : TN_ERR_MEMORY;

    (void)r;
    tn__call_bare(before);
    tn_pack_drop(input);
    return status;
}

/* Fails if forward has changed something that later calls would take for a change of the module by
 * the program, or something that a run of the plan cannot change. */
static tn_status check_state(const struct call *c, bool changed)
{
    const tn__plan_train *t = c->train;

    if (changed)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "forward sets a parameter or buffer, or records a change of it for "
                       "gradients; expected in-place changes of its values without gradients");
    if (!tn__plan_parts_hold(&t->parts, c->module, true))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "forward changes modules, their options or the data of their layers; "
                       "expected a module that stays as it is");
    for (int64_t i = 0; i < t->n_in; i++)
        if (t->forward->like[i]->requires_grad != t->inputs[t->inputs[i].same].requires_grad ||
            !tn_tensor_is_leaf(t->forward->like[i]))
            return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "input %lld: forward changes its history; expected tn_detach in place "
                           "of tn_detach_",
                           (long long)i);
    return TN_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

static bool is_known(const tn__plan_train *t, int64_t i, tn__plan_result *result)
{
    const tn__plan_binding *b = t->forward;

    for (int64_t k = 0; k < i && result->same < 0; k++)
        if (t->outs[k] == t->outs[i])
            result->same = (int32_t)k;
    for (int64_t k = 0; k < t->n_in && result->input < 0; k++)
        if (t->outs[i] == b->like[k])
            result->input = (int32_t)k;
    for (int64_t k = 0; k < t->parts.n_tensors && result->tensor == NULL; k++)
        if (t->outs[i] == t->parts.tensors[k].tensor)
            result->tensor = tn_tensor_keep(t->outs[i]);
    return result->same >= 0 || result->input >= 0 || result->tensor != NULL;
}

static tn_status see_result(struct call *c, int64_t i)
{
    tn__plan_train *t = c->train;
    tn__plan_binding *b = t->forward;
    tn__plan_result *result = &b->results[i];
    tn__plan_root *root;

    *result = (tn__plan_result){ .same = -1, .input = -1, .root = -1 };
    if (!tn__tensor_ok(t->outs[i]) || is_known(t, i, result))
        return TN_OK;
    result->root = tn__plan_steps_root(&c->r, t->outs[i]->storage);
    if (result->root < 0)
        return TN_ERR_MEMORY;
    result->blind = t->outs[i]->blind;
    tn__tensor_meta(t->outs[i], &result->meta);
    root = &b->roots[result->root];
    if (root->place != TN__PLAN_BLOCK && (t->grad || root->place == TN__PLAN_HELD))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "output %lld: it is a view of %s; expected a new tensor", (long long)i,
                       root->place == TN__PLAN_INPUT ? "an input" : "a tensor that exists");
    for (int64_t k = 0; k < i && t->grad; k++) /* a change of one also changes the other */
        if (b->results[k].root == result->root)
            result->blind = b->results[k].blind = true;
    if (root->place == TN__PLAN_BLOCK) {
        root->first = root->first > root->last ? 0 : root->first;
        root->last = (int32_t)b->n_steps;
    }
    t->wants[i] = t->grad && t->outs[i]->requires_grad;
    t->n_wants += t->wants[i];
    t->n_fresh++;
    return TN_OK;
}

static tn_status see_results(struct call *c)
{
    tn__plan_train *t = c->train;
    int64_t count = tn__values_count(t->output, "forward");
    tn_status status = count >= 0 ? TN_OK : tn_error_last_code();

    if (status != TN_OK)
        return status;
    t->outs = tn_calloc((size_t)count + 1, sizeof(tn_tensor *));
    t->wants = tn_calloc((size_t)count + 1, sizeof(bool));
    t->forward->results = tn_calloc((size_t)count + 1, sizeof *t->forward->results);
    if (t->outs == NULL || t->wants == NULL || t->forward->results == NULL)
        return TN_ERR_MEMORY;
    tn__values_list(t->output, t->outs);
    t->n_out = t->forward->n_out = count;
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = see_result(c, i);
    return status;
}

/* ---- what backward computes ------------------------------------------------------------------ */

static tn_status list_sources(tn__plan_train *t)
{
    t->sources = tn_calloc((size_t)t->parts.n_tensors + 1, sizeof(tn_tensor *));
    t->source_inputs = tn_calloc((size_t)t->n_in + 1, sizeof *t->source_inputs);
    if (t->sources == NULL || t->source_inputs == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < t->parts.n_tensors; i++) {
        const tn__plan_tensor *part = &t->parts.tensors[i];
        bool listed = false;

        for (int64_t k = 0; k < t->n_sources && !listed; k++)
            listed = t->sources[k] == part->tensor;
        if (part->requires_grad && part->leaf && !listed)
            t->sources[t->n_sources++] = part->tensor;
    }
    for (int64_t i = 0; i < t->n_in; i++)
        if (t->inputs[i].same == i && t->inputs[i].requires_grad)
            t->source_inputs[t->n_source_inputs++] = i;
    return TN_OK;
}

/* ---- what runs eagerly ----------------------------------------------------------------------- */

static tn_status eager(tn__plan_train *t, const char *reason)
{
    if (t->why == NULL && (t->why = tn_strdup(reason)) == NULL)
        return TN_ERR_MEMORY;
    return TN_OK;
}

/* If a part of the recording has failed, the calls run eagerly, for that reason. */
static tn_status eager_unless(struct call *c, tn_status status)
{
    const char *text = tn_error_text();

    if (status == TN_OK || status == TN_ERR_MEMORY)
        return status;
    if (strncmp(text, TN__PLAN_TRAIN_WHO, strlen(TN__PLAN_TRAIN_WHO)) == 0)
        text += strlen(TN__PLAN_TRAIN_WHO);
    status = eager(c->train, text);
    if (status == TN_OK)
        tn_error_restore(c->mark);
    return status;
}

/* Whether a device only computes shapes. */
static bool lacks_memory(const tn__plan_binding *b, const tn__plan_parts *parts)
{
    bool lacks = (b->device->flags & TN_BACKEND_NO_MEMORY) != 0;

    for (int64_t i = 0; i < parts->n_tensors && !lacks; i++)
        lacks = tn__tensor_ok(parts->tensors[i].tensor) &&
                (parts->tensors[i].tensor->device->flags & TN_BACKEND_NO_MEMORY) != 0;
    return lacks;
}

/* Records a backward for all results, with gradients of their layouts. If that fails, all calls run
 * eagerly. A later attempt would fail only after forward has changed running statistics. */
static tn_status try_backward(struct call *c)
{
    tn__plan_train *t = c->train;
    tn_tensor **gradients = tn_calloc((size_t)t->n_out + 1, sizeof(tn_tensor *));
    tn__plan_binding *b = NULL;
    tn_status status = gradients != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < t->n_out && status == TN_OK; i++) {
        tn_meta meta;

        gradients[i] = TN_NONE;
        if (!t->wants[i])
            continue;
        tn__tensor_meta(t->outs[i], &meta);
        meta.offset = 0;
        gradients[i] = tn__trace_make_like(&meta, t->outs[i]->device); /* the scope's */
        if (gradients[i] == NULL)
            status = tn_error_last_code();
    }
    if (status == TN_OK && (b = tn__plan_backward(t, gradients)) == NULL)
        status = eager_unless(c, tn_error_last_code());
    tn__plan_binding_drop(b);
    tn_free(gradients);
    return status;
}

/* ---- the recording --------------------------------------------------------------------------- */

static bool is_listed(const tn__plan_train *t, const tn_module *module)
{
    for (int64_t i = 0; i < t->n_others; i++)
        for (int64_t k = 0; k < t->others[i].n_modules; k++)
            if (t->others[i].modules[k].module == module)
                return true;
    return false;
}

/* The modules from outside that forward has called, which the binding holds, with those below. */
static tn_status list_others(tn__plan_train *t)
{
    const tn__plan_binding *b = t->forward;
    tn_status status = TN_OK;

    t->others = tn_calloc((size_t)b->n_modules + 1, sizeof *t->others);
    if (t->others == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < b->n_modules && status == TN_OK; i++)
        if (!is_listed(t, b->modules[i]))
            status = tn__plan_parts_add(&t->others[t->n_others++], b->modules[i]);
    return status;
}

static tn_status analyse(struct call *c)
{
    tn__plan_train *t = c->train;
    tn_status status = see_results(c);

    if (status == TN_OK)
        status = tn__plan_steps_check(&c->r);
    if (status == TN_OK)
        status = list_others(t);
    if (status == TN_OK && t->n_wants > 0)
        status = eager_unless(c, tn__plan_train_note_saved(t, &c->r, &c->saved));
    if (status == TN_OK)
        status = tn__plan_train_list_saved(t, &c->memory, &c->saved);
    if (status == TN_OK)
        status = list_sources(t);
    if (status == TN_OK)
        status = tn__plan_live(t->forward);
    for (int64_t i = 0; i < t->n_saved_roots && status == TN_OK; i++)
        t->saved_roots[i] = (int32_t)(tn__plan_root_of(t->forward, t->saved_by[i]) -
                                      t->forward->roots);
    t->blocks = c->r.blocks;
    return status;
}

static tn_status record_call(struct call *c)
{
    tn__plan_train *t = c->train;
    tn_status status;
    bool changed;

    c->r.tensors = &c->tensors;
    c->r.memory = &c->memory;
    status = tn__plan_steps_run(&c->r, run_module, c);
    changed = tn__plan_parts_restore(&t->parts);
    if (status == TN_OK)
        status = check_state(c, changed);
    if (status == TN_OK && c->r.uncached)
        status = eager(t, "forward begins a region of autocast within another one");
    if (status == TN_OK)
        status = analyse(c);
    return status;
}

/* What can only be found out when the scope of the call has ended. */
static tn_status check_rest(struct call *c)
{
    tn__plan_train *t = c->train;
    uint64_t scope = tn_scope_begin();
    bool escapes;
    tn_status status = tn__plan_escapes(t, &escapes);

    if (status == TN_OK && escapes)
        status = tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "forward keeps a tensor that it has made, which later calls would not set; "
            "expected a buffer that is changed in place, or tn_function_save");
    if (status == TN_OK && t->why == NULL && t->n_wants > 0)
        status = try_backward(c);
    tn_scope_end(scope);
    return status;
}

static tn_status record(struct call *c, const tn_pack *input, tn_tensor *const *in)
{
    tn__plan_train *t = c->train;
    tn__plan_binding *b = t->forward;
    uint64_t scope = tn_scope_begin();
    tn_status status = tn__plan_parts_add(&t->parts, c->module);

    b->n_in = t->n_in;
    b->trains = true;
    b->arena = tn__arena_new();
    b->like = tn_calloc((size_t)t->n_in + 1, sizeof(tn_tensor *));
    t->output = tn_pack_new();
    if (status == TN_OK && (b->arena == NULL || b->like == NULL || t->output == NULL))
        status = TN_ERR_MEMORY;
    if (status == TN_OK)
        status = see_inputs(t, in);
    if (status == TN_OK)
        status = make_inputs(c);
    if (status == TN_OK && (t->form = tn__values_with(input, b->like)) == NULL)
        status = tn_error_last_code();
    if (status == TN_OK)
        status = list_parts(c);
    if (status == TN_OK && lacks_memory(b, &t->parts))
        status = eager(t, "a device without memory has no kernels");
    if (status == TN_OK && t->why == NULL)
        status = record_call(c);
    tn_scope_end(scope);
    if (status == TN_OK && t->outs != NULL)
        status = check_rest(c);
    if (status != TN_OK || t->why != NULL)
        tn__plan_parts_restore_versions(&t->parts, &c->r);
    if (t->why != NULL) {
        tn_pack_drop(t->output);
        t->output = NULL;
    }
    return status;
}

static tn__plan_train *train_new(int64_t n_in)
{
    tn__plan_train *t = tn_calloc(1, sizeof *t);

    if (t == NULL)
        return NULL;
    t->forward = tn_calloc(1, sizeof *t->forward);
    if (t->forward == NULL) {
        tn_free(t);
        return NULL;
    }
    atomic_store_explicit(&t->refs, 1, memory_order_relaxed);
    atomic_store_explicit(&t->forward->refs, 1, memory_order_relaxed);
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->recording, NULL);
    t->n_in = n_in;
    t->grad = tn__grad_on();
    return t;
}

tn__plan_train *tn__plan_train_record(tn_module *module, const tn_pack *input, tn_tensor *const *in,
                                      int64_t n_in, tn_status (*after)(void *user), void *user)
{
    struct call c = { .module = module, .train = train_new(n_in), .mark = tn_error_mark() };
    tn_status status;

    if (c.train == NULL)
        return NULL;
    c.train->after = after;
    c.train->user = user;
    c.r.b = c.train->forward;
    status = record(&c, input, in);
    if (c.train->forward->device != NULL)
        atomic_fetch_add((_Atomic int32_t *)(uintptr_t)&c.train->forward->device->handles, 1);
    tn__plan_steps_free(&c.r);
    tn__map_free(&c.tensors);
    tn__map_free(&c.memory);
    tn__map_free(&c.saved);
    if (status == TN_OK)
        return c.train;
    tn__plan_train_drop(c.train);
    return NULL;
}

void tn__plan_train_drop(tn__plan_train *t)
{
    if (t == NULL || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
        return;
    while (t->backwards != NULL) {
        tn__plan_binding *b = t->backwards;

        t->backwards = b->next;
        tn__plan_binding_drop(b);
    }
    for (int64_t i = 0; i < t->n_others; i++)
        tn__plan_parts_free(&t->others[i]);
    for (int64_t i = 0; i < t->saves.n_tensors; i++)
        tn_tensor_drop(t->saves.tensors[i]);
    tn_pack_drop(t->output); /* the history, which refers to parameters */
    tn_pack_drop(t->form);
    tn__plan_binding_drop(t->forward);
    tn__plan_parts_free(&t->parts);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->recording);
    tn_free(t->others);
    tn_free(t->why);
    tn_free(t->inputs);
    tn_free(t->outs);
    tn_free(t->wants);
    tn_free(t->sources);
    tn_free(t->source_inputs);
    tn_free(t->saved_roots);
    tn_free(t->saved_by);
    tn_free(t->saves.inputs);
    tn_free(t->saves.outputs);
    tn_free(t->saves.tensors);
    tn_free(t);
}

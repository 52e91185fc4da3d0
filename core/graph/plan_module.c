/* SPDX-License-Identifier: MIT
 *
 * Modules whose calls run plans (tn_module_compile, "plan()"): a plan for each form and layout of
 * the inputs, as long as the module is as it was when the plan was made. */
#include "core/graph/internal.h"
#include "core/base/vector.h"
#include "core/graph/private.h"
#include "core/module/hooks.h"
#include "core/tensor/autocast.h"
#include "core/tensor/trace.h"

/* ---- what a module consists of --------------------------------------------------------------- */

/* The modules and tensors of a tree, in order. The list holds a reference to each of them except
 * the first module. That module owns the list, and would never be freed if the list held a
 * reference to it. */
typedef struct parts {
    tn_module **modules;
    tn_tensor **tensors; /* parameters and buffers; TN_NONE for an empty slot */
    bool *training;
    int64_t n_modules, modules_capacity, training_capacity, n_tensors, tensors_capacity;
} parts;

static void parts_free(parts *p)
{
    for (int64_t i = 1; i < p->n_modules; i++)
        tn_module_drop(p->modules[i]);
    for (int64_t i = 0; i < p->n_tensors; i++)
        tn_tensor_drop(p->tensors[i]);
    tn_free(p->modules);
    tn_free(p->tensors);
    tn_free(p->training);
}

static tn_status add_tensors(parts *p, const tn__slots *slots)
{
    if (!tn__vector_room(&p->tensors, &p->tensors_capacity, p->n_tensors + slots->count,
                         sizeof(tn_tensor *)))
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < slots->count; i++) {
        tn_tensor *tensor = slots->at[i].tensor;

        p->tensors[p->n_tensors++] = tn__tensor_ok(tensor) ? tn_tensor_keep(tensor) : TN_NONE;
    }
    return TN_OK;
}

static tn_status parts_add(parts *p, tn_module *module)
{
    tn_status status = TN_ERR_MEMORY;

    if (p->n_modules > 0 && (tn__hook_kinds(module) & TN__HOOKS_AROUND) != 0)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: it has hooks, which a plan does not call; expected none below the "
                       "compiled module",
                       module->type);
    if (tn__vector_room(&p->modules, &p->modules_capacity, p->n_modules + 1, sizeof(tn_module *)) &&
        tn__vector_room(&p->training, &p->training_capacity, p->n_modules + 1, sizeof(bool)))
        status = TN_OK;
    if (status != TN_OK)
        return status;
    p->training[p->n_modules] = module->training;
    p->modules[p->n_modules] = p->n_modules > 0 ? tn_module_keep(module) : module;
    p->n_modules++;
    status = add_tensors(p, &module->parameters);
    if (status == TN_OK)
        status = add_tensors(p, &module->buffers);
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++)
        if (module->children.at[i].child != NULL)
            status = parts_add(p, module->children.at[i].child);
    return status;
}

/* A place in the list while a tree is compared with it. */
struct place {
    int64_t module, tensor;
};

static bool same_tensors(const parts *p, struct place *at, const tn__slots *slots)
{
    if (at->tensor + slots->count > p->n_tensors)
        return false;
    for (int64_t i = 0; i < slots->count; i++) {
        const tn_tensor *tensor = slots->at[i].tensor;

        if (p->tensors[at->tensor++] != (tn__tensor_ok(tensor) ? tensor : TN_NONE))
            return false;
    }
    return true;
}

static bool same_parts(const parts *p, struct place *at, tn_module *module)
{
    int64_t i = at->module++;
    bool same = i < p->n_modules && p->modules[i] == module && p->training[i] == module->training &&
                (i == 0 || (tn__hook_kinds(module) & TN__HOOKS_AROUND) == 0) &&
                same_tensors(p, at, &module->parameters) && same_tensors(p, at, &module->buffers);

    for (int64_t k = 0; k < module->children.count && same; k++)
        if (module->children.at[k].child != NULL)
            same = same_parts(p, at, module->children.at[k].child);
    return same;
}

static bool parts_hold(const parts *p, tn_module *module)
{
    struct place at = { 0, 0 };

    return same_parts(p, &at, module) && at.module == p->n_modules && at.tensor == p->n_tensors;
}

static bool wants_grad(tn_module *module)
{
    for (int64_t i = 0; i < module->parameters.count; i++) {
        tn_tensor *tensor = module->parameters.at[i].tensor;

        if (tn__tensor_ok(tensor) && tn__requires_grad(tensor))
            return true;
    }
    for (int64_t i = 0; i < module->children.count; i++)
        if (module->children.at[i].child != NULL && wants_grad(module->children.at[i].child))
            return true;
    return false;
}

/* ---- plans of a module ----------------------------------------------------------------------- */

/* A plan, and the calls that it is for. */
typedef struct entry {
    _Atomic int32_t refs;
    struct entry *next;
    tn_pack *form;   /* of the inputs */
    tn_graph *graph; /* has the form of the outputs */
    tn_plan *plan;
    tn_meta *metas; /* of the inputs, and their devices */
    const tn_device **devices;
    int64_t n_in;
    parts parts;
} entry;

typedef struct planned {
    tn__compiled head;
    struct options {
        const char *passes;
        int64_t bindings;
    } options;
    tn__keep *keep;
    pthread_mutex_t lock;
    entry *entries; /* the one used last comes first */
} planned;

static const tn_option table[] = {
    TN_OPTION_STRING(struct options, passes, "''", "passes over the traced graph"),
    TN_OPTION_INT(struct options, bindings, "8", "plans that are kept, for other inputs"),
    TN_OPTION_END
};

static void entry_drop(entry *e)
{
    if (e == NULL || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
        return;
    tn_plan_drop(e->plan);
    tn_graph_drop(e->graph);
    tn_pack_drop(e->form);
    parts_free(&e->parts);
    tn_free(e->metas);
    tn_free(e->devices);
    tn_free(e);
}

static bool fits(const entry *e, const tn_pack *input, tn_tensor *const *in, int64_t n_in)
{
    uint64_t mark = tn_error_mark();
    bool same = e->n_in == n_in;

    for (int64_t i = 0; i < n_in && same; i++) {
        tn_meta meta;

        tn__tensor_meta(in[i], &meta);
        same = meta.ndim == e->metas[i].ndim && meta.dtype == e->metas[i].dtype &&
               in[i]->device == e->devices[i];
        for (int32_t d = 0; d < meta.ndim && same; d++)
            same = meta.shape[d] == e->metas[i].shape[d] &&
                   meta.strides[d] == e->metas[i].strides[d];
    }
    same = same && tn__values_match(e->form, input, "plan") == TN_OK;
    tn_error_restore(mark);
    return same;
}

/* Traces the module, and makes a plan. */
static tn_status fill(entry *e, const planned *p, tn_module *module, const tn_pack *input,
                      tn_tensor *const *in)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    const char *passes = p->options.passes[0] != '\0' ? p->options.passes : NULL;
    tn_plan_options options = { sizeof options, 1, passes };
    tn_status status = parts_add(&e->parts, module);
    tn_module *before;

    e->metas = tn_malloc((size_t)(e->n_in + 1) * sizeof *e->metas);
    e->devices = tn_malloc((size_t)(e->n_in + 1) * sizeof(const tn_device *));
    e->form = tn__values_with(input, NULL);
    if (e->metas == NULL || e->devices == NULL || e->form == NULL)
        return TN_ERR_MEMORY;
    if (status != TN_OK)
        return status;
    for (int64_t i = 0; i < e->n_in; i++) {
        tn__tensor_meta(in[i], &e->metas[i]);
        e->devices[i] = in[i]->device;
    }
    how.flags = TN_TRACE_THROUGH;
    before = tn__call_bare(module); /* its hooks run around the plan */
    e->graph = tn_module_trace_pack(module, input, &how);
    tn__call_bare(before);
    if (e->graph != NULL)
        e->plan = tn_plan_new(e->graph, &options);
    return e->plan != NULL ? TN_OK : tn_error_last_code();
}

static entry *make(const planned *p, tn_module *module, const tn_pack *input, tn_tensor *const *in,
                   int64_t n_in)
{
    entry *e = tn_calloc(1, sizeof *e);

    if (e == NULL)
        return NULL;
    atomic_store_explicit(&e->refs, 1, memory_order_relaxed);
    e->n_in = n_in;
    if (fill(e, p, module, input, in) == TN_OK)
        return e;
    tn_error_prefix("tn_module_compile: plan(): ");
    entry_drop(e);
    return NULL;
}

/* Puts an entry first. `e` is new, or was in the list. If there are too many, returns the one to
 * drop, else NULL. The caller holds the lock. */
static entry *put_first(planned *p, entry *e)
{
    int64_t count = 0;

    e->next = p->entries;
    p->entries = e;
    for (entry **at = &p->entries; *at != NULL; at = &(*at)->next)
        if (++count > p->options.bindings) {
            entry *last = *at;

            *at = last->next;
            return last;
        }
    return NULL;
}

/* Returns the entry for a call, with a reference. Removes those of an earlier state of the module,
 * which go to *old. The caller holds the lock. */
static entry *find(planned *p, tn_module *module, const tn_pack *input, tn_tensor *const *in,
                   int64_t n_in, entry **old)
{
    for (entry **at = &p->entries; *at != NULL;) {
        entry *e = *at;

        if (!parts_hold(&e->parts, module)) {
            *at = e->next;
            e->next = *old;
            *old = e;
        } else if (fits(e, input, in, n_in)) {
            *at = e->next;
            put_first(p, e);
            atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
            return e;
        } else {
            at = &e->next;
        }
    }
    return NULL;
}

static entry *take(planned *p, tn_module *module, const tn_pack *input, tn_tensor *const *in,
                   int64_t n_in)
{
    entry *old = NULL, *e, *last = NULL;

    pthread_mutex_lock(&p->lock);
    e = find(p, module, input, in, n_in, &old);
    pthread_mutex_unlock(&p->lock);
    while (old != NULL) {
        entry *next = old->next;

        entry_drop(old);
        old = next;
    }
    if (e != NULL || (e = make(p, module, input, in, n_in)) == NULL)
        return e;
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    last = put_first(p, e);
    pthread_mutex_unlock(&p->lock);
    entry_drop(last);
    return e;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Whether forward has to run, as tn_module_compile says. */
static bool is_eager(const tn_module *module)
{
    return tn__tracer_here != NULL || module->training || tn__autocast_on();
}

static bool records(tn_module *module, tn_tensor *const *in, int64_t n_in)
{
    for (int64_t i = 0; i < n_in && tn__grad_on(); i++)
        if (tn__requires_grad(in[i]))
            return true;
    return tn__grad_on() && wants_grad(module);
}

static tn_status run(const entry *e, tn_tensor *const *in, tn_pack *output)
{
    int64_t count = tn_graph_output_count(e->graph);
    tn_tensor **out = tn_malloc((size_t)(count + 1) * sizeof(tn_tensor *));
    tn_status status = out != NULL ? tn_plan_run(e->plan, in, e->n_in, out, count) : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = tn__module_give_outputs(e->graph, out, output);
    tn_free(out);
    return status;
}

static tn_status call(tn__compiled *self, tn_module *module, const tn_pack *input, tn_pack *output,
                      bool *done)
{
    planned *p = (planned *)(void *)self;
    tn_status status = TN_OK;
    tn_tensor **in;
    int64_t n_in;
    entry *e;

    if (is_eager(module))
        return TN_OK;
    n_in = tn__values_count(input, "tn_module_compile: plan()");
    in = n_in >= 0 ? tn_malloc((size_t)(n_in + 1) * sizeof(tn_tensor *)) : NULL;
    if (in == NULL)
        return tn_error_last_code();
    tn__values_list(input, in);
    *done = !records(module, in, n_in);
    if (*done) {
        e = take(p, module, input, in, n_in);
        status = e != NULL ? run(e, in, output) : tn_error_last_code();
        entry_drop(e);
    }
    tn_free(in);
    return status;
}

static void drop(tn__compiled *self)
{
    planned *p = (planned *)(void *)self;

    while (p->entries != NULL) {
        entry *e = p->entries;

        p->entries = e->next;
        entry_drop(e);
    }
    tn__options_release(p->keep);
    pthread_mutex_destroy(&p->lock);
    tn_free(p);
}

tn_status tn__plan_module_new(const tn__spec *spec, tn__compiled **out)
{
    planned *p = tn_calloc(1, sizeof *p);
    tn_status status;

    if (p == NULL)
        return TN_ERR_MEMORY;
    pthread_mutex_init(&p->lock, NULL);
    p->head.call = call;
    p->head.drop = drop;
    status = tn__options_fill(table, &p->options, "tn_module_compile: plan", spec->text,
                              spec->values, spec->names, spec->columns, spec->count, &p->keep);
    if (status == TN_OK && (p->options.bindings < 1 || p->options.bindings > INT32_MAX))
        status = tn_fail(TN_ERR_VALUE,
                         "tn_module_compile: plan: bindings: out of range, got %lld; expected 1 or "
                         "more",
                         (long long)p->options.bindings);
    if (status == TN_OK)
        *out = &p->head;
    else
        drop(&p->head);
    return status;
}

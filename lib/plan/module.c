/* SPDX-License-Identifier: MIT
 *
 * Modules whose calls run plans (tn_module_compile, "plan()"): a plan for each form and layout of
 * the inputs, as long as the module is as it was when the plan was made. With "plan(train=True)",
 * calls in training mode or with gradients run plans of training. */
#include "lib/parametrize/value_cache.h"
#include "core/base/vector.h"
#include "core/grad/internal.h"
#include "lib/plan/train.h"
#include "core/module/hooks.h"
#include "core/tensor/autocast.h"
#include "core/tensor/trace.h"

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
    tn_meta *metas; /* dtypes, shapes and strides of the inputs */
    const tn_device **devices;
    int64_t n_in;
    tn__plan_parts parts;
} entry;

typedef struct planned {
    tn__compiled head;
    struct options {
        const char *passes;
        int64_t bindings;
        bool train, device_graph;
        const char *compilers;
    } options;
    tn__option_block *option_block;
    pthread_mutex_t lock;
    entry *entries;           /* the one used last comes first */
    tn__plan_train *training; /* likewise */
} planned;

static const tn_option table[] = {
    TN_OPTION_STRING(struct options, passes, "''", "passes over the traced graph"),
    TN_OPTION_INT(struct options, bindings, "8", "plans that are kept, for other inputs"),
    TN_OPTION_BOOL(struct options, train, "False", "plans of training, too"),
    TN_OPTION_BOOL(struct options, device_graph, "False",
                   "the device records the kernels of evaluation, and launches the record"),
    TN_OPTION_STRING(struct options, compilers, "''", "compilers of regions, not in training"),
    TN_OPTION_END
};

static void entry_drop(entry *e)
{
    if (e == NULL || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
        return;
    tn_plan_drop(e->plan);
    tn_graph_drop(e->graph);
    tn_pack_drop(e->form);
    tn__plan_parts_free(&e->parts);
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

static tn_status change_graph(entry *e, const planned *p)
{
    const tn_device *device = e->n_in > 0 ? e->devices[0] : tn_default_device();
    tn_status status = TN_OK;

    if (p->options.passes[0] != '\0')
        status = tn_graph_pass(e->graph, p->options.passes);
    if (status == TN_OK && p->options.compilers[0] != '\0')
        status = tn_graph_compile(e->graph, device, p->options.compilers);
    return status;
}

/* Traces the module, and makes a plan. */
static tn_status fill(entry *e, const planned *p, tn_module *module, const tn_pack *input,
                      tn_tensor *const *in)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_plan_options options = { sizeof options, 1, NULL };
    tn_status status = tn__plan_parts_add(&e->parts, module);
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
    if (e->graph != NULL && change_graph(e, p) == TN_OK)
        e->plan = tn__plan_make(e->graph, &options, p->options.device_graph);
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
    tn_error_prefix("plan: ");
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

        if (!tn__plan_parts_hold(&e->parts, module, false)) {
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

/* ---- plans of training ----------------------------------------------------------------------- */

static tn__plan_train *find_training(planned *p, tn_module *module, const tn_pack *input,
                                     tn_tensor *const *in, int64_t n_in, tn__plan_train **old)
{
    for (tn__plan_train **at = &p->training; *at != NULL;) {
        tn__plan_train *t = *at;

        if (!tn__plan_train_holds(t, module)) {
            *at = t->next;
            t->next = *old;
            *old = t;
        } else if (tn__plan_train_fits(t, input, in, n_in)) {
            *at = t->next;
            t->next = p->training;
            p->training = t;
            atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
            return t;
        } else {
            at = &t->next;
        }
    }
    return NULL;
}

/* Puts a new plan first. If there are too many, returns the one to drop. The caller holds the lock.
 */
static tn__plan_train *put_training(planned *p, tn__plan_train *t)
{
    int64_t count = 0;

    t->next = p->training;
    p->training = t;
    for (tn__plan_train **at = &p->training; *at != NULL; at = &(*at)->next)
        if (++count > p->options.bindings) {
            tn__plan_train *last = *at;

            *at = last->next;
            return last;
        }
    return NULL;
}

static void drop_all(tn__plan_train *old)
{
    while (old != NULL) {
        tn__plan_train *next = old->next;

        tn__plan_train_drop(old);
        old = next;
    }
}

static tn__plan_train *take_training(planned *p, tn_module *module, const tn_pack *input,
                                     tn_tensor *const *in, int64_t n_in)
{
    tn__plan_train *old = NULL, *t, *new, *last = NULL;

    pthread_mutex_lock(&p->lock);
    t = find_training(p, module, input, in, n_in, &old);
    pthread_mutex_unlock(&p->lock);
    drop_all(old);
    if (t != NULL)
        return t;
    new = tn__plan_train_record(module, input, in, n_in, NULL, NULL);
    if (new == NULL) {
        tn_error_prefix(TN__PLAN_TRAIN_WHO);
        return NULL;
    }
    old = NULL;
    pthread_mutex_lock(&p->lock);
    t = find_training(p, module, input, in, n_in, &old); /* of another thread meanwhile */
    if (t == NULL) {
        t = new;
        new = NULL;
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
        last = put_training(p, t);
    }
    pthread_mutex_unlock(&p->lock);
    drop_all(old);
    tn__plan_train_drop(new);
    tn__plan_train_drop(last);
    return t;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool is_training(const tn_module *module)
{
    bool training = module->training;

    for (int64_t i = 0; i < module->children.count && !training; i++)
        training = module->children.at[i].child != NULL &&
                   is_training(module->children.at[i].child);
    return training;
}

/* Whether forward has to run, as tn_module_compile says. A function that is recomputed may run
 * again, and both runs must save the same. */
static bool is_eager(const planned *p, const tn_module *module)
{
    return tn__tracer_here != NULL || (p->options.train && tn__recompute_here != NULL) ||
           (module->training && !p->options.train) || tn__autocast_on();
}

/* Whether forward has to run although the module has plans of training. */
static bool trains_eagerly(tn_module *module)
{
    return tn__anomaly_on() || tn__value_cache_on() || tn__plan_parts_lazy(module);
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

static tn_status call_training(planned *p, tn_module *module, const tn_pack *input,
                               tn_tensor *const *in, int64_t n_in, tn_pack *output, bool *done)
{
    tn__plan_train *t = take_training(p, module, input, in, n_in);
    tn_status status = t != NULL ? TN_OK : tn_error_last_code();

    *done = t == NULL || t->why == NULL;
    if (t != NULL && *done)
        status = tn__plan_train_call(t, in, output);
    tn__plan_train_drop(t);
    return status;
}

static tn_status call_planned(planned *p, tn_module *module, const tn_pack *input,
                              tn_tensor *const *in, int64_t n_in, tn_pack *output, bool *done)
{
    bool records_here = records(module, in, n_in);
    tn_status status;
    entry *e;

    if (p->options.train && (records_here || is_training(module))) {
        *done = !trains_eagerly(module);
        return *done ? call_training(p, module, input, in, n_in, output, done) : TN_OK;
    }
    *done = !records_here;
    if (!*done)
        return TN_OK;
    e = take(p, module, input, in, n_in);
    status = e != NULL ? run(e, in, output) : tn_error_last_code();
    entry_drop(e);
    return status;
}

static bool has_none(tn_tensor *const *in, int64_t n_in)
{
    bool none = false;

    for (int64_t i = 0; i < n_in && !none; i++)
        none = !tn__tensor_ok(in[i]);
    return none;
}

static tn_status call(tn__compiled *self, tn_module *module, const tn_pack *input, tn_pack *output,
                      bool *done)
{
    planned *p = (planned *)(void *)self;
    tn_pack *own = NULL;
    tn_tensor **in;
    int64_t n_in;
    tn_status status;

    if (is_eager(p, module))
        return TN_OK;
    n_in = tn__values_count(input, "plan: input");
    in = n_in >= 0 ? tn_malloc((size_t)(n_in + 1) * sizeof(tn_tensor *)) : NULL;
    if (in == NULL)
        return tn_error_last_code();
    tn__values_list(input, in);
    if (tn__unlikely(has_none(in, n_in))) { /* an absent tensor is a value, no input */
        own = tn__values_with(input, in);
        n_in = own != NULL ? tn__values_count(own, "plan: input") : -1;
        if (n_in >= 0)
            tn__values_list(own, in);
    }
    status = n_in >= 0 ? call_planned(p, module, own != NULL ? own : input, in, n_in, output, done)
                       : tn_error_last_code();
    tn_pack_drop(own);
    tn_free(in);
    return status;
}

static void print(tn__compiled *self, bool steps, tn__text *text)
{
    const planned *p = (const planned *)(const void *)self;

    for (const tn__plan_train *t = p->training; t != NULL; t = t->next)
        tn__plan_print_training(text, t, steps);
    for (const entry *e = p->entries; e != NULL; e = e->next) {
        const tn__plan_binding *b = e->plan->bindings;

        tn__text_add(text, "plan for evaluation: %lld steps, %llu bytes for values\n",
                     (long long)(b != NULL ? b->n_steps : 0),
                     (unsigned long long)(b != NULL ? b->bytes : 0));
        if (steps && b != NULL)
            tn__plan_print_steps(text, b);
    }
}

static void drop(tn__compiled *self)
{
    planned *p = (planned *)(void *)self;

    while (p->entries != NULL) {
        entry *e = p->entries;

        p->entries = e->next;
        entry_drop(e);
    }
    while (p->training != NULL) {
        tn__plan_train *t = p->training;

        p->training = t->next;
        tn__plan_train_drop(t);
    }
    tn__options_release(p->option_block);
    pthread_mutex_destroy(&p->lock);
    tn_free(p);
}

static tn_status new_plan(const tn__spec *spec, tn__compiled **out)
{
    planned *p = tn_calloc(1, sizeof *p);
    tn_status status;

    if (p == NULL)
        return TN_ERR_MEMORY;
    pthread_mutex_init(&p->lock, NULL);
    p->head.call = call;
    p->head.print = print;
    p->head.drop = drop;
    status = tn__options_fill(table, &p->options, "tn_module_compile: plan", spec->text,
                              spec->values, spec->names, spec->columns, spec->count,
                              &p->option_block);
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

const tn__runner tn__runner_plan = { "plan", new_plan };

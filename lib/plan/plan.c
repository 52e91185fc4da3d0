/* SPDX-License-Identifier: MIT
 *
 * Plans: making them, their bindings, and runs by any number of threads. */
#include "lib/plan/plan.h"
#include "core/module/hooks.h"
#include "core/tensor/thread.h"

enum { BINDINGS = 8 };

/* ---- what a binding is for ------------------------------------------------------------------- */

static bool same_layout(const tn_view *a, const tn_view *b)
{
    if (a->ndim != b->ndim || memcmp(&a->dtype, &b->dtype, sizeof a->dtype) != 0)
        return false;
    for (int32_t d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d] || a->strides[d] != b->strides[d])
            return false;
    return true;
}

static bool fits(const tn__plan_binding *b, tn_tensor *const *in)
{
    for (int64_t i = 0; i < b->n_in; i++)
        if (in[i]->device != b->like[i]->device || !same_layout(&in[i]->view, &b->like[i]->view))
            return false;
    return true;
}

bool tn__plan_slot_holds(const tn__plan_slot *slot)
{
    const tn_tensor *tensor = slot->tensor;

    return tensor->storage == slot->storage && tensor->view.byte_offset == slot->view.byte_offset &&
           same_layout(&tensor->view, &slot->view);
}

/* Whether all is as it was when the binding was made: where slots are, and the values that prepared
 * data and the code of layers rely on. */
static bool holds(const tn__plan_binding *b)
{
    bool well = true;

    for (int64_t i = 0; i < b->n_slots && well; i++)
        well = tn__plan_slot_holds(&b->slots[i]);
    for (int64_t i = 0; i < b->n_guarded && well; i++) {
        const tn__plan_root *root = &b->roots[b->guarded[i]];

        well = atomic_load_explicit(&root->storage->version, memory_order_acquire) == root->version;
    }
    for (int64_t i = 0; i < b->n_reads && well; i++)
        well = tn__graph_guard_holds(&b->reads[i]);
    for (int64_t i = 0; i < b->n_modules && well; i++)
        well = b->modules[i]->training == b->training[i] &&
               (tn__hook_kinds(b->modules[i]) & TN__HOOKS_AROUND) == 0;
    return well;
}

/* ---- bindings -------------------------------------------------------------------------------- */

/* Returns the binding for these inputs with a reference, NULL if there is none; makes it the first.
 * The caller holds the lock. */
static tn__plan_binding *find(tn_plan *plan, tn_tensor *const *in)
{
    for (tn__plan_binding **at = &plan->bindings; *at != NULL; at = &(*at)->next) {
        tn__plan_binding *b = *at;

        if (!fits(b, in))
            continue;
        *at = b->next;
        b->next = plan->bindings;
        plan->bindings = b;
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
        return b;
    }
    return NULL;
}

/* Removes a binding from the list, if it is there. The caller holds the lock. Returns whether the
 * reference of the list is now the caller's. */
static bool unlink_binding(tn_plan *plan, const tn__plan_binding *binding)
{
    for (tn__plan_binding **at = &plan->bindings; *at != NULL; at = &(*at)->next)
        if (*at == binding) {
            *at = binding->next;
            return true;
        }
    return false;
}

static void forget(tn_plan *plan, tn__plan_binding *binding)
{
    bool listed;

    pthread_mutex_lock(&plan->lock);
    listed = unlink_binding(plan, binding);
    pthread_mutex_unlock(&plan->lock);
    if (listed)
        tn__plan_binding_drop(binding);
    tn__plan_binding_drop(binding);
}

/* Puts a new binding first. If there are too many, returns the one to drop, else NULL. */
static tn__plan_binding *add(tn_plan *plan, tn__plan_binding *binding)
{
    tn__plan_binding *last = NULL;
    uint32_t count = 0;

    pthread_mutex_lock(&plan->lock);
    atomic_fetch_add_explicit(&binding->refs, 1, memory_order_relaxed);
    binding->next = plan->bindings;
    plan->bindings = binding;
    for (tn__plan_binding *b = plan->bindings; b != NULL && last == NULL; b = b->next)
        if (++count > plan->most)
            last = b;
    if (last != NULL)
        unlink_binding(plan, last);
    pthread_mutex_unlock(&plan->lock);
    return last;
}

/* Returns a binding for these inputs, with a reference. */
static tn__plan_binding *bind(tn_plan *plan, tn_tensor *const *in)
{
    tn__plan_binding *binding;

    pthread_mutex_lock(&plan->lock);
    binding = find(plan, in);
    pthread_mutex_unlock(&plan->lock);
    if (binding != NULL && tn__likely(holds(binding)))
        return binding;
    if (binding != NULL)
        forget(plan, binding);
    binding = tn__plan_record(plan->graph, in);
    if (binding != NULL)
        tn__plan_binding_drop(add(plan, binding));
    return binding;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Replaces calls of modules by what they call. */
static tn_status prepare_graph(tn_graph *graph, const char *passes)
{
    bool calls = false;
    tn_status status = passes != NULL ? tn_graph_pass(graph, passes) : tn_graph_lint(graph);

    for (const tn_node *node = graph->steps; node != NULL; node = node->next)
        calls |= node->kind == TN_NODE_CALL;
    return status == TN_OK && calls ? tn_graph_inline(graph) : status;
}

/* Makes the binding for the declared inputs. */
static tn_status bind_declared(tn_plan *plan)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor **in = tn_calloc((size_t)plan->graph->n_inputs + 1, sizeof(tn_tensor *));
    tn_status status = in != NULL ? tn__trace_make_inputs(plan->graph, NULL, NULL, in)
                                  : TN_ERR_MEMORY;
    tn__plan_binding *binding = status == TN_OK ? bind(plan, in) : NULL;

    if (status == TN_OK && binding == NULL)
        status = tn_error_last_code();
    tn__plan_binding_drop(binding);
    tn_free(in);
    tn_scope_end(scope);
    return status;
}

static tn_status check_new(const tn_graph *graph, const tn_plan_options *options)
{
    if (!tn__not_null(graph, "tn_plan_new: graph"))
        return tn_error_last_code();
    if (options != NULL && options->size < sizeof *options)
        return tn_fail(TN_ERR_VALUE,
                       "tn_plan_new: options.size: too small, got %u; initialize the struct with "
                       "TN_PLAN_OPTIONS",
                       options->size);
    if (graph->output == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_plan_new: no outputs; call tn_graph_output first");
    if (tn__tracer_here != NULL)
        return tn_fail(TN_ERR_RUNTIME,
                       "tn_plan_new: not allowed while this thread traces a module; expected a "
                       "call after the trace");
    return TN_OK;
}

tn_plan *tn__plan_make(const tn_graph *graph, const tn_plan_options *options, bool records)
{
    tn_plan *plan = tn_calloc(1, sizeof *plan);
    tn_status status;

    if (plan == NULL)
        return NULL;
    pthread_mutex_init(&plan->lock, NULL);
    plan->records = records;
    plan->most = options != NULL && options->bindings > 0 ? options->bindings : BINDINGS;
    plan->graph = tn_graph_copy(graph);
    status = plan->graph != NULL
                 ? prepare_graph(plan->graph, options != NULL ? options->passes : NULL)
                 : tn_error_last_code();
    if (status == TN_OK)
        status = bind_declared(plan);
    if (status == TN_OK)
        return plan;
    tn_plan_drop(plan);
    return NULL;
}

tn_plan *tn_plan_new(const tn_graph *graph, const tn_plan_options *options)
{
    tn_plan *plan;

    if (check_new(graph, options) != TN_OK)
        return NULL;
    plan = tn__plan_make(graph, options, false);
    if (plan == NULL)
        tn_error_prefix("tn_plan_new: ");
    return plan;
}

void tn_plan_drop(tn_plan *plan)
{
    if (plan == NULL)
        return;
    while (plan->bindings != NULL) {
        tn__plan_binding *b = plan->bindings;

        plan->bindings = b->next;
        tn__plan_binding_drop(b);
    }
    tn_graph_drop(plan->graph);
    pthread_mutex_destroy(&plan->lock);
    tn_free(plan);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static tn_status wrong_count(const char *what, int64_t got, int64_t expected)
{
    return tn_fail(TN_ERR_VALUE, "tn_plan_run: %s: wrong count, got %lld; the graph has %lld", what,
                   (long long)got, (long long)expected);
}

/* Fails if a gradient would be recorded. */
static tn_status check_grad(const tn_graph *graph, tn_tensor *const *in)
{
    const tn_node *wanted = NULL;
    int64_t i = 0;

    for (const tn_node *node = graph->first; node != NULL && tn__graph_is_leaf(node);
         node = node->next) {
        tn_tensor *tensor = node->kind == TN_NODE_INPUT ? in[i++] : node->held.tensor;

        if (tensor != NULL && tn__requires_grad(tensor))
            wanted = node;
    }
    if (wanted == NULL)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "tn_plan_run: %s %s requires grad, and a plan records no gradient; "
                   "run it in inference mode, or between tn_grad_begin(false) and tn_grad_end()",
                   wanted->kind == TN_NODE_INPUT ? "input" : "node", wanted->name);
}

static tn_status check_run(const tn_plan *plan, tn_tensor *const *in, int64_t n_in, int64_t n_out)
{
    const tn_graph *graph;

    if (!tn__given(plan != NULL, "tn_plan_run: plan") ||
        !tn__given(in != NULL || n_in <= 0, "tn_plan_run: in"))
        return TN_ERR_VALUE;
    graph = plan->graph;
    if (n_in != graph->n_inputs)
        return wrong_count("in", n_in, graph->n_inputs);
    if (n_out != graph->output->n_in)
        return wrong_count("out", n_out, graph->output->n_in);
    for (int64_t i = 0; i < n_in; i++) {
        if (tn__unlikely(!tn__tensor_ok(in[i])))
            return tn__tensor_bad_at(in[i], "tn_plan_run: in", i);
        if (tn__unlikely(in[i]->storage->flags & TN__STORAGE_TRACED) &&
            tn__trace_need(in[i], "tn_plan_run") != TN_OK)
            return tn_error_last_code();
    }
    if (tn__unlikely(tn__tracer_here != NULL))
        return tn__tracer_here->refuse(tn__tracer_here, NULL, "tn_plan_run");
    if (tn__unlikely(tn__grad_on()) && check_grad(graph, in) != TN_OK)
        return tn_error_last_code();
    return tn__run_check_guards(graph);
}

/* Takes a state that was used on this stream last, or makes one. */
static tn__plan_state *take_state(tn_plan *plan, tn__plan_binding *b, tn_stream *stream)
{
    tn__plan_state *state = NULL;

    pthread_mutex_lock(&plan->lock);
    for (tn__plan_state **at = &b->states; *at != NULL && state == NULL; at = &(*at)->next)
        if ((plan->records ? (*at)->launched : (*at)->stream) == stream) {
            state = *at;
            *at = state->next;
            break;
        }
    pthread_mutex_unlock(&plan->lock);
    if (state != NULL)
        return state;
    return plan->records ? tn__plan_state_recorded(b, stream) : tn__plan_state_new(b, stream);
}

static tn_status run_bound(tn_plan *plan, tn__plan_binding *b, tn_tensor *const *in,
                           tn_tensor **out)
{
    tn_stream *stream = tn_stream_current(b->device);
    tn__plan_state *state = stream != NULL ? take_state(plan, b, stream) : NULL;
    tn_status status;

    if (state == NULL)
        return tn_error_last_code();
    status = plan->records ? tn__plan_launch(b, state, in, out)
                           : tn__plan_run(b, state, in, out, NULL);
    pthread_mutex_lock(&plan->lock);
    state->next = b->states;
    b->states = state;
    pthread_mutex_unlock(&plan->lock);
    return status;
}

tn_status tn_plan_run(tn_plan *plan, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                      int64_t n_out)
{
    tn__plan_binding *binding;
    tn_status status;

    if (!tn__given(out != NULL || n_out <= 0, "tn_plan_run: out"))
        return TN_ERR_VALUE;
    for (int64_t i = 0; i < n_out; i++)
        out[i] = NULL;
    status = check_run(plan, in, n_in, n_out);
    if (status != TN_OK)
        return status;
    binding = bind(plan, in);
    if (binding == NULL)
        return tn_error_prefix("tn_plan_run: ");
    status = run_bound(plan, binding, in, out);
    tn__plan_binding_drop(binding);
    for (int64_t i = 0; i < n_out && status == TN_OK; i++) {
        out[i] = tn_tensor_to_scope(out[i]);
        if (tn__likely(out[i] != NULL))
            continue;
        status = tn_error_last_code();
        while (++i < n_out)
            tn_tensor_drop(out[i]);
    }
    for (int64_t i = 0; i < n_out && status != TN_OK; i++)
        out[i] = NULL;
    return status;
}

/* ---- what a plan is -------------------------------------------------------------------------- */

/* Returns the binding used last, with a reference. */
static tn__plan_binding *used_last(tn_plan *plan)
{
    tn__plan_binding *b;

    pthread_mutex_lock(&plan->lock);
    b = plan->bindings;
    if (b != NULL)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&plan->lock);
    if (b == NULL)
        tn_fail(TN_ERR_VALUE,
                "tn_plan: no plan for any inputs, because the last one could not be made again; "
                "call tn_plan_run");
    return b;
}

static bool is_value(const tn__plan_binding *b, int64_t i)
{
    const tn__plan_root *root = &b->roots[i];

    return root->same == i && root->place == TN__PLAN_SLAB && root->first <= root->last;
}

void tn__plan_stats_of(const tn__plan_binding *b, tn_plan_stats *out)
{
    *out = (tn_plan_stats){ .steps = b->n_steps,
                            .bytes = (int64_t)b->bytes,
                            .bytes_least = (int64_t)b->bytes_least,
                            .bytes_apart = (int64_t)b->bytes_apart,
                            .bytes_prepared = (int64_t)b->bytes_prepared };
    for (int64_t i = 0; i < b->n_roots; i++)
        out->values += is_value(b, i);
}

tn_status tn_plan_describe(tn_plan *plan, tn_plan_stats *out)
{
    tn__plan_binding *b;

    if (!tn__given(plan != NULL, "tn_plan_describe: plan") ||
        !tn__given(out != NULL, "tn_plan_describe: out"))
        return TN_ERR_VALUE;
    b = used_last(plan);
    if (b == NULL)
        return tn_error_last_code();
    tn__plan_stats_of(b, out);
    pthread_mutex_lock(&plan->lock);
    for (const tn__plan_binding *each = plan->bindings; each != NULL; each = each->next)
        out->bindings++;
    pthread_mutex_unlock(&plan->lock);
    tn__plan_binding_drop(b);
    return TN_OK;
}

tn_status tn_plan_value_at(tn_plan *plan, int64_t index, tn_plan_value *out)
{
    tn__plan_binding *b;
    int64_t found = -1, at = -1;

    if (!tn__given(plan != NULL, "tn_plan_value_at: plan") ||
        !tn__given(out != NULL, "tn_plan_value_at: out"))
        return TN_ERR_VALUE;
    b = used_last(plan);
    if (b == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < b->n_roots && found < index && index >= 0; i++)
        if (is_value(b, i)) {
            found++;
            at = i;
        }
    if (index >= 0 && found == index)
        *out = (tn_plan_value){ .node = b->steps[b->roots[at].first].name,
                                .first = b->roots[at].first,
                                .last = b->roots[at].last,
                                .offset = (int64_t)b->roots[at].offset,
                                .bytes = (int64_t)b->roots[at].size };
    tn__plan_binding_drop(b);
    return index >= 0 && found == index
               ? TN_OK
               : tn__error_index(index, found, "tn_plan_value_at: index: ");
}

int64_t tn_plan_print(tn_plan *plan, char *out, size_t size)
{
    tn__text text = { 0 };
    tn__plan_binding *b;

    if (!tn__given(plan != NULL, "tn_plan_print: plan") || (b = used_last(plan)) == NULL)
        return -1;
    tn__plan_print_steps(&text, b);
    tn__plan_binding_drop(b);
    return tn__text_give(&text, out, size);
}

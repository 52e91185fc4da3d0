/* SPDX-License-Identifier: MIT
 *
 * GraphModule: a module whose forward runs a graph, or one for each mode. Slots, constants and
 * modules of the graph are found in the module by their paths, so that copies, loads and
 * conversions need no special care.
 */
#include "lib/graph/private.h"
#include "core/module/mode_seen.h"

#include <stdlib.h>

/* ---- forward --------------------------------------------------------------------------------- */

/* Returns whether the modules below have the mode of the root. */
static bool is_uniform(const tn_module *module, bool training)
{
    bool same = tn__mode_is_training(module) == training;

    for (int64_t i = 0; i < module->children.count && same; i++)
        if (module->children.at[i].child != NULL)
            same = is_uniform(module->children.at[i].child, training);
    return same;
}

/* Returns whether the modules whose mode counts for a graph have that mode. */
static bool has_modes(const tn_graph *graph, const tn_module *self)
{
    bool has = graph->training < 0 || graph->n_asked > 0 ||
               graph->training == tn__mode_is_training(self);

    for (int64_t i = 0; i < graph->n_asked && has; i++) {
        uint64_t mark = tn_error_mark();
        const tn_module *module = tn_module_find((tn_module *)(uintptr_t)self,
                                                 graph->asked[i].path);

        /* A part that the script does not have any more counts as the root. */
        has = tn__mode_is_training(module != NULL ? module : self) == graph->asked[i].training;
        tn_error_restore(mark);
    }
    return has;
}

/* Returns the graph of a script for the modes of its parts, which are not all the same. */
static tn_graph *graph_of_modes(const tn__modes *modes, const tn_module *self)
{
    const tn_graph *some = NULL;
    tn__text text = { 0 };

    for (int i = 2; i >= 0; i--) {
        if (modes->graphs[i] != NULL && has_modes(modes->graphs[i], self))
            return modes->graphs[i];
        some = some == NULL ? modes->graphs[i] : some;
    }
    for (int64_t i = 0; i < some->n_asked; i++) {
        uint64_t mark = tn_error_mark();
        const tn_module *module = tn_module_find((tn_module *)(uintptr_t)self, some->asked[i].path);

        if (module != NULL)
            tn__text_add(&text, "%s%q: %s", text.length > 0 ? ", " : "", some->asked[i].path,
                         tn__mode_is_training(module) ? "training" : "evaluation");
        tn_error_restore(mark);
    }
    tn__text_put(&text, "", 1);
    tn_fail(TN_ERR_RUNTIME,
            "%s: no graph for the modes of its parts, got %s; expected all parts in one mode, or "
            "the modes that they had when the script was made",
            self->type, text.failed ? "others" : text.at);
    tn__text_free(&text);
    return NULL;
}

/* Returns the graph for the mode of the module. */
static tn_graph *graph_now(const tn_module *self)
{
    const tn__modes *modes = tn_module_user(self);
    bool training = tn__mode_is_training(self);
    tn_graph *graph = modes->graphs[training];

    if (modes->files != NULL && !is_uniform(self, training))
        return graph_of_modes(modes, self);
    if (tn__unlikely(graph == NULL))
        tn_fail(TN_ERR_RUNTIME,
                "%s: the graph was traced in %s mode, and the module is in %s mode; trace the "
                "original module in this mode",
                self->type, training ? "evaluation" : "training",
                training ? "training" : "evaluation");
    return graph;
}

/* Puts the signature before the message of a failure, and returns its status. */
static tn_status add_signature(const tn_graph *graph, const char *more)
{
    tn__text text = { 0 };
    tn_status status;

    tn__text_signature(&text, graph);
    tn__text_put(&text, "", 1);
    status = tn_error_prefix("%s: %s", text.failed ? "forward" : text.at, more);
    tn__text_free(&text);
    return status;
}

/* Says after a failure of the graph which input has another dtype than the trace had. */
static tn_status explain(const tn_graph *graph, tn_tensor *const *in, tn_status status)
{
    int64_t at = 0;
    char what[3 * TN__NAME_LONGEST];

    for (const tn_node *node = graph->first; node != NULL && tn__graph_is_leaf(node);
         node = node->next) {
        if (node->kind != TN_NODE_INPUT)
            continue;
        if (tn__tensor_ok(in[at]) && in[at]->dtype != node->meta->dtype) {
            tn_snprint(what, sizeof what, "input %s is %s: ", node->name,
                       tn_dtype_name(in[at]->dtype));
            return add_signature(graph, what);
        }
        at++;
    }
    return status;
}

static tn_status run(tn_module *self, tn_graph *graph, tn_tensor *const *in, tn_tensor **out)
{
    tn_status status = tn__run_graph(graph, self, NULL, NULL, in, out);

    return tn__likely(status == TN_OK) ? status : explain(graph, in, status);
}

static tn_tensor *forward_one(tn_module *self, tn_tensor *input)
{
    tn_graph *graph = graph_now(self);
    tn_tensor *out = NULL;

    return graph != NULL && run(self, graph, &input, &out) == TN_OK ? out : NULL;
}

/* Checks the arguments, and takes their tensors. */
static tn_status take_inputs(const char *type, const tn_graph *graph, const tn_pack *input,
                             tn_tensor **in)
{
    int64_t count = tn__values_count(input, type);

    if (count < 0)
        return tn_error_last_code();
    if (graph->in != NULL) {
        tn_status status = tn__values_match(graph->in, input, type);

        if (status != TN_OK)
            return add_signature(graph, "");
    } else if (count != graph->n_inputs || tn_pack_positional(input) != count ||
               tn_pack_count(input) != count) {
        int64_t positional = tn_pack_positional(input);

        tn_fail(TN_ERR_TYPE,
                "%s: wrong arguments, got %lld positional and %lld named, with %lld tensors in "
                "them; expected %lld tensors by position",
                type, (long long)positional, (long long)(tn_pack_count(input) - positional),
                (long long)count, (long long)graph->n_inputs);
        return add_signature(graph, "");
    }
    tn__values_list(input, in);
    return TN_OK;
}

tn_status tn__module_give_outputs(const tn_graph *graph, tn_tensor *const *out, tn_pack *output)
{
    tn_pack *results;
    tn_status status = TN_OK;

    if (graph->out == NULL) {
        for (int64_t i = 0; i < graph->output->n_in && status == TN_OK; i++)
            status = tn_pack_add(output, NULL, tn_value_tensor(out[i]));
        return status;
    }
    results = tn__values_with(graph->out, out);
    if (results == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < tn_pack_count(results) && status == TN_OK; i++)
        status = tn_pack_add(output, tn_pack_name(results, i), tn_pack_at(results, i));
    tn_pack_drop(results);
    return status;
}

static tn_status call_packs(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_graph *graph = graph_now(self);
    int64_t count = graph != NULL ? graph->n_inputs + graph->output->n_in : 0;
    tn_tensor **space;
    tn_status status;

    if (graph == NULL)
        return tn_error_last_code();
    space = tn_calloc((size_t)count + 1, sizeof(tn_tensor *));
    status = space != NULL ? take_inputs(self->type, graph, input, space) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = run(self, graph, space, space + graph->n_inputs);
    if (status == TN_OK)
        status = tn__module_give_outputs(graph, space + graph->n_inputs, output);
    tn_free(space);
    return status;
}

/* ---- building -------------------------------------------------------------------------------- */

/* Returns the module that is to hold the last part of a path; makes the modules on the way. *name
 * becomes the last part. Borrowed. */
static tn_module *holder_of(tn_module *root, const char *path, const char **name)
{
    const char *dot;
    tn_module *module = root;

    for (; module != NULL && (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        char *part = tn_malloc((size_t)(dot - path) + 1);
        tn__slot *slot;
        tn_module *child = NULL;

        if (part == NULL)
            return NULL;
        memcpy(part, path, (size_t)(dot - path));
        part[dot - path] = '\0';
        slot = tn__slots_find(&module->children, part);
        if (slot != NULL)
            child = slot->child;
        if (child == NULL) {
            tn_module *made = tn_module_plain("Module");

            if (made != NULL && tn_module_add_child(module, part, made) == TN_OK)
                child = made; /* the slot holds it from now on */
            if (made != NULL) {
                made->training = root->training;
                tn_module_drop(made);
            }
        }
        tn_free(part);
        module = child;
    }
    *name = path;
    return module;
}

static tn_status add_tensor(tn_module *root, const tn_node *node)
{
    char path[16 + 3 * TN__NAME_LONGEST];
    const char *name, *target = tn__graph_target(node);
    tn_tensor *tensor = node->held.tensor;
    uint64_t mark = tn_error_mark();
    tn_module *holder;

    if (node->kind == TN_NODE_CONSTANT) {
        tn_snprint(path, sizeof path, "_constants.%s", target);
        target = path;
    }
    if (tn_module_find_tensor(root, target) != NULL) /* in a module that a node calls */
        return TN_OK;
    tn_error_restore(mark);
    holder = holder_of(root, target, &name);
    if (holder == NULL)
        return tn_error_last_code();
    if (node->kind == TN_NODE_SLOT && tensor->parameter &&
        (node->slot == 0 || (node->slot & TN_SLOT_PARAMETER) != 0))
        return tn_module_add_parameter(holder, name, tensor);
    return tn_module_add_buffer(holder, name, tensor,
                                node->slot >> 16 & TN_SLOT_FLAG_NOT_PERSISTENT);
}

static int by_length(const void *a, const void *b)
{
    size_t x = strlen(tn__graph_target(*(const tn_node *const *)a));
    size_t y = strlen(tn__graph_target(*(const tn_node *const *)b));

    return x < y ? -1 : x > y;
}

/* Adds the modules that nodes call, outer modules first. */
static tn_status add_modules(tn_module *root, const tn_graph *graph)
{
    const tn_node **calls = tn_malloc(((size_t)graph->next_id + 1) * sizeof(tn_node *));
    tn_status status = calls != NULL ? TN_OK : TN_ERR_MEMORY;
    size_t count = 0;

    for (const tn_node *node = graph->steps; node != NULL && status == TN_OK; node = node->next)
        if (node->kind == TN_NODE_CALL)
            calls[count++] = node;
    if (count > 0)
        qsort(calls, count, sizeof *calls, by_length);
    for (size_t i = 0; i < count && status == TN_OK; i++) {
        uint64_t mark = tn_error_mark();
        const char *name;
        tn_module *holder;

        if (tn_module_find(root, calls[i]->target) != NULL)
            continue;
        tn_error_restore(mark);
        holder = holder_of(root, calls[i]->target, &name);
        status = holder != NULL ? tn_module_add_child(holder, name, calls[i]->callee->module)
                                : tn_error_last_code();
    }
    tn_free(calls);
    return status;
}

static void release(void *user)
{
    tn__modes *modes = user;

    for (int i = 0; i < 3; i++)
        tn_graph_drop(modes->graphs[i]);
    for (tn__retyped *at = modes->retyped, *next; at != NULL; at = next) {
        next = at->next;
        for (int i = 0; i < 3; i++)
            tn_graph_drop(at->graphs[i]);
        tn_free(at);
    }
    tn_state_drop(modes->files);
    pthread_mutex_destroy(&modes->lock);
    tn_free(modes);
}

/* Returns whether a graph computes one tensor from one tensor; true also for NULL, no graph. */
static bool is_one(const tn_graph *graph)
{
    return graph == NULL || (graph->in == NULL && graph->out == NULL && graph->n_inputs == 1 &&
                             graph->output->n_in == 1);
}

tn__modes *tn__module_run_by(tn_module *module, tn_graph *const graphs[3], bool with_signature)
{
    tn__modes *modes = tn_calloc(1, sizeof *modes);
    tn_status status = modes != NULL ? TN_OK : TN_ERR_MEMORY;

    if (modes != NULL)
        pthread_mutex_init(&modes->lock, NULL);
    for (int i = 0; i < 3 && modes != NULL; i++)
        if (graphs[i] != NULL)
            modes->graphs[i] = tn_graph_keep(graphs[i]);
    if (status == TN_OK)
        status = !with_signature && is_one(graphs[0]) && is_one(graphs[1])
                     ? tn_module_set_forward(module, forward_one, modes, release)
                     : tn_module_set_call(module, call_packs, modes, release);
    if (status == TN_OK)
        return modes;
    if (modes != NULL)
        release(modes);
    return NULL;
}

tn__modes *tn__module_modes(const tn_module *module)
{
    const tn__own_forward *own = module->own_forward;

    return own != NULL && (own->forward == forward_one || own->call == call_packs) ? own->user
                                                                                   : NULL;
}

static tn_status fill(tn_module *module, tn_graph *graph)
{
    tn_graph *const graphs[] = { graph->training <= 0 ? graph : NULL,
                                 graph->training != 0 ? graph : NULL, NULL };
    tn_status status;

    module->training = graph->training >= 0 ? graph->training != 0 : !graph->evaluates;
    status = add_modules(module, graph);
    for (const tn_node *node = graph->first;
         node != NULL && tn__graph_is_leaf(node) && status == TN_OK; node = node->next)
        if (node->kind != TN_NODE_INPUT)
            status = add_tensor(module, node);
    if (status != TN_OK)
        return status;
    return tn__module_run_by(module, graphs, false) != NULL ? TN_OK : tn_error_last_code();
}

tn_module *tn_graph_module(tn_graph *graph)
{
    tn_module *module = NULL;
    tn_graph *copy;
    tn_status status;

    if (!tn__not_null(graph, "tn_graph_module: graph") || tn_graph_lint(graph) != TN_OK)
        return NULL;
    copy = tn_graph_copy(graph);
    module = copy != NULL ? tn_module_plain("GraphModule") : NULL;
    status = module != NULL ? fill(module, copy) : tn_error_last_code();
    tn_graph_drop(copy);
    if (status == TN_OK)
        return module;
    tn_module_drop(module);
    return NULL;
}

const tn_graph *tn_module_graph(tn_module *module)
{
    const tn__modes *modes;

    if (!tn__not_null(module, "tn_module_graph: module"))
        return NULL;
    modes = tn__module_modes(module);
    if (modes != NULL)
        return modes->graphs[module->training] != NULL ? modes->graphs[module->training]
                                                       : modes->graphs[!module->training];
    tn_fail(TN_ERR_TYPE, "tn_module_graph: module: wrong type, got %s; expected a GraphModule",
            module->type);
    return NULL;
}

static tn_status add_constant(tn_state *state, const char *name, tn_tensor *tensor)
{
    if (tn_state_find(state, name) >= 0 && tn_state_get(state, name) != tensor)
        return tn_fail(TN_ERR_VALUE,
                       "tn_graph_constants: two constants have the name %q; expected a name of its "
                       "own for each tensor",
                       name);
    return tn_state_set(state, name, tensor);
}

tn_state *tn_graph_constants(const tn_graph *graph)
{
    tn_state *state;
    tn_status status = TN_OK;

    if (!tn__not_null(graph, "tn_graph_constants: graph") || (state = tn_state_new()) == NULL)
        return NULL;
    for (const tn_node *node = graph->first;
         node != NULL && tn__graph_is_leaf(node) && status == TN_OK; node = node->next)
        if (node->kind == TN_NODE_CONSTANT)
            status = add_constant(state, tn__graph_target(node), node->held.tensor);
    if (status == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}

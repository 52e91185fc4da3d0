/* SPDX-License-Identifier: MIT
 *
 * Scripts: modules that need no layers. A script has the parameters, buffers and children of the
 * module that it was made of, under the same paths, and its forward runs a graph for its mode. Its
 * slots are frozen: their tensors change, their names do not. */
#include "lib/graph/private.h"
#include "core/module/hooks.h"
#include "core/module/mode_seen.h"

#include <tenon/parametrize.h>

#define TYPE "RecursiveScriptModule"
#define EXTRA "original_name="
#define HOLDER "_constants" /* run.c looks there for the constants of a graph */

/* ---- the tree -------------------------------------------------------------------------------- */

/* Returns the type of a module; for a part of a script, the type of the module that it was made
 * of. */
static const char *original_name(const tn_module *module)
{
    return module->frozen != 0 ? module->tree_extra + sizeof EXTRA - 1 : module->type;
}

static tn_status check_module(tn_module *module, const char *path)
{
    if (tn_is_parametrized(module, NULL)) /* PyTorch's wording */
        return tn_fail(TN_ERR_RUNTIME,
                       "Parametrization is not working with scripting.: module %q (%s) is "
                       "parametrized; make its tensors plain with tn_parametrize_remove",
                       path, module->type);
    if (module->computed.count > 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "script: module %q (%s): computed tensor %q; expected plain tensors: for "
                       "pruning, call tn_prune_remove first",
                       path, module->type, module->computed.at[0].name);
    if ((tn__hook_kinds(module) & TN__HOOKS_BACKWARD) != 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "script: module %q (%s): has backward hooks, which a graph cannot hold; "
                       "expected none: call tn_module_unhook first",
                       path, module->type);
    return TN_OK;
}

static tn_status check_tree(tn_module *module)
{
    tn__walk walk = { 0 };
    tn_status status;

    if (tn__module_modes(module) == NULL && tn__slots_find(&module->children, HOLDER) != NULL)
        return tn_fail(TN_ERR_KEY,
                       "script: child %q: a script has its constants there; expected another name",
                       HOLDER);
    status = tn__walk_collect(module, TN_SLOT_CHILD, false, &walk);
    for (int64_t i = 0; i < walk.count && status == TN_OK; i++)
        status = check_module(walk.at[i].module, walk.at[i].path);
    tn__walk_free(&walk);
    return status;
}

static tn_status mirror_slots(const tn__slots *from, tn__slots *to)
{
    for (int64_t i = 0; i < from->count; i++) {
        const tn__slot *slot = &from->at[i];
        tn__slot *made = tn__slots_make(to, slot->name);

        if (made == NULL)
            return tn_error_last_code();
        made->flags = slot->flags;
        made->tensor = tn__is_none(slot->tensor) ? slot->tensor : tn_tensor_keep(slot->tensor);
    }
    return TN_OK;
}

static tn_module *new_part(const char *original)
{
    tn_module *part = tn_module_plain(TYPE);
    tn__text text = { 0 };

    if (part == NULL)
        return NULL;
    tn__text_add(&text, EXTRA "%s", original);
    tn_free(part->tree_extra);
    part->tree_extra = tn__text_take(&text);
    if (part->tree_extra != NULL)
        return part;
    tn_module_drop(part);
    return NULL;
}

/* Makes the part of the script for a module, with the same tensors. `made` has the parts so far and
 * owns a reference to each. */
static tn_module *mirror(tn__map *made, tn_module *module)
{
    int added = tn__map_add(made, module);
    tn_module *part;
    tn_status status;

    if (added < 0)
        return NULL;
    if (added == 0)
        return *tn__map_value(made, module);
    part = new_part(original_name(module));
    if (part == NULL)
        return NULL;
    *tn__map_value(made, module) = part;
    part->training = module->training;
    status = mirror_slots(&module->parameters, &part->parameters);
    if (status == TN_OK)
        status = mirror_slots(&module->buffers, &part->buffers);
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++) {
        const tn__slot *slot = &module->children.at[i];
        tn_module *child = slot->child != NULL ? mirror(made, slot->child) : NULL;

        if (slot->child == NULL)
            status = tn_module_reserve_child(part, slot->name);
        else
            status = child != NULL ? tn_module_add_child(part, slot->name, child)
                                   : tn_error_last_code();
    }
    return status == TN_OK ? part : NULL;
}

static tn_module *mirror_tree(tn_module *module)
{
    tn__map made = { 0 };
    tn_module *script = mirror(&made, module);

    if (script != NULL)
        tn_module_keep(script);
    for (int64_t i = 0; i < made.count; i++)
        if (made.at[i].value != NULL)
            tn_module_drop(made.at[i].value);
    tn__map_free(&made);
    return script;
}

static void freeze(tn_module *part)
{
    if (part->frozen != 0)
        return;
    part->frozen = TN__FROZEN;
    for (int64_t i = 0; i < part->children.count; i++)
        if (part->children.at[i].child != NULL)
            freeze(part->children.at[i].child);
}

/* ---- the graphs ------------------------------------------------------------------------------ */

static tn_module *constants_of(tn_module *script)
{
    tn__slot *slot = tn__slots_find(&script->children, HOLDER);
    tn_module *holder = slot != NULL ? slot->child : NULL;

    if (holder != NULL || (holder = new_part("Constants")) == NULL)
        return holder;
    holder->training = script->training;
    if (tn_module_add_child(script, HOLDER, holder) != TN_OK) {
        tn_module_drop(holder);
        return NULL;
    }
    tn_module_drop(holder); /* the slot holds it */
    return holder;
}

/* Makes a constant a buffer of the script. Graphs for both modes share the buffer of a tensor. If
 * another tensor has the name, the constant gets another one. */
static tn_status place_constant(tn_module *script, tn_node *node)
{
    tn_module *holder = constants_of(script);
    tn_tensor *tensor = node->held.tensor;
    const char *name = tn__graph_target(node);
    char other[32];

    if (holder == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < holder->buffers.count; i++)
        if (holder->buffers.at[i].tensor == tensor)
            return tn__graph_set_text(&node->target, holder->buffers.at[i].name);
    for (int64_t i = 0; tn__slots_find(&holder->buffers, name) != NULL; i++) {
        tn_snprint(other, sizeof other, "c%lld", (long long)i);
        name = other;
    }
    if (tn_module_add_buffer(holder, name, tensor, TN_SLOT_FLAG_NOT_PERSISTENT) != TN_OK)
        return tn_error_last_code();
    return tn__graph_set_text(&node->target, name);
}

static tn_status place_node(tn_module *script, tn_node *node)
{
    if (node->kind == TN_NODE_CALL)
        return tn_fail(TN_ERR_VALUE,
                       "script: node %s: wrong kind, got a call of the module %s; expected "
                       "operators only: call tn_graph_inline first",
                       node->name, node->callee->module->type);
    if (node->kind == TN_NODE_REGION)
        return tn_fail(TN_ERR_VALUE,
                       "script: node %s: wrong kind, got a region of the compiler %s; expected "
                       "operators only: make the script before regions are compiled",
                       node->name, node->region->def->name);
    if (node->kind == TN_NODE_CONSTANT)
        return place_constant(script, node);
    if (node->kind == TN_NODE_SLOT) {
        tn_tensor *tensor = tn_module_find_tensor(script, tn__graph_target(node));

        if (tensor == NULL)
            return tn_error_prefix("script: node %s: ", node->name);
        if (tensor != node->held.tensor)
            return tn_fail(TN_ERR_VALUE,
                           "script: node %s: another tensor; expected the one that the module has "
                           "at %q",
                           node->name, tn__graph_target(node));
    }
    return TN_OK;
}

/* Returns a copy of the graph whose tensors are those of the script. */
static tn_graph *place(tn_module *script, tn_graph *graph)
{
    tn_graph *copy = tn_graph_lint(graph) == TN_OK ? tn_graph_copy(graph) : NULL;
    tn_status status = copy != NULL ? TN_OK : tn_error_last_code();

    for (tn_node *node = copy != NULL ? copy->first : NULL; node != NULL && status == TN_OK;
         node = node->next)
        status = place_node(script, node);
    if (status == TN_OK)
        status = tn__graph_set_text(&copy->type, script->tree_extra + sizeof EXTRA - 1);
    if (status == TN_OK)
        return copy;
    tn_graph_drop(copy);
    return NULL;
}

/* Makes a script of a module and of its graphs, as in tn__modes. */
static tn_module *make(tn_module *module, tn_graph *const graphs[3])
{
    tn_module *script = mirror_tree(module);
    tn_graph *own[3] = { NULL, NULL, NULL };
    tn_status status = script != NULL ? TN_OK : tn_error_last_code();
    tn__modes *modes = NULL;

    for (int i = 0; i < 3 && status == TN_OK; i++) {
        if (graphs[i] == NULL)
            continue;
        own[i] = i == 1 && graphs[1] == graphs[0] ? tn_graph_keep(own[0])
                                                  : place(script, graphs[i]);
        if (own[i] == NULL)
            status = tn_error_last_code();
    }
    if (status == TN_OK && (modes = tn__module_run_by(script, own, true)) == NULL)
        status = tn_error_last_code();
    if (status == TN_OK && (modes->files = tn_state_new()) == NULL)
        status = TN_ERR_MEMORY;
    for (int i = 0; i < 3; i++)
        tn_graph_drop(own[i]);
    if (status == TN_OK) {
        const tn__slot *slot = tn__slots_find(&script->children, HOLDER);

        if (slot != NULL && slot->child != NULL)
            slot->child->frozen = TN__FROZEN_CONSTANTS;
        freeze(script);
        return script;
    }
    if (script != NULL)
        tn_module_drop(script);
    return NULL;
}

/* ---- tracing both modes ---------------------------------------------------------------------- */

static bool never(void *user, tn_module *module, const char *path)
{
    (void)user;
    (void)module;
    (void)path;
    return false;
}

struct tracing {
    tn_module *module;
    tn_tensor *input;
    const tn_pack *pack;
    const tn_tracing_options *options;
};

static tn_status trace(const struct tracing *t, bool training, tn_graph **graph)
{
    tn_module *module = t->module;

    *graph = t->pack != NULL ? tn_module_trace_pack(module, t->pack, t->options)
                             : tn_module_trace(module, t->input, t->options);
    if (*graph != NULL)
        return TN_OK;
    return tn_error_prefix("script: in %s mode: ", training ? "training" : "evaluation");
}

/* Traces with all modules in one mode. Other threads may call the modules, so this thread only sees
 * them in this mode. */
static tn_status trace_mode(const struct tracing *t, bool training, tn_graph **graph)
{
    tn__mode_seen before = tn__mode_see(training ? TN__MODE_TRAINING : TN__MODE_EVAL);
    tn_status status = trace(t, training, graph);

    tn__mode_see(before);
    return status;
}

/* Like trace_mode(), for modules whose layers react to a change of the mode. Their modes change. */
static tn_status trace_changed(const struct tracing *t, bool training, tn_graph **graph)
{
    tn_status status = tn_module_train(t->module, training);

    return status == TN_OK ? trace(t, training, graph) : status;
}

/* Returns the place of a graph in tn__modes; -1: for all modes. */
static int mode_of(const tn_graph *graph)
{
    if (graph->training < 0)
        return -1;
    if (tn__graph_is_mixed(graph))
        return 2;
    return graph->n_asked > 0 ? graph->asked[0].training : graph->training;
}

static bool reacts(const tn__walk *walk)
{
    bool any = false;

    for (int64_t i = 0; i < walk->count && !any; i++)
        any = walk->at[i].module->layer != NULL && walk->at[i].module->layer->train != NULL;
    return any;
}

/* Traces with all modules in each mode, if there is no graph for it yet. */
static tn_status trace_both(const struct tracing *t, const tn__walk *walk, tn_graph *graphs[3])
{
    bool *modes = tn_malloc((size_t)walk->count + 1), changes = reacts(walk);
    tn_status status = modes != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < walk->count && status == TN_OK; i++)
        modes[i] = walk->at[i].module->training;
    for (int i = 0; i < 2 && status == TN_OK; i++)
        if (graphs[i] == NULL)
            status = changes ? trace_changed(t, i == 1, &graphs[i])
                             : trace_mode(t, i == 1, &graphs[i]);
    for (int64_t i = 0; i < walk->count && changes && modes != NULL; i++)
        if (tn__module_set_mode(walk->at[i].module, modes[i]) != TN_OK)
            status = tn_error_last_code();
    tn_free(modes);
    return status;
}

/* Traces in the present modes and, if any code asks for them, with all modules in each mode. */
static tn_status trace_modes(const struct tracing *t, tn_graph *graphs[3])
{
    tn_graph *graph = NULL;
    tn__walk walk = { 0 };
    tn_status status = trace(t, t->module->training, &graph);

    if (status == TN_OK && graph->training < 0) {
        graphs[0] = graph;
        graphs[1] = tn_graph_keep(graph);
        return TN_OK;
    }
    if (status == TN_OK) {
        graphs[mode_of(graph)] = graph;
        status = tn__walk_collect(t->module, TN_SLOT_CHILD, false, &walk);
    }
    if (status == TN_OK)
        status = trace_both(t, &walk, graphs);
    tn__walk_free(&walk);
    return status;
}

static tn_module *script_with(tn_module *module, tn_tensor *input, const tn_pack *pack,
                              const tn_tracing_options *options)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    const tn__modes *modes = tn__module_modes(module);
    tn_graph *graphs[3] = { NULL, NULL, NULL };
    tn_module *script = NULL;
    tn_status status;

    if (modes != NULL && modes->files != NULL)
        return tn_module_keep(module);
    if (options != NULL && options->size != sizeof *options) {
        tn_fail(TN_ERR_VALUE,
                "tn_module_script: options.size: wrong, got %u; initialize the struct with "
                "TN_TRACING_OPTIONS",
                options->size);
        return NULL;
    }
    if (options != NULL)
        how.dynamic = options->dynamic;
    how.flags = TN_TRACE_THROUGH;
    how.is_leaf = never;
    if (check_tree(module) != TN_OK)
        return NULL;
    status = trace_modes(&(struct tracing){ module, input, pack, &how }, graphs);
    if (status == TN_OK)
        script = make(module, graphs);
    for (int i = 0; i < 3; i++)
        tn_graph_drop(graphs[i]);
    return script;
}

/* ---- public ---------------------------------------------------------------------------------- */

tn_module *tn_module_script(tn_module *module, tn_tensor *input, const tn_tracing_options *options)
{
    if (!tn__not_null(module, "tn_module_script: module"))
        return NULL;
    if (!tn__tensor_ok(input)) {
        tn__tensor_bad(input, "tn_module_script: input");
        return NULL;
    }
    return script_with(module, input, NULL, options);
}

tn_module *tn_module_script_pack(tn_module *module, const tn_pack *input,
                                 const tn_tracing_options *options)
{
    if (!tn__not_null(module, "tn_module_script_pack: module") ||
        !tn__given(input != NULL, "tn_module_script_pack: input"))
        return NULL;
    return script_with(module, NULL, input, options);
}

tn_module *tn_script_new(tn_module *module, tn_graph *const *graphs, int64_t count)
{
    tn_graph *all[3] = { NULL, NULL, NULL };

    if (!tn__not_null(module, "tn_script_new: module") ||
        !tn__given(graphs != NULL || count == 0, "tn_script_new: graphs") ||
        check_tree(module) != TN_OK)
        return NULL;
    if (count < 1 || count > 3) {
        tn_fail(TN_ERR_VALUE, "tn_script_new: graphs: wrong count, got %lld; expected 1 to 3",
                (long long)count);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) {
        int mode;

        if (!tn__not_null(graphs[i], "tn_script_new: graphs"))
            return NULL;
        mode = mode_of(graphs[i]);
        if (mode >= 0 ? all[mode] != NULL : count > 1) {
            tn_fail(TN_ERR_VALUE,
                    mode >= 0 ? "tn_script_new: graphs: two for one mode; expected one for "
                                "evaluation, one for training and one for parts in different "
                                "modes, or one for all"
                              : "tn_script_new: graphs: number %lld of %lld is for all modes; "
                                "expected it as the only graph, or one for each mode",
                    (long long)i, (long long)count);
            return NULL;
        }
        for (int k = 0; k < 3; k++)
            if (mode == k || (mode < 0 && k < 2))
                all[k] = graphs[i];
    }
    return make(module, all);
}

/* Returns what a script runs. Fails for other modules. */
static tn__modes *modes_of(const tn_module *module, const char *who)
{
    tn__modes *modes = tn__module_modes(module);

    if (modes != NULL && modes->files != NULL)
        return modes;
    tn_fail(TN_ERR_TYPE, "%s: wrong module, got %s; expected a script (tn_module_script)", who,
            module->type);
    return NULL;
}

static const tn_graph *graph_of(const tn_module *script, int mode, const char *who)
{
    tn__modes *modes = tn__not_null(script, who) ? modes_of(script, who) : NULL;
    tn_graph *const *graphs = modes != NULL
                                  ? tn__script_graphs(modes, (tn_module *)(uintptr_t)script)
                                  : NULL;

    return graphs != NULL ? graphs[mode] : NULL;
}

const tn_graph *tn_script_graph(const tn_module *script, bool training)
{
    return graph_of(script, training, "tn_script_graph: script");
}

const tn_graph *tn_script_graph_mixed(const tn_module *script)
{
    return graph_of(script, 2, "tn_script_graph_mixed: script");
}

tn_state *tn_script_files(const tn_module *script)
{
    const tn__modes *modes = tn__not_null(script, "tn_script_files: script")
                                 ? modes_of(script, "tn_script_files: script")
                                 : NULL;

    return modes != NULL ? modes->files : NULL;
}

const char *tn_script_original(const tn_module *part)
{
    if (!tn__not_null(part, "tn_script_original: part"))
        return NULL;
    if (part->frozen != 0)
        return original_name(part);
    tn_fail(TN_ERR_TYPE,
            "tn_script_original: part: wrong module, got %s; expected a script "
            "(tn_module_script) or a child of one",
            part->type);
    return NULL;
}

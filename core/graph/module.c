/* SPDX-License-Identifier: MIT
 *
 * GraphModule: a module whose forward runs a graph. Slots, constants and modules of the graph are
 * found in the module by their paths, so that copies, loads and conversions need no special care.
 */
#include "core/graph/private.h"

#include <stdlib.h>

/* ---- forward --------------------------------------------------------------------------------- */

static tn_status check_mode(const tn_module *self, const tn_graph *graph)
{
    if (graph->training < 0 || (graph->training != 0) == self->training)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "GraphModule: the graph was traced in %s mode, and the module is in %s mode; "
                   "trace the original module in this mode",
                   graph->training ? "training" : "evaluation",
                   graph->training ? "evaluation" : "training");
}

static tn_tensor *forward_one(tn_module *self, tn_tensor *input)
{
    tn_graph *graph = tn_module_user(self);
    tn_tensor *out = NULL;

    return check_mode(self, graph) == TN_OK &&
                   tn__run_graph(graph, self, NULL, NULL, &input, &out) == TN_OK
               ? out
               : NULL;
}

/* Checks the arguments, and takes their tensors. */
static tn_status take_inputs(const tn_graph *graph, const tn_pack *input, tn_tensor **in)
{
    int64_t count = tn__values_count(input, "GraphModule");

    if (count < 0)
        return tn_error_last_code();
    if (graph->in != NULL) {
        tn_status status = tn__values_match(graph->in, input, "GraphModule");

        if (status != TN_OK)
            return status;
    } else if (count != graph->n_inputs || tn_pack_positional(input) != count ||
               tn_pack_count(input) != count) {
        return tn_fail(TN_ERR_TYPE,
                       "GraphModule: wrong arguments, got %lld; expected %lld tensors by position",
                       (long long)tn_pack_count(input), (long long)graph->n_inputs);
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
    tn_graph *graph = tn_module_user(self);
    int64_t count = graph->n_inputs + graph->output->n_in;
    tn_tensor **space = tn_calloc((size_t)count + 1, sizeof(tn_tensor *));
    tn_status status = space != NULL ? check_mode(self, graph) : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = take_inputs(graph, input, space);
    if (status == TN_OK)
        status = tn__run_graph(graph, self, NULL, NULL, space, space + graph->n_inputs);
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
            if (made != NULL)
                tn_module_drop(made);
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
    return tn_module_add_buffer(holder, name, tensor, node->slot >> 16 & TN_SLOT_NOT_PERSISTENT);
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

static void release(void *graph)
{
    tn_graph_drop(graph);
}

static tn_status fill(tn_module *module, tn_graph *graph)
{
    tn_status status = add_modules(module, graph);
    bool one = graph->in == NULL && graph->out == NULL && graph->n_inputs == 1 &&
               graph->output->n_in == 1;

    for (const tn_node *node = graph->first;
         node != NULL && tn__graph_is_leaf(node) && status == TN_OK; node = node->next)
        if (node->kind != TN_NODE_INPUT)
            status = add_tensor(module, node);
    if (status != TN_OK)
        return status;
    module->training = graph->training >= 0 ? graph->training != 0 : !graph->evaluates;
    tn_graph_keep(graph);
    status = one ? tn_module_set_forward(module, forward_one, graph, release)
                 : tn_module_set_call(module, call_packs, graph, release);
    if (status != TN_OK)
        tn_graph_drop(graph);
    return status;
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
    const tn__own_forward *own;

    if (!tn__not_null(module, "tn_module_graph: module"))
        return NULL;
    own = module->own_forward;
    if (own != NULL && (own->forward == forward_one || own->call == call_packs))
        return own->user;
    tn_fail(TN_ERR_TYPE, "tn_module_graph: module: wrong type, got %s; expected a GraphModule",
            module->type);
    return NULL;
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
            status = tn_state_set(state, tn__graph_target(node), node->held.tensor);
    if (status == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}

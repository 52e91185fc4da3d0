/* SPDX-License-Identifier: MIT
 *
 * Writes a script as a program of PyTorch: its graph of evaluation, with its state and its modules.
 */
#include "export/aten.h"
#include "pt2.h"

#include <string.h>

static const struct aten_rule *rule_of(const tn_node *node)
{
    static const struct aten_rule *const lists[] = { aten_write_rules, aten_write_layers };
    const char *name = tn_node_target(node);

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct aten_rule *rule = lists[i]; rule->op != NULL; rule++)
            if (strcmp(rule->op, name) == 0 && (rule->fits == NULL || rule->fits(node)))
                return rule;
    return NULL;
}

static bool is_known(const tn_node *node)
{
    return rule_of(node) != NULL;
}

/* ---- the state ------------------------------------------------------------------------------- */

static struct aten_slot *find(const struct aten_model *m, const char *path, bool constant)
{
    for (struct aten_slot *slot = m->slots; slot != NULL; slot = slot->next)
        if (slot->constant == constant && strcmp(slot->path, path) == 0)
            return slot;
    return NULL;
}

static struct aten_slot *add(struct aten_model *m, const char *path, tn_tensor *tensor)
{
    struct aten_slot *slot = arena_new(&m->arena, 1, sizeof *slot);

    if (slot == NULL) {
        m->status = TN_ERR_MEMORY;
        return NULL;
    }
    *slot = (struct aten_slot){ .path = arena_text(&m->arena, path, strlen(path)),
                                .tensor = tn_tensor_keep(tensor),
                                .parameter = tn_tensor_is_parameter(tensor),
                                .persistent = true };
    if (m->last != NULL)
        m->last->next = slot;
    else
        m->slots = slot;
    m->last = slot;
    return slot;
}

/* The whole state, so that it is that of the module; then what only the graph uses. */
static tn_status collect(struct aten_model *m)
{
    tn_state *state = tn_module_state(m->graph.script);
    tn_status status = state != NULL ? TN_OK : tn_error_last_code();

    for (int64_t i = 0; state != NULL && i < tn_state_count(state); i++) {
        const char *path = tn_state_name(state, i);
        tn_tensor *tensor = tn_state_value(state, i).kind == TN_VALUE_TENSOR
                                ? tn_module_find_tensor(m->graph.script, path)
                                : NULL;

        if (tensor != NULL && tensor != TN_NONE)
            add(m, path, tensor);
    }
    tn_state_drop(state);
    for (const tn_node *node = tn_graph_first(m->graph.graph); node && status == TN_OK;
         node = tn_node_next(node)) {
        bool constant = tn_node_kind_of(node) == TN_NODE_CONSTANT;
        const char *path = tn_node_target(node);
        struct aten_slot *slot;

        if (tn_node_user_count(node) == 0 || (!constant && tn_node_kind_of(node) != TN_NODE_SLOT) ||
            find(m, path, constant) != NULL)
            continue;
        slot = add(m, path,
                   constant ? tn_node_tensor(node) : tn_module_find_tensor(m->graph.script, path));
        if (slot != NULL) {
            slot->constant = constant;
            slot->persistent = false;
        }
    }
    return status == TN_OK ? m->status : status;
}

/* An argument of the graph, with the way in which the state gives it. */
static void add_input(struct aten_model *m, const char *name, json_t *meta, json_t *spec)
{
    if (json_object_set_new(m->tensors, name, meta) != 0 ||
        json_array_append_new(m->inputs, aten_make_tensor(name)) != 0 ||
        json_array_append_new(m->input_specs, spec) != 0)
        m->status = m->status == TN_OK ? TN_ERR_MEMORY : m->status;
}

static void add_slot(struct aten_model *m, struct aten_slot *slot)
{
    const char *kind = slot->constant ? "c_" : slot->parameter ? "p_" : "b_";
    json_t *meta = aten_make_meta(m, NULL, slot->tensor,
                                  slot->parameter && tn_tensor_requires_grad(slot->tensor));
    json_t *spec;

    slot->name = aten_make_name(m, kind, slot->path);
    if (slot->constant)
        spec = json_pack("{s:{s:{s:s}, s:s}}", "tensor_constant", "arg", "name", slot->name,
                         "tensor_constant_name", slot->path);
    else if (slot->parameter)
        spec = json_pack("{s:{s:{s:s}, s:s}}", "parameter", "arg", "name", slot->name,
                         "parameter_name", slot->path);
    else
        spec = json_pack("{s:{s:{s:s}, s:s, s:b}}", "buffer", "arg", "name", slot->name,
                         "buffer_name", slot->path, "persistent", (int)slot->persistent);
    add_input(m, slot->name, meta, spec);
}

/* Parameters, buffers, constants, then the inputs: PyTorch expects this order. */
static void add_inputs(struct aten_model *m)
{
    for (int kind = 0; kind < 3; kind++)
        for (struct aten_slot *slot = m->slots; slot != NULL; slot = slot->next)
            if (kind == (slot->constant ? 2 : slot->parameter ? 0 : 1))
                add_slot(m, slot);
    for (const tn_node *node = tn_graph_first(m->graph.graph); node; node = tn_node_next(node)) {
        tn_node_kind kind = tn_node_kind_of(node);

        if (kind == TN_NODE_INPUT) {
            const char *name = aten_make_name(m, "", tn_node_name(node));

            aten_make_set(m, node, name);
            add_input(m, name, aten_make_meta(m, node, NULL, false),
                      json_pack("{s:{s:o}}", "user_input", "arg", aten_make_tensor(name)));
            if (json_array_append_new(m->names, json_string(name)) != 0)
                m->status = TN_ERR_MEMORY;
        } else if ((kind == TN_NODE_SLOT || kind == TN_NODE_CONSTANT) &&
                   tn_node_user_count(node) > 0) {
            const struct aten_slot *slot = find(m, tn_node_target(node), kind == TN_NODE_CONSTANT);

            aten_make_set(m, node, slot != NULL ? slot->name : "");
        }
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void write_call(struct aten_model *m, const tn_node *node)
{
    struct aten_call call = { .model = m, .node = node, .def = export_def(node) };
    const struct aten_rule *rule = rule_of(node);

    call.options = tn_node_options(node);
    if (tn_node_meta(tn_node_item(node, 0), &call.meta) != TN_OK || call.meta.ndim < 0)
        aten_make_fail(&call, "its shape is known only in a run; expected a known one");
    else if (rule->text != NULL)
        aten_text_write(&call, rule);
    else
        rule->call(&call);
    json_decref(call.arguments);
}

static void write_outputs(struct aten_model *m, const tn_node *output)
{
    for (int64_t i = 0; i < tn_node_input_count(output); i++) {
        const char *name = aten_make_of(m, tn_node_input(output, i));

        if (json_array_append_new(m->outputs, aten_make_tensor(name)) != 0 ||
            json_array_append_new(m->output_specs, json_pack("{s:{s:o}}", "user_output", "arg",
                                                             aten_make_tensor(name))) != 0)
            m->status = TN_ERR_MEMORY;
    }
}

static tn_status write_model(struct aten_model *m)
{
    tn_status status = collect(m);

    if (status != TN_OK)
        return status;
    aten_make_reserve(m);
    add_inputs(m);
    for (const tn_node *node = tn_graph_first(m->graph.graph); node && m->status == TN_OK;
         node = tn_node_next(node)) {
        if (tn_node_kind_of(node) == TN_NODE_OP)
            write_call(m, node);
        else if (tn_node_kind_of(node) == TN_NODE_OUTPUT)
            write_outputs(m, node);
    }
    return m->status;
}

static void clear(struct aten_model *m)
{
    json_t *const values[] = { m->nodes,       m->tensors, m->sizes,        m->inputs,
                               m->input_specs, m->outputs, m->output_specs, m->names };

    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        json_decref(values[i]);
    for (struct aten_slot *slot = m->slots; slot != NULL; slot = slot->next)
        tn_tensor_drop(slot->tensor);
    tn_free((void *)m->at);
    names_free(&m->taken);
    names_free(&m->values);
    arena_free(&m->arena);
}

tn_status export_pt2(const tn_sink *sink, tn_module *script)
{
    TN_SCOPE;
    struct aten_model m = { .nodes = json_array(),
                            .tensors = json_object(),
                            .sizes = json_object(),
                            .inputs = json_array(),
                            .input_specs = json_array(),
                            .outputs = json_array(),
                            .output_specs = json_array(),
                            .names = json_array() };
    tn_status status = export_graph_open(&m.graph, script, false, sink->path, is_known);

    if (status == TN_OK)
        status = write_model(&m);
    if (status == TN_OK)
        status = aten_file_write(&m, sink);
    clear(&m);
    export_graph_close(&m.graph);
    return status;
}

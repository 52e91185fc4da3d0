/* SPDX-License-Identifier: MIT
 *
 * Writes a script as a model of ONNX: its graph of evaluation, with the names of its state. */
#include "export/onnx.h"
#include "foreign.h"
#include "onnx/onnx.h"

#include <string.h>

static const struct onnx_rule *const lists[] = {
    onnx_write_elements, onnx_write_shapes,  onnx_write_index,    onnx_write_reduce,
    onnx_write_layers,   onnx_write_windows, onnx_write_products,
};

static const struct onnx_rule *rule_of(const tn_node *node)
{
    const char *name = tn_node_target(node);

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct onnx_rule *rule = lists[i]; rule->op != NULL; rule++)
            if (strcmp(rule->op, name) == 0)
                return rule->fits == NULL || rule->fits(node) ? rule : NULL;
    return NULL;
}

/* Operators of ONNX compute real numbers. */
static bool is_known(const tn_node *node)
{
    tn_meta meta;

    for (int64_t i = 0; i < tn_node_item_count(node); i++)
        if (tn_node_meta(tn_node_item(node, i), &meta) == TN_OK &&
            (TN_BIT(meta.dtype) & TN_MASK_COMPLEX) != 0)
            return false;
    return rule_of(node) != NULL;
}

/* ---- tensors and inputs ---------------------------------------------------------------------- */

static struct onnx_value *named(struct onnx_model *m, const char *name)
{
    struct onnx_value *value = arena_new(&m->arena, 1, sizeof *value);
    char text[700];

    if (value != NULL) {
        tn_snprint(text, sizeof text, "%.600s", name);
        for (int64_t i = 1; names_find(&m->taken, text) >= 0; i++)
            tn_snprint(text, sizeof text, "%.600s_%lld", name, (long long)i);
        value->name = arena_text(&m->arena, text, strlen(text));
    }
    if (value == NULL || value->name == NULL || names_add(&m->taken, value->name, 0) != TN_OK) {
        if (m->status == TN_OK)
            m->status = TN_ERR_MEMORY;
        return NULL;
    }
    return value;
}

/* The tensor that the script has now for a node of its graph. */
static tn_tensor *tensor_of(struct onnx_model *m, const tn_node *node)
{
    tn_tensor *tensor = tn_node_kind_of(node) == TN_NODE_SLOT
                            ? tn_module_find_tensor(m->graph.script, tn_node_target(node))
                            : tn_node_tensor(node);
    tn_meta meta;

    if (tensor == NULL || tn_node_meta(node, &meta) != TN_OK)
        return NULL;
    if (tensor == TN_NONE || tn_tensor_dtype(tensor) != meta.dtype) {
        tn_fail(
            TN_ERR_TYPE,
            "%s: tensor %s: wrong dtype, got %s; expected %s, as the graph of the script has: make "
            "the script again",
            m->graph.path, tn_node_target(node),
            tensor == TN_NONE ? "none" : tn_dtype_name(tn_tensor_dtype(tensor)),
            tn_dtype_name(meta.dtype));
        return NULL;
    }
    return tensor;
}

static tn_status add_initial(struct onnx_model *m, const tn_node *node)
{
    tn_tensor *tensor = tensor_of(m, node);
    struct onnx_initial *made;
    char name[700];

    if (tensor == NULL)
        return tn_error_last_code();
    for (made = m->initials; made != NULL; made = made->next)
        if (made->tensor == tensor) { /* tied */
            onnx_make_set(m, node, made->value);
            return m->status;
        }
    made = arena_new(&m->arena, 1, sizeof *made);
    if (made == NULL)
        return TN_ERR_MEMORY;
    tn_snprint(name, sizeof name, "%s%.600s", tn_node_kind_of(node) == TN_NODE_SLOT ? "" : "/",
               tn_node_target(node));
    *made = (struct onnx_initial){ .value = named(m, name),
                                   .tensor = tn_tensor_keep(tensor),
                                   .type = onnx_tensor_type(tn_tensor_dtype(tensor)),
                                   .ndim = tn_tensor_ndim(tensor) };
    if (m->last_initial != NULL)
        m->last_initial->next = made;
    else
        m->initials = made;
    m->last_initial = made;
    if (made->type == 0)
        return tn_fail(TN_ERR_TYPE, "%s: tensor %s: wrong dtype, got %s; expected one of ONNX",
                       m->graph.path, tn_node_target(node), tn_dtype_name(tn_tensor_dtype(tensor)));
    for (int64_t i = 0; i < made->ndim; i++)
        made->dims[i] = tn_tensor_size(tensor, i);
    onnx_make_set(m, node, made->value);
    return m->status;
}

/* The tensors come first, so that they keep their names; then the inputs. */
static tn_status add_leaves(struct onnx_model *m)
{
    tn_status status = TN_OK;

    for (int inputs = 0; inputs < 2; inputs++)
        for (const tn_node *node = tn_graph_first(m->graph.graph); node && status == TN_OK;
             node = tn_node_next(node)) {
            tn_node_kind kind = tn_node_kind_of(node);

            if (inputs == 1 && kind == TN_NODE_INPUT)
                onnx_make_set(m, node, named(m, tn_node_name(node)));
            else if (inputs == 0 && (kind == TN_NODE_SLOT || kind == TN_NODE_CONSTANT) &&
                     tn_node_user_count(node) > 0)
                status = add_initial(m, node);
        }
    return status == TN_OK ? m->status : status;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The dtype in which a call computes. A tensor without dimensions counts only if it is of a higher
 * kind than the others. */
static tn_dtype compute_dtype(const tn_node *node, const tn_op_def *def, tn_dtype result)
{
    tn_dtype of[2] = { TN_DTYPE_AUTO, TN_DTYPE_AUTO };
    uint64_t promotes = TN_OP_PROMOTE | TN_OP_PROMOTE_FLOAT | TN_OP_POINTWISE;

    if ((def->flags & promotes) == 0)
        return TN_DTYPE_AUTO;
    if (result != TN_BOOL)
        return result;
    for (int32_t i = 0; i < def->n_inputs && i < tn_node_input_count(node); i++) {
        const tn_node *value = tn_node_input(node, i);
        tn_meta meta;
        int k;

        if (value == TN_NODE_NONE || (def->inputs[i].flags & TN_OPERAND_NO_PROMOTE) != 0 ||
            tn_node_meta(value, &meta) != TN_OK)
            continue;
        k = meta.ndim == 0;
        of[k] = of[k] == TN_DTYPE_AUTO ? meta.dtype : tn_dtype_promote(of[k], meta.dtype);
    }
    if (of[0] == TN_DTYPE_AUTO || of[1] == TN_DTYPE_AUTO)
        return of[of[0] == TN_DTYPE_AUTO];
    for (int kind = 0; kind < 2; kind++) { /* numbers with a fraction, then integers */
        bool a = kind == 0 ? (TN_BIT(of[0]) & TN_MASK_FLOAT) != 0 : of[0] != TN_BOOL;
        bool b = kind == 0 ? (TN_BIT(of[1]) & TN_MASK_FLOAT) != 0 : of[1] != TN_BOOL;

        if (a != b)
            return of[b];
    }
    return of[0];
}

static void write_call(struct onnx_model *m, const tn_node *node)
{
    struct onnx_call call = { .model = m, .node = node, .def = export_def(node) };
    const struct onnx_rule *rule = rule_of(node);

    call.options = tn_node_options(node);
    if (tn_node_meta(tn_node_item(node, 0), &call.meta) != TN_OK || call.meta.ndim < 0) {
        onnx_make_fail(&call, "its shape is known only in a run; expected a known one");
        return;
    }
    call.compute = compute_dtype(node, call.def, call.meta.dtype);
    if (onnx_tensor_type(call.meta.dtype) == 0)
        onnx_make_fail(&call, "its result has a dtype that ONNX does not have");
    else if (rule->text != NULL)
        onnx_text_write(&call, rule);
    else
        rule->call(&call);
}

/* Gives the outputs their names; those that are inputs, tensors or other outputs are copied. */
static void write_outputs(struct onnx_model *m, const tn_node *output)
{
    int64_t count = tn_node_input_count(output);
    struct onnx_call call = { .model = m, .node = output };

    m->outputs = arena_new(&m->arena, (uint64_t)count + 1, sizeof(*m->outputs));
    m->n_outputs = count;
    for (int64_t i = 0; i < count && m->status == TN_OK && m->outputs != NULL; i++) {
        struct onnx_value *value = (struct onnx_value *)(uintptr_t)onnx_make_of(
            m, tn_node_input(output, i));
        struct onnx_value *name;
        char text[40];

        if (value == NULL || m->outputs == NULL) {
            m->status = tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: output %lld: none; expected a tensor",
                                m->graph.path, (long long)i);
            return;
        }
        if (!value->made)
            value = (struct onnx_value *)(uintptr_t)onnx_make_1(&call, "Identity", value);
        tn_snprint(text, sizeof text, count > 1 ? "output_%lld" : "output", (long long)i);
        name = named(m, text);
        if (name == NULL || m->status != TN_OK)
            return;
        value->name = name->name;
        value->made = false;
        m->outputs[i] = value;
    }
}

static void write_nodes(struct onnx_model *m)
{
    for (const tn_node *node = tn_graph_first(m->graph.graph); node && m->status == TN_OK;
         node = tn_node_next(node)) {
        if (tn_node_kind_of(node) == TN_NODE_OP)
            write_call(m, node);
        else if (tn_node_kind_of(node) == TN_NODE_OUTPUT)
            write_outputs(m, node);
    }
}

/* ---- the model ------------------------------------------------------------------------------- */

static void clear(struct onnx_model *m)
{
    for (struct onnx_initial *i = m->initials; i != NULL; i = i->next)
        tn_tensor_drop(i->tensor);
    for (struct onnx_node *node = m->nodes; node != NULL; node = node->next)
        buffer_free(&node->attributes);
    tn_free(m->at);
    names_free(&m->taken);
    names_free(&m->values);
    names_free(&m->constants);
    arena_free(&m->arena);
    *m = (struct onnx_model){ .graph = m->graph, .opset = m->opset };
}

/* A rule that needs a newer version of operators changes how others are written, so that all are
 * written again. */
static tn_status write_model(struct onnx_model *m)
{
    int64_t opset;
    tn_status status;

    do {
        opset = m->opset;
        clear(m);
        status = add_leaves(m);
        if (status == TN_OK)
            write_nodes(m);
        if (status == TN_OK)
            status = m->status;
    } while (status == TN_OK && m->opset > opset);
    return status;
}

tn_status export_onnx(const tn_sink *sink, tn_module *script)
{
    TN_SCOPE;
    struct onnx_model m = { .opset = foreign_onnx_opset() };
    tn_status status = export_graph_open(&m.graph, script, false, sink->path, is_known);

    if (status == TN_OK)
        status = write_model(&m);
    if (status == TN_OK)
        status = onnx_file_write(&m, sink);
    clear(&m);
    export_graph_close(&m.graph);
    return status;
}

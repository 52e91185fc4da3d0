/* SPDX-License-Identifier: MIT
 *
 * Adds nodes to a graph: inputs, tensors, calls of operators, outputs. */
#include "lib/graph/private.h"

/* ---- leaves ---------------------------------------------------------------------------------- */

void tn__build_meta_of(const tn_tensor *tensor, tn_meta *meta)
{
    tn__tensor_meta(tensor, meta);
    meta->offset = 0; /* a position in the storage, which a graph does not have */
    tn__op_meta_strides(meta);
}

static tn_node *leaf(tn_graph *graph, tn_node_kind kind, const char *name, const char *who)
{
    if (!tn__not_null(graph, who) || !tn__given(name != NULL, who) ||
        tn__name_check(name, "", "%s: name", who) != TN_OK)
        return NULL;
    return tn__graph_node_new(graph, kind, name, true, 0, 1);
}

tn_node *tn__build_input(tn_graph *graph, const char *name, const tn_meta *meta)
{
    tn_node *node = leaf(graph, TN_NODE_INPUT, name, "tn_graph_input");

    if (node == NULL)
        return NULL;
    node->meta[0] = *meta;
    graph->n_inputs++;
    tn__graph_node_link(node, NULL);
    return node;
}

tn_node *tn_graph_input(tn_graph *graph, const char *name, tn_ints shape, tn_dtype dtype)
{
    uint64_t bytes;
    tn_meta meta = { 0 };

    if (tn__tensor_meta_of(&meta, shape, dtype) != TN_OK ||
        tn__tensor_meta_bytes(&meta, &bytes) != TN_OK) {
        tn_error_prefix("tn_graph_input: ");
        return NULL;
    }
    tn__op_meta_strides(&meta);
    return tn__build_input(graph, name, &meta);
}

static tn_node *hold(tn_node *node, tn_tensor *tensor)
{
    if (node->kind == TN_NODE_CONSTANT)
        tn__graph_guard_set(&node->held, tensor, node->name);
    else
        /* No guard: the program may exchange its memory. */
        node->held.tensor = tn_tensor_keep(tensor);
    tn__build_meta_of(tensor, &node->meta[0]);
    tn__graph_node_link(node, NULL);
    return node;
}

tn_node *tn__build_held(tn_graph *graph, tn_node_kind kind, const char *path, const char *name,
                        tn_tensor *tensor)
{
    char base[3 * TN__NAME_LONGEST];
    tn_node *node;

    tn__graph_name_of(path, base, sizeof base);
    node = tn__graph_node_new(graph, kind, name != NULL ? name : base, name != NULL, 0, 1);
    if (node == NULL)
        return NULL;
    if (strcmp(node->name, path) != 0 && tn__graph_set_text(&node->target, path) != TN_OK) {
        tn__graph_node_undo(node);
        return NULL;
    }
    return hold(node, tensor);
}

static tn_node *held(tn_graph *graph, tn_node_kind kind, const char *name, tn_tensor *tensor,
                     const char *who)
{
    tn_node *node;

    if (!tn__tensor_ok(tensor)) {
        tn__tensor_bad(tensor, who);
        return NULL;
    }
    node = leaf(graph, kind, name, who);
    return node != NULL ? hold(node, tensor) : NULL;
}

tn_node *tn_graph_slot(tn_graph *graph, const char *name, tn_tensor *tensor)
{
    return held(graph, TN_NODE_SLOT, name, tensor, "tn_graph_slot");
}

tn_node *tn_graph_constant(tn_graph *graph, const char *name, tn_tensor *tensor)
{
    return held(graph, TN_NODE_CONSTANT, name, tensor, "tn_graph_constant");
}

/* ---- operators ------------------------------------------------------------------------------- */

/* Fills in the options of a call from a parsed spec. */
static tn_status fill_options(tn_node *node, const tn__spec *spec)
{
    const tn_op_def *def = &node->op->def;

    if (def->options == NULL || def->options_size == 0) {
        if (spec->count == 0)
            return TN_OK;
        return tn_fail(TN_ERR_VALUE, "%s: options: unknown, got %q; expected none", def->name,
                       spec->text);
    }
    node->options = tn_calloc(1, def->options_size);
    if (node->options == NULL)
        return TN_ERR_MEMORY;
    memcpy(node->options, &def->options_size, sizeof def->options_size);
    return tn__options_fill(def->options, node->options, def->name, spec->text, spec->values,
                            spec->names, spec->columns, spec->count, &node->option_block);
}

/* Replaces the marks among the options by the values of their expressions, and keeps those. */
static tn_status resolve_marks(tn_node *node, const tn__built *how)
{
    const tn_option *table = node->op->def.options;
    int64_t found = 0;

    for (int32_t r = 0; how->n_exprs > 0 && table != NULL && table[r].kind != TN_OPTION_KIND_END;
         r++)
        for (int64_t i = 0, *place;
             (place = tn__symbols_place(&table[r], node->options, i)) != NULL; i++) {
            if (*place >= TN__SYMBOL_MARK && *place < TN__SYMBOL_MARK + how->n_exprs) {
                tn__expr expr = how->exprs[*place - TN__SYMBOL_MARK];

                expr.row = r;
                expr.item = (int32_t)i;
                *place = tn__symbols_now(node->graph, &expr);
                found++;
                if (tn__symbols_add(node, &expr) != TN_OK)
                    return TN_ERR_MEMORY;
            }
            if (table[r].kind != TN_OPTION_KIND_INTS)
                break;
        }
    return found == how->n_exprs ? TN_OK
                                 : tn_fail(TN_ERR_TYPE,
                                           "%s: options: an expression of sizes is given for an "
                                           "option that is not an integer",
                                           node->op->def.name);
}

static tn_status use_inputs(tn_node *node, tn_node *const *inputs, const char *who)
{
    int64_t n_in = node->n_in - (node->kind == TN_NODE_INPLACE);
    tn_status status = TN_OK;
    char what[128];

    for (int64_t i = 0; i < node->n_in && status == TN_OK; i++) {
        int64_t operand = i < node->op->def.n_inputs ? i : node->op->def.n_inputs - 1;
        bool optional = operand >= 0 && i < n_in &&
                        (node->op->def.inputs[operand].flags & TN_OPERAND_OPTIONAL) != 0;

        tn_snprint(what, sizeof what, "%s: %s: input %lld", who, node->op->def.name, (long long)i);
        status = tn__graph_value_check(node->graph, inputs[i], optional, what);
        if (status == TN_OK)
            status = tn__graph_node_use(node, i, inputs[i]);
    }
    return status;
}

/* Checks that a new step may be inserted before a node. */
tn_status tn__build_check_place(const tn_graph *graph, const tn_node *before, const char *who)
{
    char what[96];
    tn_status status;

    if (before == NULL)
        return TN_OK;
    tn_snprint(what, sizeof what, "%s: before", who);
    status = tn__graph_node_check(graph, before, what);
    if (status == TN_OK && (tn__graph_is_leaf(before) || before->kind == TN_NODE_ITEM))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: node %s is an input, a slot, a constant or an item; expected an "
                         "operator, a region or the output",
                         what, before->name);
    return status;
}

/* Links a node that is complete, with its items. */
tn_node *tn__build_link(tn_node *node, tn_node *before)
{
    if (tn__graph_node_items(node) != TN_OK) {
        tn__graph_node_undo(node);
        return NULL;
    }
    tn__graph_node_link(node, before != NULL ? before : node->graph->output);
    tn__graph_node_link_items(node);
    return node;
}

/* As tn_op_call() does it with tensors: for a program or a file of another version of the operator,
 * adds TN_NODE_NONE for optional inputs at the end that are missing, and leaves out those too many.
 * Any other count stays, and tn__lint_infer() refuses it. */
static void fit_inputs(const tn__built *how, tn_node *const **inputs, int64_t *n_inputs,
                       tn_node **space)
{
    const tn_op_def *def = &how->op->def;
    int64_t most = def->n_inputs, n = *n_inputs - how->inplace;

    if (n == most || n < 0 || (n > most && (how->op->flags & TN__OP_LIST) != 0))
        return;
    while (n > most && tn__graph_is_none((*inputs)[n - 1]))
        n--;
    for (int64_t i = n; i < most; i++)
        if ((def->inputs[i].flags & TN_OPERAND_OPTIONAL) == 0)
            return;
    if (n > most)
        return;
    for (int64_t i = 0; i < most; i++)
        space[i] = i < n ? (*inputs)[i] : TN_NODE_NONE;
    if (how->inplace)
        space[most] = (*inputs)[*n_inputs - 1];
    *inputs = space;
    *n_inputs = most + how->inplace;
}

tn_node *tn__build_op(tn_graph *graph, tn_node *before, const tn__built *how,
                      tn_node *const *inputs, int64_t n_inputs)
{
    const char *who = how->who != NULL ? how->who : "tn_graph_add_op";
    tn_node_kind kind = how->inplace ? TN_NODE_INPLACE : TN_NODE_OP;
    tn_node *space[TN_MAX_OPERANDS + 1];
    char base[TN__NAME_LONGEST + 2];
    tn_node *node;
    tn_status status;

    if (tn__build_check_place(graph, before, who) != TN_OK)
        return NULL;
    fit_inputs(how, &inputs, &n_inputs, space);
    tn_snprint(base, sizeof base, how->inplace ? "%s_" : "%s", how->op->def.name);
    node = tn__graph_node_new(graph, kind, how->name != NULL ? how->name : base, how->name != NULL,
                              n_inputs, how->op->def.n_outputs);
    if (node == NULL)
        return NULL;
    node->op = how->op;
    node->no_grad = how->no_grad;
    status = fill_options(node, how->spec);
    if (status == TN_OK)
        status = resolve_marks(node, how);
    if (status == TN_OK)
        status = use_inputs(node, inputs, who);
    if (status == TN_OK)
        status = tn__lint_infer(node);
    if (status != TN_OK) {
        tn__graph_node_undo(node);
        return NULL;
    }
    return tn__build_link(node, before);
}

tn_node *tn__build_call(tn_graph *graph, tn_node *before, tn__callee *callee, const char *target,
                        const char *name, tn_node *const *inputs, int64_t n_inputs,
                        const tn_meta *metas, int32_t n_out)
{
    char base[3 * TN__NAME_LONGEST];
    tn_node *node;
    tn_status status;

    tn__graph_name_of(target, base, sizeof base);
    node = tn__graph_node_new(graph, TN_NODE_CALL, name != NULL ? name : base, name != NULL,
                              n_inputs, n_out);
    if (node == NULL) {
        tn__graph_callee_drop(callee);
        return NULL;
    }
    node->callee = callee;
    if (n_out > 0)
        memcpy(node->meta, metas, (size_t)n_out * sizeof *metas);
    status = tn__graph_set_text(&node->target, target);
    for (int64_t i = 0; i < n_inputs && status == TN_OK; i++)
        status = tn__graph_node_use(node, i, inputs[i]);
    if (status != TN_OK) {
        tn__graph_node_undo(node);
        return NULL;
    }
    return tn__build_link(node, before);
}

/* Checks that there is a graph, and a list of nodes unless the count is 0. */
static bool given(const tn_graph *graph, tn_node *const *nodes, int64_t count, const char *who)
{
    char what[96];

    tn_snprint(what, sizeof what, "%s: graph", who);
    if (!tn__not_null(graph, what))
        return false;
    tn_snprint(what, sizeof what, "%s: list of nodes", who);
    if (count < 0) {
        tn_fail(TN_ERR_VALUE, "%s: negative count, got %lld; expected 0 or more", what,
                (long long)count);
        return false;
    }
    return tn__given(nodes != NULL || count == 0, what);
}

/* Parses the spec of a call and finds its operator. Returns NULL on failure; the caller frees
 * *parsed in both cases. */
static const tn_op *operator_of(const char *spec, tn__spec **parsed, const char *who)
{
    *parsed = tn__spec_parse(spec);
    if (*parsed == NULL)
        return NULL;
    if ((*parsed)->type[0] != '\0')
        return tn_op_find((*parsed)->type, 0);
    tn_fail(TN_ERR_FORMAT, "%s: wrong form, got %q; expected operator(options)", who, spec);
    return NULL;
}

tn_node *tn_graph_add_op(tn_graph *graph, tn_node *before, const char *spec, tn_node *const *inputs,
                         int64_t n_inputs)
{
    tn__spec *parsed;
    const tn_op *op;
    tn_node *node = NULL;

    if (!given(graph, inputs, n_inputs, "tn_graph_add_op") ||
        !tn__given(spec != NULL, "tn_graph_add_op: spec"))
        return NULL;
    op = operator_of(spec, &parsed, "tn_graph_add_op");
    if (op != NULL)
        node = tn__build_op(graph, before, &(tn__built){ .op = op, .spec = parsed }, inputs,
                            n_inputs);
    tn__spec_free(parsed);
    return node;
}

tn_node *tn_graph_add_inplace(tn_graph *graph, tn_node *before, const char *spec, tn_node *into,
                              tn_node *const *inputs, int64_t n_inputs)
{
    tn__spec *parsed;
    const tn_op *op;
    tn_node **all, *node = NULL;

    if (!given(graph, inputs, n_inputs, "tn_graph_add_inplace") ||
        !tn__given(spec != NULL, "tn_graph_add_inplace: spec") ||
        tn__graph_value_check(graph, into, false, "tn_graph_add_inplace: into") != TN_OK)
        return NULL;
    op = operator_of(spec, &parsed, "tn_graph_add_inplace");
    all = op != NULL ? tn_malloc(((size_t)n_inputs + 1) * sizeof *all) : NULL;
    if (all != NULL) {
        if (n_inputs > 0)
            memcpy(all, inputs, (size_t)n_inputs * sizeof *all);
        all[n_inputs] = into;
        node = tn__build_op(
            graph, before,
            &(tn__built){
                .op = op, .spec = parsed, .who = "tn_graph_add_inplace", .inplace = true },
            all, n_inputs + 1);
    }
    tn_free(all);
    tn__spec_free(parsed);
    return node;
}

/* Appends the options of a call as text. The program's options struct may be older or newer than
 * that of the library, and therefore smaller or larger. */
static tn_status print_options(const tn_op *op, const void *options, tn__text *text)
{
    void *full = tn_malloc(op->def.options_size);
    tn_status status = TN_ERR_MEMORY;

    if (full != NULL)
        status = tn__call_options_whole(&op->def, options, full);
    if (status == TN_OK)
        tn__options_print(op->def.options, full, true, text);
    tn_free(full);
    return status;
}

tn_node *tn__build_recorded(tn_graph *graph, tn_node *before, const tn_op *op, const void *options,
                            tn_node *const *inputs, int64_t n_inputs, bool inplace)
{
    tn__text text = { 0 };
    tn__spec *parsed = NULL;
    tn_node *node = NULL;
    char *spec;

    tn__text_add(&text, "%s(", op->def.name);
    if (options != NULL && op->def.options != NULL && print_options(op, options, &text) != TN_OK) {
        tn__text_free(&text);
        return NULL;
    }
    tn__text_put(&text, ")", 1);
    spec = tn__text_take(&text);
    if (spec != NULL)
        parsed = tn__spec_parse(spec);
    if (parsed != NULL)
        node = tn__build_op(
            graph, before,
            &(tn__built){
                .op = op, .spec = parsed, .who = "tn_graph_add_call", .inplace = inplace },
            inputs, n_inputs);
    tn__spec_free(parsed);
    tn_free(spec);
    return node;
}

tn_node *tn_graph_add_call(tn_graph *graph, tn_node *before, const tn_op *op, const void *options,
                           tn_node *const *inputs, int64_t n_inputs)
{
    if (!given(graph, inputs, n_inputs, "tn_graph_add_call") ||
        !tn__not_null(op, "tn_graph_add_call: op"))
        return NULL;
    return tn__build_recorded(graph, before, op, options, inputs, n_inputs, false);
}

/* ---- outputs --------------------------------------------------------------------------------- */

tn_status tn_graph_output(tn_graph *graph, tn_node *const *values, int64_t count)
{
    tn_node *node;
    tn_status status = TN_OK;

    if (!given(graph, values, count, "tn_graph_output"))
        return tn_error_last_code();
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = tn__graph_value_check(graph, values[i], false, "tn_graph_output: value");
    if (status != TN_OK)
        return status;
    node = tn__graph_node_new(graph, TN_NODE_OUTPUT, "output", false, count, 0);
    if (node == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = tn__graph_node_use(node, i, values[i]);
    if (status != TN_OK) {
        tn__graph_node_undo(node);
        return status;
    }
    if (graph->output != NULL)
        tn__graph_node_remove(graph->output);
    graph->output = node;
    tn__graph_node_link(node, NULL);
    return TN_OK;
}

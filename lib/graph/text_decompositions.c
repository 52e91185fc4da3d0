/* SPDX-License-Identifier: MIT
 *
 * With what this file collects, a process without a plugin can read the text of a graph that
 * calls operators of the plugin: the revisions of all operators and, for operators of plugins
 * that do not come with Tenon, the decompositions. A decomposition is a graph whose inputs are
 * those of the call; it is for the options of the call and the types of its inputs.
 * text_functions.c reads both. */
#include "core/base/vector.h"
#include "lib/graph/private.h"

enum { DEEPEST = 16 };

struct row {
    const tn_op *op;
    bool without; /* some call of the operator has no decomposition */
};

struct function {
    const tn_op *op;
    char *key, *text;
};

struct collecting {
    struct row *rows;
    int64_t n_rows, rows_capacity;
    struct function *functions; /* a function comes after the functions that it uses */
    int64_t n_functions, functions_capacity;
    int depth;
};

void tn__text_decompositions_key(tn__text *text, const char *name, const char *options,
                                 tn_node *const *in, int64_t n_in)
{
    tn__text_add(text, "%s", name);
    if (options != NULL && options[0] != '\0')
        tn__text_add(text, "[%s]", options);
    tn__text_put(text, "(", 1);
    for (int64_t i = 0; i < n_in; i++) {
        tn__text_add(text, "%s", i > 0 ? ", " : "");
        if (tn__graph_is_none(in[i]))
            tn__text_add(text, "none");
        else
            tn__text_type(text, in[i], 0);
    }
    tn__text_put(text, ")", 1);
}

bool tn__text_decompositions_foreign(const tn_op *op)
{
    return strncmp(op->id, "tenon.", 6) != 0;
}

/* ---- one decomposition ----------------------------------------------------------------------- */

struct making {
    tn__symbols_make make; /* first: make_at gets its address */
    const tn_node *node;
};

static int64_t inputs_of(const tn_node *node)
{
    return node->n_in - (node->kind == TN_NODE_INPLACE);
}

/* Adds an input like an input of the node, for these values of the symbols. */
static tn_node *add_input(tn_graph *graph, const tn_node *node, int64_t index,
                          const int64_t *symbols)
{
    const tn_node *like = node->in[index];
    tn_node *input = tn__graph_node_new(graph, TN_NODE_INPUT, tn__operand(node->op, index)->name,
                                        false, 0, 1);

    if (input == NULL)
        return NULL;
    input->meta[0] = like->meta[0];
    for (int64_t i = 0; i < like->n_exprs && symbols != NULL; i++)
        if (like->exprs[i].row == -1 && like->exprs[i].item < input->meta->ndim)
            input->meta->shape[like->exprs[i].item] = tn__symbols_value(&like->exprs[i], symbols);
    if (symbols != NULL)
        tn__op_meta_strides(input->meta);
    graph->n_inputs++;
    tn__graph_node_link(input, NULL);
    return input;
}

/* Adds the call to a graph that has only its inputs, and replaces it by its decomposition. */
static tn_status add_call(tn_graph *graph, const tn_node *node, tn_node *const *inputs,
                          const int64_t *symbols)
{
    void *options = NULL;
    tn_status status = symbols != NULL && node->options != NULL
                           ? tn__symbols_options(node, symbols, &options)
                           : TN_OK;
    tn_node *call, *few, **out;

    if (status != TN_OK)
        return status;
    call = tn__build_recorded(graph, NULL, node->op, options != NULL ? options : node->options,
                              inputs, inputs_of(node), false);
    tn_free(options);
    if (call == NULL)
        return tn_error_last_code();
    few = call;
    out = call->items != NULL ? call->items : &few;
    status = tn_graph_output(graph, out, call->n_out);
    if (status == TN_OK)
        status = tn_node_expand(call);
    if (status == TN_OK && tn_graph_dead_code(graph) < 0)
        status = tn_error_last_code();
    return status;
}

/* Checks that a decomposition has no slots or constants, and as many inputs as the call. */
static tn_status check(const tn_graph *graph, int64_t n_in)
{
    for (const tn_node *node = graph->first; node != NULL; node = node->next)
        if (node->kind == TN_NODE_SLOT || node->kind == TN_NODE_CONSTANT)
            return tn_fail(TN_ERR_NOT_IMPLEMENTED, "a decomposition has a tensor of its own");
    return graph->n_inputs == n_in ? TN_OK
                                   : tn_fail(TN_ERR_RUNTIME, "a decomposition loses an input");
}

static tn_graph *make_at(const tn__symbols_make *make, const int64_t *symbols)
{
    const tn_node *node = ((const struct making *)(const void *)make)->node;
    int64_t n_in = inputs_of(node), given = 0;
    tn_node **inputs = tn_malloc(((size_t)n_in + 1) * sizeof(tn_node *));
    tn_graph *graph = tn_graph_new();
    tn_status status = inputs != NULL && graph != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < n_in && status == TN_OK; i++) {
        inputs[i] = TN_NODE_NONE;
        if (tn__graph_is_none(node->in[i]))
            continue;
        if (node->in[i]->meta->ndim < 0)
            status = tn_fail(TN_ERR_NOT_IMPLEMENTED, "only a run knows the shape of an input");
        else if ((inputs[i] = add_input(graph, node, i, symbols)) == NULL)
            status = tn_error_last_code();
        given++;
    }
    if (status == TN_OK)
        status = add_call(graph, node, inputs, symbols);
    if (status == TN_OK)
        status = check(graph, given);
    if (status == TN_OK)
        status = tn_graph_lint(graph);
    if (status == TN_OK)
        status = tn__graph_set_text(&graph->type, node->op->def.name);
    tn_free(inputs);
    if (status == TN_OK)
        return graph;
    tn_graph_drop(graph);
    return NULL;
}

/* Returns the decomposition of a call. */
static tn_graph *decomposed(const tn_node *node)
{
    const struct making making = { { make_at }, node };
    const tn_op_def *def = &node->op->def;
    tn_graph *graph;

    if (def->decompose == NULL || def->decompose_dtypes != 0 || def->n_outputs == 0) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED, "operator %q has no decomposition", def->name);
        return NULL;
    }
    if (node->graph->n_symbols > 0)
        return tn__symbols_fit(&making.make, node->graph);
    graph = make_at(&making.make, NULL);
    if (graph != NULL && tn__trace_has_sizes(graph))
        graph->fixed = TN__FIXED_BY_TRACE;
    return graph;
}

/* ---- all of a graph -------------------------------------------------------------------------- */

static tn_status collect(struct collecting *c, const tn_graph *graph);

/* Returns the row of an operator, which it adds if there is none. */
static struct row *row_of(struct collecting *c, const tn_op *op)
{
    for (int64_t i = 0; i < c->n_rows; i++) {
        if (strcmp(c->rows[i].op->def.name, op->def.name) != 0)
            continue;
        if (c->rows[i].op == op)
            return &c->rows[i];
        tn_fail(TN_ERR_VALUE,
                "tn_graph_operators: operator %q: two revisions, %u and %u; expected one",
                op->def.name, c->rows[i].op->def.revision, op->def.revision);
        return NULL;
    }
    if (!tn__vector_room(&c->rows, &c->rows_capacity, c->n_rows + 1, sizeof *c->rows))
        return NULL;
    c->rows[c->n_rows] = (struct row){ .op = op };
    return &c->rows[c->n_rows++];
}

static char *key_of(const tn_node *node)
{
    tn__text options = { 0 }, key = { 0 };
    char *text;

    tn__text_options(&options, node);
    text = tn__text_take(&options);
    if (text == NULL)
        return NULL;
    tn__text_decompositions_key(&key, node->op->def.name, text, node->in, inputs_of(node));
    tn_free(text);
    return tn__text_take(&key);
}

static char *text_of(const tn_graph *graph)
{
    int64_t length = tn_graph_print(graph, "text", NULL, 0);
    char *text = length >= 0 ? tn_malloc((size_t)length + 1) : NULL;

    if (text != NULL && tn_graph_print(graph, "text", text, (size_t)length + 1) == length)
        return text;
    tn_free(text);
    return NULL;
}

/* Adds a decomposition, after those that it uses. Takes over the key. */
static tn_status add_function(struct collecting *c, const tn_node *node, const tn_graph *graph,
                              char *key)
{
    char *text;
    tn_status status;

    c->depth++;
    status = collect(c, graph);
    c->depth--;
    text = status == TN_OK ? text_of(graph) : NULL;
    if (text != NULL && tn__vector_room(&c->functions, &c->functions_capacity, c->n_functions + 1,
                                        sizeof *c->functions)) {
        c->functions[c->n_functions++] = (struct function){ node->op, key, text };
        return TN_OK;
    }
    tn_free(text);
    tn_free(key);
    return status == TN_OK ? TN_ERR_MEMORY : status;
}

static tn_status add_node(struct collecting *c, const tn_node *node)
{
    struct row *row = row_of(c, node->op);
    uint64_t mark = tn_error_mark();
    int64_t at;
    tn_graph *graph;
    char *key;
    tn_status status;

    if (row == NULL)
        return tn_error_last_code();
    if (row->without || !tn__text_decompositions_foreign(node->op))
        return TN_OK;
    key = key_of(node);
    if (key == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < c->n_functions; i++)
        if (strcmp(c->functions[i].key, key) == 0) {
            tn_free(key);
            return TN_OK;
        }
    at = row - c->rows; /* the rows may move */
    graph = c->depth < DEEPEST ? decomposed(node) : NULL;
    status = graph != NULL ? add_function(c, node, graph, key) : TN_ERR_NOT_IMPLEMENTED;
    if (graph == NULL) {
        tn_free(key);
        if (c->depth < DEEPEST)
            status = tn_error_last_code();
    }
    tn_graph_drop(graph);
    if (status == TN_OK || status == TN_ERR_MEMORY)
        return status;
    tn_error_restore(mark);
    c->rows[at].without = true;
    return TN_OK;
}

static tn_status collect(struct collecting *c, const tn_graph *graph)
{
    tn_status status = TN_OK;

    for (const tn_node *node = graph->steps; node != NULL && status == TN_OK; node = node->next) {
        if (node->op != NULL && node->kind != TN_NODE_ITEM)
            status = add_node(c, node);
        for (int i = 0; i < 2 && tn__graph_has_blocks(node) && status == TN_OK; i++)
            status = collect(c, node->blocks[i]);
    }
    return status;
}

/* Adds rows for the operators of a graph: a decomposition that calls one of them in another
 * revision is of no use. */
static tn_status add_rows(struct collecting *c, const tn_graph *graph)
{
    tn_status status = TN_OK;

    for (const tn_node *node = graph->steps; node != NULL && status == TN_OK; node = node->next) {
        if (node->op != NULL && row_of(c, node->op) == NULL)
            status = tn_error_last_code();
        for (int i = 0; i < 2 && tn__graph_has_blocks(node) && status == TN_OK; i++)
            status = add_rows(c, node->blocks[i]);
    }
    return status;
}

static tn_status give(struct collecting *c, tn_state *operators)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < c->n_rows && status == TN_OK; i++)
        status = tn_state_set_value(operators, c->rows[i].op->def.name,
                                    tn_value_int(c->rows[i].op->def.revision));
    for (int64_t i = 0; i < c->n_functions && status == TN_OK; i++)
        if (!row_of(c, c->functions[i].op)->without)
            status = tn_state_set_value(operators, c->functions[i].key,
                                        tn_value_string(c->functions[i].text));
    return status;
}

tn_status tn_graph_operators(tn_graph *const *graphs, int64_t count, tn_state *operators)
{
    struct collecting c = { .depth = 0 };
    tn_status status = TN_OK;

    if (!tn__given(graphs != NULL || count <= 0, "tn_graph_operators: graphs") ||
        !tn__given(operators != NULL, "tn_graph_operators: operators"))
        return tn_error_last_code();
    if (count < 1)
        return tn_fail(TN_ERR_VALUE,
                       "tn_graph_operators: graphs: wrong count, got %lld; expected 1 or more",
                       (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (!tn__not_null(graphs[i], "tn_graph_operators: graphs"))
            return tn_error_last_code();
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = add_rows(&c, graphs[i]);
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = collect(&c, graphs[i]);
    if (status == TN_OK)
        status = give(&c, operators);
    for (int64_t i = 0; i < c.n_functions; i++) {
        tn_free(c.functions[i].key);
        tn_free(c.functions[i].text);
    }
    tn_free(c.functions);
    tn_free(c.rows);
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * Operators that a process lacks: where a text calls one, the nodes of its decomposition take the
 * place of the call. The decompositions come with the text (text_decompositions.c) and are not
 * trusted either: a function uses only functions before it, so none can lead to itself, and the
 * number of nodes that all of them make is limited. */
#include "core/base/vector.h"
#include "lib/graph/text_read.h"
#include "core/op/needed.h"

enum { MOST_FUNCTIONS = 1 << 12, MOST_NODES = 1 << 18 };

/* ---- looking up ------------------------------------------------------------------------------ */

const tn_op *tn__graph_functions_op(const tn__functions *functions, const char *name)
{
    int64_t at = functions != NULL && functions->operators != NULL
                     ? tn_state_find(functions->operators, name)
                     : -1;
    tn_value value = at >= 0 ? tn_state_value(functions->operators, at) : tn_value_none();
    bool known = value.kind == TN_VALUE_INT && value.as.i > 0 && value.as.i <= UINT32_MAX;

    return tn_op_find(name, known ? (uint32_t)value.as.i : 0);
}

static const tn__function *find(const tn__reader *r, const char *name, const char *options,
                                tn_node *const *in, int64_t n_in)
{
    const tn__functions *all = r->functions;
    tn__text text = { 0 };
    const tn__function *found = NULL;
    char *key;

    for (int64_t i = 0; i < n_in; i++)
        if (!tn__graph_is_none(in[i]) && in[i]->n_out != 1)
            return NULL;
    tn__text_decompositions_key(&text, name, options, in, n_in);
    key = tn__text_take(&text);
    for (int64_t i = 0; key != NULL && i < all->count && found == NULL; i++)
        if (strcmp(all->at[i].key, key) == 0)
            found = &all->at[i];
    tn_free(key);
    return found;
}

/* Returns whether some decomposition is for this operator, even one that has not been read yet. */
static bool has(const tn__functions *all, const char *name)
{
    size_t length = strlen(name);
    int64_t count = all != NULL && all->operators != NULL ? tn_state_count(all->operators) : 0;

    for (int64_t i = 0; i < count; i++) {
        const char *key = tn_state_name(all->operators, i);

        if (strncmp(key, name, length) == 0 && (key[length] == '[' || key[length] == '('))
            return true;
    }
    return false;
}

/* ---- nodes of a function in the place of a call ---------------------------------------------- */

/* Counts the nodes of a graph, and of its blocks. */
static int64_t size_of(const tn_graph *graph)
{
    int64_t size = 0;

    for (const tn_node *node = graph->first; node != NULL; node = node->next) {
        size++;
        for (int i = 0; i < 2 && tn__graph_has_blocks(node); i++)
            size += size_of(node->blocks[i]);
    }
    return size;
}

/* Fails unless the function has as many inputs as the call gives tensors, and either no symbols or
 * those of the graph. (check_type() compares the types.) Raises r->least to the least sizes that
 * the function is for. */
static tn_status check_call(tn__reader *r, const tn__function *function, tn_node *const *in,
                            int64_t n_in)
{
    const tn_graph *graph = function->graph;
    int64_t given = 0;

    for (int64_t i = 0; i < n_in; i++)
        given += !tn__graph_is_none(in[i]);
    if (given != graph->n_inputs)
        return tn_fail(TN_ERR_FORMAT,
                       "decomposition %q: wrong number of inputs, got %lld; expected %lld",
                       function->key, (long long)graph->n_inputs, (long long)given);
    if (graph->n_symbols > 0 && graph->n_symbols != r->graph->n_symbols)
        return tn_fail(TN_ERR_FORMAT,
                       "decomposition %q: wrong sizes that vary; expected those of "
                       "the graph",
                       function->key);
    for (int32_t s = 0; s < graph->n_symbols; s++) {
        const tn__symbol *got = &graph->symbols[s], *expected = &r->graph->symbols[s];

        if (strcmp(got->name, expected->name) != 0 || got->value != expected->value)
            return tn_fail(TN_ERR_FORMAT,
                           "decomposition %q: wrong size, got %s = %lld; expected %s = %lld",
                           function->key, got->name, (long long)got->value, expected->name,
                           (long long)expected->value);
        if (r->least[s] < graph->symbols[s].least)
            r->least[s] = graph->symbols[s].least;
    }
    return TN_OK;
}

/* Fails unless an input of a function has the type of the value that the call gives it. */
static tn_status check_type(const tn__function *function, const tn_node *input,
                            const tn_node *value)
{
    tn__text a = { 0 }, b = { 0 };
    char *expected, *got;
    tn_status status = TN_OK;

    tn__text_type(&a, value, 0);
    tn__text_type(&b, input, 0);
    expected = tn__text_take(&a);
    got = tn__text_take(&b);
    if (expected == NULL || got == NULL)
        status = TN_ERR_MEMORY;
    else if (strcmp(expected, got) != 0)
        status = tn_fail(TN_ERR_FORMAT,
                         "decomposition %q: input %s: wrong type, got %s; expected %s",
                         function->key, input->name, got, expected);
    tn_free(expected);
    tn_free(got);
    return status;
}

/* Adds a node like one of a function. `copies` is indexed by the ids of the nodes of the function.
 */
static tn_node *add_node(tn_graph *graph, const tn_node *from, tn_node *const *copies)
{
    tn_node **in = tn_malloc(((size_t)from->n_in + 1) * sizeof *in), *node = NULL;
    bool inplace = from->kind == TN_NODE_INPLACE;
    tn_graph *blocks[2];

    for (int64_t i = 0; in != NULL && i < from->n_in; i++)
        in[i] = tn__graph_is_none(from->in[i]) ? TN_NODE_NONE : copies[from->in[i]->id];
    if (in != NULL && tn__graph_has_blocks(from)) {
        for (int i = 0; i < 2; i++)
            blocks[i] = tn_graph_copy(from->blocks[i]);
        if (blocks[0] != NULL && blocks[1] != NULL)
            node = tn__blocks_build(graph, NULL, from->kind, NULL, blocks, from->most, in,
                                    from->n_in, NULL);
        else
            for (int i = 0; i < 2; i++)
                tn_graph_drop(blocks[i]);
    } else if (in != NULL) {
        node = tn__build_recorded(graph, NULL, from->op, from->options, in, from->n_in, inplace);
    }
    tn_free(in);
    for (int64_t i = 0; node != NULL && i < from->n_exprs; i++)
        if (tn__symbols_add(node, &from->exprs[i]) != TN_OK)
            return NULL;
    if (node != NULL)
        node->no_grad = from->no_grad;
    return node;
}

/* Stores which node is the copy of a node of a function, and the same for its items. */
static tn_status note(const tn_node *from, tn_node *node, tn_node **copies)
{
    copies[from->id] = node;
    for (int32_t i = 0; from->items != NULL && i < from->n_out; i++) {
        copies[from->items[i]->id] = node->items[i];
        for (int64_t k = 0; k < from->items[i]->n_exprs; k++)
            if (tn__symbols_add(node->items[i], &from->items[i]->exprs[k]) != TN_OK)
                return TN_ERR_MEMORY;
    }
    return TN_OK;
}

/* Adds the nodes of a function. `copies` has room for all its nodes. */
static tn_status add_nodes(tn__reader *r, const tn__function *function, tn_node *const *in,
                           tn_node **copies, bool no_grad)
{
    tn_status status = TN_OK;

    for (const tn_node *from = function->graph->first; from != NULL && status == TN_OK;
         from = from->next) {
        tn_node *node;

        if (from->kind == TN_NODE_INPUT) {
            while (tn__graph_is_none(*in))
                in++;
            copies[from->id] = *in;
            status = check_type(function, from, *in++);
        } else if (from->kind != TN_NODE_ITEM && from->kind != TN_NODE_OUTPUT) {
            node = add_node(r->graph, from, copies);
            status = node != NULL ? note(from, node, copies) : tn_error_last_code();
            for (tn_node *made = node; made != NULL && status == TN_OK; made = made->next) {
                made->generated = true;
                made->no_grad |= no_grad && made == node;
            }
            if (r->made == NULL)
                r->made = node;
        }
    }
    return status;
}

/* Gives another name to a node that a function has made and that has this name, unless it is
 * `value`. */
static tn_status free_name(tn_graph *graph, const char *name, const tn_node *value)
{
    int64_t place = tn__name_table_find(&graph->names, name, strlen(name));
    tn_node *node = place >= 0 ? graph->named[place].node : NULL;
    char other[3 * TN__NAME_LONGEST + 24];

    if (node == NULL || node == value || !node->generated)
        return TN_OK;
    do
        tn_snprint(other, sizeof other, "%s_%lld", name, (long long)++graph->named[place].next);
    while (tn__name_table_find(&graph->names, other, strlen(other)) >= 0);
    return tn__graph_node_rename(node, other);
}

/* Adds a copy of a value. */
static tn_node *add_copy(tn__reader *r, tn_node *value)
{
    tn_node *node = tn__build_recorded(r->graph, NULL, tn__op_needed(TN__NEED_copy), NULL, &value,
                                       1, false);

    for (int64_t i = 0; node != NULL && i < value->n_exprs; i++)
        if (value->exprs[i].row == -1 && tn__symbols_add(node, &value->exprs[i]) != TN_OK)
            return NULL;
    if (node == NULL)
        return NULL;
    node->generated = true;
    if (r->made == NULL)
        r->made = node;
    return node;
}

/* Gives a value the name that it has in the text. A value that has one already, such as an input
 * that the function returns, is copied. */
static tn_node *name_value(tn__reader *r, tn_node *value, const char *name)
{
    if (free_name(r->graph, name, value) != TN_OK)
        return NULL;
    if (!value->generated)
        value = add_copy(r, value);
    if (value == NULL || tn__graph_node_rename(value, name) != TN_OK)
        return NULL;
    value->generated = false;
    return value;
}

/* Writes the result of a function into a tensor, as a call that works in place does. */
static tn_node *write_value(tn__reader *r, tn_node *value, tn_node *into, const char *name)
{
    tn_node *const in[] = { value, into };
    tn_node *node = NULL;

    if (free_name(r->graph, name, NULL) == TN_OK)
        node = tn__build_recorded(r->graph, NULL, tn__op_needed(TN__NEED_copy), NULL, in, 2, true);
    if (node != NULL && r->made == NULL)
        r->made = node;
    return node != NULL && tn__graph_node_rename(node, name) == TN_OK ? node : NULL;
}

/* Keeps the values of a call with several results for the line that gives them names. */
static tn_status keep_values(tn__reader *r, const tn_node *output, tn_node *const *copies)
{
    tn__results *results = tn__arena_alloc(r->arena, sizeof *results);
    tn_node **values = tn__arena_alloc(r->arena, (size_t)output->n_in * sizeof *values);

    if (results == NULL || values == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < output->n_in; i++)
        values[i] = copies[output->in[i]->id];
    *results = (tn__results){ r->left[0].name, values, output->n_in, r->results };
    r->results = results;
    return TN_OK;
}

static tn_status inline_call(tn__reader *r, const tn__function *function, tn_node *const *in,
                             int64_t n_in, tn_node *into, bool no_grad, tn_node **node)
{
    const tn_graph *graph = function->graph;
    const tn_node *output = graph->output;
    tn_node **copies;
    tn_status status = check_call(r, function, in, n_in);

    if (status != TN_OK)
        return status;
    if (into != NULL && output->n_in != 1)
        return tn_fail(TN_ERR_FORMAT,
                       "decomposition %q: wrong number of results for a call that "
                       "writes into a tensor, got %lld; expected one",
                       function->key, (long long)output->n_in);
    r->functions->nodes += function->nodes;
    if (r->functions->nodes > MOST_NODES)
        return tn_fail(TN_ERR_FORMAT,
                       "decomposition %q: the decompositions make too many nodes; expected at "
                       "most %d",
                       function->key, MOST_NODES);
    copies = tn_calloc((size_t)graph->next_id + 1, sizeof *copies);
    if (copies == NULL)
        return TN_ERR_MEMORY;
    status = add_nodes(r, function, in, copies, no_grad);
    if (status == TN_OK && output->n_in > 1)
        status = keep_values(r, output, copies);
    else if (status == TN_OK && into != NULL)
        *node = write_value(r, copies[output->in[0]->id], into, r->left[0].name);
    else if (status == TN_OK)
        *node = name_value(r, copies[output->in[0]->id], r->left[0].name);
    if (status == TN_OK && output->n_in == 1 && *node == NULL)
        status = tn_error_last_code();
    tn_free(copies);
    r->fixed |= graph->fixed != NULL;
    return status;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static tn_status lacks(const tn__reader *r, const char *name, const char *options)
{
    const tn__functions *all = r->functions;
    int64_t at = tn_state_find(all->operators, name);
    tn_value revision = at >= 0 ? tn_state_value(all->operators, at) : tn_value_none();
    tn__text text = { 0 };
    tn_status status;
    char *key;

    tn__text_decompositions_key(&text, name, options, r->nodes, r->n_nodes);
    key = tn__text_take(&text);
    status = key == NULL
                 ? TN_ERR_MEMORY
                 : tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "operator %q: no plugin provides its revision %lld, and no "
                           "decomposition before this place is for %s; expected one of the two",
                           name, revision.kind == TN_VALUE_INT ? (long long)revision.as.i : 0, key);
    tn_free(key);
    return status;
}

tn_status tn__graph_functions_call(tn__reader *r, const char *name, const char *options,
                                   tn_node *out, bool no_grad, tn_node **node)
{
    size_t length = strlen(name);
    bool written = !has(r->functions, name) && length > 1 && name[length - 1] == '_';
    const tn__function *function;
    int64_t skipped = 0;

    *node = NULL;
    if (written && (name = tn__arena_text(r->arena, name, length - 1)) == NULL)
        return TN_ERR_MEMORY;
    function = find(r, name, options, r->nodes, r->n_nodes);
    if (function == NULL && written && r->n_nodes > 0) { /* the first value is only written */
        skipped = 1;
        function = find(r, name, options, r->nodes + 1, r->n_nodes - 1);
    }
    if (function == NULL)
        return tn_error_last_code() == TN_ERR_MEMORY ? TN_ERR_MEMORY : lacks(r, name, options);
    if (written && r->n_nodes == 0)
        return tn__graph_read_wrong(r, "the value that is written");
    if (written)
        out = r->nodes[0];
    /* As in an eager call: the decomposition may keep its input for the derivative. */
    if (written && skipped == 0 && (r->nodes[0] = add_copy(r, out)) == NULL)
        return tn_error_last_code();
    return inline_call(r, function, r->nodes + skipped, r->n_nodes - skipped, out, no_grad, node);
}

bool tn__graph_functions_for(const tn__functions *functions, const char *name)
{
    size_t length = strcspn(name, "@");
    char base[TN__NAME_LONGEST + 2];

    if (length == 0 || length >= sizeof base)
        return false;
    tn_snprint(base, sizeof base, "%.*s", (int)length, name);
    if (has(functions, base))
        return true;
    base[length - 1] = '\0';
    return name[length - 1] == '_' && has(functions, base);
}

tn_status tn__graph_functions_unpack(tn__reader *r, const char *name, bool *found)
{
    tn__results *results = r->results;
    tn_status status = TN_OK;

    while (results != NULL && strcmp(results->name, name) != 0)
        results = results->next;
    *found = results != NULL;
    if (results == NULL)
        return TN_OK;
    if (results->count != r->n_left)
        return tn_fail(TN_ERR_VALUE,
                       "tn_graph_parse: line %lld: node %s has %lld outputs; expected a name for "
                       "each, got %lld",
                       (long long)r->number, name, (long long)results->count, (long long)r->n_left);
    for (int64_t i = 0; i < results->count && status == TN_OK; i++) {
        results->at[i] = name_value(r, results->at[i], r->left[i].name);
        status = results->at[i] != NULL ? TN_OK : tn__graph_read_here(r);
    }
    results->name = ""; /* their names are used up */
    return status;
}

tn_status tn__graph_functions_make_way(tn__reader *r)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < r->n_left && status == TN_OK && r->functions != NULL; i++)
        status = free_name(r->graph, r->left[i].name, NULL);
    return status;
}

/* ---- all functions --------------------------------------------------------------------------- */

/* Checks the key of a function. Fails if it is malformed, if `operators` has no revision of the
 * operator, or if the operator comes with Tenon. *missing: whether the process lacks the operator
 * in this revision, so that calls need the function. */
static tn_status check_name(const tn_state *operators, const char *key, bool *missing)
{
    size_t length = strcspn(key, "[(");
    char name[TN__NAME_LONGEST + 1];
    uint64_t mark = tn_error_mark();
    int64_t at;
    tn_value revision = tn_value_none();
    const tn_op *op;

    *missing = false;
    if (length == 0 || length >= sizeof name || key[length] == '\0')
        return tn_fail(TN_ERR_FORMAT,
                       "decomposition %.80q: wrong form; expected operator[options](types)", key);
    tn_snprint(name, sizeof name, "%.*s", (int)length, key);
    at = tn_state_find(operators, name);
    if (at >= 0)
        revision = tn_state_value(operators, at);
    if (revision.kind != TN_VALUE_INT || revision.as.i < 1 || revision.as.i > UINT32_MAX)
        return tn_fail(TN_ERR_FORMAT,
                       "decomposition %q: there is no revision of its operator; "
                       "expected an entry with an integer of 1 or more",
                       key);
    op = tn_op_find(name, 0);
    if (op != NULL && !tn__text_decompositions_foreign(op))
        return tn_fail(TN_ERR_REFUSED,
                       "decomposition %q: %s is an operator of %s; expected one of another plugin",
                       key, name, op->id);
    if (op != NULL && op->def.revision != (uint32_t)revision.as.i)
        op = tn_op_find(name, (uint32_t)revision.as.i);
    if (op == NULL && tn_error_last_code() == TN_ERR_MEMORY)
        return TN_ERR_MEMORY;
    *missing = op == NULL;
    tn_error_restore(mark);
    return TN_OK;
}

static tn_status add_function(tn__functions *all, const char *key, const char *text)
{
    tn_graph *graph;

    if (all->count >= MOST_FUNCTIONS)
        return tn_fail(TN_ERR_FORMAT, "decompositions: too many; expected at most %d",
                       MOST_FUNCTIONS);
    graph = tn__graph_read(text, NULL, NULL, all);
    if (graph == NULL)
        return tn_error_prefix("decomposition %q: ", key);
    all->at[all->count] = (tn__function){ key, graph, size_of(graph) };
    all->count++;
    if (graph->output->n_in < 1 || graph->inference != NULL || graph->training >= 0 ||
        graph->n_guards > 0)
        return tn_fail(
            TN_ERR_FORMAT,
            "decomposition %q: wrong form, got a graph %s; expected results, and a graph "
            "for all modes",
            key,
            graph->output->n_in < 1    ? "without results"
            : graph->inference != NULL ? "for inference only"
            : graph->training >= 0     ? "for one mode only"
                                       : "that depends on values of slots");
    return TN_OK;
}

tn_status tn__graph_functions_read(tn__functions *all, const tn_state *operators)
{
    int64_t count = operators != NULL ? tn_state_count(operators) : 0;
    tn_status status = TN_OK;

    *all = (tn__functions){ .operators = operators };
    all->at = tn_calloc((size_t)count + 1, sizeof *all->at);
    if (all->at == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        tn_value value = tn_state_value(operators, i);
        bool missing;

        if (value.kind != TN_VALUE_STRING)
            continue;
        status = check_name(operators, tn_state_name(operators, i), &missing);
        if (status == TN_OK && missing)
            status = add_function(all, tn_state_name(operators, i), value.as.s);
    }
    return status;
}

void tn__graph_functions_free(tn__functions *all)
{
    for (int64_t i = 0; i < all->count; i++)
        tn_graph_drop(all->at[i].graph);
    tn_free(all->at);
}

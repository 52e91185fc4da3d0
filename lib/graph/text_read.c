/* SPDX-License-Identifier: MIT
 *
 * Reads a graph from its text (text.c has both forms). The text may come from anywhere: length,
 * depth and number of values are limited, and every node is checked as tn_graph_add_op does. */
#include "core/base/vector.h"
#include "lib/graph/text_read.h"

enum { LONGEST = 1 << 26, MOST_NAMES = 1 << 16 };

/* ---- left sides ------------------------------------------------------------------------------ */

static tn_status read_left(tn__reader *r)
{
    tn_status status = TN_OK;

    r->n_left = 0;
    do {
        tn__left *left;

        if (r->n_left >= MOST_NAMES)
            return tn__graph_read_most(r, MOST_NAMES, "names");
        if (!tn__vector_room(&r->left, &r->left_capacity, r->n_left + 1, sizeof *r->left))
            return TN_ERR_MEMORY;
        left = &r->left[r->n_left];
        *left = (tn__left){ .name = tn__graph_read_name(r) };
        r->n_left++;
        status = left->name != NULL ? tn__graph_read_type(r, left) : tn_error_last_code();
    } while (status == TN_OK && tn__graph_read_take(r, ","));
    if (status == TN_OK && !tn__graph_read_take(r, "="))
        status = tn__graph_read_wrong(r, "=");
    return status;
}

/* Fails if a value has another type than the text says. */
static tn_status check_type(tn__reader *r, const tn__left *left, const tn_node *node)
{
    tn__text got = { 0 };
    const tn_meta *meta = node->meta;
    bool same = !left->typed || left->meta.ndim < 0 || meta->ndim < 0 ||
                (left->meta.dtype == meta->dtype && left->meta.ndim == meta->ndim);
    tn_status status;

    for (int32_t d = 0; same && left->typed && d < left->meta.ndim && d < meta->ndim; d++)
        same = left->meta.shape[d] == meta->shape[d];
    if (same)
        return TN_OK;
    tn__text_type(&got, node, 0);
    tn__text_put(&got, "", 1);
    status = tn_fail(
        TN_ERR_VALUE,
        "tn_graph_parse: line %lld: %s: wrong type; expected %s, which the operators and tensors "
        "make",
        (long long)r->number, node->name, got.failed ? "another" : got.at);
    tn__text_free(&got);
    return status;
}

/* ---- statements ------------------------------------------------------------------------------ */

tn_status tn__graph_read_arguments(tn__reader *r, tn__text *options, tn_node **out)
{
    bool first = true;
    tn_status status = TN_OK;

    while (status == TN_OK && !tn__graph_read_take(r, ")")) {
        const char *text;

        if (!first && !tn__graph_read_take(r, ","))
            return tn__graph_read_wrong(r, "a comma or )");
        first = false;
        tn__graph_read_space(r);
        if (tn__graph_read_named(r) && tn__graph_read_take(r, "out=")) {
            text = tn__graph_read_reference(r);
            *out = text != NULL ? tn__graph_read_find(r, text) : NULL;
            if (*out == NULL)
                return tn_error_last_code();
        } else if (tn__graph_read_named(r)) {
            text = tn__graph_read_raw(r, ",)");
            if (text == NULL)
                return tn_error_last_code();
            tn__text_add(options, "%s%s", options->length > 0 ? ", " : "", text);
        } else if (tn__graph_read_at_value(r)) {
            text = tn__graph_read_reference(r);
            status = text != NULL ? tn__graph_read_add(r, tn__graph_read_find(r, text))
                                  : tn_error_last_code();
        } else {
            const char *from = r->at, *wanted = r->code ? "a value or None" : "%name or none";

            text = tn__graph_read_word(r, "", wanted);
            if (text == NULL)
                return tn_error_last_code();
            if (strcmp(text, r->code ? "None" : "none") != 0) {
                r->at = from;
                return tn__graph_read_wrong(r, wanted);
            }
            status = tn__graph_read_add(r, TN_NODE_NONE);
        }
        tn__graph_read_take(r, "!");
    }
    return status;
}

/* Finds the operator of a statement. `name_` is the form of an operator that writes, `name@2` the
 * operator in revision 2. */
static const tn_op *find_op(const tn__reader *r, const char *name, bool *inplace)
{
    size_t length = strcspn(name, "@");
    uint64_t mark = tn_error_mark();
    int64_t revision = 0;
    const tn_op *op;

    if (name[length] == '@' &&
        (!tn_read_int(name + length + 1, &revision) || revision < 1 || revision > UINT32_MAX)) {
        tn_fail(TN_ERR_FORMAT,
                "operator %q: wrong revision; expected an integer of 1 or more after @", name);
        return NULL;
    }
    if (revision > 0 && (name = tn__arena_text(r->arena, name, length)) == NULL)
        return NULL;
    op = revision > 0 ? tn_op_find(name, (uint32_t)revision)
                      : tn__graph_functions_op(r->functions, name);
    *inplace = op == NULL && length > 1 && name[length - 1] == '_';
    if (!*inplace)
        return op;
    tn_error_restore(mark); /* before the next step, whose failure counts */
    name = tn__arena_text(r->arena, name, length - 1);
    if (name == NULL)
        return NULL;
    return revision > 0 ? tn_op_find(name, (uint32_t)revision)
                        : tn__graph_functions_op(r->functions, name);
}

/* Replaces the expressions among options by marks, and appends them to `exprs`. */
static tn_status mark_symbols(tn__reader *r, const char *options, tn__text *out, tn__expr **exprs,
                              int64_t *count)
{
    int64_t capacity = 0;
    char quote = '\0', before = '(';

    for (; *options != '\0'; before = *options++) {
        const char *end = NULL;
        tn__expr expr;

        if (quote != '\0' || *options == '"' || *options == '\'')
            quote = quote == '\0' ? *options : *options == quote && before != '\\' ? '\0' : quote;
        else if (strchr("(,=[ ", before) != NULL)
            end = tn__symbols_read(r->graph, options, &expr);
        if (end == NULL || (*end != '\0' && strchr(",)] ", *end) == NULL)) {
            tn__text_put(out, options, 1);
            continue;
        }
        if (*count >= TN__SYMBOL_MARKS)
            return tn__graph_read_most(r, TN__SYMBOL_MARKS, "expressions of sizes");
        if (!tn__vector_room(exprs, &capacity, *count + 1, sizeof **exprs))
            return TN_ERR_MEMORY;
        (*exprs)[*count] = expr;
        tn__text_add(out, "%lld", (long long)(TN__SYMBOL_MARK + (*count)++));
        options = end - 1;
    }
    return TN_OK;
}

static tn_node *build_op(tn__reader *r, const tn__built *found, const char *options, tn_node *out)
{
    tn__built how = *found;
    tn__text text = { 0 };
    tn__expr *exprs = NULL;
    tn__spec *spec;
    tn_node *node = NULL;
    char *whole;
    tn_status status;

    if (how.inplace && r->n_nodes == 0) {
        tn__graph_read_wrong(r, "the value that is written");
        return NULL;
    }
    if (how.inplace || out != NULL) {
        bool into = how.inplace && (how.op->def.flags & TN_OP_INTO) != 0;

        if (tn__graph_read_add(r, out != NULL ? out : r->nodes[0]) != TN_OK)
            return NULL;
        if (into) {
            memmove(r->nodes, r->nodes + 1, (size_t)(r->n_nodes - 1) * sizeof *r->nodes);
            r->n_nodes--;
        }
        how.inplace = true;
    }
    tn__text_add(&text, "%s(", how.op->def.name);
    status = mark_symbols(r, options, &text, &exprs, &how.n_exprs);
    tn__text_put(&text, ")", 1);
    whole = tn__text_take(&text);
    spec = status == TN_OK && whole != NULL ? tn__spec_parse(whole) : NULL;
    how.spec = spec;
    how.exprs = exprs;
    if (spec != NULL)
        node = tn__build_op(r->graph, NULL, &how, r->nodes, r->n_nodes);
    tn__spec_free(spec);
    tn_free(whole);
    tn_free(exprs);
    return node;
}

static tn_status read_op(tn__reader *r, const char *name, const char *options, bool no_grad,
                         tn_node **node)
{
    tn__built how = { .name = r->left[0].name, .no_grad = no_grad };
    uint64_t mark = tn_error_mark();
    tn__text more = { 0 };
    tn_node *out = NULL;
    char *all;
    tn_status status;

    tn__text_add(&more, "%s", options);
    r->n_nodes = 0;
    status = tn__graph_read_arguments(r, &more, &out);
    if (status != TN_OK) {
        tn__text_free(&more);
        return status;
    }
    all = tn__text_take(&more);
    how.op = all != NULL ? find_op(r, name, &how.inplace) : NULL;
    if (how.op != NULL) {
        *node = build_op(r, &how, all, out);
        status = *node != NULL ? TN_OK : tn_error_last_code();
    } else if (all != NULL && tn__graph_functions_for(r->functions, name)) {
        tn_error_restore(mark);
        name = tn__arena_text(r->arena, name, strcspn(name, "@"));
        status = name != NULL ? tn__graph_functions_call(r, name, all, out, no_grad, node)
                              : TN_ERR_MEMORY;
    } else {
        status = all != NULL ? tn_error_last_code() : TN_ERR_MEMORY;
    }
    tn_free(all);
    return status == TN_OK ? TN_OK : tn__graph_read_here(r);
}

/* Reads the rest of a call of a module, behind its name: the arguments and, after "->", the form of
 * the results, which may be absent. */
static tn_status read_call(tn__reader *r, const char *path, bool no_grad, tn_node **node)
{
    uint64_t mark = tn_error_mark();
    tn_pack *in = NULL, *out = NULL;
    tn_module *module = r->root != NULL ? tn_module_find(r->root, path) : NULL;
    tn__callee *callee = NULL;
    int64_t n_in, n_out = 1;
    tn_meta few = r->left[0].typed ? r->left[0].meta : (tn_meta){ .ndim = -1 }, *metas = &few;
    tn_node **nodes;
    tn_status status;

    if (module == NULL && tn_error_mark() != mark && tn_error_last_code() == TN_ERR_MEMORY)
        return TN_ERR_MEMORY;
    if (module == NULL)
        tn_error_restore(mark);
    if (module == NULL) /* PyTorch's wording */
        return tn_fail(TN_ERR_KEY,
                       "tn_graph_parse: line %lld: module %q is not installed as a "
                       "submodule",
                       (long long)r->number, path);
    r->n_nodes = 0;
    status = tn__graph_read_pack(r, TN__PLACE_ARGUMENTS, &in);
    n_in = r->n_nodes;
    nodes = tn__arena_alloc(r->arena, ((size_t)n_in + 1) * sizeof *nodes);
    if (status == TN_OK && nodes == NULL)
        status = TN_ERR_MEMORY;
    if (status == TN_OK && n_in > 0)
        memcpy(nodes, r->nodes, (size_t)n_in * sizeof *nodes);
    for (int64_t i = 0; i < n_in && status == TN_OK; i++)
        status = tn__graph_value_check(r->graph, nodes[i], false, "tn_graph_parse: argument");
    if (status == TN_OK && tn__graph_read_take(r, "->")) {
        status = tn__graph_read_take(r, "(") ? tn__graph_read_pack(r, TN__PLACE_RESULTS, &out)
                                             : tn__graph_read_wrong(r, "(");
    }
    if (status == TN_OK && out != NULL) {
        n_out = tn__values_count(out, "tn_graph_parse: results");
        metas = tn__arena_alloc(r->arena, ((size_t)(n_out > 0 ? n_out : 1)) * sizeof *metas);
        status = n_out < 0 ? tn_error_last_code() : metas == NULL ? TN_ERR_MEMORY : TN_OK;
        for (int64_t i = 0; i < n_out && status == TN_OK; i++)
            metas[i] = n_out == 1 ? few : (tn_meta){ .dtype = TN_DTYPE_AUTO, .ndim = -1 };
    }
    if (status == TN_OK) {
        tn__op_meta_strides(&metas[0]);
        callee = tn__graph_callee_new(module, in, out);
        *node = callee != NULL ? tn__build_call(r->graph, NULL, callee, path, r->left[0].name,
                                                nodes, n_in, metas, (int32_t)n_out)
                               : NULL;
        status = *node != NULL ? TN_OK : tn__graph_read_here(r);
    }
    if (status == TN_OK)
        (*node)->no_grad = no_grad;
    tn_pack_drop(in);
    tn_pack_drop(out);
    return status;
}

/* Reads "a, b = op" or "%a, %b = prim::TupleUnpack(%op)": names and types for the outputs. */
static tn_status read_unpack(tn__reader *r, const char *name)
{
    bool found;
    tn_status status = tn__graph_functions_unpack(r, name, &found);
    tn_node *node = status == TN_OK && !found ? tn__graph_read_find(r, name) : NULL;

    if (found)
        return status;
    if (node == NULL)
        return tn_error_last_code();
    if (node->items == NULL || node->n_out != r->n_left)
        return tn_fail(TN_ERR_VALUE,
                       "tn_graph_parse: line %lld: node %s has %d outputs; expected a name for "
                       "each, got %lld",
                       (long long)r->number, node->name, (int)node->n_out, (long long)r->n_left);
    for (int64_t i = 0; i < r->n_left && status == TN_OK; i++) {
        tn_node *item = node->items[i];

        status = tn__graph_node_rename(item, r->left[i].name);
        if (status == TN_OK && node->kind == TN_NODE_CALL && r->left[i].typed) {
            tn__op_meta_strides(&r->left[i].meta);
            item->meta[0] = node->meta[i] = r->left[i].meta;
        }
        if (status == TN_OK)
            status = check_type(r, &r->left[i], item);
        if (status == TN_OK)
            status = tn__graph_read_symbols(item, 0, &r->left[i]);
        if (status == TN_OK)
            status = tn__graph_read_symbols(node, (int32_t)i, &r->left[i]);
    }
    return status == TN_OK ? TN_OK : tn__graph_read_here(r);
}

/* Reads [name="..."]. */
static const char *read_target(tn__reader *r)
{
    tn_value value;
    const char *text = NULL;

    if (tn__graph_read_take(r, "[name="))
        text = tn__graph_read_raw(r, "]");
    else
        tn__graph_read_wrong(r, "[name=\"...\"]");
    if (text == NULL || tn__spec_parse_value(text, r->arena, &value) != TN_OK)
        return NULL;
    if (value.kind != TN_VALUE_STRING || !tn__graph_read_take(r, "](")) {
        tn__graph_read_wrong(r, "a text in quotes, and then ](");
        return NULL;
    }
    return value.as.s;
}

static tn_status read_prim(tn__reader *r, const char *name, bool no_grad,
                           struct tn__alias **aliases, tn_node **node)
{
    bool attribute = strcmp(name, "prim::GetAttr") == 0;

    if (strcmp(name, "prim::TupleUnpack") == 0) {
        if (!tn__graph_read_take(r, "(") || (name = tn__graph_read_name(r)) == NULL ||
            !tn__graph_read_take(r, ")"))
            return tn__graph_read_wrong(r, "(%name)");
        return read_unpack(r, name);
    }
    if (attribute || strcmp(name, "prim::Constant") == 0) {
        const char *path = read_target(r);

        if (path == NULL || !tn__graph_read_take(r, attribute ? "%self)" : ")"))
            return path == NULL ? tn_error_last_code() : tn__graph_read_wrong(r, "(%self)");
        if (attribute && r->left[0].is_module) {
            struct tn__alias *alias = tn__arena_alloc(r->arena, sizeof *alias);

            if (alias == NULL)
                return TN_ERR_MEMORY;
            *alias = (struct tn__alias){ r->left[0].name, path, *aliases };
            *aliases = alias;
            return TN_OK;
        }
        *node = tn__graph_read_leaf(r, attribute ? TN_NODE_SLOT : TN_NODE_CONSTANT, path,
                                    r->left[0].name);
        return *node != NULL ? TN_OK : tn_error_last_code();
    }
    if (strcmp(name, "prim::CallMethod") == 0) {
        const char *self = read_target(r) != NULL ? tn__graph_read_name(r) : NULL;
        const struct tn__alias *alias = *aliases;

        while (self != NULL && alias != NULL && strcmp(alias->name, self) != 0)
            alias = alias->next;
        if (self == NULL || alias == NULL)
            return self == NULL ? tn_error_last_code()
                                : tn__graph_read_wrong(r, "a module that prim::GetAttr has found");
        tn__graph_read_take(r, ",");
        return read_call(r, alias->path, no_grad, node);
    }
    if (strcmp(name, "prim::If") == 0 || strcmp(name, "prim::Loop") == 0)
        return tn__graph_read_control(r, name[6] == 'I' ? TN_NODE_IF : TN_NODE_LOOP, no_grad, node);
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "tn_graph_parse: line %lld: %s: a graph with such nodes has no text that can be "
                   "read; expected the graph before it was compiled",
                   (long long)r->number, name);
}

/* Reads the right side of a statement. *node is the node that it makes, or NULL. */
static tn_status read_right(tn__reader *r, struct tn__alias **aliases, tn_node **node)
{
    const char *name, *options = "";
    bool no_grad = false;

    name = tn__graph_read_word(r, "._:-@", "an operator");
    if (name != NULL && strcmp(name, "no_grad") == 0) {
        no_grad = true;
        name = tn__graph_read_word(r, "._:-@", "an operator");
    }
    name = tn__graph_read_path(r, name);
    if (name == NULL)
        return tn_error_last_code();
    if (strncmp(name, "prim::", 6) == 0)
        return read_prim(r, name, no_grad, aliases, node);
    if (r->code && *r->at != '(') {
        bool slot = strncmp(name, "self.", 5) == 0;

        if (!slot && strncmp(name, "CONSTANTS.", 10) != 0)
            return read_unpack(r, name);
        *node = tn__graph_read_leaf(r, slot ? TN_NODE_SLOT : TN_NODE_CONSTANT,
                                    name + (slot ? 5 : 10), r->left[0].name);
        return *node != NULL ? TN_OK : tn_error_last_code();
    }
    if (r->code && strncmp(name, "self.", 5) == 0)
        return tn__graph_read_take(r, "(") ? read_call(r, name + 5, no_grad, node)
                                           : tn__graph_read_wrong(r, "(");
    if (!r->code && *r->at == '[') {
        r->at++;
        options = tn__graph_read_raw(r, "]");
        if (options == NULL || !tn__graph_read_take(r, "]"))
            return tn_error_last_code();
    }
    if (!tn__graph_read_take(r, "("))
        return tn__graph_read_wrong(r, "(");
    return read_op(r, name, options, no_grad, node);
}

tn_status tn__graph_read_statement(tn__reader *r, struct tn__alias **aliases)
{
    tn_node *node = NULL, *made;
    tn_status status = read_left(r);

    r->made = NULL;
    if (status == TN_OK)
        status = tn__graph_functions_make_way(r);
    if (status == TN_OK)
        status = read_right(r, aliases, &node);
    made = r->made;
    r->made = NULL;
    if (status == TN_OK && node != NULL && r->n_left == 1 && node->n_out == 1)
        status = check_type(r, &r->left[0], node);
    if (status == TN_OK && node != NULL && r->n_left == 1 && node->n_out == 1)
        status = tn__graph_read_symbols(node, 0, &r->left[0]);
    if (status == TN_OK && node != NULL && r->n_left != 1)
        status = tn__graph_read_wrong(r, "one name on the left");
    if (status == TN_OK)
        status = tn__graph_read_comment(r, made != NULL ? made : node);
    for (tn_node *at = made; at != NULL && at->next != NULL && status == TN_OK; at = at->next)
        status = tn__graph_inherit_place(at->next, made);
    return status;
}

/* ---- the whole text -------------------------------------------------------------------------- */

tn_status tn__graph_read_outputs(tn__reader *r)
{
    tn_status status;

    r->n_nodes = 0;
    if (!tn__graph_read_take(r, "("))
        return tn__graph_read_wrong(r, "(");
    status = tn__graph_read_pack(r, TN__PLACE_ENDS, &r->graph->out);
    if (status == TN_OK)
        status = tn__graph_read_comment(r, NULL);
    if (status == TN_OK && tn_graph_output(r->graph, r->nodes, r->n_nodes) != TN_OK)
        status = tn__graph_read_here(r);
    return status;
}

static tn_status read_graph(tn__reader *r)
{
    struct tn__alias *aliases = NULL;
    tn_status status = tn__graph_read_head(r);

    while (status == TN_OK) {
        if (!tn__graph_read_next_line(r))
            return tn__graph_read_wrong(r, "return (...)");
        if (!tn__graph_read_take(r, "return ")) {
            status = tn__graph_read_statement(r, &aliases);
            continue;
        }
        status = tn__graph_read_outputs(r);
        if (status == TN_OK && tn__graph_read_next_line(r))
            status = tn__graph_read_wrong(r, "the end of the text");
        return status;
    }
    return status;
}

/* Makes the graph rely on what its decompositions rely on. */
static void add_limits(tn__reader *r)
{
    tn_graph *graph = r->graph;
    bool more = false;

    if (r->fixed && graph->fixed == NULL)
        graph->fixed = TN__FIXED_BY_TRACE;
    for (int32_t s = 0; s < graph->n_symbols; s++)
        if (graph->symbols[s].least < r->least[s]) {
            graph->symbols[s].least = r->least[s];
            more = true;
        }
    for (tn_node *node = graph->steps; node != NULL && more; node = node->next)
        tn__blocks_symbols(node);
}

tn_graph *tn__graph_read(const char *text, tn_module *root, const tn_state *constants,
                         tn__functions *functions)
{
    tn__reader r = { .at = text, .line = text, .number = 1, .root = root, .constants = constants };
    uint64_t scope;
    tn_status status = TN_ERR_MEMORY;

    r.functions = functions;
    if (strlen(text) > LONGEST) {
        tn_fail(TN_ERR_FORMAT, "tn_graph_parse: text: too long, got %zu bytes; expected at most %d",
                strlen(text), LONGEST);
        return NULL;
    }
    scope = tn_scope_begin();
    r.graph = tn_graph_new();
    r.arena = tn__arena_new();
    if (r.graph != NULL && r.arena != NULL)
        r.mark = tn_tensor_empty(tn_no_ints(), TN_F32, NULL);
    if (r.mark != NULL)
        status = read_graph(&r);
    if (status == TN_OK)
        add_limits(&r);
    if (status == TN_OK && r.folded)
        status = tn__graph_guard_slots(r.graph, TN__GRAPH_OF_TEXT);
    tn__arena_free(r.arena);
    tn_free(r.nodes);
    tn_free(r.left);
    tn_scope_end(scope);
    if (status == TN_OK)
        return r.graph;
    tn_graph_drop(r.graph);
    return NULL;
}

tn_graph *tn_graph_parse(const char *text, tn_module *root, const tn_state *constants)
{
    return tn__given(text != NULL, "tn_graph_parse: text")
               ? tn__graph_read(text, root, constants, NULL)
               : NULL;
}

tn_graph *tn_graph_parse_with(const char *text, tn_module *root, const tn_state *constants,
                              const tn_state *operators)
{
    tn__functions functions;
    tn_graph *graph = NULL;
    tn_status status;

    if (!tn__given(text != NULL, "tn_graph_parse_with: text"))
        return NULL;
    status = tn__graph_functions_read(&functions, operators);
    if (status == TN_OK)
        graph = tn__graph_read(text, root, constants, &functions);
    tn__graph_functions_free(&functions);
    return graph;
}

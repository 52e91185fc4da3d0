/* SPDX-License-Identifier: MIT
 *
 * Graphs as text: the form that tn_graph_parse reads, and the form of code, which it reads, too. */
#include "core/base/spec.h"
#include "lib/graph/private.h"

/* ---- parts ----------------------------------------------------------------------------------- */

void tn__text_value(tn__text *text, const tn_node *node, bool code)
{
    if (tn__graph_is_none(node))
        tn__text_add(text, code ? "None" : "none");
    else
        tn__text_add(text, code ? "%s" : "%%%s", node->name);
}

void tn__text_type(tn__text *text, const tn_node *node, int32_t output)
{
    const tn_meta *meta = &node->meta[output];

    if (meta->ndim < 0) {
        tn__text_add(text, "Tensor");
        return;
    }
    tn__text_add(text, "%s[", tn_dtype_name(meta->dtype));
    for (int32_t d = 0; d < meta->ndim; d++) {
        const tn__expr *expr = tn__symbols_find(node, -1 - output, d);

        tn__text_add(text, "%s", d > 0 ? ", " : "");
        if (expr != NULL && tn__symbols_now(node->graph, expr) == meta->shape[d])
            tn__symbols_text(text, node->graph, expr);
        else
            tn__text_add(text, "%lld", (long long)meta->shape[d]);
    }
    tn__text_put(text, "]", 1);
}

/* Appends a text in which marks stand for expressions. */
static void put_marked(tn__text *text, const tn_node *node, const tn__text *marked)
{
    char mark[24];
    size_t length, at = 0;

    tn_snprint(mark, sizeof mark, "%lld", (long long)TN__SYMBOL_MARK);
    length = strlen(mark);
    while (at < marked->length) {
        int64_t i = 0;

        if (strncmp(marked->at + at, mark, length - 4) != 0) {
            tn__text_put(text, marked->at + at++, 1);
            continue;
        }
        for (size_t k = length - 4; k < length; k++)
            i = 10 * i + (marked->at[at + k] - '0');
        if (i < node->n_exprs)
            tn__symbols_text(text, node->graph, &node->exprs[i]);
        at += length;
    }
}

/* Prints the options with expressions: with marks first, which are then replaced. */
static void put_symbolic(tn__text *text, const tn_node *node)
{
    const tn_op_def *def = &node->op->def;
    void *copy = tn_malloc(tn__options_copy(def->options, node->options, def->options_size, NULL));
    tn__text marked = { 0 };

    if (copy == NULL) {
        text->failed = true;
        return;
    }
    tn__options_copy(def->options, node->options, def->options_size, copy);
    for (int64_t i = 0; i < node->n_exprs && i < TN__SYMBOL_MARKS; i++)
        if (node->exprs[i].row >= 0)
            *tn__symbols_place(&def->options[node->exprs[i].row], copy,
                               node->exprs[i].item) = TN__SYMBOL_MARK + i;
    tn__options_print(def->options, copy, true, &marked);
    put_marked(text, node, &marked);
    text->failed |= marked.failed;
    tn__text_free(&marked);
    tn_free(copy);
}

bool tn__text_options(tn__text *text, const tn_node *node)
{
    size_t before = text->length;

    if (node->options != NULL && node->n_exprs > 0)
        put_symbolic(text, node);
    else if (node->options != NULL)
        tn__options_print(node->op->def.options, node->options, true, text);
    return text->length > before;
}

struct writer {
    tn__text *text;
    const tn_graph *graph;
    bool code;
    bool inside; /* slots and constants are written where they are used */
    int depth;   /* of the block that is written */
};

/* Returns whether a path or name consists of letters, digits, `_` and dots, so that it needs no
 * quotes. */
static bool is_plain(const char *name)
{
    for (; *name != '\0'; name++)
        if (!tn__spec_starts_word(*name) && !tn__spec_is_digit(*name) && *name != '.')
            return false;
    return true;
}

/* What has this path: self.fc.weight, self["a b.weight"], CONSTANTS.c0. */
static void put_path(struct writer *w, const char *of, const char *path)
{
    tn__text_add(w->text, is_plain(path) ? "%s.%s" : "%s[%q]", of, path);
}

/* A slot or constant in the place of an argument. */
static void put_place(struct writer *w, const tn_node *node)
{
    put_path(w, node->kind == TN_NODE_SLOT ? "self" : "CONSTANTS", tn__graph_target(node));
}

static void put_value(struct writer *w, const tn_node *node)
{
    bool held = !tn__graph_is_none(node) &&
                (node->kind == TN_NODE_SLOT || node->kind == TN_NODE_CONSTANT);

    if (w->inside && held)
        put_place(w, node);
    else
        tn__text_value(w->text, node, w->code);
}

static void put_written(struct writer *w, const tn_node *node, int64_t i)
{
    put_value(w, node->in[i]);
    if (!w->code && (node->writes >> (i < 63 ? i : 63) & 1) != 0)
        tn__text_put(w->text, "!", 1);
}

/* Writes a value of a pack; tensors are the nodes from *next on, with their types if `typed`. */
static void put_form(struct writer *w, const tn_value *value, tn_node *const **next, bool typed)
{
    bool tuple = value->kind == TN_VALUE_TUPLE, dict = value->kind == TN_VALUE_DICT;

    if (value->kind == TN_VALUE_TENSOR) {
        const tn_node *node = *(*next)++;

        put_value(w, node);
        if (typed) {
            tn__text_put(w->text, " : ", 3);
            tn__text_type(w->text, node, 0);
        }
        return;
    }
    if (!tuple && !dict && value->kind != TN_VALUE_LIST) {
        tn__value_print(value, w->text);
        return;
    }
    tn__text_put(w->text, tuple ? "(" : dict ? "{" : "[", 1);
    for (uint32_t i = 0; i < value->count; i++) {
        if (i > 0)
            tn__text_put(w->text, dict && i % 2 != 0 ? ": " : ", ", 2);
        put_form(w, &value->as.list[i], next, typed);
    }
    tn__text_add(w->text, "%s", tuple ? value->count == 1 ? ",)" : ")" : dict ? "}" : "]");
}

/* Writes the values of a pack, or the nodes if there is no pack. */
static void put_pack(struct writer *w, const tn_pack *form, tn_node *const *nodes, int64_t count,
                     bool typed, bool first)
{
    const tn_value tensor = { .kind = TN_VALUE_TENSOR };

    if (form != NULL)
        count = tn_pack_count(form);
    for (int64_t i = 0; i < count; i++) {
        tn_value value = form != NULL ? tn_pack_at(form, i) : tensor;
        const char *name = form != NULL ? tn_pack_name(form, i) : NULL;

        if (i > 0 || !first)
            tn__text_put(w->text, ", ", 2);
        if (name != NULL)
            tn__text_add(w->text,
                         is_plain(name) && tn__spec_starts_word(*name) ? "%s=" : "%q=", name);
        put_form(w, &value, &nodes, typed);
    }
}

/* ---- statements ------------------------------------------------------------------------------ */

static void put_comment(struct writer *w, const tn_node *node)
{
    if (node->type == NULL)
        return;
    tn__text_add(w->text, "  # ");
    if (node->path != NULL && node->path[0] != '\0')
        tn__text_add(w->text, is_plain(node->path) ? "%s " : "%q ", node->path);
    tn__text_add(w->text, "(%s)", node->type);
}

/* Returns whether the text has the type of a value: the form of code has only those of the results
 * of called modules or, in a graph with sizes that vary, all. */
static bool has_types(const struct writer *w, const tn_node *node)
{
    return !w->code || node->callee != NULL || w->graph->n_symbols > 0;
}

static void put_indent(struct writer *w)
{
    tn__text_add(w->text, "%*s", (w->code ? 4 : 2) + (w->code ? 8 : 4) * w->depth, "");
}

static void put_left(struct writer *w, const tn_node *node, bool typed)
{
    put_indent(w);
    tn__text_value(w->text, node, w->code);
    if (typed && has_types(w, node)) {
        tn__text_put(w->text, " : ", 3);
        tn__text_type(w->text, node, 0);
    }
    tn__text_add(w->text, node->no_grad ? " = no_grad " : " = ");
}

static void put_held(struct writer *w, const tn_node *node)
{
    put_left(w, node, true);
    if (w->code)
        put_place(w, node);
    else
        tn__text_add(w->text,
                     node->kind == TN_NODE_SLOT ? "prim::GetAttr[name=%q](%%self)"
                                                : "prim::Constant[name=%q]()",
                     tn__graph_target(node));
    tn__text_put(w->text, "\n", 1);
}

static void put_op(struct writer *w, const tn_node *node)
{
    bool inplace = node->kind == TN_NODE_INPLACE, first = inplace && tn__graph_writes_first(node);
    bool into = inplace && !first && (node->op->def.flags & TN_OP_INTO) != 0;
    int64_t n_in = node->n_in - inplace, written = 0;
    tn__text options = { 0 };
    bool any = tn__text_options(&options, node);

    put_left(w, node, node->n_out == 1);
    tn__text_add(w->text, first || into ? "%s_" : "%s", node->op->def.name);
    if (tn_op_find(node->op->def.name, 0) != node->op)
        tn__text_add(w->text, "@%u", node->op->def.revision);
    if (any && !w->code)
        tn__text_add(w->text, "[%.*s]", (int)options.length, options.at);
    tn__text_put(w->text, "(", 1);
    if (into) {
        put_written(w, node, n_in);
        written++;
    }
    for (int64_t i = 0; i < n_in; i++) {
        if (written++ > 0)
            tn__text_put(w->text, ", ", 2);
        put_written(w, node, i);
        if (first && i == 0 && !w->code)
            tn__text_put(w->text, "!", 1);
    }
    if (inplace && !first && !into) {
        tn__text_add(w->text, written > 0 ? ", out=" : "out=");
        put_written(w, node, n_in);
        written++;
    }
    if (any && w->code)
        tn__text_add(w->text, "%s%.*s", written > 0 ? ", " : "", (int)options.length, options.at);
    tn__text_put(w->text, ")", 1);
    options.failed |= w->text->failed;
    w->text->failed = options.failed;
    tn__text_free(&options);
}

static void put_call(struct writer *w, const tn_node *node)
{
    const char *path = tn__graph_target(node);
    const char *type = node->callee->module->type;
    tn_node *self = (tn_node *)(uintptr_t)node;

    if (!w->code)
        tn__text_add(w->text, "  %%%s.module : %s = prim::GetAttr[name=%q](%%self)\n", node->name,
                     type, path);
    put_left(w, node, node->n_out == 1);
    if (w->code)
        put_path(w, "self", path);
    if (w->code)
        tn__text_put(w->text, "(", 1);
    else
        tn__text_add(w->text, "prim::CallMethod[name=\"forward\"](%%%s.module", node->name);
    put_pack(w, node->callee->in, node->in, node->n_in, false, w->code);
    tn__text_put(w->text, ")", 1);
    if (node->callee->out != NULL && tn_pack_count(node->callee->out) > 0) {
        tn__text_add(w->text, " -> (");
        put_pack(w, node->callee->out, node->items != NULL ? node->items : &self, node->n_out,
                 false, true);
        tn__text_put(w->text, ")", 1);
    }
}

static void put_items(struct writer *w, const tn_node *node)
{
    if (node->items == NULL)
        return;
    put_indent(w);
    for (int32_t i = 0; i < node->n_out; i++) {
        if (i > 0)
            tn__text_put(w->text, ", ", 2);
        tn__text_value(w->text, node->items[i], w->code);
        if (has_types(w, node)) {
            tn__text_put(w->text, " : ", 3);
            tn__text_type(w->text, node->items[i], 0);
        }
    }
    tn__text_add(w->text, w->code ? " = " : " = prim::TupleUnpack(");
    tn__text_value(w->text, node, w->code);
    tn__text_add(w->text, w->code ? "\n" : ")\n");
}

static void put_control(struct writer *w, const tn_node *node)
{
    put_left(w, node, node->n_out == 1);
    tn__text_add(w->text, node->kind == TN_NODE_IF ? "prim::If" : "prim::Loop");
    if (node->most >= 0)
        tn__text_add(w->text, "[most=%lld]", (long long)node->most);
    tn__text_put(w->text, "(", 1);
    put_pack(w, NULL, node->in, node->n_in, false, true);
    tn__text_put(w->text, ")", 1);
}

static void put_region(struct writer *w, const tn_node *node)
{
    put_left(w, node, node->n_out == 1);
    tn__text_add(w->text, "prim::Region[name=\"%s\"](", node->region->def->name);
    put_pack(w, NULL, node->in, node->n_in, false, true);
    tn__text_put(w->text, ")", 1);
}

static void put_block(struct writer *w, const tn_node *node, int number);

static void put_step(struct writer *w, const tn_node *node)
{
    switch (node->kind) {
    case TN_NODE_OP:
    case TN_NODE_INPLACE: put_op(w, node); break;
    case TN_NODE_CALL: put_call(w, node); break;
    case TN_NODE_REGION: put_region(w, node); break;
    case TN_NODE_IF:
    case TN_NODE_LOOP: put_control(w, node); break;
    case TN_NODE_OUTPUT:
        put_indent(w);
        tn__text_add(w->text, "return (");
        put_pack(w, w->graph->out, node->in, node->n_in, false, true);
        tn__text_put(w->text, ")", 1);
        break;
    default: return;
    }
    put_comment(w, node);
    tn__text_put(w->text, "\n", 1);
    for (int i = 0; i < 2 && tn__graph_has_blocks(node); i++)
        put_block(w, node, i);
    put_items(w, node);
}

/* Writes the inputs and the statements of a block. */
static void put_block(struct writer *w, const tn_node *node, int number)
{
    const tn_graph *block = node->blocks[number];
    struct writer inner = { w->text, block, w->code, false, w->depth + 1 };
    tn_node **inputs = tn_malloc(((size_t)block->n_inputs + 1) * sizeof *inputs);
    int64_t count = 0;

    if (inputs == NULL) {
        w->text->failed = true;
        return;
    }
    for (tn_node *at = block->first; at != NULL; at = at->next)
        if (at->kind == TN_NODE_INPUT)
            inputs[count++] = at;
    put_indent(w);
    tn__text_add(w->text, w->code ? "    def %s(" : "  block %s(",
                 tn__blocks_name(node->kind, number));
    put_pack(&inner, NULL, inputs, count, true, true);
    tn__text_put(w->text, "):\n", 3);
    for (tn_node *at = block->steps; at != NULL; at = at->next)
        put_step(&inner, at);
    tn_free(inputs);
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* Writes the type of the module and the inputs. */
static void put_signature(struct writer *w, const char *start)
{
    const tn_graph *graph = w->graph;
    const char *type = graph->type != NULL ? graph->type : "Module";
    tn_node **inputs = tn_malloc(((size_t)graph->n_inputs + 1) * sizeof(tn_node *));
    int64_t count = 0;

    if (inputs == NULL) {
        w->text->failed = true;
        return;
    }
    for (tn_node *node = graph->first; node != NULL; node = node->next)
        if (node->kind == TN_NODE_INPUT)
            inputs[count++] = node;
    tn__text_add(w->text, "%s(%sself : %s", start, w->code ? "" : "%", type);
    put_pack(w, graph->in, inputs, count, true, false);
    tn__text_put(w->text, ")", 1);
    tn_free(inputs);
}

void tn__text_signature(tn__text *text, const tn_graph *graph)
{
    struct writer w = { text, graph, true, false, 0 };

    put_signature(&w, "forward");
}

/* What the graph and its blocks rely on: a text has no place for what only a block relies on. */
static void find_guards(const tn_graph *graph, const char **fixed, bool *inference)
{
    bool by_pass = graph->fixed != NULL && strcmp(graph->fixed, TN__FIXED_BY_TRACE) != 0;

    *fixed = *fixed == NULL || by_pass ? graph->fixed : *fixed;
    *inference |= graph->inference != NULL;
    for (const tn_node *node = graph->steps; node != NULL; node = node->next)
        for (int i = 0; i < 2 && tn__graph_has_blocks(node); i++)
            find_guards(node->blocks[i], fixed, inference);
}

/* Writes the mode that the graph is for, with the modules whose mode counts if it is not just the
 * root: ", train", ", eval("1", "3")". */
static void put_mode(struct writer *w, bool training)
{
    const tn_graph *graph = w->graph;
    bool first = graph->training == training, root = false;
    int64_t count = 0;

    for (int64_t i = 0; i < graph->n_asked; i++) {
        count += graph->asked[i].training == training;
        root |= graph->asked[i].training == training && graph->asked[i].path[0] == '\0';
    }
    if (!first && count == 0)
        return;
    tn__text_add(w->text, training ? ", train" : ", eval");
    if (count == 0 || (count == 1 && root && graph->n_asked == 1))
        return;
    for (int64_t i = 0, put = 0; i < graph->n_asked; i++)
        if (graph->asked[i].training == training)
            tn__text_add(w->text, "%s%q", put++ > 0 ? ", " : "(", graph->asked[i].path);
    tn__text_put(w->text, ")", 1);
}

static void put_head(struct writer *w)
{
    const tn_graph *graph = w->graph;
    const char *fixed = NULL;
    bool inference = false;

    find_guards(graph, &fixed, &inference);
    put_signature(w, w->code ? "def forward" : "graph");
    tn__text_add(w->text, ":  # tenon.graph 1");
    if (graph->training >= 0) {
        put_mode(w, graph->training != 0);
        put_mode(w, graph->training == 0);
    }
    tn__text_add(w->text, "%s%s%s",
                 fixed == NULL                            ? ""
                 : strcmp(fixed, TN__FIXED_BY_TRACE) == 0 ? ", fixed"
                                                          : ", typed",
                 inference ? ", inference" : "", graph->n_guards > 0 ? ", folded" : "");
    for (int32_t i = 0; i < graph->n_symbols; i++)
        tn__text_add(w->text, ", %s = %lld >= %lld", graph->symbols[i].name,
                     (long long)graph->symbols[i].value, (long long)graph->symbols[i].least);
    tn__text_put(w->text, "\n", 1);
}

/* Returns whether the slots and constants of a graph can be written where they are used: the text
 * then reads back with the same nodes in the same order. */
static bool held_inside(const tn_graph *graph)
{
    const tn_node *next = graph->first;
    bool *seen = tn_calloc((size_t)graph->next_id + 1, sizeof *seen);
    char base[3 * TN__NAME_LONGEST];
    bool inside = seen != NULL, leaves = true;

    for (const tn_node *node = graph->steps; node != NULL && inside; node = node->next)
        for (int64_t i = 0; i < node->n_in && inside && node->kind != TN_NODE_ITEM; i++) {
            const tn_node *in = node->in[i];

            if (tn__graph_is_none(in) || in->kind == TN_NODE_INPUT || !tn__graph_is_leaf(in) ||
                seen[in->id])
                continue;
            while (next->kind == TN_NODE_INPUT)
                next = next->next;
            tn__graph_name_of(tn__graph_target(in), base, sizeof base);
            inside = next == in && strcmp(base, in->name) == 0;
            seen[in->id] = true;
            next = next->next;
        }
    for (; leaves && inside && next != NULL; next = next->next) {
        leaves = tn__graph_is_leaf(next);
        inside = !leaves || next->kind == TN_NODE_INPUT;
    }
    tn_free(seen);
    return inside;
}

static void print_text(tn__text *text, const tn_graph *graph, bool code)
{
    struct writer w = { text, graph, code, code && held_inside(graph), 0 };

    put_head(&w);
    for (const tn_node *node = graph->first; node != NULL; node = node->next) {
        if (tn__graph_is_leaf(node) && node->kind != TN_NODE_INPUT && !w.inside)
            put_held(&w, node);
        put_step(&w, node);
    }
}

int64_t tn_graph_print(const tn_graph *graph, const char *form, char *out, size_t size)
{
    static const struct {
        const char *name;
        void (*print)(tn__text *text, const tn_graph *graph);
    } others[] = { { "table", tn__text_table },
                   { "json", tn__text_json },
                   { "graphviz", tn__text_dot } };
    tn__text text = { 0 };

    if (!tn__not_null(graph, "tn_graph_print: graph") ||
        !tn__given(form != NULL, "tn_graph_print: form"))
        return -1;
    if (strcmp(form, "text") == 0 || strcmp(form, "code") == 0) {
        print_text(&text, graph, form[0] == 'c');
        return tn__text_give(&text, out, size);
    }
    for (size_t i = 0; i < tn__countof(others); i++)
        if (strcmp(form, others[i].name) == 0) {
            others[i].print(&text, graph);
            return tn__text_give(&text, out, size);
        }
    tn_fail(TN_ERR_VALUE,
            "tn_graph_print: form: unknown, got %q; expected text, code, table, json or graphviz",
            form);
    return -1;
}

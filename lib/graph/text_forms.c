/* SPDX-License-Identifier: MIT
 *
 * Graphs as a table, as JSON and in the language of Graphviz: for people and for other programs.
 * These forms are not read back. */
#include "lib/graph/private.h"

/* The words of PyTorch for the kinds of nodes. */
static const char *const opcodes[] = {
    [TN_NODE_INPUT] = "placeholder",  [TN_NODE_SLOT] = "get_attr",
    [TN_NODE_CONSTANT] = "get_attr",  [TN_NODE_OP] = "call_function",
    [TN_NODE_ITEM] = "call_function", [TN_NODE_REGION] = "call_function",
    [TN_NODE_OUTPUT] = "output",      [TN_NODE_INPLACE] = "call_method",
    [TN_NODE_CALL] = "call_module",   [TN_NODE_IF] = "call_function",
    [TN_NODE_LOOP] = "call_function",
};

static void put_target(tn__text *text, const tn_node *node)
{
    switch (node->kind) {
    case TN_NODE_OP: tn__text_add(text, "%s", node->op->def.name); break;
    case TN_NODE_INPLACE: tn__text_add(text, "%s_", node->op->def.name); break;
    case TN_NODE_ITEM: tn__text_add(text, "getitem"); break;
    case TN_NODE_REGION: tn__text_add(text, "%s", node->region->def->name); break;
    case TN_NODE_IF: tn__text_add(text, "cond"); break;
    case TN_NODE_LOOP: tn__text_add(text, "loop"); break;
    default: tn__text_add(text, "%s", tn__graph_target(node)); break;
    }
}

static void put_args(tn__text *text, const tn_node *node, const char *before, const char *after)
{
    for (int64_t i = 0; i < node->n_in; i++) {
        bool none = tn__graph_is_none(node->in[i]);

        tn__text_add(text, "%s%s", i > 0 ? ", " : "", none ? "" : before);
        tn__text_add(text, "%s%s", none ? before[0] != '\0' ? "null" : "None" : node->in[i]->name,
                     none ? "" : after);
    }
    if (node->kind == TN_NODE_ITEM)
        tn__text_add(text, ", %d", (int)node->index);
}

/* ---- table ----------------------------------------------------------------------------------- */

enum { COLUMNS = 6 };

static void cell(tn__text *to, const tn_node *node, int column, int depth)
{
    switch (column) {
    case 0: tn__text_add(to, "%*s%s", 2 * depth, "", opcodes[node->kind]); break;
    case 1: tn__text_add(to, "%s", node->name); break;
    case 2: put_target(to, node); break;
    case 3:
        tn__text_put(to, "(", 1);
        put_args(to, node, "", "");
        tn__text_put(to, ")", 1);
        break;
    case 4:
        tn__text_put(to, "{", 1);
        if (node->op != NULL)
            tn__text_options(to, node);
        if (node->kind == TN_NODE_LOOP && node->most >= 0)
            tn__text_add(to, "most=%lld", (long long)node->most);
        tn__text_put(to, "}", 1);
        break;
    default:
        if (node->n_out == 1)
            tn__text_type(to, node, 0);
        break;
    }
}

static void measure(const tn_graph *graph, int depth, tn__text *one, size_t *width)
{
    for (const tn_node *node = graph->first; node != NULL; node = node->next) {
        for (int c = 0; c < COLUMNS; c++) {
            one->length = 0;
            cell(one, node, c, depth);
            width[c] = one->length > width[c] ? one->length : width[c];
        }
        for (int i = 0; i < 2 && tn__graph_has_blocks(node); i++)
            measure(node->blocks[i], depth + 1, one, width);
    }
}

static void put_rows(tn__text *text, const tn_graph *graph, int depth, tn__text *one,
                     const size_t *width)
{
    for (const tn_node *node = graph->first; node != NULL; node = node->next) {
        for (int c = 0; c < COLUMNS; c++) {
            one->length = 0;
            cell(one, node, c, depth);
            if (one->at != NULL)
                tn__text_put(text, one->at, one->length);
            for (size_t i = one->length; c + 1 < COLUMNS && i < width[c] + 2; i++)
                tn__text_put(text, " ", 1);
            if (c + 1 == COLUMNS)
                tn__text_put(text, "\n", 1);
        }
        for (int i = 0; i < 2 && tn__graph_has_blocks(node); i++) {
            tn__text_add(text, "%*s%s\n", 2 * depth + 1, "", tn__blocks_name(node->kind, i));
            put_rows(text, node->blocks[i], depth + 1, one, width);
        }
    }
}

void tn__text_table(tn__text *text, const tn_graph *graph)
{
    static const char *const heads[COLUMNS] = {
        "opcode", "name", "target", "args", "kwargs", "type"
    };
    size_t width[COLUMNS];
    tn__text one = { 0 };

    for (int c = 0; c < COLUMNS; c++)
        width[c] = strlen(heads[c]);
    measure(graph, 0, &one, width);
    for (int c = 0; c < COLUMNS; c++)
        tn__text_add(text, "%-*s%s", c + 1 < COLUMNS ? (int)width[c] : 0, heads[c],
                     c + 1 < COLUMNS ? "  " : "\n");
    for (int c = 0; c < COLUMNS; c++)
        for (size_t i = 0; i < width[c] + (c + 1 < COLUMNS ? 2 : 1); i++)
            tn__text_put(text, i < width[c] ? "-" : c + 1 < COLUMNS ? " " : "\n", 1);
    put_rows(text, graph, 0, &one, width);
    text->failed |= one.failed;
    tn__text_free(&one);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_string(tn__text *text, const char *string)
{
    tn__text_put(text, "\"", 1);
    for (const unsigned char *at = (const unsigned char *)string; *at != '\0'; at++)
        if (*at == '"' || *at == '\\')
            tn__text_add(text, "\\%c", *at);
        else if (*at < 0x20)
            tn__text_add(text, "\\u%04x", *at);
        else
            tn__text_put(text, (const char *)at, 1);
    tn__text_put(text, "\"", 1);
}

/* Writes "key": "text", and frees the text. */
static void put_text(tn__text *text, const char *key, tn__text *value)
{
    tn__text_put(value, "", 1);
    tn__text_add(text, ", \"%s\": ", key);
    put_string(text, value->at != NULL ? value->at : "");
    text->failed |= value->failed;
    tn__text_free(value);
}

static void put_metas(tn__text *text, const tn_node *node)
{
    tn__text_add(text, ", \"outputs\": [");
    for (int32_t i = 0; i < node->n_out; i++) {
        const tn_meta *meta = &node->meta[i];

        tn__text_add(text, "%s", i > 0 ? ", " : "");
        if (meta->ndim < 0) {
            tn__text_add(text, "null");
            continue;
        }
        tn__text_add(text, "{\"dtype\": \"%s\", \"shape\": ", tn_dtype_name(meta->dtype));
        tn__tensor_text_ints(text, (tn_ints){ meta->shape, meta->ndim });
        tn__text_add(text, ", \"strides\": ");
        tn__tensor_text_ints(text, (tn_ints){ meta->strides, meta->ndim });
        tn__text_put(text, "}", 1);
    }
    tn__text_put(text, "]", 1);
}

static void put_node(tn__text *text, const tn_node *node);

static void put_blocks(tn__text *text, const tn_node *node)
{
    if (node->kind == TN_NODE_LOOP)
        tn__text_add(text, ", \"most\": %lld", (long long)node->most);
    for (int i = 0; i < 2; i++) {
        tn__text_add(text, ", \"%s\": [\n", tn__blocks_name(node->kind, i));
        for (const tn_node *inner = node->blocks[i]->first; inner != NULL; inner = inner->next)
            put_node(text, inner);
        tn__text_put(text, "    ]", 5);
    }
}

static void put_node(tn__text *text, const tn_node *node)
{
    tn__text part = { 0 };
    bool first = true;

    tn__text_add(text, "    {\"name\": \"%s\", \"op\": \"%s\"", node->name, opcodes[node->kind]);
    put_target(&part, node);
    put_text(text, "target", &part);
    tn__text_add(text, ", \"args\": [");
    put_args(text, node, "\"", "\"");
    tn__text_add(text, "]");
    if (node->op != NULL && tn__text_options(&part, node))
        put_text(text, "options", &part);
    put_metas(text, node);
    tn__text_add(text, ", \"users\": [");
    for (int64_t i = 0; i < node->n_users; i++)
        tn__text_add(text, "%s\"%s\"", i > 0 ? ", " : "", node->users[i].user->name);
    tn__text_add(text, "]");
    for (int64_t i = 0; i < node->n_in && i < 64; i++)
        if ((node->writes >> i & 1) != 0) {
            tn__text_add(text, first ? ", \"writes\": [%d" : ", %d", (int)i);
            first = false;
        }
    tn__text_add(text, first ? "" : "]");
    if (node->no_grad)
        tn__text_add(text, ", \"no_grad\": true");
    if (tn__graph_has_blocks(node))
        put_blocks(text, node);
    if (node->path != NULL && node->type != NULL) {
        tn__text_add(text, ", \"module\": ");
        put_string(text, node->path);
        tn__text_add(text, ", \"module_type\": ");
        put_string(text, node->type);
    }
    tn__text_add(text, "}%s\n", node->next != NULL ? "," : "");
}

void tn__text_json(tn__text *text, const tn_graph *graph)
{
    tn__text_add(text, "{\n  \"format\": \"tenon.graph\", \"version\": 1, \"module\": ");
    put_string(text, graph->type != NULL ? graph->type : "Module");
    tn__text_add(text, ",\n  \"nodes\": [\n");
    for (const tn_node *node = graph->first; node != NULL; node = node->next)
        put_node(text, node);
    tn__text_add(text, "  ]\n}\n");
}

/* ---- dot ------------------------------------------------------------------------------------- */

/* A block is a box. The names of its nodes begin with the names of the nodes and blocks around it.
 */
static void put_dot(tn__text *text, const tn_graph *graph, const char *prefix)
{
    for (const tn_node *node = graph->first; node != NULL; node = node->next) {
        tn__text part = { 0 };

        tn__text_add(&part, "%s: ", node->name);
        put_target(&part, node);
        if (node->n_out == 1) {
            tn__text_add(&part, " ");
            tn__text_type(&part, node, 0);
        }
        tn__text_put(&part, "", 1);
        tn__text_add(text, "  \"%s%s\" [label=", prefix, node->name);
        put_string(text, part.at != NULL ? part.at : "");
        tn__text_add(text, "];\n");
        text->failed |= part.failed;
        tn__text_free(&part);
        for (int64_t i = 0; i < node->n_in; i++)
            if (!tn__graph_is_none(node->in[i]))
                tn__text_add(text, "  \"%s%s\" -> \"%s%s\";\n", prefix, node->in[i]->name, prefix,
                             node->name);
        for (int i = 0; i < 2 && tn__graph_has_blocks(node); i++) {
            const char *name = tn__blocks_name(node->kind, i);
            char *inner;

            tn__text_add(&part, "%s%s.%s.", prefix, node->name, name);
            inner = tn__text_take(&part);
            tn__text_add(text, "  subgraph \"cluster_%s\" {\n  label=\"%s of %s\";\n",
                         inner != NULL ? inner : "", name, node->name);
            put_dot(text, node->blocks[i], inner != NULL ? inner : "");
            tn__text_add(text, "  }\n");
            text->failed |= inner == NULL;
            tn_free(inner);
        }
    }
}

void tn__text_dot(tn__text *text, const tn_graph *graph)
{
    tn__text_add(text, "digraph {\n  node [shape=box];\n");
    put_dot(text, graph, "");
    tn__text_add(text, "}\n");
}

/* SPDX-License-Identifier: MIT
 *
 * The C form of graphs: branches and loops. Each block becomes a function; tn_cond and tn_loop call
 * them. What a loop does not change reaches its functions as `user`. */
#include <stdlib.h>
#include <string.h>

#include "graph_c.h"

static bool has_blocks(const tn_node *node)
{
    return tn_node_kind_of(node) == TN_NODE_IF || tn_node_kind_of(node) == TN_NODE_LOOP;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Adds the nodes with blocks, in the order in which the text has them. */
static tn_status find(writer *w, const tn_graph *graph)
{
    tn_status status = TN_OK;

    for (const tn_node *node = tn_graph_first(graph); node != NULL && status == TN_OK;
         node = tn_node_next(node)) {
        size_t size = ((size_t)w->n_blocks + 1) * sizeof *w->blocks;
        const tn_node **blocks;

        if (!has_blocks(node))
            continue;
        blocks = realloc((void *)w->blocks, size);
        if (blocks == NULL)
            return graph_c_out_of_memory();
        w->blocks = blocks;
        w->blocks[w->n_blocks++] = node;
        for (int i = 0; i < 2 && status == TN_OK; i++)
            status = find(w, tn_node_block(node, i));
    }
    return status;
}

/* Reads the limits of the steps of loops (w->most) from the text of the graph. The text has the
 * nodes in the order of w->blocks. */
static tn_status read_most(writer *w)
{
    int64_t length = tn_graph_print(w->graph, "text", NULL, 0);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
    const char *at = text;

    w->most = calloc((size_t)w->n_blocks, sizeof *w->most);
    if (text == NULL || w->most == NULL ||
        tn_graph_print(w->graph, "text", text, (size_t)length + 1) < 0) {
        free(text);
        return length >= 0 && text != NULL && w->most != NULL ? tn_error_last_code()
                                                              : graph_c_out_of_memory();
    }
    for (int i = 0; i < w->n_blocks; i++) {
        w->most[i] = -1;
        if (tn_node_kind_of(w->blocks[i]) != TN_NODE_LOOP)
            continue;
        at = strstr(at, " prim::Loop");
        at += strlen(" prim::Loop");
        if (strncmp(at, "[most=", 6) == 0)
            w->most[i] = strtoll(at + 6, NULL, 10);
    }
    free(text);
    return TN_OK;
}

static int number_of(const writer *w, const tn_node *node)
{
    int i = 0;

    while (i < w->n_blocks && w->blocks[i] != node)
        i++;
    return i;
}

/* "then", "else", "test" or "body". */
static const char *block_name(const tn_node *node, int block)
{
    static const char *const names[] = { "then", "else", "test", "body" };

    return names[(tn_node_kind_of(node) == TN_NODE_LOOP ? 2 : 0) + block];
}

/* The number of values that a loop changes; all, for a branch. */
static int64_t carried(const tn_node *node)
{
    return tn_node_kind_of(node) == TN_NODE_LOOP ? tn_node_item_count(node)
                                                 : tn_node_input_count(node) - 1;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void put_input(writer *w, const tn_node *input, int64_t index, int64_t changed)
{
    char name[NAME];

    if (tn_node_user_count(input) == 0)
        return;
    graph_c_variable(w, input, name);
    if (index < changed)
        fprintf(w->to, "    tn_tensor *%s = in[%lld];\n", name, (long long)index);
    else
        fprintf(w->to, "    tn_tensor *%s = ((tn_tensor **)user)[%lld];\n", name,
                (long long)(index - changed));
}

/* Writes the statements of a block. */
static tn_status put_body(writer *w, int64_t changed)
{
    const tn_node *output = NULL;
    int64_t inputs = 0;
    char name[NAME];

    for (const tn_node *node = tn_graph_first(w->graph); node != NULL; node = tn_node_next(node)) {
        tn_status status = TN_OK;

        if (tn_node_kind_of(node) == TN_NODE_INPUT)
            put_input(w, node, inputs++, changed);
        else
            status = graph_c_node(w, node, &inputs);
        if (status != TN_OK)
            return status;
        output = node;
    }
    for (int64_t i = 0; i < tn_node_input_count(output); i++) {
        graph_c_variable(w, tn_node_input(output, i), name);
        fprintf(w->to, "    out[%lld] = %s;\n    ok = %s != NULL && ok;\n", (long long)i, name,
                name);
    }
    return TN_OK;
}

static tn_status put_function(writer *w, const tn_node *node, int block)
{
    const tn_graph *around = w->graph;
    tn_status status;

    fprintf(w->to,
            "static tn_status %s_%s_%d(void *user, tn_tensor *const *in, int64_t n_in, "
            "tn_tensor **out,\n    int64_t n_out)\n{\n    bool ok = true;\n    (void)user;\n"
            "    (void)in;\n    (void)n_in;\n    (void)n_out;\n",
            w->name, block_name(node, block), number_of(w, node));
    w->graph = tn_node_block(node, block);
    status = put_body(w, carried(node));
    w->graph = around;
    fputs("    return ok ? TN_OK : tn_error_last_code();\n}\n\n", w->to);
    return status;
}

tn_status graph_c_blocks(writer *w)
{
    tn_status status = find(w, w->graph);

    if (status == TN_OK && w->n_blocks > 0)
        status = read_most(w);
    for (int i = w->n_blocks - 1; i >= 0 && status == TN_OK; i--)
        for (int block = 0; block < 2 && status == TN_OK; block++)
            status = put_function(w, w->blocks[i], block);
    return status;
}

/* ---- calls ----------------------------------------------------------------------------------- */

tn_status graph_c_control(writer *w, const tn_node *node)
{
    bool loop = tn_node_kind_of(node) == TN_NODE_LOOP;
    int64_t first = loop ? 0 : 1, count = tn_node_input_count(node);
    int64_t n_in = carried(node), n_out = tn_node_item_count(node);
    bool more = first + n_in < count;
    int number = number_of(w, node);
    char name[NAME], other[NAME];
    piece line;

    graph_c_variable(w, node, name);
    if (n_in > 0)
        graph_c_list(w, node, "in", first, first + n_in);
    if (more)
        graph_c_list(w, node, "user", first + n_in, count);
    fprintf(w->to, "    tn_tensor *%s_out[%lld];\n", name, (long long)n_out);
    if (!piece_begin(&line))
        return graph_c_out_of_memory();
    fprintf(line.to, "ok = tn_%s(", loop ? "loop" : "cond");
    if (!loop)
        fprintf(line.to, "%s, ", graph_c_variable(w, tn_node_input(node, 0), other));
    for (int block = 0; block < 2; block++)
        fprintf(line.to, "%s_%s_%d, ", w->name, block_name(node, block), number);
    if (loop)
        fprintf(line.to, "%lld, ", (long long)w->most[number]);
    fprintf(line.to, n_in > 0 ? "%s_in, " : "NULL, ", name);
    if (!loop)
        fprintf(line.to, "%lld, ", (long long)n_in);
    fprintf(line.to, "%s_out, %lld, ", name, (long long)n_out);
    fprintf(line.to, more ? "%s_user" : "NULL", name);
    fputs(") == TN_OK && ok;", line.to);
    if (piece_end(&line, w->to, 4) != TN_OK)
        return tn_error_last_code();
    for (int64_t i = 0; i < n_out; i++) {
        const tn_node *item = tn_node_item(node, i);

        if (item != NULL && !tn_node_is_erased(item) && tn_node_user_count(item) > 0)
            fprintf(w->to, "    tn_tensor *%s = %s_out[%lld];\n", graph_c_variable(w, item, other),
                    name, (long long)i);
    }
    return TN_OK;
}

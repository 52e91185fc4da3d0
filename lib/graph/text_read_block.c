/* SPDX-License-Identifier: MIT
 *
 * Reads nodes with blocks: prim::If and prim::Loop, and the graphs below them. */
#include "lib/graph/text_read.h"

/* Reads the statements of a block, and its results. */
static tn_status read_statements(tn__reader *r)
{
    struct tn__alias *aliases = NULL;
    tn_status status = TN_OK;

    while (status == TN_OK) {
        if (!tn__graph_read_next_line(r))
            return tn__graph_read_wrong(r, "return (...) of the block");
        if (tn__graph_read_take(r, "return "))
            break;
        status = tn__graph_read_statement(r, &aliases);
    }
    if (status == TN_OK)
        status = tn__graph_read_outputs(r);
    if (status == TN_OK && r->graph->out != NULL)
        status = tn__graph_read_wrong(r, "a block that returns tensors by position");
    return status;
}

/* Reads the first line of a block, such as "block then(%x : float32[2]):" or, in code, "def then(":
 * its inputs and its comment. */
static tn_status read_head(tn__reader *r, const char *name)
{
    tn_pack *form = NULL;
    const char *word;
    tn_status status;
    char expected[48];

    tn_snprint(expected, sizeof expected, "%s %s(...):", r->code ? "def" : "block", name);
    if (!tn__graph_read_next_line(r) || !tn__graph_read_take(r, r->code ? "def " : "block "))
        return tn__graph_read_wrong(r, expected);
    word = tn__graph_read_word(r, "", expected);
    if (word == NULL)
        return tn_error_last_code();
    if (strcmp(word, name) != 0 || !tn__graph_read_take(r, "("))
        return tn__graph_read_wrong(r, expected);
    status = tn__graph_read_pack(r, TN__PLACE_HEAD, &form);
    if (status == TN_OK && (form != NULL || !tn__graph_read_take(r, ":")))
        status = tn__graph_read_wrong(r, "inputs by position, and then ):");
    tn_pack_drop(form);
    return status == TN_OK ? tn__graph_read_comment(r, NULL) : status;
}

static tn_status read_block(tn__reader *r, const char *name, tn_graph **block)
{
    tn_graph *around = r->graph;
    tn__left *left = r->left;
    int64_t n_left = r->n_left, capacity = r->left_capacity;
    tn_status status;

    *block = tn_graph_new();
    if (*block == NULL)
        return TN_ERR_MEMORY;
    memcpy((*block)->symbols, around->symbols, sizeof around->symbols);
    (*block)->n_symbols = around->n_symbols;
    r->graph = *block;
    r->left = NULL;
    r->n_left = r->left_capacity = 0;
    status = read_head(r, name);
    if (status == TN_OK)
        status = read_statements(r);
    tn_free(r->left);
    r->left = left;
    r->n_left = n_left;
    r->left_capacity = capacity;
    r->graph = around;
    return status;
}

static tn_status read_most(tn__reader *r, int64_t *most)
{
    const char *text;

    *most = -1;
    if (!tn__graph_read_take(r, "[most="))
        return TN_OK;
    text = tn__graph_read_raw(r, "]");
    if (text == NULL)
        return tn_error_last_code();
    if (!tn_read_int(text, most) || *most < 0 || !tn__graph_read_take(r, "]"))
        return tn__graph_read_wrong(r, "a number of steps, and then ]");
    return TN_OK;
}

/* Reads the arguments, which become the inputs of the node. */
static tn_status read_inputs(tn__reader *r, tn_node ***nodes, int64_t *count)
{
    tn__text options = { 0 };
    tn_node *out = NULL;
    tn_status status;

    r->n_nodes = 0;
    if (!tn__graph_read_take(r, "("))
        return tn__graph_read_wrong(r, "(");
    status = tn__graph_read_arguments(r, &options, &out);
    if (status == TN_OK && (options.length > 0 || out != NULL))
        status = tn__graph_read_wrong(r, "only values before this place, no options");
    tn__text_free(&options);
    *count = r->n_nodes;
    *nodes = tn__arena_alloc(r->arena, ((size_t)r->n_nodes + 1) * sizeof(tn_node *));
    if (status == TN_OK && *nodes == NULL)
        return TN_ERR_MEMORY;
    if (status == TN_OK && *count > 0)
        memcpy(*nodes, r->nodes, (size_t)*count * sizeof(tn_node *));
    return status;
}

/* The comment of the first line is read again when there is a node. */
static tn_status read_comment_of(tn__reader *r, const char *comment, tn_node *node)
{
    const char *at = r->at;
    tn_status status;

    r->at = comment;
    status = tn__graph_read_comment(r, node);
    r->at = at;
    return status;
}

tn_status tn__graph_read_control(tn__reader *r, tn_node_kind kind, bool no_grad, tn_node **node)
{
    tn_graph *blocks[2] = { NULL, NULL };
    tn_node **inputs = NULL;
    int64_t count = 0, most = -1;
    const char *comment;
    tn_status status = kind == TN_NODE_LOOP ? read_most(r, &most) : TN_OK;

    if (status == TN_OK)
        status = read_inputs(r, &inputs, &count);
    comment = r->at;
    if (status == TN_OK)
        status = tn__graph_read_comment(r, NULL);
    if (status == TN_OK && ++r->blocks > TN__BLOCKS_DEEPEST)
        return tn__graph_read_most(r, TN__BLOCKS_DEEPEST, "levels of blocks");
    for (int i = 0; i < 2 && status == TN_OK; i++)
        status = read_block(r, tn__blocks_name(kind, i), &blocks[i]);
    r->blocks--;
    if (status != TN_OK) {
        tn_graph_drop(blocks[0]);
        tn_graph_drop(blocks[1]);
        return status;
    }
    *node = tn__blocks_build(r->graph, NULL, kind, r->left[0].name, blocks, most, inputs, count,
                             NULL);
    if (*node == NULL)
        return tn__graph_read_here(r);
    (*node)->no_grad = no_grad;
    return read_comment_of(r, comment, *node);
}

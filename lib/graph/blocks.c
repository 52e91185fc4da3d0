/* SPDX-License-Identifier: MIT
 *
 * Nodes with blocks: IF and LOOP. A block is a separate graph. It uses nothing from the graph
 * around it except inputs of the node. An IF has the blocks then and else, which get all inputs
 * except the first one, the predicate. A LOOP has the blocks test and body, which get all
 * inputs. */
#include "lib/graph/control.h"

const char *tn__blocks_name(tn_node_kind kind, int block)
{
    static const char *const names[] = { "then", "else", "test", "body" };

    return names[(kind == TN_NODE_LOOP ? 2 : 0) + block];
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Returns the memory that a value of a block is a view of, as far as operators tell. */
static const tn_node *memory_of(const tn_node *value)
{
    while (value->kind == TN_NODE_OP && (value->op->flags & TN_OP_VIEW) != 0 && value->n_in > 0 &&
           !tn__graph_is_none(value->in[0]))
        value = value->in[0];
    return value;
}

static tn_status check_node(const tn_node *node)
{
    if (node->kind == TN_NODE_SLOT || node->kind == TN_NODE_CONSTANT ||
        node->kind == TN_NODE_CALL || node->kind == TN_NODE_REGION)
        return tn_fail(
            TN_ERR_VALUE,
            "node %s: wrong kind for a block, got %s; expected inputs and operators: pass "
            "what else the block needs as an input of it",
            node->name,
            node->kind == TN_NODE_SLOT       ? "a slot"
            : node->kind == TN_NODE_CONSTANT ? "a constant"
            : node->kind == TN_NODE_CALL     ? "a call of a module"
                                             : "a compiled region");
    for (int64_t i = 0; i < node->n_in; i++)
        if ((node->writes >> (i < 63 ? i : 63) & 1) != 0 && !tn__graph_is_none(node->in[i]) &&
            memory_of(node->in[i])->kind == TN_NODE_INPUT)
            return tn_fail(TN_ERR_VALUE,
                           "node %s: it writes into %s, which comes from outside of the block; "
                           "expected a block that writes only into what it has made",
                           node->name, memory_of(node->in[i])->name);
    return TN_OK;
}

static int depth_of(const tn_graph *graph, int above)
{
    int deepest = above;

    for (const tn_node *node = graph->steps; node != NULL && deepest <= TN__BLOCKS_DEEPEST;
         node = node->next)
        for (int i = 0; i < 2 && tn__graph_has_blocks(node); i++) {
            int depth = depth_of(node->blocks[i], above + 1);

            deepest = depth > deepest ? depth : deepest;
        }
    return deepest;
}

tn_status tn__blocks_check_depth(const tn_graph *graph, int above)
{
    if (depth_of(graph, above) <= TN__BLOCKS_DEEPEST)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "blocks: nested too deep; expected at most %d levels",
                   TN__BLOCKS_DEEPEST);
}

static tn_status check_counts(const tn_node *node, int block)
{
    const tn_graph *graph = node->blocks[block];
    int64_t n_in = node->n_in - tn__blocks_first(node);
    int64_t n_out = node->kind == TN_NODE_LOOP && block == 0 ? 1 : node->n_out;

    if (graph->output == NULL)
        return tn_fail(TN_ERR_VALUE, "no outputs; expected %lld", (long long)n_out);
    if (graph->n_inputs != n_in)
        return tn_fail(TN_ERR_VALUE,
                       "inputs: wrong number, got %lld; expected %lld, as many as "
                       "the node passes to the block",
                       (long long)graph->n_inputs, (long long)n_in);
    if (graph->output->n_in != n_out)
        return tn_fail(TN_ERR_VALUE, "outputs: wrong number, got %lld; expected %lld",
                       (long long)graph->output->n_in, (long long)n_out);
    return TN_OK;
}

static tn_status wrong_type(const tn_node *in, const tn_meta *got)
{
    const tn_meta *declared = &in->meta[0];
    tn__text a = { 0 }, b = { 0 };
    tn_status status;

    tn__tensor_text_ints(&a, (tn_ints){ got->shape, got->ndim });
    tn__text_put(&a, "", 1);
    tn__tensor_text_ints(&b, (tn_ints){ declared->shape, declared->ndim });
    tn__text_put(&b, "", 1);
    status = tn_fail(TN_ERR_VALUE,
                     "input %s: wrong dtype or shape, got %s%s; expected the declared ones, %s%s, "
                     "on which %s relied",
                     in->name, tn_dtype_name(got->dtype), a.failed ? "" : a.at,
                     tn_dtype_name(declared->dtype), b.failed ? "" : b.at, in->graph->fixed);
    tn__text_free(&a);
    tn__text_free(&b);
    return status;
}

/* Gives an input of a block the type of the value that it gets. If a pass relied on the declared
 * type, the input keeps it when the type of the value is unknown; any other type is an error. */
static tn_status take_input(tn_node *in, const tn_meta *meta)
{
    const tn_graph *graph = in->graph;
    const tn_meta *before = &in->meta[0];
    bool same = before->ndim == meta->ndim && tn__run_fits(graph, before->dtype, meta->dtype);

    for (int32_t d = 0; same && d < meta->ndim; d++)
        same = before->shape[d] == meta->shape[d];
    if (graph->fixed != NULL && before->ndim >= 0 && meta->ndim < 0)
        return TN_OK; /* a run checks it */
    if (graph->fixed != NULL && before->ndim >= 0 && !same)
        return wrong_type(in, meta);
    in->meta[0] = *meta;
    return TN_OK;
}

static tn_status take_inputs(tn_node *node, int block)
{
    tn_status status = check_counts(node, block);
    int64_t i = tn__blocks_first(node);

    for (tn_node *in = node->blocks[block]->first;
         status == TN_OK && in != NULL && tn__graph_is_leaf(in); in = in->next)
        if (in->kind == TN_NODE_INPUT)
            status = take_input(in, node->in[i++]->meta);
    return status;
}

tn_status tn__blocks_inputs(tn_node *node)
{
    tn_status status = TN_OK;

    for (int block = 0; block < 2 && status == TN_OK; block++)
        if ((status = take_inputs(node, block)) != TN_OK)
            status = tn_error_prefix("%s: ", tn__blocks_name(node->kind, block));
    return status;
}

static tn_status check_block(tn_node *node, int block)
{
    tn_graph *graph = node->blocks[block];
    tn_status status = take_inputs(node, block);

    if (status == TN_OK)
        status = tn__lint_graph(graph);
    for (const tn_node *step = graph->first; step != NULL && status == TN_OK; step = step->next)
        status = check_node(step);
    return status == TN_OK ? TN_OK : tn_error_prefix("%s: ", tn__blocks_name(node->kind, block));
}

/* The types of the results of a block. */
static void results_of(const tn_graph *block, tn_meta *metas)
{
    for (int64_t i = 0; i < block->output->n_in; i++)
        metas[i] = block->output->in[i]->meta[0];
}

/* Checks the results of the blocks, and writes those of the node. */
static tn_status check_results(tn_node *node, tn_meta *first, tn_meta *second)
{
    const tn_node *test = node->blocks[0]->output;
    tn_status status;

    if (node->kind == TN_NODE_IF) {
        status = tn__control_check_bool(node->in[0]->meta, "predicate");
        results_of(node->blocks[0], first);
    } else {
        status = tn__control_check(node->kind, 0, test->in[0]->meta, NULL, 1);
        for (int32_t i = 0; i < node->n_out; i++) {
            first[i] = node->in[i]->meta[0];
            first[i].flags = 0;
            tn__op_meta_strides(&first[i]);
        }
    }
    results_of(node->blocks[1], second);
    if (status == TN_OK)
        status = tn__control_check(node->kind, 1, second, first, node->n_out);
    for (int32_t i = 0; i < node->n_out && status == TN_OK; i++) {
        node->meta[i] = second[i].ndim < 0 ? second[i] : first[i];
        if (node->items != NULL)
            node->items[i]->meta[0] = node->meta[i];
    }
    return status;
}

tn_status tn__blocks_infer(tn_node *node)
{
    tn_meta *metas = tn_calloc(2 * (size_t)node->n_out + 1, sizeof *metas);
    tn_status status = metas != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int block = 0; block < 2 && status == TN_OK; block++)
        status = check_block(node, block);
    if (status == TN_OK)
        status = check_results(node, metas, metas + node->n_out);
    tn_free(metas);
    return status;
}

/* ---- building -------------------------------------------------------------------------------- */

tn_status tn__blocks_copy(tn_node *to, const tn_node *from)
{
    to->most = from->most;
    for (int i = 0; i < 2 && from->blocks[i] != NULL; i++) {
        to->blocks[i] = tn_graph_copy(from->blocks[i]);
        if (to->blocks[i] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

void tn__blocks_drop(tn_node *node)
{
    tn_graph_drop(node->blocks[0]);
    tn_graph_drop(node->blocks[1]);
}

void tn__blocks_symbols(tn_node *node)
{
    for (int i = 0; i < 2 && tn__graph_has_blocks(node); i++) {
        tn_graph *block = node->blocks[i];

        memcpy(block->symbols, node->graph->symbols, sizeof block->symbols);
        block->n_symbols = node->graph->n_symbols;
        for (tn_node *inner = block->steps; inner != NULL; inner = inner->next)
            tn__blocks_symbols(inner);
    }
}

static tn_status complete(tn_node *node, tn_node *const *inputs, const tn_meta *metas)
{
    tn_status status = TN_OK;
    int32_t carried = node->kind == TN_NODE_LOOP ? node->n_out : 0;
    char what[64];

    if (node->n_out < 1 || carried > node->n_in)
        return tn_fail(TN_ERR_VALUE,
                       "%s: wrong number of results, got %d; expected at least one, and for a loop "
                       "not more than the %lld inputs",
                       node->name, (int)node->n_out, (long long)node->n_in);
    for (int i = 0; i < 2; i++)
        if (tn__blocks_check_depth(node->blocks[i], 1) != TN_OK)
            return tn_error_prefix("%s: ", node->name);
    tn_snprint(what, sizeof what, "%s: input", tn__control_name(node->kind));
    for (int64_t i = 0; i < node->n_in && status == TN_OK; i++) {
        status = tn__graph_value_check(node->graph, inputs[i], false, what);
        if (status == TN_OK)
            status = tn__graph_node_use(node, i, inputs[i]);
    }
    if (status != TN_OK)
        return status;
    tn__blocks_symbols(node);
    if (metas == NULL) {
        status = tn__blocks_infer(node);
        return status == TN_OK ? TN_OK : tn__graph_node_failed(node->name, node->path);
    }
    memcpy(node->meta, metas, (size_t)node->n_out * sizeof *metas);
    return TN_OK;
}

tn_node *tn__blocks_build(tn_graph *graph, tn_node *before, tn_node_kind kind, const char *name,
                          tn_graph *const blocks[2], int64_t most, tn_node *const *inputs,
                          int64_t n_inputs, const tn_meta *metas)
{
    const tn_node *output = blocks[kind == TN_NODE_IF ? 0 : 1]->output;
    int64_t n_out = output != NULL && output->n_in < INT32_MAX ? output->n_in : 0;
    const char *base = kind == TN_NODE_IF ? "cond" : "loop";
    tn_node *node = NULL;

    if (tn__build_check_place(
            graph, before, kind == TN_NODE_IF ? "tn_graph_add_cond" : "tn_graph_add_loop") == TN_OK)
        node = tn__graph_node_new(graph, kind, name != NULL ? name : base, name != NULL, n_inputs,
                                  (int32_t)n_out);
    if (node == NULL) {
        tn_graph_drop(blocks[0]);
        tn_graph_drop(blocks[1]);
        return NULL;
    }
    for (int i = 0; i < 2; i++) { /* inputs and results of blocks have no names */
        node->blocks[i] = blocks[i];
        tn_pack_drop(blocks[i]->in);
        tn_pack_drop(blocks[i]->out);
        blocks[i]->in = blocks[i]->out = NULL;
    }
    node->most = kind == TN_NODE_LOOP && most >= 0 ? most : -1;
    if (complete(node, inputs, metas) != TN_OK) {
        tn__graph_node_undo(node);
        return NULL;
    }
    return tn__build_link(node, before);
}

/* An expression in a block names symbols by their index. So a block must have the symbols of the
 * graph in the same order, or none. */
static tn_status check_symbols(const tn_graph *graph, const tn_graph *block)
{
    bool same = block->n_symbols == 0 || block->n_symbols == graph->n_symbols;

    for (int32_t i = 0; same && i < block->n_symbols; i++) {
        const tn__symbol *a = &graph->symbols[i], *b = &block->symbols[i];

        same = strcmp(a->name, b->name) == 0 && a->value == b->value && a->least == b->least;
    }
    return same
               ? TN_OK
               : tn_fail(TN_ERR_VALUE, "block: its sizes that vary differ from those of the "
                                       "graph; expected the same sizes in the same order, or none");
}

/* *training is the mode that the graph is for, -1: both. Sets it to the mode of the block, if the
 * block is for one mode only. Fails if the two modes differ. */
static tn_status check_mode(const tn_graph *block, int32_t *training)
{
    static const char *const modes[] = { "evaluation", "training" };

    if (block->training >= 0 && *training >= 0 && block->training != *training)
        return tn_fail(TN_ERR_VALUE, "block: it is for %s mode; expected %s mode",
                       modes[block->training], modes[*training]);
    *training = block->training >= 0 ? block->training : *training;
    return TN_OK;
}

/* Copies the blocks, and adds the node. */
static tn_node *add(tn_graph *graph, tn_node *before, tn_node_kind kind, const tn_graph *first,
                    const tn_graph *second, int64_t most, tn_node *const *inputs, int64_t n_inputs)
{
    tn_graph *blocks[2];
    int32_t training = graph->training;
    tn_node *node;

    if (check_symbols(graph, first) != TN_OK || check_symbols(graph, second) != TN_OK ||
        check_mode(first, &training) != TN_OK || check_mode(second, &training) != TN_OK)
        return NULL;
    blocks[0] = tn_graph_copy(first);
    blocks[1] = tn_graph_copy(second);
    if (blocks[0] == NULL || blocks[1] == NULL) {
        tn_graph_drop(blocks[0]);
        tn_graph_drop(blocks[1]);
        return NULL;
    }
    node = tn__blocks_build(graph, before, kind, NULL, blocks, most, inputs, n_inputs, NULL);
    if (node != NULL)
        graph->training = training;
    return node;
}

static bool given(const tn_graph *graph, const tn_graph *first, const tn_graph *second,
                  tn_node *const *inputs, int64_t n_inputs, const char *who)
{
    return tn__not_null(graph, who) && tn__not_null(first, who) && tn__not_null(second, who) &&
           tn__given(n_inputs == 0 || (n_inputs > 0 && inputs != NULL), who);
}

tn_node *tn_graph_add_cond(tn_graph *graph, tn_node *before, tn_node *predicate,
                           const tn_graph *then_graph, const tn_graph *else_graph,
                           tn_node *const *inputs, int64_t n_inputs)
{
    tn_node **all, *node;

    if (!given(graph, then_graph, else_graph, inputs, n_inputs, "tn_graph_add_cond: argument"))
        return NULL;
    all = tn_malloc(((size_t)n_inputs + 1) * sizeof *all);
    if (all == NULL)
        return NULL;
    all[0] = predicate;
    if (n_inputs > 0)
        memcpy(all + 1, inputs, (size_t)n_inputs * sizeof *all);
    node = add(graph, before, TN_NODE_IF, then_graph, else_graph, -1, all, n_inputs + 1);
    tn_free(all);
    return node;
}

tn_node *tn_graph_add_loop(tn_graph *graph, tn_node *before, const tn_graph *test_graph,
                           const tn_graph *body_graph, int64_t most, tn_node *const *inputs,
                           int64_t n_inputs)
{
    if (!given(graph, test_graph, body_graph, inputs, n_inputs, "tn_graph_add_loop: argument"))
        return NULL;
    return add(graph, before, TN_NODE_LOOP, test_graph, body_graph, most, inputs, n_inputs);
}

tn_graph *tn_node_block(const tn_node *node, int64_t index)
{
    if (tn__graph_node_asked(node, "tn_node_block: node"))
        return index == 0 || index == 1 ? node->blocks[index] : NULL;
    return NULL;
}

bool tn__graph_draws(const tn_node *node)
{
    bool draws = node->kind == TN_NODE_CALL ||
                 (node->op != NULL && (node->op->flags & (TN_OP_RANDOM | TN_OP_ORDERED)) != 0);

    for (int i = 0; i < 2 && tn__graph_has_blocks(node); i++)
        for (const tn_node *inner = node->blocks[i]->steps; inner != NULL && !draws;
             inner = inner->next)
            draws = tn__graph_draws(inner);
    return draws;
}

/* ---- running --------------------------------------------------------------------------------- */

static tn_status run_block(const tn__blocks *run, int block, tn_tensor *const *in, int64_t n_in,
                           tn_tensor **out)
{
    const tn_node *node = run->node;
    int64_t first = tn__blocks_first(node), all = node->n_in - first;
    tn_tensor **given;
    tn_status status = check_counts(node, block);

    if (status != TN_OK || n_in == all)
        return status == TN_OK ? tn__run_block(node->blocks[block], run->symbols, in, out) : status;
    given = tn_malloc((size_t)all *
                      sizeof(tn_tensor *)); /* a loop: the inputs that do not change */
    if (given == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < all; i++)
        given[i] = i < n_in ? in[i] : run->in[i];
    status = tn__run_block(node->blocks[block], run->symbols, given, out);
    tn_free(given);
    return status;
}

static tn_status run_first(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                           int64_t n_out)
{
    (void)n_out;
    return run_block(user, 0, in, n_in, out);
}

static tn_status run_second(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                            int64_t n_out)
{
    (void)n_out;
    return run_block(user, 1, in, n_in, out);
}

const tn__blocks *tn__blocks_of(const tn__control *control)
{
    return control->fn[0] == run_first ? control->user : NULL;
}

tn_status tn__blocks_run(const tn_node *node, const int64_t *symbols, tn_tensor *const *in,
                         tn_tensor **out)
{
    tn__blocks run = { node, symbols, in };
    tn_status status;

    if (node->kind == TN_NODE_IF)
        return tn_cond(in[0], run_first, run_second, in + 1, node->n_in - 1, out, node->n_out,
                       &run);
    status = tn_loop(run_first, run_second, node->most, in, out, node->n_out, &run);
    if (status == TN_OK) /* tn_loop does not know the inputs that do not change */
        status = tn__control_apart(in + node->n_out, node->n_in - node->n_out, out, node->n_out);
    for (int32_t i = 0; i < node->n_out && status != TN_OK; i++)
        out[i] = NULL;
    return status;
}

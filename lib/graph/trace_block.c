/* SPDX-License-Identifier: MIT
 *
 * Records calls of tn_cond and tn_loop. Each function is recorded once, in a graph of its own. A
 * tensor from outside that the function uses becomes an input of the node and of both blocks. */
#include "lib/graph/control.h"
#include "lib/graph/tracing.h"

/* ---- levels ---------------------------------------------------------------------------------- */

/* Exchanges the level of the trace with that of the block. */
static void exchange(tn__trace *trace, tn__trace_block *block)
{
    tn__trace_level level = trace->level;

    trace->level = block->level;
    block->level = level;
}

static bool is_of(const tn__trace_level *level, const tn_tensor *tensor)
{
    return tn__map_value(&level->values, tensor) != NULL;
}

/* Returns the node of a tensor in the graph around the block. */
static tn_node *node_around(tn__trace *trace, tn__trace_block *block, tn_tensor *tensor)
{
    tn_node *node;

    exchange(trace, block);
    trace->block = block->outer;
    node = tn__trace_node(trace, tensor);
    trace->block = block;
    exchange(trace, block);
    return node;
}

/* Adds an input to the block that is being recorded. */
static tn_node *add_input(tn__trace *trace, const char *name, tn_tensor *tensor)
{
    tn_graph *graph = trace->level.graph;
    tn_node *node = tn__graph_node_new(graph, TN_NODE_INPUT, name, false, 0, 1);

    if (node == NULL)
        return NULL;
    tn__build_meta_of(tensor, &node->meta[0]);
    graph->n_inputs++;
    tn__graph_node_link(node, NULL);
    return tn__trace_map(trace, tensor, node) == TN_OK ? node : NULL;
}

/* Records a tensor from outside as an input of the node. */
static tn_status note_taken(tn__trace_taken *taken, tn_tensor *tensor, tn_node *node)
{
    for (int64_t i = 0; i < taken->count; i++)
        if (taken->at[i].tensor == tensor)
            return TN_OK;
    if (!tn__vector_room(&taken->at, &taken->capacity, taken->count + 1, sizeof *taken->at))
        return TN_ERR_MEMORY;
    taken->at[taken->count++] = (tn__taken){ tensor, node };
    return TN_OK;
}

tn_node *tn__trace_take(tn__trace *trace, tn_tensor *tensor, bool *outside)
{
    tn__trace_block *block = trace->block;
    tn_node *node, *input;

    *outside = (tensor->storage->flags & TN__STORAGE_TRACED) == 0;
    for (const tn__trace_block *at = block; at != NULL && !*outside; at = at->outer)
        *outside = is_of(&at->level, tensor);
    if (!*outside)
        return NULL;
    node = node_around(trace, block, tensor);
    if (node == NULL || note_taken(block->taken, tensor, node) != TN_OK)
        return NULL;
    input = add_input(trace, node->name, tensor);
    return input;
}

/* If a block uses a tensor from outside that has this memory, returns its node outside, else NULL.
 * */
static const tn_node *owner_of(const tn__trace_block *block, const tn__storage *storage)
{
    for (int64_t i = 0; i < block->n_in; i++)
        if (block->in[i] != NULL && block->in[i]->storage == storage)
            return block->nodes[i];
    for (int64_t i = 0; i < block->taken->count; i++)
        if (block->taken->at[i].tensor->storage == storage)
            return block->taken->at[i].node;
    return NULL;
}

tn_status tn__trace_check_write(const tn__trace *trace, const tn_tensor *tensor)
{
    const tn__trace_block *block = trace->block;
    const tn_node *node = owner_of(block, tensor->storage);

    if (node == NULL)
        return TN_OK;
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "%s: %s: it writes into %%%s, which comes from outside; expected a function "
                   "that writes only into tensors that it has made",
                   tn__control_name(block->kind), tn__blocks_name(block->kind, block->number),
                   node->name);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

void tn__trace_level_free(tn__trace_level *level)
{
    for (int64_t i = 0; i < level->n_kept; i++)
        tn_tensor_drop(level->kept[i]);
    tn_free(level->kept);
    tn__map_free(&level->values);
}

/* Makes the results of the function the outputs of its graph. */
static tn_status add_outputs(tn__trace *trace, tn_tensor *const *out, int64_t count, tn_meta *metas)
{
    tn_node **nodes = tn_malloc((size_t)count * sizeof *nodes);
    tn_status status = nodes != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        nodes[i] = tn__trace_node(trace, out[i]);
        if (nodes[i] == NULL)
            status = tn_error_last_code();
        tn__build_meta_of(out[i], &metas[i]);
    }
    if (status == TN_OK)
        status = tn_graph_output(trace->level.graph, nodes, count);
    tn_free(nodes);
    return status;
}

static tn_status call(tn__trace *trace, const tn__control *c, tn_node *const *nodes,
                      tn_tensor **space, tn_meta *metas, const tn_device **devices, int64_t count)
{
    tn_tensor **in = space, **out = space + c->n_in;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < c->n_in && status == TN_OK; i++) {
        tn_meta meta;

        if (c->kind == TN_NODE_LOOP)
            tn__control_carried(c->in[i], &meta);
        else
            tn__tensor_meta(c->in[i], &meta);
        in[i] = tn__trace_make_like(&meta, c->in[i]->device);
        if (in[i] == NULL || add_input(trace, nodes[i]->name, in[i]) == NULL)
            status = tn_error_last_code();
    }
    if (status == TN_OK)
        status = tn__control_call(c, trace->block->number, in, out, count);
    for (int64_t i = 0; i < count && devices != NULL && status == TN_OK; i++)
        devices[i] = out[i]->device;
    return status == TN_OK ? add_outputs(trace, out, count, metas) : status;
}

/* Records one function. Its graph is in block->level afterwards. */
static tn_status record_block(tn__trace *trace, const tn__control *c, tn__trace_block *block,
                              tn_node *const *nodes, tn_meta *metas, const tn_device **devices,
                              int64_t count)
{
    tn_tensor **space = tn_calloc((size_t)(c->n_in + count) + 1, sizeof(tn_tensor *));
    uint64_t scope = tn_scope_begin();
    tn_status status = space != NULL ? TN_OK : TN_ERR_MEMORY;

    block->outer = trace->block;
    block->level.graph = tn_graph_new();
    if (block->level.graph == NULL)
        status = TN_ERR_MEMORY;
    block->in = space;
    block->n_in = space != NULL ? c->n_in : 0;
    block->nodes = nodes;
    exchange(trace, block);
    trace->block = block;
    if (status == TN_OK)
        status = call(trace, c, nodes, space, metas, devices, count);
    trace->block = block->outer;
    exchange(trace, block);
    /* Nothing outside may use what the function has made, except by its results. */
    for (int64_t i = 0; i < block->level.n_kept; i++)
        if ((block->level.kept[i]->storage->flags & TN__STORAGE_TRACED) != 0)
            block->level.kept[i]->storage->flags |= TN__STORAGE_PENDING;
    tn_scope_end(scope);
    tn_free(space);
    block->n_in = 0;
    return status;
}

/* Gives a block the inputs that only the other block uses, and puts the inputs of both in one
 * order. */
static tn_status complete(tn__trace_block *block, const tn__trace_taken *taken)
{
    tn_graph *graph = block->level.graph;

    for (int64_t i = 0; i < taken->count; i++) {
        void **found = tn__map_value(&block->level.values, taken->at[i].tensor);
        tn_node *input = found != NULL ? *found : NULL;

        if (input != NULL) {
            tn__graph_node_unlink(input);
        } else {
            input = tn__graph_node_new(graph, TN_NODE_INPUT, taken->at[i].node->name, false, 0, 1);
            if (input == NULL)
                return tn_error_last_code();
            tn__build_meta_of(taken->at[i].tensor, &input->meta[0]);
            graph->n_inputs++;
        }
        tn__graph_node_link(input, NULL);
    }
    return TN_OK;
}

/* ---- the node -------------------------------------------------------------------------------- */

/* What a call becomes: the inputs first, then what the functions have taken. */
struct recorded {
    tn__trace_taken taken;
    tn__trace_block blocks[2];
    tn_node **nodes; /* predicate, inputs */
    int64_t n_nodes;
    tn_meta *metas;            /* of the results, then of those of the second function */
    const tn_device **devices; /* of the results */
};

static tn_status take_nodes(tn__trace *trace, const tn__control *c, struct recorded *r)
{
    tn_status status = TN_OK;

    r->nodes = tn_malloc(((size_t)c->n_in + 1) * sizeof *r->nodes);
    r->metas = tn_calloc(2 * (size_t)c->n_out + 1, sizeof *r->metas);
    r->devices = tn_calloc((size_t)c->n_out, sizeof *r->devices);
    if (r->nodes == NULL || r->metas == NULL || r->devices == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = c->predicate != NULL ? -1 : 0; i < c->n_in && status == TN_OK; i++) {
        r->nodes[r->n_nodes] = tn__trace_node(trace, i < 0 ? c->predicate : c->in[i]);
        if (r->nodes[r->n_nodes++] == NULL)
            status = tn_error_last_code();
    }
    return status;
}

static tn_status record_blocks(tn__trace *trace, const tn__control *c, struct recorded *r)
{
    tn_node *const *inputs = r->nodes + (c->predicate != NULL ? 1 : 0);
    bool loop = c->kind == TN_NODE_LOOP;
    tn_meta test, *first = r->metas, *second = r->metas + c->n_out;
    tn_status status = TN_OK;

    if (!loop) {
        tn__tensor_meta(c->predicate, &test);
        status = tn__control_check_bool(&test, "tn_cond: predicate");
    }
    for (int i = 0; i < 2; i++)
        r->blocks[i] = (tn__trace_block){ .kind = c->kind, .number = i, .taken = &r->taken };
    if (status == TN_OK)
        status = record_block(trace, c, &r->blocks[0], inputs, loop ? &test : first, NULL,
                              loop ? 1 : c->n_out);
    if (status == TN_OK && loop)
        status = tn__control_check(c->kind, 0, &test, NULL, 1);
    if (status == TN_OK)
        status = record_block(trace, c, &r->blocks[1], inputs, second, r->devices, c->n_out);
    for (int64_t i = 0; i < c->n_out && loop; i++)
        tn__control_carried(c->in[i], &first[i]);
    if (status == TN_OK)
        status = tn__control_check(c->kind, 1, second, first, c->n_out);
    for (int i = 0; i < 2 && status == TN_OK; i++)
        status = complete(&r->blocks[i], &r->taken);
    return status;
}

static tn_status add_node(tn__trace *trace, const tn__control *c, struct recorded *r,
                          tn_node **made)
{
    int64_t count = r->n_nodes + r->taken.count;
    tn_node **all = tn_malloc(((size_t)count + 1) * sizeof *all);
    tn_graph *blocks[2] = { r->blocks[0].level.graph, r->blocks[1].level.graph };

    if (all == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        all[i] = i < r->n_nodes ? r->nodes[i] : r->taken.at[i - r->n_nodes].node;
    r->blocks[0].level.graph = r->blocks[1].level.graph = NULL; /* the node has them */
    *made = tn__blocks_build(trace->level.graph, trace->level.before, c->kind, NULL, blocks,
                             c->most, all, count, r->metas);
    tn_free(all);
    if (*made == NULL)
        return tn_error_last_code();
    (*made)->no_grad = !tn__grad_on() && !tn__making.is.inference;
    return tn__trace_where(trace, *made);
}

/* Makes the results of the call. The scope owns them. */
static tn_status make_results(tn__trace *trace, const tn__control *c, const tn_node *node,
                              const tn_device *const *devices)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < c->n_out && status == TN_OK; i++) {
        c->out[i] = tn__trace_make_like(&node->meta[i], devices[i]);
        status = c->out[i] == NULL ? tn_error_last_code()
                                   : tn__trace_map(trace, c->out[i], tn_node_item(node, i));
    }
    return status;
}

static int depth_of(const tn__trace *trace)
{
    int depth = 1;

    for (const tn__trace_block *at = trace->block; at != NULL; at = at->outer)
        depth++;
    return depth;
}

tn_status tn__trace_control(tn__tracer *tracer, const tn__control *c)
{
    tn__trace *trace = tn__trace_of(tracer);
    struct recorded r = { .n_nodes = 0 };
    tn_node *node = NULL;
    tn_status status = TN_OK;

    if (depth_of(trace) > TN__BLOCKS_DEEPEST)
        status = tn_fail(TN_ERR_VALUE, "%s: calls: nested too deep; expected at most %d levels",
                         tn__control_name(c->kind), TN__BLOCKS_DEEPEST);
    if (status == TN_OK)
        status = take_nodes(trace, c, &r);
    if (status == TN_OK)
        status = record_blocks(trace, c, &r);
    if (status == TN_OK)
        status = add_node(trace, c, &r, &node);
    if (status == TN_OK)
        status = make_results(trace, c, node, r.devices);
    for (int i = 0; i < 2; i++) {
        tn_graph_drop(r.blocks[i].level.graph);
        tn__trace_level_free(&r.blocks[i].level);
    }
    tn_free(r.taken.at);
    tn_free(r.nodes);
    tn_free(r.metas);
    tn_free((void *)(uintptr_t)r.devices);
    for (int64_t i = 0; i < c->n_out && status != TN_OK; i++)
        c->out[i] = NULL;
    return status == TN_OK ? TN_OK : tn__trace_keep_failure(trace);
}

/* SPDX-License-Identifier: MIT
 *
 * Checks whether a graph can run, and infers the outputs of its nodes. */
#include "lib/graph/private.h"
#include "core/tensor/trace.h"

/* Fails if a node has too many or too few inputs, or lacks a required one. Sets the same errors as
 * a call of the operator. */
static tn_status check_operands(const tn_node *node, int64_t n_in)
{
    const tn_op_def *def = &node->op->def;
    bool list = (node->op->flags & TN__OP_LIST) != 0;

    if (n_in != def->n_inputs && !(list && n_in > def->n_inputs))
        return tn_fail(TN_ERR_VALUE, "%s: inputs: wrong number, got %lld; expected %s%d", def->name,
                       (long long)n_in, list ? "at least " : "", (int)def->n_inputs);
    for (int64_t i = 0; i < n_in; i++)
        if (tn__graph_is_none(node->in[i]) &&
            (tn__operand(node->op, i)->flags & TN_OPERAND_OPTIONAL) == 0)
            return tn_fail(TN_ERR_VALUE, "%s: %s: no tensor, got TN_NODE_NONE; expected a tensor",
                           def->name, tn__operand(node->op, i)->name);
    return TN_OK;
}

static void put_meta(tn__text *text, const tn_meta *meta)
{
    tn__text_add(text, "%s", tn_dtype_name(meta->dtype));
    if (meta->ndim < 0)
        tn__text_add(text, " of a shape that only a run knows");
    else
        tn__tensor_text_ints(text, (tn_ints){ meta->shape, meta->ndim });
    tn__text_put(text, "", 1);
}

static tn_status wrong_shape(const tn_node *node, const tn_meta *into, const tn_meta *out)
{
    tn__text got = { 0 }, expected = { 0 };
    tn_status status;

    put_meta(&got, into);
    put_meta(&expected, out);
    status = tn_fail(TN_ERR_RUNTIME,
                     "%s: written-to tensor: wrong shape, got %s of node %s; expected the shape of "
                     "the result, %s",
                     node->op->def.name, got.failed ? "?" : got.at, node->in[node->n_in - 1]->name,
                     expected.failed ? "?" : expected.at);
    tn__text_free(&got);
    tn__text_free(&expected);
    return status;
}

/* Checks the result of an INPLACE node, and makes it the value that is written. */
static tn_status infer_written(const tn_node *node, tn_meta *out)
{
    const tn_meta *into = node->in[node->n_in - 1]->meta;
    bool same = out->ndim == into->ndim;

    for (int32_t d = 0; same && d < out->ndim; d++)
        same = out->shape[d] == into->shape[d];
    if (node->op->def.n_outputs != 1)
        return tn_fail(TN_ERR_VALUE,
                       "%s: no form that writes into a tensor, because it has %d outputs; "
                       "expected an operator with one",
                       node->op->def.name, (int)node->op->def.n_outputs);
    if (!same && (node->op->def.flags & TN_OP_INTO) == 0 && out->ndim >= 0 && into->ndim >= 0)
        return wrong_shape(node, into, out);
    *out = *into;
    return TN_OK;
}

static tn_status infer_known(tn_node *node, int64_t n_in)
{
    const tn_meta **in = tn_malloc(((size_t)n_in + 1) * sizeof(const tn_meta *));
    tn_meta *out = tn_calloc((size_t)node->n_out + 1, sizeof *out);
    tn_status status = in != NULL && out != NULL ? TN_OK : TN_ERR_MEMORY;
    bool open = false;

    for (int64_t i = 0; i < n_in && status == TN_OK; i++)
        in[i] = tn__graph_is_none(node->in[i]) ? NULL : node->in[i]->meta;
    if (status == TN_OK)
        status = tn__op_infer(node->op, in, n_in, node->options, out, &node->writes);
    if (status == TN_OK && node->kind == TN_NODE_INPLACE)
        status = infer_written(node, out);
    for (int32_t i = 0; i < node->n_out && status == TN_OK; i++) {
        node->meta[i] = out[i];
        open |= out[i].ndim < 0;
    }
    if (status == TN_OK && open && node->op->def.decompose != NULL && tn__tracer_here == NULL)
        status = tn__trace_infer(node);
    tn_free(in);
    tn_free(out);
    return status;
}

tn_status tn__lint_infer(tn_node *node)
{
    int64_t n_in = node->n_in - (node->kind == TN_NODE_INPLACE);
    tn_status status = check_operands(node, n_in);
    bool known = true;

    for (int64_t i = 0; i < node->n_in && status == TN_OK; i++)
        known &= tn__graph_is_none(node->in[i]) || node->in[i]->meta->ndim >= 0;
    if (status != TN_OK)
        return status;
    if (known)
        status = infer_known(node, n_in);
    if (node->kind == TN_NODE_INPLACE)
        node->writes = (uint64_t)1 << (n_in < 63 ? n_in : 63);
    if (known)
        return status;
    for (int32_t i = 0; i < node->n_out; i++)
        node->meta[i] = (tn_meta){ .dtype = TN_DTYPE_AUTO, .ndim = -1 };
    return TN_OK;
}

/* Checks that every input is a value of this graph and comes before the node. */
static tn_status check_inputs(const tn_node *node, const bool *seen)
{
    tn_status status = TN_OK;
    char what[160];

    for (int64_t i = 0; i < node->n_in && status == TN_OK; i++) {
        const tn_node *in = node->in[i];

        if (tn__graph_is_none(in))
            continue;
        tn_snprint(what, sizeof what, "node %s: input %lld", node->name, (long long)i);
        status = node->kind == TN_NODE_ITEM ? tn__graph_node_check(node->graph, in, what)
                                            : tn__graph_value_check(node->graph, in, true, what);
        if (status == TN_OK && !seen[in->id])
            status = tn_fail(TN_ERR_VALUE,
                             "%s: node %s does not come before this node; expected an earlier node",
                             what, in->name);
    }
    return status;
}

static tn_status lint_node(tn_node *node, const bool *seen)
{
    tn_status status = check_inputs(node, seen);

    if (status == TN_OK && node->kind == TN_NODE_SLOT) /* the program may have exchanged it */
        tn__build_meta_of(node->held.tensor, &node->meta[0]);
    if (status != TN_OK || (node->op == NULL && !tn__graph_has_blocks(node)))
        return status;
    status = node->op != NULL ? tn__lint_infer(node) : tn__blocks_infer(node);
    if (status != TN_OK)
        return tn__graph_node_failed(node->name, node->path);
    for (int32_t i = 0; node->items != NULL && i < node->n_out; i++)
        node->items[i]->meta[0] = node->meta[i];
    return TN_OK;
}

static tn_status other_type(const tn_node *region, int64_t i, const tn_meta *now,
                            const tn_meta *then)
{
    tn__text got = { 0 }, expected = { 0 };
    tn_status status;

    put_meta(&got, now);
    put_meta(&expected, then);
    status = tn_fail(TN_ERR_VALUE,
                     "node %s: input %lld: wrong dtype or shape, got %s of node %s; expected %s, "
                     "for which compiler %s compiled the region",
                     region->name, (long long)i, got.failed ? "?" : got.at, region->in[i]->name,
                     expected.failed ? "?" : expected.at, region->region->def->name);
    tn__text_free(&got);
    tn__text_free(&expected);
    return status;
}

/* Checks that the inputs of a region still have the dtypes and shapes for which it was compiled. */
static tn_status lint_region(const tn_node *node)
{
    for (int64_t i = 0; i < node->n_in; i++) {
        const tn_meta *now = node->in[i]->meta, *then = &node->region->in[i];
        bool same = now->dtype == then->dtype && now->ndim == then->ndim;

        for (int32_t d = 0; same && d < now->ndim; d++)
            same = now->shape[d] == then->shape[d];
        if (!same)
            return other_type(node, i, now, then);
    }
    return TN_OK;
}

tn_status tn__lint_graph(tn_graph *graph)
{
    tn_status status = TN_OK;
    bool *seen = tn_calloc((size_t)graph->next_id + 1, sizeof *seen);

    if (seen == NULL)
        return TN_ERR_MEMORY;
    for (tn_node *node = graph->first; node != NULL && status == TN_OK; node = node->next) {
        status = lint_node(node, seen);
        if (status == TN_OK && node->kind == TN_NODE_REGION)
            status = lint_region(node);
        seen[node->id] = true;
    }
    tn_free(seen);
    return status;
}

tn_status tn_graph_lint(tn_graph *graph)
{
    tn_status status;

    if (!tn__not_null(graph, "tn_graph_lint: graph"))
        return tn_error_last_code();
    if (graph->output == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_graph_lint: no outputs; call tn_graph_output first");
    status = tn__blocks_check_depth(graph, 0);
    if (status == TN_OK)
        status = tn__lint_graph(graph);
    return status == TN_OK ? TN_OK : tn_error_prefix("tn_graph_lint: ");
}

/* SPDX-License-Identifier: MIT
 *
 * For tests of passes and compilers that are older than an operator: one of another plugin, to
 * which version 9 has added an input. */
#ifndef TN_TESTS_GRAPH_GROWN_OP_H
#define TN_TESTS_GRAPH_GROWN_OP_H

#include "core/op/internal.h"
#include "tests/graph/suite.h"

static tn_status grown_infer(tn_infer *infer)
{
    infer->out[0].dtype = tn_view_dtype(infer->in[0]);
    infer->out[0].ndim = infer->in[0]->ndim;
    memcpy(infer->out[0].shape, infer->in[0]->shape,
           (size_t)infer->in[0]->ndim * sizeof *infer->in[0]->shape);
    return TN_OK;
}

static const tn_operand grown_in[] = { { "x", 0, TN_MASK_FLOAT },
                                       { "more", TN_OPERAND_OPTIONAL | TN_OPERAND_SINCE(9),
                                         TN_MASK_FLOAT } },
                        grown_out[] = { { "y", 0, TN_MASK_FLOAT } };

/* relu(x), test_grown of it, and test_grown of that and x. */
static tn_graph *grown_graph(void)
{
    static tn__plugin stranger = { .id = "stranger", .file = "/stranger.so", .active = 1 };
    static const tn_op_def def = { TN_HEAD(tn_op_def),   .name = "test_grown", .math = "y = x",
                                   .help = "",           .revision = 1,        .inputs = grown_in,
                                   .outputs = grown_out, .n_inputs = 2,        .n_outputs = 1,
                                   .dispatch_input = -1, .infer = grown_infer };
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32), *out;

    ck_ok(tn__op_add(&def, &stranger));
    out = step(graph, "test_grown()", step(graph, "relu()", x, NULL), NULL);
    out = step(graph, "test_grown()", out, x);
    ck_ok(tn_graph_output(graph, &out, 1));
    return graph;
}

#endif

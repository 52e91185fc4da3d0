/* SPDX-License-Identifier: MIT
 *
 * Calls of tn_cond and tn_loop, as the recorders of traces and plans get them. */
#ifndef TN_LIB_GRAPH_CONTROL_H
#define TN_LIB_GRAPH_CONTROL_H

#include "lib/graph/private.h"
#include "core/tensor/trace.h"

typedef struct tn__control {
    tn_node_kind kind;    /* TN_NODE_IF or TN_NODE_LOOP */
    tn_tensor *predicate; /* of an IF */
    tn_block_fn fn[2];    /* as the blocks of a node */
    void *user;
    int64_t most;
    tn_tensor *const *in;
    int64_t n_in;
    tn_tensor **out;
    int64_t n_out;
} tn__control;

/* The user data of the functions while tn_cond or tn_loop runs a node. */
typedef struct tn__blocks {
    const tn_node *node;
    const int64_t *symbols; /* NULL: those of the trace */
    tn_tensor *const *in;   /* all inputs of the node */
} tn__blocks;

/* ---- control.c ---- */
/* Calls one of the functions, and checks that it has set its results. They belong to the scope. */
tn_status tn__control_call(const tn__control *control, int block, tn_tensor *const *in,
                           tn_tensor **out, int64_t n_out);
/* Copies the results that share memory with an input or with an earlier result, so that it makes no
 * difference whether the call ran eagerly, as a node or in a plan. */
tn_status tn__control_apart(tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out);
/* Calls both functions for shapes, and checks that they fit together. The results have no memory
 * and belong to the scope. Only while this thread traces. */
tn_status tn__control_shapes(const tn__control *control);
/* Fails unless the results of a block fit: those of else are like those of then, those of a body
 * like the values that it gets, and those of a test one element of bool. */
tn_status tn__control_check(tn_node_kind kind, int block, const tn_meta *got,
                            const tn_meta *expected, int64_t count);
/* Fails unless a predicate is one element of bool. `what` begins the message. */
tn_status tn__control_check_bool(const tn_meta *meta, const char *what);
/* The type of a result of a loop that starts with this tensor: row-major, whatever its strides. */
void tn__control_carried(const tn_tensor *tensor, tn_meta *meta);
/* The name of the function: tn_cond or tn_loop. */
const char *tn__control_name(tn_node_kind kind);

/* ---- blocks.c ---- */
/* Returns what a call runs if it is that of a node, else NULL. */
const tn__blocks *tn__blocks_of(const tn__control *control);

/* ---- trace_block.c ---- */
/* As in tn__tracer. */
tn_status tn__trace_control(tn__tracer *tracer, const tn__control *control);

#endif

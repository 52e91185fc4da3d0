/* SPDX-License-Identifier: MIT
 *
 * A run of a graph, node by node. */
#ifndef TN_LIB_GRAPH_RUN_H
#define TN_LIB_GRAPH_RUN_H

#include "lib/graph/private.h"

/* The value of a node during a run. */
typedef struct tn__run_value {
    tn_tensor *tensor; /* owned reference */
    int64_t left;      /* number of uses that are still to come */
} tn__run_value;

typedef struct tn__run {
    tn_graph *graph;
    tn_module
        *self; /* where slots and modules are found by their paths; NULL: those of the graph */
    /* Of a part: its calls of modules, and the modules; NULL: they are found by their paths. */
    tn_node *const *calls;
    tn_module *const *called;
    tn_node_handler handler;
    bool autocast; /* whether autocast was on when the run began */
    void *user;
    tn_tensor *const *in;
    tn__run_value *values; /* by the id of the node */
    int64_t n_values;
    tn_tensor **operands; /* space for the inputs of any node */
    tn_tensor **results;
    int64_t taken; /* number of inputs used so far */
    int64_t symbols[TN__SYMBOLS];
    bool bound; /* `symbols` has the values of this run */
    bool block; /* the graph is a block: its symbols are those of the graph around it */
} tn__run;

/* ---- run.c ---- */
/* Allocates what a run of run->graph needs; tn__run_end frees it, also after a failure. */
tn_status tn__run_begin(tn__run *run);
void tn__run_end(tn__run *run);
/* Runs a node. The value of an input, slot or constant is its tensor. */
tn_status tn__run_node(tn__run *run, tn_node *node);
/* Counts one use of a value less to come, and drops the value after its last use. */
void tn__run_release(tn__run *run, const tn_node *node);

/* ---- run_part.c ---- */
/* Runs the nodes of a part, from *node on, as a function whose values backward computes again.
 * *node becomes the last of them. */
tn_status tn__run_part(tn__run *run, tn_node **node);

#endif

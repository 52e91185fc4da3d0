/* SPDX-License-Identifier: MIT
 *
 * Running segments: the values of a call, and control flow. */
#ifndef TN_FOREIGN_RUN_H
#define TN_FOREIGN_RUN_H

#include "program.h"

/* A call of a segment. */
struct run {
    const struct program *program;
    tn_module *module; /* the module of the segment, or around the graph */
    bool training;     /* its mode */
    tn_value *values;  /* NONE: not there yet, or not any more; tensors are owned */
    int64_t count;
};

/* Begins a call with no values; run_end() drops all. */
TN_HIDDEN tn_status run_begin(struct run *run, const struct program *program, tn_module *module,
                              bool training, int64_t count);
TN_HIDDEN void run_end(struct run *run);
/* Stores a value; a tensor gets a reference, a list is copied. */
TN_HIDDEN tn_status run_set(struct run *run, int64_t index, tn_value value);
/* The value of an argument. The array of a list belongs to the call. */
TN_HIDDEN tn_status run_arg(const struct run *run, tn_rule_call *call, const struct arg *arg,
                            tn_value *out);
/* Moves a value from a graph to the call around it: its tensors belong to the innermost scope, too,
 * and its lists to the call. */
TN_HIDDEN tn_status run_move(tn_rule_call *call, tn_value *value);
/* Runs all steps of a segment. */
TN_HIDDEN tn_status run_segment(struct run *run, const struct segment *segment);
/* Runs a graph of an argument with these inputs; `out` becomes its outputs, whose tensors belong to
 * the innermost scope, and whose lists to the call. */
TN_HIDDEN tn_status run_graph(const struct run *around, tn_rule_call *call,
                              const struct graph *graph, const tn_value *in, int64_t n_in,
                              tn_value *out);

/* module.c: calls the module of a segment. module_fetch() reads the slots that a segment uses. */
TN_HIDDEN tn_status module_call(struct run *run, const struct segment *call);
TN_HIDDEN tn_status module_fetch(struct run *run, const struct segment *segment);
/* module_root.c: the call of the root. */
TN_HIDDEN tn_status module_root_call(tn_module *self, const tn_pack *input, tn_pack *output);

/* Control flow: a function whose arguments have graphs. */
struct control {
    const char *function;
    tn_status (*call)(const struct run *run, const struct node *node, tn_rule_call *call);
};

/* onnx/control.c: those of ONNX; the last one has no function. */
TN_HIDDEN extern const struct control controls_onnx[];

/* control.c: calls a function of control flow. The results are in the call, as those of a rule. */
TN_HIDDEN tn_status control_call(const struct run *run, const struct node *node,
                                 tn_rule_call *call);

#endif

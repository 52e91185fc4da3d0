/* SPDX-License-Identifier: MIT
 *
 * The passes of this plugin, and what they share. */
#ifndef TN_PASSES_PASSES_H
#define TN_PASSES_PASSES_H

#include <tenon/plugin.h>

extern TN_HIDDEN const tn_pass_def pass_recompute, pass_constants, pass_conv_bn, pass_cse,
    pass_dead, pass_decompose, pass_dropout, pass_epilogue, pass_inplace, pass_linear_bn;

/* Reports "2 nodes removed". */
TN_HIDDEN tn_status passes_report(const tn_pass_args *args, int64_t count, const char *what);
/* Reports "batch_norm_1 stays: its input has other users". */
TN_HIDDEN tn_status passes_report_left(const tn_pass_args *args, const tn_node *node,
                                       const char *why);
/* Returns whether a node only computes its values: it writes nothing, draws no random numbers, and
 * may run at any time. */
TN_HIDDEN bool passes_is_pure(const tn_node *node);
/* Returns whether a node at or after `from` may write into a value. A call of a module counts as
 * one that may. */
TN_HIDDEN bool passes_writes_from(const tn_node *from);
/* Returns whether two nodes have values of the same dtype and shape, both known. */
TN_HIDDEN bool passes_same_shape(const tn_node *a, const tn_node *b);
/* Replaces operators in place by ordinary ones where nothing else reads the old value, which
 * changes no result, and adds their number to *replaced. The passes that stop at writes begin with
 * this. */
TN_HIDDEN tn_status passes_replace_inplace(tn_graph *graph, int64_t *replaced);
/* Adds a constant whose name is STEM_SUFFIX, with a number behind it if another node has that
 * name. */
TN_HIDDEN tn_node *passes_constant(tn_graph *graph, const char *stem, const char *suffix,
                                   tn_tensor *tensor);
/* Returns whether a node is a call of the operator with this name. */
TN_HIDDEN bool passes_is_op(const tn_node *node, const char *name);

#endif

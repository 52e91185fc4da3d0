/* SPDX-License-Identifier: MIT
 *
 * Graphs: operators and the values between them, which a program builds, passes change, compilers
 * of regions replace by code of their own, and tn_graph_run runs. tenon-interface: tenon.graph 0
 *
 * A node is a step and, but for operators with several outputs or none, the value that it makes.
 * Nodes belong to their graph and are in order: a node uses earlier ones. A node that was erased
 * can still be looked at until its graph is dropped. One thread changes a graph; any number of
 * threads run it at the same time. */
#ifndef TENON_GRAPH_H
#define TENON_GRAPH_H

#include <tenon/op.h>

TN_BEGIN_DECLS

struct tn_meta;

typedef struct tn_graph tn_graph;
typedef struct tn_node tn_node;

/* What a node is. */
typedef uint32_t tn_node_kind;
enum {
    TN_NODE_INPUT = 1,    /* an input of the graph */
    TN_NODE_SLOT = 2,     /* a tensor that the graph holds, and that may change: a weight */
    TN_NODE_CONSTANT = 3, /* a tensor that the graph holds, and that must not change */
    TN_NODE_OP = 4,       /* a call of an operator */
    TN_NODE_ITEM = 5,     /* one output of the node before, which has several */
    TN_NODE_REGION = 6,   /* nodes that a compiler took over (tn_graph_compile) */
    TN_NODE_OUTPUT = 7    /* the last one: its inputs are the outputs of the graph */
};

/* The absent optional input of a node. NULL is always an error that happened earlier. */
#define TN_NODE_NONE ((tn_node *)(uintptr_t)16)

/* ---- graphs ---------------------------------------------------------------------------------- */

/* An empty graph. [owned] */
TN_API tn_graph *tn_graph_new(void);
/* Adds a reference for the caller and returns the graph. [owned] [null-through] */
TN_API tn_graph *tn_graph_keep(tn_graph *graph);
/* [null-ok: graph] */
TN_API void tn_graph_drop(tn_graph *graph);
/* Another graph with nodes of the same names; slots and constants share their tensors, compiled
 * regions their programs. [owned] [null-through] */
TN_API tn_graph *tn_graph_copy(const tn_graph *graph);

/* Checks the whole graph: nodes use earlier ones, counts are right, there are outputs. Infers what
 * the nodes make anew, which edits may have changed. The error names the node. [null-through] */
TN_API tn_status tn_graph_lint(tn_graph *graph);

/* Runs the graph node by node, as the calls of its operators would run: gradients, observers and
 * errors are those of tn_op_call; the message begins with the node's name. `in`: the inputs in the
 * order in which they were added. They may differ from what tn_graph_input declared until a pass or
 * a compiler has relied on it; then others are refused. On failure all of `out` are NULL. [scoped]
 * [array: in n_in, out n_out] [null-through] */
TN_API tn_status tn_graph_run(tn_graph *graph, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                              int64_t n_out);

/* ---- adding nodes ---------------------------------------------------------------------------- */

/* An input of this shape and type (TN_DTYPE_AUTO: the default), after those that there are. The
 * name: letters, digits and `_`, not taken. [borrowed] [null-through] */
TN_API tn_node *tn_graph_input(tn_graph *graph, const char *name, tn_ints shape, tn_dtype dtype);
/* A tensor that the graph keeps a reference to. A slot may change between runs. A constant may not:
 * passes and compilers compute with it in advance, and a run after a change is refused. [borrowed]
 * [null-through] */
TN_API tn_node *tn_graph_slot(tn_graph *graph, const char *name, tn_tensor *tensor);
TN_API tn_node *tn_graph_constant(tn_graph *graph, const char *name, tn_tensor *tensor);
/* A call of an operator, as text: "add(alpha=2)". It comes before the node `before`, NULL: at the
 * end. `inputs` are values: TN_NODE_NONE for absent optional ones. The name of the new node is that
 * of the operator, with a number where it is taken. What it makes is inferred, and nothing runs. An
 * operator with several outputs is followed by an ITEM node for each. [borrowed]
 * [array: inputs n_inputs] [null-ok: before] [null-through] */
TN_API tn_node *tn_graph_add_op(tn_graph *graph, tn_node *before, const char *spec,
                                tn_node *const *inputs, int64_t n_inputs);
/* The same with the operator's option struct, which is copied; NULL: all defaults. [borrowed]
 * [array: inputs n_inputs] [null-ok: before, options] [null-through] */
TN_API tn_node *tn_graph_add_call(tn_graph *graph, tn_node *before, const tn_op *op,
                                  const void *options, tn_node *const *inputs, int64_t n_inputs);
/* Says which values the graph gives; again: other ones. [array: values count] [null-through] */
TN_API tn_status tn_graph_output(tn_graph *graph, tn_node *const *values, int64_t count);

/* ---- looking at nodes ------------------------------------------------------------------------ */

/* The first node; NULL, without an error, where there is none. [borrowed] [null-through] */
TN_API tn_node *tn_graph_first(const tn_graph *graph);
/* The one after it; NULL, without an error, after the last and for one that was erased. [borrowed]
 * [null-through] */
TN_API tn_node *tn_node_next(const tn_node *node);
/* The node of a name; NULL and TN_ERR_KEY with the nearest name. [borrowed] [null-through] */
TN_API tn_node *tn_graph_find(const tn_graph *graph, const char *name);
/* How many inputs and outputs the graph has. */
TN_API int64_t tn_graph_input_count(const tn_graph *graph);
TN_API int64_t tn_graph_output_count(const tn_graph *graph);

/* 0 for NULL. [null-through] */
TN_API tn_node_kind tn_node_kind_of(const tn_node *node);
/* Whether it was erased, also by a pass or a compiler that put others in its place. */
TN_API bool tn_node_is_erased(const tn_node *node);
/* Its unique name. [borrowed] [null-through] */
TN_API const char *tn_node_name(const tn_node *node);
/* What it uses; TN_NODE_NONE for an absent optional input. [borrowed] [null-through] */
TN_API tn_node *tn_node_input(const tn_node *node, int64_t index);
TN_API int64_t tn_node_input_count(const tn_node *node);
/* The nodes that use its value, each once. [borrowed] [null-through] */
TN_API tn_node *tn_node_user(const tn_node *node, int64_t index);
TN_API int64_t tn_node_user_count(const tn_node *node);
/* How many tensors it makes; one of them: the node itself where it makes one, else an ITEM node.
 * [borrowed] [null-through] */
TN_API tn_node *tn_node_item(const tn_node *node, int64_t index);
TN_API int64_t tn_node_item_count(const tn_node *node);
/* The operator of an OP node and its option struct, NULL, without an error, where it has none.
 * [borrowed] [null-through] */
TN_API const tn_op *tn_node_op(const tn_node *node);
TN_API const void *tn_node_options(const tn_node *node);
/* Text that tn_graph_add_op builds the same call from. Writes at most `size` bytes; returns the
 * length, -1 on error. [null-ok: out] */
TN_API int64_t tn_node_spec(const tn_node *node, char *out, size_t size);
/* The tensor of a slot or a constant. [borrowed] [null-through] */
TN_API tn_tensor *tn_node_tensor(const tn_node *node);
/* Type, shape and strides of the value, as declared or inferred; ndim is -1 where only a run can
 * tell. An operator that may return its input (reshape) may give other strides in a run. After
 * tn_node_set_input and tn_node_replace_uses, tn_graph_lint infers them anew. */
TN_API tn_status tn_node_meta(const tn_node *node, struct tn_meta *out);
/* The name of the compiler of a REGION node. [borrowed] [null-through] */
TN_API const char *tn_node_compiler(const tn_node *node);

/* ---- changing nodes -------------------------------------------------------------------------- */

/* Makes another value an input: TN_NODE_NONE for an optional one. [null-through] */
TN_API tn_status tn_node_set_input(tn_node *node, int64_t index, tn_node *value);
/* Every user of `node` uses `value` in its place, but `value` itself. Returns how many there were,
 * -1 on error. [null-through] */
TN_API int64_t tn_node_replace_uses(tn_node *node, tn_node *value);
/* Takes the node out, with its ITEM nodes. Refused while it has users. [null-through] */
TN_API tn_status tn_node_erase(tn_node *node);

/* ---- passes and compilers -------------------------------------------------------------------- */

/* Runs passes in order: "constants(size=1000), dead". The graph is checked after each. Where one
 * fails, nothing has changed; otherwise the nodes that there were are erased, and others of the
 * same names are in their place. [null-through] */
TN_API tn_status tn_graph_pass(tn_graph *graph, const char *passes);
/* What the passes of the last tn_graph_pass reported, one line each, "NAME: text". Writes at most
 * `size` bytes; returns the length, -1 on error. [null-ok: out] */
TN_API int64_t tn_graph_report(const tn_graph *graph, char *out, size_t size);

/* Offers the operators of the graph to compilers for the device: those named, in order ("fuse,
 * onednn"), or, for NULL, all of the device's type by priority, then name. What one claims becomes
 * a REGION node, which holds for the declared inputs on that device; all else runs as before. Where
 * one fails, nothing has changed; otherwise the nodes that there were are erased, and others of the
 * same names are in their place. [null-through] [null-ok: compilers] */
TN_API tn_status tn_graph_compile(tn_graph *graph, const tn_device *device, const char *compilers);

TN_END_DECLS
#endif

/* SPDX-License-Identifier: MIT
 *
 * Graphs: operators and the values between them, as nodes. A program builds a graph, passes change
 * it, compilers replace sets of its nodes by code of their own, and tn_graph_run runs it.
 * tenon-interface: tenon.graph 0
 *
 * A node is one step of a run, such as a call of an operator, and also the value that this step
 * computes. An operator with several outputs has an additional node for each output (TN_NODE_ITEM).
 * Nodes belong to their graph and are in order: a node only uses earlier nodes. A node that was
 * erased can still be read until its graph is dropped. Only one thread may change a graph; any
 * number of threads may run it at the same time.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_GRAPH_H
#define TENON_GRAPH_H

#include <tenon/op.h>
#include <tenon/state.h>

TN_BEGIN_DECLS

struct tn_meta;

typedef struct tn_graph tn_graph;
typedef struct tn_node tn_node;

/* What a node is. */
typedef uint32_t tn_node_kind;
enum {
    TN_NODE_INPUT = 1,    /* an input of the graph */
    TN_NODE_SLOT = 2,     /* a tensor that the graph holds and that may change, such as a weight */
    TN_NODE_CONSTANT = 3, /* a tensor that the graph holds and that must not change */
    TN_NODE_OP = 4,       /* a call of an operator */
    TN_NODE_ITEM = 5,     /* one output of an operator that has several outputs */
    TN_NODE_REGION = 6,   /* nodes that a compiler has replaced (tn_graph_compile) */
    TN_NODE_OUTPUT = 7,   /* the last node: its inputs are the outputs of the graph */
    /* A call of an operator that writes into an existing tensor, which is the last input. The value
     * of the node is this tensor after the call. */
    TN_NODE_INPLACE = 8,
    TN_NODE_CALL = 9, /* a call of a module */
    TN_NODE_IF = 10,  /* tn_cond: its blocks are then and else */
    TN_NODE_LOOP = 11 /* tn_loop: its blocks are test and body */
};

/* Takes the place of an absent optional input of a node. NULL, in contrast, always means an earlier
 * error. */
#define TN_NODE_NONE ((tn_node *)(uintptr_t)16)

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Returns a new, empty graph. [owned] */
TN_API tn_graph *tn_graph_new(void);
/* Adds a reference for the caller and returns the graph. [owned] [null-through] */
TN_API tn_graph *tn_graph_keep(tn_graph *graph);
/* Drops a reference; the last one frees the graph. [null-ok: graph] */
TN_API void tn_graph_drop(tn_graph *graph);
/* Returns a copy of a graph, with nodes of the same names. The tensors of slots and constants, and
 * the programs of compiled regions, are shared with the original. [owned] [null-through] */
TN_API tn_graph *tn_graph_copy(const tn_graph *graph);

/* Checks the whole graph: nodes only use earlier nodes, the numbers of inputs are right, and there
 * are outputs. Infers the dtypes and shapes of all values again, because edits may have changed
 * them. The error message names the node. [null-through] */
TN_API tn_status tn_graph_lint(tn_graph *graph);

/* Runs the graph node by node, as if the program called the operators: gradients, observers and
 * errors are those of tn_op_call; an error message begins with the name of the node. `in` has the
 * inputs in the order in which they were added to the graph. Inputs may have other dtypes and
 * shapes than declared by tn_graph_input, unless a pass or a compiler has relied on these; then
 * other inputs are refused. On failure all elements of `out` are NULL. [scoped]
 * [array: in n_in, out n_out] [null-through] */
TN_API tn_status tn_graph_run(tn_graph *graph, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                              int64_t n_out);

/* ---- adding nodes ---------------------------------------------------------------------------- */

/* Adds an input of this shape and dtype (TN_DTYPE_AUTO: the default dtype) after the existing
 * inputs. The name consists of letters, digits and `_` and must not be taken. [borrowed]
 * [null-through] */
TN_API tn_node *tn_graph_input(tn_graph *graph, const char *name, tn_ints shape, tn_dtype dtype);
/* tn_graph_slot and tn_graph_constant add a node for a tensor; the graph adds a reference to the
 * tensor. The tensor of a slot may change between runs. The tensor of a constant must not change:
 * passes and compilers compute with its values in advance, and a run after a change is refused.
 * [borrowed] [null-through] */
TN_API tn_node *tn_graph_slot(tn_graph *graph, const char *name, tn_tensor *tensor);
TN_API tn_node *tn_graph_constant(tn_graph *graph, const char *name, tn_tensor *tensor);
/* Adds a call of an operator, given as text such as "add(alpha=2)", before the node `before`; NULL:
 * at the end. `inputs` are the values that the operator uses; TN_NODE_NONE for absent optional
 * inputs, which may be missing at the end. The new node is named after the operator, with a number
 * if that name is taken. Infers the dtypes and shapes of the outputs and runs nothing. If the
 * operator has several outputs, a node of kind TN_NODE_ITEM for each output follows. [borrowed]
 * [array: inputs n_inputs] [null-ok: before] [null-through] */
TN_API tn_node *tn_graph_add_op(tn_graph *graph, tn_node *before, const char *spec,
                                tn_node *const *inputs, int64_t n_inputs);
/* Like tn_graph_add_op, but with an operator handle and its option struct, which is copied. NULL
 * options: all defaults. [borrowed] [array: inputs n_inputs] [null-ok: before, options]
 * [null-through] */
TN_API tn_node *tn_graph_add_call(tn_graph *graph, tn_node *before, const tn_op *op,
                                  const void *options, tn_node *const *inputs, int64_t n_inputs);
/* Sets the values that the graph returns. A later call replaces them. [array: values count]
 * [null-through] */
TN_API tn_status tn_graph_output(tn_graph *graph, tn_node *const *values, int64_t count);

/* ---- reading nodes --------------------------------------------------------------------------- */

/* Returns the first node; NULL, without an error, if the graph has no nodes. [borrowed]
 * [null-through] */
TN_API tn_node *tn_graph_first(const tn_graph *graph);
/* Returns the node after `node`; NULL, without an error, after the last node and for an erased
 * node. [borrowed] [null-through] */
TN_API tn_node *tn_node_next(const tn_node *node);
/* Returns the node with this name. Returns NULL and records TN_ERR_KEY, with the nearest name, if
 * there is none. [borrowed] [null-through] */
TN_API tn_node *tn_graph_find(const tn_graph *graph, const char *name);
/* tn_graph_input_count returns the number of inputs of the graph, tn_graph_output_count the number
 * of outputs. */
TN_API int64_t tn_graph_input_count(const tn_graph *graph);
TN_API int64_t tn_graph_output_count(const tn_graph *graph);

/* Returns the kind of a node; 0 if `node` is NULL. [null-through] */
TN_API tn_node_kind tn_node_kind_of(const tn_node *node);
/* Returns whether the node was erased, by tn_node_erase or because a pass or a compiler replaced
 * it. */
TN_API bool tn_node_is_erased(const tn_node *node);
/* Returns the name of a node, which is unique in the graph. [borrowed] [null-through] */
TN_API const char *tn_node_name(const tn_node *node);
/* tn_node_input returns a value that the node uses, TN_NODE_NONE for an absent optional input;
 * tn_node_input_count returns the number of its inputs. [borrowed] [null-through] */
TN_API tn_node *tn_node_input(const tn_node *node, int64_t index);
TN_API int64_t tn_node_input_count(const tn_node *node);
/* tn_node_user returns a node that uses the value of `node`, tn_node_user_count the number of these
 * nodes. Each user is counted once. [borrowed] [null-through] */
TN_API tn_node *tn_node_user(const tn_node *node, int64_t index);
TN_API int64_t tn_node_user_count(const tn_node *node);
/* tn_node_item_count returns the number of tensors that a node computes. tn_node_item returns the
 * node of one of these tensors: `node` itself if it computes only one, else a node of kind
 * TN_NODE_ITEM. [borrowed] [null-through] */
TN_API tn_node *tn_node_item(const tn_node *node, int64_t index);
TN_API int64_t tn_node_item_count(const tn_node *node);
/* tn_node_op returns the operator of a node of kind TN_NODE_OP or TN_NODE_INPLACE, tn_node_options
 * its option struct: NULL, without an error, if the operator has no options. Both fail for nodes of
 * other kinds. [borrowed] [null-through] */
TN_API const tn_op *tn_node_op(const tn_node *node);
TN_API const void *tn_node_options(const tn_node *node);
/* Writes a text from which tn_graph_add_op builds the same call. Writes at most `size` bytes
 * including the final NUL; returns the length of the complete text, -1 on error. [null-ok: out] */
TN_API int64_t tn_node_spec(const tn_node *node, char *out, size_t size);
/* Returns the tensor of a slot or constant. [borrowed] [null-through] */
TN_API tn_tensor *tn_node_tensor(const tn_node *node);
/* Stores dtype, shape and strides of the value, as declared or inferred, in `out`. Fails for a node
 * with several outputs: ask the nodes of tn_node_item. ndim is -1 if only a run can tell the shape.
 * An operator that may return its input, such as reshape, may produce other strides in a run. After
 * tn_node_set_input and tn_node_replace_uses the result is out of date until tn_graph_lint infers
 * it again. */
TN_API tn_status tn_node_meta(const tn_node *node, struct tn_meta *out);
/* Returns the name of the compiler of a node of kind TN_NODE_REGION. [borrowed] [null-through] */
TN_API const char *tn_node_compiler(const tn_node *node);

/* ---- changing nodes -------------------------------------------------------------------------- */

/* Replaces input `index` of a node by `value`; TN_NODE_NONE removes an optional input. Fails for
 * nodes of kind TN_NODE_ITEM or TN_NODE_REGION. [null-through] */
TN_API tn_status tn_node_set_input(tn_node *node, int64_t index, tn_node *value);
/* Makes every user of `node` use `value` instead, except the node that computes `value`. Returns
 * the number of changed users, -1 on error. [null-through] */
TN_API int64_t tn_node_replace_uses(tn_node *node, tn_node *value);
/* Removes a node, and its TN_NODE_ITEM nodes, from the graph. Fails if other nodes use it, and for
 * a node of kind TN_NODE_ITEM alone. [null-through] */
TN_API tn_status tn_node_erase(tn_node *node);

/* ---- passes and compilers -------------------------------------------------------------------- */

/* Runs passes over the graph, in the order of the text: "constants(size=1000), dead". The graph is
 * checked after each pass. If a pass fails, the graph is unchanged. Otherwise new nodes with the
 * same names replace the existing nodes, which count as erased. [null-through] */
TN_API tn_status tn_graph_pass(tn_graph *graph, const char *passes);
/* Writes the reports of the passes in the last tn_graph_pass, one line "NAME: text" each. Writes at
 * most `size` bytes including the final NUL; returns the length of the complete text, -1 on error.
 * [null-ok: out] */
TN_API int64_t tn_graph_report(const tn_graph *graph, char *out, size_t size);

/* Offers the operators of the graph to compilers for a device: to those named in `compilers`, in
 * that order ("fuse, onednn"), or, if it is NULL, to all compilers for the type of the device by
 * priority and then name. Nodes that a compiler claims are replaced by one node of kind
 * TN_NODE_REGION, which works only for the declared inputs on that device; all other nodes run as
 * before. A graph that writes into tensors, or that calls modules (see tn_graph_inline), stays as
 * it is. If a compiler fails, the graph is unchanged. Otherwise new nodes with the same names
 * replace the existing nodes, which count as erased. [null-through] [null-ok: compilers] */
TN_API tn_status tn_graph_compile(tn_graph *graph, const tn_device *device, const char *compilers);

/* ---- writes, modules, dead code -------------------------------------------------------------- */

/* Adds a call of an operator that writes its result into the value `into`, as tn_op_call_into does.
 * For x.add_(y), `into` is also the first of the inputs. Nodes that come later and use the new
 * value use the node, not `into`. [borrowed] [array: inputs n_inputs] [null-ok: before]
 * [null-through] */
TN_API tn_node *tn_graph_add_inplace(tn_graph *graph, tn_node *before, const char *spec,
                                     tn_node *into, tn_node *const *inputs, int64_t n_inputs);
/* Returns which inputs the node writes into: bit i for input i, bit 63 for any input from 63 on; 0
 * if `node` is NULL. [null-through] */
TN_API uint64_t tn_node_writes(const tn_node *node);
/* Returns what the node refers to: the path of a slot, a constant or a module, the name of an
 * operator or compiler, "cond" or "loop" for a node with blocks; for other kinds, the name of the
 * node. [borrowed] [null-through] */
TN_API const char *tn_node_target(const tn_node *node);
/* tn_node_module returns the module that a node of kind TN_NODE_CALL calls. [borrowed]
 * [null-through] */
TN_API tn_module *tn_node_module(const tn_node *node);
/* Returns the path of the module whose forward called the operator, relative to the module that was
 * traced ("" for that module itself). NULL, without an error, if it is not known. [borrowed]
 * [null-through] */
TN_API const char *tn_node_path(const tn_node *node);
/* Removes nodes whose values are not used: slots, constants, compiled regions, nodes with blocks,
 * and calls of operators. Nodes that write into a tensor, draw random numbers, call a module or
 * have an operator with TN_OP_ORDERED stay. Does the same in blocks. Returns the number of removed
 * nodes, -1 on error. */
TN_API int64_t tn_graph_dead_code(tn_graph *graph);

/* ---- text ------------------------------------------------------------------------------------ */

/* Writes a graph in one of these forms: "text" and "code", which tn_graph_parse reads, "table" (as
 * PyTorch's print_tabular), "json", and "graphviz". Writes at most `size` bytes including the
 * final NUL; returns the length of the complete text, -1 on error. docs/guides/graphs.md describes
 * the forms. [null-ok: out] */
TN_API int64_t tn_graph_print(const tn_graph *graph, const char *form, char *out, size_t size);
/* Reads a graph from the text or the code that tn_graph_print wrote. Slots and modules are found in
 * `root` by their paths, constants in `constants` by their names. The error message has the line.
 * [owned] [null-ok: root, constants] [null-through] */
TN_API tn_graph *tn_graph_parse(const char *text, tn_module *root, const tn_state *constants);

/* ---- interpreting ---------------------------------------------------------------------------- */

/* Runs a node in place of the interpreter: computes out[i] from in[i], TN_NONE for an absent input.
 * The results belong to the scope. [callback] */
typedef tn_status (*tn_node_handler)(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                                     tn_tensor **out, int64_t n_out);
/* Runs the graph as tn_graph_run does, but calls `handler` for every node that computes something:
 * it may call tn_node_run, measure, or compute something else. It must not change the nodes of the
 * graph: the run then fails with TN_ERR_REFUSED. It is not called for nodes of blocks. NULL:
 * tn_graph_run. [scoped] [array: in n_in, out n_out] [null-ok: handler, user]
 * [null-through] */
TN_API tn_status tn_graph_run_with(tn_graph *graph, tn_tensor *const *in, int64_t n_in,
                                   tn_tensor **out, int64_t n_out, tn_node_handler handler,
                                   void *user);
/* Runs one node as tn_graph_run does. On failure all elements of `out` are NULL. [scoped]
 * [array: in n_in, out n_out] [null-through] */
TN_API tn_status tn_node_run(tn_node *node, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                             int64_t n_out);

/* ---- tracing --------------------------------------------------------------------------------- */

enum {
    /* What a call of a module becomes if neither `is_leaf` nor its layer decides (TN_LAYER_LEAF,
     * TN_LAYER_THROUGH): the operators and modules that its forward calls (THROUGH), or one node
     * (LEAVES). With neither, layers of plugins become one node; containers such as Sequential, and
     * modules of the program, are traced through. */
    TN_TRACE_THROUGH = 1,
    TN_TRACE_LEAVES = 2
};
typedef struct tn_tracing_options {
    uint32_t size;  /* sizeof(tn_tracing_options) */
    uint32_t flags; /* TN_TRACE_* */
    /* Shapes of the input tensors with names for sizes that may vary, such as "[N, 3, 32*H, 32*W]";
     * those of several inputs with commas between. NULL: the graph is for the sizes of the trace.
     */
    const char *dynamic;
    /* Returns whether a call of this module becomes one node. NULL: as `flags` says. */
    bool (*is_leaf)(void *user, tn_module *module, const char *path);
    void *user; /* for is_leaf */
} tn_tracing_options;
#define TN_TRACING_OPTIONS                                                                         \
    {                                                                                              \
        sizeof(tn_tracing_options), 0, NULL, NULL, NULL                                            \
    }

/* Calls the module with a tensor of the dtype, shape and device of `input` that has no memory, and
 * returns the graph of the operators and modules that it calls. No kernel runs, nothing is written,
 * and no random numbers are drawn. Fails if the code asks for values (data-dependent control flow)
 * except by tn_cond and tn_loop, or calls a module that is not below `module`; the message names
 * the node and its module. If any code asked for the mode, training or evaluation, the graph is
 * only for this mode. docs/guides/graphs.md describes what becomes a node. [owned]
 * [null-ok: options] [null-through] */
TN_API tn_graph *tn_module_trace(tn_module *module, tn_tensor *input,
                                 const tn_tracing_options *options);
/* Like tn_module_trace, for a module that is called with a pack: all tensors in it, at any depth,
 * become inputs of the graph. All other values are fixed: a call with different ones is refused.
 * [owned] [null-ok: options] [null-through] */
TN_API tn_graph *tn_module_trace_pack(tn_module *module, const tn_pack *input,
                                      const tn_tracing_options *options);
/* Returns a module of type GraphModule whose forward runs the graph. It has the parameters, buffers
 * and modules that the graph uses, under the same paths, and shares them with the module that was
 * traced; constants become buffers. It can be trained, copied, saved and traced again. The graph is
 * copied. [owned] [null-through] */
TN_API tn_module *tn_graph_module(tn_graph *graph);
/* Returns the graph that a GraphModule runs. [borrowed] [null-through] */
TN_API const tn_graph *tn_module_graph(tn_module *module);
/* Returns the constants of the graph, under the names that its text has. [owned] [null-through] */
TN_API tn_state *tn_graph_constants(const tn_graph *graph);
/* Replaces every call of a module by the operators that its forward calls. [null-through] */
TN_API tn_status tn_graph_inline(tn_graph *graph);
/* Writes the dtypes and shapes that the graph computes for these inputs into its nodes.
 * [array: in n_in] [null-through] */
TN_API tn_status tn_graph_shapes(tn_graph *graph, tn_tensor *const *in, int64_t n_in);
/* Returns whether the node runs without recording gradients, because the traced code had switched
 * them off; false if `node` is NULL. */
TN_API bool tn_node_is_no_grad(const tn_node *node);
/* Makes a node of kind TN_NODE_CALL call another module, which takes the place of the old one in
 * modules made of the graph. Dtypes and shapes of the results must stay the same. [null-through] */
TN_API tn_status tn_node_set_module(tn_node *node, tn_module *module);
/* Replaces a call of an operator by the operators that its decomposition calls; the node is erased.
 * Fails if the operator has no decomposition. [null-through] */
TN_API tn_status tn_node_expand(tn_node *node);
/* Replaces all places where the graph computes `pattern` by `replacement`, both in the form
 * "linear(x, w, b)". A name without parentheses matches any value, but the same one everywhere in a
 * match; None matches an absent input. Options that the pattern does not name may have any value.
 * Each operator must have one output. Matches do not overlap, and a match is left out if its inner
 * values are used elsewhere, or if another node between its nodes writes or calls a module. Blocks
 * stay as they are. Returns the number of replaced places, -1 on error. [null-through] */
TN_API int64_t tn_graph_replace(tn_graph *graph, const char *pattern, const char *replacement);

/* ---- plans ----------------------------------------------------------------------------------- */

/* A plan runs a graph for inference: its kernels are chosen once, its memory is laid out once, and
 * a run only calls kernels. The results are the same as those of tn_graph_run, to the bit. The
 * kernels and the memory are those of a binding, which is for inputs of one dtype, shape, layout
 * and device each; the first run with other inputs makes another binding. */
typedef struct tn_plan tn_plan;

typedef struct tn_plan_options {
    uint32_t size; /* sizeof(tn_plan_options) */
    /* How many bindings are kept at most (0: 8); the one not used for longest is dropped. */
    uint32_t bindings;
    const char *passes; /* run first, on the plan's copy of the graph (tn_graph_pass); NULL: none */
} tn_plan_options;
#define TN_PLAN_OPTIONS                                                                            \
    {                                                                                              \
        sizeof(tn_plan_options), 8, NULL                                                           \
    }

/* What a plan needs. All numbers but `bindings` are those of the binding that was used last. The
 * layout (64 bytes) never changes. */
typedef struct tn_plan_stats {
    int64_t bindings; /* number of bindings */
    int64_t steps;    /* number of kernels and compiled regions that a run calls */
    int64_t bytes;    /* memory for the values between steps, of each thread that runs the plan */
    int64_t bytes_least;    /* a lower bound of `bytes`: the most that is needed at one time */
    int64_t bytes_apart;    /* what these values would need if they shared no memory */
    int64_t bytes_prepared; /* what kernels have prepared, such as packed weights */
    int64_t values;         /* number of values in the memory between steps (tn_plan_value_at) */
    int64_t reserved;
} tn_plan_stats;

/* A value between the steps of a plan. The layout (40 bytes) never changes. */
typedef struct tn_plan_value {
    const char *node;    /* name of the node that computes it; valid until the plan is dropped */
    int64_t first, last; /* the steps, from 0, between which its memory is needed */
    int64_t offset;      /* in the memory that the values share */
    int64_t bytes;
} tn_plan_value;

/* Returns a plan for a copy of the graph; later changes of the graph do not change the plan. The
 * tensors of slots are shared, and each run uses their current values. Makes a binding for inputs
 * of the declared dtypes and shapes on the device of the graph's tensors; modules that the graph
 * calls are replaced by the operators that they call in their current mode. Fails, with the node
 * and the reason, if a step draws random numbers, reads values of tensors on the host, writes into
 * an input or slot, or has results whose shapes depend on values, or if an operator has no kernel.
 * [owned] [null-ok: options] [null-through] */
TN_API tn_plan *tn_plan_new(const tn_graph *graph, const tn_plan_options *options);
/* Runs the plan. Records no gradient: fails if an input or slot requires one, unless gradients are
 * off. Otherwise like tn_graph_run. Any number of threads may run a plan at the same time. [scoped]
 * [array: in n_in, out n_out] */
TN_API tn_status tn_plan_run(tn_plan *plan, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                             int64_t n_out);
/* Stores what the plan needs in `out`. */
TN_API tn_status tn_plan_describe(tn_plan *plan, tn_plan_stats *out);
/* Stores value `index` of the binding that was used last; fails with TN_ERR_INDEX if there are
 * fewer values. A value that takes over the memory of another counts as one value with it. */
TN_API tn_status tn_plan_value_at(tn_plan *plan, int64_t index, tn_plan_value *out);
/* Writes the steps of the binding that was used last, a line each: the node, the kernel, and where
 * the results are. Writes at most `size` bytes including the final NUL; returns the length of the
 * complete text, -1 on error. [null-ok: out] */
TN_API int64_t tn_plan_print(tn_plan *plan, char *out, size_t size);
/* Frees a plan. No thread may be running it. [null-ok: plan] */
TN_API void tn_plan_drop(tn_plan *plan);

/* ---- scripts --------------------------------------------------------------------------------- */

/* Returns a script of a module: a module that has the same parameters, buffers and children under
 * the same paths, and shares their tensors, but needs none of the layers: its forward runs the
 * graph of the trace in evaluation or training mode (tn_module_trace, with all layers traced
 * through). Threads may call `module` meanwhile, because its mode does not change, unless a layer
 * has a function `train`. Without code that asks for the mode, one graph is for both. Of `options`,
 * only `dynamic` is used. tn_module_save writes a script to a file NAME.script, tn_module_from_file
 * reads it. A script has fixed names. If `module` is a script, it is returned with a new reference.
 * Fails as tn_module_trace does, and for modules with parametrized or computed tensors or backward
 * hooks. If parts are in training mode and others in evaluation mode, there is a graph for these
 * modes, too. [owned] [null-ok: options] [null-through] */
TN_API tn_module *tn_module_script(tn_module *module, tn_tensor *input,
                                   const tn_tracing_options *options);
/* Like tn_module_script, for a module that is called with a pack. [owned] [null-ok: options]
 * [null-through] */
TN_API tn_module *tn_module_script_pack(tn_module *module, const tn_pack *input,
                                        const tn_tracing_options *options);
/* Returns a script that runs the given graphs: at most one for evaluation mode, one for training
 * mode, and one for parts in different modes, or one for all modes. Their slots must be tensors of
 * `module`, and all nodes must be operators. [owned] [array: graphs count] [null-through] */
TN_API tn_module *tn_script_new(tn_module *module, tn_graph *const *graphs, int64_t count);
/* Returns the graph that a script runs in a mode; NULL, without an error, if it has none for this
 * mode. [borrowed] [null-through] */
TN_API const tn_graph *tn_script_graph(const tn_module *script, bool training);
/* Returns the extra files of a script, to read and to change: the name of each entry is that of a
 * file, its value a text (TN_VALUE_STRING) or bytes (TN_VALUE_BYTES). They are saved and loaded
 * with the script; copies share them. [borrowed] [null-through] */
TN_API tn_state *tn_script_files(const tn_module *script);
/* Returns the type of the module from which a script, or a child of a script, was made. [borrowed]
 * [null-through] */
TN_API const char *tn_script_original(const tn_module *part);

/* ---- control flow ---------------------------------------------------------------------------- */

/* A function of tn_cond or tn_loop: computes out[i] from in[i]. The results belong to the scope;
 * out[i] may be one of the inputs. [callback] */
typedef tn_status (*tn_block_fn)(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                                 int64_t n_out);
/* Calls `then_fn` if the predicate, one element of bool, is true, and `else_fn` if not. Gradients
 * are those of the function that ran. In a trace both functions are recorded, as the blocks of one
 * node. They may use other tensors, such as parameters, which become inputs of the node. They may
 * write only into tensors that they have created, and both must return results of the same dtypes
 * and shapes. A result that shares memory with an input, or with another result, is copied. A
 * function must not return a tensor that it has neither created nor received in `in`, such as a
 * parameter: it returns a copy. On failure all elements of `out` are NULL. [scoped]
 * [array: in n_in, out n_out] [null-ok: user] [null-through] */
TN_API tn_status tn_cond(tn_tensor *predicate, tn_block_fn then_fn, tn_block_fn else_fn,
                         tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out,
                         void *user);
/* Starts with the values `in` and, as long as `test_fn` returns true (one element of bool),
 * replaces them by the results of `body_fn` for them, at most `most` times (-1: no limit). The
 * values keep their number, dtypes and shapes; the last ones are stored in `out`. The rules of
 * tn_cond for traces and for results apply. [scoped] [array: in count, out count] [null-ok: user]
 * [null-through] */
TN_API tn_status tn_loop(tn_block_fn test_fn, tn_block_fn body_fn, int64_t most,
                         tn_tensor *const *in, tn_tensor **out, int64_t count, void *user);

/* Adds a node of kind TN_NODE_IF. The blocks are graphs whose inputs are `inputs`, and which use no
 * other tensors: no slots, constants or calls of modules. They are copied. [borrowed]
 * [array: inputs n_inputs] [null-ok: before] [null-through] */
TN_API tn_node *tn_graph_add_cond(tn_graph *graph, tn_node *before, tn_node *predicate,
                                  const tn_graph *then_graph, const tn_graph *else_graph,
                                  tn_node *const *inputs, int64_t n_inputs);
/* Adds a node of kind TN_NODE_LOOP. If the body has n results, the first n inputs are the values
 * that change; the other inputs are the same in all steps. Both blocks receive all of these values;
 * the test has one result. `most` as in tn_loop. [borrowed] [array: inputs n_inputs]
 * [null-ok: before] [null-through] */
TN_API tn_node *tn_graph_add_loop(tn_graph *graph, tn_node *before, const tn_graph *test_graph,
                                  const tn_graph *body_graph, int64_t most, tn_node *const *inputs,
                                  int64_t n_inputs);
/* Returns a block of a node: 0 is then or test, 1 is else or body. It may be changed as any graph;
 * tn_graph_lint of the graph of the node checks it. NULL, without an error, if the node has no such
 * block. [borrowed] [null-through] */
TN_API tn_graph *tn_node_block(const tn_node *node, int64_t index);
/* Returns the most steps of a TN_NODE_LOOP, as in tn_loop; -1 if there is no limit, and for other
 * nodes. [null-through] */
TN_API int64_t tn_node_most(const tn_node *node);

/* ---- operators of other plugins -------------------------------------------------------------- */

/* Stores in `operators` what a process without some plugins needs to read the texts of these
 * graphs. For each operator that the graphs call, it stores the revision, an integer under the name
 * of the operator. For each call of an operator of a plugin that does not come with Tenon, it also
 * stores the decomposition, the text of a graph. Its name is the operator with its options and the
 * types of its inputs: "scale[by=2](float32[2, 3])". If one call of an operator has no
 * decomposition that consists of operators only, no decomposition of this operator is stored.
 * [array: graphs count] */
TN_API tn_status tn_graph_operators(tn_graph *const *graphs, int64_t count, tn_state *operators);
/* Like tn_graph_parse, with the result of tn_graph_operators: operators are taken in these
 * revisions, and where one is missing, the nodes of its decomposition take the place of the call.
 * [owned] [null-ok: root, constants, operators] [null-through] */
TN_API tn_graph *tn_graph_parse_with(const char *text, tn_module *root, const tn_state *constants,
                                     const tn_state *operators);
/* Returns the graph of a script for modules in different modes: when it was made, some of the
 * modules whose mode the code asks for were in training mode and others in evaluation mode. The
 * script runs this graph while these modules have the same modes again. Returns NULL, without an
 * error, if the script has no such graph. [borrowed] [null-through] */
TN_API const tn_graph *tn_script_graph_mixed(const tn_module *script);

/* ---- parts that are computed again ----------------------------------------------------------- */

/* Puts a node into part `part` of the graph; 0: into no part. Backward computes the values of a
 * part again instead of keeping them (tn_recompute_call). While gradients are recorded, successive
 * nodes of one part run as one function, except in tn_graph_run_with. Copies of the graph keep the
 * parts, texts do not contain them. Fails for nodes that compute nothing, and for nodes that write
 * into tensors, because they must run only once. [null-through] */
TN_API tn_status tn_node_set_part(tn_node *node, int64_t part);
/* Returns the part of a node; 0: none, or `node` is NULL. */
TN_API int64_t tn_node_part(const tn_node *node);

TN_END_DECLS
#endif

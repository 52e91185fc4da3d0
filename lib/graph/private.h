/* SPDX-License-Identifier: MIT
 *
 * Declarations for the files of lib/graph. */
#ifndef TN_LIB_GRAPH_PRIVATE_H
#define TN_LIB_GRAPH_PRIVATE_H

#include "lib/graph/internal.h"

/* ---- graph.c ---- */
/* From now on a run fails if the tensor of a slot has changed, because `who` has used its value. */
tn_status tn__graph_guard_slots(tn_graph *graph, const char *who);
/* Adds the guards of one graph to those of another. */
tn_status tn__graph_copy_guards(const tn_graph *from, tn_graph *to);
/* Notes that the graph is for this mode of a module. */
tn_status tn__graph_ask(tn_graph *graph, const char *path, bool training);
/* Returns whether the graph is for modules in different modes. */
bool tn__graph_is_mixed(const tn_graph *graph);
/* Moves the nodes and everything else from `from` to `graph`, and drops `from`. The nodes that
 * `graph` had are erased. */
void tn__graph_take(tn_graph *graph, tn_graph *from);

/* ---- node.c ---- */
/* Returns a node that is in no list yet. Its name is `base`, with a number if that is taken; with
 * `exact`, a taken name is an error. The inputs are NULL. */
tn_node *tn__graph_node_new(tn_graph *graph, tn_node_kind kind, const char *base, bool exact,
                            int64_t n_in, int32_t n_out);
/* Frees a node that is in no list, or whose graph is being freed. */
void tn__graph_node_free(tn_node *node);
/* Frees a node that is in no list, and its ITEM nodes. Removes its uses and its name from the
 * graph. */
void tn__graph_node_undo(tn_node *node);
/* Returns a copy of a node: its operator and options, but no inputs. The copy is in no list yet. */
tn_node *tn__graph_node_copy(tn_graph *to, const tn_node *from, bool exact_name);
/* Gives a node another name, which no node has yet. */
tn_status tn__graph_node_rename(tn_node *node, const char *name);
/* Inserts the node before `before`; NULL: at the end. Inputs, slots and constants always come
 * before all other nodes. */
void tn__graph_node_link(tn_node *node, tn_node *before);
void tn__graph_node_unlink(tn_node *node);
/* Moves the node, and the ITEM nodes after it, to the place before `before`. */
void tn__graph_node_move(tn_node *node, tn_node *before);
/* Makes `value` input `index` of the node, which must be NULL. */
tn_status tn__graph_node_use(tn_node *node, int64_t index, tn_node *value);
/* Makes the ITEM nodes of an operator or region with several outputs. tn__graph_node_link_items()
 * inserts them after the node. */
tn_status tn__graph_node_items(tn_node *node);
void tn__graph_node_link_items(tn_node *node);
/* Erases the node, even if it has users. */
void tn__graph_node_remove(tn_node *node);
/* Fails unless the node belongs to the graph, is not erased and has one output. With `optional`,
 * accepts TN_NODE_NONE. `what` is the function and the argument, for the error text. */
tn_status tn__graph_value_check(const tn_graph *graph, const tn_node *node, bool optional,
                                const char *what);
/* Returns whether `node` is a node. Sets the error if it is NULL or TN_NODE_NONE. */
bool tn__graph_node_asked(const tn_node *node, const char *what);
/* Returns whether `index` is from 0 to count - 1. Sets the error if it is not. */
bool tn__graph_node_in_range(const tn_node *node, int64_t index, int64_t count, const char *what);
/* Fails unless the node belongs to the graph and is not erased. `graph` may be NULL for any
 * graph. */
tn_status tn__graph_node_check(const tn_graph *graph, const tn_node *node, const char *what);

tn__callee *tn__graph_callee_new(tn_module *module, const tn_pack *in, const tn_pack *out);
tn__callee *tn__graph_callee_keep(tn__callee *callee);
void tn__graph_callee_drop(tn__callee *callee);
/* Returns where the tensor or module of a node is in the root module. */
static inline const char *tn__graph_target(const tn_node *node)
{
    return node->target != NULL ? node->target : node->name;
}
/* For a node that takes the place of `from`: copies what only `from` has: the module that called
 * it, and sizes that vary. */
tn_status tn__graph_inherit(tn_node *node, const tn_node *from);
/* Copies the path and type of the module that called the operator. */
tn_status tn__graph_inherit_place(tn_node *node, const tn_node *from);
/* Sets a text of a node or graph to a copy of `text`, which may be NULL. */
tn_status tn__graph_set_text(char **to, const char *text);
/* Writes the name that a node for this path gets: letters, digits and `_`. */
void tn__graph_name_of(const char *path, char *out, size_t size);

/* ---- build.c ---- */
/* Options that a node gets: a spec whose arguments fill the option table. */
typedef struct tn__built {
    const tn_op *op;
    const tn__spec *spec;
    const char *name; /* NULL: the name of the operator */
    const char *who;  /* the function that failures name; NULL: tn_graph_add_op */
    bool inplace;     /* the last input is the tensor that is written */
    bool no_grad;
    /* Expressions for the integers TN__SYMBOL_MARK + i among the options. */
    const tn__expr *exprs;
    int64_t n_exprs;
} tn__built;
/* Adds an OP or INPLACE node. */
tn_node *tn__build_op(tn_graph *graph, tn_node *before, const tn__built *how,
                      tn_node *const *inputs, int64_t n_inputs);
/* Adds an OP or INPLACE node with a copy of an option struct, NULL: all defaults. */
tn_node *tn__build_recorded(tn_graph *graph, tn_node *before, const tn_op *op, const void *options,
                            tn_node *const *inputs, int64_t n_inputs, bool inplace);
/* Adds a CALL node; `metas` has an element for each output. Takes over the reference to `callee`,
 * even on failure. */
tn_node *tn__build_call(tn_graph *graph, tn_node *before, tn__callee *callee, const char *target,
                        const char *name, tn_node *const *inputs, int64_t n_inputs,
                        const tn_meta *metas, int32_t n_out);
/* Checks that a new step may be inserted before a node. */
tn_status tn__build_check_place(const tn_graph *graph, const tn_node *before, const char *who);
/* Links a node that is complete, with its items. On failure the node is freed. */
tn_node *tn__build_link(tn_node *node, tn_node *before);
/* Adds a SLOT or CONSTANT node named after its path. */
tn_node *tn__build_held(tn_graph *graph, tn_node_kind kind, const char *path, const char *name,
                        tn_tensor *tensor);
tn_node *tn__build_input(tn_graph *graph, const char *name, const tn_meta *meta);
/* Sets *meta to the dtype, shape and strides of a tensor. */
void tn__build_meta_of(const tn_tensor *tensor, tn_meta *meta);

/* ---- lint.c ---- */
/* Infers the outputs of an OP node from its inputs. */
tn_status tn__lint_infer(tn_node *node);
/* tn_graph_lint, without its name in errors. */
tn_status tn__lint_graph(tn_graph *graph);

/* ---- blocks.c ---- */
enum { TN__BLOCKS_DEEPEST = 32 };
static inline bool tn__graph_has_blocks(const tn_node *node)
{
    return node->kind == TN_NODE_IF || node->kind == TN_NODE_LOOP;
}
/* The number of inputs of a node that its blocks do not get: the predicate. */
static inline int64_t tn__blocks_first(const tn_node *node)
{
    return node->kind == TN_NODE_IF ? 1 : 0;
}
/* "then", "else", "test" or "body". */
const char *tn__blocks_name(tn_node_kind kind, int block);
/* Adds an IF or LOOP node. Takes over the references to the blocks, even on failure. `metas` has
 * the types of the results; NULL: they are inferred. */
tn_node *tn__blocks_build(tn_graph *graph, tn_node *before, tn_node_kind kind, const char *name,
                          tn_graph *const blocks[2], int64_t most, tn_node *const *inputs,
                          int64_t n_inputs, const tn_meta *metas);
/* Checks the blocks of a node and infers its results. */
tn_status tn__blocks_infer(tn_node *node);
/* Gives the inputs of the blocks the types of the values that they get, and leaves the rest. */
tn_status tn__blocks_inputs(tn_node *node);
/* Fails if blocks are nested too deep. `above`: the number of blocks around the graph. */
tn_status tn__blocks_check_depth(const tn_graph *graph, int above);
tn_status tn__blocks_copy(tn_node *to, const tn_node *from);
void tn__blocks_drop(tn_node *node);
/* Copies the symbols of the graph of the node to its blocks, and to the blocks in them. */
void tn__blocks_symbols(tn_node *node);
/* Returns whether the node or a node in its blocks calls a module, or runs an operator that draws
 * random numbers or must keep its place in the order of the calls. */
bool tn__graph_draws(const tn_node *node);

/* ---- graph.c, for copies of a part ---- */
/* Gives a copy of a node the copies of its inputs and of its ITEM nodes; `copies` is indexed by the
 * ids of the originals. */
tn_status tn__graph_copy_inputs(const tn_node *from, tn_node *to, tn_node *const *copies);

/* ---- trace_module.c ---- */
/* Whether the graph has integers, among the options of operators or as the most steps of a loop,
 * which may come from sizes. */
bool tn__trace_has_sizes(const tn_graph *graph);

/* ---- text_decompositions.c ---- */
/* Appends what names the decomposition of a call: operator, options and types of the inputs, such
 * as "scale[by=2](float32[N, 3], none)". `options` is NULL without options. */
void tn__text_decompositions_key(tn__text *text, const char *name, const char *options,
                                 tn_node *const *in, int64_t n_in);
/* Returns whether an operator is of a plugin that does not come with Tenon. */
bool tn__text_decompositions_foreign(const tn_op *op);

/* ---- trace_graph.c ---- */
/* Finds out what the operator of a node returns by running its decomposition for shapes only. The
 * meta is not changed if only a run can tell. */
tn_status tn__trace_infer(tn_node *node);

/* ---- text.c ---- */
/* Appends the value of a node: %name in the text form, name with `code`. */
void tn__text_value(tn__text *text, const tn_node *node, bool code);
/* Appends the dtype and shape of an output of a node, such as float32[2, 3]. */
void tn__text_type(tn__text *text, const tn_node *node, int32_t output);
/* Appends the first line of the code without its end: forward(self : Net, x : float32[2, 3]). */
void tn__text_signature(tn__text *text, const tn_graph *graph);
/* Appends the options of an operator. Returns whether there are any. */
bool tn__text_options(tn__text *text, const tn_node *node);
/* Returns whether an INPLACE node writes into its first input. */
static inline bool tn__graph_writes_first(const tn_node *node)
{
    return node->n_in > 1 && node->in[0] == node->in[node->n_in - 1];
}
/* ---- symbols.c ---- */
/* Stands for expression i, as TN__SYMBOL_MARK + i, while options are printed and read. */
#define TN__SYMBOL_MARK INT64_C(8070605040302010000)
enum { TN__SYMBOL_MARKS = 4096 };
/* Appends an expression, such as 4*N+1; reads one and returns its end, NULL if there is none. */
void tn__symbols_text(tn__text *text, const tn_graph *graph, const tn__expr *expr);
const char *tn__symbols_read(const tn_graph *graph, const char *at, tn__expr *out);
tn_status tn__symbols_add(tn_node *node, const tn__expr *expr);
/* Returns the expression at a place, NULL if the integer there is fixed. */
const tn__expr *tn__symbols_find(const tn_node *node, int32_t row, int32_t item);
/* Returns an integer of an option struct, NULL if the option is not an integer or has no such
 * element. */
int64_t *tn__symbols_place(const tn_option *row, void *options, int64_t item);
/* Returns the value of an expression; INT64_MIN if it overflows. */
int64_t tn__symbols_value(const tn__expr *expr, const int64_t *symbols);
/* Returns the value of an expression for the sizes of the trace. */
int64_t tn__symbols_now(const tn_graph *graph, const tn__expr *expr);
/* Finds the values of the symbols from the inputs of a run. Fails if an input does not fit. */
tn_status tn__symbols_bind(const tn_graph *graph, tn_tensor *const *in, int64_t *symbols);
/* Sets *options to a copy of the options of a node for these values; NULL: they do not vary. */
tn_status tn__symbols_options(const tn_node *node, const int64_t *symbols, void **options);
/* A trace that can be made for other inputs. */
typedef struct tn__symbols_call {
    tn_tensor *const *in;
    int64_t count;
    tn_graph *(*trace)(const struct tn__symbols_call *call, tn_tensor *const *in);
} tn__symbols_call;
/* Traces at several sizes, as the text of tn_tracing_options.dynamic says. */
tn_graph *tn__symbols_trace(const tn__symbols_call *call, const char *text);
/* What makes a graph for given values of symbols. */
typedef struct tn__symbols_make {
    tn_graph *(*make)(const struct tn__symbols_make *self, const int64_t *symbols);
} tn__symbols_make;
/* Makes graphs for several values of the symbols of `names`, and returns one whose integers that
 * differ are expressions. */
tn_graph *tn__symbols_fit(const tn__symbols_make *how, const tn_graph *names);

/* ---- text_forms.c ---- */
void tn__text_table(tn__text *text, const tn_graph *graph);
void tn__text_json(tn__text *text, const tn_graph *graph);
void tn__text_dot(tn__text *text, const tn_graph *graph);

/* ---- run.c ---- */
/* Runs a block, with the values of the symbols; NULL: those of the trace. */
tn_status tn__run_block(tn_graph *block, const int64_t *symbols, tn_tensor *const *in,
                        tn_tensor **out);
/* `fixed` of a graph that was traced for the sizes of its inputs. */
#define TN__FIXED_BY_TRACE "the trace"
/* Returns whether an input may have a dtype in place of the declared one: another floating dtype,
 * unless a pass relied on it, because the module may have been converted since. */
bool tn__run_fits(const tn_graph *graph, tn_dtype declared, tn_dtype dtype);
/* Fails unless a tensor has the dtype and shape of `meta`. `what` begins the message; `who` is the
 * part of the message that says what relies on them. */
tn_status tn__run_check_input(const tn_tensor *tensor, const tn_meta *meta, const char *who,
                              const char *what);

/* ---- module.c ---- */
/* Makes graphs the forward of a module. The order of `graphs` is that of tn__modes.graphs. With
 * `with_signature`, every call with wrong arguments is refused with the signature. The module owns
 * the result. */
tn__modes *tn__module_run_by(tn_module *module, tn_graph *const graphs[3], bool with_signature);
/* script_convert.c: returns the graphs of a script, as in tn__modes, for the dtypes and shapes that
 * its tensors have now. */
tn_graph *const *tn__script_graphs(tn__modes *modes, tn_module *script);
/* Returns what a GraphModule or a script runs; NULL, without an error, for other modules. */
tn__modes *tn__module_modes(const tn_module *module);

/* ---- region.c ---- */
/* A graph, or some of its nodes, in the form that compilers get. */
typedef struct tn__region_flat {
    tn_region region;
    tn_node **nodes;    /* nodes[i] belongs to region.nodes[i] */
    tn_node **values;   /* values[i] belongs to region.values[i] */
    tn__arena *arena;   /* owns the memory of all arrays */
    int32_t *number_of; /* from the id of a node to its index in `nodes`; -1: not among them */
} tn__region_flat;
/* Fills *flat for `count` nodes, in the order of the graph. tn__region_flat_free() must be called
 * even after a failure. */
tn_status tn__region_flatten(tn__region_flat *flat, const tn_graph *graph, const tn_device *device,
                             tn_node *const *nodes, int64_t count);
void tn__region_flat_free(tn__region_flat *flat);
/* Returns the node that makes a value: for an ITEM, its operator or region. */
static inline tn_node *tn__region_producer(tn_node *value)
{
    return value->kind == TN_NODE_ITEM ? value->in[0] : value;
}
/* Replaces the nodes by a REGION node. Takes over the reference to `region`, even on failure. */
tn_status tn__region_replace(tn_graph *graph, const tn__region_flat *flat, tn__region *region);
/* Returns the nodes as a graph of their own, with the inputs and outputs of the region. */
tn_graph *tn__region_body(const tn__region_flat *flat);
/* Fails unless the chosen nodes can run as one: no other node may depend on a chosen node while a
 * chosen node depends on it. Both arrays are indexed by node id. Sets `depends` for the other
 * nodes, up to the last chosen one, that must run after the chosen ones. */
tn_status tn__region_convex(const tn_graph *graph, const tn__region_flat *flat,
                            const uint8_t *chosen, uint8_t *depends);

/* ---- region_run.c ---- */
tn__region *tn__region_keep(tn__region *region);
void tn__region_drop(tn__region *region);
/* The caller owns out[i]. */
tn_status tn__region_run(tn_node *node, tn_tensor *const *in, tn_tensor **out);

/* Returns whether a call uses an option, input or output that a pass or compiler of `plugin`, with
 * the head of its descriptor, does not know, and writes which one. */
bool tn__node_uses_newer(const tn_node *node, const tn_head *head, const tn__plugin *plugin,
                         char *reason, size_t size);

#endif

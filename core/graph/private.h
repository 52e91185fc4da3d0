/* SPDX-License-Identifier: MIT
 *
 * Declarations for the files of core/graph: the graph, its nodes, and compiled regions. */
#ifndef TN_CORE_GRAPH_PRIVATE_H
#define TN_CORE_GRAPH_PRIVATE_H

#include "core/module/internal.h"
#include "core/module/name_table.h"
#include "core/op/internal.h"

#include <pthread.h>

/* A tensor and the version of its memory at some time, to find out later whether it has changed. */
typedef struct tn__guard {
    tn_tensor *tensor; /* owned reference */
    /* Owned reference, so that its address is not used again; NULL: the tensor may change. */
    tn__storage *storage;
    uint64_t version;
    const char *who; /* the node or pass that relies on the tensor, for error texts */
} tn__guard;

typedef struct tn__use {
    tn_node *user;
    int64_t count;
} tn__use;

/* What a compiler made of a set of nodes. Copies of a graph share it. */
typedef struct tn__region {
    _Atomic int32_t refs;
    const tn_compiler_def *def;
    tn__plugin *plugin;
    const tn_device *device;
    void *program;
    bool compiled; /* the compiler's `drop` must be called */
    uint64_t workspace;
    int64_t n_in, n_out;
    tn_meta *in, *out; /* `in` and `out` are one block */
    tn_graph *body;    /* the compiled nodes, as a graph of their own */
} tn__region;

/* The module that a CALL node calls, and the form of its arguments and results. Nodes share it. */
typedef struct tn__callee {
    _Atomic int32_t refs;
    tn_module *module; /* owned */
    /* Owned packs whose tensors only mark the positions of the inputs (`in`) and outputs (`out`) of
     * the node. NULL: one tensor. */
    tn_pack *in, *out;
    bool fixed_out; /* the tensors of `out` are those of the text, not of a call */
} tn__callee;

/* A size that may vary, with its value in the trace and the least value that the graph is for. */
enum { TN__SYMBOLS = 8 };
typedef struct tn__symbol {
    char name[24];
    int64_t value, least;
} tn__symbol;
/* An integer of a node: times * a * b + plus, with symbols a and b (-1: none). Where it is: element
 * `item` of option `row`, or dimension `item` of output -1 - row. */
typedef struct tn__expr {
    int32_t row, item, a, b;
    int64_t times, plus;
} tn__expr;

struct tn_node {
    tn_graph *graph;
    tn_node *next, *prev; /* of an erased node: only `next`, in the list of erased nodes */
    int64_t id;           /* unique in the graph, even among erased nodes */
    tn_node_kind kind;
    bool erased;
    char *name;
    const tn_op *op;
    void *options; /* the operator's options, with memory in `keep`; NULL without options */
    tn__keep *keep;
    tn_node **in;
    int64_t n_in;
    tn__use *users;
    int64_t n_users, users_capacity;
    int64_t n_uses;  /* sum over all users */
    int32_t n_out;   /* number of output tensors */
    int32_t index;   /* of an ITEM: which output of the operator or region */
    tn_node **items; /* n_out ITEM nodes if there are several outputs, otherwise NULL */
    tn_meta *meta;   /* n_out entries */
    tn__guard held;  /* the tensor of a SLOT or CONSTANT */
    tn__region *region;
    tn__callee *callee;
    tn_graph *blocks[2]; /* owned: of an IF then and else, of a LOOP test and body; else NULL */
    int64_t most;        /* of a LOOP: the most steps; -1: no limit */
    tn__expr *exprs;     /* the integers that depend on symbols */
    int64_t n_exprs, exprs_capacity;
    uint32_t slot;   /* tn_slot_kind of a SLOT, with the flags of the slot << 16; 0: unknown */
    uint64_t writes; /* bit i: the node writes into input i; bit 63: into an input from 63 on */
    bool no_grad;    /* runs without recording gradients */
    int64_t part;   /* above 0: backward computes the values of this part again; 0: they are kept */
    bool generated; /* while a text is read: made by a decomposition, and the name is free */
    char *target;   /* path of a slot, constant or module in the root module; NULL: the name */
    char *path;     /* the module that called the operator, relative to the root; NULL: unknown */
    char *type;     /* type of that module; NULL: unknown */
};

typedef struct tn__named {
    tn_node *node;
    int64_t next; /* last number that was appended to this name, for another node */
} tn__named;

/* A module whose code has asked for its mode, and what it got. */
typedef struct tn__asked {
    char *path;
    bool training;
} tn__asked;

struct tn_graph {
    _Atomic int32_t refs;
    tn_node *first, *last;
    tn_node *steps; /* the first node that is not an input, slot or constant */
    tn_node *output;
    tn_node *erased;
    int64_t n_inputs, next_id;
    uint64_t edits; /* number of changes of the nodes, their order and their inputs */
    tn__name_table names;
    tn__named *named; /* named[i] belongs to names.names[i] */
    int64_t named_capacity;
    const char *fixed;     /* pass or compiler that relies on the declared inputs, or NULL */
    const char *inference; /* pass that made the graph for inference only, or NULL */
    tn__guard *guards;     /* slots whose values passes have used */
    int64_t n_guards, guards_capacity;
    char *report;
    tn__symbol symbols[TN__SYMBOLS];
    int32_t n_symbols;
    char *type;        /* type of the module that was traced; NULL: built by hand */
    tn_pack *in, *out; /* form of the arguments and results, as in tn__callee */
    bool evaluates;    /* the module was in evaluation mode */
    int32_t training;  /* 1: only for training mode, 0: only for evaluation mode, -1: for both */
    tn__asked
        *asked; /* the modules whose mode counts; with `training` >= 0 and none here, the root */
    int64_t n_asked, asked_capacity;
};

/* The graphs of a script for tensors of other dtypes or shapes, because it was converted. */
typedef struct tn__retyped {
    struct tn__retyped *next;
    tn_graph *graphs[3];
} tn__retyped;

/* What a GraphModule or a script runs. Copies of the module share it. */
typedef struct tn__modes {
    /* For evaluation mode, for training mode (maybe the same graph), and for parts in different
     * modes; NULL: none. */
    tn_graph *graphs[3];
    tn_state *files; /* the files saved with a script (tn_script_files); NULL: no script */
    pthread_mutex_t lock;
    tn__retyped *retyped;
} tn__modes;

static inline bool tn__graph_is_leaf(const tn_node *node)
{
    return node->kind <= TN_NODE_CONSTANT;
}
static inline bool tn__graph_is_none(const tn_node *node)
{
    return node == TN_NODE_NONE;
}

/* ---- graph.c ---- */
void tn__graph_guard_set(tn__guard *guard, tn_tensor *tensor, const char *who);
void tn__graph_guard_drop(tn__guard *guard);
bool tn__graph_guard_holds(const tn__guard *guard);
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
/* Puts a node, with the path of its module if it is known, in front of the last error. */
tn_status tn__graph_node_failed(const char *name, const char *path);
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
/* Runs a node, by tn_cond or tn_loop. `symbols` has the values of the run; NULL: those of the
 * trace. The results belong to the scope. */
tn_status tn__blocks_run(const tn_node *node, const int64_t *symbols, tn_tensor *const *in,
                         tn_tensor **out);

/* ---- graph.c, for copies of a part ---- */
/* Gives a copy of a node the copies of its inputs and of its ITEM nodes; `copies` is indexed by the
 * ids of the originals. */
tn_status tn__graph_copy_inputs(const tn_node *from, tn_node *to, tn_node *const *copies);

/* ---- trace_module.c ---- */
/* Whether the graph has integers, among the options of operators or as the most steps of a loop,
 * which may come from sizes. */
bool tn__trace_has_sizes(const tn_graph *graph);

/* ---- functions.c ---- */
/* Appends what names the decomposition of a call: operator, options and types of the inputs, such
 * as "scale[by=2](float32[N, 3], none)". `options` is NULL without options. */
void tn__functions_key(tn__text *text, const char *name, const char *options, tn_node *const *in,
                       int64_t n_in);
/* Returns whether an operator is of a plugin that does not come with Tenon. */
bool tn__functions_foreign(const tn_op *op);

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
/* Makes a tensor without memory, which the scope owns. */
tn_tensor *tn__trace_make_like(const tn_meta *like, const tn_device *device);

/* Makes tensors without memory for the inputs of a graph, in the scope: like `like`, or, if it is
 * NULL, as the graph declares them. `module` has the tensors of the graph, if the graph has none.
 */
tn_status tn__trace_make_inputs(const tn_graph *graph, tn_module *module, tn_tensor *const *like,
                                tn_tensor **out);

/* ---- text_forms.c ---- */
void tn__text_table(tn__text *text, const tn_graph *graph);
void tn__text_json(tn__text *text, const tn_graph *graph);
void tn__text_dot(tn__text *text, const tn_graph *graph);

/* ---- values.c ---- */
/* The number of tensors in a pack, at any depth; -1 and sets the error if the pack has a value that
 * a graph cannot keep (a module, an opaque pointer). */
int64_t tn__values_count(const tn_pack *pack, const char *what);
/* Writes the tensors of a pack in order; there is space for all of them. */
void tn__values_list(const tn_pack *pack, tn_tensor **out);
/* Returns a copy of a pack whose tensors are replaced by others, in order. */
tn_pack *tn__values_with(const tn_pack *form, tn_tensor *const *tensors);
/* Fails unless a pack has the form of another: the same structure, and equal values that are not
 * tensors. */
tn_status tn__values_match(const tn_pack *form, const tn_pack *pack, const char *what);

/* ---- run.c ---- */
/* Runs a graph. With `self`, slots and modules are those of this module, by their paths. */
tn_status tn__run_graph(tn_graph *graph, tn_module *self, tn_node_handler handler, void *user,
                        tn_tensor *const *in, tn_tensor **out);
/* Runs a block, with the values of the symbols; NULL: those of the trace. */
tn_status tn__run_block(tn_graph *block, const int64_t *symbols, tn_tensor *const *in,
                        tn_tensor **out);
/* Fails if a tensor has changed that the graph relies on: a constant, or a slot that a pass used.
 */
tn_status tn__run_check_guards(const tn_graph *graph);
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
/* Adds the outputs of a graph to a pack, in the form that the traced module returned. */
tn_status tn__module_give_outputs(const tn_graph *graph, tn_tensor *const *out, tn_pack *output);
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
/* Calls the program of a region, whose plugin and device are ready. */
tn_status tn__region_call(const tn__region *region, const tn_view *const *in,
                          const tn_view *const *out, const tn_view *workspace, tn_stream *stream);

#endif

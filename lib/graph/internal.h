/* SPDX-License-Identifier: MIT
 *
 * Graphs: what other folders use: the graph, its nodes, compiled regions, and runs. */
#ifndef TN_LIB_GRAPH_INTERNAL_H
#define TN_LIB_GRAPH_INTERNAL_H

#include "core/module/internal.h"
#include "core/module/name_table.h"
#include "core/op/internal.h"

#include <pthread.h>

#include <tenon/compiler.h>
#include <tenon/graph.h>

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
    tn__option_block *option_block;
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

/* ---- node.c ---- */
/* Puts a node, with the path of its module if it is known, in front of the last error. */
tn_status tn__graph_node_failed(const char *name, const char *path);

/* ---- blocks.c ---- */
/* Runs a node, by tn_cond or tn_loop. `symbols` has the values of the run; NULL: those of the
 * trace. The results belong to the scope. */
tn_status tn__blocks_run(const tn_node *node, const int64_t *symbols, tn_tensor *const *in,
                         tn_tensor **out);

/* ---- symbols.c ---- */
/* Makes a tensor without memory, which the scope owns. */
tn_tensor *tn__trace_make_like(const tn_meta *like, const tn_device *device);

/* Makes tensors without memory for the inputs of a graph, in the scope: like `like`, or, if it is
 * NULL, as the graph declares them. `module` has the tensors of the graph, if the graph has none.
 */
tn_status tn__trace_make_inputs(const tn_graph *graph, tn_module *module, tn_tensor *const *like,
                                tn_tensor **out);

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
/* Fails if a tensor has changed that the graph relies on: a constant, or a slot that a pass used.
 */
tn_status tn__run_check_guards(const tn_graph *graph);

/* ---- module.c ---- */
/* Adds the outputs of a graph to a pack, in the form that the traced module returned. */
tn_status tn__module_give_outputs(const tn_graph *graph, tn_tensor *const *out, tn_pack *output);

/* ---- region_run.c ---- */
/* Calls the program of a region, whose plugin and device are ready. */
tn_status tn__region_call(const tn__region *region, const tn_view *const *in,
                          const tn_view *const *out, const tn_view *workspace, tn_stream *stream);

#endif

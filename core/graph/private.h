/* SPDX-License-Identifier: MIT
 *
 * Declarations for the files of core/graph: the graph, its nodes, and compiled regions. */
#ifndef TN_CORE_GRAPH_PRIVATE_H
#define TN_CORE_GRAPH_PRIVATE_H

#include "core/module/name_table.h"
#include "core/op/internal.h"

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
};

typedef struct tn__named {
    tn_node *node;
    int64_t next; /* last number that was appended to this name, for another node */
} tn__named;

struct tn_graph {
    _Atomic int32_t refs;
    tn_node *first, *last;
    tn_node *steps; /* the first node that is not an input, slot or constant */
    tn_node *output;
    tn_node *erased;
    int64_t n_inputs, next_id;
    tn__name_table names;
    tn__named *named; /* named[i] belongs to names.names[i] */
    int64_t named_capacity;
    const char *fixed;     /* pass or compiler that relies on the declared inputs, or NULL */
    const char *inference; /* pass that made the graph for inference only, or NULL */
    tn__guard *guards;     /* slots whose values passes have used */
    int64_t n_guards, guards_capacity;
    char *report;
};

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
/* Fails unless the node belongs to the graph and is not erased. `graph` may be NULL for any
 * graph. */
tn_status tn__graph_node_check(const tn_graph *graph, const tn_node *node, const char *what);

/* ---- build.c ---- */
/* Sets *meta to the dtype, shape and strides of a tensor. */
void tn__build_meta_of(const tn_tensor *tensor, tn_meta *meta);

/* ---- lint.c ---- */
/* Infers the outputs of an OP node from its inputs. */
tn_status tn__lint_infer(tn_node *node);

/* ---- run.c ---- */
/* Fails unless a tensor has the dtype and shape of `meta`, on which `who` relies. `what` begins the
 * message. */
tn_status tn__run_check_input(const tn_tensor *tensor, const tn_meta *meta, const char *who,
                              const char *what);

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
 * chosen node depends on it, and no random draw may come between chosen nodes. Both arrays are
 * indexed by node id. Sets `depends` for the other nodes, up to the last chosen one, that depend on
 * a chosen node. */
tn_status tn__region_convex(const tn_graph *graph, const tn__region_flat *flat,
                            const uint8_t *chosen, uint8_t *depends);

/* ---- region_run.c ---- */
tn__region *tn__region_keep(tn__region *region);
void tn__region_drop(tn__region *region);
/* The caller owns out[i]. */
tn_status tn__region_run(tn_node *node, tn_tensor *const *in, tn_tensor **out);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What the files of core/graph share: the graph, its nodes, and compiled regions. */
#ifndef TN_CORE_GRAPH_PRIVATE_H
#define TN_CORE_GRAPH_PRIVATE_H

#include "core/module/name_table.h"
#include "core/op/internal.h"

/* A tensor with the state of its memory at some time: whether it has changed since. */
typedef struct tn__guard {
    tn_tensor *tensor;    /* kept */
    tn__storage *storage; /* kept, so that no other one gets its address; NULL: it may change */
    uint64_t version;
    const char *who; /* relies on it */
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
    bool compiled; /* `drop` is owed */
    uint64_t workspace;
    int64_t n_in, n_out;
    tn_meta *in, *out; /* in one block with `in` */
    tn_graph *body;    /* the nodes as a graph of their own */
} tn__region;

struct tn_node {
    tn_graph *graph;
    tn_node *next, *prev; /* of an erased node: `next` alone, in the list of erased ones */
    int64_t id;           /* never used again in its graph */
    tn_node_kind kind;
    bool erased;
    char *name;
    const tn_op *op;
    void *options; /* the operator's struct, which `keep` belongs to; NULL without options */
    tn__keep *keep;
    tn_node **in;
    int64_t n_in;
    tn__use *users;
    int64_t n_users, users_capacity;
    int64_t n_uses;  /* over all users */
    int32_t n_out;   /* tensors that it makes */
    int32_t index;   /* of an ITEM */
    tn_node **items; /* n_out of them where there are several, else NULL */
    tn_meta *meta;   /* n_out of them */
    tn__guard held;  /* of a slot or constant */
    tn__region *region;
};

typedef struct tn__named {
    tn_node *node;
    int64_t next; /* the number that the next node of the same base tries first */
} tn__named;

struct tn_graph {
    _Atomic int32_t refs;
    tn_node *first, *last;
    tn_node *steps; /* the first that is neither input nor slot nor constant */
    tn_node *output;
    tn_node *erased;
    int64_t n_inputs, next_id;
    tn__name_table names;
    tn__named *named; /* at the place of each name */
    int64_t named_capacity;
    const char *fixed;     /* who relies on the declared inputs, NULL: nobody */
    const char *inference; /* which pass made it for inference only */
    tn__guard *guards;     /* slots that passes have computed with */
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
/* The graph gets the nodes and all else of `from`, which is dropped; its own nodes are erased. */
void tn__graph_take(tn_graph *graph, tn_graph *from);

/* ---- node.c ---- */
/* A node that is in no list yet. Its name is `base`, with a number where that is taken; `exact`: it
 * is refused then. Inputs are NULL. */
tn_node *tn__graph_node_new(tn_graph *graph, tn_node_kind kind, const char *base, bool exact,
                            int64_t n_in, int32_t n_out);
/* Frees one that is in no list, or whose graph goes. */
void tn__graph_node_free(tn_node *node);
/* Takes back a node that is in no list: its uses, its name and itself. */
void tn__graph_node_undo(tn_node *node);
/* Puts it before `before`, NULL: at the end. */
void tn__graph_node_link(tn_node *node, tn_node *before);
void tn__graph_node_unlink(tn_node *node);
/* Puts it there with the ITEM nodes that follow it. */
void tn__graph_node_move(tn_node *node, tn_node *before);
/* Makes `value` input `index`, which was NULL. */
tn_status tn__graph_node_use(tn_node *node, int64_t index, tn_node *value);
/* ITEM nodes of an operator or region with several outputs, in no list yet; linked behind it. */
tn_status tn__graph_node_items(tn_node *node);
void tn__graph_node_link_items(tn_node *node);
/* Erases it, whether it has users or not. */
void tn__graph_node_remove(tn_node *node);
/* A failure unless the node is one of the graph, not erased, and one value; `what` is function and
 * argument. NONE passes where `optional`. */
tn_status tn__graph_value_check(const tn_graph *graph, const tn_node *node, bool optional,
                                const char *what);
/* The same for any node; `graph` may be NULL. */
tn_status tn__graph_node_check(const tn_graph *graph, const tn_node *node, const char *what);

/* ---- build.c ---- */
/* The meta of a tensor's type, shape and strides. */
void tn__build_meta_of(const tn_tensor *tensor, tn_meta *meta);

/* ---- lint.c ---- */
/* Infers what an OP node makes of its inputs. */
tn_status tn__lint_infer(tn_node *node);

/* ---- run.c ---- */
/* A failure unless a tensor has type and shape of `meta`; `what` begins the message. */
tn_status tn__run_check_input(const tn_tensor *tensor, const tn_meta *meta, const char *who,
                              const char *what);

/* ---- region.c ---- */
/* A graph, or some nodes of it, as compilers see it. */
typedef struct tn__region_flat {
    tn_region region;
    tn_node **nodes;    /* of region.nodes */
    tn_node **values;   /* of region.values */
    tn__arena *arena;   /* of all of it */
    int32_t *number_of; /* a node's number in `nodes`, by its id; -1: it is none of them */
} tn__region_flat;
/* Of `count` nodes in their order; freed with tn__region_flat_free in any case. */
tn_status tn__region_flatten(tn__region_flat *flat, const tn_graph *graph, const tn_device *device,
                             tn_node *const *nodes, int64_t count);
void tn__region_flat_free(tn__region_flat *flat);
/* The node that makes a value: the operator of an ITEM. */
static inline tn_node *tn__region_producer(tn_node *value)
{
    return value->kind == TN_NODE_ITEM ? value->in[0] : value;
}
/* Puts a REGION node in the place of the nodes. Takes over the reference to `region`, also when it
 * fails. */
tn_status tn__region_replace(tn_graph *graph, const tn__region_flat *flat, tn__region *region);
/* The nodes as a graph of their own, whose inputs and outputs are those of the region. */
tn_graph *tn__region_body(const tn__region_flat *flat);
/* Marks by id what in the order from the first to the last of the nodes depends on them. A failure
 * unless they can be run as one: none of them depends on a node between that depends on them, and
 * no random draw comes between. */
tn_status tn__region_convex(const tn_graph *graph, const tn__region_flat *flat,
                            const uint8_t *chosen, uint8_t *depends);

/* ---- region_run.c ---- */
tn__region *tn__region_keep(tn__region *region);
void tn__region_drop(tn__region *region);
/* out[i] are the caller's. */
tn_status tn__region_run(tn_node *node, tn_tensor *const *in, tn_tensor **out);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What a plugin can contribute for graphs: a pass, which changes a graph, and a compiler, which
 * replaces sets of nodes of a graph by code of its own. Included by <tenon/contrib.h>.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_COMPILER_H
#define TENON_COMPILER_H

#include <tenon/graph.h>

TN_BEGIN_DECLS

struct tn_op_def;

/* ==== pass ==================================================================================== */

enum {
    TN_PASS_EXACT = 1, /* the results of the graph do not change, not even by rounding */
    /* The changed graph is only for inference: a run that would record gradients is refused. */
    TN_PASS_INFERENCE = 2,
    /* The pass reads the values of slots: a run after one of these tensors has changed is
     * refused. */
    TN_PASS_WEIGHTS = 4,
    /* The pass relies on the declared dtypes and shapes of the inputs: a run with others is
     * refused. */
    TN_PASS_SHAPES = 8
};

/* The arguments of a pass. */
typedef struct tn_pass_args {
    tn_head head;
    tn_graph *graph;  /* a copy of the graph, which replaces the graph if all passes succeed */
    const void *data; /* the option struct of the pass */
    /* [callback]: adds a line to the text of tn_graph_report, such as "2 nodes removed". */
    tn_status (*report)(const struct tn_pass_args *args, const char *text);
    void *host; /* for the core */
} tn_pass_args;

/* A pass. Any thread may call `run`, for several graphs at the same time. */
typedef struct tn_pass_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* for the plugin; the core does not read it */
    const tn_option *options;
    uint64_t data_size; /* size of the struct that the option table describes */
    uint64_t flags;     /* TN_PASS_* */
    /* Names of passes, separated by spaces, that run before this pass if the program requests them
     * too. NULL: none. */
    const char *after;
    /* Changes the graph with the functions of <tenon/graph.h>. The core checks the graph afterwards
     * and refuses it if its inputs or the number of its outputs have changed. */
    tn_status (*run)(const struct tn_pass_def *self, const tn_pass_args *args);
} tn_pass_def;

/* ==== compiler of regions ===================================================================== */

enum {
    TN_REGION_SEEN = 1 /* the value is used outside of the region, so `run` must write it */
};
/* A value of a region. The layout never changes. */
typedef struct tn_region_value {
    const char *name;
    const struct tn_meta *meta; /* dtype and shape, which are always known */
    const tn_view *constant;    /* the value itself if it is a constant of the graph, else NULL */
    /* The number of the node that computes it; -1: it comes from outside of the region. */
    int64_t node;
    uint32_t flags; /* TN_REGION_* */
    uint32_t reserved;
} tn_region_value;

/* A call of an operator in a region. The layout never changes. */
typedef struct tn_region_node {
    const char *name;
    const struct tn_op_def *op;
    const void *options; /* the option struct of the operator; NULL: it has no options */
    const int32_t *in;   /* numbers of values; -1: an absent optional input */
    const int32_t *out;
    int32_t n_in;
    int32_t n_out;
    uint64_t reserved;
} tn_region_node;

/* A graph or a part of one, as read-only arrays. The nodes are in an order in which they can run.
 * The struct is valid only during the call of `claim` or `compile`. A region never contains nodes
 * of operators with TN_OP_RANDOM or TN_OP_ORDERED, nodes with inputs or outputs of unknown shape,
 * nodes that use tensors of another device, or nodes that run without recording
 * (tn_node_is_no_grad). A graph that writes into tensors or calls modules is not offered to
 * compilers: `claim` is not called. */
typedef struct tn_region {
    tn_head head;
    const tn_device *device; /* the device that will run the code */
    const tn_region_node *nodes;
    const tn_region_value *values;
    const int32_t *in; /* numbers of the values from outside, in the order of tn_region_call.in */
    /* Numbers of the values that are used outside, in the order of tn_region_call.out. */
    const int32_t *out;
    int64_t n_nodes;
    int64_t n_values;
    int64_t n_in;
    int64_t n_out;
} tn_region;

/* Receives the sets of nodes that a compiler will replace. */
typedef struct tn_claims {
    tn_head head;
    /* [callback]: claims a set of nodes of the region, by number, to be compiled together. The
     * claim, and with it the whole compilation, fails if a number is out of range or already
     * claimed, or if a path between two of the nodes leads through a node outside of the set. Each
     * operator with TN_OP_RANDOM or TN_OP_ORDERED counts as a user of the one before it. */
    tn_status (*add)(const struct tn_claims *claims, const int64_t *nodes, int64_t count);
    void *host; /* for the core */
} tn_claims;

/* The result of `compile`. */
typedef struct tn_program {
    tn_head head;
    void *program;      /* handle for `run` and `drop`; may be NULL */
    uint64_t workspace; /* size in bytes of the workspace that each run needs; 0: none */
} tn_program;

/* One run of a program. The memory of `out` is allocated and row-major. Each input has the dtype,
 * shape and device of its value in the region, but may have any strides. */
typedef struct tn_region_call {
    tn_head head;
    const struct tn_compiler_def *compiler;
    const tn_view *const *in;
    const tn_view *const *out;
    int64_t n_in;
    int64_t n_out;
    const tn_view *workspace; /* workspace of the size in tn_program; NULL if none was requested */
    void *device;             /* the backend's handle of the device */
    void *stream;
} tn_region_call;

enum {
    /* The results are exactly those of the operators, without any difference by rounding. */
    TN_COMPILER_EXACT = 1,
    /* The program may run while gradients are recorded: the core then runs the operators of the
     * region again to compute the gradients. Without this flag, such a run is refused. */
    TN_COMPILER_TRAINS = 2,
    /* `run` does not wait, allocate memory or read values on the host, so a device may capture its
     * work and repeat it. */
    TN_COMPILER_CAPTURE_SAFE = 4
};

/* A compiler. Any thread may call `claim` and `compile`, for several graphs at the same time. `run`
 * is called by one thread at a time for each stream, and for several streams at the same time, even
 * with the same program. */
typedef struct tn_compiler_def {
    tn_head head;
    const char *name;
    const char *device; /* device type */
    const char *help;
    void *user;       /* for the plugin; the core does not read it */
    uint64_t flags;   /* TN_COMPILER_* */
    int32_t priority; /* a compiler with a higher priority is asked first */
    uint32_t reserved;
    /* Receives all nodes that no other compiler has claimed, and claims any number of sets of
     * them. */
    tn_status (*claim)(const struct tn_compiler_def *self, const tn_region *graph,
                       const tn_claims *claims);
    /* Compiles one claimed set of nodes. If it fails, the core does not call `drop`. */
    tn_status (*compile)(const struct tn_compiler_def *self, const tn_region *part,
                         tn_program *out);
    tn_status (*run)(void *program, const tn_region_call *call);
    void (*drop)(void *program); /* may be NULL */
} tn_compiler_def;

TN_END_DECLS
#endif

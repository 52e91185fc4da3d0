/* SPDX-License-Identifier: MIT
 *
 * What a plugin contributes for graphs: a pass, which changes a graph, and a compiler, which takes
 * over regions of it. Included by <tenon/contrib.h>. */
#ifndef TENON_COMPILER_H
#define TENON_COMPILER_H

#include <tenon/graph.h>

TN_BEGIN_DECLS

struct tn_op_def;

/* ==== pass ==================================================================================== */

enum {
    TN_PASS_EXACT = 1,     /* results stay the same to the bit */
    TN_PASS_INFERENCE = 2, /* the result is for inference: a run that records gradients is refused
                            */
    TN_PASS_WEIGHTS = 4, /* computes with the tensors of slots: a run after one of them has changed
                            is refused */
    TN_PASS_SHAPES = 8   /* relies on the declared inputs: a run with others is refused */
};

/* The arguments of a pass. */
typedef struct tn_pass_args {
    tn_head head;
    tn_graph *graph;  /* a copy, which takes the graph's place when all passes succeed */
    const void *data; /* the options */
    /* [callback]: a line for tn_graph_report: "2 nodes removed". */
    tn_status (*report)(const struct tn_pass_args *args, const char *text);
    void *host; /* the core's */
} tn_pass_args;

/* A pass. Any thread calls it, several graphs at the same time. */
typedef struct tn_pass_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* the plugin's own */
    const tn_option *options;
    uint64_t data_size; /* of the struct that the option table points into */
    uint64_t flags;     /* TN_PASS_* */
    const char *after;  /* names of passes that go first where they are asked for, too, with spaces
                           between; NULL: none */
    /* Changes the graph by the functions of <tenon/graph.h>. The core checks it afterwards. A graph
     * whose inputs, or the number of whose outputs, have changed is refused. */
    tn_status (*run)(const struct tn_pass_def *self, const tn_pass_args *args);
} tn_pass_def;

/* ==== compiler of regions ===================================================================== */

enum {
    TN_REGION_SEEN = 1 /* the value is used outside: `run` has to write it */
};
/* A value of a region. Frozen. */
typedef struct tn_region_value {
    const char *name;
    const struct tn_meta *meta; /* type and shape; never of unknown shape */
    const tn_view *constant;    /* its memory where it is a constant of the graph, else NULL */
    int64_t node;               /* that makes it; -1: it comes from outside */
    uint32_t flags;             /* TN_REGION_* */
    uint32_t reserved;
} tn_region_value;

/* A call of an operator in a region. Frozen. */
typedef struct tn_region_node {
    const char *name;
    const struct tn_op_def *op;
    const void *options; /* the operator's struct; NULL: it has none */
    const int32_t *in;   /* numbers of values; -1: an absent optional input */
    const int32_t *out;
    int32_t n_in;
    int32_t n_out;
    uint64_t reserved;
} tn_region_node;

/* A graph, or a part of one, flat and read-only, in an order in which it can run; valid during the
 * call only. Nodes that draw random numbers, or make or take values of unknown
 * shape are never in it; a graph that writes into tensors has none that are. */
typedef struct tn_region {
    tn_head head;
    const tn_device *device; /* where it will run */
    const tn_region_node *nodes;
    const tn_region_value *values;
    const int32_t *in;  /* the values from outside, in the order of tn_region_call.in */
    const int32_t *out; /* the values that are seen outside, in the order of tn_region_call.out */
    int64_t n_nodes;
    int64_t n_values;
    int64_t n_in;
    int64_t n_out;
} tn_region;

/* Where a compiler says what it takes over. */
typedef struct tn_claims {
    tn_head head;
    /* [callback]: nodes of the region, by number, that will be compiled together. Refused where a
     * number is out of range or claimed already, where a node outside lies on a path between two of
     * them, or where a random draw comes between them: then the compilation fails. */
    tn_status (*add)(const struct tn_claims *claims, const int64_t *nodes, int64_t count);
    void *host; /* the core's */
} tn_claims;

/* What came of compiling a part. */
typedef struct tn_program {
    tn_head head;
    void *program;      /* the compiler's own, for `run` and `drop`; may be NULL */
    uint64_t workspace; /* bytes that each run needs; 0: none */
} tn_program;

/* One run of a program. Memory of `out` is allocated, row-major. An input has type, shape and
 * device of its value; its strides are those of the tensor that came. */
typedef struct tn_region_call {
    tn_head head;
    const struct tn_compiler_def *compiler;
    const tn_view *const *in;
    const tn_view *const *out;
    int64_t n_in;
    int64_t n_out;
    const tn_view *workspace; /* of the size asked for; NULL if none */
    void *device;             /* the backend's handles */
    void *stream;
} tn_region_call;

enum {
    TN_COMPILER_EXACT = 1, /* results are those of the operators to the bit */
    /* Where a gradient is recorded, the program runs, too, and the core computes the gradient by
     * the operators of the region, which it runs again. Without it such a run is refused. */
    TN_COMPILER_TRAINS = 2,
    TN_COMPILER_CAPTURE_SAFE = 4 /* `run` neither waits nor allocates nor reads values on the host:
                                    a device may capture its work and repeat it */
};

/* A compiler. `claim` and `compile`: any thread, several graphs at the same time. `run`: one thread
 * at a time for a stream, several streams at the same time, also of one program. */
typedef struct tn_compiler_def {
    tn_head head;
    const char *name;
    const char *device; /* device type */
    const char *help;
    void *user;       /* the plugin's own */
    int32_t priority; /* higher is asked first */
    uint32_t flags;   /* TN_COMPILER_* */
    /* Looks at all nodes that can be had and claims sets of them, as many as it wants. */
    tn_status (*claim)(const struct tn_compiler_def *self, const tn_region *graph,
                       const tn_claims *claims);
    /* Compiles one claimed set. When it fails, `drop` is not called. */
    tn_status (*compile)(const struct tn_compiler_def *self, const tn_region *part,
                         tn_program *out);
    tn_status (*run)(void *program, const tn_region_call *call);
    void (*drop)(void *program); /* may be NULL */
} tn_compiler_def;

TN_END_DECLS
#endif

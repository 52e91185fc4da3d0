/* SPDX-License-Identifier: MIT
 *
 * A trace in progress: what trace.c (operators) and trace_module.c (modules) share. */
#ifndef TN_LIB_GRAPH_TRACING_H
#define TN_LIB_GRAPH_TRACING_H

#include "core/base/map.h"
#include "core/base/vector.h"
#include "lib/graph/private.h"
#include "core/tensor/trace.h"

/* A parameter or buffer of the module. */
typedef struct tn__traced_slot {
    const char *path;
    uint32_t kind; /* as in tn_node */
    uint64_t version;
} tn__traced_slot;

/* The graph that nodes are added to: that of the module, or a block. */
typedef struct tn__trace_level {
    tn_graph *graph;
    tn__map values;   /* from tensors to their nodes */
    tn_tensor **kept; /* the keys of `values`: owned, so that their addresses are not used again */
    int64_t n_kept, kept_capacity;
    tn_node *before; /* new nodes come before this one; NULL: at the end */
} tn__trace_level;

/* The tensors from outside that the functions of one call use, with their nodes outside. */
typedef struct tn__trace_taken {
    struct tn__taken {
        tn_tensor *tensor;
        tn_node *node;
    } * at;
    int64_t count, capacity;
} tn__trace_taken;
typedef struct tn__taken tn__taken;

/* A function of tn_cond or tn_loop that is being recorded. */
typedef struct tn__trace_block {
    struct tn__trace_block *outer; /* NULL: called by code of the module */
    tn__trace_level level;         /* what is around the block, while it is being recorded */
    tn__trace_taken *taken;
    tn_tensor *const *in;  /* the arguments of the function */
    tn_node *const *nodes; /* the node outside of the block of each argument */
    int64_t n_in;
    tn_node_kind kind;
    int number;
} tn__trace_block;

typedef struct tn__trace {
    tn__tracer tracer; /* first: a tn__tracer is cast to this struct */
    tn__trace_level level;
    tn__trace_block *block; /* NULL: none */
    tn_module *root;
    const tn_tracing_options *options;
    tn__walk walk; /* keeps the modules and tensors of the root alive */
    tn__traced_slot *slots;
    tn__map held;    /* from tensors of the root to their elements of `slots` */
    tn__map modules; /* from modules to their paths */
    int64_t n_constants;
    const tn__storage **written; /* memory that recorded calls write into; its tensors are kept */
    int64_t n_written, written_capacity;
    const tn_node *where; /* the node whose path and type new nodes get; NULL: the module called */
    int64_t calls;        /* number of calls of modules so far */
    tn_error failure;
    bool failed;
} tn__trace;

static inline tn__trace *tn__trace_of(tn__tracer *tracer)
{
    return (tn__trace *)(void *)tracer;
}

extern TN_HIDDEN const tn__tracer tn__trace_functions;

/* Keeps the first failure, because the traced code may ignore it. Returns its status. */
tn_status tn__trace_keep_failure(tn__trace *trace);
/* Makes `node` the node of a tensor. */
tn_status tn__trace_map(tn__trace *trace, tn_tensor *tensor, tn_node *node);
/* Returns the node of a tensor; adds one for a tensor of the module and for a constant. */
tn_node *tn__trace_node(tn__trace *trace, tn_tensor *tensor);
/* Sets path and type of a node: those of trace->where or, if that is NULL, of the module that is
 * being called. */
tn_status tn__trace_where(tn__trace *trace, tn_node *node);
/* Between these, calls run for shapes and views only. */
tn_status tn__trace_silent_begin(tn__trace *trace);
void tn__trace_silent_end(tn__trace *trace);
/* Gives a result that is one of the inputs an object of its own, so that the input keeps its
 * node. */
tn_status tn__trace_make_own(tn_tensor **out, tn_tensor *const *in, int64_t n_in);
/* Finds the modules and tensors of the root. */
tn_status tn__trace_find(tn__trace *trace);
/* Between these, the calls of this thread go to the trace. */
void tn__trace_open(tn__trace *trace);
void tn__trace_close(tn__trace *trace);
/* Frees everything but the graph. */
void tn__trace_free(tn__trace *trace);
/* In a block: if the tensor comes from outside of it, makes it an input of the block and returns
 * the node of the input. *outside: whether the tensor comes from outside. */
tn_node *tn__trace_take(tn__trace *trace, tn_tensor *tensor, bool *outside);
/* Fails if a block writes into a tensor from outside. */
tn_status tn__trace_check_write(const tn__trace *trace, const tn_tensor *tensor);
/* Frees everything but the graph. */
void tn__trace_level_free(tn__trace_level *level);
/* As in tn__tracer. */
bool tn__trace_module_begin(tn__tracer *tracer, tn_module *module, tn_tensor *input,
                            const tn_pack *pack, tn_status *status);
tn_status tn__trace_module_end(tn__tracer *tracer, tn_module *module, tn_tensor *input,
                               const tn_pack *pack, tn_tensor **output, tn_pack *out,
                               tn_status status);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Plans: a graph whose kernels and memory are fixed for inputs of given dtypes, shapes and strides.
 * plan_record.c finds the steps, plan_memory.c lays out the memory, plan_binding.c prepares data,
 * plan_run.c runs the steps, plan.c has the plan. */
#ifndef TN_CORE_GRAPH_PLAN_H
#define TN_CORE_GRAPH_PLAN_H

#include "core/graph/private.h"
#include "core/tensor/trace.h"

/* Where the memory of a root is. */
typedef enum tn__plan_place {
    TN__PLAN_ARENA, /* in the arena of a run */
    TN__PLAN_INPUT, /* that of an input */
    TN__PLAN_FRESH, /* new for each run, because it is returned */
    TN__PLAN_HELD   /* the memory of a tensor that exists: of a slot, a constant, or the code of a
                       layer */
} tn__plan_place;

/* Memory that one or more values of a plan are views of. */
typedef struct tn__plan_root {
    tn__plan_place place;
    int32_t same;         /* the root whose memory this one takes over; itself if none */
    int32_t index;        /* INPUT: which input; FRESH: which of the new storages */
    int32_t first, last;  /* the steps between which it is needed; first > last: never */
    bool guarded;         /* a run relies on the values that HELD memory had */
    uint64_t size;        /* bytes */
    uint64_t offset;      /* ARENA: in the arena */
    uint64_t version;     /* HELD: of the storage, when the steps were recorded */
    tn__storage *storage; /* owned: without memory, except if HELD */
} tn__plan_root;

/* A view that a step uses. */
typedef struct tn__plan_operand {
    int32_t root;    /* -1: absent */
    uint64_t within; /* HELD: the byte offset of the view; else bytes from the start of the root */
    tn_view view;    /* shape and strides belong to the binding */
} tn__plan_operand;

typedef struct tn__plan_step {
    const tn_op *op;
    const struct tn__kernel_entry *entry;
    const char *plugin;
    const tn_node *node;
    tn__region *region; /* a compiled region in place of a kernel; the graph of the plan holds it */
    /* A node with blocks in place of a kernel, which the interpreter runs. */
    const tn_node *control;
    const int64_t *symbols; /* for it; of the arena of the binding, or NULL */
    tn_call call;           /* without views */
    int64_t first;          /* its operands: inputs, outputs, workspace */
    bool workspace;
    struct tn__prepared_data *prepared; /* owned */
} tn__plan_step;

/* How an output of the graph is made. */
typedef struct tn__plan_result {
    int32_t same;      /* >= 0: the earlier output that it is */
    int32_t input;     /* >= 0: the input that it is */
    tn_tensor *tensor; /* the tensor of a slot that it is; owned */
    int32_t root;      /* else a view of this root */
    bool blind;
    tn_meta meta;
} tn__plan_result;

/* A tensor of the graph that must be where it was. */
typedef struct tn__plan_slot {
    tn_tensor *tensor;          /* owned */
    const tn__storage *storage; /* a root holds it */
    tn_view view;
} tn__plan_slot;

/* The memory and the calls of one run at a time. */
typedef struct tn__plan_state {
    struct tn__plan_state *next;
    tn_stream *stream;  /* on which it was used last */
    tn__storage *arena; /* NULL: nothing is needed */
    struct tn__plan_ready {
        tn_call call;
        const char *plugin;
    } * ready;
    tn_view *views; /* one for each operand */
    const tn_view *
        *places; /* for the calls: the addresses of these views, NULL for an absent operand */
    tn__storage **fresh;
} tn__plan_state;

typedef struct tn__plan_binding {
    _Atomic int32_t refs;
    struct tn__plan_binding *next;
    const tn_device *device;
    tn__arena *arena; /* shapes, strides and options */
    tn_tensor **like; /* the inputs that it is for, without memory */
    int64_t n_in, n_out;
    tn__plan_root *roots;
    tn__plan_operand *operands;
    tn__plan_step *steps;
    tn__plan_result *results;
    tn__plan_slot *slots;
    tn__guard *reads;    /* tensors whose values the code of layers has read */
    tn_module **modules; /* modules that were called, in their modes: `training` */
    bool *training;
    int64_t n_roots, roots_capacity, n_operands, operands_capacity, n_steps, steps_capacity;
    int64_t n_slots, slots_capacity, n_reads, reads_capacity, n_modules, modules_capacity;
    int64_t training_capacity;
    int64_t n_fresh;
    int64_t *moving; /* the operands whose memory changes from run to run, in memory of `arena` */
    int64_t n_moving;
    int32_t *guarded; /* the roots whose values may not change, in memory of `arena` */
    int64_t n_guarded;
    uint64_t bytes, bytes_least, bytes_apart, bytes_prepared;
    tn__plan_state *states; /* those that no run uses; under the lock of the plan */
} tn__plan_binding;

struct tn_plan {
    tn_graph *graph; /* a copy of its own */
    uint32_t most;
    pthread_mutex_t lock;
    tn__plan_binding *bindings; /* the one used last comes first */
};

/* ---- plan_record.c ---- */
/* Returns a binding for tensors like these, which may have no memory. */
tn__plan_binding *tn__plan_record(tn_graph *graph, tn_tensor *const *in);

/* ---- plan_binding.c ---- */
/* Lets kernels prepare data from the tensors that exist. */
tn_status tn__plan_binding_prepare(tn__plan_binding *binding);
void tn__plan_binding_drop(tn__plan_binding *binding);

/* ---- plan_memory.c ---- */
/* Lets results take over the memory of operands, and lays out the arena. */
tn_status tn__plan_lay_out(tn__plan_binding *binding);
/* Fails if two roots that are needed at the same time overlap, or one is outside of the arena. */
tn_status tn__plan_verify(const tn__plan_binding *binding);
static inline tn__plan_root *tn__plan_root_of(const tn__plan_binding *binding, int32_t root)
{
    return &binding->roots[binding->roots[root].same];
}
static inline int64_t tn__plan_operands_of(const tn__plan_step *step)
{
    return step->call.n_in + step->call.n_out + (step->workspace ? 1 : 0);
}

/* ---- plan_run.c ---- */
tn__plan_state *tn__plan_state_new(const tn__plan_binding *binding, tn_stream *stream);
void tn__plan_state_drop(const tn__plan_binding *binding, tn__plan_state *state);
/* The name of what a step runs: a kernel, a compiler, "cond" or "loop". */
const char *tn__plan_step_name(const tn__plan_step *step);
/* Runs the steps. The caller owns out[i]. */
tn_status tn__plan_run(const tn__plan_binding *binding, tn__plan_state *state, tn_tensor *const *in,
                       tn_tensor **out);

#endif

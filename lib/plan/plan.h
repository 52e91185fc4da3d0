/* SPDX-License-Identifier: MIT
 *
 * Plans: a graph whose kernels and memory are fixed for inputs of given dtypes, shapes and strides.
 * steps.c finds the steps, memory.c lays out the memory, binding.c prepares data,
 * run.c runs the steps, record.c and plan.c have plans of graphs, train*.c and
 * backward.c those of modules that train. */
#ifndef TN_LIB_PLAN_PLAN_H
#define TN_LIB_PLAN_PLAN_H

#include "core/base/map.h"
#include "lib/graph/internal.h"
#include "core/tensor/trace.h"
#include "lib/train/internal.h"

/* Where the memory of a root is. */
typedef enum tn__plan_place {
    TN__PLAN_SLAB,  /* in the slab of a run */
    TN__PLAN_INPUT, /* that of an input */
    TN__PLAN_FRESH, /* new for each run, because it is returned */
    TN__PLAN_HELD,  /* the memory of a tensor that exists: of a slot, a constant, or the code of a
                       layer */
    TN__PLAN_BLOCK, /* in training: a block of its own from its first step to its last; a result or
                       what backward needs stays */
    TN__PLAN_SAVED  /* in backward: what the run of forward has saved */
} tn__plan_place;

/* Memory that one or more values of a plan are views of. */
typedef struct tn__plan_root {
    tn__plan_place place;
    int32_t same;         /* the root whose memory this one takes over; itself if none */
    int32_t index;        /* INPUT: which input; FRESH: which new storage; SAVED: index in
                             tn__plan_given.saved */
    int32_t first, last;  /* the steps between which it is needed; first > last: never */
    bool guarded;         /* a run relies on the values that HELD memory had */
    bool written;         /* a step changes HELD memory */
    uint64_t shift;       /* INPUT: bytes from the start of the root to the start of the input */
    uint64_t size;        /* bytes */
    uint64_t offset;      /* SLAB: in the slab */
    uint64_t version;     /* HELD: version of the storage when the steps were recorded */
    tn__storage *storage; /* owned: without memory, except if HELD */
} tn__plan_root;

/* A view that a step uses. */
typedef struct tn__plan_operand {
    int32_t root;    /* -1: absent */
    uint64_t within; /* HELD: the byte offset of the view; else bytes from the start of the root */
    tn_view view;    /* shape and strides belong to the binding */
} tn__plan_operand;

/* The update of parameters in a plan of whole steps, in memory of the binding. */
typedef struct tn__plan_update {
    tn_optimizer *optimizer; /* the tn_step holds the reference */
    int64_t *index;          /* which parameters; the operands are their gradients */
} tn__plan_update;

typedef struct tn__plan_step {
    const tn_op *op;
    const struct tn__kernel_entry *entry;
    const char *plugin;
    const char *name;   /* of the node, or of the module and the operator */
    const char *path;   /* of the module of the node; NULL: not known, or part of the name */
    tn__region *region; /* a compiled region in place of a kernel; the graph of the plan holds it */
    /* A node with blocks in place of a kernel, which the interpreter runs. */
    const tn_node *control;
    const int64_t *symbols;        /* the symbols of `control`, in memory of the binding; or NULL */
    const tn__plan_update *update; /* in place of a kernel: calls the rule of an optimizer */
    tn_call call;                  /* without views */
    int64_t first;  /* index of its first operand: inputs, then outputs and workspace */
    uint64_t draws; /* > 0: where its options are in tn__plan_state.options, plus 1 */
    bool workspace;
    struct tn__prepared_data *prepared; /* owned */
} tn__plan_step;

/* A number in the options of a step that depends on what a run draws: the seed, or a block. */
typedef struct tn__plan_draw {
    int64_t step;
    uint32_t offset;
    bool seed;
    uint64_t block; /* from the first block of the run */
} tn__plan_draw;

/* How an output of the graph is made. */
typedef struct tn__plan_result {
    int32_t same;      /* >= 0: the earlier output that it is */
    int32_t input;     /* >= 0: the input that it is */
    tn_tensor *tensor; /* the tensor of a slot that it is; owned */
    int32_t root;      /* else a view of this root; -1: none, as of a gradient that is zero */
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
    tn_stream *stream; /* on which it was used last */
    /* For recorded runs: `stream` is a stream of its own, on which the kernels were recorded with
     * inputs and results in fixed places; it was launched last on `launched`. */
    tn_stream *launched;
    tn_device_graph *recorded;
    tn_tensor **fixed; /* the inputs; owned */
    tn__storage *slab; /* NULL in training */
    struct tn__plan_ready {
        tn_call call;
        const char *plugin;
    } * ready;
    tn_view *views; /* one for each operand */
    const tn_view *
        *places; /* for the calls: the addresses of these views, NULL for an absent operand */
    tn__storage **fresh;
    /* In training: the memory of the roots in this run, and their addresses in the last run. */
    tn__storage **blocks;
    struct tn__plan_base {
        void *data;
        uint64_t offset;
    } * bases;
    char *options; /* of the steps that draw; owned */
} tn__plan_state;

/* Numbers for each of some rows: those of row i are at[first[i]] to at[first[i + 1] - 1]. */
typedef struct tn__plan_lists {
    int32_t *first, *at;
} tn__plan_lists;

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
    int32_t *made; /* the FRESH roots whose memory a run makes, in memory of `arena` */
    int64_t n_made;
    int64_t *moving; /* the operands whose memory changes from run to run, in memory of `arena` */
    int64_t n_moving;
    int32_t *guarded; /* the roots whose values may not change, in memory of `arena` */
    int64_t n_guarded;
    uint64_t bytes, bytes_least, bytes_apart, bytes_prepared;
    bool *needs;       /* in backward, in memory of `arena`: the saved tensors that are used */
    _Atomic bool used; /* in backward: a run has used the binding */
    bool trains;       /* each root has a block of its own, and steps may write into slots */
    tn__plan_lists uses, begins, ends; /* operands of a root; blocks that begin or end at a step */
    tn__plan_draw *draws;
    int64_t n_draws, draws_capacity;
    uint64_t draws_bytes; /* of the options of all steps that draw */
    int32_t *written;     /* the HELD roots that steps write, in memory of `arena` */
    int64_t n_written;
    tn__plan_state *states; /* the states that no run uses; the lock of the plan guards the list */
} tn__plan_binding;

struct tn_plan {
    tn_graph *graph; /* a copy of its own */
    uint32_t most;
    bool records; /* runs are recorded by the device, and launched */
    pthread_mutex_t lock;
    tn__plan_binding *bindings; /* the one used last comes first */
};

/* ---- steps.c ---- */
/* A recording in progress. */
typedef struct tn__plan_recorder {
    tn__tracer tracer; /* first: a tn__tracer is cast to this struct */
    tn__plan_binding *b;
    tn__map roots;       /* from storages to the number of their root, plus 1 */
    const tn_node *node; /* the node that runs; NULL: a module is called */
    tn_error failure;    /* the first one, because code may ignore it */
    bool failed;
    /* In training. `tensors` has the tensors and modules of the compiled module as keys. `memory`
     * maps the storage of each tensor to the tensor if that requires a gradient, else to NULL. */
    const tn__map *tensors, *memory;
    bool backward;   /* the recording is of backward, not of forward */
    bool inference;  /* the mode when the recording began */
    uint64_t last;   /* the number of the last node of autograd when the recording began */
    uint64_t blocks; /* blocks of random numbers that were drawn */
    int64_t depth;   /* regions of autocast around the recording */
    bool uncached; /* an operator was called with autocast on inside of an outer autocast region */
    struct tn__plan_taken {
        uint64_t first, count;
        bool used;
    } * taken; /* the draws; owned */
    int64_t n_taken, taken_capacity;
} tn__plan_recorder;
extern const tn__tracer tn__plan_tracer;
/* Returns the number of the root of a storage, -1 if memory runs out. */
int32_t tn__plan_steps_root(tn__plan_recorder *recorder, tn__storage *storage);
/* Runs code that is recorded: `run` gets the recorder. */
tn_status tn__plan_steps_run(tn__plan_recorder *recorder,
                             tn_status (*run)(tn__plan_recorder *recorder, void *user), void *user);
/* Fails if the memory of an existing tensor changed other than by a step, if a step changes values
 * that code of a layer has read, or if no operator uses random numbers that were drawn. */
tn_status tn__plan_steps_check(const tn__plan_recorder *recorder);
void tn__plan_steps_free(tn__plan_recorder *recorder);

/* ---- plan.c ---- */
/* tn_plan_new, without the name of the function in front of errors. With `records`, the device
 * records the kernels of a run once, and later runs launch the record; a run fails if the device
 * cannot record them. */
tn_plan *tn__plan_make(const tn_graph *graph, const tn_plan_options *options, bool records);
/* Whether the tensor is where it was. */
bool tn__plan_slot_holds(const tn__plan_slot *slot);

/* Describes a binding; `bindings` is 0. */
void tn__plan_stats_of(const tn__plan_binding *binding, tn_plan_stats *out);

/* ---- record.c ---- */
/* Notes where a tensor is. */
tn_status tn__plan_slot_add(tn__plan_binding *binding, tn_tensor *tensor);
/* Returns a binding for tensors like these, which may have no memory. */
tn__plan_binding *tn__plan_record(tn_graph *graph, tn_tensor *const *in);

/* ---- binding.c ---- */
/* Lets kernels prepare data from the tensors that exist. */
tn_status tn__plan_binding_prepare(tn__plan_binding *binding);
void tn__plan_binding_drop(tn__plan_binding *binding);

/* ---- memory.c ---- */
/* Lists the HELD roots that steps write, and computes where the options of steps that draw are in
 * tn__plan_state.options. */
tn_status tn__plan_note_steps(tn__plan_binding *binding);
/* For training: lets results take over the memory of operands, and finds out at which steps blocks
 * begin and end. */
tn_status tn__plan_live(tn__plan_binding *binding);
/* Lets results take over the memory of operands, and lays out the slab. */
tn_status tn__plan_lay_out(tn__plan_binding *binding);
/* Fails if two roots that are needed at the same time overlap, or one is outside of the slab. */
tn_status tn__plan_verify(const tn__plan_binding *binding);
static inline tn__plan_root *tn__plan_root_of(const tn__plan_binding *binding, int32_t root)
{
    return &binding->roots[binding->roots[root].same];
}
static inline int64_t tn__plan_operands_of(const tn__plan_step *step)
{
    return step->call.n_in + step->call.n_out + (step->workspace ? 1 : 0);
}

/* ---- print.c ---- */
void tn__plan_print_steps(tn__text *text, const tn__plan_binding *binding);

/* ---- run.c ---- */
/* What a run of a training plan has besides its inputs; that of a whole step has only the draws. */
typedef struct tn__plan_given {
    tn__storage **saved;        /* for SAVED roots */
    bool spend;                 /* drops each storage in `saved` after its last step */
    uint64_t seed, block;       /* of the draws */
    const int32_t *saved_roots; /* the roots whose blocks stay; they go to `stays` */
    int64_t n_saved_roots;
    tn__storage **stays;
} tn__plan_given;
/* tn__plan_run for a binding that trains. */
tn_status tn__plan_run_given(const tn__plan_binding *binding, tn__plan_state *state,
                             tn_tensor *const *in, tn_tensor **out, const tn__plan_given *given);
tn__plan_state *tn__plan_state_new(const tn__plan_binding *binding, tn_stream *stream);
void tn__plan_state_drop(const tn__plan_binding *binding, tn__plan_state *state);
/* Returns the storage that a root has in a run. */
tn__storage *tn__plan_storage_of(const tn__plan_binding *binding, const tn__plan_state *state,
                                 const tn__plan_root *root, tn_tensor *const *in);
/* The name of what a step runs: a kernel, a compiler, "cond" or "loop". */
const char *tn__plan_step_name(const tn__plan_step *step);
/* Runs the steps. The caller owns out[i]. `given` is NULL if no step draws. */
tn_status tn__plan_run(const tn__plan_binding *binding, tn__plan_state *state, tn_tensor *const *in,
                       tn_tensor **out, const tn__plan_given *given);

/* The parts of a run: makes the memory of new results, runs the steps, makes the results. */
tn_status tn__plan_make_fresh(const tn__plan_binding *binding, tn__plan_state *state);
tn_status tn__plan_run_steps(const tn__plan_binding *binding, tn__plan_state *state,
                             tn_tensor *const *in);
tn_status tn__plan_make_results(const tn__plan_binding *binding, const tn__plan_state *state,
                                tn_tensor *const *in, tn_tensor **out);

/* ---- device_graph.c ---- */
/* Returns a state for recorded runs on this stream; NULL and an error, with the kernel, if the
 * device cannot record the steps. */
tn__plan_state *tn__plan_state_recorded(const tn__plan_binding *binding, tn_stream *stream);
/* Launches the record of a state. The caller owns out[i]. */
tn_status tn__plan_launch(const tn__plan_binding *binding, tn__plan_state *state,
                          tn_tensor *const *in, tn_tensor **out);

/* ---- run_no_kernel.c ---- */
/* Runs a step that is no kernel, or any step for observers, which get tensors. */
tn_status tn__plan_run_other(const tn__plan_binding *binding, const tn__plan_state *state,
                             int64_t step, tn_tensor *const *in, bool observed);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Plans of training: a call of a module in training mode, or one that records gradients, is
 * recorded once with its history of gradients. Later calls run its steps, and are one node of the
 * program's history. Backward through that node runs the steps of the recorded history. */
#ifndef TN_LIB_PLAN_TRAIN_H
#define TN_LIB_PLAN_TRAIN_H

#include "lib/plan/parts.h"

#define TN__PLAN_TRAIN_WHO "plan: "

/* An input that a plan is for. */
typedef struct tn__plan_train_input {
    tn_meta meta;
    const tn_device *device;
    bool requires_grad;
    int64_t same; /* the first input that is the same tensor */
} tn__plan_train_input;

/* What a run keeps for backward besides its blocks. */
typedef struct tn__plan_train_saves {
    int64_t *inputs, *outputs; /* numbers of the inputs and outputs that the history has saved */
    tn_tensor **tensors;       /* saved tensors of the module and from outside of it; owned */
    int64_t n_inputs, n_outputs, n_tensors;
} tn__plan_train_saves;

static inline int64_t tn__plan_train_saved(const tn__plan_train_saves *saves)
{
    return saves->n_inputs + saves->n_outputs + saves->n_tensors;
}

/* A plan for the calls with some inputs, in one state of the module. */
typedef struct tn__plan_train {
    _Atomic int32_t refs;
    /* Called at the end of the recording of backward, while the gradients are in .grad of the
     * tensors of the module; may be NULL. */
    tn_status (*after)(void *user);
    void *user;
    struct tn__plan_train *next;
    pthread_mutex_t lock; /* for `backwards` and the states of bindings */
    pthread_mutex_t recording;
    tn_pack *form; /* of the inputs */
    tn__plan_train_input *inputs;
    int64_t n_in;
    bool grad; /* whether gradients are recorded */
    char *why; /* owned; not NULL: these calls run eagerly, for this reason */
    tn__plan_parts parts;
    tn__plan_parts *others; /* of modules from outside that forward calls */
    int64_t n_others;
    tn__plan_binding *forward;
    tn_pack *output;  /* the results of the recording, which have the history; its form is that of
                         the results */
    tn_tensor **outs; /* the tensors of `output` */
    bool *wants;      /* which elements of `outs` require gradients */
    int64_t n_out, n_wants, n_fresh;
    tn_tensor **sources; /* tensors of the module whose gradients backward computes; not owned */
    int64_t n_sources;
    int64_t *source_inputs; /* numbers of the inputs whose gradients backward computes, after those
                               of `sources` */
    int64_t n_source_inputs;
    /* The blocks that stay for backward. saved_roots[i]: the root that has the memory; saved_by[i]:
     * the root that backward uses, which may be another root in the same memory. */
    int32_t *saved_roots, *saved_by;
    int64_t n_saved_roots;
    tn__plan_train_saves saves;
    uint64_t blocks; /* number of blocks of random numbers that a run draws */
    tn__plan_binding
        *backwards; /* by the outputs with gradients and their layouts, last used first */
} tn__plan_train;

/* ---- train_record.c ---- */
/* Records a call. The inputs are those of the pack, in order. If the call works only eagerly, the
 * plan has the reason, and no more. `after` may be NULL. */
tn__plan_train *tn__plan_train_record(tn_module *module, const tn_pack *input, tn_tensor *const *in,
                                      int64_t n_in, tn_status (*after)(void *user), void *user);
void tn__plan_train_drop(tn__plan_train *train);

/* ---- train_saved.c ---- */
/* Adds to `saved` the storages that the history of the outputs has saved. */
tn_status tn__plan_train_note_saved(const tn__plan_train *train, const tn__plan_recorder *recorder,
                                    tn__map *saved);
/* Sets `saves` and `saved_by`: what a run keeps of the storages in `saved`. `memory` has those of
 * the module's tensors. */
tn_status tn__plan_train_list_saved(tn__plan_train *train, const tn__map *memory,
                                    const tn__map *saved);

/* ---- check.c ---- */
/* After the scope of a recording has ended. *escapes: whether code of the program still holds
 * values that forward has made. No run of the plan would set these. */
tn_status tn__plan_escapes(const tn__plan_train *train, bool *escapes);

/* ---- train.c ---- */
/* Whether the plan is for these inputs. */
bool tn__plan_train_fits(const tn__plan_train *train, const tn_pack *input, tn_tensor *const *in,
                         int64_t n_in);
/* Whether the module, and what forward uses besides it, are as they were. */
bool tn__plan_train_holds(const tn__plan_train *train, tn_module *module);
/* Runs a plan: adds its results to `output`. */
tn_status tn__plan_train_call(tn__plan_train *train, tn_tensor *const *in, tn_pack *output);
/* tn__plan_train_take() returns an unused state of a binding for the current stream, or a new one;
 * tn__plan_train_give() returns it to the binding. */
tn__plan_state *tn__plan_train_take(tn__plan_train *train, tn__plan_binding *b);
void tn__plan_train_give(tn__plan_train *train, tn__plan_binding *b, tn__plan_state *state);

/* ---- print.c ---- */
void tn__plan_print_training(tn__text *text, const tn__plan_train *train, bool steps);

/* ---- backward.c ---- */
/* Returns the binding for these gradients of the outputs (TN_NONE: none), with a reference. Its
 * `needs` says which of the saved tensors it uses. */
tn__plan_binding *tn__plan_backward(tn__plan_train *train, tn_tensor *const *gradients);

#endif

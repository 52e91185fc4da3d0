/* SPDX-License-Identifier: MIT
 *
 * Structs that the files of this folder share. */
#ifndef TN_LIB_TRAIN_PRIVATE_H
#define TN_LIB_TRAIN_PRIVATE_H

#include "core/hook/internal.h"
#include "core/tensor/boundary.h"
#include "lib/train/internal.h"

typedef struct tn__param_state {
    char *name;
    tn_tensor *tensor;
} tn__param_state;

typedef struct tn__param {
    tn_tensor *tensor;
    char *name; /* NULL: none */
    int64_t group;
    int64_t steps;
    tn__param_state *states; /* in the order in which they were set */
    int64_t count, capacity;
} tn__param;

/* A group of parameters that share options. */
typedef struct tn__group {
    void *data;
    tn__option_block *option_block;
    double initial_rate; /* the learning rate that the first scheduler found; NAN before */
    double put_rate;     /* the one that a scheduler set last, unchecked; 0 before */
} tn__group;

/* The kinds of hooks of optimizers. */
typedef enum tn__step_kind {
    TN__STEP_PRE,
    TN__STEP_POST,
    TN__STEP_STATE_PRE,
    TN__STEP_STATE,
    TN__STEP_LOAD_PRE,
    TN__STEP_LOAD
} tn__step_kind;

/* Where the names of the parameters come from. */
typedef enum tn__naming {
    TN__NAMES_NONE,  /* the program gave none */
    TN__NAMES_GIVEN, /* the program gave one for each parameter */
    TN__NAMES_MODULE /* those of a module; groups that are added later may have names or none */
} tn__naming;

struct tn_optimizer {
    _Atomic int32_t refs; /* one reference of the program, one of each scheduler and tn_step */
    const tn_optimizer_def *def;
    struct tn__plugin *plugin;
    char *defaults; /* the options of its spec as text: all of them, with their names */
    tn__group *groups;
    int64_t n_groups, groups_capacity;
    tn__param *params;
    int64_t count, params_capacity;
    tn__naming naming;
    tn__hooks hooks;
};

/* Returns the parameter with that index; NULL and sets the error if the index is out of range. */
tn__param *tn__optimizer_param(const tn_optimizer *optimizer, int64_t index);
/* Appends a group. Its options are those of `spec` or, if `spec` is NULL, the optimizer's defaults,
 * changed by the options in `text` (NULL: unchanged). */
tn_status tn__optimizer_group_new(tn_optimizer *optimizer, const tn__spec *spec, const char *text);
void tn__optimizer_group_clear(tn__group *group);
/* Sets the learning rate of a group without asking the rule, as schedulers do: PyTorch's may go
 * below 0. */
tn_status tn__optimizer_put_rate(tn_optimizer *optimizer, tn__group *group, double rate);
/* Makes a group with the options that are given as values with names, and those of group `group`
 * for the others. The caller clears it. */
tn_status tn__optimizer_group_from(tn_optimizer *optimizer, int64_t group, const tn_value *values,
                                   const char *const *names, int64_t count, tn__group *out);
/* Replaces the options of a group by those of `with`, and its initial rate if `with` has one.
 * Clears `with`. */
void tn__optimizer_group_take(tn_optimizer *optimizer, int64_t group, tn__group *with);
/* Stores a state tensor of a parameter: adds a reference, or replaces the tensor of that name. */
tn_status tn__optimizer_state_store(tn__param *param, const char *name, tn_tensor *tensor);
/* Frees the state tensors of a parameter. */
void tn__optimizer_state_clear(tn__param *param);

/* Runs the hooks of one kind; for those that get a state also `state` and `prefix`. */
tn_status tn__step_hooks_run(tn_optimizer *optimizer, tn__step_kind kind, tn_state *state,
                             const char *prefix);
/* Whether hooks of this kind would run. */
bool tn__step_hooks_any(const tn_optimizer *optimizer, tn__step_kind kind);

#endif

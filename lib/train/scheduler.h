/* SPDX-License-Identifier: MIT
 *
 * The scheduler object, for the files that implement it. */
#ifndef TN_LIB_TRAIN_SCHEDULER_H
#define TN_LIB_TRAIN_SCHEDULER_H

#include "lib/train/private.h"

struct tn_scheduler {
    const tn_scheduler_def *def;
    struct tn__plugin *plugin;
    void *data;
    tn__option_block *option_block;
    void *state; /* the state of the plugin's rule */
    tn__option_block *state_block;
    tn_optimizer *optimizer; /* the scheduler holds a reference */
    tn_schedule_function function;
    void *function_user;
    int64_t steps;
    int64_t n_groups; /* number of elements of `initial` and `last` */
    double *initial;  /* the rate from which each group started */
    double *last;     /* the rate that the last step gave each group */
    tn_scheduler *parent;
    tn_scheduler **children; /* owned */
    int64_t n_children, children_capacity;
    int depth;
    bool warned; /* the warning about the order of the steps was written */
    struct {
        void *state; /* as large as the state */
        double *last;
        int64_t steps;
    } mark; /* restored if a step fails: by the outermost scheduler, for all inside it */
};

/* Creates a scheduler. `parent` (NULL: none) will own it. */
tn_scheduler *tn__scheduler_new(tn_optimizer *optimizer, const tn__spec *spec, tn_scheduler *parent,
                                tn_schedule_function function, void *user);
/* Allocates memory for the rates of `count` groups. */
tn_status tn__scheduler_room(tn_scheduler *scheduler, int64_t count);
/* tn__scheduler_mark remembers the step and the state of a scheduler and of those inside it;
 * tn__scheduler_reset restores them. */
void tn__scheduler_mark(tn_scheduler *scheduler);
void tn__scheduler_reset(tn_scheduler *scheduler);
/* Calls the rule for a step and sets the rates. `flags` are TN_SCHEDULE_*. */
tn_status tn__scheduler_apply(tn_scheduler *scheduler, int64_t step, double metric, uint32_t flags);

#endif

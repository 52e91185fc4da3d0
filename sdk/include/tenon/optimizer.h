/* SPDX-License-Identifier: MIT
 *
 * The descriptors of the rule of an optimizer and of a learning-rate scheduler.
 *
 * <tenon/contrib.h> says what holds for all descriptors. Tags in brackets: see base.h. */
#ifndef TENON_OPTIMIZER_H
#define TENON_OPTIMIZER_H

#include <tenon/train.h>

TN_BEGIN_DECLS

/* The arguments of an optimizer step: the parameters of one group that have a gradient; with
 * TN_OPTIMIZER_CLOSURE all parameters of the group. The step changes the parameters in place and
 * only reads the gradients. */
typedef struct tn_step_args {
    tn_head head;
    const void *options; /* option struct of the group */
    int64_t group;
    int64_t count;
    const int64_t *index; /* parameters[i] is the parameter with this index in the optimizer */
    tn_tensor *const *parameters;
    /* With TN_OPTIMIZER_CLOSURE an element is NULL while the parameter has no gradient, and every
     * call of `closure` updates the elements. */
    tn_tensor *const *gradients;
    /* Set only for rules with TN_OPTIMIZER_CLOSURE; NULL for all others, for which the core itself
     * calls the program's closure before the step. Evaluates the loss with recording on, and
     * computes new gradients. Returns the loss, which the scope of the step owns; NULL after
     * recording a failure. To be called with `closure_user`, any number of times. */
    tn_tensor *(*closure)(void *user);
    void *closure_user;
} tn_step_args;

enum {
    /* Each element is updated independently of the others, so `step` may be called with slices of
     * parameters, gradients and states. */
    TN_OPTIMIZER_ELEMENTWISE = 1,
    /* The rule evaluates the loss itself, with the closure of tn_step_args: a step without closure
     * fails. `step` is called even if no parameter has a gradient, for all parameters. */
    TN_OPTIMIZER_CLOSURE = 2,
    /* The rule accepts only parameters with two dimensions; a step fails if a parameter has another
     * number of dimensions. */
    TN_OPTIMIZER_MATRICES = 4
};

/* The update rule of an optimizer. Any thread may call its functions, but only one thread at a time
 * for an optimizer. */
typedef struct tn_optimizer_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* for the plugin; tn_optimizer_user returns it */
    /* Two names have a meaning for the core: `lr`, a float, is the learning rate, which schedulers
     * set, and may then be below 0 without a call of `check`. `capturable`, a bool, is true if the
     * rule keeps the number of the step and the learning rate on the device of the parameters: only
     * such a step can be recorded (tn_stream_capture_begin). */
    const tn_option *options;
    uint64_t data_size; /* size of the option struct of a group */
    uint64_t flags;     /* TN_OPTIMIZER_* */
    /* Fails if an option of a group has a value that is not accepted. May be NULL. */
    tn_status (*check)(tn_optimizer *self, const void *options);
    /* Updates the parameters of one group. Called once for each group, without recording, in a
     * scope of its own. tn_optimizer_steps of a parameter already counts this step, so it is 1 in
     * the first step. If the function fails, some parameters may already have changed. */
    tn_status (*step)(tn_optimizer *self, const tn_step_args *args);
} tn_optimizer_def;

enum {
    /* Step 0: the scheduler was created, or another scheduler restarts it (RESTART). `rates` has
     * the initial rates, as changed by the other schedulers of the optimizer. */
    TN_SCHEDULE_INITIAL = 1,
    /* The step does not follow the last one; the rates are computed from those at the start. */
    TN_SCHEDULE_JUMP = 2,
    TN_SCHEDULE_RESTART = 4, /* tn_scheduler_restart called it; INITIAL or JUMP is set as well */
    TN_SCHEDULE_FIRST = 8    /* with INITIAL: the optimizer had no scheduler before */
};

/* The arguments of a scheduler, which changes the learning rates of the groups. It sets other
 * options with tn_optimizer_set. */
typedef struct tn_schedule_args {
    tn_head head;
    tn_optimizer *optimizer;
    int64_t step; /* the number of steps including this one; 0 when the scheduler is created */
    int64_t groups;
    double *initial; /* the initial learning rate of each group; may be changed in step 0 */
    double *rates;   /* the current learning rates, to be changed */
    double metric;   /* the argument of tn_scheduler_step_with; NaN for tn_scheduler_step */
    /* The function of tn_scheduler_lambda and its argument; NULL without one. */
    double (*function)(void *user, int64_t group, int64_t step);
    void *function_user;
    uint32_t flags; /* TN_SCHEDULE_* */
    uint32_t reserved;
} tn_schedule_args;

enum {
    /* The scheduler needs a metric, so tn_scheduler_step and other schedulers cannot step it. */
    TN_SCHEDULER_METRIC = 1
};

/* A learning-rate scheduler. Any thread may call its functions, but only one thread at a time for a
 * scheduler. */
typedef struct tn_scheduler_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* for the plugin; tn_scheduler_user returns it */
    const tn_option *options;
    uint64_t data_size;
    tn_status (*check)(tn_scheduler *self);
    tn_status (*step)(tn_scheduler *self, tn_schedule_args *args);
    /* An option table, with defaults, for the struct of `state_size` bytes that the scheduler keeps
     * between steps (tn_scheduler_state). The core saves and loads this struct, and restores it if
     * a step fails. */
    const tn_option *state;
    uint64_t state_size;
    uint64_t flags; /* TN_SCHEDULER_* */
} tn_scheduler_def;

TN_END_DECLS

#endif

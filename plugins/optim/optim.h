/* SPDX-License-Identifier: MIT
 *
 * The optimizers and schedules of this plugin, for the list in plugin.c, and helpers for
 * optimizers. */
#ifndef TN_OPTIM_OPTIM_H
#define TN_OPTIM_OPTIM_H

#include <tenon/plugin.h>

/* sgd.c */
TN_HIDDEN extern const tn_optimizer_def optim_sgd;
/* adam.c */
TN_HIDDEN extern const tn_optimizer_def optim_adam, optim_adamw;
/* schedule.c */
TN_HIDDEN extern const tn_scheduler_def schedule_step, schedule_multi_step, schedule_constant,
    schedule_linear, schedule_exponential, schedule_polynomial, schedule_lambda,
    schedule_multiplicative;
/* schedule_cosine.c */
TN_HIDDEN extern const tn_scheduler_def schedule_cosine, schedule_restarts, schedule_swa;
/* schedule_cycle.c */
TN_HIDDEN extern const tn_scheduler_def schedule_cyclic, schedule_one_cycle;
/* schedule_plateau.c */
TN_HIDDEN extern const tn_scheduler_def schedule_plateau;
/* schedule_compose.c */
TN_HIDDEN extern const tn_scheduler_def schedule_sequential, schedule_chained;

/* numbers.c: the step number and the learning rate as tensors */

/* The learning rate that was last written to the tensors of a group. Must be the last member of an
 * optimizer's option struct; when options are changed by text, it is zeroed. */
struct optim_rate {
    bool written;
    double value;
};
/* The option `capturable` of an optimizer. */
#define OPTIM_CAPTURABLE(struct_)                                                                  \
    TN_OPTION_ROW(struct_, capturable, "False",                                                    \
                  "keeps the step and the learning rate in tensors of the device, for graphs",     \
                  TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD)

/* Parameters that are stepped in one call. args->index[members[i]] is the index of member i in the
 * optimizer. */
struct optim_batch {
    tn_optimizer *self;
    const tn_step_args *args;
    const int64_t *members;
    int64_t count;
    int64_t steps; /* number of steps of each member, including this step */
};
/* Return the 0-d tensors of a batch: the number of the step, already incremented, and the learning
 * rate. They belong to the current scope. Return NULL and set the error on failure. */
TN_HIDDEN tn_tensor *optim_step_number(const struct optim_batch *batch);
TN_HIDDEN tn_tensor *optim_rate(const struct optim_batch *batch, double rate);
/* Writes the learning rate to the tensors of a group if it has changed. */
TN_HIDDEN tn_status optim_rate_changed(tn_optimizer *self, int64_t group, double rate,
                                       struct optim_rate *held);
/* Writes the number of the step to step tensors that exist, for steps that are not capturable. */
TN_HIDDEN tn_status optim_step_number_set(const struct optim_batch *batch);

/* groups.c */

/* The arguments of one operator call. All its parameters have taken `steps` steps, including this
 * one. `fresh` is true if their first state did not exist before this step. */
struct optim_call {
    const void *options;
    int64_t steps;
    bool fresh;
    tn_tensor *step, *rate; /* capturable: replace `steps` and the option lr; else TN_NONE */
    tn_tensor *const *list; /* first parameter, its gradient, its states; second parameter, ... */
    int64_t n;
};

struct optim_rule {
    const char *const *states; /* names of the states of a parameter, which start as zeros */
    int64_t n_states;
    bool capturable;
    bool counts; /* whether the number of the step is needed */
    double rate; /* the learning rate */
    struct optim_rate *held;
    tn_status (*run)(const struct optim_call *call);
};
TN_HIDDEN tn_status optim_step(tn_optimizer *self, const tn_step_args *args,
                               const struct optim_rule *rule);

#endif

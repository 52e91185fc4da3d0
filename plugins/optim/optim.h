/* SPDX-License-Identifier: MIT
 *
 * The contributions of this plugin, for its table in plugin.c, and what the rules share. */
#ifndef TENON_PLUGIN_OPTIM_H
#define TENON_PLUGIN_OPTIM_H

#include <tenon/plugin.h>

/* sgd.c */
TN_HIDDEN extern const tn_optimizer_def optim_sgd;
/* adam.c */
TN_HIDDEN extern const tn_optimizer_def optim_adam, optim_adamw;
/* schedule.c */
TN_HIDDEN extern const tn_scheduler_def schedule_step, schedule_cosine, schedule_linear,
    schedule_exponential;

/* numbers.c: numbers of a step that are tensors */

/* The learning rate that the tensors of a group hold, once it is written. The last member of the
 * struct of a rule; a change of options by text zeroes it. */
struct optim_rate {
    bool written;
    double value;
};
/* A member `capturable` of a rule's struct. */
#define OPTIM_CAPTURABLE(struct_)                                                                  \
    TN_OPTION_ROW(struct_, capturable, "False",                                                    \
                  "keeps the step and the learning rate in tensors of the device, for graphs",     \
                  TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD)

/* Parameters that go together: args->index[members[i]] is their place in the optimizer. */
struct optim_batch {
    tn_optimizer *self;
    const tn_step_args *args;
    const int64_t *members;
    int64_t count;
    int64_t steps; /* that each has taken, this one included */
};
/* The 0-d tensors of a batch, the number of the step already increased; of the scope. NULL and an
 * error on failure. */
TN_HIDDEN tn_tensor *optim_step_number(const struct optim_batch *batch);
TN_HIDDEN tn_tensor *optim_rate(const struct optim_batch *batch, double rate);
/* Writes a learning rate that has changed into the tensors of a group. */
TN_HIDDEN tn_status optim_rate_changed(tn_optimizer *self, int64_t group, double rate,
                                       struct optim_rate *held);
/* Where they are not used, for now: the number of the step stays true. */
TN_HIDDEN tn_status optim_step_number_set(const struct optim_batch *batch);

/* groups.c */

/* A call for parameters that have all taken `steps` steps, this one included, and whose first
 * state was there before or, `fresh`, was not. */
struct optim_call {
    const void *options;
    int64_t steps;
    bool fresh;
    tn_tensor *step, *rate; /* capturable: in place of `steps` and of the option; else TN_NONE */
    tn_tensor *const *list; /* the parameter, its gradient, its states, then the next one's */
    int64_t n;
};

struct optim_rule {
    const char *const *states; /* names of what is kept for a parameter, zeros at first */
    int64_t n_states;
    bool capturable;
    bool counts; /* the number of the step is needed */
    double rate; /* the learning rate */
    struct optim_rate *held;
    tn_status (*run)(const struct optim_call *call);
};
TN_HIDDEN tn_status optim_step(tn_optimizer *self, const tn_step_args *args,
                               const struct optim_rule *rule);

#endif

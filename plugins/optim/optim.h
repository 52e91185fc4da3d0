/* SPDX-License-Identifier: MIT
 *
 * The optimizers and schedulers of this plugin, for the list in plugin.c, and helpers for
 * optimizers. */
#ifndef TN_OPTIM_OPTIM_H
#define TN_OPTIM_OPTIM_H

#include <tenon/plugin.h>

#include <tenon/average.h>

/* adam.c */
TN_HIDDEN extern const tn_optimizer_def optim_adam, optim_adamw;
/* Each in the file of its name. */
TN_HIDDEN extern const tn_optimizer_def optim_adadelta, optim_adafactor, optim_adagrad,
    optim_adamax, optim_asgd, optim_lbfgs, optim_lion, optim_muon, optim_nadam, optim_radam,
    optim_rmsprop, optim_rprop, optim_sgd;
/* scheduler.c */
TN_HIDDEN extern const tn_scheduler_def scheduler_step, scheduler_multi_step, scheduler_constant,
    scheduler_linear, scheduler_exponential, scheduler_polynomial, scheduler_lambda,
    scheduler_multiplicative;
/* scheduler_cosine.c */
TN_HIDDEN extern const tn_scheduler_def scheduler_cosine, scheduler_restarts, scheduler_swa;
/* scheduler_cycle.c */
TN_HIDDEN extern const tn_scheduler_def scheduler_cyclic, scheduler_one_cycle;
/* scheduler_plateau.c */
TN_HIDDEN extern const tn_scheduler_def scheduler_plateau;
/* scheduler_compose.c */
TN_HIDDEN extern const tn_scheduler_def scheduler_sequential, scheduler_chained;

/* averaging.c: the interface tenon.optim.average */
TN_HIDDEN extern const tn_average_api optim_average;

/* options.c: checks of options, with PyTorch's wording */

/* Fails unless `value` is `least` or more; the message begins with `words` ("Invalid learning
 * rate"). */
TN_HIDDEN tn_status optim_check_least(tn_optimizer *self, const char *words, double value,
                                      int64_t least);
/* Checks an option with two numbers in [0, 1). */
TN_HIDDEN tn_status optim_check_betas(tn_optimizer *self, const tn_floats *betas);
/* Fails unless the option `name` has `count` numbers. */
TN_HIDDEN tn_status optim_check_count(tn_optimizer *self, const char *name, const tn_floats *list,
                                      int64_t count);
/* Fails if a parameter of the step is complex. */
TN_HIDDEN tn_status optim_check_real(tn_optimizer *self, const tn_step_args *args);
/* Checks lr, eps and weight_decay, which must not be negative. */
TN_HIDDEN tn_status optim_check_common(tn_optimizer *self, double lr, double eps,
                                       double weight_decay);

/* Checks the options that Adam and its variants share. */
TN_HIDDEN tn_status optim_check_adam(tn_optimizer *self, double lr, const tn_floats *betas,
                                     double eps, double weight_decay);

/* numbers.c: the step number and the learning rate as tensors */

/* The learning rate that was last written to the tensors of a group. Must be the last member of an
 * optimizer's option struct; when options are changed by text, it is zeroed. */
struct optim_rate {
    bool written;
    double value;
};
/* The option `capturable` of an optimizer. */
#define OPTIM_CAPTURABLE_HELP                                                                      \
    "keeps the step and the learning rate in tensors of the device, for graphs"
#define OPTIM_CAPTURABLE(struct_)                                                                  \
    TN_OPTION_ROW(struct_, capturable, "False", OPTIM_CAPTURABLE_HELP, TN_OPTION_KIND_BOOL,        \
                  TN_OPTION_KEYWORD)

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
/* Returns the dtype of the numbers for a parameter: float64 only if it has doubles, because a
 * device may lack float64, else float32. */
TN_HIDDEN tn_dtype optim_number_type(const tn_tensor *parameter);
/* Returns the 0-d state `name` that all members of a batch share, `start` if it is new. */
TN_HIDDEN tn_tensor *optim_number(const struct optim_batch *batch, const char *name, double start);
/* Returns whether two parameters of the optimizer have the same tensor, or tensors of the same
 * value, as their 0-d state `name`, or both none. */
TN_HIDDEN bool optim_number_same(tn_optimizer *self, int64_t a, int64_t b, const char *name);
/* Writes the learning rate to the tensors of a group if it has changed. */
TN_HIDDEN tn_status optim_rate_changed(tn_optimizer *self, int64_t group, double rate,
                                       struct optim_rate *held);
/* Writes the number of the step to step tensors that exist, for steps that are not capturable. */
TN_HIDDEN tn_status optim_step_number_set(const struct optim_batch *batch);

/* groups.c */

/* Returns the view of a complex tensor as a real one; a real tensor itself. Returns NULL for NULL.
 */
TN_HIDDEN tn_tensor *optim_real(tn_tensor *tensor);

enum { OPTIM_NUMBERS = 2 };

/* A 0-d state that the parameters of a call share. */
struct optim_number {
    const char *name;
    double start;
};

/* The arguments of one operator call. All its parameters have taken `steps` steps, including this
 * one. `fresh` is true if their first state did not exist before this step. */
struct optim_call {
    const void *options;
    int64_t steps;
    bool fresh;
    tn_tensor *step, *rate; /* capturable: replace `steps` and the option lr; else TN_NONE */
    tn_tensor *number[OPTIM_NUMBERS]; /* those of the rule */
    tn_tensor *const *list; /* first parameter, its gradient, its states; second parameter, ... */
    int64_t n;
};

struct optim_rule {
    const char *const *states; /* names of the states of a parameter */
    int64_t n_states;
    const double *starts; /* what each state is filled with; NULL: zeros */
    const struct optim_number *numbers;
    int64_t n_numbers;
    bool capturable;
    bool counts; /* whether the number of the step is needed */
    double rate; /* the learning rate */
    struct optim_rate *held;
    tn_status (*run)(const struct optim_call *call);
};
TN_HIDDEN tn_status optim_step(tn_optimizer *self, const tn_step_args *args,
                               const struct optim_rule *rule);

#endif

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

/* groups.c */
struct optim_rule {
    const char *const *states; /* names of what is kept for a parameter, zeros at first */
    int64_t n_states;
    /* A call for parameters that have all taken `steps` steps, this one included, and whose first
     * state was there before or, `fresh`, was not: the parameter, its gradient, its states, then
     * the next one's. */
    tn_status (*run)(const void *options, int64_t steps, bool fresh, tn_tensor *const *list,
                     int64_t n);
};
TN_HIDDEN tn_status optim_step(tn_optimizer *self, const tn_step_args *args,
                               const struct optim_rule *rule);

#endif

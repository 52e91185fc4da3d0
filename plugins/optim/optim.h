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

/* x = x + alpha * y; NULL passes through. */
static inline tn_tensor *add_scaled(tn_tensor *x, tn_tensor *y, double alpha)
{
    tn_add_options options = TN_ADD_OPTIONS;
    options.alpha = alpha;
    return tn_add_(x, y, &options);
}

/* g = (maximize ? -gradient : gradient) + weight_decay * parameter */
static inline tn_tensor *effective_gradient(tn_tensor *gradient, tn_tensor *parameter,
                                            bool maximize, double weight_decay)
{
    if (maximize)
        gradient = tn_neg(gradient);
    if (weight_decay == 0.0)
        return gradient;
    tn_add_options options = TN_ADD_OPTIONS;
    options.alpha = weight_decay;
    return tn_add(gradient, parameter, &options);
}

static inline tn_status status_of(const tn_tensor *result)
{
    return result != NULL ? TN_OK : tn_error_last()->code;
}

/* State `name` of a parameter, made of zeros at first. */
static inline tn_tensor *state_of(tn_optimizer *self, int64_t index, const char *name,
                                  tn_tensor *parameter)
{
    tn_tensor *state = tn_optimizer_state(self, index, name);
    if (state != NULL)
        return state;
    state = tn_tensor_full(tn_tensor_shape(parameter), 0.0, tn_tensor_dtype(parameter),
                           tn_tensor_device(parameter));
    if (state == NULL || tn_optimizer_set_state(self, index, name, state) != TN_OK)
        return NULL;
    return state;
}

#endif

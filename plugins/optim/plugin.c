/* SPDX-License-Identifier: MIT
 *
 * The plugin with optimizers and learning-rate schedules. */
#include "optim.h"

static const void *const contributions[] = {
    &optim_adadelta,       &optim_adafactor,     &optim_adagrad,
    &optim_adam,           &optim_adamax,        &optim_adamw,
    &optim_asgd,           &optim_lbfgs,         &optim_lion,
    &optim_muon,           &optim_nadam,         &optim_radam,
    &optim_rmsprop,        &optim_rprop,         &optim_sgd,
    &schedule_step,        &schedule_cosine,     &schedule_linear,
    &schedule_exponential, &schedule_multi_step, &schedule_constant,
    &schedule_polynomial,  &schedule_lambda,     &schedule_multiplicative,
    &schedule_restarts,    &schedule_swa,        &schedule_cyclic,
    &schedule_one_cycle,   &schedule_plateau,    &schedule_sequential,
    &schedule_chained,
};

static const tn_plugin optim = {
    TN_HEAD(tn_plugin),
    .id = "tenon.optim",
    .version = "0.1.0",
    .help = "optimizers and learning-rate schedules",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
};

TN_PLUGIN_EXPORT(optim);

/* SPDX-License-Identifier: MIT
 *
 * The plugin with optimizers and learning-rate schedulers. */
#include "optim.h"

static const void *const contributions[] = {
    &optim_adadelta,
    &optim_adafactor,
    &optim_adagrad,
    &optim_adam,
    &optim_adamax,
    &optim_adamw,
    &optim_asgd,
    &optim_lbfgs,
    &optim_lion,
    &optim_muon,
    &optim_nadam,
    &optim_radam,
    &optim_rmsprop,
    &optim_rprop,
    &optim_sgd,
    &scheduler_step,
    &scheduler_cosine,
    &scheduler_linear,
    &scheduler_exponential,
    &scheduler_multi_step,
    &scheduler_constant,
    &scheduler_polynomial,
    &scheduler_lambda,
    &scheduler_multiplicative,
    &scheduler_restarts,
    &scheduler_swa,
    &scheduler_cyclic,
    &scheduler_one_cycle,
    &scheduler_plateau,
    &scheduler_sequential,
    &scheduler_chained,
};

static const tn_plugin optim = {
    TN_HEAD(tn_plugin),
    .id = "tenon.optim",
    .version = "0.1.0",
    .help = "optimizers and learning-rate schedulers",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
};

TN_PLUGIN_EXPORT(optim);

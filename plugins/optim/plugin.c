/* SPDX-License-Identifier: MIT
 *
 * The plugin with optimizers, learning-rate schedulers and averaged models. */
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

static const tn_interface_row interfaces[] = {
    { "tenon.optim.average", 0, sizeof optim_average, &optim_average, NULL },
    { NULL, 0, 0, NULL, NULL },
};

static const tn_plugin optim = {
    TN_HEAD(tn_plugin),
    .id = "tenon.optim",
    .version = "0.1.0",
    .help = "optimizers, learning-rate schedulers and averaged models",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
    .interfaces = interfaces,
};

TN_PLUGIN_EXPORT(optim);

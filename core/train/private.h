/* SPDX-License-Identifier: MIT
 *
 * What the optimizer and the scheduler share. */
#ifndef TN_CORE_TRAIN_PRIVATE_H
#define TN_CORE_TRAIN_PRIVATE_H

#include "core/module/internal.h"
#include "core/plugin/check_thread.h"

typedef struct tn__param_state {
    char *name;
    tn_tensor *tensor;
} tn__param_state;

typedef struct tn__param {
    tn_tensor *tensor;
    int64_t steps;
    tn__param_state *states; /* in the order in which they were made */
    int64_t count, capacity;
} tn__param;

struct tn_optimizer {
    _Atomic int32_t refs; /* the program's, and one of each scheduler */
    const tn_optimizer_def *def;
    struct tn__plugin *plugin;
    void *data;
    tn__keep *keep;
    tn__param *params;
    int64_t count;
    double initial_rate; /* what the first scheduler found; NAN before */
};

tn_optimizer *tn__optimizer_keep(tn_optimizer *optimizer);

#endif

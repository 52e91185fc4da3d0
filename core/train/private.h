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
    int64_t group;
    int64_t steps;
    tn__param_state *states; /* in the order in which they were made */
    int64_t count, capacity;
} tn__param;

/* Parameters that share options. */
typedef struct tn__group {
    void *data;
    tn__keep *keep;
    double initial_rate; /* what the first scheduler found; NAN before */
} tn__group;

struct tn_optimizer {
    _Atomic int32_t refs; /* the program's, and one of each scheduler */
    const tn_optimizer_def *def;
    struct tn__plugin *plugin;
    char *defaults; /* the options of its spec, all of them with their names */
    tn__group *groups;
    int64_t n_groups, groups_capacity;
    tn__param *params;
    int64_t count, params_capacity;
};

tn_optimizer *tn__optimizer_keep(tn_optimizer *optimizer);
/* The parameter of a number; NULL and an error. */
tn__param *tn__optimizer_param(const tn_optimizer *optimizer, int64_t index);
/* A group with the options of `spec` where the caller has one, else of the defaults changed by
 * `text` (NULL: not changed); adds it at the end. */
tn_status tn__optimizer_group_new(tn_optimizer *optimizer, const tn__spec *spec, const char *text);
void tn__optimizer_group_clear(tn__group *group);

#endif

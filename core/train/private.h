/* SPDX-License-Identifier: MIT
 *
 * Structs that the optimizer and the scheduler share. */
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
    tn__param_state *states; /* in the order in which they were set */
    int64_t count, capacity;
} tn__param;

/* A group of parameters that share options. */
typedef struct tn__group {
    void *data;
    tn__keep *keep;
    double initial_rate; /* the learning rate that the first scheduler found; NAN before */
} tn__group;

struct tn_optimizer {
    _Atomic int32_t refs; /* one reference of the program and one of each scheduler */
    const tn_optimizer_def *def;
    struct tn__plugin *plugin;
    char *defaults; /* the options of its spec as text: all of them, with their names */
    tn__group *groups;
    int64_t n_groups, groups_capacity;
    tn__param *params;
    int64_t count, params_capacity;
};

tn_optimizer *tn__optimizer_keep(tn_optimizer *optimizer);
/* Returns the parameter with that index; NULL and sets the error if the index is out of range. */
tn__param *tn__optimizer_param(const tn_optimizer *optimizer, int64_t index);
/* Appends a group. Its options are those of `spec` or, if `spec` is NULL, the optimizer's defaults,
 * changed by the options in `text` (NULL: unchanged). */
tn_status tn__optimizer_group_new(tn_optimizer *optimizer, const tn__spec *spec, const char *text);
void tn__optimizer_group_clear(tn__group *group);

#endif

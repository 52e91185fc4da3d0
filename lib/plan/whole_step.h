/* SPDX-License-Identifier: MIT
 *
 * Plans of whole steps: forward, loss, backward and the updates of an optimizer in one binding with
 * one slab. */
#ifndef TN_LIB_PLAN_WHOLE_STEP_H
#define TN_LIB_PLAN_WHOLE_STEP_H

#include "lib/plan/train.h"

/* A plan of whole steps for some inputs. */
typedef struct tn__whole {
    struct tn__whole *next;
    tn__plan_train *train;      /* the recording of forward, with its guards */
    tn__plan_binding *backward; /* the recording of backward */
    tn__plan_binding *steps; /* both, and the updates: its last input is the gradient of the loss */
    tn_tensor *one;          /* that gradient; owned */
    int64_t n_out;           /* the results that a run returns; the first is the loss */
    tn_tensor **parameters;  /* those that the optimizer had */
    int64_t n_parameters;
} tn__whole;

/* ---- whole_step_merge.c ---- */
/* Makes plan->steps from the two recordings. */
tn_status tn__plan_whole_step_merge(tn__whole *plan, tn_optimizer *optimizer);

#endif

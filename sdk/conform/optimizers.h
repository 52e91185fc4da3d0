/* SPDX-License-Identifier: MIT
 *
 * Declarations shared by the checks of optimizers. */
#ifndef TN_CONFORM_OPTIMIZERS_H
#define TN_CONFORM_OPTIMIZERS_H

#include "conform.h"

/* The optimizer under test and the spec that builds it. */
typedef struct conform_rule {
    conform *c;
    const char *spec;
} conform_rule;

/* Reports a failure of the test; the message begins with the spec. Returns false. */
bool conform_rule_fail(const conform_rule *r, const char *format, ...)
    TN_ATTR(format(printf, 2, 3));
/* Checks what every optimizer must fulfil (optimizers.c). */
bool conform_rule_check(const conform_rule *r);
/* Checks groups with options of their own, and gradients of zeros (optimizers_groups.c). */
bool conform_rule_groups(const conform_rule *r);
/* Returns the parameters and states after a few steps. Returns NULL if the device does not have the
 * dtype and, after reporting the failure, if a step fails. */
tn_state *conform_rule_after(const conform_rule *r, tn_dtype dtype);
/* Tries another value of each option that the spec sets to a value other than its default. */
void conform_rule_try_options(const conform_rule *r);
/* Reports options that had no effect in any case. */
void conform_rule_judge_options(conform *c);

#endif

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

#endif

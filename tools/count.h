/* SPDX-License-Identifier: MIT
 *
 * Counts the multiply-adds of the operators that run, with an observer. */
#ifndef TN_TOOLS_COUNT_H
#define TN_TOOLS_COUNT_H

#include "tool.h"

enum { COUNT_NAMES = 400 };

typedef struct op_count {
    int64_t macs;                   /* multiply-adds of all operators so far */
    const char *names[COUNT_NAMES]; /* operators that ran but are not counted */
    int64_t calls[COUNT_NAMES];     /* the number of calls of each */
    int64_t name_count;
    /* the remaining members are private to count.c */
    int64_t depth, counted_at, closed_at, factor, before;
    bool of_output;
} op_count;

/* Counts in `count` from now on, until the process ends. Only one count can be active. */
tn_status count_operators(op_count *count);

#endif

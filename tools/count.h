/* SPDX-License-Identifier: MIT
 *
 * Multiply-adds of the operators that run, counted by an observer. */
#ifndef TENON_TOOL_COUNT_H
#define TENON_TOOL_COUNT_H

#include "tool.h"

enum { COUNT_NAMES = 400 };

typedef struct op_count {
    int64_t macs;                   /* multiply-adds of all operators so far */
    const char *names[COUNT_NAMES]; /* of operators that computed and are not counted */
    int64_t calls[COUNT_NAMES];
    int64_t name_count;
    /* the rest is count.c's */
    int64_t depth, counted_at, closed_at, factor, before;
    bool of_output;
} op_count;

/* Counts in `count` from now on, until the process ends. One count at a time. */
tn_status count_operators(op_count *count);

#endif

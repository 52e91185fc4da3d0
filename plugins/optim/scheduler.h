/* SPDX-License-Identifier: MIT
 *
 * Helpers for schedulers. */
#ifndef TN_OPTIM_SCHEDULER_H
#define TN_OPTIM_SCHEDULER_H

#include "optim.h"

#define SCHEDULE_PI 3.14159265358979323846

/* Fails unless the option has one number, or one for each group. */
TN_HIDDEN tn_status scheduler_check_groups(const char *option, const tn_floats *row,
                                           int64_t groups);
/* Returns the number of a group. */
TN_HIDDEN double scheduler_of_group(const tn_floats *row, int64_t group);
/* Multiplies the rate of each group by a factor. */
TN_HIDDEN void scheduler_times(tn_schedule_args *args, double factor);
/* Fails unless the word is "cos" or "linear". `by` is a word of the message. */
TN_HIDDEN tn_status scheduler_strategy(const char *word, const char *by);

#endif

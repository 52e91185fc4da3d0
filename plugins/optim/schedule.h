/* SPDX-License-Identifier: MIT
 *
 * Helpers for schedules. */
#ifndef TN_OPTIM_SCHEDULE_H
#define TN_OPTIM_SCHEDULE_H

#include "optim.h"

#define SCHEDULE_PI 3.14159265358979323846

/* Fails unless the option has one number, or one for each group. */
TN_HIDDEN tn_status schedule_check_groups(const char *option, const tn_floats *row, int64_t groups);
/* Returns the number of a group. */
TN_HIDDEN double schedule_of_group(const tn_floats *row, int64_t group);
/* Multiplies the rate of each group by a factor. */
TN_HIDDEN void schedule_times(tn_schedule_args *args, double factor);
/* Fails unless the word is "cos" or "linear". `by` is a word of the message. */
TN_HIDDEN tn_status schedule_strategy(const char *word, const char *by);

#endif

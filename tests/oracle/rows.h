/* SPDX-License-Identifier: MIT
 *
 * Rows of numbers in the files of samples: "2,3", "-" for none; TN_MAX_DIMS of them at most. */
#ifndef TN_TESTS_ORACLE_ROWS_H
#define TN_TESTS_ORACLE_ROWS_H

#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

static inline int64_t read_row(const char *text, int64_t *row)
{
    int64_t count = 0;

    if (strcmp(text, "-") == 0)
        return 0;
    for (char *end; *text != '\0' && count < TN_MAX_DIMS; text = *end == ',' ? end + 1 : end)
        row[count++] = strtoll(text, &end, 10);
    return count;
}

static inline int64_t read_numbers(const char *text, double *row)
{
    int64_t count = 0;

    if (strcmp(text, "-") == 0)
        return 0;
    for (char *end; *text != '\0' && count < TN_MAX_DIMS; text = *end == ',' ? end + 1 : end)
        row[count++] = strtod(text, &end);
    return count;
}

#endif

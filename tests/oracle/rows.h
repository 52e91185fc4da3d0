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

/* A number of the kind that Python prints: 2, 2.0, True, None, 1+2j, 2j. */
static inline tn_scalar read_scalar(const char *text)
{
    char *end;
    double re, im;
    int64_t whole;

    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
        return tn_scalar_bool(*text == 'T');
    if (strcmp(text, "None") == 0)
        return tn_scalar_none();
    if (tn_read_int(text, &whole))
        return tn_scalar_int(whole);
    re = strtod(text, &end);
    if (*end == 'j')
        return tn_scalar_complex(0.0, re);
    if (*end != '+' && *end != '-')
        return tn_scalar_float(re);
    im = strtod(end, NULL);
    return tn_scalar_complex(re, im);
}

#endif

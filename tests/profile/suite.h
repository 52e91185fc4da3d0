/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of the profiler. */
#ifndef TN_TESTS_PROFILE_SUITE_H
#define TN_TESTS_PROFILE_SUITE_H

#include "tests/op/suite.h"
#include "tests/spec/proves.h"

#include <time.h>

#include <tenon/profile.h>

enum { ROWS = 256 };

/* Sleeps for at least this time. */
TN_ATTR(unused) static void nap(int milliseconds)
{
    struct timespec t = { 0, milliseconds * 1000000L };

    while (nanosleep(&t, &t) != 0)
        continue;
}

TN_ATTR(unused) static void ok(tn_status status)
{
    ck_assert_msg(status == TN_OK, "%s", tn_error_text());
}

/* Fails unless the last error has this code and its message contains `words`. */
TN_ATTR(unused) static void refused(tn_status status, tn_status code, const char *words)
{
    ck_assert_int_eq(status, code);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "%s", tn_error_text());
    tn_error_clear();
}

static tn_profile_row found_rows[ROWS];
static int64_t row_count;

TN_ATTR(unused) static void read_rows(tn_profile_group group, tn_profile_sort sort)
{
    row_count = tn_profile_rows(group, sort, found_rows, ROWS);
    ck_assert_int_ge(row_count, 0);
    ck_assert_int_le(row_count, ROWS);
}

/* Returns the row of this name, with these shapes if they are not NULL; NULL if there is none. */
TN_ATTR(unused) static const tn_profile_row *row_of(const char *name, const char *shapes)
{
    for (int64_t i = 0; i < row_count; i++)
        if (strcmp(found_rows[i].name, name) == 0 &&
            (shapes == NULL || strcmp(found_rows[i].shapes, shapes) == 0))
            return &found_rows[i];
    return NULL;
}

TN_ATTR(unused) static const tn_profile_row *row_by(tn_profile_group group, const char *name)
{
    const tn_profile_row *row;

    read_rows(group, TN_PROFILE_SORT_SELF);
    row = row_of(name, NULL);
    ck_assert_msg(row != NULL, "no row %s", name);
    return row;
}

TN_ATTR(unused) static tn_profile_totals totals(void)
{
    tn_profile_totals t;

    ok(tn_profile_totals_get(&t));
    return t;
}

/* Finds the first event with this name from `from` on; returns its index, -1 if there is none. */
TN_ATTR(unused) static int64_t find_event(const char *name, int64_t from, tn_profile_event *out)
{
    for (int64_t count = totals().events; from < count; from++) {
        ok(tn_profile_event_at(from, out));
        if (strcmp(out->name, name) == 0)
            return from;
    }
    return -1;
}

#endif

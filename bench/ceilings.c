/* SPDX-License-Identifier: MIT
 *
 * The limits of the machine: a copy's bandwidth and multiply-adds per second, on all threads of the
 * pool. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenon/tenon.h>

#include <tenon/profile.h>

#include "ops.h"

double bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct copying {
    const char *from;
    char *to;
} copying;

static tn_status copy_part(void *user, int64_t begin, int64_t end)
{
    copying *c = user;

    memcpy(c->to + begin, c->from + begin, (size_t)(end - begin));
    return TN_OK;
}

/* Returns the bytes read and written per second by a copy of this size. */
double bench_copy_rate(int64_t bytes)
{
    copying c = { calloc(1, (size_t)bytes), malloc((size_t)bytes) };
    double best = 1e30;

    if (c.from == NULL || c.to == NULL)
        best = NAN;
    for (int i = 0; i < 30 && best == best; i++) {
        int64_t times = 1 + 1000000 / bytes;
        double start = bench_now();

        for (int64_t k = 0; k < times; k++)
            tn_parallel_for(bytes, 1 << 18, copy_part, &c);
        start = (bench_now() - start) / (double)times;
        best = start < best ? start : best;
    }
    free((void *)(uintptr_t)c.from);
    free(c.to);
    return 2 * (double)bytes / best;
}

/* Returns the rate that the profiler measures for its tables. */
double bench_multiply_rate(void)
{
    uint64_t mark = tn_error_mark();
    tn_profile_totals totals = { .ceiling = 0 };
    tn_status status = tn_profile_start(NULL);

    if (status == TN_OK)
        status = tn_profile_stop();
    if (status == TN_OK &&
        tn_profile_table(TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_SELF, 1, NULL, 0) < 0)
        status = tn_error_last_code();
    if (status == TN_OK)
        status = tn_profile_totals_get(&totals);
    tn_error_restore(mark);
    return status == TN_OK && totals.ceiling > 0 ? totals.ceiling : NAN;
}

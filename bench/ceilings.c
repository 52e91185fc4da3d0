/* SPDX-License-Identifier: MIT
 *
 * The limits of the machine: a copy's bandwidth and multiply-adds a second, on all threads of the
 * pool. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenon/tenon.h>

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

/* Bytes read and written a second, where a tensor of this size is copied. */
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

typedef float lanes __attribute__((vector_size(32)));
typedef float wide_lanes __attribute__((vector_size(64)));
enum { STEPS = 200000, CHAINS = 10 };

static volatile float seed = 0.001f;

#define T lanes
#define NAME(x) x##_plain
#define TARGET
#include "ceilings_template.h"
#ifdef __x86_64__
#define T lanes
#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#include "ceilings_template.h"
#define T wide_lanes
#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f")))
#include "ceilings_template.h"
#endif

/* How many lanes the widest instructions have; 0 for plain C. */
static int widest(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f")                                 ? 16
           : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 8
                                                                             : 0;
#else
    return 0;
#endif
}

static float multiply_all(void)
{
#ifdef __x86_64__
    int lanes_of = widest();

    if (lanes_of > 0)
        return lanes_of == 16 ? multiply_avx512() : multiply_avx2();
#endif
    return multiply_plain();
}

static volatile float sink;

static tn_status multiply_part(void *user, int64_t begin, int64_t end)
{
    (void)user;
    for (; begin < end; begin++)
        sink = multiply_all();
    return TN_OK;
}

double bench_multiply_rate(void)
{
    double best = 1e30;
    int threads = tn_num_threads();

    for (int i = 0; i < 10; i++) {
        double start = bench_now();

        tn_parallel_for(threads, 1, multiply_part, NULL);
        start = bench_now() - start;
        best = start < best ? start : best;
    }
    return 2.0 * (widest() == 16 ? 16 : 8) * CHAINS * STEPS * threads / best;
}

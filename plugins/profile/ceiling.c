/* SPDX-License-Identifier: MIT
 *
 * The ceiling of the machine: multiply-adds in float32 on all threads of the pool. */
#include "profile.h"

typedef float lanes __attribute__((vector_size(32)));
typedef float wide_lanes __attribute__((vector_size(64)));
enum { STEPS = 200000, SUMS = 10, ROUNDS = 10 };

#define T lanes
#define NAME(x) x##_plain
#define TARGET
#include "ceiling_template.h"
#ifdef __x86_64__
#define T lanes
#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#include "ceiling_template.h"
#define T wide_lanes
#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f")))
#include "ceiling_template.h"
#endif

static _Atomic double known;

struct work {
    float (*multiply)(float start, int64_t steps);
    int lanes;
    _Atomic float sink; /* keeps the results, so that the compiler keeps the work */
};

static void choose(struct work *work)
{
    work->multiply = multiply_plain;
    work->lanes = 8;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        work->multiply = multiply_avx2;
    if (__builtin_cpu_supports("avx512f")) {
        work->multiply = multiply_avx512;
        work->lanes = 16;
    }
#endif
}

static tn_status run(void *user, int64_t begin, int64_t end)
{
    struct work *work = user;

    for (; begin < end; begin++)
        atomic_store_explicit(&work->sink, work->multiply(0.001f, STEPS), memory_order_relaxed);
    return TN_OK;
}

double ceiling_flops(void)
{
    struct work work;
    int64_t threads = tn_num_threads(), best = INT64_MAX;

    if (known > 0)
        return known;
    atomic_init(&work.sink, 0);
    choose(&work);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = record_now();
        if (tn_parallel_for(threads, 1, run, &work) != TN_OK)
            return 0;
        int64_t took = record_now() - start;
        best = took < best ? took : best;
    }
    known = best > 0 ? 2e9 * work.lanes * SUMS * STEPS * (double)threads / (double)best : 0;
    return known;
}

double ceiling_known(void)
{
    return known;
}

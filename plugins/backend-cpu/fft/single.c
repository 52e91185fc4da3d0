/* SPDX-License-Identifier: MIT
 *
 * Fourier transforms of single rows: of a smooth number of elements as a matrix (struct
 * tn__fft_split), of other numbers as a convolution. */
#include <string.h>

#include "base/scratch.h"
#include "fft/single.h"
#include "simd/simd.h"

enum { GRAIN = 32768 /* complex numbers */ };

struct job {
    const struct tn__fft_loops *loops;
    const struct tn__fft_split *split;
    const void *x;
    void *y, *middle;
    size_t row; /* bytes of a row of columns */
    int swap;
    double scale;
};

static tn_status first_part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    size_t bytes = (size_t)job->split->n1 * job->row;
    char *a = tn__scratch_take(2 * bytes);
    if (!a)
        return tn_error_last_code();
    for (int64_t i = begin; i < end; i++)
        job->loops->first(job->split, i, job->x, job->middle, a, a + bytes, job->swap);
    tn__scratch_give(a);
    return TN_OK;
}

static tn_status second_part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    char *b = tn__scratch_take((size_t)job->split->n2 * job->row);
    if (!b)
        return tn_error_last_code();
    for (int64_t i = begin; i < end; i++)
        job->loops->second(job->split, i, job->middle, b, job->y, job->swap, job->scale);
    tn__scratch_give(b);
    return TN_OK;
}

static tn_status run_blocks(struct job *job, int64_t blocks, int64_t n,
                            tn_status (*part)(void *user, int64_t begin, int64_t end))
{
    int64_t grain = GRAIN / (n * job->loops->lanes) + 1;
    if (blocks <= grain)
        return part(job, 0, blocks);
    return tn_parallel_for(blocks, grain, part, job);
}

static tn_status run_split(const struct tn__fft_plan *plan, const void *x, void *y, int swap,
                           double scale)
{
    const struct tn__fft_split *split = &plan->split;
    struct job job = { .loops = tn__simd.fft->of[plan->part == TN_F64],
                       .split = split,
                       .x = x,
                       .y = y,
                       .swap = swap,
                       .scale = scale };
    tn_status status;
    job.row = (size_t)job.loops->lanes * 2 * tn_dtype_size(plan->part);
    job.middle = tn__scratch_take((size_t)(split->blocks1 * split->n2) * job.row);
    if (!job.middle)
        return tn_error_last_code();
    status = run_blocks(&job, split->blocks2, split->n1, first_part);
    if (status == TN_OK)
        status = run_blocks(&job, split->blocks1, split->n2, second_part);
    tn__scratch_give(job.middle);
    return status;
}

static tn_status run_convolution(const struct tn__fft_plan *plan, const void *x, void *y, int swap,
                                 double scale)
{
    const struct tn__fft_loops *loops = tn__simd.fft->of[plan->part == TN_F64];
    int64_t n = plan->n, m = plan->inner->n;
    size_t item = 2 * tn_dtype_size(plan->part);
    char *z = tn__scratch_take((size_t)m * item);
    tn_status status;
    if (!z)
        return tn_error_last_code();
    loops->product(n, x, plan->chirp, z, swap, 0, 1);
    memset(z + (size_t)n * item, 0, (size_t)(m - n) * item);
    status = tn__fft_single(plan->inner, z, z, 0, 1);
    if (status == TN_OK) {
        loops->product(m, z, plan->spectrum, z, 0, 0, 1);
        status = tn__fft_single(plan->inner, z, z, 1, 1);
    }
    if (status == TN_OK)
        loops->product(n, z, plan->chirp, y, 0, swap, scale);
    tn__scratch_give(z);
    return status;
}

tn_status tn__fft_single(const struct tn__fft_plan *plan, const void *x, void *y, int swap,
                         double scale)
{
    return (plan->mode == TN__FFT_BLUESTEIN ? run_convolution : run_split)(plan, x, y, swap, scale);
}

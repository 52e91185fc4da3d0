/* SPDX-License-Identifier: MIT
 *
 * The operator `where`. Elements are copied as bytes, whatever their dtype. */
#include "base/kernel.h"
#include "base/span.h"
#include "simd/simd.h"

enum { GRAIN = 32768 };

struct pair {
    uint64_t low, high;
};

#define TEMPLATE "op/compare_where_template.h"
#include "base/for_sizes.h"
#define T struct pair
#define NAME(x) x##_16
#include "op/compare_where_template.h"
#undef T
#undef NAME

struct job {
    struct tn__span span;
    tn__span_body *body;
};

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end, job->body, NULL);
    return TN_OK;
}

static tn_status run_where(const tn_call *call)
{
    const tn_view *views[4] = { call->out[0], call->in[0], call->in[1], call->in[2] };
    struct job job;
    switch (tn__view_item(call->out[0])) {
    case 1: job.body = choose_1; break;
    case 2: job.body = choose_2; break;
    case 4: job.body = choose_4; break;
    case 8: job.body = choose_8; break;
    default: job.body = choose_16;
    }
    tn__span_make(&job.span, 4, views, false);
    if (job.span.count <= GRAIN)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN, part, &job);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_OVER(where, TN_MASK_ALL, 6),
};
TN__KERNEL_TABLE(compare_where);

/* SPDX-License-Identifier: MIT
 *
 * scatter_reduce with prod, amax and amin for float32, float64, int32 and int64. Other calls are
 * decomposed: sum and mean into scatter_add. Values for the same element of the result are combined
 * in the order of the index, for any number of threads. */
#include <string.h>

#include "op/copy.h"
#include "op/index_span.h"

enum { GRAIN = 16384 }; /* minimum number of elements for one thread */

#define PRODUCT(a, b) ((a) * (b))
#define IS_NAN(a) ((a) != (a))
#define TEMPLATE "op/index_reduce_template.h"
#include "base/for_floats.h"
#undef PRODUCT
#undef IS_NAN
#define IS_NAN(a) false
/* Products of integers wrap around. */
#define PRODUCT(a, b) (int32_t)((uint32_t)(a) * (uint32_t)(b))
#define T int32_t
#define NAME(x) x##_i32
#include "op/index_reduce_template.h"
#undef T
#undef NAME
#undef PRODUCT
#define PRODUCT(a, b) (int64_t)((uint64_t)(a) * (uint64_t)(b))
#define T int64_t
#define NAME(x) x##_i64
#include "op/index_reduce_template.h"
#undef T
#undef NAME
#undef PRODUCT
#undef IS_NAN

/* The functions for one dtype. If the elements of x do not count, `first` runs before `then` and
 * overwrites each selected element: with 1 for prod, else with an operand. `then` combines the
 * operands with the selected elements. */
struct runs {
    tn__index_run_function *first, *then;
};

/* A walk over the elements of the index. */
struct job {
    struct tn__index_span indexed; /* x: the result, other: src */
    tn__index_run_function *run;
    int32_t split; /* the dimension of the span that is divided among the threads, or -1 */
    bool bad;      /* an index was out of bounds: `at` */
    int64_t at;
};

static struct runs runs_for(tn_dtype dtype, const char *reduce)
{
    static const struct runs all[4][3] = { { { one_run_f32, prod_run_f32 },
                                             { store_run_f32, amax_run_f32 },
                                             { store_run_f32, amin_run_f32 } },
                                           { { one_run_f64, prod_run_f64 },
                                             { store_run_f64, amax_run_f64 },
                                             { store_run_f64, amin_run_f64 } },
                                           { { one_run_i32, prod_run_i32 },
                                             { store_run_i32, amax_run_i32 },
                                             { store_run_i32, amin_run_i32 } },
                                           { { one_run_i64, prod_run_i64 },
                                             { store_run_i64, amax_run_i64 },
                                             { store_run_i64, amin_run_i64 } } };
    int row = dtype == TN_F32 ? 0 : dtype == TN_F64 ? 1 : dtype == TN_I32 ? 2 : 3;

    return all[row][strcmp(reduce, "prod") == 0 ? 0 : strcmp(reduce, "amax") == 0 ? 1 : 2];
}

static void run(void *user, int64_t n, char *const *base, const int64_t *stride)
{
    struct job *job = user;
    struct tn__index_run indices;
    int64_t done;

    if (job->bad)
        return;
    indices = tn__index_span_run(&job->indexed, n, base, stride);
    done = job->run(&indices);
    if (done == n)
        return;
    job->bad = true;
    memcpy(&job->at, base[1] + done * stride[1], sizeof job->at);
}

/* Processes part [begin, end) of dimension `split`. */
static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job job = *(const struct job *)user;

    if (job.split >= 0)
        job.indexed.span = tn__index_span_part(&job.indexed, job.split, begin, end);
    tn__span_walk(&job.indexed.span, 0, job.indexed.span.count, run, &job);
    return job.bad ? tn__index_span_fail(&job.indexed, "scatter_reduce", job.at) : TN_OK;
}

static tn_status walk(struct job *job, tn__index_run_function *function)
{
    const struct tn__span *span = &job->indexed.span;
    int64_t size = job->split >= 0 ? span->shape[job->split] : 1;

    job->run = function;
    if (span->count <= GRAIN || job->split < 0)
        return part(job, 0, size);
    return tn_parallel_for(size, GRAIN / (span->count / size) + 1, part, job);
}

static bool supports_scatter_reduce(const tn_call *call, char *reason, size_t size)
{
    const char *reduce = ((const tn_scatter_reduce_options *)call->options)->reduce;

    if (strcmp(reduce, "sum") != 0 && strcmp(reduce, "mean") != 0)
        return true;
    tn_snprint(reason, size, "reduce is %s; expected prod, amax or amin", reduce);
    return false;
}

static tn_status run_scatter_reduce(const tn_call *call)
{
    const tn_scatter_reduce_options *o = call->options;
    const tn_view *x = call->in[0], *y = call->out[0], *views[3] = { y, call->in[1], call->in[2] };
    struct runs runs = runs_for(tn_view_dtype(x), o->reduce);
    struct job job = { .bad = false };
    tn_status status = TN_OK;

    tn__index_span_make(&job.indexed, views, o->dim);
    job.split = tn__index_span_split(&job.indexed);
    if (tn__view_at(y) == tn__view_at(x)) /* nothing may be written before an error is reported */
        status = walk(&job, tn__index_span_check);
    else
        status = tn__copy_views(y, x);
    if (status == TN_OK && !o->include_self)
        status = walk(&job, runs.first);
    return status == TN_OK ? walk(&job, runs.then) : status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_SUPPORTS(scatter_reduce, TN__F32_F64 | TN_BIT(TN_I32) | TN_BIT(TN_I64),
                        supports_scatter_reduce),
};
TN__KERNEL_TABLE(index_reduce);

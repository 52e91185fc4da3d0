/* SPDX-License-Identifier: MIT
 *
 * scatter_reduce and index_reduce with prod, amax and amin for floats, int32 and int64. Other calls
 * are decomposed: sum and mean into scatter_add. Values for the same element of the result are
 * combined in the order of the index, for any number of threads. */
#include <string.h>

#include "math/float16.h"
#include "op/copy.h"
#include "op/index_span.h"
#include "simd/simd.h"

#define DTYPES (TN__F32_F64 | TN_BIT(TN_I32) | TN_BIT(TN_I64) | TN_BIT(TN_F16) | TN_BIT(TN_BF16))

enum {
    GRAIN = 16384, /* minimum number of elements for one thread */
    PARTS = 16,    /* parts to aim for: long runs, which fill whole cache lines */
    ROW = 64       /* minimum length of the runs of a part */
};

/* float16 and bfloat16 are combined in float32 and rounded each time. */
#define DECODE(a) (a)
#define ENCODE(a) (a)
#define PRODUCT(a, b) ((a) * (b))
#define IS_NAN(a) ((a) != (a))
#define TEMPLATE "op/index_reduce_template.h"
#include "base/for_floats.h"
#undef DECODE
#undef ENCODE
#define DECODE(a) f16_to_float(a)
#define ENCODE(a) float_to_f16(a)
#define T uint16_t
#define NAME(x) x##_f16
#include "op/index_reduce_template.h"
#undef T
#undef NAME
#undef DECODE
#undef ENCODE
#define DECODE(a) bf16_to_float(a)
#define ENCODE(a) float_to_bf16(a)
#define T uint16_t
#define NAME(x) x##_bf16
#include "op/index_reduce_template.h"
#undef T
#undef NAME
#undef DECODE
#undef ENCODE
#define DECODE(a) (a)
#define ENCODE(a) (a)
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
#undef DECODE
#undef ENCODE

/* The functions for one dtype. With include_self=False, `first` runs before `then` and overwrites
 * each selected element: with 1 for prod, else with an operand. `then` combines the operands with
 * the selected elements. */
struct runs {
    tn__index_run_function *first, *then;
};

/* A walk over the elements of the index. */
struct job {
    const char *op;                /* the operator's name */
    struct tn__index_span indexed; /* x: the result, other: src */
    tn__index_run_function *run;
    tn__ew_loop *rows; /* combines a row with a row, for a run of one index; NULL: use `run` */
    int64_t item;      /* bytes of an element */
    int32_t split;     /* the dimension of the span that is divided among the threads, or -1 */
    bool bad;          /* an index was out of bounds: `at` */
    int64_t at;
};

static struct runs runs_for(tn_dtype dtype, const char *reduce)
{
    static const struct runs all[6][3] = { { { one_run_f32, prod_run_f32 },
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
                                             { store_run_i64, amin_run_i64 } },
                                           { { one_run_f16, prod_run_f16 },
                                             { store_run_f16, amax_run_f16 },
                                             { store_run_f16, amin_run_f16 } },
                                           { { one_run_bf16, prod_run_bf16 },
                                             { store_run_bf16, amax_run_bf16 },
                                             { store_run_bf16, amin_run_bf16 } } };
    int row = dtype == TN_F32   ? 0
              : dtype == TN_F64 ? 1
              : dtype == TN_I32 ? 2
              : dtype == TN_I64 ? 3
              : dtype == TN_F16 ? 4
                                : 5;

    return all[row][strcmp(reduce, "prod") == 0 ? 0 : strcmp(reduce, "amax") == 0 ? 1 : 2];
}

static void run(void *user, int64_t n, char *const *base, const int64_t *stride)
{
    static const double none[3] = { 0, 0, 0 };
    struct job *job = user;
    struct tn__index_run indices;
    int64_t done;

    if (job->bad)
        return;
    indices = tn__index_span_run(&job->indexed, n, base, stride);
    if (job->rows && indices.si == 0 && indices.sx == job->item && indices.so == job->item) {
        int64_t at;
        memcpy(&at, indices.index, sizeof at);
        if ((uint64_t)at < indices.size) {
            char *x = indices.x + at * indices.step;
            job->rows(n, x, job->item, x, job->item, indices.other, job->item, none);
            return;
        }
    }
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
    return job.bad ? tn__index_span_fail(&job.indexed, job.op, job.at) : TN_OK;
}

static tn_status walk(struct job *job, tn__index_run_function *function)
{
    const struct tn__span *span = &job->indexed.span;
    int64_t size = job->split >= 0 ? span->shape[job->split] : 1, grain;

    job->run = function;
    if (span->count <= GRAIN || job->split < 0 || tn_num_threads() == 1)
        return part(job, 0, size);
    grain = GRAIN / (span->count / size) + 1;
    grain = grain < size / PARTS ? size / PARTS : grain;
    return tn_parallel_for(size, grain < ROW ? ROW : grain, part, job);
}

static bool supports_scatter_reduce(const tn_call *call, char *reason, size_t size)
{
    const char *reduce = ((const tn_scatter_reduce_options *)call->options)->reduce;

    if (strcmp(reduce, "sum") != 0 && strcmp(reduce, "mean") != 0)
        return true;
    tn_snprint(reason, size, "reduce is %s; expected prod, amax or amin", reduce);
    return false;
}

/* Returns the loop that combines two rows; NULL if there is none without conversion. */
static tn__ew_loop *rows_for(tn_dtype dtype, const char *reduce)
{
    enum tn__ew op = strcmp(reduce, "prod") == 0   ? TN__EW_mul
                     : strcmp(reduce, "amax") == 0 ? TN__EW_maximum
                                                   : TN__EW_minimum;
    enum tn__ct ct = tn__dtype_ct(dtype);
    if (tn__float16_index(dtype) >= 0)
        return tn__simd.float16->ew[op][tn__float16_index(dtype)];
    return tn__dtype_of_ct(ct) == dtype ? tn__loop_of(op, ct) : NULL;
}

static tn_status reduce_into(const tn_call *call, const tn_view *index, int64_t dim,
                             const char *reduce, bool include_self)
{
    const tn_view *x = call->in[0], *y = call->out[0], *views[3] = { y, index, call->in[2] };
    struct runs runs = runs_for(tn_view_dtype(x), reduce);
    struct job job = { .op = call->op, .item = tn__view_item(x), .bad = false };
    tn_status status = TN_OK;

    tn__index_span_make(&job.indexed, views, dim);
    job.split = tn__index_span_split(&job.indexed);
    if (tn__view_at(y) == tn__view_at(x)) /* nothing may be written before an error is reported */
        status = walk(&job, tn__index_span_check);
    else
        status = tn__copy_views(y, x);
    if (status == TN_OK && !include_self)
        status = walk(&job, runs.first);
    job.rows = rows_for(tn_view_dtype(x), reduce);
    return status == TN_OK ? walk(&job, runs.then) : status;
}

static tn_status run_scatter_reduce(const tn_call *call)
{
    const tn_scatter_reduce_options *o = call->options;

    return reduce_into(call, call->in[1], o->dim, o->reduce, o->include_self);
}

static bool supports_index_reduce(const tn_call *call, char *reason, size_t size)
{
    const tn_index_reduce_options *o = call->options;

    if (strcmp(o->reduce, "mean") != 0 && call->in[0]->ndim > 0 && call->in[1]->ndim == 1 &&
        call->in[2]->ndim == call->in[0]->ndim)
        return true;
    tn_snprint(
        reason, size,
        "expected reduce prod, amax or amin, x and src with dimensions, and an index with one");
    return false;
}

/* The index broadcasts over all dimensions but one. */
static tn_status run_index_reduce(const tn_call *call)
{
    const tn_index_reduce_options *o = call->options;
    const tn_view *src = call->in[2];
    int64_t strides[TN_MAX_DIMS] = { 0 };
    tn_view index = *call->in[1];

    strides[o->dim < 0 ? o->dim + src->ndim : o->dim] = index.strides[0];
    index.ndim = src->ndim;
    index.shape = src->shape;
    index.strides = strides;
    return reduce_into(call, &index, o->dim, o->reduce, o->include_self);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_SUPPORTS(scatter_reduce, DTYPES, supports_scatter_reduce),
    TN__KERNEL_SUPPORTS(index_reduce, DTYPES, supports_index_reduce),
};
TN__KERNEL_TABLE(index_reduce);

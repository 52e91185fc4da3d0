/* SPDX-License-Identifier: MIT
 *
 * gather, index_select, scatter, scatter_add. Sums at one place are added in the order of the
 * index, whatever the number of threads. */
#include <string.h>

#include "base/span.h"
#include "op/copy.h"
#include "simd/simd.h"

enum { GRAIN = 16384, ROW = 16, PARTS = 8, WHOLE_ROW = 64, RANGES = 4 };

/* A walk over the index: operand 0 is the tensor that it points into, its stride 0 along the
 * dimension; 1 the index, 2 the other. */
struct job {
    const tn_call *call;
    struct tn__span span;
    int64_t dim, dim_size, dim_step, item;
    tn__load *load; /* adding, where it is done by conversion: in float64 or int64 */
    tn__store *store;
    tn__ew_loop *sum; /* of rows */
    int narrow;       /* which of the narrow types is added; -1: another one */
    bool gather, add, whole;
    int32_t split; /* the dimension of the span that is divided among the threads */
};

struct walk {
    const struct job *job;
    bool bad;
    int64_t at;
    int64_t first, past; /* where past is not 0, only rows [first, past) are added to */
    const char *checked; /* a run of the index that is known to be in bounds */
    int64_t count, step;
};

/* ---- one run --------------------------------------------------------------------------------- */

static void add_one(const struct job *job, char *to, const char *from)
{
    if (job->whole) {
        int64_t a, b;
        job->load(1, to, 0, &a);
        job->load(1, from, 0, &b);
        a = (int64_t)((uint64_t)a + (uint64_t)b);
        job->store(1, &a, to, 0);
    } else {
        double a, b;
        job->load(1, to, 0, &a);
        job->load(1, from, 0, &b);
        a += b;
        job->store(1, &a, to, 0);
    }
}

/* One index for the whole run. */
static void rows(const struct job *job, int64_t n, char *x, int64_t sx, char *other, int64_t so)
{
    static const double none[3] = { 0, 0, 0 };
    if (job->add && job->sum) {
        job->sum(n, x, sx, x, sx, other, so, none);
    } else if (job->add) {
        for (int64_t i = 0; i < n; i++)
            add_one(job, x + i * sx, other + i * so);
    } else if (sx == job->item && so == job->item) {
        if (job->gather)
            memcpy(other, x, (size_t)(n * job->item));
        else
            memcpy(x, other, (size_t)(n * job->item));
    } else {
        for (int64_t i = 0; i < n; i++)
            memcpy(job->gather ? other + i * so : x + i * sx,
                   job->gather ? x + i * sx : other + i * so, (size_t)job->item);
    }
}

struct pair {
    uint64_t low, high;
};

#define RUN_PARAMETERS                                                                             \
    int64_t n, char *x, int64_t sx, int64_t step, uint64_t size, const char *index, int64_t si,    \
        char *other, int64_t so
#define TEMPLATE "op/index_template.h"
#include "base/for_sizes.h"
#define T struct pair
#define NAME(x) x##_16
#include "op/index_template.h"
#undef T
#undef NAME
#define TEMPLATE "op/index_add_template.h"
#include "base/for_floats.h"
#define T uint32_t
#define NAME(x) x##_u32
#include "op/index_add_template.h"
#undef T
#undef NAME
#define T uint64_t
#define NAME(x) x##_u64
#include "op/index_add_template.h"
#undef T
#undef NAME

typedef int64_t run_function(RUN_PARAMETERS);

/* The function for contiguous storage of a dtype; NULL: none. */
static run_function *run_for(const struct job *job)
{
    static run_function *const gathers[4] = { gather_run_1, gather_run_2, gather_run_4,
                                              gather_run_8 },
                               *const scatters[4] = { scatter_run_1, scatter_run_2, scatter_run_4,
                                                      scatter_run_8 };
    int size = tn__copy_index(job->item);
    if (!job->add && size < 0)
        return job->gather ? gather_run_16 : scatter_run_16;
    if (!job->add)
        return (job->gather ? gathers : scatters)[size];
    if (job->item == 4)
        return job->whole ? add_run_u32 : add_run_f32;
    if (job->item == 8)
        return job->whole ? add_run_u64 : add_run_f64;
    return NULL;
}

/* Any dtype, by conversion. */
static int64_t add_any_run(const struct job *job, RUN_PARAMETERS)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at;
        memcpy(&at, index + i * si, sizeof at);
        if ((uint64_t)at >= size)
            return i;
        add_one(job, x + i * sx + at * step, other + i * so);
    }
    return n;
}

static void run(void *user, int64_t n, char *const *base, const int64_t *stride)
{
    struct walk *walk = user;
    const struct job *job = walk->job;
    char *x = base[0], *index = base[1], *other = base[2];
    int64_t sx = stride[0], si = stride[1], so = stride[2], step = job->dim_step;
    uint64_t size = (uint64_t)job->dim_size;
    if (walk->bad)
        return;
    if (job->gather && job->item <= 8 && index == walk->checked && n <= walk->count && sx == 0 &&
        si == walk->step && si == 8 && step == job->item && so == job->item) {
        tn__simd.copy->gather[tn__copy_index(job->item)](n, other, x, (const void *)index);
        return; /* the same index for several rows */
    }
    if (si == 0 && n > 1 && (sx != 0 || job->gather)) {
        int64_t at;
        memcpy(&at, index, sizeof at);
        if ((uint64_t)at < size) {
            if (walk->past == 0 || (at >= walk->first && at < walk->past))
                rows(job, n, x + at * step, sx, other, so);
        } else {
            walk->bad = true;
            walk->at = at;
        }
        return;
    }
    run_function *run_of = run_for(job);
    int64_t done;
    if (run_of)
        done = run_of(n, x, sx, step, size, index, si, other, so);
    else if (job->narrow >= 0)
        done = tn__simd.float16->add_at[job->narrow](n, x, sx, step, size, index, si, other, so);
    else
        done = add_any_run(job, n, x, sx, step, size, index, si, other, so);
    if (done < n) {
        walk->bad = true;
        memcpy(&walk->at, index + done * si, sizeof walk->at);
        return;
    }
    walk->checked = index;
    walk->count = n;
    walk->step = si;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static tn_status result_of(const struct job *job, const struct walk *walk)
{
    if (!walk->bad)
        return TN_OK;
    return tn_fail(TN_ERR_INDEX,
                   "%s: index %lld is out of bounds for dimension %lld with size %lld: 0 to %lld",
                   job->call->op, (long long)walk->at, (long long)job->dim,
                   (long long)job->dim_size, (long long)job->dim_size - 1);
}

/* In place: bad indices are reported before anything is written. */
static void look(void *user, int64_t n, char *const *base, const int64_t *stride)
{
    struct walk *walk = user;
    for (int64_t i = 0; i < n && !walk->bad; i++) {
        int64_t at;
        memcpy(&at, base[1] + i * stride[1], sizeof at);
        if ((uint64_t)at >= (uint64_t)walk->job->dim_size) {
            walk->bad = true;
            walk->at = at;
        }
    }
}

static tn_status check_all(const struct job *job)
{
    struct walk walk = { .job = job };
    tn__span_walk(&job->span, 0, job->span.count, look, &walk);
    return result_of(job, &walk);
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    struct walk walk = { .job = job };
    tn__span_walk(&job->span, begin, end, run, &walk);
    return result_of(job, &walk);
}

/* Parts of a dimension other than the one of the index never write to the same place, and each adds
 * in the order of the index. */
static tn_status part_apart(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    struct walk walk = { .job = job };
    struct tn__span span = job->span;
    for (int k = 0; k < 3; k++)
        span.base[k] += begin * span.stride[k][job->split];
    span.count = span.count / span.shape[job->split] * (end - begin);
    span.shape[job->split] = end - begin;
    tn__span_walk(&span, 0, span.count, run, &walk);
    return result_of(job, &walk);
}

/* A range of the destination, where whole rows are added: each thread reads the whole index and
 * adds the rows of its own range, so that no two threads write to the same place. */
static tn_status part_range(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    struct walk walk = { .job = job, .first = begin, .past = end };
    tn__span_walk(&job->span, 0, job->span.count, run, &walk);
    return result_of(job, &walk);
}

static void make(struct job *job, const tn_call *call, const tn_view *x, const tn_view *index,
                 const tn_view *other, int64_t dim)
{
    const tn_view *views[3] = { x, index, other };
    struct tn__span *span = &job->span;
    job->call = call;
    job->item = tn__view_item(x);
    job->dim = dim < 0 ? dim + (x->ndim > 0 ? x->ndim : 1) : dim;
    job->dim_size = x->ndim > 0 ? x->shape[job->dim] : 1;
    job->dim_step = x->ndim > 0 ? x->strides[job->dim] * job->item : 0;
    span->operands = 3;
    span->ndim = 0;
    span->count = tn__span_view_count(index);
    for (int k = 0; k < 3; k++)
        span->base[k] = tn__view_at(views[k]);
    for (int32_t d = 0; d < index->ndim; d++) {
        if (index->shape[d] == 1)
            continue;
        span->shape[span->ndim] = index->shape[d];
        for (int k = 0; k < 3; k++)
            span->stride[k][span->ndim] = (k == 0 && d == job->dim) || d >= views[k]->ndim
                                              ? 0
                                              : views[k]->strides[d] * tn__view_item(views[k]);
        span->ndim++;
    }
    tn__span_merge(span);
}

static tn_status run_gather(const tn_call *call)
{
    struct job job = { .gather = true };
    make(&job, call, call->in[0], call->in[1], call->out[0],
         ((const tn_gather_options *)call->options)->dim);
    if (job.span.count <= GRAIN)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN, part, &job);
}

/* The index broadcasts over all other dimensions. */
static tn_status run_index_select(const tn_call *call)
{
    const tn_view *x = call->in[0], *y = call->out[0];
    int64_t dim = ((const tn_index_select_options *)call->options)->dim,
            strides[TN_MAX_DIMS] = { 0 };
    tn_view index = *call->in[1];
    struct job job = { .gather = true };
    if (y->ndim > 0)
        strides[dim < 0 ? dim + y->ndim : dim] = index.ndim > 0 ? index.strides[0] : 0;
    index.ndim = y->ndim;
    index.shape = y->shape;
    index.strides = strides;
    make(&job, call, x, &index, y, dim);
    if (job.span.count <= GRAIN)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN, part, &job);
}

static tn_status scatter(const tn_call *call, int64_t dim, bool add)
{
    struct job job = { .add = add, .split = -1 };
    tn_dtype dtype = tn_view_dtype(call->in[0]);
    tn_status status = tn__copy_views(call->out[0], call->in[0]);
    if (status != TN_OK)
        return status;
    job.whole = (TN_MASK_FLOAT & TN_BIT(dtype)) == 0;
    if (add) {
        enum tn__ct ct = tn__dtype_ct(dtype);
        job.load = tn__dtype_load(dtype, job.whole ? TN__I64 : TN__F64);
        job.store = tn__dtype_store(job.whole ? TN__I64 : TN__F64, dtype);
        if (tn__dtype_of_ct(ct) == dtype)
            job.sum = tn__loop_of(TN__EW_add, ct);
        job.narrow = tn__float16_index(dtype);
        if (job.narrow >= 0)
            job.sum = tn__simd.float16->add[job.narrow];
    }
    make(&job, call, call->out[0], call->in[1], call->in[2], dim);
    if (tn__view_at(call->out[0]) == tn__view_at(call->in[0]))
        status = check_all(&job);
    if (status != TN_OK)
        return status;
    struct tn__span *span = &job.span;
    for (int32_t d = 0; d < span->ndim; d++)
        if (span->stride[0][d] != 0 && (job.split < 0 || span->shape[d] > span->shape[job.split]))
            job.split = d;
    if (span->count <= GRAIN || job.split < 0 || tn_num_threads() == 1)
        return part(&job, 0, span->count);
    int32_t inner = span->ndim - 1;
    if (span->stride[1][inner] == 0 && span->stride[0][inner] != 0 &&
        span->shape[inner] >= WHOLE_ROW && job.dim_size >= 2 * RANGES)
        return tn_parallel_for(job.dim_size, job.dim_size / RANGES, part_range, &job);
    int64_t size = span->shape[job.split], grain = GRAIN / (span->count / size) + 1;
    if (grain < size / PARTS) /* long runs, whole lines of the cache */
        grain = size / PARTS;
    if (grain < ROW)
        grain = ROW;
    return tn_parallel_for(size, grain, part_apart, &job);
}

static tn_status run_scatter(const tn_call *call)
{
    return scatter(call, ((const tn_scatter_options *)call->options)->dim, false);
}

static tn_status run_scatter_add(const tn_call *call)
{
    return scatter(call, ((const tn_scatter_add_options *)call->options)->dim, true);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(gather, TN_MASK_ALL),
    TN__KERNEL(index_select, TN_MASK_ALL),
    TN__KERNEL(scatter, TN_MASK_ALL),
    TN__KERNEL(scatter_add, TN__REALS),
};
TN__KERNEL_TABLE(index);

/* SPDX-License-Identifier: MIT
 *
 * gather, index_select, scatter, scatter_add, take, put, index_fill. If several elements are added
 * to one place, they are added in the order of the index, for any number of threads. */
#include <string.h>

#include "op/copy.h"
#include "op/index_span.h"
#include "simd/simd.h"

enum {
    GRAIN = 16384,  /* minimum number of elements for one thread */
    ROW = 16,       /* minimum number of indices of the divided dimension in a part */
    PARTS = 8,      /* maximum number of parts of the divided dimension */
    WHOLE_ROW = 64, /* elements of a row from which threads divide the destination */
    RANGES = 4      /* ranges of the destination */
};

struct job {
    const tn_call *call;
    struct tn__index_span indexed;
    int64_t item;   /* bytes of an element */
    tn__load *load; /* load and store convert to float64 or int64, to add elements of any dtype */
    tn__store *store;
    tn__ew_loop *sum;        /* adds a row to a row; NULL: element by element */
    int narrow;              /* tn__float16_index of the dtype */
    bool gather, add, whole; /* neither gather nor add: scatter; whole: of integers */
    int32_t split;           /* the dimension of the span that is divided among the threads */
};

struct walk {
    const struct job *job;
    bool bad; /* an index was out of bounds: `at` */
    int64_t at;
    int64_t first, past; /* if past is not 0, only indices in [first, past) are processed */
    /* a run of the index that is known to be in bounds: `count` indices, `step` bytes apart */
    const char *checked;
    int64_t count, step;
};

/* ---- one run --------------------------------------------------------------------------------- */

/* Adds an element of any dtype, by conversion. `user` is the job. */
static void add_one(const void *user, char *to, char *from)
{
    const struct job *job = user;
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

/* Copies or adds n elements that all have the same index. x already points to the position that
 * this index selects. */
static void rows(const struct job *job, int64_t n, char *x, int64_t sx, char *other, int64_t so)
{
    static const double none[3] = { 0, 0, 0 };
    if (job->add && job->sum) {
        job->sum(n, x, sx, x, sx, other, so, none);
    } else if (job->add) {
        for (int64_t i = 0; i < n; i++)
            add_one(job, x + i * sx, other + i * so);
    } else if (!job->gather && so == 0 && sx == job->item && tn__copy_index(job->item) >= 0) {
        tn__simd.copy->fill[tn__copy_index(job->item)](n, x, other);
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

#define TEMPLATE "op/index_template.h"
#include "base/for_sizes.h"
#define T struct pair
#define NAME(x) x##_16
#include "op/index_template.h"
#undef T
#undef NAME
#define TEMPLATE "op/scatter_add_template.h"
#include "base/for_floats.h"
#define T uint32_t
#define NAME(x) x##_u32
#include "op/scatter_add_template.h"
#undef T
#undef NAME
#define T uint64_t
#define NAME(x) x##_u64
#include "op/scatter_add_template.h"
#undef T
#undef NAME

/* Returns the function that processes a run of indices for the dtype; NULL if there is none. */
static tn__index_run_function *run_for(const struct job *job)
{
    static tn__index_run_function *const gathers[4] = { gather_run_1, gather_run_2, gather_run_4,
                                                        gather_run_8 };
    static tn__index_run_function *const scatters[4] = { scatter_run_1, scatter_run_2,
                                                         scatter_run_4, scatter_run_8 };
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

/* Processes a run of indices; returns the number of indices before one out of bounds, or n. */
static int64_t process(const struct job *job, const struct tn__index_run *indices)
{
    tn__index_run_function *run_of = run_for(job);
    if (run_of)
        return run_of(indices);
    if (job->narrow >= 0)
        return tn__simd.float16->add_at[job->narrow](indices);
    return tn__index_run_each(indices, add_one, job);
}

static void run(void *user, int64_t n, char *const *base, const int64_t *stride)
{
    struct walk *walk = user;
    const struct job *job = walk->job;
    char *x = base[0], *index = base[1], *other = base[2];
    int64_t sx = stride[0], si = stride[1], so = stride[2], step = job->indexed.step;
    if (walk->bad)
        return;
    if (job->gather && job->item <= 8 && index == walk->checked && n <= walk->count && sx == 0 &&
        si == walk->step && si == 8 && step == job->item && so == job->item) {
        tn__simd.copy->gather[tn__copy_index(job->item)](n, other, x, (const void *)index);
        return; /* the previous run had the same indices, so they are in bounds */
    }
    if (si == 0 && n > 1 && (sx != 0 || job->gather)) {
        int64_t at;
        memcpy(&at, index, sizeof at);
        if ((uint64_t)at < (uint64_t)job->indexed.size) {
            if (walk->past == 0 || (at >= walk->first && at < walk->past))
                rows(job, n, x + at * step, sx, other, so);
        } else {
            walk->bad = true;
            walk->at = at;
        }
        return;
    }
    struct tn__index_run indices = tn__index_span_run(&job->indexed, n, base, stride);
    int64_t done = process(job, &indices);
    if (done < n) {
        walk->bad = true;
        memcpy(&walk->at, index + done * si, sizeof walk->at);
        return;
    }
    walk->checked = index;
    walk->count = n;
    walk->step = si;
}

/* ---- the whole index ------------------------------------------------------------------------- */

static tn_status result_of(const struct job *job, const struct walk *walk)
{
    return walk->bad ? tn__index_span_fail(&job->indexed, job->call->op, walk->at) : TN_OK;
}

/* Checks a run of the index without writing: before a scatter in place, because bad indices must be
 * reported before an element is written. */
static void look(void *user, int64_t n, char *const *base, const int64_t *stride)
{
    struct walk *walk = user;
    struct tn__index_run indices = tn__index_span_run(&walk->job->indexed, n, base, stride);
    int64_t done = walk->bad ? n : tn__index_span_check(&indices);
    if (done == n)
        return;
    walk->bad = true;
    memcpy(&walk->at, base[1] + done * stride[1], sizeof walk->at);
}

static tn_status check_all(const struct job *job)
{
    struct walk walk = { .job = job };
    tn__span_walk(&job->indexed.span, 0, job->indexed.span.count, look, &walk);
    return result_of(job, &walk);
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    struct walk walk = { .job = job };
    tn__span_walk(&job->indexed.span, begin, end, run, &walk);
    return result_of(job, &walk);
}

/* Processes part [begin, end) of dimension `split`. This is not the indexed dimension, so different
 * parts never write to the same place, and each part adds in the order of the index. */
static tn_status part_apart(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    struct walk walk = { .job = job };
    struct tn__span span = tn__index_span_part(&job->indexed, job->split, begin, end);
    tn__span_walk(&span, 0, span.count, run, &walk);
    return result_of(job, &walk);
}

/* Processes range [begin, end) of the destination's indexed dimension, if one index selects a whole
 * row. Each thread reads the whole index but writes only the rows of its own range, so that no two
 * threads write to the same place. */
static tn_status part_range(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    struct walk walk = { .job = job, .first = begin, .past = end };
    tn__span_walk(&job->indexed.span, 0, job->indexed.span.count, run, &walk);
    return result_of(job, &walk);
}

static void make(struct job *job, const tn_call *call, const tn_view *x, const tn_view *index,
                 const tn_view *other, int64_t dim)
{
    const tn_view *views[3] = { x, index, other };
    job->call = call;
    job->item = tn__view_item(x);
    tn__index_span_make(&job->indexed, views, dim);
}

static tn_status run_gather(const tn_call *call)
{
    struct job job = { .gather = true };
    make(&job, call, call->in[0], call->in[1], call->out[0],
         ((const tn_gather_options *)call->options)->dim);
    if (job.indexed.span.count <= GRAIN)
        return part(&job, 0, job.indexed.span.count);
    return tn_parallel_for(job.indexed.span.count, GRAIN, part, &job);
}

/* index_select is a gather whose index broadcasts over all dimensions but one. */
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
    if (job.indexed.span.count <= GRAIN)
        return part(&job, 0, job.indexed.span.count);
    return tn_parallel_for(job.indexed.span.count, GRAIN, part, &job);
}

/* Sets what additions in `dtype` need. */
static void make_adding(struct job *job, tn_dtype dtype)
{
    enum tn__ct ct = tn__dtype_ct(dtype);
    job->add = true;
    job->whole = (TN_MASK_FLOAT & TN_BIT(dtype)) == 0;
    job->load = tn__dtype_load(dtype, job->whole ? TN__I64 : TN__F64);
    job->store = tn__dtype_store(job->whole ? TN__I64 : TN__F64, dtype);
    if (tn__dtype_of_ct(ct) == dtype)
        job->sum = tn__loop_of(TN__EW_add, ct);
    job->narrow = tn__float16_index(dtype);
    if (job->narrow >= 0)
        job->sum = tn__simd.float16->add[job->narrow];
}

static tn_status scatter(const tn_call *call, int64_t dim, bool add)
{
    struct job job = { .add = add };
    tn_status status = tn__copy_views(call->out[0], call->in[0]);
    if (status != TN_OK)
        return status;
    if (add)
        make_adding(&job, tn_view_dtype(call->in[0]));
    make(&job, call, call->out[0], call->in[1], call->in[2], dim);
    if (tn__view_at(call->out[0]) == tn__view_at(call->in[0]))
        status = check_all(&job);
    if (status != TN_OK)
        return status;
    const struct tn__span *span = &job.indexed.span;
    job.split = tn__index_span_split(&job.indexed);
    if (span->count <= GRAIN || job.split < 0 || tn_num_threads() == 1)
        return part(&job, 0, span->count);
    int32_t inner = span->ndim - 1;
    if (span->stride[1][inner] == 0 && span->stride[0][inner] != 0 &&
        span->shape[inner] >= WHOLE_ROW && job.indexed.size >= 2 * RANGES)
        return tn_parallel_for(job.indexed.size, job.indexed.size / RANGES, part_range, &job);
    int64_t size = span->shape[job.split], grain = GRAIN / (span->count / size) + 1;
    if (grain < size / PARTS) /* few large parts: long runs, which fill whole cache lines */
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

/* ---- take, put ------------------------------------------------------------------------------- */

#define TEMPLATE "op/index_flat_template.h"
#include "base/for_sizes.h"

/* All tensors are contiguous; `other` is the result of take or the source of put. */
struct flat {
    const tn_call *call;
    int64_t size; /* elements of x */
    const char *x;
    const int64_t *index;
    char *other;
    int64_t item;
    int64_t (*run)(int64_t n, int64_t size, const char *x, const int64_t *index, char *other);
};

static tn_status flat_part(void *user, int64_t begin, int64_t end)
{
    const struct flat *f = user;
    int64_t done = begin + f->run(end - begin, f->size, f->x, f->index + begin,
                                  f->other ? f->other + begin * f->item : NULL);
    if (done == end)
        return TN_OK;
    return tn__index_fail(f->call->op, f->index[done], 0, -f->size, f->size);
}

/* As put, but only checks the indices. */
static int64_t check_flat(int64_t n, int64_t size, const char *x, const int64_t *index, char *other)
{
    (void)x, (void)other;
    for (int64_t i = 0; i < n; i++)
        if ((uint64_t)(index[i] + (index[i] < 0 ? size : 0)) >= (uint64_t)size)
            return i;
    return n;
}

/* `x` is x of take or the source of put. */
static bool supports_flat(const tn_call *call, const tn_view *x, char *reason, size_t size)
{
    if (tn__span_result_dense(call) && tn__copy_index(tn__view_item(x)) >= 0 &&
        tn__span_view_dense(x) && tn__span_view_dense(call->in[1]) &&
        tn_view_dtype(call->in[1]) == TN_I64)
        return true;
    tn_snprint(reason, size, "expected contiguous tensors with elements of at most 8 bytes");
    return false;
}

static bool supports_take(const tn_call *call, char *reason, size_t size)
{
    return supports_flat(call, call->in[0], reason, size);
}

static bool supports_put(const tn_call *call, char *reason, size_t size)
{
    bool adds = ((const tn_put_options *)call->options)->accumulate;
    if (tn__span_view_dense(call->in[0]) &&
        (!adds || (TN__REALS & TN_BIT(tn_view_dtype(call->in[0])))))
        return supports_flat(call, call->in[2], reason, size);
    tn_snprint(reason, size, "expected a contiguous x, of real numbers if accumulate=True");
    return false;
}

static tn_status run_take(const tn_call *call)
{
    static int64_t (*const runs[4])(int64_t, int64_t, const char *, const int64_t *,
                                    char *) = { take_1, take_2, take_4, take_8 };
    const tn_view *x = call->in[0];
    int64_t n = tn__span_view_count(call->in[1]), item = tn__view_item(x);
    struct flat f = { .call = call,
                      .size = tn__span_view_count(x),
                      .x = tn__view_at(x),
                      .index = (const int64_t *)(const void *)tn__view_at(call->in[1]),
                      .other = tn__view_at(call->out[0]),
                      .item = item,
                      .run = runs[tn__copy_index(item)] };
    return n <= GRAIN ? flat_part(&f, 0, n) : tn_parallel_for(n, GRAIN, flat_part, &f);
}

/* Adds in the order of the index. */
static tn_status put_added(const struct flat *f, int64_t n)
{
    struct job job = { .item = f->item };
    int64_t places[TN__CHUNK];
    make_adding(&job, tn_view_dtype(f->call->out[0]));
    for (int64_t at = 0; at < n; at += TN__CHUNK) {
        int64_t count = n - at < TN__CHUNK ? n - at : TN__CHUNK;
        const int64_t *index = f->index + at;
        struct tn__index_run indices = { .n = count,
                                         .x = tn__view_at(f->call->out[0]),
                                         .step = f->item,
                                         .size = (uint64_t)f->size,
                                         .index = (const char *)places,
                                         .si = (int64_t)sizeof *places,
                                         .other = f->other + at * f->item,
                                         .so = f->item };
        for (int64_t i = 0; i < count; i++)
            places[i] = index[i] + (index[i] < 0 ? f->size : 0);
        int64_t done = process(&job, &indices);
        if (done < count)
            return tn__index_fail(f->call->op, index[done], 0, -f->size, f->size);
    }
    return TN_OK;
}

static tn_status run_put(const tn_call *call)
{
    static int64_t (*const runs[4])(int64_t, int64_t, const char *, const int64_t *,
                                    char *) = { put_1, put_2, put_4, put_8 };
    const tn_view *y = call->out[0];
    int64_t n = tn__span_view_count(call->in[1]), item = tn__view_item(y);
    struct flat f = { .call = call,
                      .size = tn__span_view_count(y),
                      .x = tn__view_at(y),
                      .index = (const int64_t *)(const void *)tn__view_at(call->in[1]),
                      .run = check_flat };
    tn_status status = TN_OK;
    if (tn__view_at(y) == tn__view_at(call->in[0])) /* nothing is written before an error */
        status = flat_part(&f, 0, n);
    else
        status = tn__copy_views(y, call->in[0]);
    f.other = tn__view_at(call->in[2]);
    f.item = item;
    f.run = runs[tn__copy_index(item)];
    if (status == TN_OK && ((const tn_put_options *)call->options)->accumulate)
        return put_added(&f, n);
    return status == TN_OK ? flat_part(&f, 0, n) : status;
}

/* ---- index_fill ------------------------------------------------------------------------------ */

static bool supports_index_fill(const tn_call *call, char *reason, size_t size)
{
    if (call->in[0]->ndim > 0 && call->in[1]->ndim == 1)
        return true;
    tn_snprint(reason, size, "expected x with dimensions and an index with one");
    return false;
}

static tn_status run_index_fill(const tn_call *call)
{
    const tn_index_fill_options *o = call->options;
    const tn_view *y = call->out[0], *index = call->in[1];
    int32_t dim = (int32_t)(o->dim < 0 ? o->dim + y->ndim : o->dim);
    int64_t size = y->shape[dim], shape[TN_MAX_DIMS], strides[TN_MAX_DIMS];
    tn_view slice = *y;
    tn_status status = TN_OK;
    if (tn__view_at(y) != tn__view_at(call->in[0]))
        status = tn__copy_views(y, call->in[0]);
    for (int32_t d = 0, to = 0; d < y->ndim; d++)
        if (d != dim) {
            shape[to] = y->shape[d];
            strides[to++] = y->strides[d];
        }
    slice.ndim--;
    slice.shape = shape;
    slice.strides = strides;
    for (int pass = 0; pass < 2; pass++) /* nothing is written before an error */
        for (int64_t i = 0; status == TN_OK && i < index->shape[0]; i++) {
            int64_t given = tn__kernel_int(index, i), at = given + (given < 0 ? size : 0);
            if ((uint64_t)at >= (uint64_t)size)
                return tn__index_fail(call->op, given, dim, -size, size);
            slice.byte_offset = y->byte_offset +
                                (uint64_t)(at * y->strides[dim] * tn__view_item(y));
            if (pass == 1)
                status = tn__copy_value(&slice, o->value);
        }
    return status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(gather, TN_MASK_ALL),
    TN__KERNEL(index_select, TN_MASK_ALL),
    TN__KERNEL(scatter, TN_MASK_ALL),
    TN__KERNEL(scatter_add, TN__REALS),
    TN__KERNEL_SUPPORTS(take, TN_MASK_ALL, supports_take),
    TN__KERNEL_SUPPORTS(put, TN_MASK_ALL, supports_put),
    TN__KERNEL_SUPPORTS(index_fill, TN__REALS_BOOL, supports_index_fill),
};
TN__KERNEL_TABLE(index);

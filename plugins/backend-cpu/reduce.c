/* SPDX-License-Identifier: MIT
 *
 * Sums, maxima and their places over any dimensions of any layout. How the numbers are grouped
 * depends on the shape alone: each result takes its numbers in stretches of `super`, worked on
 * in parallel; the stretches' results are put together in order. */
#include <string.h>

#include "cpu.h"

enum reduction { SUM, MAX, ARGMAX };

enum {
    SUPER = 65536, /* numbers of one result that one piece of work takes */
    BLOCK = 4096,  /* numbers that are gathered at a time where they do not lie in a row */
    COLUMNS = 256, /* neighbouring results that are summed together */
    GRAIN = 32768  /* numbers for which another thread is worth it */
};

/* Dimensions that stay (kept) and those that go, as views of x: merged where they can be. */
struct job {
    enum reduction what;
    tn_dtype from;
    enum tn__ct ct;       /* the numbers are taken in it */
    int64_t item, size;   /* bytes of an element of x, of a number of ct */
    tn__load *load;       /* NULL: x has that type */
    struct tn__span kept; /* operand 0: y, 1: x */
    struct tn__span gone; /* operand 0: x (base unused) */
    int64_t supers;       /* pieces a result */
    int64_t super;
    int64_t columns;             /* results summed together; 0: one at a time */
    int64_t groups;              /* of kept results: kept.count, or blocks of columns */
    struct tn__largest *partial; /* [supers][kept.count] or NULL when there is one piece */
    tn_dtype to;
};

/* ---- what one stretch gives ------------------------------------------------------------------ */

static void start(struct tn__largest *at)
{
    at->f = 0;
    at->i = 0;
    at->at = -1;
}

/* Adds what came from a stretch of numbers that begins at index `first`. */
static void add_result(const struct job *job, struct tn__largest *all,
                       const struct tn__largest *more)
{
    if (more->at < 0)
        return;
    if (job->what == SUM) {
        all->f = all->at < 0 ? more->f : all->f + more->f;
        all->i = (int64_t)((uint64_t)all->i + (uint64_t)more->i);
        all->at = 0;
        return;
    }
    bool larger = job->ct == TN__I64 ? more->i > all->i
                                     : more->f > all->f || (more->f != more->f && all->f == all->f);
    if (all->at < 0 || larger)
        *all = *more;
}

#define FIRST_PLACE(T)                                                                             \
    {                                                                                              \
        const T *x = numbers;                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            if (x[i] == (T)best || x[i] != x[i])                                                   \
                return i;                                                                          \
        return 0;                                                                                  \
    }
static int64_t place_f32(int64_t n, const void *numbers, double best)
    FIRST_PLACE(float) static int64_t place_f64(int64_t n, const void *numbers, double best)
        FIRST_PLACE(double)

    /* n contiguous numbers, the first of which has index `first`. */
    static void take_block(const struct job *job, int64_t n, const void *numbers, int64_t first,
                           struct tn__largest *out)
{
    out->at = first;
    out->i = 0;
    out->f = 0;
    switch (job->what) {
    case SUM:
        if (job->ct == TN__F32)
            out->f = tn__loops->sum_f32(n, numbers);
        else if (job->ct == TN__F64)
            out->f = tn__loops->sum_f64(n, numbers);
        else
            out->i = tn__loops->sum_i64(n, numbers);
        return;
    case MAX:
    case ARGMAX:
        if (job->ct == TN__I64) {
            const int64_t *x = numbers;
            int64_t at = 0;
            out->i = tn__loops->max_i64(n, x);
            while (job->what == ARGMAX && x[at] != out->i)
                at++;
            out->at = first + at;
            return;
        }
        out->f = job->ct == TN__F32 ? (double)tn__loops->max_f32(n, numbers)
                                    : tn__loops->max_f64(n, numbers);
        if (job->what == ARGMAX)
            out->at = first + (job->ct == TN__F32 ? place_f32(n, numbers, out->f)
                                                  : place_f64(n, numbers, out->f));
        return;
    }
}

/* ---- one result at a time -------------------------------------------------------------------- */

struct gather {
    const struct job *job;
    char *to;
};

static void gather_run(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    struct gather *gather = user;
    gather->job->load(n, at[0], stride[0], gather->to);
    gather->to += n * gather->job->size;
}

static void take_stretch(const struct job *job, char *x, int64_t begin, int64_t end,
                         struct tn__largest *all)
{
    const struct tn__span *gone = &job->gone;
    start(all);
    if (job->from == tn__ct_dtype(job->ct) && gone->ndim <= 1 &&
        (gone->ndim == 0 || gone->stride[0][0] == job->item)) {
        struct tn__largest block;
        take_block(job, end - begin, x + begin * job->item, begin, &block);
        add_result(job, all, &block);
        return;
    }
    _Alignas(64) char numbers[BLOCK * 8];
    struct tn__span span = *gone;
    span.base[0] = x;
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t stop = end - at < BLOCK ? end : at + BLOCK;
        struct gather gather = { job, numbers };
        struct tn__largest block;
        tn__span_walk(&span, at, stop, gather_run, &gather);
        take_block(job, stop - at, numbers, at, &block);
        add_result(job, all, &block);
    }
}

static void write_result(const struct job *job, const struct tn__largest *all, char *y)
{
    if (job->what == ARGMAX) {
        memcpy(y, &all->at, sizeof all->at);
    } else if (job->ct == TN__I64) {
        tn__convert_store(TN__I64, job->to)(1, &all->i, y, 0);
    } else if (job->ct == TN__F32) {
        float f = (float)all->f;
        tn__convert_store(TN__F32, job->to)(1, &f, y, 0);
    } else {
        tn__convert_store(TN__F64, job->to)(1, &all->f, y, 0);
    }
}

/* The places of result `index` in y and x. */
static void locate(const struct tn__span *kept, int64_t index, char **y, char **x)
{
    *y = kept->base[0];
    *x = kept->base[1];
    for (int32_t i = kept->ndim; i-- > 0;) {
        int64_t at = index % kept->shape[i];
        index /= kept->shape[i];
        *y += at * kept->stride[0][i];
        *x += at * kept->stride[1][i];
    }
}

/* ---- columns: neighbouring results whose numbers lie side by side ---------------------------- */

static void take_columns(const struct job *job, int64_t first, int64_t wide, int64_t begin,
                         int64_t end, double *to)
{
    const struct tn__span *gone = &job->gone;
    char *y, *x;
    locate(&job->kept, first, &y, &x);
    int64_t inner = gone->ndim ? gone->shape[gone->ndim - 1] : 1;
    int64_t stride = gone->ndim ? gone->stride[0][gone->ndim - 1] : 0;
    memset(to, 0, (size_t)wide * sizeof *to);
    for (int64_t at = begin; at < end;) {
        int64_t rest = at / inner, rows = inner - at % inner, offset = at % inner * stride;
        if (rows > end - at)
            rows = end - at;
        for (int32_t i = gone->ndim - 1; i-- > 0;) {
            offset += rest % gone->shape[i] * gone->stride[0][i];
            rest /= gone->shape[i];
        }
        if (job->ct == TN__F32)
            tn__loops->rows_f32(rows, wide, x + offset, stride, to);
        else
            tn__loops->rows_f64(rows, wide, x + offset, stride, to);
        at += rows;
    }
}

/* ---- pieces of work -------------------------------------------------------------------------- */

static void do_group(struct job *job, int64_t group, int64_t super)
{
    int64_t begin = super * job->super, end = begin + job->super;
    if (end > job->gone.count)
        end = job->gone.count;
    if (job->columns == 0) {
        char *y, *x;
        struct tn__largest all;
        locate(&job->kept, group, &y, &x);
        take_stretch(job, x, begin, end, &all);
        if (job->partial)
            job->partial[super * job->kept.count + group] = all;
        else
            write_result(job, &all, y);
        return;
    }
    int64_t row = job->kept.shape[job->kept.ndim - 1],
            blocks = (row + job->columns - 1) / job->columns;
    int64_t column = group % blocks * job->columns, first = group / blocks * row + column;
    int64_t wide = row - column < job->columns ? row - column : job->columns;
    double sums[COLUMNS];
    take_columns(job, first, wide, begin, end, sums);
    for (int64_t i = 0; i < wide; i++) {
        struct tn__largest one = { sums[i], 0, 0 };
        char *y, *x;
        if (job->partial) {
            job->partial[super * job->kept.count + first + i] = one;
        } else {
            locate(&job->kept, first + i, &y, &x);
            write_result(job, &one, y);
        }
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    for (int64_t i = begin; i < end; i++)
        do_group(job, i / job->supers, i % job->supers);
    return TN_OK;
}

static tn_status run_job(struct job *job)
{
    int64_t per_group = job->super * (job->columns ? job->columns : 1),
            work = job->groups * job->supers;
    int64_t grain = GRAIN / (per_group ? per_group : 1);
    if (job->supers > 1) {
        job->partial = tn_malloc((size_t)(job->supers * job->kept.count) * sizeof *job->partial);
        if (!job->partial)
            return TN_ERR_MEMORY;
    }
    tn_status status = work * per_group <= GRAIN
                           ? part(job, 0, work)
                           : tn_parallel_for(work, grain > 0 ? grain : 1, part, job);
    for (int64_t k = 0; job->partial && status == TN_OK && k < job->kept.count; k++) {
        struct tn__largest all = job->partial[k];
        char *y, *x;
        for (int64_t s = 1; s < job->supers; s++)
            add_result(job, &all, &job->partial[s * job->kept.count + k]);
        locate(&job->kept, k, &y, &x);
        write_result(job, &all, y);
    }
    tn_free(job->partial);
    return status;
}

/* ---- setting up ------------------------------------------------------------------------------ */

/* Views of x and y over the dimensions that stay, and of x over those that go. `part` 1 takes
 * the real and the imaginary parts of complex numbers as numbers of their own, `which` of them. */
static void make_spans(struct job *job, const tn_view *x, const tn_view *y, const bool *goes)
{
    int64_t kept_shape[TN_MAX_DIMS], kept_x[TN_MAX_DIMS], kept_y[TN_MAX_DIMS],
        gone_shape[TN_MAX_DIMS], gone_x[TN_MAX_DIMS];
    tn_view kx = *x, ky = *y, gx = *x;
    bool keepdim = y->ndim == x->ndim;
    kx.ndim = ky.ndim = gx.ndim = 0;
    for (int32_t i = 0, at = 0; i < x->ndim; i++) {
        if (goes[i]) {
            gone_shape[gx.ndim] = x->shape[i];
            gone_x[gx.ndim++] = x->strides[i];
            at += keepdim;
        } else {
            kept_shape[kx.ndim] = x->shape[i];
            kept_x[kx.ndim] = x->strides[i];
            kept_y[kx.ndim++] = y->strides[at++];
        }
    }
    ky.ndim = kx.ndim;
    kx.shape = ky.shape = kept_shape;
    kx.strides = kept_x;
    ky.strides = kept_y;
    gx.shape = gone_shape;
    gx.strides = gone_x;
    tn__span_make(&job->kept, 2, (const tn_view *[]){ &ky, &kx }, true);
    tn__span_make(&job->gone, 1, (const tn_view *[]){ &gx }, true);
}

/* Columns pay when neighbouring results have neighbouring numbers and each result's own numbers
 * lie apart. */
static void choose_pieces(struct job *job)
{
    const struct tn__span *kept = &job->kept, *gone = &job->gone;
    bool plain = job->what == SUM && job->ct != TN__I64 && job->from == tn__ct_dtype(job->ct);
    job->columns = 0;
    if (plain && kept->ndim > 0 && kept->stride[1][kept->ndim - 1] == job->item &&
        kept->shape[kept->ndim - 1] >= 4 && gone->ndim > 0 &&
        gone->stride[0][gone->ndim - 1] != job->item)
        job->columns = COLUMNS;
    job->super = SUPER;
    job->groups = kept->count;
    if (job->columns) {
        int64_t row = kept->shape[kept->ndim - 1], wide = row < COLUMNS ? row : COLUMNS;
        job->super = SUPER / wide;
        job->groups = kept->count / row * ((row + COLUMNS - 1) / COLUMNS);
    }
    if (job->super > gone->count)
        job->super = gone->count;
    job->supers = job->super > 0 ? (gone->count + job->super - 1) / job->super : 1;
}

static tn_status reduce(const tn_view *x, const tn_view *y, enum reduction what, const bool *goes)
{
    struct job job = {
        .what = what, .from = tn_view_dtype(x), .to = tn_view_dtype(y), .item = tn__view_item(x)
    };
    job.ct = tn__ct_of(job.from);
    job.size = (int64_t)tn__ct_size(job.ct);
    job.load = tn__convert_load(job.from, job.ct);
    make_spans(&job, x, y, goes);
    if (job.kept.count == 0)
        return TN_OK;
    if (job.gone.count == 0)
        return tn__copy_zero(y);
    choose_pieces(&job);
    return run_job(&job);
}

/* Real and imaginary parts are summed as numbers of their own. */
static tn_status reduce_complex(const tn_view *x, const tn_view *y, const bool *goes)
{
    for (uint64_t which = 0; which < 2; which++) {
        int64_t xs[TN_MAX_DIMS], ys[TN_MAX_DIMS];
        tn_view px = *x, py = *y;
        for (int32_t i = 0; i < x->ndim; i++)
            xs[i] = x->strides[i] * 2;
        for (int32_t i = 0; i < y->ndim; i++)
            ys[i] = y->strides[i] * 2;
        px.strides = xs;
        py.strides = ys;
        px.dtype.code = py.dtype.code = 2;
        px.dtype.bits = py.dtype.bits = (uint8_t)(x->dtype.bits / 2);
        px.byte_offset += which * px.dtype.bits / 8;
        py.byte_offset += which * py.dtype.bits / 8;
        tn_status status = reduce(&px, &py, SUM, goes);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* The dimensions of the option `dims`: all when there are none. */
static tn_status chosen(const tn_call *call, tn_ints dims, bool *goes)
{
    int32_t ndim = call->in[0]->ndim;
    for (int32_t i = 0; i < ndim; i++)
        goes[i] = dims.count <= 0;
    for (int64_t k = 0; k < dims.count; k++) {
        int64_t dim = dims.at[k] < 0 ? dims.at[k] + ndim : dims.at[k];
        if (ndim == 0) /* 0-d counts as one dimension: 0 and -1, which inference checked */
            continue;
        if (dim < 0 || dim >= ndim)
            return tn_fail(TN_ERR_INDEX, "%s: dimension %lld is out of range for %d dimensions",
                           call->op, (long long)dims.at[k], (int)ndim);
        goes[dim] = true;
    }
    return TN_OK;
}

tn_status tn__sum(const tn_call *call)
{
    const tn_sum_options *options = call->options;
    bool goes[TN_MAX_DIMS];
    tn_status status = chosen(call, options->dims, goes);
    if (status != TN_OK)
        return status;
    if (call->in[0]->dtype.code == 5)
        return reduce_complex(call->in[0], call->out[0], goes);
    return reduce(call->in[0], call->out[0], SUM, goes);
}

tn_status tn__amax(const tn_call *call)
{
    const tn_amax_options *options = call->options;
    bool goes[TN_MAX_DIMS];
    tn_status status = chosen(call, options->dims, goes);
    if (status != TN_OK)
        return status;
    int64_t gone = 1, kept = 1;
    for (int32_t i = 0; i < call->in[0]->ndim; i++)
        *(goes[i] ? &gone : &kept) *= call->in[0]->shape[i];
    if (gone == 0 && kept > 0)
        return tn_fail(TN_ERR_VALUE, "%s: there is no largest of no elements", call->op);
    return reduce(call->in[0], call->out[0], MAX, goes);
}

tn_status tn__argmax(const tn_call *call)
{
    const tn_argmax_options *options = call->options;
    int64_t dim = options->dim;
    bool goes[TN_MAX_DIMS];
    tn_status status = chosen(call, dim == INT64_MIN ? tn_no_ints() : (tn_ints){ &dim, 1 }, goes);
    if (status != TN_OK)
        return status;
    int64_t gone = 1, kept = 1;
    for (int32_t i = 0; i < call->in[0]->ndim; i++)
        *(goes[i] ? &gone : &kept) *= call->in[0]->shape[i];
    if (gone == 0 && kept > 0)
        return tn_fail(TN_ERR_VALUE, "%s: there is no largest of no elements", call->op);
    return reduce(call->in[0], call->out[0], ARGMAX, goes);
}

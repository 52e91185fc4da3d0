/* SPDX-License-Identifier: MIT
 *
 * Reductions over any dimensions of any layout. The elements of a result are divided into segments
 * of about SUPER elements, which are computed in parallel; the results of the segments are then
 * combined in order. The segments depend on shape and layout alone, not on the threads. */
#include <math.h>
#include <string.h>

#include "base/span.h"
#include "op/reduction.h"
#include "op/reduction_prepare.h"
#include "simd/simd.h"

/* The combined elements, f for floats or i for integers. `at` is the index of the largest or
 * smallest element, -1 before the first element. NaN counts as largest and as smallest. */
struct extreme {
    double f;
    int64_t i;
    int64_t at;
};

enum {
    SUPER = 65536,  /* elements of one result in a segment */
    BLOCK = 4096,   /* elements that are converted or prepared at a time */
    COLUMNS = 1024, /* maximum number of neighbouring results that are computed together */
    DEEP = 32,      /* rows of columns that one call of a loop adds */
    PIECES = 8,     /* approximate number of pieces of a large reduction of columns */
    GRAIN = 24576   /* minimum number of elements for one thread */
};

/* A reduction, whose dimensions form two spans: the kept dimensions and the reduced dimensions. */
struct job {
    const struct tn__reduction *r;
    tn_dtype from, to;
    enum tn__ct ct;     /* the compute type of the elements */
    int64_t item, size; /* bytes of an element of x, of a number of ct */
    bool plain;         /* x has the compute type */
    tn__load *load;
    /* the largest or smallest of contiguous elements that are not converted; NULL: convert */
    int64_t (*narrow)(int64_t n, const void *x);
    struct tn__span kept;    /* dimensions that are kept; operand 0: y, 1: x */
    struct tn__span gone;    /* dimensions that are reduced; operand 0: x (base unused) */
    int64_t supers;          /* segments of a result */
    int64_t super;           /* elements of a segment */
    int64_t columns;         /* results computed together; 0: one at a time */
    int64_t groups;          /* number of results, or of blocks of columns */
    struct extreme *partial; /* [supers][kept.count]; NULL if there is one segment */
};

/* ---- combining results ----------------------------------------------------------------------- */

static void start(const struct job *job, struct extreme *at)
{
    at->f = job->r->what == TN__FOLD_PROD ? 1 : 0;
    at->i = job->r->what == TN__FOLD_PROD ? 1 : 0;
    at->at = -1;
}

/* Combines `all` with `more`, the result of elements that follow those of `all`. */
static void add_result(const struct job *job, struct extreme *all, const struct extreme *more)
{
    bool whole = job->ct == TN__I64, better;
    if (more->at < 0)
        return;
    switch (job->r->what) {
    case TN__FOLD_SUM:
    case TN__FOLD_SQUARES:
        all->f = all->at < 0 ? more->f : all->f + more->f;
        all->i = (int64_t)((uint64_t)all->i + (uint64_t)more->i);
        all->at = 0;
        return;
    case TN__FOLD_PROD:
        all->f *= more->f;
        all->i = (int64_t)((uint64_t)all->i * (uint64_t)more->i);
        all->at = 0;
        return;
    case TN__FOLD_MAX:
    case TN__FOLD_ARGMAX: better = whole ? more->i > all->i : more->f > all->f; break;
    default: better = whole ? more->i < all->i : more->f < all->f; break;
    }
    if (all->at < 0 || better || (!whole && more->f != more->f && all->f == all->f))
        *all = *more;
}

static double (*sum_f32(const struct job *job))(int64_t, const float *)
{
    return job->r->before == TN__NO_NAN ? tn__simd.reduction->nansum_f32
                                        : tn__simd.reduction->sum_f32;
}

/* Returns whether the loops for contiguous elements need no change of the elements first. */
static bool as_they_are(const struct job *job)
{
    return job->r->before == TN__AS_IT_IS || job->r->before == TN__NO_NAN;
}

/* Combines `all` with n contiguous numbers, the first of which has index `first`. */
static void take_block(const struct job *job, int64_t n, const void *x, int64_t first,
                       struct extreme *all)
{
    struct extreme out = { 0, 0, first };
    union tn__number number = { .i = 0 };
    enum tn__fold what = job->r->what;
    if (n <= 0)
        return;
    switch (what) {
    case TN__FOLD_SUM:
        if (job->ct == TN__F32)
            out.f = sum_f32(job)(n, x);
        else if (job->ct == TN__F64)
            out.f = job->r->before == TN__NO_NAN ? tn__simd.reduction->nansum_f64(n, x)
                                                 : tn__simd.reduction->sum_f64(n, x);
        else
            out.i = tn__simd.reduction->sum_i64(n, x);
        add_result(job, all, &out);
        return;
    case TN__FOLD_SQUARES: /* BLOCK at a time, because dot_f32 loses precision in long sums */
        for (int64_t at = 0; at < n; at += BLOCK) {
            int64_t count = n - at < BLOCK ? n - at : BLOCK;
            out.f = job->ct == TN__F32 ? (double)tn__simd.gemm->dot_f32(
                                             count, (const float *)x + at, (const float *)x + at)
                                       : tn__simd.gemm->dot_f64(count, (const double *)x + at,
                                                                (const double *)x + at);
            add_result(job, all, &out);
        }
        return;
    case TN__FOLD_PROD: tn__simd.reduction->prod[job->ct](n, x, &number); break;
    case TN__FOLD_MAX:
    case TN__FOLD_ARGMAX: tn__simd.reduction->max[job->ct](n, x, &number); break;
    case TN__FOLD_MIN:
    case TN__FOLD_ARGMIN: tn__simd.reduction->min[job->ct](n, x, &number); break;
    }
    if (job->ct == TN__I64)
        out.i = number.i;
    else
        out.f = number.f;
    int64_t before = all->at;
    add_result(job, all, &out);
    /* Only argmax and argmin search the index, and only if this block has a better element. */
    if ((what == TN__FOLD_ARGMAX || what == TN__FOLD_ARGMIN) && all->at != before)
        all->at = first + tn__simd.reduction->find[job->ct](n, x, number);
    else if ((what == TN__FOLD_ARGMAX || what == TN__FOLD_ARGMIN) && before < 0)
        all->at = first;
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

/* Returns whether the elements of one result are contiguous. */
static bool contiguous(const struct job *job)
{
    const struct tn__span *gone = &job->gone;
    return gone->ndim == 0 || (gone->ndim == 1 && gone->stride[0][0] == job->item);
}

/* Computes elements [begin, end) of one result, whose first element is at x. */
static void take_segment(const struct job *job, char *x, int64_t begin, int64_t end, double from,
                         struct extreme *all)
{
    const struct tn__span *gone = &job->gone;
    bool in_a_row = job->plain && contiguous(job);
    float from_f32 = (float)from;
    const void *apart = job->ct == TN__F32 ? (const void *)&from_f32 : &from;
    start(job, all);
    if (job->narrow && contiguous(job)) {
        if (end > begin)
            *all = (struct extreme){ 0, job->narrow(end - begin, x + begin * job->item), begin };
        return;
    }
    if (in_a_row && as_they_are(job) && job->r->what < TN__FOLD_ARGMAX) {
        take_block(job, end - begin, x + begin * job->item, begin, all);
        return;
    }
    _Alignas(64) char numbers[BLOCK * 8];
    struct tn__span span = *gone;
    span.base[0] = x;
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t stop = end - at < BLOCK ? end : at + BLOCK;
        const void *here = x + at * job->item;
        if (!in_a_row) {
            struct gather gather = { job, numbers };
            tn__span_walk(&span, at, stop, gather_run, &gather);
            here = numbers;
        }
        here = tn__reduction_prepare(job->r, job->ct, stop - at, here, apart, 0, numbers);
        take_block(job, stop - at, here, at, all);
    }
}

static void write_result(const struct job *job, const struct extreme *all, int64_t index, char *y)
{
    const struct tn__reduction *r = job->r;
    double value = job->ct == TN__I64 && (r->finish || r->into) ? (double)all->i : all->f;
    if (r->what == TN__FOLD_ARGMAX || r->what == TN__FOLD_ARGMIN) {
        memcpy(y, &all->at, sizeof all->at);
        return;
    }
    if (r->finish)
        value = r->finish(r, value, r->from ? r->from[index] : 0);
    if (r->into) {
        r->into[index] = value;
    } else if (job->ct == TN__I64 && !r->finish) {
        tn__dtype_store(TN__I64, job->to)(1, &all->i, y, 0);
    } else if (job->to == TN_F32) {
        float f = (float)value;
        memcpy(y, &f, sizeof f);
    } else if (job->to == TN_F64) {
        memcpy(y, &value, sizeof value);
    } else {
        tn__dtype_store(TN__F64, job->to)(1, &value, y, 0);
    }
}

/* Sets *y to the address of result `index`, and *x to that of its first element. */
static void locate(const struct tn__span *kept, int64_t index, char **y, char **x)
{
    *y = kept->base[0];
    *x = kept->base[1];
    for (int32_t i = kept->ndim; i-- > 0;) {
        int64_t at = i > 0 ? index % kept->shape[i] : index;
        index = i > 0 ? index / kept->shape[i] : 0;
        *y += at * kept->stride[0][i];
        *x += at * kept->stride[1][i];
    }
}

/* Writes `count` consecutive results, from number `first` on. */
static void write_results(const struct job *job, int64_t count, const union tn__number *from,
                          int64_t first, char *y, int64_t step)
{
    if (!job->r->into && !job->r->finish) {
        tn__dtype_store(job->ct == TN__I64 ? TN__I64 : TN__F64, job->to)(count, from, y, step);
        return;
    }
    for (int64_t k = 0; k < count; k++, y += step) {
        bool whole = job->ct == TN__I64;
        struct extreme one = { whole ? 0 : from[k].f, whole ? from[k].i : 0, 0 };
        write_result(job, &one, first + k, y);
    }
}

/* ---- columns: neighbouring results computed together ----------------------------------------- */

struct columns {
    union tn__number all[COLUMNS];
    int64_t at[COLUMNS];
};

static void start_columns(const struct job *job, int64_t wide, struct columns *to)
{
    enum tn__fold what = job->r->what;
    bool more = what == TN__FOLD_MAX || what == TN__FOLD_ARGMAX,
         less = what == TN__FOLD_MIN || what == TN__FOLD_ARGMIN, product = what == TN__FOLD_PROD;
    union tn__number first;
    if (job->ct == TN__I64)
        first.i = more ? INT64_MIN : less ? INT64_MAX : product;
    else
        first.f = more ? -INFINITY : less ? INFINITY : product;
    for (int64_t j = 0; j < wide; j++)
        to->all[j] = first;
    memset(to->at, 0, (size_t)wide * sizeof *to->at);
}

/* Combines `to` with rows of `wide` contiguous numbers, `stride` bytes apart. Column j belongs to
 * result j; the first row has index `first`. */
static void take_rows(const struct job *job, int64_t rows, int64_t wide, const char *x,
                      int64_t stride, int64_t first, struct columns *to)
{
    enum tn__ct ct = job->ct;
    switch (job->r->what) {
    case TN__FOLD_SUM:
    case TN__FOLD_SQUARES: tn__simd.reduction->rows_sum[ct](rows, wide, x, stride, to->all); return;
    case TN__FOLD_PROD: tn__simd.reduction->rows_prod[ct](rows, wide, x, stride, to->all); return;
    case TN__FOLD_MAX: tn__simd.reduction->rows_max[ct](rows, wide, x, stride, to->all); return;
    case TN__FOLD_MIN: tn__simd.reduction->rows_min[ct](rows, wide, x, stride, to->all); return;
    case TN__FOLD_ARGMAX:
        tn__simd.reduction->rows_argmax[ct](rows, wide, x, stride, to->all, to->at, first);
        return;
    case TN__FOLD_ARGMIN:
        tn__simd.reduction->rows_argmin[ct](rows, wide, x, stride, to->all, to->at, first);
        return;
    }
}

/* Like take_rows(), but through a buffer: for elements that are converted or changed first. */
static void take_rows_prepared(const struct job *job, int64_t rows, int64_t wide, const char *x,
                               int64_t stride, int64_t step, int64_t first, const void *from,
                               struct columns *to)
{
    static const double none[3] = { 0, 0, 0 };
    _Alignas(64) char numbers[BLOCK * 8];
    int64_t size = job->size, line = wide * size;
    int64_t most = (int64_t)sizeof numbers / line;
    if (most > 4) /* a multiple of 4, because the loops add four rows at a time */
        most -= most % 4;
    for (int64_t at = 0; at < rows; at += most) {
        int64_t deep = rows - at < most ? rows - at : most;
        for (int64_t i = 0; i < deep; i++) {
            const char *row = x + (at + i) * stride;
            char *here = numbers + i * line;
            job->load(wide, row, step, here);
            tn__reduction_prepare(job->r, job->ct, wide, here, from, size, here);
            if (job->r->what == TN__FOLD_SQUARES)
                tn__loop_of(TN__EW_mul, job->ct)(wide, here, size, here, size, here, size, none);
        }
        take_rows(job, deep, wide, numbers, line, first + at, to);
    }
}

static void take_columns(const struct job *job, int64_t first, int64_t wide, int64_t begin,
                         int64_t end, struct columns *to)
{
    const struct tn__span *gone = &job->gone;
    int64_t inner = gone->shape[gone->ndim - 1], stride = gone->stride[0][gone->ndim - 1],
            step = job->kept.stride[1][job->kept.ndim - 1];
    bool direct = job->plain && step == job->item && job->r->before == TN__AS_IT_IS &&
                  job->r->what != TN__FOLD_SQUARES;
    int narrow = step == job->item && job->r->before == TN__AS_IT_IS && job->r->what == TN__FOLD_SUM
                     ? tn__float16_index(job->from)
                     : -1;
    float from_f32[COLUMNS];
    const void *from = NULL;
    char *y, *x;
    locate(&job->kept, first, &y, &x);
    if (job->r->from) {
        from = job->r->from + first;
        for (int64_t j = 0; j < wide; j++)
            from_f32[j] = (float)job->r->from[first + j];
        if (job->ct == TN__F32)
            from = from_f32;
    }
    start_columns(job, wide, to);
    for (int64_t at = begin; at < end;) {
        int64_t rest = at / inner, rows = inner - at % inner, offset = at % inner * stride;
        if (rows > end - at)
            rows = end - at;
        for (int32_t i = gone->ndim - 1; i-- > 0;) {
            offset += rest % gone->shape[i] * gone->stride[0][i];
            rest /= gone->shape[i];
        }
        for (int64_t i = 0; direct && i < rows; i += DEEP)
            take_rows(job, rows - i < DEEP ? rows - i : DEEP, wide, x + offset + i * stride, stride,
                      at + i, to);
        if (narrow >= 0)
            tn__simd.float16->rows_sum[narrow](rows, wide, x + offset, stride, (double *)to->all);
        else if (!direct)
            take_rows_prepared(job, rows, wide, x + offset, stride, step, at, from, to);
        at += rows;
    }
}

/* ---- pieces of work -------------------------------------------------------------------------- */

static void do_group(struct job *job, int64_t group, int64_t super)
{
    int64_t begin = super * job->super, end = begin + job->super;
    char *y, *x;
    if (end > job->gone.count)
        end = job->gone.count;
    if (job->columns == 0) {
        struct extreme all;
        locate(&job->kept, group, &y, &x);
        take_segment(job, x, begin, end, job->r->from ? job->r->from[group] : 0, &all);
        if (job->partial)
            job->partial[super * job->kept.count + group] = all;
        else
            write_result(job, &all, group, y);
        return;
    }
    int64_t row = job->kept.shape[job->kept.ndim - 1],
            blocks = (row + job->columns - 1) / job->columns;
    int64_t column = group % blocks * job->columns, first = group / blocks * row + column;
    int64_t wide = row - column < job->columns ? row - column : job->columns;
    struct columns columns;
    take_columns(job, first, wide, begin, end, &columns);
    locate(&job->kept, first, &y, &x);
    if (!job->partial && job->r->what < TN__FOLD_ARGMAX) {
        write_results(job, wide, columns.all, first, y, job->kept.stride[0][job->kept.ndim - 1]);
        return;
    }
    for (int64_t i = 0; i < wide; i++, y += job->kept.stride[0][job->kept.ndim - 1]) {
        struct extreme one = { 0, 0, columns.at[i] };
        if (job->ct == TN__I64)
            one.i = columns.all[i].i;
        else
            one.f = columns.all[i].f;
        if (job->partial)
            job->partial[super * job->kept.count + first + i] = one;
        else
            write_result(job, &one, first + i, y);
    }
}

/* ---- rows: results whose elements are contiguous --------------------------------------------- */

enum { ROWS = 64 }; /* rows that are reduced before their results are written */

static bool has_rows(const struct job *job)
{
    return job->columns == 0 && job->supers == 1 && job->super > 0 &&
           (job->plain || job->narrow || job->super <= BLOCK) && as_they_are(job) &&
           job->r->what < TN__FOLD_ARGMAX && contiguous(job);
}

/* Reduces `count` rows, `step` bytes apart, each to one of `to`. Rows that do not have the compute
 * type are converted in a buffer. */
static void fold_rows(const struct job *job, int64_t count, const char *row, int64_t step,
                      union tn__number *to)
{
    _Alignas(64) char buffer[BLOCK * 8];
    enum tn__fold what = job->r->what;
    int64_t n = job->gone.count;
    void (*fold)(int64_t, const void *,
                 union tn__number *) = what == TN__FOLD_PROD  ? tn__simd.reduction->prod[job->ct]
                                       : what == TN__FOLD_MAX ? tn__simd.reduction->max[job->ct]
                                       : what == TN__FOLD_MIN ? tn__simd.reduction->min[job->ct]
                                                              : NULL;
    int narrow = what == TN__FOLD_SQUARES && n <= BLOCK ? tn__float16_index(job->from) : -1;
    float (*squares)(int64_t, const void *) = narrow >= 0 ? tn__simd.float16->squares[narrow]
                                                          : NULL;
    for (int64_t k = 0; k < count; k++, row += step) {
        struct extreme all;
        const char *x = job->plain ? row : buffer;
        if (job->narrow) {
            to[k].i = job->narrow(n, row);
            continue;
        }
        if (squares) {
            to[k].f = (double)squares(n, row);
            continue;
        }
        if (!job->plain)
            job->load(n, row, job->item, buffer);
        if (fold) {
            fold(n, x, &to[k]);
        } else if (what == TN__FOLD_SUM && job->ct == TN__F32) {
            to[k].f = sum_f32(job)(n, (const float *)(const void *)x);
        } else {
            start(job, &all);
            take_block(job, n, x, 0, &all);
            to[k] = job->ct == TN__I64 ? (union tn__number){ .i = all.i }
                                       : (union tn__number){ .f = all.f };
        }
    }
}

static void do_rows(const struct job *job, int64_t begin, int64_t end)
{
    const struct tn__span *kept = &job->kept;
    int32_t inner = kept->ndim - 1;
    union tn__number numbers[ROWS];
    for (int64_t i = begin; i < end;) {
        char *y, *x;
        int64_t count = end - i < ROWS ? end - i : ROWS;
        int64_t left = inner >= 0 ? kept->shape[inner] - i % kept->shape[inner] : 1;
        if (count > left)
            count = left;
        locate(kept, i, &y, &x);
        fold_rows(job, count, x, inner >= 0 ? kept->stride[1][inner] : 0, numbers);
        write_results(job, count, numbers, i, y, inner >= 0 ? kept->stride[0][inner] : 0);
        i += count;
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    if (has_rows(job)) {
        do_rows(job, begin, end);
        return TN_OK;
    }
    for (int64_t i = begin; i < end; i++)
        do_group(job, job->supers > 1 ? i / job->supers : i, job->supers > 1 ? i % job->supers : 0);
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
        struct extreme all = job->partial[k];
        char *y, *x;
        const struct extreme *more = job->partial + job->kept.count + k;
        bool sums = job->r->what <= TN__FOLD_SQUARES && job->ct != TN__I64;
        for (int64_t s = 1; s < job->supers; s++, more += job->kept.count) {
            if (sums)
                all.f += more->f;
            else
                add_result(job, &all, more);
        }
        locate(&job->kept, k, &y, &x);
        write_result(job, &all, k, y);
    }
    tn_free(job->partial);
    return status;
}

/* ---- setting up ------------------------------------------------------------------------------ */

/* Sets up the spans of the kept and of the reduced dimensions. The reduced elements are walked in
 * the order of memory; for argmax and argmin in row-major order, which their indices count. */
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
    tn__span_make(&job->gone, 1, (const tn_view *[]){ &gx }, job->r->what >= TN__FOLD_ARGMAX);
}

/* Divides the work: by columns if the elements of neighbouring results are closer in memory than
 * those of one result, and into segments of the elements of each result. */
static void choose_pieces(struct job *job)
{
    const struct tn__span *kept = &job->kept, *gone = &job->gone;
    job->columns = 0;
    if (kept->ndim > 0 && kept->shape[kept->ndim - 1] >= 4 && gone->ndim > 0 && gone->count > 0 &&
        kept->stride[1][kept->ndim - 1] < gone->stride[0][gone->ndim - 1])
        job->columns = COLUMNS;
    job->super = SUPER;
    job->groups = kept->count;
    if (job->columns) {
        int64_t row = kept->shape[kept->ndim - 1], wide = row < COLUMNS ? row : COLUMNS;
        job->groups = kept->count / row * ((row + COLUMNS - 1) / COLUMNS);
        int64_t parts = gone->count * wide / SUPER, wanted = (PIECES - 1) / job->groups + 1;
        parts = parts < wanted ? parts : wanted;
        job->super = parts > 1 ? (gone->count + parts - 1) / parts : gone->count;
    }
    if (job->super > gone->count)
        job->super = gone->count;
    job->supers = job->super > 0 ? (gone->count + job->super - 1) / job->super : 1;
}

tn_status tn__reduction_strided(const struct tn__reduction *r, const tn_view *x, const tn_view *y,
                                const bool *goes)
{
    struct job job = {
        .r = r, .from = tn_view_dtype(x), .to = tn_view_dtype(y), .item = tn__view_item(x)
    };
    job.ct = tn__dtype_ct(job.from);
    job.size = (int64_t)tn__dtype_ct_size(job.ct);
    job.plain = job.from == tn__dtype_of_ct(job.ct);
    job.load = tn__dtype_load(job.from, job.ct);
    int narrow = r->before == TN__AS_IT_IS
                     ? tn__integers_index(job.from == TN_BOOL ? TN_U8 : job.from)
                     : -1;
    if (narrow >= 0 && (r->what == TN__FOLD_MAX || r->what == TN__FOLD_MIN))
        job.narrow = (r->what == TN__FOLD_MAX ? tn__simd.integers->max
                                              : tn__simd.integers->min)[narrow];
    make_spans(&job, x, y, goes);
    if (job.kept.count == 0)
        return TN_OK;
    choose_pieces(&job);
    return run_job(&job);
}

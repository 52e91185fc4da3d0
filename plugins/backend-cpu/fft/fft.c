/* SPDX-License-Identifier: MIT
 *
 * Fourier transforms along one dimension: fft_c2c, fft_r2c, fft_c2r. Many lines are transformed
 * together, each in an element of the vectors (columns), if their working set fits into a cache;
 * otherwise one line at a time. A transform of an even number of real numbers is computed as one of
 * half as many complex numbers. */
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"
#include "fft/single.h"
#include "simd/simd.h"

enum {
    GRAIN = 8192,           /* complex numbers */
    MOST_LANES = 16,        /* elements of the longest vector */
    CACHE = 128 << 10,      /* bytes of columns; with more, single transforms are faster */
    MOST_COLUMNS = 8 << 20, /* bytes of columns if the lines are not contiguous */
};

enum kind { COMPLEX, FROM_REAL, TO_REAL };

struct job {
    struct tn__lines lines; /* view 0: y, 1: x */
    const struct tn__fft_loops *loops;
    struct tn__fft_plan *plan;
    enum kind kind;
    bool halved;      /* a transform of real numbers as one of half as many complex numbers */
    int64_t n;        /* elements of the signal */
    int64_t m;        /* complex numbers that are transformed: n, or n / 2 if `halved` */
    int64_t spectrum; /* elements of the complex side: n, or n / 2 + 1 for real signals */
    int64_t part;     /* bytes of a real number */
    bool dense[2];    /* the elements of a line of y, of x are contiguous */
    int swap;         /* 1: the inverse transform */
    double scale;
};

/* ---- many lines together --------------------------------------------------------------------- */

/* The lines that are transformed together. Missing lines at the end are read as the last line. */
struct group {
    int64_t count;
    const char *x[MOST_LANES];
    char *y[MOST_LANES];
};

static struct group group_of(const struct job *job, int64_t index)
{
    int64_t lanes = job->loops->lanes, begin = index * lanes, left = job->lines.count - begin;
    struct group group = { .count = left < lanes ? left : lanes };
    for (int64_t i = 0; i < lanes; i++) {
        int64_t line = begin + (i < group.count ? i : group.count - 1);
        group.y[i] = tn__span_lines_at(&job->lines, 0, line);
        group.x[i] = tn__span_lines_at(&job->lines, 1, line);
    }
    return group;
}

/* Returns whether the lines are next to each other in memory. */
static bool adjacent(const char *const *line, int64_t lanes, int64_t item)
{
    for (int64_t i = 1; i < lanes; i++)
        if (line[i] != line[0] + i * item)
            return false;
    return true;
}

static void read_complex(const struct job *job, const struct group *group, int64_t n, void *to,
                         int swap)
{
    const struct tn__fft_loops *loops = job->loops;
    int64_t step = job->lines.step[1];
    if (job->dense[1])
        loops->read_rows(n, group->x, to, swap);
    else if (adjacent(group->x, loops->lanes, 2 * job->part))
        loops->read_columns(n, group->x[0], step, to, swap);
    else
        loops->read_strided(n, group->x, step, job->part, to, swap);
}

static void write_complex(const struct job *job, const struct group *group, int64_t n,
                          const void *from, int swap, double scale)
{
    const struct tn__fft_loops *loops = job->loops;
    int64_t step = job->lines.step[0];
    if (job->dense[0])
        loops->write_rows(n, group->count, group->y, from, swap, scale);
    else if (adjacent((const char *const *)group->y, loops->lanes, 2 * job->part))
        loops->write_columns(n, group->y[0], step, from, swap, scale);
    else
        loops->write_strided(n, group->count, group->y, step, job->part, from, swap, scale);
}

static void run_complex(const struct job *job, const struct group *group, void *a, void *b)
{
    read_complex(job, group, job->m, a, job->swap);
    a = job->loops->columns(&job->plan->columns, a, b);
    write_complex(job, group, job->m, a, job->swap, job->scale);
}

static void run_from_real(const struct job *job, const struct group *group, void *a, void *b)
{
    const struct tn__fft_loops *loops = job->loops;
    int64_t step = job->lines.step[1];
    void *z;
    if (!job->halved) {
        loops->read_strided(job->m, group->x, step, -1, a, 0);
        z = loops->columns(&job->plan->columns, a, b);
        write_complex(job, group, job->spectrum, z, 0, job->scale);
        return;
    }
    if (job->dense[1])
        loops->read_rows(job->m, group->x, a, 0);
    else
        loops->read_strided(job->m, group->x, 2 * step, step, a, 0);
    z = loops->columns(&job->plan->columns, a, b);
    b = z == a ? b : a;
    loops->split_columns(job->m, job->plan->halves, z, b);
    write_complex(job, group, job->spectrum, b, 0, job->scale / 2);
}

static void run_to_real(const struct job *job, const struct group *group, void *a, void *b)
{
    const struct tn__fft_loops *loops = job->loops;
    int64_t step = job->lines.step[0];
    if (!job->halved) {
        read_complex(job, group, job->spectrum, a, 1);
        loops->mirror_columns(job->n, a);
        a = loops->columns(&job->plan->columns, a, b);
        loops->write_strided(job->m, group->count, group->y, step, -1, a, 1, job->scale);
        return;
    }
    read_complex(job, group, job->spectrum, a, 0);
    loops->join_columns(job->m, job->plan->halves, a, b);
    a = loops->columns(&job->plan->columns, b, a);
    if (job->dense[0])
        loops->write_rows(job->m, group->count, group->y, a, 1, job->scale);
    else
        loops->write_strided(job->m, group->count, group->y, 2 * step, step, a, 1, job->scale);
}

/* Returns the bytes of the columns of one buffer. */
static int64_t columns_size(const struct job *job)
{
    int64_t rows = job->spectrum > job->m ? job->spectrum : job->m;
    return rows * job->loops->lanes * 2 * job->part;
}

static tn_status groups_part(void *user, int64_t begin, int64_t end)
{
    static void (*const run[])(const struct job *job, const struct group *group, void *a,
                               void *b) = { run_complex, run_from_real, run_to_real };
    const struct job *job = user;
    int64_t bytes = columns_size(job);
    char *a = tn__scratch_take(2 * (size_t)bytes);
    if (!a)
        return tn_error_last_code();
    for (int64_t i = begin; i < end; i++) {
        struct group group = group_of(job, i);
        run[job->kind](job, &group, a, a + bytes);
    }
    tn__scratch_give(a);
    return TN_OK;
}

/* ---- one line at a time ---------------------------------------------------------------------- */

/* Copies n elements of `item` bytes; `to_step` and `from_step` are in bytes, too. */
static void copy_line(int64_t n, int64_t item, char *to, int64_t to_step, const char *from,
                      int64_t from_step)
{
    for (int64_t i = 0; i < n; i++)
        switch (item) {
        case 4: memcpy(to + i * to_step, from + i * from_step, 4); break;
        case 8: memcpy(to + i * to_step, from + i * from_step, 8); break;
        default: memcpy(to + i * to_step, from + i * from_step, 16);
        }
}

/* Transforms a line. a and b are buffers for n + 1 complex numbers each, or NULL if lines_part()
 * finds that the line needs none. */
static tn_status run_line(const struct job *job, const char *x, char *y, char *a, char *b)
{
    int64_t item = 2 * job->part, sy = job->lines.step[0], sx = job->lines.step[1];
    /* The size of an element of x and y in bytes, and their number of elements. */
    int64_t of_x = job->kind == FROM_REAL ? job->part : item,
            of_y = job->kind == TO_REAL ? job->part : item,
            in_x = job->kind == TO_REAL ? job->spectrum : job->n,
            in_y = job->kind == FROM_REAL ? job->spectrum : job->n;
    bool odd = job->kind != COMPLEX && !job->halved;
    char *z = job->dense[0] && !odd ? y : b;
    tn_status status;

    if (odd && job->kind == FROM_REAL) {
        memset(a, 0, (size_t)(job->n * item));
        copy_line(in_x, of_x, a, item, x, sx);
        x = a;
    } else if (!job->dense[1]) {
        copy_line(in_x, of_x, a, of_x, x, sx);
        x = a;
    }
    if (job->kind == TO_REAL) {
        if (odd)
            job->loops->mirror_row(job->n, x, b);
        else
            job->loops->join_row(job->m, job->plan->halves, x, b);
        x = b;
    }
    status = tn__fft_single(job->plan, x, z, job->swap,
                            job->kind == FROM_REAL && !odd ? job->scale / 2 : job->scale);
    if (status != TN_OK)
        return status;
    if (job->kind == FROM_REAL && !odd)
        job->loops->split_row(job->m, job->plan->halves, z);
    if (z != y)
        copy_line(in_y, of_y, y, sy, z, odd ? item : of_y);
    return TN_OK;
}

static tn_status lines_part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    int64_t bytes = (job->n + 1) * 2 * job->part;
    bool needed = job->kind == TO_REAL || (job->kind == FROM_REAL && !job->halved) ||
                  !job->dense[0] || !job->dense[1];
    char *a = needed ? tn__scratch_take(2 * (size_t)bytes) : NULL;
    tn_status status = TN_OK;
    if (needed && !a)
        return tn_error_last_code();
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = run_line(job, tn__span_lines_at(&job->lines, 1, i),
                          tn__span_lines_at(&job->lines, 0, i), a, needed ? a + bytes : NULL);
    tn__scratch_give(a);
    return status;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static bool run_together(const struct job *job)
{
    int64_t lanes = job->loops->lanes, groups = (job->lines.count + lanes - 1) / lanes;
    bool dense = job->dense[0] && job->dense[1];
    if (!tn__fft_smooth(job->m) || columns_size(job) >= (dense ? CACHE : MOST_COLUMNS))
        return false;
    return groups * lanes * job->m * 2 <= job->lines.count * tn__fft_split_cost(job->m, lanes);
}

static tn_status run(const tn_call *call, enum kind kind, int64_t dim, bool inverse, double scale)
{
    const tn_view *views[2] = { call->out[0], call->in[0] };
    const tn_view *signal = views[kind == FROM_REAL];
    struct job job = { .kind = kind, .swap = inverse, .scale = scale };
    tn_dtype dtype = tn_view_dtype(call->in[0]);
    tn_dtype part = dtype == TN_F32 || dtype == TN_C64 ? TN_F32 : TN_F64;
    bool together;
    tn_status status;

    tn__span_lines_make(&job.lines, 2, views, dim);
    if (job.lines.count == 0)
        return TN_OK;
    job.n = signal->shape[dim < 0 ? dim + signal->ndim : dim];
    job.halved = kind != COMPLEX && job.n % 2 == 0;
    job.m = job.halved ? job.n / 2 : job.n;
    job.spectrum = kind == COMPLEX ? job.n : job.n / 2 + 1;
    job.part = (int64_t)tn_dtype_size(part);
    for (int i = 0; i < 2; i++)
        job.dense[i] = job.lines.step[i] == tn__view_item(views[i]);
    job.loops = tn__simd.fft->of[part == TN_F64];
    together = run_together(&job);
    job.plan = tn__fft_plan_take(job.m, part, job.halved,
                                 together ? TN__FFT_TOGETHER : TN__FFT_SINGLE);
    if (!job.plan)
        return tn_error_last_code();
    if (together) {
        int64_t lanes = job.loops->lanes, groups = (job.lines.count + lanes - 1) / lanes;
        status = tn_parallel_for(groups, GRAIN / (job.m * lanes) + 1, groups_part, &job);
    } else if (job.lines.count < tn_num_threads()) {
        status = lines_part(&job, 0, job.lines.count); /* threads share each line */
    } else {
        status = tn_parallel_for(job.lines.count, GRAIN / job.m + 1, lines_part, &job);
    }
    tn__fft_plan_give(job.plan);
    return status;
}

static tn_status run_fft_c2c(const tn_call *call)
{
    const tn_fft_c2c_options *o = call->options;
    return run(call, COMPLEX, o->dim, o->inverse, o->scale);
}

static tn_status run_fft_r2c(const tn_call *call)
{
    const tn_fft_r2c_options *o = call->options;
    return run(call, FROM_REAL, o->dim, false, o->scale);
}

static tn_status run_fft_c2r(const tn_call *call)
{
    const tn_fft_c2r_options *o = call->options;
    return run(call, TO_REAL, o->dim, true, o->scale);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(fft_c2c, TN_MASK_COMPLEX),
    TN__KERNEL(fft_r2c, TN_MASK_COMPLEX),
    TN__KERNEL(fft_c2r, TN__F32_F64),
};
TN__KERNEL_TABLE(fft);

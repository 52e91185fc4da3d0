/* SPDX-License-Identifier: MIT
 *
 * cumsum and cumprod: running sums and products along a dimension, computed in float64 for floats
 * and in int64 for integers. Contiguous lines are computed one by one or eight together; if the
 * dimension is strided, many neighbouring lines together. */
#include <string.h>

#include "base/dtype.h"
#include "base/kernel.h"
#include "base/span.h"
#include "base/vectorize.h"
#include "op/scan_pieces.h"

struct job {
    struct tn__lines lines; /* view 0: y, 1: x */
    tn__load *load, *load_f32;
    tn__store *store, *store_f32;
    bool sums;   /* sums of contiguous int64 */
    bool narrow; /* lines of float16 or bfloat16; set only with `together` */
    bool whole, product, reverse, plain; /* plain: sums of float32 by sums_f32() */
    bool together;                       /* LINES contiguous lines at a time */
    struct tn__scan_pieces pieces;
};

union numbers {
    double f[TN__CHUNK];
    int64_t i[TN__CHUNK];
};

/* ---- one line -------------------------------------------------------------------------------- */

/* Running sums of float32, four elements in an iteration, so that only one addition in each
 * iteration must wait for the previous iteration. */
static void sums_f32(int64_t n, const char *x, int64_t sx, char *y, int64_t sy)
{
    double all = 0;
    for (int64_t i = 0; i < n; i += 4) {
        float in[4] = { 0 }, out[4];
        int64_t count = n - i < 4 ? n - i : 4;
        for (int64_t j = 0; j < count; j++)
            memcpy(&in[j], x + (i + j) * sx, sizeof in[j]);
        double two = (double)in[0] + (double)in[1], four = two + ((double)in[2] + (double)in[3]);
        out[0] = (float)(all + (double)in[0]);
        out[1] = (float)(all + two);
        out[2] = (float)(all + (two + (double)in[2]));
        all += four;
        out[3] = (float)all;
        for (int64_t j = 0; j < count; j++)
            memcpy(y + (i + j) * sy, &out[j], sizeof out[j]);
    }
}

#define SCAN(expr, member, all)                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                              \
        int64_t at = job->reverse ? n - 1 - i : i;                                                 \
        all = expr;                                                                                \
        x->member[at] = all;                                                                       \
    }

static void scan_chunk(const struct job *job, int64_t n, union numbers *x, double *f, int64_t *i64)
{
    double a = *f;
    uint64_t b = (uint64_t)*i64;
    if (!job->whole && job->product)
        SCAN(a * x->f[at], f, a)
    else if (!job->whole)
        SCAN(a + x->f[at], f, a)
    else if (job->product)
        for (int64_t i = 0; i < n; i++)
            x->i[i] = (int64_t)(b *= (uint64_t)x->i[i]);
    else
        for (int64_t i = 0; i < n; i++) {
            int64_t at = job->reverse ? n - 1 - i : i;
            x->i[at] = (int64_t)(b += (uint64_t)x->i[at]);
        }
    *f = a;
    *i64 = (int64_t)b;
}

static void scan_line(const struct job *job, int64_t line)
{
    int64_t n = job->lines.length, sy = job->lines.step[0], sx = job->lines.step[1];
    char *y = tn__span_lines_at(&job->lines, 0, line), *x = tn__span_lines_at(&job->lines, 1, line);
    union numbers numbers;
    double f = job->product ? 1 : 0;
    int64_t i = job->product ? 1 : 0;
    if (job->plain && job->reverse) {
        sums_f32(n, x + (n - 1) * sx, -sx, y + (n - 1) * sy, -sy);
        return;
    }
    if (job->plain) {
        sums_f32(n, x, sx, y, sy);
        return;
    }
    if (job->sums) {
        uint64_t sum = 0;
        for (int64_t k = 0; k < n; k++) {
            int64_t at = job->reverse ? n - 1 - k : k;
            sum += ((const uint64_t *)(const void *)x)[at];
            ((uint64_t *)(void *)y)[at] = sum;
        }
        return;
    }
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        int64_t at = job->reverse ? n - done - count : done;
        job->load(count, x + at * sx, sx, &numbers);
        scan_chunk(job, count, &numbers, &f, &i);
        job->store(count, &numbers, y + at * sy, sy);
    }
}

/* ---- several contiguous lines together ------------------------------------------------------- */

/* Contiguous lines of float32 and float64 are computed LINES at a time, because additions of
 * different lines need not wait for each other. */
enum { LINES = 8 };
#define TEMPLATE "op/scan_template.h"
#include "base/for_floats.h"

/* Computes lines [line, line + lines), at most LINES. Lines of float16 and bfloat16 are converted
 * to float32 in chunks. */
static void scan_narrow_lines(const struct job *job, int64_t line, int64_t lines)
{
    float numbers[LINES][TN__CHUNK] = { { 0 } };
    double state[LINES];
    char *rows[LINES];
    int64_t n = job->lines.length, step = job->reverse ? -1 : 1;
    for (int64_t k = 0; k < LINES; k++) {
        state[k] = job->product ? 1 : 0;
        rows[k] = (char *)numbers[k];
    }
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        int64_t at = 2 * (job->reverse ? n - done - count : done);
        for (int64_t k = 0; k < lines; k++)
            job->load_f32(count, tn__span_lines_at(&job->lines, 1, line + k) + at, 2, numbers[k]);
        (job->product ? multiply_lines_f32 : add_lines_f32)(count, step, (const char *const *)rows,
                                                            rows, state);
        for (int64_t k = 0; k < lines; k++)
            job->store_f32(count, numbers[k], tn__span_lines_at(&job->lines, 0, line + k) + at, 2);
    }
}

/* Computes lines [line, line + LINES). */
static void scan_lines(const struct job *job, int64_t line)
{
    const char *x[LINES];
    char *y[LINES];
    double state[LINES];
    int64_t n = job->lines.length, step = job->reverse ? -1 : 1;
    for (int64_t k = 0; k < LINES; k++) {
        y[k] = tn__span_lines_at(&job->lines, 0, line + k);
        x[k] = tn__span_lines_at(&job->lines, 1, line + k);
        state[k] = job->product ? 1 : 0;
    }
    if (job->lines.step[0] == (int64_t)sizeof(float))
        (job->product ? multiply_lines_f32 : add_lines_f32)(n, step, x, y, state);
    else
        (job->product ? multiply_lines_f64 : add_lines_f64)(n, step, x, y, state);
}

/* ---- neighbouring lines of a strided dimension together -------------------------------------- */

static void scan_block(const struct job *job, int64_t block)
{
    const struct tn__lines *lines = &job->lines;
    int32_t inner = lines->ndim - 1;
    int64_t wide, line = tn__scan_pieces_block(&job->pieces, lines, block, &wide);
    int64_t n = lines->length;
    char *y = tn__span_lines_at(lines, 0, line), *x = tn__span_lines_at(lines, 1, line);
    union numbers all, here;
    for (int64_t j = 0; j < wide; j++) {
        if (job->whole)
            all.i[j] = job->product ? 1 : 0;
        else
            all.f[j] = job->product ? 1 : 0;
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t at = job->reverse ? n - 1 - k : k;
        job->load(wide, x + at * lines->step[1], lines->stride[1][inner], &here);
        if (!job->whole && job->product)
            for (int64_t j = 0; j < wide; j++)
                all.f[j] *= here.f[j];
        else if (!job->whole)
            for (int64_t j = 0; j < wide; j++)
                all.f[j] += here.f[j];
        else if (job->product)
            for (int64_t j = 0; j < wide; j++)
                all.i[j] = (int64_t)((uint64_t)all.i[j] * (uint64_t)here.i[j]);
        else
            for (int64_t j = 0; j < wide; j++)
                all.i[j] = (int64_t)((uint64_t)all.i[j] + (uint64_t)here.i[j]);
        job->store(wide, &all, y + at * lines->step[0], lines->stride[0][inner]);
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    for (int64_t i = begin; i < end; i++) {
        if (job->pieces.blocks > 0)
            scan_block(job, i);
        else if (job->narrow)
            scan_narrow_lines(job, i * LINES,
                              job->lines.count - i * LINES < LINES ? job->lines.count - i * LINES
                                                                   : LINES);
        else if (job->together && (i + 1) * LINES <= job->lines.count)
            scan_lines(job, i * LINES);
        else if (job->together)
            for (int64_t line = i * LINES; line < job->lines.count; line++)
                scan_line(job, line);
        else
            scan_line(job, i);
    }
    return TN_OK;
}

static tn_status run(const tn_call *call, int64_t dim, bool product, bool reverse)
{
    const tn_view *views[2] = { call->out[0], call->in[0] };
    tn_dtype to = tn_view_dtype(call->out[0]), from = tn_view_dtype(call->in[0]);
    struct job job = { .product = product, .reverse = reverse };
    bool narrow = tn__dtype_is_narrow(from);
    job.whole = (TN_MASK_FLOAT & TN_BIT(to)) == 0;
    enum tn__ct ct = job.whole ? TN__I64 : TN__F64;
    job.load = tn__dtype_load(from, ct);
    job.store = tn__dtype_store(ct, to);
    job.plain = !product && from == TN_F32 && to == TN_F32;
    tn__span_lines_make(&job.lines, 2, views, dim);
    struct tn__lines *lines = &job.lines;
    if (lines->count == 0 || lines->length == 0)
        return TN_OK;
    job.pieces = tn__scan_pieces_of(lines);
    job.sums = !product && from == TN_I64 && to == TN_I64 && lines->step[0] == 8 &&
               lines->step[1] == 8;
    if (job.pieces.blocks == 0 && from == to && (from == TN_F32 || from == TN_F64 || narrow) &&
        lines->count >= LINES && lines->step[0] == tn__view_item(views[0]) &&
        lines->step[1] == lines->step[0]) {
        job.together = true;
        job.narrow = narrow;
        job.load_f32 = tn__dtype_load(from, TN__F32);
        job.store_f32 = tn__dtype_store(TN__F32, to);
        job.plain = false; /* sums_f32() adds in another order than scan_lines() */
        job.pieces.count = (lines->count + LINES - 1) / LINES;
        job.pieces.size = lines->length * LINES;
    }
    return tn__scan_pieces_run(&job.pieces, part, &job);
}

static tn_status run_cumsum(const tn_call *call)
{
    const tn_cumsum_options *o = call->options;
    return run(call, o->dim, false, o->reverse);
}

static tn_status run_cumprod(const tn_call *call)
{
    const tn_cumprod_options *o = call->options;
    return run(call, o->dim, true, false);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(cumsum, TN__REALS_BOOL),
    TN__KERNEL(cumprod, TN__REALS_BOOL),
};
TN__KERNEL_TABLE(scan);

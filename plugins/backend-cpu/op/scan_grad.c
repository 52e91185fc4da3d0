/* SPDX-License-Identifier: MIT
 *
 * cumprod_grad without a division. The gradient of element k is the product of x[0] ... x[k - 1],
 * times S[k] = gy[k] + x[k + 1] S[k + 1]. The first step writes the products in float64, as they
 * may be far below the numbers of x, the second multiplies them by the sums. A zero ends both:
 * whatever follows it, even an infinity or NaN, has no part in what comes before, and has the
 * gradient 0. */
#include <string.h>

#include "base/dtype.h"
#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"
#include "base/vectorize.h"
#include "op/scan_pieces.h"

/* Lines are computed LINES at a time, because the steps of different lines need not wait for each
 * other. */
enum { LINES = 8, GX = 0, GY = 1, X = 2 };
/* The longest lines of which LINES are computed together: their products take 4 MiB. */
enum { LONGEST = 1 << 16 };
#define TEMPLATE "op/scan_grad_template.h"
#include "base/for_floats.h"

struct job {
    struct tn__lines lines;
    tn__load *load, *load_f32;
    tn__store *store, *store_f32;
    enum { ONE, DIRECT, NARROW } form; /* DIRECT: contiguous lines of float32 or float64 */
    struct tn__scan_pieces pieces;
};

static char *line_at(const struct job *job, int32_t view, int64_t line)
{
    return tn__span_lines_at(&job->lines, view, line);
}

/* ---- one line -------------------------------------------------------------------------------- */

static void one_line(const struct job *job, int64_t line, double *before)
{
    double gy[TN__CHUNK], x[TN__CHUNK], gx[TN__CHUNK], state = 1;
    const char *gradient = (const char *)gy, *from = (const char *)x;
    char *to = (char *)gx, *at[3];
    const int64_t *step = job->lines.step, n = job->lines.length;
    for (int32_t k = 0; k < 3; k++)
        at[k] = line_at(job, k, line);
    for (int64_t done = 0, count; done < n; done += count) {
        count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        job->load(count, at[X] + done * step[X], step[X], x);
        products_f64(count, &from, before + done, &state, 1);
    }
    state = 0;
    for (int64_t end = n, count; end > 0; end -= count) {
        count = end < TN__CHUNK ? end : TN__CHUNK;
        job->load(count, at[GY] + (end - count) * step[GY], step[GY], gy);
        job->load(count, at[X] + (end - count) * step[X], step[X], x);
        sums_f64(count, &gradient, &from, before + end - count, &to, &state, 1);
        job->store(count, gx, at[GX] + (end - count) * step[GX], step[GX]);
    }
}

/* ---- several lines together ------------------------------------------------------------------ */

static void lines_direct(const struct job *job, int64_t line, double *before)
{
    const char *gradient[LINES], *from[LINES];
    char *to[LINES];
    double state[LINES];
    const bool single = job->lines.step[GX] == (int64_t)sizeof(float);
    for (int64_t k = 0; k < LINES; k++) {
        gradient[k] = line_at(job, GY, line + k);
        from[k] = line_at(job, X, line + k);
        to[k] = line_at(job, GX, line + k);
        state[k] = 1;
    }
    (single ? products_together_f32 : products_together_f64)(job->lines.length, from, before,
                                                             state);
    for (int64_t k = 0; k < LINES; k++)
        state[k] = 0;
    (single ? sums_together_f32 : sums_together_f64)(job->lines.length, gradient, from, before, to,
                                                     state);
}

/* Converts elements [at, at + count) of LINES lines of a view to float32. */
static void load_lines(const struct job *job, int32_t view, int64_t line, int64_t at, int64_t count,
                       float numbers[LINES][TN__CHUNK])
{
    const int64_t step = job->lines.step[view];
    for (int64_t k = 0; k < LINES; k++)
        job->load_f32(count, line_at(job, view, line + k) + at * step, step, numbers[k]);
}

static void store_lines(const struct job *job, int64_t line, int64_t at, int64_t count,
                        float numbers[LINES][TN__CHUNK])
{
    const int64_t step = job->lines.step[GX];
    for (int64_t k = 0; k < LINES; k++)
        job->store_f32(count, numbers[k], line_at(job, GX, line + k) + at * step, step);
}

/* Lines of float16 and bfloat16 are converted to float32 in chunks. */
static void lines_narrow(const struct job *job, int64_t line, double *before)
{
    float gy[LINES][TN__CHUNK], x[LINES][TN__CHUNK], gx[LINES][TN__CHUNK];
    const char *gradient[LINES], *from[LINES];
    char *to[LINES];
    double state[LINES];
    const int64_t n = job->lines.length;
    for (int64_t k = 0; k < LINES; k++) {
        gradient[k] = (const char *)gy[k];
        from[k] = (const char *)x[k];
        to[k] = (char *)gx[k];
        state[k] = 1;
    }
    for (int64_t done = 0, count; done < n; done += count) {
        count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        load_lines(job, X, line, done, count, x);
        products_together_f32(count, from, before + done * LINES, state);
    }
    for (int64_t k = 0; k < LINES; k++)
        state[k] = 0;
    for (int64_t end = n, count; end > 0; end -= count) {
        count = end < TN__CHUNK ? end : TN__CHUNK;
        load_lines(job, GY, line, end - count, count, gy);
        load_lines(job, X, line, end - count, count, x);
        sums_together_f32(count, gradient, from, before + (end - count) * LINES, to, state);
        store_lines(job, line, end - count, count, gx);
    }
}

/* ---- neighbouring lines of a strided dimension together -------------------------------------- */

static void block_of_lines(const struct job *job, int64_t block, double *before)
{
    const struct tn__lines *lines = &job->lines;
    const int32_t inner = lines->ndim - 1;
    int64_t wide, line = tn__scan_pieces_block(&job->pieces, lines, block, &wide);
    double all[TN__SCAN_SIDE], gy[TN__SCAN_SIDE], x[TN__SCAN_SIDE], gx[TN__SCAN_SIDE];
    char *at[3];
    int64_t step[3];
    for (int32_t k = 0; k < 3; k++) {
        at[k] = line_at(job, k, line);
        step[k] = lines->stride[k][inner];
    }
    for (int64_t j = 0; j < wide; j++)
        all[j] = 1;
    for (int64_t i = 0; i < lines->length; i++) {
        memcpy(before + i * wide, all, (size_t)wide * sizeof *all);
        job->load(wide, at[X] + i * lines->step[X], step[X], x);
        for (int64_t j = 0; j < wide; j++)
            all[j] = all[j] == 0 ? 0 : all[j] * x[j];
    }
    for (int64_t j = 0; j < wide; j++)
        all[j] = 0;
    for (int64_t i = lines->length - 1; i >= 0; i--) {
        job->load(wide, at[GY] + i * lines->step[GY], step[GY], gy);
        job->load(wide, at[X] + i * lines->step[X], step[X], x);
        const double *products = before + i * wide;
        for (int64_t j = 0; j < wide; j++) {
            const double sum = gy[j] + all[j], rest = x[j] * sum, product = products[j] * sum;
            all[j] = x[j] == 0 ? 0 : rest;
            gx[j] = products[j] == 0 ? 0 : product;
        }
        job->store(wide, gx, at[GX] + i * lines->step[GX], step[GX]);
    }
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    const int64_t together = job->pieces.blocks > 0 ? TN__SCAN_SIDE : job->form == ONE ? 1 : LINES;
    double *before = tn__scratch_take((size_t)(job->lines.length * together) * sizeof *before);
    if (!before)
        return TN_ERR_MEMORY;
    for (int64_t i = begin; i < end; i++) {
        if (job->pieces.blocks > 0)
            block_of_lines(job, i, before);
        else if (job->form == ONE)
            one_line(job, i, before);
        else if ((i + 1) * LINES > job->lines.count)
            for (int64_t line = i * LINES; line < job->lines.count; line++)
                one_line(job, line, before);
        else if (job->form == DIRECT)
            lines_direct(job, i * LINES, before);
        else
            lines_narrow(job, i * LINES, before);
    }
    tn__scratch_give(before);
    return TN_OK;
}

static tn_status run_cumprod_grad(const tn_call *call)
{
    const tn_view *views[3] = { [GX] = call->out[0], [GY] = call->in[0], [X] = call->in[1] };
    const int64_t item = tn__view_item(views[GX]);
    tn_dtype dtype = tn_view_dtype(views[GX]);
    struct job job = { .load = tn__dtype_load(dtype, TN__F64),
                       .store = tn__dtype_store(TN__F64, dtype),
                       .load_f32 = tn__dtype_load(dtype, TN__F32),
                       .store_f32 = tn__dtype_store(TN__F32, dtype) };
    struct tn__lines *lines = &job.lines;
    tn__span_lines_make(lines, 3, views, ((const tn_cumprod_grad_options *)call->options)->dim);
    if (lines->count == 0 || lines->length == 0)
        return TN_OK;
    job.pieces = tn__scan_pieces_of(lines);
    if (job.pieces.blocks == 0 && lines->count >= LINES && lines->length <= LONGEST) {
        if (tn__dtype_is_narrow(dtype))
            job.form = NARROW;
        else if (lines->step[GX] == item && lines->step[GY] == item && lines->step[X] == item)
            job.form = DIRECT;
    }
    if (job.form != ONE) {
        job.pieces.count = (lines->count + LINES - 1) / LINES;
        job.pieces.size = lines->length * LINES;
    }
    return tn__scan_pieces_run(&job.pieces, part, &job);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(cumprod_grad, TN__FLOATS),
};
TN__KERNEL_TABLE(scan_grad);

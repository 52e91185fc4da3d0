/* SPDX-License-Identifier: MIT
 *
 * cummax, cummin and logcumsumexp along a dimension, computed in float64 for floats and in int64
 * for integers. If the dimension is strided, many neighbouring lines are computed together. */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/kernel.h"
#include "op/scan_pieces.h"
#include "simd/simd.h"

enum kind { LARGEST, SMALLEST, LOG_SUM };

struct job {
    struct tn__lines lines; /* view 0: y, 1: x, 2: the indices; absent for LOG_SUM */
    tn__load *load, *load_f32;
    tn__store *store, *store_f32;
    enum kind kind;
    bool whole;
    int64_t item; /* bytes of an element, if run_contiguous can compute the lines; otherwise 0 */
    struct tn__scan_pieces pieces;
};

union numbers {
    double f[TN__CHUNK];
    int64_t i[TN__CHUNK];
};

/* The result of the preceding elements of each line that is computed: the extreme (of LOG_SUM the
 * largest element), its index, and for LOG_SUM the sum of e^(x - largest). */
struct state {
    union numbers best;
    double sum[TN__SCAN_SIDE];
    int64_t place[TN__SCAN_SIDE];
};

/* n elements of x: with `inc` 1 of n lines, all with index `at`; with `inc` 0 of one line, from
 * index `at` on. They are replaced by the results. */
struct piece {
    int64_t n, inc, at;
    union numbers x;
    int64_t places[TN__CHUNK];
};

static void start(const struct job *job, int64_t lines, struct state *s)
{
    bool up = job->kind != SMALLEST;
    for (int64_t k = 0; k < lines; k++) {
        if (job->whole)
            s->best.i[k] = up ? INT64_MIN : INT64_MAX;
        else
            s->best.f[k] = up ? -(double)INFINITY : (double)INFINITY;
        s->sum[k] = 0;
        s->place[k] = 0;
    }
}

#define EXTREME(member, better)                                                                    \
    for (int64_t i = 0; i < p->n; i++) {                                                           \
        int64_t k = i * p->inc;                                                                    \
        if (better) {                                                                              \
            s->best.member[k] = p->x.member[i];                                                    \
            s->place[k] = p->inc ? p->at : p->at + i;                                              \
        }                                                                                          \
        p->x.member[i] = s->best.member[k];                                                        \
        p->places[i] = s->place[k];                                                                \
    }

/* After a NaN, `best` is NaN, and only another NaN replaces it. */
static void extremes(const struct job *job, struct piece *p, struct state *s)
{
    if (job->whole && job->kind == LARGEST)
        EXTREME(i, p->x.i[i] >= s->best.i[k])
    else if (job->whole)
        EXTREME(i, p->x.i[i] <= s->best.i[k])
    else if (job->kind == LARGEST)
        EXTREME(f, p->x.f[i] >= s->best.f[k] || p->x.f[i] != p->x.f[i])
    else
        EXTREME(f, p->x.f[i] <= s->best.f[k] || p->x.f[i] != p->x.f[i])
}
#undef EXTREME

/* Differences of equal infinities are not computed, because they are NaN. */
static void log_sums(struct piece *p, struct state *s)
{
    for (int64_t i = 0; i < p->n; i++) {
        int64_t k = i * p->inc;
        double x = p->x.f[i], most = s->best.f[k], sum = s->sum[k];
        if (x > most) {
            sum = sum * exp(most - x) + 1;
            most = x;
        } else if (x != x) {
            most = x;
        } else if (x < most) {
            sum += exp(x - most);
        } else {
            sum += x == -(double)INFINITY ? 0 : 1;
        }
        s->best.f[k] = most;
        s->sum[k] = sum;
        p->x.f[i] = most + log(sum);
    }
}

/* Computes the piece and writes it; steps are the bytes from one element to the next. */
static void finish(const struct job *job, struct piece *p, struct state *s, char *y, int64_t step_y,
                   char *places, int64_t step_places)
{
    if (job->kind == LOG_SUM)
        log_sums(p, s);
    else
        extremes(job, p, s);
    job->store(p->n, &p->x, y, step_y);
    for (int64_t i = 0; job->kind != LOG_SUM && i < p->n; i++)
        memcpy(places + i * step_places, &p->places[i], sizeof p->places[i]);
}

static char *places_at(const struct job *job, int64_t line)
{
    return job->kind != LOG_SUM ? tn__span_lines_at(&job->lines, 2, line) : NULL;
}

/* cummax and cummin of a contiguous line. float16 and bfloat16 are converted in chunks. */
static void run_contiguous(const struct job *job, int64_t n, const char *x, char *y,
                           int64_t *places)
{
    bool up = job->kind == LARGEST;
    float best_f32 = -INFINITY, numbers[TN__CHUNK];
    double best_f64 = -(double)INFINITY;
    int64_t place = 0;
    if (job->item == 8)
        tn__simd.reduction->extremes_f64(n, up, (const double *)(const void *)x,
                                         (double *)(void *)y, places, 0, &best_f64, &place);
    else if (job->item == 4)
        tn__simd.reduction->extremes_f32(n, up, (const float *)(const void *)x, (float *)(void *)y,
                                         places, 0, &best_f32, &place);
    for (int64_t at = 0; job->item == 2 && at < n; at += TN__CHUNK) {
        int64_t count = n - at < TN__CHUNK ? n - at : TN__CHUNK;
        job->load_f32(count, x + 2 * at, 2, numbers);
        tn__simd.reduction->extremes_f32(count, up, numbers, numbers, places + at, at, &best_f32,
                                         &place);
        job->store_f32(count, numbers, y + 2 * at, 2);
    }
}

static void run_line(const struct job *job, int64_t line)
{
    const struct tn__lines *lines = &job->lines;
    int64_t n = lines->length, sy = lines->step[0], sx = lines->step[1], sp = lines->step[2];
    char *y = tn__span_lines_at(lines, 0, line), *x = tn__span_lines_at(lines, 1, line);
    char *places = places_at(job, line);
    struct state state;
    struct piece piece; /* not initialized: its buffers would cost more than a short line */
    if (job->item > 0 && sy == job->item && sx == job->item && sp == 8) {
        run_contiguous(job, n, x, y, (int64_t *)(void *)places);
        return;
    }
    piece.inc = 0;
    start(job, 1, &state);
    for (int64_t at = 0; at < n; at += TN__CHUNK) {
        piece.n = n - at < TN__CHUNK ? n - at : TN__CHUNK;
        piece.at = at;
        job->load(piece.n, x + at * sx, sx, &piece.x);
        finish(job, &piece, &state, y + at * sy, sy, places != NULL ? places + at * sp : NULL, sp);
    }
}

static void run_block(const struct job *job, int64_t block)
{
    const struct tn__lines *lines = &job->lines;
    int32_t inner = lines->ndim - 1;
    int64_t count, line = tn__scan_pieces_block(&job->pieces, lines, block, &count);
    int64_t n = lines->length;
    char *y = tn__span_lines_at(lines, 0, line), *x = tn__span_lines_at(lines, 1, line);
    char *places = places_at(job, line);
    struct state state;
    struct piece piece;
    piece.inc = 1;
    piece.n = count;
    start(job, piece.n, &state);
    for (int64_t at = 0; at < n; at++) {
        piece.at = at;
        job->load(piece.n, x + at * lines->step[1], lines->stride[1][inner], &piece.x);
        finish(job, &piece, &state, y + at * lines->step[0], lines->stride[0][inner],
               places != NULL ? places + at * lines->step[2] : NULL, lines->stride[2][inner]);
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    for (int64_t i = begin; i < end; i++) {
        if (job->pieces.blocks > 0)
            run_block(job, i);
        else
            run_line(job, i);
    }
    return TN_OK;
}

static tn_status run(const tn_call *call, int64_t dim, enum kind kind)
{
    const tn_view *views[3] = { call->out[0], call->in[0],
                                kind != LOG_SUM ? call->out[1] : call->out[0] };
    tn_dtype dtype = tn_view_dtype(call->in[0]);
    struct job job = { .kind = kind };
    job.whole = (TN_MASK_FLOAT & TN_BIT(dtype)) == 0;
    enum tn__ct ct = job.whole ? TN__I64 : TN__F64;
    if (kind != LOG_SUM && !job.whole)
        job.item = tn__view_item(views[1]) >= 2 ? tn__view_item(views[1]) : 0;
    job.load_f32 = tn__dtype_load(dtype, TN__F32);
    job.store_f32 = tn__dtype_store(TN__F32, dtype);
    job.load = tn__dtype_load(dtype, ct);
    job.store = tn__dtype_store(ct, dtype);
    tn__span_lines_make(&job.lines, 3, views, dim);
    struct tn__lines *lines = &job.lines;
    if (lines->count == 0 || lines->length == 0)
        return TN_OK;
    job.pieces = tn__scan_pieces_of(lines);
    return tn__scan_pieces_run(&job.pieces, part, &job);
}

static tn_status run_cummax(const tn_call *call)
{
    return run(call, ((const tn_cummax_options *)call->options)->dim, LARGEST);
}

static tn_status run_cummin(const tn_call *call)
{
    return run(call, ((const tn_cummin_options *)call->options)->dim, SMALLEST);
}

static tn_status run_logcumsumexp(const tn_call *call)
{
    return run(call, ((const tn_logcumsumexp_options *)call->options)->dim, LOG_SUM);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(cummax, TN__REALS_BOOL &TN__NOT_U64),
    TN__KERNEL(cummin, TN__REALS_BOOL &TN__NOT_U64),
    TN__KERNEL(logcumsumexp, TN__FLOATS),
};
TN__KERNEL_TABLE(scan_extreme);

/* SPDX-License-Identifier: MIT
 *
 * histc with given ends. */
#include <math.h>
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"
#include "simd/simd.h"

enum {
    GRAIN = 16384,  /* minimum number of elements of a piece */
    PIECES = 16,    /* maximum number of pieces, which have counts of their own */
    MOST = 1 << 22, /* bins, whose numbers floats have exactly */
    TABLES = 4,     /* counts of a piece: neighbours in one bin do not wait for each other */
    FEW = 2048      /* bins for which a piece has TABLES */
};

struct job {
    struct tn__span span; /* operand 0: x */
    enum tn__ct ct;
    bool plain; /* x has the compute type */
    tn__load *load;
    double min, max;
    int64_t bins, tables, piece; /* tables of a piece, elements of a piece */
    int64_t *counts;             /* [pieces][tables][bins + 1] */
};

struct walk {
    const struct job *job;
    int64_t *counts;
};

#define TEMPLATE "op/histogram_template.h"
#include "base/for_floats.h"

static void run(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct walk *walk = user;
    const struct job *job = walk->job;
    int64_t size = (int64_t)tn__dtype_ct_size(job->ct);
    _Alignas(64) char buffer[TN__CHUNK * sizeof(double)];
    for (int64_t i = 0; i < n; i += TN__CHUNK) {
        int64_t many = n - i < TN__CHUNK ? n - i : TN__CHUNK;
        const char *x = at[0] + i * stride[0];
        if (!job->plain || stride[0] != size) {
            job->load(many, x, stride[0], buffer);
            x = buffer;
        }
        if (job->ct == TN__F32)
            count_f32(job, many, x, walk->counts);
        else
            count_f64(job, many, x, walk->counts);
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    int64_t size = job->tables * (job->bins + 1);
    for (int64_t p = begin; p < end; p++) {
        struct walk walk = { job, job->counts + p * size };
        int64_t from = p * job->piece, to = from + job->piece;
        memset(walk.counts, 0, (size_t)size * sizeof *walk.counts);
        tn__span_walk(&job->span, from, to < job->span.count ? to : job->span.count, run, &walk);
    }
    return TN_OK;
}

/* The ends of the bins must differ, and the width of all bins must be a finite number of the type
 * in which places are computed. */
static bool supports_histc(const tn_call *call, char *reason, size_t size)
{
    const tn_histc_options *o = call->options;
    bool wide = tn_view_dtype(call->in[0]) == TN_F64;
    double range = wide ? o->max - o->min : (double)(float)(o->max - o->min);
    if (range > 0 && isfinite(range) && o->bins <= MOST)
        return true;
    tn_snprint(reason, size, "expected min < max and at most %d bins", (int)MOST);
    return false;
}

static tn_status run_histc(const tn_call *call)
{
    const tn_histc_options *o = call->options;
    const tn_view *x = call->in[0], *y = call->out[0];
    tn_dtype dtype = tn_view_dtype(x);
    struct job job = { .ct = tn__dtype_ct(dtype), .min = o->min, .max = o->max, .bins = o->bins };
    job.plain = tn__dtype_of_ct(job.ct) == dtype;
    job.load = tn__dtype_load(dtype, job.ct);
    tn__span_make(&job.span, 1, &x, false);
    int64_t n = job.span.count, pieces = n / (job.bins > GRAIN ? job.bins : GRAIN);
    pieces = pieces < 1 ? 1 : pieces > PIECES ? PIECES : pieces;
    job.piece = (n + pieces - 1) / pieces;
    job.tables = job.bins <= FEW ? TABLES : 1;
    int64_t size = job.bins + 1, lists = pieces * job.tables;
    job.counts = tn__scratch_take((size_t)(lists * size) * sizeof *job.counts);
    if (!job.counts)
        return TN_ERR_MEMORY;
    tn_status status = pieces == 1 ? part(&job, 0, 1) : tn_parallel_for(pieces, 1, part, &job);
    for (int64_t k = 1; k < lists; k++)
        for (int64_t b = 0; b < job.bins; b++)
            job.counts[b] += job.counts[k * size + b];
    if (status == TN_OK)
        tn__dtype_store(TN__I64, tn_view_dtype(y))(job.bins, job.counts, tn__view_at(y),
                                                   y->strides[0] * tn__view_item(y));
    tn__scratch_give(job.counts);
    return status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_SUPPORTS(histc, TN__FLOATS, supports_histc),
};
TN__KERNEL_TABLE(histogram);

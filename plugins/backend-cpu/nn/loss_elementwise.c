/* SPDX-License-Identifier: MIT
 *
 * Elementwise losses. Losses are computed and summed block by block in a buffer, without a
 * temporary tensor. Blocks and the order of sums depend on shape and layout alone, not on the
 * threads. */
#include <string.h>

#include "base/kernel.h"
#include "base/span.h"
#include "simd/simd.h"

enum {
    BLOCK = 2048,  /* elements computed at a time */
    PIECE = 16384, /* elements of a piece, which has a sum of its own */
    GRAIN = 2      /* minimum number of pieces for one thread */
};

struct job;
/* Computes the losses of n elements into to[0 .. n - 1]. at[1], at[2], ... are the inputs; `more`
 * is a buffer for n numbers. */
typedef void loss_way(const struct job *job, int64_t n, char *const *at, const int64_t *stride,
                      void *to, void *more);

struct job {
    struct tn__span span; /* operand 0: the result if `writes`, otherwise unused; then the inputs */
    tn_dtype dtype;
    enum tn__ct ct;
    int64_t size;   /* bytes of a number */
    tn__load *load; /* of float16 and bfloat16, which are computed in float32; or NULL */
    loss_way *each;
    double numbers[3]; /* options of the loss */
    bool writes;       /* reduction "none": the losses are the result */
    double *sums;      /* the sum of each piece */
};

/* ---- the losses ------------------------------------------------------------------------------ */

/* Computes one elementwise operation on n elements into `to`. */

static void step(const struct job *job, enum tn__ew op, int64_t n, void *to, const void *a,
                 int64_t sa, const void *b, int64_t sb, const double *numbers)
{
    tn__loop_of(op, job->ct)(n, to, job->size, a, sa, b, sb, numbers);
}

/* Losses that are one operation of x and target. */
#define ONE(name, op)                                                                              \
    static void name(const struct job *job, int64_t n, char *const *at, const int64_t *stride,     \
                     void *to, void *more)                                                         \
    {                                                                                              \
        (void)more;                                                                                \
        step(job, op, n, to, at[1], stride[1], at[2], stride[2], job->numbers);                    \
    }
ONE(squares, TN__EW_square_apart)
ONE(sizes, TN__EW_size_apart)
ONE(bends, TN__EW_bent)

/* ln(1 + e^(-target x)) */
static void soft_margins(const struct job *job, int64_t n, char *const *at, const int64_t *stride,
                         void *to, void *more)
{
    int64_t w = job->size;
    (void)more;
    step(job, TN__EW_mul, n, to, at[2], stride[2], at[1], stride[1], job->numbers);
    step(job, TN__EW_neg, n, to, to, w, to, w, job->numbers);
    step(job, TN__EW_exp, n, to, to, w, to, w, job->numbers);
    step(job, TN__EW_log1p, n, to, to, w, to, w, job->numbers);
}

/* max(0, margin - target (x1 - x2)) */
static void margins(const struct job *job, int64_t n, char *const *at, const int64_t *stride,
                    void *to, void *more)
{
    (void)more;
    step(job, TN__EW_sub, n, to, at[1], stride[1], at[2], stride[2], job->numbers);
    step(job, TN__EW_hinge, n, to, to, job->size, at[3], stride[3], job->numbers);
}

/* e^x - target x */
static void poisson_of_logs(const struct job *job, int64_t n, char *const *at,
                            const int64_t *stride, void *to, void *more)
{
    int64_t w = job->size;
    step(job, TN__EW_exp, n, to, at[1], stride[1], at[1], stride[1], job->numbers);
    step(job, TN__EW_mul, n, more, at[2], stride[2], at[1], stride[1], job->numbers);
    step(job, TN__EW_sub, n, to, to, w, more, w, job->numbers);
}

/* x - target ln(x + eps) */
static void poisson(const struct job *job, int64_t n, char *const *at, const int64_t *stride,
                    void *to, void *more)
{
    int64_t w = job->size;
    step(job, TN__EW_add_scalar, n, more, at[1], stride[1], at[1], stride[1], job->numbers);
    step(job, TN__EW_log, n, more, more, w, more, w, job->numbers);
    step(job, TN__EW_mul, n, more, at[2], stride[2], more, w, job->numbers);
    step(job, TN__EW_sub, n, to, at[1], stride[1], more, w, job->numbers);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* A block of losses. Several short runs of elements are collected in one block before it is
 * summed. */
struct block {
    const struct job *job;
    double sum;
    int64_t filled;
    _Alignas(64) char to[BLOCK * 8], more[BLOCK * 8];
    _Alignas(64) float in[TN__MAX_SPAN][BLOCK]; /* converted inputs */
};

/* Adds the losses in the block to its sum. */
static void empty(struct block *block)
{
    if (block->job->ct == TN__F32)
        block->sum += tn__simd.reduction->sum_f32(block->filled,
                                                  (const float *)(const void *)block->to);
    else
        block->sum += tn__simd.reduction->sum_f64(block->filled,
                                                  (const double *)(const void *)block->to);
    block->filled = 0;
}

static void run(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    static const int64_t converted[TN__MAX_SPAN] = { 4, 4, 4, 4 };
    struct block *block = user;
    const struct job *job = block->job;
    for (int64_t done = 0; done < n;) {
        char *here[TN__MAX_SPAN];
        int64_t count = n - done < BLOCK - block->filled ? n - done : BLOCK - block->filled;
        for (int32_t k = 0; k < job->span.operands; k++)
            here[k] = at[k] + done * stride[k];
        char *to = block->to + block->filled * job->size;
        for (int32_t k = 1; job->load && k < job->span.operands; k++) {
            job->load(count, here[k], stride[k], block->in[k]);
            here[k] = (char *)block->in[k];
        }
        job->each(job, count, here, job->load ? converted : stride, to, block->more);
        if (job->writes) {
            tn__dtype_store(job->ct, job->dtype)(count, to, here[0], stride[0]);
        } else {
            block->filled += count;
            if (block->filled == BLOCK)
                empty(block);
        }
        done += count;
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    for (int64_t piece = begin; piece < end; piece++) {
        struct block block;
        int64_t stop = (piece + 1) * PIECE;
        block.job = job;
        block.sum = 0;
        block.filled = 0;
        tn__span_walk(&job->span, piece * PIECE, stop < job->span.count ? stop : job->span.count,
                      run, &block);
        if (job->writes)
            continue;
        empty(&block);
        job->sums[piece] = block.sum;
    }
    return TN_OK;
}

/* Returns a view with the shape to which the inputs broadcast. Its strides are 0, and its elements
 * are not used. */
static tn_view broadcast(const tn_call *call, int64_t *shape, int64_t *strides)
{
    tn_view all = *call->in[0];
    for (int64_t k = 1; k < call->n_in; k++)
        if (call->in[k]->ndim > all.ndim)
            all.ndim = call->in[k]->ndim;
    for (int32_t d = 0; d < all.ndim; d++) {
        shape[d] = 1;
        strides[d] = 0;
        for (int64_t k = 0; k < call->n_in; k++) {
            int32_t at = d - (all.ndim - call->in[k]->ndim);
            if (at >= 0 && call->in[k]->shape[at] != 1)
                shape[d] = call->in[k]->shape[at];
        }
    }
    all.shape = shape;
    all.strides = strides;
    return all;
}

static tn_status add_up(struct job *job, const tn_view *y, bool mean)
{
    double few[64], all = 0;
    int64_t pieces = (job->span.count + PIECE - 1) / PIECE;
    job->sums = few;
    if (pieces > (int64_t)(sizeof few / sizeof *few))
        job->sums = job->writes ? NULL : tn_malloc((size_t)pieces * sizeof *job->sums);
    if (!job->sums && !job->writes)
        return TN_ERR_MEMORY;
    tn_status status = pieces <= GRAIN ? part(job, 0, pieces)
                                       : tn_parallel_for(pieces, GRAIN, part, job);
    if (status == TN_OK && !job->writes) {
        for (int64_t i = 0; i < pieces; i++)
            all += job->sums[i];
        all = mean ? all / (double)job->span.count : all;
        tn__dtype_store(TN__F64, job->dtype)(1, &all, tn__view_at(y), 0);
    }
    if (job->sums != few)
        tn_free(job->sums);
    return status;
}

static tn_status lose(const tn_call *call, loss_way *each, const char *reduction, double p,
                      double q)
{
    const tn_view *y = call->out[0], *views[TN__MAX_SPAN];
    int64_t shape[TN_MAX_DIMS], strides[TN_MAX_DIMS];
    struct job job = { .dtype = tn_view_dtype(y),
                       .ct = tn__dtype_ct(tn_view_dtype(y)),
                       .each = each,
                       .numbers = { p, q },
                       .writes = strcmp(reduction, "none") == 0 };
    tn_view all = broadcast(call, shape, strides);
    bool whole = call->in[0]->ndim == all.ndim;
    for (int32_t d = 0; whole && d < all.ndim; d++)
        whole = call->in[0]->shape[d] == shape[d];
    job.size = (int64_t)tn__dtype_ct_size(job.ct);
    if (tn__dtype_of_ct(job.ct) != job.dtype)
        job.load = tn__dtype_load(job.dtype, job.ct);
    /* views[0] determines the shape and the order in which memory is read. It is the result if that
     * has all losses, otherwise the first input if that has the full shape. */
    views[0] = job.writes ? y : whole ? call->in[0] : &all;
    for (int64_t k = 0; k < call->n_in; k++)
        views[k + 1] = call->in[k];
    tn__span_make(&job.span, (int32_t)call->n_in + 1, views, false);
    return add_up(&job, y, strcmp(reduction, "mean") == 0);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static tn_status run_mse_loss(const tn_call *call)
{
    return lose(call, squares, ((const tn_mse_loss_options *)call->options)->reduction, 0, 0);
}

static tn_status run_l1_loss(const tn_call *call)
{
    return lose(call, sizes, ((const tn_l1_loss_options *)call->options)->reduction, 0, 0);
}

static tn_status run_smooth_l1_loss(const tn_call *call)
{
    const tn_smooth_l1_loss_options *o = call->options;
    return lose(call, o->beta == 0 ? sizes : bends, o->reduction, o->beta, 1 / o->beta);
}

static tn_status run_huber_loss(const tn_call *call)
{
    const tn_huber_loss_options *o = call->options;
    return lose(call, bends, o->reduction, o->delta, 1);
}

static tn_status run_soft_margin_loss(const tn_call *call)
{
    return lose(call, soft_margins, ((const tn_soft_margin_loss_options *)call->options)->reduction,
                0, 0);
}

static tn_status run_margin_ranking_loss(const tn_call *call)
{
    const tn_margin_ranking_loss_options *o = call->options;
    return lose(call, margins, o->reduction, o->margin, 0);
}

static bool supports_poisson_nll_loss(const tn_call *call, char *reason, size_t size)
{
    if (!((const tn_poisson_nll_loss_options *)call->options)->full)
        return true;
    tn_snprint(reason, size, "full=True is not supported");
    return false;
}

static tn_status run_poisson_nll_loss(const tn_call *call)
{
    const tn_poisson_nll_loss_options *o = call->options;
    return lose(call, o->log_input ? poisson_of_logs : poisson, o->reduction, o->eps, 0);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(mse_loss, TN__FLOATS),
    TN__KERNEL(l1_loss, TN__FLOATS),
    TN__KERNEL(smooth_l1_loss, TN__FLOATS),
    TN__KERNEL(huber_loss, TN__FLOATS),
    TN__KERNEL(soft_margin_loss, TN__FLOATS),
    TN__KERNEL(margin_ranking_loss, TN__FLOATS),
    TN__KERNEL_SUPPORTS(poisson_nll_loss, TN__FLOATS, supports_poisson_nll_loss),
};
TN__KERNEL_TABLE(loss_elementwise);

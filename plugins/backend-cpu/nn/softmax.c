/* SPDX-License-Identifier: MIT
 *
 * softmax, log_softmax and their gradients. A row is a line along the dimension of the operator.
 * Rows are computed one at a time, through a buffer if the row is not contiguous or must be
 * converted. If the dimension is strided, many neighbouring rows are computed together. */
#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"
#include "simd/simd.h"

enum { GRAIN = 8192 };

struct job {
    struct tn__span rows; /* operands: y, then the inputs, without the operator's dimension */
    int64_t n;            /* length of a row */
    int64_t step[3];      /* of y and the inputs along the row, in bytes */
    enum tn__ct ct;
    int32_t inputs;
    bool converted; /* an operand does not have the compute type */
    tn_dtype dtype[3];
    int64_t item[3]; /* bytes of an element */
    void (*run)(const struct job *job, const void *const *in, void *out);
};

static void row_softmax(const struct job *job, const void *const *in, void *out)
{
    if (job->ct == TN__F32)
        tn__simd.softmax->softmax_f32(job->n, in[0], out);
    else
        tn__simd.softmax->softmax_f64(job->n, in[0], out);
}

static void row_log_softmax(const struct job *job, const void *const *in, void *out)
{
    if (job->ct == TN__F32)
        tn__simd.softmax->log_softmax_f32(job->n, in[0], out);
    else
        tn__simd.softmax->log_softmax_f64(job->n, in[0], out);
}

static void row_log_softmax_grad(const struct job *job, const void *const *in, void *out)
{
    if (job->ct == TN__F32)
        tn__simd.softmax->log_softmax_grad_f32(job->n, in[0], in[1], out);
    else
        tn__simd.softmax->log_softmax_grad_f64(job->n, in[0], in[1], out);
}

static void row_softmax_grad(const struct job *job, const void *const *in, void *out)
{
    if (job->ct == TN__F32)
        tn__simd.softmax->softmax_grad_f32(job->n, in[0], in[1], out);
    else
        tn__simd.softmax->softmax_grad_f64(job->n, in[0], in[1], out);
}

struct rows {
    const struct job *job;
    char *buffer[3]; /* NULL: the operand's rows are used in place */
};

static void each_row(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct rows *rows = user;
    const struct job *job = rows->job;
    for (int64_t i = 0; i < n; i++) {
        const void *in[2] = { NULL, NULL };
        char *out = at[0] + i * stride[0];
        for (int32_t k = 1; k <= job->inputs; k++) {
            char *from = at[k] + i * stride[k];
            if (rows->buffer[k])
                tn__dtype_load(job->dtype[k], job->ct)(job->n, from, job->step[k], rows->buffer[k]);
            in[k - 1] = rows->buffer[k] ? rows->buffer[k] : from;
        }
        job->run(job, in, rows->buffer[0] ? rows->buffer[0] : out);
        if (rows->buffer[0])
            tn__dtype_store(job->ct, job->dtype[0])(job->n, rows->buffer[0], out, job->step[0]);
    }
}

/* ---- strided rows --------------------------------------------------------------------------- */

/* If the dimension is strided, neighbouring rows are columns in memory. A block of LEAST to MOST of
 * them is computed together, line by line. A block should fit into CACHE bytes, and there should be
 * PIECES blocks for the threads. */
enum { MOST = TN__SOFTMAX_COLUMNS, LEAST = 64, CACHE = 1 << 18, PIECES = 4 };
enum { TALL = 8192 }; /* a converted block of longer rows does not fit into the cache */

static int64_t block_width(const struct job *job)
{
    int64_t wide = CACHE / (job->n * (int64_t)tn__dtype_ct_size(job->ct)) / 16 * 16;
    int64_t side = (job->rows.shape[job->rows.ndim - 1] / PIECES + 15) / 16 * 16;
    if (wide > side)
        wide = side;
    return wide < LEAST ? LEAST : wide > MOST ? MOST : wide;
}

/* Returns whether neighbouring rows, at least 4, are contiguous columns in all operands. Rows that
 * are converted must not be longer than TALL. */
static bool upright(const struct job *job)
{
    int32_t inner = job->rows.ndim - 1;
    if (inner < 0 || job->rows.shape[inner] < 4 || (job->converted && job->n > TALL))
        return false;
    for (int32_t k = 0; k <= job->inputs; k++)
        if (job->rows.stride[k][inner] != job->item[k] ||
            job->step[k] < job->rows.shape[inner] * job->item[k])
            return false;
    return true;
}

struct block {
    const struct job *job;
    int64_t wide, size;
    int64_t step[3]; /* bytes from line to line, of y and the inputs */
};

/* Converts a block of operand k to the compute type. */
static void load_lines(const struct block *block, int32_t k, const char *from, char *to)
{
    const struct job *job = block->job;
    tn__load *load = tn__dtype_load(job->dtype[k], job->ct);
    for (int64_t i = 0; i < job->n; i++)
        load(block->wide, from + i * job->step[k], job->item[k], to + i * block->step[k]);
}

static tn_status upright_part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    const struct tn__span *rows = &job->rows;
    int32_t inner = rows->ndim - 1;
    int64_t width = block_width(job), blocks = (rows->shape[inner] + width - 1) / width;
    struct block block = { .job = job, .size = (int64_t)tn__dtype_ct_size(job->ct) };
    bool logarithm = job->run == row_log_softmax || job->run == row_log_softmax_grad;
    char *memory = NULL, *buffer[3] = { NULL, NULL, NULL };
    if (job->converted) {
        int64_t each = job->n * width * block.size;
        memory = tn__scratch_take((size_t)((job->inputs + 1) * each));
        if (!memory)
            return TN_ERR_MEMORY;
        for (int32_t k = 0; k <= job->inputs; k++)
            buffer[k] = memory + k * each;
    }
    for (int64_t p = begin; p < end; p++) {
        int64_t first = p % blocks * width, rest = p / blocks;
        char *at[3] = { NULL, NULL, NULL };
        block.wide = rows->shape[inner] - first < width ? rows->shape[inner] - first : width;
        for (int32_t k = 0; k <= job->inputs; k++)
            at[k] = rows->base[k] + first * job->item[k];
        for (int32_t d = inner; d-- > 0;) {
            int64_t place = rest % rows->shape[d];
            rest /= rows->shape[d];
            for (int32_t k = 0; k <= job->inputs; k++)
                at[k] += place * rows->stride[k][d];
        }
        char *to = at[0];
        for (int32_t k = 0; k <= job->inputs; k++) {
            block.step[k] = job->converted ? block.wide * block.size : job->step[k];
            if (job->converted && k > 0)
                load_lines(&block, k, at[k], buffer[k]);
            at[k] = job->converted ? buffer[k] : at[k];
        }
        if (job->inputs == 2)
            tn__simd.softmax->softmax_grad_columns[job->ct](job->n, block.wide, at[1],
                                                            block.step[1], at[2], block.step[2],
                                                            at[0], block.step[0], logarithm);
        else
            tn__simd.softmax->softmax_columns[job->ct](job->n, block.wide, at[1], block.step[1],
                                                       at[0], block.step[0], logarithm);
        for (int64_t i = 0; job->converted && i < job->n; i++)
            tn__dtype_store(job->ct, job->dtype[0])(block.wide, at[0] + i * block.step[0],
                                                    to + i * job->step[0], job->item[0]);
    }
    tn__scratch_give(memory);
    return TN_OK;
}

/* ---- one row at a time ----------------------------------------------------------------------- */

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    struct rows rows = { job, { NULL, NULL, NULL } };
    int64_t size = (int64_t)tn__dtype_ct_size(job->ct);
    bool need[3] = { false, false, false };
    size_t count = 0;
    for (int32_t k = 0; k <= job->inputs; k++) {
        need[k] = job->dtype[k] != tn__dtype_of_ct(job->ct) || job->step[k] != size;
        count += need[k];
    }
    char *memory = NULL;
    if (count > 0) {
        memory = tn__scratch_take(count * (size_t)(job->n * size));
        if (!memory)
            return TN_ERR_MEMORY;
        char *next = memory;
        for (int32_t k = 0; k <= job->inputs; k++) {
            if (need[k]) {
                rows.buffer[k] = next;
                next += job->n * size;
            }
        }
    }
    tn__span_walk(&job->rows, begin, end, each_row, &rows);
    tn__scratch_give(memory);
    return TN_OK;
}

static tn_status run(const tn_call *call, int64_t dim,
                     void (*row)(const struct job *, const void *const *, void *))
{
    const tn_view *views[3] = { call->out[0], call->in[0], call->n_in > 1 ? call->in[1] : NULL };
    struct job job = { .inputs = (int32_t)call->n_in, .run = row };
    int32_t ndim = views[0]->ndim;
    int64_t at = dim < 0 ? dim + ndim : dim;
    if (ndim > 0 && (at < 0 || at >= ndim))
        return tn__span_bad_dim(call->op, dim, ndim);
    job.ct = tn__dtype_ct(tn_view_dtype(views[0]));
    job.n = ndim > 0 ? views[0]->shape[at] : 1;
    tn_view less[3];
    int64_t shape[TN_MAX_DIMS], strides[3][TN_MAX_DIMS];
    const tn_view *pointers[3] = { &less[0], &less[1], &less[2] };
    for (int32_t k = 0; k <= job.inputs; k++) {
        job.dtype[k] = tn_view_dtype(views[k]);
        job.item[k] = tn__view_item(views[k]);
        job.converted |= job.dtype[k] != tn__dtype_of_ct(job.ct);
        job.step[k] = ndim > 0 && job.n > 1 ? views[k]->strides[at] * tn__view_item(views[k])
                                            : tn__view_item(views[k]);
        less[k] = *views[k];
        less[k].ndim = 0;
        less[k].shape = shape;
        less[k].strides = strides[k];
        for (int32_t i = 0; i < ndim; i++) {
            if (i != at) {
                shape[less[k].ndim] = views[k]->shape[i];
                strides[k][less[k].ndim++] = views[k]->strides[i];
            }
        }
    }
    tn__span_make(&job.rows, job.inputs + 1, pointers, false);
    if (job.n == 0 || job.rows.count == 0)
        return TN_OK;
    if (job.n > 1 && upright(&job)) {
        int64_t width = block_width(&job), side = job.rows.shape[job.rows.ndim - 1],
                pieces = job.rows.count / side * ((side + width - 1) / width),
                each = GRAIN / (job.n * width) + 1;
        return tn_parallel_for(pieces, each, upright_part, &job);
    }
    int64_t grain = GRAIN / job.n > 0 ? GRAIN / job.n : 1;
    if (job.rows.count <= grain)
        return part(&job, 0, job.rows.count);
    return tn_parallel_for(job.rows.count, grain, part, &job);
}

static tn_status run_softmax(const tn_call *call)
{
    return run(call, ((const tn_softmax_options *)call->options)->dim, row_softmax);
}

static tn_status run_log_softmax(const tn_call *call)
{
    return run(call, ((const tn_log_softmax_options *)call->options)->dim, row_log_softmax);
}

static tn_status run_softmax_grad(const tn_call *call)
{
    return run(call, ((const tn_softmax_grad_options *)call->options)->dim, row_softmax_grad);
}

static tn_status run_log_softmax_grad(const tn_call *call)
{
    return run(call, ((const tn_log_softmax_grad_options *)call->options)->dim,
               row_log_softmax_grad);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_OVER(softmax, TN__FLOATS, 1),
    TN__KERNEL(log_softmax, TN__FLOATS),
    TN__KERNEL_OVER(softmax_grad, TN__FLOATS, 1),
    TN__KERNEL_OVER(log_softmax_grad, TN__FLOATS, 3),
};
TN__KERNEL_TABLE(softmax);

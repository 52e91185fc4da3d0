/* SPDX-License-Identifier: MIT
 *
 * embedding_sum: sums and means of selected rows, without a tensor of all selected rows. */
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"
#include "op/index_span.h"
#include "simd/simd.h"

enum { TOGETHER = 32, GRAIN = 16384 }; /* rows added in the type itself; elements for a thread */

struct job {
    const tn_call *call;
    const tn_view *weight, *index;
    bool mean;
    int64_t rows, wide, length; /* rows of the weight, elements of a row, indices of a bag */
    enum tn__ct ct;
    tn__load *load; /* float16 and bfloat16 are converted to float32 */
    tn__store *store;
    void (*picked_sum)(int64_t rows, int64_t n, const void *const *x, float *sum); /* or NULL */
};

static int64_t index_at(const struct job *job, int64_t bag, int64_t i)
{
    const int64_t *index = (const int64_t *)(const void *)tn__view_at(job->index);

    return index[bag * job->index->strides[0] + i * job->index->strides[1]];
}

static const char *row_at(const struct job *job, int64_t at)
{
    return tn__view_at(job->weight) + at * job->weight->strides[0] * tn__view_item(job->weight);
}

/* Adds the rows [begin, end) of a bag, at most TOGETHER, to `sum`, which has zeros. `room` has
 * memory for TOGETHER rows. */
static tn_status add_rows(const struct job *job, int64_t bag, int64_t begin, int64_t end, void *sum,
                          char *room)
{
    const void *rows[TOGETHER];
    int64_t item = tn__view_item(job->weight),
            line = job->wide * (int64_t)tn__dtype_ct_size(job->ct);
    for (int64_t i = begin; i < end; i++) {
        int64_t at = index_at(job, bag, i);
        if ((uint64_t)at >= (uint64_t)job->rows)
            return tn__index_fail(job->call->op, at, 0, 0, job->rows);
        rows[i - begin] = row_at(job, at);
        if (job->load && !job->picked_sum) {
            job->load(job->wide, rows[i - begin], item, room + (i - begin) * line);
            rows[i - begin] = room + (i - begin) * line;
        }
    }
    if (job->picked_sum)
        job->picked_sum(end - begin, job->wide, rows, sum);
    else
        tn__simd.reduction->add_rows[job->ct](end - begin, job->wide, rows, sum);
    return TN_OK;
}

/* Computes one bag: groups of rows in the type itself, their sums in float64. */
static tn_status bag_of(const struct job *job, int64_t bag, double *all, void *sum, char *room)
{
    const tn_view *y = job->call->out[0];
    char *to = tn__view_at(y) + bag * y->strides[0] * tn__view_item(y);
    if (job->length <= TOGETHER) { /* the sum in the type itself is the result */
        const double numbers[3] = { 1 / (double)job->length };
        int64_t item = (int64_t)tn__dtype_ct_size(job->ct);
        char *direct = job->load ? sum : to;
        memset(direct, 0, (size_t)(job->wide * item));
        tn_status status = add_rows(job, bag, 0, job->length, direct, room);
        if (job->mean)
            tn__loop_of(TN__EW_mul_scalar, job->ct)(job->wide, direct, item, direct, item, direct,
                                                    item, numbers);
        if (job->load)
            job->store(job->wide, direct, to, tn__view_item(y));
        return status;
    }
    for (int64_t j = 0; j < job->wide; j++)
        all[j] = 0;
    for (int64_t at = 0; at < job->length; at += TOGETHER) {
        int64_t end = job->length - at < TOGETHER ? job->length : at + TOGETHER;
        memset(sum, 0, (size_t)job->wide * tn__dtype_ct_size(job->ct));
        tn_status status = add_rows(job, bag, at, end, sum, room);
        if (status != TN_OK)
            return status;
        for (int64_t j = 0; j < job->wide; j++)
            all[j] += job->ct == TN__F32 ? (double)((float *)sum)[j] : ((double *)sum)[j];
    }
    for (int64_t j = 0; job->mean && j < job->wide; j++)
        all[j] *= 1 / (double)job->length;
    tn__dtype_store(TN__F64, tn_view_dtype(y))(job->wide, all, to, tn__view_item(y));
    return TN_OK;
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    size_t row = (size_t)job->wide * sizeof(double);
    tn_status status = TN_OK;
    char *memory = tn__scratch_take((size_t)(2 + (job->load ? TOGETHER : 0)) * row + 1);
    if (!memory)
        return TN_ERR_MEMORY;
    for (int64_t bag = begin; status == TN_OK && bag < end; bag++)
        status = bag_of(job, bag, (double *)(void *)memory, memory + row, memory + 2 * row);
    tn__scratch_give(memory);
    return status;
}

static bool supports_embedding_sum(const tn_call *call, char *reason, size_t size)
{
    const tn_view *weight = call->in[0], *index = call->in[1];
    if (tn_view_dtype(index) == TN_I64 && index->shape[1] > 0 && weight->shape[1] > 0 &&
        weight->strides[1] == 1 &&
        (call->out == NULL || call->out[0] == NULL || call->out[0]->strides[1] == 1))
        return true;
    tn_snprint(reason, size, "expected indices in each bag and contiguous rows");
    return false;
}

static tn_status run_embedding_sum(const tn_call *call)
{
    const tn_view *weight = call->in[0], *index = call->in[1];
    tn_dtype dtype = tn_view_dtype(weight);
    struct job job = { .call = call,
                       .weight = weight,
                       .index = index,
                       .mean = ((const tn_embedding_sum_options *)call->options)->mean,
                       .rows = weight->shape[0],
                       .wide = weight->shape[1],
                       .length = index->shape[1],
                       .ct = tn__dtype_ct(dtype) };
    int64_t bags = index->shape[0], grain = GRAIN / (job.wide * job.length) + 1;
    if (tn__dtype_of_ct(job.ct) != dtype)
        job.load = tn__dtype_load(dtype, job.ct);
    job.store = tn__dtype_store(job.ct, dtype);
    if (tn__float16_index(dtype) >= 0)
        job.picked_sum = tn__simd.float16->picked_sum[tn__float16_index(dtype)];
    return bags <= grain ? part(&job, 0, bags) : tn_parallel_for(bags, grain, part, &job);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_SUPPORTS(embedding_sum, TN__FLOATS, supports_embedding_sum),
};
TN__KERNEL_TABLE(embedding);

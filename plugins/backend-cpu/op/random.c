/* SPDX-License-Identifier: MIT
 *
 * Random numbers from the generator Philox 4x32-10. Element i in row-major order depends only on
 * the seed, the first block and i, not on the number of threads. */
#include "base/kernel.h"
#include "base/span.h"
#include "simd/simd.h"

enum { GRAIN = 16384 };

struct job {
    struct tn__span span; /* the result, in row-major order */
    enum tn__ct ct;
    tn__store *store; /* NULL: the result has the compute type */
    int64_t item;
    struct tn__philox philox;
    double p0, p1; /* low and high - low, or mean and standard deviation */
    bool normal;
};

struct piece {
    const struct job *job;
    int64_t at; /* the next element, in row-major order */
};

static void draw(const struct job *job, int64_t first, int64_t n, void *to)
{
    uint64_t at = (uint64_t)first;
    if (job->ct == TN__F32)
        (job->normal ? tn__simd.random->normal_f32 : tn__simd.random->uniform_f32)(
            &job->philox, at, n, (float)job->p0, (float)job->p1, to);
    else
        (job->normal ? tn__simd.random->normal_f64
                     : tn__simd.random->uniform_f64)(&job->philox, at, n, job->p0, job->p1, to);
}

static void run(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    struct piece *piece = user;
    const struct job *job = piece->job;
    if (!job->store && stride[0] == job->item) {
        draw(job, piece->at, n, at[0]);
    } else {
        _Alignas(64) char numbers[TN__CHUNK * 8];
        tn__store *store = tn__dtype_store(job->ct, tn__dtype_of_ct(job->ct));
        if (job->store)
            store = job->store;
        for (int64_t done = 0; done < n; done += TN__CHUNK) {
            int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
            draw(job, piece->at + done, count, numbers);
            store(count, numbers, at[0] + done * stride[0], stride[0]);
        }
    }
    piece->at += n;
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    struct piece piece = { job, begin };
    tn__span_walk(&job->span, begin, end, run, &piece);
    return TN_OK;
}

static tn_status philox(const tn_call *call, bool normal, double p0, double p1, int64_t seed,
                        int64_t block)
{
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    struct job job = { .ct = tn__dtype_ct(dtype),
                       .item = tn__view_item(call->out[0]),
                       .philox = tn__kernel_philox(seed, block, call->in[1]),
                       .p0 = p0,
                       .p1 = p1,
                       .normal = normal };
    if (dtype != tn__dtype_of_ct(job.ct))
        job.store = tn__dtype_store(job.ct, dtype);
    tn__span_make(&job.span, 1, call->out, true);
    if (job.span.count <= GRAIN)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN, part, &job);
}

static tn_status run_philox_uniform(const tn_call *call)
{
    const tn_philox_uniform_options *o = call->options;
    return philox(call, false, o->low, o->high - o->low, o->seed, o->block);
}

static tn_status run_philox_normal(const tn_call *call)
{
    const tn_philox_normal_options *o = call->options;
    return philox(call, true, o->mean, o->std, o->seed, o->block);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(philox_uniform, TN__FLOATS),
    TN__KERNEL(philox_normal, TN__FLOATS),
};
TN__KERNEL_TABLE(random);

/* SPDX-License-Identifier: MIT
 *
 * Elementwise operators on three float tensors of one dtype. float16 and bfloat16 have loops of
 * their own, or are converted to float32 in buffers. Calls with several dtypes are decomposed. */
#include <string.h>

#include "op/elementwise.h"
#include "simd/simd.h"

enum { GRAIN = 32768 }; /* elements that the calling thread computes alone; see op/elementwise.c */

struct job {
    struct tn__span span;
    enum tn__ternary mix;
    enum tn__ct ct;
    double number;
    /* the loop for float16 or bfloat16 without buffers; NULL: none */
    void (*narrow)(int64_t n, char *const *at, const int64_t *stride, double number);
    tn__load *load; /* load and store convert float16 and bfloat16; NULL: no conversion */
    tn__store *store;
    int32_t inputs;
};

static void run(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    tn__simd.elementwise->ternary[job->mix][job->ct](n, at, stride, job->number);
}

/* Computes n elements of float16 or bfloat16 through buffers of float32. An operand with stride 0
 * is converted once. */
static void converted(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    _Alignas(64) float in[3][TN__CHUNK], out[TN__CHUNK];
    char *from[4] = { (char *)out, (char *)in[0], (char *)in[1], (char *)in[2] };
    int64_t step[4] = { sizeof(float), 0, 0, 0 };
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        for (int32_t k = 1; k <= job->inputs; k++) {
            step[k] = stride[k] ? (int64_t)sizeof(float) : 0;
            if (stride[k] || done == 0)
                job->load(stride[k] ? count : 1, at[k] + done * stride[k], stride[k], from[k]);
        }
        if (job->inputs == 2) {
            from[3] = from[2];
            step[3] = step[2];
        }
        run(user, count, from, step);
        job->store(count, out, at[0] + done * stride[0], stride[0]);
    }
}

static void unbuffered(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    job->narrow(n, at, stride, job->number);
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end,
                  job->narrow ? unbuffered
                  : job->load ? converted
                              : run,
                  job);
    return TN_OK;
}

static tn_status mix(const tn_call *call, double number, enum tn__ternary which)
{
    const tn_view *y = call->out[0], *last = call->n_in > 2 ? call->in[2] : call->in[1];
    const tn_view *views[4] = { y, call->in[0], call->in[1], last };
    tn_dtype dtype = tn_view_dtype(y);
    struct job job = { .mix = which,
                       .ct = dtype == TN_F64 ? TN__F64 : TN__F32,
                       .number = number,
                       .inputs = (int32_t)call->n_in };
    tn__span_make(&job.span, 4, views, false);
    int narrow = tn__float16_index(dtype);
    if (narrow >= 0 && tn__float16_contiguous(&job.span))
        job.narrow = tn__simd.float16->ternary[which][narrow];
    if (narrow >= 0 && !job.narrow) {
        job.load = tn__dtype_load(dtype, TN__F32);
        job.store = tn__dtype_store(TN__F32, dtype);
    }
    if (job.span.count <= GRAIN)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN / 2, part, &job);
}

static bool supports_one_dtype(const tn_call *call, char *reason, size_t size)
{
    for (int64_t i = 0; i < call->n_in; i++) {
        if (!call->in[i] || memcmp(&call->in[i]->dtype, &call->out[0]->dtype, 4) != 0) {
            tn_snprint(reason, size, "expected all inputs to be given, in the result's dtype");
            return false;
        }
    }
    return true;
}

static tn_status run_clamp_tensor(const tn_call *call)
{
    return mix(call, 0, TN__TERNARY_clamp_tensor);
}

static tn_status run_lerp(const tn_call *call)
{
    return mix(call, 0, TN__TERNARY_lerp);
}

static tn_status run_lerp_scalar(const tn_call *call)
{
    return mix(call, tn_scalar_as_float(((const tn_lerp_scalar_options *)call->options)->weight),
               TN__TERNARY_lerp_scalar);
}

static tn_status run_addcmul(const tn_call *call)
{
    return mix(call, tn_scalar_as_float(((const tn_addcmul_options *)call->options)->value),
               TN__TERNARY_addcmul);
}

static tn_status run_addcdiv(const tn_call *call)
{
    return mix(call, tn_scalar_as_float(((const tn_addcdiv_options *)call->options)->value),
               TN__TERNARY_addcdiv);
}

#define ROW(name) TN__KERNEL_OVER_SUPPORTS(name, TN__FLOATS, 7, supports_one_dtype),
static const tn_kernel_def kernels[] = { TN__TERNARIES(ROW) };
TN__KERNEL_TABLE(arithmetic_ternary);

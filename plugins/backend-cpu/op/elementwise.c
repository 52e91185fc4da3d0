/* SPDX-License-Identifier: MIT
 *
 * Elementwise operators for any strides and dtypes; the result may be written over an operand.
 * Broadcast operands have stride 0. Operands that do not have the compute type are converted in
 * chunks. */
#include <string.h>

#include "op/elementwise.h"
#include "simd/simd.h"

/* Up to this many elements are computed by the calling thread alone. More elements are divided into
 * pieces of half this size, because smaller pieces divide more evenly among the threads. */
enum { GRAIN_CHEAP = 32768, GRAIN_COSTLY = 16384 };

static inline tn__ew_loop *find_loop(enum tn__ew op, enum tn__ct ct)
{
    if (ct > TN__I64)
        return tn__complex_loops[op][ct - TN__C64];
    return tn__loop_of(op, ct);
}

/* ---- any layout and dtype -------------------------------------------------------------------- */

struct job {
    struct tn__span span;
    tn__ew_loop *loop;
    const double *numbers;
    int64_t size;      /* bytes of a number of the compute type */
    tn__load *load[2]; /* NULL: the operand needs no conversion */
    tn__store *store;  /* NULL: the result needs no conversion */
    int32_t inputs;
};

static void direct(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    int b = job->inputs > 1 ? 2 : 1;
    job->loop(n, at[0], stride[0], at[1], stride[1], at[b], stride[b], job->numbers);
}

/* Computes n elements if at least one operand or the result is converted, chunk by chunk through
 * buffers. */
static void converted(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    _Alignas(64) char in[2][TN__CHUNK * TN__CT_MAX_SIZE], out[TN__CHUNK * TN__CT_MAX_SIZE];
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        const char *from[2] = { NULL, NULL };
        int64_t step[2] = { 0, 0 };
        for (int32_t k = 0; k < job->inputs; k++) {
            from[k] = at[k + 1] + done * stride[k + 1];
            step[k] = stride[k + 1];
            if (job->load[k]) {
                job->load[k](step[k] ? count : 1, from[k], step[k], in[k]);
                from[k] = in[k];
                step[k] = step[k] ? job->size : 0;
            }
        }
        if (job->inputs == 1)
            from[1] = from[0], step[1] = step[0];
        char *to = at[0] + done * stride[0];
        job->loop(count, job->store ? out : to, job->store ? job->size : stride[0], from[0],
                  step[0], from[1], step[1], job->numbers);
        if (job->store)
            job->store(count, out, to, stride[0]);
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end,
                  job->load[0] || job->load[1] || job->store ? converted : direct, job);
    return TN_OK;
}

/* Returns the loop that computes without buffers; NULL if there is none. The inputs and, unless
 * `compares`, the result must have one dtype. There are loops for narrow integers, and for float16
 * and bfloat16, but not for their comparisons; the tensors of these two must be contiguous or have
 * stride 0, except for nextafter, which converts nothing. */
static tn__ew_loop *narrow_loop(const tn_call *call, enum tn__ew op, bool compares,
                                const struct tn__span *span)
{
    tn_dtype dtype = tn_view_dtype(call->in[0]);
    int narrow = tn__float16_index(dtype), whole = tn__integers_index(dtype);
    if (!compares && tn_view_dtype(call->out[0]) != dtype)
        return NULL;
    if (span->operands > 2 && tn_view_dtype(call->in[1]) != dtype)
        return NULL;
    if (whole >= 0)
        return tn__simd.integers->ew[op][whole];
    if (narrow < 0 || compares || (op != TN__EW_nextafter && !tn__float16_contiguous(span)))
        return NULL;
    return tn__simd.float16->ew[op][narrow];
}

static TN_ATTR(noinline) tn_status
    run_any(const tn_call *call, enum tn__ew op, int32_t inputs, const double *numbers)
{
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    /* Comparisons are computed in the dtype of the inputs, all other operations in the dtype of the
     * result: add_scalar of integers and a float has a float result. */
    bool compares = op >= TN__EW_eq && op <= TN__EW_ge;
    enum tn__ct ct = tn__dtype_ct(compares ? tn_view_dtype(call->in[0]) : dtype);
    struct job job = { .loop = find_loop(op, ct),
                       .numbers = numbers,
                       .inputs = inputs,
                       .size = (int64_t)tn__dtype_ct_size(ct) };
    if (!job.loop)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: dtype: no CPU kernel, got %s", call->op,
                       tn_dtype_name(dtype));
    const tn_view *views[3] = { call->out[0], call->in[0], inputs > 1 ? call->in[1] : NULL };
    tn__span_make(&job.span, inputs + 1, views, false);
    tn__ew_loop *unbuffered = narrow_loop(call, op, compares, &job.span);
    if (unbuffered)
        job.loop = unbuffered;
    if (!compares && !unbuffered && dtype != tn__dtype_of_ct(ct))
        job.store = tn__dtype_store(ct, dtype);
    for (int32_t k = 0; k < inputs; k++) {
        tn_dtype from = tn_view_dtype(call->in[k]);
        if (!unbuffered && from != tn__dtype_of_ct(ct))
            job.load[k] = tn__dtype_load(from, ct);
    }
    int64_t grain = op >= TN__EW_exp ? GRAIN_COSTLY : GRAIN_CHEAP;
    if (job.span.count <= grain)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, grain / 2, part, &job);
}

/* ---- the frequent case: float32 or float64, one shape, contiguous ---------------------------- */

/* Returns the number of elements if y, a and b have one shape and dtype and are contiguous in
 * row-major order; -1 otherwise. */
static inline int64_t same_dense(const tn_view *y, const tn_view *a, const tn_view *b)
{
    int32_t ndim = y->ndim;
    if (a->ndim != ndim || b->ndim != ndim || memcmp(&a->dtype, &y->dtype, 4) != 0 ||
        memcmp(&b->dtype, &y->dtype, 4) != 0)
        return -1;
    int64_t count = 1;
    for (int32_t i = ndim; i-- > 0;) {
        int64_t size = y->shape[i];
        if (a->shape[i] != size || b->shape[i] != size || y->strides[i] != count ||
            a->strides[i] != count || b->strides[i] != count)
            return -1;
        count *= size;
    }
    return count;
}

static inline tn_status run(const tn_call *call, enum tn__ew op, int32_t inputs,
                            const double *numbers)
{
    const tn_view *y = call->out[0], *a = call->in[0], *b = inputs > 1 ? call->in[1] : a;
    if (y->dtype.code == 2 && y->dtype.bits >= 32) {
        enum tn__ct ct = y->dtype.bits == 32 ? TN__F32 : TN__F64;
        int64_t count = same_dense(y, a, b), size = y->dtype.bits / 8;
        if (count >= 0 && count <= (op >= TN__EW_exp ? GRAIN_COSTLY : GRAIN_CHEAP)) {
            find_loop(op, ct)(count, tn__view_at(y), size, tn__view_at(a), size, tn__view_at(b),
                              size, numbers);
            return TN_OK;
        }
    }
    return run_any(call, op, inputs, numbers);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static const double no_numbers[3];

tn_status tn__elementwise(const tn_call *call)
{
    const struct tn__ew_row *row = call->kernel->user;
    double numbers[3] = { 0 };
    if (!row->fill)
        return run(call, row->op, row->inputs, no_numbers);
    row->fill(call, numbers);
    return run(call, row->op, row->inputs, numbers);
}

tn_status tn__elementwise_run(const tn_call *call, enum tn__ew op, int32_t inputs,
                              const double *numbers)
{
    return run(call, op, inputs, numbers ? numbers : no_numbers);
}

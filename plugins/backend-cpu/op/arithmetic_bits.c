/* SPDX-License-Identifier: MIT
 *
 * Operators on the parts of floats: signbit, nextafter, frexp, ldexp; and lcm, which is for int64
 * only, as products of narrower integers wrap around before the sign is removed. */
#include "op/elementwise.h"
#include "simd/simd.h"

enum { GRAIN = 32768 };

struct job {
    struct tn__span span;
    int64_t size; /* bytes of an element; the sign bit is the highest bit of the last byte */
    enum tn__ct ct;
    tn__load *load;
    tn__store *store;
};

static tn_status run_in_parts(struct job *job, tn_status (*part)(void *, int64_t, int64_t))
{
    return job->span.count <= GRAIN ? part(job, 0, job->span.count)
                                    : tn_parallel_for(job->span.count, GRAIN, part, job);
}

/* ---- signbit --------------------------------------------------------------------------------- */

static void signs(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    const char *last = at[1] + job->size - 1;
    if (stride[0] == 1 && stride[1] == job->size && tn__copy_index(job->size) >= 0) {
        tn__simd.copy->signs[tn__copy_index(job->size)](n, at[0], at[1]);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        at[0][i * stride[0]] = (char)((unsigned char)last[i * stride[1]] >> 7);
}

static tn_status signs_part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end, signs, job);
    return TN_OK;
}

static tn_status run_signbit(const tn_call *call)
{
    const tn_view *views[2] = { call->out[0], call->in[0] };
    struct job job = { .size = tn__view_item(views[1]) };
    tn__span_make(&job.span, 2, views, false);
    return run_in_parts(&job, signs_part);
}

/* ---- frexp ----------------------------------------------------------------------------------- */

static void splits(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    union {
        float f32[TN__CHUNK];
        double f64[TN__CHUNK];
    } x;
    int32_t exponents[TN__CHUNK];
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        char *to = at[1] + done * stride[1];
        job->load(count, at[2] + done * stride[2], stride[2], &x);
        if (job->ct == TN__F32)
            tn__simd.special->split_f32(count, x.f32, exponents);
        else
            tn__simd.special->split_f64(count, x.f64, exponents);
        job->store(count, &x, at[0] + done * stride[0], stride[0]);
        if (stride[1] == (int64_t)sizeof *exponents)
            memcpy(to, exponents, (size_t)count * sizeof *exponents);
        else
            for (int64_t i = 0; i < count; i++)
                memcpy(to + i * stride[1], &exponents[i], sizeof *exponents);
    }
}

static tn_status splits_part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end, splits, job);
    return TN_OK;
}

static tn_status run_frexp(const tn_call *call)
{
    const tn_view *views[3] = { call->out[0], call->out[1], call->in[0] };
    tn_dtype dtype = tn_view_dtype(call->in[0]);
    struct job job = { .ct = tn__dtype_ct(dtype) };
    job.load = tn__dtype_load(dtype, job.ct);
    job.store = tn__dtype_store(job.ct, dtype);
    tn__span_make(&job.span, 3, views, false);
    return run_in_parts(&job, splits_part);
}

/* ---- nextafter ------------------------------------------------------------------------------- */

/* The next number is one of the dtype, so the loops must not convert. */
static bool supports_nextafter(const tn_call *call, char *reason, size_t size)
{
    if (tn_view_dtype(call->in[0]) == tn_view_dtype(call->in[1]))
        return true;
    tn_snprint(reason, size, "expected inputs of one dtype");
    return false;
}

static tn_status run_nextafter(const tn_call *call)
{
    return tn__elementwise_run(call, TN__EW_nextafter, 2, NULL);
}

/* ---- ldexp ----------------------------------------------------------------------------------- */

/* As the decomposition: x 2^half 2^rest, so that no power is out of range where the result is
 * not. */
static void scales(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    static const double none[3] = { 0, 0, 0 }, share[3] = { 0.5, 0, 0 },
                        limits[3] = { -1100, 1100, 0 };
    const struct job *job = user;
    const int64_t size = job->size;
    tn__ew_loop *exp2 = tn__loop_of(TN__EW_exp2, job->ct), *mul = tn__loop_of(TN__EW_mul, job->ct);
    union {
        float f32[TN__CHUNK];
        double f64[TN__CHUNK];
    } half, rest;
    char *h = (char *)&half, *r = (char *)&rest;
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        char *y = at[0] + done * stride[0];
        const char *x = at[1] + done * stride[1];
        job->load(count, at[2] + done * stride[2], stride[2], r);
        tn__loop_of(TN__EW_mul_scalar, job->ct)(count, h, size, r, size, r, size, share);
        tn__loop_of(TN__EW_floor, job->ct)(count, h, size, h, size, h, size, none);
        tn__loop_of(TN__EW_clamp, job->ct)(count, h, size, h, size, h, size, limits);
        tn__loop_of(TN__EW_sub, job->ct)(count, r, size, r, size, h, size, none);
        exp2(count, h, size, h, size, h, size, none);
        exp2(count, r, size, r, size, r, size, none);
        mul(count, h, size, x, stride[1], h, size, none);
        mul(count, y, stride[0], h, size, r, size, none);
    }
}

static tn_status scales_part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end, scales, job);
    return TN_OK;
}

static bool supports_ldexp(const tn_call *call, char *reason, size_t size)
{
    if (tn_view_dtype(call->in[0]) == tn_view_dtype(call->in[1]))
        return true;
    tn_snprint(reason, size, "expected inputs of one dtype");
    return false;
}

static tn_status run_ldexp(const tn_call *call)
{
    const tn_view *views[3] = { call->out[0], call->in[0], call->in[1] };
    tn_dtype dtype = tn_view_dtype(views[0]);
    struct job job = { .size = tn__view_item(views[0]), .ct = tn__dtype_ct(dtype) };
    job.load = tn__dtype_load(dtype, job.ct);
    tn__span_make(&job.span, 3, views, false);
    return run_in_parts(&job, scales_part);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_OVER_SUPPORTS(ldexp, TN__F32_F64, 3, supports_ldexp),
    TN__KERNEL(signbit, TN__FLOATS),
    TN__KERNEL(frexp, TN__FLOATS),
    TN__KERNEL_SUPPORTS(nextafter, TN__FLOATS, supports_nextafter),
    TN__BINARY_KERNEL(lcm, TN_BIT(TN_I64), TN__EW_lcm),
};
TN__KERNEL_TABLE(arithmetic_bits);

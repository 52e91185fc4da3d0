/* SPDX-License-Identifier: MIT
 *
 * Functions as in the C library's <math.h>, and special functions: the kernels. The loops are in
 * elementwise_scalar.c and simd/elementwise.c. */
#include "op/elementwise.h"

/* ---- signbit --------------------------------------------------------------------------------- */

struct job {
    struct tn__span span;
    int64_t size; /* bytes of an element; the sign bit is the highest bit of the last byte */
};

static void signs(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    const char *last = at[1] + job->size - 1;
    for (int64_t i = 0; i < n; i++)
        at[0][i * stride[0]] = (char)((unsigned char)last[i * stride[1]] >> 7);
}

static tn_status part(void *user, int64_t begin, int64_t end)
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
    return job.span.count <= 32768 ? part(&job, 0, job.span.count)
                                   : tn_parallel_for(job.span.count, 32768, part, &job);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(signbit, TN__FLOATS),
    TN__BINARY_KERNEL(copysign, TN__FLOATS, TN__EW_copysign),
    TN__BINARY_KERNEL(fmax, TN__FLOATS, TN__EW_fmax),
    TN__BINARY_KERNEL(fmin, TN__FLOATS, TN__EW_fmin),
    TN__BINARY_KERNEL(hypot, TN__FLOATS, TN__EW_hypot),
    TN__BINARY_KERNEL(xlogy, TN__FLOATS, TN__EW_xlogy),
    TN__BINARY_KERNEL(logaddexp, TN__FLOATS, TN__EW_logaddexp),
    TN__BINARY_KERNEL(logaddexp2, TN__FLOATS, TN__EW_logaddexp2),
    TN__UNARY_KERNEL(asinh, TN__FLOATS, TN__EW_asinh),
    TN__UNARY_KERNEL(acosh, TN__FLOATS, TN__EW_acosh),
    TN__UNARY_KERNEL(atanh, TN__FLOATS, TN__EW_atanh),
    TN__UNARY_KERNEL(exp2, TN__FLOATS, TN__EW_exp2),
    TN__UNARY_KERNEL(lgamma, TN__FLOATS, TN__EW_lgamma),
    TN__BINARY_KERNEL(gcd, TN_MASK_INT &TN__NOT_U64, TN__EW_gcd),
    TN__BINARY_KERNEL(bitwise_left_shift, TN_MASK_INT &TN__NOT_U64, TN__EW_shift_left),
    TN__BINARY_KERNEL(bitwise_right_shift, TN_MASK_INT &TN__NOT_U64, TN__EW_shift_right),
};
TN__KERNEL_TABLE(special);

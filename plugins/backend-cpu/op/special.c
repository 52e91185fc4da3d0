/* SPDX-License-Identifier: MIT
 *
 * Special functions, element by element. The loops are in elementwise_scalar.c,
 * simd/special.c and other files of simd. */
#include <math.h>

#include "op/elementwise.h"

/* Without eps, or with a negative eps as in PyTorch, x has no limits. */
static void fill_logit(const tn_call *call, double *numbers)
{
    double eps = ((const tn_logit_options *)call->options)->eps;
    numbers[0] = eps >= 0 ? eps : NAN;
    numbers[1] = eps >= 0 ? 1 - eps : NAN;
}

/* The limits are rounded to the dtype of the operator, in which they would be tensors. */
static void fill_logit_grad(const tn_call *call, double *numbers)
{
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    double eps = ((const tn_logit_grad_options *)call->options)->eps;
    const double limits[2] = { eps >= 0 ? eps : NAN, eps >= 0 ? 1 - eps : NAN };
    char rounded[2 * sizeof(double)];
    int64_t size = (int64_t)tn_dtype_size(dtype);
    tn__dtype_store(TN__F64, dtype)(2, limits, rounded, size);
    tn__dtype_load(dtype, TN__F64)(2, rounded, size, numbers);
}

/* ---- polygamma of order 1, the derivative of digamma ------------------------------------------
 */

#define PI 3.14159265358979323846
enum { GRAIN = 8192, GROUP = 64, STEPS = 12, BERNOULLI = 8 };
/* B(2), B(4), ... B(16) */
static const double bernoulli[BERNOULLI] = { 1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                             5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510 };

struct job {
    struct tn__span span;
    tn__load *load;
    tn__store *store;
};

/* The asymptotic series at x + STEPS, plus the sum of 1 / (x + k)^2 for k < STEPS. Below 1/2 the
 * result is pi^2 / sin(pi x)^2 minus the result for 1 - x. */
static void trigamma(int64_t n, double *x)
{
    double t[GROUP], y[GROUP] = { 0 };
    for (int64_t j = 0; j < n; j++)
        t[j] = x[j] < 0.5 ? 1 - x[j] : x[j];
    for (int k = 0; k < STEPS; k++)
        for (int64_t j = 0; j < n; j++)
            y[j] += 1 / ((t[j] + k) * (t[j] + k));
    for (int64_t j = 0; j < n; j++) {
        double inverse = 1 / (t[j] + STEPS), square = inverse * inverse, series = 0;
        for (int i = BERNOULLI - 1; i >= 0; i--)
            series = series * square + bernoulli[i];
        y[j] += inverse + square * (0.5 + inverse * series);
    }
    for (int64_t j = 0; j < n; j++) {
        double sine = x[j] < 0.5 ? sin(PI * (x[j] - rint(x[j]))) : 1;
        x[j] = x[j] < 0.5 ? PI / sine * (PI / sine) - y[j] : y[j];
    }
}

static void run(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    double x[GROUP];
    for (int64_t done = 0; done < n; done += GROUP) {
        int64_t count = n - done < GROUP ? n - done : GROUP;
        job->load(count, at[1] + done * stride[1], stride[1], x);
        trigamma(count, x);
        job->store(count, x, at[0] + done * stride[0], stride[0]);
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end, run, job);
    return TN_OK;
}

static bool supports_polygamma(const tn_call *call, char *reason, size_t size)
{
    if (((const tn_polygamma_options *)call->options)->n == 1)
        return true;
    tn_snprint(reason, size, "n: expected 1");
    return false;
}

static tn_status run_polygamma(const tn_call *call)
{
    const tn_view *views[2] = { call->out[0], call->in[0] };
    struct job job = { .load = tn__dtype_load(tn_view_dtype(views[1]), TN__F64),
                       .store = tn__dtype_store(TN__F64, tn_view_dtype(views[0])) };
    tn__span_make(&job.span, 2, views, false);
    return job.span.count <= GRAIN ? part(&job, 0, job.span.count)
                                   : tn_parallel_for(job.span.count, GRAIN, part, &job);
}

static const tn_kernel_def kernels[] = {
    TN__BINARY_KERNEL(xlogy, TN__FLOATS, TN__EW_xlogy),
    TN__BINARY_KERNEL(logaddexp, TN__FLOATS, TN__EW_logaddexp),
    TN__BINARY_KERNEL(logaddexp2, TN__FLOATS, TN__EW_logaddexp2),
    TN__UNARY_KERNEL_OPTIONS(logit, TN__FLOATS, TN__EW_logit),
    TN__BINARY_KERNEL_OPTIONS(logit_grad, TN__FLOATS, TN__EW_logit_grad),
    TN__UNARY_KERNEL(sinc, TN__FLOATS, TN__EW_sinc),
    TN__BINARY_KERNEL(sinc_grad, TN__FLOATS, TN__EW_sinc_grad),
    TN__UNARY_KERNEL(i0, TN__FLOATS, TN__EW_i0),
    TN__UNARY_KERNEL(i1, TN__FLOATS, TN__EW_i1),
    TN__UNARY_KERNEL(digamma, TN__FLOATS, TN__EW_digamma),
    TN__KERNEL_SUPPORTS(polygamma, TN__FLOATS, supports_polygamma),
    TN__UNARY_KERNEL(lgamma, TN__FLOATS, TN__EW_lgamma),
};
TN__KERNEL_TABLE(special);

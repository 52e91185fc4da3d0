/* SPDX-License-Identifier: MIT
 *
 * Elementwise kernels of the strict device: arithmetic, some functions and activations, each with
 * its own kernel. The operators in elementwise_function.c share one kernel. */
#include <math.h>

#include "strict.h"

struct rule {
    double (*f64)(double a, double b, const struct strict_work *work);
    float (*f32)(float a, float b, const struct strict_work *work);
    int64_t (*i64)(int64_t a, int64_t b, const struct strict_work *work); /* NULL: no integers */
};

static tn_status each(struct strict_work *work, const struct rule *rule)
{
    const struct strict_view *y = &work->view[0], *a = &work->view[1],
                             *b = &work->view[work->n_in > 1 ? 2 : 1];
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(y) == 0)
        return TN_OK;
    do {
        int64_t at_y = strict_place(y, index, y->ndim), at_a = strict_place(a, index, y->ndim),
                at_b = strict_place(b, index, y->ndim);
        if (y->dtype == TN_F32)
            strict_set(work, y, at_y,
                       rule->f32((float)strict_get(work, a, at_a), (float)strict_get(work, b, at_b),
                                 work));
        else if (y->dtype == TN_F64)
            strict_set(work, y, at_y,
                       rule->f64(strict_get(work, a, at_a), strict_get(work, b, at_b), work));
        else if (rule->i64)
            strict_set_int(
                work, y, at_y,
                rule->i64(strict_get_int(work, a, at_a), strict_get_int(work, b, at_b), work));
    } while (strict_step(index, y));
    return TN_OK;
}

static tn_status no_options(const tn_call *call, struct strict_work *work)
{
    (void)call, (void)work;
    return TN_OK;
}

#define FLOATS(name, expr32, expr64)                                                               \
    static double name##_f64(double a, double b, const struct strict_work *work)                   \
    {                                                                                              \
        (void)a, (void)b, (void)work;                                                              \
        return expr64;                                                                             \
    }                                                                                              \
    static float name##_f32(float a, float b, const struct strict_work *work)                      \
    {                                                                                              \
        (void)a, (void)b, (void)work;                                                              \
        return expr32;                                                                             \
    }
#define WHOLE(name, expr)                                                                          \
    static int64_t name##_i64(int64_t a, int64_t b, const struct strict_work *work)                \
    {                                                                                              \
        (void)a, (void)b, (void)work;                                                              \
        return (int64_t)(expr);                                                                    \
    }
#define OPERATOR(name, i64_, fill_)                                                                \
    static tn_status name##_body(struct strict_work *work)                                         \
    {                                                                                              \
        static const struct rule rule = { name##_f64, name##_f32, i64_ };                          \
        return each(work, &rule);                                                                  \
    }                                                                                              \
    STRICT_KERNEL(name)                                                                            \
    {                                                                                              \
        return strict_enqueue(call, name##_body, fill_);                                           \
    }

#define P (work->real[0])
#define PI ((uint64_t)work->whole[0])
#define U(x) (uint64_t)(x)

static tn_status fill_add(const tn_call *call, struct strict_work *work)
{
    strict_number(call, work, 0, ((const tn_add_options *)call->options)->alpha);
    if (tn_view_dtype(call->out[0]) == TN_BOOL)
        work->whole[0] = work->real[0] != 0; /* as in PyTorch, alpha has the dtype of the result */
    return TN_OK;
}
FLOATS(add, a + (float)P * b, a + P * b)
WHOLE(add, U(a) + PI * U(b))
OPERATOR(add, add_i64, fill_add)

static tn_status fill_sub(const tn_call *call, struct strict_work *work)
{
    strict_number(call, work, 0, ((const tn_sub_options *)call->options)->alpha);
    return TN_OK;
}
FLOATS(sub, a - (float)P * b, a - P * b)
WHOLE(sub, U(a) - PI * U(b))
OPERATOR(sub, sub_i64, fill_sub)

static tn_status fill_add_scalar(const tn_call *call, struct strict_work *work)
{
    strict_number(call, work, 0, ((const tn_add_scalar_options *)call->options)->value);
    return TN_OK;
}
FLOATS(add_scalar, a + (float)P, a + P)
WHOLE(add_scalar, U(a) + PI)
OPERATOR(add_scalar, add_scalar_i64, fill_add_scalar)

static tn_status fill_mul_scalar(const tn_call *call, struct strict_work *work)
{
    strict_number(call, work, 0, ((const tn_mul_scalar_options *)call->options)->value);
    return TN_OK;
}
FLOATS(mul_scalar, a *(float)P, a *P)
WHOLE(mul_scalar, U(a) * PI)
OPERATOR(mul_scalar, mul_scalar_i64, fill_mul_scalar)

FLOATS(mul, a *b, a *b)
WHOLE(mul, U(a) * U(b))
OPERATOR(mul, mul_i64, no_options)
FLOATS(div, a / b, a / b)
static tn_status div_body(struct strict_work *work)
{
    static const struct rule rule = { div_f64, div_f32, NULL };
    return each(work, &rule);
}
STRICT_KERNEL(div)
{
    if (((const tn_div_options *)call->options)->rounding_mode != NULL)
        return strict_div_rounded(call);
    return strict_enqueue(call, div_body, no_options);
}
FLOATS(maximum, a != a || a > b ? a : b, a != a || a > b ? a : b)
WHOLE(maximum, a > b ? a : b)
OPERATOR(maximum, maximum_i64, no_options)
FLOATS(neg, -a, -a)
WHOLE(neg, 0 - U(a))
OPERATOR(neg, neg_i64, no_options)
FLOATS(exp, expf(a), exp(a))
OPERATOR(exp, NULL, no_options)
FLOATS(log, logf(a), log(a))
OPERATOR(log, NULL, no_options)
FLOATS(sqrt, sqrtf(a), sqrt(a))
OPERATOR(sqrt, NULL, no_options)
FLOATS(relu, a < 0 ? 0 : a, a < 0 ? 0 : a)
WHOLE(relu, a < 0 ? 0 : a)
OPERATOR(relu, relu_i64, no_options)
FLOATS(relu_grad, b <= 0 ? 0 : a, b <= 0 ? 0 : a)
OPERATOR(relu_grad, NULL, no_options)
FLOATS(sigmoid, 1 / (1 + expf(-a)), 1 / (1 + exp(-a)))
OPERATOR(sigmoid, NULL, no_options)

/* SPDX-License-Identifier: MIT
 *
 * The strict device's operators that work element by element, copies and random numbers: plain
 * C, one element after the other. */
#include <math.h>

#include "strict.h"

/* ---- one element at a time ------------------------------------------------------------------- */

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
#define U(x) (uint64_t)(x)

static tn_status fill_add(const tn_call *call, struct strict_work *work)
{
    work->real[0] = ((const tn_add_options *)call->options)->alpha;
    if (tn_view_dtype(call->out[0]) == TN_BOOL)
        work->real[0] = work->real[0] != 0; /* as in PyTorch it has the result's type */
    return TN_OK;
}
FLOATS(add, a + (float)P * b, a + P * b)
WHOLE(add, U(a) + U((int64_t)P) * U(b))
OPERATOR(add, add_i64, fill_add)

static tn_status fill_sub(const tn_call *call, struct strict_work *work)
{
    work->real[0] = ((const tn_sub_options *)call->options)->alpha;
    return TN_OK;
}
FLOATS(sub, a - (float)P * b, a - P * b)
WHOLE(sub, U(a) - U((int64_t)P) * U(b))
OPERATOR(sub, sub_i64, fill_sub)

static tn_status fill_add_scalar(const tn_call *call, struct strict_work *work)
{
    work->real[0] = ((const tn_add_scalar_options *)call->options)->value;
    return TN_OK;
}
FLOATS(add_scalar, a + (float)P, a + P)
WHOLE(add_scalar, U(a) + U((int64_t)P))
OPERATOR(add_scalar, add_scalar_i64, fill_add_scalar)

static tn_status fill_mul_scalar(const tn_call *call, struct strict_work *work)
{
    work->real[0] = ((const tn_mul_scalar_options *)call->options)->value;
    return TN_OK;
}
FLOATS(mul_scalar, a *(float)P, a *P)
WHOLE(mul_scalar, U(a) * U((int64_t)P))
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

/* ---- copies ---------------------------------------------------------------------------------- */

static void copy_one(struct strict_work *work, const struct strict_view *to, int64_t to_at,
                     const struct strict_view *from, int64_t from_at)
{
    if (to->dtype == from->dtype)
        strict_copy_element(work, to, to_at, from, from_at);
    else if (strict_is_float(from->dtype))
        strict_set(work, to, to_at, strict_get(work, from, from_at));
    else if (strict_is_float(to->dtype))
        strict_set(work, to, to_at, (double)strict_get_int(work, from, from_at));
    else
        strict_set_int(work, to, to_at, strict_get_int(work, from, from_at));
}

static tn_status copy_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0], *x = &work->view[1];
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(y) == 0)
        return TN_OK;
    do
        copy_one(work, y, strict_place(y, index, y->ndim), x, strict_place(x, index, y->ndim));
    while (strict_step(index, y));
    return TN_OK;
}

static tn_status fill_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0];
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(y) == 0)
        return TN_OK;
    do
        strict_set(work, y, strict_place(y, index, y->ndim), P);
    while (strict_step(index, y));
    return TN_OK;
}

static tn_status fill_fill(const tn_call *call, struct strict_work *work)
{
    work->real[0] = ((const tn_fill_options *)call->options)->value;
    return TN_OK;
}

static tn_status narrow_grad_body(struct strict_work *work)
{
    const struct strict_view *gx = &work->view[0], *gy = &work->view[1];
    int64_t index[TN_MAX_DIMS] = { 0 }, dim = work->whole[0], start = work->whole[1];
    work->real[0] = 0;
    tn_status status = fill_body(work);
    if (status != TN_OK || strict_count(gy) == 0)
        return status;
    do
        copy_one(work, gx, strict_place(gx, index, gx->ndim) + start * gx->strides[dim], gy,
                 strict_place(gy, index, gy->ndim));
    while (strict_step(index, gy));
    return TN_OK;
}

static tn_status fill_narrow_grad(const tn_call *call, struct strict_work *work)
{
    const tn_narrow_grad_options *options = call->options;
    int32_t ndim = call->out[0]->ndim;
    int64_t dim = options->dim < 0 ? options->dim + ndim : options->dim;
    if (dim < 0 || dim >= ndim)
        return tn_fail(TN_ERR_INDEX, "narrow_grad: dimension %lld is out of range",
                       (long long)options->dim);
    work->whole[0] = dim;
    work->whole[1] = options->start < 0 ? options->start + call->out[0]->shape[dim]
                                        : options->start;
    return TN_OK;
}

tn_status strict_copy_kernel(const tn_call *call)
{
    return strict_enqueue(call, copy_body, no_options);
}
STRICT_KERNEL(fill)
{
    return strict_enqueue(call, fill_body, fill_fill);
}
STRICT_KERNEL(narrow_grad)
{
    return strict_enqueue(call, narrow_grad_body, fill_narrow_grad);
}

/* ---- random numbers -------------------------------------------------------------------------- */

static void philox(uint64_t seed, uint64_t block, uint32_t c[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    c[0] = (uint32_t)block;
    c[1] = (uint32_t)(block >> 32);
    c[2] = c[3] = 0;
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        uint64_t p0 = (uint64_t)c[0] * 0xD2511F53u, p1 = (uint64_t)c[2] * 0xCD9E8D57u;
        c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ k0;
        c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)p1;
        c[3] = (uint32_t)p0;
    }
}

static double bits53(const uint32_t *w)
{
    return (double)(((uint64_t)w[0] << 32 | w[1]) >> 11);
}

static double uniform(const struct strict_work *work, tn_dtype dtype, uint64_t i)
{
    uint32_t w[4];
    uint64_t per = dtype == TN_F32 ? 4 : 2;
    philox((uint64_t)work->whole[0], (uint64_t)work->whole[1] + i / per, w);
    if (dtype == TN_F32)
        return fmaf((float)(w[i % 4] >> 8) * 0x1p-24f, (float)(work->real[1] - work->real[0]),
                    (float)work->real[0]);
    return fma(bits53(&w[2 * (i % 2)]) * 0x1p-53, work->real[1] - work->real[0], work->real[0]);
}

static double normal(const struct strict_work *work, tn_dtype dtype, uint64_t i)
{
    static const double turn = 6.283185307179586476925286766559;
    uint32_t w[4];
    uint64_t per = dtype == TN_F32 ? 2 : 1;
    philox((uint64_t)work->whole[0], (uint64_t)work->whole[1] + i / per, w);
    const uint32_t *own = &w[dtype == TN_F32 ? 2 * (i % 2) : 0];
    double u1, u2;
    if (dtype == TN_F32) {
        u1 = ((double)(own[0] >> 8) + 1) * 0x1p-24;
        u2 = (double)(own[1] >> 8) * 0x1p-24;
    } else {
        u1 = (bits53(own) + 1) * 0x1p-53;
        u2 = bits53(own + 2) * 0x1p-53;
    }
    return work->real[0] + work->real[1] * (sqrt(-2 * log(u1)) * cos(turn * u2));
}

static tn_status draw(struct strict_work *work,
                      double (*number)(const struct strict_work *work, tn_dtype dtype, uint64_t i))
{
    const struct strict_view *y = &work->view[0];
    int64_t index[TN_MAX_DIMS] = { 0 };
    uint64_t i = 0;
    if (strict_count(y) == 0)
        return TN_OK;
    do
        strict_set(work, y, strict_place(y, index, y->ndim), number(work, y->dtype, i++));
    while (strict_step(index, y));
    return TN_OK;
}

static tn_status uniform_body(struct strict_work *work)
{
    return draw(work, uniform);
}

static tn_status normal_body(struct strict_work *work)
{
    return draw(work, normal);
}

static tn_status fill_uniform(const tn_call *call, struct strict_work *work)
{
    const tn_philox_uniform_options *options = call->options;
    work->real[0] = options->low;
    work->real[1] = options->high;
    work->whole[0] = options->seed;
    work->whole[1] = options->block;
    return TN_OK;
}

static tn_status fill_normal(const tn_call *call, struct strict_work *work)
{
    const tn_philox_normal_options *options = call->options;
    work->real[0] = options->mean;
    work->real[1] = options->std;
    work->whole[0] = options->seed;
    work->whole[1] = options->block;
    return TN_OK;
}

STRICT_KERNEL(philox_uniform)
{
    return strict_enqueue(call, uniform_body, fill_uniform);
}
STRICT_KERNEL(philox_normal)
{
    return strict_enqueue(call, normal_body, fill_normal);
}

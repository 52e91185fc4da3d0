/* SPDX-License-Identifier: MIT
 *
 * Short names for operators, so that derivatives and decompositions read as formulas. If an
 * argument is NULL, because an earlier step failed, each of them returns NULL without a new
 * error. */
#ifndef TN_OPS_FORMULA_H
#define TN_OPS_FORMULA_H

#include "common.h"

/* ---- on tensors, or on a tensor and a number ---- */

static inline tn_tensor *number(tn_tensor *like, tn_scalar value)
{
    return tn__scalar_number(like, value);
}
#define number(like, value) number(like, TN_SCALAR(value))

static inline tn_tensor *plus(tn_tensor *a, tn_tensor *b)
{
    return tn_add(a, b);
}

static inline tn_tensor *minus(tn_tensor *a, tn_tensor *b)
{
    return tn_sub(a, b);
}

static inline tn_tensor *divide(tn_tensor *a, tn_tensor *b)
{
    return tn_div(a, b);
}

/* Returns x + value. As in every operator, integers stay integers only with an integer. */
static inline tn_tensor *add_number(tn_tensor *x, tn_scalar value)
{
    return tn_add_scalar(x, value);
}
#define add_number(x, value) add_number(x, TN_SCALAR(value))

/* Returns x * factor */
static inline tn_tensor *times(tn_tensor *x, tn_scalar factor)
{
    return tn__scalar_is(factor, 1) ? x : tn_mul_scalar(x, factor);
}
#define times(x, factor) times(x, TN_SCALAR(factor))

/* Returns x + factor * y */
static inline tn_tensor *plus_times(tn_tensor *x, tn_scalar factor, tn_tensor *y)
{
    return tn_add(x, y, factor);
}
#define plus_times(x, factor, y) plus_times(x, TN_SCALAR(factor), y)

static inline tn_tensor *one_minus(tn_tensor *x)
{
    return add_number(tn_neg(x), 1.0);
}

/* max(x, least) */
static inline tn_tensor *at_least(tn_tensor *x, tn_scalar least)
{
    return tn_clamp(x, least);
}
#define at_least(x, least) at_least(x, TN_SCALAR(least))

/* Returns a bound that leaves x its dtype: for integers its integral part. */
static inline tn_scalar bound_for(const tn_tensor *x, double value)
{
    tn_scalar real = tn_scalar_float(value);

    return x != NULL && value == value && tn__is_int(tn_tensor_dtype(x))
               ? tn_scalar_int(tn_scalar_as_int(real))
               : real;
}

/* min(max(x, min), max), in the dtype of x; a bound that is NaN is ignored */
static inline tn_tensor *clamped(tn_tensor *x, double min, double max)
{
    return tn_clamp(x, bound_for(x, min), bound_for(x, max));
}

/* ---- masks ---- */

static inline tn_tensor *is_above(tn_tensor *x, double value)
{
    return tn_gt(x, number(x, value));
}

static inline tn_tensor *is_at_most(tn_tensor *x, tn_scalar value)
{
    return tn_le(x, number(x, value));
}
#define is_at_most(x, value) is_at_most(x, TN_SCALAR(value))

static inline tn_tensor *is_at_least(tn_tensor *x, double value)
{
    return tn_ge(x, number(x, value));
}

/* 0 where the mask is true, else x */
static inline tn_tensor *zero_where(tn_tensor *mask, tn_tensor *x)
{
    return tn_masked_fill(x, mask, 0.0);
}

/* ---- options ---- */

static inline bool is(const char *text, const char *word)
{
    return text != NULL && strcmp(text, word) == 0;
}

/* ---- macros that define an operator's functions from a formula ---- */

/* Defines NAME_infer, which returns the status `result`, an expression of `infer` and the options
 * o. */
#define INFER(name, result)                                                                        \
    static tn_status name##_infer(tn_infer *infer)                                                 \
    {                                                                                              \
        const tn_##name##_options *o = infer->options;                                             \
        (void)o;                                                                                   \
        return result;                                                                             \
    }

/* Defines NAME_derive, which sets gin[0] to `gradient`, an expression of the gradient gy, the input
 * x, the result y and the options o. x and y exist only if the schema's `save` line names them. */
#define DERIVE(name, gradient)                                                                     \
    static tn_status name##_derive(tn_derive *d)                                                   \
    {                                                                                              \
        const tn_##name##_options *o = d->options;                                                 \
        tn_tensor *gy = d->gout[0], *x = d->in[0], *y = d->out[0];                                 \
        (void)o, (void)gy, (void)x, (void)y;                                                       \
        d->gin[0] = gradient;                                                                      \
        return TN_OK;                                                                              \
    }

/* Defines NAME_decompose, which computes the output as `result`, an expression of the inputs in[],
 * the first input x and the options o. */
#define DECOMPOSE(name, result)                                                                    \
    static tn_status name##_decompose(const tn_decompose *call)                                    \
    {                                                                                              \
        const tn_##name##_options *o = call->options;                                              \
        tn_tensor *const *in = call->in;                                                           \
        tn_tensor *x = in[0];                                                                      \
        (void)o, (void)x;                                                                          \
        return tn__common_given(call->out, result);                                                \
    }

/* Like DECOMPOSE, for an operator whose inputs are a gradient gy and the x of another operator. */
#define DECOMPOSE_GRAD(name, result)                                                               \
    static tn_status name##_decompose(const tn_decompose *call)                                    \
    {                                                                                              \
        const tn_##name##_options *o = call->options;                                              \
        tn_tensor *const *in = call->in;                                                           \
        tn_tensor *gy = in[0], *x = in[1];                                                         \
        (void)o, (void)x;                                                                          \
        return tn__common_given(call->out, result);                                                \
    }

/* Defines NAME_decompose, which returns the status `result`, an expression of call, in[], out[] and
 * the options o that sets out[]. */
#define DECOMPOSE_INTO(name, result)                                                               \
    static tn_status name##_decompose(const tn_decompose *call)                                    \
    {                                                                                              \
        const tn_##name##_options *o = call->options;                                              \
        tn_tensor *const *in = call->in;                                                           \
        tn_tensor **out = call->out;                                                               \
        (void)o, (void)in, (void)out;                                                              \
        return result;                                                                             \
    }

/* Defines an operator that has only inference and a decomposition, both given as a status. It has
 * no derivative of its own: it is differentiated through its decomposition. */
#define COMPOSED(name, infer_, decompose_)                                                         \
    INFER(name, infer_)                                                                            \
    DECOMPOSE_INTO(name, decompose_)                                                               \
    TN__OP(name, .infer = name##_infer, .decompose = name##_decompose)

/* Defines an elementwise operator of one input from its decomposition and its derivative. Its
 * inference is tn__common_unary: the result has the shape and dtype of the input. */
#define UNARY(name, result, gradient)                                                              \
    DECOMPOSE(name, result)                                                                        \
    DERIVE(name, gradient)                                                                         \
    TN__OP(name, .infer = tn__common_unary, .derive = name##_derive, .decompose = name##_decompose)

/* Returns whether a number has at most the bits of the mantissa that bfloat16 has, and an exponent
 * that float16 has, so that no dtype rounds it. */
static inline bool is_exact(double value)
{
    double size = fabs(value);
    int exponent;

    return value == 0 ||
           (size >= 0x1p-14 && size <= 0x1p15 && fmod(ldexp(frexp(size, &exponent), 8), 1) == 0);
}

#endif

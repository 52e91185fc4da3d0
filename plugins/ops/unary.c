/* SPDX-License-Identifier: MIT
 *
 * Functions of one number: inference, derivatives and decompositions. */
#include "common.h"

static tn_status exp_derive(tn_derive *d)
{
    d->gin[0] = tn_mul(d->gout[0], tn__common_conj(d->out[0]));
    return TN_OK;
}

static tn_status log_derive(tn_derive *d)
{
    d->gin[0] = tn_div(d->gout[0], tn__common_conj(d->in[0]), NULL);
    return TN_OK;
}

static tn_status sqrt_derive(tn_derive *d)
{
    d->gin[0] = tn_div(d->gout[0], tn__common_conj(tn_mul_scalar(d->out[0], 2.0)), NULL);
    return TN_OK;
}
const tn_op_def tn__op_exp = { TN_HEAD(tn_op_def), TN_SCHEMA_EXP, .infer = tn__common_unary,
                               .derive = exp_derive, TN__PARTS(exp) };
const tn_op_def tn__op_log = { TN_HEAD(tn_op_def), TN_SCHEMA_LOG, .infer = tn__common_unary,
                               .derive = log_derive, TN__PARTS(log) };
const tn_op_def tn__op_sqrt = { TN_HEAD(tn_op_def), TN_SCHEMA_SQRT, .infer = tn__common_unary,
                                .derive = sqrt_derive, TN__PARTS(sqrt) };

static tn_tensor *times(tn_tensor *x, double factor)
{
    return tn_mul_scalar(x, factor);
}

static tn_tensor *plus(tn_tensor *x, double number)
{
    return tn_add_scalar(x, number);
}

static tn_tensor *over(tn_tensor *a, tn_tensor *b)
{
    return tn_div(a, b, NULL);
}

static tn_tensor *chain(tn_tensor *gy, tn_tensor *slope)
{
    return tn__common_chain(gy, slope);
}

/* 1 - x^2, 1 + x^2 */
static tn_tensor *one_minus_square(tn_tensor *x)
{
    return plus(tn_neg(tn_mul(x, x)), 1.0);
}

static tn_tensor *one_plus_square(tn_tensor *x)
{
    return plus(tn_mul(x, x), 1.0);
}

/* gin[0] from the gradient gy, the input x and the result y, of which the schema says what is there. */
#define DERIVE(name, gradient)                                                                     \
    static tn_status name##_derive(tn_derive *d)                                                   \
    {                                                                                              \
        tn_tensor *gy = d->gout[0], *x = d->in[0], *y = d->out[0];                                 \
                                                                                                   \
        (void)gy, (void)x, (void)y;                                                                \
        d->gin[0] = gradient;                                                                      \
        return TN_OK;                                                                              \
    }
#define DECOMPOSE(name, result)                                                                    \
    static tn_status name##_decompose(tn_tensor *const *in, int64_t n_in, const void *options,     \
                                      tn_tensor **out)                                             \
    {                                                                                              \
        tn_tensor *x = in[0];                                                                      \
                                                                                                   \
        (void)n_in, (void)options;                                                                 \
        return tn__common_given(out, result);                                                      \
    }
#define PRIMITIVE(name, NAME)                                                                      \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME,                        \
                                      .infer = tn__common_unary, .derive = name##_derive };
/* The same, by parts for complex numbers where a device has no kernel for those. */
#define ALSO_COMPLEX(name, NAME)                                                                   \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME,                        \
                                      .infer = tn__common_unary, .derive = name##_derive,          \
                                      TN__PARTS(name) };
#define COMPOSED(name, NAME)                                                                       \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME,                        \
                                      .infer = tn__common_unary, .derive = name##_derive,          \
                                      .decompose = name##_decompose };

/* Of complex numbers x / |x|, 0 at 0. */
static tn_tensor *direction(tn_tensor *x)
{
    tn_tensor *size;

    if (x == NULL || !tn__is_complex(tn_tensor_dtype(x)))
        return tn_sign(x);
    size = tn_abs(x);
    return tn_where(tn_eq(size, tn__common_number(size, 0.0)), tn__common_number(x, 0.0),
                    over(x, size));
}
static tn_status abs_infer(tn_infer *infer)
{
    tn__common_like(infer, 0, 0, tn__common_part(tn_view_dtype(infer->in[0])));
    return TN_OK;
}
DERIVE(abs, tn_mul(gy, direction(x)))
const tn_op_def tn__op_abs = { TN_HEAD(tn_op_def), TN_SCHEMA_ABS, .infer = abs_infer,
                               .derive = abs_derive, TN__PARTS(abs) };
/* steps: flat everywhere */
DERIVE(sign, tn_fill(gy, 0.0))
PRIMITIVE(sign, SIGN)
DERIVE(floor, tn_fill(gy, 0.0))
PRIMITIVE(floor, FLOOR)
DERIVE(ceil, tn_fill(gy, 0.0))
PRIMITIVE(ceil, CEIL)
DERIVE(trunc, tn_fill(gy, 0.0))
PRIMITIVE(trunc, TRUNC)
DERIVE(round, tn_fill(gy, 0.0))
PRIMITIVE(round, ROUND)

DERIVE(frac, gy)
DECOMPOSE(frac, tn_sub(x, tn_trunc(x), NULL))
COMPOSED(frac, FRAC)
DERIVE(square, chain(gy, times(x, 2.0)))
DECOMPOSE(square, tn_mul(x, x))
static tn_status square_infer(tn_infer *infer)
{
    if (tn_view_dtype(infer->in[0]) == TN_BOOL)
        infer->dtype = TN_I64;
    return tn__common_unary(infer);
}
const tn_op_def tn__op_square = { TN_HEAD(tn_op_def), TN_SCHEMA_SQUARE, .infer = square_infer,
                                  .derive = square_derive, .decompose = square_decompose };
DERIVE(reciprocal, tn_neg(chain(gy, tn_mul(y, y))))
DECOMPOSE(reciprocal, over(tn__common_number(x, 1.0), x))
COMPOSED(reciprocal, RECIPROCAL)
DERIVE(rsqrt, times(chain(gy, tn_mul(y, tn_mul(y, y))), -0.5))
DECOMPOSE(rsqrt, over(tn__common_number(x, 1.0), tn_sqrt(x)))
COMPOSED(rsqrt, RSQRT)

DERIVE(expm1, chain(gy, plus(y, 1.0)))
ALSO_COMPLEX(expm1, EXPM1)
DERIVE(log1p, over(gy, tn__common_conj(plus(x, 1.0))))
ALSO_COMPLEX(log1p, LOG1P)
DERIVE(log2, over(gy, tn__common_conj(times(x, 0.69314718055994530942))))
ALSO_COMPLEX(log2, LOG2)
DERIVE(log10, over(gy, tn__common_conj(times(x, 2.30258509299404568402))))
ALSO_COMPLEX(log10, LOG10)

DERIVE(sin, chain(gy, tn_cos(x)))
ALSO_COMPLEX(sin, SIN)
DERIVE(cos, tn_neg(chain(gy, tn_sin(x))))
ALSO_COMPLEX(cos, COS)
DERIVE(tan, chain(gy, one_plus_square(y)))
ALSO_COMPLEX(tan, TAN)
DERIVE(asin, chain(gy, tn_rsqrt(one_minus_square(x))))
ALSO_COMPLEX(asin, ASIN)
DERIVE(acos, tn_neg(chain(gy, tn_rsqrt(one_minus_square(x)))))
ALSO_COMPLEX(acos, ACOS)
DERIVE(atan, over(gy, tn__common_conj(one_plus_square(x))))
ALSO_COMPLEX(atan, ATAN)
DERIVE(sinh, chain(gy, tn_cosh(x)))
ALSO_COMPLEX(sinh, SINH)
DERIVE(cosh, chain(gy, tn_sinh(x)))
ALSO_COMPLEX(cosh, COSH)
DERIVE(tanh,
       tn__is_complex(d->in_meta[0].dtype) ? chain(gy, one_minus_square(y)) : tn_tanh_grad(gy, y))
ALSO_COMPLEX(tanh, TANH)

/* 2 / sqrt(pi) e^-x^2, and what it is over */
#define TWO_OVER_ROOT_PI 1.12837916709551257390
DERIVE(erf, tn_mul(gy, times(tn_exp(tn_neg(tn_mul(x, x))), TWO_OVER_ROOT_PI)))
PRIMITIVE(erf, ERF)
DERIVE(erfc, tn_mul(gy, times(tn_exp(tn_neg(tn_mul(x, x))), -TWO_OVER_ROOT_PI)))
PRIMITIVE(erfc, ERFC)
DERIVE(erfinv, tn_mul(gy, times(tn_exp(tn_mul(y, y)), 1.0 / TWO_OVER_ROOT_PI)))
PRIMITIVE(erfinv, ERFINV)

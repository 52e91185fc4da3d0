/* SPDX-License-Identifier: MIT
 *
 * Decompositions of primitives for complex numbers into primitives on the real and imaginary parts,
 * for devices without kernels for complex numbers. In all formulas z = a + b i.
 * scatter_add of bool is here, too. */
#include "formula.h"

static tn_tensor *if_zero(tn_tensor *x, tn_tensor *then, tn_tensor *otherwise)
{
    return tn_where(tn_eq(x, number(x, 0.0)), then, otherwise);
}

/* Defines the decomposition of an operator with one input, z = a + b i. */
#define OF_PARTS(name, result)                                                                     \
    tn_status tn__complex_parts_##name(const tn_decompose *call)                                   \
    {                                                                                              \
        tn_tensor *const *in = call->in;                                                           \
        const void *options = call->options;                                                       \
        tn_tensor *a = tn_real(in[0]), *b = tn_imag(in[0]);                                        \
                                                                                                   \
        (void)options, (void)a, (void)b;                                                           \
        return tn__common_given(call->out, result);                                                \
    }
/* Defines the decomposition of an operator with two inputs, z = a + b i and w = c + d i. */
#define OF_PAIRS(name, result)                                                                     \
    tn_status tn__complex_parts_##name(const tn_decompose *call)                                   \
    {                                                                                              \
        tn_tensor *const *in = call->in;                                                           \
        const void *options = call->options;                                                       \
        tn_tensor *a = tn_real(in[0]), *b = tn_imag(in[0]), *c = tn_real(in[1]),                   \
                  *d = tn_imag(in[1]);                                                             \
                                                                                                   \
        (void)options;                                                                             \
        return tn__common_given(call->out, result);                                                \
    }

/* ---- addition, subtraction, multiplication, division ---- */

/* Returns x + alpha y; each part on its own if alpha is real. */
static tn_tensor *sum_of(tn_tensor *const *in, tn_scalar alpha)
{
    tn_tensor *a = tn_real(in[0]), *b = tn_imag(in[0]), *y = in[1];
    double real = 1.0;

    if (tn__scalar_imaginary(alpha))
        y = tn_mul_scalar(y, alpha);
    else
        real = tn_scalar_as_float(alpha);
    return tn_complex(plus_times(a, real, tn_real(y)), plus_times(b, real, tn_imag(y)));
}

tn_status tn__complex_parts_add(const tn_decompose *call)
{
    const tn_add_options *o = call->options;

    return tn__common_given(call->out, sum_of(call->in, o->alpha));
}

tn_status tn__complex_parts_sub(const tn_decompose *call)
{
    const tn_sub_options *o = call->options;

    return tn__common_given(call->out, sum_of(call->in, tn__scalar_neg(o->alpha)));
}
OF_PAIRS(mul, tn_complex(minus(tn_mul(a, c), tn_mul(b, d)), plus(tn_mul(a, d), tn_mul(b, c))))
OF_PAIRS(eq, tn_bitwise_and(tn_eq(a, c), tn_eq(b, d)))
OF_PARTS(neg, tn_complex(tn_neg(a), tn_neg(b)))

tn_status tn__complex_parts_add_scalar(const tn_decompose *call)
{
    tn_scalar value = ((const tn_add_scalar_options *)call->options)->value;
    tn_tensor *x = call->in[0], *re, *im;

    if (tn_tensor_dtype(x) == TN_BOOL)
        return tn__common_given(call->out, tn_bitwise_or(x, number(x, value)));
    re = tn_add_scalar(tn_real(x), tn_scalar_as_float(value));
    im = tn__scalar_imaginary(value) ? tn_add_scalar(tn_imag(x), tn_scalar_imag(value))
                                     : tn_copy(tn_imag(x));
    return tn__common_given(call->out, tn_complex(re, im));
}

tn_status tn__complex_parts_mul_scalar(const tn_decompose *call)
{
    tn_scalar value = ((const tn_mul_scalar_options *)call->options)->value;
    double c = tn_scalar_as_float(value), d = tn_scalar_imag(value);
    tn_tensor *x = call->in[0], *a, *b;

    if (tn_tensor_dtype(x) == TN_BOOL)
        return tn__common_given(call->out, tn_bitwise_and(x, number(x, value)));
    a = tn_real(x);
    b = tn_imag(x);
    if (value.kind != TN_SCALAR_COMPLEX)
        return tn__common_given(call->out, tn_complex(tn_mul_scalar(a, c), tn_mul_scalar(b, c)));
    return tn__common_given(call->out, tn_complex(minus(tn_mul_scalar(a, c), tn_mul_scalar(b, d)),
                                                  plus(tn_mul_scalar(a, d), tn_mul_scalar(b, c))));
}

/* (a + b i) / (c + d i). Divides by the larger of |c| and |d| first, so that intermediate results
 * do not overflow. */
static tn_tensor *quotient(tn_tensor *a, tn_tensor *b, tn_tensor *c, tn_tensor *d)
{
    tn_tensor *scale = tn_maximum(tn_abs(c), tn_abs(d));
    tn_tensor *c1 = divide(c, scale), *d1 = divide(d, scale);
    tn_tensor *whole = plus(tn_mul(c, c1), tn_mul(d, d1));

    return tn_complex(divide(plus(tn_mul(a, c1), tn_mul(b, d1)), whole),
                      divide(minus(tn_mul(b, c1), tn_mul(a, d1)), whole));
}
OF_PAIRS(div, quotient(a, b, c, d))

/* ---- absolute value, roots, powers ---- */

/* |a + b i|, computed as the larger of |a| and |b| times sqrt(1 + ratio^2), which does not
 * overflow. */
static tn_tensor *size_of(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *x = tn_abs(a), *y = tn_abs(b);
    tn_tensor *large = tn_maximum(x, y), *ratio = divide(tn_minimum(x, y), large);
    tn_tensor *size = tn_mul(large, tn_sqrt(tn_add_scalar(tn_mul(ratio, ratio), 1.0)));

    return tn_where(tn_bitwise_or(tn_eq(large, number(large, 0.0)), tn_isinf(large)), large, size);
}
OF_PARTS(abs, size_of(a, b))

/* t = sqrt((|z| + |a|) / 2) is the larger part of the root, |b| / 2t the smaller one. */
static tn_tensor *root(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *t = tn_sqrt(tn_mul_scalar(plus(size_of(a, b), tn_abs(a)), 0.5));
    tn_tensor *other = if_zero(t, number(t, 0.0), divide(tn_abs(b), tn_mul_scalar(t, 2.0)));
    tn_tensor *right = tn_ge(a, number(a, 0.0)), *up = tn_where(right, other, t);

    return tn_complex(tn_where(right, t, other),
                      tn_where(tn_lt(b, number(b, 0.0)), tn_neg(up), up));
}
OF_PARTS(sqrt, root(a, b))

/* e^(w ln z). For z = 0 the result is 0 if the real part of w is positive. Otherwise the imaginary
 * part of the result is NaN; its real part is infinite if the real part of w is negative, else NaN.
 */
static tn_tensor *power(tn_tensor *z, tn_tensor *w)
{
    tn_tensor *none = tn_eq(z, number(z, 0.0));
    tn_tensor *re = tn_real(w), *positive = tn_gt(re, number(re, 0.0));
    tn_tensor *other = tn_where(tn_lt(re, number(re, 0.0)), number(re, INFINITY), number(re, NAN));
    tn_tensor *flat = tn_complex(tn_where(positive, number(re, 0.0), other),
                                 tn_where(positive, number(re, 0.0), number(re, NAN)));
    tn_tensor *base = tn_where(none, number(z, 1.0), z);

    return tn_where(none, flat, tn_exp(tn_mul(w, tn_ln(base))));
}
OF_PAIRS(pow, ((void)a, (void)b, (void)c, (void)d, power(in[0], in[1])))

/* ---- exponentials and logarithms ---- */

OF_PARTS(exp, tn_complex(tn_mul(tn_exp(a), tn_cos(b)), tn_mul(tn_exp(a), tn_sin(b))))
OF_PARTS(log, tn_complex(tn_ln(size_of(a, b)), tn_atan2(b, a)))
OF_PARTS(log2, tn_mul_scalar(tn_ln(in[0]), 1.44269504088896340736))
OF_PARTS(log10, tn_mul_scalar(tn_ln(in[0]), 0.43429448190325182765))
/* The real part is ln |1 + z| = ln(1 + a (2 + a) + b^2) / 2. */
OF_PARTS(log1p,
         tn_complex(tn_mul_scalar(tn_log1p(plus(tn_mul(a, tn_add_scalar(a, 2.0)), tn_mul(b, b))),
                                  0.5),
                    tn_atan2(b, tn_add_scalar(a, 1.0))))
/* The real part is e^a cos b - 1 = (e^a - 1) cos b - 2 sin(b / 2)^2, which does not cancel around
 * 0. */
OF_PARTS(expm1, tn_complex(minus(tn_mul(tn_expm1(a), tn_cos(b)),
                                 tn_mul_scalar(tn_square(tn_sin(tn_mul_scalar(b, 0.5))), 2.0)),
                           tn_mul(tn_exp(a), tn_sin(b))))
OF_PARTS(sigmoid, divide(number(in[0], 1.0), tn_add_scalar(tn_exp(tn_neg(in[0])), 1.0)))

/* ---- trigonometric and hyperbolic functions ---- */

OF_PARTS(sin, tn_complex(tn_mul(tn_sin(a), tn_cosh(b)), tn_mul(tn_cos(a), tn_sinh(b))))
OF_PARTS(cos, tn_complex(tn_mul(tn_cos(a), tn_cosh(b)), tn_neg(tn_mul(tn_sin(a), tn_sinh(b)))))
OF_PARTS(sinh, tn_complex(tn_mul(tn_sinh(a), tn_cos(b)), tn_mul(tn_cosh(a), tn_sin(b))))
OF_PARTS(cosh, tn_complex(tn_mul(tn_cosh(a), tn_cos(b)), tn_mul(tn_sinh(a), tn_sin(b))))

/* tanh z as two parts: with e = e^(-2 |a|), (sign(a) (1 - e^2) + 2 e sin 2b i) / ((1 - e)^2 + 4 e
 * cos^2 b). */
static void tangent(tn_tensor *a, tn_tensor *b, tn_tensor **re, tn_tensor **im)
{
    tn_tensor *far = tn_mul_scalar(tn_abs(a), -2.0), *e = tn_exp(far);
    tn_tensor *whole = plus(tn_square(tn_expm1(far)),
                            tn_mul_scalar(tn_mul(e, tn_square(tn_cos(b))), 4.0));

    *re = divide(tn_neg(tn_mul(tn_sign(a), tn_expm1(tn_mul_scalar(far, 2.0)))), whole);
    *im = divide(tn_mul_scalar(tn_mul(e, tn_sin(tn_mul_scalar(b, 2.0))), 2.0), whole);
}

tn_status tn__complex_parts_tanh(const tn_decompose *call)
{
    tn_tensor *re, *im;
    tangent(tn_real(call->in[0]), tn_imag(call->in[0]), &re, &im);
    return tn__common_given(call->out, tn_complex(re, im));
}

/* tan z = -i tanh(i z) */
tn_status tn__complex_parts_tan(const tn_decompose *call)
{
    tn_tensor *re, *im;
    tangent(tn_neg(tn_imag(call->in[0])), tn_real(call->in[0]), &re, &im);
    return tn__common_given(call->out, tn_complex(im, tn_neg(re)));
}

/* asinh t = ln(t + sqrt(t^2 + 1)) for real t, accurate around 0. */
static tn_tensor *area(tn_tensor *t)
{
    tn_tensor *x = tn_abs(t), *square = tn_mul(x, x);
    tn_tensor *more = divide(square, tn_add_scalar(tn_sqrt(tn_add_scalar(square, 1.0)), 1.0));

    return tn_mul(tn_sign(t), tn_log1p(plus(x, more)));
}

/* Returns the imaginary part of conj(z) w. */
static tn_tensor *across(tn_tensor *z, tn_tensor *w)
{
    return minus(tn_mul(tn_real(z), tn_imag(w)), tn_mul(tn_imag(z), tn_real(w)));
}

/* asin or acos with Kahan's formulas, which use the roots of 1 - z and 1 + z. */
static tn_tensor *arc(tn_tensor *z, bool cosine)
{
    tn_tensor *below = tn_sqrt(tn_add_scalar(tn_neg(z), 1.0)),
              *above = tn_sqrt(tn_add_scalar(z, 1.0));

    if (cosine)
        return tn_complex(tn_mul_scalar(tn_atan2(tn_real(below), tn_real(above)), 2.0),
                          area(across(above, below)));
    return tn_complex(tn_atan2(tn_real(z), tn_real(tn_mul(below, above))),
                      area(across(below, above)));
}
OF_PARTS(asin, arc(in[0], false))
OF_PARTS(acos, arc(in[0], true))

/* Real part: atan2(2a, 1 - a^2 - b^2) / 2. Imaginary part: ln(1 + 4b / (a^2 + (1 - b)^2)) / 4 for
 * b >= 0. For b < 0 the sum would cancel, so the sign is set afterwards. */
static tn_tensor *arctangent(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *square = tn_mul(a, a), *size = tn_abs(b), *less = one_minus(size);
    tn_tensor *rest = minus(tn_mul(less, tn_add_scalar(size, 1.0)), square);
    tn_tensor *ratio = divide(tn_mul_scalar(size, 4.0), plus(square, tn_mul(less, less)));

    return tn_complex(tn_mul_scalar(tn_atan2(tn_mul_scalar(a, 2.0), rest), 0.5),
                      tn_copysign(tn_mul_scalar(tn_log1p(ratio), 0.25), b));
}
OF_PARTS(atan, arctangent(a, b))

/* ---- sums and products ---- */

tn_status tn__complex_parts_sum(const tn_decompose *call)
{
    tn_sum_options o = *(const tn_sum_options *)call->options;
    o.dtype = TN_DTYPE_AUTO;
    return tn__common_given(call->out,
                            tn_complex(tn_sum(tn_real(call->in[0]), o.dims, o.keepdim, o.dtype),
                                       tn_sum(tn_imag(call->in[0]), o.dims, o.keepdim, o.dtype)));
}

tn_status tn__complex_parts_cumsum(const tn_decompose *call)
{
    tn_cumsum_options o = *(const tn_cumsum_options *)call->options;
    o.dtype = TN_DTYPE_AUTO;
    return tn__common_given(call->out,
                            tn_complex(tn_cumsum(tn_real(call->in[0]), o.dim, o.reverse, o.dtype),
                                       tn_cumsum(tn_imag(call->in[0]), o.dim, o.reverse, o.dtype)));
}

/* Returns the complex number with this absolute value and angle. In a product of complex numbers,
 * absolute values are multiplied and angles are added. */
static tn_tensor *turned(tn_tensor *size, tn_tensor *angle)
{
    return tn_complex(tn_mul(size, tn_cos(angle)), tn_mul(size, tn_sin(angle)));
}

tn_status tn__complex_parts_prod(const tn_decompose *call)
{
    tn_prod_options o = *(const tn_prod_options *)call->options;
    o.dtype = TN_DTYPE_AUTO;
    return tn__common_given(call->out,
                            turned(tn_prod(tn_abs(call->in[0]), o.dims, o.keepdim, o.dtype),
                                   tn_sum(tn_angle(call->in[0]), o.dims, o.keepdim)));
}

tn_status tn__complex_parts_cumprod(const tn_decompose *call)
{
    int64_t dim = ((const tn_cumprod_options *)call->options)->dim;
    return tn__common_given(call->out, turned(tn_cumprod(tn_abs(call->in[0]), dim),
                                              tn_cumsum(tn_angle(call->in[0]), dim)));
}

OF_PAIRS(bmm, tn_complex(minus(tn_bmm(a, c), tn_bmm(b, d)), plus(tn_bmm(a, d), tn_bmm(b, c))))

/* ---- selection by index or mask ---- */

OF_PARTS(nonzero, tn_nonzero(tn_logical_not(tn_eq(in[0], number(in[0], 0.0)))))

tn_status tn__complex_parts_where(const tn_decompose *call)
{
    return tn__common_given(
        call->out, tn_complex(tn_where(call->in[0], tn_real(call->in[1]), tn_real(call->in[2])),
                              tn_where(call->in[0], tn_imag(call->in[1]), tn_imag(call->in[2]))));
}

tn_status tn__complex_parts_gather(const tn_decompose *call)
{
    int64_t dim = ((const tn_gather_options *)call->options)->dim;
    return tn__common_given(call->out,
                            tn_complex(tn_gather(tn_real(call->in[0]), call->in[1], dim),
                                       tn_gather(tn_imag(call->in[0]), call->in[1], dim)));
}

tn_status tn__complex_parts_scatter(const tn_decompose *call)
{
    int64_t dim = ((const tn_scatter_options *)call->options)->dim;
    return tn__common_given(
        call->out,
        tn_complex(tn_scatter(tn_real(call->in[0]), call->in[1], tn_real(call->in[2]), dim),
                   tn_scatter(tn_imag(call->in[0]), call->in[1], tn_imag(call->in[2]), dim)));
}

/* For bool, adds as int32: a result is true if any summand is. */
tn_status tn__complex_parts_scatter_add(const tn_decompose *call)
{
    int64_t dim = ((const tn_scatter_add_options *)call->options)->dim;
    if (tn_tensor_dtype(call->in[0]) == TN_BOOL)
        return tn__common_given(call->out,
                                tn_cast(tn_scatter_add(tn_cast(call->in[0], TN_I32), call->in[1],
                                                       tn_cast(call->in[2], TN_I32), dim),
                                        TN_BOOL));
    return tn__common_given(
        call->out,
        tn_complex(tn_scatter_add(tn_real(call->in[0]), call->in[1], tn_real(call->in[2]), dim),
                   tn_scatter_add(tn_imag(call->in[0]), call->in[1], tn_imag(call->in[2]), dim)));
}

tn_status tn__complex_parts_narrow_grad(const tn_decompose *call)
{
    const tn_narrow_grad_options *o = call->options;
    return tn__common_given(
        call->out, tn_complex(tn_narrow_grad(tn_real(call->in[0]), o->shape, o->dim, o->start),
                              tn_narrow_grad(tn_imag(call->in[0]), o->shape, o->dim, o->start)));
}

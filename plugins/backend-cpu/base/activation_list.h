/* SPDX-License-Identifier: MIT
 *
 * The activations and their derivatives, a row each. A row defines an operation of enum tn__ew, its
 * inner loops for float32 and float64, and the kernel of the operator with the row's name:
 *
 *     ACTIVATION(name, inputs, cost, formula)
 *     ACTIVATION_OPTIONS(name, inputs, cost, formula, p, q, r)   formula uses p, q, r, which the
 *                                                                kernel takes from its options o
 *     ACTIVATION_LOOP(name, inputs, cost, formula)               loops only; op/activation.c has
 *                                                                the kernel
 *     ACTIVATION_LIKE(name, inputs, operation, p, q, r)          a kernel only, which runs the
 *                                                                loop of another operation
 *
 * inputs:  UNARY: the formula has the input a; BINARY: a and b. In a derivative a is the gradient
 *          of the result, and b the input or the result of the function.
 * cost:    CHEAP: a few instructions per element; COSTLY: more, so that smaller tensors are divided
 *          among the threads.
 * formula: T is float or double, and NAME(f) is f_f32 or f_f64.
 *
 * Each file that includes this list first defines the macros that it needs: base/elementwise.h for
 * the enum, simd/elementwise.c for the CHEAP loops, simd/elementwise_costly.c for the COSTLY loops,
 * op/activation.c for the kernels. sigmoid, tanh, silu, mish and gelu are not in the list, because
 * their formulas differ between float32 and float64: simd/elementwise_costly.c has them. */

/* ---- functions for COSTLY formulas ----------------------------------------------------------- */

#ifdef ACTIVATION_FUNCTIONS
/* Returns the sigmoid 1 / (1 + e^-x), computed from e^-|x|, which does not overflow for any x. */
TN__INTO_LOOPS T NAME(step)(T x)
{
    T e = NAME(exp_below)(-(x < 0 ? -x : x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* Returns the derivative of the sigmoid. */
TN__INTO_LOOPS T NAME(step_slope)(T x)
{
    T y = NAME(step)(x);
    return y * (1 - y);
}

/* Returns the derivative of silu: s + x s (1 - s) with s = sigmoid(x). */
TN__INTO_LOOPS T NAME(silu_slope)(T x)
{
    T y = NAME(step)(x);
    return y * (1 + x * (1 - y));
}

/* Returns the derivative of mish: e w / (e^2 + 2 e + 2)^2 with e = e^x and
 * w = 4 (x + 1) + 4 e^2 + e^3 + e (4 x + 6). Above x = 20 the result is 1. */
TN__INTO_LOOPS T NAME(mish_slope)(T x)
{
    T in = x > 20 ? (T)20 : x, e = NAME(exp_below)(in > 0 ? -in : in);
    e = in > 0 ? 1 / e : e;
    T w = 4 * (in + 1) + e * ((4 * in + 6) + e * (4 + e)), d = 2 + e * (2 + e);
    T slope = e / d * (w / d);
    return x > 20 ? 1 : slope;
}

TN__INTO_LOOPS T NAME(gelu_tanh_slope)(T x)
{
    T square = x * x, t = NAME(step)(x * (1 + square * (T)CUBIC) * (T)(2 * ROOT_TWO_OVER_PI));
    return t * (1 + x * (1 + square * (T)(3 * CUBIC)) * (T)(2 * ROOT_TWO_OVER_PI) * (1 - t));
}
#endif

/* ---- defaults for macros that the including file does not define ----------------------------- */

#ifndef ACTIVATION
#define ACTIVATION(name, inputs, cost, formula)
#endif
#ifndef ACTIVATION_OPTIONS
#define ACTIVATION_OPTIONS(name, inputs, cost, formula, ...) ACTIVATION(name, inputs, cost, formula)
#endif
#ifndef ACTIVATION_LOOP
#define ACTIVATION_LOOP(name, inputs, cost, formula) ACTIVATION(name, inputs, cost, formula)
#endif
#ifndef ACTIVATION_LIKE
#define ACTIVATION_LIKE(name, inputs, operation, ...)
#endif

/* ---- the rows -------------------------------------------------------------------------------- */

/* clang-format off */
ACTIVATION_LOOP(relu, UNARY, CHEAP, a < 0 ? 0 : a)
ACTIVATION(relu_grad, BINARY, CHEAP, b <= 0 ? 0 : a)
ACTIVATION(relu_squared, UNARY, CHEAP, a < 0 ? 0 : a * a)
ACTIVATION_LIKE(relu6, UNARY, clamp, 0, 6)
ACTIVATION_LIKE(hardtanh, UNARY, clamp, o->min_val, o->max_val)
ACTIVATION_OPTIONS(hardtanh_grad, BINARY, CHEAP, ((b <= p) | (b >= q)) ? 0 : a,
                   o->min_val, o->max_val)
ACTIVATION_OPTIONS(leaky_relu, UNARY, CHEAP, a > 0 ? a : a * p, o->negative_slope)
ACTIVATION_OPTIONS(leaky_relu_grad, BINARY, CHEAP, b > 0 ? a : a * p, o->negative_slope)
ACTIVATION_LOOP(prelu, BINARY, CHEAP, a > 0 ? a : a * b)
ACTIVATION_OPTIONS(threshold, UNARY, CHEAP, a <= p ? q : a,
                   tn_scalar_as_float(o->threshold), tn_scalar_as_float(o->value))
ACTIVATION_OPTIONS(threshold_grad, BINARY, CHEAP, b <= p ? 0 : a, o->threshold)
ACTIVATION_OPTIONS(softshrink, UNARY, CHEAP, a > p ? a - p : a < -p ? a + p : a * 0, o->lambd)
ACTIVATION_OPTIONS(hardshrink, UNARY, CHEAP, ((a >= -p) & (a <= p)) ? 0 : a, o->lambd)
ACTIVATION_OPTIONS(hardshrink_grad, BINARY, CHEAP, ((b >= -p) & (b <= p)) ? 0 : a, o->lambd)
ACTIVATION(hardsigmoid, UNARY, CHEAP, NAME(bounded)(a + 3, 0, 6) / 6)
ACTIVATION(hardsigmoid_grad, BINARY, CHEAP, ((b > -3) & (b < 3)) ? a / 6 : 0)
ACTIVATION(hardswish, UNARY, CHEAP, a * NAME(bounded)(a + 3, 0, 6) / 6)
ACTIVATION(hardswish_grad, BINARY, CHEAP,
           b <= -3 ? 0 : (b >= 3 ? a : a * (b * (T)(1 / 3.0) + (T)0.5)))
ACTIVATION(softsign, UNARY, CHEAP, a / (1 + NAME(fabs_of)(a)))
ACTIVATION(sigmoid_grad, BINARY, CHEAP, a * (b * (1 - b)))
ACTIVATION(tanh_grad, BINARY, CHEAP, a * (1 - b * b))
ACTIVATION(tanhshrink, UNARY, COSTLY, a - NAME(tanh_of)(a))
ACTIVATION(logsigmoid, UNARY, COSTLY, -NAME(softplus_of)(-a))
ACTIVATION_OPTIONS(softplus, UNARY, COSTLY, a * p > q ? a : NAME(softplus_of)(a * p) / p,
                   o->beta, o->threshold)
ACTIVATION_OPTIONS(softplus_grad, BINARY, COSTLY, b * p > q ? a : a * NAME(step)(b * p),
                   o->beta, o->threshold)
ACTIVATION_OPTIONS(elu, UNARY, COSTLY, a <= 0 ? NAME(expm1_below)(a * r) * q : a * p,
                   1, o->alpha, 1)
ACTIVATION_LIKE(selu, UNARY, elu, SELU_SCALE, SELU_SCALE * SELU_ALPHA, 1)
ACTIVATION_LIKE(celu, UNARY, elu, 1, o->alpha, 1 / o->alpha)
ACTIVATION_OPTIONS(elu_grad, BINARY, COSTLY,
                   a * (b <= 0 ? NAME(exp_below)((b > 0 ? 0 : b) * r) * (q * r) : p),
                   o->positive, o->negative, o->inner)
ACTIVATION_OPTIONS(elu_result_grad, BINARY, CHEAP, a * (b <= 0 ? (b + q) * r : p),
                   o->positive, o->negative, o->inner)
ACTIVATION(silu_grad, BINARY, COSTLY, a * NAME(silu_slope)(b))
ACTIVATION(mish_grad, BINARY, COSTLY, a * NAME(mish_slope)(b))
ACTIVATION_LOOP(gelu_tanh, UNARY, COSTLY,
                a * (T)0.5 * (1 + NAME(tanh_of)(a * (1 + a * a * (T)CUBIC) * (T)ROOT_TWO_OVER_PI)))
ACTIVATION_LOOP(gelu_tanh_grad, BINARY, COSTLY, a * NAME(gelu_tanh_slope)(b))
ACTIVATION_LOOP(glu, BINARY, COSTLY, a * NAME(step)(b))
ACTIVATION_LOOP(step_grad, BINARY, COSTLY, a * NAME(step_slope)(b))
/* clang-format on */

#undef ACTIVATION_FUNCTIONS
#undef ACTIVATION
#undef ACTIVATION_OPTIONS
#undef ACTIVATION_LOOP
#undef ACTIVATION_LIKE

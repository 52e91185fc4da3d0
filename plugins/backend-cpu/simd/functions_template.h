/* SPDX-License-Identifier: MIT
 *
 * Functions of several steps per element and derivatives, for a float type. */

/* 1 / (1 + e^-x) for x of any size: e^-|x| does not overflow. */
TN__INTO_LOOPS T NAME(step)(T x)
{
    T e = NAME(exp_below)(-(x < 0 ? -x : x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* With s = sigmoid(x): s + x s (1 - s). */
TN__INTO_LOOPS T NAME(silu_slope)(T x)
{
    T y = NAME(step)(x);
    return y * (1 + x * (1 - y));
}

/* e w / (e^2 + 2 e + 2)^2, w = 4 (x + 1) + 4 e^2 + e^3 + e (4 x + 6), e = e^x; 1 far up. */
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

/* A square up to the bend, then a line. */
TN__INTO_LOOPS T NAME(bend)(T d, T most)
{
    T c = d < -most ? -most : d;
    c = c > most ? most : c;
    return c * (d + c * (T)-0.5);
}

TN__INTO_LOOPS T NAME(at_least_none)(T x)
{
    return x < 0 ? 0 : x;
}

/* Derivatives: a is the gradient, b the input or the result of the function. */
/* clang-format off */
UNARY(tanhshrink, a - NAME(tanh_of)(a))
UNARY(logsigmoid, -NAME(softplus_of)(-a))
UNARY(softplus, a * p > q ? a : NAME(softplus_of)(a * p) / p)
UNARY(elu, a <= 0 ? NAME(expm1_below)(a * r) * q : a * p)
UNARY(gelu_tanh, a * (T)0.5 * (1 + NAME(tanh_of)(a * (1 + a * a * (T)CUBIC) * (T)ROOT_TWO_OVER_PI)))
BINARY(sigmoid_grad, a * (b * (1 - b)))
BINARY(tanh_grad, a * (1 - b * b))
BINARY(hardtanh_grad, ((b <= p) | (b >= q)) ? 0 : a)
BINARY(leaky_relu_grad, b > 0 ? a : a * p)
BINARY(threshold_grad, b <= p ? 0 : a)
BINARY(hardsigmoid_grad, ((b > -3) & (b < 3)) ? a / 6 : 0)
BINARY(hardswish_grad, b <= -3 ? 0 : (b >= 3 ? a : a * (b * (T)(1 / 3.0) + (T)0.5)))
BINARY(hardshrink_grad, ((b >= -p) & (b <= p)) ? 0 : a)
BINARY(elu_grad, a * (b <= 0 ? NAME(exp_below)((b > 0 ? 0 : b) * r) * (q * r) : p))
BINARY(softplus_grad, b * p > q ? a : a * NAME(step)(b * p))
BINARY(silu_grad, a * NAME(silu_slope)(b))
BINARY(mish_grad, a * NAME(mish_slope)(b))
BINARY(gelu_tanh_grad, a * NAME(gelu_tanh_slope)(b))
BINARY(gate, a * NAME(step)(b))
BINARY(square_apart, (a - b) * (a - b))
BINARY(size_apart, NAME(fabs_of)(a - b))
BINARY(bent, NAME(bend)(a - b, p) * q)
BINARY(hinge, NAME(at_least_none)(p - a * b))
UNARY(nan_to_num, a != a ? p : (a > NAME(largest) ? q : (a < -NAME(largest) ? r : a)))
/* clang-format on */

/* SPDX-License-Identifier: MIT
 *
 * The elementwise operations and the signature of their inner loops. */
#ifndef TN_BACKEND_CPU_BASE_ELEMENTWISE_H
#define TN_BACKEND_CPU_BASE_ELEMENTWISE_H

#include "base/dtype.h"

/* The operations: p, q, r are numbers that go with a call. */
enum tn__ew {
    TN__ADD, /* a + b */
    TN__SUB,
    TN__ADD_ALPHA, /* a + p * b */
    TN__MUL,
    TN__DIV,
    TN__DIV_TRUNC,
    TN__MAXIMUM,
    TN__MINIMUM,
    TN__RELU_GRAD,  /* b <= 0 ? 0 : a */
    TN__PRELU,      /* a > 0 ? a : b * a */
    TN__ADD_SCALAR, /* a + p */
    TN__MUL_SCALAR,
    TN__NEG,
    TN__ABS,
    TN__SIGN,
    TN__FLOOR,
    TN__CEIL,
    TN__TRUNC,
    TN__ROUND,
    TN__FRAC,
    TN__SQUARE,
    TN__CUBE,
    TN__CLAMP, /* to [p, q]; NaN: no bound */
    TN__RELU,
    TN__LEAKY_RELU,  /* a > 0 ? a : p * a */
    TN__HARDSIGMOID, /* between 0 and 1 */
    TN__HARDSWISH,
    TN__SOFTSHRINK, /* moved by p towards 0 */
    TN__HARDSHRINK, /* 0 within p of 0 */
    TN__THRESHOLD,  /* a > p ? a : q */
    TN__SOFTSIGN,
    TN__NAN_TO_NUM,   /* p for NaN, q for infinity, r for the negative one */
    TN__SIGMOID_GRAD, /* a times the derivative where the result (tanh, too) or the input is b */
    TN__TANH_GRAD,
    TN__HARDTANH_GRAD,   /* between p and q */
    TN__LEAKY_RELU_GRAD, /* p below 0 */
    TN__THRESHOLD_GRAD,  /* above p */
    TN__HARDSIGMOID_GRAD,
    TN__HARDSWISH_GRAD,
    TN__HARDSHRINK_GRAD, /* farther than p from 0 */
    TN__SQUARE_APART,    /* of losses: (a - b)^2, |a - b| */
    TN__SIZE_APART,
    TN__BENT,  /* d = a - b, c = d within p: q c (d - c / 2) */
    TN__HINGE, /* p - a b, at least 0 */
    TN__BITWISE_AND,
    TN__BITWISE_OR,
    TN__BITWISE_XOR,
    TN__BITWISE_NOT,
    TN__LOGICAL_NOT, /* of 0 and 1 */
    TN__EQ,          /* from here to TN__GE: the result is a byte, 0 or 1 */
    TN__NE,
    TN__LT,
    TN__LE,
    TN__GT,
    TN__GE,
    TN__EXP, /* from here on expensive: worth several threads earlier */
    TN__LOG,
    TN__SQRT,
    TN__SIGMOID,
    TN__RECIPROCAL,
    TN__RSQRT,
    TN__SILU,
    TN__DIV_FLOOR, /* from here on several steps per element, in simd/functions.c */
    TN__REMAINDER,
    TN__FMOD,
    TN__POW,
    TN__ATAN2,
    TN__EXPM1,
    TN__LOG1P,
    TN__LOG2,
    TN__LOG10,
    TN__SIN,
    TN__COS,
    TN__TAN,
    TN__ASIN,
    TN__ACOS,
    TN__ATAN,
    TN__SINH,
    TN__COSH,
    TN__TANH,
    TN__ERF,
    TN__ERFC,
    TN__ERFINV,
    TN__ELU, /* a > 0 ? p * a : q * (e^(r a) - 1) */
    TN__GELU,
    TN__GELU_TANH,
    TN__MISH,
    TN__LOGSIGMOID,
    TN__SOFTPLUS, /* sharpness p, a line above q */
    TN__TANHSHRINK,
    TN__ELU_GRAD,
    TN__SOFTPLUS_GRAD,
    TN__SILU_GRAD,
    TN__MISH_GRAD,
    TN__GELU_GRAD,
    TN__GELU_TANH_GRAD,
    TN__GATE, /* a sigmoid(b) */
    TN__HYPOT,
    TN__CONJ,
    TN__EW_COUNT
};

/* y[i] = op(a[i], b[i]) with p, q and r in `numbers`; strides in bytes, 0 repeats. y may be a or
 * b. */
typedef void tn__ew_loop(int64_t n, char *y, int64_t sy, const char *a, int64_t sa, const char *b,
                         int64_t sb, const double *numbers);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The elementwise operations and the signature of their inner loops. */
#ifndef TN_BACKEND_CPU_BASE_ELEMENTWISE_H
#define TN_BACKEND_CPU_BASE_ELEMENTWISE_H

#include "base/dtype.h"

/* The operations: p, q, r are numbers that go with a call. Those of activations come from their
 * list. */
#define EACH_CHEAP(name) TN__EW_##name,
#define EACH_COSTLY(name)
#define ACTIVATION(name, inputs, cost, formula) EACH_##cost(name)
enum tn__ew {
#include "base/activation_list.h"
    TN__EW_add, /* a + b */
    TN__EW_sub,
    TN__EW_add_alpha, /* a + p * b */
    TN__EW_mul,
    TN__EW_div,
    TN__EW_div_trunc,
    TN__EW_maximum,
    TN__EW_minimum,
    TN__EW_add_scalar, /* a + p */
    TN__EW_mul_scalar,
    TN__EW_neg,
    TN__EW_abs,
    TN__EW_sign,
    TN__EW_floor,
    TN__EW_ceil,
    TN__EW_trunc,
    TN__EW_round,
    TN__EW_frac,
    TN__EW_square,
    TN__EW_cube,
    TN__EW_clamp,        /* to [p, q]; NaN: no bound */
    TN__EW_nan_to_num,   /* p for NaN, q for infinity, r for the negative one */
    TN__EW_square_apart, /* of losses: (a - b)^2, |a - b| */
    TN__EW_size_apart,
    TN__EW_bent,  /* d = a - b, c = d within p: q c (d - c / 2) */
    TN__EW_hinge, /* p - a b, at least 0 */
    TN__EW_bitwise_and,
    TN__EW_bitwise_or,
    TN__EW_bitwise_xor,
    TN__EW_bitwise_not,
    TN__EW_logical_not, /* of 0 and 1 */
    TN__EW_eq,          /* from here to TN__EW_ge: the result is a byte, 0 or 1 */
    TN__EW_ne,
    TN__EW_lt,
    TN__EW_le,
    TN__EW_gt,
    TN__EW_ge,
    TN__EW_exp, /* from here on expensive: worth several threads earlier */
    TN__EW_log,
    TN__EW_sqrt,
    TN__EW_sigmoid,
    TN__EW_reciprocal,
    TN__EW_rsqrt,
    TN__EW_silu,
    TN__EW_div_floor, /* from here on several steps per element, in simd/functions.c */
    TN__EW_remainder,
    TN__EW_fmod,
    TN__EW_pow,
    TN__EW_atan2,
    TN__EW_expm1,
    TN__EW_log1p,
    TN__EW_log2,
    TN__EW_log10,
    TN__EW_sin,
    TN__EW_cos,
    TN__EW_tan,
    TN__EW_asin,
    TN__EW_acos,
    TN__EW_atan,
    TN__EW_sinh,
    TN__EW_cosh,
    TN__EW_tanh,
    TN__EW_erf,
    TN__EW_erfc,
    TN__EW_erfinv,
    TN__EW_gelu,
    TN__EW_mish,
    TN__EW_gelu_grad,
#undef EACH_CHEAP
#undef EACH_COSTLY
#define EACH_CHEAP(name)
#define EACH_COSTLY(name) TN__EW_##name,
#define ACTIVATION(name, inputs, cost, formula) EACH_##cost(name)
#include "base/activation_list.h"
#undef EACH_CHEAP
#undef EACH_COSTLY
    TN__EW_hypot,
    TN__EW_conj,
    TN__EW_COUNT
};

/* y[i] = op(a[i], b[i]) with p, q and r in `numbers`; strides in bytes, 0 repeats. y may be a or
 * b. */
typedef void tn__ew_loop(int64_t n, char *y, int64_t sy, const char *a, int64_t sa, const char *b,
                         int64_t sb, const double *numbers);

#endif

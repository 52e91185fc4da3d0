/* SPDX-License-Identifier: MIT
 *
 * The elementwise operations and the signature of their inner loops. */
#ifndef TN_BACKEND_CPU_BASE_ELEMENTWISE_H
#define TN_BACKEND_CPU_BASE_ELEMENTWISE_H

#include "base/dtype.h"

/* The operations. a and b are the operands; p, q and r are numbers passed with the call. The
 * operations of activations come from activation_list.h: CHEAP ones first, COSTLY ones near the
 * end, because some code compares positions in this enum. */
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
    TN__EW_fmax, /* the maximum of the operands that are not NaN */
    TN__EW_fmin,
    TN__EW_copysign,
    TN__EW_nextafter,
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
    TN__EW_clamp,        /* a limited to [p, q]; p or q NaN means no bound */
    TN__EW_nan_to_num,   /* p for NaN, q for infinity, r for negative infinity */
    TN__EW_square_apart, /* (a - b)^2, of mean squared error */
    TN__EW_size_apart,   /* |a - b|, of the L1 loss */
    TN__EW_bent,  /* q c (d - c / 2), d = a - b, c = d limited to [-p, p]: smooth L1, Huber */
    TN__EW_hinge, /* max(p - a b, 0) */
    TN__EW_bitwise_and,
    TN__EW_bitwise_or,
    TN__EW_bitwise_xor,
    TN__EW_bitwise_not,
    TN__EW_bitwise_not_bool, /* a is 0 or 1 */
    TN__EW_eq,               /* from here to TN__EW_ge the result is a byte, 0 or 1 */
    TN__EW_ne,
    TN__EW_lt,
    TN__EW_le,
    TN__EW_gt,
    TN__EW_ge,
    TN__EW_exp, /* from here on expensive: pieces for the threads have fewer elements */
    TN__EW_log,
    TN__EW_sqrt,
    TN__EW_sigmoid,
    TN__EW_reciprocal,
    TN__EW_rsqrt,
    TN__EW_silu,
    TN__EW_div_floor, /* from here to TN__EW_gelu_grad, of floats: simd/elementwise_costly.c */
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
    TN__EW_logit, /* a limited to [p, q]; from here to digamma: simd/special.c */
    TN__EW_logit_grad,
    TN__EW_sinc,
    TN__EW_sinc_grad,
    TN__EW_i0,
    TN__EW_i1,
    TN__EW_digamma,
#undef EACH_CHEAP
#undef EACH_COSTLY
#define EACH_CHEAP(name)
#define EACH_COSTLY(name) TN__EW_##name,
#define ACTIVATION(name, inputs, cost, formula) EACH_##cost(name)
#include "base/activation_list.h"
#undef EACH_CHEAP
#undef EACH_COSTLY
    /* From here to TN__EW_shift_right the loops are in op/elementwise_scalar.c and in
     * elementwise_costly.c, special.c and integers.c of the folder simd. */
    TN__EW_hypot,
    TN__EW_asinh,
    TN__EW_acosh,
    TN__EW_atanh,
    TN__EW_exp2,
    TN__EW_xlogy,
    TN__EW_logaddexp,
    TN__EW_logaddexp2,
    TN__EW_lgamma,
    TN__EW_gcd,
    TN__EW_lcm,
    TN__EW_shift_left,
    TN__EW_shift_right,
    TN__EW_conj,
    TN__EW_COUNT
};

/* y[i] = op(a[i], b[i]) with p, q and r in `numbers`. The strides sy, sa and sb are in bytes; with
 * stride 0 all elements read the same operand. y may be equal to a or b. */
typedef void tn__ew_loop(int64_t n, char *y, int64_t sy, const char *a, int64_t sa, const char *b,
                         int64_t sb, const double *numbers);

#endif

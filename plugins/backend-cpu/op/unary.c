/* SPDX-License-Identifier: MIT
 *
 * Mathematical functions of one tensor, element by element. The loops are in elementwise_scalar.c
 * and simd/elementwise.c. */
#include "op/elementwise.h"

static const tn_kernel_def kernels[] = {
    TN__UNARY_KERNEL(exp, TN__FLOATS_COMPLEX, TN__EW_exp),
    TN__UNARY_KERNEL(log, TN__FLOATS_COMPLEX, TN__EW_log),
    TN__UNARY_KERNEL(sqrt, TN__FLOATS_COMPLEX, TN__EW_sqrt),
    TN__UNARY_KERNEL(abs, TN__REALS &TN__NOT_U64, TN__EW_abs),
    TN__UNARY_KERNEL(sign, TN__REALS &TN__NOT_U64, TN__EW_sign),
    TN__UNARY_KERNEL(floor, TN__REALS, TN__EW_floor),
    TN__UNARY_KERNEL(ceil, TN__REALS, TN__EW_ceil),
    TN__UNARY_KERNEL(trunc, TN__REALS, TN__EW_trunc),
    TN__UNARY_KERNEL(round, TN__REALS, TN__EW_round),
    TN__UNARY_KERNEL(frac, TN__FLOATS, TN__EW_frac),
    TN__UNARY_KERNEL(square, TN__NUMBERS, TN__EW_square),
    TN__UNARY_KERNEL(reciprocal, TN__FLOATS_COMPLEX, TN__EW_reciprocal),
    TN__UNARY_KERNEL(rsqrt, TN__FLOATS_COMPLEX, TN__EW_rsqrt),
    TN__UNARY_KERNEL(expm1, TN__FLOATS, TN__EW_expm1),
    TN__UNARY_KERNEL(log1p, TN__FLOATS, TN__EW_log1p),
    TN__UNARY_KERNEL(log2, TN__FLOATS_COMPLEX, TN__EW_log2),
    TN__UNARY_KERNEL(log10, TN__FLOATS_COMPLEX, TN__EW_log10),
    TN__UNARY_KERNEL(sin, TN__FLOATS_COMPLEX, TN__EW_sin),
    TN__UNARY_KERNEL(cos, TN__FLOATS_COMPLEX, TN__EW_cos),
    TN__UNARY_KERNEL(tan, TN__FLOATS_COMPLEX, TN__EW_tan),
    TN__UNARY_KERNEL(asin, TN__FLOATS_COMPLEX, TN__EW_asin),
    TN__UNARY_KERNEL(acos, TN__FLOATS_COMPLEX, TN__EW_acos),
    TN__UNARY_KERNEL(atan, TN__FLOATS_COMPLEX, TN__EW_atan),
    TN__UNARY_KERNEL(sinh, TN__FLOATS_COMPLEX, TN__EW_sinh),
    TN__UNARY_KERNEL(cosh, TN__FLOATS_COMPLEX, TN__EW_cosh),
    TN__UNARY_KERNEL(tanh, TN__FLOATS_COMPLEX, TN__EW_tanh),
    TN__UNARY_KERNEL(erf, TN__FLOATS, TN__EW_erf),
    TN__UNARY_KERNEL(erfc, TN__FLOATS, TN__EW_erfc),
    TN__UNARY_KERNEL(erfinv, TN__FLOATS, TN__EW_erfinv),
    TN__UNARY_KERNEL(asinh, TN__FLOATS, TN__EW_asinh),
    TN__UNARY_KERNEL(acosh, TN__FLOATS, TN__EW_acosh),
    TN__UNARY_KERNEL(atanh, TN__FLOATS, TN__EW_atanh),
    TN__UNARY_KERNEL(exp2, TN__FLOATS, TN__EW_exp2),
};
TN__KERNEL_TABLE(unary);

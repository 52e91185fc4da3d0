/* SPDX-License-Identifier: MIT
 *
 * The operators that work element by element beside the first ones, as lists. */
#ifndef TN_OPS_ELEMENTWISE_H
#define TN_OPS_ELEMENTWISE_H

/* clang-format off */
#define TN__ARITHMETIC_OPS(X) \
    X(minimum) X(remainder) X(fmod) X(pow) X(atan2) X(pow_scalar) X(clamp) X(clamp_tensor) \
    X(lerp) X(lerp_scalar) X(addcmul) X(addcdiv)
#define TN__UNARY_OPS(X) \
    X(abs) X(sign) X(floor) X(ceil) X(trunc) X(round) X(frac) X(square) X(reciprocal) \
    X(rsqrt) X(expm1) X(log1p) X(log2) X(log10) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) \
    X(sinh) X(cosh) X(tanh) X(erf) X(erfc) X(erfinv)
#define TN__COMPARE_OPS(X) \
    X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(bitwise_and) X(bitwise_or) X(bitwise_xor) \
    X(bitwise_not) X(logical_and) X(logical_or) X(logical_xor) X(logical_not) X(where) \
    X(masked_fill) X(isnan) X(isinf) X(isfinite) X(nan_to_num)
#define TN__ACTIVATION_OPS(X) \
    X(relu6) X(leaky_relu) X(prelu) X(elu) X(selu) X(celu) X(gelu) X(silu) X(mish) \
    X(hardtanh) X(hardswish) X(hardsigmoid) X(logsigmoid) X(tanhshrink) X(softshrink) \
    X(hardshrink) X(softplus) X(softsign) X(threshold) X(glu) X(softmin) \
    X(sigmoid_grad) X(tanh_grad) X(hardtanh_grad) X(leaky_relu_grad) X(threshold_grad) \
    X(hardsigmoid_grad) X(hardswish_grad) X(hardshrink_grad) X(elu_grad) X(softplus_grad) \
    X(silu_grad) X(mish_grad) X(gelu_grad)
#define TN__COMPLEX_OPS(X) \
    X(complex) X(real) X(imag) X(view_as_real) X(conj) X(angle) X(sgn)
/* clang-format on */
#define TN__ELEMENTWISE_OPS(X)                                                                     \
    TN__ARITHMETIC_OPS(X)                                                                          \
    TN__UNARY_OPS(X) TN__COMPARE_OPS(X) TN__ACTIVATION_OPS(X) TN__COMPLEX_OPS(X)

#define TN__DECLARE_OP(name) extern const tn_op_def tn__op_##name;
TN__ELEMENTWISE_OPS(TN__DECLARE_OP)
#undef TN__DECLARE_OP

#endif

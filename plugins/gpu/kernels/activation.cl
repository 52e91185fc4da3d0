/* SPDX-License-Identifier: MIT
 *
 * Activations and their derivatives, except softmax. */
#ifdef TN_REAL
UNARY(relu, A_ < 0 ? (C)0 : A_)
#endif
#ifdef TN_FLOATING
BINARY(relu_grad, B_ <= 0 ? (C)0 : A_)
/* Uses e^-|x|, which does not overflow. */
UNARY(sigmoid, A_ < 0 ? exp(A_) / ((C)1 + exp(A_)) : (C)1 / ((C)1 + exp(-A_)))
#endif

/* SPDX-License-Identifier: MIT
 *
 * relu and sigmoid, and their derivatives. Other activations run by their decompositions in
 * plugins/ops/activation.c; a kernel added here also needs a line in ../kernel_names.h and a row in
 * ../kernel_defs.h. */
#ifdef TN_REAL
UNARY(relu, A_ < 0 ? (C)0 : A_)
#endif
#ifdef TN_FLOATING
BINARY(relu_grad, B_ <= 0 ? (C)0 : A_)
/* Uses e^-|x|, which does not overflow. */
UNARY(sigmoid, A_ < 0 ? exp(A_) / ((C)1 + exp(A_)) : (C)1 / ((C)1 + exp(-A_)))
#endif

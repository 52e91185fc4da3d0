/* SPDX-License-Identifier: MIT
 *
 * One element in, one out: arithmetic, activations and their derivatives. */

/* y = f(a, b), with what is to be computed from A_ and B_ */
#define BINARY(op, expression)                                                                     \
    KERNEL TYPED(tn_##op)(GLOBAL S * y, GLOBAL const S *a, GLOBAL const S *b, const gpu_walk w,    \
                          const C s)                                                               \
    {                                                                                              \
        i64 i = ITEM();                                                                            \
        if (i < w.count) {                                                                         \
            WALK3(w, i, py, pa, pb)                                                                \
            C A_ = LOAD(a, pa), B_ = LOAD(b, pb);                                                  \
            STORE(y, py, expression);                                                              \
        }                                                                                          \
    }

/* y = f(a) */
#define UNARY(op, expression)                                                                      \
    KERNEL TYPED(tn_##op)(GLOBAL S * y, GLOBAL const S *a, const gpu_walk w, const C s)            \
    {                                                                                              \
        i64 i = ITEM();                                                                            \
        if (i < w.count) {                                                                         \
            WALK2(w, i, py, pa)                                                                    \
            C A_ = LOAD(a, pa);                                                                    \
            STORE(y, py, expression);                                                              \
        }                                                                                          \
    }

BINARY(add, A_ + s * B_)
BINARY(mul, (A_ * B_))
/* a NaN on either side stays: it is the value that differs from itself */
BINARY(maximum, A_ != A_ ? A_ : (A_ > B_ ? A_ : B_))
UNARY(relu, A_ < 0 ? (C)0 : A_)
#if TN_TYPE != 0
BINARY(sub, A_ - s * B_)
UNARY(add_scalar, A_ + s)
UNARY(mul_scalar, (A_ * s))
UNARY(neg, -A_)
#endif
#ifdef TN_FLOATING
BINARY(div, A_ / B_)
BINARY(relu_grad, B_ <= 0 ? (C)0 : A_)
/* e^-|x| does not overflow */
UNARY(sigmoid, A_ < 0 ? exp(A_) / ((C)1 + exp(A_)) : (C)1 / ((C)1 + exp(-A_)))
UNARY(exp, exp(A_))
UNARY(log, log(A_))
UNARY(sqrt, sqrt(A_))
#endif
#undef BINARY
#undef UNARY

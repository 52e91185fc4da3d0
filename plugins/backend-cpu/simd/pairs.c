/* SPDX-License-Identifier: MIT
 *
 * Pairs of elementwise operations on contiguous float32 in one loop, for op/fuse.c. Each result is
 * rounded as by separate loops: this file is compiled without contraction to fused multiply-adds.
 */
#include "simd/simd.h"

/* t is the result of the first operation, c the other operand of the second; p and q are the
 * numbers of the two. */
#define PAIR(first, f, second, s)                                                                  \
    static void first##_##second(int64_t n, float *y, const float *a_, const float *b_,            \
                                 const float *c_, float p, float q)                                \
    {                                                                                              \
        (void)b_, (void)c_, (void)p, (void)q;                                                      \
        TN__IVDEP for (int64_t i = 0; i < n; i++)                                                  \
        {                                                                                          \
            const float t = f;                                                                     \
            y[i] = s;                                                                              \
        }                                                                                          \
    }
#define A a_[i]
#define B b_[i]
#define C c_[i]

/* clang-format off */
#define FIRSTS(X)                                                                                  \
    X(mul, A * B) X(add, A + B) X(sub, A - B)                                                      \
    X(mul_scalar, A * p) X(add_scalar, A + p) X(relu, A < 0 ? 0 : A)
#define SECONDS(X, first, f)                                                                       \
    X(first, f, add, t + C) X(first, f, mul, t * C) X(first, f, sub, t - C)                        \
    X(first, f, sub_from, C - t) X(first, f, mul_scalar, t * q)                                    \
    X(first, f, add_scalar, t + q) X(first, f, relu, t < 0 ? 0 : t)
/* clang-format on */

#define LOOPS(first, f) SECONDS(PAIR, first, f)
FIRSTS(LOOPS)

#define ENTRY(first, f, second, s) [TN__PAIR_##second] = first##_##second,
#define ROW(first, f) [TN__PAIR_##first] = { SECONDS(ENTRY, first, f) },
const struct tn__simd_pairs TN__SIMD_TABLE(pairs) = { .of = { FIRSTS(ROW) } };

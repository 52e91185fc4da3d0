/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of test_kernels: the device under test, arrays of small numbers, and how
 * close a result must be. */
#ifndef TN_TESTS_GPU_KERNELS_H
#define TN_TESTS_GPU_KERNELS_H

#include "tests/gpu/direct.h"

extern struct direct here;
extern uint64_t tried; /* the types to test on it */

/* Types of a kernel's tests. */
#define FLOATS (TN_BIT(TN_F16) | TN_BIT(TN_BF16) | TN_BIT(TN_F32) | TN_BIT(TN_F64))
#define INTS (TN_BIT(TN_U8) | TN_BIT(TN_I8) | TN_BIT(TN_I16) | TN_BIT(TN_I32) | TN_BIT(TN_I64))

static inline double tolerance(tn_dtype dtype)
{
    return dtype == TN_F16    ? 2e-3
           : dtype == TN_BF16 ? 1.6e-2
           : dtype == TN_F64  ? 1e-13
           : dtype == TN_F32  ? 2e-6
                              : 0;
}

static inline void close_to(double got, double want, double relative, const char *what, int64_t at)
{
    bool fine = isnan(want) ? isnan(got)
                            : got == want || fabs(got - want) <= relative * (1 + fabs(want));

    ck_assert_msg(fine, "%s, element %lld: %.17g, expected %.17g", what, (long long)at, got, want);
}

/* Small numbers that are exact in every type: in signed types some are negative, in floating types
 * they are odd multiples of 1/4. */
static inline void numbers(struct array *a, int64_t seed)
{
    bool floating = FLOATS & TN_BIT(a->dtype),
         is_signed = floating || (TN_BIT(a->dtype) & (INTS & ~TN_BIT(TN_U8)));

    for (int64_t i = 0; i < a->count; i++) {
        double v = (double)((i * 7 + seed * 5) % 11);

        if (a->dtype == TN_BOOL)
            v = (double)((i + seed) % 2);
        if (is_signed)
            v -= 4;
        if (floating)
            v = v / 2 + 0.25;
        array_set(a, i, v);
    }
    array_up(a);
}

static const int64_t shape3[] = { 3, 5, 7 };
#define COUNT3 105

/* Returns v as the arithmetic of the type gives it: integers below 32 bits wrap around. */
static inline double wrapped(tn_dtype dtype, double v)
{
    return dtype == TN_U8    ? (uint8_t)(int64_t)v
           : dtype == TN_I8  ? (int8_t)(int64_t)v
           : dtype == TN_I16 ? (int16_t)(int64_t)v
                             : v;
}

/* Adds the tests of a file; for a slow device only those in which work items share memory. */
void add_elementwise(TCase *to, bool slow);
void add_copy(TCase *to, bool slow);
void add_reduction(TCase *to, bool slow);
void add_matmul(TCase *to, bool slow);
void add_loss(TCase *to, bool slow);
void add_random(TCase *to, bool slow);

#endif

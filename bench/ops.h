/* SPDX-License-Identifier: MIT
 *
 * Time, the ceilings of the machine and numbers, for bench/ops. */
#ifndef TN_BENCH_OPS_H
#define TN_BENCH_OPS_H

#include <tenon/tenon.h>

/* Seconds since some moment. */
double bench_now(void);
/* Returns the bytes read and written per second by a copy of so many bytes. */
double bench_copy_rate(int64_t bytes);
/* Returns the floating-point operations per second, two for each multiply-add; NAN without the
 * profiler, or while TENON_PROFILE is set. */
double bench_multiply_rate(void);
/* A tensor of numbers of a kind: unit, above, sign, half, below (whole numbers below the limit),
 * rising, normal. It is contiguous and on the default device; NULL and an error on failure. */
tn_tensor *bench_tensor(const char *kind, int64_t limit, tn_ints shape, tn_dtype dtype,
                        uint64_t *state);

#endif

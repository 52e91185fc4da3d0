/* SPDX-License-Identifier: MIT
 *
 * Annotations of loops and functions that the compiler turns into vector code. */
#ifndef TN_BACKEND_CPU_BASE_VECTORIZE_H
#define TN_BACKEND_CPU_BASE_VECTORIZE_H

/* No iteration of the loop reads what another one wrote. */
#ifdef __clang__
#define TN__IVDEP _Pragma("clang loop vectorize(assume_safety)")
/* The pragma allows vectors; a loop that clang does not vectorize is not an error. */
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define TN__IVDEP _Pragma("GCC ivdep")
#endif
#define TN__INTO_LOOPS static inline __attribute__((always_inline))

#endif

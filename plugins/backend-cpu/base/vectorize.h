/* SPDX-License-Identifier: MIT
 *
 * Annotations of loops and functions that the compiler turns into vector code. */
#ifndef TN_BACKEND_CPU_BASE_VECTORIZE_H
#define TN_BACKEND_CPU_BASE_VECTORIZE_H

/* Put before a loop in which no iteration reads what another iteration wrote. */
#ifdef __clang__
#define TN__IVDEP _Pragma("clang loop vectorize(assume_safety)")
/* Clang warns when it does not vectorize a loop with the pragma; this is no mistake here. */
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define TN__IVDEP _Pragma("GCC ivdep")
#endif
#define TN__INTO_LOOPS static inline __attribute__((always_inline))

#endif

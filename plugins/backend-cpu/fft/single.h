/* SPDX-License-Identifier: MIT
 *
 * A Fourier transform of one contiguous row of complex numbers. */
#ifndef TN_BACKEND_CPU_FFT_SINGLE_H
#define TN_BACKEND_CPU_FFT_SINGLE_H

#include "fft/plan.h"

/* Transforms x to y, which may be the same memory; several threads share a long row. swap is 1 for
 * the inverse transform, otherwise 0. The mode of the plan must not be TOGETHER. */
tn_status tn__fft_single(const struct tn__fft_plan *plan, const void *x, void *y, int swap,
                         double scale);

#endif

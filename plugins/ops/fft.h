/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of Fourier transforms. */
#ifndef TN_OPS_FFT_H
#define TN_OPS_FFT_H

#include "formula.h"

/* ---- fft_steps.c ---- */

/* Calls of the operators fft_c2c, fft_r2c and fft_c2r. */
tn_tensor *tn__fft_c2c(tn_tensor *x, int64_t dim, bool inverse, double scale);
tn_tensor *tn__fft_r2c(tn_tensor *x, int64_t dim, double scale);
tn_tensor *tn__fft_c2r(tn_tensor *x, int64_t n, int64_t dim, double scale);
/* Returns x cut off or padded with zeros to `size` elements along `dim`. */
tn_tensor *tn__fft_resized(tn_tensor *x, int32_t dim, int64_t size);
/* Returns the complex dtype whose parts have the dtype `part`; complex dtypes are returned
 * unchanged. Returns TN_DTYPE_AUTO for dtypes that have no Fourier transform. */
tn_dtype tn__fft_dtype(tn_dtype part);

#endif

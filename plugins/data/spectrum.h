/* SPDX-License-Identifier: MIT
 *
 * Spectra of sounds. */
#ifndef TN_DATA_SPECTRUM_H
#define TN_DATA_SPECTRUM_H

#include "data.h"

/* A Fourier transform of fixed size (spectrum_fft.c). */
struct spectrum_fft {
    int64_t size;
    double *turns;   /* cos and sin of -2 pi i / size */
    double *scratch; /* a complex number for each element */
};

tn_status spectrum_fft_begin(struct spectrum_fft *fft, int64_t size);
/* Transforms `size` complex numbers, which are pairs. `out` is other memory than `in`. */
void spectrum_fft_run(const struct spectrum_fft *fft, const double *in, double *out);
void spectrum_fft_end(struct spectrum_fft *fft);

#endif

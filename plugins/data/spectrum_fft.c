/* SPDX-License-Identifier: MIT
 *
 * The discrete Fourier transform of any size: divided by the smallest prime factor, again and
 * again. */
#include "spectrum.h"

#include <math.h>

static const double two_pi = 6.283185307179586;

tn_status spectrum_fft_begin(struct spectrum_fft *fft, int64_t size)
{
    *fft = (struct spectrum_fft){ .size = size };
    fft->turns = tn_malloc((size_t)(2 * size) * sizeof *fft->turns);
    fft->scratch = tn_malloc((size_t)(2 * size) * sizeof *fft->scratch);
    if (fft->turns == NULL || fft->scratch == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < size; i++) {
        fft->turns[2 * i] = cos(two_pi * (double)i / (double)size);
        fft->turns[2 * i + 1] = -sin(two_pi * (double)i / (double)size);
    }
    return TN_OK;
}

void spectrum_fft_end(struct spectrum_fft *fft)
{
    tn_free(fft->turns);
    tn_free(fft->scratch);
}

static int64_t smallest_factor(int64_t n)
{
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

/* Joins `p` transforms of `m` elements each, which follow one another in `out`. */
static void join(const struct spectrum_fft *fft, double *out, int64_t p, int64_t m)
{
    int64_t step = fft->size / (p * m); /* of turns, for one element */
    double *parts = fft->scratch;

    for (int64_t k = 0; k < m; k++) {
        for (int64_t r = 0; r < p; r++) {
            parts[2 * r] = out[2 * (r * m + k)];
            parts[2 * r + 1] = out[2 * (r * m + k) + 1];
        }
        for (int64_t q = 0; q < p; q++) {
            double re = 0, im = 0;
            int64_t turn = 0, by = (q * m + k) * step % fft->size;

            for (int64_t r = 0; r < p; r++) {
                double c = fft->turns[2 * turn], s = fft->turns[2 * turn + 1];

                re += parts[2 * r] * c - parts[2 * r + 1] * s;
                im += parts[2 * r] * s + parts[2 * r + 1] * c;
                turn = (turn + by) % fft->size;
            }
            out[2 * (q * m + k)] = re;
            out[2 * (q * m + k) + 1] = im;
        }
    }
}

static void run(const struct spectrum_fft *fft, const double *in, int64_t stride, double *out,
                int64_t n)
{
    int64_t p = smallest_factor(n), m = n / p;

    if (n == 1) {
        out[0] = in[0];
        out[1] = in[1];
        return;
    }
    for (int64_t r = 0; r < p; r++)
        run(fft, in + 2 * r * stride, stride * p, out + 2 * r * m, m);
    join(fft, out, p, m);
}

void spectrum_fft_run(const struct spectrum_fft *fft, const double *in, double *out)
{
    run(fft, in, 1, out, fft->size);
}

/* SPDX-License-Identifier: MIT
 *
 * Rules for signals: Fourier transforms, windows, mel frequencies. Complex numbers have a last
 * dimension of 2. */
#include "onnx/onnx_rules.h"

#include <math.h>
#include <string.h>

enum { WINDOW_MOST = 1 << 24 };

/* ---- Fourier transforms ---------------------------------------------------------------------- */

/* The first count elements of a dimension, with zeros after the last one. */
static tn_tensor *with_length(tn_tensor *x, int64_t dim, int64_t count)
{
    int64_t sizes[2 * TN_MAX_DIMS] = { 0 }, own = tn_tensor_size(x, dim);
    int64_t after = tn_tensor_ndim(x) - 1 - dim;
    tn_ints all;

    if (own >= count)
        return tn_narrow(x, dim, 0, count);
    sizes[2 * after + 1] = count - own;
    all = (tn_ints){ sizes, 2 * (after + 1) };
    return tn_pad(x, all, "constant");
}

/* x [..., 1 or 2] as complex numbers without the last dimension. */
static tn_tensor *complex_of(tn_tensor *x)
{
    tn_tensor *re = tn_select(x, -1, 0), *im;

    im = tn_tensor_size(x, -1) == 2 ? tn_select(x, -1, 1) : tn_mul_scalar(re, tn_scalar_int(0));
    return tn_complex(re, im);
}

static tn_tensor *parts_of(tn_tensor *x)
{
    tn_tensor *pair[2] = { tn_real(x), tn_imag(x) };

    return pair[0] != NULL && pair[1] != NULL ? tn_stack(pair, 2, -1) : NULL;
}

static tn_tensor *transformed(tn_tensor *x, int64_t dim, int64_t length, bool inverse,
                              bool onesided)
{
    tn_tensor *y;

    if (inverse && onesided) {
        y = tn_fft_irfft(complex_of(x), length, dim);
        return y != NULL ? tn_unsqueeze(y, tn_tensor_ndim(y)) : NULL;
    }
    y = complex_of(with_length(x, dim, length));
    y = y != NULL ? tn_fft_c2c(y, dim, inverse, inverse ? 1.0 / (double)length : 1.0) : NULL;
    if (onesided && y != NULL)
        y = tn_narrow(y, dim, 0, length / 2 + 1);
    return y != NULL ? parts_of(y) : NULL;
}

static tn_status dft_along(tn_rule_call *call, tn_tensor *x, int64_t axis)
{
    bool inverse = rule_int(call, "inverse") != 0, onesided = rule_int(call, "onesided") != 0;
    int64_t n, length;
    tn_dtype dtype;

    if (call->status != TN_OK)
        return call->status;
    n = tn_tensor_ndim(x);
    axis += axis < 0 ? n : 0;
    if (n < 2 || axis < 0 || axis >= n - 1 || tn_tensor_size(x, n - 1) < 1 ||
        tn_tensor_size(x, n - 1) > 2)
        return rule_fail(call, TN_ERR_VALUE,
                         "input, axis: %lld dimensions, axis %lld; expected a last dimension of 1 "
                         "or 2, and an axis before it",
                         (long long)n, (long long)axis);
    length = tn_tensor_size(x, axis);
    if (inverse && onesided)
        length = 2 * (length - 1);
    if (rule_has(call, "dft_length"))
        length = rule_int(call, "dft_length");
    if (call->status == TN_OK && (length < 1 || length > WINDOW_MOST))
        return rule_fail(call, TN_ERR_VALUE, "dft_length: out of range, got %lld; expected 1 to %d",
                         (long long)length, WINDOW_MOST);
    dtype = tn_tensor_dtype(x);
    x = tn_cast(x, TN_F64); /* small results beside large ones lose their digits in float32 */
    if (call->status != TN_OK || x == NULL)
        return rule_give(call, NULL);
    return rule_give(call, rule_cast(transformed(x, axis, length, inverse, onesided), dtype));
}

static tn_status dft(tn_rule_call *call)
{
    int64_t axis = rule_has(call, "axis") ? rule_int(call, "axis") : -2;

    return dft_along(call, rule_tensor(call, "input"), axis);
}

/* Pieces of the signal [B, L, 1 or 2], times the window, and their transforms. */
static tn_status stft(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "signal"), *window = rule_optional(call, "window"), *y;
    int64_t step = rule_int(call, "frame_step"), length, whole;
    bool onesided = rule_int(call, "onesided") != 0;

    if (call->status != TN_OK)
        return call->status;
    if (tn_tensor_ndim(x) != 3 || tn_tensor_size(x, 2) < 1 || tn_tensor_size(x, 2) > 2)
        return rule_fail(call, TN_ERR_VALUE,
                         "signal: wrong shape; expected [batch, length, 1 or 2]");
    whole = tn_tensor_size(x, 1);
    length = rule_has(call, "frame_length") ? rule_int(call, "frame_length")
             : window != TN_NONE            ? tn_tensor_numel(window)
                                            : whole;
    if (call->status == TN_OK && (step < 1 || length < 1 || length > whole ||
                                  (window != TN_NONE && tn_tensor_numel(window) != length)))
        return rule_fail(call, TN_ERR_VALUE,
                         "frame_step, frame_length: %lld and %lld; expected 1 to %lld, and as many "
                         "elements as the window has",
                         (long long)step, (long long)length, (long long)whole);
    if (call->status != TN_OK)
        return call->status;
    y = tn_unfold(x, 1, length, step); /* [B, frames, 1 or 2, length] */
    if (window != TN_NONE)
        y = tn_mul(y, window);
    y = tn_transpose(y, -1, -2);
    return rule_give(call, y != NULL ? transformed(y, 2, length, false, onesided) : NULL);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* a - b cos(2 pi n / N) + c cos(4 pi n / N) */
static tn_status window(tn_rule_call *call, double a, double b, double c)
{
    int64_t size = rule_int(call, "size"), last;
    tn_dtype dtype = onnx_rule_dtype(call, "output_datatype");
    double *values, angle;

    if (call->status == TN_OK && (size < 0 || size > WINDOW_MOST))
        return rule_fail(call, TN_ERR_VALUE, "size: out of range, got %lld; expected 0 to %d",
                         (long long)size, WINDOW_MOST);
    last = rule_int(call, "periodic") != 0 ? size : size - 1;
    values = rule_memory(call, size + 1, sizeof *values);
    for (int64_t i = 0; i < size && values != NULL; i++) {
        angle = last > 0 ? 2 * 3.14159265358979323846 * (double)i / (double)last : 0;
        values[i] = last > 0 ? a - b * cos(angle) + c * cos(2 * angle) : 1;
    }
    if (values == NULL || call->status != TN_OK)
        return call->status;
    return rule_give(call, tn_cast(tn_tensor_from(values, TN_F64, TN_SHAPE(size)), dtype));
}

static tn_status hann_window(tn_rule_call *call)
{
    return window(call, 0.5, 0.5, 0);
}

static tn_status hamming_window(tn_rule_call *call)
{
    return window(call, 25.0 / 46, 21.0 / 46, 0);
}

static tn_status blackman_window(tn_rule_call *call)
{
    return window(call, 0.42, 0.5, 0.08);
}

/* ---- mel frequencies ------------------------------------------------------------------------- */

static double mel_of(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

/* The triangle of one band, which begins at bin a, is 1 at b and ends at c. */
static void fill_band(double *rows, int64_t bands, int64_t band, const int64_t *bins)
{
    int64_t a = bins[band], b = bins[band + 1], c = bins[band + 2];

    for (int64_t i = a; i <= b; i++)
        rows[i * bands + band] = b > a ? (double)(i - a) / (double)(b - a) : 1;
    for (int64_t i = b; i < c; i++)
        rows[i * bands + band] = (double)(c - i) / (double)(c - b);
}

static tn_status mel_weights(tn_rule_call *call)
{
    int64_t bands = rule_int(call, "num_mel_bins"), length = rule_int(call, "dft_length");
    int64_t rate = rule_int(call, "sample_rate"), count, *bins;
    double low = rule_float(call, "lower_edge_hertz"), high = rule_float(call, "upper_edge_hertz");
    tn_dtype dtype = onnx_rule_dtype(call, "output_datatype");
    double *rows, step;

    if (call->status == TN_OK && (bands < 1 || length < 1 || rate < 1 || bands > 1 << 16 ||
                                  length > 1 << 20 || bands > WINDOW_MOST / length || !(low >= 0) ||
                                  !(high >= low) || high > 0.5 * (double)rate))
        return rule_fail(
            call, TN_ERR_VALUE,
            "num_mel_bins, dft_length, sample_rate, edges: wrong values; expected at least 1 "
            "of each, and edges from 0 to half of the rate");
    count = length / 2 + 1;
    bins = rule_memory(call, bands + 2, sizeof *bins);
    rows = rule_memory(call, bands * count, sizeof *rows);
    if (call->status != TN_OK)
        return call->status;
    low = mel_of(low);
    step = (mel_of(high) - low) / (double)(bands + 2);
    for (int64_t i = 0; i < bands + 2; i++) {
        double hertz = 700 * (pow(10, (low + (double)i * step) / 2595) - 1);

        bins[i] = (int64_t)floor((double)(length + 1) * hertz / (double)rate);
        bins[i] = bins[i] < 0 ? 0 : bins[i] >= count ? count - 1 : bins[i];
    }
    for (int64_t i = 0; i < bands; i++)
        fill_band(rows, bands, i, bins);
    return rule_give(call, tn_cast(tn_tensor_from(rows, TN_F64, TN_SHAPE(count, bands)), dtype));
}

static tn_status dft_of_attribute(tn_rule_call *call)
{
    return dft_along(call, rule_tensor(call, "input"), rule_int(call, "axis"));
}

#define WINDOW "(size, output_datatype=1, periodic=1)"

const tn_rule_def onnx_rules_signal[] = {
    { "DFT(input, dft_length=None, axis=1, inverse=0, onesided=0)", .call = dft_of_attribute,
      .since = 17 },
    { "DFT(input, dft_length=None, axis=None, inverse=0, onesided=0)", .call = dft, .since = 20 },
    { "STFT(signal, frame_step, window=None, frame_length=None, onesided=1)", .call = stft },
    { "HannWindow" WINDOW, .call = hann_window },
    { "HammingWindow" WINDOW, .call = hamming_window },
    { "BlackmanWindow" WINDOW, .call = blackman_window },
    { "MelWeightMatrix(num_mel_bins, dft_length, sample_rate, lower_edge_hertz, "
      "upper_edge_hertz, output_datatype=1)",
      .call = mel_weights },
    { .function = NULL },
};

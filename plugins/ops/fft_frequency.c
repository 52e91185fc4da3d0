/* SPDX-License-Identifier: MIT
 *
 * Orders and values of the frequencies of Fourier transforms: fftshift, ifftshift, fftfreq,
 * rfftfreq. */
#include "fft.h"

/* ---- shifts ---------------------------------------------------------------------------------- */

static tn_status shift_infer(tn_infer *infer, tn_ints dims)
{
    const tn_view *x = infer->in[0];
    int32_t at;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < dims.count && status == TN_OK; i++)
        status = tn__common_dim(dims.at[i], x->ndim, &at);
    if (status == TN_OK && dims.count > TN_MAX_DIMS)
        status = tn_fail(TN_ERR_RUNTIME, "dims: too many, got %lld; expected at most %d",
                         (long long)dims.count, TN_MAX_DIMS);
    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    return status;
}

/* Rolls x by half its size along `dims`, or backwards. */
static tn_tensor *shifted(tn_tensor *x, tn_ints dims, bool back)
{
    int64_t shifts[TN_MAX_DIMS], all[TN_MAX_DIMS];

    if (dims.count < 0) {
        dims = (tn_ints){ all, tn_tensor_ndim(x) };
        for (int32_t d = 0; d < dims.count; d++)
            all[d] = d;
    }
    if (dims.count == 0 || tn_tensor_ndim(x) == 0)
        return tn_copy(x);
    for (int64_t i = 0; i < dims.count; i++) {
        int64_t size = tn_tensor_size(x, (int32_t)dims.at[i]);

        shifts[i] = back ? size - size / 2 : size / 2;
    }
    return tn_roll(x, ((tn_ints){ shifts, dims.count }), dims);
}

INFER(fft_fftshift, shift_infer(infer, o->dims))
DECOMPOSE(fft_fftshift, shifted(x, o->dims, false))
INFER(fft_ifftshift, shift_infer(infer, o->dims))
DECOMPOSE(fft_ifftshift, shifted(x, o->dims, true))

TN__OP(fft_fftshift, .infer = fft_fftshift_infer, .decompose = fft_fftshift_decompose);
TN__OP(fft_ifftshift, .infer = fft_ifftshift_infer, .decompose = fft_ifftshift_decompose);

/* ---- frequencies ----------------------------------------------------------------------------- */

static tn_status frequency_infer(tn_infer *infer, int64_t n, int64_t count, tn_dtype dtype)
{
    if (dtype == TN_DTYPE_AUTO)
        dtype = tn_default_dtype();
    if (n < 0 || n > INT64_MAX / 16)
        return tn_fail(TN_ERR_RUNTIME, "n: out of range, got %lld; expected 0 to 2^59 - 1",
                       (long long)n);
    if (!(TN_MASK_FLOAT & TN_BIT(dtype)))
        return tn_fail(TN_ERR_TYPE, "dtype: wrong kind, got %s; expected a float dtype",
                       tn_dtype_name(dtype));
    tn__common_plain(&infer->out[0], dtype, (tn_ints){ &count, 1 });
    return TN_OK;
}

/* The whole numbers of `whole` divided by n * d. */
static tn_tensor *frequencies(tn_tensor *whole, int64_t n, double d, tn_dtype dtype)
{
    return times(tn_cast(whole, dtype == TN_DTYPE_AUTO ? tn_default_dtype() : dtype),
                 1 / ((double)n * d));
}

static tn_tensor *both_signs(tn_tensor *like, int64_t n)
{
    tn_tensor *parts[2] = { tn_arange(like, 0, (n + 1) / 2), tn_arange(like, -(n / 2), 0) };

    return tn_cat(parts, 2, 0);
}

INFER(fft_fftfreq, frequency_infer(infer, o->n, o->n, o->dtype))
DECOMPOSE(fft_fftfreq, frequencies(both_signs(x, o->n), o->n, o->d, o->dtype))
INFER(fft_rfftfreq, frequency_infer(infer, o->n, o->n / 2 + 1, o->dtype))
DECOMPOSE(fft_rfftfreq, frequencies(tn_arange(x, 0, o->n / 2 + 1), o->n, o->d, o->dtype))

TN__OP(fft_fftfreq, .infer = fft_fftfreq_infer, .decompose = fft_fftfreq_decompose);
TN__OP(fft_rfftfreq, .infer = fft_rfftfreq_infer, .decompose = fft_rfftfreq_decompose);

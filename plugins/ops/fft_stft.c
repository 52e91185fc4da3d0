/* SPDX-License-Identifier: MIT
 *
 * Short-time Fourier transforms (stft) and their inverse (istft). */
#include "fft.h"

/* ---- options --------------------------------------------------------------------------------- */

/* The sizes of a call with the defaults filled in. */
struct sizes {
    int64_t n, hop, window;
};

static struct sizes sizes_of(int64_t n_fft, int64_t hop_length, int64_t win_length)
{
    return (struct sizes){ n_fft, hop_length == INT64_MIN ? n_fft / 4 : hop_length,
                           win_length == INT64_MIN ? n_fft : win_length };
}

/* Returns the value of an optional bool. */
static bool truth(tn_scalar scalar, bool otherwise)
{
    return tn__scalar_given(scalar) ? tn_scalar_as_int(scalar) != 0 : otherwise;
}

static tn_status check_onesided(tn_scalar scalar)
{
    char text[TN__SCALAR_TEXT];
    bool given = tn__scalar_given(scalar), whole = scalar.kind == TN_SCALAR_INT;

    if (given && scalar.kind != TN_SCALAR_BOOL &&
        !(whole && (scalar.as.i == 0 || scalar.as.i == 1)))
        return tn_fail(TN_ERR_TYPE, "onesided: wrong value, got %s; expected True, False or None",
                       tn__scalar_text(text, scalar));
    return TN_OK;
}

/* Checks hop_length, win_length and the window, which may be NULL. n is checked before. */
static tn_status check_window(struct sizes s, const tn_view *window)
{
    if (s.hop < 1)
        return tn_fail(TN_ERR_RUNTIME, "hop_length: out of range, got %lld; expected at least 1",
                       (long long)s.hop);
    if (s.window < 1 || s.window > s.n)
        return tn_fail(TN_ERR_RUNTIME,
                       "win_length: out of range, got %lld; expected 1 to n_fft = "
                       "%lld",
                       (long long)s.window, (long long)s.n);
    if (window != NULL && (window->ndim != 1 || window->shape[0] != s.window)) {
        char text[TN__TEXT];

        return tn_fail(TN_ERR_RUNTIME,
                       "window: wrong shape, got %s; expected a vector of win_length = %lld "
                       "elements",
                       tn__common_text(text, tn__common_shape(window)), (long long)s.window);
    }
    return TN_OK;
}

static tn_status complex_onesided(void)
{
    return tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */
                   "Cannot have onesided output if window or input is complex");
}

/* ---- stft ------------------------------------------------------------------------------------ */

/* Returns the number of elements that are added on each side of x. */
static int64_t padding_of(const tn_stft_options *o, struct sizes s)
{
    return o->center ? s.n / 2 : o->align_to_window ? (s.n - s.window) / 2 : 0;
}

static tn_status stft_infer(tn_infer *infer)
{
    const tn_stft_options *o = infer->options;
    const tn_view *x = infer->in[0];
    struct sizes s = sizes_of(o->n_fft, o->hop_length, o->win_length);
    bool complex = tn__is_complex(infer->dtype), onesided = truth(o->onesided, !complex);
    tn_meta *out = &infer->out[0];
    int64_t length;
    tn_status status = check_onesided(o->onesided);

    if (status != TN_OK)
        return status;
    if (tn__fft_dtype(infer->dtype) == TN_DTYPE_AUTO)
        return tn_fail(TN_ERR_TYPE,
                       "x: wrong dtype, got %s; expected float32 or float64, or a "
                       "complex dtype",
                       tn_dtype_name(infer->dtype));
    if (x->ndim != 1 && x->ndim != 2)
        return tn_fail(TN_ERR_RUNTIME, "x: wrong number of dimensions, got %d; expected 1 or 2",
                       (int)x->ndim);
    if (o->center && o->align_to_window)
        return tn_fail(
            TN_ERR_RUNTIME,
            "align_to_window: not possible with center, got True; expected False, or center=False");
    if (s.n < 1 || s.n > INT64_MAX / 4)
        return tn_fail(TN_ERR_RUNTIME, "n_fft: out of range, got %lld; expected 1 to 2^61 - 1",
                       (long long)s.n);
    status = check_window(s, infer->in[1]);
    if (status != TN_OK)
        return status;
    if (complex && onesided)
        return complex_onesided();
    length = tn__common_plus(x->shape[x->ndim - 1], 2 * padding_of(o, s));
    if (length == INT64_MAX)
        return tn_fail(TN_ERR_RUNTIME,
                       "x: too large, got %lld with padding of %lld at both ends; expected less "
                       "than 2^63 - 1 together",
                       (long long)x->shape[x->ndim - 1], (long long)padding_of(o, s));
    if (length < s.n)
        return tn_fail(TN_ERR_RUNTIME,
                       "n_fft: too large, got %lld; expected at most %lld, the "
                       "size of x with its padding",
                       (long long)s.n, (long long)length);
    out->dtype = tn__fft_dtype(infer->dtype);
    out->ndim = x->ndim + 1;
    out->shape[0] = x->shape[0];
    out->shape[x->ndim - 1] = onesided ? s.n / 2 + 1 : s.n;
    out->shape[x->ndim] = 1 + (length - s.n) / s.hop;
    if (!o->return_complex) {
        out->dtype = tn__common_part(out->dtype);
        out->shape[out->ndim++] = 2;
    }
    return TN_OK;
}

/* Pads the last dimension of x [N, L] on both sides. */
static tn_tensor *padded(tn_tensor *x, int64_t more, const char *mode)
{
    int64_t sides[2] = { more, more };

    return tn_squeeze(tn_pad(tn_unsqueeze(x, 0), ((tn_ints){ sides, 2 }), mode),
                      ((tn_ints){ &(int64_t){ 0 }, 1 }));
}

/* Returns a window of n elements with zeros on both sides of `window`, NULL if there is none. */
static tn_tensor *wide_window(tn_tensor *window, struct sizes s)
{
    int64_t before = (s.n - s.window) / 2, sides[2] = { before, s.n - s.window - before };

    return s.n == s.window ? window : tn_pad(window, ((tn_ints){ sides, 2 }));
}

/* Returns `window`, or ones with the dtype of x if there is none. */
static tn_tensor *window_or_ones(tn_tensor *window, tn_tensor *x, int64_t size)
{
    if (window != TN_NONE)
        return window;
    return tn_tensor_full(TN_SHAPE(size), 1.0, tn_tensor_dtype(x), tn_tensor_device(x));
}

static tn_status stft_decompose(const tn_decompose *call)
{
    const tn_stft_options *o = call->options;
    struct sizes s = sizes_of(o->n_fft, o->hop_length, o->win_length);
    tn_tensor *x = call->in[0], *window = call->in[1], *y;
    bool batch = tn_tensor_ndim(x) == 2, complex = tn__is_complex(tn_tensor_dtype(x));
    double scale = o->normalized ? 1 / sqrt((double)s.n) : 1;
    int64_t more = padding_of(o, s);

    if (!batch)
        x = tn_unsqueeze(x, 0);
    if (more > 0)
        x = padded(x, more, o->center ? o->pad_mode : "constant");
    x = tn_unfold(x, -1, s.n, s.hop);
    if (window != TN_NONE || s.n != s.window)
        x = tn_mul(x, wide_window(window_or_ones(window, call->in[0], s.window), s));
    if (x == NULL)
        return tn_error_last_code();
    if (truth(o->onesided, !complex))
        y = tn__fft_r2c(x, -1, scale);
    else
        y = tn__fft_c2c(tn_cast(x, tn__fft_dtype(tn_tensor_dtype(x))), -1, false, scale);
    y = tn_transpose(y, -1, -2);
    if (!batch)
        y = tn_select(y, 0, 0);
    return tn__common_given(call->out, o->return_complex ? y : tn_view_as_real(y));
}

/* ---- istft ----------------------------------------------------------------------------------- */

/* Returns the size of the sum of all windows. */
static int64_t whole_length(struct sizes s, int64_t windows)
{
    return s.n + s.hop * (windows - 1);
}

/* Sets the first element of the result in the sum of all windows, and the size of the result. */
static void result_of(const tn_istft_options *o, struct sizes s, int64_t windows, int64_t *start,
                      int64_t *length)
{
    *start = o->center ? s.n / 2 : 0;
    *length = o->length != INT64_MIN
                  ? o->length
                  : whole_length(s, windows) - *start - (o->center ? s.n / 2 : 0);
}

static tn_status istft_shape(const tn_istft_options *o, const tn_view *x, struct sizes s)
{
    int64_t frequencies, expected;
    char text[TN__TEXT];

    if ((x->ndim != 2 && x->ndim != 3) || tn__common_count(tn__common_shape(x)) == 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "x: wrong shape, got %s; expected [frequencies, windows] or [N, "
                       "frequencies, windows], with at least one element",
                       tn__common_text(text, tn__common_shape(x)));
    frequencies = x->shape[x->ndim - 2];
    expected = truth(o->onesided, frequencies != s.n) ? s.n / 2 + 1 : s.n;
    if (frequencies != expected)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x: wrong size of dimension %d, got %lld; expected %lld frequencies for "
            "n_fft = %lld%s",
            (int)x->ndim - 2, (long long)frequencies, (long long)expected, (long long)s.n,
            tn__scalar_given(o->onesided) ? " and this onesided" : ", or n_fft frequencies");
    return TN_OK;
}

static tn_status istft_infer(tn_infer *infer)
{
    const tn_istft_options *o = infer->options;
    const tn_view *x = infer->in[0], *window = infer->in[1];
    struct sizes s = sizes_of(o->n_fft, o->hop_length, o->win_length);
    tn_dtype kind = window != NULL ? tn_view_dtype(window) : TN_F32;
    tn_dtype dtype = tn_view_dtype(x) == TN_C128 || kind == TN_F64 || kind == TN_C128 ? TN_C128
                                                                                      : TN_C64;
    int64_t start, length, windows;
    tn_meta *out = &infer->out[0];
    tn_status status = check_onesided(o->onesided);

    if (status == TN_OK && (s.n < 1 || s.n > INT64_MAX / 16))
        status = tn_fail(TN_ERR_RUNTIME, "n_fft: out of range, got %lld; expected 1 to 2^59 - 1",
                         (long long)s.n);
    if (status == TN_OK)
        status = check_window(s, window);
    if (status == TN_OK && s.hop > s.window)
        status = tn_fail(TN_ERR_RUNTIME,
                         "hop_length: out of range, got %lld; expected at most win_length = %lld",
                         (long long)s.hop, (long long)s.window);
    if (status == TN_OK)
        status = istft_shape(o, x, s);
    if (status != TN_OK)
        return status;
    if (o->return_complex && truth(o->onesided, x->shape[x->ndim - 2] != s.n))
        return complex_onesided();
    if (!o->return_complex && tn__is_complex(kind))
        return tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */
                       "Complex windows are incompatible with return_complex=False");
    windows = x->shape[x->ndim - 1];
    if (windows > INT64_MAX / 4 / s.n)
        return tn_fail(TN_ERR_RUNTIME, "x: too many windows, got %lld; expected at most %lld",
                       (long long)windows, (long long)(INT64_MAX / 4 / s.n));
    result_of(o, s, windows, &start, &length);
    if (o->length != INT64_MIN && length < 1)
        return tn_fail(TN_ERR_RUNTIME, "length: out of range, got %lld; expected at least 1",
                       (long long)length);
    if (length < 1 || start >= whole_length(s, windows))
        return tn_fail(TN_ERR_RUNTIME,
                       "x: too few windows for center, got %lld; expected windows that cover more "
                       "than n_fft = %lld elements, as the first and last n_fft / 2 are cut off",
                       (long long)windows, (long long)s.n);
    out->dtype = o->return_complex ? dtype : tn__common_part(dtype);
    out->ndim = x->ndim - 1;
    out->shape[0] = x->shape[0];
    out->shape[out->ndim - 1] = length;
    return TN_OK;
}

/* Adds the windows y [N, windows, n] at their positions: [N, length]. */
static tn_tensor *added(tn_tensor *y, struct sizes s, int64_t length)
{
    int64_t size[2] = { 1, length }, kernel[2] = { 1, s.n }, stride[2] = { 1, s.hop };

    if (y == NULL)
        return NULL;
    if (tn__is_complex(tn_tensor_dtype(y)))
        return tn_complex(added(tn_real(y), s, length), added(tn_imag(y), s, length));
    y = tn_fold(tn_transpose(y, 1, 2), ((tn_ints){ size, 2 }), ((tn_ints){ kernel, 2 }),
                tn_no_ints(), tn_no_ints(), ((tn_ints){ stride, 2 }));
    return tn_select(tn_select(y, 1, 0), 1, 0);
}

/* Fails if an element of `sum`, the sum of the squared windows, is 0 or nearly 0. */
static tn_status check_sum(tn_tensor *sum)
{
    tn_tensor *least = tn_amin(tn_abs(sum));
    tn_scalar value;
    tn_status status = least == NULL ? tn_error_last_code() : tn_tensor_scalar(least, &value);

    if (status == TN_OK && tn_scalar_as_float(value) < 1e-11)
        status = tn_fail(TN_ERR_RUNTIME,
                         "window: the squared windows add up to %g at an element of the result; "
                         "expected at least 1e-11 (window overlap add min: 1)",
                         tn_scalar_as_float(value));
    return status;
}

static tn_status istft_decompose(const tn_decompose *call)
{
    const tn_istft_options *o = call->options;
    struct sizes s = sizes_of(o->n_fft, o->hop_length, o->win_length);
    tn_tensor *x = call->in[0], *y, *window, *sum;
    bool batch = tn_tensor_ndim(x) == 3;
    int64_t windows = tn_tensor_size(x, -1), frequencies = tn_tensor_size(x, -2);
    int64_t whole = whole_length(s, windows), start, length, kept;
    double scale = o->normalized ? 1 / sqrt((double)s.n) : 1 / (double)s.n;
    tn_status status;

    result_of(o, s, windows, &start, &length);
    kept = length < whole - start ? length : whole - start;
    y = tn_transpose(batch ? x : tn_unsqueeze(x, 0), -1, -2);
    if (o->return_complex)
        y = tn__fft_c2c(y, -1, true, scale);
    else
        y = tn__fft_c2r(frequencies == s.n ? tn_narrow(y, -1, 0, s.n / 2 + 1) : y, s.n, -1, scale);
    if (y == NULL)
        return tn_error_last_code();
    window = window_or_ones(call->in[1], tn__is_complex(tn_tensor_dtype(y)) ? tn_real(y) : y,
                            s.window);
    window = wide_window(window, s);
    sum = tn_expand(tn_mul(window, window), TN_SHAPE(1, windows, s.n));
    sum = tn_narrow(added(sum, s, whole), -1, start, kept);
    status = check_sum(sum);
    if (status != TN_OK)
        return status;
    y = tn_narrow(added(tn_mul(y, window), s, whole), -1, start, kept);
    y = divide(y, sum);
    if (kept < length)
        y = tn_pad(y, TN_SHAPE(0, length - kept));
    return tn__common_given(call->out, batch ? y : tn_select(y, 0, 0));
}

TN__OP(stft, .infer = stft_infer, .decompose = stft_decompose);
TN__OP(istft, .infer = istft_infer, .decompose = istft_decompose);

/* SPDX-License-Identifier: MIT
 *
 * Fourier transforms along one dimension, of which all others are composed: complex to complex,
 * real to complex, complex to real. The decompositions are matrix products, for devices without a
 * kernel.
 *
 * A transform of n = n1 * n2 elements is computed in four steps: n2 transforms of n1 elements, a
 * multiplication by powers of exp(-2 pi i / n), n1 transforms of n2 elements, and a transposition.
 * Small transforms are products with the matrix of the transform. If n is a large prime number, the
 * transform is a convolution (Bluestein's method), which is computed by transforms of a power of
 * two. */
#include "fft.h"

#define PI 3.14159265358979323846

enum {
    LARGEST_MATRIX = 64, /* up to this size, the transform is one product with a matrix */
    LARGEST_PRIME = 256  /* larger prime numbers become a convolution */
};

tn_dtype tn__fft_dtype(tn_dtype part)
{
    switch (part) {
    case TN_F32:
    case TN_C64: return TN_C64;
    case TN_F64:
    case TN_C128: return TN_C128;
    default: return TN_DTYPE_AUTO;
    }
}

tn_tensor *tn__fft_c2c(tn_tensor *x, int64_t dim, bool inverse, double scale)
{
    return tn_fft_c2c(x, dim, inverse, scale);
}

tn_tensor *tn__fft_r2c(tn_tensor *x, int64_t dim, double scale)
{
    return tn_fft_r2c(x, dim, scale);
}

tn_tensor *tn__fft_c2r(tn_tensor *x, int64_t n, int64_t dim, double scale)
{
    return tn_fft_c2r(x, n, dim, scale);
}

tn_tensor *tn__fft_resized(tn_tensor *x, int32_t dim, int64_t size)
{
    int64_t shape[TN_MAX_DIMS], now;
    int32_t ndim;

    if (x == NULL)
        return NULL;
    now = tn_tensor_size(x, dim);
    ndim = tn_tensor_ndim(x);
    if (now >= size)
        return now == size ? x : tn_narrow(x, dim, 0, size);
    for (int32_t d = 0; d < ndim; d++)
        shape[d] = tn_tensor_size(x, d);
    shape[dim < 0 ? dim + ndim : dim] = size - now;
    return tn_cat((tn_tensor *[]){ x, tn__common_zeros(x, (tn_ints){ shape, ndim }) }, 2, dim);
}

/* ---- inference ------------------------------------------------------------------------------- */

/* Checks x and `dim` of a transform along one dimension, and copies the shape of x to output 0.
 * Sets *at to the dimension, counted from 0. */
static tn_status step_infer(tn_infer *infer, int64_t dim, tn_dtype dtype, int32_t *at)
{
    const tn_view *x = infer->in[0];
    tn_status status;

    if (x->ndim == 0)
        return tn_fail(TN_ERR_RUNTIME, "x: too few dimensions, got 0; expected at least 1");
    status = tn__common_dim(dim, x->ndim, at);
    if (status == TN_OK && x->shape[*at] == 0)
        status = tn_fail(TN_ERR_RUNTIME, "x: dimension %d has size 0; expected at least 1",
                         (int)*at);
    if (status == TN_OK)
        tn__common_plain(&infer->out[0], dtype, tn__common_shape(x));
    return status;
}

static tn_status fft_c2c_infer(tn_infer *infer)
{
    const tn_fft_c2c_options *o = infer->options;
    int32_t at;

    return step_infer(infer, o->dim, tn_view_dtype(infer->in[0]), &at);
}

static tn_status fft_r2c_infer(tn_infer *infer)
{
    const tn_fft_r2c_options *o = infer->options;
    int32_t at;
    tn_status status = step_infer(infer, o->dim, tn__fft_dtype(tn_view_dtype(infer->in[0])), &at);

    if (status == TN_OK)
        infer->out[0].shape[at] = infer->in[0]->shape[at] / 2 + 1;
    return status;
}

static tn_status fft_c2r_infer(tn_infer *infer)
{
    const tn_fft_c2r_options *o = infer->options;
    int32_t at;
    tn_status status = step_infer(infer, o->dim, tn__common_part(tn_view_dtype(infer->in[0])), &at);

    if (status != TN_OK)
        return status;
    if (o->n < 1)
        return tn_fail(TN_ERR_RUNTIME, "n: out of range, got %lld; expected at least 1",
                       (long long)o->n);
    if (infer->in[0]->shape[at] != o->n / 2 + 1)
        return tn_fail(TN_ERR_RUNTIME,
                       "x: wrong size of dimension %d, got %lld; expected n / 2 + 1 = %lld for n = "
                       "%lld",
                       (int)at, (long long)infer->in[0]->shape[at], (long long)(o->n / 2 + 1),
                       (long long)o->n);
    infer->out[0].shape[at] = o->n;
    return TN_OK;
}

/* ---- tables of roots of unity ---------------------------------------------------------------- */

/* Complex numbers on the host, written as the dtype c64 or c128. */
struct table {
    void *memory;
    int64_t count;
    bool wide; /* c128 */
};

static bool take_table(struct table *table, int64_t count, tn_dtype dtype)
{
    table->count = count;
    table->wide = dtype == TN_C128;
    table->memory = tn_calloc((size_t)count, tn_dtype_size(dtype));
    return table->memory != NULL;
}

/* Sets element `at` to exp(2 pi i k / n), 0 <= k < n. The angle that cos and sin compute is at most
 * an eighth of a turn, where both are accurate. */
static void set_root(struct table *table, int64_t at, int64_t k, int64_t n)
{
    int64_t eighth = 8 * (k % n) / n;                   /* 0 to 7 */
    int64_t rest = 8 * k - (eighth + (eighth & 1)) * n; /* from the nearest quarter of a turn */
    double angle = 2 * PI * ((double)rest / 8 / (double)n), c = cos(angle), s = sin(angle), re, im;

    switch ((eighth + 1) / 2 % 4) {
    case 0: re = c, im = s; break;
    case 1: re = -s, im = c; break;
    case 2: re = -c, im = -s; break;
    default: re = s, im = -c; break;
    }
    if (table->wide) {
        ((double *)table->memory)[2 * at] = re;
        ((double *)table->memory)[2 * at + 1] = im;
    } else {
        ((float *)table->memory)[2 * at] = (float)re;
        ((float *)table->memory)[2 * at + 1] = (float)im;
    }
}

/* Copies the table to a vector on the device of `like`, and frees the table. */
static tn_tensor *placed(struct table *table, tn_tensor *like)
{
    tn_tensor *y = tn__common_placed(table->memory, table->count, tn_tensor_dtype(like), like);

    tn_free(table->memory);
    return y;
}

/* Returns a * b mod n for 0 <= a, b < n. */
static int64_t product_mod(int64_t a, int64_t b, int64_t n)
{
    __extension__ typedef unsigned __int128 wide;

    return (int64_t)((wide)a * (wide)b % (wide)n);
}

/* Returns the matrix [rows, columns] of exp(-+ 2 pi i j k / n). */
static tn_tensor *roots(tn_tensor *like, int64_t rows, int64_t columns, int64_t n, bool inverse)
{
    struct table table;

    if (like == NULL || !take_table(&table, rows * columns, tn_tensor_dtype(like)))
        return NULL;
    for (int64_t j = 0; j < rows; j++)
        for (int64_t k = 0; k < columns; k++) {
            int64_t power = product_mod(j, k, n);

            set_root(&table, j * columns + k, inverse || power == 0 ? power : n - power, n);
        }
    return tn_reshape(placed(&table, like), TN_SHAPE(rows, columns));
}

/* ---- transforms of the last dimension -------------------------------------------------------- */

/* Returns the largest divisor of n that is at most sqrt(n); 1 if n is prime. */
static int64_t divisor(int64_t n)
{
    int64_t best = 1;

    for (int64_t d = 2; d <= n / d; d++)
        if (n % d == 0)
            best = d;
    return best;
}

/* Returns x, whose last dimension is replaced by dimensions of the sizes a and b, or by one of size
 * a if b is 0. */
static tn_tensor *reshape_last(tn_tensor *x, int64_t a, int64_t b)
{
    int64_t shape[TN_MAX_DIMS + 1];
    int32_t ndim = x == NULL ? 0 : tn_tensor_ndim(x), drop = b == 0 ? 2 : 1;

    if (x == NULL)
        return NULL;
    for (int32_t d = 0; d < ndim - drop; d++)
        shape[d] = tn_tensor_size(x, d);
    shape[ndim - drop] = a;
    shape[ndim - drop + 1] = b;
    return tn_reshape(x, (tn_ints){ shape, b == 0 ? ndim - 1 : ndim + 1 });
}

static tn_tensor *transformed(tn_tensor *x, int64_t n, bool inverse);

/* Bluestein's method. Because j k = (j^2 + k^2 - (k - j)^2) / 2, the transform is a convolution
 * with c[j] = exp(+- pi i j^2 / n), between multiplications by the conjugate of c. */
static tn_tensor *convolved(tn_tensor *x, int64_t n, bool inverse)
{
    struct table chirp, filter;
    tn_tensor *before, *spectrum, *y;
    int64_t m = 1;

    while (m < 2 * n - 1)
        m *= 2;
    if (x == NULL || !take_table(&chirp, n, tn_tensor_dtype(x)))
        return NULL;
    if (!take_table(&filter, m, tn_tensor_dtype(x))) {
        tn_free(chirp.memory);
        return NULL;
    }
    for (int64_t j = 0; j < n; j++) {
        int64_t power = product_mod(j, j, 2 * n), other = power == 0 ? 0 : 2 * n - power;

        set_root(&chirp, j, inverse ? power : other, 2 * n);
        set_root(&filter, j, inverse ? other : power, 2 * n);
        if (j > 0)
            set_root(&filter, m - j, inverse ? other : power, 2 * n);
    }
    before = placed(&chirp, x);
    spectrum = transformed(placed(&filter, x), m, false);
    y = transformed(tn__fft_resized(tn_mul(x, before), -1, m), m, false);
    y = transformed(tn_mul(y, spectrum), m, true);
    return times(tn_mul(tn_narrow(y, -1, 0, n), before), 1.0 / (double)m);
}

/* Returns the transform of the last dimension of x, which has size n, without a scale. */
static tn_tensor *transformed(tn_tensor *x, int64_t n, bool inverse)
{
    int64_t n1 = divisor(n), n2 = n / n1;

    if (n <= LARGEST_MATRIX || (n1 == 1 && n <= LARGEST_PRIME))
        return tn_matmul(x, roots(x, n, n, n, inverse));
    if (n1 == 1)
        return convolved(x, n, inverse);
    x = transformed(tn_transpose(reshape_last(x, n1, n2), -1, -2), n1, inverse);
    x = tn_mul(x, roots(x, n2, n1, n, inverse));
    x = transformed(tn_transpose(x, -1, -2), n2, inverse);
    return reshape_last(tn_transpose(x, -1, -2), n, 0);
}

/* ---- decompositions -------------------------------------------------------------------------- */

static tn_status fft_c2c_decompose(const tn_decompose *call)
{
    const tn_fft_c2c_options *o = call->options;
    tn_tensor *x = call->in[0], *y;
    int64_t n = tn_tensor_size(x, o->dim);
    int64_t flat[2] = { tn_tensor_numel(x) / n, n };

    if (n == 1 || flat[0] == 0)
        return tn__common_given(call->out, tn_mul_scalar(x, o->scale));
    x = tn_transpose(x, o->dim, -1);
    if (x == NULL)
        return tn_error_last_code();
    /* as a matrix, because a transform needs one more dimension than its input */
    y = transformed(tn_reshape(x, (tn_ints){ flat, 2 }), n, o->inverse);
    y = tn_reshape(times(y, o->scale), tn_tensor_shape(x));
    return tn__common_given(call->out, tn_transpose(y, o->dim, -1));
}

static tn_status fft_r2c_decompose(const tn_decompose *call)
{
    const tn_fft_r2c_options *o = call->options;
    tn_tensor *x = call->in[0];
    int64_t n = tn_tensor_size(x, o->dim);
    tn_tensor *y = tn__fft_c2c(tn_cast(x, tn__fft_dtype(tn_tensor_dtype(x))), o->dim, false,
                               o->scale);

    return tn__common_given(call->out, tn_narrow(y, o->dim, 0, n / 2 + 1));
}

static tn_status fft_c2r_decompose(const tn_decompose *call)
{
    const tn_fft_c2r_options *o = call->options;
    tn_tensor *x = call->in[0], *rest;
    int64_t more = o->n - (o->n / 2 + 1);

    if (more > 0) {
        rest = tn_flip(tn_narrow(x, o->dim, 1, more), (tn_ints){ &o->dim, 1 });
        x = tn_cat((tn_tensor *[]){ x, tn_conj(rest) }, 2, o->dim);
    }
    return tn__common_given(call->out, tn_real(tn__fft_c2c(x, o->dim, true, o->scale)));
}

/* ---- derivatives ----------------------------------------------------------------------------- */

static tn_status fft_c2c_derive(tn_derive *d)
{
    const tn_fft_c2c_options *o = d->options;

    d->gin[0] = tn__fft_c2c(d->gout[0], o->dim, !o->inverse, o->scale);
    return TN_OK;
}

/* Multiplies x, the first n / 2 + 1 of n elements along `dim`, by `factor`, except those without a
 * conjugate among the n elements: element 0 and, if n is even, element n / 2. */
static tn_tensor *weigh_pairs(tn_tensor *x, int64_t n, int64_t dim, double factor)
{
    int64_t more = (n - 1) / 2;
    tn_tensor *parts[3];
    int64_t count = 0;

    if (more == 0)
        return x;
    parts[count++] = tn_narrow(x, dim, 0, 1);
    parts[count++] = times(tn_narrow(x, dim, 1, more), factor);
    if (n % 2 == 0)
        parts[count++] = tn_narrow(x, dim, more + 1, 1);
    return tn_cat(parts, count, dim);
}

/* An element of gy and its conjugate have the same contribution to gx, and fft_c2r adds both. */
static tn_status fft_r2c_derive(tn_derive *d)
{
    const tn_fft_r2c_options *o = d->options;
    int32_t at;
    int64_t n;
    tn_status status = tn__common_dim(o->dim, d->in_meta[0].ndim, &at);

    if (status != TN_OK)
        return status;
    n = d->in_meta[0].shape[at];
    d->gin[0] = tn__fft_c2r(weigh_pairs(d->gout[0], n, o->dim, 0.5), n, o->dim, o->scale);
    return TN_OK;
}

static tn_status fft_c2r_derive(tn_derive *d)
{
    const tn_fft_c2r_options *o = d->options;

    d->gin[0] = weigh_pairs(tn__fft_r2c(d->gout[0], o->dim, o->scale), o->n, o->dim, 2.0);
    return TN_OK;
}

TN__OP(fft_c2c, .infer = fft_c2c_infer, .derive = fft_c2c_derive, .decompose = fft_c2c_decompose);
TN__OP(fft_r2c, .infer = fft_r2c_infer, .derive = fft_r2c_derive, .decompose = fft_r2c_decompose);
TN__OP(fft_c2r, .infer = fft_c2r_infer, .derive = fft_c2r_derive, .decompose = fft_c2r_decompose);

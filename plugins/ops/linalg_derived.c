/* SPDX-License-Identifier: MIT
 *
 * Linear algebra that is computed with other operators: pseudo-inverse, least squares, products of
 * reflections, the exponential of a matrix. */
#include <float.h>

#include "linalg.h"

/* The distance from 1 to the next number of the dtype. */
static double epsilon_of(tn_dtype dtype)
{
    return tn__common_part(dtype) == TN_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
}

/* Fails unless `a` has at least two dimensions and b has the same dtype. */
static tn_status is_matrix_with(const tn_view *a, const char *name_a, const tn_view *b,
                                const char *name_b)
{
    tn_status status = is_matrix(a, name_a);

    return status == TN_OK ? tn__common_same_dtype(a, name_a, b, name_b) : status;
}

/* ---- pseudo-inverse -------------------------------------------------------------------------- */

static tn_status linalg_pinv_infer(tn_infer *infer)
{
    const tn_linalg_pinv_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_status status = o->hermitian ? is_square(x, "x") : is_matrix(x, "x");
    tn_meta *meta = &infer->out[0];

    if (status != TN_OK)
        return status;
    tn__common_plain(meta, tn_view_dtype(x), tn__common_shape(x));
    meta->shape[x->ndim - 2] = x->shape[x->ndim - 1];
    meta->shape[x->ndim - 1] = x->shape[x->ndim - 2];
    return TN_OK;
}

/* 1 / s, and 0 where |s| is at most the tolerance; as a row, to scale columns of `like`. */
static tn_tensor *inverses(tn_tensor *s, double atol, double rtol, tn_tensor *like)
{
    tn_tensor *size = tn_abs(s), *most, *small;
    int64_t last = -1;

    most = times(tn_amax(size, TN_INTS(last), true), rtol);
    if (atol > 0)
        most = at_least(most, atol);
    small = tn_le(size, most);
    s = tn_reciprocal(tn_where(small, number(s, 1.0), s));
    return s == NULL || like == NULL
               ? NULL
               : tn_cast(tn_unsqueeze(zero_where(small, s), -2), tn_tensor_dtype(like));
}

static tn_status linalg_pinv_decompose(const tn_decompose *call)
{
    const tn_linalg_pinv_options *o = call->options;
    tn_tensor *x = call->in[0], *u, *s, *vh;
    int64_t m = tn_tensor_size(x, -2), n = tn_tensor_size(x, -1);
    double atol = tn__given_number(o->atol) ? o->atol : 0;
    double rtol = tn__given_number(o->rtol) ? o->rtol
                  : atol > 0                ? 0
                             : (double)(m > n ? m : n) * epsilon_of(tn_tensor_dtype(x));
    tn_status status;

    if (m == 0 || n == 0)
        return tn__common_given(call->out, tn_copy(tn_transpose(x, -2, -1)));
    if (o->hermitian) {
        status = tn_linalg_eigh(x, &s, &u);
        vh = status == TN_OK ? adjoint(u) : NULL;
    } else {
        status = tn_linalg_svd(x, &u, &s, &vh, false);
    }
    if (status != TN_OK)
        return status;
    return tn__common_given(
        call->out, tn_matmul(tn_mul(adjoint(vh), inverses(s, atol, rtol, vh)), adjoint(u)));
}

/* The derivative of Golub and Pereyra (1973) for constant rank, in the order of products that has
 * the smaller matrices. */
static tn_status linalg_pinv_derive(tn_derive *d)
{
    tn_tensor *x = d->in[0], *y = d->out[0], *yh = adjoint(y), *gh = adjoint(d->gout[0]), *k, *a,
              *b;
    tn_ints shape = tn__common_in_shape(d, 0);

    if (shape.at[shape.count - 2] <= shape.at[shape.count - 1]) {
        k = tn_matmul(gh, y);
        a = tn_matmul(k, yh);
        b = tn_matmul(tn_matmul(yh, y), minus(gh, tn_matmul(k, x)));
        a = plus(minus(a, tn_matmul(tn_matmul(x, y), a)), b);
        d->gin[0] = minus(a, adjoint(tn_matmul(y, k)));
    } else {
        k = tn_matmul(y, gh);
        a = tn_matmul(yh, k);
        b = tn_matmul(tn_matmul(minus(gh, tn_matmul(x, k)), y), yh);
        a = plus(minus(a, tn_matmul(tn_matmul(a, y), x)), b);
        d->gin[0] = minus(a, adjoint(tn_matmul(k, y)));
    }
    return TN_OK;
}

/* ---- least squares --------------------------------------------------------------------------- */

static bool is_vector(tn_ints a, tn_ints b)
{
    bool same = b.count == a.count - 1;

    for (int64_t d = 0; same && d < b.count; d++)
        same = a.at[d] == b.at[d];
    return b.count == 1 || same;
}

static tn_status linalg_lstsq_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *b = infer->in[1];
    char text_a[TN__TEXT], text_b[TN__TEXT];
    tn_status status = is_matrix_with(a, "a", b, "b");
    int32_t rows;

    if (status != TN_OK)
        return status;
    rows = b->ndim - (is_vector(tn__common_shape(a), tn__common_shape(b)) ? 1 : 2);
    if (rows < 0 || b->shape[rows] != a->shape[a->ndim - 2])
        return tn_fail(TN_ERR_RUNTIME,
                       "a or b: wrong shape, got %s and %s; expected [..., m, n] for a, and for b "
                       "[..., m, k], [m], or the shape of a without n",
                       tn__common_text(text_a, tn__common_shape(a)),
                       tn__common_text(text_b, tn__common_shape(b)));
    return tn__common_open(infer);
}

static tn_status linalg_lstsq_decompose(const tn_decompose *call)
{
    const tn_linalg_lstsq_options *o = call->options;
    tn_tensor *a = call->in[0], *b = call->in[1], *y;
    bool vector = is_vector(tn_tensor_shape(a), tn_tensor_shape(b));
    int64_t last = -1;
    y = tn_matmul(tn_linalg_pinv(a, NAN, o->rcond), vector ? tn_unsqueeze(b, -1) : b);
    return tn__common_given(call->out, vector ? tn_squeeze(y, TN_INTS(last)) : y);
}

/* ---- products of reflections ----------------------------------------------------------------- */

static tn_status linalg_householder_product_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0], *tau = infer->in[1];
    char text[TN__TEXT], text_tau[TN__TEXT];
    tn_status status = is_matrix_with(x, "x", tau, "tau");
    bool fits;

    if (status != TN_OK)
        return status;
    fits = tau->ndim == x->ndim - 1 && x->shape[x->ndim - 2] >= x->shape[x->ndim - 1] &&
           tau->shape[tau->ndim - 1] <= x->shape[x->ndim - 1];
    for (int32_t d = 0; fits && d < x->ndim - 2; d++)
        fits = tau->shape[d] == x->shape[d];
    if (!fits)
        return tn_fail(TN_ERR_RUNTIME,
                       "x or tau: wrong shape, got %s and %s; expected [..., m, n] with m >= n and "
                       "[..., k] with k <= n",
                       tn__common_text(text, tn__common_shape(x)),
                       tn__common_text(text_tau, tn__common_shape(tau)));
    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    return TN_OK;
}

/* From the last reflection to the first: y = y - tau v (v^H y). */
static tn_status linalg_householder_product_decompose(const tn_decompose *call)
{
    tn_tensor *x = call->in[0], *tau = call->in[1], *v, *y;
    int64_t k = tn_tensor_size(tau, -1);

    y = tn_eye(x, tn_tensor_size(x, -2), tn_tensor_size(x, -1), tn_tensor_dtype(x));
    v = plus(below_diagonal(x), y);
    y = tn_copy(tn_expand(y, tn_tensor_shape(x)));
    for (int64_t i = k; i-- > 0 && y != NULL;) {
        tn_tensor *one = tn_narrow(v, -1, i, 1);
        tn_tensor *scaled = tn_mul(one, tn_unsqueeze(tn_narrow(tau, -1, i, 1), -1));

        y = minus(y, tn_matmul(scaled, tn_matmul(adjoint(one), y)));
    }
    return tn__common_given(call->out, y);
}

/* ---- the exponential ------------------------------------------------------------------------- */

/* With the norm of x / 2^s at most 1/2, the series of this degree is exact to 2^-55. */
enum { DEGREE = 14, MOST_SQUARINGS = 1100 };

/* Sets *squarings to the s for which all matrices of x / 2^s have norm 1/2 or less. */
static tn_status squarings_of(tn_tensor *x, int *squarings)
{
    int64_t rows = -2;
    tn_tensor *most;
    tn_scalar value;
    tn_status status;
    double norm;

    most = tn_amax(tn_sum(tn_abs(x), TN_INTS(rows)));
    status = most != NULL ? tn_tensor_scalar(most, &value) : tn_error_last_code();
    if (status != TN_OK)
        return status;
    norm = tn_scalar_as_float(value);
    *squarings = 0;
    while (isfinite(norm) && norm > 0.5 && *squarings < MOST_SQUARINGS) {
        norm /= 2;
        ++*squarings;
    }
    return TN_OK;
}

static tn_status linalg_matrix_exp_decompose(const tn_decompose *call)
{
    tn_tensor *x = call->in[0], *y, *one;
    int squarings = 0;
    tn_status status = tn_tensor_numel(x) > 0 ? squarings_of(x, &squarings) : TN_OK;
    if (status != TN_OK)
        return status;
    if (tn_tensor_numel(x) == 0)
        return tn__common_given(call->out, tn_copy(x));
    x = times(x, ldexp(1.0, -squarings));
    one = identity(x, tn_tensor_size(x, -1));
    y = plus(times(x, 1.0 / DEGREE), one);
    for (int k = DEGREE - 1; k >= 1 && y != NULL; k--)
        y = plus(times(tn_matmul(x, y), 1.0 / k), one);
    for (int i = 0; i < squarings && y != NULL; i++)
        y = tn_matmul(y, y);
    return tn__common_given(call->out, y);
}

/* The upper right block of exp([x^H g; 0 x^H]). */
static tn_status linalg_matrix_exp_derive(tn_derive *d)
{
    tn_tensor *xh = adjoint(d->in[0]), *g = d->gout[0], *rows[2], *all;
    tn_tensor *upper[2] = { xh, g }, *lower[2];
    int64_t n;

    if (xh == NULL || g == NULL)
        return tn_error_last_code();
    n = tn_tensor_size(xh, -1);
    lower[0] = tn__common_nothing(xh, tn_tensor_shape(xh));
    lower[1] = xh;
    rows[0] = tn_cat(upper, 2, -1);
    rows[1] = lower[0] != NULL ? tn_cat(lower, 2, -1) : NULL;
    all = rows[0] != NULL && rows[1] != NULL ? tn_linalg_matrix_exp(tn_cat(rows, 2, -2)) : NULL;
    d->gin[0] = tn_narrow(tn_narrow(all, -2, 0, n), -1, n, n);
    return TN_OK;
}

TN__OP(linalg_pinv, .infer = linalg_pinv_infer, .derive = linalg_pinv_derive,
       .decompose = linalg_pinv_decompose);
TN__OP(linalg_lstsq, .infer = linalg_lstsq_infer, .decompose = linalg_lstsq_decompose);
TN__OP(linalg_householder_product, .infer = linalg_householder_product_infer,
       .decompose = linalg_householder_product_decompose);
TN__OP(linalg_matrix_exp, .infer = infer_square, .derive = linalg_matrix_exp_derive,
       .decompose = linalg_matrix_exp_decompose);

/* SPDX-License-Identifier: MIT
 *
 * Decompositions with orthogonal factors: QR, eigenvalues of symmetric matrices, singular values.
 * Only the cpu device has kernels for these operators. Gradients are formulas of operators, so
 * they can be differentiated again. */
#include "linalg.h"

/* The rows, columns and the smaller of the two of a matrix [..., m, n]. */
struct sizes {
    int64_t m, n, k;
};

static struct sizes sizes_of(tn_ints shape)
{
    struct sizes s = { shape.at[shape.count - 2], shape.at[shape.count - 1], 0 };

    s.k = s.m < s.n ? s.m : s.n;
    return s;
}

/* Gives an output the batch dimensions of x, then rows and columns; columns -1: a vector. */
static void shaped(tn_meta *meta, tn_dtype dtype, const tn_view *x, int64_t rows, int64_t columns)
{
    tn__common_plain(meta, dtype, (tn_ints){ x->shape, x->ndim - 2 });
    meta->shape[meta->ndim++] = rows;
    if (columns >= 0)
        meta->shape[meta->ndim++] = columns;
}

/* x - x^H */
static tn_tensor *skew(tn_tensor *x)
{
    return minus(x, adjoint(x));
}

/* The real vector x as a row of matrices with the dtype of `like`. */
static tn_tensor *as_row(tn_tensor *x, tn_tensor *like)
{
    return x == NULL || like == NULL ? NULL : tn_cast(tn_unsqueeze(x, -2), tn_tensor_dtype(like));
}

/* e[i][j] = x[j] - x[i], and 1 on the diagonal. */
static tn_tensor *differences(tn_tensor *x)
{
    if (x == NULL)
        return NULL;
    return plus(minus(tn_unsqueeze(x, -2), tn_unsqueeze(x, -1)),
                identity(x, tn_tensor_size(x, -1)));
}

/* ---- QR -------------------------------------------------------------------------------------- */

static tn_status linalg_qr_infer(tn_infer *infer)
{
    const tn_linalg_qr_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_dtype dtype = tn_view_dtype(x);
    bool complete = is(o->mode, "complete"), only_r = is(o->mode, "r");
    tn_status status = is_matrix(x, "x");
    struct sizes s;

    if (status != TN_OK)
        return status;
    if (!complete && !only_r && !is(o->mode, "reduced"))
        return tn_fail(TN_ERR_VALUE, "mode: unknown, got %q; expected reduced, complete or r",
                       o->mode);
    s = sizes_of(tn__common_shape(x));
    if (only_r)
        tn__common_plain(&infer->out[0], dtype, TN_SHAPE(0));
    else
        shaped(&infer->out[0], dtype, x, s.m, complete ? s.m : s.k);
    shaped(&infer->out[1], dtype, x, complete ? s.m : s.k, s.n);
    return TN_OK;
}

/* The gradient for square or tall x: with M = gr r^H - q^H gq and S(M) = triu(M) + triu(M)^H with
 * the real part of the diagonal taken once, gx = (q S(M) + gq) r^-H. */
static tn_tensor *qr_back(tn_tensor *q, tn_tensor *r, tn_tensor *gq, tn_tensor *gr)
{
    tn_tensor *m, *above, *across, *sum;

    m = gr != TN_NONE ? tn_matmul(gr, adjoint(r)) : TN_NONE;
    if (gq != TN_NONE) {
        tn_tensor *other = tn_neg(tn_matmul(adjoint(q), gq));

        m = sum_if(m, other);
    }
    above = above_diagonal(m);
    across = only_diagonal(m);
    sum = plus(plus(above, adjoint(above)), times(plus(across, adjoint(across)), 0.5));
    sum = sum_if(gq, tn_matmul(q, sum));
    return tn_linalg_solve_triangular(adjoint(r), sum, false, false);
}

/* For x with more columns than rows: x = [a b], r = [s t], where a = q s is square and b = q t. So
 * gq gets b gt^H, and gb = q gt. */
static tn_tensor *qr_back_wide(tn_tensor *q, tn_tensor *r, tn_tensor *gq, tn_tensor *gr,
                               struct sizes s)
{
    tn_tensor *rest, *both[2];

    if (q == NULL || r == NULL)
        return NULL;
    if (gr == TN_NONE) {
        both[0] = qr_back(q, tn_narrow(r, -1, 0, s.m), gq, TN_NONE);
        both[1] = tn_matmul(q, tn_fill(tn_narrow(r, -1, s.m, s.n - s.m), 0.0));
        return tn_cat(both, 2, -1);
    }
    rest = tn_narrow(gr, -1, s.m, s.n - s.m);
    gq = sum_if(gq, tn_matmul(tn_matmul(q, tn_narrow(r, -1, s.m, s.n - s.m)), adjoint(rest)));
    both[0] = qr_back(q, tn_narrow(r, -1, 0, s.m), gq, tn_narrow(gr, -1, 0, s.m));
    both[1] = tn_matmul(q, rest);
    return both[0] == NULL || both[1] == NULL ? NULL : tn_cat(both, 2, -1);
}

static tn_status linalg_qr_derive(tn_derive *d)
{
    const tn_linalg_qr_options *o = d->options;
    struct sizes s = sizes_of(tn__common_in_shape(d, 0));

    if (is(o->mode, "r"))
        return tn_fail(TN_ERR_RUNTIME,
                       "linalg_qr: mode: no gradient exists for r; expected reduced");
    if (is(o->mode, "complete") && s.m > s.n)
        return tn_fail(
            TN_ERR_RUNTIME,
            "linalg_qr: mode: no gradient exists for complete if x has more rows than columns, got "
            "%lld and %lld; expected reduced",
            (long long)s.m, (long long)s.n);
    d->gin[0] = s.m >= s.n ? qr_back(d->out[0], d->out[1], d->gout[0], d->gout[1])
                           : qr_back_wide(d->out[0], d->out[1], d->gout[0], d->gout[1], s);
    return TN_OK;
}

/* ---- eigenvalues of symmetric matrices ------------------------------------------------------- */

static tn_status linalg_eigh_infer(tn_infer *infer)
{
    const tn_linalg_eigh_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_status status = is_square(x, "x");

    if (status != TN_OK)
        return status;
    if (!is(o->uplo, "L") && !is(o->uplo, "U"))
        return tn_fail(TN_ERR_RUNTIME, "uplo: unknown, got %q; expected L or U", o->uplo);
    shaped(&infer->out[0], tn__common_part(tn_view_dtype(x)), x, x->shape[x->ndim - 1], -1);
    shaped(&infer->out[1], tn_view_dtype(x), x, x->shape[x->ndim - 1], x->shape[x->ndim - 1]);
    return TN_OK;
}

/* gx = v (diag(gw) + (v^H gv) / e) v^H with e[i][j] = w[j] - w[i]; the diagonal of v^H gv has no
 * influence, because the length of an eigenvector is fixed. */
static tn_status linalg_eigh_derive(tn_derive *d)
{
    tn_tensor *w = d->out[0], *v = d->out[1], *gw = d->gout[0], *gv = d->gout[1];
    tn_tensor *vh = adjoint(v), *inner = TN_NONE;

    if (gv != TN_NONE) {
        tn_tensor *m = tn_matmul(vh, gv);

        m = minus(m, only_diagonal(m));
        inner = m == NULL ? NULL : divide(m, tn_cast(differences(w), tn_tensor_dtype(m)));
        inner = tn_matmul(v, tn_matmul(inner, vh));
    }
    if (gw != TN_NONE)
        inner = sum_if(inner, tn_matmul(tn_mul(v, as_row(gw, v)), vh));
    d->gin[0] = inner == TN_NONE ? tn__common_zeros(v, tn__common_in_shape(d, 0)) : inner;
    return TN_OK;
}

/* ---- singular values ------------------------------------------------------------------------- */

static tn_status linalg_svd_infer(tn_infer *infer)
{
    const tn_linalg_svd_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_dtype dtype = tn_view_dtype(x);
    tn_status status = is_matrix(x, "x");
    struct sizes s;

    if (status != TN_OK)
        return status;
    s = sizes_of(tn__common_shape(x));
    shaped(&infer->out[0], dtype, x, s.m, o->full_matrices ? s.m : s.k);
    shaped(&infer->out[1], tn__common_part(dtype), x, s.k, -1);
    shaped(&infer->out[2], dtype, x, o->full_matrices ? s.n : s.k, s.n);
    return TN_OK;
}

/* The part of gx within the spaces of u and v, without both outer factors: (skew(u^H gu) / e) S +
 * S (skew(v^H gv) / e) + diag(gs), with e[i][j] = s[j]^2 - s[i]^2 off the diagonal. For complex x,
 * the diagonal of skew(u^H gu) is divided by 2 s. */
static tn_tensor *svd_inner(tn_tensor *u, tn_tensor *s, tn_tensor *v, tn_tensor *gu, tn_tensor *gs,
                            tn_tensor *gv)
{
    tn_tensor *sum = TN_NONE, *row = as_row(s, u), *column, *e;

    if (row == NULL || v == NULL)
        return NULL;
    column = tn_transpose(row, -2, -1);
    e = tn_cast(differences(tn_mul(s, s)), tn_tensor_dtype(u));
    if (gu != TN_NONE) {
        tn_tensor *m = skew(tn_matmul(adjoint(u), gu)), *across = only_diagonal(m);

        sum = tn_mul(divide(minus(m, across), e), row);
        if (tn__is_complex(tn_tensor_dtype(u)))
            sum = plus(sum, times(divide(across, row), 0.5));
    }
    if (gv != TN_NONE) {
        tn_tensor *m = skew(tn_matmul(adjoint(v), gv));

        sum = sum_if(sum, tn_mul(column, divide(minus(m, only_diagonal(m)), e)));
    }
    if (gs != TN_NONE)
        sum = sum_if(sum, tn_mul(identity(u, tn_tensor_size(s, -1)), as_row(gs, u)));
    return sum;
}

static tn_status linalg_svd_derive(tn_derive *d)
{
    struct sizes z = sizes_of(tn__common_in_shape(d, 0));
    tn_tensor *u = d->out[0], *s = d->out[1], *vh = d->out[2], *gu = d->gout[0], *gs = d->gout[1],
              *gvh = d->gout[2], *v, *gv, *gx, *over;

    if (gu == TN_NONE && gs == TN_NONE && gvh == TN_NONE) {
        d->gin[0] = tn__common_zeros(u, tn__common_in_shape(d, 0));
        return TN_OK;
    }
    if (((const tn_linalg_svd_options *)d->options)->full_matrices && z.m != z.n) {
        if (gu != TN_NONE || gvh != TN_NONE)
            return tn_fail(
                TN_ERR_RUNTIME,
                "linalg_svd: full_matrices: no gradient exists for u and vh of a matrix that is "
                "not square; expected False");
        u = tn_narrow(u, -1, 0, z.k);
        vh = tn_narrow(vh, -2, 0, z.k);
    }
    v = adjoint(vh);
    gv = gvh == TN_NONE ? TN_NONE : adjoint(gvh);
    if (gu == TN_NONE && gvh == TN_NONE) {
        d->gin[0] = tn_matmul(tn_mul(u, as_row(gs, u)), vh);
        return TN_OK;
    }
    gx = tn_matmul(u, tn_matmul(svd_inner(u, s, v, gu, gs, gv), vh));
    if (z.m > z.k && gu != TN_NONE) { /* the part of gu that is orthogonal to u */
        over = divide(gu, as_row(s, u));
        gx = plus(gx, tn_matmul(minus(over, tn_matmul(u, tn_matmul(adjoint(u), over))), vh));
    }
    if (z.n > z.k && gv != TN_NONE) {
        over = divide(gv, as_row(s, u));
        over = minus(over, tn_matmul(v, tn_matmul(vh, over)));
        gx = plus(gx, tn_matmul(u, adjoint(over)));
    }
    d->gin[0] = gx;
    return TN_OK;
}

TN__OP(linalg_qr, .infer = linalg_qr_infer, .derive = linalg_qr_derive);
TN__OP(linalg_eigh, .infer = linalg_eigh_infer, .derive = linalg_eigh_derive);
TN__OP(linalg_svd, .infer = linalg_svd_infer, .derive = linalg_svd_derive);

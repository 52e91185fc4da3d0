/* SPDX-License-Identifier: MIT
 *
 * Linear systems, inverses, determinants, Cholesky factors. Only the cpu device has kernels for
 * these operators. Gradients are formulas of operators, so they can be differentiated again. */
#include "linalg.h"

/* ---- Cholesky -------------------------------------------------------------------------------- */

static tn_tensor *triangular(tn_tensor *a, tn_tensor *b, bool upper, bool left)
{
    return tn_linalg_solve_triangular(a, b, upper, left);
}

/* With P the lower triangle of L^H gL: gx = L^-H (P + P^H) / 2 L^-1, with the diagonal of P halved.
 * An upper factor is L^H. */
static tn_status linalg_cholesky_derive(tn_derive *d)
{
    bool upper = ((const tn_linalg_cholesky_options *)d->options)->upper;
    tn_tensor *l = upper ? adjoint(d->out[0]) : d->out[0];
    tn_tensor *gl = upper ? adjoint(d->gout[0]) : d->gout[0];
    tn_tensor *lh = adjoint(l), *p = tn_matmul(lh, gl);

    p = plus(below_diagonal(p), times(only_diagonal(p), 0.5));
    p = times(plus(p, adjoint(p)), 0.5);
    d->gin[0] = triangular(l, triangular(lh, p, true, true), false, false);
    return TN_OK;
}

/* ---- solve ----------------------------------------------------------------------------------- */

/* Whether the right-hand side is a batch of vectors, by PyTorch's rule. */
static bool is_vector(tn_ints a, tn_ints b)
{
    bool same = b.count == a.count - 1;

    for (int64_t d = 0; same && d < b.count; d++)
        same = a.at[d] == b.at[d];
    return b.count == 1 || same;
}

static tn_status not_matching(const tn_view *a, const tn_view *b, const char *expected)
{
    char text_a[TN__TEXT], text_b[TN__TEXT];

    return tn_fail(TN_ERR_RUNTIME, "a or b: wrong shape, got %s and %s; expected %s",
                   tn__common_text(text_a, tn__common_shape(a)),
                   tn__common_text(text_b, tn__common_shape(b)), expected);
}

/* Writes the shape of the solution of a y = b to `meta`. The last `inner` dimensions of b are a
 * matrix (2) or a vector (1). The dimensions before them are batch dimensions, which broadcast with
 * the batch dimensions of a. */
static tn_status solution(const tn_view *a, const tn_view *b, int32_t inner, bool left,
                          tn_meta *meta)
{
    int32_t batch_a = a->ndim - 2, batch_b = b->ndim - inner;
    int32_t batch = batch_a > batch_b ? batch_a : batch_b;
    int32_t joined = inner == 1 || left ? b->ndim - inner : b->ndim - 1;

    if (b->shape[joined] != a->shape[a->ndim - 1])
        return not_matching(a, b,
                            inner == 1 ? "a [..., n, n] and b [..., n]"
                            : left     ? "a [..., n, n] and b [..., n, k]"
                                       : "a [..., n, n] and b [..., k, n]");
    meta->dtype = tn_view_dtype(a);
    meta->ndim = batch + inner;
    for (int32_t d = 0; d < batch; d++) {
        int32_t at_a = d - (batch - batch_a), at_b = d - (batch - batch_b);
        int64_t size_a = at_a >= 0 ? a->shape[at_a] : 1, size_b = at_b >= 0 ? b->shape[at_b] : 1;

        if (size_a != size_b && size_a != 1 && size_b != 1)
            return not_matching(a, b, "batch dimensions that broadcast");
        meta->shape[d] = size_a == 1 ? size_b : size_a;
    }
    for (int32_t d = 0; d < inner; d++)
        meta->shape[batch + d] = b->shape[batch_b + d];
    return TN_OK;
}

static tn_status linalg_solve_infer(tn_infer *infer)
{
    const tn_linalg_solve_options *o = infer->options;
    const tn_view *a = infer->in[0], *b = infer->in[1];
    tn_status status = tn__common_same_dtype(a, "a", b, "b");
    bool vector;

    if (status == TN_OK)
        status = is_square(a, "a");
    if (status == TN_OK && b->ndim == 0)
        status = not_matching(a, b, "b with at least 1 dimension");
    if (status != TN_OK)
        return status;
    vector = is_vector(tn__common_shape(a), tn__common_shape(b));
    if (vector && !o->left)
        return tn_fail(TN_ERR_RUNTIME,
                       "left: must be True if b is a vector, got False with b of %d dimensions",
                       (int)b->ndim);
    return solution(a, b, vector ? 1 : 2, o->left, &infer->out[0]);
}

/* b's gradient is the solution with a^H; a's gradient is -gb y^H, or -y^H gb for y a = b. */
static tn_status linalg_solve_derive(tn_derive *d)
{
    const tn_linalg_solve_options *o = d->options;
    tn_ints shape_a = tn__common_in_shape(d, 0), shape_b = tn__common_in_shape(d, 1);
    bool vector = is_vector(shape_a, shape_b);
    tn_tensor *y = vector ? tn_unsqueeze(d->out[0], -1) : d->out[0];
    tn_tensor *gy = vector ? tn_unsqueeze(d->gout[0], -1) : d->gout[0];
    tn_tensor *gb = tn_linalg_solve(adjoint(d->in[0]), gy, o->left);

    if (tn__needs(d, 1)) {
        int64_t last = -1;

        d->gin[1] = tn_sum_to(vector ? tn_squeeze(gb, TN_INTS(last)) : gb, shape_b);
    }
    if (tn__needs(d, 0))
        d->gin[0] = tn_sum_to(
            tn_neg(o->left ? tn_matmul(gb, adjoint(y)) : tn_matmul(adjoint(y), gb)), shape_a);
    return TN_OK;
}

/* ---- inverse --------------------------------------------------------------------------------- */

static tn_status linalg_inv_derive(tn_derive *d)
{
    tn_tensor *yh = adjoint(d->out[0]);

    d->gin[0] = tn_neg(tn_matmul(yh, tn_matmul(d->gout[0], yh)));
    return TN_OK;
}

/* ---- determinants ---------------------------------------------------------------------------- */

static tn_status linalg_det_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];
    tn_status status = is_square(x, "x");

    if (status == TN_OK)
        tn__common_plain(&infer->out[0], tn_view_dtype(x), (tn_ints){ x->shape, x->ndim - 2 });
    return status;
}

/* x[..., None, None] */
static tn_tensor *as_matrices(tn_tensor *x)
{
    return tn_unsqueeze(tn_unsqueeze(x, -1), -1);
}

/* For each element of s along the last dimension, the product of all others. */
static tn_tensor *products_of_others(tn_tensor *s)
{
    int64_t last[1] = { -1 }, k;
    tn_ints dims = { last, 1 };
    tn_tensor *one, *before, *after;

    if (s == NULL)
        return NULL;
    k = tn_tensor_size(s, -1);
    one = tn_fill(tn_narrow(s, -1, 0, 1), 1.0);
    before = tn_cat((tn_tensor *[]){ one, tn_narrow(s, -1, 0, k - 1) }, 2, -1);
    after = tn_cat((tn_tensor *[]){ one, tn_flip(tn_narrow(s, -1, 1, k - 1), dims) }, 2, -1);
    return tn_mul(tn_cumprod(before, -1), tn_flip(tn_cumprod(after, -1), dims));
}

/* The adjoint of the adjugate of x, which is conj(det x) x^-H if x has an inverse, by the singular
 * value decomposition: det(u) det(vh) conjugated, times u diag(products of the other s) vh. */
static tn_tensor *cofactors(tn_tensor *x)
{
    tn_tensor *u, *s, *vh, *others, *turn;

    if (tn_linalg_svd(x, &u, &s, &vh) != TN_OK)
        return NULL;
    others = tn_cast(tn_unsqueeze(products_of_others(s), -2), tn_tensor_dtype(u));
    turn = tn__common_conj(tn_mul(tn_linalg_det(u), tn_linalg_det(vh)));
    return tn_mul(as_matrices(turn), tn_matmul(tn_mul(u, others), vh));
}

/* Sets *any to whether an element of x is 0. */
static tn_status any_zero(tn_tensor *x, bool *any)
{
    tn_tensor *found = tn_any(tn_eq(x, number(x, 0.0)));
    tn_scalar value;
    tn_status status = found == NULL ? tn_error_last_code() : tn_tensor_scalar(found, &value);

    *any = status == TN_OK && tn_scalar_as_int(value) != 0;
    return status;
}

static tn_status linalg_det_derive(tn_derive *d)
{
    tn_tensor *x = d->in[0], *y = d->out[0], *gradient;
    bool singular;
    tn_status status;

    if (tn_tensor_numel(x) == 0) {
        d->gin[0] = tn__common_zeros(x, tn__common_in_shape(d, 0));
        return TN_OK;
    }
    status = any_zero(y, &singular);
    if (status != TN_OK)
        return status;
    gradient = singular ? cofactors(x)
                        : tn_mul(as_matrices(tn__common_conj(y)), adjoint(tn_linalg_inv(x)));
    d->gin[0] = tn_mul(as_matrices(d->gout[0]), gradient);
    return TN_OK;
}

static tn_status linalg_slogdet_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];
    tn_ints batch = { x->shape, x->ndim - 2 };
    tn_status status = is_square(x, "x");

    if (status != TN_OK)
        return status;
    tn__common_plain(&infer->out[0], tn_view_dtype(x), batch);
    tn__common_plain(&infer->out[1], tn__common_part(tn_view_dtype(x)), batch);
    return TN_OK;
}

/* The gradient of logabsdet is x^-H. The sign of real numbers is constant in steps; for complex
 * numbers, sign = exp(i phi), where x^-H is also the gradient of log det = logabsdet + i phi. */
static tn_status linalg_slogdet_derive(tn_derive *d)
{
    tn_tensor *g = d->gout[1], *x = d->in[0], *sign = d->out[0];
    tn_dtype dtype = d->in_meta[0].dtype;

    if (g != TN_NONE)
        g = tn_cast(g, dtype);
    if (tn__is_complex(dtype) && d->gout[0] != TN_NONE) {
        /* adds i Im(conj(sign) gsign), the part of gsign along the unit circle */
        tn_tensor *along = tn_imag(tn_mul(tn__common_conj(sign), d->gout[0]));
        tn_tensor *turned = tn_complex(tn_sub(along, along), along);

        g = sum_if(g, turned);
    }
    if (g == TN_NONE)
        d->gin[0] = tn__common_zeros(x, tn__common_in_shape(d, 0));
    else
        d->gin[0] = tn_mul(as_matrices(g), adjoint(tn_linalg_inv(x)));
    return TN_OK;
}

/* ---- triangular systems ---------------------------------------------------------------------- */

static tn_status linalg_solve_triangular_infer(tn_infer *infer)
{
    const tn_linalg_solve_triangular_options *o = infer->options;
    const tn_view *a = infer->in[0], *b = infer->in[1];
    tn_status status = tn__common_same_dtype(a, "a", b, "b");

    if (status == TN_OK)
        status = is_square(a, "a");
    if (status == TN_OK)
        status = is_matrix(b, "b");
    return status == TN_OK ? solution(a, b, 2, o->left, &infer->out[0]) : status;
}

/* As for solve; a's gradient has only the elements that are read. */
static tn_status linalg_solve_triangular_derive(tn_derive *d)
{
    const tn_linalg_solve_triangular_options *o = d->options;
    tn_linalg_solve_triangular_options other = *o;
    tn_tensor *y = d->out[0], *gb, *ga;

    other.upper = !o->upper;
    gb = tn_linalg_solve_triangular(adjoint(d->in[0]), d->gout[0], !o->upper, other.left,
                                    other.unitriangular);
    if (tn__needs(d, 1))
        d->gin[1] = tn_sum_to(gb, tn__common_in_shape(d, 1));
    if (!tn__needs(d, 0))
        return TN_OK;
    ga = tn_neg(o->left ? tn_matmul(gb, adjoint(y)) : tn_matmul(adjoint(y), gb));
    if (o->unitriangular)
        ga = o->upper ? above_diagonal(ga) : below_diagonal(ga);
    else
        ga = o->upper ? tn_triu(ga) : tn_tril(ga);
    d->gin[0] = tn_sum_to(ga, tn__common_in_shape(d, 0));
    return TN_OK;
}

TN__OP(linalg_cholesky, .infer = infer_square, .derive = linalg_cholesky_derive);
TN__OP(linalg_solve, .infer = linalg_solve_infer, .derive = linalg_solve_derive);
TN__OP(linalg_inv, .infer = infer_square, .derive = linalg_inv_derive);
TN__OP(linalg_det, .infer = linalg_det_infer, .derive = linalg_det_derive);
TN__OP(linalg_slogdet, .infer = linalg_slogdet_infer, .derive = linalg_slogdet_derive);
TN__OP(linalg_solve_triangular, .infer = linalg_solve_triangular_infer,
       .derive = linalg_solve_triangular_derive);

/* SPDX-License-Identifier: MIT
 *
 * Products of matrices and vectors. A device needs a kernel for bmm only: all other products can be
 * decomposed into it. */
#include "matmul.h"

static tn_status shapes_differ(const tn_view *a, const tn_view *b, const char *rule)
{
    char text_a[TN__TEXT], text_b[TN__TEXT];

    return tn_fail(TN_ERR_RUNTIME, "shapes cannot be multiplied (%s and %s): %s",
                   tn__common_text(text_a, tn__common_shape(a)),
                   tn__common_text(text_b, tn__common_shape(b)), rule);
}

static tn_status bmm_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *b = infer->in[1];
    tn_meta *meta = &infer->out[0];
    tn_status status = tn__matmul_same_dtype(a, b);

    if (status != TN_OK)
        return status;
    if (a->ndim != 3 || b->ndim != 3 || a->shape[0] != b->shape[0] || a->shape[2] != b->shape[1])
        return shapes_differ(a, b, "expected [B, M, K] and [B, K, N]");
    meta->dtype = tn_view_dtype(a);
    meta->ndim = 3;
    meta->shape[0] = a->shape[0];
    meta->shape[1] = a->shape[1];
    meta->shape[2] = b->shape[2];
    return TN_OK;
}

/* Whether a tensor is the transposition of the last two dimensions of a contiguous one, and is not
 * contiguous itself. */
static bool is_turned(tn_tensor *x)
{
    const tn_view *v = tn_tensor_view(x);
    int32_t last = v->ndim - 1;
    int64_t next;

    if (last < 1 || v->shape[last] < 2 || v->shape[last - 1] < 2 || v->strides[last - 1] != 1 ||
        v->strides[last] != v->shape[last - 1])
        return false;
    next = tn__common_times(v->shape[last], v->shape[last - 1]);
    for (int32_t d = last - 1; d-- > 0; next = tn__common_times(next, v->shape[d]))
        if (v->shape[d] != 1 && v->strides[d] != next)
            return false;
    return true;
}

tn_tensor *tn__matmul_like(tn_tensor *like, tn_tensor *a, tn_tensor *b)
{
    tn_tensor *y;

    if (a == NULL || b == NULL)
        return NULL;
    if (like == NULL || like == TN_NONE || !is_turned(like))
        return tn_matmul(a, b);
    y = tn_matmul(tn_transpose(b, -2, -1), tn_transpose(a, -2, -1));
    return y == NULL ? NULL : tn_transpose(y, -2, -1);
}

static tn_status bmm_derive(tn_derive *d)
{
    if (tn__needs(d, 0))
        d->gin[0] = tn__matmul_like(d->in[0], d->gout[0],
                                    tn_transpose(tn__common_conj(d->in[1]), 1, 2));
    if (tn__needs(d, 1))
        d->gin[1] = tn__matmul_like(d->in[1], tn_transpose(tn__common_conj(d->in[0]), 1, 2),
                                    d->gout[0]);
    return TN_OK;
}

/* The sizes of a matmul: a [batch..., m, k] times b [batch..., k, n]. */
typedef struct product {
    int64_t m, k, n;
    int64_t batch[TN_MAX_DIMS]; /* batch dimensions after broadcasting */
    int32_t n_batch;
    bool a_vector, b_vector;
} product;

static tn_status plan(const tn_view *a, const tn_view *b, product *p)
{
    int32_t batch_a = a->ndim > 2 ? a->ndim - 2 : 0, batch_b = b->ndim > 2 ? b->ndim - 2 : 0;

    if (a->ndim == 0 || b->ndim == 0)
        return shapes_differ(a, b, "expected at least 1 dimension in both");
    p->a_vector = a->ndim == 1;
    p->b_vector = b->ndim == 1;
    p->m = p->a_vector ? 1 : a->shape[a->ndim - 2];
    p->k = a->shape[a->ndim - 1];
    p->n = p->b_vector ? 1 : b->shape[b->ndim - 1];
    if (p->k != b->shape[p->b_vector ? 0 : b->ndim - 2])
        return shapes_differ(
            a, b,
            "expected the last dimension of a to equal the second last of b (the only one of a "
            "vector)");
    p->n_batch = batch_a > batch_b ? batch_a : batch_b;
    for (int32_t d = 0; d < p->n_batch; d++) {
        int32_t at_a = d - (p->n_batch - batch_a), at_b = d - (p->n_batch - batch_b);
        int64_t size_a = at_a >= 0 ? a->shape[at_a] : 1, size_b = at_b >= 0 ? b->shape[at_b] : 1;

        if (size_a != size_b && size_a != 1 && size_b != 1)
            return shapes_differ(a, b, "expected batch dimensions that broadcast");
        p->batch[d] = size_a == 1 ? size_b : size_a;
    }
    return TN_OK;
}

static tn_ints result_shape(const product *p, int64_t *shape)
{
    int64_t count = 0;

    for (int32_t d = 0; d < p->n_batch; d++)
        shape[count++] = p->batch[d];
    if (!p->a_vector)
        shape[count++] = p->m;
    if (!p->b_vector)
        shape[count++] = p->n;
    return (tn_ints){ shape, count };
}

static tn_status matmul_infer(tn_infer *infer)
{
    int64_t shape[TN_MAX_DIMS + 2];
    product p;
    tn_status status = tn__matmul_same_dtype(infer->in[0], infer->in[1]);

    if (status == TN_OK)
        status = plan(infer->in[0], infer->in[1], &p);
    if (status == TN_OK)
        tn__common_plain(&infer->out[0], tn_view_dtype(infer->in[0]), result_shape(&p, shape));
    return status;
}

/* Returns a factor as [batch, rows, columns]. Broadcast batch dimensions stay views with stride 0
 * if the strides allow it. */
static tn_tensor *as_batch(tn_tensor *x, const product *p, int64_t batch, int64_t rows,
                           int64_t columns)
{
    int64_t shape[TN_MAX_DIMS + 2];

    for (int32_t d = 0; d < p->n_batch; d++)
        shape[d] = p->batch[d];
    shape[p->n_batch] = rows;
    shape[p->n_batch + 1] = columns;
    if (tn_tensor_ndim(x) == 1)
        x = tn_reshape(x, TN_SHAPE(rows, columns));
    if (p->n_batch > 0)
        x = tn_expand(x, (tn_ints){ shape, p->n_batch + 2 });
    return tn_reshape(x, TN_SHAPE(batch, rows, columns));
}

static tn_status matmul_decompose(const tn_decompose *call)
{
    int64_t shape[TN_MAX_DIMS + 2], batch;
    tn_tensor *y;
    product p;
    tn_status status = plan(tn_tensor_view(call->in[0]), tn_tensor_view(call->in[1]), &p);
    if (status != TN_OK)
        return status;
    batch = tn__common_count((tn_ints){ p.batch, p.n_batch });
    if (tn_tensor_ndim(call->in[0]) > 2 &&
        tn_tensor_ndim(call->in[1]) <= 2) /* multiplies all of a as one tall matrix */
        y = tn_bmm(tn_reshape(call->in[0], TN_SHAPE(1, tn__common_times(batch, p.m), p.k)),
                   tn_reshape(call->in[1], TN_SHAPE(1, p.k, p.n)));
    else
        y = tn_bmm(as_batch(call->in[0], &p, batch, p.m, p.k),
                   as_batch(call->in[1], &p, batch, p.k, p.n));
    return tn__common_given(call->out, tn_reshape(y, result_shape(&p, shape)));
}

static tn_status outer_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *b = infer->in[1];

    if (a->ndim != 1 || b->ndim != 1)
        return tn__matmul_shapes(a, b, "two vectors");
    infer->out[0].dtype = infer->dtype != TN_DTYPE_AUTO ? infer->dtype : tn_view_dtype(a);
    infer->out[0].ndim = 2;
    infer->out[0].shape[0] = a->shape[0];
    infer->out[0].shape[1] = b->shape[0];
    return TN_OK;
}

static tn_status outer_decompose(const tn_decompose *call)
{
    return tn__common_given(call->out, tn_mul(tn_unsqueeze(call->in[0], 1), call->in[1]));
}

static tn_status dot_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *b = infer->in[1];

    if (a->ndim != 1 || b->ndim != 1 || a->shape[0] != b->shape[0])
        return tn__matmul_shapes(a, b, "two vectors of the same length");
    tn__common_plain(&infer->out[0], tn_view_dtype(a), (tn_ints){ NULL, 0 });
    return tn__matmul_all_same_dtype(infer);
}

static tn_status by_matmul_decompose(const tn_decompose *call)
{
    return tn__common_given(call->out, tn_matmul(call->in[0], call->in[1]));
}

static tn_status mv_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *x = infer->in[1];

    if (a->ndim != 2 || x->ndim != 1 || a->shape[1] != x->shape[0])
        return tn__matmul_shapes(a, x, "[M, K] and [K]");
    tn__common_plain(&infer->out[0], tn_view_dtype(a), (tn_ints){ a->shape, 1 });
    return tn__matmul_all_same_dtype(infer);
}

static tn_status factor_check(tn_dtype dtype, tn_scalar factor, const char *name)
{
    char text[TN__SCALAR_TEXT];

    if (tn__is_int(dtype) && factor.kind == TN_SCALAR_FLOAT && !tn__scalar_whole(factor))
        return tn_fail(TN_ERR_RUNTIME,
                       "%s: not an integer, got %g; expected an integer for integer tensors", name,
                       factor.as.f);
    if (tn__scalar_imaginary(factor) && !tn__is_complex(dtype))
        return tn_fail(TN_ERR_RUNTIME, "%s: not real, got %s; expected a real number for %s", name,
                       tn__scalar_text(text, factor), tn_dtype_name(dtype));
    return tn__scalar_check(factor, name);
}

static tn_status added_infer(tn_infer *infer, int32_t ndim, tn_scalar beta, tn_scalar alpha)
{
    const tn_view *x = infer->in[0], *a = infer->in[1], *b = infer->in[2];
    tn_meta *meta = &infer->out[0];
    tn_status status = tn__matmul_all_same_dtype(infer);
    bool fits = x->ndim <= ndim;
    char text[TN__TEXT], text_y[TN__TEXT];

    if (status != TN_OK)
        return status;
    if (a->ndim != ndim || b->ndim != ndim || a->shape[ndim - 1] != b->shape[ndim - 2] ||
        (ndim == 3 && a->shape[0] != b->shape[0]))
        return tn__matmul_shapes(
            a, b, ndim == 2 ? "a [M, K] and b [K, N]" : "a [B, M, K] and b [B, K, N]");
    if (factor_check(tn_view_dtype(a), beta, "beta") != TN_OK ||
        factor_check(tn_view_dtype(a), alpha, "alpha") != TN_OK)
        return tn_error_last_code();
    tn__common_plain(meta, tn_view_dtype(a), tn__common_shape(a));
    meta->shape[ndim - 1] = b->shape[ndim - 1];
    for (int32_t d = 0; d < x->ndim && fits; d++)
        fits = x->shape[d] == 1 || x->shape[d] == meta->shape[d + ndim - x->ndim];
    return fits ? TN_OK
                : tn_fail(TN_ERR_RUNTIME,
                          "x: wrong shape, got %s; expected one that broadcasts to the product, %s",
                          tn__common_text(text, tn__common_shape(x)),
                          tn__common_text(text_y, (tn_ints){ meta->shape, meta->ndim }));
}

static tn_tensor *added(tn_tensor *x, tn_tensor *y, tn_scalar beta, tn_scalar alpha)
{
    if (y == NULL)
        return NULL;
    alpha = tn__scalar_in(tn_tensor_dtype(y), alpha);
    beta = tn__scalar_in(tn_tensor_dtype(y), beta);
    if (!tn__scalar_is(alpha, 1))
        y = tn_mul_scalar(y, alpha);
    if (tn__scalar_is(beta, 0))
        return y;
    return tn_add(tn__scalar_is(beta, 1) ? x : tn_mul_scalar(x, beta), y);
}

static tn_status addmm_infer(tn_infer *infer)
{
    const tn_addmm_options *o = infer->options;

    return added_infer(infer, 2, o->beta, o->alpha);
}

static tn_status addmm_decompose(const tn_decompose *call)
{
    const tn_addmm_options *o = call->options;
    return tn__common_given(
        call->out, added(call->in[0], tn_matmul(call->in[1], call->in[2]), o->beta, o->alpha));
}

static tn_status baddbmm_infer(tn_infer *infer)
{
    const tn_baddbmm_options *o = infer->options;

    return added_infer(infer, 3, o->beta, o->alpha);
}

static tn_status baddbmm_decompose(const tn_decompose *call)
{
    const tn_baddbmm_options *o = call->options;
    return tn__common_given(
        call->out, added(call->in[0], tn_bmm(call->in[1], call->in[2]), o->beta, o->alpha));
}

TN__OP(bmm, .infer = bmm_infer, .derive = bmm_derive, TN__PARTS(bmm));
TN__OP(matmul, .infer = matmul_infer, .decompose = matmul_decompose);
TN__OP(outer, .infer = outer_infer, .decompose = outer_decompose);
TN__OP(dot, .infer = dot_infer, .decompose = by_matmul_decompose);
TN__OP(mv, .infer = mv_infer, .decompose = by_matmul_decompose);
TN__OP(addmm, .infer = addmm_infer, .decompose = addmm_decompose);
TN__OP(baddbmm, .infer = baddbmm_infer, .decompose = baddbmm_decompose);

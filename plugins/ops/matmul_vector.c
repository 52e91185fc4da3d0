/* SPDX-License-Identifier: MIT
 *
 * Products beside bmm, matmul and linear, by means of those. */
#include "common.h"

static tn_status wrong_shapes(const tn_view *a, const tn_view *b, const char *rule)
{
    char text_a[TN__TEXT], text_b[TN__TEXT];

    return tn_fail(TN_ERR_RUNTIME, "%s; they are %s and %s", rule,
                   tn__common_text(text_a, tn__common_shape(a)),
                   tn__common_text(text_b, tn__common_shape(b)));
}

static tn_status one_dtype(const tn_infer *infer)
{
    for (int64_t i = 1; i < infer->n_in; i++)
        if (infer->in[i] != NULL && tn_view_dtype(infer->in[i]) != tn_view_dtype(infer->in[0]))
            return tn_fail(TN_ERR_RUNTIME,
                           "all have to have the same dtype, but there are %s and %s; tn_cast one",
                           tn_dtype_name(tn_view_dtype(infer->in[0])),
                           tn_dtype_name(tn_view_dtype(infer->in[i])));
    return TN_OK;
}

static tn_status outer_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *b = infer->in[1];

    if (a->ndim != 1 || b->ndim != 1)
        return wrong_shapes(a, b, "two vectors are needed");
    infer->out[0].dtype = infer->dtype != TN_DTYPE_AUTO ? infer->dtype : tn_view_dtype(a);
    infer->out[0].ndim = 2;
    infer->out[0].shape[0] = a->shape[0];
    infer->out[0].shape[1] = b->shape[0];
    return TN_OK;
}

static tn_status outer_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                 tn_tensor **out)
{
    (void)n_in, (void)options;
    return tn__common_given(out, tn_mul(tn_unsqueeze(in[0], 1), in[1]));
}

static tn_status dot_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *b = infer->in[1];

    if (a->ndim != 1 || b->ndim != 1 || a->shape[0] != b->shape[0])
        return wrong_shapes(a, b, "two vectors of the same length are needed");
    tn__common_plain(&infer->out[0], tn_view_dtype(a), (tn_ints){ NULL, 0 });
    return one_dtype(infer);
}

static tn_status matmul_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                  tn_tensor **out)
{
    (void)n_in, (void)options;
    return tn__common_given(out, tn_matmul(in[0], in[1]));
}

static tn_status mv_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *x = infer->in[1];

    if (a->ndim != 2 || x->ndim != 1 || a->shape[1] != x->shape[0])
        return wrong_shapes(a, x, "[M, K] and [K] are needed");
    tn__common_plain(&infer->out[0], tn_view_dtype(a), (tn_ints){ a->shape, 1 });
    return one_dtype(infer);
}

/* ---- a product and more ---- */

static tn_status added_infer(tn_infer *infer, int32_t ndim, double beta, double alpha)
{
    const tn_view *x = infer->in[0], *a = infer->in[1], *b = infer->in[2];
    tn_meta *meta = &infer->out[0];
    tn_status status = one_dtype(infer);
    bool fits = a->ndim == ndim && b->ndim == ndim && x->ndim <= ndim;

    if (status != TN_OK)
        return status;
    if (!fits || a->shape[ndim - 1] != b->shape[ndim - 2] ||
        (ndim == 3 && a->shape[0] != b->shape[0]))
        return wrong_shapes(a, b,
                            ndim == 2 ? "a [M, K] and b [K, N] are needed"
                                      : "a [B, M, K] and b [B, K, N] are needed");
    if ((TN_MASK_INT & TN_BIT(tn_view_dtype(a))) && (beta != floor(beta) || alpha != floor(alpha)))
        return tn_fail(TN_ERR_RUNTIME,
                       "beta %g and alpha %g have to be whole numbers for integer tensors", beta,
                       alpha);
    tn__common_plain(meta, tn_view_dtype(a), tn__common_shape(a));
    meta->shape[ndim - 1] = b->shape[ndim - 1];
    for (int32_t d = 0; d < x->ndim; d++)
        fits &= x->shape[d] == 1 || x->shape[d] == meta->shape[d + ndim - x->ndim];
    return fits ? TN_OK : wrong_shapes(x, a, "x has to broadcast to the product's shape");
}

static tn_tensor *added(tn_tensor *x, tn_tensor *product, double beta, double alpha)
{
    if (product == NULL)
        return NULL;
    if (alpha != 1.0)
        product = tn_mul_scalar(product, alpha);
    if (beta == 0.0)
        return product;
    return tn_add(beta == 1.0 ? x : tn_mul_scalar(x, beta), product, NULL);
}

static tn_status addmm_infer(tn_infer *infer)
{
    const tn_addmm_options *o = infer->options;

    return added_infer(infer, 2, o->beta, o->alpha);
}

static tn_status addmm_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                 tn_tensor **out)
{
    const tn_addmm_options *o = options;

    (void)n_in;
    return tn__common_given(out, added(in[0], tn_matmul(in[1], in[2]), o->beta, o->alpha));
}

static tn_status baddbmm_infer(tn_infer *infer)
{
    const tn_baddbmm_options *o = infer->options;

    return added_infer(infer, 3, o->beta, o->alpha);
}

static tn_status baddbmm_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                   tn_tensor **out)
{
    const tn_baddbmm_options *o = options;

    (void)n_in;
    return tn__common_given(out, added(in[0], tn_bmm(in[1], in[2]), o->beta, o->alpha));
}

static tn_status bilinear_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *b = infer->in[1], *w = infer->in[2], *bias = infer->in[3];
    tn_meta *meta = &infer->out[0];
    bool fits = a->ndim == b->ndim && a->ndim > 0;

    for (int32_t d = 0; fits && d + 1 < a->ndim; d++)
        fits = a->shape[d] == b->shape[d];
    if (!fits)
        return wrong_shapes(a, b, "a and b have to be alike but for the last dimension");
    if (w->ndim != 3 || w->shape[1] != a->shape[a->ndim - 1] ||
        w->shape[2] != b->shape[b->ndim - 1])
        return wrong_shapes(a, w, "weight has to be [out, last of a, last of b]");
    if (bias != NULL && (bias->ndim != 1 || bias->shape[0] != w->shape[0]))
        return wrong_shapes(w, bias, "bias has to be [out]");
    tn__common_plain(meta, tn_view_dtype(a), tn__common_shape(a));
    meta->shape[a->ndim - 1] = w->shape[0];
    return one_dtype(infer);
}

/* [1, N, i] . [o, i, j] = [o, N, j]; times b [N, j], summed over j: [o, N], transposed. */
static tn_status bilinear_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                    tn_tensor **out)
{
    int64_t last[1] = { -1 }, rows[2], shape[TN_MAX_DIMS], n = 1;
    int32_t ndim = tn_tensor_ndim(in[0]);
    tn_sum_options sum = TN_SUM_OPTIONS;
    tn_tensor *a, *b, *y;

    (void)n_in, (void)options;
    for (int32_t d = 0; d + 1 < ndim; d++)
        n *= shape[d] = tn_tensor_size(in[0], d);
    shape[ndim - 1] = tn_tensor_size(in[2], 0);
    rows[0] = n;
    rows[1] = tn_tensor_size(in[0], -1);
    a = tn_reshape(in[0], (tn_ints){ rows, 2 });
    rows[1] = tn_tensor_size(in[1], -1);
    b = tn_reshape(in[1], (tn_ints){ rows, 2 });
    sum.dims = (tn_ints){ last, 1 };
    y = tn_transpose(tn_sum(tn_mul(tn_matmul(a, in[2]), b), &sum), 0, 1);
    if (in[3] != TN_NONE)
        y = tn_add(y, in[3], NULL);
    return tn__common_given(out, tn_reshape(y, (tn_ints){ shape, ndim }));
}

#define COMPOSED(name, NAME, infer_, decompose_)                                                   \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME, .infer = infer_,       \
                                      .decompose = decompose_ };
COMPOSED(outer, OUTER, outer_infer, outer_decompose)
COMPOSED(dot, DOT, dot_infer, matmul_decompose)
COMPOSED(mv, MV, mv_infer, matmul_decompose)
COMPOSED(addmm, ADDMM, addmm_infer, addmm_decompose)
COMPOSED(baddbmm, BADDBMM, baddbmm_infer, baddbmm_decompose)
COMPOSED(bilinear, BILINEAR, bilinear_infer, bilinear_decompose)

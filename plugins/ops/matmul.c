/* SPDX-License-Identifier: MIT
 *
 * Products of matrices. bmm is what a device has; matmul and linear come down to it. */
#include "common.h"

static tn_status given(tn_tensor **out, tn_tensor *result)
{
    out[0] = result;
    return result != NULL ? TN_OK : tn_error_last()->code;
}

static tn_status one_dtype(const tn_view *a, const tn_view *b)
{
    if (tn_view_dtype(a) == tn_view_dtype(b))
        return TN_OK;
    return tn_fail(
        TN_ERR_RUNTIME,
        "expected m1 and m2 to have the same dtype, but got: %s != %s; tn_cast one of them",
        tn_dtype_name(tn_view_dtype(a)), tn_dtype_name(tn_view_dtype(b)));
}

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
    tn_status status = one_dtype(a, b);

    if (status != TN_OK)
        return status;
    if (a->ndim != 3 || b->ndim != 3 || a->shape[0] != b->shape[0] || a->shape[2] != b->shape[1])
        return shapes_differ(a, b, "[B, M, K] and [B, K, N] are");
    meta->dtype = tn_view_dtype(a);
    meta->ndim = 3;
    meta->shape[0] = a->shape[0];
    meta->shape[1] = a->shape[1];
    meta->shape[2] = b->shape[2];
    return TN_OK;
}

static tn_status bmm_derive(tn_derive *d)
{
    if (tn__needs(d, 0))
        d->gin[0] = tn_bmm(d->gout[0], tn_transpose(tn__common_conj(d->in[1]), 1, 2));
    if (tn__needs(d, 1))
        d->gin[1] = tn_bmm(tn_transpose(tn__common_conj(d->in[0]), 1, 2), d->gout[0]);
    return TN_OK;
}

/* How a matmul is laid out: a [batch..., m, k], b [batch..., k, n]. */
typedef struct product {
    int64_t m, k, n;
    int64_t batch[TN_MAX_DIMS]; /* broadcast */
    int32_t n_batch;
    bool a_vector, b_vector;
} product;

static tn_status plan(const tn_view *a, const tn_view *b, product *p)
{
    int32_t batch_a = a->ndim > 2 ? a->ndim - 2 : 0, batch_b = b->ndim > 2 ? b->ndim - 2 : 0;

    if (a->ndim == 0 || b->ndim == 0)
        return shapes_differ(a, b, "both arguments need to be at least 1-d");
    p->a_vector = a->ndim == 1;
    p->b_vector = b->ndim == 1;
    p->m = p->a_vector ? 1 : a->shape[a->ndim - 2];
    p->k = a->shape[a->ndim - 1];
    p->n = p->b_vector ? 1 : b->shape[b->ndim - 1];
    if (p->k != b->shape[p->b_vector ? 0 : b->ndim - 2])
        return shapes_differ(
            a, b,
            "the last dimension of a has to be the last but one of b (its only one, for a vector)");
    p->n_batch = batch_a > batch_b ? batch_a : batch_b;
    for (int32_t d = 0; d < p->n_batch; d++) {
        int32_t at_a = d - (p->n_batch - batch_a), at_b = d - (p->n_batch - batch_b);
        int64_t size_a = at_a >= 0 ? a->shape[at_a] : 1, size_b = at_b >= 0 ? b->shape[at_b] : 1;

        if (size_a != size_b && size_a != 1 && size_b != 1)
            return shapes_differ(a, b, "their batch dimensions do not broadcast");
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
    tn_status status = one_dtype(infer->in[0], infer->in[1]);

    if (status == TN_OK)
        status = plan(infer->in[0], infer->in[1], &p);
    if (status == TN_OK)
        tn__common_plain(&infer->out[0], tn_view_dtype(infer->in[0]), result_shape(&p, shape));
    return status;
}

/* [batch, rows, columns] of a factor; broadcast batches are views with stride 0 where the strides
 * allow. */
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

static tn_status matmul_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                  tn_tensor **out)
{
    int64_t shape[TN_MAX_DIMS + 2], batch;
    tn_tensor *y;
    product p;
    tn_status status = plan(tn_tensor_view(in[0]), tn_tensor_view(in[1]), &p);

    (void)n_in;
    (void)options;
    if (status != TN_OK)
        return status;
    batch = tn__common_count((tn_ints){ p.batch, p.n_batch });
    if (tn_tensor_ndim(in[0]) > 2 &&
        tn_tensor_ndim(in[1]) <= 2) /* one tall matrix instead of many */
        y = tn_bmm(tn_reshape(in[0], TN_SHAPE(1, batch * p.m, p.k)),
                   tn_reshape(in[1], TN_SHAPE(1, p.k, p.n)));
    else
        y = tn_bmm(as_batch(in[0], &p, batch, p.m, p.k), as_batch(in[1], &p, batch, p.k, p.n));
    return given(out, tn_reshape(y, result_shape(&p, shape)));
}

static tn_status linear_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0], *w = infer->in[1], *b = infer->in[2];
    tn_meta *meta = &infer->out[0];
    char text[TN__TEXT], text_w[TN__TEXT];
    tn_status status = one_dtype(x, w);

    if (status != TN_OK)
        return status;
    if (w->ndim != 2 || x->ndim < 1 || x->shape[x->ndim - 1] != w->shape[1])
        return tn_fail(TN_ERR_RUNTIME,
                       "x %s and weight %s cannot be multiplied: x is [..., in], weight [out, in]",
                       tn__common_text(text, tn__common_shape(x)),
                       tn__common_text(text_w, tn__common_shape(w)));
    if (b != NULL) {
        status = one_dtype(x, b);
        if (status != TN_OK)
            return status;
        if (b->ndim != 1 || b->shape[0] != w->shape[0])
            return tn_fail(TN_ERR_RUNTIME, "bias %s does not fit weight %s: it has to be [out]",
                           tn__common_text(text, tn__common_shape(b)),
                           tn__common_text(text_w, tn__common_shape(w)));
    }
    tn__common_plain(meta, tn_view_dtype(x), tn__common_shape(x));
    meta->shape[x->ndim - 1] = w->shape[0];
    return TN_OK;
}

static tn_status linear_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                  tn_tensor **out)
{
    tn_tensor *y = tn_matmul(in[0], tn_transpose(in[1], 0, 1));

    (void)n_in;
    (void)options;
    return given(out, in[2] != TN_NONE ? tn_add(y, in[2], NULL) : y);
}

/* gx = gz . w; gw = gz^T . x over all rows; gb = gz summed over them */
static void linear_back(tn_derive *d, tn_tensor *gz)
{
    const tn_meta *x = &d->in_meta[0], *w = &d->in_meta[1];
    int64_t features = x->shape[x->ndim - 1], outs = w->shape[0], rows = 1;

    for (int32_t i = 0; i < x->ndim - 1; i++)
        rows *= x->shape[i];
    if (tn__needs(d, 0))
        d->gin[0] = tn_matmul(gz, tn__common_conj(d->in[1]));
    if (tn__needs(d, 1))
        d->gin[1] = tn_matmul(tn_transpose(tn_reshape(gz, TN_SHAPE(rows, outs)), 0, 1),
                              tn__common_conj(tn_reshape(d->in[0], TN_SHAPE(rows, features))));
    if (tn__needs(d, 2))
        d->gin[2] = tn_sum_to(gz, TN_SHAPE(outs));
}

static tn_status linear_derive(tn_derive *d)
{
    linear_back(d, d->gout[0]);
    return TN_OK;
}

/* ---- linear and what follows it ---- */

/* How an activation is computed, and its derivative from the result or from what went in. */
static const struct follower {
    const char *name;
    bool by_result;
} followers[] = {
    { "none", true },       { "relu", true },  { "gelu", false },
    { "gelu_tanh", false }, { "silu", false },
};
enum { NONE, RELU, GELU, GELU_TANH, SILU, FOLLOWERS };

static int follower_of(const char *name)
{
    int i = 0;

    while (i < FOLLOWERS && (name == NULL || strcmp(name, followers[i].name) != 0))
        i++;
    return i;
}

static tn_tensor *follow(int which, tn_tensor *z)
{
    tn_gelu_options tanh = TN_GELU_OPTIONS;

    tanh.approximate = "tanh";
    switch (which) {
    case RELU: return tn_relu(z);
    case GELU: return tn_gelu(z, NULL);
    case GELU_TANH: return tn_gelu(z, &tanh);
    case SILU: return tn_silu(z);
    default: return z;
    }
}

/* `seen` is the result or what went in, as the activation wants it. */
static tn_tensor *follow_back(int which, tn_tensor *gy, tn_tensor *seen)
{
    switch (which) {
    case RELU: return tn_relu_grad(gy, seen);
    case GELU: return tn_gelu_grad(gy, seen, "none");
    case GELU_TANH: return tn_gelu_grad(gy, seen, "tanh");
    case SILU: return tn_silu_grad(gy, seen);
    default: return gy;
    }
}

/* Whether `before` is there: the derivative needs what went into the activation, or its result is hidden in the sum. */
static bool keeps_before(int which, bool residual)
{
    return !followers[which].by_result || (which != NONE && residual);
}

static tn_status linear_activation_infer(tn_infer *infer)
{
    const tn_linear_activation_options *o = infer->options;
    const tn_view *residual = infer->in[3];
    int which = follower_of(o->activation);
    tn_meta *y = &infer->out[0];
    char text[TN__TEXT], text_y[TN__TEXT];
    tn_status status;
    bool fits;

    if (which == FOLLOWERS)
        return tn_fail(TN_ERR_VALUE,
                       "activation is %q; expected none, relu, gelu, gelu_tanh or silu",
                       o->activation != NULL ? o->activation : "None");
    status = linear_infer(infer);
    if (status == TN_OK && residual != NULL)
        status = one_dtype(infer->in[0], residual);
    if (status != TN_OK)
        return status;
    fits = residual == NULL || residual->ndim == y->ndim;
    for (int32_t d = 0; fits && residual != NULL && d < y->ndim; d++)
        fits = residual->shape[d] == y->shape[d];
    if (!fits)
        return tn_fail(TN_ERR_RUNTIME, "residual %s has to have the shape of the result, %s",
                       tn__common_text(text, tn__common_shape(residual)),
                       tn__common_text(text_y, (tn_ints){ y->shape, y->ndim }));
    if (keeps_before(which, residual != NULL))
        tn__common_plain(&infer->out[1], y->dtype, (tn_ints){ y->shape, y->ndim });
    else
        tn__common_plain(&infer->out[1], y->dtype, TN_SHAPE(0));
    return TN_OK;
}

static tn_status linear_activation_decompose(tn_tensor *const *in, int64_t n_in,
                                             const void *options, tn_tensor **out)
{
    int which = follower_of(((const tn_linear_activation_options *)options)->activation);
    bool residual = in[3] != TN_NONE;
    tn_tensor *z = tn_linear(in[0], in[1], in[2]), *y = z == NULL ? NULL : follow(which, z);

    (void)n_in;
    if (y != NULL && residual)
        y = tn_add(y, in[3], NULL);
    if (y == NULL)
        return tn_error_last()->code;
    out[1] = keeps_before(which, residual) ? z : tn__common_zeros(z, TN_SHAPE(0));
    out[0] = y;
    return out[1] != NULL ? TN_OK : tn_error_last()->code;
}

static tn_status linear_activation_derive(tn_derive *d)
{
    int which = follower_of(((const tn_linear_activation_options *)d->options)->activation);
    bool kept = keeps_before(which, d->in_meta[3].ndim >= 0);
    tn_tensor *gz = TN_NONE;

    for (int i = 0; i < 4; i++)
        if (tn__needs(d, i))
            d->gin[i] = TN_NONE;
    if (d->gout[0] != TN_NONE && (d->need & 7))
        gz = follow_back(which, d->gout[0], d->out[kept ? 1 : 0]);
    if (kept && d->gout[1] != TN_NONE)
        gz = gz == TN_NONE ? d->gout[1] : tn_add(gz, d->gout[1], NULL);
    if (gz != TN_NONE && gz != NULL && (d->need & 7))
        linear_back(d, gz);
    if (tn__needs(d, 3))
        d->gin[3] = d->gout[0];
    return gz != NULL ? TN_OK : tn_error_last()->code;
}

const tn_op_def tn__op_bmm = { TN_HEAD(tn_op_def), TN_SCHEMA_BMM, .infer = bmm_infer,
                               .derive = bmm_derive, TN__PARTS(bmm) };
const tn_op_def tn__op_matmul = { TN_HEAD(tn_op_def), TN_SCHEMA_MATMUL, .infer = matmul_infer,
                                  .decompose = matmul_decompose };
const tn_op_def tn__op_linear = { TN_HEAD(tn_op_def), TN_SCHEMA_LINEAR, .infer = linear_infer,
                                  .derive = linear_derive, .decompose = linear_decompose };
const tn_op_def tn__op_linear_activation = { TN_HEAD(tn_op_def), TN_SCHEMA_LINEAR_ACTIVATION,
                                             .infer = linear_activation_infer,
                                             .derive = linear_activation_derive,
                                             .decompose = linear_activation_decompose };

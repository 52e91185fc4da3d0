/* SPDX-License-Identifier: MIT
 *
 * Products with weights of layers: linear, linear_activation, bilinear. */
#include "matmul.h"

/* `row`: the weight may be a single row without a dimension for it, [in]. */
static tn_status shapes_infer(tn_infer *infer, bool row)
{
    const tn_view *x = infer->in[0], *w = infer->in[1], *b = infer->in[2];
    tn_meta *meta = &infer->out[0];
    char text[TN__TEXT], text_w[TN__TEXT];
    tn_status status = tn__matmul_same_dtype(x, w);

    if (status != TN_OK)
        return status;
    if ((w->ndim != 2 && (w->ndim != 1 || !row)) || x->ndim < 1 ||
        x->shape[x->ndim - 1] != w->shape[w->ndim - 1])
        return tn_fail(
            TN_ERR_RUNTIME,
            "x or weight: wrong shape, got %s and %s; expected [..., in] and [out, in]%s",
            tn__common_text(text, tn__common_shape(x)),
            tn__common_text(text_w, tn__common_shape(w)), row ? " or [in]" : "");
    if (b != NULL) {
        status = tn__common_same_dtype(x, "x", b, "bias");
        if (status != TN_OK)
            return status;
        if (b->ndim != w->ndim - 1 || (b->ndim == 1 && b->shape[0] != w->shape[0]))
            return tn_fail(TN_ERR_RUNTIME, "bias: wrong shape, got %s with weight %s; expected %s",
                           tn__common_text(text, tn__common_shape(b)),
                           tn__common_text(text_w, tn__common_shape(w)),
                           w->ndim == 2 ? "[out]" : "no dimensions");
    }
    tn__common_plain(meta, tn_view_dtype(x), tn__common_shape(x));
    if (w->ndim == 2)
        meta->shape[x->ndim - 1] = w->shape[0];
    else
        meta->ndim--;
    return TN_OK;
}

static tn_status linear_infer(tn_infer *infer)
{
    return shapes_infer(infer, true);
}

static tn_status linear_decompose(const tn_decompose *call)
{
    tn_tensor *w = call->in[1];
    tn_tensor *y = tn_matmul(call->in[0], tn_tensor_ndim(w) == 1 ? w : tn_transpose(w, 0, 1));
    return tn__common_given(call->out, call->in[2] != TN_NONE ? tn_add(y, call->in[2]) : y);
}

/* Returns x, of any shape, as a matrix with its last dimension. */
static tn_tensor *as_rows(tn_tensor *x, int64_t rows, int64_t columns)
{
    return x == NULL || tn_tensor_ndim(x) == 2 ? x : tn_reshape(x, TN_SHAPE(rows, columns));
}

/* With gz the gradient of x w^T + b: gx = gz . w; gw = gz^T . x over all rows; gb = gz summed over
 * all rows. */
static void linear_back(tn_derive *d, tn_tensor *gz)
{
    const tn_meta *x = &d->in_meta[0], *w = &d->in_meta[1];
    int64_t features = x->shape[x->ndim - 1], outs = w->shape[0], rows = 1;

    for (int32_t i = 0; i < x->ndim - 1; i++)
        rows = tn__common_times(rows, x->shape[i]);
    if (tn__needs(d, 0))
        d->gin[0] = tn_matmul(gz, tn__common_conj(d->in[1]));
    if (tn__needs(d, 1))
        d->gin[1] = tn__matmul_like(d->in[1], tn_transpose(as_rows(gz, rows, outs), 0, 1),
                                    tn__common_conj(as_rows(d->in[0], rows, features)));
    if (tn__needs(d, 2)) /* the sum of one row is the row */
        d->gin[2] = rows == 1 ? tn_reshape(gz, TN_SHAPE(outs)) : tn_sum_to(gz, TN_SHAPE(outs));
}

/* The same for a weight [in]: the products of rows are dot products. */
static void row_back(tn_derive *d, tn_tensor *gz)
{
    const tn_meta *x = &d->in_meta[0];
    int64_t features = x->shape[x->ndim - 1], rows = 1;

    for (int32_t i = 0; i < x->ndim - 1; i++)
        rows = tn__common_times(rows, x->shape[i]);
    if (tn__needs(d, 0))
        d->gin[0] = tn_mul(tn_unsqueeze(gz, -1), tn__common_conj(d->in[1]));
    if (tn__needs(d, 1))
        d->gin[1] = tn_matmul(tn_reshape(gz, TN_SHAPE(rows)),
                              tn__common_conj(tn_reshape(d->in[0], TN_SHAPE(rows, features))));
    if (tn__needs(d, 2))
        d->gin[2] = tn_sum_to(gz, (tn_ints){ NULL, 0 });
}

static tn_status linear_derive(tn_derive *d)
{
    if (d->in_meta[1].ndim == 1)
        row_back(d, d->gout[0]);
    else
        linear_back(d, d->gout[0]);
    return TN_OK;
}

/* ---- linear with an activation ---- */

/* The activations, and whether their derivative is computed from the result; if not, it is computed
 * from the input. */
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
    switch (which) {
    case RELU: return tn_relu(z);
    case GELU: return tn_gelu(z);
    case GELU_TANH: return tn_gelu(z, "tanh");
    case SILU: return tn_silu(z);
    default: return z;
    }
}

/* Returns the gradient of the input of activation `which`. `seen` is the activation's result if
 * followers[which].by_result, else its input. */
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

/* Returns whether out[1] stores the input of the activation. It does if the derivative needs this
 * input, or if the result cannot be recovered because a residual was added to it. */
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
    tn_status status;

    if (which == FOLLOWERS)
        return tn_fail(TN_ERR_VALUE,
                       "activation: unknown, got %q; expected none, relu, gelu, gelu_tanh or silu",
                       o->activation);
    status = shapes_infer(infer, false);
    if (status == TN_OK && residual != NULL)
        status = tn__matmul_same_dtype(infer->in[0], residual);
    if (status == TN_OK)
        status = tn__common_same_shape(residual, "residual", (tn_ints){ y->shape, y->ndim },
                                       "the result");
    if (status != TN_OK)
        return status;
    if (keeps_before(which, residual != NULL))
        tn__common_plain(&infer->out[1], y->dtype, (tn_ints){ y->shape, y->ndim });
    else
        tn__common_plain(&infer->out[1], y->dtype, TN_SHAPE(0));
    return TN_OK;
}

static tn_status linear_activation_decompose(const tn_decompose *call)
{
    int which = follower_of(((const tn_linear_activation_options *)call->options)->activation);
    bool residual = call->in[3] != TN_NONE;
    tn_tensor *z = tn_linear(call->in[0], call->in[1], call->in[2]),
              *y = z == NULL ? NULL : follow(which, z);
    if (y != NULL && residual)
        y = tn_add(y, call->in[3]);
    if (y == NULL)
        return tn_error_last_code();
    call->out[1] = keeps_before(which, residual) ? z : tn__common_zeros(z, TN_SHAPE(0));
    call->out[0] = y;
    return call->out[1] != NULL ? TN_OK : tn_error_last_code();
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
        gz = gz == TN_NONE ? d->gout[1] : tn_add(gz, d->gout[1]);
    if (gz != TN_NONE && gz != NULL && (d->need & 7))
        linear_back(d, gz);
    if (tn__needs(d, 3))
        d->gin[3] = d->gout[0];
    return gz != NULL ? TN_OK : tn_error_last_code();
}
/* ---- bilinear ---- */

static tn_status bilinear_infer(tn_infer *infer)
{
    const tn_view *a = infer->in[0], *b = infer->in[1], *w = infer->in[2], *bias = infer->in[3];
    tn_meta *meta = &infer->out[0];
    bool fits = a->ndim == b->ndim && a->ndim > 0;
    char text[TN__TEXT];

    for (int32_t d = 0; fits && d + 1 < a->ndim; d++)
        fits = a->shape[d] == b->shape[d];
    if (!fits)
        return tn__matmul_shapes(
            a, b,
            "a and b of the same shape except the last dimension, with at least "
            "one dimension");
    if (w->ndim != 3 || w->shape[1] != a->shape[a->ndim - 1] ||
        w->shape[2] != b->shape[b->ndim - 1])
        return tn_fail(
            TN_ERR_RUNTIME,
            "weight: wrong shape, got %s; expected [out, %lld, %lld], the last sizes of a and b",
            tn__common_text(text, tn__common_shape(w)), (long long)a->shape[a->ndim - 1],
            (long long)b->shape[b->ndim - 1]);
    if (bias != NULL && (bias->ndim != 1 || bias->shape[0] != w->shape[0]))
        return tn_fail(TN_ERR_RUNTIME,
                       "bias: wrong shape, got %s; expected [%lld], the first size of weight",
                       tn__common_text(text, tn__common_shape(bias)), (long long)w->shape[0]);
    tn__common_plain(meta, tn_view_dtype(a), tn__common_shape(a));
    meta->shape[a->ndim - 1] = w->shape[0];
    return tn__matmul_all_same_dtype(infer);
}

/* [1, N, i] . [o, i, j] = [o, N, j]; this times b [N, j], summed over j, is [o, N], which is
 * transposed. */
static tn_status bilinear_decompose(const tn_decompose *call)
{
    int64_t last[1] = { -1 }, rows[2], shape[TN_MAX_DIMS], n = 1;
    int32_t ndim = tn_tensor_ndim(call->in[0]);
    tn_tensor *a, *b, *y;
    for (int32_t d = 0; d + 1 < ndim; d++) {
        shape[d] = tn_tensor_size(call->in[0], d);
        n = tn__common_times(n, shape[d]);
    }
    shape[ndim - 1] = tn_tensor_size(call->in[2], 0);
    rows[0] = n;
    rows[1] = tn_tensor_size(call->in[0], -1);
    a = tn_reshape(call->in[0], (tn_ints){ rows, 2 });
    rows[1] = tn_tensor_size(call->in[1], -1);
    b = tn_reshape(call->in[1], (tn_ints){ rows, 2 });
    y = tn_transpose(tn_sum(tn_mul(tn_matmul(a, call->in[2]), b), ((tn_ints){ last, 1 })), 0, 1);
    if (call->in[3] != TN_NONE)
        y = tn_add(y, call->in[3]);
    return tn__common_given(call->out, tn_reshape(y, (tn_ints){ shape, ndim }));
}
TN__OP(linear, .infer = linear_infer, .derive = linear_derive, .decompose = linear_decompose);
TN__OP(linear_activation, .infer = linear_activation_infer, .derive = linear_activation_derive,
       .decompose = linear_activation_decompose);
TN__OP(bilinear, .infer = bilinear_infer, .decompose = bilinear_decompose);

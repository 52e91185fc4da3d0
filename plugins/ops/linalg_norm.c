/* SPDX-License-Identifier: MIT
 *
 * Norms of vectors and matrices, and parts of a tensor scaled to a largest norm. */
#include "linalg.h"

/* The real dtype of a norm of in[0] after its conversion to `asked`. Fails if it is not a float. */
static tn_status norm_dtype(tn_infer *infer, tn_dtype asked)
{
    tn_dtype dtype = tn__common_part(tn__common_asked(infer, asked));

    if (!(TN_MASK_FLOAT & TN_BIT(dtype)))
        return tn_fail(
            TN_ERR_RUNTIME,
            "x or dtype: wrong dtype, got %s; expected a float or complex dtype, in x or in the "
            "option dtype",
            tn_dtype_name(dtype));
    infer->out[0].dtype = dtype;
    return TN_OK;
}

/* ---- vectors --------------------------------------------------------------------------------- */

static tn_status linalg_vector_norm_infer(tn_infer *infer)
{
    const tn_linalg_vector_norm_options *o = infer->options;
    bool reduced[TN_MAX_DIMS];
    tn_status status = norm_dtype(infer, o->dtype);

    if (status == TN_OK && isinf(o->ord))
        return tn__common_extreme(infer, o->dims, o->keepdim, infer->out[0].dtype);
    if (status == TN_OK)
        status = tn__common_dims(o->dims, infer->in[0]->ndim, reduced);
    if (status == TN_OK)
        tn__common_reduced(infer->in[0], reduced, o->keepdim, &infer->out[0]);
    return status;
}

static tn_tensor *norm_along(tn_tensor *x, double p, tn_ints dims, bool keepdim)
{
    return tn_norm(x, p, dims, keepdim);
}

static tn_status linalg_vector_norm_decompose(const tn_decompose *call)
{
    const tn_linalg_vector_norm_options *o = call->options;
    return tn__common_given(call->out, norm_along(call->in[0], o->ord, o->dims, o->keepdim));
}

/* ---- matrices -------------------------------------------------------------------------------- */

/* A kind of norm. p is NaN for fro and nuc. */
struct order {
    double p;
    bool singular; /* computed from the singular values */
};

/* Reads `ord`: fro, nuc, or a number that names a norm. Returns false if it is none of them. */
static bool read_order(const char *word, struct order *order)
{
    static const double known[] = { 2, -2, 1, -1, INFINITY, -INFINITY };

    *order = (struct order){ NAN, is(word, "nuc") };
    if (is(word, "fro") || is(word, "nuc"))
        return true;
    if (word == NULL || !tn_read_float(word, &order->p))
        return false;
    order->singular = fabs(order->p) == 2;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (order->p == known[i])
            return true;
    return false;
}

/* Sets at[0] and at[1] to the dimensions of the rows and of the columns. */
static tn_status matrix_dims(tn_ints dims, int32_t ndim, int32_t *at)
{
    tn_status status;

    if (dims.count >= 0 && dims.count != 2)
        return tn_fail(TN_ERR_RUNTIME, "dims: wrong number, got %lld; expected 2",
                       (long long)dims.count);
    status = tn__common_dim(dims.count < 0 ? -2 : dims.at[0], ndim, &at[0]);
    if (status == TN_OK)
        status = tn__common_dim(dims.count < 0 ? -1 : dims.at[1], ndim, &at[1]);
    if (status == TN_OK && at[0] == at[1])
        status = tn_fail(
            TN_ERR_RUNTIME,
            "dims: the same dimension twice, got %lld and %lld; expected two different "
            "dimensions",
            dims.count < 0 ? -2LL : (long long)dims.at[0],
            dims.count < 0 ? -1LL : (long long)dims.at[1]);
    return status;
}

static tn_status linalg_matrix_norm_infer(tn_infer *infer)
{
    const tn_linalg_matrix_norm_options *o = infer->options;
    const tn_view *x = infer->in[0];
    bool reduced[TN_MAX_DIMS] = { false };
    int32_t at[2] = { 0, 0 };
    struct order order;
    tn_status status = is_matrix(x, "x");

    if (status == TN_OK && !read_order(o->ord, &order))
        status = tn_fail(TN_ERR_RUNTIME,
                         "ord: unknown, got %q; expected fro, nuc, 2, -2, 1, -1, inf or -inf",
                         o->ord);
    if (status == TN_OK)
        status = matrix_dims(o->dims, x->ndim, at);
    if (status == TN_OK)
        status = norm_dtype(infer, o->dtype);
    if (status != TN_OK)
        return status;
    for (int i = 0; i < 2; i++) /* a largest or smallest of nothing does not exist */
        if (order.p == order.p && x->shape[at[i]] == 0 &&
            (order.singular || i == (isinf(order.p) ? 0 : 1)))
            return tn_fail(TN_ERR_RUNTIME,
                           "x: dimension %d has size 0; expected at least 1 for ord %s", (int)at[i],
                           o->ord);
    reduced[at[0]] = reduced[at[1]] = true;
    tn__common_reduced(x, reduced, o->keepdim, &infer->out[0]);
    return TN_OK;
}

/* The largest element along `dim` if `most`, else the smallest. */
static tn_tensor *extreme(tn_tensor *x, bool most, int64_t dim)
{
    return most ? tn_amax(x, TN_INTS(dim), true) : tn_amin(x, TN_INTS(dim), true);
}

/* The singular values of the matrices in two dimensions of x, as the last dimension. */
static tn_tensor *singular_values(tn_tensor *x, const int32_t *at)
{
    int64_t order[TN_MAX_DIMS], count = 0;
    tn_tensor *u, *s, *vh;

    for (int32_t d = 0; d < tn_tensor_ndim(x); d++)
        if (d != at[0] && d != at[1])
            order[count++] = d;
    order[count++] = at[0];
    order[count++] = at[1];
    x = tn_permute(x, (tn_ints){ order, count });
    return x != NULL && tn_linalg_svd(x, &u, &s, &vh, false) == TN_OK ? s : NULL;
}

static tn_status linalg_matrix_norm_decompose(const tn_decompose *call)
{
    const tn_linalg_matrix_norm_options *o = call->options;
    struct order order;
    tn_tensor *x = call->in[0], *y;
    tn_squeeze_options squeeze = TN_SQUEEZE_OPTIONS;
    int64_t both[2], last = -1;
    int32_t at[2];
    tn_status status = matrix_dims(o->dims, tn_tensor_ndim(x), at);
    if (status != TN_OK)
        return status;
    read_order(o->ord, &order); /* infer checked it */
    both[0] = at[0];
    both[1] = at[1];
    if (is(o->ord, "fro"))
        return tn__common_given(call->out, norm_along(x, 2, (tn_ints){ both, 2 }, o->keepdim));
    if (!order.singular) {
        /* sums over the rows for 1 and -1, over the columns for infinity */
        int sums = isinf(order.p) ? 1 : 0;

        y = norm_along(x, 1, (tn_ints){ &both[sums], 1 }, true);
        y = extreme(y, order.p > 0, both[1 - sums]);
        squeeze.dims = (tn_ints){ both, 2 };
        return tn__common_given(call->out, o->keepdim ? y : tn_squeeze(y, squeeze.dims));
    }
    y = singular_values(x, at);
    y = is(o->ord, "nuc") ? norm_along(y, 1, (tn_ints){ &last, 1 }, true)
                          : extreme(y, order.p > 0, -1);
    squeeze.dims = (tn_ints){ &last, 1 };
    y = tn_squeeze(y, squeeze.dims);
    if (o->keepdim)
        y = tn_unsqueeze(tn_unsqueeze(y, both[0] < both[1] ? both[0] : both[1]),
                         both[0] < both[1] ? both[1] : both[0]);
    return tn__common_given(call->out, y);
}

/* ---- renorm ---------------------------------------------------------------------------------- */

static tn_status renorm_infer(tn_infer *infer)
{
    const tn_renorm_options *o = infer->options;
    const tn_view *x = infer->in[0];
    int32_t at;

    if (!(o->p > 0))
        return tn_fail(TN_ERR_RUNTIME, "p: out of range, got %g; expected more than 0", o->p);
    if (!(o->maxnorm >= 0))
        return tn_fail(TN_ERR_RUNTIME, "maxnorm: out of range, got %g; expected 0 or more",
                       o->maxnorm);
    if (x->ndim < 2)
        return tn_fail(TN_ERR_RUNTIME, "x: too few dimensions, got %d; expected at least 2",
                       (int)x->ndim);
    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    return tn__common_dim(o->dim, x->ndim, &at);
}

static tn_status renorm_decompose(const tn_decompose *call)
{
    const tn_renorm_options *o = call->options;
    tn_tensor *x = call->in[0], *norm, *factor;
    tn_dtype dtype = tn_tensor_dtype(x);
    int64_t others[TN_MAX_DIMS], count = 0;
    int32_t at;
    tn_status status = tn__common_dim(o->dim, tn_tensor_ndim(x), &at);
    if (status != TN_OK)
        return status;
    for (int32_t d = 0; d < tn_tensor_ndim(x); d++)
        if (d != at)
            others[count++] = d;
    if (tn_tensor_numel(x) == 0)
        return tn__common_given(call->out, tn_copy(x));
    norm = norm_along(tn__common_narrow(x) ? tn_cast(x, TN_F32) : x, o->p,
                      (tn_ints){ others, count }, true);
    /* PyTorch adds 1e-7 as well, so that the norm of the result is not above maxnorm. */
    factor = times(tn_reciprocal(add_number(norm, 1e-7)), o->maxnorm);
    factor = tn_where(is_above(norm, o->maxnorm), factor, number(norm, 1.0));
    return tn__common_given(call->out, factor == NULL ? NULL : tn_mul(x, tn_cast(factor, dtype)));
}

TN__OP(linalg_vector_norm, .infer = linalg_vector_norm_infer,
       .decompose = linalg_vector_norm_decompose);
TN__OP(linalg_matrix_norm, .infer = linalg_matrix_norm_infer,
       .decompose = linalg_matrix_norm_decompose);
TN__OP(renorm, .infer = renorm_infer, .decompose = renorm_decompose);

/* SPDX-License-Identifier: MIT
 *
 * Sorting along one dimension: sort, topk. */
#include "common.h"

static tn_status sort_infer(tn_infer *infer)
{
    const tn_sort_options *o = infer->options;
    const tn_view *x = infer->in[0];
    int32_t at;

    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    tn__common_plain(&infer->out[1], TN_I64, tn__common_shape(x));
    return tn__common_dim(o->dim, x->ndim, &at);
}

static tn_status sort_derive(tn_derive *d)
{
    const tn_sort_options *o = d->options;

    if (d->gout[0] == TN_NONE)
        return TN_OK;
    d->gin[0] = tn_scatter_add(tn__common_nothing(d->gout[0], tn__common_in_shape(d, 0)), d->out[1],
                               d->gout[0], o->dim);
    return TN_OK;
}

static tn_status topk_infer(tn_infer *infer)
{
    const tn_topk_options *o = infer->options;
    const tn_view *x = infer->in[0];
    int32_t at;
    tn_status status = tn__common_dim(o->dim, x->ndim, &at);

    if (status != TN_OK)
        return status;
    if (o->k < 0 || o->k > (x->ndim > 0 ? x->shape[at] : 1))
        return tn_fail(TN_ERR_RUNTIME,
                       "k: out of range, got %lld; expected 0 to %lld, the size of the dimension",
                       (long long)o->k, (long long)(x->ndim > 0 ? x->shape[at] : 1));
    for (int i = 0; i < 2; i++) {
        tn__common_plain(&infer->out[i], i == 0 ? tn_view_dtype(x) : TN_I64, tn__common_shape(x));
        if (x->ndim > 0) /* a 0-d tensor stays as it is, even with k = 0 */
            infer->out[i].shape[at] = o->k;
    }
    return TN_OK;
}

static tn_status topk_derive(tn_derive *d)
{
    const tn_topk_options *o = d->options;

    if (d->gout[0] == TN_NONE)
        return TN_OK;
    d->gin[0] = tn_scatter_add(tn__common_nothing(d->gout[0], tn__common_in_shape(d, 0)), d->out[1],
                               d->gout[0], o->dim);
    return TN_OK;
}

static tn_status topk_decompose(const tn_decompose *call)
{
    const tn_topk_options *o = call->options;
    tn_status status;
    status = tn_sort(call->in[0], &call->out[0], &call->out[1], o->dim, o->largest);
    for (int i = 0; i < 2 && status == TN_OK && tn_tensor_ndim(call->in[0]) > 0; i++) {
        call->out[i] = tn_copy(tn_narrow(call->out[i], o->dim, 0, o->k));
        status = call->out[i] != NULL ? TN_OK : tn_error_last_code();
    }
    return status;
}
TN__OP(sort, .infer = sort_infer, .derive = sort_derive);
TN__OP(topk, .infer = topk_infer, .derive = topk_derive, .decompose = topk_decompose);

/* SPDX-License-Identifier: MIT
 *
 * Copies and conversions: copy, cast, clone. */
#include "common.h"

static tn_status copy_infer(tn_infer *infer)
{
    tn__common_plain(&infer->out[0], tn_view_dtype(infer->in[0]), tn__common_shape(infer->in[0]));
    return TN_OK;
}

static tn_status copy_derive(tn_derive *d)
{
    d->gin[0] = d->gout[0];
    return TN_OK;
}

static tn_status cast_infer(tn_infer *infer)
{
    const tn_cast_options *o = infer->options;

    if ((unsigned)o->dtype >= TN_DTYPE_COUNT)
        return tn_fail(TN_ERR_TYPE, "dtype: unknown, got %d; expected one of tn_dtype",
                       (int)o->dtype);
    tn__common_like(infer, 0, 0, o->dtype);
    return TN_OK;
}

static tn_status cast_derive(tn_derive *d)
{
    d->gin[0] = tn_cast(d->gout[0], d->in_meta[0].dtype);
    return TN_OK;
}

static tn_status cast_decompose(const tn_decompose *call)
{
    const tn_cast_options *o = call->options;
    const tn_view *views[1] = { tn_tensor_view(call->in[0]) };
    tn_meta meta = { .flags = 0 };
    tn_infer like = { TN_HEAD(tn_infer), .in = views, .n_in = call->n_in, .n_out = 1,
                      .out = &meta };
    tn_ints shape = tn_tensor_shape(call->in[0]);

    if (tn_tensor_dtype(call->in[0]) == o->dtype) {
        call->out[0] = call->in[0];
        return TN_OK;
    }
    tn__common_like(&like, 0, 0, o->dtype);
    call->out[0] = meta.flags & TN_META_STRIDED
                       ? tn_tensor_empty_strided(shape, (tn_ints){ meta.strides, meta.ndim },
                                                 o->dtype, tn_tensor_device(call->in[0]))
                       : tn_tensor_empty(shape, o->dtype, tn_tensor_device(call->in[0]));
    call->out[0] = call->out[0] != NULL ? tn_copy_(call->out[0], call->in[0]) : NULL;
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

static tn_status clone_derive(tn_derive *d)
{
    d->gin[0] = d->gout[0];
    return TN_OK;
}

static tn_status clone_decompose(const tn_decompose *call)
{
    const tn_view *views[1] = { tn_tensor_view(call->in[0]) };
    tn_meta meta = { .flags = 0 };
    tn_infer like = { TN_HEAD(tn_infer), .in = views, .n_in = call->n_in, .n_out = 1,
                      .out = &meta };
    tn_ints strides = { meta.strides, tn_tensor_ndim(call->in[0]) };
    tn_tensor *y;
    tn__common_like(&like, 0, 0, tn_tensor_dtype(call->in[0]));
    if (!(meta.flags & TN_META_STRIDED))
        return tn__common_given(call->out, tn_copy(call->in[0]));
    y = tn_tensor_empty_strided(tn_tensor_shape(call->in[0]), strides, meta.dtype,
                                tn_tensor_device(call->in[0]));
    return tn__common_given(call->out, y != NULL ? tn_copy_(y, call->in[0]) : NULL);
}

TN__OP(copy, .infer = copy_infer, .derive = copy_derive);
TN__OP(cast, .infer = cast_infer, .derive = cast_derive, .decompose = cast_decompose);
TN__OP(clone, .infer = tn__common_unary, .derive = clone_derive, .decompose = clone_decompose);

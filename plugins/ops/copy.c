/* SPDX-License-Identifier: MIT
 *
 * Values out of nothing or out of another tensor: copy, cast, fill, random numbers. */
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
        return tn_fail(TN_ERR_TYPE, "dtype %d is none", (int)o->dtype);
    tn__common_like(infer, 0, 0, o->dtype);
    return TN_OK;
}

static tn_status cast_derive(tn_derive *d)
{
    d->gin[0] = tn_cast(d->gout[0], d->in_meta[0].dtype);
    return TN_OK;
}

static tn_status cast_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                tn_tensor **out)
{
    const tn_cast_options *o = options;
    const tn_view *views[1] = { tn_tensor_view(in[0]) };
    tn_meta meta = { .flags = 0 };
    tn_infer like = { TN_HEAD(tn_infer), .in = views, .n_in = n_in, .n_out = 1, .out = &meta };
    tn_ints shape = tn_tensor_shape(in[0]);

    if (tn_tensor_dtype(in[0]) == o->dtype) {
        out[0] = in[0];
        return TN_OK;
    }
    tn__common_like(&like, 0, 0, o->dtype);
    out[0] = meta.flags & TN_META_STRIDED
                 ? tn_tensor_empty_strided(shape, (tn_ints){ meta.strides, meta.ndim }, o->dtype,
                                           tn_tensor_device(in[0]))
                 : tn_tensor_empty(shape, o->dtype, tn_tensor_device(in[0]));
    out[0] = out[0] != NULL ? tn_copy_(out[0], in[0]) : NULL;
    return out[0] != NULL ? TN_OK : tn_error_last()->code;
}

static tn_status fill_infer(tn_infer *infer)
{
    const tn_fill_options *o = infer->options;
    tn_status status = tn__common_fits(tn_view_dtype(infer->in[0]), o->value, "value");

    return status == TN_OK ? tn__common_unary(infer) : status;
}

/* Elements and 32-bit words of each: the generator is asked for as many, whatever the device. */
static tn_status take(tn_tensor *x, uint32_t words, int64_t *seed, int64_t *block)
{
    uint64_t key, first;

    if (tn_tensor_dtype(x) == TN_F64)
        words *= 2;
    tn_status status = tn_random_take((uint64_t)tn_tensor_numel(x), words, &key, &first);
    *seed = (int64_t)key;
    *block = (int64_t)first;
    return status;
}

static tn_status uniform_infer(tn_infer *infer)
{
    const tn_uniform_options *o = infer->options;

    if (!(o->low <= o->high))
        return tn_fail(TN_ERR_RUNTIME,
                       "expects to return a [low, high) range, but found low=%g > high=%g", o->low,
                       o->high);
    return tn__common_unary(infer);
}

static tn_status uniform_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                   tn_tensor **out)
{
    const tn_uniform_options *o = options;
    int64_t seed, block;

    (void)n_in;
    tn_status status = take(in[0], 1, &seed, &block);
    if (status != TN_OK)
        return status;
    out[0] = tn_philox_uniform(in[0], o->low, o->high, seed, block);
    return out[0] != NULL ? TN_OK : tn_error_last()->code;
}

static tn_status normal_infer(tn_infer *infer)
{
    const tn_normal_options *o = infer->options;

    if (!(o->std >= 0))
        return tn_fail(TN_ERR_RUNTIME, "expects std >= 0.0, but found std %g", o->std);
    return tn__common_unary(infer);
}

static tn_status normal_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                  tn_tensor **out)
{
    const tn_normal_options *o = options;
    int64_t seed, block;

    (void)n_in;
    tn_status status = take(in[0], 2, &seed, &block);
    if (status != TN_OK)
        return status;
    out[0] = tn_philox_normal(in[0], o->mean, o->std, seed, block);
    return out[0] != NULL ? TN_OK : tn_error_last()->code;
}

const tn_op_def tn__op_copy = { TN_HEAD(tn_op_def), TN_SCHEMA_COPY, .infer = copy_infer,
                                .derive = copy_derive };
const tn_op_def tn__op_cast = { TN_HEAD(tn_op_def), TN_SCHEMA_CAST, .infer = cast_infer,
                                .derive = cast_derive, .decompose = cast_decompose };
const tn_op_def tn__op_fill = { TN_HEAD(tn_op_def), TN_SCHEMA_FILL, .infer = fill_infer };
const tn_op_def tn__op_philox_uniform = { TN_HEAD(tn_op_def), TN_SCHEMA_PHILOX_UNIFORM,
                                          .infer = tn__common_unary };
const tn_op_def tn__op_philox_normal = { TN_HEAD(tn_op_def), TN_SCHEMA_PHILOX_NORMAL,
                                         .infer = tn__common_unary };
const tn_op_def tn__op_uniform = { TN_HEAD(tn_op_def), TN_SCHEMA_UNIFORM, .infer = uniform_infer,
                                   .decompose = uniform_decompose };
const tn_op_def tn__op_normal = { TN_HEAD(tn_op_def), TN_SCHEMA_NORMAL, .infer = normal_infer,
                                  .decompose = normal_decompose };

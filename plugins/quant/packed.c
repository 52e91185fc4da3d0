/* SPDX-License-Identifier: MIT
 *
 * Weights of four bits and in blocks: pack_int4, unpack_int4, dequantize_packed and linear_packed.
 * The order of roundings of linear_packed is part of its definition: kernels have the same bits. */
#include "quant.h"

enum { BLOCK = 32 };

/* ---- numbers of four bits ---- */

static tn_status pack_int4_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];
    char text[TN__TEXT];

    if (x->ndim < 1 || x->shape[x->ndim - 1] % 2 != 0)
        return tn_fail(TN_ERR_VALUE, "x: wrong last size, got %s; expected an even one",
                       tn__common_text(text, tn__common_shape(x)));
    tn__common_plain(&infer->out[0], TN_U8, tn__common_shape(x));
    infer->out[0].shape[x->ndim - 1] /= 2;
    return TN_OK;
}

static tn_status pack_int4_decompose(const tn_decompose *call)
{
    tn_tensor *x = tn_cast(call->in[0], TN_I32);

    if (x == NULL)
        return tn_error_last_code();
    x = tn_bitwise_and(x, number(x, 15));
    x = plus(tn_slice(x, -1, 0, INT64_MIN, 2), tn_mul_scalar(tn_slice(x, -1, 1, INT64_MIN, 2), 16));
    return tn__common_given(call->out, tn_cast(x, TN_U8));
}

TN__OP(pack_int4, .infer = pack_int4_infer, .decompose = pack_int4_decompose);

static tn_status unpack_int4_infer(tn_infer *infer)
{
    const tn_unpack_int4_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_status status = scale_dtype(o->dtype, QUANT_BYTES, "int8 or uint8");

    if (status == TN_OK && x->ndim < 1)
        status = tn_fail(TN_ERR_VALUE, "x: no last size, got no dimensions; expected at least one");
    if (status != TN_OK)
        return status;
    tn__common_plain(&infer->out[0], o->dtype, tn__common_shape(x));
    infer->out[0].shape[x->ndim - 1] = tn__common_times(x->shape[x->ndim - 1], 2);
    return TN_OK;
}

/* Numbers of four bits as int32, [..., 2 n]. */
static tn_tensor *unpacked(tn_tensor *x, bool with_sign)
{
    tn_tensor *parts[2], *y;

    x = tn_cast(x, TN_I32);
    if (x == NULL)
        return NULL;
    parts[0] = tn_bitwise_and(x, number(x, 15));
    parts[1] = tn_bitwise_right_shift(x, number(x, 4));
    if (parts[0] == NULL || parts[1] == NULL)
        return NULL;
    y = tn_flatten(tn_stack(parts, 2, -1), -2, -1);
    return with_sign && y != NULL ? tn_add_scalar(tn_bitwise_xor(y, number(y, 8)), -8) : y;
}

static tn_status unpack_int4_decompose(const tn_decompose *call)
{
    const tn_unpack_int4_options *o = call->options;

    return tn__common_given(call->out, tn_cast(unpacked(call->in[0], o->dtype == TN_I8), o->dtype));
}

TN__OP(unpack_int4, .infer = unpack_int4_infer, .decompose = unpack_int4_decompose);

/* ---- packed weights ---- */

/* A packed weight: its format and logical shape. */
struct packed_shape {
    const struct packed_format *f;
    int64_t outs, ins, groups; /* groups of a row; of blocks their number */
};

static tn_status scale_of_packed(struct packed_shape *s, const tn_view *scale, const tn_view *zero)
{
    char text[TN__TEXT];

    if (scale == NULL)
        return tn_fail(TN_ERR_VALUE,
                       "weight_scale: absent with format %s; expected [out] or "
                       "[out, groups]",
                       s->f->name);
    s->groups = scale->ndim == 2 ? scale->shape[1] : 1;
    if (scale->ndim < 1 || scale->ndim > 2 || scale->shape[0] != s->outs ||
        (s->groups < 1 ? s->ins != 0 : s->ins % s->groups != 0))
        return tn_fail(TN_ERR_VALUE,
                       "weight_scale: wrong shape, got %s; expected [%lld], or [%lld, groups] with "
                       "groups that divide %lld",
                       tn__common_text(text, tn__common_shape(scale)), (long long)s->outs,
                       (long long)s->outs, (long long)s->ins);
    if (zero != NULL && (TN_BIT(tn_view_dtype(zero)) & s->f->zero) == 0)
        return tn_fail(TN_ERR_VALUE, "weight_zero_point: wrong dtype, got %s; expected %s",
                       tn_dtype_name(tn_view_dtype(zero)),
                       s->f->zero == TN_BIT(TN_U8) ? "uint8" : "int8");
    return tn__common_same_shape(zero, "weight_zero_point", tn__common_shape(scale),
                                 "weight_scale");
}

/* `scale` and `zero` can be NULL. */
static tn_status packed_infer(struct packed_shape *s, const char *format, const tn_view *weight,
                              const tn_view *scale, const tn_view *zero)
{
    char text[TN__TEXT];

    s->f = packed_format_of(format, false);
    if (s->f == NULL)
        return tn_error_last_code();
    if ((TN_BIT(tn_view_dtype(weight)) & s->f->weight) == 0)
        return tn_fail(TN_ERR_VALUE, "weight: wrong dtype, got %s; expected %s for format %s",
                       tn_dtype_name(tn_view_dtype(weight)),
                       s->f->weight == TN_BIT(TN_U8) ? "uint8" : "int8", s->f->name);
    if (weight->ndim != 2 || (s->f->bytes > 0 && weight->shape[1] % s->f->bytes != 0))
        return tn_fail(TN_ERR_VALUE,
                       "weight: wrong shape, got %s; expected [out, %s] for format "
                       "%s",
                       tn__common_text(text, tn__common_shape(weight)),
                       s->f->bytes == 0    ? (s->f->in_byte == 2 ? "in / 2" : "in")
                       : s->f->bytes == 34 ? "blocks * 34"
                                           : "blocks * 18",
                       s->f->name);
    s->outs = weight->shape[0];
    s->groups = s->f->bytes > 0 ? weight->shape[1] / s->f->bytes : 1;
    s->ins = s->f->bytes > 0 ? tn__common_times(s->groups, BLOCK)
                             : tn__common_times(weight->shape[1], s->f->in_byte);
    if (s->f->bytes == 0)
        return scale_of_packed(s, scale, zero);
    if (scale != NULL || zero != NULL)
        return tn_fail(TN_ERR_VALUE,
                       "weight_scale or weight_zero_point: given with format %s; "
                       "expected none, blocks have their scales",
                       s->f->name);
    return TN_OK;
}

static struct packed_shape packed_of(const char *format, tn_tensor *weight, tn_tensor *scale)
{
    struct packed_shape s = { packed_format_of(format, false), tn_tensor_size(weight, 0), 0, 1 };

    if (s.f == NULL)
        return s;
    if (s.f->bytes > 0) {
        s.groups = tn_tensor_size(weight, 1) / s.f->bytes;
        s.ins = tn__common_times(s.groups, BLOCK);
        return s;
    }
    s.ins = tn__common_times(tn_tensor_size(weight, 1), s.f->in_byte);
    if (tn_tensor_ndim(scale) == 2)
        s.groups = tn_tensor_size(scale, 1);
    return s;
}

/* The integers of a weight less their zero point, int32 [out, groups, in / groups]. */
static tn_tensor *packed_integers(const struct packed_shape *s, tn_tensor *weight, tn_tensor *zero)
{
    tn_tensor *q;

    if (s->f->bytes > 0)
        return packed_blocks_integers(s->f, weight);
    q = s->f->in_byte == 2 ? unpacked(weight, s->f->zero == TN_BIT(TN_I8))
                           : tn_cast(weight, TN_I32);
    q = tn_reshape(q, TN_SHAPE(s->outs, s->groups, s->groups > 0 ? s->ins / s->groups : 0));
    if (zero != TN_NONE)
        q = minus(q, tn_cast(tn_reshape(zero, TN_SHAPE(s->outs, s->groups, 1)), TN_I32));
    return q;
}

/* The scales in float32, [out, groups]. */
static tn_tensor *packed_scales(const struct packed_shape *s, tn_tensor *weight, tn_tensor *scale)
{
    return s->f->bytes > 0 ? packed_blocks_scales(s->f, weight)
                           : tn_reshape(tn_cast(scale, TN_F32), TN_SHAPE(s->outs, s->groups));
}

static tn_status dequantize_packed_infer(tn_infer *infer)
{
    const tn_dequantize_packed_options *o = infer->options;
    struct packed_shape s;
    tn_status status = scale_dtype(o->dtype, TN_MASK_FLOAT,
                                   "float16, bfloat16, float32 or float64");

    if (status == TN_OK)
        status = packed_infer(&s, o->format, infer->in[0], infer->in[1], infer->in[2]);
    if (status == TN_OK)
        tn__common_plain(&infer->out[0], o->dtype, TN_SHAPE(s.outs, s.ins));
    return status;
}

static tn_status dequantize_packed_decompose(const tn_decompose *call)
{
    const tn_dequantize_packed_options *o = call->options;
    struct packed_shape s = packed_of(o->format, call->in[0], call->in[1]);
    tn_tensor *y;

    if (s.f == NULL)
        return tn_error_last_code();
    y = tn_mul(tn_cast(packed_integers(&s, call->in[0], call->in[2]), TN_F32),
               tn_unsqueeze(packed_scales(&s, call->in[0], call->in[1]), -1));
    return tn__common_given(call->out, tn_cast(tn_reshape(y, TN_SHAPE(s.outs, s.ins)), o->dtype));
}

TN__OP(dequantize_packed, .infer = dequantize_packed_infer,
       .decompose = dequantize_packed_decompose);

/* ---- linear_packed ---- */

static tn_status linear_packed_infer(tn_infer *infer)
{
    const tn_linear_packed_options *o = infer->options;
    const tn_view *x = infer->in[0], *bias = infer->in[4];
    char text[TN__TEXT];
    struct packed_shape s;
    tn_status status = packed_infer(&s, o->format, infer->in[1], infer->in[2], infer->in[3]);

    if (status != TN_OK)
        return status;
    if (x->ndim < 1 || x->shape[x->ndim - 1] != s.ins)
        return tn_fail(TN_ERR_RUNTIME,
                       "x: wrong shape, got %s; expected [..., %lld] for the "
                       "weight",
                       tn__common_text(text, tn__common_shape(x)), (long long)s.ins);
    if (bias != NULL && (bias->ndim != 1 || bias->shape[0] != s.outs))
        return tn_fail(TN_ERR_RUNTIME, "bias: wrong shape, got %s; expected [%lld]",
                       tn__common_text(text, tn__common_shape(bias)), (long long)s.outs);
    status = tn__common_same_dtype(x, "x", bias, "bias");
    if (status != TN_OK)
        return status;
    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    infer->out[0].shape[x->ndim - 1] = s.outs;
    return TN_OK;
}

/* Elements of a block of x: blocks of 32 do not cross groups. */
static int64_t block_of(const struct packed_shape *s)
{
    int64_t group = s->groups > 0 ? s->ins / s->groups : s->ins;

    return s->groups > 1 && group % BLOCK != 0 ? group : BLOCK;
}

/* q [rows, in] in whole blocks, as [blocks, rows, block]; zeros are added at the end. */
static tn_tensor *blocks_of(tn_tensor *q, int64_t rows, int64_t blocks, int64_t block, int64_t ins)
{
    if (ins % block != 0)
        q = tn_pad(q, TN_INTS(0, block - ins % block));
    return tn_transpose(tn_reshape(q, TN_SHAPE(rows, blocks, block)), 0, 1);
}

/* Sums of blocks, one after the other. sums: [blocks, rows, out]; both scales broadcast to one of
 * them. */
static tn_tensor *added(tn_tensor *sums, tn_tensor *x_scale, tn_tensor *w_scale,
                        const struct packed_shape *s, int64_t block)
{
    int64_t blocks = tn_tensor_size(sums, 0);
    int64_t group = s->groups > 0 ? s->ins / s->groups : 0;
    tn_tensor *y = tn_full(w_scale, TN_SHAPE(tn_tensor_size(sums, 1), s->outs), 0.0, TN_F32);

    for (int64_t b = 0; b < blocks && y != NULL; b++) {
        tn_tensor *factor = tn_mul(tn_select(x_scale, 0, b),
                                   tn_select(w_scale, 1, group > 0 ? b * block / group : 0));

        y = plus(y, tn_mul(tn_cast(tn_select(sums, 0, b), TN_F32), factor));
    }
    return y;
}

/* The products with x in int8. */
static tn_tensor *linear_in_blocks(const struct packed_shape *s, tn_tensor *const *in)
{
    int64_t block = block_of(s), blocks = s->ins / block + (s->ins % block != 0), rows;
    tn_tensor *x = tn_cast(in[0], TN_F32), *q = NULL, *x_scale = NULL, *zero = NULL;
    tn_tensor *w = tn_reshape(packed_integers(s, in[1], in[3]), TN_SHAPE(s->outs, s->ins));
    tn_tensor *w_scale = packed_scales(s, in[1], in[2]);
    tn_dtype wide = product_dtype(block);

    if (x == NULL || w == NULL || w_scale == NULL)
        return NULL;
    rows = 1;
    for (int32_t d = 0; d + 1 < tn_tensor_ndim(x); d++)
        rows = tn__common_times(rows, tn_tensor_size(x, d));
    x = blocks_of(tn_reshape(x, TN_SHAPE(rows, s->ins)), rows, blocks, block, s->ins);
    if (x == NULL || tn_quantize_rows(x, &q, &x_scale, &zero, TN_I8, true) != TN_OK)
        return NULL;
    w = blocks_of(w, s->outs, blocks, block, s->ins);
    w = tn_bmm(tn_cast(q, wide), tn_transpose(tn_cast(w, wide), 1, 2));
    return w != NULL ? added(w, x_scale, w_scale, s, block) : NULL;
}

static tn_status linear_packed_decompose(const tn_decompose *call)
{
    const tn_linear_packed_options *o = call->options;
    tn_tensor *const *in = call->in;
    struct packed_shape s = packed_of(o->format, in[1], in[2]);
    tn_dtype dtype = tn_tensor_dtype(in[0]);
    int64_t shape[TN_MAX_DIMS];
    int32_t ndim = tn_tensor_ndim(in[0]);
    tn_tensor *y;

    if (s.f == NULL)
        return tn_error_last_code();
    if (!o->quantize_x)
        return tn__common_given(
            call->out,
            tn_linear(in[0], tn_dequantize_packed(in[1], in[2], in[3], o->format, dtype), in[4]));
    y = linear_in_blocks(&s, in);
    if (in[4] != TN_NONE)
        y = plus(y, tn_cast(in[4], TN_F32));
    for (int32_t d = 0; d < ndim; d++)
        shape[d] = d == ndim - 1 ? s.outs : tn_tensor_size(in[0], d);
    return tn__common_given(call->out, tn_cast(tn_reshape(y, (tn_ints){ shape, ndim }), dtype));
}

static tn_status linear_packed_derive(tn_derive *d)
{
    const tn_linear_packed_options *o = d->options;
    tn_tensor *gy = d->gout[0];

    if (tn__needs(d, 0))
        d->gin[0] = tn_matmul(gy,
                              tn_dequantize_packed(d->in[1], quant_saved(d, 2), quant_saved(d, 3),
                                                   o->format, d->in_meta[0].dtype));
    if (tn__needs(d, 4))
        d->gin[4] = tn_sum_to(gy, tn__common_in_shape(d, 4));
    return TN_OK;
}

TN__OP(linear_packed, .infer = linear_packed_infer, .derive = linear_packed_derive,
       .decompose = linear_packed_decompose);

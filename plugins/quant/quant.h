/* SPDX-License-Identifier: MIT
 *
 * What the operators of this plugin share: ranges of integers, shapes of scales, and the order of
 * rounding that makes results equal to the bit on every device (sdk/operators/quantize.ops).
 * Inference fails without the operator's name, which the core puts in front. Functions on tensors
 * return NULL if an argument is NULL. */
#ifndef TN_QUANT_QUANT_H
#define TN_QUANT_QUANT_H

#include "formula.h"

#define QUANT_DECLARE_OP(name) extern const tn_op_def tn__op_##name;
TN_SCHEMA_OPS_QUANT(QUANT_DECLARE_OP)
#undef QUANT_DECLARE_OP

#define QUANT_BYTES (TN_BIT(TN_I8) | TN_BIT(TN_U8))
#define QUANT_INTS (QUANT_BYTES | TN_BIT(TN_I16) | TN_BIT(TN_I32))

/* Products of two differences of bytes whose sum always fits into int32: 2^31 / 255^2. */
enum { QUANT_MOST_PRODUCTS = 33024 };

/* An optional input that the derivative needs: TN_NONE if it is absent. */
static inline tn_tensor *quant_saved(const tn_derive *d, int i)
{
    return d->in_meta[i].ndim < 0 ? TN_NONE : d->in[i];
}

/* ---- scale.c ---- */

/* The smallest and largest integer that a result may have. */
struct scale_range {
    int64_t min, max;
};

static inline bool scale_allows(tn_dtype dtype, uint64_t mask)
{
    return dtype < 64 && (TN_BIT(dtype) & mask) != 0;
}
/* Fails unless the option dtype is in the mask, which the error calls `expected`. */
tn_status scale_dtype(tn_dtype dtype, uint64_t mask, const char *expected);
/* The range of a dtype, with the options qmin and qmax that are given (not INT64_MIN). */
struct scale_range scale_range_of(tn_dtype dtype, int64_t qmin, int64_t qmax);
/* The same. Fails if the options are out of the range of the dtype or in the wrong order. */
tn_status scale_range_check(tn_dtype dtype, int64_t qmin, int64_t qmax);

/* Fails unless the scale fits x with the options dim and block, and zero_point (NULL: absent) the
 * scale. */
tn_status scale_fits(const tn_view *x, const tn_view *scale, const tn_view *zero_point, int64_t dim,
                     int64_t block);
/* Whether a tensor has one element and at most one dimension. */
static inline bool scale_has_one(const tn_view *view)
{
    return view->ndim == 0 || (view->ndim == 1 && view->shape[0] == 1);
}
/* Fails unless this is so; NULL: absent. */
tn_status scale_is_one(const tn_view *view, const char *name);
/* Fails unless zero_point is absent or has the dtype of q and the shape of its scale. */
tn_status scale_zero_point(const tn_view *q, const char *q_name, const tn_view *scale,
                           const tn_view *zero_point, const char *name);
/* Returns a scale or zero point with the dimensions of x, so that it broadcasts to x. */
tn_tensor *scale_spread(tn_tensor *scale, tn_tensor *x, int64_t dim, int64_t block);
/* Returns x as [outer, blocks, block, inner]: no dimension more than x may have is needed. */
tn_tensor *scale_blocks(tn_tensor *x, int32_t dim, int64_t block);
/* The reverse for gradients: sums of g, which has the shape of x, for each element of the scale. */
tn_tensor *scale_gather(tn_tensor *g, tn_ints scale, int64_t dim, int64_t block);
/* Returns a tensor of one element without dimensions; others as they are. */
tn_tensor *scale_plain(tn_tensor *scale);

/* ---- steps that several operators share ---- */

/* NaN becomes 0. */
tn_tensor *quantize_without_nan(tn_tensor *x);
/* clamp(round(x / scale) + zero_point, range) in float32; all broadcast, zero_point may be
 * TN_NONE. */
tn_tensor *quantize_to(tn_tensor *x, tn_tensor *scale, tn_tensor *zero_point,
                       struct scale_range range, tn_dtype dtype);
/* q - zero_point as int32 or int64; zero_point may be TN_NONE, or broadcasts to q. */
tn_tensor *product_centred(tn_tensor *q, tn_tensor *zero_point, tn_dtype wide);
/* The dtype in which a sum of so many products fits. */
static inline tn_dtype product_dtype(int64_t products)
{
    return products > QUANT_MOST_PRODUCTS ? TN_I64 : TN_I32;
}

/* Inputs and options that linear_int8 and convolution_int8 have in common. */
enum {
    PRODUCT_X,
    PRODUCT_X_SCALE,
    PRODUCT_WEIGHT,
    PRODUCT_WEIGHT_SCALE,
    PRODUCT_X_ZERO,
    PRODUCT_WEIGHT_ZERO,
    PRODUCT_BIAS,
    PRODUCT_Y_SCALE,
    PRODUCT_Y_ZERO,
    PRODUCT_RESIDUAL,
    PRODUCT_RESIDUAL_SCALE,
    PRODUCT_RESIDUAL_ZERO
};
struct product_ending {
    double min, max;
    tn_dtype dtype;
};
/* Checks the scales, zero points, bias and residual of a result whose shape and `outputs` channels
 * are known, and sets its dtype. */
tn_status product_ending_infer(tn_infer *infer, const struct product_ending *ending,
                               int64_t outputs);
/* Computes the result from the exact sums; x_scale and channels broadcast to them, where `channels`
 * has the shape of a vector with one number for each output channel. */
tn_tensor *product_end(tn_tensor *const *in, tn_tensor *sums, tn_tensor *x_scale, tn_ints channels,
                       const struct product_ending *ending);

/* ---- packed_blocks.c: blocks of GGUF files ---- */
struct packed_format {
    const char *name;
    int64_t elements, bytes; /* of a block; 0: no blocks */
    uint64_t weight, zero;   /* dtypes of weight and weight_zero_point */
    int64_t in_byte;         /* elements in one number of weight */
};
/* NULL and an error if there is no such format. `mask`: those with blocks only. */
const struct packed_format *packed_format_of(const char *name, bool blocks_only);
/* The numbers of blocks [..., bytes] in float32, [..., elements]. */
tn_tensor *packed_blocks_numbers(const struct packed_format *f, tn_tensor *blocks);
/* Their integers, [..., blocks, 32] in int32, and scales, [..., blocks]. */
tn_tensor *packed_blocks_integers(const struct packed_format *f, tn_tensor *blocks);
tn_tensor *packed_blocks_scales(const struct packed_format *f, tn_tensor *blocks);

#endif

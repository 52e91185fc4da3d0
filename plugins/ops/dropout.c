/* SPDX-License-Identifier: MIT
 *
 * Dropout of single elements and of whole channels. */
#include "channels.h"
#include "formula.h"

#include <math.h>

static tn_status share_infer(tn_infer *infer, double p)
{
    if (!(p >= 0 && p <= 1))
        return tn_fail(TN_ERR_VALUE, "p: out of range, got %g; expected a probability from 0 to 1",
                       p);
    return tn__common_open(infer);
}

static tn_status image_infer(tn_infer *infer, double p)
{
    char text[TN__TEXT];

    if (infer->in[0]->ndim < 2)
        return tn_fail(TN_ERR_RUNTIME, "x: wrong shape, got %s; expected [N, C, ...]",
                       tn__common_text(text, tn__common_shape(infer->in[0])));
    return share_infer(infer, p);
}

/* 1 with probability 1 - p, else 0. The shape is that of x; with `channels` there is one number for
 * each channel. The order of memory does not change which elements are kept. */
static tn_tensor *kept(tn_tensor *x, double p, bool channels)
{
    int64_t shape[TN_MAX_DIMS];
    int32_t ndim = tn_tensor_ndim(x);
    tn_tensor *share;

    for (int32_t d = 0; d < ndim; d++)
        shape[d] = channels && d > 1 ? 1 : tn_tensor_size(x, d);
    share = tn_tensor_full((tn_ints){ shape, ndim }, 1 - p, tn_tensor_dtype(x),
                           tn_tensor_device(x));
    share = share == NULL ? NULL : tn_bernoulli(share);
    return !channels && tn__channels_image(tn_tensor_view(x)) ? tn__channels_copied(share) : share;
}

static tn_tensor *dropped(tn_tensor *x, double p, bool training, bool channels)
{
    if (!training || p == 0)
        return x;
    if (p == 1)
        return tn_mul_scalar(x, 0);
    return tn_mul(x, tn_mul_scalar(kept(x, p, channels), 1 / (1 - p)));
}

/* Dropout for self-normalizing networks: dropped elements become the value to which SELU saturates,
 * and the result is scaled and shifted so that mean and variance stay the same. */
static tn_tensor *alpha_dropped(tn_tensor *x, double p, bool training, bool channels)
{
    const double low = -1.7580993408473766;
    double a, b;
    tn_tensor *keep;

    if (!training || p == 0)
        return x;
    if (p == 1)
        return tn_mul_scalar(x, 0);
    a = 1 / sqrt((low * low * p + 1) * (1 - p));
    keep = kept(x, p, channels);
    b = -low * a * p;
    return tn_add(tn_mul(x, tn_mul_scalar(keep, a)),
                  tn_add_scalar(tn_mul_scalar(tn_add_scalar(keep, -1), -low * a), b));
}

INFER(dropout, share_infer(infer, o->p))
DECOMPOSE(dropout, dropped(x, o->p, o->training, false))
INFER(feature_dropout, image_infer(infer, o->p))
DECOMPOSE(feature_dropout, dropped(x, o->p, o->training, true))
INFER(alpha_dropout, share_infer(infer, o->p))
DECOMPOSE(alpha_dropout, alpha_dropped(x, o->p, o->training, false))
INFER(feature_alpha_dropout, image_infer(infer, o->p))
DECOMPOSE(feature_alpha_dropout, alpha_dropped(x, o->p, o->training, true))

TN__OP(dropout, .infer = dropout_infer, .decompose = dropout_decompose);
TN__OP(feature_dropout, .infer = feature_dropout_infer, .decompose = feature_dropout_decompose);
TN__OP(alpha_dropout, .infer = alpha_dropout_infer, .decompose = alpha_dropout_decompose);
TN__OP(feature_alpha_dropout, .infer = feature_alpha_dropout_infer,
       .decompose = feature_alpha_dropout_decompose);

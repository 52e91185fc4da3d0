/* SPDX-License-Identifier: MIT
 *
 * Losses computed element by element from two tensors, decomposed into other operators. */
#include "loss.h"

#include <math.h>

/* Fails unless x and target have the same shape. PyTorch would broadcast with a warning, but
 * different shapes are nearly always a mistake. */
static tn_status same_shape(const tn_infer *infer)
{
    const tn_view *x = infer->in[0], *target = infer->in[1];
    char text[TN__TEXT], text_t[TN__TEXT];
    bool same = x->ndim == target->ndim;

    for (int32_t i = 0; same && i < x->ndim; i++)
        same = x->shape[i] == target->shape[i];
    return same ? TN_OK
                : tn_fail(TN_ERR_VALUE,
                          "x or target: wrong shape, got %s and %s; expected the same shape",
                          tn__common_text(text, tn__common_shape(x)),
                          tn__common_text(text_t, tn__common_shape(target)));
}

EACH(mse_loss, TN_OK, tn_square(minus(in[0], in[1])), NULL);
EACH(l1_loss, TN_OK, tn_abs(minus(in[0], in[1])), NULL);

static tn_status positive(double value, const char *name, bool zero)
{
    return value > 0 || (zero && value == 0)
               ? TN_OK
               : tn_fail(TN_ERR_VALUE, "%s: out of range, got %g; expected %s", name, value,
                         zero ? "0 or more" : "more than 0");
}

/* d = x - target, clamped to [-bend, bend]. */
static tn_tensor *within(tn_tensor *d, double bend)
{
    return tn_clamp(d, -bend, bend);
}

/* Quadratic for |d| up to the bend, linear beyond: factor c (d - c / 2) with c = d clamped to the
 * bend. */
static tn_tensor *bent(tn_tensor *d, double bend, double factor)
{
    tn_tensor *c = within(d, bend);

    return times(tn_mul(c, tn_add(d, c, -0.5)), factor);
}

/* gx = gy factor c, divided by the number of elements if the loss is their mean. If the bend is 0,
 * c is the sign of d. */
static tn_status bent_derive(tn_derive *d, const char *reduction, double bend, double factor)
{
    tn_tensor *apart = minus(d->in[0], d->in[1]), *gy = d->gout[0];

    if (apart == NULL)
        return tn_error_last_code();
    if (is(reduction, "mean"))
        factor /= (double)tn_tensor_numel(apart);
    gy = tn_mul(bend == 0 ? tn_sign(apart) : within(apart, bend), times(gy, factor));
    if (tn__needs(d, 0))
        d->gin[0] = gy;
    if (tn__needs(d, 1))
        d->gin[1] = tn_neg(gy);
    return TN_OK;
}

static tn_status smooth_l1_loss_derive(tn_derive *d)
{
    const tn_smooth_l1_loss_options *o = d->options;

    return bent_derive(d, o->reduction, o->beta, o->beta == 0 ? 1 : 1 / o->beta);
}

static tn_status huber_loss_derive(tn_derive *d)
{
    const tn_huber_loss_options *o = d->options;

    return bent_derive(d, o->reduction, o->delta, 1);
}

EACH(smooth_l1_loss, positive(o->beta, "beta", true),
     o->beta == 0 ? tn_abs(minus(in[0], in[1])) : bent(minus(in[0], in[1]), o->beta, 1 / o->beta),
     smooth_l1_loss_derive);
EACH(huber_loss, positive(o->delta, "delta", false), bent(minus(in[0], in[1]), o->delta, 1),
     huber_loss_derive);

/* ---- binary cross entropy ---- */

static tn_status binary_cross_entropy_each_infer(tn_infer *infer)
{
    tn_status status = same_shape(infer);

    if (status == TN_OK)
        status = tn__common_promoted(infer, TN_MASK_FLOAT, "a float dtype");
    if (status == TN_OK)
        tn__common_like(infer, 0, 0, infer->dtype);
    return status;
}

static tn_status binary_cross_entropy_each_decompose(const tn_decompose *call)
{
    tn_tensor *yes = at_least(tn_ln(call->in[0]), -100),
              *no = at_least(tn_log1p(tn_neg(call->in[0])), -100);
    return tn__common_given(
        call->out, tn_neg(plus(tn_mul(call->in[1], yes), tn_mul(one_minus(call->in[1]), no))));
}

/* max(ln x, -100), whose derivative at 0 is 0; that of at_least(tn_ln(0), -100) is 0 / 0. */
static tn_tensor *limited_log(tn_tensor *x)
{
    tn_tensor *none = tn_eq(x, number(x, 0.0));

    return at_least(tn_masked_fill(tn_ln(tn_masked_fill(x, none, 1.0)), none, -100), -100);
}

static tn_status binary_cross_entropy_each_derive(tn_derive *d)
{
    tn_tensor *x = d->in[0], *gy = d->gout[0];

    if (tn__needs(d, 0))
        d->gin[0] = tn_mul(gy,
                           divide(minus(x, d->in[1]), at_least(tn_mul(x, one_minus(x)), 1e-12)));
    if (tn__needs(d, 1))
        d->gin[1] = tn_mul(gy, minus(limited_log(one_minus(x)), limited_log(x)));
    return TN_OK;
}

TN__OP(binary_cross_entropy_each, .infer = binary_cross_entropy_each_infer,
       .derive = binary_cross_entropy_each_derive,
       .decompose = binary_cross_entropy_each_decompose);

LOSS(binary_cross_entropy, same_shape(infer),
     weighted(tn_binary_cross_entropy_each(in[0], in[1]), in[2]));

static tn_tensor *with_logits(tn_tensor *x, tn_tensor *target, tn_tensor *pos)
{
    tn_tensor *log = tn_logsigmoid(x);

    if (pos != TN_NONE)
        log = tn_mul(log, add_number(tn_mul(add_number(pos, -1), target), 1));
    return minus(tn_mul(one_minus(target), x), log);
}

LOSS(binary_cross_entropy_with_logits, same_shape(infer),
     weighted(with_logits(in[0], in[1], in[3]), in[2]));

static tn_tensor *soft_margin(tn_tensor *x, tn_tensor *target)
{
    return tn_neg(plus(tn_mul(target, tn_logsigmoid(x)),
                       tn_mul(one_minus(target), tn_logsigmoid(tn_neg(x)))));
}

static tn_tensor *mean_of_classes(tn_tensor *y)
{
    int64_t last = -1;

    return tn_mean(y, TN_INTS(last));
}

LOSS(multilabel_soft_margin_loss, same_shape(infer),
     mean_of_classes(weighted(soft_margin(in[0], in[1]), in[2])));
EACH(soft_margin_loss, TN_OK, tn_log1p(tn_exp(tn_neg(tn_mul(in[1], in[0])))), NULL);

/* ---- losses of distributions ---- */

/* Returns x log x, 0 at 0 */
static tn_tensor *x_log_x(tn_tensor *x)
{
    tn_tensor *none = tn_eq(x, number(x, 0));

    return tn_where(none, number(x, 0), tn_mul(x, tn_ln(tn_masked_fill(x, none, 1.0))));
}

static tn_tensor *divergence(tn_tensor *x, tn_tensor *target, bool logarithms)
{
    if (logarithms)
        return tn_mul(tn_exp(target), minus(target, x));
    return minus(x_log_x(target), tn_mul(target, x));
}

static tn_status kl_div_infer(tn_infer *infer)
{
    const tn_kl_div_options *o = infer->options;

    return check(infer, is(o->reduction, "batchmean") ? "sum" : o->reduction);
}

static tn_status kl_div_decompose(const tn_decompose *call)
{
    const tn_kl_div_options *o = call->options;
    tn_tensor *y = divergence(call->in[0], call->in[1], o->log_target);
    if (!is(o->reduction, "batchmean"))
        return tn__common_given(call->out, reduced(y, o->reduction));
    y = tn_sum(y);
    return tn__common_given(call->out,
                            tn_tensor_ndim(call->in[0]) == 0
                                ? y
                                : divide(y, number(y, (double)tn_tensor_size(call->in[0], 0))));
}

TN__OP(kl_div, .infer = kl_div_infer, .decompose = kl_div_decompose);

static tn_tensor *stirling(tn_tensor *t)
{
    tn_tensor *low = tn_le(t, number(t, 1)), *safe = tn_masked_fill(t, low, 1.0);

    return tn_masked_fill(
        plus(minus(tn_mul(safe, tn_ln(safe)), safe), times(tn_ln(times(safe, 2 * M_PI)), 0.5)), low,
        0.0);
}

static tn_tensor *poisson(tn_tensor *x, tn_tensor *target, const tn_poisson_nll_loss_options *o)
{
    tn_tensor *y = o->log_input ? minus(tn_exp(x), tn_mul(target, x))
                                : minus(x, tn_mul(target, tn_ln(add_number(x, o->eps))));

    return o->full ? plus(y, stirling(target)) : y;
}

EACH(poisson_nll_loss, TN_OK, poisson(in[0], in[1], o), NULL);

/* PyTorch's rule: var has x's shape, or x's shape with one dimension set to 1, or x's shape without
 * the last dimension. */
static tn_status gaussian_check(const tn_infer *infer, double eps)
{
    const tn_view *x = infer->in[0], *var = infer->in[2];
    char text[TN__TEXT], text_v[TN__TEXT];
    int64_t others = 0;
    bool fits = var->ndim == x->ndim || var->ndim == x->ndim - 1;

    for (int32_t d = 0; fits && d < var->ndim; d++)
        if (var->shape[d] != x->shape[d]) {
            fits = var->ndim == x->ndim && var->shape[d] == 1;
            others++;
        }
    if (!fits || others > 1)
        return tn_fail(TN_ERR_VALUE,
                       "var: is of incorrect size, got %s for x %s; expected x's shape, the same "
                       "with one dimension of size 1, or without the last dimension",
                       tn__common_text(text_v, tn__common_shape(var)),
                       tn__common_text(text, tn__common_shape(x)));
    return positive(eps, "eps", true);
}

/* The variance is at least eps, but its gradient passes as if it were not clamped. */
static tn_tensor *gaussian(tn_tensor *const *in, const tn_gaussian_nll_loss_options *o)
{
    tn_tensor *var = in[2], *still, *y;

    if (tn_tensor_ndim(var) < tn_tensor_ndim(in[0]))
        var = tn_unsqueeze(var, -1);
    if (var == NULL)
        return NULL;
    still = tn_detach(var);
    var = plus(var, minus(at_least(still, o->eps), still));
    y = times(plus(tn_ln(var), divide(tn_square(minus(in[0], in[1])), var)), 0.5);
    return o->full ? add_number(y, 0.5 * log(2 * M_PI)) : y;
}

LOSS(gaussian_nll_loss, gaussian_check(infer, o->eps), gaussian(in, o));

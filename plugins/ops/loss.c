/* SPDX-License-Identifier: MIT
 *
 * Classification losses: negative log-likelihood and cross entropy, with or without class
 * weights. */
#include "loss.h"

static tn_status nll_loss_infer(tn_infer *infer)
{
    const tn_nll_loss_options *o = infer->options;
    const tn_view *x = infer->in[0], *target = infer->in[1];
    char text[TN__TEXT], text_t[TN__TEXT];
    tn_status status = check_reduction(o->reduction);

    if (status != TN_OK)
        return status;
    if (x->ndim != 2 || target->ndim != 1)
        return tn_fail(TN_ERR_RUNTIME,
                       "x or target: wrong shape, got %s and %s; expected [N, C] and [N]",
                       tn__common_text(text, tn__common_shape(x)),
                       tn__common_text(text_t, tn__common_shape(target)));
    if (x->shape[0] != target->shape[0])
        return tn_fail(TN_ERR_VALUE,
                       /* PyTorch's wording */
                       "Expected input batch_size (%lld) to match target batch_size (%lld).",
                       (long long)x->shape[0], (long long)target->shape[0]);
    infer->out[0].dtype = infer->out[1].dtype = tn_view_dtype(x);
    if (strcmp(o->reduction, "none") == 0) {
        infer->out[0].ndim = 1;
        infer->out[0].shape[0] = x->shape[0];
    }
    return TN_OK;
}

static tn_status nll_loss_derive(tn_derive *d)
{
    const tn_nll_loss_options *o = d->options;

    if (d->gout[0] == TN_NONE) { /* only the output `total` was used, a count without a gradient */
        d->gin[0] = TN_NONE;
        return TN_OK;
    }
    d->gin[0] = tn_nll_loss_grad(d->gout[0], d->in[1], d->out[1], d->in_meta[0].shape[1],
                                 o->reduction, o->ignore_index);
    return TN_OK;
}

static tn_status nll_loss_grad_infer(tn_infer *infer)
{
    const tn_nll_loss_grad_options *o = infer->options;
    const tn_view *gy = infer->in[0], *target = infer->in[1], *total = infer->in[2];
    char text[TN__TEXT], text_t[TN__TEXT], text_l[TN__TEXT];
    tn_status status = check_reduction(o->reduction);
    bool none;

    if (status != TN_OK)
        return status;
    none = strcmp(o->reduction, "none") == 0;
    if (o->classes < 0)
        return tn_fail(TN_ERR_RUNTIME, "classes: out of range, got %lld; expected 0 or more",
                       (long long)o->classes);
    if (target->ndim != 1 || gy->ndim != (none ? 1 : 0) ||
        (none && gy->shape[0] != target->shape[0]) || total->ndim != 0 ||
        tn_view_dtype(total) != tn_view_dtype(gy))
        return tn_fail(
            TN_ERR_RUNTIME,
            "gy, target or total: wrong shape or dtype, got %s (%s), %s and %s (%s); with "
            "reduction %s expected %s, [N] and [] of gy's dtype",
            tn__common_text(text, tn__common_shape(gy)), tn_dtype_name(tn_view_dtype(gy)),
            tn__common_text(text_t, tn__common_shape(target)),
            tn__common_text(text_l, tn__common_shape(total)), tn_dtype_name(tn_view_dtype(total)),
            o->reduction, none ? "[N]" : "[]");
    infer->out[0].dtype = tn_view_dtype(gy);
    infer->out[0].ndim = 2;
    infer->out[0].shape[0] = target->shape[0];
    infer->out[0].shape[1] = o->classes;
    return TN_OK;
}

/* nll_loss_grad is linear in gy, so the gradient with respect to gy is nll_loss of the incoming
 * gradient. */
static tn_status nll_loss_grad_derive(tn_derive *d)
{
    const tn_nll_loss_grad_options *o = d->options;
    tn_tensor *total;

    return tn_nll_loss(d->gout[0], d->in[1], &d->gin[0], &total, o->reduction, o->ignore_index);
}

static tn_status cross_entropy_infer(tn_infer *infer)
{
    const tn_cross_entropy_options *o = infer->options;
    const tn_view *x = infer->in[0], *target = infer->in[1];
    char text[TN__TEXT], text_t[TN__TEXT];
    tn_status status = check_reduction(o->reduction);
    bool fits = x->ndim >= 1 && target->ndim == x->ndim - 1;

    if (status != TN_OK)
        return status;
    if (!(o->label_smoothing >= 0 && o->label_smoothing <= 1))
        return tn_fail(
            TN_ERR_RUNTIME,
            /* PyTorch's wording */ "label_smoothing must be between 0.0 and 1.0. Got: %g",
            o->label_smoothing);
    if (fits && x->ndim >= 2 && x->shape[0] != target->shape[0])
        return tn_fail(TN_ERR_VALUE,
                       /* PyTorch's wording */
                       "Expected input batch_size (%lld) to match target batch_size (%lld).",
                       (long long)x->shape[0], (long long)target->shape[0]);
    for (int32_t d = 1; fits && d < target->ndim; d++)
        fits = target->shape[d] == x->shape[d + 1];
    if (!fits)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x or target: wrong shape, got %s and %s; expected a target of x's shape without the "
            "class dimension (dimension 1, or 0 if x is a vector)",
            tn__common_text(text, tn__common_shape(x)),
            tn__common_text(text_t, tn__common_shape(target)));
    infer->out[0].dtype = tn_view_dtype(x);
    if (strcmp(o->reduction, "none") == 0)
        tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(target));
    return TN_OK;
}

/* Returns x [N, C, d1, ...] with the classes last and all other dimensions merged: [rows, C]. */
static tn_tensor *rows_of(tn_tensor *x, int64_t classes, int64_t rows)
{
    int64_t order[TN_MAX_DIMS];
    int32_t ndim = tn_tensor_ndim(x);

    if (ndim > 2) {
        order[0] = 0;
        for (int32_t d = 2; d < ndim; d++)
            order[d - 1] = d;
        order[ndim - 1] = 1;
        x = tn_permute(x, (tn_ints){ order, ndim });
    }
    return ndim == 2 ? x : tn_reshape(x, TN_SHAPE(rows, classes));
}

/* Label smoothing: returns (1 - e) x + e / C * sum_c x. nll_loss of the result is the smoothed
 * loss. */
static tn_tensor *smoothed(tn_tensor *x, double e, int64_t classes)
{
    int64_t dims[1] = { 1 };

    return tn_add(tn_mul_scalar(x, 1.0 - e),
                  tn_mul_scalar(tn_sum(x, ((tn_ints){ dims, 1 }), true), e / (double)classes));
}

static tn_status cross_entropy_decompose(const tn_decompose *call)
{
    const tn_cross_entropy_options *o = call->options;
    int32_t ndim = tn_tensor_ndim(call->in[0]);
    int64_t classes = tn_tensor_size(call->in[0], ndim == 1 ? 0 : 1);
    int64_t rows = tn_tensor_numel(call->in[1]);
    tn_tensor *x = rows_of(tn_log_softmax(call->in[0], ndim == 1 ? 0 : 1), classes, rows);
    tn_tensor *target = ndim == 2 ? call->in[1] : tn_reshape(call->in[1], TN_SHAPE(rows));
    tn_tensor *y, *total;
    tn_status status;
    if (o->label_smoothing > 0)
        x = smoothed(x, o->label_smoothing, classes);
    status = tn_nll_loss(x, target, &y, &total, o->reduction, o->ignore_index);
    if (status != TN_OK)
        return status;
    if (ndim != 2 && strcmp(o->reduction, "none") == 0)
        y = tn_reshape(y, tn_tensor_shape(call->in[1]));
    call->out[0] = y;
    return y != NULL ? TN_OK : tn_error_last_code();
}
/* ---- with a weight for each class ---- */

static tn_status weighted_classes(const tn_infer *infer, bool shares)
{
    const tn_view *x = infer->in[0], *target = infer->in[1], *weight = infer->in[2];
    char text[TN__TEXT], text_t[TN__TEXT];
    int32_t at = x->ndim > 1 ? 1 : 0;
    bool fits = x->ndim >= 1 && target->ndim == x->ndim - (shares ? 0 : 1);

    for (int32_t d = 0; fits && d < x->ndim; d++)
        fits = shares   ? target->shape[d] == x->shape[d]
               : d < at ? target->shape[d] == x->shape[d]
                        : d == at || target->shape[d - 1] == x->shape[d];
    if (!fits)
        return tn_fail(TN_ERR_RUNTIME,
                       "x or target: wrong shape, got %s and %s; expected a target of x's shape%s",
                       tn__common_text(text, tn__common_shape(x)),
                       tn__common_text(text_t, tn__common_shape(target)),
                       shares ? "" : " without the class dimension");
    if (weight != NULL && (weight->ndim != 1 || weight->shape[0] != x->shape[at]))
        return tn_fail(TN_ERR_RUNTIME,
                       "weight: wrong shape, got %s; expected [%lld], one for each class",
                       tn__common_text(text, tn__common_shape(weight)), (long long)x->shape[at]);
    return TN_OK;
}

static bool is_share(tn_dtype dtype)
{
    return (TN_MASK_FLOAT & TN_BIT(dtype)) != 0;
}

/* Returns the weight [C] with a shape that broadcasts to x, with the classes in dimension `at`. */
static tn_tensor *along_classes(tn_tensor *weight, tn_tensor *x, int64_t at)
{
    int64_t shape[TN_MAX_DIMS];
    int32_t ndim = tn_tensor_ndim(x);

    for (int32_t d = 0; d < ndim; d++)
        shape[d] = d == at ? tn_tensor_size(x, d) : 1;
    return tn_reshape(weight, (tn_ints){ shape, ndim });
}

/* Returns the loss of log-probabilities x for targets given as class indices, each with the weight
 * of its class. `smoothing` is the share of the loss that is spread over all classes. */
static tn_tensor *by_index(tn_tensor *x, tn_tensor *target, tn_tensor *weight, int64_t ignore,
                           double smoothing, const char *reduction)
{
    int64_t at = tn_tensor_ndim(x) > 1 ? 1 : 0, classes = tn_tensor_size(x, at);
    tn_tensor *out = tn_eq(
        target, tn_tensor_full(TN_SHAPE(), (double)ignore, TN_I64, tn_tensor_device(target)));
    tn_tensor *safe = tn_masked_fill(target, out, 0.0), *each, *share, *y;

    /* ignored targets contribute 0 to the loss and to the gradient */
    y = tn_masked_fill(tn_neg(tn_squeeze(tn_gather(x, tn_unsqueeze(safe, at), at), TN_INTS(at))),
                       out, 0.0);
    if (y == NULL)
        return NULL;
    share = weight == TN_NONE
                ? tn__scalar_number(x, 1.0)
                : tn_reshape(tn_index_select(weight, tn_reshape(safe, TN_SHAPE(-1)), 0),
                             tn_tensor_shape(target));
    share = tn_masked_fill(tn_expand(share, tn_tensor_shape(target)), out, 0.0);
    each = tn_mul(y, share);
    if (smoothing > 0) {
        tn_tensor *all = tn_neg(
            sum_dim(weight == TN_NONE ? x : tn_mul(x, along_classes(weight, x, at)), at));

        each = plus(times(each, 1 - smoothing),
                    times(tn_masked_fill(all, out, 0.0), smoothing / (double)classes));
    }
    if (is(reduction, "mean"))
        return divide(tn_sum(each), tn_sum(share));
    return reduced(each, reduction);
}

/* Returns the loss of log-probabilities x for targets given as a probability for each class. */
static tn_tensor *by_share(tn_tensor *x, tn_tensor *target, tn_tensor *weight, double smoothing,
                           const char *reduction)
{
    int64_t at = tn_tensor_ndim(x) > 1 ? 1 : 0, classes = tn_tensor_size(x, at);
    double samples = (double)tn_tensor_numel(x) / (double)(classes > 0 ? classes : 1);
    tn_tensor *y;

    if (smoothing > 0)
        target = add_number(times(target, 1 - smoothing), smoothing / (double)classes);
    y = tn_mul(x, target);
    if (weight != TN_NONE)
        y = tn_mul(y, along_classes(weight, x, at));
    y = tn_neg(sum_dim(y, at));
    return is(reduction, "mean") ? times(tn_sum(y), 1.0 / samples) : reduced(y, reduction);
}

static tn_status cross_entropy_weighted_infer(tn_infer *infer)
{
    const tn_cross_entropy_weighted_options *o = infer->options;
    tn_dtype dtype = tn_view_dtype(infer->in[1]);
    tn_status status;

    if (is_share(dtype)) /* probabilities take part in type promotion, indices do not */
        infer->dtype = tn_dtype_promote(infer->dtype, dtype);
    status = check(infer, o->reduction);
    if (status == TN_OK && dtype != TN_I64 && !is_share(dtype))
        return tn_fail(TN_ERR_TYPE,
                       "target: wrong dtype, got %s; expected int64 for indices, or a float dtype "
                       "for probabilities",
                       tn_dtype_name(dtype));
    if (status == TN_OK && !(o->label_smoothing >= 0 && o->label_smoothing <= 1))
        return tn_fail(TN_ERR_VALUE, "label_smoothing: out of range, got %g; expected 0 to 1",
                       o->label_smoothing);
    if (status == TN_OK && is_share(dtype) && o->ignore_index >= 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "ignore_index: not supported, got %lld and probabilities as target, none of "
                       "which is an index; expected a negative number, or indices as target",
                       (long long)o->ignore_index);
    return status == TN_OK ? weighted_classes(infer, is_share(dtype)) : status;
}

static tn_status cross_entropy_weighted_decompose(const tn_decompose *call)
{
    const tn_cross_entropy_weighted_options *o = call->options;
    tn_tensor *x = tn_log_softmax(call->in[0], tn_tensor_ndim(call->in[0]) > 1 ? 1 : 0);
    if (x == NULL)
        return tn_error_last_code();
    if (!is_share(tn_tensor_dtype(call->in[1])) && o->label_smoothing == 0)
        return tn__common_given(call->out, tn_nll_loss_weighted(x, call->in[1], call->in[2],
                                                                o->reduction, o->ignore_index));
    return tn__common_given(
        call->out, is_share(tn_tensor_dtype(call->in[1]))
                       ? by_share(x, call->in[1], call->in[2], o->label_smoothing, o->reduction)
                       : by_index(x, call->in[1], call->in[2], o->ignore_index, o->label_smoothing,
                                  o->reduction));
}

static tn_status nll_loss_weighted_infer(tn_infer *infer)
{
    const tn_nll_loss_weighted_options *o = infer->options;
    tn_status status = check_reduction(o->reduction);

    if (status == TN_OK)
        status = weighted_classes(infer, false);
    tn__common_plain(&infer->out[0], infer->dtype,
                     strcmp(o->reduction, "none") == 0 ? tn__common_shape(infer->in[1])
                                                       : (tn_ints){ NULL, 0 });
    return status;
}

static tn_status nll_loss_weighted_decompose(const tn_decompose *call)
{
    const tn_nll_loss_weighted_options *o = call->options;
    return tn__common_given(call->out, by_index(call->in[0], call->in[1], call->in[2],
                                                o->ignore_index, 0, o->reduction));
}

TN__OP(nll_loss, .infer = nll_loss_infer, .derive = nll_loss_derive);
TN__OP(nll_loss_grad, .infer = nll_loss_grad_infer, .derive = nll_loss_grad_derive);
TN__OP(cross_entropy, .infer = cross_entropy_infer, .decompose = cross_entropy_decompose);

TN__OP(cross_entropy_weighted, .infer = cross_entropy_weighted_infer,
       .decompose = cross_entropy_weighted_decompose);
TN__OP(nll_loss_weighted, .infer = nll_loss_weighted_infer,
       .decompose = nll_loss_weighted_decompose);

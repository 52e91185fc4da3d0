/* SPDX-License-Identifier: MIT
 *
 * Losses. */
#include "common.h"

static tn_status check_reduction(const char *reduction)
{
    if (reduction != NULL && (strcmp(reduction, "none") == 0 || strcmp(reduction, "mean") == 0 ||
                              strcmp(reduction, "sum") == 0))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s is not a valid value for reduction; none, mean and sum are",
                   reduction != NULL ? reduction : "None");
}

static tn_status nll_loss_infer(tn_infer *infer)
{
    const tn_nll_loss_options *o = infer->options;
    const tn_view *x = infer->in[0], *target = infer->in[1];
    char text[TN__TEXT], text_t[TN__TEXT];
    tn_status status = check_reduction(o->reduction);

    if (status != TN_OK)
        return status;
    if (x->ndim != 2 || target->ndim != 1)
        return tn_fail(TN_ERR_RUNTIME, "x %s and target %s: they have to be [N, C] and [N]",
                       tn__common_text(text, tn__common_shape(x)),
                       tn__common_text(text_t, tn__common_shape(target)));
    if (x->shape[0] != target->shape[0])
        return tn_fail(TN_ERR_VALUE,
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
    tn_nll_loss_grad_options options = TN_NLL_LOSS_GRAD_OPTIONS;

    if (d->gout[0] == TN_NONE) { /* only `total` was used: it is a count */
        d->gin[0] = TN_NONE;
        return TN_OK;
    }
    options.reduction = o->reduction;
    options.ignore_index = o->ignore_index;
    d->gin[0] = tn_nll_loss_grad(d->gout[0], d->in[1], d->out[1], d->in_meta[0].shape[1], &options);
    return TN_OK;
}

static tn_status nll_loss_grad_infer(tn_infer *infer)
{
    const tn_nll_loss_grad_options *o = infer->options;
    const tn_view *gy = infer->in[0], *target = infer->in[1], *total = infer->in[2];
    char text[TN__TEXT], text_t[TN__TEXT];
    tn_status status = check_reduction(o->reduction);
    bool none;

    if (status != TN_OK)
        return status;
    none = strcmp(o->reduction, "none") == 0;
    if (target->ndim != 1 || o->classes < 0 || gy->ndim != (none ? 1 : 0) ||
        (none && gy->shape[0] != target->shape[0]) || total->ndim != 0 ||
        tn_view_dtype(total) != tn_view_dtype(gy))
        return tn_fail(
            TN_ERR_RUNTIME,
            "gy %s (%s), target %s, total of %s: with reduction %s they have to be %s and [N], "
            "total [] of gy's dtype",
            tn__common_text(text, tn__common_shape(gy)), tn_dtype_name(tn_view_dtype(gy)),
            tn__common_text(text_t, tn__common_shape(target)), tn_dtype_name(tn_view_dtype(total)),
            o->reduction, none ? "[N]" : "[]");
    infer->out[0].dtype = tn_view_dtype(gy);
    infer->out[0].ndim = 2;
    infer->out[0].shape[0] = target->shape[0];
    infer->out[0].shape[1] = o->classes;
    return TN_OK;
}

/* Linear in gy: what nll_loss does to the gradient that comes. */
static tn_status nll_loss_grad_derive(tn_derive *d)
{
    const tn_nll_loss_grad_options *o = d->options;
    tn_nll_loss_options options = TN_NLL_LOSS_OPTIONS;
    tn_tensor *total;

    options.reduction = o->reduction;
    options.ignore_index = o->ignore_index;
    return tn_nll_loss(d->gout[0], d->in[1], &options, &d->gin[0], &total);
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
        return tn_fail(TN_ERR_RUNTIME, "label_smoothing must be between 0.0 and 1.0. Got: %g",
                       o->label_smoothing);
    if (fits && x->ndim >= 2 && x->shape[0] != target->shape[0])
        return tn_fail(TN_ERR_VALUE,
                       "Expected input batch_size (%lld) to match target batch_size (%lld).",
                       (long long)x->shape[0], (long long)target->shape[0]);
    for (int32_t d = 1; fits && d < target->ndim; d++)
        fits = target->shape[d] == x->shape[d + 1];
    if (!fits)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x %s and target %s: target has to have the shape of x without its class dimension "
            "(dimension 1, or 0 of a vector)",
            tn__common_text(text, tn__common_shape(x)),
            tn__common_text(text_t, tn__common_shape(target)));
    infer->out[0].dtype = tn_view_dtype(x);
    if (strcmp(o->reduction, "none") == 0)
        tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(target));
    return TN_OK;
}

/* [N, d1, ..., C] as rows of classes. */
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

/* (1 - e) x + e / C * sum_c x, which at the target is what label smoothing asks for. */
static tn_tensor *smoothed(tn_tensor *x, double e, int64_t classes)
{
    tn_sum_options sum = TN_SUM_OPTIONS;
    int64_t dims[1] = { 1 };

    sum.dims = (tn_ints){ dims, 1 };
    sum.keepdim = true;
    return tn_add(tn_mul_scalar(x, 1.0 - e), tn_mul_scalar(tn_sum(x, &sum), e / (double)classes),
                  NULL);
}

static tn_status cross_entropy_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                         tn_tensor **out)
{
    const tn_cross_entropy_options *o = options;
    tn_nll_loss_options loss = TN_NLL_LOSS_OPTIONS;
    int32_t ndim = tn_tensor_ndim(in[0]);
    int64_t classes = tn_tensor_size(in[0], ndim == 1 ? 0 : 1);
    int64_t rows = tn_tensor_numel(in[1]);
    tn_tensor *x = rows_of(tn_log_softmax(in[0], ndim == 1 ? 0 : 1), classes, rows);
    tn_tensor *target = ndim == 2 ? in[1] : tn_reshape(in[1], TN_SHAPE(rows));
    tn_tensor *y, *total;
    tn_status status;

    (void)n_in;
    if (o->label_smoothing > 0)
        x = smoothed(x, o->label_smoothing, classes);
    loss.reduction = o->reduction;
    loss.ignore_index = o->ignore_index;
    status = tn_nll_loss(x, target, &loss, &y, &total);
    if (status != TN_OK)
        return status;
    if (ndim != 2 && strcmp(o->reduction, "none") == 0)
        y = tn_reshape(y, tn_tensor_shape(in[1]));
    out[0] = y;
    return y != NULL ? TN_OK : tn_error_last()->code;
}

const tn_op_def tn__op_nll_loss = { TN_HEAD(tn_op_def), TN_SCHEMA_NLL_LOSS, .infer = nll_loss_infer,
                                    .derive = nll_loss_derive };
const tn_op_def tn__op_nll_loss_grad = { TN_HEAD(tn_op_def), TN_SCHEMA_NLL_LOSS_GRAD,
                                         .infer = nll_loss_grad_infer,
                                         .derive = nll_loss_grad_derive };
const tn_op_def tn__op_cross_entropy = { TN_HEAD(tn_op_def), TN_SCHEMA_CROSS_ENTROPY,
                                         .infer = cross_entropy_infer,
                                         .decompose = cross_entropy_decompose };

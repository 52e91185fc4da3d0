/* SPDX-License-Identifier: MIT
 *
 * The negative log-likelihood loss and its gradient. */
#include <string.h>

#include "base/dtype.h"
#include "base/span.h"
#include "op/copy.h"

enum reduction { NONE, MEAN, SUM };

static tn_status read_reduction(const tn_call *call, const char *text, enum reduction *out)
{
    static const char *const names[] = { "none", "mean", "sum" };
    for (int i = 0; i < 3; i++) {
        if (text && strcmp(text, names[i]) == 0) {
            *out = (enum reduction)i;
            return TN_OK;
        }
    }
    return tn_fail(TN_ERR_VALUE, "%s: reduction: unknown mode, got %q; expected none, mean or sum",
                   call->op, text ? text : "");
}

static double get(const tn_view *view, int64_t offset)
{
    double value;
    tn__dtype_load(tn_view_dtype(view),
                   TN__F64)(1, tn__view_at(view) + offset * tn__view_item(view), 0, &value);
    return value;
}

static void put(const tn_view *view, int64_t offset, double value)
{
    tn__dtype_store(TN__F64, tn_view_dtype(view))(
        1, &value, tn__view_at(view) + offset * tn__view_item(view), 0);
}

static int64_t target_at(const tn_view *target, int64_t n)
{
    int64_t value;
    memcpy(&value, tn__view_at(target) + n * target->strides[0] * 8, sizeof value);
    return value;
}

static tn_status bad_target(const tn_call *call, int64_t target, int64_t n, int64_t classes)
{
    return tn_fail(TN_ERR_INDEX, "%s: target[%lld]: out of range, got %lld; expected 0 to %lld",
                   call->op, (long long)n, (long long)target, (long long)classes - 1);
}

/* Returns one element; float32 is read without a call of a conversion function. */
static inline double number_at(const tn_view *view, int64_t offset)
{
    const char *at = tn__view_at(view);
    if (view->dtype.code == 2 && view->dtype.bits == 32)
        return ((const float *)(const void *)at)[offset];
    return get(view, offset);
}

static tn_status run_nll_loss(const tn_call *call)
{
    const tn_nll_loss_options *options = call->options;
    const tn_view *x = call->in[0], *target = call->in[1], *y = call->out[0], *total = call->out[1];
    enum reduction reduction = MEAN;
    tn_status status = read_reduction(call, options->reduction, &reduction);
    if (status != TN_OK)
        return status;
    int64_t classes = x->shape[1], counted = 0;
    double sum = 0;
    for (int64_t n = 0; n < x->shape[0]; n++) {
        int64_t c = target_at(target, n);
        double loss = 0;
        if (c != options->ignore_index) {
            if (c < 0 || c >= classes)
                return bad_target(call, c, n, classes);
            loss = -number_at(x, n * x->strides[0] + c * x->strides[1]);
            counted++;
        }
        sum += loss;
        if (reduction == NONE)
            put(y, n * y->strides[0], loss);
    }
    if (reduction == SUM)
        put(y, 0, sum);
    else if (reduction == MEAN)
        put(y, 0, counted ? sum / (double)counted : (double)__builtin_nan(""));
    put(total, 0, (double)counted);
    return TN_OK;
}

static tn_status run_nll_loss_grad(const tn_call *call)
{
    const tn_nll_loss_grad_options *options = call->options;
    const tn_view *gy = call->in[0], *target = call->in[1], *total = call->in[2],
                  *gx = call->out[0];
    enum reduction reduction = MEAN;
    tn_status status = read_reduction(call, options->reduction, &reduction);
    if (status == TN_OK)
        status = tn__copy_zero(gx);
    if (status != TN_OK)
        return status;
    double all = 0;
    if (reduction == SUM)
        all = -get(gy, 0);
    else if (reduction == MEAN)
        all = -get(gy, 0) / get(total, 0);
    for (int64_t n = 0; n < gx->shape[0]; n++) {
        int64_t c = target_at(target, n);
        if (c == options->ignore_index)
            continue;
        if (c < 0 || c >= gx->shape[1])
            return bad_target(call, c, n, gx->shape[1]);
        double g = reduction == NONE ? -get(gy, n * gy->strides[0]) : all;
        put(gx, n * gx->strides[0] + c * gx->strides[1], g);
    }
    return TN_OK;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(nll_loss, TN__FLOATS),
    TN__KERNEL(nll_loss_grad, TN__FLOATS),
};
TN__KERNEL_TABLE(loss_nll);

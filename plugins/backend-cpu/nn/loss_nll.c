/* SPDX-License-Identifier: MIT
 *
 * The negative log-likelihood loss, its gradient, and the loss with a weight for each class. */
#include <string.h>

#include "base/dtype.h"
#include "base/scratch.h"
#include "base/span.h"
#include "op/copy.h"
#include "simd/simd.h"

enum { SEGMENT = 65536 }; /* numbers in a partial sum, which is then added to the total */

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
    return tn_fail(TN_ERR_VALUE, "%s: reduction: unknown, got %q; expected none, mean or sum",
                   call->op, text);
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
    return tn_fail(TN_ERR_INDEX,
                   "%s: target[%lld]: out of range, got %lld; expected 0 to %lld or ignore_index",
                   call->op, (long long)n, (long long)target, (long long)classes - 1);
}

/* Returns one element; float32 and float64 are read without a call of a conversion function. */
static inline double number_at(const tn_view *view, int64_t offset)
{
    const char *at = tn__view_at(view);
    if (view->dtype.code == 2 && view->dtype.bits == 32)
        return ((const float *)(const void *)at)[offset];
    if (view->dtype.code == 2 && view->dtype.bits == 64)
        return ((const double *)(const void *)at)[offset];
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

/* ---- with a weight for each class ------------------------------------------------------------ */

static bool supports_nll_loss_weighted(const tn_call *call, char *reason, size_t size)
{
    const tn_view *x = call->in[0], *weight = call->in[2];
    tn_dtype dtype = tn_view_dtype(x);
    if (x->ndim == 2 && (!weight || tn_view_dtype(weight) == dtype))
        return true;
    tn_snprint(reason, size, "expected x with two dimensions and weights of its dtype");
    return false;
}

/* Sums n numbers of float32 or float64, in float64, and rounds the sum to that type, as the
 * operator sum does. */
static double sum_of(bool single, int64_t n, const void *x)
{
    double sum = 0;
    for (int64_t at = 0; at < n; at += SEGMENT) {
        int64_t count = n - at < SEGMENT ? n - at : SEGMENT;
        sum += single ? tn__simd.reduction->sum_f32(count, (const float *)x + at)
                      : tn__simd.reduction->sum_f64(count, (const double *)x + at);
    }
    return single ? (double)(float)sum : sum;
}

/* Writes the loss and the weight of each row, which is 0 if the target is ignored. */
static tn_status lose_rows(const tn_call *call, int64_t ignored, void *losses, void *weights)
{
    const tn_view *x = call->in[0], *target = call->in[1], *weight = call->in[2];
    int64_t classes = x->shape[1];
    bool single = tn_view_dtype(x) == TN_F32;
    for (int64_t n = 0; n < x->shape[0]; n++) {
        int64_t c = target_at(target, n);
        double loss = 0, share = 0;
        if (c != ignored) {
            if (c < 0 || c >= classes)
                return bad_target(call, c, n, classes);
            share = weight ? number_at(weight, c * weight->strides[0]) : 1;
            loss = -number_at(x, n * x->strides[0] + c * x->strides[1]) * share;
        }
        if (single) {
            ((float *)losses)[n] = (float)loss;
            ((float *)weights)[n] = (float)share;
        } else {
            ((double *)losses)[n] = loss;
            ((double *)weights)[n] = share;
        }
    }
    return TN_OK;
}

static tn_status run_nll_loss_weighted(const tn_call *call)
{
    const tn_nll_loss_weighted_options *options = call->options;
    const tn_view *x = call->in[0], *y = call->out[0];
    enum reduction reduction = MEAN;
    int64_t rows = x->shape[0];
    bool single = tn_view_dtype(x) == TN_F32;
    tn_status status = read_reduction(call, options->reduction, &reduction);
    if (status != TN_OK)
        return status;
    double *losses = tn__scratch_take((size_t)(2 * rows + 1) * sizeof *losses);
    if (!losses)
        return TN_ERR_MEMORY;
    double *weights = losses + rows;
    status = lose_rows(call, options->ignore_index, losses, weights);
    if (status == TN_OK && reduction == NONE) {
        for (int64_t n = 0; n < rows; n++)
            put(y, n * y->strides[0], single ? (double)((float *)losses)[n] : losses[n]);
    } else if (status == TN_OK) {
        double sum = sum_of(single, rows, losses);
        if (reduction == MEAN)
            sum /= sum_of(single, rows, weights);
        put(y, 0, sum);
    }
    tn__scratch_give(losses);
    return status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(nll_loss, TN__FLOATS),
    TN__KERNEL(nll_loss_grad, TN__FLOATS),
    TN__KERNEL_SUPPORTS(nll_loss_weighted, TN__F32_F64, supports_nll_loss_weighted),
};
TN__KERNEL_TABLE(loss_nll);

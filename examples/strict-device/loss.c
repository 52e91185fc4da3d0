/* SPDX-License-Identifier: MIT
 *
 * The kernels of nll_loss and its derivative on the strict device. strict_work.whole has the
 * options as integers: whole[0] is the reduction, whole[1] the class index to ignore. */
#include <string.h>

#include "strict.h"

enum { NONE, MEAN, SUM };

static tn_status read_reduction(const tn_call *call, const char *text, int64_t *out)
{
    static const char *const names[] = { "none", "mean", "sum" };
    for (int i = 0; i < 3; i++) {
        if (text && strcmp(text, names[i]) == 0) {
            *out = i;
            return TN_OK;
        }
    }
    return tn_fail(TN_ERR_VALUE, "%s: reduction: unknown, got %q; expected none, mean or sum",
                   call->op, text);
}

/* Reads target n. Returns false if the target is to be ignored, or is out of range; the latter also
 * sets `status`. */
static bool target(struct strict_work *work, const struct strict_view *targets, int64_t n,
                   int64_t classes, int64_t *c, tn_status *status)
{
    *c = strict_get_int(work, targets, n * targets->strides[0]);
    if (*c == work->whole[1])
        return false;
    if (*c >= 0 && *c < classes)
        return true;
    if (*status == TN_OK)
        *status = tn_fail(TN_ERR_INDEX,
                          "%s: target[%lld]: out of range, got %lld; expected 0 to %lld", work->op,
                          (long long)n, (long long)*c, (long long)classes - 1);
    return false;
}

static tn_status nll_loss_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0], *total = &work->view[1], *x = &work->view[2],
                             *t = &work->view[3];
    tn_status status = TN_OK;
    double sum = 0, counted = 0;
    for (int64_t n = 0; n < x->shape[0]; n++) {
        int64_t c;
        double loss = 0;
        if (target(work, t, n, x->shape[1], &c, &status)) {
            loss = -strict_get(work, x, n * x->strides[0] + c * x->strides[1]);
            counted++;
        }
        sum += loss;
        if (work->whole[0] == NONE)
            strict_set(work, y, n * y->strides[0], loss);
    }
    if (work->whole[0] != NONE)
        strict_set(work, y, 0, work->whole[0] == MEAN ? sum / counted : sum);
    strict_set(work, total, 0, counted);
    return status;
}

static tn_status fill_nll_loss(const tn_call *call, struct strict_work *work)
{
    const tn_nll_loss_options *options = call->options;
    work->whole[1] = options->ignore_index;
    return read_reduction(call, options->reduction, &work->whole[0]);
}

static tn_status nll_loss_grad_body(struct strict_work *work)
{
    const struct strict_view *gx = &work->view[0], *gy = &work->view[1], *t = &work->view[2],
                             *total = &work->view[3];
    tn_status status = TN_OK;
    for (int64_t n = 0; n < gx->shape[0]; n++) {
        int64_t c;
        for (int64_t k = 0; k < gx->shape[1]; k++)
            strict_set(work, gx, n * gx->strides[0] + k * gx->strides[1], 0);
        if (!target(work, t, n, gx->shape[1], &c, &status))
            continue;
        double g = -strict_get(work, gy, work->whole[0] == NONE ? n * gy->strides[0] : 0);
        if (work->whole[0] == MEAN)
            g /= strict_get(work, total, 0);
        strict_set(work, gx, n * gx->strides[0] + c * gx->strides[1], g);
    }
    return status;
}

static tn_status fill_nll_loss_grad(const tn_call *call, struct strict_work *work)
{
    const tn_nll_loss_grad_options *options = call->options;
    work->whole[1] = options->ignore_index;
    return read_reduction(call, options->reduction, &work->whole[0]);
}

STRICT_KERNEL(nll_loss)
{
    return strict_enqueue(call, nll_loss_body, fill_nll_loss);
}
STRICT_KERNEL(nll_loss_grad)
{
    return strict_enqueue(call, nll_loss_grad_body, fill_nll_loss_grad);
}

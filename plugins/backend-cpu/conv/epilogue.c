/* SPDX-License-Identifier: MIT
 *
 * What follows a convolution, applied to parts of its result. */
#include "conv/epilogue.h"

#include <string.h>

#include "base/scratch.h"
#include "base/span.h"
#include "matmul/gemm.h"
#include "nn/norm.h"
#include "op/copy.h"
#include "simd/simd.h"

enum { MEAN = 3, VAR, WEIGHT, BIAS, RESIDUAL };

bool tn__epilogue_supports(const tn_call *call, char *reason, size_t size)
{
    tn_dtype dtype = call->dtype;
    bool good = true;

    for (int i = MEAN; good && i <= BIAS; i++)
        good = call->in[i] == NULL ||
               (tn_view_dtype(call->in[i]) == dtype && tn__span_view_dense(call->in[i]));
    if (!good) {
        tn_snprint(reason, size, "the tensors of the norm have another dtype, or gaps");
        return false;
    }
    /* A sum may give the result another order of strides than the convolution has, and then another
     * algorithm would compute it. */
    if (call->in[RESIDUAL] != NULL &&
        (call->out == NULL || call->out[0] == NULL || !tn__norm_is_channels_last(call->out[0]))) {
        tn_snprint(reason, size, "the sum changes the order of the strides");
        return false;
    }
    return true;
}

static tn_status read_norm(struct tn__epilogue *e, const tn_call *call, double eps)
{
    const int64_t channels = call->out[0]->shape[1];
    char *shift;

    if (call->in[MEAN] == NULL)
        return TN_OK;
    e->owned = tn__scratch_take((size_t)(2 * channels * e->item));
    if (!e->owned)
        return TN_ERR_MEMORY;
    shift = (char *)e->owned + channels * e->item;
    tn__norm_scale_shift(e->ct, call->in + MEAN, eps, channels, e->owned, shift);
    e->rows.scale = e->owned;
    e->rows.shift = shift;
    return TN_OK;
}

static void read_activation(struct tn__epilogue *e, const char *name)
{
    e->rows.limits = tn__no_limits;
    if (strcmp(name, "relu") == 0 || strcmp(name, "relu6") == 0)
        e->rows.limits.low = 0;
    if (strcmp(name, "relu6") == 0)
        e->rows.limits.high = 6;
    if (strcmp(name, "silu") == 0)
        e->loop = tn__loop_of(TN__EW_silu, e->ct);
    else if (strcmp(name, "hardswish") == 0)
        e->loop = tn__loop_of(TN__EW_hardswish, e->ct);
}

/* Sets e->residual to a contiguous copy of the planes of the residual. */
static tn_status take_planes(struct tn__epilogue *e, const tn_view *residual)
{
    int64_t strides[TN_MAX_DIMS], next = 1;
    tn_view plain = *residual;
    tn_status status;

    for (int32_t d = residual->ndim; d-- > 0; next *= residual->shape[d])
        strides[d] = next;
    e->residual.owned = tn__scratch_take((size_t)(next * e->item));
    if (!e->residual.owned)
        return TN_ERR_MEMORY;
    plain.strides = strides;
    plain.data = e->residual.at = e->residual.owned;
    plain.byte_offset = 0;
    status = tn__copy_views(&plain, residual);
    if (status != TN_OK) {
        tn__scratch_give(e->residual.owned);
        e->residual.owned = NULL;
    }
    return status;
}

tn_status tn__epilogue_begin(struct tn__epilogue *e, const tn_call *call, bool planar)
{
    const tn_convolution_activation_options *o = call->options;
    const tn_view *y = call->out[0], *residual = call->in[RESIDUAL];
    tn_status status;

    memset(e, 0, sizeof *e);
    e->ct = tn__dtype_ct(call->dtype);
    e->item = (int64_t)tn__dtype_ct_size(e->ct);
    e->planar = e->rows.plane = planar;
    e->places = 1;
    for (int32_t d = 2; d < y->ndim; d++)
        e->places *= y->shape[d];
    e->y = tn__view_at(y);
    e->y_image = y->strides[0];
    e->r_image = y->shape[1] * e->places;
    read_activation(e, o->activation);
    status = read_norm(e, call, o->eps);
    if (status == TN_OK && residual) {
        status = planar ? take_planes(e, residual) : tn__images_take(&e->residual, residual, false);
        e->summed = status == TN_OK;
    }
    e->view = residual;
    if (status != TN_OK)
        tn__epilogue_end(e);
    return status;
}

void tn__epilogue_into(struct tn__epilogue *e, const struct tn__images *y)
{
    e->y = y->at;
    e->y_step = y->step[TN__DIMS - 1];
}

void tn__epilogue_end(struct tn__epilogue *e)
{
    if (e->summed)
        tn__images_done(&e->residual, e->view, false);
    tn__scratch_give(e->owned);
    e->owned = NULL;
    e->summed = false;
}

bool tn__epilogue_beyond_limits(const struct tn__epilogue *e)
{
    return e && (e->rows.scale || e->summed || e->loop);
}

const struct tn__limits *tn__epilogue_limits(const struct tn__epilogue *e)
{
    return e && !tn__epilogue_beyond_limits(e) ? &e->rows.limits : &tn__no_limits;
}

static const double no_numbers[3];

void tn__epilogue_pixels(const struct tn__epilogue *e, int64_t pixel, int64_t pixels,
                         int64_t channel, int64_t n)
{
    const int64_t item = e->item, r_step = e->residual.step[TN__DIMS - 1];
    char *y = e->y + (pixel * e->y_step + channel) * item;
    const char *r = e->summed ? e->residual.at + (pixel * r_step + channel) * item : NULL;
    struct tn__follow_rows rows = e->rows;

    if (rows.scale) {
        rows.scale = (const char *)rows.scale + channel * item;
        rows.shift = (const char *)rows.shift + channel * item;
    }
    tn__simd.norm->follow_rows[e->ct == TN__F64](&rows, pixels, n, y, e->y_step, r, r_step);
    for (int64_t i = 0; e->loop && i < pixels; i++, y += e->y_step * item)
        e->loop(n, y, item, y, item, y, item, no_numbers);
}

void tn__epilogue_plane(const struct tn__epilogue *e, int64_t image, int64_t channel, int64_t pixel,
                        int64_t n)
{
    const int64_t item = e->item, at = channel * e->places + pixel;
    char *y = e->y + (image * e->y_image + at) * item;
    const char *r = e->summed ? e->residual.at + (image * e->r_image + at) * item : NULL;
    struct tn__follow_rows rows = e->rows;

    if (rows.scale) {
        rows.scale = (const char *)rows.scale + channel * item;
        rows.shift = (const char *)rows.shift + channel * item;
    }
    tn__simd.norm->follow_rows[e->ct == TN__F64](&rows, 1, n, y, n, r, n);
    if (e->loop)
        e->loop(n, y, item, y, item, y, item, no_numbers);
}

/* SPDX-License-Identifier: MIT
 *
 * convolution_int8 where each group has one input channel: its plane becomes differences from the
 * zero point with zeros around, and the taps of the window are added to the sums of many lines at
 * once, as if the lines were one. Sums between the lines are not used. */
#include <string.h>

#include "base/scratch.h"
#include "quant/quant.h"

enum { LINE = TN__QUANT_COLUMNS };

struct planes {
    const tn_call *call;
    const struct tn__quant_geometry *g;
    const struct tn__quant_run *run;
    const struct tn__quant_loops *loops;
};

/* A plane of the result, one output channel of one image, and the plane of x for it. */
struct plane {
    const char *x;
    const uint8_t *w;
    int32_t x_zero, w_zero;
    int32_t *centred; /* [padded...] */
    int32_t *sums;    /* of some lines, padded[2] elements apart */
    float scale[LINE], bias[LINE], residual[LINE];
    int32_t none[LINE]; /* zeros */
    struct tn__quant_finish finish;
};

static int64_t padded_count(const struct tn__quant_geometry *g)
{
    return g->padded[0] * g->padded[1] * g->padded[2];
}

static void centre_plane(const struct planes *f, const struct plane *p)
{
    const struct tn__quant_geometry *g = f->g;
    const bool is_signed = tn__quant_is_signed(f->call->in[TN__QUANT_X]);

    memset(p->centred, 0, (size_t)padded_count(g) * sizeof *p->centred);
    for (int64_t i = 0; i < g->size[0] * g->size[1]; i++) {
        const int64_t z = i / g->size[1] + g->padding[0], y = i % g->size[1] + g->padding[1];

        f->loops->centre(g->size[2], p->x + i * g->size[2], is_signed, p->x_zero,
                         p->centred + (z * g->padded[1] + y) * g->padded[2] + g->padding[2]);
    }
}

/* The sums of n neighbours from the window on that begins at element `at`. */
static void add_windows(const struct planes *f, const struct plane *p, int64_t at, int64_t n)
{
    const struct tn__quant_geometry *g = f->g;
    const bool is_signed = tn__quant_is_signed(f->call->in[TN__QUANT_WEIGHT]);
    const uint8_t *w = p->w;

    memset(p->sums, 0, (size_t)n * sizeof *p->sums);
    for (int64_t a = 0; a < g->kernel[0]; a++)
        for (int64_t b = 0; b < g->kernel[1]; b++)
            for (int64_t c = 0; c < g->kernel[2]; c++, w++) {
                const int64_t line = a * g->dilation[0] * g->padded[1] + b * g->dilation[1];

                f->loops->tap(n, p->centred + at + line * g->padded[2] + c * g->dilation[2],
                              (is_signed ? (int8_t)*w : *w) - p->w_zero, p->sums);
            }
}

static void start_plane(const struct planes *f, int64_t image, int64_t output, struct plane *p)
{
    const struct tn__quant_run *r = f->run;
    const struct tn__quant_geometry *g = f->g;
    const bool one = tn__span_view_count(f->call->in[TN__QUANT_X_SCALE]) == 1;
    const bool w_signed = tn__quant_is_signed(f->call->in[TN__QUANT_WEIGHT]);
    const int64_t channel = output / (g->outputs / g->groups);
    float x_scale;

    tn__quant_row_scale(f->call, one ? 0 : image, &x_scale, &p->x_zero);
    if (!tn__quant_is_signed(f->call->in[TN__QUANT_X]))
        p->x_zero += 128;
    p->w_zero = r->w_zero[output] - (w_signed ? 128 : 0);
    p->w = (const uint8_t *)tn__view_at(f->call->in[TN__QUANT_WEIGHT]) + output * g->taps;
    p->x = tn__view_at(f->call->in[TN__QUANT_X]) +
           (image * g->channels + channel) * g->size[0] * g->size[1] * g->size[2];
    for (int64_t i = 0; i < LINE && i < f->g->rows; i++) {
        p->scale[i] = r->w_scale[output];
        p->bias[i] = r->bias != NULL ? r->bias[output] : 0;
    }
    p->finish = (struct tn__quant_finish){
        .w_sum = p->none,
        .w_zero = p->none,
        .x_scale = x_scale,
        .w_scale = p->scale,
        .bias = r->bias != NULL ? p->bias : NULL,
        .min = r->min,
        .max = r->max,
        .quantized = r->dtype != TN_F32,
        .is_signed = r->dtype == TN_I8,
        .y_scale = r->y_scale,
        .y_zero = r->y_zero,
    };
}

/* Brings the sums that are elements of the result together. */
static void pick(const struct tn__quant_geometry *g, int64_t lines, int32_t *sums)
{
    const int64_t n = g->count[2], step = g->stride[2];

    for (int64_t j = 0; j < lines; j++) {
        const int32_t *from = sums + j * g->padded[2];

        if (step == 1)
            memmove(sums + j * n, from, (size_t)n * sizeof *sums);
        for (int64_t i = 0; i < n && step > 1; i++)
            sums[j * n + i] = from[i * step];
    }
}

/* Finishes `count` elements of the result from element `start` on. */
static void finish(const struct planes *f, struct plane *p, int64_t start, int64_t count)
{
    const struct tn__quant_run *r = f->run;

    for (int64_t i = 0; i < count; i += LINE) {
        p->finish.n = count - i < LINE ? count - i : LINE;
        p->finish.sums = p->sums + i;
        if (r->residual != NULL) {
            tn__quant_residual(r, start + i, 1, p->finish.n, p->residual);
            p->finish.residual = p->residual;
        }
        p->finish.y = r->y + (start + i) * (int64_t)tn_dtype_size(r->dtype);
        f->loops->finish(&p->finish);
    }
}

static void compute_plane(const struct planes *f, int64_t image, int64_t output, struct plane *p)
{
    const struct tn__quant_geometry *g = f->g;
    const int64_t start = (image * g->outputs + output) * g->rows;
    const int64_t lines = g->stride[1] == 1 ? g->count[1] : 1; /* together */
    const int64_t n = (lines - 1) * g->padded[2] + (g->count[2] - 1) * g->stride[2] + 1;

    start_plane(f, image, output, p);
    centre_plane(f, p);
    for (int64_t i = 0; i < g->count[0] * g->count[1]; i += lines) {
        const int64_t z = i / g->count[1] * g->stride[0], y = i % g->count[1] * g->stride[1];

        add_windows(f, p, (z * g->padded[1] + y) * g->padded[2], n);
        pick(g, lines, p->sums);
        finish(f, p, start + i * g->count[2], lines * g->count[2]);
    }
}

static tn_status compute_planes(void *user, int64_t begin, int64_t end)
{
    const struct planes *f = user;
    const int64_t count = padded_count(f->g);
    struct plane p = { .centred = tn__scratch_take((size_t)count * 2 * sizeof(int32_t)) };

    if (p.centred == NULL)
        return TN_ERR_MEMORY;
    p.sums = p.centred + count;
    for (int64_t i = begin; i < end; i++)
        compute_plane(f, i / f->g->outputs, i % f->g->outputs, &p);
    tn__scratch_give(p.centred);
    return TN_OK;
}

tn_status tn__quant_depthwise(const tn_call *call, const struct tn__quant_geometry *g)
{
    const tn_convolution_int8_options *o = call->options;
    struct tn__quant_run run = { .min = (float)o->min, .max = (float)o->max };
    void *channels = tn__quant_channels(call, 0, g->outputs, &run);
    struct planes f = { call, g, &run, NULL };
    tn_status status;
    bool dot;

    if (channels == NULL)
        return TN_ERR_MEMORY;
    f.loops = tn__quant_loops_chosen(&dot);
    run.y = tn__view_at(call->out[0]);
    status = tn_parallel_for(g->images * g->outputs, 1 + 16384 / (1 + g->rows * g->taps),
                             compute_planes, &f);
    tn__scratch_give(channels);
    return status;
}

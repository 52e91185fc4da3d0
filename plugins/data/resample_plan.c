/* SPDX-License-Identifier: MIT
 *
 * The weights of a resampling. */
#include "resample.h"

#include <math.h>
#include <string.h>

static const char *const filters[] = { "nearest", "bilinear", "bicubic" };

int resample_filter_of(const char *who, const char *name)
{
    for (int i = 0; i < 3; i++)
        if (strcmp(filters[i], name) == 0)
            return i;
    tn_fail(TN_ERR_VALUE,
            "%s: interpolation: unknown, got %q; expected nearest, bilinear or bicubic", who, name);
    return -1;
}

/* `a` is -0.5 with antialias and -0.75 without, as in PyTorch. */
static double weight_at(enum resample_filter filter, double x, double a)
{
    x = fabs(x);
    if (filter == RESAMPLE_BILINEAR)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* Without antialias each output of the cubic has four inputs. Those beyond an end count as the
 * input at that end. */
static void plan_cubic(struct resample_plan *plan, int64_t i, int64_t start, int64_t size,
                       double *weights)
{
    double at = (double)size / (double)plan->out * ((double)i + 0.5) - 0.5;
    int64_t from = (int64_t)floor(at) - 1, low = from > 0 ? from : 0;

    low = low < size ? low : size - 1;
    plan->first[i] = start + low;
    plan->count[i] = 0;
    for (int64_t k = from; k < from + 4; k++) {
        int64_t place = (k > low ? k < size ? k : size - 1 : low) - low;

        weights[place] += weight_at(RESAMPLE_BICUBIC, (double)k - at, -0.75);
        plan->count[i] = place + 1;
    }
}

/* The input of output i without interpolation. PyTorch computes it in float32, which decides where
 * two inputs are equally near. */
static int64_t nearest_input(int64_t i, int64_t size, int64_t out)
{
    int64_t at = (int64_t)floorf((float)i * ((float)size / (float)out));

    return at < size ? at : size - 1;
}

/* The inputs of output i and their weights, in double precision. `weights` has zeros. */
static void plan_output(struct resample_plan *plan, int64_t i, int64_t start, int64_t size,
                        enum resample_filter filter, bool antialias, double *weights)
{
    double scale = (double)size / (double)plan->out, center = scale * ((double)i + 0.5);
    double stretch = antialias && scale >= 1 ? scale : 1, sum = 0;
    double support = (filter == RESAMPLE_BICUBIC ? 2 : 1) * stretch;
    int64_t low = (int64_t)(center - support + 0.5), high = (int64_t)(center + support + 0.5);

    if (filter == RESAMPLE_BICUBIC && !antialias) {
        plan_cubic(plan, i, start, size, weights);
        return;
    }
    low = low > 0 ? low : 0;
    high = high < size ? high : size;
    if (filter == RESAMPLE_NEAREST) {
        low = nearest_input(i, size, plan->out);
        high = low + 1;
    }
    if (high <= low)
        low = high - 1;
    if (high - low > plan->taps)
        high = low + plan->taps;
    plan->first[i] = start + low;
    plan->count[i] = high - low;
    for (int64_t k = 0; k < high - low; k++) {
        double x = ((double)(low + k) - center + 0.5) / stretch;

        weights[k] = filter == RESAMPLE_NEAREST ? 1 : weight_at(filter, x, -0.5);
        sum += weights[k];
    }
    for (int64_t k = 0; k < high - low; k++)
        weights[k] /= sum;
}

/* Rounds the weights to 16 bits, with as many bits after the point as fit, at most 22. */
static void round_weights(struct resample_plan *plan, const double *weights)
{
    double most = 0;
    int bits = 0;

    for (int64_t i = 0; i < plan->out * plan->taps; i++)
        most = weights[i] > most ? weights[i] : most;
    while (bits < 22 && (int)(0.5 + most * (1 << (bits + 1))) < 1 << 15)
        bits++;
    plan->bits = bits;
    for (int64_t i = 0; i < plan->out * plan->taps; i++) {
        double v = weights[i] * (1 << bits);

        plan->fixed[i] = (int16_t)(v < 0 ? v - 0.5 : v + 0.5);
    }
}

/* Makes the last outputs begin earlier, with weights of 0, so that every output may read `most`
 * inputs and one more without reading beyond the end. Sets plan->most and plan->even; if there are
 * not that many inputs, plan->even becomes false. */
static void make_even(struct resample_plan *plan, int64_t end, double *weights)
{
    for (int64_t i = 0; i < plan->out; i++)
        plan->most = plan->count[i] > plan->most ? plan->count[i] : plan->most;
    for (int64_t i = plan->out - 1; i >= 0 && plan->most < end - plan->first[0]; i--) {
        double *own = weights + i * plan->taps;
        int64_t shift = plan->first[i] + plan->most - end;

        if (shift <= 0)
            continue;
        memmove(own + shift, own, (size_t)plan->count[i] * sizeof *own);
        for (int64_t k = 0; k < shift; k++)
            own[k] = 0;
        plan->first[i] -= shift;
        plan->count[i] += shift;
    }
    plan->even = plan->most < end - plan->first[0];
}

tn_status resample_plan_make(struct resample_plan *plan, int64_t start, int64_t size, int64_t out,
                             enum resample_filter filter, bool antialias)
{
    double scale = (double)size / (double)out, stretch = antialias && scale >= 1 ? scale : 1;
    int64_t taps = 2 * (int64_t)ceil((filter == RESAMPLE_BICUBIC ? 2 : 1) * stretch) + 2;
    size_t count = (size_t)(out * taps);
    double *weights = tn_calloc(count, sizeof *weights);

    plan->out = out;
    plan->taps = taps;
    plan->first = tn_malloc((size_t)out * sizeof *plan->first);
    plan->count = tn_malloc((size_t)out * sizeof *plan->count);
    plan->weights = tn_malloc(count * sizeof *plan->weights);
    plan->fixed = tn_malloc(count * sizeof *plan->fixed);
    if (weights == NULL || plan->first == NULL || plan->count == NULL || plan->weights == NULL ||
        plan->fixed == NULL) {
        tn_free(weights);
        return TN_ERR_MEMORY;
    }
    for (int64_t i = 0; i < out; i++)
        plan_output(plan, i, start, size, filter, antialias, weights + i * taps);
    make_even(plan, start + size, weights);
    for (size_t i = 0; i < count; i++)
        plan->weights[i] = (float)weights[i];
    round_weights(plan, weights);
    tn_free(weights);
    return TN_OK;
}

void resample_plan_free(struct resample_plan *plan)
{
    tn_free(plan->first);
    tn_free(plan->count);
    tn_free(plan->weights);
    tn_free(plan->fixed);
}

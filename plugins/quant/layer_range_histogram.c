/* SPDX-License-Identifier: MIT
 *
 * HistogramRange: records a histogram of what passes through it, and chooses the range that gives
 * the least squared error with 256 integers. */
#include "modules.h"

#include <math.h>

enum { CLIPS = 64, LEVELS = 255 };

struct histogram {
    int64_t bins;
};

static const tn_option options[] = { TN_OPTION_ROW(struct histogram, bins, "2048",
                                                   "bins of the histogram", TN_OPTION_KIND_INT, 0),
                                     TN_OPTION_END };

/* ---- recording, on the host ------------------------------------------------------------------ */

/* Adds the counts of a histogram over [from, to] to one over [low, high], which contains it: each
 * count goes to the bin of the middle of its own bin. */
static void add_counts(const float *counts, int64_t bins, double from, double to, double low,
                       double high, float *sums)
{
    for (int64_t i = 0; i < bins; i++) {
        double middle = from + (to - from) * ((double)i + 0.5) / (double)bins;
        int64_t at = high > low ? (int64_t)((middle - low) / (high - low) * (double)bins) : 0;

        sums[at < 0 ? 0 : at < bins ? at : bins - 1] += counts[i];
    }
}

static void count(const float *x, int64_t n, int64_t bins, double low, double high, float *sums)
{
    const double scale = high > low ? (double)bins / (high - low) : 0;

    for (int64_t i = 0; i < n; i++) {
        int64_t at;

        if (!isfinite(x[i]))
            continue;
        at = (int64_t)((x[i] - low) * scale);
        sums[at < 0 ? 0 : at < bins ? at : bins - 1]++;
    }
}

/* Copies a tensor of floats to the host; NULL and an error if there is no memory. */
static float *copied(tn_tensor *x)
{
    const size_t bytes = (size_t)tn_tensor_numel(x) * sizeof(float);
    float *data = tn_malloc(bytes + 1);

    if (data != NULL && tn_tensor_copy_out(x, data, bytes) != TN_OK) {
        tn_free(data);
        return NULL;
    }
    return data;
}

static void limits(const float *x, int64_t n, double *low, double *high)
{
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        *low = x[i] < *low ? x[i] : *low;
        *high = x[i] > *high ? x[i] : *high;
    }
}

static tn_status record(tn_module *self, tn_tensor *x)
{
    const struct histogram *s = tn_module_data(self);
    tn_tensor *own = tn_module_get(self, "histogram");
    tn_tensor *plain = tn_cast(tn_detach(x), TN_F32);
    float *data = plain != NULL ? copied(plain) : NULL, *old = copied(own), *sums;
    const bool empty = quant_range_is_empty(self);
    double before[2], low = INFINITY, high = -INFINITY;
    tn_status status;

    sums = tn_calloc((size_t)s->bins, sizeof *sums);
    status = data != NULL && old != NULL && sums != NULL ? TN_OK : tn_error_last_code();
    if (status == TN_OK) {
        before[0] = low = tn_tensor_item(tn_module_get(self, "min_val"));
        before[1] = high = tn_tensor_item(tn_module_get(self, "max_val"));
        limits(data, tn_tensor_numel(plain), &low, &high);
        if (!empty)
            add_counts(old, s->bins, before[0], before[1], low, high, sums);
        if (low <= high)
            count(data, tn_tensor_numel(plain), s->bins, low, high, sums);
        status = tn_tensor_copy_in(own, sums, (size_t)s->bins * sizeof *sums);
    }
    if (status == TN_OK && low <= high)
        status = quant_range_store(
            self, tn_tensor_full(tn_no_ints(), TN_SCALAR(low), TN_F32, tn_tensor_device(own)),
            tn_tensor_full(tn_no_ints(), TN_SCALAR(high), TN_F32, tn_tensor_device(own)));
    tn_free(data);
    tn_free(old);
    tn_free(sums);
    return status;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    return quant_range_pass(self, x, record);
}

/* ---- the range with the least error ---------------------------------------------------------- */

/* Sums over the bins from the first on: counts, counts times middle, counts times its square. */
typedef struct moments {
    double *at[3];
    int64_t bins;
    double low, high;
} moments;

/* Returns the squared error of what is cut off in bins [from, to), clipped to `edge`. */
static double cut_off(const moments *m, int64_t from, int64_t to, double edge)
{
    double n = m->at[0][to] - m->at[0][from], first = m->at[1][to] - m->at[1][from];

    return m->at[2][to] - m->at[2][from] - 2 * edge * first + edge * edge * n;
}

/* Returns the error of the range [low, high]: of rounding within it, and of clipping. */
static double error_of(const moments *m, double low, double high)
{
    const double step = (high - low) / LEVELS, width = (m->high - m->low) / (double)m->bins;
    int64_t from = (int64_t)((low - m->low) / width), to = (int64_t)ceil((high - m->low) / width);

    from = from < 0 ? 0 : from > m->bins ? m->bins : from;
    to = to < from ? from : to > m->bins ? m->bins : to;
    return (m->at[0][to] - m->at[0][from]) * step * step / 12 + cut_off(m, 0, from, low) +
           cut_off(m, to, m->bins, high);
}

/* Tries ranges that clip each end by multiples of 1/CLIPS; 0 stays in the range. */
static void search(const moments *m, double best[2])
{
    const double low = m->low < 0 ? m->low : 0, high = m->high > 0 ? m->high : 0;
    double least = INFINITY;

    for (int i = 0; i < (low < 0 ? CLIPS : 1); i++)
        for (int j = 0; j < (high > 0 ? CLIPS : 1); j++) {
            double a = low * (1 - (double)i / CLIPS), b = high * (1 - (double)j / CLIPS);
            double error = error_of(m, a, b);

            if (error < least) {
                least = error;
                best[0] = a;
                best[1] = b;
            }
        }
}

static tn_status best_range(tn_module *self, double best[2])
{
    const struct histogram *s = tn_module_data(self);
    float *counts = copied(tn_module_get(self, "histogram"));
    double *sums = tn_calloc((size_t)(3 * (s->bins + 1)), sizeof *sums);
    moments m = { { NULL, NULL, NULL }, s->bins, 0, 0 };

    if (counts == NULL || sums == NULL) {
        tn_free(counts);
        tn_free(sums);
        return tn_error_last_code();
    }
    m.low = best[0] = tn_tensor_item(tn_module_get(self, "min_val"));
    m.high = best[1] = tn_tensor_item(tn_module_get(self, "max_val"));
    for (int k = 0; k < 3; k++)
        m.at[k] = sums + k * (s->bins + 1);
    for (int64_t i = 0; i < s->bins; i++) {
        double middle = m.low + (m.high - m.low) * ((double)i + 0.5) / (double)s->bins;

        m.at[0][i + 1] = m.at[0][i] + counts[i];
        m.at[1][i + 1] = m.at[1][i] + counts[i] * middle;
        m.at[2][i + 1] = m.at[2][i] + counts[i] * middle * middle;
    }
    if (m.high > m.low)
        search(&m, best);
    tn_free(counts);
    tn_free(sums);
    return TN_OK;
}

/* The computed slots range_min and range_max. */
static tn_tensor *get_range(void *user, tn_module *module, const char *name)
{
    double best[2];

    (void)user;
    if (best_range(module, best) != TN_OK)
        return NULL;
    return tn_tensor_full(tn_no_ints(), TN_SCALAR(best[strcmp(name, "range_max") == 0]), TN_F32,
                          tn_tensor_device(tn_module_get(module, "min_val")));
}

static tn_status build(tn_module *self)
{
    static const tn_computed computed = { .get = get_range };
    const struct histogram *s = tn_module_data(self);
    tn_status status;

    if (s->bins < 2 || s->bins > 1 << 20)
        return tn_fail(TN_ERR_VALUE,
                       "HistogramRange: bins: out of range, got %lld; expected 2 to "
                       "1048576",
                       (long long)s->bins);
    status = quant_add_buffer(self, "histogram", TN_F32, TN_SHAPE(s->bins), 0, true);
    if (status == TN_OK)
        status = quant_range_build(self, false);
    if (status == TN_OK)
        status = tn_module_add_computed(self, "range_min", &computed, NULL);
    return status == TN_OK ? tn_module_add_computed(self, "range_max", &computed, NULL) : status;
}

const tn_layer_def layer_histogram_range = {
    TN_HEAD(tn_layer_def),
    .name = "HistogramRange",
    .help = "y = x; records a histogram, and has the range with the least error of 256 integers",
    .options = options,
    .data_size = sizeof(struct histogram),
    .version = 3,
    .build = build,
    .forward = forward,
    .load_state = quant_range_load,
};

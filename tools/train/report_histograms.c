/* SPDX-License-Identifier: MIT
 *
 * The distributions of the values of parameters and gradients. The bins divide the range within
 * four standard deviations of the mean; one more on each side holds what is beyond. */
#include "report_private.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 1 << 15 }; /* elements that are converted to float64 at a time */

const char *const report_histogram_tags[2] = { "weights/", "gradients/" };

/* ---- counting -------------------------------------------------------------------------------- */

/* Converts the elements of a tensor to float64, chunk by chunk, and calls `take` with each. */
static tn_status each_chunk(tn_tensor *tensor,
                            void (*take)(report_bins *, const double *, int64_t count),
                            report_bins *bins)
{
    TN_SCOPE;
    bool complex = tn_tensor_dtype(tensor) == TN_C64 || tn_tensor_dtype(tensor) == TN_C128;
    tn_tensor *plain = tn_detach(tensor);
    tn_tensor *flat = tn_reshape(complex ? tn_view_as_real(plain) : plain, TN_SHAPE(-1));
    double *values = flat != NULL ? tn_malloc(CHUNK * sizeof *values) : NULL;
    tn_status status = values == NULL ? tn_error_last_code() : TN_OK;
    int64_t count = flat != NULL ? tn_tensor_numel(flat) : 0;
    for (int64_t at = 0; at < count && status == TN_OK; at += CHUNK) {
        TN_SCOPE;
        int64_t size = count - at < CHUNK ? count - at : CHUNK;
        tn_tensor *piece = tn_cast(tn_narrow(flat, 0, at, size), TN_F64);
        status = piece != NULL ? tn_tensor_copy_out(piece, values, (size_t)size * sizeof *values)
                               : tn_error_last_code();
        if (status == TN_OK)
            take(bins, values, size);
    }
    tn_free(values);
    return status;
}

static void add_values(report_bins *bins, const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double value = values[i];
        if (!isfinite(value)) {
            bins->bad++;
            continue;
        }
        if (bins->number == 0)
            bins->low = bins->high = value;
        bins->low = value < bins->low ? value : bins->low;
        bins->high = value > bins->high ? value : bins->high;
        bins->number++;
        bins->sum += value;
        bins->squares += value * value;
    }
}

static void count_values(report_bins *bins, const double *values, int64_t count)
{
    /* The bins have equal widths except for the first and the last. */
    double from = bins->limits[0], to = bins->limits[bins->count - 2];
    double scale = to > from ? (double)(bins->count - 2) / (to - from) : 0;
    for (int64_t i = 0; i < count; i++) {
        double value = values[i];
        int64_t bin = 0;
        if (!isfinite(value))
            continue;
        if (value > to)
            bin = bins->count - 1;
        else if (value > from) {
            bin = 1 + (int64_t)((value - from) * scale);
            bin = bin < bins->count - 2 ? bin : bins->count - 2;
            /* A bin includes its upper limit, but not its lower one. Rounding may have chosen the
             * bin next to the right one. */
            while (value <= bins->limits[bin - 1])
                bin--;
            while (value > bins->limits[bin])
                bin++;
        }
        bins->counts[bin]++;
    }
}

static void set_limits(report_bins *bins)
{
    double mean = bins->sum / bins->number;
    double deviation = sqrt(fmax(bins->squares / bins->number - mean * mean, 0));
    double from = fmax(bins->low, mean - 4 * deviation),
           to = fmin(bins->high, mean + 4 * deviation);
    /* Squares and differences overflow for the largest values of double. */
    if (!isfinite(from) || !isfinite(to) || !isfinite(to - from) || !(from < to)) {
        from = bins->low;
        to = isfinite(bins->high - bins->low) ? bins->high : bins->low;
    }
    int inner = from < to ? REPORT_BINS : 0;
    for (int i = 0; i <= inner; i++)
        bins->limits[i] = i < inner ? from + (to - from) * i / inner : to;
    bins->limits[inner + 1] = bins->high;
    bins->count = inner + 2;
}

/* ---- keeping --------------------------------------------------------------------------------- */

static report_spread *find(report_spreads *all, int kind, const char *name)
{
    for (int64_t i = 0; i < all->count; i++) {
        int64_t at = (all->next + i) % all->count;
        if (all->spreads[at].kind == kind && strcmp(all->spreads[at].name, name) == 0) {
            all->next = at + 1;
            return &all->spreads[at];
        }
    }
    return NULL;
}

static report_spread *make(report_spreads *all, int kind, const char *name)
{
    if (all->count == all->room) {
        int64_t room = all->room > 0 ? 2 * all->room : 16;
        report_spread *spreads = tn_realloc(all->spreads, (size_t)room * sizeof *spreads);
        if (spreads == NULL)
            return NULL;
        all->spreads = spreads;
        all->room = room;
    }
    report_spread *s = &all->spreads[all->count];
    *s = (report_spread){ .name = tn_strdup(name), .kind = kind };
    s->times = s->name != NULL ? tn_malloc(REPORT_TIMES * sizeof *s->times) : NULL;
    if (s->times == NULL) {
        tn_free(s->name);
        return NULL;
    }
    all->count++;
    return s;
}

static report_spread *find_or_make(report_spreads *all, int kind, const char *name)
{
    report_spread *s = find(all, kind, name);
    return s != NULL ? s : make(all, kind, name);
}

static tn_status note_bad(report_spreads *all, int kind, const char *name, const report_bins *bins)
{
    report_spread *s = find_or_make(all, kind, name);
    if (s == NULL)
        return tn_error_last_code();
    if (s->bad == 0)
        s->bad_step = bins->step;
    s->bad += bins->bad;
    return TN_OK;
}

tn_status report_histogram_keep(report_spreads *all, int kind, const char *name,
                                const report_bins *bins)
{
    report_spread *s = find_or_make(all, kind, name);
    if (s == NULL)
        return tn_error_last_code();
    if (s->count > 0 && s->times[s->count - 1].step == bins->step)
        s->count--;
    if (s->count == REPORT_TIMES) {
        for (int i = 0; i < REPORT_TIMES / 2; i++)
            s->times[i] = s->times[2 * i];
        s->count = REPORT_TIMES / 2;
    }
    s->times[s->count++] = *bins;
    return TN_OK;
}

tn_status report_histogram(report *r, int kind, const char *parameter, int64_t step,
                           tn_tensor *values)
{
    char tag[REPORT_NAME + 16];
    report_bins bins = { .step = step };
    if (kind != REPORT_WEIGHTS && kind != REPORT_GRADIENTS)
        return tn_fail(TN_ERR_VALUE,
                       "report: kind: unknown, got %d; expected REPORT_WEIGHTS or "
                       "REPORT_GRADIENTS",
                       kind);
    tn_status status = report_check_name(parameter);
    if (status == TN_OK && values == NULL)
        status = tn_fail(TN_ERR_VALUE, "report: values: got NULL; expected a tensor");
    if (status == TN_OK)
        status = report_at(r, step);
    if (status == TN_OK)
        status = each_chunk(values, add_values, &bins);
    if (status == TN_OK && bins.bad > 0)
        status = note_bad(&r->spreads, kind, parameter, &bins);
    if (status != TN_OK || bins.number == 0)
        return status;
    set_limits(&bins);
    status = each_chunk(values, count_values, &bins);
    tn_snprint(tag, sizeof tag, "%s%s", report_histogram_tags[kind], parameter);
    if (status == TN_OK)
        status = report_event_bins(r, tag, &bins);
    return status == TN_OK ? report_histogram_keep(&r->spreads, kind, parameter, &bins) : status;
}

void report_histogram_drop(report_spreads *all)
{
    for (int64_t i = 0; i < all->count; i++) {
        tn_free(all->spreads[i].name);
        tn_free(all->spreads[i].times);
    }
    tn_free(all->spreads);
    *all = (report_spreads){ .count = 0 };
}

/* SPDX-License-Identifier: MIT
 *
 * Sounds at another sample rate: a low-pass filter of sinc with a window of cosine squared, as
 * torchaudio.functional.resample has it with its defaults. */
#include "wav.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* Zeros of sinc on each side that the filter has, and what of the lower rate passes. */
enum { ZEROS = 6 };
static const double passing = 0.99;

/* Numbers in a table of filters. Without a table the filter of each value is computed. */
enum { TABLE_MOST = 1 << 20, TAPS_MOST = 1 << 24 };

struct filter {
    int64_t from, to; /* the rates without their common factor */
    double base;      /* of the lower one, what passes */
    int64_t taps;     /* values of the source that one value of the result needs, at most */
    double *table; /* the filter of each of the `to` places between values of the source; or NULL */
    double *one;   /* a filter */
};

static int64_t common_factor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The first value of the source that place `p` needs, relative to the period. */
static int64_t first_tap(const struct filter *f, int64_t p)
{
    return (int64_t)ceil((double)f->from * ((double)p / (double)f->to - ZEROS / f->base));
}

static void make_filter(const struct filter *f, int64_t p, double *out)
{
    int64_t first = first_tap(f, p);

    for (int64_t i = 0; i < f->taps; i++) {
        double t = f->base * ((double)(first + i) / (double)f->from - (double)p / (double)f->to);
        double window = cos(t * PI / (2 * ZEROS));

        out[i] = fabs(t) >= ZEROS ? 0
                                  : (t == 0 ? 1 : sin(t * PI) / (t * PI)) * window * window *
                                        f->base / (double)f->from;
    }
}

/* Prepares the filter for `count` values of the result. */
static tn_status filter_begin(struct filter *f, int64_t from, int64_t to, int64_t count)
{
    int64_t factor = common_factor(from, to), numbers;

    *f = (struct filter){ .from = from / factor, .to = to / factor };
    f->base = (double)(f->from < f->to ? f->from : f->to) * passing;
    f->taps = 2 * (int64_t)ceil(ZEROS * (double)f->from / f->base) + 1;
    if (f->taps > TAPS_MOST)
        return tn_fail(TN_ERR_FORMAT,
                       "sample_rate: too far from that of the file, got %lld for %lld; expected at "
                       "least a part of %d of it",
                       (long long)to, (long long)from, TAPS_MOST / (2 * ZEROS + 1));
    if (!__builtin_mul_overflow(f->taps, f->to, &numbers) && numbers <= TABLE_MOST &&
        f->to <= count) {
        f->table = tn_malloc((size_t)numbers * sizeof *f->table);
        if (f->table == NULL)
            return TN_ERR_MEMORY;
        for (int64_t p = 0; p < f->to; p++)
            make_filter(f, p, f->table + p * f->taps);
        return TN_OK;
    }
    f->one = tn_malloc((size_t)f->taps * sizeof *f->one);
    return f->one != NULL ? TN_OK : TN_ERR_MEMORY;
}

static void filter_end(struct filter *f)
{
    tn_free(f->table);
    tn_free(f->one);
}

int64_t wav_resampled(int64_t frames, int64_t from, int64_t to)
{
    int64_t factor = common_factor(from, to), all;

    from /= factor;
    to /= factor;
    if (__builtin_mul_overflow(frames, to, &all))
        return -1;
    return all / from + (all % from != 0);
}

/* Reads frames of the source, or the mean of their channels. */
static void read_source(const struct wav *wav, bool mono, int64_t first, int64_t count, float *to)
{
    if (mono)
        wav_read_mean(wav, first, count, to);
    else
        wav_read(wav, first, count, to, count);
}

tn_status wav_resample(const struct wav *wav, int64_t rate, bool mono, int64_t first, int64_t count,
                       float *to, int64_t stride)
{
    struct filter f;
    tn_status status = filter_begin(&f, wav->rate, rate, count);
    int64_t channels = mono ? 1 : wav->channels, last = first + count - 1;
    int64_t low = first / f.to * f.from + first_tap(&f, first % f.to);
    int64_t high = last / f.to * f.from + first_tap(&f, last % f.to) + f.taps, have;
    float *source = NULL;

    low = low > 0 ? low : 0;
    high = high < wav->frames ? high : wav->frames;
    have = high > low ? high - low : 0;
    if (status == TN_OK) {
        source = tn_malloc((size_t)(have * channels + 1) * sizeof *source);
        status = source != NULL ? TN_OK : TN_ERR_MEMORY;
    }
    if (status == TN_OK)
        read_source(wav, mono, low, have, source);
    for (int64_t n = first; n <= last && status == TN_OK; n++) {
        int64_t start = n / f.to * f.from + first_tap(&f, n % f.to);
        int64_t from = start > low ? 0 : low - start;
        int64_t until = start + f.taps < high ? f.taps : high - start;
        const double *filter = f.table != NULL ? f.table + n % f.to * f.taps : f.one;

        if (f.table == NULL)
            make_filter(&f, n % f.to, f.one);
        for (int64_t c = 0; c < channels; c++) {
            const float *at = source + c * have + (start - low);
            double sum = 0;

            for (int64_t i = from; i < until; i++)
                sum += filter[i] * (double)at[i];
            to[c * stride + (n - first)] = (float)sum;
        }
    }
    tn_free(source);
    filter_end(&f);
    return status;
}

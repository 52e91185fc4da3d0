/* SPDX-License-Identifier: MIT
 *
 * MelSpectrogram, AmplitudeToDB and MFCC: sounds become pictures of their frequencies, with the
 * formulas of torchaudio, computed in double precision. */
#include "spectrum.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

enum { FFT_MOST = 1 << 16, BANDS_MOST = 4096 };

struct spectrum {
    int64_t sample_rate, n_fft, win_length, hop_length;
    double f_min, f_max;
    int64_t n_mels;
    double power;
    bool center;
    const char *mel_scale;
    const char *norm; /* of MelSpectrogram; NULL: None */
    int64_t n_mfcc;   /* of MFCC */
    bool log_mels;
};

static int64_t window_of(const struct spectrum *o)
{
    return o->win_length != INT64_MIN ? o->win_length : o->n_fft;
}

static int64_t hop_of(const struct spectrum *o)
{
    return o->hop_length != INT64_MIN ? o->hop_length : window_of(o) / 2;
}

static double highest_of(const struct spectrum *o)
{
    return isnan(o->f_max) ? (double)(o->sample_rate / 2) : o->f_max;
}

/* ---- options --------------------------------------------------------------------------------- */

static tn_status check_range(const char *who, const char *name, int64_t value, int64_t least,
                             int64_t most)
{
    if (value >= least && value <= most)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: %s: out of range, got %lld; expected %lld to %lld", who, name,
                   (long long)value, (long long)least, (long long)most);
}

static tn_status mel_check(const tn_transform_def *self, const void *options)
{
    const struct spectrum *o = options;
    const char *who = self->name;
    tn_status status = check_range(who, "sample_rate", o->sample_rate, 2, INT32_MAX);

    if (status == TN_OK)
        status = check_range(who, "n_fft", o->n_fft, 2, FFT_MOST);
    if (status == TN_OK)
        status = check_range(who, "win_length", window_of(o), 1, o->n_fft);
    if (status == TN_OK)
        status = check_range(who, "hop_length", hop_of(o), 1, INT32_MAX);
    if (status == TN_OK)
        status = check_range(who, "n_mels", o->n_mels, 1, BANDS_MOST);
    if (status != TN_OK)
        return status;
    if (!(o->f_min >= 0) || !(highest_of(o) > o->f_min) || !isfinite(highest_of(o)))
        return tn_fail(TN_ERR_VALUE,
                       "%s: f_min and f_max: no range, got %g and %g; expected 0 or more, the "
                       "smaller first",
                       who, o->f_min, highest_of(o));
    if (!(o->power > 0 && o->power <= 16))
        return tn_fail(TN_ERR_VALUE,
                       "%s: power: out of range, got %g; expected more than 0, at most 16", who,
                       o->power);
    if (strcmp(o->mel_scale, "htk") != 0 && strcmp(o->mel_scale, "slaney") != 0)
        return tn_fail(TN_ERR_VALUE, "%s: mel_scale: unknown, got %q; expected htk or slaney", who,
                       o->mel_scale);
    if (o->norm != NULL && strcmp(o->norm, "slaney") != 0)
        return tn_fail(TN_ERR_VALUE, "%s: norm: unknown, got %q; expected None or slaney", who,
                       o->norm);
    return TN_OK;
}

/* ---- bands ----------------------------------------------------------------------------------- */

/* Slaney's scale is linear up to 1000 Hz, and logarithmic above. */
static const double slaney_step = 200.0 / 3, slaney_break = 1000.0;

static double to_mel(const struct spectrum *o, double hertz)
{
    double log_step = log(6.4) / 27;

    if (o->mel_scale[0] == 'h')
        return 2595 * log10(1 + hertz / 700);
    return hertz < slaney_break ? hertz / slaney_step
                                : slaney_break / slaney_step + log(hertz / slaney_break) / log_step;
}

static double to_hertz(const struct spectrum *o, double mel)
{
    double log_step = log(6.4) / 27, at_break = slaney_break / slaney_step;

    if (o->mel_scale[0] == 'h')
        return 700 * (pow(10, mel / 2595) - 1);
    return mel < at_break ? mel * slaney_step : slaney_break * exp(log_step * (mel - at_break));
}

/* Place `i` of n_mels + 2: band b begins at place b, is highest at b + 1, and ends at b + 2. */
static double place_of(const struct spectrum *o, int64_t i)
{
    double low = to_mel(o, o->f_min), high = to_mel(o, highest_of(o));

    return to_hertz(o, low + (high - low) * (double)i / (double)(o->n_mels + 1));
}

/* What band `b` takes of each frequency. */
static void make_band(const struct spectrum *o, int64_t b, double *weights)
{
    int64_t count = o->n_fft / 2 + 1;
    double from = place_of(o, b), middle = place_of(o, b + 1), to = place_of(o, b + 2);
    double scale = o->norm != NULL ? 2 / (to - from) : 1;

    for (int64_t i = 0; i < count; i++) {
        double at = (double)(o->sample_rate / 2) * (double)i / (double)(count - 1);
        double up = (at - from) / (middle - from), down = (to - at) / (to - middle);
        double least = up < down ? up : down;

        weights[i] = least > 0 ? scale * least : 0;
    }
}

/* ---- spectra --------------------------------------------------------------------------------- */

/* A sound of any number of channels: all dimensions but the last. */
struct sound {
    tn_tensor *tensor;
    int64_t channels, length;
    const float *values;
    int64_t frames; /* spectra of each channel */
};

static tn_status sound_get(const tn_transform_args *args, const struct spectrum *o,
                           struct sound *sound)
{
    const char *who = args->def->name;
    struct data_numbers x;
    tn_status status = data_numbers_get(args, &x);
    int32_t ndim = status == TN_OK ? tn_tensor_ndim(x.tensor) : 0;
    int64_t around = o->center ? 2 * (o->n_fft / 2) : 0;

    if (status != TN_OK)
        return status;
    if (x.dtype != TN_F32 || ndim < 1 || ndim == TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE,
                       "%s: entry 0 of the sample: no sound, got %s of %d dimensions; expected "
                       "float32 [channels, length]",
                       who, tn_dtype_name(x.dtype), (int)ndim);
    *sound = (struct sound){ .tensor = x.tensor,
                             .length = tn_tensor_size(x.tensor, ndim - 1),
                             .values = x.values };
    sound->channels = sound->length > 0 ? x.count / sound->length : 0;
    if (sound->length + around < o->n_fft || (o->center && sound->length <= o->n_fft / 2))
        return tn_fail(TN_ERR_VALUE, "%s: the sound is too short, got %lld samples; expected %lld",
                       who, (long long)sound->length,
                       (long long)(o->center ? o->n_fft / 2 + 1 : o->n_fft));
    sound->frames = 1 + (sound->length + around - o->n_fft) / hop_of(o);
    return TN_OK;
}

/* Creates the result: `rows` for each spectrum of each channel. Returns NULL on failure. */
static tn_tensor *sound_result(const struct sound *sound, int64_t rows, float **values)
{
    int64_t shape[TN_MAX_DIMS];
    int32_t ndim = tn_tensor_ndim(sound->tensor);
    tn_tensor *x;

    for (int32_t i = 0; i < ndim - 1; i++)
        shape[i] = tn_tensor_size(sound->tensor, i);
    shape[ndim - 1] = rows;
    shape[ndim] = sound->frames;
    x = tn_tensor_empty((tn_ints){ shape, ndim + 1 }, TN_F32, tn_default_device());
    *values = x != NULL ? tn_tensor_data(x) : NULL;
    return *values != NULL ? x : NULL;
}

/* Sample `at` of a channel, which is mirrored at its ends. */
static double sample_at(const float *values, int64_t length, int64_t at)
{
    at = at < 0 ? -at : at;
    at = at >= length ? 2 * (length - 1) - at : at;
    return (double)values[at];
}

/* What all spectra need. */
struct work {
    struct spectrum_fft fft;
    double *window; /* [n_fft], with zeros around */
    double *bands;  /* [n_mels, n_fft / 2 + 1] */
    double *in, *out;
};

static tn_status work_begin(const struct spectrum *o, struct work *work)
{
    int64_t n = o->n_fft, length = window_of(o), count = n / 2 + 1, before = (n - length) / 2;
    tn_status status = spectrum_fft_begin(&work->fft, n);

    work->window = tn_calloc((size_t)n, sizeof(double));
    work->bands = tn_malloc((size_t)(o->n_mels * count) * sizeof(double));
    work->in = tn_malloc((size_t)(2 * n) * sizeof(double));
    work->out = tn_malloc((size_t)(2 * n) * sizeof(double));
    if (status != TN_OK || work->window == NULL || work->bands == NULL || work->in == NULL ||
        work->out == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < length; i++)
        work->window[before + i] = 0.5 - 0.5 * cos(2 * PI * (double)i / (double)length);
    for (int64_t b = 0; b < o->n_mels; b++)
        make_band(o, b, work->bands + b * count);
    return TN_OK;
}

static void work_end(struct work *work)
{
    spectrum_fft_end(&work->fft);
    tn_free(work->window);
    tn_free(work->bands);
    tn_free(work->in);
    tn_free(work->out);
}

/* Computes the bands of spectrum `frame` of a channel: to[0], to[stride], ... */
static void put_bands(const struct spectrum *o, struct work *work, const float *values,
                      int64_t length, int64_t frame, double *to, int64_t stride)
{
    int64_t count = o->n_fft / 2 + 1, first = frame * hop_of(o) - (o->center ? o->n_fft / 2 : 0);
    double *power = work->in;

    for (int64_t i = 0; i < o->n_fft; i++) {
        double window = work->window[i];

        work->in[2 * i] = window == 0 ? 0 : window * sample_at(values, length, first + i);
        work->in[2 * i + 1] = 0;
    }
    spectrum_fft_run(&work->fft, work->in, work->out);
    for (int64_t i = 0; i < count; i++) {
        double square = work->out[2 * i] * work->out[2 * i] +
                        work->out[2 * i + 1] * work->out[2 * i + 1];

        power[i] = o->power == 2 ? square : pow(square, o->power / 2);
    }
    for (int64_t b = 0; b < o->n_mels; b++) {
        const double *weights = work->bands + b * count;
        double sum = 0;

        for (int64_t i = 0; i < count; i++)
            sum += weights[i] * power[i];
        to[b * stride] = sum;
    }
}

/* Returns the bands of all spectra, [channels, n_mels, frames], which the caller frees; NULL on
 * failure. */
static double *bands_of(const tn_transform_args *args, const struct spectrum *o,
                        const struct sound *sound)
{
    uint64_t each = (uint64_t)o->n_mels * (uint64_t)sound->frames * sizeof(double);
    uint64_t most = data_most((uint64_t)(sound->channels * sound->length) * sizeof(float));
    struct work work = { .window = NULL };
    double *bands = NULL;

    if (sound->channels > 0 && each > most / (uint64_t)sound->channels) {
        tn_fail(TN_ERR_REFUSED,
                "%s: too large, got %lld spectra of %lld bands; expected at most %llu bytes, raise "
                "hop_length or TENON_DATA_UNPACKED_MAX",
                args->def->name, (long long)sound->frames, (long long)o->n_mels,
                (unsigned long long)most);
        return NULL;
    }
    if (work_begin(o, &work) == TN_OK)
        bands = tn_malloc((size_t)each * (size_t)sound->channels + sizeof *bands);
    for (int64_t c = 0; c < sound->channels && bands != NULL; c++)
        for (int64_t t = 0; t < sound->frames; t++)
            put_bands(o, &work, sound->values + c * sound->length, sound->length, t,
                      bands + c * o->n_mels * sound->frames + t, sound->frames);
    work_end(&work);
    return bands;
}

/* ---- MelSpectrogram -------------------------------------------------------------------------- */

static tn_status mel_apply(tn_transform_args *args)
{
    const struct spectrum *o = args->options;
    struct sound sound;
    tn_status status = sound_get(args, o, &sound);
    double *bands = status == TN_OK ? bands_of(args, o, &sound) : NULL;
    float *to = NULL;
    tn_tensor *y = NULL;

    if (bands != NULL)
        y = sound_result(&sound, o->n_mels, &to);
    for (int64_t i = 0; y != NULL && i < sound.channels * o->n_mels * sound.frames; i++)
        to[i] = (float)bands[i];
    tn_free(bands);
    return data_image_put(args, y);
}

static const tn_option mel_options[] = {
#include "spectrum_options_template.h"
    TN_OPTION_ROW(struct spectrum, norm, "None",
                  "slaney: each band is divided by its width; None: it is not",
                  TN_OPTION_KIND_STRING, TN_OPTION_OPTIONAL),
    TN_OPTION_END
};

const tn_transform_def data_mel_spectrogram = {
    TN_HEAD(tn_transform_def),
    .name = "MelSpectrogram",
    .help = "a sound, float32 [C, length], becomes the power of its bands: [C, n_mels, spectra]",
    .options = mel_options,
    .data_size = sizeof(struct spectrum),
    .check = mel_check,
    .apply = mel_apply,
};

/* ---- decibels -------------------------------------------------------------------------------- */

/* To decibels of a power or, with `factor` 20, of an amplitude. Values more than `top` below the
 * largest become that. A NaN stays one, and makes one of all if `top` is given, as in PyTorch. */
static void to_decibels(double *values, int64_t count, double factor, double top)
{
    double largest = -INFINITY;

    for (int64_t i = 0; i < count; i++) {
        values[i] = factor * log10(values[i] < 1e-10 ? 1e-10 : values[i]);
        largest = values[i] > largest || isnan(values[i]) ? values[i] : largest;
    }
    for (int64_t i = 0; i < count && !isnan(top); i++)
        values[i] = values[i] >= largest - top ? values[i] : largest - top;
}

struct decibels {
    const char *stype;
    double top_db;
};
static const tn_option decibels_options[] = {
    TN_OPTION_STRING(struct decibels, stype, "'power'", "what the values are: power or magnitude"),
    TN_OPTION_ROW(struct decibels, top_db, "None",
                  "values that are further below the largest one are raised; None: none is",
                  TN_OPTION_KIND_FLOAT, TN_OPTION_OPTIONAL),
    TN_OPTION_END
};

static tn_status decibels_check(const tn_transform_def *self, const void *options)
{
    const struct decibels *o = options;

    if (strcmp(o->stype, "power") != 0 && strcmp(o->stype, "magnitude") != 0)
        return tn_fail(TN_ERR_VALUE, "%s: stype: unknown, got %q; expected power or magnitude",
                       self->name, o->stype);
    if (o->top_db < 0)
        return tn_fail(TN_ERR_VALUE, "%s: top_db: out of range, got %g; expected 0 or more",
                       self->name, o->top_db);
    return TN_OK;
}

static tn_status decibels_apply(tn_transform_args *args)
{
    const struct decibels *o = args->options;
    struct data_numbers x;
    tn_status status = data_numbers_get(args, &x);
    double *values = NULL;
    float *to = NULL;
    tn_tensor *y = NULL;

    if (status == TN_OK && x.dtype != TN_F32)
        return tn_fail(TN_ERR_TYPE,
                       "%s: entry 0 of the sample: wrong dtype, got %s; expected "
                       "float32",
                       args->def->name, tn_dtype_name(x.dtype));
    if (status == TN_OK)
        values = tn_malloc((size_t)x.count * sizeof *values + 1);
    if (values != NULL)
        y = data_numbers_new(&x, &to);
    for (int64_t i = 0; y != NULL && i < x.count; i++)
        values[i] = (double)((const float *)x.values)[i];
    if (y != NULL)
        to_decibels(values, x.count, o->stype[0] == 'p' ? 10 : 20, o->top_db);
    for (int64_t i = 0; y != NULL && i < x.count; i++)
        to[i] = (float)values[i];
    tn_free(values);
    return data_image_put(args, y);
}

const tn_transform_def data_amplitude_to_db = {
    TN_HEAD(tn_transform_def),
    .name = "AmplitudeToDB",
    .help = "decibels of a spectrogram, float32",
    .options = decibels_options,
    .data_size = sizeof(struct decibels),
    .check = decibels_check,
    .apply = decibels_apply,
};

/* ---- MFCC ------------------------------------------------------------------------------------ */

static const tn_option mfcc_options[] = {
#include "spectrum_options_template.h"
    TN_OPTION_INT(struct spectrum, n_mfcc, "40", "coefficients, at most n_mels"),
    TN_OPTION_BOOL(struct spectrum, log_mels, "False",
                   "of logarithms of the bands in place of decibels"),
    TN_OPTION_END
};

static tn_status mfcc_check(const tn_transform_def *self, const void *options)
{
    const struct spectrum *o = options;
    tn_status status = mel_check(self, options);

    return status == TN_OK ? check_range(self->name, "n_mfcc", o->n_mfcc, 1, o->n_mels) : status;
}

/* The cosine transform (DCT-II, orthonormal) of the bands of a spectrum. */
static void put_coefficients(const struct spectrum *o, const double *bands, int64_t frames,
                             const double *cosines, float *to)
{
    for (int64_t k = 0; k < o->n_mfcc; k++) {
        double sum = 0;

        for (int64_t b = 0; b < o->n_mels; b++)
            sum += bands[b * frames] * cosines[k * o->n_mels + b];
        to[k * frames] = (float)sum;
    }
}

static double *cosines_of(const struct spectrum *o)
{
    double n = (double)o->n_mels,
           *cosines = tn_malloc((size_t)(o->n_mfcc * o->n_mels) * sizeof *cosines);

    for (int64_t k = 0; k < o->n_mfcc && cosines != NULL; k++)
        for (int64_t b = 0; b < o->n_mels; b++)
            cosines[k * o->n_mels + b] = cos(PI / n * ((double)b + 0.5) * (double)k) *
                                         sqrt((k == 0 ? 1 : 2) / n);
    return cosines;
}

static tn_status mfcc_apply(tn_transform_args *args)
{
    const struct spectrum *o = args->options;
    struct sound sound;
    tn_status status = sound_get(args, o, &sound);
    double *bands = status == TN_OK ? bands_of(args, o, &sound) : NULL;
    double *cosines = bands != NULL ? cosines_of(o) : NULL;
    float *to = NULL;
    tn_tensor *y = NULL;
    int64_t count;

    if (cosines != NULL)
        y = sound_result(&sound, o->n_mfcc, &to);
    if (y != NULL) {
        count = sound.channels * o->n_mels * sound.frames;
        for (int64_t i = 0; i < count && o->log_mels; i++)
            bands[i] = log(bands[i] + 1e-6);
        if (!o->log_mels)
            to_decibels(bands, count, 10, 80);
        for (int64_t c = 0; c < sound.channels; c++)
            for (int64_t t = 0; t < sound.frames; t++)
                put_coefficients(o, bands + c * o->n_mels * sound.frames + t, sound.frames, cosines,
                                 to + c * o->n_mfcc * sound.frames + t);
    }
    tn_free(bands);
    tn_free(cosines);
    return data_image_put(args, y);
}

const tn_transform_def data_mfcc = {
    TN_HEAD(tn_transform_def),
    .name = "MFCC",
    .help =
        "a sound, float32 [C, length], becomes mel-frequency cepstral coefficients: [C, n_mfcc, "
        "spectra]",
    .options = mfcc_options,
    .data_size = sizeof(struct spectrum),
    .check = mfcc_check,
    .apply = mfcc_apply,
};

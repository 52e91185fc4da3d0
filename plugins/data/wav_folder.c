/* SPDX-License-Identifier: MIT
 *
 * Sounds in folders: WAV files in a folder for each class. */
#include "wav.h"

#include <string.h>

static const char *const extensions[] = { ".wav", NULL };

enum crop { START, MIDDLE, RANDOM };
static const char *const crops[] = { "start", "middle", "random" };

struct wav_folder {
    struct data_folder folder;
    int64_t length; /* frames of a sample; INT64_MIN: as many as the file has */
    int64_t rate;   /* INT64_MIN: any */
    enum crop crop;
    bool mono;
};

struct wav_folder_options {
    const char *root;
    int64_t length;
    const char *crop;
    bool mono;
    int64_t sample_rate;
};
static const tn_option options[] = {
    TN_OPTION_ROW(struct wav_folder_options, root, NULL,
                  "folder that has a folder with .wav files for each class", TN_OPTION_KIND_STRING,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct wav_folder_options, length, "None",
                  "samples of each channel: longer files are cut, shorter ones get zeros at the "
                  "end; None: as many as the file has",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_STRING(struct wav_folder_options, crop, "'start'",
                     "the part that stays of a longer file: start, middle or random"),
    TN_OPTION_BOOL(struct wav_folder_options, mono, "False", "mean of the channels"),
    TN_OPTION_ROW(struct wav_folder_options, sample_rate, "None",
                  "samples for each second that files must have; None: any", TN_OPTION_KIND_INT,
                  TN_OPTION_OPTIONAL),
    TN_OPTION_END
};

static void wav_folder_close(void *handle)
{
    struct wav_folder *f = handle;

    if (f == NULL)
        return;
    data_folder_free(&f->folder);
    tn_free(f);
}

static tn_status set_options(struct wav_folder *f, const struct wav_folder_options *o)
{
    int crop = 0;

    while (crop < 3 && strcmp(crops[crop], o->crop) != 0)
        crop++;
    if (crop == 3)
        return tn_fail(TN_ERR_VALUE, "crop: unknown, got %q; expected start, middle or random",
                       o->crop);
    if (o->length != INT64_MIN && (o->length < 1 || o->length > INT32_MAX))
        return tn_fail(TN_ERR_VALUE, "length: out of range, got %lld; expected 1 to %d",
                       (long long)o->length, INT32_MAX);
    f->length = o->length;
    f->rate = o->sample_rate;
    f->crop = (enum crop)crop;
    f->mono = o->mono;
    return TN_OK;
}

static tn_status wav_folder_open(tn_dataset_open *args)
{
    const struct wav_folder_options *o = args->options;
    struct wav_folder *f = tn_calloc(1, sizeof *f);
    tn_status status = f != NULL ? set_options(f, o) : TN_ERR_MEMORY;

    if (status == TN_OK) {
        f->folder = (struct data_folder){ .extensions = extensions,
                                          .endings = ".wav",
                                          .what = "sounds" };
        status = data_folder_read(&f->folder, o->root);
    }
    if (status != TN_OK) {
        wav_folder_close(f);
        return status;
    }
    args->handle = f;
    args->count = f->folder.files.count;
    args->classes = f->folder.classes.count;
    args->class_names = (const char *const *)f->folder.classes.at;
    return TN_OK;
}

/* The first frame of the part that a sample has. */
static int64_t first_of(const struct wav_folder *f, const struct wav *wav, int64_t length,
                        const tn_sample_args *args)
{
    int64_t spare = wav->frames - length;
    tn_random_key key = { args->seed, 0 };

    if (spare <= 0 || f->crop == START)
        return 0;
    if (f->crop == MIDDLE)
        return spare / 2;
    key.seed = tn_random_bits(&key) ^ (uint64_t)args->epoch * 0xD6E8FEB86659FD93u;
    key.seed = tn_random_bits(&key) ^ (uint64_t)args->index * 0xD6E8FEB86659FD93u;
    return tn_random_below(&key, spare + 1);
}

/* The mean of the channels, in the place of the first. */
static void mix_down(float *values, int64_t channels, int64_t length)
{
    for (int64_t i = 0; i < length; i++) {
        double sum = 0;

        for (int64_t c = 0; c < channels; c++)
            sum += (double)values[c * length + i];
        values[i] = (float)(sum / (double)channels);
    }
}

static tn_status add_sound(const struct wav_folder *f, const struct wav *wav,
                           const tn_sample_args *args)
{
    int64_t length = f->length != INT64_MIN ? f->length : wav->frames, total;
    int64_t count = wav->frames < length ? wav->frames : length;
    int64_t channels = f->mono ? 1 : wav->channels;
    float *values;
    tn_status status;

    if (__builtin_mul_overflow(wav->channels, length, &total) || total > (int64_t)1 << 40)
        return tn_fail(TN_ERR_VALUE, "length: too large for %lld channels, got %lld",
                       (long long)wav->channels, (long long)length);
    values = tn_calloc((size_t)total + 1, sizeof *values);
    if (values == NULL)
        return TN_ERR_MEMORY;
    wav_read(wav, first_of(f, wav, length, args), count, values, length);
    if (f->mono && wav->channels > 1)
        mix_down(values, wav->channels, length);
    status = data_add_tensor(args->out, values, TN_F32, TN_SHAPE(channels, length));
    tn_free(values);
    return status;
}

static tn_status wav_folder_get(const tn_sample_args *args)
{
    const struct wav_folder *f = args->handle;
    const char *path = f->folder.files.at[args->index];
    uint64_t size;
    unsigned char *bytes = data_load(path, &size);
    struct wav wav;
    tn_status status = bytes != NULL ? wav_open(&wav, path, bytes, size) : tn_error_last_code();

    if (status == TN_OK && f->rate != INT64_MIN && wav.rate != f->rate)
        status = tn_fail(TN_ERR_VALUE,
                         "%s: sample_rate: got %lld; expected %lld, resample the file", path,
                         (long long)wav.rate, (long long)f->rate);
    if (status == TN_OK)
        status = add_sound(f, &wav, args);
    tn_free(bytes);
    return status == TN_OK
               ? tn_pack_add(args->out, NULL, tn_value_int(f->folder.labels[args->index]))
               : status;
}

const tn_dataset_def data_wav_folder = {
    TN_HEAD(tn_dataset_def),
    .name = "WAVFolder",
    .help = "WAV files in a folder for each class: (float32 [channels, length], class)",
    .options = options,
    .data_size = sizeof(struct wav_folder_options),
    .open = wav_folder_open,
    .get = wav_folder_get,
    .close = wav_folder_close,
};

/* SPDX-License-Identifier: MIT
 *
 * Shared by the datasets of WAV files: checks options, creates and closes the datasets. */
#include "wav.h"

#include <string.h>

static tn_status part_of(const struct wav_options *options, struct wav_part *part)
{
    static const char *const crops[] = { "start", "middle", "random" };
    int at = 0;

    while (at < 3 && strcmp(crops[at], options->crop) != 0)
        at++;
    if (at == 3)
        return tn_fail(TN_ERR_VALUE, "crop: unknown, got %q; expected start, middle or random",
                       options->crop);
    if (options->length != INT64_MIN && (options->length < 1 || options->length > INT32_MAX))
        return tn_fail(TN_ERR_VALUE, "length: out of range, got %lld; expected 1 to %d",
                       (long long)options->length, INT32_MAX);
    if (options->max_channels < 1)
        return tn_fail(TN_ERR_VALUE, "max_channels: out of range, got %lld; expected 1 or more",
                       (long long)options->max_channels);
    if (options->sample_rate != INT64_MIN &&
        (options->sample_rate < 1 || options->sample_rate > INT32_MAX))
        return tn_fail(TN_ERR_VALUE, "sample_rate: out of range, got %lld; expected 1 to %d",
                       (long long)options->sample_rate, INT32_MAX);
    *part = (struct wav_part){ .length = options->length,
                               .rate = options->sample_rate,
                               .crop = (enum wav_crop)at,
                               .mono = options->mono,
                               .channels = options->max_channels };
    return TN_OK;
}

/* Returns the sample rate of the first file that can be read, 0 if none of a few can. */
static int64_t common_rate(const struct data_folder *folder)
{
    uint64_t mark = tn_error_mark();
    int64_t rate = 0;

    for (int64_t i = 0; i < folder->files.count && i < 16 && rate == 0; i++) {
        const char *path = folder->files.at[i];
        uint64_t size;
        unsigned char *bytes = data_load(path, &size);
        struct wav wav;

        if (bytes != NULL && wav_open(&wav, path, bytes, size) == TN_OK)
            rate = wav.rate;
        if (bytes != NULL)
            wav_close(&wav);
        tn_free(bytes);
    }
    tn_error_restore(mark);
    return rate;
}

static const char *lack(const char *ending)
{
    static const char *const decoded[] = { ".flac", ".ogg", ".oga", ".opus" };

    for (size_t i = 0; i < sizeof decoded / sizeof *decoded; i++)
        if (strcmp(ending, decoded[i]) == 0)
            return wav_sndfile_lack();
    return NULL;
}

struct wav_dataset *wav_dataset_new(const struct wav_options *options)
{
    static const char *const extensions[] = { ".wav", ".flac", ".ogg", ".oga", ".opus", NULL };
    struct wav_dataset *dataset = tn_calloc(1, sizeof *dataset);

    if (dataset == NULL)
        return NULL;
    dataset->folder = (struct data_folder){ .extensions = extensions,
                                            .endings = WAV_ENDINGS,
                                            .lack = lack,
                                            .what = "sounds",
                                            .known = wav_known,
                                            .unknown = "no " WAV_FORMATS " file" };
    if (part_of(options, &dataset->part) != TN_OK) {
        tn_free(dataset);
        return NULL;
    }
    return dataset;
}

tn_status wav_dataset_give(struct wav_dataset *dataset, tn_status status, tn_dataset_open *args)
{
    if (status != TN_OK) {
        wav_dataset_close(dataset);
        return status;
    }
    if (dataset->part.rate == INT64_MIN)
        dataset->part.common = common_rate(&dataset->folder);
    args->handle = dataset;
    args->count = dataset->folder.files.count;
    return TN_OK;
}

void wav_dataset_close(void *handle)
{
    struct wav_dataset *dataset = handle;

    if (dataset == NULL)
        return;
    data_folder_free(&dataset->folder);
    tn_free(dataset);
}

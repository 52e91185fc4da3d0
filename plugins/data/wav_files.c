/* SPDX-License-Identifier: MIT
 *
 * Sounds without classes: single files, and all WAV files of folders. */
#include "wav.h"

static const char *const extensions[] = { ".wav", NULL };

struct wav_files {
    struct data_folder folder;
    struct wav_part part;
};

struct wav_files_options {
    tn_value paths;
    int64_t length;
    const char *crop;
    bool mono;
    int64_t sample_rate;
};
static const tn_option options[] = {
    TN_OPTION_ROW(struct wav_files_options, paths, NULL,
                  "a WAV file, or a folder with .wav files at any depth; or a list of these",
                  TN_OPTION_KIND_VALUE, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct wav_files_options, length, "None",
                  "samples of each channel: longer files are cut, shorter ones get zeros at the "
                  "end; None: as many as the file has",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_STRING(struct wav_files_options, crop, "'start'",
                     "the part that stays of a longer file: start, middle or random"),
    TN_OPTION_BOOL(struct wav_files_options, mono, "False", "mean of the channels"),
    TN_OPTION_ROW(struct wav_files_options, sample_rate, "None",
                  "samples for each second that files must have; None: any", TN_OPTION_KIND_INT,
                  TN_OPTION_OPTIONAL),
    TN_OPTION_END
};

static void wav_files_close(void *handle)
{
    struct wav_files *f = handle;

    if (f == NULL)
        return;
    data_folder_free(&f->folder);
    tn_free(f);
}

static tn_status wav_files_open(tn_dataset_open *args)
{
    const struct wav_files_options *o = args->options;
    struct wav_files *f = tn_calloc(1, sizeof *f);
    const struct wav_part part = { o->length, o->sample_rate, WAV_START, o->mono };
    tn_status status = f != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK) {
        f->part = part;
        status = wav_part_check(&f->part, o->crop);
    }
    if (status == TN_OK) {
        f->folder = (struct data_folder){ .extensions = extensions,
                                          .endings = ".wav",
                                          .what = "sounds",
                                          .known = wav_known,
                                          .unknown = "no WAV file" };
        status = data_folder_paths(&f->folder, &o->paths);
    }
    if (status != TN_OK) {
        wav_files_close(f);
        return status;
    }
    args->handle = f;
    args->count = f->folder.files.count;
    return TN_OK;
}

static tn_status wav_files_get(const tn_sample_args *args)
{
    const struct wav_files *f = args->handle;
    const char *path = f->folder.files.at[args->index];
    tn_status status = wav_add(&f->part, path, args);

    return status == TN_OK ? tn_pack_add(args->out, NULL, tn_value_string(path)) : status;
}

const tn_dataset_def data_wav_files = {
    TN_HEAD(tn_dataset_def),
    .name = "WAVFiles",
    .help = "WAV files, without classes: (float32 [channels, length], path)",
    .options = options,
    .data_size = sizeof(struct wav_files_options),
    .open = wav_files_open,
    .get = wav_files_get,
    .close = wav_files_close,
};

/* SPDX-License-Identifier: MIT
 *
 * Sounds in folders: WAV files in a folder for each class. */
#include "wav.h"

static const char *const extensions[] = { ".wav", NULL };

struct wav_folder {
    struct data_folder folder;
    struct wav_part part;
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

static tn_status wav_folder_open(tn_dataset_open *args)
{
    const struct wav_folder_options *o = args->options;
    struct wav_folder *f = tn_calloc(1, sizeof *f);
    const struct wav_part part = { o->length, o->sample_rate, WAV_START, o->mono };
    tn_status status = f != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK) {
        f->part = part;
        status = wav_part_check(&f->part, o->crop);
    }
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

static tn_status wav_folder_get(const tn_sample_args *args)
{
    const struct wav_folder *f = args->handle;
    tn_status status = wav_add(&f->part, f->folder.files.at[args->index], args);

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

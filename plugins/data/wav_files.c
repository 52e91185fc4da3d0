/* SPDX-License-Identifier: MIT
 *
 * Sounds without classes: single files, and all files of sounds in folders. */
#include "wav.h"

static const tn_option options[] = {
    TN_OPTION_ROW(struct wav_options, paths, NULL,
                  "a " WAV_FORMATS
                  " file, or a folder with such files at any depth; or a list of these",
                  TN_OPTION_KIND_VALUE, TN_OPTION_REQUIRED),
#include "wav_options_template.h"
    TN_OPTION_END
};

static tn_status wav_files_open(tn_dataset_open *args)
{
    const struct wav_options *given = args->options;
    struct wav_dataset *dataset = wav_dataset_new(given);

    if (dataset == NULL)
        return tn_error_last_code();
    return wav_dataset_give(dataset, data_folder_paths(&dataset->folder, &given->paths), args);
}

static tn_status wav_files_get(const tn_sample_args *args)
{
    const struct wav_dataset *dataset = args->handle;
    const char *path = dataset->folder.files.at[args->index];
    tn_status status = wav_add(&dataset->part, path, args);

    return status == TN_OK ? tn_pack_add(args->out, NULL, tn_value_string(path)) : status;
}

const tn_dataset_def data_wav_files = {
    TN_HEAD(tn_dataset_def),
    .name = "WAVFiles",
    .help = WAV_FORMATS " files, without classes: (float32 [channels, length], path)",
    .options = options,
    .data_size = sizeof(struct wav_options),
    .open = wav_files_open,
    .get = wav_files_get,
    .close = wav_dataset_close,
};

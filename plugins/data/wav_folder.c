/* SPDX-License-Identifier: MIT
 *
 * Sounds in folders: WAV, FLAC and Ogg files in a folder for each class. */
#include "wav.h"

static const tn_option options[] = {
    TN_OPTION_ROW(struct wav_options, root, NULL,
                  "folder that has a folder with files " WAV_ENDINGS " for each class",
                  TN_OPTION_KIND_STRING, TN_OPTION_REQUIRED),
#include "wav_options_template.h"
    TN_OPTION_END
};

static tn_status wav_folder_open(tn_dataset_open *args)
{
    const struct wav_options *given = args->options;
    struct wav_dataset *dataset = wav_dataset_new(given);
    tn_status status;

    if (dataset == NULL)
        return tn_error_last_code();
    status = data_folder_read(&dataset->folder, given->root);
    if (status == TN_OK) {
        args->classes = dataset->folder.classes.count;
        args->class_names = (const char *const *)dataset->folder.classes.at;
    }
    return wav_dataset_give(dataset, status, args);
}

static tn_status wav_folder_get(const tn_sample_args *args)
{
    const struct wav_dataset *dataset = args->handle;
    tn_status status = wav_add(&dataset->part, dataset->folder.files.at[args->index], args);

    return status == TN_OK
               ? tn_pack_add(args->out, NULL, tn_value_int(dataset->folder.labels[args->index]))
               : status;
}

const tn_dataset_def data_wav_folder = {
    TN_HEAD(tn_dataset_def),
    .name = "WAVFolder",
    .help = WAV_FORMATS " files in a folder for each class: (float32 [channels, length], class)",
    .options = options,
    .data_size = sizeof(struct wav_options),
    .open = wav_folder_open,
    .get = wav_folder_get,
    .close = wav_dataset_close,
};

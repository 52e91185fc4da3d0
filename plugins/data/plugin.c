/* SPDX-License-Identifier: MIT
 *
 * The plugin with datasets and transforms of their samples. */
#include "data.h"

static struct {
    int64_t unpacked_max;
} settings;

static const tn_option options[] = {
    TN_OPTION_INT(__typeof__(settings), unpacked_max, "1073741824",
                  "bytes of memory that one file may fill beyond its own size"),
    TN_OPTION_END,
};

uint64_t data_most(uint64_t size)
{
    return size + (uint64_t)settings.unpacked_max; /* both are less than 2^63 */
}

tn_status data_limit(const char *path, uint64_t size, uint64_t bytes)
{
    if (bytes <= data_most(size))
        return TN_OK;
    return tn_fail(
        TN_ERR_REFUSED,
        "%s: unpacked data: too large for a file of %llu bytes; expected at most %lld bytes more "
        "than the file; if you trust it, raise TENON_DATA_UNPACKED_MAX",
        path, (unsigned long long)size, (long long)settings.unpacked_max);
}

static tn_status activate(const tn_plugin *self)
{
    (void)self;
    return settings.unpacked_max >= 0
               ? TN_OK
               : tn_fail(TN_ERR_VALUE,
                         "TENON_DATA_UNPACKED_MAX: negative, got %lld; expected a number of bytes",
                         (long long)settings.unpacked_max);
}

static const void *const contributions[] = {
    &data_digits,
    &data_mnist,
    &data_fashion_mnist,
    &data_idx,
    &data_cifar10,
    &data_cifar100,
    &data_csv,
    &data_csv_rows,
    &data_table,
    &data_table_rows,
    &data_tensors,
    &data_image_folder,
    &data_image_files,
    &data_wav_folder,
    &data_wav_files,
    &data_text_bytes,
    &data_text_bpe,
    &data_columns,
    &data_file_name,
    &data_to_float,
    &data_normalize,
    &data_center_crop,
    &data_random_crop,
    &data_pad,
    &data_random_horizontal_flip,
    &data_random_vertical_flip,
    &data_random_erasing,
    &data_resize,
    &data_random_resized_crop,
    &data_random_rotation,
    &data_random_affine,
    &data_color_jitter,
    &data_grayscale,
    &data_random_grayscale,
    &data_gaussian_blur,
    &data_gaussian_noise,
    &data_mel_spectrogram,
    &data_amplitude_to_db,
    &data_mfcc,
    &data_mix_up,
    &data_cut_mix,
};

static const tn_plugin data = {
    TN_HEAD(tn_plugin),
    .id = "tenon.data",
    .version = "0.1.0",
    .help = "datasets and transforms of their samples",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
    .options = options,
    .options_data = &settings,
    .activate = activate,
};

TN_PLUGIN_EXPORT(data);

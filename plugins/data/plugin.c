/* SPDX-License-Identifier: MIT
 *
 * The plugin with datasets and transforms of their samples. */
#include "data.h"

static const void *const contributions[] = {
    &data_digits,
    &data_mnist,
    &data_fashion_mnist,
    &data_idx,
    &data_cifar10,
    &data_cifar100,
    &data_csv,
    &data_csv_rows,
    &data_tensors,
    &data_image_folder,
    &data_image_files,
    &data_wav_folder,
    &data_wav_files,
    &data_text_bytes,
    &data_text_bpe,
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
};

TN_PLUGIN_EXPORT(data);

/* SPDX-License-Identifier: MIT
 *
 * Transforms of values: ToFloat, Normalize. */
#include "data.h"

#include <string.h>

/* ---- ToFloat --------------------------------------------------------------------------------- */

/* Converts the values; those of a byte, an image, are divided by 255. */
static tn_status to_float_apply(tn_transform_args *args)
{
    struct data_numbers x;
    float *to;
    tn_tensor *y;
    tn_status status = data_numbers_get(args, &x);

    if (status != TN_OK)
        return status;
    if (x.dtype == TN_F32)
        return data_same(args);
    if (x.dtype != TN_U8)
        return data_image_put(args, tn_cast(x.tensor, TN_F32));
    y = data_numbers_new(&x, &to);
    for (int64_t i = 0; y != NULL && i < x.count; i++)
        to[i] = (float)((const uint8_t *)x.values)[i] / 255.0f;
    return data_image_put(args, y);
}

/* ---- Normalize ------------------------------------------------------------------------------- */

struct normalize {
    tn_floats mean, std;
};
static const tn_option normalize_options[] = {
    TN_OPTION_ROW(struct normalize, mean, NULL,
                  "one number for each channel (index of dimension 0), or one for all",
                  TN_OPTION_KIND_FLOATS, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct normalize, std, NULL, "one number for each channel, or one for all",
                  TN_OPTION_KIND_FLOATS, TN_OPTION_REQUIRED),
    TN_OPTION_END
};

static tn_status normalize_check(const tn_transform_def *self, const void *options)
{
    const struct normalize *o = options;

    (void)self;
    if (o->mean.count < 1 || o->std.count < 1)
        return tn_fail(TN_ERR_VALUE, "Normalize: %s: empty; expected numbers",
                       o->mean.count < 1 ? "mean" : "std");
    for (int64_t i = 0; i < o->std.count; i++)
        if (o->std.at[i] == 0)
            return tn_fail(
                TN_ERR_VALUE,
                "Normalize: std: number %lld is 0; expected another number, because the values "
                "are divided by it",
                (long long)i);
    return TN_OK;
}

static tn_status check_channels(const char *what, int64_t count, int64_t channels)
{
    if (count == 1 || count == channels)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "Normalize: %s: wrong count, got %lld numbers; expected 1 or %lld, one for each "
                   "channel, the size of dimension 0",
                   what, (long long)count, (long long)channels);
}

static tn_status normalize_apply(tn_transform_args *args)
{
    const struct normalize *o = args->options;
    struct data_numbers x;
    float *to;
    tn_tensor *y;
    int64_t part;
    tn_status status = data_numbers_get(args, &x);

    if (status == TN_OK && x.dtype != TN_F32)
        status = tn_fail(TN_ERR_TYPE,
                         "Normalize: the tensor is %s; expected float32, use ToFloat before",
                         tn_dtype_name(x.dtype));
    if (status == TN_OK)
        status = check_channels("mean", o->mean.count, x.outer);
    if (status == TN_OK)
        status = check_channels("std", o->std.count, x.outer);
    if (status != TN_OK)
        return status;
    y = data_numbers_new(&x, &to);
    part = x.outer > 0 ? x.count / x.outer : 0;
    for (int64_t c = 0; c < x.outer && y != NULL; c++) {
        const float *from = (const float *)x.values + c * part;
        float mean = (float)o->mean.at[o->mean.count == 1 ? 0 : c];
        float std = (float)o->std.at[o->std.count == 1 ? 0 : c];

        for (int64_t i = 0; i < part; i++)
            to[c * part + i] = (from[i] - mean) / std;
    }
    return data_image_put(args, y);
}

/* ---- tables ---------------------------------------------------------------------------------- */

const tn_transform_def data_to_float = {
    TN_HEAD(tn_transform_def),
    .name = "ToFloat",
    .help = "numbers as float32: uint8 is divided by 255, others keep their values",
    .apply = to_float_apply,
};
const tn_transform_def data_normalize = {
    TN_HEAD(tn_transform_def),
    .name = "Normalize",
    .help = "(x - mean) / std for each channel, an index of dimension 0",
    .options = normalize_options,
    .data_size = sizeof(struct normalize),
    .check = normalize_check,
    .apply = normalize_apply,
};

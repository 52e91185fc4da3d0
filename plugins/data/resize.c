/* SPDX-License-Identifier: MIT
 *
 * Resize and RandomResizedCrop. */
#include "resample.h"

#include <math.h>
#include <string.h>

static tn_status check_size(const char *who, tn_ints size)
{
    bool good = size.count == 1 || size.count == 2;
    char text[DATA_NUMBERS];

    for (int64_t i = 0; i < size.count; i++)
        good &= size.at[i] >= 1 && size.at[i] <= 1 << 20;
    return good ? TN_OK
                : tn_fail(TN_ERR_VALUE,
                          "%s: size: wrong count or value, got %s; expected one or two numbers "
                          "from 1 to %d",
                          who, data_numbers_ints(text, size), 1 << 20);
}

static tn_status check_not_empty(const char *who, const struct data_image *x)
{
    if (x->height > 0 && x->width > 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: image: empty, got %lld x %lld; expected at least 1 x 1", who,
                   (long long)x->height, (long long)x->width);
}

/* ---- Resize ---------------------------------------------------------------------------------- */

struct resize {
    tn_ints size;
    const char *interpolation;
    int64_t max_size;
    bool antialias;
};
static const tn_option resize_options[] = {
    TN_OPTION_ROW(struct resize, size, NULL,
                  "height and width; one number: size of the shorter side, the other one in "
                  "proportion",
                  TN_OPTION_KIND_INTS, TN_OPTION_REQUIRED),
    TN_OPTION_STRING(struct resize, interpolation, "'bilinear'", "nearest, bilinear or bicubic"),
    TN_OPTION_ROW(struct resize, max_size, "None", "largest size of the longer side",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_BOOL(struct resize, antialias, "True", "averages when the image becomes smaller"),
    TN_OPTION_END
};

static tn_status resize_check(const tn_transform_def *self, const void *options)
{
    const struct resize *o = options;
    tn_status status = check_size(self->name, o->size);

    if (status == TN_OK && resample_filter_of(self->name, o->interpolation) < 0)
        return tn_error_last_code();
    if (status == TN_OK && o->max_size != INT64_MIN && o->size.count != 1)
        status = tn_fail(
            TN_ERR_VALUE,
            "Resize: max_size: not possible with two sizes, got %lld; expected None, or one "
            "number as the size",
            (long long)o->max_size);
    else if (status == TN_OK && o->max_size != INT64_MIN && o->max_size <= o->size.at[0])
        status = tn_fail(TN_ERR_VALUE,
                         "Resize: max_size: too small, got %lld; expected more than the size, %lld",
                         (long long)o->max_size, (long long)o->size.at[0]);
    return status;
}

/* The size of the result, as in torchvision. */
static void target_size(const struct resize *o, const struct data_image *x, int64_t *height,
                        int64_t *width)
{
    int64_t low = x->height < x->width ? x->height : x->width;
    int64_t high = x->height < x->width ? x->width : x->height, shorter, longer;

    if (o->size.count == 2) {
        *height = o->size.at[0];
        *width = o->size.at[1];
        return;
    }
    shorter = o->size.at[0];
    longer = (int64_t)((double)shorter * (double)high / (double)low);
    if (o->max_size != INT64_MIN && longer > o->max_size) {
        shorter = (int64_t)((double)o->max_size * (double)shorter / (double)longer);
        longer = o->max_size;
    }
    shorter = shorter > 0 ? shorter : 1;
    *height = x->height <= x->width ? shorter : longer;
    *width = x->height <= x->width ? longer : shorter;
}

static tn_status resize_apply(tn_transform_args *args)
{
    const struct resize *o = args->options;
    struct image_entry entry;
    const struct data_image *x = &entry.image;
    tn_status status = image_entry_open(args, &entry);
    int64_t height, width;

    if (status == TN_OK)
        status = check_not_empty("Resize", x);
    if (status == TN_OK) {
        struct image_part all = { 0, 0, x->height, x->width };

        target_size(o, x, &height, &width);
        if (height == x->height && width == x->width && !entry.encoded)
            status = data_same(args);
        else
            status = data_image_put(args, resample_entry(&entry, &all, height, width,
                                                         (enum resample_filter)resample_filter_of(
                                                             "Resize", o->interpolation),
                                                         o->antialias));
    }
    image_entry_close(&entry);
    return status;
}

/* ---- RandomResizedCrop ----------------------------------------------------------------------- */

struct random_resized_crop {
    tn_ints size;
    tn_floats scale, ratio;
    const char *interpolation;
    bool antialias;
};
static const tn_option random_resized_crop_options[] = {
    TN_OPTION_ROW(struct random_resized_crop, size, NULL,
                  "height and width, or one number for both", TN_OPTION_KIND_INTS,
                  TN_OPTION_REQUIRED),
    TN_OPTION_FLOATS(struct random_resized_crop, scale, "(0.08, 1.0)",
                     "smallest and largest part of the area"),
    TN_OPTION_FLOATS(struct random_resized_crop, ratio, "(0.75, 1.3333333333333333)",
                     "smallest and largest width / height"),
    TN_OPTION_STRING(struct random_resized_crop, interpolation, "'bilinear'",
                     "nearest, bilinear or bicubic"),
    TN_OPTION_BOOL(struct random_resized_crop, antialias, "True",
                   "averages when the image becomes smaller"),
    TN_OPTION_END
};

static bool is_range(tn_floats range, double low, double high)
{
    return range.count == 2 && range.at[0] >= low && range.at[0] <= range.at[1] &&
           range.at[1] <= high;
}

static tn_status random_resized_crop_check(const tn_transform_def *self, const void *options)
{
    const struct random_resized_crop *o = options;
    tn_status status = check_size(self->name, o->size);
    char text[DATA_NUMBERS];

    if (status == TN_OK && resample_filter_of(self->name, o->interpolation) < 0)
        return tn_error_last_code();
    if (status == TN_OK && !is_range(o->scale, 1e-9, 1))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: scale: no range, got %s; expected two numbers from 1e-09 to 1, "
                         "the smaller first",
                         self->name, data_numbers_floats(text, o->scale));
    if (status == TN_OK && !is_range(o->ratio, 1e-6, 1e6))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: ratio: no range, got %s; expected two numbers from 1e-06 to 1e+06, "
                         "the smaller first",
                         self->name, data_numbers_floats(text, o->ratio));
    return status;
}

/* Draws a part of the image. If ten tries do not fit, the middle with the nearest ratio. */
static void draw_part(const struct random_resized_crop *o, tn_random_key *key,
                      const struct data_image *x, struct image_part *part)
{
    double area = (double)x->height * (double)x->width, ratio;

    for (int i = 0; i < 10; i++) {
        double share = area * tn_random_between(key, o->scale.at[0], o->scale.at[1]);

        ratio = exp(tn_random_between(key, log(o->ratio.at[0]), log(o->ratio.at[1])));
        part->width = (int64_t)rint(sqrt(share * ratio));
        part->height = (int64_t)rint(sqrt(share / ratio));
        if (part->width < 1 || part->width > x->width || part->height < 1 ||
            part->height > x->height)
            continue;
        part->top = tn_random_below(key, x->height - part->height + 1);
        part->left = tn_random_below(key, x->width - part->width + 1);
        return;
    }
    ratio = (double)x->width / (double)x->height;
    part->width = x->width;
    part->height = x->height;
    if (ratio < o->ratio.at[0])
        part->height = (int64_t)rint((double)x->width / o->ratio.at[0]);
    else if (ratio > o->ratio.at[1])
        part->width = (int64_t)rint((double)x->height * o->ratio.at[1]);
    part->height = part->height > 0 ? part->height : 1;
    part->width = part->width > 0 ? part->width : 1;
    part->top = (x->height - part->height) / 2;
    part->left = (x->width - part->width) / 2;
}

static tn_status random_resized_crop_apply(tn_transform_args *args)
{
    const struct random_resized_crop *o = args->options;
    const char *who = "RandomResizedCrop";
    struct image_entry entry;
    tn_status status = image_entry_open(args, &entry);

    if (status == TN_OK)
        status = check_not_empty(who, &entry.image);
    if (status == TN_OK) {
        struct image_part part;

        draw_part(o, &args->random, &entry.image, &part);
        status = data_image_put(
            args, resample_entry(&entry, &part, o->size.at[0], o->size.at[o->size.count - 1],
                                 (enum resample_filter)resample_filter_of(who, o->interpolation),
                                 o->antialias));
    }
    image_entry_close(&entry);
    return status;
}

const tn_transform_def data_resize = {
    TN_HEAD(tn_transform_def),
    .name = "Resize",
    .help = "an image in another size",
    .options = resize_options,
    .data_size = sizeof(struct resize),
    .flags = TN_TRANSFORM_ENCODED,
    .check = resize_check,
    .apply = resize_apply,
};
const tn_transform_def data_random_resized_crop = {
    TN_HEAD(tn_transform_def),
    .name = "RandomResizedCrop",
    .help = "a random part of an image in another size",
    .options = random_resized_crop_options,
    .data_size = sizeof(struct random_resized_crop),
    .flags = TN_TRANSFORM_ENCODED,
    .check = random_resized_crop_check,
    .apply = random_resized_crop_apply,
};

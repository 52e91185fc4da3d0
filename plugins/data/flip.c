/* SPDX-License-Identifier: MIT
 *
 * RandomHorizontalFlip and RandomVerticalFlip. */
#include "data.h"

#include <string.h>

struct flip {
    double p;
};
static const tn_option options[] = {
    TN_OPTION_FLOAT(struct flip, p, "0.5", "probability that the image is flipped"), TN_OPTION_END
};

static tn_status check(const tn_transform_def *self, const void *data)
{
    double p = ((const struct flip *)data)->p;

    return p >= 0 && p <= 1 ? TN_OK
                            : tn_fail(TN_ERR_VALUE, "%s: p: out of range, got %g; expected 0 to 1",
                                      self->name, p);
}

static void mirror(const unsigned char *from, unsigned char *to, int64_t width, size_t item)
{
    if (item == 1)
        for (int64_t i = 0; i < width; i++)
            to[i] = from[width - 1 - i];
    else
        for (int64_t i = 0; i < width; i++)
            memcpy(to + (size_t)i * item, from + (size_t)(width - 1 - i) * item, item);
}

static tn_tensor *flipped(const struct data_image *x, bool horizontal)
{
    size_t row = (size_t)x->width * x->item;
    unsigned char *to;
    tn_tensor *y = data_image_new(x->channels, x->height, x->width, x->dtype, &to);

    for (int64_t c = 0; c < x->channels && y != NULL; c++)
        for (int64_t i = 0; i < x->height; i++, to += row) {
            int64_t at = c * x->height + (horizontal ? i : x->height - 1 - i);
            const unsigned char *from = x->values + (size_t)at * row;

            if (horizontal)
                mirror(from, to, x->width, x->item);
            else
                memcpy(to, from, row);
        }
    return y;
}

static tn_status apply(tn_transform_args *args, bool horizontal)
{
    const struct flip *o = args->options;
    struct data_image x;
    tn_status status;

    if (tn_random_between(&args->random, 0, 1) >= o->p)
        return data_same(args);
    status = data_image_get(args, &x);
    return status == TN_OK ? data_image_put(args, flipped(&x, horizontal)) : status;
}

static tn_status apply_horizontal(tn_transform_args *args)
{
    return apply(args, true);
}

static tn_status apply_vertical(tn_transform_args *args)
{
    return apply(args, false);
}

const tn_transform_def data_random_horizontal_flip = {
    TN_HEAD(tn_transform_def),
    .name = "RandomHorizontalFlip",
    .help = "swaps left and right with probability p",
    .options = options,
    .data_size = sizeof(struct flip),
    .check = check,
    .apply = apply_horizontal,
};
const tn_transform_def data_random_vertical_flip = {
    TN_HEAD(tn_transform_def),
    .name = "RandomVerticalFlip",
    .help = "swaps top and bottom with probability p",
    .options = options,
    .data_size = sizeof(struct flip),
    .check = check,
    .apply = apply_vertical,
};

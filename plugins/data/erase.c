/* SPDX-License-Identifier: MIT
 *
 * RandomErasing: overwrites a random rectangle of an image. */
#include "data.h"

#include <math.h>
#include <string.h>

struct erase {
    double p;
    tn_floats scale, ratio;
    double value;
};
static const tn_option options[] = {
    TN_OPTION_FLOAT(struct erase, p, "0.5", "probability that a rectangle is erased"),
    TN_OPTION_FLOATS(struct erase, scale, "(0.02, 0.33)", "smallest and largest part of the area"),
    TN_OPTION_FLOATS(struct erase, ratio, "(0.3, 3.3)", "smallest and largest height / width"),
    TN_OPTION_FLOAT(struct erase, value, "0", "value that is written"), TN_OPTION_END
};

static bool is_range(tn_floats range, double low, double high)
{
    return range.count == 2 && range.at[0] >= low && range.at[0] <= range.at[1] &&
           range.at[1] <= high;
}

static tn_status check(const tn_transform_def *self, const void *data)
{
    const struct erase *o = data;
    char text[DATA_NUMBERS];

    (void)self;
    if (!(o->p >= 0 && o->p <= 1))
        return tn_fail(TN_ERR_VALUE, "RandomErasing: p: out of range, got %g; expected 0 to 1",
                       o->p);
    if (!is_range(o->scale, 0, 1))
        return tn_fail(
            TN_ERR_VALUE,
            "RandomErasing: scale: no range, got %s; expected two numbers from 0 to 1, the "
            "smaller first",
            data_numbers_floats(text, o->scale));
    if (!is_range(o->ratio, 1e-6, 1e6))
        return tn_fail(TN_ERR_VALUE,
                       "RandomErasing: ratio: no range, got %s; expected two numbers from 1e-06 to "
                       "1e+06, the smaller first",
                       data_numbers_floats(text, o->ratio));
    return TN_OK;
}

/* Draws a rectangle that is lower and narrower than the image; false if ten tries find none. */
static bool draw(const struct erase *o, tn_random_key *key, const struct data_image *x,
                 int64_t box[4])
{
    double area = (double)x->height * (double)x->width;

    for (int i = 0; i < 10; i++) {
        double part = area * tn_random_between(key, o->scale.at[0], o->scale.at[1]);
        double ratio = exp(tn_random_between(key, log(o->ratio.at[0]), log(o->ratio.at[1])));
        int64_t height = (int64_t)rint(sqrt(part * ratio));
        int64_t width = (int64_t)rint(sqrt(part / ratio));

        if (height < 1 || width < 1 || height >= x->height || width >= x->width)
            continue;
        box[0] = tn_random_below(key, x->height - height + 1);
        box[1] = tn_random_below(key, x->width - width + 1);
        box[2] = height;
        box[3] = width;
        return true;
    }
    return false;
}

static void write_row(unsigned char *to, const struct data_image *x, int64_t count, double value)
{
    float number = (float)value;

    if (x->dtype == TN_U8)
        memset(to, !(value > 0) ? 0 : value >= 255 ? 255 : (int)value, (size_t)count);
    else
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * sizeof number, &number, sizeof number);
}

static tn_tensor *erased(const struct data_image *x, const int64_t box[4], double value)
{
    unsigned char *to;
    tn_tensor *y = data_image_new(x->channels, x->height, x->width, x->dtype, &to);

    if (y == NULL)
        return NULL;
    memcpy(to, x->values, (size_t)(x->channels * x->height * x->width) * x->item);
    for (int64_t c = 0; c < x->channels; c++)
        for (int64_t i = 0; i < box[2]; i++) {
            int64_t at = (c * x->height + box[0] + i) * x->width + box[1];

            write_row(to + (size_t)at * x->item, x, box[3], value);
        }
    return y;
}

static tn_status apply(tn_transform_args *args)
{
    const struct erase *o = args->options;
    struct data_image x;
    int64_t box[4];
    tn_status status;

    if (tn_random_between(&args->random, 0, 1) >= o->p)
        return data_same(args);
    status = data_image_get(args, &x);
    if (status != TN_OK)
        return status;
    if (!draw(o, &args->random, &x, box))
        return data_same(args);
    return data_image_put(args, erased(&x, box, o->value));
}

const tn_transform_def data_random_erasing = {
    TN_HEAD(tn_transform_def),
    .name = "RandomErasing",
    .help = "overwrites a random rectangle with probability p",
    .options = options,
    .data_size = sizeof(struct erase),
    .check = check,
    .apply = apply,
};

/* SPDX-License-Identifier: MIT
 *
 * GaussianNoise and GaussianBlur. */
#include "data.h"

#include <math.h>
#include <string.h>

/* The method of Box and Muller, one of its two numbers. */
double data_normal(tn_random_key *key)
{
    double radius = sqrt(-2 * log1p(-tn_random_between(key, 0, 1)));

    return radius * cos(tn_random_between(key, 0, 6.283185307179586));
}

/* ---- GaussianNoise --------------------------------------------------------------------------- */

struct noise {
    double mean, sigma;
    bool clip;
};
static const tn_option noise_options[] = {
    TN_OPTION_FLOAT(struct noise, mean, "0.0", "mean of the noise; 1 is white"),
    TN_OPTION_FLOAT(struct noise, sigma, "0.1", "deviation of the noise"),
    TN_OPTION_BOOL(struct noise, clip, "True", "limits the values to those of an image"),
    TN_OPTION_END
};

static tn_status noise_check(const tn_transform_def *self, const void *options)
{
    const struct noise *o = options;

    if (!(o->sigma >= 0 && o->sigma <= 100) || !(fabs(o->mean) <= 100))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: mean or sigma: out of range, got %g and %g; expected -100 to 100, and 0 "
            "to 100",
            self->name, o->mean, o->sigma);
    return TN_OK;
}

/* Without clip a sum of uint8 wraps around, as in torchvision. */
static unsigned char noisy_byte(unsigned char value, double noise, bool clip)
{
    int sum = value + (int)noise;

    return clip ? (unsigned char)(sum < 0 ? 0 : sum > 255 ? 255 : sum) : (unsigned char)sum;
}

static float noisy_float(float value, double noise, bool clip)
{
    float sum = value + (float)noise;

    return clip ? sum < 0 ? 0 : sum > 1 ? 1 : sum : sum;
}

static tn_status noise_apply(tn_transform_args *args)
{
    const struct noise *o = args->options;
    struct data_image x;
    unsigned char *to = NULL;
    tn_tensor *y = NULL;
    tn_status status = data_image_get(args, &x);
    int64_t count;

    if (status != TN_OK)
        return status;
    count = x.channels * x.height * x.width;
    y = data_image_new(x.channels, x.height, x.width, x.dtype, &to);
    for (int64_t i = 0; i < count && y != NULL; i++) {
        double noise = o->mean + o->sigma * data_normal(&args->random);

        if (x.dtype == TN_U8)
            to[i] = noisy_byte(x.values[i], noise * 255, o->clip);
        else
            ((float *)(void *)to)[i] = noisy_float(((const float *)(const void *)x.values)[i],
                                                   noise, o->clip);
    }
    return data_image_put(args, y);
}

/* ---- GaussianBlur ---------------------------------------------------------------------------- */

enum { KERNEL_MOST = 255 };

struct blur {
    tn_ints kernel_size;
    tn_floats sigma;
};
static const tn_option blur_options[] = {
    TN_OPTION_ROW(struct blur, kernel_size, NULL, "width and height of the filter, odd numbers",
                  TN_OPTION_KIND_INTS, TN_OPTION_REQUIRED),
    TN_OPTION_FLOATS(struct blur, sigma, "(0.1, 2.0)",
                     "lowest and highest deviation of the filter, or one number"),
    TN_OPTION_END
};

static tn_status blur_check(const tn_transform_def *self, const void *options)
{
    const struct blur *o = options;
    bool good = o->kernel_size.count == 1 || o->kernel_size.count == 2;
    char text[DATA_NUMBERS];

    for (int64_t i = 0; i < o->kernel_size.count; i++)
        good &= o->kernel_size.at[i] >= 1 && o->kernel_size.at[i] <= KERNEL_MOST &&
                o->kernel_size.at[i] % 2 == 1;
    if (!good)
        return tn_fail(
            TN_ERR_VALUE,
            "%s: kernel_size: wrong count or value, got %s; expected one or two odd numbers from 1 "
            "to %d",
            self->name, data_numbers_ints(text, o->kernel_size), KERNEL_MOST);
    if (o->sigma.count < 1 || o->sigma.count > 2 || !(o->sigma.at[0] > 0) ||
        !(o->sigma.at[o->sigma.count - 1] >= o->sigma.at[0]))
        return tn_fail(TN_ERR_VALUE,
                       "%s: sigma: no range, got %s; expected one or two numbers above 0, the "
                       "smaller first",
                       self->name, data_numbers_floats(text, o->sigma));
    return TN_OK;
}

/* The weights of a filter, whose sum is 1. */
static void weights_of(int64_t size, double sigma, float *weights)
{
    double sum = 0, exact[KERNEL_MOST];

    for (int64_t i = 0; i < size; i++) {
        double x = ((double)i - (double)(size - 1) / 2) / sigma;

        exact[i] = exp(-0.5 * x * x);
        sum += exact[i];
    }
    for (int64_t i = 0; i < size; i++)
        weights[i] = (float)(exact[i] / sum);
}

/* Position `at` of a line that is mirrored at its ends. */
static int64_t mirrored(int64_t at, int64_t size)
{
    return at < 0 ? -at : at >= size ? 2 * size - 2 - at : at;
}

/* Filters one plane; `rows` has space for one. */
static void blur_plane(const float *from, float *rows, float *to, int64_t height, int64_t width,
                       const int64_t sizes[2], float weights[2][KERNEL_MOST])
{
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < width; j++) {
            float sum = 0;

            for (int64_t k = 0; k < sizes[0]; k++)
                sum += weights[0][k] * from[i * width + mirrored(j + k - sizes[0] / 2, width)];
            rows[i * width + j] = sum;
        }
    memset(to, 0, (size_t)(height * width) * sizeof *to);
    for (int64_t i = 0; i < height; i++)
        for (int64_t k = 0; k < sizes[1]; k++) {
            const float *row = rows + mirrored(i + k - sizes[1] / 2, height) * width;

            for (int64_t j = 0; j < width; j++)
                to[i * width + j] += weights[1][k] * row[j];
        }
}

static tn_tensor *blurred(const struct data_image *x, const int64_t sizes[2],
                          float weights[2][KERNEL_MOST])
{
    int64_t plane = x->height * x->width;
    float *work = tn_malloc(((size_t)plane * 3 + 1) * sizeof *work);
    unsigned char *to;
    tn_tensor *y = work != NULL ? data_image_new(x->channels, x->height, x->width, x->dtype, &to)
                                : NULL;

    for (int64_t c = 0; c < x->channels && y != NULL; c++) {
        const unsigned char *from = x->values + (size_t)(c * plane) * x->item;

        for (int64_t i = 0; i < plane; i++)
            work[i] = x->dtype == TN_U8 ? (float)from[i] : ((const float *)(const void *)from)[i];
        blur_plane(work, work + plane, work + 2 * plane, x->height, x->width, sizes, weights);
        if (x->dtype == TN_F32)
            memcpy(to + (size_t)(c * plane) * 4, work + 2 * plane, (size_t)plane * 4);
        for (int64_t i = 0; i < plane && x->dtype == TN_U8; i++)
            to[c * plane + i] = (unsigned char)rintf(work[2 * plane + i]);
    }
    tn_free(work);
    return y;
}

static tn_status blur_apply(tn_transform_args *args)
{
    const struct blur *o = args->options;
    const int64_t sizes[2] = { o->kernel_size.at[0], o->kernel_size.at[o->kernel_size.count - 1] };
    double sigma = tn_random_between(&args->random, o->sigma.at[0],
                                     o->sigma.at[o->sigma.count - 1]);
    float weights[2][KERNEL_MOST];
    struct data_image x;
    tn_status status = data_image_get(args, &x);

    if (status != TN_OK)
        return status;
    if (x.width <= sizes[0] / 2 || x.height <= sizes[1] / 2)
        return tn_fail(
            TN_ERR_VALUE,
            "GaussianBlur: kernel_size: too large for an image of %lld x %lld, got %lld x "
            "%lld; expected less than twice the image",
            (long long)x.height, (long long)x.width, (long long)sizes[1], (long long)sizes[0]);
    weights_of(sizes[0], sigma, weights[0]);
    weights_of(sizes[1], sigma, weights[1]);
    return data_image_put(args, blurred(&x, sizes, weights));
}

/* ---- tables ---------------------------------------------------------------------------------- */

const tn_transform_def data_gaussian_noise = {
    TN_HEAD(tn_transform_def),
    .name = "GaussianNoise",
    .help = "adds random numbers of a normal distribution",
    .options = noise_options,
    .data_size = sizeof(struct noise),
    .check = noise_check,
    .apply = noise_apply,
};
const tn_transform_def data_gaussian_blur = {
    TN_HEAD(tn_transform_def),
    .name = "GaussianBlur",
    .help = "blurs an image by a filter of random width",
    .options = blur_options,
    .data_size = sizeof(struct blur),
    .check = blur_check,
    .apply = blur_apply,
};

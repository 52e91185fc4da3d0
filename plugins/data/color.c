/* SPDX-License-Identifier: MIT
 *
 * Transforms of colors: ColorJitter, Grayscale, RandomGrayscale. The formulas are those of
 * torchvision for tensors: float32, and uint8 rounded towards 0. */
#include "data.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- pixels ---------------------------------------------------------------------------------- */

/* An image that belongs to the transform, and is changed in place. */
struct canvas {
    int64_t channels, plane; /* plane: pixels */
    unsigned char *bytes;    /* uint8, or NULL */
    float *floats;           /* float32, or NULL */
};

static tn_tensor *canvas_of(const struct data_image *x, struct canvas *canvas)
{
    unsigned char *memory;
    tn_tensor *y = data_image_new(x->channels, x->height, x->width, x->dtype, &memory);

    if (y == NULL)
        return NULL;
    canvas->channels = x->channels;
    canvas->plane = x->height * x->width;
    canvas->bytes = x->dtype == TN_U8 ? memory : NULL;
    canvas->floats = x->dtype == TN_F32 ? (float *)(void *)memory : NULL;
    memcpy(memory, x->values, (size_t)(x->channels * canvas->plane) * x->item);
    return y;
}

static tn_status check_channels(const char *who, const struct data_image *x)
{
    if (x->channels == 1 || x->channels == 3)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: channels: wrong number, got %lld; expected 1 or 3", who,
                   (long long)x->channels);
}

static float limit(float value, float most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

static float gray_of(float red, float green, float blue)
{
    return red * 0.2989f + green * 0.587f + blue * 0.114f;
}

/* The gray value of pixel i, as a whole number for uint8. */
static float gray_at(const struct canvas *canvas, int64_t i)
{
    int64_t n = canvas->plane;

    if (canvas->floats != NULL)
        return gray_of(canvas->floats[i], canvas->floats[n + i], canvas->floats[2 * n + i]);
    return floorf(gray_of(canvas->bytes[i], canvas->bytes[n + i], canvas->bytes[2 * n + i]));
}

/* ---- the four changes ------------------------------------------------------------------------ */

/* x * ratio + other * (1 - ratio), for all values. */
static void blend_all(const struct canvas *canvas, float ratio, float other)
{
    int64_t count = canvas->channels * canvas->plane;
    float rest = other * (1.0f - ratio);
    unsigned char table[256];

    if (canvas->floats != NULL) {
        for (int64_t i = 0; i < count; i++)
            canvas->floats[i] = limit(canvas->floats[i] * ratio + rest, 1);
        return;
    }
    for (int i = 0; i < 256; i++)
        table[i] = (unsigned char)limit((float)i * ratio + rest, 255);
    for (int64_t i = 0; i < count; i++)
        canvas->bytes[i] = table[canvas->bytes[i]];
}

static void change_brightness(const struct canvas *canvas, double factor)
{
    blend_all(canvas, (float)factor, 0);
}

static void change_contrast(const struct canvas *canvas, double factor)
{
    double sum = 0;

    for (int64_t i = 0; i < canvas->plane; i++)
        sum += (double)(canvas->channels == 3    ? gray_at(canvas, i)
                        : canvas->floats != NULL ? canvas->floats[i]
                                                 : (float)canvas->bytes[i]);
    if (canvas->plane > 0)
        blend_all(canvas, (float)factor, (float)(sum / (double)canvas->plane));
}

static void change_saturation(const struct canvas *canvas, double factor)
{
    float ratio = (float)factor, other = (float)(1 - factor);

    if (canvas->channels != 3)
        return;
    for (int64_t i = 0; i < canvas->plane; i++) {
        float rest = gray_at(canvas, i) * other;

        for (int64_t at = i; at < 3 * canvas->plane; at += canvas->plane)
            if (canvas->floats != NULL)
                canvas->floats[at] = limit(canvas->floats[at] * ratio + rest, 1);
            else
                canvas->bytes[at] = (unsigned char)limit((float)canvas->bytes[at] * ratio + rest,
                                                         255);
    }
}

/* Hue of a color, 0 to 1. `most` and `range` are its largest value and the distance to the
 * smallest. */
static float hue_of(const float rgb[3], float most, float range)
{
    float divisor = range == 0 ? 1 : range, h;
    float r = (most - rgb[0]) / divisor, g = (most - rgb[1]) / divisor,
          b = (most - rgb[2]) / divisor;

    if (most == rgb[0])
        h = b - g;
    else if (most == rgb[1])
        h = r + 2.0f - b;
    else
        h = g + 4.0f - r;
    return fmodf(h * (1.0f / 6.0f) + 1.0f, 1.0f);
}

/* Turns the hue of one color with values from 0 to 1. */
static void turn(float rgb[3], float by)
{
    static const unsigned char places[6][3] = { { 0, 3, 1 }, { 2, 0, 1 }, { 1, 0, 3 },
                                                { 1, 2, 0 }, { 3, 1, 0 }, { 0, 1, 2 } };
    float most = fmaxf(fmaxf(rgb[0], rgb[1]), rgb[2]);
    float range = most - fminf(fminf(rgb[0], rgb[1]), rgb[2]);
    float s = range / (range == 0 ? 1 : most);
    float h = hue_of(rgb, most, range) + by, whole, part, v[4];
    int sector;

    h -= floorf(h);
    whole = floorf(h * 6);
    part = h * 6 - whole;
    sector = (int)whole % 6;
    sector = sector < 0 ? 0 : sector; /* of a NaN */
    v[0] = most;
    v[1] = limit((1.0f - s) * most, 1);
    v[2] = limit((1.0f - s * part) * most, 1);
    v[3] = limit((s * part + (1.0f - s)) * most, 1);
    for (int c = 0; c < 3; c++)
        rgb[c] = v[places[sector][c]];
}

static void change_hue(const struct canvas *canvas, double factor)
{
    int64_t n = canvas->plane;

    if (canvas->channels != 3)
        return;
    for (int64_t i = 0; i < n; i++) {
        float rgb[3];

        for (int c = 0; c < 3; c++)
            rgb[c] = canvas->floats != NULL ? canvas->floats[c * n + i]
                                            : (float)canvas->bytes[c * n + i] / 255.0f;
        turn(rgb, (float)factor);
        for (int c = 0; c < 3; c++)
            if (canvas->floats != NULL)
                canvas->floats[c * n + i] = rgb[c];
            else
                canvas->bytes[c * n + i] = (unsigned char)(rgb[c] * 255.999f);
    }
}

/* ---- ColorJitter ----------------------------------------------------------------------------- */

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, CHANGES };

struct jitter {
    tn_floats brightness, contrast, saturation, hue;
};
#define ROW(member, help)                                                                          \
    TN_OPTION_ROW(struct jitter, member, "None", help, TN_OPTION_KIND_FLOATS, TN_OPTION_OPTIONAL)

static const tn_option jitter_options[] = {
    ROW(brightness, "factors from 1 - x to 1 + x, or (lowest, highest)"),
    ROW(contrast, "factors from 1 - x to 1 + x, or (lowest, highest)"),
    ROW(saturation, "factors from 1 - x to 1 + x, or (lowest, highest)"),
    ROW(hue, "turns of the hue from -x to x, or (lowest, highest), in [-0.5, 0.5]"), TN_OPTION_END
};

/* Lowest and highest factor, as in torchvision. Returns whether they are a range. */
static bool range_of(const struct jitter *o, int change, double range[2])
{
    const tn_floats all[] = { o->brightness, o->contrast, o->saturation, o->hue };
    tn_floats given = all[change];
    double center = change == HUE ? 0 : 1;

    range[0] = range[1] = center;
    if (given.count == 2) {
        range[0] = given.at[0];
        range[1] = given.at[1];
    } else if (given.count == 1) {
        range[0] = center - given.at[0];
        range[1] = center + given.at[0];
        if (change != HUE && range[0] < 0)
            range[0] = 0;
    }
    return given.count <= 2 && range[0] <= range[1];
}

static tn_status jitter_check(const tn_transform_def *self, const void *options)
{
    static const char *const names[] = { "brightness", "contrast", "saturation", "hue" };
    const struct jitter *o = options;
    const tn_floats all[] = { o->brightness, o->contrast, o->saturation, o->hue };
    char text[DATA_NUMBERS];

    for (int i = 0; i < CHANGES; i++) {
        double least = i == HUE ? -0.5 : 0, most = i == HUE ? 0.5 : (double)FLT_MAX, range[2];

        if (!range_of(o, i, range) || !(range[0] >= least && range[1] <= most))
            return tn_fail(
                TN_ERR_VALUE,
                i == HUE ? "%s: %s: wrong value, got %s; expected a number from 0 to 0.5, or two "
                           "from -0.5 to 0.5, the smaller first"
                         : "%s: %s: wrong value, got %s; expected a number of at least 0, or two, "
                           "the smaller first",
                self->name, names[i], data_numbers_floats(text, all[i]));
    }
    return TN_OK;
}

static tn_status jitter_apply(tn_transform_args *args)
{
    static void (*const changes[])(const struct canvas *canvas,
                                   double factor) = { change_brightness, change_contrast,
                                                      change_saturation, change_hue };
    const struct jitter *o = args->options;
    struct data_image x;
    struct canvas canvas;
    tn_tensor *y;
    double factors[CHANGES];
    int order[CHANGES] = { BRIGHTNESS, CONTRAST, SATURATION, HUE };
    bool used[CHANGES];
    tn_status status = data_image_get(args, &x);

    if (status == TN_OK)
        status = check_channels("ColorJitter", &x);
    if (status != TN_OK)
        return status;
    for (int i = CHANGES - 1; i > 0; i--) {
        int64_t other = tn_random_below(&args->random, i + 1);
        int kept = order[i];

        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < CHANGES; i++) {
        double range[2], center = i == HUE ? 0 : 1;

        (void)range_of(o, i, range);
        used[i] = range[0] != center || range[1] != center;
        factors[i] = tn_random_between(&args->random, range[0], range[1]);
    }
    y = canvas_of(&x, &canvas);
    for (int i = 0; i < CHANGES && y != NULL; i++)
        if (used[order[i]])
            changes[order[i]](&canvas, factors[order[i]]);
    return data_image_put(args, y);
}

/* ---- Grayscale ------------------------------------------------------------------------------- */

struct grayscale {
    int64_t num_output_channels;
};
static const tn_option grayscale_options[] = { TN_OPTION_INT(struct grayscale, num_output_channels,
                                                             "1", "1 or 3, which are then equal"),
                                               TN_OPTION_END };

static tn_status grayscale_check(const tn_transform_def *self, const void *options)
{
    int64_t channels = ((const struct grayscale *)options)->num_output_channels;

    return channels == 1 || channels == 3
               ? TN_OK
               : tn_fail(TN_ERR_VALUE, "%s: num_output_channels: wrong, got %lld; expected 1 or 3",
                         self->name, (long long)channels);
}

static tn_tensor *gray(const struct data_image *x, int64_t channels)
{
    int64_t plane = x->height * x->width;
    size_t size = (size_t)plane * x->item;
    const struct canvas from = { x->channels, plane,
                                 x->dtype == TN_U8 ? (unsigned char *)(uintptr_t)x->values : NULL,
                                 x->dtype == TN_F32 ? (float *)(uintptr_t)x->values : NULL };
    unsigned char *memory;
    tn_tensor *y = data_image_new(channels, x->height, x->width, x->dtype, &memory);

    if (y == NULL)
        return NULL;
    if (x->channels == 1)
        memcpy(memory, x->values, size);
    else if (x->dtype == TN_U8)
        for (int64_t i = 0; i < plane; i++)
            memory[i] = (unsigned char)gray_at(&from, i);
    else
        for (int64_t i = 0; i < plane; i++)
            ((float *)(void *)memory)[i] = gray_at(&from, i);
    for (int64_t c = 1; c < channels; c++)
        memcpy(memory + (size_t)c * size, memory, size);
    return y;
}

static tn_status grayscale_apply(tn_transform_args *args)
{
    const struct grayscale *o = args->options;
    struct data_image x;
    tn_status status = data_image_get(args, &x);

    if (status == TN_OK)
        status = check_channels(args->def->name, &x);
    return status == TN_OK ? data_image_put(args, gray(&x, o->num_output_channels)) : status;
}

/* ---- RandomGrayscale ------------------------------------------------------------------------- */

struct random_grayscale {
    double p;
};
static const tn_option random_grayscale_options[] = {
    TN_OPTION_FLOAT(struct random_grayscale, p, "0.1", "probability that the image becomes gray"),
    TN_OPTION_END
};

static tn_status random_grayscale_check(const tn_transform_def *self, const void *options)
{
    double p = ((const struct random_grayscale *)options)->p;

    return p >= 0 && p <= 1 ? TN_OK
                            : tn_fail(TN_ERR_VALUE, "%s: p: out of range, got %g; expected 0 to 1",
                                      self->name, p);
}

static tn_status random_grayscale_apply(tn_transform_args *args)
{
    const struct random_grayscale *o = args->options;
    struct data_image x;
    tn_status status = data_image_get(args, &x);

    if (status == TN_OK)
        status = check_channels(args->def->name, &x);
    if (status != TN_OK)
        return status;
    if (tn_random_between(&args->random, 0, 1) >= o->p)
        return data_same(args);
    return data_image_put(args, gray(&x, x.channels));
}

/* ---- tables ---------------------------------------------------------------------------------- */

const tn_transform_def data_color_jitter = {
    TN_HEAD(tn_transform_def),
    .name = "ColorJitter",
    .help = "changes brightness, contrast, saturation and hue at random, in a random order",
    .options = jitter_options,
    .data_size = sizeof(struct jitter),
    .check = jitter_check,
    .apply = jitter_apply,
};
const tn_transform_def data_grayscale = {
    TN_HEAD(tn_transform_def),
    .name = "Grayscale",
    .help = "an image without colors",
    .options = grayscale_options,
    .data_size = sizeof(struct grayscale),
    .check = grayscale_check,
    .apply = grayscale_apply,
};
const tn_transform_def data_random_grayscale = {
    TN_HEAD(tn_transform_def),
    .name = "RandomGrayscale",
    .help = "an image without colors, as many channels, with probability p",
    .options = random_grayscale_options,
    .data_size = sizeof(struct random_grayscale),
    .check = random_grayscale_check,
    .apply = random_grayscale_apply,
};

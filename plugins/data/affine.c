/* SPDX-License-Identifier: MIT
 *
 * RandomRotation and RandomAffine. Positions are computed in float32, as torchvision does. */
#include "data.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- resampling ------------------------------------------------------------------------------ */

/* From a position in the result, relative to its center, to one in the image. */
struct mapping {
    double matrix[6];
    int64_t height, width; /* of the result */
    bool bilinear;
    double fill;
};

static float value_at(const struct data_image *x, int64_t channel, int64_t row, int64_t column)
{
    int64_t at = (channel * x->height + row) * x->width + column;

    return x->dtype == TN_U8 ? (float)x->values[at] : ((const float *)(const void *)x->values)[at];
}

static bool is_inside(const struct data_image *x, int64_t row, int64_t column)
{
    return row >= 0 && row < x->height && column >= 0 && column < x->width;
}

static float nearest(const struct data_image *x, int64_t channel, float row, float column,
                     float fill)
{
    int64_t i = (int64_t)rintf(row), j = (int64_t)rintf(column);

    return is_inside(x, i, j) ? value_at(x, channel, i, j) : fill;
}

/* Returns the weighted sum of the four pixels around a position. Pixels outside of the image count
 * as 0; the sum is then mixed with the fill, by the weight of the pixels inside. */
static float bilinear(const struct data_image *x, int64_t channel, float row, float column,
                      float fill)
{
    int64_t top = (int64_t)floorf(row), left = (int64_t)floorf(column);
    float down = row - (float)top, across = column - (float)left, sum = 0, inside = 0;

    for (int k = 0; k < 4; k++) {
        int64_t i = top + k / 2, j = left + k % 2;
        float weight = (k / 2 ? down : 1 - down) * (k % 2 ? across : 1 - across);

        if (is_inside(x, i, j)) {
            sum += weight * value_at(x, channel, i, j);
            inside += weight;
        }
    }
    return (sum - fill) * inside + fill;
}

static void put_value(const struct data_image *x, unsigned char *to, int64_t at, float value)
{
    if (x->dtype == TN_F32)
        ((float *)(void *)to)[at] = value;
    else
        to[at] = (unsigned char)(!(value > 0) ? 0 : value >= 255 ? 255 : rintf(value)); /* NaN */
}

static tn_tensor *mapped(const struct data_image *x, const struct mapping *map)
{
    float theta[6], width = (float)x->width, height = (float)x->height, fill = (float)map->fill;
    unsigned char *to;
    tn_tensor *y = data_image_new(x->channels, map->height, map->width, x->dtype, &to);

    for (int k = 0; k < 6; k++)
        theta[k] = (float)map->matrix[k] / (0.5f * (k < 3 ? width : height));
    for (int64_t i = 0; i < map->height && y != NULL; i++)
        for (int64_t j = 0; j < map->width; j++) {
            float right = (float)j + (1 - (float)map->width) * 0.5f;
            float below = (float)i + (1 - (float)map->height) * 0.5f;
            float column = right * theta[0] + below * theta[1] + theta[2];
            float row = right * theta[3] + below * theta[4] + theta[5];

            column = ((column + 1) * width - 1) / 2;
            row = ((row + 1) * height - 1) / 2;
            /* also replaces numbers that do not fit into an integer */
            column = column > -2 ? column < width + 1 ? column : width + 1 : -2;
            row = row > -2 ? row < height + 1 ? row : height + 1 : -2;
            for (int64_t c = 0; c < x->channels; c++)
                put_value(x, to, (c * map->height + i) * map->width + j,
                          map->bilinear ? bilinear(x, c, row, column, fill)
                                        : nearest(x, c, row, column, fill));
        }
    return y;
}

/* ---- matrices -------------------------------------------------------------------------------- */

/* A change of an image: turned by degrees, moved, scaled, sheared by degrees, around a center. */
struct change {
    double angle, across, down, scale, shear_x, shear_y, center_x, center_y;
};

static double radians(double degrees)
{
    return degrees * (3.14159265358979323846 / 180);
}

/* The inverse of the change. */
static void invert(const struct change *c, double matrix[6])
{
    double turn = radians(c->angle), tilt = turn - radians(c->shear_y);
    double cosine = cos(radians(c->shear_y)), tangent = tan(radians(c->shear_x));
    double a = cos(tilt) / cosine, b = -(a * tangent + sin(turn)), s = sin(tilt) / cosine;
    double d = cos(turn) - s * tangent;
    double x = c->center_x + c->across, y = c->center_y + c->down;

    matrix[0] = d / c->scale;
    matrix[1] = -b / c->scale;
    matrix[3] = -s / c->scale;
    matrix[4] = a / c->scale;
    matrix[2] = c->center_x - matrix[0] * x - matrix[1] * y;
    matrix[5] = c->center_y - matrix[3] * x - matrix[4] * y;
}

/* The size of a result that shows the whole image. */
static void grow(struct mapping *map, int64_t height, int64_t width)
{
    double low_x = INFINITY, high_x = -INFINITY, low_y = INFINITY, high_y = -INFINITY;

    for (int k = 0; k < 4; k++) {
        float x = 0.5f * (float)(k % 2 ? width : -width);
        float y = 0.5f * (float)(k / 2 ? height : -height);
        float nx = x * (float)map->matrix[0] + y * (float)map->matrix[1] + (float)map->matrix[2];
        float ny = x * (float)map->matrix[3] + y * (float)map->matrix[4] + (float)map->matrix[5];

        /* Not fmin and fmax: GCC 12.2 for aarch64 ends with an internal error when it vectorizes
         * them here. */
        low_x = nx < low_x ? nx : low_x;
        high_x = nx > high_x ? nx : high_x;
        low_y = ny < low_y ? ny : low_y;
        high_y = ny > high_y ? ny : high_y;
    }
    /* rounding errors must not add a row or a column */
    low_x = trunc(((low_x + 0.5 * (double)width) / 1e-4)) * 1e-4;
    high_x = trunc(((high_x + 0.5 * (double)width) / 1e-4)) * 1e-4;
    low_y = trunc(((low_y + 0.5 * (double)height) / 1e-4)) * 1e-4;
    high_y = trunc(((high_y + 0.5 * (double)height) / 1e-4)) * 1e-4;
    /* far from the center, where float32 has no half pixels, both ends may be one number */
    map->width = (int64_t)(ceil(high_x) - floor(low_x));
    map->height = (int64_t)(ceil(high_y) - floor(low_y));
    map->width = map->width > 0 ? map->width : 1;
    map->height = map->height > 0 ? map->height : 1;
}

/* ---- options --------------------------------------------------------------------------------- */

static int interpolation_of(const char *who, const char *name)
{
    if (strcmp(name, "nearest") == 0 || strcmp(name, "bilinear") == 0)
        return strcmp(name, "bilinear") == 0;
    tn_fail(TN_ERR_VALUE, "%s: interpolation: unknown, got %q; expected nearest or bilinear", who,
            name);
    return -1;
}

/* One number x is the range from -x to x. Returns whether the option is a range of finite
 * numbers. */
static bool range_of(tn_floats given, double range[2])
{
    if (given.count == 1 && given.at[0] >= 0) {
        range[0] = -given.at[0];
        range[1] = given.at[0];
    } else if (given.count >= 2) {
        range[0] = given.at[0];
        range[1] = given.at[1];
    } else {
        return false;
    }
    return range[0] <= range[1] && isfinite(range[0]) && isfinite(range[1]);
}

/* Positions are float32: beyond this, they are no longer whole pixels. */
enum { CENTER_MOST = 1 << 24 };

static tn_status check_center(const char *who, tn_floats center)
{
    char text[DATA_NUMBERS];

    if (center.count >= 0 && center.count != 2)
        return tn_fail(TN_ERR_VALUE,
                       "%s: center: wrong count, got %lld numbers; expected two numbers, (x, y)",
                       who, (long long)center.count);
    for (int64_t i = 0; i < center.count; i++)
        if (!(fabs(center.at[i]) <= CENTER_MOST))
            return tn_fail(TN_ERR_VALUE,
                           "%s: center: out of range, got %s; expected numbers from %d to %d, "
                           "pixels from the upper left corner",
                           who, data_numbers_floats(text, center), -CENTER_MOST, CENTER_MOST);
    return TN_OK;
}

static tn_status check_common(const char *who, tn_floats degrees, tn_floats center,
                              const char *interpolation, double fill)
{
    char text[DATA_NUMBERS];
    double range[2];

    if (degrees.count > 2 || !range_of(degrees, range))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: degrees: no range, got %s; expected a number of at least 0, or two, the "
            "smaller first",
            who, data_numbers_floats(text, degrees));
    if (check_center(who, center) != TN_OK || interpolation_of(who, interpolation) < 0)
        return tn_error_last_code();
    return fabs(fill) <= (double)FLT_MAX
               ? TN_OK
               : tn_fail(TN_ERR_VALUE,
                         "%s: fill: out of range, got %g; expected a number that float32 can hold",
                         who, fill);
}

static void set_center(struct change *change, tn_floats center, const struct data_image *x)
{
    if (center.count != 2)
        return;
    change->center_x = center.at[0] - 0.5 * (double)x->width;
    change->center_y = center.at[1] - 0.5 * (double)x->height;
}

static tn_status check_not_empty(const char *who, const struct data_image *x)
{
    if (x->height > 0 && x->width > 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: image: empty, got %lld x %lld; expected at least 1 x 1", who,
                   (long long)x->height, (long long)x->width);
}

#define OPTIONAL_FLOATS(type, member, help)                                                        \
    TN_OPTION_ROW(type, member, "None", help, TN_OPTION_KIND_FLOATS, TN_OPTION_OPTIONAL)
#define DEGREES(type)                                                                              \
    TN_OPTION_ROW(type, degrees, NULL, "angles from -x to x, or (lowest, highest)",                \
                  TN_OPTION_KIND_FLOATS, TN_OPTION_REQUIRED)

/* ---- RandomRotation -------------------------------------------------------------------------- */

struct rotation {
    tn_floats degrees;
    const char *interpolation;
    bool expand;
    tn_floats center;
    double fill;
};
static const tn_option rotation_options[] = {
    DEGREES(struct rotation),
    TN_OPTION_STRING(struct rotation, interpolation, "'nearest'", "nearest or bilinear"),
    TN_OPTION_BOOL(struct rotation, expand, "False",
                   "makes the image as large as its corners need"),
    OPTIONAL_FLOATS(struct rotation, center, "(x, y) of the pixel that stays; None: the middle"),
    TN_OPTION_FLOAT(struct rotation, fill, "0", "value outside of the image"),
    TN_OPTION_END
};

static tn_status rotation_check(const tn_transform_def *self, const void *options)
{
    const struct rotation *o = options;

    return check_common(self->name, o->degrees, o->center, o->interpolation, o->fill);
}

/* Turns by a multiple of 90 degrees without computing values. */
static tn_tensor *turned(const struct data_image *x, int quarters)
{
    bool swap = quarters % 2 == 1;
    int64_t height = swap ? x->width : x->height, width = swap ? x->height : x->width;
    unsigned char *to;
    tn_tensor *y = data_image_new(x->channels, height, width, x->dtype, &to);

    for (int64_t c = 0; c < x->channels && y != NULL; c++)
        for (int64_t i = 0; i < height; i++)
            for (int64_t j = 0; j < width; j++, to += x->item) {
                int64_t row = quarters == 0   ? i
                              : quarters == 1 ? j
                              : quarters == 2 ? height - 1 - i
                                              : width - 1 - j;
                int64_t column = quarters == 0   ? j
                                 : quarters == 1 ? height - 1 - i
                                 : quarters == 2 ? width - 1 - j
                                                 : i;

                memcpy(to,
                       x->values + (size_t)((c * x->height + row) * x->width + column) * x->item,
                       x->item);
            }
    return y;
}

static tn_status rotation_apply(tn_transform_args *args)
{
    const struct rotation *o = args->options;
    struct data_image x;
    struct mapping map = { .fill = o->fill };
    struct change change = { .scale = 1 };
    double range[2], angle;
    tn_status status = data_image_get(args, &x);

    if (status == TN_OK)
        status = check_not_empty(args->def->name, &x);
    if (status != TN_OK)
        return status;
    (void)range_of(o->degrees, range);
    angle = fmod(tn_random_between(&args->random, range[0], range[1]), 360);
    angle = angle < 0 ? angle + 360 : angle;
    if (o->center.count != 2 &&
        (angle == 0 || angle == 180 ||
         ((angle == 90 || angle == 270) && (o->expand || x.height == x.width))))
        return data_image_put(args, turned(&x, (int)(angle / 90)));
    change.angle = -angle;
    set_center(&change, o->center, &x);
    invert(&change, map.matrix);
    map.height = x.height;
    map.width = x.width;
    if (o->expand)
        grow(&map, x.height, x.width);
    map.bilinear = interpolation_of(args->def->name, o->interpolation) == 1;
    return data_image_put(args, mapped(&x, &map));
}

/* ---- RandomAffine ---------------------------------------------------------------------------- */

struct affine {
    tn_floats degrees, translate, scale, shear;
    const char *interpolation;
    double fill;
    tn_floats center;
};
static const tn_option affine_options[] = {
    DEGREES(struct affine),
    OPTIONAL_FLOATS(struct affine, translate, "largest moves, as parts of width and height"),
    OPTIONAL_FLOATS(struct affine, scale, "(lowest, highest) factor of the size"),
    OPTIONAL_FLOATS(struct affine, shear,
                    "degrees along x from -s to s, (lowest, highest), or two such pairs for x and "
                    "y"),
    TN_OPTION_STRING(struct affine, interpolation, "'nearest'", "nearest or bilinear"),
    TN_OPTION_FLOAT(struct affine, fill, "0", "value outside of the image"),
    OPTIONAL_FLOATS(struct affine, center, "(x, y) of the center; None: the middle"),
    TN_OPTION_END
};

static bool is_part(double x)
{
    return x >= 0 && x <= 1;
}

static tn_status affine_check(const tn_transform_def *self, const void *options)
{
    const struct affine *o = options;
    tn_status status = check_common(self->name, o->degrees, o->center, o->interpolation, o->fill);
    char text[DATA_NUMBERS];
    double range[2];

    if (status != TN_OK)
        return status;
    if (o->translate.count >= 0 &&
        (o->translate.count != 2 || !is_part(o->translate.at[0]) || !is_part(o->translate.at[1])))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: translate: wrong count or value, got %s; expected two numbers from 0 to 1",
            self->name, data_numbers_floats(text, o->translate));
    if (o->scale.count >= 0 &&
        (o->scale.count != 2 || !range_of(o->scale, range) || !(range[0] > 0)))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: scale: no range, got %s; expected two numbers above 0, the smaller first",
            self->name, data_numbers_floats(text, o->scale));
    if (o->shear.count >= 0 &&
        (o->shear.count == 3 || o->shear.count > 4 || !range_of(o->shear, range) ||
         (o->shear.count == 4 && !(o->shear.at[2] <= o->shear.at[3]))))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: shear: no range, got %s; expected a number of at least 0, or two or four "
            "numbers, the smaller of each pair first",
            self->name, data_numbers_floats(text, o->shear));
    return TN_OK;
}

static tn_status affine_apply(tn_transform_args *args)
{
    const struct affine *o = args->options;
    tn_random_key *key = &args->random;
    struct data_image x;
    struct mapping map = { .fill = o->fill };
    struct change change = { .scale = 1 };
    double range[2];
    tn_status status = data_image_get(args, &x);

    if (status == TN_OK)
        status = check_not_empty(args->def->name, &x);
    if (status != TN_OK)
        return status;
    (void)range_of(o->degrees, range);
    change.angle = tn_random_between(key, range[0], range[1]);
    if (o->translate.count == 2) {
        double across = o->translate.at[0] * (double)x.width;
        double down = o->translate.at[1] * (double)x.height;

        change.across = rint(tn_random_between(key, -across, across));
        change.down = rint(tn_random_between(key, -down, down));
    }
    if (o->scale.count == 2)
        change.scale = tn_random_between(key, o->scale.at[0], o->scale.at[1]);
    if (o->shear.count >= 1 && range_of(o->shear, range))
        change.shear_x = tn_random_between(key, range[0], range[1]);
    if (o->shear.count == 4)
        change.shear_y = tn_random_between(key, o->shear.at[2], o->shear.at[3]);
    set_center(&change, o->center, &x);
    invert(&change, map.matrix);
    map.height = x.height;
    map.width = x.width;
    map.bilinear = interpolation_of(args->def->name, o->interpolation) == 1;
    return data_image_put(args, mapped(&x, &map));
}

/* ---- tables ---------------------------------------------------------------------------------- */

const tn_transform_def data_random_rotation = {
    TN_HEAD(tn_transform_def),
    .name = "RandomRotation",
    .help = "turns an image by a random angle",
    .options = rotation_options,
    .data_size = sizeof(struct rotation),
    .check = rotation_check,
    .apply = rotation_apply,
};
const tn_transform_def data_random_affine = {
    TN_HEAD(tn_transform_def),
    .name = "RandomAffine",
    .help = "turns, moves, scales and shears an image at random",
    .options = affine_options,
    .data_size = sizeof(struct affine),
    .check = affine_check,
    .apply = affine_apply,
};

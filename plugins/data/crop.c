/* SPDX-License-Identifier: MIT
 *
 * Transforms that cut an image or add a border: CenterCrop, RandomCrop, Pad. */
#include "image.h"

#include <string.h>

/* ---- borders --------------------------------------------------------------------------------- */

enum border { CONSTANT, EDGE, REFLECT, SYMMETRIC };
static const char *const borders[] = { "constant", "edge", "reflect", "symmetric" };
enum { BORDERS = sizeof borders / sizeof *borders };

/* Returns the border with that name; -1 and records a failure if there is none. */
static int border_of(const char *name)
{
    for (int i = 0; i < BORDERS; i++)
        if (strcmp(borders[i], name) == 0)
            return i;
    tn_fail(TN_ERR_VALUE,
            "padding_mode: unknown, got %q; expected constant, edge, reflect or symmetric", name);
    return -1;
}

/* Maps position `at` of a row with a border to one in the image of `size`; -1: the fill. */
static int64_t inside(int64_t at, int64_t size, enum border border)
{
    if (at >= 0 && at < size)
        return at;
    switch (border) {
    case EDGE: return at < 0 ? 0 : size - 1;
    case REFLECT: return at < 0 ? -at : 2 * size - 2 - at;
    case SYMMETRIC: return at < 0 ? -at - 1 : 2 * size - 1 - at;
    default: return -1;
    }
}

static void fill_item(unsigned char *to, tn_dtype dtype, double fill)
{
    float number = (float)fill;

    if (dtype == TN_U8)
        *to = !(fill > 0) ? 0 : fill >= 255 ? 255 : (unsigned char)fill;
    else
        memcpy(to, &number, sizeof number);
}

/* Where a window begins in the image, and its size. It may reach beyond the image. */
struct window {
    int64_t top, left, height, width;
    enum border border;
    double fill;
};

/* Writes one row of the window. `row` is a row of the image, NULL for a row of fill. */
static void copy_row(const struct data_image *x, const struct window *w, const unsigned char *row,
                     unsigned char *to)
{
    int64_t from = w->left < 0 ? -w->left : 0, until = x->width - w->left;

    if (from > w->width || row == NULL)
        from = w->width;
    if (until > w->width)
        until = w->width;
    if (until < from)
        until = from;
    if (until > from)
        memcpy(to + (size_t)from * x->item, row + (size_t)(w->left + from) * x->item,
               (size_t)(until - from) * x->item);
    for (int64_t i = 0; i < w->width; i++) {
        int64_t at;

        if (i == from && until > from) {
            i = until - 1;
            continue;
        }
        at = row != NULL ? inside(w->left + i, x->width, w->border) : -1;
        if (at < 0)
            fill_item(to + (size_t)i * x->item, x->dtype, w->fill);
        else
            memcpy(to + (size_t)i * x->item, row + (size_t)at * x->item, x->item);
    }
}

static tn_tensor *cut(const struct data_image *x, const struct window *w)
{
    unsigned char *to;
    tn_tensor *y = data_image_new(x->channels, w->height, w->width, x->dtype, &to);

    for (int64_t c = 0; c < x->channels && y != NULL; c++)
        for (int64_t i = 0; i < w->height; i++, to += (size_t)w->width * x->item) {
            int64_t at = inside(w->top + i, x->height, w->border);

            copy_row(x, w,
                     at >= 0 ? x->values + (size_t)((c * x->height + at) * x->width) * x->item
                             : NULL,
                     to);
        }
    return y;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Fails if the image is too small for the border. Without pixels it can only have a CONSTANT one,
 * and a border that mirrors it must not be wider than the image (REFLECT: than the image without
 * its outermost row or column, which is not repeated). */
static tn_status check_border(const char *who, const struct data_image *x, const struct window *w)
{
    int64_t extra = w->border == REFLECT ? 1 : 0, top = -w->top, left = -w->left;
    int64_t bottom = w->top + w->height - x->height, right = w->left + w->width - x->width;

    if (w->border == CONSTANT ||
        (x->height > 0 && x->width > 0 &&
         (w->border == EDGE || (top <= x->height - extra && bottom <= x->height - extra &&
                                left <= x->width - extra && right <= x->width - extra))))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: padding: too large for mode %s, got %lld rows and %lld columns at a side; "
                   "expected at most %lld and %lld for an image of %lld x %lld",
                   who, borders[w->border], (long long)larger(top, bottom),
                   (long long)larger(left, right), (long long)larger(x->height - extra, 0),
                   (long long)larger(x->width - extra, 0), (long long)x->height,
                   (long long)x->width);
}

/* The part of the image that the window shows. A border that is taken from the image may need all
 * of it. */
static struct image_part shown(const struct data_image *x, const struct window *w)
{
    const struct image_part all = { 0, 0, x->height, x->width };
    int64_t top = w->top > 0 ? w->top : 0, left = w->left > 0 ? w->left : 0;
    int64_t bottom = w->top + w->height, right = w->left + w->width;
    struct image_part part;

    bottom = bottom < x->height ? bottom : x->height;
    right = right < x->width ? right : x->width;
    part = (struct image_part){ top, left, bottom - top, right - left };
    if (part.height < 1 || part.width < 1 ||
        (w->border != CONSTANT && (part.height < w->height || part.width < w->width)))
        return all;
    return part;
}

static tn_status apply_window(tn_transform_args *args, struct image_entry *entry,
                              const struct window *w)
{
    tn_status status = check_border(args->def->name, &entry->image, w);
    struct image_part part = shown(&entry->image, w);
    const struct image_part place = part;
    struct window inner = *w;

    if (status == TN_OK)
        status = image_entry_load(entry, &part);
    if (entry->encoded) {
        inner.top -= place.top;
        inner.left -= place.left;
    }
    return status == TN_OK ? data_image_put(args, cut(&entry->image, &inner)) : status;
}

/* Reads a size: one number or two, both at least 1. */
static tn_status check_size(const char *who, tn_ints size)
{
    bool good = size.count == 1 || size.count == 2;
    char text[DATA_NUMBERS];

    for (int64_t i = 0; i < size.count; i++)
        good &= size.at[i] >= 1 && size.at[i] <= INT32_MAX;
    return good ? TN_OK
                : tn_fail(TN_ERR_VALUE,
                          "%s: size: wrong count or value, got %s; expected one or two numbers of "
                          "at least 1, (height, width)",
                          who, data_numbers_ints(text, size));
}

/* left, top, right, bottom of 1, 2 or 4 numbers, as in torchvision. */
static void expand_padding(tn_ints padding, int64_t sides[4])
{
    for (int i = 0; i < 4; i++)
        sides[i] = padding.count <= 0   ? 0
                   : padding.count == 1 ? padding.at[0]
                   : padding.count == 2 ? padding.at[i % 2]
                                        : padding.at[i];
}

static tn_status check_padding(const char *who, tn_ints padding)
{
    bool good = padding.count <= 2 || padding.count == 4;
    char text[DATA_NUMBERS];

    for (int64_t i = 0; i < padding.count; i++)
        good &= padding.at[i] >= 0 && padding.at[i] <= INT32_MAX;
    return good ? TN_OK
                : tn_fail(TN_ERR_VALUE,
                          "%s: padding: wrong count or value, got %s; expected 1, 2 or 4 "
                          "numbers of at least 0",
                          who, data_numbers_ints(text, padding));
}

/* ---- CenterCrop ------------------------------------------------------------------------------ */

struct center_crop {
    tn_ints size;
};
static const tn_option center_crop_options[] = {
    TN_OPTION_ROW(struct center_crop, size, NULL, "height and width, or one number for both",
                  TN_OPTION_KIND_INTS, TN_OPTION_REQUIRED),
    TN_OPTION_END
};

static tn_status center_crop_check(const tn_transform_def *self, const void *options)
{
    return check_size(self->name, ((const struct center_crop *)options)->size);
}

/* Half of a number that may be negative, with halves rounded to even as Python's round does. */
static int64_t half_to_even(int64_t number)
{
    int64_t low = number >= 0 ? number / 2 : -((-number + 1) / 2);

    return number % 2 == 0 ? number / 2 : low + (low % 2 != 0);
}

static struct window center_crop_window(const struct center_crop *o, const struct data_image *x)
{
    struct window w = { .height = o->size.at[0],
                        .width = o->size.at[o->size.count - 1],
                        .border = CONSTANT };
    int64_t above, before;

    /* A crop larger than the image gets a border first, then it is cut. */
    above = w.height > x->height ? (w.height - x->height) / 2 : 0;
    before = w.width > x->width ? (w.width - x->width) / 2 : 0;
    w.top = w.height > x->height ? -above : half_to_even(x->height - w.height);
    w.left = w.width > x->width ? -before : half_to_even(x->width - w.width);
    return w;
}

static tn_status center_crop_apply(tn_transform_args *args)
{
    struct image_entry entry;
    struct window w;
    tn_status status = image_entry_open(args, &entry);

    if (status == TN_OK) {
        w = center_crop_window(args->options, &entry.image);
        status = apply_window(args, &entry, &w);
    }
    image_entry_close(&entry);
    return status;
}

/* ---- RandomCrop ------------------------------------------------------------------------------ */

struct random_crop {
    tn_ints size, padding;
    bool pad_if_needed;
    double fill;
    const char *padding_mode;
};
static const tn_option random_crop_options[] = {
    TN_OPTION_ROW(struct random_crop, size, NULL, "height and width, or one number for both",
                  TN_OPTION_KIND_INTS, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct random_crop, padding, "None",
                  "border that is added first: one number, (left/right, top/bottom), or (left, "
                  "top, right, bottom)",
                  TN_OPTION_KIND_INTS, TN_OPTION_OPTIONAL),
    TN_OPTION_BOOL(struct random_crop, pad_if_needed, "False",
                   "adds a border to images that are smaller than the crop"),
    TN_OPTION_FLOAT(struct random_crop, fill, "0", "value of a constant border"),
    TN_OPTION_STRING(struct random_crop, padding_mode, "'constant'",
                     "constant, edge, reflect or symmetric"),
    TN_OPTION_END
};

static tn_status random_crop_check(const tn_transform_def *self, const void *options)
{
    const struct random_crop *o = options;
    tn_status status = check_size(self->name, o->size);

    if (status == TN_OK)
        status = check_padding(self->name, o->padding);
    if (status == TN_OK && border_of(o->padding_mode) < 0)
        status = tn_error_last_code();
    return status;
}

static tn_status random_crop_window(const struct random_crop *o, tn_random_key *key,
                                    const struct data_image *x, struct window *window)
{
    struct window w = { .height = o->size.at[0],
                        .width = o->size.at[o->size.count - 1],
                        .fill = o->fill };
    int64_t sides[4], height, width;

    w.border = (enum border)border_of(o->padding_mode);
    expand_padding(o->padding, sides);
    height = x->height + sides[1] + sides[3];
    width = x->width + sides[0] + sides[2];
    for (int i = 0; i < 4 && o->pad_if_needed; i++) {
        int64_t lacks = i % 2 == 0 ? w.width - width : w.height - height;

        sides[i] += lacks > 0 ? lacks : 0;
    }
    height = x->height + sides[1] + sides[3];
    width = x->width + sides[0] + sides[2];
    if (height < w.height || width < w.width)
        return tn_fail(TN_ERR_VALUE,
                       "RandomCrop: size: larger than the image with its border, got %lld x %lld; "
                       "expected at most %lld x %lld, or pad_if_needed=True",
                       (long long)w.height, (long long)w.width, (long long)height,
                       (long long)width);
    w.top = tn_random_below(key, height - w.height + 1) - sides[1];
    w.left = tn_random_below(key, width - w.width + 1) - sides[0];
    *window = w;
    return TN_OK;
}

static tn_status random_crop_apply(tn_transform_args *args)
{
    struct image_entry entry;
    struct window w;
    tn_status status = image_entry_open(args, &entry);

    if (status == TN_OK)
        status = random_crop_window(args->options, &args->random, &entry.image, &w);
    if (status == TN_OK)
        status = apply_window(args, &entry, &w);
    image_entry_close(&entry);
    return status;
}

/* ---- Pad ------------------------------------------------------------------------------------- */

struct pad {
    tn_ints padding;
    double fill;
    const char *padding_mode;
};
static const tn_option pad_options[] = {
    TN_OPTION_ROW(struct pad, padding, NULL,
                  "one number, (left/right, top/bottom), or (left, top, right, bottom)",
                  TN_OPTION_KIND_INTS, TN_OPTION_REQUIRED),
    TN_OPTION_FLOAT(struct pad, fill, "0", "value of a constant border"),
    TN_OPTION_STRING(struct pad, padding_mode, "'constant'",
                     "constant, edge, reflect or symmetric"),
    TN_OPTION_END
};

static tn_status pad_check(const tn_transform_def *self, const void *options)
{
    const struct pad *o = options;
    tn_status status = check_padding(self->name, o->padding);

    if (status == TN_OK && border_of(o->padding_mode) < 0)
        status = tn_error_last_code();
    return status;
}

static tn_status pad_apply(tn_transform_args *args)
{
    const struct pad *o = args->options;
    struct image_entry entry;
    struct window w = { .fill = o->fill };
    tn_status status = image_entry_open(args, &entry);
    int64_t sides[4];

    if (status == TN_OK) {
        expand_padding(o->padding, sides);
        w.border = (enum border)border_of(o->padding_mode);
        w.left = -sides[0];
        w.top = -sides[1];
        w.width = entry.image.width + sides[0] + sides[2];
        w.height = entry.image.height + sides[1] + sides[3];
        status = apply_window(args, &entry, &w);
    }
    image_entry_close(&entry);
    return status;
}

/* ---- tables ---------------------------------------------------------------------------------- */

const tn_transform_def data_center_crop = {
    TN_HEAD(tn_transform_def),
    .name = "CenterCrop",
    .help = "the middle of an image; a border of zeros if the image is smaller",
    .options = center_crop_options,
    .data_size = sizeof(struct center_crop),
    .flags = TN_TRANSFORM_ENCODED,
    .check = center_crop_check,
    .apply = center_crop_apply,
};
const tn_transform_def data_random_crop = {
    TN_HEAD(tn_transform_def),
    .name = "RandomCrop",
    .help = "a random part of an image",
    .options = random_crop_options,
    .data_size = sizeof(struct random_crop),
    .flags = TN_TRANSFORM_ENCODED,
    .check = random_crop_check,
    .apply = random_crop_apply,
};
const tn_transform_def data_pad = {
    TN_HEAD(tn_transform_def),
    .name = "Pad",
    .help = "an image with a border",
    .options = pad_options,
    .data_size = sizeof(struct pad),
    .check = pad_check,
    .apply = pad_apply,
};

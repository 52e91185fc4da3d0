/* SPDX-License-Identifier: MIT
 *
 * Pictures in files of any format that is known, and in samples. */
#include "image.h"

#include <string.h>

/* ---- files ----------------------------------------------------------------------------------- */

tn_status image_file_size(struct image_file *file, uint64_t height, uint64_t width)
{
    if (height == 0 || width == 0)
        return tn_fail(TN_ERR_FORMAT, "%s: wrong size, got %llu x %llu pixels; expected at least 1",
                       file->path, (unsigned long long)height, (unsigned long long)width);
    if (height > file->most / width)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: too large, got %llu x %llu pixels; expected at most %llu together, see "
                       "the option max_pixels",
                       file->path, (unsigned long long)height, (unsigned long long)width,
                       (unsigned long long)file->most);
    file->height = (int64_t)height;
    file->width = (int64_t)width;
    return TN_OK;
}

static tn_status open_format(struct image_file *file)
{
    const char *lack;

    file->orientation = 1;
    if (file->size == 0)
        return tn_fail(TN_ERR_FORMAT, "%s: the file is empty", file->path);
    file->format = image_format_of(file->bytes, file->size);
    if (file->format == NULL)
        return image_format_refuse(file);
    lack = file->format->lack != NULL ? file->format->lack() : NULL;
    if (lack != NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: a %s file, but %s", file->path,
                       file->format->name, lack);
    return file->format->open(file);
}

tn_status image_file_open(struct image_file *file)
{
    tn_status status = open_format(file);

    if (status != TN_OK)
        return status;
    if (file->orientation == 1)
        file->orientation = image_exif_orientation(file->bytes, file->size);
    file->orientation = file->turn ? file->orientation : 1;
    if (file->orientation >= 5) { /* rows become columns */
        int64_t height = file->height;

        file->height = file->width;
        file->width = height;
    }
    return TN_OK;
}

/* ---- orientation ----------------------------------------------------------------------------- */

/* The pixels of a part as they are in the file. */
struct turned {
    unsigned char *pixels, *row;
    struct image_part part;
};

static void keep_row(void *user, int64_t row, const unsigned char *rgb)
{
    const struct turned *t = user;
    size_t line = 3 * (size_t)t->part.width;

    memcpy(t->pixels + (size_t)(row - t->part.top) * line, rgb, line);
}

/* Gives row `y` of the turned part, from 0 on. Orientation 2 is a mirror image, 3 is turned by 180
 * degrees, 4 is upside down as a mirror, and 5 to 8 are these with rows and columns swapped. */
static void give_row(const struct turned *t, int orientation, int64_t y, int64_t width)
{
    int kind = orientation >= 5 ? orientation - 5 : orientation - 1;
    /* kinds 0 to 3 of 5 to 8: transposed, turned right, transposed and turned, turned left */
    bool swap = orientation >= 5;
    bool from_right = swap ? kind == 2 || kind == 3 : kind == 1 || kind == 2;
    bool from_below = swap ? kind == 1 || kind == 2 : kind == 2 || kind == 3;

    for (int64_t x = 0; x < width; x++) {
        int64_t row = swap ? x : y, column = swap ? y : x;

        row = from_below ? t->part.height - 1 - row : row;
        column = from_right ? t->part.width - 1 - column : column;
        memcpy(t->row + 3 * x, t->pixels + 3 * (row * t->part.width + column), 3);
    }
}

/* The part of the file that is shown as `part`. */
static struct image_part part_in_file(const struct image_file *file, const struct image_part *part)
{
    int64_t below = file->height - part->top - part->height;
    int64_t right = file->width - part->left - part->width;
    bool far_x = file->orientation == 2 || file->orientation == 3 || file->orientation == 6 ||
                 file->orientation == 7;
    bool far_y = file->orientation == 3 || file->orientation == 4 || file->orientation == 7 ||
                 file->orientation == 8;
    int64_t left = far_x ? right : part->left, top = far_y ? below : part->top;

    return file->orientation >= 5 ? (struct image_part){ left, top, part->width, part->height }
                                  : (struct image_part){ top, left, part->height, part->width };
}

tn_status image_file_read(struct image_file *file, const struct image_part *part, image_row *take,
                          void *user)
{
    struct turned t = { .pixels = NULL };
    tn_status status;

    if (file->orientation == 1)
        return file->format->read(file, part, take, user);
    t.part = part_in_file(file, part);
    if (file->orientation >= 5) { /* the formats know the size in the file */
        int64_t height = file->height;

        file->height = file->width;
        file->width = height;
    }
    t.pixels = tn_malloc(3 * (size_t)(part->height * part->width) + 1);
    t.row = tn_calloc(1, 3 * (size_t)part->width + IMAGE_SLACK);
    status = t.pixels != NULL && t.row != NULL ? file->format->read(file, &t.part, keep_row, &t)
                                               : TN_ERR_MEMORY;
    for (int64_t y = 0; y < part->height && status == TN_OK; y++) {
        give_row(&t, file->orientation, y, part->width);
        take(user, part->top + y, t.row);
    }
    tn_free(t.pixels);
    tn_free(t.row);
    return status;
}

void image_file_close(struct image_file *file)
{
    /* a format that failed at once has nothing */
    if (file->bmp != NULL || file->jpeg != NULL || file->png != NULL || file->webp != NULL ||
        file->tiff != NULL || file->gif != NULL)
        file->format->close(file);
}

void image_file_rows(const struct image_file *file, const struct image_part *part,
                     const unsigned char *pixels, image_row *take, void *user)
{
    for (int64_t y = part->top; y < part->top + part->height; y++)
        take(user, y, pixels + 3 * (y * file->width + part->left));
}

/* ---- as a tensor ----------------------------------------------------------------------------- */

struct planes {
    unsigned char *values;
    const struct image_part *part;
};

/* From RGBRGB to one plane for each color. */
static void put_row(void *user, int64_t row, const unsigned char *rgb)
{
    const struct planes *planes = user;
    size_t plane = (size_t)(planes->part->height * planes->part->width);
    size_t width = (size_t)planes->part->width;
    unsigned char *red = planes->values + (size_t)(row - planes->part->top) * width;
    unsigned char *green = red + plane, *blue = green + plane;

    for (size_t i = 0; i < width; i++) {
        red[i] = rgb[3 * i];
        green[i] = rgb[3 * i + 1];
        blue[i] = rgb[3 * i + 2];
    }
}

tn_tensor *image_file_tensor(struct image_file *file, const struct image_part *part)
{
    struct planes planes = { .part = part };
    tn_tensor *x = data_image_new(3, part->height, part->width, TN_U8, &planes.values);

    if (x == NULL || image_file_read(file, part, put_row, &planes) != TN_OK)
        return NULL;
    return x;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The tensor of a file that is in memory. */
static tn_status add_decoded(const tn_sample_args *args, struct image_file *file)
{
    tn_status status = image_file_open(file);
    const struct image_part all = { 0, 0, file->height, file->width };
    tn_tensor *x = status == TN_OK ? image_file_tensor(file, &all) : NULL;

    status = x != NULL ? tn_pack_add(args->out, NULL, tn_value_tensor(x)) : tn_error_last_code();
    image_file_close(file);
    return status;
}

/* The file itself, which the transform decodes. */
static tn_status add_encoded(const tn_sample_args *args, const struct image_file *file)
{
    const tn_value items[] = { tn_value_string(file->path),
                               tn_value_bytes(file->bytes, (uint32_t)file->size),
                               tn_value_int((int64_t)file->most), tn_value_bool(file->turn) };

    return tn_pack_add(args->out, NULL, tn_value_tuple(items, 4));
}

tn_status image_check_options(const struct image_options *options)
{
    return options->max_pixels >= 1
               ? TN_OK
               : tn_fail(TN_ERR_VALUE, "max_pixels: out of range, got %lld; expected 1 or more",
                         (long long)options->max_pixels);
}

tn_status image_add(const tn_sample_args *args, const char *path,
                    const struct image_options *options)
{
    struct image_file file = { .path = path,
                               .most = (uint64_t)options->max_pixels,
                               .turn = options->orientation };
    void *bytes = data_load(path, &file.size);
    tn_status status;

    if (bytes == NULL)
        return tn_error_last_code();
    file.bytes = bytes;
    status = args->flags & TN_SAMPLE_ENCODED ? add_encoded(args, &file) : add_decoded(args, &file);
    tn_free(bytes);
    return status;
}

/* An encoded image: (name, bytes), also with the largest number of pixels, and with whether it is
 * turned as its orientation says. */
static bool is_encoded(const tn_value *value)
{
    const tn_value *items = value->as.list;

    return value->kind == TN_VALUE_TUPLE && value->count >= 2 && value->count <= 4 &&
           items[0].kind == TN_VALUE_STRING && items[1].kind == TN_VALUE_BYTES &&
           (value->count < 3 || items[2].kind == TN_VALUE_INT) &&
           (value->count < 4 || items[3].kind == TN_VALUE_BOOL);
}

tn_status image_entry_open(const tn_transform_args *args, struct image_entry *entry)
{
    const tn_value value = tn_pack_count(args->in) > 0 ? tn_pack_at(args->in, 0) : tn_value_none();
    tn_status status;

    *entry = (struct image_entry){ .encoded = is_encoded(&value) };
    if (!entry->encoded)
        return data_image_get(args, &entry->image);
    entry->file.path = value.as.list[0].as.s;
    entry->file.bytes = value.as.list[1].as.s;
    entry->file.size = value.as.list[1].count;
    entry->file.turn = value.count == 4 && value.as.list[3].as.i != 0;
    entry->file.most = value.count >= 3 && value.as.list[2].as.i > 0
                           ? (uint64_t)value.as.list[2].as.i
                           : DATA_MOST_PIXELS;
    status = image_file_open(&entry->file);
    if (status == TN_OK)
        entry->image = (struct data_image){ .channels = 3,
                                            .height = entry->file.height,
                                            .width = entry->file.width,
                                            .dtype = TN_U8,
                                            .item = 1 };
    return status;
}

tn_status image_entry_load(struct image_entry *entry, struct image_part *part)
{
    tn_tensor *x;

    if (!entry->encoded)
        return TN_OK;
    x = image_file_tensor(&entry->file, part);
    if (x == NULL)
        return tn_error_last_code();
    entry->image.height = part->height;
    entry->image.width = part->width;
    entry->image.values = tn_tensor_data(x);
    part->top = part->left = 0;
    return entry->image.values != NULL ? TN_OK : tn_error_last_code();
}

void image_entry_close(struct image_entry *entry)
{
    image_file_close(&entry->file);
}

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

static bool is_png(const void *bytes, uint64_t size)
{
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static bool is_jpeg(const void *bytes, uint64_t size)
{
    return size >= 3 && memcmp(bytes, "\xFF\xD8\xFF", 3) == 0;
}

bool image_known(const void *bytes, uint64_t size)
{
    return is_png(bytes, size) || is_jpeg(bytes, size);
}

tn_status image_file_open(struct image_file *file)
{
    if (is_png(file->bytes, file->size))
        return image_png_open(file);
    if (is_jpeg(file->bytes, file->size))
        return image_jpeg_open(file);
    if (file->size == 0)
        return tn_fail(TN_ERR_FORMAT, "%s: the file is empty", file->path);
    return tn_fail(TN_ERR_FORMAT, "%s: neither a PNG nor a JPEG file", file->path);
}

tn_status image_file_read(struct image_file *file, const struct image_part *part, image_row *take,
                          void *user)
{
    return file->jpeg != NULL ? image_jpeg_read(file, part, take, user)
                              : image_png_read(file, part, take, user);
}

void image_file_close(struct image_file *file)
{
    if (file->jpeg != NULL)
        image_jpeg_close(file);
    if (file->png != NULL)
        image_png_close(file);
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
                               tn_value_int((int64_t)file->most) };

    return tn_pack_add(args->out, NULL, tn_value_tuple(items, 3));
}

tn_status image_add(const tn_sample_args *args, const char *path, uint64_t most)
{
    struct image_file file = { .path = path, .most = most };
    void *bytes = data_load(path, &file.size);
    tn_status status;

    if (bytes == NULL)
        return tn_error_last_code();
    file.bytes = bytes;
    status = args->flags & TN_SAMPLE_ENCODED ? add_encoded(args, &file) : add_decoded(args, &file);
    tn_free(bytes);
    return status;
}

/* An encoded image: (name, bytes) or (name, bytes, the largest number of pixels). */
static bool is_encoded(const tn_value *value)
{
    const tn_value *items = value->as.list;

    return value->kind == TN_VALUE_TUPLE && value->count >= 2 && value->count <= 3 &&
           items[0].kind == TN_VALUE_STRING && items[1].kind == TN_VALUE_BYTES &&
           (value->count == 2 || items[2].kind == TN_VALUE_INT);
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
    entry->file.most = value.count == 3 && value.as.list[2].as.i > 0
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

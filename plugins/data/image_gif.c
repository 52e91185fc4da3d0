/* SPDX-License-Identifier: MIT
 *
 * Decodes the first picture of a GIF with giflib, which is opened at run time. Transparency is
 * ignored. */
#include "image.h"

#ifdef TN_WITH_GIFLIB
#include "library.h"

#include <string.h>

#include <gif_lib.h>

static struct {
    __typeof__(DGifOpen) *open;
    __typeof__(DGifGetRecordType) *record;
    __typeof__(DGifGetImageDesc) *picture;
    __typeof__(DGifGetLine) *line;
    __typeof__(DGifGetExtension) *extension;
    __typeof__(DGifGetExtensionNext) *extension_next;
    __typeof__(DGifCloseFile) *close;
    __typeof__(GifErrorString) *words;
} gif;
static const char *const names[] = { "libgif.so.7", NULL };
static const char *const symbols[] = { "DGifOpen",      "DGifGetRecordType", "DGifGetImageDesc",
                                       "DGifGetLine",   "DGifGetExtension",  "DGifGetExtensionNext",
                                       "DGifCloseFile", "GifErrorString",    NULL };
static struct data_library library = { .names = names, .symbols = symbols, .functions = &gif };

struct image_gif {
    GifFileType *gif;
    uint64_t at;     /* what was read of the file */
    int transparent; /* the number of the color that shows what is below; -1: none */
    unsigned char *numbers, *pixels;
};

const char *image_gif_lack(void)
{
    return data_library_open(&library) ? NULL : "libgif.so.7 is missing (Debian: libgif7)";
}

static tn_status damaged(const struct image_file *file, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: damaged GIF file: %s", file->path, what);
}

/* What giflib says about its last failure. */
static tn_status damaged_by(const struct image_file *file, int code)
{
    const char *words = gif.words(code);

    return damaged(file, words != NULL ? words : "it is not whole");
}

static int read_bytes(GifFileType *is, GifByteType *out, int count)
{
    struct image_file *file = is->UserData;
    uint64_t left = file->size - file->gif->at,
             some = (uint64_t)count < left ? (uint64_t)count : left;

    memcpy(out, (const unsigned char *)file->bytes + file->gif->at, (size_t)some);
    file->gif->at += some;
    return (int)some;
}

tn_status image_gif_open(struct image_file *file)
{
    int code = 0;

    file->gif = tn_calloc(1, sizeof *file->gif);
    if (file->gif == NULL)
        return TN_ERR_MEMORY;
    file->gif->transparent = -1;
    file->gif->gif = gif.open(file, read_bytes, &code);
    if (file->gif->gif == NULL)
        return damaged_by(file, code);
    return image_file_size(file, (uint64_t)file->gif->gif->SHeight,
                           (uint64_t)file->gif->gif->SWidth);
}

/* Passes over an extension; the one with graphics says which color is transparent. */
static tn_status read_extension(struct image_file *file)
{
    struct image_gif *work = file->gif;
    GifByteType *bytes;
    int code, good = gif.extension(work->gif, &code, &bytes);

    while (good == GIF_OK && bytes != NULL) {
        if (code == GRAPHICS_EXT_FUNC_CODE && bytes[0] >= 4)
            work->transparent = bytes[1] & 1 ? bytes[4] : -1;
        good = gif.extension_next(work->gif, &bytes);
    }
    return good == GIF_OK ? TN_OK : damaged_by(file, work->gif->Error);
}

/* Reads until the first picture begins. */
static tn_status find_picture(struct image_file *file)
{
    GifFileType *is = file->gif->gif;
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    tn_status status = TN_OK;

    while (status == TN_OK && type != IMAGE_DESC_RECORD_TYPE) {
        if (gif.record(is, &type) != GIF_OK)
            return damaged_by(file, is->Error);
        if (type == TERMINATE_RECORD_TYPE)
            return damaged(file, "there is no picture");
        if (type == EXTENSION_RECORD_TYPE)
            status = read_extension(file);
    }
    if (status == TN_OK && gif.picture(is) != GIF_OK)
        return damaged_by(file, is->Error);
    return status;
}

/* Decodes the numbers of the colors. The rows of an interlaced picture come in four passes. */
static tn_status read_numbers(struct image_file *file)
{
    static const int first[] = { 0, 4, 2, 1 }, step[] = { 8, 8, 4, 2 };
    GifFileType *is = file->gif->gif;
    const GifImageDesc *picture = &is->Image;

    for (int pass = 0; pass < (picture->Interlace ? 4 : 1); pass++)
        for (int y = picture->Interlace ? first[pass] : 0; y < picture->Height;
             y += picture->Interlace ? step[pass] : 1)
            if (gif.line(is, file->gif->numbers + (size_t)y * (size_t)picture->Width,
                         picture->Width) != GIF_OK)
                return damaged_by(file, is->Error);
    return TN_OK;
}

static const GifColorType *color_of(const ColorMapObject *map, int number)
{
    return number >= 0 && number < map->ColorCount ? &map->Colors[number] : NULL;
}

static void put_color(unsigned char *rgb, const GifColorType *color)
{
    rgb[0] = color->Red;
    rgb[1] = color->Green;
    rgb[2] = color->Blue;
}

/* Gives each pixel its color. Where the picture is not, the transparent color is, or color 0:
 * programs that show pictures ignore the one of the background, and so does Pillow. */
static tn_status put_colors(struct image_file *file, const ColorMapObject *map)
{
    const struct image_gif *work = file->gif;
    const GifImageDesc *picture = &work->gif->Image;
    const GifColorType *ground = color_of(map, work->transparent >= 0 ? work->transparent : 0);

    for (int64_t y = 0; y < file->height; y++)
        for (int64_t x = 0; x < file->width; x++) {
            int64_t row = y - picture->Top, column = x - picture->Left;
            bool inside = row >= 0 && row < picture->Height && column >= 0 &&
                          column < picture->Width;
            const GifColorType *color = inside
                                            ? color_of(map,
                                                       work->numbers[row * picture->Width + column])
                                            : ground;

            if (inside && color == NULL)
                return damaged(file, "a pixel has no color in the palette");
            if (color != NULL)
                put_color(work->pixels + 3 * (y * file->width + x), color);
        }
    return TN_OK;
}

tn_status image_gif_read(struct image_file *file, const struct image_part *part, image_row *take,
                         void *user)
{
    struct image_gif *work = file->gif;
    const GifImageDesc *picture = &work->gif->Image;
    const ColorMapObject *map;
    tn_status status = find_picture(file);

    if (status != TN_OK)
        return status;
    map = picture->ColorMap != NULL ? picture->ColorMap : work->gif->SColorMap;
    if (map == NULL)
        return damaged(file, "it has no palette");
    if (picture->Width < 1 || picture->Height < 1 ||
        (uint64_t)picture->Height > file->most / (uint64_t)picture->Width)
        return damaged(file, "the size of its picture is wrong");
    work->numbers = tn_malloc((size_t)picture->Height * (size_t)picture->Width);
    work->pixels = tn_calloc(1, 3 * (size_t)(file->height * file->width) + IMAGE_SLACK);
    if (work->numbers == NULL || work->pixels == NULL)
        return TN_ERR_MEMORY;
    status = read_numbers(file);
    if (status == TN_OK)
        status = put_colors(file, map);
    if (status == TN_OK)
        image_file_rows(file, part, work->pixels, take, user);
    return status;
}

void image_gif_close(struct image_file *file)
{
    int code;

    if (file->gif->gif != NULL)
        gif.close(file->gif->gif, &code);
    tn_free(file->gif->numbers);
    tn_free(file->gif->pixels);
    tn_free(file->gif);
    file->gif = NULL;
}
#else
const char *image_gif_lack(void)
{
    return "this plugin was built without giflib (configure --with-giflib; Debian: libgif-dev)";
}
#endif

/* SPDX-License-Identifier: MIT
 *
 * ImageFolder and Resize, compared with Pillow and torchvision (images.h); pictures that are
 * decoded in part or early, and damaged files. */
#include "tests/base/suite.h"
#include "tests/folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images.h"
#include "odd_pictures.h"

enum {
    PICTURES = sizeof pictures / sizeof *pictures,
    PIXELS = 3 * PICTURE_HEIGHT * PICTURE_WIDTH,
    ODD = sizeof odd_pictures / sizeof *odd_pictures
};

static tn_dataset *opened(void)
{
    char path[TEST_PATH];
    tn_dataset *dataset = tn_dataset_new("ImageFolder(%q)",
                                         source_path(path, "tests/data/files/pictures"));

    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    return dataset;
}

/* Reads a picture; NULL if this build has no decoder for it: the error must say so. */
static tn_pack *read_picture(tn_dataset *dataset, int64_t index)
{
    tn_pack *pack = tn_pack_new();

    if (tn_dataset_get(dataset, index, 0, 0, pack) == TN_OK)
        return pack;
    ck_assert_msg(tn_error_code() == TN_ERR_NOT_IMPLEMENTED &&
                      strstr(tn_error_text(), "was built without") != NULL,
                  "%s", tn_error_text());
    tn_error_clear();
    tn_pack_drop(pack);
    return NULL;
}

START_TEST(pictures_have_the_pixels_of_pillow)
{
    tn_dataset *dataset = opened();

    ck_assert_int_eq(tn_dataset_count(dataset), PICTURES);
    ck_assert_int_eq(tn_dataset_classes(dataset), 2);
    ck_assert_str_eq(tn_dataset_class_name(dataset, 0), "cat");
    ck_assert_str_eq(tn_dataset_class_name(dataset, 1), "dog");
    for (int64_t i = 0; i < PICTURES; i++) {
        TN_SCOPE;
        tn_pack *pack = read_picture(dataset, i);
        tn_tensor *x = pack != NULL ? tn_pack_tensor(pack, 0) : NULL;
        const uint8_t *got = x != NULL ? tn_tensor_data(x) : NULL;

        if (x == NULL)
            continue;
        ck_assert_int_eq(tn_tensor_dtype(x), TN_U8);
        ck_assert_int_eq(tn_tensor_size(x, 0), 3);
        ck_assert_int_eq(tn_tensor_size(x, 1), PICTURE_HEIGHT);
        ck_assert_int_eq(tn_tensor_size(x, 2), PICTURE_WIDTH);
        ck_assert_int_eq(tn_pack_at(pack, 1).as.i, i >= 3);
        for (int k = 0; k < PIXELS; k++)
            ck_assert_msg(got[k] == pictures[i].planes[k], "%s: %d is %d, Pillow reads %d",
                          pictures[i].name, k, got[k], pictures[i].planes[k]);
        tn_pack_drop(pack);
    }
    tn_dataset_drop(dataset);
}
END_TEST

/* torchvision computes uint8 with weights of 16 bits, so one step of difference is allowed. */
START_TEST(resized_pictures_are_those_of_torchvision)
{
    tn_dataset *plain = opened();
    int64_t rgb = 6; /* dog/rgb.png */
    tn_pack *pack = read_picture(plain, rgb);

    for (size_t i = 0; pack != NULL && i < sizeof sizes / sizeof *sizes; i++) {
        TN_SCOPE;
        tn_dataset *dataset = tn_dataset_transform(plain, sizes[i].spec);
        tn_pack *sample = dataset != NULL ? read_picture(dataset, rgb) : NULL;
        tn_tensor *x = sample != NULL ? tn_pack_tensor(sample, 0) : NULL;
        const uint8_t *got;
        int differ = 0;

        ck_assert_msg(x != NULL, "%s: %s", sizes[i].spec, tn_error_text());
        got = tn_tensor_data(x);
        ck_assert_int_eq(tn_tensor_size(x, 1), sizes[i].height);
        ck_assert_int_eq(tn_tensor_size(x, 2), sizes[i].width);
        for (int64_t k = 0; k < tn_tensor_numel(x); k++) {
            int difference = got[k] - sizes[i].planes[k];

            ck_assert_msg(difference >= -1 && difference <= 1, "%s: %lld is %d, torchvision has %d",
                          sizes[i].spec, (long long)k, got[k], sizes[i].planes[k]);
            differ += difference != 0;
        }
        ck_assert_msg(differ == 0, "%s: %d differ", sizes[i].spec, differ);
        tn_pack_drop(sample);
        tn_dataset_drop(dataset);
    }
    tn_pack_drop(pack);
    tn_dataset_drop(plain);
}
END_TEST

START_TEST(random_parts_have_the_asked_size)
{
    tn_dataset *plain = opened(),
               *dataset = tn_dataset_transform(plain, "RandomResizedCrop((5, 6))");
    uint8_t first[90];
    int changed = 0;

    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    for (uint64_t seed = 0; seed < 40; seed++) {
        TN_SCOPE;
        tn_pack *pack = tn_pack_new();
        tn_tensor *x;

        if (tn_dataset_get(dataset, 6, seed, 0, pack) != TN_OK) {
            ck_assert_int_eq(tn_error_code(), TN_ERR_NOT_IMPLEMENTED);
            tn_error_clear();
            tn_pack_drop(pack);
            changed = 40;
            continue;
        }
        x = tn_pack_tensor(pack, 0);
        ck_assert_int_eq(tn_tensor_size(x, 1), 5);
        ck_assert_int_eq(tn_tensor_size(x, 2), 6);
        if (seed == 0)
            memcpy(first, tn_tensor_data(x), sizeof first);
        changed += memcmp(first, tn_tensor_data(x), sizeof first) != 0;
        tn_pack_drop(pack);
    }
    ck_assert_int_gt(changed, 30);
    tn_dataset_drop(dataset);
    tn_dataset_drop(plain);
}
END_TEST

/* ---- parts of pictures ----------------------------------------------------------------------- */

static tn_dataset *opened_parts(void)
{
    char path[TEST_PATH];
    tn_dataset *dataset = tn_dataset_new("ImageFolder(%q)",
                                         source_path(path, "tests/data/files/parts"));

    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    return dataset;
}

/* Whether `part` is the part of `whole` that begins at (top, left). */
static bool is_at(tn_tensor *whole, tn_tensor *part, int64_t top, int64_t left)
{
    int64_t height = tn_tensor_size(part, 1), width = tn_tensor_size(part, 2);
    int64_t all = tn_tensor_size(whole, 1), across = tn_tensor_size(whole, 2);
    const uint8_t *a = tn_tensor_data(whole), *b = tn_tensor_data(part);

    for (int64_t c = 0; c < 3; c++)
        for (int64_t i = 0; i < height; i++)
            if (memcmp(a + (c * all + top + i) * across + left, b + (c * height + i) * width,
                       (size_t)width) != 0)
                return false;
    return true;
}

static bool is_somewhere(tn_tensor *whole, tn_tensor *part)
{
    for (int64_t top = 0; top + tn_tensor_size(part, 1) <= tn_tensor_size(whole, 1); top++)
        for (int64_t left = 0; left + tn_tensor_size(part, 2) <= tn_tensor_size(whole, 2); left++)
            if (is_at(whole, part, top, left))
                return true;
    return false;
}

/* The transform decodes a part only; its pixels are those of the whole picture. */
START_TEST(parts_have_the_pixels_of_the_whole_picture)
{
    static const char *const specs[] = { "RandomCrop((20, 30))", "RandomCrop((1, 1))",
                                         "RandomCrop((75, 20))", "RandomCrop((20, 101))",
                                         "RandomCrop((60, 90))", "RandomCrop((3, 5))" };
    tn_dataset *plain = opened_parts();

    ck_assert_int_eq(tn_dataset_count(plain), 7);
    for (int64_t file = 0; file < 7; file++) {
        tn_pack *whole = read_picture(plain, file);

        for (int s = 0; s < 6 && whole != NULL; s++) {
            tn_dataset *dataset = tn_dataset_transform(plain, specs[s]);

            for (uint64_t seed = 0; seed < 25; seed++) {
                TN_SCOPE;
                tn_pack *pack = tn_pack_new();

                ck_assert_msg(tn_dataset_get(dataset, file, seed, 0, pack) == TN_OK, "%s",
                              tn_error_text());
                ck_assert_msg(is_somewhere(tn_pack_tensor(whole, 0), tn_pack_tensor(pack, 0)),
                              "file %d, %s, seed %d", (int)file, specs[s], (int)seed);
                tn_pack_drop(pack);
            }
            tn_dataset_drop(dataset);
        }
        tn_pack_drop(whole);
    }
    tn_dataset_drop(plain);
}
END_TEST

/* A transform gives the same pixels whether it decodes the picture itself, in the size that it
 * needs, or gets a decoded tensor. Pad(0) before the transform changes no pixel, but it only takes
 * tensors, so the picture is decoded before. */
START_TEST(decoding_early_and_late_give_the_same)
{
    static const char *const specs[] = {
        "Resize(40)",
        "Resize((33, 150), interpolation='bicubic')",
        "Resize((10, 7))",
        "Resize((75, 101))",
        "Resize((9, 9), interpolation='nearest')",
        "Resize(50, antialias=False)",
        "CenterCrop(31)",
        "CenterCrop((90, 40))",
        "CenterCrop((120, 130))",
    };
    tn_dataset *plain = opened_parts(), *padded = tn_dataset_transform(plain, "Pad(0)");

    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        tn_dataset *late = tn_dataset_transform(plain, specs[s]);
        tn_dataset *early = tn_dataset_transform(padded, specs[s]);

        for (int64_t file = 0; file < 7; file++) {
            TN_SCOPE;
            tn_pack *one = read_picture(late, file), *other = read_picture(early, file);
            tn_tensor *a = one != NULL ? tn_pack_tensor(one, 0) : NULL;
            tn_tensor *b = other != NULL ? tn_pack_tensor(other, 0) : NULL;

            if (a == NULL)
                continue;
            ck_assert_int_eq(tn_tensor_numel(a), tn_tensor_numel(b));
            ck_assert_msg(is_at(a, b, 0, 0), "file %d, %s", (int)file, specs[s]);
            tn_pack_drop(one);
            tn_pack_drop(other);
        }
        tn_dataset_drop(late);
        tn_dataset_drop(early);
    }
    tn_dataset_drop(padded);
    tn_dataset_drop(plain);
}
END_TEST

/* ---- pictures of less usual kinds ------------------------------------------------------------ */

static tn_dataset *opened_odd(const char *options)
{
    char path[TEST_PATH];
    tn_dataset *dataset = tn_dataset_new("ImageFolder(%q%s)",
                                         source_path(path, "tests/data/files/odd"), options);

    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_dataset_count(dataset), ODD);
    return dataset;
}

/* CMYK and YCCK, animated PNG, BMP, and pictures that EXIF turns. */
START_TEST(odd_pictures_are_those_of_pillow)
{
    tn_dataset *dataset = opened_odd("");

    for (int64_t i = 0; i < ODD; i++) {
        TN_SCOPE;
        const struct odd_picture *odd = &odd_pictures[i];
        tn_pack *pack = read_picture(dataset, i);
        tn_tensor *x = pack != NULL ? tn_pack_tensor(pack, 0) : NULL;
        const uint8_t *got = x != NULL ? tn_tensor_data(x) : NULL;

        if (x == NULL)
            continue;
        ck_assert_int_eq(tn_tensor_size(x, 1), odd->height);
        ck_assert_int_eq(tn_tensor_size(x, 2), odd->width);
        for (int k = 0; k < 105; k++)
            ck_assert_msg(got[k] == odd->planes[k], "%s: %d is %d, Pillow reads %d", odd->name, k,
                          got[k], odd->planes[k]);
        tn_pack_drop(pack);
    }
    tn_dataset_drop(dataset);
}
END_TEST

/* A transform that decodes a part of a turned picture finds it at the same place. */
START_TEST(parts_of_odd_pictures_have_their_pixels)
{
    tn_dataset *plain = opened_odd(""), *padded = tn_dataset_transform(plain, "Pad(0)");
    tn_dataset *early = tn_dataset_transform(plain, "RandomCrop((2, 3))");
    tn_dataset *late = tn_dataset_transform(padded, "RandomCrop((2, 3))");
    tn_dataset *as_is = opened_odd(", orientation=False");
    tn_dataset *corner = tn_dataset_transform(plain, "CenterCrop((4, 4))");
    tn_dataset *corner_late = tn_dataset_transform(padded, "CenterCrop((4, 4))");

    ck_assert(early != NULL && late != NULL && corner != NULL && corner_late != NULL);
    for (int64_t i = 0; i < ODD; i++) {
        tn_pack *whole = read_picture(plain, i), *one, *other;

        if (whole == NULL)
            continue;
        for (uint64_t seed = 0; seed < 40; seed++) {
            TN_SCOPE;
            tn_pack *pack = tn_pack_new();

            ck_assert_int_eq(tn_dataset_get(early, i, seed, 0, pack), TN_OK);
            ck_assert_msg(is_somewhere(tn_pack_tensor(whole, 0), tn_pack_tensor(pack, 0)), "%s",
                          odd_pictures[i].name);
            tn_pack_drop(pack);
        }
        one = read_picture(corner, i);
        other = read_picture(corner_late, i);
        ck_assert_msg(is_at(tn_pack_tensor(one, 0), tn_pack_tensor(other, 0), 0, 0), "%s",
                      odd_pictures[i].name);
        tn_pack_drop(one);
        tn_pack_drop(other);
        tn_pack_drop(whole);
        whole = read_picture(as_is, i);
        ck_assert_int_eq(tn_tensor_size(tn_pack_tensor(whole, 0), 1), 5); /* not turned */
        tn_pack_drop(whole);
    }
    tn_dataset_drop(corner);
    tn_dataset_drop(corner_late);
    tn_dataset_drop(as_is);
    tn_dataset_drop(early);
    tn_dataset_drop(late);
    tn_dataset_drop(padded);
    tn_dataset_drop(plain);
}
END_TEST

/* ---- damaged files --------------------------------------------------------------------------- */

static char folder[64];

static const char *inside(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(inside(name), "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* Reads the only picture of the folder, and returns the status. */
static tn_status read_only(const char *words)
{
    tn_dataset *dataset = tn_dataset_new("ImageFolder(%q)", folder);
    tn_pack *pack = tn_pack_new();
    tn_status status;

    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    status = tn_dataset_get(dataset, 0, 0, 0, pack);
    if (status != TN_OK && status != TN_ERR_NOT_IMPLEMENTED)
        ck_assert_msg(strstr(tn_error_text(), words) != NULL, "%s", tn_error_text());
    tn_error_clear();
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    return status;
}

static size_t read_source(const char *source, uint8_t bytes[2048])
{
    char path[TEST_PATH];
    FILE *file = fopen(source_path(path, source), "rb");
    size_t size;

    ck_assert_ptr_nonnull(file);
    size = fread(bytes, 1, 2048, file);
    fclose(file);
    return size;
}

/* Reads the picture of an open dataset after its file has got other bytes. */
static tn_status read_changed(tn_dataset *dataset, int file, const uint8_t *bytes, size_t size,
                              const char *name)
{
    tn_pack *pack = tn_pack_new();
    tn_status status;

    ck_assert_int_eq(ftruncate(file, (off_t)size), 0);
    ck_assert_int_eq(pwrite(file, bytes, size, 0), (ssize_t)size);
    status = tn_dataset_get(dataset, 0, 0, 0, pack);
    if (status != TN_OK && status != TN_ERR_NOT_IMPLEMENTED)
        ck_assert_msg(strstr(tn_error_text(), name) != NULL, "%s", tn_error_text());
    tn_error_clear();
    tn_pack_drop(pack);
    return status;
}

static void damage(const char *source, const char *name)
{
    uint8_t bytes[2048];
    size_t size = read_source(source, bytes);
    tn_dataset *dataset;
    int file;

    write_bytes(name, bytes, size);
    dataset = tn_dataset_new("ImageFolder(%q)", folder);
    file = open(inside(name), O_RDWR);
    ck_assert(dataset != NULL && file >= 0);
    for (size_t cut = 0; cut + 2 < size; cut++) /* without the marker of its end a JPEG is whole */
        ck_assert_msg(read_changed(dataset, file, bytes, cut, name) != TN_OK,
                      "%s cut to %zu bytes is read", source, cut);
    for (size_t at = 0; at < size; at++) { /* may be read, but must not crash */
        bytes[at] ^= 0x55;
        (void)read_changed(dataset, file, bytes, size, name);
        bytes[at] ^= 0x55;
    }
    ck_assert_int_eq(close(file), 0);
    tn_dataset_drop(dataset);
    unlink(inside(name));
}

/* Writes a progressive JPEG whose first scan, a header and its codes, is there `times` times. */
static void write_scans(const char *name, int times)
{
    uint8_t bytes[2048];
    size_t size = read_source("tests/data/files/pictures/dog/progressive.jpg", bytes), from = 2, to;
    FILE *file = fopen(inside(name), "wb");

    ck_assert_ptr_nonnull(file);
    while (bytes[from + 1] != 0xDA) /* a length of two bytes follows each marker before */
        from += 2 + (size_t)(bytes[from + 2] << 8 | bytes[from + 3]);
    for (to = from + 2; bytes[to] != 0xFF || bytes[to + 1] == 0; to++)
        ck_assert_uint_lt(to + 2, size);
    ck_assert_uint_eq(fwrite(bytes, 1, from, file), from);
    for (int i = 0; i < times; i++)
        ck_assert_uint_eq(fwrite(bytes + from, 1, to - from, file), to - from);
    ck_assert_uint_eq(fwrite(bytes + to, 1, size - to, file), size - to);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(damaged_pictures_are_errors)
{
    snprintf(folder, sizeof folder, "/tmp/tenon-images-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(mkdir(inside("class"), 0700), 0);
    damage("tests/data/files/pictures/dog/rgb.png", "class/x.png");
    damage("tests/data/files/pictures/dog/color.JPG", "class/x.jpg");
    damage("tests/data/files/pictures/dog/progressive.jpg", "class/x.jpg");
    damage("tests/data/files/odd/all/turned_6.jpg", "class/x.jpg");
    damage("tests/data/files/odd/all/turned_6.png", "class/x.png");
    damage("tests/data/files/odd/all/bmp_4.bmp", "class/x.bmp");
    damage("tests/data/files/odd/all/bmp_core.bmp", "class/x.bmp");
    write_scans("class/x.jpg", 400);
    ck_assert_int_ne(read_only("x.jpg"), TN_ERR_FORMAT);
    write_scans("class/x.jpg", 600); /* the scans of a small file could take hours */
    ck_assert_int_ne(read_only("more than 500 scans"), TN_OK);
    unlink(inside("class/x.jpg"));
    write_bytes("class/text.png", (const uint8_t *)"no picture", 10);
    ck_assert_int_eq(read_only("no PNG, JPEG, BMP, WebP, TIFF or GIF file"), TN_ERR_FORMAT);
    write_bytes("class/text.png", (const uint8_t *)"0000ftypheic0000", 16);
    ck_assert_int_eq(read_only("a HEIC file; expected PNG, JPEG"), TN_ERR_NOT_IMPLEMENTED);
    write_bytes("class/text.png", (const uint8_t *)"0000ftypavif0000", 16);
    ck_assert_int_eq(read_only("an AVIF file; expected PNG, JPEG"), TN_ERR_NOT_IMPLEMENTED);
    unlink(inside("class/text.png"));
    ck_assert_ptr_null(tn_dataset_new("ImageFolder(%q)", folder));
    ck_assert_msg(strstr(tn_error_text(), "no pictures of class \"class\"") != NULL, "%s",
                  tn_error_text());
    tn_error_clear();
    rmdir(inside("class"));
    ck_assert_ptr_null(tn_dataset_new("ImageFolder(%q)", folder));
    ck_assert_msg(strstr(tn_error_text(), "no folders") != NULL, "%s", tn_error_text());
    tn_error_clear();
    rmdir(folder);
    ck_assert_ptr_null(tn_dataset_new("ImageFolder(%q)", folder));
    ck_assert_msg(strstr(tn_error_text(), "No such file") != NULL, "%s", tn_error_text());
    tn_error_clear();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        pictures_have_the_pixels_of_pillow,
        odd_pictures_are_those_of_pillow,
        parts_of_odd_pictures_have_their_pixels,
        resized_pictures_are_those_of_torchvision,
        random_parts_have_the_asked_size,
        parts_have_the_pixels_of_the_whole_picture,
        decoding_early_and_late_give_the_same,
        damaged_pictures_are_errors,
        NULL,
    };
    return suite_run("pictures", tests);
}

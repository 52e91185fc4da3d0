/* SPDX-License-Identifier: MIT
 *
 * Pictures that are decoded by libraries which are opened at run time: WebP, TIFF and GIF, compared
 * with Pillow (library_pictures.h), and damaged files. */
#include "tests/base/suite.h"
#include "tests/folders.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library_pictures.h"

enum { COUNT = sizeof library_pictures / sizeof *library_pictures, MOST = 2048 };

/* Opens a picture alone. NULL if this build cannot read it: the error must say so. */
static tn_pack *read_path(const char *path, const char *options)
{
    tn_dataset *dataset = tn_dataset_new("ImageFiles(%q%s)", path, options);
    tn_pack *pack = tn_pack_new();

    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    if (tn_dataset_get(dataset, 0, 0, 0, pack) != TN_OK) {
        ck_assert_msg(tn_error_code() == TN_ERR_NOT_IMPLEMENTED &&
                          (strstr(tn_error_text(), "was built without") != NULL ||
                           strstr(tn_error_text(), "is missing (Debian: lib") != NULL),
                      "%s", tn_error_text());
        tn_error_clear();
        tn_pack_drop(pack);
        pack = NULL;
    }
    tn_dataset_drop(dataset);
    return pack;
}

static const char *source_of(char path[TEST_PATH], const char *name)
{
    char source[128];

    snprintf(source, sizeof source, "tests/data/files/library/%s", name);
    return source_path(path, source);
}

/* Transparency, palettes, interlaced rows, several pictures, and pictures that EXIF turns. */
START_TEST(pictures_are_those_of_pillow)
{
    for (int i = 0; i < COUNT; i++) {
        TN_SCOPE;
        const struct library_picture *is = &library_pictures[i];
        char path[TEST_PATH];
        tn_pack *pack = read_path(source_of(path, is->name), "");
        tn_tensor *x = pack != NULL ? tn_pack_tensor(pack, 0) : NULL;
        const uint8_t *got = x != NULL ? tn_tensor_data(x) : NULL;

        if (x == NULL)
            continue;
        ck_assert_int_eq(tn_tensor_size(x, 1), is->height);
        ck_assert_int_eq(tn_tensor_size(x, 2), is->width);
        for (int k = 0; k < 3 * is->height * is->width; k++)
            ck_assert_msg(got[k] == is->planes[k], "%s: %d is %d, Pillow reads %d", is->name, k,
                          got[k], is->planes[k]);
        tn_pack_drop(pack);
    }
}
END_TEST

/* A part that is decoded alone has the pixels of the whole picture. */
START_TEST(parts_have_the_pixels_of_the_whole)
{
    for (int i = 0; i < COUNT; i++) {
        TN_SCOPE;
        const struct library_picture *is = &library_pictures[i];
        char path[TEST_PATH];
        tn_pack *whole = read_path(source_of(path, is->name), ""), *part = tn_pack_new();
        tn_dataset *plain = tn_dataset_new("ImageFiles(%q)", path);
        tn_dataset *middle = tn_dataset_transform(plain, "CenterCrop((3, 1))");
        int64_t top = (is->height - 2) / 2, left = (is->width - 1) / 2;
        const uint8_t *got;

        if (whole != NULL) {
            ck_assert_int_eq(tn_dataset_get(middle, 0, 0, 0, part), TN_OK);
            got = tn_tensor_data(tn_pack_tensor(part, 0));
            for (int64_t k = 0; k < 9; k++)
                ck_assert_msg(got[k] ==
                                  is->planes[(k / 3 * is->height + top + k % 3) * is->width + left],
                              "%s: %d", is->name, (int)k);
            tn_pack_drop(whole);
        }
        tn_pack_drop(part);
        tn_dataset_drop(middle);
        tn_dataset_drop(plain);
    }
}
END_TEST

START_TEST(orientation_may_be_ignored)
{
    static const char *const names[] = { "turned_5.webp", "turned_5.tif" };

    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        char path[TEST_PATH];
        tn_pack *pack = read_path(source_of(path, names[i]), ", orientation=False");

        if (pack == NULL)
            continue;
        ck_assert_int_eq(tn_tensor_size(tn_pack_tensor(pack, 0), 1), 5);
        ck_assert_int_eq(tn_tensor_size(tn_pack_tensor(pack, 0), 2), 7);
        tn_pack_drop(pack);
    }
}
END_TEST

/* ---- damaged files --------------------------------------------------------------------------- */

static char folder[] = "/tmp/tenon-library-XXXXXX";
static char file_name[sizeof folder + 16];

/* Reads bytes as a picture. Returns the status; a message must name the file. */
static tn_status read_bytes(const uint8_t *bytes, size_t size, const char *options,
                            const char *words)
{
    TN_SCOPE;
    FILE *file = fopen(file_name, "wb");
    tn_dataset *dataset;
    tn_pack *pack = tn_pack_new();
    tn_status status;

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    dataset = tn_dataset_new("ImageFolder(%q%s)", folder, options);
    if (dataset == NULL) { /* files that cannot be read by this build are left out */
        tn_error_clear();
        tn_pack_drop(pack);
        return TN_ERR_NOT_IMPLEMENTED;
    }
    status = tn_dataset_get(dataset, 0, 0, 0, pack);
    if (status != TN_OK)
        ck_assert_msg(strstr(tn_error_text(), file_name) != NULL &&
                          strstr(tn_error_text(), words) != NULL,
                      "%s", tn_error_text());
    tn_error_clear();
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    return status;
}

static size_t read_source(const char *name, uint8_t bytes[MOST])
{
    char path[TEST_PATH];
    FILE *file = fopen(source_of(path, name), "rb");
    size_t size;

    ck_assert_ptr_nonnull(file);
    size = fread(bytes, 1, MOST, file);
    fclose(file);
    return size;
}

static void begin(const char *ending)
{
    snprintf(file_name, sizeof file_name, "%s/class/x%s", folder, ending);
}

/* `needed`: a file cut to fewer bytes has lost pixels; it may have other things behind these. */
static void damage(const char *name, const char *ending, size_t needed)
{
    uint8_t bytes[MOST];
    size_t size = read_source(name, bytes);

    begin(ending);
    for (size_t cut = 0; cut < needed; cut++)
        ck_assert_msg(read_bytes(bytes, cut, "", "") != TN_OK, "%s cut to %zu bytes is read", name,
                      cut);
    for (size_t at = 0; at < size; at++) /* may be read, but must not crash */
        for (int k = 0; k < 2; k++) {
            uint8_t was = bytes[at];

            bytes[at] = k == 0 ? (uint8_t)(was ^ 0x55) : 0xFF;
            (void)read_bytes(bytes, size, ", max_pixels=1000000", "");
            bytes[at] = was;
        }
    unlink(file_name);
}

START_TEST(damaged_files_are_errors)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file_name, sizeof file_name, "%s/class", folder);
    ck_assert_int_eq(mkdir(file_name, 0700), 0);
    damage("lossless.webp", ".webp", 188);
    damage("lossy.webp", ".webp", 100);
    damage("animated.webp", ".webp", 200);
    damage("turned_5.webp", ".webp", 180);
    damage("plain.gif", ".gif", 107);
    damage("animated.gif", ".gif", 100);
    damage("part_clear.gif", ".gif", 115);
    damage("rgb.tiff", ".tiff", 240);
    damage("lzw.tif", ".tif", 250);
    damage("bits.tif", ".tif", 120);
    damage("big.tiff", ".tiff", 330);
    snprintf(file_name, sizeof file_name, "%s/class", folder);
    rmdir(file_name);
    rmdir(folder);
}
END_TEST

/* A few bytes that ask for gigabytes. */
START_TEST(small_files_do_not_fill_the_memory)
{
    static const uint8_t gif[] = "GIF89a\377\377\377\377\360\0\0\0\0\0\1\1\1,\0\0\0\0\377\377"
                                 "\377\377\0\2\2D\1\0;";
    /* a lossless WebP of 16384 x 16384, and a TIFF with 65535 values in each of its pixels */
    static const uint8_t webp[] = "RIFF\30\0\0\0WEBPVP8L\14\0\0\0/\377\377\377\17\0\0\0\0\0\0\0";
    static const uint8_t tiff[] = "II*\0\10\0\0\0\7\0\0\1\4\0\1\0\0\0\0\1\0\0\1\1\4\0\1\0\0\0\0\1"
                                  "\0\0\2\1\3\0\1\0\0\0\10\0\0\0\6\1\3\0\1\0\0\0\2\0\0\0\25\1\3\0"
                                  "\1\0\0\0\377\377\0\0\21\1\4\0\1\0\0\0\10\0\0\0\27\1\4\0\1\0\0"
                                  "\0\10\0\0\0\0\0\0\0";

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file_name, sizeof file_name, "%s/class", folder);
    ck_assert_int_eq(mkdir(file_name, 0700), 0);
    begin(".gif");
    ck_assert_int_ne(read_bytes(gif, sizeof gif, "", "too large"), TN_OK);
    unlink(file_name);
    begin(".webp");
    ck_assert_int_ne(read_bytes(webp, sizeof webp, "", "too large"), TN_OK);
    unlink(file_name);
    begin(".tif");
    ck_assert_int_ne(read_bytes(tiff, sizeof tiff, "", ""), TN_OK);
    unlink(file_name);
    snprintf(file_name, sizeof file_name, "%s/class", folder);
    rmdir(file_name);
    rmdir(folder);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        pictures_are_those_of_pillow,       parts_have_the_pixels_of_the_whole,
        orientation_may_be_ignored,         damaged_files_are_errors,
        small_files_do_not_fill_the_memory, NULL,
    };

    return suite_run("library pictures", tests);
}

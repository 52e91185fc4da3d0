/* SPDX-License-Identifier: MIT
 *
 * Every allocation of opening a dataset, of a sample and of a batch fails in turn: each time the
 * call fails with an error, and no memory leaks. Also pictures that are empty, cut, or too large
 * for the memory. */
#include "core/base/internal.h"
#include "tests/base/suite.h"
#include "tests/folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <tenon/tenon.h>

/* ---- a ledger of the library's memory -------------------------------------------------------- */

static _Atomic int64_t ledger;

static void *ledger_alloc(void *user, size_t size, size_t alignment)
{
    void *memory;

    (void)user;
    if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment,
                       size > 0 ? size : 1))
        return NULL;
    ledger += (int64_t)size;
    return memory;
}

static void ledger_free(void *user, void *memory, size_t size, size_t alignment)
{
    (void)user, (void)alignment;
    if (memory != NULL)
        ledger -= (int64_t)size;
    free(memory);
}

static void *ledger_resize(void *user, void *memory, size_t old_size, size_t size, size_t alignment)
{
    void *fresh = ledger_alloc(user, size, alignment);

    if (fresh != NULL && memory != NULL) {
        memcpy(fresh, memory, old_size < size ? old_size : size);
        ledger_free(user, memory, old_size, alignment);
    }
    return fresh;
}

static char folder[64];

static const char *inside(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(inside(name), "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/tenon-memory-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(mkdir(inside("class"), 0700), 0);
}

static void remove_folder(void)
{
    char command[96];

    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* ---- allocations ----------------------------------------------------------------------------- */

/* Reads an epoch. */
static void use(const char *spec, const char *transform, const char *options)
{
    TN_SCOPE;
    tn_dataset *files = tn_dataset_parse(spec);
    tn_dataset *dataset = transform != NULL && files != NULL
                              ? tn_dataset_transform(files, transform)
                              : tn_dataset_keep(files);
    tn_loader *loader = dataset != NULL ? tn_loader_parse(dataset, options) : NULL;

    while (loader != NULL && tn_loader_next(loader) != NULL)
        ;
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    tn_dataset_drop(files);
}

/* Lets the first allocation fail, then the second, and so on, until no allocation fails. Each is
 * tried three times: because a cache may grow once, only growth in two tries is a leak. */
static void walk(const char *spec, const char *transform, const char *options)
{
    bool reached = true;
    int failures = 0;

    use(spec, transform, options);
    ck_assert_msg(!tn_failed(), "%s, %s: %s", spec, transform, tn_error_text());
    for (uint64_t n = 1; reached; n++) {
        int64_t after[3];

        for (int i = 0; i < 3; i++) {
            tn_error_clear();
            tn__memory_fail(n);
            use(spec, transform, options);
            reached = tn__memory_fail(0) >= n;
            after[i] = ledger;
            ck_assert_msg(!tn_failed() || tn_error_code() == TN_ERR_MEMORY, "%s, %s: %d: %s", spec,
                          transform, (int)n, tn_error_text());
            failures += tn_failed();
        }
        ck_assert_msg(after[2] <= after[1] || after[1] <= after[0],
                      "%s, %s: allocation %d: something is lost", spec, transform, (int)n);
    }
    tn_error_clear();
    ck_assert_int_gt(failures, 20);
}

START_TEST(each_allocation_of_a_picture_fails_in_turn)
{
    static const char *const transforms[] = {
        "RandomResizedCrop(9)", "[Resize(12), CenterCrop(8), ToFloat(), Normalize(0.5, 0.5)]",
        "[RandomCrop(20), ColorJitter(0.1, 0.1, 0.1, 0.1), GaussianBlur(3), GaussianNoise()]",
        "[CenterCrop(16), RandomRotation(20), RandomAffine(5), Grayscale(), Resize(5)]"
    };
    char path[TEST_PATH], spec[TEST_PATH + 32];

    snprintf(spec, sizeof spec, "ImageFolder(\"%s\")", source_path(path, "tests/data/files/parts"));
    use(spec, transforms[0], "batch_size=8");
    if (tn_error_code() == TN_ERR_NOT_IMPLEMENTED) /* built without libjpeg or libpng */
        return;
    for (size_t i = 0; i < sizeof transforms / sizeof *transforms; i++)
        walk(spec, transforms[i], "batch_size=8");
    walk(spec, "[Resize((5, 5)), ToFloat()]", "batch_size=4, batch_transform=[MixUp(), CutMix()]");
}
END_TEST

START_TEST(each_allocation_of_sounds_and_texts_fails_in_turn)
{
    char text[TEST_PATH], vocabulary[TEST_PATH], spec[2 * TEST_PATH + 64];
    uint8_t sound[46] = "RIFF....WAVEfmt \20\0\0\0\1\0\1\0\100\37\0\0\0\0\0\0\1\0\10\0data\2\0\0\0";

    make_folder();
    write_bytes("class/x.wav", sound, sizeof sound);
    snprintf(spec, sizeof spec, "WAVFolder(\"%s\", length=4, mono=True)", folder);
    walk(spec, NULL, "batch_size=8");
    snprintf(spec, sizeof spec, "TextBPE(\"%s\", \"%s\", 100)",
             source_path(text, "tests/data/files/text.txt"),
             source_path(vocabulary, "tests/data/files/bpe"));
    walk(spec, NULL, "batch_size=8");
    remove_folder();
}
END_TEST

/* ---- pictures that are wrong ----------------------------------------------------------------- */

/* Reads the only picture in both ways: the transform decodes it, or the dataset. */
static void refused(const char *options, const char *words)
{
    for (int i = 0; i < 2; i++) {
        tn_dataset *files = tn_dataset_new("ImageFolder(%q%s)", folder, options);
        tn_dataset *dataset = tn_dataset_transform(files, i == 0 ? "Resize(8)" : "[Pad(0)]");
        tn_pack *pack = tn_pack_new();

        ck_assert_msg(dataset != NULL, "%s", tn_error_text());
        ck_assert_int_ne(tn_dataset_get(dataset, 0, 0, 0, pack), TN_OK);
        ck_assert_msg(strstr(tn_error_text(), words) != NULL ||
                          tn_error_code() == TN_ERR_NOT_IMPLEMENTED,
                      "\"%s\" is not in \"%s\"", words, tn_error_text());
        ck_assert(strstr(tn_error_text(), folder) != NULL);
        tn_error_clear();
        tn_pack_drop(pack);
        tn_dataset_drop(dataset);
        tn_dataset_drop(files);
    }
}

START_TEST(pictures_that_claim_to_be_large_are_refused)
{
    /* The header of a PNG of 2^31 - 1 x 2^31 - 1 pixels, and of a JPEG of 65500 x 65500. */
    static const uint8_t png[] = { 0x89, 'P',  'N', 'G', 13,  10,   26,   10,   0,    0,    0,
                                   13,   'I',  'H', 'D', 'R', 0x7F, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF,
                                   0xFF, 0xFF, 8,   2,   0,   0,    0,    0xB9, 0xC4, 0xA1, 0xC1 };
    static const uint8_t jpeg[] = { 0xFF, 0xD8, 0xFF, 0xC0, 0,  17, 8,    0xFF, 0xDC, 0xFF,
                                    0xDC, 3,    1,    0x22, 0,  2,  0x11, 1,    3,    0x11,
                                    1,    0xFF, 0xDA, 0,    12, 3,  1,    0,    2,    0x11,
                                    3,    0x11, 0,    63,   0,  0,  0 };
    char path[TEST_PATH];
    uint8_t bytes[512];
    FILE *file = fopen(source_path(path, "tests/data/files/pictures/dog/rgb.png"), "rb");
    size_t size;

    ck_assert_ptr_nonnull(file);
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    make_folder();
    write_bytes("class/x.png", png, sizeof png);
    refused("", "PNG file");
    write_bytes("class/x.png", jpeg, sizeof jpeg);
    refused("", "too large, got 65500 x 65500 pixels; expected at most 178956970");
    write_bytes("class/x.png", bytes, size);
    refused(", max_pixels=62", "too large, got 7 x 9 pixels; expected at most 62");
    write_bytes("class/x.png", "", 0);
    refused("", "the file is empty");
    ck_assert_ptr_null(tn_dataset_new("ImageFolder(%q, max_pixels=0)", folder));
    ck_assert_msg(strstr(tn_error_text(), "max_pixels: out of range, got 0") != NULL, "%s",
                  tn_error_text());
    tn_error_clear();
    remove_folder();
}
END_TEST

/* Of five files, one is empty and one is cut; the loader leaves both out. */
START_TEST(empty_and_cut_pictures_are_counted)
{
    char path[TEST_PATH], name[] = "class/0.jpg";
    uint8_t bytes[8192];
    FILE *file = fopen(source_path(path, "tests/data/files/parts/all/a_420.jpg"), "rb");
    size_t size;
    int64_t samples = 0;
    tn_dataset *files, *dataset;
    tn_loader *loader;
    tn_pack *batch;

    ck_assert_ptr_nonnull(file);
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    make_folder();
    for (int i = 0; i < 5; i++, name[6]++)
        write_bytes(name, bytes, i == 1 ? 0 : i == 3 ? size / 2 : size);
    files = tn_dataset_new("ImageFolder(%q)", folder);
    dataset = tn_dataset_transform(files, "Resize((10, 10))");
    loader = tn_loader_new(dataset, "batch_size=2, skip_damaged=True, workers=2, seed=0");
    while ((batch = tn_loader_next(loader)) != NULL)
        samples += tn_tensor_size(tn_pack_tensor(batch, 0), 0);
    if (tn_error_code() != TN_ERR_NOT_IMPLEMENTED) {
        ck_assert_msg(!tn_failed(), "%s", tn_error_text());
        ck_assert_int_eq(samples, 3);
        ck_assert_int_eq(tn_loader_skipped(loader), 2);
    }
    tn_error_clear();
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    tn_dataset_drop(files);
    remove_folder();
}
END_TEST

int main(void)
{
    static const tn_allocator mine = { ledger_alloc, ledger_resize, ledger_free, NULL, { NULL } };
    const TTest *const tests[] = {
        each_allocation_of_a_picture_fails_in_turn,
        each_allocation_of_sounds_and_texts_fails_in_turn,
        pictures_that_claim_to_be_large_are_refused,
        empty_and_cut_pictures_are_counted,
        NULL,
    };

    if (tn_set_allocator(&mine) != TN_OK)
        return 99;
    return suite_run("memory of datasets", tests);
}

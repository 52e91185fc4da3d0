/* SPDX-License-Identifier: MIT
 *
 * WAVFolder and WAVFiles: values of every kind of samples, crops, damaged files; and the folders
 * that they and ImageFolder read. Values of integers are those of torchaudio: the integer divided
 * by its range.
 */
#include "tests/base/suite.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sounds.h"

static char folder[64];

static const char *inside(const char *name)
{
    static char path[2][256];
    static int turn;

    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
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
    snprintf(folder, sizeof folder, "/tmp/tenon-sounds-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(mkdir(inside("class"), 0700), 0);
}

static void remove_folder(void)
{
    char command[96];

    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void put(uint8_t *at, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* Writes a WAV file to `out`; returns its size. `format` 0xFFFE: an extensible header of PCM. */
static size_t make_wav(uint8_t *out, uint32_t format, uint32_t channels, uint32_t bits,
                       const void *data, uint32_t size)
{
    static const uint8_t rest[] = { 0, 0, 0, 0, 16, 0, 128, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71 };
    uint32_t length = format == 0xFFFE ? 40 : 16, at = 20 + length;

    memset(out, 0, at);
    memcpy(out, "RIFF....WAVEfmt ", 16);
    put(out + 16, length, 4);
    put(out + 20, format, 2);
    put(out + 22, channels, 2);
    put(out + 24, 8000, 4);
    put(out + 28, 8000 * channels * bits / 8, 4);
    put(out + 32, channels * bits / 8, 2);
    put(out + 34, bits, 2);
    if (format == 0xFFFE) {
        put(out + 36, 22, 2);
        put(out + 38, bits, 2);
        put(out + 44, 1, 2);
        memcpy(out + 46, rest, sizeof rest);
    }
    memcpy(out + at, "LIST\3\0\0\0abc\0", 12); /* a part of odd length, and its padding */
    memcpy(out + at + 12, "data", 4);
    put(out + at + 16, size, 4);
    memcpy(out + at + 20, data, size);
    put(out + 4, at + 12 + size, 4);
    return at + 20 + size;
}

static tn_dataset *opened(const char *options)
{
    tn_dataset *dataset = tn_dataset_new("WAVFolder(%q%s)", folder, options);

    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    return dataset;
}

/* The only sample must have these values, [channels, count]. */
static void has(const char *options, int64_t channels, int64_t count, const float *values)
{
    TN_SCOPE;
    tn_dataset *dataset = opened(options);
    tn_pack *pack = tn_pack_new();
    tn_tensor *x;

    ck_assert_msg(tn_dataset_get(dataset, 0, 0, 0, pack) == TN_OK, "%s", tn_error_text());
    x = tn_pack_tensor(pack, 0);
    ck_assert_int_eq(tn_tensor_dtype(x), TN_F32);
    ck_assert_int_eq(tn_tensor_size(x, 0), channels);
    ck_assert_int_eq(tn_tensor_size(x, 1), count);
    for (int64_t i = 0; i < channels * count; i++)
        ck_assert_msg(((const float *)tn_tensor_data(x))[i] == values[i], "%s: %d is %.9g", options,
                      (int)i, (double)((const float *)tn_tensor_data(x))[i]);
    ck_assert_int_eq(tn_pack_at(pack, 1).as.i, 0);
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
}

START_TEST(every_kind_of_samples_is_read)
{
    static const uint8_t bytes[] = { 0, 64, 128, 255 };
    static const uint8_t words[] = { 0, 0x80, 0xFF, 0xFF, 1, 0, 0xFF, 0x7F };
    static const uint8_t threes[] = { 0, 0, 0x80, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0, 0, 0x40 };
    static const uint8_t longs[] = { 0, 0, 0, 0x80, 0, 0, 0, 0x40 };
    static const float floats[] = { 0.5f, -1.25f };
    static const double doubles[] = { 0.1, -2 };
    uint8_t file[256];

    make_folder();
    write_bytes("class/x.WAV", file, make_wav(file, 1, 1, 8, bytes, 4));
    has("", 1, 4, (float[]){ -1, -0.5f, 0, 127 / 128.0f });
    write_bytes("class/x.WAV", file, make_wav(file, 1, 2, 16, words, 8));
    has("", 2, 2, (float[]){ -1, 1 / 32768.0f, -1 / 32768.0f, 32767 / 32768.0f });
    has(", mono=True", 1, 2, (float[]){ -32769 / 65536.0f, 0.5f });
    write_bytes("class/x.WAV", file, make_wav(file, 0xFFFE, 1, 24, threes, 12));
    has("", 1, 4, (float[]){ -1, -1 / 8388608.0f, 1 / 8388608.0f, 0.5f });
    write_bytes("class/x.WAV", file, make_wav(file, 1, 1, 32, longs, 8));
    has("", 1, 2, (float[]){ -1, 0.5f });
    write_bytes("class/x.WAV", file, make_wav(file, 3, 1, 32, floats, 8));
    has("", 1, 2, floats);
    write_bytes("class/x.WAV", file, make_wav(file, 3, 1, 64, doubles, 16));
    has("", 1, 2, (float[]){ 0.1f, -2 });
    remove_folder();
}
END_TEST

START_TEST(samples_are_cut_or_padded)
{
    static const uint8_t bytes[] = { 128, 160, 192, 224, 0, 255 };
    uint8_t file[256];
    bool seen[5] = { false };
    tn_dataset *dataset;

    make_folder();
    write_bytes("class/x.wav", file, make_wav(file, 1, 1, 8, bytes, 6));
    has(", length=2", 1, 2, (float[]){ 0, 0.25f });
    has(", length=2, crop='middle'", 1, 2, (float[]){ 0.5f, 0.75f });
    has(", length=8, crop='random'", 1, 8,
        (float[]){ 0, 0.25f, 0.5f, 0.75f, -1, 127 / 128.0f, 0, 0 });
    dataset = opened(", length=2, crop='random'");
    for (int64_t epoch = 0; epoch < 100; epoch++) {
        TN_SCOPE;
        tn_pack *pack = tn_pack_new();
        const float *x;
        int found = -1;

        ck_assert_int_eq(tn_dataset_get(dataset, 0, 3, epoch, pack), TN_OK);
        x = tn_tensor_data(tn_pack_tensor(pack, 0));
        for (int i = 0; i < 5; i++)
            if (x[0] == ((float)bytes[i] - 128) / 128)
                found = i;
        ck_assert_int_ge(found, 0);
        ck_assert(x[1] == ((float)bytes[found + 1] - 128) / 128);
        seen[found] = true;
        tn_pack_drop(pack);
    }
    for (int i = 0; i < 5; i++)
        ck_assert(seen[i]);
    tn_dataset_drop(dataset);
    ck_assert_ptr_null(tn_dataset_new("WAVFolder(%q, crop='end')", folder));
    ck_assert_msg(strstr(tn_error_text(), "crop: unknown, got \"end\"") != NULL, "%s",
                  tn_error_text());
    tn_error_clear();
    ck_assert_ptr_null(tn_dataset_new("WAVFolder(%q, length=0)", folder));
    tn_error_clear();
    remove_folder();
}
END_TEST

/* Reads the only file and returns the status. */
static tn_status read_only(const char *options, const char *words)
{
    tn_dataset *dataset = opened(options);
    tn_pack *pack = tn_pack_new();
    tn_status status = tn_dataset_get(dataset, 0, 0, 0, pack);

    if (status != TN_OK)
        ck_assert_msg(strstr(tn_error_text(), words) != NULL, "\"%s\" is not in \"%s\"", words,
                      tn_error_text());
    tn_error_clear();
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    return status;
}

START_TEST(damaged_sounds_are_errors)
{
    static const uint8_t words[] = { 0, 0x80, 0xFF, 0xFF, 1, 0, 0xFF, 0x7F };
    uint8_t file[256];
    size_t size = make_wav(file, 0xFFFE, 2, 16, words, 8);

    make_folder();
    for (size_t cut = 0; cut < size; cut++) {
        write_bytes("class/x.wav", file, cut);
        ck_assert_int_eq(read_only("", ""), TN_ERR_FORMAT);
    }
    for (size_t at = 0; at < size; at++) /* may be read, but must not crash */
        for (int bit = 0; bit < 8; bit++) {
            file[at] ^= (uint8_t)(1 << bit);
            write_bytes("class/x.wav", file, size);
            (void)read_only("", "");
            file[at] ^= (uint8_t)(1 << bit);
        }
    write_bytes("class/x.wav", file, make_wav(file, 1, 2, 16, words, 6));
    ck_assert_int_eq(read_only("", "the last frame is not complete"), TN_ERR_FORMAT);
    write_bytes("class/x.wav", file, make_wav(file, 6, 1, 8, words, 6));
    ck_assert_int_eq(read_only("", "got format 6 of 8 bits"), TN_ERR_NOT_IMPLEMENTED);
    write_bytes("class/x.wav", file, make_wav(file, 1, 0, 8, words, 6));
    ck_assert_int_eq(read_only("", "do not agree"), TN_ERR_FORMAT);
    write_bytes("class/x.wav", file, make_wav(file, 1, 1, 8, words, 6));
    ck_assert_int_eq(read_only(", sample_rate=8000", ""), TN_OK);
    put(file + 24, 0, 4);
    write_bytes("class/x.wav", file, 36 + 12 + 8 + 6);
    ck_assert_int_eq(read_only("", "the sample rate is 0"), TN_ERR_FORMAT);
    put(file + 24, UINT32_MAX, 4);
    write_bytes("class/x.wav", file, 36 + 12 + 8 + 6);
    ck_assert_int_eq(read_only(", sample_rate=1", "sample_rate: too far from that of the file"),
                     TN_ERR_FORMAT);
    ck_assert_int_eq(read_only(", sample_rate=16000", ""), TN_OK);
    write_bytes("class/x.wav", file, make_wav(file, 1, 1, 8, words, 6));
    put(file + 36 + 12 + 4, 0xFFFFFFFF, 4); /* unknown size: the data end with the file */
    write_bytes("class/x.wav", file, 36 + 12 + 8 + 6);
    has("", 1, 6, (float[]){ -1, 0, 127 / 128.0f, 127 / 128.0f, -127 / 128.0f, -1 });
    write_bytes("class/x.wav", file, make_wav(file, 1, 1, 8, words, 0));
    ck_assert_int_eq(read_only(", length=5", "a sound without samples"), TN_ERR_FORMAT);
    write_bytes("class/x.wav", file, make_wav(file, 3, 1, 32, (const float[]){ 0, NAN }, 8));
    ck_assert_int_eq(read_only("", "a sample is NaN or infinite"), TN_ERR_FORMAT);
    write_bytes("class/x.wav", file, make_wav(file, 3, 1, 32, (const float[]){ -INFINITY }, 4));
    ck_assert_int_eq(read_only(", mono=True", "a sample is NaN or infinite"), TN_ERR_FORMAT);
    write_bytes("class/x.wav", "RF64", 4);
    ck_assert_int_eq(read_only("", "wrong kind of file, got RF64; expected RIFF"),
                     TN_ERR_NOT_IMPLEMENTED);
    remove_folder();
}
END_TEST

/* ---- rates ----------------------------------------------------------------------------------- */

static void write_sound(const char *name, int64_t rate)
{
    uint8_t bytes[2 * FRAMES], file[256];
    size_t size;

    for (int i = 0; i < 2 * FRAMES; i++)
        bytes[i] = (uint8_t)(37 * i % 251);
    size = make_wav(file, 1, 2, 8, bytes, sizeof bytes);
    put(file + 24, (uint32_t)rate, 4);
    write_bytes(name, file, size);
}

/* A part of a resampled sound has the values of the whole one. */
static void part_is(const char *options, const struct resampled *r, int64_t first, int64_t count,
                    bool mono)
{
    TN_SCOPE;
    tn_dataset *dataset = opened(options);
    tn_pack *pack = tn_pack_new();
    const float *x;

    ck_assert_msg(tn_dataset_get(dataset, 0, 0, 0, pack) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_size(tn_pack_tensor(pack, 0), 0), mono ? 1 : 2);
    ck_assert_int_eq(tn_tensor_size(tn_pack_tensor(pack, 0), 1), count);
    x = tn_tensor_data(tn_pack_tensor(pack, 0));
    for (int64_t c = 0; c < (mono ? 1 : 2); c++)
        for (int64_t i = 0; i < count; i++) {
            double one = r->values[c * r->count + first + i],
                   other = r->values[r->count + first + i];
            double wanted = mono ? (one + other) / 2 : one;

            ck_assert_msg(fabs((double)x[c * count + i] - wanted) <= 2e-7,
                          "%s: %d, %d: %.9g, not %.9g", options, (int)c, (int)i,
                          (double)x[c * count + i], wanted);
        }
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
}

START_TEST(sounds_are_resampled_as_torchaudio_does)
{
    char options[96];

    make_folder();
    for (size_t i = 0; i < sizeof resampled / sizeof *resampled; i++) {
        const struct resampled *r = &resampled[i];

        write_sound("class/x.wav", r->from);
        snprintf(options, sizeof options, ", sample_rate=%d", (int)r->to);
        part_is(options, r, 0, r->count, false);
        snprintf(options, sizeof options, ", sample_rate=%d, mono=True, length=4, crop='middle'",
                 (int)r->to);
        part_is(options, r, (r->count - 4) / 2, 4, true);
        snprintf(options, sizeof options, ", sample_rate=%d, length=3", (int)r->to);
        part_is(options, r, 0, 3, false);
    }
    remove_folder();
}
END_TEST

START_TEST(sounds_of_other_rates_are_refused)
{
    tn_dataset *dataset;
    tn_pack *pack = tn_pack_new();

    make_folder();
    write_bytes("class/a.wav", "x", 1); /* is damaged, so the next one counts */
    write_sound("class/b.wav", 16000);
    write_sound("class/c.wav", 8000);
    write_sound("class/d.wav", 16000);
    dataset = opened("");
    ck_assert_int_eq(tn_dataset_get(dataset, 1, 0, 0, pack), TN_OK);
    ck_assert_int_eq(tn_dataset_get(dataset, 2, 0, 0, pack), TN_ERR_VALUE);
    ck_assert_msg(strstr(tn_error_text(),
                         "class/c.wav: another sample rate, got 8000; expected 16000 as in the "
                         "first file, or the option sample_rate=16000") != NULL,
                  "%s", tn_error_text());
    tn_error_clear();
    ck_assert_int_eq(tn_dataset_get(dataset, 3, 0, 0, pack), TN_OK);
    tn_dataset_drop(dataset);
    dataset = opened(", sample_rate=16000, length=50"); /* all of them, with equal lengths */
    for (int64_t i = 1; i < 4; i++)
        ck_assert_int_eq(tn_dataset_get(dataset, i, 0, 0, pack), TN_OK);
    tn_dataset_drop(dataset);
    ck_assert_ptr_null(tn_dataset_new("WAVFolder(%q, sample_rate=0)", folder));
    ck_assert_msg(strstr(tn_error_text(), "sample_rate: out of range, got 0") != NULL, "%s",
                  tn_error_text());
    tn_error_clear();
    tn_pack_drop(pack);
    remove_folder();
}
END_TEST

/* A header may ask for gigabytes, because each channel gets zeros up to the length. */
START_TEST(headers_that_ask_for_much_are_refused)
{
    static uint8_t file[65536 + 64], silence[65535]; /* one frame */
    float zeros[2000] = { 0 };

    make_folder();
    memset(silence, 0x80, sizeof silence);
    write_bytes("class/x.wav", file, make_wav(file, 1, 65535, 8, silence, sizeof silence));
    ck_assert_int_eq(read_only(", length=5000",
                               "x.wav: too many channels, got 65535; expected at most 256, see the "
                               "option max_channels"),
                     TN_ERR_FORMAT);
    ck_assert_int_eq(
        read_only(", length=5000, max_channels=65535",
                  "x.wav: unpacked data: too large for a file of 65591 bytes; expected "
                  "at most 1073741824 bytes more than the file; if you trust it, "
                  "raise TENON_DATA_UNPACKED_MAX"),
        TN_ERR_REFUSED);
    /* one channel is made of all, without memory for each */
    has(", length=2000, mono=True, max_channels=65535", 1, 2000, zeros);
    ck_assert_int_eq(read_only(", length=100000, mono=True, max_channels=65535", ""), TN_OK);
    write_bytes("class/x.wav", file, make_wav(file, 1, 2, 8, "\xC0\x40\x80\x80", 4));
    ck_assert_int_eq(read_only(", max_channels=1", "too many channels, got 2; expected at most 1"),
                     TN_ERR_FORMAT);
    has(", max_channels=2", 2, 2, (float[]){ 0.5f, 0, -0.5f, 0 });
    ck_assert_ptr_null(tn_dataset_new("WAVFolder(%q, max_channels=0)", folder));
    ck_assert_str_eq(tn_error_text(),
                     "dataset WAVFolder: max_channels: out of range, got 0; expected 1 or more");
    tn_error_clear();
    remove_folder();
}
END_TEST

/* ---- folders --------------------------------------------------------------------------------- */

START_TEST(links_that_never_end_are_errors)
{
    uint8_t file[64];

    make_folder();
    write_bytes("class/x.wav", file, make_wav(file, 1, 1, 8, "abc", 3));
    ck_assert_int_eq(symlink("..", inside("class/up")), 0);
    ck_assert_ptr_null(tn_dataset_new("WAVFolder(%q)", folder));
    ck_assert_msg(strstr(tn_error_text(), "class/up: a link to a folder that contains the link") !=
                      NULL,
                  "%s", tn_error_text());
    tn_error_clear();
    unlink(inside("class/up"));
    ck_assert_int_eq(symlink("loop", inside("class/loop")), 0); /* to itself: there is no file */
    has("", 1, 3, (float[]){ -31 / 128.0f, -30 / 128.0f, -29 / 128.0f });
    remove_folder();
}
END_TEST

START_TEST(links_that_lead_nowhere_are_samples_that_cannot_be_read)
{
    uint8_t file[64];
    tn_dataset *dataset;
    tn_pack *pack = tn_pack_new();

    make_folder();
    write_bytes("class/x.wav", file, make_wav(file, 1, 1, 8, "abc", 3));
    ck_assert_int_eq(symlink("nowhere", inside("class/y.wav")), 0);
    ck_assert_int_eq(mkfifo(inside("class/z.wav"), 0600), 0);
    dataset = opened("");
    ck_assert_int_eq(tn_dataset_count(dataset), 3);
    ck_assert_int_eq(tn_dataset_get(dataset, 0, 0, 0, pack), TN_OK);
    for (int64_t i = 1; i < 3; i++) {
        ck_assert_int_eq(tn_dataset_get(dataset, i, 0, 0, pack), TN_ERR_IO);
        ck_assert_msg(strstr(tn_error_text(), i == 1 ? "y.wav: cannot be opened"
                                                     : "z.wav: not a regular file") != NULL,
                      "%s", tn_error_text());
        tn_error_clear();
    }
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    remove_folder();
}
END_TEST

START_TEST(hidden_files_and_folders_are_left_out)
{
    uint8_t file[64];
    size_t size = make_wav(file, 1, 1, 8, "abc", 3);
    tn_dataset *dataset;

    make_folder();
    write_bytes("class/x.wav", file, size);
    write_bytes("class/._x.wav", file, size);
    ck_assert_int_eq(mkdir(inside(".cache"), 0700), 0);
    write_bytes(".cache/x.wav", file, size);
    ck_assert_int_eq(mkdir(inside("class/.cache"), 0700), 0);
    write_bytes("class/.cache/x.wav", file, size);
    dataset = opened("");
    ck_assert_int_eq(tn_dataset_count(dataset), 1);
    ck_assert_int_eq(tn_dataset_classes(dataset), 1);
    ck_assert_str_eq(tn_dataset_class_name(dataset, 0), "class");
    tn_dataset_drop(dataset);
    remove_folder();
}
END_TEST

START_TEST(odd_names_are_names)
{
    static const char *const names[] = { " ", "%s%n", "\n\t", "a\"b\\c", "\xFF\xFE", "{0}" };
    uint8_t file[64];
    size_t size = make_wav(file, 1, 1, 8, "abc", 3);
    char path[128];
    tn_dataset *dataset;

    make_folder();
    rmdir(inside("class"));
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(mkdir(inside(names[i]), 0700), 0);
        snprintf(path, sizeof path, "%s/%s.wav", names[i], names[i]);
        write_bytes(path, file, size);
    }
    dataset = opened("");
    ck_assert_int_eq(tn_dataset_count(dataset), 6);
    ck_assert_str_eq(tn_dataset_class_name(dataset, 0), "\n\t");
    ck_assert_str_eq(tn_dataset_class_name(dataset, 5), "\xFF\xFE");
    for (int64_t i = 0; i < 6; i++) {
        tn_pack *pack = tn_pack_new();

        ck_assert_msg(tn_dataset_get(dataset, i, 0, 0, pack) == TN_OK, "%s", tn_error_text());
        ck_assert_int_eq(tn_pack_at(pack, 1).as.i, i);
        tn_pack_drop(pack);
    }
    tn_dataset_drop(dataset);
    remove_folder();
}
END_TEST

/* Files that are cut or removed after the dataset was opened. */
START_TEST(files_that_change_are_errors_of_their_sample)
{
    uint8_t file[64];
    size_t size = make_wav(file, 1, 1, 8, "abc", 3);
    tn_dataset *dataset;
    tn_loader *loader;
    int batches = 0;

    make_folder();
    for (int i = 0; i < 4; i++) {
        char name[] = "class/0.wav";

        name[6] = (char)('0' + i);
        write_bytes(name, file, size);
    }
    dataset = opened("");
    write_bytes("class/1.wav", file, size - 2);
    write_bytes("class/2.wav", file, 0);
    unlink(inside("class/3.wav"));
    ck_assert_int_eq(mkdir(inside("class/3.wav"), 0700), 0);
    loader = tn_loader_new(dataset, "batch_size=2, skip_damaged=True, workers=2, seed=0");
    while (tn_loader_next(loader) != NULL)
        batches++;
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    ck_assert_int_eq(batches, 1);
    ck_assert_int_eq(tn_loader_skipped(loader), 3);
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    remove_folder();
}
END_TEST

/* Sample `index` of WAVFiles must be named by this path. */
static void is_named(tn_dataset *dataset, int64_t index, const char *path)
{
    tn_pack *pack = tn_pack_new();

    ck_assert_msg(tn_dataset_get(dataset, index, 0, 0, pack) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_pack_count(pack), 2);
    ck_assert_str_eq(tn_pack_at(pack, 1).as.s, path);
    tn_pack_drop(pack);
}

START_TEST(single_files_have_their_paths)
{
    static const uint8_t bytes[] = { 128, 192, 64 };
    uint8_t file[64];
    size_t size = make_wav(file, 1, 1, 8, bytes, 3);
    tn_dataset *dataset;
    tn_pack *pack = tn_pack_new();
    const float *x;

    make_folder();
    write_bytes("class/b.wav", file, size);
    write_bytes("class/a.WAV", file, size);
    write_bytes("sound", file, size); /* known by its content */
    write_bytes("class/other.txt", "x", 1);
    dataset = tn_dataset_new("WAVFiles([%q, %q], length=2, crop='middle')", inside("sound"),
                             inside("class"));
    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_dataset_count(dataset), 3);
    ck_assert_int_eq(tn_dataset_classes(dataset), 0);
    is_named(dataset, 0, inside("sound"));
    is_named(dataset, 1, inside("class/a.WAV"));
    is_named(dataset, 2, inside("class/b.wav"));
    ck_assert_int_eq(tn_dataset_get(dataset, 0, 0, 0, pack), TN_OK);
    ck_assert_int_eq(tn_tensor_size(tn_pack_tensor(pack, 0), 1), 2);
    x = tn_tensor_data(tn_pack_tensor(pack, 0));
    ck_assert(x[0] == 0 && x[1] == 0.5f);
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    remove_folder();
}
END_TEST

/* WAVFiles of one path must fail with this status and a message with this text. */
static void is_refused(const char *name, tn_status status, const char *words)
{
    ck_assert_ptr_null(tn_dataset_new("WAVFiles(%q)", inside(name)));
    ck_assert_int_eq(tn_error_last_code(), status);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "%s", tn_error_text());
    tn_error_clear();
}

START_TEST(files_of_other_kinds_are_refused)
{
    uint8_t file[64];
    size_t size = make_wav(file, 1, 1, 8, "abc", 3);

    make_folder();
    write_bytes("text", "RIFF, but not a sound", 21);
    write_bytes("short", file, 11);
    is_refused("text", TN_ERR_FORMAT, "/text: no WAV, FLAC or Ogg file");
    is_refused("short", TN_ERR_FORMAT, "/short: no WAV, FLAC or Ogg file");
    is_refused("class", TN_ERR_FORMAT, "/class: no sounds in the folder; expected .wav, .flac");
    is_refused("none", TN_ERR_IO, "/none: cannot be opened");
    ck_assert_ptr_null(tn_dataset_new("WAVFiles([3])"));
    ck_assert_int_eq(tn_error_last_code(), TN_ERR_TYPE);
    tn_error_clear();
    write_bytes("sound", file, size);
    ck_assert_ptr_null(tn_dataset_new("WAVFiles(%q, crop='end')", inside("sound")));
    ck_assert_int_eq(tn_error_last_code(), TN_ERR_VALUE);
    tn_error_clear();
    remove_folder();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_kind_of_samples_is_read,
        samples_are_cut_or_padded,
        damaged_sounds_are_errors,
        sounds_are_resampled_as_torchaudio_does,
        sounds_of_other_rates_are_refused,
        headers_that_ask_for_much_are_refused,
        links_that_never_end_are_errors,
        links_that_lead_nowhere_are_samples_that_cannot_be_read,
        hidden_files_and_folders_are_left_out,
        odd_names_are_names,
        files_that_change_are_errors_of_their_sample,
        single_files_have_their_paths,
        files_of_other_kinds_are_refused,
        NULL,
    };
    return suite_run("sounds", tests);
}

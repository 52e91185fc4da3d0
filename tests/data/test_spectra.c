/* SPDX-License-Identifier: MIT
 *
 * MelSpectrogram, AmplitudeToDB and MFCC, compared with torchaudio; sounds of FLAC and Ogg files,
 * and damaged ones. */
#include "tests/base/suite.h"
#include "tests/folders.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spectra.h"

enum {
    SPECTRA = sizeof spectra / sizeof *spectra,
    SOUNDS = sizeof decoded / sizeof *decoded,
    MOST = 4096
};

static const char *source_of(char path[TEST_PATH], const char *name)
{
    char source[128];

    snprintf(source, sizeof source, "tests/data/files/sounds/%s", name);
    return source_path(path, source);
}

/* Reads the only sample. NULL if this build cannot read the file: the error must say so. */
static tn_pack *read_dataset(tn_dataset *dataset)
{
    tn_pack *pack = tn_pack_new();

    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    if (tn_dataset_get(dataset, 0, 0, 0, pack) == TN_OK)
        return pack;
    ck_assert_msg(tn_error_code() == TN_ERR_NOT_IMPLEMENTED &&
                      strstr(tn_error_text(), "libsndfile") != NULL,
                  "%s", tn_error_text());
    tn_error_clear();
    tn_pack_drop(pack);
    return NULL;
}

START_TEST(spectra_are_those_of_torchaudio)
{
    char path[TEST_PATH];
    tn_dataset *sound = tn_dataset_new("WAVFiles(%q)", source_of(path, "tone.wav"));

    for (int i = 0; i < SPECTRA; i++) {
        TN_SCOPE;
        const struct spectra *is = &spectra[i];
        tn_dataset *dataset = tn_dataset_transform(sound, is->spec);
        tn_pack *pack = read_dataset(dataset);
        tn_tensor *x = tn_pack_tensor(pack, 0);
        const float *got = tn_tensor_data(x);
        double largest = 0;

        ck_assert_int_eq(tn_tensor_size(x, 0), 2);
        ck_assert_int_eq(tn_tensor_size(x, 1), is->bands);
        ck_assert_int_eq(tn_tensor_size(x, 2), is->frames);
        for (int k = 0; k < 2 * is->bands * is->frames; k++)
            largest = fmax(largest, fabs(is->values[k]));
        for (int k = 0; k < 2 * is->bands * is->frames; k++)
            ck_assert_msg(fabs((double)got[k] - is->values[k]) <= 1e-6 * largest,
                          "%s: %d is %.9g, torchaudio computes %.9g", is->spec, k, (double)got[k],
                          is->values[k]);
        tn_pack_drop(pack);
        tn_dataset_drop(dataset);
    }
    tn_dataset_drop(sound);
}
END_TEST

/* As torchaudio does: a damaged sound must not look like a silent one. */
START_TEST(decibels_of_nan_are_nan)
{
    static const float values[] = { 1, NAN, 100 };
    static const char *const specs[] = { "AmplitudeToDB()", "AmplitudeToDB(top_db=5.0)" };

    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_from(values, TN_F32, TN_SHAPE(1, 1, 1, 3));
        tn_dataset *plain = tn_dataset_of_tensors(&x, 1);
        tn_dataset *dataset = tn_dataset_transform(plain, specs[i]);
        tn_pack *pack = read_dataset(dataset);
        const float *got = tn_tensor_data(tn_pack_tensor(pack, 0));

        ck_assert(isnan(got[1]));
        ck_assert(i == 0 ? got[0] == 0 && got[2] == 20 : isnan(got[0]) && isnan(got[2]));
        tn_pack_drop(pack);
        tn_dataset_drop(dataset);
        tn_dataset_drop(plain);
    }
}
END_TEST

START_TEST(wrong_options_and_sounds_are_errors)
{
    static const char *const wrong[][2] = {
        { "MelSpectrogram(n_fft=1)", "n_fft: out of range, got 1" },
        { "MelSpectrogram(n_fft=100000000000)", "n_fft: out of range" },
        { "MelSpectrogram(win_length=401)", "win_length: out of range, got 401" },
        { "MelSpectrogram(hop_length=0)", "hop_length: out of range, got 0" },
        { "MelSpectrogram(n_mels=0)", "n_mels: out of range" },
        { "MelSpectrogram(f_min=9000.0)", "f_min and f_max: no range" },
        { "MelSpectrogram(power=0.0)", "power: out of range" },
        { "MelSpectrogram(mel_scale='x')", "mel_scale: unknown, got \"x\"" },
        { "MelSpectrogram(norm='x')", "norm: unknown, got \"x\"" },
        { "MFCC(n_mfcc=129)", "n_mfcc: out of range, got 129; expected 1 to 128" },
        { "AmplitudeToDB('x')", "stype: unknown, got \"x\"" },
        { "AmplitudeToDB(top_db=-1.0)", "top_db: out of range" },
        { "MelSpectrogram(n_fft=1400)", "too short, got 700 samples; expected 701" },
        { "MelSpectrogram(n_fft=701, center=False)", "too short, got 700 samples; expected 701" },
    };
    char path[TEST_PATH];
    tn_dataset *sound = tn_dataset_new("WAVFiles(%q)", source_of(path, "tone.wav"));

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_dataset *dataset = tn_dataset_transform(sound, wrong[i][0]);
        tn_pack *pack = tn_pack_new();

        ck_assert(dataset == NULL || tn_dataset_get(dataset, 0, 0, 0, pack) != TN_OK);
        ck_assert_msg(strstr(tn_error_text(), wrong[i][1]) != NULL, "%s", tn_error_text());
        tn_error_clear();
        tn_pack_drop(pack);
        tn_dataset_drop(dataset);
    }
    tn_dataset_drop(sound);
}
END_TEST

/* FLAC loses nothing. */
START_TEST(flac_has_the_samples_of_wav)
{
    TN_SCOPE;
    char path[TEST_PATH];
    tn_dataset *wav = tn_dataset_new("WAVFiles(%q)", source_of(path, "tone.wav"));
    tn_dataset *flac = tn_dataset_new("WAVFiles(%q)", source_of(path, "tone.flac"));
    tn_pack *one = read_dataset(wav), *other = read_dataset(flac);

    if (other != NULL) {
        ck_assert_int_eq(tn_tensor_size(tn_pack_tensor(other, 0), 0), 2);
        ck_assert_int_eq(tn_tensor_size(tn_pack_tensor(other, 0), 1), 700);
        ck_assert_int_eq(memcmp(tn_tensor_data(tn_pack_tensor(one, 0)),
                                tn_tensor_data(tn_pack_tensor(other, 0)), 2 * 700 * 4),
                         0);
        tn_pack_drop(other);
    }
    tn_pack_drop(one);
    tn_dataset_drop(wav);
    tn_dataset_drop(flac);
}
END_TEST

START_TEST(ogg_is_decoded)
{
    for (int i = 0; i < SOUNDS; i++) {
        TN_SCOPE;
        char path[TEST_PATH];
        tn_dataset *dataset = tn_dataset_new("WAVFiles(%q)", source_of(path, decoded[i].name));
        tn_pack *pack = read_dataset(dataset);
        const float *got = pack != NULL ? tn_tensor_data(tn_pack_tensor(pack, 0)) : NULL;
        int64_t frames = decoded[i].frames;

        if (got != NULL)
            ck_assert_int_eq(tn_tensor_size(tn_pack_tensor(pack, 0), 1), frames);
        for (int k = 0; k < 2 * DECODED && got != NULL; k++)
            ck_assert_msg(fabs((double)got[k / DECODED * frames + 100 + k % DECODED] -
                               decoded[i].values[k]) < 2e-3,
                          "%s: %d", decoded[i].name, k);
        tn_pack_drop(pack);
        tn_dataset_drop(dataset);
    }
}
END_TEST

/* ---- folders and damaged files --------------------------------------------------------------- */

static char folder[] = "/tmp/tenon-spectra-XXXXXX";
static char file_name[sizeof folder + 16];

static tn_status read_bytes(const uint8_t *bytes, size_t size)
{
    TN_SCOPE;
    FILE *file = fopen(file_name, "wb");
    tn_dataset *dataset;
    tn_pack *pack = tn_pack_new();
    tn_status status = TN_ERR_FORMAT;

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    dataset = tn_dataset_new("WAVFolder(%q)", folder);
    if (dataset != NULL)
        status = tn_dataset_get(dataset, 0, 0, 0, pack);
    if (dataset != NULL && status != TN_OK)
        ck_assert_msg(strstr(tn_error_text(), file_name) != NULL, "%s", tn_error_text());
    tn_error_clear();
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    return status;
}

static void damage(const char *name)
{
    uint8_t bytes[MOST];
    char path[TEST_PATH];
    FILE *file = fopen(source_of(path, name), "rb");
    size_t size;

    ck_assert_ptr_nonnull(file);
    size = fread(bytes, 1, MOST, file);
    fclose(file);
    snprintf(file_name, sizeof file_name, "%s/class/x%s", folder, strchr(name, '.'));
    for (size_t cut = 0; cut < size; cut += cut < size - 40 ? 13 : 1)
        ck_assert_msg(read_bytes(bytes, cut) != TN_OK, "%s cut to %zu bytes is read", name, cut);
    for (size_t at = 0; at < size; at += at < 300 ? 1 : 17) { /* may be read, must not crash */
        bytes[at] ^= 0x55;
        (void)read_bytes(bytes, size);
        bytes[at] ^= 0x55;
    }
    unlink(file_name);
}

/* libsndfile loses what libvorbis allocates for an Ogg file that it then refuses. The leak checker
 * of a build with sanitizers asks this function what is not ours. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:vorbis_info_init\nleak:libsndfile\n";
}

START_TEST(damaged_sounds_are_errors)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file_name, sizeof file_name, "%s/class", folder);
    ck_assert_int_eq(mkdir(file_name, 0700), 0);
    damage("tone.flac");
    damage("tone.ogg");
    damage("tone.opus");
    snprintf(file_name, sizeof file_name, "%s/class", folder);
    rmdir(file_name);
    rmdir(folder);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        spectra_are_those_of_torchaudio,
        decibels_of_nan_are_nan,
        wrong_options_and_sounds_are_errors,
        flac_has_the_samples_of_wav,
        ogg_is_decoded,
        damaged_sounds_are_errors,
        NULL,
    };

    return suite_run("spectra", tests);
}

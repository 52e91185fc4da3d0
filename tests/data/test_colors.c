/* SPDX-License-Identifier: MIT
 *
 * Transforms of colors and positions, compared with torchvision (colors.h), and transforms of whole
 * batches: MixUp, CutMix. */
#include "tests/base/suite.h"

#include <math.h>

#include "colors.h"

enum { PIXELS = 3 * COLOR_HEIGHT * COLOR_WIDTH };

/* ---- one image ------------------------------------------------------------------------------- */

static tn_dataset *one_image(bool floats)
{
    TN_SCOPE;
    uint8_t bytes[PIXELS];
    tn_tensor *x;

    for (int i = 0; i < PIXELS; i++)
        bytes[i] = (uint8_t)((i * 37 + i * i / 7 * 11) % 256);
    x = tn_tensor_from(bytes, TN_U8, TN_SHAPE(1, 3, COLOR_HEIGHT, COLOR_WIDTH));
    if (floats)
        x = tn_mul_scalar(tn_cast(x, TN_F32), 1 / 255.0);
    return tn_dataset_of_tensors(&x, 1);
}

/* The image after a transform, in the present scope; NULL on failure. */
static tn_tensor *transformed(bool floats, const char *text, uint64_t seed)
{
    tn_dataset *plain = one_image(floats), *dataset = tn_dataset_transform(plain, text);
    tn_pack *pack = tn_pack_new();
    tn_tensor *image = NULL;

    if (dataset != NULL && tn_dataset_get(dataset, 0, seed, 0, pack) == TN_OK)
        image = tn_copy(tn_pack_tensor(pack, 0));
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    tn_dataset_drop(plain);
    return image;
}

/* Positions are computed in float32, so that with "nearest" a few pixels may be copied from the
 * neighbour of torchvision's pixel. */
START_TEST(images_are_those_of_torchvision)
{
    for (size_t i = 0; i < sizeof colors / sizeof *colors; i++) {
        TN_SCOPE;
        const struct color *c = &colors[i];
        bool moves = strstr(c->spec, "nearest") != NULL;
        tn_tensor *x = transformed(false, c->spec, 1);
        int64_t count = c->channels * c->height * c->width, differ = 0;
        const uint8_t *got;

        ck_assert_msg(x != NULL, "%s: %s", c->spec, tn_error_text());
        ck_assert_int_eq(tn_tensor_dtype(x), TN_U8);
        ck_assert_int_eq(tn_tensor_size(x, 0), c->channels);
        ck_assert_int_eq(tn_tensor_size(x, 1), c->height);
        ck_assert_int_eq(tn_tensor_size(x, 2), c->width);
        got = tn_tensor_data(x);
        for (int64_t k = 0; k < count; k++) {
            int difference = got[k] - c->values[k];

            differ += difference < -1 || difference > 1;
            ck_assert_msg(moves || (difference >= -1 && difference <= 1),
                          "%s: %d is %d, torchvision has %d", c->spec, (int)k, got[k],
                          c->values[k]);
        }
        ck_assert_msg(differ * 100 <= count, "%s: %d of %d differ", c->spec, (int)differ,
                      (int)count);
    }
}
END_TEST

/* Images of float32 have the results of uint8, up to 2 of 255 steps, except where "nearest" copies
 * another pixel. */
START_TEST(floats_are_near_the_bytes)
{
    for (size_t i = 0; i < sizeof colors / sizeof *colors; i++) {
        TN_SCOPE;
        const struct color *c = &colors[i];
        tn_tensor *x = strstr(c->spec, "fill=7") == NULL ? transformed(true, c->spec, 1) : NULL;

        if (strstr(c->spec, "fill=7") != NULL)
            continue;
        ck_assert_msg(x != NULL, "%s: %s", c->spec, tn_error_text());
        for (int64_t k = 0; k < tn_tensor_numel(x); k++) {
            double off = (double)((const float *)tn_tensor_data(x))[k] * 255 - c->values[k];

            ck_assert_msg(fabs(off) <= 2 || strstr(c->spec, "nearest") != NULL, "%s: %d off by %g",
                          c->spec, (int)k, off);
        }
    }
}
END_TEST

START_TEST(random_changes_depend_on_the_seed_alone)
{
    static const char *const specs[] = { "ColorJitter(0.4, 0.4, 0.4, 0.1)", "RandomRotation(30)",
                                         "RandomAffine(10, translate=(0.2, 0.2), scale=(0.8, 1.2))",
                                         "GaussianNoise()", "GaussianBlur(3)" };

    for (int s = 0; s < 5; s++) {
        uint8_t first[PIXELS];
        int changed = 0;

        for (uint64_t seed = 0; seed < 20; seed++) {
            TN_SCOPE;
            tn_tensor *x = transformed(false, specs[s], seed);

            ck_assert_msg(x != NULL, "%s: %s", specs[s], tn_error_text());
            ck_assert_mem_eq(tn_tensor_data(x), tn_tensor_data(transformed(false, specs[s], seed)),
                             PIXELS);
            if (seed == 0)
                memcpy(first, tn_tensor_data(x), PIXELS);
            changed += memcmp(first, tn_tensor_data(x), PIXELS) != 0;
        }
        ck_assert_msg(changed >= 15, "%s: %d of 20 differ from the first", specs[s], changed);
    }
}
END_TEST

/* The order is random: brightness before contrast and after it give two images. */
START_TEST(the_order_of_jitter_is_random)
{
    TN_SCOPE;
    const char *spec = "ColorJitter(brightness=(1.7, 1.7), contrast=(0.6, 0.6))";
    tn_tensor *orders[2] = {
        transformed(false, "[ColorJitter(brightness=(1.7, 1.7)), ColorJitter(contrast=(0.6, 0.6))]",
                    1),
        transformed(false, "[ColorJitter(contrast=(0.6, 0.6)), ColorJitter(brightness=(1.7, 1.7))]",
                    1)
    };
    int seen[2] = { 0, 0 };

    for (uint64_t seed = 0; seed < 60; seed++) {
        tn_tensor *x = transformed(false, spec, seed);
        bool one = memcmp(tn_tensor_data(x), tn_tensor_data(orders[0]), PIXELS) == 0;
        bool other = memcmp(tn_tensor_data(x), tn_tensor_data(orders[1]), PIXELS) == 0;

        ck_assert(one != other);
        seen[other]++;
    }
    ck_assert_msg(seen[0] > 15 && seen[1] > 15, "%d and %d of 60", seen[0], seen[1]);
}
END_TEST

START_TEST(noise_has_its_mean_and_deviation)
{
    TN_SCOPE;
    tn_tensor *plain = transformed(true, "Pad(0)", 1), *x;
    double sum = 0, squares = 0, count = 0;

    for (uint64_t seed = 0; seed < 40; seed++) {
        x = transformed(true, "GaussianNoise(mean=0.2, sigma=0.5, clip=False)", seed);
        for (int i = 0; i < PIXELS; i++, count++) {
            double off = (double)((float *)tn_tensor_data(x))[i] -
                         (double)((float *)tn_tensor_data(plain))[i];

            sum += off;
            squares += off * off;
        }
    }
    sum /= count;
    squares = sqrt(squares / count - sum * sum);
    ck_assert_msg(fabs(sum - 0.2) < 0.02 && fabs(squares - 0.5) < 0.02, "%g and %g", sum, squares);
    x = transformed(true, "GaussianNoise(sigma=0.5)", 1);
    for (int i = 0; i < PIXELS; i++)
        ck_assert(((float *)tn_tensor_data(x))[i] >= 0 && ((float *)tn_tensor_data(x))[i] <= 1);
}
END_TEST

/* ---- batches --------------------------------------------------------------------------------- */

enum { SAMPLES = 7, CLASSES = 3, HEIGHT = 6, WIDTH = 5, EACH = 2 * HEIGHT * WIDTH };

/* Sample i has the values i * 1000 + k and the class i % 3. */
static tn_dataset *samples(tn_dtype dtype)
{
    TN_SCOPE;
    float values[SAMPLES * EACH];
    int64_t labels[SAMPLES];
    tn_tensor *tensors[2];

    for (int i = 0; i < SAMPLES * EACH; i++)
        values[i] = (float)(i / EACH * 1000 + i % EACH);
    for (int i = 0; i < SAMPLES; i++)
        labels[i] = i % CLASSES;
    tensors[0] = tn_tensor_from(values, TN_F32, TN_SHAPE(SAMPLES, 2, HEIGHT, WIDTH));
    tensors[0] = tn_cast(tensors[0], dtype);
    tensors[1] = tn_tensor_from(labels, TN_I64, TN_SHAPE(SAMPLES));
    return tn_dataset_of_tensors(tensors, 2);
}

static tn_loader *loader_of(const char *options)
{
    tn_dataset *dataset = samples(TN_F32);
    tn_loader *loader = tn_loader_parse(dataset, options);

    tn_dataset_drop(dataset);
    ck_assert_msg(loader != NULL, "%s", tn_error_text());
    return loader;
}

/* Checks the labels of a mixed batch of the samples from `first` on. Returns the weight with which
 * each sample is in its own mix. */
static double share_of(tn_pack *batch, int64_t first)
{
    tn_tensor *labels = tn_pack_tensor(batch, 1);
    int64_t n = tn_tensor_size(labels, 0);
    const float *at = tn_tensor_data(labels);
    double lam = n > 1 ? (double)at[first % CLASSES] : 1;

    ck_assert_int_eq(tn_tensor_dtype(labels), TN_F32);
    ck_assert_int_eq(tn_tensor_size(labels, 1), CLASSES);
    for (int64_t i = 0; i < n; i++) {
        double expected[CLASSES] = { 0 };

        expected[(first + i) % CLASSES] += lam;
        expected[(first + (i > 0 ? i - 1 : n - 1)) % CLASSES] += 1 - lam;
        for (int k = 0; k < CLASSES; k++)
            ck_assert_msg(fabs((double)at[i * CLASSES + k] - expected[k]) < 1e-6,
                          "%d, class %d: %g, expected %g", (int)i, k, (double)at[i * CLASSES + k],
                          expected[k]);
    }
    return lam;
}

START_TEST(mix_up_mixes_images_and_labels)
{
    tn_loader *loader = loader_of("batch_size=3, seed=5, batch_transform=MixUp(num_classes=3)");
    double smallest = 1, largest = 0;

    for (int epoch = 0; epoch < 20; epoch++)
        for (int64_t first = 0; first < SAMPLES; first += 3) {
            tn_pack *batch = tn_loader_next(loader);
            int64_t n = tn_tensor_size(tn_pack_tensor(batch, 0), 0);
            const float *x = tn_tensor_data(tn_pack_tensor(batch, 0));
            double lam = share_of(batch, first);

            for (int64_t i = 0; i < n * EACH; i++) {
                int64_t own = i / EACH, other = own > 0 ? own - 1 : n - 1;
                double expected = lam * (double)((first + own) * 1000 + i % EACH) +
                                  (1 - lam) * (double)((first + other) * 1000 + i % EACH);

                ck_assert_msg(fabs((double)x[i] - expected) < 0.01, "%d: %g, expected %g", (int)i,
                              (double)x[i], expected);
            }
            if (n > 1) {
                smallest = lam < smallest ? lam : smallest;
                largest = lam > largest ? lam : largest;
            }
            if (first + 3 >= SAMPLES)
                ck_assert_ptr_null(tn_loader_next(loader));
        }
    ck_assert_msg(smallest < 0.2 && largest > 0.8, "%g to %g", smallest, largest);
    ck_assert(!tn_failed());
    tn_loader_drop(loader);
}
END_TEST

START_TEST(cut_mix_pastes_one_box)
{
    tn_loader *loader = loader_of("batch_size=2, drop_last=True, seed=5, "
                                  "batch_transform='CutMix(num_classes=3)'");
    int pasted = 0;

    for (int epoch = 0; epoch < 20; epoch++) {
        for (int64_t first = 0; first + 2 <= SAMPLES; first += 2) {
            tn_pack *batch = tn_loader_next(loader);
            const float *x = tn_tensor_data(tn_pack_tensor(batch, 0));
            double lam = share_of(batch, first);
            int top = HEIGHT, left = WIDTH, bottom = -1, right = -1, area = 0;

            for (int i = 0; i < 2 * EACH; i++) {
                int own = i / EACH, row = i % (HEIGHT * WIDTH) / WIDTH, column = i % WIDTH;
                bool mixed = x[i] == (float)((first + 1 - own) * 1000 + i % EACH);

                ck_assert(mixed || x[i] == (float)((first + own) * 1000 + i % EACH));
                if (!mixed)
                    continue;
                area++;
                top = row < top ? row : top;
                bottom = row > bottom ? row : bottom;
                left = column < left ? column : left;
                right = column > right ? column : right;
            }
            if (area > 0)
                ck_assert_int_eq(area, 4 * (bottom - top + 1) * (right - left + 1));
            ck_assert(fabs(lam - (1 - area / 4.0 / (HEIGHT * WIDTH))) < 1e-6);
            pasted += area > 0;
        }
        ck_assert_ptr_null(tn_loader_next(loader));
    }
    ck_assert_msg(pasted > 30, "%d of 60", pasted);
    ck_assert(!tn_failed());
    tn_loader_drop(loader);
}
END_TEST

/* Checks that two loaders return the same batches, from here to the end of the next epoch. */
static void go_on_equally(tn_loader *a, tn_loader *b)
{
    for (int i = 0; i < 8; i++) {
        tn_pack *one = tn_loader_next(a), *other = tn_loader_next(b);

        ck_assert((one == NULL) == (other == NULL));
        for (int64_t k = 0; k < 2 && one != NULL; k++) {
            tn_tensor *x = tn_pack_tensor(one, k), *y = tn_pack_tensor(other, k);

            ck_assert_int_eq(tn_tensor_numel(x), tn_tensor_numel(y));
            ck_assert_mem_eq(tn_tensor_data(x), tn_tensor_data(y), 4 * (size_t)tn_tensor_numel(x));
        }
    }
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
}

START_TEST(mixed_batches_do_not_depend_on_threads_and_go_on)
{
    static const char rest[] = "batch_size=2, shuffle=True, seed=9, "
                               "batch_transform=[MixUp(num_classes=3), CutMix()]";
    char text[256], state[512];
    tn_loader *plain = loader_of(rest), *threads;

    for (int workers = 1; workers < 4; workers++) {
        tn_loader_drop(plain);
        plain = loader_of(rest);
        snprintf(text, sizeof text, "workers=%d, %s", workers, rest);
        threads = loader_of(text);
        go_on_equally(plain, threads);
        tn_loader_drop(threads);
    }
    tn_loader_drop(plain);
    plain = loader_of(rest);
    for (int i = 0; i < 7; i++)
        (void)tn_loader_next(plain);
    tn_loader_state_text(plain, state, sizeof state);
    threads = loader_of(text);
    ck_assert_int_eq(tn_loader_set_state(threads, state), TN_OK);
    go_on_equally(plain, threads);
    tn_loader_drop(threads);
    tn_loader_drop(plain);
}
END_TEST

static void refused(tn_dtype dtype, const char *options, const char *words)
{
    tn_dataset *dataset = samples(dtype);
    tn_loader *loader = tn_loader_parse(dataset, options);

    if (loader != NULL)
        ck_assert_ptr_null(tn_loader_next(loader));
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "%s: \"%s\" is not in \"%s\"", options,
                  words, tn_error_text());
    tn_error_clear();
    if (loader != NULL) { /* the batch fails again, at the same place */
        ck_assert_ptr_null(tn_loader_next(loader));
        ck_assert_int_eq(tn_loader_position(loader), 0);
        tn_error_clear();
    }
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
}

START_TEST(wrong_uses_are_refused)
{
    static const char *const wrong[][2] = {
        { "ColorJitter(brightness=-1)", "brightness: wrong" },
        { "ColorJitter(contrast=(2, 1))", "contrast: wrong" },
        { "ColorJitter(saturation=(1, 2, 3))", "saturation: wrong" },
        { "ColorJitter(hue=0.6)", "hue: wrong" },
        { "Grayscale(2)", "num_output_channels: wrong, got 2" },
        { "GaussianBlur(4)", "kernel_size: wrong" },
        { "GaussianBlur(3, sigma=0)", "sigma: no range" },
        { "GaussianBlur(31)", "too large for an image of 11 x 13" },
        { "GaussianNoise(sigma=-1)", "mean or sigma: out of range" },
        { "RandomRotation(-5)", "degrees: no range" },
        { "RandomRotation(5, center=3)", "center: wrong" },
        { "RandomRotation(5, center=(nan, 2))",
          "center: out of range, got (nan, 2.0); expected numbers from -16777216 to 16777216" },
        { "RandomRotation(5, center=(2, inf), expand=True)",
          "center: out of range, got (2.0, inf)" },
        { "RandomRotation(5, center=(1e9, 2))", "center: out of range, got (1000000000.0, 2.0)" },
        { "RandomRotation(5, fill=nan)", "fill: out of range, got nan" },
        { "RandomAffine(5, center=(1e300, 2))", "center: out of range, got (1e+300, 2.0)" },
        { "RandomAffine(5, center=(2, -inf))", "center: out of range, got (2.0, -inf)" },
        { "RandomAffine(5, fill=1e300)", "fill: out of range, got 1e+300" },
        { "RandomRotation(5, interpolation='bicubic')", "interpolation: unknown, got \"bicubic\"" },
        { "RandomAffine(5, translate=(2, 0))", "translate: wrong" },
        { "RandomAffine(5, scale=(0, 1))", "scale: no range" },
        { "RandomAffine(5, shear=(1, 2, 3))", "shear: no range" },
        { "MixUp(num_classes=3)", "changes whole batches" },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        TN_SCOPE;
        ck_assert_msg(transformed(false, wrong[i][0], 1) == NULL, "%s", wrong[i][0]);
        ck_assert_msg(strstr(tn_error_text(), wrong[i][1]) != NULL, "%s: \"%s\" is not in \"%s\"",
                      wrong[i][0], wrong[i][1], tn_error_text());
        tn_error_clear();
    }
    refused(TN_F32, "batch_transform=MixUp()", "num_classes: None, but the dataset does not say");
    refused(
        TN_F32, "batch_transform=MixUp(num_classes=2), batch_size=3",
        "loader: batch 0: transform MixUp: label of sample 2 of the batch: out of range, got 2");
    refused(TN_F32, "batch_transform=MixUp(alpha=0)", "alpha: out of range");
    refused(TN_F32, "batch_transform=ToFloat()", "changes samples, not batches");
    refused(TN_F32, "batch_transform=[MixUp(num_classes=3), MixUp(num_classes=4)]",
            "num_classes: wrong number, got 4, but the labels have 3");
    refused(TN_U8, "batch_transform=MixUp(num_classes=3), workers=2", "uint8; expected float32");
    refused(TN_F32, "batch_transform=3", "transform: wrong kind, got int");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        images_are_those_of_torchvision,
        floats_are_near_the_bytes,
        random_changes_depend_on_the_seed_alone,
        the_order_of_jitter_is_random,
        noise_has_its_mean_and_deviation,
        mix_up_mixes_images_and_labels,
        cut_mix_pastes_one_box,
        mixed_batches_do_not_depend_on_threads_and_go_on,
        wrong_uses_are_refused,
        NULL,
    };
    return suite_run("transforms of colors and batches", tests);
}

/* SPDX-License-Identifier: MIT
 *
 * Resize of tensors in all modes, with and without antialias, compared with torchvision
 * (resized.h); RandomResizedCrop, compared with Resize of the part. `make data-pictures` compares
 * 2,000 random pictures. */
#include "tests/base/suite.h"

#include <math.h>

#include "resized.h"

/* A picture of one channel, as make_resized.py has it. */
static tn_tensor *picture(const int64_t *size)
{
    uint8_t values[512];

    ck_assert_int_le(size[0] * size[1], 512);
    for (int64_t i = 0; i < size[0] * size[1]; i++)
        values[i] = (uint8_t)(i * 37 + i * i % 251);
    return tn_tensor_from(values, TN_U8, TN_SHAPE(1, 1, size[0], size[1]));
}

/* The image x [1, C, H, W] after the transform, in the present scope. */
static tn_tensor *transformed(tn_tensor *x, const char *text, uint64_t seed)
{
    tn_dataset *plain = tn_dataset_of_tensors(&x, 1), *dataset = tn_dataset_transform(plain, text);
    tn_pack *pack = tn_pack_new();
    tn_tensor *image = NULL;

    if (dataset != NULL && tn_dataset_get(dataset, 0, seed, 0, pack) == TN_OK)
        image = tn_copy(tn_pack_tensor(pack, 0));
    ck_assert_msg(image != NULL, "%s: %s", text, tn_error_text());
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    tn_dataset_drop(plain);
    return image;
}

START_TEST(every_mode_gives_the_pixels_of_torchvision)
{
    for (size_t i = 0; i < sizeof resized / sizeof *resized; i++) {
        TN_SCOPE;
        const struct resized *row = &resized[i];
        tn_tensor *x = transformed(picture(row->from), row->spec, 1);

        ck_assert_int_eq(tn_tensor_dtype(x), TN_U8);
        ck_assert_int_eq(tn_tensor_size(x, 1), row->to[0]);
        ck_assert_int_eq(tn_tensor_size(x, 2), row->to[1]);
        for (int64_t k = 0; k < tn_tensor_numel(x); k++) {
            int got = ((uint8_t *)tn_tensor_data(x))[k];

            ck_assert_msg(got == row->values[k], "%s of %dx%d: pixel %d is %d, torchvision has %d",
                          row->spec, (int)row->from[0], (int)row->from[1], (int)k, got,
                          row->values[k]);
        }
    }
}
END_TEST

/* tests/oracle compares the operator with PyTorch. */
START_TEST(floats_are_those_of_the_operator_interpolate)
{
    static const char *const modes[] = { "nearest", "bilinear", "bicubic" };

    for (size_t i = 0; i < 3 * sizeof resized / sizeof *resized; i++) {
        TN_SCOPE;
        const struct resized *row = &resized[i / 3];
        tn_tensor *from = tn_cast(picture(row->from), TN_F32), *x, *y;
        char text[128];

        snprintf(text, sizeof text, "Resize((%d, %d), interpolation='%s', antialias=False)",
                 (int)row->to[0], (int)row->to[1], modes[i % 3]);
        x = transformed(from, text, 1);
        y = tn_interpolate(from, TN_INTS(row->to[0], row->to[1]), modes[i % 3]);
        ck_assert_msg(y != NULL, "%s", tn_error_text());
        for (int64_t k = 0; k < tn_tensor_numel(x); k++)
            ck_assert_msg(
                fabsf(((float *)tn_tensor_data(x))[k] - ((float *)tn_tensor_data(y))[k]) < 1e-3F,
                "%s of %dx%d: pixel %d", text, (int)row->from[0], (int)row->from[1], (int)k);
    }
}
END_TEST

/* With one scale and one ratio the part has one size; only its place is random. */
START_TEST(a_random_part_is_resized_as_if_nothing_were_around_it)
{
    static const char *const modes[] = { "'nearest'", "'bilinear'", "'bicubic'",
                                         "'bilinear', antialias=False",
                                         "'bicubic', antialias=False" };
    const int64_t size[2] = { 12, 16 };

    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
        for (uint64_t seed = 0; seed < 30; seed++) {
            TN_SCOPE;
            tn_tensor *x = picture(size), *part;
            char text[256];
            bool found = false;

            snprintf(text, sizeof text,
                     "RandomResizedCrop((5, 11), scale=(0.25, 0.25), ratio=(1.3333333333333333, "
                     "1.3333333333333333), interpolation=%s)",
                     modes[m]);
            part = transformed(x, text, seed);
            snprintf(text, sizeof text, "Resize((5, 11), interpolation=%s)", modes[m]);
            for (int64_t at = 0; at < 7 * 9 && !found; at++) {
                tn_tensor *piece = tn_narrow(tn_narrow(x, 2, at / 9, 6), 3, at % 9, 8);

                found = memcmp(tn_tensor_data(part),
                               tn_tensor_data(transformed(tn_copy(piece), text, 1)), 55) == 0;
            }
            ck_assert_msg(found, "%s, seed %d: no part of 6x8 gives this", modes[m], (int)seed);
        }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { every_mode_gives_the_pixels_of_torchvision,
                                   floats_are_those_of_the_operator_interpolate,
                                   a_random_part_is_resized_as_if_nothing_were_around_it, NULL };

    return suite_run("resized pictures", tests);
}

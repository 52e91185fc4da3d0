/* SPDX-License-Identifier: MIT
 *
 * The transforms of plugins/data: values and options. Results are compared with torchvision's
 * (transforms.h). */
#include "tests/base/suite.h"

#include <math.h>

#include "transforms.h"

static tn_dataset *one_image(tn_dtype dtype)
{
    TN_SCOPE;
    uint8_t bytes[24];
    int64_t label = 5;
    tn_tensor *tensors[2];

    for (int i = 0; i < 24; i++)
        bytes[i] = (uint8_t)i;
    tensors[0] = tn_tensor_from(bytes, TN_U8, TN_SHAPE(1, 2, 3, 4));
    if (dtype != TN_U8)
        tensors[0] = tn_cast(tensors[0], dtype);
    tensors[1] = tn_tensor_from(&label, TN_I64, TN_SHAPE(1));
    return tn_dataset_of_tensors(tensors, 2);
}

/* The image after the transforms, in the present scope. */
static tn_tensor *transformed(tn_dtype dtype, const char *text, uint64_t seed)
{
    tn_dataset *plain = one_image(dtype), *dataset = tn_dataset_transform(plain, text);
    tn_pack *pack = tn_pack_new();
    tn_tensor *image = NULL;

    if (dataset != NULL && tn_dataset_get(dataset, 0, seed, 0, pack) == TN_OK) {
        ck_assert_int_eq(tn_pack_count(pack), 2);
        image = tn_copy(tn_pack_tensor(pack, 0));
    }
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    tn_dataset_drop(plain);
    return image;
}

START_TEST(transforms_give_the_pixels_of_torchvision)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TN_SCOPE;
        const struct row *row = &rows[i];
        tn_tensor *x = transformed(TN_U8, row->spec, 1);
        tn_tensor *f = transformed(TN_F32, row->spec, 1);

        ck_assert_msg(x != NULL && f != NULL, "%s: %s", row->spec, tn_error_text());
        ck_assert_int_eq(tn_tensor_dtype(x), TN_U8);
        ck_assert_int_eq(tn_tensor_dtype(f), TN_F32);
        ck_assert_int_eq(tn_tensor_size(x, 1), row->height);
        ck_assert_int_eq(tn_tensor_size(x, 2), row->width);
        ck_assert_int_eq(tn_tensor_numel(f), tn_tensor_numel(x));
        for (int64_t k = 0; k < tn_tensor_numel(x); k++) {
            ck_assert_msg(((uint8_t *)tn_tensor_data(x))[k] == row->values[k], "%s: pixel %lld",
                          row->spec, (long long)k);
            ck_assert_msg(((float *)tn_tensor_data(f))[k] == row->values[k], "%s: float %lld",
                          row->spec, (long long)k);
        }
    }
}
END_TEST

START_TEST(normalized_images_are_those_of_torchvision)
{
    TN_SCOPE;
    tn_tensor *x = transformed(TN_U8, "[ToFloat(), Normalize(mean=(0.1, 0.2), std=(0.5, 0.25))]",
                               1);
    const float *values = tn_tensor_data(x);

    ck_assert_int_eq(tn_tensor_dtype(x), TN_F32);
    for (int i = 0; i < 24; i++)
        ck_assert_msg(fabsf(values[i] - normalized[i]) <= 1e-7f, "%d: %.9g is not %.9g", i,
                      (double)values[i], (double)normalized[i]);
}
END_TEST

/* A crop of 2 x 2 of the 3 x 4 image with a border of 1: each of the 4 * 5 positions occurs, and
 * its values are those of the image with the border. */
START_TEST(random_crops_occur_at_every_place)
{
    bool seen[4][5] = { { false } };
    int count = 0;

    for (uint64_t seed = 0; seed < 400; seed++) {
        TN_SCOPE;
        tn_tensor *x = transformed(TN_U8, "RandomCrop(2, padding=1, fill=99)", seed);
        const uint8_t *got = tn_tensor_data(x);
        int matches = 0;

        for (int top = -1; top <= 2; top++)
            for (int left = -1; left <= 3; left++) {
                bool equal = true;

                for (int k = 0; k < 8; k++) {
                    int c = k / 4, i = top + k / 2 % 2, j = left + k % 2;
                    bool in = i >= 0 && i < 3 && j >= 0 && j < 4;

                    equal &= got[k] == (in ? 12 * c + 4 * i + j : 99);
                }
                if (equal && !seen[top + 1][left + 1]) {
                    seen[top + 1][left + 1] = true;
                    count++;
                }
                matches += equal;
            }
        ck_assert_int_eq(matches, 1);
    }
    ck_assert_int_eq(count, 20);
}
END_TEST

START_TEST(random_transforms_depend_on_the_seed_alone)
{
    static const char *const specs[] = { "RandomHorizontalFlip()", "RandomVerticalFlip()",
                                         "RandomCrop(2)",
                                         "RandomErasing(value=200, scale=(0.2, 0.5))",
                                         "[RandomHorizontalFlip(), RandomHorizontalFlip()]" };

    for (int s = 0; s < 5; s++) {
        uint8_t first[24], got[24];
        int changed = 0;

        for (uint64_t seed = 0; seed < 50; seed++) {
            TN_SCOPE;
            size_t size = (size_t)tn_tensor_numel(transformed(TN_U8, specs[s], seed));

            memcpy(got, tn_tensor_data(transformed(TN_U8, specs[s], seed)), size);
            ck_assert_mem_eq(got, tn_tensor_data(transformed(TN_U8, specs[s], seed)), size);
            if (seed == 0)
                memcpy(first, got, size);
            changed += memcmp(first, got, size) != 0;
        }
        ck_assert_msg(changed >= 5 && changed < 50, "%s: %d of 50 differ from the first", specs[s],
                      changed);
    }
}
END_TEST

START_TEST(erasing_writes_one_rectangle)
{
    int erased = 0;

    for (uint64_t seed = 0; seed < 200; seed++) {
        TN_SCOPE;
        tn_tensor *x = transformed(TN_U8, "RandomErasing(p=0.7, value=200)", seed);
        const uint8_t *got = tn_tensor_data(x);
        int top = 3, left = 4, bottom = -1, right = -1, count = 0;

        for (int k = 0; k < 12; k++) {
            ck_assert(got[k] == k || got[k] == 200);
            ck_assert_int_eq(got[k] == 200, got[12 + k] == 200);
            if (got[k] != 200)
                continue;
            count++;
            top = k / 4 < top ? k / 4 : top;
            bottom = k / 4 > bottom ? k / 4 : bottom;
            left = k % 4 < left ? k % 4 : left;
            right = k % 4 > right ? k % 4 : right;
        }
        if (count == 0)
            continue;
        ck_assert_int_eq(count, (bottom - top + 1) * (right - left + 1));
        ck_assert_int_lt(count, 12);
        erased++;
    }
    ck_assert_msg(erased > 60 && erased < 180, "%d of 200", erased);
}
END_TEST

START_TEST(wrong_transforms_are_refused)
{
    static const struct {
        tn_dtype dtype;
        const char *spec, *words;
    } wrong[] = {
        { TN_U8, "CenterCrop(0)", "size: wrong" },
        { TN_U8, "CenterCrop((1, 2, 3))", "size: wrong" },
        { TN_U8, "RandomCrop(4)", "larger than the image with its border, got 4 x 4" },
        { TN_U8, "RandomCrop(2, padding=-1)", "padding: wrong" },
        { TN_U8, "RandomCrop(2, padding=(1, 2, 3))", "padding: wrong" },
        { TN_U8, "Pad(1, padding_mode='mirror')", "padding_mode: unknown, got \"mirror\"" },
        { TN_U8, "Pad(4, padding_mode='reflect')", "too large for mode reflect, got 4 rows" },
        { TN_U8, "RandomHorizontalFlip(p=1.5)", "p: out of range, got 1.5" },
        { TN_U8, "Normalize(mean=0.5, std=0.5)", "the tensor is uint8; expected float32" },
        { TN_F32, "Normalize(mean=0.5, std=0)", "std: number 0 is 0" },
        { TN_F32, "Normalize(mean=(1, 2, 3), std=1)", "mean: wrong count, got 3" },
        { TN_F64, "Normalize(mean=0, std=1)", "the tensor is float64; expected float32" },
        { TN_U8, "RandomErasing(scale=(0.5, 0.1))", "scale: no range" },
        { TN_U8, "RandomErasing(ratio=(0, 1))", "ratio: no range" },
        { TN_U8, "CenterCrp(2)", "CenterCrop" },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        TN_SCOPE;
        ck_assert_msg(transformed(wrong[i].dtype, wrong[i].spec, 1) == NULL, "%s", wrong[i].spec);
        ck_assert_msg(strstr(tn_error_text(), wrong[i].words) != NULL,
                      "%s: \"%s\" is not in \"%s\"", wrong[i].spec, wrong[i].words,
                      tn_error_text());
        tn_error_clear();
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        transforms_give_the_pixels_of_torchvision,
        normalized_images_are_those_of_torchvision,
        random_crops_occur_at_every_place,
        random_transforms_depend_on_the_seed_alone,
        erasing_writes_one_rectangle,
        wrong_transforms_are_refused,
        NULL,
    };
    return suite_run("built-in transforms", tests);
}

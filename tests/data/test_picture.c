/* SPDX-License-Identifier: MIT
 *
 * <tenon/picture.h>: the files that it writes, read by the dataset ImageFiles, that is by libpng,
 * which also checks their checksums. */
#include "tests/base/suite.h"

#include <tenon/picture.h>
#include <unistd.h>

static const char path[] = "test_picture.png";

/* Reads the file; [3, H, W]. NULL if this build has no decoder. */
static tn_tensor *read_back(tn_pack *pack)
{
    tn_dataset *files = tn_dataset_new("ImageFiles(%q)", path);
    tn_status status = tn_dataset_get(files, 0, 0, 0, pack);

    tn_dataset_drop(files);
    if (status != TN_OK && tn_error_code() == TN_ERR_NOT_IMPLEMENTED) {
        puts("SKIP: this build reads no PNG");
        tn_error_clear();
        return NULL;
    }
    ck_assert_msg(status == TN_OK, "%s", tn_error_text());
    unlink(path);
    return tn_pack_tensor(pack, 0);
}

START_TEST(bytes_come_back)
{
    static const int64_t sizes[][3] = { { 1, 2, 3 }, { 3, 5, 4 }, { 1, 300, 250 }, { 3, 1, 1 } };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        TN_SCOPE;
        const int64_t c = sizes[i][0], h = sizes[i][1], w = sizes[i][2];
        tn_pack *pack = tn_pack_new();
        tn_tensor *x = tn_tensor_empty(TN_SHAPE(c, h, w), TN_U8, NULL), *y;
        uint8_t *wanted = tn_tensor_data(x), *got;

        for (int64_t k = 0; k < c * h * w; k++)
            wanted[k] = (uint8_t)(k * 7 + k / 256);
        ck_assert_int_eq(tn_picture_save(x, path, 1), TN_OK);
        y = read_back(pack);
        if (y != NULL) {
            got = tn_tensor_data(y);
            ck_assert_int_eq(tn_tensor_size(y, 1), h);
            ck_assert_int_eq(tn_tensor_size(y, 2), w);
            for (int64_t k = 0; k < 3 * h * w; k++)
                ck_assert_int_eq(got[k], wanted[k % (c * h * w)]);
        }
        tn_pack_drop(pack);
    }
}
END_TEST

START_TEST(numbers_are_rounded_and_limited)
{
    static const float numbers[2][3] = { { 0, 0.5f, 1 }, { -3, 7, 0.25f } };
    static const uint8_t wanted[6] = { 0, 128, 255, 0, 255, 64 };
    tn_dtype dtypes[] = { TN_F32, TN_F64, TN_F16 };

    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        tn_pack *pack = tn_pack_new();
        tn_tensor *x = tn_tensor_from(numbers, TN_F32, TN_SHAPE(2, 3)), *y;

        x = tn_cast(x, dtypes[i]);
        tn_tensor_set_requires_grad(x, true); /* nothing is recorded */
        ck_assert_int_eq(tn_picture_save(x, path, 1), TN_OK);
        y = read_back(pack);
        if (y != NULL)
            ck_assert_mem_eq(tn_tensor_data(y), wanted, 6);
        tn_pack_drop(pack);
    }
}
END_TEST

/* Three pictures of 1 x 2 in rows of two: 2 pixels around each, black where none is. */
START_TEST(several_pictures_are_a_grid)
{
    static const uint8_t bytes[3][1][1][2] = { { { { 1, 2 } } },
                                               { { { 3, 4 } } },
                                               { { { 5, 6 } } } };
    TN_SCOPE;
    tn_pack *pack = tn_pack_new();
    tn_tensor *x = tn_tensor_from(bytes, TN_U8, TN_SHAPE(3, 1, 1, 2)), *y;

    ck_assert_int_eq(tn_picture_save(x, path, 2), TN_OK);
    y = read_back(pack);
    if (y != NULL) {
        const uint8_t *got = tn_tensor_data(y);
        ck_assert_int_eq(tn_tensor_size(y, 1), 8);
        ck_assert_int_eq(tn_tensor_size(y, 2), 10);
        for (int k = 0; k < 80; k++) {
            int row = k / 10, column = k % 10, number = 0;
            if (row == 2 && (column / 2 == 1 || column / 2 == 3))
                number = column / 2 + column % 2;
            else if (row == 5 && column / 2 == 1)
                number = 5 + column % 2;
            ck_assert_msg(got[k] == number, "row %d, column %d is %d, not %d", row, column, got[k],
                          number);
        }
    }
    tn_pack_drop(pack);
}
END_TEST

START_TEST(what_is_no_picture_is_refused)
{
    TN_SCOPE;
    tn_tensor *one = tn_ones(TN_SHAPE(2, 2));

    ck_assert_int_eq(tn_picture_save(tn_ones(TN_SHAPE(3)), path, 1), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "got 1 dimensions and 3 elements; expected [H, W], [C, H, W]");
    ck_assert_int_eq(tn_picture_save(tn_ones(TN_SHAPE(2, 4, 4)), path, 1), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "with 1 or 3 channels");
    ck_assert_int_eq(tn_picture_save(tn_ones(TN_SHAPE(1, 1, 1, 2, 2)), path, 1), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "got 5 dimensions");
    ck_assert_int_eq(tn_picture_save(tn_ones(TN_SHAPE(0, 2)), path, 1), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "0 elements");
    ck_assert_int_eq(tn_picture_save(one, path, 0), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "columns: wrong, got 0; expected 1 or more");
    ck_assert_int_eq(tn_picture_save(TN_NONE, path, 1), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "it is TN_NONE");
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_assert_int_eq(tn_picture_save(one, "none/of/this.png", 1), TN_ERR_IO);
    expect_failure(TN_ERR_IO, "none/of/this.png: cannot write: No such file");
    if (access("/dev/full", W_OK) == 0) {
        ck_assert_int_eq(tn_picture_save(one, "/dev/full", 1), TN_ERR_IO);
        expect_failure(TN_ERR_IO, "/dev/full: cannot write: No space left");
    }
    ck_assert_int_eq(tn_picture_save(tn_mul(one, tn_ones(TN_SHAPE(3))), path, 1), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "mul: "); /* the failure of the operator */
    ck_assert(tn_grad_enabled());
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        bytes_come_back,
        numbers_are_rounded_and_limited,
        several_pictures_are_a_grid,
        what_is_no_picture_is_refused,
        NULL,
    };
    return suite_run("picture", tests);
}

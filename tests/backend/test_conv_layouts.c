/* SPDX-License-Identifier: MIT
 *
 * Convolutions on the CPU: images whose strides are zero, and the strides of results. */
#include "tests/libcheck.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

static tn_tensor *normal(tn_ints shape, tn_dtype dtype, uint64_t seed)
{
    return tn_philox_normal(tn_tensor_empty(shape, dtype, tn_device_find("cpu")), TN_NONE, 0, 1,
                            seed, 0);
}

/* The results of a kernel for `x` with its strides and for a contiguous copy of it. */
static void same_as_packed(const char *name, tn_tensor *x, tn_tensor *packed)
{
    double a[4096], b[4096];
    size_t n = (size_t)tn_tensor_numel(x) * sizeof *a;

    ck_assert_msg(x != NULL && packed != NULL, "%s: %s", name, tn_error_text());
    ck_assert_uint_le(n, sizeof a);
    ck_assert_int_eq(tn_tensor_copy_out(x, a, n), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(packed, b, n), TN_OK);
    for (size_t i = 0; i < n / sizeof *a; i++)
        ck_assert_msg(fabs(a[i] - b[i]) <= 1e-12, "%s: element %d is %.9g, of a packed copy %.9g",
                      name, (int)i, a[i], b[i]);
}

START_TEST(images_that_are_expanded_have_steps_of_zero)
{
    static const int64_t sizes[][4] = { { 1, 1, 1, 1 }, { 2, 1, 1, 1 }, { 1, 1, 5, 1 },
                                        { 1, 1, 1, 6 }, { 2, 3, 1, 1 }, { 1, 3, 1, 6 },
                                        { 2, 1, 5, 1 }, { 1, 1, 5, 6 } };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int64_t kernel = 1; kernel < 4; kernel++)
            for (int64_t channels = 1; channels < 4; channels += 2) {
                TN_SCOPE;
                tn_tensor *all = normal(TN_SHAPE(1024), TN_F64, 1);
                tn_tensor *image = tn_reshape(tn_narrow(all, 0, 0, 2 * (4 + kernel) * (5 + kernel)),
                                              TN_SHAPE(2, 1, 4 + kernel, 5 + kernel));
                tn_tensor *x, *dense, *w;

                x = tn_reshape(
                    tn_narrow(all, 0, 0, sizes[i][0] * sizes[i][1] * sizes[i][2] * sizes[i][3]),
                    (tn_ints){ sizes[i], 4 });
                x = tn_expand(x, TN_SHAPE(2, sizes[i][1] == 1 ? channels : 3, 5, 6));
                dense = tn_copy_(tn_tensor_empty(tn_tensor_shape(x), TN_F64, NULL), x);
                w = tn_reshape(tn_narrow(all, 0, 100, 2 * tn_tensor_size(x, 1) * kernel * kernel),
                               TN_SHAPE(2, tn_tensor_size(x, 1), kernel, kernel));
                same_as_packed("result", tn_convolution(x, w), tn_convolution(dense, w));
                /* x as the gradient of a result, whose channels are those of x */
                w = tn_transpose(w, 0, 1);
                same_as_packed(
                    "gradient of x",
                    tn_convolution_grad_input(x, w, TN_INTS(4 + kernel, 5 + kernel)),
                    tn_convolution_grad_input(dense, w, TN_INTS(4 + kernel, 5 + kernel)));
                same_as_packed("gradient of the weight",
                               tn_convolution_grad_weight(x, image, TN_INTS(kernel, kernel)),
                               tn_convolution_grad_weight(dense, image, TN_INTS(kernel, kernel)));
            }
}
END_TEST

/* On this device, the results of convolutions have the channels last for every layout of the input,
 * the operators after them keep this layout, and flattening gives row-major order. */
START_TEST(results_have_the_channels_last)
{
    TN_SCOPE;
    tn_tensor *x = normal(TN_SHAPE(2, 3, 8, 6), TN_F32, 1);
    tn_tensor *w = normal(TN_SHAPE(5, 3, 3, 3), TN_F32, 2);
    tn_tensor *turned = tn_transpose(tn_copy(tn_transpose(x, 1, 3)), 1, 3), *y, *z;

    y = tn_conv2d(x, w);
    z = tn_conv2d(turned, w);
    ck_assert_msg(y != NULL && z != NULL, "%s", tn_error_text());
    for (int d = 0; d < 4; d++) {
        const int64_t strides[] = { 5 * 6 * 4, 1, 5 * 4, 5 };

        ck_assert_int_eq(tn_tensor_strides(y).at[d], strides[d]);
        ck_assert_int_eq(tn_tensor_strides(z).at[d], strides[d]);
    }
    ck_assert_double_eq(tn_item(tn_sum(tn_abs(tn_sub(y, z)))), 0);
    ck_assert_ptr_null(tn_view_to(y, TN_INTS(2, -1)));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "stride [120, 1, 20, 5]"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "Use tn_reshape instead"));
    tn_error_clear();
    z = tn_reshape(y, TN_INTS(2, -1));
    ck_assert_double_eq(
        tn_item(tn_select(tn_select(z, 0, 1), 0, 25)),
        tn_item(tn_select(tn_select(tn_select(tn_select(y, 0, 1), 0, 1), 0, 0), 0, 1)));
    y = tn_max_pool2d(tn_relu(y), TN_INTS(2, 2));
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_strides(y).at[1], 1);
    z = tn_flatten(y, 1, -1);
    ck_assert_int_eq(tn_tensor_strides(z).at[1], 1);
    ck_assert_double_eq(
        tn_item(tn_select(tn_select(z, 0, 1), 0, 7)),
        tn_item(tn_select(tn_select(tn_select(tn_select(y, 0, 1), 0, 1), 0, 0), 0, 1)));
    y = tn_conv1d(tn_select(x, 3, 0), tn_select(w, 3, 0));
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_strides(y).at[1], 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layouts of convolutions");
    TCase *tcase = tcase_create("layouts of convolutions");
    SRunner *runner;
    int failed;

    setenv("TENON_PLUGINS", "!kernels-onednn", 1); /* it has a test of its own */
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, images_that_are_expanded_have_steps_of_zero);
    tcase_add_test(tcase, results_have_the_channels_last);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Sizes and options near 2^63. Tensors without elements, and those of the device meta, may have
 * such sizes; what would be larger than an int64 is refused, and never wraps around. */
#include <stdio.h>

#include "tests/op/suite.h"

static const int64_t huge = INT64_MAX - 2, half = (int64_t)1 << 62, root = (int64_t)1 << 32,
                     large = (int64_t)1 << 60;

static tn_tensor *empty(const int64_t *shape, int64_t ndim)
{
    tn_tensor *x = tn_tensor_empty((tn_ints){ shape, ndim }, TN_F32, tn_device_find("meta"));

    ck_assert_msg(x != NULL, "%s", tn_error_text());
    return x;
}
/* A tensor of the device meta. One size must be 0, or the product small. */
#define EMPTY(...)                                                                                 \
    empty((const int64_t[]){ __VA_ARGS__ },                                                        \
          (int64_t)(sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)))

static void refused(const tn_tensor *y, const char *words)
{
    char text[300] = "";

    if (y != NULL)
        tn_tensor_text((tn_tensor *)(uintptr_t)y, text, sizeof text);
    ck_assert_msg(y == NULL, "not refused (%s): %s", words, text);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "got \"%s\", not \"%s\"", tn_error_text(),
                  words);
    tn_error_clear();
}

START_TEST(a_result_whose_size_exceeds_an_int64_is_refused)
{
    TN_SCOPE;
    tn_tensor *pair[] = { EMPTY(0, half), EMPTY(0, half) };

    refused(tn_cat(pair, 2, 1), "too large");
    refused(tn_flatten(EMPTY(0, root, root), 1, 2), "too large");
    refused(tn_pad(EMPTY(0, huge), TN_INTS(5, 5)), "too large");
    refused(tn_diag_embed(EMPTY(0, huge), 7), "too large");
    refused(tn_pixel_unshuffle(EMPTY(0, half, 4, 4), 2), "too large");
    refused(tn_pixel_shuffle(EMPTY(0, 4, half, 4), 2), "too large");
    refused(tn_im2col(EMPTY(0, half, 4, 4), TN_INTS(2, 2)), "too large");
    refused(tn_im2col(EMPTY(0, 1, half, 4), TN_INTS(1, 1)), "too large");
    refused(tn_im2col(EMPTY(0, 1, huge, 4), TN_INTS(1, 1), TN_INTS(1), TN_INTS(4)),
            "padding: too large");
    refused(tn_conv1d(EMPTY(0, 1, huge), EMPTY(1, 1, 3), TN_NONE, TN_INTS(1), TN_INTS(4)),
            "padding: too large");
    refused(tn_max_pool1d(EMPTY(0, 1, huge), TN_INTS(8), TN_INTS(1), TN_INTS(4)),
            "padding: too large");
    refused(tn_im2col(EMPTY(0, 1, half, half), TN_INTS(1, 1)), "too large");
    refused(tn_stft(EMPTY(0, huge), TN_NONE, 8), "too large");
    refused(tn_conv_transpose1d(EMPTY(0, 1, half), EMPTY(1, 1, 3), TN_NONE, TN_INTS(4)),
            "too large");
    refused(tn_convolution_grad_input(EMPTY(0, 0, 2), EMPTY(0, half, 3), TN_INTS(4), TN_INTS(1),
                                      TN_INTS(0), TN_INTS(1), 4),
            "groups");
}
END_TEST

START_TEST(options_near_the_ends_of_an_int64_are_compared_without_overflow)
{
    TN_SCOPE;
    tn_tensor *x = VEC(1, 2, 3), *index;

    tn_error_clear();
    refused(tn_narrow_grad(x, TN_INTS(INT64_MIN + 1), 0, 0), "wrong shape");
    index = tn_tensor_full(TN_SHAPE(1, 1), 0.0, TN_I64, NULL);
    tn_add_scalar_(index, tn_scalar_int(half));
    refused(tn_embedding_sum(tn_reshape(x, TN_SHAPE(3, 1)), index), "index");
    refused(tn_convolution_grad_input(EMPTY(1, 4, 2), EMPTY(4, 2, 3), TN_INTS(4), TN_INTS(1),
                                      TN_INTS(0), TN_INTS(1), INT64_MAX),
            "groups");
}
END_TEST

START_TEST(the_states_of_a_sequence_of_any_length_never_wrap_around)
{
    TN_SCOPE;
    const int64_t lengths[] = { (int64_t)1 << 61, half };

    for (int i = 0; i < 2; i++) {
        tn_tensor *x = EMPTY(lengths[i], 0, 1), *h = EMPTY(0, 1), *w = EMPTY(1, 1), *y, *a, *b;
        tn_tensor *gates = EMPTY(4, 1), *gru = EMPTY(3, 1);

        ck_assert(tn_rnn_sequence(x, h, w, w, TN_NONE, TN_NONE, TN_NONE, &y, &a) != TN_OK);
        ck_assert(tn_gru_sequence(x, h, gru, gru, TN_NONE, TN_NONE, TN_NONE, &y, &a) != TN_OK);
        ck_assert(tn_lstm_sequence(x, h, h, gates, gates, TN_NONE, TN_NONE, TN_NONE, TN_NONE, &y,
                                   &a, &b) != TN_OK);
        tn_error_clear();
    }
}
END_TEST

START_TEST(a_correction_at_the_end_of_an_int64_is_computed)
{
    TN_SCOPE;
    tn_tensor *x = VEC(1, 2, 3), *f = tn_cast(VEC(1, 1, 1), TN_I64);

    HAS(tn_cov(x, f, TN_NONE, INT64_MIN), 2 / 0x1p63);
    HAS(tn_cov(x, TN_NONE, TN_NONE, INT64_MIN), 2 / 0x1p63);
}
END_TEST

START_TEST(a_large_size_that_fits_is_kept)
{
    TN_SCOPE;
    tn_tensor *y;

    tn_error_clear();
    y = tn_conv1d(EMPTY(0, 1, large), EMPTY(1, 1, 3), TN_NONE, TN_INTS(2), TN_INTS(0));
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_size(y, 2), (large - 3) / 2 + 1);
    y = tn_max_pool1d(EMPTY(0, 1, 2 * root), TN_INTS(3), TN_INTS(2), TN_INTS(0), TN_INTS(1), true);
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_size(y, 2), root);
    y = tn_flatten(EMPTY(0, root, root / 4), 1, 2);
    ck_assert_int_eq(tn_tensor_size(y, 1), half);
    y = tn_pad(EMPTY(0, large), TN_INTS(3, 4));
    ck_assert_int_eq(tn_tensor_size(y, 1), large + 7);
    y = tn_narrow_grad(EMPTY(0, 3), TN_INTS(0, large), 1, large - 3);
    ck_assert_int_eq(tn_tensor_size(y, 1), large);
}
END_TEST

START_TEST(an_empty_tensor_of_any_sizes_is_printed)
{
    TN_SCOPE;
    static const int64_t shape[] = { root, 0, root, root };
    char text[200];

    tn_tensor_text(tn_tensor_empty((tn_ints){ shape, 4 }, TN_F32, NULL), text, sizeof text);
    ck_assert_str_eq(text, "[]");
}
END_TEST

START_TEST(a_number_that_an_int64_does_not_hold_is_printed_as_a_float)
{
    static const char *const types[] = { "LPPool1d", "LPPool2d" };
    char text[200], expected[200];

    for (int i = 0; i < 2; i++) {
        tn_module *pool = tn_module_new("%s(1e19, 3)", types[i]);

        ck_assert_msg(pool != NULL, "%s", tn_error_text());
        snprintf(expected, sizeof expected,
                 "%s(norm_type=1e+19, kernel_size=3, stride=None, ceil_mode=False)", types[i]);
        tn_module_repr(pool, text, sizeof text);
        ck_assert_str_eq(text, expected);
        tn_module_drop(pool);
    }
}
END_TEST

START_TEST(an_optimizer_takes_as_many_steps_as_its_state_can_hold)
{
    TN_SCOPE;
    tn_error_clear();
    tn_tensor *x = LEAF(1, 2);
    tn_optimizer *adam = tn_optimizer_parse(&x, 1, "Adam(lr=0.1)");

    ck_assert_msg(adam != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_optimizer_set_steps(adam, 0, (int64_t)9e15 - 1), TN_OK);
    tn_backward(tn_sum(x));
    ck_assert_msg(tn_optimizer_step(adam) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_optimizer_steps(adam, 0), (int64_t)9e15);
    ck_assert_int_eq(tn_optimizer_set_steps(adam, 0, INT64_MAX), TN_ERR_VALUE);
    ck_assert_str_eq(tn_error_text(), "optimizer Adam: steps: out of range, got "
                                      "9223372036854775807; expected 0 to 9e15");
    tn_error_clear();
    tn_optimizer_drop(adam);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("large sizes");
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, a_result_whose_size_exceeds_an_int64_is_refused);
    tcase_add_test(tests, options_near_the_ends_of_an_int64_are_compared_without_overflow);
    tcase_add_test(tests, the_states_of_a_sequence_of_any_length_never_wrap_around);
    tcase_add_test(tests, a_correction_at_the_end_of_an_int64_is_computed);
    tcase_add_test(tests, a_large_size_that_fits_is_kept);
    tcase_add_test(tests, an_empty_tensor_of_any_sizes_is_printed);
    tcase_add_test(tests, a_number_that_an_int64_does_not_hold_is_printed_as_a_float);
    tcase_add_test(tests, an_optimizer_takes_as_many_steps_as_its_state_can_hold);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

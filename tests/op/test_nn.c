/* SPDX-License-Identifier: MIT
 *
 * Tests of operators of neural networks beside the comparison with PyTorch's numbers
 * (tests/oracle): running statistics, random numbers of dropout, values beyond the range of
 * float16, errors and their messages. tests/grad/test_conv_pool_norm.c has the second derivatives.
 */
#include "tests/op/suite.h"

START_TEST(running_moments_come_nearer_to_those_of_the_batch)
{
    TN_SCOPE;
    tn_tensor *x = tn_reshape(VEC(1, 2, 3, 10, 20, 30), TN_SHAPE(2, 3, 1));
    tn_tensor *mean = VEC(0, 0, 0), *var = VEC(1, 1, 1);
    tn_batch_norm_options o = TN_BATCH_NORM_OPTIONS;

    o.training = true;
    o.momentum = 0.25;
    with_grad(x);
    ck_assert_ptr_nonnull(tn_batch_norm(x, mean, var, TN_NONE, TN_NONE, o.training, o.momentum));
    HAS(mean, 0.25 * 5.5, 0.25 * 11, 0.25 * 16.5);
    /* (n - 1): 81 / 2 = 40.5, 162, 364.5 */
    HAS(var, 0.75 + 0.25 * 40.5, 0.75 + 0.25 * 162, 0.75 + 0.25 * 364.5);
    ck_assert(!tn_tensor_requires_grad(mean));
    o.training = false;
    ck_assert_ptr_nonnull(tn_batch_norm(x, mean, var, TN_NONE, TN_NONE, o.training, o.momentum));
    HAS(mean, 0.25 * 5.5, 0.25 * 11, 0.25 * 16.5);

    mean = VEC(0, 0, 0);
    var = VEC(1, 1, 1);
    x = tn_reshape(VEC(1, 3, 2, 2, 5, 9, 1, 5, 4, 4, 5, 5), TN_SHAPE(2, 3, 2));
    ck_assert_ptr_nonnull(tn_instance_norm(x, mean, var));
    HAS(mean, 0.1 * 2.5, 0.1 * 3, 0.1 * 6);
    HAS(var, 0.9 + 0.1 * (2 + 8) / 2, 0.9, 0.9 + 0.1 * (8 + 0) / 2);
    FINE();
}
END_TEST

START_TEST(dropout_keeps_the_mean_and_drops_the_share_that_was_asked_for)
{
    TN_SCOPE;
    tn_dropout_options o = TN_DROPOUT_OPTIONS;
    tn_tensor *ones = tn_tensor_full(TN_SHAPE(40000), 1, TN_F32, NULL), *y, *x;
    double dropped = 0;

    tn_random_seed(5);
    o.p = 0.3;
    y = tn_dropout(ones, o.p, o.training);
    for (int64_t i = 0; i < 40000; i++) {
        double value = at(tn_narrow(y, 0, i, 1), 0);

        ck_assert(value == 0 || fabs(value - 1 / 0.7) < 1e-6);
        dropped += value == 0;
        if (i == 400) /* the other elements are checked by sums: the loop is slow with sanitizers */
            break;
    }
    ck_assert_double_eq_tol(at(tn_mean(y), 0), 1.0, 0.02);
    ck_assert_double_eq_tol(at(tn_mean(tn_cast(tn_eq(y, VEC(0)), TN_F32)), 0), 0.3, 0.01);
    ck_assert_double_gt(dropped, 60); /* of 401: about 120, standard deviation 9 */
    ck_assert_double_lt(dropped, 180);

    /* Elements that forward has dropped are dropped in backward. */
    x = with_grad(tn_tensor_full(TN_SHAPE(64), 2, TN_F32, NULL));
    y = tn_dropout(x);
    tn_backward(tn_sum(y));
    ck_assert_double_eq(
        at(tn_amax(tn_abs(tn_sub(tn_mul_scalar(tn_tensor_grad(x), 2), tn_detach(y)))), 0), 0);

    o.training = false;
    ck_assert_double_eq(at(tn_sum(tn_dropout(ones, o.p, o.training)), 0), 40000);
    o.training = true;
    o.p = 1;
    ck_assert_double_eq(at(tn_sum(tn_dropout(ones, o.p, o.training)), 0), 0);
    o.p = 1.5;
    ck_assert_ptr_null(tn_dropout(ones, o.p, o.training));
    FAILED(TN_ERR_VALUE, "dropout: p: out of range, got 1.5");

    /* Whole channels. */
    y = tn_feature_dropout(tn_tensor_full(TN_SHAPE(20, 10, 3, 2), 1, TN_F32, NULL));
    y = tn_flatten(y, 2, -1);
    HAS(tn_amax(tn_abs(tn_sub(tn_narrow(y, 2, 0, 5), tn_narrow(y, 2, 1, 5)))), 0);
    ck_assert_double_eq_tol(at(tn_mean(y), 0), 1, 0.3);

    /* Mean and variance of a standard normal stay. */
    y = tn_alpha_dropout(tn_normal(tn_tensor_empty(TN_SHAPE(60000), TN_F32, NULL)), 0.2, true);
    ck_assert_double_eq_tol(at(tn_mean(y), 0), 0, 0.02);
    ck_assert_double_eq_tol(at(tn_var(y), 0), 1, 0.03);
    FINE();
}
END_TEST

START_TEST(gumbel_softmax_is_a_distribution_and_hard_ones_are_one_hot)
{
    TN_SCOPE;
    tn_tensor *x = with_grad(tn_expand(VEC(0, 0.6931471805599453f), TN_SHAPE(30000, 2))), *y, *g;
    int64_t last = -1;

    tn_random_seed(6);
    x = with_grad(tn_detach(tn_copy(x)));
    y = tn_gumbel_softmax(x, 1.0, true);
    /* Chosen by the share of e^x: 1 to 2. */
    ck_assert_double_eq_tol(at(tn_mean(tn_narrow(y, 1, 1, 1)), 0), 2.0 / 3, 0.01);
    ck_assert_double_eq_tol(at(tn_amax(tn_abs(tn_add_scalar(tn_sum(y, TN_INTS(last)), -1))), 0), 0,
                            1e-6);
    tn_backward(tn_sum(tn_narrow(y, 1, 0, 1)));
    g = tn_tensor_grad(x);
    ck_assert(g != TN_NONE);
    ck_assert_double_gt(at(tn_sum(tn_abs(g)), 0), 1);
    FINE();
}
END_TEST

START_TEST(means_of_halves_are_those_of_sums_that_halves_do_not_hold)
{
    TN_SCOPE;
    static const int64_t all[] = { 5, 7 }, two[] = { 2, 2 }, uneven[] = { 2, 3 }, one[] = { 1 };
    tn_tensor *x = with_grad(
        tn_tensor_full(TN_SHAPE(1, 1, 5, 7), 40000, TN_F16, tn_default_device()));
    tn_tensor *ones = with_grad(tn_tensor_full(TN_SHAPE(1, 1, 70000), 1, TN_F16, NULL));
    static const int64_t whole[] = { 70000 }, windows[] = { 3000 };

    HAS(tn_avg_pool2d(x, ((tn_ints){ all, 2 })), 40000);
    HAS(tn_avg_pool2d(x, ((tn_ints){ two, 2 })), 40000, 40000, 40000, 40000, 40000, 40000);
    HAS(tn_adaptive_avg_pool2d(x, (tn_ints){ uneven, 2 }), 40000, 40000, 40000, 40000, 40000,
        40000);
    HAS(tn_avg_pool1d(ones, ((tn_ints){ whole, 1 })), 1);
    HAS(tn_avg_pool2d(x, ((tn_ints){ two, 2 }), tn_no_ints(), tn_no_ints(), false, true, 100), 1600,
        1600, 1600, 1600, 1600, 1600);

    /* The sum of 1 / 3000 over 3000 windows, which a sum in float16 would not reach. */
    ck_assert_int_eq(
        tn_backward(tn_sum(tn_avg_pool1d(ones, ((tn_ints){ windows, 1 }), ((tn_ints){ one, 1 })))),
        TN_OK);
    ck_assert_double_eq_tol(at(tn_tensor_grad(ones), 35000), 1, 1e-3);
    FINE();
}
END_TEST

START_TEST(means_of_uneven_windows_of_halves_are_rounded_once)
{
    TN_SCOPE;
    static const int64_t uneven[] = { 2, 3 };
    tn_tensor *x = tn_cast(stepped(TN_SHAPE(1, 1, 5, 7), 0.37, 256), TN_BF16);

    /* as in PyTorch; if each dimension were rounded to 8 bits, both middle values would differ */
    HAS(tn_adaptive_avg_pool2d(x, (tn_ints){ uneven, 2 }), 258, 260, 260, 264, 264, 266);
    FINE();
}
END_TEST

/* Where one dimension is uneven, the windows of all of them are chosen by index. */
START_TEST(adaptive_windows_of_an_endless_dimension_are_refused)
{
    TN_SCOPE;
    static const int64_t counts[][2] = { { 2, 3 }, { 2, 0 }, { 4, 2 } };
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(0, 1, INT64_MAX - 1, 2), TN_F32, NULL), *y, *places;

    for (int i = 0; i < 3; i++) {
        tn_ints count = { counts[i], 2 };

        ck_assert_ptr_null(tn_adaptive_max_pool2d(x, count));
        FAILED(TN_ERR_VALUE, "have more than 268435456 elements in all; expected divisors of all");
        ck_assert_int_ne(tn_adaptive_max_pool2d_with_indices(x, count, &y, &places), TN_OK);
        FAILED(TN_ERR_VALUE, "have more than 268435456 elements in all; expected divisors of all");
        ck_assert_ptr_null(tn_adaptive_avg_pool2d(x, count));
        FAILED(TN_ERR_VALUE, "have more than 268435456 elements in all; expected divisors of all");
    }
}
END_TEST

START_TEST(the_gradient_of_an_infinite_half_of_glu_is_infinite)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(INFINITY, -INFINITY, 3, 1, 2, 0);

    ck_assert_int_eq(tn_backward(tn_sum(tn_glu(x))), TN_OK);
    ck_assert_double_eq_tol(at(tn_tensor_grad(x), 2), 0.5, 1e-6);
    ck_assert_double_eq(at(tn_tensor_grad(x), 3), INFINITY);
    ck_assert_double_eq(at(tn_tensor_grad(x), 4), -INFINITY);
    ck_assert_double_eq_tol(at(tn_tensor_grad(x), 5), 0.75, 1e-6);
    FINE();
}
END_TEST

static void has_shape(tn_tensor *x, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const int64_t want[] = { n, c, h, w };

    ck_assert_msg(x != NULL, "%s", tn_error_text());
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(tn_tensor_size(x, i), want[i]);
}

/* As in PyTorch, a batch may be empty, but other dimensions of the result may not have size 0. */
START_TEST(transposed_convolutions_have_a_result_of_at_least_one_element)
{
    TN_SCOPE;
    tn_tensor *one = stepped(TN_SHAPE(1, 3, 1, 1), 1, 0), *w = stepped(TN_SHAPE(3, 5, 2, 2), 1, 0);

    has_shape(tn_conv2d(stepped(TN_SHAPE(0, 3, 4, 4), 1, 0), stepped(TN_SHAPE(5, 3, 3, 3), 1, 0)),
              0, 5, 2, 2);
    has_shape(tn_conv_transpose2d(stepped(TN_SHAPE(0, 3, 4, 4), 1, 0), w), 0, 5, 5, 5);
    has_shape(tn_conv_transpose2d(one, w), 1, 5, 2, 2);
    ck_assert_ptr_null(tn_conv_transpose2d(one, w, TN_NONE, TN_INTS(1), TN_INTS(1)));
    FAILED(
        TN_ERR_RUNTIME,
        "padding: too large for x of shape [1, 3, 1, 1]: dimension 2 of the result would have size "
        "0; expected at least 1");
    ck_assert_ptr_null(tn_conv_transpose1d(tn_select(one, 3, 0), tn_select(w, 3, 0), TN_NONE,
                                           TN_INTS(1), TN_INTS(2)));
    FAILED(TN_ERR_RUNTIME,
           "padding: too large for x of shape [1, 3, 1]: dimension 2 of the result would have size "
           "-2; expected at least 1");
    ck_assert_ptr_null(tn_conv_transpose2d(stepped(TN_SHAPE(1, 3, 0, 4), 1, 0), w));
    FAILED(TN_ERR_RUNTIME, "x: wrong shape, got [1, 3, 0, 4]; expected at least 1");
}
END_TEST

START_TEST(what_does_not_fit_is_refused_with_the_numbers)
{
    TN_SCOPE;
    static const int64_t two[] = { 2 }, minus[] = { -1 }, three[] = { 3 }, zero[] = { 0 };
    tn_tensor *x = stepped(TN_SHAPE(1, 2, 4, 4), 1, 0), *w = stepped(TN_SHAPE(3, 2, 3, 3), 1, 0);
    tn_conv2d_options o = TN_CONV2D_OPTIONS;

    ck_assert_ptr_null(tn_conv2d(x, stepped(TN_SHAPE(3, 3, 3, 3), 1, 0)));
    FAILED(TN_ERR_RUNTIME, "x: wrong number of channels, got 2 in [1, 2, 4, 4]; expected 3");
    ck_assert_ptr_null(tn_conv2d(x, stepped(TN_SHAPE(3, 2, 5, 3), 1, 0)));
    FAILED(TN_ERR_RUNTIME, "kernel: does not fit, got [5, 3]");
    ck_assert_ptr_null(tn_conv2d(x, w, stepped(TN_SHAPE(4), 1, 0)));
    FAILED(TN_ERR_RUNTIME, "bias: wrong shape, got [4]; expected [3]");
    ck_assert_ptr_null(tn_conv2d(x, tn_cast(w, TN_F32)));
    FAILED(TN_ERR_RUNTIME, "x or weight: wrong dtype, got float64 and float32");
    ck_assert_ptr_null(tn_conv2d(stepped(TN_SHAPE(4, 4), 1, 0), w));
    FAILED(TN_ERR_RUNTIME, "conv2d: x: wrong shape, got [4, 4]; expected 4 dimensions");
    ck_assert_ptr_null(tn_conv2d(stepped(TN_SHAPE(4), 1, 0), w));
    FAILED(TN_ERR_RUNTIME, "conv2d: x: wrong shape, got [4];");
    ck_assert_ptr_null(tn_conv2d(x, NULL));
    FAILED(TN_ERR_RUNTIME, "conv2d: weight: it is NULL, and no earlier failure of this thread");
    tn_tensor *odd = tn_pad(x, TN_SHAPE(1));
    ck_assert_ptr_null(odd);
    FAILED(TN_ERR_RUNTIME, "pad: sizes: wrong count, got [1]; expected pairs (before, after)");
    o.groups = 2;
    ck_assert_ptr_null(
        tn_conv2d(x, w, TN_NONE, o.stride, o.padding, o.dilation, o.groups, o.auto_padding));
    FAILED(TN_ERR_VALUE, "groups: wrong count, got 2; expected a divisor of the channels");
    o.groups = 0;
    ck_assert_ptr_null(
        tn_conv2d(x, w, TN_NONE, o.stride, o.padding, o.dilation, o.groups, o.auto_padding));
    FAILED(TN_ERR_VALUE, "groups: wrong count, got 0");
    o.groups = 1;
    o.stride = (tn_ints){ zero, 1 };
    ck_assert_ptr_null(
        tn_conv2d(x, w, TN_NONE, o.stride, o.padding, o.dilation, o.groups, o.auto_padding));
    FAILED(TN_ERR_VALUE, "stride: out of range, got [0]");
    o.stride = (tn_ints){ two, 1 };
    o.auto_padding = "same";
    ck_assert_ptr_null(
        tn_conv2d(x, w, TN_NONE, o.stride, o.padding, o.dilation, o.groups, o.auto_padding));
    FAILED(TN_ERR_VALUE, "stride: not possible with auto_padding same");
    o.auto_padding = "most";
    ck_assert_ptr_null(
        tn_conv2d(x, w, TN_NONE, o.stride, o.padding, o.dilation, o.groups, o.auto_padding));
    FAILED(TN_ERR_VALUE, "same or valid");
    o.auto_padding = NULL;
    o.padding = (tn_ints){ minus, 1 };
    ck_assert_ptr_null(
        tn_conv2d(x, w, TN_NONE, o.stride, o.padding, o.dilation, o.groups, o.auto_padding));
    FAILED(TN_ERR_VALUE, "padding: out of range, got [-1]");

    ck_assert_ptr_null(tn_max_pool2d(x, ((tn_ints){ NULL, 0 })));
    FAILED(TN_ERR_VALUE, "kernel: empty");
    ck_assert_ptr_null(
        tn_max_pool2d(x, ((tn_ints){ three, 1 }), tn_no_ints(), ((tn_ints){ two, 1 })));
    FAILED(TN_ERR_RUNTIME, "expected at most half of it");
    ck_assert_ptr_null(
        tn_batch_norm(stepped(TN_SHAPE(1, 3), 1, 0), TN_NONE, TN_NONE, TN_NONE, TN_NONE, true));
    FAILED(TN_ERR_VALUE, "more than 1 value per channel");
    ck_assert_ptr_null(tn_layer_norm(x, TN_NONE, TN_NONE, ((tn_ints){ three, 1 })));
    FAILED(TN_ERR_RUNTIME, "normalized_shape: wrong sizes, got [3]");
    ck_assert_ptr_null(tn_group_norm(x, TN_NONE, TN_NONE, 3));
    FAILED(TN_ERR_RUNTIME, "num_groups: wrong count, got 3; expected a divisor of the 2 channels");
    ck_assert_ptr_null(tn_mse_loss(x, x, "most"));
    FAILED(TN_ERR_VALUE, "expected none, mean or sum");
    FINE();
}
END_TEST

START_TEST(an_input_of_another_shape_than_the_one_it_belongs_to_is_refused)
{
    TN_SCOPE;
    tn_tensor *x = stepped(TN_SHAPE(2, 3), 1, 0), *w = stepped(TN_SHAPE(3, 3), 1, 0);
    tn_tensor *row = stepped(TN_SHAPE(3), 1, 0), *thin = stepped(TN_SHAPE(2, 1), 1, 0), *out[3];
    tn_batch_norm_relu_options norm = TN_BATCH_NORM_RELU_OPTIONS;

    ck_assert(tn_linear_activation(x, w, TN_NONE, thin, "relu", &out[0], &out[1]) != TN_OK);
    FAILED(TN_ERR_RUNTIME,
           "residual: wrong shape, got [2, 1]; expected the shape of the result, [2, 3]");
    ck_assert(tn_standardize_relu(x, TN_NONE, TN_NONE, thin, TN_SHAPE(1), &out[0], &out[1],
                                  &out[2]) != TN_OK);
    FAILED(TN_ERR_RUNTIME, "residual: wrong shape, got [2, 1]; expected the shape of x, [2, 3]");
    ck_assert_ptr_null(tn_batch_norm_relu(x, row, row, TN_NONE, TN_NONE, thin));
    FAILED(TN_ERR_RUNTIME, "residual: wrong shape, got [2, 1]; expected the shape of x, [2, 3]");
    ck_assert_ptr_null(tn_batch_norm_relu(x, row, row, TN_NONE, TN_NONE, TN_NONE, norm.training,
                                          norm.momentum, norm.eps, 0));
    FAILED(TN_ERR_VALUE, "max: out of range, got 0.0; expected a number greater than 0");
    ck_assert_ptr_null(tn_batch_norm_relu(tn_cast(x, TN_F16), row, row, TN_NONE, TN_NONE, TN_NONE,
                                          norm.training, norm.momentum, norm.eps, 0.1));
    FAILED(TN_ERR_VALUE, "max: rounded by float16, got 0.1; expected a number with at most 8");
    ck_assert(tn_standardize_relu(x, TN_NONE, TN_NONE, TN_NONE, TN_SHAPE(1), &out[0], &out[1],
                                  &out[2], norm.eps, -1) != TN_OK);
    FAILED(TN_ERR_VALUE, "max: out of range, got -1.0; expected a number greater than 0");
    w = stepped(TN_SHAPE(12, 3), 1, 0);
    ck_assert(tn_lstm_cell(x, x, thin, w, w, TN_NONE, TN_NONE, &out[0], &out[1]) != TN_OK);
    FAILED(TN_ERR_RUNTIME, "c: wrong shape, got [2, 1]; expected the shape of h, [2, 3]");
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("networks");
    TCase *tests = tcase_create("networks");

    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, running_moments_come_nearer_to_those_of_the_batch);
    tcase_add_test(tests, dropout_keeps_the_mean_and_drops_the_share_that_was_asked_for);
    tcase_add_test(tests, gumbel_softmax_is_a_distribution_and_hard_ones_are_one_hot);
    tcase_add_test(tests, means_of_halves_are_those_of_sums_that_halves_do_not_hold);
    tcase_add_test(tests, means_of_uneven_windows_of_halves_are_rounded_once);
    tcase_add_test(tests, adaptive_windows_of_an_endless_dimension_are_refused);
    tcase_add_test(tests, the_gradient_of_an_infinite_half_of_glu_is_infinite);
    tcase_add_test(tests, transposed_convolutions_have_a_result_of_at_least_one_element);
    tcase_add_test(tests, what_does_not_fit_is_refused_with_the_numbers);
    tcase_add_test(tests, an_input_of_another_shape_than_the_one_it_belongs_to_is_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

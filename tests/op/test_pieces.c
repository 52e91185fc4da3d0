/* SPDX-License-Identifier: MIT
 *
 * Tensors in pieces: split, chunk, unbind. */
#include "tests/op/suite.h"

static tn_tensor *table(void)
{
    return tn_reshape(VEC(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), TN_SHAPE(2, 5));
}

START_TEST(pieces_are_views_and_the_last_one_may_be_shorter)
{
    TN_SCOPE;
    tn_tensor *x = table(), *out[5];

    ck_assert_int_eq(tn_split(x, 2, 1, out, 5), 3);
    HAS(out[0], 1, 2, 6, 7);
    HAS(out[2], 5, 10);
    ck_assert(tn_tensor_shares_storage(out[1], x));
    ck_assert_int_eq(tn_split_sizes(x, TN_INTS(1, 0, 4), -1, out), TN_OK);
    HAS(out[0], 1, 6);
    ck_assert_int_eq(tn_tensor_size(out[1], 1), 0);
    HAS(out[2], 2, 3, 4, 5, 7, 8, 9, 10);
    ck_assert_int_eq(tn_chunk(x, 4, 1, out, 5), 3); /* pieces of 2: three are enough */
    HAS(out[2], 5, 10);
    ck_assert_int_eq(tn_chunk(tn_narrow(x, 1, 0, 0), 3, 1, out, 5), 3);
    ck_assert_int_eq(tn_tensor_numel(out[2]), 0);
    ck_assert_int_eq(tn_split(tn_narrow(x, 1, 0, 0), 0, 1, out, 5), 1);
    ck_assert_int_eq(tn_unbind(x, 0, out, 5), 2);
    HAS(out[1], 6, 7, 8, 9, 10);
    ck_assert_int_eq(tn_tensor_ndim(out[1]), 1);
    FINE();
}
END_TEST

START_TEST(a_slice_may_step_further_than_can_be_added_up)
{
    TN_SCOPE;

    HAS(tn_slice(VEC(1, 2, 3, 4), 0, 1, INT64_MIN, INT64_MAX), 2);
    HAS(tn_reshape(tn_slice(table(), 1, 1, INT64_MIN, INT64_MAX), TN_SHAPE(2)), 2, 7);
    FINE();
}
END_TEST

START_TEST(gradients_go_through_pieces)
{
    TN_SCOPE;
    tn_tensor *x = with_grad(table()), *out[5];

    ck_assert_int_eq(tn_unbind(x, 1, out, 5), 5);
    ck_assert_int_eq(tn_backward(tn_sum(tn_mul(out[0], out[4]))), TN_OK);
    HAS(tn_tensor_grad(x), 5, 0, 0, 0, 1, 10, 0, 0, 0, 6);
}
END_TEST

START_TEST(what_does_not_come_out_is_refused)
{
    TN_SCOPE;
    tn_tensor *x = table(), *out[2];

    ck_assert_int_eq(tn_split(x, 0, 1, out, 2), -1);
    FAILED(TN_ERR_VALUE, "out of range, got 0 for a dimension of 5");
    ck_assert_int_eq(tn_split(x, 2, 1, out, 2), -1);
    FAILED(TN_ERR_VALUE, "too small for 3 pieces, got 2");
    ck_assert_int_eq(tn_split(x, 2, 2, out, 2), -1);
    FAILED(TN_ERR_INDEX, "dim: out of range, got 2; expected -2 to 1");
    ck_assert_int_eq(tn_split_sizes(x, TN_INTS(2, 4), 1, out), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "do not add up to 5");
    ck_assert_int_eq(tn_split_sizes(x, TN_INTS(6, -1), 1, out), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "do not add up");
    ck_assert_int_eq(tn_chunk(x, 0, 1, out, 2), -1);
    FAILED(TN_ERR_VALUE, "chunk expects `chunks` to be greater than 0");
    ck_assert_int_eq(tn_unbind(x, -3, out, 2), -1);
    FAILED(TN_ERR_INDEX, "got -3");
    ck_assert_int_eq(tn_unbind(NULL, 0, out, 2), -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pieces");
    TCase *all = tcase_create("all");

    tcase_add_test(all, pieces_are_views_and_the_last_one_may_be_shorter);
    tcase_add_test(all, a_slice_may_step_further_than_can_be_added_up);
    tcase_add_test(all, gradients_go_through_pieces);
    tcase_add_test(all, what_does_not_come_out_is_refused);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}

/* SPDX-License-Identifier: MIT
 *
 * Gradients of many views of one tensor, which add up in place: the sum is right, and no tensor
 * that the program can access changes. */
#include "tests/op/suite.h"

enum { ROWS = 5 };

static tn_tensor *matrix(tn_tensor *row)
{
    return tn_reshape(tn_cast(tn_arange(row, 0, ROWS * 2), TN_F32), TN_SHAPE(ROWS, 2));
}

START_TEST(gradients_of_slices_add_up_where_they_overlap)
{
    TN_SCOPE;
    tn_tensor *x = with_grad(tn_detach(matrix(VEC(0)))), *loss = NULL;

    for (int64_t t = 0; t < ROWS; t++) {
        tn_tensor *part = tn_sum(tn_mul_scalar(tn_select(x, 0, t), (double)(t + 1)));

        loss = loss != NULL ? tn_add(loss, part) : part;
    }
    loss = tn_add(loss, tn_sum(tn_mul_scalar(tn_slice(x, 0, INT64_MIN, INT64_MIN, 2), 10)));
    loss = tn_add(loss, tn_sum(tn_mul_scalar(tn_narrow(x, 1, -1, 1), 100)));
    loss = tn_add(loss, tn_sum(tn_mul_scalar(tn_diagonal(x), 1000)));
    loss = tn_add(loss, tn_sum(tn_mul_scalar(x, 10000)));
    ck_assert_int_eq(tn_backward(loss), TN_OK);
    HAS(tn_tensor_grad(x), 11011, 10111, 10002, 11102, 10013, 10113, 10004, 10104, 10015, 10115);
}
END_TEST

START_TEST(rows_that_are_looked_up_again_and_again_add_up)
{
    TN_SCOPE;
    tn_tensor *x = with_grad(tn_detach(matrix(VEC(0)))), *loss = NULL;

    for (int64_t t = 0; t < 6; t++) {
        const int64_t at[2] = { t % ROWS, 0 };
        tn_tensor *index = tn_tensor_from(at, TN_I64, TN_SHAPE(2)), *part;

        part = t % 2 ? tn_index_select(x, index, 0) : tn_embedding(x, index);
        part = tn_sum(part);
        loss = loss != NULL ? tn_add(loss, part) : part;
    }
    ck_assert_int_eq(tn_backward(loss), TN_OK);
    HAS(tn_tensor_grad(x), 8, 8, 1, 1, 1, 1, 1, 1, 1, 1);
}
END_TEST

static tn_status keep(void *user, tn_tensor *gradient, tn_tensor **replacement)
{
    (void)replacement;
    *(tn_tensor **)user = tn_tensor_keep(gradient);
    return TN_OK;
}

START_TEST(a_gradient_that_somebody_else_holds_is_not_added_to)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2, 3), *w = LEAF(4, 5, 6), *y = tn_mul_scalar(x, 2), *sum, *first,
              *c = VEC(7, 8, 9), *cs = VEC(1), *seen = NULL, *roots[2], *seeds[2];

    first = tn_narrow(y, 0, 0, 1);
    sum = tn_add(y, w); /* gives y and w the same tensor */
    ck_assert_uint_ne(tn_tensor_hook(sum, keep, &seen, NULL), 0);
    roots[0] = sum;
    roots[1] = first;
    seeds[0] = c;
    seeds[1] = cs;
    ck_assert_int_eq(tn_backward_from(roots, seeds, 2, NULL), TN_OK);
    HAS(c, 7, 8, 9);
    HAS(seen, 7, 8, 9);
    HAS(tn_tensor_grad(w), 7, 8, 9);
    HAS(tn_tensor_grad(x), 16, 16, 18);
    tn_tensor_drop(seen);
    y = tn_mul_scalar(x, 2);
    roots[0] = y; /* the caller's cotangent is the first gradient of y */
    roots[1] = tn_narrow(y, 0, 1, 1);
    tn_tensor_set_grad(x, TN_NONE);
    ck_assert_int_eq(tn_backward_from(roots, seeds, 2, NULL), TN_OK);
    HAS(c, 7, 8, 9);
    HAS(tn_tensor_grad(x), 14, 18, 18);
}
END_TEST

START_TEST(a_graph_of_the_gradients_of_slices_can_be_differentiated)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2, 3), *loss = NULL, *gradient = NULL;
    tn_backward_options options = { .size = sizeof options, .create_graph = true };

    for (int64_t t = 0; t < 3; t++) {
        tn_tensor *one = tn_select(x, 0, t), *cube = tn_mul(tn_mul(one, one), one);

        loss = loss != NULL ? tn_add(loss, cube) : cube;
    }
    ck_assert_int_eq(tn_grad(&loss, NULL, 1, &x, &gradient, 1, &options), TN_OK);
    HAS(gradient, 3, 12, 27);
    ck_assert_int_eq(tn_backward(tn_sum(gradient)), TN_OK);
    HAS(tn_tensor_grad(x), 6, 12, 18);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slices");
    TCase *all = tcase_create("slices");

    tcase_add_test(all, gradients_of_slices_add_up_where_they_overlap);
    tcase_add_test(all, rows_that_are_looked_up_again_and_again_add_up);
    tcase_add_test(all, a_gradient_that_somebody_else_holds_is_not_added_to);
    tcase_add_test(all, a_graph_of_the_gradients_of_slices_can_be_differentiated);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}

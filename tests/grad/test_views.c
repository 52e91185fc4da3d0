/* SPDX-License-Identifier: MIT
 *
 * In-place through views, differentiated more than once, and through the parts of complex numbers.
 * The numbers are those of the formulas, and PyTorch's. */
#include "tests/op/suite.h"

static tn_tensor *squares(tn_tensor *x)
{
    return tn_sum(tn_mul(x, x), NULL);
}

/* The gradient of a number, itself recorded. */
static tn_tensor *slope(tn_tensor *loss, tn_tensor *x)
{
    tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    tn_tensor *g = NULL;

    ck_assert_msg(tn_grad(&loss, NULL, 1, &x, &g, 1, &create) == TN_OK, "%s", tn_error_text());
    return g;
}

START_TEST(a_change_through_a_view_is_differentiated_three_times)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2, 3, 4), *w = LEAF(3, 5), *y = tn_mul(x, x), *g, *h;

    tn_mul_(tn_narrow(y, 0, 1, 2), w);
    g = slope(squares(y), x);
    HAS(g, 4, 288, 2700, 256); /* 4 x^3 w^2 */
    HAS(slope(tn_sum(g, NULL), w), 192, 1080);
    h = slope(tn_sum(g, NULL), x);
    HAS(h, 12, 432, 2700, 192);
    HAS(slope(tn_sum(h, NULL), x), 24, 432, 1800, 96);
    FINE();
}
END_TEST

START_TEST(an_output_that_a_change_through_a_view_keeps_has_a_history)
{
    TN_SCOPE;
    tn_tensor *x = with_grad(tn_cast(VEC(0.5, 3), TN_F64)), *y = tn_mul_scalar(x, 2), *g, *h;
    const double e2 = exp(2);

    tn_exp_(tn_narrow(y, 0, 0, 1)); /* y[0]^2 = exp(4 x) */
    g = slope(squares(y), x);
    HAS(g, 4 * e2, 24);
    h = slope(tn_sum(g, NULL), x);
    HAS(h, 16 * e2, 8);
    HAS(slope(tn_sum(h, NULL), x), 64 * e2, 0);
    FINE();
}
END_TEST

START_TEST(a_view_whose_base_changed_is_differentiated_twice)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2, 3), *y = tn_mul(x, x), *v = tn_narrow(y, 0, 1, 2), *g;

    tn_mul_(y, x);
    g = slope(squares(v), x);
    HAS(g, 0, 192, 1458); /* 6 x^5 */
    HAS(slope(tn_sum(g, NULL), x), 0, 480, 2430);

    x = LEAF(3);
    y = tn_mul(x, x);
    v = tn_expand(y, TN_SHAPE(2)); /* shows one number twice */
    tn_mul_(y, x);
    g = slope(squares(v), x);
    HAS(g, 2916); /* 12 x^5 */
    HAS(slope(tn_sum(g, NULL), x), 4860);
    FINE();
}
END_TEST

START_TEST(what_is_copied_or_filled_through_a_view_is_differentiated_twice)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2, 3), *c = LEAF(2), *y = tn_mul(x, x), *g;

    tn_copy_(tn_narrow(y, 0, 0, 1), tn_mul(c, c));
    tn_fill_(tn_narrow(y, 0, 2, 1), 7);
    g = slope(squares(y), x);
    HAS(g, 0, 32, 0);
    HAS(slope(tn_sum(g, NULL), x), 0, 48, 0);
    g = slope(squares(y), c); /* c^4 */
    HAS(g, 32);
    HAS(slope(g, c), 48);
    FINE();
}
END_TEST

START_TEST(the_parts_of_complex_numbers_are_changed_in_place)
{
    TN_SCOPE;
    tn_tensor *a = LEAF(1, 2), *b = LEAF(3, 4), *w = LEAF(5, 6), *z = tn_complex(a, b), *r, *loss,
              *g;

    tn_mul_(tn_imag(z), w);
    loss = tn_add(squares(tn_real(z)), squares(tn_imag(z)), NULL);
    HAS(slope(loss, a), 2, 4);
    HAS(slope(loss, w), 90, 192);
    g = slope(loss, b);
    HAS(g, 150, 288); /* 2 b w^2 */
    HAS(slope(tn_sum(g, NULL), b), 50, 72);
    HAS(slope(tn_sum(g, NULL), w), 60, 96);

    z = tn_complex(a, b);
    r = tn_real(z);
    tn_mul_scalar_(z, 2); /* the base changes under a view of its parts */
    loss = squares(r);
    HAS(slope(loss, a), 8, 16);
    HAS(slope(loss, b), 0, 0);

    z = tn_complex(a, b);
    tn_mul_scalar_(tn_view_as_real(tn_narrow(z, 0, 1, 1)), 3);
    loss = tn_add(squares(tn_real(z)), squares(tn_imag(z)), NULL);
    HAS(slope(loss, a), 2, 36);
    HAS(slope(loss, b), 6, 72);
    FINE();
}
END_TEST

START_TEST(a_history_that_was_overwritten_gets_zeros)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y = tn_mul(x, x), *g;

    tn_mul_scalar_(tn_fill_(y, 0), 3);
    g = slope(tn_sum(y, NULL), x);
    HAS(g, 0, 0);
    y = tn_mul(x, x);
    tn_copy_(y, VEC(4, 5)); /* what is written has no gradient */
    ck_assert_int_eq(tn_backward(squares(y)), TN_OK);
    HAS(tn_tensor_grad(x), 0, 0);
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gradients of changes through views");
    TCase *t = tcase_create("views");

    tcase_add_test(t, a_change_through_a_view_is_differentiated_three_times);
    tcase_add_test(t, an_output_that_a_change_through_a_view_keeps_has_a_history);
    tcase_add_test(t, a_view_whose_base_changed_is_differentiated_twice);
    tcase_add_test(t, what_is_copied_or_filled_through_a_view_is_differentiated_twice);
    tcase_add_test(t, the_parts_of_complex_numbers_are_changed_in_place);
    tcase_add_test(t, a_history_that_was_overwritten_gets_zeros);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}

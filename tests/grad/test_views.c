/* SPDX-License-Identifier: MIT
 *
 * In-place through views, differentiated more than once, and through the parts of complex numbers.
 * The numbers are those of the formulas, and PyTorch's. */
#include "tests/op/suite.h"

static tn_tensor *squares(tn_tensor *x)
{
    return tn_sum(tn_mul(x, x));
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
    HAS(slope(tn_sum(g), w), 192, 1080);
    h = slope(tn_sum(g), x);
    HAS(h, 12, 432, 2700, 192);
    HAS(slope(tn_sum(h), x), 24, 432, 1800, 96);
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
    h = slope(tn_sum(g), x);
    HAS(h, 16 * e2, 8);
    HAS(slope(tn_sum(h), x), 64 * e2, 0);
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
    HAS(slope(tn_sum(g), x), 0, 480, 2430);

    x = LEAF(3);
    y = tn_mul(x, x);
    v = tn_expand(y, TN_SHAPE(2)); /* both elements are the same number in memory */
    tn_mul_(y, x);
    g = slope(squares(v), x);
    HAS(g, 2916); /* 12 x^5 */
    HAS(slope(tn_sum(g), x), 4860);
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
    HAS(slope(tn_sum(g), x), 0, 48, 0);
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
    loss = tn_add(squares(tn_real(z)), squares(tn_imag(z)));
    HAS(slope(loss, a), 2, 4);
    HAS(slope(loss, w), 90, 192);
    g = slope(loss, b);
    HAS(g, 150, 288); /* 2 b w^2 */
    HAS(slope(tn_sum(g), b), 50, 72);
    HAS(slope(tn_sum(g), w), 60, 96);

    z = tn_complex(a, b);
    r = tn_real(z);
    tn_mul_scalar_(z, 2); /* the base changes under a view of its parts */
    loss = squares(r);
    HAS(slope(loss, a), 8, 16);
    HAS(slope(loss, b), 0, 0);

    z = tn_complex(a, b);
    tn_mul_scalar_(tn_view_as_real(tn_narrow(z, 0, 1, 1)), 3);
    loss = tn_add(squares(tn_real(z)), squares(tn_imag(z)));
    HAS(slope(loss, a), 2, 36);
    HAS(slope(loss, b), 6, 72);
    FINE();
}
END_TEST

START_TEST(pairs_are_viewed_as_complex_numbers)
{
    TN_SCOPE;
    const float numbers[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    tn_tensor *x = tn_tensor_from(numbers, TN_F32, TN_SHAPE(2, 2, 2)), *y = tn_view_as_complex(x);
    tn_tensor *leaf = LEAF(1, 2, 3, 4), *pairs, *z;

    ck_assert_int_eq(tn_tensor_dtype(y), TN_C64);
    ck_assert_int_eq(tn_tensor_ndim(y), 2);
    HAS(tn_real(y), 1, 3, 5, 7);
    HAS(tn_imag(y), 2, 4, 6, 8);
    tn_mul_scalar_(tn_real(y), 2); /* the memory is the same */
    HAS(x, 2, 2, 6, 4, 10, 6, 14, 8);
    HAS(tn_real(tn_view_as_complex(tn_narrow(x, 0, 1, 1))), 10, 14);
    HAS(tn_real(tn_view_as_complex(tn_transpose(x, 0, 1))), 2, 10, 6, 14);
    HAS(tn_view_as_real(y), 2, 2, 6, 4, 10, 6, 14, 8);
    ck_assert_int_eq(tn_tensor_numel(tn_view_as_complex(tn_narrow(x, 0, 0, 0))), 0);

    /* what PyTorch refuses: a last dimension of another size or stride, odd strides and offsets */
    ck_assert_ptr_null(tn_view_as_complex(tn_tensor_from(numbers, TN_F32, TN_SHAPE(2, 3))));
    FAILED(TN_ERR_RUNTIME, "view_as_complex: x: Tensor must have a last dimension of size 2, got "
                           "shape");
    ck_assert_ptr_null(tn_view_as_complex(tn_select(tn_add(leaf, leaf), 0, 0)));
    FAILED(TN_ERR_RUNTIME, "last dimension of size 2");
    ck_assert_ptr_null(tn_view_as_complex(tn_transpose(x, 1, 2)));
    FAILED(TN_ERR_RUNTIME, "view_as_complex: x: wrong layout, got strides");
    x = tn_tensor_from(numbers, TN_F32, TN_SHAPE(2, 3));
    ck_assert_ptr_null(tn_view_as_complex(tn_narrow(x, 1, 0, 2)));
    FAILED(TN_ERR_RUNTIME, "divisible by 2");
    x = tn_tensor_from(numbers, TN_F32, TN_SHAPE(2, 4));
    ck_assert_ptr_null(tn_view_as_complex(tn_narrow(x, 1, 1, 2)));
    FAILED(TN_ERR_RUNTIME, "offset 1");
    HAS(tn_real(tn_view_as_complex(tn_narrow(x, 1, 2, 2))), 3, 7);

    /* gradients, also through a write into the view */
    pairs = tn_mul_scalar(leaf, 1);
    z = tn_view_as_complex(tn_reshape(pairs, TN_SHAPE(2, 2)));
    HAS(slope(tn_add(squares(tn_real(z)), tn_sum(tn_imag(z))), leaf), 2, 1, 6, 1);
    tn_mul_scalar_(tn_narrow(z, 0, 1, 1), 3);
    HAS(slope(squares(pairs), leaf), 2, 4, 54, 72);
    FINE();
}
END_TEST

START_TEST(a_history_that_was_overwritten_gets_zeros)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y = tn_mul(x, x), *g;

    tn_mul_scalar_(tn_fill_(y, 0), 3);
    g = slope(tn_sum(y), x);
    HAS(g, 0, 0);
    y = tn_mul(x, x);
    tn_copy_(y, VEC(4, 5)); /* what is written has no gradient */
    ck_assert_int_eq(tn_backward(squares(y)), TN_OK);
    HAS(tn_tensor_grad(x), 0, 0);
    FINE();
}
END_TEST

/* ---- views without elements ---- */

enum { NARROWED, TURNED, EXPANDED, WINDOWS, EMPTY_VIEWS };

static tn_tensor *empty_view(int which, tn_tensor *z)
{
    const int32_t dim = tn_tensor_shape(z).at[0] == 0 ? 0 : 1;

    switch (which) {
    case NARROWED: return tn_narrow(z, dim, 0, 0);
    case TURNED: return tn_transpose(tn_narrow(z, dim, tn_tensor_shape(z).at[dim], 0), 0, 1);
    case EXPANDED: return tn_expand(tn_unsqueeze(tn_narrow(z, dim, 0, 0), 1), TN_SHAPE(-1, 4, -1));
    default: return tn_unfold(tn_narrow(z, dim, 0, 0), 1 - dim, 2, 1);
    }
}

/* Returns z^3 by x, with a view of z, the copy of x, that has no element. The view is changed in
 * place if it shows no element twice, and read after its base was changed. */
static tn_tensor *cube_beside_empty(int which, bool inplace, tn_tensor *x)
{
    tn_tensor *z = tn_copy(x), *view = empty_view(which, z), *sum;

    if (inplace)
        tn_mul_scalar_(view, 2);
    tn_mul_scalar_(z, 2);
    sum = tn_sum(tn_mul(view, view));
    return tn_add(sum, tn_sum(tn_mul(z, tn_mul(z, z))));
}

START_TEST(views_without_elements_are_changed_and_differentiated_twice)
{
    static const int64_t shapes[][2] = { { 2, 3 }, { 0, 3 }, { 2, 0 }, { 0, 0 }, { 1, 3 } };

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int which = 0; which < 2 * EMPTY_VIEWS; which++) {
            TN_SCOPE;
            const int64_t n = shapes[i][0] * shapes[i][1], dim = shapes[i][0] == 0 ? 0 : 1;
            const float values[] = { 1, -2, 3, 0.5f, 4, -1 };
            tn_tensor *x = with_grad(
                tn_tensor_from(values, TN_F32, TN_SHAPE(shapes[i][0], shapes[i][1])));
            tn_tensor *g, *h;

            if (which / 2 == WINDOWS && shapes[i][1 - dim] < 2)
                continue; /* no window fits */
            g = slope(cube_beside_empty(which / 2, which % 2 == 1, x), x);
            ck_assert_int_eq(tn_tensor_numel(g), n);
            h = slope(tn_sum(g), x);
            for (int64_t k = 0; k < n; k++) {
                ck_assert_double_eq(at(g, k), 24 * (double)values[k] * (double)values[k]);
                ck_assert_double_eq(at(h, k), 48 * (double)values[k]);
            }
            FINE();
        }
}
END_TEST

/* The gradient of a parameter that is used transposed has the parameter's strides, so that an
 * optimizer copies nothing, and the numbers that it has without the transposition. */
START_TEST(the_gradient_of_a_transposed_factor_is_contiguous)
{
    for (int i = 0; i < 6; i++) {
        TN_SCOPE;
        const bool turned = i & 1;
        tn_tensor *x = tn_reshape(LEAF(1, 2, 3, 4, 5, 6), TN_SHAPE(3, 2)), *w, *factor, *y, *g;

        w = tn_copy(tn_reshape(VEC(1, -2, 3, 5, 7, -4, 2, 6), TN_SHAPE(2, 4)));
        if (turned) /* the numbers of the other case, kept as the transposition */
            w = tn_copy(tn_transpose(w, 0, 1));
        ck_assert_int_eq(tn_tensor_set_requires_grad(w, true), TN_OK);
        factor = turned ? tn_transpose(w, 0, 1) : w;
        if (i < 2)
            y = tn_matmul(x, factor);
        else if (i < 4)
            y = tn_linear(x, tn_transpose(factor, 0, 1), TN_NONE);
        else
            y = tn_matmul(tn_transpose(factor, 0, 1), tn_transpose(x, 0, 1));
        ck_assert_int_eq(tn_backward(squares(y)), TN_OK);
        g = tn_tensor_grad(w);
        ck_assert(tn_tensor_is_contiguous(g));
        g = tn_reshape(turned ? tn_transpose(g, 0, 1) : g, TN_SHAPE(8));
        HAS(g, 686, -492, 386, 878, 872, -624, 488, 1112);
        FINE();
    }
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
    tcase_add_test(t, pairs_are_viewed_as_complex_numbers);
    tcase_add_test(t, a_history_that_was_overwritten_gets_zeros);
    tcase_add_test(t, views_without_elements_are_changed_and_differentiated_twice);
    tcase_add_test(t, the_gradient_of_a_transposed_factor_is_contiguous);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}

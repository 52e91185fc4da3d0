/* SPDX-License-Identifier: MIT
 *
 * In-place operators and the history of the tensors that they change, also through views. The
 * numbers are PyTorch's. */
#include "tests/op/suite.h"

static tn_tensor *squares(tn_tensor *x)
{
    return tn_sum(tn_mul(x, x));
}

START_TEST(an_operator_in_place_becomes_the_maker_of_what_it_changed)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, -2, 3), *y = tn_mul_scalar(x, 2);

    tn_add_(y, VEC(1, 1, 1));
    ck_assert_ptr_eq(tn_relu_(y), y);
    ck_assert_str_eq(tn_tensor_grad_op(y), "relu");
    tn_backward(squares(y));
    HAS(y, 3, 0, 7);
    HAS(tn_tensor_grad(x), 12, 0, 28);
    y = tn_relu_(tn_mul_scalar(x, 2));
    tn_add_scalar_(y, 1);
    ck_assert_int_eq(tn_backward(squares(y)), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME,
           "which is output \"y\" of relu, is at version 2; expected version 1 instead");
}
END_TEST

START_TEST(a_plain_tensor_gets_a_history_from_what_is_written_into_it)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y = VEC(3, 4), *z = VEC(0, 0);

    tn_mul_(y, x);
    ck_assert(tn_tensor_requires_grad(y));
    tn_copy_(z, y);
    tn_backward(squares(z));
    HAS(tn_tensor_grad(x), 18, 64);
    FINE();
}
END_TEST

START_TEST(copies_cut_the_old_history_and_follow_the_new_one)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *c = LEAF(5), *y = tn_mul_scalar(x, 3);

    tn_copy_(y, c); /* broadcast */
    HAS(y, 5, 5);
    tn_backward(squares(y));
    HAS(tn_tensor_grad(c), 20);
    HAS(tn_tensor_grad(x), 0, 0); /* what was overwritten has no part: zeros, as in PyTorch */
    tn_tensor_set_grad(x, TN_NONE);
    tn_tensor *d = with_grad(tn_cast(VEC(2, 3), TN_F64));
    y = tn_mul_scalar(x, 3);
    tn_copy_(y, d); /* converted */
    tn_backward(squares(y));
    ck_assert_int_eq(tn_tensor_dtype(tn_tensor_grad(d)), TN_F64);
    HAS(tn_tensor_grad(d), 4, 6);
    tn_tensor_set_grad(x, TN_NONE);
    y = tn_mul_scalar(x, 3);
    tn_fill_(y, 4);
    ck_assert(tn_tensor_requires_grad(y));
    ck_assert_int_eq(tn_backward(squares(y)), TN_OK);
    HAS(tn_tensor_grad(x), 0, 0);
    FINE();
}
END_TEST

START_TEST(a_change_through_a_view_reaches_the_base)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2, 3, 4), *y = tn_mul_scalar(x, 2), *other = tn_narrow(y, 0, 2, 2),
              *v = tn_narrow(y, 0, 1, 2);

    tn_mul_scalar_(v, 3);
    HAS(y, 2, 12, 18, 8);
    tn_backward(squares(y));
    HAS(tn_tensor_grad(x), 8, 144, 216, 32);
    tn_tensor_set_grad(x, TN_NONE);
    FINE();

    y = tn_mul_scalar(x, 2);
    other = tn_narrow(y, 0, 2, 2);
    v = tn_narrow(y, 0, 1, 2);
    tn_mul_scalar_(v, 3);
    tn_backward(squares(other)); /* a view made before the change sees it */
    HAS(tn_tensor_grad(x), 0, 0, 216, 32);
    tn_tensor_set_grad(x, TN_NONE);

    y = tn_mul_scalar(x, 2);
    v = tn_narrow(y, 0, 1, 2);
    tn_mul_scalar_(v, 3);
    tn_backward(tn_sum(v)); /* the view itself */
    HAS(tn_tensor_grad(x), 0, 6, 6, 0);
    tn_tensor_set_grad(x, TN_NONE);

    y = tn_mul_scalar(x, 2);
    v = tn_narrow(y, 0, 1, 2);
    tn_mul_scalar_(y, 5);
    tn_backward(tn_sum(v)); /* the base was changed under the view */
    HAS(tn_tensor_grad(x), 0, 10, 10, 0);
    FINE();
}
END_TEST

START_TEST(what_is_copied_into_a_view_gets_its_part_of_the_gradient)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2, 3, 4), *c = LEAF(10, 20), *y = tn_mul_scalar(x, 2),
              *plain = VEC(1, 1, 1, 1), *before;

    tn_copy_(tn_narrow(y, 0, 1, 2), c);
    tn_backward(squares(y));
    HAS(tn_tensor_grad(c), 20, 40);
    HAS(tn_tensor_grad(x), 8, 0, 0, 32);
    tn_tensor_set_grad(c, TN_NONE);
    tn_tensor_set_grad(x, TN_NONE);

    before = tn_narrow(plain, 0, 0, 3);
    tn_copy_(tn_narrow(plain, 0, 1, 2),
             c); /* a base without a history gets one, and so do its views */
    ck_assert(tn_tensor_requires_grad(plain) && tn_tensor_requires_grad(before));
    tn_backward(squares(before));
    HAS(tn_tensor_grad(c), 20, 40);

    y = tn_mul_scalar(x, 2);
    tn_fill_(tn_narrow(y, 0, 0, 3), 7);
    tn_backward(squares(y));
    HAS(tn_tensor_grad(x), 0, 0, 0, 32);
    FINE();
}
END_TEST

START_TEST(views_that_operators_come_apart_into_know_their_base)
{
    TN_SCOPE;
    tn_tensor *c = LEAF(10, 20), *plain = tn_tensor_full(TN_SHAPE(2, 2), 1, TN_F32, NULL);

    tn_copy_(tn_select(plain, 0, 1), c);
    tn_mul_scalar_(tn_reshape(plain, TN_SHAPE(4)), 2);
    ck_assert(tn_tensor_requires_grad(plain));
    tn_backward(squares(plain));
    HAS(tn_tensor_grad(c), 80, 160);
    FINE();
}
END_TEST

START_TEST(views_of_views_and_two_dimensions_work_too)
{
    TN_SCOPE;
    tn_tensor *x = with_grad(
        tn_tensor_from((const float[]){ 1, 2, 3, 4, 5, 6 }, TN_F32, TN_SHAPE(2, 3)));
    tn_tensor *w = LEAF(2, 3), *y = tn_mul_scalar(x, 1),
              *column = tn_select(tn_transpose(y, 0, 1), 0, 1);

    tn_mul_(column, w); /* y[:, 1] *= w; the old column is kept for w */
    HAS(y, 1, 4, 3, 4, 15, 6);
    tn_backward(squares(y));
    HAS(tn_tensor_grad(w), 2 * 4 * 2, 2 * 15 * 5);
    HAS(tn_tensor_grad(x), 2, 2 * 4 * 2, 6, 8, 2 * 15 * 3, 12);
    tn_tensor_set_grad(x, TN_NONE);
    y = tn_mul_scalar(x, 1);
    tn_mul_(y, y);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "modified by an inplace operation");

    tn_tensor *c = VEC(2, 3);
    y = tn_mul_scalar(x, 1);
    column = tn_select(tn_transpose(y, 0, 1), 0, 1);
    tn_mul_(column, c);
    tn_backward(squares(y));
    HAS(tn_tensor_grad(x), 2, 2 * 4 * 2, 6, 8, 2 * 15 * 3, 12);
    tn_tensor_set_grad(x, TN_NONE);

    y = tn_mul_scalar(x, 1);
    tn_add_(tn_select(y, 0, 0), tn_select(x, 0, 1));
    tn_mul_scalar_(tn_select(y, 0, 0), 2); /* twice through views of one base */
    tn_backward(tn_sum(y));
    HAS(tn_tensor_grad(x), 2, 2, 2, 3, 3, 3);
    FINE();
}
END_TEST

START_TEST(what_cannot_be_right_is_refused)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y = tn_mul_scalar(x, 2), *blind;

    tn_grad_begin(false);
    blind = tn_narrow(y, 0, 0, 1);
    tn_grad_end();
    ck_assert_ptr_null(tn_mul_(blind, tn_narrow(x, 0, 0, 1)));
    FAILED(TN_ERR_RUNTIME, "A view was created in no_grad mode");
    tn_tensor *plain = VEC(1, 2, 3), *blinder;
    tn_grad_begin(false);
    blind = tn_narrow(plain, 0, 0, 2); /* nothing here has a gradient yet */
    tn_grad_end();
    blinder = tn_narrow(blind, 0, 0, 1);
    ck_assert_ptr_null(tn_mul_(blind, x));
    FAILED(TN_ERR_RUNTIME, "A view was created in no_grad mode");
    ck_assert_ptr_null(tn_mul_(blinder, tn_narrow(x, 0, 0, 1)));
    FAILED(TN_ERR_RUNTIME, "A view was created in no_grad mode");
    ck_assert_ptr_eq(tn_mul_scalar_(blind, 2), blind); /* no gradient is requested */
    HAS(plain, 2, 4, 3);
    ck_assert_ptr_null(tn_add_(tn_expand(VEC(1), TN_SHAPE(3)), VEC(1, 2, 3)));
    FAILED(TN_ERR_RUNTIME,
           "more than one element of the written-to tensor refers to a single memory location");
    tn_tensor *row = VEC(1, 2, 3, 4);
    ck_assert_ptr_null(tn_add_(tn_narrow(row, 0, 0, 3), tn_narrow(row, 0, 1, 3)));
    FAILED(TN_ERR_RUNTIME, "partly share memory");
    ck_assert_ptr_eq(tn_add_(row, row), row);
    HAS(row, 2, 4, 6, 8);
    ck_assert_ptr_null(tn_add_(VEC(1, 2), tn_tensor_full(TN_SHAPE(2, 2), 1, TN_F32, NULL)));
    FAILED(TN_ERR_RUNTIME, "written-to tensor: wrong shape, got [2]; expected [2, 2]");
    ck_assert_ptr_null(tn_mul_scalar_(tn_tensor_full(TN_SHAPE(2), 1, TN_I64, NULL), 0.5));
    FAILED(TN_ERR_RUNTIME, "result type float32 can't be cast to the desired output type int64");
    tn_tensor *half = tn_cast(VEC(1, 2), TN_F16);
    ck_assert_ptr_eq(tn_add_(half, VEC(1, 1)), half); /* narrower is allowed */
    ck_assert_int_eq(tn_tensor_dtype(half), TN_F16);
    HAS(half, 2, 3);
    FINE();
}
END_TEST

START_TEST(a_view_of_what_was_swapped_away_is_no_view_any_more)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *base = VEC(1, 1, 1), *view = tn_narrow(base, 0, 0, 2);

    ck_assert_int_eq(tn_tensor_swap(base, VEC(5)), TN_OK);
    tn_mul_(view, x);
    ck_assert(!tn_tensor_requires_grad(base));
    tn_backward(squares(view));
    HAS(tn_tensor_grad(x), 2, 4);
    FINE();
}
END_TEST

START_TEST(a_tensor_with_a_gradient_is_swapped_for_its_shape_only)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *other = VEC(1, 2, 3);

    tn_backward(squares(x));
    for (int turn = 0; turn < 2; turn++) {
        ck_assert_int_eq(turn ? tn_tensor_swap(x, other) : tn_tensor_swap(other, x),
                         TN_ERR_RUNTIME);
        FAILED(TN_ERR_RUNTIME, "gradient of shape [2]");
        HAS(x, 1, 2);
        HAS(other, 1, 2, 3);
    }
    ck_assert_int_eq(tn_tensor_swap(x, VEC(3, 4)), TN_OK);
    tn_backward(squares(x));
    HAS(tn_tensor_grad(x), 8, 12);
    ck_assert_int_eq(tn_tensor_set_grad(x, TN_NONE), TN_OK);
    ck_assert_int_eq(tn_tensor_swap(x, other), TN_OK);
    tn_backward(squares(x));
    HAS(tn_tensor_grad(x), 2, 4, 6);
    FINE();
}
END_TEST

START_TEST(retained_gradients_and_hooks_follow_their_rules_in_place)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y = tn_mul_scalar(x, 2);

    tn_tensor_retain_grad(y);
    tn_mul_scalar_(y, 3); /* retain_grad follows to the new maker */
    tn_backward(tn_sum(y));
    HAS(tn_tensor_grad(y), 1, 1);
    HAS(tn_tensor_grad(x), 6, 6);
    FINE();
}
END_TEST

/* ---- functions of a program ----------------------------------------------------- */

static int releases;

static void count_release(void *user)
{
    (void)user;
    releases++;
}

static tn_status cube(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)user;
    ck_assert(!tn_grad_enabled());
    out[0] = tn_mul(tn_mul(in[0], in[0]), in[0]);
    return tn_function_save(ctx, in[0]);
}

static tn_status cube_back(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                           tn_tensor **gin)
{
    tn_tensor *x = tn_function_saved(ctx, 0);

    (void)user;
    gin[0] = tn_mul(gout[0], tn_mul_scalar(tn_mul(x, x), 3));
    return TN_OK;
}

static tn_status expo(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)user;
    out[0] = tn_exp(in[0]);
    return tn_function_save(ctx, out[0]);
}

static tn_status expo_back(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                           tn_tensor **gin)
{
    (void)user;
    gin[0] = tn_mul(gout[0], tn_function_saved(ctx, 0));
    return TN_OK;
}

static tn_status wrong_back(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                            tn_tensor **gin)
{
    (void)ctx;
    (void)user;
    (void)gout;
    gin[0] = VEC(1, 2, 3, 4, 5);
    return TN_OK;
}

static const tn_function cube_function = {
    .name = "cube", .forward = cube, .backward = cube_back, .release = count_release
};
static const tn_function expo_function = { .name = "expo", .forward = expo, .backward = expo_back };
static const tn_function wrong_function = { .name = "wrong",
                                            .forward = cube,
                                            .backward = wrong_back };

START_TEST(a_program_has_functions_of_its_own)
{
    int64_t nodes = tn_grad_node_count();
    uint64_t scope = tn_scope_begin();
    tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    tn_tensor *x = LEAF(2, 3), *y, *loss, *g, *gg;

    releases = 0;
    ck_assert_int_eq(tn_function_call(&cube_function, NULL, &x, 1, &y, 1), TN_OK);
    ck_assert_str_eq(tn_tensor_grad_op(y), "cube");
    loss = tn_sum(y);
    ck_assert_int_eq(tn_grad(&loss, NULL, 1, &x, &g, 1, &create), TN_OK);
    HAS(g, 12, 27);
    loss = tn_sum(g);
    ck_assert_int_eq(tn_grad(&loss, NULL, 1, &x, &gg, 1, NULL), TN_OK);
    HAS(gg, 12, 18);
    ck_assert_int_eq(releases, 0);

    ck_assert_int_eq(tn_function_call(&expo_function, NULL, &x, 1, &y, 1),
                     TN_OK); /* saves its own output */
    loss = tn_sum(y);
    ck_assert_int_eq(tn_backward(loss), TN_OK);
    HAS(tn_tensor_grad(x), exp(2), exp(3));

    ck_assert_int_eq(tn_function_call(&wrong_function, NULL, &x, 1, &y, 1), TN_OK);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME,
           "function wrong returned an invalid gradient at index 0 - got [5] but expected shape "
           "compatible with [2]");

    tn_tensor *plain = VEC(2, 3);
    ck_assert_int_eq(tn_function_call(&cube_function, NULL, &plain, 1, &y, 1), TN_OK);
    ck_assert(!tn_tensor_requires_grad(y));
    ck_assert_int_eq(releases, 1);
    tn_scope_end(scope);
    ck_assert_int_eq(releases, 2);
    ck_assert_int_eq(tn_grad_node_count(), nodes);
    FINE();
}
END_TEST

static tn_status identity(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)ctx;
    (void)user;
    out[0] = in[0];
    return TN_OK;
}

static tn_status identity_back(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                               tn_tensor **gin)
{
    (void)ctx;
    (void)user;
    gin[0] = tn_neg(gout[0]);
    return TN_OK;
}

START_TEST(a_function_may_give_its_input_back)
{
    TN_SCOPE;
    static const tn_function reverse = { .name = "reverse",
                                         .forward = identity,
                                         .backward = identity_back };
    tn_tensor *x = LEAF(2, 3), *y;

    ck_assert_int_eq(tn_function_call(&reverse, NULL, &x, 1, &y, 1), TN_OK);
    ck_assert_ptr_ne(x, y);
    tn_backward(tn_sum(y));
    HAS(tn_tensor_grad(x), -1, -1);
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inplace");
    TCase *tests = tcase_create("inplace");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, an_operator_in_place_becomes_the_maker_of_what_it_changed);
    tcase_add_test(tests, a_plain_tensor_gets_a_history_from_what_is_written_into_it);
    tcase_add_test(tests, copies_cut_the_old_history_and_follow_the_new_one);
    tcase_add_test(tests, a_change_through_a_view_reaches_the_base);
    tcase_add_test(tests, what_is_copied_into_a_view_gets_its_part_of_the_gradient);
    tcase_add_test(tests, views_that_operators_come_apart_into_know_their_base);
    tcase_add_test(tests, views_of_views_and_two_dimensions_work_too);
    tcase_add_test(tests, what_cannot_be_right_is_refused);
    tcase_add_test(tests, a_view_of_what_was_swapped_away_is_no_view_any_more);
    tcase_add_test(tests, a_tensor_with_a_gradient_is_swapped_for_its_shape_only);
    tcase_add_test(tests, retained_gradients_and_hooks_follow_their_rules_in_place);
    tcase_add_test(tests, a_program_has_functions_of_its_own);
    tcase_add_test(tests, a_function_may_give_its_input_back);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

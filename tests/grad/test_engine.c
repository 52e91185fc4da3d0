/* SPDX-License-Identifier: MIT
 *
 * The gradient engine: the gradients of backward, the errors of backward, and the memory and graphs
 * after it. Names of rows (AUT-...) are those of the behaviour specification. */
#include "tests/op/suite.h"
#include "tests/spec/proves.h"

static tn_tensor *total(tn_tensor *x)
{
    return tn_sum(x);
}

START_TEST(backward_of_a_number_starts_with_one)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2, 3);

    ck_assert_int_eq(tn_backward(total(tn_mul(x, x))), TN_OK);
    HAS(tn_tensor_grad(x), 2, 4, 6);
    tn_tensor *one = LEAF(5);
    ck_assert_int_eq(tn_backward(tn_mul_scalar(one, 3)), TN_OK); /* the shape [1] is enough */
    HAS(tn_tensor_grad(one), 3);
    TN_PROVES("AUT-001", "AUT-002");
}
END_TEST

START_TEST(backward_of_more_than_a_number_needs_a_cotangent)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y = tn_mul_scalar(x, 2), *c = VEC(10, 20), *wrong = VEC(1, 2, 3);

    ck_assert_int_eq(tn_backward(y), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME,
           "grad can be implicitly created only for scalar outputs; this one has 2 elements");
    ck_assert_int_eq(tn_backward_from(&y, &wrong, 1, NULL), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "Mismatch in shape");
    ck_assert_int_eq(tn_backward_from(&y, &c, 1, NULL), TN_OK);
    HAS(tn_tensor_grad(x), 20, 40);
    HAS(c, 10, 20);
    y = tn_square(x);
    ck_assert_int_eq(tn_backward_with(y, wrong, false), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "Mismatch in shape");
    ck_assert_int_eq(tn_backward_with(y, c, true), TN_OK);
    ck_assert_int_eq(tn_backward_with(y, c, false), TN_OK);
    HAS(tn_tensor_grad(x), 60, 200);                                 /* 20, 40 and twice 2 x c */
    ck_assert_int_eq(tn_backward_with(y, c, false), TN_ERR_RUNTIME); /* the graph is freed */
    tn_error_clear();
    ck_assert_int_ne(tn_backward_with(y, NULL, false), TN_OK);
    ck_assert_int_ne(tn_error_code(), TN_OK);
    tn_error_clear();
    TN_PROVES("AUT-002");
}
END_TEST

START_TEST(gradients_of_leaves_add_up_until_they_are_cleared)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *first;

    tn_backward(total(tn_mul_scalar(x, 3)));
    first = tn_tensor_grad(x);
    tn_backward(total(tn_mul_scalar(x, 4)));
    HAS(tn_tensor_grad(x), 7, 7);
    ck_assert_ptr_eq(tn_tensor_grad(x), first);
    ck_assert_int_eq(tn_tensor_set_grad(x, TN_NONE), TN_OK);
    ck_assert_ptr_eq(tn_tensor_grad(x), TN_NONE);
    tn_backward(total(tn_mul_scalar(x, 4)));
    HAS(tn_tensor_grad(x), 4, 4);
    FINE();
    TN_PROVES("AUT-003");
}
END_TEST

START_TEST(the_first_gradient_never_is_a_tensor_of_the_user)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y = LEAF(3, 4), *sum = tn_add(x, y), *c = VEC(1, 1);

    ck_assert_int_eq(tn_backward_from(&sum, &c, 1, NULL), TN_OK);
    ck_assert(!tn_tensor_shares_storage(tn_tensor_grad(x), c));
    ck_assert(!tn_tensor_shares_storage(tn_tensor_grad(x), tn_tensor_grad(y)));
    tn_fill_(tn_tensor_grad(x), 9);
    HAS(c, 1, 1);
    HAS(tn_tensor_grad(y), 1, 1);
    FINE();
}
END_TEST

START_TEST(a_graph_runs_once_unless_it_is_retained)
{
    TN_SCOPE;
    tn_backward_options retain = { .size = sizeof retain, .retain_graph = 1 };
    tn_tensor *x = LEAF(2), *y = tn_mul(x, x);

    ck_assert_int_eq(tn_backward_from(&y, NULL, 1, &retain), TN_OK);
    ck_assert_int_eq(tn_backward(y), TN_OK);
    HAS(tn_tensor_grad(x), 8);
    ck_assert_int_eq(tn_backward(y), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "Trying to backward through the graph a second time");
    HAS(tn_tensor_grad(x), 8);
    TN_PROVES("AUT-004");
}
END_TEST

START_TEST(only_leaves_and_what_asked_for_it_keep_gradients)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(2), *y = tn_mul_scalar(x, 3), *z = tn_mul(y, y);

    ck_assert(tn_tensor_is_leaf(x) && !tn_tensor_is_leaf(y));
    ck_assert_str_eq(tn_tensor_grad_op(z), "mul");
    ck_assert_str_eq(tn_tensor_grad_op(x), "");
    ck_assert_int_eq(tn_tensor_retain_grad(y), TN_OK);
    tn_backward(z);
    HAS(tn_tensor_grad(x), 36);
    HAS(tn_tensor_grad(y), 12);
    ck_assert_ptr_eq(tn_tensor_grad(z), TN_NONE);
    tn_tensor_retain_grad(VEC(1));
    FAILED(TN_ERR_RUNTIME, "can't retain_grad");
    TN_PROVES("AUT-005");
}
END_TEST

START_TEST(without_grad_mode_nothing_is_recorded)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(2), *y;
    int64_t nodes = tn_grad_node_count();

    tn_grad_begin(false);
    y = tn_mul(x, x);
    ck_assert(!tn_tensor_requires_grad(y) && !tn_grad_enabled());
    tn_grad_begin(true);
    ck_assert(tn_tensor_requires_grad(tn_mul(x, x)) && tn_grad_enabled());
    tn_grad_end();
    ck_assert(!tn_grad_enabled());
    tn_grad_end();
    ck_assert(tn_grad_enabled());
    ck_assert_int_eq(tn_backward(y), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME,
           "element 0 of tensors does not require grad and does not have a grad_fn");
    ck_assert_int_eq(tn_grad_node_count(), nodes + 1);
    tn_mul(VEC(1), VEC(2));
    ck_assert_int_eq(tn_grad_node_count(), nodes + 1);
    TN_PROVES("AUT-006", "AUT-015");
}
END_TEST

START_TEST(detach_shares_memory_and_cuts_the_graph)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(2), *y = tn_mul(x, x), *d = tn_detach(y);

    ck_assert(tn_tensor_shares_storage(y, d));
    ck_assert(!tn_tensor_requires_grad(d) && tn_tensor_is_leaf(d));
    tn_backward(tn_mul(d, x));
    HAS(tn_tensor_grad(x), 4);
    FINE();
    TN_PROVES("AUT-007");
}
END_TEST

START_TEST(leaves_are_not_changed_in_place_while_gradients_are_recorded)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2);
    tn_narrow_options ignore = TN_NARROW_OPTIONS;

    (void)ignore;
    ck_assert_ptr_null(tn_mul_scalar_(x, 2));
    FAILED(TN_ERR_RUNTIME,
           "a leaf Variable that requires grad is being used in an in-place operation.");
    ck_assert_ptr_null(tn_copy_(x, VEC(1, 1)));
    FAILED(TN_ERR_RUNTIME,
           "a leaf Variable that requires grad is being used in an in-place operation.");
    ck_assert_ptr_null(tn_mul_scalar_(tn_narrow(x, 0, 0, 1), 2));
    FAILED(TN_ERR_RUNTIME,
           "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    HAS(x, 1, 2);
    tn_grad_begin(false);
    ck_assert_ptr_eq(tn_mul_scalar_(x, 2), x);
    tn_grad_end();
    HAS(x, 2, 4);
    ck_assert(tn_tensor_is_leaf(x) && tn_tensor_requires_grad(x));
    TN_PROVES("AUT-008");
}
END_TEST

START_TEST(what_was_saved_and_then_changed_is_an_error)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y = tn_mul_scalar(x, 1), *z = tn_mul(y, y), *e = tn_exp(x);

    tn_add_scalar_(y, 1);
    ck_assert_int_eq(tn_backward(total(z)), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME,
           "one of the variables needed for gradient computation has been modified by an inplace "
           "operation");
    tn_mul_scalar_(e, 2); /* the saved output */
    ck_assert_int_eq(tn_backward(total(e)), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "is at version 1; expected version 0");
    ck_assert_ptr_eq(tn_tensor_grad(x), TN_NONE);
    TN_PROVES("AUT-009");
}
END_TEST

START_TEST(what_was_changed_but_is_not_needed_does_not_matter)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *c = VEC(3, 4), *y = tn_mul_scalar(x, 1), *z = tn_mul(y, c);

    tn_add_scalar_(y, 1); /* only the gradient of c would need y */
    ck_assert_int_eq(tn_backward(total(z)), TN_OK);
    HAS(tn_tensor_grad(x), 3, 4);
    FINE();
}
END_TEST

START_TEST(gradients_of_broadcast_operands_have_their_shape)
{
    TN_SCOPE;
    tn_tensor *x = with_grad(tn_tensor_full(TN_SHAPE(3, 2), 1, TN_F32, NULL)), *b = LEAF(1, 2),
              *s = with_grad(tn_tensor_full(TN_SCALAR_SHAPE, 2, TN_F32, NULL));

    tn_backward(total(tn_mul(tn_add(x, b), s)));
    HAS(tn_tensor_grad(b), 6, 6);
    HAS(tn_tensor_grad(s), 6 + 9);
    ck_assert_int_eq(tn_tensor_ndim(tn_tensor_grad(s)), 0);
    ck_assert_int_eq(tn_tensor_ndim(tn_tensor_grad(b)), 1);
    FINE();
    TN_PROVES("AUT-010");
}
END_TEST

START_TEST(a_shared_parameter_gets_both_contributions)
{
    TN_SCOPE;
    tn_tensor *w = LEAF(3), *y = tn_mul(w, w);

    tn_backward(tn_add(tn_mul(y, w), w)); /* w^3 + w */
    HAS(tn_tensor_grad(w), 28);
    FINE();
    TN_PROVES("AUT-011");
}
END_TEST

START_TEST(only_floats_can_require_gradients)
{
    TN_SCOPE;
    tn_tensor *i = tn_tensor_full(TN_SHAPE(2), 1, TN_I64, NULL), *x = LEAF(1, 2),
              *y = tn_mul_scalar(x, 2);

    ck_assert_int_eq(tn_tensor_set_requires_grad(i, true), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME,
           "only Tensors of floating point and complex dtype can require gradients");
    ck_assert_int_eq(tn_tensor_set_requires_grad(y, false), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "you can only change requires_grad flags of leaf variables");
    ck_assert_int_eq(tn_tensor_set_grad(x, VEC(1, 2, 3)), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "assigned grad has");
    ck_assert_int_eq(tn_tensor_set_grad(x, tn_cast(VEC(1, 2), TN_F64)), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "assigned grad has");
    ck_assert_int_eq(tn_tensor_set_grad(x, VEC(1, 2)), TN_OK);
    HAS(tn_tensor_grad(x), 1, 2);
    TN_PROVES("AUT-012", "AUT-013");
}
END_TEST

START_TEST(gradients_arrive_in_the_dtype_of_the_input)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *d = with_grad(tn_cast(VEC(3, 4), TN_F64)), *y = tn_mul(x, d);

    ck_assert_int_eq(tn_tensor_dtype(y), TN_F64);
    tn_backward(total(y));
    ck_assert_int_eq(tn_tensor_dtype(tn_tensor_grad(x)), TN_F32);
    ck_assert_int_eq(tn_tensor_dtype(tn_tensor_grad(d)), TN_F64);
    HAS(tn_tensor_grad(x), 3, 4);
    FINE();
}
END_TEST

START_TEST(the_graph_goes_after_backward_and_with_its_tensors)
{
    int64_t nodes = tn_grad_node_count();
    uint64_t scope = tn_scope_begin();
    tn_memory_stats before, after;
    const tn_device *device = tn_default_device();
    tn_tensor *x = with_grad(tn_tensor_full(TN_SHAPE(1000), 1, TN_F32, NULL)), *loss;

    uint64_t inner = tn_scope_begin();
    loss = total(tn_mul(tn_mul_scalar(x, 2), tn_mul_scalar(x, 3)));
    tn_scope_end_with(inner, &loss, 1);
    tn_device_memory(device, &before);
    ck_assert_int_gt(tn_grad_node_count(), nodes);
    tn_backward(loss); /* what was saved is free, the gradient is new */
    tn_device_memory(device, &after);
    ck_assert_int_lt(after.live, before.live);
    tn_scope_end(scope);
    ck_assert_int_eq(tn_grad_node_count(), nodes);
    FINE();
    TN_PROVES("AUT-016");
}
END_TEST

static tn_status double_it(void *user, tn_tensor *gradient, tn_tensor **replacement)
{
    ++*(int *)user;
    *replacement = tn_mul_scalar(gradient, 2);
    return TN_OK;
}

static tn_status fail_it(void *user, tn_tensor *gradient, tn_tensor **replacement)
{
    (void)user;
    (void)gradient;
    (void)replacement;
    return tn_fail(TN_ERR_VALUE, "no gradient today");
}

static void released(void *user)
{
    *(int *)user += 100;
}

START_TEST(hooks_see_and_replace_gradients)
{
    TN_SCOPE;
    int calls = 0, others = 0;
    tn_tensor *x = LEAF(1, 2), *y = tn_mul_scalar(x, 3), *g;
    uint64_t handle = tn_tensor_hook(y, double_it, &calls, released);
    uint64_t on_leaf = tn_tensor_hook(x, double_it, &others, NULL);

    tn_tensor_retain_grad(y);
    tn_backward(total(y));
    HAS(tn_tensor_grad(x), 12, 12);
    HAS(tn_tensor_grad(y), 2, 2);
    ck_assert_int_eq(calls, 1);
    ck_assert(tn_hook_remove(handle));
    ck_assert_int_eq(calls, 101);
    ck_assert(!tn_hook_remove(handle));
    y = tn_mul_scalar(x, 1);
    y = total(y);
    ck_assert_int_eq(tn_grad(&y, NULL, 1, &x, &g, 1, NULL), TN_OK);
    HAS(g, 2, 2); /* the leaf's hook doubles it */
    ck_assert(tn_hook_remove(on_leaf));
    ck_assert_int_eq(others, 2);
    tn_tensor_hook(x, fail_it, NULL, NULL);
    y = total(x);
    ck_assert_int_eq(tn_backward(y), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "no gradient today");
    ck_assert_uint_eq(tn_tensor_hook(VEC(1), double_it, &calls, NULL), 0);
    FAILED(TN_ERR_RUNTIME, "cannot register a hook on a tensor that doesn't require gradient");
    TN_PROVES("AUT-017");
}
END_TEST

START_TEST(tn_grad_returns_what_was_asked_for_and_nothing_else)
{
    TN_SCOPE;
    tn_backward_options loose = { .size = sizeof loose, .allow_unused = 1, .retain_graph = 1 };
    tn_tensor *x = LEAF(2), *y = LEAF(3), *unused = LEAF(1), *middle = tn_mul(x, y),
              *z = tn_mul(middle, middle);
    tn_tensor *asked[3] = { x, middle, unused }, *g[3];

    ck_assert_int_eq(tn_grad(&z, NULL, 1, asked, g, 3, &loose), TN_OK);
    HAS(g[0], 36);
    HAS(g[1], 12);
    ck_assert_ptr_eq(g[2], TN_NONE);
    ck_assert_ptr_eq(tn_tensor_grad(x), TN_NONE);
    ck_assert_ptr_eq(tn_tensor_grad(y), TN_NONE);
    loose.allow_unused = 0;
    ck_assert_int_eq(tn_grad(&z, NULL, 1, asked, g, 3, &loose), TN_ERR_RUNTIME);
    ck_assert_ptr_null(g[0]);
    FAILED(TN_ERR_RUNTIME, "appears to not have been used in the graph");
    tn_tensor *plain = VEC(1);
    ck_assert_int_eq(tn_grad(&z, NULL, 1, &plain, g, 1, &loose), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "One of the differentiated Tensors does not require grad");
}
END_TEST

START_TEST(derivatives_can_be_differentiated_again)
{
    TN_SCOPE;
    tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    tn_tensor *x = LEAF(2, 3), *y = total(tn_mul(tn_mul(x, x), x)), *g, *s, *gg;

    ck_assert_int_eq(tn_grad(&y, NULL, 1, &x, &g, 1, &create), TN_OK);
    HAS(g, 12, 27);
    s = total(g);
    ck_assert_int_eq(tn_grad(&s, NULL, 1, &x, &gg, 1, &create), TN_OK);
    HAS(gg, 12, 18);
    s = total(gg);
    ck_assert_int_eq(tn_grad(&s, NULL, 1, &x, &g, 1, NULL), TN_OK);
    HAS(g, 6, 6);
    y = total(tn_exp(x)); /* a saved output takes part */
    ck_assert_int_eq(tn_grad(&y, NULL, 1, &x, &g, 1, &create), TN_OK);
    s = total(g);
    ck_assert_int_eq(tn_grad(&s, NULL, 1, &x, &gg, 1, NULL), TN_OK);
    HAS(gg, exp(2), exp(3));
    y = total(tn_sigmoid(x));
    create.retain_graph = 1;
    ck_assert_int_eq(tn_backward_from(&y, NULL, 1, &create), TN_OK);
    ck_assert(tn_tensor_requires_grad(tn_tensor_grad(x)));
    tn_tensor_set_grad(x, TN_NONE); /* the gradient holds the graph, which holds the leaf */
    FINE();
}
END_TEST

/* The second gradient is 3 x^2 once more; only that one is recorded. */
START_TEST(a_recorded_gradient_is_added_to_one_that_is_not)
{
    TN_SCOPE;
    tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    tn_tensor *x = LEAF(2, 3), *first, *y, *s, *gg;

    ck_assert_int_eq(tn_backward(total(tn_mul(tn_mul(x, x), x))), TN_OK);
    first = tn_tensor_keep(tn_tensor_grad(x));
    ck_assert(!tn_tensor_requires_grad(first));
    y = total(tn_mul(tn_mul(x, x), x));
    ck_assert_int_eq(tn_backward_from(&y, NULL, 1, &create), TN_OK);
    HAS(tn_tensor_grad(x), 24, 54);
    HAS(first, 12, 27);
    ck_assert(tn_tensor_requires_grad(tn_tensor_grad(x)));
    s = total(tn_tensor_grad(x));
    ck_assert_int_eq(tn_grad(&s, NULL, 1, &x, &gg, 1, NULL), TN_OK);
    HAS(gg, 12, 18);
    tn_tensor_drop(first);
    tn_tensor_set_grad(x, TN_NONE); /* the gradient holds the graph, which holds the leaf */
    FINE();
}
END_TEST

/* The number of operators in a long chain; fewer with TENON_CHECK or valgrind, which are slow. */
static int chain_length(void)
{
    const char *preload = getenv("LD_PRELOAD");

    if (getenv("TENON_CHECK") != NULL || (preload != NULL && strstr(preload, "vgpreload") != NULL))
        return 20000;
    return 1000000;
}

START_TEST(chains_of_a_million_nodes_need_no_stack)
{
    uint64_t scope = tn_scope_begin();
    int64_t nodes = tn_grad_node_count();
    tn_tensor *x = LEAF(1), *y = x;
    int length = chain_length();

    for (int i = 0; i < length; i++) {
        uint64_t inner = tn_scope_begin();

        y = tn_add_scalar(y, 1);
        tn_scope_end_with(inner, &y, 1);
        if ((i & 1023) == 1023) { /* what the scope holds does not pile up */
            tn_keep(y);
            tn_keep(x);
            tn_scope_end(scope);
            scope = tn_scope_begin();
            tn_tensor_to_scope(y);
            tn_tensor_to_scope(x);
        }
    }
    ck_assert_int_ge(tn_grad_node_count(), length);
    ck_assert_int_eq(tn_backward(y), TN_OK);
    HAS(tn_tensor_grad(x), 1);
    tn_scope_end(scope);
    ck_assert_int_eq(tn_grad_node_count(), nodes);
    FINE();
}
END_TEST

/* Indices (argmax) and comparisons of tensors that require gradients are integers and bools, which
 * require no gradients. */
START_TEST(results_that_are_no_floats_record_nothing)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 5, 3), *values, *places;

    ck_assert_int_eq(tn_topk(x, 2, &values, &places, 0), TN_OK);
    ck_assert(tn_tensor_requires_grad(values));
    ck_assert(!tn_tensor_requires_grad(places));
    ck_assert(!tn_tensor_requires_grad(tn_argmax(x)));
    ck_assert(!tn_tensor_requires_grad(tn_cast(x, TN_I64)));
    ck_assert(!tn_tensor_requires_grad(tn_gt(x, x)));
    ck_assert(tn_tensor_requires_grad(tn_cast(x, TN_F64)));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine");
    TCase *tests = tcase_create("engine");

    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, backward_of_a_number_starts_with_one);
    tcase_add_test(tests, backward_of_more_than_a_number_needs_a_cotangent);
    tcase_add_test(tests, gradients_of_leaves_add_up_until_they_are_cleared);
    tcase_add_test(tests, the_first_gradient_never_is_a_tensor_of_the_user);
    tcase_add_test(tests, a_graph_runs_once_unless_it_is_retained);
    tcase_add_test(tests, only_leaves_and_what_asked_for_it_keep_gradients);
    tcase_add_test(tests, without_grad_mode_nothing_is_recorded);
    tcase_add_test(tests, detach_shares_memory_and_cuts_the_graph);
    tcase_add_test(tests, leaves_are_not_changed_in_place_while_gradients_are_recorded);
    tcase_add_test(tests, what_was_saved_and_then_changed_is_an_error);
    tcase_add_test(tests, what_was_changed_but_is_not_needed_does_not_matter);
    tcase_add_test(tests, gradients_of_broadcast_operands_have_their_shape);
    tcase_add_test(tests, a_shared_parameter_gets_both_contributions);
    tcase_add_test(tests, only_floats_can_require_gradients);
    tcase_add_test(tests, results_that_are_no_floats_record_nothing);
    tcase_add_test(tests, gradients_arrive_in_the_dtype_of_the_input);
    tcase_add_test(tests, the_graph_goes_after_backward_and_with_its_tensors);
    tcase_add_test(tests, hooks_see_and_replace_gradients);
    tcase_add_test(tests, tn_grad_returns_what_was_asked_for_and_nothing_else);
    tcase_add_test(tests, derivatives_can_be_differentiated_again);
    tcase_add_test(tests, a_recorded_gradient_is_added_to_one_that_is_not);
    tcase_add_test(tests, chains_of_a_million_nodes_need_no_stack);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

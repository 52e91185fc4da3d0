/* SPDX-License-Identifier: MIT
 *
 * Hooks that run after a backward has added a gradient to that of a leaf. The expected numbers are
 * those of PyTorch for the same program. */
#include "core/base/internal.h"
#include "tests/op/suite.h"

static tn_tensor *total(tn_tensor *x)
{
    return tn_sum(x);
}

typedef struct seen {
    int calls, empty, released;
    double sum;
    tn_tensor *tensor; /* not owned */
    bool scarce;       /* the test makes allocations fail: the hook stops this before it reads */
    uint64_t made;     /* number of allocations before the hook ended these failures */
} seen;

static tn_status look(void *user, tn_tensor *gradient)
{
    seen *s = user;

    s->calls++;
    if (gradient == TN_NONE) {
        s->empty++;
        return TN_OK;
    }
    if (s->scarce)
        s->made = tn__memory_fail(0);
    s->sum = at(gradient, 0) + at(gradient, 1);
    return s->tensor == NULL || gradient == tn_tensor_grad(s->tensor)
               ? TN_OK
               : tn_fail(TN_ERR_VALUE, "another gradient than the tensor's");
}

static tn_status take(void *user, tn_tensor *gradient)
{
    seen *s = user;

    s->calls++;
    return gradient == TN_NONE ? TN_OK : tn_tensor_set_grad(s->tensor, TN_NONE);
}

static tn_status refuse(void *user, tn_tensor *gradient)
{
    (void)user;
    (void)gradient;
    return tn_fail(TN_ERR_VALUE, "no gradient today");
}

static tn_status ten_times(void *user, tn_tensor *gradient, tn_tensor **replacement)
{
    (void)user;
    *replacement = tn_mul_scalar(gradient, 10);
    return *replacement != NULL ? TN_OK : tn_error_code();
}

static void released(void *user)
{
    ((seen *)user)->released++;
}

START_TEST(the_hook_comes_after_the_sum_and_once_for_each_backward)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y, *g;
    seen s = { .tensor = x };
    uint64_t handle = tn_tensor_hook_added(x, look, &s, released);

    ck_assert_uint_ne(handle, 0);
    tn_tensor_hook(x, ten_times, NULL, NULL); /* registered later, but runs before the addition */
    ck_assert_int_eq(tn_backward(total(tn_mul_scalar(x, 3))), TN_OK);
    ck_assert_int_eq(s.calls, 1);
    ck_assert_double_eq(s.sum, 60);
    y = tn_add(total(tn_mul_scalar(x, 2)), total(tn_mul_scalar(x, 4)));
    ck_assert_int_eq(tn_backward(y), TN_OK);
    ck_assert_int_eq(s.calls, 2);
    ck_assert_double_eq(s.sum, 180);
    HAS(tn_tensor_grad(x), 90, 90);
    y = total(tn_mul_scalar(x, 2));
    ck_assert_int_eq(tn_grad(&y, NULL, 1, &x, &g, 1, NULL), TN_OK);
    HAS(g, 20, 20);
    ck_assert_int_eq(s.calls, 2); /* nothing was added up */
    ck_assert(tn_hook_remove(handle));
    ck_assert_int_eq(s.released, 1);
    ck_assert_int_eq(tn_backward(total(x)), TN_OK);
    ck_assert_int_eq(s.calls, 2);
    ck_assert(!tn_hook_remove(handle));
}
END_TEST

START_TEST(a_hook_may_take_the_gradient_away)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2);
    seen first = { .tensor = x }, second = { .tensor = x };

    tn_tensor_hook_added(x, take, &first, NULL);
    tn_tensor_hook_added(x, look, &second, NULL);
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(tn_backward(total(tn_mul_scalar(x, 3))), TN_OK);
        ck_assert_int_eq(first.calls, i);
        ck_assert_int_eq(second.empty, i);
        ck_assert_ptr_eq(tn_tensor_grad(x), TN_NONE);
    }
    FINE();
}
END_TEST

static tn_status step(void *user, tn_tensor *gradient)
{
    tn_tensor *w = user;

    ck_assert(!tn_grad_enabled()); /* the mode of the backward */
    if (tn_sub_(w, tn_mul_scalar(gradient, 0.125)) == NULL)
        return tn_error_code();
    return tn_tensor_set_grad(w, TN_NONE);
}

START_TEST(a_parameter_can_be_updated_during_backward)
{
    TN_SCOPE;
    tn_tensor *w = LEAF(1, 2);

    tn_tensor_hook_added(w, step, w, NULL);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(tn_backward(total(tn_mul(w, w))), TN_OK);
        ck_assert_ptr_eq(tn_tensor_grad(w), TN_NONE);
    }
    HAS(w, 0.421875, 0.84375);
    FINE();
}
END_TEST

START_TEST(a_leaf_that_requires_none_any_more_has_nothing_to_show)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y = LEAF(1, 1), *loss;
    seen s = { 0 };

    tn_tensor_hook_added(x, look, &s, NULL);
    loss = total(tn_mul(x, y));
    ck_assert_int_eq(tn_tensor_set_requires_grad(x, false), TN_OK);
    ck_assert_int_eq(tn_backward(loss), TN_OK);
    ck_assert_int_eq(s.calls, 1);
    ck_assert_int_eq(s.empty, 1);
    HAS(tn_tensor_grad(y), 1, 2);
    FINE();
}
END_TEST

START_TEST(a_hook_that_fails_stops_backward_after_the_sum)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 1);

    tn_tensor_hook_added(x, refuse, NULL, NULL);
    ck_assert_int_eq(tn_backward(total(tn_mul_scalar(x, 2))), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "no gradient today");
    HAS(tn_tensor_grad(x), 2, 2);
}
END_TEST

START_TEST(only_leaves_that_require_gradients_are_hooked)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2);
    seen s = { 0 };

    ck_assert_uint_eq(tn_tensor_hook_added(VEC(1, 2), look, &s, released), 0);
    FAILED(TN_ERR_RUNTIME, "cannot register a hook on a tensor that doesn't require gradient");
    ck_assert_uint_eq(tn_tensor_hook_added(tn_mul_scalar(x, 2), look, &s, released), 0);
    FAILED(TN_ERR_RUNTIME, "post accumulate grad hooks cannot be registered on non-leaf tensors");
    ck_assert_uint_eq(tn_tensor_hook_added(x, NULL, &s, released), 0);
    FAILED(TN_ERR_VALUE, "tn_tensor_hook_added: hook: it is NULL");
    ck_assert_uint_eq(tn_tensor_hook(x, NULL, &s, released), 0);
    FAILED(TN_ERR_VALUE, "tn_tensor_hook: hook: it is NULL");
    ck_assert_int_eq(s.released, 0); /* what was not taken is the caller's */
}
END_TEST

START_TEST(hooks_go_with_their_leaf)
{
    uint64_t scope = tn_scope_begin();
    seen s = { 0 };

    tn_tensor_hook_added(LEAF(1, 2), look, &s, released);
    ck_assert_int_eq(s.released, 0);
    tn_scope_end(scope);
    ck_assert_int_eq(s.released, 1);
    FINE();
}
END_TEST

START_TEST(memory_that_runs_out_leaves_whole_gradients)
{
    for (uint64_t nth = 1;; nth++) {
        seen s = { .scarce = true };
        TN_SCOPE; /* ends before `s` does, which the graph releases */
        tn_tensor *x = LEAF(1, 2), *loss = total(tn_mul(x, x));
        uint64_t handle, made;
        tn_status status = TN_OK;

        s.tensor = x;
        tn__memory_fail(nth);
        handle = tn_tensor_hook_added(x, look, &s, released);
        if (handle != 0)
            status = tn_backward(loss);
        made = tn__memory_fail(0);
        if (s.calls > 0)
            made = s.made;
        if (handle != 0 && status == TN_OK && made < nth) {
            ck_assert_int_eq(s.calls, 1);
            ck_assert_double_eq(s.sum, 6);
            ck_assert_uint_ge(nth, 3);
            return;
        }
        if (handle == 0 || status != TN_OK) {
            ck_assert_int_eq(tn_error_code(), TN_ERR_MEMORY);
            tn_error_clear();
        }
        if (tn_tensor_grad(x) != TN_NONE)
            HAS(tn_tensor_grad(x), 2, 4);
        else
            ck_assert_int_eq(s.calls, 0);
        ck_assert_uint_lt(nth, 500);
    }
}
END_TEST

static tn_status untouched(void *user, tn_tensor *gradient, tn_tensor **replacement)
{
    (void)user;
    *replacement = gradient;
    return TN_OK;
}

/* If memory runs out after an in-place operator has changed values, their gradient is unknown:
 * hooks and backward are refused. */
START_TEST(nothing_hangs_on_a_history_that_was_lost)
{
    int lost = 0;

    for (uint64_t nth = 1, made = 1; nth == 1 || made >= nth - 1; nth++) {
        TN_SCOPE;
        tn_tensor *x = LEAF(1, 2), *c = VEC(3, 4), *y = tn_mul_scalar(x, 2);

        tn__memory_fail(nth);
        tn_mul_(y, c);
        made = tn__memory_fail(0);
        tn_error_clear();
        ck_assert_uint_lt(nth, 100);
        if (strcmp(tn_tensor_grad_op(y), "in-place") != 0)
            continue;
        lost++;
        ck_assert_int_eq(tn_tensor_retain_grad(y), TN_ERR_RUNTIME);
        FAILED(TN_ERR_RUNTIME, "its history was lost when memory ran out");
        ck_assert_uint_eq(tn_tensor_hook(y, untouched, NULL, NULL), 0);
        FAILED(TN_ERR_RUNTIME, "its history was lost when memory ran out");
        ck_assert_int_ne(tn_backward(tn_sum(y)), TN_OK);
        FAILED(TN_ERR_RUNTIME, "changed is lost");
        ck_assert_ptr_eq(tn_tensor_grad(x), TN_NONE);
    }
    ck_assert_int_gt(lost, 0);
}
END_TEST

/* ---- backward inside of backward ---- */

struct nest {
    tn_tensor *loss; /* the same graph again; NULL: a new one */
    int left, calls;
};

static tn_status backward_again(void *user, tn_tensor *gradient, tn_tensor **replacement);

/* Runs backward of a new graph with a new leaf, whose hook starts the next nested backward. */
static tn_status deeper(struct nest *n)
{
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2), 3, TN_F32, NULL);

    if (x == NULL || tn_tensor_set_requires_grad(x, true) != TN_OK)
        return tn_error_code();
    if (tn_grad_begin(true) != TN_OK)
        return tn_error_code();
    tn_tensor_hook(x, backward_again, n, NULL);
    tn_status status = tn_backward(total(tn_mul(x, x)));
    tn_grad_end();
    if (status == TN_OK && at(tn_tensor_grad(x), 0) != 6)
        return tn_fail(TN_ERR_VALUE, "another gradient than that of x * x");
    return status;
}

static tn_status backward_again(void *user, tn_tensor *gradient, tn_tensor **replacement)
{
    const tn_backward_options keep = { .size = sizeof keep, .retain_graph = 1 };
    struct nest *n = user;

    *replacement = gradient;
    n->calls++;
    if (n->loss != NULL)
        return tn_backward_from(&n->loss, NULL, 1, &keep);
    return n->left-- > 0 ? deeper(n) : TN_OK;
}

START_TEST(backward_of_the_same_graph_in_its_hook_ends_with_words)
{
    const tn_backward_options keep = { .size = sizeof keep, .retain_graph = 1 };
    struct nest n = { 0 };
    TN_SCOPE;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2), 3, TN_F32, NULL);
    ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
    tn_tensor *loss = total(tn_mul(x, x));

    n.loss = loss;
    ck_assert_uint_ne(tn_tensor_hook(x, backward_again, &n, NULL), 0);
    for (int turn = 0; turn < 3; turn++) { /* it is as before afterwards */
        n.calls = 0;
        ck_assert_int_eq(tn_backward_from(&loss, NULL, 1, &keep), TN_ERR_RUNTIME);
        ck_assert_ptr_nonnull(strstr(tn_error_text(), "backward: 60 calls are nested"));
        tn_error_clear();
        ck_assert_int_eq(n.calls, 60);
        ck_assert(tn_grad_enabled());
    }
}
END_TEST

START_TEST(backward_of_other_graphs_nests_in_hooks)
{
    struct nest n = { .left = 50 };
    TN_SCOPE;
    ck_assert_msg(deeper(&n) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(n.calls, 51);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hooks");
    TCase *tests = tcase_create("hooks");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_hook_comes_after_the_sum_and_once_for_each_backward);
    tcase_add_test(tests, a_hook_may_take_the_gradient_away);
    tcase_add_test(tests, a_parameter_can_be_updated_during_backward);
    tcase_add_test(tests, a_leaf_that_requires_none_any_more_has_nothing_to_show);
    tcase_add_test(tests, a_hook_that_fails_stops_backward_after_the_sum);
    tcase_add_test(tests, only_leaves_that_require_gradients_are_hooked);
    tcase_add_test(tests, hooks_go_with_their_leaf);
    tcase_add_test(tests, nothing_hangs_on_a_history_that_was_lost);
    tcase_add_test(tests, memory_that_runs_out_leaves_whole_gradients);
    tcase_add_test(tests, backward_of_the_same_graph_in_its_hook_ends_with_words);
    tcase_add_test(tests, backward_of_other_graphs_nests_in_hooks);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

/* SPDX-License-Identifier: MIT
 *
 * A program's own functions: tensors that they save and mark, arguments that are not tensors,
 * outputs without a gradient, and derivatives of derivatives. */
#include "core/base/internal.h"
#include "tests/op/suite.h"

typedef struct scaling {
    double factor;
    int *released;
    bool wants[2];
} scaling;

static void released(void *user)
{
    ++*((scaling *)user)->released;
}

/* x * factor * y: the factor is an argument that is not a tensor, y may be absent */
static tn_status scale(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out)
{
    scaling *s = user;

    out[0] = tn_mul_scalar(in[0], s->factor);
    if (in[1] != TN_NONE)
        out[0] = tn_mul(out[0], in[1]);
    s->wants[0] = tn_function_needs_grad(ctx, 0);
    s->wants[1] = tn_function_needs_grad(ctx, 1);
    if (tn_function_save(ctx, in[0]) != TN_OK)
        return tn_error_code();
    return in[1] != TN_NONE ? tn_function_save(ctx, in[1]) : TN_OK;
}

static tn_status scale_back(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                            tn_tensor **gin)
{
    scaling *s = user;
    tn_tensor *g = tn_mul_scalar(gout[0], s->factor);

    s->wants[0] = tn_function_needs_grad(ctx, 0);
    s->wants[1] = tn_function_needs_grad(ctx, 1);
    gin[0] = gin[1] = TN_NONE;
    if (s->wants[1]) {
        gin[0] = tn_mul(g, tn_function_saved(ctx, 1));
        gin[1] = tn_mul(g, tn_function_saved(ctx, 0));
    } else {
        gin[0] = g;
    }
    return gin[0] != NULL && gin[1] != NULL ? TN_OK : tn_error_code();
}

static const tn_function scale_function = {
    .name = "scale", .forward = scale, .backward = scale_back, .release = released
};

START_TEST(arguments_that_are_no_tensors_stand_in_user_and_go_with_the_graph)
{
    int count = 0;
    scaling s = { .factor = 3, .released = &count };
    TN_SCOPE;
    tn_tensor *in[2] = { LEAF(1, 2), TN_NONE }, *y;
    uint64_t scope;

    ck_assert_int_eq(tn_function_call(&scale_function, &s, in, 2, &y, 1), TN_OK);
    ck_assert(s.wants[0] && !s.wants[1]);
    HAS(y, 3, 6);
    scope = tn_scope_begin();
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    tn_scope_end(scope);
    ck_assert(s.wants[0] && !s.wants[1]);
    HAS(tn_tensor_grad(in[0]), 3, 3);
    ck_assert_int_eq(count, 0);
    tn_detach_(y);
    ck_assert_int_eq(count, 1);
    FINE();
    tn_function_needs_grad(NULL, 0);
    FAILED(TN_ERR_INDEX, "input: out of range, got 0; there is none");
}
END_TEST

START_TEST(what_a_function_saved_is_checked_for_changes)
{
    int count = 0;
    scaling s = { .factor = 3, .released = &count };
    TN_SCOPE; /* ends before `s` does, which the graph releases */
    tn_tensor *x = LEAF(1, 2), *mine = VEC(5, 6), *in[2], *y;

    in[0] = tn_mul_scalar(x, 1);
    in[1] = with_grad(mine);
    ck_assert_int_eq(tn_function_call(&scale_function, &s, in, 2, &y, 1), TN_OK);
    tn_mul_(in[0], VEC(2, 2));
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "modified by an inplace operation");
}
END_TEST

START_TEST(flags_of_a_function_that_are_unknown_are_refused)
{
    int count = 0;
    scaling s = { .factor = 3, .released = &count };
    TN_SCOPE;
    tn_tensor *in[2] = { LEAF(1, 2), TN_NONE }, *y;
    tn_function function = scale_function;

    function.flags = TN_FUNCTION_OPERATORS;
    ck_assert_int_eq(tn_function_call(&function, &s, in, 2, &y, 1), TN_OK);
    HAS(y, 3, 6);
    function.flags = 2;
    ck_assert_int_eq(tn_function_call(&function, &s, in, 2, &y, 1), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "flags: unknown, got 0x2; expected TN_FUNCTION_OPERATORS (1) or 0");
    function.flags = 0;
    function.reserved32 = 7;
    ck_assert_int_eq(tn_function_call(&function, &s, in, 2, &y, 1), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "reserved32: nonzero, got 7; expected 0");
}
END_TEST

START_TEST(a_call_that_fails_releases_what_it_was_given)
{
    int count = 0;
    scaling s = { .factor = 3, .released = &count };
    TN_SCOPE;
    tn_tensor *in[2] = { LEAF(1, 2), TN_NONE }, *y;

    ck_assert_int_eq(tn_function_call(&scale_function, &s, NULL, 2, &y, 1), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "tn_function_call: in");
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(tn_function_call(&scale_function, &s, in, 2, NULL, 1), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "tn_function_call: out");
    ck_assert_int_eq(count, 2);
    in[0] = NULL;
    ck_assert_int_eq(tn_function_call(&scale_function, &s, in, 2, &y, 1), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "scale: input 0: it is NULL");
    ck_assert_int_eq(count, 3);
}
END_TEST

static tn_status scaled(void *user, tn_tensor *const *in, tn_tensor **out)
{
    return tn_function_call(&scale_function, user, in, 2, out, 1);
}

START_TEST(a_function_can_be_differentiated_twice)
{
    int count = 0;
    scaling s = { .factor = 3, .released = &count };
    TN_SCOPE;
    double a[3] = { 0.3, -0.7, 1.1 }, b[3] = { 0.9, 0.2, -0.4 };
    tn_tensor *in[2] = { tn_tensor_from(a, TN_F64, TN_SHAPE(3)),
                         tn_tensor_from(b, TN_F64, TN_SHAPE(3)) };

    ck_assert_msg(tn_gradcheck(scaled, &s, in, 2, 1, 0, 0) == TN_OK, "%s", tn_error_text());
    ck_assert_msg(tn_gradgradcheck(scaled, &s, in, 2, 1, 0, 0) == TN_OK, "%s", tn_error_text());
}
END_TEST

/* ---- marks ---- */

typedef struct marks {
    bool bare;       /* backward gets no zeros for outputs without a gradient */
    bool got[2];     /* whether backward got a tensor for each output */
    bool say_return; /* forward returns the changed input itself, else a copy */
} marks;

/* out[0] = 2 x, out[1] = floor(x), which has no gradient */
static tn_status parts(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out)
{
    marks *m = user;

    out[0] = tn_mul_scalar(in[0], 2);
    out[1] = tn_floor(in[0]);
    if (m->bare && tn_function_set_materialize_grads(ctx, false) != TN_OK)
        return tn_error_code();
    return tn_function_mark_non_differentiable(ctx, out[1]);
}

static tn_status parts_back(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                            tn_tensor **gin)
{
    marks *m = user;

    (void)ctx;
    m->got[0] = gout[0] != TN_NONE;
    m->got[1] = gout[1] != TN_NONE;
    gin[0] = tn_mul_scalar(gout[0], 2);
    return gin[0] != NULL ? TN_OK : tn_error_code();
}

static const tn_function parts_function = { .name = "parts",
                                            .forward = parts,
                                            .backward = parts_back };

START_TEST(an_output_marked_so_requires_no_gradient)
{
    TN_SCOPE;
    marks m = { .bare = false };
    tn_tensor *x = LEAF(1.5F, 2.5F), *y[2];

    ck_assert_int_eq(tn_function_call(&parts_function, &m, &x, 1, y, 2), TN_OK);
    ck_assert(tn_tensor_requires_grad(y[0]) && !tn_tensor_requires_grad(y[1]));
    HAS(y[1], 1, 2);
    ck_assert_int_eq(tn_backward(tn_sum(y[0])), TN_OK);
    HAS(tn_tensor_grad(x), 2, 2);
    ck_assert(m.got[0] && m.got[1]); /* zeros for outputs without a gradient */
    m.bare = true;
    ck_assert_int_eq(tn_function_call(&parts_function, &m, &x, 1, y, 2), TN_OK);
    ck_assert_int_eq(tn_backward(tn_sum(y[0])), TN_OK);
    ck_assert(m.got[0] && !m.got[1]);
    FINE();
    ck_assert_int_eq(tn_function_mark_dirty(NULL, x), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "tn_function_mark_dirty: called outside of a function's forward");
    ck_assert_int_eq(tn_function_set_materialize_grads(NULL, true), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "outside of a function's forward");
}
END_TEST

/* x *= 2, in place */
static tn_status twice(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out)
{
    marks *m = user;

    if (tn_mul_(in[0], tn_tensor_full(TN_SHAPE(), 2, TN_F32, NULL)) == NULL)
        return tn_error_code();
    out[0] = m->say_return ? in[0] : tn_clone(in[0]);
    return tn_function_mark_dirty(ctx, in[0]);
}

static tn_status twice_back(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                            tn_tensor **gin)
{
    (void)ctx, (void)user;
    gin[0] = tn_mul_scalar(gout[0], 2);
    return gin[0] != NULL ? TN_OK : tn_error_code();
}

static const tn_function twice_function = { .name = "twice",
                                            .forward = twice,
                                            .backward = twice_back };

START_TEST(a_function_that_changes_an_input_is_its_maker)
{
    TN_SCOPE;
    marks m = { .say_return = true };
    tn_tensor *x = LEAF(1, 2, 3), *y = tn_mul_scalar(x, 5), *out, *part;

    ck_assert_int_eq(tn_function_call(&twice_function, &m, &y, 1, &out, 1), TN_OK);
    ck_assert_ptr_eq(out, y);
    ck_assert_str_eq(tn_tensor_grad_op(y), "twice");
    HAS(y, 10, 20, 30);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    HAS(tn_tensor_grad(x), 10, 10, 10);
    tn_tensor_set_grad(x, TN_NONE);

    y = tn_mul_scalar(x, 5); /* through a view: its base changes, too */
    part = tn_narrow(y, 0, 1, 1);
    ck_assert_int_eq(tn_function_call(&twice_function, &m, &part, 1, &out, 1), TN_OK);
    HAS(y, 5, 20, 15);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    HAS(tn_tensor_grad(x), 5, 10, 5);
    FINE();

    ck_assert_int_ne(tn_function_call(&twice_function, &m, &x, 1, &out, 1), TN_OK);
    FAILED(TN_ERR_RUNTIME, "a leaf Variable that requires grad is being used in an in-place");
    m.say_return = false;
    y = tn_mul_scalar(x, 5);
    ck_assert_int_ne(tn_function_call(&twice_function, &m, &y, 1, &out, 1), TN_OK);
    FAILED(TN_ERR_RUNTIME, "a tensor marked dirty is not among its outputs");
    ck_assert_ptr_null(out);
}
END_TEST

/* Memory that runs out anywhere in forward and backward: an error, no leak, and both work again. */
static tn_status whole(marks *m, tn_tensor *x)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *y = tn_mul_scalar(x, 5), *part = tn_narrow(y, 0, 1, 1), *out, *both[2];
    tn_status status = part == NULL ? tn_error_code()
                                    : tn_function_call(&twice_function, m, &part, 1, &out, 1);

    if (status == TN_OK)
        status = tn_function_call(&parts_function, m, &y, 1, both, 2);
    if (status == TN_OK)
        status = tn_backward(tn_sum(both[0]));
    tn_scope_end(scope);
    return status;
}

START_TEST(a_function_survives_memory_that_runs_out)
{
    TN_SCOPE;
    marks m = { .say_return = true };
    tn_tensor *x = LEAF(1, 2, 3);
    int64_t nodes = tn_grad_node_count();
    int failures = 0;

    ck_assert_int_eq(whole(&m, x), TN_OK);
    for (int64_t at = 1; at < 10000; at++) {
        tn_status status;

        tn_tensor_set_grad(x, TN_NONE);
        tn__memory_fail((uint64_t)at);
        status = whole(&m, x);
        tn__memory_fail(0);
        ck_assert_int_eq(tn_grad_node_count(), nodes);
        if (status == TN_OK && !tn_failed())
            break;
        ck_assert(tn_failed());
        tn_error_clear();
        failures++;
    }
    ck_assert_int_gt(failures, 5);
    HAS(tn_tensor_grad(x), 10, 20, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("function");
    TCase *all = tcase_create("all");

    tcase_add_test(all, arguments_that_are_no_tensors_stand_in_user_and_go_with_the_graph);
    tcase_add_test(all, what_a_function_saved_is_checked_for_changes);
    tcase_add_test(all, flags_of_a_function_that_are_unknown_are_refused);
    tcase_add_test(all, a_call_that_fails_releases_what_it_was_given);
    tcase_add_test(all, a_function_can_be_differentiated_twice);
    tcase_add_test(all, an_output_marked_so_requires_no_gradient);
    tcase_add_test(all, a_function_that_changes_an_input_is_its_maker);
    tcase_add_test(all, a_function_survives_memory_that_runs_out);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}

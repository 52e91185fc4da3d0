/* SPDX-License-Identifier: MIT
 *
 * Steps with a closure, hooks of optimizers, and gradients that are set to zero. */
#include "whole.h"

#include "core/plugin/internal.h"

/* ---- closures -------------------------------------------------------------------------------- */

struct problem {
    tn_tensor *parameter;
    tn_optimizer *optimizer;
    int calls;
    bool recorded, fails, drops;
};

/* The loss sum(p^2): the gradient is 2 p. */
static tn_tensor *loss_of(void *user)
{
    struct problem *problem = user;
    tn_tensor *loss;

    problem->calls++;
    problem->recorded = tn_grad_enabled();
    if (problem->drops)
        tn_optimizer_drop(problem->optimizer);
    problem->drops = false;
    if (problem->fails)
        return NULL;
    ck_assert_int_eq(tn_tensor_set_grad(problem->parameter, TN_NONE), TN_OK);
    loss = tn_sum(tn_square(problem->parameter));
    ck_assert_int_eq(tn_backward(loss), TN_OK);
    return loss;
}

static struct problem problem_new(const char *spec)
{
    TN_SCOPE;
    const double start[2] = { 1, -2 };
    struct problem problem = { 0 };

    problem.parameter = tn_tensor_keep(
        tn_parameter(tn_tensor_from(start, TN_F64, TN_SHAPE(2)), true));
    problem.optimizer = tn_optimizer_parse(&problem.parameter, 1, spec);
    ck_assert_msg(problem.optimizer != NULL, "%s", tn_error_text());
    return problem;
}

static void expect_parameter(const struct problem *problem, double first, double second)
{
    double got[2];

    ck_assert_int_eq(tn_tensor_copy_out(problem->parameter, got, sizeof got), TN_OK);
    ck_assert_double_eq_tol(got[0], first, 1e-12);
    ck_assert_double_eq_tol(got[1], second, 1e-12);
}

START_TEST(a_step_with_a_closure_evaluates_the_loss_and_returns_it)
{
    TN_SCOPE;
    struct problem problem = problem_new("SGD(lr=0.25)");
    const void *storage = tn_tensor_data(problem.parameter);
    tn_tensor *loss;

    tn_grad_begin(false);
    loss = tn_optimizer_step_with(problem.optimizer, loss_of, &problem);
    tn_grad_end();
    ck_assert_msg(loss != NULL, "%s", tn_error_text());
    ck_assert_double_eq(tn_item(loss), 5);
    ck_assert(problem.recorded);
    ck_assert_int_eq(problem.calls, 1);
    expect_parameter(&problem, 0.5, -1);
    ck_assert(tn_tensor_is_leaf(problem.parameter));
    ck_assert_ptr_eq(tn_tensor_data(problem.parameter), storage);

    problem.fails = true;
    ck_assert_ptr_null(tn_optimizer_step_with(problem.optimizer, loss_of, &problem));
    expect_failure(TN_ERR_RUNTIME, "the closure of tn_optimizer_step_with");
    expect_parameter(&problem, 0.5, -1);

    problem.fails = false;
    problem.drops = true;
    ck_assert_double_eq(tn_item(tn_optimizer_step_with(problem.optimizer, loss_of, &problem)),
                        1.25);
    expect_parameter(&problem, 0.25, -0.5);
    tn_tensor_drop(problem.parameter);
    TN_PROVES("OPT-007", "OPT-008");
}
END_TEST

/* A rule that calls its closure twice: the second gradient counts. */
static tn_status twice(tn_optimizer *self, const tn_step_args *args)
{
    (void)self;
    for (int64_t k = 0; k < 2; k++) {
        tn_tensor *loss = args->closure(args->closure_user);

        if (loss == NULL)
            return tn_error_last_code();
        ck_assert(!tn_grad_enabled());
        for (int64_t i = 0; i < args->count; i++)
            if (args->gradients[i] != NULL &&
                tn_sub_(args->parameters[i], tn_mul_scalar(args->gradients[i], 0.25)) == NULL)
                return tn_error_last_code();
    }
    return TN_OK;
}

static const tn_optimizer_def twice_def = { TN_HEAD(tn_optimizer_def), .name = "Twice",
                                            .flags = TN_OPTIMIZER_CLOSURE, .step = twice };

START_TEST(a_rule_may_call_the_closure_as_often_as_it_likes)
{
    TN_SCOPE;
    struct problem problem;
    tn_tensor *other = tn_parameter(tn_tensor_full(TN_SHAPE(1), 3, TN_F64, NULL), true), *loss;

    ck_assert_int_eq(tn_register(&twice_def), TN_OK);
    problem = problem_new("Twice()");
    ck_assert_int_eq(tn_optimizer_step(problem.optimizer), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "step() missing 1 required positional argument: 'closure'");
    ck_assert_int_eq(tn_optimizer_steps(problem.optimizer, 0), 0);
    loss = tn_optimizer_step_with(problem.optimizer, loss_of, &problem);
    ck_assert_msg(loss != NULL, "%s", tn_error_text());
    ck_assert_double_eq(tn_item(loss), 5); /* of the first call */
    ck_assert_int_eq(problem.calls, 2);
    expect_parameter(&problem, 0.25, -0.5);
    ck_assert_int_eq(tn_optimizer_steps(problem.optimizer, 0), 1);
    problem.fails = true;
    ck_assert_ptr_null(tn_optimizer_step_with(problem.optimizer, loss_of, &problem));
    expect_failure(TN_ERR_RUNTIME, "the closure of tn_optimizer_step_with");
    ck_assert_int_eq(tn_optimizer_steps(problem.optimizer, 0), 1);
    ck_assert_ptr_eq(tn_tensor_grad(other), TN_NONE);
    tn_optimizer_drop(problem.optimizer);
    tn_tensor_drop(problem.parameter);
}
END_TEST

/* ---- hooks ----------------------------------------------------------------------------------- */

static char order[256];
static int released;

static tn_status note(void *user, tn_optimizer *optimizer)
{
    ck_assert_ptr_nonnull(optimizer);
    strcat(order, user);
    return TN_OK;
}

static tn_status note_state(void *user, tn_optimizer *optimizer, tn_state *state,
                            const char *prefix)
{
    char name[64];

    ck_assert_ptr_nonnull(optimizer);
    strcat(order, user);
    tn_snprint(name, sizeof name, "%sparam_groups.0.lr", prefix);
    return tn_state_set_value(state, name, tn_value_float(0.75));
}

static tn_status refuse(void *user, tn_optimizer *optimizer)
{
    (void)user, (void)optimizer;
    return TN_ERR_VALUE;
}

static void count_release(void *user)
{
    (void)user;
    released++;
}

START_TEST(hooks_of_a_step_run_in_the_order_of_pytorch)
{
    TN_SCOPE;
    struct problem problem = problem_new("SGD(lr=0.25)");
    tn_optimizer *o = problem.optimizer;
    tn_hook_handle refusal, global[2];

    ck_assert(tn_optimizer_hook_step_pre(o, note, 0, (void *)"a ", count_release) != 0);
    ck_assert(tn_optimizer_hook_step_pre(o, note, TN_HOOK_PREPEND, (void *)"b ", count_release) !=
              0);
    global[0] = tn_global_hook_step_pre(note, 0, (void *)"G ", NULL);
    global[1] = tn_global_hook_step(note, 0, (void *)"H ", NULL);
    ck_assert(tn_optimizer_hook_step(o, note, 0, (void *)"c ", NULL) != 0);
    ck_assert(tn_optimizer_hook_step(o, note, 0, (void *)"d ", NULL) != 0);
    ck_assert_int_eq(tn_optimizer_step(o), TN_OK);
    ck_assert_str_eq(order, "G b a c d H ");
    order[0] = '\0';
    ck_assert(tn_hook_remove(global[0]) && tn_hook_remove(global[1]));
    ck_assert(!tn_hook_remove(global[0]));
    refusal = tn_optimizer_hook_step_pre(o, refuse, 0, NULL, NULL);
    ck_assert_ptr_null(tn_optimizer_step_with(o, loss_of, &problem));
    expect_failure(TN_ERR_VALUE, "a hook before a step");
    ck_assert_str_eq(order, "b a ");
    ck_assert_int_eq(problem.calls, 0);
    ck_assert(tn_hook_remove(refusal));
    ck_assert(tn_optimizer_hook_step(o, refuse, 0, NULL, NULL) != 0);
    ck_assert_int_eq(tn_optimizer_step(o), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "a hook after a step");

    ck_assert(tn_optimizer_hook_step(o, NULL, 0, NULL, NULL) == 0);
    expect_failure(TN_ERR_VALUE, "tn_optimizer_hook_step: hook: it is NULL");
    ck_assert(tn_global_hook_step(note, TN_HOOK_ALWAYS, NULL, NULL) == 0);
    expect_failure(TN_ERR_VALUE, "tn_global_hook_step: flags: not for this kind of hook, got 0x4; "
                                 "expected TN_HOOK_PREPEND");
    ck_assert_int_eq(released, 0);
    tn_optimizer_drop(o);
    ck_assert_int_eq(released, 2);
    tn_tensor_drop(problem.parameter);
    TN_PROVES("OPT-020");
}
END_TEST

START_TEST(hooks_of_a_state_change_what_is_saved_and_loaded)
{
    struct problem problem = problem_new("SGD(lr=0.25)");
    tn_optimizer *o = problem.optimizer;
    tn_state *state = tn_optimizer_save_state(o);
    double rate = 0;

    order[0] = '\0';
    ck_assert(tn_optimizer_hook_load(o, note, 0, (void *)"d ", NULL) != 0);
    ck_assert(tn_optimizer_hook_load(o, note, TN_HOOK_PREPEND, (void *)"e ", NULL) != 0);
    ck_assert(tn_optimizer_hook_load_pre(o, note_state, 0, (void *)"c ", NULL) != 0);
    ck_assert_int_eq(tn_optimizer_load_state(o, state), TN_OK);
    ck_assert_str_eq(order, "c e d ");
    ck_assert_int_eq(tn_optimizer_get(o, 0, "lr", &rate), TN_OK);
    ck_assert_double_eq(rate, 0.75);
    /* The state of the caller is as before. */
    ck_assert_double_eq(tn_state_value(state, tn_state_find(state, "param_groups.0.lr")).as.f,
                        0.25);
    tn_state_drop(state);

    ck_assert_int_eq(tn_optimizer_set(o, 0, "lr", 0.5), TN_OK);
    order[0] = '\0';
    ck_assert(tn_optimizer_hook_state_pre(o, note, 0, (void *)"a ", NULL) != 0);
    ck_assert(tn_optimizer_hook_state(o, note_state, 0, (void *)"b ", NULL) != 0);
    state = tn_state_new();
    ck_assert_int_eq(tn_optimizer_save_state_into(o, state, "optimizer."), TN_OK);
    ck_assert_str_eq(order, "a b ");
    ck_assert_double_eq(
        tn_state_value(state, tn_state_find(state, "optimizer.param_groups.0.lr")).as.f, 0.75);
    tn_state_drop(state);
    ck_assert(tn_optimizer_hook_state_pre(o, refuse, 0, NULL, NULL) != 0);
    ck_assert_ptr_null(tn_optimizer_save_state(o));
    expect_failure(TN_ERR_VALUE, "a hook before saving the state of an optimizer");
    tn_optimizer_drop(o);
    tn_tensor_drop(problem.parameter);
    TN_PROVES("OPT-021");
}
END_TEST

/* ---- gradients ------------------------------------------------------------------------------- */

START_TEST(gradients_are_removed_or_filled_with_zeros)
{
    TN_SCOPE;
    struct problem problem = problem_new("SGD(lr=0.25)");
    tn_tensor *gradient;

    ck_assert_ptr_nonnull(loss_of(&problem));
    gradient = tn_tensor_grad(problem.parameter);
    ck_assert_int_eq(tn_optimizer_zero_grad_in_place(problem.optimizer), TN_OK);
    ck_assert_ptr_eq(tn_tensor_grad(problem.parameter), gradient);
    ck_assert_double_eq(tn_item(tn_sum(tn_abs(gradient))), 0);
    /* A gradient of zeros is not skipped: it makes a state and counts. */
    ck_assert_int_eq(tn_optimizer_step(problem.optimizer), TN_OK);
    ck_assert_int_eq(tn_optimizer_steps(problem.optimizer, 0), 1);
    ck_assert_int_eq(tn_optimizer_zero_grad(problem.optimizer), TN_OK);
    ck_assert_ptr_eq(tn_tensor_grad(problem.parameter), TN_NONE);
    ck_assert_int_eq(tn_optimizer_zero_grad_in_place(problem.optimizer), TN_OK);
    ck_assert_ptr_eq(tn_tensor_grad(problem.parameter), TN_NONE);
    ck_assert_int_eq(tn_optimizer_step(problem.optimizer), TN_OK);
    ck_assert_int_eq(tn_optimizer_steps(problem.optimizer, 0), 1);
    tn_optimizer_drop(problem.optimizer);
    tn_tensor_drop(problem.parameter);

    /* A parameter without elements takes steps, too. */
    tn_tensor *none = tn_parameter(tn_tensor_empty(TN_SHAPE(0, 3), TN_F32, NULL), true);
    tn_optimizer *adam = tn_optimizer_parse(&none, 1, "Adam(lr=0.1)");

    ck_assert_int_eq(tn_tensor_set_grad(none, tn_tensor_empty(TN_SHAPE(0, 3), TN_F32, NULL)),
                     TN_OK);
    ck_assert_msg(tn_optimizer_step(adam) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_optimizer_steps(adam, 0), 1);
    tn_optimizer_drop(adam);
    TN_PROVES("OPT-006", "OPT-009");
}
END_TEST

/* The training loop of PyTorch's note on modules. */
START_TEST(a_small_network_learns_to_return_zero)
{
    enum { STEPS_OF_THE_NOTE = 10000 };
    tn_random_seed(5);
    tn_module *net = tn_module_new("Sequential(l0=Linear(4, 3), act=ReLU(), l1=Linear(3, 1))");
    tn_optimizer *optimizer = tn_optimizer_new(net,
                                               "SGD(lr=1e-4, weight_decay=1e-2, momentum=0.9)");
    for (int step = 0; step < STEPS_OF_THE_NOTE; step++) {
        TN_SCOPE;
        tn_tensor *x = tn_normal(tn_tensor_empty(TN_SHAPE(1, 4), TN_F32, NULL));
        ck_assert_int_eq(tn_optimizer_zero_grad(optimizer), TN_OK);
        ck_assert_int_eq(tn_backward(tn_abs(tn_sum(tn_module_call(net, x)))), TN_OK);
        ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
    }
    {
        TN_SCOPE;
        tn_tensor *weight = tn_detach(tn_module_find_tensor(net, "l1.weight"));
        ck_assert_double_lt(tn_item(tn_amax(tn_abs(weight))), 0.02);
    }
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
    TN_PROVES("OPT-012");
}
END_TEST

START_TEST(a_null_fails_without_a_crash)
{
    ck_assert_ptr_null(tn_optimizer_step_with(NULL, loss_of, NULL));
    ck_assert_int_ne(tn_optimizer_zero_grad_in_place(NULL), TN_OK);
    ck_assert_ptr_null(tn_optimizer_save_state(NULL));
    ck_assert_int_ne(tn_optimizer_load_state(NULL, NULL), TN_OK);
    ck_assert_int_eq(tn_optimizer_repr(NULL, NULL, 0), -1);
    ck_assert_ptr_null(tn_optimizer_parameter_name(NULL, 0));
    ck_assert(tn_optimizer_hook_step(NULL, note, 0, NULL, NULL) == 0);
    ck_assert_ptr_null(tn_average_new(NULL, NULL));
    ck_assert_int_ne(tn_average_update(NULL, NULL), TN_OK);
    ck_assert_int_eq(tn_average_count(NULL), -1);
    ck_assert_int_ne(tn_module_update_statistics(NULL, loss_of, NULL, NULL), TN_OK);
    tn_error_clear();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_step_with_a_closure_evaluates_the_loss_and_returns_it,
                                   a_rule_may_call_the_closure_as_often_as_it_likes,
                                   hooks_of_a_step_run_in_the_order_of_pytorch,
                                   hooks_of_a_state_change_what_is_saved_and_loaded,
                                   gradients_are_removed_or_filled_with_zeros,
                                   a_small_network_learns_to_return_zero,
                                   a_null_fails_without_a_crash,
                                   NULL };
    return suite_run("step", tests);
}

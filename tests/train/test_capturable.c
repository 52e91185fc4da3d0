/* SPDX-License-Identifier: MIT
 *
 * Optimizers with capturable=True: the numbers of PyTorch's trajectories, the step and the learning
 * rate in tensors that follow options, schedulers, parameters that miss steps, and failures. */
#include "tests/spec/proves.h"
#include "tests/base/suite.h"

#include <math.h>

#include "reference.h"

static tn_tensor *parameter_of(const double *values, tn_dtype dtype)
{
    return tn_parameter(tn_cast(tn_tensor_from(values, TN_F64, TN_SHAPE(SIZE)), dtype), true);
}

static void set_gradient(tn_tensor *parameter, const double *values)
{
    tn_tensor *gradient = tn_cast(tn_tensor_from(values, TN_F64, TN_SHAPE(SIZE)),
                                  tn_tensor_dtype(parameter));

    ck_assert_int_eq(tn_tensor_set_grad(parameter, gradient), TN_OK);
}

static tn_optimizer *make(tn_tensor *const *parameters, int64_t count, const char *spec)
{
    tn_optimizer *optimizer = tn_optimizer_parse(parameters, count, spec);

    ck_assert_msg(optimizer != NULL, "%s: %s", spec, tn_error_text());
    return optimizer;
}

static void step(tn_optimizer *optimizer)
{
    ck_assert_msg(tn_optimizer_step(optimizer) == TN_OK, "%s", tn_error_text());
}

/* A state that is a number. */
static double number(tn_optimizer *optimizer, int64_t index, const char *name)
{
    tn_tensor *state = tn_optimizer_state(optimizer, index, name);

    ck_assert_msg(state != NULL, "%s of parameter %d is not there", name, (int)index);
    ck_assert_int_eq(tn_tensor_ndim(state), 0);
    return tn_tensor_item(state);
}

static void follow(const char *spec, const double values[STEPS][SIZE], tn_dtype dtype,
                   double tolerance)
{
    TN_SCOPE;
    tn_tensor *parameter = parameter_of(start, dtype);
    bool empty = strchr(spec, ')')[-1] == '(';
    char text[200];
    tn_optimizer *optimizer;

    snprintf(text, sizeof text, "%.*s%scapturable=True)", (int)strlen(spec) - 1, spec,
             empty ? "" : ", ");
    optimizer = make(&parameter, 1, text);
    for (int i = 0; i < STEPS; i++) {
        double got[SIZE];

        set_gradient(parameter, gradients[i]);
        step(optimizer);
        ck_assert_int_eq(tn_tensor_copy_out(tn_cast(tn_detach(parameter), TN_F64), got, sizeof got),
                         TN_OK);
        for (int k = 0; k < SIZE; k++)
            ck_assert_msg(fabs(got[k] - values[i][k]) <= tolerance,
                          "%s, step %d, element %d: %.17g is not %.17g", text, i, k, got[k],
                          values[i][k]);
        if (spec[0] == 'A')
            ck_assert_double_eq(number(optimizer, 0, "step"), i + 1);
        else
            ck_assert_ptr_null(tn_optimizer_state(optimizer, 0, "step"));
    }
    tn_optimizer_drop(optimizer);
}

START_TEST(capturable_optimizers_follow_the_trajectories_of_pytorch)
{
    for (int64_t i = 0; i < tn__countof(trajectories); i++) {
        follow(trajectories[i].spec, trajectories[i].values, TN_F64, 1e-12);
        follow(trajectories[i].spec, trajectories[i].values, TN_F32, 2e-6);
    }
}
END_TEST

START_TEST(the_tensors_are_those_of_pytorch_and_stay_the_same)
{
    TN_SCOPE;
    tn_tensor *parameters[2] = { parameter_of(start, TN_F32), parameter_of(start, TN_F32) };
    tn_optimizer *optimizer = make(parameters, 2, "AdamW(lr=0.25, capturable=True)");
    tn_tensor *first = NULL, *rate = NULL;

    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 2; k++)
            set_gradient(parameters[k], gradients[i]);
        step(optimizer);
        if (i == 0) {
            first = tn_optimizer_state(optimizer, 0, "step");
            rate = tn_optimizer_state(optimizer, 0, "lr");
        }
        for (int k = 0; k < 2; k++) { /* a repeated call finds them where they were */
            ck_assert_ptr_eq(tn_optimizer_state(optimizer, k, "step"), first);
            ck_assert_ptr_eq(tn_optimizer_state(optimizer, k, "lr"), rate);
        }
    }
    ck_assert_int_eq(tn_tensor_dtype(first), TN_F32);
    ck_assert_int_eq(tn_tensor_dtype(rate), TN_F32);
    ck_assert_double_eq(tn_tensor_item(first), 3);
    ck_assert_double_eq(tn_tensor_item(rate), 0.25);
    tn_optimizer_drop(optimizer);
}
END_TEST

START_TEST(the_rate_follows_options_and_schedulers)
{
    TN_SCOPE;
    tn_tensor *parameter = parameter_of(start, TN_F64);
    tn_optimizer *optimizer = make(&parameter, 1, "SGD(lr=0.5, capturable=True)");
    tn_scheduler *scheduler = tn_scheduler_new(optimizer, "ExponentialLR(0.5)");
    tn_tensor *rate = NULL;
    double expected = start[0];

    for (int i = 0; i < 3; i++) {
        double got[SIZE];

        set_gradient(parameter, gradients[i]);
        step(optimizer);
        rate = i == 0 ? tn_optimizer_state(optimizer, 0, "lr") : rate;
        ck_assert_ptr_eq(tn_optimizer_state(optimizer, 0, "lr"), rate);
        expected -= ldexp(0.5, -i) * gradients[i][0];
        ck_assert_double_eq(number(optimizer, 0, "lr"), ldexp(0.5, -i));
        ck_assert_int_eq(tn_tensor_copy_out(tn_detach(parameter), got, sizeof got), TN_OK);
        ck_assert_double_eq_tol(got[0], expected, 1e-15);
        ck_assert_int_eq(tn_scheduler_step(scheduler), TN_OK);
    }
    ck_assert_int_eq(tn_optimizer_set_options(optimizer, 0, "lr=0.0"), TN_OK);
    set_gradient(parameter, gradients[3]);
    step(optimizer);
    ck_assert_double_eq(number(optimizer, 0, "lr"), 0);
    ck_assert_ptr_eq(tn_optimizer_state(optimizer, 0, "lr"), rate);
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
    TN_PROVES("LRS-016");
}
END_TEST

/* Fails unless the parameters have the values of `others`, which took the same steps with an
 * optimizer that is not capturable. */
static void compare(tn_tensor *const *parameters, tn_tensor *const *others, int count)
{
    for (int k = 0; k < count; k++) {
        double got[SIZE], expected[SIZE];

        ck_assert_int_eq(tn_tensor_copy_out(tn_detach(parameters[k]), got, sizeof got), TN_OK);
        ck_assert_int_eq(tn_tensor_copy_out(tn_detach(others[k]), expected, sizeof expected),
                         TN_OK);
        for (int i = 0; i < SIZE; i++)
            ck_assert_double_eq(got[i], expected[i]); /* on the CPU, to the bit */
    }
}

START_TEST(a_parameter_that_misses_a_step_counts_its_own)
{
    TN_SCOPE;
    tn_tensor *parameters[3], *others[3];
    tn_optimizer *optimizer, *plain;

    for (int k = 0; k < 3; k++) {
        parameters[k] = parameter_of(start, TN_F64);
        others[k] = parameter_of(start, TN_F64);
    }
    optimizer = make(parameters, 3, "Adam(lr=0.1, capturable=True)");
    plain = make(others, 3, "Adam(lr=0.1)");
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3; k++) {
            if (k == i) { /* parameter i misses step i */
                tn_tensor_set_grad(parameters[k], TN_NONE);
                tn_tensor_set_grad(others[k], TN_NONE);
                continue;
            }
            set_gradient(parameters[k], gradients[i]);
            set_gradient(others[k], gradients[i]);
        }
        step(optimizer);
        step(plain);
    }
    for (int k = 0; k < 3; k++) {
        ck_assert_double_eq(number(optimizer, k, "step"), 3);
        ck_assert_int_eq(tn_optimizer_steps(optimizer, k), 3);
    }
    compare(parameters, others, 3);
    tn_optimizer_drop(optimizer);
    tn_optimizer_drop(plain);
}
END_TEST

START_TEST(it_can_be_switched_on_and_off)
{
    TN_SCOPE;
    tn_tensor *parameter = parameter_of(start, TN_F64), *other = parameter_of(start, TN_F64);
    tn_optimizer *optimizer = make(&parameter, 1, "Adam(lr=0.1)");
    tn_optimizer *plain = make(&other, 1, "Adam(lr=0.1)");

    for (int i = 0; i < STEPS; i++) {
        ck_assert_int_eq(tn_optimizer_set_options(
                             optimizer, 0, i % 3 == 1 ? "capturable=True" : "capturable=False"),
                         TN_OK);
        set_gradient(parameter, gradients[i]);
        set_gradient(other, gradients[i]);
        step(optimizer);
        step(plain);
        if (i > 0)
            ck_assert_double_eq(number(optimizer, 0, "step"), i + 1);
        compare(&parameter, &other, 1);
    }
    ck_assert_ptr_null(tn_optimizer_state(plain, 0, "step"));
    tn_optimizer_drop(optimizer);
    tn_optimizer_drop(plain);
}
END_TEST

/* A state of PyTorch: "step" is a tensor of its own for each parameter. */
START_TEST(a_state_of_pytorch_is_continued)
{
    TN_SCOPE;
    static const char *const names[] = { "exp_avg", "exp_avg_sq" };
    tn_tensor *parameters[2] = { parameter_of(start, TN_F64), parameter_of(start, TN_F64) };
    tn_tensor *others[2] = { parameter_of(start, TN_F64), parameter_of(start, TN_F64) };
    tn_optimizer *plain = make(parameters, 2, "Adam(lr=0.1)"), *optimizer;

    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++)
            set_gradient(parameters[k], gradients[i]);
        step(plain);
    }
    optimizer = make(others, 2, "Adam(lr=0.1, capturable=True)");
    for (int k = 0; k < 2; k++) {
        tn_grad_begin(false);
        ck_assert_ptr_nonnull(tn_copy_(others[k], parameters[k]));
        tn_grad_end();
        for (int n = 0; n < 2; n++)
            ck_assert_int_eq(
                tn_optimizer_set_state(optimizer, k, names[n],
                                       tn_clone(tn_optimizer_state(plain, k, names[n]))),
                TN_OK);
        ck_assert_int_eq(tn_optimizer_set_state(optimizer, k, "step",
                                                tn_tensor_full(TN_SCALAR_SHAPE, 2, TN_F32, NULL)),
                         TN_OK);
        ck_assert_int_eq(tn_optimizer_set_steps(optimizer, k, 2), TN_OK);
    }
    for (int i = 2; i < STEPS; i++) {
        for (int k = 0; k < 2; k++) {
            set_gradient(parameters[k], gradients[i]);
            set_gradient(others[k], gradients[i]);
        }
        step(plain);
        step(optimizer);
    }
    compare(others, parameters, 2);
    ck_assert_double_eq(number(optimizer, 1, "step"), STEPS);
    tn_optimizer_drop(optimizer);
    tn_optimizer_drop(plain);
}
END_TEST

START_TEST(a_step_that_fails_is_not_counted)
{
    TN_SCOPE;
    tn_tensor *parameter = parameter_of(start, TN_F64);
    tn_optimizer *optimizer = make(&parameter, 1, "Adam(capturable=True)");
    tn_tensor *average;

    set_gradient(parameter, gradients[0]);
    step(optimizer);
    average = tn_clone(tn_optimizer_state(optimizer, 0, "exp_avg"));
    ck_assert_int_eq(tn_optimizer_set_state(optimizer, 0, "exp_avg",
                                            tn_tensor_full(TN_SHAPE(1, 2), 0, TN_F64, NULL)),
                     TN_OK);
    ck_assert_int_ne(tn_optimizer_step(optimizer), TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "adam_step: tensor 2: wrong shape"));
    tn_error_clear();
    ck_assert_double_eq(number(optimizer, 0, "step"), 1);
    ck_assert_int_eq(tn_optimizer_steps(optimizer, 0), 1);
    ck_assert_int_eq(tn_optimizer_set_state(optimizer, 0, "exp_avg", average), TN_OK);
    step(optimizer);
    ck_assert_double_eq(number(optimizer, 0, "step"), 2);
    tn_optimizer_drop(optimizer);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        capturable_optimizers_follow_the_trajectories_of_pytorch,
        the_tensors_are_those_of_pytorch_and_stay_the_same,
        the_rate_follows_options_and_schedulers,
        a_parameter_that_misses_a_step_counts_its_own,
        it_can_be_switched_on_and_off,
        a_state_of_pytorch_is_continued,
        a_step_that_fails_is_not_counted,
        NULL,
    };
    return suite_run("capturable optimizers", tests);
}

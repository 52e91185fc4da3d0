/* SPDX-License-Identifier: MIT
 *
 * Optimizers and schedulers: PyTorch's trajectories, options, state, refusals. */
#include "tests/base/suite.h"
#include "tests/spec/proves.h"

#include <math.h>

#include "reference.h"

static tn_module *one_parameter(tn_dtype dtype, tn_tensor **parameter)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential()");
    tn_tensor *value = tn_tensor_from(start, TN_F64, TN_SHAPE(SIZE));
    if (dtype != TN_F64)
        value = tn_cast(value, dtype);
    value = tn_parameter(value, true);
    ck_assert_int_eq(tn_module_add_parameter(net, "p", value), TN_OK);
    *parameter = tn_module_get(net, "p");
    return net;
}

static void set_gradient(tn_tensor *parameter, const double *values)
{
    TN_SCOPE;
    tn_tensor *gradient = tn_tensor_from(values, TN_F64, TN_SHAPE(SIZE));
    if (tn_tensor_dtype(parameter) != TN_F64)
        gradient = tn_cast(gradient, tn_tensor_dtype(parameter));
    ck_assert_int_eq(tn_tensor_set_grad(parameter, gradient), TN_OK);
}

static void follow(const char *spec, const double values[STEPS][SIZE], tn_dtype dtype,
                   double tolerance)
{
    tn_tensor *parameter;
    tn_module *net = one_parameter(dtype, &parameter);
    tn_optimizer *optimizer = tn_optimizer_new(net, "%s", spec);
    ck_assert_msg(optimizer != NULL, "%s: %s", spec, tn_error_text());
    for (int step = 0; step < STEPS; step++) {
        TN_SCOPE;
        double got[SIZE];
        set_gradient(parameter, gradients[step]);
        ck_assert_msg(tn_optimizer_step(optimizer) == TN_OK, "%s: %s", spec, tn_error_text());
        ck_assert_int_eq(tn_optimizer_steps(optimizer, 0), step + 1);
        ck_assert_int_eq(
            tn_tensor_copy_out(dtype == TN_F64 ? parameter : tn_cast(tn_detach(parameter), TN_F64),
                               got, sizeof got),
            TN_OK);
        for (int i = 0; i < SIZE; i++)
            ck_assert_msg(fabs(got[i] - values[step][i]) <= tolerance,
                          "%s, step %d, element %d: %.17g is not %.17g", spec, step, i, got[i],
                          values[step][i]);
    }
    ck_assert(tn_tensor_is_leaf(parameter));
    ck_assert(tn_tensor_requires_grad(parameter));
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
}

START_TEST(optimizers_follow_the_trajectories_of_pytorch)
{
    for (int64_t i = 0; i < tn__countof(trajectories); i++)
        follow(trajectories[i].spec, trajectories[i].values, TN_F64, 1e-12);
    TN_PROVES("OPT-010", "OPT-013", "OPT-015", "OPT-016");
}
END_TEST

START_TEST(optimizers_follow_them_in_float32_too)
{
    for (int64_t i = 0; i < tn__countof(trajectories); i++)
        follow(trajectories[i].spec, trajectories[i].values, TN_F32, 2e-6);
}
END_TEST

START_TEST(schedulers_give_the_rates_of_pytorch)
{
    for (int64_t i = 0; i < tn__countof(schedulers); i++) {
        tn_tensor *parameter;
        tn_module *net = one_parameter(TN_F64, &parameter);
        tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.2)");
        tn_scheduler *scheduler = tn_scheduler_new(optimizer, "%s", schedulers[i].spec);
        ck_assert_msg(scheduler != NULL, "%s: %s", schedulers[i].spec, tn_error_text());
        for (int step = 0; step <= SCHEDULE_STEPS; step++) {
            double rate = 0;
            ck_assert_int_eq(tn_scheduler_steps(scheduler), step);
            ck_assert_int_eq(tn_optimizer_get(optimizer, 0, "lr", &rate), TN_OK);
            ck_assert_msg(fabs(rate - schedulers[i].rates[step]) <= 1e-12,
                          "%s, step %d: %.17g is not %.17g", schedulers[i].spec, step, rate,
                          schedulers[i].rates[step]);
            ck_assert_int_eq(tn_scheduler_step(scheduler), TN_OK);
        }
        tn_scheduler_drop(scheduler);
        tn_optimizer_drop(optimizer);
        tn_module_drop(net);
    }
}
END_TEST

START_TEST(a_scheduler_keeps_its_optimizer_alive)
{
    tn_tensor *parameter;
    tn_module *net = one_parameter(TN_F64, &parameter);
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.2)");
    tn_scheduler *scheduler = tn_scheduler_new(optimizer, "ExponentialLR(0.5)");
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
    ck_assert_int_eq(tn_scheduler_step(scheduler), TN_OK);
    tn_scheduler_drop(scheduler);
}
END_TEST

START_TEST(a_parameter_without_gradient_is_skipped_and_gets_no_state)
{
    tn_tensor *parameter;
    tn_module *net = one_parameter(TN_F64, &parameter);
    tn_optimizer *optimizer = tn_optimizer_new(net, "Adam(lr=0.1)");
    double got[SIZE];
    ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
    ck_assert_int_eq(tn_optimizer_steps(optimizer, 0), 0);
    ck_assert_ptr_null(tn_optimizer_state(optimizer, 0, "exp_avg"));
    ck_assert(!tn_failed());
    ck_assert_int_eq(tn_tensor_copy_out(parameter, got, sizeof got), TN_OK);
    ck_assert_mem_eq(got, start, sizeof got);
    set_gradient(parameter, gradients[0]);
    ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
    ck_assert_ptr_nonnull(tn_optimizer_state(optimizer, 0, "exp_avg"));
    ck_assert_ptr_nonnull(tn_optimizer_state(optimizer, 0, "exp_avg_sq"));
    ck_assert_ptr_null(tn_optimizer_state(optimizer, 0, "max_exp_avg_sq"));
    ck_assert_int_eq(tn_optimizer_zero_grad(optimizer), TN_OK);
    ck_assert_ptr_eq(tn_tensor_grad(parameter), TN_NONE);
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
}
END_TEST

START_TEST(the_first_momentum_buffer_is_a_copy_of_the_gradient)
{
    tn_tensor *parameter;
    tn_module *net = one_parameter(TN_F64, &parameter);
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.1, momentum=0.9, dampening=0.5)");
    double got[SIZE];
    set_gradient(parameter, gradients[0]);
    ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
    tn_tensor *buffer = tn_optimizer_state(optimizer, 0, "momentum_buffer");
    ck_assert(!tn_tensor_shares_storage(buffer, tn_tensor_grad(parameter)));
    ck_assert_int_eq(tn_tensor_copy_out(buffer, got, sizeof got), TN_OK);
    ck_assert_mem_eq(got, gradients[0], sizeof got);
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
}
END_TEST

START_TEST(options_are_read_changed_checked_and_printed)
{
    tn_tensor *parameter;
    tn_module *net = one_parameter(TN_F64, &parameter);
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=%g, momentum=0.9)", 0.125);
    double value = 0;
    char text[256];
    ck_assert_str_eq(tn_optimizer_type(optimizer), "SGD");
    ck_assert_int_eq(tn_optimizer_count(optimizer), 1);
    ck_assert_ptr_eq(tn_optimizer_parameter(optimizer, 0), parameter);
    ck_assert_int_eq(tn_optimizer_get(optimizer, 0, "lr", &value), TN_OK);
    ck_assert_double_eq(value, 0.125);
    ck_assert_int_eq(tn_optimizer_set(optimizer, 0, "lr", -1.0), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "Invalid learning rate: -1");
    ck_assert_int_eq(tn_optimizer_get(optimizer, 0, "lr", &value), TN_OK);
    ck_assert_double_eq(value, 0.125);
    ck_assert_int_eq(tn_optimizer_set(optimizer, 0, "lr", 0.5), TN_OK);
    ck_assert_int_eq(tn_optimizer_get(optimizer, 0, "beta", &value), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "no option \"beta\"; its numeric options: lr, momentum, ");
    ck_assert_int_gt(tn_optimizer_spec(optimizer, text, sizeof text), 0);
    tn_optimizer *again = tn_optimizer_parse(&parameter, 1, text);
    ck_assert_msg(again != NULL, "%s: %s", text, tn_error_text());
    char second[256];
    tn_optimizer_spec(again, second, sizeof second);
    ck_assert_str_eq(text, second);
    tn_optimizer_drop(again);
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
}
END_TEST

static void refused(tn_module *net, const char *spec, tn_status code, const char *words)
{
    ck_assert_msg(tn_optimizer_new(net, "%s", spec) == NULL, "%s was taken", spec);
    expect_failure(code, words);
}

START_TEST(what_pytorch_refuses_is_refused)
{
    tn_tensor *parameter;
    tn_module *net = one_parameter(TN_F64, &parameter);
    refused(net, "SGD(lr=-0.1)", TN_ERR_VALUE, "Invalid learning rate: -0.1");
    refused(net, "SGD(momentum=-1)", TN_ERR_VALUE, "Invalid momentum value: -1");
    refused(net, "SGD(weight_decay=-1)", TN_ERR_VALUE, "Invalid weight_decay value: -1");
    refused(net, "SGD(nesterov=True)", TN_ERR_VALUE, "Nesterov momentum requires");
    refused(net, "SGD(momentum=0.9, dampening=0.1, nesterov=True)", TN_ERR_VALUE, "zero dampening");
    refused(net, "Adam(betas=(0.9, 1.0))", TN_ERR_VALUE, "Invalid beta parameter at index 1: 1");
    refused(net, "Adam(betas=(0.9, 0.99, 0.9))", TN_ERR_VALUE, "two numbers");
    refused(net, "Adam(eps=-1)", TN_ERR_VALUE, "Invalid epsilon value: -1");
    refused(net, "Adam(lr=nan)", TN_ERR_VALUE, "Invalid learning rate: nan");
    refused(net, "Adam(learning_rate=1)", TN_ERR_KEY, "learning_rate");
    refused(net, "Adamm(lr=1)", TN_ERR_KEY, "Adam");
    refused(net, "17", TN_ERR_FORMAT, "optimizer: wrong form");
    tn_module *empty = tn_module_new("ReLU()");
    refused(empty, "SGD(lr=0.1)", TN_ERR_VALUE, "empty parameter list");
    tn_module_drop(empty);
    {
        TN_SCOPE;
        tn_tensor *made = tn_mul(parameter, parameter);
        ck_assert_ptr_null(tn_optimizer_parse(&made, 1, "SGD(lr=0.1)"));
        expect_failure(TN_ERR_VALUE, "can't optimize a non-leaf Tensor");
    }
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.1)");
    ck_assert_ptr_null(tn_scheduler_new(optimizer, "StepLR()"));
    tn_error_clear();
    ck_assert_ptr_null(tn_scheduler_new(optimizer, "StepLR(0)"));
    expect_failure(TN_ERR_VALUE, "step_size: out of range, got 0");
    ck_assert_ptr_null(tn_scheduler_new(optimizer, "LinearLR(start_factor=0)"));
    expect_failure(TN_ERR_VALUE, "Starting multiplicative factor");
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
    TN_PROVES("OPT-001", "OPT-003", "OPT-011", "OPT-014");
}
END_TEST

START_TEST(a_null_goes_through_without_a_new_error)
{
    tn_module *net = tn_module_new("NoSuchLayer()");
    ck_assert_ptr_null(net);
    tn_status code = tn_error_code();
    uint64_t mark = tn_error_mark();
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.1)");
    ck_assert_ptr_null(optimizer);
    ck_assert_ptr_null(tn_scheduler_new(optimizer, "StepLR(1)"));
    ck_assert_int_eq(tn_optimizer_step(optimizer), code);
    ck_assert_uint_eq(tn_error_mark(), mark);
    tn_error_clear();
}
END_TEST

START_TEST(a_parameter_that_comes_twice_is_taken_once)
{
    tn_tensor *parameter;
    tn_module *net = one_parameter(TN_F64, &parameter);
    tn_tensor *both[] = { parameter, parameter };
    tn_optimizer *optimizer = tn_optimizer_parse(both, 2, "SGD(lr=0.1)");
    ck_assert_int_eq(tn_optimizer_count(optimizer), 1);
    ck_assert_int_eq(tn_optimizer_add_group(optimizer, both, 1, NULL), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "some parameters appear in more than one parameter group");
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
    TN_PROVES("OPT-004");
}
END_TEST

START_TEST(training_brings_a_regression_to_its_solution)
{
    static const float x[8] = { -3, -2, -1, 0, 1, 2, 3, 4 };
    float y[8];
    for (int i = 0; i < 8; i++)
        y[i] = 2.0f * x[i] - 0.5f;
    tn_random_seed(3);
    tn_module *net = tn_module_new("Linear(1, 1)");
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.02, momentum=0.9)");
    for (int step = 0; step < 200; step++) {
        TN_SCOPE;
        tn_tensor *error = tn_sub(tn_module_call(net, tn_tensor_from(x, TN_F32, TN_SHAPE(8, 1))),
                                  tn_tensor_from(y, TN_F32, TN_SHAPE(8, 1)));
        tn_module_zero_grad(net);
        ck_assert_msg(tn_backward(tn_mean(tn_mul(error, error))) == TN_OK, "%s", tn_error_text());
        ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
    }
    ck_assert_double_eq_tol(tn_item(tn_module_get(net, "weight")), 2.0, 1e-4);
    ck_assert_double_eq_tol(tn_item(tn_module_get(net, "bias")), -0.5, 1e-4);
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
}
END_TEST

/* Runs on every device of the machine that has memory. If there is only the CPU, the test only
 * checks that no tensor is moved. */
START_TEST(state_follows_its_parameter_to_another_device)
{
    const tn_device *home = tn_device_find("cpu");
    for (int64_t d = 0; d < tn_device_count(); d++) {
        const tn_device *device = tn_device_at(d);
        tn_tensor *parameter;
        double got[SIZE];
        if (!tn_device_has_memory(device))
            continue;
        tn_module *net = one_parameter(TN_F32, &parameter);
        tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.1, momentum=0.9)");
        for (int step = 0; step < STEPS; step++) {
            TN_SCOPE;
            float gradient[SIZE];
            for (int i = 0; i < SIZE; i++)
                gradient[i] = (float)gradients[step][i];
            const tn_device *at = step % 2 == 0 ? home : device;
            ck_assert_msg(tn_module_to(net, at, TN_DTYPE_AUTO) == TN_OK, "%s", tn_error_text());
            tn_device_begin(at);
            tn_tensor_set_grad(parameter, tn_tensor_from(gradient, TN_F32, TN_SHAPE(SIZE)));
            ck_assert_msg(tn_optimizer_step(optimizer) == TN_OK, "%s", tn_error_text());
            tn_device_end();
            ck_assert_ptr_eq(tn_tensor_device(tn_optimizer_state(optimizer, 0, "momentum_buffer")),
                             at);
        }
        TN_SCOPE;
        tn_module_to(net, home, TN_F64);
        ck_assert_int_eq(tn_tensor_copy_out(parameter, got, sizeof got), TN_OK);
        for (int i = 0; i < SIZE; i++)
            ck_assert_double_eq_tol(got[i], trajectories[2].values[STEPS - 1][i], 2e-6);
        tn_optimizer_drop(optimizer);
        tn_module_drop(net);
    }
    tn_error_clear();
    TN_PROVES("OPT-023");
}
END_TEST

/* ---- groups ---- */

static double option(const tn_optimizer *optimizer, int64_t group, const char *name)
{
    double value = -1;

    ck_assert_msg(tn_optimizer_get(optimizer, group, name, &value) == TN_OK, "%s", tn_error_text());
    return value;
}

/* Two parameters, each 1, with gradient 1, of the scope. */
static void two_parameters(tn_tensor *parameters[2])
{
    for (int i = 0; i < 2; i++) {
        parameters[i] = tn_tensor_full(TN_SHAPE(2), 1, TN_F64, NULL);
        tn_tensor_set_requires_grad(parameters[i], true);
        tn_tensor_set_grad(parameters[i], tn_tensor_full(TN_SHAPE(2), 1, TN_F64, NULL));
    }
}

static double first_of(const tn_tensor *tensor)
{
    double values[2];

    ck_assert_int_eq(tn_tensor_copy_out(tensor, values, sizeof values), TN_OK);
    return values[0];
}

START_TEST(groups_step_with_options_of_their_own)
{
    TN_SCOPE;
    tn_tensor *p[2];
    two_parameters(p);
    tn_optimizer *optimizer = tn_optimizer_parse(p, 1, "SGD(lr=0.5, weight_decay=0.25)");
    ck_assert_int_eq(tn_optimizer_add_group(optimizer, p + 1, 1, "lr=0.125"), TN_OK);
    ck_assert_int_eq(tn_optimizer_group_count(optimizer), 2);
    ck_assert_int_eq(tn_optimizer_count(optimizer), 2);
    ck_assert_int_eq(tn_optimizer_group_of(optimizer, 0), 0);
    ck_assert_int_eq(tn_optimizer_group_of(optimizer, 1), 1);
    ck_assert_double_eq(option(optimizer, 0, "lr"), 0.5);
    ck_assert_double_eq(option(optimizer, 1, "lr"), 0.125);
    ck_assert_double_eq(option(optimizer, 1, "weight_decay"), 0.25); /* as in the spec */
    ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
    ck_assert_double_eq(first_of(p[0]), 1 - 0.5 * 1.25);
    ck_assert_double_eq(first_of(p[1]), 1 - 0.125 * 1.25);
    ck_assert_int_eq(tn_optimizer_steps(optimizer, 1), 1);
    tn_optimizer_drop(optimizer);
    TN_PROVES("OPT-005");
}
END_TEST

START_TEST(a_group_that_is_refused_leaves_the_optimizer_as_it_was)
{
    TN_SCOPE;
    tn_tensor *p[2];
    two_parameters(p);
    tn_optimizer *optimizer = tn_optimizer_parse(p, 1, "SGD(lr=0.5)");
    static const struct {
        int64_t from, count;
        const char *options, *words;
        tn_status code;
    } wrong[] = {
        { 0, 1, "lr=1", "some parameters appear in more than one parameter group", TN_ERR_VALUE },
        { 1, 0, "lr=1", "empty parameter list", TN_ERR_VALUE },
        { 1, 1, "lr=-1", "Invalid learning rate: -1", TN_ERR_VALUE },
        { 1, 1, "learning=1", "learning", TN_ERR_KEY },
        { 1, 1, "0.1", "it has no name; expected name=value", TN_ERR_FORMAT },
        { 1, 1, "lr=", "SGD(lr=)", TN_ERR_FORMAT },
    };
    for (int64_t i = 0; i < tn__countof(wrong); i++) {
        ck_assert_int_ne(
            tn_optimizer_add_group(optimizer, p + wrong[i].from, wrong[i].count, wrong[i].options),
            TN_OK);
        expect_failure(wrong[i].code, wrong[i].words);
        ck_assert_int_eq(tn_optimizer_group_count(optimizer), 1);
        ck_assert_int_eq(tn_optimizer_count(optimizer), 1);
    }
    ck_assert_int_eq(tn_optimizer_add_group(optimizer, p + 1, 1, NULL), TN_OK);
    ck_assert_int_eq(tn_optimizer_group_of(optimizer, 2), -1);
    expect_failure(TN_ERR_INDEX, "got 2; expected 0 to 1");
    ck_assert_ptr_null(tn_optimizer_data(optimizer, 2));
    expect_failure(TN_ERR_INDEX, "tn_optimizer_data: group: out of range, got 2");
    tn_optimizer_drop(optimizer);
}
END_TEST

START_TEST(options_are_set_by_name_by_element_and_by_text)
{
    TN_SCOPE;
    tn_tensor *p[2];
    char text[256];
    two_parameters(p);
    tn_optimizer *optimizer = tn_optimizer_parse(p, 1, "Adam(lr=0.5)");
    ck_assert_int_eq(tn_optimizer_add_group(optimizer, p + 1, 1, "betas=(0.5, 0.75)"), TN_OK);
    void *data = tn_optimizer_data(optimizer, 0);
    ck_assert_double_eq(option(optimizer, 1, "betas[1]"), 0.75);
    ck_assert_int_eq(tn_optimizer_set(optimizer, -1, "betas[0]", 0.25), TN_OK);
    ck_assert_double_eq(option(optimizer, 0, "betas[0]"), 0.25);
    ck_assert_double_eq(option(optimizer, 0, "betas[1]"), 0.999);
    ck_assert_double_eq(option(optimizer, 1, "betas[0]"), 0.25);
    ck_assert_double_eq(option(optimizer, 1, "betas[1]"), 0.75);
    ck_assert_int_eq(tn_optimizer_set_options(optimizer, 0, "lr=0.125, amsgrad=True"), TN_OK);
    ck_assert_double_eq(option(optimizer, 0, "amsgrad"), 1);
    ck_assert_double_eq(option(optimizer, 0, "betas[0]"), 0.25);
    ck_assert_ptr_eq(tn_optimizer_data(optimizer, 0), data);
    ck_assert_int_gt(tn_optimizer_options(optimizer, 0, text, sizeof text), 0);
    ck_assert_msg(strstr(text, "lr=0.125, betas=(0.25, 0.999)") != NULL, "%s", text);
    /* All groups or none. */
    ck_assert_int_eq(tn_optimizer_set_options(optimizer, 1, "eps=0.5"), TN_OK);
    ck_assert_int_eq(tn_optimizer_set(optimizer, -1, "betas[0]", 1.5), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "Invalid beta parameter at index 0: 1.5");
    ck_assert_int_eq(tn_optimizer_set_options(optimizer, -1, "lr=0.75, eps=-1"), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_double_eq(option(optimizer, 0, "lr"), 0.125);
    ck_assert_double_eq(option(optimizer, 0, "betas[0]"), 0.25);
    static const char *const wrong[] = {
        "betas[2]", "betas[-1]", "betas[", "betas[]",   "betas",
        "lr[0]",    "",          "[0]",    "betas[0]x", "betas[99999999999999]"
    };
    for (int64_t i = 0; i < tn__countof(wrong); i++) {
        double value;
        ck_assert_msg(tn_optimizer_get(optimizer, 0, wrong[i], &value) != TN_OK, "%s", wrong[i]);
        ck_assert_msg(tn_optimizer_set(optimizer, 0, wrong[i], 0.5) != TN_OK, "%s", wrong[i]);
        tn_error_clear();
    }
    tn_optimizer_drop(optimizer);
}
END_TEST

/* ---- schedulers that watch and remember ---- */

/* Halves the rates, and sets another option, when the metric has not become smaller. */
struct plateau {
    double best;
    int64_t bad;
};

static const tn_option plateau_state[] = {
    TN_OPTION_FLOAT(struct plateau, best, "inf", "the smallest so far"),
    TN_OPTION_INT(struct plateau, bad, "0", "steps since then"), TN_OPTION_END
};

static tn_status plateau_step(tn_scheduler *self, tn_schedule_args *args)
{
    struct plateau *state = tn_scheduler_state(self);

    if (args->step == 0)
        return TN_OK;
    if (isnan(args->metric))
        return tn_fail(TN_ERR_VALUE, "Plateau: metric: it is missing");
    state->bad = args->metric < state->best ? 0 : state->bad + 1;
    if (state->bad == 0)
        state->best = args->metric;
    for (int64_t i = 0; state->bad > 0 && i < args->groups; i++)
        args->rates[i] /= 2;
    if (args->metric > 100) /* after it has changed its state */
        return tn_fail(TN_ERR_VALUE, "Plateau: metric: too large");
    return state->bad > 0 ? tn_optimizer_set(args->optimizer, -1, "momentum", 0.25) : TN_OK;
}

static const tn_scheduler_def plateau = { TN_HEAD(tn_scheduler_def), .name = "TestPlateau",
                                          .step = plateau_step, .state = plateau_state,
                                          .state_size = sizeof(struct plateau) };

START_TEST(a_scheduler_watches_a_number_and_remembers)
{
    TN_SCOPE;
    tn_tensor *p[2];
    char text[128];
    two_parameters(p);
    ck_assert_int_eq(tn_register(&plateau), TN_OK);
    tn_optimizer *optimizer = tn_optimizer_parse(p, 1, "SGD(lr=1, momentum=0.5)");
    ck_assert_int_eq(tn_optimizer_add_group(optimizer, p + 1, 1, "lr=8"), TN_OK);
    tn_scheduler *scheduler = tn_scheduler_new(optimizer, "TestPlateau()");
    ck_assert_msg(scheduler != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_scheduler_step(scheduler), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "Plateau: metric: it is missing");
    ck_assert_int_eq(tn_scheduler_steps(scheduler), 0);
    ck_assert_int_eq(tn_scheduler_step_with(scheduler, 5), TN_OK);
    ck_assert_double_eq(option(optimizer, 1, "lr"), 8);
    ck_assert_int_eq(tn_scheduler_step_with(scheduler, 6), TN_OK);
    ck_assert_double_eq(option(optimizer, 0, "lr"), 0.5);
    ck_assert_double_eq(option(optimizer, 1, "lr"), 4);
    ck_assert_double_eq(option(optimizer, 1, "momentum"), 0.25);
    ck_assert_int_gt(tn_scheduler_state_text(scheduler, text, sizeof text), 0);
    ck_assert_str_eq(text, "steps=2, initial=[1.0, 8.0], last=[0.5, 4.0], best=5.0, bad=1");
    /* A step that fails changes neither rates nor state. */
    ck_assert_int_eq(tn_scheduler_step_with(scheduler, 101), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_double_eq(option(optimizer, 1, "lr"), 4);
    tn_scheduler_state_text(scheduler, text, sizeof text);
    ck_assert_str_eq(text, "steps=2, initial=[1.0, 8.0], last=[0.5, 4.0], best=5.0, bad=1");
    /* Another scheduler continues. */
    tn_scheduler *again = tn_scheduler_new(optimizer, "TestPlateau()");
    ck_assert_int_eq(tn_scheduler_set_state(again, text), TN_OK);
    ck_assert_int_eq(tn_scheduler_steps(again), 2);
    ck_assert_int_eq(tn_scheduler_step_with(again, 5), TN_OK);
    tn_scheduler_state_text(again, text, sizeof text);
    ck_assert_str_eq(text, "steps=3, initial=[1.0, 8.0], last=[0.25, 2.0], best=5.0, bad=2");
    ck_assert_double_eq(option(optimizer, 1, "lr"), 2);
    static const char *const wrong[] = { "best=1",           "steps=-1",        "steps=x, best=1",
                                         "steps=1, worst=2", "steps=1, best=)", "" };
    for (int64_t i = 0; i < tn__countof(wrong); i++) {
        ck_assert_msg(tn_scheduler_set_state(again, wrong[i]) != TN_OK, "%s", wrong[i]);
        tn_error_clear();
        tn_scheduler_state_text(again, text, sizeof text);
        ck_assert_str_eq(text, "steps=3, initial=[1.0, 8.0], last=[0.25, 2.0], best=5.0, bad=2");
    }
    tn_scheduler_drop(again);
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
}
END_TEST

START_TEST(schedulers_set_the_rates_of_all_groups_and_of_later_ones)
{
    TN_SCOPE;
    tn_tensor *p[2];
    two_parameters(p);
    tn_optimizer *optimizer = tn_optimizer_parse(p, 1, "SGD(lr=1)");
    tn_scheduler *scheduler = tn_scheduler_new(optimizer, "StepLR(1, gamma=0.5)");
    ck_assert_int_eq(tn_scheduler_step(scheduler), TN_OK);
    ck_assert_int_eq(tn_optimizer_add_group(optimizer, p + 1, 1, "lr=16"), TN_OK);
    ck_assert_int_eq(tn_scheduler_step(scheduler), TN_OK);
    ck_assert_double_eq(option(optimizer, 0, "lr"), 0.25);
    ck_assert_double_eq(option(optimizer, 1, "lr"), 8); /* half of its present rate */
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        optimizers_follow_the_trajectories_of_pytorch,
        optimizers_follow_them_in_float32_too,
        schedulers_give_the_rates_of_pytorch,
        a_scheduler_keeps_its_optimizer_alive,
        a_parameter_without_gradient_is_skipped_and_gets_no_state,
        the_first_momentum_buffer_is_a_copy_of_the_gradient,
        options_are_read_changed_checked_and_printed,
        what_pytorch_refuses_is_refused,
        a_null_goes_through_without_a_new_error,
        a_parameter_that_comes_twice_is_taken_once,
        state_follows_its_parameter_to_another_device,
        training_brings_a_regression_to_its_solution,
        groups_step_with_options_of_their_own,
        a_group_that_is_refused_leaves_the_optimizer_as_it_was,
        options_are_set_by_name_by_element_and_by_text,
        a_scheduler_watches_a_number_and_remembers,
        schedulers_set_the_rates_of_all_groups_and_of_later_ones,
        NULL,
    };
    return suite_run("train", tests);
}

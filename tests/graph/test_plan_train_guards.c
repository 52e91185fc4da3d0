/* SPDX-License-Identifier: MIT
 *
 * Plans of training: after which changes of a module or its inputs another plan is made, what has
 * no plan and why, and which calls run eagerly. */
#include "tests/graph/plan_training.h"

#include <tenon/parametrize.h>

static int calls;

/* ---- a module whose forward is one of these -------------------------------------------------- */

static tn_tensor *plain_forward(tn_module *self, tn_tensor *x)
{
    calls++;
    return tn_sigmoid(tn_mul(tn_module_get(self, "scale"), x));
}

static tn_tensor *other_forward(tn_module *self, tn_tensor *x)
{
    calls++;
    return tn_tanh(tn_mul(tn_module_get(self, "scale"), x));
}

static tn_module *plain(tn_tensor *(*forward)(tn_module *, tn_tensor *))
{
    tn_module *net = tn_module_plain("Net");

    ck_ok(tn_module_add_parameter(net, "scale", tn_parameter(numbers(1), true)));
    ck_ok(tn_module_add_buffer(net, "state", numbers(0), 0));
    ck_ok(tn_module_set_forward(net, forward, NULL, NULL));
    return net;
}

/* ---- changes --------------------------------------------------------------------------------- */

START_TEST(forward_runs_once)
{
    TN_SCOPE;
    struct pair p = pair_of(plain(plain_forward));

    calls = 0;
    for (int i = 0; i < 4; i++)
        ck_pair(&p, numbers((float)i));
    ck_assert_int_eq(calls, 4 + 1);
    drop_pair(&p);
}
END_TEST

START_TEST(another_forward_is_noticed)
{
    TN_SCOPE;
    struct pair p = pair_of(plain(plain_forward));

    ck_pair(&p, numbers(1));
    for (int i = 0; i < 2; i++)
        ck_ok(tn_module_set_forward(i == 0 ? p.net : p.eager, other_forward, NULL, NULL));
    ck_pair(&p, numbers(1));
    drop_pair(&p);
}
END_TEST

START_TEST(changed_options_and_modes_are_noticed)
{
    TN_SCOPE;
    struct pair p = pair_of(tn_module_new("Sequential(Linear(3, 8), Dropout(0.25), ReLU())"));
    tn_module *both[2] = { p.net, p.eager };

    ck_pair(&p, numbers(1));
    for (int i = 0; i < 2; i++)
        ck_ok(tn_module_option_set(tn_module_find(both[i], "1"), "p", tn_value_float(0.75)));
    ck_pair(&p, numbers(1));
    for (int i = 0; i < 2; i++) /* evaluation: another plan of the same module */
        ck_ok(tn_module_eval(tn_module_find(both[i], "1")));
    ck_pair(&p, numbers(1));
    for (int i = 0; i < 2; i++)
        ck_ok(tn_tensor_set_requires_grad(tn_module_find_tensor(both[i], "0.bias"), false));
    ck_pair(&p, numbers(1));
    ck_assert_ptr_eq(tn_tensor_grad(tn_module_find_tensor(p.net, "0.bias")), TN_NONE);
    for (int i = 0; i < 2; i++) {
        tn_module *other;

        tn_random_seed(9);
        other = tn_module_new("Linear(3, 8)");
        ck_ok(tn_module_set_child(both[i], "0", other, true));
        tn_module_drop(other);
    }
    ck_pair(&p, numbers(1));
    for (int i = 0; i < 2; i++) { /* the same parameter with other memory */
        tn_tensor *weight = tn_module_find_tensor(both[i], "0.weight");
        tn_tensor *with = tn_tensor_full(TN_SHAPE(8, 3), 0.25, TN_F32, NULL);

        ck_ok(tn_module_zero_grad(both[i]));
        ck_ok(tn_tensor_swap(weight, tn_parameter(with, true)));
    }
    ck_pair(&p, numbers(1));
    drop_pair(&p);
}
END_TEST

START_TEST(inputs_of_other_layouts_have_plans_of_their_own)
{
    TN_SCOPE;
    struct pair p = pair_of(tn_module_new("Sequential(Linear(3, 8), ReLU())"));
    tn_tensor *x = numbers(1), *leaf = tn_parameter(numbers(2), true);

    ck_pair(&p, x);
    ck_pair(&p, tn_transpose(tn_copy(tn_transpose(x, 0, 1)), 0, 1)); /* strides */
    ck_pair(&p, tn_reshape(numbers(1), TN_SHAPE(1, 2, 3)));
    ck_pair(&p, leaf); /* which requires a gradient */
    ck_assert_int_eq(plans_made(p.net), 4);
    ck_pair(&p, x);
    ck_assert_int_eq(plans_made(p.net), 4);
    ck_ok(tn_module_compile(p.net, "plan(train=True, bindings=2)"));
    for (int i = 0; i < 4; i++) {
        ck_pair(&p, numbers(1));
        ck_pair(&p, tn_reshape(numbers(1), TN_SHAPE(1, 2, 3)));
        ck_pair(&p, tn_reshape(numbers(1), TN_SHAPE(1, 1, 2, 3)));
    }
    ck_assert_int_eq(plans_made(p.net), 2);
    drop_pair(&p);
}
END_TEST

START_TEST(training_mode_without_gradients)
{
    TN_SCOPE;
    struct pair p = pair_of(convolutional());
    tn_tensor *x = numbered(TN_SHAPE(2, 3, 8, 8), 1);

    ck_ok(tn_grad_begin(false));
    for (int i = 0; i < 3; i++)
        ck_same(tn_module_call(p.net, x), tn_module_call(p.eager, x));
    tn_grad_end();
    same_states(p.net, p.eager); /* the statistics of the batch norm */
    ck_ok(tn_module_eval(p.net));
    ck_ok(tn_module_eval(p.eager));
    ck_ok(tn_inference_begin(true));
    ck_same(tn_module_call(p.net, x), tn_module_call(p.eager, x));
    tn_inference_end();
    ck_ok(tn_module_train(p.net, true));
    ck_ok(tn_inference_begin(true));
    ck_assert(tn_tensor_is_inference(tn_module_call(p.net, x)));
    tn_inference_end();
    ck_assert(!tn_tensor_is_inference(tn_module_call(p.net, x)));
    drop_pair(&p);
}
END_TEST

/* A view of the parts of complex numbers. */
static tn_tensor *real_forward(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_view_as_real(x);
}

START_TEST(a_view_of_another_dtype_keeps_its_place)
{
    TN_SCOPE;
    float values[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    tn_tensor *all = tn_tensor_from(values, TN_F32, TN_SHAPE(4, 2));
    tn_tensor *z = tn_complex(all, all), *x = tn_narrow(z, 0, 1, 2), *y;
    tn_module *net = plain(real_forward);

    ck_ok(tn_module_eval(net));
    ck_ok(tn_module_compile(net, TRAIN));
    ck_made(x);
    ck_ok(tn_grad_begin(false));
    for (int i = 0; i < 2; i++) {
        y = tn_module_call(net, x);
        ck_same(y, tn_view_as_real(x));
    }
    tn_grad_end();
    tn_module_drop(net);
}
END_TEST

static tn_status with_none(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_value second = tn_pack_at(in, 1);
    tn_tensor *y = tn_mul(tn_pack_at(in, 0).as.tensor, tn_module_get(self, "scale"));

    calls++;
    if (second.kind == TN_VALUE_TENSOR && second.as.tensor != TN_NONE)
        y = tn_mul(y, second.as.tensor);
    return tn_pack_add(out, NULL, tn_value_tensor(y));
}

START_TEST(none_as_an_input)
{
    TN_SCOPE;
    tn_module *net = plain(plain_forward);
    tn_tensor *x = numbers(1), *scale = tn_module_get(net, "scale");

    ck_ok(tn_module_set_call(net, with_none, NULL, NULL));
    ck_ok(tn_module_compile(net, TRAIN));
    calls = 0;
    for (int i = 0; i < 6; i++) {
        tn_pack *in = tn_pack_new(), *out = tn_pack_new();
        tn_tensor *y = tn_mul(x, scale);

        ck_ok(tn_pack_add(in, NULL, tn_value_tensor(x)));
        ck_ok(tn_pack_add(in, NULL,
                          i % 3 == 0   ? tn_value_none()
                          : i % 3 == 1 ? tn_value_tensor(TN_NONE)
                                       : tn_value_tensor(x)));
        ck_ok(tn_module_call_pack(net, in, out));
        ck_same(tn_pack_at(out, 0).as.tensor, i % 3 == 2 ? tn_mul(y, x) : y);
        ck_ok(tn_backward(tn_sum(tn_pack_at(out, 0).as.tensor)));
        tn_pack_drop(in);
        tn_pack_drop(out);
    }
    ck_assert_int_eq(calls, 2);
    tn_module_drop(net);
}
END_TEST

/* ---- what runs eagerly ----------------------------------------------------------------------- */

START_TEST(calls_that_run_eagerly)
{
    TN_SCOPE;
    tn_module *net = plain(plain_forward);
    tn_tensor *x = numbers(1);

    ck_ok(tn_module_compile(net, TRAIN));
    calls = 0;
    for (int i = 0; i < 2; i++) {
        ck_ok(tn_anomaly_begin(true));
        ck_ok(tn_backward(loss_of(tn_module_call(net, x))));
        tn_anomaly_end();
        ck_ok(tn_autocast_begin("cpu", TN_BF16, true));
        ck_ok(tn_backward(loss_of(tn_module_call(net, x))));
        tn_autocast_end();
        ck_ok(tn_parametrize_cache_begin());
        ck_ok(tn_backward(loss_of(tn_module_call(net, x))));
        tn_parametrize_cache_end();
    }
    ck_assert_int_eq(calls, 6);
    ck_assert_int_eq(plans_made(net), 0);
    for (int i = 0; i < 2; i++) { /* a plan in anomaly mode: only its gradients are looked at */
        tn_tensor *y = tn_module_call(net, x);

        ck_ok(tn_anomaly_begin(true));
        ck_ok(tn_backward(loss_of(y)));
        tn_anomaly_end();
    }
    ck_assert_int_eq(calls, 7);
    tn_module_drop(net);
}
END_TEST

START_TEST(the_first_call_of_a_lazy_module_is_eager)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(LazyLinear(4), ReLU())");

    ck_ok(tn_module_compile(net, TRAIN));
    for (int i = 0; i < 3; i++)
        ck_ok(tn_backward(loss_of(tn_module_call(net, numbers(1)))));
    ck_assert_int_eq(plans_made(net), 1);
    tn_module_drop(net);
}
END_TEST

START_TEST(parametrized_weights)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 4), Tanh())");
    struct pair p;

    ck_ok(tn_parametrize_with(tn_module_find(net, "0"), "weight", "WeightNorm()"));
    p = pair_of(net);
    for (int i = 0; i < 4; i++)
        ck_pair(&p, numbers((float)i));
    ck_assert_int_eq(plans_made(p.net), 1);
    drop_pair(&p);
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

static tn_tensor *closure;

static tn_tensor *sets_buffer(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_mul(tn_module_get(self, "scale"), x);

    return tn_module_set(self, "state", y) == TN_OK ? y : NULL;
}

static tn_tensor *history_in_buffer(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_mul(tn_module_get(self, "scale"), x);

    return tn_copy_(tn_module_get(self, "state"), y) != NULL ? y : NULL;
}

static tn_tensor *detaches_parameter(tn_module *self, tn_tensor *x)
{
    return tn_mul(tn_tensor_detach_(tn_module_get(self, "scale")), x);
}

static tn_tensor *detaches_input(tn_module *self, tn_tensor *x)
{
    return tn_mul(tn_module_get(self, "scale"), tn_tensor_detach_(x));
}

static tn_tensor *infers(tn_module *self, tn_tensor *x)
{
    tn_tensor *y;

    ck_ok(tn_inference_begin(true));
    y = tn_mul_scalar(x, 2);
    tn_inference_end();
    return y != NULL ? tn_mul(tn_module_get(self, "scale"), x) : NULL;
}

static tn_tensor *writes_input(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_mul_scalar_(x, 2);
}

static tn_tensor *reads_parameter(tn_module *self, tn_tensor *x)
{
    tn_scalar value;

    if (tn_tensor_scalar(tn_select(tn_select(tn_module_get(self, "scale"), 0, 0), 0, 0), &value) !=
        TN_OK)
        return NULL;
    return tn_mul_scalar(x, tn_scalar_as_float(value));
}

static tn_tensor *reads_values(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_mul(tn_module_get(self, "scale"), x);

    return tn_item(tn_sum(y)) > 0 ? y : NULL;
}

static tn_tensor *hooks_value(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_mul(tn_module_get(self, "scale"), x);

    tn_tensor_retain_grad(y);
    return tn_relu(y);
}

static tn_tensor *differentiates(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_mul(tn_module_get(self, "scale"), x);

    return tn_backward(tn_sum(y)) == TN_OK ? y : NULL;
}

static tn_tensor *uses_closure(tn_module *self, tn_tensor *x)
{
    return tn_mul(tn_mul(tn_module_get(self, "scale"), x), closure);
}

static tn_tensor *returns_view(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_transpose(x, 0, 1);
}

static tn_tensor *adds_module(tn_module *self, tn_tensor *x)
{
    tn_module *child = tn_module_new("ReLU()");

    ck_ok(tn_module_add_child(self, "late", child));
    tn_module_drop(child);
    return tn_mul(tn_module_get(self, "scale"), x);
}

static tn_tensor *draws_itself(tn_module *self, tn_tensor *x)
{
    uint64_t seed, block;

    ck_ok(tn_random_take(4, 1, &seed, &block));
    return tn_mul_scalar(tn_mul(tn_module_get(self, "scale"), x), (double)(block % 5));
}

static tn_tensor *seeds(tn_module *self, tn_tensor *x)
{
    tn_random_seed(4);
    return tn_mul(tn_module_get(self, "scale"), x);
}

START_TEST(what_cannot_be_repeated_is_refused_with_the_reason)
{
    static const struct {
        tn_tensor *(*forward)(tn_module *, tn_tensor *);
        const char *reason;
    } rows[] = {
        { sets_buffer, "tn_module_set: it needs values that only a run has" },
        { history_in_buffer, "or records a change of it" },
        { detaches_parameter, "forward sets a parameter or buffer" },
        { detaches_input, "tn_detach in place of tn_detach_" },
        { infers, "inference mode" },
        { writes_input, "an input" },
        { reads_parameter, "the values of a parameter" },
        { reads_values, "values that only a run has" },
        { hooks_value, "tn_tensor_retain_grad" },
        { differentiates, "backward: a plan would repeat the same" },
        { uses_closure, "neither an input nor a parameter" },
        { returns_view, "it is a view of an input" },
        { adds_module, "forward changes modules" },
        { draws_itself, "no operator uses the numbers" },
        { seeds, "tn_random_seed" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TN_SCOPE;
        tn_module *net = plain(rows[i].forward);
        tn_tensor *scale = tn_module_get(net, "scale"), *state = tn_module_get(net, "state");
        tn_tensor *x = tn_parameter(numbers(3), rows[i].forward == detaches_input);
        int64_t nodes;

        closure = tn_parameter(numbers(2), true);
        if (rows[i].forward == writes_input)
            x = numbers(3);
        nodes = tn_grad_node_count();
        ck_ok(tn_module_compile(net, TRAIN));
        ck_assert_ptr_null(tn_module_call(net, x));
        ck_assert_msg(strstr(tn_error_text(), rows[i].reason) != NULL, "row %d: %s", (int)i,
                      tn_error_text());
        ck_error(tn_error_code(), "plan: ", rows[i].reason);
        /* the module is as it was */
        ck_assert_ptr_eq(tn_module_get(net, "scale"), scale);
        ck_assert_ptr_eq(tn_module_get(net, "state"), state);
        ck_assert(tn_tensor_requires_grad(scale) && tn_tensor_is_leaf(scale));
        ck_assert(!tn_tensor_requires_grad(state) && tn_tensor_is_leaf(state));
        ck_same(scale, numbers(1));
        ck_same(state, numbers(0));
        ck_assert_ptr_eq(tn_tensor_grad(scale), TN_NONE);
        ck_assert_int_eq(tn_grad_node_count(), nodes);
        tn_module_drop(net);
    }
}
END_TEST

/* While forward is recorded, tn_tensor_requires_grad() returns what it returns in the calls of the
 * plan. */
static tn_tensor *asks(tn_module *self, tn_tensor *x)
{
    calls++;
    return tn_tensor_requires_grad(x) ? tn_mul(tn_module_get(self, "scale"), x)
                                      : tn_add(tn_module_get(self, "scale"), x);
}

START_TEST(forward_sees_what_requires_gradients)
{
    TN_SCOPE;
    struct pair p = pair_of(plain(asks));

    calls = 0;
    for (int i = 0; i < 4; i++)
        ck_pair(&p, tn_parameter(numbers(2), i % 2 == 0));
    ck_assert_int_eq(calls, 4 + 2);
    drop_pair(&p);
}
END_TEST

START_TEST(statistics_that_depend_on_values_are_refused)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("BatchNorm1d(3, momentum=None)");

    ck_ok(tn_module_compile(net, TRAIN));
    ck_assert_ptr_null(tn_module_call(net, numbers(1)));
    ck_error(TN_ERR_NOT_IMPLEMENTED, "are read, and a step changes them", "values");
    tn_module_drop(net);
}
END_TEST

START_TEST(no_plan_of_training_unless_asked_for)
{
    TN_SCOPE;
    tn_module *net = plain(plain_forward);

    ck_ok(tn_module_compile(net, "plan()"));
    calls = 0;
    for (int i = 0; i < 2; i++)
        ck_ok(tn_backward(loss_of(tn_module_call(net, numbers(1)))));
    ck_assert_int_eq(calls, 2);
    ck_assert_str_eq(plans_of(net), "");
    ck_ok(tn_module_compile(net, TRAIN));
    ck_ok(tn_backward(loss_of(tn_module_call(net, numbers(1)))));
    ck_assert_ptr_nonnull(
        strstr(plans_of(net), "training plan for (float32[2, 3]) with gradients"));
    ck_assert_ptr_nonnull(strstr(plans_of(net), "backward, for gradients of output 0"));
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { forward_runs_once,
                                   another_forward_is_noticed,
                                   changed_options_and_modes_are_noticed,
                                   inputs_of_other_layouts_have_plans_of_their_own,
                                   training_mode_without_gradients,
                                   a_view_of_another_dtype_keeps_its_place,
                                   none_as_an_input,
                                   calls_that_run_eagerly,
                                   the_first_call_of_a_lazy_module_is_eager,
                                   parametrized_weights,
                                   what_cannot_be_repeated_is_refused_with_the_reason,
                                   forward_sees_what_requires_gradients,
                                   statistics_that_depend_on_values_are_refused,
                                   no_plan_of_training_unless_asked_for,
                                   NULL };
    return suite_run("plan train guards", tests);
}

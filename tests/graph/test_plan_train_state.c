/* SPDX-License-Identifier: MIT
 *
 * Plans of training: tensors and modules from outside that change, and what the program changes
 * between forward and backward. */
#include "tests/graph/plan_training.h"

static tn_tensor *constant;
static tn_module *teacher;

static tn_module *net_of(tn_tensor *(*forward)(tn_module *, tn_tensor *))
{
    tn_module *net = tn_module_plain("Net");

    ck_ok(tn_module_add_parameter(net, "scale", tn_parameter(numbers(1), true)));
    ck_ok(tn_module_set_forward(net, forward, NULL, NULL));
    return net;
}

/* ---- from outside ---------------------------------------------------------------------------- */

static tn_tensor *uses_constant(tn_module *self, tn_tensor *x)
{
    return tn_mul(tn_mul(tn_module_get(self, "scale"), x), constant);
}

START_TEST(a_constant_that_moves)
{
    TN_SCOPE;
    struct pair p;

    constant = numbers(4);
    p = pair_of(net_of(uses_constant));
    ck_pair(&p, numbers(1));
    ck_ok(tn_tensor_swap(constant, numbers(-2)));
    ck_pair(&p, numbers(1));
    ck_made(tn_mul_scalar_(constant, 3)); /* in place: the same plan */
    ck_pair(&p, numbers(1));
    drop_pair(&p);
}
END_TEST

START_TEST(a_constant_that_changes_before_backward)
{
    TN_SCOPE;
    struct pair p;

    constant = numbers(4);
    p = pair_of(net_of(uses_constant));
    for (int i = 0; i < 4; i++) {
        tn_tensor *y = tn_module_call(i % 2 == 0 ? p.eager : p.net, numbers(1));

        ck_made(tn_mul_scalar_(constant, 3));
        ck_assert_int_ne(tn_backward(loss_of(y)), TN_OK);
        ck_error(TN_ERR_RUNTIME, "modified by an inplace operation", "[2, 3]");
    }
    drop_pair(&p);
}
END_TEST

static tn_tensor *distils(tn_module *self, tn_tensor *x)
{
    tn_tensor *y;

    ck_ok(tn_grad_begin(false));
    y = tn_module_call(teacher, x);
    tn_grad_end();
    return tn_mul(y, tn_mul(x, tn_module_get(self, "scale")));
}

START_TEST(a_module_from_outside_that_changes)
{
    TN_SCOPE;
    struct pair p;
    tn_module *other;
    tn_tensor *weight;

    teacher = tn_module_new("Sequential(Linear(3, 3), LeakyReLU(0.1))");
    p = pair_of(net_of(distils));
    ck_pair(&p, numbers(1));
    weight = tn_parameter(tn_tensor_full(TN_SHAPE(3, 3), 0.25, TN_F32, NULL), false);
    ck_ok(tn_module_set(tn_module_child_at(teacher, 0), "weight", weight));
    ck_pair(&p, numbers(-4));
    ck_ok(tn_module_option_set(tn_module_child_at(teacher, 1), "negative_slope",
                               tn_value_float(0.5)));
    ck_pair(&p, numbers(-4));
    other = tn_module_new("Sigmoid()");
    ck_ok(tn_module_set_child(teacher, "1", other, true));
    tn_module_drop(other);
    ck_pair(&p, numbers(-4));
    drop_pair(&p);
    tn_module_drop(teacher);
}
END_TEST

static tn_tensor *sets_option(tn_module *self, tn_tensor *x)
{
    ck_ok(tn_module_option_set(teacher, "negative_slope", tn_value_float(0.5)));
    return tn_mul(x, tn_module_get(self, "scale"));
}

START_TEST(options_of_modules_that_forward_does_not_call)
{
    TN_SCOPE;
    struct pair p;

    teacher = tn_module_new("LeakyReLU(0.1)");
    p = pair_of(net_of(sets_option)); /* as another thread may do while a call is recorded */
    for (int i = 0; i < 3; i++) {
        ck_pair(&p, numbers(1));
        ck_ok(tn_module_option_set(teacher, "negative_slope", tn_value_float(0.25)));
    }
    ck_assert_int_eq(plans_made(p.net), 1);
    drop_pair(&p);
    tn_module_drop(teacher);
}
END_TEST

static tn_tensor *previous;

static tn_tensor *keeps_previous(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_mul(x, tn_module_get(self, "scale"));
    tn_tensor *z = previous != NULL ? tn_add(y, previous) : y;

    tn_tensor_drop(previous);
    previous = tn_tensor_keep(tn_detach(y));
    return z;
}

static tn_tensor *keeps_result(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_sin(tn_mul(x, tn_module_get(self, "scale")));

    tn_tensor_drop(previous);
    return previous = tn_tensor_keep(y);
}

/* These forwards store a tensor in a variable. A run of a plan would not store it again. */
START_TEST(values_that_forward_keeps_are_refused)
{
    tn_tensor *(*const forwards[])(tn_module *, tn_tensor *) = { keeps_previous, keeps_result };

    for (int i = 0; i < 4; i++) {
        TN_SCOPE;
        tn_module *net = net_of(forwards[i / 2]);

        ck_ok(tn_module_compile(net, TRAIN));
        ck_assert_ptr_null(tn_module_call(net, tn_parameter(numbers(1), i % 2 == 1)));
        ck_error(TN_ERR_NOT_IMPLEMENTED, "plan: ", "forward keeps a tensor");
        tn_tensor_drop(previous);
        previous = NULL;
        tn_module_drop(net);
    }
}
END_TEST

static tn_status keeps_first(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_tensor *x = tn_pack_at(in, 0).as.tensor, *y = keeps_result(self, x);
    tn_tensor *view = tn_unsqueeze(tn_cos(tn_mul(x, tn_module_get(self, "scale"))), 0);

    ck_ok(tn_pack_add(out, NULL, tn_value_tensor(y)));
    return tn_pack_add(out, NULL, tn_value_tensor(view));
}

/* The other result is a view of another storage: what the plan has of it does not explain the
 * program's reference to the first. */
START_TEST(a_kept_result_beside_a_view_is_refused)
{
    TN_SCOPE;
    tn_module *net = net_of(keeps_result);

    ck_ok(tn_module_set_call(net, keeps_first, NULL, NULL));
    ck_ok(tn_module_compile(net, TRAIN));
    ck_assert_ptr_null(call_of(net, numbers(1)));
    ck_error(TN_ERR_NOT_IMPLEMENTED, "plan: ", "forward keeps a tensor");
    tn_tensor_drop(previous);
    previous = NULL;
    tn_module_drop(net);
}
END_TEST

/* ---- between forward and backward ------------------------------------------------------------ */

static void switch_off(tn_module *net, bool detach)
{
    tn_tensor *weight = tn_module_find_tensor(net, "0.weight");

    if (detach)
        ck_made(tn_tensor_detach_(weight));
    else
        ck_ok(tn_tensor_set_requires_grad(weight, false));
}

/* The first backward of a plan, after a parameter whose gradient the plan computes stopped
 * requiring it. */
START_TEST(gradients_switched_off_before_backward)
{
    for (int detach = 0; detach < 2; detach++) {
        TN_SCOPE;
        struct pair p = pair_of(tn_module_new("Sequential(Linear(3, 4), Tanh(), Linear(4, 2))"));

        for (int k = 0; k < 2; k++) {
            tn_module *net = k == 0 ? p.eager : p.net;
            tn_tensor *y = tn_module_call(net, numbers(1));

            switch_off(net, detach == 1);
            ck_ok(tn_backward(tn_sum(y)));
        }
        same_gradients(p.net, p.eager);
        ck_pair(&p, numbers(2));
        drop_pair(&p);
    }
}
END_TEST

static tn_status two_results(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_tensor *x = tn_pack_at(in, 0).as.tensor;
    tn_status status = tn_pack_add(out, NULL,
                                   tn_value_tensor(tn_tanh(tn_mul(x, tn_module_get(self, "a")))));

    if (status != TN_OK)
        return status;
    return tn_pack_add(out, NULL, tn_value_tensor(tn_exp(tn_mul(x, tn_module_get(self, "b")))));
}

START_TEST(values_that_this_backward_does_not_use_may_change)
{
    for (int what = 0; what < 3; what++) {
        TN_SCOPE;
        tn_module *net = tn_module_plain("Two");
        struct pair p;

        ck_ok(tn_module_add_parameter(net, "a", tn_parameter(numbers(1), true)));
        ck_ok(tn_module_add_parameter(net, "b", tn_parameter(numbers(2), true)));
        ck_ok(tn_module_set_call(net, two_results, NULL, NULL));
        p = pair_of(net);
        for (int k = 0; k < 2; k++) {
            tn_pack *in = tn_pack_new(), *out = tn_pack_new();
            tn_module *of = k == 0 ? p.eager : p.net;
            tn_tensor *x = tn_parameter(numbers(1), true), *y;

            ck_ok(tn_pack_add(in, NULL, tn_value_tensor(x)));
            ck_ok(tn_module_call_pack(of, in, out));
            y = tn_pack_at(out, 0).as.tensor;
            ck_ok(tn_grad_begin(false));
            if (what < 2)
                ck_made(tn_mul_scalar_(
                    what == 0 ? tn_module_get(of, "b") : tn_pack_at(out, 1).as.tensor, 2));
            else
                ck_made(tn_mul_scalar_(tn_module_get(of, "a"), 2)); /* backward of y uses it */
            tn_grad_end();
            if (what < 2) {
                ck_ok(tn_backward(loss_of(y)));
            } else {
                ck_assert_int_ne(tn_backward(loss_of(y)), TN_OK);
                ck_error(TN_ERR_RUNTIME, "modified by an inplace operation", "[2, 3]");
            }
            tn_pack_drop(in);
            tn_pack_drop(out);
        }
        if (what < 2)
            same_gradients(p.net, p.eager);
        drop_pair(&p);
    }
}
END_TEST

static tn_tensor *pending, *ones;

static tn_tensor *backs(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_backward_with(pending, ones, false) == TN_OK ? tn_sin(x) : NULL;
}

START_TEST(backward_within_a_trace_is_refused)
{
    TN_SCOPE;
    struct pair p = pair_of(tn_module_new("Sequential(Linear(3, 4), Tanh())"));
    tn_module *outer = net_of(backs);
    tn_tracing_options how = TN_TRACING_OPTIONS;

    pending = tn_module_call(p.net, numbers(1));
    ones = tn_ones(TN_SHAPE(2, 4));
    ck_assert_ptr_null(tn_module_trace(outer, numbers(1), &how));
    ck_error(TN_ERR_NOT_IMPLEMENTED, "plan: ", "cannot be traced");
    ck_pair(&p, numbers(1));
    tn_module_drop(outer);
    drop_pair(&p);
}
END_TEST

static tn_tensor *reads_result(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_module_call(tn_module_child_at(self, 0), x);

    return y == NULL || (tn_module_is_training(self) && tn_item(tn_sum(y)) > 9) ? NULL : y;
}

/* A call that is refused does not change the statistics, so backward of an earlier call still
 * works. */
START_TEST(a_refused_call_changes_no_version)
{
    TN_SCOPE;
    tn_module *net = net_of(reads_result), *child = tn_module_new("BatchNorm1d(3)");
    tn_tensor *loss;

    ck_ok(tn_module_add_child(net, "norm", child));
    tn_module_drop(child);
    ck_ok(tn_module_compile(net, TRAIN));
    ck_ok(tn_module_eval(net));
    loss = loss_of(tn_module_call(net, tn_parameter(numbers(1), true)));
    ck_made(loss);
    ck_ok(tn_module_train(net, true));
    ck_assert_ptr_null(tn_module_call(net, numbers(1)));
    ck_error(TN_ERR_NOT_IMPLEMENTED, "plan: ", "values");
    ck_ok(tn_backward(loss));
    tn_module_drop(net);
}
END_TEST

static tn_tensor *scales(tn_module *self, tn_tensor *x)
{
    return tn_sin(tn_mul(x, tn_module_get(self, "scale")));
}

START_TEST(results_of_the_inference_mode)
{
    TN_SCOPE;
    struct pair p = pair_of(net_of(scales));

    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            tn_tensor *y;

            ck_ok(tn_inference_begin(i % 2 == 0));
            y = tn_module_call(k == 0 ? p.eager : p.net, numbers(1));
            tn_inference_end();
            ck_assert_int_eq(tn_tensor_is_inference(y), i % 2 == 0);
            ck_assert_int_eq(tn_tensor_requires_grad(y), i % 2 != 0);
        }
    drop_pair(&p);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_constant_that_moves,
                                   a_constant_that_changes_before_backward,
                                   a_module_from_outside_that_changes,
                                   options_of_modules_that_forward_does_not_call,
                                   values_that_forward_keeps_are_refused,
                                   a_kept_result_beside_a_view_is_refused,
                                   gradients_switched_off_before_backward,
                                   values_that_this_backward_does_not_use_may_change,
                                   backward_within_a_trace_is_refused,
                                   a_refused_call_changes_no_version,
                                   results_of_the_inference_mode,
                                   NULL };
    return suite_run("plan train state", tests);
}

/* SPDX-License-Identifier: MIT
 *
 * Whole steps: parameters, buffers and inputs as results, the texts of failures, and what observers
 * see of a step. */
#include "tests/graph/plan_training.h"

/* Returns the loss, a parameter, a buffer, and the input. */
static tn_status call_with_state(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_tensor *x = tn_pack_tensor(in, 0), *scale = tn_module_get(self, "scale");
    tn_tensor *seen = tn_module_get(self, "seen");
    tn_status status;

    if (tn_add_(seen, x) == NULL)
        return tn_error_last_code();
    status = tn_pack_add(out, NULL, tn_value_tensor(loss_of(tn_mul(x, scale))));
    if (status == TN_OK)
        status = tn_pack_add(out, NULL, tn_value_tensor(scale));
    if (status == TN_OK)
        status = tn_pack_add(out, NULL, tn_value_tensor(seen));
    return status == TN_OK ? tn_pack_add(out, NULL, tn_value_tensor(x)) : status;
}

static tn_module *with_state(void)
{
    tn_module *net = own(mixed_forward);

    ck_ok(tn_module_add_buffer(net, "seen", tn_copy(numbers(0)), 0));
    ck_ok(tn_module_set_call(net, call_with_state, NULL, NULL));
    return net;
}

START_TEST(parameters_buffers_and_inputs_are_results)
{
    TN_SCOPE;
    tn_module *net = with_state(), *other = tn_module_copy(net);
    tn_optimizer *rule = tn_optimizer_new(net, "SGD(lr=0.1, momentum=0.9)");
    tn_optimizer *same = tn_optimizer_new(other, "SGD(lr=0.1, momentum=0.9)");
    tn_step *step = tn_step_new(net, NULL, rule, NULL);

    for (int i = 0; i < 3; i++) {
        tn_tensor *x = numbers((float)i - 2), *expected[4], *out[5];

        ck_ok(tn_optimizer_zero_grad(same));
        ck_ok(tn_module_call_many(other, &x, 1, expected, 4));
        ck_ok(tn_backward(expected[0]));
        ck_ok(tn_optimizer_step(same));
        ck_ok(tn_step_run(step, &x, 1, out, 5));
        ck_same(out[0], expected[0]);
        for (int k = 0; k < 4; k++)
            ck_same(out[k + 1], expected[k]);
        ck_assert_ptr_eq(out[2], tn_module_get(net, "scale")); /* itself, as eagerly */
        ck_assert_ptr_eq(out[3], tn_module_get(net, "seen"));
        ck_assert_ptr_eq(out[4], x);
    }
    same_states(net, other);
    tn_step_drop(step);
    tn_optimizer_drop(rule);
    tn_optimizer_drop(same);
    tn_module_drop(net);
    tn_module_drop(other);
}
END_TEST

/* ---- texts ----------------------------------------------------------------------------------- */

/* The message has the name of the function once, in front. */
static void ck_one_prefix(const char *part)
{
    const char *text = tn_error_text();

    ck_assert_msg(strncmp(text, "tn_step_run: ", 13) == 0, "%s", text);
    ck_assert_msg(strstr(text + 13, "tn_step_run") == NULL, "%s", text);
    ck_assert_msg(strstr(text, part) != NULL, "%s", text);
    tn_error_clear();
}

/* A module is no result that a graph can have. */
static tn_status call_wrong(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_tensor *y = tn_mul(tn_pack_tensor(in, 0), tn_module_get(self, "scale"));
    tn_status status = tn_pack_add(out, NULL, tn_value_tensor(loss_of(y)));

    return status == TN_OK ? tn_pack_add(out, NULL, tn_value_module(self)) : status;
}

START_TEST(failures_name_the_function_once)
{
    TN_SCOPE;
    tn_module *net = with_state(), *wrong = own(mixed_forward);
    tn_optimizer *rule = tn_optimizer_new(net, "SGD(lr=0.1)");
    tn_step *step = tn_step_new(net, NULL, rule, NULL), *other;
    tn_tensor *x = numbers(1), *none = NULL, *out[8];

    ck_assert_int_ne(tn_step_run(step, &x, 0, out, 1), TN_OK);
    ck_one_prefix("wrong number of tensors, got 0 in");
    ck_assert_int_ne(tn_step_run(step, &none, 1, out, 1), TN_OK);
    ck_one_prefix("in");
    ck_assert_int_ne(tn_step_run(step, &x, 1, out, 8), TN_OK);
    ck_one_prefix("out: too many, got 8; expected at most 5");
    ck_ok(tn_module_set_call(wrong, call_wrong, NULL, NULL));
    other = tn_step_new(wrong, NULL, rule, NULL);
    ck_assert_int_ne(tn_step_run(other, &x, 1, out, 1), TN_OK);
    ck_one_prefix("results: wrong value, got module");
    tn_step_drop(other);
    tn_step_drop(step);
    tn_optimizer_drop(rule);
    tn_module_drop(net);
    tn_module_drop(wrong);
}
END_TEST

/* ---- observers ------------------------------------------------------------------------------- */

static int begun, ended, updates_inside;

static uint64_t range_begin(void *user, const tn_range_event *event)
{
    (void)user;
    begun += event->kind == TN_RANGE_STEP && strcmp(event->name, "SGD") == 0;
    return 0;
}

static void range_end(void *user, uint64_t token, const tn_range_event *event)
{
    (void)user, (void)token;
    ended += event->kind == TN_RANGE_STEP && event->status == TN_OK;
}

static void op_end(void *user, uint64_t token, const tn_op_event *event)
{
    (void)user, (void)token;
    updates_inside += begun == ended + 1 && strncmp(event->op->name, "sgd", 3) == 0;
}

static const tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "step-ranges",
                                          .op_end = op_end, .range_begin = range_begin,
                                          .range_end = range_end };

/* Weights of over 1 MiB each, which are updated one by one. */
START_TEST(observers_see_one_step)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(8, 600), ReLU(), Linear(600, 600), ReLU(), "
                                   "Linear(600, 600), ReLU(), Linear(600, 4))");
    tn_module *loss = tn_module_new("MSELoss()");
    tn_optimizer *rule = tn_optimizer_new(net, "SGD(lr=0.1)");
    tn_step *step = tn_step_new(net, loss, rule, NULL);
    tn_tensor *in[2] = { numbered(TN_SHAPE(2, 8), 1), numbered(TN_SHAPE(2, 4), 2) }, *out;
    static char text[1 << 14];
    int updates = 0;

    ck_ok(tn_register(&observer));
    for (int i = 0; i < 3; i++) {
        ck_ok(tn_step_run(step, in, 2, &out, 1));
        ck_assert_int_eq(begun, i + 1);
        ck_assert_int_eq(ended, i + 1);
    }
    ck_ok(tn_unregister(TN_KIND_tn_observer_def, "step-ranges"));
    ck_assert_int_gt(tn_step_print(step, text, sizeof text), 0);
    for (const char *at = text; (at = strstr(at, "update: ")) != NULL; at++)
        updates++;
    ck_assert_int_gt(updates, 1);
    ck_assert_int_ge(updates_inside, 3 * updates);
    tn_step_drop(step);
    tn_optimizer_drop(rule);
    tn_module_drop(loss);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { parameters_buffers_and_inputs_are_results,
                                   failures_name_the_function_once, observers_see_one_step, NULL };
    return suite_run("plan step results", tests);
}

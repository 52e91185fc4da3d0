/* SPDX-License-Identifier: MIT
 *
 * Plans of training: a hundred steps of networks have the bits of eager ones, with all gradients;
 * backward for some of the results, several times, after several calls of forward. */
#include "tests/graph/plan_training.h"

/* ---- a hundred steps ------------------------------------------------------------------------- */

static void hundred_steps(tn_module *net, tn_ints shape, const char *rule)
{
    struct pair p = pair_of(net);
    tn_optimizer *rules[2] = { tn_optimizer_new(p.net, "%s", rule),
                               tn_optimizer_new(p.eager, "%s", rule) };

    ck_made(rules[0]);
    ck_made(rules[1]);
    for (int i = 0; i < 100; i++) {
        TN_SCOPE;
        step_pair(&p, rules, numbered(shape, i), (uint64_t)i);
    }
    same_states(p.net, p.eager);
    ck_assert_msg(plans_made(p.net) == 1, "%s", plans_of(p.net));
    tn_optimizer_drop(rules[0]);
    tn_optimizer_drop(rules[1]);
    drop_pair(&p);
}

START_TEST(a_hundred_steps_of_a_network_have_the_bits_of_eager_ones)
{
    static const struct {
        const char *spec, *rule;
        int64_t shape[4];
        int32_t ndim;
    } rows[] = {
        { "Sequential(Linear(6, 16), ReLU(), Linear(16, 16), GELU(), Linear(16, 3))",
          "SGD(lr=0.1, momentum=0.9)",
          { 4, 6 },
          2 },
        { "Sequential(Conv2d(1, 6, 5, padding=2), ReLU(), MaxPool2d(2), Conv2d(6, 16, 5), Tanh(), "
          "AvgPool2d(2), Flatten(), Linear(16, 12), ReLU(), Linear(12, 4))",
          "Adam(lr=0.01)",
          { 3, 1, 12, 12 },
          4 },
        { "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Conv2d(8, 8, 3, groups=2), "
          "BatchNorm2d(8), SiLU(), Flatten(), Linear(128, 4))",
          "SGD(lr=0.05, momentum=0.9)",
          { 2, 3, 8, 8 },
          4 },
        { "Sequential(Linear(6, 16), Dropout(0.3), ReLU(), Dropout(0.5), Linear(16, 8), "
          "AlphaDropout(0.2), RReLU(), Linear(8, 3))",
          "AdamW(lr=0.01)",
          { 4, 6 },
          2 },
        { "Sequential(Conv1d(3, 4, 3), LayerNorm((6,)), Dropout1d(0.5), GroupNorm(2, 4), "
          "PReLU(), Flatten(), Linear(24, 3), LogSoftmax(1))",
          "SGD(lr=0.05)",
          { 2, 3, 8 },
          3 },
        { "LSTM(5, 7, 2, dropout=0.25)", "SGD(lr=0.1)", { 3, 2, 5 }, 3 },
        { "GRU(5, 7, bidirectional=True)", "SGD(lr=0.1)", { 3, 2, 5 }, 3 },
        { "RNN(5, 7)", "SGD(lr=0.1)", { 3, 2, 5 }, 3 },
        { "TransformerEncoderLayer(8, 2, 16)", "Adam(lr=0.001)", { 5, 2, 8 }, 3 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TN_SCOPE;
        tn_module *net;

        tn_random_seed(7);
        net = tn_module_new(rows[i].spec);
        ck_made(net);
        hundred_steps(net, (tn_ints){ rows[i].shape, rows[i].ndim }, rows[i].rule);
    }
}
END_TEST

/* y = relu(fc(x)), then twice y = relu(scale * fc(y) + y) with the same weights. */
static tn_tensor *shared_weights(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_relu(tn_module_call_child(self, "fc", x));

    for (int i = 0; i < 2; i++) {
        tn_tensor *z = tn_module_call_child(self, "fc", y);

        tn_mul_(z, tn_module_get(self, "scale"));
        tn_add_(z, y);
        y = tn_relu_(z);
    }
    return tn_cat((tn_tensor *[]){ tn_narrow(y, 1, 0, 2), tn_narrow(y, 1, 1, 2), x }, 3, 1);
}

START_TEST(weights_that_are_used_several_times)
{
    TN_SCOPE;

    hundred_steps(own(shared_weights), TN_SHAPE(2, 3), "SGD(lr=0.01)");
}
END_TEST

START_TEST(layers_that_do_not_train)
{
    TN_SCOPE;
    tn_module *net = convolutional();

    ck_ok(tn_module_train(net, true));
    ck_ok(tn_module_eval(tn_module_find(net, "1"))); /* a frozen batch norm */
    ck_ok(tn_tensor_set_requires_grad(tn_module_find_tensor(net, "1.weight"), false));
    ck_ok(tn_tensor_set_requires_grad(tn_module_find_tensor(net, "0.bias"), false));
    hundred_steps(net, TN_SHAPE(2, 3, 8, 8), "SGD(lr=0.05)");
}
END_TEST

START_TEST(evaluation_with_gradients_has_a_plan)
{
    TN_SCOPE;
    tn_module *net = convolutional();

    ck_ok(tn_module_eval(net));
    hundred_steps(net, TN_SHAPE(2, 3, 8, 8), "SGD(lr=0.05)");
}
END_TEST

/* ---- gradients ------------------------------------------------------------------------------- */

START_TEST(gradients_of_inputs_and_of_what_comes_before)
{
    TN_SCOPE;
    struct pair p = pair_of(convolutional());
    tn_tensor *grads[2], *leaves[2];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) {
            tn_module *net = i == 0 ? p.eager : p.net;
            tn_tensor *x = tn_parameter(numbered(TN_SHAPE(2, 3, 8, 8), round), true);
            tn_tensor *y = tn_module_call(net, round == 1 ? tn_sin(x) : x);

            ck_made(y);
            ck_ok(tn_backward(tn_sum(tn_exp(y))));
            leaves[i] = tn_tensor_grad(x);
        }
        ck_same(leaves[1], leaves[0]);
        same_gradients(p.net, p.eager); /* which have accumulated */
    }
    for (int i = 0; i < 2; i++) { /* tn_grad leaves .grad alone */
        tn_module *net = i == 0 ? p.eager : p.net;
        tn_tensor *y = tn_module_call(net, numbered(TN_SHAPE(2, 3, 8, 8), 5));
        tn_tensor *loss = loss_of(y), *weight = tn_module_find_tensor(net, "4.weight");

        ck_ok(tn_grad(&loss, NULL, 1, &weight, &grads[i], 1, NULL));
        ck_assert_str_eq(tn_tensor_grad_op(y), i == 0 ? "linear" : "plan");
    }
    ck_same(grads[1], grads[0]);
    same_gradients(p.net, p.eager);
    drop_pair(&p);
}
END_TEST

/* ---- several results ------------------------------------------------------------------------- */

static tn_status two_heads(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_tensor *x = tn_pack_at(in, 0).as.tensor, *y = tn_mul(x, tn_module_get(self, "scale"));
    tn_tensor *z = tn_module_call_child(self, "fc", x);

    if (y == NULL || z == NULL)
        return tn_error_code();
    ck_ok(tn_pack_add(out, NULL, tn_value_tensor(y)));
    ck_ok(tn_pack_add(out, "z", tn_value_tensor(z)));
    ck_ok(tn_pack_add(out, "again", tn_value_tensor(y)));
    ck_ok(tn_pack_add(out, "flat", tn_value_tensor(tn_detach(z))));
    ck_ok(tn_pack_add(out, "x", tn_value_tensor(x)));
    return tn_pack_add(out, "scale", tn_value_tensor(tn_module_get(self, "scale")));
}

static tn_module *headed(void)
{
    tn_module *net = own(mixed_forward);

    ck_ok(tn_module_set_call(net, two_heads, NULL, NULL));
    return net;
}

/* Backward from some of the results: bit 0 is y, bit 1 is z. */
static void use_heads(tn_module *net, tn_tensor *x, int which)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_tensor *at[6], *loss = NULL;

    ck_ok(tn_pack_add(in, NULL, tn_value_tensor(x)));
    ck_ok(tn_module_call_pack(net, in, out));
    ck_assert_int_eq(tn_pack_count(out), 6);
    for (int i = 0; i < 6; i++)
        at[i] = tn_pack_at(out, i).as.tensor;
    ck_assert_ptr_eq(at[2], at[0]);
    ck_assert(!tn_tensor_requires_grad(at[3]));
    ck_same(at[3], at[1]);
    ck_assert_ptr_eq(at[4], x);
    ck_assert_ptr_eq(at[5], tn_module_get(net, "scale"));
    for (int i = 0; i < 2; i++)
        if ((which >> i & 1) != 0)
            loss = loss == NULL ? tn_sum(at[i]) : tn_add(loss, loss_of(at[i]));
    ck_ok(tn_backward(loss));
    tn_pack_drop(in);
    tn_pack_drop(out);
}

START_TEST(results_without_gradients_leave_parameters_alone)
{
    TN_SCOPE;
    struct pair p = pair_of(headed());
    static const int uses[] = { 3, 1, 2, 3, 1 };

    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        ck_ok(tn_module_zero_grad(p.net));
        ck_ok(tn_module_zero_grad(p.eager));
        use_heads(p.net, numbers((float)i), uses[i]);
        use_heads(p.eager, numbers((float)i), uses[i]);
        same_gradients(p.net, p.eager); /* none where eager has none */
        if (uses[i] == 1)
            ck_assert_ptr_eq(tn_tensor_grad(tn_module_find_tensor(p.net, "fc.weight")), TN_NONE);
    }
    ck_assert_int_eq(plans_made(p.net), 1);
    drop_pair(&p);
}
END_TEST

/* ---- backward later, twice, never ------------------------------------------------------------ */

START_TEST(several_calls_before_their_backwards)
{
    TN_SCOPE;
    struct pair p = pair_of(convolutional());

    for (int i = 0; i < 2; i++) {
        tn_module *net = i == 0 ? p.eager : p.net;
        tn_tensor *y[4];

        for (int k = 0; k < 4; k++)
            y[k] = tn_module_call(net, numbered(TN_SHAPE(2, 3, 8, 8), k));
        for (int k = 0; k < 3; k++) /* the last one is dropped */
            ck_ok(tn_backward(loss_of(y[(k + 1) % 3])));
    }
    same_gradients(p.net, p.eager);
    same_states(p.net, p.eager);
    drop_pair(&p);
}
END_TEST

START_TEST(a_second_backward_needs_the_graph_to_be_retained)
{
    TN_SCOPE;
    struct pair p = pair_of(convolutional());
    tn_tensor *one = tn_tensor_full(TN_SCALAR_SHAPE, 1, TN_F32, NULL);

    for (int i = 0; i < 2; i++) {
        tn_module *net = i == 0 ? p.eager : p.net;
        tn_tensor *y = tn_module_call(net, numbered(TN_SHAPE(2, 3, 8, 8), 3)), *loss = loss_of(y);

        ck_ok(tn_backward_with(loss, one, true));
        ck_ok(tn_backward_with(loss, one, true));
        ck_ok(tn_backward_with(loss_of(y), one, false));
        ck_assert_int_eq(tn_backward(loss_of(y)), TN_ERR_RUNTIME);
        ck_error(TN_ERR_RUNTIME, "Trying to backward through the graph a second time",
                 "retain_graph=True");
    }
    same_gradients(p.net, p.eager);
    drop_pair(&p);
}
END_TEST

START_TEST(changed_values_are_found_as_in_eager_calls)
{
    TN_SCOPE;
    struct pair p = pair_of(tn_module_new("Sequential(Linear(3, 4), Sigmoid())"));
    static const char *const what[] = { "0.weight", "output", "input" };

    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 2; i++) {
            tn_module *net = i == 0 ? p.eager : p.net;
            tn_tensor *x = tn_parameter(numbers(1), false);
            tn_tensor *y = tn_module_call(net, x);
            tn_tensor *changed = k == 0 ? tn_module_find_tensor(net, what[k]) : k == 1 ? y : x;
            tn_status status;

            ck_ok(tn_grad_begin(false));
            ck_made(tn_mul_scalar_(changed, 2));
            tn_grad_end();
            status = tn_backward(tn_sum(y));
            /* the weight is not needed without a gradient of x, but eager calls save it, too */
            if (status != TN_OK)
                ck_error(TN_ERR_RUNTIME, "modified by an inplace operation", "version");
            ck_assert_msg((status != TN_OK) == (k > 0) || k == 0, "%s", what[k]);
        }
    drop_pair(&p);
}
END_TEST

START_TEST(gradients_of_gradients_are_refused)
{
    TN_SCOPE;
    struct pair p = pair_of(tn_module_new("Sequential(Linear(3, 4), Sigmoid())"));
    tn_tensor *x = tn_parameter(numbers(1), true), *gradient, *y;
    tn_backward_options how = { sizeof how, .create_graph = true };

    y = tn_sum(tn_module_call(p.net, x));
    ck_assert_int_eq(tn_grad(&y, NULL, 1, &x, &gradient, 1, &how), TN_ERR_NOT_IMPLEMENTED);
    ck_error(TN_ERR_NOT_IMPLEMENTED, "plan: create_graph: not supported", "called eagerly");
    y = tn_sum(tn_module_call(p.net, x));
    ck_ok(tn_backward(y));
    drop_pair(&p);
}
END_TEST

/* ---- hooks ----------------------------------------------------------------------------------- */

static int hooked, added;

static tn_status double_gradient(void *user, tn_tensor *gradient, tn_tensor **replacement)
{
    (void)user;
    hooked++;
    *replacement = tn_mul_scalar(gradient, 2);
    return TN_OK;
}

static tn_status count_added(void *user, tn_tensor *gradient)
{
    (void)user, (void)gradient;
    added++;
    return TN_OK;
}

START_TEST(hooks_of_parameters_run_as_in_eager_calls)
{
    TN_SCOPE;
    struct pair p = pair_of(convolutional());

    for (int i = 0; i < 2; i++) {
        tn_tensor *weight = tn_module_find_tensor(i == 0 ? p.eager : p.net, "0.weight");

        ck_assert(tn_tensor_hook(weight, double_gradient, NULL, NULL) != 0);
        ck_assert(tn_tensor_hook_added(weight, count_added, NULL, NULL) != 0);
    }
    hooked = added = 0;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 2; i++)
            ck_ok(tn_backward(loss_of(
                tn_module_call(i == 0 ? p.eager : p.net, numbered(TN_SHAPE(2, 3, 8, 8), round)))));
    ck_assert_int_eq(hooked, 6);
    ck_assert_int_eq(added, 6);
    same_gradients(p.net, p.eager);
    drop_pair(&p);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_hundred_steps_of_a_network_have_the_bits_of_eager_ones,
                                   weights_that_are_used_several_times,
                                   layers_that_do_not_train,
                                   evaluation_with_gradients_has_a_plan,
                                   gradients_of_inputs_and_of_what_comes_before,
                                   results_without_gradients_leave_parameters_alone,
                                   several_calls_before_their_backwards,
                                   a_second_backward_needs_the_graph_to_be_retained,
                                   changed_values_are_found_as_in_eager_calls,
                                   gradients_of_gradients_are_refused,
                                   hooks_of_parameters_run_as_in_eager_calls,
                                   NULL };
    return suite_run("plan train", tests);
}

/* SPDX-License-Identifier: MIT
 *
 * Plans of training of modules of the program: tied weights, inputs that are the same tensor,
 * functions and recomputation within forward, results that the program changes. */
#include "tests/graph/plan_training.h"

/* Results and gradients of both networks are the same, for three calls. The program changes the
 * result in place if `changes`. */
static void same_calls(tn_tensor *(*forward)(tn_module *, tn_tensor *), tn_tensor *x, bool changes)
{
    struct pair p = pair_of(own(forward));
    tn_tensor *y[2], *grads[2] = { TN_NONE, TN_NONE };

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) {
            tn_module *net = i == 0 ? p.eager : p.net;
            tn_tensor *leaf = tn_parameter(tn_copy(x), tn_tensor_requires_grad(x));

            tn_random_seed(2);
            y[i] = tn_module_call(net, leaf);
            ck_made(y[i]);
            if (changes)
                ck_made(tn_relu_(y[i]));
            ck_ok(tn_backward(round == 1 ? loss_of(y[i]) : tn_sum(y[i])));
            grads[i] = tn_tensor_grad(leaf);
        }
        ck_same(y[1], y[0]);
        ck_assert_int_eq(grads[0] == TN_NONE, grads[1] == TN_NONE);
        if (grads[0] != TN_NONE)
            ck_same(grads[1], grads[0]);
        same_gradients(p.net, p.eager);
    }
    ck_assert_msg(plans_made(p.net) == 1, "%s", plans_of(p.net));
    drop_pair(&p);
}

static tn_tensor *tied(tn_module *self, tn_tensor *x)
{
    tn_tensor *weight = tn_module_find_tensor(self, "fc.weight");

    return tn_matmul(tn_tanh(tn_matmul(x, tn_transpose(weight, 0, 1))), weight);
}

static tn_tensor *of_parts(tn_module *self, tn_tensor *x)
{
    tn_tensor *scale = tn_module_get(self, "scale");

    return tn_mul(tn_narrow(scale, 0, 1, 1),
                  tn_add(x, tn_module_call_child(self, "fc", tn_detach(x))));
}

static tn_tensor *stops_gradients(tn_module *self, tn_tensor *x)
{
    tn_tensor *y;

    ck_ok(tn_grad_begin(false));
    y = tn_module_call_child(self, "fc", x);
    tn_grad_end();
    return tn_mul(tn_mul(y, tn_module_get(self, "scale")), x);
}

static tn_tensor *sigmoid_last(tn_module *self, tn_tensor *x)
{
    return tn_sigmoid(tn_module_call_child(self, "fc", x));
}

START_TEST(modules_of_the_program)
{
    TN_SCOPE;
    tn_tensor *x = numbers(-2), *leaf = tn_parameter(numbers(-2), true);

    same_calls(tied, x, false);
    same_calls(tied, leaf, false);
    same_calls(of_parts, leaf, false);
    same_calls(of_parts, leaf, true);
    same_calls(stops_gradients, leaf, false);
    same_calls(mixed_forward, leaf, false);
    same_calls(sigmoid_last, leaf, false);
}
END_TEST

START_TEST(a_saved_result_must_not_change)
{
    TN_SCOPE;
    struct pair p = pair_of(own(sigmoid_last));

    for (int i = 0; i < 2; i++) {
        tn_tensor *y = tn_module_call(i == 0 ? p.eager : p.net, numbers(1));

        ck_made(tn_mul_(y, numbers(2)));
        ck_assert_int_eq(tn_backward(tn_sum(y)), TN_ERR_RUNTIME);
        ck_error(TN_ERR_RUNTIME, "modified by an inplace operation", "version");
    }
    drop_pair(&p);
}
END_TEST

/* ---- functions of the program ---------------------------------------------------------------- */

static tn_status square_forward(tn_function_ctx *ctx, void *user, tn_tensor *const *in,
                                tn_tensor **out)
{
    (void)user;
    out[0] = tn_square(in[0]);
    return out[0] != NULL ? tn_function_save(ctx, in[0]) : tn_error_code();
}

static tn_status square_backward(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                                 tn_tensor **gin)
{
    tn_tensor *x = tn_function_saved(ctx, 0);

    (void)user;
    gin[0] = x != NULL ? tn_mul(tn_mul_scalar(x, 3), gout[0]) : NULL; /* not 2 */
    return gin[0] != NULL ? TN_OK : tn_error_code();
}

static uint32_t flags;

static tn_tensor *calls_function(tn_module *self, tn_tensor *x)
{
    tn_function square = {
        .name = "square", .forward = square_forward, .backward = square_backward, .flags = flags
    };
    tn_tensor *y = tn_module_call_child(self, "fc", x), *z = NULL;

    return tn_function_call(&square, NULL, &y, 1, &z, 1) == TN_OK ? z : NULL;
}

START_TEST(functions_of_operators_are_recorded)
{
    TN_SCOPE;
    tn_module *net;

    flags = TN_FUNCTION_OPERATORS;
    same_calls(calls_function, tn_parameter(numbers(1), true), false);
    flags = 0;
    net = own(calls_function);
    ck_ok(tn_module_compile(net, TRAIN));
    ck_assert_ptr_null(tn_module_call(net, numbers(1)));
    ck_error(TN_ERR_NOT_IMPLEMENTED, "square: a plan would repeat the same", "plan: ");
    tn_module_drop(net);
}
END_TEST

/* ---- inputs ---------------------------------------------------------------------------------- */

static tn_status product(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_tensor *y = tn_mul(tn_mul(tn_pack_at(in, 0).as.tensor, tn_pack_at(in, 1).as.tensor),
                          tn_module_get(self, "scale"));

    return tn_pack_add(out, NULL, tn_value_tensor(y));
}

static tn_tensor *call_two(tn_module *net, tn_tensor *a, tn_tensor *b)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_tensor *y;

    ck_ok(tn_pack_add(in, NULL, tn_value_tensor(a)));
    ck_ok(tn_pack_add(in, NULL, tn_value_tensor(b)));
    ck_ok(tn_module_call_pack(net, in, out));
    y = tn_tensor_to_scope(tn_tensor_keep(tn_pack_at(out, 0).as.tensor));
    tn_pack_drop(in);
    tn_pack_drop(out);
    return y;
}

START_TEST(one_tensor_as_two_inputs)
{
    TN_SCOPE;
    struct pair p;
    tn_module *net = own(mixed_forward);

    ck_ok(tn_module_set_call(net, product, NULL, NULL));
    p = pair_of(net);
    for (int round = 0; round < 4; round++) {
        tn_tensor *leaves[2][2];

        for (int i = 0; i < 2; i++) {
            tn_tensor *a = tn_parameter(numbers(1), true), *b = tn_parameter(numbers(4), true);

            if (round % 2 == 0)
                b = a;
            ck_ok(tn_backward(loss_of(call_two(i == 0 ? p.eager : p.net, a, b))));
            leaves[i][0] = tn_tensor_grad(a);
            leaves[i][1] = tn_tensor_grad(b);
        }
        ck_same(leaves[1][0], leaves[0][0]);
        ck_same(leaves[1][1], leaves[0][1]);
        same_gradients(p.net, p.eager);
    }
    ck_assert_int_eq(plans_made(p.net), 2);
    drop_pair(&p);
}
END_TEST

START_TEST(an_empty_batch)
{
    TN_SCOPE;
    struct pair p = pair_of(tn_module_new("Sequential(Linear(3, 4), ReLU(), Linear(4, 2))"));
    tn_tensor *x = tn_tensor_full(TN_SHAPE(0, 3), 1, TN_F32, NULL);

    for (int i = 0; i < 4; i++)
        ck_ok(tn_backward(tn_sum(tn_module_call(i % 2 == 0 ? p.eager : p.net, x))));
    same_gradients(p.net, p.eager);
    drop_pair(&p);
}
END_TEST

START_TEST(words_and_a_table_of_them)
{
    TN_SCOPE;
    static const int64_t words[6] = { 1, 4, 2, 0, 4, 1 };
    struct pair p;
    tn_tensor *x = tn_tensor_from(words, TN_I64, TN_SHAPE(2, 3)), *y[2];

    tn_random_seed(1);
    p = pair_of(tn_module_new("Sequential(Embedding(5, 4), Linear(4, 3), LayerNorm((3,)))"));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) {
            y[i] = tn_module_call(i == 0 ? p.eager : p.net, x);
            ck_made(y[i]);
            ck_ok(tn_backward(loss_of(y[i])));
        }
        ck_same(y[1], y[0]);
        same_gradients(p.net, p.eager);
    }
    drop_pair(&p);
}
END_TEST

/* ---- recomputation --------------------------------------------------------------------------- */

static tn_status recomputed(void *user, tn_tensor *const *in, tn_tensor **out)
{
    out[0] = tn_dropout(tn_tanh(tn_module_call_child(user, "fc", in[0])));
    return out[0] != NULL ? TN_OK : tn_error_code();
}

static tn_tensor *recomputes(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = NULL, *in = tn_mul(x, tn_module_get(self, "scale"));

    return tn_recompute_call(recomputed, self, NULL, &in, 1, &y, 1, 0) == TN_OK ? y : NULL;
}

START_TEST(values_that_are_computed_again)
{
    TN_SCOPE;

    same_calls(recomputes, tn_parameter(numbers(1), true), false);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { modules_of_the_program,
                                   a_saved_result_must_not_change,
                                   functions_of_operators_are_recorded,
                                   one_tensor_as_two_inputs,
                                   an_empty_batch,
                                   words_and_a_table_of_them,
                                   values_that_are_computed_again,
                                   NULL };
    return suite_run("plan train cases", tests);
}

/* SPDX-License-Identifier: MIT
 *
 * Plans of training: calls that run eagerly because a plan would not do what they do, and calls of
 * which nothing may be computed. */
#include "tests/graph/plan_training.h"

#include <tenon/checkpoint.h>

static tn_module *net_of(tn_tensor *(*forward)(tn_module *, tn_tensor *))
{
    tn_module *net = tn_module_plain("Net");

    ck_ok(tn_module_add_parameter(net, "scale", tn_parameter(numbers(1), true)));
    ck_ok(tn_module_set_forward(net, forward, NULL, NULL));
    return net;
}

static void ck_plans(tn_module *net, const char *part)
{
    ck_assert_msg(strstr(plans_of(net), part) != NULL, "%s is not in %s", part, plans_of(net));
}

/* ---- calls without elements or kernels ------------------------------------------------------- */

START_TEST(batches_without_elements)
{
    static const char *const specs[] = { "Linear(3, 4)", "Sequential(Linear(3, 4), ReLU())",
                                         "Sequential(Linear(3, 4), Dropout(0.5), Linear(4, 2))",
                                         "Sequential(Tanh(), Linear(3, 2), LayerNorm(2))" };

    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (int leaf = 0; leaf < 2; leaf++) {
            TN_SCOPE;
            struct pair p = pair_of(tn_module_new(specs[i]));
            tn_tensor *x = tn_parameter(tn_zeros(TN_SHAPE(0, 3)), leaf == 1);

            for (int r = 0; r < 2; r++) {
                tn_tensor *y[2];

                for (int k = 0; k < 2; k++) {
                    tn_module *net = k == 0 ? p.eager : p.net;

                    ck_ok(tn_module_zero_grad(net));
                    y[k] = tn_module_call(net, x);
                    ck_made(y[k]);
                    ck_ok(tn_backward(tn_sum(y[k])));
                }
                ck_same(y[1], y[0]);
                same_gradients(p.net, p.eager);
                ck_pair(&p, numbers(1)); /* another plan */
            }
            drop_pair(&p);
        }
}
END_TEST

static tn_tensor *gives_scale(tn_module *self, tn_tensor *x)
{
    (void)x;
    return tn_module_get(self, "scale");
}

static tn_tensor *gives_input(tn_module *self, tn_tensor *x)
{
    (void)self;
    return x;
}

START_TEST(forwards_without_kernels)
{
    TN_SCOPE;
    tn_tensor *x = tn_parameter(numbers(2), true), *y;
    struct pair p = pair_of(net_of(gives_scale));

    for (int i = 0; i < 2; i++)
        ck_pair(&p, x);
    drop_pair(&p);
    p = pair_of(net_of(gives_input));
    y = tn_module_call(p.net, x);
    ck_same(y, x);
    ck_ok(tn_backward(tn_sum(y)));
    ck_same(tn_tensor_grad(x), tn_ones(TN_SHAPE(2, 3)));
    drop_pair(&p);
}
END_TEST

static tn_status gives_none(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_tensor *y = tn_mul(tn_pack_at(in, 0).as.tensor, tn_module_get(self, "scale"));
    tn_status status = tn_pack_add(out, NULL, tn_value_tensor(y));

    if (status == TN_OK)
        status = tn_pack_add(out, NULL, tn_value_tensor(TN_NONE));
    return status == TN_OK ? tn_pack_add(out, "last", tn_value_none()) : status;
}

START_TEST(absent_results_stay_what_they_are)
{
    TN_SCOPE;
    tn_module *net = net_of(gives_input);

    ck_ok(tn_module_set_call(net, gives_none, NULL, NULL));
    ck_ok(tn_module_compile(net, TRAIN));
    for (int i = 0; i < 2; i++) {
        tn_pack *in = tn_pack_new(), *out = tn_pack_new();

        ck_ok(tn_pack_add(in, NULL, tn_value_tensor(numbers(1))));
        ck_ok(tn_module_call_pack(net, in, out));
        ck_assert_int_eq(tn_pack_at(out, 1).kind, TN_VALUE_TENSOR);
        ck_assert_ptr_eq(tn_pack_at(out, 1).as.tensor, TN_NONE);
        ck_assert_int_eq(tn_pack_at(out, 2).kind, TN_VALUE_NONE);
        tn_pack_drop(in);
        tn_pack_drop(out);
    }
    tn_module_drop(net);
}
END_TEST

/* ---- devices without memory ------------------------------------------------------------------ */

START_TEST(devices_without_memory)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Conv2d(3, 4, 3), BatchNorm2d(4), ReLU())");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 3, 8, 8), 0, TN_F32, tn_device_find("meta"));

    ck_ok(tn_module_to_device(net, "meta"));
    ck_ok(tn_module_compile(net, TRAIN));
    for (int i = 0; i < 2; i++) {
        tn_tensor *y = tn_module_call(net, x);

        ck_made(y);
        ck_ok(tn_backward(tn_sum(y)));
    }
    ck_assert_int_eq(plans_made(net), 1);
    ck_plans(net, "calls run eagerly: a device without memory");
    tn_module_drop(net);
}
END_TEST

/* ---- recompute ------------------------------------------------------------------------------- */

/* A compiled network that is recomputed: its random numbers and gradients are those of eager
 * calls, with and without a plan that exists. */
START_TEST(calls_in_a_recompute)
{
    for (int warm = 0; warm < 2; warm++) {
        TN_SCOPE;
        struct pair p = pair_of(
            tn_module_new("Sequential(Linear(3, 8), Dropout(0.5), Tanh(), Linear(8, 2))"));

        ck_ok(tn_module_compile(p.net, "plan(train=True, bindings=1)"));
        for (int i = 0; i < 3; i++) {
            tn_tensor *x = tn_parameter(numbers((float)i), true), *gradients[2], *y[2];

            if (warm)
                ck_pair(&p, numbers(1));
            for (int k = 0; k < 2; k++) {
                tn_module *net = k == 0 ? p.eager : p.net;

                ck_ok(tn_module_zero_grad(net));
                ck_ok(tn_tensor_set_grad(x, TN_NONE));
                tn_random_seed(7);
                ck_ok(tn_module_recompute(net, &x, 1, &y[k], 1, 0));
                if (k == 1 && warm) /* the plan goes away between the two runs */
                    ck_made(tn_module_call(net, tn_zeros(TN_SHAPE(5, 3))));
                ck_ok(tn_backward(loss_of(y[k])));
                gradients[k] = tn_copy(tn_tensor_grad(x));
            }
            ck_same(y[1], y[0]);
            ck_same(gradients[1], gradients[0]);
            same_gradients(p.net, p.eager);
        }
        drop_pair(&p);
    }
}
END_TEST

static tn_tensor *recomputes_child(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = NULL;

    return tn_module_recompute(tn_module_child_at(self, 0), &x, 1, &y, 1, 0) == TN_OK
               ? tn_mul(y, tn_module_get(self, "scale"))
               : NULL;
}

static tn_tensor *determinant(tn_module *self, tn_tensor *x)
{
    tn_tensor *a = tn_matmul(tn_transpose(x, 0, 1), tn_module_get(self, "scale"));

    return tn_linalg_det(a);
}

/* The first forward detects that a derivative cannot be recorded, before it changes anything. */
START_TEST(derivatives_that_cannot_be_recorded)
{
    TN_SCOPE;
    tn_module *net = net_of(recomputes_child), *child = tn_module_new("BatchNorm1d(3)");
    struct pair p;

    ck_ok(tn_module_add_child(net, "norm", child));
    tn_module_drop(child);
    p = pair_of(net);
    for (int i = 0; i < 3; i++) {
        ck_pair(&p, numbers((float)i));
        same_states(p.net, p.eager);
    }
    ck_assert_int_eq(plans_made(p.net), 1);
    ck_plans(p.net, "none: calls run eagerly");
    drop_pair(&p);
    p = pair_of(net_of(determinant));
    for (int i = 0; i < 3; i++)
        ck_pair(&p, numbers((float)i));
    drop_pair(&p);
}
END_TEST

static tn_tensor *changes_saved(tn_module *self, tn_tensor *x)
{
    tn_tensor *scale = tn_module_get(self, "scale"), *y = tn_mul(x, scale);

    ck_ok(tn_grad_begin(false));
    ck_made(tn_mul_scalar_(scale, 0.5));
    tn_grad_end();
    return y;
}

START_TEST(a_saved_value_that_forward_changes)
{
    TN_SCOPE;
    tn_module *net = net_of(changes_saved);

    ck_ok(tn_module_compile(net, TRAIN));
    for (int i = 0; i < 2; i++) {
        tn_tensor *y = tn_module_call(net, tn_parameter(numbers(1), true));

        ck_made(y);
        ck_assert_int_ne(tn_backward(loss_of(y)), TN_OK);
        ck_assert_ptr_null(strstr(tn_error_text(), "18446744073709551615"));
        ck_error(TN_ERR_RUNTIME, "modified by an inplace operation", "version");
    }
    ck_same(tn_module_get(net, "scale"), tn_mul_scalar(numbers(1), 0.25)); /* once for each call */
    tn_module_drop(net);
}
END_TEST

static int released;

static void note_release(void *user)
{
    (void)user;
    released++;
}

static tn_tensor *recomputes_parts(tn_module *self, tn_tensor *x)
{
    return tn_module_recompute_sequential(self, 2, x, 0);
}

START_TEST(a_module_that_recomputes_its_children_is_freed)
{
    TN_SCOPE;
    tn_module *net = tn_module_plain("Net");

    for (int i = 0; i < 3; i++) {
        static const char *const names[] = { "0", "1", "2" };
        tn_module *child = tn_module_new("Linear(3, 3)");

        ck_ok(tn_module_add_child(net, names[i], child));
        tn_module_drop(child);
    }
    ck_ok(tn_module_set_forward(net, recomputes_parts, NULL, note_release));
    ck_ok(tn_module_compile(net, TRAIN));
    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        ck_ok(tn_backward(loss_of(tn_module_call(net, numbers(1)))));
    }
    released = 0;
    tn_module_drop(net);
    ck_assert_int_eq(released, 1);
}
END_TEST

/* ---- autocast -------------------------------------------------------------------------------- */

static tn_tensor *casts(tn_module *self, tn_tensor *x)
{
    tn_tensor *a = tn_module_get(self, "scale"), *y;

    ck_ok(tn_autocast_begin("cpu", TN_BF16, true));
    y = tn_matmul(tn_matmul(tn_transpose(a, 0, 1), x), tn_transpose(a, 0, 1));
    y = tn_matmul(a, y);
    tn_autocast_end();
    return tn_cast(y, TN_F32);
}

START_TEST(autocast_that_begins_in_forward)
{
    TN_SCOPE;
    struct pair p = pair_of(net_of(casts));

    for (int i = 0; i < 3; i++)
        ck_pair(&p, numbers((float)i / 3));
    ck_plans(p.net, "forward: ");
    ck_ok(tn_module_compile(p.net, TRAIN));
    for (int i = 0; i < 3; i++) { /* its casts would stay until the outer region ends */
        ck_ok(tn_autocast_begin("cpu", TN_BF16, false));
        ck_pair(&p, numbers((float)i / 3));
        tn_autocast_end();
    }
    ck_plans(p.net, "calls run eagerly: forward begins a region of autocast");
    drop_pair(&p);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { batches_without_elements,
                                   forwards_without_kernels,
                                   absent_results_stay_what_they_are,
                                   devices_without_memory,
                                   calls_in_a_recompute,
                                   derivatives_that_cannot_be_recorded,
                                   a_saved_value_that_forward_changes,
                                   a_module_that_recomputes_its_children_is_freed,
                                   autocast_that_begins_in_forward,
                                   NULL };
    return suite_run("plan train eager", tests);
}

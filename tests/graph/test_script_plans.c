/* SPDX-License-Identifier: MIT
 *
 * Plans of scripts: a compiled script has the bits of the module that it was made of, for a hundred
 * steps; eight threads call it with and without gradients; each allocation that fails is an
 * error. */
#include <pthread.h>

#include "tests/graph/plan_training.h"

/* A compiled script, and the module of which it was made. */
static struct pair script_pair(const char *spec, tn_tensor *x)
{
    struct pair p;

    tn_random_seed(5);
    p.eager = tn_module_new("%s", spec);
    ck_made(p.eager);
    p.net = tn_module_copy(p.eager);
    ck_made(p.net);
    tn_module *script = script_of(p.net, x);
    tn_module_drop(p.net);
    p.net = script;
    ck_ok(tn_module_compile(p.net, TRAIN));
    return p;
}

#define NETWORK                                                                                    \
    "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Dropout(0.3), Flatten(), Linear(288, 4))"

START_TEST(a_compiled_script_trains_as_its_module)
{
    TN_SCOPE;
    struct pair p = script_pair(NETWORK, images());
    tn_optimizer *rules[2] = { tn_optimizer_new(p.net, "SGD(lr=0.01, momentum=0.9)"),
                               tn_optimizer_new(p.eager, "SGD(lr=0.01, momentum=0.9)") };

    for (int i = 0; i < 100; i++) {
        TN_SCOPE;
        step_pair(&p, rules, numbered(TN_SHAPE(2, 3, 8, 8), i), (uint64_t)i);
    }
    same_states(p.net, p.eager);
    ck_assert_int_eq(plans_made(p.net), 1);
    ck_ok(tn_module_eval(p.net));
    ck_ok(tn_module_eval(p.eager));
    for (int i = 0; i < 2; i++)
        ck_same(eager(p.net, images()), eager(p.eager, images()));
    ck_assert_int_eq(plans_made(p.net), 2);
    tn_optimizer_drop(rules[0]);
    tn_optimizer_drop(rules[1]);
    drop_pair(&p);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

struct shared {
    struct pair p;
    tn_tensor *results[3], *gradients[3];
};

static tn_tensor *leaf_of(int k)
{
    return tn_parameter(numbered(TN_SHAPE(2, 6), k), true);
}

static void *call_often(void *user)
{
    struct shared *shared = user;

    for (int i = 0; i < 12; i++) {
        TN_SCOPE;
        tn_tensor *x = leaf_of(i % 3), *gradient = NULL, *sum, *y;

        sum = tn_sum(tn_exp(tn_module_call(shared->p.net, x)));
        if (sum == NULL || tn_grad(&sum, NULL, 1, &x, &gradient, 1, NULL) != TN_OK ||
            !tn_equal(gradient, shared->gradients[i % 3]) || tn_grad_begin(false) != TN_OK)
            return user;
        y = tn_module_call(shared->p.net, x);
        tn_grad_end();
        if (y == NULL || !tn_equal(y, shared->results[i % 3]))
            return user;
    }
    return NULL;
}

START_TEST(eight_threads_call_one_script)
{
    TN_SCOPE;
    struct shared shared;
    pthread_t threads[8];

    shared.p = script_pair("Sequential(Linear(6, 16), ReLU(), Linear(16, 4), Tanh())", leaf_of(0));
    for (int k = 0; k < 3; k++) {
        tn_tensor *x = leaf_of(k), *sum;

        shared.results[k] = eager(shared.p.eager, x);
        sum = tn_sum(tn_exp(tn_module_call(shared.p.eager, x)));
        ck_ok(tn_grad(&sum, NULL, 1, &x, &shared.gradients[k], 1, NULL));
    }
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &shared), 0);
    for (int i = 0; i < 8; i++) {
        void *wrong;

        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    ck_assert_int_eq(plans_made(shared.p.net), 2);
    drop_pair(&shared.p);
}
END_TEST

/* ---- memory that fails ----------------------------------------------------------------------- */

/* Compiles a script anew, and calls it in both modes. */
static bool compile_and_call(void *user)
{
    TN_SCOPE;
    tn_module *script = user;
    tn_tensor *y, *z = NULL;
    bool well = tn_module_compile(script, TRAIN) == TN_OK &&
                tn_module_train(script, true) == TN_OK && tn_module_zero_grad(script) == TN_OK;

    tn_random_seed(7);
    y = well ? tn_module_call(script, images()) : NULL;
    well = y != NULL && tn_backward(tn_mean(tn_square(y))) == TN_OK &&
           tn_module_eval(script) == TN_OK && tn_grad_begin(false) == TN_OK;
    if (well) {
        z = tn_module_call(script, images());
        tn_grad_end();
    }
    return well && z != NULL;
}

START_TEST(each_allocation_that_fails_is_an_error)
{
    TN_SCOPE;
    struct pair p = script_pair(NETWORK, images());
    tn_module *copy;

    ck_assert(compile_and_call(p.net));
    ck_assert_int_gt(fail_each_allocation(compile_and_call, p.net), 500);
    copy = tn_module_copy(p.net); /* runs eagerly */
    ck_same(eager(p.net, images()), eager(copy, images()));
    tn_module_drop(copy);
    drop_pair(&p);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_compiled_script_trains_as_its_module,
                                   eight_threads_call_one_script,
                                   each_allocation_that_fails_is_an_error, NULL };
    return suite_run("script plans", tests);
}

/* SPDX-License-Identifier: MIT
 *
 * Plans of training: memory is not more than that of eager calls, and all of it is freed; threads
 * that train one module; allocations that fail. */
#include <pthread.h>

#include "tests/graph/plan_training.h"

static tn_module *deep(void)
{
    tn_module *net;

    tn_random_seed(5);
    net = tn_module_new("Sequential(Linear(64, 256), ReLU(), Dropout(0.5), Linear(256, 256), "
                        "ReLU(), LayerNorm((256,)), Linear(256, 256), Tanh(), Linear(256, 8))");
    ck_made(net);
    return net;
}

static void train_once(tn_module *net, tn_tensor *x)
{
    TN_SCOPE;

    ck_ok(tn_backward(loss_of(call_of(net, x))));
}

/* The peak of memory during a step, and the memory in use after it, both minus the memory in use
 * before it. */
static void measure(tn_module *net, tn_tensor *x, int64_t *peak, int64_t *after)
{
    const tn_device *device = tn_tensor_device(x);
    tn_memory_stats stats;
    int64_t before;

    for (int i = 0; i < 2; i++) {
        ck_ok(tn_module_zero_grad(net));
        ck_ok(tn_device_memory(device, &stats));
        before = stats.live;
        ck_ok(tn_device_reset_peak(device));
        train_once(net, x);
        ck_ok(tn_device_memory(device, &stats));
        *peak = stats.peak - before;
        *after = stats.live - before;
    }
}

START_TEST(a_step_needs_no_more_memory_than_an_eager_one)
{
    TN_SCOPE;
    tn_module *nets[] = { deep(), tn_module_new("Sequential(Conv2d(3, 16, 3, padding=1), ReLU(), "
                                                "Conv2d(16, 16, 3, padding=1), BatchNorm2d(16), "
                                                "ReLU(), Flatten(), Linear(4096, 8))") };
    tn_tensor *inputs[] = { numbered(TN_SHAPE(32, 64), 1), numbered(TN_SHAPE(4, 3, 16, 16), 1) };

    for (int i = 0; i < 2; i++) {
        struct pair p = pair_of(nets[i]);
        int64_t peak[2], after[2];

        measure(p.eager, inputs[i], &peak[0], &after[0]);
        measure(p.net, inputs[i], &peak[1], &after[1]);
        ck_assert_int_gt(peak[0], 0);
        ck_assert_msg(peak[1] <= peak[0], "network %d: %lld bytes, eager %lld", i,
                      (long long)peak[1], (long long)peak[0]);
        ck_assert_int_eq(after[1], after[0]);
        drop_pair(&p);
    }
}
END_TEST

static int64_t count_of(const char *text, const char *part)
{
    int64_t count = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

/* Gradients of activations and norms take over the memory of the gradient that they are computed
 * from, with the channels first and last. */
START_TEST(a_gradient_is_written_over_one_that_ends)
{
    static char text[1 << 16];

    for (int last = 0; last < 2; last++) {
        TN_SCOPE;
        tn_module *net = tn_module_new(
            "Sequential(Conv2d(4, 8, 3, padding=1), BatchNorm2d(8), SiLU(), "
            "Conv2d(8, 8, 3, padding=1), BatchNorm2d(8), ReLU(), Conv2d(8, 8, 3), Tanh(), "
            "Flatten(), Linear(1152, 16), Sigmoid(), Linear(16, 3), Softmax(1))");
        tn_tensor *x = numbered(TN_SHAPE(6, 4, 14, 14), 1);
        struct pair p;

        ck_made(net);
        if (last) {
            ck_ok(tn_module_convert(net, NULL, TN_DTYPE_AUTO, TN_MEMORY_FORMAT_CHANNELS_LAST, 0));
            x = tn_permute(tn_copy(tn_permute(x, TN_INTS(0, 2, 3, 1))), TN_INTS(0, 3, 1, 2));
        }
        p = pair_of(net);
        ck_pair(&p, x);
        ck_pair(&p, x);
        ck_assert_int_ge(tn_module_compile_print(p.net, true, text, sizeof text), 0);
        ck_assert_msg(count_of(strstr(text, "backward"), "in place") >= 5, "%s", text);
        drop_pair(&p);
    }
}
END_TEST

START_TEST(what_was_kept_is_freed_with_the_result)
{
    TN_SCOPE;
    tn_module *net = deep();
    tn_tensor *x = numbered(TN_SHAPE(32, 64), 1);
    int64_t nodes = tn_grad_node_count();
    tn_memory_stats before, stats;

    ck_ok(tn_module_compile(net, TRAIN));
    ck_ok(tn_device_memory(tn_tensor_device(x), &before));
    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        call_of(net, x); /* without a backward */
    }
    ck_ok(tn_device_memory(tn_tensor_device(x), &stats));
    ck_assert_int_eq(stats.live, before.live);
    tn_module_drop(net);
    ck_assert_int_eq(tn_grad_node_count(), nodes);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 12 };

struct shared {
    tn_module *net;
    tn_tensor *expected[3]; /* the gradients of inputs of 3 sizes */
};

static tn_tensor *leaf_of(int k)
{
    return tn_parameter(numbered(TN_SHAPE(1 + k, 6), k), true);
}

static void *train_often(void *user)
{
    struct shared *shared = user;

    for (int i = 0; i < ROUNDS; i++) {
        TN_SCOPE;
        tn_tensor *x = leaf_of(i % 3), *gradient = NULL, *y, *z;

        y = tn_sum(tn_exp(tn_module_call(shared->net, x)));
        z = tn_sum(tn_exp(tn_module_call(shared->net, leaf_of((i + 1) % 3))));
        if (y == NULL || z == NULL || tn_grad(&y, NULL, 1, &x, &gradient, 1, NULL) != TN_OK ||
            !tn_equal(gradient, shared->expected[i % 3]) || tn_backward(z) != TN_OK)
            return user;
    }
    return NULL;
}

START_TEST(threads_train_one_module)
{
    TN_SCOPE;
    struct pair p;
    struct shared shared;
    pthread_t threads[THREADS];

    tn_random_seed(3);
    p = pair_of(tn_module_new("Sequential(Linear(6, 16), ReLU(), Linear(16, 4), Tanh())"));
    shared.net = p.net;
    for (int k = 0; k < 3; k++) {
        tn_tensor *x = leaf_of(k), *y = tn_sum(tn_exp(tn_module_call(p.eager, x)));

        ck_ok(tn_grad(&y, NULL, 1, &x, &shared.expected[k], 1, NULL));
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, train_often, &shared), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;

        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    ck_assert_int_eq(plans_made(p.net), 3);
    drop_pair(&p);
}
END_TEST

/* ---- memory that fails ----------------------------------------------------------------------- */

static bool compile_and_train(void *user)
{
    TN_SCOPE;
    tn_module *net = user;
    tn_tensor *x = numbers(1), *one = tn_tensor_full(TN_SCALAR_SHAPE, 1, TN_F32, NULL);
    bool well = x != NULL && one != NULL && tn_module_compile(net, TRAIN) == TN_OK;

    for (int i = 0; i < 2 && well; i++) {
        tn_tensor *y = tn_module_call(net, x), *loss = y != NULL ? loss_of(y) : NULL;

        well = loss != NULL && tn_backward_with(loss, one, true) == TN_OK &&
               tn_backward(loss) == TN_OK;
    }
    return well && tn_module_zero_grad(net) == TN_OK;
}

START_TEST(each_allocation_that_fails_is_an_error)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 4), Dropout(0.5), Sigmoid())");
    int64_t nodes = tn_grad_node_count();

    ck_assert(compile_and_train(net));
    ck_assert_int_gt(fail_each_allocation(compile_and_train, net), 100);
    ck_ok(tn_module_compile(net, NULL));
    ck_assert_int_eq(tn_grad_node_count(), nodes);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_step_needs_no_more_memory_than_an_eager_one, a_gradient_is_written_over_one_that_ends,
        what_was_kept_is_freed_with_the_result,        threads_train_one_module,
        each_allocation_that_fails_is_an_error,        NULL
    };
    return suite_run("plan train memory", tests);
}

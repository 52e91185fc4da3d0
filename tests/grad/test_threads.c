/* SPDX-License-Identifier: MIT
 *
 * Threads: look-ups, calls and gradients at once; forward in one thread, backward in another;
 * leaves that several backwards share. For ThreadSanitizer. */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/op/suite.h"

enum { THREADS = 4, ROUNDS = 60 };

static void *look_up(void *user)
{
    static const char *const names[] = { "add",    "mul",     "relu",
                                         "matmul", "softmax", "log_softmax_grad" };

    (void)user;
    for (int i = 0; i < ROUNDS; i++) {
        const tn_op *op = tn_op_find(names[i % 6], 0);
        char route[100];

        if (op == NULL || tn_op_route(op, "cpu", TN_F32, route, sizeof route) < 0)
            return (void *)1;
    }
    return NULL;
}

static void *train(void *user)
{
    tn_tensor *shared = user;

    for (int i = 0; i < ROUNDS; i++) {
        TN_SCOPE;
        tn_tensor *x = LEAF(1, 2, 3);

        if (tn_backward(tn_sum(tn_mul(tn_mul(x, x), shared))) != TN_OK ||
            at(tn_tensor_grad(x), 2) != 6)
            return (void *)1;
    }
    return NULL;
}

static tn_status count_it(void *user, tn_tensor *gradient)
{
    (void)gradient; /* another thread may be adding to it */
    atomic_fetch_add((_Atomic int *)user, 1);
    return TN_OK;
}

START_TEST(threads_share_leaves_and_registries)
{
    TN_SCOPE;
    pthread_t threads[2 * THREADS];
    tn_tensor *shared = LEAF(1, 1, 1);
    _Atomic int added = 0;

    ck_assert_uint_ne(tn_tensor_hook_added(shared, count_it, &added, NULL), 0);
    for (int i = 0; i < 2 * THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, i < THREADS ? train : look_up, shared),
                         0);
    for (int i = 0; i < 2 * THREADS; i++) {
        void *result;

        pthread_join(threads[i], &result);
        ck_assert_ptr_null(result);
    }
    HAS(tn_tensor_grad(shared), THREADS * ROUNDS, THREADS * ROUNDS * 4, THREADS * ROUNDS * 9);
    ck_assert_int_eq(added, THREADS * ROUNDS);
    FINE();
}
END_TEST

static void *walk(void *user)
{
    return tn_backward(user) == TN_OK ? NULL : (void *)1;
}

START_TEST(a_graph_made_in_one_thread_runs_in_another)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2, 3), *loss = tn_sum(tn_exp(tn_mul_scalar(x, 0)));
    pthread_t thread;
    void *result;

    ck_assert_int_eq(pthread_create(&thread, NULL, walk, loss), 0);
    pthread_join(thread, &result);
    ck_assert_ptr_null(result);
    HAS(tn_tensor_grad(x), 0, 0, 0);
}
END_TEST

static void *walk_shared(void *user)
{
    tn_backward_options retain = { .size = sizeof retain, .retain_graph = 1 };
    tn_tensor *loss = user;

    for (int i = 0; i < ROUNDS; i++)
        if (tn_backward_from(&loss, NULL, 1, &retain) != TN_OK)
            return (void *)1;
    return NULL;
}

START_TEST(several_walks_over_one_retained_graph_add_up)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *loss = tn_sum(tn_mul(tn_exp(tn_mul_scalar(x, 0)), x));
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, walk_shared, loss), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;

        pthread_join(threads[i], &result);
        ck_assert_ptr_null(result);
    }
    HAS(tn_tensor_grad(x), THREADS * ROUNDS, THREADS * ROUNDS);
    FINE();
}
END_TEST

static void *modes(void *user)
{
    (void)user;
    return tn_grad_enabled() ? NULL : (void *)1;
}

START_TEST(grad_mode_is_of_the_thread)
{
    pthread_t thread;
    void *result;

    tn_grad_begin(false);
    ck_assert_int_eq(pthread_create(&thread, NULL, modes, NULL), 0);
    pthread_join(thread, &result);
    ck_assert_ptr_null(result);
    tn_grad_end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads");
    TCase *tests = tcase_create("threads");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, threads_share_leaves_and_registries);
    tcase_add_test(tests, a_graph_made_in_one_thread_runs_in_another);
    tcase_add_test(tests, several_walks_over_one_retained_graph_add_up);
    tcase_add_test(tests, grad_mode_is_of_the_thread);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

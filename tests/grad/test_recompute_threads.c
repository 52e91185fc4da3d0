/* SPDX-License-Identifier: MIT
 *
 * Recomputation in a process with several threads: backward of one tn_recompute_call in two
 * threads at once, and random numbers, of which the second run gets those of the first without
 * changing the generator of the process. */
#include <pthread.h>

#include "core/base/internal.h"
#include "tests/op/suite.h"

enum { THREADS = 4, ROUNDS = 200 };

/* ---- backward in several threads ------------------------------------------------------------- */

static _Atomic int calls;

/* exp(a) * sin(a) and tanh(a) * a */
static tn_status two(void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)user;
    atomic_fetch_add(&calls, 1);
    out[0] = tn_mul(tn_exp(in[0]), tn_sin(in[0]));
    out[1] = tn_mul(tn_tanh(in[0]), in[0]);
    return out[0] != NULL && out[1] != NULL ? TN_OK : tn_error_code();
}

struct walk {
    tn_tensor *loss;
    bool retains;
    int rounds;
};

static void *walk(void *user)
{
    struct walk *walk = user;
    tn_backward_options options = { .size = sizeof options, .retain_graph = walk->retains };

    for (int i = 0; i < walk->rounds; i++)
        if (tn_backward_from(&walk->loss, NULL, 1, &options) != TN_OK)
            return (void *)1;
    return NULL;
}

static void walk_at_once(struct walk *walks, int count)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, walk, &walks[i]), 0);
    for (int i = 0; i < count; i++) {
        void *result;

        pthread_join(threads[i], &result);
        ck_assert_ptr_null(result);
    }
}

static double slope(int which, double a)
{
    return which == 0 ? exp(a) * (sin(a) + cos(a)) : (1 - tanh(a) * tanh(a)) * a + tanh(a);
}

/* Each thread has one of the two results. The first thread in backward runs the function for both.
 */
START_TEST(two_threads_share_the_second_run)
{
    for (int round = 0; round < ROUNDS; round++) {
        TN_SCOPE;
        tn_tensor *a = LEAF(0.5, -1), *out[2];
        struct walk walks[2];

        atomic_store(&calls, 0);
        ck_assert_int_eq(tn_recompute_call(two, NULL, NULL, &a, 1, out, 2, 0), TN_OK);
        for (int i = 0; i < 2; i++)
            walks[i] = (struct walk){ tn_sum(out[i]), false, 1 };
        walk_at_once(walks, 2);
        ck_assert_int_eq(atomic_load(&calls), 2);
        for (int i = 0; i < 2; i++) {
            double x = i == 0 ? 0.5 : -1;

            ck_assert_double_eq_tol(at(tn_tensor_grad(a), i), slope(0, x) + slope(1, x), 1e-5);
        }
    }
    ck_assert_int_eq(tn_grad_node_count(), 0);
    FINE();
}
END_TEST

/* Every backward uses the tensors of a second run of the function. Several threads make such runs
 * at the same time. */
START_TEST(several_walks_over_a_retained_recompute_add_up)
{
    TN_SCOPE;
    tn_tensor *a = LEAF(0.5, -1), *out[2], *loss;
    struct walk walks[THREADS];

    ck_assert_int_eq(tn_recompute_call(two, NULL, NULL, &a, 1, out, 2, 0), TN_OK);
    loss = tn_sum(tn_add(out[0], out[1]));
    for (int i = 0; i < THREADS; i++)
        walks[i] = (struct walk){ loss, true, ROUNDS };
    walk_at_once(walks, THREADS);
    for (int i = 0; i < 2; i++) {
        double x = i == 0 ? 0.5 : -1;

        ck_assert_double_eq_tol(at(tn_tensor_grad(a), i) / (THREADS * ROUNDS),
                                slope(0, x) + slope(1, x), 1e-3);
    }
    FINE();
}
END_TEST

/* ---- random numbers -------------------------------------------------------------------------- */

static void *draw_elsewhere(void *user)
{
    TN_SCOPE;
    tn_tensor *drawn = tn_rand(TN_SHAPE(3));

    return drawn != NULL && tn_tensor_copy_out(drawn, user, 3 * sizeof(float)) == TN_OK ? user
                                                                                        : NULL;
}

/* Draws in another thread and waits for it. */
static void elsewhere(float *out)
{
    pthread_t thread;
    void *result;

    ck_assert_int_eq(pthread_create(&thread, NULL, draw_elsewhere, out), 0);
    pthread_join(thread, &result);
    ck_assert_ptr_eq(result, out);
}

struct noise {
    int run;
    float other[2][3];  /* what another thread drew during each run */
    float first[2][2];  /* of each run: the two numbers of its first draw */
    float second[2][2]; /* of each run: those of its second draw */
    bool seeds, more;
};

static tn_status noisy(void *user, tn_tensor *const *in, tn_tensor **out)
{
    struct noise *noise = user;
    uint64_t state[3];
    tn_tensor *a, *b;

    if (noise->seeds)
        tn_random_seed(77);
    a = tn_rand(TN_SHAPE(2));
    elsewhere(noise->other[noise->run]);
    ck_assert_int_eq(tn_random_get_state(state), TN_OK);
    b = tn_rand(TN_SHAPE(2));
    if (noise->more && noise->run == 1 && tn_rand(TN_SHAPE(2)) == NULL)
        return tn_error_code();
    /* Sets the generator back, as a function does that draws the same mask twice. */
    ck_assert_int_eq(tn_random_set_state(state), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(a, noise->first[noise->run], 8), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(b, noise->second[noise->run], 8), TN_OK);
    noise->run++;
    out[0] = tn_mul(tn_exp(in[0]), tn_mul(a, b));
    return out[0] != NULL ? TN_OK : tn_error_code();
}

static void expect_state(uint64_t seed, uint64_t block)
{
    uint64_t state[3];

    ck_assert_int_eq(tn_random_get_state(state), TN_OK);
    ck_assert_uint_eq(state[0], seed);
    ck_assert_uint_eq(state[1], block);
}

START_TEST(the_second_run_draws_the_same_and_leaves_the_generator_to_others)
{
    for (int seeds = 0; seeds < 2; seeds++) {
        TN_SCOPE;
        struct noise noise = { .seeds = seeds == 1 };
        tn_tensor *a = LEAF(0.5, -1), *y;
        float drawn[3];

        tn_random_seed(5);
        ck_assert_int_eq(tn_recompute_call(noisy, &noise, NULL, &a, 1, &y, 1, 0), TN_OK);
        expect_state(seeds ? 77 : 5, 2); /* `a` and the other thread; `b` was undone */
        tn_random_seed(9);
        ck_assert_msg(tn_backward(tn_sum(y)) == TN_OK, "%s", tn_error_text());
        ck_assert_int_eq(noise.run, 2);
        ck_assert_mem_eq(noise.first[0], noise.first[1], sizeof noise.first[0]);
        ck_assert_mem_eq(noise.second[0], noise.second[1], sizeof noise.second[0]);
        /* The other thread got the numbers that follow the seed, and advanced the generator. */
        expect_state(9, 1);
        tn_random_seed(9);
        ck_assert_int_eq(tn_tensor_copy_out(tn_rand(TN_SHAPE(3)), drawn, sizeof drawn), TN_OK);
        ck_assert_mem_eq(noise.other[1], drawn, sizeof drawn);
        HAS(tn_tensor_grad(a), exp(0.5) * (double)noise.first[0][0] * (double)noise.second[0][0],
            exp(-1) * (double)noise.first[0][1] * (double)noise.second[0][1]);
    }
    FINE();
}
END_TEST

/* The inner function draws numbers again in the second run of the outer function, and a third time
 * in its own second run. */
static tn_status around(void *user, tn_tensor *const *in, tn_tensor **out)
{
    tn_tensor *x = tn_mul(tn_sin(in[0]), tn_rand(TN_SHAPE(2)));
    tn_status status = tn_recompute_call(noisy, user, NULL, &x, 1, out, 1, 0);

    if (status == TN_OK)
        out[0] = tn_mul(tn_sin(out[0]), tn_rand(TN_SHAPE(2)));
    return out[0] != NULL ? status : tn_error_code();
}

START_TEST(nested_functions_draw_the_same_numbers)
{
    TN_SCOPE;
    struct noise noise = { 0 };
    tn_tensor *a = LEAF(0.5, -1), *plain = LEAF(0.5, -1), *y, *z;
    float wanted[2];

    tn_random_seed(5);
    tn_grad_begin(true);
    ck_assert_int_eq(around(&noise, &plain, &z), TN_OK);
    tn_grad_end();
    ck_assert_int_eq(tn_tensor_copy_out(tn_detach(z), wanted, sizeof wanted), TN_OK);
    noise.run = 0;
    ck_assert_int_eq(tn_backward(tn_sum(z)), TN_OK);
    noise.run = 0;
    tn_random_seed(5);
    ck_assert_int_eq(tn_recompute_call(around, &noise, NULL, &a, 1, &y, 1, 0), TN_OK);
    HAS(y, (double)wanted[0], (double)wanted[1]);
    noise.run = 0;
    tn_random_seed(11);
    ck_assert_msg(tn_backward(tn_sum(y)) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(noise.run, 2); /* for the outer function, then for the inner one */
    HAS(tn_tensor_grad(a), at(tn_tensor_grad(plain), 0), at(tn_tensor_grad(plain), 1));
    expect_state(11, 2); /* only the other threads */
    FINE();
}
END_TEST

START_TEST(a_second_run_that_draws_more_is_refused)
{
    TN_SCOPE;
    struct noise noise = { .more = true };
    tn_tensor *a = LEAF(0.5, -1), *y;

    ck_assert_int_eq(tn_recompute_call(noisy, &noise, NULL, &a, 1, &y, 1, 0), TN_OK);
    ck_assert_int_ne(tn_backward(tn_sum(y)), TN_OK);
    FAILED(TN_ERR_RUNTIME, "draws more in its second run, got call 4; expected 3 calls");
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recompute-threads");
    TCase *tcase = tcase_create("recompute-threads");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, two_threads_share_the_second_run);
    tcase_add_test(tcase, several_walks_over_a_retained_recompute_add_up);
    tcase_add_test(tcase, the_second_run_draws_the_same_and_leaves_the_generator_to_others);
    tcase_add_test(tcase, nested_functions_draw_the_same_numbers);
    tcase_add_test(tcase, a_second_run_that_draws_more_is_refused);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}

/* SPDX-License-Identifier: MIT
 *
 * The state of the random number generator. */
#include "tests/tensor/fixture.h"

#include <pthread.h>

START_TEST(a_range_depends_on_the_count_of_elements_alone)
{
    static const struct {
        uint64_t count;
        uint32_t words;
        uint64_t blocks;
    } rows[] = {
        { 0, 1, 0 }, { 1, 1, 1 }, { 4, 1, 1 }, { 5, 1, 2 }, { 1, 2, 1 },
        { 2, 2, 1 }, { 3, 2, 2 }, { 1, 4, 1 }, { 3, 4, 3 }, { UINT64_MAX, 1, (uint64_t)1 << 62 }
    };
    uint64_t seed, block, expected = 0;

    tn_random_seed(42);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_random_take(rows[i].count, rows[i].words, &seed, &block);
        ck_assert_uint_eq(seed, 42);
        ck_assert_uint_eq(block, expected);
        expected += rows[i].blocks;
    }
}
END_TEST

START_TEST(the_state_is_saved_and_put_back)
{
    uint64_t state[3], seed, block;

    tn_random_seed(7);
    tn_random_take(10, 1, NULL, NULL);
    tn_random_get_state(state);
    ck_assert_uint_eq(state[0], 7);
    ck_assert_uint_eq(state[1], 3);
    tn_random_take(10, 1, NULL, NULL);
    tn_random_seed(8);
    tn_random_set_state(state);
    tn_random_take(1, 1, &seed, &block);
    ck_assert_uint_eq(seed, 7);
    ck_assert_uint_eq(block, 3);
}
END_TEST

START_TEST(the_environment_gives_the_seed)
{
    uint64_t state[3];

    setenv("TENON_SEED", "-5", 1);
    tn_random_get_state(state);
    ck_assert_uint_eq(state[0], (uint64_t)-5);
    ck_assert_uint_eq(state[1], 0);
    ck_assert_uint_eq(state[2], 0);
    state[0] = 9;
    state[2] = 1; /* the lane of other generators */
    ck_assert_int_eq(tn_random_set_state(state), TN_ERR_VALUE);
    tn_error_clear();
    tn_random_get_state(state);
    ck_assert_uint_eq(state[0], (uint64_t)-5);
}
END_TEST

START_TEST(without_a_seed_it_comes_from_the_system)
{
    uint64_t state[3];

    unsetenv("TENON_SEED");
    tn_random_get_state(state);
    ck_assert_uint_ne(state[0], 0);
}
END_TEST

static void *take_many(void *sum)
{
    uint64_t block;

    for (int i = 0; i < 10000; i++) {
        tn_random_take(4, 1, NULL, &block);
        *(uint64_t *)sum += block;
    }
    return NULL;
}

START_TEST(no_block_is_given_twice_to_threads)
{
    uint64_t sums[4] = { 0 }, n = 40000;
    pthread_t threads[4];

    tn_random_seed(1);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, take_many, &sums[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(sums[0] + sums[1] + sums[2] + sums[3], n * (n - 1) / 2);
}
END_TEST

RUN_TESTS("random", a_range_depends_on_the_count_of_elements_alone, the_state_is_saved_and_put_back,
          the_environment_gives_the_seed, without_a_seed_it_comes_from_the_system,
          no_block_is_given_twice_to_threads)

/* SPDX-License-Identifier: MIT
 *
 * Random numbers: the same on every device, because each number is a function of seed, counter and
 * index of the element alone. */
#include "tests/backend/backend.h"

/* ---- Philox 4x32-10, written once more ------------------------------------------------------- */

static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4], k0 = key[0], k1 = key[1];
    memcpy(c, counter, sizeof c);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)c[0] * 0xD2511F53u, b = (uint64_t)c[2] * 0xCD9E8D57u;
        uint32_t next[4] = { (uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b,
                             (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a };
        memcpy(c, next, sizeof c);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    memcpy(out, c, sizeof c);
}

static uint32_t lane_word(uint64_t seed, uint64_t block, uint64_t lane, uint64_t index)
{
    uint32_t out[4];
    block += index / 4;
    philox((uint32_t[4]){ (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)lane,
                          (uint32_t)(lane >> 32) },
           (uint32_t[2]){ (uint32_t)seed, (uint32_t)(seed >> 32) }, out);
    return out[index % 4];
}

static uint32_t word(uint64_t seed, uint64_t block, uint64_t index)
{
    return lane_word(seed, block, 0, index);
}

START_TEST(the_reference_passes_the_known_answer_tests_of_Random123)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        philox(known[i].counter, known[i].key, out);
        ck_assert_mem_eq(out, known[i].out, sizeof out);
    }
}
END_TEST

/* ---- devices --------------------------------------------------------------------------------- */

static const uint64_t seed = 0x123456789abcdef0u,
                      block = 0xfffffffdu; /* the counter's low word overflows */

static double unit32(uint64_t index)
{
    return (double)(word(seed, block, index) >> 8) * 0x1p-24;
}

static double bits53(uint64_t index)
{
    return (double)(((uint64_t)word(seed, block, index) << 32 | word(seed, block, index + 1)) >>
                    11);
}

START_TEST(the_first_numbers_are_the_golden_ones)
{
    /* words 6627e8d5 e169c58d bc57ac4c 9b00dbd8 of seed 0, block 0 */
    static const double golden[] = { 0x6627e8 * 0x1p-24, 0xe169c5 * 0x1p-24, 0xbc57ac * 0x1p-24,
                                     0x9b00db * 0x1p-24 };
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *like = tn_tensor_empty(TN_SHAPE(4), TN_F32, device);
        same("philox_uniform", device, TN_F32, tn_philox_uniform(like, TN_NONE, 0, 1, 0, 0), golden,
             0, 0);
    }
}
END_TEST

START_TEST(uniform_numbers_are_equal_to_the_bit_on_every_device)
{
    static const int64_t counts[] = { 1, 2, 3, 4, 5, 7, 63, 64, 65, 257, 1000 };
    static const tn_dtype types[] = { TN_F32, TN_BF16, TN_F16 };
    EACH_DEVICE(device)
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        double y[1000];
        for (int t = 0; t < 3; t++) {
            if (!device_has(device, "philox_uniform", types[t]))
                continue;
            TN_SCOPE;
            tn_tensor *like = tn_tensor_empty(TN_SHAPE(counts[c]), types[t], device);
            for (int64_t i = 0; i < counts[c]; i++)
                y[i] = stored(fmaf((float)unit32((uint64_t)i), 3.5f, -1.5f), types[t]);
            same("philox_uniform", device, types[t],
                 tn_philox_uniform(like, TN_NONE, -1.5, 2, (int64_t)seed, (int64_t)block), y, 0, 0);
        }
        if (!device_has(device, "philox_uniform", TN_F64))
            continue;
        TN_SCOPE;
        tn_tensor *like = tn_tensor_empty(TN_SHAPE(counts[c]), TN_F64, device);
        for (int64_t i = 0; i < counts[c]; i++)
            y[i] = fma(bits53(2 * (uint64_t)i) * 0x1p-53, 3.5, -1.5);
        same("philox_uniform", device, TN_F64,
             tn_philox_uniform(like, TN_NONE, -1.5, 2, (int64_t)seed, (int64_t)block), y, 0, 0);
    }
}
END_TEST

START_TEST(normal_numbers_agree_within_a_few_units_in_the_last_place)
{
    enum { COUNT = 1001 };
    static const double turn = 6.283185307179586476925;
    double y[COUNT];
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        for (uint64_t i = 0; i < COUNT; i++) {
            double u1 = ((double)(word(seed, block, 2 * i) >> 8) + 1) * 0x1p-24,
                   u2 = unit32(2 * i + 1);
            y[i] = 1 + 2 * sqrt(-2 * log(u1)) * cos(turn * u2);
        }
        same("philox_normal", device, TN_F32,
             tn_philox_normal(tn_tensor_empty(TN_SHAPE(COUNT), TN_F32, device), TN_NONE, 1, 2,
                              (int64_t)seed, (int64_t)block),
             y, 4, 4);
        if (!device_has(device, "philox_normal", TN_F64))
            continue;
        for (uint64_t i = 0; i < COUNT; i++)
            y[i] = sqrt(-2 * log((bits53(4 * i) + 1) * 0x1p-53)) *
                   cos(turn * (bits53(4 * i + 2) * 0x1p-53));
        same("philox_normal", device, TN_F64,
             tn_philox_normal(tn_tensor_empty(TN_SHAPE(COUNT), TN_F64, device), TN_NONE, 0, 1,
                              (int64_t)seed, (int64_t)block),
             y, 8, 1);
    }
}
END_TEST

START_TEST(numbers_follow_the_logical_element_whatever_the_layout)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        double zeros[35] = { 0 };
        tn_tensor *dense = tn_philox_uniform_(put(device, TN_F32, TN_SHAPE(5, 7), zeros, DENSE),
                                              TN_NONE, 0, 1, 3, 4);
        double *expected = get(dense);
        for (int layout = 1; layout < LAYOUTS; layout++)
            same("philox_uniform_", device, TN_F32,
                 tn_philox_uniform_(put(device, TN_F32, TN_SHAPE(5, 7), zeros, (enum layout)layout),
                                    TN_NONE, 0, 1, 3, 4),
                 expected, 0, 0);
        free(expected);
    }
}
END_TEST

START_TEST(the_same_seed_gives_the_same_numbers_on_every_device)
{
    double *first = NULL;
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_random_seed(42);
        tn_tensor *a = tn_uniform(tn_tensor_empty(TN_SHAPE(10), TN_F32, device));
        tn_tensor *b = tn_uniform(tn_tensor_empty(TN_SHAPE(10), TN_F32, device));
        double *x = get(a), *y = get(b);
        ck_assert_mem_ne(x, y,
                         10 * sizeof *x); /* the second draw continues where the first ended */
        if (!first)
            first = get(a);
        same("uniform", device, TN_F32, a, first, 0, 0);
        free(x);
        free(y);
    }
    free(first);
}
END_TEST

START_TEST(many_numbers_do_not_depend_on_the_number_of_threads)
{
    enum { COUNT = 100001 };
    static float first[COUNT], y[COUNT];
    const tn_device *cpu = tn_device_find("cpu");
    TN_SCOPE;
    tn_tensor *like = tn_tensor_empty(TN_SHAPE(COUNT), TN_F32, cpu);
    for (int threads = 1; threads <= 4; threads *= 2) {
        ok(tn_set_num_threads(threads));
        ok(tn_tensor_copy_out(tn_philox_normal(like, TN_NONE, 0, 1, 5, 6), y, sizeof y));
        if (threads == 1)
            memcpy(first, y, sizeof y);
        ck_assert_mem_eq(first, y, sizeof y);
    }
    double sum = 0, squares = 0;
    for (int i = 0; i < COUNT; i++) {
        sum += y[i];
        squares += (double)y[i] * y[i];
    }
    ck_assert_double_eq_tol(sum / COUNT, 0, 0.02);
    ck_assert_double_eq_tol(squares / COUNT, 1, 0.02);
}
END_TEST

/* ---- a state on the device ---- */

static tn_tensor *state_in(const tn_device *device, int64_t key, int64_t first, int64_t lane)
{
    const int64_t numbers[3] = { key, first, lane };

    return tn_copy_(tn_tensor_empty(TN_SHAPE(3), TN_I64, device),
                    tn_tensor_from(numbers, TN_I64, TN_SHAPE(3)));
}

static tn_tensor *state_of(const tn_device *device, int64_t key, int64_t first)
{
    return state_in(device, key, first, 0);
}

START_TEST(a_state_gives_the_numbers_of_its_seed_and_of_the_sum_of_blocks)
{
    /* blocks whose sum passes 2^32, and 2^64 */
    static const int64_t blocks[][2] = { { 0, 0 }, { 0xfffffffd, 7 }, { -1, 3 }, { 5, -9 } };
    static const tn_dtype types[] = { TN_F32, TN_F64, TN_F16 };

    EACH_DEVICE(device)
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
        for (int t = 0; t < 3; t++) {
            TN_SCOPE;
            int64_t sum = (int64_t)((uint64_t)blocks[b][0] + (uint64_t)blocks[b][1]);
            tn_tensor *like, *state, *sparse;

            if (!device_has(device, "philox_uniform", types[t]))
                continue;
            like = tn_tensor_empty(TN_SHAPE(37), types[t], device);
            state = state_of(device, (int64_t)seed, blocks[b][1]);
            same("uniform", device, types[t],
                 tn_philox_uniform(like, state, -1, 2, 0, blocks[b][0]),
                 get(tn_philox_uniform(like, TN_NONE, -1, 2, (int64_t)seed, sum)), 0, 0);
            same("normal", device, types[t], tn_philox_normal(like, state, 0, 1, 0, blocks[b][0]),
                 get(tn_philox_normal(like, TN_NONE, 0, 1, (int64_t)seed, sum)), 0, 0);
            /* with other strides and not at the start of its memory */
            sparse = tn_tensor_as_strided(tn_cat((tn_tensor *[]){ state, state, state }, 3, 0),
                                          TN_SHAPE(3), TN_SHAPE(4), 0);
            same("uniform", device, types[t],
                 tn_philox_uniform(like, sparse, -1, 2, 0, blocks[b][0]),
                 get(tn_philox_uniform(like, state, -1, 2, 0, blocks[b][0])), 0, 0);
        }
}
END_TEST

START_TEST(a_lane_is_the_upper_half_of_the_counter)
{
    static const int64_t lanes[] = { 1, 0x500000007, -1 };
    enum { COUNT = 21 };

    EACH_DEVICE(device)
    for (int l = 0; l < 3; l++) {
        TN_SCOPE;
        uint64_t lane = (uint64_t)lanes[l];
        tn_tensor *state = state_in(device, (int64_t)seed, (int64_t)block, lanes[l]);
        double y[COUNT], z[COUNT];

        for (uint64_t i = 0; i < COUNT; i++) {
            uint32_t first = lane_word(seed, block + 3, lane, 2 * i),
                     second = lane_word(seed, block + 3, lane, 2 * i + 1);

            y[i] = (double)(lane_word(seed, block + 3, lane, i) >> 8) * 0x1p-24;
            z[i] = sqrt(-2 * log(((double)(first >> 8) + 1) * 0x1p-24)) *
                   cos(6.283185307179586476925 * ((double)(second >> 8) * 0x1p-24));
        }
        same("philox_uniform", device, TN_F32,
             tn_philox_uniform(tn_tensor_empty(TN_SHAPE(COUNT), TN_F32, device), state, 0, 1, 0, 3),
             y, 0, 0);
        same("philox_normal", device, TN_F32,
             tn_philox_normal(tn_tensor_empty(TN_SHAPE(COUNT), TN_F32, device), state, 0, 1, 0, 3),
             z, 8, 4);
        if (!device_has(device, "philox_uniform", TN_F64))
            continue;
        for (uint64_t i = 0; i < COUNT; i++)
            y[i] = (double)(((uint64_t)lane_word(seed, block + 3, lane, 2 * i) << 32 |
                             lane_word(seed, block + 3, lane, 2 * i + 1)) >>
                            11) *
                   0x1p-53;
        same("philox_uniform", device, TN_F64,
             tn_philox_uniform(tn_tensor_empty(TN_SHAPE(COUNT), TN_F64, device), state, 0, 1, 0, 3),
             y, 0, 0);
    }
}
END_TEST

/* What tn_random_get_state writes is a state of the operators. */
START_TEST(the_generators_state_is_a_state_of_the_operators)
{
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");
    tn_tensor *like = tn_tensor_empty(TN_SHAPE(9), TN_F32, cpu), *state;
    uint64_t numbers[3];

    tn_random_seed(77);
    there(tn_uniform(like));
    ok(tn_random_get_state(numbers));
    state = tn_tensor_from(numbers, TN_I64, TN_SHAPE(3));
    same("uniform", cpu, TN_F32, tn_philox_uniform(like, state, 0, 1, 0, 0), get(tn_uniform(like)),
         0, 0);
}
END_TEST

START_TEST(a_state_that_changes_in_place_gives_the_next_numbers)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *like = tn_tensor_empty(TN_SHAPE(8), TN_F32, device);
        tn_tensor *state = state_of(device, 5, 0), *more = state_of(device, 0, 2);

        there(tn_philox_uniform(like, state, 0, 1, 0, 0));
        there(tn_add_(state, more));
        same("second", device, TN_F32, tn_philox_uniform(like, state, 0, 1, 0, 0),
             get(tn_philox_uniform(like, TN_NONE, 0, 1, 5, 2)), 0, 0);
    }
}
END_TEST

START_TEST(a_permutation_takes_a_state)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *like = tn_tensor_empty(TN_SHAPE(101), TN_I64, device);

        if (!device_has(device, "philox_uniform", TN_F64) || !device_has(device, "sort", TN_F64))
            continue;
        same("permutation", device, TN_I64,
             tn_philox_permutation(like, state_of(device, 11, 3), 0, 4),
             get(tn_philox_permutation(like, TN_NONE, 11, 7)), 0, 0);
    }
}
END_TEST

/* y, and the gradients of q, k and v, of attention that drops. */
static tn_status attend(const tn_device *device, tn_dtype dtype, tn_tensor *state, int64_t key,
                        int64_t first, tn_tensor **out)
{
    tn_tensor *in[3], *sums, *total;

    for (int i = 0; i < 3; i++) {
        tn_tensor *room = tn_tensor_empty(TN_SHAPE(1, 2, 5, 4), dtype, device);

        in[i] = tn_philox_normal(room, TN_NONE, 0, 1, 7 + i, 0);
        there(in[i]);
        ok(tn_tensor_set_requires_grad(in[i], true));
    }
    if (tn_attend(in[0], in[1], in[2], TN_NONE, state, 0.5, &out[0], &sums, false, 0.4, key,
                  first) != TN_OK)
        return tn_error_last_code();
    total = tn_sum(tn_square(out[0]));
    return tn_grad(&total, NULL, 1, in, out + 1, 3, NULL);
}

START_TEST(attention_takes_a_state_forward_and_backward)
{
    static const tn_dtype types[] = { TN_F32, TN_F64 };

    EACH_DEVICE(device)
    for (int t = 0; t < 2; t++) {
        TN_SCOPE;
        tn_tensor *by_state[4], *by_option[4];
        double *other;

        if (!device_has(device, "bmm", types[t]))
            continue;
        ok(attend(device, types[t], state_of(device, 21, 3), 0, 6, by_state));
        ok(attend(device, types[t], TN_NONE, 21, 9, by_option));
        for (int i = 0; i < 4; i++)
            same("attend", device, types[t], by_state[i], get(by_option[i]), 0, 0);
        ok(attend(device, types[t], TN_NONE, 21, 6, by_option));
        other = get(by_option[0]);
        ck_assert_mem_ne(get(by_state[0]), other, 40 * sizeof *other);
    }
}
END_TEST

/* Lanes change what a permutation and the dropout of attention draw. */
START_TEST(every_operator_with_a_state_draws_in_its_lane)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *like = tn_tensor_empty(TN_SHAPE(101), TN_I64, device), *keys;
        tn_tensor *state = state_in(device, 11, 3, 2), *plain = state_of(device, 11, 3);
        tn_tensor *lane[4], *without[4];
        double *other;

        if (!device_has(device, "philox_uniform", TN_F64) || !device_has(device, "sort", TN_F64) ||
            !device_has(device, "bmm", TN_F32))
            continue;
        keys = tn_tensor_empty(TN_SHAPE(101), TN_F64, device);
        ok(tn_sort(tn_philox_uniform(keys, state, 0, 1, 0, 4), &keys, &lane[0]));
        same("permutation", device, TN_I64, tn_philox_permutation(like, state, 0, 4), get(lane[0]),
             0, 0);
        other = get(tn_philox_permutation(like, plain, 0, 4));
        ck_assert_mem_ne(get(lane[0]), other, 101 * sizeof *other);
        ok(attend(device, TN_F32, state, 0, 6, lane));
        ok(attend(device, TN_F32, plain, 0, 6, without));
        for (int i = 0; i < 4; i++) {
            other = get(without[i]);
            ck_assert_mem_ne(get(lane[i]), other, 40 * sizeof *other);
        }
    }
}
END_TEST

START_TEST(a_state_changed_before_the_backward_pass_is_noticed)
{
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");
    tn_tensor *state = state_of(cpu, 1, 2), *y, *sums;
    tn_tensor *q = tn_tensor_full(TN_SHAPE(1, 1, 3, 2), 0.5, TN_F32, cpu);

    ok(tn_tensor_set_requires_grad(q, true));
    ok(tn_attend(q, q, q, TN_NONE, state, 1, &y, &sums, false, 0.5));
    there(tn_fill_(state, 3));
    ck_assert_int_ne(tn_backward(tn_sum(y)), TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "modified by an inplace operation"));
    tn_error_clear();
}
END_TEST

static void refused(tn_tensor *result, tn_status code, const char *words)
{
    ck_assert_ptr_null(result);
    ck_assert_int_eq(tn_error_code(), code);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "\"%s\" lacks \"%s\"", tn_error_text(),
                  words);
    tn_error_clear();
}

START_TEST(a_state_that_does_not_fit_is_refused)
{
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(4), TN_F32, cpu), *good = state_of(cpu, 1, 2);
    tn_tensor *places = tn_tensor_empty(TN_SHAPE(4), TN_I64, cpu);

    refused(tn_philox_uniform(x, tn_cat((tn_tensor *[]){ good, good }, 2, 0), 0, 1, 0, 0),
            TN_ERR_VALUE, "state: wrong shape, got [6]; expected [3]: seed, block and lane");
    refused(tn_philox_normal(x, tn_unsqueeze(good, 0), 0, 1, 0, 0), TN_ERR_VALUE,
            "state: wrong shape, got [1, 3]");
    refused(tn_philox_permutation(places, tn_select(good, 0, 0), 0, 0), TN_ERR_VALUE,
            "state: wrong shape, got []");
    refused(tn_philox_uniform(x, tn_cast(good, TN_I32), 0, 1, 0, 0), TN_ERR_TYPE, "int32");
    refused(tn_philox_uniform(x, good, 0, 1, 3, 0), TN_ERR_VALUE,
            "seed or state: too many, got seed 3 and a state");
    refused(tn_philox_normal(x, good, 0, 1, -1, 0), TN_ERR_VALUE, "got seed -1");
    refused(tn_philox_permutation(places, good, 1, 0), TN_ERR_VALUE, "got seed 1");
    {
        tn_tensor *q = tn_tensor_full(TN_SHAPE(1, 1, 3, 2), 0.5, TN_F32, cpu), *y, *sums;

        ck_assert_int_eq(tn_attend(q, q, q, TN_NONE, good, 1, &y, &sums, false, 0.0, 4),
                         TN_ERR_VALUE);
        refused(NULL, TN_ERR_VALUE, "attend: seed or state: too many, got seed 4");
        ck_assert_int_eq(tn_attend(q, q, q, TN_NONE, places, 1, &y, &sums), TN_ERR_VALUE);
        refused(NULL, TN_ERR_VALUE, "attend: state: wrong shape, got [4]");
    }
    refused(tn_philox_uniform(x, state_of(tn_device_find("strict"), 1, 2), 0, 1, 0, 0),
            TN_ERR_RUNTIME, "expected all on one device");
}
END_TEST

RUN_SUITE("random", the_reference_passes_the_known_answer_tests_of_Random123,
          the_first_numbers_are_the_golden_ones,
          uniform_numbers_are_equal_to_the_bit_on_every_device,
          normal_numbers_agree_within_a_few_units_in_the_last_place,
          numbers_follow_the_logical_element_whatever_the_layout,
          the_same_seed_gives_the_same_numbers_on_every_device,
          many_numbers_do_not_depend_on_the_number_of_threads,
          a_state_gives_the_numbers_of_its_seed_and_of_the_sum_of_blocks,
          a_lane_is_the_upper_half_of_the_counter, the_generators_state_is_a_state_of_the_operators,
          every_operator_with_a_state_draws_in_its_lane,
          a_state_that_changes_in_place_gives_the_next_numbers, a_permutation_takes_a_state,
          attention_takes_a_state_forward_and_backward,
          a_state_changed_before_the_backward_pass_is_noticed, a_state_that_does_not_fit_is_refused)

/* SPDX-License-Identifier: MIT
 *
 * The communicator `local`: the values of all exchanges, in groups of 1 to 5 processes, through
 * shared memory and through TCP. The test computes the expected values itself: whole numbers that
 * are exact in every dtype, and sums of float32 in the order of the documented tree. */
#include "tests/comm/ranks.h"
#include "tests/spec/proves.h"

#include <math.h>

/* Counts that are less than a buffer, exactly a buffer, and several buffers with a rest. */
static const int64_t counts[] = { 1, 5, 65536, 65537 * 2 };

enum { DTYPES = 17 };
static const tn_dtype dtypes[DTYPES] = { TN_BOOL, TN_U8,   TN_I8,  TN_I16,     TN_I32,    TN_I64,
                                         TN_F16,  TN_BF16, TN_F32, TN_F64,     TN_C64,    TN_C128,
                                         TN_U16,  TN_U32,  TN_U64, TN_F8_E4M3, TN_F8_E5M2 };

/* The value of an element: a small whole number, which all dtypes have. */
static int value_of(int rank, int64_t i, tn_dtype dtype)
{
    return dtype == TN_BOOL ? (int)((i + rank) % 3 == 0) : (int)((i + 2 * rank) % 3);
}

/* Returns a tensor of these values from the place `from` on. */
static tn_tensor *ramp(int rank, int64_t from, int64_t count, tn_dtype dtype)
{
    int32_t *values = malloc((size_t)count * sizeof *values);
    tn_tensor *whole, *result;

    need(values != NULL);
    for (int64_t i = 0; i < count; i++)
        values[i] = value_of(rank, from + i, dtype);
    whole = tn_tensor_from(values, TN_I32, TN_SHAPE(count));
    need(whole != NULL);
    free(values);
    result = tn_cast(whole, dtype);
    need(result != NULL);
    return result;
}

static int64_t *numbers_of(tn_tensor *tensor)
{
    const size_t size = (size_t)tn_tensor_numel(tensor) * sizeof(int64_t);
    int64_t *numbers = malloc(size);
    tn_dtype dtype = tn_tensor_dtype(tensor);
    bool complex = dtype == TN_C64 || dtype == TN_C128;
    tn_tensor *real = complex ? tn_real(tensor) : tensor;

    need(numbers != NULL);
    need_ok(tn_tensor_copy_out(tn_cast(real, TN_I64), numbers, size));
    return numbers;
}

static int combined(tn_reduction reduction, int size, int64_t i, tn_dtype dtype)
{
    int result = value_of(0, i, dtype);

    for (int r = 1; r < size; r++) {
        int next = value_of(r, i, dtype);

        if (reduction == TN_REDUCTION_PRODUCT)
            result *= next;
        else if (reduction == TN_REDUCTION_MIN)
            result = next < result ? next : result;
        else if (reduction == TN_REDUCTION_MAX)
            result = next > result ? next : result;
        else
            result += next;
    }
    return dtype == TN_BOOL ? result != 0 : result;
}

static void check_reductions(tn_comm *comm, int rank, int size, tn_dtype dtype, int64_t count)
{
    const bool complex = dtype == TN_C64 || dtype == TN_C128;

    for (tn_reduction op = TN_REDUCTION_SUM; op <= TN_REDUCTION_MAX; op++) {
        TN_SCOPE;
        tn_tensor *x = ramp(rank, 0, count, dtype);
        tn_tensor *pieces = ramp(rank, 0, count * size, dtype);
        tn_tensor *out = ramp(0, 0, count, dtype);
        int64_t *got;

        if (complex && op >= TN_REDUCTION_MIN)
            continue;
        need_ok(tn_comm_all_reduce(comm, x, op));
        got = numbers_of(x);
        for (int64_t i = 0; i < count; i++)
            need(got[i] == combined(op, size, i, dtype));
        free(got);
        need_ok(tn_comm_reduce_scatter(comm, out, pieces, op));
        got = numbers_of(out);
        for (int64_t i = 0; i < count; i++)
            need(got[i] == combined(op, size, rank * count + i, dtype));
        free(got);
    }
}

static void check_moves(tn_comm *comm, int rank, int size, tn_dtype dtype, int64_t count)
{
    TN_SCOPE;
    const int root = size - 1, next = (rank + 1) % size, last = (rank + size - 1) % size;
    tn_tensor *x = ramp(rank, 0, count, dtype), *mine = ramp(rank, 0, count, dtype);
    tn_tensor *all = ramp(0, 0, count * size, dtype);
    int64_t *got;

    need_ok(tn_comm_broadcast(comm, x, root));
    got = numbers_of(x);
    for (int64_t i = 0; i < count; i++)
        need(got[i] == value_of(root, i, dtype));
    free(got);
    need_ok(tn_comm_all_gather(comm, all, mine));
    got = numbers_of(all);
    for (int r = 0; r < size; r++)
        for (int64_t i = 0; i < count; i++)
            need(got[r * count + i] == value_of(r, i, dtype));
    free(got);
    /* all send before they receive: no send may wait for the receiver */
    need_ok(tn_comm_send(comm, mine, next, 7));
    need_ok(tn_comm_send(comm, x, next, 8));
    need_ok(tn_comm_recv(comm, x, last, 8));
    need_ok(tn_comm_recv(comm, x, last, 7));
    got = numbers_of(x);
    for (int64_t i = 0; i < count; i++)
        need(got[i] == value_of(last, i, dtype));
    free(got);
}

static void all_values(int rank, int size)
{
    tn_comm *comm = join(rank, size);

    need(tn_comm_rank(comm) == rank && tn_comm_size(comm) == size);
    for (int d = 0; d < DTYPES; d++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            if (counts[c] > 5 && dtypes[d] != TN_F32 && dtypes[d] != TN_U8)
                continue;
            check_reductions(comm, rank, size, dtypes[d], counts[c]);
            check_moves(comm, rank, size, dtypes[d], counts[c]);
        }
    need_ok(tn_comm_barrier(comm));
    tn_comm_drop(comm);
}

START_TEST(all_exchanges_give_the_documented_values)
{
    for (int size = 1; size <= 5; size++)
        run_ranks(all_values, size, false);
    run_ranks(all_values, 2, true);
    run_ranks(all_values, 3, true);
    TN_PROVES("DST-002");
}
END_TEST

/* ---- the order of sums ----------------------------------------------------------------------- */

enum { LONG = 100003 };

/* Numbers whose sum depends on the order. */
static float uneven(int shard, int64_t i)
{
    uint32_t bits = (uint32_t)i * 2654435761u + (uint32_t)shard * 40503u;

    bits ^= bits >> 15;
    return (float)(bits * 2246822519u >> 8) / (float)(1 << (bits % 24));
}

static float *shards_of(int first, int count)
{
    float *sum = malloc(LONG * sizeof *sum), *more;

    need(sum != NULL);
    for (int64_t i = 0; i < LONG; i++)
        sum[i] = uneven(first, i);
    if (count == 1)
        return sum;
    free(sum);
    sum = shards_of(first, count / 2);
    more = shards_of(first + count / 2, count / 2);
    for (int64_t i = 0; i < LONG; i++)
        sum[i] += more[i];
    free(more);
    return sum;
}

/* Each rank sums its part of four shards; the group must give the bits of the whole tree. */
static void four_shards(int rank, int size)
{
    TN_SCOPE;
    tn_comm *comm = join(rank, size);
    float *own = shards_of(rank * 4 / size, 4 / size), *whole = shards_of(0, 4);
    float *got = malloc(LONG * sizeof *got);
    tn_tensor *x = tn_tensor_from(own, TN_F32, TN_SHAPE(LONG)), *small, *mean;

    need(x != NULL && got != NULL);
    small = tn_clone(tn_narrow(x, 0, 0, 100));
    mean = tn_clone(x);
    need_ok(tn_comm_all_reduce(comm, x, TN_REDUCTION_SUM));
    need_ok(tn_tensor_copy_out(x, got, LONG * sizeof *got));
    need(memcmp(got, whole, LONG * sizeof *got) == 0);
    need_ok(tn_comm_all_reduce(comm, small, TN_REDUCTION_SUM));
    need_ok(tn_tensor_copy_out(small, got, 100 * sizeof *got));
    need(memcmp(got, whole, 100 * sizeof *got) == 0);
    need_ok(tn_comm_all_reduce(comm, mean, TN_REDUCTION_AVERAGE));
    need_ok(tn_tensor_copy_out(mean, got, LONG * sizeof *got));
    for (int64_t i = 0; i < LONG; i++)
        need(got[i] == whole[i] / (float)size);
    free(own);
    free(whole);
    free(got);
    tn_comm_drop(comm);
}

START_TEST(one_two_and_four_ranks_sum_to_the_same_bits)
{
    for (int size = 1; size <= 4; size *= 2)
        run_ranks(four_shards, size, false);
    run_ranks(four_shards, 4, true);
}
END_TEST

/* Narrow floats are added in float32 and rounded once. 256 + 1 is 256 in bfloat16. */
static void narrow_sums(int rank, int size)
{
    TN_SCOPE;
    static const float first[4] = { 256, 1, 1, 0 }, second[4] = { 2048, 1, 1, 0 };
    tn_comm *comm = join(rank, size);
    tn_tensor *b = tn_cast(tn_tensor_from(&first[rank], TN_F32, TN_SHAPE(1)), TN_BF16);
    tn_tensor *h = tn_cast(tn_tensor_from(&second[rank], TN_F32, TN_SHAPE(1)), TN_F16);
    static const float odd[4] = { NAN, 3, -1, 2 };
    tn_tensor *n = tn_tensor_from(&odd[rank], TN_F32, TN_SHAPE(1)), *m = tn_clone(n);

    need_ok(tn_comm_all_reduce(comm, b, TN_REDUCTION_SUM));
    need(tn_item(b) == 258);
    need_ok(tn_comm_all_reduce(comm, h, TN_REDUCTION_SUM));
    need(tn_item(h) == 2050);
    need_ok(tn_comm_all_reduce(comm, n, TN_REDUCTION_MIN));
    need_ok(tn_comm_all_reduce(comm, m, TN_REDUCTION_MAX));
    need(tn_item(n) != tn_item(n) && tn_item(m) != tn_item(m));
    tn_comm_drop(comm);
}

START_TEST(narrow_floats_are_rounded_once_and_nan_wins)
{
    run_ranks(narrow_sums, 4, false);
}
END_TEST

/* ---- several groups -------------------------------------------------------------------------- */

static void groups_in_turn(int rank, int size)
{
    tn_comm *all[3];

    for (int g = 0; g < 3; g++)
        all[g] = join(rank, size); /* the same address again */
    for (int g = 0; g < 3; g++) {
        TN_SCOPE;
        tn_tensor *x = ramp(rank + g, 0, 5, TN_I32);
        int64_t *got, most = 0;

        for (int r = 0; r < size; r++)
            most = value_of(r + g, 0, TN_I32) > most ? value_of(r + g, 0, TN_I32) : most;
        need_ok(tn_comm_all_reduce(all[g], x, TN_REDUCTION_MAX));
        got = numbers_of(x);
        need(got[0] == most);
        free(got);
    }
    for (int g = 0; g < 3; g++)
        tn_comm_drop(all[g]);
    tn_comm_drop(join(rank, size));
}

START_TEST(groups_may_follow_each_other_and_be_open_together)
{
    run_ranks(groups_in_turn, 3, false);
    run_ranks(groups_in_turn, 2, true);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { all_exchanges_give_the_documented_values,
                                   one_two_and_four_ranks_sum_to_the_same_bits,
                                   narrow_floats_are_rounded_once_and_nan_wins,
                                   groups_may_follow_each_other_and_be_open_together, NULL };

    return suite_run("local", tests);
}

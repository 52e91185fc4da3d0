/* SPDX-License-Identifier: MIT
 *
 * Sums of contiguous elements of type T. */

typedef T NAME(addend)(T x);
typedef T NAME(block)(int64_t n, const T *x);

TN__INTO_LOOPS T NAME(plain)(T x)
{
    return x;
}

TN__INTO_LOOPS T NAME(but_nan)(T x)
{
    return x == x ? x : 0;
}

/* Returns the sum of at most 4096 elements: 64 running sums of float32 (32 of float64), which are
 * then added up in a tree. Each running sum has at most 64 elements (float64: 128), for precision.
 * Loop bounds are constants, so that the sums stay in registers. */
TN__INTO_LOOPS T NAME(sum_block_of)(int64_t n, const T *x, NAME(addend) * of)
{
    enum { LANES = 256 / sizeof(T) };
    T acc[LANES] = { 0 }, rest = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            acc[j] += of(x[i + j]);
    for (int j = 0; j < LANES / 2; j++)
        acc[j] += acc[j + LANES / 2];
    for (int j = 0; j < LANES / 4; j++)
        acc[j] += acc[j + LANES / 4];
    for (; i + LANES / 4 <= n; i += LANES / 4)
        for (int j = 0; j < LANES / 4; j++)
            acc[j] += of(x[i + j]);
    for (; i < n; i++)
        rest += of(x[i]);
    for (int j = 0; j < LANES / 8; j++)
        acc[j] += acc[j + LANES / 8];
    for (int j = 0; j < LANES / 16; j++)
        acc[j] += acc[j + LANES / 16];
    for (int j = 1; j < LANES / 16; j++)
        rest += acc[j];
    return acc[0] + rest;
}

static T NAME(sum_block)(int64_t n, const T *x)
{
    return NAME(sum_block_of)(n, x, NAME(plain));
}

static inline T NAME(nansum_block)(int64_t n, const T *x)
{
    return NAME(sum_block_of)(n, x, NAME(but_nan));
}

/* Returns the sum of n elements. The sums of blocks of 4096 are added in float64; their rounding
 * errors are added up in `rest`, which corrects the result (Neumaier's summation). */
TN__INTO_LOOPS double NAME(sum_of)(int64_t n, const T *x, NAME(block) * block_of)
{
    double sum = 0, rest = 0;
    if (n <= 4096)
        return block_of(n, x);
    for (int64_t at = 0; at < n; at += 4096) {
        double block = block_of(n - at < 4096 ? n - at : 4096, x + at), next = sum + block;
        double large = __builtin_fabs(sum) >= __builtin_fabs(block) ? sum : block;
        double small = __builtin_fabs(sum) >= __builtin_fabs(block) ? block : sum;
        rest += (large - next) + small;
        sum = next;
    }
    double all = sum + rest;
    return all - all == 0 ? all : sum; /* infinite or NaN: `rest` is not valid */
}

static double NAME(sum)(int64_t n, const T *x)
{
    return NAME(sum_of)(n, x, NAME(sum_block));
}

static inline double NAME(nansum)(int64_t n, const T *x)
{
    return NAME(sum_of)(n, x, NAME(nansum_block));
}

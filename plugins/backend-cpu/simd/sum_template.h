/* SPDX-License-Identifier: MIT
 *
 * Sums of contiguous elements of type T. */

/* Returns the sum of at most 4096 elements: 64 running sums of float32 (32 of float64), which are
 * then added up in a tree. Each running sum has at most 64 elements (float64: 128), for precision.
 * Loop bounds are constants, so that the sums stay in registers. */
static T NAME(sum_block)(int64_t n, const T *x)
{
    enum { LANES = 256 / sizeof(T) };
    T acc[LANES] = { 0 }, rest = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            acc[j] += x[i + j];
    for (int j = 0; j < LANES / 2; j++)
        acc[j] += acc[j + LANES / 2];
    for (int j = 0; j < LANES / 4; j++)
        acc[j] += acc[j + LANES / 4];
    for (; i + LANES / 4 <= n; i += LANES / 4)
        for (int j = 0; j < LANES / 4; j++)
            acc[j] += x[i + j];
    for (; i < n; i++)
        rest += x[i];
    for (int j = 0; j < LANES / 8; j++)
        acc[j] += acc[j + LANES / 8];
    for (int j = 0; j < LANES / 16; j++)
        acc[j] += acc[j + LANES / 16];
    for (int j = 1; j < LANES / 16; j++)
        rest += acc[j];
    return acc[0] + rest;
}

/* Returns the sum of n elements. The sums of blocks of 4096 are added in float64; their rounding
 * errors are added up in `rest`, which corrects the result (Neumaier's summation). */
static double NAME(sum)(int64_t n, const T *x)
{
    double sum = 0, rest = 0;
    if (n <= 4096)
        return NAME(sum_block)(n, x);
    for (int64_t at = 0; at < n; at += 4096) {
        double block = NAME(sum_block)(n - at < 4096 ? n - at : 4096, x + at), next = sum + block;
        double large = __builtin_fabs(sum) >= __builtin_fabs(block) ? sum : block;
        double small = __builtin_fabs(sum) >= __builtin_fabs(block) ? block : sum;
        rest += (large - next) + small;
        sum = next;
    }
    double all = sum + rest;
    return all - all == 0 ? all : sum; /* infinite or NaN: `rest` is not valid */
}

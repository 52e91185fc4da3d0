/* SPDX-License-Identifier: MIT
 *
 * Dot products and sums of scaled rows for type T. simd.h describes the functions. */

static T NAME(dot)(int64_t n, const T *a, const T *b)
{
    enum { LANES = 64 };
    T acc[LANES] = { 0 }, rest = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            acc[j] += a[i + j] * b[i + j];
    for (int j = 0; j < LANES / 2; j++)
        acc[j] += acc[j + LANES / 2];
    for (int j = 0; j < LANES / 4; j++)
        acc[j] += acc[j + LANES / 4];
    for (; i + LANES / 4 <= n; i += LANES / 4)
        for (int j = 0; j < LANES / 4; j++)
            acc[j] += a[i + j] * b[i + j];
    for (; i < n; i++)
        rest += a[i] * b[i];
    for (int j = 0; j < LANES / 8; j++)
        acc[j] += acc[j + LANES / 8];
    for (int j = 0; j < LANES / 16; j++)
        acc[j] += acc[j + LANES / 16];
    for (int j = 1; j < LANES / 16; j++)
        rest += acc[j];
    return acc[0] + rest;
}

static void NAME(axpy)(int64_t n, T a, const T *x, T *y)
{
    TN__IVDEP for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

static void NAME(axpy4)(int64_t n, const T *a, const T *x, int64_t step, T *y)
{
    const T a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    const T *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step;
    TN__IVDEP for (int64_t i = 0; i < n; i++)
        y[i] = (y[i] + a0 * x[i] + a1 * x1[i]) + (a2 * x2[i] + a3 * x3[i]);
}

static void NAME(weigh_rows)(int64_t n, int64_t count, const void *const *x, void *const *w,
                             const void *bias, void *y)
{
    enum { W = TILE_BYTES / (int)sizeof(T) };
    const T *b = bias;
    T *to = y;
    int64_t j = 0;
    for (; j + W <= n; j += W) {
        NAME(tile_v) sum = { 0 };
        if (b)
            sum = *(const NAME(tile_v) *)(const void *)(b + j);
        for (int64_t i = 0; i < count; i++)
            sum += *(const NAME(tile_v) *)(const void *)((const T *)x[i] + j) *
                   *(const NAME(tile_v) *)(const void *)((const T *)w[i] + j);
        *(NAME(tile_v) *)(void *)(to + j) = sum;
    }
    for (; j < n; j++) {
        T sum = b ? b[j] : 0;
        for (int64_t i = 0; i < count; i++)
            sum += ((const T *)x[i])[j] * ((const T *)w[i])[j];
        to[j] = sum;
    }
}

static void NAME(spread_row)(int64_t n, int64_t count, const void *const *x, const void *g,
                             void *const *w)
{
    enum { W = TILE_BYTES / (int)sizeof(T) };
    const T *by = g;
    int64_t j = 0;
    for (; j + W <= n; j += W) {
        const NAME(tile_v) here = *(const NAME(tile_v) *)(const void *)(by + j);
        for (int64_t i = 0; i < count; i++)
            *(NAME(tile_v) *)(void *)((T *)w[i] + j) +=
                *(const NAME(tile_v) *)(const void *)((const T *)x[i] + j) * here;
    }
    for (; j < n; j++)
        for (int64_t i = 0; i < count; i++)
            ((T *)w[i])[j] += ((const T *)x[i])[j] * by[j];
}

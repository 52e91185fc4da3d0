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
    int64_t i = 0;
    /* Long rows come from memory: they are prefetched this many elements ahead. */
    enum { AHEAD = 1024 / sizeof(T), LINE = 64 / sizeof(T) };
    for (; i + 2 * AHEAD <= n; i += LINE) {
        __builtin_prefetch(x + i + AHEAD);
        __builtin_prefetch(x1 + i + AHEAD);
        __builtin_prefetch(x2 + i + AHEAD);
        __builtin_prefetch(x3 + i + AHEAD);
        TN__IVDEP for (int64_t j = i; j < i + LINE; j++)
            y[j] = (y[j] + a0 * x[j] + a1 * x1[j]) + (a2 * x2[j] + a3 * x3[j]);
    }
    TN__IVDEP for (; i < n; i++) y[i] = (y[i] + a0 * x[i] + a1 * x1[i]) + (a2 * x2[i] + a3 * x3[i]);
}

static void NAME(weigh_rows)(int64_t n, int64_t count, const void *const *x, void *const *w,
                             const void *bias, const struct tn__limits *limits, void *y)
{
    enum { W = TILE_BYTES / (int)sizeof(T) };
    const T *b = bias, low = (T)limits->low, high = (T)limits->high;
    T *to = y;
    int64_t j = 0;
    for (; j + W <= n; j += W) {
        NAME(tile_v) sum = { 0 };
        if (b)
            sum = *(const NAME(tile_v) *)(const void *)(b + j);
        for (int64_t i = 0; i < count; i++)
            sum += *(const NAME(tile_v) *)(const void *)((const T *)x[i] + j) *
                   *(const NAME(tile_v) *)(const void *)((const T *)w[i] + j);
        *(NAME(tile_v) *)(void *)(to + j) = NAME(limited)(sum, low, high);
    }
    for (; j < n; j++) {
        T sum = b ? b[j] : 0;
        for (int64_t i = 0; i < count; i++)
            sum += ((const T *)x[i])[j] * ((const T *)w[i])[j];
        sum = sum < low ? low : sum;
        to[j] = sum > high ? high : sum;
    }
}

#define LOAD(at) (*(const NAME(tile_v) *)(const void *)(at))

/* `three`: a row has three taps, as far apart as the pixels, so that six elements of x are enough
 * for four pixels. */
TN__INTO_LOOPS void NAME(weigh_vectors)(const struct tn__pixels *f, int64_t j, const int pixels,
                                        const bool three)
{
    const int64_t pixel = f->pixel, tap = f->tap, w_tap = f->w_tap, taps = f->taps;
    NAME(tile_v) sum[TN__PIXELS] = { { 0 } };
    T *y = (T *)f->y + j;
    if (f->bias)
#pragma GCC unroll 4
        for (int p = 0; p < pixels; p++)
            sum[p] = LOAD((const T *)f->bias + j);
    for (int64_t r = 0; r < f->rows; r++) {
        const T *x = (const T *)f->x[r] + j, *w = (const T *)f->w[r] + j;
        if (three) {
            NAME(tile_v) seen[TN__PIXELS + 2];
#pragma GCC unroll 6
            for (int i = 0; i < pixels + 2; i++)
                seen[i] = LOAD(x + i * pixel);
#pragma GCC unroll 3
            for (int k = 0; k < 3; k++)
#pragma GCC unroll 4
                for (int p = 0; p < pixels; p++)
                    sum[p] += seen[p + k] * LOAD(w + k * w_tap);
            continue;
        }
        for (int64_t k = 0; k < taps; k++, x += tap, w += w_tap)
#pragma GCC unroll 4
            for (int p = 0; p < pixels; p++)
                sum[p] += LOAD(x + p * pixel) * LOAD(w);
    }
#pragma GCC unroll 4
    for (int p = 0; p < pixels; p++)
        *(NAME(tile_v) *)(void *)(y + p * f->y_step) = NAME(limited)(sum[p], (T)f->limits->low,
                                                                     (T)f->limits->high);
}
#undef LOAD

static void NAME(weigh_pixels)(const struct tn__pixels *f)
{
    enum { W = TILE_BYTES / (int)sizeof(T) };
    const T low = (T)f->limits->low, high = (T)f->limits->high;
    int64_t j = 0;
    if (f->pixels == 4 && f->taps == 3 && f->tap == f->pixel)
        for (; j + W <= f->n; j += W)
            NAME(weigh_vectors)(f, j, 4, true);
    else if (f->pixels == 4)
        for (; j + W <= f->n; j += W)
            NAME(weigh_vectors)(f, j, 4, false);
    else if (f->pixels == 3)
        for (; j + W <= f->n; j += W)
            NAME(weigh_vectors)(f, j, 3, false);
    else if (f->pixels == 2)
        for (; j + W <= f->n; j += W)
            NAME(weigh_vectors)(f, j, 2, false);
    else
        for (; j + W <= f->n; j += W)
            NAME(weigh_vectors)(f, j, 1, false);
    for (; j < f->n; j++)
        for (int p = 0; p < f->pixels; p++) {
            T sum = f->bias ? ((const T *)f->bias)[j] : 0;
            for (int64_t r = 0; r < f->rows; r++)
                for (int64_t k = 0; k < f->taps; k++)
                    sum += ((const T *)f->x[r])[j + p * f->pixel + k * f->tap] *
                           ((const T *)f->w[r])[j + k * f->w_tap];
            sum = sum < low ? low : sum;
            ((T *)f->y)[j + p * f->y_step] = sum > high ? high : sum;
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

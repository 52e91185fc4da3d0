/* SPDX-License-Identifier: MIT
 *
 * Softmax, its gradient and the rows of attention for type T. simd.h describes the functions. */

/* Returns the largest element, or NaN if an element is NaN. */
static T NAME(max)(int64_t n, const T *x)
{
    enum { LANES = 16 };
    T best[LANES];
    int32_t odd[LANES] = { 0 };
    for (int j = 0; j < LANES; j++)
        best[j] = x[0];
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            T v = x[i + j];
            best[j] = v > best[j] ? v : best[j];
            odd[j] |= v != v;
        }
    for (int j = 0; i < n; i++, j++) {
        best[j] = x[i] > best[j] ? x[i] : best[j];
        odd[j] |= x[i] != x[i];
    }
    T all = best[0];
    int32_t any = x[0] != x[0];
    for (int j = 0; j < LANES; j++) {
        all = best[j] > all ? best[j] : all;
        any |= odd[j];
    }
    return any ? (T)__builtin_nan("") : all;
}

static void NAME(softmax)(int64_t n, const T *x, T *y)
{
    T top = NAME(max)(n, x);
    TN__EACH y[i] = NAME(EXP)(x[i] - top);
    T scale = (T)(1 / NAME(sum)(n, y));
    TN__EACH y[i] *= scale;
}

static void NAME(log_softmax)(int64_t n, const T *x, T *y)
{
    T top = NAME(max)(n, x);
    TN__EACH y[i] = NAME(EXP)(x[i] - top);
    T norm = (T)log(NAME(sum)(n, y));
    TN__EACH y[i] = (x[i] - top) - norm;
}

static void NAME(log_softmax_grad)(int64_t n, const T *gy, const T *y, T *gx)
{
    T sum = (T)NAME(sum)(n, gy);
    TN__EACH gx[i] = gy[i] - NAME(EXP)(y[i]) * sum;
}

/* gx = y * (gy - sum(gy * y)), computed as gy * y - y * sum(gy * y), because gx has the products
 * gy * y already. */
static void NAME(softmax_grad)(int64_t n, const T *gy, const T *y, T *gx)
{
    TN__EACH gx[i] = gy[i] * y[i];
    T sum = (T)NAME(sum)(n, gx);
    TN__EACH gx[i] = gx[i] - y[i] * sum;
}

/* Computes n columns of `rows` elements. Sums of IN_TYPE elements of a column are accumulated in T,
 * and these sums are added in float64. */
static void NAME(softmax_columns)(int64_t rows, int64_t n, const char *xp, int64_t sx, char *yp,
                                  int64_t sy, bool logarithm)
{
    T top[NEIGHBOURS], sum[NEIGHBOURS], spare[NEIGHBOURS];
    double all[NEIGHBOURS] = { 0 };
    TN__EACH top[i] = (T)-INFINITY;
    for (int64_t k = 0; k < rows; k++) {
        const T *x = LINE(const T, xp, k, sx);
        TN__EACH top[i] = ((x[i] > top[i]) | (x[i] != x[i])) ? x[i] : top[i];
    }
    for (int64_t k = 0; k < rows;) {
        int64_t end = rows - k < IN_TYPE ? rows : k + IN_TYPE;
        TN__EACH sum[i] = 0;
        for (; k < end; k++) {
            const T *x = LINE(const T, xp, k, sx);
            T *y = logarithm ? spare : LINE(T, yp, k, sy);
            TN__EACH
            {
                T e = NAME(EXP)(x[i] - top[i]);
                y[i] = e;
                sum[i] += e;
            }
        }
        TN__EACH all[i] += (double)sum[i];
    }
    if (logarithm) {
        TN__EACH sum[i] = (T)tn__log64(all[i]);
        for (int64_t k = 0; k < rows; k++) {
            const T *x = LINE(const T, xp, k, sx);
            T *y = LINE(T, yp, k, sy);
            TN__EACH y[i] = (x[i] - top[i]) - sum[i];
        }
    } else {
        TN__EACH sum[i] = (T)(1 / all[i]);
        for (int64_t k = 0; k < rows; k++) {
            T *y = LINE(T, yp, k, sy);
            TN__EACH y[i] *= sum[i];
        }
    }
}

static void NAME(softmax_grad_columns)(int64_t rows, int64_t n, const char *gp, int64_t sg,
                                       const char *yp, int64_t sy, char *xp, int64_t sx,
                                       bool logarithm)
{
    T sum[NEIGHBOURS];
    double all[NEIGHBOURS] = { 0 };
    for (int64_t k = 0; k < rows;) {
        int64_t end = rows - k < IN_TYPE ? rows : k + IN_TYPE;
        TN__EACH sum[i] = 0;
        for (; k < end; k++) {
            const T *g = LINE(const T, gp, k, sg), *y = LINE(const T, yp, k, sy);
            if (logarithm)
                TN__EACH sum[i] += g[i];
            else
                TN__EACH sum[i] += g[i] * y[i];
        }
        TN__EACH all[i] += (double)sum[i];
    }
    TN__EACH sum[i] = (T)all[i];
    for (int64_t k = 0; k < rows; k++) {
        const T *g = LINE(const T, gp, k, sg), *y = LINE(const T, yp, k, sy);
        T *gx = LINE(T, xp, k, sx);
        if (logarithm)
            TN__EACH gx[i] = g[i] - NAME(EXP)(y[i]) * sum[i];
        else
            TN__EACH gx[i] = (g[i] - sum[i]) * y[i];
    }
}

/* ---- rows of attention scores ---------------------------------------------------------------- */
static double NAME(attend)(int64_t n, double top, T *x)
{
    const T high = (T)top;
    TN__EACH x[i] = NAME(EXP)(x[i] - high);
    return NAME(sum)(n, x);
}

static void NAME(attend_grad)(int64_t n, double norm, double less, T *x, T *g)
{
    const T high = (T)norm, mean = (T)less;
    TN__EACH x[i] = NAME(EXP)(x[i] - high);
    TN__EACH g[i] = x[i] * (g[i] - mean);
}

/* SPDX-License-Identifier: MIT
 *
 * The two steps of the gradient of cumprod along `lines` contiguous lines at once, which is LINES
 * or 1. op/scan_grad.c explains them. Accumulates in float64, in `state`. */

/* Replaces each element of the lines `to` by the product of the elements of x before it. */
TN__INTO_LOOPS void NAME(products)(int64_t n, const char *const *from, char *const *to,
                                   double *state, const int lines)
{
    double all[LINES];
    const T *x[LINES];
    T *y[LINES];
    for (int k = 0; k < lines; k++) {
        all[k] = state[k];
        x[k] = (const T *)(const void *)from[k];
        y[k] = (T *)(void *)to[k];
    }
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < lines; k++) {
            y[k][i] = (T)all[k];
            all[k] = all[k] == 0 ? 0 : all[k] * (double)x[k][i];
        }
    for (int k = 0; k < lines; k++)
        state[k] = all[k];
}

/* Multiplies the lines `to` by the sums, from the last element to the first. */
TN__INTO_LOOPS void NAME(sums)(int64_t n, const char *const *gradient, const char *const *from,
                               char *const *to, double *state, const int lines)
{
    double rest[LINES];
    const T *gy[LINES], *x[LINES];
    T *y[LINES];
    for (int k = 0; k < lines; k++) {
        rest[k] = state[k];
        gy[k] = (const T *)(const void *)gradient[k];
        x[k] = (const T *)(const void *)from[k];
        y[k] = (T *)(void *)to[k];
    }
    for (int64_t i = n - 1; i >= 0; i--)
        for (int k = 0; k < lines; k++) {
            const double factor = (double)x[k][i], before = (double)y[k][i];
            const double sum = (double)gy[k][i] + rest[k];
            rest[k] = factor == 0 ? 0 : factor * sum;
            y[k][i] = before == 0 ? 0 : (T)(before * sum);
        }
    for (int k = 0; k < lines; k++)
        state[k] = rest[k];
}

static void NAME(products_together)(int64_t n, const char *const *from, char *const *to,
                                    double *state)
{
    NAME(products)(n, from, to, state, LINES);
}

static void NAME(sums_together)(int64_t n, const char *const *gradient, const char *const *from,
                                char *const *to, double *state)
{
    NAME(sums)(n, gradient, from, to, state, LINES);
}

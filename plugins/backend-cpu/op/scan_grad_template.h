/* SPDX-License-Identifier: MIT
 *
 * The two steps of the gradient of cumprod along `lines` contiguous lines at once, which is LINES
 * or 1. op/scan_grad.c explains them. Accumulates in float64, in `state`. `before` has `lines`
 * numbers for each element. */

/* Writes the product of the elements of x before each element. */
TN__INTO_LOOPS void NAME(products)(int64_t n, const char *const *from, double *before,
                                   double *state, const int lines)
{
    double all[LINES];
    const T *x[LINES];
    for (int k = 0; k < lines; k++) {
        all[k] = state[k];
        x[k] = (const T *)(const void *)from[k];
    }
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < lines; k++) {
            before[i * lines + k] = all[k];
            all[k] = all[k] == 0 ? 0 : all[k] * (double)x[k][i];
        }
    for (int k = 0; k < lines; k++)
        state[k] = all[k];
}

/* Writes the products times the sums into the lines `to`, from the last element to the first. */
TN__INTO_LOOPS void NAME(sums)(int64_t n, const char *const *gradient, const char *const *from,
                               const double *before, char *const *to, double *state,
                               const int lines)
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
            const double factor = (double)x[k][i], product = before[i * lines + k];
            const double sum = (double)gy[k][i] + rest[k];
            rest[k] = factor == 0 ? 0 : factor * sum;
            y[k][i] = product == 0 ? 0 : (T)(product * sum);
        }
    for (int k = 0; k < lines; k++)
        state[k] = rest[k];
}

static void NAME(products_together)(int64_t n, const char *const *from, double *before,
                                    double *state)
{
    NAME(products)(n, from, before, state, LINES);
}

static void NAME(sums_together)(int64_t n, const char *const *gradient, const char *const *from,
                                const double *before, char *const *to, double *state)
{
    NAME(sums)(n, gradient, from, before, to, state, LINES);
}

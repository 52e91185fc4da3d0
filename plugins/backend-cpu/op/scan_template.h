/* SPDX-License-Identifier: MIT
 *
 * Running sums and products along LINES lines at once. A line has the elements of type T along the
 * scanned dimension; here it is contiguous. Accumulates in float64, in `state`. */

TN__INTO_LOOPS void NAME(scan_lines)(int64_t n, int64_t step, const char *const *from,
                                     char *const *to, double *state, const bool product)
{
    double all[LINES];
    const T *x[LINES];
    T *y[LINES];
    for (int k = 0; k < LINES; k++) {
        all[k] = state[k];
        x[k] = (const T *)(const void *)from[k];
        y[k] = (T *)(void *)to[k];
    }
    for (int64_t i = 0, at = step > 0 ? 0 : n - 1; i < n; i++, at += step)
        for (int k = 0; k < LINES; k++) {
            all[k] = product ? all[k] * (double)x[k][at] : all[k] + (double)x[k][at];
            y[k][at] = (T)all[k];
        }
    for (int k = 0; k < LINES; k++)
        state[k] = all[k];
}

static void NAME(add_lines)(int64_t n, int64_t step, const char *const *from, char *const *to,
                            double *state)
{
    NAME(scan_lines)(n, step, from, to, state, false);
}

static void NAME(multiply_lines)(int64_t n, int64_t step, const char *const *from, char *const *to,
                                 double *state)
{
    NAME(scan_lines)(n, step, from, to, state, true);
}

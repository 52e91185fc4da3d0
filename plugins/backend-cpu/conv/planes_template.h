/* SPDX-License-Identifier: MIT
 *
 * Lines of a plane for type T. */

/* Sets n elements to `value`. */
static void NAME(fill)(int64_t n, double value, void *to)
{
    T *y = to, x = (T)value;
    for (int64_t i = 0; i < n; i++)
        y[i] = x;
}

/* Copies n elements, each `step` elements after the one before. */
static void NAME(pick)(int64_t n, int64_t step, const void *from, void *to)
{
    const T *x = from;
    T *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i * step];
}

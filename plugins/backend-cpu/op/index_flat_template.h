/* SPDX-License-Identifier: MIT
 *
 * take and put for elements of type T. Both return the number of indices before the first that is
 * out of bounds, or n. Negative indices count from the end. */

static int64_t NAME(take)(int64_t n, int64_t size, const char *from, const int64_t *index,
                          char *other)
{
    const T *x = (const T *)(const void *)from;
    T *y = (T *)(void *)other;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = index[i] + (index[i] < 0 ? size : 0);
        if ((uint64_t)at >= (uint64_t)size)
            return i;
        y[i] = x[at];
    }
    return n;
}

static int64_t NAME(put)(int64_t n, int64_t size, const char *to, const int64_t *index, char *other)
{
    T *y = (T *)(void *)(uintptr_t)to;
    const T *x = (const T *)(const void *)other;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = index[i] + (index[i] < 0 ? size : 0);
        if ((uint64_t)at >= (uint64_t)size)
            return i;
        y[at] = x[i];
    }
    return n;
}

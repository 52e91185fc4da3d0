/* SPDX-License-Identifier: MIT
 *
 * take, put and masked_scatter for elements of type T. The first two return the number of indices
 * before the first that is out of bounds, or n. Negative indices count from the end. */

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

/* Writes n elements: those of `src`, which has `size` > 0, where the mask is true, else those of
 * x. */
static void NAME(choose)(int64_t n, const uint8_t *mask, const char *from, const char *src,
                         int64_t size, char *to)
{
    const T *x = (const T *)(const void *)from, *next = (const T *)(const void *)src;
    T *y = (T *)(void *)to;
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t is = mask[i] != 0;
        const T all = (T)(0 - is), other = next[k < size ? k : size - 1];
        y[i] = (T)((other & all) | (x[i] & (T)~all)); /* no branch, which is hard to predict */
        k += (int64_t)is;
    }
}

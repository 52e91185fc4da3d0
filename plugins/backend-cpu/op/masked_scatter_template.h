/* SPDX-License-Identifier: MIT
 *
 * masked_scatter for elements of type T. */

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

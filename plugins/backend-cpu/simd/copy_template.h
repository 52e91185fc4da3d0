/* SPDX-License-Identifier: MIT
 *
 * Copies of contiguous elements of one size. */

static void NAME(fill)(int64_t n, char *to, const void *value)
{
    T x, *y = (T *)(void *)to;
    memcpy(&x, value, sizeof x);
    TN__IVDEP for (int64_t i = 0; i < n; i++) y[i] = x;
}

/* `from` is the last element, which comes first. */
static void NAME(reverse)(int64_t n, char *to, const char *from)
{
    T *y = (T *)(void *)to;
    const T *x = (const T *)(const void *)from;
    TN__IVDEP for (int64_t i = 0; i < n; i++) y[i] = x[-i];
}

static void NAME(gather)(int64_t n, char *to, const char *from, const int64_t *at)
{
    T *y = (T *)(void *)to;
    const T *x = (const T *)(const void *)from;
    TN__IVDEP for (int64_t i = 0; i < n; i++) y[i] = x[at[i]];
}

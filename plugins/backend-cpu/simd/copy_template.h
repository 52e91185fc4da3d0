/* SPDX-License-Identifier: MIT
 *
 * Loops that copy contiguous elements of type T. */

static void NAME(fill)(int64_t n, char *to, const void *value)
{
    T x, *y = (T *)(void *)to;
    memcpy(&x, value, sizeof x);
    TN__IVDEP for (int64_t i = 0; i < n; i++) y[i] = x;
}

/* Copies n elements in reverse order. `from` is the last element, which is written first. */
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

static void NAME(signs)(int64_t n, char *y, const char *from)
{
    const T *x = (const T *)(const void *)from;
    TN__IVDEP for (int64_t i = 0; i < n; i++) y[i] = (char)(x[i] >> (8 * sizeof(T) - 1));
}

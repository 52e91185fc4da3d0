/* SPDX-License-Identifier: MIT
 *
 * Maxima of rows of elements of type T, with indices of type NAME(index). */

/* Whether v with index `here` is the maximum, not b with index `old`: NaN is larger than any
 * number, and of equal elements, or two NaN, the one with the smaller index is the maximum. */
TN__INTO_LOOPS bool NAME(is_more)(T v, NAME(index) here, T b, NAME(index) old)
{
    bool same = (v == b) | ((v != v) & (b != b));
    return (same & (here < old)) | (!same & !(v <= b) & (b == b));
}

static void NAME(first)(int64_t n, const void *from, int64_t at, void *best, void *place)
{
    const T *x = from;
    T *y = best;
    NAME(index) *to = place, here = (NAME(index))at;
    TN__EACH y[i] = x[i], to[i] = here;
}

/* `at`, the index of all elements of x, is larger than the indices in `place`. */
static void NAME(next)(int64_t n, const void *from, int64_t at, void *best, void *place)
{
    const T *x = from;
    T *y = best;
    NAME(index) *to = place, here = (NAME(index))at;
    TN__EACH
    {
        T v = x[i], b = y[i];
        NAME(index) old = to[i];
        bool more = !(v <= b) & (b == b);
        y[i] = more ? v : b;
        to[i] = more ? here : old;
    }
}

static void NAME(flatten)(int64_t n, int64_t width, const void *columns, void *place)
{
    const NAME(index) *column = columns, wide = (NAME(index))width;
    NAME(index) *to = place;
    TN__EACH to[i] = to[i] * wide + column[i];
}

static void NAME(larger)(int64_t n, const void *left, const void *left_place, const void *right,
                         const void *right_place, void *best, void *place)
{
    const T *a = left, *b = right;
    const NAME(index) *at = left_place, *bt = right_place;
    T *y = best;
    NAME(index) *to = place;
    TN__EACH
    {
        T v = b[i], u = a[i];
        NAME(index) here = bt[i], old = at[i];
        bool more = NAME(is_more)(v, here, u, old);
        y[i] = more ? v : u;
        to[i] = more ? here : old;
    }
}

/* Writes the larger element of each pair 2 i, 2 i + 1, and its index. */
static void NAME(pairs)(int64_t n, const void *from, const void *from_place, void *to,
                        int64_t *where)
{
    const T *x = from;
    const NAME(index) *at = from_place;
    T *y = to;
    TN__EACH
    {
        T u = x[2 * i], v = x[2 * i + 1];
        NAME(index) old = at[2 * i], here = at[2 * i + 1];
        bool more = NAME(is_more)(v, here, u, old);
        y[i] = more ? v : u;
        where[i] = more ? here : old;
    }
}

/* Copies a block of BLOCK elements and indices. */
TN__INTO_LOOPS void NAME(block)(const T *x, const NAME(index) * at, T *y, int64_t *where)
{
    for (int k = 0; k < BLOCK; k++)
        y[k] = x[k];
    for (int k = 0; k < BLOCK; k++)
        where[k] = at[k];
}

/* A group is copied in blocks. The last block may be longer than the rest of the group: the next
 * groups overwrite what was written too much. */
static void NAME(store)(int64_t groups, int64_t n, int64_t step, const void *best,
                        const void *place, void *to, int64_t *where)
{
    const T *x = best;
    const NAME(index) *at = place;
    T *y = to;
    int64_t all = groups * n;
    if (n == 1) {
        for (int64_t i = 0; i < groups; i++) {
            y[i] = x[i * step];
            where[i] = at[i * step];
        }
        return;
    }
    for (int64_t i = 0, end = n; i < groups; i++, end += n, x += step, at += step) {
        int64_t k = 0, out = end - n;
        for (; k < n && out + k + BLOCK <= all; k += BLOCK)
            NAME(block)(x + k, at + k, y + out + k, where + out + k);
        for (; k < n; k++) {
            y[out + k] = x[k];
            where[out + k] = at[k];
        }
    }
}

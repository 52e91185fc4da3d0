/* SPDX-License-Identifier: MIT
 *
 * The loop of functions with a fast and a slow version, for the float type T. A block of numbers is
 * computed by the fast version. If the block has numbers for which it is not suitable, these are
 * computed again by the slow version. A result does not depend on the other numbers of the block. y
 * may be equal to a or b: then results go to a buffer first, because the slow version still needs
 * the operands. */

typedef T NAME(way)(T a, T b);

/* Returns n elements as contiguous memory: in place, or copied to `to`. */
static inline const T *NAME(contiguous)(int64_t n, const char *from, int64_t stride, T *to)
{
    if (stride == (int64_t)sizeof *to)
        return (const T *)(const void *)from;
    for (int64_t i = 0; i < n; i++)
        to[i] = *(const T *)(const void *)(from + i * stride);
    return to;
}

TN__INTO_LOOPS void NAME(guarded_loop)(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa,
                                       const char *bp, int64_t sb, NAME(watch) * watch,
                                       NAME(odd) * is_odd, const NAME(seen) limit, NAME(way) * near,
                                       NAME(way) * far)
{
    enum { BLOCK = 4096 / sizeof(T) };
    const bool direct = sy == (int64_t)sizeof(T) && yp != ap && yp != bp;
    T xa[BLOCK], xb[BLOCK], results[BLOCK];
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t size = n - at < BLOCK ? n - at : BLOCK;
        const T *a = NAME(contiguous)(size, ap + at * sa, sa, xa);
        const T *b = bp == ap && sb == sa ? a : NAME(contiguous)(size, bp + at * sb, sb, xb);
        char *to = yp + at * sy;
        T *y = direct ? (T *)(void *)to : results;
        NAME(seen) seen = 0;
        TN__IVDEP for (int64_t i = 0; i < size; i++)
        {
            seen = watch(seen, a[i], b[i]);
            y[i] = near(a[i], b[i]);
        }
        for (int64_t i = 0; seen > limit && i < size; i++)
            if (is_odd(a[i], b[i]))
                y[i] = far(a[i], b[i]);
        if (!direct && sy == (int64_t)sizeof *y)
            memcpy(to, y, (size_t)size * sizeof *y);
        else if (!direct)
            for (int64_t i = 0; i < size; i++)
                *(T *)(void *)(to + i * sy) = y[i];
    }
}

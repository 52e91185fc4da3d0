/* SPDX-License-Identifier: MIT
 *
 * The loops of reduce.c for one type. REDUCE_TYPE is the type of the elements, REDUCE_NAME(x) the
 * name of a function. With REDUCE_WIDE, the type that products are computed in, the file defines
 * sum and product; with REDUCE_NAN(x), which tells whether x is NaN, min and max. */

#ifdef REDUCE_WIDE
static void REDUCE_NAME(sum)(void *to, const void *from, size_t n)
{
    REDUCE_TYPE *restrict a = to;
    const REDUCE_TYPE *restrict b = from;

    for (size_t i = 0; i < n; i++)
        a[i] = (REDUCE_TYPE)(a[i] + b[i]);
}

static void REDUCE_NAME(product)(void *to, const void *from, size_t n)
{
    REDUCE_TYPE *restrict a = to;
    const REDUCE_TYPE *restrict b = from;

    for (size_t i = 0; i < n; i++)
        a[i] = (REDUCE_TYPE)((REDUCE_WIDE)a[i] * b[i]);
}
#endif

#ifdef REDUCE_NAN
static void REDUCE_NAME(min)(void *to, const void *from, size_t n)
{
    REDUCE_TYPE *restrict a = to;
    const REDUCE_TYPE *restrict b = from;

    for (size_t i = 0; i < n; i++)
        a[i] = b[i] < a[i] || REDUCE_NAN(b[i]) ? b[i] : a[i];
}

static void REDUCE_NAME(max)(void *to, const void *from, size_t n)
{
    REDUCE_TYPE *restrict a = to;
    const REDUCE_TYPE *restrict b = from;

    for (size_t i = 0; i < n; i++)
        a[i] = b[i] > a[i] || REDUCE_NAN(b[i]) ? b[i] : a[i];
}
#endif

#undef REDUCE_TYPE
#undef REDUCE_NAME
#undef REDUCE_WIDE
#undef REDUCE_NAN

/* SPDX-License-Identifier: MIT
 *
 * Loops of sqrt and rsqrt for type T. With 512-bit vectors, VECTOR is the vector of T, MASK the
 * mask of its elements, and OP(x) the intrinsic function x; otherwise OP is not defined. */

#ifdef OP
TN__INTO_LOOPS void NAME(sqrt_loop)(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa,
                                    const bool reciprocal)
{
    enum { WIDE = 64 / sizeof(T) };
    if (sy != (int64_t)sizeof(T) || sa != (int64_t)sizeof(T)) {
        for (int64_t i = 0; i < n; i++) {
            const T g = NAME(sqrt_of)(*(const T *)(const void *)(ap + i * sa));
            *(T *)(void *)(yp + i * sy) = reciprocal ? 1 / g : g;
        }
        return;
    }
    const VECTOR one = OP(set1)(1);
    T *y = (T *)(void *)yp;
    const T *a = (const T *)(const void *)ap;
    for (; n >= WIDE; n -= WIDE, a += WIDE, y += WIDE) {
        const VECTOR g = NAME(tn__root)(OP(loadu)(a));
        OP(storeu)(y, reciprocal ? OP(div)(one, g) : g);
    }
    if (n > 0) {
        const MASK some = (MASK)((1u << n) - 1);
        const VECTOR g = NAME(tn__root)(OP(mask_loadu)(one, some, a));
        OP(mask_storeu)(y, some, reciprocal ? OP(div)(one, g) : g);
    }
}

static void NAME(sqrt)(TN__LOOP_PARAMETERS)
{
    (void)b, (void)sb, (void)param;
    NAME(sqrt_loop)(n, y, sy, a, sa, false);
}

static void NAME(rsqrt)(TN__LOOP_PARAMETERS)
{
    (void)b, (void)sb, (void)param;
    NAME(sqrt_loop)(n, y, sy, a, sa, true);
}
#else
UNARY(sqrt, NAME(sqrt_of)(a))
UNARY(rsqrt, 1 / NAME(sqrt_of)(a))
#endif

#undef VECTOR
#undef MASK
#undef OP

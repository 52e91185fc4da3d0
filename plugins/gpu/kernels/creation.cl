/* SPDX-License-Identifier: MIT
 *
 * Creation of tensors: fill (the same value everywhere) and arange (equally spaced numbers). */
#ifdef BITS
KERNEL NAME(fill)(GLOBAL BITS *y, const gpu_walk w, const u64 low, const u64 high)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK1(w, i, py)
#if TN_TYPE == 11
        y[py].low = low;
        y[py].high = high;
#else
        y[py] = (BITS)low;
#endif
    }
}
#endif

#if defined(TN_REAL) && TN_TYPE != 0
KERNEL NAME(arange)(GLOBAL S *y, const gpu_walk w, const C start, const C step)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK1(w, i, py)
        C v = start + (C)i * step;
        STORE(y, py, v);
    }
}
#endif

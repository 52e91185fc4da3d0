/* SPDX-License-Identifier: MIT
 *
 * Elements as bits: copies without conversion, choice, and filling. Compiled for u8, u16, u32, u64 and c128 (16 bytes). */
#if TN_TYPE == 11
typedef struct tn_wide {
    u64 low, high;
} tn_wide;
#undef S
#define S tn_wide
#endif

KERNEL NAME(move)(GLOBAL S *y, GLOBAL const S *x, const gpu_walk w)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK2(w, i, py, px)
        y[py] = x[px];
    }
}

KERNEL NAME(where)(GLOBAL S *y, GLOBAL const u8 *c, GLOBAL const S *a, GLOBAL const S *b,
                   const gpu_walk4 w)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK3(w, i, py, pa, pb)
        WALK_FOURTH(w, i, pc)
        y[py] = c[pc] ? a[pa] : b[pb];
    }
}

KERNEL NAME(fill)(GLOBAL S *y, const gpu_walk w, const u64 low, const u64 high)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK1(w, i, py)
#if TN_TYPE == 11
        y[py].low = low;
        y[py].high = high;
#else
        y[py] = (S)low;
#endif
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Elementwise comparisons, and where(), which chooses between two elements. */
#ifdef TN_REAL
KERNEL NAME(compare)(GLOBAL u8 *y, GLOBAL const S *a, GLOBAL const S *b, const gpu_walk w,
                     const i32 f)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK3(w, i, py, pa, pb)
        C p = LOAD(a, pa), q = LOAD(b, pb);
        y[py] = (u8)(f == GPU_F_EQ ? p == q : f == GPU_F_LT ? p < q : p <= q);
    }
}
#endif

#ifdef BITS
KERNEL NAME(where)(GLOBAL BITS *y, GLOBAL const u8 *c, GLOBAL const BITS *a, GLOBAL const BITS *b,
                   const gpu_walk4 w)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK3(w, i, py, pa, pb)
        WALK_FOURTH(w, i, pc)
        y[py] = c[pc] ? a[pa] : b[pb];
    }
}
#endif

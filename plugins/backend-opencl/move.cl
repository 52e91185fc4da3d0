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

/* y = x at the places that the index names; x's offsets go without its dimension */
KERNEL NAME(gather)(GLOBAL S *y, GLOBAL const i64 *index, GLOBAL const S *x,
                    GLOBAL gpu_error *error, const gpu_walk w, const gpu_index at)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK3(w, i, py, pi, px)
        i64 t = index[pi];
        if (t < 0 || t >= at.bound) {
            OUT_OF_BOUNDS(error, at, t)
        } else {
            y[py] = x[px + t * at.step];
        }
    }
}

/* A work item per row of the index, so that the last one stays. */
KERNEL NAME(scatter)(GLOBAL S *y, GLOBAL const i64 *index, GLOBAL const S *src,
                     GLOBAL gpu_error *error, const gpu_rows p, const gpu_index at)
{
    i64 row = ITEM();
    if (row < p.rows) {
        i64 py = p.offset[0], pi = p.offset[1], ps = p.offset[2], rest = row;
        SHORT_LOOP
        for (i32 d = p.ndim - 1; d >= 0; d--) {
            i64 q = rest / p.shape[d], own = rest - q * p.shape[d];
            py += own * p.stride[0][d];
            pi += own * p.stride[1][d];
            ps += own * p.stride[2][d];
            rest = q;
        }
        for (i64 r = 0; r < p.length; r++) {
            i64 t = index[pi + r * p.along[1]];
            if (t < 0 || t >= at.bound) {
                OUT_OF_BOUNDS(error, at, t)
            } else {
                y[py + t * at.step] = src[ps + r * p.along[2]];
            }
        }
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Operators that read or write elements at given indices: gather, scatter, scatter_add; and
 * nonzero, which computes indices. */
#ifdef BITS
/* Copies the element of x at each index to y. The offset px does not include the indexed dimension,
 * because x has stride 0 there in w. */
KERNEL NAME(gather)(GLOBAL BITS *y, GLOBAL const i64 *index, GLOBAL const BITS *x,
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

/* Writes elements of src to y at the indices; y already contains x. One work item handles a whole
 * row of the index, so that the last of several equal indices determines the result. */
KERNEL NAME(scatter)(GLOBAL BITS *y, GLOBAL const i64 *index, GLOBAL const BITS *src,
                     GLOBAL gpu_error *error, const gpu_rows p, const gpu_index at)
{
    i64 row = ITEM();
    if (row < p.rows) {
        ROW_BEGIN3(p, row, py, pi, ps)
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
#endif

#ifdef TN_REAL
#if TN_TYPE != 0
/* Adds elements of src to y at the indices; y already contains x. One work item handles a whole row
 * of the index, so that elements with equal indices are added in order. */
KERNEL NAME(scatter_add)(GLOBAL S *y, GLOBAL const i64 *index, GLOBAL const S *src,
                         GLOBAL gpu_error *error, const gpu_rows p, const gpu_index at)
{
    i64 row = ITEM();
    if (row < p.rows) {
        ROW_BEGIN(p, row, 0, py)
        ROW_BEGIN(p, row, 1, pi)
        ROW_BEGIN(p, row, 2, ps)
        for (i64 r = 0; r < p.length; r++) {
            i64 t = index[pi + r * p.along[1]];
            if (t < 0 || t >= at.bound) {
                OUT_OF_BOUNDS(error, at, t)
            } else {
                i64 to = py + t * at.step;
                C v = LOAD(y, to) + LOAD(src, ps + r * p.along[2]);
                STORE(y, to, v);
            }
        }
    }
}
#endif

/* One group handles one piece of x, in row-major order. The first launch counts the nonzero
 * elements of each piece in counts[]. The second launch (with `write`) writes their indices to rows
 * of y; the first row of a group is the sum of the counts of the groups before. w has the shape of
 * x and the operands x, y and counts. */
GROUP_KERNEL NAME(nonzero)(GLOBAL i64 *y, GLOBAL const S *x, GLOBAL i64 *counts, const gpu_walk w,
                           const i64 piece, const i32 write)
{
    LOCAL i64 part[GROUP];
    i64 begin = GROUP_ID() * piece, end = begin + piece < w.count ? begin + piece : w.count;
    i64 own = (piece + GROUP - 1) / GROUP, first = begin + LOCAL_ID() * own, found = 0;
    i64 last = first + own < end ? first + own : end;
    for (i64 i = first; i < last; i++) {
        ROW_BEGIN(w, i, 0, px)
        found += LOAD(x, px) != 0;
    }
    part[LOCAL_ID()] = found;
    BARRIER();
    if (!write) {
        if (LOCAL_ID() == 0) {
            found = 0;
            for (i32 k = 0; k < GROUP; k++)
                found += part[k];
            counts[w.offset[2] + GROUP_ID()] = found;
        }
    } else {
        found = 0;
        for (i64 k = 0; k < GROUP_ID(); k++)
            found += counts[w.offset[2] + k];
        for (i32 k = 0; k < LOCAL_ID(); k++)
            found += part[k];
        for (i64 i = first; i < last; i++) {
            ROW_BEGIN(w, i, 0, px)
            if (LOAD(x, px) != 0) {
                i64 rest = i, to = w.offset[1] + found * w.stride[1][0];
                SHORT_LOOP
                for (i32 d = w.ndim - 1; d >= 0; d--) {
                    i64 q = rest / w.shape[d];
                    y[to + d * w.stride[1][1]] = rest - q * w.shape[d];
                    rest = q;
                }
                found++;
            }
        }
    }
}
#endif

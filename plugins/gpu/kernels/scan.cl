/* SPDX-License-Identifier: MIT
 *
 * Cumulative sums and products along one dimension. */
#ifdef TN_REAL
/* One group computes one row, and each work item one piece of the row. Each work item first adds up
 * its piece (`product`: multiplies). It then writes the cumulative sums of its piece, beginning
 * with the sum of all pieces before. */
GROUP_KERNEL NAME(scan)(GLOBAL SUM *y, GLOBAL const S *x, const gpu_rows p, const i32 product,
                        const i32 reverse)
{
    LOCAL A part[GROUP];
    ROW_BEGIN(p, GROUP_ID(), 0, py)
    ROW_BEGIN(p, GROUP_ID(), 1, px)
    i64 piece = (p.length + GROUP - 1) / GROUP, first = LOCAL_ID() * piece;
    i64 last = first + piece < p.length ? first + piece : p.length;
    A all = (A)(product ? 1 : 0);
    for (i64 r = first; r < last; r++) {
        A v = (A)LOAD(x, px + (reverse ? p.length - 1 - r : r) * p.along[1]);
        all = product ? all * v : all + v;
    }
    part[LOCAL_ID()] = all;
    BARRIER();
    all = (A)(product ? 1 : 0);
    for (i32 k = 0; k < LOCAL_ID(); k++)
        all = product ? all * part[k] : all + part[k];
    for (i64 r = first; r < last; r++) {
        i64 at = reverse ? p.length - 1 - r : r;
        A v = (A)LOAD(x, px + at * p.along[1]);
        all = product ? all * v : all + v;
        STORE_SUM(y, py + at * p.along[0], all);
    }
}
#endif

/* SPDX-License-Identifier: MIT
 *
 * Along one dimension: running sums and products, order, sums at places that an index names. */

/* Where row `row` of operand k begins. */
#undef ROW_BEGIN
#define ROW_BEGIN(p, row, k, at)                                                                   \
    i64 at = (p).offset[k];                                                                        \
    {                                                                                              \
        i64 rest_ = (row);                                                                         \
        SHORT_LOOP                                                                                 \
        for (i32 d_ = (p).ndim - 1; d_ >= 0; d_--) {                                               \
            i64 q_ = rest_ / (p).shape[d_];                                                        \
            at += (rest_ - q_ * (p).shape[d_]) * (p).stride[k][d_];                                \
            rest_ = q_;                                                                            \
        }                                                                                          \
    }

/* A group per row. Each work item adds up (product: multiplies) a piece; what is before its piece is where it starts
 * when it writes. */
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

/* A work item per element counts what goes before it: its place. Equals stay in order; NaN is largest. */
KERNEL NAME(sort)(GLOBAL S *values, GLOBAL i64 *indices, GLOBAL const S *x, const gpu_rows p,
                  const i32 descending)
{
    i64 i = ITEM();
    if (i < p.rows * p.length) {
        i64 row = i / p.length, own = i - row * p.length, place = 0;
        ROW_BEGIN(p, row, 0, py)
        ROW_BEGIN(p, row, 1, pi)
        ROW_BEGIN(p, row, 2, px)
        C v = LOAD(x, px + own * p.along[2]);
        for (i64 r = 0; r < p.length; r++) {
            C w = LOAD(x, px + r * p.along[2]);
            i32 larger = w > v || (w != w && v == v), smaller = w < v || (w == w && v != v);
            place += descending ? larger || (!smaller && r < own) : smaller || (!larger && r < own);
        }
        STORE(values, py + place * p.along[0], v);
        indices[pi + place * p.along[1]] = own;
    }
}

/* A group per piece of x in row-major order counts what is not zero; the second time (`write`) counts[] of the groups before it and
 * the work items before it say where its rows begin. w: shape of x, operands x, y, counts. */
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

#if TN_TYPE != 0
KERNEL NAME(arange)(GLOBAL S *y, const gpu_walk w, const C start, const C step)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK1(w, i, py)
        C v = start + (C)i * step;
        STORE(y, py, v);
    }
}

/* A work item per row of the index, so that sums at one place are taken in order. y holds x already. */
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

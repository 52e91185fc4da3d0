/* SPDX-License-Identifier: MIT
 *
 * Sorting along one dimension. */
#ifdef TN_REAL
/* One work item per element counts the elements of the row that sort before its element; the count
 * is the element's index in the result. The order of equal elements is kept. NaN sorts as the
 * largest value. */
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
#endif

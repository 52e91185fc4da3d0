/* SPDX-License-Identifier: MIT
 *
 * cummax (`up`) or cummin of n contiguous elements of type T, float or double, the first of which
 * has index `first`; y may be x. Most blocks have no new extreme and are filled with the last one.
 * *before is the extreme of the preceding elements, times -1 for cummin, and *where its index; both
 * are updated. */

static void NAME(extremes)(int64_t n, bool up, const T *x, T *y, int64_t *places, int64_t first,
                           T *before, int64_t *where)
{
    const T sign = up ? 1 : -1;
    T best = *before;
    int64_t place = *where;
    for (int64_t i = 0, end; i < n; i = end) {
        int above = 0;
        end = i + SCAN_BLOCK < n ? i + SCAN_BLOCK : n;
        for (int64_t k = i; k < end; k++)
            above |= !(sign * x[k] < best);
        for (int64_t k = i; above == 0 && k < end; k++) {
            y[k] = sign * best;
            places[k] = place;
        }
        for (int64_t k = i; above != 0 && k < end; k++) {
            if (sign * x[k] >= best || x[k] != x[k]) {
                best = sign * x[k];
                place = first + k;
            }
            y[k] = sign * best;
            places[k] = place;
        }
    }
    *before = best;
    *where = place;
}

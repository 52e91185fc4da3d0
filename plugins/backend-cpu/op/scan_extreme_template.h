/* SPDX-License-Identifier: MIT
 *
 * cummax (`up`) or cummin of n contiguous elements of type T, float or double. A block without a
 * new extreme, which is the usual one, is only filled. */

static void NAME(line)(int64_t n, bool up, const T *x, T *y, int64_t *places)
{
    const T sign = up ? 1 : -1;
    T best = -(T)INFINITY;
    int64_t place = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        int above = 0;
        end = i + BLOCK < n ? i + BLOCK : n;
        for (int64_t k = i; k < end; k++)
            above |= !(sign * x[k] < best);
        for (int64_t k = i; above == 0 && k < end; k++) {
            y[k] = sign * best;
            places[k] = place;
        }
        for (int64_t k = i; above != 0 && k < end; k++) {
            if (sign * x[k] >= best || x[k] != x[k]) {
                best = sign * x[k];
                place = k;
            }
            y[k] = sign * best;
            places[k] = place;
        }
    }
}

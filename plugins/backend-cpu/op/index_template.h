/* SPDX-License-Identifier: MIT
 *
 * A run of n indices for elements of type T. For i < n, with all strides in bytes: index[i] is at
 * index + i * si, the elements are at x + i * sx + index[i] * step and other + i * so. `size` is
 * the number of valid indices. Returns how many were done: fewer than n when the next index is out
 * of bounds. */

static int64_t NAME(gather_run)(RUN_PARAMETERS)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at;
        memcpy(&at, index + i * si, sizeof at);
        if ((uint64_t)at >= size)
            return i;
        memcpy(other + i * so, x + i * sx + at * step, sizeof(T));
    }
    return n;
}

static int64_t NAME(scatter_run)(RUN_PARAMETERS)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at;
        memcpy(&at, index + i * si, sizeof at);
        if ((uint64_t)at >= size)
            return i;
        memcpy(x + i * sx + at * step, other + i * so, sizeof(T));
    }
    return n;
}

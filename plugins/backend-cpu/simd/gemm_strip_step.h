/* SPDX-License-Identifier: MIT
 *
 * One step along the depth of a strip, a part of the function in gemm_strip_template.h. The panel
 * is prefetched, because it comes from the second-level cache or, with few rows,
 * from memory. The empty asm keeps the compiler from computing a separate address for each row. */
{
    NAME(tile_v) line[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v += LINE / W)
        __builtin_prefetch(b + AHEAD * pace + v * W);
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++)
        line[v] = *(const NAME(tile_v) *)(const void *)(b + v * W);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++)
            acc[i][v] += A_AT(i) * line[v];
    a += A_PACE;
    b += pace;
    __asm__("" : "+r"(a), "+r"(b));
}

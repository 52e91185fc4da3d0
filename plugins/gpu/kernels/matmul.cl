/* SPDX-License-Identifier: MIT
 *
 * Batched matrix product. A group computes a tile of TILE x TILE elements of y. It copies parts of
 * a and b of TILE x STEP elements to local memory, one after the other along k. Each work item
 * computes ROWS x COLS elements of the tile. Neighbouring work items compute neighbouring columns
 * n, so that their writes are contiguous. */
#if defined(TN_REAL) && TN_TYPE != 0
#undef TILE
#undef STEP
#undef ROWS
#undef COLS
#define TILE 64
#define STEP 16
#define ROWS (TILE / GROUP_Y)
#define COLS (TILE / GROUP_X)

TILE_KERNEL NAME(bmm)(GLOBAL S *y, GLOBAL const S *a, GLOBAL const S *b, const gpu_bmm p)
{
    LOCAL C ta[STEP][TILE + 1];
    LOCAL C tb[STEP][TILE + 1];
    i32 tx = LOCAL_ID(), ty = LOCAL_ID_Y();
    u32 item = (u32)(ty * GROUP_X + tx);
    i64 across = (p.n + TILE - 1) / TILE, down = GROUP_ID() / across;
    i64 n0 = (GROUP_ID() - down * across) * TILE, m0 = down * TILE, z = GROUP_ID_Z();
    i64 za = p.offset_a + z * p.stride_a[0], zb = p.offset_b + z * p.stride_b[0];
    /* Neighbouring work items read along the dimension with the smaller stride: k or m of a, k or n
     * of b. */
    i32 a_along_k = p.stride_a[2] < p.stride_a[1], b_along_k = p.stride_b[1] < p.stride_b[2];
    C acc[ROWS][COLS];

    for (i32 r = 0; r < ROWS; r++)
        for (i32 c = 0; c < COLS; c++)
            acc[r][c] = 0;
    for (i64 k0 = 0; k0 < p.k; k0 += STEP) {
        for (u32 e = item; e < TILE * STEP; e += GROUP_X * GROUP_Y) {
            u32 ka = a_along_k ? e % STEP : e / TILE, ma = a_along_k ? e / STEP : e % TILE;
            u32 kb = b_along_k ? e % STEP : e / TILE, nb = b_along_k ? e / STEP : e % TILE;
            ta[ka][ma] = m0 + ma < p.m && k0 + ka < p.k
                             ? LOAD(a, za + (m0 + ma) * p.stride_a[1] + (k0 + ka) * p.stride_a[2])
                             : (C)0;
            tb[kb][nb] = n0 + nb < p.n && k0 + kb < p.k
                             ? LOAD(b, zb + (k0 + kb) * p.stride_b[1] + (n0 + nb) * p.stride_b[2])
                             : (C)0;
        }
        BARRIER();
        for (i32 k = 0; k < STEP; k++)
            for (i32 r = 0; r < ROWS; r++) {
                C va = ta[k][ty + r * GROUP_Y];
                for (i32 c = 0; c < COLS; c++)
                    acc[r][c] += va * tb[k][tx + c * GROUP_X];
            }
        BARRIER();
    }
    for (i32 r = 0; r < ROWS; r++)
        for (i32 c = 0; c < COLS; c++) {
            i64 m = m0 + ty + r * GROUP_Y, n = n0 + tx + c * GROUP_X;
            if (m < p.m && n < p.n)
                STORE(y, p.offset_y + z * p.stride_y[0] + m * p.stride_y[1] + n * p.stride_y[2],
                      acc[r][c]);
        }
}
#endif

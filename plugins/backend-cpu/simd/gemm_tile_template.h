/* SPDX-License-Identifier: MIT
 *
 * The function that computes a tile of a product for type T: TILE_MR rows of two vectors, whose
 * sums stay in registers. */

static void NAME(tile)(int64_t kc, const void *ap, const void *bp, void *cp, int64_t ldc)
{
    enum { W = TILE_BYTES / (int)sizeof(T) };
    const T *a = ap, *b = bp;
    NAME(tile_v) acc[TILE_MR][2] = { { { 0 } } };
    for (int64_t k = 0; k < kc; k++, a += TILE_MR, b += 2 * W) {
        NAME(tile_v)
        b0 = *(const NAME(tile_v) *)(const void *)b,
        b1 = *(const NAME(tile_v) *)(const void *)(b + W);
#pragma GCC unroll 16
        for (int i = 0; i < TILE_MR; i++) {
            acc[i][0] += a[i] * b0;
            acc[i][1] += a[i] * b1;
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < TILE_MR; i++) {
        T *c = (T *)cp + i * ldc;
        *(NAME(tile_v) *)(void *)c += acc[i][0];
        *(NAME(tile_v) *)(void *)(c + W) += acc[i][1];
    }
}

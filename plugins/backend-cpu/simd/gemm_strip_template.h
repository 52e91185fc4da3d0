/* SPDX-License-Identifier: MIT
 *
 * The function for a strip of ROWS rows and VECTORS vectors. ROWS and VECTORS are constants, so
 * that the sums stay in registers. A_AT(i) is the element of row i, A_PACE the distance in `a` from
 * one step of the depth to the next. */

/* Computes a strip; simd.h describes the parameters. Each iteration has two steps of the depth, so
 * that fewer instructions for counters and pointers compete with the multiply-adds. */
static void STRIP(STRIP_KIND, VECTORS, ROWS)(int64_t kc, const T *a, int64_t step, const T *b,
                                             int64_t pace, T *c, int64_t ldc, const T *bias,
                                             int64_t rounds, int64_t jump, int64_t b_jump,
                                             int64_t last, const struct tn__limits *limits)
{
    enum { W = TILE_BYTES / (int)sizeof(T), LINE = 64 / (int)sizeof(T), AHEAD = 16 };
    NAME(tile_v) acc[ROWS][VECTORS] = { { { 0 } } };
    for (; rounds > 0; rounds--, a += jump, b += b_jump) {
        int64_t k = 0;
        for (; k + 1 < kc; k += 2) {
#include "simd/gemm_strip_step.h"

#include "simd/gemm_strip_step.h"
        }
        if (k < kc) {
#include "simd/gemm_strip_step.h"
        }
    }
    const T low = (T)limits->low, high = (T)limits->high;
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) {
        T *to = c + i * ldc;
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            NAME(tile_v) *at = (NAME(tile_v) *)(void *)(to + v * W);
            if (v == VECTORS - 1 && last > 0)
                break;
            *at = NAME(limited)(
                acc[i][v] + (bias ? *(const NAME(tile_v) *)(const void *)(bias + v * W) : *at), low,
                high);
        }
        if (last > 0) {
            enum { AT = (VECTORS - 1) * W };
            const NAME(tile_v) more = bias ? *(const NAME(tile_v) *)(const void *)(bias + AT)
                                           : NAME(load_part)(to + AT, last);
            NAME(store_part)
            (to + AT, NAME(limited)(acc[i][VECTORS - 1] + more, low, high), last);
        }
    }
}

#undef ROWS

/* SPDX-License-Identifier: MIT
 *
 * Sums of contiguous elements. */
#ifndef TN_BACKEND_CPU_SIMD_SUM_H
#define TN_BACKEND_CPU_SIMD_SUM_H

#include "simd/simd.h"

/* 64 (32) running sums, then a tree, with what is left over in a quarter of them: a block of 4096
 * numbers adds some 64 of them in a row at most. Indices are constants, so that registers hold them. */
#define SUM(name, T, LANES)                                                                        \
    static T name##_block(int64_t n, const T *x)                                                   \
    {                                                                                              \
        T acc[LANES] = { 0 }, rest = 0;                                                            \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int j = 0; j < LANES; j++)                                                        \
                acc[j] += x[i + j];                                                                \
        for (int j = 0; j < LANES / 2; j++)                                                        \
            acc[j] += acc[j + LANES / 2];                                                          \
        for (int j = 0; j < LANES / 4; j++)                                                        \
            acc[j] += acc[j + LANES / 4];                                                          \
        for (; i + LANES / 4 <= n; i += LANES / 4)                                                 \
            for (int j = 0; j < LANES / 4; j++)                                                    \
                acc[j] += x[i + j];                                                                \
        for (; i < n; i++)                                                                         \
            rest += x[i];                                                                          \
        for (int j = 0; j < LANES / 8; j++)                                                        \
            acc[j] += acc[j + LANES / 8];                                                          \
        for (int j = 0; j < LANES / 16; j++)                                                       \
            acc[j] += acc[j + LANES / 16];                                                         \
        for (int j = 1; j < LANES / 16; j++)                                                       \
            rest += acc[j];                                                                        \
        return acc[0] + rest;                                                                      \
    }                                                                                              \
    /* Blocks add up in float64 with a compensation. */                                            \
    static double name(int64_t n, const T *x)                                                      \
    {                                                                                              \
        double sum = 0, rest = 0;                                                                  \
        if (n <= 4096)                                                                             \
            return name##_block(n, x);                                                             \
        for (int64_t at = 0; at < n; at += 4096) {                                                 \
            double block = name##_block(n - at < 4096 ? n - at : 4096, x + at),                    \
                   next = sum + block;                                                             \
            double large = __builtin_fabs(sum) >= __builtin_fabs(block) ? sum : block;             \
            double small = __builtin_fabs(sum) >= __builtin_fabs(block) ? block : sum;             \
            rest += (large - next) + small;                                                        \
            sum = next;                                                                            \
        }                                                                                          \
        double all = sum + rest;                                                                   \
        return all - all == 0 ? all : sum;                                                         \
    }
SUM(sum_f32, float, 64)
SUM(sum_f64, double, 32)

#endif

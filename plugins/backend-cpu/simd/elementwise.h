/* SPDX-License-Identifier: MIT
 *
 * The shapes of loops over one and two operands; what they do is an expression of a, b and the
 * numbers p, q and r that go with a call. */
#ifndef TN_BACKEND_CPU_EACH_H
#define TN_BACKEND_CPU_EACH_H

#include "simd/simd.h"

/* y may be the same memory as a or b, element for element: TN__IVDEP says so. Each shape of
 * strides that is frequent gets its own loop. */
#define TN__EACH TN__IVDEP for (int64_t i = 0; i < n; i++)

#define TN__BINARY(name, T, expr)                                                                  \
    static void name(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,  \
                     int64_t sb, const double *param)                                              \
    {                                                                                              \
        const T p = (T)param[0], q = (T)param[1], r = (T)param[2];                                 \
        const int64_t w = (int64_t)sizeof(T);                                                      \
        T *y = (T *)(void *)yp;                                                                    \
        const T *pa = (const T *)(const void *)ap, *pb = (const T *)(const void *)bp;              \
        (void)p, (void)q, (void)r;                                                                 \
        if (sy == w && sa == w && sb == w) {                                                       \
            TN__EACH                                                                               \
            {                                                                                      \
                const T a = pa[i], b = pb[i];                                                      \
                y[i] = (T)(expr);                                                                  \
            }                                                                                      \
        } else if (sy == w && sa == w && sb == 0) {                                                \
            const T b = n > 0 ? *pb : 0;                                                           \
            TN__EACH                                                                               \
            {                                                                                      \
                const T a = pa[i];                                                                 \
                y[i] = (T)(expr);                                                                  \
            }                                                                                      \
        } else if (sy == w && sa == 0 && sb == w) {                                                \
            const T a = n > 0 ? *pa : 0;                                                           \
            TN__EACH                                                                               \
            {                                                                                      \
                const T b = pb[i];                                                                 \
                y[i] = (T)(expr);                                                                  \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T a = *(const T *)(const void *)(ap + i * sa);                               \
                const T b = *(const T *)(const void *)(bp + i * sb);                               \
                *(T *)(void *)(yp + i * sy) = (T)(expr);                                           \
            }                                                                                      \
        }                                                                                          \
    }

#define TN__UNARY(name, T, expr)                                                                   \
    static void name(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,  \
                     int64_t sb, const double *param)                                              \
    {                                                                                              \
        const T p = (T)param[0], q = (T)param[1], r = (T)param[2];                                 \
        const int64_t w = (int64_t)sizeof(T);                                                      \
        T *y = (T *)(void *)yp;                                                                    \
        const T *pa = (const T *)(const void *)ap;                                                 \
        (void)p, (void)q, (void)r, (void)bp, (void)sb;                                             \
        if (sy == w && sa == w) {                                                                  \
            TN__EACH                                                                               \
            {                                                                                      \
                const T a = pa[i];                                                                 \
                y[i] = (T)(expr);                                                                  \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T a = *(const T *)(const void *)(ap + i * sa);                               \
                *(T *)(void *)(yp + i * sy) = (T)(expr);                                           \
            }                                                                                      \
        }                                                                                          \
    }

#endif

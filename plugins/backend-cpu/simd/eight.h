/* SPDX-License-Identifier: MIT
 *
 * The loop of functions of eight float64 numbers (math/float64_avx512.h). All numbers go through
 * the function of eight, so that a result does not depend on the position of its number. */
#ifndef TN_BACKEND_CPU_SIMD_EIGHT_H
#define TN_BACKEND_CPU_SIMD_EIGHT_H

#include <string.h>

#include "math/float64_avx512.h"

/* Returns a mask of the numbers for which a function of eight is not suitable. */
typedef __mmask8 tn__odd8(tn__eight x);
typedef tn__eight tn__of8(tn__eight x);
typedef double tn__far8(double x, double unused); /* not called if no number is odd */

TN__INTO_LOOPS __mmask8 tn__never8(tn__eight x)
{
    (void)x;
    return 0;
}
TN__INTO_LOOPS __mmask8 tn__circle_odd8(tn__eight x)
{
    return _mm512_cmp_pd_mask(_mm512_abs_pd(x), tn__all8(1e6), _CMP_NLE_UQ);
}
TN__INTO_LOOPS __mmask8 tn__erfc_odd8(tn__eight x)
{
    return _mm512_cmp_pd_mask(_mm512_abs_pd(x), tn__all8(15), _CMP_NLT_UQ);
}
TN__INTO_LOOPS __mmask8 tn__erfinv_odd8(tn__eight x)
{
    return _mm512_cmp_pd_mask(_mm512_abs_pd(x), tn__all8(0.999), _CMP_NLE_UQ);
}

/* Returns y with far(x) in place of the elements that `odd` marks. */
TN__INTO_LOOPS tn__eight tn__corrected8(tn__eight y, tn__eight x, __mmask8 odd, tn__far8 *far)
{
    double from[8], to[8];
    if (odd == 0)
        return y;
    _mm512_storeu_pd(from, x);
    _mm512_storeu_pd(to, y);
    for (int i = 0; i < 8; i++)
        if (odd >> i & 1)
            to[i] = far(from[i], 0);
    return _mm512_loadu_pd(to);
}

/* Contiguous numbers; y may be x. Two vectors are computed at a time, whose steps need not wait for
 * each other. */
TN__INTO_LOOPS void tn__contiguous8(int64_t n, double *y, const double *x, tn__of8 *of,
                                    tn__odd8 *odd, tn__far8 *far)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        tn__eight a = _mm512_loadu_pd(x + i), b = _mm512_loadu_pd(x + i + 8);
        tn__eight p = of(a), q = of(b);
        __mmask8 odd_a = odd(a), odd_b = odd(b);
        if ((odd_a | odd_b) != 0) {
            p = tn__corrected8(p, a, odd_a, far);
            q = tn__corrected8(q, b, odd_b, far);
        }
        _mm512_storeu_pd(y + i, p);
        _mm512_storeu_pd(y + i + 8, q);
    }
    for (; i < n; i += 8) {
        __mmask8 part = (__mmask8)(n - i >= 8 ? 255 : (1 << (n - i)) - 1);
        tn__eight a = _mm512_maskz_loadu_pd(part, x + i);
        _mm512_mask_storeu_pd(y + i, part, tn__corrected8(of(a), a, odd(a), far));
    }
}

TN__INTO_LOOPS void tn__loop8(int64_t n, char *y, int64_t sy, const char *x, int64_t sx,
                              tn__of8 *of, tn__odd8 *odd, tn__far8 *far)
{
    enum { BLOCK = 256 };
    double from[BLOCK], to[BLOCK];
    const int64_t item = (int64_t)sizeof(double);
    if (sy == item && sx == item) {
        tn__contiguous8(n, (double *)(void *)y, (const double *)(const void *)x, of, odd, far);
        return;
    }
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t size = n - at < BLOCK ? n - at : BLOCK;
        for (int64_t i = 0; i < size; i++)
            from[i] = *(const double *)(const void *)(x + (at + i) * sx);
        tn__contiguous8(size, to, from, of, odd, far);
        for (int64_t i = 0; i < size; i++)
            *(double *)(void *)(y + (at + i) * sy) = to[i];
    }
}

#endif

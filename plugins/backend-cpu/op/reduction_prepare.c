/* SPDX-License-Identifier: MIT
 *
 * Changes of elements before a reduction combines them. */
#include "op/reduction_prepare.h"

#include "simd/simd.h"

#define TRUTHS(T)                                                                                  \
    for (int64_t i = 0; i < n; i++)                                                                \
    ((T *)to)[i] = ((const T *)x)[i] != 0

#define NUMBERS(T)                                                                                 \
    for (int64_t i = 0; i < n; i++)                                                                \
    ((T *)to)[i] = ((const T *)x)[i] == ((const T *)x)[i] ? ((const T *)x)[i] : 0

const void *tn__reduction_prepare(const struct tn__reduction *r, enum tn__ct ct, int64_t n,
                                  const void *x, const void *from, int64_t step, void *to)
{
    static const double none[3] = { 0, 0, 0 };
    int64_t size = (int64_t)tn__dtype_ct_size(ct);
    switch (r->before) {
    case TN__AS_IT_IS: return x;
    case TN__APART:
    case TN__EXP_FROM:
        tn__loop_of(TN__EW_sub, ct)(n, to, size, x, size, from, step, none);
        if (r->before == TN__EXP_FROM)
            tn__loop_of(TN__EW_exp, ct)(n, to, size, to, size, to, size, none);
        return to;
    case TN__SIZE: tn__loop_of(TN__EW_abs, ct)(n, to, size, x, size, x, size, none); return to;
    case TN__POWER: {
        tn__ew_loop *power = tn__loop_of(TN__EW_pow, ct);
        float p_f32 = (float)r->p;
        const void *p = ct == TN__F32 ? (const void *)&p_f32 : &r->p;
        tn__loop_of(TN__EW_abs, ct)(n, to, size, x, size, x, size, none);
        power(n, to, size, to, size, p, 0, none);
        return to;
    }
    case TN__NO_NAN:
        if (ct == TN__F32)
            NUMBERS(float);
        else
            NUMBERS(double);
        return to;
    case TN__TRUTH:
        if (ct == TN__F32)
            TRUTHS(float);
        else if (ct == TN__F64)
            TRUTHS(double);
        else
            TRUTHS(int64_t);
        return to;
    }
    return x;
}

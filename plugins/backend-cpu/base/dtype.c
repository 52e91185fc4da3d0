/* SPDX-License-Identifier: MIT
 *
 * The compute types, and the choice of the compute type for a conversion between two dtypes. */
#include "simd/simd.h"

tn__load *tn__dtype_load(tn_dtype from, enum tn__ct ct)
{
    return tn__simd.convert->of[from].load[ct];
}

tn__store *tn__dtype_store(enum tn__ct ct, tn_dtype to)
{
    return tn__simd.convert->of[to].store[ct];
}

size_t tn__dtype_ct_size(enum tn__ct ct)
{
    static const size_t sizes[TN__CT_COUNT] = { 4, 8, 8, 8, 16 };
    return sizes[ct];
}

tn_dtype tn__dtype_of_ct(enum tn__ct ct)
{
    static const tn_dtype dtypes[TN__CT_COUNT] = { TN_F32, TN_F64, TN_I64, TN_C64, TN_C128 };
    return dtypes[ct];
}

enum tn__ct tn__dtype_ct(tn_dtype dtype)
{
    static const uint8_t of[TN_DTYPE_COUNT] = {
        [TN_BOOL] = TN__I64,   [TN_U8] = TN__I64,  [TN_I8] = TN__I64,  [TN_I16] = TN__I64,
        [TN_I32] = TN__I64,    [TN_I64] = TN__I64, [TN_F16] = TN__F32, [TN_BF16] = TN__F32,
        [TN_F32] = TN__F32,    [TN_F64] = TN__F64, [TN_C64] = TN__C64, [TN_C128] = TN__C128,
        [TN_U16] = TN__I64,    [TN_U32] = TN__I64, [TN_U64] = TN__I64, [TN_F8_E4M3] = TN__F32,
        [TN_F8_E5M2] = TN__F32
    };
    return (enum tn__ct)of[dtype];
}

enum tn__ct tn__dtype_ct_between(tn_dtype from, tn_dtype to)
{
    enum tn__ct a = tn__dtype_ct(from), b = tn__dtype_ct(to);
    if (a == TN__C128 || b == TN__C128)
        return TN__C128;
    if (b == TN__C64)
        return TN__C64;
    if (a ==
        TN__C64) /* to a real dtype: the real part, in float64, which is exact for all dtypes */
        return TN__C128;
    if (a == TN__I64 && b == TN__I64)
        return TN__I64;
    if (a == TN__F64 || b == TN__F64)
        return TN__F64;
    return TN__F32;
}

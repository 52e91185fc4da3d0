/* SPDX-License-Identifier: MIT
 *
 * Dtypes: names, sizes, promotion, the default dtype. Promotion follows PyTorch's
 * table; tests/tensor/promotion.h holds that table as PyTorch printed it. */
#include "core/base/dtype.h"

/* The first name of a row is the one that is printed. The parser also accepts the others. */
static const char *const names[TN_DTYPE_COUNT][4] = {
    [TN_BOOL] = { "bool" },
    [TN_U8] = { "uint8", "u8", "byte" },
    [TN_I8] = { "int8", "i8", "char" },
    [TN_I16] = { "int16", "i16", "short" },
    [TN_I32] = { "int32", "i32", "int" },
    [TN_I64] = { "int64", "i64", "long" },
    [TN_F16] = { "float16", "f16", "half" },
    [TN_BF16] = { "bfloat16", "bf16" },
    [TN_F32] = { "float32", "f32", "float" },
    [TN_F64] = { "float64", "f64", "double" },
    [TN_C64] = { "complex64", "c64", "cfloat" },
    [TN_C128] = { "complex128", "c128", "cdouble" },
    [TN_U16] = { "uint16", "u16" },
    [TN_U32] = { "uint32", "u32" },
    [TN_U64] = { "uint64", "u64" },
    [TN_F8_E4M3] = { "float8_e4m3fn", "f8_e4m3", "float8_e4m3" },
    [TN_F8_E5M2] = { "float8_e5m2", "f8_e5m2" },
};

const tn__dtype_row tn__dtypes[TN_DTYPE_COUNT] = {
    [TN_BOOL] = { { 6, 8, 1 }, 1, 0 },     [TN_U8] = { { 1, 8, 1 }, 1, 0 },
    [TN_I8] = { { 0, 8, 1 }, 1, 0 },       [TN_I16] = { { 0, 16, 1 }, 2, 1 },
    [TN_I32] = { { 0, 32, 1 }, 4, 2 },     [TN_I64] = { { 0, 64, 1 }, 8, 3 },
    [TN_F16] = { { 2, 16, 1 }, 2, 1 },     [TN_BF16] = { { 4, 16, 1 }, 2, 1 },
    [TN_F32] = { { 2, 32, 1 }, 4, 2 },     [TN_F64] = { { 2, 64, 1 }, 8, 3 },
    [TN_C64] = { { 5, 64, 1 }, 8, 3 },     [TN_C128] = { { 5, 128, 1 }, 16, 4 },
    [TN_U16] = { { 1, 16, 1 }, 2, 1 },     [TN_U32] = { { 1, 32, 1 }, 4, 2 },
    [TN_U64] = { { 1, 64, 1 }, 8, 3 },     [TN_F8_E4M3] = { { 10, 8, 1 }, 1, 0 },
    [TN_F8_E5M2] = { { 12, 8, 1 }, 1, 0 },
};

static _Atomic int default_dtype = TN_F32;

static bool known(tn_dtype dtype)
{
    return (unsigned)dtype < TN_DTYPE_COUNT;
}

const char *tn_dtype_name(tn_dtype dtype)
{
    return known(dtype) ? names[dtype][0] : "?";
}

tn_status tn_dtype_parse(const char *name, tn_dtype *out)
{
    const char *all[TN_DTYPE_COUNT * 4];
    const char *near;
    tn__text list = { 0 };
    int64_t count = 0;
    tn_status status;

    if (!tn__given(name != NULL, "tn_dtype_parse: name") ||
        !tn__given(out != NULL, "tn_dtype_parse: out"))
        return TN_ERR_VALUE;
    if (strncmp(name, "torch.", 6) == 0)
        name += 6;
    for (int i = 0; i < TN_DTYPE_COUNT; i++)
        for (int k = 0; k < 4 && names[i][k] != NULL; k++) {
            if (strcmp(names[i][k], name) == 0) {
                *out = (tn_dtype)i;
                return TN_OK;
            }
            all[count++] = names[i][k];
        }
    for (int i = 0; i < TN_DTYPE_COUNT; i++)
        tn__text_add(&list, i > 0 ? ", %s" : "%s", names[i][0]);
    near = tn__name_nearest(name, all, count);
    status = tn_fail(TN_ERR_VALUE, "dtype: unknown, got %q%s%s%s; expected one of %s", name,
                     near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                     near != NULL ? "?)" : "", list.failed ? "?" : list.at);
    tn__text_free(&list);
    return status;
}

size_t tn_dtype_size(tn_dtype dtype)
{
    return known(dtype) ? tn__dtypes[dtype].size : 0;
}

tn_dtype tn__dtype_of_code(uint8_t code, uint8_t bits)
{
    if (code == 1 && bits == 1) /* bool before DLPack 0.8; not supported */
        return TN_DTYPE_AUTO;
    for (int i = 0; i < TN_DTYPE_COUNT; i++)
        if (tn__dtypes[i].view.code == code && tn__dtypes[i].view.bits == bits)
            return (tn_dtype)i;
    return TN_DTYPE_AUTO;
}

tn_dtype tn_dtype_promote(tn_dtype a, tn_dtype b)
{
    if (a == b && known(a))
        return a;
    if (!known(a) || !known(b)) {
        tn_fail(TN_ERR_TYPE, "dtype: unknown, got %d; expected one of tn_dtype",
                (int)(known(a) ? b : a));
        return TN_DTYPE_AUTO;
    }
    if (a >= TN_U16 || b >= TN_U16) {
        tn_fail(TN_ERR_TYPE,
                "dtypes %s and %s: no common type; %s is for storage only: cast it to a dtype with "
                "arithmetic",
                tn_dtype_name(a), tn_dtype_name(b), tn_dtype_name(a < TN_U16 ? b : a));
        return TN_DTYPE_AUTO;
    }
    if (a > b) {
        tn_dtype t = a;
        a = b;
        b = t;
    }
    /* The dtypes are numbered in PyTorch's order: of two dtypes, the one with the larger number is
     * the result, except for these three pairs. */
    if (b == TN_I8 && a == TN_U8)
        return TN_I16;
    if (b == TN_BF16 && a == TN_F16)
        return TN_F32;
    if (b == TN_C64 && a == TN_F64)
        return TN_C128;
    return b;
}

/* The default dtype of this thread (tn_dtype_begin). TN_DTYPE_AUTO: the thread uses the default
 * dtype of the process. */
static _Thread_local tn_dtype thread_dtype = TN_DTYPE_AUTO;

static _Thread_local int32_t depth;

tn_status tn_dtype_begin(tn_dtype dtype)
{
    tn_status status = TN_OK;

    if (depth >= TN__MODE_DEPTH)
        status = tn_fail(TN_ERR_RUNTIME,
                         "tn_dtype_begin: nested too deep; expected at most %d levels; the default "
                         "dtype does not change",
                         TN__MODE_DEPTH);
    else if (!tn__mode_stack_push(TN__MODE_DTYPE, depth, (uint8_t)thread_dtype))
        status = tn_fail(TN_ERR_MEMORY, "tn_dtype_begin: out of memory");
    depth++;
    if (status == TN_OK && known(dtype) && (TN_BIT(dtype) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) != 0)
        thread_dtype = dtype;
    return status;
}

void tn_dtype_end(void)
{
    uint8_t before;

    if (depth == 0)
        tn_fail(TN_ERR_RUNTIME, "tn_dtype_end: no tn_dtype_begin in this thread");
    else if (--depth < TN__MODE_DEPTH && tn__mode_stack_pop(TN__MODE_DTYPE, depth, &before))
        thread_dtype = (tn_dtype)before;
}

tn_dtype tn_default_dtype(void)
{
    if (tn__unlikely(thread_dtype != TN_DTYPE_AUTO))
        return thread_dtype;
    return (tn_dtype)atomic_load_explicit(&default_dtype, memory_order_relaxed);
}

tn_status tn_set_default_dtype(tn_dtype dtype)
{
    if (!known(dtype) || (TN_BIT(dtype) & TN_MASK_FLOAT) == 0)
        return tn_fail(
            TN_ERR_TYPE,
            "default dtype: wrong, got %s; expected float16, bfloat16, float32 or float64",
            tn_dtype_name(dtype));
    atomic_store_explicit(&default_dtype, (int)dtype, memory_order_relaxed);
    return TN_OK;
}

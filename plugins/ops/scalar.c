/* SPDX-License-Identifier: MIT
 *
 * Numbers among the options of operators (tn_scalar). */
#include "common.h"

const char *tn__scalar_text(char *out, tn_scalar scalar)
{
    double re = tn_scalar_as_float(scalar), im = tn_scalar_imag(scalar);

    if (scalar.kind == TN_SCALAR_UINT)
        tn_snprint(out, TN__SCALAR_TEXT, "%llu", (unsigned long long)scalar.as.u);
    else if (scalar.kind == TN_SCALAR_INT)
        tn_snprint(out, TN__SCALAR_TEXT, "%lld", (long long)scalar.as.i);
    else if (scalar.kind == TN_SCALAR_BOOL)
        tn_snprint(out, TN__SCALAR_TEXT, "%s", scalar.as.i != 0 ? "True" : "False");
    else if (scalar.kind == TN_SCALAR_NONE)
        tn_snprint(out, TN__SCALAR_TEXT, "None");
    else if (scalar.kind == TN_SCALAR_COMPLEX)
        tn_snprint(out, TN__SCALAR_TEXT, signbit(im) ? "%g%gj" : "%g+%gj", re, im);
    else
        tn_snprint(out, TN__SCALAR_TEXT, "%g", re);
    return out;
}

tn_status tn__scalar_check(tn_scalar scalar, const char *name)
{
    if (scalar.kind == TN_SCALAR_NONE)
        return tn_fail(TN_ERR_VALUE, "%s: missing; expected a number", name);
    if (scalar.kind > TN_SCALAR_UINT)
        return tn_fail(TN_ERR_TYPE, "%s: unknown kind of number, got %u; expected TN_SCALAR_*",
                       name, scalar.kind);
    if (scalar.reserved != 0)
        return tn_fail(TN_ERR_VALUE, "%s: member `reserved`: nonzero, got %u; expected 0", name,
                       scalar.reserved);
    return TN_OK;
}

/* The ranges of the dtypes of TN_MASK_INT that are shorter than 64 bits. */
static const struct {
    tn_dtype dtype;
    double low, high;
} wholes[] = { { TN_I8, INT8_MIN, INT8_MAX },
               { TN_U8, 0, UINT8_MAX },
               { TN_I16, INT16_MIN, INT16_MAX },
               { TN_I32, INT32_MIN, INT32_MAX } };

/* Returns the smallest number that would be rounded to infinity. */
static double too_large(tn_dtype dtype)
{
    return dtype == TN_F16    ? 65520.0
           : dtype == TN_BF16 ? 0x1.ffp127
           : dtype == TN_F32  ? 0x1.ffffffp127
                              : INFINITY;
}

static tn_status real_only(tn_dtype dtype, tn_scalar scalar, const char *name)
{
    char text[TN__SCALAR_TEXT];

    return tn_fail(TN_ERR_RUNTIME, "%s: not real, got %s; expected a real number for %s", name,
                   tn__scalar_text(text, scalar), tn_dtype_name(dtype));
}

static tn_status integer_fits(tn_dtype dtype, tn_scalar scalar, const char *name)
{
    char text[TN__SCALAR_TEXT];
    double value = trunc(tn_scalar_as_float(scalar));

    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++)
        if (wholes[i].dtype == dtype)
            return value >= wholes[i].low && value <= wholes[i].high
                       ? TN_OK
                       : tn_fail(TN_ERR_RUNTIME,
                                 "%s: out of the range of %s, got %s; expected %.0f to %.0f", name,
                                 tn_dtype_name(dtype), tn__scalar_text(text, scalar), wholes[i].low,
                                 wholes[i].high);
    if (scalar.kind == TN_SCALAR_BOOL || scalar.kind == TN_SCALAR_INT ||
        (scalar.kind == TN_SCALAR_UINT && dtype == TN_U64) ||
        (scalar.kind != TN_SCALAR_UINT && value >= -0x1p63 && value < 0x1p63))
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME, "%s: out of the range of %s, got %s; expected -2^63 to 2^63 - 1",
                   name, tn_dtype_name(dtype), tn__scalar_text(text, scalar));
}

tn_status tn__scalar_fits(tn_dtype dtype, tn_scalar scalar, const char *name)
{
    char text[TN__SCALAR_TEXT];
    double value = tn_scalar_as_float(scalar);
    tn_status status = tn__scalar_check(scalar, name);

    if (status != TN_OK || dtype == TN_BOOL || tn__is_complex(dtype))
        return status;
    if (tn__scalar_imaginary(scalar))
        return real_only(dtype, scalar, name);
    if (tn__is_int(dtype) || dtype == TN_U64)
        return integer_fits(dtype, scalar, name);
    if ((TN_MASK_FLOAT & TN_BIT(dtype)) && !isinf(value) && fabs(value) >= too_large(dtype))
        return tn_fail(TN_ERR_RUNTIME,
                       "%s: out of the range of %s, got %s; expected less than %g in absolute "
                       "value, or an infinity",
                       name, tn_dtype_name(dtype), tn__scalar_text(text, scalar), too_large(dtype));
    return TN_OK;
}

tn_status tn__scalar_factor(tn_dtype dtype, tn_scalar scalar, const char *name)
{
    tn_status status = tn__scalar_check(scalar, name);

    if (status != TN_OK || tn__is_complex(dtype))
        return status;
    if (scalar.kind == TN_SCALAR_COMPLEX && tn__scalar_imaginary(scalar))
        return real_only(dtype, scalar, name);
    if (!tn__is_int(dtype))
        return TN_OK;
    return tn__scalar_fits(
        dtype, dtype == TN_U8 && tn_scalar_as_float(scalar) < 0 ? tn__scalar_neg(scalar) : scalar,
        name);
}

static tn_dtype complex_of(tn_dtype dtype)
{
    if (tn__is_complex(dtype))
        return dtype;
    if ((TN_MASK_FLOAT & TN_BIT(dtype)) == 0)
        dtype = tn_default_dtype();
    return dtype == TN_F64 ? TN_C128 : TN_C64;
}

tn_dtype tn__scalar_result(tn_dtype dtype, tn_scalar scalar)
{
    if (scalar.kind == TN_SCALAR_COMPLEX)
        return complex_of(dtype);
    if (!tn__is_int(dtype) && dtype != TN_BOOL)
        return dtype;
    if (scalar.kind == TN_SCALAR_FLOAT)
        return tn_default_dtype();
    return dtype == TN_BOOL && scalar.kind != TN_SCALAR_BOOL ? TN_I64 : dtype;
}

tn_scalar tn__scalar_in(tn_dtype dtype, tn_scalar scalar)
{
    return tn__is_int(dtype) && scalar.kind == TN_SCALAR_FLOAT && tn__scalar_whole(scalar)
               ? tn_scalar_int((int64_t)scalar.as.f)
               : scalar;
}

tn_tensor *(tn__scalar_number)(tn_tensor *like, tn_scalar value)
{
    double real = tn_scalar_as_float(value);

    if (like == NULL)
        return NULL;
    if (fabs(real) >= too_large(tn_tensor_dtype(like)))
        value = tn_scalar_float(real > 0 ? INFINITY : -INFINITY);
    return tn_tensor_full(tn_no_ints(), value, tn_tensor_dtype(like), tn_tensor_device(like));
}

bool tn__scalar_is(tn_scalar scalar, int64_t number)
{
    if (scalar.kind == TN_SCALAR_BOOL || scalar.kind == TN_SCALAR_INT)
        return scalar.as.i == number;
    return scalar.kind != TN_SCALAR_NONE && scalar.kind != TN_SCALAR_UINT &&
           scalar.as.f == (double)number && !tn__scalar_imaginary(scalar);
}

bool tn__scalar_whole(tn_scalar scalar)
{
    if (scalar.kind == TN_SCALAR_FLOAT)
        return tn__is_whole(scalar.as.f);
    return scalar.kind == TN_SCALAR_BOOL || scalar.kind == TN_SCALAR_INT ||
           scalar.kind == TN_SCALAR_UINT;
}

bool tn__scalar_given(tn_scalar scalar)
{
    return scalar.kind != TN_SCALAR_NONE &&
           (scalar.kind != TN_SCALAR_FLOAT || scalar.as.f == scalar.as.f);
}

tn_scalar tn__scalar_neg(tn_scalar a)
{
    switch (a.kind) {
    case TN_SCALAR_BOOL:
    case TN_SCALAR_INT:
    case TN_SCALAR_UINT: return tn_scalar_int((int64_t)(0 - (uint64_t)a.as.i));
    case TN_SCALAR_COMPLEX: return tn_scalar_complex(-a.as.c[0], -a.as.c[1]);
    case TN_SCALAR_FLOAT: return tn_scalar_float(-a.as.f);
    default: return a;
    }
}

tn_scalar tn__scalar_minus(tn_scalar a, tn_scalar b)
{
    if (a.kind == TN_SCALAR_COMPLEX || b.kind == TN_SCALAR_COMPLEX)
        return tn_scalar_complex(tn_scalar_as_float(a) - tn_scalar_as_float(b),
                                 tn_scalar_imag(a) - tn_scalar_imag(b));
    if (a.kind == TN_SCALAR_FLOAT || b.kind == TN_SCALAR_FLOAT)
        return tn_scalar_float(tn_scalar_as_float(a) - tn_scalar_as_float(b));
    return tn_scalar_int((int64_t)((uint64_t)a.as.i - (uint64_t)b.as.i));
}

tn_scalar tn__scalar_conj(tn_scalar a)
{
    return a.kind == TN_SCALAR_COMPLEX ? tn_scalar_complex(a.as.c[0], -a.as.c[1]) : a;
}

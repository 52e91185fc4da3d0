/* SPDX-License-Identifier: MIT
 *
 * Arithmetic of one or two tensors, element by element, also maximum, minimum and clamp. The loops
 * are in elementwise_scalar.c and, in the folder simd, in elementwise.c, elementwise_costly.c,
 * integers.c and special.c. arithmetic_ternary.c has the operators on three tensors. */
#include <string.h>

#include "op/elementwise.h"

static bool is_one(const tn_scalar *alpha)
{
    return alpha->kind == TN_SCALAR_INT ? alpha->as.i == 1 : tn_scalar_as_float(*alpha) == 1;
}

/* Computes y = a + sign * alpha * b. */
static tn_status scaled(const tn_call *call, tn_scalar alpha, int sign)
{
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    double number = tn__elementwise_number(dtype, alpha);
    if (dtype == TN_BOOL) /* as in PyTorch, alpha is converted to the result's dtype */
        number = tn__elementwise_number(dtype, tn_scalar_int(tn_scalar_as_float(alpha) != 0));
    else if (sign < 0 && !((TN_MASK_FLOAT | TN_MASK_COMPLEX) & TN_BIT(dtype)))
        number = tn__elementwise_number(
            dtype, tn_scalar_int((int64_t)(0 - (uint64_t)tn_scalar_as_int(alpha))));
    else if (sign < 0)
        number = -number;
    const double numbers[3] = { number };
    return tn__elementwise_run(call, TN__EW_add_alpha, 2, numbers);
}

static tn_status run_add(const tn_call *call)
{
    const tn_scalar *alpha = &((const tn_add_options *)call->options)->alpha;
    return is_one(alpha) ? tn__elementwise_run(call, TN__EW_add, 2, NULL) : scaled(call, *alpha, 1);
}

static tn_status run_sub(const tn_call *call)
{
    const tn_scalar *alpha = &((const tn_sub_options *)call->options)->alpha;
    return is_one(alpha) ? tn__elementwise_run(call, TN__EW_sub, 2, NULL)
                         : scaled(call, *alpha, -1);
}

/* The loops multiply complex elements by a real number only. Declines a `scalar` with an imaginary
 * part; such calls are decomposed. */
static bool supports_real(const tn_scalar *scalar, const char *name, char *reason, size_t size)
{
    if (tn_scalar_imag(*scalar) == 0)
        return true;
    tn_snprint(reason, size, "%s: expected a real number", name);
    return false;
}

static bool supports_add(const tn_call *call, char *reason, size_t size)
{
    return supports_real(&((const tn_add_options *)call->options)->alpha, "alpha", reason, size);
}

static bool supports_sub(const tn_call *call, char *reason, size_t size)
{
    return supports_real(&((const tn_sub_options *)call->options)->alpha, "alpha", reason, size);
}

static bool supports_mul_scalar(const tn_call *call, char *reason, size_t size)
{
    return supports_real(&((const tn_mul_scalar_options *)call->options)->value, "value", reason,
                         size);
}

static bool supports_add_scalar(const tn_call *call, char *reason, size_t size)
{
    return supports_real(&((const tn_add_scalar_options *)call->options)->value, "value", reason,
                         size);
}

static void find_zero(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    bool *found = user, here = false;
    int64_t b;
    for (int64_t i = 0; i < n; i++) {
        memcpy(&b, at[0] + i * stride[0], sizeof b);
        here |= b == 0;
    }
    *found |= here;
}

/* Returns an error if b is a tensor of integers and contains a zero. */
static tn_status check_divisor(const tn_call *call)
{
    const tn_view *b = call->in[1];
    tn_dtype dtype = tn_view_dtype(b);
    if (!(TN_MASK_INT & TN_BIT(dtype)))
        return TN_OK;
    struct tn__span span;
    bool found = false;
    tn__span_make(&span, 1, &b, false);
    if (dtype == TN_I64) {
        tn__span_walk(&span, 0, span.count, find_zero, &found);
    } else {
        tn__load *load = tn__dtype_load(dtype, TN__I64);
        for (int64_t i = 0; i < span.count && !found; i++) {
            int64_t rest = i, number;
            const char *at = span.base[0];
            for (int32_t d = span.ndim; d-- > 0; rest /= span.shape[d])
                at += rest % span.shape[d] * span.stride[0][d];
            load(1, at, 0, &number);
            found = number == 0;
        }
    }
    return found ? tn_fail(TN_ERR_RUNTIME,
                           "%s: ZeroDivisionError: b: contains a zero; expected none for dtype %s",
                           call->op, tn_dtype_name(dtype))
                 : TN_OK;
}

static tn_status run_div(const tn_call *call)
{
    const char *mode = ((const tn_div_options *)call->options)->rounding_mode;
    if (!mode)
        return tn__elementwise_run(call, TN__EW_div, 2, NULL);
    tn_status status = check_divisor(call);
    return status ? status
                  : tn__elementwise_run(call, mode[0] == 'f' ? TN__EW_div_floor : TN__EW_div_trunc,
                                        2, NULL);
}

static tn_status run_remainder(const tn_call *call)
{
    tn_status status = check_divisor(call);
    return status ? status : tn__elementwise(call);
}

static bool supports_pow_scalar(const tn_call *call, char *reason, size_t size)
{
    tn_scalar exponent = ((const tn_pow_scalar_options *)call->options)->exponent;
    if (tn_scalar_as_float(exponent) == 3 && tn_scalar_imag(exponent) == 0)
        return true;
    tn_snprint(reason, size, "exponent: expected 3");
    return false;
}

static tn_status run_pow_scalar(const tn_call *call)
{
    return tn__elementwise_run(call, TN__EW_cube, 1, NULL);
}

/* ---- conversion of options to the numbers p, q ----------------------------------------------- */

static void fill_add_scalar(const tn_call *call, double *numbers)
{
    const tn_add_scalar_options *o = call->options;
    numbers[0] = tn__elementwise_number(tn_view_dtype(call->out[0]), o->value);
}

static void fill_mul_scalar(const tn_call *call, double *numbers)
{
    const tn_mul_scalar_options *o = call->options;
    numbers[0] = tn__elementwise_number(tn_view_dtype(call->out[0]), o->value);
}

/* Returns a bound of clamp in the form that the loops expect. A bound that is not given is NaN. For
 * floats it stays NaN; for integers it becomes `none`, as the bits of an int64. */
static double bound(tn_dtype dtype, tn_scalar scalar, int64_t none)
{
    bool given = tn_scalar_as_float(scalar) == tn_scalar_as_float(scalar);
    bool real = (TN_MASK_FLOAT & TN_BIT(dtype)) != 0;
    return tn__elementwise_number(dtype, given || real ? scalar : tn_scalar_int(none));
}

static void fill_clamp(const tn_call *call, double *numbers)
{
    const tn_clamp_options *o = call->options;
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    numbers[0] = bound(dtype, o->min, INT64_MIN);
    numbers[1] = bound(dtype, o->max, INT64_MAX);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_OVER(add, TN__REALS_BOOL, 3),
    TN__KERNEL_OVER_SUPPORTS(add, TN_MASK_COMPLEX, 3, supports_add),
    TN__KERNEL_OVER(sub, TN__REALS, 3),
    TN__KERNEL_OVER_SUPPORTS(sub, TN_MASK_COMPLEX, 3, supports_sub),
    TN__BINARY_KERNEL(mul, TN__NUMBERS_BOOL, TN__EW_mul),
    TN__KERNEL_OVER(div, (TN__FLOATS_COMPLEX | TN_MASK_INT) & TN__NOT_U64, 3),
    TN__ELEMENTWISE_KERNEL(remainder, TN__REALS &TN__NOT_U64, run_remainder, TN__EW_remainder, 2,
                           NULL),
    TN__ELEMENTWISE_KERNEL(fmod, TN__REALS &TN__NOT_U64, run_remainder, TN__EW_fmod, 2, NULL),
    TN__BINARY_KERNEL(pow, TN__REALS, TN__EW_pow),
    TN__BINARY_KERNEL(atan2, TN__FLOATS, TN__EW_atan2),
    TN__KERNEL_OVER_SUPPORTS(pow_scalar, TN__FLOATS, 1, supports_pow_scalar),
    TN__UNARY_KERNEL_OPTIONS(add_scalar, TN__REALS, TN__EW_add_scalar),
    TN__UNARY_KERNEL_SUPPORTS(add_scalar, TN_MASK_COMPLEX, TN__EW_add_scalar, supports_add_scalar),
    TN__UNARY_KERNEL_OPTIONS(mul_scalar, TN__REALS, TN__EW_mul_scalar),
    TN__UNARY_KERNEL_SUPPORTS(mul_scalar, TN_MASK_COMPLEX, TN__EW_mul_scalar, supports_mul_scalar),
    TN__UNARY_KERNEL(neg, TN__NUMBERS, TN__EW_neg),
    TN__BINARY_KERNEL(maximum, TN__REALS_BOOL, TN__EW_maximum),
    TN__BINARY_KERNEL(minimum, TN__REALS_BOOL &TN__NOT_U64, TN__EW_minimum),
    TN__UNARY_KERNEL_OPTIONS(clamp, TN__REALS &TN__NOT_U64, TN__EW_clamp),
    TN__BINARY_KERNEL(copysign, TN__FLOATS, TN__EW_copysign),
    TN__BINARY_KERNEL(fmax, TN__FLOATS, TN__EW_fmax),
    TN__BINARY_KERNEL(fmin, TN__FLOATS, TN__EW_fmin),
    TN__BINARY_KERNEL(hypot, TN__FLOATS, TN__EW_hypot),
    TN__BINARY_KERNEL(gcd, TN_MASK_INT &TN__NOT_U64, TN__EW_gcd),
    TN__BINARY_KERNEL(bitwise_left_shift, TN_MASK_INT &TN__NOT_U64, TN__EW_shift_left),
    TN__BINARY_KERNEL(bitwise_right_shift, TN_MASK_INT &TN__NOT_U64, TN__EW_shift_right),
};
TN__KERNEL_TABLE(arithmetic);

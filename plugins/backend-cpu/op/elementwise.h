/* SPDX-License-Identifier: MIT
 *
 * Elementwise operators: the functions that run an operation on any layout and dtype, and macros
 * for the rows of kernel tables. */
#ifndef TN_BACKEND_CPU_OP_ELEMENTWISE_H
#define TN_BACKEND_CPU_OP_ELEMENTWISE_H

#include <string.h>

#include "base/elementwise.h"
#include "base/kernel.h"
#include "base/span.h"

/* The data of an elementwise kernel. */
struct tn__ew_row {
    enum tn__ew op;
    int32_t inputs;
    /* Computes the numbers p, q, r of the operation from the options; NULL: no options. */
    void (*fill)(const tn_call *call, double *numbers);
};

/* Returns `scalar` in the form that the loops for `dtype` expect: a float64, or for integer dtypes
 * the bits of an int64. An integer for a loop in float32 is rounded to float32 here, because a
 * conversion through float64 would round twice. */
static inline double tn__elementwise_number(tn_dtype dtype, tn_scalar scalar)
{
    double real = tn_scalar_as_float(scalar);
    if ((TN_MASK_FLOAT | TN_MASK_COMPLEX) & TN_BIT(dtype)) {
        bool wide = dtype == TN_F64 || dtype == TN_C128;
        return scalar.kind == TN_SCALAR_INT && !wide ? (double)(float)scalar.as.i : real;
    }
    int64_t whole = tn_scalar_as_int(scalar);
    memcpy(&real, &whole, sizeof real);
    return real;
}

/* The run function of elementwise kernels: computes the operation in the kernel's row. */
tn_status tn__elementwise(const tn_call *call);
/* Computes out[0] = op(in[0], in[1]), or op(in[0]) if `inputs` is 1. out[0] may be one of the
 * inputs. `numbers` has p, q and r; NULL means zeros. */
tn_status tn__elementwise_run(const tn_call *call, enum tn__ew op, int32_t inputs,
                              const double *numbers);

/* The result may be written over each of the inputs. */
#define TN__ELEMENTWISE_KERNEL(op_, dtypes_, run_, which_, inputs_, fill_)                         \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = #op_, .device = "cpu", .name = "tn_" #op_, .revision = 1,    \
                                .dtypes = dtypes_, .run = run_, .inplace = (1 << (inputs_)) - 1,   \
                                .user = &(const struct tn__ew_row)                                 \
        {                                                                                          \
            which_, inputs_, fill_                                                                 \
        }                                                                                          \
    }
#define TN__UNARY_KERNEL(op, dtypes, which)                                                        \
    TN__ELEMENTWISE_KERNEL(op, dtypes, tn__elementwise, which, 1, NULL)
#define TN__BINARY_KERNEL(op, dtypes, which)                                                       \
    TN__ELEMENTWISE_KERNEL(op, dtypes, tn__elementwise, which, 2, NULL)
/* A kernel with options, which fill_OP converts to numbers. */
#define TN__UNARY_KERNEL_OPTIONS(op, dtypes, which)                                                \
    TN__ELEMENTWISE_KERNEL(op, dtypes, tn__elementwise, which, 1, fill_##op)
/* A kernel with options, and with the function `supports_`, which can decline a call. */
#define TN__UNARY_KERNEL_SUPPORTS(op_, dtypes_, which, supports_)                                  \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = #op_, .device = "cpu", .name = "tn_" #op_, .revision = 1,    \
                                .dtypes = dtypes_, .supports = supports_, .run = tn__elementwise,  \
                                .inplace = 1, .user = &(const struct tn__ew_row)                   \
        {                                                                                          \
            which, 1, fill_##op_                                                                   \
        }                                                                                          \
    }
#define TN__BINARY_KERNEL_OPTIONS(op, dtypes, which)                                               \
    TN__ELEMENTWISE_KERNEL(op, dtypes, tn__elementwise, which, 2, fill_##op)

/* Returns whether, along the last dimension of a span of float16 or bfloat16, the result is
 * contiguous and every operand is contiguous or has stride 0. */
static inline bool tn__float16_contiguous(const struct tn__span *span)
{
    bool contiguous = true;
    for (int32_t k = 0; span->ndim > 0 && k < span->operands; k++) {
        int64_t step = span->stride[k][span->ndim - 1];
        contiguous = contiguous && (step == 2 || (step == 0 && k > 0));
    }
    return contiguous;
}

#endif

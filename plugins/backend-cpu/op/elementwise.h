/* SPDX-License-Identifier: MIT
 *
 * Elementwise operators: one engine for all layouts and dtypes, and rows for tables of kernels. */
#ifndef TN_BACKEND_CPU_OP_ELEMENTWISE_H
#define TN_BACKEND_CPU_OP_ELEMENTWISE_H

#include <string.h>

#include "base/elementwise.h"
#include "base/kernel.h"
#include "base/span.h"

/* The data of a kernel: its operation, its number of inputs, and how its options become numbers. */
struct tn__ew_row {
    enum tn__ew op;
    int32_t inputs;
    void (*fill)(const tn_call *call, double *numbers); /* NULL: no options */
};

/* A number as the loops for `dtype` take it: of integers the bits of an int64. An integer is
 * rounded to float32 once. */
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

/* A kernel's function, which reads its row. */
tn_status tn__elementwise(const tn_call *call);
/* out[0] = op(in[0], in[1]) of one or two inputs; out[0] may be one of them. `numbers` has three
 * elements; NULL: zeros. */
tn_status tn__elementwise_run(const tn_call *call, enum tn__ew op, int32_t inputs,
                              const double *numbers);

#define TN__ELEMENTWISE_KERNEL(op_, dtypes_, run_, ...)                                            \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = #op_, .device = "cpu", .name = "tn_" #op_, .revision = 1,    \
                                .dtypes = dtypes_, .run = run_, .data = &(const struct tn__ew_row) \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define TN__UNARY_KERNEL(op, dtypes, which)                                                        \
    TN__ELEMENTWISE_KERNEL(op, dtypes, tn__elementwise, which, 1, NULL)
#define TN__BINARY_KERNEL(op, dtypes, which)                                                       \
    TN__ELEMENTWISE_KERNEL(op, dtypes, tn__elementwise, which, 2, NULL)
/* With options, which fill_OP turns into numbers. */
#define TN__UNARY_KERNEL_OPTIONS(op, dtypes, which)                                                \
    TN__ELEMENTWISE_KERNEL(op, dtypes, tn__elementwise, which, 1, fill_##op)
/* The same, declining what `supports_` does. */
#define TN__UNARY_KERNEL_SUPPORTS(op_, dtypes_, which, supports_)                                  \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = #op_, .device = "cpu", .name = "tn_" #op_, .revision = 1,    \
                                .dtypes = dtypes_, .supports = supports_, .run = tn__elementwise,  \
                                .data = &(const struct tn__ew_row)                                 \
        {                                                                                          \
            which, 1, fill_##op_                                                                   \
        }                                                                                          \
    }
#define TN__BINARY_KERNEL_OPTIONS(op, dtypes, which)                                               \
    TN__ELEMENTWISE_KERNEL(op, dtypes, tn__elementwise, which, 2, fill_##op)

/* Whether every operand of a span of float16 or bfloat16 is contiguous or has stride 0, and the
 * result is contiguous. */
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

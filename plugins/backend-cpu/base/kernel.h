/* SPDX-License-Identifier: MIT
 *
 * Tables of kernels: each file of kernels ends with its own, and plugin.c joins them. */
#ifndef TN_BACKEND_CPU_KERNEL_H
#define TN_BACKEND_CPU_KERNEL_H

#include <tenon/plugin.h>

/* Sets of dtypes. */
#define TN__FLOATS TN_MASK_FLOAT
#define TN__F32_F64 (TN_BIT(TN_F32) | TN_BIT(TN_F64))
#define TN__FLOATS_COMPLEX (TN_MASK_FLOAT | TN_MASK_COMPLEX)
#define TN__REALS (TN_MASK_FLOAT | TN_MASK_INT)
#define TN__REALS_BOOL (TN__REALS | TN_BIT(TN_BOOL))
#define TN__NUMBERS TN_MASK_ARITH
#define TN__NUMBERS_BOOL (TN_MASK_ARITH | TN_BIT(TN_BOOL))
#define TN__INTS_BOOL (TN_MASK_INT | TN_BIT(TN_BOOL))
/* Integers are computed in int64, which does not order uint64. */
#define TN__NOT_U64 ~TN_BIT(TN_U64)

/* Rows of a table: run_OP is its function. */
#define TN__KERNEL(op_, dtypes_) TN_KERNEL(#op_, "cpu", "tn_" #op_, dtypes_, run_##op_)
/* `supports_` declines some calls; those are decomposed. */
#define TN__KERNEL_SUPPORTS(op_, dtypes_, supports_)                                               \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = #op_, .device = "cpu", .name = "tn_" #op_, .revision = 1,    \
                                .dtypes = dtypes_, .supports = supports_, .run = run_##op_         \
    }

struct tn__kernel_table {
    const tn_kernel_def *rows;
    size_t count;
};
/* The last line of a file of kernels. */
#define TN__KERNEL_TABLE(family)                                                                   \
    const struct tn__kernel_table tn__kernels_##family = { kernels,                                \
                                                           sizeof kernels / sizeof *kernels }

/* Element i of a row of int64. */
static inline int64_t tn__kernel_int(const tn_view *row, int64_t i)
{
    const char *at = (const char *)row->data + row->byte_offset;

    return ((const int64_t *)(const void *)at)[i * row->strides[0]];
}

/* What a generator's state, where there is one, makes of its key and its first block: see
 * sdk/operators/random.ops. */
static inline void tn__kernel_state(const tn_view *state, uint64_t *seed, uint64_t *block)
{
    if (state == NULL)
        return;
    *seed = (uint64_t)tn__kernel_int(state, 0);
    *block += (uint64_t)tn__kernel_int(state, 1);
}

/* All tables: one for each file of kernels. */
/* clang-format off */
#define TN__KERNEL_FAMILIES(X)                                                                     \
    X(activation) X(arithmetic) X(attention) X(bitwise) X(compare) X(complex) X(conv)              \
    X(conv_grad_weight) X(copy) X(creation) X(index) X(index_nonzero) X(linear)                    \
    X(loss_elementwise) X(loss_nll) X(matmul) X(norm) X(optimizer) X(pool) X(random)               \
    X(random_permutation) X(reduction) X(scan) X(softmax) X(sort) X(ternary) X(where)
/* clang-format on */
#define TN__DECLARE_TABLE(family) extern const struct tn__kernel_table tn__kernels_##family;
TN__KERNEL_FAMILIES(TN__DECLARE_TABLE)
#undef TN__DECLARE_TABLE

#endif

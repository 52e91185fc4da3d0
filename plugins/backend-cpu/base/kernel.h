/* SPDX-License-Identifier: MIT
 *
 * Tables of kernels: each file with kernels ends with a table of its own, and plugin.c joins the
 * tables. */
#ifndef TN_BACKEND_CPU_BASE_KERNEL_H
#define TN_BACKEND_CPU_BASE_KERNEL_H

#include <tenon/plugin.h>

#include "base/philox.h"

/* Sets of dtypes for the rows of tables. */
#define TN__FLOATS TN_MASK_FLOAT
#define TN__F32_F64 (TN_BIT(TN_F32) | TN_BIT(TN_F64))
#define TN__FLOATS_COMPLEX (TN_MASK_FLOAT | TN_MASK_COMPLEX)
#define TN__REALS (TN_MASK_FLOAT | TN_MASK_INT)
#define TN__REALS_BOOL (TN__REALS | TN_BIT(TN_BOOL))
#define TN__NUMBERS TN_MASK_ARITH
#define TN__NUMBERS_BOOL (TN_MASK_ARITH | TN_BIT(TN_BOOL))
#define TN__INTS_BOOL (TN_MASK_INT | TN_BIT(TN_BOOL))
/* For kernels that depend on the sign of integers, such as comparison and division: they compute in
 * int64, in which large uint64 are negative. */
#define TN__NOT_U64 ~TN_BIT(TN_U64)

/* A row of a table: the operator OP, whose kernel is the function run_OP. */
#define TN__KERNEL(op_, dtypes_) TN_KERNEL(#op_, "cpu", "tn_" #op_, dtypes_, run_##op_)
/* A row with the function `supports_`, which can decline a call. A declined call goes to the next
 * kernel, or is decomposed if there is none. */
#define TN__KERNEL_SUPPORTS(op_, dtypes_, supports_)                                               \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = #op_, .device = "cpu", .name = "tn_" #op_, .revision = 1,    \
                                .dtypes = dtypes_, .supports = supports_, .run = run_##op_         \
    }
/* A row whose kernel may write its result over each input in the mask `inplace_`. */
#define TN__KERNEL_OVER(op_, dtypes_, inplace_)                                                    \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = #op_, .device = "cpu", .name = "tn_" #op_, .revision = 1,    \
                                .dtypes = dtypes_, .run = run_##op_, .inplace = inplace_           \
    }
#define TN__KERNEL_OVER_SUPPORTS(op_, dtypes_, inplace_, supports_)                                \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = #op_, .device = "cpu", .name = "tn_" #op_, .revision = 1,    \
                                .dtypes = dtypes_, .supports = supports_, .run = run_##op_,        \
                                .inplace = inplace_                                                \
    }
/* A row whose kernel keeps what it prepares from its weights. The other arguments are members of
 * tn_kernel_def: weights, prepare_key, prepare, release, and supports if there is one. */
#define TN__KERNEL_KEEPS(op_, dtypes_, ...)                                                        \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = #op_, .device = "cpu", .name = "tn_" #op_, .revision = 1,    \
                                .dtypes = dtypes_, .run = run_##op_, __VA_ARGS__                   \
    }

struct tn__kernel_table {
    const tn_kernel_def *rows;
    size_t count;
};
/* The last line of each file with kernels: exports its array `kernels`. */
#define TN__KERNEL_TABLE(family)                                                                   \
    const struct tn__kernel_table tn__kernels_##family = { kernels,                                \
                                                           sizeof kernels / sizeof *kernels }

/* Returns element i of a tensor of int64 with one dimension. */
static inline int64_t tn__kernel_int(const tn_view *row, int64_t i)
{
    const char *at = (const char *)row->data + row->byte_offset;

    return ((const int64_t *)(const void *)at)[i * row->strides[0]];
}

/* Returns where the sequence of random numbers begins for an operator with the options seed and
 * block and the optional tensor `state`. sdk/operators/random.ops explains them. */
static inline struct tn__philox tn__kernel_philox(int64_t seed, int64_t block, const tn_view *state)
{
    struct tn__philox g = { (uint64_t)seed, (uint64_t)block, 0 };
    if (state) {
        g.seed = (uint64_t)tn__kernel_int(state, 0);
        g.block += (uint64_t)tn__kernel_int(state, 1);
        g.lane = (uint64_t)tn__kernel_int(state, 2);
    }
    return g;
}

/* The names of all tables: one for each file with kernels. */
/* clang-format off */
#define TN__KERNEL_FAMILIES(X)                                                                     \
    X(activation) X(addmm) X(arithmetic) X(arithmetic_bits) X(arithmetic_ternary) X(attention)     \
    X(compare) X(compare_bitwise) X(compare_where) X(complex) X(conv) X(conv_grad_weight)          \
    X(copy) X(creation) X(embedding) X(fft) X(histogram) X(index) X(index_nonzero)                 \
    X(index_reduce) X(linalg_factor) X(linalg_orthogonal) X(linear) X(loss_elementwise)            \
    X(loss_nll) X(masked_scatter) X(matmul) X(norm) X(optimizer) X(optimizer_rules) X(pool)        \
    X(quant_convolution) X(quant_linear) X(quant_packed) X(quant_rows)                             \
    X(random) X(random_permutation) X(reduction) X(rnn) X(scan) X(scan_extreme) X(scan_grad)       \
    X(search) X(softmax) X(sort) X(special) X(unary)
/* clang-format on */
#define TN__DECLARE_TABLE(family) extern const struct tn__kernel_table tn__kernels_##family;
TN__KERNEL_FAMILIES(TN__DECLARE_TABLE)
#undef TN__DECLARE_TABLE

#endif

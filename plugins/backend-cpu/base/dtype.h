/* SPDX-License-Identifier: MIT
 *
 * Compute types, and conversion between compute types and the dtypes of tensors. */
#ifndef TN_BACKEND_CPU_BASE_DTYPE_H
#define TN_BACKEND_CPU_BASE_DTYPE_H

#include <tenon/plugin.h>

/* The types that kernels compute in. Elements of all other dtypes are converted in chunks: float16,
 * bfloat16 and float8 to float32, integers and bool to int64. A result in int64, cut to the bits of
 * a narrower integer dtype, equals the wrapped-around result of arithmetic in that dtype. */
enum tn__ct { TN__F32, TN__F64, TN__I64, TN__C64, TN__C128, TN__CT_COUNT };

#define TN__CT_MAX_SIZE 16
#define TN__CHUNK 512 /* elements converted at a time; the buffers fit the first-level cache */

/* The floats of 16 bits, which are computed in float32. */
#define TN__NARROW (TN_BIT(TN_F16) | TN_BIT(TN_BF16))
static inline bool tn__dtype_is_narrow(tn_dtype dtype)
{
    return dtype == TN_F16 || dtype == TN_BF16;
}

size_t tn__dtype_ct_size(enum tn__ct ct);
/* Returns the compute type for arithmetic in `dtype`. */
enum tn__ct tn__dtype_ct(tn_dtype dtype);
/* Returns the dtype whose elements have exactly this compute type. */
tn_dtype tn__dtype_of_ct(enum tn__ct ct);
/* Returns the compute type for converting `from` to `to`: elements are loaded as that type and
 * then stored as `to`. */
enum tn__ct tn__dtype_ct_between(tn_dtype from, tn_dtype to);

/* tn__load converts n elements of a tensor, `stride` bytes apart, to contiguous numbers of a
 * compute type; tn__store converts contiguous numbers back. */
typedef void tn__load(int64_t n, const char *from, int64_t stride, void *to);
typedef void tn__store(int64_t n, const void *from, char *to, int64_t stride);
tn__load *tn__dtype_load(tn_dtype from, enum tn__ct ct);
tn__store *tn__dtype_store(enum tn__ct ct, tn_dtype to);

#endif

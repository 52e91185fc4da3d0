/* SPDX-License-Identifier: MIT
 *
 * Compute types and conversion between them and the dtypes of tensors. */
#ifndef TN_BACKEND_CPU_BASE_DTYPE_H
#define TN_BACKEND_CPU_BASE_DTYPE_H

#include <tenon/plugin.h>

/* The types that kernels compute in. All others are converted in chunks: float16, bfloat16 and
 * float8 to float32, integers and bool to int64 (which wraps around to the narrower type just as
 * its own arithmetic does). */
enum tn__ct { TN__F32, TN__F64, TN__I64, TN__C64, TN__C128, TN__CT_COUNT };

#define TN__CT_MAX_SIZE 16
#define TN__CHUNK 512 /* elements converted at a time: buffers fit the first-level cache */

size_t tn__dtype_ct_size(enum tn__ct ct);
/* The compute type of arithmetic in `dtype`. */
enum tn__ct tn__dtype_ct(tn_dtype dtype);
/* The dtype that a compute type is. */
tn_dtype tn__dtype_of_ct(enum tn__ct ct);
/* The compute type through which values go from one dtype to another. */
enum tn__ct tn__dtype_ct_between(tn_dtype from, tn_dtype to);

/* n elements, `stride` bytes apart, to contiguous numbers of a compute type, and back. */
typedef void tn__load(int64_t n, const char *from, int64_t stride, void *to);
typedef void tn__store(int64_t n, const void *from, char *to, int64_t stride);
tn__load *tn__dtype_load(tn_dtype from, enum tn__ct ct);
tn__store *tn__dtype_store(enum tn__ct ct, tn_dtype to);

#endif

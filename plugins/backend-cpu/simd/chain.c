/* SPDX-License-Identifier: MIT
 *
 * Chains of elementwise operations on contiguous float32 and float64, for op/fuse.c. The results of
 * the steps stay in registers. Each is rounded as by a separate loop: this file is compiled without
 * contraction to fused multiply-adds. */
#include "simd/simd.h"

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX2__)
#define BYTES 32
#else
#define BYTES 16
#endif

#define T float
#define INT int32_t
#define NAME(x) x##_f32
#include "simd/chain_template.h"
#undef T
#undef INT
#undef NAME
#define T double
#define INT int64_t
#define NAME(x) x##_f64
#include "simd/chain_template.h"

const struct tn__simd_chain TN__SIMD_TABLE(chain) = {
    .elements = { TN__CHAIN_VECTORS * BYTES / 4, TN__CHAIN_VECTORS *BYTES / 8 },
    .run = { chain_f32, chain_f64 },
};

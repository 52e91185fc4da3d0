/* SPDX-License-Identifier: MIT
 *
 * The inner loops of Fourier transforms. As gemm.c, this file is compiled with fused multiply-adds
 * if the instruction set has them, for speed and for smaller rounding errors. */
#include <string.h>

#include "simd/simd.h"

/* Lists of elements of two vectors a, b of n elements, for __builtin_shufflevector. LOW, HIGH: the
 * elements of a and b in turn, from the first and from the second halves. EVEN, ODD: every second
 * element. BACK: a in reverse order. */
/* clang-format off */
#define LOW_2 0, 2
#define HIGH_2 1, 3
#define EVEN_2 0, 2
#define ODD_2 1, 3
#define BACK_2 1, 0
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define EVEN_4 0, 2, 4, 6
#define ODD_4 1, 3, 5, 7
#define BACK_4 3, 2, 1, 0
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define EVEN_8 0, 2, 4, 6, 8, 10, 12, 14
#define ODD_8 1, 3, 5, 7, 9, 11, 13, 15
#define BACK_8 7, 6, 5, 4, 3, 2, 1, 0
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define EVEN_16 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD_16 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define BACK_16 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0
/* clang-format on */

#if defined(__AVX512F__)
#define BYTES 64
#define LIST_F32(name) name##_16
#define LIST_F64(name) name##_8
#elif defined(__AVX2__)
#define BYTES 32
#define LIST_F32(name) name##_8
#define LIST_F64(name) name##_4
#else
#define BYTES 16
#define LIST_F32(name) name##_4
#define LIST_F64(name) name##_2
#endif

#define T float
#define NAME(x) x##_f32
#define LIST LIST_F32
#include "simd/fft_passes_template.h"
#include "simd/fft_template.h"
#undef T
#undef NAME
#undef LIST
#define T double
#define NAME(x) x##_f64
#define LIST LIST_F64
#include "simd/fft_passes_template.h"
#include "simd/fft_template.h"
#undef T
#undef NAME
#undef LIST

const struct tn__simd_fft TN__SIMD_TABLE(fft) = { .of = { &loops_f32, &loops_f64 } };

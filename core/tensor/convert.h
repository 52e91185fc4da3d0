/* SPDX-License-Identifier: MIT
 *
 * Single elements in memory of the host: for printing, tn_tensor_item, and copies in and out of
 * tensors that are not contiguous. Slow and simple; the fast conversions are in kernels. */
#ifndef TN_CORE_TENSOR_CONVERT_H
#define TN_CORE_TENSOR_CONVERT_H

#include "core/tensor/internal.h"

/* One element of any dtype. `kind` says which members are set. */
typedef struct tn__number {
    enum { TN__NUMBER_INT, TN__NUMBER_UINT, TN__NUMBER_FLOAT, TN__NUMBER_COMPLEX } kind;
    int64_t i;
    uint64_t u;
    double re, im;
} tn__number;

double tn__convert_f16_value(uint16_t bits);
double tn__convert_bf16_value(uint16_t bits);
double tn__convert_f8_e4m3_value(uint8_t bits);
double tn__convert_f8_e5m2_value(uint8_t bits);
/* Round to float32 and then to the dtype, each time to nearest even. A number that is too large
 * becomes infinity, or the largest number if the dtype has no infinity (as in PyTorch). */
uint16_t tn__convert_f16_bits(double value);
uint16_t tn__convert_bf16_bits(double value);
uint8_t tn__convert_f8_e4m3_bits(double value);
uint8_t tn__convert_f8_e5m2_bits(double value);

/* Reads an element. The address need not be aligned. */
tn__number tn__convert_read(const void *at, tn_dtype dtype);
double tn__convert_number(const tn__number *number);
/* Reads an element as a scalar of its own kind, without loss of precision. */
tn_scalar tn__convert_scalar(const void *at, tn_dtype dtype);
/* Writes a number as an element of `dtype`. For an integer dtype, a floating-point number is
 * converted to 64 bits first: NaN becomes 0, and a number out of range becomes the nearest one. An
 * integer that does not fit the dtype wraps around, as in C. */
void tn__convert_write(void *at, tn_dtype dtype, tn_scalar value);

/* tn__convert_gather() copies strided elements to row-major order at `to`; tn__convert_scatter()
 * copies row-major elements to strided places at `to`. Both work in memory of the host. */
void tn__convert_gather(void *to, const void *from, size_t item, tn_ints shape,
                        const int64_t *strides);
void tn__convert_scatter(void *to, const void *from, size_t item, tn_ints shape,
                         const int64_t *strides);

#endif

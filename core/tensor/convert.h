/* SPDX-License-Identifier: MIT
 *
 * Elements on the host, one by one: for printing, item, and copies in and out of tensors that
 * are not contiguous. Slow and simple; kernels are elsewhere. */
#ifndef TN_CORE_TENSOR_CONVERT_H
#define TN_CORE_TENSOR_CONVERT_H

#include "core/tensor/internal.h"

/* One element of any type: the member says which. */
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
/* Round to nearest even; too large becomes infinity, the largest number where the type has none
 * (as PyTorch does). */
uint16_t tn__convert_f16_bits(double value);
uint16_t tn__convert_bf16_bits(double value);
uint8_t tn__convert_f8_e4m3_bits(double value);
uint8_t tn__convert_f8_e5m2_bits(double value);

/* Reads an element at any address. */
tn__number tn__convert_read(const void *at, tn_dtype dtype);
double tn__convert_number(const tn__number *number);
/* The same with nothing lost. */
tn_scalar tn__convert_scalar(const void *at, tn_dtype dtype);
/* Writes a number as C converts it (whole numbers wrap around; NaN and what does not fit become
 * the nearest number or 0). */
void tn__convert_write(void *at, tn_dtype dtype, tn_scalar value);

/* Copies the elements of a strided piece of host memory to row-major order at `to`, and back. */
void tn__convert_gather(void *to, const void *from, size_t item, tn_ints shape,
                        const int64_t *strides);
void tn__convert_scatter(void *to, const void *from, size_t item, tn_ints shape,
                         const int64_t *strides);

#endif

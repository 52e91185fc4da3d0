/* SPDX-License-Identifier: MIT
 *
 * Steps of optimizers over contiguous elements, in one pass, and sums for the norm of gradients.
 * The options of the optimizer are rounded to the type of the elements first. */
#include "simd/simd.h"

#include <math.h>

enum { LANES = 16 };

#define root_f32 sqrtf
#define root_f64 sqrt
#define TEMPLATE "simd/optimizer_template.h"
#include "base/for_floats.h"

const struct tn__simd_optimizer TN__SIMD_TABLE(optimizer) = {
    .sgd = { [TN__F32] = sgd_f32, [TN__F64] = sgd_f64 },
    .adam = { [TN__F32] = adam_f32, [TN__F64] = adam_f64 },
    .sum = { [TN__F32] = sum_f32, [TN__F64] = sum_f64 },
    .squares = { [TN__F32] = squares_f32, [TN__F64] = squares_f64 },
    .largest = { [TN__F32] = largest_f32, [TN__F64] = largest_f64 },
};

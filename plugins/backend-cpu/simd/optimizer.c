/* SPDX-License-Identifier: MIT
 *
 * Steps of optimizers over contiguous elements, in one pass, and sums for the norm of gradients.
 * The options of the optimizer are rounded to the type of the elements first. */
#include "simd/simd.h"

#include "base/vectorize.h"

#include <math.h>

enum { LANES = 16 };

#define root_f32 sqrtf
#define root_f64 sqrt
#define TEMPLATE "simd/optimizer_template.h"
#include "base/for_floats.h"
#define TEMPLATE "simd/optimizer_rules_template.h"
#include "base/for_floats.h"

const struct tn__simd_optimizer TN__SIMD_TABLE(optimizer) = {
    .sgd = { [TN__F32] = sgd_f32, [TN__F64] = sgd_f64 },
    .adam = { [TN__F32] = adam_f32, [TN__F64] = adam_f64 },
    .nadam = { [TN__F32] = nadam_f32, [TN__F64] = nadam_f64 },
    .radam = { [TN__F32] = radam_f32, [TN__F64] = radam_f64 },
    .adamax = { [TN__F32] = adamax_f32, [TN__F64] = adamax_f64 },
    .adagrad = { [TN__F32] = adagrad_f32, [TN__F64] = adagrad_f64 },
    .adadelta = { [TN__F32] = adadelta_f32, [TN__F64] = adadelta_f64 },
    .rmsprop = { [TN__F32] = rmsprop_f32, [TN__F64] = rmsprop_f64 },
    .rprop = { [TN__F32] = rprop_f32, [TN__F64] = rprop_f64 },
    .asgd = { [TN__F32] = asgd_f32, [TN__F64] = asgd_f64 },
    .lion = { [TN__F32] = lion_f32, [TN__F64] = lion_f64 },
    .sum = { [TN__F32] = sum_f32, [TN__F64] = sum_f64 },
    .squares = { [TN__F32] = squares_f32, [TN__F64] = squares_f64 },
    .largest = { [TN__F32] = largest_f32, [TN__F64] = largest_f64 },
    .unscale = { [TN__F32] = unscale_f32, [TN__F64] = unscale_f64 },
};

/* SPDX-License-Identifier: MIT
 *
 * Softmax, its gradient and the rows of attention. */
#include <math.h>
#include <string.h>

#include "math/float64.h"
#include "simd/elementwise.h"
#include "simd/simd.h"

#define TEMPLATE "simd/sum_template.h"
#include "base/for_floats.h"

/* ---- softmax --------------------------------------------------------------------------------- */

#define EXP_f32 tn__near_exp_below_f32
#define EXP_f64 tn__exp64_below
enum { NEIGHBOURS = TN__SOFTMAX_COLUMNS, IN_TYPE = 32 /* rows that are summed in T */ };
#define LINE(T, p, i, s) ((T *)(void *)((p) + (i) * (s)))
#define TEMPLATE "simd/softmax_template.h"
#include "base/for_floats.h"

const struct tn__simd_softmax TN__SIMD_TABLE(softmax) = {
    .max_f32 = max_f32,
    .max_f64 = max_f64,
    .softmax_f32 = softmax_f32,
    .softmax_f64 = softmax_f64,
    .log_softmax_f32 = log_softmax_f32,
    .log_softmax_f64 = log_softmax_f64,
    .log_softmax_grad_f32 = log_softmax_grad_f32,
    .log_softmax_grad_f64 = log_softmax_grad_f64,
    .softmax_grad_f32 = softmax_grad_f32,
    .softmax_grad_f64 = softmax_grad_f64,
    .softmax_columns = { softmax_columns_f32, softmax_columns_f64 },
    .softmax_grad_columns = { softmax_grad_columns_f32, softmax_grad_columns_f64 },
    .attend_f32 = attend_f32,
    .attend_f64 = attend_f64,
    .attend_grad_f32 = attend_grad_f32,
    .attend_grad_f64 = attend_grad_f64,
};

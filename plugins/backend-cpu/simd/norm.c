/* SPDX-License-Identifier: MIT
 *
 * Normalisation. One thread computes a population, with its sums in a fixed order; of strided
 * populations, a block of rows: the bits do not depend on the number of threads. */
#include <math.h>
#include <string.h>

#include "math/float32.h"
#include "simd/norm.h"
#include "simd/simd.h"

enum { LANES = 16, ROWS_AT_ONCE = 64, SIDE_AT_ONCE = 256 };

/* The gradient g at k after relu, if there is one. */
#define GATED(g, k) (gated && gate[k] <= 0 ? 0 : (g))

#define TEMPLATE "simd/norm_template.h"
#include "base/for_floats.h"

#define BOTH(name)                                                                                 \
    {                                                                                              \
        name##_f32, name##_f64                                                                     \
    }

const struct tn__simd_norm TN__SIMD_TABLE(norm) = {
    .forth = BOTH(forth),
    .channels = BOTH(channels),
    .rows = BOTH(rows),
    .columns = BOTH(columns),
    .side_sums = BOTH(side_sums),
    .side_moments = BOTH(side_moments),
    .side_forth = BOTH(side_forth),
    .side_back_sums = BOTH(side_back_sums),
    .side_back_moments = BOTH(side_back_moments),
    .side_back = BOTH(side_back),
};

/* SPDX-License-Identifier: MIT
 *
 * Normalization. A population (or, with the channels last, a block of rows) is computed by one
 * thread, with sums in a fixed order, so that the result has the same bits for any number of
 * threads. */
#include <math.h>
#include <string.h>

#include "math/float32.h"
#include "simd/norm.h"
#include "simd/simd.h"

/* LANES: running sums of a loop. ROWS_AT_ONCE: elements of gw and gb that are computed together.
 * SIDE_AT_ONCE: channels that are computed together, with the channels last. */
enum { LANES = 16, ROWS_AT_ONCE = 64, SIDE_AT_ONCE = 256 };

/* The gradient g of element k; if a relu followed (`gated`), 0 where relu's result was 0 or its
 * limit. */
#define GATED(g, k) (gated && (gate[k] <= 0 || gate[k] >= max) ? 0 : (g))

#define TEMPLATE "simd/norm_template.h"
#include "base/for_floats.h"

#define BOTH(name)                                                                                 \
    {                                                                                              \
        name##_f32, name##_f64                                                                     \
    }

const struct tn__simd_norm TN__SIMD_TABLE(norm) = {
    .forward = BOTH(forward),
    .channels = BOTH(channels),
    .rows = BOTH(rows),
    .columns = BOTH(columns),
    .last_sums = BOTH(last_sums),
    .last_moments = BOTH(last_moments),
    .last_forward = BOTH(last_forward),
    .last_back_sums = BOTH(last_back_sums),
    .last_back_moments = BOTH(last_back_moments),
    .last_back = BOTH(last_back),
    .running = BOTH(running),
    .follow_rows = BOTH(follow_rows),
};

/* SPDX-License-Identifier: MIT
 *
 * Maxima and their indices, for max_pool, forward only: the gradients are in
 * nn/pool_grad_template.h. */
#include "simd/elementwise.h"
#include "simd/simd.h"

enum { BLOCK = 8 };

typedef int32_t index_f32;
typedef int64_t index_f64;
#define TEMPLATE "simd/pool_max_template.h"
#include "base/for_floats.h"

#define POOL(member)                                                                               \
    {                                                                                              \
        member##_f32, member##_f64                                                                 \
    }

const struct tn__simd_pool_max TN__SIMD_TABLE(pool_max) = {
    .first = POOL(first),
    .next = POOL(next),
    .flatten = POOL(flatten),
    .larger = POOL(larger),
    .pairs = POOL(pairs),
    .store = POOL(store),
};

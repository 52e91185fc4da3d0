/* SPDX-License-Identifier: MIT
 *
 * Where a sequence of random numbers begins. sdk/operators/random.ops explains the members. */
#ifndef TN_BACKEND_CPU_BASE_PHILOX_H
#define TN_BACKEND_CPU_BASE_PHILOX_H

#include <stdint.h>

/* The key, and the first counter of 128 bits: `block` is its lower half, `lane` its upper half. */
struct tn__philox {
    uint64_t seed, block, lane;
};

#endif

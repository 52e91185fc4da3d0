/* SPDX-License-Identifier: MIT
 *
 * Random numbers from Philox. */
#include <math.h>
#include <string.h>

#include "math/exp_log.h"
#include "simd/elementwise.h"
#include "simd/simd.h"

/* ---- random numbers -------------------------------------------------------------------------- */

/* Philox 4x32-10 of Salmon et al. (Random123), many blocks side by side: words[k][j] is word k
 * of block `block + j`. */
enum { SIDE = 64 }; /* some vectors, so that their rounds need not wait for each other */

static void philox(uint64_t seed, uint64_t block, uint32_t words[4][SIDE])
{
    uint32_t *c0 = words[0], *c1 = words[1], *c2 = words[2], *c3 = words[3];
    for (int j = 0; j < SIDE; j++) {
        c0[j] = (uint32_t)(block + (uint64_t)j);
        c1[j] = (uint32_t)((block + (uint64_t)j) >> 32);
        c2[j] = c3[j] = 0;
    }
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        for (int j = 0; j < SIDE; j++) {
            uint64_t p0 = (uint64_t)c0[j] * 0xD2511F53u, p1 = (uint64_t)c2[j] * 0xCD9E8D57u;
            uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1[j] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3[j] ^ k1;
            c1[j] = (uint32_t)p1;
            c3[j] = (uint32_t)p0;
            c0[j] = n0;
            c2[j] = n2;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* Element `first + i` is made from `words_each` words of the stream: w(0), w(1) ... in `expr`. A
 * batch of blocks at a time; the first may begin in the middle of a block. Element e of each block
 * is worked out for all blocks, side by side. */
#define w(k) words[e * WORDS + (k)][j]
#define RANDOM(name, T, words_each, expr)                                                          \
    static void name(uint64_t seed, uint64_t block, uint64_t first, int64_t n, T p0, T p1, T *y)   \
    {                                                                                              \
        enum { WORDS = words_each, PER = 4 / WORDS, BATCH = SIDE * PER };                          \
        uint32_t words[4][SIDE];                                                                   \
        T beside[PER][SIDE], numbers[BATCH];                                                       \
        int64_t skip = (int64_t)(first % PER);                                                     \
        block += first / PER;                                                                      \
        for (int64_t done = 0; done < n; block += SIDE, skip = 0) {                                \
            philox(seed, block, words);                                                            \
            for (int e = 0; e < PER; e++)                                                          \
                for (int j = 0; j < SIDE; j++)                                                     \
                    beside[e][j] = expr;                                                           \
            for (int j = 0; j < SIDE; j++)                                                         \
                for (int e = 0; e < PER; e++)                                                      \
                    numbers[j * PER + e] = beside[e][j];                                           \
            int64_t count = n - done < BATCH - skip ? n - done : BATCH - skip;                     \
            memcpy(y + done, numbers + skip, (size_t)count * sizeof *y);                           \
            done += count;                                                                         \
        }                                                                                          \
    }
/* The words become signed first: that conversion to float exists everywhere. */
#define UNIT32(word) ((float)(int32_t)((word) >> 8) * 0x1p-24f)
#define BITS53(high, low) (int64_t)(((uint64_t)(high) << 32 | (low)) >> 11)
#define UNIT64(high, low) ((double)BITS53(high, low) * 0x1p-53)
RANDOM(uniform_f32, float, 1, __builtin_fmaf(UNIT32(w(0)), p1, p0))
RANDOM(uniform_f64, double, 2, __builtin_fma(UNIT64(w(0), w(1)), p1, p0))
RANDOM(normal_f32, float, 2,
       p0 + p1 * (__builtin_sqrtf(-2 * tn__log_f32(UNIT32(w(0)) + 0x1p-24f)) *
                  tn__cos_turn_f32(UNIT32(w(1)))))
RANDOM(normal_f64, double, 4,
       p0 + p1 * (__builtin_sqrt(-2 * tn__log_f64(UNIT64(w(0), w(1)) + 0x1p-53)) *
                  tn__cos_turn_f64(UNIT64(w(2), w(3)))))

const struct tn__simd_random TN__SIMD_TABLE(random) = {
    .uniform_f32 = uniform_f32,
    .uniform_f64 = uniform_f64,
    .normal_f32 = normal_f32,
    .normal_f64 = normal_f64,
};

/* SPDX-License-Identifier: MIT
 *
 * Random numbers, uniform and normal, from the generator Philox. */
#include <math.h>
#include <string.h>

#include "math/exp_log.h"
#include "simd/elementwise.h"
#include "simd/simd.h"

/* ---- random numbers -------------------------------------------------------------------------- */

/* philox() computes BLOCKS blocks of Philox 4x32-10 (Salmon et al., Random123): words[k][j] becomes
 * word k of the block with the number g->block + j. */
enum { BLOCKS = 64 }; /* several vectors, whose rounds need not wait for each other */

static void philox(const struct tn__philox *g, uint32_t words[4][BLOCKS])
{
    uint32_t *c0 = words[0], *c1 = words[1], *c2 = words[2], *c3 = words[3];
    for (int j = 0; j < BLOCKS; j++) {
        c0[j] = (uint32_t)(g->block + (uint64_t)j);
        c1[j] = (uint32_t)((g->block + (uint64_t)j) >> 32);
        c2[j] = (uint32_t)g->lane;
        c3[j] = (uint32_t)(g->lane >> 32);
    }
    uint32_t k0 = (uint32_t)g->seed, k1 = (uint32_t)(g->seed >> 32);
    for (int round = 0; round < 10; round++) {
        for (int j = 0; j < BLOCKS; j++) {
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

#define TEMPLATE "simd/random_template.h"
#include "base/for_floats.h"

/* Convert words to numbers in [0, 1). The words are cast to a signed type first, because every
 * instruction set can convert signed integers to floats. */
#define UNIT32(word) ((float)(int32_t)((word) >> 8) * 0x1p-24f)
#define BITS53(high, low) (int64_t)(((uint64_t)(high) << 32 | (low)) >> 11)
#define UNIT64(high, low) ((double)BITS53(high, low) * 0x1p-53)
TN__INTO_LOOPS float uniform_formula_f32(uint32_t (*w)[BLOCKS], int j, float p0, float p1)
{
    return __builtin_fmaf(UNIT32(w[0][j]), p1, p0);
}

static void uniform_f32(const struct tn__philox *g, uint64_t first, int64_t n, float p0, float p1,
                        float *y)
{
    random_loop_f32(g, first, n, p0, p1, y, 1, uniform_formula_f32);
}

TN__INTO_LOOPS double uniform_formula_f64(uint32_t (*w)[BLOCKS], int j, double p0, double p1)
{
    return __builtin_fma(UNIT64(w[0][j], w[1][j]), p1, p0);
}

static void uniform_f64(const struct tn__philox *g, uint64_t first, int64_t n, double p0, double p1,
                        double *y)
{
    random_loop_f64(g, first, n, p0, p1, y, 2, uniform_formula_f64);
}

TN__INTO_LOOPS float normal_formula_f32(uint32_t (*w)[BLOCKS], int j, float p0, float p1)
{
    return p0 + p1 * (__builtin_sqrtf(-2 * tn__log_f32(UNIT32(w[0][j]) + 0x1p-24f)) *
                      tn__cos_turn_f32(UNIT32(w[1][j])));
}

static void normal_f32(const struct tn__philox *g, uint64_t first, int64_t n, float p0, float p1,
                       float *y)
{
    random_loop_f32(g, first, n, p0, p1, y, 2, normal_formula_f32);
}

TN__INTO_LOOPS double normal_formula_f64(uint32_t (*w)[BLOCKS], int j, double p0, double p1)
{
    return p0 + p1 * (__builtin_sqrt(-2 * tn__log_f64(UNIT64(w[0][j], w[1][j]) + 0x1p-53)) *
                      tn__cos_turn_f64(UNIT64(w[2][j], w[3][j])));
}

static void normal_f64(const struct tn__philox *g, uint64_t first, int64_t n, double p0, double p1,
                       double *y)
{
    random_loop_f64(g, first, n, p0, p1, y, 4, normal_formula_f64);
}

/* ---- sorting --------------------------------------------------------------------------------- */

enum { VALUES = 256 }; /* of a byte */

/* First a radix sort by the two highest bytes, then an insertion sort, which is fast because few
 * numbers share both bytes. Groups of a few numbers that are sorted by counting the smaller ones in
 * vectors were tried in place of the second pass: 8 % slower. */
static void sort_bin(int64_t n, int bits, int place, uint64_t *x, uint64_t *y)
{
    const uint64_t places = ((uint64_t)1 << place) - 1;
    uint32_t high[VALUES] = { 0 }, low[VALUES] = { 0 }, h = 0, l = 0;
    for (int64_t i = 0; i < n; i++) {
        high[x[i] >> (bits - 8)]++;
        low[x[i] >> (bits - 16) & (VALUES - 1)]++;
    }
    for (int b = 0; b < VALUES; b++) {
        uint32_t many = high[b], few = low[b];
        high[b] = h;
        low[b] = l;
        h += many;
        l += few;
    }
    for (int64_t i = 0; i < n; i++)
        y[low[x[i] >> (bits - 16) & (VALUES - 1)]++] = x[i];
    for (int64_t i = 0; i < n; i++)
        x[high[y[i] >> (bits - 8)]++] = y[i];
    for (int64_t i = 1; i < n; i++) {
        uint64_t one = x[i];
        int64_t k = i;
        for (; k > 0 && x[k - 1] > one; k--)
            x[k] = x[k - 1];
        x[k] = one;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] & places;
}

const struct tn__simd_random TN__SIMD_TABLE(random) = {
    .uniform_f32 = uniform_f32,
    .uniform_f64 = uniform_f64,
    .normal_f32 = normal_f32,
    .normal_f64 = normal_f64,
    .sort_bin = sort_bin,
};

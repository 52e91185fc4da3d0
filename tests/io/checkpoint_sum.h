/* SPDX-License-Identifier: MIT
 *
 * The checksum of checkpoints, implemented a second time from its description. */
#ifndef TN_TESTS_IO_CHECKPOINT_SUM_H
#define TN_TESTS_IO_CHECKPOINT_SUM_H

#include <stdint.h>
#include <string.h>

static inline uint64_t turn(uint64_t x, int count)
{
    return x << count | x >> (64 - count);
}

/* XXH64 as its description says, word by word. */
static inline uint64_t sum_of(const unsigned char *at, size_t count)
{
    const uint64_t p1 = UINT64_C(11400714785074694791), p2 = UINT64_C(14029467366897019727),
                   p3 = UINT64_C(1609587929392839161), p4 = UINT64_C(9650029242287828579),
                   p5 = UINT64_C(2870177450012600261);
    uint64_t h = p5, word;
    size_t rest = count;
    if (count >= 32) {
        uint64_t v[4] = { p1 + p2, p2, 0, 0 - p1 };
        for (; rest >= 32; rest -= 32)
            for (int i = 0; i < 4; i++, at += 8) {
                memcpy(&word, at, 8);
                v[i] = turn(v[i] + word * p2, 31) * p1;
            }
        h = turn(v[0], 1) + turn(v[1], 7) + turn(v[2], 12) + turn(v[3], 18);
        for (int i = 0; i < 4; i++)
            h = (h ^ turn(v[i] * p2, 31) * p1) * p1 + p4;
    }
    h += count;
    for (; rest >= 8; rest -= 8, at += 8) {
        memcpy(&word, at, 8);
        h = turn(h ^ turn(word * p2, 31) * p1, 27) * p1 + p4;
    }
    if (rest >= 4) {
        uint32_t half;
        memcpy(&half, at, 4);
        h = turn(h ^ half * p1, 23) * p2 + p3;
        at += 4;
        rest -= 4;
    }
    for (; rest > 0; rest--, at++)
        h = turn(h ^ *at * p5, 11) * p1;
    h = (h ^ h >> 33) * p2;
    h = (h ^ h >> 29) * p3;
    return h ^ h >> 32;
}

#endif

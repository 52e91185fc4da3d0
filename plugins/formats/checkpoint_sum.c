/* SPDX-License-Identifier: MIT
 *
 * The checksum of a checkpoint: XXH64 with seed 0. libxxhash provides it too, but with these 50
 * lines a checkpoint is readable in every build, without a further library. */
#include "formats.h"

#include <string.h>

#define P1 UINT64_C(0x9E3779B185EBCA87)
#define P2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define P3 UINT64_C(0x165667B19E3779F9)
#define P4 UINT64_C(0x85EBCA77C2B2AE63)
#define P5 UINT64_C(0x27D4EB2F165667C5)

static uint64_t turn(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static uint64_t word_at(const unsigned char *at, size_t bytes)
{
    uint64_t word = 0;
    memcpy(&word, at, bytes);
    return word;
}

static uint64_t mix(uint64_t sum, uint64_t word)
{
    return turn(sum + word * P2, 31) * P1;
}

uint64_t checkpoint_sum(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    size_t rest = count;
    uint64_t sum = P5;
    if (count >= 32) {
        uint64_t lanes[4] = { P1 + P2, P2, 0, 0 - P1 };
        for (; rest >= 32; at += 32, rest -= 32)
            for (int i = 0; i < 4; i++)
                lanes[i] = mix(lanes[i], word_at(at + 8 * i, 8));
        sum = turn(lanes[0], 1) + turn(lanes[1], 7) + turn(lanes[2], 12) + turn(lanes[3], 18);
        for (int i = 0; i < 4; i++)
            sum = (sum ^ mix(0, lanes[i])) * P1 + P4;
    }
    sum += count;
    for (; rest >= 8; at += 8, rest -= 8)
        sum = turn(sum ^ mix(0, word_at(at, 8)), 27) * P1 + P4;
    if (rest >= 4) {
        sum = turn(sum ^ word_at(at, 4) * P1, 23) * P2 + P3;
        at += 4;
        rest -= 4;
    }
    for (; rest > 0; at++, rest--)
        sum = turn(sum ^ *at * P5, 11) * P1;
    sum = (sum ^ sum >> 33) * P2;
    sum = (sum ^ sum >> 29) * P3;
    return sum ^ sum >> 32;
}

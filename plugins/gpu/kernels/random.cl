/* SPDX-License-Identifier: MIT
 *
 * Random numbers from Philox 4x32-10 (Salmon et al. 2011), exactly as sdk/operators/random.ops
 * defines them: the number of an element in row-major order selects the words that it uses, so all
 * devices draw the same bits. */
#ifdef TN_FLOATING
#ifndef TN_PHILOX
#define TN_PHILOX 1
/* Replaces the counter c by four random words; k0 and k1 are the key. */
DEVICE void tn_philox(u32 *c, u32 k0, u32 k1)
{
    for (i32 round = 0; round < 10; round++) {
        u64 p0 = (u64)0xD2511F53u * c[0], p1 = (u64)0xCD9E8D57u * c[2];
        u32 c1 = c[1], c3 = c[3];
        c[0] = (u32)(p1 >> 32) ^ c1 ^ k0;
        c[1] = (u32)p1;
        c[2] = (u32)(p0 >> 32) ^ c3 ^ k1;
        c[3] = (u32)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* Returns g with seed, block and lane from the state tensor, if there is one. */
DEVICE gpu_philox tn_philox_with(gpu_philox g, GLOBAL const i64 *state)
{
    if (g.has_state) {
        g.seed = state[g.seed_at];
        g.block = (i64)((u64)g.block + (u64)state[g.seed_at + g.step]);
        g.lane = state[g.seed_at + 2 * g.step];
    }
    return g;
}

DEVICE void tn_philox_block(u32 *c, gpu_philox g, i64 block)
{
    u64 at = (u64)g.block + (u64)block;
    c[0] = (u32)at;
    c[1] = (u32)(at >> 32);
    c[2] = (u32)(u64)g.lane;
    c[3] = (u32)((u64)g.lane >> 32);
    tn_philox(c, (u32)(u64)g.seed, (u32)((u64)g.seed >> 32));
}
#endif

#undef DRAW
#undef TURN
#if TN_WORDS == 1
/* DRAW: a number in [0, 1) from the 24 high bits of a word; the factor is 2^-24. TURN: 2 pi. */
#define DRAW(c, j) ((C)((c)[j] >> 8) * 5.9604644775390625e-8f)
#define TURN 6.283185307179586f
#else
/* DRAW: a number in [0, 1) from the 53 high bits of two words, the first word being the high one;
 * the factor is 2^-53. */
#define DRAW(c, j) ((C)((((u64)(c)[j] << 32) | (c)[(j) + 1]) >> 11) * 1.1102230246251565e-16)
#define TURN 6.283185307179586
#endif

/* y = low + u * range, computed with one rounding */
KERNEL NAME(philox_uniform)(GLOBAL S *y, GLOBAL const i64 *state, const gpu_walk w,
                            const gpu_philox philox, const C low, const C range)
{
    i64 i = ITEM();
    if (i < w.count) {
        const gpu_philox g = tn_philox_with(philox, state);
        u32 c[4];
        WALK1(w, i, py)
#if TN_WORDS == 1
        tn_philox_block(c, g, i >> 2);
        C u = DRAW(c, i & 3);
#else
        tn_philox_block(c, g, i >> 1);
        C u = DRAW(c, 2 * (i & 1));
#endif
        C v = fma(u, range, low);
        STORE(y, py, v);
    }
}

/* y = mean + std * sqrt(-2 ln u1) * cos(2 pi u2), u1 in (0, 1] */
KERNEL NAME(philox_normal)(GLOBAL S *y, GLOBAL const i64 *state, const gpu_walk w,
                           const gpu_philox philox, const C mean, const C deviation)
{
    i64 i = ITEM();
    if (i < w.count) {
        const gpu_philox g = tn_philox_with(philox, state);
        u32 c[4];
        WALK1(w, i, py)
#if TN_WORDS == 1
        tn_philox_block(c, g, i >> 1);
        C u1 = DRAW(c, 2 * (i & 1)) + 5.9604644775390625e-8f;
        C u2 = DRAW(c, 2 * (i & 1) + 1);
#else
        tn_philox_block(c, g, i);
        C u1 = DRAW(c, 0) + 1.1102230246251565e-16;
        C u2 = DRAW(c, 2);
#endif
        C v = mean + deviation * (sqrt((C)-2 * log(u1)) * cos((C)TURN * u2));
        STORE(y, py, v);
    }
}
#endif

/* SPDX-License-Identifier: MIT
 *
 * philox_uniform and philox_normal, to the bit. */
#include "tests/gpu/kernels.h"

/* Philox 4x32-10, a second implementation from the paper. */
static void philox(uint64_t seed, uint64_t block, uint32_t out[4])
{
    uint32_t c[4] = { (uint32_t)block, (uint32_t)(block >> 32), 0, 0 },
             k[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };

    for (int round = 0; round < 10; round++) {
        uint64_t p = 0xD2511F53ull * c[0], q = 0xCD9E8D57ull * c[2];
        uint32_t next[4] = { (uint32_t)(q >> 32) ^ c[1] ^ k[0], (uint32_t)q,
                             (uint32_t)(p >> 32) ^ c[3] ^ k[1], (uint32_t)p };

        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    memcpy(out, c, sizeof c);
}

START_TEST(uniform_numbers_are_equal_to_the_bit)
{
    const tn_philox_uniform_options options = { sizeof options, -1.5, 2.7, 0x123456789abcdef,
                                                ((int64_t)1 << 32) - 2 };
    struct array *f = array_new(&here, TN_F32, 3, shape3, TURNED),
                 *d = array_new(&here, TN_F64, 3, shape3, GAPS);
    struct array *const in_f[] = { f }, *const in_d[] = { d };

    CALL(&here, "philox_uniform", &options, in_f, in_f);
    CALL(&here, "philox_uniform", &options, in_d, in_d);
    array_down(f);
    array_down(d);
    for (int64_t i = 0; i < COUNT3; i++) {
        uint32_t w[4];
        double want;

        philox((uint64_t)options.seed, (uint64_t)options.block + (uint64_t)i / 4, w);
        want = fmaf((float)(w[i % 4] >> 8) * 0x1p-24f, (float)(2.7 - -1.5), -1.5f);
        close_to(array_get(f, i), want, 0, "uniform float32", i);
        philox((uint64_t)options.seed, (uint64_t)options.block + (uint64_t)i / 2, w);
        want = fma((double)(((uint64_t)w[i % 2 * 2] << 32 | w[i % 2 * 2 + 1]) >> 11) * 0x1p-53,
                   2.7 - -1.5, -1.5);
        close_to(array_get(d, i), want, 0, "uniform float64", i);
    }
    array_drop(f);
    array_drop(d);
}
END_TEST

START_TEST(normal_numbers_are_equal_within_a_few_units)
{
    const tn_philox_normal_options options = { sizeof options, 1, 2, 7, 5 };
    struct array *f = array_new(&here, TN_F32, 3, shape3, PLAIN),
                 *d = array_new(&here, TN_F64, 3, shape3, PLAIN);
    struct array *const in_f[] = { f }, *const in_d[] = { d };
    const double turn = 6.283185307179586;

    CALL(&here, "philox_normal", &options, in_f, in_f);
    CALL(&here, "philox_normal", &options, in_d, in_d);
    array_down(f);
    array_down(d);
    for (int64_t i = 0; i < COUNT3; i++) {
        uint32_t w[4];
        double u1, u2;

        philox(7, 5 + (uint64_t)i / 2, w);
        u1 = ((w[i % 2 * 2] >> 8) + 1) * 0x1p-24;
        u2 = (w[i % 2 * 2 + 1] >> 8) * 0x1p-24;
        close_to(array_get(f, i), 1 + 2 * sqrt(-2 * log(u1)) * cos(turn * u2), 3e-6,
                 "normal float32", i);
        philox(7, 5 + (uint64_t)i, w);
        u1 = (double)((((uint64_t)w[0] << 32 | w[1]) >> 11) + 1) * 0x1p-53;
        u2 = (double)(((uint64_t)w[2] << 32 | w[3]) >> 11) * 0x1p-53;
        close_to(array_get(d, i), 1 + 2 * sqrt(-2 * log(u1)) * cos(turn * u2), 1e-13,
                 "normal float64", i);
    }
    array_drop(f);
    array_drop(d);
}
END_TEST

void add_random(TCase *to, bool slow)
{
    if (slow)
        return;
    tcase_add_test(to, uniform_numbers_are_equal_to_the_bit);
    tcase_add_test(to, normal_numbers_are_equal_within_a_few_units);
}

/* SPDX-License-Identifier: MIT
 *
 * Multiply-adds in vectors of type T, compiled for TARGET: ten chains, so that a multiply-add need
 * not wait for the one before it. */
#define STEP(k) s##k = s##k * a + a

TARGET static float NAME(multiply)(void)
{
    float b = seed; /* the compiler must not know that chains are alike */
    T a = (T){ 0 } + 0.5f;
    T s0 = a + b, s1 = s0 + b, s2 = s1 + b, s3 = s2 + b, s4 = s3 + b, s5 = s4 + b, s6 = s5 + b,
      s7 = s6 + b, s8 = s7 + b, s9 = s8 + b;

    for (int i = 0; i < STEPS; i++) {
        STEP(0);
        STEP(1);
        STEP(2);
        STEP(3);
        STEP(4);
        STEP(5);
        STEP(6);
        STEP(7);
        STEP(8);
        STEP(9);
    }
    s0 += s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9;
    return s0[0];
}
#undef STEP
#undef T
#undef NAME
#undef TARGET

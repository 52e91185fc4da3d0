/* SPDX-License-Identifier: MIT
 *
 * Multiply-adds in vectors of type T, compiled for TARGET: ten sums, so that a multiply-add need
 * not wait for the one before it. A processor with two units and a latency of four needs at least
 * eight sums, but eight were measured to be slower than ten. Returns a number that depends on all
 * sums. */
TARGET static float NAME(multiply)(float start, int64_t steps)
{
    T factor = (T){ 0 } + 0.5f;
    T a = factor + start, b = a + start, c = b + start, d = c + start, e = d + start;
    T f = e + start, g = f + start, h = g + start, k = h + start, l = k + start;

    for (int64_t i = 0; i < steps; i++) {
        a = a * factor + factor;
        b = b * factor + factor;
        c = c * factor + factor;
        d = d * factor + factor;
        e = e * factor + factor;
        f = f * factor + factor;
        g = g * factor + factor;
        h = h * factor + factor;
        k = k * factor + factor;
        l = l * factor + factor;
    }
    a += b + c + d + e + f + g + h + k + l;
    return a[0];
}
#undef T
#undef NAME
#undef TARGET

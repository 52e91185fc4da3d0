/* SPDX-License-Identifier: MIT
 *
 * float16 or bfloat16 without wide vectors of them: NAME(x) is x_f16 or x_bf16. */
static int64_t NAME(add_at)(int64_t n, char *x, int64_t sx, int64_t step, uint64_t size,
                            const char *index, int64_t si, const char *other, int64_t so)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at;
        uint16_t v, w;
        memcpy(&at, index + i * si, sizeof at);
        if ((uint64_t)at >= size)
            return i;
        char *to = x + i * sx + at * step;
        memcpy(&v, to, sizeof v);
        memcpy(&w, other + i * so, sizeof w);
        v = NAME(sum_of)(v, w);
        memcpy(to, &v, sizeof v);
    }
    return n;
}

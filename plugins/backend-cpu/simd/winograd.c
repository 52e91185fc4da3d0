/* SPDX-License-Identifier: MIT
 *
 * The transforms of Winograd's method F(4 x 4, 3 x 3), with the points 0, 1, -1, 2, -2. Matrices
 * with ' are transposed:
 *       | 4  0 -5  0  1  0 |       |  1/4    0     0  |
 *       | 0 -4 -4  1  1  0 |       | -1/6  -1/6  -1/6 |       | 1  1  1  1  1  0 |
 *  B' = | 0  4 -4 -1  1  0 |  G =  | -1/6   1/6  -1/6 |  A' = | 0  1 -1  2 -2  0 |
 *       | 0 -2 -1  2  1  0 |       | 1/24  1/12   1/6 |       | 0  1  1  4  4  0 |
 *       | 0  2 -1 -2  1  0 |       | 1/24 -1/12   1/6 |       | 0  1 -1  8 -8  1 |
 *       | 0  4  0 -5  0  1 |       |   0     0     1  | */
#include "conv/winograd.h"
#include "simd/simd.h"

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef float lanes __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
#define AT(pointer) (*(lanes *)(void *)(uintptr_t)(pointer))

/* Each of these functions multiplies one of the matrices (B', A', A, G, G') by a column of vectors,
 * whose element k is from[k * f]. Element k of the product is stored in to[k * t]. */
static inline void by_b(const lanes *from, int f, lanes *to, int t)
{
    lanes d0 = from[0], d1 = from[f], d2 = from[2 * f], d3 = from[3 * f], d4 = from[4 * f],
          d5 = from[5 * f];
    lanes even = d4 - 4 * d2, odd = d3 - 4 * d1, wide = d4 - d2, far = 2 * (d3 - d1);
    to[0] = 4 * d0 - 5 * d2 + d4;
    to[t] = even + odd;
    to[2 * t] = even - odd;
    to[3 * t] = wide + far;
    to[4 * t] = wide - far;
    to[5 * t] = 4 * d1 - 5 * d3 + d5;
}

static inline void by_a(const lanes *from, int f, lanes *to, int t)
{
    lanes s = from[f] + from[2 * f], d = from[f] - from[2 * f], s2 = from[3 * f] + from[4 * f],
          d2 = from[3 * f] - from[4 * f];
    to[0] = from[0] + s + s2;
    to[t] = d + 2 * d2;
    to[2 * t] = s + 4 * s2;
    to[3 * t] = d + 8 * d2 + from[5 * f];
}

static inline void by_a_back(const lanes *from, int f, lanes *to, int t)
{
    lanes g0 = from[0], g1 = from[f], g2 = from[2 * f], g3 = from[3 * f];
    lanes even = g0 + g2, odd = g1 + g3, even2 = g0 + 4 * g2, odd2 = 2 * g1 + 8 * g3;
    to[0] = g0;
    to[t] = even + odd;
    to[2 * t] = even - odd;
    to[3 * t] = even2 + odd2;
    to[4 * t] = even2 - odd2;
    to[5 * t] = g3;
}

static inline void by_g(const lanes *from, int f, lanes *to, int t)
{
    lanes g0 = from[0], g1 = from[f], g2 = from[2 * f];
    lanes even = (g0 + g2) * (-1.0f / 6), odd = g1 * (1.0f / 6),
          even2 = g0 * (1.0f / 24) + g2 * (1.0f / 6), odd2 = g1 * (1.0f / 12);
    to[0] = g0 * 0.25f;
    to[t] = even - odd;
    to[2 * t] = even + odd;
    to[3 * t] = even2 + odd2;
    to[4 * t] = even2 - odd2;
    to[5 * t] = g2;
}

static inline void by_g_back(const lanes *from, int f, lanes *to, int t)
{
    lanes s = from[f] + from[2 * f], d = from[2 * f] - from[f], s2 = from[3 * f] + from[4 * f],
          d2 = from[3 * f] - from[4 * f];
    to[0] = from[0] * 0.25f - s * (1.0f / 6) + s2 * (1.0f / 24);
    to[t] = d * (1.0f / 6) + d2 * (1.0f / 12);
    to[2 * t] = (s2 - s) * (1.0f / 6) + from[5 * f];
}

/* Stores in `at` the addresses of the n x n pixels of a square. */
static inline void find(const struct tn__square *x, int n, const float *zeros, const float **at)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            at[i * n + j] = i >= x->top && i < x->bottom && j >= x->left && j < x->right
                                ? x->at + i * x->row + j * x->column
                                : zeros;
}

static void input(const struct tn__square *x, const float *zeros, float *to, int64_t step)
{
    const float *at[36];

    find(x, 6, zeros, at);
    for (int64_t c = 0; c < x->channels; c += LANES) {
        lanes d[6], t[36], line[6];
        float *o = to + c;
#pragma GCC unroll 6
        for (int j = 0; j < 6; j++) {
#pragma GCC unroll 6
            for (int i = 0; i < 6; i++)
                d[i] = AT(at[i * 6 + j] + c);
            by_b(d, 1, t + j, 6);
        }
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) {
            by_b(t + i * 6, 1, line, 1);
#pragma GCC unroll 6
            for (int j = 0; j < 6; j++, o += step)
                AT(o) = line[j];
        }
    }
}

static void gradient(const struct tn__square *gy, const float *zeros, float *to, int64_t step)
{
    const float *at[16];

    find(gy, 4, zeros, at);
    for (int64_t c = 0; c < gy->channels; c += LANES) {
        lanes d[4], t[24], line[6];
        float *o = to + c;
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                d[i] = AT(at[i * 4 + j] + c);
            by_a_back(d, 1, t + j, 4);
        }
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) {
            by_a_back(t + i * 4, 1, line, 1);
#pragma GCC unroll 6
            for (int j = 0; j < 6; j++, o += step)
                AT(o) = line[j];
        }
    }
}

static void output(const float *m, int64_t step, const float *bias, const struct tn__square *y)
{
    lanes d[6], t[24], line[4];

    for (int64_t c = 0; c < y->channels; c += LANES) {
        lanes more = bias ? AT(bias + c) : (lanes){ 0 };
        for (int j = 0; j < 6; j++) {
            for (int i = 0; i < 6; i++)
                d[i] = AT(m + (i * 6 + j) * step + c);
            by_a(d, 1, t + j, 6);
        }
        for (int i = y->top; i < y->bottom; i++) {
            by_a(t + i * 6, 1, line, 1);
            for (int j = y->left; j < y->right; j++)
                AT(y->at + i * y->row + j * y->column + c) = line[j] + more;
        }
    }
}

static void weight(int64_t n, const float *w, float *to, int64_t step)
{
    lanes d[9], t[18], line[6];

    for (int64_t c = 0; c < n; c += LANES) {
        for (int i = 0; i < 9; i++)
            d[i] = AT(w + i * n + c);
        for (int j = 0; j < 3; j++)
            by_g(d + j, 3, t + j, 3);
        for (int i = 0; i < 6; i++) {
            by_g(t + i * 3, 1, line, 1);
            for (int j = 0; j < 6; j++)
                AT(to + (i * 6 + j) * step + c) = line[j];
        }
    }
}

static void weight_back(int64_t n, const float *m, int64_t step, float *w)
{
    lanes d[6], t[18], line[3];

    for (int64_t c = 0; c < n; c += LANES) {
        for (int j = 0; j < 6; j++) {
            for (int i = 0; i < 6; i++)
                d[i] = AT(m + (i * 6 + j) * step + c);
            by_g_back(d, 1, t + j, 6);
        }
        for (int i = 0; i < 3; i++) {
            by_g_back(t + i * 6, 1, line, 1);
            for (int j = 0; j < 3; j++)
                AT(w + (i * 3 + j) * n + c) = line[j];
        }
    }
}

const struct tn__simd_winograd TN__SIMD_TABLE(winograd) = {
    .input = input,
    .gradient = gradient,
    .output = output,
    .weight = weight,
    .weight_back = weight_back,
};

/* SPDX-License-Identifier: MIT
 *
 * Winograd's F(4 x 4, 3 x 3): 4 x 4 results of a 3 x 3 window from 6 x 6 elements, by 36
 * multiplications instead of 144. simd/winograd.c has the transforms for an instruction set,
 * conv/winograd.c the three convolutions. */
#ifndef TN_BACKEND_CPU_WINOGRAD_H
#define TN_BACKEND_CPU_WINOGRAD_H

#include "conv/conv.h"
#include "simd/simd.h"

enum { TN__WINO_IN = 6, TN__WINO_OUT = 4, TN__WINO_ALL = 36, TN__WINO_LANES = 16 };

/* A square of n x n elements of `channels` contiguous numbers. Rows [top, bottom) and columns
 * [left, right) exist; the others are read as zeros and not written. */
struct tn__square {
    float *at;
    int64_t row, column; /* steps */
    int32_t top, bottom, left, right;
    int64_t channels; /* a multiple of TN__WINO_LANES */
};

/* The 36 numbers of a channel are `step` elements apart. */
struct tn__simd_winograd {
    void (*input)(const struct tn__square *x, float *to, int64_t step);     /* 6 x 6: B' x B */
    void (*gradient)(const struct tn__square *gy, float *to, int64_t step); /* 4 x 4: A gy A' */
    /* 4 x 4: A' m A, and a bias for each channel, NULL for none */
    void (*output)(const float *m, int64_t step, const float *bias, const struct tn__square *y);
    /* w[9][n] to G w G', and G' m G to w[9][n]; n a multiple of TN__WINO_LANES */
    void (*weight)(int64_t n, const float *w, float *to, int64_t step);
    void (*weight_back)(int64_t n, const float *m, int64_t step, float *w);
};

/* TENON_MATH=exact forbids it; set at activation. */
extern bool tn__winograd_allowed;
/* Whether it is possible and faster: for products with the weight, for its gradient. */
bool tn__winograd_takes(const struct tn__windows *w);
bool tn__winograd_takes_weight(const struct tn__windows *w);

/* y from x; the weight is row-major. `turned`: for the gradient of an input, windows are rotated
 * and outputs and channels exchanged. bias: w->outputs numbers, or NULL. */
tn_status tn__winograd_forward(const struct tn__windows *w, const struct tn__images *x,
                               const struct tn__images *y, const char *weight, bool turned,
                               const float *bias);
tn_status tn__winograd_weight(const struct tn__windows *w, const struct tn__images *x,
                              const struct tn__images *gy, float *gw);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Winograd's method F(4 x 4, 3 x 3) computes 4 x 4 results of a convolution with 3 x 3 windows from
 * 6 x 6 elements, with 36 multiplications instead of 144. simd/winograd.c has the transforms, which
 * are compiled for each instruction set; conv/winograd.c has the convolution and its gradients. */
#ifndef TN_BACKEND_CPU_CONV_WINOGRAD_H
#define TN_BACKEND_CPU_CONV_WINOGRAD_H

#include "conv/conv.h"
#include "simd/simd.h"

enum { TN__WINO_IN = 6, TN__WINO_OUT = 4, TN__WINO_ALL = 36, TN__WINO_LANES = 16 };

/* A square of pixels, 6 x 6 or 4 x 4, each with `channels` contiguous numbers. Rows [top, bottom)
 * and columns [left, right) are inside of the image; other pixels are read as zeros and are not
 * written. */
struct tn__square {
    float *at;
    int64_t row, column; /* elements from one row to the next, from one column to the next */
    int32_t top, bottom, left, right;
    int64_t channels; /* a multiple of TN__WINO_LANES */
};

/* The transforms. A transformed square has 36 numbers for each channel, `step` elements apart. x,
 * gy and y are squares of the size that is given; ' means transposed. `zeros` has as many zeros as
 * the square has channels; they are read in place of the pixels outside of the image. */
struct tn__simd_winograd {
    /* input, 6 x 6: B' x B; gradient, 4 x 4: A gy A' */
    void (*input)(const struct tn__square *x, const float *zeros, float *to, int64_t step);
    void (*gradient)(const struct tn__square *gy, const float *zeros, float *to, int64_t step);
    /* 4 x 4: A' m A + bias; bias has a number for each channel, or is NULL */
    void (*output)(const float *m, int64_t step, const float *bias, const struct tn__square *y);
    /* weight: `to` = G w G'; weight_back: w = G' m G. w is [9][n], n a multiple of
     * TN__WINO_LANES. */
    void (*weight)(int64_t n, const float *w, float *to, int64_t step);
    void (*weight_back)(int64_t n, const float *m, int64_t step, float *w);
};

/* Whether Winograd's method may be used. Set at activation: false with TENON_MATH=exact. */
extern bool tn__winograd_allowed;
/* Return whether Winograd's method is possible and expected to be faster:
 * tn__winograd_takes for convolutions, tn__winograd_takes_weight for the weight's gradient. */
bool tn__winograd_takes(const struct tn__windows *w);
bool tn__winograd_takes_weight(const struct tn__windows *w);

/* tn__winograd_transform transforms the row-major weight into u, which has tn__winograd_bytes()
 * bytes. For the gradient of an input pass `turned`: it rotates the windows of the weight by 180
 * degrees and exchanges outputs and channels. */
int64_t tn__winograd_bytes(const struct tn__windows *w);
tn_status tn__winograd_transform(const struct tn__windows *w, const char *weight, bool turned,
                                 float *u);
/* Computes y from x and the transformed weight. bias: w->outputs numbers, or NULL. */
tn_status tn__winograd_forward(const struct tn__windows *w, const struct tn__images *x,
                               const struct tn__images *y, const float *u, const float *bias);
/* Computes the weight's gradient gw, which is row-major. */
tn_status tn__winograd_weight(const struct tn__windows *w, const struct tn__images *x,
                              const struct tn__images *gy, float *gw);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Products of int8 and uint8 with packed weights, for the kernels of this folder. Memory that a
 * function takes is scratch memory (base/scratch.h). */
#ifndef TN_BACKEND_CPU_QUANT_QUANT_H
#define TN_BACKEND_CPU_QUANT_QUANT_H

#include <tenon/plugin.h>

#include "base/span.h"
#include "quant/loops.h"

/* The loops of the chosen instruction set, and whether they may use vpdpbusd. */
const struct tn__quant_loops *tn__quant_loops_chosen(bool *dot);

/* Products whose sum always fits into int32; more are decomposed, with sums in int64. */
enum { TN__QUANT_MOST = 33024 };

static inline bool tn__quant_is_signed(const tn_view *view)
{
    return tn_view_dtype(view) == TN_I8;
}
/* Element i of a tensor of bytes or floats: of one element that one. */
int32_t tn__quant_byte(const tn_view *view, int64_t i);
float tn__quant_float(const tn_view *view, int64_t i);
/* Whether a tensor (NULL: absent) is row-major. */
bool tn__quant_dense(const tn_view *view);
/* Size of a vector of n channels, which loops read up to the end of a panel. */
static inline int64_t tn__quant_whole(int64_t n)
{
    return (n + TN__QUANT_COLUMNS - 1) / TN__QUANT_COLUMNS * TN__QUANT_COLUMNS;
}

/* ---- weight.c ---- */

/* A packed weight, in one piece of memory: this head, then the sums, then the panels. */
struct tn__quant_weight {
    int64_t n, k, quads, n_panels; /* k: products of a sum, without those that fill quads */
    int32_t *sums;                 /* of each channel, of the unsigned numbers */
    uint8_t *panels;
};

/* Where the numbers of a weight are: of output channel n, tap t of the window and input channel c,
 * at[n * n_step + t * tap_step + c * step]. A weight of linear has one tap. The channels of each
 * tap are packed in whole quads. */
struct tn__quant_source {
    const uint8_t *at;
    int64_t n, taps, channels, n_step, tap_step, step;
    bool is_signed;
};
/* The bytes that a packed weight needs. */
size_t tn__quant_weight_bytes(const struct tn__quant_source *from);
struct tn__quant_weight *tn__quant_weight_pack(const struct tn__quant_source *from, void *memory);

/* ---- product.c ---- */

/* A product of rows with a packed weight, and what follows. The arrays of channels have
 * tn__quant_whole(n) elements. */
struct tn__quant_run {
    const struct tn__quant_weight *w;
    const int8_t *x; /* [rows][quads * 4], signed */
    const int32_t *x_sum;
    int64_t rows, x_step;
    const float *x_scale; /* of each row; NULL: whole sums are stored */
    const int32_t *x_zero, *w_zero;
    const float *w_scale, *bias;
    float min, max, y_scale;
    int32_t y_zero;
    tn_dtype dtype; /* of y */
    char *
        y; /* element (row, n) at y + row * y_row + n * y_column bytes; one of both is an element */
    int64_t y_row, y_column;
    const tn_view *residual; /* with the strides of y; NULL: none */
    int64_t residual_offset; /* elements before that of row 0 and channel 0 */
    float residual_scale;
    int32_t residual_zero;
};
tn_status tn__quant_run(const struct tn__quant_run *run);
/* Reads n elements of the residual in float, `step` elements apart, from element `from` on. */
void tn__quant_residual(const struct tn__quant_run *r, int64_t from, int64_t step, int64_t n,
                        float *to);

/* Makes signed rows of k bytes each, with zeros up to a multiple of 4, and their sums. */
void tn__quant_row(const void *x, int64_t k, bool is_signed, int8_t *to, int64_t step,
                   int32_t *sum);

/* The inputs of linear_int8 and convolution_int8, in order. */
enum {
    TN__QUANT_X,
    TN__QUANT_X_SCALE,
    TN__QUANT_WEIGHT,
    TN__QUANT_WEIGHT_SCALE,
    TN__QUANT_X_ZERO,
    TN__QUANT_WEIGHT_ZERO,
    TN__QUANT_BIAS,
    TN__QUANT_Y_SCALE,
    TN__QUANT_Y_ZERO,
    TN__QUANT_RESIDUAL,
    TN__QUANT_RESIDUAL_SCALE,
    TN__QUANT_RESIDUAL_ZERO,
    TN__QUANT_INPUTS
};
/* The dtypes that the kernels of both take; one for the output. */
extern const uint64_t tn__quant_product_dtypes[TN__QUANT_INPUTS + 1];
/* Vectors of scales, zero points and bias for n channels from channel `first` on, and those of the
 * result; NULL if memory runs out. The caller gives them back. */
void *tn__quant_channels(const tn_call *call, int64_t first, int64_t n, struct tn__quant_run *run);
/* Scales, zero points and sums of rows: the same for all, or of row i the element i / share. */
struct tn__quant_rows {
    float *scale;
    int32_t *zero, *sum;
};
/* Sets the scale and the zero point of a row. */
void tn__quant_row_scale(const tn_call *call, int64_t i, float *scale, int32_t *zero);

/* ---- convolution.c, depthwise.c ---- */

enum { TN__QUANT_DIMS = 3 };
/* Sizes with three dimensions each; missing ones come first and have size 1. */
struct tn__quant_geometry {
    int64_t images, channels, outputs, groups;
    int64_t size[TN__QUANT_DIMS], kernel[TN__QUANT_DIMS], count[TN__QUANT_DIMS],
        stride[TN__QUANT_DIMS], padding[TN__QUANT_DIMS], dilation[TN__QUANT_DIMS];
    int64_t padded[TN__QUANT_DIMS]; /* sizes with padding */
    int64_t inner, quads;           /* channels of a group; in whole quads */
    int64_t taps, rows;             /* of a window; windows of one image */
};
/* Convolutions whose groups have one input channel each. */
tn_status tn__quant_depthwise(const tn_call *call, const struct tn__quant_geometry *g);

#endif

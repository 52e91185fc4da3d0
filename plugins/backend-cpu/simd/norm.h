/* SPDX-License-Identifier: MIT
 *
 * Normalization: what nn/norm.c passes to the functions in simd/norm.c. A population is a set of
 * elements that share mean and variance. */
#ifndef TN_BACKEND_CPU_SIMD_NORM_H
#define TN_BACKEND_CPU_SIMD_NORM_H

#include "simd/simd.h"

/* Population p has `segments` segments of `length` elements; segment s begins at element
 * (s * populations + p) * length. */
struct tn__norm_layout {
    int64_t populations, segments, length;
    /* The index of weight and bias: none, the position in a segment, or the channel. */
    enum { TN__NO_AFFINE, TN__PER_ELEMENT, TN__PER_POPULATION } affine;
    int64_t channels; /* TN__PER_POPULATION: population p has the channel p % channels */
    /* The populations are the channels of tensors with the channels last: `segments` rows, each
     * with one element of every population; `length` is 1. */
    bool channels_last;
};

/* Channels last: rows of a block. A block is summed in T; blocks are added up in double. */
enum { TN__NORM_ROWS = 256 };

struct tn__norm_work {
    struct tn__norm_layout layout;
    double eps;
    const void *x, *gy, *weight, *bias, *mean_in, *var_in;
    void *y, *mean, *var, *gx, *gw, *gb;
    bool wants_affine;
    /* Forward: relu follows, after the addition of `residual` unless it is NULL. Backward: `gate`
     * is the result of relu, or NULL; the gradient of relu's input is stored in `gr` unless it is
     * NULL. */
    bool relu;
    double max; /* relu's largest result; NaN: no limit */
    const void *residual, *gate;
    void *gr;
    void *sums; /* channels last: [block of rows][2][populations] */
};

/* Functions for tn_parallel_for; [0] is for float32, [1] for float64. [begin, end) is a range of
 * the items that are named at each member, such as populations. */
typedef tn_status tn__norm_part(void *work, int64_t begin, int64_t end);
/* What follows a convolution, for rows of n channels or, with `plane`, for rows of n elements of
 * one channel: y = y * scale + shift, plus the residual, limited. */
struct tn__follow_rows {
    const void *scale, *shift; /* NULL: none; with `plane` one number each */
    bool plane;
    struct tn__limits limits;
};

struct tn__simd_norm {
    tn__norm_part *forward[2];  /* populations */
    tn__norm_part *channels[2]; /* backward: channels, each with all its populations */
    tn__norm_part *rows[2];     /* backward, gx: populations */
    tn__norm_part *columns[2];  /* backward, gw and gb: positions in a population */
    /* Channels last, in three steps. The first function computes sums, for blocks of rows. The
     * second computes from these sums mean and variance (backward: the means that gx needs), for
     * populations. The third computes the results, for blocks of rows. */
    tn__norm_part *last_sums[2], *last_moments[2], *last_forward[2];
    tn__norm_part *last_back_sums[2], *last_back_moments[2], *last_back[2];
    /* y = x * scale + shift of each channel, which are in `mean` and `var`: planes (an image's
     * channel) or, with the channels last, blocks of rows. */
    tn__norm_part *running[2];
    /* For `rows` rows of n elements, y_step and r_step elements apart. `residual` may be NULL. */
    void (*follow_rows[2])(const struct tn__follow_rows *f, int64_t rows, int64_t n, void *y,
                           int64_t y_step, const void *residual, int64_t r_step);
};

#endif

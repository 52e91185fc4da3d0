/* SPDX-License-Identifier: MIT
 *
 * Normalization, as nn/norm.c passes it to the functions of an instruction set, simd/norm.c. */
#ifndef TN_BACKEND_CPU_NORM_H
#define TN_BACKEND_CPU_NORM_H

#include "simd/simd.h"

/* Population p has `segments` stretches of `length` elements; stretch s begins at element
 * (s * populations + p) * length. */
struct tn__norm_layout {
    int64_t populations, segments, length;
    /* How weight and bias are indexed. */
    enum { TN__NO_AFFINE, TN__PER_ELEMENT, TN__PER_POPULATION } affine;
    int64_t channels; /* PER_POPULATION: its number is p modulo this */
    /* Strided populations: `segments` rows of one element of each of the `populations`. */
    bool channels_last;
};

/* Strided: rows of a block that is summed in the type itself; blocks are added in double. */
enum { TN__NORM_ROWS = 256 };

struct tn__norm_work {
    struct tn__norm_layout layout;
    double eps;
    const void *x, *gy, *weight, *bias, *mean_in, *var_in;
    void *y, *mean, *var, *gx, *gw, *gb;
    bool wants_affine;
    /* With relu after it: the residual that is added before, or NULL. Backward: the result, and
     * where the gradient of relu is stored, or NULL. */
    bool relu;
    const void *residual, *gate;
    void *gr;
    void *sums; /* strided: [block of rows][2][populations] */
};

/* Bodies of tn_parallel_for; [0] float32, [1] float64. */
typedef tn_status tn__norm_part(void *work, int64_t begin, int64_t end);
struct tn__simd_norm {
    tn__norm_part *forward[2];  /* populations */
    tn__norm_part *channels[2]; /* back, channels with all their populations */
    tn__norm_part *rows[2];     /* back, populations */
    tn__norm_part *columns[2];  /* weight and bias, elements of a population */
    /* Strided populations: sums of blocks of rows; the moments from them, for each population; the
     * rows. */
    tn__norm_part *last_sums[2], *last_moments[2], *last_forward[2];
    tn__norm_part *last_back_sums[2], *last_back_moments[2], *last_back[2];
};

#endif

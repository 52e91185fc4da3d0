/* SPDX-License-Identifier: MIT
 *
 * A product of matrices, shared by the files that compute it: matmul.c chooses the method, packed.c
 * is one of them, linear.c makes the products of layers. */
#ifndef TN_BACKEND_CPU_MATMUL_H
#define TN_BACKEND_CPU_MATMUL_H

#include "base/elementwise.h"
#include "base/span.h"

/* One operand of y[m, n] = a[m, k] . b[k, n] (+ bias[n]). */
struct tn__matrix {
    char *at;
    int64_t row, column; /* strides in bytes */
    tn_dtype dtype;
    int64_t item;
};

/* What follows the product in float32 or float64 with contiguous rows: loop(y) (NULL: y) and +
 * residual. */
struct tn__finish {
    tn__ew_loop *loop;
    char *into; /* NULL: into y; otherwise y stays */
    int64_t into_row;
    const char *residual; /* NULL: none */
    int64_t residual_row;
};

struct tn__product {
    int64_t batch, m, n, k;
    struct tn__matrix y, a, b;
    int64_t batch_y, batch_a, batch_b; /* bytes from one matrix of the batch to the next */
    const char *bias;                  /* NULL: none */
    int64_t bias_step;
    tn_dtype bias_dtype;
    enum tn__ct ct;
    int64_t tile_m, tile_n;          /* a piece of the result */
    int64_t rows, columns;           /* pieces down and across */
    bool alone;                      /* the whole product is one piece */
    const struct tn__finish *finish; /* NULL: none */
    bool finished;                   /* it was done; only strips do it */
};

enum { TN__PRODUCT_SMALL = 64 * 64 * 64 * 2 }; /* at most so many multiplications are one piece */

static inline struct tn__matrix tn__matrix_of(const tn_view *view, int32_t row, int32_t column)
{
    int64_t item = tn__view_item(view);
    struct tn__matrix out = { tn__view_at(view), row >= 0 ? view->strides[row] * item : 0,
                              view->strides[column] * item, tn_view_dtype(view), item };
    return out;
}

/* Computes y, the view that p->y was made of, in pieces for the threads. */
tn_status tn__matmul_run(struct tn__product *p, const tn_view *y);

/* Whether packed.c computes this product; computes it and applies p->finish. */
bool tn__packed_take(const struct tn__product *p);
tn_status tn__packed_run(struct tn__product *p);

#endif

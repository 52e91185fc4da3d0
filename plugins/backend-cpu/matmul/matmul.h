/* SPDX-License-Identifier: MIT
 *
 * Products of matrices, shared by several files: matmul.c chooses the method, packed.c and narrow.c
 * are methods, linear.c sets up the products of linear layers. */
#ifndef TN_BACKEND_CPU_MATMUL_MATMUL_H
#define TN_BACKEND_CPU_MATMUL_MATMUL_H

#include "base/elementwise.h"
#include "base/span.h"

/* One operand of y[m, n] = a[m, k] . b[k, n] (+ bias[n]). */
struct tn__matrix {
    char *at;
    int64_t row, column; /* strides in bytes */
    tn_dtype dtype;
    int64_t item;
};

/* An activation and an addition that follow the product, for float32 or float64 with contiguous
 * rows: into = loop(y) + residual. */
struct tn__finish {
    tn__ew_loop *loop; /* NULL: no activation */
    char *into;        /* NULL: y is overwritten; otherwise y keeps the product */
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
    int64_t tile_m, tile_n;          /* size of a piece of the result */
    int64_t rows, columns;           /* pieces down and across */
    bool alone;                      /* the whole product is one piece */
    const struct tn__finish *finish; /* NULL: none */
    bool finished;                   /* `finish` was applied; only packed.c does so */
    const char *panels;              /* all of b, packed by tn__packed_panels(); NULL: not packed */
};

enum { TN__PRODUCT_SMALL = 64 * 64 * 64 * 2 }; /* multiplications that one thread does alone */

/* Returns the matrix whose rows and columns are the given dimensions of `view`; row -1 gives the
 * row stride 0. */
static inline struct tn__matrix tn__matrix_of(const tn_view *view, int32_t row, int32_t column)
{
    int64_t item = tn__view_item(view);
    struct tn__matrix out = { tn__view_at(view), row >= 0 ? view->strides[row] * item : 0,
                              view->strides[column] * item, tn_view_dtype(view), item };
    return out;
}

/* Computes the product on all threads. y is the view from which p->y was made. */
tn_status tn__matmul_run(struct tn__product *p, const tn_view *y);

/* With fewer rows, packing the other matrix does not pay. */
enum { TN__PACKED_ROWS = 5 };
/* Returns whether packed.c can compute this product. */
bool tn__packed_take(const struct tn__product *p);
/* Computes the product, applies p->finish and sets p->finished. */
tn_status tn__packed_run(struct tn__product *p);
/* For products without a batch: tn__packed_bytes returns the number of bytes of all panels of a
 * matrix b[k][n], and tn__packed_panels packs the matrix into `panels`. */
int64_t tn__packed_bytes(enum tn__ct ct, int64_t k, int64_t n);
tn_status tn__packed_panels(enum tn__ct ct, int64_t k, int64_t n, const struct tn__matrix *b,
                            char *panels);

/* Returns whether narrow.c can compute this product, and computes it. */
bool tn__narrow_take(const struct tn__product *p);
tn_status tn__narrow_run(const struct tn__product *p);

#endif

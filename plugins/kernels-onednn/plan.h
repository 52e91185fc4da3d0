/* SPDX-License-Identifier: MIT
 *
 * Plans. A plan is what oneDNN has compiled for one shape of a convolution. Plans are cached, so
 * that the next call with the same shape uses the same plan. */
#ifndef TN_KERNELS_ONEDNN_PLAN_H
#define TN_KERNELS_ONEDNN_PLAN_H

#include "dnnl_api.h"

enum { DIMS = 3 }; /* most dimensions besides images and channels; unused ones are 0 */

enum plan_kind { PLAN_FORWARD = 1, PLAN_INPUT, PLAN_WEIGHT };

/* The key of a plan. Keys are compared as bytes, so a key must be set to zero before it is filled.
 * All activations are dense, with channels last. */
struct shape {
    int64_t kind, dims, bias;
    int64_t images; /* in one part of the batch; the parts are computed in parallel */
    int64_t groups, inputs, outputs;
    int64_t x[DIMS], y[DIMS], kernel[DIMS], stride[DIMS], padding[DIMS], dilation[DIMS];
};

struct plan {
    struct shape shape;
    dnnl_primitive_t main; /* NULL: oneDNN has no implementation for this shape, or the process
                            * ends, and no plan is made any more */
    /* Converts the weight from row-major order to oneDNN's order; for PLAN_WEIGHT, the gradient
     * from oneDNN's order to row-major order. NULL: both orders are the same. */
    dnnl_primitive_t reorder;
    dnnl_memory_desc_t x, y, bias, weight, plain; /* plain: the weight in row-major order */
    size_t scratch, reorder_scratch;              /* bytes */
    int64_t used;                                 /* number of callers that hold the plan */
    uint64_t stamp;                               /* time of the last use; 0: not cached */
};

/* Returns the plan for a shape; creates the plan if it is not cached. Returns NULL and sets the
 * error if memory is missing. The caller must return the plan with plan_give(). */
struct plan *plan_take(const struct shape *shape);
void plan_give(struct plan *plan);
/* Frees all plans; none may be in use. */
void plan_forget_all(void);

#endif

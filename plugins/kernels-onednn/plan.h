/* SPDX-License-Identifier: MIT
 *
 * Plans: what oneDNN compiled for one shape of a convolution, kept for the next call of that
 * shape. */
#ifndef ONEDNN_PLAN_H
#define ONEDNN_PLAN_H

#include "dnnl_api.h"

enum { DIMS = 3 }; /* other than images and channels; unused ones are 0 */

enum plan_kind { PLAN_FORWARD = 1, PLAN_INPUT, PLAN_WEIGHT };

/* The key of a plan; compared as bytes, so it is zeroed first. All activations are dense,
 * channels last. */
struct shape {
    int64_t kind, dims, bias;
    int64_t images; /* of one part of the batch; parts run in parallel */
    int64_t groups, inputs, outputs;
    int64_t x[DIMS], y[DIMS], kernel[DIMS], stride[DIMS], padding[DIMS], dilation[DIMS];
};

struct plan {
    struct shape shape;
    dnnl_primitive_t main; /* NULL: oneDNN has nothing for this shape */
    dnnl_primitive_t
        reorder; /* of the weight: from row-major, or for PLAN_WEIGHT to it; NULL: the same order */
    dnnl_memory_desc_t x, y, bias, weight, plain;
    size_t scratch, reorder_scratch; /* bytes */
    int64_t used;                    /* callers that hold it */
    uint64_t stamp;
};

/* The plan of a shape, created if it is not cached; NULL when there is no memory. The caller
 * returns it. */
struct plan *plan_take(const struct shape *shape);
void plan_give(struct plan *plan);
/* Frees all plans; none may be in use. */
void plan_forget_all(void);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Parts of operators of the tests: one input, one output like it. */
#ifndef TN_TESTS_OP_TOY_OP_H
#define TN_TESTS_OP_TOY_OP_H

#include <tenon/contrib.h>

static tn_status like_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];

    infer->out[0].dtype = tn_view_dtype(x);
    infer->out[0].ndim = x->ndim;
    for (int32_t d = 0; d < x->ndim; d++)
        infer->out[0].shape[d] = x->shape[d];
    return TN_OK;
}

static const tn_operand one_in[] = { { "x", 0, TN_MASK_FLOAT } };
static const tn_operand one_out[] = { { "y", 0, 0 } };

#endif

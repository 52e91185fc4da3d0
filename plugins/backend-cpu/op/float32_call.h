/* SPDX-License-Identifier: MIT
 *
 * Calls in float32 in place of calls in float16 or bfloat16: a kernel for float32 computes the
 * latter, too, by copies of its tensors. */
#ifndef TN_BACKEND_CPU_OP_FLOAT32_CALL_H
#define TN_BACKEND_CPU_OP_FLOAT32_CALL_H

#include "base/dtype.h"
#include "base/kernel.h"

enum { TN__FLOAT32_CALL_MOST = 16 /* operands of a call */ };

/* A call whose operands of float16 and bfloat16 are replaced by operands of float32 with the same
 * strides; if these leave gaps, the replacement is contiguous. */
struct tn__float32_call {
    tn_call call;
    const tn_view *in[TN__FLOAT32_CALL_MOST], *out[TN__FLOAT32_CALL_MOST];
    tn_view views[TN__FLOAT32_CALL_MOST];
    int64_t strides[TN__FLOAT32_CALL_MOST][TN_MAX_DIMS];
};

/* Returns whether `call` has an operand of float16 or bfloat16. */
bool tn__float32_call_needed(const tn_call *call);
/* Fills `to` with the call in float32. The new operands have no memory yet: a function may look at
 * their shapes and strides. */
void tn__float32_call_describe(struct tn__float32_call *to, const tn_call *call);
/* Computes `call` by `run` in float32. Bit i of `unread`: `run` does not read input i, so that it
 * is not copied. */
tn_status tn__float32_call_run(const tn_call *call, uint64_t unread,
                               tn_status (*run)(const tn_call *call));

#endif

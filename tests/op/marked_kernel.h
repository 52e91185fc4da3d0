/* SPDX-License-Identifier: MIT
 *
 * An operator of a test, y = x, with kernels that write their number: the result says which of them
 * ran. */
#ifndef TN_TESTS_OP_MARKED_KERNEL_H
#define TN_TESTS_OP_MARKED_KERNEL_H

#include "tests/op/suite.h"
#include "tests/op/toy_device.h"
#include "tests/op/toy_op.h"

#define TEST_OP(name_)                                                                             \
    TN_HEAD(tn_op_def), .name = name_, .math = "y = x", .help = "", .revision = 1,                 \
                        .inputs = one_in, .outputs = one_out, .n_inputs = 1, .n_outputs = 1,       \
                        .dispatch_input = -1, .infer = like_infer

static inline tn_status mark(const tn_call *call)
{
    for (int64_t i = 0; i < toy_count(call->out[0]); i++)
        toy_floats(call->out[0])[i] = (float)(intptr_t)call->kernel->user;
    return TN_OK;
}

#define MARK(op_, device_, name_, number)                                                          \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = op_, .device = device_, .name = name_, .revision = 1,        \
                                .dtypes = TN_BIT(TN_F32), .run = mark,                             \
                                .user = (const void *)(intptr_t)(number)                           \
    }

static inline tn_tensor *call_op(const char *name, tn_tensor *x)
{
    tn_tensor *y = NULL;
    const tn_op *op = tn_op_find(name, 0);

    if (op != NULL)
        tn_op_call(op, &x, 1, NULL, &y, 1);
    return y;
}

/* A `supports` that takes calls with two rows. */
static inline bool only_pairs(const tn_call *call, char *reason, size_t size)
{
    ck_assert_ptr_null(call->workspace);
    if (call->in[0]->shape[0] == 2)
        return true;
    tn_snprint(reason, size, "%lld is not two", (long long)call->in[0]->shape[0]);
    return false;
}

#endif

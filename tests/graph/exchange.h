/* SPDX-License-Identifier: MIT
 *
 * An operator whose calls must all stay in their order, as exchanges between processes must. Its
 * result is a copy of its input, as in a group of one process. */
#ifndef TN_TESTS_GRAPH_EXCHANGE_H
#define TN_TESTS_GRAPH_EXCHANGE_H

#include "tests/op/toy_op.h"

static tn_status exchange_decompose(const tn_decompose *call)
{
    call->out[0] = tn_mul_scalar(call->in[0], 1);
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

static void register_exchange(void)
{
    static const tn_op_def exchange = { TN_HEAD(tn_op_def),
                                        .name = "test_exchange",
                                        .math = "y = x",
                                        .help = "",
                                        .flags = TN_OP_ORDERED,
                                        .inputs = one_in,
                                        .outputs = one_out,
                                        .n_inputs = 1,
                                        .n_outputs = 1,
                                        .revision = 1,
                                        .dispatch_input = -1,
                                        .infer = like_infer,
                                        .decompose = exchange_decompose };

    ck_ok(tn_register(&exchange));
}

#endif

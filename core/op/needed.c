/* SPDX-License-Identifier: MIT
 *
 * The operators that the core itself calls. tests/house/laws.sh reads their names here. */
#include "core/op/needed.h"

#include "core/op/internal.h"

static struct needed {
    tn_op_ref ref;
    const char *reason;
} needed[TN__NEED_COUNT] = {
    [TN__NEED_copy] = { { "copy", 0, NULL }, "copies between layouts and types, type promotion" },
    [TN__NEED_fill] = { { "fill", 0, NULL }, "new tensors with a value, the seed of backward" },
    [TN__NEED_cast] = { { "cast", 0, NULL }, "type promotion that gradients can follow" },
    [TN__NEED_add] = { { "add", 0, NULL }, "gradients that add up" },
    [TN__NEED_sum_to] = { { "sum_to", 0, NULL }, "gradients of broadcast operands" },
    [TN__NEED_product] = { { "mul", 0, NULL }, "masked parameters" },
    [TN__NEED_masked_select] = { { "masked_select", 0, NULL }, "entries that a mask leaves" },
    [TN__NEED_masked_scatter] = { { "masked_scatter", 0, NULL }, "masks of such entries" },
    [TN__NEED_index_select] = { { "index_select", 0, NULL }, "slices that a mask leaves" },
    [TN__NEED_index_copy] = { { "index_copy", 0, NULL }, "masks of such slices" },
    [TN__NEED_full] = { { "full", 0, NULL }, "new tensors with a value, in a graph" },
    [TN__NEED_view] = { { "view", 0, NULL }, "tensors without history, in a graph" },
    [TN__NEED_permute] = { { "permute", 0, NULL }, "new tensors that are permuted, in a graph" },
};

const tn_op *tn__op_needed(enum tn__need which)
{
    const tn_op *op = tn_op_lookup(&needed[which].ref);

    if (op == NULL)
        tn_error_prefix(
            "the core needs this operator (%s); the plugin \"ops\" that comes with Tenon provides "
            "it: ",
            needed[which].reason);
    return op;
}

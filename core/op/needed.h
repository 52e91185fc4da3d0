/* SPDX-License-Identifier: MIT
 *
 * The few operators that the core itself calls by name (law 1 in tests/house/laws.sh). Each is
 * looked up once. */
#ifndef TN_CORE_OP_NEEDED_H
#define TN_CORE_OP_NEEDED_H

struct tn_op;
/* needed.c says which operator each is, and what the core needs it for. */
enum tn__need {
    TN__NEED_copy,
    TN__NEED_fill,
    TN__NEED_cast,
    TN__NEED_add,
    TN__NEED_sum_to,
    TN__NEED_product,
    TN__NEED_masked_select,
    TN__NEED_masked_scatter,
    TN__NEED_index_select,
    TN__NEED_index_copy,
    TN__NEED_full,
    TN__NEED_view,
    TN__NEED_permute,
    TN__NEED_COUNT
};
/* Returns NULL and sets the error on failure; the message names the plugin that provides the
 * operator. */
const struct tn_op *tn__op_needed(enum tn__need which);

#endif

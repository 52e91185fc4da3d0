/* SPDX-License-Identifier: MIT
 *
 * The few operators that the core itself calls by name (law 1 in tests/house/laws.sh). Each is
 * looked up once. */
#ifndef TN_CORE_OP_NEEDED_H
#define TN_CORE_OP_NEEDED_H

/*        field   operator  what the core needs it for */
#define TN__NEEDED_OPS(X)                                                                          \
    X(copy, "copy", "copies between layouts and types, type promotion")                            \
    X(fill, "fill", "new tensors with a value, the seed of backward")                              \
    X(cast, "cast", "type promotion that gradients can follow")                                    \
    X(add, "add", "gradients that add up")                                                         \
    X(sum_to, "sum_to", "gradients of broadcast operands")                                         \
    X(lerp, "lerp_scalar", "averaged models")                                                      \
    X(mul, "mul_scalar", "averaged integers")                                                      \
    X(product, "mul", "masked parameters")                                                         \
    X(masked_select, "masked_select", "entries that a mask leaves")                                \
    X(masked_scatter, "masked_scatter", "masks of such entries")                                   \
    X(index_select, "index_select", "slices that a mask leaves")                                   \
    X(index_copy, "index_copy", "masks of such slices")                                            \
    X(full, "full", "new tensors with a value, in a graph")                                        \
    X(view, "view", "tensors without history, in a graph")

struct tn_op;
#define TN__NEEDED_FIELD(field, name, why) TN__NEED_##field,
enum tn__need { TN__NEEDED_OPS(TN__NEEDED_FIELD) TN__NEED_COUNT };
/* Returns NULL and sets the error on failure; the message names the plugin that provides the
 * operator. */
const struct tn_op *tn__op_needed(enum tn__need which);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The standard operators: what their outputs look like, their derivatives, and how they come apart
 * into others. No kernels: those are the devices'. */
#include "common.h"

#define ROW(name) &tn__op_##name,

/* clang-format off */
static const void *const contributions[] = {
    &tn__op_copy,          &tn__op_cast,         &tn__op_fill,        &tn__op_philox_uniform,
    &tn__op_philox_normal, &tn__op_uniform,      &tn__op_normal,      &tn__op_add,
    &tn__op_sub,           &tn__op_mul,          &tn__op_div,         &tn__op_maximum,
    &tn__op_add_scalar,    &tn__op_mul_scalar,   &tn__op_neg,         &tn__op_exp,
    &tn__op_log,           &tn__op_sqrt,         &tn__op_relu,        &tn__op_relu_grad,
    &tn__op_sigmoid,       &tn__op_softmax,      &tn__op_log_softmax, &tn__op_log_softmax_grad, &tn__op_softmax_grad,
    &tn__op_sum,           &tn__op_mean,         &tn__op_amax,        &tn__op_argmax,
    &tn__op_sum_to,        &tn__op_bmm,          &tn__op_matmul,      &tn__op_linear,
    &tn__op_view,          &tn__op_reshape,      &tn__op_flatten,     &tn__op_permute,
    &tn__op_transpose,     &tn__op_expand,       &tn__op_unsqueeze,   &tn__op_squeeze,
    &tn__op_narrow,        &tn__op_narrow_grad,  &tn__op_select,      &tn__op_nll_loss,
    &tn__op_nll_loss_grad, &tn__op_cross_entropy,
    TN__ELEMENTWISE_OPS(ROW) TN__FAMILY_OPS(ROW)
};
/* clang-format on */

static const tn_plugin ops = {
    TN_HEAD(tn_plugin),
    .id = "tenon.ops",
    .version = "0.1.0",
    .license = "MIT",
    .help = "The standard operators: inference, derivatives, decompositions",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof contributions[0])
};

TN_PLUGIN_EXPORT(ops);

/* SPDX-License-Identifier: MIT
 *
 * For optimizer steps: checks of the tensors and numbers of a call, numbers that are given by the
 * host or as 0-d tensors, and parts of the formulas. */
#ifndef TN_OPS_OPTIMIZER_H
#define TN_OPS_OPTIMIZER_H

#include "formula.h"

/* ---- checks ---- */

/* Checks that a number is given either as an option or as a 0-d tensor. */
tn_status tn__optimizer_check_number(const tn_view *tensor, bool option, const char *name);
/* Checks the step and the learning rate, each given as input or option. A step that is an option
 * must be 1 or more. */
tn_status tn__optimizer_check_step(const tn_view *tensor, int64_t step);
tn_status tn__optimizer_check_rate(const tn_view *tensor, double lr);
/* Checks the tensors from input `first_input` on. They form groups of `size`, one for each
 * parameter; all tensors of a group must have the same shape and dtype. `words` names the tensors
 * of a group. Also tells the core that the second of each group, the gradient, is only read. */
tn_status tn__optimizer_check_groups(tn_infer *infer, int64_t first_input, int64_t size,
                                     const char *words);

/* ---- numbers ---- */

/* A number of a step: the 0-d `tensor`, or `value` if `tensor` is TN_NONE. `tensor` is NULL after
 * an error. */
struct tn__factor {
    double value;
    tn_tensor *tensor;
};

static inline struct tn__factor tn__optimizer_value(double value)
{
    return (struct tn__factor){ value, TN_NONE };
}
/* Returns the dtype in which step and lr are combined if one of them is a tensor. a and b may be
 * TN_NONE. */
tn_dtype tn__optimizer_dtype(tn_tensor *a, tn_tensor *b, tn_tensor *parameter);
/* Returns the tensor, cast to `dtype`, or `value` if the tensor is TN_NONE. */
struct tn__factor tn__optimizer_given(tn_tensor *tensor, double value, tn_dtype dtype);
struct tn__factor tn__optimizer_times(struct tn__factor a, struct tn__factor b);
struct tn__factor tn__optimizer_scaled(struct tn__factor a, double by);
struct tn__factor tn__optimizer_plus(struct tn__factor a, double b);
struct tn__factor tn__optimizer_over(struct tn__factor a, struct tn__factor b);
struct tn__factor tn__optimizer_root(struct tn__factor a);
/* Returns base^exponent - 1, without loss of digits in float32. base: 0 or more. */
struct tn__factor tn__optimizer_power_less_one(double base, struct tn__factor exponent);

/* ---- formulas on tensors ---- */

/* x = x * by */
tn_tensor *tn__optimizer_scale(tn_tensor *x, struct tn__factor by);
/* x = x + by * y */
tn_tensor *tn__optimizer_add_scaled(tn_tensor *x, tn_tensor *y, struct tn__factor by);
/* x = x + by * (y - x) */
tn_tensor *tn__optimizer_follow(tn_tensor *x, tn_tensor *y, double by);
/* v = keep * v + (1 - keep) * g * g */
tn_tensor *tn__optimizer_squares(tn_tensor *v, tn_tensor *g, double keep);
/* Returns the gradient, negated for `maximize`, plus the weight decay. */
tn_tensor *tn__optimizer_gradient(tn_tensor *p, tn_tensor *gradient, double decay, bool maximize);
/* Calls `one` for each group of `size` tensors and frees its temporary tensors afterwards. */
tn_status tn__optimizer_each(tn_tensor *const *in, int64_t n_in, int64_t size,
                             tn_tensor *(*one)(tn_tensor *const *, const void *),
                             const void *shared);

#endif

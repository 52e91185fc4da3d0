/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of tn_cond and tn_loop: modules whose forward depends on values. */
#ifndef TN_TESTS_GRAPH_CONTROL_H
#define TN_TESTS_GRAPH_CONTROL_H

#include "tests/graph/traced.h"

/* A tensor of bool: whether the sum of the elements is more than `limit`. */
static TN_ATTR(unused) tn_tensor *sum_above(tn_tensor *x, double limit)
{
    return tn_gt(tn_sum(x), tn_tensor_full(TN_SCALAR_SHAPE, limit, TN_F32, NULL));
}

/* ---- a module with tn_cond ------------------------------------------------------------------- */

static TN_ATTR(unused) tn_status
    by_child(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out)
{
    tn_module *self = user;

    (void)n_in, (void)n_out;
    out[0] = tn_relu(tn_module_call_child(self, "fc", in[0]));
    out[1] = in[0];
    return out[0] != NULL ? TN_OK : tn_error_last()->code;
}

static TN_ATTR(unused) tn_status
    by_scale(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out)
{
    tn_module *self = user;

    (void)n_in, (void)n_out;
    out[0] = tn_mul(in[0], tn_module_get(self, "scale"));
    tn_add_scalar_(out[0], TN_SCALAR(1.0)); /* a tensor of its own may be written */
    out[1] = tn_neg(out[0]);
    return out[1] != NULL ? TN_OK : tn_error_last()->code;
}

/* relu(fc(x)) + x where the sum of x is above 20, else (scale x + 1) - (scale x + 1). */
static TN_ATTR(unused) tn_tensor *cond_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *out[2];

    if (tn_cond(sum_above(x, 20), by_child, by_scale, &x, 1, out, 2, self) != TN_OK)
        return NULL;
    return tn_add(out[0], out[1]);
}

/* ---- a module with tn_loop ------------------------------------------------------------------- */

static TN_ATTR(unused) tn_status
    is_small(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out)
{
    (void)user, (void)n_in, (void)n_out;
    out[0] = tn_lt(tn_sum(tn_square(in[0])), tn_tensor_full(TN_SCALAR_SHAPE, 400, TN_F32, NULL));
    return out[0] != NULL ? TN_OK : tn_error_last()->code;
}

static TN_ATTR(unused) tn_status
    grow(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out)
{
    tn_module *self = user;
    tn_tensor *step = tn_module_call_child(self, "fc", in[0]);

    (void)n_in, (void)n_out;
    out[0] = tn_add(tn_mul_scalar(in[0], TN_SCALAR(1.5)),
                    tn_mul(tn_tanh(step), tn_module_get(self, "scale")));
    out[1] = tn_add_scalar(in[1], TN_SCALAR(1.0));
    return out[0] != NULL && out[1] != NULL ? TN_OK : tn_error_last()->code;
}

/* Grows x until it is large, and multiplies it with the number of steps. */
static TN_ATTR(unused) tn_tensor *loop_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *const in[] = { x, tn_zeros(TN_SCALAR_SHAPE) };
    tn_tensor *out[2];

    if (tn_loop(is_small, grow, 12, in, out, 2, self) != TN_OK)
        return NULL;
    return tn_mul(out[0], out[1]);
}

/* ---- both, one in the other ------------------------------------------------------------------ */

static TN_ATTR(unused) tn_status
    halve(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out)
{
    (void)user, (void)n_in, (void)n_out;
    out[0] = tn_mul_scalar(in[0], TN_SCALAR(0.5));
    return TN_OK;
}

static TN_ATTR(unused) tn_status
    through(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out)
{
    (void)n_in, (void)n_out;
    out[0] = tn_mul(in[0], tn_module_get(user, "scale"));
    return TN_OK;
}

static TN_ATTR(unused) tn_status
    step_in_loop(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out)
{
    (void)n_in, (void)n_out;
    return tn_cond(sum_above(in[0], 10), halve, through, in, 1, out, 1, user);
}

static TN_ATTR(unused) tn_status
    above_one(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out)
{
    (void)user, (void)n_in, (void)n_out;
    out[0] = sum_above(in[0], 1);
    return TN_OK;
}

static TN_ATTR(unused) tn_tensor *nested_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_relu(x), *out;

    return tn_loop(above_one, step_in_loop, 5, &y, &out, 1, self) == TN_OK ? out : NULL;
}

#endif

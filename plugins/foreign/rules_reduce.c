/* SPDX-License-Identifier: MIT
 *
 * Rules for reductions that need code: variances, norms, differences. */
#include "rules_bound.h"

#include <math.h>

/* ---- variances ------------------------------------------------------------------------------- */

/* The dimensions; none when not given, which is all of them for the operators. */
static tn_ints dims_of(tn_rule_call *call)
{
    tn_ints dims = rule_ints(call, "dim");

    return dims.count < 0 ? tn_no_ints() : dims;
}

/* `unbiased`, of the older overloads, or `correction`. */
static double correction_of(tn_rule_call *call)
{
    if (!rule_bool(call, "unbiased"))
        return 0;
    return rule_has(call, "correction") ? rule_float(call, "correction") : 1;
}

static tn_tensor *variance(tn_rule_call *call, bool root)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_ints dims = dims_of(call);
    double correction = correction_of(call);
    bool keepdim = rule_bool(call, "keepdim");

    return root ? tn_std(self, dims, correction, keepdim) : tn_var(self, dims, correction, keepdim);
}

static tn_status var(tn_rule_call *call)
{
    return rule_give(call, variance(call, false));
}

static tn_status std(tn_rule_call *call)
{
    return rule_give(call, variance(call, true));
}

static tn_status with_mean(tn_rule_call *call, bool root)
{
    rule_give(call, variance(call, root));
    return rule_give(call,
                     tn_mean(rule_tensor(call, "self"), dims_of(call), rule_bool(call, "keepdim")));
}

static tn_status var_mean(tn_rule_call *call)
{
    return with_mean(call, false);
}

static tn_status std_mean(tn_rule_call *call)
{
    return with_mean(call, true);
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* p is None or 'fro' for the root of the sum of squares. */
static tn_status norm(tn_rule_call *call)
{
    const tn_value *given = rule_value(call, "p"), root = tn_value_string("fro");
    double p = given->kind == TN_VALUE_NONE || rules_literal_equal(given, &root)
                   ? 2
                   : rule_float(call, "p");

    return rule_give(call, tn_norm(rule_tensor(call, "self"), p, dims_of(call),
                                   rule_bool(call, "keepdim"), rule_dtype(call, "dtype")));
}

/* The norm of vectors; with two dimensions and an order it is that of matrices. */
static tn_status linalg_norm(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_ints dims = dims_of(call);
    bool matrices, ordered = rule_has(call, "ord"), keepdim = rule_bool(call, "keepdim");
    tn_dtype dtype = rule_dtype(call, "dtype");
    char ord[32];

    if (call->status != TN_OK)
        return call->status;
    matrices = dims.count == 2 || (dims.count == 0 && tn_tensor_ndim(self) == 2);
    if (!ordered || !matrices)
        return rule_give(call, tn_linalg_vector_norm(self, ordered ? rule_float(call, "ord") : 2,
                                                     dims, keepdim, dtype));
    tn_snprint(ord, sizeof ord, "%g", rule_float(call, "ord"));
    return rule_give(call, tn_linalg_matrix_norm(self, ord, dims.count == 2 ? dims : tn_none_ints(),
                                                 keepdim, dtype));
}

static tn_status dist(tn_rule_call *call)
{
    tn_tensor *difference = tn_sub(rule_tensor(call, "self"), rule_tensor(call, "other"));

    return rule_give(call, tn_norm(difference, rule_float(call, "p")));
}

/* ---- differences of neighbours --------------------------------------------------------------- */

static tn_tensor *difference(tn_tensor *x, int64_t dim)
{
    int64_t n = x != NULL ? tn_tensor_size(x, dim) : 0;
    tn_tensor *after, *before;

    if (n == 0)
        return x;
    after = tn_narrow(x, dim, 1, n - 1);
    before = tn_narrow(x, dim, 0, n - 1);
    return tn_tensor_dtype(x) == TN_BOOL ? tn_ne(after, before) : tn_sub(after, before);
}

static tn_status diff(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *all[3];
    int64_t n = rule_int(call, "n"), dim = rule_axis(call, "dim", self), count = 0;

    if (rule_has(call, "prepend"))
        all[count++] = rule_tensor(call, "prepend");
    all[count++] = self;
    if (rule_has(call, "append"))
        all[count++] = rule_tensor(call, "append");
    if (call->status != TN_OK)
        return call->status;
    if (count > 1)
        self = tn_cat(all, count, dim);
    if (self != NULL && n > tn_tensor_size(self, dim))
        n = tn_tensor_size(self, dim);
    for (int64_t i = 0; i < n; i++)
        self = difference(self, dim);
    return rule_give(call, n > 0 || self == NULL ? self : tn_clone(self));
}

static tn_status trapezoid(tn_rule_call *call)
{
    tn_tensor *y = rule_tensor(call, "y");
    int64_t dim = rule_axis(call, "dim", y), n = call->status == TN_OK ? tn_tensor_size(y, dim) : 0;

    if (call->status != TN_OK)
        return call->status;
    if (n < 2)
        return rule_give(call, tn_mul_scalar(tn_sum(y, TN_INTS(dim)), 0.0));
    y = tn_add(tn_narrow(y, dim, 1, n - 1), tn_narrow(y, dim, 0, n - 1));
    return rule_give(call, tn_mul_scalar(tn_sum(y, TN_INTS(dim)), rule_float(call, "dx") / 2));
}

#define VARIANCE "(self, dim=None, unbiased=True, correction=None, keepdim=False)"

const tn_rule_def rules_reduce[] = {
    { "aten.var" VARIANCE, .call = var },
    { "aten.std" VARIANCE, .call = std },
    { "aten.var_mean" VARIANCE, .call = var_mean },
    { "aten.std_mean" VARIANCE, .call = std_mean },
    { "aten.norm(self, p=2, dim=None, keepdim=False, dtype=None)", .call = norm },
    { "aten.linalg_norm(self, ord=None, dim=None, keepdim=False, dtype=None)",
      .call = linalg_norm },
    { "aten.dist(self, other, p=2)", .call = dist },
    { "aten.diff(self, n=1, dim=-1, prepend=None, append=None)", .call = diff },
    { "aten.trapezoid.dx(y, dx=1, dim=-1)", .call = trapezoid },
    { .function = NULL },
};

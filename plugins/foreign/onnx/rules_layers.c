/* SPDX-License-Identifier: MIT
 *
 * Rules for products, normalization, dropout and losses. */
#include "onnx/onnx_rules.h"

#include <string.h>

/* ---- products -------------------------------------------------------------------------------- */

static tn_status gemm(tn_rule_call *call)
{
    tn_tensor *a = rule_tensor(call, "A"), *b = rule_tensor(call, "B");
    tn_tensor *c = rule_optional(call, "C"), *y;
    double alpha = rule_float(call, "alpha"), beta = rule_float(call, "beta");
    bool by_rows = rule_int(call, "transB") != 0;

    if (call->status != TN_OK)
        return call->status;
    if (tn_tensor_ndim(a) != 2 || tn_tensor_ndim(b) != 2)
        return rule_fail(call, TN_ERR_VALUE, "A, B: %d and %d dimensions; expected 2",
                         (int)tn_tensor_ndim(a), (int)tn_tensor_ndim(b));
    if (rule_int(call, "transA") != 0)
        a = tn_transpose(a, 0, 1);
    if (alpha == 1 && beta == 1 && by_rows && (c == TN_NONE || tn_tensor_ndim(c) == 1))
        return rule_give(call, tn_linear(a, b, c));
    y = tn_matmul(a, by_rows ? tn_transpose(b, 0, 1) : b);
    if (alpha != 1)
        y = rule_cast(tn_mul_scalar(y, tn_scalar_float(alpha)), tn_tensor_dtype(a));
    if (c != TN_NONE && beta != 1)
        c = rule_cast(tn_mul_scalar(c, tn_scalar_float(beta)), tn_tensor_dtype(a));
    return rule_give(call, c != TN_NONE ? tn_add(y, c) : y);
}

static tn_status einsum(tn_rule_call *call)
{
    int64_t count;
    tn_tensor **in = rule_tensors(call, "Inputs", &count);
    const char *equation = rule_text(call, "equation");

    return call->status == TN_OK ? rule_give(call, tn_einsum(in, count, equation)) : call->status;
}

static tn_status det(tn_rule_call *call)
{
    return rule_give(call, tn_linalg_det(rule_tensor(call, "X")));
}

/* ---- normalization --------------------------------------------------------------------------- */

/* With new statistics as results: those of the batch divide by n. */
static tn_status batch_norm_results(tn_rule_call *call, tn_tensor *x, tn_tensor *weight,
                                    tn_tensor *bias, tn_tensor *mean, tn_tensor *var)
{
    double momentum = rule_float(call, "momentum"), eps = rule_float(call, "epsilon");
    int64_t dims[TN_MAX_DIMS], n = 0;
    tn_tensor *m, *v, *y;
    tn_ints all;

    for (int64_t i = 0; i < tn_tensor_ndim(x); i++)
        if (i != 1)
            dims[n++] = i;
    all = (tn_ints){ dims, n };
    m = tn_mean(x, all);
    v = tn_var(x, all, 0.0);
    y = tn_batch_norm(x, m, v, weight, bias, false, 0.0, eps);
    rule_give(call, y);
    rule_give(call, tn_add(tn_mul_scalar(mean, tn_scalar_float(momentum)),
                           tn_mul_scalar(m, tn_scalar_float(1 - momentum))));
    return rule_give(call, tn_add(tn_mul_scalar(var, tn_scalar_float(momentum)),
                                  tn_mul_scalar(v, tn_scalar_float(1 - momentum))));
}

/* In training mode the running statistics are those of the module: PyTorch's momentum is 1 minus
 * that of ONNX. */
static tn_status batch_norm(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *weight = rule_tensor(call, "scale");
    tn_tensor *bias = rule_tensor(call, "B"), *mean = rule_tensor(call, "input_mean");
    tn_tensor *var = rule_tensor(call, "input_var");
    double momentum = rule_float(call, "momentum"), eps = rule_float(call, "epsilon");

    if (call->status != TN_OK)
        return call->status;
    if (tn_tensor_ndim(x) < 2)
        return rule_fail(call, TN_ERR_VALUE, "X: %d dimensions; expected at least 2",
                         (int)tn_tensor_ndim(x));
    if (call->wanted > 1)
        return batch_norm_results(call, x, weight, bias, mean, var);
    return rule_give(call,
                     tn_batch_norm(x, mean, var, weight, bias, call->training, 1 - momentum, eps));
}

static tn_status instance_norm(tn_rule_call *call)
{
    return rule_give(call, tn_instance_norm(rule_tensor(call, "input"), TN_NONE, TN_NONE,
                                            rule_tensor(call, "scale"), rule_tensor(call, "B"),
                                            true, 0.1, rule_float(call, "epsilon")));
}

/* The sizes from the axis on. */
static tn_ints sizes_from(tn_rule_call *call, tn_tensor *x, int64_t *axis)
{
    tn_ints shape;

    *axis = rule_axis(call, "axis", x);
    if (call->status != TN_OK)
        return tn_no_ints();
    shape = tn_tensor_shape(x);
    return (tn_ints){ shape.at + *axis, shape.count - *axis };
}

/* The tensors beyond Y: the mean and the reciprocal of the standard deviation. */
static tn_status give_statistics(tn_rule_call *call, tn_tensor *x, int64_t axis, double eps)
{
    int64_t dims[TN_MAX_DIMS], n = 0;
    tn_ints all;

    for (int64_t i = axis; i < tn_tensor_ndim(x); i++)
        dims[n++] = i;
    all = (tn_ints){ dims, n };
    rule_give(call, tn_mean(x, all, true));
    return rule_give(call,
                     tn_rsqrt(tn_add_scalar(tn_var(x, all, 0.0, true), tn_scalar_float(eps))));
}

static bool has_shape(const tn_tensor *x, tn_ints shape)
{
    return x == TN_NONE ||
           (tn_tensor_ndim(x) == shape.count &&
            memcmp(tn_tensor_shape(x).at, shape.at, (size_t)shape.count * sizeof(int64_t)) == 0);
}

static tn_status layer_norm(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *weight = rule_tensor(call, "Scale"), *y;
    tn_tensor *bias = rule_optional(call, "B");
    double eps = rule_float(call, "epsilon");
    int64_t axis;
    tn_ints shape = sizes_from(call, x, &axis);

    if (call->status != TN_OK)
        return call->status;
    if (has_shape(weight, shape) && has_shape(bias, shape)) {
        y = tn_layer_norm(x, weight, bias, shape, eps);
    } else {
        y = tn_mul(tn_layer_norm(x, TN_NONE, TN_NONE, shape, eps), weight);
        y = bias != TN_NONE ? tn_add(y, bias) : y;
    }
    rule_give(call, y);
    return call->wanted > 1 ? give_statistics(call, x, axis, eps) : call->status;
}

static tn_status rms_norm(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *weight = rule_tensor(call, "scale");
    double eps = rule_float(call, "epsilon");
    int64_t axis;
    tn_ints shape = sizes_from(call, x, &axis);

    if (call->status != TN_OK)
        return call->status;
    if (has_shape(weight, shape))
        return rule_give(call, tn_rms_norm(x, weight, shape, eps));
    return rule_give(call, tn_mul(tn_rms_norm(x, TN_NONE, shape, eps), weight));
}

/* Version 18 has a scale for each group, version 21 for each channel. */
static tn_status group_norm(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *weight = rule_tensor(call, "scale");
    tn_tensor *bias = rule_tensor(call, "bias");
    int64_t groups = rule_int(call, "num_groups"), each, c;

    if (call->status != TN_OK)
        return call->status;
    c = tn_tensor_ndim(x) > 1 ? tn_tensor_size(x, 1) : 0;
    if (groups < 1 || c % groups != 0)
        return rule_fail(call, TN_ERR_VALUE,
                         "num_groups: wrong, got %lld; expected a divisor of %lld",
                         (long long)groups, (long long)c);
    each = c / groups;
    if (tn_tensor_numel(weight) == groups && each > 1) {
        weight = tn_repeat_interleave_scalar(weight, each, 0);
        bias = tn_repeat_interleave_scalar(bias, each, 0);
    }
    return rule_give(call, tn_group_norm(x, weight, bias, groups, rule_float(call, "epsilon")));
}

static tn_status lp_normalization(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input"), *norm;
    int64_t dim = rule_axis(call, "axis", x);

    if (call->status != TN_OK)
        return call->status;
    norm = tn_norm(x, rule_float(call, "p"), TN_INTS(dim), true);
    return rule_give(call, tn_where(tn_eq(norm, onnx_number(0, x)),
                                    tn_mul_scalar(x, tn_scalar_int(0)), tn_div(x, norm)));
}

static tn_status mean_variance(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *mean;
    tn_ints axes = onnx_rule_dims(call, "axes", x != NULL ? tn_tensor_ndim(x) : 0);
    tn_tensor *deviation;

    if (call->status != TN_OK)
        return call->status;
    mean = tn_mean(x, axes, true);
    deviation = tn_sqrt(tn_var(x, axes, 0.0, true)); /* of differences, so that it is never < 0 */
    return rule_give(call,
                     tn_div(tn_sub(x, mean), tn_add_scalar(deviation, tn_scalar_float(1e-9))));
}

/* Of an even size ONNX has one channel more after each channel than before it, PyTorch one more
 * before it: the order of the channels is reversed. */
static tn_status lrn(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *y;
    int64_t size = rule_int(call, "size"), channels = 1;
    bool even = size % 2 == 0;

    if (call->status != TN_OK)
        return call->status;
    y = tn_local_response_norm(even ? tn_flip(x, TN_INTS(channels)) : x, size,
                               rule_float(call, "alpha"), rule_float(call, "beta"),
                               rule_float(call, "bias"));
    return rule_give(call, even ? tn_flip(y, TN_INTS(channels)) : y);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static tn_status give_dropout(tn_rule_call *call, double p, bool training)
{
    tn_tensor *x = rule_tensor(call, "data"), *factors;

    if (call->status != TN_OK)
        return call->status;
    if (!training || p <= 0) {
        rule_give(call, x);
        return call->wanted > 1
                   ? rule_give(call, tn_full(x, tn_tensor_shape(x), tn_scalar_bool(true), TN_BOOL))
                   : call->status;
    }
    factors = tn_dropout(tn_full(x, tn_tensor_shape(x), tn_scalar_int(1), tn_tensor_dtype(x)), p,
                         true);
    rule_give(call, tn_mul(x, factors));
    return rule_give(call, tn_ne(factors, onnx_number(0, x)));
}

/* The mode is an input of the node, so that the file decides. */
static tn_status dropout(tn_rule_call *call)
{
    double p = rule_has(call, "ratio") ? rule_float(call, "ratio") : 0.5;
    bool training = rule_has(call, "training_mode") && rule_bool(call, "training_mode");

    return give_dropout(call, p, training);
}

/* Before version 12 a dropout is of the module's mode; files have it for inference. */
static tn_status dropout_of_mode(tn_rule_call *call)
{
    return give_dropout(call, rule_float(call, "ratio"), call->training);
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* Classes to the end, so that targets [N, ...] select from [N, ..., C]. */
static tn_status give_loss(tn_rule_call *call, tn_tensor *x, tn_tensor *target)
{
    tn_tensor *weight = rule_optional(call, "weights"), *picked, *w, *y, *kept;
    int64_t classes, ignored = rule_has(call, "ignore_index") ? rule_int(call, "ignore_index") : 0;
    bool ignores = rule_has(call, "ignore_index");
    tn_tensor *index, *zero;

    if (call->status != TN_OK || x == NULL)
        return rule_give(call, NULL);
    classes = tn_tensor_size(x, 1);
    target = rule_cast(target, TN_I64);
    zero = tn_full(target, TN_SCALAR_SHAPE, tn_scalar_int(0), TN_I64);
    kept = ignores ? tn_ne(target, tn_full(target, TN_SCALAR_SHAPE, tn_scalar_int(ignored), TN_I64))
                   : tn_ge(target, zero);
    index = ignores ? tn_where(kept, target, zero) : target;
    picked = tn_neg(tn_squeeze(tn_gather(x, tn_unsqueeze(index, 1), 1), TN_INTS(1)));
    if (weight == TN_NONE)
        weight = tn_full(x, TN_SHAPE(classes), tn_scalar_int(1), tn_tensor_dtype(x));
    w = tn_mul(tn_take(weight, index), tn_cast(kept, tn_tensor_dtype(x)));
    y = tn_mul(picked, w);
    if (onnx_is(call, "reduction", "none"))
        return rule_give(call, y);
    y = tn_sum(y);
    return rule_give(call, onnx_is(call, "reduction", "sum") ? y : tn_div(y, tn_sum(w)));
}

static tn_status nll_loss(tn_rule_call *call)
{
    return give_loss(call, rule_tensor(call, "input"), rule_tensor(call, "target"));
}

static tn_status cross_entropy(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input"), *logs = tn_log_softmax(x, 1);

    give_loss(call, logs, rule_tensor(call, "target"));
    return call->wanted > 1 ? rule_give(call, logs) : call->status;
}

#define LOSS "(input, target, weights=None, ignore_index=None, reduction='mean')"

const tn_rule_def onnx_rules_layers[] = {
    { "MatMul(A, B)", .text = "matmul(A, B)" },
    { "Gemm(A, B, C=None, alpha=1.0, beta=1.0, transA=0, transB=0, broadcast=*)", .call = gemm },
    { "Einsum(*Inputs, equation)", .call = einsum },
    { "Det(X)", .call = det },
    { "BatchNormalization(X, scale, B, input_mean, input_var, epsilon=1e-5, momentum=0.9, "
      "training_mode=False, spatial=*, is_test=*)",
      .call = batch_norm, .mode = "training_mode" },
    { "InstanceNormalization(input, scale, B, epsilon=1e-5)", .call = instance_norm },
    { "LayerNormalization(X, Scale, B=None, axis=-1, epsilon=1e-5, stash_type=*)",
      .call = layer_norm },
    { "RMSNormalization(X, scale, axis=-1, epsilon=1e-5, stash_type=*)", .call = rms_norm },
    { "GroupNormalization(X, scale, bias, num_groups, epsilon=1e-5, stash_type=*)",
      .call = group_norm },
    { "LpNormalization(input, axis=-1, p=2)", .call = lp_normalization },
    { "MeanVarianceNormalization(X, axes=[0, 2, 3])", .call = mean_variance },
    { "LRN(X, size, alpha=0.0001, beta=0.75, bias=1.0)", .call = lrn },
    { "Dropout(data, ratio=0.5, is_test=*, training=False)", .call = dropout_of_mode,
      .mode = "training" },
    { "Dropout(data, ratio=None, training_mode=None, seed=*)", .call = dropout, .since = 12 },
    { "NegativeLogLikelihoodLoss" LOSS, .call = nll_loss },
    { "SoftmaxCrossEntropyLoss" LOSS, .call = cross_entropy },
    { .function = NULL },
};

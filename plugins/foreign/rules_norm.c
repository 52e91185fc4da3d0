/* SPDX-License-Identifier: MIT
 *
 * Rules for normalization and dropout. What differs between training and evaluation follows the
 * mode of the module, not the mode in which the program was exported. */
#include "rules.h"

#include <math.h>

/* ---- batch norm ------------------------------------------------------------------------------ */

static tn_tensor *batch_norm_with(tn_rule_call *call, tn_tensor *mean, tn_tensor *var,
                                  bool training, double momentum)
{
    return tn_batch_norm(rule_tensor(call, "input"), mean, var, rule_optional(call, "weight"),
                         rule_optional(call, "bias"), training, momentum, rule_float(call, "eps"));
}

/* Without statistics of earlier batches those of this one are used in both modes. */
static tn_tensor *batch_norm_now(tn_rule_call *call)
{
    tn_tensor *mean = rule_optional(call, "running_mean"),
              *var = rule_optional(call, "running_var");
    bool training = mean == TN_NONE || rule_training(call);

    return batch_norm_with(call, mean, var, training, rule_float(call, "momentum"));
}

static tn_status batch_norm(tn_rule_call *call)
{
    return rule_give(call, batch_norm_now(call));
}

/* What the derivative needs in PyTorch, at the end of the results, is not computed. */
static tn_status without(tn_rule_call *call, int absent)
{
    for (int i = 0; i < absent; i++)
        rule_give_none(call);
    return call->status;
}

static tn_status native_batch_norm(tn_rule_call *call)
{
    rule_give(call, batch_norm_now(call));
    return without(call, 2);
}

static tn_status batch_norm_no_update(tn_rule_call *call)
{
    rule_give(call, batch_norm_now(call));
    return without(call, 3);
}

static tn_status batch_norm_no_stats(tn_rule_call *call)
{
    rule_give(call, batch_norm_with(call, TN_NONE, TN_NONE, true, rule_float(call, "momentum")));
    return without(call, 2);
}

/* The new statistics are results; the old ones stay. */
static tn_status functional(tn_rule_call *call, int absent, bool training)
{
    tn_tensor *mean = tn_clone(tn_tensor_detach(rule_tensor(call, "running_mean")));
    tn_tensor *var = tn_clone(tn_tensor_detach(rule_tensor(call, "running_var")));

    rule_give(call, batch_norm_with(call, mean, var, training, rule_float(call, "momentum")));
    without(call, absent);
    rule_give(call, mean);
    return rule_give(call, var);
}

static tn_status batch_norm_functional(tn_rule_call *call)
{
    return functional(call, 2, rule_training(call));
}

static tn_status batch_norm_update_functional(tn_rule_call *call)
{
    return functional(call, 3, rule_training(call));
}

static tn_status instance_norm(tn_rule_call *call)
{
    return rule_give(
        call, tn_instance_norm(rule_tensor(call, "input"), rule_optional(call, "running_mean"),
                               rule_optional(call, "running_var"), rule_optional(call, "weight"),
                               rule_optional(call, "bias"), rule_bool(call, "use_input_stats"),
                               rule_float(call, "momentum"), rule_float(call, "eps")));
}

/* ---- weight norm ----------------------------------------------------------------------------- */

/* The norms of the parts of v along dim; of all of v if dim is -1. */
static tn_tensor *norms(tn_rule_call *call, tn_tensor *v)
{
    int64_t dims[TN_MAX_DIMS], n = 0, dim = rule_int(call, "dim");

    if (call->status != TN_OK)
        return NULL;
    if (dim == -1)
        return tn_norm(v);
    dim = rule_dim(call, "dim", v);
    for (int64_t d = 0; d < tn_tensor_ndim(v); d++)
        if (d != dim)
            dims[n++] = d;
    /* An empty list would mean all dimensions. */
    return n > 0 ? tn_norm(v, 2, ((tn_ints){ dims, n }), true) : tn_abs(v);
}

static tn_status weight_norm(tn_rule_call *call)
{
    tn_tensor *v = rule_tensor(call, "v"), *g = rule_tensor(call, "g");

    return rule_give(call, tn_mul(v, tn_div(g, norms(call, v))));
}

static tn_status weight_norm_interface(tn_rule_call *call)
{
    tn_tensor *v = rule_tensor(call, "v"), *g = rule_tensor(call, "g"), *n = norms(call, v);

    rule_give(call, tn_mul(v, tn_div(g, n)));
    return rule_give(call, n);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static tn_tensor *plain_dropout(tn_tensor *x, double p)
{
    return tn_dropout(x, p, true);
}

static tn_tensor *channel_dropout(tn_tensor *x, double p)
{
    return tn_feature_dropout(x, p, true);
}

static tn_tensor *alpha_dropout(tn_tensor *x, double p)
{
    return tn_alpha_dropout(x, p, true);
}

static tn_tensor *channel_alpha_dropout(tn_tensor *x, double p)
{
    return tn_feature_alpha_dropout(x, p, true);
}

typedef tn_tensor *dropout_fn(tn_tensor *x, double p);

static tn_status drop(tn_rule_call *call, dropout_fn *kind)
{
    tn_tensor *x = rule_tensor(call, "input");
    double p = rule_float(call, "p");

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, rule_training(call) && p > 0 ? kind(x, p) : x);
}

/* The in-place functions have another name for their argument than the others. */
static tn_status drop_in_place(tn_rule_call *call, dropout_fn *kind)
{
    tn_tensor *self = rule_tensor(call, "self");
    double p = rule_float(call, "p");

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, rule_training(call) && p > 0 ? tn_copy_(self, kind(self, p)) : self);
}

static tn_status dropout(tn_rule_call *call)
{
    return drop(call, plain_dropout);
}

static tn_status dropout_in_place(tn_rule_call *call)
{
    return drop_in_place(call, plain_dropout);
}

static tn_status feature_dropout(tn_rule_call *call)
{
    return drop(call, channel_dropout);
}

static tn_status feature_dropout_in_place(tn_rule_call *call)
{
    return drop_in_place(call, channel_dropout);
}

static tn_status alpha(tn_rule_call *call)
{
    return drop(call, alpha_dropout);
}

static tn_status alpha_in_place(tn_rule_call *call)
{
    return drop_in_place(call, alpha_dropout);
}

static tn_status feature_alpha(tn_rule_call *call)
{
    return drop(call, channel_alpha_dropout);
}

static tn_status feature_alpha_in_place(tn_rule_call *call)
{
    return drop_in_place(call, channel_alpha_dropout);
}

/* Gives the mask, too: which elements are kept. */
static tn_status native_dropout(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input"), *factors;
    double p = rule_float(call, "p");
    bool training = call->status == TN_OK && rule_training(call);

    if (call->status != TN_OK)
        return call->status;
    if (!training || p <= 0) {
        rule_give(call, tn_clone(x));
        return rule_give(call, tn_full(x, tn_tensor_shape(x), true, TN_BOOL));
    }
    factors = tn_dropout(tn_full(x, tn_tensor_shape(x), 1), p, true);
    rule_give(call, tn_mul(x, factors));
    return rule_give(call, tn_cast(factors, TN_BOOL));
}

static tn_status rrelu(tn_rule_call *call)
{
    return rule_give(call, tn_rrelu(rule_tensor(call, "self"), rule_float(call, "lower"),
                                    rule_float(call, "upper"), rule_training(call)));
}

/* ---- attention ------------------------------------------------------------------------------- */

static tn_tensor *attention(tn_rule_call *call, bool enable_gqa)
{
    double p = rule_training(call) ? rule_float(call, "dropout_p") : 0;

    return tn_scaled_dot_product_attention(
        rule_tensor(call, "query"), rule_tensor(call, "key"), rule_tensor(call, "value"),
        rule_optional(call, "attn_mask"), p, rule_bool(call, "is_causal"),
        rule_has(call, "scale") ? rule_float(call, "scale") : NAN, enable_gqa);
}

static tn_status scaled_dot_product_attention(tn_rule_call *call)
{
    return rule_give(call, attention(call, rule_bool(call, "enable_gqa")));
}

static tn_status attention_math(tn_rule_call *call)
{
    rule_give(call, attention(call, rule_bool(call, "enable_gqa")));
    return without(call, 1);
}

static tn_status attention_cpu(tn_rule_call *call)
{
    rule_give(call, attention(call, false));
    return without(call, 1);
}

#define NORM "input, weight, bias, running_mean, running_var, "

const tn_rule_def rules_norm[] = {
    { "aten.batch_norm(" NORM "training, momentum, eps, cudnn_enabled=*)", .call = batch_norm,
      .mode = "training" },
    { "aten.native_batch_norm(" NORM "training, momentum, eps)", .call = native_batch_norm,
      .mode = "training" },
    { "aten._native_batch_norm_legit.default(" NORM "training, momentum, eps)",
      .call = native_batch_norm, .mode = "training" },
    { "aten._native_batch_norm_legit.no_stats(input, weight, bias, training=*, momentum, eps)",
      .call = batch_norm_no_stats },
    /* The name says that it is evaluation: `training` is never in the file. */
    { "aten._native_batch_norm_legit_no_training(" NORM "momentum, eps, training=False)",
      .call = native_batch_norm, .mode = "training" },
    { "aten._native_batch_norm_legit_functional(" NORM "training, momentum, eps)",
      .call = batch_norm_functional, .mode = "training" },
    { "aten._batch_norm_with_update(" NORM "momentum, eps, training=True)",
      .call = batch_norm_no_update, .mode = "training" },
    { "aten._batch_norm_with_update_functional(" NORM "momentum, eps, training=True)",
      .call = batch_norm_update_functional, .mode = "training" },
    { "aten._batch_norm_no_update(" NORM "momentum, eps, training=False)",
      .call = batch_norm_no_update, .mode = "training" },
    { "aten.instance_norm(" NORM "use_input_stats, momentum, eps, cudnn_enabled=*)",
      .call = instance_norm },
    { "aten.native_layer_norm(input, normalized_shape, weight, bias, eps)",
      .text = "layer_norm(input, weight, bias, normalized_shape=normalized_shape, eps=eps), -, -" },
    { "aten.native_group_norm(input, weight, bias, N=*, C=*, HxW=*, group, eps)",
      .text = "group_norm(input, weight, bias, num_groups=group, eps=eps), -, -" },
    { "aten._fused_rms_norm(input, normalized_shape, weight, eps)",
      .text = "rms_norm(input, weight, normalized_shape=normalized_shape, eps=eps), -" },
    { "aten._weight_norm(v, g, dim=0)", .call = weight_norm },
    { "aten._weight_norm_interface(v, g, dim=0)", .call = weight_norm_interface },
    { "aten.dropout(input, p, train)", .call = dropout, .mode = "train" },
    { "aten.dropout_(self, p, train)", .call = dropout_in_place, .mode = "train" },
    { "aten.feature_dropout(input, p, train)", .call = feature_dropout, .mode = "train" },
    { "aten.feature_dropout_(self, p, train)", .call = feature_dropout_in_place, .mode = "train" },
    { "aten.alpha_dropout(input, p, train)", .call = alpha, .mode = "train" },
    { "aten.alpha_dropout_(self, p, train)", .call = alpha_in_place, .mode = "train" },
    { "aten.feature_alpha_dropout(input, p, train)", .call = feature_alpha, .mode = "train" },
    { "aten.feature_alpha_dropout_(self, p, train)", .call = feature_alpha_in_place,
      .mode = "train" },
    { "aten.native_dropout(input, p, train=True)", .call = native_dropout, .mode = "train" },
    { "aten.rrelu(self, lower=0.125, upper=0.3333333333333333, training=False)", .call = rrelu,
      .mode = "training" },
    { "aten.scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, "
      "is_causal=False, scale=None, enable_gqa=False)",
      .call = scaled_dot_product_attention, .mode = "dropout_p" },
    { "aten._scaled_dot_product_attention_math(query, key, value, attn_mask=None, dropout_p=0.0, "
      "is_causal=False, dropout_mask=None, scale=None, enable_gqa=False)",
      .call = attention_math, .mode = "dropout_p" },
    { "aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p=0.0, "
      "is_causal=False, attn_mask=None, scale=None)",
      .call = attention_cpu, .mode = "dropout_p" },
    { .function = NULL },
};

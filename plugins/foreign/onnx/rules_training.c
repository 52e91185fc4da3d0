/* SPDX-License-Identifier: MIT
 *
 * Rules for steps of optimizers (domain ai.onnx.preview.training). Inputs are the rate, the number
 * of steps before, then all tensors X, all gradients G, all states. */
#include "onnx/onnx_rules.h"

#include <math.h>

struct step {
    double rate, norm;
    double steps;  /* before */
    int64_t count; /* of tensors X */
    tn_tensor **in;
};

static tn_tensor *times(tn_tensor *x, double factor)
{
    return tn_mul_scalar(x, tn_scalar_float(factor));
}

/* Reads the inputs: `rows` tensors for each one of X. */
static tn_status read_step(tn_rule_call *call, int64_t rows, struct step *s)
{
    int64_t count;

    s->rate = rule_float(call, "R");
    s->steps = rule_float(call, "T");
    s->norm = rule_float(call, "norm_coefficient");
    s->in = rule_tensors(call, "inputs", &count);
    if (call->status == TN_OK && (count < rows || count % rows != 0))
        return rule_fail(call, TN_ERR_VALUE, "inputs: %lld tensors; expected a multiple of %lld",
                         (long long)count, (long long)rows);
    s->count = count / rows;
    return call->status;
}

/* The gradient with that of the regularization. */
static tn_tensor *gradient(const struct step *s, int64_t i)
{
    return tn_add(times(s->in[i], s->norm), s->in[s->count + i]);
}

static tn_status adagrad(tn_rule_call *call)
{
    struct step s = { .count = 0 };
    tn_tensor **out;
    double rate;

    if (read_step(call, 3, &s) != TN_OK)
        return call->status;
    rate = s.rate / (1 + s.steps * rule_float(call, "decay_factor"));
    out = rule_memory(call, 2 * s.count, sizeof *out);
    for (int64_t i = 0; i < s.count && out != NULL; i++) {
        tn_tensor *g = gradient(&s, i), *h = tn_add(s.in[2 * s.count + i], tn_mul(g, g));
        tn_tensor *root = tn_add_scalar(tn_sqrt(h), tn_scalar_float(rule_float(call, "epsilon")));

        out[i] = tn_sub(s.in[i], times(tn_div(g, root), rate));
        out[s.count + i] = h;
    }
    return out != NULL ? rule_give_all(call, out, 2 * s.count) : call->status;
}

static tn_status adam(tn_rule_call *call)
{
    double alpha = rule_float(call, "alpha"), beta = rule_float(call, "beta"), rate;
    double after = rule_float(call, "norm_coefficient_post");
    struct step s = { .count = 0 };
    tn_tensor **out;

    if (read_step(call, 4, &s) != TN_OK)
        return call->status;
    rate = s.rate;
    if (s.steps > 0)
        rate *= sqrt(1 - pow(beta, s.steps)) / (1 - pow(alpha, s.steps));
    out = rule_memory(call, 3 * s.count, sizeof *out);
    for (int64_t i = 0; i < s.count && out != NULL; i++) {
        tn_tensor *g = gradient(&s, i), *root, *v, *h;

        v = tn_add(times(s.in[2 * s.count + i], alpha), times(g, 1 - alpha));
        h = tn_add(times(s.in[3 * s.count + i], beta), times(tn_mul(g, g), 1 - beta));
        root = tn_add_scalar(tn_sqrt(h), tn_scalar_float(rule_float(call, "epsilon")));
        out[i] = times(tn_sub(s.in[i], times(tn_div(v, root), rate)), 1 - after);
        out[s.count + i] = v;
        out[2 * s.count + i] = h;
    }
    return out != NULL ? rule_give_all(call, out, 3 * s.count) : call->status;
}

static tn_status momentum(tn_rule_call *call)
{
    double alpha = rule_float(call, "alpha"), beta = rule_float(call, "beta");
    bool nesterov = onnx_is(call, "mode", "nesterov");
    struct step s = { .count = 0 };
    tn_tensor **out;

    if (read_step(call, 3, &s) != TN_OK)
        return call->status;
    beta = s.steps > 0 ? beta : 1;
    out = rule_memory(call, 2 * s.count, sizeof *out);
    for (int64_t i = 0; i < s.count && out != NULL; i++) {
        tn_tensor *g = gradient(&s, i);
        tn_tensor *v = tn_add(times(s.in[2 * s.count + i], alpha), times(g, beta));

        out[i] = tn_sub(s.in[i], times(nesterov ? tn_add(g, times(v, alpha)) : v, s.rate));
        out[s.count + i] = v;
    }
    return out != NULL ? rule_give_all(call, out, 2 * s.count) : call->status;
}

#define STEP(name) "ai.onnx.preview.training." name "(R, T, *inputs, "

const tn_rule_def onnx_rules_training[] = {
    { STEP("Adagrad") "decay_factor=0.0, epsilon=1e-6, norm_coefficient=0.0)", .call = adagrad },
    { STEP("Adam") "alpha=0.9, beta=0.999, epsilon=1e-6, norm_coefficient=0.0, "
                   "norm_coefficient_post=0.0)",
      .call = adam },
    { STEP("Momentum") "alpha, beta, mode, norm_coefficient)", .call = momentum },
    { .function = NULL },
};

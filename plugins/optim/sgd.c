/* SPDX-License-Identifier: MIT
 *
 * Stochastic gradient descent with momentum, as torch.optim.SGD documents it:
 *   g = gradient + weight_decay * p
 *   b = g at the first step, then momentum * b + (1 - dampening) * g
 *   g = g + momentum * b with nesterov, else b
 *   p = p - lr * g
 * The operator sgd_step (plugins/ops/optimizer.c) computes this. */
#include "optim.h"

struct sgd {
    double lr;
    double momentum;
    double dampening;
    double weight_decay;
    bool nesterov;
    bool maximize;
    bool capturable;
    struct optim_rate held;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct sgd, lr, "0.001", "learning rate"),
    TN_OPTION_FLOAT(struct sgd, momentum, "0.0", "momentum factor"),
    TN_OPTION_FLOAT(struct sgd, dampening, "0.0", "dampening of the momentum"),
    TN_OPTION_FLOAT(struct sgd, weight_decay, "0.0", "L2 penalty, added to the gradient"),
    TN_OPTION_BOOL(struct sgd, nesterov, "False", "Nesterov momentum"),
    TN_OPTION_ROW(struct sgd, maximize, "False", "maximizes the objective", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    OPTIM_CAPTURABLE(struct sgd),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct sgd *s = options;
    (void)self;
    if (!(s->lr >= 0.0))
        return tn_fail(TN_ERR_VALUE, "SGD: Invalid learning rate: %g; expected 0 or more", s->lr);
    if (!(s->momentum >= 0.0))
        return tn_fail(TN_ERR_VALUE, "SGD: Invalid momentum value: %g; expected 0 or more",
                       s->momentum);
    if (!(s->weight_decay >= 0.0))
        return tn_fail(TN_ERR_VALUE, "SGD: Invalid weight_decay value: %g; expected 0 or more",
                       s->weight_decay);
    if (s->nesterov && (s->momentum <= 0.0 || s->dampening != 0.0))
        return tn_fail(
            TN_ERR_VALUE,
            "SGD: Nesterov momentum requires a momentum and zero dampening; momentum is %g, "
            "dampening %g",
            s->momentum, s->dampening);
    return TN_OK;
}

static tn_status run(const struct optim_call *call)
{
    const struct sgd *s = call->options;
    tn_sgd_step_options o = TN_SGD_STEP_OPTIONS;
    if (call->rate == TN_NONE)
        o.lr = s->lr;
    o.momentum = s->momentum;
    o.dampening = s->dampening;
    o.weight_decay = s->weight_decay;
    o.nesterov = s->nesterov;
    o.maximize = s->maximize;
    o.first = call->fresh; /* the first buffer is the gradient itself, not dampened */
    return tn_sgd_step(call->rate, call->list, call->n, o.lr, o.momentum, o.dampening,
                       o.weight_decay, o.nesterov, o.maximize, o.first);
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    static const char *const states[] = { "momentum_buffer" };
    struct sgd *s = tn_optimizer_data(self, args->group);
    if (s == NULL)
        return tn_error_last_code();
    const struct optim_rule rule = { .states = states,
                                     .n_states = s->momentum != 0,
                                     .capturable = s->capturable,
                                     .rate = s->lr,
                                     .held = &s->held,
                                     .run = run };
    return optim_step(self, args, &rule);
}

const tn_optimizer_def optim_sgd = {
    TN_HEAD(tn_optimizer_def),
    .name = "SGD",
    .help = "stochastic gradient descent with momentum",
    .options = table,
    .data_size = sizeof(struct sgd),
    .check = check,
    .flags = TN_OPTIMIZER_ELEMENTWISE,
    .step = step,
};

/* SPDX-License-Identifier: MIT
 *
 * RAdam, as torch.optim.RAdam documents it: Adam, whose step is divided by the root of the average
 * of squares only when the variance of that average is finite, and is then rectified. The operator
 * radam_step has the formula. */
#include "optim.h"

struct radam {
    double lr;
    tn_floats betas;
    double eps;
    double weight_decay;
    bool decoupled_weight_decay;
    bool maximize;
    bool capturable;
    struct optim_rate held;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct radam, lr, "0.001", "learning rate"),
    TN_OPTION_FLOATS(struct radam, betas, "(0.9, 0.999)",
                     "decay rates of the averages of the gradient and its square"),
    TN_OPTION_FLOAT(struct radam, eps, "1e-08", "added to the denominator, for stability"),
    TN_OPTION_FLOAT(struct radam, weight_decay, "0.0", "weight decay"),
    TN_OPTION_BOOL(struct radam, decoupled_weight_decay, "False",
                   "weights decay separately from the gradient, as in AdamW"),
    TN_OPTION_ROW(struct radam, maximize, "False", "maximizes the objective", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    OPTIM_CAPTURABLE(struct radam),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct radam *s = options;

    return optim_check_adam(self, s->lr, &s->betas, s->eps, s->weight_decay);
}

static tn_status run(const struct optim_call *call)
{
    const struct radam *s = call->options;
    tn_radam_step_options o = TN_RADAM_STEP_OPTIONS;

    if (call->step == TN_NONE)
        o.step = call->steps;
    if (call->rate == TN_NONE)
        o.lr = s->lr;
    o.beta1 = s->betas.at[0];
    o.beta2 = s->betas.at[1];
    o.eps = s->eps;
    o.weight_decay = s->weight_decay;
    o.maximize = s->maximize;
    o.decoupled = s->decoupled_weight_decay;
    return tn_radam_step(call->step, call->rate, call->list, call->n, o.step, o.lr, o.beta1,
                         o.beta2, o.eps, o.weight_decay, o.maximize, o.decoupled);
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    static const char *const states[] = { "exp_avg", "exp_avg_sq" };
    struct radam *s = tn_optimizer_data(self, args->group);
    if (s == NULL)
        return tn_error_last_code();
    const struct optim_rule rule = { .states = states,
                                     .n_states = 2,
                                     .capturable = s->capturable,
                                     .counts = true,
                                     .rate = s->lr,
                                     .held = &s->held,
                                     .run = run };
    return optim_step(self, args, &rule);
}

const tn_optimizer_def optim_radam = {
    TN_HEAD(tn_optimizer_def),
    .name = "RAdam",
    .help = "Adam with a rectified variance",
    .options = table,
    .data_size = sizeof(struct radam),
    .check = check,
    .flags = TN_OPTIMIZER_ELEMENTWISE,
    .step = step,
};

/* SPDX-License-Identifier: MIT
 *
 * Adamax, as torch.optim.Adamax documents it: Adam with the largest absolute value in place of the
 * average of squares.
 *   g = gradient + weight_decay * p
 *   m = m + (1 - beta1) * (g - m)
 *   u = max(beta2 * u, |g| + eps)
 *   p = p - lr / (1 - beta1^t) * m / u */
#include "optim.h"

struct adamax {
    double lr;
    tn_floats betas;
    double eps;
    double weight_decay;
    bool maximize;
    bool capturable;
    struct optim_rate held;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct adamax, lr, "0.002", "learning rate"),
    TN_OPTION_FLOATS(struct adamax, betas, "(0.9, 0.999)",
                     "decay rates of the average of the gradient and of its largest value"),
    TN_OPTION_FLOAT(struct adamax, eps, "1e-08", "added to the absolute value of the gradient"),
    TN_OPTION_FLOAT(struct adamax, weight_decay, "0.0", "L2 penalty, added to the gradient"),
    TN_OPTION_ROW(struct adamax, maximize, "False", "maximizes the objective", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    OPTIM_CAPTURABLE(struct adamax),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct adamax *s = options;

    return optim_check_adam(self, s->lr, &s->betas, s->eps, s->weight_decay);
}

static tn_status run(const struct optim_call *call)
{
    const struct adamax *s = call->options;
    tn_adamax_step_options o = TN_ADAMAX_STEP_OPTIONS;

    if (call->step == TN_NONE)
        o.step = call->steps;
    if (call->rate == TN_NONE)
        o.lr = s->lr;
    o.beta1 = s->betas.at[0];
    o.beta2 = s->betas.at[1];
    o.eps = s->eps;
    o.weight_decay = s->weight_decay;
    o.maximize = s->maximize;
    return tn_adamax_step(call->step, call->rate, call->list, call->n, o.step, o.lr, o.beta1,
                          o.beta2, o.eps, o.weight_decay, o.maximize);
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    static const char *const states[] = { "exp_avg", "exp_inf" };
    struct adamax *s = tn_optimizer_data(self, args->group);
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

const tn_optimizer_def optim_adamax = {
    TN_HEAD(tn_optimizer_def),
    .name = "Adamax",
    .help = "Adam with the infinity norm",
    .options = table,
    .data_size = sizeof(struct adamax),
    .check = check,
    .flags = TN_OPTIMIZER_ELEMENTWISE,
    .step = step,
};

/* SPDX-License-Identifier: MIT
 *
 * Lion, by the rule of its paper (Chen et al., Symbolic Discovery of Optimization Algorithms,
 * 2023); torch.optim has no Lion:
 *   c = beta1 * m + (1 - beta1) * gradient
 *   p = p - lr * (sign(c) + weight_decay * p)
 *   m = beta2 * m + (1 - beta2) * gradient */
#include "optim.h"

struct lion {
    double lr;
    tn_floats betas;
    double weight_decay;
    bool maximize;
    bool capturable;
    struct optim_rate held;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct lion, lr, "0.0001", "learning rate"),
    TN_OPTION_FLOATS(struct lion, betas, "(0.9, 0.99)",
                     "weight of the momentum in the step, and its decay rate"),
    TN_OPTION_FLOAT(struct lion, weight_decay, "0.0", "decoupled weight decay"),
    TN_OPTION_ROW(struct lion, maximize, "False", "maximizes the objective", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    OPTIM_CAPTURABLE(struct lion),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct lion *s = options;
    tn_status status = optim_check_common(self, s->lr, 0, s->weight_decay);

    return status == TN_OK ? optim_check_betas(self, &s->betas) : status;
}

static tn_status run(const struct optim_call *call)
{
    const struct lion *s = call->options;
    tn_lion_step_options o = TN_LION_STEP_OPTIONS;

    if (call->rate == TN_NONE)
        o.lr = s->lr;
    o.beta1 = s->betas.at[0];
    o.beta2 = s->betas.at[1];
    o.weight_decay = s->weight_decay;
    o.maximize = s->maximize;
    return tn_lion_step(call->rate, call->list, call->n, o.lr, o.beta1, o.beta2, o.weight_decay,
                        o.maximize);
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    static const char *const states[] = { "exp_avg" };
    struct lion *s = tn_optimizer_data(self, args->group);
    if (s == NULL)
        return tn_error_last_code();
    const struct optim_rule rule = { .states = states,
                                     .n_states = 1,
                                     .capturable = s->capturable,
                                     .rate = s->lr,
                                     .held = &s->held,
                                     .run = run };
    return optim_step(self, args, &rule);
}

const tn_optimizer_def optim_lion = {
    TN_HEAD(tn_optimizer_def),
    .name = "Lion",
    .help = "steps by the sign of a momentum",
    .options = table,
    .data_size = sizeof(struct lion),
    .check = check,
    .flags = TN_OPTIMIZER_ELEMENTWISE,
    .step = step,
};

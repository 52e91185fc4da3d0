/* SPDX-License-Identifier: MIT
 *
 * Adam and AdamW, as torch.optim documents them. With t the number of this step:
 *   Adam:  g = gradient + weight_decay * p       AdamW: p = p * (1 - lr * weight_decay)
 *   m = m + (1 - beta1) * (g - m)
 *   v = beta2 * v + (1 - beta2) * g * g          amsgrad: w = max(w, v), and w replaces v below
 *   p = p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps) */
#include "optim.h"

struct adam {
    double lr;
    tn_floats betas;
    double eps;
    double weight_decay;
    bool amsgrad;
    bool maximize;
    bool capturable;
    struct optim_rate held;
};

#define OPTIONS(decay_)                                                                            \
    {                                                                                              \
        TN_OPTION_FLOAT(struct adam, lr, "0.001", "learning rate"),                                \
            TN_OPTION_FLOATS(struct adam, betas, "(0.9, 0.999)",                                   \
                             "decay rates of the averages of the gradient and its square"),        \
            TN_OPTION_FLOAT(struct adam, eps, "1e-08", "added to the denominator, for stability"), \
            TN_OPTION_FLOAT(struct adam, weight_decay, decay_, "weight decay"),                    \
            TN_OPTION_BOOL(struct adam, amsgrad, "False",                                          \
                           "uses the maximum of the averages of squares"),                         \
            TN_OPTION_ROW(struct adam, maximize, "False", "maximizes the objective",               \
                          TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),                                 \
            OPTIM_CAPTURABLE(struct adam), TN_OPTION_END                                           \
    }

static const tn_option adam_options[] = OPTIONS("0.0");
static const tn_option adamw_options[] = OPTIONS("0.01");

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct adam *s = options;

    return optim_check_adam(self, s->lr, &s->betas, s->eps, s->weight_decay);
}

static tn_status run(const struct optim_call *call, bool decoupled)
{
    const struct adam *s = call->options;
    tn_adam_step_options o = TN_ADAM_STEP_OPTIONS;
    if (call->step == TN_NONE)
        o.step = call->steps;
    if (call->rate == TN_NONE)
        o.lr = s->lr;
    o.beta1 = s->betas.at[0];
    o.beta2 = s->betas.at[1];
    o.eps = s->eps;
    o.weight_decay = s->weight_decay;
    o.amsgrad = s->amsgrad;
    o.maximize = s->maximize;
    o.decoupled = decoupled;
    return tn_adam_step(call->step, call->rate, call->list, call->n, o.step, o.lr, o.beta1, o.beta2,
                        o.eps, o.weight_decay, o.amsgrad, o.maximize, o.decoupled);
}

static tn_status run_adam(const struct optim_call *call)
{
    return run(call, false);
}

static tn_status run_adamw(const struct optim_call *call)
{
    return run(call, true);
}

static tn_status step(tn_optimizer *self, const tn_step_args *args,
                      tn_status (*run_one)(const struct optim_call *))
{
    static const char *const states[] = { "exp_avg", "exp_avg_sq", "max_exp_avg_sq" };
    struct adam *s = tn_optimizer_data(self, args->group);
    if (s == NULL)
        return tn_error_last_code();
    const struct optim_rule rule = { .states = states,
                                     .n_states = 2 + s->amsgrad,
                                     .capturable = s->capturable,
                                     .counts = true,
                                     .rate = s->lr,
                                     .held = &s->held,
                                     .run = run_one };
    return optim_step(self, args, &rule);
}

static tn_status adam_step(tn_optimizer *self, const tn_step_args *args)
{
    return step(self, args, run_adam);
}

static tn_status adamw_step(tn_optimizer *self, const tn_step_args *args)
{
    return step(self, args, run_adamw);
}

const tn_optimizer_def optim_adam = {
    TN_HEAD(tn_optimizer_def),
    .name = "Adam",
    .help = "adaptive moments; weight_decay is added to the gradient",
    .options = adam_options,
    .data_size = sizeof(struct adam),
    .check = check,
    .flags = TN_OPTIMIZER_ELEMENTWISE,
    .step = adam_step,
};

const tn_optimizer_def optim_adamw = {
    TN_HEAD(tn_optimizer_def),
    .name = "AdamW",
    .help = "adaptive moments; weights decay separately from the gradient",
    .options = adamw_options,
    .data_size = sizeof(struct adam),
    .check = check,
    .flags = TN_OPTIMIZER_ELEMENTWISE,
    .step = adamw_step,
};

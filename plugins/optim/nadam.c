/* SPDX-License-Identifier: MIT
 *
 * NAdam, as torch.optim.NAdam documents it: Adam with Nesterov momentum. The operator nadam_step
 * has the formula. The state mu_product is the product of the momenta of all steps. */
#include "optim.h"

#include <math.h>

struct nadam {
    double lr;
    tn_floats betas;
    double eps;
    double weight_decay;
    double momentum_decay;
    bool decoupled_weight_decay;
    bool maximize;
    bool capturable;
    struct optim_rate held;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct nadam, lr, "0.002", "learning rate"),
    TN_OPTION_FLOATS(struct nadam, betas, "(0.9, 0.999)",
                     "decay rates of the averages of the gradient and its square"),
    TN_OPTION_FLOAT(struct nadam, eps, "1e-08", "added to the denominator, for stability"),
    TN_OPTION_FLOAT(struct nadam, weight_decay, "0.0", "weight decay"),
    TN_OPTION_FLOAT(struct nadam, momentum_decay, "0.004", "decay of the momentum"),
    TN_OPTION_BOOL(struct nadam, decoupled_weight_decay, "False",
                   "weights decay separately from the gradient, as in AdamW"),
    TN_OPTION_ROW(struct nadam, maximize, "False", "maximizes the objective", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    OPTIM_CAPTURABLE(struct nadam),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct nadam *s = options;
    tn_status status = optim_check_common(self, s->lr, s->eps, s->weight_decay);

    if (status == TN_OK)
        status = optim_check_betas(self, &s->betas);
    if (status == TN_OK)
        status = optim_check_least(self, "Invalid momentum_decay value", s->momentum_decay, 0);
    return status;
}

/* Returns mu_product times the momentum of this step, beta1 * (1 - 0.96^(step * momentum_decay) /
 * 2).
 */
static tn_tensor *multiplied(const struct optim_call *call)
{
    const struct nadam *s = call->options;
    tn_tensor *product = call->number[0], *mu;
    double beta1 = s->betas.at[0], decay = log(0.96) * s->momentum_decay;

    if (call->step == TN_NONE)
        return tn_mul_scalar(product, beta1 * (1 - 0.5 * exp(decay * (double)call->steps)));
    mu = tn_exp(tn_mul_scalar(tn_cast(call->step, tn_tensor_dtype(product)), decay));
    return tn_mul(product, tn_add_scalar(tn_mul_scalar(mu, -0.5 * beta1), beta1));
}

static tn_status run(const struct optim_call *call)
{
    const struct nadam *s = call->options;
    tn_nadam_step_options o = TN_NADAM_STEP_OPTIONS;
    tn_tensor *product;
    tn_status status;

    if (call->step == TN_NONE)
        o.step = call->steps;
    if (call->rate == TN_NONE)
        o.lr = s->lr;
    o.beta1 = s->betas.at[0];
    o.beta2 = s->betas.at[1];
    o.eps = s->eps;
    o.weight_decay = s->weight_decay;
    o.momentum_decay = s->momentum_decay;
    o.maximize = s->maximize;
    o.decoupled = s->decoupled_weight_decay;
    product = multiplied(call);
    status = tn_nadam_step(call->step, call->rate, product, call->list, call->n, o.step, o.lr,
                           o.beta1, o.beta2, o.eps, o.weight_decay, o.momentum_decay, o.maximize,
                           o.decoupled);
    if (status == TN_OK && tn_copy_(call->number[0], product) == NULL)
        status = tn_error_last_code();
    return status;
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    static const char *const states[] = { "exp_avg", "exp_avg_sq" };
    static const struct optim_number numbers[] = { { "mu_product", 1 } };
    struct nadam *s = tn_optimizer_data(self, args->group);
    if (s == NULL)
        return tn_error_last_code();
    const struct optim_rule rule = { .states = states,
                                     .n_states = 2,
                                     .numbers = numbers,
                                     .n_numbers = 1,
                                     .capturable = s->capturable,
                                     .counts = true,
                                     .rate = s->lr,
                                     .held = &s->held,
                                     .run = run };
    return optim_step(self, args, &rule);
}

const tn_optimizer_def optim_nadam = {
    TN_HEAD(tn_optimizer_def),
    .name = "NAdam",
    .help = "Adam with Nesterov momentum",
    .options = table,
    .data_size = sizeof(struct nadam),
    .check = check,
    .flags = TN_OPTIMIZER_ELEMENTWISE,
    .step = step,
};

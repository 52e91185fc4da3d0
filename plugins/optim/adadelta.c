/* SPDX-License-Identifier: MIT
 *
 * Adadelta, as torch.optim.Adadelta documents it:
 *   g = gradient + weight_decay * p
 *   v = rho * v + (1 - rho) * g * g
 *   d = sqrt(a + eps) / sqrt(v + eps) * g
 *   a = rho * a + (1 - rho) * d * d
 *   p = p - lr * d */
#include "optim.h"

struct adadelta {
    double lr;
    double rho;
    double eps;
    double weight_decay;
    bool maximize;
    bool capturable;
    struct optim_rate held;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct adadelta, lr, "1.0", "learning rate"),
    TN_OPTION_FLOAT(struct adadelta, rho, "0.9", "decay rate of the averages of squares"),
    TN_OPTION_FLOAT(struct adadelta, eps, "1e-06", "added below both roots, for stability"),
    TN_OPTION_FLOAT(struct adadelta, weight_decay, "0.0", "L2 penalty, added to the gradient"),
    TN_OPTION_ROW(struct adadelta, maximize, "False", "maximizes the objective",
                  TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),
    OPTIM_CAPTURABLE(struct adadelta),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct adadelta *s = options;
    tn_status status = optim_check_common(self, s->lr, s->eps, s->weight_decay);

    if (status == TN_OK && !(s->rho >= 0.0 && s->rho <= 1.0))
        return tn_fail(TN_ERR_VALUE, "%s: Invalid rho value: %g; expected a number in [0, 1]",
                       tn_optimizer_type(self), s->rho);
    return status;
}

static tn_status run(const struct optim_call *call)
{
    const struct adadelta *s = call->options;
    tn_adadelta_step_options o = TN_ADADELTA_STEP_OPTIONS;

    if (call->rate == TN_NONE)
        o.lr = s->lr;
    o.rho = s->rho;
    o.eps = s->eps;
    o.weight_decay = s->weight_decay;
    o.maximize = s->maximize;
    return tn_adadelta_step(call->rate, call->list, call->n, o.lr, o.rho, o.eps, o.weight_decay,
                            o.maximize);
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    static const char *const states[] = { "square_avg", "acc_delta" };
    struct adadelta *s = tn_optimizer_data(self, args->group);
    if (s == NULL)
        return tn_error_last_code();
    const struct optim_rule rule = { .states = states,
                                     .n_states = 2,
                                     .capturable = s->capturable,
                                     .rate = s->lr,
                                     .held = &s->held,
                                     .run = run };
    return optim_step(self, args, &rule);
}

const tn_optimizer_def optim_adadelta = {
    TN_HEAD(tn_optimizer_def),
    .name = "Adadelta",
    .help = "step sizes from the averages of squared steps and gradients",
    .options = table,
    .data_size = sizeof(struct adadelta),
    .check = check,
    .flags = TN_OPTIMIZER_ELEMENTWISE,
    .step = step,
};

/* SPDX-License-Identifier: MIT
 *
 * RMSprop, as torch.optim.RMSprop documents it:
 *   g = gradient + weight_decay * p
 *   v = alpha * v + (1 - alpha) * g * g
 *   centered: a = alpha * a + (1 - alpha) * g, and v - a * a replaces v below
 *   g = g / (sqrt(v) + eps)
 *   p = p - lr * g, or with momentum b = momentum * b + g and p = p - lr * b */
#include "optim.h"

struct rmsprop {
    double lr;
    double alpha;
    double eps;
    double weight_decay;
    double momentum;
    bool centered;
    bool capturable;
    bool maximize;
    struct optim_rate held;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct rmsprop, lr, "0.01", "learning rate"),
    TN_OPTION_FLOAT(struct rmsprop, alpha, "0.99", "decay rate of the average of squares"),
    TN_OPTION_FLOAT(struct rmsprop, eps, "1e-08", "added to the denominator, for stability"),
    TN_OPTION_FLOAT(struct rmsprop, weight_decay, "0.0", "L2 penalty, added to the gradient"),
    TN_OPTION_FLOAT(struct rmsprop, momentum, "0.0", "momentum factor"),
    TN_OPTION_BOOL(struct rmsprop, centered, "False",
                   "divides by the estimated standard deviation"),
    TN_OPTION_BOOL(struct rmsprop, capturable, "False", OPTIM_CAPTURABLE_HELP),
    TN_OPTION_ROW(struct rmsprop, maximize, "False", "maximizes the objective", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct rmsprop *s = options;
    tn_status status = optim_check_common(self, s->lr, s->eps, s->weight_decay);

    if (status == TN_OK)
        status = optim_check_least(self, "Invalid momentum value", s->momentum, 0);
    if (status == TN_OK)
        status = optim_check_least(self, "Invalid alpha value", s->alpha, 0);
    return status;
}

static tn_status run(const struct optim_call *call)
{
    const struct rmsprop *s = call->options;
    tn_rmsprop_step_options o = TN_RMSPROP_STEP_OPTIONS;

    if (call->rate == TN_NONE)
        o.lr = s->lr;
    o.alpha = s->alpha;
    o.eps = s->eps;
    o.weight_decay = s->weight_decay;
    o.momentum = s->momentum;
    o.centered = s->centered;
    o.maximize = s->maximize;
    return tn_rmsprop_step(call->rate, call->list, call->n, o.lr, o.alpha, o.eps, o.weight_decay,
                           o.momentum, o.centered, o.maximize);
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    static const char *const with_momentum[] = { "square_avg", "momentum_buffer", "grad_avg" };
    static const char *const without[] = { "square_avg", "grad_avg" };
    struct rmsprop *s = tn_optimizer_data(self, args->group);
    if (s == NULL)
        return tn_error_last_code();
    const struct optim_rule rule = { .states = s->momentum != 0 ? with_momentum : without,
                                     .n_states = 1 + (s->momentum != 0) + s->centered,
                                     .capturable = s->capturable,
                                     .rate = s->lr,
                                     .held = &s->held,
                                     .run = run };
    return optim_step(self, args, &rule);
}

const tn_optimizer_def optim_rmsprop = {
    TN_HEAD(tn_optimizer_def),
    .name = "RMSprop",
    .help = "divides by the root of an average of squares",
    .options = table,
    .data_size = sizeof(struct rmsprop),
    .check = check,
    .flags = TN_OPTIMIZER_ELEMENTWISE,
    .step = step,
};

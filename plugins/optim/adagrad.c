/* SPDX-License-Identifier: MIT
 *
 * Adagrad, as torch.optim.Adagrad documents it. With t the number of this step:
 *   g = gradient + weight_decay * p
 *   s = s + g * g, which starts as initial_accumulator_value
 *   p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)
 * The option initial_accumulator_value of a group is that of its parameters; torch.optim uses that
 * of the constructor for all groups. */
#include "optim.h"

struct adagrad {
    double lr;
    double lr_decay;
    double weight_decay;
    double initial_accumulator_value;
    double eps;
    bool maximize;
    bool capturable;
    struct optim_rate held;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct adagrad, lr, "0.01", "learning rate"),
    TN_OPTION_FLOAT(struct adagrad, lr_decay, "0.0", "decay of the learning rate"),
    TN_OPTION_FLOAT(struct adagrad, weight_decay, "0.0", "L2 penalty, added to the gradient"),
    TN_OPTION_FLOAT(struct adagrad, initial_accumulator_value, "0.0",
                    "what the sum of squares starts with"),
    TN_OPTION_FLOAT(struct adagrad, eps, "1e-10", "added to the denominator, for stability"),
    TN_OPTION_ROW(struct adagrad, maximize, "False", "maximizes the objective", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    OPTIM_CAPTURABLE(struct adagrad),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct adagrad *s = options;
    tn_status status = optim_check_common(self, s->lr, s->eps, s->weight_decay);

    if (status == TN_OK)
        status = optim_check_least(self, "Invalid lr_decay value", s->lr_decay, 0);
    if (status == TN_OK)
        status = optim_check_least(self, "Invalid initial_accumulator_value value",
                                   s->initial_accumulator_value, 0);
    return status;
}

static tn_status run(const struct optim_call *call)
{
    const struct adagrad *s = call->options;
    tn_adagrad_step_options o = TN_ADAGRAD_STEP_OPTIONS;

    if (call->step == TN_NONE)
        o.step = call->steps;
    if (call->rate == TN_NONE)
        o.lr = s->lr;
    o.lr_decay = s->lr_decay;
    o.eps = s->eps;
    o.weight_decay = s->weight_decay;
    o.maximize = s->maximize;
    return tn_adagrad_step(call->step, call->rate, call->list, call->n, o.step, o.lr, o.lr_decay,
                           o.eps, o.weight_decay, o.maximize);
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    static const char *const states[] = { "sum" };
    struct adagrad *s = tn_optimizer_data(self, args->group);
    if (s == NULL)
        return tn_error_last_code();
    const struct optim_rule rule = { .states = states,
                                     .n_states = 1,
                                     .starts = &s->initial_accumulator_value,
                                     .capturable = s->capturable,
                                     .counts = true,
                                     .rate = s->lr,
                                     .held = &s->held,
                                     .run = run };
    return optim_step(self, args, &rule);
}

const tn_optimizer_def optim_adagrad = {
    TN_HEAD(tn_optimizer_def),
    .name = "Adagrad",
    .help = "divides by the root of the sum of all squares",
    .options = table,
    .data_size = sizeof(struct adagrad),
    .check = check,
    .flags = TN_OPTIMIZER_ELEMENTWISE,
    .step = step,
};

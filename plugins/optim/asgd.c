/* SPDX-License-Identifier: MIT
 *
 * Averaged SGD, as torch.optim.ASGD documents it. With t the number of this step:
 *   g = gradient + weight_decay * p
 *   p = p * (1 - lambd * eta) - eta * g
 *   ax = ax + mu * (p - ax)
 *   eta = lr / (1 + lambd * lr * t)^alpha, and mu = 1 / max(1, t - t0), for the next step
 * eta starts as lr, mu as 1. ax is the average of the parameters, which is not used otherwise. */
#include "optim.h"

#include <math.h>

struct asgd {
    double lr;
    double lambd;
    double alpha;
    double t0;
    double weight_decay;
    bool maximize;
    bool capturable;
    struct optim_rate held;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct asgd, lr, "0.01", "learning rate"),
    TN_OPTION_FLOAT(struct asgd, lambd, "0.0001", "decay term"),
    TN_OPTION_FLOAT(struct asgd, alpha, "0.75", "power of the decay of eta"),
    TN_OPTION_FLOAT(struct asgd, t0, "1000000.0", "step after which the average begins"),
    TN_OPTION_FLOAT(struct asgd, weight_decay, "0.0", "L2 penalty, added to the gradient"),
    TN_OPTION_ROW(struct asgd, maximize, "False", "maximizes the objective", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    OPTIM_CAPTURABLE(struct asgd),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct asgd *s = options;
    tn_status status = optim_check_common(self, s->lr, 0, s->weight_decay);

    if (status == TN_OK)
        status = optim_check_least(self, "Invalid lambd value", s->lambd, 0);
    if (status == TN_OK)
        status = optim_check_least(self, "Invalid alpha value", s->alpha, 0);
    return status;
}

/* Sets eta and mu for the next step. */
static tn_status advance(const struct optim_call *call)
{
    const struct asgd *s = call->options;
    tn_tensor *eta = call->number[0], *mu = call->number[1], *step, *lr, *power;
    double t = (double)call->steps, from = t - s->t0;

    if (call->step == TN_NONE) {
        eta = tn_fill_(eta, s->lr / pow(1 + s->lambd * s->lr * t, s->alpha));
        mu = tn_fill_(mu, from > 1 ? 1 / from : 1);
    } else {
        step = tn_cast(call->step, tn_tensor_dtype(eta));
        lr = tn_cast(call->rate, tn_tensor_dtype(eta));
        power = tn_log1p(tn_mul_scalar(tn_mul(lr, step), s->lambd));
        eta = tn_copy_(eta, tn_mul(lr, tn_exp(tn_mul_scalar(power, -s->alpha))));
        mu = tn_copy_(mu, tn_reciprocal(tn_clamp(tn_add_scalar(step, -s->t0), tn_scalar_float(1))));
    }
    return eta != NULL && mu != NULL ? TN_OK : tn_error_last_code();
}

static tn_status run(const struct optim_call *call)
{
    const struct asgd *s = call->options;
    tn_status status;

    status = tn_asgd_step(call->number[0], call->number[1], call->list, call->n, s->lambd,
                          s->weight_decay, s->maximize);
    return status == TN_OK ? advance(call) : status;
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    static const char *const states[] = { "ax" };
    struct asgd *s = tn_optimizer_data(self, args->group);
    if (s == NULL)
        return tn_error_last_code();
    const struct optim_number numbers[] = { { "eta", s->lr }, { "mu", 1 } };
    const struct optim_rule rule = { .states = states,
                                     .n_states = 1,
                                     .numbers = numbers,
                                     .n_numbers = 2,
                                     .capturable = s->capturable,
                                     .counts = true,
                                     .rate = s->lr,
                                     .held = &s->held,
                                     .run = run };
    return optim_step(self, args, &rule);
}

const tn_optimizer_def optim_asgd = {
    TN_HEAD(tn_optimizer_def),
    .name = "ASGD",
    .help = "stochastic gradient descent with an average of the parameters",
    .options = table,
    .data_size = sizeof(struct asgd),
    .check = check,
    .flags = TN_OPTIMIZER_ELEMENTWISE,
    .step = step,
};

/* SPDX-License-Identifier: MIT
 *
 * Adam and AdamW, as torch.optim documents them. With t the number of this step:
 *   Adam:  g = gradient + weight_decay * p       AdamW: p = p * (1 - lr * weight_decay)
 *   m = m + (1 - beta1) * (g - m)
 *   v = beta2 * v + (1 - beta2) * g * g          amsgrad: w = max(w, v), and w stands for v below
 *   p = p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps) */
#include "optim.h"

#include <math.h>

struct adam {
    double lr;
    tn_floats betas;
    double eps;
    double weight_decay;
    bool amsgrad;
    bool maximize;
};

#define OPTIONS(decay_)                                                                            \
    {                                                                                              \
        TN_OPTION_FLOAT(struct adam, lr, "0.001", "learning rate"),                                \
            TN_OPTION_FLOATS(struct adam, betas, "(0.9, 0.999)",                                   \
                             "how slowly the averages of gradient and square follow"),             \
            TN_OPTION_FLOAT(struct adam, eps, "1e-08", "added to the root, for stability"),        \
            TN_OPTION_FLOAT(struct adam, weight_decay, decay_, "how fast weights decay"),          \
            TN_OPTION_BOOL(struct adam, amsgrad, "False", "keeps the largest average of squares"), \
            TN_OPTION_ROW(struct adam, maximize, "False", "goes up instead of down",               \
                          TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),                                 \
            TN_OPTION_END                                                                          \
    }

static const tn_option adam_options[] = OPTIONS("0.0");
static const tn_option adamw_options[] = OPTIONS("0.01");

static tn_status check(tn_optimizer *self)
{
    const struct adam *s = tn_optimizer_data(self);
    const char *name = tn_optimizer_type(self);
    if (!(s->lr >= 0.0))
        return tn_fail(TN_ERR_VALUE, "%s: Invalid learning rate: %g; it has to be >= 0", name,
                       s->lr);
    if (!(s->eps >= 0.0))
        return tn_fail(TN_ERR_VALUE, "%s: Invalid epsilon value: %g; it has to be >= 0", name,
                       s->eps);
    if (s->betas.count != 2)
        return tn_fail(TN_ERR_VALUE, "%s: betas are two numbers, got %lld", name,
                       (long long)s->betas.count);
    for (int i = 0; i < 2; i++)
        if (!(s->betas.at[i] >= 0.0 && s->betas.at[i] < 1.0))
            return tn_fail(TN_ERR_VALUE,
                           "%s: Invalid beta parameter at index %d: %g; it has to be in [0, 1)",
                           name, i, s->betas.at[i]);
    if (!(s->weight_decay >= 0.0))
        return tn_fail(TN_ERR_VALUE, "%s: Invalid weight_decay value: %g; it has to be >= 0", name,
                       s->weight_decay);
    return TN_OK;
}

/* The averages m and v after this gradient; what v is to the update (amsgrad: w) in *square. */
static tn_tensor *averages(tn_optimizer *self, int64_t index, tn_tensor *parameter, tn_tensor *g,
                           tn_tensor **square)
{
    const struct adam *s = tn_optimizer_data(self);
    double beta1 = s->betas.at[0], beta2 = s->betas.at[1];
    tn_tensor *m = state_of(self, index, "exp_avg", parameter);
    tn_tensor *v = state_of(self, index, "exp_avg_sq", parameter);
    m = add_scaled(m, tn_sub(g, m, NULL), 1.0 - beta1);
    v = add_scaled(tn_mul_scalar_(v, beta2), tn_mul(g, g), 1.0 - beta2);
    if (s->amsgrad && m != NULL && v != NULL)
        v = tn_maximum_(state_of(self, index, "max_exp_avg_sq", parameter), v);
    *square = v;
    return m;
}

static tn_status update(tn_optimizer *self, int64_t index, tn_tensor *parameter, tn_tensor *g)
{
    const struct adam *s = tn_optimizer_data(self);
    double t = (double)tn_optimizer_steps(self, index);
    double correction1 = 1.0 - pow(s->betas.at[0], t), correction2 = 1.0 - pow(s->betas.at[1], t);
    tn_tensor *square = NULL;
    tn_tensor *m = averages(self, index, parameter, g, &square);
    tn_tensor *root = tn_mul_scalar_(tn_sqrt(square), 1.0 / sqrt(correction2));
    tn_tensor *ratio = tn_div(m, tn_add_scalar_(root, s->eps), NULL);
    return status_of(add_scaled(parameter, ratio, -s->lr / correction1));
}

static tn_status adam_step(tn_optimizer *self, int64_t index, tn_tensor *parameter,
                           tn_tensor *gradient)
{
    const struct adam *s = tn_optimizer_data(self);
    tn_tensor *g = effective_gradient(gradient, parameter, s->maximize, s->weight_decay);
    return g != NULL ? update(self, index, parameter, g) : tn_error_last()->code;
}

static tn_status adamw_step(tn_optimizer *self, int64_t index, tn_tensor *parameter,
                            tn_tensor *gradient)
{
    const struct adam *s = tn_optimizer_data(self);
    if (s->weight_decay != 0.0 && tn_mul_scalar_(parameter, 1.0 - s->lr * s->weight_decay) == NULL)
        return tn_error_last()->code;
    tn_tensor *g = effective_gradient(gradient, parameter, s->maximize, 0.0);
    return g != NULL ? update(self, index, parameter, g) : tn_error_last()->code;
}

const tn_optimizer_def optim_adam = {
    TN_HEAD(tn_optimizer_def),
    .name = "Adam",
    .help = "adaptive moments; weight_decay is added to the gradient",
    .options = adam_options,
    .data_size = sizeof(struct adam),
    .check = check,
    .step = adam_step,
};

const tn_optimizer_def optim_adamw = {
    TN_HEAD(tn_optimizer_def),
    .name = "AdamW",
    .help = "adaptive moments; weights decay apart from the gradient",
    .options = adamw_options,
    .data_size = sizeof(struct adam),
    .check = check,
    .step = adamw_step,
};

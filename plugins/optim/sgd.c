/* SPDX-License-Identifier: MIT
 *
 * Stochastic gradient descent with momentum, as torch.optim.SGD documents it:
 *   g = gradient + weight_decay * p
 *   b = g at the first step, then momentum * b + (1 - dampening) * g
 *   g = g + momentum * b with nesterov, else b
 *   p = p - lr * g */
#include "optim.h"

struct sgd {
    double lr;
    double momentum;
    double dampening;
    double weight_decay;
    bool nesterov;
    bool maximize;
};

static const tn_option options[] = {
    TN_OPTION_FLOAT(struct sgd, lr, "0.001", "learning rate"),
    TN_OPTION_FLOAT(struct sgd, momentum, "0.0", "share of the last step that goes on"),
    TN_OPTION_FLOAT(struct sgd, dampening, "0.0", "taken off the gradient in momentum"),
    TN_OPTION_FLOAT(struct sgd, weight_decay, "0.0", "L2 penalty, added to the gradient"),
    TN_OPTION_BOOL(struct sgd, nesterov, "False", "looks ahead along the momentum"),
    TN_OPTION_ROW(struct sgd, maximize, "False", "goes up instead of down", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self)
{
    const struct sgd *s = tn_optimizer_data(self);
    if (!(s->lr >= 0.0))
        return tn_fail(TN_ERR_VALUE, "SGD: Invalid learning rate: %g; it has to be >= 0", s->lr);
    if (!(s->momentum >= 0.0))
        return tn_fail(TN_ERR_VALUE, "SGD: Invalid momentum value: %g; it has to be >= 0",
                       s->momentum);
    if (!(s->weight_decay >= 0.0))
        return tn_fail(TN_ERR_VALUE, "SGD: Invalid weight_decay value: %g; it has to be >= 0",
                       s->weight_decay);
    if (s->nesterov && (s->momentum <= 0.0 || s->dampening != 0.0))
        return tn_fail(TN_ERR_VALUE,
                       "SGD: Nesterov momentum requires a momentum and zero dampening");
    return TN_OK;
}

/* The momentum buffer after this gradient; the first one is a copy of it, not dampened. */
static tn_tensor *momentum_of(tn_optimizer *self, int64_t index, tn_tensor *gradient)
{
    const struct sgd *s = tn_optimizer_data(self);
    tn_tensor *buffer = tn_optimizer_state(self, index, "momentum_buffer");
    if (buffer != NULL)
        return add_scaled(tn_mul_scalar_(buffer, s->momentum), gradient, 1.0 - s->dampening);
    buffer = tn_copy(gradient);
    if (buffer == NULL || tn_optimizer_set_state(self, index, "momentum_buffer", buffer) != TN_OK)
        return NULL;
    return buffer;
}

static tn_status step(tn_optimizer *self, int64_t index, tn_tensor *parameter, tn_tensor *gradient)
{
    const struct sgd *s = tn_optimizer_data(self);
    tn_tensor *g = effective_gradient(gradient, parameter, s->maximize, s->weight_decay);
    if (g != NULL && s->momentum != 0.0) {
        tn_tensor *buffer = momentum_of(self, index, g);
        if (buffer != NULL && s->nesterov) {
            tn_add_options ahead = TN_ADD_OPTIONS;
            ahead.alpha = s->momentum;
            g = tn_add(g, buffer, &ahead);
        } else {
            g = buffer;
        }
    }
    return status_of(add_scaled(parameter, g, -s->lr));
}

const tn_optimizer_def optim_sgd = {
    TN_HEAD(tn_optimizer_def),
    .name = "SGD",
    .help = "stochastic gradient descent with momentum",
    .options = options,
    .data_size = sizeof(struct sgd),
    .check = check,
    .step = step,
};

/* SPDX-License-Identifier: MIT
 *
 * An optimizer with the errors (mutant_choose.h) that optimizers can have: gradient descent with
 * momentum, weight decay and a correction of the first steps, m = momentum * m + (1 - momentum) *
 * (w0 * g + w1 * decay * p), p = p - times * lr * m / (1 - momentum^t). With `maximize`, the sign
 * of g is changed; with `form` 'sign', g counts only by its sign. */
#include <math.h>
#include <string.h>

#include "mutant_choose.h"

struct rule {
    double lr, momentum, decay;
    bool maximize;
    tn_floats weights;
    int64_t times;
    const char *form;
    double first_lr;
    int64_t steps;
    tn_tensor *hidden;
};

static const tn_option options[] = {
    TN_OPTION_FLOAT(struct rule, lr, "0.1", "learning rate"),
    TN_OPTION_FLOAT(struct rule, momentum, "0.5", "of the steps before that stays"),
    TN_OPTION_FLOAT(struct rule, decay, "0.25", "weight decay"),
    TN_OPTION_BOOL(struct rule, maximize, "False", "go up"),
    TN_OPTION_FLOATS(struct rule, weights, "(1.0, 1.0)", "of gradient and decay"),
    TN_OPTION_INT(struct rule, times, "1", "factor of lr"),
    TN_OPTION_STRING(struct rule, form, "'plain'", "'plain' or 'sign'"),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *of_group)
{
    struct rule *s = (struct rule *)(uintptr_t)of_group;

    (void)self;
    if (is("spec-changes"))
        s->momentum = s->momentum / 2;
    if (s->first_lr == 0)
        s->first_lr = s->lr;
    return TN_OK;
}

static tn_status step_one(tn_optimizer *self, int64_t group, int64_t index, tn_tensor *parameter,
                          tn_tensor *gradient)
{
    struct rule *s = tn_optimizer_data(self, group);
    static tn_tensor *shared[8];
    tn_tensor *m = tn_optimizer_state(self, index, "momentum"), *g, *change;
    double steps = (double)(is("steps-own") ? ++s->steps : tn_optimizer_steps(self, index));
    double decay = is("decay-ignored") ? 0 : s->decay;

    if (is("state-hidden") && index == 0)
        m = s->hidden;
    if (is("state-static"))
        m = shared[index % 8];
    if (is("step-0"))
        steps += steps > 1 ? -1 : 0;
    if (is("step-2"))
        steps += 1;
    if (!is("second-weight-ignored"))
        decay *= s->weights.at[1];
    g = strcmp(s->form, "sign") == 0 && !is("form-ignored") ? tn_sign(gradient) : gradient;
    g = tn_mul_scalar(g, s->maximize && !is("maximize-ignored") ? -s->weights.at[0]
                                                                : s->weights.at[0]);
    g = tn_add(g, tn_mul_scalar(parameter, is("decay-sign") ? -decay : decay));
    g = tn_mul_scalar(g, is("momentum-undamped") ? 1 : 1 - s->momentum);
    m = m == NULL || is("momentum-forgotten") ? g : tn_add(tn_mul_scalar(m, s->momentum), g);
    if (is("state-narrow"))
        m = tn_cast(tn_cast(m, TN_F32), tn_tensor_dtype(parameter));
    if (is("state-hidden") && index == 0)
        s->hidden = tn_tensor_keep(m);
    else if (is("state-static"))
        shared[index % 8] = tn_tensor_keep(m);
    else if (m == NULL || tn_optimizer_set_state(self, index, "momentum", m) != TN_OK)
        return tn_error_last_code();
    if (is("elements-mixed")) /* divides by the norm of the gradient */
        m = tn_div(m, tn_sqrt(tn_sum(tn_mul(gradient, gradient))));
    change = tn_mul_scalar(m, (is("times-ignored") ? 1 : (double)s->times) *
                                  (is("lr-cached") ? s->first_lr : s->lr) /
                                  (is("uncorrected") ? 1 : 1 - pow(s->momentum, steps)));
    if (is("gradient-written"))
        tn_copy_(gradient, g);
    if (is("gradient-zeroed"))
        tn_mul_scalar_(gradient, 0);
    if (is("parameter-replaced"))
        return tn_tensor_set_grad(parameter, TN_NONE);
    if (is("scope-open"))
        tn_scope_begin();
    return tn_sub_(parameter, change) != NULL ? TN_OK : tn_error_last_code();
}

/* All parameters of a group; what can be wrong here is the index. */
static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    int64_t count = args->count;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        int64_t index = args->index[is("index-reversed") ? count - 1 - i : i];
        int64_t from = is("gradients-shifted") ? (i + 1) % count : i;

        status = step_one(self, args->group, is("index-of-row") ? i : index, args->parameters[i],
                          args->gradients[from]);
    }
    if (is("last-left-out") && count > 1 && status == TN_OK &&
        tn_add_(args->parameters[count - 1], args->gradients[count - 1]) == NULL)
        return tn_error_last_code();
    return status;
}

static const tn_optimizer_def rule = { TN_HEAD(tn_optimizer_def),
                                       .name = "Descent",
                                       .help = "an optimizer of the tests",
                                       .options = options,
                                       .data_size = sizeof(struct rule),
                                       .check = check,
                                       .step = step,
                                       .flags = TN_OPTIMIZER_ELEMENTWISE };
TN_PLUGIN("org.example.mutant", "1.0.0", &rule);

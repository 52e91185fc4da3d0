/* SPDX-License-Identifier: MIT
 *
 * Rprop, as torch.optim.Rprop documents it. Each element has a step size, which starts as lr:
 *   it is multiplied by etas[1] where the gradient has the sign that it had in the step before, and
 *   by etas[0] where the sign has changed, and clamped to step_sizes
 *   p = p - sign(gradient) * step size; where the sign has changed, the gradient counts as 0 */
#include "optim.h"

struct rprop {
    double lr;
    tn_floats etas;
    tn_floats step_sizes;
    bool maximize;
    bool capturable;
    struct optim_rate held;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct rprop, lr, "0.01", "step size at the start"),
    TN_OPTION_FLOATS(struct rprop, etas, "(0.5, 1.2)",
                     "factors of a step size where the sign changed, and where not"),
    TN_OPTION_FLOATS(struct rprop, step_sizes, "(1e-06, 50.0)", "smallest and largest step size"),
    TN_OPTION_ROW(struct rprop, maximize, "False", "maximizes the objective", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    OPTIM_CAPTURABLE(struct rprop),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct rprop *s = options;
    tn_status status = optim_check_least(self, "Invalid learning rate", s->lr, 0);

    if (status == TN_OK)
        status = optim_check_count(self, "etas", &s->etas, 2);
    if (status == TN_OK)
        status = optim_check_count(self, "step_sizes", &s->step_sizes, 2);
    if (status == TN_OK && !(s->etas.at[0] > 0.0 && s->etas.at[0] < 1.0 && s->etas.at[1] > 1.0))
        return tn_fail(TN_ERR_VALUE,
                       "%s: Invalid eta values: %g, %g; expected one in (0, 1), one above 1",
                       tn_optimizer_type(self), s->etas.at[0], s->etas.at[1]);
    return status;
}

static tn_status run(const struct optim_call *call)
{
    const struct rprop *s = call->options;

    return tn_rprop_step(call->list, call->n, s->etas.at[0], s->etas.at[1], s->step_sizes.at[0],
                         s->step_sizes.at[1], s->maximize);
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    static const char *const states[] = { "prev", "step_size" };
    struct rprop *s = tn_optimizer_data(self, args->group);
    if (s == NULL)
        return tn_error_last_code();
    const double starts[] = { 0, s->lr };
    const struct optim_rule rule = { .states = states,
                                     .n_states = 2,
                                     .starts = starts,
                                     .capturable = s->capturable,
                                     .rate = s->lr,
                                     .held = &s->held,
                                     .run = run };
    return optim_step(self, args, &rule);
}

const tn_optimizer_def optim_rprop = {
    TN_HEAD(tn_optimizer_def),
    .name = "Rprop",
    .help = "step sizes from the signs of gradients",
    .options = table,
    .data_size = sizeof(struct rprop),
    .check = check,
    .flags = TN_OPTIMIZER_ELEMENTWISE,
    .step = step,
};

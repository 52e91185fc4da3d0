/* SPDX-License-Identifier: MIT
 *
 * An optimizer, gradient descent with momentum, m = momentum * m + g, p = p - lr * m, with errors
 * (mutant_choose.h) that tenon check finds without numbers of the author. */
#include <string.h>

#include "mutant_choose.h"

struct rule {
    double lr, momentum;
    double first; /* the rate of the first step; beyond the options */
    tn_tensor *hidden;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct rule, lr, "0.1", "learning rate"),
    TN_OPTION_FLOAT(struct rule, momentum, "0.5", "of the step before that stays"), TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    struct rule *s = (struct rule *)(uintptr_t)options;

    (void)self;
    if (is("forgets"))
        s->momentum += 0.25;
    if (is("deaf") && s->first == 0)
        s->first = s->lr;
    return TN_OK;
}

static tn_tensor *shared[8];

/* Returns m of the step before; NULL in the first step. */
static tn_tensor *memory(tn_optimizer *self, int64_t index)
{
    struct rule *s = tn_optimizer_data(self, 0);

    if (is("shares") && index < 8)
        return shared[index];
    if (is("hides") && index == 0)
        return s->hidden;
    return tn_optimizer_state(self, index, "momentum");
}

static tn_status remember(tn_optimizer *self, int64_t index, tn_tensor *m)
{
    struct rule *s = tn_optimizer_data(self, 0);

    if (is("hides") && index == 0)
        s->hidden = tn_tensor_keep(m);
    if (is("shares") && index < 8)
        shared[index] = tn_tensor_keep(m);
    return tn_optimizer_set_state(self, index, "momentum", m);
}

static tn_status step_one(tn_optimizer *self, int64_t index, tn_tensor *parameter,
                          tn_tensor *gradient)
{
    const int64_t group = is("first-group") ? 0 : tn_optimizer_group_of(self, index);
    const struct rule *s = tn_optimizer_data(self, group);
    tn_tensor *before = memory(self, index);
    tn_tensor *m = before != NULL ? tn_add(tn_mul_scalar(before, s->momentum), gradient)
                                  : tn_clone(gradient);
    tn_tensor *change = tn_mul_scalar(m, is("deaf") ? s->first : s->lr);

    if (is("opens"))
        tn_scope_begin();
    if (is("modes"))
        tn_grad_begin(false);
    if (is("nans"))
        change = tn_div(change, tn_sub(change, change));
    if (is("zero-over-zero")) /* the sign of m, times its size */
        change = tn_mul(change, tn_div(m, m));
    if (is("coarse") && tn_tensor_dtype(parameter) == TN_F32)
        change = tn_cast(tn_cast(change, TN_BF16), TN_F32);
    if (is("otherwise"))
        change = tn_neg(change);
    if (is("writes"))
        tn_mul_scalar_(gradient, 0.5);
    if (m == NULL || change == NULL || remember(self, index, m) != TN_OK)
        return TN_ERR_RUNTIME;
    for (int64_t i = 0; is("touches") && i < tn_optimizer_count(self); i++)
        tn_mul_scalar_(tn_optimizer_parameter(self, i), 0.5);
    if (is("nothing"))
        return TN_OK;
    return tn_sub_(parameter, change) != NULL ? TN_OK : TN_ERR_RUNTIME;
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < args->count && status == TN_OK; i++)
        status = step_one(self, args->index[i], args->parameters[i], args->gradients[i]);
    return status;
}

static const tn_optimizer_def rule = { TN_HEAD(tn_optimizer_def),
                                       .name = "Descent",
                                       .help = "descent with momentum",
                                       .options = table,
                                       .data_size = sizeof(struct rule),
                                       .check = check,
                                       .step = step };
TN_PLUGIN("org.example.descent", "1.0.0", &rule);

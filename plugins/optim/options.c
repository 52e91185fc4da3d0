/* SPDX-License-Identifier: MIT
 *
 * Checks of the options of optimizers, with PyTorch's wording. */
#include "optim.h"

tn_status optim_check_least(tn_optimizer *self, const char *words, double value, int64_t least)
{
    if (value >= least)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: %s: %g; expected %lld or more", tn_optimizer_type(self),
                   words, value, (long long)least);
}

tn_status optim_check_count(tn_optimizer *self, const char *name, const tn_floats *list,
                            int64_t count)
{
    if (list->count == count)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: %s: wrong count, got %lld; expected %s numbers",
                   tn_optimizer_type(self), name, (long long)list->count,
                   count == 2 ? "two" : "three");
}

tn_status optim_check_betas(tn_optimizer *self, const tn_floats *betas)
{
    tn_status status = optim_check_count(self, "betas", betas, 2);

    for (int i = 0; i < 2 && status == TN_OK; i++)
        if (!(betas->at[i] >= 0.0 && betas->at[i] < 1.0))
            status = tn_fail(
                TN_ERR_VALUE,
                "%s: Invalid beta parameter at index %d: %g; expected a number in [0, 1)",
                tn_optimizer_type(self), i, betas->at[i]);
    return status;
}

tn_status optim_check_common(tn_optimizer *self, double lr, double eps, double weight_decay)
{
    tn_status status = optim_check_least(self, "Invalid learning rate", lr, 0);

    if (status == TN_OK)
        status = optim_check_least(self, "Invalid epsilon value", eps, 0);
    if (status == TN_OK)
        status = optim_check_least(self, "Invalid weight_decay value", weight_decay, 0);
    return status;
}

tn_status optim_check_real(tn_optimizer *self, const tn_step_args *args)
{
    for (int64_t i = 0; i < args->count; i++) {
        tn_dtype dtype = tn_tensor_dtype(args->parameters[i]);

        if ((TN_MASK_COMPLEX & TN_BIT(dtype)) != 0)
            return tn_fail(TN_ERR_TYPE,
                           "%s does not support complex parameters: parameter %lld: wrong dtype, "
                           "got %s; expected a real one",
                           tn_optimizer_type(self), (long long)args->index[i],
                           tn_dtype_name(dtype));
    }
    return TN_OK;
}

tn_status optim_check_adam(tn_optimizer *self, double lr, const tn_floats *betas, double eps,
                           double weight_decay)
{
    tn_status status = optim_check_common(self, lr, eps, weight_decay);

    return status == TN_OK ? optim_check_betas(self, betas) : status;
}

/* SPDX-License-Identifier: MIT
 *
 * Helpers for parameters: `build` functions add parameters without values, `reset` functions fill
 * them. */
#include "helpers.h"

tn_status layers_add(tn_module *self, const char *name, bool wanted, tn_ints shape)
{
    tn_tensor *tensor = wanted ? tn_tensor_empty(shape, TN_DTYPE_AUTO, NULL) : TN_NONE;

    return tensor != NULL ? tn_module_add_parameter(self, name, tn_parameter(tensor, true))
                          : tn_error_prefix("%s: %s: ", tn_module_type(self), name);
}

tn_status layers_init(tn_module *self, const char *name, const char *init)
{
    tn_tensor *tensor = tn_module_get(self, name);

    if (tensor == NULL)
        return tn_error_last_code();
    return tensor == TN_NONE ? TN_OK : tn_init(tensor, "%s", init);
}

tn_status layers_fill(tn_module *self, const char *name, double value)
{
    tn_tensor *tensor = tn_module_get(self, name);

    if (tensor == NULL)
        return tn_error_last_code();
    return tensor == TN_NONE ? TN_OK : status_of(tn_fill_(tensor, value));
}

tn_status layers_spread(tn_module *self, const char *name, double bound)
{
    tn_tensor *tensor = tn_module_get(self, name);

    if (tensor == NULL)
        return tn_error_last_code();
    return tensor == TN_NONE ? TN_OK : tn_init(tensor, "uniform(a=%g, b=%g)", -bound, bound);
}

tn_status layers_times(tn_module *self, const char *option, int64_t size, int64_t by, int64_t *out)
{
    if (!__builtin_mul_overflow(size, by, out))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: %s: too large, got %lld; expected at most %lld",
                   tn_module_type(self), option, (long long)size, (long long)(INT64_MAX / by));
}

tn_status layers_add_affine(tn_module *self, bool weight, bool bias, tn_ints shape)
{
    tn_status status = layers_add(self, "weight", weight, shape);

    return status == TN_OK ? layers_add(self, "bias", bias, shape) : status;
}

tn_status layers_reset_affine(tn_module *self)
{
    tn_status status = layers_fill(self, "weight", 1);

    return status == TN_OK ? layers_fill(self, "bias", 0) : status;
}

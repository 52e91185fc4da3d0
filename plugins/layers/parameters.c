/* SPDX-License-Identifier: MIT
 *
 * What layers do to their parameters: build makes them without values, reset fills them. */
#include "layers.h"

tn_status layers_add(tn_module *self, const char *name, bool wanted, tn_ints shape)
{
    tn_tensor *tensor = wanted ? tn_tensor_empty(shape, TN_DTYPE_AUTO, NULL) : TN_NONE;

    return tensor != NULL ? tn_module_add_parameter(self, name, tn_parameter(tensor, true))
                          : tn_error_last()->code;
}

tn_status layers_init(tn_module *self, const char *name, const char *init)
{
    tn_tensor *tensor = tn_module_get(self, name);

    if (tensor == NULL)
        return tn_error_last()->code;
    return tensor == TN_NONE ? TN_OK : tn_init(tensor, "%s", init);
}

tn_status layers_fill(tn_module *self, const char *name, double value)
{
    tn_tensor *tensor = tn_module_get(self, name);

    if (tensor == NULL)
        return tn_error_last()->code;
    return tensor == TN_NONE ? TN_OK : status_of(tn_fill_(tensor, value));
}

tn_status layers_spread(tn_module *self, const char *name, double bound)
{
    tn_tensor *tensor = tn_module_get(self, name);

    if (tensor == NULL)
        return tn_error_last()->code;
    return tensor == TN_NONE ? TN_OK : tn_init(tensor, "uniform(a=%g, b=%g)", -bound, bound);
}

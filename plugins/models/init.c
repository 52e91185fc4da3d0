/* SPDX-License-Identifier: MIT
 *
 * Parameters and their initialization, for the `build` and `reset` of models. */
#include "models.h"

tn_status models_init_all(tn_module *self, const char *type, const char *name, const char *init)
{
    tn_walk *walk = tn_walk_begin(self, TN_SLOT_CHILD, NULL);
    tn_status status = walk != NULL ? TN_OK : tn_error_last_code();

    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk)) {
        tn_tensor *tensor;

        if ((type != NULL && strcmp(tn_module_type(at->module), type) != 0) ||
            tn_module_slot_kind(at->module, name) != TN_SLOT_PARAMETER)
            continue;
        tensor = tn_module_get(at->module, name);
        if (tensor != TN_NONE)
            status = tensor != NULL ? tn_init_parse(tensor, init) : tn_error_last_code();
    }
    tn_walk_end(walk);
    return status;
}

tn_status models_init_one(tn_module *self, const char *path, const char *init)
{
    tn_tensor *tensor = tn_module_find_tensor(self, path);

    return tensor != NULL ? tn_init_parse(tensor, init) : tn_error_last_code();
}

tn_status models_add_parameter(tn_module *self, const char *name, tn_ints shape)
{
    tn_tensor *tensor = tn_tensor_empty(shape, TN_DTYPE_AUTO, NULL);

    return tensor != NULL ? tn_module_add_parameter(self, name, tn_parameter(tensor, true))
                          : tn_error_prefix("%s: %s: ", tn_module_type(self), name);
}

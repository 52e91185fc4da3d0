/* SPDX-License-Identifier: MIT
 *
 * Makes a parametrized tensor a plain parameter or buffer again. */
#include "lib/parametrize/parametrize.h"

tn_status tn__parametrize_none(tn_module *module, const char *name)
{
    char text[512];

    if (tn_module_repr(module, text, sizeof text) < 0)
        return tn_error_last_code();
    /* PyTorch's wording */
    return tn_fail(TN_ERR_VALUE, "Module %s does not have a parametrization on %s", text, name);
}

/* Returns the tensor for the plain slot: the single original with its own contents, or with those
 * of the value; or a new tensor. Owned by the scope or by the list. */
static tn_tensor *plain_tensor(tn_module *list, const tn__slot *original, bool parameter,
                               bool keep_value)
{
    tn_tensor *value, *fresh;
    bool grad = false;

    if (!keep_value)
        return original->tensor;
    tn_grad_begin(false);
    value = tn__parametrize_value(list);
    fresh = value != NULL ? tn_tensor_detach(value) : NULL;
    tn_grad_end();
    if (fresh == NULL)
        return NULL;
    if (tn__parametrize_data_of(list)->originals == 0)
        return tn_tensor_swap(original->tensor, fresh) == TN_OK ? original->tensor : NULL;
    for (int64_t i = 0; i < tn__parametrize_originals(list); i++) {
        tn__parametrize_name each;
        tn__parametrize_original(list, i, each);
        const tn__slot *slot = tn__slots_find(parameter ? &list->parameters : &list->buffers, each);
        grad = grad || (slot != NULL && tn_tensor_requires_grad(slot->tensor));
    }
    if (parameter)
        return tn_parameter(fresh, grad);
    return !grad || tn_tensor_set_requires_grad(fresh, true) == TN_OK ? fresh : NULL;
}

static tn_status check(tn_module *module, const char *name, const tn_module *list, bool keep_value)
{
    if (list == NULL)
        return tn__parametrize_none(module, name);
    if (!keep_value && tn__parametrize_data_of(list)->originals > 0)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_VALUE,
                       "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
                       "parametrized in terms of a sequence of tensors.");
    if (tn_is_parametrized((tn_module *)list, NULL))
        return tn_fail(TN_ERR_VALUE,
                       "'%s' of %s: its original is parametrized too; remove that parametrization "
                       "first",
                       name, module->type);
    for (int64_t i = 0; i < tn__parametrize_originals(list); i++) {
        tn__parametrize_name each;
        tn__parametrize_original(list, i, each);
        const tn__slot *slot = tn__slots_find(&list->parameters, each);
        slot = slot != NULL ? slot : tn__slots_find(&list->buffers, each);
        if (slot == NULL || tn__is_none(slot->tensor))
            return tn_fail(TN_ERR_ATTR,
                           "'%s' of %s: parametrizations.%s.%s: it is missing; expected a tensor",
                           name, module->type, name, each);
    }
    return TN_OK;
}

static tn_status remove_from(tn_module *module, const char *name, bool keep_value)
{
    tn_module *list = tn__parametrize_list(module, name);
    tn_status status = check(module, name, list, keep_value);
    tn__parametrize_name first;
    const tn__slot *original;
    tn__slots *slots;
    tn__slot *slot;
    tn_tensor *tensor;
    bool parameter;

    if (status != TN_OK)
        return status;
    tn__parametrize_original(list, 0, first);
    original = tn__slots_find(&list->parameters, first);
    parameter = original != NULL;
    if (original == NULL)
        original = tn__slots_find(&list->buffers, first);
    slots = parameter ? &module->parameters : &module->buffers;
    slot = tn__slots_make(slots, name);
    if (slot == NULL)
        return tn_error_last_code();
    tensor = plain_tensor(list, original, parameter, keep_value);
    if (tensor == NULL) {
        tn__slots_remove(slots, tn__slots_find(slots, name));
        return tn_error_last_code();
    }
    slot = tn__slots_find(slots, name);
    slot->flags = original->flags;
    slot->tensor = tn_tensor_keep(tensor);
    tn__parametrize_list_remove(module, name);
    return TN_OK;
}

tn_status tn_parametrize_remove(tn_module *module, const char *name, bool keep_value)
{
    uint64_t scope;
    tn_status status;

    if (module == NULL || name == NULL)
        return tn__error_null_of("tn_parametrize_remove", "module, name", module, name);
    status = tn__parametrize_find(&module, &name);
    if (status != TN_OK)
        return status;
    scope = tn_scope_begin();
    status = remove_from(module, name, keep_value);
    tn_scope_end(scope);
    return status;
}

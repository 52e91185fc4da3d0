/* SPDX-License-Identifier: MIT
 *
 * Right inverses: from the value of a parametrized tensor to its originals. */
#include "lib/parametrize/parametrize.h"

bool tn__parametrize_has_inverse(const tn_module *parametrization)
{
    return parametrization->layer != NULL ? parametrization->layer->right_inverse != NULL
                                          : parametrization->own_inverse != NULL;
}

tn_status tn__parametrize_inverse(tn_module *parametrization, tn_tensor *value, tn_pack *originals)
{
    tn_status (*inverse)(tn_module *, tn_tensor *, tn_pack *) = parametrization->own_inverse;
    const char *plugin;
    uint64_t scope;
    tn_status status;

    if (parametrization->layer != NULL)
        inverse = parametrization->layer->right_inverse;
    if (inverse == NULL)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "parametrization %s does not implement right_inverse.",
                       parametrization->type);
    plugin = tn__module_enter(parametrization);
    scope = tn_scope_begin();
    tn_grad_begin(false);
    status = tn__error_status_of(inverse(parametrization, value, originals), parametrization->type);
    tn_grad_end();
    tn_scope_end(scope);
    tn__error_plugin_back(plugin);
    if (status == TN_OK && tn_pack_count(originals) == 0)
        status = tn_fail(TN_ERR_VALUE,
                         "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                         "tuple...). Got nothing of %s.",
                         parametrization->type);
    for (int64_t i = 0; status == TN_OK && i < tn_pack_count(originals); i++)
        if (tn_pack_at(originals, i).kind != TN_VALUE_TENSOR)
            status = tn_fail(TN_ERR_VALUE,
                             "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                             "tuple...). Got element %lld of the sequence with type %s.",
                             (long long)i, tn__value_kind_name(tn_pack_at(originals, i).kind));
    return status;
}

tn_status tn_parametrize_set_inverse(tn_module *parametrization,
                                     tn_status (*right_inverse)(tn_module *self, tn_tensor *value,
                                                                tn_pack *originals))
{
    if (parametrization == NULL || right_inverse == NULL)
        return tn__error_null_of("tn_parametrize_set_inverse", "parametrization, right_inverse",
                                 parametrization, right_inverse);
    if (parametrization->layer != NULL)
        return tn_fail(TN_ERR_TYPE,
                       "tn_parametrize_set_inverse: wrong module, got %s, which has a layer; "
                       "expected a module of the program (tn_module_plain)",
                       parametrization->type);
    parametrization->own_inverse = right_inverse;
    return TN_OK;
}

/* ---- assignment ------------------------------------------------------------------------------ */

/* Replaces the value in *pack by the originals of all parametrizations, the last one first. */
static tn_status invert(tn_module *list, tn_pack **pack)
{
    tn_status status = TN_OK;

    for (int64_t i = tn__parametrize_count(list) - 1; i >= 0 && status == TN_OK; i--) {
        tn_module *parametrization = tn__parametrize_at(list, i);
        tn_pack *out = tn_pack_new();
        if (out == NULL)
            return TN_ERR_MEMORY;
        if (tn_pack_count(*pack) != 1)
            status = tn_fail(TN_ERR_VALUE,
                             "%s: right_inverse: wrong number of tensors, got %lld; expected one, "
                             "because it is not the first parametrization",
                             tn__parametrize_at(list, i + 1)->type,
                             (long long)tn_pack_count(*pack));
        if (status == TN_OK)
            status = tn__parametrize_inverse(parametrization, tn_pack_tensor(*pack, 0), out);
        if (status != TN_OK) {
            tn_pack_drop(out);
            return status;
        }
        tn_pack_drop(*pack);
        *pack = out;
    }
    return status;
}

static tn__slot *original_slot(tn_module *list, const char *name)
{
    tn__slot *slot = tn__slots_find(&list->parameters, name);

    return slot != NULL ? slot : tn__slots_find(&list->buffers, name);
}

static tn_status check(tn_module *list, const tn_pack *pack)
{
    int64_t count = tn__parametrize_originals(list);
    tn_status status = TN_OK;

    /* PyTorch's wording, here and below */
    if (tn_pack_count(pack) != count)
        return tn_fail(TN_ERR_VALUE,
                       "The sequence of tensors returned by `right_inverse` must be of length "
                       "%lld. Got a sequence of length %lld.",
                       (long long)count, (long long)tn_pack_count(pack));
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        tn__parametrize_name name;
        tn__parametrize_original(list, i, name);
        const tn__slot *slot = original_slot(list, name);
        const tn_tensor *value = tn_pack_tensor(pack, i);
        if (slot != NULL && tn_tensor_dtype(value) != tn_tensor_dtype(slot->tensor))
            status = tn_fail(TN_ERR_VALUE,
                             "The tensor returned by `right_inverse` has dtype %s while `%s` has "
                             "dtype %s",
                             tn_dtype_name(tn_tensor_dtype(value)), name,
                             tn_dtype_name(tn_tensor_dtype(slot->tensor)));
    }
    return status;
}

/* Gives the originals their values. The tensor objects stay, and get the storages of the values. An
 * original that is parametrized itself is assigned. */
static tn_status store(tn_module *list, const tn_pack *pack)
{
    tn_status status = check(list, pack);
    int64_t count = tn_pack_count(pack), done = 0;
    tn_tensor **fresh = status == TN_OK ? tn_calloc((size_t)count, sizeof *fresh) : NULL;

    if (fresh == NULL)
        return status != TN_OK ? status : TN_ERR_MEMORY;
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        fresh[i] = tn_tensor_detach(tn_pack_tensor(pack, i));
        status = fresh[i] != NULL ? TN_OK : tn_error_last_code();
    }
    for (; done < count && status == TN_OK; done++) {
        tn__parametrize_name name;
        tn__parametrize_original(list, done, name);
        tn__slot *slot = original_slot(list, name);
        status = slot != NULL ? tn_tensor_swap(slot->tensor, fresh[done])
                              : tn_module_set(list, name, fresh[done]);
        if (status != TN_OK)
            break;
    }
    while (status != TN_OK && --done >= 0) {
        tn__parametrize_name name;
        tn__parametrize_original(list, done, name);
        tn__slot *slot = original_slot(list, name);
        if (slot != NULL)
            tn_tensor_swap(slot->tensor, fresh[done]);
    }
    tn_free(fresh);
    return status;
}

/* ---- buffers that a right inverse may set ---------------------------------------------------- */

tn_status tn__parametrize_buffers_keep(tn_module *module, tn__parametrize_buffers *buffers)
{
    int64_t count = module->buffers.count;

    *buffers = (tn__parametrize_buffers){ .module = module };
    buffers->at = tn_calloc((size_t)count + 1, sizeof *buffers->at);
    if (buffers->at == NULL)
        return TN_ERR_MEMORY;
    for (; buffers->count < count; buffers->count++) {
        tn_tensor *tensor = module->buffers.at[buffers->count].tensor;
        buffers->at[buffers->count] = tn__is_none(tensor) ? tensor : tn_tensor_keep(tensor);
    }
    return TN_OK;
}

void tn__parametrize_buffers_drop(tn__parametrize_buffers *buffers, bool restore)
{
    tn__slots *slots = buffers->at != NULL ? &buffers->module->buffers : NULL;

    for (int64_t i = 0; i < buffers->count; i++) {
        tn_tensor *tensor = buffers->at[i];
        if (restore && i < slots->count) {
            tensor = slots->at[i].tensor;
            slots->at[i].tensor = buffers->at[i];
        }
        if (!tn__is_none(tensor))
            tn_tensor_drop(tensor);
    }
    tn_free(buffers->at);
}

static void drop_all(tn__parametrize_buffers *all, int64_t count, bool restore)
{
    for (int64_t i = 0; all != NULL && i < count; i++)
        tn__parametrize_buffers_drop(&all[i], restore);
    tn_free(all);
}

tn_status tn__parametrize_assign(tn_module *list, tn_tensor *value)
{
    int64_t count = tn__parametrize_count(list);
    tn__parametrize_buffers *buffers = tn_calloc((size_t)count, sizeof *buffers);
    tn_pack *pack = tn_pack_new();
    uint64_t scope = tn_scope_begin();
    tn_status status = pack != NULL && buffers != NULL
                           ? tn_pack_add(pack, NULL, tn_value_tensor(value))
                           : TN_ERR_MEMORY;

    tn_grad_begin(false);
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = tn__parametrize_buffers_keep(tn__parametrize_at(list, i), &buffers[i]);
    if (status == TN_OK)
        status = invert(list, &pack);
    if (status == TN_OK)
        status = store(list, pack);
    drop_all(buffers, count, status != TN_OK);
    tn_grad_end();
    tn_pack_drop(pack);
    tn_scope_end(scope);
    tn__value_cache_forget();
    return status;
}

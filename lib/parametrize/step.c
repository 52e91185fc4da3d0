/* SPDX-License-Identifier: MIT
 *
 * Adding one parametrization, in a form that can be undone: the whole step is done except that the
 * slot of the plain tensor stays, which hides the computed slot of the same name, until
 * tn__parametrize_step_finish() removes it. */
#include "lib/parametrize/parametrize.h"

static tn__slot *plain_slot(tn_module *module, const char *name, bool *parameter)
{
    tn__slot *slot = tn__slots_find(&module->parameters, name);

    *parameter = slot != NULL;
    return slot != NULL ? slot : tn__slots_find(&module->buffers, name);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool same_shape(const tn_tensor *a, const tn_tensor *b)
{
    tn_ints x = tn__shape(a), y = tn__shape(b);

    return x.count == y.count &&
           (x.count == 0 || memcmp(x.at, y.at, (size_t)x.count * sizeof *x.at) == 0);
}

/* Fails, with the facts that PyTorch's message has, unless `after`, which `what` describes, has the
 * dtype and the shape of `before`. */
static tn_status check_same(const char *name, const char *what, const tn_tensor *before,
                            const tn_tensor *after)
{
    tn__text a = { 0 }, b = { 0 };
    tn_status status = TN_OK;

    if (tn_tensor_dtype(before) != tn_tensor_dtype(after)) {
        status = tn_fail(TN_ERR_VALUE,
                         "Registering a parametrization may not change the dtype of the tensor, "
                         "unless the `unsafe` flag is enabled. %s: got dtype %s; expected %s, that "
                         "of '%s'",
                         what, tn_dtype_name(tn_tensor_dtype(after)),
                         tn_dtype_name(tn_tensor_dtype(before)), name);
    } else if (!same_shape(before, after)) {
        tn__tensor_text_ints(&a, tn__shape(after));
        tn__tensor_text_ints(&b, tn__shape(before));
        status = tn_fail(TN_ERR_VALUE,
                         "Registering a parametrization may not change the shape of the tensor, "
                         "unless the `unsafe` flag is enabled. %s: got shape %s; expected %s, that "
                         "of '%s'",
                         what, a.at != NULL ? a.at : "?", b.at != NULL ? b.at : "?", name);
    }
    tn__text_free(&a);
    tn__text_free(&b);
    return status;
}

static tn_status attach(tn_module *parametrization, tn_module *module, const char *name,
                        tn_tensor *tensor)
{
    const tn_layer_def *layer = parametrization->layer;
    const char *plugin;
    uint64_t scope;
    tn_status status;

    if (layer == NULL || layer->attach == NULL)
        return TN_OK;
    plugin = tn__module_enter(parametrization);
    scope = tn_scope_begin();
    tn_grad_begin(false);
    status = tn__error_status_of(layer->attach(parametrization, module, name, tensor),
                                 parametrization->type);
    tn_grad_end();
    tn_scope_end(scope);
    tn__error_plugin_back(plugin);
    return status;
}

/* ---- the first parametrization of a tensor --------------------------------------------------- */

static tn_status add_original(tn_module *list, const char *name, tn_tensor *tensor, bool parameter,
                              uint32_t flags)
{
    tn__slots *slots = parameter ? &list->parameters : &list->buffers;
    tn__slot *slot = tn__slots_make(slots, name);

    if (slot == NULL)
        return tn_error_last_code();
    slot->flags = flags;
    slot->tensor = tn_tensor_keep(tensor);
    return TN_OK;
}

/* Adds the originals to a new list: the tensors of `pack`, or `tensor` itself if there is no right
 * inverse (`pack` is NULL). */
static tn_status add_originals(tn_module *list, tn_tensor *tensor, const tn_pack *pack,
                               bool parameter, uint32_t flags)
{
    int64_t count = pack != NULL ? tn_pack_count(pack) : 0;
    bool several = count > 1;
    bool grad = tn_tensor_requires_grad(tensor);
    tn_status status = TN_OK;

    if (pack == NULL)
        return add_original(list, "original", tensor, parameter, flags);
    if (!several && tn_tensor_dtype(tn_pack_tensor(pack, 0)) != tn_tensor_dtype(tensor))
        /* PyTorch's wording */
        return tn_fail(TN_ERR_VALUE,
                       "When `right_inverse` outputs one tensor, it may not change the dtype. "
                       "original.dtype: %s, right_inverse(original).dtype: %s",
                       tn_dtype_name(tn_tensor_dtype(tensor)),
                       tn_dtype_name(tn_tensor_dtype(tn_pack_tensor(pack, 0))));
    if (several)
        tn__parametrize_data_of(list)->originals = count;
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        tn__parametrize_name name;
        tn__parametrize_original(list, i, name);
        tn_tensor *from = tn_pack_tensor(pack, i);
        tn_tensor *made = parameter ? tn_parameter(from, grad) : tn_tensor_detach(from);
        if (made != NULL && !parameter && grad)
            status = tn_tensor_set_requires_grad(made, true);
        if (status == TN_OK)
            status = made != NULL ? add_original(list, name, made, parameter, flags)
                                  : tn_error_last_code();
    }
    return status;
}

/* The right inverse of the first parametrization. *pack becomes NULL if there is none. */
static tn_status first_inverse(tn_module *parametrization, tn_tensor *tensor, tn_pack **pack)
{
    uint64_t mark = tn_error_mark();
    tn_status status;

    *pack = NULL;
    if (!tn__parametrize_has_inverse(parametrization))
        return TN_OK;
    *pack = tn_pack_new();
    status = *pack != NULL ? tn__parametrize_inverse(parametrization, tensor, *pack)
                           : TN_ERR_MEMORY;
    if (status == TN_OK)
        return TN_OK;
    tn_pack_drop(*pack);
    *pack = NULL;
    if (status != TN_ERR_NOT_IMPLEMENTED)
        return status;
    tn_error_restore(mark);
    return TN_OK;
}

/* Gives the single original of the list the object `tensor`, which gets the contents of that
 * original. */
static tn_status keep_object(tn__parametrize_step *step, tn_tensor *tensor, bool parameter)
{
    tn__slot *slot = tn__slots_find(parameter ? &step->list->parameters : &step->list->buffers,
                                    "original");
    tn_status status;

    if (slot->tensor == tensor)
        return TN_OK;
    status = tn_tensor_swap(tensor, slot->tensor);
    if (status != TN_OK)
        return status;
    step->contents = slot->tensor;
    step->object = tn_tensor_keep(tensor);
    slot->tensor = tn_tensor_keep(tensor);
    return TN_OK;
}

static tn_status first(tn__parametrize_step *step, tn__slot *slot, bool parameter,
                       tn_module *parametrization, bool unsafe)
{
    tn_tensor *tensor = tn_tensor_keep(slot->tensor);
    uint32_t flags = slot->flags & TN__SLOT_PUBLIC;
    tn_pack *pack = NULL;
    tn_status status = attach(parametrization, step->module, step->name, tensor);

    if (status == TN_OK)
        status = first_inverse(parametrization, tensor, &pack);
    if (status == TN_OK) {
        step->list = tn__parametrize_list_new(parametrization, unsafe);
        status = step->list != NULL ? add_originals(step->list, tensor, pack, parameter, flags)
                                    : tn_error_last_code();
    }
    if (status == TN_OK && !unsafe) {
        tn_tensor *value = tn__parametrize_value(step->list);
        status = value != NULL ? check_same(step->name, parametrization->type, tensor, value)
                               : tn_error_last_code();
    }
    if (status == TN_OK)
        status = tn__parametrize_list_add(step->module, step->name, step->list);
    if (status == TN_OK && tn__parametrize_data_of(step->list)->originals == 0) {
        status = keep_object(step, tensor, parameter);
        if (status != TN_OK)
            tn__parametrize_list_remove(step->module, step->name);
    }
    tn_pack_drop(pack);
    tn_tensor_drop(tensor);
    return status;
}

/* ---- one more parametrization ---------------------------------------------------------------- */

static tn_status check_inverse(const char *name, tn_module *parametrization, const tn_tensor *value,
                               tn_tensor *after)
{
    tn__parametrize_buffers buffers;
    tn_pack *pack = NULL;
    tn_status status = tn__parametrize_buffers_keep(parametrization, &buffers);

    if (status == TN_OK)
        status = first_inverse(parametrization, after, &pack);
    tn__parametrize_buffers_drop(&buffers, true); /* this call was only a check */
    if (status == TN_OK && pack != NULL) {
        if (tn_pack_count(pack) != 1)
            /* PyTorch's wording */
            status = tn_fail(TN_ERR_VALUE,
                             "parametrization.right_inverse must return a tensor. Got: %lld "
                             "tensors of %s",
                             (long long)tn_pack_count(pack), parametrization->type);
        else
            status = check_same(name, "right_inverse", value, tn_pack_tensor(pack, 0));
    }
    tn_pack_drop(pack);
    return status;
}

static tn_status append(tn__parametrize_step *step, tn_module *parametrization, bool unsafe)
{
    const tn_layer_def *layer = parametrization->layer;
    tn__parametrize_data *data = tn__parametrize_data_of(step->list);
    bool attaches = layer != NULL && layer->attach != NULL;
    tn__parametrize_name index;
    tn_status status = TN_OK;

    if (!unsafe || attaches) {
        tn_tensor *value = tn__parametrize_value(step->list), *after = NULL;
        status = value != NULL ? attach(parametrization, step->module, step->name, value)
                               : tn_error_last_code();
        if (status == TN_OK && !unsafe) {
            status = tn_module_call_many(parametrization, &value, 1, &after, 1);
            if (status == TN_OK)
                status = check_same(step->name, parametrization->type, value, after);
            if (status == TN_OK)
                status = check_inverse(step->name, parametrization, value, after);
        }
    }
    if (status != TN_OK)
        return status;
    tn_snprint(index, sizeof index, "%lld", (long long)tn__parametrize_count(step->list));
    status = tn_module_add_child(step->list, index, parametrization);
    if (status != TN_OK)
        return status;
    step->appended = true;
    step->unsafe_before = data->unsafe;
    data->unsafe = data->unsafe || unsafe;
    tn__value_cache_forget();
    return TN_OK;
}

/* ---- the whole step -------------------------------------------------------------------------- */

static void free_step(tn__parametrize_step *step)
{
    tn_module_drop(step->list);
    tn_module_drop(step->module);
    tn_tensor_drop(step->object);
    tn_tensor_drop(step->contents);
    tn_free(step->name);
    *step = (tn__parametrize_step){ 0 };
}

static tn_status no_tensor(tn_module *module, const char *name)
{
    char text[512];

    if (tn_module_repr(module, text, sizeof text) < 0)
        return tn_error_last_code();
    /* PyTorch's wording */
    return tn_fail(TN_ERR_VALUE,
                   "Module '%s' does not have a parameter, a buffer, or a parametrized element "
                   "with name '%s'",
                   text, name);
}

static tn_status begin(tn__parametrize_step *step, tn_module *parametrization, bool unsafe)
{
    bool parameter;
    tn__slot *slot = plain_slot(step->module, step->name, &parameter);
    tn_module *list = tn__parametrize_list(step->module, step->name);
    tn_status status;

    if (tn__parametrize_up.prune_owns(step->module, step->name))
        return tn_fail(TN_ERR_VALUE,
                       "'%s' of %s: it belongs to a pruned parameter; make the pruning permanent "
                       "first: call tn_prune_remove",
                       step->name, step->module->type);
    if (tn__parametrize_up.is_pruned(step->module, step->name))
        return tn_fail(TN_ERR_VALUE,
                       "'%s' of %s: it is pruned; make the pruning permanent first: "
                       "call tn_prune_remove",
                       step->name, step->module->type);
    if (slot == NULL && list == NULL && tn_module_slot_kind(step->module, step->name) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "'%s' of %s: wrong kind, got a %s; expected a parameter or a buffer",
                       step->name, step->module->type,
                       tn__slot_word(tn_module_slot_kind(step->module, step->name)));
    if (slot == NULL && list == NULL)
        return no_tensor(step->module, step->name);
    if (slot != NULL && tn__is_none(slot->tensor))
        return tn_fail(TN_ERR_VALUE, "'%s' of %s: it is None; expected a tensor to parametrize",
                       step->name, step->module->type);
    if (slot != NULL && (slot->flags & TN__SLOT_UNSHAPED) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "'%s' of %s: no shape yet; call the module once, or load a state",
                       step->name, step->module->type);
    status = tn_module_train(parametrization, step->module->training);
    if (status != TN_OK)
        return status;
    if (slot != NULL)
        return first(step, slot, parameter, parametrization, unsafe);
    step->list = tn_module_keep(list);
    return append(step, parametrization, unsafe);
}

tn_status tn__parametrize_step_begin(tn_module *module, const char *name,
                                     tn_module *parametrization, uint32_t flags,
                                     tn__parametrize_step *step)
{
    uint64_t scope;
    tn_status status;

    *step = (tn__parametrize_step){ .name = tn_strdup(name) };
    if (step->name == NULL)
        return TN_ERR_MEMORY;
    step->module = tn_module_keep(module);
    scope = tn_scope_begin();
    tn_grad_begin(false);
    status = begin(step, parametrization, (flags & TN_PARAMETRIZE_UNSAFE) != 0);
    tn_grad_end();
    tn_scope_end(scope);
    if (status != TN_OK)
        free_step(step);
    return status;
}

void tn__parametrize_step_undo(tn__parametrize_step *step)
{
    tn__parametrize_name index;

    if (step->object != NULL)
        tn_tensor_swap(step->object, step->contents);
    if (step->appended) {
        tn_snprint(index, sizeof index, "%lld", (long long)tn__parametrize_count(step->list) - 1);
        tn__slots_remove(&step->list->children, tn__slots_find(&step->list->children, index));
        tn__parametrize_data_of(step->list)->unsafe = step->unsafe_before;
        tn__value_cache_forget();
    } else {
        tn__parametrize_list_remove(step->module, step->name);
    }
    free_step(step);
}

void tn__parametrize_step_finish(tn__parametrize_step *step)
{
    bool parameter;
    tn__slot *slot = plain_slot(step->module, step->name, &parameter);

    if (slot != NULL)
        tn__slots_remove(parameter ? &step->module->parameters : &step->module->buffers, slot);
    free_step(step);
}

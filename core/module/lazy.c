/* SPDX-License-Identifier: MIT
 *
 * Lazy modules: slots without a shape, the first call, which infers their shapes, and loading,
 * which takes the shapes from the state. */
#include "core/module/internal.h"

static tn__slot *unshaped(const tn_module *module, const char *name)
{
    const tn__slots *kinds[] = { &module->parameters, &module->buffers };
    for (int64_t k = 0; k < tn__countof(kinds); k++)
        for (int64_t i = 0; i < kinds[k]->count; i++)
            if ((kinds[k]->at[i].flags & TN__SLOT_UNSHAPED) != 0 &&
                (name == NULL || strcmp(kinds[k]->at[i].name, name) == 0))
                return &kinds[k]->at[i];
    return NULL;
}

bool tn__module_waits(const tn_module *module)
{
    return unshaped(module, NULL) != NULL;
}

bool tn_module_is_lazy(const tn_module *module, const char *name)
{
    return tn__not_null(module, "tn_module_is_lazy: module") && unshaped(module, name) != NULL;
}

tn_status tn_module_add_lazy(tn_module *module, uint32_t kind, const char *name)
{
    if (module == NULL)
        return tn_error_null("tn_module_add_lazy: module");
    if (kind != TN_SLOT_PARAMETER && kind != TN_SLOT_BUFFER)
        return tn_fail(TN_ERR_VALUE,
                       "tn_module_add_lazy: kind: unknown, got %u; expected TN_SLOT_PARAMETER or "
                       "TN_SLOT_BUFFER",
                       kind);
    uint64_t scope = tn_scope_begin();
    tn_tensor *empty = tn_tensor_empty(TN_SHAPE(0), TN_DTYPE_AUTO, NULL);
    tn_status status = empty == NULL ? tn_error_last_code()
                       : kind == TN_SLOT_PARAMETER
                           ? tn_module_add_parameter(module, name, tn_parameter(empty, true))
                           : tn_module_add_buffer(module, name, empty, 0);
    tn_scope_end(scope);
    if (status == TN_OK)
        tn__slots_find(kind == TN_SLOT_PARAMETER ? &module->parameters : &module->buffers, name)
            ->flags |= TN__SLOT_UNSHAPED;
    return status;
}

/* Gives the tensor of a slot new memory of that shape. The tensor object stays the same. */
static tn_status give_shape(tn__slot *slot, tn_ints shape)
{
    uint64_t scope = tn_scope_begin();
    tn_grad_begin(false);
    tn_tensor *with = tn_tensor_empty(shape, tn_tensor_dtype(slot->tensor),
                                      tn_tensor_device(slot->tensor));
    tn_status status = with != NULL ? tn_tensor_swap(slot->tensor, with) : tn_error_last_code();
    tn_grad_end();
    tn_scope_end(scope);
    if (status == TN_OK)
        slot->flags &= ~(uint32_t)TN__SLOT_UNSHAPED;
    return status;
}

tn_status tn_module_materialize(tn_module *module, const char *name, tn_ints shape)
{
    if (module == NULL || name == NULL)
        return tn__error_null_of("tn_module_materialize", "module, name", module, name);
    tn__slot *slot = unshaped(module, name);
    if (slot != NULL)
        return give_shape(slot, shape);
    if (tn__slots_find(&module->parameters, name) != NULL ||
        tn__slots_find(&module->buffers, name) != NULL)
        return TN_OK;
    return tn_fail(TN_ERR_ATTR, "%s: '%s': no such parameter or buffer, cannot give it a shape",
                   module->type, name);
}

/* ---- the first call -------------------------------------------------------------------------- */

/* Changes the module to the layer that its lazy layer names in `becomes`. */
static tn_status become(tn_module *module)
{
    const tn_layer_def *lazy = module->layer;
    const tn__entry *entry = tn__registry_use(TN_KIND_tn_layer_def, lazy->becomes);
    if (entry == NULL)
        return tn_error_prefix("layer %s: change to %s: ", lazy->name, lazy->becomes);
    const tn_layer_def *plain = (const tn_layer_def *)entry->contribution;
    if (entry->plugin != module->plugin)
        return tn_fail(TN_ERR_RUNTIME,
                       "layer %s: cannot change to %s, which plugin %q provides; expected a layer "
                       "of the same plugin",
                       lazy->name, lazy->becomes, entry->plugin != NULL ? entry->plugin->id : "");
    if (plain->data_size != lazy->data_size)
        return tn_fail(TN_ERR_RUNTIME,
                       "layer %s: cannot change to %s: data_size differs, got %llu; expected %llu",
                       lazy->name, lazy->becomes, (unsigned long long)plain->data_size,
                       (unsigned long long)lazy->data_size);
    module->layer = plain;
    module->type = entry->name;
    return TN_OK;
}

static tn_status infer(tn_module *module, const tn_pack *pack)
{
    bool fills = tn__module_waits(module);
    tn_grad_begin(false);
    tn_status status = module->layer->infer(module, pack);
    tn_grad_end();
    const tn__slot *left = status == TN_OK ? unshaped(module, NULL) : NULL;
    if (left != NULL)
        status = tn_fail(TN_ERR_RUNTIME,
                         "layer %s: infer: gave no shape to \"%s\" in the first call",
                         module->layer->name, left->name);
    if (status == TN_OK && module->layer->becomes != NULL)
        status = become(module);
    return status == TN_OK && fills ? tn__module_reset(module) : status;
}

tn_status tn__lazy_infer(tn_module *module, const tn_pack *pack, tn_tensor *input)
{
    if (pack != NULL)
        return infer(module, pack);
    tn_pack *one = tn_pack_new();
    tn_status status = one != NULL ? tn_pack_add(one, NULL, tn_value_tensor(input)) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = infer(module, one);
    tn_pack_drop(one);
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

static tn_status shape_from_state(const tn__met *met, tn__slots *slots, const tn_state *state)
{
    for (int64_t i = 0; i < slots->count; i++) {
        tn__slot *slot = &slots->at[i];
        if ((slot->flags & TN__SLOT_UNSHAPED) == 0)
            continue;
        tn__text key = { 0 };
        tn__text_add(&key, "%s%s%s", met->path, met->path[0] != '\0' ? "." : "", slot->name);
        if (key.failed) {
            tn__text_free(&key);
            return TN_ERR_MEMORY;
        }
        int64_t found = tn_state_find(state, key.at);
        tn__text_free(&key);
        if (found < 0 || tn_state_value(state, found).kind != TN_VALUE_TENSOR)
            continue;
        tn_ints shape = tn__shape(tn_state_tensor(state, found));
        if (shape.count == 1 && shape.at[0] == 0)
            continue; /* the slot was also unshaped when the state was saved */
        tn_status status = give_shape(slot, shape);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* Adds a parameter, or a buffer if the dtype is not floating or complex, with the shape of
 * `tensor`. */
static tn_status add_like(tn_module *module, const char *name, const tn_tensor *tensor)
{
    tn_dtype dtype = tn_tensor_dtype(tensor);
    uint64_t scope = tn_scope_begin();
    tn_tensor *made = tn_tensor_empty(tn__shape(tensor), dtype, NULL);
    tn_status status;

    if (made != NULL && tn_device_has_memory(made->device))
        made->storage->flags |= TN__STORAGE_UNSET; /* the load may take the state's memory */
    if (made == NULL)
        status = tn_error_last_code();
    else if ((TN_BIT(dtype) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) != 0)
        status = tn_module_add_parameter(module, name, tn_parameter(made, true));
    else
        status = tn_module_add_buffer(module, name, made, 0);
    tn_scope_end(scope);
    return status;
}

/* Printed text names no parameters and buffers. A module whose type no plugin provides therefore
 * gets those that the state has for the module itself. */
static tn_status slots_from_state(const tn__met *met, const tn_state *state)
{
    size_t length = strlen(met->path);
    int64_t count = met->module->printed ? tn_state_count(state) : 0;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        const char *name = tn_state_name(state, i);

        if (length > 0 && (strncmp(name, met->path, length) != 0 || name[length] != '.'))
            continue;
        name += length > 0 ? length + 1 : 0;
        if (name[0] != '\0' && strchr(name, '.') == NULL && strcmp(name, "_extra_state") != 0 &&
            tn_module_slot_kind(met->module, name) == 0 &&
            tn_state_value(state, i).kind == TN_VALUE_TENSOR)
            status = add_like(met->module, name, tn_state_tensor(state, i));
    }
    return status;
}

tn_status tn__lazy_load(tn_module *module, const tn_state *state)
{
    tn__walk walk = { NULL, 0, 0 };
    tn_status status = tn__walk_collect(module, TN_SLOT_CHILD, true, &walk);
    for (int64_t i = 0; i < walk.count && status == TN_OK; i++) {
        status = slots_from_state(&walk.at[i], state);
        if (status == TN_OK)
            status = shape_from_state(&walk.at[i], &walk.at[i].module->parameters, state);
        if (status == TN_OK)
            status = shape_from_state(&walk.at[i], &walk.at[i].module->buffers, state);
    }
    tn__walk_free(&walk);
    return status;
}

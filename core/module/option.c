/* SPDX-License-Identifier: MIT
 *
 * Options of a module by name. The value of an option may be a buffer of the module, such as the
 * weight of a loss: then the tensor, not the option struct, has the value. */
#include "core/module/internal.h"
#include "core/tensor/convert.h"

const tn__slot *tn__option_buffer(const tn_module *module, const tn_option *row)
{
    if (row->kind != TN_OPTION_KIND_VALUE || (row->flags & TN_OPTION_MANY) != 0)
        return NULL;
    return tn__slots_find(&module->buffers, row->name);
}

/* Appends the elements of one level as a list. *at points to the next element. */
static void put_level(tn_ints shape, tn_dtype dtype, const char **at, tn__text *text)
{
    tn_ints inner = { shape.at + 1, shape.count - 1 };

    if (shape.count == 0) {
        tn_scalar scalar = tn__convert_scalar(*at, dtype);
        tn_value number = tn_value_float(tn_scalar_as_float(scalar));

        tn__value_print(&number, text);
        *at += tn_dtype_size(dtype);
        return;
    }
    tn__text_put(text, "[", 1);
    for (int64_t i = 0; i < shape.at[0]; i++) {
        if (i > 0)
            tn__text_put(text, ", ", 2);
        put_level(inner, dtype, at, text);
    }
    tn__text_put(text, "]", 1);
}

tn_status tn__option_buffer_text(const tn__slot *slot, tn__text *text)
{
    const tn_tensor *tensor = slot->tensor;
    tn_dtype dtype;
    size_t bytes;
    char *data;
    const char *at;
    tn_status status = TN_OK;

    if (tn__is_none(tensor)) {
        tn__text_put(text, "None", 4);
        return TN_OK;
    }
    dtype = tn_tensor_dtype(tensor);
    bytes = (size_t)tn_tensor_numel(tensor) * tn_dtype_size(dtype);
    data = tn_calloc(bytes > 0 ? bytes : 1, 1);
    if (data == NULL)
        return TN_ERR_MEMORY;
    /* On a device without memory there are no values, as in a copy of the module there. The list
     * has the shape. */
    if (tn_device_has_memory(tn_tensor_device(tensor)))
        status = tn_tensor_copy_out(tensor, data, bytes);
    at = data;
    if (status == TN_OK)
        put_level(tn__shape(tensor), dtype, &at, text);
    tn_free(data);
    return status;
}

/* ---- options by name ------------------------------------------------------------------------- */

/* Fails; the message lists the options of the module. */
static tn_status no_option(const tn_module *module, const char *name)
{
    tn__text text = { 0 };
    tn_status status;

    if (module->layer != NULL)
        for (const tn_option *row = module->layer->options;
             row != NULL && row->kind != TN_OPTION_KIND_END; row++)
            if ((row->flags & TN_OPTION_MANY) == 0)
                tn__text_add(&text, "%s%s", text.length > 0 ? ", " : "; accepted: ", row->name);
    status = tn_fail(TN_ERR_KEY, "%s: no option %q%s%s", module->type, name,
                     module->layer == NULL
                         ? ": it has no layer, and so no options: the program made it "
                           "(tn_module_plain), or no plugin provides layer "
                     : text.at == NULL ? "; it has none"
                                       : text.at,
                     module->layer == NULL ? module->type : "");
    tn__text_free(&text);
    return status;
}

static const tn_option *find(const tn_module *module, const char *name)
{
    const tn_option *row = module->layer != NULL ? tn__options_find(module->layer->options, name)
                                                 : NULL;

    if (row != NULL && (row->flags & TN_OPTION_MANY) == 0)
        return row;
    no_option(module, name);
    return NULL;
}

tn_status tn_module_option_get(tn_module *module, const char *name, tn_pack *out)
{
    const tn_option *row;
    const tn__slot *buffer;

    if (module == NULL || name == NULL || out == NULL)
        return tn__error_null_of("tn_module_option_get", "module, name, out", module, name, out);
    row = find(module, name);
    if (row == NULL)
        return tn_error_last_code();
    buffer = tn__option_buffer(module, row);
    if (buffer == NULL)
        return tn__options_get(row, module->data, out);
    return tn_pack_add(
        out, name, tn__is_none(buffer->tensor) ? tn_value_none() : tn_value_tensor(buffer->tensor));
}

/* Returns a device without memory, on which a module needs no memory for its tensors. Returns NULL,
 * which means the default device, if there is none. */
static const tn_device *without_memory(void)
{
    for (int64_t i = 0; i < tn_device_count(); i++) {
        const tn_device *device = tn_device_at(i);

        if (device != NULL && !tn_device_has_memory(device))
            return device;
    }
    return NULL;
}

/* Builds a module with the options of `module`, except that `changed` has the given value.
 * `changed` may be NULL. The caller owns the module. */
static tn_module *built(tn_module *module, const tn_option *changed, tn_value value)
{
    const tn_option *table = module->layer->options;
    bool values = changed != NULL && tn__option_buffer(module, changed) != NULL;
    tn_pack *all = tn_pack_new();
    tn_module *made = NULL;
    tn_status status = all != NULL ? TN_OK : TN_ERR_MEMORY;
    tn_value *at;
    const char **names;
    int64_t count;
    bool before;

    for (const tn_option *row = table; row->kind != TN_OPTION_KIND_END && status == TN_OK; row++) {
        if (row == changed)
            status = tn_pack_add(all, row->name, value);
        else if ((row->flags & TN_OPTION_MANY) == 0 && tn__option_buffer(module, row) == NULL)
            status = tn__options_get(row, module->data, all);
    }
    count = status == TN_OK ? tn_pack_count(all) : 0;
    at = tn_calloc((size_t)count + 1, sizeof *at);
    names = tn_calloc((size_t)count + 1, sizeof *names);
    if (at == NULL || names == NULL)
        status = TN_ERR_MEMORY;
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        at[i] = tn_pack_at(all, i);
        names[i] = tn_pack_name(all, i);
    }
    before = tn__init_skip(true);
    if (status == TN_OK)
        status = tn_device_begin(values ? NULL : without_memory());
    if (status == TN_OK) {
        made = tn__module_make(module->type, NULL, at, names, NULL, NULL, count);
        tn_device_end();
    }
    tn__init_skip(before);
    tn_free(at);
    tn_free((void *)names);
    tn_pack_drop(all);
    return made;
}

/* Returns the name of a tensor that only one of the modules has, or that has another shape in the
 * second; NULL if there is none. With `may_miss`, tensors may be missing in the second module. */
static const char *other_tensor(const tn__slots *first, const tn__slots *second, bool may_miss)
{
    for (int64_t i = 0; i < second->count; i++) {
        const tn__slot *slot = &second->at[i], *old = tn__slots_find(first, slot->name);
        tn_ints shape, wanted;

        if (tn__is_none(slot->tensor) && (may_miss || old == NULL || tn__is_none(old->tensor)))
            continue;
        if (old == NULL || tn__is_none(old->tensor) || tn__is_none(slot->tensor))
            return slot->name;
        shape = tn__shape(slot->tensor);
        wanted = tn__shape(old->tensor);
        if (shape.count != wanted.count ||
            memcmp(shape.at, wanted.at, (size_t)shape.count * sizeof *shape.at) != 0)
            return slot->name;
    }
    for (int64_t i = 0; i < first->count && !may_miss; i++)
        if (tn__slots_find(second, first->at[i].name) == NULL)
            return first->at[i].name;
    return NULL;
}

/* Returns the name of a child that only one of the modules has, or whose spec differs; NULL if
 * there is none. */
static const char *other_child(const tn_module *first, const tn_module *second)
{
    for (int64_t i = 0; i < second->children.count || i < first->children.count; i++) {
        const tn__slot *slot = i < second->children.count ? &second->children.at[i] : NULL;
        const tn__slot *old = slot != NULL ? tn__slots_find(&first->children, slot->name) : NULL;
        tn__text text = { 0 }, wanted = { 0 };
        bool same;

        if (slot == NULL)
            return first->children.at[i].name;
        if (old == NULL || (old->child == NULL) != (slot->child == NULL))
            return slot->name;
        if (slot->child == NULL)
            continue;
        same = tn__module_spec_text(slot->child, &text) == TN_OK &&
               tn__module_spec_text(old->child, &wanted) == TN_OK && text.at != NULL &&
               wanted.at != NULL && strcmp(text.at, wanted.at) == 0;
        tn__text_free(&text);
        tn__text_free(&wanted);
        if (!same)
            return slot->name;
    }
    return NULL;
}

/* Gives `module` the option struct of `made`. `now` and `made` are built with the same options,
 * except for `row`. Fails if their parameters or children differ, or if a buffer of `made` does not
 * fit the module, because these then depend on the option. */
static tn_status adopt(tn_module *module, const tn_option *row, tn_module *now, tn_module *made)
{
    const char *name = other_tensor(&now->parameters, &made->parameters, false);
    tn__option_block *block = module->option_block;
    void *data = module->data;

    if (name == NULL)
        name = other_tensor(&module->buffers, &made->buffers, true);
    if (name == NULL)
        name = other_child(now, made);
    if (name != NULL)
        return tn_fail(TN_ERR_VALUE,
                       "%s: option %q: '%s' depends on it, so it cannot change; expected another "
                       "option, or a new module",
                       module->type, row->name, name);
    module->data = made->data;
    module->option_block = made->option_block;
    made->data = data;
    made->option_block = block;
    return TN_OK;
}

static tn_status may_change(const tn_module *module, const tn_option *row)
{
    const tn_layer_def *layer = module->layer;

    /* tn__call_holds() also lets the call check at its end whether the module has references left,
     * which is harmless: it has some. */
    if (tn__call_holds(module))
        return tn_fail(TN_ERR_RUNTIME,
                       "%s: option %q: the module is being called; expected a change before or "
                       "after the call",
                       module->type, row->name);
    if (layer->destroy != NULL || layer->copy != NULL || tn__options_many(layer->options) != NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: option %q: cannot change, because the layer's data has more than "
                       "options; expected a new module",
                       module->type, row->name);
    return TN_OK;
}

tn_status tn_module_option_set(tn_module *module, const char *name, tn_value value)
{
    const tn_option *row;
    tn_module *now = NULL, *made;
    tn_status status;

    if (module == NULL || name == NULL)
        return tn__error_null_of("tn_module_option_set", "module, name", module, name);
    row = find(module, name);
    if (row == NULL)
        return tn_error_last_code();
    status = may_change(module, row);
    if (status != TN_OK)
        return status;
    made = built(module, row, value);
    if (made == NULL)
        return tn_error_last_code();
    if (made->layer != module->layer)
        status = tn_fail(TN_ERR_VALUE,
                         "%s: option %q: another layer is registered under this name now; expected "
                         "the layer of the module",
                         module->type, name);
    else if (tn__option_buffer(module, row) != NULL)
        status = tn_module_set(module, name, tn_module_get(made, name));
    else if ((now = built(module, NULL, tn_value_none())) == NULL)
        status = tn_error_last_code();
    else
        status = adopt(module, row, now, made);
    tn__module_changed(module);
    atomic_fetch_add_explicit(&module->changes, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tn__module_epoch, 1, memory_order_relaxed);
    tn_module_drop(now);
    tn_module_drop(made);
    return status;
}

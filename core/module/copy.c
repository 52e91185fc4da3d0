/* SPDX-License-Identifier: MIT
 *
 * Deep copies of modules. A copy owns new storages. Modules, tensors and storages that are shared
 * within the original are shared within the copy. */
#include "core/module/depth.h"

struct copier {
    tn__map modules, tensors,
        storages; /* from each original to its copy; the copier owns a reference to the copy */
};

/* ---- tensors --------------------------------------------------------------------------------- */

/* Returns a tensor over all bytes of a storage. */
static tn_tensor *bytes_over(tn__storage *storage)
{
    tn_meta meta = { .dtype = TN_U8, .ndim = 1 };
    meta.shape[0] = (int64_t)storage->size;
    return tn__tensor_over(storage, &meta);
}

static tn__storage *copy_storage(tn__storage *from)
{
    tn__storage *made = tn__allocator_storage(from->device, from->size);
    if (made == NULL || from->size == 0 || !tn_device_has_memory(from->device))
        return made;
    tn_tensor *a = bytes_over(from), *b = bytes_over(made);
    tn_status status = a != NULL && b != NULL ? tn__copy(b, a) : TN_ERR_MEMORY;
    tn_tensor_drop(a);
    tn_tensor_drop(b);
    if (status == TN_OK)
        return made;
    tn__storage_drop(made);
    return NULL;
}

/* Returns where `seen` has the copy of `from`, or NULL if memory runs out. Sets *is_new if `from`
 * was not in `seen` yet; its copy is then NULL. */
static void **place_of(tn__map *seen, const void *from, bool *is_new)
{
    int added = tn__map_add(seen, from);
    *is_new = added > 0;
    return added < 0 ? NULL : tn__map_value(seen, from);
}

static tn_tensor *copy_object(struct copier *c, tn_tensor *from)
{
    bool is_new;
    void **place = place_of(&c->storages, from->storage, &is_new);
    if (place == NULL)
        return NULL;
    if (*place == NULL)
        *place = copy_storage(from->storage);
    if (*place == NULL)
        return NULL;
    tn_meta meta;
    tn__tensor_meta(from, &meta);
    tn_tensor *made = tn__tensor_over(*place, &meta);
    if (made == NULL)
        return NULL;
    made->parameter = from->parameter;
    if (!tn_tensor_requires_grad(from) || tn_tensor_set_requires_grad(made, true) == TN_OK)
        return made;
    tn_tensor_drop(made);
    return NULL;
}

/* Returns the copy of a tensor, which the copier owns. The gradient of a plain tensor is copied,
 * that of a parameter is not. */
static tn_tensor *copy_tensor(struct copier *c, tn_tensor *from)
{
    bool is_new;
    void **place = place_of(&c->tensors, from, &is_new);
    if (place == NULL || *place != NULL)
        return place != NULL ? *place : NULL;
    if (!tn_tensor_is_leaf(from)) {
        tn_fail(TN_ERR_RUNTIME,
                "tensor: operator %s made it; expected a leaf: call tn_detach_ first",
                tn_tensor_grad_op(from));
        return NULL;
    }
    tn_tensor *made = copy_object(c, from), *gradient = tn_tensor_grad(from);
    if (made == NULL)
        return NULL;
    *place = made;
    if (!from->parameter && gradient != NULL && !tn__is_none(gradient)) {
        tn_tensor *copy = copy_tensor(c, gradient);
        if (copy == NULL || tn_tensor_set_grad(made, copy) != TN_OK)
            return NULL;
    }
    return made;
}

static tn_status copy_slots(struct copier *c, const tn_module *module, const tn__slots *from,
                            tn__slots *to)
{
    for (int64_t i = 0; i < from->count; i++) {
        const tn__slot *slot = &from->at[i];
        tn_tensor *tensor = tn__is_none(slot->tensor) ? slot->tensor : copy_tensor(c, slot->tensor);
        if (tensor == NULL) {
            tn_error_prefix("copying '%s' of %s: ", slot->name, module->type);
            return tn_error_last_code();
        }
        tn__slot *made = tn__slots_make(to, slot->name);
        if (made == NULL)
            return tn_error_last_code();
        made->flags = slot->flags;
        made->tensor = tn__is_none(tensor) ? tensor : tn_tensor_keep(tensor);
    }
    return TN_OK;
}

/* ---- modules --------------------------------------------------------------------------------- */

/* Copies the bytes of the layer's struct. Memory to which options point is shared, because it never
 * changes. */
static tn_status copy_data(tn_module *from, tn_module *to)
{
    const tn_layer_def *layer = from->layer;
    if (layer == NULL)
        return TN_OK;
    if (layer->destroy != NULL && layer->copy == NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: cannot be copied; its layer has a `destroy` and no `copy`, so the "
                       "ownership of its data is unknown",
                       from->type);
    size_t size = layer->data_size > 0 ? layer->data_size : 1;
    to->data = tn_malloc(size);
    if (to->data == NULL)
        return TN_ERR_MEMORY;
    memcpy(to->data, from->data, size);
    to->layer = layer;
    to->option_block = tn__options_share(from->option_block);
    tn_status status = TN_OK;
    if (layer->copy != NULL) {
        const char *before = tn__error_plugin(from->plugin != NULL ? from->plugin->id : "");
        uint64_t failures = tn_error_mark();
        char what[128];
        tn_snprint(what, sizeof what, "layer %s: copy", layer->name);
        status = tn_error_returned(layer->copy(to, from), failures, what);
        tn__error_plugin(before);
    }
    to->build_began = status == TN_OK;
    return status;
}

static tn_status copy_tree_text(const tn_module *from, tn_module *to)
{
    if (from->tree_type == NULL)
        return TN_OK;
    to->printed = from->printed;
    to->tree_type = tn_strdup(from->tree_type);
    to->tree_extra = tn_strdup(from->tree_extra);
    if (to->tree_type == NULL || to->tree_extra == NULL)
        return TN_ERR_MEMORY;
    to->type = to->tree_type;
    return TN_OK;
}

static tn_module *copy_module(struct copier *c, tn_module *from, int depth);

static tn_status copy_children(struct copier *c, const tn_module *from, tn_module *to, int depth)
{
    for (int64_t i = 0; i < from->children.count; i++) {
        const tn__slot *slot = &from->children.at[i];
        tn_module *child = slot->child != NULL ? copy_module(c, slot->child, depth + 1) : NULL;
        if (slot->child != NULL && child == NULL)
            return tn_error_last_code();
        tn__slot *made = tn__slots_make(&to->children, slot->name);
        if (made == NULL)
            return tn_error_last_code();
        tn__slot_hold(to, made, child != NULL ? tn_module_keep(child) : NULL);
    }
    return TN_OK;
}

/* Returns the copy of a module, which the copier owns. */
static tn_module *copy_module(struct copier *c, tn_module *from, int depth)
{
    if (tn__depth_check("modules", depth) != TN_OK)
        return NULL;
    bool is_new;
    void **place = place_of(&c->modules, from, &is_new);
    if (place == NULL || !is_new)
        return place != NULL ? *place : NULL;
    tn_module *to = tn__module_new(from->type);
    if (to == NULL)
        return NULL;
    *place = to;
    to->training = from->training;
    to->frozen = from->frozen;
    to->plugin = from->plugin;
    to->own_forward = tn__own_forward_keep(from->own_forward);
    to->own_inverse = from->own_inverse;
    tn_status status = copy_tree_text(from, to);
    if (status == TN_OK)
        status = copy_data(from, to);
    if (status == TN_OK)
        status = copy_slots(c, from, &from->parameters, &to->parameters);
    if (status == TN_OK)
        status = copy_slots(c, from, &from->buffers, &to->buffers);
    if (status == TN_OK)
        status = copy_children(c, from, to, depth);
    if (status == TN_OK)
        status = tn__computed_copy(from, to);
    if (status == TN_OK)
        status = tn__module_hooks_copy(from, to);
    return status == TN_OK ? to : NULL;
}

tn_module *tn_module_copy(tn_module *module)
{
    if (module == NULL) {
        tn_error_null("tn_module_copy: module");
        return NULL;
    }
    struct copier c = { 0 };
    uint64_t scope = tn_scope_begin();
    tn_grad_begin(false);
    tn_module *copy = tn_module_keep(copy_module(&c, module, 0));
    tn_grad_end();
    tn_scope_end(scope);
    for (int64_t i = 0; i < c.modules.count; i++)
        tn_module_drop(c.modules.at[i].value);
    for (int64_t i = 0; i < c.tensors.count; i++)
        tn_tensor_drop(c.tensors.at[i].value);
    for (int64_t i = 0; i < c.storages.count; i++)
        if (c.storages.at[i].value != NULL)
            tn__storage_drop(c.storages.at[i].value);
    tn__map_free(&c.modules);
    tn__map_free(&c.tensors);
    tn__map_free(&c.storages);
    return copy;
}

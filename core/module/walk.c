/* SPDX-License-Identifier: MIT
 *
 * Walks over a tree of modules. A walk first collects what it will visit, with references of its own, so a visitor
 * may change the tree: what it sees is the tree as it was at the start. */
#include "core/module/internal.h"

/* ---- a set of addresses ---------------------------------------------------------------------- */

static int64_t seen_place(const void *const *at, int64_t capacity, const void *address)
{
    uint64_t hash = (uint64_t)(uintptr_t)address * UINT64_C(0x9E3779B97F4A7C15);
    int64_t place = (int64_t)(hash >> 20) & (capacity - 1);
    while (at[place] != NULL && at[place] != address)
        place = (place + 1) & (capacity - 1);
    return place;
}

static bool seen_grow(tn__seen *seen)
{
    int64_t capacity = seen->capacity > 0 ? seen->capacity * 2 : 32;
    const void **at = tn_calloc((size_t)capacity, sizeof *at);
    if (at == NULL)
        return false;
    for (int64_t i = 0; i < seen->capacity; i++)
        if (seen->at[i] != NULL)
            at[seen_place(at, capacity, seen->at[i])] = seen->at[i];
    tn_free((void *)seen->at);
    seen->at = at;
    seen->capacity = capacity;
    return true;
}

int tn__seen_add(tn__seen *seen, const void *address)
{
    if (seen->count * 2 >= seen->capacity && !seen_grow(seen))
        return -1;
    int64_t place = seen_place(seen->at, seen->capacity, address);
    if (seen->at[place] != NULL)
        return 0;
    seen->at[place] = address;
    seen->count++;
    return 1;
}

void tn__seen_free(tn__seen *seen)
{
    tn_free((void *)seen->at);
    *seen = (tn__seen){ NULL, 0, 0 };
}

/* ---- collecting ------------------------------------------------------------------------------ */

struct collector {
    tn__walk *walk;
    uint32_t kinds;
    bool duplicates;
    tn__seen modules, tensors;
    tn__text path;
};

/* Adds the path so far (plus a name) with what lies there. */
static tn_status met(struct collector *c, const char *name, tn_module *module, tn_tensor *tensor,
                     uint32_t kind, uint32_t flags)
{
    tn__walk *walk = c->walk;
    if (walk->count == walk->capacity) {
        int64_t capacity = walk->capacity > 0 ? walk->capacity * 2 : 16;
        tn__met *grown = tn_realloc(walk->at, (size_t)capacity * sizeof *grown);
        if (grown == NULL)
            return TN_ERR_MEMORY;
        walk->at = grown;
        walk->capacity = capacity;
    }
    size_t prefix = c->path.length, size = strlen(name);
    char *path = tn_malloc(prefix + size + 2);
    if (path == NULL)
        return TN_ERR_MEMORY;
    memcpy(path, c->path.at != NULL ? c->path.at : "", prefix);
    size_t length = prefix;
    if (prefix > 0 && size > 0)
        path[length++] = '.';
    memcpy(path + length, name, size + 1);
    walk->at[walk->count++] = (tn__met){
        .path = path,
        .module = tn_module_keep(module),
        .tensor = tn_tensor_keep(tensor),
        .kind = kind,
        .flags = flags,
    };
    return TN_OK;
}

static tn_status meet_tensors(struct collector *c, tn_module *module, const tn__slots *slots,
                              uint32_t kind)
{
    if ((c->kinds & kind) == 0)
        return TN_OK;
    for (int64_t i = 0; i < slots->count; i++) {
        tn_tensor *tensor = slots->at[i].tensor;
        if (tn__is_none(tensor))
            continue;
        int is_new = c->duplicates ? 1 : tn__seen_add(&c->tensors, tensor);
        if (is_new < 0)
            return TN_ERR_MEMORY;
        if (is_new == 0)
            continue;
        tn_status status = met(c, slots->at[i].name, module, tensor, kind, slots->at[i].flags);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status collect(struct collector *c, tn_module *module, int depth)
{
    if (depth > TN__MODULE_DEPTH)
        return tn_fail(TN_ERR_RUNTIME, "modules nest more than %d deep", TN__MODULE_DEPTH);
    int is_new = c->duplicates ? 1 : tn__seen_add(&c->modules, module);
    if (is_new <= 0)
        return is_new == 0 ? TN_OK : TN_ERR_MEMORY;
    tn_status status = TN_OK;
    if ((c->kinds & TN_SLOT_CHILD) != 0)
        status = met(c, "", module, NULL, TN_SLOT_CHILD, 0);
    if (status == TN_OK)
        status = meet_tensors(c, module, &module->parameters, TN_SLOT_PARAMETER);
    if (status == TN_OK)
        status = meet_tensors(c, module, &module->buffers, TN_SLOT_BUFFER);
    size_t length = c->path.length;
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++) {
        const tn__slot *slot = &module->children.at[i];
        if (slot->child == NULL)
            continue;
        if (length > 0)
            tn__text_put(&c->path, ".", 1);
        tn__text_put(&c->path, slot->name, strlen(slot->name));
        if (c->path.failed)
            return tn_fail(TN_ERR_MEMORY, "out of memory for the path of a module");
        status = collect(c, slot->child, depth + 1);
        c->path.length = length;
    }
    return status;
}

tn_status tn__walk_collect(tn_module *module, uint32_t kinds, bool duplicates, tn__walk *walk)
{
    struct collector c = { .walk = walk, .kinds = kinds, .duplicates = duplicates };
    tn_status status = collect(&c, module, 0);
    tn__seen_free(&c.modules);
    tn__seen_free(&c.tensors);
    tn__text_free(&c.path);
    if (status != TN_OK)
        tn__walk_free(walk);
    return status;
}

void tn__walk_free(tn__walk *walk)
{
    for (int64_t i = 0; i < walk->count; i++) {
        tn_free(walk->at[i].path);
        tn_module_drop(walk->at[i].module);
        tn_tensor_drop(walk->at[i].tensor);
    }
    tn_free(walk->at);
    *walk = (tn__walk){ NULL, 0, 0 };
}

/* ---- public walks ---------------------------------------------------------------------------- */

tn_status tn_module_each_tensor(tn_module *module, uint32_t kinds, bool duplicates,
                                tn_status (*visit)(void *user, const char *path, tn_tensor *tensor),
                                void *user)
{
    if (module == NULL)
        return tn__null_input("an argument of tn_module_each_tensor");
    tn__walk walk = { NULL, 0, 0 };
    tn_status status = tn__walk_collect(module, kinds & (TN_SLOT_PARAMETER | TN_SLOT_BUFFER),
                                        duplicates, &walk);
    for (int64_t i = 0; i < walk.count && status == TN_OK; i++)
        status = visit(user, walk.at[i].path, walk.at[i].tensor);
    tn__walk_free(&walk);
    return status;
}

tn_status tn_module_each(tn_module *module, bool duplicates,
                         tn_status (*visit)(void *user, const char *path, tn_module *module),
                         void *user)
{
    if (module == NULL)
        return tn__null_input("an argument of tn_module_each");
    tn__walk walk = { NULL, 0, 0 };
    tn_status status = tn__walk_collect(module, TN_SLOT_CHILD, duplicates, &walk);
    for (int64_t i = 0; i < walk.count && status == TN_OK; i++)
        status = visit(user, walk.at[i].path, walk.at[i].module);
    tn__walk_free(&walk);
    return status;
}

static tn_status add_count(void *user, const char *path, tn_tensor *tensor)
{
    (void)path;
    *(int64_t *)user += tn_tensor_numel(tensor);
    return TN_OK;
}

int64_t tn_module_parameter_count(tn_module *module)
{
    int64_t count = 0;
    tn_status status = tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, add_count, &count);
    return status == TN_OK ? count : -1;
}

/* ---- changes that need no visitor: nothing is allocated -------------------------------------- */

/* Applies `change` to every module below; a module that is shared is changed more than once, which does no harm here. */
static tn_status apply(tn_module *module, tn_status (*change)(tn_module *module, bool value),
                       bool value, int depth)
{
    if (depth > TN__MODULE_DEPTH)
        return tn_fail(TN_ERR_RUNTIME, "modules nest more than %d deep", TN__MODULE_DEPTH);
    tn_status status = change(module, value);
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++)
        if (module->children.at[i].child != NULL)
            status = apply(module->children.at[i].child, change, value, depth + 1);
    return status;
}

static tn_status change_mode(tn_module *module, bool training)
{
    module->training = training;
    return TN_OK;
}

static tn_status clear_gradients(tn_module *module, bool value)
{
    (void)value;
    for (int64_t i = 0; i < module->parameters.count; i++) {
        tn_tensor *tensor = module->parameters.at[i].tensor;
        if (tn__is_none(tensor))
            continue;
        tn_status status = tn_tensor_set_grad(tensor, TN_NONE);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status change_requires_grad(tn_module *module, bool value)
{
    for (int64_t i = 0; i < module->parameters.count; i++) {
        tn_tensor *tensor = module->parameters.at[i].tensor;
        if (tn__is_none(tensor))
            continue;
        tn_status status = tn_tensor_set_requires_grad(tensor, value);
        if (status != TN_OK) {
            tn_error_prefix("parameter '%s' of %s: ", module->parameters.at[i].name, module->type);
            return status;
        }
    }
    return TN_OK;
}

tn_status tn_module_train(tn_module *module, bool training)
{
    if (module == NULL)
        return tn__null_input("an argument of tn_module_train");
    return apply(module, change_mode, training, 0);
}

tn_status tn_module_zero_grad(tn_module *module)
{
    if (module == NULL)
        return tn__null_input("an argument of tn_module_zero_grad");
    return apply(module, clear_gradients, false, 0);
}

tn_status tn_module_set_requires_grad(tn_module *module, bool requires_grad)
{
    if (module == NULL)
        return tn__null_input("an argument of tn_module_set_requires_grad");
    return apply(module, change_requires_grad, requires_grad, 0);
}

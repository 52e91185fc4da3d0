/* SPDX-License-Identifier: MIT
 *
 * The slots of pruned parameters: a parameter NAME_orig, a buffer NAME_mask, and a computed slot
 * NAME that is their product. Every change can be undone without memory. */
#include "core/base/vector.h"
#include "lib/parametrize/parametrize.h"
#include "lib/prune/prune.h"

/* ---- the computed slot ----------------------------------------------------------------------- */

static tn_tensor *masked(void *user, tn_module *module, const char *name)
{
    const tn__pruned *pruned = user;
    tn_tensor *values = tn_module_get(module, pruned->original);
    tn_tensor *mask = values != NULL ? tn_module_get(module, pruned->mask) : NULL;

    if (mask == NULL)
        return NULL;
    if (tn__is_none(values) || tn__is_none(mask)) {
        tn_fail(TN_ERR_ATTR, "pruned parameter '%s' of %s: '%s' is empty; expected a tensor", name,
                module->type, tn__is_none(values) ? pruned->original : pruned->mask);
        return NULL;
    }
    return tn__prune_product(values, mask);
}

static void free_pruned(void *user)
{
    tn__pruned *pruned = user;

    if (pruned == NULL)
        return;
    for (int64_t i = 0; i < pruned->count; i++)
        tn_free(pruned->methods[i]);
    tn_free(pruned->methods);
    tn_free(pruned->original);
    tn_free(pruned->mask);
    tn_free(pruned);
}

static tn_status add_text(tn__pruned *pruned, const char *text)
{
    if (!tn__vector_room(&pruned->methods, &pruned->capacity, pruned->count + 1,
                         sizeof *pruned->methods))
        return TN_ERR_MEMORY;
    pruned->methods[pruned->count] = tn_strdup(text);
    return pruned->methods[pruned->count] != NULL ? (pruned->count++, TN_OK) : TN_ERR_MEMORY;
}

static tn_status copy_pruned(void *user, tn_module *copy, void **copied)
{
    const tn__pruned *from = user;
    tn__pruned *to = tn_calloc(1, sizeof *to);
    tn_status status = TN_OK;

    (void)copy;
    if (to == NULL)
        return TN_ERR_MEMORY;
    to->original = tn_strdup(from->original);
    to->mask = tn_strdup(from->mask);
    if (to->original == NULL || to->mask == NULL)
        status = TN_ERR_MEMORY;
    for (int64_t i = 0; i < from->count && status == TN_OK; i++)
        status = add_text(to, from->methods[i]);
    if (status == TN_OK)
        *copied = to;
    else
        free_pruned(to);
    return status;
}

static const tn_computed how = { .get = masked, .release = free_pruned, .copy = copy_pruned };

/* ---- finding --------------------------------------------------------------------------------- */

bool tn__prune_has(const tn_module *module)
{
    for (int64_t i = 0; i < module->computed.count; i++)
        if (tn__computed_user(&module->computed.at[i], &how) != NULL)
            return true;
    return false;
}

bool tn__prune_is(const tn_module *module, const char *name)
{
    const tn__slot *slot = tn__slots_find(&module->computed, name);

    return slot != NULL && tn__computed_user(slot, &how) != NULL;
}

bool tn__prune_owns(const tn_module *module, const char *name)
{
    for (int64_t i = 0; i < module->computed.count; i++) {
        const tn__pruned *pruned = tn__computed_user(&module->computed.at[i], &how);
        if (pruned != NULL &&
            (strcmp(pruned->original, name) == 0 || strcmp(pruned->mask, name) == 0))
            return true;
    }
    return false;
}

/* Returns the module that has the parameter, and sets *name to the name within it. */
static tn_module *owner_of(tn_module *module, const char *path, const char **name)
{
    const char *dot = strrchr(path, '.');
    tn_module *owner = module;
    char *parent;

    *name = dot != NULL ? dot + 1 : path;
    if (dot == NULL)
        return module;
    parent = tn_strdup(path);
    if (parent == NULL)
        return NULL;
    parent[dot - path] = '\0';
    owner = tn_module_find(module, parent);
    tn_free(parent);
    return owner;
}

static const char *kind_word(const tn__prune_place *place, uint32_t kind)
{
    if (kind == TN_SLOT_PARAMETER)
        return "reserved parameter";
    return tn__parametrize_list(place->module, place->name) != NULL ? "parametrized tensor"
                                                                    : tn__slot_word(kind);
}

/* Fails for a name that is no parameter; `path` is the one that `module` was given. */
static tn_status not_a_parameter(const tn_module *module, const char *path,
                                 const tn__prune_place *place, uint32_t kind)
{
    if (kind != 0)
        return tn_fail(TN_ERR_TYPE,
                       "%q of %s: wrong kind, got a %s; expected a parameter with a "
                       "value",
                       path, module->type, kind_word(place, kind));
    return tn_module_get(place->module, place->name) == NULL ? tn_error_last_code()
                                                             : TN_ERR_RUNTIME;
}

tn_status tn__prune_find(tn_module *module, const char *path, tn__prune_place *place)
{
    tn__slot *slot;
    uint32_t kind;

    *place = (tn__prune_place){ 0 };
    place->module = owner_of(module, path, &place->name);
    if (place->module == NULL)
        return tn_error_last_code();
    if (tn__prune_owns(place->module, place->name))
        return tn_fail(TN_ERR_VALUE,
                       "%q of %s: it belongs to a pruned parameter; expected the name of that "
                       "parameter",
                       path, module->type);
    if (tn__parametrize_is_list(place->module))
        return tn_fail(TN_ERR_VALUE,
                       "%q of %s: it is an original of a parametrized tensor; remove the "
                       "parametrization first with tn_parametrize_remove, or prune before",
                       path, module->type);
    slot = tn__slots_find(&place->module->computed, place->name);
    place->pruned = slot != NULL ? tn__computed_user(slot, &how) : NULL;
    kind = place->pruned != NULL ? TN_SLOT_PARAMETER
                                 : tn_module_slot_kind(place->module, place->name);
    if (kind != TN_SLOT_PARAMETER)
        return not_a_parameter(module, path, place, kind);
    slot = tn__slots_find(&place->module->parameters, place->name);
    if (slot != NULL && (slot->flags & TN__SLOT_UNSHAPED) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "%q of %s: no shape yet; call the module once, or load a state", path,
                       module->type);
    place->values = tn_module_get(place->module,
                                  place->pruned != NULL ? place->pruned->original : place->name);
    if (place->values != NULL && place->pruned != NULL)
        place->mask = tn_module_get(place->module, place->pruned->mask);
    if (place->values == NULL || (place->pruned != NULL && place->mask == NULL))
        return tn_error_last_code();
    if (tn__is_none(place->values) || (place->mask != NULL && tn__is_none(place->mask)))
        return place->pruned == NULL
                   ? not_a_parameter(module, path, place, TN_SLOT_PARAMETER)
                   : tn_fail(TN_ERR_TYPE, "%q of %s: its %s is empty; expected a tensor", path,
                             module->type,
                             tn__is_none(place->values) ? place->pruned->original
                                                        : place->pruned->mask);
    return TN_OK;
}

/* ---- changing -------------------------------------------------------------------------------- */

static tn_status add_methods(tn__pruned *pruned, const tn__prune_steps *steps)
{
    tn_status status = steps == NULL ? add_text(pruned, "CustomFromMask") : TN_OK;

    for (int64_t i = 0; steps != NULL && i < steps->count && status == TN_OK; i++)
        status = add_text(pruned, steps->at[i].spec->text);
    return status;
}

static void forget_methods(tn__pruned *pruned, int64_t count)
{
    while (pruned->count > count)
        tn_free(pruned->methods[--pruned->count]);
}

static tn__pruned *new_pruned(const char *name, const tn__prune_steps *steps)
{
    tn__pruned *pruned = tn_calloc(1, sizeof *pruned);
    tn__text original = { 0 }, mask = { 0 };

    if (pruned == NULL)
        return NULL;
    tn__text_add(&original, "%s_orig", name);
    tn__text_add(&mask, "%s_mask", name);
    pruned->original = tn__text_take(&original);
    pruned->mask = tn__text_take(&mask);
    if (pruned->original != NULL && pruned->mask != NULL && add_methods(pruned, steps) == TN_OK)
        return pruned;
    free_pruned(pruned);
    return NULL;
}

/* Fails if a slot has the name. */
static tn_status name_free(tn_module *module, const char *name)
{
    uint32_t kind = tn_module_slot_kind(module, name);

    if (kind == 0)
        return TN_OK;
    return tn_fail(TN_ERR_KEY,
                   "attribute '%s' already exists: it is a %s of %s; expected a free name for a "
                   "pruned parameter",
                   name, tn__slot_word(kind), module->type);
}

/* Moves the last parameter to another place. */
static void move_last(tn__slots *slots, int64_t to)
{
    tn__slot last = slots->at[slots->count - 1];

    memmove(&slots->at[to + 1], &slots->at[to],
            (size_t)(slots->count - 1 - to) * sizeof *slots->at);
    slots->at[to] = last;
    tn__slots_reindex(slots);
}

static void remove_name(tn__slots *slots, const char *name)
{
    tn__slot *slot = tn__slots_find(slots, name);

    if (slot != NULL)
        tn__slots_remove(slots, slot);
}

/* Turns a parameter into the three slots. */
static tn_status prune_first(const tn__prune_place *place, tn_tensor *mask,
                             const tn__prune_steps *steps, tn__prune_change *change)
{
    tn_module *module = place->module;
    tn__slots *parameters = &module->parameters;
    tn__slot *slot = tn__slots_find(parameters, place->name);
    tn__pruned *pruned = new_pruned(place->name, steps);
    uint32_t flags = slot->flags & TN_SLOT_FLAG_FIXED_DTYPE;
    tn_status status = pruned != NULL ? name_free(module, pruned->original) : TN_ERR_MEMORY;

    change->index = slot - parameters->at;
    if (status == TN_OK)
        status = name_free(module, pruned->mask);
    if (status != TN_OK) {
        free_pruned(pruned);
        return status;
    }
    status = tn_module_add_parameter(module, pruned->original, place->values);
    if (status == TN_OK)
        status = tn_module_add_buffer(module, pruned->mask, mask, flags);
    if (status == TN_OK && tn_module_get(module, pruned->original) != place->values)
        status = tn_fail(TN_ERR_RUNTIME,
                         "a hook on the registration of parameters replaced it; expected the same "
                         "tensor");
    if (status == TN_OK)
        status = tn__computed_add(module, place->name, &how, pruned);
    if (status != TN_OK) {
        remove_name(parameters, pruned->original);
        remove_name(&module->buffers, pruned->mask);
        free_pruned(pruned);
        return status;
    }
    tn__slots_find(parameters, pruned->original)->flags |= flags;
    remove_name(parameters, place->name);
    return TN_OK;
}

static tn_status prune_again(const tn__prune_place *place, tn_tensor *mask,
                             const tn__prune_steps *steps)
{
    tn__pruned *pruned = place->pruned;
    const tn__slot *slot = tn__slots_find(&place->module->buffers, pruned->mask);
    int64_t methods = pruned->count;
    tn_status status = add_methods(pruned, steps);

    if (status == TN_OK)
        status = tn_module_add_buffer(place->module, pruned->mask, mask,
                                      slot->flags & TN__SLOT_PUBLIC);
    if (status != TN_OK)
        forget_methods(pruned, methods);
    return status;
}

tn_status tn__prune_store(const tn__prune_place *place, tn_tensor *mask,
                          const tn__prune_steps *steps, tn__prune_change *change)
{
    tn_status status;

    *change = (tn__prune_change){ .place = *place };
    if (place->pruned == NULL)
        return prune_first(place, mask, steps, change);
    change->methods = place->pruned->count;
    tn_tensor_keep(place->mask); /* the slot drops its reference */
    status = prune_again(place, mask, steps);
    if (status != TN_OK)
        tn_tensor_drop(place->mask);
    return status;
}

void tn__prune_done(tn__prune_change *change)
{
    if (change->place.pruned != NULL)
        tn_tensor_drop(change->place.mask);
}

void tn__prune_undo(tn__prune_change *change)
{
    const tn__prune_place *place = &change->place;
    tn_module *module = place->module;
    tn__pruned *pruned = place->pruned;
    tn__slot *slot;

    if (pruned != NULL) {
        slot = tn__slots_find(&module->buffers, pruned->mask);
        tn_tensor_drop(slot->tensor);
        slot->tensor = place->mask; /* the reference of the change */
        forget_methods(pruned, change->methods);
        return;
    }
    slot = tn__slots_find(&module->computed, place->name);
    pruned = tn__computed_user(slot, &how);
    /* The slot NAME_orig becomes the parameter again: it gets the name of the computed slot, whose
     * memory is there already. */
    char *name = slot->name;
    tn__slot *original = tn__slots_find(&module->parameters, pruned->original);
    slot->name = original->name;
    original->name = name;
    move_last(&module->parameters, change->index);
    tn__slots_reindex(&module->computed);
    remove_name(&module->buffers, pruned->mask);
    tn__slots_remove(&module->computed, slot);
}

/* ---- removing -------------------------------------------------------------------------------- */

tn_status tn__prune_make_permanent(const tn__prune_place *place)
{
    tn_module *module = place->module;
    tn_tensor *product = tn__prune_product(place->values, place->mask);
    tn_tensor *values = place->values;
    tn__slot *slot, *original = tn__slots_find(&module->parameters, place->pruned->original);
    tn_status status = product != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK)
        status = tn__hooks_registering_tensor(module, TN_SLOT_PARAMETER, place->name, &values);
    if (status == TN_OK && values != place->values)
        status = tn_fail(TN_ERR_RUNTIME,
                         "tn_prune_remove: '%s' of %s: a hook on the registration of parameters "
                         "replaced it; expected the same tensor",
                         place->name, module->type);
    if (status == TN_OK)
        status = tn_tensor_swap(place->values, product);
    if (status != TN_OK)
        return status;
    slot = tn__slots_find(&module->computed, place->name);
    char *name = slot->name;
    slot->name = original->name;
    original->name = name;
    /* to the end, as in PyTorch */
    tn__slot moved = *original;
    int64_t after = module->parameters.count - 1 - (original - module->parameters.at);
    memmove(original, original + 1, (size_t)after * sizeof *original);
    module->parameters.at[module->parameters.count - 1] = moved;
    tn__slots_reindex(&module->parameters);
    tn__slots_reindex(&module->computed);
    remove_name(&module->buffers, place->pruned->mask);
    tn__slots_remove(&module->computed, slot);
    return TN_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * The slots of a module: ordered maps of parameters, buffers, children and computed slots. A name
 * can be in one of them only. It keeps its place when its value is replaced. */
#include "core/module/depth.h"

/* ---- names ----------------------------------------------------------------------------------- */

const char *tn__slot_word(uint32_t kind)
{
    switch (kind) {
    case TN_SLOT_PARAMETER: return "parameter";
    case TN_SLOT_BUFFER: return "buffer";
    case TN_SLOT_COMPUTED: return "computed tensor";
    default: return "module";
    }
}

static tn_status name_form(uint32_t kind, const char *name)
{
    if (strchr(name, '.') != NULL)
        return tn_fail(TN_ERR_KEY, "%s name can't contain \".\", got: %q", tn__slot_word(kind),
                       name);
    if (name[0] == '\0')
        /* PyTorch's wording */
        return tn_fail(TN_ERR_KEY, "%s name can't be empty string \"\"", tn__slot_word(kind));
    return TN_OK;
}

uint32_t tn_module_slot_kind(const tn_module *module, const char *name)
{
    if (!tn__not_null(module, "tn_module_slot_kind: module") ||
        !tn__given(name != NULL, "tn_module_slot_kind: name"))
        return 0;
    return tn__slots_find(&module->parameters, name) != NULL ? TN_SLOT_PARAMETER
           : tn__slots_find(&module->buffers, name) != NULL  ? TN_SLOT_BUFFER
           : tn__slots_find(&module->children, name) != NULL ? TN_SLOT_CHILD
           : tn__slots_find(&module->computed, name) != NULL ? TN_SLOT_COMPUTED
                                                             : 0;
}

static tn_status name_free(tn_module *module, uint32_t kind, const char *name)
{
    uint32_t taken = tn_module_slot_kind(module, name);
    if (taken == 0 || taken == kind)
        return TN_OK;
    return tn_fail(TN_ERR_KEY,
                   "attribute '%s' already exists: it is a %s of %s and cannot be a %s too", name,
                   tn__slot_word(taken), module->type, tn__slot_word(kind));
}

/* Fails, in PyTorch's wording, if a value must not go to a slot of a script. */
static tn_status frozen_set(const tn_module *module, uint32_t kind, const char *name)
{
    if (module->frozen == TN__FROZEN_CONSTANTS)
        return tn_fail(TN_ERR_ATTR, "Cannot mutate TorchScript constant value: '%s'", name);
    if (module->frozen == 0 || tn_module_slot_kind(module, name) == kind)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "Can't add a new %s after ScriptModule construction. Tried to add '%s'",
                   tn__slot_word(kind), name);
}

static tn_status frozen_set_child(const tn_module *module, const char *name, const tn_module *child)
{
    tn_status status = frozen_set(module, TN_SLOT_CHILD, name);

    if (status != TN_OK || module->frozen == 0 || (child != NULL && child->frozen != 0))
        return status;
    return tn_fail(TN_ERR_RUNTIME,
                   "Cannot re-assign modules in a ScriptModule with non-scripted module, tried to "
                   "replace existing module '%s'",
                   name);
}

static tn_status frozen_remove(const tn_module *module, const char *name)
{
    if (module->frozen == 0)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "cannot delete methods or parameters of a script module, tried to remove '%s'",
                   name);
}

tn_status tn__slot_name_check(tn_module *module, uint32_t kind, const char *name)
{
    if (name == NULL)
        return tn_fail(TN_ERR_TYPE, "%s name: it is NULL; expected a string", tn__slot_word(kind));
    /* The order of the checks is PyTorch's (rows REG-007 and REG-008 of tests/spec/rows.txt). */
    tn_status status = kind == TN_SLOT_CHILD ? name_free(module, kind, name)
                                             : name_form(kind, name);
    if (status == TN_OK)
        status = kind == TN_SLOT_CHILD ? name_form(kind, name) : name_free(module, kind, name);
    if (status == TN_OK && module->frozen != 0)
        status = frozen_set(module, kind, name);
    return status;
}

/* ---- tensors in slots ------------------------------------------------------------------------ */

static tn_status check_parameter(const char *name, const tn_tensor *tensor)
{
    if (tn__is_none(tensor))
        return TN_OK;
    if (!tn_tensor_is_parameter(tensor))
        return tn_fail(TN_ERR_TYPE,
                       "cannot assign %s tensor as parameter '%s': expected a parameter or "
                       "TN_NONE; tn_parameter makes one",
                       tn_tensor_is_leaf(tensor) ? "a plain" : "an operator's", name);
    if (tn_tensor_is_leaf(tensor))
        return TN_OK;
    return tn_fail(
        TN_ERR_VALUE,
        "cannot assign non-leaf Tensor to parameter '%s': operator %s made it; detach it first",
        name, tn_tensor_grad_op(tensor));
}

/* Stores a tensor (or TN_NONE) in a slot of the module. The slot gets a reference of its own. */
static void slot_put(tn_module *module, tn__slot *slot, tn_tensor *tensor)
{
    tn_tensor *before = slot->tensor;
    slot->flags &= ~(uint32_t)TN__SLOT_UNSHAPED;
    slot->tensor = tn__is_none(tensor) ? tensor : tn_tensor_keep(tensor);
    tn__module_changed(module);
    if (before != NULL && !tn__is_none(before))
        tn_tensor_drop(before);
}

static tn_status put_parameter(tn_module *module, const char *name, tn_tensor *tensor)
{
    tn_status status = check_parameter(name, tensor);
    if (status == TN_OK)
        status = tn__hooks_registering_tensor(module, TN_SLOT_PARAMETER, name, &tensor);
    if (status == TN_OK)
        status = check_parameter(name, tensor);
    if (status != TN_OK)
        return status;
    tn__slot *slot = tn__slots_make(&module->parameters, name);
    if (slot == NULL)
        return tn_error_last_code();
    slot_put(module, slot, tensor);
    return TN_OK;
}

tn_status tn_module_add_parameter(tn_module *module, const char *name, tn_tensor *tensor)
{
    if (module == NULL || tensor == NULL)
        return tn__error_null_of("tn_module_add_parameter", "module, tensor", module, tensor);
    tn_status status = tn__slot_name_check(module, TN_SLOT_PARAMETER, name);
    return status == TN_OK ? put_parameter(module, name, tensor) : status;
}

tn_status tn_module_add_buffer(tn_module *module, const char *name, tn_tensor *tensor,
                               uint32_t flags)
{
    if (module == NULL || tensor == NULL)
        return tn__error_null_of("tn_module_add_buffer", "module, tensor", module, tensor);
    tn_status status = tn__slot_name_check(module, TN_SLOT_BUFFER, name);
    if (status != TN_OK)
        return status;
    if ((flags & ~(uint32_t)TN__SLOT_PUBLIC) != 0)
        return tn_fail(
            TN_ERR_VALUE,
            "buffer '%s': flags: unknown, got 0x%x; expected TN_SLOT_FLAG_NOT_PERSISTENT (1) "
            "or TN_SLOT_FLAG_FIXED_DTYPE (2)",
            name, flags);
    status = tn__hooks_registering_tensor(module, TN_SLOT_BUFFER, name, &tensor);
    if (status != TN_OK)
        return status;
    tn__slot *slot = tn__slots_make(&module->buffers, name);
    if (slot == NULL)
        return tn_error_last_code();
    slot->flags = flags;
    slot_put(module, slot, tensor);
    return TN_OK;
}

static tn_status no_attribute(tn_module *module, const char *name)
{
    tn__text text = { 0 };
    const tn__slots *kinds[] = { &module->parameters, &module->buffers, &module->computed };
    const char *words[] = { "parameters", "buffers", "computed" };
    for (int i = 0; i < 3; i++) {
        if (kinds[i]->count > 0) {
            tn__text_add(&text, "; %s: ", words[i]);
            tn__slots_list(kinds[i], &text);
        }
    }
    const tn__slot *child = tn__slots_find(&module->children, name);
    /* in PyTorch's form */
    tn_status status = tn_fail(TN_ERR_ATTR, "'%s' object has no parameter or buffer '%s'%s%s",
                               module->type, name,
                               child != NULL ? ": this is the name of a child, a module" : "",
                               text.at != NULL ? text.at : "");
    tn__text_free(&text);
    return status;
}

static tn__slot *tensor_slot(tn_module *module, const char *name)
{
    tn__slot *slot = tn__slots_find(&module->parameters, name);
    return slot != NULL ? slot : tn__slots_find(&module->buffers, name);
}

tn_tensor *tn_module_get(tn_module *module, const char *name)
{
    if (tn__unlikely(module == NULL || name == NULL)) {
        tn__error_null_of("tn_module_get", "module, name", module, name);
        return NULL;
    }
    tn__slot *slot = tensor_slot(module, name);
    if (tn__likely(slot != NULL)) {
        if (tn__likely((slot->flags & TN__SLOT_UNSHAPED) == 0))
            return slot->tensor;
        tn_fail(TN_ERR_VALUE, "'%s' of %s: no shape yet; call the module once, or load a state",
                name, module->type);
        return NULL;
    }
    slot = tn__slots_find(&module->computed, name);
    if (slot != NULL)
        return tn__computed_get(module, slot);
    no_attribute(module, name);
    return NULL;
}

tn_status tn_module_set_fixed_dtype(tn_module *module, const char *name, bool fixed)
{
    if (module == NULL || name == NULL)
        return tn__error_null_of("tn_module_set_fixed_dtype", "module, name", module, name);
    tn__slot *slot = tensor_slot(module, name);
    if (slot == NULL)
        return no_attribute(module, name);
    slot->flags &= ~(uint32_t)TN_SLOT_FLAG_FIXED_DTYPE;
    slot->flags |= fixed ? TN_SLOT_FLAG_FIXED_DTYPE : 0;
    return TN_OK;
}

bool tn_module_has_fixed_dtype(const tn_module *module, const char *name)
{
    if (module == NULL || name == NULL) {
        tn__error_null_of("tn_module_has_fixed_dtype", "module, name", module, name);
        return false;
    }
    const tn__slot *slot = tn__slots_find(&module->parameters, name);
    if (slot == NULL)
        slot = tn__slots_find(&module->buffers, name);
    return slot != NULL && (slot->flags & TN_SLOT_FLAG_FIXED_DTYPE) != 0;
}

/* ---- children -------------------------------------------------------------------------------- */

/* Returns 1 if `what` is `from` or is below `from`, 0 if not, -1 and sets the error on failure.
 * `depth` is the depth that `from` would have after it is attached; `seen` collects the modules
 * that were already searched. */
static int reaches(const tn_module *from, const tn_module *what, tn__map *seen, int depth)
{
    tn__slot_steps++;
    if (from == what)
        return 1;
    if (depth > TN__MODULE_DEPTH) {
        tn_fail(TN_ERR_VALUE, "modules: nested too deep; expected at most %d levels",
                TN__MODULE_DEPTH);
        return -1;
    }
    if (from->children.count == 0)
        return 0;
    if (tn__stack_is_low()) {
        tn__stack_fail("modules", depth);
        return -1;
    }
    int is_new = tn__map_add(seen, from);
    if (is_new <= 0)
        return is_new;
    for (int64_t i = 0; i < from->children.count; i++) {
        const tn_module *child = from->children.at[i].child;
        int found = child != NULL ? reaches(child, what, seen, depth + 1) : 0;
        if (found != 0)
            return found;
    }
    return 0;
}

static int32_t depth_of(const tn_module *module)
{
    return atomic_load(&module->holders) > 0 ? atomic_load(&module->depth) : 0;
}

/* Returns 1 if `child` is `module` or contains it, 0 if not, -1 and sets the error on failure. A
 * module that no slot holds is contained in no other, so its tree is not walked. This makes it
 * cheap to build a tree from its leaves up. */
static int contains(const tn_module *child, const tn_module *module)
{
    tn__map seen = { 0 };

    if (child != module && atomic_load(&module->holders) == 0 && child->height < TN__MODULE_DEPTH)
        return 0;
    int found = reaches(child, module, &seen, depth_of(module) + 1);
    tn__map_free(&seen);
    return found;
}

/* Sets the depth of `child` and, with `all`, of the modules below it. `all` is false if the new
 * parent has no parent itself: the modules below `child` then get their depths later, when the new
 * parent is added to a parent. This makes it cheap to build a tree from its leaves up. */
static void set_depth(tn_module *child, int32_t depth, bool all)
{
    tn__slot_steps++;
    /* Atomic, because two threads may add one shared child to their modules at the same time. */
    int32_t before = atomic_load(&child->depth);
    if (before == depth || (before > depth && atomic_load(&child->holders) > 1))
        return;
    bool below = all || before > depth;
    atomic_store(&child->depth, depth);
    for (int64_t i = 0; below && i < child->children.count; i++)
        if (child->children.at[i].child != NULL)
            set_depth(child->children.at[i].child, depth + 1, all);
}

/* Takes over the reference to the child, even on failure. */
static tn_status put_child(tn_module *module, const char *name, tn_module *child)
{
    int cycle = contains(child, module);
    tn_status status = TN_OK;

    if (cycle < 0)
        status = tn_error_last_code();
    if (cycle > 0)
        status = tn_fail(TN_ERR_VALUE,
                         "child '%s': this %s is the %s itself or contains it; modules form a tree",
                         name, child->type, module->type);
    tn__slot *slot = status == TN_OK ? tn__slots_make(&module->children, name) : NULL;
    if (slot == NULL) {
        tn_module_drop(child);
        return status != TN_OK ? status : tn_error_last_code();
    }
    tn__module_changed(module);
    tn__slot_hold(module, slot, child);
    set_depth(child, depth_of(module) + 1, atomic_load(&module->holders) > 0);
    return TN_OK;
}

tn_status tn_module_add_child(tn_module *module, const char *name, tn_module *child)
{
    if (module == NULL || child == NULL)
        return tn__error_null_of("tn_module_add_child", "module, child", module, child);
    tn_status status = tn__slot_name_check(module, TN_SLOT_CHILD, name);
    if (status == TN_OK)
        status = frozen_set_child(module, name, child);
    if (status == TN_OK)
        status = tn__hooks_registering_child(module, name, &child);
    return status == TN_OK ? put_child(module, name, child) : status;
}

tn_status tn_module_reserve_child(tn_module *module, const char *name)
{
    if (module == NULL)
        return tn_error_null("tn_module_reserve_child: module");
    tn_status status = tn__slot_name_check(module, TN_SLOT_CHILD, name);
    if (status == TN_OK)
        status = frozen_set_child(module, name, NULL);
    if (status != TN_OK)
        return status;
    tn__slot *slot = tn__slots_make(&module->children, name);
    if (slot == NULL)
        return tn_error_last_code();
    tn__module_changed(module);
    tn__slot_hold(module, slot, NULL);
    return TN_OK;
}

tn_module *tn_module_child(tn_module *module, const char *name)
{
    if (module == NULL || name == NULL) {
        tn__error_null_of("tn_module_child", "module, name", module, name);
        return NULL;
    }
    tn__slot *slot = tn__slots_find(&module->children, name);
    if (slot == NULL) {
        tn__text text = { 0 };
        tn__slots_list(&module->children, &text);
        /* in PyTorch's form */
        tn_fail(TN_ERR_ATTR, "'%s' object has no child '%s'%s%s", module->type, name,
                text.at != NULL ? "; children: " : "", text.at != NULL ? text.at : "");
        tn__text_free(&text);
        return NULL;
    }
    return slot->child;
}

int64_t tn_module_child_count(tn_module *module)
{
    return tn__not_null(module, "tn_module_child_count: module") ? module->children.count : 0;
}

static tn__slot *child_slot(tn_module *module, int64_t index)
{
    int64_t count = module->children.count;
    int64_t place = index < 0 ? index + count : index;
    tn__slot_steps++; /* counts the use by layers that compare the names of children one by one */
    if (place < 0 || place >= count) {
        tn_fail(TN_ERR_INDEX, "index %lld is out of range: this %s has %lld %s", (long long)index,
                module->type, (long long)count, count == 1 ? "child" : "children");
        return NULL;
    }
    return &module->children.at[place];
}

tn_module *tn_module_child_at(tn_module *module, int64_t index)
{
    if (module == NULL) {
        tn_error_null("tn_module_child_at: module");
        return NULL;
    }
    tn__slot *slot = child_slot(module, index);
    return slot != NULL ? slot->child : NULL;
}

const char *tn_module_child_name(tn_module *module, int64_t index)
{
    if (module == NULL) {
        tn_error_null("tn_module_child_name: module");
        return NULL;
    }
    tn__slot *slot = child_slot(module, index);
    return slot != NULL ? slot->name : NULL;
}

tn_status tn_module_remove(tn_module *module, const char *name)
{
    if (module == NULL || name == NULL)
        return tn__error_null_of("tn_module_remove", "module, name", module, name);
    tn_status status = frozen_remove(module, name);
    if (status != TN_OK)
        return status;
    tn__slots *kinds[] = { &module->parameters, &module->buffers, &module->children,
                           &module->computed };
    for (int64_t i = 0; i < tn__countof(kinds); i++) {
        tn__slot *slot = tn__slots_find(kinds[i], name);
        if (slot != NULL && tn__module_up.is_parametrized(module, name))
            return tn_fail(TN_ERR_ATTR,
                           "'%s' of %s: it is parametrized; tn_parametrize_remove makes it a plain "
                           "tensor first",
                           name, module->type);
        if (slot != NULL) {
            tn__module_changed(module);
            tn__slots_remove(kinds[i], slot);
            return TN_OK;
        }
    }
    /* PyTorch's wording */
    return tn_fail(TN_ERR_ATTR, "'%s' object has no attribute '%s' to remove", module->type, name);
}

/* ---- assignment ------------------------------------------------------------------------------ */

/* Removes the name from the slots of all kinds but `kind` (rows REG-011 and REG-012 of
 * tests/spec/rows.txt). */
static void evict(tn_module *module, uint32_t kind, const char *name)
{
    tn__slots *const maps[] = { &module->parameters, &module->buffers, &module->children,
                                &module->computed };
    const uint32_t kinds[] = { TN_SLOT_PARAMETER, TN_SLOT_BUFFER, TN_SLOT_CHILD, TN_SLOT_COMPUTED };
    for (int64_t i = 0; i < tn__countof(maps); i++) {
        tn__slot *slot = kinds[i] != kind ? tn__slots_find(maps[i], name) : NULL;
        if (slot != NULL)
            tn__slots_remove(maps[i], slot);
    }
}

/* Sets the error for a value that a slot of this kind does not take, in PyTorch's wording (rows
 * REG-004 and REG-015 of tests/spec/rows.txt). */
static tn_status not_for(uint32_t kind, const char *name, const tn_value *value)
{
    bool tensor = value->kind == TN_VALUE_TENSOR;
    const char *type = tensor                           ? "tensor"
                       : value->kind == TN_VALUE_MODULE ? tn_module_type(value->as.module)
                                                        : tn__value_kind_name(value->kind);
    return tn_fail(TN_ERR_TYPE, "cannot assign '%s' as %s '%s' (%s or None expected)", type,
                   kind == TN_SLOT_CHILD ? "child module" : tn__slot_word(kind), name,
                   kind == TN_SLOT_CHILD ? "a module" : "a tensor");
}

static tn_status assign_tensor(tn_module *module, const char *name, tn_tensor *tensor)
{
    uint32_t kind = tn_module_slot_kind(module, name);
    if (module->frozen != 0 && kind != 0) {
        tn_status status = tn__is_none(tensor)
                               ? frozen_remove(module, name)
                               : frozen_set(module,
                                            tn_tensor_is_parameter(tensor) ? TN_SLOT_PARAMETER
                                                                           : kind,
                                            name);
        if (status != TN_OK)
            return status;
    }
    if (kind == TN_SLOT_COMPUTED)
        return tn__computed_set(module, tn__slots_find(&module->computed, name), tensor);
    if (tn_tensor_is_parameter(tensor) || kind == TN_SLOT_PARAMETER) {
        tn_status status = name_form(TN_SLOT_PARAMETER, name);
        if (status == TN_OK)
            status = frozen_set(module, TN_SLOT_PARAMETER, name);
        if (status == TN_OK)
            status = put_parameter(module, name, tensor);
        if (status == TN_OK)
            evict(module, TN_SLOT_PARAMETER, name);
        return status;
    }
    if (kind == TN_SLOT_CHILD) {
        tn_value value = tn_value_tensor(tensor);
        return tn__is_none(tensor) ? tn_module_reserve_child(module, name)
                                   : not_for(kind, name, &value);
    }
    if (tn__slots_find(&module->buffers, name) == NULL)
        return no_attribute(module, name);
    tn_status status = tn__hooks_registering_tensor(module, TN_SLOT_BUFFER, name, &tensor);
    if (status != TN_OK)
        return status;
    /* A hook may have changed the slots: look up the slot after the hook. */
    tn__slot *slot = tn__slots_make(&module->buffers, name);
    if (slot == NULL)
        return tn_error_last_code();
    slot_put(module, slot, tensor);
    return TN_OK;
}

tn_status tn_module_set(tn_module *module, const char *name, tn_tensor *tensor)
{
    if (module == NULL || name == NULL || tensor == NULL)
        return tn__error_null_of("tn_module_set", "module, name, tensor", module, name, tensor);
    return assign_tensor(module, name, tensor);
}

static tn_status assign_child(tn_module *module, const char *name, tn_module *child)
{
    tn_status status = name_form(TN_SLOT_CHILD, name);
    if (status == TN_OK)
        status = frozen_set_child(module, name, child);
    if (status == TN_OK)
        status = tn__hooks_registering_child(module, name, &child);
    if (status == TN_OK)
        status = put_child(module, name, child);
    if (status == TN_OK)
        evict(module, TN_SLOT_CHILD, name);
    return status;
}

tn_status tn_module_assign(tn_module *module, const char *name, tn_value value)
{
    if (module == NULL || name == NULL)
        return tn__error_null_of("tn_module_assign", "module, name", module, name);
    if (value.kind == TN_VALUE_TENSOR)
        return value.as.tensor != NULL ? assign_tensor(module, name, value.as.tensor)
                                       : tn_error_null("tensor to assign");
    if (value.kind == TN_VALUE_NONE)
        return assign_tensor(module, name, TN_NONE);
    uint32_t kind = tn_module_slot_kind(module, name);
    if (value.kind == TN_VALUE_MODULE && kind != TN_SLOT_COMPUTED)
        return value.as.module != NULL ? assign_child(module, name, value.as.module)
                                       : tn_error_null("module to assign");
    if (kind == 0)
        return tn_fail(TN_ERR_TYPE,
                       "cannot assign '%s' to '%s' of %s: a module keeps tensors and modules; "
                       "expected a tensor, a module or None",
                       tn__value_kind_name(value.kind), name, module->type);
    return not_for(kind, name, &value);
}

/* SPDX-License-Identifier: MIT
 *
 * Dotted paths: finding what is below a module, and storing a child there. */
#include "core/module/internal.h"

/* Reports why the part `atom` of `path` is not a parameter, buffer or child of `at`. */
static void not_found(tn_module *at, const char *atom, const char *path, uint32_t wanted)
{
    uint32_t kind = tn_module_slot_kind(at, atom);
    if (kind == wanted) {
        tn_fail(TN_ERR_ATTR, "`%s` of %s is not a %s: its slot is empty (looking for %q)", atom,
                at->type, tn__slot_word(wanted), path);
        return;
    }
    if (kind != 0) {
        /* in PyTorch's form */
        tn_fail(TN_ERR_ATTR, "`%s` of %s is not a %s but a %s (looking for %q)", atom, at->type,
                tn__slot_word(wanted), tn__slot_word(kind), path);
        return;
    }
    const tn__slots *slots = wanted == TN_SLOT_PARAMETER ? &at->parameters
                             : wanted == TN_SLOT_BUFFER  ? &at->buffers
                                                         : &at->children;
    tn__text text = { 0 };
    if (slots->count > 0) {
        tn__text_add(&text, "; %s: ",
                     wanted == TN_SLOT_PARAMETER ? "parameters"
                     : wanted == TN_SLOT_BUFFER  ? "buffers"
                                                 : "children");
        tn__slots_list(slots, &text);
    }
    /* in PyTorch's form */
    tn_fail(TN_ERR_ATTR, "%s has no attribute `%s` (looking for %q)%s", at->type, atom, path,
            text.at != NULL ? text.at : "");
    tn__text_free(&text);
}

/* Returns the module whose path is the first `length` bytes of `path`. */
static tn_module *find_within(tn_module *module, const char *path, size_t length)
{
    const char *at = path, *end = path + length;
    while (length > 0) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        size_t size = (size_t)((dot != NULL ? dot : end) - at);
        char *atom = tn_malloc(size + 1);
        if (atom == NULL)
            return NULL;
        memcpy(atom, at, size);
        atom[size] = '\0';
        tn__slot *slot = tn__slots_find(&module->children, atom);
        if (slot == NULL || slot->child == NULL) {
            not_found(module, atom, path, TN_SLOT_CHILD);
            tn_free(atom);
            return NULL;
        }
        tn_free(atom);
        module = slot->child;
        if (dot == NULL)
            break;
        at = dot + 1;
    }
    return module;
}

tn_module *tn_module_find(tn_module *module, const char *path)
{
    if (module == NULL || path == NULL) {
        tn__error_null_of("tn_module_find", "module, path", module, path);
        return NULL;
    }
    return find_within(module, path, strlen(path));
}

/* Returns the module that holds the last part of `path`, and sets *last to that part. */
static tn_module *find_holder(tn_module *module, const char *path, const char **last)
{
    const char *dot = strrchr(path, '.');
    *last = dot != NULL ? dot + 1 : path;
    if (dot == NULL)
        return module;
    if (dot == path) {
        not_found(module, "", path, TN_SLOT_CHILD);
        return NULL;
    }
    return find_within(module, path, (size_t)(dot - path));
}

tn_tensor *tn_module_find_tensor(tn_module *module, const char *path)
{
    if (module == NULL || path == NULL) {
        tn__error_null_of("tn_module_find_tensor", "module, path", module, path);
        return NULL;
    }
    const char *name;
    module = find_holder(module, path, &name);
    return module != NULL ? tn_module_get(module, name) : NULL;
}

tn_tensor *tn_module_find_parameter(tn_module *module, const char *path)
{
    if (module == NULL || path == NULL) {
        tn__error_null_of("tn_module_find_parameter", "module, path", module, path);
        return NULL;
    }
    const char *name;
    module = find_holder(module, path, &name);
    if (module == NULL)
        return NULL;
    tn__slot *slot = tn__slots_find(&module->parameters, name);
    if (slot == NULL || tn__is_none(slot->tensor)) {
        not_found(module, name, path, TN_SLOT_PARAMETER);
        return NULL;
    }
    return slot->tensor;
}

tn_tensor *tn_module_find_buffer(tn_module *module, const char *path)
{
    if (module == NULL || path == NULL) {
        tn__error_null_of("tn_module_find_buffer", "module, path", module, path);
        return NULL;
    }
    const char *name;
    module = find_holder(module, path, &name);
    if (module == NULL)
        return NULL;
    tn__slot *slot = tn__slots_find(&module->buffers, name);
    if (slot == NULL) {
        not_found(module, name, path, TN_SLOT_BUFFER);
        return NULL;
    }
    return slot->tensor;
}

tn_status tn_module_set_child(tn_module *module, const char *path, tn_module *child, bool strict)
{
    if (module == NULL || path == NULL || child == NULL)
        return tn__error_null_of("tn_module_set_child", "module, path, child", module, path, child);
    if (path[0] == '\0')
        return tn_fail(TN_ERR_VALUE,
                       "child of %s: path: it is empty; expected a path such as \"0\" or "
                       "\"encoder.act\"",
                       module->type);
    const char *name;
    module = find_holder(module, path, &name);
    if (module == NULL)
        return tn_error_last_code();
    uint32_t kind = tn_module_slot_kind(module, name);
    if (kind == TN_SLOT_CHILD || (kind == 0 && !strict))
        return tn_module_add_child(module, name, child);
    not_found(module, name, path, TN_SLOT_CHILD);
    return TN_ERR_ATTR;
}

/* SPDX-License-Identifier: MIT
 *
 * Computed slots: names whose tensor a callback computes at every access. */
#include "core/module/internal.h"

#define DEPTH_MAX 100 /* longest chain of computed slots of which each reads the next */

struct tn__computed {
    tn_computed how;
    void *user;
};

static _Thread_local int depth;

void tn__computed_free(struct tn__computed *computed)
{
    if (computed == NULL)
        return;
    if (computed->how.release != NULL)
        computed->how.release(computed->user);
    tn_free(computed);
}

tn_status tn__computed_add(tn_module *module, const char *name, const tn_computed *how, void *user)
{
    struct tn__computed *made = tn_calloc(1, sizeof *made);
    tn__slot *slot = made != NULL ? tn__slots_make(&module->computed, name) : NULL;
    if (slot == NULL) {
        tn_free(made);
        return tn_error_last_code();
    }
    made->how = *how;
    made->user = user;
    struct tn__computed *before = slot->computed;
    slot->computed = made;
    tn__computed_free(before);
    return TN_OK;
}

void *tn__computed_user(const tn__slot *slot, const tn_computed *how)
{
    const struct tn__computed *computed = slot->computed;
    return computed != NULL && computed->how.get == how->get ? computed->user : NULL;
}

tn_status tn_module_add_computed(tn_module *module, const char *name, const tn_computed *how,
                                 void *user)
{
    if (module == NULL || how == NULL)
        return tn__error_null_of("tn_module_add_computed", "module, how", module, how);
    if (how->get == NULL)
        return tn_fail(TN_ERR_VALUE,
                       "tn_module_add_computed: get: it is NULL; expected a function");
    tn_status status = tn__error_reserved((const void *const *)how->reserved,
                                          tn__countof(how->reserved), "tn_computed");
    if (status == TN_OK)
        status = tn__slot_name_check(module, TN_SLOT_COMPUTED, name);
    if (status == TN_OK)
        status = tn__computed_add(module, name, how, user);
    tn__module_changed(module);
    return status;
}

/* Names a function of a computed slot for a message. */
static void name_function(char *what, size_t size, const tn_module *module, const char *name,
                          const char *function)
{
    tn_snprint(what, size, "computed slot '%.100s' of %.100s: %s", name, module->type, function);
}

/* Returns what a function of the program returned, with a message if that is a failure. */
static tn_status returned(tn_status status, uint64_t failures, const tn_module *module,
                          const char *name, const char *function)
{
    char what[256];
    if (tn__likely(status == TN_OK))
        return TN_OK;
    name_function(what, sizeof what, module, name, function);
    return tn_error_returned(status, failures, what);
}

tn_tensor *tn__computed_get(tn_module *module, const tn__slot *slot)
{
    const struct tn__computed *computed = slot->computed;
    if (depth >= DEPTH_MAX) {
        tn_fail(TN_ERR_RUNTIME,
                "computed slot '%s' of %s: %d computed slots depend on one another; expected "
                "fewer, and no cycle",
                slot->name, module->type, DEPTH_MAX);
        return NULL;
    }
    uint64_t failures = tn_error_mark(), scope = tn_scope_begin();
    depth++;
    tn_tensor *tensor = computed->how.get(computed->user, module, slot->name);
    depth--;
    if (tensor == NULL) {
        char what[256];
        name_function(what, sizeof what, module, slot->name, "get");
        tn__error_returned_null(failures, what);
    }
    tn_scope_end_with(scope, &tensor, 1);
    return tensor;
}

tn_status tn__computed_set(tn_module *module, const tn__slot *slot, tn_tensor *tensor)
{
    const struct tn__computed *computed = slot->computed;
    if (computed->how.set == NULL)
        return tn_fail(TN_ERR_ATTR,
                       "computed slot '%s' of %s: cannot be set; set what it is computed from, or "
                       "remove it first",
                       slot->name, module->type);
    uint64_t failures = tn_error_mark(), scope = tn_scope_begin();
    tn_status status = computed->how.set(computed->user, module, slot->name, tensor);
    tn_scope_end(scope);
    return returned(status, failures, module, slot->name, "set");
}

tn_status tn__computed_copy(const tn_module *from, tn_module *to)
{
    for (int64_t i = 0; i < from->computed.count; i++) {
        const tn__slot *slot = &from->computed.at[i];
        const struct tn__computed *computed = slot->computed;
        void *user = NULL;
        uint64_t failures = tn_error_mark();
        tn_status status = TN_OK;
        if (computed->how.copy != NULL)
            status = returned(computed->how.copy(computed->user, to, &user), failures, from,
                              slot->name, "copy");
        else if (computed->user != NULL)
            status = tn_fail(
                TN_ERR_NOT_IMPLEMENTED,
                "computed slot '%s' of %s: cannot be copied; its tn_computed has no `copy`",
                slot->name, from->type);
        if (status != TN_OK)
            return status;
        status = tn_module_add_computed(to, slot->name, &computed->how, user);
        if (status != TN_OK) {
            if (computed->how.release != NULL)
                computed->how.release(user);
            return status;
        }
    }
    return TN_OK;
}

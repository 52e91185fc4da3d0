/* SPDX-License-Identifier: MIT
 *
 * Takes the state out of a module. For each module, in this order: its own entries (by its layer or
 * by default), its extra state, its children. */
#include "core/module/depth.h"
#include "core/module/loading.h"

int64_t tn__module_version(const tn_module *module)
{
    return module->layer != NULL && module->layer->version > 0 ? module->layer->version : 1;
}

/* ---- one module's own part ------------------------------------------------------------------- */

static tn_status save_slots(const tn__slots *slots, tn_state *state, const char *prefix,
                            uint32_t flags)
{
    tn__text key = { 0 };
    tn_status status = TN_OK;
    size_t length = strlen(prefix);
    tn__text_put(&key, prefix, length);
    for (int64_t i = 0; i < slots->count && status == TN_OK; i++) {
        const tn__slot *slot = &slots->at[i];
        if (tn__is_none(slot->tensor) || (slot->flags & TN_SLOT_FLAG_NOT_PERSISTENT) != 0)
            continue;
        key.length = length;
        tn__text_put(&key, slot->name, strlen(slot->name));
        if (key.failed) {
            status = tn_fail(TN_ERR_MEMORY, "state: out of memory for a name");
            break;
        }
        uint64_t scope = tn_scope_begin();
        tn_tensor *tensor = (flags & TN_STATE_KEEP_VARS) != 0 ? slot->tensor
                                                              : tn_tensor_detach(slot->tensor);
        status = tensor != NULL ? tn_state_set(state, key.at, tensor) : tn_error_last_code();
        tn_scope_end(scope);
    }
    tn__text_free(&key);
    return status;
}

tn_status tn_module_save_own(tn_module *module, tn_state *state, const char *prefix, uint32_t flags)
{
    if (module == NULL || state == NULL || prefix == NULL)
        return tn__error_null_of("tn_module_save_own", "module, state, prefix", module, state,
                                 prefix);
    tn_status status = save_slots(&module->parameters, state, prefix, flags);
    return status == TN_OK ? save_slots(&module->buffers, state, prefix, flags) : status;
}

/* ---- extra state ----------------------------------------------------------------------------- */

static tn_status no_extra_state(const tn_module *module, const char *verb, const char *callback)
{
    return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: no extra state to %s; its layer has no callback %s",
                   module->type, verb, callback);
}

tn_status tn_module_extra_state(tn_module *module, tn_pack *out)
{
    if (module == NULL || out == NULL)
        return tn__error_null_of("tn_module_extra_state", "module, out", module, out);
    if (module->layer == NULL || module->layer->get_extra_state == NULL)
        return no_extra_state(module, "save", "get_extra_state");
    int64_t before = tn_pack_count(out);
    const char *plugin = tn__module_enter(module);
    uint64_t scope = tn_scope_begin();
    tn_status status = tn__error_status_of(module->layer->get_extra_state(module, out),
                                           module->type);
    tn_scope_end(scope);
    tn__error_plugin_back(plugin);
    if (status == TN_OK && tn_pack_count(out) != before + 1)
        status = tn_fail(TN_ERR_VALUE,
                         "get_extra_state of %s: wrong result, got %lld values; expected one",
                         module->type, (long long)(tn_pack_count(out) - before));
    return status;
}

tn_status tn_module_set_extra_state(tn_module *module, tn_value value)
{
    if (module == NULL)
        return tn_error_null("tn_module_set_extra_state: module");
    if (module->layer == NULL || module->layer->set_extra_state == NULL)
        return no_extra_state(module, "load", "set_extra_state");
    const char *plugin = tn__module_enter(module);
    uint64_t scope = tn_scope_begin();
    tn_status status = tn__error_status_of(module->layer->set_extra_state(module, &value),
                                           module->type);
    tn_scope_end(scope);
    tn__error_plugin_back(plugin);
    return status;
}

static tn_status save_extra_state(tn_module *module, tn_state *state, const char *prefix)
{
    if (module->layer == NULL || module->layer->get_extra_state == NULL)
        return TN_OK;
    if (tn__slots_find(&module->parameters, TN__EXTRA_STATE) != NULL ||
        tn__slots_find(&module->buffers, TN__EXTRA_STATE) != NULL)
        return tn_fail(TN_ERR_KEY,
                       "%s: extra state: same name in a state as the parameter or buffer '%s'; "
                       "expected another name for the parameter or buffer",
                       module->type, TN__EXTRA_STATE);
    tn_pack *out = tn_pack_new();
    tn__text key = { 0 };
    tn__text_add(&key, "%s%s", prefix, TN__EXTRA_STATE);
    tn_status status = out != NULL ? tn_module_extra_state(module, out) : TN_ERR_MEMORY;
    if (status == TN_OK && key.failed)
        status = tn_fail(TN_ERR_MEMORY, "state: out of memory for a name");
    if (status == TN_OK)
        status = tn_state_set_value(state, key.at, tn_pack_at(out, tn_pack_count(out) - 1));
    tn__text_free(&key);
    tn_pack_drop(out);
    return status;
}

/* ---- the tree -------------------------------------------------------------------------------- */

struct saver {
    tn_state *state;
    uint32_t flags;
    tn__text prefix; /* of the module that is being saved */
};

/* Sets the version of the module in the state. Its path is the prefix without the dot at its
 * end. */
static tn_status save_version(struct saver *s, tn_module *module)
{
    size_t length = s->prefix.length;
    bool dot = length > 0 && s->prefix.at[length - 1] == '.';
    if (dot)
        s->prefix.at[length - 1] = '\0';
    tn_status status = tn_state_set_version(s->state, s->prefix.at, tn__module_version(module));
    if (dot)
        s->prefix.at[length - 1] = '.';
    return status;
}

static tn_status save_own(struct saver *s, tn_module *module)
{
    if (module->layer == NULL || module->layer->save_state == NULL)
        return tn_module_save_own(module, s->state, s->prefix.at, s->flags);
    const char *plugin = tn__module_enter(module);
    uint64_t scope = tn_scope_begin();
    tn_status status = tn__error_status_of(
        module->layer->save_state(module, s->state, s->prefix.at, s->flags), module->type);
    tn_scope_end(scope);
    tn__error_plugin_back(plugin);
    return status;
}

static tn_status save_tree(struct saver *s, tn_module *module, int depth)
{
    if (tn__depth_check("modules", depth) != TN_OK)
        return tn_error_last_code();
    tn_status status = save_version(s, module);
    if (status == TN_OK)
        status = tn__state_hooks_run(module, TN__HOOK_STATE_PRE, s->state, s->prefix.at, s->flags);
    if (status == TN_OK)
        status = save_own(s, module);
    if (status == TN_OK)
        status = save_extra_state(module, s->state, s->prefix.at);
    size_t length = s->prefix.length;
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++) {
        const tn__slot *slot = &module->children.at[i];
        if (slot->child == NULL)
            continue;
        tn_module *child = tn_module_keep(slot->child); /* a hook may remove it from the tree */
        tn__text_put(&s->prefix, slot->name, strlen(slot->name));
        tn__text_put(&s->prefix, ".", 1);
        status = s->prefix.failed ? tn_fail(TN_ERR_MEMORY, "state: out of memory for the path of a "
                                                           "module")
                                  : save_tree(s, child, depth + 1);
        s->prefix.length = length;
        s->prefix.at[length] = '\0';
        tn_module_drop(child);
    }
    return status == TN_OK
               ? tn__state_hooks_run(module, TN__HOOK_STATE, s->state, s->prefix.at, s->flags)
               : status;
}

tn_status tn_module_state_into(tn_module *module, tn_state *state, const char *prefix,
                               uint32_t flags)
{
    if (module == NULL || state == NULL || prefix == NULL)
        return tn__error_null_of("tn_module_state_into", "module, state, prefix", module, state,
                                 prefix);
    if ((flags & ~(uint32_t)TN_STATE_KEEP_VARS) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_module_state_into: flags: unknown, got 0x%x; expected "
                       "TN_STATE_KEEP_VARS (1)",
                       flags);
    struct saver s = { .state = state, .flags = flags };
    tn__text_put(&s.prefix, prefix, strlen(prefix));
    tn_status status = s.prefix.failed ? tn_fail(TN_ERR_MEMORY, "state: out of memory for the path "
                                                                "of a module")
                                       : save_tree(&s, module, 0);
    tn__text_free(&s.prefix);
    return status;
}

tn_state *tn_module_state(tn_module *module)
{
    if (module == NULL) {
        tn_error_null("tn_module_state: module");
        return NULL;
    }
    tn_state *state = tn_state_new();
    if (state != NULL && tn_module_state_into(module, state, "", 0) == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}

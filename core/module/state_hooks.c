/* SPDX-License-Identifier: MIT
 *
 * Registers and runs the hooks around saving and loading the state of a module. */
#include "core/module/loading.h"

/* ---- registering ----------------------------------------------------------------------------- */

tn_hook_handle tn_module_hook_state_pre(tn_module *module, tn_state_pre_hook hook, void *user,
                                        void (*release)(void *user))
{
    tn__hook_function function = { .state_pre = hook };
    return tn__hook_register(module, TN__HOOK_STATE_PRE, 0, function, hook != NULL, user, release);
}

tn_hook_handle tn_module_hook_state(tn_module *module, tn_state_hook hook, void *user,
                                    void (*release)(void *user))
{
    tn__hook_function function = { .state = hook };
    return tn__hook_register(module, TN__HOOK_STATE, 0, function, hook != NULL, user, release);
}

tn_hook_handle tn_module_hook_load_pre(tn_module *module, tn_load_pre_hook hook, void *user,
                                       void (*release)(void *user))
{
    tn__hook_function function = { .load_pre = hook };
    return tn__hook_register(module, TN__HOOK_LOAD_PRE, 0, function, hook != NULL, user, release);
}

tn_hook_handle tn_module_hook_load(tn_module *module, tn_load_hook hook, void *user,
                                   void (*release)(void *user))
{
    tn__hook_function function = { .load = hook };
    return tn__hook_register(module, TN__HOOK_LOAD, 0, function, hook != NULL, user, release);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The arguments for the hooks of one kind. */
struct turn {
    tn__hook_kind kind;
    const char *name; /* for an error text if the hook recorded none */
    tn_state *state;
    const char *prefix;
    uint32_t flags;
    tn_loading *loading;
    tn_load_report *report;
};

static tn_status run_one(const struct turn *turn, tn_module *module, const tn__hook_code *code)
{
    switch (turn->kind) {
    case TN__HOOK_STATE_PRE:
        return code->function.state_pre(code->user, module, turn->prefix, turn->flags);
    case TN__HOOK_STATE: return code->function.state(code->user, module, turn->state, turn->prefix);
    case TN__HOOK_LOAD_PRE: return code->function.load_pre(code->user, module, turn->loading);
    default: return code->function.load(code->user, module, turn->report);
    }
}

static tn_status run(const struct turn *turn, tn_module *module)
{
    tn__hook_row row;
    if (!tn__has_hooks(module, turn->kind))
        return TN_OK;
    tn_status status = tn__hook_row_take(module, turn->kind, &row);
    for (int64_t i = 0; i < row.count && status == TN_OK; i++) {
        const char *before = tn__error_plugin(""); /* the plugin of the hook is not known */
        uint64_t scope = tn_scope_begin(), mark = tn_error_mark();
        status = tn__error_returned(run_one(turn, module, row.at[i]->code), mark, turn->name);
        tn_scope_end(scope);
        tn__error_plugin_back(before);
    }
    tn__hook_row_drop(&row);
    return status;
}

tn_status tn__state_hooks_run(tn_module *module, tn__hook_kind kind, tn_state *state,
                              const char *prefix, uint32_t flags)
{
    const struct turn turn = { .kind = kind,
                               .name = kind == TN__HOOK_STATE ? "a hook after saving a state"
                                                              : "a hook before saving a state",
                               .state = state,
                               .prefix = prefix,
                               .flags = flags };
    return run(&turn, module);
}

tn_status tn__state_hooks_run_load(tn_module *module, tn__hook_kind kind, tn_loading *loading,
                                   tn_load_report *report)
{
    const struct turn turn = { .kind = kind,
                               .name = kind == TN__HOOK_LOAD ? "a hook after loading a state"
                                                             : "a hook before loading a state",
                               .loading = loading,
                               .report = report };
    return run(&turn, module);
}

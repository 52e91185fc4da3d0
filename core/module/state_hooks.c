/* SPDX-License-Identifier: MIT
 *
 * Registers and runs the hooks around saving and loading the state of a module. */
#include "core/module/loading.h"

/* ---- registering ----------------------------------------------------------------------------- */

tn_hook_handle tn_module_hook_state_pre(tn_module *module, tn_state_pre_hook hook, void *user,
                                        void (*release)(void *user))
{
    return tn__module_hook(module, TN__HOOK_STATE_PRE, 0, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_module_hook_state(tn_module *module, tn_state_hook hook, void *user,
                                    void (*release)(void *user))
{
    return tn__module_hook(module, TN__HOOK_STATE, 0, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_module_hook_load_pre(tn_module *module, tn_load_pre_hook hook, void *user,
                                       void (*release)(void *user))
{
    return tn__module_hook(module, TN__HOOK_LOAD_PRE, 0, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_module_hook_load(tn_module *module, tn_load_hook hook, void *user,
                                   void (*release)(void *user))
{
    return tn__module_hook(module, TN__HOOK_LOAD, 0, (tn__hook_function)hook, user, release);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The arguments for the hooks of one kind. */
struct turn {
    tn_module *module;
    tn_state *state;
    const char *prefix;
    uint32_t flags;
    tn_loading *loading;
    tn_load_report *report;
};

static tn_status run_one(const tn__hook *hook, void *data)
{
    const struct turn *t = data;

    switch (hook->kind) {
    case TN__HOOK_STATE_PRE:
        return ((tn_state_pre_hook)hook->function)(hook->user, t->module, t->prefix, t->flags);
    case TN__HOOK_STATE:
        return ((tn_state_hook)hook->function)(hook->user, t->module, t->state, t->prefix);
    case TN__HOOK_LOAD_PRE:
        return ((tn_load_pre_hook)hook->function)(hook->user, t->module, t->loading);
    default: return ((tn_load_hook)hook->function)(hook->user, t->module, t->report);
    }
}

/* `what` is for an error text if the hook recorded none. */
static tn_status run(struct turn *turn, tn__hook_kind kind, const char *what)
{
    return tn__has_hooks(turn->module, kind)
               ? tn__hooks_run(atomic_load_explicit(&turn->module->hooks, memory_order_acquire),
                               NULL, kind, what, run_one, turn)
               : TN_OK;
}

tn_status tn__state_hooks_run(tn_module *module, tn__hook_kind kind, tn_state *state,
                              const char *prefix, uint32_t flags)
{
    struct turn turn = { .module = module, .state = state, .prefix = prefix, .flags = flags };
    return run(&turn, kind,
               kind == TN__HOOK_STATE ? "a hook after saving a state"
                                      : "a hook before saving a state");
}

tn_status tn__state_hooks_run_load(tn_module *module, tn__hook_kind kind, tn_loading *loading,
                                   tn_load_report *report)
{
    struct turn turn = { .module = module, .loading = loading, .report = report };
    return run(&turn, kind,
               kind == TN__HOOK_LOAD ? "a hook after loading a state"
                                     : "a hook before loading a state");
}

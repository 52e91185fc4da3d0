/* SPDX-License-Identifier: MIT
 *
 * What taking a state out of a module and putting one in have in common. */
#ifndef TN_CORE_MODULE_LOADING_H
#define TN_CORE_MODULE_LOADING_H

#include "core/module/hooks.h"
#include "core/plugin/internal.h"

#define TN__EXTRA_STATE "_extra_state"

struct tn_names {
    char **at;
    int64_t count, capacity;
};

struct tn_load_report {
    tn_names missing, unexpected, errors;
};

/* Which entries tn_state_value and tn_state_tensor gave away while the state was watched: a layer's
 * load_state knows those (state.c). Setting an entry again makes it unread. */
void tn__state_watch(tn_state *state, bool on);
bool tn__state_was_read(const tn_state *state, int64_t index);
void tn__state_mark_read(tn_state *state, int64_t index);

/* The version of a module's state: its layer's, 1 where it says none. */
int64_t tn__module_version(const tn_module *module);
/* Errors and log lines are of the plugin that provides the module; returns the one before, for
 * tn__error_plugin. */
const char *tn__module_enter(const tn_module *module);

/* Runs the module's hooks of one kind (state_hooks.c). `loading` is for load_pre, `report` for
 * load, `state` and `flags` for the others. */
static inline bool tn__has_hooks(tn_module *module, tn__hook_kind kind)
{
    tn__hooks *own = atomic_load_explicit(&module->hooks, memory_order_acquire);
    return own != NULL &&
           (atomic_load_explicit(&own->kinds, memory_order_relaxed) & TN__HOOK_BIT(kind)) != 0;
}
tn_status tn__state_hooks_run(tn_module *module, tn__hook_kind kind, tn_state *state,
                              const char *prefix, uint32_t flags);
tn_status tn__state_hooks_run_load(tn_module *module, tn__hook_kind kind, tn_loading *loading,
                                   tn_load_report *report);

/* The one message about all failures; `strict` lists missing and unexpected names. */
tn_status tn__load_report_fail(const tn_load_report *report, const char *type, bool strict);
void tn__load_report_free_names(tn_names *names);

#endif

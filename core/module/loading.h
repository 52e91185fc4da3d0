/* SPDX-License-Identifier: MIT
 *
 * Declarations that saving and loading the state of a module have in common. */
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

/* Records which entries a layer's load_state reads, so that these are not reported as unexpected
 * (state.c). While a state is watched, tn_state_value and tn_state_tensor mark the entry that they
 * return as read. Setting an entry again removes the mark. */
void tn__state_watch(tn_state *state, bool on);
bool tn__state_was_read(const tn_state *state, int64_t index);
void tn__state_mark_read(tn_state *state, int64_t index);

/* Returns the version of the module's state: the version of its layer, or 1 if the layer has
 * none. */
int64_t tn__module_version(const tn_module *module);
/* Attributes the errors and log lines that follow to the plugin that provides the module. Returns
 * the previous plugin, for tn__error_plugin_back(). */
static inline const char *tn__module_enter(const tn_module *module)
{
    return tn__error_plugin(module->plugin != NULL ? module->plugin->id : "");
}

/* Returns whether the module has hooks of its own of that kind. */
static inline bool tn__has_hooks(tn_module *module, tn__hook_kind kind)
{
    return (tn__hooks_kinds(&module->hooks) & TN__HOOK_BIT(kind)) != 0;
}
/* Run the module's hooks of one kind (state_hooks.c). Hooks of kind TN__HOOK_LOAD_PRE get
 * `loading`, hooks of kind TN__HOOK_LOAD get `report`. */
tn_status tn__state_hooks_run(tn_module *module, tn__hook_kind kind, tn_state *state,
                              const char *prefix, uint32_t flags);
tn_status tn__state_hooks_run_load(tn_module *module, tn__hook_kind kind, tn_loading *loading,
                                   tn_load_report *report);

/* ---- load_take.c ----------------------------------------------------------------------------- */

/* What one load with TN_LOAD_TAKE has exchanged: tensors of the module that took memory, and the
 * storages of the state whose memory they took. All zero: nothing yet. */
typedef struct tn__load_taken {
    tn__map tensors, storages;
} tn__load_taken;

/* Copies the values of `from`, a tensor of the state, to `to`, a tensor of the module. If `taken`
 * is not NULL and `to` has no values yet, gives `to` the memory of `from` instead. `key` is for log
 * lines. */
tn_status tn__load_values(tn__load_taken *taken, const char *key, tn_tensor *to, tn_tensor *from);
void tn__load_taken_free(tn__load_taken *taken);

/* The tensors that a load has found in the state or has missed. All zero: none yet. The names of a
 * tensor that was found under another name are not missing. */
typedef struct tn__load_ties {
    tn__map found;
    struct tn__load_tie {
        tn_tensor *tensor; /* owned reference */
        char *missing;     /* the name that the state lacks; NULL: it has the tensor */
    } * at;
    int64_t count, capacity;
} tn__load_ties;

tn_status tn__load_ties_found(tn__load_ties *ties, tn_tensor *tensor);
tn_status tn__load_ties_missing(tn__load_ties *ties, tn_tensor *tensor, const char *key);
/* Removes from `missing` the names of tensors that were found under another name. */
void tn__load_ties_settle(const tn__load_ties *ties, tn_names *missing);
void tn__load_ties_free(tn__load_ties *ties);

/* ---- load_report.c --------------------------------------------------------------------------- */

/* Sets one error that lists all failures. With `strict`, the error also lists the missing and the
 * unexpected names. */
tn_status tn__load_report_fail(const tn_load_report *report, const char *type, bool strict);
void tn__load_report_free_names(tn_names *names);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Hooks of modules: declarations for the files of this folder. */
#ifndef TN_CORE_MODULE_HOOKS_H
#define TN_CORE_MODULE_HOOKS_H

#include "core/module/internal.h"

typedef enum tn__hook_kind {
    TN__HOOK_FORWARD_PRE,
    TN__HOOK_FORWARD,
    TN__HOOK_BACKWARD_PRE,
    TN__HOOK_BACKWARD,
    TN__HOOK_COMPILED,  /* no hook: the module is compiled (tn_module_compile) */
    TN__HOOK_STATE_PRE, /* from here to LOAD: only for single modules, around their state */
    TN__HOOK_STATE,
    TN__HOOK_LOAD_PRE,
    TN__HOOK_LOAD,
    TN__HOOK_PARAMETER, /* from here on: only global hooks (registered for all modules) */
    TN__HOOK_BUFFER,
    TN__HOOK_CHILD,
    TN__HOOK_KINDS
} tn__hook_kind;

#define TN__HOOKS_OF_CALLS (TN__HOOK_BIT(TN__HOOK_STATE_PRE) - 1)
/* Hooks that may change what a call computes. */
#define TN__HOOKS_AROUND (TN__HOOKS_OF_CALLS & ~TN__HOOK_BIT(TN__HOOK_COMPILED))
#define TN__HOOKS_BACKWARD (TN__HOOK_BIT(TN__HOOK_BACKWARD_PRE) | TN__HOOK_BIT(TN__HOOK_BACKWARD))

extern tn__hooks tn__hooks_global;

/* Returns the kinds of hooks, global and the module's own, that a call of this module must run. */
static inline uint32_t tn__hook_kinds(tn_module *module)
{
    uint32_t kinds = atomic_load_explicit(&tn__hooks_global.kinds, memory_order_relaxed);
    tn__hooks *own = atomic_load_explicit(&module->hooks, memory_order_acquire);

    return own == NULL ? kinds : kinds | atomic_load_explicit(&own->kinds, memory_order_relaxed);
}

/* Records whether the module is compiled. Fails if memory runs out. */
tn_status tn__hooks_set_compiled(tn_module *module, bool compiled);
/* Registers a hook of one module. Returns 0 and sets the error on failure. */
tn_hook_handle tn__module_hook(tn_module *module, tn__hook_kind kind, uint32_t flags,
                               tn__hook_function function, void *user, void (*release)(void *user));
/* Fills a row with the global hooks of a kind, then those of the module. */
static inline tn_status tn__module_hooks_take(tn_module *module, tn__hook_kind kind,
                                              tn__hook_row *row)
{
    return tn__hook_row_take(row, &tn__hooks_global,
                             atomic_load_explicit(&module->hooks, memory_order_acquire), kind);
}

/* ---- the call of one hook -------------------------------------------------------------------- */

typedef struct tn__hook_turn {
    tn_pack *replacement; /* owned; empty when the hook gets it */
    tn_hook_outcome outcome;
    uint64_t scope, failures;
    const char *plugin;
} tn__hook_turn;

tn_status tn__hook_turn_begin(tn__hook_turn *turn);
/* Ends the call of a hook and checks its outcome. *replaced becomes NULL or a pack that the caller
 * must drop. `what` and `may` are words for the error text, such as "forward hook" and "another
 * output". */
tn_status tn__hook_turn_end(tn__hook_turn *turn, tn_status status, const char *what,
                            const char *may, tn_pack **replaced);

/* Adds the positional values, the named values, or both, of `from` to `to`. */
tn_status tn__hook_add_values(tn_pack *to, const tn_pack *from, bool positional, bool named);
/* Returns whether the last error is still `e`. */
bool tn__hook_failure_is(const tn_error *e);

/* ---- backward hooks: identity nodes on the inputs and outputs of a call ---------------------- */

/* The data that the two nodes of one call share; reference counted. */
typedef struct tn__backward tn__backward;

/* Sets *passage to NULL if the module has no backward hooks. */
tn_status tn__backward_new(tn_module *module, tn__backward **passage);
void tn__backward_drop(tn__backward *passage);
/* Puts a node on the inputs. *fresh becomes a new pack, owned by the caller, or NULL if no input
 * requires a gradient. */
tn_status tn__backward_input(tn__backward *passage, const tn_pack *input, tn_pack **fresh);
/* Puts a node on the outputs; changes the pack in place. */
tn_status tn__backward_output(tn__backward *passage, tn_pack *output);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Hooks of modules: declarations for the files of this folder. */
#ifndef TN_CORE_MODULE_HOOKS_H
#define TN_CORE_MODULE_HOOKS_H

#include "core/module/internal.h"

/* All kinds of hooks: the name, as in tn_module_hook_NAME, and the flags that it accepts on one
 * module and for all modules. In this order: hooks around calls; COMPILED, which is no hook but
 * says that the module is compiled (tn_module_compile); hooks around the state of one module; hooks
 * that are only for all modules. */
#define TN__HOOK_LIST(X)                                                                           \
    X(FORWARD_PRE, "forward_pre", TN_HOOK_PREPEND | TN_HOOK_NAMED, 0)                              \
    X(FORWARD, "forward", TN_HOOK_PREPEND | TN_HOOK_NAMED | TN_HOOK_ALWAYS,                        \
      TN_HOOK_NAMED | TN_HOOK_ALWAYS)                                                              \
    X(BACKWARD_PRE, "backward_pre", TN_HOOK_PREPEND, 0)                                            \
    X(BACKWARD, "backward", TN_HOOK_PREPEND, 0)                                                    \
    X(COMPILED, "compiled", 0, 0)                                                                  \
    X(STATE_PRE, "state_pre", 0, 0)                                                                \
    X(STATE, "state", 0, 0)                                                                        \
    X(LOAD_PRE, "load_pre", 0, 0)                                                                  \
    X(LOAD, "load", 0, 0)                                                                          \
    X(PARAMETER, "parameter", 0, 0)                                                                \
    X(BUFFER, "buffer", 0, 0)                                                                      \
    X(CHILD, "child", 0, 0)

#define TN__HOOK_KIND(kind, name, own, global) TN__HOOK_##kind,
typedef enum tn__hook_kind { TN__HOOK_LIST(TN__HOOK_KIND) TN__HOOK_KINDS } tn__hook_kind;

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

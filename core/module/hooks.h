/* SPDX-License-Identifier: MIT
 *
 * Hooks of modules as the files of this folder share them. */
#ifndef TN_CORE_MODULE_HOOKS_H
#define TN_CORE_MODULE_HOOKS_H

#include "core/module/internal.h"

typedef enum tn__hook_kind {
    TN__HOOK_FORWARD_PRE,
    TN__HOOK_FORWARD,
    TN__HOOK_BACKWARD_PRE,
    TN__HOOK_BACKWARD,
    TN__HOOK_STATE_PRE, /* from here on: of one module only, around its state */
    TN__HOOK_STATE,
    TN__HOOK_LOAD_PRE,
    TN__HOOK_LOAD,
    TN__HOOK_PARAMETER, /* from here on: of all modules only */
    TN__HOOK_BUFFER,
    TN__HOOK_CHILD,
    TN__HOOK_KINDS
} tn__hook_kind;

#define TN__HOOK_BIT(kind) ((uint32_t)1 << (kind))
#define TN__HOOKS_OF_CALLS (TN__HOOK_BIT(TN__HOOK_STATE_PRE) - 1)
#define TN__HOOKS_BACKWARD (TN__HOOK_BIT(TN__HOOK_BACKWARD_PRE) | TN__HOOK_BIT(TN__HOOK_BACKWARD))

typedef union tn__hook_function {
    tn_forward_pre_hook forward_pre;
    tn_forward_hook forward;
    tn_backward_pre_hook backward_pre;
    tn_backward_hook backward;
    tn_state_pre_hook state_pre;
    tn_state_hook state;
    tn_load_pre_hook load_pre;
    tn_load_hook load;
    tn_slot_hook slot;
    tn_child_hook child;
} tn__hook_function;

/* What a registration calls; copies of a module share it. */
typedef struct tn__hook_code {
    _Atomic int32_t refs;
    tn__hook_function function;
    void *user;
    void (*release)(void *user);
} tn__hook_code;

typedef struct tn__hook {
    tn__hook_handle handle; /* first */
    _Atomic int32_t refs;   /* of its list, and of those who run it */
    struct tn__hooks *list; /* where it is registered */
    tn__hook_kind kind;
    uint32_t flags;
    tn__hook_code *code;
} tn__hook;

/* The hooks of a module, or those of all modules: rows in order, under the lock of the handles. */
typedef struct tn__hooks {
    _Atomic uint32_t kinds; /* a bit for each kind that has any: read without the lock */
    struct {
        tn__hook **at;
        int64_t count, capacity;
    } rows[TN__HOOK_KINDS];
} tn__hooks;

extern tn__hooks tn__hooks_global;

/* Which kinds a call of this module has to look at. */
static inline uint32_t tn__hook_kinds(tn_module *module)
{
    tn__hooks *own = atomic_load_explicit(&module->hooks, memory_order_acquire);
    uint32_t kinds = atomic_load_explicit(&tn__hooks_global.kinds, memory_order_relaxed);
    return own == NULL ? kinds : kinds | atomic_load_explicit(&own->kinds, memory_order_relaxed);
}

/* Registers a hook of one module; `given`: whether there is a function. 0 and a failure
 * otherwise. */
tn_hook_handle tn__hook_register(tn_module *module, tn__hook_kind kind, uint32_t flags,
                                 tn__hook_function function, bool given, void *user,
                                 void (*release)(void *user));

/* ---- the hooks of one kind as they are now, global ones first -------------------------------- */

typedef struct tn__hook_row {
    int64_t count;
    tn__hook **at;
    tn__hook *few[6];
} tn__hook_row;

/* `module` NULL: the global ones alone. The row cannot be copied. */
tn_status tn__hook_row_take(tn_module *module, tn__hook_kind kind, tn__hook_row *row);
void tn__hook_row_drop(tn__hook_row *row);

/* ---- one hook's turn ------------------------------------------------------------------------- */

typedef struct tn__hook_turn {
    tn_pack *replacement; /* owned, empty; what the hook gets */
    tn_hook_outcome outcome;
    uint64_t scope, failures;
    const char *plugin;
} tn__hook_turn;

tn_status tn__hook_turn_begin(tn__hook_turn *turn);
/* Judges what the hook said. *replaced: NULL, or a pack that is the caller's now. `what` and `may`
 * are for the error: "forward hook", "another output". */
tn_status tn__hook_turn_end(tn__hook_turn *turn, tn_status status, const char *what,
                            const char *may, tn_pack **replaced);

/* ---- backward: identity nodes on what goes in and what comes out ----------------------------- */

/* What the two nodes of one call share; reference counted. */
typedef struct tn__backward tn__backward;

/* *passage NULL: nothing to do. */
tn_status tn__backward_new(tn_module *module, tn__backward **passage);
void tn__backward_drop(tn__backward *passage);
/* Puts the node on what goes in: *fresh is a new pack, owned by the caller, or NULL when no input
 * requires a gradient. */
tn_status tn__backward_input(tn__backward *passage, const tn_pack *input, tn_pack **fresh);
/* The same for what comes out, in place. */
tn_status tn__backward_output(tn__backward *passage, tn_pack *output);

#endif

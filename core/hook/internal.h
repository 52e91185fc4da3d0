/* SPDX-License-Identifier: MIT
 *
 * Lists of hooks, for everything that has hooks: modules, optimizers, nodes of gradients. A list
 * knows no type of hook: its owner has kinds from 0 to 31, and calls the functions. */
#ifndef TN_CORE_HOOK_INTERNAL_H
#define TN_CORE_HOOK_INTERNAL_H

#include "core/tensor/internal.h"

#include <tenon/hooks.h>

/* A hook of any type: the owner casts it from its type, and back for a call. */
typedef void (*tn__hook_function)(void);

typedef struct tn__hook {
    tn__hook_function function; /* NULL: an entry of the owner's own, which has no handle */
    void *user;
    void (*release)(void *user);
    uint32_t flags; /* TN_HOOK_* */
    int32_t kind;
    int32_t place;        /* for the owner */
    _Atomic int32_t refs; /* held by the list, by rows, and by copies of the hook */
    uint64_t id;
    struct tn__hooks *list;    /* in which the hook is registered */
    struct tn__hook *next;     /* in the list */
    struct tn__hook *original; /* of a copy: it has `user`, and is owned. NULL: no copy */
} tn__hook;

/* The hooks of one owner, or those for all owners, in calling order. One lock guards all lists. A
 * list whose bytes are all zero is empty. */
typedef struct tn__hooks {
    /* TN__HOOK_BITs of the kinds in the list, and bits that the owner sets; read without lock. */
    _Atomic uint32_t kinds;
    tn__hook *first;
} tn__hooks;

#define TN__HOOK_BIT(kind) ((uint32_t)1 << (kind))

/* Returns the kinds of a list that is made when it is needed. */
static inline uint32_t tn__hooks_kinds(tn__hooks *_Atomic const *at)
{
    tn__hooks *hooks = atomic_load_explicit(at, memory_order_acquire);

    return hooks == NULL ? 0 : atomic_load_explicit(&hooks->kinds, memory_order_relaxed);
}
/* Returns such a list, and makes it if there is none. NULL: memory ran out. */
tn__hooks *tn__hooks_of(tn__hooks *_Atomic *at);
/* Removes the hooks one by one, by kind: a `release` may call any function of the library. */
void tn__hooks_clear(tn__hooks *hooks);
/* Clears and frees a list of tn__hooks_of(). */
void tn__hooks_free(tn__hooks *_Atomic *at);

/* Registers a copy of `how`, of which the members down to `place` count. Fails if it lacks a
 * function or has flags that are not `known`; the message begins with OF_hook_NAME. On failure
 * returns 0, and `user` stays the caller's. A list that is NULL is one that could not be made. */
tn_hook_handle tn__hook_register(tn__hooks *hooks, const tn__hook *how, uint32_t known,
                                 const char *of, const char *name);
/* Like tn__hook_register(), for a hook that the caller has checked, or an entry of its own. */
uint64_t tn__hook_add(tn__hooks *hooks, const tn__hook *how);
/* Adds copies of the hooks of a list, which share their `user`. */
tn_status tn__hooks_copy(const tn__hooks *from, tn__hooks *to);
/* Moves the hooks of some kinds (TN__HOOK_BITs) to the end of a list. */
void tn__hooks_move(tn__hooks *from, tn__hooks *to, uint32_t kinds);
int64_t tn__hook_count(void); /* number of hooks with a handle in the process */

/* Hooks that are about to run. A hook that is removed meanwhile still runs, and a new one does not.
 * A row must not be copied, because its `at` may point to its own `few`. */
typedef struct tn__hook_row {
    int64_t count;
    tn__hook **at;
    tn__hook *few[6];
} tn__hook_row;

/* Fills the row with references to the hooks of one kind: those of `first`, then those of `second`;
 * both may be NULL. */
tn_status tn__hook_row_take(tn__hook_row *row, const tn__hooks *first, const tn__hooks *second,
                            int32_t kind);
void tn__hook_row_drop(tn__hook_row *row);
/* Calls `call` for the hooks of such a row, each in a scope of its own, until one fails. `what` is
 * for the message if a hook fails and recorded none. */
tn_status tn__hooks_run(const tn__hooks *first, const tn__hooks *second, int32_t kind,
                        const char *what, tn_status (*call)(const tn__hook *hook, void *data),
                        void *data);

/* For hooks that take effect at once, also in a run that is in progress: returns a new reference to
 * the first hook of a kind and place whose number is larger than `after`, or NULL. */
tn__hook *tn__hook_after(const tn__hooks *hooks, int32_t kind, int32_t place, uint64_t after);
/* Removes the first hook of a kind, with this `user` (NULL: any). Returns whether there was one. */
bool tn__hook_remove_first(tn__hooks *hooks, int32_t kind, const void *user);
void tn__hook_drop(tn__hook *hook);

#endif

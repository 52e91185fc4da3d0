/* SPDX-License-Identifier: MIT
 *
 * Parametrizations: declarations for the files of this folder.
 *
 * A module with a parametrized tensor has a child `parametrizations`, a dictionary, which has under
 * the name of each such tensor a list: the parametrizing modules as children "0", "1", ..., and
 * the originals as parameters or buffers. The name itself is a computed slot of the module. */
#ifndef TN_LIB_PARAMETRIZE_PARAMETRIZE_H
#define TN_LIB_PARAMETRIZE_PARAMETRIZE_H

#include "core/module/loading.h"
#include "lib/parametrize/value_cache.h"

#include <tenon/parametrize.h>

/* Functions of lib/prune. lib/library/upward_calls.c fills the table. */
typedef struct tn__parametrize_calls {
    /* Returns whether a parameter of the module is pruned. */
    bool (*is_pruned)(const tn_module *module, const char *name);
    /* Returns whether a slot of the module belongs to a pruned parameter. */
    bool (*prune_owns)(const tn_module *module, const char *name);
} tn__parametrize_calls;
extern TN_HIDDEN const tn__parametrize_calls tn__parametrize_up;

#define TN__PARAMETRIZE_CHILD "parametrizations"

/* The data of a list. */
typedef struct tn__parametrize_data {
    int64_t originals; /* 0: one, called "original"; otherwise original0, original1, ... */
    bool unsafe;
} tn__parametrize_data;

/* Room for the name of an original or of a parametrization in a list. */
typedef char tn__parametrize_name[32];

/* ---- list.c ---------------------------------------------------------------------------------- */

/* Returns the list of a tensor of the module; NULL, without an error, if it is not parametrized. */
tn_module *tn__parametrize_list(const tn_module *module, const char *name);
/* Returns whether a module is the list of a parametrized tensor. */
bool tn__parametrize_is_list(const tn_module *module);
/* Returns a new list of one parametrization without originals. The caller drops it. */
tn_module *tn__parametrize_list_new(tn_module *parametrization, bool unsafe);
static inline tn__parametrize_data *tn__parametrize_data_of(const tn_module *list)
{
    return list->data;
}
/* Return the number of originals, and write the name of original `index`. */
int64_t tn__parametrize_originals(const tn_module *list);
void tn__parametrize_original(const tn_module *list, int64_t index, tn__parametrize_name name);
/* Returns parametrization `index` of the list, NULL if there is none. */
tn_module *tn__parametrize_at(const tn_module *list, int64_t index);
int64_t tn__parametrize_count(const tn_module *list);
/* Returns the value of the list for its originals, owned by the scope. */
tn_tensor *tn__parametrize_value(tn_module *list);
/* Makes `list` the parametrization of `name`, next to the slot that the module has for the name,
 * which must be removed afterwards. If it fails, the module is unchanged. */
tn_status tn__parametrize_list_add(tn_module *module, const char *name, tn_module *list);
/* Undoes tn__parametrize_list_add(). Cannot fail. */
void tn__parametrize_list_remove(tn_module *module, const char *name);
/* Sets *module and *name to those of the tensor that the dotted path *name means. */
tn_status tn__parametrize_find(tn_module **module, const char **name);

/* ---- inverse.c ------------------------------------------------------------------------------- */

/* Adds the originals of `value` to `originals`, which must be empty. Fails with
 * TN_ERR_NOT_IMPLEMENTED if there is no right inverse. */
tn_status tn__parametrize_inverse(tn_module *parametrization, tn_tensor *value, tn_pack *originals);
bool tn__parametrize_has_inverse(const tn_module *parametrization);
/* The tensors in the buffer slots of a module, for restoring them after a call that may set
 * them. */
typedef struct tn__parametrize_buffers {
    tn_module *module;
    tn_tensor **at; /* owned references, NULL or TN_NONE */
    int64_t count;
} tn__parametrize_buffers;
tn_status tn__parametrize_buffers_keep(tn_module *module, tn__parametrize_buffers *buffers);
void tn__parametrize_buffers_drop(tn__parametrize_buffers *buffers, bool restore);
/* Computes the originals of `value` by the right inverses of the whole list, and stores them. If it
 * fails, the list is unchanged. */
tn_status tn__parametrize_assign(tn_module *list, tn_tensor *value);

/* ---- step.c ---------------------------------------------------------------------------------- */

/* One parametrization that is being added. */
typedef struct tn__parametrize_step {
    tn_module *module; /* owned reference */
    char *name;        /* owned */
    tn_module *list;   /* owned reference */
    tn_tensor *object; /* owned; its contents were exchanged with those of `contents`; or NULL */
    tn_tensor *contents;
    bool appended; /* to a list that existed before, whose `unsafe` was `unsafe_before` */
    bool unsafe_before;
} tn__parametrize_step;

/* Adds a parametrization, so that it can still be undone. After a failure nothing has changed. Each
 * step must be ended by one of the two functions below; several steps in the reverse order. */
tn_status tn__parametrize_step_begin(tn_module *module, const char *name,
                                     tn_module *parametrization, uint32_t flags,
                                     tn__parametrize_step *step);
void tn__parametrize_step_undo(tn__parametrize_step *step);
void tn__parametrize_step_finish(tn__parametrize_step *step);

/* ---- remove.c -------------------------------------------------------------------------------- */

/* Fails: the name is not parametrized. */
tn_status tn__parametrize_none(tn_module *module, const char *name);

/* ---- loading, and modules from text ---------------------------------------------------------- */

/* Returns whether a parametrization of the module may rename entries of a state. */
bool tn__parametrize_renames(const tn_module *module);
/* Lets the parametrizations of the module rename old entries of a state. */
tn_status tn__parametrize_rename(tn_module *module, tn_loading *loading);
/* If the module of a layer has got a child `parametrizations` that was made from a spec,
 * parametrizes the module like this child and drops the child. */
tn_status tn__parametrize_printed(tn_module *module, const char *child);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Pruning: what its files share. method.c reads and calls methods, mask.c combines
 * their masks, slots.c keeps the slots of pruned parameters, prune.c and network.c have
 * the public functions. */
#ifndef TN_LIB_PRUNE_PRUNE_H
#define TN_LIB_PRUNE_PRUNE_H

#include "core/module/internal.h"

#include <tenon/prune.h>

/* ---- methods --------------------------------------------------------------------------------- */

typedef struct tn__prune_step {
    const struct tn__entry *entry;
    tn__spec *spec;
    void *data;
    tn__option_block *option_block;
} tn__prune_step;

typedef struct tn__prune_steps {
    tn__prune_step *at;
    int64_t count, capacity;
} tn__prune_steps;

static inline const tn_prune_def *tn__prune_def(const tn__prune_step *step)
{
    return (const tn_prune_def *)step->entry->contribution;
}

/* Reads a list of methods. `name` is the parameter that they are for, NULL: none. The caller frees
 * the steps, also after a failure. */
tn_status tn__prune_steps_read(tn__prune_steps *steps, const char *name, const char *methods);
void tn__prune_steps_free(tn__prune_steps *steps);
/* Calls the `mask` of a method. The result belongs to the scope. Returns NULL on failure. */
tn_tensor *tn__prune_step_mask(const tn__prune_step *step, tn_tensor *scores, tn_tensor *mask);
/* Calls the `channels` (or, with args->method NULL, the `compact`) of a method. */
tn_status tn__prune_step_net(const tn__prune_step *step, tn_prune_net *args);

/* ---- masks ----------------------------------------------------------------------------------- */

enum {
    TN__PRUNE_WHOLE = 1, /* the first method gets everything, even if there is a mask */
    TN__PRUNE_MASKED = 2 /* without scores, the first method ranks the values times the mask */
};
/* Returns the mask of a tensor after all steps. `scores` may be NULL: the values. `mask` may be
 * NULL: ones. `flags`: TN__PRUNE_*. The result is new and belongs to the scope; NULL on failure. */
tn_tensor *tn__prune_mask_of(const tn__prune_steps *steps, tn_tensor *values, tn_tensor *scores,
                             tn_tensor *mask, uint32_t flags);
/* Returns the product of a tensor and a mask, recorded if gradients are recorded. Belongs to the
 * scope. */
tn_tensor *tn__prune_product(tn_tensor *tensor, tn_tensor *mask);
/* Returns a copy of a tensor with this dtype, outside of the graph and row-major. Belongs to
 * the scope. */
tn_tensor *tn__prune_copy(tn_tensor *tensor, tn_dtype dtype);
/* Fails if the tensor does not have the shape of another one. `what` is for the message. */
tn_status tn__prune_same_shape(const tn_tensor *tensor, const tn_tensor *like, const char *what);
/* Returns a tensor of ones like another one. Belongs to the scope. */
tn_tensor *tn__prune_ones(const tn_tensor *like);

/* ---- slots of pruned parameters -------------------------------------------------------------- */

/* What a pruned parameter keeps besides its two tensors. */
typedef struct tn__pruned {
    char *original, *mask; /* names of slots */
    char **methods;        /* the texts of the methods */
    int64_t count, capacity;
} tn__pruned;

/* A parameter of a module, as tn__prune_find() found it. */
typedef struct tn__prune_place {
    tn_module *module;
    const char *name;   /* within the module */
    tn__pruned *pruned; /* NULL: not pruned */
    tn_tensor *values;  /* the parameter, or the original of the pruned parameter */
    tn_tensor *mask;    /* NULL: not pruned */
} tn__prune_place;

/* Finds a parameter by its path from `module`. */
tn_status tn__prune_find(tn_module *module, const char *path, tn__prune_place *place);
/* Returns whether a module itself has a pruned parameter. */
bool tn__prune_has(const tn_module *module);
/* Returns whether the parameter `name` of the module itself is pruned. */
bool tn__prune_is(const tn_module *module, const char *name);
/* Returns whether `name` is the parameter or the mask that a pruned parameter is made of. */
bool tn__prune_owns(const tn_module *module, const char *name);

/* What tn__prune_store() changed. */
typedef struct tn__prune_change {
    tn__prune_place place; /* before the change; owns a reference to the mask */
    int64_t index;         /* of the parameter, if it was not pruned */
    int64_t methods;       /* number of methods, if it was pruned */
} tn__prune_change;

/* Stores a mask for a parameter, with the texts of the methods; steps NULL: "CustomFromMask". If
 * the function fails, the module is unchanged; else `change` can undo it. */
tn_status tn__prune_store(const tn__prune_place *place, tn_tensor *mask,
                          const tn__prune_steps *steps, tn__prune_change *change);
/* Undoes a change. Cannot fail. */
void tn__prune_undo(tn__prune_change *change);
/* Must be called for a change that stays. */
void tn__prune_done(tn__prune_change *change);
/* Gives a pruned parameter its masked values and its name back. If the function fails, the module
 * is unchanged. */
tn_status tn__prune_make_permanent(const tn__prune_place *place);

#endif

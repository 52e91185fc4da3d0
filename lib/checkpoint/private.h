/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of this folder: the objects of a checkpoint, the names of its entries. */
#ifndef TN_LIB_CHECKPOINT_PRIVATE_H
#define TN_LIB_CHECKPOINT_PRIVATE_H

#include "core/plugin/internal.h"

#include <tenon/checkpoint.h>

typedef enum tn__part_kind {
    TN__PART_MODULE,
    TN__PART_OPTIMIZER,
    TN__PART_SCHEDULER,
    TN__PART_LOADER
} tn__part_kind;

/* An object, which belongs to the program. */
typedef struct tn__part {
    char *name;
    tn__part_kind kind;
    union {
        tn_module *module;
        tn_optimizer *optimizer;
        tn_scheduler *scheduler;
        tn_loader *loader;
    } as;
} tn__part;

/* A contribution whose plugin is needed. */
typedef struct tn__needed {
    uint32_t kind;
    char *name;
} tn__needed;

struct tn_checkpoint {
    tn__part *parts;
    int64_t count, capacity;
    tn__needed *needed;
    int64_t n_needed, needed_capacity;
    tn_state *values; /* of the program, under their own names */
};

enum { TN__CHECKPOINT_VERSION = 1 };
#define TN__CHECKPOINT_RESERVED "run"
#define TN__CHECKPOINT_NUMBER TN__CHECKPOINT_RESERVED ".version"
#define TN__CHECKPOINT_TYPES TN__CHECKPOINT_RESERVED ".types"
#define TN__CHECKPOINT_PLUGINS TN__CHECKPOINT_RESERVED ".plugins"
#define TN__CHECKPOINT_RANDOM TN__CHECKPOINT_RESERVED ".random"
#define TN__CHECKPOINT_VALUES "value"

/* Returns the name of the type of an object, NULL for a loader. */
const char *tn__checkpoint_type(const tn__part *part);
/* Fails unless all plugins that a checkpoint needs are loaded. `path` is for messages. */
tn_status tn__plugins_check(const tn_state *state, const char *path);
/* Adds the plugins of the modules, optimizers, schedulers and needed contributions to a state, as
 * TN__CHECKPOINT_PLUGINS. */
tn_status tn__plugins_save(tn_checkpoint *checkpoint, tn_state *state);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of this plugin: the objects of a checkpoint, the names of its entries, the
 * functions of the interface. */
#ifndef TN_CHECKPOINT_CHECKPOINT_H
#define TN_CHECKPOINT_CHECKPOINT_H

#include <tenon/plugin.h>

#include <tenon/checkpoint.h>

typedef enum part_kind { PART_MODULE, PART_OPTIMIZER, PART_SCHEDULER, PART_LOADER } part_kind;

/* An object, which belongs to the program. */
typedef struct checkpoint_part {
    char *name;
    part_kind kind;
    union {
        tn_module *module;
        tn_optimizer *optimizer;
        tn_scheduler *scheduler;
        tn_loader *loader;
    } as;
} checkpoint_part;

/* A contribution whose plugin is needed. */
typedef struct checkpoint_needed {
    uint32_t kind;
    char *name;
} checkpoint_needed;

struct tn_checkpoint {
    checkpoint_part *parts;
    int64_t count, capacity;
    checkpoint_needed *needed;
    int64_t n_needed, needed_capacity;
    tn_state *values; /* of the program, under their own names */
};

enum { CHECKPOINT_VERSION = 1 };
#define CHECKPOINT_RESERVED "run"
#define CHECKPOINT_NUMBER CHECKPOINT_RESERVED ".version"
#define CHECKPOINT_TYPES CHECKPOINT_RESERVED ".types"
#define CHECKPOINT_PLUGINS CHECKPOINT_RESERVED ".plugins"
#define CHECKPOINT_RANDOM CHECKPOINT_RESERVED ".random"
#define CHECKPOINT_VALUES "value"

/* ---- what the files share ---------------------------------------------------------------------
 */

/* Returns the name of the type of an object, NULL for a loader. */
TN_HIDDEN const char *checkpoint_type(const checkpoint_part *part);
/* Fails unless all plugins that a checkpoint needs are loaded. `path` is for messages. */
TN_HIDDEN tn_status plugins_check(const tn_state *state, const char *path);
/* Adds the plugins of the modules, optimizers, schedulers and needed contributions to a state, as
 * CHECKPOINT_PLUGINS. */
TN_HIDDEN tn_status plugins_save(tn_checkpoint *checkpoint, tn_state *state);
/* Fails if an object is NULL, probably because an earlier call failed, or if a pointer is not
 * given. `what` is function and argument. */
TN_HIDDEN bool checkpoint_not_null(const void *object, const char *what);
TN_HIDDEN bool checkpoint_given(bool given, const char *what);
/* Makes room for more elements of an array; *capacity is the number of elements. */
TN_HIDDEN tn_status checkpoint_grow(void **at, int64_t *capacity, size_t size);
/* Adds to a text, which begins as NULL, and which the caller frees. */
TN_HIDDEN tn_status checkpoint_append(char **text, const char *format, ...);

/* ---- the functions of the interface ---------------------------------------------------------- */

TN_HIDDEN tn_checkpoint *objects_new(void);
TN_HIDDEN void objects_drop(tn_checkpoint *checkpoint);
TN_HIDDEN tn_status objects_add_module(tn_checkpoint *checkpoint, const char *name,
                                       tn_module *module);
TN_HIDDEN tn_status objects_add_optimizer(tn_checkpoint *checkpoint, const char *name,
                                          tn_optimizer *optimizer);
TN_HIDDEN tn_status objects_add_scheduler(tn_checkpoint *checkpoint, const char *name,
                                          tn_scheduler *scheduler);
TN_HIDDEN tn_status objects_add_loader(tn_checkpoint *checkpoint, const char *name,
                                       tn_loader *loader);
TN_HIDDEN tn_status objects_add_plugin(tn_checkpoint *checkpoint, uint32_t kind, const char *name);
TN_HIDDEN tn_status objects_set(tn_checkpoint *checkpoint, const char *name, tn_value value);
TN_HIDDEN tn_value objects_get(const tn_checkpoint *checkpoint, const char *name);
TN_HIDDEN tn_status saving_save(tn_checkpoint *checkpoint, const char *path);
TN_HIDDEN tn_state *restoring_read(const char *path);
TN_HIDDEN tn_status restoring_restore(tn_checkpoint *checkpoint, const tn_state *state);
TN_HIDDEN tn_status restoring_load(tn_checkpoint *checkpoint, const char *path);

#endif

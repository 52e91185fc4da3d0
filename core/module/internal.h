/* SPDX-License-Identifier: MIT
 *
 * Modules and states as the other folders of the core see them. */
#ifndef TN_CORE_MODULE_INTERNAL_H
#define TN_CORE_MODULE_INTERNAL_H

#include "core/base/map.h"
#include "core/grad/internal.h"

#define TN__MODULE_DEPTH TN__NESTING

/* A named place of a module. Its name never moves, so a name that came from a slot is found by its
 * address. */
typedef struct tn__slot {
    char *name;
    tn_tensor *tensor; /* parameters and buffers: a reference of the module's own, or TN_NONE */
    tn_module *child;  /* children: a reference of the module's own */
    struct tn__computed *computed; /* owned; then there is neither tensor nor child */
    uint32_t flags;                /* TN_SLOT_*, TN__SLOT_UNSHAPED */
} tn__slot;

/* The flags of slots that callers know. */
#define TN__SLOT_PUBLIC (TN_SLOT_NOT_PERSISTENT | TN_SLOT_FIXED_DTYPE)

typedef struct tn__slots {
    tn__slot *at;
    int64_t count, capacity;
    tn__index index; /* by name; empty where names are few */
} tn__slots;

struct tn_module {
    _Atomic int32_t refs;
    _Atomic int32_t holders; /* slots whose child it is */
    int32_t height;          /* levels below it, as far as they were there when children came */
    _Atomic int32_t depth;   /* levels above it, as far as they were there when it got a holder */
    bool training;
    bool build_began;          /* then the layer's destroy must be called */
    const tn_layer_def *layer; /* the host's full-size copy; NULL for a tree without a forward */
    struct tn__plugin *plugin;
    const char *type;
    char *tree_type; /* of a tree: the type's name and the text before the children */
    char *tree_extra;
    void *data; /* the layer's struct */
    tn__keep *keep;
    tn__slots parameters, buffers, children, computed;
    struct tn__hooks *_Atomic hooks; /* NULL: there never was one */
    tn_module *next;                 /* in the list of those that are being freed */
};

/* ---- small helpers ---- */

/* Appends "weight, bias", for error texts. */
void tn__slots_list(const tn__slots *slots, tn__text *text);

/* The slot of a name, NULL if there is none. */
tn__slot *tn__slots_find(const tn__slots *slots, const char *name);
/* The same, made at the end when there is none; NULL and an error without memory. */
tn__slot *tn__slots_make(tn__slots *slots, const char *name);
void tn__slots_clear(tn__slots *slots);
/* Takes a slot out; it was found before. */
void tn__slots_remove(tn__slots *slots, tn__slot *slot);
/* After names changed or slots moved. */
void tn__slots_reindex(tn__slots *slots);
/* Puts a child (or NULL) into a slot of the module and takes over the reference; drops what was
 * there. */
void tn__slot_hold(tn_module *module, tn__slot *slot, tn_module *child);
/* Names compared and modules visited by this thread: what a test counts instead of time. */
extern _Thread_local uint64_t tn__slot_steps;
/* Whether a slot of that kind may be registered under a name: PyTorch's checks, in its order. */
tn_status tn__slot_name_check(tn_module *module, uint32_t kind, const char *name);
/* "parameter", "buffer", "module", "computed tensor". */
const char *tn__slot_word(uint32_t kind);

/* Computed slots. */
struct tn__computed;
tn_tensor *tn__computed_get(tn_module *module, const tn__slot *slot);
tn_status tn__computed_set(tn_module *module, const tn__slot *slot, tn_tensor *tensor);
tn_status tn__computed_copy(const tn_module *from, tn_module *to);
void tn__computed_free(struct tn__computed *computed);

/* An empty module of a type, whose name is not copied. */
tn_module *tn__module_new(const char *type);
/* Whether this thread is inside a call of the module, whose last reference was dropped: the
 * outermost call destroys it at its end. */
bool tn__call_holds(const tn_module *module);
/* The innermost module that this thread is calling, or NULL. */
tn_module *tn__call_now(void);
/* Frees the module if it has no reference. */
void tn__module_destroy(tn_module *module);

/* Makes a module of a layer's name; `children` (may be NULL) marks values that came as "(name):
 * Type(...)". */
tn_module *tn__module_make(const char *type, const char *spec_text, const tn_value *values,
                           const char *const *names, const int32_t *columns,
                           const uint8_t *children, int64_t count);

/* ---- building ---- */

enum { TN__BUILD_MAX = 1 << 18 }; /* docs/guides/spec-strings.md says it */

/* Between them, what this thread makes is counted; nested ones count to the outermost. */
void tn__build_limit_begin(void);
void tn__build_limit_end(void);
/* One more slot of that name: an error beyond TN__BUILD_MAX, or when the program cancels. */
tn_status tn__build_limit_count(const char *name);
/* Asks the program now and then whether to go on. */
tn_status tn__build_limit_step(void);

/* ---- hooks ---- */

void tn__module_hooks_free(tn_module *module);
/* Registers the hooks of `from` for a copy of it. */
tn_status tn__module_hooks_copy(tn_module *from, tn_module *to);
/* Before a value is stored under a name: the global hooks (those registered for all modules) may
 * replace it. A replacement tensor belongs to the scope; *child returns as a reference that the
 * caller drops, NULL on failure. */
tn_status tn__hooks_registering_tensor(tn_module *module, tn_slot_kind slot, const char *name,
                                       tn_tensor **tensor);
tn_status tn__hooks_registering_child(tn_module *module, const char *name, tn_module **child);

/* The layer's reset, if it has one. */
tn_status tn__module_reset(tn_module *module);
/* While set, tn_init checks its arguments and fills nothing; gives back what it was before. */
bool tn__init_skip(bool skip);
bool tn__init_skipped(void);

/* ---- lazy modules ---------------------------------------------------------------------------- */

/* A slot whose tensor has no shape yet (used with TN_SLOT_NOT_PERSISTENT): it holds one of shape
 * [0] with the right dtype and device. */
enum { TN__SLOT_UNSHAPED = 1 << 16 };

/* Whether the module itself has such slots. */
bool tn__module_waits(const tn_module *module);
/* What the first call of a lazy module does before all else. */
tn_status tn__lazy_infer(tn_module *module, const tn_pack *pack, tn_tensor *input);
/* Gives slots in the tree the shapes of what is about to be loaded into them. */
tn_status tn__lazy_load(tn_module *module, const tn_state *state);

/* ---- walking ---- */

/* What a walk met, each with a reference of the walk's own, so that visitors may change the tree.
 */
typedef struct tn__met {
    char *path;
    tn_module *module;
    tn_tensor *tensor; /* NULL for a module */
    uint32_t kind;     /* tn_slot_kind */
    uint32_t flags;
} tn__met;

typedef struct tn__walk {
    tn__met *at;
    int64_t count, capacity;
} tn__walk;

/* All that the kinds ask for (TN_SLOT_CHILD: the modules, itself first), in order: per module
 * parameters, buffers, then children, depth first. Reserved slots are left out. */
tn_status tn__walk_collect(tn_module *module, uint32_t kinds, bool duplicates, tn__walk *walk);
/* The same as the options say. */
tn_status tn__walk_with(tn_module *module, uint32_t kinds, const tn_walk_options *options,
                        tn__walk *walk);
/* Whether a child is the first of its parent's slots with that module. */
bool tn__walk_child_is_first(const tn_module *module, int64_t index);
void tn__walk_free(tn__walk *walk);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Modules and states: declarations for this folder and for other folders of the core. */
#ifndef TN_CORE_MODULE_INTERNAL_H
#define TN_CORE_MODULE_INTERNAL_H

#include "core/base/map.h"
#include "core/grad/internal.h"
#include "core/hook/internal.h"

#include <tenon/container.h>
#include <tenon/convert.h>
#include <tenon/init.h>
#include <tenon/layer.h>
#include <tenon/lazy.h>
#include <tenon/module.h>
#include <tenon/state.h>

#define TN__MODULE_DEPTH TN__NESTING

/* A named slot of a module. When slots move, the memory of their names does not, so a name that was
 * read from a slot can be compared by address. */
typedef struct tn__slot {
    char *name;
    tn_tensor *tensor; /* of parameters and buffers: an owned reference, or TN_NONE */
    tn_module *child;  /* of children: an owned reference, or NULL if the name is reserved */
    struct tn__computed *computed; /* owned; for computed slots: no tensor, no child */
    uint32_t flags;                /* TN_SLOT_*, TN__SLOT_UNSHAPED */
} tn__slot;

/* The flags of slots that the public interface has. */
#define TN__SLOT_PUBLIC (TN_SLOT_FLAG_NOT_PERSISTENT | TN_SLOT_FLAG_FIXED_DTYPE)

typedef struct tn__slots {
    tn__slot *at;
    int64_t count, capacity;
    tn__index index; /* by name; empty if there are few slots */
} tn__slots;

/* The forward of a module of the program: one of the two functions. Copies share it. */
typedef struct tn__own_forward {
    _Atomic int32_t refs;
    tn_tensor *(*forward)(tn_module *self, tn_tensor *input);
    tn_status (*call)(tn_module *self, const tn_pack *input, tn_pack *output);
    void *user;
    void (*release)(void *user);
} tn__own_forward;

/* Changes when an option or the forward of any module is set. */
extern _Atomic uint64_t tn__module_epoch;

/* If not NULL, this thread wants to know of modules in which a tensor, a child or an option has
 * changed; NULL: in any. lib/parametrize sets it while the thread keeps computed values. */
extern _Thread_local void (*tn__module_changed_here)(const tn_module *module) TN__TLS_NEAR;
static inline void tn__module_changed(const tn_module *module)
{
    if (tn__unlikely(tn__module_changed_here != NULL))
        tn__module_changed_here(module);
}

/* How the calls of a compiled module run. */
typedef struct tn__compiled {
    /* Computes what forward would. *done is false if forward has to run. */
    tn_status (*call)(struct tn__compiled *self, tn_module *module, const tn_pack *input,
                      tn_pack *output, bool *done);
    /* Appends what tn_module_compile_print writes. */
    void (*print)(struct tn__compiled *self, bool steps, tn__text *text);
    void (*drop)(struct tn__compiled *self);
} tn__compiled;

/* A way to run the calls of modules, which tn_module_compile finds by its name. The folder that has
 * it has its row; lib/library/runners.c lists the rows. */
typedef struct tn__runner {
    const char *name;
    /* Reads the options of the spec, and makes what runs the calls of a module. */
    tn_status (*make)(const tn__spec *spec, tn__compiled **out);
} tn__runner;
/* All rows. The last element is NULL. */
extern TN_HIDDEN const tn__runner *const tn__runners[];

/* Functions of lib/. lib/library/upward_calls.c fills the table. */
typedef struct tn__module_calls {
    /* Returns whether a tensor of the module is parametrized; NULL: whether any is. */
    bool (*is_parametrized)(tn_module *module, const char *name);
    /* Returns whether `rename` may do something. */
    bool (*renames)(const tn_module *module);
    /* Gives entries of an older state the names that the module has for them now. */
    tn_status (*rename)(tn_module *module, tn_loading *loading);
    /* For a module that is made from a printed one, and has got a child of this name. */
    tn_status (*printed)(tn_module *module, const char *child);
} tn__module_calls;
extern TN_HIDDEN const tn__module_calls tn__module_up;

enum {
    TN__FROZEN = 1,          /* a part of a script */
    TN__FROZEN_CONSTANTS = 2 /* the part with the constants: these are not replaced */
};

struct tn_module {
    _Atomic int32_t refs;
    _Atomic int32_t holders; /* number of slots that hold this module as a child */
    int32_t height;          /* levels below this module; updated when a slot stores a child */
    _Atomic int32_t depth;   /* levels above this module; updated when a slot stores it */
    bool training;
    bool build_began; /* if true, the layer's destroy must be called */
    uint8_t frozen;   /* TN__FROZEN, TN__FROZEN_CONSTANTS: slots are neither added nor removed */
    bool printed;     /* made from printed text, of a type that no plugin provides */
    const tn_layer_def *layer; /* the core's copy; NULL if no plugin provides the type */
    struct tn__plugin *plugin;
    const char *type;
    char *tree_type; /* if layer is NULL: the type's name; tree_extra: text before the children */
    char *tree_extra;
    tn__own_forward *own_forward; /* owned; only without a layer. NULL: none */
    /* The right inverse of a parametrization of the program; only without a layer. May be NULL. */
    tn_status (*own_inverse)(tn_module *self, tn_tensor *value, tn_pack *originals);
    void *data; /* the layer's own struct */
    tn__option_block *option_block;
    tn__slots parameters, buffers, children, computed;
    _Atomic uint32_t changes; /* of options and forward */
    tn__hooks *_Atomic hooks; /* NULL until a hook is registered */
    tn__compiled *compiled;   /* owned; NULL: calls run eagerly */
    tn_module *next;          /* in the list of modules that tn_module_drop() is freeing */
};

/* ---- small helpers ---- */

/* Appends the names, as in "weight, bias", for error texts. */
void tn__slots_list(const tn__slots *slots, tn__text *text);

/* Returns the slot of that name, NULL if there is none. */
tn__slot *tn__slots_find(const tn__slots *slots, const char *name);
/* Returns the slot of that name. Appends an empty slot if there is none. Returns NULL and sets the
 * error if memory runs out or the build limit is reached. */
tn__slot *tn__slots_make(tn__slots *slots, const char *name);
void tn__slots_clear(tn__slots *slots);
/* Removes a slot, which the caller got from tn__slots_find(). */
void tn__slots_remove(tn__slots *slots, tn__slot *slot);
/* Rebuilds the index. Must be called after names changed or slots moved. */
void tn__slots_reindex(tn__slots *slots);
/* Stores a child (or NULL) in a slot of the module, takes over the reference to it, and drops the
 * previous child. */
void tn__slot_hold(tn_module *module, tn__slot *slot, tn_module *child);
/* Counts the names that this thread compared and the modules that it visited. A test checks this
 * count instead of measuring time. */
extern _Thread_local uint64_t tn__slot_steps;
/* Checks whether a slot of that kind may be registered under the name. Makes PyTorch's checks, in
 * PyTorch's order. */
tn_status tn__slot_name_check(tn_module *module, uint32_t kind, const char *name);
/* Returns the word for a kind of slot: "parameter", "buffer", "module" or "computed tensor". */
const char *tn__slot_word(uint32_t kind);

/* Computed slots. tn__computed_add() does not check the name, which another slot may have. */
struct tn__computed;
tn_status tn__computed_add(tn_module *module, const char *name, const tn_computed *how, void *user);
tn_tensor *tn__computed_get(tn_module *module, const tn__slot *slot);
tn_status tn__computed_set(tn_module *module, const tn__slot *slot, tn_tensor *tensor);
tn_status tn__computed_copy(const tn_module *from, tn_module *to);
void tn__computed_free(struct tn__computed *computed);
/* Returns the `user` of a computed slot if its functions are those of `how`, else NULL. */
void *tn__computed_user(const tn__slot *slot, const tn_computed *how);

/* Returns the buffer that holds the value of an option: the option is of kind VALUE, and the buffer
 * has its name. NULL: there is no such buffer, and the option struct holds the value. */
const tn__slot *tn__option_buffer(const tn_module *module, const tn_option *row);
/* Appends the values of such a buffer as the text of a nested list, or None. */
tn_status tn__option_buffer_text(const tn__slot *slot, tn__text *text);

/* Appends the spec, or the repr, of a module. */
tn_status tn__module_spec_text(const tn_module *module, tn__text *text);
tn_status tn__module_repr_text(tn_module *module, tn__text *text);

/* Add and drop a reference to a forward of the program. NULL is accepted. */
static inline tn__own_forward *tn__own_forward_keep(tn__own_forward *own)
{
    if (own != NULL)
        atomic_fetch_add(&own->refs, 1);
    return own;
}
void tn__own_forward_drop(tn__own_forward *own);
/* Returns an empty module with one reference. `type` is not copied. */
tn_module *tn__module_new(const char *type);
/* Makes a module without a layer from the arguments of printed text, with its children. Such a tree
 * can be inspected, loaded and saved, but not called. spec_text and columns may be NULL. */
tn_module *tn__module_tree(const char *type, const char *spec_text, const tn_value *values,
                           const char *const *names, const int32_t *columns,
                           const uint8_t *children, int64_t count);
/* Adds the arguments that were written as "(name): Type(...)" as children. `told`: the text had
 * options of the module, from which its layer has made the same children. */
tn_status tn__module_add_printed(tn_module *module, const tn_value *values,
                                 const char *const *names, const uint8_t *children, int64_t count,
                                 bool told);
/* Adds the child that a value of a spec describes. */
tn_status tn__make_child(tn_module *module, const char *name, const tn_value *value);
/* Returns whether the module, or a child of it, is a tree because its printed text does not have
 * the options (or the children) of its layer. */
bool tn__make_lacks_options(const tn_module *module);
bool tn__make_child_lacks_options(const tn_module *module);
/* Makes a module from text. `printed` says that the text is part of the printed form of another
 * module, which may name types that no plugin provides. */
tn_module *tn__make_parse(const char *text, bool printed);
/* Must be called when the last reference to the module was dropped. Returns whether this thread is
 * inside a call of the module. If so, the module is destroyed when its outermost call ends. */
bool tn__call_holds(const tn_module *module);
/* Calls a module without hooks and lets its layer compute the first *done of the `count` followers
 * with it (tn_layer_def.fuse), maybe none. Returns a tensor of the scope. */
tn_tensor *tn__call_fused(tn_module *module, tn_tensor *input, const tn_follower *followers,
                          int64_t count, int64_t *done);
/* Until it is called again, calls of `module` on this thread run forward without hooks, and
 * eagerly. Returns the module that the previous call of this function set. */
tn_module *tn__call_bare(tn_module *module);
/* Appends the path of the innermost module that this thread is calling, from the outermost one. */
void tn__call_path(tn__text *text);
/* Frees the module if it has no references. */
void tn__module_destroy(tn_module *module);

/* Makes a module of a layer, by the layer's name. `children` (may be NULL) marks the values that
 * the text had in the form "(name): Type(...)". */
tn_module *tn__module_make(const char *type, const char *spec_text, const tn_value *values,
                           const char *const *names, const int32_t *columns,
                           const uint8_t *children, int64_t count);

/* ---- building ---- */

enum { TN__BUILD_MAX = 1 << 18 }; /* see docs/guides/spec-strings.md */

/* Between begin and end, the slots that this thread makes are counted. Pairs of begin and end may
 * be nested: the outermost begin resets the count. A nested begin fails if the stack of the thread
 * carries no further level; then there is no end. */
tn_status tn__build_limit_begin(void);
void tn__build_limit_end(void);
/* Counts one more slot. Fails if there are more than TN__BUILD_MAX, or if the program cancels.
 * `name` is for the error text. */
tn_status tn__build_limit_count(const char *name);
/* Reports progress to the program from time to time. Fails if the program cancels. */
tn_status tn__build_limit_step(void);

/* ---- hooks ---- */

/* Registers the hooks of `from` on its copy `to`. */
tn_status tn__module_hooks_copy(tn_module *from, tn_module *to);
/* Run the global hooks on registration, which may replace a value before it is stored under a name.
 * A replacement tensor belongs to the scope. *child becomes a reference that the caller drops, or
 * NULL on failure. */
tn_status tn__hooks_registering_tensor(tn_module *module, tn_slot_kind slot, const char *name,
                                       tn_tensor **tensor);
tn_status tn__hooks_registering_child(tn_module *module, const char *name, tn_module **child);

/* Fills the gradient of a tensor with zeros, in the same memory. A gradient that is part of a graph
 * is replaced by a detached tensor first, so that the tensor in the graph keeps its history. */
tn_status tn__module_zero_grad(tn_tensor *tensor);

/* Calls the layer's reset function, if it has one. */
tn_status tn__module_reset(tn_module *module);
/* Sets whether tn_init in this thread checks its arguments but fills nothing. Returns the previous
 * setting. */
bool tn__init_skip(bool skip);
bool tn__init_skipped(void);

/* ---- lazy modules ---------------------------------------------------------------------------- */

/* A flag of slots, next to TN_SLOT_FLAG_NOT_PERSISTENT: the tensor of the slot has no shape yet.
 * Until then the slot holds a tensor of shape [0] with the right dtype and device. */
enum { TN__SLOT_UNSHAPED = 1 << 16 };

/* Returns whether a slot of this module (not of its children) is unshaped. */
bool tn__module_waits(const tn_module *module);
/* Infers the missing shapes of a lazy module. Its first call does this before anything else. If
 * `pack` is NULL, `input` is the only input. */
tn_status tn__lazy_infer(tn_module *module, const tn_pack *pack, tn_tensor *input);
/* Gives the unshaped slots in the tree the shapes of the tensors that will be loaded into them. */
tn_status tn__lazy_load(tn_module *module, const tn_state *state);

/* Marks the tensors of a new module that was not initialized, so that a load with TN_LOAD_TAKE may
 * exchange their memory (load_take.c). */
tn_status tn__load_take_mark(tn_module *module);
/* Sets *wanted to whether a tensor of the module has no values yet: it is on a device without
 * memory, or was marked. */
tn_status tn__load_take_wanted(tn_module *module, bool *wanted);

/* ---- walking ---- */

/* A module or tensor that a walk will visit. The walk owns a reference to it, so that visitors may
 * change the tree. */
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

/* Sets the mode of a module, but not of those below it. */
tn_status tn__module_set_mode(tn_module *module, bool training);
/* Collects what `kinds` selects (TN_SLOT_CHILD selects the modules, beginning with `module`
 * itself). For each module, its parameters come first, then its buffers, then its children, depth
 * first. Reserved slots are left out. */
tn_status tn__walk_collect(tn_module *module, uint32_t kinds, bool duplicates, tn__walk *walk);
/* Like tn__walk_collect(), with all options of a walk. */
tn_status tn__walk_with(tn_module *module, uint32_t kinds, const tn_walk_options *options,
                        tn__walk *walk);
/* Returns whether no earlier child slot of the module holds the same child. */
bool tn__walk_child_is_first(const tn_module *module, int64_t index);
void tn__walk_free(tn__walk *walk);

#endif

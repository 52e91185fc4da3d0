/* SPDX-License-Identifier: MIT
 *
 * Modules: a tree of named slots (parameters, buffers, children) with a forward.
 * tenon-interface: tenon.module 0
 *
 * Forward reads every parameter through its slot on each call: slots may be stored, reserved
 * (registered without a value: TN_NONE) or computed. Children are reference counted; a child does
 * not own its parent. */
#ifndef TENON_MODULE_H
#define TENON_MODULE_H

#include <tenon/grad.h>

TN_BEGIN_DECLS

/* ---- making ---------------------------------------------------------------------------------- */

/* A module from a spec: "Sequential(Linear(784, %d), ReLU())"; the format is tn_snprint's.
 * Parameters are made on the default device. [owned] */
TN_API tn_module *tn_module_newv(const char *format, va_list args);
TN_API tn_module *tn_module_new(const char *format, ...);
/* The same from text that is not a format: for text from a user; also reads printed modules (repr).
 * [owned] */
TN_API tn_module *tn_module_parse(const char *text);
/* A module whose parameters and buffers are not initialised, and no random number is drawn; for a
 * module whose state is loaded next. NULL device: the default device. [owned]
 * [null-ok: device] */
TN_API tn_module *tn_module_skip_initv(const tn_device *device, const char *format, va_list args);
TN_API tn_module *tn_module_skip_init(const tn_device *device, const char *format, ...);
/* The same from text that is not a format. [owned] [null-ok: device] */
TN_API tn_module *tn_module_parse_skip_init(const tn_device *device, const char *text);
/* The typed form, for bindings: positional arguments first, then named ones; `names[i]` is NULL for
 * a positional one. [owned] [array: values count] [null-ok: names] */
TN_API tn_module *tn_module_make(const char *type, const tn_value *values, const char *const *names,
                                 int64_t count);

/* One more reference; returns the module. [owned] */
TN_API tn_module *tn_module_keep(tn_module *module);
/* Drops a reference; the last one frees the module. [null-ok: module] */
TN_API void tn_module_drop(tn_module *module);

/* ---- calling --------------------------------------------------------------------------------- */

/* One tensor in, one out. [scoped] [null-through] */
TN_API tn_tensor *tn_module_call(tn_module *module, tn_tensor *input);
/* Calls the child of that name: the usual step in forward of a module with children.
 * [scoped] [null-through] */
TN_API tn_tensor *tn_module_call_child(tn_module *module, const char *name, tn_tensor *input);
/* Value packs in and out; `output` is empty at the call. */
TN_API tn_status tn_module_call_pack(tn_module *module, const tn_pack *input, tn_pack *output);

/* ---- what it is ------------------------------------------------------------------------------ */

/* The name of its type: "Linear". [borrowed] */
TN_API const char *tn_module_type(const tn_module *module);
/* The layer's own struct (its options first filled in from the spec). [borrowed] */
TN_API void *tn_module_data(const tn_module *module);
/* The mode of the module: training, else evaluation. */
TN_API bool tn_module_is_training(const tn_module *module);
/* Sets the mode of the module and all below; calls a layer's `train`. */
TN_API tn_status tn_module_train(tn_module *module, bool training);
#define tn_module_eval(module) tn_module_train(module, false)
/* Complete text that builds the same again / PyTorch's printed form. Writes at most `size` bytes;
 * returns the length of the whole. [null-ok: out] */
TN_API int64_t tn_module_spec(tn_module *module, char *out, size_t size);
TN_API int64_t tn_module_repr(tn_module *module, char *out, size_t size);

/* ---- slots ----------------------------------------------------------------------------------- */

typedef uint32_t tn_slot_kind;
enum {
    TN_SLOT_PARAMETER = 1,
    TN_SLOT_BUFFER = 2,
    TN_SLOT_CHILD = 4,
    TN_SLOT_COMPUTED = 8 /* found by name; walks, states and conversions leave it out */
};

enum {
    TN_SLOT_NOT_PERSISTENT = 1, /* a buffer that state_dict leaves out */
    TN_SLOT_FIXED_DTYPE = 2     /* moves, and keeps its dtype in conversions: a scale in float32 */
};

/* Registers a parameter: the result of tn_parameter; a plain tensor is TN_ERR_TYPE; TN_NONE
 * reserves the name. The name is not empty, has no dot and is not taken by another kind:
 * TN_ERR_KEY. The module keeps a reference of its own. */
TN_API tn_status tn_module_add_parameter(tn_module *module, const char *name, tn_tensor *tensor);
/* The same for a buffer; `flags`: TN_SLOT_*. */
TN_API tn_status tn_module_add_buffer(tn_module *module, const char *name, tn_tensor *tensor,
                                      uint32_t flags);
/* The module keeps a reference of its own; the caller's stays the caller's. NULL child fails
 * without a new error. [null-through] */
TN_API tn_status tn_module_add_child(tn_module *module, const char *name, tn_module *child);

/* Children from specs, in one go: "conv=Conv2d(3, %d, 5), act=ReLU()"; the format is tn_snprint's.
 * Every name is new: TN_ERR_KEY. All are added or, with an error, none. */
TN_API tn_status tn_module_add_childrenv(tn_module *module, const char *format, va_list args);
TN_API tn_status tn_module_add_children(tn_module *module, const char *format, ...);
/* The same from text that is not a format. */
TN_API tn_status tn_module_parse_children(tn_module *module, const char *text);

/* Registers the name of a child without a module, as TN_NONE does for a tensor. */
TN_API tn_status tn_module_reserve_child(tn_module *module, const char *name);

/* How a computed slot gets its tensor. Frozen. Any thread calls its functions. */
typedef struct tn_computed {
    /* Called by every tn_module_get of the name, in a scope of its own: the tensor, or NULL with an
     * error. Must not get the same name or remove the slot. */
    tn_tensor *(*get)(void *user, tn_module *module, const char *name);
    /* Called when the slot is assigned; NULL: it cannot be set. */
    tn_status (*set)(void *user, tn_module *module, const char *name, tn_tensor *tensor);
    /* Frees `user` when the slot is removed. May be NULL. */
    void (*release)(void *user);
    /* For a copy of the module: returns its `user`. NULL: `user` is NULL, or the module cannot be
     * copied. */
    tn_status (*copy)(void *user, tn_module *copy, void **copied);
    void *reserved[4];
} tn_computed;

/* Registers a name whose tensor is computed on every access, usually from parameters of the module
 * or of a child. `how` is copied; on failure `user` stays the caller's. [null-ok:
 * user] */
TN_API tn_status tn_module_add_computed(tn_module *module, const char *name, const tn_computed *how,
                                        void *user);

/* The tensor in a slot of this module (parameter, buffer, or computed now), TN_NONE if reserved,
 * NULL and TN_ERR_ATTR if there is none. What forward calls. [borrowed] */
TN_API tn_tensor *tn_module_get(tn_module *module, const char *name);
/* Assigns a tensor to a name, as `module.name = tensor` does in Python: a parameter takes the name
 * from a buffer, child or parameter that has it; any other tensor goes into the buffer or the
 * computed slot of that name and is TN_ERR_TYPE for a parameter or a child; TN_NONE empties the
 * slot, whose name and place stay. An unknown name is TN_ERR_ATTR: a plain tensor registers
 * nothing. */
TN_API tn_status tn_module_set(tn_module *module, const char *name, tn_tensor *tensor);
/* The same for any value: a module takes the name from any slot that has it; None empties the slot;
 * a value that is neither a tensor nor a module is TN_ERR_TYPE. */
TN_API tn_status tn_module_assign(tn_module *module, const char *name, tn_value value);
/* The kind of the slot of that name; 0 if there is none. */
TN_API uint32_t tn_module_slot_kind(const tn_module *module, const char *name);
/* Child by name / number of children / child by place (negative: from the end) and its name; a name
 * that is reserved gives NULL without an error. [borrowed] */
TN_API tn_module *tn_module_child(tn_module *module, const char *name);
TN_API int64_t tn_module_child_count(tn_module *module);
TN_API tn_module *tn_module_child_at(tn_module *module, int64_t index);
TN_API const char *tn_module_child_name(tn_module *module, int64_t index);
/* Removes a slot of any kind. */
TN_API tn_status tn_module_remove(tn_module *module, const char *name);

/* By dotted path, "0.weight". [borrowed] */
TN_API tn_module *tn_module_find(tn_module *module, const char *path);
TN_API tn_tensor *tn_module_find_tensor(tn_module *module, const char *path);
/* The same where the kind matters; the other kind under that name is TN_ERR_ATTR. A reserved
 * parameter is an error, too; a reserved buffer is TN_NONE. [borrowed] */
TN_API tn_tensor *tn_module_find_parameter(tn_module *module, const char *path);
TN_API tn_tensor *tn_module_find_buffer(tn_module *module, const char *path);
/* Stores a child at a dotted path: replaces an existing one, else adds it at the end of its parent,
 * which must exist; with `strict` it only replaces. [null-through] */
TN_API tn_status tn_module_set_child(tn_module *module, const char *path, tn_module *child,
                                     bool strict);

/* ---- walking --------------------------------------------------------------------------------- */

/* A set of modules that walks have visited. It does not keep them alive. */
typedef struct tn_memo tn_memo;
/* An empty set. [owned] */
TN_API tn_memo *tn_memo_new(void);
/* Frees the set. [null-ok: memo] */
TN_API void tn_memo_drop(tn_memo *memo);
/* Adds a module / says whether it is there. */
TN_API tn_status tn_memo_add(tn_memo *memo, const tn_module *module);
TN_API bool tn_memo_has(const tn_memo *memo, const tn_module *module);

enum {
    TN_WALK_DUPLICATES = 1, /* tensors and modules reached twice are visited twice, once per path */
    TN_WALK_DIRECT = 2      /* the module's own slots: its tensors, its children; not itself */
};

typedef struct tn_walk_options {
    uint32_t size; /* sizeof(tn_walk_options) */
    uint32_t flags;
    const char *prefix; /* prepended to every path; NULL: nothing */
    tn_memo *memo; /* these modules, and all below them, are skipped; visited ones are added, except
                      with TN_WALK_DUPLICATES. NULL: none */
} tn_walk_options;

/* What a walk visits. Frozen. */
typedef struct tn_visit {
    const char *path;  /* dotted */
    tn_module *module; /* the module; of a tensor, the one that has it */
    tn_tensor *tensor; /* NULL for a module */
    uint32_t kind;     /* tn_slot_kind */
    uint32_t flags;    /* TN_SLOT_* */
} tn_visit;

/* Visits what `kinds` (an OR of tn_slot_kind) selects: for each module, itself, its parameters, its
 * buffers, then the same of its children, depth first, in order of registration; reserved slots are
 * left out. The walk sees the module as it was when it began, so `visit` may change it. A failing
 * visit ends it. [null-ok: options, user] */
TN_API tn_status tn_module_walk(tn_module *module, uint32_t kinds, const tn_walk_options *options,
                                tn_status (*visit)(void *user, const tn_visit *what), void *user);
/* The short form for parameters and / or buffers: each tensor once unless `duplicates`.
 * [null-ok: user] */
TN_API tn_status tn_module_each_tensor(tn_module *module, uint32_t kinds, bool duplicates,
                                       tn_status (*visit)(void *user, const char *path,
                                                          tn_tensor *tensor),
                                       void *user);
/* The same for modules; the module itself first, with path "". [null-ok: user] */
TN_API tn_status tn_module_each(tn_module *module, bool duplicates,
                                tn_status (*visit)(void *user, const char *path, tn_module *module),
                                void *user);
/* Calls `visit` for every module, children before their parent, the module itself last; usually to
 * initialise. A child that two modules share is visited for each of them. [null-ok:
 * user] */
TN_API tn_status tn_module_apply(tn_module *module,
                                 tn_status (*visit)(void *user, tn_module *module), void *user);
/* Number of parameters' elements. */
TN_API int64_t tn_module_parameter_count(tn_module *module);

/* ---- changing -------------------------------------------------------------------------------- */

/* Sets gradients of parameters to none. [null-through] */
TN_API tn_status tn_module_zero_grad(tn_module *module);
/* Fills existing gradients with zeros instead, in the same memory and outside any graph.
 * [null-through] */
TN_API tn_status tn_module_zero_grad_in_place(tn_module *module);
/* Whether the parameters of the module, and of all below it, require gradients. */
TN_API tn_status tn_module_set_requires_grad(tn_module *module, bool requires_grad);

/* ---- initialisation -------------------------------------------------------------------------- */

/* Fills a tensor by an init of a plugin: "kaiming_uniform(a=%g)". Returns a status; the gradient
 * graph is not touched. [null-through] */
TN_API tn_status tn_initv(tn_tensor *tensor, const char *format, va_list args);
TN_API tn_status tn_init(tn_tensor *tensor, const char *format, ...);
/* The same from text that is not a format. [null-through] */
TN_API tn_status tn_init_parse(tn_tensor *tensor, const char *text);
/* Fills the module's own parameters and buffers again as when it was made, in place (not those of
 * its children: tn_module_each visits them). TN_ERR_ATTR for a layer that has nothing to
 * initialise. */
TN_API tn_status tn_module_reset_parameters(tn_module *module);

/* The member `user` of the descriptor of the module's layer. [borrowed] */
TN_API void *tn_module_user(const tn_module *module);

/* Whether the dtype of a parameter or buffer of this module stays in conversions
 * (TN_SLOT_FIXED_DTYPE): sets the flag of the slot, which keeps it when another tensor is stored
 * there; TN_ERR_ATTR where there is no such slot. A tensor in several slots keeps its dtype when
 * one of them, in the tree that is converted, has the flag. */
TN_API tn_status tn_module_set_fixed_dtype(tn_module *module, const char *name, bool fixed);
/* The same question; false for a name without such a slot. */
TN_API bool tn_module_has_fixed_dtype(const tn_module *module, const char *name);

TN_END_DECLS
#endif

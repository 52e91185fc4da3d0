/* SPDX-License-Identifier: MIT
 *
 * Modules: trees of named slots (parameters, buffers, children) with a forward function.
 * tenon-interface: tenon.module 0
 *
 * A slot holds a tensor, is reserved (registered without a value: TN_NONE), or is computed on each
 * access. Forward gets every parameter through its slot on each call. Modules are reference
 * counted; a child does not own its parent.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_MODULE_H
#define TENON_MODULE_H

#include <tenon/grad.h>

TN_BEGIN_DECLS

/* ---- creating modules ------------------------------------------------------------------------ */

/* Creates a module from a spec, such as "Sequential(Linear(784, %d), ReLU())". The format is that
 * of tn_snprint. The parameters are created on the default device. [owned] */
TN_API tn_module *tn_module_newv(const char *format, va_list args);
TN_API tn_module *tn_module_new(const char *format, ...);
/* Like tn_module_new, but `text` is the spec itself and not a format, as needed for text from a
 * user. Also accepts the printed form of a module (tn_module_repr). [owned] */
TN_API tn_module *tn_module_parse(const char *text);
/* Like tn_module_parse, but without initializing parameters and buffers and without drawing random
 * numbers. For a module whose state is loaded next. NULL device: the default device. [owned]
 * [null-ok: device] */
TN_API tn_module *tn_module_parse_skip_init(const tn_device *device, const char *text);
/* Creates a module from a layer name and values. For bindings to other languages. Positional
 * arguments come first, then named ones; `names[i]` is NULL for a positional argument. NULL names:
 * all arguments are positional. [owned] [array: values count] [null-ok: names] */
TN_API tn_module *tn_module_make(const char *type, const tn_value *values, const char *const *names,
                                 int64_t count);

/* Adds a reference for the caller and returns the module. [owned] */
TN_API tn_module *tn_module_keep(tn_module *module);
/* Drops a reference; the last one frees the module. [null-ok: module] */
TN_API void tn_module_drop(tn_module *module);

/* ---- calling modules ------------------------------------------------------------------------- */

/* Calls a module with one tensor. Returns its only result. [scoped] [null-through] */
TN_API tn_tensor *tn_module_call(tn_module *module, tn_tensor *input);
/* Calls the child called `name` with one tensor. For the forward function of a module with
 * children. [scoped] [null-through] */
TN_API tn_tensor *tn_module_call_child(tn_module *module, const char *name, tn_tensor *input);
/* Calls a module with any arguments and results. `output` must be empty. */
TN_API tn_status tn_module_call_pack(tn_module *module, const tn_pack *input, tn_pack *output);

/* ---- type, data and mode of a module --------------------------------------------------------- */

/* Returns the name of the layer, such as "Linear". [borrowed] */
TN_API const char *tn_module_type(const tn_module *module);
/* Returns the data struct of the layer. The options of the spec were stored there before `build`
 * ran. [borrowed] */
TN_API void *tn_module_data(const tn_module *module);
/* Returns the mode of the module: true for training, false for evaluation. */
TN_API bool tn_module_is_training(const tn_module *module);
/* Sets the mode of the module and of all modules below it, then calls `train` of their layers. */
TN_API tn_status tn_module_train(tn_module *module, bool training);
#define tn_module_eval(module) tn_module_train(module, false)
/* tn_module_spec writes a text from which tn_module_parse creates an equal module. tn_module_repr
 * writes the printed form, the same as in PyTorch. Both write at most `size` bytes including the
 * final NUL and return the length of the complete text. [null-ok: out] */
TN_API int64_t tn_module_spec(tn_module *module, char *out, size_t size);
TN_API int64_t tn_module_repr(tn_module *module, char *out, size_t size);

/* ---- slots ----------------------------------------------------------------------------------- */

typedef uint32_t tn_slot_kind;
enum {
    TN_SLOT_PARAMETER = 1,
    TN_SLOT_BUFFER = 2,
    TN_SLOT_CHILD = 4,
    TN_SLOT_COMPUTED = 8 /* found by name; left out by walks, states and conversions */
};

enum {
    TN_SLOT_FLAG_NOT_PERSISTENT = 1, /* a buffer that is not part of the state */
    /* The tensor moves between devices but keeps its dtype in conversions, such as a scale that
     * must stay float32. */
    TN_SLOT_FLAG_FIXED_DTYPE = 2
};

/* Registers a parameter. The tensor must come from tn_parameter; any other tensor fails with
 * TN_ERR_TYPE. TN_NONE reserves the name. A parameter that the name has already is replaced. Fails
 * with TN_ERR_KEY if the name is empty, contains a dot, or belongs to a slot of another kind. The
 * module adds its own reference. */
TN_API tn_status tn_module_add_parameter(tn_module *module, const char *name, tn_tensor *tensor);
/* Like tn_module_add_parameter, for a buffer, which may be any tensor. `flags`: TN_SLOT_*. */
TN_API tn_status tn_module_add_buffer(tn_module *module, const char *name, tn_tensor *tensor,
                                      uint32_t flags);
/* Registers a child, in place of one that the name has already. The module adds its own reference;
 * the caller keeps the reference it has. Fails with TN_ERR_VALUE if the child is the module itself
 * or contains it. [null-through] */
TN_API tn_status tn_module_add_child(tn_module *module, const char *name, tn_module *child);

/* Creates and registers several children from one text, such as "conv=Conv2d(3, %d, 5),
 * act=ReLU()". The format is that of tn_snprint. Fails with TN_ERR_KEY if a slot already has one of
 * the names. If the function fails, no child is added. */
TN_API tn_status tn_module_add_childrenv(tn_module *module, const char *format, va_list args);
TN_API tn_status tn_module_add_children(tn_module *module, const char *format, ...);
/* Like tn_module_add_children, but `text` is not a format. */
TN_API tn_status tn_module_parse_children(tn_module *module, const char *text);

/* Reserves the name of a child, as TN_NONE does for a tensor. */
TN_API tn_status tn_module_reserve_child(tn_module *module, const char *name);

/* The functions of a computed slot. The layout never changes. Any thread may call the functions. */
typedef struct tn_computed {
    /* Called by every tn_module_get for the name, in a scope of its own. Returns the tensor, or
     * NULL after recording a failure. Must not get the same name or remove the slot. */
    tn_tensor *(*get)(void *user, tn_module *module, const char *name);
    /* Called when a tensor is assigned to the slot. NULL: the slot cannot be assigned. */
    tn_status (*set)(void *user, tn_module *module, const char *name, tn_tensor *tensor);
    /* Called when the slot is removed, to free `user`. May be NULL. */
    void (*release)(void *user);
    /* Called when the module is copied: stores the `user` of the copy in *copied. If `copy` is NULL
     * and `user` is not, the module cannot be copied. */
    tn_status (*copy)(void *user, tn_module *copy, void **copied);
    void *reserved[4];
} tn_computed;

/* Registers a computed slot: its tensor is computed on every access, usually from parameters of the
 * module or of a child. `how` is copied. If the function fails, the caller still owns `user`.
 * [null-ok: user] */
TN_API tn_status tn_module_add_computed(tn_module *module, const char *name, const tn_computed *how,
                                        void *user);

/* Returns the tensor of a parameter, a buffer or a computed slot (which is computed now) of this
 * module; TN_NONE if the slot is reserved. Returns NULL and records TN_ERR_ATTR if there is no such
 * slot. The forward functions of layers use it. [borrowed] */
TN_API tn_tensor *tn_module_get(tn_module *module, const char *name);
/* Assigns a tensor to a name, as `module.name = tensor` does in Python. If the slot is computed,
 * its `set` is called. Otherwise a parameter is registered under the name and replaces any
 * parameter, buffer or child of that name. Any other tensor is stored in the buffer of that name;
 * this fails with TN_ERR_TYPE if the name belongs to a parameter or a child, and with TN_ERR_ATTR
 * if no slot has the name. TN_NONE empties the slot, which keeps its name and place. */
TN_API tn_status tn_module_set(tn_module *module, const char *name, tn_tensor *tensor);
/* Like tn_module_set, for a value of any kind. A module replaces the parameter, buffer or child of
 * that name. None empties the slot. Fails with TN_ERR_TYPE if the value is neither a tensor nor a
 * module nor None. */
TN_API tn_status tn_module_assign(tn_module *module, const char *name, tn_value value);
/* Returns the kind of the slot called `name`; 0 if there is none. */
TN_API uint32_t tn_module_slot_kind(const tn_module *module, const char *name);
/* tn_module_child returns a child by name, tn_module_child_at by index (a negative index counts
 * from the end); both return NULL without an error if the name is reserved. tn_module_child_count
 * returns the number of children, tn_module_child_name the name of a child. [borrowed] */
TN_API tn_module *tn_module_child(tn_module *module, const char *name);
TN_API int64_t tn_module_child_count(tn_module *module);
TN_API tn_module *tn_module_child_at(tn_module *module, int64_t index);
TN_API const char *tn_module_child_name(tn_module *module, int64_t index);
/* Removes a slot of any kind. */
TN_API tn_status tn_module_remove(tn_module *module, const char *name);

/* tn_module_find returns the module at a dotted path, such as "encoder.0"; tn_module_find_tensor
 * returns the tensor, such as "encoder.0.weight". [borrowed] */
TN_API tn_module *tn_module_find(tn_module *module, const char *path);
TN_API tn_tensor *tn_module_find_tensor(tn_module *module, const char *path);
/* Like tn_module_find_tensor, but only for a parameter or only for a buffer. Fails with TN_ERR_ATTR
 * if the tensor is of the other kind. Fails also for a reserved parameter; for a reserved buffer
 * TN_NONE is returned. [borrowed] */
TN_API tn_tensor *tn_module_find_parameter(tn_module *module, const char *path);
TN_API tn_tensor *tn_module_find_buffer(tn_module *module, const char *path);
/* Stores a child at a dotted path. Replaces an existing child, or adds a new child at the end of
 * its parent, which must exist. With `strict`, the child must already exist. [null-through] */
TN_API tn_status tn_module_set_child(tn_module *module, const char *path, tn_module *child,
                                     bool strict);

/* ---- visiting all modules of a tree ---------------------------------------------------------- */

/* A set of modules, for walks that must not visit a module twice. The set does not own the
 * modules. */
typedef struct tn_memo tn_memo;
/* Returns a new, empty set. [owned] */
TN_API tn_memo *tn_memo_new(void);
/* Frees the set. [null-ok: memo] */
TN_API void tn_memo_drop(tn_memo *memo);
/* tn_memo_add adds a module to the set. tn_memo_has returns whether the set contains the module. */
TN_API tn_status tn_memo_add(tn_memo *memo, const tn_module *module);
TN_API bool tn_memo_has(const tn_memo *memo, const tn_module *module);

enum {
    /* A tensor or module that is reached by several paths is visited once for each path. */
    TN_WALK_DUPLICATES = 1,
    /* Only the tensors and children of the module are visited: neither the module itself nor
     * anything below its children. */
    TN_WALK_DIRECT = 2
};

typedef struct tn_walk_options {
    uint32_t size; /* sizeof(tn_walk_options) */
    uint32_t flags;
    const char *prefix; /* inserted before every path; NULL: nothing */
    /* The walk skips these modules and everything below them, and adds the modules that it visits
     * (except with TN_WALK_DUPLICATES). NULL: none. */
    tn_memo *memo;
} tn_walk_options;

/* One visit of a walk. The layout never changes. */
typedef struct tn_visit {
    const char *path;  /* dotted path */
    tn_module *module; /* the visited module, or the module that has the tensor */
    tn_tensor *tensor; /* the visited tensor; NULL for a module */
    uint32_t kind;     /* tn_slot_kind */
    uint32_t flags;    /* TN_SLOT_* */
} tn_visit;

/* Calls `visit` for everything that `kinds` (an OR of tn_slot_kind) selects. The order for each
 * module is: the module itself, its parameters, its buffers, then its children in the same way, all
 * in the order of registration. Reserved slots are left out. `visit` may change the module: the
 * walk goes over the tree as it was at the start. If `visit` fails, the walk ends with that
 * failure. [null-ok: options, user] */
TN_API tn_status tn_module_walk(tn_module *module, uint32_t kinds, const tn_walk_options *options,
                                tn_status (*visit)(void *user, const tn_visit *what), void *user);
/* Calls `visit` for all parameters, buffers or both of the module and of all modules below it. Each
 * tensor is visited once, unless `duplicates` is true. [null-ok: user] */
TN_API tn_status tn_module_each_tensor(tn_module *module, uint32_t kinds, bool duplicates,
                                       tn_status (*visit)(void *user, const char *path,
                                                          tn_tensor *tensor),
                                       void *user);
/* Calls `visit` for the module, with path "", and then for all modules below it. Each module is
 * visited once, unless `duplicates` is true. [null-ok: user] */
TN_API tn_status tn_module_each(tn_module *module, bool duplicates,
                                tn_status (*visit)(void *user, const char *path, tn_module *module),
                                void *user);
/* Calls `visit` for every module, children before their parent, so the module itself comes last.
 * Usually to initialize modules. A child of two modules is visited twice. [null-ok: user] */
TN_API tn_status tn_module_apply(tn_module *module,
                                 tn_status (*visit)(void *user, tn_module *module), void *user);
/* Returns the total number of elements of all parameters. */
TN_API int64_t tn_module_parameter_count(tn_module *module);

/* ---- gradients of parameters ----------------------------------------------------------------- */

/* Removes the gradients of all parameters; tn_tensor_grad then returns TN_NONE. [null-through] */
TN_API tn_status tn_module_zero_grad(tn_module *module);
/* Fills the existing gradients of all parameters with zeros, in the same memory and without
 * recording. [null-through] */
TN_API tn_status tn_module_zero_grad_in_place(tn_module *module);
/* Sets whether the parameters of the module and of all modules below it require gradients. */
TN_API tn_status tn_module_set_requires_grad(tn_module *module, bool requires_grad);

/* ---- initialization, and the fixed dtype of a slot ------------------------------------------- */

/* Fills a tensor with an init, such as "kaiming_uniform(a=%g)". The format is that of tn_snprint.
 * The operation is not recorded for gradients. [null-through] */
TN_API tn_status tn_initv(tn_tensor *tensor, const char *format, va_list args);
TN_API tn_status tn_init(tn_tensor *tensor, const char *format, ...);
/* Like tn_init, but `text` is not a format. [null-through] */
TN_API tn_status tn_init_parse(tn_tensor *tensor, const char *text);
/* Initializes the parameters and buffers of the module again, in place, as when the module was
 * created. Those of its children are not changed; use tn_module_each to visit the children. Fails
 * with TN_ERR_ATTR if the layer has nothing to initialize. */
TN_API tn_status tn_module_reset_parameters(tn_module *module);

/* Returns the member `user` of the descriptor of the module's layer. [borrowed] */
TN_API void *tn_module_user(const tn_module *module);

/* Sets or clears the flag TN_SLOT_FLAG_FIXED_DTYPE of a parameter or buffer slot: with the flag,
 * the tensor keeps its dtype in conversions. The slot keeps the flag when another tensor is stored
 * in it. Fails with TN_ERR_ATTR if there is no such slot. A tensor in several slots keeps its dtype
 * if one of these slots, within the converted tree, has the flag. */
TN_API tn_status tn_module_set_fixed_dtype(tn_module *module, const char *name, bool fixed);
/* Returns whether a slot has the flag TN_SLOT_FLAG_FIXED_DTYPE; false if there is no such slot. */
TN_API bool tn_module_has_fixed_dtype(const tn_module *module, const char *name);

/* Calls the module with several tensors, as positional arguments: TN_NONE is None. `outputs` gets
 * the first `n_outputs` tensors of the results, those within tuples, lists and dictionaries in
 * their order, TN_NONE for None: of an LSTM the output, h and c. Fewer results, or one of another
 * kind, are an error. After a failure all outputs are NULL. [scoped]
 * [array: inputs n_inputs, outputs n_outputs] */
TN_API tn_status tn_module_call_many(tn_module *module, tn_tensor *const *inputs, int64_t n_inputs,
                                     tn_tensor **outputs, int64_t n_outputs);

/* ---- modules of the program ------------------------------------------------------------------ */

/* Creates a module without parameters, children and forward. `type` is the name that is printed,
 * such as "Net", of letters, digits, `_` and dots; a layer with this name is not used. The program
 * then adds parameters and children, and sets the forward. [owned] */
TN_API tn_module *tn_module_plain(const char *type);
/* Sets the forward of a module that tn_module_plain made, or whose type was only read from printed
 * text. `forward` returns a tensor of the innermost scope, or NULL and records a failure; in
 * `forward`, tn_module_user(self) returns `user`. Deep copies of the module share the forward.
 * `release`, if not NULL, frees `user` when the module and these copies have been freed or have got
 * another forward. If the function fails, `user` still belongs to the caller. Fails with
 * TN_ERR_TYPE if the module's layer has a forward of its own. [null-ok: user, release] */
TN_API tn_status tn_module_set_forward(tn_module *module,
                                       tn_tensor *(*forward)(tn_module *self, tn_tensor *input),
                                       void *user, void (*release)(void *user));
/* Like tn_module_set_forward, for a forward that takes several arguments or returns several
 * results. A module has one forward: each of the two functions replaces the forward that the other
 * one has set. [null-ok: user, release] */
TN_API tn_status tn_module_set_call(tn_module *module,
                                    tn_status (*call)(tn_module *self, const tn_pack *input,
                                                      tn_pack *output),
                                    void *user, void (*release)(void *user));

/* ---- walking in a loop ----------------------------------------------------------------------- */

/* A walk as a loop:
 *     tn_walk *walk = tn_walk_begin(net, TN_SLOT_PARAMETER, NULL);
 *     for (const tn_visit *at = tn_walk_next(walk); at != NULL; at = tn_walk_next(walk))
 *         printf("%s\n", at->path);
 *     tn_walk_end(walk);
 */
typedef struct tn_walk tn_walk;
/* Collects the modules and tensors that tn_module_walk would visit, and keeps them alive until
 * tn_walk_end. [owned] [null-ok: options] */
TN_API tn_walk *tn_walk_begin(tn_module *module, uint32_t kinds, const tn_walk_options *options);
/* Returns the next visit, which is valid until the next call; NULL after the last visit. [borrowed]
 * [null-ok: walk] */
TN_API const tn_visit *tn_walk_next(tn_walk *walk);
/* Ends a walk and frees it. [null-ok: walk] */
TN_API void tn_walk_end(tn_walk *walk);

/* ---- options of a module, by name ------------------------------------------------------------ */

/* Adds the current value of an option of the module's layer to `out`, under the option's name, as a
 * spec could give it: several numbers as a tuple, a dtype as its name, the weight of a loss as the
 * tensor of its buffer. Fails with TN_ERR_KEY if the layer has no such option. */
TN_API tn_status tn_module_option_get(tn_module *module, const char *name, tn_pack *out);
/* Changes an option, as `conv.stride = (2, 2)` does in Python. The value is checked as in a spec,
 * by the option table and the layer's `build`; after a failure the module is as before. Parameters
 * and children stay: an option that they depend on, such as in_features, is refused with
 * TN_ERR_VALUE. A layer whose data struct has more than options (it defines `destroy` or `copy`, or
 * takes a list) refuses every change with TN_ERR_NOT_IMPLEMENTED. Buffers that the module would not
 * have with the new value stay as well. No thread may be inside a call of the module. */
TN_API tn_status tn_module_option_set(tn_module *module, const char *name, tn_value value);

/* ---- printed networks ------------------------------------------------------------------------ */

/* Sets the forward of every module of a tree, the root included, whose type is `type`, as
 * tn_module_set_forward does without `user`. This completes a network that was read from printed
 * text: one call for each type that no plugin provides. Fails with TN_ERR_KEY if the tree has no
 * such module, and with TN_ERR_TYPE if the modules have a layer's forward. */
TN_API tn_status tn_module_set_forwards(tn_module *root, const char *type,
                                        tn_tensor *(*forward)(tn_module *self, tn_tensor *input));
/* Calls the children of a module in their order, each with the result of the one before it, as
 * Sequential does. Reserved children are skipped; without children the result is the input. Can
 * be the forward of a type that extends Sequential in PyTorch. [scoped] [null-through] */
TN_API tn_tensor *tn_module_call_children(tn_module *module, tn_tensor *input);
/* Calls the children whose names or dotted paths are given, separated by spaces, each with the
 * result of the one before it: "conv1 bn1 relu body.fc relu". `*` means all children, as
 * tn_module_call_children calls them: "embed blocks.* norm". `+` adds the input of the chain to the
 * result so far, `+name` what the child `name` returns for that input: "conv1 bn1 +shortcut relu".
 * Fails as tn_module_call_child and tn_module_find do, and with TN_ERR_VALUE if there is no name.
 * For the forward function of a module with children. [scoped] [null-through] */
TN_API tn_tensor *tn_module_call_chain(tn_module *module, const char *names, tn_tensor *input);

/* Like tn_module_call_many, but keeps no intermediate tensors for backward, which calls the module
 * again (tn_recompute_call). `flags`: TN_RECOMPUTE_*. [scoped] [array: inputs n_inputs,
 * outputs n_outputs] [null-through] */
TN_API tn_status tn_module_recompute(tn_module *module, tn_tensor *const *inputs, int64_t n_inputs,
                                     tn_tensor **outputs, int64_t n_outputs, uint32_t flags);
/* Calls the children of a module one after the other, as Sequential does, in `segments` parts of
 * equal size. Only the inputs of the parts, and the last part as a whole, are kept for backward.
 * [scoped] [null-through] */
TN_API tn_tensor *tn_module_recompute_sequential(tn_module *module, int64_t segments,
                                                 tn_tensor *input, uint32_t flags);

TN_END_DECLS
#endif

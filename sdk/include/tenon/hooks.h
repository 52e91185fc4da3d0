/* SPDX-License-Identifier: MIT
 *
 * Hooks: functions of the program that run around a module's call, around its backward, or when
 * something is registered in a module; and the handles that remove hooks of any kind.
 * tenon-interface: tenon.hooks 0
 *
 * A hook sees value packs. To change nothing it leaves *outcome alone; to replace what it saw, it
 * fills the empty pack `replacement` and says TN_HOOK_REPLACED. A status other than TN_OK ends the
 * call or the backward. A hook must not change what it saw in place. A hook has its own scope.
 * `release` (may be NULL) frees `user` when the hook was removed and no call or graph needs it any
 * more; where a registration fails, it is not called. */
#ifndef TENON_HOOKS_H
#define TENON_HOOKS_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

/* ---- handles --------------------------------------------------------------------------------- */

/* A registered hook of any kind, those on gradients of tensors included: a number that grows with
 * every registration of the process and is never reused. 0 means no hook. Dropping a handle does
 * not remove the hook. */
typedef uint64_t tn_hook_handle;

/* Removes a hook; running calls, and graphs that were recorded with it, still run it. False when
 * there was nothing to remove: it was removed before, or its tensor or module is gone.
 */
TN_API bool tn_hook_remove(tn_hook_handle handle);

#if defined(__GNUC__) || defined(__clang__)
TN_ATTR(unused) static inline void tn_hook_remove_at(tn_hook_handle *handle)
{
    tn_hook_remove(*handle);
}
/* A declaration: the hook is removed at the end of the block, however the block is left.
 *     TN_HOOK_BLOCK(tn_module_hook_forward(net, print_shape, 0, NULL, NULL)); */
#define TN_HOOK_BLOCK(handle)                                                                      \
    tn_hook_handle TN_PASTE(tn_hook_here_, __LINE__)                                               \
        __attribute__((cleanup(tn_hook_remove_at), unused)) = (handle)
#endif

/* ---- what a hook is -------------------------------------------------------------------------- */

typedef uint32_t tn_hook_outcome;
enum {
    TN_HOOK_UNCHANGED = 0, /* what *outcome is at the call */
    TN_HOOK_REPLACED = 1   /* `replacement` is passed on */
};

enum {
    TN_HOOK_PREPEND = 1, /* before the hooks of its kind already registered */
    TN_HOOK_NAMED = 2,   /* sees the named arguments, and may replace them; without it, `input` has
                            the positional ones only, and the named ones are passed on unchanged */
    TN_HOOK_ALWAYS = 4   /* runs when the call failed before its turn, too: `output` is then what
                            there was, or NULL; its replacement or failure does not end the failure.
                            The failure is held (tn_failed) meanwhile */
};

/* Before forward; `replacement` becomes its arguments. */
typedef tn_status (*tn_forward_pre_hook)(void *user, tn_module *module, const tn_pack *input,
                                         tn_pack *replacement, tn_hook_outcome *outcome);
/* After forward; `replacement` becomes the result. */
typedef tn_status (*tn_forward_hook)(void *user, tn_module *module, const tn_pack *input,
                                     const tn_pack *output, tn_pack *replacement,
                                     tn_hook_outcome *outcome);
/* When the gradients of a call's outputs are complete: one value for each positional result, kind
 * NONE where there is no gradient. `replacement` (as many values) is passed into the module. */
typedef tn_status (*tn_backward_pre_hook)(void *user, tn_module *module, const tn_pack *grad_output,
                                          tn_pack *replacement, tn_hook_outcome *outcome);
/* When the gradients of a call's inputs are complete: one value for each positional argument, kind
 * NONE for values that are not tensors or require no gradient. `replacement` (as many values) goes
 * on upstream. Where no input requires a gradient it runs when the gradients of the outputs are
 * complete, with nothing to replace; it never runs where no output requires one or no gradient
 * reaches the inputs. */
typedef tn_status (*tn_backward_hook)(void *user, tn_module *module, const tn_pack *grad_input,
                                      const tn_pack *grad_output, tn_pack *replacement,
                                      tn_hook_outcome *outcome);

/* ---- hooks of one module --------------------------------------------------------------------- */

/* Hooks run in the order of their registration; a call runs the hooks that are registered when it
 * starts to run them. Backward runs the hooks that were registered at the time of the forward call.
 * `flags` are an OR of TN_HOOK_PREPEND, TN_HOOK_NAMED (forward kinds) and TN_HOOK_ALWAYS (after
 * forward); 0 and a failure otherwise. Deep copies have the hooks, too; the state does not.
 * [null-ok: user, release] */
TN_API tn_hook_handle tn_module_hook_forward_pre(tn_module *module, tn_forward_pre_hook hook,
                                                 uint32_t flags, void *user,
                                                 void (*release)(void *user));
TN_API tn_hook_handle tn_module_hook_forward(tn_module *module, tn_forward_hook hook,
                                             uint32_t flags, void *user,
                                             void (*release)(void *user));
TN_API tn_hook_handle tn_module_hook_backward_pre(tn_module *module, tn_backward_pre_hook hook,
                                                  uint32_t flags, void *user,
                                                  void (*release)(void *user));
TN_API tn_hook_handle tn_module_hook_backward(tn_module *module, tn_backward_hook hook,
                                              uint32_t flags, void *user,
                                              void (*release)(void *user));
/* Removes all hooks of this module (not those of its children): the hooks of a deep copy have no
 * handles. */
TN_API void tn_module_unhook(tn_module *module);

/* ---- hooks of all modules -------------------------------------------------------------------- */

/* The same for the calls of every module, containers included; they run before the module's own.
 * `flags`: TN_HOOK_NAMED and TN_HOOK_ALWAYS after forward, else 0.
 * [null-ok: user, release] */
TN_API tn_hook_handle tn_global_hook_forward_pre(tn_forward_pre_hook hook, uint32_t flags,
                                                 void *user, void (*release)(void *user));
TN_API tn_hook_handle tn_global_hook_forward(tn_forward_hook hook, uint32_t flags, void *user,
                                             void (*release)(void *user));
TN_API tn_hook_handle tn_global_hook_backward_pre(tn_backward_pre_hook hook, uint32_t flags,
                                                  void *user, void (*release)(void *user));
TN_API tn_hook_handle tn_global_hook_backward(tn_backward_hook hook, uint32_t flags, void *user,
                                              void (*release)(void *user));

/* When a tensor is about to be stored under a name: may store another in *replacement, or leave it
 * NULL. `tensor` is TN_NONE where a buffer's name is reserved. */
typedef tn_status (*tn_slot_hook)(void *user, tn_module *module, const char *name,
                                  tn_tensor *tensor, tn_tensor **replacement);
/* The same for a child. */
typedef tn_status (*tn_child_hook)(void *user, tn_module *module, const char *name,
                                   tn_module *child, tn_module **replacement);

/* Hooks on registration in every module, and on replacement: by the functions that add and set, and
 * in the layers' own code. A parameter's hooks do not run for TN_NONE. A replacement passes to the
 * module: a tensor from the scope, a module with the reference that the hook made.
 * [null-ok: user, release] */
TN_API tn_hook_handle tn_global_hook_parameter(tn_slot_hook hook, void *user,
                                               void (*release)(void *user));
TN_API tn_hook_handle tn_global_hook_buffer(tn_slot_hook hook, void *user,
                                            void (*release)(void *user));
TN_API tn_hook_handle tn_global_hook_child(tn_child_hook hook, void *user,
                                           void (*release)(void *user));

/* ---- from one module to another -------------------------------------------------------------- */

/* Moves all hooks of `from` (not those of its children) to the end of those of `to`, in their
 * order: for a module that takes the place of another. Their handles stay valid. Both or neither
 * have them when it fails. Not while one of the modules is called. */
TN_API tn_status tn_module_move_hooks(tn_module *from, tn_module *to);

TN_END_DECLS
#endif

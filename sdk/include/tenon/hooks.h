/* SPDX-License-Identifier: MIT
 *
 * Hooks: functions of the program that run around the call of a module, around its backward, or
 * when something is registered in a module; and the handles that remove hooks of any kind.
 * tenon-interface: tenon.hooks 0
 *
 * A hook on a call or on backward receives values in packs. To leave them unchanged, the hook does
 * not touch *outcome. To replace them, it fills the empty pack `replacement` and sets *outcome to
 * TN_OUTCOME_REPLACED. If it returns a status other than TN_OK, the call or the backward fails. A
 * hook must not change the values that it receives in place. Each hook runs in its own scope.
 * `release` (may be NULL) frees `user` after the hook was removed and no call or graph needs it any
 * more; it is not called if the registration fails.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_HOOKS_H
#define TENON_HOOKS_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

/* ---- handles --------------------------------------------------------------------------------- */

/* Identifies a registered hook of any kind, including hooks on gradients of tensors. The number
 * grows with every registration in the process and is never reused. 0 means no hook. A handle needs
 * no release; the hook stays registered when the handle is forgotten. */
typedef uint64_t tn_hook_handle;

/* Removes a hook. Calls that are running, and graphs that were recorded while the hook was
 * registered, still run it. Returns false if there was nothing to remove: the hook was removed
 * before, or its tensor or module no longer exists. */
TN_API bool tn_hook_remove(tn_hook_handle handle);

#if defined(__GNUC__) || defined(__clang__)
TN_ATTR(unused) static inline void tn_hook_remove_at(tn_hook_handle *handle)
{
    tn_hook_remove(*handle);
}
/* A declaration that registers a hook and removes it at the end of the block, however the block is
 * left.
 *     TN_HOOK_BLOCK(tn_module_hook_forward(net, print_shape, 0, NULL, NULL)); */
#define TN_HOOK_BLOCK(handle)                                                                      \
    tn_hook_handle TN_PASTE(tn_hook_here_, __LINE__)                                               \
        __attribute__((cleanup(tn_hook_remove_at), unused)) = (handle)
#endif

/* ---- types of hooks -------------------------------------------------------------------------- */

typedef uint32_t tn_hook_outcome;
enum {
    TN_OUTCOME_UNCHANGED = 0, /* the initial value of *outcome */
    TN_OUTCOME_REPLACED = 1   /* the values in `replacement` are used instead */
};

enum {
    TN_HOOK_PREPEND = 1, /* runs before the hooks of the same kind that are already registered */
    /* The hook receives the named arguments too, and may replace them. Without this flag, `input`
     * contains only the positional arguments, and the named ones are passed on unchanged. */
    TN_HOOK_NAMED = 2,
    /* The hook also runs if the call failed before the turn of the hook. `output` is then the
     * result as far as it exists, or NULL; the call fails with its original error whatever the hook
     * does. That error is recorded (tn_failed) while the hook runs. */
    TN_HOOK_ALWAYS = 4
};

/* Runs before forward. `replacement` becomes the arguments of forward. */
typedef tn_status (*tn_forward_pre_hook)(void *user, tn_module *module, const tn_pack *input,
                                         tn_pack *replacement, tn_hook_outcome *outcome);
/* Runs after forward. `replacement` becomes the result of the call. */
typedef tn_status (*tn_forward_hook)(void *user, tn_module *module, const tn_pack *input,
                                     const tn_pack *output, tn_pack *replacement,
                                     tn_hook_outcome *outcome);
/* Runs when the gradients of all outputs of a call are complete. `grad_output` has one value for
 * each positional result, of kind NONE if the result has no gradient. `replacement` must have the
 * same number of values; backward continues through the module with them. */
typedef tn_status (*tn_backward_pre_hook)(void *user, tn_module *module, const tn_pack *grad_output,
                                          tn_pack *replacement, tn_hook_outcome *outcome);
/* Runs when the gradients of all inputs of a call are complete. `grad_input` has one value for each
 * positional argument, of kind NONE if the argument is no tensor or requires no gradient.
 * `replacement` must have the same number of values; backward continues with them towards the
 * tensors that the inputs were computed from. If no input requires a gradient, the hook runs when
 * the gradients of the outputs are complete, and there is nothing to replace. The hook does not run
 * if no output requires a gradient, or if no gradient reaches the inputs. */
typedef tn_status (*tn_backward_hook)(void *user, tn_module *module, const tn_pack *grad_input,
                                      const tn_pack *grad_output, tn_pack *replacement,
                                      tn_hook_outcome *outcome);

/* ---- hooks of one module --------------------------------------------------------------------- */

/* Registers a hook on one module and returns its handle. Hooks run in the order of their
 * registration. A call runs the forward hooks that are registered when it reaches them; backward
 * runs the hooks that were registered during the forward call. `flags` is an OR of TN_HOOK_PREPEND,
 * TN_HOOK_NAMED (only for the two forward kinds) and TN_HOOK_ALWAYS (only for
 * tn_module_hook_forward). Returns 0 and records a failure if the hook cannot be registered.
 * tn_module_copy copies hooks; a state does not contain them. [null-ok: user, release] */
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
/* Removes all hooks of this module, but not those of its children. Hooks that tn_module_copy copied
 * have no handles, so this is the only way to remove them. */
TN_API void tn_module_unhook(tn_module *module);

/* ---- hooks of all modules -------------------------------------------------------------------- */

/* Registers a hook on the calls of every module, containers included, and returns its handle. These
 * hooks run before the hooks of the module. `flags` of tn_global_hook_forward is an OR of
 * TN_HOOK_NAMED and TN_HOOK_ALWAYS; `flags` of the three others must be 0. Returns 0 and records a
 * failure if the hook cannot be registered. [null-ok: user, release] */
TN_API tn_hook_handle tn_global_hook_forward_pre(tn_forward_pre_hook hook, uint32_t flags,
                                                 void *user, void (*release)(void *user));
TN_API tn_hook_handle tn_global_hook_forward(tn_forward_hook hook, uint32_t flags, void *user,
                                             void (*release)(void *user));
TN_API tn_hook_handle tn_global_hook_backward_pre(tn_backward_pre_hook hook, uint32_t flags,
                                                  void *user, void (*release)(void *user));
TN_API tn_hook_handle tn_global_hook_backward(tn_backward_hook hook, uint32_t flags, void *user,
                                              void (*release)(void *user));

/* Runs when a tensor is about to be stored in a slot called `name`. May store another tensor in
 * *replacement, which is then used instead, or leave it NULL. `tensor` is TN_NONE when the name of
 * a buffer is reserved. */
typedef tn_status (*tn_slot_hook)(void *user, tn_module *module, const char *name,
                                  tn_tensor *tensor, tn_tensor **replacement);
/* Runs when a child is about to be stored in a slot called `name`. May store another module in
 * *replacement, which is then used instead, or leave it NULL. */
typedef tn_status (*tn_child_hook)(void *user, tn_module *module, const char *name,
                                   tn_module *child, tn_module **replacement);

/* Registers a hook that runs whenever any module registers or replaces a parameter, a buffer or a
 * child, in functions that the program calls as well as in the code of layers. Returns its handle;
 * 0 and records a failure if the hook cannot be registered. Parameter hooks do not run for TN_NONE.
 * A replacement tensor belongs to the scope, and the module adds a reference of its own. A
 * replacement module must come with a reference that the hook made for it; the module takes over
 * that reference. [null-ok: user, release] */
TN_API tn_hook_handle tn_global_hook_parameter(tn_slot_hook hook, void *user,
                                               void (*release)(void *user));
TN_API tn_hook_handle tn_global_hook_buffer(tn_slot_hook hook, void *user,
                                            void (*release)(void *user));
TN_API tn_hook_handle tn_global_hook_child(tn_child_hook hook, void *user,
                                           void (*release)(void *user));

/* ---- moving hooks between modules ------------------------------------------------------------ */

enum { TN_HOOKS_FORWARD_PRE = 1, TN_HOOKS_FORWARD = 2 };
#define TN_HOOKS_ALL UINT32_MAX /* also those on backward and on states */

/* Moves the hooks of `from`, but not those of its children, to the end of the hooks of `to`, in the
 * same order. For a module that takes the place of another. `kinds` is TN_HOOKS_ALL, or an OR of
 * the kinds that move. Handles stay valid. If the function fails, no hook has moved. Must not run
 * during a call of one of the two modules. */
TN_API tn_status tn_module_move_hooks(tn_module *from, tn_module *to, uint32_t kinds);

TN_END_DECLS
#endif

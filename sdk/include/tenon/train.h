/* SPDX-License-Identifier: MIT
 *
 * Optimizers, learning-rate schedulers and steps of training. Plugins provide the update rules and
 * the schedulers.
 * tenon-interface: tenon.train 0
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_TRAIN_H
#define TENON_TRAIN_H

#include <tenon/convert.h>
#include <tenon/graph.h>

TN_BEGIN_DECLS

typedef struct tn_optimizer tn_optimizer;
typedef struct tn_scheduler tn_scheduler;

/* Creates an optimizer for all parameters of a module, from a spec such as "SGD(lr=%g,
 * momentum=0.9)". The format is that of tn_snprint. The optimizer adds references to the
 * parameters. [owned] [null-through] */
TN_API tn_optimizer *tn_optimizer_newv(tn_module *module, const char *format, va_list args);
TN_API tn_optimizer *tn_optimizer_new(tn_module *module, const char *format, ...);
/* Like tn_optimizer_new, but for the given tensors; `text` is the spec itself and not a format.
 * [owned] [array: parameters count] */
TN_API tn_optimizer *tn_optimizer_parse(tn_tensor *const *parameters, int64_t count,
                                        const char *text);
/* Frees an optimizer. [null-ok: optimizer] */
TN_API void tn_optimizer_drop(tn_optimizer *optimizer);

/* Takes one step with every parameter that has a gradient. Fails for an optimizer that evaluates
 * the loss itself, such as LBFGS: tn_optimizer_step_with. [null-through] */
TN_API tn_status tn_optimizer_step(tn_optimizer *optimizer);
/* Removes the gradients of all parameters of the optimizer. [null-through] */
TN_API tn_status tn_optimizer_zero_grad(tn_optimizer *optimizer);

/* tn_optimizer_type returns the name of the optimizer, such as "SGD", tn_optimizer_count the number
 * of its parameters. [borrowed] */
TN_API const char *tn_optimizer_type(const tn_optimizer *optimizer);
TN_API int64_t tn_optimizer_count(const tn_optimizer *optimizer);
/* Returns parameter `index`. [borrowed] */
TN_API tn_tensor *tn_optimizer_parameter(const tn_optimizer *optimizer, int64_t index);
/* tn_optimizer_state returns a tensor that the optimizer keeps for a parameter, by name
 * ("exp_avg"); NULL, without an error, if it does not exist yet. tn_optimizer_set_state stores such
 * a tensor; the optimizer adds a reference. [borrowed] */
TN_API tn_tensor *tn_optimizer_state(tn_optimizer *optimizer, int64_t index, const char *name);
TN_API tn_status tn_optimizer_set_state(tn_optimizer *optimizer, int64_t index, const char *name,
                                        tn_tensor *tensor);
/* Returns the number of state tensors of a parameter. Their names are in the order in which the
 * tensors were created. */
TN_API int64_t tn_optimizer_state_count(const tn_optimizer *optimizer, int64_t index);
/* Returns the name of state tensor `state` of a parameter. [borrowed] */
TN_API const char *tn_optimizer_state_name(const tn_optimizer *optimizer, int64_t index,
                                           int64_t state);
/* tn_optimizer_steps returns the number of steps that a parameter has taken, which the core counts;
 * tn_optimizer_set_steps sets it. To continue the work of another optimizer with the same spec, set
 * its numbers of steps and its state tensors. */
TN_API int64_t tn_optimizer_steps(const tn_optimizer *optimizer, int64_t index);
TN_API tn_status tn_optimizer_set_steps(tn_optimizer *optimizer, int64_t index, int64_t steps);

/* Adds a group of parameters with options of its own. The first group has the parameters that the
 * optimizer was created with. The text `options` sets the options of the new group ("lr=0.01,
 * betas=(0.9, 0.99)"); all other options are those of the spec of the optimizer.
 * tn_optimizer_group_count returns the number of groups. [array: parameters count]
 * [null-ok: options] */
TN_API tn_status tn_optimizer_add_group(tn_optimizer *optimizer, tn_tensor *const *parameters,
                                        int64_t count, const char *options);
TN_API int64_t tn_optimizer_group_count(const tn_optimizer *optimizer);
/* Returns the group of parameter `index`. Returns -1 and records a failure if the index is out of
 * range. */
TN_API int64_t tn_optimizer_group_of(const tn_optimizer *optimizer, int64_t index);
/* Returns the option struct of a group. [borrowed] */
TN_API void *tn_optimizer_data(const tn_optimizer *optimizer, int64_t group);
/* tn_optimizer_get returns an option of a group that is a number, by name ("lr", "betas[1]"), in
 * *value; tn_optimizer_set sets it, in all groups if `group` is -1. */
TN_API tn_status tn_optimizer_get(const tn_optimizer *optimizer, int64_t group, const char *option,
                                  double *value);
TN_API tn_status tn_optimizer_set(tn_optimizer *optimizer, int64_t group, const char *option,
                                  double value);
/* tn_optimizer_options writes the options of a group as text: at most `size` bytes including the
 * final NUL; it returns the length of the complete text, -1 on error. tn_optimizer_set_options sets
 * options from such a text; options that the text does not mention stay unchanged, and group -1
 * means all groups. [null-ok: out] */
TN_API int64_t tn_optimizer_options(const tn_optimizer *optimizer, int64_t group, char *out,
                                    size_t size);
TN_API tn_status tn_optimizer_set_options(tn_optimizer *optimizer, int64_t group,
                                          const char *options);
/* Writes a text from which tn_optimizer_parse creates the same optimizer, with the options of the
 * first group. Writes at most `size` bytes including the final NUL; returns the length of the
 * complete text, -1 on error. [null-ok: out] */
TN_API int64_t tn_optimizer_spec(const tn_optimizer *optimizer, char *out, size_t size);

/* Creates a scheduler, which sets the option "lr" of an optimizer, from a spec such as
 * "CosineAnnealingLR(T_max=300)". Sets the learning rates of step 0 immediately, and keeps a
 * reference to the optimizer. All schedulers of one optimizer start from the rates that the
 * optimizer had when the first of them was created, and each changes the rates that the others have
 * set. [owned] [null-through] */
TN_API tn_scheduler *tn_scheduler_newv(tn_optimizer *optimizer, const char *format, va_list args);
TN_API tn_scheduler *tn_scheduler_new(tn_optimizer *optimizer, const char *format, ...);
/* Like tn_scheduler_new, but `text` is the spec itself and not a format. [owned] [null-through] */
TN_API tn_scheduler *tn_scheduler_parse(tn_optimizer *optimizer, const char *text);
/* Frees a scheduler. [null-ok: scheduler] */
TN_API void tn_scheduler_drop(tn_scheduler *scheduler);
/* Takes one step and sets the learning rates. Fails for a scheduler that depends on a number:
 * tn_scheduler_step_with. [null-through] */
TN_API tn_status tn_scheduler_step(tn_scheduler *scheduler);
/* Like tn_scheduler_step, for a scheduler that depends on a number, such as the validation loss.
 * [null-through] */
TN_API tn_status tn_scheduler_step_with(tn_scheduler *scheduler, double metric);
/* Returns the number of steps that the scheduler has taken. */
TN_API int64_t tn_scheduler_steps(const tn_scheduler *scheduler);
/* Returns the option struct of the scheduler. [borrowed] */
TN_API void *tn_scheduler_data(const tn_scheduler *scheduler);
/* Returns the struct in which the scheduler keeps its state between steps. [borrowed] */
TN_API void *tn_scheduler_state(const tn_scheduler *scheduler);
/* tn_scheduler_state_text writes the number of steps and the state of the scheduler as text
 * ("steps=10, initial=[0.1], last=[0.01], best=0.25"): at most `size` bytes including the final
 * NUL; it returns the length of the complete text, -1 on error. tn_scheduler_set_state reads such a
 * text, to continue the work of another scheduler with the same spec. It does not change the
 * learning rates, which belong to the optimizer. [null-ok: out] */
TN_API int64_t tn_scheduler_state_text(const tn_scheduler *scheduler, char *out, size_t size);
TN_API tn_status tn_scheduler_set_state(tn_scheduler *scheduler, const char *text);

/* tn_optimizer_user and tn_scheduler_user return the member `user` of the descriptor. [borrowed] */
TN_API void *tn_optimizer_user(const tn_optimizer *optimizer);
TN_API void *tn_scheduler_user(const tn_scheduler *scheduler);

/* A function that returns the factor of a scheduler such as LambdaLR, for a group and a step. NaN
 * makes the step fail. [callback] */
typedef double (*tn_schedule_function)(void *user, int64_t group, int64_t step);
/* Like tn_scheduler_parse, for a spec with schedulers that call a function, such as "LambdaLR()" or
 * "SequentialLR([LambdaLR(), StepLR(10)], milestones=[5])". The function and `user` must live as
 * long as the scheduler. [owned] [null-through] [null-ok: user] */
TN_API tn_scheduler *tn_scheduler_lambda(tn_optimizer *optimizer, const char *text,
                                         tn_schedule_function function, void *user);
/* Returns in *rate the learning rate that the last step gave a group. */
TN_API tn_status tn_scheduler_last_rate(const tn_scheduler *scheduler, int64_t group, double *rate);
/* Returns the name of the scheduler, such as "StepLR". [borrowed] */
TN_API const char *tn_scheduler_type(const tn_scheduler *scheduler);
/* tn_scheduler_child_count returns the number of schedulers inside a scheduler, tn_scheduler_child
 * returns one of them. They belong to the scheduler. [borrowed] */
TN_API int64_t tn_scheduler_child_count(const tn_scheduler *scheduler);
TN_API tn_scheduler *tn_scheduler_child(const tn_scheduler *scheduler, int64_t index);
/* For a scheduler, in its function `check`: creates a scheduler inside `scheduler` from a value
 * that is a spec, such as StepLR(10), and takes its step 0. */
TN_API tn_status tn_scheduler_add_child(tn_scheduler *scheduler, const tn_value *value);
/* For a scheduler, in its function `step`: takes step 0 of a scheduler inside another one again.
 * `flags` is TN_SCHEDULE_INITIAL or TN_SCHEDULE_JUMP. */
TN_API tn_status tn_scheduler_restart(tn_scheduler *scheduler, uint32_t flags);
/* Like tn_optimizer_step, with a function that computes the loss and its gradients: it removes the
 * old gradients, calls the network, calls tn_backward and returns the loss, or NULL after recording
 * a failure. It is called with recording on. Most optimizers call it once, before the step; some
 * call it several times in one step. Returns the loss of the first call. [scoped] [null-through]
 * [null-ok: user] */
TN_API tn_tensor *tn_optimizer_step_with(tn_optimizer *optimizer, tn_tensor *(*closure)(void *user),
                                         void *user);

/* ---- an optimizer as a whole ----------------------------------------------------------------- */

/* Fills the existing gradients of all parameters with zeros, in the same memory and without
 * recording. [null-through] */
TN_API tn_status tn_optimizer_zero_grad_in_place(tn_optimizer *optimizer);
/* Writes the printed form, the same as in PyTorch: for each group its options in the order of their
 * names. Writes at most `size` bytes including the final NUL; returns the length of the complete
 * text, -1 on error. [null-ok: out] */
TN_API int64_t tn_optimizer_repr(const tn_optimizer *optimizer, char *out, size_t size);

/* Like tn_optimizer_parse, with names: names[i] is the name of parameters[i]. A group has names for
 * all of its parameters or for none, and either all groups have names or none has. After
 * tn_optimizer_new, which takes the names from the module, a new group may have names or not. NULL
 * names: none. The names are part of the state, but are not used to load it. [owned] [array:
 * parameters count] [null-ok: names] */
TN_API tn_optimizer *tn_optimizer_parse_named(tn_tensor *const *parameters,
                                              const char *const *names, int64_t count,
                                              const char *text);
/* Like tn_optimizer_add_group; see tn_optimizer_parse_named for `names`.
 * [array: parameters count] [null-ok: names, options] */
TN_API tn_status tn_optimizer_add_group_named(tn_optimizer *optimizer, tn_tensor *const *parameters,
                                              const char *const *names, int64_t count,
                                              const char *options);
/* Returns the name of a parameter, such as "0.weight"; NULL, without an error, if it has none.
 * [borrowed] */
TN_API const char *tn_optimizer_parameter_name(const tn_optimizer *optimizer, int64_t index);

/* Returns the state of an optimizer, under the names that PyTorch's state_dict gives in a file:
 * "state.0.exp_avg" for each state tensor of parameter 0, "state.0.step" for the number of its
 * steps, "param_groups.0.lr" for each option of group 0, and "param_groups.0.params" and
 * "param_groups.0.param_names" for the indices and names of its parameters. The tensors share
 * storage with those of the optimizer. [owned] [null-through] */
TN_API tn_state *tn_optimizer_save_state(tn_optimizer *optimizer);
/* Like tn_optimizer_save_state, but adds the entries to an existing state. `prefix` is inserted
 * before every name as it is: "optimizer." or "". If the function fails, entries that it has
 * already added stay. [null-through] */
TN_API tn_status tn_optimizer_save_state_into(tn_optimizer *optimizer, tn_state *state,
                                              const char *prefix);
/* Loads a state that tn_optimizer_save_state returned or that PyTorch saved. Groups and parameters
 * are matched by their order; the numbers of groups and of parameters in each group must be equal.
 * The options of the state replace those of the optimizer. The state tensors are copied, on the
 * device of the parameter; floating ones get the dtype of a floating parameter, except numbers
 * (tensors without dimensions). Options that the optimizer does not have are ignored, with a
 * warning in the log. If the function fails, the optimizer is unchanged. Load the state after
 * schedulers were created, because a new scheduler sets the learning rates. To load a part of a
 * larger state: tn_state_part. [null-through] */
TN_API tn_status tn_optimizer_load_state(tn_optimizer *optimizer, const tn_state *state);

/* ---- hooks of optimizers --------------------------------------------------------------------- */

/* Runs before or after a step, before a state is saved or after one was loaded. */
typedef tn_status (*tn_optimizer_hook)(void *user, tn_optimizer *optimizer);
/* Runs after an optimizer has added its entries to a state, under names that begin with `prefix`,
 * or before it loads them; `prefix` is then "". May change the state. Before loading, `state` is a
 * copy for the hooks, whose tensors are those of the original. */
typedef tn_status (*tn_optimizer_state_hook)(void *user, tn_optimizer *optimizer, tn_state *state,
                                             const char *prefix);

/* Registers a hook of one optimizer and returns its handle for tn_hook_remove; tn_global_hook_step
 * and tn_global_hook_step_pre register one for all optimizers. Before a step the hooks of all
 * optimizers run first, after a step they run last. Hooks of one kind run in the order of their
 * registration; `flags` is 0 or TN_HOOK_PREPEND. If a hook returns a status other than TN_OK, the
 * call fails. If it is a hook before a step, the step is not taken; a hook after a step or a load
 * undoes nothing. `release` (may be NULL) frees `user` when the hook is removed or its optimizer is
 * freed. Returns 0 and records a failure if the hook cannot be registered.
 * [null-ok: user, release] */
TN_API tn_hook_handle tn_optimizer_hook_step_pre(tn_optimizer *optimizer, tn_optimizer_hook hook,
                                                 uint32_t flags, void *user,
                                                 void (*release)(void *user));
TN_API tn_hook_handle tn_optimizer_hook_step(tn_optimizer *optimizer, tn_optimizer_hook hook,
                                             uint32_t flags, void *user,
                                             void (*release)(void *user));
TN_API tn_hook_handle tn_global_hook_step_pre(tn_optimizer_hook hook, uint32_t flags, void *user,
                                              void (*release)(void *user));
TN_API tn_hook_handle tn_global_hook_step(tn_optimizer_hook hook, uint32_t flags, void *user,
                                          void (*release)(void *user));
TN_API tn_hook_handle tn_optimizer_hook_state_pre(tn_optimizer *optimizer, tn_optimizer_hook hook,
                                                  uint32_t flags, void *user,
                                                  void (*release)(void *user));
TN_API tn_hook_handle tn_optimizer_hook_state(tn_optimizer *optimizer, tn_optimizer_state_hook hook,
                                              uint32_t flags, void *user,
                                              void (*release)(void *user));
TN_API tn_hook_handle tn_optimizer_hook_load_pre(tn_optimizer *optimizer,
                                                 tn_optimizer_state_hook hook, uint32_t flags,
                                                 void *user, void (*release)(void *user));
TN_API tn_hook_handle tn_optimizer_hook_load(tn_optimizer *optimizer, tn_optimizer_hook hook,
                                             uint32_t flags, void *user,
                                             void (*release)(void *user));

/* ---- running statistics ---------------------------------------------------------------------- */

/* Replaces the running statistics of all layers of a module by the statistics of the batches that
 * `next` returns. All batches have the same weight. The layers are those with `collect`
 * (<tenon/layer.h>), such as BatchNorm2d. `next` returns a batch, TN_NONE after the last one, or
 * NULL after recording a failure; it is called in a scope of its own. The module is called with
 * each batch, in training mode and without recording; a batch is moved to `device` first, unless
 * that is NULL. Afterwards every module is in its former mode. Without such a layer, `next` is not
 * called. [null-ok: device, user] [null-through] */
TN_API tn_status tn_module_update_statistics(tn_module *module, tn_tensor *(*next)(void *user),
                                             void *user, const tn_device *device);

/* ---- whole steps ----------------------------------------------------------------------------- */

/* A step of training as one plan: forward, loss, backward and the update of the parameters share
 * one block of memory for all intermediate values, record nothing and do not use .grad. The losses
 * and parameters are the same, to the bit, as after tn_optimizer_zero_grad, the calls of the
 * modules, tn_backward and tn_optimizer_step. Only one thread at a time may run a step, and no
 * other thread may use the optimizer meanwhile. */
typedef struct tn_step tn_step;

typedef struct tn_step_options {
    uint32_t size;     /* sizeof(tn_step_options) */
    uint32_t bindings; /* most plans that are kept, for other inputs; 0: 8 */
    /* Called once when a plan is made, to change the gradients between backward and the update, for
     * example with tn_clip_grad_norm. The operators that it calls become steps of the plan. The
     * gradients are those of this step alone, as after tn_module_zero_grad; tn_tensor_grad returns
     * tensors that have no values yet, so the function must not read any (tn_clip_grad_norm with
     * NULL for `norm`). If it fails, the run fails. May be NULL. */
    tn_status (*gradients)(void *user);
    void *user; /* must live as long as the step */
} tn_step_options;
#define TN_STEP_OPTIONS                                                                            \
    {                                                                                              \
        (uint32_t)sizeof(tn_step_options), 8, NULL, NULL                                           \
    }

/* Returns a step of the module with the optimizer. `loss` is a module, such as CrossEntropyLoss(),
 * that is called with the first result of the module and the target; NULL: the first result of the
 * module is the loss. Fails if the optimizer evaluates the loss itself, or has hooks before its
 * step. The step keeps all three. [owned] [null-ok: loss, options] [null-through] */
TN_API tn_step *tn_step_new(tn_module *module, tn_module *loss, tn_optimizer *optimizer,
                            const tn_step_options *options);
/* Takes a step. `in` has the inputs of the module, TN_NONE for None, and with a loss the target
 * after them. Stores the loss, which is not recorded for gradients, and then the first results of
 * the module in `out`. The first run for inputs of other dtypes, shapes, strides or devices makes a
 * plan, and so does a run after a change of the module, its modes or the parameters of the
 * optimizer; learning rates and other options of the optimizer may change at any time. Fails, with
 * the reason, if no plan can be made (docs/guides/graphs.md lists the cases); a run that fails may
 * have changed parameters and buffers. [scoped] [array: in n_in, out n_out] */
TN_API tn_status tn_step_run(tn_step *step, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                             int64_t n_out);
/* Like tn_plan_describe and tn_plan_print, for the plan that was used last. Fail before the first
 * run. [null-ok: out] */
TN_API tn_status tn_step_describe(tn_step *step, tn_plan_stats *out);
TN_API int64_t tn_step_print(tn_step *step, char *out, size_t size);
/* Frees a step. [null-ok: step] */
TN_API void tn_step_drop(tn_step *step);

TN_END_DECLS
#endif

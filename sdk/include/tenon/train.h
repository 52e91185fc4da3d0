/* SPDX-License-Identifier: MIT
 *
 * Optimizers and learning-rate schedulers. Plugins provide the update rules and the schedules.
 * tenon-interface: tenon.train 0
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_TRAIN_H
#define TENON_TRAIN_H

#include <tenon/convert.h>

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

/* Takes one step with every parameter that has a gradient. [null-through] */
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
 * optimizer had when the first of them was created. [owned] [null-through] */
TN_API tn_scheduler *tn_scheduler_newv(tn_optimizer *optimizer, const char *format, va_list args);
TN_API tn_scheduler *tn_scheduler_new(tn_optimizer *optimizer, const char *format, ...);
/* Like tn_scheduler_new, but `text` is the spec itself and not a format. [owned] [null-through] */
TN_API tn_scheduler *tn_scheduler_parse(tn_optimizer *optimizer, const char *text);
/* Frees a scheduler. [null-ok: scheduler] */
TN_API void tn_scheduler_drop(tn_scheduler *scheduler);
/* Takes one step and sets the learning rates. [null-through] */
TN_API tn_status tn_scheduler_step(tn_scheduler *scheduler);
/* Like tn_scheduler_step, for a schedule that depends on a number, such as the validation loss.
 * [null-through] */
TN_API tn_status tn_scheduler_step_with(tn_scheduler *scheduler, double metric);
/* Returns the number of steps that the scheduler has taken. */
TN_API int64_t tn_scheduler_steps(const tn_scheduler *scheduler);
/* Returns the option struct of the scheduler. [borrowed] */
TN_API void *tn_scheduler_data(const tn_scheduler *scheduler);
/* Returns the struct in which the schedule keeps its state between steps. [borrowed] */
TN_API void *tn_scheduler_state(const tn_scheduler *scheduler);
/* tn_scheduler_state_text writes the number of steps and the state of the schedule as text
 * ("steps=10, best=0.25"): at most `size` bytes including the final NUL; it returns the length of
 * the complete text, -1 on error. tn_scheduler_set_state reads such a text, to continue the work of
 * another scheduler with the same spec. It does not change the learning rates, which belong to the
 * optimizer. [null-ok: out] */
TN_API int64_t tn_scheduler_state_text(const tn_scheduler *scheduler, char *out, size_t size);
TN_API tn_status tn_scheduler_set_state(tn_scheduler *scheduler, const char *text);

/* tn_optimizer_user and tn_scheduler_user return the member `user` of the descriptor. [borrowed] */
TN_API void *tn_optimizer_user(const tn_optimizer *optimizer);
TN_API void *tn_scheduler_user(const tn_scheduler *scheduler);

/* Like tn_optimizer_step, with a function that computes the loss and its gradients: it removes the
 * old gradients, calls the network, calls tn_backward and returns the loss, or NULL after recording
 * a failure. It is called with recording on. Most optimizers call it once, before the step; some
 * call it several times in one step. Returns the loss of the first call. [scoped] [null-through]
 * [null-ok: user] */
TN_API tn_tensor *tn_optimizer_step_with(tn_optimizer *optimizer, tn_tensor *(*closure)(void *user),
                                         void *user);

TN_END_DECLS
#endif

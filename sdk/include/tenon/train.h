/* SPDX-License-Identifier: MIT
 *
 * Optimizers and learning-rate schedules as objects; the rules themselves come from plugins.
 * tenon-interface: tenon.train 0 */
#ifndef TENON_TRAIN_H
#define TENON_TRAIN_H

#include <tenon/convert.h>

TN_BEGIN_DECLS

typedef struct tn_optimizer tn_optimizer;
typedef struct tn_scheduler tn_scheduler;

/* An optimizer over all parameters of a module: "SGD(lr=%g, momentum=0.9)". It keeps references to
 * the tensors. [owned] [null-through] */
TN_API tn_optimizer *tn_optimizer_newv(tn_module *module, const char *format, va_list args);
TN_API tn_optimizer *tn_optimizer_new(tn_module *module, const char *format, ...);
/* From text that is not a format, over chosen tensors. [owned]
 * [array: parameters count] */
TN_API tn_optimizer *tn_optimizer_parse(tn_tensor *const *parameters, int64_t count,
                                        const char *text);
/* [null-ok: optimizer] */
TN_API void tn_optimizer_drop(tn_optimizer *optimizer);

/* One step for every parameter that has a gradient. [null-through] */
TN_API tn_status tn_optimizer_step(tn_optimizer *optimizer);
/* [null-through] */
TN_API tn_status tn_optimizer_zero_grad(tn_optimizer *optimizer);

/* [borrowed] */
TN_API const char *tn_optimizer_type(const tn_optimizer *optimizer);
TN_API int64_t tn_optimizer_count(const tn_optimizer *optimizer);
/* [borrowed] */
TN_API tn_tensor *tn_optimizer_parameter(const tn_optimizer *optimizer, int64_t index);
/* State of a parameter by name ("exp_avg"): NULL without an error when not made yet; set keeps a
 * reference. [borrowed] */
TN_API tn_tensor *tn_optimizer_state(tn_optimizer *optimizer, int64_t index, const char *name);
TN_API tn_status tn_optimizer_set_state(tn_optimizer *optimizer, int64_t index, const char *name,
                                        tn_tensor *tensor);
/* How many states a parameter has, and their names in the order in which they were made. */
TN_API int64_t tn_optimizer_state_count(const tn_optimizer *optimizer, int64_t index);
/* [borrowed] */
TN_API const char *tn_optimizer_state_name(const tn_optimizer *optimizer, int64_t index,
                                           int64_t state);
/* Steps a parameter has taken, counted by the core. Setting them and the states continues from
 * another optimizer of the same spec. */
TN_API int64_t tn_optimizer_steps(const tn_optimizer *optimizer, int64_t index);
TN_API tn_status tn_optimizer_set_steps(tn_optimizer *optimizer, int64_t index, int64_t steps);

/* Groups of parameters, each with options of its own. The first one has the parameters that the
 * optimizer was made with; another takes its options from the text ("lr=0.01, betas=(0.9, 0.99)"),
 * and what the text leaves out from the optimizer's spec. [array: parameters count]
 * [null-ok: options] */
TN_API tn_status tn_optimizer_add_group(tn_optimizer *optimizer, tn_tensor *const *parameters,
                                        int64_t count, const char *options);
TN_API int64_t tn_optimizer_group_count(const tn_optimizer *optimizer);
/* The group of parameter `index`; -1 and an error out of range. */
TN_API int64_t tn_optimizer_group_of(const tn_optimizer *optimizer, int64_t index);
/* The struct with a group's options. [borrowed] */
TN_API void *tn_optimizer_data(const tn_optimizer *optimizer, int64_t group);
/* A number among the options of a group: "lr", "betas[1]". Set: group -1 means all of them. */
TN_API tn_status tn_optimizer_get(const tn_optimizer *optimizer, int64_t group, const char *option,
                                  double *value);
TN_API tn_status tn_optimizer_set(tn_optimizer *optimizer, int64_t group, const char *option,
                                  double value);
/* The options of a group as text, and from text, which may leave some as they are. Set: group -1
 * means all of them. [null-ok: out] */
TN_API int64_t tn_optimizer_options(const tn_optimizer *optimizer, int64_t group, char *out,
                                    size_t size);
TN_API tn_status tn_optimizer_set_options(tn_optimizer *optimizer, int64_t group,
                                          const char *options);
/* Text that builds the same optimizer again, with the options of the first group. [null-ok: out]
 */
TN_API int64_t tn_optimizer_spec(const tn_optimizer *optimizer, char *out, size_t size);

/* A schedule for the optimizer's "lr": "CosineAnnealingLR(T_max=300)". Sets the rates of step 0 at
 * once, and keeps the optimizer alive. All schedules of one optimizer start from the rates that the
 * first one found. [owned] [null-through] */
TN_API tn_scheduler *tn_scheduler_newv(tn_optimizer *optimizer, const char *format, va_list args);
TN_API tn_scheduler *tn_scheduler_new(tn_optimizer *optimizer, const char *format, ...);
/* The same from text that is not a format. [owned] [null-through] */
TN_API tn_scheduler *tn_scheduler_parse(tn_optimizer *optimizer, const char *text);
/* [null-ok: scheduler] */
TN_API void tn_scheduler_drop(tn_scheduler *scheduler);
/* Advances one step and sets the learning rates. [null-through] */
TN_API tn_status tn_scheduler_step(tn_scheduler *scheduler);
/* The same for a schedule that watches a number, such as the loss of a validation. [null-through]
 */
TN_API tn_status tn_scheduler_step_with(tn_scheduler *scheduler, double metric);
/* The steps that were taken. */
TN_API int64_t tn_scheduler_steps(const tn_scheduler *scheduler);
/* [borrowed] */
TN_API void *tn_scheduler_data(const tn_scheduler *scheduler);
/* The struct with what the schedule remembers. [borrowed] */
TN_API void *tn_scheduler_state(const tn_scheduler *scheduler);
/* Steps and what it remembers as text ("steps=10, best=0.25"), and from such text, which continues
 * another scheduler of the same spec. The rates are the optimizer's. [null-ok: out] */
TN_API int64_t tn_scheduler_state_text(const tn_scheduler *scheduler, char *out, size_t size);
TN_API tn_status tn_scheduler_set_state(tn_scheduler *scheduler, const char *text);

/* The member `user` of the descriptor. [borrowed] */
TN_API void *tn_optimizer_user(const tn_optimizer *optimizer);
TN_API void *tn_scheduler_user(const tn_scheduler *scheduler);

TN_END_DECLS
#endif

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
/* The rule's options struct. [borrowed] */
TN_API void *tn_optimizer_data(const tn_optimizer *optimizer);
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

/* A numeric option by name ("lr"). */
TN_API tn_status tn_optimizer_get(const tn_optimizer *optimizer, const char *option, double *value);
TN_API tn_status tn_optimizer_set(tn_optimizer *optimizer, const char *option, double value);
/* Complete text that builds the same optimizer again. [null-ok: out] */
TN_API int64_t tn_optimizer_spec(const tn_optimizer *optimizer, char *out, size_t size);

/* A schedule for the optimizer's "lr": "CosineAnnealingLR(T_max=300)". Sets the rate of step 0 at
 * once, and keeps the optimizer alive. All schedules of one optimizer start from the rate that the
 * first one found. [owned] [null-through] */
TN_API tn_scheduler *tn_scheduler_newv(tn_optimizer *optimizer, const char *format, va_list args);
TN_API tn_scheduler *tn_scheduler_new(tn_optimizer *optimizer, const char *format, ...);
/* The same from text that is not a format. [owned] [null-through] */
TN_API tn_scheduler *tn_scheduler_parse(tn_optimizer *optimizer, const char *text);
/* [null-ok: scheduler] */
TN_API void tn_scheduler_drop(tn_scheduler *scheduler);
/* Advances one step and sets the learning rate. [null-through] */
TN_API tn_status tn_scheduler_step(tn_scheduler *scheduler);
/* The steps that were taken. */
TN_API int64_t tn_scheduler_steps(const tn_scheduler *scheduler);
/* [borrowed] */
TN_API void *tn_scheduler_data(const tn_scheduler *scheduler);

/* The member `user` of the descriptor. [borrowed] */
TN_API void *tn_optimizer_user(const tn_optimizer *optimizer);
TN_API void *tn_scheduler_user(const tn_scheduler *scheduler);

TN_END_DECLS
#endif

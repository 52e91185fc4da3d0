/* SPDX-License-Identifier: MIT
 *
 * The checked boundary (TENON_CHECK=1). Plugin to host: what generated tables ask before a call
 * goes in. Host to plugin: functions of backends and kernels are wrapped when they are
 * contributed, and looked at before and after. */
#ifndef TN_CORE_CHECK_CHECK_H
#define TN_CORE_CHECK_CHECK_H

#include "core/plugin/internal.h"

/* Each returns true when all is well, and false with TN_ERR_REFUSED "checked boundary: ..."
 * recorded. `caller` is an address inside the plugin that called, by which it is named. */
bool tn__check_given(bool given, const char *function, const char *argument, const void *caller);
/* The same of an object that an expression handed on. After a failure of this callback NULL says
 * no more than that: no other failure is recorded. */
bool tn__check_object(bool given, const char *function, const char *argument, const void *caller);
bool tn__check_row(const void *at, int64_t count, const char *function, const char *argument,
                   const void *caller);
/* Not dropped already, as far as its memory shows. NULL and TN_NONE pass. */
bool tn__check_tensor(const tn_tensor *tensor, const char *function, const char *argument,
                      const void *caller);
bool tn__check_tensors(tn_tensor *const *tensors, int64_t count, const char *function,
                       const char *argument, const void *caller);
bool tn__check_main(const char *function, const void *caller);

/* What a function of a plugin returned: in range, and with a message when it failed. `before` is
 * tn__error_count() from before the call. Returns the status that goes on. */
tn_status tn__check_status(tn_status status, uint64_t before, const tn__plugin *plugin,
                           const char *function);

/* Puts checking functions into the copy of a backend, before it is handed on. */
tn_status tn__check_backend(tn_backend_def *backend, const tn__plugin *plugin);
/* The same for a kernel; `shadow` has room for tn__check_kernel_size() bytes and stays as long
 * as the kernel. */
size_t tn__check_kernel_size(void);
void tn__check_kernel(tn_kernel_def *kernel, void *shadow, const tn__plugin *plugin);
/* The backend's own device handle behind a checked one. */
void *tn__check_device(void *handle);
bool tn__check_is_host(void *handle);
/* A number over the elements of the inputs that the operator does not write and that are no
 * output of the call, for devices of the host. It changes, nearly always, when they were
 * changed; of large inputs a sample counts. */
uint64_t tn__check_inputs_sum(const tn_call *call, const tn_op_def *def);
/* After a kernel: its work is done. */
tn_status tn__check_after_kernel(void *handle, void *stream, const char *kernel);

/* ---- the thread that called a plugin (core/plugin/check_thread.h) ---------------------------- */

struct tn__check_thread;
void tn__check_thread_note(struct tn__check_thread *before);
void tn__check_threads_note(struct tn__check_thread *before);
tn_status tn__check_thread_judge(const struct tn__check_thread *before, const char *plugin,
                                 const char *what, tn_status status);

/* The table for plugins of an interface: core/library/host_tables.c, generated. */
const void *tn__host_interface(const char *id, uint32_t min, uint32_t max, uint32_t *revision,
                               uint32_t *size);

#endif

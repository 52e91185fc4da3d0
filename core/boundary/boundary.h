/* SPDX-License-Identifier: MIT
 *
 * The checked boundary (TENON_CHECK=1). From plugin to host: the generated tables call these checks
 * before the function that the plugin calls. From host to plugin: functions of backends and kernels
 * are wrapped when they are registered, and the state is compared before and after each call. */
#ifndef TN_CORE_BOUNDARY_BOUNDARY_H
#define TN_CORE_BOUNDARY_BOUNDARY_H

#include "core/plugin/internal.h"

#include <tenon/operator.h>

/* Fail with TN_ERR_REFUSED "checked boundary: ..." because an argument is NULL: a pointer, an array
 * of some elements, or an object. If a call of this callback has failed before, NULL as an object
 * is the expected result of that failure: its code is returned, and no other failure is recorded.
 * `caller` is an address inside the plugin that called, from which the message gets its name. The
 * generated code compares with NULL itself, so that nothing is called where nothing is wrong. */
tn_status tn__boundary_no_pointer(const char *function, const char *argument, const void *caller);
tn_status tn__boundary_no_array(const char *function, const char *argument, const void *caller);
tn_status tn__boundary_no_object(const char *function, const char *argument, const void *caller);
/* These return true if the argument is acceptable; otherwise they return false and fail in the same
 * way. Checks, as far as the tensor's memory shows, that the tensor was not freed. NULL and TN_NONE
 * are accepted. */
bool tn__boundary_tensor(const tn_tensor *tensor, const char *function, const char *argument,
                         const void *caller);
bool tn__boundary_tensors(tn_tensor *const *tensors, int64_t count, const char *function,
                          const char *argument, const void *caller);
bool tn__boundary_main(const char *function, const void *caller);

/* Checks what a function of a plugin returned: the status must be known, and an error record must
 * exist if and only if it is a failure. `before` is the value of tn__error_count() before the call.
 * Returns the status to continue with. */
tn_status tn__boundary_status(tn_status status, uint64_t before, const tn__plugin *plugin,
                              const char *function);

/* Puts checking functions into the host's copy of a backend or a kernel, before the copy is
 * registered. Does nothing to other kinds. */
tn_status tn__boundary_contribution(tn_head *copy, tn__plugin *plugin);
tn_status tn__boundary_backend(tn_backend_def *backend, const tn__plugin *plugin);
/* Returns the backend's own handle of a device, for a handle of the core. */
void *tn__boundary_device(void *handle);
bool tn__boundary_is_host(void *handle);
/* Adds bytes to a hash. */
uint64_t tn__boundary_fold(uint64_t sum, const void *bytes, size_t count);
/* Returns a hash of the elements of those inputs that the operator may only read and that do not
 * overlap an output, for devices that use host memory. A changed element nearly always changes the
 * hash; of large inputs only a sample is hashed. */
uint64_t tn__boundary_inputs_sum(const tn_call *call, const tn_op_def *def);
/* Waits until the work of a kernel is done. Returns its failure, if any. */
tn_status tn__boundary_after_kernel(void *handle, void *stream, const char *kernel);

/* Returns the host's table of functions for an interface (lib/library/host_tables.c, generated),
 * NULL if the host does not have it. */
const void *tn__host_interface(const char *id, uint32_t min, uint32_t max, uint32_t *revision,
                               uint32_t *size);

#endif

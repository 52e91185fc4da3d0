/* SPDX-License-Identifier: MIT
 *
 * Opening and writing files in the process of a program. */
#ifndef TN_CORE_BASE_FD_H
#define TN_CORE_BASE_FD_H

#include "core/base/internal.h"

#include <sys/types.h>

/* Like openat(), with O_CLOEXEC; the returned descriptor is never 0, 1 or 2, which belong to the
 * standard streams. Returns -1 and sets errno on failure. */
int tn__fd_open(int folder, const char *name, int flags, mode_t mode);
/* Writes all `count` bytes and sets *done to the number of bytes written. Returns 0, or the errno
 * value of the failure; errno itself does not change. SIGPIPE and SIGXFSZ caused by these writes do
 * not reach the process. */
int tn__fd_write(int file, const void *bytes, size_t count, size_t *done);

#endif

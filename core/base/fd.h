/* SPDX-License-Identifier: MIT
 *
 * Opening and writing files inside a program's process. */
#ifndef TN_CORE_BASE_FD_H
#define TN_CORE_BASE_FD_H

#include "core/base/internal.h"

#include <sys/types.h>

/* openat, closed on exec, with a descriptor above those of the standard streams. -1 and errno. */
int tn__fd_open(int folder, const char *name, int flags, mode_t mode);
/* Writes all of it; *done is how many bytes were written. 0, or errno. SIGPIPE and SIGXFSZ of these
 * writes do not reach the process. */
int tn__fd_write(int file, const void *bytes, size_t count, size_t *done);

#endif

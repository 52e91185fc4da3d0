/* SPDX-License-Identifier: MIT
 *
 * Modules and states as the rooms of the core see them. */
#ifndef TN_CORE_MODULE_INTERNAL_H
#define TN_CORE_MODULE_INTERNAL_H

#include "core/grad/internal.h"

/* core/io: files. The extension or the content chooses the format. */
tn_status tn__file_save(const char *path, const tn_state *state);
tn_status tn__file_load(const char *path, tn_state *state);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The mode that a trace sees. A script is traced in both modes while other threads may call the
 * module, so a trace in another mode leaves the modules as they are. */
#ifndef TN_CORE_MODULE_MODE_SEEN_H
#define TN_CORE_MODULE_MODE_SEEN_H

#include "core/module/internal.h"

/* The modes that a thread sees: those of the modules, or one for all modules. */
typedef enum tn__mode_seen { TN__MODE_OWN, TN__MODE_EVAL, TN__MODE_TRAINING } tn__mode_seen;

/* Sets what traces of this thread see. Returns what they saw before. */
tn__mode_seen tn__mode_see(tn__mode_seen mode);
/* Returns whether the module is in training mode: for code that a trace may run. */
bool tn__mode_is_training(const tn_module *module);

#endif

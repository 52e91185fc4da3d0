/* SPDX-License-Identifier: MIT
 *
 * All ways to run modules. A new one has a row in the folder that makes it, and a line here. */
#include "core/module/internal.h"

extern TN_HIDDEN const tn__runner tn__runner_plan;

const tn__runner *const tn__runners[] = { &tn__runner_plan, NULL };

/* SPDX-License-Identifier: MIT
 *
 * Plans: what other folders use. */
#ifndef TN_LIB_PLAN_INTERNAL_H
#define TN_LIB_PLAN_INTERNAL_H

#include "core/module/internal.h"

/* The function for tn__module_calls.plan: makes a plan of a spec plan(passes, bindings). */
tn_status tn__plan_module_new(const tn__spec *spec, tn__compiled **out);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Graphs: what other folders of the core use. */
#ifndef TN_CORE_GRAPH_INTERNAL_H
#define TN_CORE_GRAPH_INTERNAL_H

#include "core/module/internal.h"

/* The function for tn__module_calls.plan: makes a plan of a spec plan(passes, bindings). */
tn_status tn__plan_module_new(const tn__spec *spec, tn__compiled **out);

#endif

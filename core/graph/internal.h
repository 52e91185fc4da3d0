/* SPDX-License-Identifier: MIT
 *
 * Graphs: what other folders of the core use. */
#ifndef TN_CORE_GRAPH_INTERNAL_H
#define TN_CORE_GRAPH_INTERNAL_H

#include "core/module/internal.h"

/* tn__module_calls.plan: reads plan(passes, bindings). */
tn_status tn__plan_module_new(const tn__spec *spec, tn__compiled **out);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Lazy modules: modules with parameters and buffers that have no shape yet. The first call of the
 * module, or a loaded state, determines the shapes. A layer that defines `infer` registers such
 * slots in `build`.
 * tenon-interface: tenon.lazy 0
 *
 * Until its shape is known, a slot holds a tensor of shape [0] that already has the final dtype and
 * device, so a lazy module can be converted, loaded and given to an optimizer. The tensor object
 * stays the same when it receives its shape. Before that, tn_module_get fails for the slot.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_LAZY_H
#define TENON_LAZY_H

#include <tenon/module.h>

TN_BEGIN_DECLS

/* Registers a parameter (kind TN_SLOT_PARAMETER) or a persistent buffer (kind TN_SLOT_BUFFER)
 * without a shape. */
TN_API tn_status tn_module_add_lazy(tn_module *module, uint32_t kind, const char *name);
/* Sets the shape of a slot that tn_module_add_lazy registered. The values are undefined. Does
 * nothing if the slot already has a shape. */
TN_API tn_status tn_module_materialize(tn_module *module, const char *name, tn_ints shape);
/* Returns whether the slot `name` of this module still has no shape. NULL: whether any slot of this
 * module has none. [null-ok: name] */
TN_API bool tn_module_is_lazy(const tn_module *module, const char *name);

TN_END_DECLS
#endif

/* SPDX-License-Identifier: MIT
 *
 * Lazy modules: parameters and buffers without a shape, which the first call (or the state that is
 * loaded) gives them. A layer with `infer` makes them in its build.
 * tenon-interface: tenon.lazy 0
 *
 * Until then a slot holds a tensor of shape [0] with the final dtype and device, so conversion,
 * optimizers and states work before that; it stays the same object afterwards. tn_module_get
 * refuses it. */
#ifndef TENON_LAZY_H
#define TENON_LAZY_H

#include <tenon/module.h>

TN_BEGIN_DECLS

/* Registers a parameter (TN_SLOT_PARAMETER) or a persistent buffer (TN_SLOT_BUFFER) without a
 * shape. */
TN_API tn_status tn_module_add_lazy(tn_module *module, uint32_t kind, const char *name);
/* Sets its shape; its values are undefined. Does nothing to a slot that already has its shape. */
TN_API tn_status tn_module_materialize(tn_module *module, const char *name, tn_ints shape);
/* Whether a slot of this name waits for its shape / NULL: any slot of this module.
 * [null-ok: name] */
TN_API bool tn_module_is_lazy(const tn_module *module, const char *name);

TN_END_DECLS
#endif

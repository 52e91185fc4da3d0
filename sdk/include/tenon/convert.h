/* SPDX-License-Identifier: MIT
 *
 * Moving, converting and copying modules.
 * tenon-interface: tenon.convert 0
 *
 * All of them work in place on the tensors of a module: the tensor objects stay and look at other
 * memory, so that ties, optimizers and whoever holds a parameter go on. On failure the module is as
 * it was. */
#ifndef TENON_CONVERT_H
#define TENON_CONVERT_H

#include <tenon/module.h>

TN_BEGIN_DECLS

/* Moves and converts parameters, their gradients and buffers; NULL device and TN_DTYPE_AUTO keep.
 * Only floating and complex tensors change dtype. [any-thread] [null-ok: device] */
TN_API tn_status tn_module_to(tn_module *module, const tn_device *device, tn_dtype dtype);

TN_END_DECLS
#endif

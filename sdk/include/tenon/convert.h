/* SPDX-License-Identifier: MIT
 *
 * Moving, converting and copying modules.
 * tenon-interface: tenon.convert 0
 *
 * Conversions work in place: the tensor objects of a module stay and refer to new memory, so tied
 * parameters, optimizers and other holders of a parameter remain valid. Gradients are converted
 * with their parameters. Conversions are not recorded in a graph. On failure the module is
 * unchanged. */
#ifndef TENON_CONVERT_H
#define TENON_CONVERT_H

#include <tenon/module.h>

TN_BEGIN_DECLS

/* ---- moving and converting ------------------------------------------------------------------- */

/* Moves and converts parameters and buffers; NULL device and TN_DTYPE_AUTO keep. Only floating and
 * complex tensors change dtype, and only to a floating or complex one. What is in a slot with
 * TN_SLOT_FIXED_DTYPE keeps its dtype in every conversion, and so does its gradient. [null-ok:
 * device] */
TN_API tn_status tn_module_to(tn_module *module, const tn_device *device, tn_dtype dtype);
/* To the device of a name, "cpu" or "cuda:1". */
TN_API tn_status tn_module_to_device(tn_module *module, const char *name);
/* To dtype and device of a tensor. [null-through] */
TN_API tn_status tn_module_to_like(tn_module *module, const tn_tensor *other);

/* The order of dimensions in memory. */
typedef uint32_t tn_memory_format;
enum {
    TN_FORMAT_KEEP = 0,            /* as the tensor has it */
    TN_FORMAT_CONTIGUOUS = 1,      /* row-major */
    TN_FORMAT_CHANNELS_LAST = 2,   /* [N, C, H, W] with C innermost */
    TN_FORMAT_CHANNELS_LAST_3D = 3 /* [N, C, D, H, W] with C innermost */
};

enum {
    TN_CONVERT_NON_BLOCKING = 1, /* a hint: copies between host and device need not be waited for */
    TN_CONVERT_FLOATING = 2,     /* complex tensors keep their dtype */
    TN_CONVERT_ALL = 4           /* integers and bool change their dtype, too, and to any */
};

/* All of these at once. `format` changes only tensors of four and five dimensions.
 * [null-ok: device] */
TN_API tn_status tn_module_convert(tn_module *module, const tn_device *device, tn_dtype dtype,
                                   tn_memory_format format, uint32_t flags);
/* PyTorch's half(), bfloat16(), float(), double(): floating tensors only. */
#define tn_module_half(module)                                                                     \
    tn_module_convert(module, NULL, TN_F16, TN_FORMAT_KEEP, TN_CONVERT_FLOATING)
#define tn_module_bfloat16(module)                                                                 \
    tn_module_convert(module, NULL, TN_BF16, TN_FORMAT_KEEP, TN_CONVERT_FLOATING)
#define tn_module_float(module)                                                                    \
    tn_module_convert(module, NULL, TN_F32, TN_FORMAT_KEEP, TN_CONVERT_FLOATING)
#define tn_module_double(module)                                                                   \
    tn_module_convert(module, NULL, TN_F64, TN_FORMAT_KEEP, TN_CONVERT_FLOATING)
/* PyTorch's type(dtype): every parameter and buffer. */
#define tn_module_cast(module, dtype)                                                              \
    tn_module_convert(module, NULL, dtype, TN_FORMAT_KEEP, TN_CONVERT_ALL)

/* Memory of the same shapes and dtypes on a device, the values undefined; without `recurse` the
 * module's own tensors only. Used to move from a device without memory (`meta`) to one with
 * memory. */
TN_API tn_status tn_module_to_empty(tn_module *module, const tn_device *device, bool recurse);
/* Moves all tensors to memory shared with processes that this one forks; the last user frees it.
 * Tensors that shared a storage share one again. Tensors on devices whose memory the host does not
 * reach stay as they are. [null-through] */
TN_API tn_status tn_module_share_memory(tn_module *module);

/* The basis of the functions above: calls `change` for every tensor, children's first (each child
 * of a module once), then parameters with their gradients, then buffers. `*out` is the tensor at
 * the call; another one stored there replaces it when all calls succeed. A tensor that is reached
 * again is passed in its current state. What `change` writes in place stays written when a later
 * call fails. [null-ok: user] */
TN_API tn_status tn_module_map(tn_module *module, bool recurse,
                               tn_status (*change)(void *user, tn_tensor *tensor, tn_tensor **out),
                               void *user);

/* ---- copying --------------------------------------------------------------------------------- */

/* A copy with its own storages: tensors that were tied, shared or views of one storage are so among
 * the copies. Modes, requires_grad, reserved names, computed slots and hooks are copied; gradients
 * of parameters are not. [owned] [null-through] */
TN_API tn_module *tn_module_copy(tn_module *module);

/* ---- compiling ------------------------------------------------------------------------------- */

/* How calls of the module run, by a spec: "eager()", or NULL, as they always do, which the log says
 * (information). There is nothing else before graphs exist; another name is refused with the list.
 * [null-through] [null-ok: spec] */
TN_API tn_status tn_module_compile(tn_module *module, const char *spec);

TN_END_DECLS
#endif

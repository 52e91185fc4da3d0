/* SPDX-License-Identifier: MIT
 *
 * Moving, converting and copying modules.
 * tenon-interface: tenon.convert 0
 *
 * Conversions work in place: the tensor objects of a module stay the same but refer to new memory,
 * so tied parameters, optimizers and other owners of a parameter remain valid. The gradient of a
 * parameter is converted with it. Conversions are not recorded for gradients. If a conversion
 * fails, the module is unchanged.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_CONVERT_H
#define TENON_CONVERT_H

#include <tenon/module.h>

TN_BEGIN_DECLS

/* ---- moving and converting ------------------------------------------------------------------- */

/* Moves all parameters and buffers to a device and converts them to a dtype. A NULL device and
 * TN_DTYPE_AUTO leave device or dtype unchanged. Only floating and complex tensors are converted,
 * and only to a floating or complex dtype. A tensor in a slot with TN_SLOT_FLAG_FIXED_DTYPE, and
 * its gradient, keep their dtype in every conversion. [null-ok: device] */
TN_API tn_status tn_module_to(tn_module *module, const tn_device *device, tn_dtype dtype);
/* Moves all parameters and buffers to a device, by name: "cpu" or "cuda:1". */
TN_API tn_status tn_module_to_device(tn_module *module, const char *name);

/* The order of dimensions in memory. */
typedef uint32_t tn_memory_format;
enum {
    TN_MEMORY_FORMAT_KEEP = 0,            /* unchanged */
    TN_MEMORY_FORMAT_CONTIGUOUS = 1,      /* row-major */
    TN_MEMORY_FORMAT_CHANNELS_LAST = 2,   /* [N, C, H, W] with C innermost */
    TN_MEMORY_FORMAT_CHANNELS_LAST_3D = 3 /* [N, C, D, H, W] with C innermost */
};

enum {
    TN_CONVERT_NON_BLOCKING =
        1,                   /* a hint: the call need not wait for copies between host and device */
    TN_CONVERT_FLOATING = 2, /* only floating tensors change their dtype; complex tensors keep it */
    /* All tensors change their dtype, integer and bool tensors too, to any dtype. */
    TN_CONVERT_ALL = 4
};

/* Moves the module to a device and converts it to a dtype and a memory format. A NULL device,
 * TN_DTYPE_AUTO and TN_MEMORY_FORMAT_KEEP leave the property unchanged. A format other than KEEP
 * applies only to tensors with four or five dimensions; CHANNELS_LAST fails for a tensor with five,
 * CHANNELS_LAST_3D for one with four. `flags`: TN_CONVERT_*. [null-ok: device] */
TN_API tn_status tn_module_convert(tn_module *module, const tn_device *device, tn_dtype dtype,
                                   tn_memory_format format, uint32_t flags);
/* PyTorch's half(), bfloat16(), float() and double(): convert floating tensors only. */
#define tn_module_half(module)                                                                     \
    tn_module_convert(module, NULL, TN_F16, TN_MEMORY_FORMAT_KEEP, TN_CONVERT_FLOATING)
#define tn_module_bfloat16(module)                                                                 \
    tn_module_convert(module, NULL, TN_BF16, TN_MEMORY_FORMAT_KEEP, TN_CONVERT_FLOATING)
#define tn_module_float(module)                                                                    \
    tn_module_convert(module, NULL, TN_F32, TN_MEMORY_FORMAT_KEEP, TN_CONVERT_FLOATING)
#define tn_module_double(module)                                                                   \
    tn_module_convert(module, NULL, TN_F64, TN_MEMORY_FORMAT_KEEP, TN_CONVERT_FLOATING)
/* PyTorch's type(dtype): converts every parameter and buffer. */
#define tn_module_cast(module, dtype)                                                              \
    tn_module_convert(module, NULL, dtype, TN_MEMORY_FORMAT_KEEP, TN_CONVERT_ALL)

/* Gives all parameters and buffers new memory on `device`, with the same shapes and dtypes; the
 * values are undefined. With `recurse` false, only the tensors of the module itself, not those of
 * its children. For moving a module from a device without memory (`meta`) to a device with
 * memory. */
TN_API tn_status tn_module_to_empty(tn_module *module, const tn_device *device, bool recurse);
/* Moves all parameters and buffers to memory that this process shares with the processes that it
 * forks. The last process that uses the memory frees it. Tensors that shared a storage still share
 * one. Tensors on devices whose memory the host cannot access stay unchanged. [null-through] */
TN_API tn_status tn_module_share_memory(tn_module *module);

/* Calls `change` for every tensor of the module: first for the tensors of its children (each child
 * once), then for its parameters and their gradients, then for its buffers. `*out` is initially
 * `tensor`; `change` may store another tensor there, which replaces `tensor` after all calls have
 * succeeded. If a tensor is reached a second time, `change` receives it with the changes so far. If
 * a later call fails, values that `change` wrote in place stay changed. With `recurse` false,
 * children are left out. All other conversions are built on this function. [null-ok: user] */
TN_API tn_status tn_module_map(tn_module *module, bool recurse,
                               tn_status (*change)(void *user, tn_tensor *tensor, tn_tensor **out),
                               void *user);

/* ---- copying --------------------------------------------------------------------------------- */

/* Returns a deep copy of a module. The copy owns new storages. Tensors that are tied or share a
 * storage in the original are tied or share a storage in the copy. Training mode, requires_grad,
 * reserved names, computed slots and hooks are copied. Gradients of parameters are not. [owned]
 * [null-through] */
TN_API tn_module *tn_module_copy(tn_module *module);

/* ---- compiling ------------------------------------------------------------------------------- */

/* Chooses how calls of the module run. `spec` names the method:
 *   "eager()" or NULL: operators run one by one, as without this function;
 *   "plan(passes='', bindings=8, train=False, compilers='', device_graph=False)": a call in
 *   evaluation mode that records no gradient traces the module and makes a plan (<tenon/graph.h>)
 *   for inputs of these dtypes, shapes and devices, after the passes and compilers
 *   (tn_graph_compile); later calls run the plan. At most `bindings` plans are kept. A call fails
 *   if the module cannot be traced, or if the trace cannot become a plan. Calls in training mode,
 *   in a region of autocast, within a trace, and those that record gradients run eagerly. A plan is
 *   made again after a change of the module: other parameters, buffers, children, modes, options or
 *   forwards. Hooks of the module itself run as before; those of modules below are refused.
 *   With train=True, calls in training mode and those that record gradients have plans, too, of
 *   forward and backward; the guide says which of them run eagerly (docs/guides/graphs.md).
 *   With device_graph=True, the device records the kernels of a plan for evaluation once, and calls
 *   launch the record; a call fails if the device cannot record them.
 * Copies of the module run eagerly. Any other name is refused with a list of the known names. No
 * other thread may be calling the module. [null-through] [null-ok: spec] */
TN_API tn_status tn_module_compile(tn_module *module, const char *spec);
/* Writes what plans a compiled module has, the one used last first: for which calls, the number of
 * steps, the memory; with `steps`, also the steps as tn_plan_print does. The text is empty if the
 * module is not compiled, or was not called. Writes at most `size` bytes including the final NUL;
 * returns the length of the complete text, -1 on error. No other thread may be calling the module.
 * [null-ok: out] [null-through] */
TN_API int64_t tn_module_compile_print(tn_module *module, bool steps, char *out, size_t size);

TN_END_DECLS
#endif

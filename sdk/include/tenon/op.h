/* SPDX-License-Identifier: MIT
 *
 * Operators: finding and calling them by name. The typed wrappers (tn_relu(x)) are generated into
 * <tenon/ops.h> from sdk/operators and call tn_op_call. tenon-interface: tenon.op 0 */
#ifndef TENON_OP_H
#define TENON_OP_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

typedef struct tn_op tn_op;

#define TN_MAX_OPERANDS                                                                            \
    16 /* of a schema with named inputs; operators over lists (cat) take any number */

/* The operator of a name; revision 0 is the newest. The handle stays valid until the process ends,
 * also when kernels are added. TN_ERR_NOT_IMPLEMENTED when no loaded plugin defines it, with the
 * nearest name. [static] */
TN_API const tn_op *tn_op_find(const char *name, uint32_t revision);

/* Calls an operator. `in`: n_in tensors in schema order (NULL for none); TN_NONE for absent
 * optional ones; a NULL makes the call fail without a new error. `options`: the operator's option
 * struct (its first member is its size), or NULL for all defaults. `out` receives n_out tensors,
 * owned by the innermost scope; on failure all NULL. Differentiable inputs record a graph node.
 * [scoped] [array: in n_in, out n_out] [null-ok: options] */
TN_API tn_status tn_op_call(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                            const void *options, tn_tensor **out, int64_t n_out);

/* The same for one output that is written into an existing tensor instead of a new one: `into` is
 * input 0 for the in-place form x.add_(y), or any tensor of the result's exact shape (its dtype may
 * be wider in the sense of PyTorch's casting rules) for the out= form, where no gradient may be
 * recorded. Inputs that partly overlap `into` are refused. [array: in n_in] [null-ok:
 * options] */
TN_API tn_status tn_op_call_into(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                                 const void *options, tn_tensor *into);

/* The cache of a generated wrapper, filled on the first call. */
typedef struct tn_op_ref {
    const char *name;
    uint32_t revision;
    const tn_op *op;
} tn_op_ref;

/* tn_op_find with the result kept in `ref` (atomically). [static] [inout: ref] */
TN_API const tn_op *tn_op_lookup(tn_op_ref *ref);

/* One-output form that generated wrappers use: NULL on failure. [scoped] [inout: ref]
 * [array: in n_in] [null-ok: options] */
TN_API tn_tensor *tn_op_call1(tn_op_ref *ref, tn_tensor *const *in, int64_t n_in,
                              const void *options);
/* In-place form of the wrappers: returns input 0. [borrowed] [array: in n_in]
 * [inout: ref] [null-ok: options] [null-through] */
TN_API tn_tensor *tn_op_call1_into(tn_op_ref *ref, tn_tensor *const *in, int64_t n_in,
                                   const void *options, tn_tensor *into);

/* ---- looking at operators (for `tenon ops`, bindings, tests) --------------------------------- */

/* Names of all operators, sorted; valid until the next plugin is loaded. [borrowed] */
TN_API int64_t tn_op_count(void);
TN_API const char *tn_op_name_at(int64_t index);

/* The definition behind a handle (contrib.h) as the core copied it. [static] */
TN_API const struct tn_op_def *tn_op_definition(const tn_op *op);

/* How the operator runs on a device type for a dtype: "kernel tn_add (file)", "decomposition",
 * "view", or "missing". Writes at most `size` bytes; returns the length. [null-ok:
 * out] */
TN_API int64_t tn_op_route(const tn_op *op, const char *device_type, tn_dtype dtype, char *out,
                           size_t size);

/* ---- fallback -------------------------------------------------------------------------------- */

/* Operators that a device lacks and that ran on another device because TENON_FALLBACK (or
 * tn_set_fallback) allows it. */
typedef struct tn_fallback_count {
    const char *op;
    const char *from;
    const char *to;
    uint64_t calls;
    uint64_t bytes; /* moved between the devices */
    uint64_t reserved[3];
} tn_fallback_count;

/* "error" (the default, also for NULL) or the name of a device. [null-ok: policy] */
TN_API tn_status tn_set_fallback(const char *policy);
/* Copies up to `capacity` rows; returns how many there are. [null-ok: out] */
TN_API int64_t tn_fallback_counts(tn_fallback_count *out, int64_t capacity);

/* ---- calls that are kept --------------------------------------------------------------------- */

/* A call of an operator that is made many times with inputs of the same dtypes, shapes, strides and
 * device: its checks, its inference and the choice of its kernel are done once, and the kernel
 * computes once what it needs of inputs that stay the same (packed weights). */
typedef struct tn_prepared tn_prepared;

/* Prepares the call tn_op_call(op, in, n_in, options, ...). `constant`: bit i says that input i is
 * the same tensor in all calls, bit 63 that inputs 63 and later are; it may be written between
 * calls, which are then prepared again. Refused are calls that record gradients, that cast an input
 * first, that draw random numbers, views, and what the device decomposes. The options are copied.
 * [owned] [array: in n_in] [null-ok: options] */
TN_API tn_prepared *tn_op_prepare(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                                  const void *options, uint64_t constant);
/* Makes the call. Any thread, several at the same time. `out` as in tn_op_call. Inputs of another
 * dtype, shape, stride or device, and another tensor for a constant one, are errors. [scoped]
 * [array: in n_in, out n_out] */
TN_API tn_status tn_prepared_run(tn_prepared *prepared, tn_tensor *const *in, int64_t n_in,
                                 tn_tensor **out, int64_t n_out);
/* The same into existing tensors, contiguous and of the outputs' dtypes and shapes. They share no
 * memory with the inputs, except that into[0] may be an input as a whole where the kernel computes
 * in place (tn_kernel_def.inplace, and input 0 of operators that have an in-place form).
 * [array: in n_in, into n_into] */
TN_API tn_status tn_prepared_run_into(tn_prepared *prepared, tn_tensor *const *in, int64_t n_in,
                                      tn_tensor *const *into, int64_t n_into);
/* The kernel that runs (contrib.h). [static] */
TN_API const struct tn_kernel_def *tn_prepared_kernel(const tn_prepared *prepared);
/* Releases what was prepared, once no work uses it any more. No thread may be running it.
 * [null-ok: prepared] */
TN_API void tn_prepared_drop(tn_prepared *prepared);

TN_END_DECLS
#endif

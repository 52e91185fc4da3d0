/* SPDX-License-Identifier: MIT
 *
 * Operators: finding them by name and calling them. Programs normally use the typed wrappers in
 * <tenon/ops.h>, such as tn_relu(x), which are generated from sdk/operators and call these
 * functions. tenon-interface: tenon.op 0
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_OP_H
#define TENON_OP_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

typedef struct tn_op tn_op;

#define TN_MAX_OPERANDS 16 /* named inputs of an operator; a list of inputs may be longer */

/* Returns the operator with this name, in this revision of its definition; 0: the newest. The
 * handle stays valid until the process ends, even if kernels are added later. Returns NULL and
 * records TN_ERR_NOT_IMPLEMENTED, with the nearest name, if no loaded plugin defines the operator.
 * [static] */
TN_API const tn_op *tn_op_find(const char *name, uint32_t revision);

/* Calls an operator. `in` has n_in tensors in the order of the schema (it may be NULL if n_in is
 * 0), TN_NONE for absent optional inputs; if an element is NULL, the call fails without recording a
 * new error. Optional inputs at the end may be left out, and there may be more TN_NONE at the end
 * than the operator has inputs. `options` is the option struct of the operator, whose first member
 * is its size; NULL: all defaults. Options behind its size have their defaults; a struct that has
 * more options than the operator is refused. Outputs that were added to the operator may be left
 * out. The n_out results are stored in `out` and owned by the innermost scope; on failure
 * all elements of `out` are NULL. If an input requires a gradient, the call is recorded for
 * backward. [scoped] [array: in n_in, out n_out] [null-ok: options] */
TN_API tn_status tn_op_call(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                            const void *options, tn_tensor **out, int64_t n_out);

/* Like tn_op_call, but writes the only output into an existing tensor. For the in-place form, such
 * as x.add_(y), `into` is input 0. For the out= form, `into` is any tensor with exactly the shape
 * of the result; its dtype may be wider, by PyTorch's casting rules, and no gradient may be
 * recorded. Fails if an input partly overlaps `into`. [array: in n_in] [null-ok: options] */
TN_API tn_status tn_op_call_into(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                                 const void *options, tn_tensor *into);

/* Used by a generated wrapper to cache the operator that the first call has found. */
typedef struct tn_op_ref {
    const char *name;
    uint32_t revision;
    const tn_op *op;
} tn_op_ref;

/* Like tn_op_find for ref->name and ref->revision; caches the result in `ref`. Thread-safe.
 * [static] [inout: ref] */
TN_API const tn_op *tn_op_lookup(tn_op_ref *ref);

/* Used by generated wrappers: calls an operator with one output and returns that output; NULL on
 * failure. [scoped] [inout: ref] [array: in n_in] [null-ok: options] */
TN_API tn_tensor *tn_op_call1(tn_op_ref *ref, tn_tensor *const *in, int64_t n_in,
                              const void *options);
/* Used by generated wrappers for in-place forms: calls tn_op_call_into and returns `into`; NULL on
 * failure. [borrowed] [array: in n_in] [inout: ref] [null-ok: options] [null-through] */
TN_API tn_tensor *tn_op_call1_into(tn_op_ref *ref, tn_tensor *const *in, int64_t n_in,
                                   const void *options, tn_tensor *into);

/* ---- information about operators (for `tenon ops`, bindings, tests) -------------------------- */

/* tn_op_count returns the number of operators, tn_op_name_at their names, sorted. The names are
 * valid until the next plugin is loaded. [borrowed] */
TN_API int64_t tn_op_count(void);
TN_API const char *tn_op_name_at(int64_t index);

/* Returns the definition of an operator (<tenon/contrib.h>), as the core has copied it. [static] */
TN_API const struct tn_op_def *tn_op_definition(const tn_op *op);

/* Writes how the operator runs on a device type for a dtype: "kernel NAME (FILE)", "decomposition",
 * "view", "shapes only" or "missing". Writes at most `size` bytes including the final NUL; returns
 * the length of the complete text. [null-ok: out] */
TN_API int64_t tn_op_route(const tn_op *op, const char *device_type, tn_dtype dtype, char *out,
                           size_t size);

/* ---- fallback -------------------------------------------------------------------------------- */

/* Counts the calls of one operator that a device has no kernel for and that ran on another device.
 * This happens only if TENON_FALLBACK or tn_set_fallback allows it. */
typedef struct tn_fallback_count {
    const char *op;
    const char *from;
    const char *to;
    uint64_t calls;
    uint64_t bytes; /* bytes copied between the devices */
    uint64_t reserved[3];
} tn_fallback_count;

/* Chooses what happens to operators that a device has no kernel for: with "error" (the default,
 * also for NULL) the call fails; with the name of a device the operator runs on that device.
 * [null-ok: policy] */
TN_API tn_status tn_set_fallback(const char *policy);
/* Copies up to `capacity` rows to `out`. Returns the number of existing rows. [null-ok: out] */
TN_API int64_t tn_fallback_counts(tn_fallback_count *out, int64_t capacity);

/* ---- prepared calls -------------------------------------------------------------------------- */

/* A prepared call of an operator, for a call that is made many times with inputs of the same
 * dtypes, shapes, strides and device. The checks, the inference of shapes and the choice of the
 * kernel are done once. The kernel can also compute data once from inputs that stay the same, such
 * as packed weights. */
typedef struct tn_prepared tn_prepared;

/* Prepares the call tn_op_call(op, in, n_in, options, ...). Bit i of `constant` says that input i
 * is the same tensor in all calls, bit 63 that all inputs from 63 on are. If a program writes to a
 * constant input between calls, the next call prepares its data again. Fails for calls that record
 * gradients, cast an input first, draw random numbers or return views, and for operators that the
 * device decomposes. The options are copied. [owned] [array: in n_in] [null-ok: options] */
TN_API tn_prepared *tn_op_prepare(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                                  const void *options, uint64_t constant);
/* Runs a prepared call. Any number of threads may run it at the same time. `out` as in tn_op_call.
 * Fails if an input has another dtype, shape, stride or device than when the call was prepared, or
 * if a constant input is another tensor. [scoped] [array: in n_in, out n_out] */
TN_API tn_status tn_prepared_run(tn_prepared *prepared, tn_tensor *const *in, int64_t n_in,
                                 tn_tensor **out, int64_t n_out);
/* Like tn_prepared_run, but writes into existing contiguous tensors with the dtypes and shapes of
 * the outputs. These must not share memory with the inputs, with one exception: into[0] may be the
 * same tensor as an input if the kernel can compute in place (tn_kernel_def.inplace, and input 0 of
 * operators with an in-place form). [array: in n_in, into n_into] */
TN_API tn_status tn_prepared_run_into(tn_prepared *prepared, tn_tensor *const *in, int64_t n_in,
                                      tn_tensor *const *into, int64_t n_into);
/* Returns the kernel that the prepared call runs (<tenon/kernel.h>). [static] */
TN_API const struct tn_kernel_def *tn_prepared_kernel(const tn_prepared *prepared);
/* Frees a prepared call; its data is freed when no queued work uses it any more. No thread may be
 * running the call. [null-ok: prepared] */
TN_API void tn_prepared_drop(tn_prepared *prepared);

TN_END_DECLS
#endif

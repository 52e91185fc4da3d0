/* SPDX-License-Identifier: MIT
 *
 * The descriptor of a kernel, the code of an operator on a type of devices, which a plugin (or a
 * program, with tn_register) can contribute, and the call that it receives. The rules for
 * descriptors in <tenon/contrib.h> apply to it.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_KERNEL_H
#define TENON_KERNEL_H

#include <tenon/backend.h>

TN_BEGIN_DECLS

enum {
    /* The call will be repeated with other data: what the kernel computes from the shapes can be
     * kept. */
    TN_CALL_REPEATED = 1,
    /* The device records the work of this call: `run` must not wait for it or allocate memory. */
    TN_CALL_CAPTURED = 2
};

/* One call of a kernel. `in[i]` is NULL for an absent optional input. The memory of `out` is
 * allocated before the call; in-place, it is the memory of in[0]. `supports`, `workspace` and
 * `prepare_key` must not use the members `data` (which may be NULL) and `byte_offset` of a view;
 * `prepare` may use them only of constant inputs. make_output: [callback], from inside `run`. */
typedef struct tn_call {
    tn_head head;
    const char *op;
    const tn_view *const *in;
    const tn_view *const *out;
    int64_t n_in;
    int32_t n_out;
    tn_dtype dtype;      /* the dtype that chose the kernel */
    const void *options; /* option struct of the operator, with the defaults filled in */
    void *device;        /* the backend's handle of the device */
    void *stream;
    const tn_view *workspace; /* workspace of the requested size; NULL if none was requested */
    const struct tn_kernel_def *kernel;
    /* For an output whose shape is only known now: allocates output `index` with this shape;
     * out[index] is then its view. */
    tn_status (*make_output)(const struct tn_call *call, int32_t index, tn_ints shape);
    void *host; /* for the core */
    /* Of a prepared call (tn_op_prepare); 0 and NULL for all others. */
    uint64_t constant; /* bit i: input i is the same in all calls; bit 63: all from 63 on */
    void *prepared;    /* the data that `prepare` returned */
    uint64_t flags;    /* TN_CALL_* */
    /* The device of the call, for functions of the host that take one; `device` is the backend's
     * handle of the same device. */
    const tn_device *on;
} tn_call;

enum {
    /* The kernel may have a higher priority than a kernel of another plugin for the same operator,
     * device and dtype. Without this flag it is then refused, unless its plugin provides the
     * device. */
    TN_KERNEL_OVERRIDE = 1,
    TN_KERNEL_DETERMINISTIC = 2, /* the results do not depend on threads or timing */
    /* `run` may be called while the device records (TN_CALL_CAPTURED). The record then contains
     * everything that `run` does, and refers only to memory of the operands and of the prepared
     * data, never to memory of the host. */
    TN_KERNEL_CAPTURE_SAFE = 4,
    /* The order of strides with which the kernel works best on images: channels with stride 1
     * (TN_KERNEL_CHANNELS_LAST), or elements of a row with stride 1 (TN_KERNEL_CHANNELS_FIRST).
     * Replaces TN_BACKEND_CHANNELS_LAST of the device in tn_infer.device_flags. A kernel has at
     * most one of the two flags. */
    TN_KERNEL_CHANNELS_LAST = 8,
    TN_KERNEL_CHANNELS_FIRST = 16,
    /* A call for which this kernel is chosen is decomposed, and kernels with a lower priority are
     * not asked. For a plugin whose kernels for the operators of the decomposition are faster than
     * another plugin's kernel for the whole operator. `run` is never called, and may be NULL.
     * Ignored where the operator has no decomposition for the dtype. */
    TN_KERNEL_DECOMPOSE = 32
};

/* The result of `prepare`, zeroed before the call. */
typedef struct tn_prepared_data {
    tn_head head;
    void *data;     /* NULL: there was nothing to prepare; `release` is not called */
    uint64_t bytes; /* size of the data in memory of the device, for statistics */
} tn_prepared_data;

/* A kernel. Its functions: [stream], called by one thread at a time for each stream, and for
 * different streams at the same time. */
typedef struct tn_kernel_def {
    tn_head head;
    const char *op;
    const char *device; /* the device type that the kernel runs on */
    const char *name;   /* "tn_softmax" */
    uint32_t revision;  /* revision of the operator */
    /* A kernel with a higher priority is asked first; a backend's own kernels have 0. */
    int32_t priority;
    uint64_t flags;   /* TN_KERNEL_* */
    uint64_t dtypes;  /* TN_BIT mask of supported dtypes */
    const void *user; /* for the plugin; the core does not read it */
    /* Returns whether the kernel can run a call of one of its dtypes. If not, writes a reason to
     * reason[size] with tn_snprint. It receives the real call, whose workspace is still NULL. NULL:
     * the kernel can run all these calls. */
    bool (*supports)(const tn_call *call, char *reason, size_t size);
    /* Returns the size in bytes of the workspace that `run` needs. NULL: none. */
    size_t (*workspace)(const tn_call *call);
    tn_status (*run)(const tn_call *call);

    /* All members that follow may be NULL or 0. */

    /* Computes data that later calls need from the constant inputs (packed weights) and the shapes.
     * `run` finds the data in call->prepared, possibly in several threads at the same time. In a
     * call that was not prepared, call->prepared is NULL, and `run` must work without it. `prepare`
     * may queue work in the stream and need not wait for it. The outputs, and inputs that are not
     * constant, have no memory yet. After a constant input was written, the core calls `prepare`
     * again and releases the old data. */
    tn_status (*prepare)(const tn_call *call, tn_prepared_data *out);
    /* Frees the data of `prepare` when no work uses it any more. NULL: nothing to free. */
    void (*release)(const struct tn_kernel_def *kernel, void *data);
    uint64_t inplace; /* bit i: output 0 may have the memory of input i, as the same view */
    /* Array with a TN_BIT mask of the accepted dtypes for each input of the operator, followed by
     * one for each output; 0: any dtype. The mask of a list input is for all its tensors. A call
     * with other dtypes goes to the next kernel. NULL: only `dtypes` is checked. */
    const uint64_t *operand_dtypes;
    /* With prepare_key, the core also calls `prepare` for calls that no program prepared, once an
     * input has had the same values in several calls (weights in inference). `weights` has one bit,
     * that of this input; call->constant is then `weights`. The core uses the data for calls in
     * which the input is the same view with the same values and prepare_key returns the same
     * number. It releases the data when the memory of the input is written or freed. prepare_key
     * returns 0 if nothing should be kept for this call, otherwise a number that differs if the
     * data would differ for a reason other than the input. Results must have the same bits with and
     * without the data. NULL: the core keeps nothing. */
    uint64_t (*prepare_key)(const tn_call *call);
    uint64_t weights;
    /* The version (TN_SINCE_OWN or more) up to which the kernel knows the options, inputs and
     * outputs of an operator that is not in <tenon/ops.h> and that another plugin defines. Those of
     * <tenon/ops.h> it knows up to head.target, those of its own plugin all. A call that uses more
     * goes to the next kernel or is decomposed. */
    uint32_t knows;
    uint32_t reserved;
} tn_kernel_def;

/* Initializes a kernel, as a row of a plugin's kernel table (tn_plugin.kernels) or alone. */
#ifdef __cplusplus
static constexpr tn_kernel_def tn_kernel_row(const char *op, const char *device, const char *name,
                                             uint64_t dtypes, tn_status (*run)(const tn_call *))
{
    tn_kernel_def kernel = tn_kernel_def();

    kernel.head = TN_HEAD_INIT(tn_kernel_def);
    kernel.op = op;
    kernel.device = device;
    kernel.name = name;
    kernel.revision = 1;
    kernel.dtypes = dtypes;
    kernel.run = run;
    return kernel;
}
#define TN_KERNEL(op_, device_, name_, dtypes_, run_)                                              \
    tn_kernel_row(op_, device_, name_, dtypes_, run_)
#else
#define TN_KERNEL(op_, device_, name_, dtypes_, run_)                                              \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = op_, .device = device_, .name = name_, .revision = 1,        \
                                .dtypes = dtypes_, .run = run_                                     \
    }
#endif

TN_END_DECLS

#endif

/* SPDX-License-Identifier: MIT
 *
 * The descriptor of an operator: its operands and options, its inference, derivative and
 * decomposition.
 *
 * <tenon/contrib.h> says what holds for all descriptors. Tags in brackets: see base.h. */
#ifndef TENON_OPERATOR_H
#define TENON_OPERATOR_H

#include <tenon/op.h>

TN_BEGIN_DECLS

/* The arguments of `infer`, which computes dtypes and shapes of the outputs. `in[i]` is a view with
 * shape, strides and dtype, but possibly without data (meta devices, graph capture); NULL for an
 * absent optional input. `dtype` is the common dtype that promotion found, or TN_DTYPE_AUTO without
 * promotion. */
typedef struct tn_infer {
    tn_head head;
    const struct tn_op_def *op;
    const tn_view *const *in;
    int64_t n_in;
    const void *options;
    /* `infer` may write another dtype here: the core then casts the inputs that take part in
     * promotion to it, and calls `infer` again. */
    tn_dtype dtype;
    int32_t n_out;
    /* Array of n_out elements; `infer` must write dtype, ndim and shape of each. ndim -1: only the
     * kernel can tell the shape (tn_call.make_output). */
    tn_meta *out;
    /* The offset of in[0] in its storage, in elements. The offset of a view starts from it. */
    int64_t in0_offset;
    /* `infer` may write these two members to say which inputs this call only reads. For an input i
     * with TN_OPERAND_UPDATED, bit i of `only_read` says this. A list with TN_OPERAND_WRITTEN
     * consists of groups of `group` tensors, at most 64; bit k of `only_read` says it for tensor k
     * of each group. `group` 0: the call writes all tensors of the list. */
    int64_t group;
    uint64_t only_read;
    /* TN_BACKEND_* of the device on which the call runs; 0 if it is not known (tn_op_infer). If the
     * first kernel by priority that accepts the dtypes of the inputs has TN_KERNEL_CHANNELS_LAST or
     * TN_KERNEL_CHANNELS_FIRST, this flag sets or clears TN_BACKEND_CHANNELS_LAST. */
    uint64_t device_flags;
} tn_infer;

/* The arguments of `derive`, which computes gradients with operators: it must write gin[i] for
 * every i with bit i of `need` set; TN_NONE means zero. If a gradient has a shape that the input
 * was broadcast to, or another dtype, the core reduces and casts it. `in` and `out` contain the
 * tensors that the definition asked to save, and NULL for all others and for tensors that were
 * changed in place since: `derive` passes a NULL on to operators, which then fail, and the core
 * reports the reason. `in_meta` has the shape and dtype of every input. gout[i] is TN_NONE if
 * output i has no gradient; if no output has one, `derive` is not called. Runs in a scope of its
 * own. */
typedef struct tn_derive {
    tn_head head;
    const struct tn_op_def *op;
    const void *options;
    tn_tensor *const *in;
    tn_tensor *const *out;
    tn_tensor *const *gout;
    const tn_meta *in_meta; /* one element per input; ndim is -1 for absent inputs */
    int64_t n_in;
    int32_t n_out;
    uint32_t need; /* bit i: gin[i] is needed; bit 31: all inputs from 31 on */
    tn_tensor **gin;
    /* The gradient that in[0] has received from its other uses, with the shape and dtype of in[0],
     * or NULL. A derivative that changes only few elements may add to this tensor in place and then
     * return it as gin[0]. */
    tn_tensor *sum;
} tn_derive;

/* The arguments of `decompose`, which computes the outputs by calling other operators, in a scope
 * of its own. in[i] is TN_NONE for an absent optional input. An output may be one of the inputs if
 * there is nothing to compute. */
typedef struct tn_decompose {
    tn_head head;
    const struct tn_op_def *op;
    const void *options; /* option struct of the operator, with the defaults filled in */
    tn_tensor *const *in;
    int64_t n_in;
    tn_tensor **out; /* array of n_out elements, initially NULL */
    int32_t n_out;
    uint32_t reserved;
} tn_decompose;

/* An input or output of an operator. The layout never changes. */
typedef struct tn_operand {
    const char *name;
    uint64_t flags;  /* TN_OPERAND_*, TN_OPERAND_SINCE() */
    uint64_t dtypes; /* TN_BIT mask of accepted dtypes; 0: all dtypes with arithmetic */
} tn_operand;

/* Operators grow at their end: by options that have a default, optional inputs and outputs. `since`
 * of a tn_option and TN_OPERAND_SINCE of an operand (in its flags) say which version added them;
 * without it, the operator had them from the beginning. The numbers never decrease along a list.
 * For operators of <tenon/ops.h> they are minor versions of the ABI. The operators of other headers
 * count from TN_SINCE_OWN on. A kernel of another plugin runs only calls that use nothing that was
 * added after the version for which it was compiled (tn_kernel_def.knows).
 *
 * The first option of each version must begin at a multiple of 8 bytes (TN_OPTION_ADDED in its
 * declaration), so that it is not in the padding at the end of an older struct. */
enum { TN_SINCE_OWN = 1000 };
#define TN_OPERAND_SINCE(version) ((uint64_t)(version) << 48)

enum {
    TN_OPERAND_OPTIONAL = 1,   /* may be absent (TN_NONE) */
    TN_OPERAND_NO_GRAD = 2,    /* has no gradient (indices, targets) */
    TN_OPERAND_NO_PROMOTE = 4, /* does not take part in type promotion */
    /* Any number of tensors, at least one. Only for the last input. */
    TN_OPERAND_LIST = 8,
    TN_OPERAND_ANY_DEVICE = 16, /* may be on another device than the other inputs */
    /* Must not be the tensor that the in-place form writes, because the kernel reads it in another
     * order. */
    TN_OPERAND_APART = 32,
    /* The operator writes to this input. Such an operator has no derivative, may have no outputs,
     * and runs only if no gradient would be recorded. */
    TN_OPERAND_WRITTEN = 64,
    /* The operator writes to this input (such as running moments) and has a derivative with respect
     * to other inputs. Requires TN_OPERAND_NO_GRAD and, if inputs are promoted,
     * TN_OPERAND_NO_PROMOTE. A call increases the version of the tensor; a tensor that requires a
     * gradient is refused. */
    TN_OPERAND_UPDATED = 128,
    /* The input has indices. The core also accepts int32 (TN_OPERAND_FROM_I32) or uint8
     * (TN_OPERAND_FROM_U8) and casts the input to int64, so that `infer`, kernels and `derive` only
     * see int64. `dtypes` must be TN_BIT(TN_I64), and the call must not write to the input. With
     * TN_BIT(TN_BOOL) the input has conditions: uint8 is cast to bool. */
    TN_OPERAND_FROM_I32 = 256,
    TN_OPERAND_FROM_U8 = 512
};

enum {
    TN_OP_PRIMITIVE = 1, /* has no decomposition, so every device needs a kernel for it */
    /* The output is a view of input 0, as `infer` describes it: no kernel runs, no memory is
     * allocated. */
    TN_OP_VIEW = 2,
    TN_OP_PROMOTE = 4,       /* the inputs are cast to their common dtype first */
    TN_OP_PROMOTE_FLOAT = 8, /* like TN_OP_PROMOTE, and integers become the default dtype */
    TN_OP_INPLACE = 16,      /* has an in-place form, in which output 0 is input 0 */
    /* Draws random numbers: calls are never merged or replayed, and never moved past another call
     * that draws. */
    TN_OP_RANDOM = 32,
    /* The in-place form accepts any tensor as input 0: the result is converted to the dtype and
     * broadcast to the shape of that tensor (copy). */
    TN_OP_INTO = 64,
    /* A primitive that a new device should begin with. All of these primitives together can train a
     * convolutional network with Adam. */
    TN_OP_BASIC = 128,
    /* The derivative follows a rule of its own and does not match the computed values, such as a
     * rounding that lets gradients pass. `tenon check` does not compare it with finite
     * differences. */
    TN_OP_STRAIGHT_THROUGH = 256,
    /* After broadcasting, element i of each output depends only on element i of the inputs and on
     * the options, by the same rule for all i. */
    TN_OP_POINTWISE = 512,
    /* `infer`, `derive` or `decompose` may read values of tensors on the host. Such calls cannot be
     * captured. */
    TN_OP_READS = 1024,
    /* Calls are never merged, omitted, or moved past another call of an operator with this flag
     * (exchange between processes). */
    TN_OP_ORDERED = 2048,
    /* What autocast (tn_autocast_begin) does with the floating inputs of a call: casts them to the
     * dtype of the region (LOW), to float32 (F32), to float32 unless all of them have the dtype of
     * the region (WIDEST), or refuses the call (REFUSED). Float64 is never cast. F32 does nothing
     * if the call sets an option that is a dtype. The flags with HOST are for devices that compute
     * in the memory of the host (TN_BACKEND_HOST_MEMORY), the others for all other devices; at most
     * one of each. Without a flag the inputs stay as they are. Forms that write into an existing
     * tensor are never cast. */
    TN_OP_AUTOCAST_LOW = 1 << 12,
    TN_OP_AUTOCAST_F32 = 1 << 13,
    TN_OP_AUTOCAST_WIDEST = 1 << 14,
    TN_OP_AUTOCAST_REFUSED = 1 << 15,
    TN_OP_AUTOCAST_HOST_LOW = 1 << 16,
    TN_OP_AUTOCAST_HOST_F32 = 1 << 17,
    TN_OP_AUTOCAST_HOST_WIDEST = 1 << 18,
    TN_OP_AUTOCAST_HOST_REFUSED = 1 << 19
};

/* An operator. Any thread may call its functions, for several calls at the same time. */
typedef struct tn_op_def {
    tn_head head;
    const char *name;
    const char *math;         /* one line, such as "y = max(x, 0)" */
    const char *help;         /* one or two sentences */
    void *user;               /* for the plugin; the core does not read it */
    uint64_t flags;           /* TN_OP_* */
    const tn_operand *inputs; /* array of n_inputs elements */
    const tn_operand *outputs;
    int32_t n_inputs;
    int32_t n_outputs;
    const tn_option *options; /* option table; NULL without options */
    const void *defaults;     /* an option struct with all defaults */
    uint32_t revision;
    uint32_t options_size;
    /* The input whose dtype chooses the kernel; -1: the dtype of output 0 does. */
    int32_t dispatch_input;
    uint32_t save_in;  /* bit i: `derive` needs input i */
    uint32_t save_out; /* bit i: `derive` needs output i */
    tn_status (*infer)(tn_infer *infer);
    /* NULL: gradients pass through the operators that `decompose` calls; without `decompose`, the
     * operator is not differentiable */
    tn_status (*derive)(tn_derive *derive);
    tn_status (*decompose)(const tn_decompose *call); /* NULL: every device needs a kernel */
    /* Array with an element for each input, followed by one for each output: the element has bit i
     * set if the gradient of input i needs the saved tensor. NULL: all gradients need all saved
     * tensors. */
    const uint32_t *save_for;
    /* TN_BIT mask of the dtypes that `decompose` handles, where the dtype is the one that chooses
     * the kernel; 0: all. With this mask, a primitive can have a decomposition only for complex
     * numbers. */
    uint64_t decompose_dtypes;
    /* Whether `derive`, after an in-place call with these options on a tensor of this dtype, can
     * use output 0 in place of input 0, which it saves. Then no copy of the old values is made:
     * in[0] of `derive` is NULL, and out[0] is saved. NULL: it cannot. */
    bool (*result_suffices)(const tn_op *op, const void *options, tn_dtype dtype);
} tn_op_def;

TN_END_DECLS

#endif

/* SPDX-License-Identifier: MIT
 *
 * The descriptors of what a plugin (or a program, with tn_register) can contribute. The descriptor
 * of a device type is in <tenon/backend.h>, those of passes and compilers are in
 * <tenon/compiler.h>, that of a communicator is in <tenon/comm.h>, that of a file format in
 * <tenon/format.h>, that of a kernel in <tenon/kernel.h>, that of a layer in <tenon/layer.h>, those
 * of datasets and transforms are in <tenon/data.h>, that of a pruning method is in
 * <tenon/prune.h>.
 *
 * Every descriptor begins with TN_HEAD and must stay valid until the process ends, so most are
 * `static const`. The core copies it into a struct of its own that is filled with zeros first, so a
 * member that an older plugin does not have is NULL. In callbacks, `self` and `op` point to this
 * copy. A callback reports a failure with tn_fail and returns the status; it must not end the
 * process, print, or start threads. The core does not read the member `user` of a descriptor, and
 * every callback can reach it, so one function can serve several descriptors, for example those
 * that a program makes at run time or that come from another language.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_CONTRIB_H
#define TENON_CONTRIB_H

#include <tenon/backend.h>
#include <tenon/comm.h>
#include <tenon/compiler.h>
#include <tenon/format.h>
#include <tenon/kernel.h>
#include <tenon/layer.h>
#include <tenon/prune.h>
#include <tenon/state.h>
#include <tenon/train.h>

TN_BEGIN_DECLS

/* ==== op: an operator ========================================================================= */

/* A flag of tn_meta: `strides` is set. Without this flag the tensor is row-major. */
enum { TN_META_STRIDED = 1 };
/* The dtype, shape and strides of a tensor without its data, as inference returns them. Strides are
 * in elements. The layout (280 bytes) never changes, because the struct is passed in arrays; only
 * `flags` and `reserved` can still get new meanings. */
typedef struct tn_meta {
    tn_dtype dtype;
    int32_t ndim;
    uint32_t flags;
    uint32_t reserved;
    int64_t offset; /* of a view: elements from the start of the storage */
    int64_t shape[TN_MAX_DIMS];
    int64_t strides[TN_MAX_DIMS];
} tn_meta;

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
    uint64_t flags;  /* TN_OPERAND_* */
    uint64_t dtypes; /* TN_BIT mask of accepted dtypes; 0: all dtypes with arithmetic */
} tn_operand;

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

/* ==== optimizer, scheduler, init ============================================================== */
/* The arguments of an optimizer step: the parameters of one group that have a gradient; with
 * TN_OPTIMIZER_CLOSURE all parameters of the group. The step changes the parameters in place and
 * only reads the gradients. */
typedef struct tn_step_args {
    tn_head head;
    const void *options; /* option struct of the group */
    int64_t group;
    int64_t count;
    const int64_t *index; /* parameters[i] is the parameter with this index in the optimizer */
    tn_tensor *const *parameters;
    /* With TN_OPTIMIZER_CLOSURE an element is NULL while the parameter has no gradient, and every
     * call of `closure` updates the elements. */
    tn_tensor *const *gradients;
    /* Set only for rules with TN_OPTIMIZER_CLOSURE; NULL for all others, for which the core itself
     * calls the program's closure before the step. Evaluates the loss with recording on, and
     * computes new gradients. Returns the loss, which the scope of the step owns; NULL after
     * recording a failure. To be called with `closure_user`, any number of times. */
    tn_tensor *(*closure)(void *user);
    void *closure_user;
} tn_step_args;

enum {
    /* Each element is updated independently of the others, so `step` may be called with slices of
     * parameters, gradients and states. */
    TN_OPTIMIZER_ELEMENTWISE = 1,
    /* The rule evaluates the loss itself, with the closure of tn_step_args: a step without closure
     * fails. `step` is called even if no parameter has a gradient, for all parameters. */
    TN_OPTIMIZER_CLOSURE = 2,
    /* The rule accepts only parameters with two dimensions; a step fails if a parameter has another
     * number of dimensions. */
    TN_OPTIMIZER_MATRICES = 4
};

/* The update rule of an optimizer. Any thread may call its functions, but only one thread at a time
 * for an optimizer. */
typedef struct tn_optimizer_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* for the plugin; tn_optimizer_user returns it */
    /* Two names have a meaning for the core: `lr`, a float, is the learning rate, which schedulers
     * set, and may then be below 0 without a call of `check`. `capturable`, a bool, is true if the
     * rule keeps the number of the step and the learning rate on the device of the parameters: only
     * such a step can be recorded (tn_stream_capture_begin). */
    const tn_option *options;
    uint64_t data_size; /* size of the option struct of a group */
    uint64_t flags;     /* TN_OPTIMIZER_* */
    /* Fails if an option of a group has a value that is not accepted. May be NULL. */
    tn_status (*check)(tn_optimizer *self, const void *options);
    /* Updates the parameters of one group. Called once for each group, without recording, in a
     * scope of its own. tn_optimizer_steps of a parameter already counts this step, so it is 1 in
     * the first step. If the function fails, some parameters may already have changed. */
    tn_status (*step)(tn_optimizer *self, const tn_step_args *args);
} tn_optimizer_def;

enum {
    /* Step 0: the scheduler was created, or another scheduler restarts it (RESTART). `rates` has
     * the initial rates, as changed by the other schedulers of the optimizer. */
    TN_SCHEDULE_INITIAL = 1,
    /* The step does not follow the last one; the rates are computed from those at the start. */
    TN_SCHEDULE_JUMP = 2,
    TN_SCHEDULE_RESTART = 4, /* tn_scheduler_restart called it; INITIAL or JUMP is set as well */
    TN_SCHEDULE_FIRST = 8    /* with INITIAL: the optimizer had no scheduler before */
};

/* The arguments of a scheduler, which changes the learning rates of the groups. It sets other
 * options with tn_optimizer_set. */
typedef struct tn_schedule_args {
    tn_head head;
    tn_optimizer *optimizer;
    int64_t step; /* the number of steps including this one; 0 when the scheduler is created */
    int64_t groups;
    double *initial; /* the initial learning rate of each group; may be changed in step 0 */
    double *rates;   /* the current learning rates, to be changed */
    double metric;   /* the argument of tn_scheduler_step_with; NaN for tn_scheduler_step */
    /* The function of tn_scheduler_lambda and its argument; NULL without one. */
    double (*function)(void *user, int64_t group, int64_t step);
    void *function_user;
    uint32_t flags; /* TN_SCHEDULE_* */
    uint32_t reserved;
} tn_schedule_args;

enum {
    /* The scheduler needs a metric, so tn_scheduler_step and other schedulers cannot step it. */
    TN_SCHEDULER_METRIC = 1
};

/* A learning-rate scheduler. Any thread may call its functions, but only one thread at a time for a
 * scheduler. */
typedef struct tn_scheduler_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* for the plugin; tn_scheduler_user returns it */
    const tn_option *options;
    uint64_t data_size;
    tn_status (*check)(tn_scheduler *self);
    tn_status (*step)(tn_scheduler *self, tn_schedule_args *args);
    /* An option table, with defaults, for the struct of `state_size` bytes that the scheduler keeps
     * between steps (tn_scheduler_state). The core saves and loads this struct, and restores it if
     * a step fails. */
    const tn_option *state;
    uint64_t state_size;
    uint64_t flags; /* TN_SCHEDULER_* */
} tn_scheduler_def;

/* An init, which fills a tensor with initial values. Any thread may call it, for several tensors at
 * the same time. */
typedef struct tn_init_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* for the plugin; the core does not read it */
    const tn_option *options;
    uint64_t data_size;
    tn_status (*fill)(const struct tn_init_def *self, const void *data, tn_tensor *tensor);
} tn_init_def;

/* ==== observer ================================================================================ */

/* A call of an operator, as an observer sees it. op_begin and op_end receive the same struct. */
typedef struct tn_op_event {
    tn_head head;
    const struct tn_op_def *op;
    const void *options; /* option struct of the operator; NULL: all defaults */
    /* The device of the tensor that is written, or of the first input. NULL: the call has neither,
     * as an operator that creates a tensor. */
    const tn_device *device;
    tn_tensor *const *in;
    int64_t n_in;
    tn_module *module; /* the innermost module that is being called; NULL outside of module calls */
    /* The members that follow are set for op_end only. */
    tn_tensor *const *out;
    int64_t n_out;    /* 0 if the call failed */
    tn_status status; /* status of the call */
    uint32_t reserved;
    /* The kernel that ran; NULL: a view, a decomposition, or no work. */
    const tn_kernel_def *kernel;
    void *stream; /* the backend's handle of the stream that the kernel received */
    /* If the call was recorded for gradients, its number among the recorded calls of this thread:
     * the range of its derivative (TN_RANGE_NODE) has the same number. 0: not recorded. */
    uint64_t sequence;
} tn_op_event;

/* A call of a module, as an observer sees it. */
typedef struct tn_module_event {
    tn_head head;
    tn_module *module;
    /* Dotted path from the module of the outermost call; "" for that module itself. */
    const char *path;
    tn_status status; /* status of the call; set for module_end only */
    uint32_t reserved;
} tn_module_event;

/* Memory that an allocator handed out for a tensor or got back from one, whether it comes from the
 * device or from the cache; also the memory of prepared data (`prepare` of tn_kernel_def). */
typedef struct tn_memory_event {
    tn_head head;
    const tn_device *device;
    int64_t bytes; /* positive: taken, negative: returned */
} tn_memory_event;

/* What a range is. */
enum {
    TN_RANGE_USER = 0,      /* from tn_range_begin to tn_range_end */
    TN_RANGE_STEP = 1,      /* a step of an optimizer; `name` is the name of its rule */
    TN_RANGE_ZERO_GRAD = 2, /* an optimizer clears the gradients of its parameters */
    TN_RANGE_BACKWARD = 3,  /* a call of tn_backward or tn_grad, with all its derivatives */
    TN_RANGE_NODE = 4,      /* the derivative of one recorded call; `name` is its operator */
    TN_RANGE_COPY = 5       /* bytes that a device copies, outside of operators */
};

/* A part of the work of a thread, as an observer sees it. Ranges of a thread are nested in each
 * other and in calls of operators and modules, except those of TN_RANGE_USER: a program may end the
 * call around such a range first. */
typedef struct tn_range_event {
    tn_head head;
    uint32_t kind;    /* TN_RANGE_* */
    tn_status status; /* status of the work; set for range_end only, TN_OK for TN_RANGE_USER */
    const char *name;
    uint64_t sequence;       /* of TN_RANGE_NODE: tn_op_event.sequence of the recorded call */
    const tn_device *device; /* of TN_RANGE_COPY: the device that copies */
    int64_t bytes;           /* of TN_RANGE_COPY */
} tn_range_event;

enum {
    /* The observer starts switched off, except if the environment variable TENON_PROFILE is set.
     * tn_observer_set_on switches any observer on and off. */
    TN_OBSERVER_PROFILER = 1
};

/* An observer: functions that the core calls before and after calls of operators and modules, in
 * any thread. Each may be NULL. The `end` function receives the value that the `begin` function
 * returned as `token`. The first call of an operator or module activates the plugin, and memory
 * events are reported from then on. At most 16 observers can be active. */
typedef struct tn_observer_def {
    tn_head head;
    const char *name;
    void *user; /* for the plugin: the first argument of all functions */
    uint64_t (*op_begin)(void *user, const tn_op_event *event);
    void (*op_end)(void *user, uint64_t token, const tn_op_event *event);
    uint64_t (*module_begin)(void *user, const tn_module_event *event);
    void (*module_end)(void *user, uint64_t token, const tn_module_event *event);
    void (*memory)(void *user, const tn_memory_event *event);
    uint64_t flags; /* TN_OBSERVER_* */
    /* A range of TN_RANGE_USER may end without a begin that the observer saw, and the token of its
     * end is always 0. */
    uint64_t (*range_begin)(void *user, const tn_range_event *event);
    void (*range_end)(void *user, uint64_t token, const tn_range_event *event);
    /* tn_shutdown calls it first, while devices and plugins still work. */
    void (*finish)(void *user);
} tn_observer_def;

TN_END_DECLS
#endif

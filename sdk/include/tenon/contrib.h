/* SPDX-License-Identifier: MIT
 *
 * What a plugin (or a program, with tn_register) contributes: the descriptors; that of a device
 * type is in <tenon/backend.h>, those of passes and compilers are in <tenon/compiler.h>, that of a
 * communicator in <tenon/comm.h>. All are `static const`, begin with TN_HEAD, are copied by the
 * core into its own zero-filled structs (an absent member is NULL), and must remain valid until the
 * process ends. Callbacks report failures with tn_fail and return its code; they never end the
 * process, print, or start threads. Every callback can reach the member `user` of its descriptor,
 * which the core never looks at: one function then serves descriptors that a program makes at run
 * time, or those of another language. `self` and `op` are the core's copy of the descriptor. */
#ifndef TENON_CONTRIB_H
#define TENON_CONTRIB_H

#include <tenon/backend.h>
#include <tenon/comm.h>
#include <tenon/compiler.h>
#include <tenon/state.h>
#include <tenon/train.h>

TN_BEGIN_DECLS

/* ==== op: an operator ========================================================================= */

/* What inference returns for an output. Strides are in elements; without TN_META_STRIDED they are
 * row-major. Frozen: 280 bytes, since it crosses in arrays; `flags` and `reserved` are what can
 * still be given a meaning. */
enum { TN_META_STRIDED = 1 };
typedef struct tn_meta {
    tn_dtype dtype;
    int32_t ndim;
    uint32_t flags;
    uint32_t reserved;
    int64_t offset; /* views: elements from the storage's start */
    int64_t shape[TN_MAX_DIMS];
    int64_t strides[TN_MAX_DIMS];
} tn_meta;

/* The arguments of inference. `in[i]` is a view with shape, strides and dtype but possibly no data
 * (meta devices, graph capture); NULL for an absent optional input. `dtype` is the result of
 * promotion, TN_DTYPE_AUTO without promotion. */
typedef struct tn_infer {
    tn_head head;
    const struct tn_op_def *op;
    const tn_view *const *in;
    int64_t n_in;
    const void *options;
    tn_dtype dtype; /* may be written: the inputs that take part in promotion are then cast to it,
                       and infer is called again */
    int32_t n_out;
    tn_meta *out; /* n_out of them, to be written: dtype, ndim, shape (ndim -1: known only to the
                     kernel, see tn_call.make_output) */
    int64_t in0_offset; /* offset of in[0] in its storage, in elements: the base for the offset of a
                           view */
    /* May be written, where one list is `written`: its tensors come in groups of `group`, and
     * tensor i of each is only read where bit i of `only_read` is set. 0: all are written. Bit i of
     * `only_read` also says, of an input i that is `updated`, that this call does not write it. */
    int64_t group;
    uint64_t only_read;
} tn_infer;

/* The arguments of a derivative: write gin[i] for every i with bit i of `need`, by operators;
 * TN_NONE says zero. A gradient that is larger by broadcasting than the input, or of another dtype,
 * is reduced and cast by the core. `in` and `out` hold the tensors that the definition asked to
 * save, NULL elsewhere and where one was changed in place meanwhile: pass that to operators, which
 * then fail, and the core reports the reason. `in_meta` has shape and dtype of every input; gout[i]
 * is TN_NONE where there is no gradient (if all are absent, derive is not called). Runs in its own
 * scope. */
typedef struct tn_derive {
    tn_head head;
    const struct tn_op_def *op;
    const void *options;
    tn_tensor *const *in;
    tn_tensor *const *out;
    tn_tensor *const *gout;
    const tn_meta *in_meta; /* NULL entries do not occur: ndim -1 for absent inputs */
    int64_t n_in;
    int32_t n_out;
    uint32_t need; /* bit i: gin[i] is wanted; in lists, bit 31 means all from 31 on */
    tn_tensor **gin;
    /* The gradient of in[0] from its other uses, of its shape and dtype, or NULL. A derivative that
     * changes few of its elements may add to it in place; gin[0] is then `sum`. */
    tn_tensor *sum;
} tn_derive;

/* The arguments of a decomposition: computes out[i] from in[i] by calling other operators, in a
 * scope of its own. in[i] is TN_NONE for an absent optional input. Returning an input as output
 * means that there was nothing to do. */
typedef struct tn_decompose {
    tn_head head;
    const struct tn_op_def *op;
    const void *options; /* the operator's struct, defaults filled in */
    tn_tensor *const *in;
    int64_t n_in;
    tn_tensor **out; /* n_out of them, NULL at first */
    int32_t n_out;
    uint32_t reserved;
} tn_decompose;

/* Names of inputs and outputs, for messages and bindings. Frozen. */
typedef struct tn_operand {
    const char *name;
    uint64_t flags;  /* TN_OPERAND_* */
    uint64_t dtypes; /* TN_BIT mask that is accepted; 0: any with arithmetic */
} tn_operand;

enum {
    TN_OPERAND_OPTIONAL = 1,    /* TN_NONE is accepted */
    TN_OPERAND_NO_GRAD = 2,     /* never differentiable (indices, targets) */
    TN_OPERAND_NO_PROMOTE = 4,  /* does not take part in type promotion */
    TN_OPERAND_LIST = 8,        /* last one: any number of them, at least one */
    TN_OPERAND_ANY_DEVICE = 16, /* may be on another device than the others */
    TN_OPERAND_APART = 32,      /* may not be the tensor written in place: it is read in another
                                   order */
    TN_OPERAND_WRITTEN = 64,    /* written by the operator, which may have no outputs, has no
                                   derivative, and runs only where no gradient would be
                                   recorded */
    TN_OPERAND_UPDATED = 128    /* written by the operator, which has a derivative with respect to
                                   others (running moments): with TN_OPERAND_NO_GRAD and, where
                                   inputs are promoted, TN_OPERAND_NO_PROMOTE. Its version moves with
                                   the call, and a tensor that requires grad is refused */
};

enum {
    TN_OP_PRIMITIVE = 1, /* a device must have it: it has no decomposition */
    TN_OP_VIEW =
        2, /* the output is a view of input 0 as inferred: no kernel runs, no memory is allocated */
    TN_OP_PROMOTE = 4,       /* inputs are cast to their common type first */
    TN_OP_PROMOTE_FLOAT = 8, /* the same, and integers become the default dtype */
    TN_OP_INPLACE = 16,      /* has an in-place form: output 0 may be input 0 */
    TN_OP_RANDOM = 32,       /* draws from the generator: calls are never merged or replayed, and
                                not moved past another that draws */
    TN_OP_INTO =
        64, /* its in-place form writes into any tensor: converts dtype, broadcasts (copy) */
    TN_OP_BASIC = 128, /* a primitive that a new device begins with: all of them together train a
                          convolutional network with Adam */
    TN_OP_STRAIGHT_THROUGH = 256, /* its derivative follows a rule of its own, not its values (a
                                     rounding that lets gradients pass): `tenon check` does not
                                     compare it with differences of values */
    TN_OP_POINTWISE = 512, /* element i of each output depends only on element i of the inputs,
                              broadcast together, and on options, by one rule for all i */
    TN_OP_READS = 1024,    /* infer, derive or decompose read values of tensors on the host, at
                              least for some calls: those cannot be captured */
    TN_OP_ORDERED = 2048   /* calls are never merged, left out, or moved past another call of an
                              ordered operator (exchange between processes) */
};

/* An operator. Any thread calls its functions, several calls at the same time. */
typedef struct tn_op_def {
    tn_head head;
    const char *name;
    const char *math;         /* one line: "y = max(x, 0)" */
    const char *help;         /* a sentence or two */
    void *user;               /* the plugin's own */
    uint64_t flags;           /* TN_OP_* */
    const tn_operand *inputs; /* n_inputs of them */
    const tn_operand *outputs;
    int32_t n_inputs;
    int32_t n_outputs;
    const tn_option *options; /* table over the option struct; NULL without options */
    const void *defaults;     /* the option struct with all defaults */
    uint32_t revision;
    uint32_t options_size;
    int32_t dispatch_input; /* which input's dtype chooses the kernel; -1: output 0's */
    uint32_t save_in;       /* bit i: derive needs input i */
    uint32_t save_out;      /* bit i: derive needs output i */
    tn_status (*infer)(tn_infer *infer);
    tn_status (*derive)(tn_derive *derive);           /* NULL: not differentiable */
    tn_status (*decompose)(const tn_decompose *call); /* NULL: devices must have a kernel */
    /* For each input, then each output: bit i means that its saved value is used only for the
     * gradient of input i. NULL: for all of them. */
    const uint32_t *save_for;
    /* TN_BIT mask of the dtypes (of the one that chooses the kernel) that `decompose` handles; 0:
     * all. So a primitive can be decomposed for complex numbers. */
    uint64_t decompose_dtypes;
} tn_op_def;

/* ==== kernel: code for an operator on a device type =========================================== */

enum {
    TN_CALL_KEPT = 1, /* made again with other data: what is computed from the shapes can be kept */
    TN_CALL_CAPTURED = 2 /* the device records the work: `run` neither waits for it nor allocates */
};

/* One call. `in[i]` is NULL for an absent optional input. Memory of `out` is allocated before the
 * call (in-place: it is that of in[0]). make_output: [callback], from inside `run`.
 * `supports`, `workspace`, and `prepare` when it decides what to do, never look at the `data` of a
 * view, which may be NULL, nor at its byte_offset; but `prepare` reads the constant inputs. */
typedef struct tn_call {
    tn_head head;
    const char *op;
    const tn_view *const *in;
    const tn_view *const *out;
    int64_t n_in;
    int32_t n_out;
    tn_dtype dtype;      /* the one that chose the kernel */
    const void *options; /* the operator's struct, defaults filled in */
    void *device;        /* the backend's handles */
    void *stream;
    const tn_view *workspace; /* of the size asked for; NULL if none */
    const struct tn_kernel_def *kernel;
    /* For outputs whose shape is known only now: creates output `index` with that shape; its view
     * is then out[index]. */
    tn_status (*make_output)(const struct tn_call *call, int32_t index, tn_ints shape);
    void *host; /* the core's */
    /* Of a kept call (tn_op_prepare); 0 and NULL in all others. */
    uint64_t constant; /* bit i: input i has the same values in all calls; bit 63: from 63 on */
    void *prepared;    /* what `prepare` returned */
    uint64_t flags;    /* TN_CALL_* */
} tn_call;

enum {
    TN_KERNEL_OVERRIDE = 1, /* meant to take precedence over a kernel of another plugin (rule 22) */
    TN_KERNEL_DETERMINISTIC = 2,
    TN_KERNEL_CAPTURE_SAFE = 4 /* `run` may be called while the device records (TN_CALL_CAPTURED):
                                  all that it does is in the record, which reads the memory of the
                                  operands and of the prepared data, and nothing of the host's */
};

/* What `prepare` writes; zeroed before. */
typedef struct tn_prepared_data {
    tn_head head;
    void *data;     /* NULL: there was nothing to prepare, and `release` is not called */
    uint64_t bytes; /* of the device's memory, for its statistics */
} tn_prepared_data;

/* Its functions: [stream], one thread at a time for a stream, several streams at the same time. */
typedef struct tn_kernel_def {
    tn_head head;
    const char *op;
    const char *device; /* device type */
    const char *name;   /* "tn_softmax" */
    uint32_t revision;  /* of the operator */
    uint32_t flags;     /* TN_KERNEL_* */
    uint64_t dtypes;    /* TN_BIT mask */
    int32_t priority;   /* higher is asked first; a backend's own kernels have 0 */
    uint32_t reserved;
    const void *data; /* the kernel's own */
    /* NULL: every call of these dtypes. Returns false with a reason in reason[size], written with
     * tn_snprint. Called with the real call; its workspace is NULL. */
    bool (*supports)(const tn_call *call, char *reason, size_t size);
    size_t (*workspace)(const tn_call *call); /* bytes; NULL: none */
    tn_status (*run)(const tn_call *call);

    /* All that follow may be NULL or 0. */

    /* Computes once what the calls to come need, from the constant inputs (packed weights) and the
     * shapes: `run` finds it in call->prepared, from several threads at the same time. A call that
     * was not prepared has NULL there, and has to work. It may use the stream and need not wait for
     * its work; the outputs have no memory yet, no more than inputs that are not constant. Called
     * again, and the old data released, once a constant input was written. */
    tn_status (*prepare)(const tn_call *call, tn_prepared_data *out);
    /* Frees that data, which no work uses any more. NULL: nothing to free. */
    void (*release)(const struct tn_kernel_def *kernel, void *data);
    uint64_t inplace; /* bit i: output 0 may be the memory of input i, as the same view */
    /* For each input of the operator, then each output, the TN_BIT mask of the dtypes that the
     * kernel takes, 0 for any; the last input's mask is for all of a list. A call of other dtypes
     * goes to the next kernel. NULL: `dtypes` says all. */
    const uint64_t *operand_dtypes;
} tn_kernel_def;

/* A row of the table of kernels that a plugin gives (tn_plugin.kernels), or a kernel alone. */
#define TN_KERNEL(op_, device_, name_, dtypes_, run_)                                              \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = op_, .device = device_, .name = name_, .revision = 1,        \
                                .dtypes = dtypes_, .run = run_                                     \
    }

/* ==== layer: a module type ==================================================================== */

enum {
    TN_LAYER_LIST = 1,       /* its entries are a list, named 0, 1, ...: <tenon/container.h> */
    TN_LAYER_DICT = 2,       /* its entries have keys */
    TN_LAYER_PARAMETERS = 4, /* entries of the list or dictionary are parameters, not modules */
    TN_LAYER_KEEP_KEYS = 8,  /* a slice of the list keeps the keys that its entries had */
    TN_LAYER_COLLAPSE = 16,  /* repr puts a run of entries that print alike on one line */
    /* What a trace of a module makes of its call, where the program does not say: one node, or what
     * forward calls. At most one of them; with neither, layers of plugins are nodes and those that
     * a program registers are traced through. */
    TN_LAYER_LEAF = 32,
    TN_LAYER_THROUGH = 64
};

/* Any thread calls its functions; one thread at a time for a module in training or being built. */
typedef struct tn_layer_def {
    tn_head head;
    const char *name; /* "Linear" */
    const char *help;
    void *user; /* the plugin's own; tn_module_user */
    const tn_option *options;
    uint64_t data_size; /* of the layer's struct; the option table points into it */
    int64_t version;    /* of its state: kept in it, given back to load_state; 0 is 1 */
    /* Makes parameters, buffers and children from the options. May be NULL. */
    tn_status (*build)(tn_module *self);
    /* Releases what build made in the data beyond slots. Called once for every module whose build
     * began, also when it failed: the data were zeroed before, so members not yet set are NULL. May
     * be NULL. */
    void (*destroy)(tn_module *self);
    /* One of the two, which then serves both kinds of calls, or both; a list or dictionary may have
     * neither. */
    tn_tensor *(*forward)(tn_module *self, tn_tensor *input);
    tn_status (*call)(tn_module *self, const tn_pack *input, tn_pack *output);
    /* The text in the parentheses of repr; NULL: from the option table. Returns the length. */
    int64_t (*repr)(tn_module *self, char *out, size_t size);
    /* For tn_module_copy: the data of `self` are those of `from`, byte for byte; what build made
     * beyond slots must be made anew. Called before the slots are copied; when it fails, destroy is
     * not called. NULL: nothing to do; a layer with destroy cannot be copied then. */
    tn_status (*copy)(tn_module *self, tn_module *from);
    /* After tn_module_train set the mode of the module and of all below it: may set that of
     * children again, with tn_module_train. May be NULL. */
    tn_status (*train)(tn_module *self, bool training);
    /* What it keeps beyond parameters and buffers, under the name "_extra_state" (both may be NULL,
     * either may be absent): adds one value to `out`; takes such a value, which may come from a
     * file of an older version: only the tensors in it are kept compatible by Tenon. */
    tn_status (*get_extra_state)(tn_module *self, tn_pack *out);
    tn_status (*set_extra_state)(tn_module *self, const tn_value *value);
    /* In the place of tn_module_save_own and tn_module_load_own: other names, older versions. The
     * children come after, whatever it does. May be NULL. */
    tn_status (*save_state)(tn_module *self, tn_state *state, const char *prefix, uint32_t flags);
    tn_status (*load_state)(tn_module *self, tn_loading *loading);
    uint32_t flags; /* TN_LAYER_* */
    uint32_t reserved32;
    /* Fills the module's own parameters and buffers by their default initialisation, in place.
     * Called after build, and by tn_module_reset_parameters. May be NULL. */
    tn_status (*reset)(tn_module *self);
    /* A lazy layer: sets the shapes that build left open (tn_module_materialize), from the values
     * of the first call; then the module is of type `becomes`, a layer of the same plugin with the
     * same data. Both or none. */
    tn_status (*infer)(tn_module *self, const tn_pack *input);
    const char *becomes;
} tn_layer_def;

/* ==== optimizer, scheduler, init ============================================================== */
/* The arguments of a step: the parameters of one group that have a gradient. Parameters are changed
 * in place, gradients are only read. */
typedef struct tn_step_args {
    tn_head head;
    const void *options; /* the group's struct */
    int64_t group;
    int64_t count;
    const int64_t *index; /* parameters[i] is parameter index[i] of the optimizer */
    tn_tensor *const *parameters;
    tn_tensor *const *gradients;
} tn_step_args;

enum {
    TN_OPTIMIZER_ELEMENTWISE = 1 /* an element depends on no other: the rule may be called with
                                    slices of parameters, gradients and states */
};

/* An update rule. Any thread calls its functions, one at a time for an optimizer. */
typedef struct tn_optimizer_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* the plugin's own; tn_optimizer_user */
    const tn_option *options;
    uint64_t data_size; /* of the struct of a group */
    uint64_t flags;     /* TN_OPTIMIZER_* */
    /* Refuses values of a group's options; may be NULL. */
    tn_status (*check)(tn_optimizer *self, const void *options);
    /* Called once for each group, without gradients being recorded, in a scope of its own.
     * tn_optimizer_steps of each parameter counts this step: 1 in the first. When it fails, some
     * parameters may have changed. */
    tn_status (*step)(tn_optimizer *self, const tn_step_args *args);
} tn_optimizer_def;

/* The arguments of a schedule: learning rates by group, to be changed. Other options are set with
 * tn_optimizer_set. */
typedef struct tn_schedule_args {
    tn_head head;
    tn_optimizer *optimizer;
    int64_t step; /* the number of steps taken, this one included; 0 when the scheduler is made */
    int64_t groups;
    const double *initial; /* the rates at the start */
    double *rates;         /* those in force */
    double metric;         /* what tn_scheduler_step_with was given; NAN for tn_scheduler_step */
} tn_schedule_args;

/* A schedule. Any thread calls its functions, one at a time for a scheduler. */
typedef struct tn_scheduler_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* the plugin's own; tn_scheduler_user */
    const tn_option *options;
    uint64_t data_size;
    tn_status (*check)(tn_scheduler *self);
    tn_status (*step)(tn_scheduler *self, tn_schedule_args *args);
    /* What it remembers from step to step, as an option table with defaults: saved and loaded by
     * the core, and as it was before a step that fails. tn_scheduler_state. */
    const tn_option *state;
    uint64_t state_size;
} tn_scheduler_def;
/* An initialisation. Any thread calls it, several tensors at the same time. */
typedef struct tn_init_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* the plugin's own */
    const tn_option *options;
    uint64_t data_size;
    tn_status (*fill)(const struct tn_init_def *self, const void *data, tn_tensor *tensor);
} tn_init_def;

/* ==== format: files =========================================================================== */

/* Bytes of a file, read by place; frozen. read: [callback], from inside recognize and load. */
typedef struct tn_source {
    void *user;
    uint64_t size;
    const char *path; /* for messages */
    tn_status (*read)(void *user, uint64_t offset, void *to, size_t bytes);
} tn_source;
/* Bytes to a file, one after the other; frozen. write: [callback], from inside save. */
typedef struct tn_sink {
    void *user;
    const char *path;
    tn_status (*write)(void *user, const void *from, size_t bytes);
} tn_sink;
/* What a format can store; for a state with more, the core stores the rest as texts, or refuses. */
enum {
    TN_FORMAT_TEXTS = 1,  /* texts: the core then keeps versions, values and ties there, under keys
                            that begin with "tenon." */
    TN_FORMAT_VALUES = 2, /* values of any kind, versions, tensors that share storage */
    TN_FORMAT_INDEX = 4   /* no tensors, but names and the files that have them, as text values: the
                             core reads and writes those */
};
/* A reader and writer of files. Any thread calls its functions, several files at the same time. */
typedef struct tn_format_def {
    tn_head head;
    const char *name; /* "safetensors" */
    const char *help;
    void *user;             /* the plugin's own */
    const char *extensions; /* ".safetensors", several with spaces between */
    /* By content. */
    bool (*recognize)(const struct tn_format_def *self, const tn_source *source);
    tn_status (*load)(const struct tn_format_def *self, const tn_source *source, tn_state *state);
    tn_status (*save)(const struct tn_format_def *self, const tn_sink *sink, const tn_state *state);
    uint32_t flags; /* TN_FORMAT_* */
    uint32_t reserved;
    /* All that follow may be NULL. A format of whole modules: load_module makes one from the file,
     * and the caller owns it; save_module writes one. tn_module_from_file and tn_module_save call
     * them. Where there is `load` or `save` as well, it serves states. */
    tn_module *(*load_module)(const struct tn_format_def *self, const tn_source *source);
    tn_status (*save_module)(const struct tn_format_def *self, const tn_sink *sink,
                             tn_module *module);
} tn_format_def;

/* ==== observer ================================================================================ */

/* A call of an operator, as observers see it. The same struct comes to op_begin and to op_end. */
typedef struct tn_op_event {
    tn_head head;
    const struct tn_op_def *op;
    const void *options; /* the operator's struct or NULL: all defaults */
    const tn_device *device;
    tn_tensor *const *in;
    int64_t n_in;
    tn_module *module; /* the innermost module that is being called, NULL outside of calls */
    /* From here on for op_end alone. */
    tn_tensor *const *out;
    int64_t n_out;    /* 0 after a failure */
    tn_status status; /* of the call */
    uint32_t reserved;
    const tn_kernel_def *kernel; /* that ran; NULL: a view, a decomposition, nothing */
    void *stream;                /* the backend's handle that the kernel got */
} tn_op_event;

/* A call of a module. */
typedef struct tn_module_event {
    tn_head head;
    tn_module *module;
    const char *path; /* dotted, from the module of the outermost call: "" for that one */
    tn_status status; /* for module_end */
    uint32_t reserved;
} tn_module_event;

/* Memory that an allocator took from a device or gave back to a cache. */
typedef struct tn_memory_event {
    tn_head head;
    const tn_device *device;
    int64_t bytes; /* > 0 taken, < 0 given back */
} tn_memory_event;

/* Around calls, in any thread; any may be NULL; `end` gets back what `begin` returned. The first
 * call (op or module) activates the plugin, which receives memory events from then on. At most 16
 * observers are active. */
typedef struct tn_observer_def {
    tn_head head;
    const char *name;
    void *user; /* the plugin's own: the first argument */
    uint64_t (*op_begin)(void *user, const tn_op_event *event);
    void (*op_end)(void *user, uint64_t token, const tn_op_event *event);
    uint64_t (*module_begin)(void *user, const tn_module_event *event);
    void (*module_end)(void *user, uint64_t token, const tn_module_event *event);
    void (*memory)(void *user, const tn_memory_event *event);
} tn_observer_def;

TN_END_DECLS
#endif

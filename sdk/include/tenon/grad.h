/* SPDX-License-Identifier: MIT
 *
 * Gradients. Operators record a graph that the tensors refer to; backward follows the graph from
 * outputs to inputs and computes gradients with operators. Nodes of the graph are reference
 * counted. tenon-interface: tenon.grad 0
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_GRAD_H
#define TENON_GRAD_H

#include <tenon/hooks.h>
#include <tenon/op.h>

TN_BEGIN_DECLS

/* Runs backward from a tensor with one element, whose gradient is 1. Adds the gradients of the
 * leaves to their tn_tensor_grad. Frees the graph. [null-through] */
TN_API tn_status tn_backward(tn_tensor *tensor);

typedef struct tn_backward_options {
    uint32_t size; /* sizeof(tn_backward_options) */
    uint8_t retain_graph;
    /* Records the computation of the gradients, so that they can be differentiated again. Implies
     * retain_graph. */
    uint8_t create_graph;
    /* tn_grad returns TN_NONE for an input that the outputs do not depend on, instead of
     * failing. */
    uint8_t allow_unused;
    uint8_t reserved;
} tn_backward_options;

/* Like tn_backward, but from several tensors, each with its own cotangent: the gradient that
 * backward starts with. A cotangent of TN_NONE, or a NULL list, means 1, which is possible only for
 * tensors with one element. [array: tensors count] [null-ok: cotangents, options] */
TN_API tn_status tn_backward_from(tn_tensor *const *tensors, tn_tensor *const *cotangents,
                                  int64_t count, const tn_backward_options *options);
/* Computes the gradients of `outputs` with respect to `inputs` and stores them in `gradients`,
 * instead of adding them to the leaves. [scoped]
 * [array: outputs n_outputs, inputs n_inputs, gradients n_inputs] [null-ok: cotangents, options] */
TN_API tn_status tn_grad(tn_tensor *const *outputs, tn_tensor *const *cotangents, int64_t n_outputs,
                         tn_tensor *const *inputs, tn_tensor **gradients, int64_t n_inputs,
                         const tn_backward_options *options);

/* tn_tensor_requires_grad returns whether the tensor requires a gradient;
 * tn_tensor_set_requires_grad changes it. Only floating and complex tensors can require one. The
 * setting of a tensor that an operator produced cannot be changed. */
TN_API bool tn_tensor_requires_grad(const tn_tensor *tensor);
TN_API tn_status tn_tensor_set_requires_grad(tn_tensor *tensor, bool requires_grad);
/* Returns whether the tensor is a leaf: no recorded operator produced it. */
TN_API bool tn_tensor_is_leaf(const tn_tensor *tensor);
/* Returns the name of the operator that produced the tensor; "" for a leaf. [borrowed] */
TN_API const char *tn_tensor_grad_op(const tn_tensor *tensor);
/* Returns the gradient that backward has accumulated for this tensor; TN_NONE if there is none.
 * [borrowed] */
TN_API tn_tensor *tn_tensor_grad(const tn_tensor *tensor);
/* Sets the gradient of a tensor; TN_NONE removes it. The gradient must have the dtype, device and
 * shape of the tensor. */
TN_API tn_status tn_tensor_set_grad(tn_tensor *tensor, tn_tensor *gradient);
/* Makes backward store the gradient of this tensor even though the tensor is not a leaf. */
TN_API tn_status tn_tensor_retain_grad(tn_tensor *tensor);
/* Returns a tensor with the same storage that is not part of the graph. [scoped] [null-through] */
TN_API tn_tensor *tn_tensor_detach(tn_tensor *tensor);
#define tn_detach(tensor) tn_tensor_detach(tensor)
/* Returns a parameter: a leaf that shares the storage of `tensor` but not its graph. A parameter
 * slot of a module accepts only tensors made by this function. For TN_NONE it returns TN_NONE. A
 * tensor of integers cannot require a gradient. [scoped] [null-through] */
TN_API tn_tensor *tn_parameter(tn_tensor *tensor, bool requires_grad);
/* Returns whether tn_parameter made this tensor. */
TN_API bool tn_tensor_is_parameter(const tn_tensor *tensor);

/* A hook on the gradient of a tensor. May store another gradient in *replacement (owned by the
 * scope), which is then used instead, or leave it NULL. Runs in the thread that runs backward. */
typedef tn_status (*tn_grad_hook)(void *user, tn_tensor *gradient, tn_tensor **replacement);
/* Registers a hook on the gradient of a tensor and returns its handle for tn_hook_remove; 0 on
 * failure. `release` frees `user`. [null-ok: user, release] */
TN_API tn_hook_handle tn_tensor_hook(tn_tensor *tensor, tn_grad_hook hook, void *user,
                                     void (*release)(void *user));
/* A hook on a leaf. Runs when backward has added to the gradient of the leaf, for example to update
 * a parameter and free its gradient immediately. `gradient` is what tn_tensor_grad returns now:
 * TN_NONE if an earlier hook removed the gradient, or if the leaf no longer requires one. `user`
 * may refer to the tensor without owning it, because the hook does not outlive the leaf. */
typedef tn_status (*tn_grad_added_hook)(void *user, tn_tensor *gradient);
/* Like tn_tensor_hook, for a hook of type tn_grad_added_hook. tn_grad does not run these hooks,
 * because it adds nothing to the leaves. [null-ok: user, release] */
TN_API tn_hook_handle tn_tensor_hook_added(tn_tensor *tensor, tn_grad_added_hook hook, void *user,
                                           void (*release)(void *user));

/* tn_grad_enabled returns whether operators of this thread record a graph. tn_grad_begin switches
 * recording on or off until the matching tn_grad_end. Pairs nest up to 1024 levels. A deeper
 * tn_grad_begin fails; its setting applies nevertheless, but stays in force until level 1024 ends.
 * In inference mode nothing is recorded. */
TN_API bool tn_grad_enabled(void);
TN_API tn_status tn_grad_begin(bool enabled);
TN_API void tn_grad_end(void);

/* tn_anomaly_enabled returns whether this thread is in anomaly mode. tn_anomaly_begin switches it
 * on or off until the matching tn_anomaly_end; pairs nest. In this mode every recorded operator
 * stores the module whose call it belongs to. If backward then computes a NaN, it fails with
 * TN_ERR_RUNTIME and names the forward call. Backward waits for every gradient and checks it, so
 * this mode is for debugging only. */
TN_API bool tn_anomaly_enabled(void);
TN_API tn_status tn_anomaly_begin(bool enabled);
TN_API void tn_anomaly_end(void);

/* Returns the number of graph nodes that exist in the process. For tests. */
TN_API int64_t tn_grad_node_count(void);

/* ---- functions of the program with their own gradient ---------------------------------------- */

typedef struct tn_function_ctx tn_function_ctx;

enum {
    /* Forward and backward compute only by calling operators and do not read values, so that the
     * calls of operators describe them completely. */
    TN_FUNCTION_OPERATORS = 1
};

/* A function of the program with its own gradient. `forward` runs without recording and fills
 * `out`. `backward` receives the gradients of the outputs in `gout`, can get the saved tensors, and
 * fills `gin` with the gradients of the inputs (TN_NONE if there is none). `user` holds arguments
 * that are not tensors, and other data that forward passes to backward; `release` frees it when the
 * graph is freed, and also if the call fails or no graph is recorded. An input may be TN_NONE. The
 * layout never changes. */
typedef struct tn_function {
    const char *name;
    tn_status (*forward)(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out);
    tn_status (*backward)(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                          tn_tensor **gin);
    void (*release)(void *user);
    uint32_t flags; /* TN_FUNCTION_* */
    uint32_t reserved32;
    void *reserved[3];
} tn_function;

/* Calls the function of the program. The graph of the outputs contains its `backward`. [scoped]
 * [array: in n_in, out n_out] [null-ok: user] */
TN_API tn_status tn_function_call(const tn_function *function, void *user, tn_tensor *const *in,
                                  int64_t n_in, tn_tensor **out, int64_t n_out);
/* For `forward`: saves a tensor for `backward`, which checks that the tensor has not been changed.
 * [callback] */
TN_API tn_status tn_function_save(tn_function_ctx *ctx, tn_tensor *tensor);
/* For `backward`: returns saved tensor `index`, in the order of saving. Fails if the tensor was
 * changed after it was saved. [callback] [borrowed] */
TN_API tn_tensor *tn_function_saved(tn_function_ctx *ctx, int64_t index);

/* ---- inference mode -------------------------------------------------------------------------- */

/* tn_inference_enabled returns whether this thread is in inference mode. tn_inference_begin
 * switches the mode on or off until the matching tn_inference_end; pairs nest. In inference mode
 * nothing is recorded, regardless of tn_grad_begin, and new tensors are inference tensors. Outside
 * the mode an inference tensor can be an input of operators, but it cannot be changed in place,
 * saved for backward, or require a gradient. A view of a normal tensor is a normal tensor. A nested
 * tn_inference_begin(false) makes recording possible again. */
TN_API bool tn_inference_enabled(void);
TN_API tn_status tn_inference_begin(bool enabled);
TN_API void tn_inference_end(void);
/* Returns whether the tensor is an inference tensor: its memory was allocated in inference mode.
 * Outside the mode, tn_clone makes a normal tensor out of it. */
TN_API bool tn_tensor_is_inference(const tn_tensor *tensor);

/* Turns a tensor into a leaf that requires no gradient: the tensor leaves its graph and keeps its
 * memory and gradient. Fails for views. Returns the tensor. [borrowed] [null-through] */
TN_API tn_tensor *tn_tensor_detach_(tn_tensor *tensor);
#define tn_detach_(tensor) tn_tensor_detach_(tensor)

/* ---- functions of the program: called inside forward and backward ---------------------------- */

/* For `forward`: declares that forward changes this input in place and returns it as an output. The
 * function of the program then becomes the producer of the tensor, as an in-place operator does.
 * [callback] */
TN_API tn_status tn_function_mark_dirty(tn_function_ctx *ctx, tn_tensor *tensor);
/* For `forward`: declares that this output has no gradient. It will not require one. [callback] */
TN_API tn_status tn_function_mark_non_differentiable(tn_function_ctx *ctx, tn_tensor *tensor);
/* For `forward`: chooses what `backward` receives for outputs without a gradient: zeros (true, the
 * default) or TN_NONE (false). [callback] */
TN_API tn_status tn_function_set_materialize_grads(tn_function_ctx *ctx, bool materialize);
/* Returns whether the gradient of input `index` is needed. In `backward`: whether it must be
 * computed. In `forward`: whether backward may need it later. [callback] */
TN_API bool tn_function_needs_grad(tn_function_ctx *ctx, int64_t index);

/* Runs backward from a tensor of any shape with the gradient `gradient` of that shape; with
 * `retain_graph` the graph stays for another backward. [null-through] */
TN_API tn_status tn_backward_with(tn_tensor *tensor, tn_tensor *gradient, bool retain_graph);

/* ---- autocast -------------------------------------------------------------------------------- */

/* tn_autocast_begin switches autocast on or off in this thread, for all devices of a type such as
 * "cpu", until the matching tn_autocast_end. Pairs nest. A call of tn_autocast_begin that fails
 * needs its tn_autocast_end, too.
 * `dtype` is TN_BF16 or TN_F16; TN_DTYPE_AUTO: bfloat16 on devices that compute in the memory of
 * the host, float16 on others. In such a region every operator gets its float32, float16 and
 * bfloat16 inputs in the dtype that its flags TN_OP_AUTOCAST_* choose (`tenon ops NAME` prints
 * them): products of matrices and convolutions in `dtype`, losses in float32. The casts are
 * recorded. Not affected are forms that write into a tensor, operators that another operator calls,
 * backward, and steps of optimizers. */
TN_API tn_status tn_autocast_begin(const char *device_type, tn_dtype dtype, bool enabled);
TN_API void tn_autocast_end(void);
/* tn_autocast_enabled returns whether autocast is on in this thread for a device type,
 * tn_autocast_dtype the dtype of the region; where it is off, that of TN_DTYPE_AUTO above. An
 * unknown type is an error, with false and TN_DTYPE_AUTO. */
TN_API bool tn_autocast_enabled(const char *device_type);
TN_API tn_dtype tn_autocast_dtype(const char *device_type);
/* Whether regions of this thread keep the casts of float32 leaves that require a gradient until the
 * outermost region ends, so that a parameter is cast only once; true at first. A parameter that is
 * written in the meantime is cast again. */
TN_API bool tn_autocast_cache(void);
TN_API void tn_set_autocast_cache(bool enabled);

/* ---- recompute ------------------------------------------------------------------------------- */

enum {
    /* The second run of the function draws new random numbers. Without this flag each call of an
     * operator gets the numbers of the first run. The generator of the process is not changed, so
     * other threads may use it meanwhile. */
    TN_RECOMPUTE_NEW_RANDOM = 1
};

/* A function that computes with operators and modules. */
typedef tn_status (*tn_recompute_function)(void *user, tn_tensor *const *in, tn_tensor **out);

/* Calls a function whose intermediate tensors are not kept for backward. The first time that
 * backward needs one of them, the function is called again with the same inputs and autocast, so it
 * must do the same both times, and `in` and what `user` refers to must not have changed; running
 * statistics are updated twice. Calls may be nested. With retain_graph, every backward calls the
 * function again. Gradients of what the function computes cannot be taken inside of it. An input
 * may be TN_NONE. `release` frees `user` when the graph is freed, and also if the call fails or no
 * graph is recorded. [scoped] [array: in n_in, out n_out] [null-ok: user, release] */
TN_API tn_status tn_recompute_call(tn_recompute_function function, void *user,
                                   void (*release)(void *user), tn_tensor *const *in, int64_t n_in,
                                   tn_tensor **out, int64_t n_out, uint32_t flags);

TN_END_DECLS
#endif

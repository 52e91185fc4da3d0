/* SPDX-License-Identifier: MIT
 *
 * Gradients: a reference-counted graph attached to the tensors, traversed in reverse with the same
 * operators. tenon-interface: tenon.grad 0 */
#ifndef TENON_GRAD_H
#define TENON_GRAD_H

#include <tenon/hooks.h>
#include <tenon/op.h>

TN_BEGIN_DECLS

/* Runs backward from a one-element tensor with seed 1; gradients accumulate in the leaves. The
 * graph is freed. [null-through] */
TN_API tn_status tn_backward(tn_tensor *tensor);

typedef struct tn_backward_options {
    uint32_t size; /* sizeof(tn_backward_options) */
    uint8_t retain_graph;
    uint8_t create_graph; /* gradients can be differentiated again; implies retain_graph */
    uint8_t allow_unused; /* tn_grad: an input that was not used gets TN_NONE instead of an error */
    uint8_t reserved;
} tn_backward_options;

/* The same from several tensors, each with its own cotangent (TN_NONE or a NULL list: 1, for
 * one-element tensors only). [array: tensors count] [null-ok: cotangents, options] */
TN_API tn_status tn_backward_from(tn_tensor *const *tensors, tn_tensor *const *cotangents,
                                  int64_t count, const tn_backward_options *options);
/* Gradients of chosen inputs, returned instead of accumulated in leaves. [scoped]
 * [array: outputs n_outputs, inputs n_inputs, gradients n_inputs] [null-ok: cotangents, options] */
TN_API tn_status tn_grad(tn_tensor *const *outputs, tn_tensor *const *cotangents, int64_t n_outputs,
                         tn_tensor *const *inputs, tn_tensor **gradients, int64_t n_inputs,
                         const tn_backward_options *options);

/* Only floating and complex tensors; changing it on a tensor that an operator made is an error. */
TN_API bool tn_tensor_requires_grad(const tn_tensor *tensor);
TN_API tn_status tn_tensor_set_requires_grad(tn_tensor *tensor, bool requires_grad);
/* Whether no operator produced it; name of the operator that did ("" for a leaf). */
TN_API bool tn_tensor_is_leaf(const tn_tensor *tensor);
/* The name of the operator that made the tensor; "" for a leaf. [borrowed] */
TN_API const char *tn_tensor_grad_op(const tn_tensor *tensor);
/* The gradient that backward accumulated here; TN_NONE if none yet. [borrowed] */
TN_API tn_tensor *tn_tensor_grad(const tn_tensor *tensor);
/* Sets (TN_NONE clears) it; dtype, device and shape must be the tensor's. */
TN_API tn_status tn_tensor_set_grad(tn_tensor *tensor, tn_tensor *gradient);
/* Keeps the gradient of a non-leaf tensor, too. */
TN_API tn_status tn_tensor_retain_grad(tn_tensor *tensor);
/* The same storage outside the graph. [scoped] [null-through] */
TN_API tn_tensor *tn_tensor_detach(tn_tensor *tensor);
#define tn_detach(tensor) tn_tensor_detach(tensor)
/* A parameter: a leaf that shares the tensor's storage, outside its graph, and the only kind of
 * tensor that a parameter slot of a module accepts. TN_NONE stays TN_NONE. Integers cannot require
 * grad. [scoped] [null-through] */
TN_API tn_tensor *tn_parameter(tn_tensor *tensor, bool requires_grad);
/* Whether tn_parameter made it. */
TN_API bool tn_tensor_is_parameter(const tn_tensor *tensor);

/* A hook on the gradient of a tensor: may put another into *replacement (owned by the scope), or
 * leave it NULL. Runs in the thread that runs backward. */
typedef tn_status (*tn_grad_hook)(void *user, tn_tensor *gradient, tn_tensor **replacement);
/* Returns a handle for tn_hook_remove, 0 on error; `release` frees `user`. [null-ok:
 * user, release] */
TN_API tn_hook_handle tn_tensor_hook(tn_tensor *tensor, tn_grad_hook hook, void *user,
                                     void (*release)(void *user));
/* A hook on a leaf, called when a backward has accumulated its gradient: the place to update a
 * parameter and to release its gradient at once. `gradient` is what tn_tensor_grad returns now:
 * TN_NONE when an earlier hook removed it, or when the leaf no longer requires one. `user` may
 * refer to the tensor without owning it: the hook lives as long as the leaf. */
typedef tn_status (*tn_grad_added_hook)(void *user, tn_tensor *gradient);
/* As tn_tensor_hook; tn_grad, which keeps nothing, does not call it. [null-ok: user,
 * release] */
TN_API tn_hook_handle tn_tensor_hook_added(tn_tensor *tensor, tn_grad_added_hook hook, void *user,
                                           void (*release)(void *user));

/* Whether operators record a graph in this thread; begin/end pairs nest, 1024 levels deep: further
 * ones fail and end together with the enclosing level. Nothing is recorded in inference mode. */
TN_API bool tn_grad_enabled(void);
TN_API tn_status tn_grad_begin(bool enabled);
TN_API void tn_grad_end(void);

/* Anomaly mode of this thread; begin/end pairs nest. While it is on, what is recorded remembers the
 * module in whose call it was made, and a backward that meets a NaN fails with TN_ERR_RUNTIME,
 * naming the forward call. Every gradient is waited for and checked: for debugging only. */
TN_API bool tn_anomaly_enabled(void);
TN_API tn_status tn_anomaly_begin(bool enabled);
TN_API void tn_anomaly_end(void);

/* Number of graph nodes alive in the process; for tests. */
TN_API int64_t tn_grad_node_count(void);

/* ---- a program's own function ---------------------------------------------------------------- */

typedef struct tn_function_ctx tn_function_ctx;

enum {
    TN_FUNCTION_OPERATORS = 1 /* forward and backward compute by operators alone, and read no
                                 values: the calls of operators say all that it does */
};

/* Forward (in no-grad mode) fills `out`; backward gets the saved tensors and the gradients of the
 * outputs and fills gradients of the inputs (TN_NONE where there is none). `user` holds arguments
 * that are not tensors and other data that forward passes to backward; `release` frees it when the
 * graph is freed. An input may be TN_NONE. Frozen. */
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

/* Calls the function; what it gives has its backward as history. [scoped] [array: in n_in, out
 * n_out] [null-ok: user] */
TN_API tn_status tn_function_call(const tn_function *function, void *user, tn_tensor *const *in,
                                  int64_t n_in, tn_tensor **out, int64_t n_out);
/* In forward: keeps a tensor for backward, with a check that it is not changed meanwhile.
 * [callback] */
TN_API tn_status tn_function_save(tn_function_ctx *ctx, tn_tensor *tensor);
/* In backward: the saved tensors in order; one that was changed since is refused. [callback]
 * [borrowed] */
TN_API tn_tensor *tn_function_saved(tn_function_ctx *ctx, int64_t index);

/* ---- checking -------------------------------------------------------------------------------- */

/* Compares the gradients of `function` at `in` (float64 or complex128, of which both parts are
 * moved) with central differences; NULL `function.backward`-less closures are fine: any code that
 * computes with operators is accepted. TN_ERR_ASSERT names input, element, both numbers.
 * [array: in n_in] [null-ok: user] */
TN_API tn_status tn_gradcheck(tn_status (*code)(void *user, tn_tensor *const *in, tn_tensor **out),
                              void *user, tn_tensor *const *in, int64_t n_in, int64_t n_out,
                              double step, double tolerance);
/* The same of the second derivatives: the gradients of `code`, as a function of its inputs and of
 * cotangents of its outputs, are checked. [array: in n_in] [null-ok: user] */
TN_API tn_status tn_gradgradcheck(tn_status (*code)(void *user, tn_tensor *const *in,
                                                    tn_tensor **out),
                                  void *user, tn_tensor *const *in, int64_t n_in, int64_t n_out,
                                  double step, double tolerance);

/* ---- inference ------------------------------------------------------------------------------- */

/* Inference mode of this thread; begin/end pairs nest. While it is on, nothing is recorded,
 * regardless of tn_grad_begin, and new tensors are inference tensors: outside the mode they can be
 * inputs of operators, but cannot be changed in place, saved for backward, or require a gradient. A
 * view of a normal tensor is a normal one. A nested begin(false) turns the mode off, and recording
 * is possible again. */
TN_API bool tn_inference_enabled(void);
TN_API tn_status tn_inference_begin(bool enabled);
TN_API void tn_inference_end(void);
/* Whether its memory was made in inference mode; tn_clone outside makes a normal tensor of it. */
TN_API bool tn_tensor_is_inference(const tn_tensor *tensor);

/* Makes a tensor a leaf that requires no gradient: its graph is released; its memory and its
 * gradient stay. Views are refused. Returns the tensor. [borrowed] [null-through] */
TN_API tn_tensor *tn_tensor_detach_(tn_tensor *tensor);
#define tn_detach_(tensor) tn_tensor_detach_(tensor)

/* ---- more of a program's own function -------------------------------------------------------- */

/* In forward: an input that forward changes in place and gives as an output: the function becomes
 * its producer, as with in-place operators. [callback] */
TN_API tn_status tn_function_mark_dirty(tn_function_ctx *ctx, tn_tensor *tensor);
/* In forward: an output that has no gradient: it requires none.
 * [callback] */
TN_API tn_status tn_function_mark_non_differentiable(tn_function_ctx *ctx, tn_tensor *tensor);
/* In forward: whether backward gets zeros for outputs without a gradient (the default) or
 * TN_NONE. [callback] */
TN_API tn_status tn_function_set_materialize_grads(tn_function_ctx *ctx, bool materialize);
/* Whether the gradient of input `index` is needed: in backward, whether it must be computed; in
 * forward, whether backward may need it. [callback] */
TN_API bool tn_function_needs_grad(tn_function_ctx *ctx, int64_t index);

TN_END_DECLS
#endif

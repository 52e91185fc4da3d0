/* SPDX-License-Identifier: MIT
 *
 * tn_backward and tn_grad: where a walk starts, and what is done with its results. */
#include "core/grad/engine.h"
#include "core/tensor/trace.h"

#include <tenon/ops.h>

_Thread_local bool tn__walk_retains TN__TLS_NEAR;

tn_tensor *tn__grad_ones(const tn_tensor *tensor)
{
    const tn_op *fill = tn__op_needed(TN__NEED_fill);
    tn_fill_options options = TN_FILL_OPTIONS;
    tn_tensor *out, *in;
    tn_meta meta;

    if (fill == NULL)
        return NULL;
    tn__tensor_meta(tensor, &meta);
    meta.flags = 0;
    meta.offset = 0;
    out = in = tn__tensor_make(&meta, tensor->device);
    options.value = tn_scalar_float(1.0);
    if (out != NULL && tn__op_run(fill, &in, 1, &options, NULL, 0, out) != TN_OK) {
        tn_tensor_drop(out);
        return NULL;
    }
    return out;
}

/* Returns the cotangent of root i. The caller owns it. */
static tn_tensor *seed(tn_tensor *root, tn_tensor *cotangent, int64_t i)
{
    bool same;

    if (cotangent == NULL || tn__is_none(cotangent)) {
        if (root->numel != 1) {
            /* PyTorch's wording */
            tn_fail(TN_ERR_RUNTIME,
                    "grad can be implicitly created only for scalar outputs; this one has %lld "
                    "elements: sum it, or give a cotangent to tn_backward_from",
                    (long long)root->numel);
            return NULL;
        }
        return tn__grad_ones(root);
    }
    same = cotangent->view.ndim == root->view.ndim;
    for (int32_t d = 0; same && d < root->view.ndim; d++)
        same = cotangent->view.shape[d] == root->view.shape[d];
    if (!same || cotangent->dtype != root->dtype || cotangent->device != root->device) {
        tn__text text = { 0 };

        tn__text_add(&text, "Mismatch in shape, dtype or device: grad_output[%lld] is ",
                     (long long)i);
        tn__tensor_text(&text, cotangent);
        tn__text_add(&text, " and output[%lld] is ", (long long)i);
        tn__tensor_text(&text, root);
        tn__text_put(&text, "", 1);
        tn_fail(TN_ERR_RUNTIME, "%s", text.failed ? "Mismatch of a cotangent" : text.at);
        tn__text_free(&text);
        return NULL;
    }
    return tn_tensor_keep(cotangent);
}

static tn_status start(tn__walk *w, tn_tensor *const *roots, tn_tensor *const *cotangents,
                       int64_t n_roots)
{
    for (int64_t i = 0; i < n_roots; i++) {
        tn__edge edge;
        tn_status status;

        if (!tn__tensor_ok(roots[i]))
            return tn__tensor_bad_at(roots[i], "backward: tensors", i);
        if (cotangents != NULL && cotangents[i] == NULL)
            return tn__tensor_bad_at(NULL, "backward: cotangents", i);
        if (!tn__requires_grad(roots[i]))
            return tn_fail(
                TN_ERR_RUNTIME,
                "element %lld of tensors does not require grad and does not have a grad_fn: no "
                "operator recorded it (tn_grad_enabled), or no input requires a gradient",
                (long long)i);
        status = tn__grad_edge(roots[i], &edge);
        if (status != TN_OK)
            return status;
        if (tn__engine_meet(w, edge.node) < 0)
            return TN_ERR_MEMORY;
    }
    return tn__engine_discover(w);
}

/* Whether gradients are for tensors as they were when the history was recorded. */
static _Thread_local bool of_history;

static bool was_leaf(const tn_tensor *tensor)
{
    return of_history && tensor->autograd != NULL && tensor->autograd->leaf != NULL;
}

static tn_status want(tn__walk *w, tn_tensor *const *inputs, tn_tensor **gradients,
                      int64_t n_inputs)
{
    w->wanted = tn_calloc((size_t)(n_inputs > 0 ? n_inputs : 1), sizeof *w->wanted);
    if (w->wanted == NULL)
        return TN_ERR_MEMORY;
    w->gradients = gradients;
    w->n_wanted = n_inputs;
    for (int64_t i = 0; i < n_inputs; i++) {
        tn_status status;

        if (!tn__tensor_ok(inputs[i]))
            return tn__tensor_bad_at(inputs[i], "tn_grad: inputs", i);
        if (was_leaf(inputs[i])) {
            w->wanted[i] = (tn__edge){ inputs[i]->autograd->leaf, 0 };
            continue;
        }
        if (!tn__requires_grad(inputs[i]))
            /* PyTorch's wording */
            return tn_fail(TN_ERR_RUNTIME,
                           "One of the differentiated Tensors does not require grad (input %lld)",
                           (long long)i);
        status = tn__grad_edge(inputs[i], &w->wanted[i]);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status seed_all(tn__walk *w, tn_tensor *const *roots, tn_tensor *const *cotangents,
                          int64_t n_roots)
{
    for (int64_t i = 0; i < n_roots; i++) {
        tn_tensor *gradient = seed(roots[i], cotangents != NULL ? cotangents[i] : NULL, i);
        tn__edge edge;
        tn_status status;

        if (gradient == NULL)
            return tn_error_last_code();
        status = tn__grad_edge(roots[i], &edge);
        if (status != TN_OK) {
            tn_tensor_drop(gradient);
            return status;
        }
        status = tn__engine_deliver(w, tn__engine_find(w, edge.node), edge.index, gradient);
        if (status != TN_OK)
            return status;
    }
    for (int64_t i = 0; i < w->count; i++)
        if (w->tasks[i].waits == 0 && tn__engine_ready(w, i) != TN_OK)
            return TN_ERR_MEMORY;
    return TN_OK;
}

static tn_status check_options(const tn_backward_options *options)
{
    if (options == NULL || options->size >= sizeof *options)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "tn_backward_options: size: too small, got %u; expected at least %zu, "
                   "sizeof(tn_backward_options)",
                   options->size, sizeof *options);
}

/* A hook, or the backward of a function, may run backward again, even through the same graph. The
 * limit ends such a recursion before the stack overflows: each level takes a few kilobytes. */
enum { MOST_WALKS = 60 };
static _Thread_local int walks;

static tn_status run_one(tn_tensor *const *roots, tn_tensor *const *cotangents, int64_t n_roots,
                         tn_tensor *const *inputs, tn_tensor **gradients, int64_t n_inputs,
                         const tn_backward_options *options)
{
    tn__node *one = NULL, **held = &one;
    bool before = tn__walk_retains;
    tn_status status = tn__trace_plan_refuse("backward");
    tn__walk w;

    if (status == TN_OK)
        status = check_options(options);
    if (status != TN_OK)
        return status;
    if (n_roots < 0 || (n_roots > 0 && roots == NULL))
        return tn_fail(TN_ERR_VALUE,
                       n_roots < 0 ? "%s: negative number, got %lld; expected 0 or more"
                                   : "%s: it is NULL; expected %lld tensors",
                       inputs != NULL ? "tn_grad: outputs" : "tn_backward_from: tensors",
                       (long long)n_roots);
    tn__engine_begin(&w);
    w.record = options != NULL && options->create_graph != 0;
    w.retain = w.record || (options != NULL && options->retain_graph != 0);
    tn_grad_begin(w.record);
    if (inputs != NULL)
        status = want(&w, inputs, gradients, n_inputs);
    if (status == TN_OK)
        status = start(&w, roots, cotangents, n_roots);
    if (status == TN_OK && n_roots > 1) {
        held = tn_calloc((size_t)n_roots, sizeof *held);
        status = held != NULL ? TN_OK : TN_ERR_MEMORY;
    }
    /* Keeps the nodes of the roots, because a hook may drop the tensors that hold the graph. */
    for (int64_t i = 0; i < n_roots && status == TN_OK; i++) {
        tn__edge edge;

        status = tn__grad_edge(roots[i], &edge);
        if (status == TN_OK)
            held[i] = tn__node_keep(edge.node);
    }
    if (status == TN_OK && inputs != NULL)
        status = tn__engine_mark(&w);
    if (status == TN_OK)
        status = seed_all(&w, roots, cotangents, n_roots);
    tn__walk_retains = w.retain;
    if (status == TN_OK)
        status = tn__engine_run(&w);
    tn__walk_retains = before;
    tn__engine_end(&w);
    for (int64_t i = 0; held != NULL && i < (held != &one ? n_roots : 1); i++)
        tn__node_drop(held[i]);
    if (held != &one)
        tn_free(held);
    tn_grad_end();
    return status;
}

static tn_status run(tn_tensor *const *roots, tn_tensor *const *cotangents, int64_t n_roots,
                     tn_tensor *const *inputs, tn_tensor **gradients, int64_t n_inputs,
                     const tn_backward_options *options)
{
    if (walks >= MOST_WALKS)
        return tn_fail(
            TN_ERR_RUNTIME,
            "backward: %d calls are nested; expected no gradient hook that runs backward "
            "through its own graph, which would call it again",
            walks);
    tn__range range;
    tn__range_begin(&range, TN_RANGE_BACKWARD, "backward", 0);
    walks++;
    tn_status status = run_one(roots, cotangents, n_roots, inputs, gradients, n_inputs, options);
    walks--;
    return tn__range_end(&range, status);
}

tn_status tn_backward(tn_tensor *tensor)
{
    return run(&tensor, NULL, 1, NULL, NULL, 0, NULL);
}

tn_status tn_backward_from(tn_tensor *const *tensors, tn_tensor *const *cotangents, int64_t count,
                           const tn_backward_options *options)
{
    return run(tensors, cotangents, count, NULL, NULL, 0, options);
}

tn_status tn_backward_with(tn_tensor *tensor, tn_tensor *gradient, bool retain_graph)
{
    const tn_backward_options options = { sizeof options, retain_graph, false, false, 0 };

    if (tensor == NULL || gradient == NULL)
        return tn__error_null_of("tn_backward_with", "tensor, gradient", tensor, gradient);
    return run(&tensor, &gradient, 1, NULL, NULL, 0, &options);
}

tn_status tn_grad(tn_tensor *const *outputs, tn_tensor *const *cotangents, int64_t n_outputs,
                  tn_tensor *const *inputs, tn_tensor **gradients, int64_t n_inputs,
                  const tn_backward_options *options)
{
    static tn_tensor *const none[1];
    tn_status status;

    if (!tn__given(inputs != NULL || n_inputs <= 0, "tn_grad: inputs") ||
        !tn__given(gradients != NULL || n_inputs <= 0, "tn_grad: gradients"))
        return TN_ERR_VALUE;
    for (int64_t i = 0; i < n_inputs; i++)
        gradients[i] = NULL;
    status = run(outputs, cotangents, n_outputs, inputs != NULL ? inputs : none, gradients,
                 n_inputs, options);
    for (int64_t i = 0; i < n_inputs && status == TN_OK; i++) {
        if (gradients[i] != NULL)
            continue;
        if (options != NULL && options->allow_unused != 0)
            gradients[i] = TN_NONE;
        else
            /* PyTorch's wording */
            status = tn_fail(
                TN_ERR_RUNTIME,
                "One of the differentiated Tensors appears to not have been used in the graph "
                "(input %lld). "
                "Set allow_unused=True if this is the desired behavior.",
                (long long)i);
    }
    for (int64_t i = 0; i < n_inputs; i++) {
        if (gradients[i] == NULL || tn__is_none(gradients[i]))
            continue;
        if (status == TN_OK) {
            gradients[i] = tn__scope_push(gradients[i]);
            if (gradients[i] == NULL)
                status = tn_error_last_code();
        } else {
            tn_tensor_drop(gradients[i]);
            gradients[i] = NULL;
        }
    }
    if (status != TN_OK) /* the scope owns the gradients that are in it */
        for (int64_t i = 0; i < n_inputs; i++)
            gradients[i] = NULL;
    return status;
}

tn_status tn__grad_history(tn_tensor *const *outputs, tn_tensor *const *cotangents,
                           int64_t n_outputs, tn_tensor *const *inputs, tn_tensor **gradients,
                           int64_t n_inputs)
{
    const tn_backward_options how = { .size = sizeof how,
                                      .retain_graph = true,
                                      .allow_unused = true };
    bool before = of_history;
    tn_status status;

    of_history = true;
    status = tn_grad(outputs, cotangents, n_outputs, inputs, gradients, n_inputs, &how);
    of_history = before;
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * Runs of prepared calls. Inputs are compared with those that the call was prepared for, outputs
 * are made or checked, and the kernel is called. */
#include "core/op/prepared.h"
#include "core/tensor/trace.h"
#include "core/tensor/capture.h"
#include "core/tensor/thread.h"

static tn_status wrong_input(const tn_prepared *p, int64_t i, const tn_tensor *tensor)
{
    const char *name = tn__operand(p->op, i)->name;
    const tn__prepared_input *seen = &p->in[i];
    tn__text is = { 0 }, shape = { 0 }, strides = { 0 };
    tn_status status;

    if (tensor == NULL)
        return tn__call_null(p->op, name);
    if (seen->ndim < 0 || tn__is_none(tensor))
        return tn_fail(TN_ERR_VALUE,
                       "tn_prepared_run: %s: %s: wrong input, got %s; expected %s, with which the "
                       "call was prepared",
                       p->op->def.name, name, tn__is_none(tensor) ? "TN_NONE" : "a tensor",
                       seen->ndim < 0 ? "TN_NONE" : "a tensor");
    tn__tensor_text(&is, tensor);
    tn__text_add(&is, " with strides ");
    tn__tensor_text_ints(&is, (tn_ints){ tensor->view.strides, tensor->view.ndim });
    tn__tensor_text_ints(&shape, (tn_ints){ seen->shape, seen->ndim });
    tn__tensor_text_ints(&strides, (tn_ints){ seen->strides, seen->ndim });
    if (is.failed || shape.failed || strides.failed)
        status = tn_fail(TN_ERR_MEMORY, "%s: out of memory for an error text", p->op->def.name);
    else
        status = tn_fail(TN_ERR_VALUE,
                         "tn_prepared_run: %s: %s is %s; the call was prepared for %s%s on %s with "
                         "strides %s: prepare another call for it",
                         p->op->def.name, name, is.at, tn_dtype_name((tn_dtype)seen->dtype),
                         shape.at, tn_device_name(p->device), strides.at);
    tn__text_free(&is);
    tn__text_free(&shape);
    tn__text_free(&strides);
    return status;
}

static tn_status other_constant(const tn_prepared *p, int64_t i)
{
    return tn_fail(
        TN_ERR_VALUE,
        "tn_prepared_run: %s: %s: another tensor than the constant one that the call was "
        "prepared with; pass that tensor, or prepare without bit %lld of `constant`",
        p->op->def.name, tn__operand(p->op, i)->name, (long long)(i < 63 ? i : 63));
}

static inline bool fits(const tn__prepared_input *seen, const tn_tensor *tensor)
{
    const tn_view *view = &tensor->view;
    bool same = tensor->dtype == seen->dtype && view->ndim == seen->ndim;

    for (int32_t d = 0; same && d < view->ndim; d++)
        same = view->shape[d] == seen->shape[d] && view->strides[d] == seen->strides[d];
    return same;
}

/* Checks the inputs and fills in work->views. */
static tn_status check_inputs(const tn_prepared *p, tn__work *work)
{
    int64_t grad = -1; /* an input whose gradient would be recorded */

    for (int64_t i = 0; i < p->n_in; i++) {
        const tn__prepared_input *seen = &p->in[i];
        tn_tensor *tensor = work->in[i];

        work->views[i] = NULL;
        if (seen->ndim < 0 && tn__is_none(tensor))
            continue;
        if (tn__unlikely(!tn__tensor_ok(tensor) || seen->ndim < 0 || !fits(seen, tensor) ||
                         (tensor->device != p->device &&
                          (tn__operand(p->op, i)->flags & TN_OPERAND_ANY_DEVICE) == 0)))
            return wrong_input(p, i, tensor);
        if (tn__unlikely(seen->storage != NULL && (tensor->storage != seen->storage ||
                                                   tensor->view.byte_offset != seen->byte_offset)))
            return other_constant(p, i);
        work->views[i] = &tensor->view;
        if (tn__unlikely(tn__requires_grad(tensor)) &&
            (tn__operand(p->op, i)->flags & TN_OPERAND_NO_GRAD) == 0)
            grad = i;
    }
    if (tn__unlikely(grad >= 0 && tn__grad_on()))
        return tn_fail(TN_ERR_RUNTIME,
                       "tn_prepared_run: %s: %s requires grad, and a prepared call records no "
                       "gradient; run it between tn_grad_begin(false) and tn_grad_end()",
                       p->op->def.name, tn__operand(p->op, grad)->name);
    return TN_OK;
}

/* Runs the kernel. The inputs have been checked, and the outputs have been made. */
static tn_status run_kernel(tn_prepared *p, tn__work *work, const tn_view **out_views)
{
    tn__prepared_data *data;
    tn_status status = tn__prepared_hold(p, &data);
    tn_call call;

    if (tn__unlikely(status != TN_OK))
        return status;
    for (int32_t i = 0; i < p->n_out; i++)
        out_views[i] = work->out[i] != NULL ? &work->out[i]->view : NULL;
    tn__prepared_call(p, &call);
    call.in = work->views;
    call.out = out_views;
    call.prepared = data != NULL ? data->data : NULL;
    status = tn__run_prepared(work, p->entry, &call, p->workspace);
    if (data != NULL && (call.flags & TN_CALL_CAPTURED) != 0 && status == TN_OK)
        return tn__capture_hold_object(tn__stream_current(p->device), data, tn__prepared_data_drop);
    if (data != NULL)
        tn__prepared_data_drop(data);
    return status;
}

static void drop_outputs(const tn_prepared *p, tn_tensor **out)
{
    for (int32_t i = 0; i < p->n_out; i++) {
        if (out[i] != NULL)
            tn_tensor_drop(out[i]);
        out[i] = NULL;
    }
}

/* Makes the outputs whose shape is known. */
static tn_status make_outputs(const tn_prepared *p, tn_tensor **out)
{
    for (int32_t i = 0; i < p->n_out; i++)
        out[i] = NULL;
    for (int32_t i = 0; i < p->n_out; i++) {
        if (p->meta[i].ndim < 0)
            continue;
        out[i] = tn__tensor_make(&p->meta[i], p->device);
        if (tn__unlikely(out[i] == NULL)) {
            drop_outputs(p, out);
            return tn_error_prefix("%s: ", p->op->def.name);
        }
    }
    return TN_OK;
}

static tn_status run_checked(tn_prepared *p, tn__work *work, tn_tensor **out, bool given)
{
    const tn_view *out_views[TN_MAX_OPERANDS];
    bool writes = (p->op->flags & (TN__OP_WRITES | TN__OP_UPDATES)) != 0;
    tn_status status = check_inputs(p, work);

    if (tn__likely(status == TN_OK))
        status = tn__device_usable(p->device);
    if (writes && status == TN_OK)
        status = tn__write_check(work);
    if (tn__likely(status == TN_OK && !given))
        status = make_outputs(p, out);
    if (tn__unlikely(status != TN_OK))
        return status;
    work->out = out;
    status = run_kernel(p, work, out_views);
    if (writes)
        tn__write_done(work);
    if (tn__unlikely(status != TN_OK && !given))
        drop_outputs(p, out);
    return status;
}

static tn_status run(tn_prepared *p, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                     bool given)
{
    tn__observed seen;
    tn__work work;
    bool watched = atomic_load_explicit(&tn__observers_on, memory_order_relaxed) > 0;
    tn_status status;

    if (tn__unlikely(watched && tn__tracer_here != NULL)) {
        if (!given)
            return tn__tracer_here->op(tn__tracer_here, p->op, in, n_in, p->options, out, p->n_out,
                                       NULL);
        return tn__tracer_here->refuse(tn__tracer_here, NULL, "tn_prepared_run_into");
    }

    if (tn__unlikely(n_in != p->n_in)) {
        status = tn__call_fit(p->op, &in, &n_in, work.fitted);
        if (status != TN_OK)
            return status;
    }
    if (tn__unlikely(n_in != p->n_in))
        return tn_fail(TN_ERR_VALUE,
                       "tn_prepared_run: %s: inputs: wrong number, got %lld; it was prepared with "
                       "%lld",
                       p->op->def.name, (long long)n_in, (long long)p->n_in);
    work.op = p->op;
    work.in = in;
    work.n_in = n_in;
    work.options = p->options;
    work.device = p->device;
    work.wants_grad = false;
    work.n_out = p->n_out;
    work.group = p->group;
    work.only_read = p->only_read;
    work.meta = p->meta;
    work.into = NULL;
    work.views = n_in <= TN__FEW ? work.few_views : tn_malloc((size_t)n_in * sizeof *work.views);
    if (work.views == NULL)
        return TN_ERR_MEMORY;
    if (tn__unlikely(watched))
        tn__observer_begin(&seen, p->op, in, n_in, p->options, p->device);
    status = run_checked(p, &work, out, given);
    if (tn__unlikely(watched))
        tn__observer_end(&seen, out, p->n_out, status);
    if (work.views != work.few_views)
        tn_free(work.views);
    return status;
}

static tn_status wrong_outputs(const tn_prepared *p, const char *who, int64_t n_out)
{
    return tn_fail(TN_ERR_VALUE, "%s: %s: outputs: wrong number, got %lld; expected %d", who,
                   p->op->def.name, (long long)n_out, (int)p->n_out);
}

tn_status tn_prepared_run(tn_prepared *prepared, tn_tensor *const *in, int64_t n_in,
                          tn_tensor **out, int64_t n_out)
{
    tn_status status;

    if (!tn__given(out != NULL || n_out <= 0, "tn_prepared_run: out"))
        return TN_ERR_VALUE;
    for (int64_t i = 0; i < n_out; i++)
        out[i] = NULL;
    if (!tn__given(prepared != NULL, "tn_prepared_run: prepared") ||
        !tn__given(in != NULL || n_in <= 0, "tn_prepared_run: in"))
        return TN_ERR_VALUE;
    if (tn__unlikely(n_out != prepared->n_out))
        return wrong_outputs(prepared, "tn_prepared_run", n_out);
    status = run(prepared, in, n_in, out, false);
    if (tn__unlikely(status != TN_OK))
        return status;
    for (int64_t i = 0; i < n_out; i++) {
        out[i] = tn__scope_push(out[i]);
        if (tn__likely(out[i] != NULL))
            continue;
        while (++i < n_out)
            tn_tensor_drop(out[i]);
        for (i = 0; i < n_out; i++)
            out[i] = NULL;
        return tn_error_last_code();
    }
    return TN_OK;
}

/* ---- into existing tensors ------------------------------------------------------------------- */

static tn_status check_into(const tn_prepared *p, int32_t i, const tn_tensor *into)
{
    const char *name = p->op->def.outputs[i].name;
    const tn_meta *meta = &p->meta[i];
    bool same;

    if (!tn__tensor_ok(into))
        return tn__tensor_bad(into, "tn_prepared_run_into: into");
    if (meta->ndim < 0)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "tn_prepared_run_into: %s: the shape of %s depends on values; use "
                       "tn_prepared_run",
                       p->op->def.name, name);
    same = into->device == p->device && into->dtype == meta->dtype &&
           into->view.ndim == meta->ndim && into->contiguous;
    for (int32_t d = 0; same && d < meta->ndim; d++)
        same = into->view.shape[d] == meta->shape[d];
    if (!same) {
        tn__text is = { 0 }, shape = { 0 };
        tn_status status;

        tn__tensor_text(&is, into);
        tn__tensor_text_ints(&shape, (tn_ints){ meta->shape, meta->ndim });
        status = tn_fail(
            TN_ERR_VALUE,
            "tn_prepared_run_into: %s: %s: wrong tensor, got %s; expected a contiguous "
            "%s%s on %s",
            p->op->def.name, name, is.failed ? "another" : is.at, tn_dtype_name(meta->dtype),
            shape.failed ? "" : shape.at, tn_device_name(p->device));
        tn__text_free(&is);
        tn__text_free(&shape);
        return status;
    }
    if (tn__grad_on() && tn__requires_grad((tn_tensor *)(uintptr_t)into))
        return tn_fail(TN_ERR_RUNTIME,
                       "tn_prepared_run_into: %s: %s requires grad, and a prepared call records no "
                       "gradient; run it between tn_grad_begin(false) and tn_grad_end()",
                       p->op->def.name, name);
    return tn__tensor_writable(into);
}

static bool in_place(const tn_prepared *p, int64_t i)
{
    return i < 64 && ((p->entry->kernel.inplace >> i & 1) != 0 ||
                      (i == 0 && (p->op->def.flags & TN_OP_INPLACE) != 0));
}

/* Checks that output k shares no memory with a later output, and none with an input unless the
 * kernel can compute in place there. */
static tn_status check_shared(const tn_prepared *p, int32_t k, tn_tensor *const *in,
                              tn_tensor *const *into)
{
    const char *name = p->op->def.outputs[k].name;

    for (int64_t i = 0; i < p->n_in; i++) {
        if (!tn__tensor_ok(in[i]) || !tn__tensor_overlap(into[k], in[i]) ||
            (k == 0 && in_place(p, i) && tn__tensor_same_view(into[k], in[i])))
            continue;
        return tn_fail(TN_ERR_RUNTIME,
                       "tn_prepared_run_into: %s: %s shares memory with input %lld, and kernel %s "
                       "cannot compute in place there; expected separate memory",
                       p->op->def.name, name, (long long)i, p->entry->kernel.name);
    }
    for (int32_t i = k + 1; i < p->n_out; i++)
        if (tn__tensor_ok(into[i]) && tn__tensor_overlap(into[k], into[i]))
            return tn_fail(TN_ERR_RUNTIME,
                           "tn_prepared_run_into: %s: outputs %d and %d share memory; expected "
                           "separate memory",
                           p->op->def.name, (int)k, (int)i);
    return TN_OK;
}

tn_status tn_prepared_run_into(tn_prepared *prepared, tn_tensor *const *in, int64_t n_in,
                               tn_tensor *const *into, int64_t n_into)
{
    tn_tensor *out[TN_MAX_OPERANDS];
    tn_status status = TN_OK;

    if (!tn__given(prepared != NULL, "tn_prepared_run_into: prepared") ||
        !tn__given(in != NULL || n_in <= 0, "tn_prepared_run_into: in") ||
        !tn__given(into != NULL || n_into <= 0, "tn_prepared_run_into: into"))
        return TN_ERR_VALUE;
    if (n_into != prepared->n_out)
        return wrong_outputs(prepared, "tn_prepared_run_into", n_into);
    for (int32_t i = 0; i < prepared->n_out && status == TN_OK; i++)
        status = check_into(prepared, i, into[i]);
    for (int32_t i = 0; i < prepared->n_out && status == TN_OK && n_in == prepared->n_in; i++)
        status = check_shared(prepared, i, in, into);
    if (status != TN_OK)
        return status;
    for (int32_t i = 0; i < prepared->n_out; i++)
        out[i] = into[i];
    status = run(prepared, in, n_in, out, true);
    for (int32_t i = 0; i < prepared->n_out; i++) /* a kernel that failed may have written, too */
        tn__tensor_written(into[i]);
    return status;
}

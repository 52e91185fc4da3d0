/* SPDX-License-Identifier: MIT
 *
 * Results that are written into an existing tensor: x.add_(y), the out= form, and copies that
 * convert and broadcast. */
#include "core/op/private.h"

static tn_status check_memory(const tn_op *op, tn_tensor *const *in, int64_t n_in, tn_tensor *into)
{
    tn_status status = tn__tensor_writable(into);

    if (status != TN_OK)
        return tn_error_prefix("%s: ", op->def.name);
    if (tn__unlikely(into->storage->flags & TN__STORAGE_INFERENCE) && !tn__making.is.inference)
        return tn_fail(TN_ERR_RUNTIME,
                       "%s_: Inplace update to inference tensor outside InferenceMode is not "
                       "allowed: the tensor was made between tn_inference_begin and "
                       "tn_inference_end; write to a copy of it (tn_clone)",
                       op->def.name);
    if (tn__tensor_repeats(into))
        return tn_fail(
            TN_ERR_RUNTIME,
            "%s: unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location; expected a tensor without such elements, as tn_copy returns",
            op->def.name);
    for (int64_t i = 0; i < n_in; i++) {
        if (in[i] == NULL)
            return tn__call_null(op, tn__operand(op, i)->name);
        if (tn__is_none(in[i]) || !tn__tensor_overlap(in[i], into))
            continue;
        if ((op->def.flags & (TN_OP_INPLACE | TN_OP_INTO)) &&
            (tn__operand(op, i)->flags & TN_OPERAND_APART) == 0 &&
            tn__tensor_same_view(in[i], into))
            continue;
        return tn_fail(
            TN_ERR_RUNTIME,
            "%s: unsupported operation: %s and the written-to tensor partly share memory; "
            "expected a copy (tn_copy) of %s",
            op->def.name, tn__operand(op, i)->name, tn__operand(op, i)->name);
    }
    return TN_OK;
}

static tn_status wrong_shape(const tn_op *op, const tn_tensor *into, tn_ints shape)
{
    tn__text text = { 0 };
    tn_status status;

    if (shape.count < 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "%s: the shape of its result depends on values, so it cannot be written "
                       "into a tensor; call the form that returns a new tensor",
                       op->def.name);
    tn__text_add(&text, "written-to tensor: wrong shape, got ");
    tn__tensor_text_ints(&text, tn__shape(into));
    tn__text_add(&text, "; expected ");
    tn__tensor_text_ints(&text, shape);
    tn__text_put(&text, "", 1);
    status = tn_fail(TN_ERR_RUNTIME, "%s: %s", op->def.name,
                     text.failed ? "shapes differ" : text.at);
    tn__text_free(&text);
    return status;
}

/* Computes a new tensor and copies it to `into`: for a result of another dtype, and for views. */
static tn_status run_aside(tn__work *work)
{
    tn_tensor *into = work->into, *result = NULL;
    tn_status status;

    work->into = NULL;
    status = tn__run_work(work, &result, false);
    work->into = into;
    if (status == TN_OK) {
        status = tn__copy(into, result);
        tn_tensor_drop(result);
    }
    return status;
}

static tn_status run_into(tn__work *work)
{
    tn_tensor *into = work->into, *out = NULL;
    tn_status status;

    if (work->meta[0].dtype != (tn_dtype)into->dtype || (work->op->def.flags & TN_OP_VIEW))
        return run_aside(work);
    status = tn__run_work(work, &out, false);
    if (status == TN_OK) {
        tn_tensor_drop(out);
        tn__tensor_written(into);
    }
    return status;
}

static tn_status check_result(tn__work *work, const tn_tensor *into, bool inplace)
{
    const tn_op *op = work->op;
    const tn_meta *meta = &work->meta[0];
    bool same = meta->ndim == into->view.ndim;

    if (work->device != into->device)
        return tn_fail(
            TN_ERR_RUNTIME,
            "%s: written-to tensor: wrong device, got %s; expected %s, that of the inputs",
            op->def.name, tn_device_name(into->device), tn_device_name(work->device));
    for (int32_t d = 0; same && d < meta->ndim; d++)
        same = meta->shape[d] == into->view.shape[d];
    if (!same)
        return wrong_shape(op, into, (tn_ints){ meta->shape, meta->ndim });
    if (!tn__promote_can_cast(meta->dtype, (tn_dtype)into->dtype))
        return tn_fail(
            TN_ERR_RUNTIME, "%s: result type %s can't be cast to the desired output type %s",
            op->def.name, tn_dtype_name(meta->dtype), tn_dtype_name((tn_dtype)into->dtype));
    /* A complex tensor cannot take a result that is real, such as the absolute values of its
     * elements. */
    if (inplace && (TN_MASK_COMPLEX & TN_BIT(into->dtype)) != 0 &&
        (TN_MASK_FLOAT & TN_BIT(meta->dtype)) != 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "%s: no in-place form for %s, because the result is %s; call the form that "
                       "returns a new tensor",
                       op->def.name, tn_dtype_name((tn_dtype)into->dtype),
                       tn_dtype_name(meta->dtype));
    return TN_OK;
}

/* Copies from any dtype and any device, and broadcasts to the shape of `into`. */
static tn_status copy_into(const tn_op *op, tn_tensor *const *in, tn_tensor *into)
{
    tn_tensor *from = in[0], *wide;
    int32_t lead = into->view.ndim - from->view.ndim;
    tn_status status;
    tn_meta meta;

    tn__tensor_meta(from, &meta);
    meta.ndim = into->view.ndim;
    meta.flags = TN_META_STRIDED;
    for (int32_t d = 0; d < into->view.ndim; d++) {
        int64_t size = d < lead ? 1 : from->view.shape[d - lead];

        if (lead < 0 || (size != into->view.shape[d] && size != 1))
            return wrong_shape(op, into, tn__shape(from));
        meta.shape[d] = into->view.shape[d];
        meta.strides[d] = d < lead || size != meta.shape[d] ? 0 : from->view.strides[d - lead];
    }
    if (lead < 0)
        return wrong_shape(op, into, tn__shape(from));
    if (tn__tensor_same_view(from, into) && from->dtype == into->dtype) {
        tn__tensor_written(into); /* nothing is copied, but it counts as a change, as in PyTorch */
        return TN_OK;
    }
    wide = tn__tensor_over(from->storage, &meta);
    if (wide == NULL)
        return tn_error_last_code();
    status = tn__copy(into, wide);
    tn_tensor_drop(wide);
    return status;
}

static tn_status call_copy(const tn_op *op, tn_tensor *const *in, int64_t n_in, tn_tensor *into)
{
    bool record;
    tn_status status;

    if (n_in != 1)
        return tn_fail(TN_ERR_VALUE,
                       "%s: wrong number of inputs, got %lld; expected 1 and the tensor to write",
                       op->def.name, (long long)n_in);
    status = check_memory(op, in, n_in, into);
    if (status != TN_OK)
        return status;
    if (tn__is_none(in[0]))
        return tn_fail(TN_ERR_VALUE, "%s: %s: no tensor, got TN_NONE; expected a tensor",
                       op->def.name, tn__operand(op, 0)->name);
    record = tn__grad_on() && (tn__requires_grad(into) || tn__requires_grad(in[0]));
    if (record) {
        tn_tensor *original;

        status = tn__op_up.grad_before_inplace(op, into, in, n_in, NULL, &original);
        if (status != TN_OK)
            return status;
    }
    status = copy_into(op, in, into);
    if (status == TN_OK && record)
        status = tn__op_up.grad_after_inplace(op, into, in, n_in, NULL, NULL);
    return status;
}

/* In-place call of an operator that is recorded through its inner operators. They work on a copy of
 * the tensor, which they may keep for their derivatives; the result is copied into the tensor. */
static tn_status recorded_into(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                               const void *options, tn_tensor *into)
{
    const tn_op *copy = tn__op_needed(TN__NEED_copy);
    tn_tensor **operands, *result = NULL;
    tn_status status;

    if (copy == NULL)
        return tn_error_last_code();
    operands = tn_malloc((size_t)n_in * sizeof(tn_tensor *));
    if (operands == NULL)
        return TN_ERR_MEMORY;
    memcpy(operands, in, (size_t)n_in * sizeof(tn_tensor *));
    operands[0] = NULL;
    status = tn__call_plain(copy, &into, 1, NULL, operands, 1, NULL);
    if (status == TN_OK)
        status = tn__call_plain(op, operands, n_in, options, &result, 1, NULL);
    if (status == TN_OK)
        status = call_copy(copy, &result, 1, into);
    if (result != NULL)
        tn_tensor_drop(result);
    if (operands[0] != NULL)
        tn_tensor_drop(operands[0]);
    tn_free(operands);
    return status;
}

tn_status tn__inplace_call(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                           tn_tensor *into)
{
    tn_tensor *original = NULL;
    bool record;
    tn__work work;
    tn_meta meta;
    tn_status status;

    if (!tn__tensor_ok(into))
        return into == NULL
                   ? tn__call_null(op, "the tensor to write")
                   : tn_fail(TN_ERR_VALUE, "%s: tensor to write: it is TN_NONE; expected a tensor",
                             op->def.name);
    if (op->def.flags & TN_OP_INTO)
        return call_copy(op, in, n_in, into);
    if (op->def.n_outputs != 1)
        return tn_fail(TN_ERR_VALUE,
                       "%s: no form that writes into a tensor, because it has %d outputs",
                       op->def.name, (int)op->def.n_outputs);
    if (n_in > 0 && in[0] == into && (op->def.flags & TN_OP_INPLACE) == 0)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: no in-place form; write into another tensor",
                       op->def.name);
    status = check_memory(op, in, n_in, into);
    if (status != TN_OK)
        return status;
    status = tn__call_begin(&work, op, in, n_in, options, &meta, into);
    if (status != TN_OK)
        return status;
    record = tn__grad_on() && (work.wants_grad || tn__requires_grad(into));
    if (record && (n_in == 0 || in[0] != into)) {
        tn__call_end(&work);
        return tn_fail(
            TN_ERR_RUNTIME,
            "%s: functions with out=... arguments don't support automatic differentiation, but "
            "one of the "
            "arguments requires grad; use tn_grad_begin(false)",
            op->def.name);
    }
    status = check_result(&work, into, n_in > 0 && in[0] == into);
    if (status == TN_OK && record)
        status = tn__op_up.grad_before_inplace(op, into, work.in, work.n_in, work.options,
                                               &original);
    if (status == TN_OK && record && work.wants_grad && op->def.derive == NULL &&
        op->def.decompose != NULL) {
        tn__call_end(&work);
        return recorded_into(op, in, n_in, options, into);
    }
    if (status == TN_OK)
        status = run_into(&work);
    if (status == TN_OK && record)
        status = tn__op_up.grad_after_inplace(op, into, work.in, work.n_in, work.options, original);
    if (original != NULL)
        tn_tensor_drop(original);
    tn__call_end(&work);
    return status;
}

tn_status tn_op_call_into(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                          tn_tensor *into)
{
    tn_tensor *space[TN_MAX_OPERANDS];

    if (op == NULL)
        return tn_error_null("tn_op_call_into: operator");
    if (into == NULL)
        return tn__call_null(op, "the tensor to write");
    if (!tn__given(in != NULL || n_in <= 0, "tn_op_call_into: in") ||
        (tn__unlikely(!tn__call_fits(op, n_in)) && tn__call_fit(op, &in, &n_in, space) != TN_OK))
        return TN_ERR_VALUE;
    if (tn__unlikely(atomic_load_explicit(&tn__observers_on, memory_order_relaxed) > 0))
        return tn__observer_call(op, in, n_in, options, &into, 1, into);
    return tn__inplace_call(op, in, n_in, options, into);
}

tn_tensor *tn_op_call1_into(tn_op_ref *ref, tn_tensor *const *in, int64_t n_in, const void *options,
                            tn_tensor *into)
{
    if (!tn__given(ref != NULL, "tn_op_call1_into: ref"))
        return NULL;
    const tn_op *op = tn__op_of(ref);

    return op != NULL && tn_op_call_into(op, in, n_in, options, into) == TN_OK ? into : NULL;
}

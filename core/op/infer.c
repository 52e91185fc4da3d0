/* SPDX-License-Identifier: MIT
 *
 * For graphs: what an operator would return for inputs of given dtypes and shapes. The checks,
 * promotion and inference of a call run on placeholder tensors, which have no memory. */
#include "core/base/dtype.h"
#include "core/op/private.h"

/* The storage of all placeholders, and of no other tensor. */
tn__storage tn__infer_storage = { .size = 0 };
static const tn_device somewhere = { .name = "any device" };

tn_tensor *tn__infer_cast(tn_tensor *tensor, tn_dtype dtype)
{
    uint64_t elements = tensor->view.byte_offset / tn_dtype_size(tensor->dtype);

    tensor->dtype = (uint8_t)dtype;
    tn__dtype_to_view(dtype, &tensor->view);
    tensor->view.byte_offset = elements * tn_dtype_size(dtype);
    return tn_tensor_keep(tensor);
}

static void stand_in(tn_tensor *tensor, const tn_meta *meta)
{
    memset(tensor, 0, sizeof *tensor);
    /* A large count, so that no drop is the last: calls keep and drop inputs that promotion
     * changed. */
    atomic_store_explicit(&tensor->refs, INT32_MAX / 2, memory_order_relaxed);
    tensor->storage = &tn__infer_storage;
    tensor->device = &somewhere;
    tensor->dtype = (uint8_t)meta->dtype;
    tensor->view.ndim = meta->ndim;
    tensor->view.shape = (int64_t *)(uintptr_t)meta->shape;
    tensor->view.strides = (int64_t *)(uintptr_t)meta->strides;
    tensor->view.byte_offset = (uint64_t)meta->offset * tn_dtype_size(meta->dtype);
    tn__dtype_to_view(meta->dtype, &tensor->view);
    tensor->numel = 1;
    tensor->contiguous = true;
    for (int32_t d = meta->ndim - 1; d >= 0; d--) {
        tensor->contiguous &= meta->shape[d] == 1 || meta->strides[d] == tensor->numel;
        tensor->numel = tn__op_times(tensor->numel, meta->shape[d]);
    }
}

void tn__op_meta_strides(tn_meta *meta)
{
    int64_t step = 1;

    if (meta->ndim < 0 || (meta->flags & TN_META_STRIDED) != 0)
        return;
    for (int32_t d = meta->ndim - 1; d >= 0; d--) {
        meta->strides[d] = step;
        step = tn__op_times(step, meta->shape[d] > 0 ? meta->shape[d] : 1);
    }
    meta->flags |= TN_META_STRIDED;
}

static tn_status infer(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                       tn_meta *out, uint64_t *writes)
{
    tn__work work;
    tn_status status = tn__call_begin(&work, op, in, n_in, options, out, NULL);

    if (status != TN_OK)
        return status;
    if ((op->flags & (TN__OP_WRITES | TN__OP_UPDATES)) != 0)
        for (int64_t i = 0; i < n_in; i++)
            *writes |= (uint64_t)tn__write_into(&work, i) << (i < 63 ? i : 63);
    tn__call_end(&work);
    for (int32_t i = 0; i < op->def.n_outputs && status == TN_OK; i++) {
        uint64_t bytes;

        if (out[i].ndim >= 0)
            status = tn__tensor_meta_bytes(&out[i], &bytes);
        if (status != TN_OK)
            return tn_error_prefix("%s: output %s: ", op->def.name, op->def.outputs[i].name);
        tn__op_meta_strides(&out[i]);
    }
    return status;
}

tn_status tn__op_infer(const tn_op *op, const tn_meta *const *in, int64_t n_in, const void *options,
                       tn_meta *out, uint64_t *writes)
{
    tn_tensor *space = tn_malloc((size_t)(n_in > 0 ? n_in : 1) * sizeof *space);
    tn_tensor **list = tn_malloc((size_t)(n_in > 0 ? n_in : 1) * sizeof *list);
    tn_status status = space != NULL && list != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < n_in && status == TN_OK; i++) {
        list[i] = TN_NONE;
        if (in[i] != NULL) {
            stand_in(&space[i], in[i]);
            list[i] = &space[i];
        }
    }
    *writes = 0;
    if (status == TN_OK)
        status = infer(op, list, n_in, options, out, writes);
    tn_free(list);
    tn_free(space);
    return status;
}

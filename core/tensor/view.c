/* SPDX-License-Identifier: MIT
 *
 * Tensors over the same storage: views, overlap, and the exchange of contents. Also the texts of
 * tensors for messages. */
#include "core/tensor/device.h"
#include "core/base/dtype.h"
#include "core/tensor/thread.h"

void tn__tensor_meta(const tn_tensor *tensor, tn_meta *meta)
{
    meta->dtype = (tn_dtype)tensor->dtype;
    meta->ndim = tensor->view.ndim;
    meta->flags = TN_META_STRIDED;
    meta->reserved = 0;
    meta->offset = tn_tensor_offset(tensor);
    for (int32_t i = 0; i < meta->ndim; i++) {
        meta->shape[i] = tensor->view.shape[i];
        meta->strides[i] = tensor->view.strides[i];
    }
}

tn_tensor *tn_tensor_as_strided(tn_tensor *tensor, tn_ints shape, tn_ints strides, int64_t offset)
{
    tn_meta meta;
    tn_tensor *view;

    if (!tn__tensor_ok(tensor)) {
        tn__tensor_bad(tensor, "tn_tensor_as_strided");
        return NULL;
    }
    if (shape.count > 0 && strides.count == shape.count &&
        (shape.at == NULL || strides.at == NULL)) {
        tn_fail(TN_ERR_VALUE, "tn_tensor_as_strided: %s: it is NULL; expected %lld numbers",
                shape.at == NULL ? "shape" : "strides", (long long)shape.count);
        return NULL;
    }
    if (shape.count < 0 || shape.count > TN_MAX_DIMS || strides.count != shape.count) {
        tn_fail(TN_ERR_VALUE,
                "tn_tensor_as_strided: wrong counts, got %lld sizes and %lld strides; expected as "
                "many strides as sizes, 0 to %d of each",
                (long long)shape.count, (long long)strides.count, TN_MAX_DIMS);
        return NULL;
    }
    meta.dtype = (tn_dtype)tensor->dtype;
    meta.ndim = (int32_t)shape.count;
    meta.flags = TN_META_STRIDED;
    meta.offset = offset;
    for (int64_t i = 0; i < shape.count; i++) {
        meta.shape[i] = shape.at[i];
        meta.strides[i] = strides.at[i];
    }
    view = tn__tensor_over(tensor->storage, &meta);
    return view != NULL ? tn__scope_push(view) : NULL;
}

tn_tensor *tn_tensor_over(tn_tensor *tensor, tn_dtype dtype, tn_ints shape, const int64_t *strides,
                          int64_t offset)
{
    tn_meta meta = { .dtype = dtype, .offset = offset };
    tn_tensor *view;

    if (!tn__tensor_ok(tensor)) {
        tn__tensor_bad(tensor, "tn_tensor_over");
        return NULL;
    }
    if (shape.count > 0 && shape.count <= TN_MAX_DIMS && shape.at == NULL) {
        tn_fail(TN_ERR_VALUE, "tn_tensor_over: shape: it is NULL; expected %lld sizes",
                (long long)shape.count);
        return NULL;
    }
    if (shape.count < 0 || shape.count > TN_MAX_DIMS) {
        tn_fail(TN_ERR_VALUE,
                "tn_tensor_over: wrong number of dimensions, got %lld; expected 0 to %d",
                (long long)shape.count, TN_MAX_DIMS);
        return NULL;
    }
    meta.ndim = (int32_t)shape.count;
    meta.flags = strides != NULL ? TN_META_STRIDED : 0;
    for (int64_t i = 0; i < shape.count; i++) {
        meta.shape[i] = shape.at[i];
        if (strides != NULL)
            meta.strides[i] = strides[i];
    }
    view = tn__tensor_over(tensor->storage, &meta);
    return view != NULL ? tn__scope_push(view) : NULL;
}

/* ---- memory of two tensors ---- */

/* Returns the number of bytes from the start of the memory (view.data) to the end of the last
 * element. */
static uint64_t end_of(const tn_tensor *tensor)
{
    uint64_t last = 0;

    for (int32_t i = 0; i < tensor->view.ndim; i++)
        last += (uint64_t)(tensor->view.shape[i] - 1) * (uint64_t)tensor->view.strides[i];
    return tensor->view.byte_offset + (last + 1) * tn_dtype_size((tn_dtype)tensor->dtype);
}

bool tn__tensor_overlap(const tn_tensor *a, const tn_tensor *b)
{
    uint64_t a0 = a->view.byte_offset, b0 = b->view.byte_offset;

    if (a->numel == 0 || b->numel == 0 || a->device != b->device ||
        !tn_device_has_memory(a->device))
        return false;
    if (a->storage != b->storage && !tn_device_is_host(a->device) && a->view.data != b->view.data)
        return false;
    if (tn_device_is_host(a->device)) {
        /* Foreign memory may be anywhere, even inside the memory of another storage: compares
         * addresses. */
        a0 += (uintptr_t)a->view.data;
        b0 += (uintptr_t)b->view.data;
        return a0 < b0 + (end_of(b) - b->view.byte_offset) &&
               b0 < a0 + (end_of(a) - a->view.byte_offset);
    }
    return a0 < end_of(b) && b0 < end_of(a);
}

bool tn__tensor_same_view(const tn_tensor *a, const tn_tensor *b)
{
    if (a->device != b->device || a->view.data != b->view.data ||
        a->view.byte_offset != b->view.byte_offset || a->dtype != b->dtype ||
        a->view.ndim != b->view.ndim)
        return false;
    for (int32_t i = 0; i < a->view.ndim; i++)
        if (a->view.shape[i] != b->view.shape[i] ||
            (a->view.shape[i] > 1 && a->view.strides[i] != b->view.strides[i]))
            return false;
    return true;
}

bool tn__view_strides_nest(const int64_t *shape, const int64_t *strides, int32_t ndim,
                           uint32_t without)
{
    int32_t order[TN_MAX_DIMS], count = 0;
    int64_t reach = 0;

    for (int32_t d = 0; d < ndim; d++) {
        int32_t at = count;

        if (shape[d] == 0) /* no element, so none twice */
            return true;
        if (shape[d] == 1 || (without >> d & 1) != 0)
            continue;
        for (; at > 0 && strides[order[at - 1]] > strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
        count++;
    }
    for (int32_t i = 0; i < count; i++) {
        if (strides[order[i]] <= reach)
            return false;
        reach += (shape[order[i]] - 1) * strides[order[i]];
    }
    return true;
}

/* Returns whether steps along the dimensions [0, count), fewer than their sizes and not all zero,
 * can bring `sum` to 0. `moved`: a step that is not zero was made before. Strides are in ascending
 * order. After `budget` calls gives up and returns true. */
static bool can_meet(const int64_t *shape, const int64_t *strides, int32_t count, int64_t sum,
                     bool moved, int64_t *budget)
{
    int64_t reach = 0, most;

    if (count == 0)
        return sum == 0 && moved;
    if (--*budget < 0)
        return true;
    for (int32_t i = 0; i + 1 < count; i++)
        reach += (shape[i] - 1) * strides[i];
    most = shape[count - 1] - 1;
    for (int64_t k = -most; k <= most; k++) {
        int64_t left = sum + k * strides[count - 1];

        if (left < -reach)
            k += (-reach - left - 1) / strides[count - 1];
        else if (left > reach)
            break;
        else if (can_meet(shape, strides, count - 1, left, moved || k != 0, budget))
            return true;
    }
    return false;
}

bool tn__tensor_repeats(const tn_tensor *tensor)
{
    const tn_view *view = &tensor->view;
    int64_t shape[TN_MAX_DIMS], strides[TN_MAX_DIMS], budget = 1 << 20;
    int32_t count = 0;

    if (tensor->contiguous || tensor->numel < 2 ||
        tn__view_strides_nest(view->shape, view->strides, view->ndim, 0))
        return false;
    for (int32_t d = 0; d < view->ndim; d++) {
        int32_t at = count;

        if (view->shape[d] == 1)
            continue;
        if (view->strides[d] == 0)
            return true;
        for (; at > 0 && strides[at - 1] > view->strides[d]; at--) {
            shape[at] = shape[at - 1];
            strides[at] = strides[at - 1];
        }
        shape[at] = view->shape[d];
        strides[at] = view->strides[d];
        count++;
    }
    return can_meet(shape, strides, count, 0, false, &budget);
}

bool tn__tensor_is_dense(const tn_tensor *tensor)
{
    int32_t ndim = tensor->view.ndim, left = 0;
    int32_t dims[TN_MAX_DIMS];
    int64_t step = 1;

    if (tensor->contiguous || tensor->numel <= 1)
        return true;
    for (int32_t i = 0; i < ndim; i++)
        if (tensor->view.shape[i] > 1)
            dims[left++] = i;
    while (left > 0) {
        int32_t k = 0;
        while (k < left && tensor->view.strides[dims[k]] != step)
            k++;
        if (k == left)
            return false;
        step *= tensor->view.shape[dims[k]];
        dims[k] = dims[--left];
    }
    return true;
}

tn_status tn__tensor_writable(const tn_tensor *tensor)
{
    if (tn__likely((tensor->storage->flags & TN__STORAGE_READ_ONLY) == 0))
        return TN_OK;
    return tn_fail(TN_ERR_REFUSED,
                   "tensor: its memory is read-only, because it was mapped from a file with "
                   "TN_FILE_READ_ONLY or imported from a read-only DLPack tensor; write to a copy "
                   "of it (tn_clone)");
}

/* ---- exchange ---- */

/* After an exchange, makes the pointers to shape and strides point into their own object again. */
static void settle_dims(tn_tensor *tensor)
{
    if (tensor->has_inline_dims) {
        tensor->view.shape = tensor->dims;
        tensor->view.strides = tensor->dims + TN__INLINE_DIMS;
    }
}

/* Returns whether `to` may get the contents of `from`. requires_grad stays with the object, so the
 * new dtype must be one that can have gradients. */
static bool may_swap(const tn_tensor *to, const tn_tensor *from)
{
    if (!tn__tensor_up.requires_grad(to) ||
        (TN_BIT(from->dtype) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)))
        return true;
    tn_fail(TN_ERR_RUNTIME,
            "tn_tensor_swap: wrong dtype for a tensor that requires gradients, got %s; expected a "
            "floating-point or complex dtype; or set requires_grad to false first",
            tn_dtype_name((tn_dtype)from->dtype));
    return false;
}

tn_status tn__tensor_exchange(tn_tensor *a, tn_tensor *b)
{
    tn_view view;
    int64_t dims[2 * TN__INLINE_DIMS];

    if (a == b)
        return TN_OK;
    if (!may_swap(a, b) || !may_swap(b, a))
        return TN_ERR_RUNTIME;
#define EXCHANGE(type, member)                                                                     \
    do {                                                                                           \
        type t_ = a->member;                                                                       \
        a->member = b->member;                                                                     \
        b->member = t_;                                                                            \
    } while (0)
    view = a->view;
    a->view = b->view;
    b->view = view;
    memcpy(dims, a->dims, sizeof dims);
    memcpy(a->dims, b->dims, sizeof dims);
    memcpy(b->dims, dims, sizeof dims);
    EXCHANGE(uint8_t, dtype);
    EXCHANGE(bool, contiguous);
    EXCHANGE(bool, has_inline_dims);
    EXCHANGE(bool, blind);
    EXCHANGE(tn__storage *, storage);
    EXCHANGE(const tn_device *, device);
    EXCHANGE(int64_t, numel);
#undef EXCHANGE
    settle_dims(a);
    settle_dims(b);
    return TN_OK;
}

/* ---- texts ---- */

void tn__tensor_text_ints(tn__text *text, tn_ints ints)
{
    tn__text_put(text, "[", 1);
    for (int64_t i = 0; i < ints.count; i++)
        tn__text_add(text, i > 0 ? ", %lld" : "%lld", (long long)ints.at[i]);
    tn__text_put(text, "]", 1);
}

void tn__tensor_text(tn__text *text, const tn_tensor *tensor)
{
    if (!tn__tensor_ok(tensor)) {
        tn__text_add(text, tensor == NULL ? "NULL" : "TN_NONE");
        return;
    }
    tn__text_add(text, "%s", tn_dtype_name((tn_dtype)tensor->dtype));
    tn__tensor_text_ints(text, tn__shape(tensor));
    tn__text_add(text, " on %s", tensor->device->name);
}

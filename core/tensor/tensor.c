/* SPDX-License-Identifier: MIT
 *
 * Tensor objects: how they are created, counted and freed. */
#include "core/tensor/device.h"
#include "core/base/dtype.h"
#include "core/tensor/thread.h"
#include "core/tensor/trace.h"

/* ---- objects ---- */

static TN__INLINE tn_tensor *object_new(int32_t ndim)
{
    tn__thread *thread = tn__thread_here;
    tn_tensor *tensor;

    if (tn__likely(thread != NULL && thread->free_tensors != NULL)) {
        tensor = thread->free_tensors;
        TN__UNPOISON(tensor, sizeof *tensor);
        thread->free_tensors = tensor->view.data;
        thread->n_free_tensors--;
    } else {
        tensor = tn_malloc(sizeof *tensor);
        if (tensor == NULL)
            return NULL;
    }
    tensor->has_inline_dims = ndim <= TN__INLINE_DIMS;
    tensor->blind = false;
    tensor->parameter = false;
    if (tn__likely(tensor->has_inline_dims)) {
        tensor->view.shape = tensor->dims;
        tensor->view.strides = tensor->dims + TN__INLINE_DIMS;
    } else {
        tensor->view.shape = tn_malloc(2 * (size_t)ndim * sizeof(int64_t));
        if (tensor->view.shape == NULL) {
            tn_free(tensor);
            return NULL;
        }
        tensor->view.strides = tensor->view.shape + ndim;
    }
    tensor->view.ndim = ndim;
    atomic_store_explicit(&tensor->refs, 1, memory_order_relaxed);
    tensor->requires_grad = false;
    tensor->autograd = NULL;
    return tensor;
}

static TN__INLINE void object_free(tn_tensor *tensor)
{
    tn__thread *thread = tn__thread_here;

    if (tn__unlikely(!tensor->has_inline_dims))
        tn_free(tensor->view.shape);
    if (tn__unlikely(thread == NULL || thread->n_free_tensors >= TN__FREE_OBJECTS)) {
        tn_free(tensor);
        return;
    }
    tensor->view.data = thread->free_tensors;
    thread->free_tensors = tensor;
    thread->n_free_tensors++;
    /* The link to the next object stays readable, because LeakSanitizer follows it. */
    TN__POISON((char *)tensor + sizeof tensor->view.data,
               sizeof *tensor - sizeof tensor->view.data);
}

void tn__tensor_free_objects(tn__thread *thread)
{
    while (thread->free_tensors != NULL) {
        tn_tensor *tensor = thread->free_tensors;
        TN__UNPOISON(tensor, sizeof *tensor);
        thread->free_tensors = tensor->view.data;
        tn_free(tensor);
    }
    thread->n_free_tensors = 0;
}

tn_tensor *tn_tensor_keep(tn_tensor *tensor)
{
    if (tn__likely(tn__tensor_ok(tensor)))
        atomic_fetch_add_explicit(&tensor->refs, 1, memory_order_relaxed);
    else if (tensor == NULL)
        tn__tensor_bad(tensor, "tn_tensor_keep");
    return tensor;
}

void tn_tensor_drop(tn_tensor *tensor)
{
    if (!tn__tensor_ok(tensor))
        return;
    /* With one reference, no other thread can see or change the count: no atomic subtraction is
     * needed. */
    if (atomic_load_explicit(&tensor->refs, memory_order_acquire) != 1 &&
        atomic_fetch_sub_explicit(&tensor->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (tn__unlikely(tensor->autograd != NULL))
        tn__tensor_up.autograd_free(tensor->autograd);
    tn__storage_drop(tensor->storage);
    /* TENON_CHECK=1 recognizes a freed tensor by its count of 0. */
    atomic_store_explicit(&tensor->refs, 0, memory_order_relaxed);
    object_free(tensor);
}

tn_status tn__tensor_bad_at(const tn_tensor *tensor, const char *what, int64_t i)
{
    char element[128];

    if (i >= 0) {
        tn_snprint(element, sizeof element, "%s[%lld]", what, (long long)i);
        what = element;
    }
    if (tensor != NULL)
        return tn_fail(TN_ERR_TYPE, "%s: no tensor, got TN_NONE; expected a tensor", what);
    if (tn_failed())
        return tn_error_code();
    return tn_fail(TN_ERR_RUNTIME,
                   "%s: tensor: it is NULL, and no earlier failure of this thread says why", what);
}

/* ---- shapes ---- */

static tn_status check_dims(tn_ints shape)
{
    tn__text text = { 0 };
    int64_t count = 1;
    tn_status status;
    bool empty = false;

    if (shape.count < 0 || shape.count > TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE,
                       "shape: wrong number of dimensions, got %lld; expected 0 to %d",
                       (long long)shape.count, TN_MAX_DIMS);
    if (shape.count > 0 && shape.at == NULL)
        return tn_fail(TN_ERR_VALUE, "shape: it is NULL; expected %lld sizes",
                       (long long)shape.count);
    for (int64_t i = 0; i < shape.count; i++)
        empty |= shape.at[i] == 0;
    for (int64_t i = 0; i < shape.count; i++) {
        bool negative = shape.at[i] < 0;
        if (!negative && (empty || !tn__mul_overflow(count, shape.at[i], &count)))
            continue;
        tn__tensor_text_ints(&text, shape);
        status = tn_fail(TN_ERR_VALUE,
                         negative
                             ? "shape: negative size, got %s (dimension %lld); expected 0 or more"
                             : "shape: too many elements, got %s (at dimension %lld); expected "
                               "less than 2^63",
                         text.failed ? "?" : text.at, (long long)i);
        tn__text_free(&text);
        return status;
    }
    return TN_OK;
}

enum { LARGEST_ITEM = 16 }; /* bytes of an element of complex128 */

/* The stride in place of `step`, which is too large to be counted in bytes. A tensor without
 * elements may have any other sizes: its strides are never used, and no code that multiplies them
 * has to expect an overflow. Only such a tensor has steps that overflow. */
static int64_t bounded(int32_t ndim, const int64_t *shape, int64_t step, bool overflow)
{
    for (int32_t i = 0; i < ndim && !overflow; i++)
        overflow = shape[i] == 0;
    return overflow ? 0 : step;
}

/* Writes row-major strides and returns the number of elements. The sizes have been checked. */
static TN__INLINE int64_t row_major(int32_t ndim, const int64_t *shape, int64_t *strides)
{
    int64_t step = 1;
    bool empty = false;

    for (int32_t i = ndim - 1; i >= 0; i--) {
        strides[i] = step;
        empty |= shape[i] == 0;
        if (shape[i] <= 1)
            continue;
        bool overflow = tn__mul_overflow(step, shape[i], &step);
        if (tn__unlikely(overflow || step > INT64_MAX / LARGEST_ITEM))
            step = bounded(ndim, shape, step, overflow);
    }
    return empty ? 0 : step;
}

static bool is_row_major(int32_t ndim, const int64_t *shape, const int64_t *strides, int64_t numel)
{
    int64_t step = 1;

    if (numel <= 1)
        return true;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        if (shape[i] == 1)
            continue;
        if (strides[i] != step)
            return false;
        step *= shape[i];
    }
    return true;
}

tn_status tn__tensor_meta_bytes(const tn_meta *meta, uint64_t *bytes)
{
    int64_t last = meta->offset, reach, count = 1;
    bool empty = false;
    tn_status status = check_dims((tn_ints){ meta->shape, meta->ndim });

    *bytes = 0;
    if (status != TN_OK)
        return status;
    if (tn_dtype_size(meta->dtype) == 0)
        return tn_fail(TN_ERR_TYPE, "dtype: unknown, got %d; expected one of tn_dtype",
                       (int)meta->dtype);
    if (meta->offset < 0)
        return tn_fail(TN_ERR_VALUE, "offset: negative, got %lld; expected 0 or more",
                       (long long)meta->offset);
    for (int32_t i = 0; i < meta->ndim; i++) {
        if (meta->flags & TN_META_STRIDED && meta->strides[i] < 0)
            return tn_fail(TN_ERR_VALUE,
                           "stride: negative, got %lld for dimension %d; expected 0 or more",
                           (long long)meta->strides[i], (int)i);
        /* sums and products of sizes that overflow are INT64_MAX (tn__op_times) */
        if (meta->shape[i] == INT64_MAX)
            return tn_fail(TN_ERR_VALUE,
                           "shape: too large, got %lld or more for dimension %d; expected less",
                           (long long)INT64_MAX, (int)i);
        empty |= meta->shape[i] == 0;
    }
    for (int32_t i = 0; i < meta->ndim; i++)
        count = empty ? 0 : count * meta->shape[i];
    /* The strides of a tensor without elements are bounded, too: no code that multiplies sizes and
     * strides has to expect an overflow. */
    for (int32_t i = 0; i < meta->ndim && (meta->flags & TN_META_STRIDED) != 0; i++)
        if (tn__mul_overflow(meta->shape[i] > 0 ? meta->shape[i] - 1 : 1, meta->strides[i],
                             &reach) ||
            tn__add_overflow(last, reach, &last))
            goto overflow;
    if (empty)
        return TN_OK;
    if ((meta->flags & TN_META_STRIDED) == 0 && tn__add_overflow(last, count - 1, &last))
        goto overflow;
    if (tn__add_overflow(last, 1, &last) ||
        tn__mul_overflow(last, (int64_t)tn_dtype_size(meta->dtype), &last))
        goto overflow;
    *bytes = (uint64_t)last;
    return TN_OK;
overflow:
    return tn_fail(TN_ERR_VALUE,
                   "tensor: sizes or strides too large, got %lld elements of %s; expected less "
                   "than 2^63 bytes",
                   (long long)count, tn_dtype_name(meta->dtype));
}

/* ---- making ---- */

static TN__INLINE void set_view(tn_tensor *tensor, tn__storage *storage, tn_dtype dtype,
                                int64_t offset)
{
    const tn_device *device = storage->device;

    tensor->view.data = storage->memory;
    tensor->view.device.type = device->type->dlpack;
    tensor->view.device.id = device->index;
    tn__dtype_to_view(dtype, &tensor->view);
    tensor->view.byte_offset = storage->offset + ((uint64_t)offset << tn__dtypes[dtype].shift);
    tensor->dtype = (uint8_t)dtype;
    tensor->storage = storage;
    tensor->device = device;
}

static TN__INLINE int64_t set_dims(tn_tensor *tensor, const tn_meta *meta)
{
    int64_t numel = 1;

    for (int32_t i = 0; i < meta->ndim; i++)
        tensor->view.shape[i] = meta->shape[i];
    if ((meta->flags & TN_META_STRIDED) == 0) {
        tensor->contiguous = true;
        return row_major(meta->ndim, meta->shape, tensor->view.strides);
    }
    for (int32_t i = 0; i < meta->ndim; i++) {
        tensor->view.strides[i] = meta->strides[i];
        if (numel != 0 && tn__mul_overflow(numel, meta->shape[i], &numel))
            numel = 0; /* overflows only if a later size is 0: sizes have been checked */
    }
    for (int32_t i = 0; i < meta->ndim && tn__unlikely(numel == 0); i++)
        if (tensor->view.strides[i] > INT64_MAX / LARGEST_ITEM)
            tensor->view.strides[i] = 0;
    tensor->contiguous = is_row_major(meta->ndim, meta->shape, meta->strides, numel);
    return numel;
}

/* A fast form of tn__tensor_meta_bytes() for the usual case: row-major, offset 0, at least one
 * element, no overflow. Returns 0 in all other cases. */
static TN__INLINE uint64_t plain_bytes(const tn_meta *meta)
{
    int64_t count = 1;
    bool odd = ((meta->flags & TN_META_STRIDED) | (uint64_t)meta->offset) != 0 ||
               (uint32_t)meta->ndim > TN__INLINE_DIMS || (uint32_t)meta->dtype >= TN_DTYPE_COUNT;

    if (odd)
        return 0;
    for (int32_t i = 0; i < meta->ndim; i++) {
        odd |= (uint64_t)meta->shape[i] - 1 > INT32_MAX;
        odd |= tn__mul_overflow(count, meta->shape[i], &count);
    }
    return odd || count > INT64_MAX >> 8 ? 0 : (uint64_t)count << tn__dtypes[meta->dtype].shift;
}

/* The storage of a tensor of a thread that is in inference mode, traces, or both. */
static tn__storage *marked_storage(const tn_device *device, uint64_t bytes)
{
    tn__storage *storage = tn__making.is.traced ? tn__trace_storage(device, bytes)
                                                : tn__allocator_storage(device, bytes);

    if (storage != NULL && tn__making.is.inference)
        storage->flags |= TN__STORAGE_INFERENCE;
    return storage;
}

tn_tensor *tn__tensor_make(const tn_meta *meta, const tn_device *device)
{
    uint64_t bytes = plain_bytes(meta);
    tn_tensor *tensor;
    tn__storage *storage;

    if (tn__unlikely(bytes == 0) && tn__tensor_meta_bytes(meta, &bytes) != TN_OK)
        return NULL;
    storage = tn__likely(tn__making.any == 0) ? tn__allocator_storage(device, bytes)
                                              : marked_storage(device, bytes);
    if (tn__unlikely(storage == NULL))
        return NULL;
    tensor = object_new(meta->ndim);
    if (tn__unlikely(tensor == NULL)) {
        tn__storage_drop(storage);
        return NULL;
    }
    set_view(tensor, storage, meta->dtype, meta->offset);
    tensor->numel = set_dims(tensor, meta);
    return tensor;
}

tn_tensor *tn__tensor_over(tn__storage *storage, const tn_meta *meta)
{
    tn_tensor *tensor;
    uint64_t bytes;

    if (tn__tensor_meta_bytes(meta, &bytes) != TN_OK)
        return NULL;
    if (bytes > storage->size) {
        tn_fail(TN_ERR_VALUE, "view: beyond its storage, got %llu bytes; expected at most %llu",
                (unsigned long long)bytes, (unsigned long long)storage->size);
        return NULL;
    }
    tensor = object_new(meta->ndim);
    if (tensor == NULL)
        return NULL;
    set_view(tensor, tn__storage_keep(storage), meta->dtype, meta->offset);
    tensor->numel = set_dims(tensor, meta);
    return tensor;
}

tn_tensor *tn__tensor_alias(const tn_tensor *tensor)
{
    tn_tensor *alias = object_new(tensor->view.ndim);

    if (tn__unlikely(alias == NULL))
        return NULL;
    for (int32_t d = 0; d < tensor->view.ndim; d++) {
        alias->view.shape[d] = tensor->view.shape[d];
        alias->view.strides[d] = tensor->view.strides[d];
    }
    alias->view.data = tensor->view.data;
    alias->view.device = tensor->view.device;
    memcpy(&alias->view.dtype, &tensor->view.dtype, sizeof alias->view.dtype);
    alias->view.byte_offset = tensor->view.byte_offset;
    alias->dtype = tensor->dtype;
    alias->contiguous = tensor->contiguous;
    alias->storage = tn__storage_keep(tensor->storage);
    alias->device = tensor->device;
    alias->numel = tensor->numel;
    return alias;
}

/* Fills in the meta for a public function that creates a tensor. Resolves the default dtype and the
 * default device. */
static tn_status make_meta(tn_meta *meta, tn_ints shape, tn_dtype dtype, const tn_device **device)
{
    tn_status status;

    meta->dtype = dtype == TN_DTYPE_AUTO ? tn_default_dtype() : dtype;
    meta->flags = 0;
    meta->offset = 0;
    status = check_dims(shape);
    if (status != TN_OK)
        return status;
    meta->ndim = (int32_t)shape.count;
    for (int64_t i = 0; i < shape.count; i++)
        meta->shape[i] = shape.at[i];
    if (device != NULL && *device == NULL && (*device = tn_default_device()) == NULL)
        return tn_error_last_code();
    return TN_OK;
}

tn_status tn__tensor_meta_of(tn_meta *meta, tn_ints shape, tn_dtype dtype)
{
    return make_meta(meta, shape, dtype, NULL);
}

tn_tensor *tn_tensor_empty(tn_ints shape, tn_dtype dtype, const tn_device *device)
{
    tn_meta meta;
    tn_tensor *tensor;

    if (make_meta(&meta, shape, dtype, &device) != TN_OK ||
        (tensor = tn__tensor_make(&meta, device)) == NULL)
        return NULL;
    return tn__scope_push(tensor);
}

/* Returns whether two elements may share memory although no stride is 0. Exact for small tensors.
 * For large tensors the answer is no only if each stride is larger than the extent of the
 * dimensions with smaller strides, as in all usual layouts. */
static bool shares_elements(const tn_meta *meta)
{
    int order[TN_MAX_DIMS], count = 0;
    int64_t reach = 0, total = 1, index[TN_MAX_DIMS] = { 0 }, at = 0;
    uint8_t *seen;
    bool found = false;

    for (int i = 0; i < meta->ndim; i++) {
        int k = count;
        if (meta->shape[i] <= 1 || meta->strides[i] == 0)
            continue;
        for (; k > 0 && meta->strides[order[k - 1]] > meta->strides[i]; k--)
            order[k] = order[k - 1];
        order[k] = i;
        count++;
        total *= meta->shape[i];
    }
    for (int i = 0; i < count; i++) {
        found |= meta->strides[order[i]] <= reach;
        reach += (meta->shape[order[i]] - 1) * meta->strides[order[i]];
    }
    if (!found || reach > (1 << 20))
        return found;
    seen = tn_calloc((size_t)reach + 1, 1);
    if (seen == NULL)
        return true;
    found = false;
    for (int64_t i = 0; i < total && !found; i++) {
        found = seen[at] != 0;
        seen[at] = 1;
        for (int k = 0; k < count; k++) {
            at += meta->strides[order[k]];
            if (++index[k] < meta->shape[order[k]])
                break;
            at -= index[k] * meta->strides[order[k]];
            index[k] = 0;
        }
    }
    tn_free(seen);
    return found;
}

static tn_status add_strides(tn_meta *meta, tn_ints strides)
{
    if (strides.count == meta->ndim && strides.count > 0 && strides.at == NULL)
        return tn_fail(TN_ERR_VALUE, "strides: it is NULL; expected %d strides", (int)meta->ndim);
    if (strides.count != meta->ndim)
        return tn_fail(TN_ERR_VALUE,
                       "strides: wrong number, got %lld; expected %d, one for each dimension",
                       (long long)strides.count, (int)meta->ndim);
    for (int32_t i = 0; i < meta->ndim; i++)
        meta->strides[i] = strides.at[i];
    meta->flags = TN_META_STRIDED;
    return TN_OK;
}

tn_tensor *tn_tensor_empty_strided(tn_ints shape, tn_ints strides, tn_dtype dtype,
                                   const tn_device *device)
{
    tn_meta meta;
    tn_tensor *tensor;
    tn__text a = { 0 }, b = { 0 };
    uint64_t bytes;

    if (make_meta(&meta, shape, dtype, &device) != TN_OK || add_strides(&meta, strides) != TN_OK ||
        tn__tensor_meta_bytes(&meta, &bytes) != TN_OK)
        return NULL;
    if (bytes > 0 && shares_elements(&meta)) {
        tn__tensor_text_ints(&a, shape);
        tn__tensor_text_ints(&b, strides);
        tn_fail(
            TN_ERR_VALUE,
            "strides: elements overlap, got %s for shape %s; expected strides that keep them apart",
            b.failed ? "?" : b.at, a.failed ? "?" : a.at);
        tn__text_free(&a);
        tn__text_free(&b);
        return NULL;
    }
    tensor = tn__tensor_make(&meta, device);
    return tensor != NULL ? tn__scope_push(tensor) : NULL;
}

tn_tensor *tn_tensor_from(const void *data, tn_dtype dtype, tn_ints shape)
{
    tn_meta meta;
    const tn_device *device = NULL;
    tn_tensor *tensor;

    if (make_meta(&meta, shape, dtype, &device) != TN_OK ||
        (tensor = tn__tensor_make(&meta, device)) == NULL)
        return NULL;
    if (tensor->numel > 0 &&
        tn_tensor_copy_in(tensor, data, (size_t)tensor->numel * tn_dtype_size(meta.dtype)) !=
            TN_OK) {
        tn_tensor_drop(tensor);
        return NULL;
    }
    atomic_store_explicit(&tensor->storage->version, 0, memory_order_relaxed);
    return tn__scope_push(tensor);
}

/* ---- foreign memory ---- */

static void release_wrapped(tn__storage *storage)
{
    union {
        void *object;
        void (*release)(void *user, void *data);
    } call = { storage->user[0] };

    if (call.object != NULL)
        call.release(storage->user[1], storage->memory);
}

tn_tensor *tn_tensor_wrap(void *data, tn_dtype dtype, tn_ints shape, const int64_t *strides,
                          const tn_device *device, void (*release)(void *user, void *data),
                          void *user)
{
    union {
        void (*release)(void *user, void *data);
        void *object;
    } call = { release };
    tn_meta meta;
    tn__storage *storage;
    tn_tensor *tensor;
    uint64_t bytes;
    size_t unit;

    if (device == NULL && (device = tn_device_find(TN__HOST_DEVICE_TYPE)) == NULL)
        return NULL;
    if (make_meta(&meta, shape, dtype, NULL) != TN_OK ||
        (strides != NULL && add_strides(&meta, (tn_ints){ strides, shape.count }) != TN_OK) ||
        tn__tensor_meta_bytes(&meta, &bytes) != TN_OK)
        return NULL;
    unit = tn_dtype_size(meta.dtype);
    if (TN_BIT(meta.dtype) & TN_MASK_COMPLEX)
        unit /= 2;
    if (!tn_device_is_host(device)) {
        tn_fail(TN_ERR_VALUE,
                "tn_tensor_wrap: device %s: cannot use memory of the program; use a device of the "
                "host, or tn_tensor_from",
                device->name);
        return NULL;
    }
    if (bytes > 0 && (data == NULL || (uintptr_t)data % unit != 0)) {
        tn_fail(TN_ERR_VALUE,
                data == NULL ? "tn_tensor_wrap: memory: it is NULL; expected a pointer"
                             : "tn_tensor_wrap: memory: not aligned for %s, got %p; expected a "
                               "multiple of %zu",
                tn_dtype_name(meta.dtype), data, unit);
        return NULL;
    }
    storage = tn__storage_foreign(device, data, 0, (size_t)bytes, NULL, call.object, user);
    if (storage == NULL)
        return NULL;
    tensor = tn__tensor_over(storage, &meta);
    if (tensor != NULL && (tensor = tn__scope_push(tensor)) != NULL)
        /* From here on the storage owns the memory; after a failure, the caller does. */
        storage->release = release_wrapped;
    tn__storage_drop(storage);
    return tensor;
}

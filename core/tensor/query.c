/* SPDX-License-Identifier: MIT
 *
 * What is asked of a tensor. */
#include "core/tensor/capture.h"
#include "core/tensor/convert.h"
#include "core/tensor/device.h"
#include "core/tensor/pinned.h"
#include "core/base/dtype.h"

#include <math.h>

tn_dtype tn_tensor_dtype(const tn_tensor *tensor)
{
    return tn__tensor_asked(tensor, "tn_tensor_dtype") ? (tn_dtype)tensor->dtype : TN_DTYPE_AUTO;
}

const tn_device *tn_tensor_device(const tn_tensor *tensor)
{
    return tn__tensor_asked(tensor, "tn_tensor_device") ? tensor->device : NULL;
}

int32_t tn_tensor_ndim(const tn_tensor *tensor)
{
    return tn__tensor_asked(tensor, "tn_tensor_ndim") ? tensor->view.ndim : 0;
}

int64_t tn_tensor_size(const tn_tensor *tensor, int64_t dim)
{
    if (!tn__tensor_ok(tensor)) {
        tn__tensor_bad(tensor, "tn_tensor_size");
        return -1;
    }
    if (dim < -(int64_t)tensor->view.ndim || dim >= tensor->view.ndim) {
        tn_fail(TN_ERR_INDEX, "dimension: out of range, got %lld; the tensor has %d dimension%s",
                (long long)dim, (int)tensor->view.ndim, tensor->view.ndim == 1 ? "" : "s");
        return -1;
    }
    return tensor->view.shape[dim < 0 ? dim + tensor->view.ndim : dim];
}

tn_ints tn_tensor_shape(const tn_tensor *tensor)
{
    return tn__tensor_asked(tensor, "tn_tensor_shape") ? tn__shape(tensor) : tn_no_ints();
}

tn_ints tn_tensor_strides(const tn_tensor *tensor)
{
    return tn__tensor_asked(tensor, "tn_tensor_strides")
               ? (tn_ints){ tensor->view.strides, tensor->view.ndim }
               : tn_no_ints();
}

int64_t tn_tensor_numel(const tn_tensor *tensor)
{
    return tn__tensor_asked(tensor, "tn_tensor_numel") ? tensor->numel : 0;
}

int64_t tn_tensor_offset(const tn_tensor *tensor)
{
    if (!tn__tensor_asked(tensor, "tn_tensor_offset"))
        return 0;
    return (int64_t)((tensor->view.byte_offset - tensor->storage->offset) >>
                     tn__dtypes[tensor->dtype].shift);
}

bool tn_tensor_is_contiguous(const tn_tensor *tensor)
{
    return tn__tensor_asked(tensor, "tn_tensor_is_contiguous") && tensor->contiguous;
}

bool tn_tensor_shares_storage(const tn_tensor *a, const tn_tensor *b)
{
    return tn__tensor_asked(a, "tn_tensor_shares_storage") &&
           tn__tensor_asked(b, "tn_tensor_shares_storage") && a->storage == b->storage;
}

size_t tn_tensor_storage_size(const tn_tensor *tensor)
{
    return tn__tensor_asked(tensor, "tn_tensor_storage_size") ? tensor->storage->size : 0;
}

uint64_t tn_tensor_version(const tn_tensor *tensor)
{
    if (!tn__tensor_asked(tensor, "tn_tensor_version"))
        return 0;
    if (tensor->storage->flags & TN__STORAGE_INFERENCE) {
        /* PyTorch's words */
        tn_fail(TN_ERR_RUNTIME, "Inference tensors do not track version counter");
        return 0;
    }
    return atomic_load_explicit(&tensor->storage->version, memory_order_relaxed);
}

tn_status tn_tensor_touch(tn_tensor *tensor)
{
    if (!tn__tensor_ok(tensor))
        return tn__tensor_bad(tensor, "tn_tensor_touch");
    tn__tensor_written(tensor);
    return TN_OK;
}

const tn_view *tn_tensor_view(const tn_tensor *tensor)
{
    if (tn__tensor_ok(tensor))
        return &tensor->view;
    tn__tensor_bad(tensor, "tn_tensor_view");
    return NULL;
}

void *tn_tensor_data(tn_tensor *tensor)
{
    const tn_device *device;

    if (!tn__tensor_ok(tensor)) {
        tn__tensor_bad(tensor, "tn_tensor_data");
        return NULL;
    }
    device = tensor->device;
    if (!tn_device_is_host(device)) {
        tn_fail(TN_ERR_RUNTIME,
                "device %s: its memory is not the host's; copy it with tn_tensor_copy_out, or to a "
                "device of the host",
                device->name);
        return NULL;
    }
    if (tn__device_usable(device) != TN_OK ||
        tn__capture_refuse_on(device, "tn_tensor_data", "it waits for the device") != TN_OK)
        return NULL;
    if (device->flags & TN_BACKEND_ASYNC && tn__streams_sync(device) != TN_OK)
        return NULL;
    if (tn__pinned_wait(tensor->storage) != TN_OK)
        return NULL;
    return (char *)tensor->view.data + tensor->view.byte_offset;
}

double tn_tensor_item(tn_tensor *tensor)
{
    unsigned char element[16];
    tn__number number;
    tn__text text = { 0 };

    if (!tn__tensor_ok(tensor)) {
        tn__tensor_bad(tensor, "tn_item");
        return (double)NAN;
    }
    if (tensor->numel != 1) {
        tn__tensor_text(&text, tensor);
        tn_fail(TN_ERR_VALUE, "tn_item: %s: wrong number of elements, got %lld; expected 1",
                text.failed ? "the tensor" : text.at, (long long)tensor->numel);
        tn__text_free(&text);
        return (double)NAN;
    }
    if (TN_BIT(tensor->dtype) & TN_MASK_COMPLEX) {
        tn_fail(TN_ERR_TYPE,
                "tn_item: elements: not numbers, got %s; copy the element with tn_tensor_copy_out",
                tn_dtype_name((tn_dtype)tensor->dtype));
        return (double)NAN;
    }
    if (tn__capture_refuse_on(tensor->device, "tn_item", "it reads from the device") != TN_OK ||
        tn_tensor_copy_out(tensor, element, tn_dtype_size((tn_dtype)tensor->dtype)) != TN_OK)
        return (double)NAN;
    number = tn__convert_read(element, (tn_dtype)tensor->dtype);
    return tn__convert_number(&number);
}

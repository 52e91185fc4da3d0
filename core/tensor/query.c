/* SPDX-License-Identifier: MIT
 *
 * What a program can ask about a tensor: dtype, shape, memory, values. */
#include "core/tensor/capture.h"
#include "core/tensor/convert.h"
#include "core/tensor/device.h"
#include "core/tensor/pinned.h"
#include "core/tensor/trace.h"
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
        if (tensor->view.ndim == 0)
            tn_fail(TN_ERR_INDEX,
                    "tn_tensor_size: dim: out of range, got %lld; the tensor has no "
                    "dimensions",
                    (long long)dim);
        else
            tn_fail(TN_ERR_INDEX, "tn_tensor_size: dim: out of range, got %lld; expected %d to %d",
                    (long long)dim, -(int)tensor->view.ndim, (int)tensor->view.ndim - 1);
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
        /* PyTorch's wording */
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
    tn__tensor_pointed(tensor, false);
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
    char *memory;

    if (!tn__tensor_ok(tensor)) {
        tn__tensor_bad(tensor, "tn_tensor_data");
        return NULL;
    }
    device = tensor->device;
    memory = tn__memory_host(tensor->storage);
    if (memory == NULL && tn_device_is_host(device)) {
        memory = tensor->view.data;
    } else if (memory == NULL) {
        tn_fail(TN_ERR_RUNTIME,
                "device %s: its memory is not the host's; copy it with tn_tensor_copy_out, or to a "
                "device of the host",
                device->name);
        return NULL;
    }
    if (tn__device_usable(device) != TN_OK || tn__trace_need(tensor, "tn_tensor_data") != TN_OK ||
        tn__capture_refuse_on(device, "tn_tensor_data", "it waits for the device") != TN_OK)
        return NULL;
    if (device->flags & TN_BACKEND_ASYNC && tn__streams_sync(device) != TN_OK)
        return NULL;
    if (tn__pinned_wait(tensor->storage) != TN_OK)
        return NULL;
    tn__tensor_pointed(tensor, true);
    return memory + tensor->view.byte_offset;
}

static tn_status element_of(tn_tensor *tensor, const char *function, tn_scalar *out)
{
    unsigned char element[16];
    tn__text text = { 0 };
    tn_status status;

    if (!tn__tensor_ok(tensor)) {
        tn__tensor_bad(tensor, function);
        return tn_error_last_code();
    }
    if (tensor->numel != 1) {
        tn__tensor_text(&text, tensor);
        status = tn_fail(TN_ERR_VALUE, "%s: %s: wrong number of elements, got %lld; expected 1",
                         function, text.failed ? "the tensor" : text.at, (long long)tensor->numel);
        tn__text_free(&text);
        return status;
    }
    status = tn__capture_refuse_on(tensor->device, function, "it reads from the device");
    if (status == TN_OK)
        status = tn__trace_need(tensor, function);
    if (status != TN_OK)
        return status;
    status = tn_tensor_copy_out(tensor, element, tn_dtype_size((tn_dtype)tensor->dtype));
    if (status == TN_OK)
        *out = tn__convert_scalar(element, (tn_dtype)tensor->dtype);
    return status;
}

tn_status tn_tensor_scalar(tn_tensor *tensor, tn_scalar *out)
{
    if (!tn__given(out != NULL, "tn_tensor_scalar: out"))
        return TN_ERR_VALUE;
    *out = tn_scalar_none();
    return element_of(tensor, "tn_tensor_scalar", out);
}

/* Returns whether a double can hold this integer exactly. */
static bool fits_double(const tn_scalar *number)
{
    double f = tn_scalar_as_float(*number);

    if (number->kind == TN_SCALAR_UINT)
        return f < 18446744073709551616.0 && (uint64_t)f == number->as.u;
    return f < 9223372036854775808.0 && (int64_t)f == number->as.i;
}

double tn_tensor_item(tn_tensor *tensor)
{
    tn_scalar number;

    if (element_of(tensor, "tn_item", &number) != TN_OK)
        return (double)NAN;
    if (number.kind == TN_SCALAR_FLOAT)
        return number.as.f;
    if (number.kind == TN_SCALAR_COMPLEX && number.as.c[1] != 0) {
        tn_fail(TN_ERR_TYPE,
                "tn_item: element: not real, got %g and %gj; read it with tn_tensor_scalar",
                number.as.c[0], number.as.c[1]);
        return (double)NAN;
    }
    if (number.kind != TN_SCALAR_COMPLEX && !fits_double(&number)) {
        tn_fail(TN_ERR_VALUE,
                number.kind == TN_SCALAR_UINT
                    ? "tn_item: element: a double cannot hold it, got %llu; read it with "
                      "tn_tensor_scalar"
                    : "tn_item: element: a double cannot hold it, got %lld; read it with "
                      "tn_tensor_scalar",
                (long long)number.as.i);
        return (double)NAN;
    }
    return tn_scalar_as_float(number);
}

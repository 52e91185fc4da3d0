/* SPDX-License-Identifier: MIT
 *
 * Tensors of the cases of tenon check: creates them in several layouts on a device, and reads them
 * back. */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

static const tn_device *reference(void)
{
    return tn_device_find("reference");
}

void *conform_bytes(tn_tensor *tensor, size_t *size)
{
    void *bytes;

    *size = (size_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
    bytes = malloc(*size + 1);
    if (bytes != NULL && tn_tensor_copy_out(tensor, bytes, *size) != TN_OK) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* Copies a tensor to a device, through the host. Returns NULL on failure. */
static tn_tensor *moved(tn_tensor *from, const tn_device *device)
{
    size_t size;
    void *bytes = conform_bytes(from, &size);
    tn_tensor *to = bytes == NULL
                        ? NULL
                        : tn_tensor_empty(tn_tensor_shape(from), tn_tensor_dtype(from), device);

    if (to != NULL && size > 0 && tn_tensor_copy_in(to, bytes, size) != TN_OK)
        to = NULL;
    free(bytes);
    return to;
}

double *conform_values(tn_tensor *tensor, int64_t *count)
{
    tn_dtype wide = is_complex(tn_tensor_dtype(tensor)) ? TN_C128 : TN_F64;
    tn_tensor *here = moved(tn_detach(tensor), reference());
    size_t size;
    double *values;

    if (here != NULL && tn_tensor_dtype(here) != wide)
        here = tn_copy_(tn_tensor_empty(tn_tensor_shape(here), wide, reference()), here);
    if (here == NULL)
        return NULL;
    values = conform_bytes(here, &size);
    *count = (int64_t)(size / sizeof *values);
    return values;
}

/* Computes strides and offset of a tensor in a layout. Returns the number of elements of its
 * memory, gaps included. */
static int64_t lay_out(const conform_tensor *from, conform_layout layout, int64_t *strides,
                       int64_t *offset)
{
    int64_t step = layout == CONFORM_APART ? 2 : 1, all = step;

    *offset = layout == CONFORM_APART ? 3 : 0;
    if (layout == CONFORM_AS_GIVEN) {
        int64_t end = 1;

        *offset = from->offset;
        memcpy(strides, from->strides, sizeof from->strides);
        for (int32_t d = 0; d < from->ndim; d++)
            end += from->shape[d] > 0 ? (from->shape[d] - 1) * from->strides[d] : 0;
        return from->offset + end;
    }
    for (int32_t i = 0; i < from->ndim; i++) {
        int32_t d = layout == CONFORM_BACKWARD ? i : from->ndim - 1 - i;

        strides[d] = all;
        all *= from->shape[d] > 0 ? from->shape[d] : 1;
    }
    return all + 2 * *offset;
}

/* Creates the memory of an int64 tensor on the reference, with a pattern around the elements.
 * Doubles cannot hold all int64 values. */
static tn_tensor *whole_memory(const conform_tensor *from, const int64_t *strides, int64_t offset,
                               int64_t held)
{
    int64_t *memory = malloc((size_t)held * sizeof *memory), index[TN_MAX_DIMS] = { 0 };
    tn_tensor *all = tn_tensor_empty(TN_SHAPE(held), TN_I64, reference());

    for (int64_t i = 0; memory != NULL && i < held; i++)
        memory[i] = 85;
    for (int64_t i = 0; memory != NULL && i < from->count; i++) {
        int64_t place = offset;

        for (int32_t d = 0; d < from->ndim; d++)
            place += index[d] * strides[d];
        memory[place] = from->whole[i];
        for (int32_t d = from->ndim - 1; d >= 0 && ++index[d] == from->shape[d]; d--)
            index[d] = 0;
    }
    if (all == NULL || memory == NULL ||
        tn_tensor_copy_in(all, memory, (size_t)held * sizeof *memory) != TN_OK)
        all = NULL;
    free(memory);
    return all;
}

tn_tensor *conform_tensor_make(const conform_tensor *from, tn_dtype dtype, const tn_device *device,
                               conform_layout layout, tn_tensor **whole)
{
    int64_t strides[TN_MAX_DIMS], offset, held = lay_out(from, layout, strides, &offset);
    int64_t parts = is_complex(from->dtype) ? 2 : 1, index[TN_MAX_DIMS] = { 0 };
    tn_dtype wide = parts == 2 ? TN_C128 : TN_F64;
    double *memory = malloc((size_t)(held * parts) * sizeof *memory);
    tn_tensor *wider = tn_tensor_empty(TN_SHAPE(held), wide, reference()), *all;

    if (memory == NULL || wider == NULL) {
        if (wider != NULL)
            tn_fail(TN_ERR_MEMORY, "a tensor of a case: out of memory");
        free(memory);
        return NULL;
    }
    for (int64_t i = 0; i < held * parts; i++)
        memory[i] = 85; /* a pattern that is valid for bool, bytes and floats */
    for (int64_t i = 0; i < from->count; i++) {
        int64_t place = offset;

        for (int32_t d = 0; d < from->ndim; d++)
            place += index[d] * strides[d];
        memcpy(memory + place * parts, from->values + i * parts, (size_t)parts * sizeof *memory);
        for (int32_t d = from->ndim - 1; d >= 0 && ++index[d] == from->shape[d]; d--)
            index[d] = 0;
    }
    all = tn_tensor_copy_in(wider, memory, (size_t)(held * parts) * sizeof *memory) == TN_OK ? wider
                                                                                             : NULL;
    free(memory);
    if (all != NULL && from->whole != NULL && dtype == TN_I64)
        all = whole_memory(from, strides, offset, held);
    else if (all != NULL && dtype != wide)
        all = tn_copy_(tn_tensor_empty(TN_SHAPE(held), dtype, reference()), all);
    if (all != NULL && device != reference())
        all = moved(all, device);
    if (whole != NULL)
        *whole = all;
    return all == NULL ? NULL
                       : tn_tensor_as_strided(all, (tn_ints){ from->shape, from->ndim },
                                              (tn_ints){ strides, from->ndim }, offset);
}

double conform_tolerance(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F64:
    case TN_C128: return 1e-10;
    case TN_F16: return 2e-3;
    case TN_BF16: return 1.6e-2;
    default: return (TN_MASK_INT | TN_BIT(TN_BOOL)) & TN_BIT(dtype) ? 0 : 1e-5;
    }
}

void conform_shape_text(const int64_t *sizes, int64_t count, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "[");

    for (int64_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", i > 0 ? ", " : "",
                                 (long long)sizes[i]);
    if (used < size)
        snprintf(out + used, size - used, "]");
}

/* SPDX-License-Identifier: MIT
 *
 * Ties: entries of a state whose tensors are the same view of the same storage. */
#include "lib/io/private.h"

#include <stdlib.h>

struct view {
    const tn_tensor *tensor;
    int64_t place;
};

static int by_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Compares by storage, offset, dtype and layout. */
static int compare(const void *one, const void *other)
{
    const struct view *a = one, *b = other;
    const tn_tensor *x = a->tensor, *y = b->tensor;
    int order = by_number((uintptr_t)x->storage, (uintptr_t)y->storage);
    if (order == 0)
        order = by_number(x->view.byte_offset, y->view.byte_offset);
    if (order == 0)
        order = by_number(x->dtype, y->dtype);
    if (order == 0)
        order = by_number((uint64_t)x->view.ndim, (uint64_t)y->view.ndim);
    for (int32_t i = 0; i < x->view.ndim && order == 0; i++) {
        order = by_number((uint64_t)x->view.shape[i], (uint64_t)y->view.shape[i]);
        if (order == 0 && x->view.shape[i] > 1)
            order = by_number((uint64_t)x->view.strides[i], (uint64_t)y->view.strides[i]);
    }
    return order;
}

static int compare_with_place(const void *one, const void *other)
{
    int order = compare(one, other);
    return order != 0 ? order
                      : by_number((uint64_t)((const struct view *)one)->place,
                                  (uint64_t)((const struct view *)other)->place);
}

tn_status tn__tied_weights_find(const tn_state *state, int64_t **first)
{
    int64_t count = tn_state_count(state), views = 0;
    struct view *at = tn_malloc(((size_t)count + 1) * sizeof *at);
    *first = tn_malloc(((size_t)count + 1) * sizeof **first);
    if (at == NULL || *first == NULL) {
        tn_free(at);
        return TN_ERR_MEMORY;
    }
    for (int64_t i = 0; i < count; i++) {
        tn_value value = tn_state_value(state, i);
        (*first)[i] = i;
        if (value.kind == TN_VALUE_TENSOR && value.as.tensor->numel > 0)
            at[views++] = (struct view){ value.as.tensor, i };
    }
    qsort(at, (size_t)views, sizeof *at, compare_with_place);
    for (int64_t i = 1; i < views; i++)
        if (compare(&at[i - 1], &at[i]) == 0)
            (*first)[at[i].place] = (*first)[at[i - 1].place];
    tn_free(at);
    return TN_OK;
}

/* Sets *same to whether the tensors have the same dtype, shape, device and bits. */
static tn_status same_bits(tn_tensor *a, tn_tensor *b, bool *same)
{
    size_t size = (size_t)tn_tensor_numel(a) * tn_dtype_size(tn_tensor_dtype(a));
    tn_ints x = tn__shape(a), y = tn__shape(b);
    *same = false;
    if (tn_tensor_dtype(a) != tn_tensor_dtype(b) || x.count != y.count ||
        (x.count > 0 && memcmp(x.at, y.at, (size_t)x.count * sizeof *x.at) != 0) ||
        tn_tensor_device(a) != tn_tensor_device(b))
        return TN_OK;
    if (!tn_device_has_memory(tn_tensor_device(a)) || size == 0) {
        *same = true;
        return TN_OK;
    }
    if (tn_device_is_host(tn_tensor_device(a)) && tn_tensor_is_contiguous(a) &&
        tn_tensor_is_contiguous(b)) {
        const void *left = tn_tensor_data(a), *right = tn_tensor_data(b);
        if (left == NULL || right == NULL)
            return tn_error_last_code();
        *same = memcmp(left, right, size) == 0;
        return TN_OK;
    }
    char *bytes = tn_malloc(2 * size);
    tn_status status = bytes != NULL ? tn_tensor_copy_out(a, bytes, size) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = tn_tensor_copy_out(b, bytes + size, size);
    *same = status == TN_OK && memcmp(bytes, bytes + size, size) == 0;
    tn_free(bytes);
    return status;
}

tn_status tn__tied_weights_join(tn_state *state, const char *name, const char *with)
{
    int64_t a = tn_state_find(state, name), b = tn_state_find(state, with);
    bool same = false;
    if (a < 0 || b < 0 || a == b)
        return TN_OK; /* another program removed one of them from the file */
    tn_value x = tn_state_value(state, a), y = tn_state_value(state, b);
    if (x.kind != TN_VALUE_TENSOR || y.kind != TN_VALUE_TENSOR)
        return TN_OK;
    tn_status status = same_bits(x.as.tensor, y.as.tensor, &same);
    return status == TN_OK && same ? tn_state_set(state, name, y.as.tensor) : status;
}

/* SPDX-License-Identifier: MIT
 *
 * The checked boundary: whether a kernel wrote to an input that it may only read. On devices that
 * use host memory, the elements of the inputs are hashed before and after the kernel; of large
 * inputs only a sample. */
#include "core/op/internal.h"
#include "core/boundary/boundary.h"

enum { SAMPLES = 16384 };

/* Computes the interval of addresses that contains the elements of a view. Returns false if the
 * view has no elements. */
static bool interval(const tn_view *view, uintptr_t *from, uintptr_t *to)
{
    size_t each = tn_dtype_size(tn_view_dtype(view));
    int64_t low = 0, high = 0;

    if (view->data == NULL || view->ndim < 0 || view->ndim > TN_MAX_DIMS)
        return false;
    for (int32_t d = 0; d < view->ndim; d++) {
        int64_t last = (view->shape[d] - 1) * view->strides[d];

        if (view->shape[d] <= 0)
            return false;
        *(last < 0 ? &low : &high) += last;
    }
    *from = (uintptr_t)view->data + view->byte_offset + (uintptr_t)(low * (int64_t)each);
    *to = (uintptr_t)view->data + view->byte_offset + (uintptr_t)((high + 1) * (int64_t)each);
    return true;
}

/* Returns whether an interval overlaps an output. An operator that works in place has an output
 * that is also an input, to which it may write. */
static bool is_output(const tn_call *call, uintptr_t from, uintptr_t to)
{
    for (int32_t i = 0; i < call->n_out; i++) {
        uintptr_t begin, end;

        if (call->out[i] != NULL && interval(call->out[i], &begin, &end) && begin < to &&
            from < end)
            return true;
    }
    return false;
}

uint64_t tn__boundary_fold(uint64_t sum, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;

    for (uint64_t word; count > 0; count -= count < 8 ? count : 8, at += 8) {
        word = 0;
        memcpy(&word, at, count < 8 ? count : 8);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    return sum;
}

static uint64_t view_sum(const tn_view *view, uint64_t sum)
{
    const unsigned char *base = (const unsigned char *)view->data + view->byte_offset;
    size_t each = tn_dtype_size(tn_view_dtype(view));
    int64_t numel = 1, packed = 1, step;

    for (int32_t d = view->ndim - 1; d >= 0; d--) {
        packed = packed != 0 && (view->shape[d] == 1 || view->strides[d] == numel);
        numel = tn__mul_overflow(numel, view->shape[d], &step) ? INT64_MAX : step;
    }
    if (packed && numel <= SAMPLES)
        return tn__boundary_fold(sum, base, (size_t)numel * each);
    step = numel / SAMPLES + 1;
    for (int64_t i = 0; i < numel; i += step) {
        int64_t rest = i, place = 0;

        for (int32_t d = view->ndim - 1; d >= 0; d--) {
            place += rest % view->shape[d] * view->strides[d];
            rest /= view->shape[d];
        }
        sum = tn__boundary_fold(sum, base + place * (int64_t)each, each);
    }
    return sum;
}

uint64_t tn__boundary_inputs_sum(const tn_call *call, const tn_op_def *def)
{
    uint64_t sum = 1;

    for (int64_t i = 0; i < call->n_in; i++) {
        int64_t operand = i < def->n_inputs ? i : def->n_inputs - 1;
        uintptr_t from, to;

        if (call->in[i] != NULL && operand >= 0 &&
            !(def->inputs[operand].flags & (TN_OPERAND_WRITTEN | TN_OPERAND_UPDATED)) &&
            interval(call->in[i], &from, &to) && !is_output(call, from, to))
            sum = view_sum(call->in[i], sum);
    }
    return sum;
}

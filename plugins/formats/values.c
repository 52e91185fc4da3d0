/* SPDX-License-Identifier: MIT
 *
 * Reads the values of a tensor from a file and writes them to a file, for all formats. */
#include "formats.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the data of files are little-endian and are copied as they are"
#endif

/* Replaces every byte other than 0 by 1: C code that reads any other value as a bool has undefined
 * behaviour. */
static void make_bools(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = bytes[i] != 0;
}

static bool all_bools(const unsigned char *bytes, int64_t count, int64_t step)
{
    unsigned char found = 0;
    for (int64_t i = 0; i < count; i++)
        found |= bytes[i * step];
    return found <= 1;
}

/* Avoids checking shared bytes many times: in a dimension with stride 0 only one element is
 * checked. For a view with more elements than bytes, all bytes from its first to its last are
 * checked instead. */
bool formats_are_bools(const unsigned char *bytes, uint64_t size, tn_ints shape, tn_ints strides,
                       int64_t offset, uint64_t *visits)
{
    int64_t sizes[TN_MAX_DIMS], steps[TN_MAX_DIMS], index[TN_MAX_DIMS] = { 0 };
    int64_t low = offset, high = offset;
    int n = 0;
    bool overlaps = false;
    *visits = 1;
    /* The strides of a tensor without elements may be any numbers. */
    for (int64_t i = 0; i < shape.count; i++)
        if (shape.at[i] == 0)
            return true;
    for (int64_t i = 0; i < shape.count; i++) {
        if (shape.at[i] == 1 || strides.at[i] == 0)
            continue;
        *(strides.at[i] > 0 ? &high : &low) += (shape.at[i] - 1) * strides.at[i];
        overlaps = overlaps || __builtin_mul_overflow(*visits, (uint64_t)shape.at[i], visits) ||
                   *visits > size;
        sizes[n] = shape.at[i];
        steps[n++] = strides.at[i];
    }
    if (overlaps || n == 0) {
        *visits = (uint64_t)(high - low) + 1;
        return all_bools(bytes + low, high - low + 1, 1);
    }
    for (int64_t at = offset;;) {
        if (!all_bools(bytes + at, sizes[n - 1], steps[n - 1]))
            return false;
        int d = n - 2;
        for (; d >= 0 && ++index[d] == sizes[d]; d--) {
            at -= (sizes[d] - 1) * steps[d];
            index[d] = 0;
        }
        if (d < 0)
            return true;
        at += steps[d];
    }
}

/* Reverses the bytes of each word of `word` bytes. */
static void swap_words(unsigned char *bytes, size_t size, size_t word)
{
    for (size_t i = 0; i + word <= size; i += word) {
        for (size_t a = i, b = i + word - 1; a < b; a++, b--) {
            unsigned char byte = bytes[a];
            bytes[a] = bytes[b];
            bytes[b] = byte;
        }
    }
}

tn_status formats_read_values(const tn_source *source, uint64_t offset, size_t size, size_t swap,
                              tn_tensor *tensor)
{
    if (size == 0 || !tn_device_has_memory(tn_tensor_device(tensor)))
        return TN_OK;
    bool direct = tn_device_is_host(tn_tensor_device(tensor));
    void *bytes = direct ? tn_tensor_data(tensor) : tn_malloc(size);
    if (bytes == NULL)
        return tn_error_last_code();
    tn_status status = source->read(source->user, offset, bytes, size);
    if (status == TN_OK && swap > 1)
        swap_words(bytes, size, swap);
    if (status == TN_OK && tn_tensor_dtype(tensor) == TN_BOOL)
        make_bools(bytes, size);
    if (status == TN_OK)
        status = direct ? tn_tensor_touch(tensor) : tn_tensor_copy_in(tensor, bytes, size);
    if (!direct)
        tn_free(bytes);
    return status;
}

tn_status formats_write_values(const tn_sink *sink, tn_tensor *tensor)
{
    size_t size = (size_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
    if (size == 0)
        return TN_OK;
    /* Bools are copied first, because every byte other than 0 is written as 1. */
    bool truth = tn_tensor_dtype(tensor) == TN_BOOL;
    if (!truth && tn_device_is_host(tn_tensor_device(tensor)) && tn_tensor_is_contiguous(tensor)) {
        const void *bytes = tn_tensor_data(tensor);
        return bytes != NULL ? sink->write(sink->user, bytes, size) : tn_error_last_code();
    }
    void *bytes = tn_malloc(size);
    if (bytes == NULL)
        return TN_ERR_MEMORY;
    tn_status status = tn_tensor_copy_out(tensor, bytes, size);
    if (status == TN_OK && truth)
        make_bools(bytes, size);
    if (status == TN_OK)
        status = sink->write(sink->user, bytes, size);
    tn_free(bytes);
    return status;
}

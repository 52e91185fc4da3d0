/* SPDX-License-Identifier: MIT
 *
 * Values of a tensor from a file and to one, for all formats. */
#include "formats.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the data of files are little-endian and are copied as they are"
#endif

/* A byte that is neither 0 nor 1 would not be a bool to C. */
static void make_bools(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = bytes[i] != 0;
}

/* Turns words of `word` bytes around. */
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

tn_status fm_read_values(const tn_source *source, uint64_t offset, size_t size, size_t swap,
                         tn_tensor *tensor)
{
    if (size == 0 || !tn_device_has_memory(tn_tensor_device(tensor)))
        return TN_OK;
    bool direct = tn_device_is_host(tn_tensor_device(tensor));
    void *bytes = direct ? tn_tensor_data(tensor) : tn_malloc(size);
    if (bytes == NULL)
        return tn_error_last()->code;
    tn_status status = source->read(source->user, offset, bytes, size);
    if (status == TN_OK && swap > 1)
        swap_words(bytes, size, swap);
    if (status == TN_OK && tn_tensor_dtype(tensor) == TN_BOOL)
        make_bools(bytes, size);
    if (!direct) {
        if (status == TN_OK)
            status = tn_tensor_copy_in(tensor, bytes, size);
        tn_free(bytes);
    }
    return status;
}

tn_status fm_write_values(const tn_sink *sink, tn_tensor *tensor)
{
    size_t size = (size_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
    if (size == 0)
        return TN_OK;
    if (tn_device_is_host(tn_tensor_device(tensor)) && tn_tensor_is_contiguous(tensor)) {
        const void *bytes = tn_tensor_data(tensor);
        return bytes != NULL ? sink->write(sink->user, bytes, size) : tn_error_last()->code;
    }
    void *bytes = tn_malloc(size);
    if (bytes == NULL)
        return TN_ERR_MEMORY;
    tn_status status = tn_tensor_copy_out(tensor, bytes, size);
    if (status == TN_OK)
        status = sink->write(sink->user, bytes, size);
    tn_free(bytes);
    return status;
}

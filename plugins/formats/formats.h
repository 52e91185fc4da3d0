/* SPDX-License-Identifier: MIT
 *
 * Declarations that the files of this plugin share: the formats, which plugin.c lists as the
 * plugin's contributions, and functions that several formats use. */
#ifndef TN_FORMATS_FORMATS_H
#define TN_FORMATS_FORMATS_H

#include <tenon/plugin.h>

/* Defined in safetensors.c, safetensors_index.c, script.c, checkpoint.c, npy.c, npz.c, pytorch.c
 * and others.c. */
TN_HIDDEN extern const tn_format_def format_safetensors, format_safetensors_index, format_script,
    format_checkpoint, format_npy, format_npz, format_pytorch, format_others;

/* plugin.c: limits the memory that a file can take beyond its own size (for deflated data, or for
 * tensors whose elements share memory). Adds `more` bytes to *sum, the total of this file so far;
 * fails with TN_ERR_REFUSED if *sum then exceeds the setting unpacked_max. */
TN_HIDDEN tn_status formats_unpacked(const tn_source *source, uint64_t *sum, uint64_t more);

/* npy.c: reads one array with its header and adds it to the state as tensor `name`; writes tensor
 * number `index` of the state as one array with its header. */
TN_HIDDEN tn_status npy_load(const tn_source *source, const char *name, tn_state *state);
TN_HIDDEN tn_status npy_save(const tn_sink *sink, const tn_state *state, int64_t index);

/* values.c: read and write the values of a tensor in row-major order. The memory of a tensor on the
 * host is used directly if possible; otherwise the values pass through a temporary block of host
 * memory. formats_read_values() reverses the bytes of each word of `swap` bytes (0: of none),
 * makes bytes of bools 0 or 1, and does nothing for a tensor on a device without memory. */
TN_HIDDEN tn_status formats_read_values(const tn_source *source, uint64_t offset, size_t size,
                                        size_t swap, tn_tensor *tensor);
TN_HIDDEN tn_status formats_write_values(const tn_sink *sink, tn_tensor *tensor);
/* Checks whether all elements of a bool view are 0 or 1. The caller has checked that the view is
 * within the `size` bytes. Sets *visits to the number of bytes that the check covers, at most
 * `size`. */
TN_HIDDEN bool formats_are_bools(const unsigned char *bytes, uint64_t size, tn_ints shape,
                                 tn_ints strides, int64_t offset, uint64_t *visits);

/* safetensors.c: the functions of the format "safetensors", which "script" uses, too. */
TN_HIDDEN tn_status safetensors_load(const tn_format_def *self, const tn_source *source,
                                     tn_state *state);
TN_HIDDEN tn_status safetensors_save(const tn_format_def *self, const tn_sink *sink,
                                     const tn_state *state);
/* script.c: whether a file of safetensors is a script. */
TN_HIDDEN bool script_recognize(const tn_format_def *self, const tn_source *source);

/* safetensors_header.c: the description of one tensor in the header. */
struct safetensors_tensor {
    char *name;
    tn_dtype dtype;
    int32_t ndim;
    int64_t shape[TN_MAX_DIMS];
    uint64_t begin, end; /* of its data, in bytes from the start of all data */
};

struct safetensors_header {
    struct safetensors_tensor *at; /* in the order of the header */
    int64_t count;
    uint64_t data; /* offset in the file at which the data begin */
};

TN_HIDDEN tn_status safetensors_header_read(const tn_source *source,
                                            struct safetensors_header *header, tn_state *state);
TN_HIDDEN void safetensors_header_free(struct safetensors_header *header);
/* Makes the header for `state`: *bytes gets its length field and its padded text (the caller frees
 * *bytes with tn_free), and order[] gets the numbers of the tensors in the order in which the
 * caller must write their data. */
TN_HIDDEN tn_status safetensors_header_write(const tn_state *state, const char *path,
                                             int64_t *order, char **bytes, size_t *size);

/* checkpoint_read.c: the load function of the format "checkpoint". */
TN_HIDDEN tn_status checkpoint_load(const tn_format_def *self, const tn_source *source,
                                    tn_state *state);
/* checkpoint_sum.c: the checksum (XXH64) of the header and of every storage. */
TN_HIDDEN uint64_t checkpoint_sum(const void *bytes, size_t count);

#endif
